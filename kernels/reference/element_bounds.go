package reference

import (
	"context"
	"errors"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Intervals of single elements are those of a smaller computation, which has of every
// instruction what the elements need, as a list: elementwise operations apply to lists,
// what moves elements picks them from the lists of its operands, and sums are those of the
// rows of a matrix. The rules of ElementEvaluator say what an element is made of.
//
// Of two elements of exp(x·y) with 8,192 terms each,
//
//	d = f32[4096,4096] dot(x, y)             d' = f32[2] dot(x', y'), a row of x' and y' each
//	e = f32[4096,4096] exponential(d)        e' = f32[2] exponential(d')
//
// are evaluated, where x' and y' are f32[2,8192]: rows that several elements share are listed
// once and picked as often as they are needed. Everything else is that of Bounds, so that
// the intervals have the same bits (TestSpotsAreTheReferences).
//
// The lists are made from the users of an instruction to its operands, and evaluated in
// the other direction. An element is in a list once.

// BoundsAt computes the intervals of some elements of each output, in row-major order, as
// Bounds does of all: at has a list of places for each output. Single elements of inputs are
// read where place says, if it is not nil. Where that would need more than most elements
// of all instructions together, or the error of an operation is not bounded, it is an error.
func BoundsAt(
	ctx context.Context, c *hlo.Computation, in []kernels.Buffer, place Place,
	a Accuracy, at [][]int64, most int64,
) (all []Interval, err error) {
	b := newElementBounds(ctx, c, in, place, a, most)
	defer b.e.run.ended(&err)
	outputs := b.outputs()
	picks := make([][]pick, len(at))
	for k, places := range at {
		if picks[k], err = b.pickAll(outputs[k].i, places); err != nil {
			return nil, err
		}
	}
	if err := b.evaluateAll(); err != nil {
		return nil, err
	}
	for k, p := range picks {
		o := outputs[k]
		shape := listOf(o.shape(), len(p))
		s, err := picked(p, shape, o.part)
		if err != nil {
			return nil, err
		}
		all = append(all, Interval{
			Lo: s.lo.asFloats(),
			Hi: s.hi.asFloats(),
		})
	}
	return all, nil
}

// evaluateAll lists what the elements that are needed so far are made of, from users to
// operands, and computes the intervals of all lists, from operands to users.
func (b *elementBounds) evaluateAll() (err error) {
	for _, i := range slices.Backward(b.c.Instrs) {
		if err := b.trace(i); err != nil {
			return err
		}
	}
	for _, i := range b.c.Instrs {
		l := b.lists[i]
		if l == nil {
			continue
		}
		if l.span, err = b.evaluate(i, l); err != nil {
			return err
		}
		// What it is made of is not needed again.
		l.args = nil
		l.rows = nil
	}
	return nil
}

// An elementBounds is the evaluation of intervals of some elements.
type elementBounds struct {
	// The evaluation of lists.
	e bounding
	// The computation and its inputs.
	c  *hlo.Computation
	in []kernels.Buffer
	// Elements of inputs, constants and iotas, and the starts of slices, which are taken
	// as they are in the reference.
	plain *ElementEvaluator
	// The rules that say what an element is made of, and what one has asked for.
	rules *ElementEvaluator
	asked []elementKey
	// What is needed of each instruction; nothing of those that no element is
	// made of.
	lists map[*hlo.Instr]*elementList
	// Elements that may be listed, and that may still be.
	budget, left int64
}

// An elementList is what is needed of an instruction.
type elementList struct {
	// Row-major numbers of the elements, and the number of each among them.
	// The order is that in which users asked for them.
	places []int64
	number map[int64]int32
	// What the elements are made of, by the operands of the instruction on lists.
	args [][]pick
	// The rows that each element of a dot sums the products of.
	rows [][2][]pick
	// The elements with their intervals.
	span
}

// A pick is an element of a list; without a list it is zero.
// Elements are picked once a use: a list has no order that its users could rely on.
type pick struct {
	from *elementList
	at   int32
}

const (
	// Products of a sum of products that take the time of an element of a list, about.
	productsPerPick = 64
	// Products whose factors are held at the same time.
	productsAtOnce = 1 << 18
)

// ErrManyElements is the error of intervals that need too many elements.
var ErrManyElements = errors.New("intervals of these elements need too many others")

// newElementBounds prepares intervals of elements of c.
func newElementBounds(
	ctx context.Context, c *hlo.Computation, in []kernels.Buffer, place Place,
	a Accuracy, most int64,
) *elementBounds {
	b := &elementBounds{
		c:  c,
		in: in,
		plain: NewElementEvaluator(
			ctx, c, in, most,
		),
		rules: NewElementEvaluator(
			ctx, c, in, most,
		),
		lists:  map[*hlo.Instr]*elementList{},
		budget: most,
		left:   most,
	}
	run := newEvaluation(ctx)
	b.e = bounding{
		a, run, weighsOnline(c), outputsOf(c),
	}
	b.plain.SetPlace(place)
	b.rules.asks = b.ask
	return b
}

// ask remembers that an element is made of another, or of a zero of the padding, which is of
// no instruction. What rules compute from elements is not
// used, but for places that depend on integers: those have to be known.
func (b *elementBounds) ask(i *hlo.Instr, at int64) (value, error) {
	b.asked = append(b.asked, elementKey{i, at})
	if i == nil {
		return scalarOf(hlo.F64), nil
	}
	if i.Shape.DType.IsInteger() {
		return b.plain.element(i, at)
	}
	return scalarOf(i.Shape.DType), nil
}

// An outputPart is an output: an instruction, or a part of the tuple that one returns.
type outputPart struct {
	i    *hlo.Instr
	part int // −1 of none
}

// shape is that of all elements.
func (o outputPart) shape() hlo.Shape {
	if o.part < 0 {
		return o.i.Shape
	}
	return o.i.Shape.Tuple[o.part]
}

// outputs are those of the computation.
func (b *elementBounds) outputs() (all []outputPart) {
	root := b.c.Root
	switch {
	case root.Op == hlo.OpTuple:
		for _, o := range root.Operands {
			all = append(all, outputPart{o, -1})
		}
	case root.Shape.DType == hlo.Tuple:
		for k := range root.Shape.Tuple {
			all = append(all, outputPart{root, k})
		}
	default:
		all = []outputPart{{root, -1}}
	}
	return all
}

// pickAll are some elements of an instruction.
func (b *elementBounds) pickAll(i *hlo.Instr, places []int64) ([]pick, error) {
	all := make([]pick, len(places))
	for n, at := range places {
		var err error
		if all[n], err = b.pick(i, at); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// pick is an element of an instruction, which is needed from here on.
func (b *elementBounds) pick(i *hlo.Instr, at int64) (pick, error) {
	l := b.lists[i]
	if l == nil {
		l = &elementList{
			number: map[int64]int32{},
		}
		b.lists[i] = l
	}
	n, met := l.number[at]
	if !met {
		n = int32(len(l.places))
		l.places = append(l.places, at)
		l.number[at] = n
	}
	b.e.run.tick()
	if b.left--; b.left < 0 {
		return pick{}, ErrManyElements
	}
	return pick{l, n}, nil
}

// trace lists what the needed elements of i are made of. Its users were traced before.
func (b *elementBounds) trace(i *hlo.Instr) error {
	l := b.lists[i]
	switch {
	case l == nil:
		// No element needs it.
		return nil
	case i.Shape.DType.IsComplex():
		return errUnbounded
	case i.Op.Elementwise():
		return b.traceElementwise(i, l)
	case i.Op == hlo.OpDot:
		return b.traceDot(i, l)
	case i.Op == hlo.OpConvolution:
		return b.traceSums(i, l, 0)
	case i.Op == hlo.OpReduce, i.Op == hlo.OpReduceWindow:
		initials := len(i.Operands) / 2
		return b.traceSums(i, l, initials)
	case i.Op == hlo.OpGetTupleElement:
		return b.tracePart(i, l)
	case elementRules[i.Op] == nil, i.Op == hlo.OpScatter:
		return errUnbounded
	case len(i.Operands) > 0:
		return b.traceMoved(i, l)
	}
	return nil
}

// traceElementwise is trace of an operation on each element of its operands; a scalar
// applies to all.
func (b *elementBounds) traceElementwise(
	i *hlo.Instr, l *elementList,
) (err error) {
	if i.Op == hlo.OpBitcastConvert {
		// Types of another width have more or fewer elements.
		if !i.Shape.SameDims(i.Operands[0].Shape) {
			return errUnbounded
		}
	}
	l.args = make([][]pick, len(i.Operands))
	for k, o := range i.Operands {
		places := l.places
		if o.Shape.Rank() == 0 {
			places = []int64{0}
		}
		if l.args[k], err = b.pickAll(o, places); err != nil {
			return err
		}
	}
	return nil
}

// traceMoved is trace of an operation that moves elements: of those that its rule asks for,
// the last is moved, after the starts.
func (b *elementBounds) traceMoved(
	i *hlo.Instr, l *elementList,
) error {
	picks := make([]pick, len(l.places))
	for n, at := range l.places {
		asked, err := b.askedOf(i, at)
		if err != nil {
			return err
		}
		last := asked[len(asked)-1]
		picks[n], err = b.pick(last.i, last.at)
		if err != nil {
			return err
		}
	}
	l.args = [][]pick{picks}
	return nil
}

// askedOf is what element at of i is made of.
func (b *elementBounds) askedOf(i *hlo.Instr, at int64) ([]elementKey, error) {
	b.asked = b.asked[:0]
	b.rules.SetBudget(b.budget)
	b.plain.SetBudget(b.budget)
	_, err := elementRules[i.Op](b.rules, i, at)
	return b.asked, err
}

// tracePart is trace of a part of what a reduction returns.
func (b *elementBounds) tracePart(
	i *hlo.Instr, l *elementList,
) error {
	o := i.Operands[0]
	switch o.Op {
	case hlo.OpReduce, hlo.OpReduceWindow:
	default:
		return errUnbounded
	}
	picks, err := b.pickAll(o, l.places)
	l.args = [][]pick{picks}
	return err
}

// traceSums is trace of sums, or of what else is reduced: each element is a row of a
// matrix, one for each operand. Rules ask for initial values, as many as there are of
// those, and then for the terms, of each operand in turn. In the padding of a window the
// initial values are meant, in that of a convolution of integers zeros.
func (b *elementBounds) traceSums(
	i *hlo.Instr, l *elementList, initials int,
) error {
	operands := len(i.Operands) - initials
	terms := int(Terms(i)) * operands
	if int64(len(l.places))*int64(terms) > b.left {
		return ErrManyElements
	}
	l.args = make([][]pick, len(i.Operands))
	add := func(k int, p pick) {
		l.args[k] = append(l.args[k], p)
	}
	for _, at := range l.places {
		asked, err := b.askedOf(i, at)
		if err != nil {
			return err
		}
		// All elements have the same initial values.
		first, err := b.picksOf(asked[:initials])
		if err != nil {
			return err
		}
		for k, p := range first {
			l.args[operands+k] = []pick{p}
		}
		rest, err := b.picksOf(asked[initials:])
		if err != nil {
			return err
		}
		for n, p := range rest {
			add(n%operands, p)
		}
		for n := len(rest); n < terms; n++ {
			k := n % operands
			if initials > 0 {
				add(k, first[k])
			} else {
				add(k, pick{})
			}
		}
	}
	return nil
}

// picksOf are the elements that a rule asked for.
func (b *elementBounds) picksOf(
	asked []elementKey,
) (all []pick, err error) {
	all = make([]pick, len(asked))
	for n, a := range asked {
		if a.i == nil {
			continue // a zero
		}
		all[n], err = b.pick(a.i, a.at)
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// traceDot is trace of a product: elements share the rows of its operands.
func (b *elementBounds) traceDot(
	i *hlo.Instr, l *elementList,
) error {
	known := map[rowKey][]pick{}
	a := &i.Attrs
	x := i.Operands[0]
	y := i.Operands[1]
	terms := hlo.Elements(extents(x, a.LHSContract))
	n := int64(len(l.places))
	b.left -= n * terms / productsPerPick
	for _, at := range l.places {
		index := Unravel(at, i.Shape.Dims)
		// The order is batch, rows, columns.
		batch := index[:len(a.LHSBatch)]
		rest := index[len(batch):]
		free := x.Shape.Rank() -
			len(batch) - len(a.LHSContract)
		left := newReducedOperand(
			x, a.LHSBatch, a.LHSContract, batch, rest[:free],
		)
		right := newReducedOperand(
			y, a.RHSBatch, a.RHSContract, batch, rest[free:],
		)
		var both [2][]pick
		for k, o := range []reducedOperand{left, right} {
			var err error
			both[k], err = b.row(known, byte(k), o)
			if err != nil {
				return err
			}
		}
		l.rows = append(l.rows, both)
	}
	return nil
}

// row are the elements of a row of operand k of a product.
func (b *elementBounds) row(
	known map[rowKey][]pick, k byte, x reducedOperand,
) ([]pick, error) {
	key := rowKey{
		first: elementKey{x.i, x.place(0)},
		along: string([]byte{k}), // the dimensions of an operand's rows are alike
	}
	if row, met := known[key]; met {
		return row, nil
	}
	terms := hlo.Elements(extents(x.i, x.along))
	places := make([]int64, terms)
	for n := range places {
		places[n] = x.place(int64(n))
	}
	row, err := b.pickAll(x.i, places)
	known[key] = row
	return row, err
}

// evaluate computes the intervals of the list of i from those of its operands.
func (b *elementBounds) evaluate(
	i *hlo.Instr, l *elementList,
) (span, error) {
	one := *i
	one.Shape = listOf(i.Shape, len(l.places))
	// What is rounded before it is seen depends on the instruction, not on its copy.
	b.e.outputs[&one] = b.e.outputs[i]
	switch i.Op {
	case hlo.OpDot:
		return b.products(&one, l)
	case hlo.OpConvolution:
		rows := b.productOf(&one)
		return b.sums(rows, l.args)
	case hlo.OpReduce, hlo.OpReduceWindow:
		// The terms of an element are a row.
		one.Op = hlo.OpReduce
		one.Attrs.Window = nil
		one.Attrs.Dimensions = []int64{1}
		return b.sums(&one, l.args)
	case hlo.OpGetTupleElement:
		part := int(i.Attrs.Index)
		return picked(l.args[0], one.Shape, part)
	}
	switch {
	case i.Op.Elementwise():
		return b.elementwise(&one, l.args)
	case len(l.args) == 1:
		// Moved elements have the intervals that they had.
		return picked(l.args[0], one.Shape, -1)
	}
	return b.source(i, l)
}

// elementwise evaluates an elementwise instruction on lists.
func (b *elementBounds) elementwise(
	i *hlo.Instr, args [][]pick,
) (s span, err error) {
	x := make([]span, len(args))
	for k, p := range args {
		shape := listOf(i.Operands[k].Shape, len(p))
		x[k], err = picked(p, shape, -1)
		if err != nil {
			return s, err
		}
	}
	return b.e.instruction(i, x)
}

// listOf is the shape of n elements of an array; of a scalar, a scalar.
func listOf(s hlo.Shape, n int) hlo.Shape {
	list := hlo.Shape{DType: s.DType}
	switch {
	case s.DType == hlo.Tuple:
		for _, part := range s.Tuple {
			of := listOf(part, n)
			list.Tuple = append(list.Tuple, of)
		}
	case s.Rank() > 0:
		list.Dims = []int64{int64(n)}
	}
	return list
}

// picked is an array of picked elements, or of those of a part of tuples, unless it is
// negative. The shape may have any dimensions: the elements are in row-major order.
func picked(
	picks []pick, shape hlo.Shape, part int,
) (s span, err error) {
	if s.value, err = newValue(shape); err != nil {
		return s, err
	}
	// Where all are certain there are no ends: they are the values.
	s.lo = s.value
	s.hi = s.value
	for _, p := range picks {
		if !p.of(part).isCertain() {
			s.lo = s.value.clone()
			s.hi = s.value.clone()
			break
		}
	}
	for k, p := range picks {
		if p.from == nil {
			continue
		}
		x := p.of(part)
		n := int64(k)
		at := int64(p.at)
		move(s.value, n, x.value, at)
		if !s.isCertain() {
			move(s.lo, n, x.lo, at)
			move(s.hi, n, x.hi, at)
		}
	}
	return s, nil
}

// of is what p is picked from, or a part of it; nothing, of a zero.
func (p pick) of(part int) span {
	switch {
	case p.from == nil:
		return span{}
	case part >= 0:
		return p.from.parts[part]
	}
	return p.from.span
}

// productOf is a product of matrices, instead of i, with a row for each element: o[n] = Σ
// x[n, k]·y[n, k]. A convolution is one, too, in which the positions of the padding have
// zeros as factors.
func (b *elementBounds) productOf(
	i *hlo.Instr,
) *hlo.Instr {
	one := &hlo.Instr{
		Name:     i.Name,
		Op:       hlo.OpDot,
		Shape:    i.Shape,
		Operands: i.Operands,
	}
	b.e.outputs[one] = b.e.outputs[i]
	a := &one.Attrs
	a.LHSBatch = []int64{0}
	a.RHSBatch = []int64{0}
	a.LHSContract = []int64{1}
	a.RHSContract = []int64{1}
	return one
}

// sums evaluates an instruction that sums the rows of matrices, or reduces them. The
// number of terms, which its error depends on, is the length of the rows; that of a window
// is its size, padding or not, as it is where whole arrays are evaluated.
func (b *elementBounds) sums(
	i *hlo.Instr, args [][]pick,
) (span, error) {
	of := i.Shape.Arrays()[0]
	n := max(1, of.Elements())
	one := *i
	one.Operands = nil
	b.e.outputs[&one] = b.e.outputs[i]
	x := make([]span, len(args))
	for k, p := range args {
		s := hlo.Shape{DType: i.Operands[k].Shape.DType}
		// Initial values are scalars.
		if i.Op == hlo.OpDot || k < len(args)/2 {
			s.Dims = []int64{n, int64(len(p)) / n}
		}
		var err error
		x[k], err = picked(p, s, -1)
		if err != nil {
			return span{}, err
		}
		one.Operands = append(one.Operands, &hlo.Instr{
			Op:    hlo.OpParameter,
			Shape: s,
		})
	}
	one.Shape = vectorsOf(i.Shape, n)
	return b.e.instruction(&one, x)
}

// vectorsOf is a shape of scalars, or of lists, as one of lists.
func vectorsOf(s hlo.Shape, n int64) hlo.Shape {
	v := hlo.Shape{DType: s.DType}
	if s.DType != hlo.Tuple {
		v.Dims = []int64{n}
		return v
	}
	for _, part := range s.Tuple {
		of := vectorsOf(part, n)
		v.Tuple = append(v.Tuple, of)
	}
	return v
}

// products evaluates a product some elements at a time, since the rows of all of them
// together would be larger than the lists: 1,024 elements of 8,192 terms have 32 rows and
// 32 columns of factors, and 2²³ products.
func (b *elementBounds) products(
	i *hlo.Instr, l *elementList,
) (all span, err error) {
	if all.value, err = newValue(i.Shape); err != nil {
		return all, err
	}
	all.lo = all.value.clone()
	all.hi = all.value.clone()
	for at := 0; at < len(l.rows); {
		// The factors of these elements, as many as are held at the same time.
		var args [2][]pick
		first := int64(at)
		for at < len(l.rows) && len(args[0]) < productsAtOnce {
			for k, row := range l.rows[at] {
				args[k] = append(args[k], row...)
			}
			at++
		}
		part := *i
		n := int64(at) - first
		part.Shape.Dims = []int64{n}
		b.e.outputs[&part] = b.e.outputs[i]
		rows := b.productOf(&part)
		s, err := b.sums(rows, args[:])
		if err != nil {
			return all, err
		}
		for k := range n {
			move(all.value, first+k, s.value, k)
			move(all.lo, first+k, s.lo, k)
			move(all.hi, first+k, s.hi, k)
		}
	}
	return all, nil
}

// source are elements that are made of no others.
func (b *elementBounds) source(
	i *hlo.Instr, l *elementList,
) (span, error) {
	shape := listOf(i.Shape, len(l.places))
	v, err := newValue(shape)
	if err != nil {
		return span{}, err
	}
	b.plain.SetBudget(b.budget)
	rule := elementRules[i.Op]
	for n, at := range l.places {
		x, err := rule(b.plain, i, at)
		if err != nil {
			return span{}, err
		}
		move(v, int64(n), x, 0)
	}
	return certain(v), nil
}
