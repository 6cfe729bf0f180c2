package amd64

import (
	"math"
	"math/big"
)

// The bounds in ulp below are the largest errors over one f32 in 97, and a margin; those of math.go are
// over all f32.

// turns are four parts of 2/π·2^(16k) mod 4 for k = 0, 1, …, 6, which together are within
// 2^-97 of it (Payne and Hanek, Radian reduction for trigonometric functions, 1983): what
// a number of quarters of a turn lacks is a multiple of 4.
var turns = quarterTurns()

const (
	turnParts = 4
	turnShift = 4 // of an exponent for k
)

// quarterTurns makes turns from 250 bits of 2/π.
func quarterTurns() *[turnParts][8]uint32 {
	quotient, _, err := big.ParseFloat(
		"0xa2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561", 0, 256, big.ToNearestEven,
	)
	if err != nil {
		panic(err)
	}
	var table [turnParts][8]uint32
	for k := range 7 {
		turn := new(big.Float).SetMantExp(quotient, 16*k-256)
		fours, _ := new(big.Float).SetMantExp(turn, -2).Int(nil)
		turn.Sub(turn, new(big.Float).SetMantExp(new(big.Float).SetInt(fours), 2))
		for n := range table {
			part, _ := turn.Float32()
			table[n][k] = math.Float32bits(part)
			turn.Sub(turn, big.NewFloat(float64(part)))
		}
	}
	return &table
}

// A quartered angle is n quarters of a turn, of which shifted has the two low bits, and a
// rest of at most π/4.
type quartered struct {
	shifted Value
	rest    parted
}

// quartersOf returns |x| by quarters of a turn. With x = x' 2^(16k), where x' is below
// 2^39 and, unless k is 0, a whole number, x' times the parts of turns is exact but for
// what the last part lacks.
func (c *Chain) quartersOf(x Value) quartered {
	a := c.Abs32(x)
	const whole = 127 + mantissa
	k := c.Do(VPSUBD, c.Do(VPSRLD, a, Imm(mantissa)), c.Const32(whole))
	k = c.Do(VPSRLD, c.Do(VPMAXSD, k, c.Const32(0)), Imm(turnShift))
	a = c.Do(VPSUBD, a, c.Do(VPSLLD, k, Imm(mantissa+turnShift)))
	var p [turnParts]parted
	for n := range p {
		part := c.Do(VPERMPS, k, c.table32(&turns[n]))
		p[n].high = c.Do(VMULPS, a, part)
		if n < turnParts-1 {
			p[n].low = c.MulSub32(a, part, p[n].high)
		}
	}
	return c.quarters(p)
}

// quarters adds the products of quartersOf, the largest first. The whole quarters are taken
// away from the first term before others are added, so that each sum is as small as the
// rest is, and what rounding takes from it too.
func (c *Chain) quarters(p [turnParts]parted) quartered {
	first := c.modFour(p[0].high)
	second := c.modFour(p[0].low)
	third := c.modFour(p[1].high)
	shifted := c.Do(VADDPS, c.Do(VADDPS, c.Do(VADDPS, first, second), third), c.Float32(roundMagic))
	n := c.Do(VSUBPS, shifted, c.Float32(roundMagic))
	rest := c.exactSum(c.Do(VSUBPS, first, n), second)
	low := rest.low
	for _, term := range []Value{third, p[1].low, p[2].high} {
		rest = c.exactSum(rest.high, term)
		low = c.Do(VADDPS, low, rest.low)
	}
	low = c.Do(VADDPS, low, c.Do(VADDPS, p[2].low, p[3].high))
	const half = 1.57079637050628662109375
	return quartered{shifted, c.product(
		c.sum(rest.high, low),
		parted{c.Float32(half), c.Float32(math.Pi/2 - half)},
	)}
}

// modFour returns x less a multiple of 4, between -2 and 2.
func (c *Chain) modFour(x Value) Value {
	fours := c.Do(VROUNDPS, c.Do(VMULPS, x, c.Float32(0.25)), Imm(0))
	return c.NegMulAdd32(fours, c.Float32(4), x)
}

