package cpu

import (
	"context"
	"math"
	"os"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/kernels/cpu/internal/workers"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// moveCases are fusions that only move elements, with plans worth comparing;
// without one the default.
var moveCases = []struct {
	name, text string
	plans      []string
}{
	{"transpose4096", `
x = f32[4096,4096] parameter(0)
r = f32[4096,4096] transpose(x), dimensions={1,0}`, []string{"256,128", "512,128", "256,4096", "4096,128", "512,4096", "512,512"}},
	{"transpose3000", `
x = f32[3000,2000] parameter(0)
r = f32[2000,3000] transpose(x), dimensions={1,0}`, []string{"256,128", "500,128", "250,3000", "500,3000"}},
	{"transpose1024", `
x = f32[1024,1024] parameter(0)
r = f32[1024,1024] transpose(x), dimensions={1,0}`, []string{"256,1024 stream=0", "256,1024 stream=1"}},
	{"swap", `
x = f32[8,1024,16,64] parameter(0)
r = f32[8,16,1024,64] transpose(x), dimensions={0,2,1,3}`, []string{"1,16,64,64", "1,16,1024,64", "1,1,1024,64", "1,4,256,64"}},
	{"transpose_bf16", `
x = bf16[4096,4096] parameter(0)
r = bf16[4096,4096] transpose(x), dimensions={1,0}`, []string{"256,256", "256,4096"}},
	{"transpose_s8", `
x = s8[8192,4096] parameter(0)
r = s8[4096,8192] transpose(x), dimensions={1,0}`, []string{"256,512", "256,8192"}},
	{"transpose_f64", `
x = f64[4096,2048] parameter(0)
r = f64[2048,4096] transpose(x), dimensions={1,0}`, []string{"256,64", "256,4096"}},
	{"concatenate", `
x = f32[4096,1000] parameter(0)
y = f32[4096,1500] parameter(1)
r = f32[4096,2500] concatenate(x, y), dimensions={1}`, []string{"64,2500"}},
	{"pad", `
x = f32[4000,2000] parameter(0)
z = f32[] constant(0)
r = f32[4096,2100] pad(x, z), padding=48_48x50_50`, []string{"64,2100"}},
	{"slice", `
x = f32[4096,2500] parameter(0)
r = f32[4096,2000] slice(x), slice={[0:4096], [100:2100]}`, []string{"64,2000"}},
	{"reverse", `
x = f32[4096,2048] parameter(0)
r = f32[4096,2048] reverse(x), dimensions={0}`, []string{"64,2048"}},
	{"broadcast", `
x = f32[2048] parameter(0)
r = f32[8192,2048] broadcast(x), dimensions={1}`, []string{"64,2048"}},
	{"column_major", `
x = f32[4096,2048]{0,1} parameter(0)
r = f32[4096,2048] copy(x)`, []string{"256,128", "256,2048"}},
	{"gather", `
x = f32[32768,256] parameter(0)
i = s32[32768] parameter(1)
r = f32[32768,256] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,256}`, []string{"64,256"}},
	{"update", `
x = f32[8192,1024] parameter(0)
y = f32[4096,1024] parameter(1)
i = s32[] parameter(2)
r = f32[8192,1024] dynamic-update-slice(x, y, i, i)`, []string{"64,1024"}},
	{"copy", `
x = f32[4096,2048] parameter(0)
r = f32[4096,2048] copy(x)`, []string{"64,2048"}},
}

// moveSpan is bytes of the sets of arrays that are moved in turn, eight times the last cache
// of a Zen 4: of one set, f32[3000,2000] is found in that cache, and of the copy beside it not.
const moveSpan = 256 << 20

// BenchmarkMoves times copies beside non-temporal copies of as many bytes: the least
// of rounds that take turns, with one thread and with all. MOVES in the environment is one case,
// and plans for it instead of those listed ("swap 1,16,64,64;1,1,1024,64").
func BenchmarkMoves(b *testing.B) {
	for _, c := range moveCases {
		plans := c.plans
		if name, rest, some := strings.Cut(os.Getenv("MOVES"), " "); name != "" {
			if name != c.name {
				continue
			}
			plans = nil
			if some {
				plans = strings.Split(rest, ";")
			}
		}
		p := kerneltest.Program(b, strings.TrimSpace(c.text))
		bench, err := check.NewBench(b.Context(), p.Fusion, 1, moveSpan)
		if err != nil {
			b.Fatal(err)
		}
		backend := New()
		def, err := backend.Default(b.Context(), p)
		if err != nil {
			b.Fatal(err)
		}
		all := []kernels.Plan{def}
		for _, text := range plans {
			plan, err := kernels.ParsePlan(text)
			if err != nil {
				b.Fatal(err)
			}
			all = append(all, plan)
		}
		for _, threads := range []int64{1, int64(lanes())} {
			for _, plan := range all {
				plan = plan.With("threads", threads)
				b.Run(c.name+"/"+plan.String(), func(b *testing.B) {
					againstCopy(b, p, bench, plan)
				})
			}
		}
	}
}

func againstCopy(b *testing.B, p *symtile.Program, bench *check.Bench, plan kernels.Plan) {
	c := p.Fusion
	backend := New()
	k, err := backend.Compile(context.Background(), p, plan)
	if err != nil {
		b.Fatal(err)
	}
	defer k.Close()
	bytes := hlo.Shape{DType: c.Root.Shape.DType, Dims: c.Root.Shape.Dims}.Bytes()
	for _, x := range c.Params {
		bytes += x.Shape.Bytes()
	}
	roof := newRoof(b, bytes, plan.Knob("threads", 1), &backend.workers)
	defer roof.close()
	best, copied := math.Inf(1), math.Inf(1)
	for b.Loop() {
		for range 3 {
			d, err := bench.Run(context.Background(), k)
			if err != nil {
				b.Fatal(err)
			}
			best = min(best, d.Seconds())
			copied = min(copied, roof.run().Seconds())
		}
	}
	b.ReportMetric(best*1e3, "ms")
	b.ReportMetric(copied*1e3, "copy-ms")
	b.ReportMetric(copied/best, "share")
	b.ReportMetric(0, "ns/op")
}

// A roof is what moving bytes takes.
type roof struct {
	programs *programLoop
	begin    func()
}

// newRoof is a streaming copy of bytes, half of them read, in two sets of buffers by
// turns.
func newRoof(b *testing.B, bytes, threads int64, pool *workers.Pool) *roof {
	from, to, run := [2]kernels.Buffer{}, [2]kernels.Buffer{}, 0
	for k := range from {
		from[k], to[k] = largeArray(b, bytes/2), largeArray(b, bytes/2)
	}
	r := &roof{begin: func() { run++ }}
	states := make([]*worker, threads)
	for k := range states {
		states[k] = &worker{tids: make([]int64, 1)}
	}
	parts := 8 * threads
	r.programs = newProgramLoop(states, []step{func(w *worker) {
		lo := bytes / 2 * w.tids[0] / parts / 64 * 64
		hi := bytes / 2 * (w.tids[0] + 1) / parts / 64 * 64
		w.copyArgs.CopyRows(
			vector.CopyArgs{
				N:     1,
				Bytes: hi - lo,
				From:  unsafe.Pointer(&from[run%2].Data[lo]),
				To:    unsafe.Pointer(&to[run%2].Data[lo]),
				Ahead: prefetchBytes,
			},
			true,
		)
		vector.StoreFence(&w.copyArgs)
	}}, newRaster([]int64{parts}, 0), nil, pool)
	return r
}

func (r *roof) close() { r.programs.region.Close() }

func (r *roof) run() time.Duration {
	r.begin()
	d, err := r.programs.run(context.Background(), nil, nil)
	if err != nil {
		panic(err)
	}
	return d
}
