package reference

import (
	"context"
	"math"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Deviations estimates how far each element of each output, in logical order,
// moves when every rounding goes another way. It is the root mean square
// difference from the reference over so many evaluations in which each result of
// arithmetic is off by half a unit to a unit in its last place, and each term of a sum
// of k terms by up to √k units of the type that sums are kept in (Monte Carlo
// arithmetic: Parker, Pierce, Eggert, IEEE CiSE 2(4), 2000). Where terms
// cancel, or a divisor is next to zero, that is more than a bound by the
// largest result allows. Decisions by comparison and by rounding to whole
// numbers are those of the reference; the bits of a number (bitcast-convert) move with it,
// and so does what is computed from them in integers.
func Deviations(
	ctx context.Context, c *hlo.Computation, in []kernels.Buffer, seed int64, evaluations int,
) (sums [][]float64, err error) {
	e := newEvaluation(ctx)
	defer e.ended(&err)
	args, err := e.arguments(c, in)
	if err != nil {
		return nil, err
	}
	values := &plainValues{}
	for n := range evaluations {
		p := perturbed{e, newNoise(seed, n)}
		plain, moved, err := p.evaluate(
			c, args, args, values,
		)
		if err != nil {
			return nil, err
		}
		sums = addSquares(
			sums,
			plain.leaves(),
			moved.leaves(),
		)
	}
	for _, s := range sums {
		for k := range s {
			s[k] = math.Sqrt(s[k] / float64(evaluations))
		}
	}
	return sums, nil
}

// Perturbed evaluates c with other roundings, as one evaluation of Deviations does. Its
// decisions are those of the reference on the same inputs, which may be perturbed, too.
func Perturbed(
	ctx context.Context, c *hlo.Computation, in []kernels.Buffer, seed int64,
) (out []kernels.Buffer, err error) {
	e := newEvaluation(ctx)
	defer e.ended(&err)
	args, err := e.arguments(c, in)
	if err != nil {
		return nil, err
	}
	p := perturbed{e, newNoise(seed, 0)}
	_, moved, err := p.evaluate(c, args, args, &plainValues{})
	if err != nil {
		return nil, err
	}
	return e.outputs(moved)
}

// plainValues are those of a computation in the plain evaluation. The first perturbed
// evaluation computes them, and the others find them.
type plainValues struct {
	of map[*hlo.Instr]value
	// Those of the computations that are called, by the call: one that is called twice
	// has other arguments each time.
	calls map[*hlo.Instr]*plainValues
}

// called are the values of the computation that an instruction calls.
func (v *plainValues) called(i *hlo.Instr) *plainValues {
	if v.calls == nil {
		v.calls = map[*hlo.Instr]*plainValues{}
	}
	if v.calls[i] == nil {
		v.calls[i] = &plainValues{}
	}
	return v.calls[i]
}

// get is the value of an instruction, which compute computes if it is not known.
func (v *plainValues) get(
	i *hlo.Instr, compute func() (value, error),
) (value, error) {
	if v.of == nil {
		v.of = map[*hlo.Instr]value{}
	}
	if x, known := v.of[i]; known {
		return x, nil
	}
	x, err := compute()
	if err == nil {
		v.of[i] = x
	}
	return x, err
}

// addSquares adds the squares of finite differences to sums, of which there is
// one a result; of complex numbers, of each part in turn. Differences of infinities and NaN
// are left out: such elements have to agree as they are.
func addSquares(sums [][]float64, plain, moved []value) [][]float64 {
	if sums == nil {
		sums = make([][]float64, len(plain))
	}
	for n, v := range plain {
		parts, w := v.numbers(), moved[n].numbers()
		if sums[n] == nil {
			sums[n] = make([]float64, len(parts))
		}
		for k := range parts {
			if d := w[k] - parts[k]; d-d == 0 {
				sums[n][k] += d * d
			}
		}
	}
	return sums
}

// numbers are the elements of an array, of complex numbers both parts of each.
func (v value) numbers() []float64 {
	if v.floats != nil {
		return v.floats
	}
	var all []float64
	for n := range v.ints {
		all = append(all, v.float(int64(n)))
	}
	for _, z := range v.complexes {
		all = append(all, real(z), imag(z))
	}
	return all
}

// A perturbed evaluation rounds at random, beside a plain evaluation.
type perturbed struct {
	run *evaluation
	// Of a computation or, where an instruction is evaluated, of that.
	noise noise
}

// of is p for instruction k of its computation.
func (p perturbed) of(k int) perturbed {
	return perturbed{p.run, p.noise.part(k)}
}

// evaluate evaluates a computation on plain and on perturbed arguments.
func (p perturbed) evaluate(
	c *hlo.Computation, plain, moved []value, known *plainValues,
) (value, value, error) {
	all := make(map[*hlo.Instr]value, len(c.Instrs))
	for n, i := range c.Instrs {
		a := make([]value, len(i.Operands))
		b := make([]value, len(i.Operands))
		for k, o := range i.Operands {
			a[k] = known.of[o]
			b[k] = all[o]
		}
		if i.Op == hlo.OpParameter {
			a = plain[i.Attrs.Param:][:1]
			b = moved[i.Attrs.Param:][:1]
		}
		w, err := p.of(n).instruction(i, a, b, known)
		if err != nil {
			return value{}, value{}, err
		}
		all[i] = w
	}
	return known.of[c.Root], all[c.Root], nil
}

// instruction is the perturbed result of an instruction on plain operands and on
// perturbed ones; the plain result is known afterwards. Discontinuous operations, such as
// comparisons, give the plain result: their decisions are not to be perturbed.
func (p perturbed) instruction(
	i *hlo.Instr, a, b []value, known *plainValues,
) (value, error) {
	if i.Op == hlo.OpFusion || i.Op == hlo.OpCall {
		v, w, err := p.evaluate(
			i.Attrs.Calls, a, b,
			known.called(i),
		)
		if err != nil {
			return w, err
		}
		_, err = known.get(i, func() (value, error) {
			return v, nil
		})
		return w, err
	}
	v, err := known.get(i, func() (value, error) {
		return p.run.instruction(i, a)
	})
	if err != nil || decides(i) {
		return v, err
	}
	return p.moved(i, v, b)
}

// decides reports whether the results of i are those of the plain evaluation: a small
// change of an operand may change them altogether.
func decides(i *hlo.Instr) bool {
	return i.Op.Has(hlo.Discontinuous) && i.Op != hlo.OpBitcastConvert
}

// movesBits reports whether the integers that i results in move with its operands: they
// are the bits of numbers, or computed from integers alone. Integers that are
// chosen by numbers, such as the place of the largest, stay.
func movesBits(i *hlo.Instr) bool {
	if i.Op == hlo.OpBitcastConvert {
		return true
	}
	for _, o := range i.Operands {
		if !o.Shape.DType.IsInteger() {
			return false
		}
	}
	return true
}

// moved is the perturbed result of an instruction of which v is the plain one. The terms
// of sums are perturbed before, because the order of a sum is not known.
func (p perturbed) moved(
	i *hlo.Instr, v value, b []value,
) (value, error) {
	b = slices.Clone(b)
	for k := range b {
		if by, eps := p.noise.terms(i, k); eps > 0 {
			b[k] = p.run.perturb(b[k], by, eps)
		}
	}
	w, err := p.run.instruction(i, b)
	if err != nil {
		return w, err
	}
	return p.run.propagate(i, p.noise.part(ofResult), v, w), nil
}

// terms are how the elements of operand k of i are moved before they are summed, and how far
// relative to each; 0 where they are not summed. Of products both factors are moved, by
// 1/√2 of the error of the sum: sums that share one of them, such as two scores of a row of
// attention, are then off by different numbers, and their difference is off, too.
func (s noise) terms(i *hlo.Instr, k int) (by noise, eps float64) {
	terms := termsSummed(i)
	if terms <= 1 || k > 1 || k == 1 && !multiplies(i) {
		return 0, 0
	}
	kept := AccumulatorOf(i.Operands[0].Shape.DType.Component())
	if multiplies(i) {
		terms /= 2
	}
	part := [...]int{ofTerms, ofFactors}[k]
	return s.part(part), math.Sqrt(terms) * Epsilon(kept)
}

// multiplies reports whether i sums products of its first two operands.
func multiplies(i *hlo.Instr) bool {
	return i.Op == hlo.OpDot || i.Op == hlo.OpScaledDot || i.Op == hlo.OpConvolution
}

// termsSummed is the number of terms that an element of i is the sum of.
func termsSummed(i *hlo.Instr) float64 {
	switch i.Op {
	case hlo.OpDot, hlo.OpScaledDot, hlo.OpConvolution:
		return Terms(i)
	case hlo.OpReduce, hlo.OpReduceWindow:
		op := i.Attrs.ToApply.Root.Op
		if op != hlo.OpMaximum && op != hlo.OpMinimum {
			return Terms(i)
		}
	}
	return 1
}

// propagate takes whole numbers that are no bits from the plain result v, and perturbs what
// was computed in w.
func (e *evaluation) propagate(i *hlo.Instr, s noise, v, w value) value {
	if v.tuple != nil {
		t := value{
			shape: v.shape,
			tuple: make([]value, len(v.tuple)),
		}
		for k := range v.tuple {
			t.tuple[k] = e.propagate(
				i, s.part(k),
				v.tuple[k], w.tuple[k],
			)
		}
		return t
	}
	switch {
	case v.floats == nil && v.complexes == nil && !movesBits(i):
		return v
	case v.ints != nil || !computes(i):
		return w
	}
	return e.perturb(w, s, Epsilon(v.shape.DType.Component()))
}

// computes reports whether the results of i are rounded, and not moved or chosen.
func computes(i *hlo.Instr) bool {
	switch i.Op {
	case hlo.OpParameter, hlo.OpConstant, hlo.OpBitcastConvert:
		return false
	}
	return !i.Op.Has(hlo.KeepsMagnitude)
}

// perturb is v with each number off by half of eps to eps times itself, up or down.
// Infinities stay, so that the mask of a softmax does not make its row NaN.
func (e *evaluation) perturb(v value, s noise, eps float64) value {
	if v.ints != nil {
		return v
	}
	w := v.clone()
	e.parallel(int64(len(w.floats)), 1, func(lo, hi int64) {
		for n := lo; n < hi; n++ {
			w.floats[n] = s.move(v.floats[n], n, eps)
		}
	})
	for n, z := range v.complexes {
		w.complexes[n] = s.moveComplex(z, int64(n), eps)
	}
	return w
}
