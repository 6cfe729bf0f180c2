package ptx

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Builder makes a module. Methods do not return errors: the first one is kept
// and [Builder.Module] returns it.
type Builder struct {
	// m is the module so far, without its entries.
	m       Module
	entries []*Code
	// opcodes holds what was parsed, by its text.
	opcodes map[string]*opcodeInfo
	// err is the first error.
	err error
}

// opcodeInfo is an opcode that was parsed once, with the forms that it matches.
type opcodeInfo struct {
	opcode  Opcode
	matches []match
}

// NewBuilder starts a module for a target, such as Version{8, 0} and
// Target{90, 'a'}.
func NewBuilder(v Version, t Target) *Builder {
	return &Builder{
		m:       Module{Version: v, Target: t},
		opcodes: map[string]*opcodeInfo{},
	}
}

// Shared declares bytes of shared memory for all entries and returns its address.
func (b *Builder) Shared(name string, align, bytes int) Operand {
	b.m.Vars = append(b.m.Vars, Var{
		Space: ModShared,
		Align: align,
		Type:  B8,
		Name:  name,
		Array: true,
		Count: bytes,
	})
	return Sym(name)
}

// DynamicShared declares the shared memory whose size the launch determines, and
// returns its address.
func (b *Builder) DynamicShared(name string, align int) Operand {
	b.m.Vars = append(b.m.Vars, Var{
		Linkage: Extern,
		Space:   ModShared,
		Align:   align,
		Type:    B8,
		Name:    name,
		Array:   true,
	})
	return Sym(name)
}

// Entry starts a kernel. Its directives are fields of Code.Entry to be set.
func (b *Builder) Entry(name string) *Code {
	c := &Code{
		Entry:  &Entry{Name: name, Linkage: Visible},
		b:      b,
		sets:   map[Type]int32{},
		labels: map[string]int{},
	}
	c.scopes = []map[string]Operand{{}}
	b.entries = append(b.entries, c)
	return c
}

// Module finishes the module. The lines of its statements are those of the text
// that Text prints, and the module has passed [Module.Check].
func (b *Builder) Module() (*Module, error) {
	if b.err != nil {
		return nil, b.err
	}
	m := b.m
	m.Entries = nil
	for _, c := range b.entries {
		m.Entries = append(m.Entries, c.finish())
	}
	m.number()
	if err := m.Check(); err != nil {
		return nil, err
	}
	return &m, nil
}

// fail keeps the first error.
func (b *Builder) fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
}

// opcode parses an opcode, once; an opcode that is not in the table has no
// matches.
func (b *Builder) opcode(text string) *opcodeInfo {
	if i, known := b.opcodes[text]; known {
		return i
	}
	i := new(opcodeInfo)
	b.opcodes[text] = i
	var err error
	if i.opcode, err = ParseOpcode(text); err != nil {
		b.fail("%s: %v", text, err)
		return i
	}
	i.matches = matches(i.opcode)
	if len(i.matches) == 0 {
		b.fail("%s: %s", text, noForm(i.opcode))
	}
	return i
}

// A Code makes the body of an entry. Registers are of two kinds: values, which
// [Code.Let] defines once, and variables, which [Code.Var] and [Code.Reg] make
// and [Code.Emit] may write again. Within a scope, a pure operation on the same
// values is emitted once.
type Code struct {
	Entry *Entry
	b     *Builder
	body  []Stmt
	// sets maps the type of registers to their register set.
	sets map[Type]int32
	// values tells for each register of each set whether it is a value.
	values [][]bool
	// sums tells how values that are sums were made.
	sums map[Reg]sum
	// scopes hold, for each open scope, the results of pure operations by their
	// text: the same operation on the same values is emitted once.
	scopes []map[string]Operand
	// labels counts the uses of each label name, which get numbers.
	labels map[string]int
}

// sum is the way in which a value was made: base + offset.
type sum struct {
	base   Operand
	offset int64
}

// regClass is the type that registers of type t are declared with, and the
// prefix of their names.
func regClass(t Type) (Type, string) {
	switch {
	case t == Pred:
		return Pred, "%p"
	case t == F32:
		return F32, "%f"
	case t == F64:
		return F64, "%fd"
	}
	switch n := t.Bits(); {
	case n <= 16:
		return B16, "%h"
	case n == 32:
		return B32, "%r"
	case n == 64:
		return B64, "%rd"
	}
	return B128, "%rq"
}

