package amd64

import "math"

// The functions below work on f32. Polynomials are minimax (Remez exchange on
// the relative error of the function, then rounded to f32). A bound in ulp is
// the largest error over all 2^32 inputs, as go test -run Ulp -exhaustive finds
// it, rounded up. NaN, ±Inf, ±0 and denormals come out as the functions of
// package math have them, rounded to f32.

// Float32 returns a vector of eight times v, rounded to f32.
func (c *Chain) Float32(v float64) Value { return c.Const32(math.Float32bits(float32(v))) }

// horner returns p[0] + x*(p[1] + x*(p[2] + …)).
func (c *Chain) horner(x Value, p ...float64) Value {
	last := len(p) - 1
	sum := c.Float32(p[last])
	for k := last - 1; k >= 0; k-- {
		sum = c.MulAdd32(sum, x, c.Float32(p[k]))
	}
	return sum
}

// paired returns p[0] + x*p[1] + x²*(p[2] + x*p[3] + x²*(…)), whose pairs do not
// wait for each other: half the latency of horner for one instruction more.
func (c *Chain) paired(x, square Value, p ...float64) Value {
	pair := func(k int) Value {
		if k+1 == len(p) {
			return c.Float32(p[k])
		}
		if p[k+1] == 1 {
			return c.Do(VADDPS, x, c.Float32(p[k]))
		}
		return c.MulAdd32(x, c.Float32(p[k+1]), c.Float32(p[k]))
	}
	last := (len(p) - 1) &^ 1
	sum := pair(last)
	for k := last - 2; k >= 0; k -= 2 {
		sum = c.MulAdd32(square, sum, pair(k))
	}
	return sum
}

// Bits of f32.
const (
	signBit          = 1 << 31
	magnitude        = 1<<31 - 1
	oneBits          = 127 << 23
	mantissa         = 23      // its width
	roundMagic       = 3 << 22 // x + roundMagic - roundMagic rounds x to a whole number
	compareEQ        = Imm(0)
	compareLT        = Imm(1)
	compareUnordered = Imm(3)
	compareORD       = Imm(7)
	compareNLTU      = Imm(5) // not less than, true of NaN
)

// ln 2 as an f32 and the rest of it.
const (
	ln2High = 0.693147182464599609375
	ln2Low  = math.Ln2 - ln2High
)

// Abs32 returns |x|.
func (c *Chain) Abs32(x Value) Value { return c.Do(VANDPS, x, c.Const32(magnitude)) }

// Neg32 returns -x.
func (c *Chain) Neg32(x Value) Value { return c.Do(VXORPS, x, c.Const32(signBit)) }

// AtMost32 returns min(x, limit), and NaN for NaN.
func (c *Chain) AtMost32(x Value, limit float64) Value {
	return c.Do(VMINPS, c.Float32(limit), x) // the second operand where one is NaN
}

// AtLeast32 returns max(x, limit), and NaN for NaN.
func (c *Chain) AtLeast32(x Value, limit float64) Value {
	return c.Do(VMAXPS, c.Float32(limit), x)
}

// Max32 returns the larger of x and y, of which +0 is larger than -0, and NaN if
// either is NaN. VMAXPS alone returns its second operand in these cases, so that
// both orders differ: in the sign of 0, which the difference takes away again,
// or in the bits of a NaN, which stays one.
func (c *Chain) Max32(x, y Value) Value {
	m, n := c.Do(VMAXPS, x, y), c.Do(VMAXPS, y, x)
	differ := c.Do(VXORPS, m, n)
	return c.Do(VSUBPS, c.Do(VORPS, m, differ), differ)
}

// Min32 returns the smaller of x and y, of which -0 is smaller than +0, and NaN
// if either is NaN.
func (c *Chain) Min32(x, y Value) Value {
	return c.Do(VORPS, c.Do(VMINPS, x, y), c.Do(VMINPS, y, x))
}

// FoldLanes32 returns a vector whose lanes all hold what combine makes of the
// eight lanes of v, in this order: 0 with 4, 1 with 5, …; of these 0 with 2, 1
// with 3; of these 0 with 1. Combine has to be commutative, to the bit.
func (c *Chain) FoldLanes32(v Value, combine func(x, y Value) Value) Value {
	v = combine(v, c.Do(VPERM2F128, v, v, Imm(1)))
	v = combine(v, c.Do(VPERMILPS, v, Imm(0x4e)))
	return combine(v, c.Do(VPERMILPS, v, Imm(0xb1)))
}

// withSignOf returns x ≥ 0 with the sign of y.
func (c *Chain) withSignOf(x, y Value) Value {
	return c.Do(VORPS, x, c.Do(VANDPS, y, c.Const32(signBit)))
}

// A reduced argument: x = n ln 2 + r with |r| ≤ ln 2 / 2, shifted = n + roundMagic.
type reduced struct{ shifted, r Value }

