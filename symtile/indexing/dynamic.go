package indexing

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// Maps of operations whose offsets are known at run time only: dynamic-slice,
// dynamic-update-slice, gather and scatter. An offset is a run-time variable, whose
// origin says which element of which operand holds it.

// starts are the run-time variables of a dynamic-slice: where the window of
// size begins, clamped so that it stays inside. The operands are scalars, or
// one array of them.
func (x *indexer) starts(
	operands []*hlo.Instr, extents, sizes []int64,
) []index.Expr {
	vars := make([]index.Expr, len(extents))
	for k, n := range extents {
		o := operands[0]
		at := []index.Expr{x.r.Const(int64(k))}
		if o.Shape.Rank() == 0 {
			o, at = operands[k], nil
		}
		vars[k] = x.start(o, at, n-sizes[k])
	}
	return vars
}

// start is the run-time variable for element at of in, clamped to [0, last].
func (x *indexer) start(
	in *hlo.Instr, at []index.Expr, last int64,
) index.Expr {
	return x.r.RuntimeVar(
		index.Origin{
			Source: InstrSource{Instr: in},
			At:     at,
			Clamp:  index.Interval{Lo: 0, Hi: last},
		},
		0, last,
	)
}

// operandsDynamicSlice adds the starts to the index. The starts are scalars,
// whose maps have no results.
func operandsDynamicSlice(x *indexer) []index.Map {
	maps := make([]index.Map, len(x.in.Operands)) // starts: ()
	rt := x.starts(
		x.in.Operands[1:],
		x.operandDims(0),
		x.shape.Dims,
	)
	maps[0].Runtime = rt
	for k, d := range x.dims {
		maps[0].Results = append(
			maps[0].Results, d.Add(rt[k]),
		)
	}
	x.startsRead(maps[1:])
	return maps
}

// startsRead: every element needs every start; an array of them is read whole.
func (x *indexer) startsRead(maps []index.Map) {
	o := x.in.Operands[len(x.in.Operands)-1]
	if o.Shape.Rank() == 1 {
		all := x.ranges(o.Shape.Dims)
		maps[0] = index.Map{Ranges: all, Results: all}
	}
}

// usersDynamicSlice: an element is used if it is in the window.
func usersDynamicSlice(x *indexer) index.Map {
	if x.operand > 0 {
		return x.everywhere()
	}
	return x.inWindow(
		x.starts(
			x.in.Operands[1:],
			x.operandDims(0),
			x.shape.Dims,
		),
		x.dims,
		x.shape.Dims,
	)
}

// inWindow is the map from an index to its place in the window of size that
// begins at rt.
func (x *indexer) inWindow(
	rt, at []index.Expr, size []int64,
) index.Map {
	m := index.Map{Runtime: rt}
	for k, d := range at {
		in := d.Sub(rt[k])
		m.Results = append(m.Results, in)
		m.Where = index.And(
			m.Where,
			index.Require(in, 0, size[k]-1),
		)
	}
	return m
}

// operandsDynamicUpdateSlice: the update is read where it is written, and only
// there. The operand is read everywhere at most.
func operandsDynamicUpdateSlice(x *indexer) []index.Map {
	maps := make([]index.Map, len(x.in.Operands))
	maps[0] = index.Map{
		Results:     x.dims,
		Approximate: true,
	}
	maps[1] = x.inWindow(
		x.starts(
			x.in.Operands[2:],
			x.shape.Dims,
			x.operandDims(1),
		),
		x.dims,
		x.operandDims(1),
	)
	if slices.Contains(x.operandDims(1), 0) {
		maps[0].Approximate, maps[1] = false, index.Map{State: index.StateEmpty}
	}
	x.startsRead(maps[2:])
	return maps
}

// usersDynamicUpdateSlice: an element of the operand stays unless the update
// replaces it; one of the update is shifted by the starts.
func usersDynamicUpdateSlice(x *indexer) index.Map {
	switch x.operand {
	case 0:
		return index.Map{
			Results:     x.dims,
			Approximate: !slices.Contains(x.operandDims(1), 0),
		}
	case 1:
		m := index.Map{
			Runtime: x.starts(
				x.in.Operands[2:],
				x.shape.Dims,
				x.operandDims(1),
			),
		}
		for k, d := range x.dims {
			m.Results = append(
				m.Results, d.Add(m.Runtime[k]),
			)
		}
		return m
	}
	return x.everywhere()
}

