package reference

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// minLanes is the number of results of a reduction from which its computation is
// evaluated on arrays of them: below it, the arrays cost more than they save.
const minLanes = 8

// lanes are a computation of scalars that is evaluated on arrays, one element for each
// result of a reduction, with arrays in place of its constants.
type lanes struct {
	c         *hlo.Computation
	constants []value
}

// lanesOf rewrites a computation of scalars for arrays of some extents; ok is false if
// it has operations that are not elementwise.
func (e *evaluation) lanesOf(c *hlo.Computation, dims []int64) (l lanes, ok bool, err error) {
	l.c = &hlo.Computation{Name: c.Name, Params: make(
		[]*hlo.Instr,
		len(c.Params),
	)}
	wide := map[*hlo.Instr]*hlo.Instr{}
	for _, i := range c.Instrs {
		w := *i
		w.Shape = withDims(i.Shape, dims)
		w.Operands = make(
			[]*hlo.Instr,
			len(i.Operands),
		)
		for k, o := range i.Operands {
			w.Operands[k] = wide[o]
		}
		switch {
		case i.Op == hlo.OpParameter:
			l.c.Params[i.Attrs.Param] = &w
		case i.Op == hlo.OpConstant:
			if err := l.constant(e, i, &w); err != nil {
				return l, false, err
			}
		case i.Op != hlo.OpTuple && i.Op != hlo.OpGetTupleElement && !i.Op.Elementwise():
			return l, false, nil
		}
		wide[i] = &w
		l.c.Instrs = append(l.c.Instrs, &w)
	}
	l.c.Root = wide[c.Root]
	return l, true, nil
}

// constant makes w, the copy of a constant, a parameter whose argument is an array of it.
func (l *lanes) constant(e *evaluation, i, w *hlo.Instr) error {
	v, err := evaluateConstant(i)
	if err != nil {
		return err
	}
	if v, err = e.strided(v, w.Shape, 0, make([]int64, w.Shape.Rank())); err != nil {
		return err
	}
	w.Op = hlo.OpParameter
	w.Attrs.Param = len(l.c.Params)
	l.c.Params = append(l.c.Params, w)
	l.constants = append(l.constants, v)
	return nil
}

// withDims is the shape of an array, or of each array of a tuple, with other extents.
func withDims(s hlo.Shape, dims []int64) hlo.Shape {
	if s.DType != hlo.Tuple {
		return hlo.Shape{DType: s.DType, Dims: dims}
	}
	t := hlo.Shape{DType: hlo.Tuple}
	for _, p := range s.Tuple {
		t.Tuple = append(t.Tuple, withDims(p, dims))
	}
	return t
}

// reduceLanes is reduce by a computation that is not one operation, all results at the
// same time: outs are combined with the operands at one index of the reduced dimensions
// after the other, in row-major order, which is the order of reduceRows for each result.
func (e *evaluation) reduceLanes(l lanes, along []int64, outs, in []value) ([]value, error) {
	var kept, reduced, steps []int64
	all := in[0].strides()
	for d, n := range in[0].shape.Dims {
		if slices.Contains(along, int64(d)) {
			reduced, steps = append(reduced, n), append(steps, all[d])
		} else {
			kept = append(kept, all[d])
		}
	}
	next := make([]value, len(outs))
	w := NewWalk(reduced, steps)
	for range hlo.Elements(reduced) {
		e.look()
		args := slices.Clone(outs)
		start := w.Next()
		for k, v := range in {
			x, err := e.strided(
				v, outs[k].shape, start,
				kept,
			)
			if err != nil {
				return nil, err
			}
			args = append(args, x)
		}
		v, err := e.evaluate(
			l.c,
			append(args, l.constants...),
		)
		if err != nil {
			return nil, err
		}
		for k, x := range v.leaves() {
			next[k] = x.withShape(outs[k].shape)
		}
		outs, next = next, outs
	}
	return outs, nil
}
