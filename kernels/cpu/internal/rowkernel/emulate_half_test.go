package rowkernel

import (
	"math"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
)

// halves computes n lanes of the result of an instruction on elements of two bytes.
func (m *machine) halves(op amd64.Op, o []amd64.Operand, imm, n int) (y lanes) {
	switch op {
	case amd64.VPBROADCASTW:
		bits := m.bytes(m.address(o[0].(amd64.Mem)), 2)
		x := uint32(bits[0]) | uint32(bits[1])<<8
		return slices16(x<<16 | x)
	case amd64.VEXTRACTI128:
		x := m.vector(o[0], 8)
		copy(y[:4], x[4*imm:])
		return y
	case amd64.VPACKUSDW:
		low, high := m.vector(o[0], 4), m.vector(o[1], 4)
		copy(low[4:], high[:4])
		return packed(low, 8)
	case amd64.VPMOVDW:
		return packed(m.vector(o[0], 16), 16)
	case amd64.VCVTNEPS2BF16:
		return roundedBF16(m.vector(o[0], 16))
	case amd64.VCVTPS2PH:
		x := m.vector(o[0], 2*n)
		for k := range x {
			x[k] = toF16(math.Float32frombits(x[k]))
		}
		return packed(x, 2*n)
	}
	x := m.vector(o[0], n/2)
	for k := range n {
		y[k] = x[k/2] >> (k % 2 * 16) & 0xffff
		if op == amd64.VCVTPH2PS {
			y[k] = fromF16(y[k])
		}
	}
	return y
}

// roundedBF16 are 16 lanes rounded to bf16, to nearest even: a NaN is quiet, and what is
// denormal is 0.
func roundedBF16(x lanes) lanes {
	for k, bits := range x {
		switch size := bits << 1 >> 1; {
		case size > 0x7f800000:
			x[k] = (bits | 1<<22) >> 16
		case size < 0x00800000:
			x[k] = bits >> 31 << 15
		default:
			x[k] = (bits + 0x7fff + bits>>16&1) >> 16
		}
	}
	return packed(x, 16)
}

// packed are the low halves of n lanes, one behind the other.
func packed(x lanes, n int) (y lanes) {
	for k := range n {
		y[k/2] |= x[k] & 0xffff << (k % 2 * 16)
	}
	return y
}

// fromF16 is an f16 as f32; a NaN is quiet.
func fromF16(x uint32) uint32 {
	sign, exponent, fraction := x>>15<<31, x>>10&31, x&1023
	switch {
	case exponent == 31 && fraction != 0:
		return sign | 0x7fc00000 | fraction<<13
	case exponent == 31:
		return sign | 0x7f800000
	case exponent == 0:
		return sign | math.Float32bits(float32(fraction)*0x1p-24)
	}
	return sign | (exponent+112)<<23 | fraction<<13
}

// toF16 is an f32 rounded to f16, to nearest even; a NaN is quiet.
func toF16(x float32) uint32 {
	bits := math.Float32bits(x)
	sign, size := bits>>31<<15, math.Abs(float64(x))
	switch {
	case x != x:
		return sign | 0x7e00 | bits>>13&1023
	case size >= 65520: // halfway from the largest to the next
		return sign | 0x7c00
	case size < 0x1p-14:
		return sign | uint32(math.RoundToEven(size*0x1p24))
	}
	low := bits&(1<<31-1) + 0xfff + bits>>13&1 // The exponent takes what is carried.
	return sign | (low>>13 - 112<<10)
}