// exactSum returns x + y as two parts (Knuth, The Art of Computer Programming 2, 4.2.2).
func (c *Chain) exactSum(x, y Value) parted {
	high := c.Do(VADDPS, x, y)
	virtual := c.Do(VSUBPS, high, x)
	return parted{high, c.Do(
		VADDPS,
		c.Do(VSUBPS, x, c.Do(VSUBPS, high, virtual)),
		c.Do(VSUBPS, y, virtual),
	)}
}

// sineOf returns the sine of at most π/4 (polynomial: Moshier, Cephes, sinf).
func (c *Chain) sineOf(y parted) Value {
	z := c.Do(VMULPS, y.high, y.high)
	p := c.horner(z, -1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4)
	return c.Do(VADDPS, y.high, c.MulAdd32(c.Do(VMULPS, z, y.high), p, y.low))
}

// cosineOf returns the cosine of at most π/4 (polynomial: Moshier, Cephes, cosf).
func (c *Chain) cosineOf(y parted) Value {
	z := c.Do(VMULPS, y.high, y.high)
	p := c.horner(z, 4.166664568298827e-2, -1.388731625493765e-3, 2.443315711809948e-5)
	most := c.NegMulAdd32(z, c.Float32(0.5), c.Float32(1))
	lost := c.NegMulAdd32(z, c.Float32(0.5), c.Do(VSUBPS, c.Float32(1), most))
	lost = c.NegMulAdd32(y.high, y.low, lost)
	return c.Do(VADDPS, most, c.MulAdd32(c.Do(VMULPS, z, z), p, lost))
}

// alternate returns x where n is even and y where it is odd, negated where n mod 4 is 2 or
// 3; n is in the low bits of shifted.
func (c *Chain) alternate(shifted, x, y Value) Value {
	v := c.Do(VBLENDVPS, x, y, c.Do(VPSLLD, shifted, Imm(31)))
	sign := c.Do(VANDPS, c.Do(VPSLLD, shifted, Imm(30)), c.Const32(signBit))
	return c.Do(VXORPS, v, sign)
}

// orNaN returns v, and NaN where x is not finite.
func (c *Chain) orNaN(v, x Value) Value {
	return c.Do(VORPS, v, c.Do(VCMPPS, c.Abs32(x), c.Float32(math.Inf(1)), compareNLTU))
}

// smallAngle is below which a sine and a tangent are the angle.
const smallAngle = 1.0 / (1 << 13)

// oddFunction returns v, the function of |x|, with the sign of x, and x where it is small.
func (c *Chain) oddFunction(v, x Value) Value {
	v = c.Do(VXORPS, v, c.Do(VANDPS, x, c.Const32(signBit)))
	small := c.Do(VCMPPS, c.Abs32(x), c.Float32(smallAngle), compareLT)
	return c.orNaN(c.Do(VBLENDVPS, v, x, small), x)
}

// Sin32 returns sin x within 1.25 ulp.
func (c *Chain) Sin32(x Value) Value {
	q := c.quartersOf(x)
	v := c.alternate(q.shifted, c.sineOf(q.rest), c.cosineOf(q.rest))
	return c.oddFunction(v, x)
}

// Cos32 returns cos x = sin(x + π/2) within 1.25 ulp.
func (c *Chain) Cos32(x Value) Value {
	q := c.quartersOf(x)
	next := c.Do(VPADDD, q.shifted, c.Const32(1))
	v := c.alternate(next, c.sineOf(q.rest), c.cosineOf(q.rest))
	return c.orNaN(v, x)
}

// Tan32 returns tan x, the sine by the cosine, within 2.9 ulp.
func (c *Chain) Tan32(x Value) Value {
	q := c.quartersOf(x)
	sine, cosine := c.sineOf(q.rest), c.cosineOf(q.rest)
	odd := c.Do(VPSLLD, q.shifted, Imm(31))
	above := c.Do(VBLENDVPS, sine, cosine, odd)
	below := c.Do(VBLENDVPS, cosine, sine, odd)
	v := c.Do(VXORPS, c.Do(VDIVPS, above, below), c.Do(VANDPS, odd, c.Const32(signBit)))
	return c.oddFunction(v, x)
}
