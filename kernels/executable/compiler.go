package executable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/hlo/inplace"
)

// A compiler makes the programs of a module.
type compiler struct {
	ctx      context.Context
	backend  kernels.Backend
	options  Options
	programs map[*hlo.Computation]*program
	// units are found by computation, and kernels by what they compute.
	units   map[*hlo.Computation]*unit
	kernels map[[32]byte]*unit
	order   []*unit
	// groupKernels are those of steps that are launched together.
	groupKernels []kernels.Kernel
	// bodies are those of loops; keepers are the kernels in them that keep something, which
	// takes so many bytes.
	bodies    map[*hlo.Computation]bool
	keepers   []*keeper
	keptBytes int64
	entry     *hlo.Computation
	effects   hlo.Effects
}

// A unit is a Unit with its kernel; kernel is nil for what is interpreted.
type unit struct {
	Unit
	kernel kernels.Kernel
	// grouped says that the kernel may be launched with others.
	grouped bool
	// update computes what is outside of fusions and writes a part of an array; nil for
	// all else.
	update update
	// What is packed for the kernel, and what was packed, by the address of the array.
	packed *Packed
	moved  map[*byte]kernels.Buffer
}

// A program is a computation whose instructions are steps.
type program struct {
	computation *hlo.Computation
	steps       []step
	// root is the number of the step whose value is the result.
	root int
	// unread are the parameters that no step stands for.
	unread []int
	// keepers are those of the steps of a loop's body.
	keepers []*keeper
}

// A step is one instruction. Its value has the number of the step.
type step struct {
	instr    *hlo.Instr
	operands []int
	// dead are the values that nothing reads after this step.
	dead []int
	// unit is what computes the value, unless the operation only moves references
	// or is control flow.
	unit *unit
	// steady says that the array that is packed for the unit is one of the caller, or
	// a constant: it keeps its address and its elements.
	steady bool
	// bodies are the programs of control flow and calls.
	bodies []*program
	// constant is the value of an instruction that has no operands.
	constant *value
	// refused is the error of a run that comes to an instruction with a side effect.
	refused error
	// group runs this step and those behind it together; nil for most.
	group *group
	// keeper runs the step in the later rounds of a loop; nil for most.
	keeper *keeper
	// place is where a result is written in an array; nil for most. The array and the starts
	// are operands behind those of the instruction.
	place *place
	// placed says that the slice of an update may be where it ends.
	placed bool
}

// close frees the kernels; the error is the first one.
func (c *compiler) close() error {
	var all []error
	for _, g := range c.groupKernels {
		all = append(all, g.Close())
	}
	for _, k := range c.keepers {
		all = append(all, k.kernel.Close())
	}
	for _, u := range c.kernels {
		if u.kernel != nil {
			all = append(all, u.kernel.Close())
		}
	}
	return errors.Join(all...)
}

// program compiles a computation, once.
func (c *compiler) program(of *hlo.Computation) (*program, error) {
	if p := c.programs[of]; p != nil {
		return p, nil
	}
	p := &program{
		computation: of,
		steps:       make([]step, len(of.Instrs)),
	}
	c.programs[of] = p
	for n, i := range partsFirst(of.Instrs) {
		s, err := c.step(i)
		if err != nil {
			return nil, err
		}
		p.steps[n] = s
	}
	if c.bodies[of] {
		c.keep(p)
	}
	c.group(p)
	number := make(map[*hlo.Instr]int, len(of.Instrs))
	for n := range p.steps {
		s := &p.steps[n]
		for _, o := range s.instr.Operands {
			s.operands = append(s.operands, number[o])
		}
		number[s.instr] = n
	}
	p.root = number[of.Root]
	for k, param := range of.Params {
		if _, read := number[param]; !read {
			p.unread = append(p.unread, k)
		}
	}
	p.placeSlices(number)
	p.setDead()
	return p, nil
}

// partsFirst are instructions with the parameters and their parts in front, so that a
// tuple ends before its parts do: an update can take the memory of a part that nothing
// else reads. Constants are in front, too: where a slice begins is known before it is made.
func partsFirst(all []*hlo.Instr) []*hlo.Instr {
	rank := func(i *hlo.Instr) int {
		switch {
		case i.Op == hlo.OpParameter:
			return 0
		case i.Op == hlo.OpGetTupleElement && i.Operands[0].Op == hlo.OpParameter,
			i.Op == hlo.OpConstant:
			return 1
		}
		return 2
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b *hlo.Instr) int { return rank(a) - rank(b) })
	return sorted
}

// setDead finds the last step that reads each value. The value of the root
// lives on.
func (p *program) setDead() {
	last := make([]int, len(p.steps))
	for n, s := range p.steps {
		last[n] = n
		for _, o := range s.operands {
			last[o] = n
		}
	}
	for n, at := range last {
		if n != p.root {
			s := &p.steps[at]
			s.dead = append(s.dead, n)
		}
	}
}

