package vector

import (
	"math"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Floating types of one byte are held as f32. What distinguishes them is how many bits their
// exponent and their fraction have and what stands for infinities and NaN, which is found by
// asking the type; e8m0 and types of fewer bits have loops in Go.
//
// A normal number has the bits of the f32 with a shorter fraction and another bias. Below the
// least normal number all are whole multiples of one unit, 2 to the fewest exponent less the
// bits of the fraction, so that their codes are these multiples. Results are computed in f32 and
// rounded to the type, which is right for sums, products, quotients and roots since f32 has more
// than twice its digits (Figueroa, When is double rounding innocuous?, 1995).

// A smallType is a floating type of one byte with a sign.
type smallType struct {
	fraction int     // bits of the fraction
	bias     int     // of the exponent
	least    float64 // The least normal number.
	unit     float64 // The distance of numbers below it.
	most     float64 // The largest number.
	beyond   float32 // What is made of larger numbers: infinity or NaN.
	nan      uint32  // The code of NaN.
	noSign   bool    // Zero has no sign, and the code of −0 is NaN.
}

// smallTypes are the types by name.
var smallTypes = func() map[hlo.DType]smallType {
	types := map[hlo.DType]smallType{}
	for _, d := range []hlo.DType{
		hlo.F8E5M2, hlo.F8E4M3, hlo.F8E3M4, hlo.F8E4M3FN,
		hlo.F8E4M3FNUZ, hlo.F8E4M3B11FNUZ, hlo.F8E5M2FNUZ,
	} {
		types[d] = smallTypeOf(d)
	}
	return types
}()

// signByte is the sign of a code.
const signByte = 0x80

// smallTypeOf asks a type. The first code with an exponent is that of the least normal number.
func smallTypeOf(d hlo.DType) smallType {
	t := smallType{
		fraction: d.FractionBits(),
		unit:     d.FloatFromBits(1),
		beyond:   float32(d.RoundFloat(math.MaxFloat32)),
		nan:      uint32(d.FloatBits(math.NaN())),
	}
	t.least = d.FloatFromBits(1 << t.fraction)
	_, exponent := math.Frexp(t.least)
	t.bias = 2 - exponent
	t.noSign = t.nan == signByte
	for code := range uint64(signByte) {
		if v := d.FloatFromBits(code); v < math.Inf(1) {
			t.most = max(t.most, v)
		}
	}
	return t
}

// shift is the bits of the fraction of f32 that the type has not.
func (t smallType) shift() amd64.Imm { return amd64.Imm(23 - t.fraction) }

// isSmall is the mask of magnitudes below the least normal number.
func (t smallType) isSmall(c *amd64.Chain, size amd64.Value) amd64.Value {
	least := c.Float32(t.least)
	return c.Do(
		amd64.VCMPPS, size, least, floatPredicates["LT"],
	)
}

// isNaN is the mask of NaN: only that is not ordered with itself.
func isNaN(c *amd64.Chain, x amd64.Value) amd64.Value {
	const unordered = amd64.Imm(3)
	return c.Do(amd64.VCMPPS, x, x, unordered)
}

// round rounds f32 to nearest even: normal numbers by their bits, as roundBF16 does, smaller
// ones by adding a number whose last place is their unit.
func (t smallType) round(c *amd64.Chain, x amd64.Value) amd64.Value {
	size := c.Abs32(x)
	last := c.Do(
		amd64.VPSRLD, size,
		t.shift(),
	)
	odd := c.Do(
		amd64.VPAND, last,
		c.Const32(1),
	)
	half := c.Const32(1<<(t.shift()-1) - 1)
	sum := c.Do(
		amd64.VPADDD,
		c.Do(amd64.VPADDD, size, odd),
		half,
	)
	rounded := c.Do(
		amd64.VPAND, sum,
		c.Const32(^uint32(1<<t.shift()-1)),
	)

	// The sum with 3·2²² units is rounded to a whole number of them.
	magic := c.Float32(t.unit * (3 << 22))
	near := c.Do(amd64.VADDPS, size, magic)
	near = c.Do(amd64.VSUBPS, near, magic)
	rounded = c.Do(
		amd64.VBLENDVPS, rounded, near,
		t.isSmall(c, size),
	)

	// What is rounded to more than the largest number has no code, infinity among it.
	above := c.Do(
		amd64.VCMPPS, rounded, c.Float32(t.most),
		floatPredicates["GT"],
	)
	beyond := c.Const32(math.Float32bits(t.beyond))
	rounded = c.Do(amd64.VBLENDVPS, rounded, beyond, above)
	rounded = c.Do(
		amd64.VORPS, rounded,
		isNaN(c, x),
	)
	return c.Do(
		amd64.VORPS, rounded,
		t.signOf(c, x, rounded),
	)
}

// signOf is the sign of x for a result of some magnitude, which zero has only where the type
// has a negative one.
func (t smallType) signOf(c *amd64.Chain, x, size amd64.Value) amd64.Value {
	sign := signOf(c, x)
	if !t.noSign {
		return sign
	}
	zero := c.Do(
		amd64.VPCMPEQD, size,
		c.Const32(0),
	)
	return c.Do(amd64.VANDNPS, zero, sign)
}

// signed puts signs of f32 before codes, and NaN in place of those that are invalid.
func (t smallType) signed(
	c *amd64.Chain, code, sign, invalid amd64.Value,
) amd64.Value {
	sign = c.Do(amd64.VPSRLD, sign, amd64.Imm(24))
	code = c.Do(amd64.VPOR, code, sign)
	return c.Do(
		amd64.VBLENDVPS, code,
		c.Const32(t.nan), invalid,
	)
}

// largest is the code of the largest number.
func (t smallType) largest() uint32 {
	bits := math.Float32bits(float32(t.most))
	return bits>>t.shift() - uint32(127-t.bias)<<t.fraction
}

// decode makes f32 of codes with zeros in front of them: of normal numbers the bits are moved
// and the bias is changed, smaller ones are products of their unit.
func (t smallType) decode(c *amd64.Chain, code amd64.Value) amd64.Value {
	size := c.Do(
		amd64.VPAND, code,
		c.Const32(signByte-1),
	)
	moved := c.Do(
		amd64.VPSLLD, size,
		t.shift(),
	)
	normal := c.Do(
		amd64.VPADDD, moved,
		c.Const32(uint32(127-t.bias)<<23),
	)
	near := c.Do(
		amd64.VMULPS,
		c.FromInt32(size),
		c.Float32(t.unit),
	)
	small := c.Do(
		amd64.VPCMPGTD,
		c.Const32(1<<t.fraction), size,
	)
	x := c.Do(
		amd64.VBLENDVPS, normal, near, small,
	)
	if largest := c.Float32(t.most); math.IsInf(float64(t.beyond), 0) {
		// The exponents of infinity and NaN have all bits set.
		above := c.Do(
			amd64.VCMPPS, x, largest, floatPredicates["GT"],
		)
		exponent := c.Do(
			amd64.VPAND, above,
			c.Const32(0xff<<23),
		)
		x = c.Do(amd64.VPOR, x, exponent)
	}
	sign := c.Do(
		amd64.VPSLLD,
		c.Do(amd64.VPSRLD, code, amd64.Imm(7)),
		lowest,
	)
	x = c.Do(amd64.VPOR, x, sign)
	if math.IsInf(float64(t.beyond), 0) {
		return x
	}
	// The code of NaN is one, with a sign or, without −0, that of −0.
	of := code
	if !t.noSign {
		of = size
	}
	return c.Do(
		amd64.VPOR, x,
		c.Do(amd64.VPCMPEQD, of, c.Const32(t.nan)),
	)
}

// encode makes codes of f32 that are numbers of the type.
func (t smallType) encode(c *amd64.Chain, x amd64.Value) amd64.Value {
	size := c.Abs32(x)
	bias := c.Const32(uint32(127-t.bias) << 23)
	normal := c.Do(amd64.VPSUBD, size, bias)
	normal = c.Do(amd64.VPSRLD, normal, t.shift())
	// The product is a whole number, which is the code.
	units := c.Do(
		amd64.VMULPS, size,
		c.Float32(1/t.unit),
	)
	near := c.Do(amd64.VCVTPS2DQ, units)
	code := c.Do(
		amd64.VBLENDVPS, normal, near,
		t.isSmall(c, size),
	)
	if math.IsInf(float64(t.beyond), 0) {
		// Infinity is next to the largest number.
		next := t.largest() + 1
		above := c.Do(
			amd64.VCMPPS, size, c.Float32(t.most),
			floatPredicates["GT"],
		)
		code = c.Do(
			amd64.VBLENDVPS, code,
			c.Const32(next),
			above,
		)
	}
	sign := t.signOf(c, x, size)
	return t.signed(c, code, sign, isNaN(c, x))
}

// encodeRounded makes codes of any f32, those of encode(round(x)) in half the instructions: the
// code of a normal number is its bits, rounded and moved, and that of a smaller one is what is
// left of a sum with a number whose last place is the unit.
func (t smallType) encodeRounded(c *amd64.Chain, x amd64.Value) amd64.Value {
	size := c.Abs32(x)
	odd := c.Do(
		amd64.VPSRLD, size,
		t.shift(),
	)
	odd = c.Do(
		amd64.VPAND, odd,
		c.Const32(1),
	)
	// Half a place less one is added, and the bias taken away.
	half := uint32(1) << (t.shift() - 1)
	bias := uint32(127-t.bias) << 23
	normal := c.Do(
		amd64.VPADDD, size,
		c.Const32(half-1-bias),
	)
	normal = c.Do(
		amd64.VPADDD, normal, odd,
	)
	normal = c.Do(
		amd64.VPSRLD, normal,
		t.shift(),
	)
	magic := c.Float32(t.unit * (3 << 22))
	near := c.Do(
		amd64.VPSUBD,
		c.Do(amd64.VADDPS, size, magic), magic,
	)
	code := c.Do(
		amd64.VBLENDVPS, normal, near,
		t.isSmall(c, size),
	)
	// The code behind that of the largest number is infinity, or NaN where there is none.
	largest := t.largest()
	invalid := isNaN(c, x)
	if math.IsInf(float64(t.beyond), 0) {
		beyond := c.Const32(largest + 1)
		code = c.Do(
			amd64.VPMINSD, code, beyond,
		)
	} else {
		above := c.Do(
			amd64.VPCMPGTD, code,
			c.Const32(largest),
		)
		invalid = c.Do(
			amd64.VORPS, invalid, above,
		)
	}
	sign := t.signOf(c, x, code)
	return t.signed(c, code, sign, invalid)
}

// StoreConverted stores what an instruction makes of x as elements of an array of type d, where
// it converts floats held as f32 to a type of one byte; it reports whether it does.
func StoreConverted(
	c *amd64.Chain, to amd64.Mem, d hlo.DType, i *hlo.Instr, x amd64.Value,
) bool {
	t, small := smallTypes[d]
	if !small || i.Op != hlo.OpConvert || i.Shape.DType != d {
		return false
	}
	from := i.Operands[0].Shape.DType
	if !from.IsFloat() ||
		portable.ClassOf(from) != portable.Float32 {
		return false
	}
	code := t.encodeRounded(c, x)
	c.StoreBytes(to, Lanes, code)
	return true
}

// codec is how vectors of a type are loaded and stored. Values were rounded to the type before
// they are stored, as everywhere in scratch.
func (t smallType) codec() HalfCodec {
	return HalfCodec{
		func(c *amd64.Chain, from amd64.Mem, advance int32) amd64.Value {
			return t.decode(c, c.Load(
				amd64.VPMOVZXBD, from, advance),
			)
		},
		func(c *amd64.Chain, to amd64.Mem, advance int32, x amd64.Value) {
			c.StoreBytes(to, advance, t.encode(c, x))
		},
	}
}

// A rounding rounds results to a type that is held as f32.
type rounding = func(c *amd64.Chain, x amd64.Value) amd64.Value

// withSmall adds the roundings of floating types of one byte.
func withSmall(roundings map[hlo.DType]rounding) map[hlo.DType]rounding {
	for d, t := range smallTypes {
		roundings[d] = t.round
	}
	return roundings
}

// withSmallCodecs adds how floating types of one byte are loaded and stored.
func withSmallCodecs(codecs map[hlo.DType]HalfCodec) map[hlo.DType]HalfCodec {
	for d, t := range smallTypes {
		codecs[d] = t.codec()
	}
	return codecs
}
