package indexing

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// Maps of operations that move elements without computing anything, and of
// elementwise operations. They have no ranges, except those of a bitcast between
// element types of different widths and of users of a broadcast.

// gatherDims is v at dims; scatterDims is the inverse and puts v[k] at dims[k].
func gatherDims(v []index.Expr, dims []int64) []index.Expr {
	out := make([]index.Expr, len(dims))
	for k, d := range dims {
		out[k] = v[d]
	}
	return out
}

// scatterDims puts v[k] at dims[k].
func scatterDims(v []index.Expr, dims []int64) []index.Expr {
	out := make([]index.Expr, len(dims))
	for k, d := range dims {
		out[d] = v[k]
	}
	return out
}

// operandsElementwise is the identity; scalar operands have no index, so that
// their maps have no results.
func operandsElementwise(x *indexer) []index.Map {
	maps := make([]index.Map, len(x.in.Operands))
	for k, o := range x.in.Operands {
		if o.Shape.Rank() > 0 {
			maps[k].Results = x.dims
		}
	}
	return maps
}

// usersElementwise is the identity; a scalar operand is used by every element.
func usersElementwise(x *indexer) index.Map {
	if len(x.dims) < x.shape.Rank() { // a scalar that applies to every element
		return x.everywhere()
	}
	return index.Map{Results: x.dims}
}

// reshaped rewrites an index of extents from as one of extents to, group by
// group: linearize, then delinearize.
func (x *indexer) reshaped(
	indices []index.Expr, from, to []int64,
) []index.Expr {
	return reshapedIndex(x.r, indices, from, to)
}

// reshapedIndex is reshaped without an indexer.
func reshapedIndex(
	r *index.Ring, indices []index.Expr, from, to []int64,
) []index.Expr {
	out := make([]index.Expr, len(to))
	for k := range out {
		out[k] = r.Const(0)
	}
	if slices.Contains(from, 0) {
		return out
	}
	for _, w := range ReshapeGroups(from, to) {
		linear := r.Const(0)
		for _, d := range w.From {
			linear = linear.Scale(from[d]).Add(indices[d])
		}
		inner := int64(1)
		for k := len(w.To) - 1; k >= 0; k-- {
			d := w.To[k]
			if out[d] = linear.Div(inner); k > 0 {
				out[d] = out[d].Mod(to[d])
			}
			inner *= to[d]
		}
	}
	return out
}

// bitcast maps an index of an array of shape at to the elements of shape to
// that are at the same address: to physical order, reshape, to logical order.
// Where element widths differ, the narrow elements of a wide one are the
// minor-most dimension, as for bitcast-convert.
func (x *indexer) bitcast(at, to hlo.Shape) index.Map {
	if at.SameDims(to) &&
		at.DType.Bits() == to.DType.Bits() &&
		sameLayout(at, to) {
		return index.Map{Results: x.dims}
	}
	if len(at.Layout.Tiles)+len(to.Layout.Tiles) > 0 {
		return x.unknown("the layouts are tiled; their places have no index in common")
	}
	atOrder := at.MajorToMinor()
	toOrder := to.MajorToMinor()
	indices := Permute(x.dims, atOrder)
	atDims := Permute(at.Dims, atOrder)
	toDims := Permute(to.Dims, toOrder)
	wide := int64(at.DType.Bits())
	narrow := int64(to.DType.Bits())
	var m index.Map
	switch {
	case wide > narrow && wide%narrow == 0:
		m.Ranges = x.ranges([]int64{wide / narrow})
		indices = append(indices, m.Ranges...)
		atDims = append(atDims, wide/narrow)
	case narrow > wide && narrow%wide == 0:
		toDims = append(toDims, narrow/wide)
	case narrow != wide:
		return x.unknown("elements of %s and %s do not divide each other", at.DType, to.DType)
	}
	elements := func(dims []int64) int64 {
		return hlo.Shape{Dims: dims}.Elements()
	}
	if elements(atDims) != elements(toDims) {
		return x.unknown("the arrays have different sizes")
	}
	m.Results = unpermuted(
		x.reshaped(indices, atDims, toDims), toOrder,
	)
	return m
}

// sameLayout reports whether the layouts of arrays of equal extents are the
// same.
func sameLayout(a, b hlo.Shape) bool {
	return slices.Equal(a.MinorToMajor(), b.MinorToMajor()) &&
		slices.EqualFunc(a.Layout.Tiles, b.Layout.Tiles, slices.Equal[[]int64])
}

// unpermuted returns out with out[order[k]] = v[k]; v may be longer.
func unpermuted(v []index.Expr, order []int) []index.Expr {
	out := make([]index.Expr, len(order))
	for k, d := range order {
		out[d] = v[k]
	}
	return out
}

// bitcastConvert maps an index of extents at to one of extents to. The wider
// type's array lacks the last dimension, which numbers the parts of an element.
func (x *indexer) bitcastConvert(at, to []int64) index.Map {
	switch {
	case slices.Equal(at, to):
		return index.Map{Results: x.dims}
	case len(at) == len(to)+1 &&
		slices.Equal(at[:len(to)], to):
		return index.Map{Results: x.dims[:len(to)]}
	case len(to) == len(at)+1 &&
		slices.Equal(to[:len(at)], at):
		part := x.ranges(to[len(at):])
		return index.Map{
			Ranges:  part,
			Results: slices.Concat(x.dims, part),
		}
	}
	return x.unknown("extents %v and %v differ in more than a last dimension", at, to)
}

