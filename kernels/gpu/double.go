package gpu

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// Functions of f64: polynomials and series, good to a few units in the last place for
// all numbers (functionUnits in functions_test.go). Those of f32 that have no row in
// single are computed by them, too.

// double are operations computed in f64.
var double = map[hlo.Opcode]func(m floats, x operand) operand{
	hlo.OpExponential: floats.exp, hlo.OpLog: floats.log,
	hlo.OpTanh: floats.tanh, hlo.OpLogistic: floats.logistic,
	hlo.OpRsqrt: floats.rsqrt,
	hlo.OpSine:  floats.sin, hlo.OpCosine: floats.cos, hlo.OpTan: floats.tan,
	hlo.OpExponentialMinusOne: floats.expm1, hlo.OpLogPlusOne: floats.log1p,
	hlo.OpCbrt: floats.cbrt, hlo.OpErf: floats.erf,
	hlo.OpErfInv: floats.erfInv,
	hlo.OpSinh:   floats.sinh, hlo.OpCosh: floats.cosh,
	hlo.OpAsinh: floats.asinh, hlo.OpAcosh: floats.acosh, hlo.OpAtanh: floats.atanh,
	hlo.OpAsin: func(m floats, x operand) operand {
		return m.atan2(x, m.leg(x))
	},
	hlo.OpAcos: func(m floats, x operand) operand {
		return m.atan2(m.leg(x), x)
	},
}

// Beyond these bounds e^x is 0 or infinite.
const leastExponent, mostExponent = -760, 720

// exp is e^x.
func (m floats) exp(x operand) operand {
	return m.exponential(
		m.bounded(x, leastExponent, mostExponent), "", 0,
	)
}

// expTaylor is 1/n! for n from 13 down to 0.
var expTaylor = append(slices.Clone(expm1Taylor[1:]), 1)

// exponential is 2^shift·e^(x+rest) for x within the bounds and a rest, if there is one,
// that is small: 2ⁿ·e^r, e^r by its Taylor polynomial of degree 13, |r| ≤ ln 2/2.
func (m floats) exponential(x, rest operand, shift int) operand {
	n, i := m.rounded(x, math.Log2E)
	r := m.fma(n, m.c(-ln2Hi), x)
	r = m.fma(n, m.c(-ln2Lo), r)
	if rest != "" {
		r = m.add(r, rest)
	}
	lo, hi := m.powerOfTwo(i, shift)
	return m.mul(
		m.mul(m.poly(r, expTaylor...), lo), hi,
	)
}

// rounded is n = round(x·scale), and n as an integer of 32 bits: the sum with 1.5·2⁵² has
// it in its last bits.
func (m floats) rounded(x operand, scale float64) (n, i operand) {
	round := roundingSum[m.k]
	sum := m.fma(x, m.c(scale), m.reg(round))
	return m.sub(sum, m.c(round)), words{m.e.asm}.low(sum)
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
	f, e := m.mantissa(x)
	s := m.div(f, m.add(f, m.c(2)))
	z := m.mul(s, s)
	q := m.mul(z, m.poly(z, logSeries...))
	r := m.fma(m.neg(s), m.sub(f, q), f)
	return m.mul(e, m.c(ln2Hi)),
		m.fma(e, m.c(ln2Lo), r)
}

// logSeries is the series of 2·atanh(s) from 2/21·s²¹ down to 2/3·s³, whose error is
// below 10⁻¹⁶ for |s| ≤ 0.172.
var logSeries = []float64{
	2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13, 2.0 / 11, 2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3,
}

// mantissa splits a positive number into 2^e·(1+f), with 1+f in [√½, √2).
func (m floats) mantissa(x operand) (f, e operand) {
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
	f = m.sub(
		a.get(kindF64, "mov.b64", a.get(kindB64, "sub.s64", bits, exponent)),
		m.c(1),
	)
	e = a.get(
		kindF64, "cvt.rn.f64.s64",
		a.get(kindB64, "shr.s64", exponent, 52),
	)
	return f, m.pick(tiny, m.add(e, m.c(-54)), e)
}

