package cpu

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/kernels/cpu/internal/workers"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// sumCases are reductions that do little else than read, with plans worth
// comparing beside the default.
var sumCases = []struct {
	name, text string
	plans      []string
}{
	{"row_sum", `
x = f32[8192,1024] parameter(0)
zero = f32[] constant(0)
r = f32[8192] reduce(x, zero), dimensions={1}, to_apply=add`, []string{"2048,1024", "1024,1024", "256,1024", "64,1024"}},
	{"column_sum", `
x = f32[8192,1024] parameter(0)
zero = f32[] constant(0)
r = f32[1024] reduce(x, zero), dimensions={0}, to_apply=add`, []string{"1024,8192", "512,8192", "512,1024", "1024,1024 splitk=8", "1024,1024 splitk=4", "1024,256 splitk=8", "1024,512 splitk=8", "1024,4096 splitk=2"}},
	{"row_sum_64", `
x = f32[131072,64] parameter(0)
zero = f32[] constant(0)
r = f32[131072] reduce(x, zero), dimensions={1}, to_apply=add`, nil},
	{"row_sum_256", `
x = f32[32768,256] parameter(0)
zero = f32[] constant(0)
r = f32[32768] reduce(x, zero), dimensions={1}, to_apply=add`, nil},
	{"row_sum_kept_64", `
x = f32[4096,64] parameter(0)
zero = f32[] constant(0)
r = f32[4096] reduce(x, zero), dimensions={1}, to_apply=add`, nil},
	{"row_sum_kept_1024", `
x = f32[128,1024] parameter(0)
zero = f32[] constant(0)
r = f32[128] reduce(x, zero), dimensions={1}, to_apply=add`, nil},
	{"row_sum_bf16", `
x = bf16[8192,2048] parameter(0)
y = f32[8192,2048] convert(x)
zero = f32[] constant(0)
r = f32[8192] reduce(y, zero), dimensions={1}, to_apply=add`, nil},
	{"argmax", `
larger { v = f32[] parameter(0)
i = s32[] parameter(1)
w = f32[] parameter(2)
j = s32[] parameter(3)
more = pred[] compare(v, w), direction=GT
nan = pred[] compare(v, v), direction=NE
keep = pred[] or(more, nan)
same = pred[] compare(v, w), direction=EQ
first = pred[] compare(i, j), direction=LT
tie = pred[] and(same, first)
here = pred[] or(keep, tie)
value = f32[] select(keep, v, w)
place = s32[] select(here, i, j)
ROOT both = (f32[], s32[]) tuple(value, place) }
ENTRY main { x = f32[512,32000] parameter(0)
n = s32[512,32000] iota(), iota_dimension=1
low = f32[] constant(-inf)
last = s32[] constant(0)
ROOT r = (f32[512], s32[512]) reduce(x, n, low, last), dimensions={1}, to_apply=larger }`, []string{"1,32000", "4,32000"}},
}

// sumSets is the arrays that are read in turn, so that they come from memory.
const sumSets = 4

// BenchmarkSums times plans of reductions, or of those of SUMS in the environment
// ("row_sum 64,1024;128,1024"), in turns with reading and with copying as many bytes,
// with one thread and with all. It logs ms and the shares of reading, in order or at four
// places, whichever is faster, and of copying, medians of the ratios within a round.
func BenchmarkSums(b *testing.B) {
	for _, c := range sumCases {
		plans := append([]string{""}, c.plans...)
		if name, rest, _ := strings.Cut(os.Getenv("SUMS"), " "); name != "" {
			if name != c.name {
				continue
			}
			plans = strings.Split(rest, ";")
		}
		p := kerneltest.Program(b, c.text)
		bench, err := check.NewBench(b.Context(), p.Fusion, 1, sumSets*p.Fusion.Params[0].Shape.Bytes())
		if err != nil {
			b.Fatal(err)
		}
		for _, threads := range []int64{1, int64(lanes())} {
			b.Run(fmt.Sprintf("%s/%d", c.name, threads), func(b *testing.B) {
				againstReading(b, p, bench, plans, threads)
			})
		}
	}
}

