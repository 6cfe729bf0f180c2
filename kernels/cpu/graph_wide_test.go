package cpu

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// wideSteps are operations that graphs have besides those of graphSteps: gathers and scatters
// between others, reductions along several dimensions and of several results, products over
// any dimensions, windows of two, convolutions, logic and bits.
var wideSteps = []func(g *graph, x graphValue){
	(*graph).clamped, (*graph).logic, (*graph).logic, (*graph).bits, (*graph).rounds,
	(*graph).gathered, (*graph).gathered, (*graph).scattered, (*graph).scattered,
	(*graph).reducedAll, (*graph).reducedAll, (*graph).largest, (*graph).pair,
	(*graph).contracted, (*graph).contracted, (*graph).pooled, (*graph).pooled, (*graph).convolved,
	(*graph).choice, (*graph).scalar, (*graph).smooth, (*graph).placed, (*graph).rotated, (*graph).bounded1,
}

// wideComputations are what reductions and scatters apply. Types replace T.
const wideComputations = `add.T { a = T[] parameter(0)
b = T[] parameter(1)
ROOT c = T[] add(a, b) }
maximum.T { a = T[] parameter(0)
b = T[] parameter(1)
ROOT c = T[] maximum(a, b) }
minimum.T { a = T[] parameter(0)
b = T[] parameter(1)
ROOT c = T[] minimum(a, b) }
set.T { a = T[] parameter(0)
ROOT b = T[] parameter(1) }
arg.T { a = T[] parameter(0)
i = s32[] parameter(1)
b = T[] parameter(2)
j = s32[] parameter(3)
g = pred[] compare(a, b), direction=GT
n = pred[] compare(a, a), direction=NE
o = pred[] or(g, n)
e = pred[] compare(a, b), direction=EQ
l = pred[] compare(i, j), direction=LT
f = pred[] and(e, l)
h = pred[] or(o, f)
v = T[] select(o, a, b)
k = s32[] select(h, i, j)
ROOT t = (T[], s32[]) tuple(v, k) }
two.T { a = T[] parameter(0)
c = T[] parameter(1)
b = T[] parameter(2)
d = T[] parameter(3)
s = T[] add(a, b)
m = T[] maximum(c, d)
ROOT t = (T[], T[]) tuple(s, m) }
`

// randomWide is randomGraph with the operations of wideSteps, too.
func randomWide(rng *rand.Rand) (text string, rounded bool) {
	g := newGraph(rng)
	var dims []int64
	for range 1 + rng.IntN(3) {
		dims = append(dims, pickExtent(rng))
	}
	if len(dims) < 3 && rng.IntN(2) == 0 {
		dims[rng.IntN(len(dims))] = []int64{16, 17, 40, 64, 72, 130}[rng.IntN(6)]
	}
	if rng.IntN(3) == 0 {
		g.dtype = graphTypes[rng.IntN(len(graphTypes))]
	}
	g.parameter(dims)
	for range 3 + rng.IntN(9) {
		x := g.values[len(g.values)-1]
		if rng.IntN(5) < 2 {
			x = g.values[rng.IntN(len(g.values))]
		}
		if len(x.dims) == 0 {
			continue
		}
		if rng.IntN(3) == 0 {
			graphSteps[rng.IntN(len(graphSteps))](g, x)
		} else {
			wideSteps[rng.IntN(len(wideSteps))](g, x)
		}
	}
	rounded = g.finish()
	return g.module(), rounded
}

// module is the text with the computations that it applies.
func (g *graph) module() string {
	text := wideFolds.ReplaceAllString(g.text.String(), "= $1[$2 to_apply=$3.$1\n")
	var folds strings.Builder
	folds.WriteString("HloModule wide\n")
	for _, d := range append(slices.Clone(graphTypes), hlo.F32) {
		if strings.Contains(text, "."+d.String()+"\n") {
			s := strings.ReplaceAll(wideComputations, "T[", d.String()+"[")
			folds.WriteString(strings.ReplaceAll(s, ".T {", "."+d.String()+" {"))
		}
	}
	return folds.String() + "ENTRY e {\n" + text + "}\n"
}

// wideFolds are reductions by a name alone, which has its type added.
var wideFolds = regexp.MustCompile("= ([a-z0-9]+)\\[(.*) to_apply=(add|maximum|minimum)\n")

// number is a constant.
func (g *graph) number(d hlo.DType, n int64) graphValue {
	return g.inner(graphValue{dtype: d}, "constant(%d)", n)
}