// fresh is a new register of a type: a value, or a variable that may be written
// again.
func (c *Code) fresh(t Type, value bool) Operand {
	class, prefix := regClass(t)
	set, known := c.sets[class]
	if !known {
		c.Entry.Regs = append(
			c.Entry.Regs, RegSet{Prefix: prefix, Type: class},
		)
		c.values = append(c.values, nil)
		set = int32(len(c.Entry.Regs))
		c.sets[class] = set
	}
	s := &c.Entry.Regs[set-1]
	s.N++
	c.values[set-1] = append(c.values[set-1], value)
	return Operand{
		Kind: KindReg,
		Reg:  Reg{set, int32(s.N - 1)},
	}
}

// Reg is a new variable of type t: .pred, .f32, .f64, or bits as wide as t.
func (c *Code) Reg(t Type) Operand { return c.fresh(t, false) }

// Regs is n new variables.
func (c *Code) Regs(t Type, n int) []Operand {
	list := make([]Operand, n)
	for i := range list {
		list[i] = c.Reg(t)
	}
	return list
}

// Var is a new variable of type t with an initial value.
func (c *Code) Var(t Type, first Operand) Operand {
	v := c.Reg(t)
	c.Emit("mov."+moveType(t).String(), v, first)
	return v
}

// moveType is the type with which mov moves a register of type t.
func moveType(t Type) Type {
	class, _ := regClass(t)
	return class
}

// RegType is the type that register o was declared with, NoMod for others.
func (c *Code) RegType(o Operand) Type {
	if o.Kind != KindReg {
		return NoMod
	}
	return c.Entry.RegType(o.Reg)
}

// isValue reports whether o cannot change: a number, a symbol, or a register
// that Let made.
func (c *Code) isValue(o *Operand) bool {
	switch o.Kind {
	case KindReg:
		return c.values[o.Reg.Set-1][o.Reg.Index]
	case KindMem:
		return o.Reg.None() ||
			c.values[o.Reg.Set-1][o.Reg.Index]
	case KindVec, KindPair, KindTensor:
		for i := range o.List {
			if !c.isValue(&o.List[i]) {
				return false
			}
		}
	case KindSpecial:
		return !o.Special.changes()
	}
	return true
}

// changes reports whether a special register reads differently from one moment
// to the next.
func (s Special) changes() bool { return s >= Clock && s <= GlobaltimerHi }

// Param declares a parameter and is its symbol.
func (c *Code) Param(t Type, name string) Operand {
	c.Entry.Params = append(
		c.Entry.Params, Param{Type: t, Name: name},
	)
	return Sym(name)
}

// ParamBytes declares a parameter of bytes, such as a tensor map (128 bytes
// aligned to 64), and is its symbol.
func (c *Code) ParamBytes(name string, align, bytes int) Operand {
	c.Entry.Params = append(c.Entry.Params, Param{
		Type:  B8,
		Align: align,
		Count: bytes,
		Name:  name,
	})
	return Sym(name)
}

// LoadParam is the value of a scalar parameter.
func (c *Code) LoadParam(name string) Operand {
	for i := range c.Entry.Params {
		if p := &c.Entry.Params[i]; p.Name == name {
			return c.Let(
				"ld.param."+p.Type.String(),
				Mem(Sym(name), 0),
			)
		}
	}
	c.b.fail("%s has no parameter %s", c.Entry.Name, name)
	return c.fresh(B64, true)
}

// Shared declares bytes of shared memory of this entry and is its address.
func (c *Code) Shared(name string, align, bytes int) Operand {
	v := Var{
		Space: ModShared,
		Align: align,
		Type:  B8,
		Name:  name,
		Array: true,
		Count: bytes,
	}
	c.Entry.Vars = append(c.Entry.Vars, v)
	return Sym(name)
}

// Comment writes a comment line, such as the tile and the instruction that what
// follows comes from.
func (c *Code) Comment(format string, args ...any) {
	c.body = append(c.body, Stmt{
		Kind: StmtComment,
		Text: oneLine(fmt.Sprintf(format, args...)),
	})
}

// oneLine is s without line ends, without blanks at its ends, and with a question mark
// for each character that is not ASCII, which ptxas refuses in comments too.
func oneLine(s string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r < ' ':
			return ' '
		case r >= utf8.RuneSelf:
			return '?'
		}
		return r
	}, s), " ")
}

// Emit writes an instruction: opcode as text, destinations first.
func (c *Code) Emit(opcode string, operands ...Operand) {
	c.emit(Guard{}, opcode, operands)
}

