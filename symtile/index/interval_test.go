package index

import (
	"math"
	"testing"
)

// TestIntervalExhaustive compares every operation with the set it bounds, for
// all intervals of a small box.
func TestIntervalExhaustive(t *testing.T) {
	var all []Interval
	for lo := int64(-4); lo <= 4; lo++ {
		for hi := lo; hi <= 4; hi++ {
			all = append(all, Interval{lo, hi})
		}
	}
	hull := func(v, w Interval, f func(x, y int64) int64) Interval {
		out := Interval{1, 0}
		for x := v.Lo; x <= v.Hi; x++ {
			for y := w.Lo; y <= w.Hi; y++ {
				out = out.Join(Interval{f(x, y), f(x, y)})
			}
		}
		return out
	}
	check := func(op string, v, w, got, want Interval) {
		if got != want {
			t.Errorf("%v %s %v = %v, want %v", v, op, w, got, want)
		}
	}
	for _, v := range all {
		for _, w := range all {
			check(
				"+", v, w, v.Add(w),
				hull(v, w, func(x, y int64) int64 { return x + y }),
			)
			check(
				"*", v, w, v.Mul(w),
				hull(v, w, func(x, y int64) int64 { return x * y }),
			)
			check(
				"min", v, w, v.Min(w),
				hull(v, w, func(x, y int64) int64 { return min(x, y) }),
			)
			check(
				"max", v, w, v.Max(w),
				hull(v, w, func(x, y int64) int64 { return max(x, y) }),
			)
			check("join", v, w, v.Join(w), Interval{
				min(v.Lo, w.Lo), max(v.Hi, w.Hi),
			})
			if w.Lo > 0 {
				check("floordiv", v, w, v.divBy(w), hull(v, w, FloorDiv))
			}
		}
		for _, m := range []int64{-3, -2, -1, 1, 2, 3} {
			k := Interval{m, m}
			check("floordiv", v, k, v.Div(m), hull(v, k, FloorDiv))
			check(
				"scaled", v, k, v.Scale(m),
				hull(v, k, func(x, y int64) int64 { return x * y }),
			)
		}
		check("neg", v, v, v.Neg(), Interval{-v.Hi, -v.Lo})
	}
}

func TestIntervalSaturates(t *testing.T) {
	const least, most = math.MinInt64, math.MaxInt64
	for _, c := range []struct{ got, want Interval }{
		{Interval{1, most}.Add(Interval{1, 1}), Interval{2, most}},
		{Interval{least, most - 1}.Add(Interval{-5, 5}), Interval{least, most}},
		{Interval{1 << 40, 1 << 41}.Mul(Interval{
			-(1 << 40), 1,
		}), Interval{least, 1 << 41}},
		{Interval{3, most}.Scale(-2), Interval{least, -6}},
		{Interval{least, most}.Div(7), Interval{least, most}},
		{Interval{least, 6}.Div(-3), Interval{-2, most}},
		{Interval{least, 5}.Neg(), Interval{-5, most}},
		{Interval{0, most}.AddConst(-1), Interval{-1, most}},
	} {
		if c.got != c.want {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
	if n := (Interval{least, 0}).Len(); n != most {
		t.Errorf("length %d", n)
	}
	if n := (Interval{-5, 4}).Len(); n != 10 {
		t.Errorf("length %d", n)
	}
}

func TestChineseRemainder(t *testing.T) {
	for m := int64(1); m <= 12; m++ {
		for n := int64(1); n <= 12; n++ {
			for r := range m {
				for s := range n {
					l, q, known := chineseRemainder(m, r, n, s)
					checkRemainder(t, m, r, n, s, l, q, known)
				}
			}
		}
	}
	if _, _, known := chineseRemainder(math.MaxInt64, 0, math.MaxInt64-1, 0); known {
		t.Error("the common modulus does not fit")
	}
}

func checkRemainder(t *testing.T, m, r, n, s, l, q int64, known bool) {
	found := false
	for x := range m * n {
		in := x%m == r && x%n == s
		found = found || in
		if l > 0 && in != (x%l == q) {
			t.Errorf("%d mod %d, %d mod %d: %d mod %d is wrong at %d", r, m, s, n, q, l, x)
		}
	}
	if !known || found != (l > 0) {
		t.Errorf("%d mod %d, %d mod %d: found %v, modulus %d", r, m, s, n, found, l)
	}
}
