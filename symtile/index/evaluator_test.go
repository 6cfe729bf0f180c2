package index

import (
	"math"
	"testing"
)

// TestDivision compares compiled division with division at the edges of its
// ways: around multiples of the divisor, 0, 2³² and the ends of int64.
func TestDivision(t *testing.T) {
	for _, d := range []int64{
		2, 3, 5, 7, 60, 64, 75, 641,
		1 << 31, 1<<31 + 1, 1<<32 - 1,
		1 << 32, 1<<32 + 1, 1 << 62, math.MaxInt64,
	} {
		s := division(d, span{})
		for _, base := range []int64{
			0, d, 5 * (d % (1 << 30)), 1 << 32,
			1<<32 - 1 - (1<<32-1)%d, 1 << 40,
			-d, -1 << 33, math.MinInt64 + 3, math.MaxInt64 - 3,
		} {
			for x := base - 3; x != base+4; x++ {
				got := s.quotient(x)
				if s.op == codeShift {
					got = x >> uint(s.k)
				}
				if want := FloorDiv(x, d); got != want {
					t.Fatalf("%d / %d is %d, want %d", x, d, got, want)
				}
			}
		}
	}
}
