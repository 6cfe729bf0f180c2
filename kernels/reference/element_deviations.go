package reference

import (
	"context"
	"math"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// ElementDeviations are those of single elements (see Deviations), to the bit, of
// computations that are too large to be evaluated as a whole. They cost as many
// evaluations of what an element needs as there are of whole arrays otherwise.
type ElementDeviations struct {
	plain *ElementEvaluator
	moved []*ElementEvaluator
}

// NewElementDeviations prepares deviations of elements of c on some inputs; nothing is
// computed yet. The evaluations together execute at most budget operations on single
// elements, and all calls of Output are a *BudgetError beyond.
func NewElementDeviations(
	ctx context.Context,
	c *hlo.Computation, in []kernels.Buffer,
	seed int64, evaluations int, budget int64,
) *ElementDeviations {
	each := budget / int64(evaluations+1)
	d := &ElementDeviations{
		plain: NewElementEvaluator(ctx, c, in, each),
	}
	d.share(d.plain, evaluations)
	d.plain.keeps = true
	known := &plainValues{}
	for n := range evaluations {
		s := NewElementEvaluator(ctx, c, in, each)
		d.share(s, evaluations)
		s.moving = newMoving(
			d.plain, known, c, newNoise(seed, n),
		)
		d.moved = append(d.moved, s)
	}
	return d
}

// share gives an evaluation its share of what all of some number may hold: one each, and
// the plain values twice more.
func (d *ElementDeviations) share(s *ElementEvaluator, evaluations int) {
	s.mostKnown = maxKnown / (evaluations + 1)
	s.mostHeld = int64(maxHeld / (evaluations + 3))
}

// SetPlace says where single elements of inputs are read, if not in the inputs.
func (d *ElementDeviations) SetPlace(p Place) {
	d.plain.SetPlace(p)
	for _, s := range d.moved {
		s.SetPlace(p)
	}
}

// Output is the deviation of element at, in row-major order, of output k.
func (d *ElementDeviations) Output(k int, at int64) (float64, error) {
	plain, err := d.plain.Output(k, at)
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, s := range d.moved {
		x, err := s.Output(k, at)
		if err != nil {
			return 0, err
		}
		if x -= plain; x-x == 0 {
			sum += x * x
		}
	}
	n := float64(len(d.moved))
	return math.Sqrt(sum / n), nil
}

// A moving is what an evaluation of single elements needs to round at random.
type moving struct {
	// The evaluation that rounds as the reference does.
	plain *ElementEvaluator
	// What it computes of whole arrays for all perturbed evaluations.
	known *plainValues
	// The noise of each instruction.
	noise map[*hlo.Instr]noise
}

// newMoving is for the instructions of c, whose noise is all.
func newMoving(
	plain *ElementEvaluator, known *plainValues,
	c *hlo.Computation, all noise,
) *moving {
	m := &moving{plain, known, map[*hlo.Instr]noise{}}
	for k, i := range c.Instrs {
		m.noise[i] = all.part(k)
	}
	return m
}

// keepsPlain reports whether the elements of i are those of the plain evaluation: whole
// numbers that are no bits, and decisions.
func (s *ElementEvaluator) keepsPlain(i *hlo.Instr) bool {
	return s.moving != nil &&
		(!i.Shape.DType.IsFloat() && !movesBits(i) || decides(i))
}

// moved is an element of the result of i, moved if i computes it.
func (s *ElementEvaluator) moved(
	i *hlo.Instr, at int64, v value,
) value {
	if s.moving == nil || v.floats == nil || !computes(i) {
		return v
	}
	by := s.moving.noise[i]
	return movedElement(v, by.part(ofResult), at)
}

// movedElement is a value of one element, which is element at of an array.
func movedElement(v value, by noise, at int64) value {
	v = v.clone()
	x := &v.floats[0]
	*x = by.move(*x, at, Epsilon(v.shape.DType))
	return v
}

// movedPart is an element of array k of the result of i, which is a tuple.
func (s *ElementEvaluator) movedPart(
	i *hlo.Instr, k int, at int64, v value,
) (value, error) {
	switch {
	case s.moving == nil || i.Shape.DType != hlo.Tuple:
		return v, nil
	case v.floats == nil:
		return s.moving.plain.part(i, k, at)
	}
	by := s.moving.noise[i].part(ofResult).part(k)
	return movedElement(v, by, at), nil
}

// instruction evaluates an instruction without a rule on whole arrays.
func (s *ElementEvaluator) instruction(
	i *hlo.Instr, a []value,
) (value, error) {
	m := s.moving
	if m == nil {
		return s.run.instruction(i, a)
	}
	plain := make([]value, len(a))
	for k, o := range i.Operands {
		var err error
		if plain[k], err = m.plain.all(o); err != nil {
			return value{}, err
		}
	}
	p := perturbed{s.run, m.noise[i]}
	return p.instruction(i, plain, a, m.known)
}

// movedTerms says how the terms of a sum are moved; the zero value, not at all.
type movedTerms struct {
	by  noise
	eps float64
}

// A rowKey names a row of an operand whose elements are terms.
type rowKey struct {
	first elementKey
	along string // The dimensions of the row, one a byte: a column begins where a row does.
	terms movedTerms
}

// termsOf says how the elements of operand k of i are moved before they are summed.
func (s *ElementEvaluator) termsOf(
	i *hlo.Instr, k int,
) movedTerms {
	if s.moving == nil {
		return movedTerms{}
	}
	by, eps := s.moving.noise[i].terms(i, k)
	return movedTerms{by, eps}
}

// term is an element of an operand of a sum.
func (s *ElementEvaluator) term(
	i *hlo.Instr, at int64, t movedTerms,
) (value, error) {
	v, err := s.element(i, at)
	if err != nil || t.eps == 0 || v.floats == nil {
		return v, err
	}
	v = v.clone()
	v.floats[0] = t.by.move(v.floats[0], at, t.eps)
	return v, nil
}
