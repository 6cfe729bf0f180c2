// Package replay is a device made of samples that were taken elsewhere: what
// `tilewright cache export` or `tilewright doctor` wrote on a machine with the
// real one. Plans are those that were tried there, runs give the reference's
// results and take the recorded times in turn. Searches and models can so be
// tested on true landscapes without the device.
package replay

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"
	"unsafe"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A record is a line of a recording: the fields of cache.Record that are needed
// here. A line with nothing but a device describes that.
type record struct {
	// Fingerprint of the canonical fusion, hexadecimal.
	Fusion string `json:"fusion"`
	// The exact context of the samples.
	Device  string `json:"device"`
	Backend string `json:"backend"`
	Codegen string `json:"codegen"`
	// The default plan and all trials.
	Default string  `json:"default"`
	Trials  []trial `json:"trials"`
}

// A trial is a plan with its samples, or the reason of its failure.
type trial struct {
	Plan string `json:"plan"`
	// Seconds a run.
	Samples []float64 `json:"samples"`
	// Clocks in Hz, of each sample or of none.
	Clocks  []float64 `json:"clocks"`
	Failure string    `json:"failure"`
	Detail  string    `json:"detail"`
}

// A fusion has what was recorded of one fusion.
type fusion struct {
	standard kernels.Plan
	plans    []kernels.Plan
	// Trials by the text of the plan.
	trials map[string]trial
}

// Backend replays the records of one device.
type Backend struct {
	device kernels.Device
	// Recorded fusions by fingerprint.
	fusions map[string]*fusion
	// Clocks of the samples that were taken so far.
	clocks []float64
	price  func(*symtile.Program, kernels.Device) (kernels.Pricer, error)
}

// maxLineBytes bounds a line of a recording.
const maxLineBytes = 64 << 20

// Read reads a recording; name is for error messages. All records must be of
// one device. A first line {"sheet": {…}}, a kernels.Device, describes the
// device and its rates.
func Read(name string, r io.Reader) (*Backend, error) {
	b := &Backend{fusions: map[string]*fusion{}}
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLineBytes)
	for line := 1; in.Scan(); line++ {
		if len(bytes.TrimSpace(in.Bytes())) == 0 {
			continue
		}
		if err := b.line(in.Bytes()); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, line, err)
		}
	}
	if err := in.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("%s: a line is longer than %d MiB", name, maxLineBytes>>20)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(b.fusions) == 0 {
		return nil, fmt.Errorf("%s: no records in it; `tilewright cache export` writes them", name)
	}
	b.device.Name = "replay:" + b.device.Name
	return b, nil
}

