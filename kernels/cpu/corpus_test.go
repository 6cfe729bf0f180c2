package cpu

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
	corpus "github.com/tilewright/tilewright/testdata/hlo"
)

// forCorpus calls check for every fusion of the corpus.
func forCorpus(t *testing.T, check func(t *testing.T, p *symtile.Program)) {
	all, err := corpus.Fusions()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		p, err := symtile.Analyze(t.Context(), f.Computation)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(f.Name, func(t *testing.T) { check(t, p) })
	}
}

// Every corpus fusion gives the reference's results for its default plan and
// for random legal plans.
func TestCorpusAgainstReference(t *testing.T) {
	forCorpus(t, func(t *testing.T, p *symtile.Program) {
		checkPlans(t, p, plansEach())
	})
}

// Default plans can be compiled with vectors of 64 bytes, which need not run here.
func TestCorpusCompilesWide(t *testing.T) {
	spec := New().spec()
	spec.wide = true
	forCorpus(t, func(t *testing.T, p *symtile.Program) {
		plan, err := New().Default(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		q, err := p.At(plan.Tiles)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := lowerAndCompile(q, plan, spec, nil); err != nil {
			t.Error(err)
		}
	})
}

// plansEach is how many random plans of a fusion are checked.
func plansEach() int {
	if testing.Short() {
		return 2
	}
	return 5
}

// checkPlans verifies the default plan and n random legal ones.
func checkPlans(t *testing.T, p *symtile.Program, n int) {
	t.Helper()
	checkPlansOf(t, New(), p, n)
}

func checkPlansOf(t *testing.T, b *Backend, p *symtile.Program, n int) {
	t.Helper()
	v := kerneltest.Verifier(t, p, 1)
	plan, err := b.Default(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	verify(t, b, v, p, plan)
	tilings := slices.Collect(walkable(p).Tilings())
	rng := rand.New(rand.NewPCG(7, uint64(len(tilings))))
	for range n {
		verify(
			t, b, v, p,
			withKnobs(rng, kernels.Plan{Tiles: cheapOf(rng, p, tilings)}),
		)
	}
}

// withKnobs sets about half of the knobs there are.
func withKnobs(rng *rand.Rand, plan kernels.Plan) kernels.Plan {
	for _, k := range knobs {
		if rng.IntN(2) == 0 {
			plan = plan.With(
				k.Name,
				k.Min+rng.Int64N(min(k.Max-k.Min, 4)+1),
			)
		}
	}
	return plan
}

// cheapOf picks a tiling that does not take a million steps.
func cheapOf(rng *rand.Rand, p *symtile.Program, tilings []symtile.Tiling) symtile.Tiling {
	for range 50 {
		t := tilings[rng.IntN(len(tilings))]
		steps := int64(1)
		for k, d := range p.Space.Dims {
			steps *= (d.Extent + t[k] - 1) / t[k]
		}
		if steps <= 1<<13 {
			return t
		}
	}
	return tilings[len(tilings)-1]
}

func verify(
	t *testing.T, b *Backend, v *check.Verifier,
	p *symtile.Program, plan kernels.Plan,
) {
	t.Helper()
	k, err := b.Compile(context.Background(), p, plan)
	var no *kernels.Rejected
	if errors.As(err, &no) {
		t.Errorf("legal plan rejected: %v", err)
		return
	}
	if err != nil {
		t.Errorf("plan %s: %v", plan, err)
		return
	}
	defer k.Close()
	if err := v.Verify(context.Background(), k); err != nil {
		t.Errorf("plan %s: %v\n%s", plan, err, k.Source())
	}
}
