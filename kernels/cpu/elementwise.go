package cpu

import (
	"math"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Pointwise operations over whole tiles. Common ones are loops of their own;
// the rest call the scalar semantics of the reference for every element.

type floating interface{ float32 | float64 }

type unaryLoop[T number] func(dst, x []T)
type binaryLoop[T number] func(dst, x, y []T)

func floatUnary[T floating](op hlo.Opcode) unaryLoop[T] {
	switch op {
	case "negate":
		return func(dst, x []T) {
			for k, v := range x {
				dst[k] = -v
			}
		}
	case "exponential":
		return func(dst, x []T) {
			for k, v := range x {
				dst[k] = T(math.Exp(float64(v)))
			}
		}
	case "sqrt":
		return func(dst, x []T) {
			for k, v := range x {
				dst[k] = T(math.Sqrt(float64(v)))
			}
		}
	case "rsqrt":
		return func(dst, x []T) {
			for k, v := range x {
				dst[k] = T(1 / math.Sqrt(float64(v)))
			}
		}
	case "abs":
		return func(dst, x []T) {
			for k, v := range x {
				dst[k] = T(math.Abs(float64(v)))
			}
		}
	}
	f := kernels.FloatUnary(op)
	if f == nil {
		return nil
	}
	return func(dst, x []T) {
		for k, v := range x {
			dst[k] = T(f(float64(v)))
		}
	}
}

func floatBinary[T floating](op hlo.Opcode) binaryLoop[T] {
	switch op {
	case "add":
		return func(dst, x, y []T) {
			y = y[:len(dst)]
			for k, v := range x[:len(dst)] {
				dst[k] = v + y[k]
			}
		}
	case "subtract":
		return func(dst, x, y []T) {
			y = y[:len(dst)]
			for k, v := range x[:len(dst)] {
				dst[k] = v - y[k]
			}
		}
	case "multiply":
		return func(dst, x, y []T) {
			y = y[:len(dst)]
			for k, v := range x[:len(dst)] {
				dst[k] = v * y[k]
			}
		}
	case "divide":
		return func(dst, x, y []T) {
			y = y[:len(dst)]
			for k, v := range x[:len(dst)] {
				dst[k] = v / y[k]
			}
		}
	case "maximum":
		return func(dst, x, y []T) {
			y = y[:len(dst)]
			for k, v := range x[:len(dst)] {
				dst[k] = max(v, y[k])
			}
		}
	case "minimum":
		return func(dst, x, y []T) {
			y = y[:len(dst)]
			for k, v := range x[:len(dst)] {
				dst[k] = min(v, y[k])
			}
		}
	}
	f := kernels.FloatBinary(op)
	if f == nil {
		return nil
	}
	return func(dst, x, y []T) {
		for k, v := range x {
			dst[k] = T(f(float64(v), float64(y[k])))
		}
	}
}

func intUnary(op hlo.Opcode, d hlo.DType) unaryLoop[int64] {
	f := kernels.IntUnary(op)
	if f == nil {
		return nil
	}
	return func(dst, x []int64) {
		for k, v := range x {
			dst[k] = kernels.WrapInt(d, f(d, v))
		}
	}
}

func intBinary(op hlo.Opcode, d hlo.DType) binaryLoop[int64] {
	f := kernels.IntBinary(op)
	if f == nil {
		return nil
	}
	return func(dst, x, y []int64) {
		for k, v := range x {
			dst[k] = kernels.WrapInt(d, f(d, v, y[k]))
		}
	}
}

// unary and binary find the loop of an operation on arrays of type d; nil when
// there is none.
func unary[T number](op hlo.Opcode, d hlo.DType) unaryLoop[T] {
	var zero T
	var loop any
	switch any(zero).(type) {
	case float32:
		loop = floatUnary[float32](op)
	case float64:
		loop = floatUnary[float64](op)
	default:
		loop = intUnary(op, d)
	}
	found, _ := loop.(unaryLoop[T])
	return found
}

func binary[T number](op hlo.Opcode, d hlo.DType) binaryLoop[T] {
	var zero T
	var loop any
	switch any(zero).(type) {
	case float32:
		loop = floatBinary[float32](op)
	case float64:
		loop = floatBinary[float64](op)
	default:
		loop = intBinary(op, d)
	}
	found, _ := loop.(binaryLoop[T])
	return found
}

// round brings results to their element type where scratch is wider.
func round(d hlo.DType) unaryLoop[float32] {
	switch d {
	case hlo.F32:
		return nil
	case hlo.BF16:
		return func(dst, x []float32) {
			for k, v := range x {
				dst[k] = kernels.BF16ToFloat32(kernels.Float32ToBF16(v))
			}
		}
	case hlo.F16:
		return func(dst, x []float32) {
			for k, v := range x {
				dst[k] = kernels.F16ToFloat32(kernels.Float32ToF16(v))
			}
		}
	}
	return func(dst, x []float32) {
		for k, v := range x {
			dst[k] = float32(kernels.RoundFloat(d, float64(v)))
		}
	}
}

// convert makes the loop between two scratch types; d is the result's type.
func convert[S, T number](d hlo.DType, from hlo.DType) func(dst []T, src []S) {
	switch {
	case from == hlo.U64 && d.IsFloat():
		return func(dst []T, src []S) {
			for k, v := range src {
				dst[k] = T(uint64(v))
			}
		}
	case from.IsFloat() && !d.IsFloat():
		return func(dst []T, src []S) {
			for k, v := range src {
				dst[k] = T(kernels.FloatToInt(d, float64(v)))
			}
		}
	case !d.IsFloat():
		return func(dst []T, src []S) {
			for k, v := range src {
				dst[k] = T(kernels.WrapInt(d, int64(v)))
			}
		}
	}
	return func(dst []T, src []S) {
		for k, v := range src {
			dst[k] = T(v)
		}
	}
}
