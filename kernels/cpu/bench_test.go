package cpu

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
	corpus "github.com/tilewright/tilewright/testdata/hlo"
)

// landscapes are fusions whose plans are worth comparing.
var landscapes = []struct{ name, text string }{
	{"gemm", `
x = f32[256,256] parameter(0)
y = f32[256,256] parameter(1)
dot = f32[256,256] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}`},
	{"gemm_s8", `
x = s8[256,256] parameter(0)
y = s8[256,256] parameter(1)
dot = s32[256,256] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}`},
	{"softmax", `
x = f32[512,1024] parameter(0)
low = f32[] constant(-inf)
zero = f32[] constant(0)
max = f32[512] reduce(x, low), dimensions={1}, to_apply=maximum
maxes = f32[512,1024] broadcast(max), dimensions={0}
less = f32[512,1024] subtract(x, maxes)
e = f32[512,1024] exponential(less)
sum = f32[512] reduce(e, zero), dimensions={1}, to_apply=add
sums = f32[512,1024] broadcast(sum), dimensions={0}
softmax = f32[512,1024] divide(e, sums)`},
	{"layernorm", `
x = f32[512,1024] parameter(0)
gamma = f32[1024] parameter(1)
zero = f32[] constant(0)
n = f32[] constant(0.0009765625)
ns = f32[512] broadcast(n), dimensions={}
sum = f32[512] reduce(x, zero), dimensions={1}, to_apply=add
mean = f32[512] multiply(sum, ns)
means = f32[512,1024] broadcast(mean), dimensions={0}
centred = f32[512,1024] subtract(x, means)
squares = f32[512,1024] multiply(centred, centred)
sum2 = f32[512] reduce(squares, zero), dimensions={1}, to_apply=add
variance = f32[512] multiply(sum2, ns)
r = f32[512] rsqrt(variance)
rs = f32[512,1024] broadcast(r), dimensions={0}
scaled = f32[512,1024] multiply(centred, rs)
gammas = f32[512,1024] broadcast(gamma), dimensions={1}
layernorm = f32[512,1024] multiply(scaled, gammas)`},
	{"chain", `
x = f32[512,1024] parameter(0)
y = f32[1024] parameter(1)
ys = f32[512,1024] broadcast(y), dimensions={1}
half = f32[] constant(0.5)
halves = f32[512,1024] broadcast(half), dimensions={}
a = f32[512,1024] add(x, ys)
b = f32[512,1024] multiply(a, halves)
c = f32[512,1024] tanh(b)
d = f32[512,1024] multiply(c, halves)
e = f32[512,1024] add(d, halves)
chain = f32[512,1024] multiply(a, e)`},
	{"chain_bf16", `
x = bf16[512,1024] parameter(0)
y = bf16[512,1024] parameter(1)
a = bf16[512,1024] add(x, y)
b = bf16[512,1024] multiply(a, x)
chain = bf16[512,1024] maximum(b, y)`},
	{"chain_f64", `
x = f64[512,1024] parameter(0)
y = f64[512,1024] parameter(1)
a = f64[512,1024] add(x, y)
b = f64[512,1024] multiply(a, x)
c = f64[512,1024] maximum(b, y)
d = f64[512,1024] abs(c)
chain = f64[512,1024] sqrt(d)`},
	{"chain_s32", `
x = s32[512,1024] parameter(0)
y = s32[512,1024] parameter(1)
a = s32[512,1024] add(x, y)
b = s32[512,1024] multiply(a, x)
c = s32[512,1024] maximum(b, y)
d = s32[512,1024] xor(c, x)
less = pred[512,1024] compare(d, y), direction=LT
chain = s32[512,1024] select(less, d, a)`},
	{"chain_s8", `
x = s8[512,1024] parameter(0)
y = s8[512,1024] parameter(1)
a = s8[512,1024] add(x, y)
b = s8[512,1024] multiply(a, x)
c = s8[512,1024] maximum(b, y)
d = s8[512,1024] xor(c, x)
e = s8[512,1024] subtract(d, a)
chain = s8[512,1024] and(e, b)`},
	{"transpose", `
x = f32[1024,1024] parameter(0)
transpose = f32[1024,1024] transpose(x), dimensions={1,0}`},
	{"column_sum", `
x = f32[1024,1024] parameter(0)
zero = f32[] constant(0)
sum = f32[1024] reduce(x, zero), dimensions={0}, to_apply=add`},
}

// BenchmarkLandscape times a sample of the plans of each fusion once and
// reports the best, the median, the worst and the default, in ms.
func BenchmarkLandscape(b *testing.B) {
	for _, l := range landscapes {
		b.Run(l.name, func(b *testing.B) {
			p, bench := landscape(b, l.text)
			backend := New()
			plans := slices.Collect(backend.Plans(b.Context(), p))
			rng := rand.New(rand.NewPCG(3, 4))
			rng.Shuffle(len(plans), func(i, j int) {
				plans[i], plans[j] = plans[j], plans[i]
			})
			plans = plans[:min(len(plans), 60)]
			def, err := backend.Default(b.Context(), p)
			if err != nil {
				b.Fatal(err)
			}
			type timed struct {
				plan kernels.Plan
				ms   float64
			}
			var all []timed
			for range b.N {
				all = all[:0]
				for _, plan := range plans {
					all = append(all, timed{plan, milliseconds(b, backend, p, bench, plan)})
				}
			}
			slices.SortFunc(all, func(x, y timed) int { return cmp.Compare(x.ms, y.ms) })
			b.ReportMetric(all[0].ms, "best-ms")
			b.ReportMetric(all[len(all)/2].ms, "median-ms")
			b.ReportMetric(all[len(all)-1].ms, "worst-ms")
			b.ReportMetric(milliseconds(b, backend, p, bench, def), "default-ms")
			b.Logf(
				"%d plans; best %s, worst %s, default %s",
				len(all), all[0].plan,
				all[len(all)-1].plan, def,
			)
		})
	}
}

func landscape(t testing.TB, text string) (*symtile.Program, *check.Bench) {
	t.Helper()
	p := kerneltest.Program(t, strings.TrimSpace(text))
	bench, err := check.NewBench(context.Background(), p.Fusion, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	return p, bench
}

// milliseconds is the best of a few runs of a plan.
func milliseconds(
	t testing.TB, backend *Backend, p *symtile.Program,
	bench *check.Bench, plan kernels.Plan,
) float64 {
	k, err := backend.Compile(context.Background(), p, plan)
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", plan, err))
	}
	defer k.Close()
	return 1e3 * kerneltest.Best(3, func() time.Duration {
		d, err := bench.Run(context.Background(), k)
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}

// BenchmarkDefault runs the default plan of every fusion of the corpus on one
// thread and reports how fast its arguments and results pass.
func BenchmarkDefault(b *testing.B) {
	all, err := corpus.Fusions()
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range all {
		b.Run(f.Name, func(b *testing.B) {
			p, err := symtile.Analyze(b.Context(), f.Computation)
			if err != nil {
				b.Fatal(err)
			}
			plan, err := New().Default(b.Context(), p)
			if err != nil {
				b.Fatal(err)
			}
			k, bench := benched(b, p, plan.With("threads", 1))
			defer k.Close()
			bytes := int64(0)
			for _, s := range append(kernels.OutputShapes(p.Fusion), p.Fusion.ParamShapes()...) {
				bytes += s.Bytes()
			}
			b.SetBytes(bytes)
			for b.Loop() {
				if _, err := bench.Run(context.Background(), k); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
