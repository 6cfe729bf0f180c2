package kernels

import (
	"math"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// BF16ToFloat32 widens a bfloat16; exact.
func BF16ToFloat32(bits uint16) float32 {
	return math.Float32frombits(uint32(bits) << 16)
}

// Float32ToBF16 rounds to nearest even; NaN stays NaN.
func Float32ToBF16(v float32) uint16 {
	bits := math.Float32bits(v)
	if v != v {
		return uint16(bits>>16) | 0x40
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

// float64ToBF16 rounds once, to nearest even.
func float64ToBF16(v float64) uint16 { return Float32ToBF16(roundToOdd(v)) }

// roundToOdd narrows to float32 so that rounding again to a type with at most
// 22 significant bits gives what rounding once would: when inexact, the last
// bit is 1 (Boldo and Melquiond, 2008).
func roundToOdd(v float64) float32 {
	f := float32(v)
	w := float64(f)
	if w == v || v != v ||
		math.IsInf(w, 0) && math.IsInf(v, 0) {
		return f
	}
	bits := math.Float32bits(f)
	if bits&1 != 0 {
		return f
	}
	if math.Abs(float64(f)) > math.Abs(v) {
		bits-- // f was rounded away from zero
	} else {
		bits++
	}
	if bits&1 == 0 { // f was the infinity next to the largest number
		bits |= 1
	}
	return math.Float32frombits(bits)
}

// F16ToFloat32 widens an IEEE half; exact.
func F16ToFloat32(h uint16) float32 {
	sign := uint32(h>>15) << 31
	exp := uint32(h>>10) & 31
	frac := uint32(h) & 0x3ff
	switch {
	case exp == 31:
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	case exp == 0:
		v := float32(frac) * 0x1p-24
		return math.Float32frombits(sign | math.Float32bits(v))
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// Float32ToF16 rounds to nearest even; NaN stays NaN, too large becomes ±Inf.
func Float32ToF16(v float32) uint16 {
	bits := math.Float32bits(v)
	sign := uint16(bits>>16) & 0x8000
	abs := bits & 0x7fffffff
	switch {
	case abs > 0x7f800000:
		return sign | 0x7e00
	case abs >= 0x477ff000: // 65520 and up
		return sign | 0x7c00
	case abs < 0x38800000: // under 2^-14: denormal
		scaled := math.Float32frombits(abs) * 0x1p24
		return sign | uint16(math.RoundToEven(float64(scaled)))
	}
	abs += 0xfff + abs>>13&1
	return sign | uint16((abs-112<<23)>>13)
}

// float64ToF16 rounds once, to nearest even.
func float64ToF16(v float64) uint16 { return Float32ToF16(roundToOdd(v)) }

// RoundFloat rounds v to a floating type and back.
func RoundFloat(d hlo.DType, v float64) float64 {
	switch d {
	case hlo.F64:
		return v
	case hlo.F32:
		return float64(float32(v))
	case hlo.BF16:
		return float64(BF16ToFloat32(float64ToBF16(v)))
	case hlo.F16:
		return float64(F16ToFloat32(float64ToF16(v)))
	}
	return d.RoundFloat(v)
}

// ReducePrecision rounds v, a number of type d, to the nearest one of exponent and
// mantissa bits, halves to the even code, as XLA's EmitReducePrecisionIR does: with a narrower
// exponent than d's, what is too large becomes infinite, and what would be denormal
// zero; with as wide a one, denormal numbers keep the spacing of d's.
func ReducePrecision(d hlo.DType, exponent, mantissa int, v float64) float64 {
	if v == 0 || v != v || math.IsInf(v, 0) {
		return v
	}
	own := d.ExponentBits()
	_, e := math.Frexp(v)
	e = max(e-1, 2-1<<(own-1))
	if mantissa < d.FractionBits() {
		q := math.Ldexp(v, mantissa-e)
		r := math.RoundToEven(q)
		if math.Abs(q) == 1.5 && (e+1<<(own-1)-1)&1 == 0 {
			r = math.Copysign(1, q) // without a mantissa, the last bit is the exponent's
		}
		v = math.Ldexp(r, e-mantissa)
	}
	bias := 1<<(min(exponent, own)-1) - 1
	switch {
	case math.Abs(v) >= math.Ldexp(1, bias+1):
		return math.Inf(int(math.Copysign(1, v)))
	case exponent < own && math.Abs(v) < math.Ldexp(1, 1-bias):
		return math.Copysign(0, v)
	}
	return v
}
