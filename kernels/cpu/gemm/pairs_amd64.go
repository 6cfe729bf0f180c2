//go:build !noasm

package gemm

// Pairs of terms are joined in 32 bits, and one instruction multiplies and adds
// both. Both operands are arranged: so many rows of a, and pairs, at a time.
const (
	pairedRows    = 96
	pairs         = 128
	pairedColumns = 16 // that pairRows joins
)

// scratchNarrow is the room for the rows of a, for a panel of b, and for its
// columns before they are turned.
func scratchNarrow() int {
	if i16 == nil {
		return Scratch[int32](1, 1, 1)
	}
	return pairedRows*pairs + 2*pairs*i16.width()
}

func multiplyNarrow(p Product[int32], scratch []int32) {
	if i16 == nil {
		p.Multiply(scratch)
		return
	}
	if p.Fresh {
		p.clear()
	}
	c, a, b, m, n, k := p.C, p.A, p.B, p.M, p.N, p.K
	columns := i16.width()
	scratch = scratch[:scratchNarrow()]
	rows := placeOf(Dense(scratch, pairs))
	panel := placeOf(Dense(scratch[pairedRows*pairs:], columns))
	turned := placeOf(Dense(scratch[pairedRows*pairs+pairs*columns:], pairs))
	x, y, z := placeOf(a), placeOf(b), placeOf(c)
	strip := product{family: i16}
	for i := 0; i < m; i += pairedRows {
		count := min(pairedRows, m-i)
		for p := 0; p < k; p += 2 * pairs {
			terms := min(2*pairs, k-p)
			joinRows(rows, x.at(i, p), count, terms)
			for j := 0; j < n; j += columns {
				width := min(columns, n-j)
				joinPanel(panel, turned, y.at(p, j), terms, width)
				strip.strip(z.at(i, j), rows, panel, count, width, (terms+1)/2)
			}
		}
	}
}

// joinRows joins pairs of k terms of m rows.
func joinRows(to, from place, m, k int) {
	turns := 0
	if from.col == 4 {
		turns = k / 16
	}
	for i := range m {
		t, f := to.at(i, 0), from.at(i, 0)
		pairTerms(turns, t.first(), f.first())
		joinRest(t, f, 16*turns, k)
	}
}

// joinPanel joins pairs of k rows of n columns.
func joinPanel(to, turned, from place, k, n int) {
	switch {
	case from.row == 4:
		joinRows(turned, place{from.p, from.col, from.row}, n, k)
		i16.turn(to, place{turned.p, turned.col, turned.row}, (k+1)/2, n)
	case from.col == 4 && n == i16.width():
		for j := 0; j < n; j += pairedColumns {
			pairRows(k/2, to.at(0, j).first(), to.row, from.at(0, j).first(), from.row)
		}
		if k%2 == 1 { // the last row has no partner
			joinColumns(to.at(k/2, 0), from.at(k-1, 0), 1, n)
		}
	default:
		joinColumns(to, from, k, n)
	}
}

func joinColumns(to, from place, k, n int) {
	for j := range n {
		joinRest(place{to.at(0, j).p, 0, to.row}, place{from.at(0, j).p, 0, from.row}, 0, k)
	}
}

// joinRest joins terms from … k−1 of a row.
func joinRest(to, from place, begin, k int) {
	for p := begin; p < k; p += 2 {
		x := uint32(*(*uint16)(from.at(0, p).p))
		if p+1 < k {
			x |= uint32(*(*uint16)(from.at(0, p+1).p)) << 16
		}
		*(*uint32)(to.at(0, p/2).p) = x
	}
}
