package reference

import (
	"context"
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// An ElementEvaluator evaluates single elements of a computation, with the
// semantics of Interpret, where all elements would take too long: an element of
// a dot of 8,192 terms needs 16,384 elements of its operands, not 2²⁷.
// Operations without a rule (sorts, select-and-scatter) are evaluated as a whole, once, and so are
// others of which so many elements were evaluated that the whole array would have cost
// no more (the rows of a norm that all elements of a product read).
type ElementEvaluator struct {
	// Looks at the context.
	run *evaluation
	// The computation and its inputs.
	c  *hlo.Computation
	in []kernels.Buffer
	// Operations on elements that may be executed, and that may still be.
	budget, left int64
	// What is known of each instruction.
	of map[*hlo.Instr]*evaluated
	// Elements in all known, and how many there may be.
	known, mostKnown int
	// Rows of operands of dots, by their first elements, and the sum of their lengths.
	rows        map[rowKey]value
	rowElements int64
	// Elements of whole arrays that are held, and how many may be.
	held, mostHeld int64
	// Whole arrays that others are computed from are held, too.
	keeps bool
	// Where an element of an input lies; nil if at its place of the input.
	place Place
	// What elements are moved by; nil in an evaluation that rounds as the reference does.
	moving *moving
	// What rules ask instead of elements; nil in an evaluation.
	asks func(i *hlo.Instr, at int64) (value, error)
}

// An evaluated says what is known of an instruction.
type evaluated struct {
	// Number of instructions that use it.
	uses int
	// Elements that are used several times.
	elements map[int64]bareScalar
	// All elements, if they are held.
	whole *value
	// Operations that its elements took, and those that all would take.
	spent, price int64
	// Where its windows lie, of a scatter whose indices were read.
	windows *scatteredWindows
}

// A bareScalar is a scalar without its type, which is not complex: one of the two is used.
type bareScalar struct {
	float float64
	int   int64
}

// A Place is where an element of an input lies that is at some place of it.
type Place func(input int, at int64) (kernels.Buffer, int64)

// An elementKey names one element of an instruction, in row-major order.
type elementKey struct {
	i  *hlo.Instr
	at int64
}

// A BudgetError is the error of an evaluation that would execute more operations, or hold
// more numbers, than it may.
type BudgetError struct {
	// The instruction whose elements exceed the budget.
	Instr *hlo.Instr
	// Operations that may be executed; 0 of one that would hold too much.
	Budget int64
	// Numbers that may be held.
	Held int64
}

// Error names the instruction and the budget.
func (e *BudgetError) Error() string {
	if e.Budget == 0 {
		return fmt.Sprintf(
			"%s (%s %s): the reference would hold more than %.3g numbers for a few elements of the results",
			e.Instr.Name, e.Instr.Shape, e.Instr.Op, float64(e.Held),
		)
	}
	return fmt.Sprintf(
		"%s (%s %s): the reference would execute more than %.3g operations for a few elements of the results",
		e.Instr.Name, e.Instr.Shape, e.Instr.Op, float64(e.Budget),
	)
}

const (
	// maxKnown bounds the elements that are kept of an evaluation, and maxRows those of
	// rows: some 64 MiB.
	maxKnown = 1 << 20
	maxRows  = 1 << 20
	// maxHeld bounds the elements of whole arrays, while they are computed and after:
	// 256 MiB of all numbers but complex ones.
	maxHeld = 1 << 25
	// wholeFrom is the number of elements from which on an instruction that has a rule is
	// evaluated as a whole where that is cheaper.
	wholeFrom = 1 << 12
	// pricePerElement is the number of operations on whole arrays that take the time of an
	// operation on a single element, contractions aside.
	pricePerElement = 128
)

// NewElementEvaluator prepares the evaluation of c on some inputs; nothing is
// computed yet. When ctx ends, its cause is the error of Output. Output executes at
// most budget operations on single elements, in all calls until SetBudget, and is a
// *BudgetError beyond.
func NewElementEvaluator(
	ctx context.Context, c *hlo.Computation, in []kernels.Buffer, budget int64,
) *ElementEvaluator {
	s := &ElementEvaluator{
		run: newEvaluation(ctx),

		budget: budget, left: budget,

		c:    c,
		in:   in,
		of:   make(map[*hlo.Instr]*evaluated, len(c.Instrs)),
		rows: map[rowKey]value{},

		mostKnown: maxKnown,
		mostHeld:  maxHeld,
	}
	for _, i := range c.Instrs {
		s.of[i] = &evaluated{}
		for _, o := range i.Operands {
			s.of[o].uses++
		}
	}
	return s
}

// SetPlace says where single elements of inputs are read, if not in the inputs.
func (s *ElementEvaluator) SetPlace(p Place) { s.place = p }

// SetBudget is the number of operations that may be executed from here.
func (s *ElementEvaluator) SetBudget(operations int64) {
	s.budget, s.left = operations, operations
}

// Spent is the number of operations since SetBudget.
func (s *ElementEvaluator) Spent() int64 { return s.budget - s.left }

// spend takes operations for an element of i from the budget.
func (s *ElementEvaluator) spend(
	i *hlo.Instr, operations int64,
) error {
	if operations > s.left {
		return &BudgetError{Instr: i, Budget: s.budget}
	}
	s.left -= operations
	s.run.tick()
	return nil
}

// Output is element at, in row-major order, of output k.
func (s *ElementEvaluator) Output(k int, at int64) (f float64, err error) {
	defer s.run.ended(&err)
	v, err := s.outputValue(k, at)
	if err != nil {
		return 0, err
	}
	return v.float(0), nil
}

// outputValue is Output as a value.
func (s *ElementEvaluator) outputValue(k int, at int64) (value, error) {
	root := s.c.Root
	switch {
	case root.Op == hlo.OpTuple:
		return s.element(root.Operands[k], at)
	case root.Shape.DType == hlo.Tuple:
		return s.part(root, k, at)
	}
	return s.element(root, at)
}

// part is an element of array k of an instruction whose result is a tuple.
func (s *ElementEvaluator) part(
	i *hlo.Instr, k int, at int64,
) (value, error) {
	if reduces := (map[hlo.Opcode]func(*hlo.Instr, int64) ([]value, error){
		hlo.OpReduce:       s.reduce,
		hlo.OpReduceWindow: s.reduceWindow,
		hlo.OpScatter:      s.scatter,
	})[i.Op]; reduces != nil {
		all, err := reduces(i, at)
		if err != nil {
			return value{}, err
		}
		return s.movedPart(i, k, at, all[k])
	}
	v, err := s.all(i)
	if err != nil {
		return value{}, err
	}
	return v.leaves()[k].scalar(at), nil
}

// elementRules compute an element of an operation from elements of its
// operands. They are filled in by init, because they refer to each other.
var elementRules map[hlo.Opcode]func(
	s *ElementEvaluator, i *hlo.Instr, at int64,
) (value, error)

// init fills elementRules, whose functions refer to the map.
func init() {
	elementRules = map[hlo.Opcode]func(
		s *ElementEvaluator, i *hlo.Instr, at int64,
	) (value, error){
		hlo.OpParameter:           (*ElementEvaluator).parameter,
		hlo.OpConstant:            (*ElementEvaluator).constant,
		hlo.OpIota:                (*ElementEvaluator).iota,
		hlo.OpCopy:                (*ElementEvaluator).same,
		hlo.OpReshape:             (*ElementEvaluator).same,
		hlo.OpOptimizationBarrier: (*ElementEvaluator).same,
		hlo.OpBroadcast:           (*ElementEvaluator).broadcast,
		hlo.OpTranspose:           (*ElementEvaluator).transpose,
		hlo.OpSlice:               (*ElementEvaluator).slice,
		hlo.OpReverse:             (*ElementEvaluator).reverse,
		hlo.OpConcatenate:         (*ElementEvaluator).concatenate,
		hlo.OpPad:                 (*ElementEvaluator).pad,
		hlo.OpDot:                 (*ElementEvaluator).dot,
		hlo.OpGetTupleElement: func(s *ElementEvaluator, i *hlo.Instr, at int64) (value, error) {
			return s.part(
				i.Operands[0], int(i.Attrs.Index), at,
			)
		},
		hlo.OpReduce: func(s *ElementEvaluator, i *hlo.Instr, at int64) (value, error) {
			return s.part(i, 0, at)
		},
	}
}

// element is one element of an instruction, rounded to its type. Elements that
// are used again are kept.
func (s *ElementEvaluator) element(
	i *hlo.Instr, at int64,
) (value, error) {
	if s.asks != nil {
		return s.asks(i, at)
	}
	e := s.of[i]
	if e.whole != nil && i.Shape.DType != hlo.Tuple {
		return e.whole.scalar(at), nil
	}
	if n, met := e.elements[at]; met {
		return n.value(i.Shape.DType), nil
	}
	if err := s.spend(i, 1); err != nil {
		return value{}, err
	}
	if s.keepsPlain(i) {
		return s.moving.plain.element(i, at)
	}
	before := s.left
	v, err := s.compute(i, at)
	if err != nil {
		return v, err
	}
	e.spent += 1 + before - s.left
	if e.whole == nil &&
		(e.uses > 1 || i.Op == hlo.OpReduce || i.Op == hlo.OpDot) {
		s.keep(e, at, v)
	}
	return v, s.evaluateWhole(i)
}

// keep keeps an element of an instruction. Where there are too many, all are forgotten: to
// find those that are read again would take longer than to compute them again.
func (s *ElementEvaluator) keep(e *evaluated, at int64, v value) {
	if s.known++; s.known > s.mostKnown {
		for _, x := range s.of {
			x.elements = nil
		}
		s.known = 1
	}
	if e.elements == nil {
		e.elements = map[int64]bareScalar{}
	}
	if v.floats != nil {
		e.elements[at] = bareScalar{float: v.floats[0]}
	} else {
		e.elements[at] = bareScalar{int: v.ints[0]}
	}
}

// value is a scalar of type d.
func (n bareScalar) value(d hlo.DType) value {
	v := scalarOf(d)
	if v.floats != nil {
		v.floats[0] = n.float
	} else {
		v.ints[0] = n.int
	}
	return v
}

// evaluateWhole evaluates i as a whole when its elements have taken as many operations as
// that would, so that there are at most twice as many as of the better way, if the array
// is large but not too large to be held.
func (s *ElementEvaluator) evaluateWhole(i *hlo.Instr) error {
	e := s.of[i]
	if i.Shape.DType == hlo.Tuple || i.Op == hlo.OpParameter ||
		elementsOf(i) < wholeFrom || e.price < 0 || e.spent < e.price {
		return nil
	}
	e.price = s.priceOf(i)
	switch _, err := s.coneOf(i); {
	case err != nil || e.price > s.left:
		e.price = -1 // never
	case e.spent >= e.price:
		_, err := s.all(i)
		return err
	}
	return nil
}

// priceOf is the number of operations on single elements that take the time of
// evaluating i as a whole, with what it depends on.
func (s *ElementEvaluator) priceOf(i *hlo.Instr) (price int64) {
	for _, j := range s.missing(i) {
		per := float64(pricePerElement)
		if j.Op == hlo.OpDot || j.Op == hlo.OpConvolution {
			per = wholePerElement
		}
		price += 1 + int64(wholeWork(j)/per)
	}
	return price
}

// compute computes an element by the rule of its operation, or takes it from
// the whole result of an operation without a rule. Numbers of which each is computed from
// those at the same place need none: they are computed as arrays of one element are. What
// is complex is evaluated as a whole, since an element has two parts.
func (s *ElementEvaluator) compute(
	i *hlo.Instr, at int64,
) (value, error) {
	rule := elementRules[i.Op]
	switch {
	case ofComplex(i):
		// as a whole
	case i.Op == hlo.OpBitcastConvert && !i.Shape.SameDims(i.Operands[0].Shape):
		// As a whole, too: types of another width have more or fewer elements, so that
		// an element is a part of one of the operand, or is made of several of them.
	case rule != nil:
		v, err := rule(s, i, at)
		return s.moved(i, at, v), err
	case i.Op.Elementwise():
		v, err := s.pointwise(i, at)
		return s.moved(i, at, v), err
	}
	v, err := s.all(i)
	if err != nil {
		return value{}, err
	}
	return v.scalar(at), nil
}

// all evaluates an instruction as a whole, with all that it depends on, and
// keeps the result for further elements.
func (s *ElementEvaluator) all(i *hlo.Instr) (value, error) {
	if e := s.of[i]; e.whole != nil {
		return *e.whole, nil
	}
	cone, err := s.coneOf(i)
	if err != nil {
		return value{}, err
	}
	for n, j := range cone {
		v, err := s.allOf(j)
		if err != nil {
			return value{}, err
		}
		s.of[j].whole = &v
		s.held += elementsOf(j)
		for _, o := range j.Operands {
			if !s.keeps && slices.Contains(cone[:n], o) && !readBy(cone[n+1:], o) {
				s.of[o].whole = nil
				s.held -= elementsOf(o)
			}
		}
	}
	return *s.of[i].whole, nil
}

// readBy reports whether any of some instructions reads o.
func readBy(all []*hlo.Instr, o *hlo.Instr) bool {
	return slices.ContainsFunc(all, func(i *hlo.Instr) bool {
		return slices.Contains(i.Operands, o)
	})
}

// allOf evaluates an instruction whose operands are held.
func (s *ElementEvaluator) allOf(i *hlo.Instr) (value, error) {
	if i.Op == hlo.OpParameter {
		return s.input(i)
	}
	operands := make([]value, len(i.Operands))
	for k, o := range i.Operands {
		operands[k] = *s.of[o].whole
	}
	err := s.spend(i, 1+int64(wholeWork(i)/wholePerElement))
	if err != nil {
		return value{}, err
	}
	v, err := s.instruction(i, operands)
	if err != nil {
		return value{}, fmt.Errorf("%s (%s): %w", i.Name, i.Op, err)
	}
	return v, nil
}

// coneOf are the instructions that have to be evaluated for all elements of i, which is
// the last one; a *BudgetError if they have too many elements.
func (s *ElementEvaluator) coneOf(i *hlo.Instr) ([]*hlo.Instr, error) {
	cone, elements := s.missing(i), s.held
	for _, j := range cone {
		elements += elementsOf(j)
	}
	if elements > s.mostHeld {
		return nil, &BudgetError{Instr: i, Held: s.mostHeld}
	}
	return cone, nil
}

// missing are the instructions that i depends on and that are not held, and i.
func (s *ElementEvaluator) missing(i *hlo.Instr) []*hlo.Instr {
	needed := map[*hlo.Instr]bool{i: true}
	stack := []*hlo.Instr{i}
	for len(stack) > 0 {
		j := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, o := range j.Operands {
			if !needed[o] && s.of[o].whole == nil {
				needed[o] = true
				stack = append(stack, o)
			}
		}
	}
	var cone []*hlo.Instr
	for _, j := range s.c.Instrs {
		if needed[j] {
			cone = append(cone, j)
		}
	}
	return cone
}

// input is a parameter as a whole, which no rounding moves.
func (s *ElementEvaluator) input(i *hlo.Instr) (value, error) {
	if s.moving != nil {
		return s.moving.plain.all(i)
	}
	return s.run.load(s.in[i.Attrs.Param])
}

// wholePerElement is the number of operations on whole arrays that take the time of
// one operation on a single element.
const wholePerElement = 512

// wholeWork is the number of operations of an instruction on whole arrays.
func wholeWork(i *hlo.Instr) float64 {
	elements := 0.0
	for _, s := range i.Shape.Arrays() {
		elements += float64(s.Elements())
	}
	if len(i.Operands) == 0 {
		return elements
	}
	return elements * Terms(i)
}

// scalarOf is a scalar zero of type d.
func scalarOf(d hlo.DType) value {
	v := value{shape: hlo.Shape{DType: d}}
	if d.IsFloat() {
		v.floats = make([]float64, 1)
	} else {
		v.ints = make([]int64, 1)
	}
	return v
}

// parameter reads an element of an input.
func (s *ElementEvaluator) parameter(
	i *hlo.Instr, at int64,
) (value, error) {
	b, v := s.in[i.Attrs.Param],
		scalarOf(i.Shape.DType)
	place := b.At(Unravel(at, b.Shape.Dims))
	if s.place != nil {
		b, place = s.place(i.Attrs.Param, place)
	}
	if v.floats != nil {
		v.floats[0] = b.Float(place)
	} else {
		v.ints[0] = b.Int(place)
	}
	return v, nil
}

// constant is an element of a literal.
func (s *ElementEvaluator) constant(
	i *hlo.Instr, at int64,
) (value, error) {
	if i.Literal == nil || i.Literal.Elided {
		return evaluateConstant(i)
	}
	v := scalarOf(i.Shape.DType)
	if v.floats != nil {
		v.floats[0] = kernels.RoundFloat(
			i.Shape.DType, i.Literal.Floats[at],
		)
	} else {
		v.ints[0] = i.Literal.Ints[at]
	}
	return v, nil
}

// iota is the index of an element along one dimension.
func (s *ElementEvaluator) iota(
	i *hlo.Instr, at int64,
) (value, error) {
	v := scalarOf(i.Shape.DType)
	n := Unravel(at, i.Shape.Dims)[i.Attrs.IotaDim]
	if v.floats != nil {
		v.floats[0] = kernels.RoundFloat(
			i.Shape.DType, float64(n),
		)
	} else {
		v.ints[0] = kernels.WrapInt(i.Shape.DType, n)
	}
	return v, nil
}

// same is the element with the same row-major number of the operand: the rule of what
// moves no element in that order, as a reshape.
func (s *ElementEvaluator) same(
	i *hlo.Instr, at int64,
) (value, error) {
	return s.element(i.Operands[0], at)
}

// pointwise applies an elementwise operation to the elements of its operands;
// an operand that is a scalar applies to all. The operands are evaluated first, so that an
// error names the innermost instruction that cannot be; the instruction is evaluated as one
// of scalars, by the code that evaluates arrays, so that both give the same bits.
func (s *ElementEvaluator) pointwise(
	i *hlo.Instr, at int64,
) (value, error) {
	a := make([]value, len(i.Operands))
	for k, o := range i.Operands {
		n := at
		if o.Shape.Rank() == 0 {
			n = 0
		}
		v, err := s.element(o, n)
		if err != nil {
			return value{}, err
		}
		a[k] = v
	}
	one := *i
	one.Shape = hlo.Shape{DType: i.Shape.DType}
	// The bits of an element are moved as those of an array are: an operation on numbers
	// that is of every element, and computes none.
	evaluate := s.run.elementwise
	if i.Op == hlo.OpBitcastConvert {
		evaluate = s.run.instruction
	}
	v, err := evaluate(&one, a)
	if err != nil {
		err = fmt.Errorf("%s (%s): %w", i.Name, i.Op, err)
	}
	return v, err
}

// from is the element of operand k at an index.
func (s *ElementEvaluator) from(
	i *hlo.Instr, k int, index []int64,
) (value, error) {
	from := i.Operands[k]
	return s.element(from, placeIn(from, index))
}

// placeIn is the row-major number of the element of i at an index.
func placeIn(
	i *hlo.Instr, index []int64,
) (at int64) {
	for d, x := range index {
		at = at*i.Shape.Dims[d] + x
	}
	return at
}

// broadcast picks the indices of the operand's dimensions.
func (s *ElementEvaluator) broadcast(
	i *hlo.Instr, at int64,
) (value, error) {
	index := Unravel(at, i.Shape.Dims)
	picked := make([]int64, len(i.Attrs.Dimensions))
	for k, d := range i.Attrs.Dimensions {
		picked[k] = index[d]
	}
	return s.from(i, 0, picked)
}

// transpose permutes the index.
func (s *ElementEvaluator) transpose(
	i *hlo.Instr, at int64,
) (value, error) {
	index := Unravel(at, i.Shape.Dims)
	moved := make([]int64, len(index))
	for k, d := range i.Attrs.Dimensions {
		moved[d] = index[k]
	}
	return s.from(i, 0, moved)
}

// slice scales and shifts the index.
func (s *ElementEvaluator) slice(
	i *hlo.Instr, at int64,
) (value, error) {
	index := Unravel(at, i.Shape.Dims)
	for d, r := range i.Attrs.Slice {
		index[d] = r.Start + index[d]*r.Stride
	}
	return s.from(i, 0, index)
}

// reverse mirrors the index along some dimensions.
func (s *ElementEvaluator) reverse(
	i *hlo.Instr, at int64,
) (value, error) {
	index := Unravel(at, i.Shape.Dims)
	for _, d := range i.Attrs.Dimensions {
		index[d] = i.Shape.Dims[d] - 1 - index[d]
	}
	return s.from(i, 0, index)
}

// concatenate finds the operand that the index is in: the extents of the
// operands before it are subtracted.
func (s *ElementEvaluator) concatenate(
	i *hlo.Instr, at int64,
) (value, error) {
	index := Unravel(at, i.Shape.Dims)
	along := i.Attrs.Dimensions[0]
	for k, o := range i.Operands {
		if index[along] < o.Shape.Dims[along] {
			return s.from(i, k, index)
		}
		index[along] -= o.Shape.Dims[along]
	}
	return value{}, fmt.Errorf("%s: element %d is beyond its operands", i.Name, at)
}

// pad is an element of the operand, or the padding value: outside of the
// operand, and between elements that interior padding separates.
func (s *ElementEvaluator) pad(
	i *hlo.Instr, at int64,
) (value, error) {
	index := Unravel(at, i.Shape.Dims)
	for d, p := range i.Attrs.Padding {
		x := index[d] - p.Low
		step := p.Interior + 1
		if x < 0 || x%step != 0 ||
			x/step >= i.Operands[0].Shape.Dims[d] {
			return s.element(i.Operands[1], 0)
		}
		index[d] = x / step
	}
	return s.from(i, 0, index)
}

// dot sums the products of one element in float64 or wrapping int64.
func (s *ElementEvaluator) dot(
	i *hlo.Instr, at int64,
) (value, error) {
	x, y, out, a := i.Operands[0],
		i.Operands[1],
		scalarOf(i.Shape.DType), &i.Attrs
	if err := checkProducts(
		out, scalarOf(x.Shape.DType), scalarOf(y.Shape.DType),
	); err != nil {
		return value{}, err
	}
	index := Unravel(at, i.Shape.Dims)
	batch := index[:len(a.LHSBatch)]
	rest := index[len(a.LHSBatch):]
	free := x.Shape.Rank() -
		len(a.LHSBatch) - len(a.LHSContract)
	left := newReducedOperand(
		x, a.LHSBatch, a.LHSContract, batch, rest[:free],
	)
	right := newReducedOperand(
		y, a.RHSBatch, a.RHSContract, batch, rest[free:],
	)
	terms := hlo.Elements(extents(x, a.LHSContract))
	if err := s.spend(i, 1+terms/wholePerElement); err != nil {
		return value{}, err
	}
	v, err := s.row(left, terms, s.termsOf(i, 0))
	if err != nil {
		return value{}, err
	}
	w, err := s.row(right, terms, s.termsOf(i, 1))
	if err != nil {
		return value{}, err
	}
	for n := range terms {
		if out.floats != nil {
			out.floats[0] += v.float(n) * w.float(n)
		} else {
			out.ints[0] += v.ints[n] * w.ints[n]
		}
	}
	s.run.round(out)
	return out, nil
}

// reduce combines the elements that one result is made of, in row-major order.
// It returns the element of every result of a variadic reduction.
func (s *ElementEvaluator) reduce(
	i *hlo.Instr, at int64,
) ([]value, error) {
	n := len(i.Operands) / 2
	outs := make([]value, n)
	ins := make([]value, n)
	from := make([]reducedOperand, n)
	kept := Unravel(at, i.Shape.Arrays()[0].Dims)
	for k := range outs {
		v, err := s.element(i.Operands[n+k], 0)
		if err != nil {
			return nil, err
		}
		outs[k], ins[k] = v.clone(),
			scalarOf(i.Operands[k].Shape.DType)
		from[k] = newReducedOperand(
			i.Operands[k], nil,
			slices.Sorted(slices.Values(i.Attrs.Dimensions)),
			nil, kept,
		)
	}
	fold, err := s.run.reducer(i.Attrs.ToApply, outs, ins)
	if err != nil {
		return nil, err
	}
	terms := hlo.Elements(extents(i.Operands[0], from[0].along))
	if err := s.spend(i, terms); err != nil {
		return nil, err
	}
	for m := range terms {
		for k := range ins {
			v, err := from[k].at(s, m, s.termsOf(i, k))
			if err != nil {
				return nil, err
			}
			move(ins[k], 0, v, 0)
		}
		if err := fold(0, 0); err != nil {
			return nil, err
		}
	}
	for _, v := range outs {
		s.run.round(v)
	}
	return outs, nil
}

// A reducedOperand is the set of elements of an operand that one element of the
// result is made of: its index is fixed except along some dimensions.
type reducedOperand struct {
	// The operand.
	i *hlo.Instr
	// Index of the current element.
	index []int64
	// Dimensions along which the index is not fixed, the slowest first.
	along []int64
}

// newReducedOperand fixes the index along the batch dimensions and along all
// others that are not in along.
func newReducedOperand(i *hlo.Instr, batch, along, batchIndex, rest []int64) reducedOperand {
	x := reducedOperand{
		i, make([]int64, i.Shape.Rank()), along,
	}
	for d := range x.index {
		switch k := slices.Index(batch, int64(d)); {
		case k >= 0:
			x.index[d] = batchIndex[k]
		case !slices.Contains(along, int64(d)):
			x.index[d], rest = rest[0], rest[1:]
		}
	}
	return x
}

// at is element n of the set, in row-major order of the dimensions along.
func (x reducedOperand) at(
	s *ElementEvaluator, n int64, t movedTerms,
) (value, error) {
	return s.term(x.i, x.place(n), t)
}

// place is the row-major number of element n of the set.
func (x reducedOperand) place(n int64) int64 {
	for _, d := range slices.Backward(x.along) {
		x.index[d], n = n%x.i.Shape.Dims[d],
			n/x.i.Shape.Dims[d]
	}
	return placeIn(x.i, x.index)
}

// extents are the extents of some dimensions.
func extents(
	i *hlo.Instr, dims []int64,
) []int64 {
	out := make([]int64, len(dims))
	for k, d := range dims {
		out[k] = i.Shape.Dims[d]
	}
	return out
}