func againstReading(b *testing.B, p *symtile.Program, bench *check.Bench, plans []string, threads int64) {
	backend := New()
	bytes := p.Fusion.Params[0].Shape.Bytes()
	copied := newRoof(b, bytes, threads, &backend.workers)
	ordered := newReadRoof(b, bytes, threads, true, &backend.workers)
	apart := newReadRoof(b, bytes, threads, false, &backend.workers)
	names, runs := []string{"copy", "read in order", "read at four places"}, []func() time.Duration{}
	for _, r := range []*roof{copied, ordered, apart} {
		defer r.close()
		runs = append(runs, r.run)
	}
	for _, text := range plans {
		plan, err := kernels.ParsePlan(text)
		if text == "" {
			plan, err = backend.Default(b.Context(), p)
		}
		if err != nil {
			b.Fatal(err)
		}
		k, err := backend.Compile(context.Background(), p, plan.With("threads", threads))
		if err != nil {
			b.Fatal(err)
		}
		defer k.Close()
		names, runs = append(names, plan.String()), append(runs, func() time.Duration {
			d, err := bench.Run(context.Background(), k)
			if err != nil {
				b.Fatal(err)
			}
			return d
		})
	}
	seconds := make([][]float64, len(runs))
	for range 20 * b.N {
		for k, run := range runs {
			run() // the caches are then as it leaves them
			x := []float64{run().Seconds(), run().Seconds(), run().Seconds()}
			seconds[k] = append(seconds[k], middle(x))
		}
	}
	for k, x := range seconds {
		var ofRead, ofCopy []float64
		for r := range x {
			ofRead = append(ofRead, min(seconds[1][r], seconds[2][r])/x[r])
			ofCopy = append(ofCopy, seconds[0][r]/x[r])
		}
		b.Logf(
			"%-32s best %6.3f ms  median %6.3f ms  %5.3f of reading  %5.3f of copying",
			names[k], 1e3*slices.Min(x),
			1e3*middle(x), middle(ofRead), middle(ofCopy),
		)
	}
}

// newReadRoof reads bytes, in several buffers by turns, each part in order or at four
// places in turn.
func newReadRoof(b *testing.B, bytes, threads int64, ordered bool, pool *workers.Pool) *roof {
	const places, turn = 4, 4 * vector.LineBytes
	move := int64(vector.LineBytes)
	if ordered {
		move = turn
	}
	read, ok := vector.LoadRoutine(func(a *amd64.Assembler) error { return emitRead(a, move) })
	if !ok {
		b.Skip("there is no machine code")
	}
	var arrays [sumSets]kernels.Buffer
	for k := range arrays {
		arrays[k] = largeArray(b, bytes)
	}
	states := make([]*worker, threads)
	for k := range states {
		states[k] = &worker{tids: make([]int64, 1)}
	}
	parts, run := 8*threads, 0
	r := &roof{begin: func() { run++ }}
	r.programs = newProgramLoop(states, []step{func(w *worker) {
		array := arrays[run%len(arrays)].Data
		lo := bytes * w.tids[0] / parts / turn * turn
		hi := bytes * (w.tids[0] + 1) / parts / turn * turn
		apart := (hi - lo) / places
		if ordered {
			apart = vector.LineBytes
		}
		w.copyArgs = vector.CopyArgs{
			N:        (hi - lo) / turn,
			From:     unsafe.Pointer(&array[lo]),
			FromStep: apart,
		}
		read.Call(unsafe.Pointer(&w.copyArgs))
	}}, newRaster([]int64{parts}, 0), nil, pool)
	return r
}

// largeArray is bytes that were written: pages that were not are one.
func largeArray(b *testing.B, bytes int64) kernels.Buffer {
	x, err := kernels.NewBuffer(hlo.Shape{DType: hlo.U8, Dims: []int64{bytes}})
	if err != nil {
		b.Fatal(err)
	}
	for k := range x.Data {
		x.Data[k] = byte(k)
	}
	return x
}

// emitRead reads n times a line at each of four places that are some bytes apart, which
// then move by a step.
func emitRead(a *amd64.Assembler, step int64) error {
	a.Emit(amd64.MOV, amd64.RAX, amd64.Mem{Base: amd64.RDI})
	a.Emit(amd64.MOV, amd64.RSI, amd64.Mem{Base: amd64.RDI, Disp: 16})
	a.Emit(amd64.MOV, amd64.RCX, amd64.Mem{Base: amd64.RDI, Disp: 32})
	a.Emit(amd64.LEA, amd64.R8, amd64.Mem{
		Base:  amd64.RCX,
		Index: amd64.RCX,
		Scale: 2,
	})
	loop := a.NewLabel()
	a.Bind(loop)
	for k, m := range vector.EightRows(amd64.RSI, amd64.RSI, amd64.RCX, amd64.R8)[:4] {
		x, y := amd64.Y(2*k), amd64.Y(2*k+1)
		a.Emit(amd64.VADDPS, x, x, m)
		a.Emit(amd64.VADDPS, y, y, vector.OffsetBy(m, 32))
	}
	a.Emit(amd64.ADD, amd64.RSI, amd64.Imm(step))
	a.Emit(amd64.SUB, amd64.RAX, amd64.Imm(1))
	a.Emit(amd64.JG, loop)
	return nil
}
