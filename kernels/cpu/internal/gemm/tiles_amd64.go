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

	// The steps of rows of a slab at most, which are those of a kernel: sums are in tiles
	// until all terms of a slab are added, since rows of a result that are a power of two
	// apart have few places in the second cache to wait. Both operands pass through the
	// first cache, 4 KiB a step, and the second gives them as fast as they are multiplied.
	tileSlabSteps = 64
	// Of few rows sums are small: slabs have fewer steps, at least so many, where panels of all
	// columns fit with them, so that rows of b are read as a whole.
	tileFewRows  = 2 * tileBlock
	tileFewSteps = 16
	// Rows that pass panels, in bytes: they are read from the third cache or memory while
	// those before are multiplied. Fewer rows of c are stored in longer runs.
	tileChunk = 32 << 10
	// The steps of rows of b that are packed for all panels before the next ones: runs of
	// memory are as long as the panels together are wide.
	tilePacked = 2
)

// A tileKernel adds blocks of 32 rows of a, or one block of as many as the configuration
// says, so many steps of 64 bytes of a row, by panels of b, next bytes apart, to 32 columns of c
// each, or stores the product. In each step it prefetches what fetch, a tileFetch, says.
type tileKernel func(
	config *byte,
	panels, blocks, steps int,
	a *byte,
	ars int,
	b *byte,
	next int,
	c *byte,
	crs int,
	fetch *byte,
	how int,
)

// A tileFetch is what a kernel prefetches in each step to the second cache, where stores and
// loads of tiles would wait for the memory: so many rows of 32 columns of c, next bytes
// behind the block at hand, row bytes apart; and so many lines from ahead on, step bytes apart,
// with turn bytes more after each step, and some after each panel.
type tileFetch struct {
	rows, next, row int
	lines           int
	ahead           uintptr
	step, turn      int
	panel           int
}

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

// A tileBlocking divides a product: rows and steps of a slab of a, and columns of the panels
// that are packed together, of as many steps. Either a slab of all rows stays in the second
// cache while panels pass, or, standing, panels do while slabs of some rows pass: where all
// panels fit, too, if c is large, since rows of it are stored in longer runs then.
type tileBlocking struct {
	rows, steps, columns int
	standing             bool
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
	held := heldPanels(c) / panelStep // steps of panels
	if m <= tileFewRows {
		panels := (n + tileBlock - 1) / tileBlock
		few := max(tileFewSteps, held/panels)
		most = min(most, few)
	}
	b.steps = evenParts(f.stepsOf(k), most, 1)
	most = max(1, held/b.steps) * tileBlock
	large := 4*m*n >= heldPanels(c)
	b.standing = n <= most && large ||
		m > slabRows(c, b.steps)
	b.rows = evenParts(m, m, tileBlock)
	if b.standing {
		row := b.steps * tileRow
		blocks := tileChunk / row / tileBlock
		some := max(1, blocks) * tileBlock
		b.rows = min(b.rows, some)
	}
	b.columns = evenParts(n, most, tileBlock)
	return b
}

// heldPanels is the bytes of panels that stay in the second cache while slabs pass, or pass a
// slab together.
func heldPanels(c Caches) int { return c.Filled().Second / 2 }

// parts are the bytes of a slab, of panels, and of lanes before they are transposed.
func (b tileBlocking) parts() (slab, panels, turned int) {
	slab = b.rows * slabRow(b.steps)
	panel := b.steps * panelStep
	panels = b.columns / tileBlock * panel
	return slab, panels, panel + tileBlock*slabPadding
}

