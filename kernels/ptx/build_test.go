package ptx

import (
	"fmt"
	"strings"
	"testing"
)

// stripes is a kernel with a bit of everything: a loop of cp.async, ldmatrix and
// mma over blocks×2 products, unrolled.
func stripes(blocks int) *Builder {
	b := NewBuilder(Version{8, 0}, Target{90, 'a'})
	smem := b.DynamicShared("smem", 128)
	c := b.Entry("stripes")
	c.Entry.MaxNTid = [3]int{128, 1, 1}
	for _, name := range []string{"a", "c"} {
		c.Param(U64, name)
	}
	c.Param(U32, "k")
	from, to, k := c.LoadParam("a"), c.LoadParam("c"), c.LoadParam("k")
	tid := c.Special(TidX)
	lane := c.And(tid, Int(31))
	base := c.Let("mov.b32", smem)
	c.Comment("tile 0, dot.3")
	acc := c.Regs(F32, 4*blocks)
	for _, r := range acc {
		c.Emit("mov.f32", r, F32Imm(0))
	}
	for _, half := range c.Unpack(B16, 2, lane) {
		c.Emit("st.shared.b16", Mem(smem, 0), half)
	}
	source := c.Var(U64, c.Add(from, c.MulWide(tid, Int(16))))
	c.For(Int(0), k, 16, func(i Operand) {
		for j := range blocks {
			c.Emit(
				"cp.async.cg.shared.global",
				Mem(c.Add(base, c.Mul(tid, Int(16))), 2048*j),
				Mem(source, 2048*j), Int(16),
			)
		}
		c.Emit("cp.async.commit_group")
		c.Emit("cp.async.wait_group", Int(0))
		c.Emit("bar.sync", Int(0))
		for j := range blocks {
			m := c.Let(
				"ldmatrix.sync.aligned.m8n8.x4.shared.b16",
				Mem(c.Add(base, c.Mul(lane, Int(16))), 2048*j),
			)
			f := Vec(acc[4*j : 4*j+4]...)
			c.Emit("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", f, m, Vec(m.List[0], m.List[2]), f)
		}
		c.Emit("add.u64", source, source, Int(2048*blocks))
	})
	out := c.Add(to, c.MulWide(tid, Int(16)))
	for j := range blocks {
		c.Emit(
			"st.global.v4.f32",
			Mem(out, 2048*j),
			Vec(acc[4*j:4*j+4]...),
		)
	}
	return b
}

func TestBuild(t *testing.T) {
	m, err := stripes(2).Module()
	if err != nil {
		t.Fatal(err)
	}
	text := string(m.Text())
	lines := strings.Split(text, "\n")
	if !strings.Contains(
		lines[m.Entries[0].Body[len(
			m.Entries[0].Body,
		)-1].Line-1],
		"ret;",
	) {
		t.Errorf("the last statement is not on its line:\n%s", text)
	}
	if n := strings.Count(text, "shl.b32"); n != 2 {
		t.Errorf("%d shifts, expected one for tid and one for lane:\n%s", n, text)
	}
	reprint(t, m)
}

