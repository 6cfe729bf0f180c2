package cpu

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A graph is a random program under construction. Unlike a chain, its operations read any of
// the values there are, so that values are shared, joined with what is made of them, and
// returned beside it.
type graph struct {
	rng    *rand.Rand
	dtype  hlo.DType // of parameters
	text   strings.Builder
	values []graphValue
	params int
	n      int             // The number of names that were given.
	read   map[string]bool // What operations have read.
	most   int64           // elements of a value
}

// A graphValue is an array that operations may read.
type graphValue struct {
	name  string
	dtype hlo.DType
	dims  []int64
	// What finite elements are at most, of parameters that are whole numbers of at most 3, and
	// whether they are rounded. Those that are not have the same bits however they are computed.
	bound   float64
	rounded bool
}

const (
	maxGraphElements = 3000    // of a value: the reference interprets a graph several times
	maxGraphBound    = 1 << 20 // whole numbers that f32 has, and sums of a few of them
	maxGraphExponent = 1 << 10 // in an exponential, whose relative error is the absolute one of this
)

// graphTypes are types of values besides f32.
var graphTypes = []hlo.DType{hlo.BF16, hlo.F16, hlo.F64, hlo.S8, hlo.U8, hlo.S32, hlo.S64}

// isByte reports whether numbers of a type wrap in graphs.
func isByte(d hlo.DType) bool { return d == hlo.S8 || d == hlo.U8 }

// graphSteps are the operations of graphs, each as often as it is drawn. Each adds to the
// graph what it makes of x, or nothing where x does not suit it.
var graphSteps = []func(g *graph, x graphValue){
	(*graph).unary, (*graph).binary, (*graph).binary, (*graph).binary,
	(*graph).masked, (*graph).masked, (*graph).chosen,
	(*graph).joined, (*graph).joined, (*graph).joined,
	(*graph).padded, (*graph).padded, (*graph).sliced, (*graph).reversed,
	(*graph).transposed, (*graph).reshaped, (*graph).repeated,
	(*graph).reduced, (*graph).reduced,
	(*graph).centred, (*graph).centred, (*graph).centred,
	(*graph).softmax, (*graph).softmax, (*graph).softmax, (*graph).normalised,
	(*graph).product, (*graph).converted, (*graph).running, (*graph).looked, (*graph).window,
}

// newGraph begins a program.
func newGraph(rng *rand.Rand) *graph {
	g := &graph{rng: rng, dtype: hlo.F32, read: map[string]bool{}, most: maxGraphElements}
	fmt.Fprintln(&g.text, "zero = f32[] constant(0)\nlow = f32[] constant(-inf)\nhigh = f32[] constant(inf)")
	return g
}

// A graphMaker makes a random program.
type graphMaker func(rng *rand.Rand) (text string, rounded bool)

// randomGraph makes a program of some operations that returns one to three of its values, and
// says whether any of these is rounded.
func randomGraph(rng *rand.Rand) (text string, rounded bool) {
	g := newGraph(rng)
	var dims []int64
	for range 1 + rng.IntN(3) {
		dims = append(dims, pickExtent(rng))
	}
	if len(dims) < 3 && rng.IntN(3) == 0 { // rows that machine code reads and writes in place
		dims[len(dims)-1] = []int64{16, 17, 40, 64, 72, 130}[rng.IntN(6)]
	}
	if len(dims) > 1 && rng.IntN(3) == 0 { // loops over other dimensions of one extent
		dims[0] = dims[1]
	}
	if rng.IntN(40) == 0 {
		dims[rng.IntN(len(dims))] = 0
	}
	if rng.IntN(4) == 0 {
		g.dtype = graphTypes[rng.IntN(len(graphTypes))]
		if g.dtype.Size() < 4 && rng.IntN(2) == 0 { // products by tiles of AMX
			dims = []int64{12 + rng.Int64N(30), 16 + rng.Int64N(50)}
		}
	}
	g.parameter(dims)
	for range 3 + rng.IntN(10) {
		x := g.values[len(g.values)-1]
		if rng.IntN(5) < 2 {
			x = g.values[rng.IntN(len(g.values))]
		}
		graphSteps[rng.IntN(len(graphSteps))](g, x)
	}
	rounded = g.finish()
	return g.text.String(), rounded
}

