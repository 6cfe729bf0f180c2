//go:build !noasm

package gemm

// maxGemvRows is the number of rows of a up to which the rate of the memory
// counts.
const maxGemvRows = 5

// usesGemv reports whether b is read row by row rather than in panels: few rows
// of a use it, so that the rate of the memory counts.
func (p *product) usesGemv() bool {
	return p.gemv[0] != nil && p.packing != Packed &&
		p.m <= maxGemvRows && p.b.col == p.bytes &&
		p.k >= gemvTerms && p.n*p.bytes >= 64
}

// runGemv multiplies term by term: some rows of b, as wide as stays in the
// first-level cache, by all rows of a.
func (p *product) runGemv() {
	// lines
	chunk := max(1, p.caches.stream()/(64*gemvTerms)) *
		64 * gemvTerms / p.bytes
	if p.m > 1 {
		chunk /= gemvTerms
	}
	for j := 0; j < p.n; j += chunk {
		n := min(chunk, p.n-j)
		whole := n * p.bytes / 64 * 64 / p.bytes
		t := 0
		for ; t+gemvTerms <= p.k; t += gemvTerms {
			for i := 0; whole > 0 && i < p.m; i++ {
				kernel := p.gemv[0]
				if i == 0 && p.fetchesRows(t) {
					kernel = p.gemv[1]
				}
				kernel(
					n*p.bytes/64,
					p.a.at(i, t).first(),
					p.a.col,
					p.b.at(t, j).first(),
					p.b.row,
					p.c.at(i, j).first(),
					gemvTerms*p.b.row,
				)
			}
			p.gemvRemainder(j+whole, j+n, t, gemvTerms)
		}
		p.gemvRemainder(j, j+n, t, p.k-t)
	}
}

// fetchesRows reports whether the rows of b after those from term t on are fetched into
// the second cache while these are multiplied: where b does not stay there, and there are
// so many more. A row by 4096×4096 takes 0.86 of the time (BenchmarkSkinny of package cpu,
// one thread of a Zen 4).
func (p *product) fetchesRows(t int) bool {
	return t+2*gemvTerms <= p.k && p.n*p.k*p.bytes > p.caches.Second
}

// gemvRemainder multiplies k terms by columns j … end−1 of b.
func (p *product) gemvRemainder(j, end, t, k int) {
	for ; j < end && k > 0; j += p.width() {
		p.strip(
			p.c.at(0, j),
			p.a.at(0, t),
			p.b.at(t, j), p.m,
			min(p.width(), end-j), k,
		)
	}
}

const (
	// standingTerms is the number of terms of a turn, and the partial sums of a column.
	standingTerms = 16
	// standingColumns is the number of columns of a turn.
	standingColumns = 4
)

// usesStanding reports whether a row is multiplied by columns of b where the terms
// of both are contiguous, and there are enough of them for partial sums. Of one column it does
// not matter how far the next one would be.
func (p *product) usesStanding() bool {
	return p.standing[0] != nil && p.m == 1 &&
		p.b.row == p.bytes &&
		p.a.col == p.bytes &&
		(p.b.col != p.bytes || p.n == 1) &&
		p.k >= 8*standingTerms
}

// runStanding multiplies four columns at a time, each the next of a quarter of all, so
// that the memory is read at four places in turn, which the hardware prefetches across
// the ends of columns: four neighbours take 1.2 times as long on a Zen 4, from memory. A
// sum of many terms is 16 partial sums, which are added at the end, so that no
// multiply-add waits for the one before: the same ones whatever the blocks.
func (p *product) runStanding() {
	turns := p.k / standingTerms
	apart := p.n / standingColumns
	kernel := 1
	if p.n*p.k*p.bytes > p.caches.Second { // 0.9 of the time from the third cache, too
		kernel = 2
	}
	for j := range apart {
		p.standColumns(kernel, turns, j, apart)
	}
	for j := standingColumns * apart; j < p.n; j++ {
		p.standColumns(0, turns, j, 1)
	}
	done := turns * standingTerms
	if left := p.k - done; left > 0 {
		p.subproduct(done, 0, p.n, left)
	}
}

// standColumns multiplies by column j, or by four from j on that are some apart.
func (p *product) standColumns(kernel, turns, j, apart int) {
	p.standing[kernel](
		turns, p.a.first(),
		p.b.at(0, j).first(),
		apart*p.b.col,
		p.c.at(0, j).first(),
		apart*p.bytes,
	)
}

// transposedGemvTerms is the number of terms of a turn.
const transposedGemvTerms = 16

// usesTransposedGemv reports whether a row is multiplied by columns of b whose
// terms are contiguous, which is how a row-major matrix is multiplied by a
// vector.
func (p *product) usesTransposedGemv() bool {
	return p.transposedGemv != nil && p.m == 1 &&
		p.b.row == p.bytes &&
		p.b.col != p.bytes && p.k >= transposedGemvTerms &&
		p.n*p.bytes >= 64
}

// runTransposedGemv multiplies as many columns at a time as there are in 64
// bytes. From memory it is half as many: the hardware prefetcher follows eight
// columns, and not sixteen.
func (p *product) runTransposedGemv() {
	columns := 64 / p.bytes
	turns := p.k / transposedGemvTerms
	whole := p.n / columns * columns
	k := turns * transposedGemvTerms
	kernel, step := p.transposedGemv, columns
	if p.n*p.k*p.bytes > p.caches.Second { // of 4096×4096: 22 GB/s on one core, 42 on two, rather than 17 and 31
		kernel, step = p.halfTransposedGemv, columns/2
	}
	for j := 0; j < whole; j += step {
		kernel(
			turns, p.a.first(),
			p.a.col,
			p.b.at(0, j).first(),
			p.b.col,
			p.c.at(0, j).first(),
		)
	}
	if k < p.k {
		p.subproduct(k, 0, whole, p.k-k)
	}
	if whole < p.n {
		p.subproduct(0, whole, p.n-whole, p.k)
	}
}

// subproduct multiplies k terms from t on by n columns from j on.
func (p *product) subproduct(t, j, n, k int) {
	q := *p
	q.a, q.b, q.c, q.n, q.k =
		p.a.at(0, t),
		p.b.at(t, j),
		p.c.at(0, j), n, k
	q.slabs(false, false)
}
