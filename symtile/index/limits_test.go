package index

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestSharedSubexpressions: expressions that as trees have 2³⁵ nodes take no
// time, and what does not fit is an error.
func TestSharedSubexpressions(t *testing.T) {
	steps := map[string]func(e Expr) Expr{
		"sum":     func(e Expr) Expr { return e.Add(e) },
		"product": func(e Expr) Expr { return e.Mul(e) },
		"powers":  func(e Expr) Expr { return e.AddConst(1).Mul(e) },
		"quotient": func(e Expr) Expr {
			return e.Scale(3).Add(e.Div(2)).Div(5)
		},
		"mod": func(e Expr) Expr {
			return e.Scale(5).Add(e.Mod(7)).Mod(1009)
		},
		"min": func(e Expr) Expr {
			return e.Scale(3).Min(e.Div(2).AddConst(5))
		},
		"max": func(e Expr) Expr {
			return e.Add(e.Div(3)).Max(e.Scale(2).AddConst(-5))
		},
		"symbolic": func(e Expr) Expr {
			return e.Scale(3).DivExpr(e.Max(e.r.Const(1))).Add(e)
		},
	}
	for name, step := range steps {
		start := time.Now()
		r := NewRing()
		x := r.Var(Variable{Name: "x", Hi: 1 << 20})
		e := x
		for range 35 {
			e = step(e)
		}
		_ = e.Range()
		_ = e.Subst(map[Expr]Expr{x: x.AddConst(1)})
		_ = e.Eval(map[Expr]int64{x: 3})
		text := e.String()
		if len(text) > maxText+8 {
			t.Errorf("%s: text of %d bytes", name, len(text))
		}
		if len(r.atoms) > 1000 || len(r.forms) > 2000 { // work, not time: linear in the depth
			t.Errorf(
				"%s: took %v, %d atoms, %d forms, text of %d bytes",
				name, time.Since(start), len(r.atoms),
				len(r.forms), len(text),
			)
		}
		t.Logf(
			"%s: %v, %d atoms, %d forms, %d bytes, %v",
			name, time.Since(start), len(r.atoms),
			len(r.forms), len(text), r.Err(),
		)
	}
}

func TestOverflow(t *testing.T) {
	big := int64(math.MaxInt64)
	for name, build := range map[string]func(x Expr) Expr{
		"scale":    func(x Expr) Expr { return x.Scale(big).Scale(2) },
		"add":      func(x Expr) Expr { return x.Scale(big).Add(x) },
		"constant": func(x Expr) Expr { return x.AddConst(big).AddConst(1) },
		"product": func(x Expr) Expr {
			return x.Scale(1 << 40).Mul(x.Scale(1 << 40))
		},
		"divisor": func(x Expr) Expr { return x.Div(math.MinInt64) },
		"zero":    func(x Expr) Expr { return x.Div(0) },
		"modulus": func(x Expr) Expr { return x.Mod(-3) },
		"degree": func(x Expr) Expr {
			return x.Mul(x).Mul(x).Mul(x).Mul(x).Mul(
				x.Mul(x).Mul(x),
			).Mul(x)
		},
		"maybe zero": func(x Expr) Expr { return x.DivExpr(x) },
	} {
		r := NewRing()
		x := r.Var(Variable{Name: "x", Hi: 100})
		build(x)
		if (r.Err() == nil) != (name == "degree") {
			t.Errorf("%s: error %v", name, r.Err())
		}
	}
}

// TestRangeSaturates: a product that does not fit is unbounded, not wrapped.
func TestRangeSaturates(t *testing.T) {
	r := NewRing()
	x := r.Var(Variable{Name: "x", Hi: math.MaxInt64 / 2})
	y := r.Var(Variable{Name: "y", Lo: -5, Hi: math.MaxInt64 / 2})
	if in := x.Mul(y).Range(); in.Lo != math.MinInt64 || in.Hi != math.MaxInt64 {
		t.Errorf("range %v", in)
	}
	if in := x.Add(x).Add(x).Range(); in.Lo != 0 ||
		in.Hi != math.MaxInt64 {
		t.Errorf("range %v", in)
	}
	if q := x.Mul(x).Div(math.MaxInt64); q.Range().Hi != math.MaxInt64 {
		t.Errorf("a quotient of the unbounded is %s in %v", q, q.Range())
	}
}

// TestReadersTogether: reading from many goroutines is safe (run with -race) and
// leaves no trace in what is built after.
func TestReadersTogether(t *testing.T) {
	r := NewRing()
	d0 := r.Var(Variable{Name: "d0", Hi: 1023})
	d1 := r.Var(Variable{Name: "d1", Hi: 511})
	e := d0.Scale(512).Add(d1).Mod(48).Div(5).Add(
		d0.Mod(7),
	).Max(d1.Div(3))
	atoms, forms := len(r.atoms), len(r.forms)
	want := e.String()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				code, err := Compile([]Expr{d0, d1}, []Expr{e})
				if err != nil || e.String() != want ||
					e.Range().Empty() ||
					len(e.Vars()) != 2 {
					t.Error("readers disagree")
				}
				_ = code
				_ = e.Eval(map[Expr]int64{d0: 5, d1: 6})
			}
		})
	}
	wg.Wait()
	if len(r.atoms) != atoms || len(r.forms) > forms+2 {
		t.Errorf("reading left %d atoms and %d forms", len(r.atoms)-atoms, len(r.forms)-forms)
	}
}

