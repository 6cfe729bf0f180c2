package functions

import "math"

// exactQuotient is the size of quotients below which one that is rounded and truncated
// is off by one at most.
const exactQuotient = 0x1p52

// Remainder is x − y·trunc(x/y) of numbers of f64, as C's fmod. A fused multiply-add gives
// it without rounding if the quotient is below exactQuotient. Threads with larger ones take
// a branch.
func (m Floats) Remainder(x, y Operand) Operand {
	a := m.code
	size, left := m.Abs(y), m.Abs(x)
	q := m.Op("cvt.rzi.f64", m.div(left, size))
	rest := m.FMA(m.Neg(q), size, left)
	// The quotient may have been rounded up.
	r := a.Fresh(KindF64)
	a.Do(
		"selp.f64",
		r,
		m.Add(rest, size),
		rest,
		m.Is("lt", rest, m.C(0)),
	)
	done := a.Label("remainder")
	a.Branch(
		m.Is("ltu", q, m.C(exactQuotient)),
		done,
	)
	a.Enter()
	a.Branch(a.Or( // NaN
		m.Is("eq", size, m.C(0)),
		m.Is("eq", left, m.C(math.Inf(1))),
	), done)
	words{a}.longDivision(m, left, size, r)
	a.Leave()
	a.Place(done)
	finite := a.And(
		m.Is("eq", size, m.C(math.Inf(1))),
		m.Is("lt", left, m.C(math.Inf(1))),
	)
	return m.Pick(
		finite,
		x,
		m.Op("copysign", x, r),
	)
}

// longDivision writes the remainder of x > y > 0 to the register r: the fraction of x is
// shifted by the difference of exponents, 11 bits a step, and reduced by that of y.
func (w words) longDivision(m Floats, x, y, r Operand) {
	a := w.Code
	top, first := w.parts(x)
	low, by := w.parts(y)
	left, n := a.Fresh(KindB64), a.Fresh(KindB32)
	a.Do("mov.b64", left, first)
	a.Do("sub.s32", n, top, low)
	again := a.Label("divide")
	a.Place(again)
	step := a.Fresh(KindB32)
	a.Do("min.s32", step, n, 11)
	a.Do("shl.b64", left, left, step)
	a.Do("rem.u64", left, left, by)
	a.Do("sub.s32", n, n, step)
	more := a.Fresh(KindPred)
	a.Do("setp.gt.s32", more, n, 0)
	a.Branch(more, again)
	// The result has the exponent of y, in two factors.
	const bias = 1023 + 52
	lo, hi := m.powerOfTwo(
		a.Get(KindB32, "sub.s32", low, bias),
		0,
	)
	number := a.Fresh(KindF64)
	a.Do("cvt.rn.f64.u64", number, left)
	a.Do("mul.rn.f64", number, number, lo)
	a.Do("mul.rn.f64", r, number, hi)
}

// parts are the exponent and the fraction, an integer, of a positive number: x is
// fraction·2^(exponent−1075).
func (w words) parts(x Operand) (exponent, fraction Operand) {
	a := w.Code
	bits := a.Get(KindB64, "mov.b64", x)
	field := a.Get(
		KindB32,
		"cvt.u32.u64",
		w.shr(bits, 52),
	)
	least := a.Get(KindB32, "max.s32", field, 1)
	// A number with the field 0 is denormal, and has no leading bit.
	leading := w.shl(
		a.Get(KindB64, "cvt.u64.u32", a.Get(KindB32, "min.s32", field, 1)),
		52,
	)
	fraction = a.Get(
		KindB64,
		"and.b64",
		bits,
		a.In(KindB64, Integer(1<<52-1)),
	)
	return least, w.or(fraction, leading)
}
