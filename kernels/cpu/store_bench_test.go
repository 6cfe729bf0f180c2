package cpu

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// storeCases are programs whose output has ROWS rows of 1024 numbers of four bytes.
var storeCases = []struct{ name, text string }{
	{"add", `x = f32[ROWS,1024] parameter(0)
y = f32[ROWS,1024] parameter(1)
r = f32[ROWS,1024] add(x, y)`},
	{"chain", `x = f32[ROWS,1024] parameter(0)
row = f32[1024] parameter(1)
rows = f32[ROWS,1024] broadcast(row), dimensions={1}
a = f32[ROWS,1024] add(x, rows)
b = f32[ROWS,1024] abs(a)
r = f32[ROWS,1024] multiply(b, x)`},
	{"softmax", `x = f32[ROWS,1024] parameter(0)
low = f32[] constant(-inf)
zero = f32[] constant(0)
max = f32[ROWS] reduce(x, low), dimensions={1}, to_apply=maximum
maxes = f32[ROWS,1024] broadcast(max), dimensions={0}
less = f32[ROWS,1024] subtract(x, maxes)
e = f32[ROWS,1024] exponential(less)
sum = f32[ROWS] reduce(e, zero), dimensions={1}, to_apply=add
sums = f32[ROWS,1024] broadcast(sum), dimensions={0}
r = f32[ROWS,1024] divide(e, sums)`},
	{"transpose", `x = f32[1024,ROWS] parameter(0)
r = f32[ROWS,1024] transpose(x), dimensions={1,0}`},
	{"concatenate", `x = f32[ROWS,400] parameter(0)
y = f32[ROWS,624] parameter(1)
r = f32[ROWS,1024] concatenate(x, y), dimensions={1}`},
	{"pad", `x = f32[ROWS,1000] parameter(0)
z = f32[] constant(0)
r = f32[ROWS,1024] pad(x, z), padding=0_0x12_12`},
}

// BenchmarkStores times default plans with stream=0 and with stream=1 in turn, of outputs of 1
// to 64 MiB, with one thread and with all: on sets of arrays in turn, on the same arrays again and
// again, and on these with all of the output read afterwards, in the time. It logs µs of
// ordinary stores and how many times as fast those past the caches are, the median of the
// ratios within a round. STORES in the environment is one case.
func BenchmarkStores(b *testing.B) {
	for _, c := range storeCases {
		if name := os.Getenv("STORES"); name != "" && name != c.name {
			continue
		}
		for _, mib := range []int64{1, 2, 4, 8, 16, 64} {
			text := strings.ReplaceAll(c.text, "ROWS", fmt.Sprint(mib<<20/(4*1024)))
			b.Run(fmt.Sprintf("%s/%dMiB", c.name, mib), func(b *testing.B) {
				for _, threads := range []int64{1, int64(lanes())} {
					compareStores(b, text, threads)
				}
			})
		}
	}
}

// compareStores is BenchmarkStores of one program.
func compareStores(b *testing.B, text string, threads int64) {
	p := kerneltest.Program(b, text)
	backend := New()
	var ways [2]kernels.Kernel
	plan, err := backend.Default(b.Context(), p)
	if err != nil {
		b.Fatal(err)
	}
	for k := range ways {
		way := plan.With("threads", threads).With("stream", int64(k))
		if ways[k], err = backend.Compile(b.Context(), p, way); err != nil {
			b.Fatal(err)
		}
		defer ways[k].Close()
	}
	const span = 256 << 20
	sets := storeSets(b, p, span)
	out := p.Fusion.Root.Shape.Bytes()
	read := readAll(b)
	runs := max(4, int(48<<20/out))
	for _, mode := range []string{"in turn", "again", "again, read"} {
		some := sets
		if mode != "in turn" {
			some = sets[:1]
		}
		var ratios, cached []float64
		for range 12 * b.N {
			var us [2]float64
			for k, kernel := range ways {
				for n := range runs + 2 {
					set := some[n%len(some)]
					d, err := kernel.Run(b.Context(), set.In, set.Out)
					if err != nil {
						b.Fatal(err)
					}
					x := d.Seconds()
					if mode == "again, read" {
						x += read(set.Out[0].Data) / 1e3
					}
					if n >= 2 {
						us[k] += x * 1e6 / float64(runs)
					}
				}
			}
			cached = append(cached, us[0])
			ratios = append(ratios, us[0]/us[1])
		}
		b.Logf(
			"%d threads  %-12s %8.1f µs  past the caches %5.2f times as fast",
			threads, mode, middle(cached), middle(ratios),
		)
	}
}

// storeSets are arrays for the runs of a program, so many bytes of them.
func storeSets(b *testing.B, p *symtile.Program, span int64) (sets []kernels.Set) {
	in, err := check.Inputs(p.Fusion, check.Normals, 1)
	if err != nil {
		b.Fatal(err)
	}
	clone := func(s hlo.Shape) kernels.Buffer {
		x, err := kernels.NewBuffer(s)
		if err != nil {
			b.Fatal(err)
		}
		return x
	}
	for taken := int64(0); taken < span || len(sets) < 2; {
		var set kernels.Set
		for _, x := range in {
			y := clone(x.Shape)
			copy(y.Data, x.Data)
			set.In = append(set.In, y)
			taken += x.Shape.Bytes()
		}
		y := clone(p.Fusion.Root.Shape)
		clear(y.Data)
		set.Out = []kernels.Buffer{y}
		taken += p.Fusion.Root.Shape.Bytes()
		sets = append(sets, set)
	}
	return sets
}

// readAll returns what reads an array and says how many ms it took.
func readAll(b *testing.B) func([]byte) float64 {
	f, ok := vector.LoadRoutine(func(a *amd64.Assembler) error {
		return emitRead(a, 4*vector.LineBytes)
	})
	if !ok {
		b.Skip("no machine code here")
	}
	return func(data []byte) float64 {
		args := vector.CopyArgs{
			N:        int64(len(data)) / (4 * vector.LineBytes),
			From:     unsafe.Pointer(&data[0]),
			FromStep: vector.LineBytes,
		}
		return clocked(func() { f.Call(unsafe.Pointer(&args)) })
	}
}
