//go:build !noasm

package gemm

import "unsafe"

// Pairs of terms are joined in 32 bits, and one instruction multiplies and adds
// both. Both operands are packed, but rows of a whose pairs lie as they are read: so many
// rows, and pairs, at a time.
const (
	pairRowBlock = 384 // at most, in blocks of six
	pairBlock    = 128
	pairColumns  = 16 // The columns that rows joins.
	// The same where panels may be larger than the first cache (Caches.Panel): 64 KiB,
	// and 384 of a.
	deepPairRows  = 192
	deepPairBlock = 512
)

// blocks are the rows, at most, and pairs of a block.
func (f *pairFormat) blocks(c Caches) (rows, pairs int) {
	if f.isDeep(c) {
		return deepPairRows, deepPairBlock
	}
	return pairRowBlock, pairBlock
}

// A pairFormat is how two elements of 32 bits become a pair, and the kernels for pairs.
type pairFormat struct {
	*family
	// Joins contiguous terms of a row, 16 a turn, or rows of 16 contiguous columns.
	terms func(turns int, to, from *byte)
	rows  func(pairs int, to *byte, toStride int, from *byte, fromStride int)
	// Joins rows of words of a whole panel, or nil. order is permutations.words.
	panel  func(pairs int, to, from *byte, fromStride int, order *byte)
	narrow func(x uint32) uint32 // the bits of an element
}

// scratch is the elements of the rows of a, of a panel of b, and of its
// columns before they are transposed.
func (f *pairFormat) scratch() int {
	return deepPairRows*deepPairBlock + 2*deepPairBlock*f.width()
}

// int16Pairs is the format of integers of 16 bits.
func int16Pairs() pairFormat {
	return pairFormat{
		family: i16,
		terms:  pairTerms,
		rows:   pairRows,
		narrow: lowHalf,
	}
}

// lowHalf is the low 16 bits.
func lowHalf(x uint32) uint32 { return x & 0xffff }

// scratchInt16 is the scratch for the rows of a, for a panel of b, and for its
// columns before they are transposed.
func scratchInt16() int {
	if i16 == nil {
		return Scratch[int32](1, 1, 1)
	}
	f := int16Pairs()
	return f.scratch()
}

// multiplyInt16 multiplies pair by pair of terms.
func multiplyInt16(p Product[int32], scratch []int32) {
	if i16 == nil {
		p.Multiply(scratch)
		return
	}
	f := int16Pairs()
	multiplyPairs(&f, p, scratch)
}

// multiplyPairs multiplies pair by pair of terms.
func multiplyPairs[T Element](f *pairFormat, p Product[T], scratch []T) {
	fresh := p.Fresh
	c := p.C
	m := p.M
	n := p.N
	k := p.K
	columns := f.width()
	scratch = scratch[:f.scratch()]
	block, pairs := f.blocks(p.Caches)
	rows := byteMatrixOf(Dense(scratch, pairs))
	scratch = scratch[block*pairs:]
	panel := byteMatrixOf(Dense(scratch, columns))
	scratch = scratch[pairs*columns:]
	transposed := byteMatrixOf(Dense(scratch, pairs))
	operands, sizes := operandsOf(p)
	x, y := operands[0], operands[1]
	z := byteMatrixOf(c)
	strip := product{family: f.family, caches: p.Caches}
	block = evenParts(m, block, 6)
	if strip.holdsPairs(x, sizes[0], m, k) {
		block = m // panels are packed once for all rows
	}
	most := evenParts(k, 2*pairs, 16)
	for i := 0; i < m; i += block {
		count := min(block, m-i)
		for p := 0; p < k; p += most {
			terms := min(most, k-p)
			strip.flags = 0
			if fresh && p == 0 {
				strip.flags = freshFlag
			}
			slab := rows
			strip.prefetches[1] = nextPart(x, i, p, block, most, m, k, sizes[0])
			if strip.readsPairs(x, sizes[0], count, terms, n) {
				slab = byteMatrix{x.at(i, p).p, x.row, 4}
			} else {
				f.interleaveRows(rows, x.at(i, p), count, terms, sizes[0])
			}
			for j := 0; j < n; j += columns {
				width := min(columns, n-j)
				f.interleavePanel(
					panel, transposed, y.at(p, j), terms, width, sizes[1],
				)
				next := &strip.prefetches[0]
				*next = f.nextPanel(y, p, j+columns, k, n, sizes[1], most)
				strip.strip(
					z.at(i, j), slab, panel, count,
					width, (terms+1)/2,
				)
			}
		}
	}
}

