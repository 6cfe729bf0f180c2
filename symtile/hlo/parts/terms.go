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
	operands := values{x.i}
	for _, o := range others {
		operands = append(operands, o.i)
	}
	s := partShape(x.i.Shape)
	return term{x.b, x.b.plain(op, s, operands...)}
}

// num is an array of one number, of the shape of x.
func (x term) num(v float64) term {
	return term{x.b, x.b.number(x.i.Shape, v)}
}

// infinity is +∞, of the shape of x.
func (x term) infinity() term {
	return x.num(math.Inf(1))
}

// plus is x + y, of the same shape.
func (x term) plus(y term) term {
	return x.of(hlo.OpAdd, y)
}

// minus is x − y.
func (x term) minus(y term) term {
	return x.of(hlo.OpSubtract, y)
}

// times is x·y.
func (x term) times(y term) term {
	return x.of(hlo.OpMultiply, y)
}

// over is x/y.
func (x term) over(y term) term {
	return x.of(hlo.OpDivide, y)
}

// scaled is x·v.
func (x term) scaled(v float64) term {
	return x.times(x.num(v))
}

// plusNum is x + v.
func (x term) plusNum(v float64) term {
	return x.plus(x.num(v))
}

// square is x².
func (x term) square() term {
	return x.times(x)
}

// neg is −x.
func (x term) neg() term {
	return x.of(hlo.OpNegate)
}

// abs is |x|.
func (x term) abs() term {
	return x.of(hlo.OpAbs)
}

// sign is ±1, and 0 of ±0.
func (x term) sign() term {
	return x.of(hlo.OpSign)
}

// root is √x.
func (x term) root() term {
	return x.of(hlo.OpSqrt)
}

// exp is e^x.
func (x term) exp() term {
	return x.of(hlo.OpExponential)
}

// sin is the sine of x.
func (x term) sin() term {
	return x.of(hlo.OpSine)
}

// cos is the cosine of x.
func (x term) cos() term {
	return x.of(hlo.OpCosine)
}

// sinh is the hyperbolic sine of x.
func (x term) sinh() term {
	return x.of(hlo.OpSinh)
}

// cosh is the hyperbolic cosine of x.
func (x term) cosh() term {
	return x.of(hlo.OpCosh)
}

// and joins predicates bit by bit.
func (p term) and(q term) term {
	return p.of(hlo.OpAnd, q)
}

// or is where one of the predicates holds.
func (p term) or(q term) term {
	return p.of(hlo.OpOr, q)
}

// andFinite is where p holds and both parts of a number are finite.
func (p term) andFinite(z number) term {
	p = p.and(z.re.isFinite())
	return p.and(z.im.isFinite())
}

// is compares; x of pred is what it makes.
func (x term) is(direction string, y term) term {
	s := partShape(x.i.Shape)
	s.DType = hlo.Pred
	a := hlo.Attrs{Direction: direction}
	compared := x.b.add(hlo.OpCompare, s, a, x.i, y.i)
	return term{x.b, compared}
}

// then is x where the predicate holds, else y.
func (p term) then(x, y term) term {
	s := partShape(x.i.Shape)
	chosen := p.b.plain(hlo.OpSelect, s, p.i, x.i, y.i)
	return term{p.b, chosen}
}

// isZero holds for −0, too. Of NaN none of these tests holds.
func (x term) isZero() term {
	return x.is("EQ", x.num(0))
}

// isInfinite holds for ±∞.
func (x term) isInfinite() term {
	size := x.abs()
	return size.is("EQ", x.infinity())
}

// isFinite holds for numbers but ±∞.
func (x term) isFinite() term {
	size := x.abs()
	return size.is("LT", x.infinity())
}

// isNegative holds for −0, too, whose reciprocal is −∞.
func (x term) isNegative() term {
	below := x.is("LT", x.num(0))
	inverse := x.num(1).over(x)
	return below.or(inverse.is("LT", x.num(0)))
}

// equals holds where both parts are equal.
func (z number) equals(w number) term {
	re := z.re.is("EQ", w.re)
	return re.and(z.im.is("EQ", w.im))
}

// differs holds where a part differs.
func (z number) differs(w number) term {
	re := z.re.is("NE", w.re)
	return re.or(z.im.is("NE", w.im))
}

// instrs are the two parts.
func (z number) instrs() values {
	return values{z.re.i, z.im.i}
}

// choose is z where the predicate holds, else w.
func choose(p term, z, w number) number {
	re := p.then(z.re, w.re)
	return number{re, p.then(z.im, w.im)}
}