// all is a constant as an array like x.
func (g *graph) all(x graphValue, n int64) graphValue {
	return g.inner(x.bounded(float64(n)).exact(), "broadcast(%s), dimensions={}", g.number(x.dtype, n))
}

// exact is v, not rounded.
func (v graphValue) exact() graphValue {
	v.rounded = false
	return v
}

func (g *graph) clamped(x graphValue) {
	lo, hi := g.number(x.dtype, 1), g.number(x.dtype, 2)
	if g.rng.IntN(2) == 0 {
		lo, hi = g.like(x), g.like(x)
	}
	g.add(x, "clamp(%s, %s, %s)", lo, x, hi)
}

// logic makes elements of comparisons that are combined.
func (g *graph) logic(x graphValue) {
	p, y := x.as(hlo.Pred), g.like(x)
	if x.rounded || y.rounded {
		return
	}
	a := g.inner(p, "compare(%s, %s), direction=%s", x, y, []string{"LT", "GE", "EQ", "NE"}[g.rng.IntN(4)])
	b := g.inner(p, "compare(%s, %s), direction=GT", g.like(x).only(g, x), g.all(x, 2))
	c := g.inner(p, "%s(%s, %s)", []string{"and", "or", "xor"}[g.rng.IntN(3)], a, b)
	if g.rng.IntN(3) == 0 {
		c = g.inner(p, "not(%s)", c)
	}
	if g.rng.IntN(3) == 0 { // joined to itself, as bytes
		k := g.rng.IntN(len(x.dims))
		c = g.inner(p, "reverse(%s), dimensions={%d}", c, k)
	}
	if g.rng.IntN(3) == 0 {
		g.add(x.bounded(1).exact(), "convert(%s)", c)
		return
	}
	g.add(x, "select(%s, %s, %s)", c, x, g.like(x))
}

// only is v, or x where v is rounded.
func (v graphValue) only(g *graph, x graphValue) graphValue {
	if v.rounded {
		return x
	}
	return v
}

func isWhole(d hlo.DType) bool { return !d.IsFloat() && d != hlo.Pred }

// bits are operations of whole numbers.
func (g *graph) bits(x graphValue) {
	if x.dtype == hlo.F32 && !x.rounded && g.rng.IntN(2) == 0 { // there and back
		g.add(x, "bitcast-convert(%s)", g.inner(x.as(hlo.S32), "bitcast-convert(%s)", g.perhaps(x)))
		return
	}
	if !isWhole(x.dtype) {
		return
	}
	y := g.like(x)
	switch op := []string{"and", "or", "xor", "not", "popcnt", "count-leading-zeros", "divide", "remainder", "shift-left", "shift-right-logical", "shift-right-arithmetic"}[g.rng.IntN(11)]; op {
	case "and", "or", "xor":
		g.add(x.bounded(2*max(x.bound, y.bound)), "%s(%s, %s)", op, x, y)
	case "not":
		g.add(x.bounded(x.bound+1), "not(%s)", x)
	case "popcnt", "count-leading-zeros":
		g.add(x.bounded(64), "%s(%s)", op, x)
	case "divide", "remainder":
		g.add(x, "%s(%s, %s)", op, x, g.all(x, 1+g.rng.Int64N(5)))
	default:
		if isByte(x.dtype) {
			g.add(x, "%s(%s, %s)", op, x, g.all(x, g.rng.Int64N(9)))
		}
	}
}

func (g *graph) rounds(x graphValue) {
	if !x.dtype.IsFloat() || x.rounded {
		return
	}
	op := []string{"floor", "ceil", "round-nearest-even", "round-nearest-afz"}[g.rng.IntN(4)]
	half := g.inner(x, "multiply(%s, %s)", x, g.inner(x.exact(), "broadcast(%s), dimensions={}", g.inner(graphValue{dtype: x.dtype}, "constant(0.5)")))
	g.add(x, "%s(%s)", op, half)
}

// places are indices, of n vectors of some numbers, that are a parameter.
func (g *graph) places(dims ...int64) graphValue {
	g.params++
	return g.inner(graphValue{dtype: hlo.S32, dims: dims}, "parameter(%d)", g.params-1)
}

// gathered takes slices along a dimension.
func (g *graph) gathered(x graphValue) {
	k := g.rng.IntN(len(x.dims))
	n := pickExtent(g.rng)
	if g.params > 5 || x.dims[k] == 0 || product64(x.dims)/x.dims[k]*n > g.most {
		return
	}
	i := g.places(n)
	sizes, dims := slices.Clone(x.dims), slices.Clone(x.dims)
	sizes[k], dims[k] = 1, n
	var offsets []int
	for d := range dims {
		if d != k {
			offsets = append(offsets, d)
		}
	}
	g.add(
		x.of(dims), "gather(%s, %s), offset_dims={%s}, collapsed_slice_dims={%d}, start_index_map={%d}, index_vector_dim=1, slice_sizes={%s}",
		x, i, list(offsets), k, k, listOf(sizes),
	)
}