// Let says what it made of an operation: the instructions it wrote, and the
// operand.
func TestLetFolds(t *testing.T) {
	for _, test := range []struct {
		opcode  string
		sources string // x, y registers of 32 bits, w of 64, v a variable; numbers
		want    string
	}{
		{"add.u32", "x 0", "x"},
		{"add.u32", "0 x", "x"},
		{"sub.s32", "x 0", "x"},
		{"sub.s32", "x 5", "add.s32 x -5"},
		{"add.s32", "3 x", "add.s32 x 3"},
		{"mul.lo.u32", "x 1", "x"},
		{"mul.lo.u32", "x 0", "0"},
		{"mul.lo.s32", "x 64", "shl.b32 x 6"},
		{"mul.lo.s64", "w 8", "shl.b64 w 3"},
		{"mul.lo.u32", "6 7", "42"},
		{"mul.lo.u32", "4294967295 2", "4294967294"},
		{"add.s32", "2147483647 1", "-2147483648"},
		{"div.u32", "x 16", "shr.u32 x 4"},
		{"div.s32", "x 16", "div.s32 x 16"},
		{"div.u32", "x 1", "x"},
		{"div.s32", "7 -2", "-3"},
		{"div.u32", "7 0", "div.u32 7 0"},
		{"rem.u32", "x 32", "and.b32 x 31"},
		{"rem.s32", "-7 4", "-3"},
		{"and.b32", "x -1", "x"},
		{"and.b32", "x 4294967295", "x"},
		{"and.b32", "x 0", "0"},
		{"or.b32", "x 0", "x"},
		{"xor.b64", "w 0", "w"},
		{"shl.b32", "x 0", "x"},
		{"shl.b32", "1 33", "0"},
		{"shr.s32", "-8 1", "-4"},
		{"min.s32", "-1 3", "-1"},
		{"min.u32", "4294967295 3", "3"},
		{"mad.lo.s32", "x 1 y", "add.s32 x y"},
		{"mad.lo.s32", "0 x y", "y"},
		{"mad.lo.s32", "x 8 0", "shl.b32 x 3"},
		{"mad.lo.s32", "8 x y", "mad.lo.s32 x 8 y"},
		{"mad.lo.s32", "2 3 x", "add.s32 x 6"},
		{"add.sat.s32", "x 0", "add.sat.s32 x 0"},
		{"add.f32", "f f", "add.f32 f f"},
		{"add.u32", "v 0", "v"},
	} {
		if got := letText(test.opcode, test.sources); got != test.want {
			t.Errorf("%s %s: %s, expected %s", test.opcode, test.sources, got, test.want)
		}
	}
}

// letText is the instruction that Let wrote for its result, or the result where
// it wrote none.
func letText(opcode, sources string) string {
	c := NewBuilder(Version{8, 0}, Target{90, 'a'}).Entry("k")
	named := map[string]Operand{
		"x": c.fresh(B32, true),
		"y": c.fresh(B32, true),
		"w": c.fresh(B64, true),
		"f": c.fresh(F32, true),
		"v": c.Reg(B32),
	}
	var list []Operand
	for _, s := range strings.Fields(sources) {
		o, known := named[s]
		if !known {
			var n int64
			fmt.Sscan(s, &n)
			o = Operand{Kind: KindInt, Bits: uint64(n)}
		}
		list = append(list, o)
	}
	r := c.Let(opcode, list...)
	name := func(o Operand) string {
		for n, x := range named {
			if x.Kind == o.Kind && x.Reg == o.Reg {
				return n
			}
		}
		return fmt.Sprint(o.Int())
	}
	if len(c.body) == 0 {
		return name(r)
	}
	in := c.body[len(c.body)-1].Instr
	text := in.Opcode.String()
	for _, o := range in.Operands[1:] {
		text += " " + name(o)
	}
	return text
}

// Values are made once where they are at hand, sums of sums are one sum, and
// what a variable goes into is computed again.
func TestLetShares(t *testing.T) {
	c := NewBuilder(Version{8, 0}, Target{90, 'a'}).Entry("k")
	x := c.Special(TidX)
	same := func(a, b Operand, want bool, what string) {
		t.Helper()
		if (a.Reg == b.Reg) != want {
			t.Errorf("%s: %v and %v", what, a.Reg, b.Reg)
		}
	}
	same(x, c.Special(TidX), true, "a special register")
	same(c.Special(Clock), c.Special(Clock), false, "the clock")
	same(
		c.Add(c.Add(x, Int(4)), Int(-4)),
		x, true, "x+4-4",
	)
	same(
		c.Add(c.Add(x, Int(4)), Int(8)),
		c.Add(x, Int(12)), true, "x+4+8 and x+12",
	)
	v := c.Var(U32, x)
	same(c.Add(v, Int(1)), c.Add(v, Int(1)), false, "a variable")
	var inner Operand
	c.If(c.Let("setp.eq.u32", x, Int(0)), func() {
		inner = c.Mul(x, Int(3))
		same(inner, c.Mul(x, Int(3)), true, "inside")
	})
	same(inner, c.Mul(x, Int(3)), false, "behind the block that made it")
	before := c.Mul(x, Int(5))
	c.Place(c.Label("l"))
	same(before, c.Mul(x, Int(5)), false, "behind a label")
	same(
		c.Let("ld.shared.u32", Mem(x, 0)),
		c.Let("ld.shared.u32", Mem(x, 0)), false, "memory",
	)
}

