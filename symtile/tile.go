package symtile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilewright/tilewright/symtile/index"
)

// A DimTile is the set of indices of one tensor dimension that a tile holds.
// Element i, for 0 ≤ i < Size, is index Offset + i·Stride. It is valid only
// where Lower ≤ index < Bound; else it is masked, and its value is unspecified.
// Stride is positive: a reversed dimension is a tile in ascending order, which
// the reverse op flips.
//
// A dimension that no such arithmetic progression describes is a list of
// Digits, as the modes of a CuTe layout: element (i1, …, in) of the digits, the
// last fastest, is the sum of their indices. It is valid where every digit is
// and the sum is in [Lower, Bound). Then Offset is the sum of the digits'
// offsets, Size the product of their sizes, and Stride 0.
//
// Masks never hide an element that a valid element of the result needs, and
// they keep every index inside of the tensor. They are exact but for the cases
// that propagators lists, in which too much is valid.
type DimTile struct {
	Offset, Size, Stride, Lower, Bound index.Expr
	// Digits is nil, or two and more tiles without digits of their own.
	Digits []DimTile

	// unmerged is the same elements as the digits that were merged into this
	// run; a reshape that follows can divide them where it cannot divide the
	// run. It takes no part in Equal.
	unmerged *DimTile
}

// A Tile is one DimTile for each dimension of a tensor.
type Tile []DimTile

// Masked reports whether an element of the dimension can be masked, as far as
// the ranges of expressions tell.
func (d DimTile) Masked() bool {
	return d.MaskedBelow() || d.MaskedAbove() ||
		slices.ContainsFunc(d.Digits, DimTile.Masked)
}

// MaskedBelow reports whether an index can be under Lower.
func (d DimTile) MaskedBelow() bool {
	return d.Offset.Sub(d.Lower).Range().Lo < 0
}

// MaskedAbove reports whether an index can reach Bound.
func (d DimTile) MaskedAbove() bool {
	return d.last().Sub(d.Bound).Range().Hi >= 0
}

// last is the greatest index of the tile, masked or not.
func (d DimTile) last() index.Expr {
	if d.Digits == nil {
		return d.Offset.Add(d.Size.AddConst(-1).Mul(d.Stride))
	}
	sum := d.Digits[0].last()
	for _, x := range d.Digits[1:] {
		sum = sum.Add(x.last())
	}
	return sum
}

// Equal reports whether two tiles of one ring are the same expression by
// expression.
func (d DimTile) Equal(e DimTile) bool {
	return d.Offset == e.Offset &&
		d.Size == e.Size && d.Stride == e.Stride &&
		d.Lower == e.Lower && d.Bound == e.Bound &&
		slices.EqualFunc(d.Digits, e.Digits, DimTile.Equal)
}

// Boxes is the tile with every digit as a dimension of its own, and the tensor
// dimension that each belongs to; a tile without digits is itself. It is not ok
// where the range of a dimension with digits masks more than the ranges of its
// digits do, which no box can express.
func (t Tile) Boxes() (box Tile, axis []int, ok bool) {
	ok = true
	box = make(Tile, 0, len(t))
	axis = make([]int, 0, len(t))
	for k, d := range t {
		if d.Digits == nil {
			box = append(box, d)
			axis = append(axis, k)
			continue
		}
		ok = ok && !d.sumMasked()
		for _, x := range d.Digits {
			box = append(box, x)
			axis = append(axis, k)
		}
	}
	return box, axis, ok
}

// Each calls visit with the index of every element in row-major order, and
// whether it is valid, at values of the tile ids and other variables. The index
// slice is reused between calls.
func (t Tile) Each(
	env map[index.Expr]int64,
	visit func(index []int64, valid bool),
) {
	index := make([]int64, len(t))
	var walk func(k int, valid bool)
	walk = func(k int, valid bool) {
		if k == len(t) {
			visit(index, valid)
			return
		}
		d := t[k]
		lower := d.Lower.Eval(env)
		bound := d.Bound.Eval(env)
		d.visitDim(env, 0, valid, func(x int64, valid bool) {
			index[k] = x
			walk(k+1, valid && lower <= x && x < bound)
		})
	}
	walk(0, true)
}

// visitDim visits the indices of one dimension, plus base; those of digits as
// sums.
func (d DimTile) visitDim(
	env map[index.Expr]int64, base int64, valid bool,
	visit func(x int64, valid bool),
) {
	if d.Digits == nil {
		offset := d.Offset.Eval(env)
		stride := d.Stride.Eval(env)
		for n := range d.Size.Eval(env) {
			visit(base+offset+n*stride, valid)
		}
		return
	}
	lower := d.Digits[0].Lower.Eval(env)
	bound := d.Digits[0].Bound.Eval(env)
	d.Digits[0].visitDim(env, 0, valid, func(x int64, valid bool) {
		valid = valid && lower <= x && x < bound
		if len(d.Digits) == 1 {
			visit(base+x, valid)
			return
		}
		DimTile{Digits: d.Digits[1:]}.visitDim(
			env, base+x, valid, visit,
		)
	})
}