func (c *Chain) reduce(x Value) reduced { return c.reduceBiased(x, 0) }

// reduceBiased adds bias, a whole number, to shifted.
func (c *Chain) reduceBiased(x Value, bias float64) reduced {
	shifted := c.MulAdd32(x, c.Float32(math.Log2E), c.Float32(roundMagic+bias))
	n := c.Do(VSUBPS, shifted, c.Float32(roundMagic+bias))
	r := c.NegMulAdd32(n, c.Float32(ln2High), x)
	return reduced{shifted, c.NegMulAdd32(n, c.Float32(ln2Low), r)}
}

// expTail returns e^r - 1 for |r| ≤ ln 2 / 2, good to half an ulp of e^r.
func (c *Chain) expTail(r Value) Value {
	square := c.Do(VMULPS, r, r)
	return c.MulAdd32(square, c.paired(r, square, expTerms...), r)
}

var expTerms = []float64{0.4999999403953552, 0.1666652113199234, 0.04166838899254799, 0.008368723094463348, 0.0013814583653584123}

// Exp32 returns e^x within 1.02 ulp. 2^n is applied in two factors, so that
// denormal results are rounded once: twice their bias is in the low bits of
// shifted, so that half of it is the exponent of one and the rest that of the other.
func (c *Chain) Exp32(x Value) Value {
	x = c.AtLeast32(c.AtMost32(x, 89), -104)
	d := c.reduceBiased(x, 2*127)
	p := c.Do(VADDPS, c.expTail(d.r), c.Float32(1))
	half := c.Do(VPSRLD, d.shifted, Imm(1)) // in its low bits n/2, rounded down
	p = c.Do(VMULPS, p, c.Do(VPSLLD, half, Imm(mantissa)))
	return c.Do(VMULPS, p, c.Do(VPSLLD, c.Do(VPSUBD, d.shifted, half), Imm(mantissa)))
}

// reducedExpm1 returns e^r - 1.
func (c *Chain) reducedExpm1(d reduced) Value {
	q := c.horner(d.r, 0.5, 0.1666666567325592, 0.041666362434625626, 0.008333389647305012, 0.001394063699990511, 0.0001984585778789255)
	return c.MulAdd32(c.Do(VMULPS, d.r, d.r), q, d.r)
}

// Expm132 returns e^x - 1 within 1.45 ulp. It computes half of it, which
// overflows only where the result does; x itself is the result near 0.
func (c *Chain) Expm132(x Value) Value {
	d := c.reduce(c.AtLeast32(c.AtMost32(x, 89), -18))
	q := c.reducedExpm1(d)
	half := c.Do(VPADDD, c.Do(VPSLLD, d.shifted, Imm(mantissa)), c.Const32(oneBits-1<<mantissa))
	e := c.MulAdd32(q, half, c.Do(VSUBPS, half, c.Float32(0.5)))
	near := c.Do(VCMPPS, c.Abs32(x), c.Float32(1.0/(1<<25)), compareLT)
	return c.Do(VBLENDVPS, c.Do(VADDPS, e, e), x, near)
}

// Rsqrt32 returns 1/sqrt x within 1.5 ulp.
func (c *Chain) Rsqrt32(x Value) Value { return c.Do(VDIVPS, c.Float32(1), c.Do(VSQRTPS, x)) }

// Tanh32 returns tanh x = e/(e + 1) with 2e = e^2|x| - 1, and the sign of x,
// within 2.5 ulp. Of |x| = n ln 2 / 2 + r, the number n + 127 is in the low bits
// of shifted.
func (c *Chain) Tanh32(x Value) Value {
	const bias = 127
	a := c.AtMost32(c.Abs32(x), 9.1)
	shifted := c.MulAdd32(a, c.Float32(2*math.Log2E), c.Float32(roundMagic+bias))
	n := c.Do(VSUBPS, shifted, c.Float32(roundMagic+bias))
	r := c.NegMulAdd32(n, c.Float32(ln2High/2), a)
	r = c.NegMulAdd32(n, c.Float32(ln2Low/2), r)
	square := c.Do(VMULPS, r, r)
	q := c.paired(r, square, 1.0, 0.6666630506515503, 0.33333244919776917, 0.13381125032901764, 0.04456388205289841)
	e := c.MulAdd32(square, q, r)
	scale := c.Do(VPSLLD, shifted, Imm(mantissa))
	e = c.MulAdd32(e, scale, c.MulAdd32(scale, c.Float32(0.5), c.Float32(-0.5)))
	return c.withSignOf(c.Do(VDIVPS, e, c.Do(VADDPS, e, c.Float32(1))), x)
}

