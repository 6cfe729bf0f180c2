package layout

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/symtile"
)

// number is what positions are computed with: integers, and expressions, so
// that there is one formula for both.
type number[T any] interface {
	Add(T) T
	Scale(int64) T
	Div(int64) T
	Mod(int64) T
}

// integer is an int64 ≥ 0 that computes as an expression does.
type integer int64

func (x integer) Add(y integer) integer   { return x + y }
func (x integer) Scale(k int64) integer   { return x * integer(k) }
func (x integer) Div(m int64) integer     { return x / integer(m) }
func (x integer) Mod(m int64) integer     { return x % integer(m) }
func (x integer) outside(ext int64) bool  { return x >= integer(ext) }
func integers(xs []int64) (out []integer) { return convert[integer](xs) }

func convert[T, F ~int64](xs []F) []T {
	out := make([]T, len(xs))
	for i, x := range xs {
		out[i] = T(x)
	}
	return out
}

// linear is Σ index[i]·(product of the extents after i), for index not empty.
func linear[T number[T]](index []T, dims []int64) T {
	x := index[0]
	for i := 1; i < len(index); i++ {
		x = x.Scale(dims[i]).Add(index[i])
	}
	return x
}

// digits is the inverse of linear; the first digit takes what is left.
func digits[T number[T]](x T, dims []int64) []T {
	out := make([]T, len(dims))
	for i := len(dims) - 1; i > 0; i-- {
		out[i], x = x.Mod(dims[i]), x.Div(dims[i])
	}
	out[0] = x
	return out
}

// into takes an index of the array to one of the tiled array: runs combined,
// then ⌊e/t⌋ for all, then e mod t for all.
func into[T number[T]](t *tiling, index []T, zero T) []T {
	index = slices.Concat(slices.Repeat([]T{zero}, t.units), index)
	out := slices.Clone(index[:t.lead])
	var inner []T
	at := t.lead
	for i, run := range t.runs {
		e := linear(index[at:at+run], t.in[at:at+run])
		out, inner = append(out, e.Div(t.sizes[i])), append(inner, e.Mod(t.sizes[i]))
		at += run
	}
	return append(out, inner...)
}

// back is the inverse of into. Indices that may lie beyond an extent, in the
// padding, are shown to within.
func back[T number[T]](t *tiling, index []T, within func(e T, extent int64)) []T {
	out := slices.Clone(index[:t.lead])
	outer, inner := index[t.lead:], index[t.lead+len(t.sizes):]
	at := t.lead
	for i, run := range t.runs {
		e := outer[i].Scale(t.sizes[i]).Add(inner[i])
		within(e, t.joined[t.lead+i])
		out = append(out, digits(e, t.in[at:at+run])...)
		at += run
	}
	return out[t.units:]
}

// place takes a logical index to the physical one.
func place[T number[T]](l *Layout, index []T, zero T) []T {
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
func unplace[T number[T]](l *Layout, index []T, within func(e T, extent int64)) []T {
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
	return convert[int64](place(l, integers(index), 0))
}

// Linear is the position in memory, in elements, of the element at the logical
// index, which must lie in the shape.
func (l *Layout) Linear(index []int64) int64 {
	if len(l.Physical) == 0 {
		return 0
	}
	return int64(linear(integers(l.Coordinates(index)), l.Physical))
}

// Index is the inverse of Linear: the logical index of the element at a
// position; ok is false for padding and beyond the end.
func (l *Layout) Index(position int64) (index []int64, ok bool) {
	n, _ := product(l.Physical)
	if position < 0 || position >= n {
		return nil, false
	}
	var at []integer
	if len(l.Physical) > 0 {
		at = digits(integer(position), l.Physical)
	}
	ok = true
	out := unplace(l, at, func(e integer, extent int64) { ok = ok && !e.outside(extent) })
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
		position = linear(at, l.Physical)
	}
	m.Results = []symtile.Expr{position}
	return m
}

// Inverse is the indexing map from positions in memory, in elements, to logical
// indices. Its constraints hold where a position is no padding.
func (l *Layout) Inverse(r *symtile.Ring) symtile.Map {
	m := box(r, "d", []int64{l.elements})
	n, _ := product(l.Physical)
	if n < l.elements {
		m.Where = symtile.Require(m.Dims[0], 0, n-1)
	}
	var at []symtile.Expr
	if len(l.Physical) > 0 && m.State == symtile.Known {
		at = digits(m.Dims[0], l.Physical)
	} else {
		at = slices.Repeat([]symtile.Expr{r.Const(0)}, len(l.Physical))
	}
	m.Results = unplace(l, at, func(e symtile.Expr, extent int64) { m.Where = append(m.Where, below(e, extent)...) })
	return m
}

// below is the constraint 0 ≤ e < extent, nil where ranges show it.
func below(e symtile.Expr, extent int64) symtile.Constraint {
	in := symtile.Interval{Lo: 0, Hi: extent - 1}
	if in.Covers(e.Range()) {
		return nil
	}
	return symtile.Require(e, in.Lo, in.Hi)
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
