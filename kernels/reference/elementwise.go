package reference

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// The scalar semantics of elementwise operations, as tables. Float functions
// work in float64 and are rounded by the caller; integer ones get the element
// type, since division and shifts depend on it, and are wrapped by the caller.

// The semantics of operations on scalars.
type (
	// UnaryFloat computes an operation on one floating-point number in float64; the
	// caller rounds the result to the element type.
	UnaryFloat = func(x float64) float64
	// BinaryFloat computes an operation on two floating-point numbers in float64.
	BinaryFloat = func(x, y float64) float64
	// UnaryInt computes an operation on an integer or pred of type d, on whose width
	// and sign shifts, comparisons and divisions depend; the caller wraps the
	// result to d by kernels.WrapInt.
	UnaryInt = func(d hlo.DType, x int64) int64
	// BinaryInt computes an operation on two integers or preds of type d.
	BinaryInt = func(d hlo.DType, x, y int64) int64
)

// floatUnary are the operations on one floating-point number. They are accurate to
// about a unit in the last place of float64 (TestFunctions), which is far below a unit
// of the narrower types that results are rounded to. NaN and infinities are treated as
// in package math.
var floatUnary = map[hlo.Opcode]UnaryFloat{
	hlo.OpAbs:                 math.Abs,
	hlo.OpCbrt:                math.Cbrt,
	hlo.OpCeil:                math.Ceil,
	hlo.OpCosine:              cosine,
	hlo.OpErf:                 math.Erf,
	hlo.OpErfInv:              math.Erfinv,
	hlo.OpExponential:         exp,
	hlo.OpExponentialMinusOne: math.Expm1,
	hlo.OpFloor:               math.Floor,
	hlo.OpLog:                 logarithm,
	hlo.OpLogPlusOne:          math.Log1p,
	hlo.OpNegate:              func(x float64) float64 { return -x },
	hlo.OpRoundNearestAfz:     math.Round,
	hlo.OpRoundNearestEven:    math.RoundToEven,
	hlo.OpSine:                sine,
	hlo.OpSqrt:                math.Sqrt,
	hlo.OpTan:                 tangent,
	hlo.OpTanh:                math.Tanh,
	hlo.OpAcos:                acos,
	hlo.OpAcosh:               math.Acosh,
	hlo.OpAsin:                asin,
	hlo.OpAsinh:               math.Asinh,
	hlo.OpAtanh:               math.Atanh,
	hlo.OpCosh:                cosh,
	hlo.OpSinh:                sinh,
	hlo.OpCopy:                func(x float64) float64 { return x },
	hlo.OpReal:                func(x float64) float64 { return x },
	hlo.OpRsqrt:               rsqrt,
	hlo.OpLogistic:            logistic,
	hlo.OpSign: func(x float64) float64 {
		switch {
		case x > 0:
			return 1
		case x < 0:
			return -1
		}
		return x // ±0 and NaN
	},
}

// rsqrt rounds twice, once more than a function of its own would; in float64 that is
// no matter for narrower types.
func rsqrt(x float64) float64 { return 1 / math.Sqrt(x) }

// logistic is 1/(1 + e^−x), without the overflow of e^−x.
func logistic(x float64) float64 {
	e := math.Exp(-math.Abs(x))
	if x < 0 {
		return e / (1 + e)
	}
	return 1 / (1 + e)
}

// floatBinary are the operations on two floating-point numbers. maximum and
// minimum are NaN if one operand is, as in XLA; remainder has the sign of the
// dividend.
var floatBinary = map[hlo.Opcode]BinaryFloat{
	hlo.OpAdd:       addFloat,
	hlo.OpSubtract:  subtractFloat,
	hlo.OpMultiply:  multiplyFloat,
	hlo.OpDivide:    divideFloat,
	hlo.OpRemainder: math.Mod,
	hlo.OpMaximum:   maxNaN,
	hlo.OpMinimum:   minNaN,
	hlo.OpPower:     power,
	hlo.OpAtan2:     atan2,
}

