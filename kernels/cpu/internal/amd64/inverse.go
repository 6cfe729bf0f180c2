package amd64

import "math"

// Functions that have the same steps in f32 and f64: of angles, hyperbolic functions and
// their inverses, cube roots. The bounds in ulp are those of TestUlp and TestUlp64.

// Parts of π that an f64 has not.
const (
	halfPiLow = 6.12323399573676603587e-17
	piLow     = 2 * halfPiLow
)

// lessThan is the number less what an f64 lacks of it, in the type: high and low are parts
// of a number of more digits, and v is subtracted from both.
func (r real) lessThan(high, low float64, v Value) Value {
	if !r.double {
		single := float64(float32(high))
		low += high - single
		high = single
	}
	return r.do(VSUBPS, r.number(high), r.do(VSUBPS, v, r.number(low)))
}

// atanTerms are the coefficients of (atan x / x − 1)/x² in x² for |x| ≤ 1.
var atanTerms = map[bool][]float64{
	false: {
		-0.333333283662796, 0.19999699294567108, -0.1428021788597107, 0.11060766875743866,
		-0.08820682018995285, 0.06763534247875214, -0.04499990865588188, 0.022804241627454758,
		-0.00744270347058773, 0.001138793071731925,
	},
	true: {
		-0.33333333333333126, 0.1999999999995985, -0.14285714283010323, 0.1111111101890431,
		-0.09090907201525938, 0.07692282055708234, -0.06666421526715299, 0.05880628735368207,
		-0.05253957125652389, 0.04723781584015949, -0.042229399895506725, 0.03671743492514807,
		-0.030022134361519345, 0.0221286607325244, -0.014034820526676211, 0.007290855301231919,
		-0.002933178441319914, 0.0008482717611430043, -0.00015581482202402057, 1.3589487252445663e-05,
	},
}

// asinTerms are the coefficients of (asin x / x − 1)/x² in x² for |x| ≤ ½.
var asinTerms = map[bool][]float64{
	false: {
		0.16666659712791443, 0.0750049501657486, 0.04451816901564598, 0.03179997578263283,
		0.014461846090853214, 0.03748980909585953,
	},
	true: {
		0.16666666666665653, 0.07500000000294611, 0.04464285685601303, 0.030381958191639278,
		0.02237177740573625, 0.01735944994398211, 0.013887469956973661, 0.012156014116700559,
		0.006579870576249014, 0.019397998532872617, -0.016035361130005112, 0.03179187040267386,
	},
}

// arcTangent is the angle of the point (x, y): the quotient of the smaller by the larger
// coordinate is at most 1, and its angle is taken from what the larger one says.
func (r real) arcTangent(y, x Value) Value {
	a, b := r.magnitudeOf(y), r.magnitudeOf(x)
	over, under := r.do(VMINPS, a, b), r.do(VMAXPS, a, b)
	q := r.do(VDIVPS, over, under)
	infinite := r.compare(over, r.infinity(), compareEQ)
	q = r.choose(infinite, r.number(1), q)
	some := r.compare(under, r.number(0), compareNotEqual)
	q = r.Do(VANDPS, q, some)
	z := r.do(VMULPS, q, q)
	p := r.halves(z, atanTerms[r.double]...)
	angle := r.mulAdd(r.do(VMULPS, p, z), q, q)
	steep := r.compare(b, a, compareLT)
	angle = r.choose(steep, r.lessThan(math.Pi/2, halfPiLow, angle), angle)
	angle = r.choose(x, r.lessThan(math.Pi, piLow, angle), angle)
	undefined := r.compare(x, y, compareUnordered)
	return r.withSign(r.Do(VORPS, angle, undefined), y)
}

// Atan232 returns the angle of (x, y), as atan2 of C, within 2 ulp.
func (c *Chain) Atan232(y, x Value) Value { return real{c, false}.arcTangent(y, x) }

// Atan264 returns the angle of (x, y), as atan2 of C, within 3 ulp.
func (c *Chain) Atan264(y, x Value) Value { return real{c, true}.arcTangent(y, x) }

// arcSine returns asin s, where s is |x| or, of |x| > ½, sqrt((1 − |x|)/2), whose arc sine
// is half of what asin |x| lacks of π/2; far is the mask of these.
func (r real) arcSine(a Value) (angle, far Value) {
	far = r.compare(r.number(0.5), a, compareLT)
	rest := r.negMulAdd(a, r.number(0.5), r.number(0.5))
	z := r.choose(far, rest, r.do(VMULPS, a, a))
	s := r.choose(far, r.do(VSQRTPS, rest), a)
	p := r.halves(z, asinTerms[r.double]...)
	return r.mulAdd(r.do(VMULPS, p, z), s, s), far
}

