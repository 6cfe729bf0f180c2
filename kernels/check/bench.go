package check

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A Bench has the buffers that kernels of one fusion are timed on: several sets
// of inputs and outputs that are used in turn, so that no run finds its inputs in a
// cache because the run before it used them. The inputs of all sets are the random
// ones that a Verifier of the same seed uses, so that what it expects is also what
// every timed run has to compute.
type Bench struct {
	aliases *aliases // of arrays that repeat their pages; nil for others
	sets    []kernels.Set
	next    int
	last    kernels.Set // of the last run
	size    int64       // bytes of all sets
}

// Bytes are those of the arrays that runs go through in turn.
func (b *Bench) Bytes() int64 { return b.size }

const (
	// The largest number of sets.
	maxSets = 8
	// The largest number of bytes of all sets together, unless one alone is
	// larger.
	maxSetBytes = 256 << 20
)

// NewBench allocates sets until they take span bytes (for example twice the
// last level of cache): at most eight, and at least two unless one takes as many. When ctx ends, its cause is
// the error.
func NewBench(ctx context.Context, c *hlo.Computation, seed, span int64) (*Bench, error) {
	in, err := InputsContext(ctx, c, Normals, seed)
	if err != nil {
		return nil, err
	}
	return newBenchOn(c, in, nil, span)
}

// newBenchOn allocates sets, of which the first has the given inputs and, unless they are
// nil, outputs.
func newBenchOn(c *hlo.Computation, in, out []kernels.Buffer, span int64) (*Bench, error) {
	b := &Bench{}
	for total := int64(0); len(b.sets) == 0 || total < span && len(b.sets) < 2 ||
		len(b.sets) < maxSets && total < min(span, maxSetBytes); {
		set, err := newSet(c, in, out, len(b.sets) > 0)
		if err != nil {
			return nil, err
		}
		b.sets = append(b.sets, set)
		bytes := arrayBytes(c)
		b.size += bytes
		if total += bytes; total > maxSetBytes {
			break
		}
	}
	return b, nil
}

// newSet makes the inputs and outputs of one run: those that are given or, where they are
// in use, copies and others.
func newSet(
	c *hlo.Computation, in, out []kernels.Buffer, used bool,
) (set kernels.Set, err error) {
	set = kernels.Set{In: in, Out: out}
	if used {
		if set.In, err = clones(in); err != nil {
			return kernels.Set{}, err
		}
	}
	if out != nil && !used {
		return set, nil
	}
	set.Out = nil
	for _, s := range kernels.OutputShapes(c) {
		o, err := kernels.NewBuffer(s)
		if err != nil {
			return kernels.Set{}, err
		}
		set.Out = append(set.Out, o)
	}
	return set, nil
}

// clones copies arrays.
func clones(all []kernels.Buffer) ([]kernels.Buffer, error) {
	copies := make([]kernels.Buffer, len(all))
	for k, x := range all {
		b, err := kernels.NewBuffer(x.Shape)
		if err != nil {
			return nil, err
		}
		copy(b.Data, x.Data)
		copies[k] = b
	}
	return copies, nil
}

// take is the next set.
func (b *Bench) take() kernels.Set {
	b.last = b.sets[b.next]
	b.next = (b.next + 1) % len(b.sets)
	return b.last
}

// Run runs a kernel once on the next set and returns the time of the device.
func (b *Bench) Run(
	ctx context.Context, k kernels.Kernel,
) (time.Duration, error) {
	set := b.take()
	return k.Run(b.aliases.during(ctx), set.In, set.Out)
}

// Sample times a kernel over n runs, at least one. A kernel that is a Sampler
// times itself. Another one that hangs is abandoned, and the error is a *Hung.
func (b *Bench) Sample(
	ctx context.Context, k kernels.Kernel, n int,
) (kernels.Timing, error) {
	if s, own := k.(kernels.Sampler); own {
		return s.Sample(ctx, b.sets, max(1, n))
	}
	n = max(1, n)
	if x, ok := k.(bounded); ok {
		// One goroutine runs the whole sample: its runs are as close to each other as
		// those of any other sample.
		k = x.Kernel
		limited, cancel := x.within(ctx, n)
		defer cancel()
		ctx = limited
	}
	var total time.Duration
	err := await(ctx, func() error {
		for range n {
			d, err := b.Run(ctx, k)
			if err != nil {
				return err
			}
			total += d
		}
		return nil
	})
	if err != nil {
		return kernels.Timing{}, err
	}
	return kernels.Timing{
		Seconds: total.Seconds() / float64(n),
	}, nil
}

