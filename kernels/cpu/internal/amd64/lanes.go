package amd64

import "math"

// A chain over elements of 64 bits holds those of 32 bits in the low halves of its lanes:
// operations on lanes of 32 bits are right there, whatever they make of the high halves.
// Loads of them spread the elements, stores pack them, and a comparison of 64 bits leaves
// its truth value where it is read.

// LoadLow returns four elements of 32 bits in the low halves of lanes of 64.
func (c *Chain) LoadLow(from Mem) Value { return c.Load(VPMOVZXDQ, from, 16) }

// StoreLow stores the low halves of the lanes of v.
func (c *Chain) StoreLow(to Mem, v Value) { c.Store(VMOVUPS, to, 16, c.packed(v)) }

// spread returns lanes of 64 bits whose low halves are four elements of 32 bits.
func (c *Chain) spread(x Value) Value { return c.Do(VPMOVZXDQ, x) }

// packed returns the low halves of the lanes of v, in half of a vector.
func (c *Chain) packed(v Value) Value {
	if s := c.stepOf(v); s != nil && s.kind == plainStep && s.op == VPMOVZXDQ {
		return s.args[0].value
	}
	if c.wide {
		return c.Do(VPMOVQD, v)
	}
	low := c.Do(VEXTRACTI128, v, Imm(0))
	high := c.Do(VEXTRACTI128, v, Imm(1))
	return c.Do(VSHUFPS, low, high, Imm(0x88))
}

// stepOf is the step that defines v, nil in a chain with a mistake.
func (c *Chain) stepOf(v Value) *step {
	if c.err != nil || v <= 0 || int(v) > len(c.steps) {
		return nil
	}
	return &c.steps[v-1]
}

// SignedLow returns the s32 in the low halves of lanes as s64.
func (c *Chain) SignedLow(v Value) Value { return c.Do(VPMOVSXDQ, c.packed(v)) }

// LowFromFloat64 returns f64 as f32 in the low halves, rounded to nearest even.
func (c *Chain) LowFromFloat64(x Value) Value { return c.spread(c.Do(VCVTPD2PS, x)) }

// Float64FromLow returns the f32 in the low halves as f64.
func (c *Chain) Float64FromLow(x Value) Value { return c.Do(VCVTPS2PD, c.packed(x)) }

// OddFromFloat64 returns f64 as f32 in the low halves, rounded to odd: what is not exact
// gets the neighbour whose last bit is set, so that rounding it to a type of at most 22
// digits rounds once (Boldo and Melquiond, Emulation of FMA and correctly rounded sums,
// 2008).
func (c *Chain) OddFromFloat64(x Value) Value {
	single := c.Do(VCVTPD2PS, x)
	back := c.Do(VCVTPS2PD, single)
	above := c.Do(
		VCMPPD, c.double().magnitudeOf(x),
		c.double().magnitudeOf(back), compareLT,
	)
	differ := c.Do(VCMPPD, x, back, compareDiffers)
	cut := c.Do(VPADDD, c.spread(single), above)
	return c.Do(VPOR, cut, c.Do(VPSRLQ, differ, Imm(63)))
}

// compareDiffers is less or greater, which NaN is not.
const compareDiffers = Imm(12)

// Int32FromFloat64 returns f64 rounded towards zero as integers between low and high in the
// low halves; what is beyond becomes the nearer end, NaN 0. Of u32 the ends are less 2^31
// when they are converted.
func (c *Chain) Int32FromFloat64(x Value, low, high float64) Value {
	r := c.double()
	x = c.Do(VANDPS, x, r.compare(x, x, compareORD))
	x = r.do(VMINPS, r.number(high), r.do(VMAXPS, r.number(low), x))
	if high <= math.MaxInt32 {
		return c.spread(c.Do(VCVTTPD2DQ, x))
	}
	x = r.do(VSUBPS, r.do(VROUNDPS, x, Imm(3)), r.number(1<<31))
	return c.Do(VPXOR, c.spread(c.Do(VCVTTPD2DQ, x)), c.Const64(1<<31))
}

