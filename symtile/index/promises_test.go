package index

import (
	"fmt"
	"math"
	"math/rand"
	"strings"
	"testing"
	"time"
)

// TestPromises has a case for each thing the simplifier is said to do, under
// that name.
func TestPromises(t *testing.T) {
	for name, holds := range map[string]func(t *testing.T, r *Ring){
		"correlated intervals (xla#12018)":          promiseCorrelated,
		"remainders merge or exclude each other":    promiseRemainders,
		"bounds go through linear sums":             promiseSums,
		"a sign does not matter modulo 2":           promiseParity,
		"negative divisors":                         promiseNegativeDivisors,
		"emptiness where intervals cannot tell":     promiseEmptiness,
		"implication where intervals cannot tell":   promiseImplication,
		"unknown when the work limit is reached":    promiseUnknown,
		"idempotent and deterministic":              promiseIdempotent,
		"35 nested adds of itself are linear":       promiseLinear,
		"an overflow of a composition is an error":  promiseOverflow,
		"a composition without points is empty, 0":  promiseEmptyComposition,
		"a sum of many terms is one scheduled step": promiseSchedule,
	} {
		t.Run(name, func(t *testing.T) { holds(t, NewRing()) })
	}
}

func (r *Ring) mustParse(t *testing.T, text string, vars ...Expr) Expr {
	t.Helper()
	named := map[string]Expr{}
	for _, e := range vars {
		v, _ := e.Variable()
		named[v.Name] = e
	}
	e, err := r.Parse(text, named)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func wantText(t *testing.T, got fmt.Stringer, want string) {
	t.Helper()
	if got.String() != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func promiseCorrelated(t *testing.T, r *Ring) {
	s0 := r.Var(Variable{Name: "s0", Hi: 255})
	s1 := r.Var(Variable{Name: "s1", Hi: 255})
	wantText(t, r.mustParse(t, "s0 + s1*32 - (s0 floordiv 32)*32", s0, s1).Range(), "[0, 8191]")
}

func promiseRemainders(t *testing.T, r *Ring) {
	for where, want := range map[string]string{
		"x mod 4 in [1, 1], x mod 6 in [2, 2]": "KNOWN EMPTY",
		"x mod 6 in [3, 3], x mod 7 in [5, 5]": "(x) -> (x), domain: x in [33, 75], x mod 42 in [33, 33]",
	} {
		m, err := r.ParseMap("(x) -> (x), domain: x in [0, 99], " + where)
		if err != nil {
			t.Fatal(err)
		}
		wantText(t, m.Simplify(), want)
	}
}

func promiseSums(t *testing.T, r *Ring) {
	m, err := r.ParseMap("(d0, d1) -> (d0, d1), domain: d0 in [0, 99], d1 in [0, 9], d0 * 3 + d1 in [60, 90]")
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, m.Simplify().Dims[0].Range(), "[17, 30]")
}

func promiseParity(t *testing.T, r *Ring) {
	d := r.Var(Variable{Name: "d", Lo: -9, Hi: 9})
	if a, b := r.mustParse(t, "(-d) mod 2", d),
		r.mustParse(t, "d mod 2", d); a != b {
		t.Errorf("%s and %s", a, b)
	}
}

func promiseNegativeDivisors(t *testing.T, r *Ring) {
	d := r.Var(Variable{Name: "d", Lo: -30, Hi: 30})
	for m := int64(-9); m < 0; m++ {
		e := d.Scale(2).AddConst(5).Div(m)
		for x := int64(-30); x <= 30; x++ {
			if got, want := e.Eval(map[Expr]int64{d: x}),
				FloorDiv(2*x+5, m); got != want {
				t.Fatalf("(2*%d + 5) floordiv %d is %d by %s, want %d", x, m, got, e, want)
			}
		}
	}
}

func constraintOf(t *testing.T, r *Ring, text string, hi int64, names ...string) Constraint {
	t.Helper()
	vars := map[string]Expr{}
	for _, name := range names {
		vars[name] = r.Var(Variable{Name: name, Lo: -hi, Hi: hi})
	}
	c, err := r.ParseConstraint(text, vars)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func promiseEmptiness(t *testing.T, r *Ring) {
	c := constraintOf(t, r, "x * 3 + y * 6 - z * 9 in [1, 2] && x - y in [0, 5]", 1000000, "x", "y", "z")
	wantText(t, c.Satisfiable(), No.String())
}

func promiseImplication(t *testing.T, r *Ring) {
	c := constraintOf(t, r, "x + y in [0, 10] && x - y in [0, 10]", 1000000, "x", "y")
	d := constraintOf(t, r, "x in [0, 10]", 1000000, "x")
	wantText(t, c.Implies(d), Yes.String())
}

func promiseUnknown(t *testing.T, r *Ring) {
	var names, terms []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("x%d", i))
		terms = append(
			terms,
			fmt.Sprintf("x%d * %d", i, 2*i+3),
			fmt.Sprintf("(x%d floordiv %d)", i, i+2),
		)
	}
	sum := strings.Join(terms, " + ")
	start := time.Now()
	c := constraintOf(t, r, sum+" in [5, 6] && ("+sum+") mod 7 in [2, 3]", 1000000, names...)
	wantText(t, c.Satisfiable(), Unknown.String())
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("took %v to give up", d)
	}
}

