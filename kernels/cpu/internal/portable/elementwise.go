package portable

import (
	"math"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A loop is looked up once, when a program is compiled, by opcode and class, and then
// called for each strip. Operations whose semantics are those of an operator of Go
// have a loop per class; that the compiler sees the operator in the loop is what
// makes it fast. All others call the scalar function of the reference for each
// element, through float64 or int64, and narrow the result.
//
// Results of a class that is wider than the element type are narrowed by a second
// loop over the same strip (Then), which finds it in the first-level cache.

// A Float is an element of the floating classes.
type Float interface{ float32 | float64 }

// An integer is an element of the integer classes.
type integer interface{ int32 | int64 }

// A Unary loop sets dst to an operation on each element of x. dst may be x.
type Unary[S, T Number] func(dst []T, x []S)

// A Binary loop sets dst to an operation on the elements of x and y, in pairs.
// dst may be an operand.
type Binary[S, T Number] func(
	dst []T, x, y []S,
)

// numberBinary are the loops of operations that are the same in all classes.
func numberBinary[T Number](op hlo.Opcode) Binary[T, T] {
	switch op {
	case hlo.OpAdd:
		return func(dst, x, y []T) {
			x = x[:len(dst)]
			y = y[:len(dst)]
			for k := range dst {
				dst[k] = x[k] + y[k]
			}
		}
	case hlo.OpSubtract:
		return func(dst, x, y []T) {
			x = x[:len(dst)]
			y = y[:len(dst)]
			for k := range dst {
				dst[k] = x[k] - y[k]
			}
		}
	case hlo.OpMultiply:
		return func(dst, x, y []T) {
			x = x[:len(dst)]
			y = y[:len(dst)]
			for k := range dst {
				dst[k] = x[k] * y[k]
			}
		}
	case hlo.OpMaximum:
		return func(dst, x, y []T) {
			x = x[:len(dst)]
			y = y[:len(dst)]
			for k := range dst {
				dst[k] = max(x[k], y[k])
			}
		}
	case hlo.OpMinimum:
		return func(dst, x, y []T) {
			x = x[:len(dst)]
			y = y[:len(dst)]
			for k := range dst {
				dst[k] = min(x[k], y[k])
			}
		}
	}
	return nil
}

// floatBinary are the loops of binary operations on floats. Division has a loop
// of its own, the others compute in f64 by the reference's function.
func floatBinary[T Float](op hlo.Opcode) Binary[T, T] {
	if op == hlo.OpDivide {
		return func(dst, x, y []T) {
			x = x[:len(dst)]
			y = y[:len(dst)]
			for k := range dst {
				dst[k] = x[k] / y[k]
			}
		}
	}
	f := reference.FloatBinary(op)
	if f == nil {
		return nil
	}
	return func(dst, x, y []T) {
		for k := range dst {
			dst[k] = T(f(float64(x[k]), float64(y[k])))
		}
	}
}

// floatUnary are the loops of unary operations on floats. Those that Go or the
// processor computes have loops of their own, the others compute in f64 by the
// reference's function.
func floatUnary[T Float](op hlo.Opcode) Unary[T, T] {
	switch op {
	case hlo.OpNegate:
		return func(dst, x []T) {
			for k, v := range x[:len(dst)] {
				dst[k] = -v
			}
		}
	case hlo.OpSqrt:
		return func(dst, x []T) {
			for k, v := range x[:len(dst)] {
				dst[k] = T(math.Sqrt(float64(v)))
			}
		}
	case hlo.OpRsqrt:
		return func(dst, x []T) {
			for k, v := range x[:len(dst)] {
				dst[k] = T(1 / math.Sqrt(float64(v)))
			}
		}
	case hlo.OpAbs:
		return func(dst, x []T) {
			for k, v := range x[:len(dst)] {
				dst[k] = T(math.Abs(float64(v)))
			}
		}
	}
	f := reference.FloatUnary(op)
	if f == nil {
		return nil
	}
	return func(dst, x []T) {
		for k, v := range x[:len(dst)] {
			dst[k] = T(f(float64(v)))
		}
	}
}

// intBinary are the loops of binary operations on integers, exact modulo the
// width of T: what an operation leaves in the bits above those of d is removed
// by Narrowing afterwards.
func intBinary[T integer](op hlo.Opcode, d hlo.DType) Binary[T, T] {
	switch op {
	case hlo.OpAnd:
		return func(dst, x, y []T) {
			for k := range dst {
				dst[k] = x[k] & y[k]
			}
		}
	case hlo.OpOr:
		return func(dst, x, y []T) {
			for k := range dst {
				dst[k] = x[k] | y[k]
			}
		}
	case hlo.OpXor:
		return func(dst, x, y []T) {
			for k := range dst {
				dst[k] = x[k] ^ y[k]
			}
		}
	}
	f := reference.IntBinary(op)
	if f == nil {
		return nil
	}
	return func(dst, x, y []T) {
		for k := range dst {
			dst[k] = T(f(
				d, int64(x[k]), int64(y[k]),
			))
		}
	}
}

// intUnary are the loops of integer classes, see intBinary.
func intUnary[T integer](op hlo.Opcode, d hlo.DType) Unary[T, T] {
	f := reference.IntUnary(op)
	if f == nil {
		return nil
	}
	return func(dst, x []T) {
		for k, v := range x[:len(dst)] {
			dst[k] = T(f(d, int64(v)))
		}
	}
}

// hasNumberLoop reports whether the loop for all classes computes the operation
// on d: unsigned 64-bit numbers, which are held as i64, have another order, and
// pred adds as or.
func hasNumberLoop(op hlo.Opcode, d hlo.DType) bool {
	switch {
	case d == hlo.U64:
		return op != hlo.OpMaximum && op != hlo.OpMinimum
	case d == hlo.Pred:
		return op != hlo.OpAdd
	}
	return true
}

// UnaryOf is the loop of a unary operation on elements of type d, without
// narrowing; nil where there is none.
func UnaryOf[T Number](op hlo.Opcode, d hlo.DType) Unary[T, T] {
	var loop any
	switch ClassFor[T]() {
	case Float32:
		loop = ExpLoops[op]
		if ExpLoops[op] == nil {
			loop = floatUnary[float32](op)
		}
	case Float64:
		loop = floatUnary[float64](op)
	case Int32:
		loop = intUnary[int32](op, d)
	case Int64:
		loop = intUnary[int64](op, d)
	}
	return loop.(Unary[T, T])
}

// BinaryOf is the loop of a binary operation on elements of type d, without
// narrowing; nil where there is none.
func BinaryOf[T Number](op hlo.Opcode, d hlo.DType) Binary[T, T] {
	f := numberBinary[T](op)
	if f != nil && hasNumberLoop(op, d) {
		return f
	}
	var loop any
	switch ClassFor[T]() {
	case Float32:
		loop = floatBinary[float32](op)
	case Float64:
		loop = floatBinary[float64](op)
	case Int32:
		loop = intBinary[int32](op, d)
	case Int64:
		loop = intBinary[int64](op, d)
	}
	return loop.(Binary[T, T])
}

// Narrowing is the loop that brings results to their element type where scratch
// is wider, else nil. Operations compute in the class of the scratch, and
// rounding or wrapping the result gives what the element type would have given:
// f32 has at least twice the bits of bf16 and f16 plus two, so that rounding
// the f32 results of +, −, ×, ÷ and √ a second time changes nothing (Figueroa,
// When is double rounding innocuous?, 1995), and integers are exact modulo the
// width of the class.
func Narrowing[T Number](d hlo.DType) Unary[T, T] {
	var loop any
	switch ClassFor[T]() {
	case Float32:
		loop = roundTo(d)
	case Float64:
		return nil
	case Int32:
		loop = wrapTo[int32](d)
	case Int64:
		loop = wrapTo[int64](d)
	}
	return loop.(Unary[T, T])
}

// roundTo is the loop that rounds to a floating type that is held as f32. It
// encodes and decodes.
func roundTo(d hlo.DType) Unary[float32, float32] {
	switch d {
	case hlo.F32:
		return nil
	case hlo.BF16:
		return func(dst, x []float32) {
			for k, v := range x[:len(dst)] {
				dst[k] = kernels.BF16ToFloat32(kernels.Float32ToBF16(v))
			}
		}
	case hlo.F16:
		return func(dst, x []float32) {
			for k, v := range x[:len(dst)] {
				dst[k] = kernels.F16ToFloat32(kernels.Float32ToF16(v))
			}
		}
	}
	return byteCodeOf(d).round
}

// wrapTo is the loop that wraps to an integer type: by a mask where it is
// unsigned, by two shifts where it is signed.
func wrapTo[T integer](d hlo.DType) Unary[T, T] {
	bits := d.Bits()
	switch {
	case d == hlo.Pred:
		return func(dst, x []T) {
			for k, v := range x[:len(dst)] {
				if dst[k] = 0; v != 0 {
					dst[k] = 1
				}
			}
		}
	case bits == 8*int(ClassFor[T]().Bytes()):
		return nil
	case d.IsSigned():
		shift := 8*ClassFor[T]().Bytes() - int64(bits)
		return func(dst, x []T) {
			for k, v := range x[:len(dst)] {
				dst[k] = v << shift >> shift
			}
		}
	}
	mask := T(1)<<bits - 1
	return func(dst, x []T) {
		for k, v := range x[:len(dst)] {
			dst[k] = v & mask
		}
	}
}

// Then is f followed by fit, where that is not nil.
func (f Unary[S, T]) Then(fit Unary[T, T]) Unary[S, T] {
	if fit == nil {
		return f
	}
	return func(dst []T, x []S) {
		f(dst, x)
		fit(dst, dst)
	}
}

// Then is f followed by fit, where that is not nil.
func (f Binary[S, T]) Then(fit Unary[T, T]) Binary[S, T] {
	if fit == nil {
		return f
	}
	return func(dst []T, x, y []S) {
		f(dst, x, y)
		fit(dst, dst)
	}
}

// Conversion is the loop of a convert from elements of type from to elements of
// type d. Floats that do not fit an integer type become the nearest end of its
// range, NaN becomes 0, and all but 0 becomes the pred 1. A conversion from f64
// or integers, other than u64, to a type that is held as f32 rounds once, not
// to f32 first.
func Conversion[S, T Number](d, from hlo.DType) Unary[S, T] {
	switch {
	case from == hlo.U64 && d.IsFloat():
		return Unary[S, T](func(dst []T, src []S) {
			for k, v := range src[:len(dst)] {
				dst[k] = T(uint64(v))
			}
		}).Then(Narrowing[T](d))
	case from.IsFloat() && !d.IsFloat():
		return func(dst []T, src []S) {
			for k, v := range src[:len(dst)] {
				dst[k] = T(reference.FloatToInt(d, float64(v)))
			}
		}
	case d == hlo.Pred:
		return func(dst []T, src []S) {
			for k, v := range src[:len(dst)] {
				dst[k] = T(boolInt(v != 0))
			}
		}
	case ClassOf(d) == Float32 &&
		d != hlo.F32 && ClassOf(from) != Float32:
		return func(dst []T, src []S) { // This rounds once, not twice.
			for k, v := range src[:len(dst)] {
				dst[k] = T(kernels.RoundFloat(d, float64(v)))
			}
		}
	}
	return Unary[S, T](func(dst []T, src []S) {
		for k, v := range src[:len(dst)] {
			dst[k] = T(v)
		}
	}).Then(Narrowing[T](d))
}

// Comparison is the loop of a compare; its result is pred. Operators of Go
// serve wherever they have the semantics of HLO: not for u64, whose bits are
// held as i64, and not for the total order of floats, in which −0 < +0 and NaN
// is ordered.
func Comparison[T Number](i *hlo.Instr) Binary[T, int32] {
	d := i.Operands[0].Shape.DType
	if d != hlo.U64 && i.Attrs.CompareType != "TOTALORDER" {
		if f := ordering[T](i.Attrs.Direction); f != nil {
			return f
		}
	}
	holds := func(x, y T) bool { return false }
	if d.IsFloat() {
		f := reference.CompareFloats(i)
		holds = func(x, y T) bool {
			return f(float64(x), float64(y))
		}
	} else {
		f := reference.CompareInts(i, d)
		holds = func(x, y T) bool {
			return f(int64(x), int64(y))
		}
	}
	return func(dst []int32, x, y []T) {
		for k := range dst {
			if dst[k] = 0; holds(x[k], y[k]) {
				dst[k] = 1
			}
		}
	}
}

// ordering is the loop of a comparison by Go's operators, nil of an unknown
// direction. A NaN compares as HLO says: equal to nothing, unequal to all.
func ordering[T Number](direction string) Binary[T, int32] {
	switch direction {
	case "EQ":
		return func(dst []int32, x, y []T) {
			for k := range dst {
				dst[k] = boolInt(x[k] == y[k])
			}
		}
	case "NE":
		return func(dst []int32, x, y []T) {
			for k := range dst {
				dst[k] = boolInt(x[k] != y[k])
			}
		}
	case "LT":
		return func(dst []int32, x, y []T) {
			for k := range dst {
				dst[k] = boolInt(x[k] < y[k])
			}
		}
	case "LE":
		return func(dst []int32, x, y []T) {
			for k := range dst {
				dst[k] = boolInt(x[k] <= y[k])
			}
		}
	case "GT":
		return func(dst []int32, x, y []T) {
			for k := range dst {
				dst[k] = boolInt(x[k] > y[k])
			}
		}
	case "GE":
		return func(dst []int32, x, y []T) {
			for k := range dst {
				dst[k] = boolInt(x[k] >= y[k])
			}
		}
	}
	return nil
}

// boolInt is pred as an element of scratch.
func boolInt(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// Select is select: x where p is not 0, else y.
func Select[T Number](dst []T, p []int32, x, y []T) {
	p = p[:len(dst)]
	x = x[:len(dst)]
	y = y[:len(dst)]
	for k := range dst {
		v := y[k]
		if p[k] != 0 {
			v = x[k]
		}
		dst[k] = v
	}
}

// Clamp is min(max(x, lo), hi), in which NaN stays, since Go's min and max
// return NaN where an operand is one.
func Clamp[T Number](d hlo.DType, dst, lo, x, hi []T) {
	if d == hlo.U64 {
		for k := range dst {
			dst[k] = T(min(max(
				uint64(x[k]), uint64(lo[k]),
			), uint64(hi[k])))
		}
		return
	}
	for k := range dst {
		dst[k] = min(max(x[k], lo[k]), hi[k])
	}
}

// IsFinite is is-finite: x−x is 0 but for infinities and NaN.
func IsFinite[T Number](dst []int32, x []T) {
	for k, v := range x[:len(dst)] {
		dst[k] = boolInt(v-v == 0)
	}
}

// Bitcast is bitcast-convert between types of one width. An integer of less than
// a byte takes the sign of its own width, whatever fills the rest of the byte.
func Bitcast[S, T Number](d, from hlo.DType) Unary[S, T] {
	return func(dst []T, x []S) {
		var cell [8]byte
		a := kernels.Buffer{
			Shape: hlo.Shape{DType: from},
			Data:  cell[:],
		}
		b := kernels.Buffer{
			Shape: hlo.Shape{DType: d},
			Data:  cell[:],
		}
		for k, v := range x[:len(dst)] {
			if from.IsFloat() {
				a.SetFloat(0, float64(v))
			} else {
				a.SetInt(0, int64(v))
			}
			if d.IsFloat() {
				dst[k] = T(b.Float(0))
			} else {
				dst[k] = T(kernels.WrapInt(d, b.Int(0)))
			}
		}
	}
}

// ReducePrecision is the loop of a reduce-precision. That to as many bits as the type
// has changes nothing, as of bf16 to the format of bf16; numbers of f32 are rounded by
// their bits where the exponent is as wide.
func ReducePrecision[T Number](i *hlo.Instr) Unary[T, T] {
	d := i.Shape.DType
	exponent, mantissa := i.Precision()
	switch {
	case exponent >= d.ExponentBits() && mantissa >= d.FractionBits():
		return func(dst, x []T) { copy(dst, x) }
	case exponent >= d.ExponentBits() && d == hlo.F32:
		shift := uint(d.FractionBits() - mantissa)
		return func(dst, x []T) {
			for k, v := range x[:len(dst)] {
				dst[k] = T(roundBits(float32(v), shift))
			}
		}
	}
	return func(dst, x []T) {
		for k, v := range x[:len(dst)] {
			dst[k] = T(kernels.ReducePrecision(d, exponent, mantissa, float64(v)))
		}
	}
}

// roundBits clears the low bits of a number's code after rounding to nearest even;
// NaN stays as it is.
func roundBits(v float32, low uint) float32 {
	if v != v {
		return v
	}
	bits := math.Float32bits(v)
	bits += 1<<(low-1) - 1 + bits>>low&1
	return math.Float32frombits(bits &^ (1<<low - 1))
}
