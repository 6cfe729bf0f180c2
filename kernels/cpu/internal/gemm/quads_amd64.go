//go:build !noasm

package gemm

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// Products of bytes in vectors, where the processor has VPDPBUSD: AVX512-VNNI, or AVX-VNNI
// for 256 bits. It multiplies unsigned bytes by signed ones, four terms a lane of 32 bits.
// Where both operands are signed or both are not, the sign bit of a's elements is turned
// over as they are packed, which adds 128 to each or subtracts it:
//
//	Σ a·b = Σ (a + 128)·b − 128·Σ b	signed
//	Σ a·b = Σ (a − 128)·b + 128·Σ b	unsigned
//
// All is modulo 2³², so that results are those of products of 32 bits, whatever overflows.
const (
	quadSlabRows = 384 // rows of a slab of a at most, in blocks of six
	quadBlock    = 128 // quads of terms of a slab (192 KiB) and of a panel (16 KiB)
	// The same where panels may be larger than the first cache (Caches.Panel).
	deepQuadBlock = 256
	quadGroup     = 16 // the columns, or rows, that quadRows and byteRows pack
	quadPanels    = 2  // panels that are packed together: a line of 64 bytes of b
)

// A quadKernel adds the row start and the product of a, some blocks of rows of k quads,
// and b, k rows of quads of some columns, to c, whose elements count as zeros with
// freshFlag. Strides are bytes. Every four quads it prefetches the line at ahead and
// advances by step.
type quadKernel func(
	blocks, k int,
	a *byte,
	ars, acs int,
	b *byte,
	brs int,
	start *byte,
	c *byte,
	crs int,
	mask *byte,
	ahead uintptr,
	step, how int,
)

// A bytePacker packs quads of rows of contiguous bytes to panels of 32 columns, and adds up
// the columns. order is permutations.bytes.
type bytePacker func(
	quads int,
	to *byte,
	panel int,
	from *byte,
	fromStride int,
	sums, order *byte,
)

// A quadFamily is the kernels by rows, as in a family, for a signed b and an unsigned one.
// Elements of a have the other sign.
type quadFamily struct {
	full, masked [2][6]quadKernel
	lanes        int
	masks        func(n int) *byte
	pack         *[2][quadPanels]bytePacker // By as many panels less one, or nil.
}

// quadsWide has vectors of 512 bits.
var quadsWide = quadFamily{
	full:   [2][6]quadKernel{multiplyQuadsUS, multiplyQuadsSU},
	masked: [2][6]quadKernel{multiplyQuadsUSMasked, multiplyQuadsSUMasked},
	lanes:  16,
	masks:  wideMask,
}

// quadsPacked is quadsWide for processors with AVX512_VBMI, which pack panels by one
// permutation a vector.
var quadsPacked = func() quadFamily {
	f := quadsWide
	f.pack = &[2][quadPanels]bytePacker{
		{bytePanelsSigned1, bytePanelsSigned2},
		{bytePanelsUnsigned1, bytePanelsUnsigned2},
	}
	return f
}()

// quadsNarrow has vectors of 256 bits.
var quadsNarrow = quadFamily{
	full:   [2][6]quadKernel{multiplyQuadsUSNarrow, multiplyQuadsSUNarrow},
	masked: [2][6]quadKernel{multiplyQuadsUSNarrowMasked, multiplyQuadsSUNarrowMasked},
	lanes:  8,
	masks:  narrowMask32,
}

// quads is the family of this processor, nil where it has none.
var quads = chooseQuads(
	cpu.X86.HasAVX2 && cpu.X86.HasFMA,
	cpu.X86.HasAVX512F && cpu.X86.HasAVX512VNNI,
	cpu.X86.HasAVX512VBMI,
	cpu.X86.HasAVXVNNI,
)

// chooseQuads is the widest family of a processor.
func chooseQuads(avx2, wide, bytes, narrow bool) *quadFamily {
	switch {
	case !avx2:
		return nil
	case wide && bytes:
		return &quadsPacked
	case wide:
		return &quadsWide
	case narrow:
		return &quadsNarrow
	}
	return nil
}

