package index

import (
	"math"
	"math/bits"
	"slices"
)

// CeilDiv is ⌈x/m⌉ for x ≥ 0 and m > 0. Unlike (x+m−1)/m it does not overflow.
func CeilDiv(x, m int64) int64 {
	if x == 0 {
		return 0
	}
	return (x-1)/m + 1
}

// LCM is the least common multiple of x and y, both positive.
func LCM(x, y int64) int64 { return x / GCD(x, y) * y }

// Product multiplies extents, none of which is negative; ok is false when int64
// cannot hold the product.
func Product(extents []int64) (n int64, ok bool) {
	n, ok = 1, true
	if slices.Contains(extents, 0) {
		return 0, true
	}
	for _, d := range extents {
		hi, lo := bits.Mul64(uint64(n), uint64(d))
		ok = ok && hi == 0 && lo <= math.MaxInt64
		n = int64(lo)
	}
	return n, ok
}
