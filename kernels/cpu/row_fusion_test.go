package cpu

import (
	"cmp"
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
	"github.com/tilewright/tilewright/kernels/cpu/internal/rowkernel"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// rowwise are fusions of 4096 rows of 1024 that memory bounds.
var rowwise = []struct{ name, text string }{
	{"layernorm", `x = f32[4096,1024] parameter(0)
gamma = f32[1024] parameter(1)
beta = f32[1024] parameter(2)
zero = f32[] constant(0)
n = f32[] constant(0.0009765625)
ns = f32[4096] broadcast(n), dimensions={}
tiny = f32[] constant(1e-05)
tinies = f32[4096] broadcast(tiny), dimensions={}
sum = f32[4096] reduce(x, zero), dimensions={1}, to_apply=add
mean = f32[4096] multiply(sum, ns)
means = f32[4096,1024] broadcast(mean), dimensions={0}
centred = f32[4096,1024] subtract(x, means)
squares = f32[4096,1024] multiply(centred, centred)
sum2 = f32[4096] reduce(squares, zero), dimensions={1}, to_apply=add
variance = f32[4096] multiply(sum2, ns)
above = f32[4096] add(variance, tinies)
r = f32[4096] rsqrt(above)
rs = f32[4096,1024] broadcast(r), dimensions={0}
scaled = f32[4096,1024] multiply(centred, rs)
gammas = f32[4096,1024] broadcast(gamma), dimensions={1}
weighted = f32[4096,1024] multiply(scaled, gammas)
betas = f32[4096,1024] broadcast(beta), dimensions={1}
layernorm = f32[4096,1024] add(weighted, betas)`},
	{"rmsnorm", `x = f32[4096,1024] parameter(0)
gamma = f32[1024] parameter(1)
zero = f32[] constant(0)
n = f32[] constant(0.0009765625)
ns = f32[4096] broadcast(n), dimensions={}
squares = f32[4096,1024] multiply(x, x)
sum = f32[4096] reduce(squares, zero), dimensions={1}, to_apply=add
mean = f32[4096] multiply(sum, ns)
r = f32[4096] rsqrt(mean)
rs = f32[4096,1024] broadcast(r), dimensions={0}
scaled = f32[4096,1024] multiply(x, rs)
gammas = f32[4096,1024] broadcast(gamma), dimensions={1}
rmsnorm = f32[4096,1024] multiply(scaled, gammas)`},
	{"softmax", `x = f32[4096,1024] parameter(0)
low = f32[] constant(-inf)
zero = f32[] constant(0)
max = f32[4096] reduce(x, low), dimensions={1}, to_apply=maximum
maxes = f32[4096,1024] broadcast(max), dimensions={0}
less = f32[4096,1024] subtract(x, maxes)
e = f32[4096,1024] exponential(less)
sum = f32[4096] reduce(e, zero), dimensions={1}, to_apply=add
sums = f32[4096,1024] broadcast(sum), dimensions={0}
softmax = f32[4096,1024] divide(e, sums)`},
	{"bias_gelu", `a = f32[4096,1024] parameter(0)
bias = f32[1024] parameter(1)
biases = f32[4096,1024] broadcast(bias), dimensions={1}
x = f32[4096,1024] add(a, biases)
half = f32[] constant(0.5)
halves = f32[4096,1024] broadcast(half), dimensions={}
one = f32[] constant(1)
ones = f32[4096,1024] broadcast(one), dimensions={}
cubic = f32[] constant(0.044715)
cubics = f32[4096,1024] broadcast(cubic), dimensions={}
root = f32[] constant(0.7978845608)
roots = f32[4096,1024] broadcast(root), dimensions={}
square = f32[4096,1024] multiply(x, x)
bent = f32[4096,1024] multiply(square, cubics)
factor = f32[4096,1024] add(bent, ones)
inner = f32[4096,1024] multiply(x, factor)
argument = f32[4096,1024] multiply(inner, roots)
t = f32[4096,1024] tanh(argument)
above = f32[4096,1024] add(t, ones)
part = f32[4096,1024] multiply(x, halves)
gelu = f32[4096,1024] multiply(part, above)`},
	{"chain", `x = f32[4096,1024] parameter(0)
row = f32[1024] parameter(1)
rows = f32[4096,1024] broadcast(row), dimensions={1}
zero = f32[] constant(0)
zeros = f32[4096,1024] broadcast(zero), dimensions={}
half = f32[] constant(0.5)
halves = f32[4096,1024] broadcast(half), dimensions={}
a = f32[4096,1024] add(x, rows)
b = f32[4096,1024] multiply(a, halves)
c = f32[4096,1024] maximum(b, zeros)
d = f32[4096,1024] subtract(c, x)
e = f32[4096,1024] abs(d)
f = f32[4096,1024] multiply(e, rows)
g = f32[4096,1024] minimum(f, x)
chain = f32[4096,1024] add(g, halves)`},
	{"add", `x = f32[4096,1024] parameter(0)
y = f32[4096,1024] parameter(1)
add = f32[4096,1024] add(x, y)`},
	{"row_sum", `x = f32[8192,1024] parameter(0)
zero = f32[] constant(0)
row_sum = f32[8192] reduce(x, zero), dimensions={1}, to_apply=add`},
	{"column_sum", `x = f32[8192,1024] parameter(0)
zero = f32[] constant(0)
column_sum = f32[1024] reduce(x, zero), dimensions={0}, to_apply=add`},
}

// BenchmarkRows times plans of rowwise in turn with a copy of as many bytes by
// streaming stores: of all cases, or of PLANS in the environment, text that
// names a case and its plans: "softmax 64,1024,1024,1024 threads=1;…". It logs ms
// and the copy's share of each (median of the ratios). Those that end in _bf16 have
// arguments and results of that type, and so half of the bytes.
func BenchmarkRows(b *testing.B) {
	for _, c := range rowwise {
		for suffix, text := range map[string]string{"": c.text, "_bf16": inBF16(c.text)} {
			plans := strings.Split(os.Getenv("PLANS"), ";")
			name, rest, _ := strings.Cut(plans[0], " ")
			if name != "" && name != c.name+suffix {
				continue
			}
			plans[0] = rest
			b.Run(c.name+suffix, func(b *testing.B) { compareWithCopy(b, text, plans) })
		}
	}
}

func compareWithCopy(b *testing.B, text string, plans []string) {
	p, _ := landscape(b, text)
	bench, err := check.NewBench(context.Background(), p.Fusion, 1, 64<<20)
	if err != nil {
		b.Fatal(err)
	}
	type contender struct {
		name string
		run  func() float64
		ms   []float64
	}
	bytes := int64(0)
	for _, s := range append(kernels.OutputShapes(p.Fusion), p.Fusion.ParamShapes()...) {
		bytes += s.Bytes()
	}
	all := []*contender{{name: "copy", run: streamingCopy(b, bytes/2)}}
	for _, text := range plans {
		plan, err := kernels.ParsePlan(text)
		if text == "" {
			plan, err = New().Default(b.Context(), p)
			plan = plan.With("threads", 1)
		}
		if err != nil {
			b.Fatal(err)
		}
		k, err := New().Compile(context.Background(), p, plan)
		if err != nil {
			b.Fatal(err)
		}
		defer k.Close()
		all = append(all, &contender{name: plan.String(), run: func() float64 {
			d, err := bench.Run(context.Background(), k)
			if err != nil {
				b.Fatal(err)
			}
			return d.Seconds() * 1e3
		}})
	}
	for range 40 * b.N {
		for _, c := range all {
			c.ms = append(c.ms, c.run())
		}
	}
	for _, c := range all {
		ratios := make([]float64, len(c.ms))
		for k := range c.ms {
			ratios[k] = all[0].ms[k] / c.ms[k]
		}
		slices.SortFunc(ratios, cmp.Compare)
		b.Logf(
			"%-40s best %6.3f ms  median %6.3f ms  %5.3f of the copy",
			c.name, slices.Min(c.ms),
			middle(c.ms), ratios[len(ratios)/2],
		)
	}
}

func middle(x []float64) float64 {
	x = slices.Clone(x)
	slices.Sort(x)
	return x[len(x)/2]
}

// streamingCopy returns what copies so many bytes and says how many ms it took,
// in turns over buffers that no cache holds.
func streamingCopy(b *testing.B, bytes int64) func() float64 {
	f, ok := vector.LoadRoutine(func(a *amd64.Assembler) error {
		vector.EmitLoadArgs(a)
		c := &amd64.Chain{}
		c.Prefetch(amd64.PREFETCHT0, amd64.Mem{Base: amd64.RSI, Disp: 1024}, 32)
		c.Store(
			amd64.VMOVNTPS, amd64.Mem{Base: amd64.RDX}, 32,
			c.Load(amd64.VMOVUPS, amd64.Mem{Base: amd64.RSI}, 32),
		)
		loop := &amd64.Loop{
			Chain:   c,
			Counter: amd64.RAX,
			Pointers: []amd64.Pointer{
				{Reg: amd64.RSI, Bytes: 4}, {Reg: amd64.RDX, Bytes: 4},
			},
			Width:   4,
			Copies:  4,
			Scratch: amd64.RCX,
			Mask:    amd64.Y15,
		}
		err := loop.EmitWhole(a)
		a.Emit(amd64.SFENCE)
		return err
	})
	if !ok {
		b.Skip("no machine code here")
	}
	sets := max(2, 64<<20/(2*bytes))
	x, y := make([][]byte, sets), make([][]byte, sets)
	for k := range x {
		x[k], y[k] = largePages(b, bytes), largePages(b, bytes)
		for i := range x[k] {
			x[k][i] = byte(i)
		}
	}
	turn := int64(0)
	return func() float64 {
		turn = (turn + 1) % sets
		return clocked(func() {
			args := vector.ReduceArgs{
				N: bytes / 4,
				X: (*float32)(unsafe.Pointer(&x[turn][0])),
				Y: (*float32)(unsafe.Pointer(&y[turn][0])),
			}
			f.Call(unsafe.Pointer(&args))
		})
	}
}

// largePages is an array of bytes on the pages that arrays of a bench have: a copy on pages
// of 4 KiB takes up to twice the time.
func largePages(b *testing.B, bytes int64) []byte {
	x, err := kernels.NewBuffer(hlo.Shape{DType: hlo.U8, Dims: []int64{bytes}})
	if err != nil {
		b.Fatal(err)
	}
	return x.Data
}

func clocked(f func()) float64 {
	begin := time.Now()
	f()
	return time.Since(begin).Seconds() * 1e3
}

// The default plan of row fusions is one row kernel, and so is one of single rows: nothing
// between its sweeps goes through the arena.
func TestRowFusionsAreOneNest(t *testing.T) {
	if !vector.Supported() {
		t.Skip("no machine code here")
	}
	for _, c := range rowwise {
		p, b := kerneltest.Program(t, c.text), New()
		plan, err := b.Default(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		checkOneNest(t, c.name, p, plan)
		if plan.Tiles = slices.Clone(plan.Tiles); c.name != "column_sum" {
			plan.Tiles[0] = 1
			checkOneNest(t, c.name+" of single rows", p, plan)
		}
	}
}

func checkOneNest(t *testing.T, name string, p *symtile.Program, plan kernels.Plan) {
	t.Helper()
	k, err := New().Compile(context.Background(), p, plan)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	source := k.Source()
	if n := strings.Count(source, "for rows of"); n != 1 ||
		strings.Contains(source, "\n%") && strings.Contains(source, "tile at") {
		t.Errorf("%s: %d row kernels\n%s", name, n, source)
	}
}

// Rows too far from each other for the displacement of an instruction are done one
// after the other.
func TestFarRowsFitDisplacements(t *testing.T) {
	for cols, want := range map[int64][2]int64{1 << 20: {
		rowkernel.SpacedColumnRows, 64 / rowkernel.SpacedColumnRows,
	}, 1 << 27: {1, 1}} {
		p := kerneltest.Program(t, strings.ReplaceAll(`x = f32[64,$0] parameter(0)
zero = f32[] constant(0)
r = f32[$0] reduce(x, zero), dimensions={0}, to_apply=add`, "$0", fmt.Sprint(cols)))
		q, err := p.At(symtile.Tiling{1024, 64})
		if err != nil {
			t.Fatal(err)
		}
		_, s := lower(q, kernels.Plan{}, New().spec())
		for _, i := range s.items {
			if i.rows == nil {
				continue
			}
			if b := i.rows.kernel.Blocking(); b.Rows != want[0] || b.Spacing != want[1] {
				t.Errorf("%d columns: %d rows, %d apart; want %v", cols, b.Rows, b.Spacing, want)
			}
		}
	}
}

// TestCallsAreShort: no call of a row kernel does more elements than take some 200 µs, so
// that the collector need not wait for it: one row where rows are long, or as few as
// are joined.
func TestCallsAreShort(t *testing.T) {
	if !vector.Supported() {
		t.Skip("no machine code here")
	}
	for _, cols := range []string{"1000", "8192", "131072"} {
		for _, c := range rowwise {
			p := kerneltest.Program(t, strings.ReplaceAll(strings.ReplaceAll(c.text, "1024]", cols+"]"), "1024", cols))
			plan := kernels.Plan{}
			for _, d := range p.Space.Dims {
				plan.Tiles = append(plan.Tiles, d.Extent)
			}
			q, err := p.At(plan.Tiles)
			if err != nil {
				t.Fatal(err)
			}
			l, s := lower(q, plan, New().spec())
			if l.err != nil {
				t.Fatal(l.err)
			}
			for _, i := range s.items {
				n := i.rows
				if n == nil {
					continue
				}
				rows := n.kernel.Blocking().RowsPerCall
				if rows > rowkernel.FoldRows && rows*n.cols() > rowkernel.MaxReadElements {
					t.Errorf("%s of %s: %d rows of %d in a call", c.name, cols, rows, n.cols())
				}
				if !n.reducesColumns() && n.kernel.Blocking().Concurrent == 1 &&
					rows > 1 && rows*n.cols() > rowkernel.MaxCallElements {
					t.Errorf("%s of %s: %d rows of %d in a call", c.name, cols, rows, n.cols())
				}
			}
		}
	}
}

// Four sums of columns do not fit the registers of one sweep. What they share is computed
// again in the second one, or, where it is a tanh, kept for it row by row: the gradient of a
// batch norm in front of a relu.
func TestSumsOfColumnsShare(t *testing.T) {
	for _, value := range []string{"select(p, y, zeros)", "tanh(y)"} {
		for _, size := range [][2]int{{1, 8}, {4, 8}, {7, 40}, {9, 16}, {300, 1030}} {
			text := strings.NewReplacer("[R,C]", fmt.Sprintf("[%d,%d]", size[0], size[1]), "[C]", fmt.Sprintf("[%d]", size[1]), "VALUE", value).Replace(`
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY sums {
  x = f32[R,C] parameter(0)
  y = f32[R,C] parameter(1)
  u = f32[R,C] parameter(2)
  zero = f32[] constant(0)
  zeros = f32[R,C] broadcast(zero), dimensions={}
  p = pred[R,C] compare(x, zeros), direction=GT
  s = f32[R,C] VALUE
  n = f32[R,C] negate(s)
  w = f32[R,C] multiply(u, s)
  r0 = f32[C] reduce(n, zero), dimensions={0}, to_apply=add
  r1 = f32[C] reduce(w, zero), dimensions={0}, to_apply=add
  r2 = f32[C] reduce(x, zero), dimensions={0}, to_apply=add
  r3 = f32[C] reduce(s, zero), dimensions={0}, to_apply=add
  ROOT t = (f32[R,C], f32[C], f32[C], f32[C], f32[C]) tuple(w, r0, r1, r2, r3)
}`)
			m, err := hlo.Parse("sums", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			runsWhole(t, text, m.Entry)
		}
	}
}

// A group that has more arrays than a row kernel has addresses becomes kernels of components
// that share no value: the four sums of an LSTM's training step, of slices of one array.
func TestManyArraysAreSeveralNests(t *testing.T) {
	if !vector.Supported() {
		t.Skip("no machine code here")
	}
	const text = `ENTRY sums {
  x = f32[16,256] parameter(0)
  a = f32[16,64] parameter(1)
  b = f32[16,64] parameter(2)
  c = f32[16,64] parameter(3)
  d = f32[16,64] parameter(4)
  n = s32[16,64] parameter(5)
  x0 = f32[16,64] slice(x), slice={[0:16], [0:64]}
  x1 = f32[16,64] slice(x), slice={[0:16], [64:128]}
  x2 = f32[16,64] slice(x), slice={[0:16], [128:192]}
  x3 = f32[16,64] slice(x), slice={[0:16], [192:256]}
  a0 = f32[16,64] add(a, x0)
  b1 = f32[16,64] add(b, x1)
  c2 = f32[16,64] add(c, x2)
  d3 = f32[16,64] add(d, x3)
  m = s32[16,64] add(n, n)
  ROOT t = (f32[16,64], f32[16,64], f32[16,64], f32[16,64], s32[16,64]) tuple(a0, b1, c2, d3, m)
}`
	p := kerneltest.Program(t, text)
	plan := kernels.Plan{Tiles: symtile.Tiling{8, 64}}
	k, err := New().Compile(t.Context(), p, plan)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	source := k.Source()
	if n := strings.Count(source, "for rows of"); n != 2 {
		t.Errorf("%d row kernels, want one of three sums and one of the fourth\n%s", n, source)
	}
	runsWhole(t, text, p.Fusion)
}

// TestUpdatesOfSeveralArrays: updates that read nothing of each other, more arrays than a row
// kernel has registers for, are several row kernels and no strips. Updates that read one
// another stay together, and a shared operand joins nothing.
func TestUpdatesOfSeveralArrays(t *testing.T) {
	if !vector.Supported() {
		t.Skip("no machine code here")
	}
	const text = `
ENTRY updates {
  g = f32[48,256] parameter(0)
  a = f32[48,64] parameter(1)
  b = f32[48,64] parameter(2)
  c = bf16[48,64] parameter(3)
  d = f32[48,64] parameter(4)
  rate = f32[] parameter(5)
  rates = f32[48,64] broadcast(rate), dimensions={}
  g0 = f32[48,64] slice(g), slice={[0:48], [0:64]}
  g1 = f32[48,64] slice(g), slice={[0:48], [64:128]}
  g2 = f32[48,64] slice(g), slice={[0:48], [128:192]}
  g3 = f32[48,64] slice(g), slice={[0:48], [192:256]}
  s0 = f32[48,64] multiply(g0, rates)
  s1 = f32[48,64] multiply(g1, rates)
  s2 = f32[48,64] multiply(g2, rates)
  s3 = f32[48,64] multiply(g3, rates)
  n0 = f32[48,64] subtract(a, s0)
  n1 = f32[48,64] subtract(b, s1)
  wide = f32[48,64] convert(c)
  w2 = f32[48,64] subtract(wide, s2)
  n2 = bf16[48,64] convert(w2)
  n3 = f32[48,64] subtract(d, s3)
  m3 = f32[48,64] multiply(n3, n0)
  ROOT t = (f32[48,64], f32[48,64], bf16[48,64], f32[48,64], f32[48,64]) tuple(n0, n1, n2, n3, m3)
}`
	m, err := hlo.Parse("updates", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := symtile.Analyze(t.Context(), m.Entry)
	if err != nil {
		t.Fatal(err)
	}
	for _, tiles := range []symtile.Tiling{{16, 64}, {48, 64}, {1, 64}} {
		for _, stream := range []int64{0, 1} {
			plan := kernels.Plan{Tiles: tiles}.With("stream", stream)
			k, err := New().Compile(t.Context(), p, plan)
			if err != nil {
				t.Fatal(err)
			}
			source := k.Source()
			if n := strings.Count(source, "for rows of"); n < 2 || strings.Contains(source, "strips of") {
				t.Errorf("plan %s: %d row kernels\n%s", plan, n, source)
			}
			k.Close()
		}
	}
	runsWhole(t, text, m.Entry)
}