// Bounded is k with a limit for the time of each run: a run that exceeds it
// fails with context.DeadlineExceeded, and one that does not end then is abandoned: a
// *Hung. Work on the results of a run, which may take longer than the run, is not
// limited.
func Bounded(k kernels.Kernel, limit time.Duration) kernels.Kernel {
	if s, own := k.(kernels.Sampler); own {
		return boundedSampler{bounded{k, limit}, s}
	}
	return bounded{k, limit}
}

// A boundedSampler limits a kernel that times itself. Its samples are not
// limited, because copying the sets to the device may take longer than all
// runs.
type boundedSampler struct {
	bounded
	sampler kernels.Sampler
}

func (b boundedSampler) Sample(
	ctx context.Context, sets []kernels.Set, n int,
) (kernels.Timing, error) {
	return b.sampler.Sample(ctx, sets, n)
}

// A bounded kernel has a limit for the time of a run; 0 is none.
type bounded struct {
	kernels.Kernel
	limit time.Duration
}

// within is a context for n runs.
func (b bounded) within(ctx context.Context, n int) (context.Context, context.CancelFunc) {
	if b.limit == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, time.Duration(n)*b.limit)
}

func (b bounded) Run(
	ctx context.Context, in, out []kernels.Buffer,
) (time.Duration, error) {
	limited, cancel := b.within(ctx, 1)
	defer cancel()
	var d time.Duration
	err := await(limited, func() (err error) {
		d, err = b.Kernel.Run(stillReleasing(limited), in, out)
		return err
	})
	if err != nil {
		return 0, err
	}
	return d, nil
}

// Deterministic is what the kernel says of itself.
func (b bounded) Deterministic() bool {
	d, says := b.Kernel.(kernels.Deterministic)
	return says && d.Deterministic()
}

// RunsPerSample is the number of runs, of seconds each, that make a sample of
// at least span, so that the resolution of the clock does not matter; at most
// 1,000.
func RunsPerSample(seconds float64, span time.Duration) int {
	if seconds <= 0 {
		return 1000
	}
	return int(min(1000, max(
		1, math.Ceil(span.Seconds()/seconds),
	)))
}

// A PairedInterval is the median of ratios with the ends of a distribution-free
// confidence interval.
type PairedInterval struct{ Median, Lo, Hi float64 }

// Paired bounds the median of the ratios x[k]/y[k] with the given confidence by
// order statistics: the number of ratios below the median is binomial (n, ½),
// so the interval (r₍ₖ₎, r₍ₙ₊₁₋ₖ₎) contains it with probability 1 − 2·P(B < k)
// (Conover, Practical Nonparametric Statistics, §3.2). With too few pairs the
// lower end is 0 and the upper end infinite.
func Paired(x, y []float64, confidence float64) PairedInterval {
	n := min(len(x), len(y))
	if n == 0 {
		return PairedInterval{1, 0, math.Inf(1)}
	}
	r := make([]float64, n)
	for k := range r {
		r[k] = x[k] / y[k]
	}
	slices.Sort(r)
	p := PairedInterval{
		Median: (r[(n-1)/2] + r[n/2]) / 2,
		Lo:     0,
		Hi:     math.Inf(1),
	}
	if k := orderStatistic(n, confidence); k >= 0 {
		p.Lo = r[k]
		p.Hi = r[n-1-k]
	}
	return p
}

// orderStatistic is the largest k, counted from 0, with 2·P(B ≤ k) ≤ 1 −
// confidence for B binomial (n, ½); −1 if there is none.
func orderStatistic(n int, confidence float64) int {
	k, tail := -1, 0.0
	// P(B = 0), as its logarithm: 2⁻ⁿ is 0 in floating point from 1,075 on.
	term := -float64(n) * math.Ln2
	for j := 0; j < n; j++ {
		if tail += math.Exp(term); 2*tail > 1-confidence {
			break
		}
		k = j
		term += math.Log(float64(n-j) / float64(j+1))
	}
	return k
}
