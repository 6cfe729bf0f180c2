package tuner

import (
	"cmp"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

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

// beyond are proposals of some plans that go on with the neighbourhood of the fastest. The
// plans that are not offered are legal all the same.
func beyond(t *testing.T, ranked, offered []cost.Ranked) *proposals {
	t.Helper()
	p, err := newProposals(4, 0, offered[0], offered)
	if err != nil {
		t.Fatal(err)
	}
	p.beyond = newNeighbourhood(p.plans, func(plan kernels.Plan) (cost.Ranked, bool) {
		k := slices.IndexFunc(ranked, func(r cost.Ranked) bool { return r.Plan.String() == plan.String() })
		if k < 0 {
			return cost.Ranked{}, false
		}
		return ranked[k], true
	})
	return p
}

// run tries what is proposed, and returns the texts of plans in their order.
func (p *proposals) run(seconds map[string]float64) (tried []string) {
	plan := p.plans[0]
	for more := true; more; plan, more = p.next(len(tried)) {
		text := plan.Plan.String()
		tried = append(tried, text)
		trial := cache.Trial{Plan: text, Failure: cache.FailedError}
		if s := seconds[text]; !math.IsInf(s, 1) {
			trial = cache.Trial{Plan: text, Samples: []float64{s}}
		}
		p.observe(&trial)
	}
	return tried
}

// fastestOf is the fastest plan of some.
func fastestOf(tried []string, seconds map[string]float64) string {
	return slices.MinFunc(tried, func(a, b string) int { return cmp.Compare(seconds[a], seconds[b]) })
}

// TestNeighbourhood: a search ends with every plan next to the fastest one, those too that the
// price believes to be bad and that are not offered.
func TestNeighbourhood(t *testing.T) {
	ranked, seconds := landscape()
	var offered []cost.Ranked
	for _, r := range ranked { // streaming stores with 8 rows only
		if r.Plan.Knob("stream", 0) == 0 || r.Plan.Tiles[0] == 8 {
			offered = append(offered, r)
		}
	}
	tried := beyond(t, ranked, offered).run(seconds)
	best, err := kernels.ParsePlan(fastestOf(tried, seconds))
	if err != nil {
		t.Fatal(err)
	}
	m, n := best.Tiles[0], best.Tiles[1]
	if m*n != 4096 || best.Knob("stream", 0) != 1 || best.Knob("threads", 1) != 2 {
		t.Errorf("the best of %q is %s", tried, best)
	}
	for _, x := range [][2]int64{
		{m / 2, n}, {2 * m, n}, {m, n / 2}, {m, 2 * n}, // one size
		{m / 2, 2 * n}, {2 * m, n / 2}, {m / 2, n / 2}, {2 * m, 2 * n}, // both
	} {
		near := kernels.Plan{Tiles: symtile.Tiling{x[0], x[1]}, Knobs: best.Knobs}.String()
		if _, legal := seconds[near]; legal && !slices.Contains(tried, near) {
			t.Errorf("%s, next to %s, was not tried", near, best)
		}
	}
	for _, near := range []kernels.Plan{best.With("threads", 1), {Tiles: best.Tiles, Knobs: []kernels.Knob{{Name: "threads", Value: 2}}}} {
		if !slices.Contains(tried, near.String()) {
			t.Errorf("%s, next to %s, was not tried", near, best)
		}
	}
	if len(tried) > mostCandidates {
		t.Errorf("%d plans were tried", len(tried))
	}
}

// TestCheapestAreTried: two tunings whose times have nothing in common try the cheapest plans
// all the same.
func TestCheapestAreTried(t *testing.T) {
	ranked, seconds := landscape()
	for seed := range uint64(2) {
		noisy := map[string]float64{}
		rng := rand.New(rand.NewPCG(seed, 1))
		for _, r := range ranked {
			text := r.Plan.String()
			noisy[text] = seconds[text] * math.Exp(rng.NormFloat64())
		}
		tried := beyond(t, ranked, ranked).run(noisy)
		for _, r := range ranked[:cheapestTried] {
			if !slices.Contains(tried, r.Plan.String()) {
				t.Errorf("seed %d: %s was not tried", seed, r.Plan)
			}
		}
	}
}

// TestNeighbourhoodRestarts: where all plans next to the fastest are slower, the search begins
// again with a plan of another kind, and finds what is fast there.
func TestNeighbourhoodRestarts(t *testing.T) {
	seconds := map[string]float64{}
	var ranked []cost.Ranked
	for m := int64(8); m <= 2048; m *= 2 {
		for n := int64(8); n <= 2048; n *= 2 {
			x, y := math.Log2(float64(m)), math.Log2(float64(n))
			plan := kernels.Plan{Tiles: symtile.Tiling{m, n}}
			near := 1 + math.Abs(x-3) + math.Abs(y-3)        // 8 by 8
			far := 0.5 + 2*math.Abs(x-10) + 2*math.Abs(y-10) // 1024 by 1024
			seconds[plan.String()] = min(near, far)
			ranked = append(ranked, cost.Ranked{Plan: plan, Seconds: near})
		}
	}
	slices.SortStableFunc(ranked, func(a, b cost.Ranked) int { return cmp.Compare(a.Seconds, b.Seconds) })
	tried := beyond(t, ranked, ranked).run(seconds)
	if best := fastestOf(tried, seconds); best != "1024,1024" {
		t.Errorf("the best of %d is %s: %q", len(tried), best, tried)
	}
}

// TestBudgetBuysPlans: with more time more plans are tried, and a faster one is found; a number
// that somebody gave is kept.
func TestBudgetBuysPlans(t *testing.T) {
	truth := make([]float64, 90)
	for v := range truth {
		truth[v] = 1e-3 * (1 + 0.01*math.Abs(float64(v)-61))
	}
	for _, c := range []struct {
		options     Options
		least, most int
	}{
		{Options{Budget: 500 * time.Millisecond}, 2, 24},
		{Options{Budget: time.Minute}, 36, mostCandidates},
		{Options{Budget: time.Minute, Candidates: 16}, 16, 16},
	} {
		l := newLab(1, 0.01, truth...)
		got, err := l.tuner(filepath.Join(t.TempDir(), "t.db"), c.options).Tune(t.Context(), fusionOf(t))
		if err != nil {
			t.Fatal(err)
		}
		n := len(got.Record.Trials)
		t.Logf("%v: %s of %d plans", c.options.Budget, got.Record.Plan, n)
		if n < c.least || n > c.most {
			t.Errorf("%v, %d asked for: %d plans were tried", c.options.Budget, c.options.Candidates, n)
		}
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