// A sliceIndex describes what gather and scatter have in common: windows of an
// array (the operand of a gather, the result of a scatter), one for each index
// vector. The other array (the result of a gather, the updates of a scatter)
// has the window dimensions and, between them, the batch dimensions of the
// indices.
type sliceIndex struct {
	// indices is the operand that holds the index vectors.
	indices *hlo.Instr
	// vector is the dimension of the indices that holds the index vectors.
	vector int64
	// window are the window dimensions of the other array, in ascending order.
	window []int64
	// missing are the dimensions of the array that windows lack: their extent
	// in a window is 1.
	missing []int64
	// batching are the dimensions of the array that correspond to batch
	// dimensions ofIndices of the indices.
	batching  []int64
	ofIndices []int64
	// started is, for each component of an index vector, the dimension of the
	// array that it is a start along.
	started []int64
	// array is the extents of the array, size those of a window in it.
	array, size []int64
	// other is the extents of the other array.
	other []int64
}

// gathering is the sliceIndex of a gather.
func (x *indexer) gathering() sliceIndex {
	g := x.in.Attrs.Gather
	return sliceIndex{
		indices:   x.in.Operands[1],
		vector:    g.IndexVectorDim,
		window:    slices.Sorted(slices.Values(g.OffsetDims)),
		missing:   g.CollapsedSliceDims,
		batching:  g.OperandBatching,
		ofIndices: g.IndicesBatching,
		started:   g.StartIndexMap,
		array:     x.operandDims(0),
		size:      g.SliceSizes,
		other:     x.shape.Dims,
	}
}

// batch are the dimensions of the other array that are not window dimensions.
func (l sliceIndex) batch() []int64 {
	var dims []int64
	for d := range l.other {
		if !slices.Contains(l.window, int64(d)) {
			dims = append(dims, int64(d))
		}
	}
	return dims
}

// component is the index, in the indices, of component k of the vector at
// batch.
func (l sliceIndex) component(
	r *index.Ring, batch []index.Expr, k int64,
) []index.Expr {
	if l.vector == int64(l.indices.Shape.Rank()) {
		return batch
	}
	return slices.Insert(
		slices.Clone(batch),
		int(l.vector),
		r.Const(k),
	)
}

// components is the number of components of an index vector; false where the
// indices are scalars.
func (l sliceIndex) components() (int64, bool) {
	if l.vector == int64(l.indices.Shape.Rank()) {
		return 1, false
	}
	return l.indices.Shape.Dims[l.vector], true
}

// origin is the first element of a window without its starts: batching
// dimensions have the batch index, the others 0.
func (l sliceIndex) origin(
	r *index.Ring, batch []index.Expr,
) []index.Expr {
	out := make([]index.Expr, len(l.array))
	for d := range out {
		out[d] = r.Const(0)
	}
	for k, d := range l.batching {
		at := l.ofIndices[k]
		if at > l.vector {
			at--
		}
		out[d] = batch[at]
	}
	return out
}

// placed is the element of the array at an offset within a window. The offset
// has the window dimensions in order, starts are given by dimension.
func (l sliceIndex) placed(
	r *index.Ring,
	batch, offset []index.Expr,
	starts map[int64]index.Expr,
) []index.Expr {
	out := l.origin(r, batch)
	next := 0
	for d := range out {
		if !slices.Contains(l.missing, int64(d)) &&
			!slices.Contains(l.batching, int64(d)) {
			out[d] = offset[next]
			next++
		}
		if s, ok := starts[int64(d)]; ok {
			out[d] = out[d].Add(s)
		}
	}
	return out
}

