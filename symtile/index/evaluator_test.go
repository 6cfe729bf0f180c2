package index

import (
	"math"
	"slices"
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

// TestOverflows: 3·10¹⁸·x + (3·10¹⁸+1)·y of small x and y is a sum like any other, but not
// something to divide where it can be more than 2⁶³.
func TestOverflows(t *testing.T) {
	const k = 3_000_000_000_000_000_000
	for limit, want := range map[int64]bool{
		1: false,
		3: true,
	} {
		r := NewRing()
		x := r.Var(Variable{Name: "x", Hi: 1})
		y := r.Var(Variable{
			Name: "y",
			Hi:   limit,
		})
		// The factors have no common divisor, by which a quotient would be
		// simplified, and neither is as large as the divisor.
		u := x.Scale(k)
		v := y.Scale(k + 1)
		sum := u.Add(v)
		q := sum.Div(2*k + 12_345)
		got := []bool{
			r.Overflows(sum),
			r.Overflows(q),
			r.Overflows(),
		}
		expect := []bool{
			false,
			want,
			want,
		}
		if !slices.Equal(got, expect) {
			t.Errorf("%v, y to %d: %v", q, limit, got)
		}
	}
}
