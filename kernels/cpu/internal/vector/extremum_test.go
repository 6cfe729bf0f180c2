package vector

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// firstExtreme is the place of the extreme element of a row, by a loop; it is not known where
// one is NaN or the extreme one is a floating-point 0.
func firstExtreme[T Ordered](op hlo.Opcode, row []T) (at int64, ok bool) {
	for k, v := range row {
		if v != v {
			return 0, false
		}
		if op == hlo.OpMaximum && v > row[at] || op == hlo.OpMinimum && v < row[at] {
			at = int64(k)
		}
	}
	_, whole := any(row[at]).(int32)
	return at, whole || row[at] != 0
}

// TestExtremes compares places with those of a loop: rows of all lengths around those of
// vectors, rounds, blocks and calls, with few and many values, infinities, zeros and NaN.
func TestExtremes(t *testing.T) {
	if !Supported() {
		t.Skip("no machine code runs here")
	}
	rng := rand.New(rand.NewPCG(41, 42))
	floats := []func() float64{
		rng.NormFloat64,
		func() float64 { return float64(rng.IntN(5) - 2) },       // ties
		func() float64 { return float64(-1 - rng.IntN(2)) },      // of numbers below 0
		func() float64 { return math.Inf(-1) },                   // nothing else
		func() float64 { return math.Inf(1) },                    // nothing else
		func() float64 { return float64(min(rng.IntN(3)-2, 0)) }, // the greatest is 0
		func() float64 { return float64(math.Float32frombits(rng.Uint32() & 0xff8fffff)) },
	}
	t.Run("f32", func(t *testing.T) { testExtremes[float32](t, rng, floats, math.NaN()) })
	t.Run("f64", func(t *testing.T) { testExtremes[float64](t, rng, floats, math.NaN()) })
	t.Run("s32", func(t *testing.T) {
		testExtremes[int32](t, rng, []func() float64{
			func() float64 { return float64(int32(rng.Uint32())) },
			func() float64 { return float64(rng.IntN(5) - 2) },
			func() float64 { return math.MinInt32 },
			func() float64 { return math.MaxInt32 },
		}, math.MaxInt32)
	})
}

// testExtremes is TestExtremes of elements of a type, some of which are rare.
func testExtremes[T Ordered](t *testing.T, rng *rand.Rand, values []func() float64, rare float64) {
	size := int(unsafe.Sizeof(*new(T)))
	call := maxExtremumCall / size
	lengths := []int{
		1, 3, 7, 8, 15, 16, 17, 31, 32, 33, 511, 512, 513, 1023, 1024, 1025, 1056, 2080, 32000, 50257,
		call, call + 1, 2*call + 1057,
	}
	for _, op := range []hlo.Opcode{hlo.OpMaximum, hlo.OpMinimum} {
		x, ok := ExtremumOf[T](op)
		if !ok {
			t.Fatal("there is no machine code")
		}
		var args ExtremumArgs
		for _, n := range lengths {
			for kind, value := range values {
				row := make([]T, n)
				for k := range row {
					row[k] = T(value())
				}
				for range rng.IntN(2) * rng.IntN(3) {
					row[rng.IntN(n)] = 3
				}
				if rng.IntN(6) == 0 {
					row[rng.IntN(n)] = T(rare)
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
	x, ok := ExtremumOf[float32](hlo.OpMaximum)
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
