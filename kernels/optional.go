package kernels

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/hlo/packing"
)

// A SampleObserver is a Backend that observes its own device while kernels are
// timed: the clock of each sample, and the time of a reference kernel that is
// always the same. The tuner stores what it observed with each winner.
type SampleObserver interface {
	Backend
	// SampleQuality sums up all samples since the device was opened. It is the
	// zero value where nothing was observed.
	SampleQuality() SampleQuality
}

// A SheetBackend is a Backend whose prices are made of a device sheet.
type SheetBackend interface {
	Backend
	// SheetJSON is the sheet, one line of JSON, without the sources of its numbers.
	SheetJSON() json.RawMessage
}

// A TF32Backend is a Backend whose device multiplies operands of f32 rounded to
// tf32 faster than exact ones. It offers plans that do so (knob TF32) only after
// the user has allowed it.
type TF32Backend interface {
	Backend
	// AllowTF32 makes Plans offer plans with the knob TF32 = 1. It appends TF32Mark
	// to the revision of the backend's identity, so that winners with rounded
	// operands are stored apart from exact ones.
	AllowTF32()
}

// An OfferingBackend is a Backend that knows what it leaves out of Plans.
type OfferingBackend interface {
	Backend
	// Offer is the plans that Plans yields, with what is known of the others.
	Offer(context.Context, *symtile.Program) (Offer, error)
}

// An Offer is the plans that a backend would try.
type Offer struct {
	Plans []Plan // the first by the backend's price first
	// Legal is the number of legal plans, however many of them are offered: tilings that the
	// device can run, each with the settings of knobs that are worth a try with it. With
	// MoreLegal there are at least so many: not all tilings were looked at. It is 0 where
	// nothing was counted.
	Legal     int64
	MoreLegal bool
	// Proven is how many of Plans, the first ones, are proven to be the cheapest of all legal
	// plans by the backend's price.
	Proven int
}

// OfferOf is what a backend offers. It is empty where there is nothing, or the context has
// ended; Default says why.
func OfferOf(ctx context.Context, b Backend, p *symtile.Program) Offer {
	if x, ok := b.(OfferingBackend); ok {
		offer, err := x.Offer(ctx, p)
		if err != nil {
			return Offer{}
		}
		return offer
	}
	return Offer{Plans: slices.Collect(b.Plans(ctx, p))}
}

// TF32Mark ends the revision of a device whose user allows products of f32 to
// round their operands to tf32.
const TF32Mark = "+" + TF32

// TF32Allowed reports whether the user allowed products of f32 to round their
// operands to tf32 on the device.
func (d Device) TF32Allowed() bool { return strings.HasSuffix(d.Revision, TF32Mark) }

// A PackingBackend is a Backend whose kernels may read an operand faster where it is
// packed.
type PackingBackend interface {
	Backend
	// Pack is how its kernels would have a parameter of a fusion packed, as tensor.pack
	// does it; false where they gain nothing, as far as can be said without measuring.
	Pack(f *hlo.Computation, parameter int) (packing.Pack, bool)
}

// A GroupingBackend is a Backend that starts several kernels at once, which is worth it
// where each takes little longer than to start it.
type GroupingBackend interface {
	Backend
	// Group is a kernel of several, whose inputs and outputs are theirs, one kernel's after
	// the other's; nil where it cannot be. Some may be the same kernel. None may read what another
	// writes, and results are bit for bit those of the kernels alone. Close leaves them open.
	Group([]Kernel) Kernel
}

// A KeepingBackend is a Backend whose kernels can keep what they make of arrays that do not
// change from run to run, such as the weights in the body of a loop.
type KeepingBackend interface {
	Backend
	// CompileKeeping is Compile for runs between which the parameters of these numbers have
	// the same elements, unless Forget was called. The results are those of Compile's
	// kernel, bit for bit. It is nil where nothing would be kept.
	CompileKeeping(ctx context.Context, p *symtile.Program, plan Plan, steady []int) KeepingKernel
}

// A KeepingKernel keeps what it made of steady parameters in the first run.
type KeepingKernel interface {
	Kernel
	// Forget makes the next run the first one.
	Forget()
	// Kept is the bytes of memory that what it keeps takes from the first run on.
	Kept() int64
}

// A Deterministic is a Kernel that says whether all of its runs give the same bits
// for the same inputs: it sums in one order, whatever its threads do. What such a
// kernel computes while it is timed is compared bit for bit with what was verified; a
// kernel that does not say is compared within the tolerance.
type Deterministic interface {
	Kernel
	Deterministic() bool
}

// A RepricedKernel is a Kernel that knows more of its cost than its plan did: what its
// code takes of the device.
type RepricedKernel interface {
	Kernel
	// Reprice writes what the plan costs with this code to price, as Pricer.Price does.
	Reprice(price *Price) error
}

// A HandoverBackend is a Backend whose lanes may be near to each other at one time and far
// from each other at another.
type HandoverBackend interface {
	Backend
	// Handover is what a run on several lanes takes longer where these are far from each
	// other, in seconds.
	Handover() float64
}

// A QuietBackend is a Backend that can say whether its device has anything else to do.
type QuietBackend interface {
	Backend
	// Quiet is the share of the device that is there for a kernel on all lanes, from 0
	// to 1, as a probe of a few milliseconds finds it.
	Quiet() float64
	// Disturbance is what was counted of other work so far; it takes microseconds.
	Disturbance() Disturbance
}

// A Disturbance is time that other work took on the device, counted from some moment on.
type Disturbance struct {
	Waited time.Duration // threads of this process were ready to run and did not
	Stolen time.Duration // a hypervisor ran something else
}

// Since is what was counted since an earlier moment.
func (d Disturbance) Since(earlier Disturbance) time.Duration {
	return d.Waited - earlier.Waited + d.Stolen - earlier.Stolen
}
