package symtile

import (
	"maps"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// A window is a minimal pair of runs of dimensions, in the operand and the
// result of a reshape, with the same number of elements. Dimensions of extent
// 1 belong to no window.
type window struct{ from, to []int }

// windows splits a reshape between arrays without zero extents.
func windows(from, to []int64) []window {
	var all []window
	a, c := nonUnit(from), nonUnit(to)
	for i, j := 0, 0; i < len(a); {
		w := window{from: a[i : i+1], to: c[j : j+1]}
		x, y := from[a[i]], to[c[j]]
		i0, j0 := i, j
		i, j = i+1, j+1
		for x != y {
			if x < y {
				x *= from[a[i]]
				i++
			} else {
				y *= to[c[j]]
				j++
			}
		}
		w.from, w.to = a[i0:i], c[j0:j]
		all = append(all, w)
	}
	return all
}

func nonUnit(dims []int64) []int {
	var keep []int
	for d, extent := range dims {
		if extent != 1 {
			keep = append(keep, d)
		}
	}
	return keep
}

func propagateReshape(b *builder, i *hlo.Instr, out Tile) ([]Tile, error) {
	in, err := b.reshape(i, i.Operands[0].Shape.Dims, i.Shape.Dims, out)
	return []Tile{in}, err
}

// reshape derives the operand's tile of a reshape between extents from and to.
func (b *builder) reshape(i *hlo.Instr, from, to []int64, out Tile) (Tile, error) {
	in := make(Tile, len(from))
	for d, extent := range from {
		in[d] = whole(b.ring, extent)
	}
	if hasZero(from) {
		return in, nil
	}
	for d, extent := range to { // a tile of a larger array may be longer than a unit dimension
		if extent == 1 {
			if err := b.require(i, "reshape-unit", Clause{{out[d].Size, Interval{1, 1}}}); err != nil {
				return nil, err
			}
		}
	}
	for _, w := range windows(from, to) {
		if len(w.from) == 1 && len(w.to) == 1 {
			in[w.from[0]] = out[w.to[0]]
			continue
		}
		run, err := b.gather(i, pick(to, w.to), pick(out, w.to))
		if err != nil {
			return nil, err
		}
		dims, err := b.scatter(i, pick(from, w.from), run)
		if err != nil {
			return nil, err
		}
		for k, d := range w.from {
			in[d] = dims[k]
		}
	}
	return in, nil
}

func hasZero(dims []int64) bool {
	for _, d := range dims {
		if d == 0 {
			return true
		}
	}
	return false
}

func pick[T any](from []T, at []int) []T {
	out := make([]T, len(at))
	for k, d := range at {
		out[k] = from[d]
	}
	return out
}

// gather joins the tiles of dimensions into one run of the linear index:
// sizes must be 1 … 1, partial, full … full, so each dimension has size 1 or
// the next one is full.
func (b *builder) gather(i *hlo.Instr, extents []int64, tile Tile) (DimTile, error) {
	r := b.ring
	if err := b.unitStrides(i, tile, len(extents) > 1); err != nil {
		return DimTile{}, err
	}
	if len(extents) == 1 {
		return tile[0], nil
	}
	for k := 0; k+1 < len(tile); k++ {
		clause := Clause{{tile[k].Size, Interval{1, 1}}}
		if next := tile[k+1]; b.canBeFull(next, extents[k+1]) {
			clause = append(clause, Bound{next.Size, Interval{extents[k+1], extents[k+1]}})
		}
		if err := b.require(i, "reshape-collapse", clause); err != nil {
			return DimTile{}, err
		}
	}
	run := DimTile{Offset: r.Const(0), Size: r.Const(1), Stride: r.Const(1), Lower: r.Const(0), Bound: r.Const(0)}
	for k, d := range tile {
		// Linearise the first and last index that are not masked.
		first, last := d.Offset.Max(d.Lower), d.last().Min(d.Bound.AddConst(-1))
		run.Offset = run.Offset.Scale(extents[k]).Add(d.Offset)
		run.Lower = run.Lower.Scale(extents[k]).Add(first)
		run.Bound = run.Bound.Scale(extents[k]).Add(last)
		run.Size = run.Size.Mul(d.Size)
	}
	run.Bound = run.Bound.AddConst(1)
	if run.Lower == run.Offset {
		run.Lower = r.Const(0) // the run starts unmasked
	}
	return run, nil
}

// unitStrides requires size 1 of dimensions read with a stride: they cannot
// be part of a run.
func (b *builder) unitStrides(i *hlo.Instr, tile Tile, several bool) error {
	for k, d := range tile {
		if v, ok := d.Stride.Value(); ok && v == 1 {
			continue
		}
		if err := b.require(i, "reshape-stride", Clause{{d.Size, Interval{1, 1}}}); err != nil {
			return err
		}
		tile[k].Stride = b.ring.Const(1)
	}
	return nil
}

// canBeFull says whether d, at size extent, is the whole dimension: its offset
// is a multiple of its tile ids and it is masked by the extent only.
func (b *builder) canBeFull(d DimTile, extent int64) bool {
	zero := map[Expr]Expr{}
	for _, v := range d.Offset.Vars() {
		if x, _ := v.Variable(); x.Role == RoleTileID {
			zero[v] = b.ring.Const(0)
		}
	}
	return d.Offset.Subst(zero) == b.ring.Const(0) && d.Lower == b.ring.Const(0) && d.Bound == b.ring.Const(extent)
}

// scatter cuts a run of the linear index into dimensions. At each boundary of
// E elements the run must be whole rows (E divides size and offset) or lie
// inside one row (size divides E, offset a multiple of size).
func (b *builder) scatter(i *hlo.Instr, extents []int64, run DimTile) (Tile, error) {
	if len(extents) == 1 {
		return Tile{run}, nil
	}
	tile := make(Tile, len(extents))
	inner := int64(1)
	total := product(extents)
	for k := len(extents) - 1; k >= 0; k-- {
		if inner > 1 {
			if err := b.aligned(i, run, inner); err != nil {
				return nil, err
			}
		}
		tile[k] = b.digit(run, extents[k], inner, total)
		inner *= extents[k]
	}
	return tile, nil
}

func product(v []int64) int64 {
	n := int64(1)
	for _, x := range v {
		n *= x
	}
	return n
}

// aligned requires run to respect rows of E elements: it stays inside one
// row, or it is whole rows, or its size divides both E and its offset.
//
// A condition such as "E divides size and every coefficient of the offset" is
// one bound, since remainders are not negative: their sum is 0 exactly when
// each is.
func (b *builder) aligned(i *hlo.Instr, run DimTile, e int64) error {
	if run.Offset.Mod(e).Range().Hi+run.Size.Range().Hi <= e {
		return nil
	}
	zero := Interval{0, 0}
	clause := Clause{{run.Size, Interval{1, 1}}}
	if parts, linear := b.parts(run.Offset); linear {
		whole, inside := run.Size.Mod(e), b.ring.Const(e).ModExpr(run.Size)
		for _, c := range parts {
			whole, inside = whole.Add(c.Mod(e)), inside.Add(c.ModExpr(run.Size))
		}
		clause = append(clause, Bound{whole, zero}, Bound{inside, zero})
	} else if run.Offset.Mod(e).Range() == zero {
		clause = append(clause, Bound{run.Size.Mod(e), zero})
	}
	return b.require(i, "reshape-expand", clause)
}

// parts splits an offset that is linear in the tile ids into its constant part
// and its coefficients.
func (b *builder) parts(offset Expr) (parts []Expr, linear bool) {
	none := map[Expr]Expr{}
	for _, v := range offset.Vars() {
		if x, _ := v.Variable(); x.Role == RoleTileID {
			none[v] = b.ring.Const(0)
		}
	}
	rest := offset.Subst(none)
	sum := rest
	parts = []Expr{rest}
	for _, v := range offset.Vars() {
		if _, isTile := none[v]; !isTile {
			continue
		}
		one := maps.Clone(none)
		one[v] = b.ring.Const(1)
		c := offset.Subst(one).Sub(rest)
		parts, sum = append(parts, c), sum.Add(c.Mul(v))
	}
	return parts, sum == offset
}

// digit is dimension extent of a run, inner elements a row of it, total in all.
func (b *builder) digit(run DimTile, extent, inner, total int64) DimTile {
	r := b.ring
	row := inner * extent // elements of the enclosing row
	d := DimTile{
		Offset: run.Offset.Div(inner).Mod(extent),
		Size:   run.Size.CeilDiv(inner).Min(r.Const(extent)),
		Stride: r.Const(1),
		Lower:  r.Const(0),
		Bound:  r.Const(extent),
	}
	outermost := row == total
	if outermost { // not cut off at the extent: a run may be longer than the array, masked
		d.Offset, d.Size = run.Offset.Div(inner), run.Size.CeilDiv(inner)
	}
	start := run.Offset.Sub(d.Offset.Scale(inner)).Sub(run.Offset.Mod(inner)) // of the enclosing row
	if v, ok := run.Bound.Value(); !ok || v != total {
		d.Bound = run.Bound.Sub(start).CeilDiv(inner).Min(r.Const(extent))
	}
	oneRow := outermost || run.Offset.Mod(row).Range().Hi+run.Size.Range().Hi <= row
	if v, ok := run.Lower.Value(); oneRow && (!ok || v != 0) {
		d.Lower = run.Lower.Sub(start).Div(inner).Max(r.Const(0))
	}
	return d
}
