package cpu

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// partSteps are the operations of graphs of parts: rows long enough to be computed in parts are
// cut, moved, masked by their index and joined again, mostly to the extents that they had, so
// that values meet whose parts begin at different places.
var partSteps = []func(g *graph, x graphValue){
	(*graph).unary, (*graph).binary, (*graph).binary, (*graph).binary, (*graph).chosen,
	(*graph).rotated, (*graph).rotated, (*graph).rotated, (*graph).shifted, (*graph).shifted,
	(*graph).bounded1, (*graph).bounded1, (*graph).bounded1, (*graph).masked,
	(*graph).mirrored, (*graph).mirrored, (*graph).turned, (*graph).turned,
	(*graph).halved, (*graph).doubled, (*graph).interleaved, (*graph).split,
	(*graph).centred, (*graph).softmax, (*graph).placed, (*graph).folds,
	(*graph).joined, (*graph).padded, (*graph).sliced, (*graph).reduced,
}

// randomParts is randomGraph with the operations of partSteps.
func randomParts(rng *rand.Rand) (text string, rounded bool) {
	g := newGraph(rng)
	dims := []int64{[]int64{16, 17, 20, 24, 32, 33, 40, 48, 64, 66}[rng.IntN(10)]}
	for range rng.IntN(3) {
		if n := []int64{1, 2, 3, 4, 8, 16}[rng.IntN(6)]; product64(dims)*n <= 1100 {
			dims = slices.Insert(dims, rng.IntN(len(dims)+1), n)
		}
	}
	if rng.IntN(4) == 0 {
		g.dtype = graphTypes[rng.IntN(len(graphTypes))]
	}
	g.parameter(dims)
	if rng.IntN(2) == 0 {
		g.parameter(dims)
	}
	for range 3 + rng.IntN(10) {
		x := g.values[len(g.values)-1]
		if rng.IntN(5) < 2 {
			x = g.values[rng.IntN(len(g.values))]
		}
		partSteps[rng.IntN(len(partSteps))](g, x)
	}
	rounded = g.finish()
	return g.text.String(), rounded
}

// long is the longest dimension of x, or now and then another one.
func (g *graph) long(x graphValue) int {
	if g.rng.IntN(5) == 0 {
		return g.rng.IntN(len(x.dims))
	}
	return slices.Index(x.dims, slices.Max(x.dims))
}

// cut is a range of x along a dimension.
func (g *graph) cut(x graphValue, k int, lo, hi, stride int64) graphValue {
	dims := slices.Clone(x.dims)
	dims[k] = (hi - lo + stride - 1) / stride
	ranges := make([]string, len(dims))
	for d, n := range x.dims {
		ranges[d] = fmt.Sprintf("[0:%d:1]", n)
	}
	ranges[k] = fmt.Sprintf("[%d:%d:%d]", lo, hi, stride)
	return g.inner(x.of(dims), "slice(%s), slice={%s}", x, strings.Join(ranges, ", "))
}

// perhaps is x, or what is made of it.
func (g *graph) perhaps(x graphValue) graphValue {
	switch g.rng.IntN(4) {
	case 0:
		if x.dtype != hlo.U8 {
			return g.inner(x, "negate(%s)", x)
		}
	case 1:
		return g.inner(x, "maximum(%s, %s)", x, g.like(x))
	case 2:
		return g.inner(x, "reverse(%s), dimensions={%d}", x, g.rng.IntN(len(x.dims)))
	}
	return x
}

// join is several values one after the other.
func (g *graph) join(k int, parts ...graphValue) graphValue {
	x := parts[0]
	dims := slices.Clone(x.dims)
	dims[k] = 0
	names := make([]string, len(parts))
	for n, p := range parts {
		dims[k] += p.dims[k]
		names[n] = p.name
		x.bound, x.rounded = max(x.bound, p.bound), x.rounded || p.rounded
		g.read[p.name] = true
	}
	return g.inner(x.of(dims), "concatenate(%s), dimensions={%d}", strings.Join(names, ", "), k)
}

