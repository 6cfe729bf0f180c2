//go:build !noasm

package gemm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"
)

// peak runs the kernel of six rows on one term again and again, which is the
// rate of multiply-add itself; it returns the operations it did.
func peak() float64 {
	const k = 8192
	columns := f32.width()
	x, z := make([]float32, columns), make([]float32, 6*columns)
	at := func(s []float32) *byte { return (*byte)(unsafe.Pointer(&s[0])) }
	f32.full[5](
		1, k, at(x), 0, 0, at(x), 0,
		at(z), 4*columns, nil, 0, 0, 0,
	)
	return 2 * 6 * k * float64(columns)
}

// BenchmarkShareOfPeak reports the best rate of products of f32 on one core and
// their share of the rate of multiply-add: the median over rounds, each of which
// measures the one right after the other, because clocks wander.
func BenchmarkShareOfPeak(b *testing.B) {
	if f32 == nil {
		b.Skip("no kernels for this CPU")
	}
	r := rand.New(rand.NewPCG(1, 1))
	for _, s := range [][3]int{
		{6, 32, 256}, {6, 16, 256},
		{64, 64, 64}, {128, 128, 128},
		{32, 256, 256}, {64, 256, 256},
		{256, 256, 256}, {512, 512, 512},
		{240, 512, 1000}, {48, 512, 256},
		{48, 1024, 256}, {48, 1000, 256},
		{24, 1024, 256}, {192, 256, 512},
		{192, 256, 1024}, {192, 256, 1000},
		{32, 256, 2048}, {32, 256, 2000},
	} {
		m, n, k := s[0], s[1], s[2]
		b.Run(fmt.Sprintf("%dx%dx%d", m, n, k), func(b *testing.B) {
			x := random[float32](layouts[0], m, k, r)
			y := random[float32](layouts[0], k, n, r)
			z := random[float32](layouts[0], m, n, r)
			scratch := make([]float32, Scratch[float32](m, n, k))
			work := 2 * float64(m) * float64(n) * float64(k)
			turns := max(1, int(1e7/work))
			var shares, rates, peaks []float64
			for range 200 * b.N {
				begin := time.Now()
				peakRate := peak()
				middle := time.Now()
				for range turns {
					Multiply(z, x, y, m, n, k, scratch)
				}
				end := time.Now()
				peakRate /= float64(middle.Sub(begin).Nanoseconds())
				rate := work * float64(turns) / float64(end.Sub(middle).Nanoseconds())
				shares, rates, peaks = append(shares, rate/peakRate), append(rates, rate), append(peaks, peakRate)
			}
			slices.Sort(shares)
			b.ReportMetric(slices.Max(rates), "best-Gop/s")
			b.ReportMetric(slices.Max(peaks), "peak-Gop/s")
			b.ReportMetric(shares[len(shares)/2], "of-peak")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkPeaks reports how many times the multiply-adds of f32 a core does of bf16 in
// pairs and of bytes in quads: the kernels of six rows, on one term again and again, the
// best of rounds in turns.
func BenchmarkPeaks(b *testing.B) {
	if f32 == nil {
		b.Skip("no kernels for this CPU")
	}
	runs := map[string]func() float64{"f32": peak}
	if HasHalves(Pairs) {
		runs["bf16"] = pairPeak
	}
	if quads != nil {
		runs["bytes"] = quadPeak
	}
	best := map[string]float64{}
	for range 400 * b.N {
		for name, run := range runs {
			begin := time.Now()
			work := run()
			best[name] = max(best[name], work/float64(time.Since(begin).Nanoseconds()))
		}
	}
	for name, rate := range best {
		b.ReportMetric(rate, name+"-Gop/s")
		b.ReportMetric(rate/best["f32"], name+"-of-f32")
	}
	b.ReportMetric(0, "ns/op")
}

// pairPeak is peak for pairs of bf16, of twelve rows where there is a kernel of those.
func pairPeak() float64 {
	const k = 8192
	f := halves().pairs
	columns := f.width()
	rows, run := 6, f.full[5]
	if f.tall != nil {
		rows, run = tallRows, f.tall
	}
	x, z := make([]float32, columns), make([]float32, rows*columns)
	at := func(s []float32) *byte { return (*byte)(unsafe.Pointer(&s[0])) }
	run(1, k, at(x), 0, 0, at(x), 0, at(z), 4*columns, nil, 0, 0, 0)
	return 4 * float64(rows) * k * float64(columns)
}

// quadPeak is peak for quads of bytes.
func quadPeak() float64 {
	const k = 8192
	columns := 2 * quads.lanes
	x, z := make([]int32, columns), make([]int32, 6*columns)
	at := func(s []int32) *byte { return (*byte)(unsafe.Pointer(&s[0])) }
	quads.full[0][5](1, k, at(x), 0, 0, at(x), 0, at(x), at(z), 4*columns, nil, 0, 0, 0)
	return 8 * 6 * k * float64(columns)
}

// BenchmarkPairs reports the times of products of f32 with kernels of one panel over those with
// kernels of pairs, and over those that leave it to the hardware to fetch operands, too: medians
// of rounds in which each has a turn. Arrays of a shape take 64 MiB together. Caches are those of
// an Emerald Rapids, and of a Zen 4, whose panels are as long for both kernels.
func BenchmarkPairs(b *testing.B) {
	if f32 != &f32Wide {
		b.Skip("no kernels of pairs for this CPU")
	}
	xeon := Caches{First: 48 << 10, Second: 2 << 20}
	benchmarkPairs(b, "EmeraldRapids", xeon, 96<<10)
	one := zen4
	one.Pairs = false
	benchmarkPairs(b, "Zen4", one, one.Panel)
}

// benchmarkPairs is BenchmarkPairs with caches, and the panels of pairs.
func benchmarkPairs(b *testing.B, name string, one Caches, panel int) {
	pairs := one
	pairs.Pairs = true
	pairs.Panel = panel
	fetched := pairs
	fetched.Fetched = true
	for _, s := range [][3]int{
		{256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024},
		{64, 4096, 1024}, {4096, 64, 4096}, {4096, 4096, 64}, {128, 128, 8192},
	} {
		b.Run(fmt.Sprintf("%s/%dx%dx%d", name, s[0], s[1], s[2]), func(b *testing.B) {
			ratios := pairRatios(s[0], s[1], s[2], one, pairs, fetched)
			b.ReportMetric(ratios[1], "pairs-times-as-fast")
			b.ReportMetric(ratios[2], "fetched-times-as-fast")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// pairRatios is the median ratios of the time with the first caches to that with each.
func pairRatios(m, n, k int, caches ...Caches) (medians []float64) {
	var all []Product[float32]
	for bytes := 0; bytes < 64<<20; bytes += 4 * (m*k + k*n + m*n) {
		all = append(all, Product[float32]{
			C: Dense(make([]float32, m*n), n),
			A: Dense(make([]float32, m*k), k),
			B: Dense(make([]float32, k*n), n),
			M: m, N: n, K: k, Fresh: true,
		})
	}
	const rounds = 15
	ratios := make([][]float64, len(caches))
	turn := 0
	for range rounds {
		var first time.Duration
		for at, c := range caches {
			x := Product[float32]{M: m, N: n, K: k, Caches: c}
			scratch := make([]float32, x.Scratch())
			begin := time.Now()
			for range len(all) {
				x := all[turn%len(all)]
				x.Caches = c
				x.Multiply(scratch)
				turn++
			}
			took := time.Since(begin)
			if at == 0 {
				first = took
			}
			ratios[at] = append(ratios[at], float64(first)/float64(took))
		}
	}
	for _, r := range ratios {
		slices.Sort(r)
		medians = append(medians, r[len(r)/2])
	}
	return medians
}
