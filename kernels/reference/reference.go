package reference

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Interpret evaluates c by plain loops that follow the semantics of HLO, and
// returns one output a root, in the order of the tuple. It is the oracle for
// tiles, plans and backends.
//
// Every result is rounded to the element type of its instruction. Values are
// computed in float64 or int64: add, subtract, multiply, divide and sqrt of f32
// are therefore rounded correctly, because float64 has more than twice the
// bits, and transcendental functions of f32 are within one unit in the last
// place. The sums of reduce and dot over floating-point numbers are accumulated
// in float64 and rounded once, so that the reference is the best value and
// backends are compared with it within a tolerance. Integers wrap at their
// width.
func Interpret(
	c *hlo.Computation, in []kernels.Buffer,
) ([]kernels.Buffer, error) {
	return InterpretContext(context.Background(), c, in)
}

// InterpretContext is Interpret with a context, which all loops look at: within some
// milliseconds of its end its cause is the error.
func InterpretContext(
	ctx context.Context, c *hlo.Computation, in []kernels.Buffer,
) (out []kernels.Buffer, err error) {
	e := newEvaluation(ctx)
	defer e.ended(&err)
	args, err := e.arguments(c, in)
	if err != nil {
		return nil, err
	}
	result, err := e.evaluateOwn(c, args)
	if err != nil {
		return nil, err
	}
	return e.outputs(result)
}

// arguments are the values of a computation's parameters.
func (e *evaluation) arguments(
	c *hlo.Computation, in []kernels.Buffer,
) ([]value, error) {
	if len(in) != len(c.Params) {
		return nil, fmt.Errorf(
			"%s has %d parameters, %d inputs given", c.Name, len(c.Params), len(in),
		)
	}
	args := make([]value, len(in))
	for k, b := range in {
		if want := c.Params[k].Shape; !b.Shape.Compatible(want) {
			return nil, fmt.Errorf(
				"input %d is %s; parameter %s is %s",
				k, b.Shape, c.Params[k].Name, want,
			)
		}
		v, err := e.load(b)
		if err != nil {
			return nil, fmt.Errorf(
				"%s: %w", c.Params[k].Name, err,
			)
		}
		args[k] = v
	}
	return args, nil
}

