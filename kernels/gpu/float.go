package gpu

import (
	"math"
	"slices"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Floating-point operations. Those of f32 that PTX does not have are computed
// in f32 to a few units in the last place, or in f64 (double.go) and rounded. Types
// under f32 are computed as f32.

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
		return e.asm.get(
			k,
			name+s,
			x[0],
			x[1],
		)
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
			defer e.roughly(e.rough || d.Size() < 4)()
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
	if code == hlo.OpPower {
		m := floats{e, kindF64, "f64"}
		return e.widen(
			kindF32,
			kindF64,
			m.power32(wide[0], wide[1]),
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
	return m.e.asm.in(
		m.k,
		m.c(v),
	)
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

// sign is x ≥ 0 with the sign of y, −0 included.
func (m floats) sign(x, y operand) operand { return m.op("copysign", y, x) }

// poly evaluates a polynomial in x by Horner's rule; the coefficients are highest
// first.
func (m floats) poly(x operand, coefficients ...float64) operand {
	p := m.reg(coefficients[0])
	for _, c := range coefficients[1:] {
		p = m.fma(p, x, m.c(c))
	}
	return p
}

// powerOfTwo is 2^(i+shift) for an integer register i as two factors, so that neither
// overflows or is denormal.
func (m floats) powerOfTwo(i operand, shift int) (operand, operand) {
	a := m.e.asm
	half := a.get(kindB32, "shr.s32", i, 1)
	return m.exponent(half, 0),
		m.exponent(
			a.get(kindB32, "sub.s32", i, half),
			shift,
		)
}

// exponent is 2^(i+shift) as a float, for an integer register i.
func (m floats) exponent(i operand, shift int) operand {
	a := m.e.asm
	if m.k == kindF32 {
		return a.get(
			kindF32,
			"mov.b32",
			a.get(kindB32, "shl.b32", a.get(kindB32, "add.s32", i, 127+shift), 23),
		)
	}
	high := a.get(
		kindB32, "shl.b32",
		a.get(kindB32, "add.s32", i, 1023+shift), 20,
	)
	return a.get(kindF64, "mov.b64", []operand{
		a.in(kindB32, "0"), high,
	})
}

// bounded clamps x to [lo, hi] and keeps NaN.
func (m floats) bounded(x operand, lo, hi float64) operand {
	return m.atLeast(m.atMost(x, hi), lo)
}

// atMost is x or, where x is larger, hi.
func (m floats) atMost(x operand, hi float64) operand {
	return m.pick(
		m.is("gt", x, m.c(hi)),
		m.reg(hi),
		x,
	)
}

// atLeast is x or, where x is smaller, lo.
func (m floats) atLeast(x operand, lo float64) operand {
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
	hlo.OpSine:        floats.sin,
	hlo.OpCosine:      floats.cos,
	hlo.OpTan:         floats.tan,
}

// exp32 is e^x = 2^n·2^r with n = floor(x/ln 2) and r what is left, as CUDA's expf
// computes it in eight instructions: 252·t is n + 126, t between 0 and 1, so that 2^n is
// neither denormal nor infinite and products by 2^r round denormal results once. A sum
// with shift has n in its lowest bits. Saturation makes t of NaN 0, but r is NaN then.
func (m floats) exp32(x operand) operand {
	if m.e.rough {
		return m.roughExp(x)
	}
	a := m.e.asm
	const shift = 0x1.8p23 + 1
	t := m.op(
		"fma.rn.sat", x,
		m.c(math.Log2E/252), m.c(0.5),
	)
	n := m.op(
		"fma.rm", t,
		m.reg(252), m.c(shift),
	)
	whole := m.sub(n, m.c(shift+126))
	// 1/ln 2 is multiplied in two parts, of which the second has the bits beyond 24.
	r := m.fma(
		x, m.c(math.Log2E), m.neg(whole),
	)
	r = m.fma(
		x, m.c(math.Log2E-float64(float32(math.Log2E))), r,
	)
	scale := a.get(
		kindF32, "mov.b32",
		a.get(
			kindB32, "shl.b32",
			a.get(kindB32, "mov.b32", n), 23,
		),
	)
	return m.mul(scale, m.op("ex2.approx.ftz", r))
}

// roughExp is e^x in three instructions, for results of at most 16 bits: the product's
// rounding is up to 2^-18 of the result, where |x| is 88, and twice that where it is
// denormal. The square of e^(x/2) is not flushed: denormal numbers are some of bf16, and
// factors can bring them back.
func (m floats) roughExp(x operand) operand {
	return m.squared(m.mul(x, m.c(rootOfE)))
}

// rootOfE is the logarithm of √e to base 2.
const rootOfE = math.Log2E / 2

// squared is 4^x.
func (m floats) squared(x operand) operand {
	half := m.op("ex2.approx.ftz", x)
	return m.mul(half, half)
}

// times is the product of two numbers, of which the second may be the constant 1.
func (m floats) times(x, y operand) operand {
	if y == m.c(1) {
		return x
	}
	return m.mul(x, y)
}

// A weightBase is the maximum of a row, for exponentials of its elements less it: 4^(x·times
// + less).
type weightBase struct{ times, less operand }

// weights are elements of op n where they are rough exponentials of a score less the
// running maximum of its row: 4^(x·c − m·c) with c = log₂√e (see logOfRoot), one multiply-add and two
// instructions more. The multiple of the maximum is rounded once for all elements of a
// row, so that their ratios are off by the rounding of the multiply-add only. It is nil for
// others.
func (e *emitter) weights(n int, points []point) []operand {
	op := e.p.Ops[n]
	defer e.roughly(e.narrowed[n])()
	if op.Code != hlo.OpExponential ||
		len(e.bases) == 0 || !e.rough {
		return nil
	}
	arg := op.Args[0]
	less := e.p.Ops[arg]
	if less.Code != hlo.OpSubtract ||
		e.hints.staged[arg] ||
		op.Instr.Shape.DType != hlo.F32 ||
		less.Instr.Shape.DType != hlo.F32 {
		return nil
	}
	x := e.elements(less.Args[0], points)
	base := e.elements(less.Args[1], points)
	m := floats{e, kindF32, "f32"}
	var all []operand
	for i := range points {
		w, ok := e.bases[base[i]]
		if !ok {
			return nil
		}
		all = append(all, m.squared(m.fma(
			e.asm.in(kindF32, x[i]), w.times, w.less,
		)))
	}
	return all
}

// quotient is x/y for y between 2^-100 and 2^100, to a unit in the last place: the
// hardware's reciprocal and one step of Newton's.
func (m floats) quotient(x, y operand) operand {
	r := m.op("rcp.approx.ftz", y)
	q := m.mul(x, r)
	return m.fma(
		m.fma(m.neg(q), y, x),
		r,
		q,
	)
}

// shared is x/y to two units in the last place, where several x have the same y, for
// which the reciprocal is computed once. Both are scaled if y is so small or so large
// that its reciprocal is not a normal number.
func (m floats) shared(x, y operand) operand {
	size := m.abs(y)
	scale := m.pick(
		m.is("lt", size, m.c(0x1p-64)),
		m.reg(0x1p64),
		m.pick(
			m.is("gt", size, m.c(0x1p64)),
			m.reg(0x1p-64),
			m.reg(1),
		),
	)
	r := m.op("rcp.approx.ftz", m.mul(y, scale))
	return m.mul(m.mul(x, scale), r)
}

// log32 is e·ln 2 + 2·atanh(s), s = f/(2+f), for x = 2^e·(1+f), 1+f between
// √½ and √2. What is not positive and finite is left to lg2.approx.
func (m floats) log32(x operand) operand {
	a := m.e.asm
	// Denormal numbers are scaled by 2²³, which is subtracted from the exponent again.
	tiny := m.is(
		"lt",
		x,
		m.c(0x1p-126),
	)
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
	e = m.pick(
		tiny,
		m.add(e, m.c(-23)),
		e,
	)
	s := m.quotient(
		f,
		m.add(f, m.c(2)),
	)
	z := m.mul(s, s)
	q := m.mul(
		z,
		m.poly(z, 2.0/9, 2.0/7, 2.0/5, 2.0/3),
	)
	// 2·atanh(s) = f − s·(f − q), which does not round f twice
	r := m.fma(
		m.neg(s),
		m.sub(f, q),
		f,
	)
	r = m.fma(
		e,
		m.c(math.Ln2),
		r,
	)
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
	big := m.fma(
		m.op("rcp.approx.ftz", m.add(
			m.exp32(m.add(y, y)),
			m.c(1),
		)),
		m.reg(-2),
		m.c(1),
	)
	z := m.mul(x, x)
	p := m.poly(
		z, -5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1,
	)
	small := m.fma(
		m.mul(p, z),
		y,
		y,
	)
	return m.sign(m.pick(
		m.is("lt", y, m.c(0.625)), small, big,
	), x)
}

// logistic32 is 1/(1 + e^−x), or e^x/(1 + e^x) for negative x, so that nothing overflows.
func (m floats) logistic32(x operand) operand {
	e := m.exp32(m.neg(m.abs(x)))
	return m.quotient(
		m.pick(m.is("lt", x, m.c(0)), e, m.reg(1)),
		m.add(e, m.c(1)),
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
	return m.mul(x, m.quotient(p, q)) // x·p would be denormal
}

// rsqrt is 1/√x: the hardware's to 2 units of f32, which has no slow path.
func (m floats) rsqrt(x operand) operand {
	if m.k == kindF32 {
		return m.op("rsqrt.approx", x)
	}
	return m.div(
		m.reg(1),
		m.sqrt(x),
	)
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

// exactQuotient is the size of quotients below which one that is rounded and truncated
// is off by one at most.
const exactQuotient = 0x1p52

// floatRemainder is x − y·trunc(x/y), as C's fmod. A fused multiply-add gives it without
// rounding if the quotient is below exactQuotient. Threads with larger ones take a
// branch.
func (e *emitter) floatRemainder(k kind, x, y operand) operand {
	a := e.asm
	m := floats{e, kindF64, "f64"}
	x, y = e.widen(kindF64, k, x), e.widen(
		kindF64,
		k,
		y,
	)
	size, left := m.abs(y), m.abs(x)
	q := m.op("cvt.rzi.f64", m.div(left, size))
	rest := m.fma(m.neg(q), size, left)
	// The quotient may have been rounded up.
	r := a.fresh(kindF64)
	a.do(
		"selp.f64",
		r,
		m.add(rest, size),
		rest,
		m.is("lt", rest, m.c(0)),
	)
	done := a.label("remainder")
	a.branch(
		m.is("ltu", q, m.c(exactQuotient)),
		done,
	)
	a.enter()
	a.branch(a.or( // NaN
		m.is("eq", size, m.c(0)),
		m.is("eq", left, m.c(math.Inf(1))),
	), done)
	words{e.asm}.longDivision(m, left, size, r)
	a.leave()
	a.place(done)
	finite := a.and(
		m.is("eq", size, m.c(math.Inf(1))),
		m.is("lt", left, m.c(math.Inf(1))),
	)
	v := m.pick(
		finite,
		x,
		m.op("copysign", x, r),
	)
	return e.widen(k, kindF64, v)
}

// longDivision writes the remainder of x > y > 0 to the register r: the fraction of x is
// shifted by the difference of exponents, 11 bits a step, and reduced by that of y.
func (w words) longDivision(m floats, x, y, r operand) {
	a := w.asm
	top, first := w.parts(x)
	low, by := w.parts(y)
	left, n := a.fresh(kindB64), a.fresh(kindB32)
	a.do("mov.b64", left, first)
	a.do("sub.s32", n, top, low)
	again := a.label("divide")
	a.place(again)
	step := a.fresh(kindB32)
	a.do("min.s32", step, n, 11)
	a.do("shl.b64", left, left, step)
	a.do("rem.u64", left, left, by)
	a.do("sub.s32", n, n, step)
	more := a.fresh(kindPred)
	a.do("setp.gt.s32", more, n, 0)
	a.branch(more, again)
	// The result has the exponent of y, in two factors.
	const bias = 1023 + 52
	lo, hi := m.powerOfTwo(
		a.get(kindB32, "sub.s32", low, bias),
		0,
	)
	number := a.fresh(kindF64)
	a.do("cvt.rn.f64.u64", number, left)
	a.do("mul.rn.f64", number, number, lo)
	a.do("mul.rn.f64", r, number, hi)
}

// parts are the exponent and the fraction, an integer, of a positive number: x is
// fraction·2^(exponent−1075).
func (w words) parts(x operand) (exponent, fraction operand) {
	a := w.asm
	bits := a.get(kindB64, "mov.b64", x)
	field := a.get(
		kindB32,
		"cvt.u32.u64",
		w.shr(bits, 52),
	)
	least := a.get(kindB32, "max.s32", field, 1)
	// A number with the field 0 is denormal, and has no leading bit.
	leading := w.shl(
		a.get(kindB64, "cvt.u64.u32", a.get(kindB32, "min.s32", field, 1)),
		52,
	)
	fraction = a.get(
		kindB64,
		"and.b64",
		bits,
		a.in(kindB64, integer(1<<52-1)),
	)
	return least, w.or(fraction, leading)
}

// erfInv32 is x·P(w) with w = −ln(1 − x²), P a polynomial in w − 2.5 below w = 5
// and another in √w − 3 from there on: Giles, "Approximating the erfinv function",
// GPU Computing Gems 2, 2010, single precision. The fused product rounds 1 − x²
// once, so that no digits are lost near ±1; at ±1 w is infinite, beyond NaN. The
// result is within 4 ulp of f32.
func (m floats) erfInv32(x operand) operand {
	y := m.fma(
		m.neg(x),
		x,
		m.c(1),
	)
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

// divideBySum is a quotient by a sum of weights, whose reciprocal is a normal number.
func (e *emitter) divideBySum(op symtile.Op, x []operand) operand {
	m := floats{e, kindF32, "f32"}
	q := m.mul(x[0], m.op("rcp.approx.ftz", x[1]))
	return e.fit(op.Instr.Shape.DType, q)
}

// sumOfWeights reports whether an instruction is the sum, over rows or columns, of e^(x − m)
// with m the maximum of x along the same dimensions: between 1, for the largest x, and the
// number of elements, or NaN.
func sumOfWeights(i *hlo.Instr) bool {
	i, _ = unbroadcast(i)
	sum := monoidReduce{hlo.OpAdd, 0}
	if !sum.is(i) ||
		i.Operands[0].Op != hlo.OpExponential {
		return false
	}
	less := i.Operands[0].Operands[0]
	if less.Op != hlo.OpSubtract {
		return false
	}
	most, at := unbroadcast(less.Operands[1])
	top := monoidReduce{hlo.OpMaximum, math.Inf(-1)}
	if !top.is(most) ||
		most.Operands[0] != less.Operands[0] {
		return false
	}
	// Each x has the maximum of its own row.
	dims := i.Attrs.Dimensions
	var kept []int64
	for d := range less.Shape.Rank() {
		if !slices.Contains(dims, int64(d)) {
			kept = append(kept, int64(d))
		}
	}
	return slices.Equal(kept, at) &&
		sameSet(dims, most.Attrs.Dimensions)
}

// unbroadcast is what an instruction broadcasts, along which dimensions of its result; the
// instruction itself where it is no broadcast.
func unbroadcast(i *hlo.Instr) (of *hlo.Instr, dims []int64) {
	if i.Op == hlo.OpBroadcast {
		return i.Operands[0], i.Attrs.Dimensions
	}
	return i, nil
}

// A monoidReduce is a reduce of one array of f32 by an operation, from a number on.
type monoidReduce struct {
	code hlo.Opcode
	init float64
}

// is reports whether an instruction is such a reduction.
func (r monoidReduce) is(i *hlo.Instr) bool {
	if i.Op != hlo.OpReduce ||
		len(i.Operands) != 2 ||
		i.Shape.DType != hlo.F32 {
		return false
	}
	code, ok := i.Attrs.ToApply.Monoid()
	l := i.Operands[1].Literal
	return ok && code == r.code && l != nil &&
		!l.Elided && len(l.Floats) == 1 &&
		l.Floats[0] == r.init
}

// sameSet reports whether two lists of different dimensions have the same.
func sameSet(x, y []int64) bool {
	return len(x) == len(y) &&
		!slices.ContainsFunc(x, func(d int64) bool { return !slices.Contains(y, d) })
}
