package gemm

import "math"

// BF16 says how products of bf16, which lie as f32 in memory, are computed. Their sums
// are f32 in any case, and each way has bits of its own, which do not depend on the
// number of rows and columns. The instructions take denormal operands for zeros, flush denormal results to zeros, and
// round to the nearest, ties to even, each product with its sum only once (Intel SDM, volume
// 2).
type BF16 int

// MultiplyAdds are those of package gemm (see there).
const MultiplyAdds BF16 = 0

// Pairs add the second term of each two, then the first (VDPBF16PS).
const Pairs BF16 = 1

// Tiles add up even terms of 32 and odd ones, then both sums, then what the element held
// (TDPBF16PS). So the bits depend on where k is divided, but for multiples of 32.
const Tiles BF16 = 2

// HasBF16 reports whether this processor, and the system, can do that, or EmulateBF16 was
// called. The first call for tiles asks the system for the permission to use them.
func HasBF16(how BF16) bool { return how == MultiplyAdds || hasBF16(how) }

// ReadsBF16 reports whether MultiplyBF16 reads operands of bf16 as they lie in memory.
func ReadsBF16(how BF16) bool { return how == Pairs && hasBF16(how) }

// MultiplyBF16 is Multiply where the elements of A and B count as bf16: what is not is
// rounded, to the nearest, ties to even. Where the processor cannot do what is asked for,
// they are multiplied as f32; scratch is ScratchBF16 elements.
func MultiplyBF16(x Product[float32], scratch []float32, how BF16) {
	if how == MultiplyAdds || !hasBF16(how) || x.Panels != 0 {
		x.Multiply(scratch)
		return
	}
	if how != Pairs {
		x.refuseShort()
	}
	if x.check(); x.idle() {
		return
	}
	multiplyBF16(x, scratch, how)
}

// ScratchBF16 is the number of elements that MultiplyBF16 needs to pack A and B.
func ScratchBF16(x Product[float32], how BF16) int {
	return max(x.Scratch(), scratchBF16(how))
}

// least is the least normal number of f32.
const least = 0x1p-126

// flushed is x as f32, or a zero of its sign where it is denormal: less than the least
// normal number after it was rounded to 24 bits.
func flushed(x float64) float32 {
	const scale = 0x1p64 // without it the grid of denormal numbers would round
	if y := float32(x); y >= 2*least || y <= -2*least {
		return y
	}
	if math.Abs(float64(float32(x*scale))) < least*scale {
		return float32(math.Copysign(0, x))
	}
	return float32(x)
}

// operand is an operand: a denormal one is a zero of its sign.
func operand(x float32) float64 { return float64(flushed(float64(x))) }

// ofBF16 is a bf16 as f32.
func ofBF16(x uint16) float32 { return math.Float32frombits(uint32(x) << 16) }

// multiplyAddBF16 is sum + a·b as the instructions compute it. The sum of f64 is exact, or
// one of its terms is more than 2²⁹ times the other and is the result: a product of bf16
// has 16 bits.
func multiplyAddBF16(a, b uint16, sum float32) float32 {
	product := operand(ofBF16(a)) * operand(ofBF16(b))
	return flushed(product + operand(sum))
}

// addFlushed is a + b. The sum of f64 has more than twice the bits of f32, so that rounding
// it again does no harm.
func addFlushed(a, b float32) float32 {
	return flushed(operand(a) + operand(b))
}

// roundBF16 is f32 rounded to bf16, the nearest, ties to even; a NaN becomes quiet.
func roundBF16(x uint32) uint32 {
	if x&0x7fffffff > 0x7f800000 {
		return (x | 1<<22) >> 16
	}
	return (x + 0x7fff + x>>16&1) >> 16
}