// The arithmetic of float64 is IEEE 754's, rounded to nearest even.
func addFloat(x, y float64) float64      { return x + y }
func subtractFloat(x, y float64) float64 { return x - y }
func multiplyFloat(x, y float64) float64 { return x * y }
func divideFloat(x, y float64) float64   { return x / y }

// intUnary are the operations on one integer or pred. The caller wraps the
// result to the width of d.
var intUnary = map[hlo.Opcode]UnaryInt{
	hlo.OpAbs:               absInt,
	hlo.OpNegate:            negateInt,
	hlo.OpNot:               notInt,
	hlo.OpPopcnt:            countOnes,
	hlo.OpCountLeadingZeros: countLeadingZeros,
	hlo.OpSign:              signInt,
	hlo.OpCopy:              sameInt,
	hlo.OpReal:              sameInt,
}

// absInt and negateInt leave the most negative integer as it is once wrapped.
func absInt(_ hlo.DType, x int64) int64    { return max(x, -x) }
func negateInt(_ hlo.DType, x int64) int64 { return -x }
func sameInt(_ hlo.DType, x int64) int64   { return x }

// countOnes counts the bits of the width of d that are set.
func countOnes(d hlo.DType, x int64) int64 {
	return int64(bits.OnesCount64(unsigned(d, x)))
}

// countLeadingZeros counts the bits of the width of d above the highest one.
func countLeadingZeros(d hlo.DType, x int64) int64 {
	zeros := bits.LeadingZeros64(unsigned(d, x))
	return int64(zeros - 64 + d.Bits())
}

// intBinary are the operations on two integers or preds. add, maximum and
// multiply of pred are or, or and and.
var intBinary = map[hlo.Opcode]BinaryInt{
	hlo.OpAdd:                  addInt,
	hlo.OpSubtract:             subtractInt,
	hlo.OpMultiply:             multiplyInt,
	hlo.OpDivide:               divideInt,
	hlo.OpRemainder:            remainderInt,
	hlo.OpMaximum:              maxInt,
	hlo.OpMinimum:              minInt,
	hlo.OpAnd:                  andInt,
	hlo.OpOr:                   orInt,
	hlo.OpXor:                  xorInt,
	hlo.OpPower:                powerInt,
	hlo.OpShiftLeft:            shiftLeft,
	hlo.OpShiftRightLogical:    shiftLogical,
	hlo.OpShiftRightArithmetic: shiftArithmetic,
}

// Differences, products and the bitwise operations are those of int64, in which elements of
// all types are held, u64 by its bits: the low bits of a result depend on the low bits of the
// operands only, so that wrapping it to the width of the type gives what that width computes.
func subtractInt(_ hlo.DType, x, y int64) int64 { return x - y }
func multiplyInt(_ hlo.DType, x, y int64) int64 { return x * y }
func andInt(_ hlo.DType, x, y int64) int64      { return x & y }
func orInt(_ hlo.DType, x, y int64) int64       { return x | y }
func xorInt(_ hlo.DType, x, y int64) int64      { return x ^ y }

// addInt is the sum; of pred it is or, since 1 + 1 is true.
func addInt(d hlo.DType, x, y int64) int64 {
	return predOr(d, x|y, x+y)
}

// maxInt compares without a sign where d has none.
func maxInt(d hlo.DType, x, y int64) int64 {
	return pickInt(lessInt(d, x, y), y, x)
}

// minInt compares without a sign where d has none.
func minInt(d hlo.DType, x, y int64) int64 {
	return pickInt(lessInt(d, x, y), x, y)
}

// shiftLeft shifts zeros in from the right; 0 for the width of d and beyond.
func shiftLeft(d hlo.DType, x, y int64) int64 {
	return shiftInt(d, y, 0, func(n uint) int64 {
		return x << n
	})
}

// shiftLogical shifts zeros in from the left, at the width of d.
func shiftLogical(d hlo.DType, x, y int64) int64 {
	return shiftInt(d, y, 0, func(n uint) int64 {
		return int64(unsigned(d, x) >> n)
	})
}

// predOr is a result for pred, and another one for integers.
func predOr(d hlo.DType, pred, other int64) int64 {
	if d == hlo.Pred {
		return pred
	}
	return other
}

