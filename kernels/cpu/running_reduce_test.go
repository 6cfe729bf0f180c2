package cpu

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/cpu/internal/running"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// cumulative is a fusion of a reduce-window along one dimension, of what is computed, and
// something computed of it.
const cumulative = `HloModule cumulative
combine {
  a = TYPE[] parameter(0)
  b = TYPE[] parameter(1)
  ROOT r = TYPE[] MONOID(a, b)
}
ENTRY main {
  p = TYPE[DIMS] parameter(0)
PRODUCER  init = TYPE[] constant(INIT)
  y = TYPE[RESULT] reduce-window(OPERAND, init), window={WINDOW}, to_apply=combine
  ROOT r = TYPE[RESULT] CONSUMER
}`

// A cumulativeCase is a text of cumulative.
type cumulativeCase struct {
	dtype, monoid, init string
	dims                []int64
	axis                int
	backward            bool
	more                int64 // Elements of a window besides as many as the array has.
	around              int64 // Windows of padding alone.
	stride, dilation    int64
	computed            bool // The operand is, and something of the result.
}

// text is the module.
func (c cumulativeCase) text() string {
	var size, pad, stride, dilation []string
	for k, n := range c.dims {
		if k != c.axis {
			size, pad = append(size, "1"), append(pad, "0_0")
			stride, dilation = append(stride, "1"), append(dilation, "1")
			continue
		}
		s, d := max(1, c.stride), max(1, c.dilation)
		window := n + c.more
		low, high := (window-1)*d-(n-1)*(s-1), int64(0)
		if c.backward {
			low, high = high, low
		}
		low += c.around
		if c.backward {
			low, high = low-c.around, high+c.around
		}
		size = append(size, fmt.Sprint(window))
		pad = append(pad, fmt.Sprintf("%d_%d", low, high+(n-1)*(s-1)*2))
		stride = append(stride, fmt.Sprint(s))
		dilation = append(dilation, fmt.Sprint(d))
	}
	result := slices.Clone(c.dims)
	result[c.axis] += c.around
	operand, producer, consumer := "p", "", "copy(y)"
	if c.computed {
		operand, producer, consumer = "x", "  x = TYPE[DIMS] MONOID(p, p)\n", "MONOID(y, x)"
	}
	text := strings.Replace(cumulative, "PRODUCER", producer, 1)
	return strings.NewReplacer(
		"WINDOW", "size="+strings.Join(size, "x")+" pad="+strings.Join(pad, "x")+
			" stride="+strings.Join(stride, "x")+" rhs_dilate="+strings.Join(dilation, "x"),
		"TYPE", c.dtype, "INIT", c.init, "MONOID", c.monoid,
		"OPERAND", operand,
		"CONSUMER", strings.ReplaceAll(consumer, "MONOID", c.monoid),
		"RESULT", strings.Trim(strings.ReplaceAll(fmt.Sprint(result), " ", ","), "[]"),
		"DIMS", strings.Trim(strings.ReplaceAll(fmt.Sprint(c.dims), " ", ","), "[]"),
	).Replace(text)
}

// runs is runsCumulative of the case.
func (c cumulativeCase) runs(t *testing.T) bool {
	t.Helper()
	return runsCumulative(t, c.text(), c.monoid)
}

