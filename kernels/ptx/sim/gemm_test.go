package sim

import (
	"testing"
	"time"
)

// runGEMM runs gemm.ptx, C = A·Bᵀ, and counts wrong elements.
func runGEMM(t testing.TB, text string, m, n, k int, opt Options) (int, *Report) {
	b := newBench(t)
	p := mustLoad(t, text)
	r := random(2)
	x, y := eighths(r, m*k), eighths(r, n*k)
	ax := b.put(halfBytes(x))
	ay := b.put(halfBytes(y))
	az := b.alloc(int64(4 * m * n))
	start := time.Now()
	rep := b.launch(
		p,
		Launch{Entry: "gemm", Grid: [3]int{
			n / 128, m / 128, 1,
		}, Block: [3]int{128, 1, 1}, Shared: 4 * 2 * 128 * 64,
			Args: [][]byte{
				Value(ax), Value(ay), Value(az),
				Value(uint32(m)), Value(uint32(n)),
				Value(uint32(k)),
			}, Outputs: []uint64{az}},
		opt,
	)
	t.Logf("%d×%d×%d: %v", m, n, k, time.Since(start).Round(time.Microsecond))
	want := make([]float32, m*n)
	for i := range m {
		for j := range n {
			var s float32
			for l := range k {
				s += x[i*k+l] * y[j*k+l]
			}
			want[i*n+j] = s
		}
	}
	return wrong(b.floats(az, m*n), want), rep
}

func TestGEMM(t *testing.T) {
	bad, rep := runGEMM(t, readText(t, "gemm.ptx"), 256, 256, 256, everything)
	if err := rep.Err(); err != nil || bad > 0 {
		t.Errorf("%d wrong: %v", bad, err)
	}
	t.Logf("\n%v", rep.Counters)
}