// pickInt is x or y.
func pickInt(first bool, x, y int64) int64 {
	if first {
		return x
	}
	return y
}

// lessInt compares integers of type d.
func lessInt(d hlo.DType, x, y int64) bool {
	if d == hlo.U64 {
		return uint64(x) < uint64(y)
	}
	return x < y
}

// unsigned is the bits of x at the width of d.
func unsigned(d hlo.DType, x int64) uint64 {
	return uint64(x) << (64 - d.Bits()) >> (64 - d.Bits())
}

// notInt is the logical negation of pred and the complement of integers.
func notInt(d hlo.DType, x int64) int64 {
	return predOr(d, 1-x, ^x)
}

// signInt is −1, 0 or 1.
func signInt(d hlo.DType, x int64) int64 {
	switch {
	case x == 0:
		return 0
	case x < 0 && d != hlo.U64:
		return -1
	}
	return 1
}

// divideInt truncates. A division by zero is −1 (all ones), and MIN / −1 is
// MIN: StableHLO leaves both to implementations, and XLA does it so.
func divideInt(d hlo.DType, x, y int64) int64 {
	switch {
	case y == 0:
		return -1
	case d == hlo.U64:
		return int64(uint64(x) / uint64(y))
	case y == -1:
		return -x
	}
	return x / y
}

// remainderInt has the sign of the dividend; by zero it is the dividend.
func remainderInt(d hlo.DType, x, y int64) int64 {
	switch {
	case y == 0:
		return x
	case d == hlo.U64:
		return int64(uint64(x) % uint64(y))
	case y == -1:
		return 0
	}
	return x % y
}

// powerInt multiplies by squaring. A negative exponent gives the truncated
// quotient.
func powerInt(d hlo.DType, x, y int64) int64 {
	if y < 0 && d != hlo.U64 {
		switch x {
		case 1:
			return 1
		case -1:
			return 1 - 2*(y&1)
		}
		return 0
	}
	// The exponent of a u64 may have the top bit of an int64 set; products wrap as they do
	// in the type, since the caller keeps the low bits.
	out := int64(1)
	for n := uint64(y); n > 0; n >>= 1 {
		if n&1 != 0 {
			out *= x
		}
		x *= x
	}
	return out
}

// shiftInt shifts, and is over for counts that are not below the width of d.
func shiftInt(d hlo.DType, count, over int64, shift func(uint) int64) int64 {
	if n := unsigned(d, count); n < uint64(d.Bits()) {
		return shift(uint(n))
	}
	return over
}

// shiftArithmetic shifts copies of the top bit in, whether or not the type has
// a sign.
func shiftArithmetic(d hlo.DType, x, y int64) int64 {
	// The top bit of the width is the sign, also of unsigned types, whose bits are not
	// extended in an int64.
	x = int64(unsigned(d, x)) <<
		(64 - d.Bits()) >>
		(64 - d.Bits())
	return shiftInt(d, y, x>>63, func(n uint) int64 {
		return x >> n
	})
}

// compareFloat are the comparisons of floating-point numbers by direction. All
// but NE are false if one operand is NaN.
var compareFloat = map[string]func(x, y float64) bool{
	"EQ": equalFloat,
	"NE": unequalFloat,
	"LT": lessFloat,
	"LE": atMostFloat,
	"GT": greaterFloat,
	"GE": atLeastFloat,
}

// The comparisons of Go are IEEE 754's: unordered operands compare as false, but
// for unequalFloat, and −0 equals +0.
func equalFloat(x, y float64) bool   { return x == y }
func unequalFloat(x, y float64) bool { return x != y }
func lessFloat(x, y float64) bool    { return x < y }
func atMostFloat(x, y float64) bool  { return x <= y }
func greaterFloat(x, y float64) bool { return x > y }
func atLeastFloat(x, y float64) bool { return x >= y }

// compareInt compares two integers of type d in some direction.
func compareInt(direction string, d hlo.DType, x, y int64) bool {
	switch direction {
	case "EQ":
		return x == y
	case "NE":
		return x != y
	case "LT":
		return lessInt(d, x, y)
	case "LE":
		return !lessInt(d, y, x)
	case "GT":
		return lessInt(d, y, x)
	}
	return !lessInt(d, x, y)
}

