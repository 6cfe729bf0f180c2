package functions

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// Functions of f64: polynomials and series, good to a few units in the last place for
// all numbers (functionUnits in functions_test.go). Those of f32 that have no row in
// Single are computed by them, too.

// Double are the operations that are computed in f64.
var Double = map[hlo.Opcode]func(m Floats, x Operand) Operand{
	hlo.OpExponential: Floats.exp, hlo.OpLog: Floats.log,
	hlo.OpTanh: Floats.tanh, hlo.OpLogistic: Floats.logistic,
	hlo.OpRsqrt: Floats.rsqrt,
	hlo.OpSine:  Floats.sin, hlo.OpCosine: Floats.cos, hlo.OpTan: Floats.tan,
	hlo.OpExponentialMinusOne: Floats.expm1, hlo.OpLogPlusOne: Floats.log1p,
	hlo.OpCbrt: Floats.cbrt, hlo.OpErf: Floats.erf,
	hlo.OpErfInv: Floats.erfInv,
	hlo.OpSinh:   Floats.sinh, hlo.OpCosh: Floats.cosh,
	hlo.OpAsinh: Floats.asinh, hlo.OpAcosh: Floats.acosh, hlo.OpAtanh: Floats.atanh,
	hlo.OpAsin: func(m Floats, x Operand) Operand {
		return m.Atan2(x, m.leg(x))
	},
	hlo.OpAcos: func(m Floats, x Operand) Operand {
		return m.Atan2(m.leg(x), x)
	},
}

// Beyond these bounds e^x is 0 or infinite.
const leastExponent, mostExponent = -760, 720

// exp is e^x.
func (m Floats) exp(x Operand) Operand {
	return m.exponential(
		m.bounded(x, leastExponent, mostExponent), "", 0,
	)
}

// expTaylor is 1/n! for n from 13 down to 0.
var expTaylor = append(slices.Clone(expm1Taylor[1:]), 1)

// exponential is 2^shift·e^(x+rest) for x within the bounds and a rest, if there is one,
// that is small: 2ⁿ·e^r, e^r by its Taylor polynomial of degree 13, |r| ≤ ln 2/2.
func (m Floats) exponential(x, rest Operand, shift int) Operand {
	n, i := m.rounded(x, math.Log2E)
	r := m.FMA(n, m.C(-ln2Hi), x)
	r = m.FMA(n, m.C(-ln2Lo), r)
	if rest != "" {
		r = m.Add(r, rest)
	}
	lo, hi := m.powerOfTwo(i, shift)
	return m.Mul(
		m.Mul(m.poly(r, expTaylor...), lo), hi,
	)
}

// rounded is n = round(x·scale), and n as an integer of 32 bits: the sum with 1.5·2⁵² has
// it in its last bits.
func (m Floats) rounded(x Operand, scale float64) (n, i Operand) {
	round := roundingSum[m.k]
	sum := m.FMA(
		x,
		m.C(scale),
		m.Reg(round),
	)
	return m.Sub(sum, m.C(round)), words{m.code}.low(
		sum,
	)
}

// log is e·ln 2 + 2·atanh(s) as log32, with the series to s²¹.
func (m Floats) log(x Operand) Operand {
	hi, lo := m.logParts(x)
	r := m.Add(hi, lo)
	// Infinity, 0, and negative numbers or NaN are selected last.
	r = m.Pick(
		m.Is("equ", x, m.C(math.Inf(1))), x, r,
	)
	r = m.Pick(
		m.Is("eq", x, m.C(0)),
		m.Reg(math.Inf(-1)),
		r,
	)
	return m.Pick(
		m.Is("ltu", x, m.C(0)),
		m.Reg(math.NaN()),
		r,
	)
}

// logParts is the logarithm of a positive number in two parts: e times the first
// 33 bits of ln 2, which is exact, and the rest.
func (m Floats) logParts(x Operand) (hi, lo Operand) {
	f, e := m.mantissa(x)
	s := m.div(
		f,
		m.Add(f, m.C(2)),
	)
	z := m.Mul(s, s)
	q := m.Mul(
		z,
		m.poly(z, logSeries...),
	)
	r := m.FMA(
		m.Neg(s),
		m.Sub(f, q),
		f,
	)
	return m.Mul(e, m.C(ln2Hi)),
		m.FMA(e, m.C(ln2Lo), r)
}

