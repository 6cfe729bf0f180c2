//go:build unix

package cost

import (
	"math"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/symtile"
	corpus "github.com/tilewright/tilewright/testdata/hlo"
)

// plainDot is a product alone, with no pointwise work around it.
const plainDot = `p = f32[512,768] parameter(0)
q = f32[768,1024] parameter(1)
r = f32[512,1024] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
`

// BenchmarkRank prices and sorts what the CPU backend offers for a product alone, and for
// one with a bias and a GELU.
func BenchmarkRank(b *testing.B) {
	fusions, err := corpus.Fusions()
	if err != nil {
		b.Fatal(err)
	}
	k := slices.IndexFunc(fusions, func(f corpus.Fusion) bool { return f.Name == "gemm_bias_gelu" })
	p, err := symtile.Analyze(b.Context(), fusions[k].Computation)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("dot", func(b *testing.B) { benchmarkRank(b, program(b, plainDot)) })
	b.Run("gemm_bias_gelu", func(b *testing.B) { benchmarkRank(b, p) })
}

// benchmarkRank reports the plans of a program that are ranked a second, and a second of
// processor time, which other programs disturb less.
func benchmarkRank(b *testing.B, p *symtile.Program) {
	backend := cpu.New()
	plans := slices.Collect(backend.Plans(b.Context(), p))
	x, err := backend.Pricer(p)
	if err != nil {
		b.Fatal(err)
	}
	m := &Model{}
	b.ReportAllocs()
	start := processorSeconds()
	for b.Loop() {
		if _, err := m.Rank(b.Context(), x, plans); err != nil {
			b.Fatal(err)
		}
	}
	each := float64(b.N * len(plans))
	b.ReportMetric(each/(processorSeconds()-start), "plans/cpu-s")
	b.ReportMetric(each/b.Elapsed().Seconds(), "plans/s")
	allocs := testing.AllocsPerRun(1, func() { _, _ = m.Rank(b.Context(), x, plans) })
	b.ReportMetric(math.Round(allocs/float64(len(plans))), "allocs/plan")
}

// processorSeconds is what this process has used of processors.
func processorSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
