package symtile

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/indexing"
)

// resultPropagators is the table of the opposite direction: the tile of the
// elements of the result that are made from elements of a tile of operand k. It
// serves ResultTiles; building programs does not need it.
var resultPropagators = map[hlo.Opcode]func(
	b *builder, i *hlo.Instr, k int, t Tile,
) (Tile, error){
	hlo.OpBroadcast:          resultBroadcast,
	hlo.OpTranspose:          resultTranspose,
	hlo.OpReshape:            resultReshape,
	hlo.OpBitcast:            resultBitcast,
	hlo.OpSlice:              resultSlice,
	hlo.OpReverse:            resultReverse,
	hlo.OpConcatenate:        resultConcatenate,
	hlo.OpPad:                resultPad,
	hlo.OpReduce:             resultReduce,
	hlo.OpDot:                resultDot,
	hlo.OpGetTupleElement:    resultSame,
	hlo.OpDynamicSlice:       resultDynamicSlice,
	hlo.OpDynamicUpdateSlice: resultDynamicUpdateSlice,
	hlo.OpGather:             resultGather,
	hlo.OpReduceWindow:       resultReduceWindow,
	hlo.OpConvolution:        resultConvolution,
	hlo.OpScatter:            resultScatter,
	hlo.OpAllReduce:          resultSame,
}

// resultSame is the tile itself; a scalar that applies to every element reaches
// the whole result.
func resultSame(b *builder, i *hlo.Instr, k int, t Tile) (Tile, error) {
	if len(t) < i.Shape.Rank() {
		return b.wholeTile(i.Shape.Dims), nil
	}
	return t, nil
}

// wholeTile is the tile that is the whole array.
func (b *builder) wholeTile(dims []int64) Tile {
	t := make(Tile, len(dims))
	for k, n := range dims {
		t[k] = whole(b.ring, n)
	}
	return t
}

// clip masks d to [0, extent).
func (b *builder) clip(d DimTile, extent int64) DimTile {
	return d.masked(
		b.ring.Const(0), b.ring.Const(extent),
	)
}

// resultBroadcast gives the dimensions that the operand lacks all of their
// values.
func resultBroadcast(b *builder, i *hlo.Instr, _ int, t Tile) (Tile, error) {
	out := b.wholeTile(i.Shape.Dims)
	for k, d := range i.Attrs.Dimensions {
		out[d] = t[k]
	}
	return out, nil
}

// resultTranspose permutes the dimensions.
func resultTranspose(_ *builder, i *hlo.Instr, _ int, t Tile) (Tile, error) {
	return indexing.Permute(t, ints(i.Attrs.Dimensions)), nil
}

// resultReshape is a reshape in the other direction.
func resultReshape(b *builder, i *hlo.Instr, k int, t Tile) (Tile, error) {
	return b.reshape(
		i, i.Shape.Dims,
		i.Operands[k].Shape.Dims, t,
	)
}

// resultBitcast is a bitcast in the other direction: to physical order,
// reshape, to logical order.
func resultBitcast(b *builder, i *hlo.Instr, _ int, t Tile) (Tile, error) {
	from := i.Operands[0].Shape
	to := i.Shape
	if len(from.Layout.Tiles)+len(to.Layout.Tiles) > 0 ||
		from.DType != to.DType {
		return nil, refuse(
			i, "bitcast", "%s", refusalReason(hlo.OpBitcast),
		)
	}
	inOrder := from.MajorToMinor()
	outOrder := to.MajorToMinor()
	out, err := b.reshape(
		i, indexing.Permute(to.Dims, outOrder),
		indexing.Permute(from.Dims, inOrder),
		indexing.Permute(t, inOrder),
	)
	if err != nil {
		return nil, err
	}
	return unpermute(out, outOrder), nil
}

// resultSlice: index start + stride·x is x of the result, as with interior
// padding.
func resultSlice(b *builder, i *hlo.Instr, _ int, t Tile) (Tile, error) {
	for k, s := range i.Attrs.Slice {
		if s.Stride == 1 {
			t[k] = b.shiftAndMask(
				t[k], s.Start, i.Shape.Dims[k],
			)
			continue
		}
		run, err := b.requireRun(i, t[k])
		if err != nil {
			return nil, err
		}
		if _, ok := run.constantStride(); !ok {
			return nil, refuse(
				i, "slice-stride",
				"dimension %d is read with the stride %s, which is not a constant", k, run.Stride,
			)
		}
		t[k] = b.subsampled(
			run,
			hlo.PadDim{Low: s.Start, Interior: s.Stride - 1},
			i.Shape.Dims[k],
		)
	}
	return t, nil
}

// resultReverse mirrors the dimensions, which is its own inverse.
func resultReverse(b *builder, i *hlo.Instr, _ int, t Tile) (Tile, error) {
	tiles, err := propagateReverse(b, i, t)
	if err != nil {
		return nil, err
	}
	return tiles[0], nil
}

// resultConcatenate shifts the tile to where the operand begins in the result.
func resultConcatenate(b *builder, i *hlo.Instr, k int, t Tile) (Tile, error) {
	dim := i.Attrs.Dimensions[0]
	prefix := int64(0)
	for _, o := range i.Operands[:k] {
		prefix += o.Shape.Dims[dim]
	}
	t[dim] = t[dim].shift(b.ring.Const(prefix))
	return t, nil
}

