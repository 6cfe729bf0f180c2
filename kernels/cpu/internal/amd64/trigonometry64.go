package amd64

import "math"

// Sines of f64 take quarters of a turn away in three parts of π/2 of 53 bits each, of which
// products with n < 2^30 are exact or have their rests (Cody and Waite, Software manual for
// the elementary functions, 1980). Larger angles are not theirs: their callers look first.

// LargestAngle64 is the magnitude from which on Sin64, Cos64 and Tan64 are not right.
const LargestAngle64 = 1 << 30

// π/2 in parts.
const (
	halfPi1 = 1.5707963267948966
	halfPi2 = 6.123233995736766e-17
	halfPi3 = -1.4973849048591698e-33
)

// rounded is x + y as two parts (Knuth, The Art of Computer Programming 2, 4.2.2).
func (r real) rounded(x, y Value) parted {
	high := r.do(VADDPS, x, y)
	virtual := r.do(VSUBPS, high, x)
	rest := r.do(VSUBPS, x, r.do(VSUBPS, high, virtual))
	return parted{high, r.do(VADDPS, rest, r.do(VSUBPS, y, virtual))}
}

// quarters64 is |x| by quarters of a turn.
func (r real) quarters64(x Value) quartered {
	a := r.magnitudeOf(x)
	magic := r.number(roundMagic64)
	shifted := r.mulAdd(a, r.number(2/math.Pi), magic)
	n := r.do(VSUBPS, shifted, magic)
	rest := r.negMulAdd(n, r.number(halfPi1), a)
	second := r.do(VMULPS, n, r.number(-halfPi2))
	lost := r.negMulAdd(n, r.number(halfPi2), r.Do(VXORPS, second, r.number(math.Copysign(0, -1))))
	sum := r.rounded(rest, second)
	low := r.do(VADDPS, sum.low, lost)
	low = r.negMulAdd(n, r.number(halfPi3), low)
	return quartered{shifted, r.sumOf(sum.high, low)}
}

// sine is the sine of at most π/4 (polynomial: FreeBSD, msun, k_sin.c).
func (r real) sine(y parted) Value {
	z := r.do(VMULPS, y.high, y.high)
	cube := r.do(VMULPS, z, y.high)
	p := r.halves(
		z, 8.33333333332248946124e-03, -1.98412698298579493134e-04, 2.75573137070700676789e-06,
		-2.50507602534068634195e-08, 1.58969099521155010221e-10,
	)
	half := r.do(VMULPS, y.low, r.number(0.5))
	rest := r.mulSub(z, r.negMulAdd(cube, p, half), y.low)
	rest = r.negMulAdd(cube, r.number(-1.66666666666666324348e-01), rest)
	return r.do(VSUBPS, y.high, rest)
}

// cosine is the cosine of at most π/4 (polynomial: FreeBSD, msun, k_cos.c).
func (r real) cosine(y parted) Value {
	z := r.do(VMULPS, y.high, y.high)
	p := r.halves(
		z, 4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
		-2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11,
	)
	half := r.do(VMULPS, z, r.number(0.5))
	most := r.do(VSUBPS, r.number(1), half)
	lost := r.do(VSUBPS, r.do(VSUBPS, r.number(1), most), half)
	square := r.do(VMULPS, z, z)
	tail := r.mulAdd(square, p, r.negMulAdd(y.high, y.low, lost))
	return r.do(VADDPS, most, tail)
}

// alternate64 is Chain.alternate of f64.
func (r real) alternate64(shifted, x, y Value) Value {
	v := r.choose(r.Do(VPSLLQ, shifted, Imm(63)), y, x)
	return r.Do(VXORPS, v, r.signOf(r.Do(VPSLLQ, shifted, Imm(62))))
}

// Sin64 returns sin x of |x| < LargestAngle64 within 2 ulp.
func (c *Chain) Sin64(x Value) Value {
	r := c.double()
	q := r.quarters64(x)
	v := r.alternate64(q.shifted, r.sine(q.rest), r.cosine(q.rest))
	return c.Do(VXORPS, v, r.signOf(x))
}

// Cos64 returns cos x of |x| < LargestAngle64 within 2 ulp.
func (c *Chain) Cos64(x Value) Value {
	r := c.double()
	q := r.quarters64(x)
	next := c.Do(VPADDQ, q.shifted, c.Const64(1))
	return r.alternate64(next, r.sine(q.rest), r.cosine(q.rest))
}

// Tan64 returns tan x of |x| < LargestAngle64, the sine by the cosine, within 4 ulp.
func (c *Chain) Tan64(x Value) Value {
	r := c.double()
	q := r.quarters64(x)
	sine, cosine := r.sine(q.rest), r.cosine(q.rest)
	odd := c.Do(VPSLLQ, q.shifted, Imm(63))
	over := r.choose(odd, cosine, sine)
	under := r.choose(odd, sine, cosine)
	v := r.do(VDIVPS, over, under)
	v = c.Do(VXORPS, v, r.signOf(odd))
	return c.Do(VXORPS, v, r.signOf(x))
}

// LargeQuotient is that of magnitudes from which on Remainder64 is not right.
const LargeQuotient = 1 << 51

// Remainder64 returns x − y trunc(x/y) exactly for |x| < LargeQuotient |y|: the quotient is
// the right one or, rounded up, one more, and both products have rests that are f64.
func (c *Chain) Remainder64(x, y Value) Value {
	r := c.double()
	a, b := r.magnitudeOf(x), r.magnitudeOf(y)
	q := r.do(VROUNDPS, r.do(VDIVPS, a, b), Imm(3))
	rest := r.negMulAdd(q, b, a)
	rest = r.choose(rest, r.do(VADDPS, rest, b), rest)
	less := r.compare(a, b, compareLT)
	return r.choose(less, x, r.withSign(r.magnitudeOf(rest), x))
}

// Beyond64 is the mask of the lanes where |x| ≥ limit·|y|, or one is NaN.
func (c *Chain) Beyond64(x, y Value, limit float64) Value {
	r := c.double()
	most := r.do(VMULPS, r.magnitudeOf(y), r.number(limit))
	return r.compare(r.magnitudeOf(x), most, compareNLTU)
}