// finish returns the last value, and some of the others.
func (g *graph) finish() (rounded bool) {
	out := []graphValue{g.values[len(g.values)-1]}
	for _, v := range g.values[:len(g.values)-1] {
		if !g.read[v.name] && g.rng.IntN(2) == 0 || g.rng.IntN(12) == 0 {
			out = append(out, v)
		}
	}
	if out = out[:min(len(out), 3)]; len(out) == 1 {
		fmt.Fprintf(&g.text, "ROOT r = %s copy(%s)\n", out[0].shape(), out[0].name)
		return out[0].rounded
	}
	var names, shapes []string
	for _, v := range out {
		rounded = rounded || v.rounded
		names, shapes = append(names, v.name), append(shapes, v.shape())
	}
	fmt.Fprintf(&g.text, "ROOT r = (%s) tuple(%s)\n", strings.Join(shapes, ", "), strings.Join(names, ", "))
	return rounded
}

func (v graphValue) String() string { return v.name }

func (v graphValue) shape() string { return hlo.Shape{DType: v.dtype, Dims: v.dims}.String() }

// of is a value of the type of v.
func (v graphValue) of(dims []int64) graphValue {
	return graphValue{dtype: v.dtype, dims: dims, bound: v.bound, rounded: v.rounded}
}

// as is a value of the extents of v.
func (v graphValue) as(d hlo.DType) graphValue {
	v.dtype = d
	return v
}

// bounded is v with a bound.
func (v graphValue) bounded(bound float64) graphValue {
	v.bound = bound
	return v
}

// inner writes an instruction that gives a value of the type and extents of v. Its elements
// are at most those of its operands, unless v has a larger bound.
func (g *graph) inner(v graphValue, format string, args ...any) graphValue {
	for _, a := range args {
		if operand, ok := a.(graphValue); ok {
			g.read[operand.name] = true
			v.rounded = v.rounded || operand.rounded
			if operand.dtype != hlo.Pred {
				v.bound = max(v.bound, operand.bound)
			}
		}
	}
	if isByte(v.dtype) {
		v.bound = 255
	}
	g.n++
	v.name = fmt.Sprintf("v%d", g.n)
	fmt.Fprintf(&g.text, "%s = %s %s\n", v.name, v.shape(), fmt.Sprintf(format, args...))
	return v
}

// add is inner for a value that other operations may read.
func (g *graph) add(v graphValue, format string, args ...any) {
	g.values = append(g.values, g.inner(v, format, args...))
}

func (g *graph) parameter(dims []int64) graphValue {
	g.params++
	g.add(graphValue{dtype: g.dtype, dims: dims, bound: 3}, "parameter(%d)", g.params-1)
	return g.values[len(g.values)-1]
}

// mate is a value that fits: one there is, or a new parameter of the type and extents of x.
func (g *graph) mate(x graphValue, fits func(graphValue) bool) (graphValue, bool) {
	var all []graphValue
	for _, v := range g.values {
		if v.dtype == x.dtype && fits(v) {
			all = append(all, v)
		}
	}
	if x.dtype == g.dtype && g.params < 5 && (len(all) == 0 || g.rng.IntN(8) == 0) {
		return g.parameter(x.dims), true
	}
	if len(all) == 0 {
		return x, false
	}
	return all[g.rng.IntN(len(all))], true
}

// like is a value of the type and extents of x, which may be x.
func (g *graph) like(x graphValue) graphValue {
	y, _ := g.mate(x, func(v graphValue) bool { return slices.Equal(v.dims, x.dims) })
	return y
}