// resultPad spreads the operand and shifts it; the padding value can be
// anywhere.
func resultPad(b *builder, i *hlo.Instr, k int, t Tile) (Tile, error) {
	if k == 1 {
		return b.wholeTile(i.Shape.Dims), nil
	}
	for d, p := range i.Attrs.Padding {
		t[d] = b.clip(
			t[d].scale(p.Interior+1).shift(
				b.ring.Const(p.Low),
			),
			i.Shape.Dims[d],
		)
	}
	return t, nil
}

// resultReduce drops the reduced dimensions.
func resultReduce(b *builder, i *hlo.Instr, k int, t Tile) (Tile, error) {
	if k >= len(i.Operands)/2 {
		return b.wholeTile(arrayShapes(i.Shape)[0].Dims), nil
	}
	var out Tile
	for d, x := range t {
		if !slices.Contains(i.Attrs.Dimensions, int64(d)) {
			out = append(out, x)
		}
	}
	return out, nil
}

// arrayShapes are the shapes of the arrays of a result, which is an array or a
// tuple of arrays.
func arrayShapes(s hlo.Shape) []hlo.Shape {
	if s.DType == hlo.Tuple {
		return s.Tuple
	}
	return []hlo.Shape{s}
}

// resultDot keeps batch and free dimensions; the other operand's free
// dimensions have all of their values.
func resultDot(b *builder, i *hlo.Instr, k int, t Tile) (Tile, error) {
	a := &i.Attrs
	batch, contract := a.LHSBatch, a.LHSContract
	if k == 1 {
		batch, contract = a.RHSBatch, a.RHSContract
	}
	out := b.wholeTile(i.Shape.Dims)
	for n, d := range batch {
		out[n] = t[d]
	}
	at := len(batch)
	if k == 1 {
		at = len(out) -
			(len(t) - len(batch) - len(contract))
	}
	for d, x := range t {
		if !slices.Contains(batch, int64(d)) &&
			!slices.Contains(contract, int64(d)) {
			out[at] = x
			at++
		}
	}
	return out, nil
}

// resultDynamicSlice shifts by the starts and masks to the slice; a start can
// move every element.
func resultDynamicSlice(b *builder, i *hlo.Instr, k int, t Tile) (Tile, error) {
	if k > 0 {
		return b.wholeTile(i.Shape.Dims), nil
	}
	for d := range t {
		at, err := b.start(
			i.Operands[1+d],
			i.Operands[0].Shape.Dims[d]-i.Shape.Dims[d],
		)
		if err != nil {
			return nil, err
		}
		t[d] = b.clip(
			t[d].shift(at.Neg()),
			i.Shape.Dims[d],
		)
	}
	return t, nil
}

// resultDynamicUpdateSlice keeps the operand's tile and shifts the update's by
// the starts.
func resultDynamicUpdateSlice(b *builder, i *hlo.Instr, k int, t Tile) (Tile, error) {
	switch {
	case k == 0:
		return t, nil
	case k > 1:
		return b.wholeTile(i.Shape.Dims), nil
	}
	for d := range t {
		at, err := b.start(
			i.Operands[2+d],
			i.Shape.Dims[d]-i.Operands[1].Shape.Dims[d],
		)
		if err != nil {
			return nil, err
		}
		t[d] = t[d].shift(at)
	}
	return t, nil
}

// resultGather: an element of the operand can be in the slice of any batch
// element; index vectors decide about their own batch elements.
func resultGather(b *builder, i *hlo.Instr, k int, t Tile) (Tile, error) {
	g := i.Attrs.Gather
	out := b.wholeTile(i.Shape.Dims)
	if k == 1 {
		d := 0
		for n, x := range t {
			if int64(n) == g.IndexVectorDim {
				continue
			}
			for slices.Contains(g.OffsetDims, int64(d)) {
				d++
			}
			out[d] = x
			d++
		}
		return out, nil
	}
	offsets := slices.Sorted(slices.Values(g.OffsetDims))
	for n, x := range t {
		if slices.Contains(g.CollapsedSliceDims, int64(n)) ||
			slices.Contains(g.OperandBatching, int64(n)) {
			continue
		}
		if !slices.Contains(g.StartIndexMap, int64(n)) {
			out[offsets[0]] = b.clip(x, g.SliceSizes[n])
		}
		offsets = offsets[1:]
	}
	return out, nil
}

// resultScatter: an operand's tile is the result's; updates can land anywhere
// along the dimensions that have indices.
func resultScatter(b *builder, i *hlo.Instr, k int, t Tile) (Tile, error) {
	s := i.Attrs.Scatter
	n := len(i.Operands) / 2
	if k < n {
		return t, nil
	}
	out := b.wholeTile(arrayShapes(i.Shape)[0].Dims)
	if k == n {
		return out, nil
	}
	windows := slices.Sorted(slices.Values(s.UpdateWindow))
	for d := range out {
		if slices.Contains(s.InsertedWindow, int64(d)) ||
			slices.Contains(s.InputBatching, int64(d)) {
			continue
		}
		if !slices.Contains(s.ToOperand, int64(d)) {
			out[d] = t[windows[0]]
		}
		windows = windows[1:]
	}
	return out, nil
}