func listOf(n []int64) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(n), "[]"), " ", ",")
}

// scattered combines slices with x along a dimension.
func (g *graph) scattered(x graphValue) {
	k := g.rng.IntN(len(x.dims))
	n := pickExtent(g.rng)
	if g.params > 5 || product64(x.dims) == 0 || x.dtype != g.dtype {
		return
	}
	i := g.places(n, 1)
	dims := slices.Clone(x.dims)
	dims[k] = n
	u, ok := g.mate(x, func(v graphValue) bool { return slices.Equal(v.dims, dims) })
	if !ok || !slices.Equal(u.dims, dims) {
		g.params++
		u = g.inner(x.of(dims).bounded(3).exact(), "parameter(%d)", g.params-1)
	}
	bound := x.bound + float64(n)*u.bound
	fold := []string{"add", "maximum", "minimum", "set"}[g.rng.IntN(4)]
	if !x.fits(bound) || product64(dims) > g.most {
		return
	}
	var windows []int
	for d := range dims {
		if d != k {
			windows = append(windows, d)
		}
	}
	g.add(
		x.bounded(bound), "scatter(%s, %s, %s), update_window_dims={%s}, inserted_window_dims={%d}, scatter_dims_to_operand_dims={%d}, index_vector_dim=1, to_apply=%s.%s",
		x, i, u, list(windows), k, k, fold, x.dtype,
	)
}

// axes are some dimensions of x, at least one.
func (g *graph) axes(x graphValue) (over []int, kept []int64) {
	for d, n := range x.dims {
		if g.rng.IntN(2) == 0 || d == len(x.dims)-1 && over == nil {
			over = append(over, d)
		} else {
			kept = append(kept, n)
		}
	}
	return over, kept
}

// reducedAll reduces along several dimensions, perhaps all.
func (g *graph) reducedAll(x graphValue) {
	over, kept := g.axes(x)
	n := float64(max(1, product64(x.dims)/max(1, product64(kept))))
	fold := []string{"add", "maximum", "minimum"}[g.rng.IntN(3)]
	if !x.fits(x.bound*n) || isByte(x.dtype) || product64(x.dims) == 0 {
		return
	}
	y := g.inner(x.of(kept).bounded(x.bound*n), "reduce(%s, %s), dimensions={%s}, to_apply=%s.%s", x, g.number(x.dtype, 0), list(over), fold, x.dtype)
	if len(kept) > 0 && g.rng.IntN(2) == 0 {
		g.values = append(g.values, y)
		return
	}
	var from []int
	for d := range x.dims {
		if !slices.Contains(over, d) {
			from = append(from, d)
		}
	}
	z := g.inner(y.of(x.dims), "broadcast(%s), dimensions={%s}", y, list(from))
	if bound := x.bound + z.bound; x.fits(bound) {
		g.add(x.bounded(bound), "%s(%s, %s)", []string{"subtract", "maximum"}[g.rng.IntN(2)], x, z)
	}
}

// largest is where a dimension has its maximum, and the maximum.
func (g *graph) largest(x graphValue) {
	k := g.rng.IntN(len(x.dims))
	if x.rounded || len(x.dims) < 2 || x.dims[k] == 0 {
		return
	}
	least := g.number(x.dtype, 0)
	if x.dtype == hlo.F32 {
		least = graphValue{name: "low", dtype: hlo.F32}
	}
	index := g.inner(graphValue{dtype: hlo.S32, dims: x.dims, bound: float64(x.dims[k])}, "iota(), iota_dimension=%d", k)
	dims := slices.Delete(slices.Clone(x.dims), k, k+1)
	v, i := x.of(dims), index.of(dims)
	g.read[x.name] = true
	zero := g.number(hlo.S32, 0)
	g.n++
	t := g.n
	fmt.Fprintf(
		&g.text, "t%d = (%s, %s) reduce(%s, %s, %s, %s), dimensions={%d}, to_apply=arg.%s\n",
		t, v.shape(), i.shape(), x, index, least, zero, k, x.dtype,
	)
	if g.rng.IntN(3) > 0 {
		g.values = append(g.values, g.inner(i, "get-tuple-element(t%d), index=1", t))
	}
	if g.rng.IntN(3) > 0 {
		g.values = append(g.values, g.inner(v, "get-tuple-element(t%d), index=0", t))
	}
}

