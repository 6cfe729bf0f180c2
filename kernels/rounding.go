package kernels

import (
	"math"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// epsilon is the distance from 1 to the next number of a floating type.
func epsilon(d hlo.DType) float64 {
	return math.Ldexp(1, -d.FractionBits())
}

func accumulatorOf(d hlo.DType) hlo.DType {
	if d == hlo.F64 {
		return hlo.F64
	}
	return hlo.F32
}

// summed is the most terms any sum of i has: products of a dot or convolution,
// elements of a reduction, updates of one place.
func summed(i *hlo.Instr) float64 {
	from := i.Operands[0].Shape
	n := 1.0
	for _, w := range i.Attrs.Window {
		n *= float64(w.Size)
	}
	switch i.Op {
	case "dot", "scaled-dot":
		return product(from, i.Attrs.LHSContract)
	case "reduce":
		return product(from, i.Attrs.Dimensions)
	case "convolution":
		return n * float64(i.Operands[1].Shape.Dims[i.Attrs.Conv.KernelIn])
	case "scatter": // each window has an element once
		updates := i.Operands[len(i.Operands)-1].Shape
		return float64(updates.Elements()) / max(1, product(updates, i.Attrs.Scatter.UpdateWindow))
	}
	return n
}

func product(s hlo.Shape, dims []int64) float64 {
	n := 1.0
	for _, d := range dims {
		n *= float64(s.Dims[d])
	}
	return n
}

// moves are operations whose results are among their operands' elements.
var moves = map[hlo.Opcode]bool{
	"broadcast": true, "transpose": true, "reshape": true, "bitcast": true, "copy": true, "slice": true, "reverse": true,
	"concatenate": true, "pad": true, "maximum": true, "minimum": true, "select": true, "clamp": true, "negate": true,
	"abs": true, "convert": true, "floor": true, "ceil": true, "get-tuple-element": true, "tuple": true,
	"dynamic-slice": true, "dynamic-update-slice": true, "gather": true,
}
