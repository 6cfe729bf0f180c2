package sim

import (
	"context"
	"testing"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// BenchmarkVectorAdd reports executed instructions of lanes, without checks.
func BenchmarkVectorAdd(b *testing.B) {
	x := newBench(b)
	const n = 1 << 20
	p := mustLoad(b, readText(b, "vadd.ptx"))
	in := x.put(make([]byte, 4*n))
	out := x.alloc(4 * n)
	l := Launch{
		Entry: "vadd",
		Grid:  [3]int{n / 256, 1, 1},
		Block: [3]int{256, 1, 1},
		Args: [][]byte{
			Value(in), Value(in), Value(out), Value(uint32(n)),
		},
	}
	benchmarkLaunch(b, x, p, l, Options{Workers: 1})
}

// benchmarkLaunch reports lane instructions a second, counted by a launch of
// its own.
func benchmarkLaunch(b *testing.B, x *bench, p *Program, l Launch, opt Options) {
	counted := opt
	counted.Counters = true
	lanes := x.launch(p, l, counted).Counters.LaneInstructions
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if _, err := x.m.Launch(context.Background(), p, l, opt); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(lanes)*float64(b.N)/b.Elapsed().Seconds()/1e6, "M-lane-instr/s")
}

func BenchmarkTranspose(b *testing.B) {
	x := newBench(b)
	const n = 1024
	p := mustLoad(b, readText(b, "transpose.ptx"))
	in := x.put(make([]byte, 4*n*n))
	out := x.alloc(4 * n * n)
	l := Launch{
		Entry: "transpose",
		Grid:  [3]int{n / 32, n / 32, 1},
		Block: [3]int{32, 8, 1},
		Args: [][]byte{
			Value(in), Value(out), Value(uint32(n)), Value(uint32(n)),
		},
	}
	for _, c := range []struct {
		name string
		opt  Options
	}{{"plain", Options{Workers: 1}}, {
		"counters", Options{Workers: 1, Counters: true},
	}, {"checked", everything}} {
		b.Run(c.name, func(b *testing.B) {
			benchmarkLaunch(b, x, p, l, c.opt)
		})
	}
}

// BenchmarkGEMM is the check of one candidate: 256×256×256, tiles of
// 128×128×32, 4 stages.
func BenchmarkGEMM(b *testing.B) {
	x := newBench(b)
	const n = 256
	p := mustLoad(b, readText(b, "gemm.ptx"))
	r := random(1)
	in := x.put(halfBytes(eighths(r, n*n)))
	out := x.alloc(4 * n * n)
	l := Launch{
		Entry:  "gemm",
		Grid:   [3]int{2, 2, 1},
		Block:  [3]int{128, 1, 1},
		Shared: 65536,
		Args: [][]byte{
			Value(in), Value(in), Value(out),
			Value(uint32(n)), Value(uint32(n)),
			Value(uint32(n)),
		},
	}
	for _, c := range []struct {
		name string
		opt  Options
	}{
		{"plain", Options{Workers: 1}},
		{"counters", Options{Workers: 1, Counters: true}},
		{"checked", everything},
		{"checked-all-cores", Options{Counters: true, Races: true, Uninitialised: true}},
	} {
		b.Run(c.name, func(b *testing.B) {
			benchmarkLaunch(b, x, p, l, c.opt)
		})
	}
}

// BenchmarkWGMMA is a launch of 20 steps of a 64×64×64 tile.
func BenchmarkWGMMA(b *testing.B) {
	x := newBench(b)
	const k = 20 * 64
	r := random(1)
	in := x.put(halfBytes(eighths(r, 64*k)))
	out := x.alloc(4 * 64 * 64)
	m := x.tensorMap(TensorMap{
		Type:    ptx.F16,
		Address: in,
		Dims:    []uint64{k, 64},
		Strides: []uint64{2 * k},
		Box:     []uint32{64, 64},
		Swizzle: Swizzle128,
	})
	p := mustLoad(b, readText(b, "wgmma.ptx"))
	l := Launch{
		Entry:  "wgmma",
		Block:  [3]int{160, 1, 1},
		Shared: 32800,
		Args:   [][]byte{m, m, Value(out), Value(uint32(20))},
	}
	for _, c := range []struct {
		name string
		opt  Options
	}{{"plain", Options{Workers: 1}}, {"checked", everything}} {
		b.Run(c.name, func(b *testing.B) {
			benchmarkLaunch(b, x, p, l, c.opt)
		})
	}
}