// readsPairs reports whether so many rows and terms of elements of size bytes are read as they
// lie, by n columns: they are pairs, and the second cache holds all sets of lines that rows
// compete for, or a copy would serve two panels at most.
func (p *product) readsPairs(a byteMatrix, size, rows, terms, n int) bool {
	return p.holdsPairs(a, size, rows, terms) ||
		n <= 2*p.width() && p.holdsPairs(a, size, 0, terms)
}

// holdsPairs reports whether so many rows and terms of elements of size bytes are pairs as they
// lie, and in the second cache.
func (p *product) holdsPairs(a byteMatrix, size, rows, terms int) bool {
	return p.isDeep(p.caches) && size == 2 &&
		a.col == size && terms%2 == 0 &&
		rows*a.row <= p.caches.Filled().Second/4*3
}

// nextPart is the prefetch of what follows the rows of x at i and their terms at p: the next
// terms, at most so many of k, and behind the last those of the next of m rows.
func nextPart(x byteMatrix, i, p, rows, most, m, k, size int) prefetch {
	if p += most; p >= k {
		i, p = i+rows, 0
	}
	if i >= m {
		return prefetch{}
	}
	rows = min(rows, m-i)
	terms := min(most, k-p)
	return ofPart(x.at(i, p), rows, terms, size)
}

// nextPanel is the prefetch of what the panel of y at term p and column j is packed from;
// behind the last of n columns it is that of the next terms, most of k.
func (f *pairFormat) nextPanel(y byteMatrix, p, j, k, n, size, most int) prefetch {
	if j >= n {
		j, p = 0, p+most
	}
	if p >= k {
		return prefetch{}
	}
	terms := min(most, k-p)
	columns := min(f.width(), n-j)
	y = y.at(p, j)
	return ofPart(y, terms, columns, size)
}

// interleaveRows joins pairs of k terms of m rows, of elements of size bytes.
func (f *pairFormat) interleaveRows(to, from byteMatrix, m, k, size int) {
	done := 0
	if from.col == size {
		done = k / 16 * 16
	}
	for i := range m {
		t := to.at(i, 0)
		row := from.at(i, 0)
		if size == 2 { // they are pairs already
			copyBytes(t.p, row.p, 2*done)
		} else {
			f.terms(done/16, t.first(), row.first())
		}
		f.interleaveRest(t, row, done, k, size)
	}
}

// interleavePanel joins pairs of k rows of n columns, of elements of size bytes.
func (f *pairFormat) interleavePanel(to, transposed, from byteMatrix, k, n, size int) {
	rows := f.rows
	if size == 2 {
		rows = wordRows
	}
	switch {
	case from.row == size && size == 2 && k%2 == 0: // columns of pairs
		f.transposeFrom(
			to, byteMatrix{from.p, 4, from.col}, k/2, n,
		)
	case from.row == size:
		f.interleaveRows(
			transposed, from.transposed(),
			n, k, size,
		)
		f.transposeFrom(
			to, transposed.transposed(),
			(k+1)/2, n,
		)
	case from.col == size && n == f.width():
		if size == 2 && f.panel != nil {
			order := unsafe.Pointer(&permutations.words)
			f.panel(
				k/2,
				to.first(),
				from.first(),
				from.row,
				(*byte)(order),
			)
		} else {
			for j := 0; j < n; j += pairColumns {
				rows(
					k/2,
					to.at(0, j).first(),
					to.row,
					from.at(0, j).first(),
					from.row,
				)
			}
		}
		if k%2 == 1 { // the last row has no partner
			f.interleaveColumns(
				to.at(k/2, 0),
				from.at(k-1, 0), 1, n, size,
			)
		}
	default:
		f.interleaveColumns(to, from, k, n, size)
	}
}

// interleaveColumns joins pairs of k rows of n columns, element by element.
func (f *pairFormat) interleaveColumns(to, from byteMatrix, k, n, size int) {
	for j := range n {
		f.interleaveRest(
			byteMatrix{to.at(0, j).p, 0, to.row},
			byteMatrix{from.at(0, j).p, 0, from.row},
			0, k, size,
		)
	}
}

// interleaveRest joins terms from … k−1 of a row.
func (f *pairFormat) interleaveRest(to, from byteMatrix, begin, k, size int) {
	for p := begin; p < k; p += 2 {
		x := f.half(from.at(0, p), size)
		if p+1 < k {
			x |= f.half(from.at(0, p+1), size) << 16
		}
		*(*uint32)(to.at(0, p/2).p) = x
	}
}

// half is the bits of the first element, of size bytes.
func (f *pairFormat) half(x byteMatrix, size int) uint32 {
	if size == 2 {
		return uint32(*(*uint16)(x.p))
	}
	return f.narrow(*(*uint32)(x.p))
}