// Float64FromInt32 returns the s32 in the low halves as f64.
func (c *Chain) Float64FromInt32(x Value) Value { return c.Do(VCVTDQ2PD, c.packed(x)) }

// Numbers whose last bit is worth 1, 2^32 and 2^32, of which the latter are biased by 2^63
// for s64: integers put into their low bits are added to them.
const (
	bits52  = 0x433 << 52
	bits84  = 0x453 << 52
	bits84s = 0x453<<52 | 1<<31
)

// Float64FromInt64 returns s64, or u64, as f64, rounded to nearest even. Both halves are
// exact as floats, and their sum is rounded once.
func (c *Chain) Float64FromInt64(x Value, signed bool) Value {
	if c.wide && signed {
		return c.Do(VCVTQQ2PD, x)
	}
	low := c.Do(VPOR, c.Do(VPAND, x, c.Const64(1<<32-1)), c.Const64(bits52))
	bias := uint64(bits84)
	if signed {
		bias = bits84s
	}
	high := c.Do(VPXOR, c.Do(VPSRLQ, x, Imm(32)), c.Const64(bias))
	base := math.Float64frombits(bias) + math.Float64frombits(bits52)
	high = c.Do(VSUBPD, high, c.double().number(base))
	return c.Do(VADDPD, high, low)
}

// OddFromInt64 returns s64 as f32 in the low halves, rounded to odd. Integers of more than
// 53 bits get the bits that an f64 has not into the lowest that it has. The f64 is no number
// that f32 has to round to its smallest ones, so that the bits that f32 has not may be put
// into the lowest that it has, too.
func (c *Chain) OddFromInt64(x Value) Value {
	exact := c.exactInt64(x)
	return c.LowFromFloat64(c.sticky(exact, 1<<29-1))
}

// sticky returns lanes of 64 bits without their low bits, the lowest that is left set where
// one of these was.
func (c *Chain) sticky(x Value, low uint64) Value {
	s := c.Do(VPADDQ, c.Do(VPAND, x, c.Const64(low)), c.Const64(low))
	return c.Do(VPAND, c.Do(VPOR, x, s), c.Const64(^low))
}

// LowFromInt64 returns s64 as f32 in the low halves, rounded to nearest even.
func (c *Chain) LowFromInt64(x Value) Value {
	if c.wide {
		return c.spread(c.Do(VCVTQQ2PS, x))
	}
	return c.LowFromFloat64(c.exactInt64(x))
}

// exactInt64 returns s64 as f64, rounded to odd where it has more than 53 bits.
func (c *Chain) exactInt64(x Value) Value {
	sticky := c.sticky(x, 1<<11-1)
	above := c.Do(VPSRLQ, c.Do(VPADDQ, x, c.Const64(1<<53)), Imm(54))
	fits := c.Do(VPCMPEQQ, above, c.Const64(0))
	x = c.Do(VBLENDVPD, sticky, x, fits)
	return c.Float64FromInt64(x, true)
}

// Int64FromFloat64 returns f64 rounded towards zero as s64; what is beyond becomes the
// nearer end, NaN 0. The high half is the quotient by 2^32, rounded down, the low one what
// is left.
func (c *Chain) Int64FromFloat64(x Value) Value {
	r := c.double()
	x = c.Do(VANDPS, x, r.compare(x, x, compareORD))
	x = r.do(VMAXPS, r.do(VROUNDPS, x, Imm(3)), r.number(-1<<63))
	large := r.compare(x, r.number(1<<63), compareNLTU)
	quotient := r.do(VMULPS, x, r.number(1.0/(1<<32)))
	quotient = r.do(VROUNDPS, quotient, Imm(1))
	rest := r.negMulAdd(quotient, r.number(1<<32), x)
	high := c.Do(VPSLLQ, c.spread(c.Do(VCVTTPD2DQ, quotient)), Imm(32))
	low := c.Do(VPXOR, r.do(VADDPS, rest, r.number(1<<52)), c.Const64(bits52))
	most := c.Const64(1<<63 - 1)
	return c.Do(VBLENDVPD, c.Do(VPOR, high, low), most, large)
}