func (g *graph) unary(x graphValue) {
	op := []string{"negate", "abs", "sign", "tanh"}[g.rng.IntN(4)]
	switch {
	case op == "sign" && (x.rounded || x.dtype == hlo.U8), op == "abs" && x.dtype == hlo.U8, op == "tanh" && x.dtype != hlo.F32:
		op = "negate"
	case op == "tanh":
		x.rounded = true
		g.values = append(g.values, g.inner(x, "tanh(%s)", x).bounded(1))
		return
	}
	g.add(x, "%s(%s)", op, x)
}

func (g *graph) binary(x graphValue) {
	op := []string{"add", "subtract", "multiply", "maximum", "minimum"}[g.rng.IntN(5)]
	a, b := x, g.like(x)
	if g.rng.IntN(2) == 0 {
		a, b = b, a
	}
	bound := max(a.bound, b.bound)
	switch op {
	case "add", "subtract":
		bound = a.bound + b.bound
	case "multiply":
		bound = max(bound, a.bound*b.bound)
	}
	if x.fits(bound) {
		g.add(x.bounded(bound), "%s(%s, %s)", op, a, b)
	}
}

// fits reports whether elements of the type of v may be that large.
func (v graphValue) fits(bound float64) bool {
	switch v.dtype {
	case hlo.S8, hlo.U8:
		return true
	case hlo.BF16:
		return bound <= 1<<8
	case hlo.F16:
		return bound <= 1<<11
	}
	return bound <= maxGraphBound
}

// before is a mask: the elements whose index along a dimension is less than a constant, or
// along one dimension is at most that along another.
func (g *graph) before(x graphValue) graphValue {
	k := g.rng.IntN(len(x.dims))
	index := g.inner(graphValue{dtype: hlo.S32, dims: x.dims}, "iota(), iota_dimension=%d", k)
	if j := g.rng.IntN(len(x.dims)); j != k && g.rng.IntN(2) == 0 {
		other := g.inner(index, "iota(), iota_dimension=%d", j)
		return g.inner(index.as(hlo.Pred), "compare(%s, %s), direction=LE", index, other)
	}
	c := g.inner(graphValue{dtype: hlo.S32}, "constant(%d)", g.rng.Int64N(x.dims[k]+1))
	limit := g.inner(index, "broadcast(%s), dimensions={}", c)
	return g.inner(index.as(hlo.Pred), "compare(%s, %s), direction=%s", index, limit, []string{"LT", "GE", "NE"}[g.rng.IntN(3)])
}

// masked takes elements of x by their index, or of another value, −x or −∞ and the like.
func (g *graph) masked(x graphValue) {
	mask := g.before(x)
	y := g.like(x)
	switch n := g.rng.IntN(5); {
	case n < 2 && x.dtype == hlo.F32:
		y = g.inner(x, "broadcast(%s), dimensions={}", []string{"zero", "low"}[n])
	case n < 4 && x.dtype != hlo.U8: // what is made of x
		y = g.inner(x, "negate(%s)", x)
	}
	g.add(x, "select(%s, %s, %s)", mask, x, y)
}

// chosen takes elements by comparing two values.
func (g *graph) chosen(x graphValue) {
	y := g.like(x)
	if x.rounded || y.rounded {
		return
	}
	mask := g.inner(x.as(hlo.Pred), "compare(%s, %s), direction=%s", x, y, []string{"LT", "GE", "EQ"}[g.rng.IntN(3)])
	g.add(x, "select(%s, %s, %s)", mask, g.like(x), y)
}

// joined concatenates two or three values.
func (g *graph) joined(x graphValue) {
	k := g.rng.IntN(len(x.dims))
	parts, dims := []string{x.name}, slices.Clone(x.dims)
	for range 1 + g.rng.IntN(2) {
		y, ok := g.mate(x, func(v graphValue) bool {
			return len(v.dims) == len(x.dims) && slices.Equal(v.dims[:k], x.dims[:k]) && slices.Equal(v.dims[k+1:], x.dims[k+1:])
		})
		if !ok {
			return
		}
		parts, dims[k] = append(parts, y.name), dims[k]+y.dims[k]
		x.bound, x.rounded = max(x.bound, y.bound), x.rounded || y.rounded
		g.read[y.name] = true
	}
	g.rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	if product64(dims) <= g.most {
		g.read[x.name] = true
		g.add(x.of(dims), "concatenate(%s), dimensions={%d}", strings.Join(parts, ", "), k)
	}
}

