package index

import (
	"fmt"
	"math/rand"
	"testing"
)

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