// scratch is the elements of a slab, of panels, of one before it is transposed, and the rows
// that sums begin with.
func (f *quadFamily) scratch() int {
	if f == nil {
		return 0
	}
	width := 2 * f.lanes
	panels := (quadPanels + 1) * deepQuadBlock * width
	starts := quadPanels * width
	return quadSlabRows*deepQuadBlock + panels + starts
}

// block is the quads of a slab and of a panel of a product.
func (f *quadFamily) block(p Product[int32]) int {
	const line = 64 // bytes of a vector of 512 bits
	if p.Caches.Panel > 0 && 4*f.lanes == line && p.Windows == nil {
		return deepQuadBlock
	}
	return quadBlock
}

// A quadProduct is a product while it is computed.
type quadProduct struct {
	*quadFamily
	a, b, c byteMatrix
	sizes   [2]int // bytes of the elements of a and b
	block   int    // quads of a panel at most
	terms   int    // of a slab
	// Scratch: panels follow each other, and so do the rows that their sums begin with.
	slab, panels, turned byteMatrix
	starts               []int32
	unsigned             int         // 1 where b is unsigned
	flip                 [4]byte     // of quads of a
	factor               int32       // of the sums of b's columns
	k, how               int         // quads of the slab, and whether c holds nothing yet
	prefetches           [2]prefetch // what panels are packed from next, and the slab
	windows              windowSource
}

// turnedSigns turns over the sign bits of four bytes; keptSigns does not.
var (
	turnedSigns = [4]byte{0x80, 0x80, 0x80, 0x80}
	keptSigns   [4]byte
)

// multiply multiplies slab by slab.
func (f *quadFamily) multiply(unsigned [2]bool, p Product[int32], scratch []int32) {
	width := 2 * f.lanes
	operands, sizes := operandsOf(p)
	scratch = scratch[:f.scratch()]
	block := f.block(p)
	panels := scratch[quadSlabRows*block:]
	turned := panels[quadPanels*block*width:]
	q := quadProduct{
		quadFamily: f,
		a:          operands[0],
		b:          operands[1],
		sizes:      sizes,
		c:          byteMatrixOf(p.C),
		block:      block,
		terms:      evenParts(p.K, 4*block, 32),
		slab:       byteMatrixOf(Dense(scratch, block)),
		panels:     byteMatrixOf(Dense(panels, width)),
		turned:     byteMatrixOf(Dense(turned, block)),
		starts:     turned[block*width:],
		windows:    windowsOf(p),
	}
	if unsigned[1] {
		q.unsigned = 1
	}
	if unsigned[0] == unsigned[1] {
		q.flip, q.factor = turnedSigns, -128
		if unsigned[0] {
			q.factor = 128
		}
	}
	if q.a.col != sizes[0] && q.a.row == sizes[0] {
		// Rows of a are contiguous, and so are those of each quad.
		q.slab = byteMatrix{q.slab.p, 4, 4 * quadSlabRows}
	}
	rows := evenParts(p.M, quadSlabRows, 6)
	for i := 0; i < p.M; i += rows {
		for k := 0; k < p.K; k += q.terms {
			if q.windows.Windows == nil {
				q.prefetches[1] = nextPart(q.a, i, k, rows, q.terms, p.M, p.K, sizes[0])
			}
			q.part(p, i, k, min(rows, p.M-i))
		}
	}
}

// part multiplies the slab of so many rows at row i and term k by all panels.
func (q *quadProduct) part(p Product[int32], i, k, rows int) {
	terms := min(q.terms, p.K-k)
	q.k = (terms + 3) / 4
	q.how = 0
	if p.Fresh && k == 0 {
		q.how = freshFlag
	}
	part := windowPart{i, rows, k, terms}
	q.packSlab(part)
	each := quadPanels * 2 * q.lanes
	for j := 0; j < p.N; j += each {
		columns := min(each, p.N-j)
		b, c := q.b.at(k, j), q.c.at(i, j)
		q.packPanels(b, columns, terms)
		q.prefetches[0] = q.nextPanels(p, k, j+each)
		q.multiplyPanels(c, rows, columns)
	}
}