func TestBuilderErrors(t *testing.T) {
	for _, test := range []struct {
		want string
		emit func(c *Code)
	}{
		{"writes a register that Let made", func(c *Code) {
			x := c.Special(TidX)
			c.Emit("add.u32", x, x, Int(1))
		}},
		{"no operation", func(c *Code) { c.Emit("frob.u32") }},
		{"may not stand there", func(c *Code) { c.Let("add.lo.u32", Int(1), Int(2)) }},
		{"has no result", func(c *Code) { c.Let("bar.sync", Int(0)) }},
		{"has no result", func(c *Code) { c.Let("add.u32", Int(1)) }},
		{"has no parameter", func(c *Code) { c.LoadParam("x") }},
		{"no predicate", func(c *Code) { c.EmitIf(c.Special(TidX), "ret") }},
		{"no label", func(c *Code) { c.Bra("$nowhere") }},
		{": add.f32: operand %rd0 is a .b64 register", func(c *Code) {
			c.Let("add.f32", c.Special(Clock64), F32Imm(1))
		}},
	} {
		b := NewBuilder(Version{8, 0}, Target{90, 'a'})
		test.emit(b.Entry("k"))
		if _, err := b.Module(); err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, expected %q", err, test.want)
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := stripes(32).Module(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkText(b *testing.B) {
	m, err := stripes(512).Module()
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(m.Text())))
	b.ReportAllocs()
	for b.Loop() {
		m.Text()
	}
}

func BenchmarkParse(b *testing.B) {
	for _, blocks := range []int{32, 512, 8192} {
		m, err := stripes(blocks).Module()
		if err != nil {
			b.Fatal(err)
		}
		text := m.Text()
		b.Run(fmt.Sprintf("%dkB", len(text)/1024), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse("", text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	m, err := stripes(512).Module()
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(m.Text())))
	b.ReportAllocs()
	for b.Loop() {
		if err := m.Check(); err != nil {
			b.Fatal(err)
		}
	}
}

// hostile is texts that take long where something is done once for each pair of
// things.
var hostile = map[string]func(n int) string{
	"registers": func(n int) string { return entryText(repeat(n, "\t.reg .b32 x%d;\n")) },
	"sets":      func(n int) string { return entryText(repeat(n, "\t.reg .b32 %%r%d_<9>;\n")) },
	"blocks":    func(n int) string { return entryText(repeat(n, "\t{ .reg .pred p; L: @p bra L; } // %d\n")) },
	"variables": func(n int) string { return repeat(n, ".global .b32 x%d;\n") + repeat(n, ".entry k%d() { ret; }\n") },
	"matches":   func(n int) string { return entryText("\t.reg .b64 d;\n" + repeat(n, "\tmov.b64 d, %d;\n")) },
	"params":    func(n int) string { return repeat(n, ".entry k%d(.param .b8 a[4096]) { ret; }\n") },
}

func entryText(body string) string { return ".entry k() {\n" + body + "\tret;\n}\n" }

func repeat(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// Parse and Check take time in proportion to the text.
func BenchmarkHostile(b *testing.B) {
	for name, text := range hostile {
		for _, n := range []int{1000, 10000, 100000} {
			src := []byte(".version 8.0\n.target sm_90a\n" + text(n))
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.SetBytes(int64(len(src)))
				for b.Loop() {
					m, err := Parse("", src)
					if err == nil {
						err = m.Check()
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
