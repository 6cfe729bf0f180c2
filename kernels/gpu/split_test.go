package gpu

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
)

// splits are the powers of two that divide the iterations of all loops of a
// tiling; none where there is no loop.
func splits(p *symtile.Program, t symtile.Tiling) (all []int64) {
	q, err := p.At(t)
	if err != nil {
		return nil
	}
	for n := int64(2); n <= 64; n *= 2 {
		if _, err := phasesOf(q, knobs{splitk: int(n)}); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// Plans whose tiles are shared by several blocks give the reference's results.
func TestSplitOnSimulator(t *testing.T) {
	for _, target := range []string{"sm_80", "sm_90a"} {
		device := newSimulator(target)
		s, err := NewSession(t.Context(), func(context.Context) (Driver, error) { return device, nil })
		if err != nil {
			t.Fatal(err)
		}
		b, rng, ran := New(s), rand.New(rand.NewPCG(9, 9)), 0
		check := func(t *testing.T, p *symtile.Program, v *kernels.Verifier) {
			tilings := slices.DeleteFunc(slices.Collect(p.Space.Tilings()), func(x symtile.Tiling) bool { return tiles(p, x) > 512 })
			for done, try := 0, 0; done < 2 && try < 20 && len(tilings) > 0; try++ {
				plan := kernels.Plan{Tiles: tilings[rng.IntN(len(tilings))]}.With("warps", 1<<rng.IntN(4)).With("stages", 1+rng.Int64N(3)).With("epilogue", rng.Int64N(2))
				if legal := splits(p, plan.Tiles); len(legal) > 0 && verify(t, b, v, p, plan.With("splitk", legal[rng.IntN(len(legal))])) {
					done++
					ran++
				}
			}
		}
		forPrograms(t, "testdata/ordered.txt", check)
		forPrograms(t, "testdata/split.txt", check)
		forCorpus(t, func(t *testing.T, p *symtile.Program) {
			v, err := kernels.NewVerifier(p.Fusion, 1)
			if err != nil {
				t.Fatal(err)
			}
			check(t, p, v)
		})
		t.Logf("%s: %d plans", target, ran)
		if ran < 60 {
			t.Errorf("%s: only %d plans ran", target, ran)
		}
	}
}

// tiles of all dimensions.
func tiles(p *symtile.Program, t symtile.Tiling) int64 {
	n := int64(1)
	for k, d := range p.Space.Dims {
		n *= ceilDiv(max(1, d.Extent), t[k])
	}
	return n
}