// pair is a sum and a maximum of two values, by one reduction.
func (g *graph) pair(x graphValue) {
	k := g.rng.IntN(len(x.dims))
	y := g.like(x)
	bound := max(x.bound, y.bound) * float64(max(1, x.dims[k]))
	if len(x.dims) < 2 || !x.fits(bound) || isByte(x.dtype) {
		return
	}
	dims := slices.Delete(slices.Clone(x.dims), k, k+1)
	v := x.of(dims).bounded(bound)
	v.rounded = x.rounded || y.rounded
	g.read[x.name], g.read[y.name] = true, true
	zero := g.number(x.dtype, 0)
	g.n++
	t := g.n
	fmt.Fprintf(
		&g.text, "t%d = (%s, %s) reduce(%s, %s, %s, %s), dimensions={%d}, to_apply=two.%s\n",
		t, v.shape(), v.shape(), x, y, zero, zero, k, x.dtype,
	)
	for n := range 2 {
		g.values = append(g.values, g.inner(v, "get-tuple-element(t%d), index=%d", t, n))
	}
}

// contracted is a product over any one dimension, or two.
func (g *graph) contracted(x graphValue) {
	r := len(x.dims)
	if r < 2 || r > 3 || product64(x.dims) == 0 {
		return
	}
	k := g.rng.IntN(r)
	var y graphValue
	j := -1
	for range 4 {
		y = g.values[g.rng.IntN(len(g.values))]
		if y.dtype == x.dtype && len(y.dims) > 0 && len(y.dims) < 4 {
			if j = slices.Index(y.dims, x.dims[k]); j >= 0 {
				break
			}
		}
	}
	if j < 0 {
		y, j = x, k
	}
	rest := func(d []int64, k int) []int64 { return slices.Delete(slices.Clone(d), k, k+1) }
	dims := append(rest(x.dims, k), rest(y.dims, j)...)
	bound := x.bound * y.bound * float64(x.dims[k])
	to := x.of(dims).bounded(bound)
	switch x.dtype {
	case hlo.S8, hlo.U8:
		to.dtype = hlo.S32
	case hlo.BF16, hlo.F16:
		to.dtype = hlo.F32
	}
	if len(dims) > 4 || product64(dims) > g.most || !to.fits(bound) {
		return
	}
	g.add(to, "dot(%s, %s), lhs_contracting_dims={%d}, rhs_contracting_dims={%d}", x, y, k, j)
}

// pooled is a reduction of windows along all dimensions, with padding, steps and dilation.
func (g *graph) pooled(x graphValue) {
	if product64(x.dims) == 0 || isByte(x.dtype) {
		return
	}
	var sizes, strides, pads, gaps, holes []string
	dims := slices.Clone(x.dims)
	terms := 1.0
	for k, n := range x.dims {
		w, step := 1+g.rng.Int64N(min(3, n)), 1+g.rng.Int64N(2)
		hole, gap := 1+g.rng.Int64N(4)/3, 1+g.rng.Int64N(5)/4
		low, high := g.rng.Int64N(w), g.rng.Int64N(w)
		length := (n-1)*gap + 1 + low + high - (w-1)*hole - 1
		if length < 0 {
			w, length, hole = 1, (n-1)*gap+low+high, 1
		}
		dims[k] = length/step + 1
		terms *= float64(w)
		sizes, strides = append(sizes, fmt.Sprint(w)), append(strides, fmt.Sprint(step))
		pads = append(pads, fmt.Sprintf("%d_%d", low, high))
		gaps, holes = append(gaps, fmt.Sprint(gap)), append(holes, fmt.Sprint(hole))
	}
	if !x.fits(terms*x.bound) || product64(dims) > g.most {
		return
	}
	g.add(
		x.of(dims).bounded(terms*x.bound), "reduce-window(%s, %s), window={size=%s stride=%s pad=%s lhs_dilate=%s rhs_dilate=%s}, to_apply=%s.%s",
		x, g.number(x.dtype, 0), strings.Join(sizes, "x"), strings.Join(strides, "x"), strings.Join(pads, "x"), strings.Join(gaps, "x"), strings.Join(holes, "x"),
		[]string{"add", "maximum"}[g.rng.IntN(2)], x.dtype,
	)
}