// step compiles one instruction.
func (c *compiler) step(i *hlo.Instr) (step, error) {
	s := step{instr: i}
	switch i.Op {
	case hlo.OpParameter, hlo.OpTuple, hlo.OpAfterAll,
		hlo.OpGetTupleElement, hlo.OpOptimizationBarrier:
		return s, nil
	case hlo.OpWhile, hlo.OpConditional, hlo.OpCall:
		for _, callee := range i.Callees() {
			body, err := c.program(callee)
			if err != nil {
				return s, err
			}
			s.bodies = append(s.bodies, body)
		}
		return s, nil
	case hlo.OpConstant, hlo.OpIota:
		made, err := reference.InterpretContext(
			c.ctx, alone(i), nil,
		)
		if err != nil {
			return s, fmt.Errorf(
				"%s (%s): %w", i.Name, i.Op, err,
			)
		}
		s.constant = &value{
			buffer:  made[0],
			storage: &storage{},
		}
		return s, nil
	}
	if inplace.IsView(i) {
		return s, nil
	}
	if c.effects.Of(i) == i {
		what := cmp.Or(i.Text("custom_call_target"), "it")
		s.refused = fmt.Errorf("%s has a side effect, which is not made here: %s", what, symtile.UntileableReason(i))
		return s, nil
	}
	s.unit = c.unit(i)
	if x := s.unit.packed; x != nil {
		s.steady = c.steady(i.Operands[x.Parameter])
	}
	return s, nil
}

// steady reports whether an array is a parameter of the entry or a constant, or a view
// of one.
func (c *compiler) steady(i *hlo.Instr) bool {
	for inplace.IsView(i) {
		i = i.Operands[0]
	}
	return i.Op == hlo.OpConstant || slices.Contains(c.entry.Params, i)
}

// alone is a computation of one instruction, whose operands are its parameters.
func alone(i *hlo.Instr) *hlo.Computation {
	root := *i
	root.Operands = make([]*hlo.Instr, len(i.Operands))
	c := &hlo.Computation{Name: i.Name}
	for k, o := range i.Operands {
		p := &hlo.Instr{
			Name:  fmt.Sprintf("operand.%d", k),
			Op:    hlo.OpParameter,
			Shape: o.Shape,
		}
		p.Attrs.Param = k
		root.Operands[k] = p
		c.Params = append(c.Params, p)
		c.Instrs = append(c.Instrs, p)
	}
	c.Instrs = append(c.Instrs, &root)
	c.Root = &root
	return c
}

// largeBytes is the size from which an instruction outside of fusions is worth a
// kernel of its own.
const largeBytes = 16 << 10

// unit compiles a fusion, or an instruction as one.
func (c *compiler) unit(i *hlo.Instr) *unit {
	of := i.Attrs.Calls
	small := false
	if i.Op != hlo.OpFusion {
		of = alone(i)
		small = bytesOf(of) < largeBytes
	}
	if u := c.units[of]; u != nil {
		return u
	}
	u := &unit{Unit: Unit{
		Name:        of.Name,
		Computation: of,
	}}
	u.update = updateOf(i)
	switch {
	case c.options.Interpret:
		u.Reason, u.update = "it was asked for", nil
	case u.update != nil:
		u.Reason = "it writes a part of an array"
	case small:
		u.Reason = "it is small, and in no fusion"
	default:
		u = c.compiled(u)
	}
	c.units[of] = u
	if u.Computation == of {
		c.order = append(c.order, u)
	}
	return u
}

// bytesOf is what the arrays of a computation's parameters and results take.
func bytesOf(c *hlo.Computation) (n int64) {
	for _, s := range append(c.ParamShapes(), c.Root.Shape) {
		for _, a := range s.Arrays() {
			n += a.Bytes()
		}
	}
	return n
}

// compiled is u with a kernel, or another unit that computes the same.
func (c *compiler) compiled(u *unit) *unit {
	print := u.Computation.Fingerprint()
	if same := c.kernels[print]; same != nil {
		return same
	}
	c.kernels[print] = u
	p, err := symtile.Analyze(c.ctx, u.Computation)
	if err != nil {
		u.Reason = err.Error()
		return u
	}
	if c.compilePacked(u) {
		return u
	}
	if done := c.compileStored(u, p); done {
		return u
	}
	plan, err := c.backend.Default(c.ctx, p)
	if err != nil {
		u.Reason = err.Error()
		return u
	}
	c.compile(u, p, plan)
	return u
}

// compileStored gives u the kernel of the plan that is known for it, or the reason why it
// has none; false where its default plan is to be taken.
func (c *compiler) compileStored(u *unit, p *symtile.Program) bool {
	if c.options.Plan == nil {
		return false
	}
	plan, ok, err := c.options.Plan(u.Computation)
	if err != nil {
		u.Reason = err.Error()
		return true
	}
	u.Stored = ok && c.compile(u, p, plan)
	return u.Stored
}

// compilePacked gives u the kernel that reads a parameter packed; false without one.
func (c *compiler) compilePacked(u *unit) bool {
	if c.options.Packed == nil {
		return false
	}
	x, ok := c.options.Packed(u.Computation)
	if !ok {
		return false
	}
	p, err := symtile.Analyze(c.ctx, x.Fusion)
	if err != nil || !c.compile(u, p, x.Plan) {
		return false
	}
	u.Stored, u.packed, u.grouped = true, &x, false
	u.Packed = u.Computation.Params[x.Parameter].Name
	u.moved = map[*byte]kernels.Buffer{}
	return true
}

// compile gives u the kernel of a plan, or the reason why that does not run.
func (c *compiler) compile(
	u *unit, p *symtile.Program, plan kernels.Plan,
) bool {
	k, err := c.backend.Compile(c.ctx, p, plan)
	if err != nil {
		u.Reason = err.Error()
		return false
	}
	u.kernel, u.Plan = k, plan.String()
	u.grouped = c.groups(u)
	return true
}
