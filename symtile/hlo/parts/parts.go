package parts

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// Undefined is the error of an operation that has no meaning for complex numbers, or
// none that is known here.
type Undefined struct {
	Instr *hlo.Instr
	// Reason is a clause that continues "it is not computed because …".
	Reason string
}

// Error names the instruction and the reason.
func (e *Undefined) Error() string {
	i := e.Instr
	return fmt.Sprintf("%s (%s): %s", i.Name, i.Op, e.Reason)
}

// Complex reports whether an instruction has complex operands or results.
func Complex(i *hlo.Instr) bool {
	return hasComplex(i) || slices.ContainsFunc(i.Operands, hasComplex)
}

// hasComplex reports whether an array of the result is complex.
func hasComplex(i *hlo.Instr) bool {
	return slices.ContainsFunc(i.Shape.Arrays(), func(s hlo.Shape) bool {
		return s.DType.IsComplex()
	})
}

// Defined is nil where Of can write an instruction as one of real numbers; the error is
// an *Undefined. Nothing is asked of what is not complex.
func Defined(i *hlo.Instr) error {
	if !Complex(i) {
		return nil
	}
	// What is written is thrown away: only whether it can be is asked.
	b := newBuilder(&hlo.Computation{})
	b.from = i
	for _, o := range i.Operands {
		b.parts[o] = placeholders(o)
	}
	_, err := b.instr(i)
	return err
}

// placeholders stand for the parts of an operand.
func placeholders(o *hlo.Instr) values {
	var all values
	for _, s := range o.Shape.Arrays() {
		real := s
		real.DType = s.DType.Component()
		for range partsOf(s) {
			all = append(all, &hlo.Instr{
				Op:    hlo.OpParameter,
				Shape: real,
			})
		}
	}
	return all
}

// partsOf is how many values an array has: two if it is complex.
func partsOf(s hlo.Shape) int {
	if s.DType.IsComplex() {
		return 2
	}
	return 1
}

// Of is the computation of the parts of c, which has no nested computations but those
// that reductions apply; c itself where nothing is complex. Instructions that are not
// complex, and whose operands are not, are shared with c. The error is an *Undefined.
func Of(c *hlo.Computation) (*hlo.Computation, error) {
	if !slices.ContainsFunc(c.Instrs, Complex) {
		return c, nil
	}
	b, err := split(c, (*builder).parameter)
	if err != nil {
		return nil, err
	}
	b.from = c.Root
	b.out.Root, err = b.result(c.Root)
	return b.out, err
}

// split writes all instructions of c as instructions of the parts; parameter adds the
// parameters.
func split(
	c *hlo.Computation,
	parameter func(*builder, *hlo.Instr),
) (*builder, error) {
	b := newBuilder(&hlo.Computation{Name: c.Name})
	for _, i := range c.Instrs {
		b.names[i.Name] = 0
	}
	for _, p := range c.Params {
		b.from = p
		parameter(b, p)
	}
	for _, i := range c.Instrs {
		if i.Op == hlo.OpParameter {
			continue
		}
		b.from = i
		v, err := b.instr(i)
		if err != nil {
			return nil, err
		}
		b.parts[i] = v
	}
	return b, nil
}

// applied is a computation that a reduction applies, of the parts: each complex
// parameter is two, and the results are a tuple of the parts.
func applied(c *hlo.Computation) (*hlo.Computation, error) {
	b, err := split(c, (*builder).scalar)
	if err != nil {
		return nil, err
	}
	b.from = c.Root
	results := b.parts[c.Root]
	if c.Root.Op == hlo.OpTuple {
		results = nil
		for _, o := range c.Root.Operands {
			results = append(results, b.parts[o]...)
		}
	}
	b.out.Root = b.tuple(results)
	return b.out, nil
}

// values are the instructions that stand for one: the parts of its arrays in order.
type values = []*hlo.Instr