// starts are the run-time variables of the index vector at batch, by dimension.
func (l sliceIndex) starts(x *indexer, batch []index.Expr) (
	starts map[int64]index.Expr, runtime []index.Expr,
) {
	starts = map[int64]index.Expr{}
	for k, d := range l.started {
		starts[d] = x.start(
			l.indices,
			l.component(x.r, batch, int64(k)),
			l.array[d]-l.size[d],
		)
		runtime = append(runtime, starts[d])
	}
	return starts, runtime
}

// mismatched reports whether the batching dimensions of array and indices
// differ in extent.
func (l sliceIndex) mismatched() bool {
	for k, d := range l.batching {
		if l.array[d] != l.indices.Shape.Dims[l.ofIndices[k]] {
			return true
		}
	}
	return slices.Contains(l.ofIndices, l.vector)
}

// operandsGather: the operand is read at the offset within the window of the
// batch index; the indices at the index vector of that batch index.
func operandsGather(x *indexer) []index.Map {
	l := x.gathering()
	if l.mismatched() {
		return x.undefined("its batching dimensions do not have equal extents")
	}
	batch := gatherDims(x.dims, l.batch())
	offset := gatherDims(x.dims, l.window)
	starts, runtime := l.starts(x, batch)
	return []index.Map{
		{Runtime: runtime, Results: l.placed(x.r, batch, offset, starts)},
		l.vectorRead(x, batch),
	}
}

// vectorRead is the map to the index vector at batch.
func (l sliceIndex) vectorRead(x *indexer, batch []index.Expr) index.Map {
	n, ok := l.components()
	if !ok {
		return index.Map{Results: batch}
	}
	s := x.ranges([]int64{n})
	return index.Map{
		Ranges: s,
		Results: slices.Insert(
			slices.Clone(batch), int(l.vector), s[0],
		),
	}
}

// batchOf is the batch index of an element of the indices.
func (l sliceIndex) batchOf(indices []index.Expr) []index.Expr {
	if l.vector == int64(len(indices)) {
		return indices
	}
	return slices.Delete(
		slices.Clone(indices),
		int(l.vector),
		int(l.vector)+1,
	)
}

// usersGather: an index vector is used by its window of the result. An element
// of the operand is used by the windows that contain it, whose index vectors
// are known together only when there is one or their values are known.
func usersGather(x *indexer) index.Map {
	l := x.gathering()
	switch {
	case l.mismatched():
		return x.unknown("its batching dimensions do not have equal extents")
	case x.operand == 1:
		m := index.Map{
			Ranges: x.ranges(pickExtents(l.other, l.window)),
		}
		m.Results = l.joined(l.batchOf(x.dims), m.Ranges)
		return m
	}
	return x.usersOfGathered(l)
}

// joined is the index of the other array at batch and offset.
func (l sliceIndex) joined(batch, offset []index.Expr) []index.Expr {
	out := make([]index.Expr, len(l.other))
	for k, d := range l.batch() {
		out[d] = batch[k]
	}
	for k, d := range l.window {
		out[d] = offset[k]
	}
	return out
}

// usersOfGathered is usersGather for an element of the operand.
func (x *indexer) usersOfGathered(l sliceIndex) index.Map {
	ranges := x.ranges(pickExtents(l.other, l.batch()))
	starts, runtime := l.starts(x, ranges)
	m := index.Map{Ranges: ranges, Runtime: runtime}
	first := l.origin(x.r, ranges)
	var offset []index.Expr
	for d, v := range x.dims {
		in := v.Sub(first[d])
		if s, ok := starts[int64(d)]; ok {
			in = in.Sub(s)
		}
		m.Where = index.And(
			m.Where,
			index.Require(in, 0, l.size[d]-1),
		)
		if !slices.Contains(l.missing, int64(d)) &&
			!slices.Contains(l.batching, int64(d)) {
			offset = append(offset, in)
		}
	}
	m.Results = l.joined(ranges, offset)
	if m = foldRuntime(m); variesWithRanges(m) {
		return x.unknown("which windows an element is in depends on the values of all indices")
	}
	return m
}

// variesWithRanges reports whether a run-time variable is read at a place that
// depends on a range: then a single value of it does not describe the set.
func variesWithRanges(m index.Map) bool {
	return slices.ContainsFunc(m.Origins(), func(o *index.Origin) bool {
		return o != nil &&
			slices.ContainsFunc(o.At, func(e index.Expr) bool {
				return slices.ContainsFunc(e.Vars(), func(v index.Expr) bool {
					return slices.Contains(m.Ranges, v)
				})
			})
	})
}