func (g *graph) padded(x graphValue) {
	dims := slices.Clone(x.dims)
	var words []string
	for k, d := range x.dims {
		low, high, interior := g.rng.Int64N(4)-1, g.rng.Int64N(4)-1, g.rng.Int64N(5)/4
		if dims[k] = low + high + d + (d-1)*interior; d == 0 || dims[k] < 1 || g.rng.IntN(3) == 0 {
			low, high, interior, dims[k] = 0, 0, 0, d
		}
		words = append(words, fmt.Sprintf("%d_%d_%d", low, high, interior))
	}
	value := "zero"
	if x.dtype != hlo.F32 {
		value = g.inner(x.of(nil), "constant(1)").name
	} else if g.rng.IntN(4) == 0 {
		value = "low"
	}
	if product64(dims) <= g.most {
		g.add(x.of(dims), "pad(%s, %s), padding=%s", x, value, strings.Join(words, "x"))
	}
}

func (g *graph) sliced(x graphValue) {
	dims := slices.Clone(x.dims)
	var ranges []string
	for k, d := range x.dims {
		if d == 0 {
			return
		}
		start := g.rng.Int64N(1 + d/2)
		limit := d - g.rng.Int64N(d-start)
		stride := 1 + g.rng.Int64N(4)/3
		dims[k] = (limit - start + stride - 1) / stride
		ranges = append(ranges, fmt.Sprintf("[%d:%d:%d]", start, limit, stride))
	}
	g.add(x.of(dims), "slice(%s), slice={%s}", x, strings.Join(ranges, ", "))
}

func (g *graph) reversed(x graphValue) {
	g.add(x, "reverse(%s), dimensions={%d}", x, g.rng.IntN(len(x.dims)))
}

func (g *graph) transposed(x graphValue) {
	order := g.rng.Perm(len(x.dims))
	dims := make([]int64, len(order))
	for k, d := range order {
		dims[k] = x.dims[d]
	}
	g.add(x.of(dims), "transpose(%s), dimensions={%s}", x, list(order))
}

// reshaped makes two dimensions one, or one two.
func (g *graph) reshaped(x graphValue) {
	k := g.rng.IntN(len(x.dims))
	dims := slices.Clone(x.dims)
	if k+1 < len(dims) && g.rng.IntN(2) == 0 {
		dims = slices.Delete(dims, k, k+1)
		dims[k] *= x.dims[k]
	} else {
		for _, d := range []int64{5, 4, 3, 2, 1} {
			if dims[k]%d == 0 {
				dims[k] /= d
				dims = slices.Insert(dims, k, d)
				break
			}
		}
	}
	if len(dims) <= 4 {
		g.add(x.of(dims), "reshape(%s)", x)
	}
}

// repeated adds a dimension, or makes a value of the extents of another one.
func (g *graph) repeated(x graphValue) {
	at, n := g.rng.IntN(len(x.dims)+1), pickExtent(g.rng)
	if product64(x.dims)*n <= g.most && len(x.dims) < 4 {
		g.values = append(g.values, g.spread(x, at, n))
	}
}

// spread is x with another dimension.
func (g *graph) spread(x graphValue, at int, n int64) graphValue {
	var from []int
	for k := range len(x.dims) + 1 {
		if k != at {
			from = append(from, k)
		}
	}
	return g.inner(x.of(slices.Insert(slices.Clone(x.dims), at, n)), "broadcast(%s), dimensions={%s}", x, list(from))
}

// graphFolds are the reductions of f32, with what they begin with.
var graphFolds = [][2]string{{"zero", "add"}, {"low", "maximum"}, {"high", "minimum"}}

