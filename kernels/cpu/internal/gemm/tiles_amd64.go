//go:build !noasm

package gemm

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// Products of bytes, of bf16 and of f16 on AMX. A tile is 16 rows of 64 bytes: of a, rows of
// terms; of b, lanes of 32 bits of terms of 16 columns, four bytes or two halves. One kernel
// multiplies blocks of 32 rows by panels of 32 columns, two by two tiles: each of four loads
// serves two products. Rows of a whose terms are contiguous are read as they lie; panels
// are packed, once for all rows of a.
const (
	tileLanes = 16 // rows of a tile, and columns of a panel's tiles
	tileRow   = 64 // bytes
	tileBlock = 2 * tileLanes
	panelRow  = 4 * tileBlock        // bytes of a row of a panel
	panelStep = tileLanes * panelRow // bytes of a step

	tileBlockBytes = 4 * tileBlock * tileBlock

	// The steps of rows of a slab at most, and of a kernel. Both operands pass through
	// the first cache, 2 KiB a step and block of rows; sums wait in the second cache
	// between the parts of a slab's terms.
	tileSlabSteps = 64
	tileDepth     = 16
	// Panels that are kept for the next slab: 4 MiB stay in the third cache.
	tilePanels = 4 << 20
)

// A tileKernel adds blocks of 32 rows of a, or one block of as many as the configuration
// says, so many steps of 64 bytes of a row, by a panel of b to 32 columns of c, or stores
// the product. In each step it prefetches lines from ahead on, step bytes apart.
type tileKernel func(
	config *byte,
	blocks, steps int,
	a *byte,
	ars int,
	b, c *byte,
	crs int,
	ahead uintptr,
	step, how int,
)

// tileKernels are those of blocks of up to 16 rows and of up to 32.
type tileKernels [2]tileKernel

// A tileFormat is how elements become units of 32 bits of a tile.
type tileFormat struct {
	share int // elements of a unit
	// Packs terms of lanes, which are the rows of from, in elements of size bytes: to rows
	// of units where terms are contiguous, to columns where lanes are.
	lanes func(to, from byteMatrix, lanes, terms, size int)
	// Packs rows of 32 contiguous columns of elements that lie as in a tile, as many as
	// make whole units, or nil.
	panel func(units int, to, from byteMatrix)
}

// tileConfigs are what LDTILECFG reads, by the rows of a block: palette 1, tiles of rows of
// 64 bytes, of c, a and b (Intel SDM, volume 2).
var tileConfigs = func() (all [tileBlock + 1][64]byte) {
	for rows := range all {
		c := &all[rows]
		c[0] = 1
		first := min(rows, tileLanes)
		counts := [8]int{
			first, first, rows - first, rows - first, // c
			first, rows - first, // a
			tileLanes, tileLanes, // b
		}
		for tile, n := range counts {
			if n > 0 {
				c[16+2*tile] = tileRow
				c[48+tile] = byte(n)
			}
		}
	}
	return all
}()

// A tileBlocking divides a product: slabs of some rows and steps of terms, by panels of as
// many steps. Several slabs use the same panels again.
type tileBlocking struct {
	rows, steps, columns int
}

// stepsOf is the steps of so many terms.
func (f *tileFormat) stepsOf(terms int) int {
	unit := f.share * tileLanes
	return (terms + unit - 1) / unit
}

// slabRows is the rows of slabs of so many steps that stay in the second cache, at most.
func slabRows(c Caches, steps int) int {
	rows := c.Filled().slab() / slabRow(steps)
	return max(1, rows/tileBlock) * tileBlock
}

// slabRow is the bytes between rows of a slab.
func slabRow(steps int) int { return steps*tileRow + slabPadding }

// blocking is the blocking of a product, as even as can be.
func (f *tileFormat) blocking(c Caches, m, n, k int, w *Windows) (b tileBlocking) {
	most := tileSlabSteps
	if w != nil { // a slab has a limited number of runs
		runs := (maxRuns - 2) * w.Terms
		most = min(most, runs/f.share/tileLanes)
	}
	b.steps = evenParts(f.stepsOf(k), most, 1)
	b.rows = evenParts(m, slabRows(c, b.steps), tileBlock)
	b.columns = n
	if m > b.rows {
		kept := max(1, tilePanels/(b.steps*panelStep))
		b.columns = evenParts(n, kept*tileBlock, tileBlock)
	}
	return b
}

