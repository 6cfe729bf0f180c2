package index

import "testing"

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
