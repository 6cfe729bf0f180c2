package partition

import (
	"math/rand/v2"
	"testing"
)

// TestSpans: the last position of merged spans is where going from span to span ends.
func TestSpans(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var all []span
		for range rng.IntN(8) {
			first := rng.IntN(40)
			all = append(all, span{first, first + rng.IntN(12)})
		}
		p := rng.IntN(45)
		want := p
		for again := true; again; {
			again = false
			for _, x := range all {
				if x.first <= want && x.last > want {
					want, again = x.last, true
				}
			}
		}
		of := append([]span(nil), all...)
		if got := lastFrom(merged(of), p); got != want {
			t.Fatalf("from %d through %v: %d, want %d", p, all, got, want)
		}
	}
}
