// Package packing holds the shape rules of tensor.pack and tensor.unpack
// (linalg.pack, linalg.unpack): which descriptions are valid, the extents of the
// packed tensor, and the reshape and transpose that make it.
//
// The rules are those of MLIR's verifier. One thing is read beyond them:
// outer_dims_perm may be a permutation of all dimensions of the packed tensor, as
// the description that the operations come from has it (the wiki page "Tensor Pack
// and Unpack" of 2023), where MLIR permutes the source's dimensions only.
package packing

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// A Pack is tensor.pack: source dimension InnerDimsPos[i] is divided into tiles
// of InnerTiles[i] indices. The packed tensor has the numbers of tiles in the
// order of the source's dimensions, then the tiles in the order of
// InnerDimsPos; OuterDimsPerm permutes the former, or all of them. Unpacking is
// the same description read backwards.
type Pack struct {
	// Source is the extents of the tensor that is not packed.
	Source       []int64
	InnerDimsPos []int
	InnerTiles   []int64
	// OuterDimsPerm makes source dimension OuterDimsPerm[i] outer dimension i.
	// With as many elements as the packed tensor has dimensions it makes
	// dimension OuterDimsPerm[i] of the tensor that would be packed without it
	// dimension i. Nil keeps the order.
	OuterDimsPerm []int
	// Padding is the value of padding; nil where there is none.
	Padding *float64
	// To is the extents of the packed tensor where they are stated; nil infers
	// them.
	To []int64
	// Unpack reports that the packed tensor is the operand, and Source the
	// result.
	Unpack bool
}

// MaxRank bounds the dimensions of a packed tensor.
const MaxRank = 64

// Check reports what is wrong with p, as MLIR's verifier does: positions and
// permutation, positive tiles, whole tiles unless there is a padding value, the
// stated extents.
func (p Pack) Check() error {
	n := len(p.Source)
	for d, e := range p.Source {
		if e < 1 {
			return fmt.Errorf("extent %d of source dimension %d is not positive", e, d)
		}
	}
	if len(p.InnerDimsPos) != len(p.InnerTiles) {
		return fmt.Errorf(
			"inner_tiles has %d sizes and inner_dims_pos %d dimensions: they go together",
			len(p.InnerTiles), len(p.InnerDimsPos),
		)
	}
	if len(p.InnerTiles) > n {
		return fmt.Errorf("%d inner tiles are more than the %d source dims", len(p.InnerTiles), n)
	}
	if n+len(p.InnerTiles) > MaxRank {
		return fmt.Errorf("the packed tensor has more than %d dimensions", MaxRank)
	}
	for i, d := range p.InnerDimsPos {
		switch {
		case d < 0 || d >= n:
			return fmt.Errorf("inner_dims_pos names dimension %d of a source with %d dims", d, n)
		case slices.Contains(p.InnerDimsPos[:i], d):
			return fmt.Errorf("inner_dims_pos names dimension %d twice", d)
		case p.InnerTiles[i] < 1:
			return fmt.Errorf("inner_tiles has size %d: a tile has at least one index", p.InnerTiles[i])
		}
	}
	if p.OuterDimsPerm != nil && !isPermutation(p.OuterDimsPerm, n) &&
		!isPermutation(p.OuterDimsPerm, n+len(p.InnerTiles)) {
		return fmt.Errorf(
			"outer_dims_perm must be a permutation of the %d source dims, or of the %d dims of the packed tensor",
			n, n+len(p.InnerTiles),
		)
	}
	return p.checkSizes()
}

