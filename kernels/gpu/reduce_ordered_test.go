package gpu

import (
	"slices"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
)

// testdata/ordered.txt has reductions whose results depend on the order of the
// elements, or on how often the start value is folded in. All plans agree with
// the reference or are refused, those that are offered are not refused.
func TestOrderedReductions(t *testing.T) {
	b := New(simulatedSession(t, "sm_80"))
	kerneltest.EachProgram(t, "testdata/ordered.txt", func(t *testing.T, p *symtile.Program, v *check.Verifier) {
		ran, all := 0, 0
		for tiling := range p.Space.Tilings() {
			if !slices.ContainsFunc(tiling, func(n int64) bool { return n > 2 }) ||
				tiling[len(tiling)-1] < p.Space.Dims[len(tiling)-1].Extent/16 {
				continue // much of little work
			}
			for _, warps := range []int64{1, 4} {
				all++
				if verify(t, b, v, p, kernels.Plan{Tiles: tiling}.With("warps", warps)) {
					ran++
				}
			}
		}
		t.Logf("%d of %d plans ran", ran, all)
		if ran < 8 {
			t.Errorf("only %d of %d plans ran", ran, all)
		}
		for plan := range b.Plans(t.Context(), p) {
			if _, err := compile(p, plan, b.session.Spec()); err != nil {
				t.Errorf("offered, but refused: %v", err)
			}
		}
	})
}