// logSeries is the series of 2·atanh(s) from 2/21·s²¹ down to 2/3·s³, whose error is
// below 10⁻¹⁶ for |s| ≤ 0.172.
var logSeries = []float64{
	2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13, 2.0 / 11, 2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3,
}

// mantissa splits a positive number into 2^e·(1+f), with 1+f in [√½, √2).
func (m Floats) mantissa(x Operand) (f, e Operand) {
	a := m.code
	// Denormal numbers are scaled by 2⁵⁴.
	tiny := m.Is(
		"lt",
		x,
		m.C(0x1p-1022),
	)
	y := m.Pick(
		tiny, m.Mul(x, m.C(0x1p54)), x,
	)
	bits := a.Get(KindB64, "mov.b64", y)
	over := a.Get(
		KindB64, "sub.s64", bits,
		a.In(KindB64, Integer(int64(math.Float64bits(math.Sqrt2/2)))),
	)
	exponent := a.Get(
		KindB64, "shl.b64",
		a.Get(KindB64, "shr.s64", over, 52), 52,
	)
	f = m.Sub(
		a.Get(KindF64, "mov.b64", a.Get(KindB64, "sub.s64", bits, exponent)),
		m.C(1),
	)
	e = a.Get(
		KindF64, "cvt.rn.f64.s64",
		a.Get(KindB64, "shr.s64", exponent, 52),
	)
	return f, m.Pick(
		tiny,
		m.Add(e, m.C(-54)),
		e,
	)
}

// logPair is the logarithm of a positive number as the sum of two, off by a part in 2⁶³
// or less: what rounding takes from s = f/(2+f), from 2/3·s³ and from sums is in lo.
func (m Floats) logPair(x Operand) (hi, lo Operand) {
	f, e := m.mantissa(x)
	d := m.Add(f, m.C(2))
	inverse := m.Op("rcp.rn", d)
	s := m.Mul(f, inverse)
	// What f − s·d leaves, with d = f + 2 before it was rounded.
	left := m.FMA(m.Neg(s), d, f)
	left = m.FMA(
		m.Neg(s),
		m.Sub(f, m.Sub(d, m.C(2))),
		left,
	)
	left = m.Mul(m.Add(left, left), inverse)
	cube, tail := m.cubeAndTail(s, left)
	// The largest terms come first, so that a difference is what a sum was rounded by.
	terms := []Operand{m.Mul(e, m.C(ln2Hi)), m.Add(s, s), cube}
	rest := m.FMA(e, m.C(ln2Lo), tail)
	sum := terms[0]
	for _, t := range terms[1:] {
		next := m.Add(sum, t)
		rest = m.Add(
			rest,
			m.Sub(t, m.Sub(next, sum)),
		)
		sum = next
	}
	hi = m.Add(sum, rest)
	return hi, m.Sub(rest, m.Sub(hi, sum))
}

// cubeAndTail are what 2·atanh(s) has beside 2s: 2/3·s³, and all else, where left is what
// 2s lacks, too.
func (m Floats) cubeAndTail(s, left Operand) (cube, tail Operand) {
	const third = 2.0 / 3
	z := m.Mul(s, s)
	n := len(logSeries) - 1
	higher := m.Mul(
		z,
		m.poly(z, logSeries[:n]...),
	)
	raw := m.Mul(s, z)
	// s³ is raw and what two products were rounded by.
	lost := m.FMA(
		s,
		m.FMA(s, s, m.Neg(z)),
		m.FMA(s, z, m.Neg(raw)),
	)
	cube = m.Mul(raw, m.C(third))
	lost = m.FMA(
		lost,
		m.C(third),
		m.FMA(raw, m.C(third), m.Neg(cube)),
	)
	lost = m.FMA(raw, m.C(0x1p-54*third), lost) // of 2/3 as it is rounded
	tail = m.FMA(
		raw,
		higher,
		m.Add(lost, left),
	)
	return cube, m.FMA(left, z, tail) // 2·atanh has the slope 2/(1−z)
}