// fold reduces x along a dimension.
func (g *graph) fold(x graphValue, k int, with [2]string) graphValue {
	initial := with[0]
	if x.dtype != hlo.F32 {
		initial = g.inner(x.of(nil), "constant(0)").name
	}
	if with[1] == "add" {
		x.bound *= float64(x.dims[k])
	}
	dims := slices.Delete(slices.Clone(x.dims), k, k+1)
	return g.inner(x.of(dims), "reduce(%s, %s), dimensions={%d}, to_apply=%s", x, initial, k, with[1])
}

func (g *graph) reduced(x graphValue) {
	k := g.rng.IntN(len(x.dims))
	if len(x.dims) > 1 && x.fits(x.bound*float64(x.dims[k])) {
		g.values = append(g.values, g.fold(x, k, graphFolds[g.rng.IntN(3)]))
	}
}

// folded is a reduction of x along a dimension as an array of the extents of x.
func (g *graph) folded(x graphValue, k int, with [2]string) graphValue {
	return g.spread(g.fold(x, k, with), k, x.dims[k])
}

// centred subtracts a maximum or a sum along a dimension, or takes it only to compare.
func (g *graph) centred(x graphValue) {
	k := g.rng.IntN(len(x.dims))
	if !x.fits(2 * x.bound * float64(x.dims[k])) {
		return
	}
	y := g.folded(x, k, graphFolds[g.rng.IntN(3)])
	z := g.like(x)
	if bound := y.bound + z.bound; x.fits(bound) {
		g.add(x.bounded(bound), "%s(%s, %s)", []string{"subtract", "subtract", "maximum", "add"}[g.rng.IntN(4)], z, y)
	}
}

// softmax leaves the division out now and then.
func (g *graph) softmax(x graphValue) {
	if x.dtype != hlo.F32 || x.bound > maxGraphExponent {
		return
	}
	k := g.rng.IntN(len(x.dims))
	less := g.inner(x, "subtract(%s, %s)", x, g.folded(x, k, graphFolds[1]))
	e := g.inner(x, "exponential(%s)", less).bounded(1)
	e.rounded = true
	sums := g.folded(e, k, graphFolds[0])
	if g.rng.IntN(5) == 0 {
		g.values = append(g.values, e)
	}
	g.values = append(g.values, g.inner(x, "divide(%s, %s)", e, sums).bounded(1))
}

// normalised divides by the sum of squares and one.
func (g *graph) normalised(x graphValue) {
	k := g.rng.IntN(len(x.dims))
	if x.dtype != hlo.F32 || x.bound*x.bound*4*float64(x.dims[k]) > maxGraphBound {
		return
	}
	d := x
	if g.rng.IntN(2) == 0 {
		n := g.inner(graphValue{dtype: hlo.F32}, "constant(%d)", x.dims[k])
		all := g.inner(x, "broadcast(%s), dimensions={}", n)
		mean := g.inner(x, "divide(%s, %s)", g.folded(x, k, graphFolds[0]), all)
		d = g.inner(x, "subtract(%s, %s)", x, mean).bounded(2 * x.bound)
		d.rounded = true
	}
	q := g.folded(g.inner(x.bounded(d.bound*d.bound), "multiply(%s, %s)", d, d), k, graphFolds[0])
	one := g.inner(graphValue{dtype: hlo.F32}, "constant(1)")
	more := g.inner(x, "add(%s, %s)", q, g.inner(x, "broadcast(%s), dimensions={}", one))
	x.rounded = true
	g.values = append(g.values, g.inner(x, "divide(%s, %s)", d, more).bounded(1))
}

// product multiplies matrices, batches of them where there are more dimensions.
func (g *graph) product(x graphValue) {
	r := len(x.dims)
	if r < 2 || r > 3 {
		return
	}
	y, ok := g.mate(x, func(v graphValue) bool {
		return len(v.dims) == r && slices.Equal(v.dims[:r-2], x.dims[:r-2]) && v.dims[r-1] == x.dims[r-1]
	})
	dims := append(slices.Clone(x.dims[:r-1]), y.dims[r-2])
	bound := x.bound * y.bound * float64(x.dims[r-1])
	to := x.of(dims).bounded(bound)
	switch x.dtype {
	case hlo.S8, hlo.U8:
		to.dtype = hlo.S32
	case hlo.BF16, hlo.F16:
		to.dtype = hlo.F32
	}
	if !ok || product64(dims) > g.most || !to.fits(bound) {
		return
	}
	batch := ""
	if r == 3 {
		batch = "lhs_batch_dims={0}, rhs_batch_dims={0}, "
	}
	g.add(to, "dot(%s, %s), %slhs_contracting_dims={%d}, rhs_contracting_dims={%d}", x, y, batch, r-1, r-1)
}

