package cpu

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/kerneltest"
)

// productCases are products m×n×k and convolutions of N, H, W, C, kernel, output channels and
// stride, as bench/peers names them, by the types of operands and result.
var productCases = []struct{ name, from, to, shapes string }{
	{"sgemm", "f32", "f32", "256×256×256 512×512×512 1024×1024×1024 2048×2048×2048 64×4096×1024 4096×64×4096 4096×4096×64 128×128×8192"},
	{"bf16gemm", "bf16", "f32", "256×256×256 512×512×512 1024×1024×1024 128×14336×4096"},
	{"s8gemm", "s8", "s32", "256×256×256 512×512×512 1024×1024×1024"},
	{"conv", "f32", "f32", "1×224×224×3×7×64×2 1×56×56×256×1×64×1 1×28×28×128×1×512×1 1×14×14×256×3×256×1 1×14×14×1024×1×2048×2"},
	{"s8conv", "s8", "s32", "1×224×224×3×7×64×2 1×56×56×256×1×64×1 1×28×28×128×1×512×1 1×14×14×256×3×256×1 1×14×14×1024×1×2048×2 1×7×7×512×3×512×1 1×7×7×512×1×2048×1"},
}

// productText is the program of a case.
func productText(from, to string, d []int) string {
	if len(d) == 3 {
		return fmt.Sprintf(`
		x = %[1]s[%[3]d,%[5]d] parameter(0)
		y = %[1]s[%[5]d,%[4]d] parameter(1)
		d = %[2]s[%[3]d,%[4]d] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}`,
			from, to, d[0], d[1], d[2])
	}
	side := d[4] / 2
	out := func(n int) int { return (n+2*side-d[4])/d[6] + 1 }
	return fmt.Sprintf(`
		x = %[1]s[%[3]d,%[4]d,%[5]d,%[6]d] parameter(0)
		w = %[1]s[%[7]d,%[7]d,%[6]d,%[8]d] parameter(1)
		c = %[2]s[%[3]d,%[11]d,%[12]d,%[8]d] convolution(x, w), window={size=%[7]dx%[7]d stride=%[9]dx%[9]d pad=%[10]d_%[10]dx%[10]d_%[10]d}, dim_labels=b01f_01io->b01f`,
		from, to, d[0], d[1], d[2], d[3], d[4], d[5], d[6], side, out(d[1]), out(d[2]))
}

// BenchmarkProducts is default plans of products and convolutions on one thread and two, on
// arrays that take 64 MiB together; PRODUCTS is a part of the names of cases to run, PLAN another plan.
func BenchmarkProducts(b *testing.B) {
	for _, c := range productCases {
		for _, shape := range strings.Fields(c.shapes) {
			name := c.name + " " + shape
			if !strings.Contains(name, os.Getenv("PRODUCTS")) {
				continue
			}
			var d []int
			for _, s := range strings.Split(shape, "×") {
				n, err := strconv.Atoi(s)
				if err != nil {
					b.Fatal(err)
				}
				d = append(d, n)
			}
			text := productText(c.from, c.to, d)
			for _, threads := range []int64{1, 2} {
				b.Run(fmt.Sprintf("%s/threads=%d", name, threads), func(b *testing.B) {
					benchmarkProduct(b, text, threads)
				})
			}
		}
	}
}

// benchmarkProduct reports the least time of a program.
func benchmarkProduct(b *testing.B, text string, threads int64) {
	p := kerneltest.Program(b, text)
	backend := New()
	plan, err := backend.Default(b.Context(), p)
	if err != nil {
		b.Fatal(err)
	}
	if text := os.Getenv("PLAN"); text != "" {
		if plan, err = kernels.ParsePlan(text); err != nil {
			b.Fatal(err)
		}
	}
	k, err := backend.Compile(b.Context(), p, plan.With("threads", threads))
	if err != nil {
		b.Fatal(err)
	}
	defer k.Close()
	bench, err := check.NewBench(b.Context(), p.Fusion, 1, 64<<20)
	if err != nil {
		b.Fatal(err)
	}
	best := time.Duration(math.MaxInt64)
	for b.Loop() {
		d, err := bench.Run(b.Context(), k)
		if err != nil {
			b.Fatal(err)
		}
		best = min(best, d)
	}
	b.ReportMetric(best.Seconds()*1e6, "µs-at-best")
	b.ReportMetric(0, "ns/op")
}
