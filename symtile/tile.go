package symtile

import (
	"fmt"
	"strings"
)

// A DimTile says which indices of one tensor dimension a tile holds: element i
// is index Offset + i·Stride for 0 ≤ i < Size, and it is there only when
// Lower ≤ index < Bound; otherwise it is masked and its value is "do not care".
// Stride is always positive: a reversed dimension is a tile in ascending order
// that the reverse op flips.
//
// Masks never hide an element that an unmasked element of the result needs, and
// they keep every index inside the tensor. They are exact but for three shapes
// that no box can describe (see propagators): then they show too much.
type DimTile struct{ Offset, Size, Stride, Lower, Bound Expr }

// A Tile is one DimTile for each dimension of a tensor.
type Tile []DimTile

// Masked says whether an element of the dimension can be masked, as far as
// ranges tell.
func (d DimTile) Masked() bool { return d.MaskedBelow() || d.MaskedAbove() }

// MaskedBelow says whether an index can be under Lower.
func (d DimTile) MaskedBelow() bool { return d.Offset.Sub(d.Lower).Range().Lo < 0 }

// MaskedAbove says whether an index can reach Bound.
func (d DimTile) MaskedAbove() bool { return d.last().Sub(d.Bound).Range().Hi >= 0 }

// last is the greatest index of the tile, masked or not.
func (d DimTile) last() Expr { return d.Offset.Add(d.Size.AddConst(-1).Mul(d.Stride)) }

// Masked says whether an element of the tile can be masked.
func (t Tile) Masked() bool {
	for _, d := range t {
		if d.Masked() {
			return true
		}
	}
	return false
}

// Sizes are the sizes of a concrete tile; it panics on a symbolic one.
func (t Tile) Sizes() []int64 {
	sizes := make([]int64, len(t))
	for k, d := range t {
		sizes[k] = mustValue(d.Size)
	}
	return sizes
}

// Elements is the product of Sizes.
func (t Tile) Elements() int64 {
	n := int64(1)
	for _, s := range t.Sizes() {
		n *= s
	}
	return n
}

func mustValue(e Expr) int64 {
	v, ok := e.Value()
	if !ok {
		panic("symtile: " + e.String() + " is not a constant; is the program concrete?")
	}
	return v
}

// String prints offsets [..] sizes [..] and, where they say something, strides
// and the range of unmasked indices.
func (t Tile) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "offsets %s sizes %s", t.list(func(d DimTile) Expr { return d.Offset }), t.list(func(d DimTile) Expr { return d.Size }))
	if t.any(func(d DimTile) bool { v, ok := d.Stride.Value(); return !ok || v != 1 }) {
		fmt.Fprintf(&b, " strides %s", t.list(func(d DimTile) Expr { return d.Stride }))
	}
	if t.any(DimTile.MaskedBelow) {
		fmt.Fprintf(&b, " from %s", t.list(func(d DimTile) Expr { return d.Lower }))
	}
	if t.any(DimTile.MaskedAbove) {
		fmt.Fprintf(&b, " below %s", t.list(func(d DimTile) Expr { return d.Bound }))
	}
	return b.String()
}

func (t Tile) any(f func(DimTile) bool) bool {
	for _, d := range t {
		if f(d) {
			return true
		}
	}
	return false
}

func (t Tile) list(f func(DimTile) Expr) string {
	words := make([]string, len(t))
	for k, d := range t {
		words[k] = f(d).String()
	}
	return "[" + strings.Join(words, ", ") + "]"
}