// fields visits every expression of a tile, five for each dimension and digit.
func (t Tile) fields(visit func(index.Expr)) {
	for _, d := range t {
		for _, e := range [...]index.Expr{
			d.Offset, d.Size, d.Stride,
			d.Lower, d.Bound,
		} {
			visit(e)
		}
		Tile(d.Digits).fields(visit)
	}
}

// vars is the set of variables of a tile.
func (t Tile) vars() map[index.Expr]bool {
	used := map[index.Expr]bool{}
	t.fields(func(e index.Expr) {
		for _, v := range e.Vars() {
			used[v] = true
		}
	})
	return used
}

// sumMasked reports whether the sum of indices that are valid in their digits
// can leave [Lower, Bound).
func (d DimTile) sumMasked() bool {
	var sum index.Interval
	for _, x := range d.Digits {
		sum = sum.Add(x.unmaskedRange())
	}
	return sum.Lo < d.Lower.Range().Hi ||
		sum.Hi >= d.Bound.Range().Lo
}

// unmaskedRange is a range of the valid indices of a digit.
func (d DimTile) unmaskedRange() index.Interval {
	return index.Interval{
		Lo: max(d.Offset.Range().Lo, d.Lower.Range().Lo),
		Hi: min(
			d.last().Range().Hi,
			d.Bound.Range().AddConst(-1).Hi,
		),
	}
}

// HasDigits reports whether a dimension of the tile is a list of digits.
func (t Tile) HasDigits() bool {
	return t.any(func(d DimTile) bool {
		return d.Digits != nil
	})
}

// Masked reports whether an element of the tile can be masked.
func (t Tile) Masked() bool {
	for _, d := range t {
		if d.Masked() {
			return true
		}
	}
	return false
}

// Sizes are the sizes of a concrete tile. It panics on a symbolic one.
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
	for _, d := range t {
		n *= mustValue(d.Size)
	}
	return n
}

// mustValue is the value of a constant expression; it panics on others.
func mustValue(e index.Expr) int64 {
	v, ok := e.Value()
	if !ok {
		panic("symtile: " + e.String() + " is not a constant; is the program concrete?")
	}
	return v
}

// String prints offsets [..] sizes [..] and, where they say something, strides
// and the range of valid indices. A dimension of digits has (sizes) and
// (strides), as CuTe prints them.
func (t Tile) String() string {
	var b strings.Builder
	fmt.Fprintf(
		&b, "offsets %s sizes %s",
		t.list(offsetOf), t.list(sizeOf),
	)
	if t.any(func(d DimTile) bool {
		v, ok := d.Stride.Value()
		return !ok || v != 1
	}) {
		fmt.Fprintf(&b, " strides %s", t.list(strideOf))
	}
	if t.any(DimTile.digitBelow) {
		fmt.Fprintf(&b, " from %s", t.list(lowerOf))
	}
	if t.any(DimTile.digitAbove) {
		fmt.Fprintf(&b, " below %s", t.list(boundOf))
	}
	return b.String()
}

// any reports whether f holds for a dimension.
func (t Tile) any(f func(DimTile) bool) bool {
	for _, d := range t {
		if f(d) {
			return true
		}
	}
	return false
}

// offsetOf and the next ones print one field of a dimension for String.
func offsetOf(d DimTile) string { return d.Offset.String() }
func sizeOf(d DimTile) string {
	return d.joinText(func(x DimTile) index.Expr {
		return x.Size
	})
}
func strideOf(d DimTile) string {
	return d.joinText(func(x DimTile) index.Expr {
		return x.Stride
	})
}
func lowerOf(d DimTile) string {
	return d.joinText(func(x DimTile) index.Expr { return x.Lower }) +
		d.limitText(d.Lower)
}
func boundOf(d DimTile) string {
	return d.joinText(func(x DimTile) index.Expr { return x.Bound }) +
		d.limitText(d.Bound)
}

// limitText prints the limit of the sum of digits where it masks.
func (d DimTile) limitText(limit index.Expr) string {
	if d.Digits == nil || !d.sumMasked() {
		return ""
	}
	return ": " + limit.String()
}

// digitBelow reports whether the dimension, or a digit of it, can be masked
// below.
func (d DimTile) digitBelow() bool {
	return d.MaskedBelow() ||
		slices.ContainsFunc(d.Digits, DimTile.MaskedBelow)
}

// digitAbove reports whether the dimension, or a digit of it, can be masked
// above.
func (d DimTile) digitAbove() bool {
	return d.MaskedAbove() ||
		slices.ContainsFunc(d.Digits, DimTile.MaskedAbove)
}

// joinText prints a field of the tile or, in parentheses, of all its digits.
func (d DimTile) joinText(f func(DimTile) index.Expr) string {
	if d.Digits == nil {
		return f(d).String()
	}
	words := make([]string, len(d.Digits))
	for k, x := range d.Digits {
		words[k] = f(x).String()
	}
	return "(" + strings.Join(words, ", ") + ")"
}

// list prints a property of all dimensions in brackets.
func (t Tile) list(f func(DimTile) string) string {
	words := make([]string, len(t))
	for k, d := range t {
		words[k] = f(d)
	}
	return "[" + strings.Join(words, ", ") + "]"
}
