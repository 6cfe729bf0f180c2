package mask

import (
	"math"
	"slices"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/index"
)

// Most is the most that a bound is at an element of a tile of its op: where that is negative,
// all elements of the tile are hidden. It reports whether the sides and strides of the tile are
// numbers.
func (b Bound) Most(tile symtile.Tile) (most index.Expr, ok bool) {
	for d, f := range b.Factors {
		t := tile[d]
		if d == 0 {
			most = t.Offset.Scale(0).AddConst(b.Const)
		}
		if f == 0 {
			continue
		}
		size, sized := t.Size.Value()
		stride, stepped := t.Stride.Value()
		if !sized || !stepped || t.Digits != nil {
			return most, false
		}
		most = most.Add(t.Offset.Scale(f)).AddConst(max(0, f*stride*(size-1)))
	}
	return most, len(b.Factors) > 0
}

// Visible is the share of the tiles along reduced dimensions that are not hidden wholly, of an
// op with such extents and sides of tiles: the mean over tiles of rows, and the most.
func (m Mask) Visible(dims, tile, reduced []int64) (mean, longest float64) {
	mean, longest = 1, 1
	least := 1.0
	for _, d := range reduced {
		least /= float64((dims[d] + tile[d] - 1) / tile[d])
	}
	for _, b := range m.Bounds {
		few, most := m.visibleBy(b, dims, tile, reduced)
		mean += few - 1
		longest = min(longest, most)
	}
	return max(mean, least), longest
}

// visibleBy is the share of the tiles of columns in which a bound is not negative, on
// average and at most; 1 where it is not about one row number and one column number.
func (m Mask) visibleBy(b Bound, dims, tile, reduced []int64) (mean, longest float64) {
	// The dimensions of the one row number and of the one column number.
	row, column := -1, -1
	for d, f := range b.Factors {
		at := &row
		if slices.Contains(reduced, int64(d)) {
			at = &column
		}
		if f != 0 && *at >= 0 {
			return 1, 1
		}
		if f != 0 {
			*at = d
		}
	}
	if column < 0 || row < 0 ||
		b.Factors[column] > 0 && !math.IsInf(m.Value, -1) {
		return 1, 1
	}
	trips := (dims[row] + tile[row] - 1) / tile[row]
	// At most maxVisibleRows tiles of rows are looked at.
	step := 1 + trips/maxVisibleRows
	looked := 0.0
	for i := int64(0); i < trips; i += step {
		n := b.visibleTiles(dims, tile, i, row, column)
		mean += n
		longest = max(longest, n)
		looked++
	}
	all := float64((dims[column] + tile[column] - 1) / tile[column])
	return mean / looked / all, longest / all
}

// maxVisibleRows bounds the tiles of rows that a price looks at.
const maxVisibleRows = 64

// visibleTiles is the tiles of columns that tile i of rows sees any of.
func (b Bound) visibleTiles(dims, tile []int64, i int64, row, column int) float64 {
	trips := float64((dims[column] + tile[column] - 1) / tile[column])
	// The largest that the bound is in tile t is most + each·t.
	most := float64(b.Const)
	for _, d := range []int{row, column} {
		most += max(0, float64(b.Factors[d]*(tile[d]-1)))
	}
	most += float64(b.Factors[row] * i * tile[row])
	each := float64(b.Factors[column] * tile[column])
	// Where it falls, tiles from the first on are visible, else those up to the last.
	last := math.Floor(most / math.Abs(each))
	if each < 0 {
		return min(trips, max(1, last+1))
	}
	return min(trips, max(1, trips+last))
}
