package reference

import (
	"math"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// Sums have errors that are relative to the sum of the magnitudes of their terms, in
// whatever order those are added: the error of a sum s of terms t, each of which is off
// by at most d, is at most
//
//	Σ d + 4√k·ε·Σ (|t| + d)
//
// with ε of the type that sums are kept in. The first part is certain, the second holds
// for independent roundings with a margin of four standard deviations. For products
// both sums are of products: with operands a ± p and b ± q,
//
//	Σ d = Σ (|a| + p)(|b| + q) − Σ |a||b|
//
// which is two evaluations of the instruction on magnitudes, without a look at how it
// indexes its operands. An infinity or NaN among the terms decides the result in any
// order, unless the magnitudes of the others together exceed the type: then a partial sum may
// overflow in one order and not in another, and the result can be anything.

// contraction bounds sums of products: the error of a product is that of its operands
// times the other operand.
func (e bounding) contraction(
	i *hlo.Instr, x []span,
) (span, error) {
	if !i.Shape.DType.IsFloat() {
		return e.whole(i, x)
	}
	relative := sumError(i)
	if x[0].shape.DType == hlo.F32 {
		relative += e.Operand * (2 + e.Operand)
	}
	return e.sum(i, x, relative)
}

// reduction bounds reductions by one operation. Others are exact if nothing in them
// computes and their operands are certain.
func (e bounding) reduction(
	i *hlo.Instr, x []span,
) (span, error) {
	op, monoid := i.Attrs.ToApply.Monoid()
	switch {
	case !monoid:
		if !onlyChooses(i.Attrs.ToApply) {
			return span{}, errUnbounded
		}
		return e.whole(i, x)
	case !i.Shape.DType.IsFloat():
		return e.whole(i, x)
	case op == hlo.OpAdd:
		return e.total(i, x)
	case op == hlo.OpMaximum || op == hlo.OpMinimum:
		return e.monotonic(i, x)
	case op == hlo.OpMultiply:
		return e.product(i, x)
	}
	return span{}, errUnbounded
}

// product bounds the product of terms t, each of which is off by at most d: with the
// relative error ε·4√k of the multiplications in any order it is within
//
//	(1 + 4√k·ε)·Π (|t| + d) − Π |t|
//
// of the exact one, where no partial product leaves the normal numbers in any order. In
// the others it can be anything: where the factors of at least 1, or those of at most 1,
// together exceed the type.
func (e bounding) product(
	i *hlo.Instr, x []span,
) (s span, err error) {
	wide := exactly(i)
	factors := func(of []value, kept func(m float64) float64) value {
		for _, v := range of {
			for k, m := range v.floats {
				v.floats[k] = kept(m)
			}
		}
		v, errOf := e.run.instruction(wide, of)
		if err == nil {
			err = errOf
		}
		return v
	}
	same := func(m float64) float64 { return m }
	exact, err := e.plain(wide, x)
	if err != nil {
		return s, err
	}
	if s.value, err = e.plain(i, x); err != nil {
		return s, err
	}
	magnitudes := factors(e.run.absolute(x, false), same)
	largest := factors(e.run.absolute(x, true), same)
	most := factors(
		e.run.absolute(x, true),
		func(m float64) float64 { return max(m, 1) },
	)
	least := factors(
		e.run.absolute(x, false),
		func(m float64) float64 { return min(m, 1) },
	)
	if err != nil {
		return s, err
	}
	s.lo = exact.clone()
	s.hi = exact
	relative := sumError(i)
	s.widen(i.Shape, e.wide(i), func(n int64, _ float64) float64 {
		l := largest.floats[n]
		return l - magnitudes.floats[n] + relative*l
	})
	kept := AccumulatorOf(i.Shape.DType)
	for n := range s.floats {
		inside := most.floats[n] <= largestOf(kept) && least.floats[n] >= leastNormal(kept)
		if !inside {
			s.free(int64(n))
		}
	}
	return s, nil
}

// leastNormal is the smallest normal number of a type that sums are kept in.
func leastNormal(d hlo.DType) float64 {
	if d == hlo.F64 {
		return 0x1p-1022
	}
	return 0x1p-126
}

// onlyChooses reports whether a computation returns its parameters, moved by
// comparisons: argmax does.
func onlyChooses(
	c *hlo.Computation,
) bool {
	for _, i := range c.Instrs {
		switch {
		case !i.Shape.DType.IsFloat(), i.Op.Has(hlo.KeepsMagnitude):
		case i.Op != hlo.OpParameter && i.Op != hlo.OpConstant:
			return false
		}
	}
	return true
}

// whole evaluates an instruction whose operands have to be certain.
func (e bounding) whole(
	i *hlo.Instr, x []span,
) (span, error) {
	if !allCertain(x) {
		return span{}, errUnbounded
	}
	v, err := e.plain(i, x)
	if err != nil {
		return span{}, err
	}
	if v.tuple == nil {
		return certain(v), nil
	}
	s := span{}
	for _, e := range v.tuple {
		s.parts = append(s.parts, certain(e))
	}
	return s, nil
}

// monotonic evaluates an instruction that does not decrease where an operand does
// not.
func (e bounding) monotonic(
	i *hlo.Instr, x []span,
) (s span, err error) {
	s.value, err = e.plain(i, x)
	if err != nil || allCertain(x) {
		return certain(s.value), err
	}
	s.lo, s.hi, err = e.atEnds(i, x, x)
	return s, err
}

// sumError is the relative error of the sums of an instruction.
func sumError(
	i *hlo.Instr,
) float64 {
	d := AccumulatorOf(i.Shape.DType)
	terms := math.Sqrt(max(1, Terms(i)))
	return sumDeviations * terms * Epsilon(d)
}

// sum bounds an instruction that sums products of its operands, or their elements,
// with a relative error of its own.
func (e bounding) sum(
	i *hlo.Instr, x []span, relative float64,
) (s span, err error) {
	wide := exactly(i)
	sum, err := e.plain(wide, x)
	if err != nil {
		return s, err
	}
	// Sums are rounded once.
	s.value = sum.clone().withShape(i.Shape)
	e.run.round(s.value)
	// The error is relative to the sum of magnitudes.
	terms := e.run.absolute(x, false)
	magnitudes, err := e.run.instruction(wide, terms)
	if err != nil {
		return s, err
	}
	// With operands that are larger by their errors the magnitudes grow by the error
	// of the sum.
	largest := magnitudes
	if !allCertain(x) {
		terms = e.run.absolute(x, true)
		largest, err = e.run.instruction(wide, terms)
		if err != nil {
			return s, err
		}
	}
	finite, err := e.finiteMagnitudes(wide, x, magnitudes)
	if err != nil {
		return s, err
	}
	s.lo = sum.clone()
	s.hi = sum
	overflow := largestOf(AccumulatorOf(i.Shape.DType))
	s.widen(i.Shape, e.wide(i), func(n int64, _ float64) float64 {
		l := largest.floats[n]
		return l - magnitudes.floats[n] + relative*l
	})
	for k, y := range s.floats {
		n := int64(k)
		m := magnitudes.floats[n]
		switch {
		case m-m != 0 && finite.floats[n] <= overflow: // an infinity or NaN among the terms decides
			s.setEnds(n, y, y)
		case !(largest.floats[n] <= overflow):
			s.free(n)
		}
	}
	return s, nil
}

// finiteMagnitudes are the magnitudes of sums without the operands that are infinite or NaN;
// those of all where there are none of these.
func (e bounding) finiteMagnitudes(i *hlo.Instr, x []span, all value) (value, error) {
	if !slices.ContainsFunc(all.floats, isEndless) {
		return all, nil
	}
	terms := e.run.absolute(x, true)
	for k, s := range x {
		for n, y := range s.floats {
			if isEndless(y) {
				terms[k].floats[n] = 0
			}
		}
	}
	return e.run.instruction(i, terms)
}

// isEndless reports whether a number is infinite or NaN.
func isEndless(x float64) bool { return x-x != 0 }

// total is sum for an instruction that sums elements: what is computed from terms t is at
// least Σ (t − ε'·|t|) with the relative error ε', and t − ε'·|t| does not decrease with t, so that the
// smallest terms give the smallest sum. Weights of a softmax whose scores are uncertain are far
// from 1 in both directions, and their sum is positive all the same.
func (e bounding) total(i *hlo.Instr, x []span) (span, error) {
	relative := sumError(i)
	s, err := e.sum(i, x, relative)
	if err != nil || allCertain(x) {
		return s, err
	}
	t := span{}
	for _, end := range []struct {
		of   func(span) value
		sign float64
		sum  *value
	}{
		{func(y span) value { return y.lo }, -1, &t.lo},
		{func(y span) value { return y.hi }, 1, &t.hi},
	} {
		terms := make([]value, len(x))
		for k, y := range x {
			terms[k] = end.of(y).clone()
			for n, v := range terms[k].floats {
				terms[k].floats[n] = v + end.sign*relative*math.Abs(v)
			}
		}
		if *end.sum, err = e.run.instruction(exactly(i), terms); err != nil {
			return s, err
		}
	}
	t.widen(i.Shape, e.wide(i), func(int64, float64) float64 { return 0 })
	for k := range s.floats {
		lo, hi := s.ends(int64(k))
		least, most := t.ends(int64(k))
		if lo <= hi && least <= most {
			s.setEnds(int64(k), max(lo, least), min(hi, most))
		}
	}
	return s, nil
}

// absolute are the magnitudes of operands and, if they are to be bounds, what their
// errors add to them: infinite where a value can be anything.
func (e *evaluation) absolute(
	x []span, bounds bool,
) []value {
	all := make([]value, len(x))
	for k, s := range x {
		v := s.value.clone()
		e.parallel(int64(len(v.floats)), 1, func(from, to int64) {
			for n := from; n < to; n++ {
				y := v.floats[n]
				m := math.Abs(y)
				lo, hi := s.ends(n)
				switch {
				case bounds && lo > hi:
					m = math.Inf(1)
				case bounds && lo == lo:
					m += max(y-lo, hi-y, 0)
				}
				v.floats[n] = m
			}
		})
		for n, y := range v.ints {
			v.ints[n] = max(y, -y)
		}
		all[k] = v
	}
	return all
}

// largestOf is the largest number of a type that sums are kept in.
func largestOf(
	d hlo.DType,
) float64 {
	if d == hlo.F64 {
		return math.MaxFloat64
	}
	return math.MaxFloat32
}
