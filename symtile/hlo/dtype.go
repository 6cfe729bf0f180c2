package hlo

import "math"

// DType is an element type.
type DType uint8

// The element types of HLO.
const (
	// InvalidDType is the zero value; no array has it.
	InvalidDType DType = iota
	// Pred is a truth value, stored in a byte as 0 or 1.
	Pred
	// S1 to S64 are signed integers in two's complement; those under a byte take a
	// byte of a buffer each. S1 has 0 and −1.
	S1
	S2
	S4
	S8
	S16
	S32
	S64
	// U1 to U64 are unsigned integers. U1 is not Pred: 1 + 1 is 0.
	U1
	U2
	U4
	U8
	U16
	U32
	U64
	// F4E2M1FN has 2 bits of exponent and 1 of mantissa, and neither infinities nor
	// NaN. The names of all small types give these widths. FN: finite, no
	// infinities. UZ: unsigned zero, whose other code is the only NaN. B11: a bias
	// of 11.
	F4E2M1FN
	F8E3M4
	F8E4M3
	// F8E4M3FN is the e4m3 of OCP's 8-bit specification: 448 is the largest number.
	F8E4M3FN
	F8E4M3B11FNUZ
	F8E4M3FNUZ
	// F8E5M2 is the e5m2 of the same: an f16 without its low 8 bits.
	F8E5M2
	F8E5M2FNUZ
	// F8E8M0FNU is the power of two 2^(code − 127), the scale of OCP's MX formats;
	// it has no sign and no zero.
	F8E8M0FNU
	// F16 is IEEE 754 binary16.
	F16
	// BF16 is an f32 without its low 16 bits.
	BF16
	// F32 and F64 are IEEE 754 binary32 and binary64.
	F32
	F64
	// C64 and C128 are complex numbers of two f32 or f64.
	C64
	C128
	// Token orders side effects and holds no data.
	Token
	// Opaque is data of a custom call.
	Opaque
	// Tuple is the type of a Shape that has element shapes instead of extents.
	Tuple
	// Buffer is memory that holds the one shape in Tuple, b(f32[8]), which
	// custom-calls pass on.
	Buffer
)

// A dtypeClass is a family of element types.
type dtypeClass uint8

const (
	classNone dtypeClass = iota
	classPred
	classSigned
	classUnsigned
	classFloat
	classComplex
)

// dtypes is what there is to know about each element type. bytes is the width
// of an element in a Buffer: types under a byte take a whole one.
var dtypes = [...]struct {
	name  string
	class dtypeClass
	bits  int
	bytes int64
}{
	InvalidDType:  {"invalid", classNone, 0, 0},
	Pred:          {"pred", classPred, 1, 1},
	S1:            {"s1", classSigned, 1, 1},
	S2:            {"s2", classSigned, 2, 1},
	S4:            {"s4", classSigned, 4, 1},
	S8:            {"s8", classSigned, 8, 1},
	S16:           {"s16", classSigned, 16, 2},
	S32:           {"s32", classSigned, 32, 4},
	S64:           {"s64", classSigned, 64, 8},
	U1:            {"u1", classUnsigned, 1, 1},
	U2:            {"u2", classUnsigned, 2, 1},
	U4:            {"u4", classUnsigned, 4, 1},
	U8:            {"u8", classUnsigned, 8, 1},
	U16:           {"u16", classUnsigned, 16, 2},
	U32:           {"u32", classUnsigned, 32, 4},
	U64:           {"u64", classUnsigned, 64, 8},
	F4E2M1FN:      {"f4e2m1fn", classFloat, 4, 1},
	F8E3M4:        {"f8e3m4", classFloat, 8, 1},
	F8E4M3:        {"f8e4m3", classFloat, 8, 1},
	F8E4M3FN:      {"f8e4m3fn", classFloat, 8, 1},
	F8E4M3B11FNUZ: {"f8e4m3b11fnuz", classFloat, 8, 1},
	F8E4M3FNUZ:    {"f8e4m3fnuz", classFloat, 8, 1},
	F8E5M2:        {"f8e5m2", classFloat, 8, 1},
	F8E5M2FNUZ:    {"f8e5m2fnuz", classFloat, 8, 1},
	F8E8M0FNU:     {"f8e8m0fnu", classFloat, 8, 1},
	F16:           {"f16", classFloat, 16, 2},
	BF16:          {"bf16", classFloat, 16, 2},
	F32:           {"f32", classFloat, 32, 4},
	F64:           {"f64", classFloat, 64, 8},
	C64:           {"c64", classComplex, 64, 8},
	C128:          {"c128", classComplex, 128, 16},
	Token:         {"token", classNone, 0, 0},
	Opaque:        {"opaque", classNone, 0, 0},
	Tuple:         {"tuple", classNone, 0, 0},
	Buffer:        {"buffer", classNone, 0, 0},
}

