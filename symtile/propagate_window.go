package symtile

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// propagateUnfold: position x and element w of a window are index x·Stride +
// w·Dilation of the operand, so that a tile of both needs a run of indices
// whose step is the greatest common divisor of theirs. The run shares the halo
// with that of the next tile. Where windows are farther apart than they are
// long it holds indices that nothing reads.
func propagateUnfold(b *builder, i *hlo.Instr, out Tile) ([]Tile, error) {
	var in Tile
	for n, k := 0, 0; n < len(out); n++ {
		if k == len(i.Attrs.Dimensions) ||
			int(i.Attrs.Dimensions[k]) != len(in) {
			in = append(in, out[n])
			continue
		}
		x, err := b.requireRun(i, out[n])
		if err != nil {
			return nil, err
		}
		w, err := b.requireRun(i, out[n+1])
		if err != nil {
			return nil, err
		}
		d, err := b.windowFootprint(
			i, x, w, i.Attrs.Window[k],
		)
		if err != nil {
			return nil, err
		}
		b.noteHalo(x.Size, i.Attrs.Window[k])
		in = append(in, d)
		n, k = n+1, k+1
	}
	return []Tile{in}, nil
}

// windowFootprint is the tile of the indices of positions x and elements w of a
// window.
func (b *builder) windowFootprint(
	i *hlo.Instr, x, w DimTile, by hlo.WindowDim,
) (DimTile, error) {
	x = x.scale(by.Stride)
	w = w.scale(by.Dilation)
	xs, ok := x.constantStride()
	ws, ok2 := w.constantStride()
	if !ok || !ok2 {
		return x, refuse(i, "window-stride", "a dimension is read with a stride that is not a constant")
	}
	step := index.GCD(xs, ws)
	// A scatter takes no tiles with gaps, and the space does not know those that a size of 1
	// makes.
	switch {
	case b.sizes != nil && b.scatters() && by.Size > 1:
	case x.isSingle():
		step = ws
	case w.isSingle():
		step = xs
	}
	return DimTile{
		Offset: x.Offset.Add(w.Offset),
		Size: x.Size.AddConst(-1).Scale(xs / step).Add(
			w.Size.AddConst(-1).Scale(ws / step),
		).AddConst(1),
		Stride: b.ring.Const(step),
		Lower:  x.Lower.Add(w.Lower),
		Bound:  x.Bound.Add(w.Bound).AddConst(-1),
	}, nil
}

// scatters reports whether the program has a scatter.
func (b *builder) scatters() bool {
	return slices.ContainsFunc(b.prog.Fusion.Instrs, func(i *hlo.Instr) bool {
		return i.Op == hlo.OpScatter
	})
}

// noteHalo records, for the dimension whose tile size this is, by how much its
// tiles overlap: sizes that make the whole run a round number are worth
// proposing.
func (b *builder) noteHalo(size index.Expr, w hlo.WindowDim) {
	for k := range b.prog.Space.Dims {
		d := &b.prog.Space.Dims[k]
		if d.Size == size && w.Stride == 1 {
			d.Halo = max(d.Halo, w.Span()-1)
		}
	}
}

// windowPositions is the tile of the positions of a window that contain an
// index of d: from the first whose last element is not before the first index,
// to the last whose first element is not after the last index.
func (b *builder) windowPositions(d DimTile, w hlo.WindowDim, positions int64) DimTile {
	d = d.scale(w.BaseDilation).shift(b.ring.Const(w.PadLow))
	first := d.Offset.AddConst(1 - w.Span()).CeilDiv(w.Stride)
	reach := d.Size.AddConst(-1).Mul(d.Stride).AddConst(w.Span() - 1)
	t := b.run(
		first, reach.Div(w.Stride).AddConst(1), positions,
	)
	t.Lower = d.Lower.AddConst(
		1 - w.Span(),
	).CeilDiv(w.Stride).Max(t.Lower)
	t.Bound =
		d.Bound.AddConst(-1).Div(w.Stride).AddConst(1).Min(t.Bound)
	return t
}

// resultReduceWindow is the tile of the windows over an operand's tile; an
// initial value is used everywhere.
func resultReduceWindow(b *builder, i *hlo.Instr, k int, t Tile) (Tile, error) {
	dims := arrayShapes(i.Shape)[0].Dims
	if k >= len(i.Operands)/2 {
		return b.wholeTile(dims), nil
	}
	return b.windowPositionsOf(
		i, t, ascending(len(t)), dims,
	)
}

// windowPositionsOf applies the windows to the dimensions of a tile.
func (b *builder) windowPositionsOf(
	i *hlo.Instr, t Tile, dims, positions []int64,
) (Tile, error) {
	out := make(Tile, len(dims))
	for k, d := range dims {
		run, err := b.requireRun(i, t[d])
		if err != nil {
			return nil, err
		}
		out[k] = b.windowPositions(
			run, i.Attrs.Window[k], positions[k],
		)
	}
	return out, nil
}

// resultConvolution: a tile of the input is under windows. Every feature of the
// result is made from it, and so is every batch where batches are grouped. A
// tile of the kernel is used everywhere, for its own output features.
func resultConvolution(b *builder, i *hlo.Instr, k int, t Tile) (Tile, error) {
	c := i.Attrs.Conv
	out := b.wholeTile(i.Shape.Dims)
	if k == 1 {
		out[c.OutFeature] = t[c.KernelOut]
		return out, nil
	}
	if _, batches := i.Attrs.Groups(); batches == 1 {
		out[c.OutBatch] = t[c.InBatch]
	}
	positions := make([]int64, len(c.OutSpatial))
	for n, d := range c.OutSpatial {
		positions[n] = i.Shape.Dims[d]
	}
	spatial, err := b.windowPositionsOf(i, t, c.InSpatial, positions)
	if err != nil {
		return nil, err
	}
	for n, d := range c.OutSpatial {
		out[d] = spatial[n]
	}
	return out, nil
}
