package amd64

import "math"

// The functions below work on f64, four to a vector. Polynomials that are not said to be
// those of others are minimax as those of f32 are (math.go). A bound in ulp is that of
// package vector, beside the reference, which is off by up to a unit itself, over
// numbers of all exponents and of the ranges where the functions vary.

func (c *Chain) double() real { return real{c, true} }

// MulSub64 returns a*b - d in f64, rounded once.
func (c *Chain) MulSub64(a, b, d Value) Value { return c.double().mulSub(a, b, d) }

// ln 2 as an f64 of 33 bits, which times a whole number is exact, and the rest of it
// (FreeBSD, msun, e_log.c).
const (
	ln2High64 = 6.93147180369123816490e-01
	ln2Low64  = 1.90821492927058770002e-10
)

// reduce64 returns x = n ln 2 + r with |r| ≤ ln 2 / 2; shifted is n + bias + roundMagic64.
func (c *Chain) reduce64(x Value, bias float64) reduced {
	r := c.double()
	magic := r.number(roundMagic64 + bias)
	shifted := r.mulAdd(x, r.number(math.Log2E), magic)
	n := r.do(VSUBPS, shifted, magic)
	rest := r.negMulAdd(n, r.number(ln2High64), x)
	return reduced{shifted, r.negMulAdd(n, r.number(ln2Low64), rest)}
}

// tail64 returns e^d − 1 for the rest d of a reduction.
func (c *Chain) tail64(d Value) Value {
	r := c.double()
	q := r.halves(
		d, 0.5000000000000011, 0.16666666666666413, 0.04166666666652994, 0.008333333333494798,
		0.001388888894368194, 0.0001984126950563911, 2.4801493050823455e-05, 2.7557587379251633e-06,
		2.7630263870524635e-07, 2.499969938429091e-08,
	)
	return r.mulAdd(r.do(VMULPS, d, d), q, d)
}

// biasTwice64 is twice the bias of exponents, and lowBits64 those bits of a shifted number
// that have an exponent with it.
const (
	biasTwice64 = 2 * 1023
	lowBits64   = 1<<12 - 1
)

// Exp64 returns e^x within 2 ulp. As in Exp32, the power of two is applied in two
// factors, so that denormal results are rounded once.
func (c *Chain) Exp64(x Value) Value {
	r := c.double()
	x = r.do(VMINPS, r.number(710), x)
	x = r.do(VMAXPS, r.number(-746), x)
	d := c.reduce64(x, biasTwice64)
	return r.scaled64(d.shifted, d.r)
}

// scaled64 is e^d 2^n for shifted = n + biasTwice64 + roundMagic64.
func (r real) scaled64(shifted, d Value) Value {
	whole := r.Do(VPAND, shifted, r.Const64(lowBits64))
	half := r.Do(VPSRLQ, whole, Imm(1))
	power := r.do(VADDPS, r.tail64(d), r.number(1))
	power = r.do(VMULPS, power, r.Do(VPSLLQ, half, Imm(mantissa64)))
	rest := r.Do(VPSUBQ, whole, half)
	return r.do(VMULPS, power, r.Do(VPSLLQ, rest, Imm(mantissa64)))
}

// parted64 returns (e^x − 1)/2^less for x between −40 and 1025 ln 2, or NaN: e^x overflows
// before its part does.
func (c *Chain) parted64(x Value, less int) Value {
	r := c.double()
	d := c.reduce64(x, 1023-float64(less))
	scale := c.Do(VPSLLQ, d.shifted, Imm(mantissa64))
	lacking := r.do(VSUBPS, scale, r.number(math.Ldexp(1, -less)))
	return r.mulAdd(c.tail64(d.r), scale, lacking)
}

// Expm164 returns e^x - 1 within 2.5 ulp; x itself is the result near 0.
func (c *Chain) Expm164(x Value) Value {
	r := c.double()
	limited := r.do(VMINPS, r.number(710), x)
	limited = r.do(VMAXPS, r.number(-40), limited)
	half := c.parted64(limited, 1)
	near := r.compare(r.magnitudeOf(x), r.number(1.0/(1<<54)), compareLT)
	return r.choose(near, x, r.do(VADDPS, half, half))
}

// Tanh64 returns tanh x = e/(e + 1) with 2e = e^2|x| - 1, and the sign of x, within
// 3.5 ulp.
func (c *Chain) Tanh64(x Value) Value {
	r := c.double()
	a := r.do(VMINPS, r.number(20), r.magnitudeOf(x))
	e := c.parted64(r.do(VADDPS, a, a), 1)
	e = r.do(VDIVPS, e, r.do(VADDPS, e, r.number(1)))
	return r.withSign(e, x)
}

// Logistic64 returns 1/(1 + e^-x), as e^x/(1 + e^x) where x is negative, within 3.5
// ulp.
func (c *Chain) Logistic64(x Value) Value {
	r := c.double()
	e := c.Exp64(r.do(VORPS, x, c.Const64(signBit64)))
	over := r.choose(x, e, r.number(1))
	return r.do(VDIVPS, over, r.do(VADDPS, e, r.number(1)))
}