// convolved multiplies windows along one dimension by a parameter.
func (g *graph) convolved(x graphValue) {
	if len(x.dims) != 3 || x.dtype != g.dtype || g.params > 5 || product64(x.dims) == 0 {
		return
	}
	w := 1 + g.rng.Int64N(min(3, x.dims[1]))
	out, step, low := pickExtent(g.rng), 1+g.rng.Int64N(2), g.rng.Int64N(w)
	labels := []string{"b0f_0io->b0f", "b0f_0oi->bf0", "b0f_io0->0bf"}[g.rng.IntN(3)]
	length := (x.dims[1]+low-w)/step + 1
	kernel, dims := []int64{w, x.dims[2], out}, []int64{x.dims[0], length, out}
	switch labels {
	case "b0f_0oi->bf0":
		kernel, dims = []int64{w, out, x.dims[2]}, []int64{x.dims[0], out, length}
	case "b0f_io0->0bf":
		kernel, dims = []int64{x.dims[2], out, w}, []int64{length, x.dims[0], out}
	}
	bound := x.bound * 3 * float64(w*x.dims[2])
	to := x.of(dims).bounded(bound)
	switch x.dtype {
	case hlo.S8, hlo.U8:
		to.dtype = hlo.S32
	case hlo.BF16, hlo.F16:
		to.dtype = hlo.F32
	}
	if product64(dims) > g.most || !to.fits(bound) {
		return
	}
	g.params++
	y := g.inner(x.of(kernel).bounded(3).exact(), "parameter(%d)", g.params-1)
	g.add(to, "convolution(%s, %s), window={size=%d stride=%d pad=%d_0}, dim_labels=%s", x, y, w, step, low, labels)
}

// choice takes all of x or of another value, by a number.
func (g *graph) choice(x graphValue) {
	y := g.like(x)
	if x.rounded || product64(x.dims) == 0 || isByte(x.dtype) || !x.fits(x.bound*float64(product64(x.dims))) {
		return
	}
	sum := g.inner(x.of(nil), "reduce(%s, %s), dimensions={%s}, to_apply=maximum.%s", x, g.number(x.dtype, 0), list(seq(len(x.dims))), x.dtype)
	p := g.inner(graphValue{dtype: hlo.Pred}, "compare(%s, %s), direction=GT", sum, g.number(x.dtype, 2))
	g.add(x, "select(%s, %s, %s)", p, x, y)
}

func seq(n int) (s []int) {
	for k := range n {
		s = append(s, k)
	}
	return s
}

// scalar applies one element, or a number that is a parameter, to all.
func (g *graph) scalar(x graphValue) {
	if g.params > 5 || x.dtype != g.dtype || !x.fits(3*x.bound) || product64(x.dims) == 0 {
		return
	}
	var y graphValue
	if g.rng.IntN(2) == 0 {
		g.params++
		y = g.inner(x.of(nil).bounded(3).exact(), "parameter(%d)", g.params-1)
	} else {
		z := g.values[0]
		if z.dtype != x.dtype || product64(z.dims) == 0 {
			return
		}
		ranges := make([]string, len(z.dims))
		for d, n := range z.dims {
			at := g.rng.Int64N(n)
			ranges[d] = fmt.Sprintf("[%d:%d]", at, at+1)
		}
		one := g.inner(z.of(slices.Repeat([]int64{1}, len(z.dims))), "slice(%s), slice={%s}", z, strings.Join(ranges, ", "))
		y = g.inner(one.of(nil), "reshape(%s)", one)
	}
	g.add(x.bounded(3*x.bound), "multiply(%s, %s)", x, g.inner(y.of(x.dims), "broadcast(%s), dimensions={}", y))
}

// smooth are functions that are rounded.
func (g *graph) smooth(x graphValue) {
	if x.dtype != hlo.F32 || x.bound > 64 {
		return
	}
	op := []string{"logistic", "erf", "sine", "cosine", "log", "sqrt", "rsqrt", "exponential", "log-plus-one", "cbrt"}[g.rng.IntN(10)]
	y := x
	switch op {
	case "log", "sqrt", "rsqrt", "log-plus-one", "cbrt":
		y = g.inner(x, "add(%s, %s)", g.inner(x, "multiply(%s, %s)", x, x), g.all(x, 1))
	case "exponential":
		y = g.inner(x, "negate(%s)", g.inner(x, "abs(%s)", x))
	}
	y.rounded = true
	g.values = append(g.values, g.inner(y, "%s(%s)", op, y).bounded(max(1, x.bound)))
}

// TestRandomWide compares random graphs of more operations with the reference, numbered like
// those of TestRandomGraphs.
func TestRandomWide(t *testing.T) { checkGraphs(t, randomWide, 60) }
