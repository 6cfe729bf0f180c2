package products

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// Lanes of registers are different sums, whose terms are added in their order: every
// sum has the bits of a plain loop, in registers of both widths.
func TestBlocksArePlainLoops(t *testing.T) {
	if !Fast() {
		t.Skip("no code for blocks on this processor")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, k := range []int{0, 1, 2, 3, 17, 256, 1001} {
		for _, columns := range []int{1, 7, Columns} {
			lines := normals(rng, Rows*k)
			others := normals(rng, columns*k)
			packed := normals(rng, Columns*k)
			Pack(packed, others, k)
			var got Block
			for name, sum := range widths() {
				got = Block{}
				if k > 0 {
					sum(&got, lines, packed, k)
				}
				want := plain(lines, others, k)
				if got != want {
					t.Fatalf("%s, %d terms, %d columns: %v, plain loops say %v", name, k, columns, got, want)
				}
			}
		}
	}
}

// normals are n normally distributed numbers.
func normals(rng *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for k := range x {
		x[k] = rng.NormFloat64()
	}
	return x
}

// plain is the block by plain loops.
func plain(lines, others []float64, k int) (b Block) {
	if k == 0 {
		return b
	}
	for row := range Rows {
		for column := range len(others) / k {
			sum := 0.0
			for t := range k {
				sum += float64(lines[row*k+t] * others[column*k+t])
			}
			b[row*Columns+column] = sum
		}
	}
	return b
}

// BenchmarkBlock is the time of a product.
func BenchmarkBlock(b *testing.B) {
	if !Fast() {
		b.Skip("no code for blocks on this processor")
	}
	const k = 1024
	lines, packed := make([]float64, Rows*k), make([]float64, Columns*k)
	for name, sum := range widths() {
		b.Run(fmt.Sprint(name), func(b *testing.B) {
			var block Block
			for b.Loop() {
				sum(&block, lines, packed, k)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(Rows*Columns*k), "ns/product")
		})
	}
}
