package m16n8k16

import (
	"math"
	"math/rand/v2"
	"testing"
)

// extremes are numbers whose sums and products overflow, vanish, or are NaN.
var extremes = []float32{
	0, float32(math.Copysign(0, -1)), 1, -1, math.MaxFloat32, -math.MaxFloat32,
	math.SmallestNonzeroFloat32, 0x1p-126, 0x1p-70,
	float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
}

// number is a random number: of any exponent, near 1, or an extreme.
func number(r *rand.Rand) float32 {
	switch r.IntN(8) {
	case 0:
		return extremes[r.IntN(len(extremes))]
	case 1:
		return math.Float32frombits(r.Uint32())
	}
	return float32(r.NormFloat64())
}

// TestAdd compares vector instructions with loops bit by bit, and both with sums in order
// of k.
func TestAdd(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var a A
		var b B
		var c C
		for i := range a {
			for k := range a[i] {
				a[i][k] = number(r)
			}
			for j := range b[i] {
				b[i][j], c[i][j] = number(r), number(r)
			}
		}
		plain, fast := c, c
		plain.addPlain(&a, &b)
		fast.Add(&a, &b)
		for i := range c {
			for j := range c[i] {
				s := c[i][j]
				for k := range a[i] {
					s += float32(a[i][k] * b[k][j])
				}
				if !same(s, plain[i][j]) || !same(s, fast[i][j]) {
					t.Fatalf("(%d, %d): %v in order, %v by loops, %v by vectors", i, j, s, plain[i][j], fast[i][j])
				}
			}
		}
	}
}

// same reports whether two numbers have the same bits, or are both NaN.
func same(x, y float32) bool {
	return math.Float32bits(x) == math.Float32bits(y) || x != x && y != y
}

func BenchmarkAdd(b *testing.B) {
	var x A
	var y B
	var c C
	for b.Loop() {
		c.Add(&x, &y)
	}
	b.ReportMetric(float64(2*16*8*16)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}
