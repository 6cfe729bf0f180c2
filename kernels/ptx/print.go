package ptx

import (
	"fmt"
	"io"
	"strconv"
)

// Text is the module as PTX: the same bytes for the same module.
func (m *Module) Text() []byte {
	lines := 8 + len(m.Vars)
	for i := range m.Entries {
		lines += len(m.Entries[i].Params) +
			len(m.Entries[i].Body)
	}
	p := printer{
		line: 1,
		buf:  make([]byte, 0, 64*lines),
	}
	p.module(m)
	return p.buf
}

// WriteTo writes the text of the module.
func (m *Module) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(m.Text())
	return int64(n), err
}

// number gives every statement, variable and entry the line that Text prints it
// on.
func (m *Module) number() {
	p := printer{line: 1, number: true}
	p.module(m)
	m.file, m.src = "", ""
}

// InstrText is instruction in of e as it is printed, without the semicolon.
func (e *Entry) InstrText(in *Instr) string {
	p := printer{entry: e}
	p.instr(in)
	return string(p.buf)
}

// printer appends the text of a module to a buffer and counts lines.
type printer struct {
	buf    []byte
	entry  *Entry
	line   int32
	number bool // write the lines into the statements
}

// str appends a string.
func (p *printer) str(s string) {
	p.buf = append(p.buf, s...)
}

// int appends a number.
func (p *printer) int(n int) {
	p.buf = strconv.AppendInt(p.buf, int64(n), 10)
}

// end ends a line.
func (p *printer) end(s string) {
	p.buf = append(p.buf, s...)
	p.buf = append(p.buf, '\n')
	p.line++
}

// at notes the line of a statement.
func (p *printer) at(line *int32) {
	if p.number {
		*line = p.line
	}
}

// module prints a module.
func (p *printer) module(m *Module) {
	p.end(".version " + m.Version.String())
	p.end(".target " + m.Target.String())
	p.end(".address_size 64")
	for i := range m.Vars {
		if i == 0 {
			p.end("")
		}
		p.variable(&m.Vars[i])
	}
	for i := range m.Functions {
		p.end("")
		p.functionText(&m.Functions[i])
	}
	for i := range m.Entries {
		p.end("")
		p.entryText(&m.Entries[i])
	}
}

// linkageText is the directive of each linkage.
var linkageText = [...]string{
	Local:   "",
	Visible: ".visible ",
	Extern:  ".extern ",
	Weak:    ".weak ",
}

// variable prints the declaration of a variable.
func (p *printer) variable(v *Var) {
	p.at(&v.Line)
	p.str(linkageText[v.Linkage])
	p.str(".")
	p.str(v.Space.String())
	p.str(" ")
	p.align(v.Align)
	p.str(".")
	p.str(v.Type.String())
	p.str(" ")
	p.str(v.Name)
	if v.Array {
		p.str("[")
		if v.Count > 0 {
			p.int(v.Count)
		}
		p.str("]")
	}
	for i, x := range v.Init {
		p.str(initSeparator(i, v.Array))
		p.buf = strconv.AppendInt(p.buf, x, 10)
	}
	if len(v.Init) > 0 && v.Array {
		p.str("}")
	}
	p.end(";")
}

// initSeparator is what precedes initial value number i.
func initSeparator(i int, array bool) string {
	switch {
	case i > 0:
		return ", "
	case array:
		return " = {"
	}
	return " = "
}

// align prints an alignment unless it is the natural one.
func (p *printer) align(n int) {
	if n > 0 {
		p.str(".align ")
		p.int(n)
		p.str(" ")
	}
}

// entryText prints an entry.
func (p *printer) entryText(e *Entry) {
	p.at(&e.Line)
	p.entry = e
	p.str(linkageText[e.Linkage])
	p.str(".entry ")
	p.str(e.Name)
	p.end("(")
	for i := range e.Params {
		p.param(&e.Params[i], i == len(e.Params)-1)
	}
	p.end(")")
	p.directives(e)
	p.bodyText(e)
}

