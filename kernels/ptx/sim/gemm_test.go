package sim

import (
	"testing"
	"time"
)

func TestVectorAdd(t *testing.T) {
	b := newBench(t)
	p := mustLoad(t, readText(t, "vadd.ptx"))
	const n = 1000
	r := random(1)
	x, y := eighths(r, n), eighths(r, n)
	ax, ay, az := b.put(floatBytes(x)), b.put(floatBytes(y)), b.alloc(4*n)
	rep := b.launch(p, Launch{Entry: "vadd", Grid: [3]int{8, 1, 1}, Block: [3]int{128, 1, 1},
		Args: [][]byte{Value(ax), Value(ay), Value(az), Value(uint32(n))}, Outputs: []uint64{az}}, everything)
	if err := rep.Err(); err != nil {
		t.Error(err)
	}
	for i, v := range b.floats(az, n) {
		if v != x[i]+y[i] {
			t.Fatalf("element %d is %v, want %v", i, v, x[i]+y[i])
		}
	}
	t.Logf("\n%v", rep.Counters)
}

// gemm runs C = A·Bᵀ of an emitted tile and counts wrong elements.
func runGEMM(t testing.TB, tile gemmTile, text string, m, n, k int, opt Options) (int, *Report) {
	b := newBench(t)
	p := mustLoad(t, text)
	r := random(2)
	x, y := eighths(r, m*k), eighths(r, n*k)
	ax, ay, az := b.put(halfBytes(x)), b.put(halfBytes(y)), b.alloc(int64(4*m*n))
	start := time.Now()
	rep := b.launch(p, Launch{Entry: "gemm", Grid: [3]int{n / tile.BN, m / tile.BM, 1}, Block: [3]int{tile.Threads(), 1, 1}, Shared: tile.Smem(),
		Args: [][]byte{Value(ax), Value(ay), Value(az), Value(uint32(m)), Value(uint32(n)), Value(uint32(k))}, Outputs: []uint64{az}}, opt)
	t.Logf("%+v %d×%d×%d: %v", tile, m, n, k, time.Since(start).Round(time.Microsecond))
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
	tile := gemmTile{128, 128, 32, 64, 64, 4}
	bad, rep := runGEMM(t, tile, emitGEMM(tile), 256, 256, 256, everything)
	if err := rep.Err(); err != nil || bad > 0 {
		t.Errorf("%d wrong: %v", bad, err)
	}
	t.Logf("\n%v", rep.Counters)
}
