package hlo

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// A Shape is an array type, or a tuple of shapes when DType is Tuple.
type Shape struct {
	DType DType
	// Dims are the extents in logical order; empty for a scalar. They are not
	// negative, and the bytes of the array fit an int64.
	Dims []int64
	// Bounded says of each dimension whether its extent is only known at run time,
	// and Dims has its bound, [<=8]; nil: of none. Programs are analysed, run and
	// tuned at the bound. Two shapes are equal whichever extents are bounds.
	Bounded []bool
	// Layout is the order of the dimensions in memory.
	Layout Layout
	// Tuple holds the shapes of the elements when DType is Tuple.
	Tuple []Shape
}

// A Layout is how an array is stored in memory.
type Layout struct {
	// MinorToMajor[0] is the dimension that varies fastest; nil means the
	// default, row-major order.
	MinorToMajor []int
	// Tiles are the tilings of a layout such as T(8,128)(2,1), outermost first; −1
	// stands for *.
	Tiles [][]int64
	// Rest is anything after the tiles, such as E(4) or S(1), verbatim. Layouts
	// with a rest are equal only when it is.
	Rest string
}

// Rank is the number of dimensions.
func (s Shape) Rank() int { return len(s.Dims) }

// Elements is the product of the extents. Parse refuses shapes for which it
// or Bytes does not fit an int64.
func (s Shape) Elements() int64 { return Elements(s.Dims) }

// Bytes is the size of the array in a buffer, of all of a tuple's arrays.
func (s Shape) Bytes() int64 {
	if s.DType != Tuple {
		return s.Elements() * s.DType.Size()
	}
	var n int64
	for _, e := range s.Tuple {
		n += e.Bytes()
	}
	return n
}

// openExtent stands in Dims for an extent that is open, while a module is read.
const openExtent = -1

// open reports whether an extent of the shape, or of an element of it, is open.
func (s Shape) open() bool {
	return slices.Contains(s.Dims, openExtent) ||
		slices.ContainsFunc(s.Tuple, Shape.open)
}

// closed is s with a token for each array, of s or of its elements, that has an open extent.
func (s Shape) closed() Shape {
	if s.DType == Tuple {
		elements := slices.Clone(s.Tuple)
		for k, e := range elements {
			elements[k] = e.closed()
		}
		return Shape{DType: Tuple, Tuple: elements}
	}
	if s.open() {
		return Shape{DType: Token}
	}
	return s
}

// filled is s with n for each open extent.
func (s Shape) filled(n int64) Shape {
	s.Dims = slices.Clone(s.Dims)
	for k, d := range s.Dims {
		if d == openExtent {
			s.Dims[k] = n
		}
	}
	s.Tuple = slices.Clone(s.Tuple)
	for k, e := range s.Tuple {
		s.Tuple[k] = e.filled(n)
	}
	return s
}

// setBounded makes the extent of dimension d a bound.
func (s *Shape) setBounded(d int) {
	for len(s.Bounded) <= d {
		s.Bounded = append(s.Bounded, false)
	}
	s.Bounded[d] = true
}

// checkSizes is checkSize for each array of a tuple.
func (s Shape) checkSizes() error {
	for _, a := range s.Arrays() {
		if err := a.checkSize(); err != nil {
			return err
		}
	}
	return nil
}

// checkSize reports extents whose product, or whose bytes, overflow int64.
func (s Shape) checkSize() error {
	n := uint64(1)
	for _, d := range s.Dims {
		if d == 0 {
			return nil
		}
		if d == openExtent {
			continue
		}
		hi, lo := bits.Mul64(n, uint64(d))
		if n = lo; hi != 0 || lo > math.MaxInt64 {
			return fmt.Errorf("%s has more than 2^63 elements", s)
		}
	}
	hi, lo := bits.Mul64(
		n, uint64(max(s.DType.Size(), 1)),
	)
	if hi != 0 || lo > math.MaxInt64 {
		return fmt.Errorf("%s has more than 2^63 bytes", s)
	}
	return nil
}

// Equal reports whether s and t have the same type, extents and layout; an absent
// layout is the descending one.
func (s Shape) Equal(t Shape) bool {
	return s.SameDims(t) && s.DType == t.DType &&
		s.sameLayout(t) &&
		slices.EqualFunc(s.Tuple, t.Tuple, Shape.Equal)
}

// IsRowMajor reports whether the elements of an array are in row-major order, without tiles.
func (s Shape) IsRowMajor() bool {
	return s.Equal(Shape{DType: s.DType, Dims: s.Dims})
}

// SameDims reports whether the extents are equal, whatever the types.
func (s Shape) SameDims(t Shape) bool {
	return slices.Equal(s.Dims, t.Dims)
}

// Compatible is Equal but for layouts.
func (s Shape) Compatible(t Shape) bool {
	return s.DType == t.DType && s.SameDims(t) &&
		slices.EqualFunc(s.Tuple, t.Tuple, Shape.Compatible)
}

// compatibleFloats is Compatible, whichever type of floating-point numbers one has where the
// other has one.
func (s Shape) compatibleFloats(t Shape) bool {
	same := s.DType == t.DType || s.DType.IsFloat() && t.DType.IsFloat()
	return same && s.SameDims(t) &&
		slices.EqualFunc(s.Tuple, t.Tuple, Shape.compatibleFloats)
}