// String is HLO's name of the type, such as bf16.
func (d DType) String() string { return dtypes[d].name }

// Size is the bytes an element takes in a buffer; 0 for tuple, token, opaque.
func (d DType) Size() int64 { return dtypes[d].bytes }

// Bits is the width of the type itself: 4 for s4, 1 for pred.
func (d DType) Bits() int { return dtypes[d].bits }

// IsFloat reports whether d is a real floating-point type.
func (d DType) IsFloat() bool { return dtypes[d].class == classFloat }

// IsInteger reports whether d is a signed or unsigned integer; pred is not.
func (d DType) IsInteger() bool {
	return d.IsSigned() || d.IsUnsigned()
}

// IsSigned reports whether d is a signed integer.
func (d DType) IsSigned() bool { return dtypes[d].class == classSigned }

// IsUnsigned reports whether d is an unsigned integer; pred is not.
func (d DType) IsUnsigned() bool { return dtypes[d].class == classUnsigned }

// IsComplex reports whether d is c64 or c128.
func (d DType) IsComplex() bool { return dtypes[d].class == classComplex }

// Component is the type of the real and the imaginary part of a complex type; another
// type is itself.
func (d DType) Component() DType {
	switch d {
	case C64:
		return F32
	case C128:
		return F64
	}
	return d
}

// IsArray reports whether arrays of d hold elements.
func (d DType) IsArray() bool { return dtypes[d].bytes > 0 }

// ParseDType finds the type with HLO's name for it. "f8" alone means f8e4m3fn.
func ParseDType(name string) (DType, bool) {
	d, ok := dtypeNames[name]
	return d, ok
}

// dtypeNames are the element types by their names in HLO text.
var dtypeNames = func() map[string]DType {
	names := map[string]DType{"f8": F8E4M3FN}
	for d, row := range dtypes {
		if DType(d) != InvalidDType && DType(d) != Tuple {
			names[row.name] = DType(d)
		}
	}
	return names
}()

// FloatFromBits is the number whose code in type d, in the low bits, is bits.
func (d DType) FloatFromBits(bits uint64) float64 {
	switch d {
	case F64:
		return math.Float64frombits(bits)
	case F32:
		return float64(math.Float32frombits(uint32(bits)))
	}
	return smallFloats[d].decode(uint16(bits))
}

// FloatBits is the code of v in type d, rounded to nearest even.
func (d DType) FloatBits(v float64) uint64 {
	switch d {
	case F64:
		return math.Float64bits(v)
	case F32:
		return uint64(math.Float32bits(float32(v)))
	}
	return uint64(smallFloats[d].encode(v))
}

// RoundFloat rounds v to type d and back.
func (d DType) RoundFloat(v float64) float64 {
	switch d {
	case F64:
		return v
	case F32:
		return float64(float32(v))
	}
	f := smallFloats[d]
	return f.decode(f.encode(v))
}

// FractionBits is the number of bits after the binary point of a normal number.
func (d DType) FractionBits() int {
	switch d {
	case F64:
		return 52
	case F32:
		return 23
	}
	return smallFloats[d].frac
}

// ExponentBits is the width of the exponent of a floating-point type.
func (d DType) ExponentBits() int {
	switch d {
	case F64:
		return 11
	case F32:
		return 8
	}
	return smallFloats[d].exp
}

// A smallFloat describes a float of at most 16 bits.
type smallFloat struct {
	// exp and frac are the widths of exponent and mantissa in bits, bias what is
	// added to the exponent.
	exp, frac int
	bias      int
	// finite: the type has no infinities.
	finite bool
	// unsigned: the type has no sign and no zero (e8m0).
	unsigned bool
	// nan is the code of the canonical NaN, 0 when there is none.
	nan uint16
	// nanOnly: code 0x80 is the only NaN, and there is no −0 (fnuz).
	nanOnly bool
}

