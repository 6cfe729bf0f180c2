package amd64

import "math"

// A parted is an unevaluated sum of two f32, of which low is at most half a unit of the
// last place of high.
type parted struct{ high, low Value }

// Power32 returns x^y = 2^(y log2 x) within 1.1 ulp, with log2 x and the product as sums of two
// f32, and what C's pow returns for zeros, infinities, NaN and negative numbers. A known
// exponent for which a root or products are enough takes these, within 1.5 ulp.
func (c *Chain) Power32(x, y Value) Value {
	if bits, known := c.number(y); known {
		if known := knownPowers[math.Float32frombits(bits)]; known != nil {
			return known(c, x)
		}
	}
	p := c.exp2(c.times(y, c.log2(c.Abs32(x))))
	return c.powerEdges(x, y, p)
}

// knownPowers are the powers of exponents for which a root or products are enough.
var knownPowers = map[float32]func(c *Chain, x Value) Value{
	-1: func(c *Chain, x Value) Value {
		return c.Do(VDIVPS, c.Float32(1), x)
	},
	-0.5: func(c *Chain, x Value) Value {
		return c.Do(VDIVPS, c.Float32(1), c.rootPower(x))
	},
	0.5: (*Chain).rootPower,
	1:   func(_ *Chain, x Value) Value { return x },
	2: func(c *Chain, x Value) Value {
		return c.Do(VMULPS, x, x)
	},
	3: func(c *Chain, x Value) Value {
		return c.Do(VMULPS, c.Do(VMULPS, x, x), x)
	},
}

// rootPower returns x^½, which unlike the root is +0 at -0 and infinite at -Inf.
func (c *Chain) rootPower(x Value) Value {
	root := c.Do(VADDPS, c.Do(VSQRTPS, x), c.Float32(0))
	lowest := c.Do(VCMPPS, x, c.Float32(math.Inf(-1)), compareEQ)
	return c.Do(VBLENDVPS, root, c.Float32(math.Inf(1)), lowest)
}

// 2/ln 2 as an f32 and the rest of it.
const (
	twiceLog2EHigh = 2.885390043258667
	twiceLog2ELow  = 2*math.Log2E - twiceLog2EHigh
)

// log2 returns log2 a = e + log2 m of a ≥ 0, with m between sqrt ½ and sqrt 2 and
// log2 m = 2/ln 2·atanh s, s = (m-1)/(m+1), with a relative error of 2^-32; high is
// infinite or NaN, and low 0, where the logarithm is.
func (c *Chain) log2(a Value) parted {
	tiny := c.Do(VCMPPS, a, c.Const32(1<<mantissa), compareLT)
	e, m := c.exponent(a, tiny)
	less := c.Do(VSUBPS, m, c.Float32(1))
	more := c.Do(VADDPS, m, c.Float32(1))
	moreLow := c.Do(VSUBPS, m, c.Do(VSUBPS, more, c.Float32(1)))
	inverse := c.Do(VDIVPS, c.Float32(1), more)
	s := c.Do(VMULPS, less, inverse)
	rest := c.NegMulAdd32(s, moreLow, c.NegMulAdd32(s, more, less))
	sLow := c.Do(VMULPS, rest, inverse)

	const k = 2 * math.Log2E
	z := c.product(parted{s, sLow}, parted{s, sLow})
	q := c.horner(z.high, k/3, k/5, k/7, k/9, k/11)
	line := c.product(parted{s, sLow}, parted{c.Float32(twiceLog2EHigh), c.Float32(twiceLog2ELow)})
	cubic := c.product(c.product(parted{s, sLow}, z), parted{q, c.Float32(k/3 - float64(float32(k/3)))})

	log := c.sum(line.high, cubic.high)
	low := c.Do(VADDPS, log.low, c.Do(VADDPS, line.low, cubic.low))
	log = c.sum(e, log.high)
	low = c.Do(VADDPS, log.low, low)
	return c.log2Edges(a, parted{log.high, low})
}

// sum returns x + y as two parts, exactly if |x| ≥ |y| or x is 0 (Dekker, A floating-point technique for extending the
// available precision, 1971).
func (c *Chain) sum(x, y Value) parted {
	high := c.Do(VADDPS, x, y)
	return parted{high, c.Do(VSUBPS, y, c.Do(VSUBPS, high, x))}
}

