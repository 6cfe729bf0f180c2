package reference

import (
	"fmt"
	"math"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// start is element n of start indices. A u64 that int64 cannot hold becomes the
// largest int64, which is clamped, or out of bounds, just the same.
func (v value) start(n int64) int64 {
	x := v.ints[n]
	if x >= 0 || v.shape.DType != hlo.U64 {
		return x
	}
	return math.MaxInt64
}

// clampedStart is the start of a slice of some size, moved into a dimension of
// extent n.
func clampedStart(start, size, n int64) int64 {
	return min(max(start, 0), n-size)
}

// sliceOffset is the row-major position of the first element of a slice. Its
// starts are scalars or one array.
func sliceOffset(starts []value, sizes, dims []int64) int64 {
	at := int64(0)
	for d, stride := range hlo.RowMajor(dims) {
		at += clampedStart(startAlong(starts, d), sizes[d], dims[d]) * stride
	}
	return at
}

// startAlong is the start along dimension d.
func startAlong(starts []value, d int) int64 {
	if len(starts) == 1 &&
		starts[0].shape.Rank() == 1 {
		return starts[0].start(int64(d))
	}
	return starts[d].start(0)
}

// dynamicSlice copies a slice whose start is known at run time, clamped so that
// it is inside.
func (e *evaluation) dynamicSlice(i *hlo.Instr, a []value) (value, error) {
	dims := a[0].shape.Dims
	return e.strided(a[0],
		i.Shape,
		sliceOffset(a[1:], i.Shape.Dims, dims),
		hlo.RowMajor(dims),
	)
}

// dynamicUpdateSlice copies the operand and overwrites a slice of it, whose
// start is clamped so that the update is inside.
func (e *evaluation) dynamicUpdateSlice(i *hlo.Instr, a []value) (value, error) {
	out := a[0].clone().withShape(i.Shape)
	e.storeStrided(
		a[1], out,
		sliceOffset(a[2:], a[1].shape.Dims, i.Shape.Dims),
		hlo.RowMajor(i.Shape.Dims),
	)
	return out, nil
}

// clone copies the elements.
func (v value) clone() value {
	v.ints, v.floats = slices.Clone(v.ints),
		slices.Clone(v.floats)
	v.complexes = slices.Clone(v.complexes)
	return v
}

// indexVectors read the index vectors of a gather or scatter.
type indexVectors struct {
	// The array of start indices, and its strides.
	indices value
	strides []int64 // of the indices
	// The dimension of the indices along which a vector lies; their rank if the
	// vectors are scalars.
	vector int64
	// Component k of a vector is a start along dimension operand[k] of the
	// operand.
	operand []int64
	// Dimensions of the operand whose start is an index of the batch: that
	// along dimension batched[k] of the indices for batching[k].
	batching []int64
	batched  []int64 // … these dimensions of the indices
	// The slice that start returns.
	starts []int64
}

// start is the start along every dimension of the operand for an index of the
// batch: of the dimensions of the indices except that of the vectors.
// Dimensions without a component have start 0. The result is valid until the
// next call.
func (x *indexVectors) start(batch []int64) []int64 {
	clear(x.starts)
	at := int64(0)
	step := int64(0)
	k := 0
	for d, stride := range x.strides {
		if int64(d) == x.vector {
			step = stride
			continue
		}
		at += batch[k] * stride
		if b := slices.Index(x.batched, int64(d)); b >= 0 {
			x.starts[x.batching[b]] = batch[k]
		}
		k++
	}
	for c, d := range x.operand {
		x.starts[d] = x.indices.start(at + int64(c)*step)
	}
	return x.starts
}

// split appends the components of an index along dims to window, and the others
// to batch.
func split(index, dims, window, batch []int64) (inWindow, inBatch []int64) {
	for d, x := range index {
		if slices.Contains(dims, int64(d)) {
			window = append(window, x)
		} else {
			batch = append(batch, x)
		}
	}
	return window, batch
}

// gather copies slices of the operand whose starts are clamped, so that every
// slice is inside. Each element of the result is located by itself, and the
// slices may overlap.
func (e *evaluation) gather(i *hlo.Instr, a []value) (value, error) {
	out, err := newValue(i.Shape)
	if err != nil {
		return out, err
	}
	g, dims, strides := i.Attrs.Gather,
		a[0].shape.Dims,
		a[0].strides()
	x := indexVectors{
		a[1],
		a[1].strides(), g.IndexVectorDim,
		g.StartIndexMap, g.OperandBatching, g.IndicesBatching,
		make([]int64, len(dims)),
	}
	// An index of the result consists of an index in the window, along the offset
	// dimensions, and of one in the batch, along the others. The window lacks the
	// dimensions that are collapsed or batching.
	dropped := slices.Concat(g.CollapsedSliceDims, g.OperandBatching)
	var window, batch []int64
	result := rowMajorWalk(i.Shape.Dims)
	for range i.Shape.Elements() {
		e.tick()
		window, batch = split(
			result.Index, g.OffsetDims,
			window[:0], batch[:0],
		)
		from, k := int64(0), 0
		for d, start := range x.start(batch) {
			start = clampedStart(start, g.SliceSizes[d], dims[d])
			if !slices.Contains(dropped, int64(d)) {
				start += window[k]
				k++
			}
			from += start * strides[d]
		}
		move(out, result.Next(), a[0], from)
	}
	return out, nil
}

// scatter combines updates into the operand in row-major order. A window that
// is not completely inside the operand is skipped.
func (e *evaluation) scatter(i *hlo.Instr, a []value) (value, error) {
	n := len(a) / 2
	outs := make([]value, n)
	for k := range outs {
		outs[k] = a[k].clone()
	}
	fold, err := e.reducer(
		i.Attrs.ToApply, outs, a[n+1:],
	)
	if err != nil {
		return value{}, err
	}
	s := i.Attrs.Scatter
	updates := a[n+1].shape
	w := UpdateWindow(s, a[0].shape.Dims, updates.Dims)
	x := indexVectors{
		a[n],
		a[n].strides(),
		s.IndexVectorDim, s.ToOperand, s.InputBatching,
		s.IndicesBatching,
		make([]int64, a[0].shape.Rank()),
	}
	// The updates are visited in row-major order, which decides the result where
	// several of them meet.
	var window, batch []int64
	update := rowMajorWalk(updates.Dims)
	for range updates.Elements() {
		e.tick()
		window, batch = split(
			update.Index, s.UpdateWindow,
			window[:0], batch[:0],
		)
		from := update.Next()
		if to := w.offset(x.start(batch), window); to >= 0 {
			if err := fold(to, from); err != nil {
				return value{}, fmt.Errorf("update %d: %w", from, err)
			}
		}
	}
	return e.rounded(i.Shape, outs), nil
}

// A scatterWindow is the window of a scatter in the operand.
type scatterWindow struct {
	// Extents and strides of the operand.
	dims, strides []int64
	// Sizes of the window along the dimensions of the operand.
	Sizes []int64
	// Dimensions that the updates do not have.
	inserted []bool
}

// UpdateWindow is the window of a scatter into an operand of extents dims by
// updates of the given extents.
func UpdateWindow(s *hlo.ScatterDims, dims, updates []int64) scatterWindow {
	w := scatterWindow{
		dims,
		hlo.RowMajor(dims),
		make([]int64, len(dims)),
		make([]bool, len(dims)),
	}
	var sizes []int64
	sizes, _ = split(updates, s.UpdateWindow, nil, nil)
	for d := range dims {
		w.inserted[d] = slices.Contains(s.InsertedWindow, int64(d)) ||
			slices.Contains(s.InputBatching, int64(d))
		w.Sizes[d] = 1
		if !w.inserted[d] {
			w.Sizes[d], sizes = sizes[0], sizes[1:]
		}
	}
	return w
}

// offset is the position of an element of the window that begins at start, −1
// if any part of the window is outside.
func (w scatterWindow) offset(start, window []int64) int64 {
	if !w.holds(start) {
		return -1
	}
	at := int64(0)
	for d, x := range start {
		if !w.inserted[d] {
			x += window[0]
			window = window[1:]
		}
		at += x * w.strides[d]
	}
	return at
}

// holds reports whether a window that begins at start lies wholly in the operand.
func (w scatterWindow) holds(start []int64) bool {
	for d, x := range start {
		if x < 0 || x > w.dims[d]-w.Sizes[d] {
			return false
		}
	}
	return true
}
