package gemm

import "math"

// Halves says how products of bf16 or f16, which lie as f32 in memory, are computed. Their
// sums are f32 in any case, and each way has bits of its own, which do not depend on the
// number of rows and columns. The instructions take denormal bf16 and sums for zeros, and
// denormal f16 for what they are; they flush denormal results to zeros, and round to the
// nearest, ties to even, each product with its sum only once (Intel SDM, volume 2).
type Halves int

// MultiplyAdds are those of package gemm (see there).
const MultiplyAdds Halves = 0

// Pairs of bf16 add the second term of each two, then the first (VDPBF16PS).
const Pairs Halves = 1

// Tiles of bf16 add up even terms of 32 and odd ones, then both sums, then what the element held
// (TDPBF16PS). So the bits depend on where k is divided, but for multiples of 32.
const Tiles Halves = 2

// F16Tiles are Tiles of f16 (TDPFP16PS).
const F16Tiles Halves = 3

// HasHalves reports whether this processor, and the system, can do that, or EmulateHalves was
// called. The first call for tiles asks the system for the permission to use them.
func HasHalves(how Halves) bool { return how == MultiplyAdds || hasHalves(how) }

// ReadsHalves reports whether MultiplyHalves reads operands of bf16 as they lie in memory.
func ReadsHalves(how Halves) bool {
	return (how == Pairs || how == Tiles) && hasHalves(how)
}

// MultiplyHalves is Multiply where the elements of A and B count as bf16, those of F16Tiles
// as f16: what is not is rounded, to the nearest, ties to even. Where the processor cannot do what is asked for,
// they are multiplied as f32; scratch is ScratchHalves elements.
func MultiplyHalves(x Product[float32], scratch []float32, how Halves) {
	if how == MultiplyAdds || !hasHalves(how) || x.Panels != 0 {
		x.Multiply(scratch)
		return
	}
	if !ReadsHalves(how) {
		x.refuseShort()
	}
	if x.check(); x.idle() {
		return
	}
	multiplyHalves(x, scratch, how)
}

// ScratchHalves is the number of elements that MultiplyHalves needs to pack A and B.
func ScratchHalves(x Product[float32], how Halves) int {
	return max(x.Scratch(), scratchHalves(x, how))
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

// ofF16 is a f16 as f32; a NaN becomes quiet.
func ofF16(x uint16) float32 {
	const up = 0x1p112 // between the biases of the exponents
	bits := uint32(x&0x7fff) << 13
	value := math.Float32frombits(bits) * up
	if x&0x7c00 == 0x7c00 {
		bits |= 0x7f800000
		if x&0x3ff != 0 {
			bits |= 1 << 22
		}
		value = math.Float32frombits(bits)
	}
	sign := uint32(x&0x8000) << 16
	return math.Float32frombits(math.Float32bits(value) | sign)
}

// multiplyAddHalf is sum + a·b as the instructions compute it, of bf16 or f16. The sum of
// f64 is exact, or one of its terms is more than 2²⁹ times the other and is the result: a
// product of bf16 has 16 bits, one of f16 22.
func multiplyAddHalf(a, b, sum float32) float32 {
	product := operand(a) * operand(b)
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

// roundF16 is f32 rounded to f16, the nearest, ties to even; a NaN becomes quiet.
func roundF16(x uint32) uint32 {
	const (
		infinite = 0x7f800000
		beyond   = 0x477ff000 // 65520, which is rounded to infinity
		least    = 0x38800000 // the least normal number, 2⁻¹⁴
		half     = 0x3f000000 // ½: its last bit is that of denormal numbers
		rebias   = 112 << 23
	)
	sign, y := x>>16&0x8000, x&0x7fffffff
	switch {
	case y > infinite:
		return sign | 0x7e00 | y>>13&0x3ff
	case y >= beyond:
		return sign | 0x7c00
	case y < least:
		sum := math.Float32frombits(y) + 0.5
		return sign | math.Float32bits(sum) - half
	}
	y -= rebias
	return sign | (y+0xfff+y>>13&1)>>13
}
