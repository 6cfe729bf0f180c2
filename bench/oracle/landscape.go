package main

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/symtile"
)

// A landscape has the plans of a fusion that are timed, and their samples.
type landscape struct {
	table
	program *symtile.Program
	kernels []kernels.Kernel
	runs    []int // of a sample
	bench   *check.Bench
	clock   clock
}

// sampleTime is what a sample takes at least.
const sampleTime = time.Millisecond

// landscape compiles the plans of a program that are timed.
func (o *oracle) landscape(ctx context.Context, p *symtile.Program) (*landscape, error) {
	ranked, err := o.ranked(ctx, p)
	if err != nil {
		return nil, err
	}
	standard, err := o.backend.Default(ctx, p)
	if err != nil {
		return nil, err
	}
	l, err := o.newLandscape(ctx, p)
	if err != nil {
		return nil, err
	}
	for k, r := range ranked {
		first := r.Plan.String() == standard.String()
		if !first && !o.takes(k, len(ranked)) {
			continue
		}
		err := l.add(ctx, o.backend, r)
		if err == nil && first {
			l.Default = len(l.kernels) - 1
		}
	}
	return l, ctx.Err()
}

// newLandscape is one without plans.
func (o *oracle) newLandscape(ctx context.Context, p *symtile.Program) (*landscape, error) {
	l := &landscape{program: p, clock: o.clock}
	l.Default, l.Tuned = -1, -1
	var err error
	l.bench, err = check.NewBench(ctx, p.Fusion, 1, arrayBytes)
	return l, err
}

// chosen compiles plans that are given by their texts, each once.
func (o *oracle) chosen(ctx context.Context, p *symtile.Program, plans ...string) (*landscape, error) {
	l, err := o.newLandscape(ctx, p)
	if err != nil {
		return nil, err
	}
	for _, text := range plans {
		if err := l.addTuned(ctx, o.backend, text); err != nil {
			l.close()
			return nil, err
		}
	}
	return l, nil
}

// arrayBytes are the bytes of arrays that runs go through in turn, as in a race: more than
// the caches of one lane.
const arrayBytes = 32 << 20

// ranked are all plans that are offered, in the order of their prices. Nothing is learned
// from samples.
func (o *oracle) ranked(
	ctx context.Context, p *symtile.Program,
) ([]cost.Ranked, error) {
	pricer, err := o.backend.Pricer(p)
	if err != nil {
		return nil, err
	}
	plans := slices.Collect(o.backend.Plans(ctx, p))
	return new(cost.Model).Rank(ctx, pricer, plans)
}

// takes reports whether plan k of n is timed: the cheapest ones, and others at equal
// distances.
func (o *oracle) takes(k, n int) bool {
	rest := n - o.cheapest
	wanted := o.plans - o.cheapest
	at := k - o.cheapest
	if at <= 0 || rest <= wanted {
		return true
	}
	return at*wanted/rest != (at-1)*wanted/rest
}

// add compiles a plan and finds out how many of its runs make a sample. A plan that is
// refused is left out. Nothing is verified here: tests of the backend do that for the whole
// corpus.
func (l *landscape) add(
	ctx context.Context, b *cpu.Backend, r cost.Ranked,
) error {
	kernel, err := b.Compile(ctx, l.program, r.Plan)
	if err != nil {
		return err
	}
	least, err := l.leastRun(ctx, kernel)
	if err != nil {
		kernel.Close()
		return err
	}
	l.Plans = append(l.Plans, r.Plan.String())
	l.Prices = append(l.Prices, r.Seconds)
	l.kernels = append(l.kernels, kernel)
	runs := check.RunsPerSample(least, sampleTime)
	l.runs = append(l.runs, runs)
	return nil
}

// sizingTime is what the runs take, at least, of which the shortest decides how many runs
// make a sample, and mostSizing their number at most.
const (
	sizingTime = 2 * time.Millisecond
	mostSizing = 64
)

// leastRun is the time of the shortest of some runs. A first run that waited for a processor
// would make samples of few runs, each of which begins with cold caches and a worker that
// sleeps: in all of its samples that plan would be slower than the others.
func (l *landscape) leastRun(ctx context.Context, k kernels.Kernel) (float64, error) {
	least, total := math.Inf(1), 0.0
	for n := 0; n < 3 || n < mostSizing && total < sizingTime.Seconds(); n++ {
		s, err := l.bench.Sample(ctx, k, 1)
		if err != nil {
			return 0, err
		}
		least = min(least, s.Seconds)
		total += s.Seconds
		if total > 20*sizingTime.Seconds() {
			break // a long run needs no others
		}
	}
	return least, nil
}

// addTuned adds the plan that a tuner has found, unless it is there.
func (l *landscape) addTuned(
	ctx context.Context, b *cpu.Backend, text string,
) error {
	l.Tuned = slices.Index(l.Plans, text)
	if l.Tuned >= 0 {
		return nil
	}
	plan, err := kernels.ParsePlan(text)
	if err != nil {
		return err
	}
	l.Tuned = len(l.Plans)
	return l.add(ctx, b, cost.Ranked{Plan: plan})
}

// close releases the kernels, tuned or offered; an error would change nothing about what was
// measured.
func (l *landscape) close() {
	for _, k := range l.kernels {
		k.Close()
	}
}

// measure times every plan once in each block, in shuffled order.
func (l *landscape) measure(ctx context.Context, blocks int) error {
	rng := rand.New(rand.NewPCG(1, uint64(len(l.Plans))))
	l.Seconds = make([][]float64, len(l.Plans))
	for range blocks {
		for _, k := range rng.Perm(len(l.Plans)) {
			s, err := l.sample(ctx, l.kernels[k], l.runs[k])
			if err != nil {
				return err
			}
			l.Seconds[k] = append(l.Seconds[k], s)
		}
	}
	return nil
}

const (
	// disturbedShare is the share of a sample that other work takes, beyond which it is
	// taken again.
	disturbedShare = 0.05
	mostTries      = 5 // of a sample, of which the last one counts
)

// sample times runs of a kernel; the seconds of one.
func (l *landscape) sample(ctx context.Context, k kernels.Kernel, runs int) (float64, error) {
	for try := 1; ; try++ {
		begin := l.clock.look()
		s, err := l.bench.Sample(ctx, k, runs)
		if err != nil {
			return 0, err
		}
		passed := l.clock.look().since(begin)
		if l.clock.processor {
			return passed.used.Seconds() / float64(runs), nil
		}
		if passed.disturbed.Seconds() <= disturbedShare*passed.elapsed.Seconds() {
			return s.Seconds, nil
		}
		if l.Repeated++; try == mostTries {
			return s.Seconds, nil
		}
	}
}
