package indexing

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// Maps of operations that combine several elements into one: reduce,
// reduce-window and convolution. The elements that are combined are ranges.

// operandsReduce: reduced dimensions are ranges, in the operand's order.
// Initial values are scalars.
func operandsReduce(x *indexer) []index.Map {
	n := len(x.in.Operands) / 2
	var extents []int64
	for d, extent := range x.operandDims(0) {
		if x.reduces(d) {
			extents = append(extents, extent)
		}
	}
	ranges := x.ranges(extents)
	var results []index.Expr
	kept, reduced := x.dims, ranges
	for d := range x.operandDims(0) {
		from := &kept
		if x.reduces(d) {
			from = &reduced
		}
		results = append(results, (*from)[0])
		*from = (*from)[1:]
	}
	maps := make([]index.Map, 2*n) // initial values: ()
	for k := range n {
		maps[k] = index.Map{Ranges: ranges, Results: results}
	}
	return maps
}

// reduces reports whether dimension d of the operand is reduced.
func (x *indexer) reduces(d int) bool {
	return slices.Contains(
		x.in.Attrs.Dimensions, int64(d),
	)
}

// usersReduce drops the reduced dimensions; an initial value is used
// everywhere.
func usersReduce(x *indexer) index.Map {
	if x.operand >= len(x.in.Operands)/2 {
		return x.everywhere()
	}
	var m index.Map
	for d, v := range x.dims {
		if !x.reduces(d) {
			m.Results = append(m.Results, v)
		}
	}
	return m
}

// windowSizes are the extents of a window: those of the ranges of maps through it.
func windowSizes(window []hlo.WindowDim) []int64 {
	sizes := make([]int64, len(window))
	for k, w := range window {
		sizes[k] = w.Size
	}
	return sizes
}

// windowInput is the index of an operand of extent n where position out of the
// result meets element at of the window: (out·stride + at·dilation − low) /
// base dilation, where that is a whole number in [0, n).
func (x *indexer) windowInput(
	w hlo.WindowDim, n int64, out, at index.Expr,
) (index.Expr, index.Constraint) {
	return x.dilated(
		out.Scale(w.Stride).Add(at.Scale(w.Dilation)).AddConst(-w.PadLow),
		n,
		w.BaseDilation,
	)
}

// windowOutput is the inverse of windowInput: the position of the result, of
// extent n, where index in of the operand meets element at of the window.
func (x *indexer) windowOutput(
	w hlo.WindowDim, n int64, in, at index.Expr,
) (index.Expr, index.Constraint) {
	return x.dilated(
		in.Scale(w.BaseDilation).Sub(at.Scale(w.Dilation)).AddConst(w.PadLow),
		n,
		w.Stride,
	)
}

// operandsReduceWindow: the elements of the window are ranges.
func operandsReduceWindow(x *indexer) []index.Map {
	window := x.in.Attrs.Window
	m := index.Map{
		Ranges: x.ranges(windowSizes(window)),
	}
	for k, w := range window {
		at, where := x.windowInput(
			w, x.operandDims(0)[k],
			x.dims[k], m.Ranges[k],
		)
		m.Results = append(m.Results, at)
		m.Where = index.And(m.Where, where)
	}
	maps := make([]index.Map, len(x.in.Operands)) // initial values: ()
	for k := range len(maps) / 2 {
		maps[k] = m
	}
	return maps
}

// usersReduceWindow: the elements of the window at which an index can be are
// ranges.
func usersReduceWindow(x *indexer) index.Map {
	if x.operand >= len(x.in.Operands)/2 {
		return x.everywhere()
	}
	window := x.in.Attrs.Window
	m := index.Map{
		Ranges: x.ranges(windowSizes(window)),
	}
	for k, w := range window {
		at, where := x.windowOutput(
			w, x.shape.Dims[k],
			x.dims[k], m.Ranges[k],
		)
		m.Results = append(m.Results, at)
		m.Where = index.And(m.Where, where)
	}
	return m
}

// A convolution is the extents that matter for its groups. Output features are
// in FeatureGroups·BatchGroups groups, one of which numbers is 1: an output
// feature reads the input features of its feature group, or the input batches
// of its batch group.
type convolution struct {
	*hlo.ConvDims
	// window has one dimension for each spatial dimension.
	window []hlo.WindowDim
	// batch is the batch of the output.
	batch int64
	// features is the output features in a group.
	features int64
	// inFeatures is the input features in a group.
	inFeatures int64
	// byBatch reports that the groups are batch groups.
	byBatch bool
	// lhs, kernel and to are the extents of the input, the kernel and the
	// output.
	lhs, kernel, to []int64
}

