package symtile

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// Maps of operations that move elements and compute nothing, or each by itself.

// pickDims is v at dims; spread puts v[k] at dims[k].
func pickDims(v []Expr, dims []int64) []Expr {
	out := make([]Expr, len(dims))
	for k, d := range dims {
		out[k] = v[d]
	}
	return out
}

func spread(v []Expr, dims []int64) []Expr {
	out := make([]Expr, len(dims))
	for k, d := range dims {
		out[d] = v[k]
	}
	return out
}

func operandsElementwise(x *indexer) []Map {
	maps := make([]Map, len(x.in.Operands))
	for k, o := range x.in.Operands {
		if o.Shape.Rank() > 0 {
			maps[k].Results = x.dims
		}
	}
	return maps
}

func usersElementwise(x *indexer) Map {
	if len(x.dims) < x.shape.Rank() { // a scalar that applies to every element
		return x.everywhere()
	}
	return Map{Results: x.dims}
}

// reshaped rewrites an index of extents from as one of extents to, window by
// window: linearise, then take digits.
func (x *indexer) reshaped(indices []Expr, from, to []int64) []Expr {
	return reshapedIndex(x.r, indices, from, to)
}

func reshapedIndex(r *Ring, indices []Expr, from, to []int64) []Expr {
	out := make([]Expr, len(to))
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
// that lie in the same place: to physical order, reshape, to logical order.
// Elements of different widths share a place as bitcast-convert has it, the
// narrow ones of a wide one being the minor-most dimension.
func (x *indexer) bitcast(at, to hlo.Shape) Map {
	if at.SameDims(to) && at.DType.Bits() == to.DType.Bits() && sameOrder(at, to) {
		return Map{Results: x.dims}
	}
	if len(at.Layout.Tiles)+len(to.Layout.Tiles) > 0 {
		return x.unknown("the layouts are tiled; their places have no index in common")
	}
	atOrder, toOrder := at.MajorToMinor(), to.MajorToMinor()
	indices, atDims, toDims := Permute(x.dims, atOrder), Permute(at.Dims, atOrder), Permute(to.Dims, toOrder)
	wide, narrow := int64(at.DType.Bits()), int64(to.DType.Bits())
	var m Map
	switch {
	case wide > narrow && wide%narrow == 0:
		m.Ranges = x.ranges([]int64{wide / narrow})
		indices, atDims = append(indices, m.Ranges...), append(atDims, wide/narrow)
	case narrow > wide && narrow%wide == 0:
		toDims = append(toDims, narrow/wide)
	case narrow != wide:
		return x.unknown("elements of %s and %s do not divide each other", at.DType, to.DType)
	}
	if (hlo.Shape{Dims: atDims}).Elements() != (hlo.Shape{Dims: toDims}).Elements() {
		return x.unknown("the arrays have different sizes")
	}
	m.Results = unpermuted(x.reshaped(indices, atDims, toDims), toOrder)
	return m
}

// sameOrder reports whether the layouts of equal extents are the same.
func sameOrder(a, b hlo.Shape) bool {
	return slices.Equal(a.MinorToMajor(), b.MinorToMajor()) && slices.EqualFunc(a.Layout.Tiles, b.Layout.Tiles, slices.Equal[[]int64])
}

// unpermuted returns out with out[order[k]] = v[k]; v may be longer.
func unpermuted(v []Expr, order []int) []Expr {
	out := make([]Expr, len(order))
	for k, d := range order {
		out[d] = v[k]
	}
	return out
}

// bitcastConvert maps an index of extents at to one of extents to. The wider
// type's array lacks the last dimension, which runs over the parts of an element.
func (x *indexer) bitcastConvert(at, to []int64) Map {
	switch {
	case slices.Equal(at, to):
		return Map{Results: x.dims}
	case len(at) == len(to)+1 && slices.Equal(at[:len(to)], to):
		return Map{Results: x.dims[:len(to)]}
	case len(to) == len(at)+1 && slices.Equal(to[:len(at)], at):
		part := x.ranges(to[len(at):])
		return Map{Ranges: part, Results: slices.Concat(x.dims, part)}
	}
	return x.unknown("extents %v and %v differ in more than a last dimension", at, to)
}

func operandsBitcastConvert(x *indexer) []Map {
	return []Map{x.bitcastConvert(x.shape.Dims, x.from(0))}
}

// sliced is the index of the operand of a slice.
func sliced(at []Expr, dims []hlo.SliceDim) []Expr {
	out := make([]Expr, len(at))
	for k, s := range dims {
		out[k] = at[k].Scale(s.Stride).AddConst(s.Start)
	}
	return out
}

// usersSlice: indices that were cut away or stepped over have no user.
func usersSlice(x *indexer) Map {
	var m Map
	for k, s := range x.in.Attrs.Slice {
		off := x.dims[k].AddConst(-s.Start)
		m.Results = append(m.Results, off.Div(s.Stride))
		m.Where = And(m.Where, Require(x.dims[k], s.Start, s.Limit-1), Require(off.Mod(s.Stride), 0, 0))
	}
	return m
}

// mirrored counts the dimensions of an index from the other end.
func mirrored(at []Expr, dims, extents []int64) []Expr {
	out := slices.Clone(at)
	for _, d := range dims {
		out[d] = at[d].Neg().AddConst(extents[d] - 1)
	}
	return out
}

func (x *indexer) mirrored() []Expr { return mirrored(x.dims, x.in.Attrs.Dimensions, x.shape.Dims) }

func operandsConcatenate(x *indexer) []Map {
	maps := make([]Map, len(x.in.Operands))
	along, prefix := x.in.Attrs.Dimensions[0], int64(0)
	for k := range maps {
		n := x.from(k)[along]
		out := slices.Clone(x.dims)
		out[along] = out[along].AddConst(-prefix)
		maps[k] = Map{Results: out, Where: Require(x.dims[along], prefix, prefix+n-1)}
		if n == 0 {
			maps[k].State = Empty
		}
		prefix += n
	}
	return maps
}

func usersConcatenate(x *indexer) Map {
	along := x.in.Attrs.Dimensions[0]
	out := slices.Clone(x.dims)
	for k := range x.operand {
		out[along] = out[along].AddConst(x.from(k)[along])
	}
	return Map{Results: out}
}

// operandsPad: the operand is read where it is, the padding value elsewhere;
// of that only the first is said, the value having no index.
func operandsPad(x *indexer) []Map {
	operand, value := Map{}, Map{}
	for k, p := range x.in.Attrs.Padding {
		at, where := x.dilated(x.dims[k].AddConst(-p.Low), x.from(0)[k], p.Interior+1)
		operand.Results = append(operand.Results, at)
		operand.Where = And(operand.Where, where)
	}
	value.Over = true
	return []Map{operand, value}
}

// dilated is the index, along an extent of n, that lies at place at when every
// two elements have step−1 others put between, and where there is one.
func (x *indexer) dilated(at Expr, n, step int64) (Expr, Constraint) {
	if n == 0 {
		return x.r.Const(0), Never()
	}
	return at.Div(step), And(Require(at, 0, (n-1)*step), Require(at.Mod(step), 0, 0))
}

func usersPad(x *indexer) Map {
	if x.operand == 1 {
		m := x.everywhere()
		m.Over = true
		return m
	}
	var m Map
	for k, p := range x.in.Attrs.Padding {
		at := x.dims[k].Scale(p.Interior + 1).AddConst(p.Low)
		m.Results = append(m.Results, at)
		m.Where = And(m.Where, Require(at, 0, x.shape.Dims[k]-1))
	}
	return m
}

// usersBroadcast: dimensions the operand lacks run over all their values.
func usersBroadcast(x *indexer) Map {
	var extents []int64
	for d, n := range x.shape.Dims {
		if !slices.Contains(x.in.Attrs.Dimensions, int64(d)) {
			extents = append(extents, n)
		}
	}
	m := Map{Ranges: x.ranges(extents)}
	next := 0
	for d := range x.shape.Dims {
		if k := slices.Index(x.in.Attrs.Dimensions, int64(d)); k >= 0 {
			m.Results = append(m.Results, x.dims[k])
			continue
		}
		m.Results = append(m.Results, m.Ranges[next])
		next++
	}
	return m
}
