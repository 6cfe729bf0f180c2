//go:build !noasm

package gemm

import (
	"fmt"
	"testing"
)

// BenchmarkTiles multiplies bf16 and bytes on AMX, as they lie in memory.
func BenchmarkTiles(b *testing.B) {
	for _, s := range [][3]int{
		{512, 512, 512},
		{1024, 1024, 1024},
		{2048, 2048, 2048},
		{128, 1024, 4096},
		{1, 1024, 4096},
		{16, 1024, 4096},
		{96, 80, 128},
	} {
		m, n, k := s[0], s[1], s[2]
		short := func(m, n, size int) Short {
			return Short{make([]byte, m*n*size), size}
		}
		rate := func(b *testing.B) {
			work := 2 * float64(m) * float64(n) * float64(k)
			b.ReportMetric(work*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOPS")
		}
		b.Run(fmt.Sprintf("bf16/%dx%dx%d", m, n, k), func(b *testing.B) {
			if !HasHalves(Tiles) {
				b.Skip("this processor has no tiles")
			}
			x := Product[float32]{
				C: Dense(make([]float32, m*n), n),
				A: Matrix[float32]{nil, k, 1},
				B: Matrix[float32]{nil, n, 1},
				M: m, N: n, K: k, Fresh: true,
				Short:  [2]Short{short(m, k, 2), short(k, n, 2)},
				Caches: Caches{First: 48 << 10, Second: 2 << 20, Third: 32 << 20},
			}
			scratch := make([]float32, ScratchHalves(x, Tiles))
			for b.Loop() {
				MultiplyHalves(x, scratch, Tiles)
			}
			rate(b)
		})
		b.Run(fmt.Sprintf("s8/%dx%dx%d", m, n, k), func(b *testing.B) {
			if !hasTiles() {
				b.Skip("this processor has no tiles")
			}
			x := Product[int32]{
				C: Dense(make([]int32, m*n), n),
				A: Matrix[int32]{nil, k, 1},
				B: Matrix[int32]{nil, n, 1},
				M: m, N: n, K: k, Fresh: true,
				Short:  [2]Short{short(m, k, 1), short(k, n, 1)},
				Caches: Caches{First: 48 << 10, Second: 2 << 20, Third: 32 << 20},
			}
			scratch := make([]int32, ScratchInt8(x))
			for b.Loop() {
				MultiplyInt8(x, scratch, [2]bool{})
			}
			rate(b)
		})
	}
}
