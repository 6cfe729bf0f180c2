package parts

import (
	"math"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// elementwise writes an operation by its formula.
func (b *builder) elementwise(i *hlo.Instr) (values, error) {
	// An operation has one operand or two.
	args := make([]number, max(2, len(i.Operands)))
	for k, o := range i.Operands {
		p := b.parts[o]
		args[k].re = term{b, p[0]}
		if len(p) > 1 {
			args[k].im = term{b, p[1]}
		}
	}
	x, y := args[0], args[1]
	unary := functions[i.Op]
	binary := binaries[i.Op]
	direction := i.Attrs.Direction
	isComplex := i.Shape.DType.IsComplex()
	switch {
	case i.Op == hlo.OpComplex:
		return values{x.re.i, y.re.i}, nil
	case i.Op == hlo.OpReal:
		return values{x.re.i}, nil
	case i.Op == hlo.OpImag:
		return values{x.im.i}, nil
	case i.Op == hlo.OpAbs:
		return values{magnitude(x).i}, nil
	case i.Op == hlo.OpConvert && isComplex:
		return b.convert(i), nil
	case i.Op == hlo.OpCompare && direction == "EQ":
		return values{x.equals(y).i}, nil
	case i.Op == hlo.OpCompare && direction == "NE":
		return values{x.differs(y).i}, nil
	case unary != nil && isComplex:
		return unary(x).instrs(), nil
	case binary != nil && isComplex:
		return binary(x, y).instrs(), nil
	case i.Op == hlo.OpCompare:
		return nil, b.undefined("complex numbers have no order: %s", direction)
	}
	return nil, b.undefined("it is not defined for complex numbers")
}

// convert converts the parts; those of a real number are it and 0.
func (b *builder) convert(i *hlo.Instr) values {
	s := partShape(i.Shape)
	var all values
	for _, p := range b.parts[i.Operands[0]] {
		if p.Shape.DType != s.DType {
			p = b.plain(hlo.OpConvert, s, p)
		}
		all = append(all, p)
	}
	if len(all) == 1 {
		all = append(all, b.number(s, 0))
	}
	return all
}

// functions are the operations on one complex number.
var functions = map[hlo.Opcode]func(number) number{
	hlo.OpCbrt:                cubeRoot,
	hlo.OpCosine:              cosine,
	hlo.OpExponential:         exponential,
	hlo.OpExponentialMinusOne: exponentialMinusOne,
	hlo.OpLog:                 logarithm,
	hlo.OpLogPlusOne:          logarithmPlusOne,
	hlo.OpLogistic:            logistic,
	hlo.OpNegate:              negative,
	hlo.OpRsqrt:               reciprocalRoot,
	hlo.OpSign:                sign,
	hlo.OpSine:                sine,
	hlo.OpSqrt:                root,
	hlo.OpTan:                 tangent,
	hlo.OpTanh:                hyperbolicTangent,
}

// binaries are the operations on two complex numbers.
var binaries = map[hlo.Opcode]func(z, w number) number{
	hlo.OpAdd:      sum,
	hlo.OpSubtract: difference,
	hlo.OpMultiply: product,
	hlo.OpDivide:   quotient,
	hlo.OpPower:    power,
}

// constant is the real number v, of the shape of z.
func constant(z number, v float64) number {
	return number{z.re.num(v), z.re.num(0)}
}

// negative is −z.
func negative(z number) number {
	return number{z.re.neg(), z.im.neg()}
}

// sum is z + w.
func sum(z, w number) number {
	re := z.re.plus(w.re)
	return number{re, z.im.plus(w.im)}
}

// difference is z − w.
func difference(z, w number) number {
	re := z.re.minus(w.re)
	return number{re, z.im.minus(w.im)}
}

// product is z·w.
func product(z, w number) number {
	re := z.re.times(w.re)
	re = re.minus(z.im.times(w.im))
	im := z.re.times(w.im)
	im = im.plus(z.im.times(w.re))
	return number{re, im}
}

// polar is the larger part of z in magnitude, and the smaller one over it: |z| is
// m·√(1 + q²), without overflow. If a part is infinite, m is and q is 0.
func polar(z number) (m, q term) {
	x := z.re.abs()
	y := z.im.abs()
	infinite := z.re.isInfinite()
	infinite = infinite.or(z.im.isInfinite())
	m = infinite.then(
		x.infinity(),
		x.of(hlo.OpMaximum, y),
	)
	q = x.of(hlo.OpMinimum, y)
	q = q.over(m)
	// 0/0 and ∞/∞ are NaN.
	unknown := infinite.or(m.isZero())
	return m, unknown.then(x.num(0), q)
}

// hypotenuse is √(1 + q²).
func hypotenuse(q term) term {
	squares := q.num(1).plus(q.square())
	return squares.root()
}

// magnitude is |z|.
func magnitude(z number) term {
	m, q := polar(z)
	return m.times(hypotenuse(q))
}

// sign is z/|z|; 0 of 0.
func sign(z number) number {
	// 0/0 would be NaN.
	m := magnitude(z)
	zero := m.isZero()
	re := zero.then(m.num(0), z.re.over(m))
	im := zero.then(m.num(0), z.im.over(m))
	return number{re, im}
}

// quotient is z/w by Smith's algorithm, with the zeros and infinities of C99's Annex G.
func quotient(z, w number) number {
	a, b := z.re, z.im
	c, d := w.re, w.im
	// p is the larger part of w, q the other one, and x and y go with them.
	wide := c.abs().is("GE", d.abs())
	p := wide.then(c, d)
	q := wide.then(d, c)
	r := q.over(p)
	under := p.plus(q.times(r))
	x := wide.then(a, b)
	y := wide.then(b, a)
	// The larger part of w divides both, so that no square overflows.
	re := x.plus(y.times(r)).over(under)
	im := wide.then(
		b.minus(a.times(r)),
		b.times(r).minus(a),
	)
	v := number{re, im.over(under)}
	// Over 0, the signs of the infinities are those of the parts over its real part.
	v = choose(
		c.isZero().and(d.isZero()),
		number{a.over(c), b.over(c)},
		v,
	)
	// A number with an infinite part over a finite one is infinite, in the direction
	// that ±1 in its place would have; a finite one over it is 0.
	infinite, vanishing := boxed(z), boxed(w)
	v = choose(
		infinite.any.andFinite(w),
		infinite.times(w, math.Inf(1)),
		v,
	)
	return choose(
		vanishing.any.andFinite(z),
		timesConjugate(z, vanishing.number, 0),
		v,
	)
}

// A boxedNumber has ±1 for the infinite parts of a number, and 0 for others.
type boxedNumber struct {
	number
	any term // whether a part is infinite
}

// boxed is the boxedNumber of z.
func boxed(z number) boxedNumber {
	re := z.re.isInfinite()
	im := z.im.isInfinite()
	ones := number{
		re.then(z.re.sign(), z.re.num(0)),
		im.then(z.im.sign(), z.im.num(0)),
	}
	return boxedNumber{ones, re.or(im)}
}

// times is the boxed number times the conjugate of w, and a real number.
func (z boxedNumber) times(w number, v float64) number {
	return timesConjugate(z.number, w, v)
}

// timesConjugate is v·z·w̄.
func timesConjugate(z, w number, v float64) number {
	re := z.re.times(w.re)
	re = re.plus(z.im.times(w.im))
	re = re.scaled(v)
	im := z.im.times(w.re)
	im = im.minus(z.re.times(w.im))
	return number{re, im.scaled(v)}
}

// exponential is e^x·(cos y + i·sin y). The root of e^x is multiplied twice, because
// e^x may overflow where the product does not.
func exponential(z number) number {
	x, y := z.re, z.im
	half := x.scaled(0.5).exp()
	vanished := x.num(math.Inf(-1))
	vanishes := x.is("EQ", vanished)
	grows := x.is("EQ", x.infinity())
	zero := x.num(0)
	re := half.times(y.cos())
	re = re.times(half)
	im := half.times(y.sin())
	im = im.times(half)
	// C99 has an infinite real part whatever the angle, unless that is known.
	unknown := y.is("NE", y).or(y.isInfinite())
	re = grows.and(unknown).then(x, re)
	re = vanishes.then(zero, re)
	// The sine of ±0 has its sign, the product with ∞ none.
	isReal := y.isZero()
	im = vanishes.then(zero, im)
	return number{re, isReal.then(y, im)}
}

// exponentialMinusOne is e^z − 1: eˣ·cos y − 1 = (eˣ − 1)·cos y − 2·sin²(y/2).
func exponentialMinusOne(z number) number {
	s := z.im.scaled(0.5).sin()
	re := z.re.of(hlo.OpExponentialMinusOne)
	re = re.times(z.im.cos())
	re = re.minus(s.square().scaled(2))
	return number{re, exponential(z).im}
}

// logarithm is log|z| + i·the angle of z.
func logarithm(z number) number {
	m, q := polar(z)
	re := m.of(hlo.OpLog)
	// log √(1 + q²).
	more := q.square().of(hlo.OpLogPlusOne)
	re = re.plus(more.scaled(0.5))
	return number{re, z.im.of(hlo.OpAtan2, z.re)}
}

// logarithmPlusOne is log(1 + z); near 0, log|1 + z| is half of log(1 + x(2 + x) + y²).
func logarithmPlusOne(z number) number {
	x, y := z.re, z.im
	m, _ := polar(z)
	shifted := logarithm(number{x.plusNum(1), y})
	near := x.times(x.plusNum(2))
	near = near.plus(y.square())
	near = near.of(hlo.OpLogPlusOne).scaled(0.5)
	isNear := m.is("LT", m.num(0.5))
	re := isNear.then(near, shifted.re)
	return number{re, shifted.im}
}

// logistic is 1/(1 + e^−z). With u = e^−|x| and c = 2·cos²(y/2), which is 1 + cos y, it is
// the sum of u·c + (1 − u) and i·u·sin y over (1 − u)² + 2·u·c, and to the left of 0 the
// real part is u·(c − (1 − u)). Sums of numbers that are not negative keep their digits
// near the poles, where 1 + e^−z cancels.
func logistic(z number) number {
	x, y := z.re, z.im
	down := x.abs().neg()
	u := down.exp()
	less := down.of(hlo.OpExponentialMinusOne)
	c := y.scaled(0.5).cos()
	c = c.square().scaled(2)
	wide := u.times(c)
	under := less.square().plus(wide.scaled(2))
	left := x.is("LT", x.num(0))
	re := left.then(
		wide.plus(u.times(less)),
		wide.minus(less),
	)
	im := u.times(y.sin())
	v := number{re.over(under), im.over(under)}
	// Of an infinite real part the angle does not matter.
	limit := left.then(x.num(0), x.num(1))
	return choose(x.isInfinite(), number{limit, x.num(0)}, v)
}

// root is the root whose real part is not negative: with r = √((|z| + |x|)/2) it is
// r + i·y/2r, or |y|/2r ± i·r where x is negative.
func root(z number) number {
	x, y := z.re, z.im
	m, q := polar(z)
	// |x|/m, which is 1 or q, of infinities what they tend to.
	share := x.isInfinite().then(
		m.num(1),
		x.abs().over(m),
	)
	vanishes := m.isZero().or(y.isInfinite())
	share = vanishes.then(m.num(0), share)
	r := m.root()
	half := hypotenuse(q).plus(share).scaled(0.5)
	r = r.times(half.root())
	// The part that is a difference follows from the product of both, y/2.
	other := y.over(r.scaled(2))
	right := number{r, other}
	// To the left of 0 the parts change places.
	v := choose(
		x.is("GE", x.num(0)),
		right,
		number{
			other.abs(),
			y.isNegative().then(r.neg(), r),
		},
	)
	// 0 and infinities along y are the larger part.
	v = choose(m.isZero(), number{m, y}, v)
	return choose(y.isInfinite(), number{m, y}, v)
}

// reciprocalRoot is 1/√z.
func reciprocalRoot(z number) number {
	return quotient(constant(z, 1), root(z))
}

// cubeRoot is the one of smallest angle.
func cubeRoot(z number) number {
	return power(z, constant(z, 1.0/3))
}

// sine is sin x·cosh y + i·cos x·sinh y. A part that is 0 stays, because its product
// with ∞ would be NaN.
func sine(z number) number {
	x, y := z.re, z.im
	zero := x.isZero()
	re := x.sin().times(y.cosh())
	re = zero.then(x, re)
	zero = y.isZero()
	im := x.cos().times(y.sinh())
	return number{re, zero.then(y, im)}
}

// cosine is cos x·cosh y − i·sin x·sinh y.
func cosine(z number) number {
	x, y := z.re, z.im
	im := x.sin().times(y.sinh())
	im = im.neg()
	// The product of 0 and ∞ is NaN.
	flat := x.isZero().and(y.isInfinite())
	other := y.isZero().and(x.isInfinite())
	flat = flat.or(other)
	re := x.cos().times(y.cosh())
	return number{re, flat.then(x.num(0), im)}
}

// large is a real part beyond which e^(2x) swamps all that is added to it.
const large = 20

// hyperbolicTangent is Kahan's: with t = tan y, s = sinh x and β = 1 + t² it is
// (β·√(1 + s²)·s + i·t)/(1 + β·s²); for large x, ±1 + i·4·sin y·cos y·e^(−2|x|).
func hyperbolicTangent(z number) number {
	x, y := z.re, z.im
	t := y.of(hlo.OpTan)
	s := x.sinh()
	beta := t.square().plus(t.num(1))
	squared := s.square()
	under := beta.times(squared).plus(s.num(1))
	rho := squared.plus(s.num(1)).root()
	re := beta.times(rho).times(s)
	v := number{re.over(under), t.over(under)}
	// sinh² would overflow, and e^(−2|x|) is below half a unit of 1.
	power := x.abs().scaled(-2).exp()
	small := power.scaled(4)
	turn := y.sin().times(y.cos())
	small = turn.times(small)
	far := number{
		x.sign(),
		x.isInfinite().then(x.num(0), small),
	}
	isFar := x.abs().is("GT", x.num(large))
	return choose(isFar, far, v)
}

// tangent is −i·tanh(iz).
func tangent(z number) number {
	// The product with ±i exchanges the parts.
	t := hyperbolicTangent(number{z.im.neg(), z.re})
	return number{t.im, t.re.neg()}
}

// power is e^(c·log|z| − d·θ), |z|^c where d is 0, at the angle c·θ + d·log|z|, for
// w = c + id and the angle θ of z. 0 to a positive power is 0, to 0 it is 1.
func power(z, w number) number {
	// The real part of the logarithm is log|z|.
	l := logarithm(z)
	m := magnitude(z)
	c, d := w.re, w.im
	angle := l.im
	isReal := d.isZero()
	// One exponential of the sum, because a factor may overflow where the product does
	// not.
	real := m.of(hlo.OpPower, c)
	sum := c.times(l.re)
	sum = sum.minus(d.times(angle))
	r := isReal.then(real, sum.exp())
	turn := d.isZero().then(d, d.times(l.re))
	angle = c.times(angle).plus(turn)
	re := r.times(angle.cos())
	straight := angle.isZero()
	im := r.times(angle.sin())
	im = straight.then(angle, im)
	// log|z| is −∞ there, and the formula NaN.
	zero := powerOfZero(m, w)
	return choose(m.isZero(), zero, number{re, im})
}

// powerOfZero is 0 to the power w = c + id: 0, 1 or ∞ by the sign of c, and NaN where
// the angle has no limit. It has the shape of m.
func powerOfZero(m term, w number) number {
	c, d := w.re, w.im
	zero := m.num(0)
	nan := m.num(math.NaN())
	infinite := m.infinity()
	isReal := d.isZero()
	re := c.is("GT", zero).then(
		zero,
		c.is("LT", zero).then(
			infinite,
			isReal.then(m.num(1), nan),
		),
	)
	// Without an angle the result is real, and so it is where it vanishes.
	known := isReal.or(c.is("GT", zero))
	im := known.then(
		zero,
		c.is("LT", zero).then(infinite, nan),
	)
	return number{re, im}
}
