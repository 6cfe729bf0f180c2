package parts

import (
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
	return fmt.Sprintf("%s (%s): %s", e.Instr.Name, e.Instr.Op, e.Reason)
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
func placeholders(o *hlo.Instr) []*hlo.Instr {
	var all []*hlo.Instr
	for _, s := range o.Shape.Arrays() {
		real := s
		real.DType = s.DType.Component()
		for range 1 + boolInt(s.DType.IsComplex()) {
			all = append(all, &hlo.Instr{Op: hlo.OpParameter, Shape: real})
		}
	}
	return all
}

// boolInt is a bool as a number.
func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
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
func split(c *hlo.Computation, parameter func(*builder, *hlo.Instr)) (*builder, error) {
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

// A builder appends instructions of the parts to out.
type builder struct {
	out *hlo.Computation
	// from is the instruction that is being written as others; they are named after it.
	from *hlo.Instr
	// names are those taken, for hlo.UniqueName.
	names map[string]int
	// parts are the values of an instruction: of a complex array its real and its
	// imaginary part, of another one itself, of a tuple those of its elements in order.
	parts map[*hlo.Instr][]*hlo.Instr
}

// newBuilder appends to out.
func newBuilder(out *hlo.Computation) *builder {
	return &builder{
		out:   out,
		names: map[string]int{},
		parts: map[*hlo.Instr][]*hlo.Instr{},
	}
}

// name is a new one, after the instruction that is being written.
func (b *builder) name() string { return hlo.UniqueName(b.names, b.from.Name+".part") }

// add appends an instruction.
func (b *builder) add(op hlo.Opcode, s hlo.Shape, a hlo.Attrs, operands ...*hlo.Instr) *hlo.Instr {
	i := &hlo.Instr{
		Name:     b.name(),
		Op:       op,
		Shape:    s,
		Attrs:    a,
		Operands: operands,
		Pos:      b.from.Pos,
	}
	b.out.Instrs = append(b.out.Instrs, i)
	return i
}

// undefined is the error of the instruction that is being written.
func (b *builder) undefined(format string, args ...any) error {
	return &Undefined{b.from, fmt.Sprintf(format, args...)}
}

// scalar makes the parameter of a reduction one, or two, of real numbers.
func (b *builder) scalar(p *hlo.Instr) {
	for range 1 + boolInt(p.Shape.DType.IsComplex()) {
		part := &hlo.Instr{
			Name: b.name(), Op: hlo.OpParameter, Shape: partShape(p.Shape), Pos: p.Pos,
			Attrs: hlo.Attrs{Param: len(b.out.Params)},
		}
		b.out.Params = append(b.out.Params, part)
		b.out.Instrs = append(b.out.Instrs, part)
		b.parts[p] = append(b.parts[p], part)
	}
}

// parameter makes a complex parameter one of real numbers, and takes the parts out.
func (b *builder) parameter(p *hlo.Instr) {
	if !p.Shape.DType.IsComplex() {
		b.out.Params = append(b.out.Params, p)
		b.out.Instrs = append(b.out.Instrs, p)
		b.parts[p] = []*hlo.Instr{p}
		return
	}
	copied := *p
	copied.Shape = p.Shape.Parts()
	b.out.Params = append(b.out.Params, &copied)
	b.out.Instrs = append(b.out.Instrs, &copied)
	for k := range int64(2) {
		var a hlo.Attrs
		s := hlo.Shape{DType: copied.Shape.DType, Dims: slices.Clone(copied.Shape.Dims)}
		for _, n := range p.Shape.Dims {
			a.Slice = append(a.Slice, hlo.SliceDim{Limit: n, Stride: 1})
		}
		a.Slice = append(a.Slice, hlo.SliceDim{Start: k, Limit: k + 1, Stride: 1})
		s.Dims[p.Shape.Rank()] = 1
		part := b.add(hlo.OpSlice, s, a, &copied)
		b.parts[p] = append(b.parts[p], b.add(hlo.OpReshape, partShape(p.Shape), hlo.Attrs{}, part))
	}
}

// partShape is the shape of each part of a complex array; another shape is itself,
// without a layout.
// Between parameters and results a layout means nothing.
func partShape(s hlo.Shape) hlo.Shape {
	return hlo.Shape{DType: s.DType.Component(), Dims: s.Dims}
}

// result is the value of i as it lies in memory; of a tuple, each element.
func (b *builder) result(i *hlo.Instr) (*hlo.Instr, error) {
	switch {
	case i.Op == hlo.OpTuple:
		var all []*hlo.Instr
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
	var all []*hlo.Instr
	at := 0
	for _, s := range i.Shape.Tuple {
		if s.DType == hlo.Tuple {
			return nil, b.undefined("its results are tuples of tuples")
		}
		n := 1 + boolInt(s.DType.IsComplex())
		all = append(all, b.joined(s, b.parts[i][at:at+n]))
		at += n
	}
	return b.tuple(all), nil
}

// tuple is a tuple of values.
func (b *builder) tuple(all []*hlo.Instr) *hlo.Instr {
	s := hlo.Shape{DType: hlo.Tuple}
	for _, v := range all {
		s.Tuple = append(s.Tuple, v.Shape)
	}
	return b.add(hlo.OpTuple, s, hlo.Attrs{}, all...)
}

// joined is an array of shape s, given its parts, as it lies in memory.
func (b *builder) joined(s hlo.Shape, values []*hlo.Instr) *hlo.Instr {
	if !s.DType.IsComplex() {
		return values[0]
	}
	// Along the new dimension the first element is the real part.
	whole := s.Parts()
	rank := int64(s.Rank())
	number := hlo.Shape{DType: hlo.S32, Dims: whole.Dims}
	which := term{b, b.add(hlo.OpIota, number, hlo.Attrs{IotaDim: rank})}
	both := hlo.Attrs{Dimensions: make([]int64, rank)}
	for d := range both.Dimensions {
		both.Dimensions[d] = int64(d)
	}
	row := hlo.Shape{DType: whole.DType, Dims: whole.Dims}
	return b.add(
		hlo.OpSelect, whole, hlo.Attrs{},
		which.isZero().i,
		b.add(hlo.OpBroadcast, row, both, values[0]),
		b.add(hlo.OpBroadcast, row, both, values[1]),
	)
}

// instr writes one instruction and returns its values.
func (b *builder) instr(i *hlo.Instr) ([]*hlo.Instr, error) {
	switch {
	case i.Op == hlo.OpTuple:
		return nil, nil // the root; result takes its operands
	case i.Op == hlo.OpGetTupleElement:
		return b.element(i)
	case !Complex(i):
		return b.copied(i), nil
	case i.Op == hlo.OpConstant:
		return b.constant(i)
	case i.Op == hlo.OpReduce || i.Op == hlo.OpReduceWindow:
		return b.reduce(i)
	case i.Op == hlo.OpDot || i.Op == hlo.OpConvolution:
		return b.products(i), nil
	case i.Op.Elementwise() && !moves(i):
		return b.elementwise(i)
	case i.Op == hlo.OpIota:
		// The index is real.
		re := *i
		re.Shape = partShape(i.Shape)
		re.Name = b.name()
		b.out.Instrs = append(b.out.Instrs, &re)
		return []*hlo.Instr{&re, b.number(re.Shape, 0)}, nil
	case moves(i):
		return []*hlo.Instr{b.part(i, 0), b.part(i, 1)}, nil
	}
	return nil, b.undefined("it is not computed of complex numbers")
}

// moves reports whether an operation puts elements of its operands at other places, and
// computes nothing.
func moves(i *hlo.Instr) bool {
	if !i.Shape.DType.IsComplex() {
		return false
	}
	switch i.Op {
	case hlo.OpBitcast, hlo.OpBitcastConvert:
		return i.Operands[0].Shape.DType == i.Shape.DType
	case hlo.OpSelect, hlo.OpCopy, hlo.OpOptimizationBarrier,
		hlo.OpDynamicSlice, hlo.OpDynamicUpdateSlice, hlo.OpGather:
		return true
	}
	return i.Op.Class() == hlo.ClassMove
}

// copied is an instruction without complex operands and results.
func (b *builder) copied(i *hlo.Instr) []*hlo.Instr {
	operands := make([]*hlo.Instr, len(i.Operands))
	for k, o := range i.Operands {
		operands[k] = b.parts[o][0]
	}
	if !slices.Equal(operands, i.Operands) {
		c := *i
		c.Operands = operands
		i = &c
	}
	b.out.Instrs = append(b.out.Instrs, i)
	if i.Shape.DType != hlo.Tuple {
		return []*hlo.Instr{i}
	}
	return b.elements(i)
}

// elements are the elements of a tuple of arrays.
func (b *builder) elements(i *hlo.Instr) []*hlo.Instr {
	all := make([]*hlo.Instr, len(i.Shape.Tuple))
	for k, s := range i.Shape.Tuple {
		all[k] = b.add(hlo.OpGetTupleElement, s, hlo.Attrs{Index: k}, i)
	}
	return all
}

// element is the value, or both, of an element of a tuple.
func (b *builder) element(i *hlo.Instr) ([]*hlo.Instr, error) {
	// The values of a tuple are those of its elements, one or two of each.
	of := i.Operands[0]
	values := b.parts[of]
	at := 0
	for k, s := range of.Shape.Tuple {
		n := 1 + boolInt(s.DType.IsComplex())
		if s.DType == hlo.Tuple || at+n > len(values) {
			break
		}
		if k == i.Attrs.Index {
			return values[at : at+n], nil
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
	c.Operands = make([]*hlo.Instr, len(i.Operands))
	for n, o := range i.Operands {
		c.Operands[n] = b.parts[o][min(k, len(b.parts[o])-1)]
	}
	b.out.Instrs = append(b.out.Instrs, &c)
	return &c
}

// constant is the two parts of a literal.
func (b *builder) constant(i *hlo.Instr) ([]*hlo.Instr, error) {
	if i.Literal == nil || i.Literal.Elided {
		return nil, b.undefined("its value was left out of the text ({...})")
	}
	all := make([]*hlo.Instr, 2)
	for k := range all {
		s := partShape(i.Shape)
		l := &hlo.Literal{Shape: s, Floats: make([]float64, len(i.Literal.Complex))}
		for n, z := range i.Literal.Complex {
			l.Floats[n] = [2]float64{real(z), imag(z)}[k]
		}
		all[k] = b.add(hlo.OpConstant, s, hlo.Attrs{})
		all[k].Literal = l
	}
	return all, nil
}

// reduce of a sum is two reduces; by another computation it is one reduce of the parts
// of all operands.
func (b *builder) reduce(i *hlo.Instr) ([]*hlo.Instr, error) {
	if op, ok := i.Attrs.ToApply.Monoid(); ok && op == hlo.OpAdd {
		all := []*hlo.Instr{b.part(i, 0), b.part(i, 1)}
		for _, r := range all {
			r.Attrs.ToApply = sumOf(r.Shape.DType, i.Attrs.ToApply.Name)
		}
		return all, nil
	}
	// The operands are all values first, then all initial values, and so are the
	// parameters of the computation.
	c := *i
	c.Name, c.Operands = b.name(), nil
	for _, o := range i.Operands {
		c.Operands = append(c.Operands, b.parts[o]...)
	}
	c.Shape = hlo.Shape{DType: hlo.Tuple}
	for _, s := range i.Shape.Arrays() {
		for range 1 + boolInt(s.DType.IsComplex()) {
			c.Shape.Tuple = append(c.Shape.Tuple, partShape(s))
		}
	}
	var err error
	if c.Attrs.ToApply, err = applied(i.Attrs.ToApply); err != nil {
		return nil, err
	}
	b.out.Instrs = append(b.out.Instrs, &c)
	return b.elements(&c), nil
}

// sumOf is the computation of the sum of two scalars.
func sumOf(d hlo.DType, name string) *hlo.Computation {
	s := hlo.Shape{DType: d}
	x := &hlo.Instr{Name: "x", Op: hlo.OpParameter, Shape: s}
	y := &hlo.Instr{Name: "y", Op: hlo.OpParameter, Shape: s, Attrs: hlo.Attrs{Param: 1}}
	r := &hlo.Instr{Name: "r", Op: hlo.OpAdd, Shape: s, Operands: []*hlo.Instr{x, y}}
	return &hlo.Computation{
		Name: name, Params: []*hlo.Instr{x, y}, Instrs: []*hlo.Instr{x, y, r}, Root: r,
	}
}

// products is a sum of products: of real parts less that of imaginary ones, and those
// of each with the other.
func (b *builder) products(i *hlo.Instr) []*hlo.Instr {
	x, y := b.parts[i.Operands[0]], b.parts[i.Operands[1]]
	// A real operand has no imaginary part, and no product with one.
	product := func(l, r int) term {
		if l >= len(x) || r >= len(y) {
			return term{}
		}
		c := *i
		c.Name, c.Shape.DType = b.name(), i.Shape.DType.Component()
		c.Operands = []*hlo.Instr{x[l], y[r]}
		b.out.Instrs = append(b.out.Instrs, &c)
		return term{b, &c}
	}
	re, im := product(0, 0), product(0, 1)
	if t := product(1, 1); t.i != nil {
		re = re.minus(t)
	}
	switch t := product(1, 0); {
	case im.i == nil:
		im = t
	case t.i != nil:
		im = im.plus(t)
	}
	return []*hlo.Instr{re.i, im.i}
}

// number is an array of one real number.
func (b *builder) number(s hlo.Shape, v float64) *hlo.Instr {
	scalar := hlo.Shape{DType: s.DType}
	c := b.add(hlo.OpConstant, scalar, hlo.Attrs{})
	c.Literal = &hlo.Literal{Shape: scalar}
	if s.DType.IsFloat() {
		c.Literal.Floats = []float64{s.DType.RoundFloat(v)}
	} else {
		c.Literal.Ints = []int64{int64(v)}
	}
	if s.Rank() == 0 {
		return c
	}
	return b.add(hlo.OpBroadcast, partShape(s), hlo.Attrs{Dimensions: []int64{}}, c)
}
