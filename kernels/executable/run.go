package executable

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A run is one execution of a module.
type run struct {
	ctx  context.Context
	pool *pool
	// The seed of the next perturbed evaluation; 0 without.
	perturb int64
	// Launches of kernels, of several together too.
	launches int64
}

// program executes the steps of a computation. Its result has a reference of its
// own to each of its arrays, and so has every value while it is alive.
func (r *run) program(p *program, args []value) (value, error) {
	for k, a := range args {
		args[k] = a.retained()
	}
	return r.consume(p, args)
}

// consume is program for arguments that nothing else reads: their references end with
// the last step that reads them, so that an update can take their memory.
func (r *run) consume(p *program, args []value) (value, error) {
	values := make([]value, len(p.steps))
	for _, k := range p.unread {
		r.pool.release(args[k])
	}
	for n := 0; n < len(p.steps); n++ {
		s := p.steps[n]
		if err := r.ctx.Err(); err != nil {
			return value{}, err
		}
		if s.group != nil {
			if err := r.group(p, n, values); err != nil {
				return value{}, err
			}
			n += s.group.steps - 1
			continue
		}
		operands := make([]value, len(s.operands))
		for k, o := range s.operands {
			operands[k] = values[o]
		}
		if s.instr.Op == hlo.OpParameter {
			operands = args[s.instr.Attrs.Param:][:1]
		}
		v, err := r.step(s, operands)
		switch {
		case err != nil && s.interpreted():
			return value{}, err // the reference names the instruction
		case err != nil:
			return value{}, fmt.Errorf(
				"%s (%s): %w", s.instr.Name, s.instr.Op, err,
			)
		}
		values[n], err = r.laidOut(v, s.instr.Shape)
		if err != nil {
			return value{}, err
		}
		for _, d := range s.dead {
			r.pool.release(values[d])
		}
	}
	return values[p.root], nil
}

// step executes one instruction.
func (r *run) step(s step, a []value) (value, error) {
	switch s.instr.Op {
	case hlo.OpParameter:
		return a[0], nil
	case hlo.OpOptimizationBarrier:
		return a[0].retained(), nil
	case hlo.OpConstant, hlo.OpIota:
		return s.constant.retained(), nil
	case hlo.OpAfterAll:
		return value{isTuple: true}, nil // a token holds no data
	case hlo.OpTuple:
		return value{isTuple: true, parts: a}.retained(), nil
	case hlo.OpGetTupleElement:
		if s.unit == nil {
			return a[0].parts[s.instr.Attrs.Index].retained(), nil
		}
	case hlo.OpCall:
		return r.program(s.bodies[0], a)
	case hlo.OpWhile:
		return r.while(s, a[0].retained())
	case hlo.OpConditional:
		return r.conditional(s, a)
	}
	if s.refused != nil {
		return value{}, s.refused
	}
	if s.unit == nil {
		return a[0].viewed(s.instr.Shape), nil
	}
	return r.unit(s, a)
}

// interpreted reports whether the reference computes the step.
func (s step) interpreted() bool {
	return s.unit != nil && s.unit.kernel == nil
}

// while repeats the body as long as the condition holds.
func (r *run) while(s step, state value) (value, error) {
	defer s.bodies[1].round(0)
	for n := 0; ; n++ {
		arg := []value{state}
		again, err := r.program(s.bodies[0], arg)
		if err != nil {
			return value{}, err
		}
		more := again.buffer.Data[0] != 0
		r.pool.release(again)
		if !more {
			return state, nil
		}
		s.bodies[1].round(n)
		state, err = r.consume(s.bodies[1], arg)
		if err != nil {
			return value{}, err
		}
	}
}

// conditional runs one branch: the first for true, or the one of a number, the
// last for a number out of range.
func (r *run) conditional(s step, a []value) (value, error) {
	which := a[0].buffer.Int(0)
	branches := int64(len(s.bodies))
	switch {
	case a[0].buffer.Shape.DType == hlo.Pred:
		which = 1 - which
	case which < 0 || which >= branches:
		which = branches - 1
	}
	args := a[1:]
	takes := len(s.bodies[which].computation.Params)
	if len(args) > takes {
		args = args[which : which+1]
	}
	return r.program(s.bodies[which], args)
}

