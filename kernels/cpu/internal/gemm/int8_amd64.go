//go:build !noasm

package gemm

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// Products of bytes on AMX. A tile is 16 rows of 64 bytes: of a, rows of 64 terms; of b,
// quads of terms of 16 columns, which is the transpose of its columns' terms in units of
// 32 bits. One kernel multiplies blocks of 32 rows by panels of 32 columns.
const (
	tileLanes = 16 // rows of a tile, and columns of a panel's tiles
	tileTerms = 64
	tileBytes = tileLanes * tileTerms
	tileBlock = 2 * tileLanes // rows and columns of c that a kernel keeps

	tileBlockBytes = 4 * tileBlock * tileBlock

	// A slab of a stays in a second-level cache (256 KiB of 2 MiB), a panel of b in the
	// first (32 KiB of 48): the processors with AMX have such ones.
	tileSlabRows  = 256
	tileSlabTerms = 1024

	// Below so many rows or columns most of a tile is padding; vectors are faster.
	minTileRows = 12
)

// A tileKernel adds blocks of 32 rows of a, so many steps of 64 terms, by a panel of b to
// 32 columns of c, or stores the product.
type tileKernel func(config *byte, blocks, steps int, a, b, c *byte, crs, how int)

// A tileFamily is the kernels by whether a and b are unsigned.
type tileFamily [2][2]tileKernel

// tileConfig is what LDTILECFG reads: palette 1, eight tiles of 16 rows of 64 bytes.
var tileConfig = func() (c [64]byte) {
	c[0] = 1
	for tile := range 8 {
		c[16+2*tile] = tileTerms
		c[48+tile] = tileLanes
	}
	return c
}()

// i8 is the family of AMX, nil where the processor has none or the system does not let
// this process use it. It is asked when a product of bytes is compiled for the first time:
// the permission enlarges what the system saves of a thread in a signal.
var i8 = sync.OnceValue(func() *tileFamily {
	listed := cpu.X86.HasAMXTile && cpu.X86.HasAMXInt8
	if i16 == nil || !listed || !permitTiles() {
		return nil
	}
	return &tileFamily{
		{multiplyTilesSS, multiplyTilesSU},
		{multiplyTilesUS, multiplyTilesUU},
	}
})

// hasInt8 reports whether there are kernels for bytes.
func hasInt8() bool { return quads != nil || i8() != nil }

// scratchInt8 is the scratch of whichever kernels multiply.
func scratchInt8() int {
	return max(scratchInt16(), quads.scratch(), i8().scratch())
}

// scratch is the elements of a slab, a panel, a tile before it is transposed, and a block
// of c.
func (f *tileFamily) scratch() int {
	const (
		slab  = tileSlabRows * tileSlabTerms
		panel = tileBlock * tileSlabTerms
		bytes = tileBlockBytes + slab + panel + tileBytes
	)
	if f == nil {
		return 0
	}
	return (bytes + tileTerms) / 4
}

// multiplyInt8 multiplies by tiles; by quads where most of a tile would be padding, or
// there are no tiles; and by pairs where there are no quads either.
func multiplyInt8(p Product[int32], scratch []int32, unsigned [2]bool) {
	switch {
	case i8() != nil && min(p.M, p.N) >= minTileRows:
		i8().multiply(unsigned, p, scratch)
	case quads != nil:
		quads.multiply(unsigned, p, scratch)
	default:
		multiplyInt16(p, scratch)
	}
}

// kernel is the kernel for two signs.
func (f *tileFamily) kernel(unsigned [2]bool) tileKernel {
	row := &f[0]
	if unsigned[0] {
		row = &f[1]
	}
	if unsigned[1] {
		return row[1]
	}
	return row[0]
}

// A tileProduct is a product while it is computed.
type tileProduct struct {
	kernel  tileKernel
	a, b, c byteMatrix
	// Scratch.
	slab, panel, turned, block unsafe.Pointer
	// Tiles of the terms of the slab, and whether c holds nothing yet.
	steps, how int
}

// multiply multiplies slab by slab.
func (f *tileFamily) multiply(unsigned [2]bool, p Product[int32], scratch []int32) {
	scratch = scratch[:f.scratch()]
	begin := unsafe.Pointer(&scratch[0])
	t := tileProduct{
		kernel: f.kernel(unsigned),
		a:      byteMatrixOf(p.A),
		b:      byteMatrixOf(p.B),
		c:      byteMatrixOf(p.C),
		block:  unsafe.Add(begin, -uintptr(begin)%tileTerms), // rows of tiles are lines of caches
	}
	t.slab = unsafe.Add(t.block, tileBlockBytes)
	t.panel = unsafe.Add(t.slab, tileSlabRows*tileSlabTerms)
	t.turned = unsafe.Add(t.panel, tileBlock*tileSlabTerms)
	for i := 0; i < p.M; i += tileSlabRows {
		for k := 0; k < p.K; k += tileSlabTerms {
			t.part(p, i, k)
		}
	}
}