// asin is asin x.
func (r real) asin(x Value) Value {
	half, far := r.arcSine(r.magnitudeOf(x))
	twice := r.do(VADDPS, half, half)
	rest := r.lessThan(math.Pi/2, halfPiLow, twice)
	return r.withSign(r.choose(far, rest, half), x)
}

// acos is acos x.
func (r real) acos(x Value) Value {
	half, far := r.arcSine(r.magnitudeOf(x))
	twice := r.do(VADDPS, half, half)
	away := r.choose(x, r.lessThan(math.Pi, piLow, twice), twice)
	signed := r.Do(VXORPS, half, r.signOf(x))
	return r.choose(far, away, r.lessThan(math.Pi/2, halfPiLow, signed))
}

// quarter is (e^a − 1)/4 for a ≥ 0, or infinite.
func (r real) quarter(a Value) Value {
	if r.double {
		return r.parted64(r.do(VMINPS, r.number(710.6), a), 2)
	}
	d := r.reduce(r.AtMost32(a, 89.5))
	scale := r.Do(VPSLLD, d.shifted, Imm(mantissa))
	scale = r.Do(VPADDD, scale, r.Const32(oneBits-2<<mantissa))
	lacking := r.do(VSUBPS, scale, r.number(0.25))
	return r.mulAdd(r.reducedExpm1(d), scale, lacking)
}

// sinh is sinh x = 2(q + q/(4q + 1)) with 4q = e^|x| − 1.
func (r real) sinh(x Value) Value {
	a := r.magnitudeOf(x)
	q := r.quarter(a)
	inverse := r.do(VDIVPS, q, r.mulAdd(q, r.number(4), r.number(1)))
	sum := r.do(VADDPS, q, inverse)
	sum = r.do(VADDPS, sum, sum)
	return r.withSign(r.choose(r.tinyOf(a), a, sum), x)
}

// tinyOf is the mask of magnitudes whose odd functions with slope 1 are themselves.
func (r real) tinyOf(a Value) Value {
	limit := 1.0 / (1 << 13)
	if r.double {
		limit = 1.0 / (1 << 28)
	}
	return r.compare(a, r.number(limit), compareLT)
}

// cosh is cosh x = 2(q + ¼ + ¼/(4q + 1)).
func (r real) cosh(x Value) Value {
	q := r.quarter(r.magnitudeOf(x))
	inverse := r.do(VDIVPS, r.number(0.25), r.mulAdd(q, r.number(4), r.number(1)))
	sum := r.do(VADDPS, r.do(VADDPS, q, r.number(0.25)), inverse)
	return r.do(VADDPS, sum, sum)
}

// log1p is ln(1 + x).
func (r real) log1p(x Value) Value {
	if r.double {
		return r.Log1p64(x)
	}
	return r.Log1p32(x)
}

// farLog is ln(1 + near), or ln 2a where a is so large that it is that of a + sqrt(a² ± 1).
func (r real) farLog(a, near Value) Value {
	limit := float64(1 << 24)
	if r.double {
		limit = 1 << 54
	}
	far := r.compare(r.number(limit), a, compareLT)
	log := r.log1p(r.choose(far, a, near))
	return r.do(VADDPS, log, r.Do(VANDPS, far, r.number(math.Ln2)))
}

// asinh is asinh x = ln(1 + a + a²/(1 + sqrt(a² + 1))) with a = |x|, and its sign.
func (r real) asinh(x Value) Value {
	a := r.magnitudeOf(x)
	root := r.do(VSQRTPS, r.mulAdd(a, a, r.number(1)))
	square := r.do(VMULPS, a, a)
	more := r.do(VDIVPS, square, r.do(VADDPS, root, r.number(1)))
	log := r.farLog(a, r.do(VADDPS, a, more))
	return r.withSign(r.choose(r.tinyOf(a), a, log), x)
}

// acosh is acosh x = ln(1 + t + sqrt(2t + t²)) with t = x − 1, NaN below 1.
func (r real) acosh(x Value) Value {
	t := r.do(VSUBPS, x, r.number(1))
	root := r.do(VSQRTPS, r.mulAdd(t, t, r.do(VADDPS, t, t)))
	log := r.farLog(x, r.do(VADDPS, t, root))
	return r.Do(VORPS, log, r.compare(x, r.number(1), compareLT))
}