// totalOrder maps floating-point numbers to integers in the order −NaN < −Inf <
// … < −0 < +0 < … < NaN.
func totalOrder(x float64) int64 {
	b := int64(math.Float64bits(x))
	return b ^ int64(uint64(b>>63)>>1)
}

// elementwise evaluates an elementwise instruction on all cores.
func (e *evaluation) elementwise(i *hlo.Instr, a []value) (value, error) {
	out, err := newValue(i.Shape)
	if err != nil {
		return out, err
	}
	for _, v := range a {
		if v.empty() && v.shape.Elements() > 0 {
			return out, fmt.Errorf("the reference does not compute %s", v.shape)
		}
	}
	if f := stripOf(i); f != nil {
		e.parallel(i.Shape.Elements(), 1, func(lo, hi int64) {
			part := out.floats[lo:hi]
			f(part, stripsOf(a, lo, hi))
			roundStrip(i.Shape.DType, part)
		})
		return out, nil
	}
	set, err := pointwise(i, out, a)
	if err != nil {
		return out, err
	}
	e.parallel(i.Shape.Elements(), 1, func(lo, hi int64) {
		for n := lo; n < hi; n++ {
			set(n)
		}
	})
	return out, nil
}

// A strip computes some elements of an operation on floating-point numbers from as many of
// its operands. The results are not rounded.
//
// Programs are mostly such operations, and a loop over numbers in a row takes a tenth of
// the time of a call for each, by way of which the others are computed (pointwise).
type strip func(out numbers, x []numbers)

// numbers are elements of an array in a row.
type numbers = []float64

// arithmetic are the strips of the operations that programs are full of; those of others
// call a function for each element.
var arithmetic = map[hlo.Opcode]strip{
	hlo.OpAdd: func(out numbers, x []numbers) {
		b := x[1]
		for n, a := range x[0] {
			out[n] = a + b[n]
		}
	},
	hlo.OpSubtract: func(out numbers, x []numbers) {
		b := x[1]
		for n, a := range x[0] {
			out[n] = a - b[n]
		}
	},
	hlo.OpMultiply: func(out numbers, x []numbers) {
		b := x[1]
		for n, a := range x[0] {
			out[n] = a * b[n]
		}
	},
	hlo.OpDivide: func(out numbers, x []numbers) {
		b := x[1]
		for n, a := range x[0] {
			out[n] = a / b[n]
		}
	},
	hlo.OpConvert: copyStrip,
	hlo.OpCopy:    copyStrip,
}

// copyStrip is the strip of operations that only round.
func copyStrip(out numbers, x []numbers) {
	copy(out, x[0])
}

// stripOf is the strip of an instruction, or nil where it has other operands or results
// than floating-point numbers, or no function of them.
func stripOf(i *hlo.Instr) strip {
	if !i.Shape.DType.IsFloat() || ofComplex(i) {
		return nil
	}
	for _, o := range i.Operands {
		if !o.Shape.DType.IsFloat() {
			return nil
		}
	}
	if f := arithmetic[i.Op]; f != nil {
		return f
	}
	operands := len(i.Operands)
	unary, binary := floatUnary[i.Op], floatBinary[i.Op]
	switch {
	case unary != nil && operands == 1:
		return func(out numbers, x []numbers) {
			for n, a := range x[0] {
				out[n] = unary(a)
			}
		}
	case binary != nil && operands == 2:
		return func(out numbers, x []numbers) {
			b := x[1]
			for n, a := range x[0] {
				out[n] = binary(a, b[n])
			}
		}
	}
	return nil
}

// stripsOf are elements lo … hi−1 of arrays.
func stripsOf(a []value, lo, hi int64) []numbers {
	all := make([]numbers, len(a))
	for k, v := range a {
		all[k] = v.floats[lo:hi]
	}
	return all
}