// packSlab packs rows and terms of a.
func (q *quadProduct) packSlab(x windowPart) {
	if q.windows.Windows == nil {
		a := q.a.at(x.row, x.term)
		packQuadLanes(
			q.slab, a, x.rows, x.terms,
			&q.flip, q.sizes[0],
		)
		return
	}
	q.windows.pack(q.slab, x, &q.flip)
	more := x.terms % 4
	for l := range x.rows {
		end := q.slab.at(l, x.terms/4)
		endQuad(end.p, more, &q.flip)
	}
}

// nextPanels is the prefetch of what panels from column j on are packed from; behind the
// last column it is that of the next terms.
func (q *quadProduct) nextPanels(p Product[int32], k, j int) prefetch {
	if j >= p.N {
		j, k = 0, k+q.terms
	}
	if k >= p.K {
		return prefetch{}
	}
	terms := min(q.terms, p.K-k)
	columns := quadPanels * 2 * q.lanes
	columns = min(columns, p.N-j)
	b := q.b.at(k, j)
	return ofPart(b, terms, columns, q.sizes[1])
}

// A quadPanel is a packed panel and the row that its sums begin with.
type quadPanel struct {
	byteMatrix
	start []int32
}

// panel is panel number n.
func (q *quadProduct) panel(n int) quadPanel {
	width := 2 * q.lanes
	return quadPanel{
		q.panels.at(n*q.block, 0),
		q.starts[n*width:][:width],
	}
}

// multiplyPanels multiplies the slab by the panels of some columns.
func (q *quadProduct) multiplyPanels(c byteMatrix, rows, columns int) {
	width := 2 * q.lanes
	for n := 0; n*width < columns; n++ {
		at := n * width
		q.strip(
			c.at(0, at),
			q.panel(n), rows,
			min(width, columns-at),
		)
	}
}

// packPanels packs terms of columns of b, and makes the rows that sums begin with.
func (q *quadProduct) packPanels(b byteMatrix, columns, terms int) {
	width := 2 * q.lanes
	done := 0
	bytes := q.sizes[1] == 1 && b.col == 1
	if q.pack != nil && bytes && columns >= width {
		done = columns / width
		q.packBytes(b, done, terms)
	}
	for n := done; n*width < columns; n++ {
		at := n * width
		q.packPanel(
			q.panel(n),
			b.at(0, at),
			min(width, columns-at),
			terms,
		)
	}
}

// permutations are the indices by which VPERMT2B and VPERMT2W make the two vectors of a row
// of a panel: bytes of four rows in turn, of which either operand has two, and words of
// two. Four ones follow the bytes.
var permutations = func() (p struct {
	bytes [2*64 + 4]byte
	words [2 * 32]uint16
}) {
	for at := range 2 * 64 {
		column, row := at/4, at%4
		p.bytes[at] = byte(row*32 + column)
	}
	ones := p.bytes[2*64:]
	for at := range ones {
		ones[at] = 1
	}
	for at := range p.words {
		column, row := at/2, at%2
		p.words[at] = uint16(row*32 + column)
	}
	return p
}()

// packBytes packs so many whole panels of bytes. The sums are those of whole quads, to which
// the terms behind them are added.
func (q *quadProduct) packBytes(b byteMatrix, panels, terms int) {
	starts := q.starts[:panels*2*q.lanes]
	q.pack[q.unsigned][panels-1](
		terms/4, q.panels.first(),
		q.block*q.panels.row,
		b.first(), b.row,
		q.panel(0).startAt(0),
		&permutations.bytes[0],
	)
	whole := terms / 4 * 4
	for n := range panels {
		x := q.panel(n)
		from := b.at(0, n*2*q.lanes)
		fillQuads(
			x.transposed(), from.transposed(),
			2*q.lanes, whole, terms, &keptSigns,
		)
		for p := whole; p < terms; p++ {
			for j := range x.start {
				term := from.at(p, j)
				x.start[j] += q.value(term)
			}
		}
	}
	for j := range starts {
		starts[j] *= q.factor
	}
}

