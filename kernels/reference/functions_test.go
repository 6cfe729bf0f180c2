package reference

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// Functions of numbers of wide bits, by series whose terms are added until they vanish:
// slow, and of nothing that the functions of this package are made of.

const wide = 1200

func number(x float64) *big.Float { return new(big.Float).SetPrec(wide).SetFloat64(x) }

func plus(x, y *big.Float) *big.Float  { return new(big.Float).SetPrec(x.Prec()).Add(x, y) }
func minus(x, y *big.Float) *big.Float { return new(big.Float).SetPrec(x.Prec()).Sub(x, y) }
func times(x, y *big.Float) *big.Float { return new(big.Float).SetPrec(x.Prec()).Mul(x, y) }
func over(x, y *big.Float) *big.Float  { return new(big.Float).SetPrec(x.Prec()).Quo(x, y) }
func root(x *big.Float) *big.Float     { return new(big.Float).SetPrec(x.Prec()).Sqrt(x) }
func scaled(x *big.Float, n int) *big.Float {
	return new(big.Float).SetPrec(x.Prec()).SetMantExp(x, n)
}
func small(x *big.Float, n int64) *big.Float {
	return new(big.Float).SetPrec(x.Prec()).SetInt64(n)
}

// series is first·(1 + r(1) + r(1)·r(2) + …).
func series(first *big.Float, r func(k int64) *big.Float) *big.Float {
	sum, term := first, first
	for k := int64(1); term.Sign() != 0 && term.MantExp(nil) > sum.MantExp(nil)-int(sum.Prec()); k++ {
		term = times(term, r(k))
		sum = plus(sum, term)
	}
	return sum
}

// bigAtan halves the angle ten times.
func bigAtan(t *big.Float) *big.Float {
	one := small(t, 1)
	for range 10 {
		t = over(t, plus(one, root(plus(one, times(t, t)))))
	}
	z := times(t, t)
	term, sum := t, t
	for k := int64(3); term.Sign() != 0 && term.MantExp(nil) > sum.MantExp(nil)-int(sum.Prec()); k += 2 {
		term = times(term, new(big.Float).Neg(z))
		sum = plus(sum, over(term, small(t, k)))
	}
	return scaled(sum, 10)
}

var (
	bigPi  = scaled(bigAtan(new(big.Float).SetPrec(1500).SetInt64(1)), 2)
	bigLn2 = plus(times(small(number(0), 4), bigAtanh(1, 6)), times(small(number(0), 2), bigAtanh(1, 99)))
)

func bigPiWide() *big.Float { return new(big.Float).SetPrec(wide).Set(bigPi) }

// bigAtanh is artanh(p/q); ln 2 is 4·artanh(1/6) + 2·artanh(1/99).
func bigAtanh(p, q int64) *big.Float {
	t := over(small(number(0), p), small(number(0), q))
	z := times(t, t)
	term, sum := t, t
	for k := int64(3); term.MantExp(nil) > -wide-8; k += 2 {
		term = times(term, z)
		sum = plus(sum, over(term, small(t, k)))
	}
	return sum
}

func bigExp(x *big.Float) *big.Float {
	n, _ := over(x, bigLn2).Int64()
	r := scaled(minus(x, times(bigLn2, small(x, n))), -16)
	y := series(small(x, 1), func(k int64) *big.Float { return over(r, small(x, k)) })
	for range 16 {
		y = times(y, y)
	}
	return scaled(y, int(n))
}

// bigLog improves an approximation by Halley's method.
func bigLog(x *big.Float) *big.Float {
	m := new(big.Float).SetPrec(x.Prec())
	e := x.MantExp(m)
	near, _ := m.Float64()
	y := small(x, 0).SetFloat64(math.Log(near))
	for range 4 {
		p := bigExp(y)
		y = plus(y, scaled(over(minus(m, p), plus(m, p)), 1))
	}
	return plus(y, times(bigLn2, small(x, int64(e))))
}

// bigTurn is sin(x + n·π/2).
func bigTurn(x float64, n int64) *big.Float {
	a := new(big.Float).SetPrec(1500).SetFloat64(x)
	quarter := scaled(bigPi, -1)
	q, _ := plus(over(a, quarter), new(big.Float).SetFloat64(math.Copysign(0.5, x))).Int(nil)
	r := minus(a, times(quarter, new(big.Float).SetPrec(1500).SetInt(q)))
	r.SetPrec(wide)
	n = (n + new(big.Int).And(q, big.NewInt(3)).Int64()) & 3
	z := new(big.Float).Neg(times(r, r))
	odd := n & 1
	first := r
	if odd == 1 {
		first = number(1)
	}
	y := series(first, func(k int64) *big.Float {
		return over(z, small(r, (2*k-odd)*(2*k+1-odd)))
	})
	if n&2 == 2 {
		y = new(big.Float).Neg(y)
	}
	return y
}