// product returns x·y as two parts, but for the product of the low ones.
func (c *Chain) product(x, y parted) parted {
	high := c.Do(VMULPS, x.high, y.high)
	low := c.MulAdd32(x.low, y.high, c.MulSub32(x.high, y.high, high))
	return parted{high, c.MulAdd32(x.high, y.low, low)}
}

// exponent returns e and m of a = m 2^e with m between sqrt ½ and sqrt 2; tiny says
// which numbers are denormal.
func (c *Chain) exponent(a, tiny Value) (e, m Value) {
	normal := c.Do(
		VBLENDVPS, a,
		c.Do(VMULPS, a, c.Float32(1<<mantissa)),
		tiny,
	)
	above := c.Do(
		VPSUBD, normal,
		c.Const32(math.Float32bits(math.Sqrt2/2)),
	)
	m = c.Do(
		VPSUBD, normal,
		c.Do(VPAND, above, c.Const32(0xff<<mantissa|signBit)),
	)
	e = c.Do(VCVTDQ2PS, c.Do(VPSRAD, above, Imm(mantissa)))
	return c.Do(VSUBPS, e, c.Do(VANDPS, tiny, c.Float32(mantissa))), m
}

// log2Edges replaces log, the logarithm of a, where a is 0, infinite or NaN.
func (c *Chain) log2Edges(a Value, log parted) parted {
	infinite := c.Do(VCMPPS, a, c.Float32(math.Inf(1)), compareNLTU)
	zero := c.Do(VCMPPS, a, c.Float32(0), compareEQ)
	high := c.Do(VBLENDVPS, log.high, a, infinite)
	return parted{
		c.Do(VBLENDVPS, high, c.Float32(math.Inf(-1)), zero),
		c.Do(VANDNPS, c.Do(VORPS, infinite, zero), log.low),
	}
}

// beyond is an exponent of two whose power is infinite, and 0 if it is negative.
const beyond = 160

// times returns y·v, or a high part of ±beyond where the product is out of range.
func (c *Chain) times(y Value, v parted) parted {
	high := c.Do(VMULPS, y, v.high)
	low := c.MulAdd32(y, v.low, c.MulSub32(y, v.high, high))
	within := c.Do(VCMPPS, c.Abs32(high), c.Float32(beyond), compareLT)
	return parted{
		c.AtLeast32(c.AtMost32(high, beyond), -beyond),
		c.Do(VANDPS, low, within),
	}
}

// exp2 returns 2^(high+low) for |high| ≤ beyond, as Exp32 makes powers.
func (c *Chain) exp2(v parted) Value {
	shifted := c.MulAdd32(
		v.high, c.Float32(parts), c.Float32(roundMagic+2*127*parts),
	)
	n := c.Do(VSUBPS, shifted, c.Float32(roundMagic+2*127*parts))
	r := c.NegMulAdd32(n, c.Float32(1.0/parts), v.high)
	return c.scaled(shifted, c.expTail(c.Do(VADDPS, r, v.low), math.Ln2))
}

// powerEdges is the power x^y that is given for |x|, with its sign, and replaced where it is
// NaN or 1 whatever the other operand is (ISO C99, F.9.4.4).
func (c *Chain) powerEdges(x, y, p Value) Value {
	integer := func(v Value) Value {
		return c.Do(VCMPPS, c.Do(VROUNDPS, v, Imm(3)), v, compareEQ)
	}
	whole := integer(y)
	odd := c.Do(VANDNPS, integer(c.Do(VMULPS, y, c.Float32(0.5))), whole)
	sign := c.Do(VANDPS, c.Do(VANDPS, x, c.Const32(signBit)), odd)
	p = c.Do(VXORPS, p, sign)

	zero := c.Float32(0)
	infinity := c.Float32(math.Inf(1))
	below := c.Do(VCMPPS, x, zero, compareLT)
	finite := c.Do(VCMPPS, c.Abs32(x), infinity, compareLT)
	undefined := c.Do(VANDNPS, whole, c.Do(VANDPS, below, finite))
	p = c.Do(VORPS, p, undefined)

	unit := c.Do(VCMPPS, c.Abs32(x), c.Float32(1), compareEQ)
	unbounded := c.Do(VCMPPS, c.Abs32(y), infinity, compareEQ)
	one := c.Do(VORPS, c.Do(VCMPPS, y, zero, compareEQ), c.Do(VCMPPS, x, c.Float32(1), compareEQ))
	one = c.Do(VORPS, one, c.Do(VANDPS, unit, unbounded))
	return c.Do(VBLENDVPS, p, c.Float32(1), one)
}
