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

// addInt is x + y, with ok false when that is not an int64.
func addInt(x, y int64) (sum int64, ok bool) {
	s := x + y
	return s, (x^s)&(y^s) >= 0
}

// mulInt is x·y, with ok false when that is not an int64 or is math.MinInt64.
func mulInt(x, y int64) (product int64, ok bool) {
	if int64(int32(x)) == x && int64(int32(y)) == y {
		return x * y, true
	}
	hi, lo := bits.Mul64(absInt(x), absInt(y))
	return x * y, hi == 0 && lo <= math.MaxInt64
}

// absInt is |x|, which for math.MinInt64 is no int64.
func absInt(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

// FloorDiv is ⌊x/m⌋ for m ≠ 0.
func FloorDiv(x, m int64) int64 {
	q := x / m
	if q*m != x && (x < 0) != (m < 0) {
		q--
	}
	return q
}

// floorMod is x − m·⌊x/m⌋, in [0, m) for m > 0.
func floorMod(x, m int64) int64 { return x - m*FloorDiv(x, m) }

// GCD is the greatest common divisor of x and y, by Euclid's algorithm. It is not
// negative; GCD(0, x) = |x|.
func GCD(x, y int64) int64 {
	a := absInt(x)
	b := absInt(y)
	for b > 1 {
		a, b = b, a%b
	}
	if b == 1 {
		return 1
	}
	return int64(a)
}

// extendedGCD returns g = gcd(a, b) = a·u + b·v for a, b > 0.
func extendedGCD(a, b int64) (g, u, v int64) {
	u, v = 1, 0
	for s, t := int64(0), int64(1); b != 0; {
		q := a / b
		a, b = b, a-q*b
		u, s = s, u-q*s
		v, t = t, v-q*t
	}
	return a, u, v
}

// chineseRemainder solves x ≡ r (mod m), x ≡ s (mod n): x ≡ q (mod l) with l the
// least common multiple of m and n. l = 0 when there is no such x, that is, when
// r and s differ modulo gcd(m, n). known is false when l is not an int64.
func chineseRemainder(m, r, n, s int64) (l, q int64, known bool) {
	g, u, _ := extendedGCD(m, n)
	if (s-r)%g != 0 {
		return 0, 0, true
	}
	l, ok := mulInt(m/g, n)
	if !ok {
		return 0, 0, false
	}
	// x = r + m·t with m·t ≡ s − r (mod n): t ≡ u·(s − r)/g (mod n/g)
	step := floorMod((s-r)/g, n/g)
	t, ok1 := mulInt(floorMod(u, n/g), step)
	mt, ok2 := mulInt(m, floorMod(t, n/g))
	return l, floorMod(r+mt, l), ok1 && ok2
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

// Number is what positions in an array are computed with, so that one formula
// serves numbers (Int) and symbolic expressions (Expr). Div is the floor of the
// quotient and Mod the remainder in [0, m), for m > 0.
type Number[T any] interface {
	Add(T) T
	Scale(int64) T
	Div(int64) T
	Mod(int64) T
}

// Int is an int64 ≥ 0 that computes as an expression does.
type Int int64

// Add is x + y.
func (x Int) Add(y Int) Int { return x + y }

// Scale is k·x.
func (x Int) Scale(k int64) Int { return x * Int(k) }

// Div is ⌊x/m⌋.
func (x Int) Div(m int64) Int { return x / Int(m) }

// Mod is x mod m.
func (x Int) Mod(m int64) Int { return x % Int(m) }

// Linearize is the row-major position of an index, which is not empty, in an
// array: Σ index[i]·(product of the extents after i).
func Linearize[T Number[T]](index []T, extents []int64) T {
	x := index[0]
	for i := 1; i < len(index); i++ {
		x = x.Scale(extents[i]).Add(index[i])
	}
	return x
}

// Delinearize is the inverse of Linearize: the index at row-major position x of
// an array of at least one dimension. The first component is not reduced by its
// extent.
func Delinearize[T Number[T]](x T, extents []int64) []T {
	index := make([]T, len(extents))
	for i := len(extents) - 1; i > 0; i-- {
		index[i], x = x.Mod(extents[i]), x.Div(extents[i])
	}
	index[0] = x
	return index
}
