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

// record is a line of the file: the fields of a record of package cache that are
// needed here. A line that contains only a device describes the device.
type record struct {
	// Fusion is the fingerprint in hexadecimal.
	Fusion  string  `json:"fusion"`
	Device  string  `json:"device"`
	Backend string  `json:"backend"`
	Codegen string  `json:"codegen"`
	Default string  `json:"default"`
	Trials  []trial `json:"trials"`
}

// trial is the measurement of one plan.
type trial struct {
	Plan string `json:"plan"`
	// Samples are seconds.
	Samples []float64 `json:"samples"`
	// Clocks are the clock rates in Hz, one for each sample or none.
	Clocks []float64 `json:"clocks"`
	// Failure is the kind of failure, "" for a plan that ran.
	Failure string `json:"failure"`
	Detail  string `json:"detail"`
}

// fusion is everything that was recorded of one fusion.
type fusion struct {
	// standard is the default plan of the recorded backend.
	standard kernels.Plan
	// plans are the plans that ran, in the order of the record.
	plans []kernels.Plan
	// trials are the measurements by the text of the plan.
	trials map[string]trial
}

// Backend replays the records of one device: it is a kernels.Backend whose
// kernels compute by the reference interpreter and report recorded times.
type Backend struct {
	device kernels.Device
	// fusions are the recorded fusions by their fingerprints.
	fusions map[string]*fusion
	// clocks are the clock rates of the samples that were taken.
	clocks []float64
	// price prices plans; nil if all cost the same.
	price func(*symtile.Program, kernels.Device) (kernels.Pricer, error)
}

// maxLineBytes is the maximum length of a line of a recording.
const maxLineBytes = 64 << 20

// Read reads a recording, one JSON record a line; name is used in errors. All
// records must be of one device. A line {"sheet": {…}}, a kernels.Device, may
// come first and gives the cost model its rates.
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
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(b.fusions) == 0 {
		return nil, fmt.Errorf("%s: no records in it; `tilewright cache export` writes them", name)
	}
	b.device.Name = "replay:" + b.device.Name
	return b, nil
}

// line reads a record or the description of the device.
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

// add enters a record after checking that it is of the same device.
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
			// The plan was never timed.
			continue
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

// unknown is a device of which only the name is recorded: it has one memory, and
// rates so high that they bound nothing.
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

// PriceBy sets the function that prices the plans of recorded programs on the
// recorded device; without it all plans cost the same.
func (b *Backend) PriceBy(price func(*symtile.Program, kernels.Device) (kernels.Pricer, error)) {
	b.price = price
}

// Pricer prices plans by the function given to PriceBy.
func (b *Backend) Pricer(p *symtile.Program) (kernels.Pricer, error) {
	if b.price == nil {
		return kernels.SamePrice(p), nil
	}
	return b.price(p, b.device)
}

// Identity is the recorded device, its name prefixed by "replay:".
func (b *Backend) Identity() kernels.Device { return b.device }

// Device is the recorded device, as Identity is.
func (b *Backend) Device() kernels.Device { return b.device }

// of is what was recorded of the fusion of a program.
func (b *Backend) of(p *symtile.Program) (*fusion, error) {
	f := b.fusions[fmt.Sprintf("%x", p.Fusion.Fingerprint())]
	if f == nil {
		return nil, fmt.Errorf(
			"nothing is recorded of %s on %s", p.Fusion.Name, b.device.Name,
		)
	}
	return f, nil
}

// Plans yields the plans that were measured.
func (b *Backend) Plans(p *symtile.Program) iter.Seq[kernels.Plan] {
	return func(yield func(kernels.Plan) bool) {
		f, err := b.of(p)
		if err != nil {
			// Default returns the error.
			return
		}
		for _, plan := range f.plans {
			if !yield(plan) {
				return
			}
		}
	}
}

// Default is the recorded default plan.
func (b *Backend) Default(p *symtile.Program) (kernels.Plan, error) {
	f, err := b.of(p)
	if err != nil {
		return kernels.Plan{}, err
	}
	return f.standard, nil
}

// Compile finds the samples of a plan. A plan that was not recorded, or that
// failed, is rejected with the reason as a *kernels.Rejected.
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
		fusion: p.Fusion,
		plan:   plan,
		trial:  t,
	}, nil
}

// SampleQuality has the clock rates of the recorded samples.
func (b *Backend) SampleQuality() (e kernels.SampleQuality) {
	e.SetClocks(b.clocks)
	return e
}

// kernel answers with recorded times.
type kernel struct {
	b      *Backend
	fusion *hlo.Computation
	plan   kernels.Plan
	trial  trial
	// next is the index of the sample that the next run reports.
	next int
	// known are the latest results, oldest first.
	known []answer
}

// answer is the results of the reference for some inputs.
type answer struct{ in, out []kernels.Buffer }

// maxAnswers is the number of answers that are kept: a benchmark uses up to eight
// sets of inputs in turn.
const maxAnswers = 10

// Source describes the recording instead of generated code.
func (k *kernel) Source() string {
	return fmt.Sprintf(
		"plan %s: %d recorded samples; the results are the reference's\n",
		k.plan, len(k.trial.Samples),
	)
}

// Close has no effect.
func (k *kernel) Close() error { return nil }

// Run computes the results by the reference, once for the same inputs, and
// reports the time of the next sample.
func (k *kernel) Run(
	ctx context.Context, in, out []kernels.Buffer,
) (time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	results, err := k.results(in)
	if err != nil {
		return 0, err
	}
	for n := range out {
		copy(out[n].Data, results[n].Data)
	}
	return time.Duration(k.take().Seconds * float64(time.Second)), nil
}

// take returns the next sample, and starts over after the last.
func (k *kernel) take() (t kernels.Timing) {
	t.Seconds = k.trial.Samples[k.next]
	if len(k.trial.Clocks) > 0 {
		t.Hertz = k.trial.Clocks[k.next]
	}
	k.next = (k.next + 1) % len(k.trial.Samples)
	return t
}

// Sample is the mean of the next n samples, and of their clock rates if all are
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

// results are those of the reference. They are kept for arrays that are used
// again, whose contents are assumed not to change.
func (k *kernel) results(in []kernels.Buffer) ([]kernels.Buffer, error) {
	for _, a := range k.known {
		if same(a.in, in) {
			return a.out, nil
		}
	}
	out, err := reference.Interpret(k.fusion, in)
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

// same reports whether two lists consist of the same arrays.
func same(x, y []kernels.Buffer) bool {
	return slices.EqualFunc(x, y, func(a, b kernels.Buffer) bool {
		return len(a.Data) == len(b.Data) &&
			unsafe.SliceData(a.Data) == unsafe.SliceData(b.Data)
	})
}
