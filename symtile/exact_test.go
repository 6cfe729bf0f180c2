package symtile

import (
	"fmt"
	"math/rand"
	"testing"
)

// TestExactAgrees compares the elimination with enumeration on random systems
// over small boxes: it may not know, but it may not be wrong.
func TestExactAgrees(t *testing.T) {
	n := 4000
	if testing.Short() {
		n = 400
	}
	r := NewRing()
	count := map[string]int{}
	for seed := range n {
		r.Reset()
		g := newGenerator(int64(seed), r, 3)
		g.noSymbol = true
		c := g.constraint()
		if r.Err() != nil || c.False() {
			continue
		}
		want := c.enumerate(1 << 20)
		cases := fullEffort.cases
		got := c.split(nil, &cases)
		if len(c) == 0 {
			got = Yes
		}
		count[fmt.Sprintf("%s is %s", want, got)]++
		if got != Unknown && got != want {
			t.Fatalf("seed %d: %s over %v..%v: got %v, want %v", seed, c, g.lo, g.hi, got, want)
		}
		if s := c.Satisfiable(); s != want {
			t.Fatalf("seed %d: %s over %v..%v: Satisfiable says %v, want %v", seed, c, g.lo, g.hi, s, want)
		}
	}
	t.Log(count)
}

// constraint is one to three clauses over sums and remainders.
func (g *generator) constraint() (c Constraint) {
	for range 1 + g.rnd.Intn(3) {
		x := Clause{}
		for range 1 + g.rnd.Intn(2) {
			e := g.dividend().e
			lo := e.Range().Lo + int64(g.rnd.Intn(20)) - 4
			x = append(x, Bound{e, Interval{lo, lo + int64(g.rnd.Intn(6))}})
		}
		c = append(c, x)
	}
	return c
}

// TestConstraintSimplify: simplifying keeps what holds at every point, and
// simplifying again changes nothing.
func TestConstraintSimplify(t *testing.T) {
	n := 4000
	if testing.Short() {
		n = 400
	}
	r := NewRing()
	for seed := range n {
		r.Reset()
		g := newGenerator(int64(seed), r, 3)
		c := g.constraint()
		if r.Err() != nil {
			continue
		}
		d := c.Simplify()
		if again := d.Simplify(); again.String() != d.String() {
			t.Fatalf("seed %d: %s\nthen %s\nthen %s", seed, c, d, again)
		}
		before, _ := CompileConstraint(g.vars, c)
		after, err := CompileConstraint(g.vars, d)
		if err != nil {
			t.Fatal(err)
		}
		scratch := make([]int64, before.ScratchLen()+after.ScratchLen())
		points(g.lo, g.hi, func(v []int64) bool {
			if before.Holds(v, scratch) != after.Holds(v, scratch) {
				t.Fatalf("seed %d: %s\nbecomes %s, which differs at %v", seed, c, d, v)
			}
			return true
		})
	}
}

// TestMapSimplify: simplifying keeps the relation, is idempotent, and narrows
// to nothing only what is empty.
func TestMapSimplify(t *testing.T) {
	n := 3000
	if testing.Short() {
		n = 300
	}
	r := NewRing()
	for seed := range n {
		r.Reset()
		g := newGenerator(int64(seed), r, 3)
		m := g.mapping()
		if r.Err() != nil {
			continue
		}
		s := m.Simplify()
		same, diff, err := m.Equal(s)
		if err != nil || !same {
			t.Fatalf("seed %d: %s\nbecomes %s\n%s %v", seed, m, s, diff, err)
		}
		if again := s.Simplify(); again.String() != s.String() {
			t.Fatalf("seed %d: %s\nthen %s\nthen %s", seed, m, s, again)
		}
		back, err := NewRing().ParseMap(s.String())
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if same, diff, err := s.Equal(back); err != nil || !same {
			t.Fatalf("seed %d: %s\nreads %s\n%s %v", seed, s, back, diff, err)
		}
	}
}

// mapping is a map over the generator's variables, the last one a range.
func (g *generator) mapping() Map {
	m := Map{Dims: g.vars[:2], Ranges: g.vars[2:]}
	for range 1 + g.rnd.Intn(2) {
		m.Results = append(m.Results, g.expr(1+g.rnd.Intn(3)).e)
	}
	if g.rnd.Intn(4) > 0 {
		m.Where = g.constraint()
	}
	return m
}

// TestCompose: a composition relates what applying one map after the other does.
func TestCompose(t *testing.T) {
	for seed := range 500 {
		r := NewRing()
		rnd := rand.New(rand.NewSource(int64(seed)))
		g := newGenerator(int64(seed), r, 3)
		g.noSymbol = true
		first, second := g.mapping(), g.mapping()
		for len(first.Results) < len(second.Dims) {
			first.Results = append(first.Results, g.expr(rnd.Intn(2)).e)
		}
		if r.Err() != nil {
			continue
		}
		got := Compose(first, second)
		want := naiveCompose(t, first, second)
		for _, m := range []Map{got, got.Simplify()} {
			rel, err := m.relation()
			if err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(rel) != fmt.Sprint(want) {
				t.Fatalf("seed %d: %s\nthen %s\nis %s", seed, first, second, m)
			}
		}
	}
}

// naiveCompose applies second to the points that first yields.
func naiveCompose(t *testing.T, first, second Map) map[string]map[string]bool {
	a, err1 := first.relation()
	b, err2 := second.relation()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	out := map[string]map[string]bool{}
	for key, set := range a {
		for mid := range set {
			for res := range b[mid] {
				if out[key] == nil {
					out[key] = map[string]bool{}
				}
				out[key][res] = true
			}
		}
	}
	return out
}