// roundStrip rounds numbers to a type. Those of f32 are rounded by the processor; of other
// types each is by a function.
func roundStrip(d hlo.DType, x []float64) {
	switch d {
	case hlo.F64:
	case hlo.F32:
		for n, v := range x {
			x[n] = float64(float32(v))
		}
	default:
		for n, v := range x {
			x[n] = kernels.RoundFloat(d, v)
		}
	}
}

// pointwise returns a function that computes element n of out.
func pointwise(
	i *hlo.Instr, out value, a []value,
) (func(n int64), error) {
	switch {
	case ofComplex(i) && i.Op != hlo.OpSelect:
		return complexElements(i, out, a)
	case i.Op == hlo.OpStochasticConvert:
		return stochasticElements(i, out, a)
	case i.Op == hlo.OpImag:
		return func(int64) {}, nil // of a real number 0, which out is
	}
	return realElements(i, out, a)
}

// realElements is pointwise for real numbers, integers and pred.
func realElements(
	i *hlo.Instr, out value, a []value,
) (func(n int64), error) {
	d := i.Shape.DType
	from := a[0].shape.DType
	switch i.Op {
	case hlo.OpCompare:
		return compareElements(i, out, a), nil
	case hlo.OpSelect:
		step := scalarStep(a[0])
		return func(n int64) {
			move(out, n, a[2-a[0].ints[n*step]], n)
		}, nil
	case hlo.OpClamp:
		return clampElements(out, a), nil
	case hlo.OpConvert:
		return convertElements(out, a[0]), nil
	case hlo.OpReducePrecision:
		exponent, mantissa := i.Precision()
		return func(n int64) {
			out.floats[n] = kernels.ReducePrecision(from, exponent, mantissa, a[0].floats[n])
		}, nil
	case hlo.OpIsFinite:
		return func(n int64) {
			out.ints[n] = boolInt(
				!math.IsInf(a[0].floats[n], 0) &&
					a[0].floats[n] == a[0].floats[n],
			)
		}, nil
	}
	if f := floatUnary[i.Op]; f != nil &&
		len(a) == 1 && from.IsFloat() {
		return func(n int64) {
			out.floats[n] = kernels.RoundFloat(
				d, f(a[0].floats[n]),
			)
		}, nil
	}
	if f := floatBinary[i.Op]; f != nil &&
		len(a) == 2 && from.IsFloat() {
		return func(n int64) {
			out.floats[n] = kernels.RoundFloat(
				d,
				f(a[0].floats[n], a[1].floats[n]),
			)
		}, nil
	}
	if f := intUnary[i.Op]; f != nil &&
		len(a) == 1 && !from.IsFloat() {
		return func(n int64) {
			out.ints[n] = kernels.WrapInt(
				d, f(d, a[0].ints[n]),
			)
		}, nil
	}
	f := intBinary[i.Op]
	if f != nil && len(a) == 2 && !from.IsFloat() {
		return func(n int64) {
			out.ints[n] = kernels.WrapInt(
				d,
				f(d, a[0].ints[n], a[1].ints[n]),
			)
		}, nil
	}
	return nil, fmt.Errorf("the reference does not compute %s of %s", i.Op, from)
}

// scalarStep is 0 for a scalar that applies to every element, else 1.
func scalarStep(v value) int64 {
	if v.shape.Rank() == 0 {
		return 0
	}
	return 1
}

// boolInt is a bool as pred.
func boolInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// compareElements compares two arrays.
func compareElements(i *hlo.Instr, out value, a []value) func(int64) {
	direction := i.Attrs.Direction
	d := a[0].shape.DType
	switch {
	case d.IsFloat() && i.Attrs.CompareType == "TOTALORDER":
		return func(n int64) {
			out.ints[n] = boolInt(compareInt(
				direction, hlo.S64,
				totalOrder(a[0].floats[n]),
				totalOrder(a[1].floats[n]),
			))
		}
	case d.IsFloat():
		f := compareFloat[direction]
		return func(n int64) {
			out.ints[n] = boolInt(f(
				a[0].floats[n],
				a[1].floats[n],
			))
		}
	}
	return func(n int64) {
		out.ints[n] = boolInt(compareInt(
			direction, d, a[0].ints[n],
			a[1].ints[n],
		))
	}
}