// operandsScatter: which updates reach an element is not known, since index
// vectors decide; the direction of usersScatter is.
func operandsScatter(x *indexer) []index.Map {
	n := len(x.in.Operands) / 2
	maps := x.undefined("which updates reach an element depends on the values of all indices")
	for k := range n {
		maps[k] = x.unknown("an element is made from the same one of the operand unless updates replace it, which depends on the values of all indices")
	}
	return maps
}

// usersScatter: an element of an operand stays where it is; one of the updates
// goes to its place in the window of its index vector. A window that is not
// inside of the array as a whole is dropped. The computation may ignore its
// arguments, so that the map is approximate where it does not keep them.
func usersScatter(x *indexer) index.Map {
	n := len(x.in.Operands) / 2
	c := x.in.Attrs.ToApply
	keeps := c.Reads(x.output, x.output)
	switch k := x.operand; {
	case x.output >= n ||
		!x.shape.SameDims(x.in.Operands[0].Shape):
		return x.unknown("its arrays have different extents")
	case k == n:
		return x.unknown("every element depends on whether an index vector is that of its window")
	case k == x.output:
		return index.Map{Results: x.dims, Approximate: !keeps}
	case k < n && c.Reads(x.output, k):
		return index.Map{Results: x.dims, Approximate: true}
	case k > n && c.Reads(x.output, k-1):
		m := x.usersOfUpdates(n)
		m.Approximate = !keeps
		return m
	}
	return index.Map{State: index.StateEmpty}
}

// scattering is the sliceIndex of a scatter with n operands.
func (x *indexer) scattering(n int) sliceIndex {
	s := x.in.Attrs.Scatter
	l := sliceIndex{
		indices:   x.in.Operands[n],
		vector:    s.IndexVectorDim,
		window:    slices.Sorted(slices.Values(s.UpdateWindow)),
		missing:   s.InsertedWindow,
		batching:  s.InputBatching,
		ofIndices: s.IndicesBatching,
		started:   s.ToOperand,
		array:     x.shape.Dims,
		other:     x.operandDims(x.operand),
		size:      make([]int64, x.shape.Rank()),
	}
	next := 0
	for d := range l.size {
		l.size[d] = 1
		if !slices.Contains(l.missing, int64(d)) &&
			!slices.Contains(l.batching, int64(d)) {
			l.size[d] = l.other[l.window[next]]
			next++
		}
	}
	return l
}

// usersOfUpdates is usersScatter for an element of the updates. Starts are not
// clamped; a window that would stick out is dropped.
func (x *indexer) usersOfUpdates(n int) index.Map {
	l := x.scattering(n)
	if l.mismatched() {
		return x.unknown("its batching dimensions do not have equal extents")
	}
	batch := gatherDims(x.dims, l.batch())
	offset := gatherDims(x.dims, l.window)
	var m index.Map
	starts := map[int64]index.Expr{}
	for k, d := range l.started {
		last := l.array[d] - l.size[d]
		if last < 0 {
			return index.Map{State: index.StateEmpty}
		}
		starts[d] = x.unclamped(
			l.indices,
			l.component(x.r, batch, int64(k)),
		)
		m.Runtime = append(m.Runtime, starts[d])
		m.Where = index.And(
			m.Where, index.Require(starts[d], 0, last),
		)
	}
	m.Results = l.placed(x.r, batch, offset, starts)
	return m
}

// unclamped is the run-time variable for element at of in, with the range of
// its type.
func (x *indexer) unclamped(in *hlo.Instr, at []index.Expr) index.Expr {
	lo, hi := in.Shape.DType.IntRange()
	return x.r.RuntimeVar(
		index.Origin{Source: InstrSource{Instr: in}, At: at},
		max(lo, -farStart),
		min(hi, farStart),
	)
}

// farStart is beyond every extent that memory has room for; a start farther out
// is just as far outside.
const farStart = 1 << 48
