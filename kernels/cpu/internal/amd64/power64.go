package amd64

import "math"

// Powers of f64, by the steps of power.go: log2 x and its product with y as sums of two f64.

// Power64 returns x^y within 3 ulp, and what C's pow returns for zeros, infinities, NaN and
// negative numbers. Some exponents that are known need a root or products only.
func (c *Chain) Power64(x, y Value) Value {
	r := c.double()
	if v, known := r.known(y); known {
		switch v {
		case -1:
			return r.do(VDIVPS, r.number(1), x)
		case 1:
			return x
		case 2:
			return r.do(VMULPS, x, x)
		}
	}
	p := r.exp2(r.times(y, r.log2(r.magnitudeOf(x))))
	return r.powerEdges(x, y, p)
}

// sumOf is x + y as two parts, exactly if |x| ≥ |y| or x is 0, see Chain.sum.
func (r real) sumOf(x, y Value) parted {
	high := r.do(VADDPS, x, y)
	return parted{high, r.do(VSUBPS, y, r.do(VSUBPS, high, x))}
}

// productOf is x·y as two parts, but for the product of the low ones.
func (r real) productOf(x, y parted) parted {
	high := r.do(VMULPS, x.high, y.high)
	low := r.mulAdd(x.low, y.high, r.mulSub(x.high, y.high, high))
	return parted{high, r.mulAdd(x.high, y.low, low)}
}

// 2/ln 2 and 2/(3 ln 2) as f64 and the rests of them.
const (
	twiceLog2E64    = 2 * math.Log2E
	twiceLog2ELow64 = 4.0710547481862066e-17
	cubicHigh64     = 0.9617966939259756
	cubicLow64      = 5.0577616648125907e-17
)

// log2 is log2 a = e + log2 m of a ≥ 0 as Chain.log2 computes it, with a relative error of
// 2^-64 or so; high is infinite or NaN, and low 0, where the logarithm is.
func (r real) log2(a Value) parted {
	e, m := r.exponent64(a)
	less := r.do(VSUBPS, m, r.number(1))
	more := r.do(VADDPS, m, r.number(1))
	moreLow := r.do(VSUBPS, m, r.do(VSUBPS, more, r.number(1)))
	inverse := r.do(VDIVPS, r.number(1), more)
	s := r.do(VMULPS, less, inverse)
	rest := r.negMulAdd(s, moreLow, r.negMulAdd(s, more, less))
	root := parted{s, r.do(VMULPS, rest, inverse)}

	const k = 2 * math.Log2E
	z := r.productOf(root, root)
	q := r.halves(
		z.high, k/5, k/7, k/9, k/11, k/13, k/15, k/17, k/19, k/21, k/23,
	)
	// k/3 + z·q in two parts: the second is less than a tenth of the first.
	cubic := r.sumOf(r.number(cubicHigh64), r.do(VMULPS, z.high, q))
	cubic.low = r.do(VADDPS, cubic.low, r.number(cubicLow64))
	line := r.productOf(root, parted{r.number(twiceLog2E64), r.number(twiceLog2ELow64)})
	cubic = r.productOf(r.productOf(root, z), cubic)
	log := r.sumOf(line.high, cubic.high)
	low := r.do(VADDPS, log.low, r.do(VADDPS, line.low, cubic.low))
	log = r.sumOf(e, log.high)
	low = r.do(VADDPS, log.low, low)
	return r.log2Edges(a, parted{log.high, low})
}

// log2Edges replaces log, the logarithm of a, where a is 0, infinite or NaN.
func (r real) log2Edges(a Value, log parted) parted {
	infinite := r.notFinite(a)
	zero := r.compare(a, r.number(0), compareEQ)
	high := r.choose(infinite, a, log.high)
	return parted{
		r.choose(zero, r.number(math.Inf(-1)), high),
		r.Do(VANDNPS, r.Do(VORPS, infinite, zero), log.low),
	}
}

// beyond64 is an exponent of two whose power is infinite, and 0 if it is negative.
const beyond64 = 1100

// times is y·v, or a high part of ±beyond64 where the product is out of range.
func (r real) times(y Value, v parted) parted {
	high := r.do(VMULPS, y, v.high)
	low := r.mulAdd(y, v.low, r.mulSub(y, v.high, high))
	within := r.compare(r.magnitudeOf(high), r.number(beyond64), compareLT)
	high = r.do(VMAXPS, r.number(-beyond64), r.do(VMINPS, r.number(beyond64), high))
	return parted{high, r.Do(VANDPS, low, within)}
}

// exp2 is 2^(high+low) for |high| ≤ beyond64.
func (r real) exp2(v parted) Value {
	magic := r.number(roundMagic64 + biasTwice64)
	shifted := r.do(VADDPS, v.high, magic)
	rest := r.do(VSUBPS, v.high, r.do(VSUBPS, shifted, magic))
	rest = r.do(VADDPS, rest, v.low)
	return r.scaled64(shifted, r.do(VMULPS, rest, r.number(math.Ln2)))
}

// powerEdges is the power x^y that is given for |x|, with its sign, and replaced where it is
// NaN or 1 whatever the other operand is, see Chain.powerEdges.
func (r real) powerEdges(x, y, p Value) Value {
	integer := func(v Value) Value {
		return r.compare(r.do(VROUNDPS, v, Imm(3)), v, compareEQ)
	}
	whole := integer(y)
	odd := r.Do(VANDNPS, integer(r.do(VMULPS, y, r.number(0.5))), whole)
	p = r.Do(VXORPS, p, r.Do(VANDPS, r.signOf(x), odd))

	a := r.magnitudeOf(x)
	finite := r.compare(a, r.infinity(), compareLT)
	below := r.compare(x, r.number(0), compareLT)
	p = r.Do(VORPS, p, r.Do(VANDNPS, whole, r.Do(VANDPS, below, finite)))

	unit := r.compare(a, r.number(1), compareEQ)
	unbounded := r.compare(r.magnitudeOf(y), r.infinity(), compareEQ)
	one := r.Do(
		VORPS,
		r.compare(y, r.number(0), compareEQ),
		r.compare(x, r.number(1), compareEQ),
	)
	one = r.Do(VORPS, one, r.Do(VANDPS, unit, unbounded))
	return r.choose(one, r.number(1), p)
}
