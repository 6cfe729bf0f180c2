package gpu

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/index"
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

// targets are those that plans are tried for: with mma.sync and cp.async, and
// with wgmma and tensor copies.
var targets = []string{"sm_80", "sm_90a"}

// Every corpus fusion gives the reference's results, without a race, an access
// out of bounds or a read of what was not written, for random legal plans.
func TestCorpusOnSimulator(t *testing.T) {
	forCorpus(t, func(t *testing.T, p *symtile.Program) { checkPlans(t, p, 2) })
}

// checkPlans tries n random plans of a program for each target.
func checkPlans(t *testing.T, p *symtile.Program, n int) {
	t.Helper()
	v := kerneltest.Verifier(t, p, 1)
	tilings := slices.Collect(p.Space.Tilings())
	for _, target := range targets {
		b := New(simulatedSession(t, target))
		rng := rand.New(rand.NewPCG(7, uint64(len(tilings))))
		ran := 0
		for try := 0; ran < n && try < 40*n; try++ {
			if verify(t, b, v, p, randomPlan(rng, tilings)) {
				ran++
			}
		}
		if ran < n {
			t.Errorf("%s: only %d of %d plans ran", target, ran, 40*n)
		}
	}
}

// randomPlan is a tiling with launch choices, most of them legal.
func randomPlan(rng *rand.Rand, tilings []symtile.Tiling) kernels.Plan {
	plan := kernels.Plan{Tiles: tilings[rng.IntN(len(tilings))]}
	return plan.With("warps", 1<<rng.IntN(4)).With(
		"stages", 1+rng.Int64N(3),
	).With("epilogue", rng.Int64N(2)).
		With("producer", 1<<rng.IntN(3)/2).With("vector", 1<<rng.IntN(5))
}

// verify checks a plan, and reports whether it is one that can run and is not too
// long to simulate.
func verify(
	t *testing.T, b *Backend, v *check.Verifier,
	p *symtile.Program, plan kernels.Plan,
) bool {
	t.Helper()
	if q, err := p.At(plan.Tiles); err != nil ||
		q.Programs() > 200 || loopTurns(p, plan.Tiles) > 1500 {
		return false
	}
	k, err := b.Compile(context.Background(), p, plan)
	var no *kernels.Rejected
	if errors.As(err, &no) {
		t.Log(err)
		return false
	}
	if err != nil {
		t.Errorf("plan %s: %v", plan, err)
		return true
	}
	defer k.Close()
	if err := v.For(plan, b.Identity().TF32Allowed()).Verify(
		context.Background(), k,
	); err != nil {
		t.Errorf("plan %s: %v\n%s", plan, err, k.Source())
	}
	return true
}

// loopTurns is how many turns of loops all tile programs make.
func loopTurns(p *symtile.Program, t symtile.Tiling) int64 {
	n := int64(1)
	for k, d := range p.Space.Dims {
		n *= index.CeilDiv(max(1, d.Extent), t[k])
	}
	return n
}

// halfIdle reports whether every op leaves half of a block's warps without an element.
func halfIdle(t *testing.T, p *symtile.Program, c candidate, s device.Spec) bool {
	m, err := newEstimate(p, s)
	if err != nil {
		t.Fatal(err)
	}
	m.set(c.tiling)
	most := 0.0
	for n := range p.Ops {
		most = max(most, m.elements(n))
	}
	return c.knobs.warps > 1 && float64(c.knobs.warps/2*device.WarpThreads) >= most
}

// Plans that are offered can nearly all be compiled, and the default is one.
func TestOfferedPlansCompile(t *testing.T) {
	offeredPlans, refused := 0, map[string]int{}
	sheet, err := device.ParseSpec("H200")
	if err != nil {
		t.Fatal(err)
	}
	forCorpus(t, func(t *testing.T, p *symtile.Program) {
		if _, err := DefaultPlan(t.Context(), p, sheet); err != nil {
			t.Error(err)
		}
		all, err := feasibleCandidates(t.Context(), p, sheet, noTF32)
		if err != nil {
			t.Fatal(err)
		}
		if c := all[0]; halfIdle(t, p, c, sheet) {
			t.Errorf("the default %s has threads that no op has elements for", c.plan())
		}
		for n := range 8 {
			c := all[n*len(all)/8]
			offeredPlans++
			var no *kernels.Rejected
			if _, err := compile(p, c.plan(), sheet); errors.As(err, &no) {
				refused[p.Fusion.Name]++
			} else if err != nil {
				t.Errorf("%s: %v", c.plan(), err)
			}
		}
	})
	total := 0
	for _, n := range refused {
		total += n
	}
	t.Logf("%d of %d plans refused: %v", total, offeredPlans, refused)
	if total > offeredPlans/10 {
		t.Errorf("%d of %d plans refused", total, offeredPlans)
	}
}