// ln 2 in two parts (fdlibm, e_exp.c).
const (
	ln2Hi = 6.93147180369123816490e-01
	ln2Lo = 1.90821492927058770002e-10
)

// expm1 is the Taylor polynomial of degree 14 for |x| < 0.35, whose remainder is below
// a tenth of a unit in the last place, and eˣ − 1 elsewhere, where the difference loses
// two bits at most.
func (m Floats) expm1(x Operand) Operand {
	near := m.Mul(
		x,
		m.poly(x, expm1Taylor...),
	)
	return m.Pick(
		m.Is("lt", m.Abs(x), m.C(0.35)),
		near,
		m.Sub(m.exp(x), m.C(1)),
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
func (m Floats) log1p(x Operand) Operand {
	u := m.Add(x, m.C(1))
	log, d := m.log(u), m.Sub(
		u,
		m.C(1),
	)
	near := m.Pick(
		m.Is("eq", d, m.C(0)),
		x,
		m.div(m.Mul(x, log), d),
	)
	return m.Pick(
		m.Is("lt", m.Abs(x), m.C(0.5)),
		near,
		log,
	)
}

// tanh is y/(y + 2) for y = e^2x − 1; 2x is clamped so that y is finite.
func (m Floats) tanh(x Operand) Operand {
	y := m.expm1(
		m.bounded(m.Add(x, x), -50, 50),
	)
	return m.div(
		y,
		m.Add(y, m.C(2)),
	)
}

// logistic is 1/(1 + e^−x), or e^x/(1 + e^x) for negative x, so that nothing overflows.
func (m Floats) logistic(x Operand) Operand {
	e := m.exponential(
		m.atLeast(m.Neg(m.Abs(x)), leastExponent), "", 0,
	)
	return m.div(
		m.Pick(m.Is("lt", x, m.C(0)), e, m.Reg(1)),
		m.Add(e, m.C(1)),
	)
}

// sinh is the Taylor polynomial for |x| < 1, whose remainder is below a tenth of a unit
// in the last place, and h − 1/(4h) for h = e^|x|/2 elsewhere.
func (m Floats) sinh(x Operand) Operand {
	y := m.Abs(x)
	z := m.Mul(x, x)
	near := m.Mul(
		x,
		m.poly(z, sinhTaylor...),
	)
	h := m.halfExp(y)
	far := m.Sub(
		h,
		m.div(m.Reg(0.25), h),
	)
	return m.Pick(
		m.Is("lt", y, m.C(1)), near, m.sign(far, x),
	)
}

// sinhTaylor is 1/n! for odd n from 17 down to 1.
var sinhTaylor = []float64{
	1.0 / 355687428096000, 1.0 / 1307674368000, 1.0 / 6227020800, 1.0 / 39916800,
	1.0 / 362880, 1.0 / 5040, 1.0 / 120, 1.0 / 6, 1,
}

// cosh is h + 1/(4h) for h = e^|x|/2.
func (m Floats) cosh(x Operand) Operand {
	h := m.halfExp(m.Abs(x))
	return m.Add(
		h,
		m.div(m.Reg(0.25), h),
	)
}

// halfExp is e^y/2 for y ≥ 0, which is infinite only where cosh y is.
func (m Floats) halfExp(y Operand) Operand {
	return m.exponential(
		m.atMost(y, mostExponent),
		"",
		-1,
	)
}

// hugeSquare is where the roots in asinh and acosh are their argument, and before
// its square overflows.
const hugeSquare = 0x1p500

// asinh is ln(1 + y + y²/(1 + √(y²+1))) for y = |x|, and ln y + ln 2 for huge y.
func (m Floats) asinh(x Operand) Operand {
	y := m.Abs(x)
	z := m.Mul(y, y)
	root := m.sqrt(
		m.Add(z, m.C(1)),
	)
	t := m.Add(
		y,
		m.div(z, m.Add(root, m.C(1))),
	)
	return m.sign(m.logTwice(y, t), x)
}

// acosh is ln(1 + t + √(t² + 2t)) for t = x − 1, ln x + ln 2 for huge x, and NaN below 1.
func (m Floats) acosh(x Operand) Operand {
	t := m.Sub(x, m.C(1))
	root := m.sqrt(
		m.Mul(t, m.Add(t, m.C(2))),
	)
	return m.Pick(
		m.Is("ltu", x, m.C(1)),
		m.Reg(math.NaN()),
		m.logTwice(x, m.Add(t, root)),
	)
}

// logTwice is ln(1 + t), and ln y + ln 2 for huge y, where 1 + t is 2y.
func (m Floats) logTwice(y, t Operand) Operand {
	huge := m.Is("gt", y, m.C(hugeSquare))
	r := m.log1p(m.Pick(huge, y, t))
	return m.Pick(
		huge,
		m.Add(r, m.C(math.Ln2)),
		r,
	)
}

// atanh is ½·ln(1 + 2y/(1 − y)) for y = |x|.
func (m Floats) atanh(x Operand) Operand {
	y := m.Abs(x)
	t := m.div(
		m.Add(y, y),
		m.Sub(m.Reg(1), y),
	)
	return m.sign(
		m.Mul(m.C(0.5), m.log1p(t)),
		x,
	)
}

// leg is √(1 − x²).
func (m Floats) leg(x Operand) Operand {
	return m.sqrt(m.Mul(
		m.Sub(m.Reg(1), x), m.Add(x, m.C(1)),
	))
}

// cbrt is 2^(log₂|x|/3), improved by one step of Newton's method.
func (m Floats) cbrt(x Operand) Operand {
	y := m.Abs(x)
	r := m.exp(m.Mul(
		m.log(y), m.C(1.0/3),
	))
	// A Newton step r − (r − y/r²)/3 doubles the number of correct digits.
	r = m.Sub(
		r,
		m.div(m.Sub(
			r, m.div(y, m.Mul(r, r)),
		), m.C(3)),
	)
	// 0, infinity and NaN are their own cube roots.
	same := m.code.Or(
		m.Is("eq", x, m.C(0)),
		m.code.Not(m.Is(
			"lt", y, m.C(math.Inf(1)),
		)),
	)
	return m.Pick(same, x, m.sign(r, x))
}

// halfPi is π/2 in three parts of as many bits as f32 or f64 have. All are positive, so
// that nothing changes the sign of −0.
var halfPi = map[Kind][3]float64{
	KindF32: {0x1.921fb4p+0, 0x1.4442d0p-24, 0x1.846988p-48},
	KindF64: {0x1.921fb54442d18p+0, 0x1.1a62633145c06p-54, 0x1.c1cd129024e08p-107},
}

// plainAngle is the angle up to which quadrant subtracts multiples of those parts: the
// rounded quotient by π/2 is off by 0.02 at most.
var plainAngle = map[Kind]float64{KindF32: 0x1p16, KindF64: 0x1p31}

// quadrant reduces an angle: r = x − n·π/2, with |r| hardly above π/4. The product n times
// the first part of π/2 is subtracted without a rounding, since the difference is below
// 1 and a multiple of the last bit of that part. Threads with larger angles take a
// branch.
func (m Floats) quadrant(x Operand) (r, n Operand) {
	a := m.code
	keys := [2]string{"angle " + string(x), "quadrant " + string(x)}
	r, known := a.Known(keys[0])
	if known {
		n, _ = a.Known(keys[1])
		return r, n
	}
	r, n = a.Fresh(m.k), a.Fresh(
		KindB32,
	)
	parts := halfPi[m.k]
	q := m.countQuadrants(x, n)
	y := m.FMA(
		q,
		m.C(-parts[0]),
		x,
	)
	y = m.FMA(
		q,
		m.C(-parts[1]),
		y,
	)
	a.Do(
		"fma.rn."+m.s,
		r,
		q,
		m.C(-parts[2]),
		y,
	)
	plain := a.Label("angle")
	a.Branch(
		m.Is("lt", m.Abs(x), m.C(plainAngle[m.k])),
		plain,
	)
	a.Enter()
	m.hugeAngle(x, r, n)
	a.Leave()
	a.Place(plain)
	a.Keep(keys[0], r)
	a.Keep(keys[1], n)
	return r, n
}

// roundingSum is what is added to round to a whole number: 1.5 times the number whose
// last bit is 1.
var roundingSum = map[Kind]float64{KindF32: 0x1.8p23, KindF64: 0x1.8p52}

// countQuadrants is q = round(2x/π), whose last bits it writes to the register n.
func (m Floats) countQuadrants(x, n Operand) (q Operand) {
	a, round := m.code, roundingSum[m.k]
	sum := m.FMA(
		x,
		m.C(2/math.Pi),
		m.Reg(round),
	)
	if m.k == KindF32 {
		a.Do("mov.b32", n, sum)
	} else {
		a.Do(
			"mov.b64",
			[]Operand{n, a.Fresh(KindB32)},
			sum,
		)
	}
	return m.Sub(sum, m.C(round))
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
func (m Floats) hugeAngle(x, r, n Operand) {
	if m.k == KindF32 {
		wide := m.code.Fresh(KindF64)
		m := m.double()
		m.hugeAngle(
			m.code.Get(KindF64, "cvt.f64.f32", x),
			wide,
			n,
		)
		m.code.Do("cvt.rn.f32.f64", r, wide)
		return
	}
	w := words{m.code}
	bits := w.Get(KindB64, "mov.b64", x)
	high, low := w.turns(
		bits,
		m.code.Table(twoOverPi),
	)
	count := w.Get(
		KindB32,
		"cvt.u32.u64",
		w.shr(high, 62),
	)
	high, low = w.or(w.shl(high, 2), w.shr(low, 62)), w.shl(
		low,
		2,
	)
	// A fraction of a half or more is the next quadrant, less its complement.
	more := w.Get(KindB64, "shr.s64", high, 63)
	count = w.Get(
		KindB32,
		"sub.s32",
		count,
		w.Get(KindB32, "cvt.u32.u64", more),
	)
	size := m.Mul(
		w.fraction(m, w.xor(high, more), w.xor(low, more)),
		m.C(math.Pi/2),
	)
	sign := w.Get(
		KindF64,
		"mov.b64",
		w.xor(bits, more),
	)
	size = m.Op("copysign", sign, size)
	m.code.Do("add.rn.f64", r, size, m.Sub(x, x)) // NaN of infinity and NaN
	// The quadrants of −x are those of x, negated.
	negative := w.Get(
		KindB32, "cvt.u32.u64", w.Get(KindB64, "shr.s64", bits, 63),
	)
	m.code.Do(
		"sub.s32",
		n,
		w.Get(KindB32, "xor.b32", count, negative),
		negative,
	)
}

// words emits instructions on integers of 64 bits.
type words struct{ Code }

func (w words) shl(x Operand, by any) Operand { return w.Get(KindB64, "shl.b64", x, by) }
func (w words) shr(x Operand, by any) Operand { return w.Get(KindB64, "shr.u64", x, by) }
func (w words) or(x, y Operand) Operand       { return w.Get(KindB64, "or.b64", x, y) }
func (w words) xor(x, y Operand) Operand      { return w.Get(KindB64, "xor.b64", x, y) }

// low is the first 32 bits of an f64.
func (w words) low(x Operand) Operand {
	key := "low " + string(x)
	if v, known := w.Known(key); known {
		return v
	}
	v := w.Fresh(KindB32)
	w.Do(
		"mov.b64",
		[]Operand{v, w.Fresh(KindB32)},
		x,
	)
	w.Keep(key, v)
	return v
}

// turns is 2x/π modulo 4, in units of 2⁻¹²⁶, for the bits of x and the address of the
// digits of 2/π.
func (w words) turns(bits, digits Operand) (high, low Operand) {
	m := w.shl(
		w.or(bits, w.In(KindB64, Integer(1<<52))),
		11,
	)
	exponent := w.Get(
		KindB32, "bfe.u32", w.Get(KindB32, "cvt.u32.u64", w.shr(bits, 32)), 20, 11,
	)
	at := w.Get(KindB32, "sub.s32", exponent, 1023-63)
	q := w.window(digits, at)
	low = w.Get(KindB64, "mul.hi.u64", m, q[2])
	middle := w.Get(
		KindB64,
		"add.s64",
		w.Get(KindB64, "mul.lo.u64", m, q[1]),
		low,
	)
	carry := w.Get(
		KindB64, "selp.b64", 1, 0,
		w.Get(KindPred, "setp.lt.u64", middle, low),
	)
	high = w.Get(KindB64, "mul.hi.u64", m, q[1])
	high = w.Get(
		KindB64,
		"mad.lo.u64",
		m,
		q[0],
		high,
	)
	return w.Get(KindB64, "add.s64", high, carry), middle
}

// window is 192 bits of 2/π from a bit on.
func (w words) window(digits, at Operand) (q [3]Operand) {
	first := w.Get(
		KindB64, "mad.wide.u32",
		w.Get(KindB32, "shr.u32", at, 6), 8, digits,
	)
	var all [4]Operand
	for k := range all {
		all[k] = w.Word(first, int64(8*k))
	}
	by := w.Get(KindB32, "and.b32", at, 63)
	back := w.Get(
		KindB32,
		"sub.s32",
		w.In(KindB32, "64"),
		by,
	)
	for k := range q {
		q[k] = w.or(
			w.shl(all[k], by),
			w.shr(all[k+1], back),
		)
	}
	return q
}

// fraction is a binary fraction of 128 bits as an f64.
func (w words) fraction(m Floats, high, low Operand) Operand {
	zeros := w.Get(KindB32, "clz.b64", high)
	back := w.Get(
		KindB32,
		"sub.s32",
		w.In(KindB32, "64"),
		zeros,
	)
	first := w.or(
		w.shl(high, zeros),
		w.shr(low, back),
	)
	scale := w.Get(
		KindB32,
		"sub.s32",
		w.In(KindB32, "-64"),
		zeros,
	)
	return m.Mul(
		w.Get(KindF64, "cvt.rn.f64.u64", first),
		m.exponent(scale, 0),
	)
}

// sin is the sine of an angle reduced by quadrant.
func (m Floats) sin(x Operand) Operand {
	r, n := m.quadrant(x)
	return m.turn(r, n)
}

// cos is sin(x + π/2).
func (m Floats) cos(x Operand) Operand {
	r, n := m.quadrant(x)
	return m.turn(r, m.next(n))
}

// tan is the quotient of sine and cosine.
func (m Floats) tan(x Operand) Operand {
	r, n := m.quadrant(x)
	return m.div(
		m.turn(r, n),
		m.turn(r, m.next(n)),
	)
}

// next is n + 1.
func (m Floats) next(n Operand) Operand {
	return m.code.Get(KindB32, "add.s32", n, 1)
}

// sines has the polynomials in z = r² of sin(r)/r and cos(r) for |r| ≤ π/4: those of
// fdlibm (k_sin.c, k_cos.c), and of Cephes (sinf.c) for f32.
var sines = map[Kind][2][]float64{
	KindF32: {
		{-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1, 1},
		{2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2, -0.5, 1},
	},
	KindF64: {
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
func (m Floats) turn(r, n Operand) Operand {
	a := m.code
	z := m.Mul(r, r)
	sin := m.Mul(
		r,
		m.poly(z, sines[m.k][0]...),
	)
	cos := m.poly(
		z,
		sines[m.k][1]...,
	)
	// The sine of r + n·π/2 is ±sin r for even n and ±cos r for odd n.
	odd := a.Get(
		KindPred, "setp.ne.s32",
		a.Get(KindB32, "and.b32", n, 1), 0,
	)
	v := m.Pick(odd, cos, sin)
	return m.Pick(
		a.Get(KindPred, "setp.ne.s32", a.Get(KindB32, "and.b32", n, 2), 0),
		m.Neg(v),
		v,
	)
}

// erf is the series 2/√π·e^(−x²)·Σ 2ⁿx^(2n+1)/(2n+1)!! for |x| < 2, and 1 minus the
// continued fraction of erfc elsewhere.
func (m Floats) erf(x Operand) Operand {
	y := m.bounded(m.Abs(x), 0, 6)
	z := m.Mul(y, y)
	// Gauss is e^(−x²)/√π, a factor of both branches.
	gauss := m.Mul(
		m.exp(m.Neg(z)),
		m.C(1/math.Sqrt(math.Pi)),
	)
	// The series is evaluated from its last term, Horner's rule in 2x²/(2n+1).
	sum := m.Reg(1)
	for n := 30; n >= 1; n-- {
		sum = m.FMA(
			m.Mul(z, m.C(2/float64(2*n+1))),
			sum,
			m.C(1),
		)
	}
	series := m.Mul(
		m.Mul(m.C(2), gauss),
		m.Mul(y, sum),
	)
	// The continued fraction y + ½/(y + 1/(y + 3/2/…)) is evaluated from its end.
	fraction := y
	for n := 40; n >= 1; n-- {
		fraction = m.Add(
			y,
			m.div(m.Reg(float64(n)/2), fraction),
		)
	}
	tail := m.Sub(
		m.Reg(1), m.div(gauss, fraction),
	)
	v := m.sign(
		m.Pick(m.Is("lt", y, m.C(2)), series, tail),
		x,
	)
	return m.Pick(
		m.Is("nan", x, x),
		x,
		v,
	)
}

// erfInv is erfInv32 by the double precision polynomials of the same paper, which
// change at w = 6.25 and w = 16; within 8 ulp of f64.
func (m Floats) erfInv(x Operand) Operand {
	y := m.FMA(
		m.Neg(x),
		x,
		m.C(1),
	)
	w := m.Neg(m.log(y))
	// The logarithm of 1 − x² separates three ranges, each with a polynomial of its
	// own.
	root := m.sqrt(w)
	near := m.poly(
		m.Sub(w, m.C(3.125)),
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
		m.Sub(root, m.C(3.25)),
		2.2137376921775787049e-09, 9.0756561938885390979e-08, -2.7517406297064545428e-07,
		1.8239629214389227755e-08, 1.5027403968909827627e-06, -4.013867526981545969e-06,
		2.9234449089955446044e-06, 1.2475304481671778723e-05, -4.7318229009055733981e-05,
		6.8284851459573175448e-05, 2.4031110387097893999e-05, -0.0003550375203628474796,
		0.00095328937973738049703, -0.0016882755560235047313, 0.0024914420961078508066,
		-0.0037512085075692412107, 0.005370914553590063617, 1.0052589676941592334,
		3.0838856104922207635,
	)
	far := m.poly(
		m.Sub(root, m.C(5)),
		-2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09,
		-3.7894654401267369937e-09, 7.6157012080783393804e-09, -1.4960026627149240478e-08,
		2.9147953450901080826e-08, -6.7711997758452339498e-08, 2.2900482228026654717e-07,
		-9.9298272942317002539e-07, 4.5260625972231537039e-06, -1.9681778105531670567e-05,
		7.5995277030017761139e-05, -0.00021503011930044477347, -0.00013871931833623122026,
		1.0103004648645343977, 4.8499064014085844221,
	)
	p := m.Pick(
		m.Is("lt", w, m.C(16)), middle, far,
	)
	p = m.Pick(
		m.Is("lt", w, m.C(6.25)), near, p,
	)
	return m.erfInvEdge(x, w, p)
}

// erfInvEdge is x·p, and infinite at ±1, where w is.
func (m Floats) erfInvEdge(x, w, p Operand) Operand {
	edge := m.Is(
		"eq",
		w,
		m.C(math.Inf(1)),
	)
	p = m.Pick(
		edge,
		m.Reg(math.Inf(1)),
		p,
	)
	return m.Mul(p, x)
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
func (m Floats) arctangent(t Operand) Operand {
	z := m.Mul(t, t)
	return m.FMA(
		m.Mul(z, m.poly(z, arctangents...)),
		t,
		t,
	)
}

// Atan2 is the angle between the vector (x, y) and the first axis.
func (m Floats) Atan2(y, x Operand) Operand {
	a := m.code
	u := m.Abs(x)
	v := m.Abs(y)
	// The quotient of the smaller by the larger magnitude is in [0, 1].
	steep := m.Is("gt", v, u)
	lo := m.Pick(steep, u, v)
	hi := m.Pick(steep, v, u)
	// Two infinities have the angle of the diagonal.
	both := a.And(
		m.Is("equ", lo, m.C(math.Inf(1))),
		m.Is("equ", hi, m.C(math.Inf(1))),
	)
	t := m.Pick(
		m.Is("eq", hi, m.C(0)),
		m.Reg(0),
		m.Pick(both, m.Reg(1), m.div(lo, hi)),
	)
	angle := m.arctangent(t)
	angle = m.Pick(
		steep,
		m.Sub(m.Reg(math.Pi/2), angle),
		angle,
	)
	// The sign bit of x distinguishes −0 from 0.
	high := a.Get(
		KindB32, "cvt.u32.u64",
		a.Get(KindB64, "shr.u64", a.Get(KindB64, "mov.b64", x), 63),
	)
	left := a.Get(KindPred, "setp.ne.s32", high, 0)
	angle = m.Pick(
		left,
		m.Sub(m.Reg(math.Pi), angle),
		angle,
	)
	return m.Pick(
		a.Or(
			m.Is("nan", x, x),
			m.Is("nan", y, y),
		),
		m.Reg(math.NaN()),
		m.Op("copysign", y, angle),
	)
}

// Power is e^(y·ln |x|). Integers y give negative x their sign.
func (m Floats) Power(x, y Operand) Operand {
	hi, lo := m.logPair(m.Abs(x))
	// Of 0, infinity and NaN the logarithm has one part.
	size := m.Abs(x)
	hi = m.Pick(
		m.Is("geu", size, m.C(math.Inf(1))),
		size,
		hi,
	)
	hi = m.Pick(
		m.Is("eq", x, m.C(0)),
		m.Reg(math.Inf(-1)),
		hi,
	)
	// The product y·ln|x| is kept in two parts, t + rest, because its absolute error
	// becomes a relative error of the power.
	t := m.Mul(y, hi)
	rest := m.FMA(
		y,
		lo,
		m.FMA(y, hi, m.Neg(t)),
	)
	rest = m.Pick(
		m.Is("lt", m.Abs(t), m.C(-leastExponent)), rest, m.Reg(0),
	)
	return m.powerSign(x, y, m.exponential(
		m.bounded(t, leastExponent, mostExponent), rest, 0,
	))
}

// Power32 is Power for numbers that were f32, with an error far below theirs.
func (m Floats) Power32(x, y Operand) Operand {
	return m.powerSign(
		x,
		y,
		m.exp(m.Mul(y, m.log(m.Abs(x)))),
	)
}

// powerSign is size with the sign of the power of x by y, and its special cases.
func (m Floats) powerSign(x, y, size Operand) Operand {
	a := m.code
	whole := m.Is("eq", m.round(y), y)
	half := m.Mul(y, m.C(0.5))
	odd := a.And(
		whole,
		m.Is("neu", m.round(half), half),
	)
	v := m.Pick(
		odd, m.Op("copysign", x, size), size,
	)
	v = m.Pick(
		a.And(
			a.And(
				m.Is("lt", x, m.C(0)),
				m.Is("gt", x, m.C(math.Inf(-1))),
			),
			a.Not(whole),
		),
		m.Reg(math.NaN()),
		v,
	)
	one := a.Or(
		m.Is("eq", x, m.C(1)),
		m.Is("eq", y, m.C(0)),
	)
	one = a.Or(one, a.And( // of −1, too
		m.Is("eq", m.Abs(x), m.C(1)),
		m.Is("eq", m.Abs(y), m.C(math.Inf(1))),
	))
	return m.Pick(one, m.Reg(1), v)
}