// bigErf is the series 2/√π·e^(−x²)·Σ (2x²)ⁿ·x/(2n+1)!!, and ±1 beyond 32.
func bigErf(x *big.Float) *big.Float {
	if x.MantExp(nil) > 5 {
		return small(x, int64(x.Sign()))
	}
	z := times(x, x)
	sum := series(x, func(k int64) *big.Float { return over(scaled(z, 1), small(x, 2*k+1)) })
	return over(times(scaled(bigExp(new(big.Float).Neg(z)), 1), sum), root(bigPiWide()))
}

func bigSinh(x *big.Float) *big.Float {
	y := bigExp(x)
	return scaled(minus(y, over(number(1), y)), -1)
}

func bigCosh(x *big.Float) *big.Float {
	y := bigExp(x)
	return scaled(plus(y, over(number(1), y)), -1)
}

// bigAsinh takes |x|, so that nothing cancels, and its sign.
func bigAsinh(x *big.Float) *big.Float {
	y := new(big.Float).Abs(x)
	y = bigLog(plus(y, root(plus(times(y, y), number(1)))))
	if x.Sign() < 0 {
		y.Neg(y)
	}
	return y
}

// bigAngle is the angle of the vector (x, y), y ≥ 0.
func bigAngle(y, x *big.Float) *big.Float {
	pi := bigPiWide()
	if x.Sign() == 0 {
		return scaled(pi, -1)
	}
	a := bigAtan(over(y, new(big.Float).Abs(x)))
	if x.Sign() < 0 {
		return minus(pi, a)
	}
	return a
}

// bigUnary are the functions of finite numbers, inside of their domains.
var bigUnary = map[hlo.Opcode]func(x float64) *big.Float{
	hlo.OpSine:        func(x float64) *big.Float { return bigTurn(x, 0) },
	hlo.OpCosine:      func(x float64) *big.Float { return bigTurn(x, 1) },
	hlo.OpTan:         func(x float64) *big.Float { return over(bigTurn(x, 0), bigTurn(x, 1)) },
	hlo.OpExponential: func(x float64) *big.Float { return bigExp(number(x)) },
	hlo.OpExponentialMinusOne: func(x float64) *big.Float {
		return minus(bigExp(number(x)), number(1))
	},
	hlo.OpLog:        func(x float64) *big.Float { return bigLog(number(x)) },
	hlo.OpLogPlusOne: func(x float64) *big.Float { return bigLog(plus(number(x), number(1))) },
	hlo.OpLogistic: func(x float64) *big.Float {
		return over(number(1), plus(number(1), bigExp(number(-x))))
	},
	hlo.OpTanh:  func(x float64) *big.Float { return over(bigSinh(number(x)), bigCosh(number(x))) },
	hlo.OpSinh:  func(x float64) *big.Float { return bigSinh(number(x)) },
	hlo.OpCosh:  func(x float64) *big.Float { return bigCosh(number(x)) },
	hlo.OpAsinh: func(x float64) *big.Float { return bigAsinh(number(x)) },
	hlo.OpAcosh: func(x float64) *big.Float {
		y := number(x)
		return bigLog(plus(y, root(minus(times(y, y), number(1)))))
	},
	hlo.OpAtanh: func(x float64) *big.Float {
		one := number(1)
		return scaled(bigLog(over(plus(one, number(x)), minus(one, number(x)))), -1)
	},
	hlo.OpAsin: func(x float64) *big.Float {
		y := number(x)
		return minus(scaled(bigPiWide(), -1), bigAngle(root(minus(number(1), times(y, y))), y))
	},
	hlo.OpAcos: func(x float64) *big.Float {
		y := number(x)
		return bigAngle(root(minus(number(1), times(y, y))), y)
	},
	hlo.OpErf: func(x float64) *big.Float { return bigErf(number(x)) },
	hlo.OpErfInv: func(x float64) *big.Float { // one step of Newton's method
		y := number(math.Erfinv(x))
		slope := times(scaled(root(bigPiWide()), -1), bigExp(times(y, y)))
		return plus(y, times(minus(number(x), bigErf(y)), slope))
	},
	hlo.OpCbrt: func(x float64) *big.Float {
		y, a := number(math.Cbrt(x)), number(x)
		for range 3 {
			y = over(plus(scaled(y, 1), over(a, times(y, y))), number(3))
		}
		return y
	},
	hlo.OpRsqrt: func(x float64) *big.Float { return over(number(1), root(number(x))) },
	hlo.OpSqrt:  func(x float64) *big.Float { return root(number(x)) },
}

// unitsOff is the distance of got from want in units in the last place of float64.
func unitsOff(got float64, want *big.Float) float64 {
	near, _ := want.Float64()
	if math.IsInf(near, 0) || math.IsInf(got, 0) {
		if near == got {
			return 0
		}
		return math.Inf(1)
	}
	_, e := math.Frexp(near)
	off, _ := minus(want, number(got)).Float64()
	return math.Abs(math.Ldexp(off, -max(e-53, -1074)))
}

