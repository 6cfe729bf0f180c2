package reference

import (
	"fmt"
	"math"
	"math/cmplx"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Complex numbers are computed in complex128 and each part is rounded to its type.
// Special values are those of C99's Annex G where package math/cmplx has them. A tile
// program computes with the parts (symtile.Analyze), by other formulas: both are
// compared with each other and with XLA.

// complexUnary are the operations on one complex number whose result is one. A function
// of package math/cmplx stands where it is right on zeros and infinities and does not
// overflow before the result does; the others are here.
var complexUnary = map[hlo.Opcode]func(complex128) complex128{
	hlo.OpCbrt:                func(z complex128) complex128 { return complexPower(z, 1.0/3) },
	hlo.OpCopy:                func(z complex128) complex128 { return z },
	hlo.OpCosine:              cmplx.Cos,
	hlo.OpExponential:         complexExp,
	hlo.OpExponentialMinusOne: complexExpm1,
	hlo.OpLog:                 complexLog,
	hlo.OpLogPlusOne:          complexLog1p,
	hlo.OpLogistic:            complexLogistic,
	hlo.OpNegate:              func(z complex128) complex128 { return -z },
	hlo.OpRsqrt:               func(z complex128) complex128 { return 1 / cmplx.Sqrt(z) },
	hlo.OpSign:                complexSign,
	hlo.OpSine:                complexSine,
	hlo.OpSqrt:                cmplx.Sqrt,
	hlo.OpTan:                 complexTan,
	hlo.OpTanh:                complexTanh,
}

// complexReal are the operations on one complex number whose result is real.
var complexReal = map[hlo.Opcode]func(complex128) float64{
	hlo.OpAbs:  cmplx.Abs,
	hlo.OpReal: func(z complex128) float64 { return real(z) },
	hlo.OpImag: func(z complex128) float64 { return imag(z) },
}

// complexBinary are the operations on two complex numbers.
var complexBinary = map[hlo.Opcode]func(x, y complex128) complex128{
	hlo.OpAdd:      func(x, y complex128) complex128 { return x + y },
	hlo.OpSubtract: func(x, y complex128) complex128 { return x - y },
	hlo.OpMultiply: complexProduct,
	hlo.OpDivide:   func(x, y complex128) complex128 { return x / y },
	hlo.OpPower:    complexPower,
}

// complexLogistic is e^(z/2)/(2·cosh(z/2)), which keeps its digits next to the poles; far
// from them the exponential is all of it, or what 1 lacks.
func complexLogistic(z complex128) complex128 {
	switch x := real(z); {
	case x > 600:
		return 1 / (1 + complexExp(-z))
	case x < -600:
		return complexExp(z)
	}
	half := z / 2
	return complexExp(half) / (2 * cmplx.Cosh(half))
}

// complexProduct is x·y, with the roundings of float64 in each product but for the
// last, so that parts which cancel are right.
func complexProduct(x, y complex128) complex128 {
	return complex(
		difference(real(x), real(y), imag(x), imag(y)),
		difference(real(x), imag(y), -imag(x), real(y)),
	)
}

// difference is a·b − c·d (Kahan).
func difference(a, b, c, d float64) float64 {
	// The errors of both products are taken into account, unless they are not finite.
	p := c * d
	if v := math.FMA(a, b, -p) - math.FMA(c, d, -p); v == v {
		return v
	}
	return a*b - p
}

// complexExp is e^x·(cos y + i·sin y), where e^x alone may overflow.
func complexExp(z complex128) complex128 {
	x, y := real(z), imag(z)
	if !(x > large) || y-y != 0 {
		return cmplx.Exp(z)
	}
	// Two factors, neither of which overflows; a real number stays one.
	e := math.Exp(x / 2)
	if y == 0 {
		return complex(e*e, y)
	}
	return complex(e*cosine(y)*e, e*sine(y)*e)
}

// complexSine is sin x·cosh y + i·cos x·sinh y; cmplx.Sin multiplies a zero by an
// infinity.
func complexSine(z complex128) complex128 {
	x, y := real(z), imag(z)
	v := complex(sine(x)*cosh(y), cosine(x)*sinh(y))
	switch {
	case x == 0:
		return complex(x, imag(v))
	case y == 0:
		return complex(real(v), y)
	}
	return v
}

// complexExpm1 is e^z − 1: eˣ·cos y − 1 = (eˣ − 1)·cos y − 2·sin²(y/2).
func complexExpm1(z complex128) complex128 {
	// 1 − cos y is a difference near 0, and 2·sin²(y/2) is not.
	s := sine(imag(z) / 2)
	return complex(
		math.Expm1(real(z))*cosine(imag(z))-2*s*s,
		imag(complexExp(z)),
	)
}

// complexLog is the principal logarithm. Near |z| = 1 it is that of 1 + (|z|² − 1).
func complexLog(z complex128) complex128 {
	if m := cmplx.Abs(z); m > 0.5 && m < 2 {
		return complexLog1p(complex(real(z)-1, imag(z)))
	}
	return complex(logarithm(cmplx.Abs(z)), atan2(imag(z), real(z)))
}

// complexLog1p is the principal logarithm of 1 + z: half of that of
// |1 + z|² = 1 + (2x + x² + y²), in pairs.
func complexLog1p(z complex128) complex128 {
	// Where |1 + z| is near 1 the terms of the sum cancel: x may be −y²/2.
	x, y := real(z), imag(z)
	angle := atan2(y, 1+x)
	if !(math.Max(math.Abs(x), math.Abs(y)) < 1<<50) {
		return complex(logarithm(cmplx.Abs(1+z)), angle)
	}
	a := pair{x, 0}
	b := pair{y, 0}
	sum := a.times(pair{2, 0}).add(a.times(a)).add(b.times(b))
	return complex(math.Log1p(sum.hi)/2, angle)
}

// complexPower is x^y by cmplx.Pow, which gives up on 0 to an imaginary power.
func complexPower(x, y complex128) complex128 {
	if x == 0 && y != 0 && !(real(y) < 0 || real(y) > 0) {
		return cmplx.NaN()
	}
	return cmplx.Pow(x, y)
}

// complexSign is z/|z|; 0 of 0. The parts are divided one by one, so that one which is
// zero keeps its sign.
func complexSign(z complex128) complex128 {
	if z == 0 {
		return 0
	}
	m := cmplx.Abs(z)
	return complex(real(z)/m, imag(z)/m)
}

// complexTanh is cmplx.Tanh; where e^(2|x|) would swamp the cosine it is
// ±1 + i·4·sin y·cos y·e^(−2|x|).
func complexTanh(z complex128) complex128 {
	x, y := real(z), imag(z)
	if math.Abs(x) > 20 && y-y == 0 {
		return complex(
			math.Copysign(1, x),
			4*sine(y)*cosine(y)*math.Exp(-2*math.Abs(x)),
		)
	}
	return cmplx.Tanh(z)
}

// complexTan is −i·tanh(iz).
func complexTan(z complex128) complex128 {
	// The product with ±i exchanges the parts, exactly.
	t := complexTanh(complex(-imag(z), real(z)))
	return complex(imag(t), -real(t))
}

// roundComplex rounds each part to that of type d.
func roundComplex(d hlo.DType, z complex128) complex128 {
	part := d.Component()
	return complex(
		kernels.RoundFloat(part, real(z)),
		kernels.RoundFloat(part, imag(z)),
	)
}

// ofComplex reports whether an instruction has complex operands or results.
func ofComplex(i *hlo.Instr) bool {
	for _, o := range i.Operands {
		if o.Shape.DType.IsComplex() {
			return true
		}
	}
	return i.Shape.DType.IsComplex()
}

// complexElements returns a function that computes element n of an elementwise
// operation with complex operands or results.
func complexElements(i *hlo.Instr, out value, a []value) (func(n int64), error) {
	// Results are rounded to the type of each part, as those of real numbers are; what
	// has no case has no meaning.
	d := i.Shape.DType
	switch {
	case i.Op == hlo.OpComplex:
		return func(n int64) {
			out.complexes[n] = complex(a[0].floats[n], a[1].floats[n])
		}, nil
	case i.Op == hlo.OpConvert && out.complexes != nil:
		return func(n int64) {
			out.complexes[n] = roundComplex(d, a[0].asComplex(n))
		}, nil
	case i.Op == hlo.OpCompare && (i.Attrs.Direction == "EQ" || i.Attrs.Direction == "NE"):
		unequal := i.Attrs.Direction == "NE"
		return func(n int64) {
			out.ints[n] = boolInt((a[0].complexes[n] == a[1].complexes[n]) != unequal)
		}, nil
	case len(a) == 1 && complexReal[i.Op] != nil && out.floats != nil:
		f := complexReal[i.Op]
		return func(n int64) {
			out.floats[n] = kernels.RoundFloat(d, f(a[0].complexes[n]))
		}, nil
	case len(a) == 1 && complexUnary[i.Op] != nil && out.complexes != nil:
		f := complexUnary[i.Op]
		return func(n int64) {
			out.complexes[n] = roundComplex(d, f(a[0].complexes[n]))
		}, nil
	case len(a) == 2 && complexBinary[i.Op] != nil && out.complexes != nil:
		f := complexBinary[i.Op]
		return func(n int64) {
			out.complexes[n] = roundComplex(d, f(a[0].complexes[n], a[1].complexes[n]))
		}, nil
	}
	return nil, fmt.Errorf("%s is not defined for %s", i.Op, a[0].shape.DType)
}

// asComplex is element n as a complex number.
func (v value) asComplex(n int64) complex128 {
	if v.complexes != nil {
		return v.complexes[n]
	}
	return complex(v.float(n), 0)
}

// byParts are the sums of products: those of complex numbers are four of real ones.
var byParts = map[hlo.Opcode]func(*evaluation, *hlo.Instr, []value) (value, error){
	hlo.OpDot:         (*evaluation).dot,
	hlo.OpConvolution: (*evaluation).convolution,
}

// products computes a sum of products of complex numbers from those of their parts,
// which are kept in float64 and rounded at the end.
func (e *evaluation) products(
	i *hlo.Instr, a []value,
	sum func(*evaluation, *hlo.Instr, []value) (value, error),
) (value, error) {
	out, err := newValue(i.Shape)
	if err != nil {
		return out, err
	}
	// The sums of the products of two real parts, of two imaginary ones, and of either
	// with the other, in this order.
	wide := *i
	wide.Shape.DType = hlo.F64
	re := complexReal[hlo.OpReal]
	im := complexReal[hlo.OpImag]
	for n, parts := range [4][2]func(complex128) float64{{re, re}, {im, im}, {re, im}, {im, re}} {
		v, err := sum(e, &wide, []value{a[0].parts(parts[0]), a[1].parts(parts[1])})
		if err != nil {
			return out, err
		}
		for k, x := range v.floats {
			have := out.complexes[k]
			switch n {
			case 0:
				out.complexes[k] = complex(x, 0)
			case 1:
				out.complexes[k] = complex(real(have)-x, 0)
			default:
				out.complexes[k] = complex(real(have), imag(have)+x)
			}
		}
	}
	e.round(out)
	return out, nil
}

// parts is an array of f64: a part of each element.
func (v value) parts(part func(complex128) float64) value {
	out := value{shape: v.shape, floats: make([]float64, v.shape.Elements())}
	out.shape.DType = hlo.F64
	for n := range out.floats {
		out.floats[n] = part(v.asComplex(int64(n)))
	}
	return out
}
