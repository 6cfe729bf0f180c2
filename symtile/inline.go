package symtile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/indexing"
)

// inline returns c without nested fusions, calls, maps of one operation, and
// tuples that are taken apart again; c itself when there are none. Names of
// inlined instructions are prefixed by their caller's. The error is an
// *Untileable: a map of several operations, or a computation that is too large.
func inline(c *hlo.Computation) (*hlo.Computation, error) {
	flat, err := flatten(c)
	if err != nil {
		return nil, err
	}
	return flat, requireSize(flat)
}

// requireSize is indexing.CheckSize with an error of this package.
func requireSize(c *hlo.Computation) error {
	var large *indexing.TooLarge
	if errors.As(indexing.CheckSize(c), &large) {
		return &Untileable{
			Instr:  large.Instr,
			Rule:   "too-large",
			Reason: large.Reason,
		}
	}
	return nil
}

// flatten copies c with everything nested inlined.
func flatten(c *hlo.Computation) (*hlo.Computation, error) {
	if !hasNested(c) {
		return c, nil
	}
	in := &inliner{out: &hlo.Computation{Name: c.Name}}
	in.out.Instrs = append(in.out.Instrs, c.Params...)
	in.out.Params = c.Params
	root, err := in.computation(c, c.Params, "")
	in.out.Root = root
	return in.out, err
}

// hasNested reports whether c has an instruction that flatten takes apart. The
// elements of a variadic reduce stay as they are.
func hasNested(c *hlo.Computation) bool {
	for _, i := range c.Instrs {
		switch i.Op {
		case hlo.OpFusion, hlo.OpCall, hlo.OpMap:
			return true
		case hlo.OpGetTupleElement:
			if i.Operands[0].Op != hlo.OpReduce {
				return true
			}
		}
		if callsIn(i.Attrs.ToApply) {
			return true
		}
	}
	return false
}

// callsIn reports whether a computation that is applied to elements calls others, as
// JAX's jnp.where does.
func callsIn(c *hlo.Computation) bool {
	return c != nil && slices.ContainsFunc(c.Instrs, func(i *hlo.Instr) bool {
		return i.Op == hlo.OpFusion || i.Op == hlo.OpCall
	})
}

// maxVisited bounds the instructions that inlining visits: calls of calls
// double with each level, 60 of which would never end.
const maxVisited = 1 << 20

// maxPrefix bounds the bytes of the callers' names before the name of an inlined
// instruction; beyond them a number stands for the callers.
const maxPrefix = 256

// An inliner appends the instructions of nested computations to out.
type inliner struct {
	out *hlo.Computation
	// Instructions visited, and computations inlined, so far.
	visited, inlined int
}

// applied is a computation that is applied to elements, with its calls inlined.
func (in *inliner) applied(c *hlo.Computation) (*hlo.Computation, error) {
	if !callsIn(c) {
		return c, nil
	}
	own := &inliner{
		out: &hlo.Computation{
			Name: c.Name, Params: c.Params,
			Instrs: slices.Clone(c.Params),
		},
		visited: in.visited,
	}
	root, err := own.computation(c, c.Params, "")
	in.visited = own.visited
	own.out.Root = root
	return own.out, err
}

// computation copies c with its parameters bound to args and returns its root.
func (in *inliner) computation(
	c *hlo.Computation, args []*hlo.Instr, prefix string,
) (*hlo.Instr, error) {
	value := make(
		map[*hlo.Instr]*hlo.Instr,
		len(c.Instrs),
	)
	for k, p := range c.Params {
		value[p] = args[k]
	}
	for _, i := range c.Instrs {
		if i.Op == hlo.OpParameter {
			continue
		}
		if in.visited++; in.visited > maxVisited {
			return nil, &Untileable{
				Instr:  i,
				Rule:   "too-large",
				Reason: fmt.Sprintf("inlining its callers visits more than %d instructions", maxVisited),
			}
		}
		operands := make([]*hlo.Instr, len(i.Operands))
		for k, o := range i.Operands {
			operands[k] = value[o]
		}
		v, err := in.instr(i, operands, prefix)
		if err != nil {
			return nil, err
		}
		value[i] = v
	}
	return value[c.Root], nil
}

// instr copies one instruction, or inlines it, and returns what has its value.
func (in *inliner) instr(
	i *hlo.Instr, operands []*hlo.Instr, prefix string,
) (*hlo.Instr, error) {
	if i.Op == hlo.OpFusion || i.Op == hlo.OpCall {
		in.inlined++
		name := prefix + i.Name + "/"
		if len(name) > maxPrefix {
			name = fmt.Sprintf("%s…%d/", name[:maxPrefix/2], in.inlined)
		}
		return in.computation(i.Attrs.Calls, operands, name)
	}
	copied := *i
	copied.Name = prefix + i.Name
	copied.Operands = operands
	applied, err := in.applied(i.Attrs.ToApply)
	if err != nil {
		return nil, err
	}
	copied.Attrs.ToApply = applied
	switch i.Op {
	case hlo.OpGetTupleElement:
		switch operands[0].Op {
		case hlo.OpTuple:
			return operands[0].Operands[i.Attrs.Index], nil
		case hlo.OpParameter, hlo.OpGetTupleElement:
			return nil, refuse(
				i, "tuple-parameter",
				"%s is part of a parameter that is a tuple; arrays have to be parameters of their own",
				cmp.Or(operands[0].Name, "its operand"),
			)
		}
	case hlo.OpMap:
		op, ok := singleOp(applied)
		if !ok {
			return nil, &Untileable{
				Instr:  i,
				Rule:   "map",
				Reason: refusalReason(hlo.OpMap),
			}
		}
		copied.Op = op.Op
		copied.Attrs = op.Attrs
	}
	in.out.Instrs = append(in.out.Instrs, &copied)
	return &copied, nil
}

// singleOp finds the one elementwise operation that a scalar computation is
// made of, when it takes the parameters in order: the operation that a map
// applies.
func singleOp(c *hlo.Computation) (*hlo.Instr, bool) {
	root := c.Root
	if !root.Op.Elementwise() ||
		len(root.Operands) != len(c.Params) {
		return nil, false
	}
	for k, o := range root.Operands {
		if o != c.Params[k] {
			return nil, false
		}
	}
	return root, true
}
