package functions

import (
	"math"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// Single are the operations that are computed in f32.
var Single = map[hlo.Opcode]func(m Floats, x Operand) Operand{
	hlo.OpExponential: Floats.exp32,
	hlo.OpLog:         Floats.log32,
	hlo.OpTanh:        Floats.tanh32,
	hlo.OpLogistic:    Floats.logistic32,
	hlo.OpErf:         Floats.erf32,
	hlo.OpErfInv:      Floats.erfInv32,
	hlo.OpRsqrt:       Floats.rsqrt,
	hlo.OpSine:        Floats.sin,
	hlo.OpCosine:      Floats.cos,
	hlo.OpTan:         Floats.tan,
}

// exp32 is e^x = 2^n·2^r with n = floor(x/ln 2) and r what is left, as CUDA's expf
// computes it in eight instructions: 252·t is n + 126, t between 0 and 1, so that 2^n is
// neither denormal nor infinite and products by 2^r round denormal results once. A sum
// with shift has n in its lowest bits. Saturation makes t of NaN 0, but r is NaN then.
func (m Floats) exp32(x Operand) Operand {
	if m.rough {
		return m.roughExp(x)
	}
	a := m.code
	const shift = 0x1.8p23 + 1
	t := m.Op(
		"fma.rn.sat", x,
		m.C(math.Log2E/252), m.C(0.5),
	)
	n := m.Op(
		"fma.rm", t,
		m.Reg(252), m.C(shift),
	)
	whole := m.Sub(n, m.C(shift+126))
	// 1/ln 2 is multiplied in two parts, of which the second has the bits beyond 24.
	r := m.FMA(
		x, m.C(math.Log2E), m.Neg(whole),
	)
	r = m.FMA(
		x, m.C(math.Log2E-float64(float32(math.Log2E))), r,
	)
	scale := a.Get(
		KindF32, "mov.b32",
		a.Get(
			KindB32, "shl.b32",
			a.Get(KindB32, "mov.b32", n), 23,
		),
	)
	return m.Mul(scale, m.Op("ex2.approx.ftz", r))
}

// roughExp is e^x in three instructions, for results of at most 16 bits: the product's
// rounding is up to 2^-18 of the result, where |x| is 88, and twice that where it is
// denormal. The square of e^(x/2) is not flushed: denormal numbers are some of bf16, and
// factors can bring them back.
func (m Floats) roughExp(x Operand) Operand {
	return m.Squared(m.Mul(x, m.C(RootOfE)))
}

// RootOfE is the logarithm of √e to base 2.
const RootOfE = math.Log2E / 2

// Squared is 4^x.
func (m Floats) Squared(x Operand) Operand {
	half := m.Op("ex2.approx.ftz", x)
	return m.Mul(half, half)
}

// quotient is x/y for y between 2^-100 and 2^100, to a unit in the last place: the
// hardware's reciprocal and one step of Newton's.
func (m Floats) quotient(x, y Operand) Operand {
	r := m.Op("rcp.approx.ftz", y)
	q := m.Mul(x, r)
	return m.FMA(
		m.FMA(m.Neg(q), y, x),
		r,
		q,
	)
}

// Shared is x/y to two units in the last place, where several x have the same y, for
// which the reciprocal is computed once. Both are scaled if y is so small or so large
// that its reciprocal is not a normal number.
func (m Floats) Shared(x, y Operand) Operand {
	size := m.Abs(y)
	scale := m.Pick(
		m.Is("lt", size, m.C(0x1p-64)),
		m.Reg(0x1p64),
		m.Pick(
			m.Is("gt", size, m.C(0x1p64)),
			m.Reg(0x1p-64),
			m.Reg(1),
		),
	)
	r := m.Op("rcp.approx.ftz", m.Mul(y, scale))
	return m.Mul(m.Mul(x, scale), r)
}

// log32 is e·ln 2 + 2·atanh(s), s = f/(2+f), for x = 2^e·(1+f), 1+f between
// √½ and √2. What is not positive and finite is left to lg2.approx.
func (m Floats) log32(x Operand) Operand {
	a := m.code
	// Denormal numbers are scaled by 2²³, which is subtracted from the exponent again.
	tiny := m.Is(
		"lt",
		x,
		m.C(0x1p-126),
	)
	y := m.Pick(
		tiny, m.Mul(x, m.C(0x1p23)), x,
	)
	bits := a.Get(KindB32, "mov.b32", y)
	// Subtracting the bits of √½ rounds the exponent such that 1+f is in [√½, √2).
	over := a.Get(KindB32, "sub.s32", bits, 0x3f3504f3)
	exponent := a.Get(
		KindB32, "and.b32", over, -1<<23,
	)
	f := m.Sub(
		a.Get(KindF32, "mov.b32", a.Get(KindB32, "sub.s32", bits, exponent)),
		m.C(1),
	)
	e := a.Get(
		KindF32, "cvt.rn.f32.s32",
		a.Get(KindB32, "shr.s32", exponent, 23),
	)
	e = m.Pick(
		tiny,
		m.Add(e, m.C(-23)),
		e,
	)
	s := m.quotient(
		f,
		m.Add(f, m.C(2)),
	)
	z := m.Mul(s, s)
	q := m.Mul(
		z,
		m.poly(z, 2.0/9, 2.0/7, 2.0/5, 2.0/3),
	)
	// 2·atanh(s) = f − s·(f − q), which does not round f twice
	r := m.FMA(
		m.Neg(s),
		m.Sub(f, q),
		f,
	)
	r = m.FMA(
		e,
		m.C(math.Ln2),
		r,
	)
	// Numbers ≤ 0, NaN and infinity have the results of the hardware's logarithm.
	special := a.Or(
		m.Is("leu", x, m.C(0)),
		m.Is("equ", x, m.C(math.Inf(1))),
	)
	return m.Pick(
		special, m.Op("lg2.approx", x), r,
	)
}

// tanh32 is 1 − 2/(e^2|x| + 1) with the sign of x, and for |x| < 0.625 the
// polynomial of Cephes' tanhf.
func (m Floats) tanh32(x Operand) Operand {
	y := m.Abs(x)
	// For larger |x| the subtraction cancels nothing.
	big := m.FMA(
		m.Op("rcp.approx.ftz", m.Add(
			m.exp32(m.Add(y, y)),
			m.C(1),
		)),
		m.Reg(-2),
		m.C(1),
	)
	z := m.Mul(x, x)
	p := m.poly(
		z, -5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1,
	)
	small := m.FMA(
		m.Mul(p, z),
		y,
		y,
	)
	return m.sign(m.Pick(
		m.Is("lt", y, m.C(0.625)), small, big,
	), x)
}

// logistic32 is 1/(1 + e^−x), or e^x/(1 + e^x) for negative x, so that nothing overflows.
func (m Floats) logistic32(x Operand) Operand {
	e := m.exp32(m.Neg(m.Abs(x)))
	return m.quotient(
		m.Pick(m.Is("lt", x, m.C(0)), e, m.Reg(1)),
		m.Add(e, m.C(1)),
	)
}

// erf32 is the rational minimax approximation of Eigen's generic erf for float.
func (m Floats) erf32(x Operand) Operand {
	x = m.bounded(x, -4, 4)
	z := m.Mul(x, x)
	p := m.poly(
		z, -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
		-7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02,
	)
	q := m.poly(
		z, -1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
		-1.42647390514189e-02,
	)
	return m.Mul(x, m.quotient(p, q)) // x·p would be denormal
}

// rsqrt is 1/√x: the hardware's to 2 units of f32, which has no slow path.
func (m Floats) rsqrt(x Operand) Operand {
	if m.k == KindF32 {
		return m.Op("rsqrt.approx", x)
	}
	return m.div(
		m.Reg(1),
		m.sqrt(x),
	)
}

// erfInv32 is x·P(w) with w = −ln(1 − x²), P a polynomial in w − 2.5 below w = 5
// and another in √w − 3 from there on: Giles, "Approximating the erfinv function",
// GPU Computing Gems 2, 2010, single precision. The fused product rounds 1 − x²
// once, so that no digits are lost near ±1; at ±1 w is infinite, beyond NaN. The
// result is within 4 ulp of f32.
func (m Floats) erfInv32(x Operand) Operand {
	y := m.FMA(
		m.Neg(x),
		x,
		m.C(1),
	)
	w := m.Neg(m.log32(y))
	// Both branches are evaluated and one is selected: threads of a warp do not
	// diverge.
	near := m.poly(
		m.Sub(w, m.C(2.5)),
		2.81022636e-08, 3.43273939e-07, -3.5233877e-06,
		-4.39150654e-06, 0.00021858087, -0.00125372503,
		-0.00417768164, 0.246640727, 1.50140941,
	)
	far := m.poly(
		m.Sub(m.sqrt(w), m.C(3)),
		-0.000200214257, 0.000100950558, 0.00134934322,
		-0.00367342844, 0.00573950773, -0.0076224613,
		0.00943887047, 1.00167406, 2.83297682,
	)
	p := m.Pick(
		m.Is("lt", w, m.C(5)), near, far,
	)
	return m.erfInvEdge(x, w, p)
}
