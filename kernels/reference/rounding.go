package reference

import (
	"math"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// What the sizes of rounding errors follow from: the spacing of a type's numbers,
// the type sums are kept in, and how many terms are summed.

// Epsilon is the distance from 1 to the next number of a floating-point type.
func Epsilon(d hlo.DType) float64 {
	return math.Ldexp(1, -d.FractionBits())
}

// AccumulatorOf is the type that backends keep sums of a type in: f64 for f64,
// else f32. The reference itself accumulates in float64; tolerances follow the
// backends.
func AccumulatorOf(d hlo.DType) hlo.DType {
	if d == hlo.F64 {
		return hlo.F64
	}
	return hlo.F32
}

// Terms is the largest number of terms of a sum of i: products of a dot or
// convolution, elements of a reduction, updates of one position.
func Terms(i *hlo.Instr) float64 {
	from := i.Operands[0].Shape
	n := 1.0
	for _, w := range i.Attrs.Window {
		n *= float64(w.Size)
	}
	switch i.Op {
	case hlo.OpDot, hlo.OpScaledDot:
		return float64(from.Extent(i.Attrs.LHSContract))
	case hlo.OpReduce:
		return float64(from.Extent(i.Attrs.Dimensions))
	case hlo.OpConvolution:
		return n *
			float64(
				i.Operands[1].Shape.Dims[i.Attrs.Conv.KernelIn],
			)
	case hlo.OpScatter:
		// Each window has an element at most once at a position.
		updates := i.Operands[len(i.Operands)-1].Shape
		return float64(updates.Elements()) /
			max(
				1,
				float64(updates.Extent(i.Attrs.Scatter.UpdateWindow)),
			)
	}
	return n
}
