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
	quadGroup    = 16  // the columns, or rows, that quadRows and byteRows pack
)

// A quadKernel adds the row start and the product of a, some blocks of rows of k quads,
// and b, k rows of quads of some columns, to c, whose elements count as zeros with
// freshFlag. Strides are bytes.
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
	how int,
)

// A quadFamily is the kernels by rows, as in a family, for a signed b and an unsigned one.
// Elements of a have the other sign.
type quadFamily struct {
	full, masked [2][6]quadKernel
	lanes        int
	masks        func(n int) *byte
}

// quadsWide has vectors of 512 bits.
var quadsWide = quadFamily{
	full:   [2][6]quadKernel{multiplyQuadsUS, multiplyQuadsSU},
	masked: [2][6]quadKernel{multiplyQuadsUSMasked, multiplyQuadsSUMasked},
	lanes:  16,
	masks:  wideMask,
}

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
	cpu.X86.HasAVXVNNI,
)

// chooseQuads is the widest family of a processor.
func chooseQuads(avx2, wide, narrow bool) *quadFamily {
	switch {
	case !avx2:
		return nil
	case wide:
		return &quadsWide
	case narrow:
		return &quadsNarrow
	}
	return nil
}

// scratch is the elements of a slab, a panel, as much before it is transposed, and the row
// that sums begin with.
func (f *quadFamily) scratch() int {
	if f == nil {
		return 0
	}
	width := 2 * f.lanes
	return quadSlabRows*quadBlock + 2*quadBlock*width + width
}

// A quadProduct is a product while it is computed.
type quadProduct struct {
	*quadFamily
	a, b, c byteMatrix
	sizes   [2]int // bytes of the elements of a and b
	// Scratch.
	slab, panel, turned byteMatrix
	start               []int32
	unsigned            int     // 1 where b is unsigned
	flip                [4]byte // of quads of a
	factor              int32   // of the sums of b's columns
	k, how              int     // quads of the slab, and whether c holds nothing yet
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
	panel := scratch[quadSlabRows*quadBlock:]
	turned := panel[quadBlock*width:]
	q := quadProduct{
		quadFamily: f,
		a:          operands[0],
		b:          operands[1],
		sizes:      sizes,
		c:          byteMatrixOf(p.C),
		slab:       byteMatrixOf(Dense(scratch, quadBlock)),
		panel:      byteMatrixOf(Dense(panel, width)),
		turned:     byteMatrixOf(Dense(turned, quadBlock)),
		start:      turned[quadBlock*width:],
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
		for k := 0; k < p.K; k += 4 * quadBlock {
			q.part(p, i, k, min(rows, p.M-i))
		}
	}
}

// part multiplies the slab of so many rows at row i and term k by all panels.
func (q *quadProduct) part(p Product[int32], i, k, rows int) {
	terms := min(4*quadBlock, p.K-k)
	q.k = (terms + 3) / 4
	q.how = 0
	if p.Fresh && k == 0 {
		q.how = freshFlag
	}
	a := q.a.at(i, k)
	packQuadLanes(
		q.slab, a, rows, terms,
		&q.flip, q.sizes[0],
	)
	width := 2 * q.lanes
	for j := 0; j < p.N; j += width {
		columns := min(width, p.N-j)
		b, c := q.b.at(k, j), q.c.at(i, j)
		q.packPanel(b, columns, terms)
		q.strip(c, rows, columns)
	}
}

// packPanel packs terms of columns of b, and makes the row that sums begin with.
func (q *quadProduct) packPanel(b byteMatrix, columns, terms int) {
	lanes := b.transposed()
	to := q.panel.transposed()
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
			q.panel, from, q.k, columns,
		)
	}
	clear(q.start)
	if q.factor != 0 {
		q.correct()
	}
}

// correct makes the multiples of the sums of the panel's columns. Columns that are not
// there have sums of whatever is in scratch, which nobody reads.
func (q *quadProduct) correct() {
	flip := &turnedSigns
	bias := int32(4 * 128 * q.k)
	if q.unsigned == 1 {
		flip, bias = &keptSigns, 0
	}
	for j := 0; j < len(q.start); j += quadGroup {
		from := q.panel.at(0, j)
		quadSums(
			q.k, q.startAt(j),
			from.first(), from.row,
			&flip[0],
		)
	}
	for j, sum := range q.start {
		q.start[j] = q.factor * (sum - bias)
	}
}

// startAt is the row that sums begin with, from column j on.
func (q *quadProduct) startAt(j int) *byte {
	return (*byte)(unsafe.Pointer(&q.start[j]))
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

// strip multiplies the slab by the panel, in blocks of rows as equal as can be.
func (q *quadProduct) strip(c byteMatrix, rows, columns int) {
	each, more := dividedRows(rows)
	q.blocks(c, 0, more, each+1, columns)
	done := more * (each + 1)
	blocks := (rows - done) / each
	q.blocks(c, done, blocks, each, columns)
}

// blocks multiplies blocks of rows from row i of the slab on.
func (q *quadProduct) blocks(c byteMatrix, i, blocks, rows, columns int) {
	if blocks == 0 {
		return
	}
	c = c.at(i, 0)
	if columns == 2*q.lanes {
		kernel := q.full[q.unsigned][rows-1]
		q.run(kernel, c, i, blocks, 0, nil)
		return
	}
	kernel := q.masked[q.unsigned][rows-1]
	for j := 0; j < columns; j += q.lanes {
		mask := q.masks(min(q.lanes, columns-j))
		q.run(kernel, c, i, blocks, j, mask)
	}
}

// run calls a kernel for rows of the slab from i and columns from j on.
func (q *quadProduct) run(
	kernel quadKernel, c byteMatrix,
	i, blocks, j int, mask *byte,
) {
	a := q.slab.at(i, 0)
	b := q.panel.at(0, j)
	to := c.at(0, j)
	kernel(
		blocks, q.k,
		a.first(), a.row, a.col,
		b.first(), b.row,
		q.startAt(j),
		to.first(), to.row,
		mask, q.how,
	)
}
