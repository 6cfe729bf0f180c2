package parts

import (
	"math"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// A term is a real array in a formula.
type term struct {
	b *builder
	i *hlo.Instr
}

// A number is a complex array in a formula: its parts.
type number struct{ re, im term }

// of appends an elementwise operation on terms.
func (x term) of(op hlo.Opcode, others ...term) term {
	operands := []*hlo.Instr{x.i}
	for _, o := range others {
		operands = append(operands, o.i)
	}
	return term{x.b, x.b.add(op, partShape(x.i.Shape), hlo.Attrs{}, operands...)}
}

// num is an array of one number, of the shape of x.
func (x term) num(v float64) term { return term{x.b, x.b.number(x.i.Shape, v)} }

// Arithmetic on terms of one shape.
func (x term) plus(y term) term      { return x.of(hlo.OpAdd, y) }
func (x term) minus(y term) term     { return x.of(hlo.OpSubtract, y) }
func (x term) times(y term) term     { return x.of(hlo.OpMultiply, y) }
func (x term) over(y term) term      { return x.of(hlo.OpDivide, y) }
func (x term) scaled(v float64) term { return x.times(x.num(v)) }
func (x term) neg() term             { return x.of(hlo.OpNegate) }
func (x term) abs() term             { return x.of(hlo.OpAbs) }

// Predicates are joined bit by bit.
func (x term) and(y term) term { return x.of(hlo.OpAnd, y) }
func (x term) or(y term) term  { return x.of(hlo.OpOr, y) }

// is compares; x of pred is what it makes.
func (x term) is(direction string, y term) term {
	s := partShape(x.i.Shape)
	s.DType = hlo.Pred
	return term{x.b, x.b.add(hlo.OpCompare, s, hlo.Attrs{Direction: direction}, x.i, y.i)}
}

// then is x where the predicate holds, else y.
func (p term) then(x, y term) term {
	return term{p.b, p.b.add(hlo.OpSelect, partShape(x.i.Shape), hlo.Attrs{}, p.i, x.i, y.i)}
}

// Tests of the kind of a number. NaN is neither infinite nor finite, nor zero.
func (x term) isZero() term     { return x.is("EQ", x.num(0)) }
func (x term) isInfinite() term { return x.abs().is("EQ", x.num(math.Inf(1))) }
func (x term) isFinite() term   { return x.abs().is("LT", x.num(math.Inf(1))) }

// isNegative holds for −0, too, whose reciprocal is −∞.
func (x term) isNegative() term {
	return x.is("LT", x.num(0)).or(x.num(1).over(x).is("LT", x.num(0)))
}

// choose is z where the predicate holds, else w.
func choose(p term, z, w number) number {
	return number{p.then(z.re, w.re), p.then(z.im, w.im)}
}

// elementwise writes an operation by its formula.
func (b *builder) elementwise(i *hlo.Instr) ([]*hlo.Instr, error) {
	args := make([]number, len(i.Operands))
	for k, o := range i.Operands {
		p := b.parts[o]
		args[k].re = term{b, p[0]}
		if len(p) > 1 {
			args[k].im = term{b, p[1]}
		}
	}
	d := i.Shape.DType
	switch f, g, h := functions[i.Op], binaries[i.Op], i.Attrs.Direction; {
	case i.Op == hlo.OpComplex:
		return []*hlo.Instr{args[0].re.i, args[1].re.i}, nil
	case i.Op == hlo.OpReal:
		return []*hlo.Instr{args[0].re.i}, nil
	case i.Op == hlo.OpImag:
		return []*hlo.Instr{args[0].im.i}, nil
	case i.Op == hlo.OpAbs:
		return []*hlo.Instr{magnitude(args[0]).i}, nil
	case i.Op == hlo.OpConvert && d.IsComplex():
		return b.convert(i), nil
	case i.Op == hlo.OpCompare && h == "EQ":
		return []*hlo.Instr{args[0].re.is(h, args[1].re).and(args[0].im.is(h, args[1].im)).i}, nil
	case i.Op == hlo.OpCompare && h == "NE":
		return []*hlo.Instr{args[0].re.is(h, args[1].re).or(args[0].im.is(h, args[1].im)).i}, nil
	case f != nil && d.IsComplex():
		return f(args[0]).instrs(), nil
	case g != nil && d.IsComplex():
		return g(args[0], args[1]).instrs(), nil
	case i.Op == hlo.OpCompare:
		return nil, b.undefined("complex numbers have no order: %s", h)
	}
	return nil, b.undefined("it is not defined for complex numbers")
}

// instrs are the two parts.
func (z number) instrs() []*hlo.Instr { return []*hlo.Instr{z.re.i, z.im.i} }

// convert converts the parts; those of a real number are it and 0.
func (b *builder) convert(i *hlo.Instr) []*hlo.Instr {
	s := partShape(i.Shape)
	var all []*hlo.Instr
	for _, p := range b.parts[i.Operands[0]] {
		if p.Shape.DType != s.DType {
			p = b.add(hlo.OpConvert, s, hlo.Attrs{}, p)
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
	hlo.OpCbrt:                func(z number) number { return power(z, number{z.re.num(1.0 / 3), z.re.num(0)}) },
	hlo.OpCosine:              cosine,
	hlo.OpExponential:         exponential,
	hlo.OpExponentialMinusOne: exponentialMinusOne,
	hlo.OpLog:                 logarithm,
	hlo.OpLogPlusOne:          logarithmPlusOne,
	hlo.OpLogistic:            logistic,
	hlo.OpNegate:              func(z number) number { return number{z.re.neg(), z.im.neg()} },
	hlo.OpRsqrt:               func(z number) number { return quotient(one(z), root(z)) },
	hlo.OpSign:                sign,
	hlo.OpSine:                sine,
	hlo.OpSqrt:                root,
	hlo.OpTan:                 tangent,
	hlo.OpTanh:                hyperbolicTangent,
}

// binaries are the operations on two complex numbers.
var binaries = map[hlo.Opcode]func(z, w number) number{
	hlo.OpAdd:      func(z, w number) number { return number{z.re.plus(w.re), z.im.plus(w.im)} },
	hlo.OpSubtract: func(z, w number) number { return number{z.re.minus(w.re), z.im.minus(w.im)} },
	hlo.OpMultiply: product,
	hlo.OpDivide:   quotient,
	hlo.OpPower:    power,
}

// one is 1, of the shape of z.
func one(z number) number { return number{z.re.num(1), z.re.num(0)} }

// product is z·w.
func product(z, w number) number {
	return number{
		z.re.times(w.re).minus(z.im.times(w.im)),
		z.re.times(w.im).plus(z.im.times(w.re)),
	}
}

// polar is the larger part of z in magnitude, and the smaller one over it: |z| is
// m·√(1 + q²), without overflow. If a part is infinite, m is and q is 0.
func polar(z number) (m, q term) {
	x, y := z.re.abs(), z.im.abs()
	infinite := z.re.isInfinite().or(z.im.isInfinite())
	m = infinite.then(x.num(math.Inf(1)), x.of(hlo.OpMaximum, y))
	q = x.of(hlo.OpMinimum, y).over(m)
	return m, infinite.or(m.isZero()).then(x.num(0), q)
}

// hypotenuse is √(1 + q²).
func hypotenuse(q term) term { return q.num(1).plus(q.times(q)).of(hlo.OpSqrt) }

// magnitude is |z|.
func magnitude(z number) term {
	m, q := polar(z)
	return m.times(hypotenuse(q))
}

// sign is z/|z|; 0 of 0.
func sign(z number) number {
	m := magnitude(z)
	zero := m.isZero()
	return number{
		zero.then(m.num(0), z.re.over(m)),
		zero.then(m.num(0), z.im.over(m)),
	}
}

// quotient is z/w by Smith's algorithm, with the zeros and infinities of C99's Annex G.
func quotient(z, w number) number {
	a, b, c, d := z.re, z.im, w.re, w.im
	wide := c.abs().is("GE", d.abs())
	p, q := wide.then(c, d), wide.then(d, c)
	r := q.over(p)
	under := p.plus(q.times(r))
	x, y := wide.then(a, b), wide.then(b, a)
	// The larger part of w divides both, so that no square overflows.
	v := number{
		x.plus(y.times(r)).over(under),
		wide.then(b.minus(a.times(r)), b.times(r).minus(a)).over(under),
	}
	v = choose(c.isZero().and(d.isZero()), number{a.over(c), b.over(c)}, v)
	// A number with an infinite part over a finite one is infinite, in the direction
	// that ±1 in its place would have; a finite one over it is 0.
	infinite, vanishing := boxed(z), boxed(w)
	v = choose(
		infinite.any.and(c.isFinite()).and(d.isFinite()),
		infinite.times(w, math.Inf(1)), v,
	)
	return choose(
		vanishing.any.and(a.isFinite()).and(b.isFinite()),
		timesConjugate(z, vanishing.number, 0), v,
	)
}

// A boxedNumber has ±1 for the infinite parts of a number, and 0 for others.
type boxedNumber struct {
	number
	any term // whether a part is infinite
}

// boxed is the boxedNumber of z.
func boxed(z number) boxedNumber {
	re, im := z.re.isInfinite(), z.im.isInfinite()
	return boxedNumber{
		number{
			re.then(z.re.of(hlo.OpSign), z.re.num(0)),
			im.then(z.im.of(hlo.OpSign), z.im.num(0)),
		},
		re.or(im),
	}
}

// times is the boxed number times the conjugate of w, and a real number.
func (z boxedNumber) times(w number, v float64) number { return timesConjugate(z.number, w, v) }

// timesConjugate is v·z·w̄.
func timesConjugate(z, w number, v float64) number {
	return number{
		z.re.times(w.re).plus(z.im.times(w.im)).scaled(v),
		z.im.times(w.re).minus(z.re.times(w.im)).scaled(v),
	}
}

// exponential is e^x·(cos y + i·sin y). The root of e^x is multiplied twice, because
// e^x may overflow where the product does not.
func exponential(z number) number {
	half := z.re.scaled(0.5).of(hlo.OpExponential)
	vanishes := z.re.is("EQ", z.re.num(math.Inf(-1)))
	grows := z.re.is("EQ", z.re.num(math.Inf(1)))
	zero := z.re.num(0)
	re := half.times(z.im.of(hlo.OpCosine)).times(half)
	im := half.times(z.im.of(hlo.OpSine)).times(half)
	// C99 has an infinite real part whatever the angle, unless that is known.
	re = grows.and(z.im.is("NE", z.im).or(z.im.isInfinite())).then(z.re, re)
	return number{
		vanishes.then(zero, re),
		z.im.isZero().then(z.im, vanishes.then(zero, im)),
	}
}

// exponentialMinusOne is e^z − 1: eˣ·cos y − 1 = (eˣ − 1)·cos y − 2·sin²(y/2).
func exponentialMinusOne(z number) number {
	s := z.im.scaled(0.5).of(hlo.OpSine)
	re := z.re.of(hlo.OpExponentialMinusOne).times(z.im.of(hlo.OpCosine))
	return number{re.minus(s.times(s).scaled(2)), exponential(z).im}
}

// logarithm is log|z| + i·the angle of z.
func logarithm(z number) number {
	m, q := polar(z)
	return number{
		m.of(hlo.OpLog).plus(q.times(q).of(hlo.OpLogPlusOne).scaled(0.5)),
		z.im.of(hlo.OpAtan2, z.re),
	}
}

// logarithmPlusOne is log(1 + z); near 0, log|1 + z| is half of log(1 + x(2 + x) + y²).
func logarithmPlusOne(z number) number {
	m, _ := polar(z)
	shifted := logarithm(number{z.re.plus(z.re.num(1)), z.im})
	near := z.re.times(z.re.plus(z.re.num(2))).plus(z.im.times(z.im))
	near = near.of(hlo.OpLogPlusOne).scaled(0.5)
	return number{m.is("LT", m.num(0.5)).then(near, shifted.re), shifted.im}
}

// logistic is 1/(1 + e^−z).
func logistic(z number) number {
	// e^−z may be infinite, of which the quotient is 0.
	e := exponential(number{z.re.neg(), z.im.neg()})
	return quotient(one(z), number{e.re.plus(e.re.num(1)), e.im})
}

// root is the root whose real part is not negative: with r = √((|z| + |x|)/2) it is
// r + i·y/2r, or |y|/2r ± i·r where x is negative.
func root(z number) number {
	// |x|/m, which is 1 or q, of infinities what they tend to.
	m, q := polar(z)
	share := z.re.isInfinite().then(m.num(1), z.re.abs().over(m))
	share = m.isZero().or(z.im.isInfinite()).then(m.num(0), share)
	r := m.of(hlo.OpSqrt).times(hypotenuse(q).plus(share).scaled(0.5).of(hlo.OpSqrt))
	// The part that is a difference follows from the product of both, y/2.
	other := z.im.over(r.scaled(2))
	v := choose(
		z.re.is("GE", z.re.num(0)),
		number{r, other},
		number{other.abs(), z.im.isNegative().then(r.neg(), r)},
	)
	v = choose(m.isZero(), number{m, z.im}, v)
	return choose(z.im.isInfinite(), number{m, z.im}, v)
}

// sine is sin x·cosh y + i·cos x·sinh y.
func sine(z number) number {
	x, y := z.re, z.im
	return number{
		x.isZero().then(x, x.of(hlo.OpSine).times(y.of(hlo.OpCosh))),
		y.isZero().then(y, x.of(hlo.OpCosine).times(y.of(hlo.OpSinh))),
	}
}

// cosine is cos x·cosh y − i·sin x·sinh y.
func cosine(z number) number {
	x, y := z.re, z.im
	im := x.of(hlo.OpSine).times(y.of(hlo.OpSinh)).neg()
	flat := x.isZero().and(y.isInfinite()).or(y.isZero().and(x.isInfinite()))
	return number{
		x.of(hlo.OpCosine).times(y.of(hlo.OpCosh)),
		flat.then(x.num(0), im),
	}
}

// large is a real part beyond which e^(2x) swamps all that is added to it.
const large = 20

// hyperbolicTangent is Kahan's: with t = tan y, s = sinh x and β = 1 + t² it is
// (β·√(1 + s²)·s + i·t)/(1 + β·s²); for large x, ±1 + i·4·sin y·cos y·e^(−2|x|).
func hyperbolicTangent(z number) number {
	x, y := z.re, z.im
	t, s := y.of(hlo.OpTan), x.of(hlo.OpSinh)
	beta := t.times(t).plus(t.num(1))
	squared := s.times(s)
	under := beta.times(squared).plus(s.num(1))
	rho := squared.plus(s.num(1)).of(hlo.OpSqrt)
	v := number{beta.times(rho).times(s).over(under), t.over(under)}
	// sinh² would overflow, and e^(−2|x|) is below half a unit of 1.
	small := x.abs().scaled(-2).of(hlo.OpExponential).scaled(4)
	small = y.of(hlo.OpSine).times(y.of(hlo.OpCosine)).times(small)
	far := number{x.of(hlo.OpSign), x.isInfinite().then(x.num(0), small)}
	return choose(x.abs().is("GT", x.num(large)), far, v)
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
	// One exponential of the sum, because a factor may overflow where the product does
	// not.
	l := logarithm(z)
	m := magnitude(z)
	c, d, angle := w.re, w.im, l.im
	r := d.isZero().then(
		m.of(hlo.OpPower, c),
		c.times(l.re).minus(d.times(angle)).of(hlo.OpExponential),
	)
	turn := d.isZero().then(d, d.times(l.re))
	angle = c.times(angle).plus(turn)
	v := number{
		r.times(angle.of(hlo.OpCosine)),
		angle.isZero().then(angle, r.times(angle.of(hlo.OpSine))),
	}
	// log|z| is −∞ there, and the formula NaN.
	zero, nan, infinite := m.num(0), m.num(math.NaN()), m.num(math.Inf(1))
	isReal := d.isZero()
	atZero := number{
		c.is("GT", zero).then(zero, c.is("LT", zero).then(infinite, isReal.then(m.num(1), nan))),
		isReal.or(c.is("GT", zero)).then(zero, c.is("LT", zero).then(infinite, nan)),
	}
	return choose(m.isZero(), atZero, v)
}
