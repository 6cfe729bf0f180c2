package reference

import (
	"fmt"
	"math"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// start is element n of integer indices; a u64 too large for int64 is the
// largest, which clamps or is out of bounds just the same.
func (v value) start(n int64) int64 {
	x := v.ints[n]
	if x >= 0 || v.shape.DType != hlo.U64 {
		return x
	}
	return math.MaxInt64
}

// clampedStart is where a slice of size elements begins in a dimension of
// extent n so that it stays inside.
func clampedStart(start, size, n int64) int64 {
	return min(max(start, 0), n-size)
}

// sliceOffset is the row-major place of the first element of a slice of extents
// sizes, whose starts are scalars or one array.
func sliceOffset(starts []value, sizes, dims []int64) int64 {
	at := int64(0)
	for d, stride := range hlo.RowMajor(dims) {
		at += clampedStart(startAlong(starts, d), sizes[d], dims[d]) * stride
	}
	return at
}

func startAlong(starts []value, d int) int64 {
	if len(starts) == 1 &&
		starts[0].shape.Rank() == 1 {
		return starts[0].start(int64(d))
	}
	return starts[d].start(0)
}

func dynamicSlice(i *hlo.Instr, a []value) (value, error) {
	dims := a[0].shape.Dims
	return a[0].strided(
		i.Shape,
		sliceOffset(a[1:], i.Shape.Dims, dims),
		hlo.RowMajor(dims),
	)
}

func dynamicUpdateSlice(i *hlo.Instr, a []value) (value, error) {
	out := a[0].clone().withShape(i.Shape)
	a[1].storeStrided(
		out,
		sliceOffset(a[2:], a[1].shape.Dims, i.Shape.Dims),
		hlo.RowMajor(i.Shape.Dims),
	)
	return out, nil
}

func (v value) clone() value {
	v.ints, v.floats = slices.Clone(v.ints),
		slices.Clone(v.floats)
	return v
}

// indexVectors reads the index vectors of a gather or scatter.
type indexVectors struct {
	indices  value
	strides  []int64 // of the indices
	vector   int64   // the dimension along which an index vector lies; the rank when vectors are scalars
	operand  []int64 // component k is a start along operand dimension operand[k]
	batching []int64 // of the operand, indexed like …
	batched  []int64 // … these dimensions of the indices
	starts   []int64 // what start returns
}

// start is the start along every dimension of the operand for an index of the
// batch, the dimensions of the indices but for the vector's; 0 where nothing
// is said. The result is good until the next call.
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

// split parts an index into its components at dims and the others, which it
// appends to window and batch.
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

// gather copies slices whose starts are clamped.
func gather(i *hlo.Instr, a []value) (value, error) {
	out, err := newValue(i.Shape)
	if err != nil {
		return out, err
	}
	g, dims, strides := i.Attrs.Gather,
		a[0].shape.Dims,
		hlo.RowMajor(a[0].shape.Dims)
	x := indexVectors{
		a[1],
		hlo.RowMajor(a[1].shape.Dims), g.IndexVectorDim,
		g.StartIndexMap, g.OperandBatching, g.IndicesBatching,
		make([]int64, len(dims)),
	}
	gone := slices.Concat(g.CollapsedSliceDims, g.OperandBatching)
	var window, batch []int64
	result := NewWalk(
		i.Shape.Dims, hlo.RowMajor(i.Shape.Dims),
	)
	for range i.Shape.Elements() {
		window, batch = split(
			result.Index, g.OffsetDims,
			window[:0], batch[:0],
		)
		from, k := int64(0), 0
		for d, start := range x.start(batch) {
			start = clampedStart(start, g.SliceSizes[d], dims[d])
			if !slices.Contains(gone, int64(d)) {
				start += window[k]
				k++
			}
			from += start * strides[d]
		}
		move(out, result.Next(), a[0], from)
	}
	return out, nil
}

// scatter combines updates in row-major order. A window that is not wholly
// inside the operand is skipped.
func scatter(i *hlo.Instr, a []value) (value, error) {
	n := len(a) / 2
	outs := make([]value, n)
	for k := range outs {
		outs[k] = a[k].clone()
	}
	fold, err := reducer(
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
		hlo.RowMajor(a[n].shape.Dims),
		s.IndexVectorDim, s.ToOperand, s.InputBatching,
		s.IndicesBatching,
		make([]int64, a[0].shape.Rank()),
	}
	var window, batch []int64
	update := NewWalk(updates.Dims, hlo.RowMajor(updates.Dims))
	for range updates.Elements() {
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
	return rounded(i.Shape, outs), nil
}

// A scatterWindow is the window of a scatter in the operand.
type scatterWindow struct {
	dims, strides []int64 // of the operand
	Sizes         []int64 // of the window along the operand's dimensions
	inserted      []bool  // dimensions the updates do not have
}

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

// offset is where an element of the window that begins at start lies, −1 when
// any of the window is outside.
func (w scatterWindow) offset(start, window []int64) int64 {
	at := int64(0)
	for d, x := range start {
		if x < 0 || x > w.dims[d]-w.Sizes[d] {
			return -1
		}
		if !w.inserted[d] {
			x += window[0]
			window = window[1:]
		}
		at += x * w.strides[d]
	}
	return at
}