// sameLayout reports whether the layouts of two arrays of one rank mean the
// same; an absent order is the descending one.
func (s Shape) sameLayout(t Shape) bool {
	return slices.Equal(s.MinorToMajor(), t.MinorToMajor()) &&
		s.Layout.Rest == t.Layout.Rest &&
		slices.EqualFunc(s.Layout.Tiles, t.Layout.Tiles, slices.Equal[[]int64])
}

// MinorToMajor is the layout's order of dimensions, fastest first; never nil
// for an array of rank > 0.
func (s Shape) MinorToMajor() []int {
	if s.Layout.MinorToMajor != nil {
		return s.Layout.MinorToMajor
	}
	order := make([]int, len(s.Dims))
	for i := range order {
		order[i] = len(order) - 1 - i
	}
	return order
}

// Strides are the distances, in elements, between neighbours along each
// logical dimension of a buffer with this layout (tiles not considered).
func (s Shape) Strides() []int64 {
	strides := make([]int64, len(s.Dims))
	step := int64(1)
	for _, d := range s.MinorToMajor() {
		strides[d] = step
		step *= s.Dims[d]
	}
	return strides
}

// Extent is the product of the extents of some dimensions, 1 of none.
func (s Shape) Extent(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		n *= s.Dims[d]
	}
	return n
}

// Elements is the product of extents, 1 of none.
func Elements(extents []int64) int64 {
	n := int64(1)
	for _, e := range extents {
		n *= e
	}
	return n
}

// RowMajor is the strides, in elements, of an array of these extents whose
// last dimension varies fastest.
func RowMajor(extents []int64) []int64 {
	strides := make([]int64, len(extents))
	step := int64(1)
	for d, e := range slices.Backward(extents) {
		strides[d] = step
		step *= e
	}
	return strides
}

// isDefault reports whether the layout is what an absent one means.
func (s Shape) defaultLayout() bool {
	if len(s.Layout.Tiles) > 0 || s.Layout.Rest != "" {
		return false
	}
	for i, d := range s.Layout.MinorToMajor {
		if d != len(s.Dims)-1-i {
			return false
		}
	}
	return true
}

// String prints f32[8,16]{0,1}; the layout is left out when it is the default.
func (s Shape) String() string { return string(s.append(nil)) }

// append prints the shape as String does.
func (s Shape) append(b []byte) []byte {
	if s.DType == Buffer {
		b = s.Tuple[0].append(append(b, "b("...))
		return append(b, ')')
	}
	if s.DType == Tuple {
		b = append(b, '(')
		for i, e := range s.Tuple {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = e.append(b)
		}
		return append(b, ')')
	}
	b = append(b, s.DType.String()...)
	b = s.appendExtents(append(b, '['))
	b = append(b, ']')
	if s.defaultLayout() {
		return b
	}
	b = append(b, '{')
	for i, d := range s.MinorToMajor() {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(d), 10)
	}
	if len(s.Layout.Tiles) > 0 {
		b = append(b, ":T"...)
		for _, t := range s.Layout.Tiles {
			b = append(b, '(')
			b = append(
				b,
				strings.ReplaceAll(string(appendInts(nil, t)), "-1", "*")...,
			)
			b = append(b, ')')
		}
	} else if s.Layout.Rest != "" {
		b = append(b, ':')
	}
	b = append(b, s.Layout.Rest...)
	return append(b, '}')
}

// appendExtents prints 8,<=16.
func (s Shape) appendExtents(b []byte) []byte {
	if s.Bounded == nil && !s.open() {
		return appendInts(b, s.Dims)
	}
	for d, n := range s.Dims {
		if d > 0 {
			b = append(b, ',')
		}
		if d < len(s.Bounded) && s.Bounded[d] {
			b = append(b, "<="...)
		}
		if n == openExtent {
			b = append(b, '?')
			continue
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return b
}

// appendInts prints numbers joined by commas.
func appendInts(b []byte, v []int64) []byte {
	for i, x := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, x, 10)
	}
	return b
}

// MajorToMinor lists the dimensions in the order of their layout, the one with
// the greatest stride first: the reverse of MinorToMajor.
func (s Shape) MajorToMinor() []int {
	order := slices.Clone(s.MinorToMajor())
	slices.Reverse(order)
	return order
}

// Arrays lists the arrays of a shape in order: itself, or those of a tuple and of
// the tuples in it.
func (s Shape) Arrays() []Shape {
	if s.DType != Tuple {
		return []Shape{s}
	}
	var all []Shape
	for _, e := range s.Tuple {
		all = append(all, e.Arrays()...)
	}
	return all
}

// Parts is the array of real numbers that lies in memory where an array of complex
// numbers does: it has a last dimension of 2, the real and the imaginary part, which
// varies fastest. Another shape is itself; of a tuple, each element is.
func (s Shape) Parts() Shape {
	if s.DType == Tuple {
		s.Tuple = slices.Clone(s.Tuple)
		for k, e := range s.Tuple {
			s.Tuple[k] = e.Parts()
		}
		return s
	}
	if !s.DType.IsComplex() {
		return s
	}
	s.DType = s.DType.Component()
	if s.Layout.MinorToMajor != nil {
		s.Layout.MinorToMajor = append([]int{len(s.Dims)}, s.Layout.MinorToMajor...)
	}
	if s.Bounded != nil {
		s.Bounded = append(slices.Clone(s.Bounded), false)
	}
	s.Dims = append(slices.Clone(s.Dims), 2)
	return s
}
