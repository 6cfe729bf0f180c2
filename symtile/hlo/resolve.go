package hlo

import (
	"errors"
	"fmt"
	"slices"
)

// The last steps of reading, over the whole module: computations that attributes
// name are found, calls are checked for cycles, and every instruction for its
// shape.

// resolve ties computation names to computations and refuses recursion.
func (p *parser) resolve() error {
	for _, c := range p.callees {
		target := p.byName[c.name]
		if target == nil {
			target = p.scalarCallee(c)
		}
		if target == nil {
			return p.Fail(c.at, "there is no computation %s", c.name)
		}
		c.set(target)
	}
	return p.refuseRecursion()
}

// set ties the computation to the field that the attribute stands for. The
// condition of a while and the true branch of a conditional come first in
// Branches, wherever they are written.
func (c callee) set(target *Computation) {
	a := &c.instr.Attrs
	switch {
	case c.attr == "calls",
		c.attr == "to_apply" && c.instr.Op == OpCall:
		a.Calls = target
	case c.attr == "to_apply", c.attr == "scatter":
		a.ToApply = target
	case c.attr == "select":
		a.Select = target
	case c.attr == "condition", c.attr == "true_computation": // the first, wherever it is written
		a.Branches = slices.Insert(a.Branches, 0, target)
	default:
		a.Branches = append(a.Branches, target)
	}
}

// shorthand names scalar computations that short examples leave out.
var shorthand = map[string]Opcode{
	"add": OpAdd, "sum": OpAdd, "mul": OpMultiply, "multiply": OpMultiply, "max": OpMaximum, "maximum": OpMaximum,
	"min": OpMinimum, "minimum": OpMinimum, "and": OpAnd, "or": OpOr,
}

// scalarCallee makes the binary scalar computation a shorthand stands for.
func (p *parser) scalarCallee(c callee) *Computation {
	op, ok := shorthand[c.name]
	if !ok || c.attr != "to_apply" && c.attr != "scatter" ||
		len(c.instr.Operands) == 0 {
		return nil
	}
	scalar := Shape{
		DType: c.instr.Operands[0].Shape.DType,
	}
	name := fmt.Sprintf("%s.%s", c.name, scalar.DType)
	if made := p.byName[name]; made != nil {
		return made
	}
	a := &Instr{
		Name:  "a",
		Op:    OpParameter,
		Shape: scalar,
		Pos:   c.instr.Pos,
	}
	b := &Instr{
		Name:  "b",
		Op:    OpParameter,
		Shape: scalar,
		Pos:   c.instr.Pos,
		Attrs: Attrs{Param: 1},
	}
	root := &Instr{
		Name:     "r",
		Op:       op,
		Shape:    scalar,
		Operands: []*Instr{a, b},
		Pos:      c.instr.Pos,
	}
	made := &Computation{
		Name:   name,
		Instrs: []*Instr{a, b, root},
		Params: []*Instr{a, b},
		Root:   root,
	}
	p.byName[name] = made
	p.module.Computations = append(
		[]*Computation{made}, p.module.Computations...,
	)
	return made
}

// Callees lists the computations that an instruction names: those of its
// attributes Branches, Calls, Select and ToApply, in this order.
func (i *Instr) Callees() []*Computation {
	all := slices.Clone(i.Attrs.Branches)
	for _, c := range []*Computation{i.Attrs.Calls, i.Attrs.Select, i.Attrs.ToApply} {
		if c != nil {
			all = append(all, c)
		}
	}
	return all
}

// refuseRecursion reports a computation that calls itself, directly or not, by
// a depth-first walk of all calls.
func (p *parser) refuseRecursion() error {
	const visiting, done = 1, 2
	state := map[*Computation]int{}
	var visit func(c *Computation) error
	visit = func(c *Computation) error {
		state[c] = visiting
		for _, i := range c.Instrs {
			for _, callee := range i.Callees() {
				if state[callee] == visiting {
					return p.failAt(i, "%s calls itself through %s; that is a cycle", callee.Name, i.Name)
				}
				if state[callee] == 0 {
					if err := visit(callee); err != nil {
						return err
					}
				}
			}
		}
		state[c] = done
		return nil
	}
	for _, c := range p.module.Computations {
		if state[c] == 0 {
			if err := visit(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// validate applies the shape rule of each instruction. What XLA takes and is not read
// here is forgotten.
func (p *parser) validate() error {
	for _, c := range p.module.Computations {
		for _, i := range c.Instrs {
			err := i.check()
			unread := unreadError{}
			switch {
			case err == nil:
			case errors.As(err, &unread):
				i.forget(unread.Error())
			case i.mixed():
				i.forget("operands of floating-point types that differ are not read")
			default:
				return p.failAt(i, "%v", err)
			}
		}
	}
	return nil
}

// mixed reports whether the shape rule of i is broken by floating-point types only, which
// XLA lets differ where its verifier allows mixed precision.
func (i *Instr) mixed() bool {
	if !i.Shape.DType.IsFloat() {
		return false
	}
	trial := *i
	trial.Operands = make([]*Instr, len(i.Operands))
	for k, o := range i.Operands {
		same := *o
		if same.Shape.DType.IsFloat() {
			same.Shape.DType = i.Shape.DType
		}
		trial.Operands[k] = &same
	}
	return trial.check() == nil
}

// check applies the shape rule of the instruction's operation.
func (i *Instr) check() error {
	row := opTable[i.Op]
	if row.check == nil {
		return nil
	}
	if i.Op != OpTuple && i.Op != OpGetTupleElement &&
		i.Op != OpFusion && i.Op != OpCall &&
		i.Op != OpOptimizationBarrier && i.Op != OpCopy {
		for _, o := range i.Operands {
			if !o.Shape.DType.IsArray() {
				return fmt.Errorf(
					"%s cannot take %s, which is %s", i.Op, o.Name, o.Shape,
				)
			}
		}
	}
	return row.check(i)
}

// Validate checks every shape rule of c. Parse has done it for what it returns.
func (c *Computation) Validate() error {
	for _, i := range c.Instrs {
		if err := i.check(); err != nil {
			return fmt.Errorf("%s: %w", i.Name, err)
		}
	}
	return nil
}