// unit runs a kernel or the reference.
func (r *run) unit(s step, a []value) (value, error) {
	in, err := inputs(s.unit.Computation, a[:len(s.instr.Operands)])
	if err != nil {
		return value{}, err
	}
	start := time.Now()
	defer func() {
		s.unit.Runs++
		s.unit.Time += time.Since(start)
	}()
	switch {
	case s.unit.update != nil:
		return r.update(s, a, in)
	case s.unit.kernel == nil:
		return r.interpret(s, in)
	}
	in, out, made, err := r.arrays(s, a)
	if err != nil {
		return value{}, err
	}
	if x := s.unit.packed; x != nil {
		in[x.Parameter] = s.packed(in[x.Parameter])
	}
	r.launches++
	kernel := s.unit.kernel
	if s.keeper != nil && s.keeper.again {
		kernel = s.keeper.kernel
	}
	_, err = kernel.Run(r.ctx, in, out)
	if err != nil {
		return value{}, err
	}
	return assembled(s.instr.Shape, &made), nil
}

// arrays are the operands and the results of a step as its kernel takes them, complex
// numbers as their parts, and the results as values.
func (r *run) arrays(s step, a []value) (in, out []kernels.Buffer, made []value, err error) {
	a, behind := a[:len(s.instr.Operands)], a[len(s.instr.Operands):]
	if in, err = inputs(s.unit.Computation, a); err != nil {
		return nil, nil, nil, err
	}
	for k := range in {
		in[k] = in[k].Parts()
	}
	for k, shape := range kernels.OutputShapes(s.unit.Computation) {
		v, there := s.place.of(k, shape, behind)
		if !there {
			v, err = r.pool.buffer(shape)
		}
		if err != nil {
			return nil, nil, nil, err
		}
		made = append(made, v)
		out = append(out, v.buffer.Parts())
	}
	return in, out, made, nil
}

// packed is an array as the kernel of the step takes it, packed once if it is steady.
func (s step) packed(in kernels.Buffer) kernels.Buffer {
	if !s.steady || len(in.Data) == 0 {
		return s.unit.packed.Move(in)
	}
	at := &in.Data[0]
	out, ok := s.unit.moved[at]
	if !ok {
		out = s.unit.packed.Move(in)
		s.unit.moved[at] = out
	}
	return out
}

// inputs are the arrays of the operands, in the shapes of the parameters.
func inputs(
	c *hlo.Computation, a []value,
) ([]kernels.Buffer, error) {
	var in []kernels.Buffer
	for k, v := range a {
		if v.isTuple {
			return nil, noArray(c.Root, k)
		}
		got, want := v.buffer.Shape, c.Params[k].Shape
		if !got.Equal(want) {
			return nil, fmt.Errorf(
				"operand %d is %s; the parameter is %s",
				k, got, want,
			)
		}
		in = append(in, v.buffer)
	}
	return in, nil
}

// noArray is the error of an instruction whose operand k is a tuple or a token, which only
// control flow takes: that of the operation where nothing computes it.
func noArray(i *hlo.Instr, k int) error {
	why := fmt.Sprintf("operand %d is a tuple, which only control flow takes here", k)
	if not := cmp.Or(i.Unknown(), i.Op.Not(hlo.Reference)); not != "" {
		why = "the reference does not compute this operation: " + not
	}
	return fmt.Errorf("%s (%s): %s", i.Name, i.Op, why)
}

// interpret runs the reference.
func (r *run) interpret(
	s step, in []kernels.Buffer,
) (value, error) {
	out, err := r.reference(s.unit.Computation, in)
	if err != nil {
		return value{}, err
	}
	made := make([]value, len(out))
	for k, b := range out {
		made[k] = r.pool.adopt(b)
	}
	return assembled(s.instr.Shape, &made), nil
}

// reference evaluates a computation, with other roundings in each execution if the
// executable is to.
func (r *run) reference(
	c *hlo.Computation, in []kernels.Buffer,
) ([]kernels.Buffer, error) {
	if r.perturb == 0 {
		return reference.InterpretContext(r.ctx, c, in)
	}
	r.perturb++
	return reference.Perturbed(r.ctx, c, in, r.perturb)
}

// assembled makes a value of a shape from the first arrays of a list, which it
// takes off.
func assembled(s hlo.Shape, from *[]value) value {
	if s.DType != hlo.Tuple {
		v := (*from)[0]
		*from = (*from)[1:]
		return v
	}
	v := value{isTuple: true}
	for _, part := range s.Tuple {
		v.parts = append(v.parts, assembled(part, from))
	}
	return v
}
