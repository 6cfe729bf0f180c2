package amd64

import "math"

// The functions below work on f32. Polynomials are minimax (Remez exchange on
// the relative error of the function, then rounded to f32). A bound in ulp is
// the largest error over all 2^32 inputs, as go test -run Ulp -exhaustive finds
// it, rounded up. NaN, ±Inf, ±0 and denormals come out as the functions of
// package math have them, rounded to f32.

// Float32 returns a vector of eight times v, rounded to f32.
func (c *Chain) Float32(v float64) Value {
	return c.Const32(math.Float32bits(float32(v)))
}

// horner returns p[0] + x*(p[1] + x*(p[2] + …)).
func (c *Chain) horner(x Value, p ...float64) Value {
	last := len(p) - 1
	sum := c.Float32(p[last])
	for k := last - 1; k >= 0; k-- {
		sum = c.MulAdd32(sum, x, c.Float32(p[k]))
	}
	return sum
}

// paired returns p[0] + x*p[1] + x²*(p[2] + x*p[3] + x²*(…)). The pairs do not
// depend on each other, which halves the latency of horner for one instruction
// more.
func (c *Chain) paired(x, square Value, p ...float64) Value {
	pair := func(k int) Value {
		if k+1 == len(p) {
			return c.Float32(p[k])
		}
		if p[k+1] == 1 {
			return c.Do(VADDPS, x, c.Float32(p[k]))
		}
		return c.MulAdd32(
			x,
			c.Float32(p[k+1]),
			c.Float32(p[k]),
		)
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
	compareNotEqual  = Imm(4) // true of NaN
	compareORD       = Imm(7)
	compareNLTU      = Imm(5) // not less than, true of NaN
)

// ln 2 as an f32 and the rest of it.
const (
	ln2High = 0.693147182464599609375
	ln2Low  = math.Ln2 - ln2High
)

// Abs32 returns |x|.
func (c *Chain) Abs32(x Value) Value {
	return c.Do(VANDPS, x, c.Const32(magnitude))
}

// Neg32 returns -x.
func (c *Chain) Neg32(x Value) Value {
	return c.Do(VXORPS, x, c.Const32(signBit))
}

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
// or in the bits of a NaN, which stays one. Where one is a number that is known, the
// other as the second operand is right, but for -0 and +0.
func (c *Chain) Max32(x, y Value) Value {
	if bits, known := c.number(x); known {
		most := c.Do(VMAXPS, x, y)
		if bits == 0 {
			return c.Do(VADDPS, most, x)
		}
		return most
	}
	if _, known := c.number(y); known {
		return c.Max32(y, x)
	}
	m := c.Do(VMAXPS, x, y)
	n := c.Do(VMAXPS, y, x)
	differ := c.Do(VXORPS, m, n)
	return c.Do(VSUBPS, c.Do(VORPS, m, differ), differ)
}

// Min32 returns the smaller of x and y, of which -0 is smaller than +0, and NaN
// if either is NaN.
func (c *Chain) Min32(x, y Value) Value {
	if bits, known := c.number(x); known && bits != signBit {
		return c.Do(VMINPS, x, y)
	}
	bits, known := c.number(y)
	if known && bits != signBit {
		return c.Do(VMINPS, y, x)
	}
	return c.Do(
		VORPS,
		c.Do(VMINPS, x, y),
		c.Do(VMINPS, y, x),
	)
}

// number returns the bits of all lanes of a constant that is not NaN.
func (c *Chain) number(v Value) (bits uint32, known bool) {
	if c.err != nil || v == 0 ||
		c.steps[v-1].kind != constantStep {
		return 0, false
	}
	of := c.steps[v-1].constant
	bits = uint32(of.bits)
	return bits, of.table == nil &&
		of.width == 4 && bits&magnitude <= 0xff<<mantissa
}

// FoldLanes32 returns a vector whose lanes all hold what combine makes of the
// eight lanes of v, in this order: 0 with 4, 1 with 5, …; of these 0 with 2, 1
// with 3; of these 0 with 1. Combine has to be commutative, to the bit.
func (c *Chain) FoldLanes32(v Value, combine func(x, y Value) Value) Value {
	v = combine(v, c.Do(VPERM2F128, v, v, Imm(1)))
	v = combine(v, c.Do(VPERMILPS, v, Imm(0x4e)))
	return combine(v, c.Do(VPERMILPS, v, Imm(0xb1)))
}

// FoldLanes64 is FoldLanes32 of the four lanes of 64 bits.
func (c *Chain) FoldLanes64(v Value, combine func(x, y Value) Value) Value {
	v = combine(v, c.Do(VPERM2F128, v, v, Imm(1)))
	return combine(v, c.Do(VPERMILPS, v, Imm(0x4e)))
}

// withSignOf returns x ≥ 0 with the sign of y.
func (c *Chain) withSignOf(x, y Value) Value {
	return c.Do(
		VORPS, x, c.Do(VANDPS, y, c.Const32(signBit)),
	)
}

// A reduced argument is x = n ln 2 + r with |r| ≤ ln 2 / 2, where shifted = n +
// roundMagic.
type reduced struct{ shifted, r Value }

// reduce returns x reduced by multiples of ln 2.
func (c *Chain) reduce(x Value) reduced {
	return c.reduceParts(x, 1, 1, 0)
}

// reduceParts reduces scale·x, scale a power of two or minus one, by parts of ln 2:
// scale·x = n ln 2/of + scale·r. It adds bias, a whole number, to shifted.
func (c *Chain) reduceParts(x Value, scale, of, bias float64) reduced {
	shifted := c.MulAdd32(
		x,
		c.Float32(scale*of*math.Log2E),
		c.Float32(roundMagic+bias),
	)
	n := c.Do(
		VSUBPS, shifted, c.Float32(roundMagic+bias),
	)
	r := c.NegMulAdd32(
		n, c.Float32(ln2High/of/scale), x,
	)
	return reduced{
		shifted,
		c.NegMulAdd32(n, c.Float32(ln2Low/of/scale), r),
	}
}

// parts of ln 2 to which exponentials are reduced: a number of VPERMPS's lanes.
const (
	parts      = 8
	logParts   = 3
	belowParts = mantissa - logParts
	excess     = 32
	near       = 1 + 227474.0/(1<<mantissa) // times 2^(j/parts) is an f32 but for 0.05 ulp, for all j
)

// powers returns the f32 near·2^(j/parts + more) for j = 0, 1, …, less
// j·2^belowParts, so that near·2^(n/parts + more) is entry n mod parts plus
// n·2^belowParts, as whole numbers (Gal, Computing elementary functions: a new
// approach, 1986, for the idea of near).
func powers(more float64) *[parts]uint32 {
	var table [parts]uint32
	for j := range table {
		table[j] = math.Float32bits(float32(
			near*math.Exp2(float64(j)/parts+more),
		)) -
			uint32(j)<<belowParts
	}
	return &table
}

// fractions returns the bits of near·2^(j/parts) less those of 1.
func fractions() *[parts]uint32 {
	var table [parts]uint32
	for j := range table {
		table[j] = math.Float32bits(float32(
			near*math.Exp2(float64(j)/parts),
		)) - oneBits
	}
	return &table
}

var lackPowers = powers(-excess)
var excessPowers = powers(excess)
var partFractions = fractions()

// power returns entry n mod parts plus n·2^belowParts for shifted = n + roundMagic.
func (c *Chain) power(shifted Value, table *[parts]uint32) Value {
	return c.Do(
		VPADDD,
		c.Do(VPSLLD, shifted, Imm(belowParts)),
		c.Do(VPERMPS, shifted, c.table32(table)),
	)
}

// expTail returns e^(scale·r)/near - 1 for |scale·r| ≤ ln 2 / 16, good to 0.2 ulp of the
// power.
func (c *Chain) expTail(r Value, scale float64) Value {
	return c.horner(
		r, -0.026401113718748093, scale*0.9735989570617676,
		scale*scale*0.48687565326690674, scale*scale*scale*0.16225124895572662,
	)
}

// Exp32 returns e^x within 0.95 ulp. The power of two is applied in two factors, so
// that denormal results are rounded once: twice their bias is in shifted, so that half
// of it is the exponent of one and the rest that of the other.
func (c *Chain) Exp32(x Value) Value {
	d := c.reduceParts(
		c.AtLeast32(c.AtMost32(x, 89), -104),
		1, parts, 2*127*parts,
	)
	return c.scaled(d.shifted, c.expTail(d.r, 1))
}

// scaled returns (1 + tail)·near·2^(n/parts) for shifted = n + 2·127·parts + roundMagic.
func (c *Chain) scaled(shifted, tail Value) Value {
	whole := c.Do(VPSRLD, shifted, Imm(logParts))
	half := c.Do(VPSRLD, shifted, Imm(logParts+1))
	s := c.Do(
		VPADDD,
		c.Do(VPSLLD, half, Imm(mantissa)),
		c.Do(VPERMPS, shifted, c.table32(partFractions)),
	)
	return c.Do(
		VMULPS,
		c.MulAdd32(s, tail, s),
		c.Do(VPSLLD, c.Do(VPSUBD, whole, half), Imm(mantissa)),
	)
}

// ExpBelow32 is Exp32, to the bit, of x that is at most 60, or NaN. Vanishes is that of
// ExcessExp32.
func (c *Chain) ExpBelow32(x Value, vanishes bool) Value {
	return c.Do(
		VMULPS,
		c.ExcessExp32(x, vanishes),
		c.Float32(1.0/(1<<excess)),
	)
}

// ExcessExp32 returns 2^32 times e^x for x that is at most 60, or NaN, within 0.95 ulp
// from -104 on and about e^-104 below. No power is a denormal then.
//
// Divided by 2^32 again what is below is too small for a denormal, which takes some processors
// a hundred cycles and more to find out. Where it vanishes, powers as whole numbers
// become negative there, and 0 instead, one instruction more.
func (c *Chain) ExcessExp32(x Value, vanishes bool) Value {
	least := -104.0
	if vanishes {
		least = -150
	}
	d := c.reduceParts(
		c.AtLeast32(x, least), 1, parts, 0,
	)
	s := c.power(d.shifted, excessPowers)
	if vanishes {
		s = c.Do(VPMAXSD, s, c.Const32(0))
	}
	return c.MulAdd32(s, c.expTail(d.r, 1), s)
}

// reducedExpm1 returns e^r - 1.
func (c *Chain) reducedExpm1(d reduced) Value {
	q := c.horner(
		d.r, 0.5, 0.1666666567325592, 0.041666362434625626, 0.008333389647305012, 0.001394063699990511, 0.0001984585778789255,
	)
	return c.MulAdd32(c.Do(VMULPS, d.r, d.r), q, d.r)
}

// Expm132 returns e^x - 1 within 1.45 ulp. It computes half of it, which
// overflows only where the result does; x itself is the result near 0.
func (c *Chain) Expm132(x Value) Value {
	d := c.reduce(c.AtLeast32(c.AtMost32(x, 89), -18))
	q := c.reducedExpm1(d)
	half := c.Do(
		VPADDD,
		c.Do(VPSLLD, d.shifted, Imm(mantissa)),
		c.Const32(oneBits-1<<mantissa),
	)
	e := c.MulAdd32(
		q, half, c.Do(VSUBPS, half, c.Float32(0.5)),
	)
	near := c.Do(
		VCMPPS, c.Abs32(x),
		c.Float32(1.0/(1<<25)), compareLT,
	)
	return c.Do(VBLENDVPS, c.Do(VADDPS, e, e), x, near)
}

// Rsqrt32 returns 1/sqrt x within 1.5 ulp.
func (c *Chain) Rsqrt32(x Value) Value {
	return c.Do(VDIVPS, c.Float32(1), c.Do(VSQRTPS, x))
}

// Tanh32 returns tanh x = e/(e + 1) with 2e = e^2|x| - 1, and the sign of x,
// within 2.5 ulp. Of |x| = n ln 2 / 2 + r, the number n + 127 is in the low bits
// of shifted.
func (c *Chain) Tanh32(x Value) Value {
	const bias = 127
	a := c.AtMost32(c.Abs32(x), 9.1)
	shifted := c.MulAdd32(
		a,
		c.Float32(2*math.Log2E),
		c.Float32(roundMagic+bias),
	)
	n := c.Do(
		VSUBPS, shifted, c.Float32(roundMagic+bias),
	)
	r := c.NegMulAdd32(n, c.Float32(ln2High/2), a)
	r = c.NegMulAdd32(n, c.Float32(ln2Low/2), r)
	square := c.Do(VMULPS, r, r)
	q := c.paired(
		r, square, 1.0, 0.6666630506515503, 0.33333244919776917, 0.13381125032901764, 0.04456388205289841,
	)
	e := c.MulAdd32(square, q, r)
	scale := c.Do(VPSLLD, shifted, Imm(mantissa))
	e = c.MulAdd32(
		e,
		scale,
		c.MulAdd32(scale, c.Float32(0.5), c.Float32(-0.5)),
	)
	return c.withSignOf(
		c.Do(VDIVPS, e, c.Do(VADDPS, e, c.Float32(1))),
		x,
	)
}

// Tanh1p32 returns 1 + tanh x = 2/(1 + e^-2x) within 2.8 ulp, also where tanh x
// is near -1; 0 where it is less than 2^-127. Powers of two lack some, so that it is
// the sum that overflows.
func (c *Chain) Tanh1p32(x Value) Value {
	x = c.AtLeast32(c.AtMost32(x, 20), -45)
	d := c.reduceParts(x, -2, parts, 0)
	s := c.power(d.shifted, lackPowers)
	e := c.MulAdd32(s, c.expTail(d.r, -2), s)
	return c.Do(
		VDIVPS,
		c.Float32(2),
		c.MulAdd32(e, c.Float32(1<<excess), c.Float32(1)),
	)
}

// Logistic32 returns 1/(1 + e^-x), as e^x/(1 + e^x) where x is negative, which
// keeps denormal results, within 2.7 ulp.
func (c *Chain) Logistic32(x Value) Value {
	e := c.ExpBelow32(
		c.Do(VORPS, x, c.Const32(signBit)), false,
	)
	over := c.Do(VBLENDVPS, c.Float32(1), e, x)
	return c.Do(
		VDIVPS, over, c.Do(VADDPS, e, c.Float32(1)),
	)
}

// erfSplit is where Erf32 changes from one approximation to the other.
const erfSplit = 0.921875

// Erf32 returns erf x = x + x P(x²) for small |x|, 1 - e^Q(|x|) otherwise, within
// 1.3 ulp.
func (c *Chain) Erf32(x Value) Value {
	a := c.AtMost32(c.Abs32(x), 4)
	q := c.horner(
		a, -0.0001956932683242485, -1.1276755332946777, -0.637182354927063,
		-0.1039314791560173, 0.022226858884096146, -0.0030432012863457203, 0.0001959354995051399,
	)
	large := c.Do(
		VSUBPS, c.Float32(1), c.ExpBelow32(q, false),
	)
	large = c.withSignOf(large, x)
	far := c.Do(
		VCMPPS, c.Abs32(x), c.Float32(erfSplit), compareNLTU,
	)
	square := c.Do(VMULPS, x, x)
	small := c.horner(
		square, 0.12837915122509003, -0.3761247992515564, 0.11281682550907135, -0.026761719956994057, 0.004985941108316183, -0.0005953744403086603,
	)
	small = c.MulAdd32(small, x, x)
	return c.Do(VBLENDVPS, small, large, far)
}

// Log32 returns ln x = e ln 2 + ln m with m between sqrt ½ and sqrt 2, within 0.9
// ulp.
func (c *Chain) Log32(x Value) Value {
	tiny := c.Do(
		VCMPPS, x, c.Const32(1<<mantissa), compareLT,
	)
	e, m := c.exponent(x, tiny)
	f := c.Do(VSUBPS, m, c.Float32(1))
	p := c.horner(
		f, -0.49999988079071045, 0.33333325386047363, -0.25001582503318787, 0.2000197321176529, -0.16609084606170654,
		0.1418183296918869, -0.13242985308170319, 0.12904377281665802, -0.07621711492538452,
	)
	tail := c.MulAdd32(
		e,
		c.Float32(ln2Low),
		c.Do(VMULPS, c.Do(VMULPS, f, f), p),
	)
	return c.logEdges(
		x,
		c.MulAdd32(e, c.Float32(ln2High), c.Do(VADDPS, tail, f)),
	)
}

// logEdges replaces log by what it is outside the positive finite numbers.
func (c *Chain) logEdges(x, log Value) Value {
	infinite := c.Do(
		VCMPPS, x, c.Float32(math.Inf(1)), compareNLTU,
	)
	log = c.Do(VBLENDVPS, log, x, infinite) // +Inf, NaN
	zero := c.Do(VXORPS, x, x)
	// NaN
	log = c.Do(
		VORPS, log, c.Do(VCMPPS, x, zero, compareLT),
	)
	return c.Do(
		VBLENDVPS, log,
		c.Float32(math.Inf(-1)),
		c.Do(VCMPPS, x, zero, compareEQ),
	)
}

// Log1p32 returns ln (1 + x) = ln u + (x - (u - 1))/u with u = 1 + x rounded,
// within 1.7 ulp. The second term is left out where it is no number, which is
// where ln u is right.
func (c *Chain) Log1p32(x Value) Value {
	u := c.Do(VADDPS, x, c.Float32(1))
	lost := c.Do(
		VSUBPS, x, c.Do(VSUBPS, u, c.Float32(1)),
	)
	lost = c.Do(VDIVPS, lost, u)
	lost = c.Do(
		VANDPS, lost, c.Do(VCMPPS, lost, lost, compareORD),
	)
	return c.withSignOf(
		c.Do(VADDPS, c.Log32(u), lost), x,
	)
}

// ErfInv32 returns the inverse of erf within 3.55 ulp: x·P(w) with
// w = -ln (1 - x²), P a polynomial in w - 2.5 below w = 5 and another in
// sqrt w - 3 from there on (Giles, Approximating the erfinv function, GPU
// Computing Gems 2, 2010, single precision). The fused product rounds 1 - x² once,
// so that no digits are lost near ±1; at ±1 w is infinite, beyond it is NaN.
func (c *Chain) ErfInv32(x Value) Value {
	w := c.Neg32(c.Log32(c.NegMulAdd32(x, x, c.Float32(1))))
	near := c.horner(
		c.Do(VSUBPS, w, c.Float32(2.5)),
		1.50140941, 0.246640727, -0.00417768164,
		-0.00125372503, 0.00021858087, -4.39150654e-06,
		-3.5233877e-06, 3.43273939e-07, 2.81022636e-08,
	)
	far := c.horner(
		c.Do(VSUBPS, c.Do(VSQRTPS, w), c.Float32(3)),
		2.83297682, 1.00167406, 0.00943887047,
		-0.0076224613, 0.00573950773, -0.00367342844,
		0.00134934322, 0.000100950558, -0.000200214257,
	)
	isNear := c.Do(VCMPPS, w, c.Float32(5), compareLT)
	p := c.Do(VBLENDVPS, far, near, isNear)
	infinity := c.Float32(math.Inf(1))
	isOne := c.Do(VCMPPS, w, infinity, compareEQ)
	return c.Do(VMULPS, c.Do(VBLENDVPS, p, infinity, isOne), x)
}
