//go:build !noasm

package gemm

import "unsafe"

// Products of bytes and of bf16 on AMX. A tile is 16 rows of 64 bytes: of a, rows of terms;
// of b, lanes of 32 bits of terms of 16 columns, four bytes or two bf16, which is the
// transpose of its columns' terms in units of 32 bits. One kernel multiplies blocks of 32
// rows by panels of 32 columns.
const (
	tileLanes = 16 // rows of a tile, and columns of a panel's tiles
	tileRow   = 64 // bytes
	tileBytes = tileLanes * tileRow
	tileBlock = 2 * tileLanes // rows and columns of c that a kernel keeps

	tileBlockBytes = 4 * tileBlock * tileBlock

	// A slab of a stays in a second-level cache (256 KiB of 2 MiB), a panel of b in the
	// first (32 KiB of 48): the processors with AMX have such ones.
	tileSlabRows = 256
	tileSlabRow  = 1024 // bytes

	// The elements of a slab, a panel, a tile before it is transposed, and a block of c.
	tileScratch = (tileBlockBytes + tileSlabRows*tileSlabRow + tileBlock*tileSlabRow +
		tileBytes + tileRow) / 4
)

// A tileKernel adds blocks of 32 rows of a, so many steps of a row of a tile, by a panel of
// b to 32 columns of c, or stores the product.
type tileKernel func(config *byte, blocks, steps int, a, b, c *byte, crs, how int)

// A tileFormat is how elements of 32 bits become those of tiles.
type tileFormat struct {
	terms int // of a row of a tile
	share int // of a lane of 32 bits
	// Packs rows of contiguous terms, or lanes of terms of 16 contiguous columns.
	packTerms, packLanes func(n int, to, from *byte, fromStride int)
	narrow               func(x uint32) uint32 // the bits of an element
}

// tileConfig is what LDTILECFG reads: palette 1, eight tiles of 16 rows of 64 bytes.
var tileConfig = func() (c [64]byte) {
	c[0] = 1
	for tile := range 8 {
		c[16+2*tile] = tileRow
		c[48+tile] = tileLanes
	}
	return c
}()

// A tileProduct is a product while it is computed.
type tileProduct struct {
	*tileFormat
	kernel  tileKernel
	a, b, c byteMatrix
	m, n, k int
	fresh   bool
	// Scratch.
	slab, panel, turned, block unsafe.Pointer
	// Tiles of the terms of the slab, and whether c holds nothing yet.
	steps, how int
}

// newTileProduct lays out the scratch of a product.
func newTileProduct[T Element](
	f *tileFormat, kernel tileKernel,
	p Product[T], scratch []T,
) tileProduct {
	scratch = scratch[:tileScratch]
	begin := unsafe.Pointer(&scratch[0])
	t := tileProduct{
		tileFormat: f,
		kernel:     kernel,
		a:          byteMatrixOf(p.A),
		b:          byteMatrixOf(p.B),
		c:          byteMatrixOf(p.C),
		m:          p.M,
		n:          p.N,
		k:          p.K,
		fresh:      p.Fresh,
	}
	// Rows of tiles are lines of caches.
	t.block = unsafe.Add(begin, -uintptr(begin)%tileRow)
	t.slab = unsafe.Add(t.block, tileBlockBytes)
	t.panel = unsafe.Add(t.slab, tileSlabRows*tileSlabRow)
	t.turned = unsafe.Add(t.panel, tileBlock*tileSlabRow)
	return t
}

// multiply multiplies slab by slab.
func (t *tileProduct) multiply() {
	slabTerms := tileSlabRow / tileRow * t.terms
	for i := 0; i < t.m; i += tileSlabRows {
		for k := 0; k < t.k; k += slabTerms {
			t.part(i, k, min(slabTerms, t.k-k))
		}
	}
}