func (g *graph) converted(x graphValue) {
	to := graphTypes[g.rng.IntN(len(graphTypes))]
	if x.dtype != hlo.F32 && g.rng.IntN(3) > 0 {
		to = hlo.F32
	}
	y := x.as(to)
	switch {
	case to == x.dtype, !y.fits(x.bound), x.rounded && to != hlo.F32 && to != hlo.F64:
	case isByte(to) && x.dtype.IsFloat() && (to == hlo.U8 || x.bound > 127):
	default:
		g.add(y, "convert(%s)", x)
	}
}

// running is a cumulative sum.
func (g *graph) running(x graphValue) {
	at := g.rng.IntN(len(x.dims))
	bound := x.bound * float64(x.dims[at])
	if x.dtype != hlo.F32 || product64(x.dims) > 600 || x.dims[at] == 0 || !x.fits(bound) {
		return
	}
	var sizes, pads []string
	for k, d := range x.dims {
		if k != at {
			d = 1
		}
		sizes, pads = append(sizes, fmt.Sprint(d)), append(pads, fmt.Sprintf("%d_0", d-1))
	}
	g.add(x.bounded(bound), "reduce-window(%s, zero), window={size=%s pad=%s}, to_apply=add", x, strings.Join(sizes, "x"), strings.Join(pads, "x"))
}

// window is a sum or maximum over a small window along one dimension.
func (g *graph) window(x graphValue) {
	at := g.rng.IntN(len(x.dims))
	if x.dtype != hlo.F32 || x.dims[at] == 0 || !x.fits(3*x.bound) {
		return
	}
	w := 1 + g.rng.Int64N(min(3, x.dims[at]))
	step, low := 1+g.rng.Int64N(2), g.rng.Int64N(w)
	dims := slices.Clone(x.dims)
	dims[at] = (x.dims[at]+low-w)/step + 1
	sizes, pads, steps := make([]string, len(dims)), make([]string, len(dims)), make([]string, len(dims))
	for k := range dims {
		sizes[k], pads[k], steps[k] = "1", "0_0", "1"
	}
	sizes[at], pads[at], steps[at] = fmt.Sprint(w), fmt.Sprintf("%d_0", low), fmt.Sprint(step)
	with := graphFolds[g.rng.IntN(2)]
	g.add(
		x.of(dims).bounded(3*x.bound), "reduce-window(%s, %s), window={size=%s stride=%s pad=%s}, to_apply=%s",
		x, with[0], strings.Join(sizes, "x"), strings.Join(steps, "x"), strings.Join(pads, "x"), with[1],
	)
}

// looked takes a part of x at an index that is a parameter.
func (g *graph) looked(x graphValue) {
	k := g.rng.IntN(len(x.dims))
	if g.params > 5 || x.dims[k] == 0 {
		return
	}
	zero := g.inner(graphValue{dtype: hlo.S32}, "constant(0)")
	starts := slices.Repeat([]string{zero.name}, len(x.dims))
	starts[k] = g.inner(graphValue{dtype: hlo.S32}, "parameter(%d)", g.params).name
	g.params++
	dims := slices.Clone(x.dims)
	dims[k] = 1 + g.rng.Int64N(dims[k])
	g.add(
		x.of(dims), "dynamic-slice(%s, %s), dynamic_slice_sizes={%s}",
		x, strings.Join(starts, ", "), strings.ReplaceAll(strings.Trim(fmt.Sprint(dims), "[]"), " ", ","),
	)
}

