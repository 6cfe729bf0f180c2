package index

import (
	"fmt"
	"math"
)

// Interval is the closed range [Lo, Hi] of integers; empty when Lo > Hi.
//
// Arithmetic on intervals computes the hull of the results. It saturates at the
// ends of int64, and an end there is sticky: it means "no bound known on this
// side". No operation wraps.
type Interval struct{ Lo, Hi int64 }

// The ends of an interval that is not bounded.
const (
	minusInf = math.MinInt64
	plusInf  = math.MaxInt64
)

// Unbounded is the interval that says nothing.
func Unbounded() Interval { return Interval{minusInf, plusInf} }

// Empty reports whether no integer is in v.
func (v Interval) Empty() bool { return v.Lo > v.Hi }

// Contains reports whether x is in v.
func (v Interval) Contains(x int64) bool {
	return v.Lo <= x && x <= v.Hi
}

// Covers reports whether every integer of w is in v.
func (v Interval) Covers(w Interval) bool {
	return w.Empty() || v.Lo <= w.Lo && w.Hi <= v.Hi
}

// Bounded reports whether both ends are known.
func (v Interval) Bounded() bool { return v.Lo != minusInf && v.Hi != plusInf }

// Len is the number of integers in v, saturating.
func (v Interval) Len() int64 {
	switch {
	case v.Empty():
		return 0
	case !v.Bounded():
		return plusInf
	}
	return SatAdd(SatAdd(v.Hi, satNeg(v.Lo)), 1)
}

// Meet is the set of integers in both; it may be empty.
func (v Interval) Meet(w Interval) Interval {
	return Interval{max(v.Lo, w.Lo), min(v.Hi, w.Hi)}
}

// Join is the smallest interval with the integers of both.
func (v Interval) Join(w Interval) Interval {
	switch {
	case v.Empty():
		return w
	case w.Empty():
		return v
	}
	return Interval{min(v.Lo, w.Lo), max(v.Hi, w.Hi)}
}

// Add is {x + y}.
func (v Interval) Add(w Interval) Interval {
	return Interval{
		SatAdd(v.Lo, w.Lo),
		SatAdd(v.Hi, w.Hi),
	}
}

// AddConst is {x + c}.
func (v Interval) AddConst(c int64) Interval {
	return Interval{SatAdd(v.Lo, c), SatAdd(v.Hi, c)}
}

// Neg is {−x}.
func (v Interval) Neg() Interval {
	return Interval{satNeg(v.Hi), satNeg(v.Lo)}
}

// Scale is {k·x}, as an interval.
func (v Interval) Scale(k int64) Interval {
	switch {
	case k == 0:
		return Interval{}
	case k < 0:
		return Interval{SatMul(v.Hi, k), SatMul(v.Lo, k)}
	}
	return Interval{SatMul(v.Lo, k), SatMul(v.Hi, k)}
}

// Mul is the hull of {x·y}: the least and greatest of the four corner products,
// because x·y is monotone in each factor while the other stays.
func (v Interval) Mul(w Interval) Interval {
	a := SatMul(v.Lo, w.Lo)
	b := SatMul(v.Lo, w.Hi)
	c := SatMul(v.Hi, w.Lo)
	d := SatMul(v.Hi, w.Hi)
	return Interval{min(a, b, c, d), max(a, b, c, d)}
}

// Div is {⌊x/m⌋} for m ≠ 0.
func (v Interval) Div(m int64) Interval {
	if m < 0 {
		v = v.Neg()
		m = satNeg(m)
	}
	return Interval{satDiv(v.Lo, m), satDiv(v.Hi, m)}
}

// divBy is the hull of {⌊x/y⌋} for w.Lo > 0: each end of v over the divisor
// that moves it furthest.
func (v Interval) divBy(w Interval) Interval {
	lo, hi := w.Lo, w.Lo
	if v.Lo > 0 {
		lo = w.Hi
	}
	if v.Hi < 0 {
		hi = w.Hi
	}
	return Interval{satDiv(v.Lo, lo), satDiv(v.Hi, hi)}
}

// Min is {min(x, y)} as an interval.
func (v Interval) Min(w Interval) Interval {
	return Interval{min(v.Lo, w.Lo), min(v.Hi, w.Hi)}
}

// Max is {max(x, y)} as an interval.
func (v Interval) Max(w Interval) Interval {
	return Interval{max(v.Lo, w.Lo), max(v.Hi, w.Hi)}
}

// String prints v as "[lo, hi]", with -inf and inf for unknown ends.
func (v Interval) String() string {
	return "[" + endText(v.Lo) + ", " + endText(v.Hi) + "]"
}

// endText prints one end of an interval.
func endText(x int64) string {
	switch x {
	case minusInf:
		return "-inf"
	case plusInf:
		return "inf"
	}
	return fmt.Sprint(x)
}

// unscale is {x : k·x ∈ v} for k > 0: the ends rounded inwards.
func (v Interval) unscale(k int64) Interval {
	return Interval{
		satCeilDiv(v.Lo, k), satDiv(v.Hi, k),
	}
}

// infinite reports whether x stands for no bound.
func infinite(x int64) bool { return x == minusInf || x == plusInf }

// satNeg is −x.
func satNeg(x int64) int64 {
	switch x {
	case minusInf:
		return plusInf
	case plusInf:
		return minusInf
	}
	return -x
}

// SatAdd is x + y, saturating at the ends of int64. An infinite end stays.
// Opposite infinities do not meet, because low ends are only added to low ends.
func SatAdd(x, y int64) int64 {
	switch {
	case infinite(x):
		return x
	case infinite(y):
		return y
	}
	if s, ok := addInt(x, y); ok {
		return s
	}
	return infinity(x > 0)
}

// SatMul is x·y, saturating at the ends of int64; 0 times anything is 0.
func SatMul(x, y int64) int64 {
	if x == 0 || y == 0 {
		return 0
	}
	if !infinite(x) && !infinite(y) {
		if p, ok := mulInt(x, y); ok {
			return p
		}
	}
	return infinity((x > 0) == (y > 0))
}

// satDiv is ⌊x/m⌋ for m ≠ 0.
func satDiv(x, m int64) int64 {
	if infinite(x) {
		return x
	}
	return FloorDiv(x, m)
}

// satCeilDiv is ⌈x/m⌉ for m ≠ 0.
func satCeilDiv(x, m int64) int64 {
	return satNeg(satDiv(satNeg(x), m))
}

// infinity is the end of an interval that has no bound above, or below.
func infinity(positive bool) int64 {
	if positive {
		return plusInf
	}
	return minusInf
}