// part multiplies the slab at row i and term k by all panels.
func (t *tileProduct) part(i, k, terms int) {
	rows := min(tileSlabRows, t.m-i)
	t.steps = (terms + t.terms - 1) / t.terms
	t.how = 0
	if t.fresh && k == 0 {
		t.how = freshFlag
	}
	t.packRows(i, rows, k, terms)
	for j := 0; j < t.n; j += tileBlock {
		columns := min(tileBlock, t.n-j)
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
		t.run(whole, t.slab, c)
	}
	block := byteMatrix{t.block, 4 * tileBlock, 4}
	for i := whole * tileBlock; i < rows; i += tileBlock {
		a := unsafe.Add(t.slab, i*t.steps*tileRow)
		part := c.at(i, 0)
		height := min(tileBlock, rows-i)
		if t.how&freshFlag == 0 {
			copyLanes(block, part, height, columns)
		}
		t.run(1, a, block)
		copyLanes(part, block, height, columns)
	}
}

// run calls the kernel for blocks of rows of the slab from a on.
func (t *tileProduct) run(blocks int, a unsafe.Pointer, c byteMatrix) {
	t.kernel(
		&tileConfig[0], blocks, t.steps,
		(*byte)(a), (*byte)(t.panel),
		c.first(), c.row, t.how,
	)
}

// copyLanes copies rows of elements of 32 bits.
func copyLanes(to, from byteMatrix, rows, columns int) {
	for i := range rows {
		t := to.at(i, 0).first()
		f := from.at(i, 0).first()
		copy(
			unsafe.Slice(t, 4*columns),
			unsafe.Slice(f, 4*columns),
		)
	}
}

// packRows packs rows of a: for each block of 32 rows and step the tile of the first 16
// and that of the others.
func (t *tileProduct) packRows(i, rows, k, terms int) {
	to := t.slab
	for block := 0; block < rows; block += tileBlock {
		for term := 0; term < terms; term += t.terms {
			to = t.packPair(to, tilePart{
				t.a,
				i + block, k + term,
				rows - block, terms - term,
			}, false)
		}
	}
}

// packColumns packs columns of b: for each step the tile of the first 16 and that of the
// others.
func (t *tileProduct) packColumns(j, columns, k, terms int) {
	to := t.panel
	b := t.b.transposed()
	for term := 0; term < terms; term += t.terms {
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
func (t *tileProduct) packPair(to unsafe.Pointer, x tilePart, turned bool) unsafe.Pointer {
	for range 2 {
		t.pack(to, x, turned)
		to = unsafe.Add(to, tileBytes)
		x.lane += tileLanes
		x.lanes -= tileLanes
	}
	return to
}

// pack makes a tile, in rows of terms or turned; what is less than 16 lanes or a row of
// terms is filled with zeros. Whole tiles are packed as they lie, and transposed where
// that is not what is asked for.
func (t *tileProduct) pack(to unsafe.Pointer, x tilePart, turned bool) {
	if x.lanes <= 0 {
		clear((*[tileBytes]byte)(to)[:])
		return
	}
	from := x.of.at(x.lane, x.term)
	terms := from.col == 4
	whole := x.lanes >= tileLanes && x.left >= t.terms
	if !whole || !terms && from.row != 4 {
		t.fill(to, x, turned)
		return
	}
	made := to
	if terms == turned {
		made = t.turned
	}
	if terms {
		t.packTerms(
			tileLanes, (*byte)(made),
			from.first(), from.row,
		)
	} else {
		t.packLanes(
			tileRow/4, (*byte)(made),
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

// fill makes a tile element by element.
func (t *tileProduct) fill(to unsafe.Pointer, x tilePart, turned bool) {
	tile := (*[tileLanes][tileRow / 4]uint32)(to)
	clear(tile[:])
	for lane := range min(x.lanes, tileLanes) {
		for term := range min(x.left, t.terms) {
			unit := term / t.share
			word := &tile[lane][unit]
			if turned {
				word = &tile[unit][lane]
			}
			from := x.of.at(x.lane+lane, x.term+term)
			bits := t.narrow(*(*uint32)(from.p))
			*word |= bits << (32 / t.share * (term % t.share))
		}
	}
}