// A graphTally counts what was done with graphs, and plans that roundings of inputs far apart
// move further than is allowed: of a maximum, and of what it is subtracted from.
type graphTally struct{ programs, untileable, plans, rejected, moved int }

// graphPlans are the default plan, plans that are offered, and random ones.
func graphPlans(t *testing.T, b *Backend, rng *rand.Rand, p *symtile.Program) (plans []kernels.Plan) {
	if plan, err := b.Default(t.Context(), p); err == nil {
		plans = append(plans, plan)
	} else if !errors.Is(err, errDigits) {
		t.Error(err)
	}
	offered := 0
	for plan := range b.Plans(t.Context(), p) {
		if offered++; offered > 24 {
			break
		}
		if offered%8 == 1 {
			plans = append(plans, plan)
		}
	}
	for tiling := range p.Space.Sample(5) {
		plans = append(plans, withKnobs(rng, kernels.Plan{Tiles: slices.Clone(tiling)}))
	}
	for range 5 { // sizes that nobody would propose
		tiling := make(symtile.Tiling, len(p.Space.Dims))
		for k, d := range p.Space.Dims {
			tiling[k] = 1 + rng.Int64N(max(1, d.Extent))
		}
		if p.Check(tiling) == nil {
			plans = append(plans, withKnobs(rng, kernels.Plan{Tiles: tiling}))
		}
	}
	return plans
}

// A graphCase is a graph and what the reference makes of it.
type graphCase struct {
	seed     uint64
	text     string
	p        *symtile.Program
	rng      *rand.Rand
	rounded  bool
	verifier *check.Verifier
	in, want []kernels.Buffer // Of whole numbers.
}

// newGraphCase makes the graph of a seed. It is nil where the graph has no tiles.
func newGraphCase(t *testing.T, seed uint64, random graphMaker) *graphCase {
	t.Helper()
	c := &graphCase{seed: seed, rng: rand.New(rand.NewPCG(seed, 77))}
	c.text, c.rounded = random(c.rng)
	m, err := hlo.Parse("graph", []byte(c.text))
	if err != nil {
		t.Fatalf("graph %d: %v\n%s", seed, err, c.text)
	}
	c.p, err = symtile.Analyze(t.Context(), m.Entry)
	var no *symtile.Untileable
	if errors.As(err, &no) {
		return nil
	}
	var errs [3]error
	c.verifier, errs[0] = check.NewVerifier(context.Background(), m.Entry, int64(seed))
	c.in, errs[1] = check.Inputs(m.Entry, check.Integers, int64(seed))
	c.want, errs[2] = reference.Interpret(m.Entry, c.in)
	if err = errors.Join(append(errs[:], err)...); err != nil {
		t.Fatalf("graph %d: %v\n%s", seed, err, c.text)
	}
	return c
}

// checkGraph compares the graph of a seed with the reference by several plans. A panic is
// reported like a wrong result, with the program.
func checkGraph(t *testing.T, b *Backend, seed uint64, random graphMaker, tally *graphTally) {
	t.Helper()
	tally.programs++
	c := newGraphCase(t, seed, random)
	if c == nil {
		tally.untileable++
		return
	}
	at := "its plans"
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("graph %d, %s: panic: %v\n%s\n%s", seed, at, r, c.text, debug.Stack())
		}
	}()
	for n, plan := range graphPlans(t, b, c.rng, c.p) {
		at = plan.String()
		if n%5 == 0 {
			c.checkThreads(t, b, plan)
		}
		k, err := b.Compile(context.Background(), c.p, plan)
		var no *kernels.Rejected
		if errors.As(err, &no) {
			if tally.rejected++; !strings.Contains(no.Reason, errDigits.Error()) {
				t.Errorf("graph %d: %v\n%s", seed, err, c.text)
			}
			continue
		}
		if err == nil {
			tally.plans++
			err = c.check(k, tally)
			k.Close()
		}
		if err != nil {
			t.Errorf("graph %d, %s: %v\n%s\n%s", seed, plan, err, c.text, k.Source())
			return
		}
	}
}

