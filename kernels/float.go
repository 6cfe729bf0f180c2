package kernels

import (
	"math"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// BF16ToFloat32 widens a bfloat16; exact.
func BF16ToFloat32(bits uint16) float32 { return math.Float32frombits(uint32(bits) << 16) }

// Float32ToBF16 rounds to nearest even; NaN stays NaN.
func Float32ToBF16(v float32) uint16 {
	bits := math.Float32bits(v)
	if v != v {
		return uint16(bits>>16) | 0x40
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

// Float64ToBF16 rounds once, to nearest even.
func Float64ToBF16(v float64) uint16 { return Float32ToBF16(roundToOdd(v)) }

// roundToOdd narrows to float32 so that rounding again to a type with at most
// 22 significant bits gives what rounding once would: when inexact, the last
// bit is 1 (Boldo and Melquiond, 2008).
func roundToOdd(v float64) float32 {
	f := float32(v)
	if w := float64(f); w == v || v != v || math.IsInf(w, 0) && math.IsInf(v, 0) {
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
	sign, exp, frac := uint32(h>>15)<<31, uint32(h>>10)&31, uint32(h)&0x3ff
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
	sign, abs := uint16(bits>>16)&0x8000, bits&0x7fffffff
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

// Float64ToF16 rounds once, to nearest even.
func Float64ToF16(v float64) uint16 { return Float32ToF16(roundToOdd(v)) }

// A smallFloat describes a float of at most 8 bits.
type smallFloat struct {
	exp, frac int  // bits
	bias      int  //
	finite    bool // no infinities
	unsigned  bool // e8m0: no sign, no zero
	nan       byte // the canonical NaN; 0 when there is none
	nanOnly   bool // fnuz: 0x80 is the only NaN and there is no −0
}

// The 8- and 4-bit types of the OCP specifications and their fnuz variants
// (Noune et al., 2022).
var smallFloats = map[hlo.DType]*smallFloat{
	hlo.F8E5M2:        {exp: 5, frac: 2, bias: 15, nan: 0x7e},
	hlo.F8E4M3:        {exp: 4, frac: 3, bias: 7, nan: 0x7c},
	hlo.F8E3M4:        {exp: 3, frac: 4, bias: 3, nan: 0x78},
	hlo.F8E4M3FN:      {exp: 4, frac: 3, bias: 7, finite: true, nan: 0x7f},
	hlo.F8E4M3FNUZ:    {exp: 4, frac: 3, bias: 8, finite: true, nan: 0x80, nanOnly: true},
	hlo.F8E4M3B11FNUZ: {exp: 4, frac: 3, bias: 11, finite: true, nan: 0x80, nanOnly: true},
	hlo.F8E5M2FNUZ:    {exp: 5, frac: 2, bias: 16, finite: true, nan: 0x80, nanOnly: true},
	hlo.F4E2M1FN:      {exp: 2, frac: 1, bias: 1, finite: true},
	hlo.F8E8M0FNU:     {exp: 8, frac: 0, bias: 127, finite: true, unsigned: true, nan: 0xff},
}

func (f *smallFloat) decode(b byte) float64 {
	if f.unsigned {
		if b == f.nan {
			return math.NaN()
		}
		return math.Ldexp(1, int(b)-f.bias)
	}
	top := f.exp + f.frac
	sign, exp, frac := 1.0, int(b)>>f.frac&(1<<f.exp-1), int(b)&(1<<f.frac-1)
	if b>>top&1 != 0 {
		sign = -1
	}
	switch {
	case f.nanOnly && b == f.nan, f.finite && f.nan != 0 && !f.nanOnly && b&^(1<<top) == f.nan:
		return math.NaN()
	case !f.finite && exp == 1<<f.exp-1 && frac != 0:
		return math.NaN()
	case !f.finite && exp == 1<<f.exp-1:
		return math.Inf(int(sign))
	case exp == 0:
		return sign * math.Ldexp(float64(frac), 1-f.bias-f.frac)
	}
	return sign * math.Ldexp(float64(1<<f.frac|frac), exp-f.bias-f.frac)
}

// encode rounds to nearest even. Too large becomes the infinity where there is
// one, else NaN where there is one, else the largest number.
func (f *smallFloat) encode(v float64) byte {
	if f.unsigned {
		return f.encodePower(v)
	}
	top := f.exp + f.frac
	sign := byte(0)
	if math.Signbit(v) && !(f.nanOnly && v == 0) {
		sign = 1 << top
	}
	if v != v {
		if f.nanOnly || f.nan == 0 {
			return f.nan
		}
		return f.nan | sign
	}
	if math.IsInf(v, 0) {
		return f.overflow(sign)
	}
	magnitude := math.Abs(v)
	_, e := math.Frexp(magnitude)
	e = max(e-1, 1-f.bias)
	q := math.RoundToEven(math.Ldexp(magnitude, f.frac-e)) // in units of the last place
	if q >= float64(int(2)<<f.frac) {
		q, e = q/2, e+1
	}
	code := int(q)
	if q >= float64(int(1)<<f.frac) {
		code = (e+f.bias)<<f.frac | int(q)&(1<<f.frac-1)
	}
	largest := f.largest()
	if code > largest || e+f.bias > 1<<f.exp {
		return f.overflow(sign)
	}
	if code == 0 && f.nanOnly {
		return 0
	}
	return byte(code) | sign
}

// largest is the code of the largest finite number.
func (f *smallFloat) largest() int {
	all := 1<<(f.exp+f.frac) - 1
	switch {
	case !f.finite:
		return (1<<f.exp-1)<<f.frac - 1
	case f.nan != 0 && !f.nanOnly:
		return all - 1
	}
	return all
}

func (f *smallFloat) overflow(sign byte) byte {
	switch {
	case !f.finite:
		return byte((1<<f.exp-1)<<f.frac) | sign
	case f.nanOnly:
		return f.nan
	case f.nan != 0:
		return f.nan | sign
	}
	return byte(f.largest()) | sign
}

func (f *smallFloat) encodePower(v float64) byte {
	if v != v || v <= 0 || math.IsInf(v, 0) {
		return f.nan
	}
	m, e := math.Frexp(v)
	if e--; m > 0.75 || m == 0.75 && e&1 != 0 {
		e++
	}
	return byte(min(max(e+f.bias, 0), 254))
}

// RoundFloat rounds v to a floating type and back.
func RoundFloat(d hlo.DType, v float64) float64 {
	switch d {
	case hlo.F64:
		return v
	case hlo.F32:
		return float64(float32(v))
	case hlo.BF16:
		return float64(BF16ToFloat32(Float64ToBF16(v)))
	case hlo.F16:
		return float64(F16ToFloat32(Float64ToF16(v)))
	}
	f := smallFloats[d]
	return f.decode(f.encode(v))
}