// TestReset: an emptied ring gives the same texts and allocates nothing.
func TestReset(t *testing.T) {
	r := NewRing()
	build := func() Expr {
		r.Reset()
		d0 := r.Var(Variable{Name: "d0", Hi: 1023})
		d1 := r.Var(Variable{Name: "d1", Hi: 511})
		l := d0.Scale(512).Add(d1)
		return l.Div(4096).Scale(4096).Add(
			l.Div(60).Mod(64).Scale(64),
		).Add(
			l.Mod(64).Min(d1),
		)
	}
	first := build().String()
	if n := testing.AllocsPerRun(100, func() { build() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if again := build().String(); again != first {
		t.Errorf("%s, then %s", first, again)
	}
}

// A long text, which is kept, is forgotten with the expression that it is the text of.
func TestResetForgetsTexts(t *testing.T) {
	r := NewRing()
	write := func(letter string) string {
		r.Reset()
		sum := r.Const(0)
		for k := range 64 {
			sum = sum.Add(r.Var(Variable{Name: fmt.Sprint(letter, k), Hi: 9}))
		}
		if s := sum.String(); s != sum.String() || len(s) < minKeptText {
			t.Errorf("%s, then %s", s, sum)
		}
		return sum.String()
	}
	if x, y := write("x"), write("y"); strings.ReplaceAll(x, "x", "y") != y {
		t.Errorf("%s, then %s", x, y)
	}
}

func TestParseErrors(t *testing.T) {
	r := NewRing()
	vars := map[string]Expr{"d0": r.Var(Variable{Name: "d0", Hi: 9})}
	deep := strings.Repeat("(", 100000)
	for _, text := range []string{
		"", "d0 +", "d0 d0", "(d0", "d0)", "d0 mod", "d9", "99999999999999999999", "min(d0)", "min(d0, d0", "d0 ^ 2",
		"-", "floordiv 2", deep, strings.Repeat("-", 100000), strings.Repeat("min(", 100000), "d0 + \x00", "ü",
	} {
		if e, err := r.Parse(text, vars); err == nil {
			t.Errorf("%.40q parses as %s", text, e)
		}
	}
	for _, text := range []string{
		"", "(d0)", "(d0) -> (d0)", "(d0, d0) -> (d0), domain: d0 in [0, 1]", "(d0) -> (d0), domain: d0 in [0, 1",
		"(d0) -> (d0), domain: d0 in [0, 1], d0 + in [0, 1]", "(d0) -> (d0, domain: d0 in [0, 1]", "(d0)[s0 -> (d0)",
		"(d0) -> (d0), domain: d0 in [0, 9], d0 in [1, 2] ||", "KNOWN EMPT",
	} {
		if m, err := NewRing().ParseMap(text); err == nil {
			t.Errorf("%q parses as %s", text, m)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"d0 * 8 + d1 floordiv 2", "(d0 mod 4) * 2", "-d0 + 9", "min(d0, d1 ceildiv 3)",
		"d0 * d1 mod (d1 + 1)", "max(d0 - 5, -(d1 floordiv 7))", "9223372036854775807 * d0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 200 {
			return
		}
		r := NewRing()
		vars := map[string]Expr{
			"d0": r.Var(Variable{Name: "d0", Hi: 15}),
			"d1": r.Var(Variable{Name: "d1", Lo: 1, Hi: 7}),
		}
		e, err := r.Parse(text, vars)
		if err != nil {
			return
		}
		back, err := r.Parse(e.String(), vars)
		if err != nil {
			t.Fatalf("%q prints as %q: %v", text, e, err)
		}
		for _, env := range []map[Expr]int64{
			{vars["d0"]: 0, vars["d1"]: 1},
			{vars["d0"]: 13, vars["d1"]: 5},
		} {
			if x, y := e.Eval(env),
				back.Eval(env); x != y && e.Range().Bounded() {
				t.Fatalf("%q prints as %q, %d against %d", text, e, x, y)
			}
		}
	})
}

func FuzzParseMap(f *testing.F) {
	for _, text := range []string{
		"(d0, d1)[s0]{rt0} -> (d0 + rt0, d1 mod 4 + s0), domain: d0 in [0, 9], d1 in [0, 19], s0 in [0, 3], rt0 in [0, 5], d0 + s0 in [0, 9]",
		"(d0) -> (d0), domain: d0 in [0, 9], d0 mod 3 in [0, 0] || d0 in [5, 6]", "KNOWN EMPTY", "unknown indexing", "() -> ()",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 300 {
			return
		}
		m, err := NewRing().ParseMap(text)
		if err != nil {
			return
		}
		s := m.Simplify()
		if _, err := NewRing().ParseMap(s.String()); err != nil &&
			m.ring() != nil && m.ring().Err() == nil {
			t.Fatalf("%q simplifies to %q: %v", text, s, err)
		}
	})
}