// check compares what a kernel computes of whole numbers with the reference, and with what it
// computes once more, and verifies it.
func (c *graphCase) check(k kernels.Kernel, tally *graphTally) error {
	var first []kernels.Buffer
	for range 2 {
		out, err := c.run(k, c.in)
		if err != nil {
			return err
		}
		for n := range out {
			tolerance := check.Tolerance{}
			if c.rounded {
				tolerance.Relative = 0.01
			}
			if wrong := check.Compare(n, out[n], c.want[n], tolerance); wrong != nil {
				return wrong
			}
			if first != nil && !bytes.Equal(first[n].Data, out[n].Data) {
				return fmt.Errorf("output %d has other bits in another run", n)
			}
		}
		first = out
	}
	err := c.verifier.Verify(context.Background(), k)
	var wrong *check.Mismatch
	if errors.As(err, &wrong) { // whole numbers were right; of others sums are rounded
		tally.moved++
		return nil
	}
	return err
}

// checkThreads compares the bits of what a plan computes of random numbers on one to three
// threads, twice each.
func (c *graphCase) checkThreads(t *testing.T, b *Backend, plan kernels.Plan) {
	t.Helper()
	in, err := check.Inputs(c.p.Fusion, check.Normals, 5)
	if err != nil {
		t.Fatal(err)
	}
	var first []kernels.Buffer
	for n := range 6 {
		k, err := b.Compile(context.Background(), c.p, plan.With("threads", 1+int64(n)/2))
		if err != nil {
			return
		}
		out, err := c.run(k, in)
		k.Close()
		if err != nil {
			t.Errorf("graph %d, %s: %v\n%s", c.seed, plan, err, c.text)
			return
		}
		for i := range first {
			if !bytes.Equal(first[i].Data, out[i].Data) {
				t.Errorf("graph %d, %s: other bits on %d threads\n%s", c.seed, plan, 1+n/2, c.text)
				return
			}
		}
		first = out
	}
}

// run runs a kernel. What it does not write is NaN, or a number that no
// graph has.
func (c *graphCase) run(k kernels.Kernel, in []kernels.Buffer) ([]kernels.Buffer, error) {
	out := make([]kernels.Buffer, len(c.want))
	for n, w := range c.want {
		var err error
		if out[n], err = kernels.NewBuffer(w.Shape); err != nil {
			return nil, err
		}
		for i := range out[n].Data {
			out[n].Data[i] = 0xff
		}
	}
	_, err := k.Run(context.Background(), in, out)
	return out, err
}

var (
	graphCount = flag.Int("graphs", 0, "the number of random graphs that TestRandomGraphs checks; 0: a few")
	graphFirst = flag.Uint64("first-graph", 1, "the number of the first of them")
)

// TestRandomGraphs compares random graphs of operations with the reference. Each has a number:
// -graphs 10000 -first-graph 1 are those of a long run.
func TestRandomGraphs(t *testing.T) { checkGraphs(t, randomGraph, 120) }

// checkGraphs checks as many graphs as flags say, or a few.
func checkGraphs(t *testing.T, random graphMaker, few int) {
	t.Helper()
	n := *graphCount
	if n == 0 {
		if n = few; testing.Short() {
			n = few / 3
		}
	}
	b, tally := New(), &graphTally{}
	for seed := range uint64(n) {
		t.Run(fmt.Sprint(*graphFirst+seed), func(t *testing.T) { checkGraph(t, b, *graphFirst+seed, random, tally) })
	}
	t.Logf("%+v", *tally)
	if tally.untileable > tally.programs/3 || tally.moved > tally.plans/50 {
		t.Errorf("too many graphs have no tiles, or too many plans are taken for rounding")
	}
}

// FuzzGraphs compares graphs of any number with the reference.
func FuzzGraphs(f *testing.F) {
	f.Add(uint64(1))
	b := New()
	f.Fuzz(func(t *testing.T, seed uint64) { checkGraph(t, b, seed, randomGraph, &graphTally{}) })
}
