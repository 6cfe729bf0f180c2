package amd64

import "math"

// Counts of bits, and quotients of integers, for which there is no instruction without
// AVX-512.

// onesOfNibbles are the ones in each number of four bits, for VPSHUFB.
var onesOfNibbles = [8]uint32{
	0x02010100, 0x03020201, 0x03020201, 0x04030302,
	0x02010100, 0x03020201, 0x03020201, 0x04030302,
}

// OnesOfBytes returns the ones of each byte (Mula, Kurz and Lemire, Faster population counts
// using AVX2 instructions, 2018).
func (c *Chain) OnesOfBytes(x Value) Value {
	table := c.table32(&onesOfNibbles)
	nibbles := c.Const32(0x0f0f0f0f)
	low := c.Do(VPAND, x, nibbles)
	high := c.Do(VPAND, c.Do(VPSRLD, x, Imm(4)), nibbles)
	return c.Do(
		VPADDB,
		c.Do(VPSHUFB, table, low),
		c.Do(VPSHUFB, table, high),
	)
}

// powersOfBytes are the powers of two below 2^8, and zeros, for VPSHUFB.
var powersOfBytes = [8]uint32{
	0x08040201, 0x80402010, 0, 0,
	0x08040201, 0x80402010, 0, 0,
}

// PowersOfBytes returns 2^k modulo 2^8 of each byte, of which k is the low four bits; 0 where
// the first bit is set.
func (c *Chain) PowersOfBytes(x Value) Value {
	return c.Do(VPSHUFB, c.table32(&powersOfBytes), x)
}

// Ones32 returns the number of ones in each lane of 32 bits.
func (c *Chain) Ones32(x Value) Value {
	pairs := c.Do(VPMADDUBSW, c.OnesOfBytes(x), c.Const32(0x01010101))
	return c.Do(VPMADDWD, pairs, c.Const32(0x00010001))
}

// Ones64 returns the number of ones in each lane of 64 bits.
func (c *Chain) Ones64(x Value) Value {
	halves := c.Ones32(x)
	sum := c.Do(VPADDD, halves, c.Do(VPSRLQ, halves, Imm(32)))
	return c.Do(VPAND, sum, c.Const64(1<<32-1))
}

// Zeros32 returns the number of zeros above the highest one in each lane of 32 bits: the
// zeros that are left when all bits below it are set.
func (c *Chain) Zeros32(x Value) Value {
	for shift := Imm(1); shift < 32; shift *= 2 {
		x = c.Do(VPOR, x, c.Do(VPSRLD, x, shift))
	}
	return c.Do(VPSUBD, c.Const32(32), c.Ones32(x))
}

// Zeros64 is Zeros32 of lanes of 64 bits.
func (c *Chain) Zeros64(x Value) Value {
	for shift := Imm(1); shift < 64; shift *= 2 {
		x = c.Do(VPOR, x, c.Do(VPSRLQ, x, shift))
	}
	return c.Do(VPSUBQ, c.Const64(64), c.Ones64(x))
}

// QuotientNarrow returns x/y rounded towards zero, of integers of at most 16 bits, of which
// f32 has all and whose quotient it rounds to no other whole number; that by 0 is −1.
func (c *Chain) QuotientNarrow(x, y Value) Value {
	q := c.Do(VDIVPS, c.FromInt32(x), c.FromInt32(y))
	return c.orMinusOne(c.Do(VCVTTPS2DQ, q), y)
}

// orMinusOne returns q, and −1 where y is 0.
func (c *Chain) orMinusOne(q, y Value) Value {
	return c.Do(VPOR, q, c.Do(VPCMPEQD, y, c.Const32(0)))
}

// Quotient32 returns x/y rounded towards zero, of s32 or u32, by quotients of f64, which has
// all of them, of the even lanes and the odd ones; that by 0 is −1, and that of the least
// s32 by −1 itself.
func (c *Chain) Quotient32(x, y Value, signed bool) Value {
	even := c.lowQuotient(x, y, signed)
	odd := c.lowQuotient(c.Do(VPSRLQ, x, Imm(32)), c.Do(VPSRLQ, y, Imm(32)), signed)
	q := c.Do(
		VPOR,
		c.Do(VPAND, even, c.Const64(1<<32-1)),
		c.Do(VPSLLQ, odd, Imm(32)),
	)
	return c.orMinusOne(q, y)
}

// lowQuotient returns x/y of the low halves of lanes in the low halves.
func (c *Chain) lowQuotient(x, y Value, signed bool) Value {
	q := c.Do(VDIVPD, c.lowAsFloat64(x, signed), c.lowAsFloat64(y, signed))
	q = c.Do(VROUNDPD, q, Imm(3))
	return c.Do(VADDPD, q, c.double().number(roundMagic64))
}

// lowAsFloat64 returns the s32 or u32 in the low halves of lanes as f64.
func (c *Chain) lowAsFloat64(x Value, signed bool) Value {
	x = c.Do(VPAND, x, c.Const64(1<<32-1))
	bias := uint64(bits52)
	if signed {
		bias |= 1 << 31
	}
	x = c.Do(VPXOR, x, c.Const64(bias))
	return c.Do(VSUBPD, x, c.double().number(math.Float64frombits(bias)))
}

// LowQuotient is Quotient32 of u32 in lanes of 64 bits.
func (c *Chain) LowQuotient(x, y Value) Value {
	q := c.Do(VPAND, c.lowQuotient(x, y, false), c.Const64(1<<32-1))
	return c.orMinusOne(q, y)
}
