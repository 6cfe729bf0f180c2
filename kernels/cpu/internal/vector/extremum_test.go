package vector

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// firstExtreme is the place of the extreme element of a row, by a loop; it is not known where
// one is NaN or the extreme one is 0.
func firstExtreme(op hlo.Opcode, row []float32) (at int64, ok bool) {
	for k, v := range row {
		if v != v {
			return 0, false
		}
		if op == hlo.OpMaximum && v > row[at] || op == hlo.OpMinimum && v < row[at] {
			at = int64(k)
		}
	}
	return at, row[at] != 0
}

// TestExtremes compares places with those of a loop: rows of all lengths around those of
// vectors, rounds, blocks and calls, with few and many values, infinities, zeros and NaN.
func TestExtremes(t *testing.T) {
	if !Supported() {
		t.Skip("no machine code runs here")
	}
	rng := rand.New(rand.NewPCG(41, 42))
	lengths := []int{
		1, 7, 8, 31, 32, 33, 1023, 1024, 1025, 1056, 2080, 32000, 50257,
		maxExtremumCall, maxExtremumCall + 1, 2*maxExtremumCall + 1057,
	}
	values := []func() float32{
		func() float32 { return float32(rng.NormFloat64()) },
		func() float32 { return float32(rng.IntN(5) - 2) },       // ties
		func() float32 { return float32(-1 - rng.IntN(2)) },      // of numbers below 0
		func() float32 { return float32(math.Inf(-1)) },          // nothing else
		func() float32 { return float32(math.Inf(1)) },           // nothing else
		func() float32 { return float32(min(rng.IntN(3)-2, 0)) }, // the greatest is 0
		func() float32 { return math.Float32frombits(rng.Uint32() & 0xff8fffff) },
	}
	for _, op := range []hlo.Opcode{hlo.OpMaximum, hlo.OpMinimum} {
		x, ok := ExtremumOf(op)
		if !ok {
			t.Fatal("there is no machine code")
		}
		var args ExtremumArgs
		for _, n := range lengths {
			for kind, value := range values {
				row := make([]float32, n)
				for k := range row {
					row[k] = value()
				}
				for range rng.IntN(2) * rng.IntN(3) {
					row[rng.IntN(n)] = 3
				}
				if rng.IntN(6) == 0 {
					row[rng.IntN(n)] = float32(math.NaN())
				}
				at, ok := x.First(&args, row)
				wantAt, wantOK := firstExtreme(op, row)
				if ok != wantOK || ok && at != wantAt {
					t.Fatalf("%s of %d, kind %d: %d %v, not %d %v", op, n, kind, at, ok, wantAt, wantOK)
				}
			}
		}
	}
}

// BenchmarkExtremes searches rows that lie in the second cache.
func BenchmarkExtremes(b *testing.B) {
	x, ok := ExtremumOf(hlo.OpMaximum)
	if !ok {
		b.Skip("no machine code runs here")
	}
	rng := rand.New(rand.NewPCG(43, 44))
	row := make([]float32, 32000)
	for k := range row {
		row[k] = float32(rng.NormFloat64())
	}
	var args ExtremumArgs
	b.SetBytes(int64(4 * len(row)))
	for b.Loop() {
		x.First(&args, row)
	}
}