// A builder appends instructions of the parts to out.
type builder struct {
	out *hlo.Computation
	// from is the instruction that is being written as others; they are named after it.
	from *hlo.Instr
	// names are those taken, for hlo.UniqueName.
	names map[string]int
	// parts are the values of an instruction: of a complex array its real and its
	// imaginary part, of another one itself, of a tuple those of its elements in order.
	parts map[*hlo.Instr]values
}

// newBuilder appends to out.
func newBuilder(out *hlo.Computation) *builder {
	return &builder{
		out:   out,
		names: map[string]int{},
		parts: map[*hlo.Instr]values{},
	}
}

// name is a new one, after the instruction that is being written.
func (b *builder) name() string {
	return hlo.UniqueName(b.names, b.from.Name+".part")
}

// add makes an instruction and appends it.
func (b *builder) add(
	op hlo.Opcode,
	s hlo.Shape,
	a hlo.Attrs,
	operands ...*hlo.Instr,
) *hlo.Instr {
	i := &hlo.Instr{
		Name:     b.name(),
		Op:       op,
		Shape:    s,
		Attrs:    a,
		Operands: operands,
		Pos:      b.from.Pos,
	}
	b.appended(i)
	return i
}

// plain makes an instruction without attributes and appends it.
func (b *builder) plain(
	op hlo.Opcode,
	s hlo.Shape,
	operands ...*hlo.Instr,
) *hlo.Instr {
	return b.add(op, s, hlo.Attrs{}, operands...)
}

// appended is made already, or taken over from the computation that is read.
func (b *builder) appended(i *hlo.Instr) {
	b.out.Instrs = append(b.out.Instrs, i)
}

// param appends a parameter.
func (b *builder) param(p *hlo.Instr) {
	b.out.Params = append(b.out.Params, p)
	b.appended(p)
}

// undefined is the error of the instruction that is being written.
func (b *builder) undefined(format string, args ...any) error {
	reason := fmt.Sprintf(format, args...)
	return &Undefined{b.from, reason}
}

// scalar makes the parameter of a reduction one, or two, of real numbers.
func (b *builder) scalar(p *hlo.Instr) {
	for range partsOf(p.Shape) {
		part := &hlo.Instr{
			Name:  b.name(),
			Op:    hlo.OpParameter,
			Shape: partShape(p.Shape),
			Pos:   p.Pos,
		}
		part.Attrs.Param = len(b.out.Params)
		b.param(part)
		b.parts[p] = append(b.parts[p], part)
	}
}

// parameter makes a complex parameter one of real numbers, and takes the parts out.
func (b *builder) parameter(p *hlo.Instr) {
	if !p.Shape.DType.IsComplex() {
		b.param(p)
		b.parts[p] = values{p}
		return
	}
	copied := *p
	copied.Shape = p.Shape.Parts()
	b.param(&copied)
	for k := range int64(2) {
		part := b.slice(&copied, k)
		part = b.plain(hlo.OpReshape, partShape(p.Shape), part)
		b.parts[p] = append(b.parts[p], part)
	}
}

// slice is all of x but along the last dimension, of which it is element k.
func (b *builder) slice(x *hlo.Instr, k int64) *hlo.Instr {
	last := x.Shape.Rank() - 1
	// All of every dimension, then one element of the last.
	ranges := make([]hlo.SliceDim, last+1)
	for d, n := range x.Shape.Dims {
		ranges[d] = hlo.SliceDim{Limit: n, Stride: 1}
	}
	ranges[last].Start = k
	ranges[last].Limit = k + 1
	s := hlo.Shape{
		DType: x.Shape.DType,
		Dims:  slices.Clone(x.Shape.Dims),
	}
	s.Dims[last] = 1
	a := hlo.Attrs{Slice: ranges}
	return b.add(hlo.OpSlice, s, a, x)
}

