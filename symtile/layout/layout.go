package layout

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/hlo/packing"
	"github.com/tilewright/tilewright/symtile/index"
)

// A Layout is the placement of an array in memory: the dimensions in physical
// order, then each tile applied in turn to the most minor ones.
//
//	f32[3,5]{1,0:T(2,2)}           tiles of 2×2, padded to 4×6
//	bf16[32,256]{1,0:T(8,128)(2,1)} and inside, pairs of rows interleaved
//	f32[2,7,8]{2,1,0:T(*,2,4)}     the first two dimensions combined
type Layout struct {
	// Shape is the shape with its layout, as it was given.
	Shape hlo.Shape
	// Physical is the extents of the physical array, major to minor.
	Physical []int64
	// order is the logical dimensions, major to minor.
	order   []int
	tilings []tiling
	// elements is the number of positions in memory, padding included.
	elements int64
	// bits is the size of an element in memory.
	bits int64
	// space is the memory space S(n); 0 where none is given.
	space int64
}

// combinedDim is the tile size written *: the dimension is combined with the
// next more minor one.
const combinedDim = -1

// maxRank bounds the dimensions of a physical array.
const maxRank = packing.MaxRank

// Parse reads a shape with its layout, such as f32[3,5]{1,0:T(2,2)}. The
// element type may be in capitals, as in XLA's documentation.
func Parse(text string) (*Layout, error) {
	if i := strings.IndexByte(text, '['); i >= 0 {
		text = strings.ToLower(text[:i]) + text[i:]
	}
	shape, err := hlo.ParseShape(text)
	if err != nil {
		return nil, err
	}
	return Of(shape)
}

// Of is the layout of an array. A tuple, a tile that does not fit the shape and
// a layout whose positions do not fit 63 bits are errors.
func Of(shape hlo.Shape) (*Layout, error) {
	if !shape.DType.IsArray() {
		return nil, fmt.Errorf("%s is not an array: only arrays have a layout", shape)
	}
	l := &Layout{
		Shape: shape,
		bits:  8 * shape.DType.Size(),
	}
	m2m := shape.MinorToMajor()
	for i := range m2m {
		d := m2m[len(m2m)-1-i]
		l.order = append(l.order, d)
		l.Physical = append(l.Physical, shape.Dims[d])
	}
	for _, tile := range shape.Layout.Tiles {
		t, err := newTiling(tile, l.Physical)
		if err != nil {
			return nil, fmt.Errorf("%s: tile %s: %w", shape, tileText(tile), err)
		}
		l.tilings = append(l.tilings, t)
		l.Physical = t.out
	}
	if err := l.measure(); err != nil {
		return nil, fmt.Errorf("%s: %w", shape, err)
	}
	return l, nil
}

// measure reads what follows the tiles and computes the sizes.
func (l *Layout) measure() error {
	align, err := l.suffixes()
	if err != nil {
		return err
	}
	n, ok := index.Product(l.Physical)
	if ok {
		l.elements, ok = roundUp(n, align)
	}
	hi, lo := bits.Mul64(
		uint64(l.elements), uint64(l.bits),
	)
	if !ok || hi != 0 || lo > math.MaxInt64 {
		return fmt.Errorf("the padded array has more than 2^63 bits")
	}
	return nil
}

// suffixes reads L(n) tail alignment in elements, E(n) bits of an element and
// S(n) memory space.
func (l *Layout) suffixes() (align int64, err error) {
	align = 1
	for rest := strings.ReplaceAll(l.Shape.Layout.Rest, " ", ""); rest != ""; {
		inner, after, ok := strings.Cut(rest[1:], ")")
		n, bad := strconv.ParseInt(
			strings.TrimPrefix(inner, "("), 10, 64,
		)
		if !ok || bad != nil || n < 0 ||
			!strings.HasPrefix(inner, "(") {
			return 0, fmt.Errorf("cannot read %q after the tiles; known are L(n) tail alignment, E(n) element bits and S(n) memory space", rest)
		}
		switch rest[0] {
		case 'L':
			align = max(n, 1)
		case 'E':
			if n > 128 {
				return 0, fmt.Errorf("E(%d): an element has at most 128 bits", n)
			}
			if n > 0 {
				l.bits = n
			}
		case 'S':
			l.space = n
		default:
			return 0, fmt.Errorf("cannot read %q after the tiles; known are L(n) tail alignment, E(n) element bits and S(n) memory space", rest)
		}
		rest = after
	}
	return align, nil
}