// IEEE half and bfloat16, and the 8- and 4-bit types of the OCP specifications and their fnuz variants
// (Noune et al., 2022).
var smallFloats = map[DType]*smallFloat{
	F16:           {exp: 5, frac: 10, bias: 15, nan: 0x7e00},
	BF16:          {exp: 8, frac: 7, bias: 127, nan: 0x7fc0},
	F8E5M2:        {exp: 5, frac: 2, bias: 15, nan: 0x7e},
	F8E4M3:        {exp: 4, frac: 3, bias: 7, nan: 0x7c},
	F8E3M4:        {exp: 3, frac: 4, bias: 3, nan: 0x78},
	F8E4M3FN:      {exp: 4, frac: 3, bias: 7, finite: true, nan: 0x7f},
	F8E4M3FNUZ:    {exp: 4, frac: 3, bias: 8, finite: true, nan: 0x80, nanOnly: true},
	F8E4M3B11FNUZ: {exp: 4, frac: 3, bias: 11, finite: true, nan: 0x80, nanOnly: true},
	F8E5M2FNUZ:    {exp: 5, frac: 2, bias: 16, finite: true, nan: 0x80, nanOnly: true},
	F4E2M1FN:      {exp: 2, frac: 1, bias: 1, finite: true},
	F8E8M0FNU:     {exp: 8, frac: 0, bias: 127, finite: true, unsigned: true, nan: 0xff},
}

// decode is the number with code b, in the low bits.
func (f *smallFloat) decode(b uint16) float64 {
	if f.unsigned {
		if b == f.nan {
			return math.NaN()
		}
		return math.Ldexp(1, int(b)-f.bias)
	}
	top := f.exp + f.frac
	sign := 1.0
	exp := int(b) >> f.frac & (1<<f.exp - 1)
	frac := int(b) & (1<<f.frac - 1)
	if b>>top&1 != 0 {
		sign = -1
	}
	switch {
	case f.nanOnly && b == f.nan,
		f.finite && f.nan != 0 && !f.nanOnly &&
			b&^(1<<top) == f.nan:
		return math.NaN()
	case !f.finite && exp == 1<<f.exp-1 && frac != 0:
		return math.NaN()
	case !f.finite && exp == 1<<f.exp-1:
		return math.Inf(int(sign))
	case exp == 0:
		return sign *
			math.Ldexp(float64(frac), 1-f.bias-f.frac)
	}
	return sign *
		math.Ldexp(float64(1<<f.frac|frac), exp-f.bias-f.frac)
}

// encode rounds to nearest even. Too large becomes the infinity where there is
// one, else NaN where there is one, else the largest number. NaN becomes −0 where
// there is none.
func (f *smallFloat) encode(v float64) uint16 {
	if f.unsigned {
		return f.encodePower(v)
	}
	top := f.exp + f.frac
	sign := uint16(0)
	if math.Signbit(v) && !(f.nanOnly && v == 0) {
		sign = 1 << top
	}
	switch {
	case v == v:
	case f.nan == 0:
		return 1 << top // −0, as in XLA, whatever the sign of the NaN
	case f.nanOnly:
		return f.nan
	default:
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
		code = (e+f.bias)<<f.frac |
			int(q)&(1<<f.frac-1)
	}
	largest := f.largest()
	if code > largest || e+f.bias > 1<<f.exp {
		return f.overflow(sign)
	}
	if code == 0 && f.nanOnly {
		return 0
	}
	return uint16(code) | sign
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

// overflow is the code of a number that is too large: infinity, NaN or the
// largest number, by what the type has.
func (f *smallFloat) overflow(sign uint16) uint16 {
	switch {
	case !f.finite:
		return uint16((1<<f.exp-1)<<f.frac) | sign
	case f.nanOnly:
		return f.nan
	case f.nan != 0:
		return f.nan | sign
	}
	return uint16(f.largest()) | sign
}

// encodePower is encode for f8e8m0, which holds powers of two only: the nearest one of v as
// an f32, halves up, and NaN for what is not positive or is too large, as in XLA.
func (f *smallFloat) encodePower(v float64) uint16 {
	v = float64(float32(v))
	if v != v || v <= 0 || math.IsInf(v, 0) {
		return f.nan
	}
	m, e := math.Frexp(v)
	if e--; m >= 0.75 {
		e++
	}
	if e > f.bias {
		return f.nan
	}
	return uint16(max(e+f.bias, 0))
}
