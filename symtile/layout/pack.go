package layout

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/symtile/index"
)

// A Pack is tensor.pack: source dimension InnerDimsPos[i] is divided into tiles
// of InnerTiles[i] indices. The packed tensor has the numbers of tiles in the
// order OuterDimsPerm, then the tiles in the order of InnerDimsPos. Unpacking
// is the same description read backwards.
type Pack struct {
	// Source is the extents of the tensor that is not packed.
	Source       []int64
	InnerDimsPos []int
	InnerTiles   []int64
	// OuterDimsPerm makes source dimension OuterDimsPerm[i] outer dimension i;
	// nil keeps the order.
	OuterDimsPerm []int
	// Padding is the value of padding; nil where there is none.
	Padding *float64
	// To is the extents of the packed tensor where they are stated; nil infers
	// them.
	To []int64
	// Unpack reports that the packed tensor is the operand, and Source the
	// result.
	Unpack bool
}

// Check reports what is wrong with p, as MLIR's verifier does: positions and
// permutation of the source's dimensions, positive tiles, whole tiles unless
// there is a padding value, the stated extents.
func (p Pack) Check() error {
	n := len(p.Source)
	for d, e := range p.Source {
		if e < 1 {
			return fmt.Errorf("extent %d of source dimension %d is not positive", e, d)
		}
	}
	if len(p.InnerDimsPos) != len(p.InnerTiles) {
		return fmt.Errorf(
			"inner_tiles has %d sizes and inner_dims_pos %d dimensions: they go together",
			len(p.InnerTiles), len(p.InnerDimsPos),
		)
	}
	if len(p.InnerTiles) > n {
		return fmt.Errorf("%d inner tiles are more than the %d source dims", len(p.InnerTiles), n)
	}
	if n+len(p.InnerTiles) > maxRank {
		return fmt.Errorf("the packed tensor has more than %d dimensions", maxRank)
	}
	for i, d := range p.InnerDimsPos {
		switch {
		case d < 0 || d >= n:
			return fmt.Errorf("inner_dims_pos names dimension %d of a source with %d dims", d, n)
		case slices.Contains(p.InnerDimsPos[:i], d):
			return fmt.Errorf("inner_dims_pos names dimension %d twice", d)
		case p.InnerTiles[i] < 1:
			return fmt.Errorf("inner_tiles has size %d: a tile has at least one index", p.InnerTiles[i])
		}
	}
	if p.OuterDimsPerm != nil && !isPermutation(p.OuterDimsPerm, n) {
		return fmt.Errorf("outer_dims_perm must be a permutation of the %d source dims", n)
	}
	return p.checkSizes()
}

// checkSizes is the part of Check about extents.
func (p Pack) checkSizes() error {
	for i, d := range p.InnerDimsPos {
		t := p.InnerTiles[i]
		if p.Source[d]%t != 0 &&
			p.Padding == nil && !p.Unpack {
			return fmt.Errorf("dimension %d of %d is not a multiple of its tile %d: that needs a padding_value", d, p.Source[d], t)
		}
	}
	packed := p.Packed()
	if _, ok := index.Product(packed); !ok {
		return fmt.Errorf("the packed tensor has more than 2^63 elements")
	}
	if p.To != nil && len(p.To) != len(packed) {
		return fmt.Errorf(
			"the packed tensor has rank %d, not %d: the source's rank and one for each inner tile",
			len(packed), len(p.To),
		)
	}
	if p.To != nil && !slices.Equal(p.To, packed) {
		return fmt.Errorf(
			"the packed tensor is %s, not %s", ExtentsText(packed), ExtentsText(p.To),
		)
	}
	return nil
}

// isPermutation reports whether perm is a permutation of 0 … n−1.
func isPermutation(perm []int, n int) bool {
	sorted := slices.Sorted(slices.Values(perm))
	for i, d := range sorted {
		if d != i {
			return false
		}
	}
	return len(perm) == n
}

// tile is the size of source dimension d's tiles, 1 where it is not divided.
func (p Pack) tile(d int) int64 {
	if i := slices.Index(p.InnerDimsPos, d); i >= 0 {
		return p.InnerTiles[i]
	}
	return 1
}

