package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/symtile"
)

// The columns of a line: the default, what was tuned, and the best of the first k by price.
const (
	header  = " default   tuned      @1      @4      @8     @16      ρ  price  quiet before, after"
	columns = 6
)

// firsts are the k of @k.
var firsts = []int{1, 4, 8, 16}

// A landscape has the plans of a fusion with their samples.
type landscape struct {
	program *symtile.Program
	plans   []cost.Ranked // in the order of their prices, but for a tuned one
	kernels []kernels.Kernel
	runs    []int // of a sample
	bench   *check.Bench
	// Positions of the default and of the tuned plan; −1 is none.
	standard, tuned int
	// Seconds of each plan in each block.
	seconds [][]float64
}

// sampleTime is what a sample takes at least.
const sampleTime = time.Millisecond

// landscape compiles the plans of a program that are timed.
func (o *oracle) landscape(ctx context.Context, p *symtile.Program) (*landscape, error) {
	l := &landscape{program: p, standard: -1, tuned: -1}
	ranked, err := o.ranked(ctx, p)
	if err != nil {
		return nil, err
	}
	standard, err := o.backend.Default(ctx, p)
	if err != nil {
		return nil, err
	}
	l.bench, err = check.NewBench(ctx, p.Fusion, 1, arrayBytes)
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
			l.standard = len(l.kernels) - 1
		}
	}
	return l, ctx.Err()
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
	first, err := l.bench.Sample(ctx, kernel, 1)
	if err != nil {
		kernel.Close()
		return err
	}
	l.plans = append(l.plans, r)
	l.kernels = append(l.kernels, kernel)
	runs := check.RunsPerSample(first.Seconds, sampleTime)
	l.runs = append(l.runs, runs)
	return nil
}

// addTuned adds the plan that a tuner has found, unless it is there.
func (l *landscape) addTuned(
	ctx context.Context, b *cpu.Backend, text string,
) error {
	same := func(r cost.Ranked) bool {
		return r.Plan.String() == text
	}
	l.tuned = slices.IndexFunc(l.plans, same)
	if l.tuned >= 0 {
		return nil
	}
	plan, err := kernels.ParsePlan(text)
	if err != nil {
		return err
	}
	l.tuned = len(l.plans)
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
	source := rand.NewPCG(1, uint64(len(l.plans)))
	rng := rand.New(source)
	l.seconds = make([][]float64, len(l.plans))
	for range blocks {
		for _, k := range rng.Perm(len(l.plans)) {
			kernel, n := l.kernels[k], l.runs[k]
			s, err := l.bench.Sample(ctx, kernel, n)
			if err != nil {
				return err
			}
			l.seconds[k] = append(l.seconds[k], s.Seconds)
		}
	}
	return nil
}

// ratio is the median of the ratios of two plans within the blocks of a parity.
func (l *landscape) ratio(a, b, parity int) float64 {
	var all []float64
	x, y := l.seconds[a], l.seconds[b]
	for n := parity; n < len(x); n += 2 {
		all = append(all, x[n]/y[n])
	}
	return median(all)
}

// median of numbers, which it sorts: the mean of the two in the middle where their number
// is even. There is at least one.
func median(v []float64) float64 {
	slices.Sort(v)
	return stat.Quantile(0.5, stat.LinInterp, v, nil)
}

// fastest is the plan with the least median of the even blocks, of the first n.
func (l *landscape) fastest(n int) int {
	best, least := 0, 0.0
	for k := range min(n, len(l.plans)) {
		var even []float64
		for i, s := range l.seconds[k] {
			if i%2 == 0 {
				even = append(even, s)
			}
		}
		if m := median(even); k == 0 || m < least {
			best, least = k, m
		}
	}
	return best
}

// ratios are the columns of a line, by the odd blocks; 0 where there is no such plan. The
// best of the first k is the one that the even blocks find, as a race of these plans would:
// not the one that happens to be the fastest in the blocks by which it is judged. So a ratio
// below 1 is the luck of the best plan, and on a quiet machine near 1.
func (l *landscape) ratios() (out [columns]float64) {
	best := l.fastest(len(l.plans))
	if l.standard >= 0 {
		out[0] = l.ratio(l.standard, best, 1)
	}
	if l.tuned >= 0 {
		out[1] = l.ratio(l.tuned, best, 1)
	}
	for k, n := range firsts {
		out[2+k] = l.ratio(l.fastest(n), best, 1)
	}
	return out
}

// The last columns say how right the prices are as times, and not only the first of them.
//
// order is Spearman's ρ of prices and medians, and the median of price over time.
func (l *landscape) order() (rho, price float64) {
	var predicted, measured, over []float64
	for k, r := range l.plans {
		if r.Seconds > 0 { // a tuned plan that is not offered has no price
			m := median(slices.Clone(l.seconds[k]))
			predicted = append(predicted, r.Seconds)
			measured = append(measured, m)
			over = append(over, r.Seconds/m)
		}
	}
	return cost.Spearman(predicted, measured), median(over)
}