// functionInputs are numbers of all magnitudes inside of the domain of a function, those
// next to its ends, and where there are angles the closest to multiples of π/2.
func functionInputs(op hlo.Opcode, n int) []float64 {
	rng := rand.New(rand.NewPCG(7, 1))
	all := []float64{
		5e-324, 0x1p-1022, 0x1.fffffffffffffp-1023, 0x1.fffffffffffffp1023, 1, 0.5, 2, 1e-9,
		math.Pi / 2, math.Pi, 3 * math.Pi / 2, 355, 6381956970095103 * 0x1p797, 0x1.6ac5b262ca1ffp849,
		709.9, 710.47, 710.4758600739439, 745, 0.35, 0.3466, 1 - 0x1p-53, 1 + 0x1p-52, 1 - 1e-9,
		1 + 1e-9, 709.78, 22, 5.9, 0x1p31, 0x1p31 - 1, 0x1p500, 0x1.6a09e667f3bcdp-1,
	}
	for len(all) < n {
		x := math.Float64frombits(rng.Uint64() >> 1)
		if len(all)%2 == 0 {
			x = math.Exp2(rng.Float64()*40-30) * (1 + rng.Float64())
		}
		all = append(all, x)
	}
	var inside []float64
	for _, x := range all {
		for _, x := range []float64{x, -x} {
			y := floatUnary[op](x)
			beyond := y-y != 0 || y == 0 || y == 1 || y == -1 // perhaps rightly
			if y == y && math.Abs(x) != 1 && !(beyond && math.Abs(x) > 800) {
				inside = append(inside, x)
			}
		}
	}
	return inside
}

// functionBounds are the units in the last place that functions may be off by; 1.25
// where nothing is said.
var functionBounds = map[hlo.Opcode]float64{
	hlo.OpTan: 2.5, hlo.OpTanh: 2, hlo.OpSinh: 2, hlo.OpCosh: 2, hlo.OpAsinh: 2, hlo.OpAcosh: 2, hlo.OpAtanh: 2,
	hlo.OpAsin: 2, hlo.OpAcos: 2, hlo.OpLogistic: 2, hlo.OpErfInv: 4, hlo.OpPower: 2, hlo.OpAtan2: 2,
	hlo.OpRsqrt: 1.5,
}

// Functions are within a few units in the last place of sums of series.
func TestFunctions(t *testing.T) {
	for op, f := range bigUnary {
		worst, at := 0.0, 0.0
		for _, x := range functionInputs(op, 150) {
			if off := unitsOff(floatUnary[op](x), f(x)); !(off <= worst) {
				worst, at = off, x
			}
		}
		t.Logf("%s: %.2f units at %v", op, worst, at)
		if !(worst <= max(1.25, functionBounds[op])) {
			t.Errorf("%s(%v) = %v is off by %.2f units", op, at, floatUnary[op](at), worst)
		}
	}
}

// Powers and angles of random numbers, among them powers next to overflow and 1.
func TestBinaryFunctions(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 2))
	for range 200 {
		x := math.Exp(math.Ldexp(rng.Float64()-0.5, rng.IntN(40)-28))
		y := math.Ldexp(rng.Float64()-0.5, rng.IntN(60)-20)
		if rng.IntN(2) == 0 {
			y = math.RoundToEven(700 / math.Log(x) * rng.Float64())
		}
		if got := power(x, y); got-got == 0 && got != 0 && got != 1 {
			if off := unitsOff(got, bigExp(times(number(y), bigLog(number(x))))); !(off <= 2) {
				t.Errorf("%v to the power of %v is off by %.2f units", x, y, off)
			}
		}
		a, b := math.Float64frombits(rng.Uint64()>>1), math.Float64frombits(rng.Uint64())
		if rng.IntN(2) == 0 {
			a, b = rng.ExpFloat64(), rng.NormFloat64()
		}
		if got := atan2(a, b); got-got == 0 && got != 0 {
			if off := unitsOff(got, bigAngle(number(a), number(b))); !(off <= 2) {
				t.Errorf("the angle of %v and %v is off by %.2f units", a, b, off)
			}
		}
	}
	for _, c := range [][3]float64{
		{-1e-300, -1e300, -math.Pi}, {1e-300, -1e300, math.Pi},
		{math.Copysign(0, -1), -1, -math.Pi}, {math.Copysign(0, -1), 1, math.Copysign(0, -1)},
	} {
		if got := atan2(c[0], c[1]); got != c[2] || math.Signbit(got) != math.Signbit(c[2]) {
			t.Errorf("atan2(%v, %v) = %v, want %v", c[0], c[1], got, c[2])
		}
	}
}
