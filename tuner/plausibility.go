package tuner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/symtile"
)

// A time below cost.LowerBound is that of a kernel that left work out, or the rates of the
// device were measured too low, on a machine that others used. The kernel and the rates
// are both asked: it is run on other inputs, whose results are compared and whose times
// are taken, and the rates are measured once more. A rate is a maximum: other work makes
// what is measured of it lower, and of two values the larger is nearer to the truth.

// changedSeed makes the inputs that a suspected kernel is run on: "change" in ASCII.
const changedSeed = 0x6368616e6765

// A plausibility holds times against what a device can do.
type plausibility struct {
	backend kernels.Backend
	rates   *cache.DB // that has those of the device
	program *symtile.Program
	seed    int64 // of the inputs of timed runs
	bytes   int64 // of the arrays that runs go through in turn

	bound   float64         // seconds: no correct kernel is faster
	fastest *kernels.Device // with the largest rates that are known, once they were doubted
	// contradicted are the rates that were too low, and how.
	contradicted []string
}

// check decides about the time of a plan's kernel, of which no run may take longer than a
// limit. The error is errImplausible of a time that the kernel does not reach on inputs that
// it has not seen, or that is far below what the device can do by any rate that is known; a
// *check.WrongResult; or that of ctx.
func (p *plausibility) check(
	ctx context.Context, plan kernels.Plan, k kernels.Kernel,
	limit time.Duration, seconds float64,
) error {
	if seconds >= p.bound {
		return nil
	}
	fresh, err := p.onChangedInputs(ctx, plan, check.Bounded(k, limit))
	if err != nil {
		return err
	}
	least, hard, err := p.remeasuredBounds(ctx)
	switch {
	case err != nil:
		return err
	case seconds >= least:
		p.bound = least
		return nil
	case seconds < hard || fresh >= least:
		return errImplausible
	}
	p.contradicted = append(p.contradicted, fmt.Sprintf(
		"%s takes %.3g s, on inputs that it has not seen too, and at least %.3g s by the rates of the device",
		plan, seconds, least,
	))
	// A kernel that leaves out half of what this one does is suspected again.
	p.bound = max(hard, min(least, seconds/2))
	return nil
}

// onChangedInputs runs a kernel on random numbers of another seed, and returns its time:
// other inputs, such as the extremes, are the same for all seeds.
func (p *plausibility) onChangedInputs(
	ctx context.Context, plan kernels.Plan, k kernels.Kernel,
) (seconds float64, err error) {
	other, err := check.NewRandomVerifier(ctx, p.program.Physical, p.seed^changedSeed)
	if err != nil {
		return 0, err
	}
	watched := &stopwatch{Kernel: k}
	tf32 := p.backend.Identity().TF32Allowed()
	_, err = other.For(plan, tf32).Examine(ctx, watched)
	var hung *check.Hung
	if !errors.As(err, &hung) { // which goes on to use the arrays
		err = errors.Join(err, other.Close())
	}
	return watched.last.Seconds(), err
}

// A stopwatch keeps the time of a kernel's last run.
type stopwatch struct {
	kernels.Kernel
	last time.Duration
}

// Run runs the kernel.
func (s *stopwatch) Run(
	ctx context.Context, in, out []kernels.Buffer,
) (time.Duration, error) {
	d, err := s.Kernel.Run(ctx, in, out)
	s.last = d
	return d, err
}

// remeasuredBounds are the lower bound by the larger of the rates that were measured, also
// just now, and the typical ones, and the one with the safety factors of rates of which
// nothing is known. Rates are measured once a race.
func (p *plausibility) remeasuredBounds(ctx context.Context) (least, hard float64, err error) {
	if p.fastest == nil {
		d, why, err := remeasured(ctx, p.rates, p.backend)
		if err != nil {
			return 0, 0, err
		}
		p.fastest = &d
		p.contradicted = append(p.contradicted, why...)
	}
	least, err = cost.LowerBound(p.program, *p.fastest, p.bytes)
	if err != nil {
		return 0, 0, err
	}
	loose := *p.fastest
	loose.Quiet = false
	hard, err = cost.LowerBound(p.program, loose, p.bytes)
	return least, hard, err
}

// remeasureSlack is by how much a rate that is measured again has to be larger: two
// measurements of one rate differ by noise.
const remeasureSlack = 0.05

// remeasured measures the rates of a backend's device again, tells the backend the larger
// ones, and stores them where rates are stored. why are the rates that were too low. The
// device has the larger of these and the typical rates. A backend without measured rates has
// those of its specification, which stay.
func remeasured(
	ctx context.Context, db *cache.DB, b kernels.Backend,
) (d kernels.Device, why []string, err error) {
	device, can := b.(kernels.Calibrated)
	if !can {
		return b.Device(), nil, nil
	}
	c, found, err := StoredRates(db, b)
	if err != nil || !found {
		c = Calibration{Rates: ratesOf(b.Device())}
		found = false
	}
	again, err := device.Calibrate(ctx, quickCalibration)
	if err != nil {
		return d, nil, err
	}
	c.Rates, why = larger(c.Rates, again, b.Identity())
	if len(why) > 0 {
		c.Busy = true // or else none of them could be too low
		c.Rates = c.Plausible(b.Identity(), device.TypicalRates())
		if err := device.SetRates(c.Rates); err != nil {
			return d, nil, err
		}
		if found {
			_ = c.store(db, b.Identity()) // what is not stored is found again by the next race
		}
	}
	return withTypical(b.Device(), device.TypicalRates()), why, nil
}

// ratesOf are the rates that a device is described by.
func ratesOf(d kernels.Device) (r kernels.Rates) {
	r.FLOPS.Value = d.FLOPS
	for _, l := range d.Levels {
		r.Levels = append(r.Levels, kernels.Rate{
			Value: l.Bandwidth, Kept: l.Kept,
		})
	}
	return r
}

// larger are the larger ones of two measurements of a device's rates, and which of the first
// were too low.
func larger(
	first, again kernels.Rates, d kernels.Device,
) (r kernels.Rates, why []string) {
	r = first
	r.Levels = slices.Clone(first.Levels)
	keep := func(
		name string, into *kernels.Rate, now kernels.Rate,
	) {
		if now.Value <= into.Value*(1+remeasureSlack) {
			return
		}
		why = append(why, fmt.Sprintf(
			"the rate of %s was %.3g G/s, and is %.3g when it is measured again",
			name, into.Value/1e9, now.Value/1e9,
		))
		into.Value, into.Spread = now.Value, now.Spread
		into.Mismeasured = ""
	}
	keep("products", &r.FLOPS, again.FLOPS)
	for k := range min(len(r.Levels), len(again.Levels)) {
		keep(d.Levels[k].Name, &r.Levels[k], again.Levels[k])
	}
	return r, why
}

// withTypical is a device with the larger of its rates and the typical ones.
func withTypical(d kernels.Device, typical kernels.Rates) kernels.Device {
	if d.FLOPS > 0 && typical.FLOPS.Value > d.FLOPS {
		d.Matrix *= typical.FLOPS.Value / d.FLOPS
		d.FLOPS = typical.FLOPS.Value
	}
	d.Levels = slices.Clone(d.Levels)
	for k := range min(len(d.Levels), len(typical.Levels)) {
		l := &d.Levels[k]
		l.Bandwidth = max(l.Bandwidth, typical.Levels[k].Value)
	}
	return d
}