// atanh is atanh x = ln(1 + 2a/(1 − a))/2 with a = |x|, and its sign.
func (r real) atanh(x Value) Value {
	a := r.magnitudeOf(x)
	less := r.do(VSUBPS, r.number(1), a)
	log := r.log1p(r.do(VDIVPS, r.do(VADDPS, a, a), less))
	half := r.do(VMULPS, log, r.number(0.5))
	half = r.choose(r.tinyOf(a), a, half)
	return r.Do(VORPS, half, r.signOf(x))
}

// rootGuess is a third of the exponent of a, and of its digits, within 4 % of its cube root
// (Kahan; the constants are those of FreeBSD's msun, s_cbrt.c and s_cbrtf.c).
func (r real) rootGuess(a Value) Value {
	third := r.Do(VMULPS, r.Do(VCVTDQ2PS, a), r.Const32(math.Float32bits(1.0/3)))
	bits := r.Do(VCVTPS2DQ, third)
	if r.double {
		bits = r.Do(VPADDD, bits, r.Const64(715094163<<32))
		return r.Do(VPAND, bits, r.Const64(0xffffffff<<32))
	}
	return r.Do(VPADDD, bits, r.Const32(709958130))
}

// cbrt is the real cube root: a guess, a step of Halley and one of Newton, whose residue is
// rounded once.
func (r real) cbrt(x Value) Value {
	a := r.magnitudeOf(x)
	tiny := r.compare(a, r.pattern(1<<mantissa, 1<<mantissa64), compareLT)
	normal := r.choose(tiny, r.do(VMULPS, a, r.number(1<<54)), a)
	t := r.rootGuess(normal)
	steps := 1
	if r.double {
		steps = 2
	}
	part := r.do(VMULPS, normal, r.number(0.25))
	for range steps {
		cube := r.do(VMULPS, r.do(VMULPS, t, t), r.do(VMULPS, t, r.number(0.25)))
		over := r.do(VADDPS, cube, r.do(VADDPS, part, part))
		under := r.do(VADDPS, part, r.do(VADDPS, cube, cube))
		t = r.do(VMULPS, t, r.do(VDIVPS, over, under))
	}
	square := r.do(VMULPS, t, t)
	excess := r.do(VDIVPS, r.mulSub(square, t, normal), square)
	t = r.negMulAdd(excess, r.number(1.0/3), t)
	t = r.choose(tiny, r.do(VMULPS, t, r.number(1.0/(1<<18))), t)
	zero := r.compare(a, r.number(0), compareEQ)
	same := r.Do(VORPS, zero, r.notFinite(a))
	return r.choose(same, x, r.withSign(t, x))
}

// Functions of f32, within 4 ulp.

// Asin32 returns asin x.
func (c *Chain) Asin32(x Value) Value { return real{c, false}.asin(x) }

// Acos32 returns acos x.
func (c *Chain) Acos32(x Value) Value { return real{c, false}.acos(x) }

// Sinh32 returns sinh x.
func (c *Chain) Sinh32(x Value) Value { return real{c, false}.sinh(x) }

// Cosh32 returns cosh x.
func (c *Chain) Cosh32(x Value) Value { return real{c, false}.cosh(x) }

// Asinh32 returns asinh x.
func (c *Chain) Asinh32(x Value) Value { return real{c, false}.asinh(x) }

// Acosh32 returns acosh x.
func (c *Chain) Acosh32(x Value) Value { return real{c, false}.acosh(x) }

// Atanh32 returns atanh x.
func (c *Chain) Atanh32(x Value) Value { return real{c, false}.atanh(x) }

// Cbrt32 returns the cube root of x.
func (c *Chain) Cbrt32(x Value) Value { return real{c, false}.cbrt(x) }

// Functions of f64, within 4 ulp.

// Asin64 returns asin x.
func (c *Chain) Asin64(x Value) Value { return c.double().asin(x) }

// Acos64 returns acos x.
func (c *Chain) Acos64(x Value) Value { return c.double().acos(x) }

// Sinh64 returns sinh x.
func (c *Chain) Sinh64(x Value) Value { return c.double().sinh(x) }

// Cosh64 returns cosh x.
func (c *Chain) Cosh64(x Value) Value { return c.double().cosh(x) }

// Asinh64 returns asinh x.
func (c *Chain) Asinh64(x Value) Value { return c.double().asinh(x) }

// Acosh64 returns acosh x.
func (c *Chain) Acosh64(x Value) Value { return c.double().acosh(x) }

// Atanh64 returns atanh x.
func (c *Chain) Atanh64(x Value) Value { return c.double().atanh(x) }

// Cbrt64 returns the cube root of x.
func (c *Chain) Cbrt64(x Value) Value { return c.double().cbrt(x) }
