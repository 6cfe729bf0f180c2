//go:build !noasm

package gemm

import (
	"sync"

	"golang.org/x/sys/cpu"
)

// Below so many rows most of a tile is padding; vectors are faster. Of few columns they are
// not: 1024×1×1024 takes 0.37 of their time on an Emerald Rapids.
const minTileRows = 12

// Of so few terms a tile of sums is stored after a step, to a result of many columns: vectors
// take 0.75 to 0.85 of the time of tiles, from memory, on an Emerald Rapids, and of 128 terms
// 1.1 to 1.3 of it.
const (
	fewTileTerms    = tileRow + tileRow/4
	manyTileColumns = 8 * tileBlock
)

// A tileFamily is the kernels by whether a and b are unsigned.
type tileFamily [2][2]tileKernels

// i8 is the family of AMX, nil where the processor has none or the system does not let
// this process use it. It is asked when a product of bytes is compiled for the first time:
// the permission enlarges what the system saves of a thread in a signal.
var i8 = sync.OnceValue(func() *tileFamily {
	listed := cpu.X86.HasAMXTile && cpu.X86.HasAMXInt8
	if i16 == nil || !listed || !permitTiles() {
		return nil
	}
	return &tileFamily{
		{
			{multiplyTilesSSLow, multiplyTilesSS},
			{multiplyTilesSULow, multiplyTilesSU},
		},
		{
			{multiplyTilesUSLow, multiplyTilesUS},
			{multiplyTilesUULow, multiplyTilesUU},
		},
	}
})

// hasInt8 reports whether there are kernels for bytes.
func hasInt8() bool { return quads != nil || hasTiles() }

// readsBytes reports whether products of bytes read short operands.
func readsBytes() bool { return quads != nil }

// hasTiles reports whether there are those of AMX.
func hasTiles() bool { return i8() != nil }

// scratchInt8 is the scratch of whichever kernels multiply.
func scratchInt8(p Product[int32]) int {
	n := max(scratchInt16(), quads.scratch())
	if i8() != nil {
		n = max(n, byteTiles.scratch(p.Caches, p.M, p.N, p.K))
	}
	return n
}

// suitsTiles reports whether tiles multiply faster than quads, if there are any.
func suitsTiles(m, n, k int) bool {
	stores := k <= fewTileTerms && n >= manyTileColumns
	return m >= minTileRows && !(stores && quads != nil)
}

// multiplyInt8 multiplies by tiles; by quads where those are faster, or there are no tiles;
// and by pairs where there are no quads either.
func multiplyInt8(p Product[int32], scratch []int32, unsigned [2]bool) {
	switch {
	case i8() != nil && suitsTiles(p.M, p.N, p.K):
		i8().multiply(unsigned, p, scratch)
	case quads != nil:
		quads.multiply(unsigned, p, scratch)
	default:
		multiplyInt16(p, scratch)
	}
}

// multiply multiplies slab by slab.
func (f *tileFamily) multiply(unsigned [2]bool, p Product[int32], scratch []int32) {
	t := newTileProduct(&byteTiles, f.kernel(unsigned), p, scratch)
	t.multiply()
}

// kernel is the kernel for two signs.
func (f *tileFamily) kernel(unsigned [2]bool) tileKernels {
	row := &f[0]
	if unsigned[0] {
		row = &f[1]
	}
	if unsigned[1] {
		return row[1]
	}
	return row[0]
}
