package portable

import (
	"math"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// Exponentials of f32 are computed in float64 by table and polynomial:
// e^x = 2^(k/32) · e^r with k = round(32·x/ln 2), |r| ≤ ln 2/64. The Taylor
// polynomial of degree 4 leaves r⁵/120 < 1.3e-12, so that results are the
// correctly rounded ones but in about one of 10⁵ cases, in which they are the
// other neighbour: at most 0.51 units in the last place.

const (
	expSteps = 32
	expInv   = expSteps / math.Ln2
	expStep  = math.Ln2 / expSteps
	// Adding roundMagic rounds to a whole number, which is in the low bits.
	roundMagic = 0x1.8p52
	// Beyond expLimit, e^x is 0 or infinite in f32, and e^-x too.
	expLimit = 110
)

// expTable is 2^(k/32).
var expTable = func() (t [expSteps]float64) {
	for k := range t {
		t[k] = math.Exp2(float64(k) / expSteps)
	}
	return t
}()

// ExpLoops are loops for f32 that are faster than package math, which computes
// in f64.
var ExpLoops = map[hlo.Opcode]Unary[float32, float32]{
	hlo.OpExponential: exponentials,
	hlo.OpTanh:        tanhs,
	hlo.OpLogistic:    logistics,
}

// exponentials are e^x. x is limited to ±expLimit, which changes no result.
// Adding roundMagic to 32·x/ln 2 rounds it to the whole number k, in the low
// bits of the sum; k mod 32 indexes the table, and k/32 goes to the exponent.
func exponentials(dst, x []float32) {
	x = x[:len(dst)]
	for i := range dst {
		v := float64(x[i])
		if v > expLimit {
			v = expLimit
		} else if v < -expLimit {
			v = -expLimit
		}
		n := float64(v*expInv) + roundMagic
		k := math.Float64bits(n)
		r := v - (n-roundMagic)*expStep
		p := expTable[k%expSteps] *
			math.Float64frombits((k/expSteps+1023)<<52)
		q := r * r
		dst[i] = float32(p + p*(r+q*
			(0.5+r*(1.0/6))+q*q*(1.0/24)))
	}
}

// logistics are 1/(1+e^-x).
func logistics(dst, x []float32) {
	x = x[:len(dst)]
	for i := range dst {
		v := -float64(x[i])
		if v > expLimit {
			v = expLimit
		} else if v < -expLimit {
			v = -expLimit
		}
		n := float64(v*expInv) + roundMagic
		k := math.Float64bits(n)
		r := v - (n-roundMagic)*expStep
		p := expTable[k%expSteps] *
			math.Float64frombits((k/expSteps+1023)<<52)
		q := r * r
		dst[i] = float32(1 / (1 + (p + p*
			(r+q*(0.5+r*(1.0/6))+q*
				q*(1.0/24)))))
	}
}

// tanhs are 1 − 2/(e^2x+1), and near 0, where that cancels, the Taylor
// polynomial x − x³/3 + 2x⁵/15 − 17x⁷/315.
func tanhs(dst, x []float32) {
	x = x[:len(dst)]
	for i := range dst {
		v := 2 * float64(x[i])
		if v > 50 {
			v = 50
		} else if v < -50 {
			v = -50
		}
		if v > -1.0/32 && v < 1.0/32 {
			v /= 2
			q := v * v
			dst[i] = float32(v + v*q*(-1.0/3+
				q*(2.0/15-q*(17.0/315))))
			continue
		}
		n := float64(v*expInv) + roundMagic
		k := math.Float64bits(n)
		r := v - (n-roundMagic)*expStep
		p := expTable[k%expSteps] *
			math.Float64frombits((k/expSteps+1023)<<52)
		q := r * r
		dst[i] = float32(1 - 2/(1+(p+p*
			(r+q*(0.5+r*(1.0/6))+q*
				q*(1.0/24)))))
	}
}