// outputs are the arrays of a result, which is an array or a tuple.
func (e *evaluation) outputs(result value) (out []kernels.Buffer, err error) {
	for _, v := range result.leaves() {
		b, err := e.store(v)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

// A value is an array in logical row-major order, or a tuple of values.
// Integers and pred are in ints, floating-point numbers in floats, complex ones in
// complexes.
type value struct {
	// The element type, and the extents in logical order.
	shape hlo.Shape
	// Elements of integer types and of pred; nil for others.
	ints []int64
	// Elements of floating-point types, each of them representable in the type;
	// nil for others.
	floats []float64
	// Elements of complex types, each part of them representable in its type; nil for
	// others.
	complexes []complex128
	// Elements of a tuple.
	tuple []value
}

// leaves are the arrays of a value in the order of its tuples.
func (v value) leaves() []value {
	if v.shape.DType != hlo.Tuple {
		return []value{v}
	}
	var all []value
	for _, e := range v.tuple {
		all = append(all, e.leaves()...)
	}
	return all
}

// strides are the row-major strides of the elements.
func (v value) strides() []int64 { return hlo.RowMajor(v.shape.Dims) }

// maxElements bounds a value to 64 GiB, the limit of a buffer
// (kernels.NewBuffer).
const maxElements = 8 << 30

// newValue allocates an array of zeros. Shapes that the machine cannot hold are
// errors.
func newValue(shape hlo.Shape) (value, error) {
	n := shape.Elements()
	switch {
	case !shape.DType.IsArray():
		return value{}, fmt.Errorf("the reference does not compute %s", shape)
	case n > maxElements:
		return value{}, fmt.Errorf("%s is too large for the reference", shape)
	}
	if err := kernels.CheckFreeMemory(max(8, shape.DType.Size()) * n); err != nil {
		return value{}, fmt.Errorf("the reference's values of %s: %w", shape, err)
	}
	switch {
	case shape.DType.IsComplex():
		return value{shape: shape, complexes: make([]complex128, n)}, nil
	case shape.DType.IsFloat():
		return value{
			shape:  shape,
			floats: make([]float64, n),
		}, nil
	default:
		return value{
			shape: shape,
			ints:  make([]int64, n),
		}, nil
	}
}

// load converts a buffer, of any layout, to a value.
func (e *evaluation) load(b kernels.Buffer) (value, error) {
	v, err := newValue(b.Shape)
	if err != nil {
		return value{}, err
	}
	rowsOf(b.Shape.Dims, b.Shape.Strides()).each(e, func(r row) {
		if v.floats != nil && r.step == 1 {
			b.ReadFloats(v.floats[r.n:r.n+r.count], r.at)
			return
		}
		for k := range r.count {
			switch {
			case v.floats != nil:
				v.floats[r.n+k] = b.Float(r.at + k*r.step)
			case v.complexes != nil:
				v.complexes[r.n+k] = b.Complex(r.at + k*r.step)
			default:
				v.ints[r.n+k] = b.Int(r.at + k*r.step)
			}
		}
	})
	return v, nil
}

// store converts a value to a buffer with the layout of its shape.
func (e *evaluation) store(v value) (kernels.Buffer, error) {
	b, err := kernels.NewBuffer(v.shape)
	if err != nil || v.empty() {
		return b, err
	}
	rowsOf(v.shape.Dims, v.shape.Strides()).each(e, func(r row) {
		if v.floats != nil && r.step == 1 {
			b.WriteFloats(v.floats[r.n:r.n+r.count], r.at)
			return
		}
		for k := range r.count {
			switch {
			case v.floats != nil:
				b.SetFloat(r.at+k*r.step, v.floats[r.n+k])
			case v.complexes != nil:
				b.SetComplex(r.at+k*r.step, v.complexes[r.n+k])
			default:
				b.SetInt(r.at+k*r.step, v.ints[r.n+k])
			}
		}
	})
	return b, nil
}

// strided makes a value of the given shape whose element at an index is the
// element of v at start + Σ index·strides. A broadcast has strides of 0, a
// reverse negative ones.
func (e *evaluation) strided(
	v value, shape hlo.Shape, start int64, strides []int64,
) (value, error) {
	out, err := newValue(shape)
	if err != nil {
		return out, err
	}
	rowsOf(shape.Dims, strides).each(e, func(r row) {
		for k := int64(0); k < r.count && v.floats != nil; k++ {
			out.floats[r.n+k] = v.floats[start+r.at+k*r.step]
		}
		for k := int64(0); k < r.count && v.ints != nil; k++ {
			out.ints[r.n+k] = v.ints[start+r.at+k*r.step]
		}
		for k := int64(0); k < r.count && v.complexes != nil; k++ {
			out.complexes[r.n+k] = v.complexes[start+r.at+k*r.step]
		}
	})
	return out, nil
}

// storeStrided copies the element of v at an index to position start + Σ
// index·strides of out.
func (e *evaluation) storeStrided(v, out value, start int64, strides []int64) {
	rowsOf(v.shape.Dims, strides).each(e, func(r row) {
		for k := range r.count {
			move(out, start+r.at+k*r.step, v, r.n+k)
		}
	})
}

// empty reports whether v has no elements.
func (v value) empty() bool {
	return v.floats == nil && v.ints == nil && v.complexes == nil
}

// withShape is v with another shape that has as many elements.
func (v value) withShape(shape hlo.Shape) value { v.shape = shape; return v }

// evaluate evaluates the instructions of a computation in order and returns the
// value of its root. Operands stand before their users, so that every value is
// there when it is needed. Values are dropped after they are read for the last time.
func (e *evaluation) evaluate(c *hlo.Computation, args []value) (value, error) {
	return e.evaluateOn(c, args, func(int) {})
}

// evaluateOwn is evaluate for arguments that nothing else reads: they are dropped, too.
func (e *evaluation) evaluateOwn(c *hlo.Computation, args []value) (value, error) {
	return e.evaluateOn(c, args, func(param int) {
		args[param] = value{}
	})
}

// evaluateOn is evaluate which calls drop for each parameter that is not read any more.
func (e *evaluation) evaluateOn(
	c *hlo.Computation, args []value, drop func(param int),
) (value, error) {
	values := make(map[*hlo.Instr]value, len(c.Instrs))
	for n, i := range c.Instrs {
		operands := make([]value, len(i.Operands))
		for k, o := range i.Operands {
			operands[k] = values[o]
		}
		if i.Op == hlo.OpParameter {
			operands = []value{args[i.Attrs.Param]}
		}
		v, err := e.instruction(i, operands)
		if err != nil {
			return value{}, fmt.Errorf(
				"%s (%s): %w", i.Name, i.Op, err,
			)
		}
		values[i] = v
		for _, o := range lastRead(c, n) {
			delete(values, o)
			if o.Op == hlo.OpParameter {
				drop(o.Attrs.Param)
			}
		}
	}
	return values[c.Root], nil
}

// instruction evaluates one instruction on the values of its operands.
// Structural operations are cases of the switch, elementwise ones rows of the
// tables in elementwise.go; what has neither is not computed by the reference.
func (e *evaluation) instruction(i *hlo.Instr, a []value) (value, error) {
	if f := byParts[i.Op]; f != nil && i.Shape.DType.IsComplex() {
		return e.products(i, a, f)
	}
	switch i.Op {
	case hlo.OpParameter, hlo.OpCopy, hlo.OpOptimizationBarrier, hlo.OpReshape:
		return a[0].withShape(i.Shape), nil
	case hlo.OpConstant:
		return evaluateConstant(i)
	case hlo.OpIota:
		return e.evaluateIota(i)
	case hlo.OpBroadcast:
		strides := make([]int64, i.Shape.Rank())
		for k, d := range i.Attrs.Dimensions {
			strides[d] = a[0].strides()[k]
		}
		return e.strided(a[0], i.Shape, 0, strides)
	case hlo.OpTranspose:
		strides := make([]int64, i.Shape.Rank())
		for k, d := range i.Attrs.Dimensions {
			strides[k] = a[0].strides()[d]
		}
		return e.strided(a[0], i.Shape, 0, strides)
	case hlo.OpBitcast:
		return e.reinterpret(a[0], i)
	case hlo.OpBitcastConvert:
		return e.reinterpretBits(a[0], i)
	case hlo.OpSlice:
		return e.slice(i, a[0])
	case hlo.OpReverse:
		return e.reverse(i, a[0])
	case hlo.OpConcatenate:
		return e.concatenate(i, a)
	case hlo.OpPad:
		return e.pad(i, a)
	case hlo.OpReduce:
		return e.reduce(i, a)
	case hlo.OpReduceWindow:
		return e.reduceWindow(i, a)
	case hlo.OpSelectAndScatter:
		return e.selectAndScatter(i, a)
	case hlo.OpDot:
		return e.dot(i, a)
	case hlo.OpScaledDot:
		return e.scaledDot(i, a)
	case hlo.OpConvolution:
		return e.convolution(i, a)
	case hlo.OpDynamicSlice:
		return e.dynamicSlice(i, a)
	case hlo.OpDynamicUpdateSlice:
		return e.dynamicUpdateSlice(i, a)
	case hlo.OpGather:
		return e.gather(i, a)
	case hlo.OpScatter:
		return e.scatter(i, a)
	case hlo.OpMap:
		return e.evaluateMap(i, a)
	case hlo.OpSort:
		return e.sortValues(i, a)
	case hlo.OpTopK:
		return e.topK(i, a)
	case hlo.OpTuple:
		return value{shape: i.Shape, tuple: a}, nil
	case hlo.OpGetTupleElement:
		return a[0].tuple[i.Attrs.Index], nil
	case hlo.OpFusion, hlo.OpCall:
		return e.evaluate(i.Attrs.Calls, a)
	}
	if i.Op.Elementwise() {
		return e.elementwise(i, a)
	}
	if isLibraryTopK(i) {
		dims := i.Shape.Tuple[0].Dims
		return e.firstOfLines(i, a[0], int(dims[len(dims)-1]))
	}
	return value{}, fmt.Errorf("the reference does not compute this operation: %s", cmp.Or(i.Unknown(), i.Op.Not(hlo.Reference)))
}

// evaluateConstant is the value of a literal, rounded to its type.
func evaluateConstant(i *hlo.Instr) (value, error) {
	if i.Literal == nil || i.Literal.Elided {
		return value{}, fmt.Errorf("its value was left out of the text ({...})")
	}
	v, err := newValue(i.Shape)
	if err != nil {
		return v, err
	}
	copy(v.ints, i.Literal.Ints)
	for k, x := range i.Literal.Floats {
		v.floats[k] = kernels.RoundFloat(i.Shape.DType, x)
	}
	for k, x := range i.Literal.Complex {
		v.complexes[k] = roundComplex(i.Shape.DType, x)
	}
	return v, nil
}

// evaluateIota is the index along one dimension of every element.
func (e *evaluation) evaluateIota(i *hlo.Instr) (value, error) {
	v, err := newValue(i.Shape)
	if err != nil {
		return v, err
	}
	strides := make([]int64, i.Shape.Rank())
	strides[i.Attrs.IotaDim] = 1
	w := NewWalk(i.Shape.Dims, strides)
	for k := range v.floats {
		e.tick()
		v.floats[k] = kernels.RoundFloat(
			i.Shape.DType, float64(w.Next()),
		)
	}
	for k := range v.ints {
		e.tick()
		v.ints[k] = kernels.WrapInt(
			i.Shape.DType, w.Next(),
		)
	}
	for k := range v.complexes {
		e.tick()
		v.complexes[k] = roundComplex(i.Shape.DType, complex(float64(w.Next()), 0))
	}
	return v, nil
}

// reinterpret gives the bytes of a value, in the order of memory, another
// shape.
func (e *evaluation) reinterpret(v value, i *hlo.Instr) (value, error) {
	b, err := e.store(v)
	if err != nil {
		return value{}, err
	}
	return e.load(kernels.Buffer{
		Shape: i.Shape,
		Data:  b.Data,
	})
}

// reinterpretBits gives the bits of a value another element type, in row-major
// order with the low bits of an element first. Elements take whole bytes of a
// buffer, but they are not padded here: s8[2] is s4[2,2]. Of single elements it is asked
// where both types have as many bits.
func (e *evaluation) reinterpretBits(v value, i *hlo.Instr) (value, error) {
	from, err := e.store(v.withShape(hlo.Shape{
		DType: v.shape.DType,
		Dims:  v.shape.Dims,
	}))
	if err != nil {
		return value{}, err
	}
	to, err := kernels.NewBuffer(hlo.Shape{
		DType: i.Shape.DType,
		Dims:  i.Shape.Dims,
	})
	if err != nil {
		return value{}, err
	}
	e.copyBits(to, from)
	if v, err = e.load(to); err != nil {
		return value{}, err
	}
	v = v.withShape(i.Shape)
	// The sign of a type narrower than a byte is not in the bits that were copied.
	e.round(v)
	return v, nil
}

// copyBits fills a buffer of zeros with the bits of another's elements. It takes as many at
// a time as an element of either has, at most a byte: those of a narrow type lie apart, one
// element in each byte of its buffer, and those of the other next to each other.
func (e *evaluation) copyBits(to, from kernels.Buffer) {
	d := from.Shape.DType
	t := to.Shape.DType
	step := min(d.Bits(), t.Bits(), 8)
	for bit := 0; bit < int(from.Shape.Elements())*d.Bits(); bit += step {
		e.tick()
		x := from.Data[byteOf(d, bit)] >> shiftOf(d, bit) & (1<<step - 1)
		to.Data[byteOf(t, bit)] |= x << shiftOf(t, bit)
	}
}

// byteOf and shiftOf locate bit n of the elements of a buffer of type d: the
// byte, and the position in it.
func byteOf(d hlo.DType, n int) int {
	return n/d.Bits()*int(d.Size()) +
		n%d.Bits()/8
}

// shiftOf is the position of bit n in its byte.
func shiftOf(d hlo.DType, n int) int {
	return n % d.Bits() % 8
}

// slice reads every stride-th element from a start along each dimension: the
// strides of the operand are multiplied by those of the slice.
func (e *evaluation) slice(i *hlo.Instr, v value) (value, error) {
	strides := v.strides()
	start := int64(0)
	for k, r := range i.Attrs.Slice {
		start += r.Start * strides[k]
		strides[k] *= r.Stride
	}
	return e.strided(v, i.Shape, start, strides)
}

// reverse reads some dimensions backwards, from their last element with
// negative strides.
func (e *evaluation) reverse(i *hlo.Instr, v value) (value, error) {
	strides := v.strides()
	start := int64(0)
	for _, d := range i.Attrs.Dimensions {
		start += max(0, v.shape.Dims[d]-1) * strides[d]
		strides[d] = -strides[d]
	}
	return e.strided(v, i.Shape, start, strides)
}

// concatenate copies the operands behind each other along one dimension: each
// begins at the sum of the extents before it.
func (e *evaluation) concatenate(i *hlo.Instr, a []value) (value, error) {
	out, err := newValue(i.Shape)
	strides := hlo.RowMajor(i.Shape.Dims)
	along := i.Attrs.Dimensions[0]
	prefix := int64(0)
	for _, v := range a {
		e.tick()
		if err == nil {
			e.storeStrided(v, out, prefix*strides[along], strides)
		}
		prefix += v.shape.Dims[along]
	}
	return out, err
}

// pad copies the operand into an array of the padding value. Elements that
// negative padding removes are left out.
func (e *evaluation) pad(i *hlo.Instr, a []value) (value, error) {
	out, err := newValue(i.Shape)
	if err != nil {
		return out, err
	}
	fill(out, a[1])
	index := make([]int64, i.Shape.Rank())
	strides := hlo.RowMajor(i.Shape.Dims)
	for n := range a[0].shape.Elements() {
		e.tick()
		rest := n
		at := int64(0)
		inside := true
		for d := range slices.Backward(index) {
			p := i.Attrs.Padding[d]
			x := p.Low + rest%
				a[0].shape.Dims[d]*
				(p.Interior+1)
			rest /= a[0].shape.Dims[d]
			inside = inside && x >= 0 && x < i.Shape.Dims[d]
			at += x * strides[d]
		}
		if inside {
			move(out, at, a[0], n)
		}
	}
	return out, nil
}

// fill sets all elements to a scalar.
func fill(out, scalar value) {
	for k := range out.floats {
		out.floats[k] = scalar.floats[0]
	}
	for k := range out.ints {
		out.ints[k] = scalar.ints[0]
	}
	for k := range out.complexes {
		out.complexes[k] = scalar.complexes[0]
	}
}

// move copies element n of one array to position at of another of the same
// type.
func move(to value, at int64, from value, n int64) {
	switch {
	case to.floats != nil:
		to.floats[at] = from.floats[n]
	case to.complexes != nil:
		to.complexes[at] = from.complexes[n]
	default:
		to.ints[at] = from.ints[n]
	}
}

// evaluateMap applies a scalar computation to every element.
func (e *evaluation) evaluateMap(i *hlo.Instr, a []value) (value, error) {
	out, err := newValue(i.Shape)
	if err != nil {
		return out, err
	}
	args := make([]value, len(a))
	for n := range i.Shape.Elements() {
		e.tick()
		for k, v := range a {
			args[k] = v.scalar(n)
		}
		v, err := e.evaluate(i.Attrs.ToApply, args)
		if err != nil {
			return out, err
		}
		move(out, n, v, 0)
	}
	return out, nil
}

// scalar is element n as a value, which shares memory with v.
func (v value) scalar(n int64) value {
	s := value{shape: hlo.Shape{DType: v.shape.DType}}
	switch {
	case v.floats != nil:
		s.floats = v.floats[n : n+1 : n+1]
	case v.complexes != nil:
		s.complexes = v.complexes[n : n+1 : n+1]
	default:
		s.ints = v.ints[n : n+1 : n+1]
	}
	return s
}

// dot contracts with sums in float64 or wrapping int64. The terms of each sum
// are added in the order of the contracted dimensions.
func (e *evaluation) dot(i *hlo.Instr, a []value) (value, error) {
	out, err := newValue(i.Shape)
	if err == nil {
		err = checkProducts(out, a[0], a[1])
	}
	if err != nil {
		return out, err
	}
	l := a[0]
	r := a[1]
	at := &i.Attrs
	// Both operands are brought into the order batch, free, contracting, so that
	// every sum runs over two contiguous vectors.
	left := e.transposed(
		l,
		slices.Concat(at.LHSBatch, freeDims(
			l, at.LHSBatch, at.LHSContract,
		), at.LHSContract),
	)
	right := e.transposed(
		r,
		slices.Concat(at.RHSBatch, freeDims(
			r, at.RHSBatch, at.RHSContract,
		), at.RHSContract),
	)
	c := contraction{
		batch: l.shape.Extent(at.LHSBatch),
		k:     l.shape.Extent(at.LHSContract),
		m:     l.shape.Extent(freeDims(l, at.LHSBatch, at.LHSContract)),
		n:     r.shape.Extent(freeDims(r, at.RHSBatch, at.RHSContract)),
	}
	if out.floats != nil {
		contractFloats(
			e, c, out.floats, left.asFloats(), right.asFloats(),
		)
	} else {
		contract(e, c, out.ints, left.ints, right.ints)
	}
	e.round(out)
	return out, nil
}

// checkProducts refuses operands whose products out cannot hold: the result of
// floating-point operands is not an integer.
func checkProducts(out value, in ...value) error {
	for _, v := range in {
		if _, err := newValue(v.shape); err != nil {
			return err
		}
		if v.floats != nil && out.floats == nil || v.complexes != nil {
			return fmt.Errorf("the reference does not compute %s from %s", out.shape, v.shape)
		}
	}
	return nil
}

// asFloats are the elements as floating-point numbers; integers are converted,
// since a dot of s8 may give f32.
func (v value) asFloats() []float64 {
	if v.floats != nil {
		return v.floats
	}
	out := make([]float64, len(v.ints))
	for k := range out {
		out[k] = v.float(int64(k))
	}
	return out
}

// float is one element as a floating-point number.
func (v value) float(n int64) float64 {
	switch {
	case v.floats != nil:
		return v.floats[n]
	case v.shape.DType == hlo.U64:
		return float64(uint64(v.ints[n]))
	}
	return float64(v.ints[n])
}

// transposed is v with its dimensions in another order.
func (e *evaluation) transposed(v value, order []int64) value {
	shape := hlo.Shape{
		DType: v.shape.DType,
		Dims:  make([]int64, len(order)),
	}
	strides := make([]int64, len(order))
	for k, d := range order {
		shape.Dims[k], strides[k] = v.shape.Dims[d],
			v.strides()[d]
	}
	// The result has as many elements as v, so that it fits.
	out, _ := e.strided(v, shape, 0, strides)
	return out
}

// freeDims are the dimensions of v that are neither batch nor contracting.
func freeDims(v value, batch, contract []int64) []int64 {
	var dims []int64
	for d := range int64(v.shape.Rank()) {
		if !slices.Contains(batch, d) &&
			!slices.Contains(contract, d) {
			dims = append(dims, d)
		}
	}
	return dims
}

// reduce combines elements along some dimensions, in row-major order, with the
// initial values first.
func (e *evaluation) reduce(i *hlo.Instr, a []value) (value, error) {
	n := len(a) / 2
	outs, err := e.initialValues(i.Shape, a[n:])
	if err != nil {
		return value{}, err
	}
	_, monoid := i.Attrs.ToApply.Monoid()
	if !monoid && outs[0].shape.Elements() >= minLanes {
		l, ok, err := e.lanesOf(i.Attrs.ToApply, outs[0].shape.Dims)
		if err != nil {
			return value{}, err
		}
		if ok {
			if outs, err = e.reduceLanes(l, i.Attrs.Dimensions, outs, a[:n]); err != nil {
				return value{}, err
			}
			return e.rounded(i.Shape, outs), nil
		}
	}
	// The strides of the result along the dimensions of the operand are 0 along
	// reduced dimensions: all elements along them meet at one position.
	strides := make([]int64, a[0].shape.Rank())
	kept := outs[0].strides()
	for d := range strides {
		if !slices.Contains(i.Attrs.Dimensions, int64(d)) {
			strides[d], kept = kept[0], kept[1:]
		}
	}
	fold, err := e.reducer(i.Attrs.ToApply, outs, a[:n])
	if err != nil {
		return value{}, err
	}
	err = e.reduceRows(
		rowsOf(a[0].shape.Dims, strides), monoid, fold,
	)
	if err != nil {
		return value{}, err
	}
	return e.rounded(i.Shape, outs), nil
}

// reduceRows combines all elements in row-major order. If the reductions of
// different results share nothing but the operand (a monoid), the slices of a
// first dimension that is kept are done on all cores; the order of the terms of
// each result stays the same, and so do its bits.
func (e *evaluation) reduceRows(r rows, monoid bool, fold func(to, at int64) error) (err error) {
	all := func(lo, hi int64) {
		r.visit(e, lo, hi, func(x row) {
			for k := range x.count {
				e := fold(x.at+k*x.step, x.n+k)
				if e != nil {
					err = e
					return
				}
			}
		})
	}
	if !monoid || len(r.outer) == 0 ||
		r.strides[0] == 0 || r.total == 0 {
		all(0, r.total)
		return err
	}
	slice := r.total / r.outer[0]
	e.parallel(r.outer[0], slice*r.run.count, func(lo, hi int64) {
		all(lo*slice, hi*slice)
	})
	// Only computations that are interpreted can fail, and those are not monoids.
	return nil
}

// initialValues makes the arrays of a shape, or of the elements of a tuple,
// each of them filled with its initial value.
func (e *evaluation) initialValues(shape hlo.Shape, initial []value) ([]value, error) {
	shapes := []hlo.Shape{shape}
	if shape.DType == hlo.Tuple {
		shapes = shape.Tuple
	}
	outs := make([]value, len(shapes))
	for k := range outs {
		v, err := newValue(shapes[k])
		if err != nil {
			return nil, err
		}
		fill(v, initial[k])
		outs[k] = v
	}
	return outs, nil
}

// rounded rounds accumulated values and makes a tuple of them if the shape is
// one.
func (e *evaluation) rounded(shape hlo.Shape, outs []value) value {
	for _, v := range outs {
		e.round(v)
	}
	if shape.DType == hlo.Tuple {
		return value{shape: shape, tuple: outs}
	}
	return outs[0].withShape(shape)
}

// round rounds or wraps every element to its type.
func (e *evaluation) round(v value) {
	e.parallel(v.shape.Elements(), 1, func(lo, hi int64) {
		if v.floats != nil {
			roundStrip(v.shape.DType, v.floats[lo:hi])
		}
		for k := lo; k < hi && v.ints != nil; k++ {
			v.ints[k] = kernels.WrapInt(
				v.shape.DType, v.ints[k],
			)
		}
		for k := lo; k < hi && v.complexes != nil; k++ {
			v.complexes[k] = roundComplex(v.shape.DType, v.complexes[k])
		}
	})
}

// reducer returns a function that combines element at of the operands into
// position to of the results. A computation that is one binary operation is a
// function of Go; any other is interpreted for every element.
func (e *evaluation) reducer(
	c *hlo.Computation, outs, in []value,
) (func(to, at int64) error, error) {
	if op, ok := c.Monoid(); ok {
		return monoidReducer(op, outs[0], in[0])
	}
	args := make([]value, 2*len(outs))
	return func(to, at int64) error {
		for k := range outs {
			args[k], args[len(outs)+k] = outs[k].scalar(to).clone(),
				in[k].scalar(at)
		}
		v, err := e.evaluate(c, args)
		if err != nil {
			return err
		}
		for k, leaf := range v.leaves() {
			move(outs[k], to, leaf, 0)
		}
		return nil
	}, nil
}

// monoidReducer is reducer for a computation that is one binary operation.
func monoidReducer(
	op hlo.Opcode, out, in value,
) (func(to, at int64) error, error) {
	f := floatBinary[op]
	g := intBinary[op]
	h := complexBinary[op]
	d := out.shape.DType
	switch {
	case out.complexes != nil && h == nil:
		return nil, fmt.Errorf("the reference does not reduce %s by %s", d, op)
	case out.complexes != nil:
		return func(to, at int64) error {
			out.complexes[to] = h(out.complexes[to], in.complexes[at])
			return nil
		}, nil
	case out.floats != nil && f == nil:
		return nil, fmt.Errorf("the reference does not reduce %s by %s", d, op)
	case out.floats != nil:
		return func(to, at int64) error {
			out.floats[to] = f(out.floats[to], in.floats[at])
			return nil
		}, nil
	}
	return func(to, at int64) error {
		out.ints[to] = kernels.WrapInt(
			d,
			g(d, out.ints[to], in.ints[at]),
		)
		return nil
	}, nil
}

// maxNaN is the maximum, NaN if one operand is.
func maxNaN(x, y float64) float64 {
	if x != x || y != y {
		return math.NaN()
	}
	return math.Max(x, y)
}

// minNaN is the minimum, NaN if one operand is.
func minNaN(x, y float64) float64 {
	if x != x || y != y {
		return math.NaN()
	}
	return math.Min(x, y)
}
