package cpu

import (
	"math"
	"slices"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
)

// What moves into something that keeps all arrays is what the walk of the loops
// computes for boundless memory.
func TestTrafficOfWhatFits(t *testing.T) {
	forCorpus(t, func(t *testing.T, p *symtile.Program) {
		x, err := newPricer(p, New().Identity(), unknownPrior())
		if err != nil {
			t.Fatal(err)
		}
		for tiling := range p.Space.Sample(100) {
			c := x.count(kernels.Plan{Tiles: tiling})
			tr := &c.traffic
			tr.order(c, 1)
			tr.through(c, math.Inf(1), 1, false, true)
			fast := slices.Clone(tr.work)
			copy(tr.work, tr.accesses)
			tr.run(math.Inf(1))
			for k := range fast {
				if got, want := fast[k].moved, tr.work[k].moved; math.Abs(got-want) > 1e-6*want {
					t.Fatalf("%v: access %d moves %v, want %v", tiling, k, got, want)
				}
			}
		}
	})
}
