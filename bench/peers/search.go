package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/tuner"
)

// Parameters of an exhaustive search.
const (
	// The largest number of plans of a search; of more, a sample at equal
	// distances.
	maxSearchedPlans = 2000
	// The fastest plans of a search, which are measured again in rounds.
	finalists = 20
	// The time of measuring one plan.
	minPlanTime = 4 * time.Millisecond
	// A run that takes this many times as long as the tuned plan's is stopped
	// and counts as that.
	maxPlanSlowdown = 20
	// The least time after which a run is stopped.
	minPlanTimeout = 100 * time.Millisecond
)

// searchCases are fusions whose runs take at timeout 2 ms, so that thousands of
// plans can be timed.
func searchCases() []testCase {
	return slices.Concat(
		shapes("softmax", "512×1024"),
		shapes("layernorm", "512×1024"),
		shapes("gemm_bias_gelu", "256×256×256"),
		shapes("transpose", "1024×768"),
		shapes("column_sum", "1024×1024"),
		shapes("sgemm", "256×256×256"),
	)
}

// search times every plan of a case, and then the fastest of them in rounds
// with the default plan and with the plan that tuning finds in its normal time.
func (s *session) search(ctx context.Context, c testCase) (*caseResult, error) {
	e := &caseRun{
		session: s,
		result:  s.newResult(c),
	}
	defer e.close()
	if err := e.parse(); err != nil {
		return nil, fmt.Errorf("%s: %w", c, err)
	}
	var err error
	if e.program, err = symtile.Analyze(ctx, e.fusion); err != nil {
		return nil, fmt.Errorf("%s: %w", c, err)
	}
	if err := e.tuneNormally(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", c, err)
	}
	plans := slices.Collect(s.backend.Plans(ctx, e.program))
	e.result.legal = int64(len(plans))
	timed, err := e.timePlans(ctx, "all", evenlySpread(plans, s.maxPlans))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c, err)
	}
	if err := e.addFinalists(timed); err != nil {
		return nil, fmt.Errorf("%s: %w", c, err)
	}
	err = measureRounds(ctx, e.competitors, s.threads, s.rounds, s.limit, s.rng)
	e.collect()
	return e.result, err
}

// tuneNormally tunes the case as the tune command does by default.
func (e *caseRun) tuneNormally(ctx context.Context) error {
	db := cache.Open(filepath.Join(
		e.session.tmp,
		fmt.Sprintf("search%d.db", e.session.threads),
	))
	t := &tuner.Tuner{
		Backend: e.session.backend,
		Cache:   db,
		Options: tuner.Options{Seed: e.session.seed, Budget: e.session.normalBudget},
	}
	begin := time.Now()
	r, err := t.Tune(ctx, e.fusion)
	if err != nil {
		return err
	}
	e.result.spent = time.Since(begin).Seconds()
	e.result.plans = []namedText{
		{"tuned", r.Record.Plan},
		{"default", r.Record.Default},
	}
	return nil
}

// evenlySpread selects n plans at equal distances.
func evenlySpread(plans []kernels.Plan, n int) []kernels.Plan {
	if len(plans) <= n {
		return plans
	}
	kept := make([]kernels.Plan, n)
	for k := range kept {
		kept[k] = plans[k*len(plans)/n]
	}
	return kept
}

// timeSample times plans that are spread over all that are offered. Their
// distribution tells how much depends on the choice of a plan.
func (e *caseRun) timeSample(ctx context.Context) {
	plans := slices.Collect(e.session.backend.Plans(ctx, e.program))
	sample := evenlySpread(plans, e.session.samplePlans)
	_, err := e.timePlans(ctx, "sample", sample)
	if err != nil && ctx.Err() == nil {
		e.note("landscape", err)
	}
}

// A timedPlan is a plan with the shortest of its times.
type timedPlan struct {
	plan    kernels.Plan
	seconds float64
}

// timePlans verifies and times plans and notes the times as the landscape of
// the case. The order is shuffled, so that a drift of the machine is no trend
// among plans. The first plan of the case sets the limit for slow plans. A plan
// that the backend rejects is left out; a plan that is wrong is an error.
func (e *caseRun) timePlans(
	ctx context.Context, name string, plans []kernels.Plan,
) ([]timedPlan, error) {
	verifier, err := check.NewVerifier(ctx, e.fusion, e.session.seed)
	if err != nil {
		return nil, err
	}
	bench, err := check.NewBench(ctx, e.fusion, e.session.seed, e.span())
	if err != nil {
		return nil, err
	}
	first, err := kernels.ParsePlan(e.result.plans[0].text)
	if err != nil {
		return nil, err
	}
	seconds, err := e.timePlan(ctx, verifier, bench, first, time.Minute)
	if err != nil {
		return nil, err
	}
	timeout := max(minPlanTimeout, time.Duration(maxPlanSlowdown*seconds*float64(time.Second)))
	all := make([]timedPlan, 0, len(plans))
	e.result.landscape.name = name
	for _, k := range e.session.rng.Perm(len(plans)) {
		seconds, err := e.timePlan(ctx, verifier, bench, plans[k], timeout)
		var rejected *kernels.Rejected
		if errors.As(err, &rejected) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("plan %s: %w", plans[k], err)
		}
		all = append(all, timedPlan{plans[k], seconds})
		e.result.landscape.seconds = append(e.result.landscape.seconds, seconds)
	}
	slices.SortStableFunc(
		all,
		func(x, y timedPlan) int { return cmp.Compare(x.seconds, y.seconds) },
	)
	runtime.GC()
	return all, nil
}

// timePlan verifies a plan and returns the shortest time of a few runs; a plan
// that reaches the timeout counts as that.
func (e *caseRun) timePlan(
	ctx context.Context,
	v *check.Verifier,
	b *check.Bench,
	plan kernels.Plan,
	timeout time.Duration,
) (float64, error) {
	k, err := e.session.backend.Compile(ctx, e.program, plan)
	if err != nil {
		return 0, err
	}
	defer k.Close()
	k = check.Bounded(k, timeout)
	err = v.Verify(ctx, k)
	best := math.Inf(1)
	for begin := time.Now(); err == nil &&
		(math.IsInf(best, 1) || time.Since(begin) < minPlanTime); {
		var s kernels.Timing
		if s, err = b.Sample(ctx, k, 1); err == nil {
			best = min(best, s.Seconds)
		}
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return timeout.Seconds(), nil
	}
	return min(best, timeout.Seconds()), err
}

// addFinalists makes competitors of the tuned plan, the default plan and the
// fastest plans of a landscape, which are named by their text.
func (e *caseRun) addFinalists(timed []timedPlan) error {
	bench, err := check.NewBench(context.Background(), e.fusion, e.session.seed, e.span())
	if err != nil {
		return err
	}
	entered := map[string]bool{}
	for _, p := range e.result.plans {
		if !entered[p.text] {
			entered[p.text] = true
			e.addPlan(p.name, e.program, p.text, bench)
		}
	}
	for _, p := range timed[:min(len(timed), finalists)] {
		if text := p.plan.String(); !entered[text] {
			entered[text] = true
			e.addPlan(text, e.program, text, bench)
		}
	}
	return nil
}

// finalist is the name and the plan of the competitor with the smallest median
// ratio to the tuned plan.
func (c *caseResult) finalist() (name, plan string) {
	smallest := math.Inf(1)
	for _, t := range c.times {
		p := check.Paired(t.seconds, c.samplesOf("tuned"), confidence)
		if p.Median < smallest {
			smallest, name = p.Median, t.name
		}
	}
	if plan = find(c.plans, name); plan == "" {
		plan = name
	}
	return name, plan
}