// bodyText prints the statements of an entry or a function.
func (p *printer) bodyText(e *Entry) {
	p.end("{")
	for i := range e.Body {
		if p.number {
			e.Body[i].Line, e.Body[i].Col = p.line, 2
			if e.Body[i].Kind == StmtLabel {
				e.Body[i].Col = 1
			}
		}
		p.stmt(&e.Body[i])
	}
	p.end("}")
}

// param prints a parameter.
func (p *printer) param(a *Param, last bool) {
	p.at(&a.Line)
	p.str("\t.param ")
	p.align(a.Align)
	p.str(".")
	p.str(a.Type.String())
	p.str(" ")
	p.str(a.Name)
	if a.Count > 0 {
		p.str("[")
		p.int(a.Count)
		p.str("]")
	}
	if last {
		p.end("")
	} else {
		p.end(",")
	}
}

// directives prints the directives between parameters and body.
func (p *printer) directives(e *Entry) {
	p.dims(".maxntid ", e.MaxNTid)
	p.dims(".reqntid ", e.ReqNTid)
	p.directive(".minnctapersm ", e.MinNCTAPerSM)
	p.directive(".maxnctapersm ", e.MaxNCTAPerSM)
	p.directive(".maxnreg ", e.MaxNReg)
	if e.ExplicitCluster {
		p.end(".explicitcluster")
	}
	p.dims(".reqnctapercluster ", e.ReqNCTAPerCluster)
	p.directive(".maxclusterrank ", e.MaxClusterRank)
}

// dims prints a directive with up to three sizes, if it is present.
func (p *printer) dims(name string, d [3]int) {
	if d != [3]int{} {
		p.end(fmt.Sprintf(
			"%s%d, %d, %d",
			name, d[0], d[1], d[2],
		))
	}
}

// directive prints a directive with a number, if it is present.
func (p *printer) directive(name string, n int) {
	if n > 0 {
		p.end(name + strconv.Itoa(n))
	}
}

// stmt prints a statement on a line.
func (p *printer) stmt(s *Stmt) {
	switch s.Kind {
	case StmtInstr:
		p.buf = append(p.buf, '\t')
		p.instr(&s.Instr)
		p.end(";")
	case StmtLabel:
		p.str(s.Text)
		p.end(":")
	case StmtComment:
		p.str("\t// ")
		p.end(s.Text)
	case StmtReg:
		p.regs(&p.entry.Regs[s.Index])
	case StmtVar:
		p.str("\t")
		p.variable(&p.entry.Vars[s.Index])
	case StmtOpen:
		p.end("\t{")
	case StmtClose:
		p.end("\t}")
	case StmtTargets:
		p.str("\t.branchtargets ")
		for i := range s.Instr.Operands {
			if i > 0 {
				p.str(", ")
			}
			p.operand(&s.Instr.Operands[i])
		}
		p.end(";")
	}
}

// regs prints the declaration of a register set.
func (p *printer) regs(s *RegSet) {
	p.str("\t.reg .")
	p.str(s.Type.String())
	p.str(" ")
	p.str(s.Prefix)
	if s.N > 0 {
		p.str("<")
		p.int(s.N)
		p.str(">")
	}
	p.end(";")
}

// instr prints an instruction.
func (p *printer) instr(in *Instr) {
	if !in.Guard.None() {
		p.buf = append(p.buf, '@')
		if in.Guard.Neg {
			p.buf = append(p.buf, '!')
		}
		p.reg(in.Guard.Reg)
		p.buf = append(p.buf, ' ')
	}
	p.str(in.Opcode.Op.String())
	for _, m := range in.Opcode.Mods() {
		p.buf = append(p.buf, '.')
		p.str(m.String())
	}
	if in.Opcode.Op == OpCall {
		p.callText(in)
		return
	}
	for i := range in.Operands {
		if i == 0 {
			p.buf = append(p.buf, ' ')
		} else {
			p.buf = append(p.buf, ',', ' ')
		}
		p.operand(&in.Operands[i])
	}
}