// EmitIf writes an instruction that executes where predicate p holds; p may be
// Not(…).
func (c *Code) EmitIf(p Operand, opcode string, operands ...Operand) {
	if p.Kind != KindReg || c.RegType(p) != Pred {
		c.b.fail("%s: the guard of %s is no predicate", c.Entry.Name, opcode)
		return
	}
	c.emit(Guard{p.Reg, p.Neg}, opcode, operands)
}

// emit checks the operands of an instruction against the table and appends it.
func (c *Code) emit(g Guard, opcode string, operands []Operand) {
	i := c.b.opcode(opcode)
	for k := range i.matches {
		if c.variablesOnly(&i.matches[k], operands) {
			break
		}
	}
	c.add(Instr{
		Guard:    g,
		Opcode:   i.opcode,
		Operands: operands,
	})
}

// add appends an instruction.
func (c *Code) add(in Instr) {
	c.body = append(
		c.body, Stmt{Kind: StmtInstr, Instr: in},
	)
}

// variablesOnly refuses an instruction that writes a register that Let made; it
// reports whether the operands are of the match.
func (c *Code) variablesOnly(m *match, operands []Operand) bool {
	var room [maxOperands]*pattern
	patterns, ok := m.assign(&room, len(operands))
	for i := range patterns {
		ok = ok && m.alike(patterns[i], &operands[i])
	}
	if !ok {
		return false
	}
	for i, p := range patterns {
		if p.dst {
			c.variable(m, &operands[i])
		}
	}
	return true
}

// variable reports an operand that writes a value instead of a variable.
func (c *Code) variable(m *match, o *Operand) {
	switch o.Kind {
	case KindReg:
		if c.isValue(o) {
			c.b.fail("%s: %s writes a register that Let made; make it with Var or Reg", c.Entry.Name, m.op)
		}
	case KindVec, KindPair:
		for i := range o.List {
			c.variable(m, &o.List[i])
		}
	}
}

// Let is the result of an operation on sources, in a fresh register, or a vector
// of them (Operand.List) where the operation gives several. Arithmetic on
// numbers is done here, as is what does nothing (x+0, x·1), and a pure operation
// on the same values has the same result.
func (c *Code) Let(opcode string, sources ...Operand) Operand {
	i := c.b.opcode(opcode)
	m := fitting(i.matches, sources)
	if m == nil || len(m.operands) == 0 ||
		!m.operands[0].dst {
		c.b.fail(
			"%s: %s of %d sources has no result", c.Entry.Name, opcode, len(sources),
		)
		return c.fresh(B32, true)
	}
	if r, done := c.fold(&i.opcode, sources); done {
		return r
	}
	return c.once(i, m, sources)
}

// fitting is the first match that takes a destination and these sources.
func fitting(all []match, sources []Operand) *match {
	var room [maxOperands]*pattern
	for k := range all {
		m := &all[k]
		patterns, ok := m.assign(&room, len(sources)+1)
		for i := range sources {
			ok = ok && m.alike(patterns[i+1], &sources[i])
		}
		if ok {
			return m
		}
	}
	return nil
}

// once emits an operation unless its result is already available in an open
// scope.
func (c *Code) once(i *opcodeInfo, m *match, sources []Operand) Operand {
	shared := pure(&i.opcode)
	for k := range sources {
		shared = shared && c.isValue(&sources[k])
	}
	var key string
	if shared {
		key = c.Entry.InstrText(&Instr{
			Opcode:   i.opcode,
			Operands: sources,
		})
		for k := len(c.scopes) - 1; k >= 0; k-- {
			if r, known := c.scopes[k][key]; known {
				return r
			}
		}
	}
	r := c.result(m)
	c.add(Instr{
		Opcode:   i.opcode,
		Operands: append([]Operand{r}, sources...),
	})
	if shared {
		c.scopes[len(c.scopes)-1][key] = r
	}
	return r
}

// result is new values for the destination of m.
func (c *Code) result(m *match) Operand {
	p := &m.operands[0]
	n, braces := m.elements(p)
	if !braces {
		return c.fresh(m.typ(p), true)
	}
	list := make([]Operand, n)
	for i := range list {
		list[i] = c.fresh(m.typ(p), true)
	}
	return Vec(list...)
}

// Unpack is the n parts of x, the lowest bits first, as registers of type t: two
// or four of the bits of x together.
func (c *Code) Unpack(t Type, n int, x Operand) []Operand {
	list := make([]Operand, n)
	for i := range list {
		list[i] = c.fresh(t, true)
	}
	c.add(Instr{
		Opcode:   c.b.opcode("mov.b" + strconv.Itoa(n*t.Bits())).opcode,
		Operands: []Operand{Vec(list...), x},
	})
	return list
}

