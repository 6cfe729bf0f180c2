// Package scattering reads the dimension numbers of a scatter: which dimensions of its updates
// are along windows and which along index vectors, and whether it can be computed tile by
// tile.
//
// A tile of a scatter begins as that of the operand, and goes through the updates along
// one dimension, tile by tile: the windows are combined with what they meet. Along the
// dimensions of the result that index vectors address, every tile goes through all updates
// and takes those that fall into it. Updates that meet are combined in their order for every
// tiling, so that all tilings give the same bits.
package scattering

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// Untiled is the reason why a scatter is in no tile program, "" where it can be in one: it
// has one operand, and combines by one operation or keeps the last update; where windows
// can overlap in part, updates have them last.
func Untiled(i *hlo.Instr) string {
	to := i.Attrs.ToApply
	_, simple := to.Monoid()
	overwrites := len(to.Params) == 2 && to.Root == to.Params[1]
	switch {
	case len(i.Operands) != 3:
		return "it is several scatters of one list of indices"
	case !simple && !overwrites:
		return "it combines elements by a computation of its own"
	case i.Operands[2].Shape.DType != i.Shape.DType:
		return "its updates have another element type"
	case !windowsLast(i) && overlapsInPart(i):
		return "its windows can overlap in part, and are not the last dimensions of its updates"
	}
	return ""
}

// windowsLast reports whether the updates have their windows in row-major order after all
// else.
func windowsLast(i *hlo.Instr) bool {
	window := i.Attrs.Scatter.UpdateWindow
	batch := i.Operands[2].Shape.Rank() - len(window)
	for k, d := range window {
		if d != int64(batch+k) {
			return false
		}
	}
	return true
}

// overlapsInPart reports whether an element can be met by elements of two windows that are
// at different places in these.
func overlapsInPart(i *hlo.Instr) bool {
	window := Window(i)
	for _, d := range i.Attrs.Scatter.ToOperand {
		if window[d] != 1 {
			return true
		}
	}
	return false
}

// Window is the size of windows along each dimension of the operand.
func Window(i *hlo.Instr) []int64 {
	updates := i.Operands[2].Shape.Dims
	sizes := slices.Repeat([]int64{1}, i.Operands[0].Shape.Rank())
	for u, d := range WindowDims(i) {
		if d >= 0 {
			sizes[d] = updates[u]
		}
	}
	return sizes
}

// WindowDims is, for each dimension of the updates, the dimension of the operand along
// which it is one of windows; −1 for the others.
func WindowDims(i *hlo.Instr) []int {
	s := i.Attrs.Scatter
	var kept []int
	for d := range i.Operands[0].Shape.Rank() {
		if !slices.Contains(s.InsertedWindow, int64(d)) &&
			!slices.Contains(s.InputBatching, int64(d)) {
			kept = append(kept, d)
		}
	}
	dims := make([]int, i.Operands[2].Shape.Rank())
	for u := range dims {
		dims[u] = -1
		if slices.Contains(s.UpdateWindow, int64(u)) {
			dims[u] = kept[0]
			kept = kept[1:]
		}
	}
	return dims
}

// BatchDims is, for each dimension of the updates, that of the indices with the same index
// vectors; −1 along windows.
func BatchDims(i *hlo.Instr) []int {
	s := i.Attrs.Scatter
	next := 0
	dims := make([]int, i.Operands[2].Shape.Rank())
	for u := range dims {
		dims[u] = -1
		if slices.Contains(s.UpdateWindow, int64(u)) {
			continue
		}
		if int64(next) == s.IndexVectorDim {
			next++
		}
		dims[u] = next
		next++
	}
	return dims
}

// Along is the dimension of the updates along which a scatter goes in tiles: the first of
// several index vectors, other than those that operand and indices have in common; −1 for
// none. Along those behind it tiles are whole, which keeps the order of updates.
func Along(i *hlo.Instr) int {
	if Untiled(i) != "" {
		return -1
	}
	common := i.Attrs.Scatter.IndicesBatching
	for u, d := range BatchDims(i) {
		if d >= 0 && i.Operands[2].Shape.Dims[u] > 1 &&
			!slices.Contains(common, int64(d)) {
			return u
		}
	}
	return -1
}
