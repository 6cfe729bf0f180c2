package tuner

import (
	"cmp"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
)

// A landscape has plans with two tile sizes and two knobs, priced and timed by formulas
// that disagree: the price believes that streaming stores cost a lot, and that small
// tiles do not matter. A plan with 512 by 512 fails.
func landscape() (ranked []cost.Ranked, seconds map[string]float64) {
	seconds = map[string]float64{}
	for m := 8; m <= 512; m *= 2 {
		for n := 8; n <= 512; n *= 2 {
			for threads := 1; threads <= 2; threads++ {
				for stream := range 2 {
					p := kernels.Plan{Tiles: symtile.Tiling{int64(m), int64(n)}}
					p = p.With("threads", int64(threads))
					if stream == 1 {
						p = p.With("stream", 1)
					}
					walk := math.Abs(
						math.Log2(float64(m*n) / 4096),
					)
					price := (1 + 0.05*walk) * (1 + 2*float64(stream))
					truth := (1 + 0.2*walk) * (1 - 0.5*float64(stream)) / float64(threads)
					if m*n == 512*512 {
						truth = math.Inf(1)
					}
					seconds[p.String()] = truth
					ranked = append(
						ranked,
						cost.Ranked{Plan: p, Seconds: price},
					)
				}
			}
		}
	}
	slices.SortStableFunc(ranked, func(a, b cost.Ranked) int {
		return int(
			math.Copysign(1, a.Seconds-b.Seconds),
		)
	})
	return ranked, seconds
}

// propose runs the proposals of a landscape on its times, which are those of a recording.
func propose(t *testing.T, size int) (tried []string, best float64) {
	t.Helper()
	ranked, seconds := landscape()
	p, err := newProposals(size, 0, ranked[len(ranked)/2], ranked)
	if err != nil {
		t.Fatal(err)
	}
	best = math.Inf(1)
	plan := p.plans[0]
	for more := true; more; plan, more = p.next(len(tried)) {
		text := plan.Plan.String()
		tried = append(tried, text)
		trial := cache.Trial{Plan: text, Failure: cache.FailedError}
		if s := seconds[text]; !math.IsInf(s, 1) {
			trial = cache.Trial{Plan: text, Samples: []float64{s}}
		}
		best = min(best, seconds[text])
		p.observe(&trial)
	}
	return tried, best
}

// TestProposals searches a landscape whose price is wrong about a knob: the knob is tried
// all the same, and what is found is as good as the best.
func TestProposals(t *testing.T) {
	_, seconds := landscape()
	optimum := math.Inf(1)
	for _, s := range seconds {
		optimum = min(optimum, s)
	}
	tried, best := propose(t, 24)
	if len(tried) != 24 {
		t.Errorf("%d plans were tried, of 24", len(tried))
	}
	if sorted := slices.Sorted(slices.Values(tried)); len(slices.Compact(sorted)) != len(tried) {
		t.Errorf("a plan was tried twice: %q", tried)
	}
	if best > 1.02*optimum {
		t.Errorf("the best of %q takes %.3f of the optimum", tried, best/optimum)
	}
	again, _ := propose(t, 24)
	if !slices.Equal(tried, again) {
		t.Errorf("the same times, other plans:\n%q\n%q", tried, again)
	}
}

// TestProposalsResume gives the proposals what an interrupted race has tried: those plans
// come first, and no other is proposed twice.
func TestProposalsResume(t *testing.T) {
	tried, _ := propose(t, 12)
	ranked, seconds := landscape()
	p, err := newProposals(12, 0, ranked[len(ranked)/2], ranked)
	if err != nil {
		t.Fatal(err)
	}
	var earlier []cache.Trial
	for _, text := range append(tried[:7:7], "1,2,3 nonsense=4") {
		earlier = append(
			earlier,
			cache.Trial{Plan: text, Samples: []float64{seconds[text]}},
		)
	}
	known := p.known(earlier)
	if len(known) != 6 { // the default is a candidate already
		t.Fatalf("%d of 6 plans are known", len(known))
	}
	few, err := newProposals(2, 0, ranked[len(ranked)/2], ranked)
	if err != nil {
		t.Fatal(err)
	}
	fastest := slices.MinFunc(known, func(a, b cost.Ranked) int {
		return cmp.Compare(seconds[a.Plan.String()], seconds[b.Plan.String()])
	})
	if only := few.known(earlier); len(only) != 1 || only[0].Plan.String() != fastest.Plan.String() {
		t.Errorf("of few candidates %v goes on, want %s", only, fastest.Plan)
	}
	for k := range earlier {
		p.observe(&earlier[k])
	}
	for k := 7; k < 12; k++ {
		next, more := p.next(k)
		text := next.Plan.String()
		if !more || text != tried[k] {
			t.Fatalf("candidate %d is %s, without the interruption %s", k, text, tried[k])
		}
		p.observe(
			&cache.Trial{Plan: text, Samples: []float64{seconds[text]}},
		)
	}
	if _, more := p.next(12); more {
		t.Error("there are more candidates than there may be")
	}
}

// TestOlderWinner: the winner of an older revision of the code generator is tried, where
// the price would not have chosen it; one that is no plan any more is passed over.
func TestOlderWinner(t *testing.T) {
	truth := slices.Repeat([]float64{2e-3}, 40)
	truth[37] = 1e-3
	options := Options{Candidates: 4}
	for _, c := range []struct {
		name, plan, codegen string
		wins                bool
	}{
		{"older", "16 v=37", "0", true},
		{"no plan", "sixteen", "0", false},
		{"other sizes", "16,16 v=37", "0", false},
		{"nothing", "", "", false},
	} {
		l := newLab(1, 0.02, truth...)
		tn := l.tuner(filepath.Join(t.TempDir(), "t.db"), options)
		fusion := fusionOf(t)
		if c.plan != "" {
			r := cache.Record{Key: Key(fusion, kernels.IdentityOf(l)), Canonical: fusion.Canonical(), Plan: c.plan, Seconds: 1}
			r.Codegen = c.codegen
			if _, err := tn.Cache.Put(r); err != nil {
				t.Fatal(err)
			}
		}
		got, err := tn.Tune(t.Context(), fusion)
		if err != nil {
			t.Fatal(c.name, err)
		}
		tried := slices.ContainsFunc(got.Record.Trials, func(x cache.Trial) bool { return x.Plan == "16 v=37" })
		if tried != c.wins || c.wins && got.Record.Plan != "16 v=37" {
			t.Errorf("%s: %s won, of %d trials", c.name, got.Record.Plan, len(got.Record.Trials))
		}
	}
}
