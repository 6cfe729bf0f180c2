package gpu

import (
	"math"
	"slices"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// divideBySum is a quotient by a sum of weights, whose reciprocal is a normal number.
func (e *emitter) divideBySum(op symtile.Op, x []operand) operand {
	m := floats{e, kindF32, "f32"}
	q := m.mul(x[0], m.op("rcp.approx.ftz", x[1]))
	return e.fit(op.Instr.Shape.DType, q)
}

// sumOfWeights reports whether an instruction is the sum, over rows or columns, of e^(x − m)
// with m the maximum of x along the same dimensions: between 1, for the largest x, and the
// number of elements, or NaN.
func sumOfWeights(i *hlo.Instr) bool {
	i, _ = unbroadcast(i)
	sum := monoidReduce{hlo.OpAdd, 0}
	if !sum.is(i) || i.Operands[0].Op != hlo.OpExponential {
		return false
	}
	less := i.Operands[0].Operands[0]
	if less.Op != hlo.OpSubtract {
		return false
	}
	most, at := unbroadcast(less.Operands[1])
	top := monoidReduce{hlo.OpMaximum, math.Inf(-1)}
	if !top.is(most) || most.Operands[0] != less.Operands[0] {
		return false
	}
	// Each x has the maximum of its own row.
	dims := i.Attrs.Dimensions
	var kept []int64
	for d := range less.Shape.Rank() {
		if !slices.Contains(dims, int64(d)) {
			kept = append(kept, int64(d))
		}
	}
	return slices.Equal(kept, at) && sameSet(dims, most.Attrs.Dimensions)
}

// unbroadcast is what an instruction broadcasts, along which dimensions of its result; the
// instruction itself where it is no broadcast.
func unbroadcast(i *hlo.Instr) (of *hlo.Instr, dims []int64) {
	if i.Op == hlo.OpBroadcast {
		return i.Operands[0], i.Attrs.Dimensions
	}
	return i, nil
}

// A monoidReduce is a reduce of one array of f32 by an operation, from a number on.
type monoidReduce struct {
	code hlo.Opcode
	init float64
}

// is reports whether an instruction is such a reduction.
func (r monoidReduce) is(i *hlo.Instr) bool {
	if i.Op != hlo.OpReduce || len(i.Operands) != 2 ||
		i.Shape.DType != hlo.F32 {
		return false
	}
	code, ok := i.Attrs.ToApply.Monoid()
	l := i.Operands[1].Literal
	return ok && code == r.code && l != nil &&
		!l.Elided && len(l.Floats) == 1 && l.Floats[0] == r.init
}

// sameSet reports whether two lists of different dimensions have the same.
func sameSet(x, y []int64) bool {
	return len(x) == len(y) && !slices.ContainsFunc(x, func(d int64) bool { return !slices.Contains(y, d) })
}
