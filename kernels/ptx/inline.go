package ptx

import (
	"fmt"
	"slices"
	"strconv"
)

// Inline returns an entry of the module with the bodies of the functions that it calls in
// the place of the calls; parameters and results become local variables. It is an error
// where a function is not defined here, calls itself, or is called by its address.
func (m *Module) Inline(e *Entry) (*Entry, error) {
	i := inliner{m: m, e: *e}
	i.e.Regs, i.e.Vars = slices.Clone(e.Regs), slices.Clone(e.Vars)
	var err error
	if i.e.Body, err = i.body(e, place0, nil); err != nil {
		return nil, err
	}
	// What registers and numbers are passed is checked where they are stored.
	alone := *m
	alone.Functions, alone.Entries = nil, []Entry{i.e}
	return &i.e, alone.Check()
}

// A frame is where the names of a body are in the entry that it is put into.
type frame struct {
	// Suffix distinguishes its labels and variables, and sets is added to the numbers of
	// register sets, vars to those of variables.
	suffix     string
	sets, vars int32
	// End is the label behind the body; "" for the entry's own.
	end string
	// Own are the names that get the suffix.
	own map[string]bool
}

// place0 is the frame of the entry itself.
var place0 = frame{}

// An inliner builds an entry.
type inliner struct {
	m *Module
	e Entry
	// Calls numbers the calls.
	calls int
}

// maxCalls bounds the calls of an entry, of which functions that call others have many.
const maxCalls = 1000

// body is the statements of an entry or a function in a frame; active are the functions
// that are being put in.
func (n *inliner) body(e *Entry, f frame, active []string) (all []Stmt, err error) {
	for k := range e.Body {
		s := e.Body[k]
		switch {
		case s.Kind == StmtInstr && s.Instr.Opcode.Op == OpCall:
			more, err := n.call(&s, f, active)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
			continue
		case s.Kind == StmtInstr && s.Instr.Opcode.Op == OpRet && f.end != "":
			s.Instr = Instr{Guard: f.guard(s.Instr.Guard), Opcode: Opcode{Op: OpBra}, Operands: []Operand{Sym(f.end)}}
		default:
			n.rename(&s, f)
		}
		all = append(all, s)
	}
	return all, nil
}

// guard is a guard in the frame.
func (f frame) guard(g Guard) Guard {
	if !g.None() {
		g.Reg.Set += f.sets
	}
	return g
}

// rename puts the names of a statement into the frame, and turns accesses of arguments
// into those of local variables.
func (n *inliner) rename(s *Stmt, f frame) {
	switch s.Kind {
	case StmtLabel:
		s.Text += f.suffix
	case StmtReg:
		s.Index += f.sets
	case StmtVar:
		s.Index += f.vars
		n.e.Vars[s.Index].local()
	case StmtInstr, StmtTargets:
		s.Instr.Guard = f.guard(s.Instr.Guard)
		s.Instr.Operands = f.operands(s.Instr.Operands)
		n.localise(&s.Instr)
	}
}

// local makes an argument a variable of local memory.
func (v *Var) local() {
	if v.Space == ModParam {
		v.Space = ModLocal
	}
}

// operands are operands with the names of the frame.
func (f frame) operands(in []Operand) []Operand {
	out := slices.Clone(in)
	for k := range out {
		o := &out[k]
		if !o.Reg.None() {
			o.Reg.Set += f.sets
		}
		if f.own[o.Sym] {
			o.Sym += f.suffix
		}
		o.List = f.operands(o.List)
	}
	return out
}

// localise turns ld.param and st.param of a variable into accesses of local memory.
func (n *inliner) localise(in *Instr) {
	op := in.Opcode.Op
	if op != OpLd && op != OpSt || in.Opcode.Space() != ModParam {
		return
	}
	for k := range in.Operands {
		o := &in.Operands[k]
		isVar := slices.ContainsFunc(n.e.Vars, func(v Var) bool { return v.Name == o.Sym })
		if o.Kind != KindMem || !isVar {
			continue
		}
		for i, m := range in.Opcode.Mods() {
			if m == ModParam {
				in.Opcode.mods[i] = ModLocal
			}
		}
	}
}