// rotated cuts x, or values like it, in two or three and joins the pieces in some order.
func (g *graph) rotated(x graphValue) {
	k := g.long(x)
	if x.dims[k] < 2 {
		return
	}
	at := 1 + g.rng.Int64N(x.dims[k]-1)
	if g.rng.IntN(2) == 0 {
		at = max(1, x.dims[k]/2)
	}
	y := x
	if g.rng.IntN(2) == 0 {
		y = g.like(x)
	}
	parts := []graphValue{
		g.perhaps(g.cut(x, k, 0, at, 1)), g.perhaps(g.cut(y, k, at, x.dims[k], 1)),
	}
	if at > 1 && g.rng.IntN(3) == 0 {
		mid := 1 + g.rng.Int64N(at-1)
		first := parts[0]
		parts = []graphValue{g.cut(first, k, 0, mid, 1), g.cut(first, k, mid, at, 1), parts[1]}
	}
	if g.rng.IntN(3) > 0 {
		g.rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	}
	g.values = append(g.values, g.join(k, parts...))
}

// padTo is x with padding along one dimension.
func (g *graph) padTo(x graphValue, k int, low, high, interior int64) graphValue {
	dims := slices.Clone(x.dims)
	dims[k] = low + high + x.dims[k] + (x.dims[k]-1)*interior
	words := slices.Repeat([]string{"0_0_0"}, len(dims))
	words[k] = fmt.Sprintf("%d_%d_%d", low, high, interior)
	value := g.inner(x.of(nil), "constant(%d)", g.rng.IntN(2))
	return g.inner(x.of(dims), "pad(%s, %s), padding=%s", x, value, strings.Join(words, "x"))
}

// shifted moves x along a dimension, and pads what is left.
func (g *graph) shifted(x graphValue) {
	k := g.long(x)
	if x.dims[k] < 2 {
		return
	}
	by := 1 + g.rng.Int64N(x.dims[k]-1)
	switch g.rng.IntN(4) {
	case 0:
		g.values = append(g.values, g.padTo(g.perhaps(g.cut(x, k, by, x.dims[k], 1)), k, 0, by, 0))
	case 1:
		g.values = append(g.values, g.padTo(g.perhaps(g.cut(x, k, 0, x.dims[k]-by, 1)), k, by, 0, 0))
	case 2:
		g.values = append(g.values, g.padTo(g.perhaps(x), k, by, -by, 0))
	case 3:
		g.values = append(g.values, g.padTo(g.perhaps(x), k, -by, by, 0))
	}
}

// index is a mask by the index along the longest dimension: as is, counted from the end, of
// floats, of one dimension that is repeated, or the part of a longer one.
func (g *graph) index(x graphValue) graphValue {
	k := g.long(x)
	d := []hlo.DType{hlo.S32, hlo.S32, hlo.S32, hlo.U8, hlo.S64, hlo.F32}[g.rng.IntN(6)]
	dims, at := x.dims, k
	flat := g.rng.IntN(5) == 0
	if flat {
		dims, at = []int64{x.dims[k]}, 0
	}
	index := graphValue{dtype: d, dims: dims}
	extra := int64(g.rng.IntN(3) / 2 * g.rng.IntN(5))
	stride := int64(1 + g.rng.IntN(4)/3)
	whole := slices.Clone(dims)
	whole[at] = dims[at]*stride + extra
	count := g.inner(index.of(whole), "iota(), iota_dimension=%d", at)
	if g.rng.IntN(6) == 0 {
		count = g.inner(count, "reverse(%s), dimensions={%d}", count, at)
	}
	c := g.inner(index.of(nil), "constant(%d)", min(255, g.rng.Int64N(whole[at]+2)))
	limit := g.inner(count, "broadcast(%s), dimensions={}", c)
	with := []string{"LT", "GE", "NE", "EQ", "LE", "GT"}[g.rng.IntN(6)]
	mask := g.inner(count.as(hlo.Pred), "compare(%s, %s), direction=%s", count, limit, with)
	if whole[at] != dims[at] {
		mask = g.cut(mask, at, extra, whole[at], stride)
	}
	if flat {
		mask = g.inner(x.as(hlo.Pred), "broadcast(%s), dimensions={%d}", mask, k)
	}
	return mask
}