// pure reports whether the result of an operation depends on its sources only,
// and nothing else happens.
func pure(o *Opcode) bool {
	switch {
	case o.Has(ModCC) || o.Op == OpAddc ||
		o.Op == OpSubc || o.Op == OpMadc:
		return false
	case o.Op == OpLd:
		return o.Space() == ModParam
	}
	return o.Op == OpMov ||
		o.Op >= OpCvta && o.Op <= OpIsspacep ||
		o.Op >= OpAdd && o.Op <= OpSzext ||
		o.Op >= OpSetp && o.Op <= OpSlct ||
		o.Op == OpMapa
}

// Label is a new label whose name starts with name.
func (c *Code) Label(name string) string {
	n := c.labels[name]
	c.labels[name]++
	if n > 0 {
		name += "_" + strconv.Itoa(n)
	}
	return "$" + name
}

// Place puts a label here. What was computed before it is computed again after
// it: the label may be reached without it.
func (c *Code) Place(label string) {
	c.place(label)
	for i := range c.scopes {
		c.scopes[i] = map[string]Operand{}
	}
}

// place appends a label.
func (c *Code) place(label string) {
	c.body = append(
		c.body, Stmt{Kind: StmtLabel, Text: label},
	)
}

// Bra jumps to a label.
func (c *Code) Bra(label string) {
	c.Emit("bra.uni", Sym(label))
}

// BraIf jumps to a label where p holds.
func (c *Code) BraIf(p Operand, label string) {
	c.EmitIf(p, "bra", Sym(label))
}

// scope runs f in a scope of its own: what it computes is not available after it.
func (c *Code) scope(f func()) {
	c.scopes = append(c.scopes, map[string]Operand{})
	f()
	c.scopes = c.scopes[:len(c.scopes)-1]
}

// If runs then in the threads where p holds.
func (c *Code) If(p Operand, then func()) {
	end := c.Label("endif")
	c.BraIf(Not(p), end)
	c.scope(then)
	c.place(end)
}

// IfElse runs then in the threads where p holds, and otherwise in the others.
func (c *Code) IfElse(p Operand, then, otherwise func()) {
	no := c.Label("else")
	end := c.Label("endif")
	c.BraIf(Not(p), no)
	c.scope(then)
	c.Emit("bra", Sym(end))
	c.place(no)
	c.scope(otherwise)
	c.place(end)
}

// For runs body with i = first, first+step, … while i < limit, as signed 32-bit
// integers; not at all where first is no less than limit. The body must not
// write i.
func (c *Code) For(first, limit Operand, step int, body func(i Operand)) {
	i := c.Var(S32, first)
	head := c.Label("for")
	end := c.Label("endfor")
	if !first.IsImm() || !limit.IsImm() ||
		first.Int() >= limit.Int() {
		c.BraIf(c.Let("setp.ge.s32", i, limit), end)
	}
	c.place(head)
	c.scope(func() {
		body(i)
		c.Emit("add.s32", i, i, Int(step))
		c.BraIf(c.Let("setp.lt.s32", i, limit), head)
	})
	c.place(end)
}

// Repeat runs body, and again while the predicate that it returns holds.
func (c *Code) Repeat(body func() (again Operand)) {
	head := c.Label("repeat")
	c.place(head)
	c.scope(func() { c.BraIf(body(), head) })
}

// finish is the entry with the declarations before the body, and ret at its end
// where it has none.
func (c *Code) finish() Entry {
	e := *c.Entry
	for i := range e.Regs {
		e.Body = append(e.Body, Stmt{
			Kind:  StmtReg,
			Index: int32(i),
		})
	}
	for i := range e.Vars {
		e.Body = append(e.Body, Stmt{
			Kind:  StmtVar,
			Index: int32(i),
		})
	}
	e.Body = append(e.Body, c.body...)
	n := len(c.body)
	if n == 0 || !ends(&c.body[n-1]) {
		e.Body = append(e.Body, Stmt{
			Kind:  StmtInstr,
			Instr: Instr{Opcode: Opcode{Op: OpRet}},
		})
	}
	return e
}

// ends reports whether control never reaches the statement after s.
func ends(s *Stmt) bool {
	if s.Kind != StmtInstr || !s.Instr.Guard.None() {
		return false
	}
	switch s.Instr.Opcode.Op {
	case OpRet, OpExit, OpBra, OpBrx, OpTrap:
		return true
	}
	return false
}
