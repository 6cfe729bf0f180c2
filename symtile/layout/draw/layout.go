package draw

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/symtile/layout"
)

// MaxCells bounds the elements of a picture: a page with more of them would be slow
// to show. A plane of an array with more has no drawing.
const MaxCells = 1 << 14

// A Plane collects elements of an array that have all but the last two indices
// in common, for the Array of a Picture.
type Plane struct {
	// rank is the number of indices of an element.
	rank int
	// outer is the indices that they have in common.
	outer []int64
	// at is the cell at each pair of the last two indices.
	at map[[2]int64]Cell
	// lo and hi are the smallest and the largest of these indices.
	lo, hi [2]int64
	// mixed reports that an element is of another plane.
	mixed bool
}

// NewPlane is an empty plane of an array of a rank.
func NewPlane(rank int) *Plane {
	return &Plane{rank: rank, at: map[[2]int64]Cell{}}
}

// Add adds the element at an index.
func (s *Plane) Add(index []int64, c Cell) {
	n := max(0, s.rank-2)
	var k [2]int64
	for i := range min(2, s.rank) {
		k[1-i] = index[s.rank-1-i]
	}
	if len(s.at) == 0 {
		s.outer = slices.Clone(index[:n])
		s.lo = k
		s.hi = k
	}
	s.mixed = s.mixed ||
		!slices.Equal(s.outer, index[:n])
	for i := range k {
		s.lo[i] = min(s.lo[i], k[i])
		s.hi[i] = max(s.hi[i], k[i])
	}
	s.at[k] = c
}

// Array is the rectangle of the plane that contains all of its elements, with
// the caption and the index of its first row and column. It is nil where
// elements are of several planes, or too far apart: 128 rows and 512 columns at
// most are drawn.
func (s *Plane) Array(caption string) *Array {
	rows := s.hi[0] - s.lo[0] + 1
	cols := s.hi[1] - s.lo[1] + 1
	if s.mixed || rows > 128 ||
		cols > 512 || rows*cols > MaxCells {
		return nil
	}
	if len(s.outer) > 0 {
		caption += fmt.Sprintf(", in plane %s of the last two dimensions", layout.ListText(s.outer))
	}
	return &Array{
		caption: fmt.Sprintf("%s; rows from %d, columns from %d", caption, s.lo[0], s.lo[1]),
		rows:    rows,
		cols:    cols,
		row0:    s.lo[0],
		col0:    s.lo[1],
		at:      s.at,
	}
}

// LayoutSVG draws a layout as an SVG page: the array with the position of each
// element, and memory with the index of each, padding dotted. Elements of one
// tile have one color. Elements that are not whole bytes, and empty arrays, are
// errors; of a large array the first lines are drawn.
func LayoutSVG(l *layout.Layout, size layout.Sectors) ([]byte, error) {
	size, err := size.WithDefaults()
	if err != nil {
		return nil, err
	}
	if l.ElementBits()%8 != 0 {
		return nil, fmt.Errorf("%s: elements of %d bits are no whole bytes and cannot be drawn", l, l.ElementBits())
	}
	if l.Elements() == 0 {
		return nil, fmt.Errorf("%s has no elements", l)
	}
	shown := min(
		l.Elements(),
		maxLines*size.Line*8/l.ElementBits(),
	)
	p := &Picture{Title: l.String(), Size: size}
	s := NewPlane(l.Shape.Rank())
	for position := range shown {
		index, ok := l.Index(position)
		p.Cells = append(
			p.Cells, memoryCell(l, position, index, ok),
		)
		if ok && inFirstPlane(index) {
			s.Add(index, Cell{
				Color: colorOf(l, position),
				Label: fmt.Sprint(position),
				Tip:   fmt.Sprintf("%s at position %d", layout.ListText(index), position),
			})
		}
	}
	p.Array = s.Array("Array: number: the position in memory")
	if p.Array != nil {
		p.Array.tileRows, p.Array.tileCols = drawnTile(l)
	}
	p.Notes = []string{
		fmt.Sprintf(
			"%d positions of %s, %d of them padding; in memory %s",
			l.Elements(),
			layout.BytesText(l.ElementBits()/8),
			l.Padding(), layout.ExtentsText(l.Physical),
		),
		l.Steps().String(),
	}
	if shown < l.Elements() {
		p.Notes[0] += fmt.Sprintf("; the first %d are drawn", shown)
	}
	p.Legend = []Key{
		{SwatchCell, "an element, coloured by its tile"}, {SwatchPadding, "padding"},
	}
	return p.SVG(), nil
}

// inFirstPlane reports whether all but the last two indices are 0.
func inFirstPlane(index []int64) bool {
	for _, i := range index[:max(0, len(index)-2)] {
		if i != 0 {
			return false
		}
	}
	return true
}

// tileOf is the first tile of a layout; nil where there is none.
func tileOf(l *layout.Layout) []int64 {
	if len(l.Shape.Layout.Tiles) == 0 {
		return nil
	}
	return l.Shape.Layout.Tiles[0]
}

// colorOf is the number of the tile of a position, or of its row where the
// layout has no tiles.
func colorOf(l *layout.Layout, position int64) int {
	if len(l.Physical) == 0 {
		return 0
	}
	tile := tileOf(l)
	if tile == nil {
		return int(position / max(1, l.Physical[len(l.Physical)-1]))
	}
	positions := int64(1)
	for _, size := range tile {
		if size > 0 { // else it is *: the dimension is combined with the next
			positions *= size
		}
	}
	return int(position / positions)
}

// memoryCell is the cell of a position in memory, ok for one that holds the
// element at index.
func memoryCell(l *layout.Layout, position int64, index []int64, ok bool) Cell {
	width := l.ElementBits() / 8
	c := Cell{
		From:  position * width,
		To:    (position + 1) * width,
		Color: Padding,
		Tip:   fmt.Sprintf("position %d: padding", position),
	}
	if ok {
		c.Color = colorOf(l, position)
		for i, x := range index {
			if i > 0 {
				c.Label += ","
			}
			c.Label += fmt.Sprint(x)
		}
		c.Tip = fmt.Sprintf(
			"position %d: %s", position, layout.ListText(index),
		)
	}
	return c
}

// drawnTile is the first tile's sizes in the last two logical dimensions, 0
// where it is not a plain tile of them.
func drawnTile(l *layout.Layout) (rows, cols int64) {
	n := l.Shape.Rank()
	tile := tileOf(l)
	if n < 2 || len(tile) != 2 || tile[0] < 1 {
		return 0, 0
	}
	switch fastest := l.Shape.MinorToMajor(); {
	case fastest[0] == n-1 && fastest[1] == n-2:
		return tile[0], tile[1]
	case fastest[0] == n-2 && fastest[1] == n-1:
		return tile[1], tile[0]
	}
	return 0, 0
}