// reg prints a register.
func (p *printer) reg(r Reg) {
	if p.entry == nil || r.Set < 1 ||
		int(r.Set) > len(p.entry.Regs) {
		p.str("%none")
		return
	}
	s := &p.entry.Regs[r.Set-1]
	p.str(s.Prefix)
	if s.N > 0 {
		p.int(int(r.Index))
	}
}

// operand prints an operand.
func (p *printer) operand(o *Operand) {
	switch o.Kind {
	case KindReg:
		if o.Neg {
			p.buf = append(p.buf, '!')
		}
		p.reg(o.Reg)
	case KindSink:
		p.buf = append(p.buf, '_')
	case KindInt:
		p.buf = strconv.AppendInt(p.buf, int64(o.Bits), 10)
	case KindF32:
		p.str("0f")
		p.hex(o.Bits, 8)
	case KindF64:
		p.str("0d")
		p.hex(o.Bits, 16)
	case KindSpecial:
		p.str(o.Special.String())
	case KindSym:
		p.str(o.Sym)
		p.offset(o.Bits)
	case KindMem:
		p.buf = append(p.buf, '[')
		p.mem(o)
		p.buf = append(p.buf, ']')
	case KindVec:
		p.list('{', o.List, '}')
	case KindPair:
		p.operand(&o.List[0])
		p.buf = append(p.buf, '|')
		p.operand(&o.List[1])
	case KindTensor:
		p.buf = append(p.buf, '[')
		p.mem(&o.List[0])
		for i := range o.List[1:] {
			p.buf = append(p.buf, ',', ' ')
			p.operand(&o.List[1+i])
		}
		p.buf = append(p.buf, ']')
	}
}

// list prints operands between brackets.
func (p *printer) list(open byte, list []Operand, end byte) {
	p.buf = append(p.buf, open)
	for i := range list {
		if i > 0 {
			p.buf = append(p.buf, ',', ' ')
		}
		p.operand(&list[i])
	}
	p.buf = append(p.buf, end)
}

// mem prints an address without its brackets.
func (p *printer) mem(o *Operand) {
	switch {
	case !o.Reg.None():
		p.reg(o.Reg)
	case o.Sym != "":
		p.str(o.Sym)
	default:
		p.buf = strconv.AppendInt(p.buf, int64(o.Bits), 10)
		return
	}
	p.offset(o.Bits)
}

// offset prints +n, or +-n if n is negative: the grammar has no subtraction.
func (p *printer) offset(n uint64) {
	if n != 0 {
		p.buf = strconv.AppendInt(
			append(p.buf, '+'), int64(n), 10,
		)
	}
}

// hexDigits are the digits of floats in hexadecimal.
const hexDigits = "0123456789ABCDEF"

// hex prints the bits of a float.
func (p *printer) hex(v uint64, digits int) {
	for i := digits - 1; i >= 0; i-- {
		p.buf = append(p.buf, hexDigits[v>>(4*i)&15])
	}
}

// callText prints the operands of a call.
func (p *printer) callText(in *Instr) {
	all := in.Operands
	if len(all) < 3 {
		return
	}
	if len(all[0].List) > 0 {
		p.str(" ")
		p.list('(', all[0].List, ')')
		p.str(",")
	}
	p.str(" ")
	p.operand(&all[1])
	if len(all[2].List) > 0 {
		p.str(", ")
		p.list('(', all[2].List, ')')
	}
	for i := range all[3:] {
		p.str(", ")
		p.operand(&all[3+i])
	}
}

// functionText prints a function.
func (p *printer) functionText(f *Function) {
	p.at(&f.Line)
	p.entry = &f.Entry
	p.str(linkageText[f.Linkage])
	p.str(".func ")
	if len(f.Results) > 0 {
		p.end("(")
		for i := range f.Results {
			p.param(&f.Results[i], i == len(f.Results)-1)
		}
		p.str(") ")
	}
	p.str(f.Name)
	p.end("(")
	for i := range f.Params {
		p.param(&f.Params[i], i == len(f.Params)-1)
	}
	if f.Declared {
		p.end(");")
		return
	}
	p.end(")")
	p.directives(&f.Entry)
	p.bodyText(&f.Entry)
}
