package kernels

import (
	"context"
	"iter"
	"time"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A Device is what a backend reports about the machine that it drives.
type Device struct {
	// Name is the same in all runs and is part of the key of winners: "cpu:AMD EPYC
	// 7763 2c".
	Name string
	// Backend is the name of the backend: "cpu".
	Backend string
	// Revision is the revision of the backend's code generator. It is exact context:
	// winners of another revision do not apply.
	Revision string
	// Safe is the version of the driver and the like. It is safe context: with another
	// value winners stay legal, and only their times are in doubt.
	Safe map[string]string
	// Unread says which entries of Safe could not be read, and why.
	Unread string `json:",omitempty"`
	// Lanes is the number of cores or SMs.
	Lanes int
	// FLOPS is the peak rate of f32 of the whole device, in flop/s.
	FLOPS float64
	// Matrix is the peak rate of products of the fastest type, in flop/s: of the matrix
	// units, or of integers in the vectors of a CPU; 0 where it is not known.
	Matrix float64 `json:",omitempty"`
	// Quiet is set where the rates were measured for long on a quiet machine, by code as
	// fast as that of kernels.
	Quiet bool `json:",omitempty"`
	// Levels of memory are listed innermost first; the last is main memory.
	Levels []Level
	// VectorBits is the width of the widest vector of a CPU core, and VectorRegisters
	// the number of such registers; 0 where it is not known, or there are none.
	VectorBits, VectorRegisters int
	// Untimed is set for devices that run kernels but cannot time them (simulators):
	// Run returns 0, and plans are chosen by the cost model.
	Untimed bool
}

// A Level is one level of memory. Bytes 0 means unbounded.
type Level struct {
	Name string
	// Bytes is the capacity, of each lane where Shared is false.
	Bytes int64
	// Shared is set where several lanes share one memory: Lanes of them, or all lanes
	// where Lanes is 0.
	Shared bool
	Lanes  int `json:",omitempty"`
	// Kept is the measured bytes of arrays that stay in the last cache; 0 where it was
	// not measured. A hypervisor may list a cache that a guest shares with others, or
	// that does not exist.
	Kept int64 `json:",omitempty"`
	// Bandwidth is of all lanes together, in bytes/s.
	Bandwidth float64
}

// SharedBy is the number of lanes, of a device with the given lanes, that share one
// memory.
func (l Level) SharedBy(lanes int) int {
	switch {
	case !l.Shared:
		return 1
	case l.Lanes > 0:
		return min(l.Lanes, max(1, lanes))
	}
	return max(1, lanes)
}

// A Backend compiles tiled programs for one device. Its methods may be called from one
// goroutine at a time.
type Backend interface {
	// Identity is the device without what has to be measured: FLOPS and bandwidths may
	// be 0. It is cheap, and enough for a lookup.
	Identity() Device
	// Device is the whole description. The first call may measure, which can take
	// seconds.
	Device() Device
	// Plans yields legal plans of a symbolic program that are worth trying, the best
	// by the backend's own estimate first. It yields nothing more once the context has
	// ended.
	Plans(context.Context, *symtile.Program) iter.Seq[Plan]
	// Default is a legal plan for use without tuning. The error is the cause of a
	// context that ended before.
	Default(context.Context, *symtile.Program) (Plan, error)
	// Compile compiles a symbolic program with a plan. A plan that cannot run is a
	// *Rejected.
	Compile(context.Context, *symtile.Program, Plan) (Kernel, error)
}

// A Kernel is a compiled plan. Run is called from one goroutine at a time.
type Kernel interface {
	// Source is the generated code, for people.
	Source() string
	// Run executes the kernel once and returns the device's own time for it, without
	// transfers. in are the parameters in order, and out has one buffer for each
	// result, in tuple order.
	Run(ctx context.Context, in, out []Buffer) (time.Duration, error)
	// Close frees what the kernel holds.
	Close() error
}

// A Rejected is the error for a plan that cannot run.
type Rejected struct {
	Plan   Plan
	Reason string
}

// Error names the plan and the reason.
func (e *Rejected) Error() string {
	return "plan " + e.Plan.String() + ": " + e.Reason
}

// OutputShapes lists the arrays a computation returns, in tuple order.
func OutputShapes(c *hlo.Computation) []hlo.Shape {
	return c.Root.Shape.Arrays()
}

// TF32 is the knob of a plan whose products of f32 take their operands rounded
// to tf32: 10 bits of fraction, what tensor cores multiply. It is offered, and
// checked with a tolerance of its own, only where the user allows it: TF32Backend.
const TF32 = "tf32"
