// Package products sums products of float64 vectors, many sums at the same time, in
// vector registers. It is the inner loop of the reference's contractions and knows
// nothing of programs.
//
// The terms of a sum are multiplied and added one after the other, in their order, each
// operation rounded by itself: lanes of a register are different sums. So the results
// have the bits of plain loops (TestBlocksArePlainLoops), whatever the processor is.
//
// A Block is the sums of up to Rows vectors with up to Columns others, those packed:
// term by term, so that one load has a term of several vectors.
package products

// The extents of a block.
const (
	Rows    = 8
	Columns = 16
)

// Pack lays up to Columns vectors of k numbers, which follow each other in lines, term by
// term into packed, which has room for k·Columns numbers. Vectors that are not there are
// zeros.
func Pack(packed, lines []float64, k int) {
	n := 0
	for ; n < Columns && (n+1)*k <= len(lines); n++ {
		for t, v := range lines[n*k : (n+1)*k] {
			packed[t*Columns+n] = v
		}
	}
	for ; n < Columns; n++ {
		for t := range k {
			packed[t*Columns+n] = 0
		}
	}
}

// A Block is the sums of the products of Rows vectors with Columns others, row by row.
type Block [Rows * Columns]float64

// Sum computes the block of the vectors of k numbers in lines, which follow each other,
// Rows of them or more, with packed ones. It must not be called where it is not Fast.
func (b *Block) Sum(lines, packed []float64, k int) {
	if k == 0 {
		*b = Block{}
		return
	}
	_ = lines[Rows*k-1]
	_ = packed[Columns*k-1]
	b.sum(lines, packed, k)
}
