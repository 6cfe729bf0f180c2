package symtile

import "github.com/tilewright/tilewright/symtile/hlo"

// propagateUnfold: position x and place w of a window are index x·Stride +
// w·Dilation, so a tile of positions and places needs a run of indices whose
// step is the greatest that all of them are multiples of. The run overlaps that
// of the next tile by the halo, and holds indices between windows further apart
// than they are long, which nothing reads.
func propagateUnfold(b *builder, i *hlo.Instr, out Tile) ([]Tile, error) {
	var in Tile
	for n, k := 0, 0; n < len(out); n++ {
		if k == len(i.Attrs.Dimensions) || int(i.Attrs.Dimensions[k]) != len(in) {
			in = append(in, out[n])
			continue
		}
		x, err := b.box(i, out[n])
		if err != nil {
			return nil, err
		}
		w, err := b.box(i, out[n+1])
		if err != nil {
			return nil, err
		}
		d, err := b.slide(i, x, w, i.Attrs.Window[k])
		if err != nil {
			return nil, err
		}
		b.halo(x.Size, i.Attrs.Window[k])
		in = append(in, d)
		n, k = n+1, k+1
	}
	return []Tile{in}, nil
}

// slide is the tile of the indices of positions x and places w of a window.
func (b *builder) slide(i *hlo.Instr, x, w DimTile, by hlo.WindowDim) (DimTile, error) {
	x, w = x.scale(by.Stride), w.scale(by.Dilation)
	xs, ok := x.step()
	ws, ok2 := w.step()
	if !ok || !ok2 {
		return x, b.refuse(i, "window-stride", "a dimension is read with a stride that is not a constant")
	}
	step := gcd(xs, ws)
	if x.single() {
		step = ws
	} else if w.single() {
		step = xs
	}
	return DimTile{
		Offset: x.Offset.Add(w.Offset),
		Size:   x.Size.AddConst(-1).Scale(xs / step).Add(w.Size.AddConst(-1).Scale(ws / step)).AddConst(1),
		Stride: b.ring.Const(step),
		Lower:  x.Lower.Add(w.Lower),
		Bound:  x.Bound.Add(w.Bound).AddConst(-1),
	}, nil
}

// halo notes, for the dimension whose tile size this is, by how much its tiles
// overlap: sizes that make the whole run a round number are worth proposing.
func (b *builder) halo(size Expr, w hlo.WindowDim) {
	for k := range b.prog.Space.Dims {
		if d := &b.prog.Space.Dims[k]; d.Size == size && w.Stride == 1 {
			d.Halo = max(d.Halo, w.Span()-1)
		}
	}
}
