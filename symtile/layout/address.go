package layout

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/symtile"
)

func convert[T, F ~int64](xs []F) []T {
	out := make([]T, len(xs))
	for i, x := range xs {
		out[i] = T(x)
	}
	return out
}

// into takes an index of the array to one of the tiled array: runs combined,
// then ⌊e/t⌋ for all, then e mod t for all.
func into[T symtile.Number[T]](t *tiling, index []T, zero T) []T {
	index = slices.Concat(slices.Repeat([]T{zero}, t.units), index)
	out := slices.Clone(index[:t.lead])
	var inner []T
	at := t.lead
	for i, run := range t.runs {
		e := symtile.Linearize(index[at:at+run], t.in[at:at+run])
		out, inner = append(out, e.Div(t.sizes[i])), append(inner, e.Mod(t.sizes[i]))
		at += run
	}
	return append(out, inner...)
}

// back is the inverse of into. Indices that may lie beyond an extent, in the
// padding, are shown to within.
func back[T symtile.Number[T]](t *tiling, index []T, within func(e T, extent int64)) []T {
	out := slices.Clone(index[:t.lead])
	outer, inner := index[t.lead:], index[t.lead+len(t.sizes):]
	at := t.lead
	for i, run := range t.runs {
		e := outer[i].Scale(t.sizes[i]).Add(inner[i])
		within(e, t.joined[t.lead+i])
		out = append(out, symtile.Delinearize(e, t.in[at:at+run])...)
		at += run
	}
	return out[t.units:]
}

// place takes a logical index to the physical one.
func place[T symtile.Number[T]](l *Layout, index []T, zero T) []T {
	out := make([]T, len(l.order))
	for i, d := range l.order {
		out[i] = index[d]
	}
	for i := range l.tilings {
		out = into(&l.tilings[i], out, zero)
	}
	return out
}

// unplace takes a physical index to the logical one.
func unplace[T symtile.Number[T]](l *Layout, index []T, within func(e T, extent int64)) []T {
	for i := range l.tilings {
		index = back(&l.tilings[len(l.tilings)-1-i], index, within)
	}
	out := make([]T, len(l.order))
	for i, d := range l.order {
		out[d] = index[i]
	}
	return out
}

// Coordinates is the index in the physical array of the element at the logical
// index. It panics when the index has another rank.
func (l *Layout) Coordinates(index []int64) []int64 {
	if len(index) != len(l.order) {
		panic(fmt.Sprintf("layout: index %v of an array of rank %d", index, len(l.order)))
	}
	return convert[int64](place(l, convert[symtile.Int](index), 0))
}

// Linear is the position in memory, in elements, of the element at the logical
// index, which must lie in the shape.
func (l *Layout) Linear(index []int64) int64 {
	if len(l.Physical) == 0 {
		return 0
	}
	return int64(symtile.Linearize(convert[symtile.Int](l.Coordinates(index)), l.Physical))
}

// Index is the inverse of Linear: the logical index of the element at a
// position; ok is false for padding and beyond the end.
func (l *Layout) Index(position int64) (index []int64, ok bool) {
	n, _ := symtile.Product(l.Physical)
	if position < 0 || position >= n {
		return nil, false
	}
	var at []symtile.Int
	if len(l.Physical) > 0 {
		at = symtile.Delinearize(symtile.Int(position), l.Physical)
	}
	ok = true
	out := unplace(l, at, func(e symtile.Int, extent int64) { ok = ok && int64(e) < extent })
	if !ok {
		return nil, false
	}
	return convert[int64](out), true
}

// Map is the indexing map from logical indices to positions in memory, in
// elements, built in r:
//
//	(d0, d1) -> ((d0 floordiv 2) * 12 + …), domain: d0 in [0, 2], d1 in [0, 4]
func (l *Layout) Map(r *symtile.Ring) symtile.Map {
	m := box(r, "d", l.Shape.Dims)
	position := r.Const(0)
	if at := place(l, m.Dims, r.Const(0)); len(at) > 0 {
		position = symtile.Linearize(at, l.Physical)
	}
	m.Results = []symtile.Expr{position}
	return m
}

// Inverse is the indexing map from positions in memory, in elements, to logical
// indices. Its constraints hold where a position is no padding.
func (l *Layout) Inverse(r *symtile.Ring) symtile.Map {
	m := box(r, "d", []int64{l.elements})
	n, _ := symtile.Product(l.Physical)
	if n < l.elements {
		m.Where = symtile.Require(m.Dims[0], 0, n-1)
	}
	var at []symtile.Expr
	if len(l.Physical) > 0 && m.State == symtile.Known {
		at = symtile.Delinearize(m.Dims[0], l.Physical)
	} else {
		at = slices.Repeat([]symtile.Expr{r.Const(0)}, len(l.Physical))
	}
	m.Results = unplace(l, at, func(e symtile.Expr, extent int64) { m.Where = append(m.Where, symtile.Below(e, extent)...) })
	return m
}

// box is a map without results over indices of an array; empty when an extent
// is 0.
func box(r *symtile.Ring, stem string, dims []int64) symtile.Map {
	var m symtile.Map
	for i, d := range dims {
		if d == 0 {
			m.State = symtile.Empty
		}
		m.Dims = append(m.Dims, r.Var(symtile.Variable{Name: fmt.Sprint(stem, i), Hi: max(d, 1) - 1}))
	}
	return m
}