// erfSplit64 is where Erf64 changes from one approximation to the other.
const erfSplit64 = 1

// Erf64 returns erf x = x + x P(x²) for small |x|, 1 - e^Q(|x|) otherwise, within 2 ulp.
func (c *Chain) Erf64(x Value) Value {
	r := c.double()
	a := r.magnitudeOf(x)
	q := r.halves(
		r.do(VMINPS, r.number(5.95), a),
		-3.007410829117891e-08, -1.128378889724545, -0.6366208722195376, -0.10277036315491915,
		0.01912701671977432, 0.00020402481951869512, -0.001677164790959336, 0.0005545611235992492,
		2.025978849804643e-05, -0.00010967015665098279, 6.418999750844096e-05, -2.4044305755891694e-05,
		6.7059401582940295e-06, -1.4490877227928599e-06, 2.438785761312277e-07, -3.152032734577624e-08,
		3.0293261164554537e-09, -2.0411594900774856e-10, 8.605632468582836e-12, -1.7078541146728818e-13,
	)
	large := r.do(VSUBPS, r.number(1), c.Exp64(q))
	z := r.do(VMULPS, x, x)
	p := r.halves(
		z, 0.12837916709551256, -0.3761263890318355, 0.11283791670945258, -0.026866170643276392,
		0.005223977607423473, -0.0008548325989677195, 0.00012055295319910903, -1.492474465595353e-05,
		1.644751763859676e-06, -1.6209175909914454e-07, 1.3722976942920295e-08, -7.801190271114839e-10,
	)
	small := r.mulAdd(p, x, x)
	far := r.compare(a, r.number(erfSplit64), compareNLTU)
	return r.choose(far, r.withSign(large, x), small)
}

// exponent64 returns e and m of a = m 2^e with m between sqrt ½ and sqrt 2.
func (c *Chain) exponent64(a Value) (e, m Value) {
	const rootHalf = 0x3fe6a09e667f3bcd // the bits of sqrt ½
	r := c.double()
	tiny := r.compare(a, c.Const64(1<<mantissa64), compareLT)
	normal := r.choose(tiny, r.do(VMULPS, a, r.number(1<<54)), a)
	above := c.Do(VPADDQ, normal, c.Const64(one64-rootHalf))
	power := c.Do(VPAND, above, c.Const64(0xfff<<mantissa64))
	m = c.Do(VPADDQ, c.Do(VPSUBQ, normal, power), c.Const64(one64))
	// The whole number in the low bits of 2^52 as a float.
	const base = 1 << mantissa64
	whole := c.Do(VPOR, c.Do(VPSRLQ, above, Imm(mantissa64)), r.number(base))
	lost := c.Do(VANDPS, tiny, r.number(54))
	e = r.do(VSUBPS, whole, r.number(base+1023))
	return r.do(VSUBPS, e, lost), m
}

// Log64 returns ln x within 1.5 ulp, where s = f/(2 + f), f = m − 1, is the argument of a
// series whose coefficients are those of FreeBSD (msun, e_log.c).
func (c *Chain) Log64(x Value) Value {
	r := c.double()
	e, m := c.exponent64(x)
	f := r.do(VSUBPS, m, r.number(1))
	s := r.do(VDIVPS, f, r.do(VADDPS, f, r.number(2)))
	z := r.do(VMULPS, s, s)
	series := r.do(VMULPS, z, r.halves(
		z, 6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
		2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01,
	))
	square := r.do(VMULPS, r.do(VMULPS, f, f), r.number(0.5))
	tail := r.do(VMULPS, s, r.do(VADDPS, square, series))
	tail = r.mulAdd(e, r.number(ln2Low64), tail)
	log := r.do(VSUBPS, r.do(VSUBPS, square, tail), f)
	return c.logEdges64(x, r.mulSub(e, r.number(ln2High64), log))
}

// logEdges64 replaces log by what it is outside the positive finite numbers.
func (c *Chain) logEdges64(x, log Value) Value {
	r := c.double()
	zero := r.number(0)
	log = r.choose(r.notFinite(x), x, log) // +Inf, NaN
	log = c.Do(VORPS, log, r.compare(x, zero, compareLT))
	least := r.number(math.Inf(-1))
	return r.choose(r.compare(x, zero, compareEQ), least, log)
}

// Log1p64 returns ln (1 + x) as Log1p32 does, within 2.5 ulp.
func (c *Chain) Log1p64(x Value) Value {
	r := c.double()
	u := r.do(VADDPS, x, r.number(1))
	lost := r.do(VSUBPS, x, r.do(VSUBPS, u, r.number(1)))
	lost = r.do(VDIVPS, lost, u)
	lost = c.Do(VANDPS, lost, r.compare(lost, lost, compareORD))
	log := r.do(VADDPS, c.Log64(u), lost)
	small := r.compare(r.magnitudeOf(x), r.number(1.0/(1<<54)), compareLT)
	return r.choose(small, x, log)
}
