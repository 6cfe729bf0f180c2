package gemm

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// BenchmarkMultiply reports billions of multiplications and additions a second,
// on one core and operands as large as tiles are.
func BenchmarkMultiply(b *testing.B) {
	for _, s := range []struct{ m, n, k int }{
		{1, 1, 1}, {1, 1, 9}, {1, 1, 64},
		{1, 256, 256}, {256, 1, 256},
		{4, 16, 16}, {8, 64, 64},
		{32, 32, 32}, {64, 64, 64},
		{64, 256, 256}, {256, 256, 256},
	} {
		name := fmt.Sprintf("%dx%dx%d", s.m, s.n, s.k)
		b.Run("f32/"+name, func(b *testing.B) {
			benchmark[float32](b, 0, 0, s.m, s.n, s.k)
		})
	}
	for _, l := range []struct{ a, b int }{
		{0, 0}, {0, 1}, {1, 0}, {1, 1},
	} {
		name := fmt.Sprintf("%s-%s", layouts[l.a], layouts[l.b])
		b.Run("f32/128x128x128/"+name, func(b *testing.B) {
			benchmark[float32](b, l.a, l.b, 128, 128, 128)
		})
	}
	b.Run("f64/256x256x256", func(b *testing.B) {
		benchmark[float64](b, 0, 0, 256, 256, 256)
	})
	b.Run("i32/256x256x256", func(b *testing.B) {
		benchmark[int32](b, 0, 0, 256, 256, 256)
	})
	b.Run("i16/256x256x256", func(b *testing.B) {
		x := Dense(make([]int32, 256*256), 256)
		z := Dense(make([]int32, 256*256), 256)
		scratch := make([]int32, ScratchInt16())
		for b.Loop() {
			MultiplyInt16(
				Product[int32]{C: z, A: x, B: x, M: 256, N: 256, K: 256},
				scratch,
			)
		}
		b.ReportMetric(
			2*256*256*256*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "Gop/s",
		)
	})
	b.Run("i64/256x256x256", func(b *testing.B) {
		benchmark[int64](b, 0, 0, 256, 256, 256)
	})
}

func benchmark[T Element](b *testing.B, la, lb, m, n, k int) {
	r := rand.New(rand.NewPCG(1, 1))
	x := random[T](layouts[la], m, k, r)
	y := random[T](layouts[lb], k, n, r)
	z := random[T](layouts[0], m, n, r)
	scratch := make([]T, Scratch[T](m, n, k))
	b.ReportAllocs()
	for b.Loop() {
		Multiply(z, x, y, m, n, k, scratch)
	}
	b.ReportMetric(
		2*float64(m)*float64(n)*float64(k)*
			float64(b.N)/float64(b.Elapsed().Nanoseconds()),
		"Gop/s",
	)
}

// BenchmarkPacked logs what products take whose operands are packed, over those that read b in
// place, by rows: the least of 60 rounds in turns. Stride is the elements from row to row of b.
func BenchmarkPacked(b *testing.B) {
	rows := []int{24, 48, 64, 96, 128, 192, 256, 512}
	for _, s := range []struct{ n, k, stride int }{
		{128, 192, 128}, {96, 128, 384}, {256, 256, 256}, {512, 512, 512}, {256, 256, 1040}, {256, 256, 1024},
	} {
		var line strings.Builder
		for _, m := range rows {
			fmt.Fprintf(&line, "  %d: %.2f", m, packedOverInPlace(m, s.n, s.k, s.stride))
		}
		b.Logf("n %d, k %d, stride %d:%s", s.n, s.k, s.stride, line.String())
	}
}

// packedOverInPlace is the ratio of the least times of m×k by k×n of f32.
func packedOverInPlace(m, n, k, stride int) float64 {
	x := Product[float32]{
		C: Dense(make([]float32, m*n), n),
		A: Dense(make([]float32, m*k), k),
		B: Dense(make([]float32, k*stride), stride),
		M: m, N: n, K: k,
	}
	scratch := make([]float32, Scratch[float32](m, n, k))
	least := map[Packing]time.Duration{Streamed: time.Hour, Packed: time.Hour}
	for range 60 {
		for p := range least {
			x.Packing = p
			begin := time.Now()
			for range 4 {
				x.Multiply(scratch)
			}
			least[p] = min(least[p], time.Since(begin))
		}
	}
	return float64(least[Packed]) / float64(least[Streamed])
}