// outer is the source dimension whose tiles outer dimension i counts.
func (p Pack) outer(i int) int {
	if p.OuterDimsPerm == nil {
		return i
	}
	return p.OuterDimsPerm[i]
}

// Packed is the extents of the packed tensor: ⌈d/t⌉ of each dimension in outer
// order, then the tiles.
func (p Pack) Packed() []int64 {
	var out []int64
	for i := range p.Source {
		d := p.outer(i)
		out = append(
			out,
			index.CeilDiv(p.Source[d], p.tile(d)),
		)
	}
	return append(out, p.InnerTiles...)
}

// padded is the source's extents rounded up to whole tiles.
func (p Pack) padded() []int64 {
	out := slices.Clone(p.Source)
	for d := range out {
		out[d] = index.CeilDiv(out[d], p.tile(d)) *
			p.tile(d)
	}
	return out
}

// ToPacked is the indexing map from source indices to packed ones: what unpack
// reads for each element of its result.
//
//	(d0, d1) -> (d0 floordiv 8, d1 floordiv 32, d0 mod 8, d1 mod 32)
func (p Pack) ToPacked(r *index.Ring) index.Map {
	m := box(r, "d", p.Source)
	for i := range p.Source {
		d := p.outer(i)
		m.Results = append(
			m.Results,
			m.Dims[d].Div(p.tile(d)),
		)
	}
	for i, d := range p.InnerDimsPos {
		m.Results = append(
			m.Results,
			m.Dims[d].Mod(p.InnerTiles[i]),
		)
	}
	return m
}

// ToSource is the indexing map from packed indices to source ones: what pack
// reads for each element of its result. Its constraints leave out padding.
//
//	(d0, d1, d2, d3) -> (d0 * 8 + d2, d1 * 32 + d3)
func (p Pack) ToSource(r *index.Ring) index.Map {
	m := box(r, "d", p.Packed())
	m.Results = make([]index.Expr, len(p.Source))
	for i := range p.Source {
		d := p.outer(i)
		m.Results[d] = m.Dims[i].Scale(p.tile(d))
	}
	for i, d := range p.InnerDimsPos {
		m.Results[d] = m.Results[d].Add(
			m.Dims[len(p.Source)+i],
		)
	}
	for d, e := range m.Results {
		m.Where = append(
			m.Where,
			index.Below(e, p.Source[d])...,
		)
	}
	return m
}

// RoundTrip is what unpack(pack(x)) reads of x, simplified. proved reports that
// it is the identity on the source, by the normal form alone.
func (p Pack) RoundTrip(r *index.Ring) (m index.Map, proved bool) {
	m = index.Compose(p.ToPacked(r), p.ToSource(r)).Simplify()
	return m, slices.Equal(m.Results, m.Dims) &&
		m.Where.True()
}

// Steps lowers the operation: pack is pad, expand, transpose; unpack is
// transpose, collapse, slice. Where only dimensions of extent 1 change places
// the transpose is a reshape.
func (p Pack) Steps() Steps {
	split, perm := p.split()
	var ss Steps
	if p.Unpack {
		inverse := make([]int, len(perm))
		for i, d := range perm {
			inverse[d] = i
		}
		ss = ss.transpose(p.Packed(), inverse)
		ss = ss.to(
			Reshape, ss.dims(p.Packed()), p.padded(),
		)
		return ss.to(Slice, p.padded(), p.Source)
	}
	ss = ss.to(Pad, p.Source, p.padded())
	ss = ss.to(Reshape, p.padded(), split)
	return ss.transpose(split, perm)
}

// split is the padded source with each tiled dimension as tiles and size, and
// the permutation that makes the packed tensor of it.
func (p Pack) split() (dims []int64, perm []int) {
	outerAt := make([]int, len(p.Source))
	innerAt := make([]int, len(p.Source))
	for d, e := range p.Source {
		outerAt[d] = len(dims)
		dims = append(dims, index.CeilDiv(e, p.tile(d)))
		if slices.Contains(p.InnerDimsPos, d) {
			innerAt[d] = len(dims)
			dims = append(dims, p.tile(d))
		}
	}
	for i := range p.Source {
		perm = append(perm, outerAt[p.outer(i)])
	}
	for _, d := range p.InnerDimsPos {
		perm = append(perm, innerAt[d])
	}
	return dims, perm
}