// runsCumulative verifies plans of a text, with whole windows and tiles of all positions
// and of fewer, and reports whether all of them ran along the dimension.
func runsCumulative(t *testing.T, text, monoid string) (along bool) {
	t.Helper()
	m, err := hlo.Parse("cumulative", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	p, err := symtile.Analyze(t.Context(), m.Entry)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	v, err := check.NewVerifier(context.Background(), m.Entry, 1)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	along = true
	for _, part := range []int64{1, 2, 3} {
		tiling := make(symtile.Tiling, len(p.Space.Dims))
		for k, d := range p.Space.Dims {
			if tiling[k] = d.Extent; d.Kind == symtile.Parallel {
				tiling[k] = (d.Extent + part - 1) / part
			}
		}
		k, err := New().Compile(context.Background(), p, kernels.Plan{Tiles: tiling})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		along = along && strings.Contains(k.(*kernel).Source(), "running "+monoid)
		if err := v.Verify(context.Background(), k); err != nil {
			t.Errorf("%v: %v\n%s", tiling, err, text)
		}
		if part == 2 {
			allocatesNothing(t, m.Entry, k)
		}
		k.Close()
	}
	return along
}

// allocatesNothing runs a kernel a few times.
func allocatesNothing(t *testing.T, c *hlo.Computation, k kernels.Kernel) {
	t.Helper()
	bench, err := check.NewBench(context.Background(), c, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	const runs = 3 // of which the runtime may allocate once by itself
	if n := testing.AllocsPerRun(runs, func() {
		bench.Run(context.Background(), k)
	}); n > 0 {
		t.Errorf("%v allocations a run", n)
	}
}

// cumulativeTypes are the operations of each type, with what changes nothing.
var cumulativeTypes = map[string]map[string]string{
	"f32":  {"add": "0", "multiply": "1", "maximum": "-inf", "minimum": "inf"},
	"bf16": {"add": "0", "maximum": "-inf"},
	"f64":  {"add": "0", "multiply": "1", "maximum": "-inf", "minimum": "inf"},
	"s32":  {"add": "0", "multiply": "1", "xor": "0", "and": "-1"},
	"u8":   {"add": "0", "maximum": "0", "minimum": "255"},
	"u64":  {"add": "0", "maximum": "0", "minimum": "18446744073709551615"},
	"pred": {"and": "true", "or": "false"},
}

// Windows up to an element, or from it on, are computed one from the other, whatever
// the type, the operation, the dimension, the direction and the tiles.
func TestRunningReduce(t *testing.T) {
	for dtype, monoids := range cumulativeTypes {
		for monoid, init := range monoids {
			for n, dims := range [][]int64{{37}, {3, 64}, {41, 20}, {2, 9, 3}} {
				for axis, extent := range dims {
					if extent < running.MinSize {
						continue
					}
					for _, backward := range []bool{false, true} {
						c := cumulativeCase{
							dtype: dtype, monoid: monoid, init: init, dims: dims,
							axis: axis, backward: backward,
							more:     int64(n%2) * 5,
							computed: n%3 == 1,
						}
						if n%3 != 1 {
							c.around = int64(n) * 3 / 2
						}
						if !c.runs(t) {
							t.Errorf("windows are reduced one by one:\n%s", c.text())
						}
					}
				}
			}
		}
	}
}

// cumulativeComputations are computations of two numbers that are no single operation, the
// latter with a constant, which strips of pairs have no code for.
var cumulativeComputations = []string{`
  m = TYPE[] maximum(a, b)
  d = TYPE[] subtract(a, b)
  equal = pred[] compare(d, d), direction=NE
  sum = TYPE[] add(a, b)
  size = TYPE[] abs(d)
  less = TYPE[] negate(size)
  e = TYPE[] exponential(less)
  l = TYPE[] log-plus-one(e)
  log = TYPE[] add(m, l)
  ROOT r = TYPE[] select(equal, sum, log)`, `
  zero = TYPE[] constant(0)
  x = TYPE[] add(a, zero)
  ROOT r = TYPE[] maximum(x, b)`,
}

// So are results of other computations that a value changes nothing of, each with the right
// operand on its right.
func TestRunningComputation(t *testing.T) {
	for n, body := range cumulativeComputations {
		for _, dims := range [][]int64{{37}, {70, 9}, {9, 70}, {2, 9, 3}} {
			for axis, extent := range dims {
				if extent < running.MinSize {
					continue
				}
				for _, backward := range []bool{false, true} {
					c := cumulativeCase{
						dtype: []string{"f32", "f64", "bf16"}[(n+axis)%3], monoid: "add", init: "-inf",
						dims: dims, axis: axis, backward: backward,
						computed: len(dims) == 2, more: int64(axis) * 3,
					}
					text := strings.Replace(c.text(), "ROOT r = "+c.dtype+"[] add(a, b)",
						strings.ReplaceAll(body, "TYPE", c.dtype), 1)
					if !runsCumulative(t, text, "computation") {
						t.Errorf("windows are reduced one by one:\n%s", text)
					}
				}
			}
		}
	}
	c := cumulativeCase{dtype: "f32", monoid: "add", init: "0", dims: []int64{2, 24}, axis: 1}
	text := strings.Replace(c.text(), "ROOT r = f32[] add(a, b)",
		strings.ReplaceAll(cumulativeComputations[0], "TYPE", c.dtype), 1)
	if runsCumulative(t, text, "computation") {
		t.Errorf("the logarithm of sums runs along the dimension from 0, which is 1 in a sum")
	}
}

// A value to begin with that changes sums, and windows with gaps, are reduced window by
// window; a maximum may begin with anything.
func TestNoRunningReduce(t *testing.T) {
	base := cumulativeCase{dtype: "f32", monoid: "add", init: "0", dims: []int64{2, 24}, axis: 1}
	for what, change := range map[string]func(*cumulativeCase){
		"a sum from 1":      func(c *cumulativeCase) { c.init = "1" },
		"a sum from -0":     func(c *cumulativeCase) { c.init = "-0" },
		"a product from 2":  func(c *cumulativeCase) { c.monoid, c.init = "multiply", "2" },
		"dilated windows":   func(c *cumulativeCase) { c.dilation = 2 },
		"windows of stride": func(c *cumulativeCase) { c.stride = 2 },
		"a window less":     func(c *cumulativeCase) { c.more = -1 },
		"the same backward": func(c *cumulativeCase) { c.more, c.backward = -1, true },
		"few elements":      func(c *cumulativeCase) { c.dims = []int64{24, 5} },
	} {
		c := base
		if change(&c); c.runs(t) {
			t.Errorf("%s: runs along the dimension", what)
		}
	}
	other := strings.Replace(
		strings.Replace(base.text(), "y = f32[2,24] reduce-window(p, init)", `seven = f32[] constant(7)
  z = f32[2,47] pad(p, seven), padding=0_0x23_0
  y = f32[2,24] reduce-window(z, init)`, 1),
		"0_0x23_0 stride", "0_0x0_0 stride", 1,
	)
	if runsCumulative(t, other, "add") {
		t.Errorf("a sum of what is padded with 7 runs along the dimension")
	}
	base.monoid, base.init = "maximum", "0.5"
	if !base.runs(t) {
		t.Errorf("a maximum from 0.5 is reduced window by window")
	}
}

// cumulativeSums are arrays of f32 and the dimension along which they are summed.
var cumulativeSums = []cumulativeCase{
	{dims: []int64{512, 1024}, axis: 1},
	{dims: []int64{512, 1024}, axis: 1, backward: true},
	{dims: []int64{2048, 256}, axis: 0},
	{dims: []int64{1, 1 << 20}, axis: 1},
}

// BenchmarkCumulative is default plans of cumulative sums on one thread, in turns with a
// loop in Go that adds one number after the other.
func BenchmarkCumulative(b *testing.B) {
	for _, c := range cumulativeSums {
		c.dtype, c.monoid, c.init = "f32", "add", "0"
		p := kerneltest.Program(b, c.text())
		plan, err := New().Default(b.Context(), p)
		if err != nil {
			b.Fatal(err)
		}
		k, err := New().Compile(b.Context(), p, plan.With("threads", 1))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("%v,%d,%v", c.dims, c.axis, c.backward), func(b *testing.B) {
			benchmarkSums(b, c, k)
		})
		k.Close()
	}
}

// benchmarkSums reports the least time of a kernel and by how much that of a loop is
// longer.
func benchmarkSums(b *testing.B, c cumulativeCase, k kernels.Kernel) {
	shape := hlo.Shape{DType: hlo.F32, Dims: c.dims}
	in, out := newFloats(b, shape), newFloats(b, shape)
	best, loop := math.Inf(1), math.Inf(1)
	for b.Loop() {
		t, err := k.Run(b.Context(), []kernels.Buffer{in}, []kernels.Buffer{out})
		if err != nil {
			b.Fatal(err)
		}
		best = min(best, t.Seconds())
		start := time.Now()
		c.sums(in, out)
		loop = min(loop, time.Since(start).Seconds())
	}
	b.ReportMetric(best*1e6, "µs-at-best")
	b.ReportMetric(loop/best, "times-the-loop")
}

// newFloats is an array of zeros.
func newFloats(b *testing.B, s hlo.Shape) kernels.Buffer {
	x, err := kernels.NewBuffer(s)
	if err != nil {
		b.Fatal(err)
	}
	return x
}

// sums are those of each row in turn, or of all columns row by row.
func (c cumulativeCase) sums(in, out kernels.Buffer) {
	src := unsafe.Slice((*float32)(unsafe.Pointer(&in.Data[0])), len(in.Data)/4)
	dst := unsafe.Slice((*float32)(unsafe.Pointer(&out.Data[0])), len(out.Data)/4)
	inner := hlo.Elements(c.dims[c.axis+1:])
	part := c.dims[c.axis] * inner
	for ; len(src) > 0; src, dst = src[part:], dst[part:] {
		if inner == 1 {
			sum := float32(0)
			for k, x := range src[:part] {
				sum += x
				dst[k] = sum
			}
			continue
		}
		copy(dst[:inner], src)
		for k := inner; k < part; k++ {
			dst[k] = dst[k-inner] + src[k]
		}
	}
}
