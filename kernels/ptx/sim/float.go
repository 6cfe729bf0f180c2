package sim

import (
	"math"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// rounding is a PTX rounding modifier.
type rounding uint8

const (
	// nearest is .rn and .rni: ties to even.
	nearest rounding = iota
	// zero is .rz and .rzi: towards zero.
	zero
	// down is .rm and .rmi: towards negative infinity.
	down
	// up is .rp and .rpi: towards positive infinity.
	up
	// awayTies is .rna: to nearest, ties away from zero.
	awayTies
)

// roundToward returns the float64 next to v towards rest's sign when the exact value
// is v + rest, |rest| < an ulp, and the mode asks for it.
func roundToward(v, rest float64, mode rounding) float64 {
	if rest == 0 || rest != rest || math.IsInf(v, 0) {
		return v
	}
	switch {
	case mode == zero && v > 0 && rest < 0,
		mode == down && rest < 0:
		return math.Nextafter(v, math.Inf(-1))
	case mode == zero && v < 0 && rest > 0,
		mode == up && rest > 0:
		return math.Nextafter(v, math.Inf(1))
	}
	return v
}

// odd returns v made odd in its last bit when the exact value is v + rest and
// rest is not zero: rounding the result to a type at least two bits narrower
// equals rounding the exact value (Boldo and Melquiond, 2008).
func odd(v, rest float64) float64 {
	bits := math.Float64bits(v)
	if rest == 0 || rest != rest || bits&1 != 0 ||
		math.IsInf(v, 0) || v != v {
		return v
	}
	if (rest > 0) == (v > 0) {
		return math.Float64frombits(bits + 1)
	}
	return math.Float64frombits(bits - 1)
}

// sumRest returns a+b rounded and the error of the rounding (Knuth's TwoSum).
func sumRest(a, b float64) (s, rest float64) {
	s = a + b
	t := s - a
	return s, (a - (s - t)) + (b - t)
}

// oddSum is a+b rounded to odd.
func oddSum(a, b float64) float64 {
	s, rest := sumRest(a, b)
	if rest == 0 {
		return s
	}
	return odd(s, rest)
}

// to32 rounds the exact value v + rest to float32.
func to32(v, rest float64, mode rounding) float32 {
	v = odd(v, rest)
	f := float32(v)
	w := float64(f)
	if mode == nearest || w == v || v != v ||
		math.IsInf(v, 0) {
		return f
	}
	toward := w
	switch {
	case mode == zero && math.Abs(w) > math.Abs(v):
		toward = 0
	case mode == down && w > v:
		toward = math.Inf(-1)
	case mode == up && w < v:
		toward = math.Inf(1)
	}
	if toward == w {
		return f
	}
	return math.Nextafter32(f, float32(toward))
}

// flush32 is .ftz: it replaces a subnormal float32 by a zero of its sign.
func flush32(bits uint32) uint32 {
	if bits&0x7f800000 == 0 {
		return bits & 0x80000000
	}
	return bits
}

// halfToFloat widens an IEEE half, which is exact.
func halfToFloat(h uint16) float32 {
	bits := uint32(h&0x7fff) << 13
	sign := uint32(h&0x8000) << 16
	if h&0x7c00 == 0x7c00 {
		return math.Float32frombits(bits | 0x7f800000 | sign)
	}
	// The half's exponent field read as a float32's is too small by 112.
	return math.Float32frombits(math.Float32bits(math.Float32frombits(bits)*0x1p112) | sign)
}

// bfloatToFloat widens a bfloat16, which is exact.
func bfloatToFloat(b uint16) float32 {
	return math.Float32frombits(uint32(b) << 16)
}

// smallFormat describes a binary floating-point type of at most 16 bits.
type smallFormat struct {
	// mantissa is the number of bits of the mantissa, and bias that of the
	// exponent.
	mantissa, bias int
	// largest is the largest finite number.
	largest float64
	// infinity is set if the format has infinities; without them, overflow
	// saturates or is NaN.
	infinity bool
	// nan is the bits of the canonical NaN.
	nan  uint16
	bits int
}

var (
	halfFormat   = smallFormat{10, 15, 65504, true, 0x7fff, 16}
	bfloatFormat = smallFormat{7, 127, 0x1.fep127, true, 0x7fff, 16}
	e4m3Format   = smallFormat{3, 7, 448, false, 0x7f, 8}
	e5m2Format   = smallFormat{2, 15, 57344, true, 0x7f, 8}
)

// round converts v into the bits of the format; saturate is .satfinite.
func (f smallFormat) round(v float64, mode rounding, saturate bool) uint16 {
	if v != v {
		return f.nan
	}
	sign := uint16(0)
	if math.Signbit(v) {
		sign = 1 << (f.bits - 1)
		v = -v
		mode = flip(mode)
	}
	_, e := math.Frexp(v)
	e = max(e-1, 1-f.bias)
	ulp := math.Ldexp(1, e-f.mantissa)
	r := roundInteger(v/ulp, mode) * ulp
	if v == 0 {
		r = 0
	}
	// Rounding may have carried into a number that the format does not have.
	if r > f.largest || math.IsInf(v, 1) {
		return sign | f.overflow(v, mode, saturate)
	}
	return sign | f.encode(r)
}

// overflow is the bits of a number out of the format's range: infinity, the
// largest number, or NaN, by the rounding mode and the format.
func (f smallFormat) overflow(v float64, mode rounding, saturate bool) uint16 {
	toLargest := mode == zero || mode == down
	switch {
	case saturate, toLargest && !math.IsInf(v, 1):
		return f.encode(f.largest)
	case f.infinity:
		return uint16(1<<(f.bits-1-f.mantissa)-1) << f.mantissa
	}
	return f.nan
}

// encode packs r, which is not negative and which the format holds exactly.
func (f smallFormat) encode(r float64) uint16 {
	if r == 0 {
		return 0
	}
	frac, e := math.Frexp(r)
	e--
	// Subnormal numbers have no implicit leading bit.
	if e < 1-f.bias {
		return uint16(math.Ldexp(r, f.bias-1+f.mantissa))
	}
	return uint16(e+f.bias)<<f.mantissa |
		uint16((frac*2-1)*float64(int(1)<<f.mantissa))
}

// value is the number that the bits of the format stand for.
func (f smallFormat) value(bits uint16) float64 {
	neg := bits>>(f.bits-1)&1 == 1
	bits &= 1<<(f.bits-1) - 1
	e := int(bits >> f.mantissa)
	m := float64(bits & (1<<f.mantissa - 1))
	top := 1<<(f.bits-1-f.mantissa) - 1
	var v float64
	switch {
	case !f.infinity && bits == f.nan,
		f.infinity && e == top && m != 0:
		return math.NaN()
	case f.infinity && e == top:
		v = math.Inf(1)
	case e == 0:
		v = math.Ldexp(m, 1-f.bias-f.mantissa)
	default:
		v = math.Ldexp(
			1+m/float64(int(1)<<f.mantissa),
			e-f.bias,
		)
	}
	if neg {
		return -v
	}
	return v
}

// flip is the rounding mode of the absolute value of a negative number.
func flip(mode rounding) rounding {
	switch mode {
	case down:
		return up
	case up:
		return down
	}
	return mode
}

// roundInteger rounds to an integer in the given mode.
func roundInteger(v float64, mode rounding) float64 {
	switch mode {
	case zero:
		return math.Trunc(v)
	case down:
		return math.Floor(v)
	case up:
		return math.Ceil(v)
	case awayTies:
		return math.Round(v)
	}
	return math.RoundToEven(v)
}

// tf32 rounds a float32 to the 10 bits of mantissa of tf32, ties away from zero.
func tf32(bits uint32) uint32 {
	if bits&0x7f800000 == 0x7f800000 {
		return bits
	}
	return (bits + 1<<12) &^ (1<<13 - 1)
}

// floatToHalf rounds a float32 to an IEEE half, ties to even.
func floatToHalf(f float32) uint16 {
	bits := math.Float32bits(f)
	sign := uint16(bits>>16) & 0x8000
	abs := bits & 0x7fffffff
	switch {
	case abs > 0x7f800000:
		return 0x7fff
	case abs >= 0x47800000: // 2^16 and more
		return sign | 0x7c00
	// The result is subnormal, below 2^-14: the last bit of the sum is worth 2^-24.
	case abs < 0x38800000:
		return sign | uint16(math.Float32bits(math.Float32frombits(abs)+0.5)-0x3f000000)
	}
	return sign | uint16((abs+0xfff+abs>>13&1-0x38000000)>>13)
}

// floatToBfloat rounds a float32 to bfloat16, ties to even.
func floatToBfloat(f float32) uint16 {
	bits := math.Float32bits(f)
	if f != f {
		return 0x7fff
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

// floatType is a floating-point type as the scalar operations see it: how its
// bits are decoded to float64, and how an exact value is rounded to it.
type floatType struct {
	bits int
	// decode converts the bits of a number to float64, which is exact.
	decode func(bits uint64) float64
	// encode rounds the exact value v + rest to the type.
	encode func(v, rest float64, mode rounding) uint64
	// nan is the bits of the canonical NaN.
	nan uint64
}

// floatTypes are the types of scalar operations on floats.
var floatTypes = map[ptx.Type]floatType{
	ptx.F64: {64, math.Float64frombits, func(v, rest float64, mode rounding) uint64 {
		if v != v {
			return 0x7ff8_0000_0000_0000
		}
		return math.Float64bits(roundToward(v, rest, mode))
	}, 0x7ff8_0000_0000_0000},
	ptx.F32: {32, func(b uint64) float64 {
		return float64(math.Float32frombits(uint32(b)))
	},
		func(v, rest float64, mode rounding) uint64 {
			return uint64(canonical(to32(v, rest, mode)))
		}, canonicalNaN},
	ptx.F16: {
		16,
		func(b uint64) float64 { return float64(halfToFloat(uint16(b))) },
		func(v, rest float64, mode rounding) uint64 {
			return uint64(halfFormat.round(odd(v, rest), mode, false))
		}, 0x7fff,
	},
	ptx.BF16: {
		16,
		func(b uint64) float64 { return float64(bfloatToFloat(uint16(b))) },
		func(v, rest float64, mode rounding) uint64 {
			return uint64(bfloatFormat.round(odd(v, rest), mode, false))
		}, 0x7fff,
	},
	ptx.TF32: {32, func(b uint64) float64 {
		return float64(math.Float32frombits(uint32(b)))
	},
		func(v, rest float64, mode rounding) uint64 {
			return uint64(tf32(canonical(to32(v, rest, mode))))
		}, canonicalNaN},
}

// paired are the types of registers that hold two floats, with the type of one.
var paired = map[ptx.Type]ptx.Type{
	ptx.F16x2:  ptx.F16,
	ptx.BF16x2: ptx.BF16,
}

// roundingOf is the rounding mode of an opcode, or the given one if it names
// none.
func roundingOf(code *ptx.Opcode, otherwise rounding) rounding {
	for _, m := range code.Mods() {
		switch m {
		case ptx.ModRN, ptx.ModRNI:
			return nearest
		case ptx.ModRZ, ptx.ModRZI:
			return zero
		case ptx.ModRM, ptx.ModRMI:
			return down
		case ptx.ModRP, ptx.ModRPI:
			return up
		case ptx.ModRNA:
			return awayTies
		}
	}
	return otherwise
}

// floating returns the floating-point operation of an opcode on one lane, or nil.
// Pairs are computed half by half.
func floating(code *ptx.Opcode) scalar {
	t := code.Type(0)
	half, pair := paired[t]
	if pair {
		t = half
	}
	ft, ok := floatTypes[t]
	if !ok {
		return nil
	}
	f := floatOperation(code, ft)
	if f == nil {
		return nil
	}
	if code.Has(ptx.ModFTZ) {
		f = flushed(f, ft)
	}
	if pair {
		return func(a, b, c uint64) uint64 {
			return f(a&0xffff, b&0xffff, c&0xffff) |
				f(a>>16&0xffff, b>>16&0xffff, c>>16&0xffff)<<16
		}
	}
	return f
}

// flushed is an operation with .ftz: subnormal operands and results become zero.
func flushed(f scalar, ft floatType) scalar {
	smallest := map[int]float64{16: 0x1p-14, 32: 0x1p-126, 64: 0}[ft.bits]
	sign := uint64(1) << (ft.bits - 1)
	flush := func(v uint64) uint64 {
		if math.Abs(ft.decode(v)) < smallest {
			return v & sign
		}
		return v
	}
	return func(a, b, c uint64) uint64 {
		return flush(f(flush(a), flush(b), flush(c)))
	}
}

// exact is an operation on float64 operands whose exact result is v + rest, so
// that it can be rounded to any type once.
type exact func(a, b, c float64) (v, rest float64)

// exactOps are the operations whose results are rounded correctly.
var exactOps = map[ptx.Op]exact{
	ptx.OpAdd: func(a, b, _ float64) (float64, float64) {
		return sumRest(a, b)
	},
	ptx.OpSub: func(a, b, _ float64) (float64, float64) {
		return sumRest(a, -b)
	},
	ptx.OpMul: func(a, b, _ float64) (float64, float64) {
		p := a * b
		return p, math.FMA(a, b, -p)
	},
	ptx.OpFma: func(a, b, c float64) (float64, float64) {
		s, rest := sumRest(a*b, c)
		return s, rest
	},
	ptx.OpDiv: func(a, b, _ float64) (float64, float64) {
		q := a / b
		r := math.FMA(-q, b, a)
		if b < 0 {
			r = -r
		}
		return q, r
	},
	ptx.OpRcp: func(a, _, _ float64) (float64, float64) {
		q := 1 / a
		r := math.FMA(-q, a, 1)
		if a < 0 {
			r = -r
		}
		return q, r
	},
	ptx.OpSqrt: func(a, _, _ float64) (float64, float64) {
		s := math.Sqrt(a)
		return s, math.FMA(-s, s, a)
	},
}

// approximate are the operations that PTX allows to err in the last bits. They
// are computed in float64 and rounded once, which is closer than a device's
// result.
var approximate = map[ptx.Op]func(a float64) float64{
	ptx.OpRcp:   func(a float64) float64 { return 1 / a },
	ptx.OpSqrt:  math.Sqrt,
	ptx.OpRsqrt: func(a float64) float64 { return 1 / math.Sqrt(a) },
	ptx.OpEx2:   math.Exp2,
	ptx.OpLg2:   math.Log2,
	ptx.OpSin:   math.Sin,
	ptx.OpCos:   math.Cos,
	ptx.OpTanh:  math.Tanh,
}

// floatOperation is an operation on a floating-point type, or nil.
func floatOperation(code *ptx.Opcode, ft floatType) scalar {
	mode := roundingOf(code, nearest)
	op := code.Op
	if op == ptx.OpMad {
		op = ptx.OpFma
	}
	switch op {
	case ptx.OpMin, ptx.OpMax:
		return floatExtreme(code, ft)
	case ptx.OpAbs:
		return func(a, _, _ uint64) uint64 {
			return a &^ (1 << (ft.bits - 1))
		}
	case ptx.OpNeg:
		return func(a, _, _ uint64) uint64 {
			return a ^ 1<<(ft.bits-1)
		}
	// copysign is b with the sign of a.
	case ptx.OpCopysign:
		sign := uint64(1) << (ft.bits - 1)
		return func(a, b, _ uint64) uint64 {
			return b&^sign | a&sign
		}
	}
	if f := approximate[op]; f != nil &&
		(code.Has(ptx.ModApprox) || exactOps[op] == nil) {
		return func(a, _, _ uint64) uint64 {
			return ft.encode(f(ft.decode(a)), 0, nearest)
		}
	}
	if op == ptx.OpFma && ft.bits == 64 {
		if mode != nearest {
			return nil
		}
		return func(a, b, c uint64) uint64 {
			return ft.encode(
				math.FMA(ft.decode(a), ft.decode(b), ft.decode(c)),
				0, nearest,
			)
		}
	}
	f := exactOps[op]
	if f == nil {
		return nil
	}
	return clamped(code, ft, func(a, b, c uint64) uint64 {
		v, rest := f(
			ft.decode(a),
			ft.decode(b),
			ft.decode(c),
		)
		return ft.encode(v, rest, mode)
	})
}

// clamped is an operation with .sat (to [0, 1]), .relu or .satfinite.
func clamped(code *ptx.Opcode, ft floatType, f scalar) scalar {
	sat := code.Has(ptx.ModSat)
	relu := code.Has(ptx.ModRelu)
	if !sat && !relu {
		return f
	}
	one := ft.encode(1, 0, nearest)
	return func(a, b, c uint64) uint64 {
		r := f(a, b, c)
		switch v := ft.decode(r); {
		case sat && !(v > 0), relu && v <= 0:
			return 0
		case sat && v > 1:
			return one
		}
		return r
	}
}

// floatExtreme is min and max of floats: of a number and a NaN the number, or the
// NaN with .NaN; −0 is less than +0; with .xorsign.abs the magnitudes are
// compared and the signs xored.
func floatExtreme(code *ptx.Opcode, ft floatType) scalar {
	largest := code.Op == ptx.OpMax
	keepNaN := code.Has(ptx.ModNaN)
	xorsign := code.Has(ptx.ModXorSign)
	sign := uint64(1) << (ft.bits - 1)
	pick := func(a, b uint64) uint64 {
		x := ft.decode(a)
		y := ft.decode(b)
		switch {
		case (x != x || y != y) && keepNaN,
			x != x && y != y:
			return ft.nan
		case x != x:
			return b
		case y != y:
			return a
		case x == y:
			if (a&sign != 0) == largest {
				return b
			}
			return a
		case (x > y) == largest:
			return a
		}
		return b
	}
	if !xorsign {
		return func(a, b, _ uint64) uint64 {
			return pick(a, b)
		}
	}
	return func(a, b, _ uint64) uint64 {
		return pick(a&^sign, b&^sign)&^sign | (a^b)&sign
	}
}

// comparison returns the test that a modifier such as .lt or .ltu names on a
// type, or nil.
func comparison(m ptx.Mod, t ptx.Type, ftz bool) func(a, b uint64) bool {
	if ft, ok := floatTypes[t]; ok {
		return floatComparison(m, ft, ftz)
	}
	n := t.Bits()
	sign := uint64(0)
	// Adding half the range maps the order of signed numbers to that of unsigned
	// ones.
	if t.Signed() {
		sign = 1 << (n - 1)
	}
	mask := lowBits(n)
	less := func(a, b uint64) bool {
		return a&mask^sign < b&mask^sign
	}
	switch m {
	case ptx.ModEQ:
		return func(a, b uint64) bool {
			return (a^b)&mask == 0
		}
	case ptx.ModNE:
		return func(a, b uint64) bool {
			return (a^b)&mask != 0
		}
	case ptx.ModLT, ptx.ModLo:
		return less
	case ptx.ModGT, ptx.ModHi:
		return func(a, b uint64) bool { return less(b, a) }
	case ptx.ModLE, ptx.ModLS:
		return func(a, b uint64) bool {
			return !less(b, a)
		}
	case ptx.ModGE, ptx.ModHS:
		return func(a, b uint64) bool {
			return !less(a, b)
		}
	}
	return nil
}

// floatTests are the comparisons of numbers; a comparison with a NaN is false for
// them.
var floatTests = map[ptx.Mod]func(a, b float64) bool{
	ptx.ModEQ:    func(a, b float64) bool { return a == b },
	ptx.ModNE:    func(a, b float64) bool { return a < b || a > b },
	ptx.ModLT:    func(a, b float64) bool { return a < b },
	ptx.ModLE:    func(a, b float64) bool { return a <= b },
	ptx.ModGT:    func(a, b float64) bool { return a > b },
	ptx.ModGE:    func(a, b float64) bool { return a >= b },
	ptx.ModEQU:   func(a, b float64) bool { return !(a < b || a > b) },
	ptx.ModNEU:   func(a, b float64) bool { return a != b },
	ptx.ModLTU:   func(a, b float64) bool { return !(a >= b) },
	ptx.ModLEU:   func(a, b float64) bool { return !(a > b) },
	ptx.ModGTU:   func(a, b float64) bool { return !(a <= b) },
	ptx.ModGEU:   func(a, b float64) bool { return !(a < b) },
	ptx.ModIsNum: func(a, b float64) bool { return a == a && b == b },
	ptx.ModIsNaN: func(a, b float64) bool { return a != a || b != b },
}

// floatComparison is a test of two floats: the unordered ones hold if an operand
// is a NaN.
func floatComparison(m ptx.Mod, ft floatType, ftz bool) func(a, b uint64) bool {
	test := floatTests[m]
	if test == nil {
		return nil
	}
	flush := func(v uint64) float64 { return ft.decode(v) }
	if ftz && ft.bits == 32 {
		flush = func(v uint64) float64 {
			return ft.decode(uint64(flush32(uint32(v))))
		}
	}
	return func(a, b uint64) bool {
		return test(flush(a), flush(b))
	}
}

// classOf is the test of testp: finite, infinite, a number, and so on.
func classOf(m ptx.Mod, ft floatType) func(a uint64) bool {
	smallest := map[int]float64{32: 0x1p-126, 64: 0x1p-1022}[ft.bits]
	return func(a uint64) bool {
		v := ft.decode(a)
		switch m {
		case ptx.ModFinite:
			return !math.IsInf(v, 0) && v == v
		case ptx.ModInfinite:
			return math.IsInf(v, 0)
		case ptx.ModNumber:
			return v == v
		case ptx.ModNotANumber:
			return v != v
		case ptx.ModNormal:
			return math.Abs(v) >= smallest && !math.IsInf(v, 0)
		}
		return v != 0 && math.Abs(v) < smallest
	}
}

// canonical is the bits of a result, with the one NaN that devices produce.
func canonical(f float32) uint32 {
	if f != f {
		// Devices give one NaN, whatever the operands were.
		return canonicalNaN
	}
	return math.Float32bits(f)
}

const canonicalNaN = 0x7fffffff