// call is a function's body in the place of its call: arguments are copied before it, and
// results after it.
func (n *inliner) call(s *Stmt, at frame, active []string) (all []Stmt, err error) {
	in := &s.Instr
	name := in.Operands[1].Sym
	var f *Function
	for k := range n.m.Functions {
		if g := &n.m.Functions[k]; g.Name == name && !g.Declared {
			f = g
		}
	}
	switch {
	case f == nil || in.Operands[1].Kind != KindSym:
		return nil, fmt.Errorf("line %d: no function %s is defined here", s.Line, name)
	case slices.Contains(active, name):
		return nil, fmt.Errorf("line %d: %s calls itself", s.Line, name)
	case n.calls == maxCalls:
		return nil, fmt.Errorf("line %d: more than %d calls", s.Line, maxCalls)
	case !in.Guard.None():
		return nil, fmt.Errorf("line %d: a call under a guard", s.Line)
	}
	n.calls++
	own := n.frame(f)
	// Names of arguments are those of the caller, of parameters those of the function.
	results, args := at.operands(in.Operands[0].List), at.operands(in.Operands[2].List)
	for k := range f.Params {
		all = append(all, n.move(s.Line, &f.Params[k], Sym(f.Params[k].Name+own.suffix), args[k])...)
	}
	body, err := n.body(&f.Entry, own, append(active, name))
	if err != nil {
		return nil, err
	}
	all = append(all, Stmt{Kind: StmtOpen, Line: s.Line})
	all = append(append(all, body...), Stmt{Kind: StmtClose, Line: s.Line})
	all = append(all, Stmt{Kind: StmtLabel, Text: own.end, Line: s.Line})
	for k := range results {
		all = append(all, n.move(s.Line, &f.Results[k], results[k], Sym(f.Results[k].Name+own.suffix))...)
	}
	return all, nil
}

// frame declares what a function has in the entry.
func (n *inliner) frame(f *Function) frame {
	x := frame{
		suffix: "_call" + strconv.Itoa(n.calls),
		sets:   int32(len(n.e.Regs)), vars: int32(len(n.e.Vars)),
		own: map[string]bool{},
	}
	x.end = "$end" + x.suffix
	n.e.Regs = append(n.e.Regs, f.Regs...)
	for _, v := range f.Vars {
		x.own[v.Name] = true
		v.Name += x.suffix
		n.e.Vars = append(n.e.Vars, v)
	}
	for k := range f.Body {
		if f.Body[k].Kind == StmtLabel {
			x.own[f.Body[k].Text] = true
		}
	}
	for _, p := range slices.Concat(f.Params, f.Results) {
		x.own[p.Name] = true
		n.e.Vars = append(n.e.Vars, Var{
			Space: ModLocal, Align: p.Align, Type: p.Type, Name: p.Name + x.suffix,
			Array: p.Count > 0, Count: p.Count,
		})
	}
	return x
}

// move copies a parameter, byte by byte, from one variable to another, or from a register
// or a number.
func (n *inliner) move(line int32, p *Param, to, from Operand) (all []Stmt) {
	instr := func(text string, operands ...Operand) {
		o, err := ParseOpcode(text)
		if err != nil {
			panic(err)
		}
		all = append(all, Stmt{Line: line, Instr: Instr{Opcode: o, Operands: operands}})
	}
	local := func(o Operand, at int) Operand {
		return Operand{Kind: KindMem, Sym: o.Sym, Bits: uint64(at)}
	}
	switch {
	case from.Kind != KindSym:
		instr("st.local."+p.Type.String(), local(to, 0), from)
		return all
	case to.Kind != KindSym:
		instr("ld.local."+p.Type.String(), to, local(from, 0))
		return all
	}
	n.e.Regs = append(n.e.Regs, RegSet{Prefix: "%moved" + strconv.Itoa(len(n.e.Regs)), Type: B16})
	r := Operand{Kind: KindReg, Reg: Reg{Set: int32(len(n.e.Regs))}}
	all = append(all, Stmt{Kind: StmtReg, Index: int32(len(n.e.Regs) - 1), Line: line})
	for at := range p.Bytes() {
		instr("ld.local.b8", r, local(from, at))
		instr("st.local.b8", local(to, at), r)
	}
	return all
}