// Tanh1p32 returns 1 + tanh x = 2/(1 + e^-2x) within 2.5 ulp, also where tanh x
// is near -1; 0 where it is less than 2^-126.
func (c *Chain) Tanh1p32(x Value) Value {
	x = c.AtLeast32(c.AtMost32(x, 40), -44.3)
	d := c.reduceBiased(c.Do(VMULPS, x, c.Float32(-2)), 127)
	scale := c.Do(VPSLLD, d.shifted, Imm(mantissa))
	return c.Do(VDIVPS, c.Float32(2), c.MulAdd32(c.Do(VADDPS, c.expTail(d.r), c.Float32(1)), scale, c.Float32(1)))
}

// Logistic32 returns 1/(1 + e^-x), as e^x/(1 + e^x) where x is negative, which
// keeps denormal results, within 2.5 ulp.
func (c *Chain) Logistic32(x Value) Value {
	e := c.Exp32(c.Do(VORPS, x, c.Const32(signBit)))
	over := c.Do(VBLENDVPS, c.Float32(1), e, x)
	return c.Do(VDIVPS, over, c.Do(VADDPS, e, c.Float32(1)))
}

// erfSplit is where Erf32 changes from one approximation to the other.
const erfSplit = 0.921875

// Erf32 returns erf x = x + x P(x²) for small |x|, 1 - e^Q(|x|) otherwise, within
// 1.3 ulp.
func (c *Chain) Erf32(x Value) Value {
	a := c.AtMost32(c.Abs32(x), 4)
	q := c.horner(a, -0.0001956932683242485, -1.1276755332946777, -0.637182354927063, -0.1039314791560173, 0.022226858884096146, -0.0030432012863457203, 0.0001959354995051399)
	large := c.Do(VSUBPS, c.Float32(1), c.Exp32(q))
	large = c.withSignOf(large, x)
	far := c.Do(VCMPPS, c.Abs32(x), c.Float32(erfSplit), compareNLTU)
	square := c.Do(VMULPS, x, x)
	small := c.horner(square, 0.12837915122509003, -0.3761247992515564, 0.11281682550907135, -0.026761719956994057, 0.004985941108316183, -0.0005953744403086603)
	small = c.MulAdd32(small, x, x)
	return c.Do(VBLENDVPS, small, large, far)
}

// Log32 returns ln x = e ln 2 + ln m with m between sqrt ½ and sqrt 2, within 0.9
// ulp.
func (c *Chain) Log32(x Value) Value {
	tiny := c.Do(VCMPPS, x, c.Const32(1<<mantissa), compareLT)
	normal := c.Do(VBLENDVPS, x, c.Do(VMULPS, x, c.Float32(1<<mantissa)), tiny)
	above := c.Do(VPSUBD, normal, c.Const32(math.Float32bits(math.Sqrt2/2)))
	m := c.Do(VPSUBD, normal, c.Do(VPAND, above, c.Const32(0xff<<mantissa|signBit)))
	e := c.Do(VCVTDQ2PS, c.Do(VPSRAD, above, Imm(mantissa)))
	e = c.Do(VSUBPS, e, c.Do(VANDPS, tiny, c.Float32(mantissa)))
	f := c.Do(VSUBPS, m, c.Float32(1))
	p := c.horner(f, -0.49999988079071045, 0.33333325386047363, -0.25001582503318787, 0.2000197321176529, -0.16609084606170654, 0.1418183296918869, -0.13242985308170319, 0.12904377281665802, -0.07621711492538452)
	tail := c.MulAdd32(e, c.Float32(ln2Low), c.Do(VMULPS, c.Do(VMULPS, f, f), p))
	return c.logEdges(x, c.MulAdd32(e, c.Float32(ln2High), c.Do(VADDPS, tail, f)))
}

// logEdges replaces log by what it is outside the positive finite numbers.
func (c *Chain) logEdges(x, log Value) Value {
	infinite := c.Do(VCMPPS, x, c.Float32(math.Inf(1)), compareNLTU)
	log = c.Do(VBLENDVPS, log, x, infinite) // +Inf, NaN
	zero := c.Do(VXORPS, x, x)
	log = c.Do(VORPS, log, c.Do(VCMPPS, x, zero, compareLT)) // NaN
	return c.Do(VBLENDVPS, log, c.Float32(math.Inf(-1)), c.Do(VCMPPS, x, zero, compareEQ))
}

// Log1p32 returns ln (1 + x) = ln u + (x - (u - 1))/u with u = 1 + x rounded,
// within 1.7 ulp. The second term is left out where it is no number, which is
// where ln u is right.
func (c *Chain) Log1p32(x Value) Value {
	u := c.Do(VADDPS, x, c.Float32(1))
	lost := c.Do(VSUBPS, x, c.Do(VSUBPS, u, c.Float32(1)))
	lost = c.Do(VDIVPS, lost, u)
	lost = c.Do(VANDPS, lost, c.Do(VCMPPS, lost, lost, compareORD))
	return c.withSignOf(c.Do(VADDPS, c.Log32(u), lost), x)
}