// parts are the bytes of a slab, of panels, and of lanes before they are transposed.
func (b tileBlocking) parts(m int) (slab, panels, turned int) {
	slab = b.rows * slabRow(b.steps)
	panels = b.steps * panelStep
	turned = panels + tileBlock*slabPadding
	if m > b.rows {
		panels *= (b.columns + tileBlock - 1) / tileBlock
	}
	return slab, panels, turned
}

// scratch is the elements of 32 bits that a product needs, and any of fewer rows, columns or
// terms.
func (f *tileFormat) scratch(c Caches, m, n, k int) int {
	if m <= 0 || n <= 0 || k <= 0 {
		return 0
	}
	steps := min(f.stepsOf(k), tileSlabSteps)
	rows := slabRows(c, steps)
	slab := max(c.Filled().slab(), tileBlock*slabRow(tileSlabSteps))
	slab = min(slab, evenParts(m, m, tileBlock)*slabRow(steps))
	panel := steps * panelStep
	panels := panel
	if m > rows {
		panels *= (n + tileBlock - 1) / tileBlock
		panels = min(panels, tilePanels+panel)
	}
	turned := panel + tileBlock*slabPadding
	return (tileRow + tileBlockBytes + slab + panels + turned) / 4
}

// A tileProduct is a product while it is computed.
type tileProduct struct {
	*tileFormat
	tileBlocking
	kernels tileKernels
	a, b, c byteMatrix
	sizes   [2]int // bytes of the elements of a and b
	m, n, k int
	fresh   bool
	windows windowSource
	// Scratch.
	block, panels, turned unsafe.Pointer
	slab                  byteMatrix
	how                   int // whether c holds nothing yet
}

// newTileProduct lays out the scratch of a product.
func newTileProduct[T Element](
	f *tileFormat, kernels tileKernels,
	p Product[T], scratch []T,
) tileProduct {
	operands, sizes := operandsOf(p)
	t := tileProduct{
		tileFormat:   f,
		tileBlocking: f.blocking(p.Caches, p.M, p.N, p.K, p.Windows),
		kernels:      kernels,
		a:            operands[0],
		b:            operands[1],
		c:            byteMatrixOf(p.C),
		sizes:        sizes,
		m:            p.M,
		n:            p.N,
		k:            p.K,
		fresh:        p.Fresh,
		windows:      windowsOf(p),
	}
	slab, panels, turned := t.parts(p.M)
	all := tileRow + tileBlockBytes + slab + panels + turned
	begin := unsafe.Pointer(&scratch[:all/4][0])
	// Rows of tiles are lines of caches.
	t.block = unsafe.Add(begin, -uintptr(begin)%tileRow)
	at := unsafe.Add(t.block, tileBlockBytes)
	t.slab = byteMatrix{at, slabRow(t.steps), 4}
	t.panels = unsafe.Add(at, slab)
	t.turned = unsafe.Add(t.panels, panels)
	return t
}

// multiply multiplies slab by slab.
func (t *tileProduct) multiply() {
	terms := t.steps * tileLanes * t.share
	for j := 0; j < t.n; j += t.columns {
		for k := 0; k < t.k; k += terms {
			for i := 0; i < t.m; i += t.rows {
				t.part(i, j, k, min(terms, t.k-k))
			}
		}
	}
}

// part multiplies the slab at row i and term k by the panels from column j on. All terms of a
// panel follow each other, so that its sums stay in the second cache.
func (t *tileProduct) part(i, j, k, terms int) {
	rows := min(t.rows, t.m-i)
	columns := min(t.columns, t.n-j)
	slab := t.slabOf(i, rows, k, terms)
	steps := t.stepsOf(terms)
	panel := t.panels
	for at := 0; at < columns; at += tileBlock {
		width := min(tileBlock, columns-at)
		if at > 0 && t.m > t.rows {
			panel = unsafe.Add(panel, t.steps*panelStep)
		}
		if i == 0 || t.m <= t.rows {
			t.packPanel(panel, t.b.at(k, j+at), terms, width)
		}
		for s := 0; s < steps; s += tileDepth {
			t.how = 0
			if t.fresh && k+s == 0 {
				t.how = freshFlag
			}
			t.blocks(tileRun{
				t.c.at(i, j+at),
				byteMatrix{unsafe.Add(slab.p, s*tileRow), slab.row, 4},
				unsafe.Add(panel, s*panelStep),
				min(tileDepth, steps-s),
			}, rows, width)
		}
	}
}

