package ptx

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// instrGen draws legal instructions from the opcode table.
type instrGen struct {
	t    *rapid.T
	e    *Entry
	sets map[Type]int32
}

func newInstrGen(t *rapid.T) *instrGen {
	g := &instrGen{
		t:    t,
		e:    &Entry{Name: "k", Linkage: Visible},
		sets: map[Type]int32{},
	}
	for _, s := range []RegSet{
		{"%p", Pred, 8}, {"%h", B16, 8},
		{"%r", B32, 140}, {"%rd", B64, 8},
		{"%f", F32, 140}, {"%fd", F64, 8},
		{"%rq", B128, 4}, {"%b", B8, 4},
	} {
		g.e.Body = append(g.e.Body, Stmt{
			Kind:  StmtReg,
			Index: int32(len(g.e.Regs)),
		})
		g.e.Regs = append(g.e.Regs, s)
		g.sets[s.Type] = int32(len(g.e.Regs))
	}
	g.e.Params = []Param{
		{Type: U64, Name: "a"},
		{Type: B8, Align: 64, Count: 128, Name: "map"},
	}
	g.e.Body = append(g.e.Body, Stmt{Kind: StmtLabel, Text: "$L"})
	return g
}

func (g *instrGen) n(limit int) int {
	return rapid.IntRange(0, limit).Draw(g.t, "n")
}

func (g *instrGen) reg(t Type) Operand {
	class, _ := regClass(t)
	if t.Bits() == 8 {
		class = B8
	}
	set := g.sets[class]
	return Operand{
		Kind: KindReg,
		Reg:  Reg{set, int32(g.n(g.e.Regs[set-1].N - 1))},
	}
}

// form draws modifiers for a form.
func (g *instrGen) form(op Op, f *form) match {
	o := Opcode{Op: op}
	for i := range f.slots {
		if f.slots[i].optional && g.n(2) > 0 {
			continue
		}
		var all []Mod
		f.slots[i].set.each(func(m Mod) { all = append(all, m) })
		o.mods[o.n] = all[g.n(len(all)-1)]
		o.n++
	}
	for _, m := range matches(o) {
		if m.form == f {
			return m
		}
	}
	g.t.Fatalf("%s is not of its row %s", o, f.row.syntax)
	return match{}
}

func (g *instrGen) instr(m *match) Instr {
	in := Instr{Opcode: m.op}
	if g.n(3) == 0 {
		in.Guard = Guard{g.reg(Pred).Reg, g.n(1) == 0}
	}
	memory := 0
	for i := range m.operands {
		p := &m.operands[i]
		if p.optional &&
			(p.when != NoMod && !m.op.Has(p.when) ||
				p.when == NoMod && g.n(1) == 0) {
			continue
		}
		o := g.operand(m, p, memory)
		if o.Kind == KindMem {
			memory++
		}
		in.Operands = append(in.Operands, o)
	}
	return in
}

func (g *instrGen) operand(m *match, p *pattern, memory int) Operand {
	switch p.kind {
	case patMem:
		return g.memory(m, p, memory)
	case patTensor:
		c := Vec()
		for range int(m.op.mods[0]-ModDim1) + 1 {
			c.List = append(c.List, g.value(&pattern{}, S32))
		}
		return Operand{
			Kind: KindTensor,
			List: []Operand{Mem(g.reg(B64), g.n(64)), c},
		}
	case patImm:
		if p.set != nil {
			return Int(p.set[g.n(len(p.set)-1)])
		}
		return Int(p.lo + int64(g.n(int(min(
			1000, (p.hi-p.lo)/p.step,
		))))*p.step)
	case patLabel:
		return Sym("$L")
	case patSink:
		return Sink()
	}
	n, braces := m.elements(p)
	if !braces {
		o := g.value(p, m.typ(p))
		if p.pair && g.n(1) == 0 {
			return pairOf(o, g.reg(Pred))
		}
		return o
	}
	v := Vec()
	for range n {
		v.List = append(v.List, g.value(p, m.typ(p)))
	}
	return v
}

