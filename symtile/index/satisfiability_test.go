package index

import (
	"fmt"
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