// value is the value of a byte of b.
func (q *quadProduct) value(x byteMatrix) int32 {
	if q.unsigned == 1 {
		return int32(*(*uint8)(x.p))
	}
	return int32(*(*int8)(x.p))
}

// packPanel packs terms of columns of b, and makes the row that sums begin with.
func (q *quadProduct) packPanel(x quadPanel, b byteMatrix, columns, terms int) {
	lanes := b.transposed()
	to := x.transposed()
	turns := b.row == q.sizes[1]
	if turns {
		to = q.turned
	}
	packQuadLanes(
		to, lanes, columns, terms,
		&keptSigns, q.sizes[1],
	)
	if turns {
		from := q.turned.transposed()
		f32Narrow.transposeFrom(
			x.byteMatrix, from, q.k, columns,
		)
	}
	clear(x.start)
	if q.factor != 0 {
		q.correct(x)
	}
}

// correct makes the multiples of the sums of the panel's columns. Columns that are not
// there have sums of whatever is in scratch, which nobody reads.
func (q *quadProduct) correct(x quadPanel) {
	flip := &turnedSigns
	bias := int32(4 * 128 * q.k)
	if q.unsigned == 1 {
		flip, bias = &keptSigns, 0
	}
	for j := 0; j < len(x.start); j += quadGroup {
		from := x.at(0, j)
		quadSums(
			q.k, x.startAt(j),
			from.first(), from.row,
			&flip[0],
		)
	}
	for j, sum := range x.start {
		x.start[j] = q.factor * (sum - bias)
	}
}

// startAt is the row that sums begin with, from column j on.
func (x quadPanel) startAt(j int) *byte {
	return (*byte)(unsafe.Pointer(&x.start[j]))
}

// packQuadLanes packs terms of the lanes of from, which are its rows of elements of size
// bytes, to quads: element l, p of the result has terms 4p to 4p+3 of lane l, zeros beyond
// the last, with the bits of flip turned over.
func packQuadLanes(to, from byteMatrix, lanes, terms int, flip *[4]byte, size int) {
	whole := terms / 4 * 4
	switch {
	case from.col == size && to.col == 4:
		packTurnsOf(to, from, lanes, terms, flip, size)
	case from.row == size && to.row == 4:
		grouped := lanes / quadGroup * quadGroup
		for l := 0; l < grouped; l += quadGroup {
			packGroup(
				terms/4,
				to.at(l, 0), from.at(l, 0),
				flip, size,
			)
		}
		fillQuads(to, from, grouped, whole, terms, flip)
		fillQuads(
			to.at(grouped, 0),
			from.at(grouped, 0),
			lanes-grouped, 0, terms, flip,
		)
	default:
		fillQuads(to, from, lanes, 0, terms, flip)
	}
}

// packTurnsOf packs lanes of contiguous terms, 32 a turn. What is left of a lane is a turn,
// too, where the next lane begins soon enough that its bytes are there to be read: the
// quads beyond are never read, and the last one is mended.
func packTurnsOf(
	to, from byteMatrix, lanes, terms int,
	flip *[4]byte, size int,
) {
	turns := terms / 32
	whole := 32 * turns
	read := (whole + 32 - terms) * size
	beyond := 0
	if whole < terms &&
		to.row >= whole+32 &&
		from.row >= read {
		beyond = lanes - 1
	}
	for l := range lanes {
		t := to.at(l, 0)
		f := from.at(l, 0)
		n := turns
		if l < beyond {
			n++
		}
		packTurns(
			n,
			t.first(),
			f.first(),
			flip, size,
		)
		if l < beyond {
			t = t.at(0, terms/4)
			endQuad(t.p, terms%4, flip)
		}
	}
	fillQuads(
		to.at(beyond, 0),
		from.at(beyond, 0),
		lanes-beyond, whole, terms,
		flip,
	)
}