// part multiplies the slab at row i and term k by all panels.
func (t *tileProduct) part(p Product[int32], i, k int) {
	rows := min(tileSlabRows, p.M-i)
	terms := min(tileSlabTerms, p.K-k)
	t.steps = (terms + tileTerms - 1) / tileTerms
	t.how = 0
	if p.Fresh && k == 0 {
		t.how = freshFlag
	}
	t.packRows(i, rows, k, terms)
	for j := 0; j < p.N; j += tileBlock {
		columns := min(tileBlock, p.N-j)
		t.packColumns(j, columns, k, terms)
		t.blocks(t.c.at(i, j), rows, columns)
	}
}

// blocks multiplies the slab by the panel. Blocks that leave c are made in scratch.
func (t *tileProduct) blocks(c byteMatrix, rows, columns int) {
	whole := 0
	if columns == tileBlock {
		whole = rows / tileBlock
	}
	if whole > 0 {
		t.run(whole, t.slab, c, t.how)
	}
	block := byteMatrix{t.block, 4 * tileBlock, 4}
	for i := whole * tileBlock; i < rows; i += tileBlock {
		a := unsafe.Add(t.slab, i*t.steps*tileTerms)
		t.run(1, a, block, freshFlag)
		t.add(c.at(i, 0), min(tileBlock, rows-i), columns)
	}
}

// run calls the kernel for blocks of rows of the slab from a on.
func (t *tileProduct) run(blocks int, a unsafe.Pointer, c byteMatrix, how int) {
	t.kernel(
		&tileConfig[0], blocks, t.steps,
		(*byte)(a), (*byte)(t.panel),
		c.first(), c.row, how,
	)
}

// add adds the block in scratch to c.
func (t *tileProduct) add(c byteMatrix, rows, columns int) {
	block := byteMatrix{t.block, 4 * tileBlock, 4}
	for i := range rows {
		to := int32s(c.at(i, 0), columns)
		from := int32s(block.at(i, 0), columns)
		if t.how&freshFlag != 0 {
			copy(to, from)
			continue
		}
		for j, x := range from {
			to[j] += x
		}
	}
}

// int32s are the first n elements of a row.
func int32s(x byteMatrix, n int) []int32 {
	return unsafe.Slice((*int32)(x.p), n)
}

// packRows packs rows of a: for each block of 32 rows and step the tile of the first 16
// and that of the others.
func (t *tileProduct) packRows(i, rows, k, terms int) {
	to := t.slab
	for block := 0; block < rows; block += tileBlock {
		for term := 0; term < terms; term += tileTerms {
			x := tilePart{t.a, i + block, k + term, rows - block, terms - term}
			to = t.packPair(to, x, false)
		}
	}
}

// packColumns packs columns of b: for each step the tile of the first 16 and that of the
// others.
func (t *tileProduct) packColumns(j, columns, k, terms int) {
	to := t.panel
	b := byteMatrix{t.b.p, t.b.col, t.b.row}
	for term := 0; term < terms; term += tileTerms {
		x := tilePart{b, j, k + term, columns, terms - term}
		to = t.packPair(to, x, true)
	}
}

// A tilePart is lanes of terms of a matrix with a row for each lane.
type tilePart struct {
	of          byteMatrix
	lane, term  int // the first ones
	lanes, left int // how many lanes and terms there are from there on
}

// packPair makes two tiles, of 16 lanes each, and returns the address behind them.
func (t *tileProduct) packPair(to unsafe.Pointer, x tilePart, quads bool) unsafe.Pointer {
	for range 2 {
		t.pack(to, x, quads)
		to = unsafe.Add(to, tileBytes)
		x.lane += tileLanes
		x.lanes -= tileLanes
	}
	return to
}

// pack makes a tile, in rows of terms or in quads; what is less than 16 lanes or 64 terms
// is filled with zeros. Whole tiles are packed as they lie, and transposed where that is
// not what is asked for.
func (t *tileProduct) pack(to unsafe.Pointer, x tilePart, quads bool) {
	if x.lanes <= 0 {
		clear((*[tileBytes]byte)(to)[:])
		return
	}
	from := x.of.at(x.lane, x.term)
	terms := from.col == 4
	whole := x.lanes >= tileLanes && x.left >= tileTerms
	if !whole || !terms && from.row != 4 {
		x.pack(to, quads)
		return
	}
	made := to
	if terms == quads {
		made = t.turned
	}
	if terms {
		packTerms(
			tileLanes, (*byte)(made),
			from.first(), from.row,
		)
	} else {
		packQuads(
			tileTerms/4, (*byte)(made),
			from.first(), from.col,
		)
	}
	if made != to {
		turnTile(to, made)
	}
}

// turnTile transposes 16 by 16 elements of 32 bits.
func turnTile(to, from unsafe.Pointer) {
	const row, side = 4 * tileLanes, 8
	for range 2 {
		transpose32(
			tileLanes/side, (*byte)(to), row,
			(*byte)(from), row,
		)
		to = unsafe.Add(to, 4*side)
		from = unsafe.Add(from, side*row)
	}
}

// pack makes a tile byte by byte.
func (x tilePart) pack(to unsafe.Pointer, quads bool) {
	tile := (*[tileBytes]byte)(to)
	clear(tile[:])
	for lane := range min(x.lanes, tileLanes) {
		for term := range min(x.left, tileTerms) {
			at := lane*tileTerms + term
			if quads {
				at = term/4*tileTerms + 4*lane + term%4
			}
			from := x.of.at(x.lane+lane, x.term+term)
			tile[at] = byte(*(*int32)(from.p))
		}
	}
}