// A tileRun is what a kernel multiplies: rows of a slab, and steps of a panel.
type tileRun struct {
	c, a  byteMatrix
	panel unsafe.Pointer
	steps int
}

// blocks multiplies rows by a panel of so many columns. Blocks that leave c are made in
// scratch.
func (t *tileProduct) blocks(x tileRun, rows, columns int) {
	for rows > 0 {
		blocks, each := max(1, rows/tileBlock), min(tileBlock, rows)
		if columns == tileBlock {
			t.run(x, blocks, each)
		} else {
			blocks = 1
			part := x
			part.c = byteMatrix{t.block, panelRow, 4}
			if t.how&freshFlag == 0 {
				copyLanes(part.c, x.c, each, columns)
			}
			t.run(part, 1, each)
			copyLanes(x.c, part.c, each, columns)
		}
		if rows -= blocks * each; rows > 0 {
			x.a = x.a.at(blocks*each, 0)
			x.c = x.c.at(blocks*each, 0)
		}
	}
}

// run calls the kernel for blocks of so many rows.
func (t *tileProduct) run(x tileRun, blocks, rows int) {
	t.kernels[(rows-1)/tileLanes](
		&tileConfigs[rows][0], blocks, x.steps,
		x.a.first(), x.a.row,
		(*byte)(x.panel),
		x.c.first(), x.c.row,
		uintptr(x.panel), 0, t.how,
	)
}

// copyLanes copies rows of elements of 32 bits.
func copyLanes(to, from byteMatrix, rows, columns int) {
	for i := range rows {
		copyBytes(
			to.at(i, 0).p,
			from.at(i, 0).p,
			4*columns,
		)
	}
}

// slabOf is rows and terms of a, in place or packed.
func (t *tileProduct) slabOf(i, rows, k, terms int) byteMatrix {
	if t.windows.Windows != nil {
		part := windowPart{i, rows, k, terms}
		t.windows.pack(t.slab, part, &keptSigns)
		t.clearBehind(rows, terms, 1)
		return t.slab
	}
	from := t.a.at(i, k)
	size := t.sizes[0]
	if t.readsRows(terms) {
		return from
	}
	if from.row != size || from.col == size {
		t.lanes(t.slab, from, rows, terms, size)
		t.clearBehind(rows, terms, t.share)
		return t.slab
	}
	// Lanes are contiguous: units of a block of rows are transposed.
	units := (terms + t.share - 1) / t.share
	for l := 0; l < rows; l += tileBlock {
		lanes := min(tileBlock, rows-l)
		turned := byteMatrix{t.turned, 4, panelRow}
		t.lanes(turned, from.at(l, 0), lanes, terms, size)
		f32Narrow.transposeFrom(
			t.slab.at(l, 0), turned,
			lanes, units,
		)
	}
	t.clearBehind(rows, terms, t.share)
	return t.slab
}

// clearBehind makes zeros of what the last steps of rows of a slab have behind the terms, of
// which a unit of 32 bits, or of a byte, has some.
func (t *tileProduct) clearBehind(rows, terms, share int) {
	bytes := (terms + share - 1) / share * share * 4 / t.share
	row := (bytes + tileRow - 1) / tileRow * tileRow
	if bytes == row {
		return
	}
	for i := range rows {
		at := unsafe.Add(t.slab.at(i, 0).p, bytes)
		clear(unsafe.Slice((*byte)(at), row-bytes))
	}
}

// aliasedRow is the distance of rows that compete for the same lines of the caches.
const aliasedRow = 4096

// readsRows reports whether slabs are read as they lie: whole steps of rows of contiguous
// terms, which are lines of the caches and do not compete for them.
func (t *tileProduct) readsRows(terms int) bool {
	size := t.sizes[0]
	lies := size*t.share == 4 && t.a.col == size &&
		terms*size%tileRow == 0
	lines := (uintptr(t.a.p)|uintptr(t.a.row))%tileRow == 0
	few := t.n <= 2*tileBlock // a copy serves two panels at most
	return lies && (few || lines && t.a.row%aliasedRow != 0)
}