// bounded1 takes elements by their index along the longest dimension.
func (g *graph) bounded1(x graphValue) {
	mask := g.index(x)
	y := g.perhaps(g.like(x))
	if g.rng.IntN(4) == 0 {
		y = g.inner(x, "broadcast(%s), dimensions={}", g.inner(x.of(nil), "constant(2)"))
	}
	x = g.perhaps(x)
	if g.rng.IntN(2) == 0 {
		x, y = y, x
	}
	g.add(x, "select(%s, %s, %s)", mask, x, y)
}

// mirrored reverses along the longest dimension, or all.
func (g *graph) mirrored(x graphValue) {
	over := fmt.Sprint(g.long(x))
	if len(x.dims) > 1 && g.rng.IntN(3) == 0 {
		over = "0,1"
	}
	g.add(x, "reverse(%s), dimensions={%s}", x, over)
}

// turned is x transposed, applied a function to, and transposed back; or x itself, which a
// transpose ends elementwise operations of.
func (g *graph) turned(x graphValue) {
	order := g.rng.Perm(len(x.dims))
	if g.rng.IntN(3) == 0 {
		slices.Sort(order)
	}
	dims, back := make([]int64, len(order)), make([]int, len(order))
	for k, d := range order {
		dims[k], back[d] = x.dims[d], k
	}
	y := g.inner(x.of(dims), "transpose(%s), dimensions={%s}", x, list(order))
	if g.rng.IntN(2) == 0 {
		k := g.long(y)
		if at := y.dims[k] / 2; at > 0 {
			y = g.join(k, g.perhaps(g.cut(y, k, at, y.dims[k], 1)), g.cut(y, k, 0, at, 1))
		}
	}
	g.add(x.of(slices.Clone(x.dims)), "transpose(%s), dimensions={%s}", y, list(back))
}

// halved takes every other element, or half of x.
func (g *graph) halved(x graphValue) {
	k := g.long(x)
	n := x.dims[k]
	if n < 4 {
		return
	}
	at := g.rng.Int64N(2)
	switch g.rng.IntN(3) {
	case 0:
		g.values = append(g.values, g.cut(x, k, at, n, 2))
	case 1:
		g.values = append(g.values, g.cut(x, k, at*(n/2), at*(n/2)+n/2, 1))
	case 2:
		g.values = append(g.values, g.cut(x, k, at, n-g.rng.Int64N(3), 1))
	}
}

// doubled joins two values like x, or x with what is made of it.
func (g *graph) doubled(x graphValue) {
	k := g.long(x)
	if 2*product64(x.dims) <= g.most {
		g.values = append(g.values, g.join(k, g.perhaps(x), g.perhaps(g.like(x))))
	}
}

// interleaved are the elements of two values in turn.
func (g *graph) interleaved(x graphValue) {
	k := g.long(x)
	if x.dims[k] == 0 || 2*product64(x.dims) > g.most {
		return
	}
	y := g.perhaps(g.like(x))
	if g.rng.IntN(2) == 0 {
		a, b := g.padTo(x, k, 0, 1, 1), g.padTo(y, k, 1, 0, 1)
		if bound := a.bound + b.bound; a.fits(bound) {
			g.add(a.bounded(bound), "add(%s, %s)", a, b)
		}
		return
	}
	dims := slices.Clone(x.dims)
	dims[k] *= 2
	pair := g.join(k+1, g.spread(x, k+1, 1), g.spread(y, k+1, 1))
	if g.rng.IntN(2) == 0 {
		pair = g.perhaps(pair)
	}
	g.add(pair.of(dims), "reshape(%s)", pair)
}

