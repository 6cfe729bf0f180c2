package index

import "testing"

// The hard example of index simplification: it is (d0, d1).
var hardDraft = MapSource{
	Dims:    []Variable{{Name: "d0", Hi: 7}, {Name: "d1", Hi: 8}},
	Results: []string{"-((d0 * -11 - d1 + 109) floordiv 11) + 9", "d0 * 11 + d1 + ((d0 * -11 - d1 + 109) floordiv 11) * 11 - 99"},
}

// A thread map into [32, 48], then its row-major index split again.
var threadDrafts = []MapSource{{
	Dims:    []Variable{{Name: "d0", Hi: 127}, {Name: "d1", Hi: 11}},
	Results: []string{"(d1 * 128 + d0) floordiv 48", "(d1 * 128 + d0) mod 48"},
	Where:   []BoundSource{{"d1 * 128 + d0", Interval{0, 1535}}},
}, {
	Dims:    []Variable{{Name: "d0", Hi: 31}, {Name: "d1", Hi: 47}},
	Results: []string{"(d0 * 48 + d1) floordiv 64", "(d0 * 48 + d1) mod 64"},
}}

// A four-level chain as GPU code generators make it; it is d0 * 512 + d1 * 4.
var emitterDraft = MapSource{
	Dims: []Variable{{Name: "d0", Hi: 3071}, {Name: "d1", Hi: 127}},
	Results: []string{"(d0 floordiv 1536) * 786432 + (((d0 * 2 + d1 floordiv 64) floordiv 3) mod 1024) * 768 + " +
		"((d0 * 2 + d1 floordiv 64) mod 3) * 256 + (d1 mod 64) * 4"},
}

func benchmarkChain(b *testing.B, drafts ...MapSource) {
	c, err := NewComposition(drafts...)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		c.Solve()
	}
}

func BenchmarkChainHard(b *testing.B)    { benchmarkChain(b, hardDraft) }
func BenchmarkChainThreads(b *testing.B) { benchmarkChain(b, threadDrafts...) }
func BenchmarkChainEmitter(b *testing.B) { benchmarkChain(b, emitterDraft) }

// BenchmarkConstruct builds a linearised index and its two halves from an empty ring.
func BenchmarkConstruct(b *testing.B) {
	r := NewRing()
	b.ReportAllocs()
	for b.Loop() {
		r.Reset()
		d0 := r.Var(Variable{Name: "d0", Hi: 1023})
		d1 := r.Var(Variable{Name: "d1", Hi: 511})
		l := d0.Scale(512).Add(d1)
		_ = l.Div(4096).Scale(4096).Add(
			l.Div(64).Mod(64).Scale(64),
		).Add(l.Mod(64))
	}
}

func benchmarkMaps(b *testing.B) (first, second Map) {
	r := NewRing()
	first, err1 := r.ParseMap("(d0, d1) -> (d0 floordiv 8, (d0 mod 8) * 16 + d1), domain: d0 in [0, 255], d1 in [0, 15]")
	second, err2 := r.ParseMap("(d0, d1)[s0] -> (d0 * 128 + d1, s0), domain: d0 in [0, 31], d1 in [0, 127], s0 in [0, 3]")
	if err1 != nil || err2 != nil {
		b.Fatal(err1, err2)
	}
	return first, second
}

func BenchmarkCompose(b *testing.B) {
	first, second := benchmarkMaps(b)
	b.ReportAllocs()
	for b.Loop() {
		Compose(first, second)
	}
}

func BenchmarkMapSimplify(b *testing.B) {
	first, second := benchmarkMaps(b)
	m := Compose(first, second)
	b.ReportAllocs()
	for b.Loop() {
		m.Simplify()
	}
}

func BenchmarkRange(b *testing.B) {
	r := NewRing()
	s0 := r.Var(Variable{Name: "s0", Hi: 1023})
	s1 := r.Var(Variable{Name: "s1", Hi: 255})
	x := s0.Add(s1.Scale(32)).Sub(
		s0.Div(32).Scale(32),
	).lin()
	for b.Loop() {
		r.sharpRange(x)
	}
}

// BenchmarkEval evaluates a simplified thread map: 9 operations.
func BenchmarkEval(b *testing.B) {
	r := NewRing()
	m, err := r.ParseMap("(d0, d1)[s0] -> (d0 * 4 + d1 floordiv 32, (d1 floordiv 4) mod 8, (d1 mod 4) * 4 + s0), " +
		"domain: d0 in [0, 255], d1 in [0, 127], s0 in [0, 3]")
	if err != nil {
		b.Fatal(err)
	}
	code, err := m.Compile()
	if err != nil {
		b.Fatal(err)
	}
	out := make([]int64, 3)
	scratch := make([]int64, code.ScratchLen())
	v := []int64{17, 93, 2}
	b.ReportAllocs()
	for b.Loop() {
		code.Eval(v, out, scratch)
	}
}

// BenchmarkCheck decides one tiling against the constraints of a reshape.
func BenchmarkCheck(b *testing.B) {
	r := NewRing()
	vars := map[string]Expr{}
	var order []Expr
	for _, name := range []string{"s0", "s1"} {
		vars[name] = r.Var(Variable{Name: name, Lo: 1, Hi: 48, Role: RoleTileSize})
		order = append(order, vars[name])
	}
	c, err := r.ParseConstraint("(6 mod s0 in [0, 0] || s0 mod 6 in [0, 0]) && (8 mod s1 in [0, 0] || s1 mod 8 in [0, 0])", vars)
	if err != nil {
		b.Fatal(err)
	}
	check, err := CompileConstraint(order, c)
	if err != nil {
		b.Fatal(err)
	}
	scratch := make([]int64, check.ScratchLen())
	b.ReportAllocs()
	for b.Loop() {
		check.Holds([]int64{12, 16}, scratch)
	}
}

func BenchmarkString(b *testing.B) {
	first, second := benchmarkMaps(b)
	e := Compose(first, second).Simplify().Results[0]
	for b.Loop() {
		_ = e.String()
	}
}
