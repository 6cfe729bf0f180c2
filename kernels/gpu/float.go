package gpu

import (
	"math"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// Floating-point operations. Those of f32 that PTX does not have are computed
// in f32 to a few units in the last place, or in f64 and rounded; those of f64
// are polynomials. Types under f32 are computed as f32.

var floatBinary = map[hlo.Opcode]string{
	hlo.OpAdd:      "add.rn.",
	hlo.OpSubtract: "sub.rn.",
	hlo.OpMultiply: "mul.rn.",
	hlo.OpDivide:   "div.rn.",
}
var floatUnary = map[hlo.Opcode]string{
	hlo.OpNegate:           "neg.",
	hlo.OpAbs:              "abs.",
	hlo.OpSqrt:             "sqrt.rn.",
	hlo.OpFloor:            "cvt.rmi.",
	hlo.OpCeil:             "cvt.rpi.",
	hlo.OpRoundNearestEven: "cvt.rni.",
}

// float computes an operation on floats of type d; "" where there is no such
// operation. Operations that PTX has are one instruction; others of f32 are
// approximations in f32 (single) or are computed in f64 and rounded, and others of f64
// are the functions of double.
func (e *emitter) float(code hlo.Opcode, d hlo.DType, x []operand) operand {
	k := kindFor(d)
	s := suffix(d)
	if name, ok := floatBinary[code]; ok {
		return e.asm.get(k, name+s, x[0], x[1])
	}
	if name, ok := floatUnary[code]; ok {
		if name[:3] == "cvt" {
			s += "." + s
		}
		return e.asm.get(
			k, name+s, e.asm.in(k, x[0]),
		)
	}
	// The functions below use an operand several times, so immediates are moved to
	// registers.
	for i := range x {
		x[i] = e.asm.in(k, x[i])
	}
	switch code {
	case hlo.OpMaximum:
		return e.maximum(d, x[0], x[1])
	case hlo.OpMinimum:
		return e.minimum(d, x[0], x[1])
	case hlo.OpRemainder:
		return e.floatRemainder(k, x[0], x[1])
	case hlo.OpSign:
		return e.floatSign(k, x[0])
	case hlo.OpRoundNearestAfz:
		return e.roundAway(k, x[0])
	}
	m := floats{e, k, s}
	if k == kindF32 {
		if f, ok := single[code]; ok {
			return f(m, x[0])
		}
		return e.throughDouble(code, x)
	}
	if f, ok := double[code]; ok {
		return f(m, x[0])
	}
	if code == hlo.OpPower {
		return m.power(x[0], x[1])
	}
	if code == hlo.OpAtan2 {
		return m.atan2(x[0], x[1])
	}
	return ""
}

// throughDouble computes an operation on f32 in f64, and rounds the result.
func (e *emitter) throughDouble(code hlo.Opcode, x []operand) operand {
	wide := make([]operand, len(x))
	for i := range x {
		wide[i] = e.widen(
			kindF64, kindF32, x[i],
		)
	}
	if r := e.float(code, hlo.F64, wide); r != "" {
		return e.widen(kindF32, kindF64, r)
	}
	return ""
}

// floats emits floating-point instructions of one width.
type floats struct {
	e *emitter
	// K is the kind of register and s the type suffix of instructions.
	k kind
	s string
}

// c is a constant as an immediate.
func (m floats) c(v float64) operand {
	if m.k == kindF64 {
		return f64(v)
	}
	return f32(v)
}

// reg is a constant in a register.
func (m floats) reg(v float64) operand {
	return m.e.asm.in(m.k, m.c(v))
}

// op emits an instruction of the width.
func (m floats) op(name string, x ...any) operand {
	return m.e.asm.get(
		m.k, name+"."+m.s, x...,
	)
}

// add, sub, mul, div and fma round to nearest even.
func (m floats) add(x, y operand) operand {
	return m.op("add.rn", x, y)
}
func (m floats) sub(x, y operand) operand {
	return m.op("sub.rn", x, y)
}
func (m floats) mul(x, y operand) operand {
	return m.op("mul.rn", x, y)
}
func (m floats) div(x, y operand) operand {
	return m.op("div.rn", x, y)
}
func (m floats) fma(x, y, z operand) operand {
	return m.op("fma.rn", x, y, z)
}
func (m floats) neg(x operand) operand  { return m.op("neg", x) }
func (m floats) abs(x operand) operand  { return m.op("abs", x) }
func (m floats) sqrt(x operand) operand { return m.op("sqrt.rn", x) }

// pick is x where p holds and y elsewhere.
func (m floats) pick(p, x, y operand) operand {
	return m.op("selp", x, y, p)
}

// is compares two numbers; the result is a predicate.
func (m floats) is(test string, x, y operand) operand {
	return m.e.asm.get(
		kindPred, "setp."+test+"."+m.s, x, y,
	)
}

// round rounds to the nearest integer, halves to even.
func (m floats) round(x operand) operand {
	return m.op("cvt.rni."+m.s, x)
}

// sign is x ≥ 0 with the sign of y.
func (m floats) sign(x, y operand) operand {
	return m.pick(
		m.is("lt", y, m.c(0)),
		m.neg(x),
		x,
	)
}

// poly evaluates a polynomial in x by Horner's rule; the coefficients are highest
// first.
func (m floats) poly(x operand, coefficients ...float64) operand {
	p := m.reg(coefficients[0])
	for _, c := range coefficients[1:] {
		p = m.fma(p, x, m.c(c))
	}
	return p
}

// powerOfTwo is 2ⁿ for an integer n as two factors, so that neither overflows or is
// denormal.
func (m floats) powerOfTwo(n operand) (operand, operand) {
	a := m.e.asm
	i := a.get(kindB32, "cvt.rni.s32."+m.s, n)
	half := a.get(kindB32, "shr.s32", i, 1)
	return m.exponent(half),
		m.exponent(a.get(kindB32, "sub.s32", i, half))
}

// exponent is 2ⁱ as a float, for an integer register i.
func (m floats) exponent(i operand) operand {
	a := m.e.asm
	if m.k == kindF32 {
		return a.get(
			kindF32,
			"mov.b32",
			a.get(kindB32, "shl.b32", a.get(kindB32, "add.s32", i, 127), 23),
		)
	}
	high := a.get(
		kindB32, "shl.b32",
		a.get(kindB32, "add.s32", i, 1023), 20,
	)
	return a.get(kindF64, "mov.b64", []operand{
		a.in(kindB32, "0"), high,
	})
}

// bounded clamps x to [lo, hi] and keeps NaN.
func (m floats) bounded(x operand, lo, hi float64) operand {
	x = m.pick(
		m.is("gt", x, m.c(hi)),
		m.reg(hi),
		x,
	)
	return m.pick(
		m.is("lt", x, m.c(lo)),
		m.reg(lo),
		x,
	)
}

// single are operations computed in f32.
var single = map[hlo.Opcode]func(m floats, x operand) operand{
	hlo.OpExponential: floats.exp32,
	hlo.OpLog:         floats.log32,
	hlo.OpTanh:        floats.tanh32,
	hlo.OpLogistic:    floats.logistic32,
	hlo.OpErf:         floats.erf32,
	hlo.OpErfInv:      floats.erfInv32,
	hlo.OpRsqrt:       floats.rsqrt,
}

// exp32 is e^x = 2ⁿ·2^(r/ln 2) with n = round(x/ln 2) and |r| ≤ ln 2/2 found by
// Cody and Waite's two parts of ln 2; ex2.approx is good to 2 units.
func (m floats) exp32(x operand) operand {
	// Beyond these bounds the result is 0 or infinite.
	x = m.bounded(x, -106, 90)
	n := m.round(m.mul(x, m.c(math.Log2E)))
	// ln 2 is subtracted in two parts: n times the first is exact.
	r := m.fma(
		n, m.c(-0.693145751953125), x,
	)
	r = m.fma(
		n, m.c(-1.42860682030941723212e-6), r,
	)
	p := m.op(
		"ex2.approx",
		m.mul(r, m.c(math.Log2E)),
	)
	lo, hi := m.powerOfTwo(n)
	return m.mul(m.mul(p, lo), hi)
}

// log32 is e·ln 2 + 2·atanh(s), s = f/(2+f), for x = 2^e·(1+f), 1+f between
// √½ and √2. What is not positive and finite is left to lg2.approx.
func (m floats) log32(x operand) operand {
	a := m.e.asm
	// Denormal numbers are scaled by 2²³, which is subtracted from the exponent again.
	tiny := m.is("lt", x, m.c(0x1p-126))
	y := m.pick(
		tiny, m.mul(x, m.c(0x1p23)), x,
	)
	bits := a.get(kindB32, "mov.b32", y)
	// Subtracting the bits of √½ rounds the exponent such that 1+f is in [√½, √2).
	over := a.get(kindB32, "sub.s32", bits, 0x3f3504f3)
	exponent := a.get(
		kindB32, "and.b32", over, -1<<23,
	)
	f := m.sub(
		a.get(kindF32, "mov.b32", a.get(kindB32, "sub.s32", bits, exponent)),
		m.c(1),
	)
	e := a.get(
		kindF32, "cvt.rn.f32.s32",
		a.get(kindB32, "shr.s32", exponent, 23),
	)
	e = m.pick(tiny, m.add(e, m.c(-23)), e)
	s := m.div(f, m.add(f, m.c(2)))
	z := m.mul(s, s)
	q := m.mul(
		z,
		m.poly(z, 2.0/9, 2.0/7, 2.0/5, 2.0/3),
	)
	// 2·atanh(s) = f − s·(f − q), which does not round f twice
	r := m.fma(m.neg(s), m.sub(f, q), f)
	r = m.fma(e, m.c(math.Ln2), r)
	// Numbers ≤ 0, NaN and infinity have the results of the hardware's logarithm.
	special := a.or(
		m.is("leu", x, m.c(0)),
		m.is("equ", x, m.c(math.Inf(1))),
	)
	return m.pick(
		special, m.op("lg2.approx", x), r,
	)
}

// tanh32 is 1 − 2/(e^2|x| + 1) with the sign of x, and for |x| < 0.625 the
// polynomial of Cephes' tanhf.
func (m floats) tanh32(x operand) operand {
	y := m.abs(x)
	// For larger |x| the subtraction cancels nothing.
	big := m.sub(
		m.reg(1),
		m.div(m.reg(2), m.add(
			m.exp32(m.add(y, y)),
			m.c(1),
		)),
	)
	z := m.mul(x, x)
	p := m.poly(
		z, -5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1,
	)
	small := m.fma(m.mul(p, z), x, x)
	return m.pick(
		m.is("lt", y, m.c(0.625)),
		small,
		m.sign(big, x),
	)
}

// logistic32 is 1/(1 + e^−x).
func (m floats) logistic32(x operand) operand {
	return m.div(
		m.reg(1),
		m.add(m.exp32(m.neg(x)), m.c(1)),
	)
}

// erf32 is the rational minimax approximation of Eigen's generic erf for float.
func (m floats) erf32(x operand) operand {
	x = m.bounded(x, -4, 4)
	z := m.mul(x, x)
	p := m.poly(
		z, -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
		-7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02,
	)
	q := m.poly(
		z, -1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
		-1.42647390514189e-02,
	)
	return m.div(m.mul(x, p), q)
}

// rsqrt is 1/√x.
func (m floats) rsqrt(x operand) operand {
	return m.div(m.reg(1), m.sqrt(x))
}

// floatSign is −1, ±0, 1 or NaN.
func (e *emitter) floatSign(k kind, x operand) operand {
	m := floats{
		e,
		k,
		map[kind]string{kindF32: "f32", kindF64: "f64"}[k],
	}
	return m.pick(
		m.is("gt", x, m.c(0)),
		m.reg(1),
		m.pick(m.is(
			"lt", x, m.c(0),
		), m.reg(-1), x),
	)
}

// roundAway rounds halves away from zero: it truncates, and adds one where half or
// more was lost, which is exact.
func (e *emitter) roundAway(k kind, x operand) operand {
	m := floats{
		e,
		k,
		map[kind]string{kindF32: "f32", kindF64: "f64"}[k],
	}
	y := m.abs(x)
	t := m.op("cvt.rzi."+m.s, y)
	// The difference y − t is exact.
	t = m.pick(
		m.is("ge", m.sub(y, t), m.c(0.5)),
		m.add(t, m.c(1)),
		t,
	)
	return m.sign(t, x)
}

// remainderBits is how many bits of a quotient one step of floatRemainder takes:
// the quotient of a step is below 2⁵², so that it is off by one at most.
const remainderBits = 50

// floatRemainder is x − y·trunc(x/y), as C's fmod: |x| is reduced by multiples of
// |y|·2ˢ, s falling in steps of 50. Each step is exact: its result is a multiple of
// the last bit of |y|·2ˢ and not greater than that, which a fused multiply-add
// gives without rounding. Quotients of f32 need six steps (2²⁷⁷ at most); those
// of f64 are exact under 2⁵² (docs/limits.md).
func (e *emitter) floatRemainder(k kind, x, y operand) operand {
	m := floats{e, kindF64, "f64"}
	x = e.widen(kindF64, k, x)
	y = e.widen(kindF64, k, y)
	size := m.abs(y)
	r := m.abs(x)
	top := 0
	if k != kindF64 {
		top = 5
	}
	for step := top; step >= 0; step-- {
		by := size
		if step > 0 {
			by = m.mul(
				size,
				m.c(math.Ldexp(1, remainderBits*step)),
			)
		}
		q := m.op("cvt.rzi.f64", m.div(r, by))
		r = m.fma(m.neg(q), by, r)
		// The quotient was rounded up.
		over := m.is("lt", r, m.c(0))
		r = m.pick(over, m.add(r, by), r)
	}
	r = m.op("copysign", x, r)
	finite := e.asm.and(
		m.is("eq", size, m.c(math.Inf(1))),
		m.is("lt", m.abs(x), m.c(math.Inf(1))),
	)
	return e.widen(
		k, kindF64, m.pick(finite, x, r),
	)
}

// double are operations computed in f64, good to 10⁻¹⁴ or better.
var double = map[hlo.Opcode]func(m floats, x operand) operand{
	hlo.OpExponential: floats.exp, hlo.OpLog: floats.log,
	hlo.OpTanh: floats.tanh, hlo.OpLogistic: floats.logistic,
	hlo.OpRsqrt: floats.rsqrt,
	hlo.OpSine:  floats.sin, hlo.OpCosine: floats.cos,
	hlo.OpTan: func(m floats, x operand) operand {
		return m.div(m.sin(x), m.cos(x))
	},
	hlo.OpExponentialMinusOne: floats.expm1, hlo.OpLogPlusOne: floats.log1p,
	hlo.OpCbrt: floats.cbrt, hlo.OpErf: floats.erf,
	hlo.OpErfInv: floats.erfInv,
	hlo.OpSinh: func(m floats, x operand) operand {
		// sinh |x| = (y + y/(y+1))/2 for y = e^|x| − 1, which is infinite for infinite
		// y.
		y := m.expm1(m.abs(x))
		return m.sign(
			m.mul(m.mul(m.c(0.5), y), m.add(m.div(
				m.reg(1),
				m.add(y, m.c(1)),
			), m.c(1))),
			x,
		)
	},
	hlo.OpCosh: func(m floats, x operand) operand {
		y := m.exp(x)
		return m.mul(
			m.c(0.5),
			m.add(y, m.div(m.reg(1), y)),
		)
	},
	hlo.OpAsinh: func(m floats, x operand) operand {
		y := m.abs(x)
		z := m.mul(y, y)
		return m.sign(
			m.log1p(m.add(y, m.div(z, m.add(
				m.sqrt(m.add(z, m.c(1))),
				m.c(1),
			)))),
			x,
		)
	},
	hlo.OpAcosh: func(m floats, x operand) operand {
		return m.log(m.add(x, m.sqrt(m.mul(
			m.sub(x, m.c(1)),
			m.add(x, m.c(1)),
		))))
	},
	hlo.OpAtanh: func(m floats, x operand) operand {
		return m.mul(
			m.c(0.5),
			m.sub(m.log1p(x), m.log1p(m.neg(x))),
		)
	},
	hlo.OpAsin: func(m floats, x operand) operand {
		return m.atan2(
			x,
			m.sqrt(m.mul(m.sub(
				m.reg(1), x,
			), m.add(x, m.c(1)))),
		)
	},
	hlo.OpAcos: func(m floats, x operand) operand {
		return m.atan2(
			m.sqrt(m.mul(m.sub(
				m.reg(1), x,
			), m.add(x, m.c(1)))),
			x,
		)
	},
}

// exp is 2ⁿ·e^r, e^r by its Taylor polynomial of degree 13, |r| ≤ ln 2/2.
func (m floats) exp(x operand) operand {
	x = m.bounded(x, -760, 720)
	n := m.round(m.mul(x, m.c(math.Log2E)))
	r := m.fma(n, m.c(-ln2Hi), x)
	r = m.fma(n, m.c(-ln2Lo), r)
	taylor := make([]float64, 14)
	f := 1.0
	for k := range taylor {
		taylor[13-k] = 1 / f
		f *= float64(k + 1)
	}
	lo, hi := m.powerOfTwo(n)
	return m.mul(
		m.mul(m.poly(r, taylor...), lo), hi,
	)
}

// log is e·ln 2 + 2·atanh(s) as log32, with the series to s²¹.
func (m floats) log(x operand) operand {
	hi, lo := m.logParts(x)
	r := m.add(hi, lo)
	// Infinity, 0, and negative numbers or NaN are selected last.
	r = m.pick(
		m.is("equ", x, m.c(math.Inf(1))), x, r,
	)
	r = m.pick(
		m.is("eq", x, m.c(0)),
		m.reg(math.Inf(-1)),
		r,
	)
	return m.pick(
		m.is("ltu", x, m.c(0)),
		m.reg(math.NaN()),
		r,
	)
}

// logParts is the logarithm of a positive number in two parts: e times the first
// 33 bits of ln 2, which is exact, and the rest.
func (m floats) logParts(x operand) (hi, lo operand) {
	a := m.e.asm
	// Denormal numbers are scaled by 2⁵⁴.
	tiny := m.is("lt", x, m.c(0x1p-1022))
	y := m.pick(
		tiny, m.mul(x, m.c(0x1p54)), x,
	)
	bits := a.get(kindB64, "mov.b64", y)
	over := a.get(
		kindB64, "sub.s64", bits,
		a.in(kindB64, integer(int64(math.Float64bits(math.Sqrt2/2)))),
	)
	exponent := a.get(
		kindB64, "shl.b64",
		a.get(kindB64, "shr.s64", over, 52), 52,
	)
	f := m.sub(
		a.get(kindF64, "mov.b64", a.get(kindB64, "sub.s64", bits, exponent)),
		m.c(1),
	)
	e := a.get(
		kindF64, "cvt.rn.f64.s64",
		a.get(kindB64, "shr.s64", exponent, 52),
	)
	e = m.pick(tiny, m.add(e, m.c(-54)), e)
	// The series of 2·atanh(s) to s²¹ has an error below 10⁻¹⁶ for |s| ≤ 0.172.
	s := m.div(f, m.add(f, m.c(2)))
	z := m.mul(s, s)
	var series []float64
	for k := 21; k >= 3; k -= 2 {
		series = append(series, 2/float64(k))
	}
	q := m.mul(z, m.poly(z, series...))
	r := m.fma(m.neg(s), m.sub(f, q), f)
	return m.mul(e, m.c(ln2Hi)),
		m.fma(e, m.c(ln2Lo), r)
}

// ln 2 in two parts (fdlibm, e_exp.c).
const (
	ln2Hi = 6.93147180369123816490e-01
	ln2Lo = 1.90821492927058770002e-10
)

// expm1 is the Taylor polynomial of degree 14 for |x| < 0.35, whose remainder is below
// a tenth of a unit in the last place, and eˣ − 1 elsewhere, where the difference loses
// two bits at most.
func (m floats) expm1(x operand) operand {
	near := m.mul(x, m.poly(x, expm1Taylor...))
	return m.pick(
		m.is("lt", m.abs(x), m.c(0.35)),
		near,
		m.sub(m.exp(x), m.c(1)),
	)
}

// expm1Taylor is 1/n! for n from 14 down to 1.
var expm1Taylor = []float64{
	1.0 / 87178291200, 1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800,
	1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1,
}

// log1p is x·log(u)/(u − 1) for |x| < 0.5 and u = 1 + x as it is rounded, whose error the
// quotient takes out (Goldberg, What Every Computer Scientist Should Know About
// Floating-Point Arithmetic, theorem 4), x where u is 1, and log(u) elsewhere.
func (m floats) log1p(x operand) operand {
	u := m.add(x, m.c(1))
	log, d := m.log(u), m.sub(u, m.c(1))
	near := m.pick(
		m.is("eq", d, m.c(0)),
		x,
		m.div(m.mul(x, log), d),
	)
	return m.pick(
		m.is("lt", m.abs(x), m.c(0.5)),
		near,
		log,
	)
}

// tanh is y/(y + 2) for y = e^2x − 1; 2x is clamped so that y is finite.
func (m floats) tanh(x operand) operand {
	y := m.expm1(m.bounded(m.add(x, x), -50, 50))
	return m.div(y, m.add(y, m.c(2)))
}

// logistic is 1/(1 + e^−x).
func (m floats) logistic(x operand) operand {
	return m.div(
		m.reg(1),
		m.add(m.exp(m.neg(x)), m.c(1)),
	)
}

// cbrt is 2^(log₂|x|/3), improved by one step of Newton's method.
func (m floats) cbrt(x operand) operand {
	y := m.abs(x)
	r := m.exp(m.mul(
		m.log(y), m.c(1.0/3),
	))
	// A Newton step r − (r − y/r²)/3 doubles the number of correct digits.
	r = m.sub(
		r,
		m.div(m.sub(
			r, m.div(y, m.mul(r, r)),
		), m.c(3)),
	)
	// 0, infinity and NaN are their own cube roots.
	same := m.e.asm.or(
		m.is("eq", x, m.c(0)),
		m.e.asm.not(m.is(
			"lt", y, m.c(math.Inf(1)),
		)),
	)
	return m.pick(same, x, m.sign(r, x))
}

// quadrant reduces an angle: r = x − n·π/2 with n = round(2x/π), accurate for |x|
// below 2³⁰.
func (m floats) quadrant(x operand) (r, n operand) {
	q := m.round(m.mul(x, m.c(2/math.Pi)))
	// π/2 is subtracted in two parts, of which the first has 33 bits.
	r = m.fma(
		q, m.c(-1.57079632673412561417e+00), x,
	)
	r = m.fma(
		q, m.c(-6.07710050650619224932e-11), r,
	)
	return r, m.e.asm.get(kindB32, "cvt.rni.s32.f64", q)
}

// sin is the sine of an angle reduced by quadrant.
func (m floats) sin(x operand) operand {
	r, n := m.quadrant(x)
	return m.turn(r, n)
}

// cos is sin(x + π/2).
func (m floats) cos(x operand) operand {
	r, n := m.quadrant(x)
	return m.turn(
		r,
		m.e.asm.get(kindB32, "add.s32", n, 1),
	)
}

// turn is sin(r + n·π/2) for |r| ≤ π/4, by Taylor polynomials.
func (m floats) turn(r, n operand) operand {
	a := m.e.asm
	z := m.mul(r, r)
	sin := m.mul(
		r,
		m.poly(
			z, -1.0/1307674368000, 1.0/6227020800,
			-1.0/39916800, 1.0/362880, -1.0/5040,
			1.0/120, -1.0/6, 1,
		),
	)
	cos := m.poly(
		z, 1.0/20922789888000, -1.0/87178291200, 1.0/479001600,
		-1.0/3628800, 1.0/40320, -1.0/720,
		1.0/24, -0.5, 1,
	)
	// The sine of r + n·π/2 is ±sin r for even n and ±cos r for odd n.
	odd := a.get(
		kindPred, "setp.ne.s32",
		a.get(kindB32, "and.b32", n, 1), 0,
	)
	v := m.pick(odd, cos, sin)
	return m.pick(
		a.get(kindPred, "setp.ne.s32", a.get(kindB32, "and.b32", n, 2), 0),
		m.neg(v),
		v,
	)
}

// erf is the series 2/√π·e^(−x²)·Σ 2ⁿx^(2n+1)/(2n+1)!! for |x| < 2, and 1 minus the
// continued fraction of erfc elsewhere.
func (m floats) erf(x operand) operand {
	y := m.bounded(m.abs(x), 0, 6)
	z := m.mul(y, y)
	// Gauss is e^(−x²)/√π, a factor of both branches.
	gauss := m.mul(
		m.exp(m.neg(z)),
		m.c(1/math.Sqrt(math.Pi)),
	)
	// The series is evaluated from its last term, Horner's rule in 2x²/(2n+1).
	sum := m.reg(1)
	for n := 30; n >= 1; n-- {
		sum = m.fma(
			m.mul(z, m.c(2/float64(2*n+1))),
			sum,
			m.c(1),
		)
	}
	series := m.mul(
		m.mul(m.c(2), gauss),
		m.mul(y, sum),
	)
	// The continued fraction y + ½/(y + 1/(y + 3/2/…)) is evaluated from its end.
	fraction := y
	for n := 40; n >= 1; n-- {
		fraction = m.add(
			y,
			m.div(m.reg(float64(n)/2), fraction),
		)
	}
	tail := m.sub(
		m.reg(1), m.div(gauss, fraction),
	)
	v := m.sign(
		m.pick(m.is("lt", y, m.c(2)), series, tail),
		x,
	)
	return m.pick(m.is("nan", x, x), x, v)
}

// erfInv32 is x·P(w) with w = −ln(1 − x²), P a polynomial in w − 2.5 below w = 5
// and another in √w − 3 from there on: Giles, "Approximating the erfinv function",
// GPU Computing Gems 2, 2010, single precision. The fused product rounds 1 − x²
// once, so that no digits are lost near ±1; at ±1 w is infinite, beyond NaN. The
// result is within 4 ulp of f32.
func (m floats) erfInv32(x operand) operand {
	y := m.fma(m.neg(x), x, m.c(1))
	w := m.neg(m.log32(y))
	// Both branches are evaluated and one is selected: threads of a warp do not
	// diverge.
	near := m.poly(
		m.sub(w, m.c(2.5)),
		2.81022636e-08, 3.43273939e-07, -3.5233877e-06,
		-4.39150654e-06, 0.00021858087, -0.00125372503,
		-0.00417768164, 0.246640727, 1.50140941,
	)
	far := m.poly(
		m.sub(m.sqrt(w), m.c(3)),
		-0.000200214257, 0.000100950558, 0.00134934322,
		-0.00367342844, 0.00573950773, -0.0076224613,
		0.00943887047, 1.00167406, 2.83297682,
	)
	p := m.pick(
		m.is("lt", w, m.c(5)), near, far,
	)
	return m.erfInvEdge(x, w, p)
}

// erfInv is erfInv32 by the double precision polynomials of the same paper, which
// change at w = 6.25 and w = 16; within 8 ulp of f64.
func (m floats) erfInv(x operand) operand {
	y := m.fma(m.neg(x), x, m.c(1))
	w := m.neg(m.log(y))
	// The logarithm of 1 − x² separates three ranges, each with a polynomial of its
	// own.
	root := m.sqrt(w)
	near := m.poly(
		m.sub(w, m.c(3.125)),
		-3.6444120640178196996e-21, -1.685059138182016589e-19, 1.2858480715256400167e-18,
		1.115787767802518096e-17, -1.333171662854620906e-16, 2.0972767875968561637e-17,
		6.6376381343583238325e-15, -4.0545662729752068639e-14, -8.1519341976054721522e-14,
		2.6335093153082322977e-12, -1.2975133253453532498e-11, -5.4154120542946279317e-11,
		1.051212273321532285e-09, -4.1126339803469836976e-09, -2.9070369957882005086e-08,
		4.2347877827932403518e-07, -1.3654692000834678645e-06, -1.3882523362786468719e-05,
		0.0001867342080340571352, -0.00074070253416626697512, -0.0060336708714301490533,
		0.24015818242558961693, 1.6536545626831027356,
	)
	middle := m.poly(
		m.sub(root, m.c(3.25)),
		2.2137376921775787049e-09, 9.0756561938885390979e-08, -2.7517406297064545428e-07,
		1.8239629214389227755e-08, 1.5027403968909827627e-06, -4.013867526981545969e-06,
		2.9234449089955446044e-06, 1.2475304481671778723e-05, -4.7318229009055733981e-05,
		6.8284851459573175448e-05, 2.4031110387097893999e-05, -0.0003550375203628474796,
		0.00095328937973738049703, -0.0016882755560235047313, 0.0024914420961078508066,
		-0.0037512085075692412107, 0.005370914553590063617, 1.0052589676941592334,
		3.0838856104922207635,
	)
	far := m.poly(
		m.sub(root, m.c(5)),
		-2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09,
		-3.7894654401267369937e-09, 7.6157012080783393804e-09, -1.4960026627149240478e-08,
		2.9147953450901080826e-08, -6.7711997758452339498e-08, 2.2900482228026654717e-07,
		-9.9298272942317002539e-07, 4.5260625972231537039e-06, -1.9681778105531670567e-05,
		7.5995277030017761139e-05, -0.00021503011930044477347, -0.00013871931833623122026,
		1.0103004648645343977, 4.8499064014085844221,
	)
	p := m.pick(
		m.is("lt", w, m.c(16)), middle, far,
	)
	p = m.pick(
		m.is("lt", w, m.c(6.25)), near, p,
	)
	return m.erfInvEdge(x, w, p)
}

// erfInvEdge is x·p, and infinite at ±1, where w is.
func (m floats) erfInvEdge(x, w, p operand) operand {
	edge := m.is("eq", w, m.c(math.Inf(1)))
	p = m.pick(edge, m.reg(math.Inf(1)), p)
	return m.mul(p, x)
}

// arctangent is atan(t) for 0 ≤ t ≤ 1: the angle is halved twice before the series.
func (m floats) arctangent(t operand) operand {
	// atan(t) = 2·atan(t/(1 + √(1 + t²))); after two halvings t ≤ tan(π/16) = 0.199.
	for range 2 {
		t = m.div(
			t,
			m.add(m.sqrt(m.fma(
				t, t, m.c(1),
			)), m.c(1)),
		)
	}
	z := m.mul(t, t)
	var series []float64
	for k := 23; k >= 1; k -= 2 {
		series = append(
			series, float64(2-k%4)/float64(k),
		)
	}
	return m.mul(
		m.mul(t, m.c(4)),
		m.poly(z, series...),
	)
}

// atan2 is the angle between the vector (x, y) and the first axis.
func (m floats) atan2(y, x operand) operand {
	a := m.e.asm
	u := m.abs(x)
	v := m.abs(y)
	// The quotient of the smaller by the larger magnitude is in [0, 1].
	steep := m.is("gt", v, u)
	lo := m.pick(steep, u, v)
	hi := m.pick(steep, v, u)
	// Two infinities have the angle of the diagonal.
	both := a.and(
		m.is("equ", lo, m.c(math.Inf(1))),
		m.is("equ", hi, m.c(math.Inf(1))),
	)
	t := m.pick(
		m.is("eq", hi, m.c(0)),
		m.reg(0),
		m.pick(both, m.reg(1), m.div(lo, hi)),
	)
	angle := m.arctangent(t)
	angle = m.pick(
		steep,
		m.sub(m.reg(math.Pi/2), angle),
		angle,
	)
	// The sign bit of x distinguishes −0 from 0.
	high := a.get(
		kindB32, "cvt.u32.u64",
		a.get(kindB64, "shr.u64", a.get(kindB64, "mov.b64", x), 63),
	)
	left := a.get(kindPred, "setp.ne.s32", high, 0)
	angle = m.pick(
		left,
		m.sub(m.reg(math.Pi), angle),
		angle,
	)
	return m.pick(
		a.or(
			m.is("nan", x, x),
			m.is("nan", y, y),
		),
		m.reg(math.NaN()),
		m.op("copysign", y, angle),
	)
}

// power is e^(y·ln x) in f64, with the exponent in two parts. Integers y give negative
// x their sign. For x that is 0 or infinite the logarithm has one part only.
func (m floats) power(x, y operand) operand {
	a := m.e.asm
	hi, lo := m.logParts(m.abs(x))
	t := m.mul(y, hi)
	// The product y·ln|x| is kept in two parts, t + rest, because its absolute error
	// becomes a relative error of the power.
	rest := m.fma(
		y,
		lo,
		m.fma(y, hi, m.neg(t)),
	)
	sum := m.add(t, rest)
	size := m.exp(sum)
	size = m.fma(
		size, m.add(m.sub(t, sum), rest), size,
	)
	plain := m.exp(m.mul(y, m.log(m.abs(x))))
	usual := a.and(
		m.is("lt", m.abs(sum), m.c(600)),
		a.and(m.is(
			"gt", m.abs(x), m.c(0),
		), m.is(
			"lt",
			m.abs(x),
			m.c(math.Inf(1)),
		)),
	)
	size = m.pick(usual, size, plain)
	whole := m.is("eq", m.round(y), y)
	half := m.mul(y, m.c(0.5))
	odd := a.and(
		whole,
		m.is("neu", m.round(half), half),
	)
	v := m.pick(
		odd, m.op("copysign", x, size), size,
	)
	v = m.pick(
		a.and(
			a.and(
				m.is("lt", x, m.c(0)),
				m.is("gt", x, m.c(math.Inf(-1))),
			),
			a.not(whole),
		),
		m.reg(math.NaN()),
		v,
	)
	one := a.or(
		m.is("eq", x, m.c(1)),
		m.is("eq", y, m.c(0)),
	)
	one = a.or(one, a.and( // of −1, too
		m.is("eq", m.abs(x), m.c(1)),
		m.is("eq", m.abs(y), m.c(math.Inf(1))),
	))
	return m.pick(one, m.reg(1), v)
}
