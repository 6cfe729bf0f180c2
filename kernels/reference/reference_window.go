package reference

import (
	"fmt"
	"iter"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/reference/internal/products"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// maxSteps bounds the products or reductions of one windowed instruction to
// about ten minutes.
const maxSteps = 1 << 36

// A slidingWindow computes which elements of an operand a window covers at each
// of its positions.
type slidingWindow struct {
	// Size, stride, dilation and padding along each dimension.
	window []hlo.WindowDim
	// Extents and row-major strides of the operand.
	dims, strides []int64
	// The current element of the window.
	inWindow *Walk
	// Elements of the window.
	size int64
}

// A windowElement is one element of a window, in row-major order and counted
// backwards along reversed dimensions, and the position in the operand that it
// covers: −1 in the padding and between dilated elements.
type windowElement struct{ element, offset int64 }

// newSlidingWindow is a window over an operand of extents dims. times is the
// number of uses of each of its elements at each position, for the bound on
// steps.
func newSlidingWindow(window []hlo.WindowDim, dims []int64, times float64) (*slidingWindow, error) {
	s := &slidingWindow{
		window:  window,
		dims:    dims,
		strides: hlo.RowMajor(dims),
		size:    1,
	}
	sizes := make([]int64, len(window))
	steps := times
	for d, w := range window {
		sizes[d] = w.Size
		steps *= float64(w.Size) *
			float64(w.Positions(dims[d]))
	}
	if steps > maxSteps {
		return nil, fmt.Errorf("%.3g steps are too many for the reference", steps)
	}
	for _, n := range sizes {
		s.size *= n
	}
	s.inWindow = rowMajorWalk(sizes)
	return s, nil
}

// another is a window over the same operand, for another goroutine.
func (s *slidingWindow) another() *slidingWindow {
	w := *s
	sizes := make([]int64, len(s.window))
	for d, x := range s.window {
		sizes[d] = x.Size
	}
	w.inWindow = rowMajorWalk(sizes)
	return &w
}

// at yields the elements of the window at a position, in row-major order. A
// loop over it has to run to its end.
func (s *slidingWindow) at(position []int64) iter.Seq[windowElement] {
	return func(yield func(windowElement) bool) {
		for more := s.size; more > 0 && yield(s.cover(position)); more-- {
			s.inWindow.Next()
		}
	}
}

// cover is the current element of the window at a position.
func (s *slidingWindow) cover(position []int64) windowElement {
	c := windowElement{}
	for d, k := range s.inWindow.Index {
		w := s.window[d]
		if w.Reversed {
			c.element = c.element*w.Size + w.Size - 1 - k
		} else {
			c.element = c.element*w.Size + k
		}
		at, ok := operandIndex(
			w, position[d], k, s.dims[d],
		)
		if ok && c.offset >= 0 {
			c.offset += at * s.strides[d]
		} else {
			c.offset = -1
		}
	}
	return c
}

// operandIndex is the index, in a dimension of extent n, of element k of a
// window at position x; ok is false in the padding and between dilated
// elements.
func operandIndex(w hlo.WindowDim, x, k, n int64) (at int64, ok bool) {
	p := x*w.Stride + k*w.Dilation - w.PadLow
	if p < 0 || p%w.BaseDilation != 0 ||
		p/w.BaseDilation >= n {
		return 0, false
	}
	return p / w.BaseDilation, true
}

// reduceWindow reduces every window in row-major order. The initial values come
// first, and stand for the padding and the gaps between dilated elements.
func (e *evaluation) reduceWindow(i *hlo.Instr, a []value) (value, error) {
	n := len(a) / 2
	for _, w := range i.Attrs.Window {
		if w.Reversed {
			return value{}, fmt.Errorf("the reference does not compute reversed windows of a reduction")
		}
	}
	s, err := newSlidingWindow(
		i.Attrs.Window, a[0].shape.Dims, 1,
	)
	if err != nil {
		return value{}, err
	}
	outs, err := e.initialValues(i.Shape, a[n:])
	if err != nil {
		return value{}, err
	}
	element, err := e.reducer(
		i.Attrs.ToApply, outs, a[:n],
	)
	if err != nil {
		return value{}, err
	}
	// The initial value stands for elements of the padding, too.
	padding, err := e.reducer(
		i.Attrs.ToApply, outs, a[n:],
	)
	if err != nil {
		return value{}, err
	}
	to := outs[0].shape
	position := rowMajorWalk(to.Dims)
	for range to.Elements() {
		for c := range s.at(position.Index) {
			e.tick()
			if c.offset < 0 {
				err = padding(position.at, 0)
			} else {
				err = element(position.at, c.offset)
			}
			if err != nil {
				return value{}, err
			}
		}
		position.Next()
	}
	return e.rounded(i.Shape, outs), nil
}

// selectAndScatter visits the windows at the positions of the source in
// row-major order. In each, select(chosen, next) decides whether the chosen
// element stays, and the result at its position becomes scatter(source,
// result). Padding is never chosen.
func (e *evaluation) selectAndScatter(i *hlo.Instr, a []value) (value, error) {
	operand := a[0]
	source := a[1]
	outs, err := e.initialValues(i.Shape, a[2:])
	if err != nil {
		return value{}, err
	}
	combine, err := e.scatterReducer(
		i.Attrs.ToApply, outs[0], source,
	)
	if err != nil {
		return value{}, err
	}
	s, err := newSlidingWindow(
		i.Attrs.Window, operand.shape.Dims, 1,
	)
	if err != nil {
		return value{}, err
	}
	position := rowMajorWalk(source.shape.Dims)
	for range source.shape.Elements() {
		e.tick()
		chosen, err := e.selectElement(
			i.Attrs.Select, operand, s.at(position.Index),
		)
		if err != nil {
			return value{}, err
		}
		if chosen >= 0 {
			err = combine(chosen, position.at)
		}
		if err != nil {
			return value{}, err
		}
		position.Next()
	}
	return e.rounded(i.Shape, outs), nil
}

// scatterReducer is reducer with the operands in the other order: the source
// comes before the value that it is combined with.
func (e *evaluation) scatterReducer(
	c *hlo.Computation, out, source value,
) (func(to, at int64) error, error) {
	if op, ok := c.Monoid(); ok {
		return monoidReducer(op, out, source)
	}
	return func(to, at int64) error {
		v, err := e.evaluate(c, []value{
			source.scalar(at), out.scalar(to),
		})
		if err == nil {
			move(out, to, v, 0)
		}
		return err
	}, nil
}

// selectElement is the position of the selected element of a window, −1 if all
// of it is padding.
func (e *evaluation) selectElement(
	selects *hlo.Computation, operand value, window iter.Seq[windowElement],
) (int64, error) {
	chosen := int64(-1)
	for c := range window {
		e.tick()
		if c.offset < 0 {
			continue
		}
		if chosen < 0 {
			chosen = c.offset
			continue
		}
		stays, err := e.evaluate(selects, []value{
			operand.scalar(chosen), operand.scalar(c.offset),
		})
		if err != nil {
			return 0, err
		}
		if stays.ints[0] == 0 {
			chosen = c.offset
		}
	}
	return chosen, nil
}

// convolution sums products in float64 or wrapping int64, like dot. The padding,
// and the gaps between dilated elements, are zeros, by which weights are multiplied: one
// that is infinite or NaN makes the sum NaN there (StableHLO, convolution: the operand is
// padded, then windows of it are multiplied; of two spatial dimensions XLA:CPU does so, too).
//
// The input is divided into batch groups along its batch or into feature groups
// along its features, and the output features of the kernel into as many; group
// g of the one is convolved with group g of the other.
func (e *evaluation) convolution(i *hlo.Instr, a []value) (value, error) {
	left, right, g, err := e.convolutionOperands(i, a)
	if err != nil {
		return value{}, err
	}
	out, err := newValue(i.Shape)
	if err == nil {
		err = checkProducts(out, a[0], a[1])
	}
	if err != nil {
		return out, err
	}
	if out.floats == nil {
		convolve(e, g, left.ints, right.ints, func(at, sum int64) {
			out.ints[at] = kernels.WrapInt(i.Shape.DType, sum)
		})
		return out, nil
	}
	x, y := left.asFloats(), right.asFloats()
	if g.hasPatches() {
		g.convolvePatches(e, x, y, out.floats)
		e.round(out)
		return out, nil
	}
	convolve(e, g, x, y, func(at int64, sum float64) {
		out.floats[at] = kernels.RoundFloat(i.Shape.DType, sum)
	})
	return out, nil
}

// convolutionOperands are the operands of a convolution in the order of its shape.
func (e *evaluation) convolutionOperands(
	i *hlo.Instr, a []value,
) (left, right value, g convolutionShape, err error) {
	c := i.Attrs.Conv
	left = e.transposed(
		a[0],
		slices.Concat(
			[]int64{c.InBatch},
			c.InSpatial,
			[]int64{c.InFeature},
		),
	)
	right = e.transposed(
		a[1],
		slices.Concat(
			[]int64{c.KernelOut},
			c.KernelSpatial,
			[]int64{c.KernelIn},
		),
	)
	g, err = newConvolutionShape(
		i, left.shape.Dims, right.shape.Dims,
	)
	return left, right, g, err
}

// Convolutions of floating-point numbers are contractions of patches: what the window
// covers at a position is a row, with zeros for the padding, and the kernel of an output
// feature a column. They are computed for some positions at a time.

// patchRows is the number of positions whose patches are multiplied at the same time: the
// kernel is packed once for them.
const patchRows = 128

// hasPatches reports whether the convolution is computed by way of patches: where the
// processor has code for it and there are features enough for a block.
func (g convolutionShape) hasPatches() bool {
	return products.Fast() && g.groupFeatures() >= products.Columns/2
}

// groupFeatures is the number of output features of a group.
func (g convolutionShape) groupFeatures() int64 {
	return g.extents[1] / (g.featureGroups * g.batchGroups)
}

// convolvePatches computes the results of all groups and batches. Positions are divided
// among the cores.
func (g convolutionShape) convolvePatches(
	e *evaluation, left, right, out []float64,
) {
	space := hlo.Shape{Dims: g.extents[2:]}
	of := contraction{
		n: g.groupFeatures(),
		k: g.sliding.size * g.in,
	}
	for feature := int64(0); feature < g.extents[1]; feature += of.n {
		for batch := range g.extents[0] {
			row, first := g.group(batch, feature)
			at := batch*g.strides[0] + feature*g.strides[1]
			Parallel(space.Elements(), of.n*of.k, func(lo, hi int64) {
				p := patches{
					convolutionShape: g,

					blocks: blocks{
						contraction: of,
						packed:      make([]float64, products.Columns*of.k),
					},
					inputs: left[row*g.area*g.features+first:],
					kernel: right[feature*of.k:][:of.n*of.k],
					to:     out[at:],
				}
				p.sliding = g.sliding.another()
				for ; lo < hi; lo += patchRows {
					p.compute(e, space, lo, min(lo+patchRows, hi))
				}
			})
		}
	}
}

// patches are those of one group and batch.
type patches struct {
	convolutionShape
	blocks
	// From the first input feature of the group on, and the kernels of its output
	// features.
	inputs, kernel []float64
	// Results from the first feature on.
	to []float64
}

// compute computes the results at positions lo … hi−1.
func (p *patches) compute(
	e *evaluation, space hlo.Shape, lo, hi int64,
) {
	p.m = hi - lo
	p.left = slices.Grow(p.left[:0], int(p.m*p.k))[:p.m*p.k]
	p.out = slices.Grow(p.out[:0], int(p.m*p.n))[:p.m*p.n]
	clear(p.left)
	for n := lo; n < hi; n++ {
		e.look()
		patch := p.left[(n-lo)*p.k:]
		for c := range p.sliding.at(Unravel(n, space.Dims)) {
			if c.offset >= 0 {
				x := p.inputs[c.offset*p.features:]
				copy(patch[c.element*p.in:], x[:p.in])
			}
		}
	}
	p.multiply(e, p.kernel, 0, p.m)
	for n := lo; n < hi; n++ {
		here := int64(0)
		for d, x := range Unravel(n, space.Dims) {
			here += x * p.strides[2+d]
		}
		sums := p.out[(n-lo)*p.n:][:p.n]
		for k, sum := range sums {
			p.to[here+int64(k)*p.strides[1]] = sum
		}
	}
}

// A convolutionShape describes a convolution whose left operand has the
// dimensions batch, spatial, features, and whose right one output features,
// spatial, input features.
type convolutionShape struct {
	// Extents and strides of the result in the order batch, features, spatial.
	extents, strides []int64
	// Features and spatial elements of the left operand, and input features of
	// the right one.
	features, area, in int64
	// Groups of the input's features and of its batch; one of the two is 1.
	featureGroups, batchGroups int64
	// The window over the spatial dimensions.
	sliding *slidingWindow
}

// newConvolutionShape derives the shape from the extents of the transposed
// operands.
func newConvolutionShape(i *hlo.Instr, left, right []int64) (g convolutionShape, err error) {
	c := i.Attrs.Conv
	end := len(left) - 1
	for _, d := range slices.Concat([]int64{c.OutBatch, c.OutFeature}, c.OutSpatial) {
		g.extents, g.strides = append(
			g.extents, i.Shape.Dims[d],
		), append(g.strides, hlo.RowMajor(i.Shape.Dims)[d])
	}
	g.features, g.area, g.in = left[end],
		hlo.Shape{Dims: left[1:end]}.Elements(),
		right[end]
	g.featureGroups, g.batchGroups = i.Attrs.Groups()
	g.sliding, err = newSlidingWindow(
		i.Attrs.Window,
		left[1:end],
		float64(g.extents[0])*float64(right[0])*float64(g.in),
	)
	return g, err
}

// convolve computes every result as one sum and passes it to store with its
// position. The spatial positions are the outer loop, since the elements that a
// window covers are the same for all batches and features; they are divided among the
// cores.
func convolve[T int64 | float64](
	e *evaluation, g convolutionShape, left, right []T,
	store func(at int64, sum T),
) {
	space := hlo.Shape{Dims: g.extents[2:]}
	each := g.extents[0] * g.extents[1] * g.sliding.size * g.in
	e.parallel(space.Elements(), max(1, each), func(lo, hi int64) {
		covered := covering[T]{zeros: make([]T, g.in)}
		_, floats := any(T(0)).(float64)
		sliding := g.sliding.another()
		for n := lo; n < hi; n++ {
			position := Unravel(n, space.Dims)
			covered.elements = covered.elements[:0]
			for c := range sliding.at(position) {
				if c.offset >= 0 || floats {
					covered.elements = append(covered.elements, c)
				}
			}
			here := int64(0)
			for d, x := range position {
				here += x * g.strides[2+d]
			}
			convolveAt(e, g, left, right, covered, func(at int64, sum T) {
				store(here+at, sum)
			})
		}
	})
}

// convolveAt computes the results of all batches and features at a position, the
// features in blocks where those of a block are computed from the same inputs.
func convolveAt[T int64 | float64](
	e *evaluation, g convolutionShape, left, right []T,
	covered covering[T], store func(at int64, sum T),
) {
	size := g.sliding.size * g.in // of a feature's kernel
	for batch := range g.extents[0] {
		e.look()
		for feature := int64(0); feature < g.extents[1]; {
			row, first := g.group(batch, feature)
			inputs := left[row*g.area*g.features:]
			kernel := right[feature*size:]
			at := batch*g.strides[0] + feature*g.strides[1]
			last := feature + featuresAtOnce - 1
			if last < g.extents[1] && g.sameGroup(batch, feature, last) {
				for k, sum := range dotsCovered(inputs, kernel, g, first, covered) {
					store(at+int64(k)*g.strides[1], sum)
				}
				feature += featuresAtOnce
				continue
			}
			store(at, dotCovered(inputs, kernel, g, first, covered))
			feature++
		}
	}
}

// featuresAtOnce is the number of output features whose sums, which are independent, the
// processor adds to at the same time.
const featuresAtOnce = 4

// sameGroup reports whether two output features of a batch have the same inputs.
func (g convolutionShape) sameGroup(batch, feature, other int64) bool {
	row, first := g.group(batch, feature)
	otherRow, otherFirst := g.group(batch, other)
	return row == otherRow && first == otherFirst
}

// group is the row of the left operand's batch, and the first of its features,
// that an output feature is computed from.
func (g convolutionShape) group(batch, feature int64) (row, first int64) {
	return feature/(g.extents[1]/g.batchGroups)*g.extents[0] + batch,
		feature / (g.extents[1] / g.featureGroups) * g.in
}

// A covering is what a window covers at a position: elements of the operand, and of the
// padding where zeros are multiplied, too.
type covering[T int64 | float64] struct {
	elements []windowElement
	zeros    []T
}

// inputs are the input features from first at an element of the window.
func (v covering[T]) inputs(
	row []T, g convolutionShape, first int64, c windowElement,
) []T {
	if c.offset < 0 {
		return v.zeros
	}
	return row[c.offset*g.features+first:][:g.in]
}

// dotCovered sums the products of the input features from first, at the covered
// positions of a row, with those of one output feature's kernel.
func dotCovered[T int64 | float64](
	row, kernel []T, g convolutionShape, first int64, covered covering[T],
) T {
	sum := T(0)
	for _, c := range covered.elements {
		sum += sumProducts(
			covered.inputs(row, g, first, c),
			kernel[c.element*g.in:],
		)
	}
	return sum
}

// dotsCovered is dotCovered for as many features as are computed at once; the kernels of
// the others follow the first one's.
func dotsCovered[T int64 | float64](
	row, kernel []T, g convolutionShape, first int64, covered covering[T],
) (sums [featuresAtOnce]T) {
	size := g.sliding.size * g.in
	for _, c := range covered.elements {
		x := covered.inputs(row, g, first, c)
		k := kernel[c.element*g.in:]
		part := sumLines(
			x, k, k[size:], k[2*size:], k[3*size:],
		)
		for n := range sums {
			sums[n] += part[n]
		}
	}
	return sums
}

// scaledDot multiplies each operand by its scales, which are repeated over
// blocks, in f32, and then is dot.
func (e *evaluation) scaledDot(i *hlo.Instr, a []value) (value, error) {
	var sides [2]value
	for k := range sides {
		var err error
		sides[k], err = e.dequantized(a[k], a[2+k])
		if err != nil {
			return value{}, err
		}
	}
	return e.dot(i, sides[:])
}

// dequantized is an operand times its scales.
func (e *evaluation) dequantized(v, scale value) (value, error) {
	out, err := newValue(hlo.Shape{
		DType: hlo.F32,
		Dims:  v.shape.Dims,
	})
	if err == nil {
		err = checkProducts(out, v, scale)
	}
	if err != nil {
		return out, err
	}
	w := rowMajorWalk(v.shape.Dims)
	for n := range out.floats {
		e.tick()
		out.floats[n] = kernels.RoundFloat(
			hlo.F32,
			v.float(int64(n))*scale.float(block(
				w.Index, v.shape.Dims, scale.shape.Dims,
			)),
		)
		w.Next()
	}
	return out, nil
}

// block is the row-major number of the block that an element is in, of an array
// of extents dims that is divided into blocks along each dimension. A scalar
// has no dimensions, and one block.
func block(index, dims, blocks []int64) int64 {
	at := int64(0)
	for d, n := range blocks {
		at = at*n + index[d]/(dims[d]/n)
	}
	return at
}
