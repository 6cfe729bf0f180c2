//go:build !noasm

package gemm

// Pairs of terms are joined in 32 bits, and one instruction multiplies and adds
// both. Both operands are packed: so many rows of a, and pairs, at a time.
const (
	pairRowBlock = 96
	pairBlock    = 128
	pairColumns  = 16 // The columns that pairRows joins.
)

// scratchInt16 is the scratch for the rows of a, for a panel of b, and for its
// columns before they are transposed.
func scratchInt16() int {
	if i16 == nil {
		return Scratch[int32](1, 1, 1)
	}
	return pairRowBlock*pairBlock + 2*pairBlock*i16.width()
}

// multiplyInt16 multiplies pair by pair of terms.
func multiplyInt16(p Product[int32], scratch []int32) {
	if i16 == nil {
		p.Multiply(scratch)
		return
	}
	if p.Fresh {
		p.clear()
	}
	c := p.C
	a := p.A
	b := p.B
	m := p.M
	n := p.N
	k := p.K
	columns := i16.width()
	scratch = scratch[:scratchInt16()]
	rows := byteMatrixOf(Dense(scratch, pairBlock))
	panel := byteMatrixOf(Dense(scratch[pairRowBlock*pairBlock:], columns))
	transposed := byteMatrixOf(Dense(scratch[pairRowBlock*pairBlock+pairBlock*columns:], pairBlock))
	x := byteMatrixOf(a)
	y := byteMatrixOf(b)
	z := byteMatrixOf(c)
	strip := product{family: i16}
	for i := 0; i < m; i += pairRowBlock {
		count := min(pairRowBlock, m-i)
		for p := 0; p < k; p += 2 * pairBlock {
			terms := min(2*pairBlock, k-p)
			interleaveRows(rows, x.at(i, p), count, terms)
			for j := 0; j < n; j += columns {
				width := min(columns, n-j)
				interleavePanel(
					panel, transposed, y.at(p, j), terms, width,
				)
				strip.strip(
					z.at(i, j), rows, panel, count,
					width, (terms+1)/2,
				)
			}
		}
	}
}

// interleaveRows joins pairs of k terms of m rows.
func interleaveRows(to, from byteMatrix, m, k int) {
	turns := 0
	if from.col == 4 {
		turns = k / 16
	}
	for i := range m {
		t := to.at(i, 0)
		f := from.at(i, 0)
		pairTerms(turns, t.first(), f.first())
		interleaveRest(t, f, 16*turns, k)
	}
}

// interleavePanel joins pairs of k rows of n columns.
func interleavePanel(to, transposed, from byteMatrix, k, n int) {
	switch {
	case from.row == 4:
		interleaveRows(
			transposed,
			byteMatrix{from.p, from.col, from.row},
			n, k,
		)
		i16.transposeFrom(
			to,
			byteMatrix{transposed.p, transposed.col, transposed.row},
			(k+1)/2, n,
		)
	case from.col == 4 && n == i16.width():
		for j := 0; j < n; j += pairColumns {
			pairRows(
				k/2,
				to.at(0, j).first(),
				to.row,
				from.at(0, j).first(),
				from.row,
			)
		}
		if k%2 == 1 { // the last row has no partner
			interleaveColumns(
				to.at(k/2, 0),
				from.at(k-1, 0), 1, n,
			)
		}
	default:
		interleaveColumns(to, from, k, n)
	}
}

// interleaveColumns joins pairs of k rows of n columns, element by element.
func interleaveColumns(to, from byteMatrix, k, n int) {
	for j := range n {
		interleaveRest(
			byteMatrix{to.at(0, j).p, 0, to.row},
			byteMatrix{from.at(0, j).p, 0, from.row},
			0, k,
		)
	}
}

// interleaveRest joins terms from … k−1 of a row.
func interleaveRest(to, from byteMatrix, begin, k int) {
	for p := begin; p < k; p += 2 {
		x := uint32(*(*uint16)(from.at(0, p).p))
		if p+1 < k {
			x |= uint32(*(*uint16)(
				from.at(0, p+1).p,
			)) << 16
		}
		*(*uint32)(to.at(0, p/2).p) = x
	}
}