// packPanel packs terms of columns of b. What lanes behind the columns hold is in sums that
// nobody reads.
func (t *tileProduct) packPanel(to unsafe.Pointer, b byteMatrix, terms, columns int) {
	panel := byteMatrix{to, panelRow, 4}
	size := t.sizes[1]
	units := (terms + t.share - 1) / t.share
	lies := size*t.share == 4
	switch {
	case lies && b.col == size && columns == tileBlock && t.panel != nil:
		whole := terms / t.share
		t.panel(whole, panel, b)
		if whole < units {
			t.lanes(
				panel.at(whole, 0).transposed(),
				b.at(whole*t.share, 0).transposed(),
				columns, terms-whole*t.share, size,
			)
		}
	case lies && b.row == size && terms%t.share == 0:
		// Rows of columns are units already.
		turned := byteMatrix{b.p, 4, b.col}
		f32Narrow.transposeFrom(panel, turned, units, columns)
	case b.row == size:
		turned := byteMatrix{t.turned, slabRow(t.steps), 4}
		t.lanes(turned, b.transposed(), columns, terms, size)
		f32Narrow.transposeFrom(
			panel, turned.transposed(),
			units, columns,
		)
	default:
		t.lanes(
			panel.transposed(), b.transposed(),
			columns, terms, size,
		)
	}
	row := tileLanes // units of a step
	if behind := -units & (row - 1); behind > 0 {
		at := unsafe.Add(to, units*panelRow)
		clear(unsafe.Slice((*byte)(at), behind*panelRow))
	}
}

// orderOfBytes and orderOfWords are the arguments of packers of panels.
func orderOfWords() *byte { return (*byte)(unsafe.Pointer(&permutations.words)) }

// bytePanel packs rows of 32 contiguous columns of bytes.
func bytePanel(quads int, to, from byteMatrix) {
	var sums [tileBlock]int32 // of whatever signs, which nobody reads
	bytePanelsSigned1(
		quads, to.first(), 0,
		from.first(), from.row,
		(*byte)(unsafe.Pointer(&sums)),
		&permutations.bytes[0],
	)
}

// halfPanel packs rows of 32 contiguous columns of halves.
func halfPanel(pairs int, to, from byteMatrix) {
	wordPanel(
		pairs, to.first(),
		from.first(), from.row,
		orderOfWords(),
	)
}

// panelIf is a packer of panels where the processor has its instructions; every one with
// AMX does, but tests run elsewhere.
func panelIf(
	has bool, panel func(units int, to, from byteMatrix),
) func(units int, to, from byteMatrix) {
	if has {
		return panel
	}
	return nil
}

// byteTiles have bytes.
var byteTiles = tileFormat{
	share: 4,
	lanes: func(to, from byteMatrix, lanes, terms, size int) {
		packQuadLanes(to, from, lanes, terms, &keptSigns, size)
	},
	panel: panelIf(cpu.X86.HasAVX512VBMI && cpu.X86.HasAVX512VNNI, bytePanel),
}

// tilesOfPairs have what a format of pairs packs.
func tilesOfPairs(f *pairFormat) *tileFormat {
	return &tileFormat{
		share: 2,
		lanes: f.lanes,
		panel: panelIf(cpu.X86.HasAVX512BW, halfPanel),
	}
}

// lanes packs terms of lanes as tileFormat says.
func (f *pairFormat) lanes(to, from byteMatrix, lanes, terms, size int) {
	if from.col == size && to.col == 4 {
		f.interleaveRows(to, from, lanes, terms, size)
		return
	}
	done, whole := 0, terms/2
	if from.row == size && to.row == 4 {
		rows := f.rows
		if size == 2 {
			rows = wordRows
		}
		for done = 0; done+pairColumns <= lanes; done += pairColumns {
			t, x := to.at(done, 0), from.at(done, 0)
			rows(whole, t.first(), to.col, x.first(), from.col)
			for l := 0; l < pairColumns && terms%2 == 1; l++ {
				f.interleaveRest(t.at(l, whole), x.at(l, terms-1), 0, 1, size)
			}
		}
	}
	for ; done < lanes; done++ {
		f.interleaveRest(to.at(done, 0), from.at(done, 0), 0, terms, size)
	}
}