// split divides the longest dimension in two, moves the halves and joins them to one again.
func (g *graph) split(x graphValue) {
	k := g.long(x)
	n := []int64{2, 2, 4, 3}[g.rng.IntN(4)]
	if x.dims[k] == 0 || x.dims[k]%n != 0 {
		return
	}
	dims := slices.Insert(slices.Clone(x.dims), k, n)
	dims[k+1] /= n
	y := g.inner(x.of(dims), "reshape(%s)", x)
	at := k + g.rng.IntN(2)
	if m := y.dims[at] / 2; m > 0 {
		y = g.join(at, g.perhaps(g.cut(y, at, m, y.dims[at], 1)), g.perhaps(g.cut(y, at, 0, m, 1)))
	}
	g.add(x, "reshape(%s)", y)
}

// placed writes a part of x at an index that is a parameter, or a constant.
func (g *graph) placed(x graphValue) {
	k := g.long(x)
	if g.params > 5 || x.dims[k] < 2 {
		return
	}
	zero := g.inner(graphValue{dtype: hlo.S32}, "constant(0)")
	starts := slices.Repeat([]string{zero.name}, len(x.dims))
	if g.rng.IntN(3) == 0 {
		starts[k] = g.inner(graphValue{dtype: hlo.S32}, "constant(%d)", g.rng.Int64N(x.dims[k])).name
	} else {
		starts[k] = g.inner(graphValue{dtype: hlo.S32}, "parameter(%d)", g.params).name
		g.params++
	}
	part := g.cut(g.like(x), k, 0, 1+g.rng.Int64N(x.dims[k]-1), 1)
	g.add(x, "dynamic-update-slice(%s, %s, %s)", x, g.perhaps(part), strings.Join(starts, ", "))
}

// folds reduces x along all but one dimension, or along its longest one, and spreads that.
func (g *graph) folds(x graphValue) {
	k := g.rng.IntN(len(x.dims))
	with := graphFolds[1+g.rng.IntN(2)]
	if x.dtype != hlo.F32 || product64(x.dims) == 0 {
		return
	}
	y := g.folded(x, k, with)
	g.add(x, "%s(%s, %s)", []string{"maximum", "minimum"}[g.rng.IntN(2)], g.perhaps(x), y)
}

// randomLarge is randomGraph of arrays that leave the first caches, with all operations.
func randomLarge(rng *rand.Rand) (text string, rounded bool) {
	g := newGraph(rng)
	g.most = 1 << 18
	dims := []int64{40 + rng.Int64N(600), 40 + rng.Int64N(400)}
	switch rng.IntN(4) {
	case 0:
		dims = []int64{1 + rng.Int64N(12), 500 + rng.Int64N(9000)}
	case 1:
		dims = []int64{8 << rng.IntN(3), 8 << rng.IntN(4), 64 << rng.IntN(3)}
	case 2:
		dims = []int64{64 << rng.IntN(4), 16 << rng.IntN(5)}
	}
	if rng.IntN(4) == 0 {
		g.dtype = graphTypes[rng.IntN(len(graphTypes))]
	}
	g.parameter(dims)
	steps := slices.Concat(graphSteps, partSteps, wideSteps)
	for range 2 + rng.IntN(7) {
		x := g.values[len(g.values)-1]
		if rng.IntN(5) < 2 {
			x = g.values[rng.IntN(len(g.values))]
		}
		if len(x.dims) > 0 {
			steps[rng.IntN(len(steps))](g, x)
		}
	}
	rounded = g.finish()
	return g.module(), rounded
}

// TestRandomLarge compares random graphs of larger arrays with the reference.
func TestRandomLarge(t *testing.T) { checkGraphs(t, randomLarge, 3) }

// TestRandomParts compares random graphs of parts with the reference, numbered like those of
// TestRandomGraphs.
func TestRandomParts(t *testing.T) { checkGraphs(t, randomParts, 60) }
