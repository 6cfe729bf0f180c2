package reference

import (
	"math"
	"math/cmplx"
)

// A noise is what the perturbations of a computation, of an instruction or of an array
// are functions of: that of an element follows from its place alone, so that an
// evaluation of single elements moves them as one of whole arrays does, in any order and
// on any number of cores.
type noise uint64

// Parts of the noise of an instruction.
const (
	ofTerms   = iota // its first operand, whose elements it sums
	ofResult         // its result, of which an array of a tuple is a part again
	ofFactors        // its second operand, whose products with the first it sums
)

// step is the increment of SplitMix64, 2⁶⁴ over the golden ratio (Steele, Lea, Flood,
// Fast splittable pseudorandom number generators, OOPSLA 2014), of which mixed is the
// output function.
const step = 0x9e3779b97f4a7c15

// mixed spreads the bits of x.
func mixed(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// newNoise is that of an evaluation.
func newNoise(seed int64, evaluation int) noise {
	return noise(mixed(uint64(seed))).part(evaluation)
}

// part is that of part k of what s is of.
func (s noise) part(k int) noise {
	return noise(mixed(uint64(s) + step*uint64(k+1)))
}

// move is element n with half of eps to eps of itself added or subtracted. What is off
// by less may be rounded back by an exact operation that follows, and if that happens in
// every evaluation, the element looks as if no rounding moved it. Infinities stay.
func (s noise) move(x float64, n int64, eps float64) float64 {
	if math.IsInf(x, 0) {
		return x
	}
	return x + x*eps*s.unit(n)
}

// moveComplex is move of a complex number, whose parts are off by as much of its
// magnitude: where the products of a part cancel, its rounding is not relative to it.
func (s noise) moveComplex(z complex128, n int64, eps float64) complex128 {
	m := eps * cmplx.Abs(z)
	if m-m != 0 {
		return z
	}
	re := m * s.unit(2*n)
	im := m * s.unit(2*n+1)
	return z + complex(re, im)
}

// unit is a number of 0.5 to 1 with any sign, which follows from n.
func (s noise) unit(n int64) float64 {
	bits := mixed(uint64(s) + step*uint64(n+1))
	u := float64(bits>>11)*0x1p-53 - 0.5
	return u + math.Copysign(0.5, u)
}