// convolution is the convolution of the instruction.
func (x *indexer) convolution() convolution {
	a := &x.in.Attrs
	c := convolution{
		ConvDims: a.Conv,
		window:   a.Window,
		lhs:      x.operandDims(0),
		kernel:   x.operandDims(1),
		to:       x.shape.Dims,
	}
	feature, batch := a.Groups()
	c.batch = c.to[c.OutBatch]
	c.byBatch = batch > 1
	c.features = c.kernel[c.KernelOut] /
		(feature * batch)
	c.inFeatures = c.kernel[c.KernelIn]
	return c
}

// operandsConvolution: ranges are the kernel's spatial dimensions, then its
// input feature.
func operandsConvolution(x *indexer) []index.Map {
	c := x.convolution()
	ranges := x.ranges(append(windowSizes(c.window), c.inFeatures))
	in := make([]index.Expr, len(c.lhs))
	kernel := make([]index.Expr, len(c.kernel))
	var where index.Constraint
	for k, w := range c.window {
		at, in0 := x.windowInput(
			w, c.lhs[c.InSpatial[k]],
			x.dims[c.OutSpatial[k]], ranges[k],
		)
		in[c.InSpatial[k]] = at
		where = index.And(where, in0)
		kernel[c.KernelSpatial[k]] = kernelIndex(w, ranges[k])
	}
	feature := ranges[len(ranges)-1]
	group := x.dims[c.OutFeature].Div(c.features)
	kernel[c.KernelIn], kernel[c.KernelOut] = feature, x.dims[c.OutFeature]
	in[c.InBatch] = x.dims[c.OutBatch]
	in[c.InFeature] = group.Scale(c.inFeatures).Add(feature)
	if c.byBatch {
		in[c.InBatch] = x.dims[c.OutBatch].Add(
			group.Scale(c.batch),
		)
		in[c.InFeature] = feature
	}
	return []index.Map{
		{Ranges: ranges, Results: in, Where: where},
		{Ranges: ranges, Results: kernel, Where: where},
	}
}

// kernelIndex is the index in the kernel of element at of the window, from the other
// end where the window is reversed.
func kernelIndex(w hlo.WindowDim, at index.Expr) index.Expr {
	if w.Reversed {
		return at.Neg().AddConst(w.Size - 1)
	}
	return at
}

// usersConvolution: ranges are the kernel's spatial dimensions, then the output
// features of the group.
func usersConvolution(x *indexer) index.Map {
	c := x.convolution()
	if x.operand == 1 {
		return x.usersOfKernel(c)
	}
	ranges := x.ranges(append(windowSizes(c.window), c.features))
	out := make([]index.Expr, len(c.to))
	var where index.Constraint
	for k, w := range c.window {
		at, in := x.windowOutput(
			w, c.to[c.OutSpatial[k]],
			x.dims[c.InSpatial[k]], ranges[k],
		)
		out[c.OutSpatial[k]] = at
		where = index.And(where, in)
	}
	group := x.dims[c.InFeature].Div(c.inFeatures)
	out[c.OutBatch] = x.dims[c.InBatch]
	if c.byBatch {
		group = x.dims[c.InBatch].Div(c.batch)
		out[c.OutBatch] = x.dims[c.InBatch].Mod(c.batch)
	}
	out[c.OutFeature] = group.Scale(c.features).Add(
		ranges[len(ranges)-1],
	)
	return index.Map{Ranges: ranges, Results: out, Where: where}
}

// usersOfKernel is usersConvolution for the kernel: ranges are the result's
// spatial dimensions, then its batch.
func (x *indexer) usersOfKernel(c convolution) index.Map {
	extents := append(
		pickExtents(c.to, c.OutSpatial), c.batch,
	)
	m := index.Map{
		Ranges:  x.ranges(extents),
		Results: make([]index.Expr, len(c.to)),
	}
	for k, w := range c.window {
		m.Results[c.OutSpatial[k]] = m.Ranges[k]
		_, where := x.windowInput(
			w, c.lhs[c.InSpatial[k]],
			m.Ranges[k],
			kernelIndex(w, x.dims[c.KernelSpatial[k]]),
		)
		m.Where = index.And(m.Where, where)
	}
	m.Results[c.OutBatch] = m.Ranges[len(m.Ranges)-1]
	m.Results[c.OutFeature] = x.dims[c.KernelOut]
	return m
}

// pickExtents is extents at dims.
func pickExtents(extents, dims []int64) []int64 {
	out := make([]int64, len(dims))
	for k, d := range dims {
		out[k] = extents[d]
	}
	return out
}
