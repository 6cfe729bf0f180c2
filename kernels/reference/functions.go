package reference

import (
	"math"
	"math/bits"
)

// Functions of float64 where package math's are off by more than two units in the last
// place: sine, cosine and tangent of large angles and next to multiples of π/2,
// tangents of small ones, logarithms of denormal numbers (on amd64), exponentials, sinh and
// cosh next to overflow, asin and acos next to ±1, atan2 of quotients that underflow, and powers,
// whose error grows with the exponent in math.Pow. TestFunctions compares all functions
// with sums of series of hundreds of bits.

// twoOverPi are 1152 bits of 2/π behind 128 zeros.
var twoOverPi = [20]uint64{
	0, 0, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0,
	0xdb6295993c439041, 0xfe5163abdebbc561,
	0xb7246e3a424dd2e0, 0x06492eea09d1921c,
	0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
	0xe99c7026b45f7e41, 0x3991d639835339f4,
	0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
	0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7,
	0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
	0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08,
}

// quadrant reduces a finite angle with |x| ≥ ½ to r = x − n·π/2 with |r| ≤ π/4, to 64
// bits or more also where x is next to a multiple of π/2 (Payne and Hanek, Radian
// reduction for trigonometric functions, 1983): x is M·2^(e−63) for an M of 64 bits,
// bits of 2/π whose product with it is a multiple of 4 are left out, and of the product
// with the 192 bits that follow, two are n and the others a fraction.
func quadrant(x float64) (r pair, n int) {
	b := math.Float64bits(x)
	m := (b | 1<<52) << 11
	at := int(b>>52&0x7ff) - 1023 + 63
	var q [3]uint64
	for k := range q {
		w := twoOverPi[at/64+k:]
		q[k] = w[0]<<(at%64) | w[1]>>(64-at%64)
	}
	low, _ := bits.Mul64(m, q[2])
	high, middle := bits.Mul64(m, q[1])
	middle, carry := bits.Add64(middle, low, 0)
	high += m*q[0] + carry
	n = int(high >> 62)
	high, middle = high<<2|middle>>62, middle<<2
	negative := high>>63 == 1
	if negative {
		n++
		high, middle = ^high, ^middle
	}
	r = fraction(high, middle).times(halfPi)
	if negative != math.Signbit(x) {
		r = pair{-r.hi, -r.lo}
	}
	if math.Signbit(x) {
		n = -n
	}
	return r, n
}

// fraction is a binary fraction of 128 bits.
func fraction(high, low uint64) pair {
	zeros := bits.LeadingZeros64(high)
	high = high<<zeros | low>>(64-zeros)
	low <<= zeros
	return pair{
		math.Ldexp(float64(high>>11), -53-zeros),
		math.Ldexp(float64(high<<53|low>>11), -117-zeros),
	}
}

// turn is sin(r + n·π/2).
func turn(r pair, n int) float64 {
	s, c := math.Sin(r.hi), math.Cos(r.hi)
	v := s + r.lo*c
	if n&1 == 1 {
		v = c - r.lo*s
	}
	if n&2 == 2 {
		return -v
	}
	return v
}

// plainAngle reports whether package math's sine and cosine are right.
func plainAngle(x float64) bool { return !(math.Abs(x) >= 0.5) || math.IsInf(x, 0) }

func sine(x float64) float64 {
	if plainAngle(x) {
		return math.Sin(x)
	}
	r, n := quadrant(x)
	return turn(r, n)
}

func cosine(x float64) float64 {
	if plainAngle(x) {
		return math.Cos(x)
	}
	r, n := quadrant(x)
	return turn(r, n+1)
}

// tangent is a quotient: math.Tan leaves x³/3 out up to x = 10⁻⁷.
func tangent(x float64) float64 {
	if plainAngle(x) {
		return math.Sin(x) / math.Cos(x)
	}
	r, n := quadrant(x)
	return turn(r, n) / turn(r, n+1)
}

// logarithm is math.Log, which takes denormal numbers for normal ones on amd64.
func logarithm(x float64) float64 {
	if x > 0 && x < 0x1p-1022 {
		return math.FMA(-54, math.Ln2, math.Log(x*0x1p54))
	}
	return math.Log(x)
}

// large is below the arguments for which math.Exp, on amd64, math.Sinh and math.Cosh
// are infinite too soon.
const large = 700

// exp is math.Exp, which overflows between 709 and 709.78.
func exp(x float64) float64 {
	if !(x > large) {
		return math.Exp(x)
	}
	return 2 * halfExp(x)
}

// halfExp is e^x/2 for large x: 2⁶³·e^(x − 64·ln 2).
func halfExp(x float64) float64 {
	r := pair{min(x, 2*large), 0}.add(pair{-64 * ln2Pair.hi, -64 * ln2Pair.lo})
	e := math.Exp(r.hi)
	if math.IsInf(e, 1) {
		return e
	}
	return (e + e*r.lo) * 0x1p63
}

func sinh(x float64) float64 {
	if !(math.Abs(x) > large) {
		return math.Sinh(x)
	}
	return math.Copysign(halfExp(math.Abs(x)), x)
}

func cosh(x float64) float64 {
	if !(math.Abs(x) > large) {
		return math.Cosh(x)
	}
	return halfExp(math.Abs(x))
}

// asin is the angle of (√(1−x²), x), which is exact next to ±1.
func asin(x float64) float64 {
	return math.Atan2(x, math.Sqrt((1-x)*(1+x)))
}

// acos is the angle of (x, √(1−x²)).
func acos(x float64) float64 {
	return math.Atan2(math.Sqrt((1-x)*(1+x)), x)
}

// atan2 is math.Atan2, which has the wrong sign where y/x underflows and x < 0.
func atan2(y, x float64) float64 {
	if x < 0 && y/x == 0 {
		return math.Copysign(math.Pi, y)
	}
	return math.Atan2(y, x)
}

// power is math.Pow for special cases, and e^(y·ln|x|) computed in pairs for others.
func power(x, y float64) float64 {
	special := x == 0 || x == 1 || x-x != 0 || y == 0 || y-y != 0
	if special || x < 0 && y != math.Trunc(y) {
		return math.Pow(x, y)
	}
	v := exponential(logarithmPair(math.Abs(x)), y)
	if x < 0 && math.Mod(y, 2) != 0 {
		return -v
	}
	return v
}

// exponential is e^(t·y).
func exponential(t pair, y float64) float64 {
	switch v := t.hi * y; {
	case v > 800:
		return math.Inf(1)
	case v < -800:
		return 0
	}
	t = t.times(pair{y, 0})
	n := math.RoundToEven(t.hi / math.Ln2)
	t = t.add(ln2Pair.times(pair{-n, 0}))
	e := math.Exp(t.hi)
	return math.Ldexp(e+e*t.lo, int(n))
}
