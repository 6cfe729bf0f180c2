package reference

import "math"

// A pair is the sum of two numbers, of which lo is at most about half a unit in the last
// place of hi, so that it has about 106 bits (Dekker, A floating-point technique for
// extending the available precision, 1971).
type pair struct{ hi, lo float64 }

var (
	ln2Pair = pair{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56}
	halfPi  = pair{0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54}
)

// fastSum is x + y for |x| ≥ |y|.
func fastSum(x, y float64) pair {
	s := x + y
	return pair{s, y - (s - x)}
}

// twoSum is x + y (Knuth).
func twoSum(x, y float64) pair {
	s := x + y
	t := s - x
	return pair{s, (x - (s - t)) + (y - t)}
}

// add is a + b.
func (a pair) add(b pair) pair {
	s, t := twoSum(a.hi, b.hi), twoSum(a.lo, b.lo)
	s = fastSum(s.hi, s.lo+t.hi)
	return fastSum(s.hi, s.lo+t.lo)
}

// times is a·b.
func (a pair) times(b pair) pair {
	p := a.hi * b.hi
	return fastSum(p, math.FMA(a.hi, b.hi, -p)+(a.hi*b.lo+a.lo*b.hi))
}

// over is a/b.
func (a pair) over(b pair) pair {
	q := a.hi / b.hi
	rest := a.add(b.times(pair{-q, 0}))
	return fastSum(q, rest.hi/b.hi)
}

// logarithmPair is the logarithm of a positive number: e·ln 2 + 2·atanh(s) for
// s = f/(2 + f) and x = 2^e·(1 + f), by the series of atanh.
func logarithmPair(x float64) pair {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	s := pair{m - 1, 0}.over(twoSum(m, 1))
	z := s.times(s)
	// The term z^k/(2k+1) is below 2⁻⁸⁰ of the first for k > 15.
	sum := pair{1.0 / 33, 0}
	for k := 31.0; k >= 1; k -= 2 {
		sum = sum.times(z).add(pair{1, 0}.over(pair{k, 0}))
	}
	sum = sum.times(pair{2 * s.hi, 2 * s.lo})
	return ln2Pair.times(pair{float64(e), 0}).add(sum)
}