// operandsBitcastConvert is bitcastConvert from the result to the operand.
func operandsBitcastConvert(x *indexer) []index.Map {
	return []index.Map{
		x.bitcastConvert(x.shape.Dims, x.operandDims(0)),
	}
}

// sliced is the index of the operand of a slice.
func sliced(at []index.Expr, dims []hlo.SliceDim) []index.Expr {
	out := make([]index.Expr, len(at))
	for k, s := range dims {
		out[k] = at[k].Scale(s.Stride).AddConst(s.Start)
	}
	return out
}

// usersSlice: indices that were cut off or skipped by the stride have no user.
func usersSlice(x *indexer) index.Map {
	var m index.Map
	for k, s := range x.in.Attrs.Slice {
		off := x.dims[k].AddConst(-s.Start)
		m.Results = append(m.Results, off.Div(s.Stride))
		m.Where = index.And(
			m.Where,
			index.Require(x.dims[k], s.Start, s.Limit-1),
			index.Require(off.Mod(s.Stride), 0, 0),
		)
	}
	return m
}

// mirrored reverses the dimensions dims of an index.
func mirrored(at []index.Expr, dims, extents []int64) []index.Expr {
	out := slices.Clone(at)
	for _, d := range dims {
		out[d] = at[d].Neg().AddConst(extents[d] - 1)
	}
	return out
}

// mirrored is the map of a reverse, its own inverse.
func (x *indexer) mirrored() []index.Expr {
	return mirrored(
		x.dims, x.in.Attrs.Dimensions, x.shape.Dims,
	)
}

// operandsConcatenate: each operand is read in its interval of the dimension.
func operandsConcatenate(x *indexer) []index.Map {
	maps := make([]index.Map, len(x.in.Operands))
	dim := x.in.Attrs.Dimensions[0]
	prefix := int64(0)
	for k := range maps {
		n := x.operandDims(k)[dim]
		out := slices.Clone(x.dims)
		out[dim] = out[dim].AddConst(-prefix)
		maps[k] = index.Map{
			Results: out,
			Where:   index.Require(x.dims[dim], prefix, prefix+n-1),
		}
		if n == 0 {
			maps[k].State = index.StateEmpty
		}
		prefix += n
	}
	return maps
}

// usersConcatenate adds the extents of the operands before this one.
func usersConcatenate(x *indexer) index.Map {
	dim := x.in.Attrs.Dimensions[0]
	out := slices.Clone(x.dims)
	for k := range x.operand {
		out[dim] = out[dim].AddConst(x.operandDims(k)[dim])
	}
	return index.Map{Results: out}
}

// operandsPad: the operand is read where it is, the padding value elsewhere.
// The map of the value, which has no index, is approximate: it does not say
// where.
func operandsPad(x *indexer) []index.Map {
	operand := index.Map{}
	value := index.Map{}
	for k, p := range x.in.Attrs.Padding {
		at, where := x.dilated(
			x.dims[k].AddConst(-p.Low),
			x.operandDims(0)[k],
			p.Interior+1,
		)
		operand.Results = append(operand.Results, at)
		operand.Where = index.And(operand.Where, where)
	}
	value.Approximate = true
	return []index.Map{operand, value}
}

// dilated is the index, along an extent of n, of the element at position at
// when step−1 others are inserted between any two elements, and the constraint
// that there is one.
func (x *indexer) dilated(
	at index.Expr, n, step int64,
) (index.Expr, index.Constraint) {
	if n == 0 {
		return x.r.Const(0), index.Never()
	}
	return at.Div(step), index.And(
		index.Require(at, 0, (n-1)*step),
		index.Require(at.Mod(step), 0, 0),
	)
}

// usersPad: elements that negative padding cuts off have no user; the value may
// be used anywhere.
func usersPad(x *indexer) index.Map {
	if x.operand == 1 {
		m := x.everywhere()
		m.Approximate = true
		return m
	}
	var m index.Map
	for k, p := range x.in.Attrs.Padding {
		at := x.dims[k].Scale(p.Interior + 1).AddConst(p.Low)
		m.Results = append(m.Results, at)
		m.Where = index.And(
			m.Where,
			index.Require(at, 0, x.shape.Dims[k]-1),
		)
	}
	return m
}

// usersBroadcast: dimensions that the operand lacks have all of their values.
func usersBroadcast(x *indexer) index.Map {
	var extents []int64
	for d, n := range x.shape.Dims {
		if !slices.Contains(x.in.Attrs.Dimensions, int64(d)) {
			extents = append(extents, n)
		}
	}
	m := index.Map{Ranges: x.ranges(extents)}
	next := 0
	for d := range x.shape.Dims {
		k := slices.Index(
			x.in.Attrs.Dimensions, int64(d),
		)
		if k >= 0 {
			m.Results = append(m.Results, x.dims[k])
			continue
		}
		m.Results = append(m.Results, m.Ranges[next])
		next++
	}
	return m
}
