package sim

import (
	"math"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// floatType is how a floating-point type lies in a register: a value exactly,
// and a rounding of an exact v + rest, where |rest| is under half an ulp of v.
type floatType struct {
	bits   int
	decode func(bits uint64) float64
	encode func(v, rest float64, mode rounding) uint64
	nan    uint64
}

var floatTypes = map[ptx.Type]floatType{
	ptx.F64: {64, math.Float64frombits, func(v, rest float64, mode rounding) uint64 {
		if v != v {
			return 0x7ff8_0000_0000_0000
		}
		return math.Float64bits(nudge(v, rest, mode))
	}, 0x7ff8_0000_0000_0000},
	ptx.F32: {32, func(b uint64) float64 { return float64(math.Float32frombits(uint32(b))) },
		func(v, rest float64, mode rounding) uint64 { return uint64(canonical(to32(v, rest, mode))) }, canonicalNaN},
	ptx.F16: {16, func(b uint64) float64 { return float64(halfToFloat(uint16(b))) },
		func(v, rest float64, mode rounding) uint64 {
			return uint64(halfFormat.round(odd(v, rest), mode, false))
		}, 0x7fff},
	ptx.BF16: {16, func(b uint64) float64 { return float64(bfloatToFloat(uint16(b))) },
		func(v, rest float64, mode rounding) uint64 {
			return uint64(bfloatFormat.round(odd(v, rest), mode, false))
		}, 0x7fff},
	ptx.TF32: {32, func(b uint64) float64 { return float64(math.Float32frombits(uint32(b))) },
		func(v, rest float64, mode rounding) uint64 { return uint64(tf32(canonical(to32(v, rest, mode)))) }, canonicalNaN},
}

// paired gives the element type of a pair of floats in one register.
var paired = map[ptx.Type]ptx.Type{ptx.F16x2: ptx.F16, ptx.BF16x2: ptx.BF16}

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

// floating returns the floating-point operation, or nil.
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
			return f(a&0xffff, b&0xffff, c&0xffff) | f(a>>16&0xffff, b>>16&0xffff, c>>16&0xffff)<<16
		}
	}
	return f
}

// flushed replaces subnormal operands and results by zeros of their sign.
func flushed(f scalar, ft floatType) scalar {
	smallest := map[int]float64{16: 0x1p-14, 32: 0x1p-126, 64: 0}[ft.bits]
	sign := uint64(1) << (ft.bits - 1)
	flush := func(v uint64) uint64 {
		if math.Abs(ft.decode(v)) < smallest {
			return v & sign
		}
		return v
	}
	return func(a, b, c uint64) uint64 { return flush(f(flush(a), flush(b), flush(c))) }
}

// exact is an operation whose result is v + rest exactly.
type exact func(a, b, c float64) (v, rest float64)

var exactOps = map[ptx.Op]exact{
	ptx.OpAdd: func(a, b, _ float64) (float64, float64) { return sumRest(a, b) },
	ptx.OpSub: func(a, b, _ float64) (float64, float64) { return sumRest(a, -b) },
	ptx.OpMul: func(a, b, _ float64) (float64, float64) { p := a * b; return p, math.FMA(a, b, -p) },
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

// approximate are the .approx operations: computed in float64 and rounded to
// nearest once, so more exact than a device.
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
		return func(a, _, _ uint64) uint64 { return a &^ (1 << (ft.bits - 1)) }
	case ptx.OpNeg:
		return func(a, _, _ uint64) uint64 { return a ^ 1<<(ft.bits-1) }
	case ptx.OpCopysign: // b with the sign of a
		sign := uint64(1) << (ft.bits - 1)
		return func(a, b, _ uint64) uint64 { return b&^sign | a&sign }
	}
	if f := approximate[op]; f != nil && (code.Has(ptx.ModApprox) || exactOps[op] == nil) {
		return func(a, _, _ uint64) uint64 { return ft.encode(f(ft.decode(a)), 0, nearest) }
	}
	if op == ptx.OpFma && ft.bits == 64 {
		if mode != nearest {
			return nil
		}
		return func(a, b, c uint64) uint64 {
			return ft.encode(math.FMA(ft.decode(a), ft.decode(b), ft.decode(c)), 0, nearest)
		}
	}
	f := exactOps[op]
	if f == nil {
		return nil
	}
	return clamped(code, ft, func(a, b, c uint64) uint64 {
		v, rest := f(ft.decode(a), ft.decode(b), ft.decode(c))
		return ft.encode(v, rest, mode)
	})
}

// clamped applies .sat and .relu.
func clamped(code *ptx.Opcode, ft floatType, f scalar) scalar {
	sat, relu := code.Has(ptx.ModSat), code.Has(ptx.ModRelu)
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

// floatExtreme is min and max: a NaN loses unless .NaN, and −0 < +0.
func floatExtreme(code *ptx.Opcode, ft floatType) scalar {
	largest, keepNaN := code.Op == ptx.OpMax, code.Has(ptx.ModNaN)
	xorsign := code.Has(ptx.ModXorSign)
	sign := uint64(1) << (ft.bits - 1)
	pick := func(a, b uint64) uint64 {
		x, y := ft.decode(a), ft.decode(b)
		switch {
		case (x != x || y != y) && keepNaN, x != x && y != y:
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
		return func(a, b, _ uint64) uint64 { return pick(a, b) }
	}
	return func(a, b, _ uint64) uint64 { return pick(a&^sign, b&^sign)&^sign | (a^b)&sign }
}

// comparison returns what setp, set and slct test, for operands of type t.
func comparison(m ptx.Mod, t ptx.Type, ftz bool) func(a, b uint64) bool {
	if ft, ok := floatTypes[t]; ok {
		return floatComparison(m, ft, ftz)
	}
	n := t.Bits()
	sign := uint64(0)
	if t.Signed() { // shifts the order of signed numbers onto that of unsigned ones
		sign = 1 << (n - 1)
	}
	mask := lowBits(n)
	less := func(a, b uint64) bool { return a&mask^sign < b&mask^sign }
	switch m {
	case ptx.ModEQ:
		return func(a, b uint64) bool { return (a^b)&mask == 0 }
	case ptx.ModNE:
		return func(a, b uint64) bool { return (a^b)&mask != 0 }
	case ptx.ModLT, ptx.ModLo:
		return less
	case ptx.ModGT, ptx.ModHi:
		return func(a, b uint64) bool { return less(b, a) }
	case ptx.ModLE, ptx.ModLS:
		return func(a, b uint64) bool { return !less(b, a) }
	case ptx.ModGE, ptx.ModHS:
		return func(a, b uint64) bool { return !less(a, b) }
	}
	return nil
}

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

func floatComparison(m ptx.Mod, ft floatType, ftz bool) func(a, b uint64) bool {
	test := floatTests[m]
	if test == nil {
		return nil
	}
	flush := func(v uint64) float64 { return ft.decode(v) }
	if ftz && ft.bits == 32 {
		flush = func(v uint64) float64 { return ft.decode(uint64(flush32(uint32(v)))) }
	}
	return func(a, b uint64) bool { return test(flush(a), flush(b)) }
}

// classOf is testp.
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