// line reads one line of a recording.
func (b *Backend) line(text []byte) error {
	var head struct {
		Sheet *kernels.Device `json:"sheet"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return fmt.Errorf("not a record: %w", err)
	}
	if head.Sheet != nil {
		b.device = *head.Sheet
		return nil
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("not a record: %w", err)
	}
	return b.add(r)
}

// add adds a record, whose device must be that of the ones before.
func (b *Backend) add(r record) error {
	if _, err := hex.DecodeString(r.Fusion); err != nil ||
		len(r.Fusion) != 64 {
		return fmt.Errorf("%q is not a fingerprint", r.Fusion)
	}
	if b.device.Name == "" {
		b.device = unknown(r)
	}
	if r.Device != b.device.Name ||
		r.Backend != b.device.Backend ||
		r.Codegen != b.device.Revision {
		return fmt.Errorf(
			"it is of %s (%s %s), the ones before are of %s (%s %s)",
			r.Device, r.Backend, r.Codegen,
			b.device.Name, b.device.Backend,
			b.device.Revision,
		)
	}
	f := &fusion{trials: map[string]trial{}}
	for _, t := range r.Trials {
		plan, err := kernels.ParsePlan(t.Plan)
		if err != nil {
			return err
		}
		if t.Failure == "" && len(t.Samples) == 0 {
			continue // it was never timed
		}
		n := len(t.Clocks)
		if n > 0 && n != len(t.Samples) {
			return fmt.Errorf("plan %s: %d clocks of %d samples", plan, n, len(t.Samples))
		}
		f.plans = append(f.plans, plan)
		f.trials[plan.String()] = t
	}
	standard, err := kernels.ParsePlan(r.Default)
	if err != nil {
		return fmt.Errorf("the default plan: %w", err)
	}
	f.standard = standard
	b.fusions[r.Fusion] = f
	return nil
}

// unknown is a device of which only the name is recorded: it has one memory,
// whose rates bound nothing.
func unknown(r record) kernels.Device {
	const boundless = 1e18
	return kernels.Device{
		Name:     r.Device,
		Backend:  r.Backend,
		Revision: r.Codegen,
		Lanes:    1,
		FLOPS:    boundless,
		Levels:   []kernels.Level{{Name: "memory", Shared: true, Bandwidth: boundless}},
	}
}

// PriceBy says how the plans of recorded programs are priced on the recorded device;
// without it all cost the same.
func (b *Backend) PriceBy(price func(*symtile.Program, kernels.Device) (kernels.Pricer, error)) {
	b.price = price
}

// Pricer prices plans as PriceBy says.
func (b *Backend) Pricer(p *symtile.Program) (kernels.Pricer, error) {
	if b.price == nil {
		return kernels.SamePrice(p), nil
	}
	return b.price(p, b.device)
}

// Identity is the recorded device, its name prefixed by "replay:".
func (b *Backend) Identity() kernels.Device { return b.device }

// Device is the same.
func (b *Backend) Device() kernels.Device { return b.device }

// of is what was recorded of a program's fusion.
func (b *Backend) of(p *symtile.Program) (*fusion, error) {
	f := b.fusions[fmt.Sprintf("%x", p.Fusion.Fingerprint())]
	if f == nil {
		return nil, fmt.Errorf(
			"nothing is recorded of %s on %s", p.Fusion.Name, b.device.Name,
		)
	}
	return f, nil
}

// Plans yields the plans that were tried.
func (b *Backend) Plans(ctx context.Context, p *symtile.Program) iter.Seq[kernels.Plan] {
	return func(yield func(kernels.Plan) bool) {
		f, err := b.of(p)
		if err != nil {
			return // Default says why
		}
		for _, plan := range f.plans {
			if !yield(plan) {
				return
			}
		}
	}
}

// Default is the default plan at the time of recording.
func (b *Backend) Default(ctx context.Context, p *symtile.Program) (kernels.Plan, error) {
	f, err := b.of(p)
	if err != nil {
		return kernels.Plan{}, err
	}
	return f.standard, nil
}

// Compile finds the samples of a plan. A plan that was not recorded, or that
// failed, is a *kernels.Rejected with the reason.
func (b *Backend) Compile(
	_ context.Context, p *symtile.Program, plan kernels.Plan,
) (kernels.Kernel, error) {
	f, err := b.of(p)
	if err != nil {
		return nil, &kernels.Rejected{
			Plan:   plan,
			Reason: err.Error(),
		}
	}
	t, known := f.trials[plan.String()]
	switch {
	case !known:
		return nil, &kernels.Rejected{Plan: plan, Reason: "it was not tried when the samples were taken"}
	case t.Failure != "":
		return nil, &kernels.Rejected{
			Plan:   plan,
			Reason: "recorded as " + t.Failure + ": " + t.Detail,
		}
	}
	return &kernel{
		b:      b,
		fusion: p.Physical,
		plan:   plan,
		trial:  t,
	}, nil
}

// SampleQuality has the clocks of the recorded samples.
func (b *Backend) SampleQuality() (e kernels.SampleQuality) {
	e.SetClocks(b.clocks)
	return e
}

// A kernel takes the recorded times in turn.
type kernel struct {
	b      *Backend
	fusion *hlo.Computation
	plan   kernels.Plan
	trial  trial
	next   int
	// Results for recent inputs, the latest last.
	known []answer
}

// An answer is the reference's results for some inputs.
type answer struct{ in, out []kernels.Buffer }

// maxAnswers is the number of answers that are kept: a bench uses up to eight
// sets of inputs in turn.
const maxAnswers = 10 // that are kept: a bench uses up to eight sets of inputs in turn

// Source describes the recording; the code was not recorded.
func (k *kernel) Source() string {
	return fmt.Sprintf(
		"plan %s: %d recorded samples; the results are the reference's\n",
		k.plan, len(k.trial.Samples),
	)
}

// Close releases nothing.
func (k *kernel) Close() error { return nil }

// Run computes the results by the reference interpreter, once for the same
// inputs, and returns the next of the recorded times.
func (k *kernel) Run(
	ctx context.Context, in, out []kernels.Buffer,
) (time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	results, err := k.results(ctx, in)
	if err != nil {
		return 0, err
	}
	for n := range out {
		copy(out[n].Data, results[n].Data)
	}
	return time.Duration(k.take().Seconds * float64(time.Second)), nil
}

// take is the next of the samples; after the last comes the first.
func (k *kernel) take() (t kernels.Timing) {
	t.Seconds = k.trial.Samples[k.next]
	if len(k.trial.Clocks) > 0 {
		t.Hertz = k.trial.Clocks[k.next]
	}
	k.next = (k.next + 1) % len(k.trial.Samples)
	return t
}

// Sample is the mean of the next n samples, and of their clocks if all are
// known.
func (k *kernel) Sample(
	ctx context.Context, _ []kernels.Set, n int,
) (mean kernels.Timing, err error) {
	unknown := false
	for range n {
		t := k.take()
		unknown = unknown || t.Hertz == 0
		mean.Seconds += t.Seconds / float64(n)
		mean.Hertz += t.Hertz / float64(n)
	}
	if unknown {
		mean.Hertz = 0
	}
	k.b.clocks = append(k.b.clocks, mean.Hertz)
	return mean, ctx.Err()
}

// results are the reference's. They are kept for arrays that are used again,
// whose contents must not have changed.
func (k *kernel) results(ctx context.Context, in []kernels.Buffer) ([]kernels.Buffer, error) {
	for _, a := range k.known {
		if same(a.in, in) {
			return a.out, nil
		}
	}
	out, err := reference.InterpretContext(ctx, k.fusion, in)
	if err != nil {
		return nil, err
	}
	if len(k.known) == maxAnswers {
		k.known = k.known[1:]
	}
	k.known = append(k.known, answer{
		slices.Clone(in), out,
	})
	return out, nil
}

// same reports whether two lists have the same arrays, by address.
func same(x, y []kernels.Buffer) bool {
	return slices.EqualFunc(x, y, func(a, b kernels.Buffer) bool {
		return len(a.Data) == len(b.Data) &&
			unsafe.SliceData(a.Data) == unsafe.SliceData(b.Data)
	})
}