// partShape is the shape of each part of a complex array; another shape is itself,
// without a layout.
// Between parameters and results a layout means nothing.
func partShape(s hlo.Shape) hlo.Shape {
	return hlo.Shape{
		DType: s.DType.Component(),
		Dims:  s.Dims,
	}
}

// result is the value of i as it lies in memory; of a tuple, each element.
func (b *builder) result(i *hlo.Instr) (*hlo.Instr, error) {
	switch {
	case i.Op == hlo.OpTuple:
		var all values
		for _, o := range i.Operands {
			v, err := b.result(o)
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
		return b.tuple(all), nil
	case i.Shape.DType != hlo.Tuple:
		return b.joined(i.Shape, b.parts[i]), nil
	}
	// A reduction with several results: its parts are listed one result after the other.
	var all values
	at := 0
	for _, s := range i.Shape.Tuple {
		if s.DType == hlo.Tuple {
			return nil, b.undefined("its results are tuples of tuples")
		}
		n := partsOf(s)
		of := b.parts[i][at : at+n]
		all = append(all, b.joined(s, of))
		at += n
	}
	return b.tuple(all), nil
}

// tuple is a tuple of values.
func (b *builder) tuple(all values) *hlo.Instr {
	s := hlo.Shape{DType: hlo.Tuple}
	for _, v := range all {
		s.Tuple = append(s.Tuple, v.Shape)
	}
	return b.plain(hlo.OpTuple, s, all...)
}

// joined is an array of shape s, given its parts, as it lies in memory.
func (b *builder) joined(s hlo.Shape, of values) *hlo.Instr {
	if !s.DType.IsComplex() {
		return of[0]
	}
	// Along the new dimension the first element is the real part.
	whole := s.Parts()
	rank := int64(s.Rank())
	number := hlo.Shape{
		DType: hlo.S32,
		Dims:  whole.Dims,
	}
	dims := make([]int64, rank)
	for d := range dims {
		dims[d] = int64(d)
	}
	both := hlo.Attrs{Dimensions: dims}
	if isMoved(of[0]) && isMoved(of[1]) {
		return b.interleaved(whole, both, of)
	}
	along := hlo.Attrs{IotaDim: rank}
	which := term{b, b.add(hlo.OpIota, number, along)}
	row := hlo.Shape{
		DType: whole.DType,
		Dims:  whole.Dims,
	}
	return b.plain(
		hlo.OpSelect,
		whole,
		which.isZero().i,
		b.add(hlo.OpBroadcast, row, both, of[0]),
		b.add(hlo.OpBroadcast, row, both, of[1]),
	)
}

// interleaved is the parts one after the other along the last dimension, for backends that
// move elements by strides and know of no selection.
func (b *builder) interleaved(
	whole hlo.Shape, both hlo.Attrs, of values,
) *hlo.Instr {
	one := hlo.Shape{
		DType: whole.DType,
		Dims:  slices.Clone(whole.Dims),
	}
	rank := len(one.Dims) - 1
	one.Dims[rank] = 1
	i := b.plain(
		hlo.OpConcatenate, whole,
		b.add(hlo.OpBroadcast, one, both, of[0]),
		b.add(hlo.OpBroadcast, one, both, of[1]),
	)
	i.Attrs.Dimensions = []int64{int64(rank)}
	return i
}

// isMoved reports whether a value is elements of a parameter at other places.
func isMoved(i *hlo.Instr) bool {
	for len(i.Operands) == 1 && i.Op.Class() == hlo.ClassMove {
		i = i.Operands[0]
	}
	return i.Op == hlo.OpParameter
}

// instr writes one instruction and returns its values.
func (b *builder) instr(i *hlo.Instr) (values, error) {
	switch {
	case i.Op == hlo.OpTuple:
		return nil, nil // the root; result takes its operands
	case i.Op == hlo.OpGetTupleElement:
		return b.element(i)
	case !Complex(i):
		return b.copied(i), nil
	case i.Op == hlo.OpConstant:
		return b.constant(i)
	case i.Op == hlo.OpReduce,
		i.Op == hlo.OpReduceWindow:
		return b.reduce(i)
	case i.Op == hlo.OpDot,
		i.Op == hlo.OpConvolution:
		return b.products(i), nil
	case i.Op.Elementwise() && !moves(i):
		return b.elementwise(i)
	case i.Op == hlo.OpIota:
		// The index is real.
		re := *i
		re.Shape = partShape(i.Shape)
		re.Name = b.name()
		b.appended(&re)
		zero := b.number(re.Shape, 0)
		return values{&re, zero}, nil
	case moves(i):
		re := b.part(i, 0)
		return values{re, b.part(i, 1)}, nil
	}
	return nil, b.undefined("%s", cmp.Or(i.Op.Not(hlo.CPU), "it is not computed of complex numbers"))
}

// moves reports whether an operation puts elements of its operands at other places, and
// computes nothing.
func moves(i *hlo.Instr) bool {
	if !i.Shape.DType.IsComplex() {
		return false
	}
	switch i.Op {
	case hlo.OpBitcast, hlo.OpBitcastConvert:
		from := i.Operands[0].Shape.DType
		return from == i.Shape.DType
	case hlo.OpSelect, hlo.OpCopy, hlo.OpOptimizationBarrier,
		hlo.OpDynamicSlice, hlo.OpDynamicUpdateSlice, hlo.OpGather:
		return true
	}
	return i.Op.Class() == hlo.ClassMove
}

// copied is an instruction without complex operands and results.
func (b *builder) copied(i *hlo.Instr) values {
	operands := make(values, len(i.Operands))
	for k, o := range i.Operands {
		operands[k] = b.parts[o][0]
	}
	if !slices.Equal(operands, i.Operands) {
		c := *i
		c.Operands = operands
		i = &c
	}
	b.appended(i)
	if i.Shape.DType != hlo.Tuple {
		return values{i}
	}
	return b.elements(i)
}

// elements are the elements of a tuple of arrays.
func (b *builder) elements(i *hlo.Instr) values {
	all := make(values, len(i.Shape.Tuple))
	for k, s := range i.Shape.Tuple {
		which := hlo.Attrs{Index: k}
		all[k] = b.add(hlo.OpGetTupleElement, s, which, i)
	}
	return all
}

// element is the value, or both, of an element of a tuple.
func (b *builder) element(i *hlo.Instr) (values, error) {
	// The values of a tuple are those of its elements, one or two of each.
	of := i.Operands[0]
	all := b.parts[of]
	at := 0
	for k, s := range of.Shape.Tuple {
		n := partsOf(s)
		if s.DType == hlo.Tuple || at+n > len(all) {
			break
		}
		if k == i.Attrs.Index {
			return all[at : at+n], nil
		}
		at += n
	}
	return nil, b.undefined("it is an element of a tuple that is not computed of complex numbers")
}

// part is i with the parts of its complex operands; k is 0 for real parts, 1 for
// imaginary ones.
func (b *builder) part(i *hlo.Instr, k int) *hlo.Instr {
	c := *i
	c.Name = b.name()
	c.Shape.DType = i.Shape.DType.Component()
	c.Operands = make(values, len(i.Operands))
	for n, o := range i.Operands {
		// A real operand, such as an index, is the same for both.
		of := b.parts[o]
		c.Operands[n] = of[min(k, len(of)-1)]
	}
	b.appended(&c)
	return &c
}

// constant is the two parts of a literal.
func (b *builder) constant(i *hlo.Instr) (values, error) {
	if i.Literal == nil || i.Literal.Elided {
		return nil, b.undefined("its value was left out of the text ({...})")
	}
	all := make(values, 2)
	for k := range all {
		s := partShape(i.Shape)
		floats := make([]float64, len(i.Literal.Complex))
		for n, z := range i.Literal.Complex {
			floats[n] = real(z)
			if k == 1 {
				floats[n] = imag(z)
			}
		}
		all[k] = b.plain(hlo.OpConstant, s)
		all[k].Literal = &hlo.Literal{Shape: s, Floats: floats}
	}
	return all, nil
}

// reduce of a sum is two reduces; by another computation it is one reduce of the parts
// of all operands.
func (b *builder) reduce(i *hlo.Instr) (values, error) {
	// The sum has a computation of its own for the element type of the parts.
	by := i.Attrs.ToApply
	op, ok := by.Monoid()
	if ok && op == hlo.OpAdd {
		re := b.part(i, 0)
		im := b.part(i, 1)
		re.Attrs.ToApply = sumOf(re.Shape.DType, by.Name)
		im.Attrs.ToApply = sumOf(im.Shape.DType, by.Name)
		return values{re, im}, nil
	}
	// The operands are all values first, then all initial values, and so are the
	// parameters of the computation.
	c := *i
	c.Name, c.Operands = b.name(), nil
	for _, o := range i.Operands {
		c.Operands = append(c.Operands, b.parts[o]...)
	}
	var results []hlo.Shape
	for _, s := range i.Shape.Arrays() {
		for range partsOf(s) {
			results = append(results, partShape(s))
		}
	}
	c.Shape = hlo.Shape{DType: hlo.Tuple, Tuple: results}
	var err error
	c.Attrs.ToApply, err = applied(by)
	if err != nil {
		return nil, err
	}
	b.appended(&c)
	return b.elements(&c), nil
}

// sumOf is the computation of the sum of two scalars.
func sumOf(d hlo.DType, name string) *hlo.Computation {
	s := hlo.Shape{DType: d}
	x := &hlo.Instr{
		Name:  "x",
		Op:    hlo.OpParameter,
		Shape: s,
	}
	y := &hlo.Instr{
		Name:  "y",
		Op:    hlo.OpParameter,
		Shape: s,
		Attrs: hlo.Attrs{Param: 1},
	}
	r := &hlo.Instr{
		Name:     "r",
		Op:       hlo.OpAdd,
		Shape:    s,
		Operands: values{x, y},
	}
	return &hlo.Computation{
		Name:   name,
		Params: values{x, y},
		Instrs: values{x, y, r},
		Root:   r,
	}
}

// products is a sum of products: of real parts less that of imaginary ones, and those
// of each with the other.
func (b *builder) products(i *hlo.Instr) values {
	x := b.parts[i.Operands[0]]
	y := b.parts[i.Operands[1]]
	// A real operand has no imaginary part, and no product with one.
	product := func(l, r int) term {
		if l >= len(x) || r >= len(y) {
			return term{}
		}
		c := *i
		c.Name = b.name()
		c.Shape.DType = i.Shape.DType.Component()
		c.Operands = values{x[l], y[r]}
		b.appended(&c)
		return term{b, &c}
	}
	re := product(0, 0)
	im := product(0, 1)
	if t := product(1, 1); t.i != nil {
		re = re.minus(t)
	}
	switch t := product(1, 0); {
	case im.i == nil:
		im = t
	case t.i != nil:
		im = im.plus(t)
	}
	return values{re.i, im.i}
}

// number is an array of one real number.
func (b *builder) number(s hlo.Shape, v float64) *hlo.Instr {
	scalar := hlo.Shape{DType: s.DType}
	c := b.plain(hlo.OpConstant, scalar)
	c.Literal = &hlo.Literal{Shape: scalar}
	if s.DType.IsFloat() {
		v = s.DType.RoundFloat(v)
		c.Literal.Floats = []float64{v}
	} else {
		c.Literal.Ints = []int64{int64(v)}
	}
	if s.Rank() == 0 {
		return c
	}
	all := hlo.Attrs{Dimensions: []int64{}}
	return b.add(hlo.OpBroadcast, partShape(s), all, c)
}