// checkSizes is the part of Check about extents.
func (p Pack) checkSizes() error {
	for i, d := range p.InnerDimsPos {
		t := p.InnerTiles[i]
		if t > math.MaxInt64-p.Source[d] {
			return fmt.Errorf("the packed tensor has more than 2^63 elements")
		}
		if p.Source[d]%t != 0 &&
			p.Padding == nil && !p.Unpack {
			return fmt.Errorf("dimension %d of %d is not a multiple of its tile %d: that needs a padding_value", d, p.Source[d], t)
		}
	}
	packed := p.Packed()
	if !fits(packed) {
		return fmt.Errorf("the packed tensor has more than 2^63 elements")
	}
	if p.To != nil && len(p.To) != len(packed) {
		return fmt.Errorf(
			"the packed tensor has rank %d, not %d: the source's rank and one for each inner tile",
			len(packed), len(p.To),
		)
	}
	if p.To != nil && !slices.Equal(p.To, packed) {
		return fmt.Errorf(
			"the packed tensor is %s, not %s", extents(packed), extents(p.To),
		)
	}
	return nil
}

// isPermutation reports whether perm is a permutation of 0 … n−1.
func isPermutation(perm []int, n int) bool {
	sorted := slices.Sorted(slices.Values(perm))
	for i, d := range sorted {
		if d != i {
			return false
		}
	}
	return len(perm) == n
}

// fits reports whether the product of positive extents fits 63 bits.
func fits(dims []int64) bool {
	n := uint64(1)
	for _, d := range dims {
		hi, lo := bits.Mul64(n, uint64(d))
		if hi != 0 || lo > math.MaxInt64 {
			return false
		}
		n = lo
	}
	return true
}

// extents prints 3x5.
func extents(dims []int64) string {
	parts := make([]string, len(dims))
	for i, d := range dims {
		parts[i] = strconv.FormatInt(d, 10)
	}
	return strings.Join(parts, "x")
}

// Tile is the size of source dimension d's tiles, 1 where it is not divided.
func (p Pack) Tile(d int) int64 {
	if i := slices.Index(p.InnerDimsPos, d); i >= 0 {
		return p.InnerTiles[i]
	}
	return 1
}

// count is the number of tiles of source dimension d, ⌈extent/tile⌉.
func (p Pack) count(d int) int64 {
	t := p.Tile(d)
	return (p.Source[d] + t - 1) / t
}

// Order says which dimension of the tensor packed without OuterDimsPerm each
// dimension of the packed tensor is: the counts of tiles are 0 … n−1 for n
// source dimensions, the tiles n, n+1, ….
func (p Pack) Order() []int {
	order := slices.Clone(p.OuterDimsPerm)
	for i := len(order); i < len(p.Source)+len(p.InnerTiles); i++ {
		order = append(order, i)
	}
	return order
}

// Packed is the extents of the packed tensor: ⌈d/t⌉ of each dimension, then the
// tiles, in the order of Order.
func (p Pack) Packed() []int64 {
	var natural, out []int64
	for d := range p.Source {
		natural = append(natural, p.count(d))
	}
	natural = append(natural, p.InnerTiles...)
	for _, k := range p.Order() {
		out = append(out, natural[k])
	}
	return out
}

// Padded is the source's extents rounded up to whole tiles.
func (p Pack) Padded() []int64 {
	out := slices.Clone(p.Source)
	for d := range out {
		out[d] = p.count(d) * p.Tile(d)
	}
	return out
}

// Split is the padded source with each tiled dimension as its number of tiles
// and their size, and the permutation that makes the packed tensor of it:
// dimension perm[i] of it is dimension i of the packed tensor.
//
//	pack   = pad to Padded, reshape to Split, transpose by perm
//	unpack = transpose by the inverse of perm, reshape to Padded, slice
func (p Pack) Split() (dims []int64, perm []int) {
	place := make([]int, len(p.Source)+len(p.InnerTiles))
	for d := range p.Source {
		place[d] = len(dims)
		dims = append(dims, p.count(d))
		if i := slices.Index(p.InnerDimsPos, d); i >= 0 {
			place[len(p.Source)+i] = len(dims)
			dims = append(dims, p.InnerTiles[i])
		}
	}
	for _, k := range p.Order() {
		perm = append(perm, place[k])
	}
	return dims, perm
}