// endQuad makes zeros of all but the first terms of a quad, with the bits of flip turned
// over; with no terms it is beyond the last.
func endQuad(quad unsafe.Pointer, terms int, flip *[4]byte) {
	if terms == 0 {
		return
	}
	x := (*uint32)(quad)
	turned := *(*uint32)(unsafe.Pointer(flip))
	kept := uint32(1)<<(8*terms) - 1
	*x &= kept
	*x |= turned &^ kept
}

// packTurns packs 32 contiguous terms a turn. (Calls of variables would allocate flip.)
func packTurns(turns int, to, from *byte, flip *[4]byte, size int) {
	if size == 1 {
		byteTerms(turns, to, from, &flip[0])
		return
	}
	quadTerms(turns, to, from, &flip[0])
}

// packGroup packs quads of a group of contiguous lanes.
func packGroup(quads int, to, from byteMatrix, flip *[4]byte, size int) {
	if size == 1 {
		byteRows(quads, to.first(), to.col, from.first(), from.col, &flip[0])
		return
	}
	quadRows(quads, to.first(), to.col, from.first(), from.col, &flip[0])
}

// fillQuads packs terms from … terms−1 of lanes, element by element, or four contiguous
// bytes at a time.
func fillQuads(to, from byteMatrix, lanes, begin, terms int, flip *[4]byte) {
	turned := *(*uint32)(unsafe.Pointer(flip))
	for l := range lanes {
		p := begin
		for ; from.col == 1 && p+4 <= terms; p += 4 {
			quad := *(*uint32)(from.at(l, p).p)
			*(*uint32)(to.at(l, p/4).p) = quad ^ turned
		}
		for ; p < terms; p += 4 {
			quad := *flip
			for k := range min(4, terms-p) {
				low := from.at(l, p+k)
				quad[k] ^= *low.first()
			}
			place := to.at(l, p/4).p
			*(*[4]byte)(place) = quad
		}
	}
}

// strip multiplies the slab by a panel, in blocks of rows as equal as can be.
func (q *quadProduct) strip(c byteMatrix, b quadPanel, rows, columns int) {
	each, more := dividedRows(rows)
	at := quadRun{c: c, b: b}
	q.blocks(at, more, each+1, columns)
	at = at.from(more * (each + 1))
	q.blocks(at, (rows-at.i)/each, each, columns)
}

// A quadRun is rows of the slab from i on, a panel from column j on, the result there, and
// what a kernel prefetches.
type quadRun struct {
	c     byteMatrix
	b     quadPanel
	i, j  int
	mask  *byte
	ahead uintptr
	step  int
}

// from is the run so many rows further.
func (x quadRun) from(rows int) quadRun {
	x.c = x.c.at(rows, 0)
	x.i += rows
	return x
}

// blocks multiplies blocks of rows.
func (q *quadProduct) blocks(at quadRun, blocks, rows, columns int) {
	if blocks == 0 {
		return
	}
	at.ahead = uintptr(at.b.p)
	if columns < 2*q.lanes {
		kernel := q.masked[q.unsigned][rows-1]
		for ; at.j < columns; at.j += q.lanes {
			left := columns - at.j
			at.mask = q.masks(min(q.lanes, left))
			q.run(kernel, at, blocks)
		}
		return
	}
	kernel := q.full[q.unsigned][rows-1]
	turns := q.k / 4
	for x := range q.prefetches {
		next := &q.prefetches[x]
		for turns > 0 && next.columns > 0 {
			soon, taken := at, 0
			soon.ahead, soon.step, taken = next.take(blocks * turns)
			some := (taken + turns - 1) / turns
			q.run(kernel, soon, some)
			if blocks -= some; blocks == 0 {
				return
			}
			at = at.from(some * rows)
		}
	}
	q.run(kernel, at, blocks)
}

// run calls a kernel for blocks of rows.
func (q *quadProduct) run(kernel quadKernel, at quadRun, blocks int) {
	a := q.slab.at(at.i, 0)
	b := at.b.at(0, at.j)
	to := at.c.at(0, at.j)
	kernel(
		blocks, q.k,
		a.first(), a.row, a.col,
		b.first(), b.row,
		at.b.startAt(at.j),
		to.first(), to.row,
		at.mask, at.ahead, at.step, q.how,
	)
}