// logPair is the logarithm of a positive number as the sum of two, off by a part in 2⁶³
// or less: what rounding takes from s = f/(2+f), from 2/3·s³ and from sums is in lo.
func (m floats) logPair(x operand) (hi, lo operand) {
	f, e := m.mantissa(x)
	d := m.add(f, m.c(2))
	inverse := m.op("rcp.rn", d)
	s := m.mul(f, inverse)
	// What f − s·d leaves, with d = f + 2 before it was rounded.
	left := m.fma(m.neg(s), d, f)
	left = m.fma(m.neg(s), m.sub(f, m.sub(d, m.c(2))), left)
	left = m.mul(m.add(left, left), inverse)
	cube, tail := m.cubeAndTail(s, left)
	// The largest terms come first, so that a difference is what a sum was rounded by.
	terms := []operand{m.mul(e, m.c(ln2Hi)), m.add(s, s), cube}
	rest := m.fma(e, m.c(ln2Lo), tail)
	sum := terms[0]
	for _, t := range terms[1:] {
		next := m.add(sum, t)
		rest = m.add(rest, m.sub(t, m.sub(next, sum)))
		sum = next
	}
	hi = m.add(sum, rest)
	return hi, m.sub(rest, m.sub(hi, sum))
}

// cubeAndTail are what 2·atanh(s) has beside 2s: 2/3·s³, and all else, where left is what
// 2s lacks, too.
func (m floats) cubeAndTail(s, left operand) (cube, tail operand) {
	const third = 2.0 / 3
	z := m.mul(s, s)
	n := len(logSeries) - 1
	higher := m.mul(z, m.poly(z, logSeries[:n]...))
	raw := m.mul(s, z)
	// s³ is raw and what two products were rounded by.
	lost := m.fma(s, m.fma(s, s, m.neg(z)), m.fma(s, z, m.neg(raw)))
	cube = m.mul(raw, m.c(third))
	lost = m.fma(lost, m.c(third), m.fma(raw, m.c(third), m.neg(cube)))
	lost = m.fma(raw, m.c(0x1p-54*third), lost) // of 2/3 as it is rounded
	tail = m.fma(raw, higher, m.add(lost, left))
	return cube, m.fma(left, z, tail) // 2·atanh has the slope 2/(1−z)
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

// logistic is 1/(1 + e^−x), or e^x/(1 + e^x) for negative x, so that nothing overflows.
func (m floats) logistic(x operand) operand {
	e := m.exponential(
		m.atLeast(m.neg(m.abs(x)), leastExponent), "", 0,
	)
	return m.div(
		m.pick(m.is("lt", x, m.c(0)), e, m.reg(1)),
		m.add(e, m.c(1)),
	)
}

// sinh is the Taylor polynomial for |x| < 1, whose remainder is below a tenth of a unit
// in the last place, and h − 1/(4h) for h = e^|x|/2 elsewhere.
func (m floats) sinh(x operand) operand {
	y := m.abs(x)
	z := m.mul(x, x)
	near := m.mul(x, m.poly(z, sinhTaylor...))
	h := m.halfExp(y)
	far := m.sub(h, m.div(m.reg(0.25), h))
	return m.pick(
		m.is("lt", y, m.c(1)), near, m.sign(far, x),
	)
}

// sinhTaylor is 1/n! for odd n from 17 down to 1.
var sinhTaylor = []float64{
	1.0 / 355687428096000, 1.0 / 1307674368000, 1.0 / 6227020800, 1.0 / 39916800,
	1.0 / 362880, 1.0 / 5040, 1.0 / 120, 1.0 / 6, 1,
}

// cosh is h + 1/(4h) for h = e^|x|/2.
func (m floats) cosh(x operand) operand {
	h := m.halfExp(m.abs(x))
	return m.add(h, m.div(m.reg(0.25), h))
}

// halfExp is e^y/2 for y ≥ 0, which is infinite only where cosh y is.
func (m floats) halfExp(y operand) operand {
	return m.exponential(m.atMost(y, mostExponent), "", -1)
}

// hugeSquare is where the roots in asinh and acosh are their argument, and before
// its square overflows.
const hugeSquare = 0x1p500

// asinh is ln(1 + y + y²/(1 + √(y²+1))) for y = |x|, and ln y + ln 2 for huge y.
func (m floats) asinh(x operand) operand {
	y := m.abs(x)
	z := m.mul(y, y)
	root := m.sqrt(m.add(z, m.c(1)))
	t := m.add(y, m.div(z, m.add(root, m.c(1))))
	return m.sign(m.logTwice(y, t), x)
}

// acosh is ln(1 + t + √(t² + 2t)) for t = x − 1, ln x + ln 2 for huge x, and NaN below 1.
func (m floats) acosh(x operand) operand {
	t := m.sub(x, m.c(1))
	root := m.sqrt(m.mul(t, m.add(t, m.c(2))))
	return m.pick(
		m.is("ltu", x, m.c(1)),
		m.reg(math.NaN()),
		m.logTwice(x, m.add(t, root)),
	)
}

// logTwice is ln(1 + t), and ln y + ln 2 for huge y, where 1 + t is 2y.
func (m floats) logTwice(y, t operand) operand {
	huge := m.is("gt", y, m.c(hugeSquare))
	r := m.log1p(m.pick(huge, y, t))
	return m.pick(huge, m.add(r, m.c(math.Ln2)), r)
}

// atanh is ½·ln(1 + 2y/(1 − y)) for y = |x|.
func (m floats) atanh(x operand) operand {
	y := m.abs(x)
	t := m.div(m.add(y, y), m.sub(m.reg(1), y))
	return m.sign(m.mul(m.c(0.5), m.log1p(t)), x)
}

// leg is √(1 − x²).
func (m floats) leg(x operand) operand {
	return m.sqrt(m.mul(
		m.sub(m.reg(1), x), m.add(x, m.c(1)),
	))
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

// halfPi is π/2 in three parts of as many bits as f32 or f64 have. All are positive, so
// that nothing changes the sign of −0.
var halfPi = map[kind][3]float64{
	kindF32: {0x1.921fb4p+0, 0x1.4442d0p-24, 0x1.846988p-48},
	kindF64: {0x1.921fb54442d18p+0, 0x1.1a62633145c06p-54, 0x1.c1cd129024e08p-107},
}

// plainAngle is the angle up to which quadrant subtracts multiples of those parts: the
// rounded quotient by π/2 is off by 0.02 at most.
var plainAngle = map[kind]float64{kindF32: 0x1p16, kindF64: 0x1p31}

// quadrant reduces an angle: r = x − n·π/2, with |r| hardly above π/4. The product n times
// the first part of π/2 is subtracted without a rounding, since the difference is below
// 1 and a multiple of the last bit of that part. Threads with larger angles take a
// branch.
func (m floats) quadrant(x operand) (r, n operand) {
	a := m.e.asm
	keys := [2]valueKey{
		{op: -1, text: "angle " + string(x)}, {op: -1, text: "quadrant " + string(x)},
	}
	r, known := a.value(keys[0])
	if known {
		n, _ = a.value(keys[1])
		return r, n
	}
	r, n = a.fresh(m.k), a.fresh(kindB32)
	parts := halfPi[m.k]
	q := m.countQuadrants(x, n)
	y := m.fma(q, m.c(-parts[0]), x)
	y = m.fma(q, m.c(-parts[1]), y)
	a.do("fma.rn."+m.s, r, q, m.c(-parts[2]), y)
	plain := a.label("angle")
	a.branch(m.is("lt", m.abs(x), m.c(plainAngle[m.k])), plain)
	a.enter()
	m.hugeAngle(x, r, n)
	a.leave()
	a.place(plain)
	a.scope.values[keys[0]], a.scope.values[keys[1]] = r, n
	return r, n
}

// roundingSum is what is added to round to a whole number: 1.5 times the number whose
// last bit is 1.
var roundingSum = map[kind]float64{kindF32: 0x1.8p23, kindF64: 0x1.8p52}

// countQuadrants is q = round(2x/π), whose last bits it writes to the register n.
func (m floats) countQuadrants(x, n operand) (q operand) {
	a, round := m.e.asm, roundingSum[m.k]
	sum := m.fma(x, m.c(2/math.Pi), m.reg(round))
	if m.k == kindF32 {
		a.do("mov.b32", n, sum)
	} else {
		a.do("mov.b64", []operand{n, a.fresh(kindB32)}, sum)
	}
	return m.sub(sum, m.c(round))
}

// twoOverPi are 1152 bits of 2/π behind 128 zeros, as an array of words of 64 bits.
var twoOverPi = littleEndian(
	0, 0, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0,
	0xdb6295993c439041, 0xfe5163abdebbc561,
	0xb7246e3a424dd2e0, 0x06492eea09d1921c,
	0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
	0xe99c7026b45f7e41, 0x3991d639835339f4,
	0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
	0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7,
	0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
	0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08,
)

// littleEndian is the bytes of an array of words.
func littleEndian(words ...uint64) (b []byte) {
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

// hugeAngle writes r = x − n·π/2 and n for an angle of at least 1 (Payne and Hanek,
// Radian reduction for trigonometric functions, 1983). x is M·2^(e−63) for an M of 64
// bits. Bits of 2/π whose product with it is a multiple of 4 are left out; of the
// product with the 192 bits that follow, two are n and 126 a fraction, of which at most
// 62 are zeros. Angles that are not finite have the result NaN.
func (m floats) hugeAngle(x, r, n operand) {
	if m.k == kindF32 {
		wide := m.e.asm.fresh(kindF64)
		m := floats{m.e, kindF64, "f64"}
		m.hugeAngle(m.e.widen(kindF64, kindF32, x), wide, n)
		m.e.asm.do("cvt.rn.f32.f64", r, wide)
		return
	}
	w := words{m.e.asm}
	bits := w.get(kindB64, "mov.b64", x)
	high, low := w.turns(bits, m.e.constant(twoOverPi))
	count := w.get(kindB32, "cvt.u32.u64", w.shr(high, 62))
	high, low = w.or(w.shl(high, 2), w.shr(low, 62)), w.shl(low, 2)
	// A fraction of a half or more is the next quadrant, less its complement.
	more := w.get(kindB64, "shr.s64", high, 63)
	count = w.get(kindB32, "sub.s32", count, w.get(kindB32, "cvt.u32.u64", more))
	size := m.mul(
		w.fraction(m, w.xor(high, more), w.xor(low, more)),
		m.c(math.Pi/2),
	)
	sign := w.get(kindF64, "mov.b64", w.xor(bits, more))
	size = m.op("copysign", sign, size)
	m.e.asm.do("add.rn.f64", r, size, m.sub(x, x)) // NaN of infinity and NaN
	// The quadrants of −x are those of x, negated.
	negative := w.get(
		kindB32, "cvt.u32.u64", w.get(kindB64, "shr.s64", bits, 63),
	)
	m.e.asm.do("sub.s32", n, w.get(kindB32, "xor.b32", count, negative), negative)
}

// words emits instructions on integers of 64 bits.
type words struct{ *asm }

func (w words) shl(x operand, by any) operand { return w.get(kindB64, "shl.b64", x, by) }
func (w words) shr(x operand, by any) operand { return w.get(kindB64, "shr.u64", x, by) }
func (w words) or(x, y operand) operand       { return w.get(kindB64, "or.b64", x, y) }
func (w words) xor(x, y operand) operand      { return w.get(kindB64, "xor.b64", x, y) }

// low is the first 32 bits of an f64.
func (w words) low(x operand) operand {
	key := valueKey{op: -1, text: "low " + string(x)}
	if v, known := w.value(key); known {
		return v
	}
	v := w.fresh(kindB32)
	w.do("mov.b64", []operand{v, w.fresh(kindB32)}, x)
	w.scope.values[key] = v
	return v
}

// turns is 2x/π modulo 4, in units of 2⁻¹²⁶, for the bits of x and the address of the
// digits of 2/π.
func (w words) turns(bits, digits operand) (high, low operand) {
	m := w.shl(w.or(bits, w.in(kindB64, integer(1<<52))), 11)
	exponent := w.get(
		kindB32, "bfe.u32", w.get(kindB32, "cvt.u32.u64", w.shr(bits, 32)), 20, 11,
	)
	at := w.get(kindB32, "sub.s32", exponent, 1023-63)
	q := w.window(digits, at)
	low = w.get(kindB64, "mul.hi.u64", m, q[2])
	middle := w.get(kindB64, "add.s64", w.get(kindB64, "mul.lo.u64", m, q[1]), low)
	carry := w.get(
		kindB64, "selp.b64", 1, 0,
		w.get(kindPred, "setp.lt.u64", middle, low),
	)
	high = w.get(kindB64, "mul.hi.u64", m, q[1])
	high = w.get(kindB64, "mad.lo.u64", m, q[0], high)
	return w.get(kindB64, "add.s64", high, carry), middle
}

// window is 192 bits of 2/π from a bit on.
func (w words) window(digits, at operand) (q [3]operand) {
	first := w.get(
		kindB64, "mad.wide.u32",
		w.get(kindB32, "shr.u32", at, 6), 8, digits,
	)
	var all [4]operand
	for k := range all {
		all[k] = w.get(kindB64, "ld.global.nc.b64", address{first, int64(8 * k)})
	}
	by := w.get(kindB32, "and.b32", at, 63)
	back := w.get(kindB32, "sub.s32", w.in(kindB32, "64"), by)
	for k := range q {
		q[k] = w.or(w.shl(all[k], by), w.shr(all[k+1], back))
	}
	return q
}

// fraction is a binary fraction of 128 bits as an f64.
func (w words) fraction(m floats, high, low operand) operand {
	zeros := w.get(kindB32, "clz.b64", high)
	back := w.get(kindB32, "sub.s32", w.in(kindB32, "64"), zeros)
	first := w.or(w.shl(high, zeros), w.shr(low, back))
	scale := w.get(kindB32, "sub.s32", w.in(kindB32, "-64"), zeros)
	return m.mul(
		w.get(kindF64, "cvt.rn.f64.u64", first),
		m.exponent(scale, 0),
	)
}

// sin is the sine of an angle reduced by quadrant.
func (m floats) sin(x operand) operand {
	r, n := m.quadrant(x)
	return m.turn(r, n)
}

// cos is sin(x + π/2).
func (m floats) cos(x operand) operand {
	r, n := m.quadrant(x)
	return m.turn(r, m.next(n))
}

// tan is the quotient of sine and cosine.
func (m floats) tan(x operand) operand {
	r, n := m.quadrant(x)
	return m.div(m.turn(r, n), m.turn(r, m.next(n)))
}

// next is n + 1.
func (m floats) next(n operand) operand {
	return m.e.asm.get(kindB32, "add.s32", n, 1)
}

// sines has the polynomials in z = r² of sin(r)/r and cos(r) for |r| ≤ π/4: those of
// fdlibm (k_sin.c, k_cos.c), and of Cephes (sinf.c) for f32.
var sines = map[kind][2][]float64{
	kindF32: {
		{-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1, 1},
		{2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2, -0.5, 1},
	},
	kindF64: {
		{
			1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06,
			-1.98412698298579493134e-04, 8.33333333332248946124e-03, -1.66666666666666324348e-01, 1,
		},
		{
			-1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07,
			2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02, -0.5, 1,
		},
	},
}

// turn is sin(r + n·π/2) for |r| ≤ π/4.
func (m floats) turn(r, n operand) operand {
	a := m.e.asm
	z := m.mul(r, r)
	sin := m.mul(r, m.poly(z, sines[m.k][0]...))
	cos := m.poly(z, sines[m.k][1]...)
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

// arctangents is the minimax polynomial in z = t² of (atan(t)/t − 1)/z for 0 ≤ t ≤ 1,
// found by Remez' algorithm; atan(t) is off by less than a part in 2⁵⁴ with it.
var arctangents = []float64{
	-2.0258536894744354823e-5, 2.2302223444662481797e-4, -1.1640709623974960323e-3,
	3.8559725326497503985e-3, -9.1845543716027533735e-3, 1.6978028773065663405e-2,
	-2.5826789134506984844e-2, 3.4067804735751240552e-2, -4.0926378402040665151e-2,
	4.6739494248756547513e-2, -5.239232933344474838e-2, 5.8773077521426882349e-2,
	-6.665860359263244384e-2, 7.6922129299961162319e-2, -9.0909012353435309072e-2,
	1.1111110678746121371e-1, -1.4285714271334725425e-1, 1.9999999999755019013e-1,
	-3.3333333333331858847e-1,
}

// arctangent is atan(t) for 0 ≤ t ≤ 1.
func (m floats) arctangent(t operand) operand {
	z := m.mul(t, t)
	return m.fma(m.mul(z, m.poly(z, arctangents...)), t, t)
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

// power is e^(y·ln |x|). Integers y give negative x their sign.
func (m floats) power(x, y operand) operand {
	hi, lo := m.logPair(m.abs(x))
	// Of 0, infinity and NaN the logarithm has one part.
	size := m.abs(x)
	hi = m.pick(m.is("geu", size, m.c(math.Inf(1))), size, hi)
	hi = m.pick(m.is("eq", x, m.c(0)), m.reg(math.Inf(-1)), hi)
	// The product y·ln|x| is kept in two parts, t + rest, because its absolute error
	// becomes a relative error of the power.
	t := m.mul(y, hi)
	rest := m.fma(y, lo, m.fma(y, hi, m.neg(t)))
	rest = m.pick(
		m.is("lt", m.abs(t), m.c(-leastExponent)), rest, m.reg(0),
	)
	return m.powerSign(x, y, m.exponential(
		m.bounded(t, leastExponent, mostExponent), rest, 0,
	))
}

// power32 is power for numbers that were f32, with an error far below theirs.
func (m floats) power32(x, y operand) operand {
	return m.powerSign(x, y, m.exp(m.mul(y, m.log(m.abs(x)))))
}

// powerSign is size with the sign of the power of x by y, and its special cases.
func (m floats) powerSign(x, y, size operand) operand {
	a := m.e.asm
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
