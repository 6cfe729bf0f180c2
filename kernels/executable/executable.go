package executable

import (
	"context"
	"fmt"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Options of Compile. The zero value runs default plans.
type Options struct {
	// Plan is the plan of a fusion, if one is known. A fusion without one, or
	// whose plan cannot run, takes the backend's default. Nil: none is known.
	Plan func(*hlo.Computation) (plan kernels.Plan, known bool, err error)
	// Packed is a fusion in place of another one, of which one parameter is the same
	// in every run and packed once; false where there is none. Nil: there is none.
	Packed func(*hlo.Computation) (Packed, bool)
	// Interpret leaves everything to the reference, which is the oracle.
	Interpret bool
	// Perturb, if it is not 0, is the seed of roundings that go another way in what the
	// reference computes (reference.Perturbed), also of what decides control flow.
	Perturb int64
	// Apart launches each kernel by itself, where the backend would start several at once.
	Apart bool
	// KeepNothing makes everything anew in each round of a loop.
	KeepNothing bool
}

// A Packed is a fusion that takes one parameter of another one in another layout.
type Packed struct {
	Fusion *hlo.Computation
	Plan   kernels.Plan
	// Parameter is the number of the parameter, and Move its array in the layout that
	// Fusion takes. It is called once for each array of the caller and each constant;
	// the array must not change afterwards.
	Parameter int
	Move      func(kernels.Buffer) kernels.Buffer
}

// An Executable is a compiled module. It is used by one goroutine at a time.
type Executable struct {
	entry *program
	pool  pool
	// result is that of the last run, until it is given back.
	result value
	// launches are those of kernels since Compile.
	launches int64
	// compiler keeps the kernels, which Close closes.
	compiler *compiler
}

// A Unit is one thing that an executable runs: a kernel, or an instruction that
// the reference interprets.
type Unit struct {
	// Name of the fusion, or of the instruction outside of fusions.
	Name string
	// Computation that is run.
	Computation *hlo.Computation
	// Plan of the kernel as text; empty for what is interpreted.
	Plan string
	// Stored says that the plan is one that Options.Plan gave.
	Stored bool
	// Packed is the name of the parameter that is packed once; "" of none.
	Packed string
	// Reason why it is interpreted, or does not run its stored plan.
	Reason string
	// Runs counts the executions since Compile, and Time is their total time.
	Runs int64
	Time time.Duration
}

// Memory is what the arrays of runs take, in bytes.
type Memory struct {
	// Allocated is what was allocated for values since Compile; inputs are the
	// caller's.
	Allocated int64
	// Values is the size of all values that were made, which is what they would
	// take without reuse.
	Values int64
}

// Compile compiles what m runs for a backend. What has no kernel is left to the
// reference, with the reason in its Unit; that the reference does not compute
// it, either, is an error of Run.
func Compile(
	ctx context.Context, m *hlo.Module, b kernels.Backend, o Options,
) (*Executable, error) {
	c := &compiler{
		ctx: ctx, backend: b, options: o,
		programs: map[*hlo.Computation]*program{},
		units:    map[*hlo.Computation]*unit{},
		kernels:  map[[32]byte]*unit{},
		bodies:   loopBodies(m),
		entry:    m.Entry,
	}
	entry, err := c.program(m.Entry)
	if err != nil {
		c.close()
		return nil, err
	}
	e := &Executable{entry: entry, compiler: c}
	e.result.isTuple = true
	return e, nil
}

// Close frees the kernels.
func (e *Executable) Close() error { return e.compiler.close() }

// Units lists what runs, in the order in which it was compiled. What has the
// same canonical form is one unit.
func (e *Executable) Units() []Unit {
	var all []Unit
	for _, u := range e.compiler.order {
		all = append(all, u.Unit)
	}
	return all
}

// Memory is what the values of all runs took.
func (e *Executable) Memory() Memory { return e.pool.Memory }

// Launches counts the launches of kernels since Compile. Small kernels that read nothing of
// each other are one where the backend can do that.
func (e *Executable) Launches() int64 { return e.launches }

// Run executes the module. in has a buffer for each array among the parameters,
// and the result one for each array among the outputs, both in the order of
// tuples, depth first. The buffers of in are not changed, and may be among the
// outputs where the module returns a parameter. Outputs are only read: one may be
// a constant of the module, or the same memory as another.
func (e *Executable) Run(
	ctx context.Context, in []kernels.Buffer,
) ([]kernels.Buffer, error) {
	args, err := bind(e.entry.computation, in)
	if err != nil {
		return nil, err
	}
	r := &run{ctx: ctx, pool: &e.pool, perturb: e.compiler.options.Perturb << 32}
	result, err := r.program(e.entry, args)
	e.launches += r.launches
	if err != nil {
		return nil, err
	}
	e.result = result
	var out []kernels.Buffer
	for _, leaf := range result.leaves() {
		out = append(out, leaf.buffer)
	}
	return out, nil
}

// GiveBack says that the outputs of the last run are not read any more: the next run makes
// its own in their memory. New memory is cleared by the system and by the runtime, which
// for an array of 100 MB takes as long as a product that makes it.
func (e *Executable) GiveBack() {
	e.pool.release(e.result)
	e.result = value{isTuple: true}
}

// bind makes values of the parameters from the caller's buffers.
func bind(
	c *hlo.Computation, in []kernels.Buffer,
) ([]value, error) {
	var shapes []hlo.Shape
	for _, p := range c.Params {
		shapes = append(shapes, p.Shape.Arrays()...)
	}
	if len(in) != len(shapes) {
		return nil, fmt.Errorf(
			"%s has %d arrays as parameters, %d inputs given",
			c.Name, len(shapes), len(in),
		)
	}
	for k, want := range shapes {
		if !in[k].Shape.Equal(want) {
			return nil, fmt.Errorf(
				"input %d is %s; the parameter is %s",
				k, in[k].Shape, want,
			)
		}
	}
	args := make([]value, len(c.Params))
	for k, p := range c.Params {
		args[k], in = shaped(
			p.Shape, in, &storage{},
		)
	}
	return args, nil
}

// shaped makes a value of a shape from the first buffers of a list, and returns
// the other buffers.
func shaped(
	s hlo.Shape, from []kernels.Buffer, owner *storage,
) (value, []kernels.Buffer) {
	if s.DType != hlo.Tuple {
		v := value{buffer: from[0], storage: owner}
		return v, from[1:]
	}
	v := value{
		isTuple: true,
		parts:   make([]value, len(s.Tuple)),
	}
	for k, part := range s.Tuple {
		v.parts[k], from = shaped(part, from, owner)
	}
	return v, from
}