// Elements is the number of positions in memory, padding included.
func (l *Layout) Elements() int64 { return l.elements }

// Padding is the number of positions that hold no element.
func (l *Layout) Padding() int64 {
	return l.elements - l.Shape.Elements()
}

// ElementBits is the width of an element in memory: that of the type in a
// buffer, or what E(n) states.
func (l *Layout) ElementBits() int64 { return l.bits }

// Bytes is the size in memory, padding included.
func (l *Layout) Bytes() int64 {
	return (l.elements*l.bits + 7) / 8
}

// Space is the memory space S(n); 0 is the default one.
func (l *Layout) Space() int64 { return l.space }

// String prints the shape with its layout.
func (l *Layout) String() string { return l.Shape.String() }

// A tiling is one tile applied to an array of extents in. Where the tile has
// more dimensions, extents of 1 come before the array's. Runs of dimensions are
// combined by *; merged are the extents after that, of which the last
// len(sizes) are divided. The result, out, has the dimensions before them, the
// numbers of tiles ⌈d/t⌉, and the sizes t.
type tiling struct {
	// unitDims is the number of extents of 1 put before the array's.
	unitDims        int
	in, merged, out []int64
	// untiledDims is the number of dimensions of in that the tile leaves alone.
	untiledDims int
	// mergedDims is how many dimensions of in each divided one combines.
	mergedDims []int
	sizes      []int64
}

// newTiling applies a tile to an array of extents dims.
func newTiling(tile, dims []int64) (tiling, error) {
	t := tiling{unitDims: max(0, len(tile)-len(dims))}
	if len(tile) == 0 {
		return t, fmt.Errorf("no sizes")
	}
	if len(tile) > maxRank ||
		len(dims)+len(tile) > maxRank {
		return t, fmt.Errorf("the physical array has more than %d dimensions", maxRank)
	}
	if tile[len(tile)-1] == combinedDim {
		return t, fmt.Errorf("a * combines a dimension with the next more minor one, and the last has none")
	}
	t.in = slices.Concat(
		slices.Repeat([]int64{1}, t.unitDims), dims,
	)
	t.untiledDims = len(t.in) - len(tile)
	if err := t.mergeDims(tile); err != nil {
		return t, err
	}
	t.out = slices.Clone(t.merged[:t.untiledDims])
	for i, size := range t.sizes {
		t.out = append(
			t.out,
			index.CeilDiv(t.merged[t.untiledDims+i], size),
		)
	}
	t.out = append(t.out, t.sizes...)
	if _, ok := index.Product(t.out); !ok {
		return t, fmt.Errorf("the padded array has more than 2^63 elements")
	}
	return t, nil
}

// mergeDims combines the dimensions with a * with their next more minor ones.
func (t *tiling) mergeDims(tile []int64) error {
	t.merged = slices.Clone(t.in[:t.untiledDims])
	extent, run := int64(1), 0
	for i, size := range tile {
		n, ok := index.Product([]int64{
			extent, t.in[t.untiledDims+i],
		})
		switch {
		case !ok:
			return fmt.Errorf("the combined dimensions have more than 2^63 elements")
		case size == combinedDim:
			extent, run = n, run+1
			continue
		case size < 1:
			return fmt.Errorf("a tile has sizes of at least 1, not %d", size)
		}
		t.merged = append(t.merged, n)
		t.sizes = append(t.sizes, size)
		t.mergedDims = append(t.mergedDims, run+1)
		extent, run = 1, 0
	}
	return nil
}

// padded are the merged extents rounded up to whole tiles.
func (t *tiling) padded() []int64 {
	out := slices.Clone(t.merged)
	for i, size := range t.sizes {
		out[t.untiledDims+i] = index.CeilDiv(out[t.untiledDims+i], size) *
			size
	}
	return out
}

// tileText prints a tile as (8,128), a combined dimension as *.
func tileText(tile []int64) string {
	parts := make([]string, len(tile))
	for i, t := range tile {
		parts[i] = strconv.FormatInt(t, 10)
		if t == combinedDim {
			parts[i] = "*"
		}
	}
	return "(" + strings.Join(parts, ",") + ")"
}

// roundUp is x rounded up to a multiple of m; ok is false where int64 cannot
// hold it.
func roundUp(x, m int64) (int64, bool) {
	return index.Product([]int64{
		index.CeilDiv(x, m), m,
	})
}
