package layout

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo/packing"
	"github.com/tilewright/tilewright/symtile/index"
)

// A Pack is tensor.pack or tensor.unpack; see packing.Pack, which has its shape
// rules, for the fields.
type Pack packing.Pack

// Check reports what is wrong with p: see packing.Pack.
func (p Pack) Check() error { return packing.Pack(p).Check() }

// Packed is the extents of the packed tensor.
func (p Pack) Packed() []int64 { return packing.Pack(p).Packed() }

// tile is the size of source dimension d's tiles, 1 where it is not divided.
func (p Pack) tile(d int) int64 { return packing.Pack(p).Tile(d) }

// ToPacked is the indexing map from source indices to packed ones: what unpack
// reads for each element of its result.
//
//	(d0, d1) -> (d0 floordiv 8, d1 floordiv 32, d0 mod 8, d1 mod 32)
func (p Pack) ToPacked(r *index.Ring) index.Map {
	m := box(r, "d", p.Source)
	var natural []index.Expr
	for d, e := range m.Dims {
		natural = append(natural, e.Div(p.tile(d)))
	}
	for i, d := range p.InnerDimsPos {
		natural = append(
			natural, m.Dims[d].Mod(p.InnerTiles[i]),
		)
	}
	for _, k := range packing.Pack(p).Order() {
		m.Results = append(m.Results, natural[k])
	}
	return m
}

// ToSource is the indexing map from packed indices to source ones: what pack
// reads for each element of its result. Its constraints leave out padding.
//
//	(d0, d1, d2, d3) -> (d0 * 8 + d2, d1 * 32 + d3)
func (p Pack) ToSource(r *index.Ring) index.Map {
	m := box(r, "d", p.Packed())
	natural := make([]index.Expr, len(m.Dims))
	for i, k := range packing.Pack(p).Order() {
		natural[k] = m.Dims[i]
	}
	for d := range p.Source {
		m.Results = append(
			m.Results, natural[d].Scale(p.tile(d)),
		)
	}
	for i, d := range p.InnerDimsPos {
		m.Results[d] = m.Results[d].Add(
			natural[len(p.Source)+i],
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
	split, perm := packing.Pack(p).Split()
	padded := packing.Pack(p).Padded()
	var ss Steps
	if p.Unpack {
		inverse := make([]int, len(perm))
		for i, d := range perm {
			inverse[d] = i
		}
		ss = ss.transpose(p.Packed(), inverse)
		ss = ss.to(
			Reshape, ss.dims(p.Packed()), padded,
		)
		return ss.to(Slice, padded, p.Source)
	}
	ss = ss.to(Pad, p.Source, padded)
	ss = ss.to(Reshape, padded, split)
	return ss.transpose(split, perm)
}
