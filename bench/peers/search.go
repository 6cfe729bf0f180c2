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
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/tuner"
)

// What an exhaustive search goes by.
const (
	mostSearched = 2000                   // plans; of more a spread sample
	finalists    = 20                     // are measured again, in rounds
	planSpan     = 4 * time.Millisecond   // of timing a plan
	slowest      = 20                     // times the tuned plan: a run that takes longer is stopped and counts as that
	leastSlow    = 100 * time.Millisecond // but it may always take this long
)

// searchCases are fusions of which a run takes at most 2 ms.
func searchCases() []testCase {
	return []testCase{
		{"softmax", []int64{512, 1024}}, {"layernorm", []int64{512, 1024}}, {"gemm_bias_gelu", []int64{256, 256, 256}},
		{"transpose", []int64{1024, 768}}, {"column_sum", []int64{1024, 1024}}, {"sgemm", []int64{256, 256, 256}},
	}
}

// search measures every plan of a case, the best of them again side by side
// with the default and with what tuning finds in its normal time.
func (s *session) search(ctx context.Context, c testCase) (*caseResult, error) {
	e := &entry{s: s, res: &caseResult{testCase: c, threads: s.threads, load: load()}}
	defer e.close()
	if err := e.parse(); err != nil {
		return nil, fmt.Errorf("%s: %w", c, err)
	}
	var err error
	if e.program, err = symtile.Analyze(e.fusion); err != nil {
		return nil, fmt.Errorf("%s: %w", c, err)
	}
	if err := e.find(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", c, err)
	}
	plans := slices.Collect(s.backend.Plans(e.program))
	e.res.legal = int64(len(plans))
	timed, err := e.survey(ctx, "all", thinned(plans, s.most))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c, err)
	}
	if err := e.enterFinalists(timed); err != nil {
		return nil, fmt.Errorf("%s: %w", c, err)
	}
	err = contest(ctx, e.all, s.rounds, s.limit, s.rng)
	e.collect()
	return e.res, err
}

// find tunes as the tune command does when it is not told otherwise.
func (e *entry) find(ctx context.Context) error {
	db := cache.Open(filepath.Join(e.s.tmp, fmt.Sprintf("search%d.db", e.s.threads)))
	t := &tuner.Tuner{Backend: e.s.backend, Cache: db, Options: tuner.Options{Seed: e.s.seed, Budget: e.s.normal}}
	begin := time.Now()
	r, err := t.Tune(ctx, e.fusion)
	if err != nil {
		return err
	}
	e.res.spent = time.Since(begin).Seconds()
	e.res.plans = []fact{{"tuned", r.Record.Plan}, {"default", r.Record.Default}}
	return nil
}

// thinned keeps n plans, evenly.
func thinned(plans []kernels.Plan, n int) []kernels.Plan {
	if len(plans) <= n {
		return plans
	}
	kept := make([]kernels.Plan, n)
	for k := range kept {
		kept[k] = plans[k*len(plans)/n]
	}
	return kept
}

// sample times plans spread over all there are, which says what choosing one is
// worth.
func (e *entry) sample(ctx context.Context) {
	plans := slices.Collect(e.s.backend.Plans(e.program))
	if _, err := e.survey(ctx, "sample", thinned(plans, e.s.options.sample)); err != nil && ctx.Err() == nil {
		e.note("landscape", err)
	}
}

// A timedPlan is a plan of a survey.
type timedPlan struct {
	plan    kernels.Plan
	seconds float64
}

// survey checks and times plans, in shuffled order, so that what the machine
// does meanwhile is no trend, and notes their times. The first plan of the case
// says what is slow. Plans that cannot be run are left out; one that is wrong is
// an error.
func (e *entry) survey(ctx context.Context, name string, plans []kernels.Plan) ([]timedPlan, error) {
	verifier, err := kernels.NewVerifier(e.fusion, e.s.seed)
	if err != nil {
		return nil, err
	}
	bench, err := kernels.NewBench(e.fusion, e.s.seed, e.span())
	if err != nil {
		return nil, err
	}
	first, err := kernels.ParsePlan(e.res.plans[0].text)
	if err != nil {
		return nil, err
	}
	least, err := e.time(ctx, verifier, bench, first, time.Minute)
	if err != nil {
		return nil, err
	}
	most := max(leastSlow, time.Duration(slowest*least*float64(time.Second)))
	all := make([]timedPlan, 0, len(plans))
	e.res.landscape.name = name
	for _, k := range e.s.rng.Perm(len(plans)) {
		seconds, err := e.time(ctx, verifier, bench, plans[k], most)
		var rejected *kernels.Rejected
		if errors.As(err, &rejected) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("plan %s: %w", plans[k], err)
		}
		all = append(all, timedPlan{plans[k], seconds})
		e.res.landscape.seconds = append(e.res.landscape.seconds, seconds)
	}
	slices.SortStableFunc(all, func(x, y timedPlan) int { return cmp.Compare(x.seconds, y.seconds) })
	runtime.GC()
	return all, nil
}

// time is the least time of a few runs of a plan that computes what it should,
// after one that warms up.
func (e *entry) time(ctx context.Context, v *kernels.Verifier, b *kernels.Bench, plan kernels.Plan, most time.Duration) (float64, error) {
	k, err := e.s.backend.Compile(ctx, e.program, plan)
	if err != nil {
		return 0, err
	}
	defer k.Close()
	k = kernels.Bounded(k, most)
	err = v.Verify(ctx, k)
	best := math.Inf(1)
	for begin := time.Now(); err == nil && (math.IsInf(best, 1) || time.Since(begin) < planSpan); {
		var s kernels.Timing
		if s, err = b.Sample(ctx, k, 1); err == nil {
			best = min(best, s.Seconds)
		}
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return most.Seconds(), nil
	}
	return min(best, most.Seconds()), err
}

// enterFinalists makes contenders of the tuned plan, the default and the best
// of a survey. Those of the survey are called by their plans.
func (e *entry) enterFinalists(timed []timedPlan) error {
	bench, err := kernels.NewBench(e.fusion, e.s.seed, e.span())
	if err != nil {
		return err
	}
	entered := map[string]bool{}
	for _, p := range e.res.plans {
		if !entered[p.text] {
			entered[p.text] = true
			e.enter(p.name, e.program, p.text, bench)
		}
	}
	for _, p := range timed[:min(len(timed), finalists)] {
		if text := p.plan.String(); !entered[text] {
			entered[text] = true
			e.enter(text, e.program, text, bench)
		}
	}
	return nil
}

// finalist is the contender with the least median ratio to the tuned plan, by
// its name and its plan.
func (c *caseResult) finalist() (name, plan string) {
	least := math.Inf(1)
	for _, t := range c.times {
		if p := kernels.Paired(t.seconds, c.of("tuned"), confidence); p.Median < least {
			least, name = p.Median, t.name
		}
	}
	if plan = find(c.plans, name); plan == "" {
		plan = name
	}
	return name, plan
}
