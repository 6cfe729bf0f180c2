package indexing

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/index"
)

// A side is one operand of a dot: its extents, batch and contracting
// dimensions.
type side struct {
	// extents are those of the operand.
	extents []int64
	// batch and contract are dimension numbers, in the order of the attribute.
	batch, contract []int64
}

// sides are the left and the right operand.
func (x *indexer) sides() [2]side {
	a := &x.in.Attrs
	return [2]side{
		{x.operandDims(0), a.LHSBatch, a.LHSContract},
		{x.operandDims(1), a.RHSBatch, a.RHSContract},
	}
}

// free are the dimensions that are neither batch nor contracting ones, in
// ascending order.
func (s side) free() []int64 {
	var dims []int64
	for d := range s.extents {
		if !slices.Contains(s.batch, int64(d)) &&
			!slices.Contains(s.contract, int64(d)) {
			dims = append(dims, int64(d))
		}
	}
	return dims
}

// index is an index of the operand made of batch, free and contracting indices.
func (s side) index(batch, free, contract []index.Expr) []index.Expr {
	out := make([]index.Expr, len(s.extents))
	for k, d := range s.batch {
		out[d] = batch[k]
	}
	for k, d := range s.free() {
		out[d] = free[k]
	}
	for k, d := range s.contract {
		out[d] = contract[k]
	}
	return out
}

// operandsDot: batch dimensions come first in the result, then the free ones of
// each side. Contracting dimensions are ranges, in the order of the attribute.
func operandsDot(x *indexer) []index.Map {
	sides := x.sides()
	ranges := x.ranges(pickExtents(sides[0].extents, sides[0].contract))
	batch := x.dims[:len(sides[0].batch)]
	free := x.dims[len(sides[0].batch):]
	leftFree := len(sides[0].free())
	return []index.Map{
		{Ranges: ranges, Results: sides[0].index(
			batch, free[:leftFree], ranges,
		)},
		{Ranges: ranges, Results: sides[1].index(
			batch, free[leftFree:], ranges,
		)},
	}
}

// usersDot: the other side's free dimensions have all of their values.
func usersDot(x *indexer) index.Map {
	return x.resultsOf(x.operand, x.dims, nil)
}

// resultsOf is the map to the results that an element of a side takes part in.
// more are the extents of ranges that the indices use already.
func (x *indexer) resultsOf(
	which int, indices []index.Expr, more []int64,
) index.Map {
	sides := x.sides()
	side := sides[which]
	other := sides[1-which]
	extents := append(
		slices.Clone(more),
		pickExtents(other.extents, other.free())...,
	)
	m := index.Map{Ranges: x.ranges(extents)}
	free := gatherDims(indices, side.free())
	otherFree := m.Ranges[len(more):]
	if which == 1 {
		free, otherFree = otherFree, free
	}
	m.Results = slices.Concat(
		gatherDims(indices, side.batch), free, otherFree,
	)
	return m
}

// operandsScaledDot is operandsDot, and for the scales of an element those of
// its block.
func operandsScaledDot(x *indexer) []index.Map {
	maps := operandsDot(x)
	for k := range 2 {
		scale := index.Map{Ranges: maps[k].Ranges}
		for d, n := range x.operandDims(2 + k) {
			scale.Results = append(
				scale.Results,
				maps[k].Results[d].Div(x.operandDims(k)[d]/n),
			)
		}
		maps = append(maps, scale)
	}
	return maps
}

// usersScaledDot: a scale is used by what the elements of its block are used
// by. Along contracting dimensions the element within the block does not
// matter.
func usersScaledDot(x *indexer) index.Map {
	if x.operand < 2 {
		return usersDot(x)
	}
	which := x.operand - 2
	if len(x.dims) == 0 {
		return x.everywhere()
	}
	blocks := make([]int64, len(x.dims))
	for d, n := range x.operandDims(x.operand) {
		blocks[d] = x.operandDims(which)[d] / n
	}
	within := x.ranges(blocks)
	indices := make([]index.Expr, len(x.dims))
	for d, v := range x.dims {
		indices[d] = v.Scale(blocks[d]).Add(within[d])
	}
	return x.resultsOf(which, indices, blocks)
}
