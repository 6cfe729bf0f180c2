package layout

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/symtile/index"
)

// convert converts a list of integers to another integer type.
func convert[T, F ~int64](xs []F) []T {
	out := make([]T, len(xs))
	for i, x := range xs {
		out[i] = T(x)
	}
	return out
}

// tiledIndex maps an index of the array to one of the tiled array: runs
// combined, then ⌊e/t⌋ for all, then e mod t for all.
func tiledIndex[T index.Number[T]](
	t *tiling, idx []T, zero T,
) []T {
	idx = slices.Concat(
		slices.Repeat([]T{zero}, t.unitDims), idx,
	)
	out := slices.Clone(idx[:t.untiledDims])
	var inner []T
	at := t.untiledDims
	for i, run := range t.mergedDims {
		e := index.Linearize(
			idx[at:at+run],
			t.in[at:at+run],
		)
		out = append(out, e.Div(t.sizes[i]))
		inner = append(inner, e.Mod(t.sizes[i]))
		at += run
	}
	return append(out, inner...)
}

// untiledIndex is the inverse of tiledIndex. Indices that may be beyond an
// extent, in the padding, are passed to within.
func untiledIndex[T index.Number[T]](
	t *tiling, idx []T, within func(e T, extent int64),
) []T {
	out := slices.Clone(idx[:t.untiledDims])
	outer := idx[t.untiledDims:]
	inner := idx[t.untiledDims+len(t.sizes):]
	at := t.untiledDims
	for i, run := range t.mergedDims {
		e := outer[i].Scale(t.sizes[i]).Add(inner[i])
		within(e, t.merged[t.untiledDims+i])
		out = append(
			out,
			index.Delinearize(e, t.in[at:at+run])...,
		)
		at += run
	}
	return out[t.unitDims:]
}

// physicalIndex maps a logical index to the physical one.
func physicalIndex[T index.Number[T]](
	l *Layout, index []T, zero T,
) []T {
	out := make([]T, len(l.order))
	for i, d := range l.order {
		out[i] = index[d]
	}
	for i := range l.tilings {
		out = tiledIndex(&l.tilings[i], out, zero)
	}
	return out
}

// logicalIndex maps a physical index to the logical one.
func logicalIndex[T index.Number[T]](
	l *Layout, index []T, within func(e T, extent int64),
) []T {
	for i := range l.tilings {
		index = untiledIndex(
			&l.tilings[len(l.tilings)-1-i], index, within,
		)
	}
	out := make([]T, len(l.order))
	for i, d := range l.order {
		out[d] = index[i]
	}
	return out
}

// Coordinates is the index in the physical array of the element at the logical
// index. It panics where the index has another rank.
func (l *Layout) Coordinates(idx []int64) []int64 {
	if len(idx) != len(l.order) {
		panic(fmt.Sprintf("layout: index %v of an array of rank %d", idx, len(l.order)))
	}
	return convert[int64](physicalIndex(l, convert[index.Int](idx), 0))
}

// Linear is the position in memory, in elements, of the element at the logical
// index, which must be in the shape.
func (l *Layout) Linear(idx []int64) int64 {
	if len(l.Physical) == 0 {
		return 0
	}
	return int64(index.Linearize(
		convert[index.Int](l.Coordinates(idx)),
		l.Physical,
	))
}

// Index is the inverse of Linear: the logical index of the element at a
// position. ok is false in padding and beyond the end.
func (l *Layout) Index(position int64) (idx []int64, ok bool) {
	n, _ := index.Product(l.Physical)
	if position < 0 || position >= n {
		return nil, false
	}
	var at []index.Int
	if len(l.Physical) > 0 {
		at = index.Delinearize(index.Int(position), l.Physical)
	}
	ok = true
	out := logicalIndex(l, at, func(e index.Int, extent int64) {
		ok = ok && int64(e) < extent
	})
	if !ok {
		return nil, false
	}
	return convert[int64](out), true
}

// Map is the indexing map from logical indices to positions in memory, in
// elements, built in r:
//
//	(d0, d1) -> ((d0 floordiv 2) * 12 + …), domain: d0 in [0, 2], d1 in [0, 4]
func (l *Layout) Map(r *index.Ring) index.Map {
	m := box(r, "d", l.Shape.Dims)
	position := r.Const(0)
	at := physicalIndex(l, m.Dims, r.Const(0))
	if len(at) > 0 {
		position = index.Linearize(at, l.Physical)
	}
	m.Results = []index.Expr{position}
	return m
}

// Inverse is the indexing map from positions in memory, in elements, to logical
// indices. Its constraints hold where a position is not padding.
func (l *Layout) Inverse(r *index.Ring) index.Map {
	m := box(r, "d", []int64{l.elements})
	n, _ := index.Product(l.Physical)
	if n < l.elements {
		m.Where = index.Require(m.Dims[0], 0, n-1)
	}
	var at []index.Expr
	if len(l.Physical) > 0 && m.State == index.StateKnown {
		at = index.Delinearize(m.Dims[0], l.Physical)
	} else {
		at = slices.Repeat(
			[]index.Expr{r.Const(0)},
			len(l.Physical),
		)
	}
	m.Results = logicalIndex(l, at, func(e index.Expr, extent int64) {
		m.Where = append(
			m.Where, index.Below(e, extent)...,
		)
	})
	return m
}

// box is a map without results over the indices of an array; empty where an
// extent is 0.
func box(r *index.Ring, stem string, dims []int64) index.Map {
	var m index.Map
	for i, d := range dims {
		if d == 0 {
			m.State = index.StateEmpty
		}
		m.Dims = append(
			m.Dims,
			r.Var(index.Variable{
				Name: fmt.Sprint(stem, i),
				Hi:   max(d, 1) - 1,
			}),
		)
	}
	return m
}
