// Package packtiming measures on a device whether an operand of a fusion is worth packing:
// the fusion that reads the operand as it is, against the one that reads it packed, run in
// turns, and the time that packing takes once.
package packtiming

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A Result is what was measured. Times are medians, in seconds.
type Result struct {
	// InPlace is the fusion that reads the operand as it is, Packed the one that reads
	// it packed, and Packing the time of packing it.
	InPlace, Packed, Packing float64
	// The plans of the first two.
	InPlacePlan, PackedPlan kernels.Plan
	// Ratio is the time packed over the time in place, with its 95 % interval by
	// pairs of runs that followed each other.
	Ratio check.PairedInterval
	// Pairs is how many there were.
	Pairs int
}

// Of is the result as a database has it: of a subject, on a device.
func (r Result) Of(s Subject, id kernels.Identity) cache.Packing {
	print := s.Fusion.Fingerprint()
	return cache.Packing{
		Device:      id.Device,
		Backend:     id.Backend,
		Code:        id.Revision,
		Fusion:      hex.EncodeToString(print[:]),
		Parameter:   s.Parameter,
		Pack:        s.Pack.String(),
		InPlacePlan: r.InPlacePlan.String(),
		PackedPlan:  r.PackedPlan.String(),
		InPlace:     r.InPlace,
		Packed:      r.Packed,
		Packing:     r.Packing,
		Ratio: [3]float64{
			r.Ratio.Median,
			r.Ratio.Lo,
			r.Ratio.Hi,
		},
		Pairs: r.Pairs,
	}
}

// minPairs is the number of pairs that are measured whatever the time: fewer have no
// bounded 95 % interval.
const minPairs = 6

// sampleTime is how long a sample runs at least, so that clocks do not matter.
const sampleTime = time.Millisecond

// Plans are those of a subject that are known, winners of races as a rule. Without one of
// the fusion as it is, the default is measured; without one of the packed fusion, the
// faster one of its default and the plan of the fusion as it is.
type Plans struct{ InPlace, Packed *kernels.Plan }

// Measure compiles the three programs, verifies them, and times them in turns for the
// given time, at least minPairs times: the fusion as it is, the fusion with the operand
// packed, and what packs. The error is that of the backend, of the verification or of ctx.
func Measure(
	ctx context.Context, b kernels.Backend,
	s Subject, plans Plans, span time.Duration,
) (r Result, err error) {
	if b.Device().Untimed {
		return r, fmt.Errorf("%s cannot time", b.Identity().Name)
	}
	inPlace, err := newRunner(ctx, b, s.Fusion, plans.InPlace)
	if err != nil {
		return r, err
	}
	defer inPlace.close()
	packed, err := plans.packedRunner(ctx, b, s.Packed())
	if err != nil {
		return r, err
	}
	defer packed.close()
	packing, err := newRunner(ctx, b, s.packing(), nil)
	if err != nil {
		return r, err
	}
	defer packing.close()
	times, err := inTurns(ctx, []*runner{inPlace, packed, packing}, span)
	if err != nil {
		return r, err
	}
	return Result{
		InPlace:     median(times[0]),
		Packed:      median(times[1]),
		Packing:     median(times[2]),
		InPlacePlan: inPlace.plan,
		PackedPlan:  packed.plan,
		Ratio:       check.Paired(times[1], times[0], 0.95),
		Pairs:       len(times[0]),
	}, nil
}

// inTurns times runners in turns, of which another one is first each time.
func inTurns(ctx context.Context, all []*runner, span time.Duration) ([][]float64, error) {
	times := make([][]float64, len(all))
	end := time.Now().Add(span)
	for turn := 0; ; turn++ {
		if turn >= minPairs && time.Now().After(end) {
			return times, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		for n := range all {
			k := (n + turn) % len(all)
			seconds, err := all[k].sample(ctx)
			if err != nil {
				return nil, err
			}
			times[k] = append(times[k], seconds)
		}
	}
}

// packedRunner is the runner of the packed fusion.
func (p Plans) packedRunner(
	ctx context.Context, b kernels.Backend, f *hlo.Computation,
) (*runner, error) {
	if p.Packed != nil {
		return newRunner(ctx, b, f, p.Packed)
	}
	return fasterRunner(ctx, b, f, p.InPlace)
}

// fasterRunner is the faster one of the default plan and another one, which may be nil or
// not legal.
func fasterRunner(
	ctx context.Context, b kernels.Backend, f *hlo.Computation, plan *kernels.Plan,
) (*runner, error) {
	first, err := newRunner(ctx, b, f, nil)
	if err != nil || plan == nil {
		return first, err
	}
	// The plan is one of the fusion that reads the operand as it is: its tiles may not
	// be legal where the operand is packed, since a tile is whole rows of a panel or a
	// part of one.
	second, err := newRunner(ctx, b, f, plan)
	if err != nil {
		return first, nil
	}
	times, err := inTurns(ctx, []*runner{first, second}, 0)
	if err == nil && median(times[1]) < median(times[0]) {
		first, second = second, first
	}
	second.close()
	if err != nil {
		first.close()
	}
	return first, err
}

// median is the middle one of some times, of which there is at least one; of an even
// number it is the upper one.
func median(times []float64) float64 {
	sorted := slices.Sorted(slices.Values(times))
	middle := len(sorted) / 2
	return sorted[middle]
}

// A runner is a verified kernel with inputs to time it on.
type runner struct {
	kernel   kernels.Kernel
	plan     kernels.Plan
	verifier *check.Verifier
	bench    *check.Bench
	// runs make a sample.
	runs int
	// It goes on to run and has to be left to its arrays.
	hung bool
}

// newRunner compiles and verifies a plan of a fusion, nil for the default one.
func newRunner(
	ctx context.Context, b kernels.Backend,
	f *hlo.Computation, plan *kernels.Plan,
) (*runner, error) {
	p, err := symtile.Analyze(ctx, f)
	if err != nil {
		return nil, err
	}
	r := &runner{runs: 1}
	if plan != nil {
		r.plan = *plan
	} else if r.plan, err = b.Default(ctx, p); err != nil {
		return nil, err
	}
	if r.verifier, err = check.NewVerifier(ctx, p.Physical, 1); err != nil {
		return nil, err
	}
	r.kernel, err = b.Compile(ctx, p, r.plan)
	if err == nil {
		err = r.verifier.Verify(ctx, r.kernel)
		r.hung = errors.As(err, new(*check.Hung))
	}
	if err == nil {
		r.bench, err = r.verifier.NewBench(ctx, 1, 0)
	}
	first := 0.0
	if err == nil {
		first, err = r.sample(ctx)
	}
	if err != nil {
		r.close()
		return nil, err
	}
	r.runs = check.RunsPerSample(first, sampleTime)
	return r, nil
}

// close gives back the kernel, unless it hangs, and the arrays.
func (r *runner) close() {
	if r.hung {
		return
	}
	if r.kernel != nil {
		r.kernel.Close() // an error would change nothing about what was measured
	}
	r.verifier.Close() // as above
}

// sample is the time of a run, in seconds.
func (r *runner) sample(ctx context.Context) (float64, error) {
	t, err := r.bench.Sample(ctx, r.kernel, r.runs)
	r.hung = r.hung || errors.As(err, new(*check.Hung))
	return t.Seconds, err
}