// clampElements limits the elements of the second operand by the first and the
// third, which may be scalars.
func clampElements(out value, a []value) func(int64) {
	lo := scalarStep(a[0])
	hi := scalarStep(a[2])
	if out.floats != nil {
		return func(n int64) {
			out.floats[n] = minNaN(
				maxNaN(a[0].floats[n*lo], a[1].floats[n]),
				a[2].floats[n*hi],
			)
		}
	}
	// Integers are compared by the operations of their own, since those of u64 have no
	// sign.
	d := out.shape.DType
	larger := intBinary[hlo.OpMaximum]
	smaller := intBinary[hlo.OpMinimum]
	return func(n int64) {
		out.ints[n] = smaller(
			d,
			larger(
				d,
				a[0].ints[n*lo],
				a[1].ints[n],
			),
			a[2].ints[n*hi],
		)
	}
}

// convertElements converts between element types.
func convertElements(out, in value) func(int64) {
	d := out.shape.DType
	switch {
	case out.floats != nil && in.floats != nil:
		// Numbers of all types are held in float64: there is one rounding.
		return func(n int64) {
			out.floats[n] = kernels.RoundFloat(d, in.floats[n])
		}
	case out.floats != nil && in.shape.DType == hlo.U64:
		// An int64 holds the bits of a u64, so that large numbers look negative.
		return func(n int64) {
			out.floats[n] = kernels.RoundFloat(
				d, float64(uint64(in.ints[n])),
			)
		}
	case out.floats != nil:
		return func(n int64) {
			out.floats[n] = kernels.RoundFloat(
				d, float64(in.ints[n]),
			)
		}
	case in.floats != nil:
		// Truncated, and clamped to the range of the type.
		return func(n int64) {
			out.ints[n] = FloatToInt(d, in.floats[n])
		}
	}
	// Integers keep their low bits, and pred is 0 or 1 already.
	return func(n int64) {
		out.ints[n] = kernels.WrapInt(d, in.ints[n])
	}
}

// FloatToInt truncates towards zero and clamps to the range of d. NaN is 0; any
// other number than 0 is true as pred.
func FloatToInt(d hlo.DType, x float64) int64 {
	if d == hlo.Pred {
		return boolInt(x != 0)
	}
	lo, hi := d.IntRange()
	switch {
	case x != x:
		return 0
	case d == hlo.U64 && x >= 0x1p64:
		return -1
	case d == hlo.U64 && x >= 0x1p63:
		return int64(uint64(x))
	case x <= float64(lo):
		return lo
	case x >= float64(hi):
		return hi
	}
	return int64(x)
}

// The tables above, for backends: the function of an operation, or nil.

// FloatUnary is the float64 semantics of a unary operation.
func FloatUnary(op hlo.Opcode) UnaryFloat { return floatUnary[op] }

// FloatBinary is the float64 semantics of a binary operation.
func FloatBinary(op hlo.Opcode) BinaryFloat {
	return floatBinary[op]
}

// IntUnary is the semantics of a unary integer operation, to be wrapped by WrapInt.
func IntUnary(op hlo.Opcode) UnaryInt {
	return intUnary[op]
}

// IntBinary is the semantics of a binary integer operation, to be wrapped by WrapInt.
func IntBinary(op hlo.Opcode) BinaryInt {
	return intBinary[op]
}

// CompareFloats is the comparison of floating-point numbers by an instruction.
func CompareFloats(
	i *hlo.Instr,
) func(x, y float64) bool {
	if i.Attrs.CompareType == "TOTALORDER" {
		return func(x, y float64) bool {
			return compareInt(
				i.Attrs.Direction, hlo.S64,
				totalOrder(x), totalOrder(y),
			)
		}
	}
	return compareFloat[i.Attrs.Direction]
}

// CompareInts is the comparison of integers of type d by an instruction.
func CompareInts(
	i *hlo.Instr, d hlo.DType,
) func(x, y int64) bool {
	return func(x, y int64) bool {
		return compareInt(i.Attrs.Direction, d, x, y)
	}
}