func (g *instrGen) memory(m *match, p *pattern, memory int) Operand {
	space := addressSpace(&m.op, memory)
	switch k := g.n(3); {
	case k == 0 && isShared(space):
		return Mem(Sym("smem"), 128*g.n(3))
	case k == 0 && space == ModParam:
		return Mem(Sym("map"), 0)
	case k == 1:
		return Operand{Kind: KindMem, Bits: uint64(128 * g.n(10))}
	case k == 2 && isShared(space):
		return Mem(g.reg(B32), g.n(2000)-1000)
	}
	return Mem(g.reg(B64), g.n(2000)-1000)
}

// value draws a register, or a number or another source where the pattern
// allows it.
func (g *instrGen) value(p *pattern, t Type) Operand {
	switch k := g.n(5); {
	case k == 0 && p.sink && p.dst:
		return Sink()
	case k == 0 && p.address && t.Bits() == 32 && !t.Float():
		return Sym("smem")
	case k == 2 && p.special && !t.Float() && t != Pred:
		if s := Special(
			1 + g.n(int(numSpecials)-2),
		); s.Type().Bits() == t.Bits() {
			return Sreg(s)
		}
	case k == 1 && !p.regOnly && p.kind == patValue:
		return g.number(t)
	}
	o := g.reg(t)
	o.Neg = p.neg && g.n(1) == 0
	return o
}

func (g *instrGen) number(t Type) Operand {
	bits := rapid.Uint64().Draw(g.t, "bits")
	switch {
	case t == F32:
		return Operand{Kind: KindF32, Bits: bits & (1<<32 - 1)}
	case t == F64:
		return Operand{Kind: KindF64, Bits: bits}
	case t.Float():
		return g.reg(t)
	case t == Pred:
		return Int(g.n(1))
	case t.Bits() == 64:
		return Operand{Kind: KindInt, Bits: bits}
	}
	return Operand{Kind: KindInt, Bits: bits & (1<<t.Bits() - 1)}
}

// Every row of the table can be written, read and checked, and what is read is
// what was written.
func TestEveryRowPrintsAndParses(t *testing.T) {
	for _, target := range []Target{{90, 'a'}, {100, 'a'}} {
		t.Run(target.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkRows(t, target) })
		})
	}
}

func checkRows(t *rapid.T, target Target) {
	m := legalModule(t, Version{9, 0}, target)
	rows := 0
	for _, all := range forms() {
		for i := range all {
			if target.Runs(all[i].target) {
				rows++
			}
		}
	}
	if drawn := len(m.Entries[0].Body); drawn < rows*3/4 {
		t.Fatalf("only %d instructions of %d rows are legal", drawn, rows)
	}
	sameAgain(t, m)
}

// sameAgain checks that m reads back as it is, and is legal.
func sameAgain(t *rapid.T, m *Module) {
	text := m.Text()
	again, err := Parse("", text)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again.Text(), text) {
		t.Fatalf("printed\n%s\nread and printed\n%s", text, again.Text())
	}
	if err := again.Check(); err != nil {
		t.Fatal(err)
	}
	for i := range m.Entries[0].Body {
		a, b := &m.Entries[0].Body[i], &again.Entries[0].Body[i]
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("written %+v\nread %+v", a, b)
		}
	}
	again.file, again.src = "", ""
	if !reflect.DeepEqual(again, m) {
		t.Fatalf("read something else than was written:\n%s", text)
	}
}

// symAt is the address offset bytes behind a variable.
func symAt[T ~int | ~int32 | ~int64](name string, offset T) Operand {
	return Operand{
		Kind: KindSym,
		Sym:  name,
		Bits: uint64(int64(offset)),
	}
}

// pairOf is d|p: two destinations in the place of one.
func pairOf(d, p Operand) Operand {
	return Operand{Kind: KindPair, List: []Operand{d, p}}
}