func promiseIdempotent(t *testing.T, r *Ring) {
	again := NewRing()
	for _, text := range []string{
		"(d0 * 8 + d1) floordiv 12 * 12 + (d0 * 8 + d1) mod 12 - d1", "((d0 * 3 - d1) floordiv 5 + d1 floordiv 2) mod 7",
		"min(d0, d1 * 3) + max(d0 - d1, 4)", "(d0 * 24 + d1) floordiv 6 mod 4 * 6 + d1 mod 6",
	} {
		build := func(r *Ring, text string) Expr {
			return r.mustParse(
				t, text, r.Var(Variable{Name: "d0", Hi: 99}),
				r.Var(Variable{Name: "d1", Hi: 23}),
			)
		}
		e := build(r, text)
		if back := build(r, e.String()); back != e {
			t.Errorf("%s reads back as %s", e, back)
		}
		wantText(t, build(again, text), e.String())
	}
}

func promiseLinear(t *testing.T, r *Ring) {
	x := r.Var(Variable{Name: "x", Hi: 9})
	e := x.Mod(7)
	for range 35 {
		e = e.Add(e)
	}
	if len(r.forms) > 100 || len(r.atoms) > 10 {
		t.Errorf("%d forms, %d atoms", len(r.forms), len(r.atoms))
	}
	wantText(t, e, "(x mod 7) * 34359738368")
}

func promiseOverflow(t *testing.T, _ *Ring) {
	c, err := NewComposition(MapSource{
		Dims:    []Variable{{Name: "d0", Hi: 99}},
		Results: []string{fmt.Sprintf("d0 * %d * 4", int64(math.MaxInt64/2))},
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.Solve(); c.Err() == nil {
		t.Errorf("no error, but %v", c.Texts())
	}
}

func promiseEmptyComposition(t *testing.T, _ *Ring) {
	c, err := NewComposition(
		MapSource{Dims: []Variable{{Name: "d0", Hi: 9}}, Results: []string{"d0 * 2 + 11"}},
		MapSource{
			Dims:    []Variable{{Name: "d0", Hi: 9}},
			Results: []string{"d0", "d0 floordiv 2"},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	if ops := c.Solve(); ops != 0 || !c.empty() ||
		strings.Join(c.Texts(), ", ") != "0, 0" {
		t.Errorf("%d operations, empty %v, %v", ops, c.empty(), c.Texts())
	}
}

func promiseSchedule(t *testing.T, _ *Ring) {
	var dims []Variable
	text := "5"
	for i := range 100 {
		dims = append(dims, Variable{Name: fmt.Sprintf("d%d", i), Hi: 9})
		text += fmt.Sprintf(" + (d%d * 3 - d%d) * 2", i, i/2)
	}
	c, err := NewComposition(MapSource{Dims: dims, Results: []string{text}})
	if err != nil {
		t.Fatal(err)
	}
	if _, diff := c.compare(rand.New(rand.NewSource(1))); diff != "" {
		t.Error(diff)
	}
	if n := len(c.stages[0].steps); n > 15 {
		t.Errorf("%d steps for one sum", n)
	}
}