// scratch is the elements of 32 bits that a product needs, and any of fewer rows, columns or
// terms.
func (f *tileFormat) scratch(c Caches, m, n, k int) int {
	if m <= 0 || n <= 0 || k <= 0 {
		return 0
	}
	steps := min(f.stepsOf(k), tileSlabSteps)
	// Slabs that stay, and those that pass, which are of any number of steps.
	slab := max(c.Filled().slab(), 2*tileChunk, tileBlock*slabRow(steps))
	slab = min(slab, evenParts(m, m, tileBlock)*slabRow(steps))
	panel := steps * panelStep
	panels := panel * ((n + tileBlock - 1) / tileBlock)
	panels = min(panels, heldPanels(c)+panel)
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
	fetch                 tileFetch
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
	slab, panels, turned := t.parts()
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

// multiply multiplies slab by slab, or panels by panels.
func (t *tileProduct) multiply() {
	terms := t.steps * tileLanes * t.share
	if t.standing {
		for j := 0; j < t.n; j += t.columns {
			for k := 0; k < t.k; k += terms {
				t.passSlabs(j, k, min(terms, t.k-k))
			}
		}
		return
	}
	for k := 0; k < t.k; k += terms {
		t.passPanels(k, min(terms, t.k-k))
	}
}

// passPanels multiplies terms of all rows by all columns.
func (t *tileProduct) passPanels(k, terms int) {
	slab := t.slabOf(0, t.m, k, terms)
	for j := 0; j < t.n; j += t.columns {
		part := tilePart{
			j:       j,
			k:       k,
			rows:    t.m,
			columns: min(t.columns, t.n-j),
			terms:   terms,
		}
		t.packPanels(part)
		t.part(part, slab)
	}
}

// passSlabs multiplies terms of all rows by the panels from column j on.
func (t *tileProduct) passSlabs(j, k, terms int) {
	part := tilePart{
		j:       j,
		k:       k,
		columns: min(t.columns, t.n-j),
		terms:   terms,
	}
	t.packPanels(part)
	for i := 0; i < t.m; i += t.rows {
		part.i = i
		part.rows = min(t.rows, t.m-i)
		slab := t.slabOf(i, part.rows, k, terms)
		t.part(part, slab)
	}
}

// A tilePart is rows of a and columns of b, from i and j on, and terms of them from k on.
type tilePart struct {
	i, j, k, rows, columns, terms int
}

// part multiplies a slab by panels.
func (t *tileProduct) part(p tilePart, slab byteMatrix) {
	steps := t.stepsOf(p.terms)
	t.how = 0
	if t.fresh && p.k == 0 {
		t.how = freshFlag
	}
	panel := t.panels
	for at := 0; at < p.columns; {
		// The last panel is another turn: what follows it is elsewhere.
		panels := max(1, (p.columns-1)/tileBlock-at/tileBlock)
		width := min(tileBlock, p.columns-at)
		t.fetch = t.fetchOf(p, at, steps)
		x := tileRun{
			c:      t.c.at(p.i, p.j+at),
			a:      slab,
			panel:  panel,
			panels: panels,
			steps:  steps,
		}
		t.blocks(x, p.rows, width)
		panel = unsafe.Add(panel, panels*t.steps*panelStep)
		at += panels * tileBlock
	}
}

// fetchOf is what is fetched while a slab is multiplied by the panel of the columns from at on:
// the block of c that is stored next, or after those of this panel, and a part of the next slab
// where that is read as it lies.
func (t *tileProduct) fetchOf(p tilePart, at, steps int) (f tileFetch) {
	f.row = t.c.row
	next := p.i + p.rows // the rows of the next slab
	f.rows = (tileBlock + steps - 1) / steps
	behind := at + tileBlock
	inside := behind < p.columns
	if !t.standing {
		inside = p.j+behind < t.n
	}
	switch {
	case inside:
		f.next = panelRow
	case next < t.m:
		f.next = p.rows*t.c.row - 4*at
	default:
		f.rows = 0
	}
	if t.windows.Windows == nil &&
		t.readsRows(p.terms) {
		t.fetchSlab(&f, p, at, steps)
	}
	return f
}

// fetchSlab adds a part of the next slab to what is fetched: each panel's part has as many rows.
// Where slabs are one block each step fetches a line of some rows, else lines in the order of
// memory.
func (t *tileProduct) fetchSlab(f *tileFetch, p tilePart, at, steps int) {
	next := p.i + p.rows
	rows := min(t.rows, t.m-next)
	panels := (p.columns + tileBlock - 1) / tileBlock
	some := (rows + panels - 1) / panels
	first := next + at/tileBlock*some
	blocks := (p.rows + tileBlock - 1) / tileBlock
	together := t.a.row == steps*tileRow
	if some <= 0 || first >= t.m ||
		blocks > 1 && !together {
		return
	}
	f.ahead = uintptr(t.a.at(first, p.k).p)
	f.lines = some
	f.step = t.a.row
	f.turn = tileRow - some*t.a.row
	if blocks > 1 {
		f.lines = (some + blocks - 1) / blocks
		f.step = tileRow
		f.turn = 0
	}
	all := max(1, p.rows/tileBlock) * steps
	f.panel = some*t.a.row - all*(f.lines*f.step+f.turn)
}

// A tileRun is what a kernel multiplies: rows of a slab, and steps of panels from one on.
type tileRun struct {
	c, a          byteMatrix
	panel         unsafe.Pointer
	panels, steps int
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
			t.fetch.rows = 0 // they are behind c
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
		&tileConfigs[rows][0],
		x.panels, blocks, x.steps,
		x.a.first(), x.a.row,
		(*byte)(x.panel), t.steps*panelStep,
		x.c.first(), x.c.row,
		(*byte)(unsafe.Pointer(&t.fetch)), t.how,
	)
	t.fetch.lines = 0 // the rows behind fetch none of the next slab
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

// packPanels packs the panels of a part. Rows of b that lie together are packed for all panels
// before those behind them.
func (t *tileProduct) packPanels(p tilePart) {
	steps := t.stepsOf(p.terms)
	if t.b.col == t.sizes[1] {
		steps = tilePacked
	}
	terms := steps * tileLanes * t.share
	for k := 0; k < p.terms; k += terms {
		begin := t.stepsOf(k) * panelStep
		to := unsafe.Add(t.panels, begin)
		some := min(terms, p.terms-k)
		for at := 0; at < p.columns; at += tileBlock {
			width := min(tileBlock, p.columns-at)
			from := t.b.at(p.k+k, p.j+at)
			t.packPanel(to, from, some, width)
			to = unsafe.Add(to, t.steps*panelStep)
		}
	}
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
