package kernels

import (
	"context"
	"iter"
	"time"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A Device is what a backend reports about the machine it drives.
type Device struct {
	Name                        string            // stable across runs, part of the cache key: "cpu:AMD EPYC 7763 2c"
	Backend                     string            // "cpu"
	Revision                    string            // code-generation revision of the backend: exact context (D11)
	Safe                        map[string]string // driver version and the like: safe context (D11)
	Lanes                       int               // cores or SMs
	FLOPS                       float64           // f32 peak of the whole device, flop/s
	Matrix                      float64           `json:",omitempty"` // peak of its matrix units at the type that is fastest, flop/s; 0: it has none
	Levels                      []Level           // memory, innermost first; the last is main memory
	VectorBits, VectorRegisters int               // of a CPU core: bits of the widest vector, and how many of them it names; 0: not known, or none
	Untimed                     bool              // it runs kernels but cannot time them (a simulator): Run returns 0, and plans are chosen by the cost model
}

// A Level is one level of memory. Bytes 0 means unbounded.
type Level struct {
	Name      string
	Bytes     int64   // capacity, per lane when Shared is false
	Shared    bool    // shared by all lanes
	Lanes     int     `json:",omitempty"` // that share one, where Shared; 0: all of the device
	Bandwidth float64 // bytes/s, of all lanes together
}

// SharedBy is how many lanes of a device of so many share one.
func (l Level) SharedBy(lanes int) int {
	switch {
	case !l.Shared:
		return 1
	case l.Lanes > 0:
		return min(l.Lanes, max(1, lanes))
	}
	return max(1, lanes)
}

// A Backend turns a tiled program into something that runs.
type Backend interface {
	// Identity is the device without what has to be measured (FLOPS and
	// bandwidths are 0). It costs nothing: a lookup needs no more.
	Identity() Device
	// Device is the whole description; the first call may measure.
	Device() Device
	// Plans yields the legal and sensible plans of a symbolic program.
	Plans(*symtile.Program) iter.Seq[Plan]
	// Default is the plan used when nothing was tuned; it is legal.
	Default(*symtile.Program) (Plan, error)
	// Compile takes the symbolic program. A plan it can't run is a *Rejected.
	Compile(context.Context, *symtile.Program, Plan) (Kernel, error)
}

// A Kernel is a compiled plan. Run is called from one goroutine at a time.
type Kernel interface {
	Source() string // what runs, for people
	// Run executes once and returns the device's own time for it, without
	// transfers. in are the parameters in order, out one buffer per root.
	Run(ctx context.Context, in, out []Buffer) (time.Duration, error)
	Close() error
}

// Rejected says why a plan is not run.
type Rejected struct {
	Plan   Plan
	Reason string
}

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
