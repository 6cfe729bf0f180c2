package cpu

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/indexing"
)

// A chain is a random program under construction: HLO text and the shape of
// its last value.
type chain struct {
	rng    *rand.Rand
	text   strings.Builder
	dims   []int64
	n      int
	params int // parameters besides v0
}

func (c *chain) last() string { return fmt.Sprintf("v%d", c.n) }

func shapeText(dims []int64) string {
	return hlo.Shape{DType: hlo.F32, Dims: dims}.String()
}

// add appends an instruction; %s stands for the last value.
func (c *chain) add(dims []int64, format string, args ...any) {
	from := c.last()
	c.n++
	fmt.Fprintf(
		&c.text, "%s = %s %s\n",
		c.last(), shapeText(dims),
		strings.ReplaceAll(fmt.Sprintf(format, args...), "%s", from),
	)
	c.dims = dims
}

// randomProgram makes a parameter and a few operations on it.
func randomProgram(rng *rand.Rand, ops int) string {
	c := &chain{rng: rng}
	for range 1 + rng.IntN(3) {
		c.dims = append(c.dims, pickExtent(rng))
	}
	if rng.IntN(4) == 0 { // rows that machine code reads and writes in place
		c.dims[len(c.dims)-1] = []int64{
			64, 72, 130,
		}[rng.IntN(3)]
	}
	fmt.Fprintf(&c.text, "v0 = %s parameter(0)\nzero = f32[] constant(0)\npadding = f32[] constant(7)\n", shapeText(c.dims))
	for range ops {
		steps := []func(*chain){
			(*chain).reshape, (*chain).transpose, (*chain).slice,
			(*chain).reverse, (*chain).pad, (*chain).concatenate,
			(*chain).broadcast, (*chain).reduce, (*chain).elementwise,
			(*chain).dot, (*chain).window, (*chain).convolution,
			(*chain).dynamicSlice, (*chain).dynamicUpdate, (*chain).gather,
		}
		steps[rng.IntN(len(steps))](c)
	}
	return c.text.String()
}

func pickExtent(rng *rand.Rand) int64 {
	return []int64{
		1, 2, 3, 4, 5, 6, 7, 8, 12,
	}[rng.IntN(9)]
}

func product64(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	return n
}

func (c *chain) reshape() {
	n := product64(c.dims)
	var dims []int64
	for range 1 + c.rng.IntN(3) {
		var divisors []int64
		for d := int64(1); d <= n; d++ {
			if n%d == 0 {
				divisors = append(divisors, d)
			}
		}
		d := divisors[c.rng.IntN(len(divisors))]
		dims, n = append(dims, d), n/d
	}
	c.add(append(dims, n), "reshape(%%s)")
}

func (c *chain) transpose() {
	perm := c.rng.Perm(len(c.dims))
	dims := make([]int64, len(perm))
	for k, p := range perm {
		dims[k] = c.dims[p]
	}
	c.add(dims, "transpose(%%s), dimensions={%s}", list(perm))
}

func list(v []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(v), " ", ","), "[]")
}

func (c *chain) slice() {
	dims := slices.Clone(c.dims)
	var ranges []string
	for k, d := range c.dims {
		start := c.rng.Int64N(d)
		limit := start + 1 + c.rng.Int64N(d-start)
		stride := 1 + c.rng.Int64N(3)
		dims[k] = (limit - start + stride - 1) / stride
		ranges = append(ranges, fmt.Sprintf("[%d:%d:%d]", start, limit, stride))
	}
	c.add(dims, "slice(%%s), slice={%s}", strings.Join(ranges, ", "))
}

func (c *chain) reverse() {
	c.add(
		c.dims, "reverse(%%s), dimensions={%s}",
		list(
			c.rng.Perm(
				len(c.dims),
			)[:c.rng.IntN(len(c.dims)+1)],
		),
	)
}

func (c *chain) pad() {
	dims := slices.Clone(c.dims)
	var words []string
	for k, d := range c.dims {
		low := c.rng.Int64N(4) - 1
		high := c.rng.Int64N(4) - 1
		interior := c.rng.Int64N(4) / 2
		if dims[k] = low + high + d + (d-1)*interior; dims[k] < 1 {
			low, high, interior, dims[k] = 0, 0, 0, d
		}
		words = append(words, fmt.Sprintf("%d_%d_%d", low, high, interior))
	}
	c.add(dims, "pad(%%s, padding), padding=%s", strings.Join(words, "x"))
}

func (c *chain) concatenate() {
	k := c.rng.IntN(len(c.dims))
	dims := slices.Clone(c.dims)
	dims[k] *= 2
	c.add(dims, "concatenate(%%s, %%s), dimensions={%d}", k)
}

func (c *chain) broadcast() {
	if product64(c.dims) > 200 || len(c.dims) > 3 {
		return
	}
	at := c.rng.IntN(len(c.dims) + 1)
	dims := slices.Insert(slices.Clone(c.dims), at, pickExtent(c.rng))
	var from []int
	for k := range dims {
		if k != at {
			from = append(from, k)
		}
	}
	c.add(dims, "broadcast(%%s), dimensions={%s}", list(from))
}

func (c *chain) reduce() {
	if len(c.dims) < 2 {
		return
	}
	k := c.rng.IntN(len(c.dims))
	c.add(slices.Delete(slices.Clone(c.dims), k, k+1), "reduce(%%s, zero), dimensions={%d}, to_apply=add", k)
}

func (c *chain) elementwise() { c.add(c.dims, "negate(%%s)") }

// dot multiplies a matrix with its own transpose.
func (c *chain) dot() {
	if len(c.dims) != 2 || product64(c.dims) > 200 {
		return
	}
	c.add([]int64{c.dims[0], c.dims[0]}, "dot(%%s, %%s), lhs_contracting_dims={1}, rhs_contracting_dims={1}")
}

// parameter adds one and returns its name.
func (c *chain) parameter(shape string) string {
	c.params++
	fmt.Fprintf(&c.text, "p%d = %s parameter(%d)\n", c.params, shape, c.params)
	return fmt.Sprintf("p%d", c.params)
}

// windowText makes a window over extents, and the positions it has.
func (c *chain) windowText(extents []int64) (text string, sizes, positions []int64) {
	words := map[string][]string{}
	for _, n := range extents {
		w := hlo.WindowDim{
			Size:         1 + c.rng.Int64N(3),
			Stride:       1 + c.rng.Int64N(3),
			PadLow:       c.rng.Int64N(3) - c.rng.Int64N(2),
			PadHigh:      c.rng.Int64N(3),
			BaseDilation: 1 + c.rng.Int64N(5)/4,
			Dilation:     1 + c.rng.Int64N(2),
			Reversed:     c.rng.IntN(3) == 0,
		}
		if w.Positions(n) < 1 {
			w = hlo.WindowDim{Size: 1, Stride: 1, BaseDilation: 1, Dilation: 1}
		}
		sizes, positions = append(sizes, w.Size), append(positions, w.Positions(n))
		reversed := 0
		if w.Reversed {
			reversed = 1
		}
		for name, v := range map[string]any{
			"size":         w.Size,
			"stride":       w.Stride,
			"pad":          fmt.Sprintf("%d_%d", w.PadLow, w.PadHigh),
			"lhs_dilate":   w.BaseDilation,
			"rhs_dilate":   w.Dilation,
			"rhs_reversal": reversed,
		} {
			words[name] = append(words[name], fmt.Sprint(v))
		}
	}
	for _, name := range []string{"size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal"} {
		text += name + "=" + strings.Join(words[name], "x") + " "
	}
	return "{" + strings.TrimSpace(text) + "}", sizes, positions
}

func (c *chain) window() {
	if product64(c.dims) > 200 {
		return
	}
	text, _, positions := c.windowText(c.dims)
	text = strings.ReplaceAll(text, "rhs_reversal", "stride") // not of a reduce-window
	text = text[:strings.LastIndex(text, " stride")] + "}"
	c.add(positions, "reduce-window(%%s, %s), window=%s, to_apply=add", []string{"zero", "padding"}[c.rng.IntN(2)], text)
}

// convolution takes the first dimension as the batch and the last as the
// feature, or the other way round.
func (c *chain) convolution() {
	rank := len(c.dims)
	if rank < 2 || product64(c.dims) > 120 {
		return
	}
	text, sizes, positions := c.windowText(c.dims[1 : rank-1])
	batch, feature := 0, rank-1
	if c.rng.IntN(2) == 0 {
		batch, feature = feature, batch
	}
	groups, out, name := int64(1), 1+c.rng.Int64N(3), "feature_group_count"
	if c.rng.IntN(2) == 0 {
		groups = c.dims[feature]
		if c.rng.IntN(2) == 0 {
			groups, name = c.dims[batch], "batch_group_count"
		}
	}
	in := c.dims[feature]
	b := c.dims[batch]
	if name == "feature_group_count" {
		in /= groups
	} else {
		b /= groups
	}
	kernel := c.parameter(shapeText(append(slices.Clone(sizes), in, out*groups)))
	spatial := "0123"[:rank-2]
	labels := "b" + spatial + "f"
	if batch > 0 {
		labels = "f" + spatial + "b"
	}
	dims := append(append([]int64{b}, positions...), out*groups)
	if len(sizes) > 0 {
		name = "window=" + text + ", " + name
	}
	c.add(dims, "convolution(%%s, %s), dim_labels=%s_%sio->b%sf, %s=%d", kernel, labels, spatial, spatial, name, groups)
}

func (c *chain) starts() string {
	var names []string
	for range c.dims {
		names = append(names, c.parameter("s32[]"))
	}
	return strings.Join(names, ", ")
}

func (c *chain) dynamicSlice() {
	dims := make([]int64, len(c.dims))
	for k, n := range c.dims {
		dims[k] = 1 + c.rng.Int64N(n)
	}
	c.add(
		dims, "dynamic-slice(%%s, %s), dynamic_slice_sizes={%s}",
		c.starts(),
		strings.ReplaceAll(strings.Trim(fmt.Sprint(dims), "[]"), " ", ","),
	)
}

func (c *chain) dynamicUpdate() {
	dims := make([]int64, len(c.dims))
	for k, n := range c.dims {
		dims[k] = 1 + c.rng.Int64N(n)
	}
	update := c.parameter(shapeText(dims))
	c.add(c.dims, "dynamic-update-slice(%%s, %s, %s)", update, c.starts())
}

// gather looks up slices along the first dimension.
func (c *chain) gather() {
	if product64(c.dims) > 200 || len(c.dims) > 3 {
		return
	}
	n := 1 + c.rng.Int64N(4)
	indices := c.parameter(fmt.Sprintf("s32[%d]", n))
	var offsets []int
	sizes := slices.Clone(c.dims)
	sizes[0] = 1
	for k := range c.dims[1:] {
		offsets = append(offsets, k+1)
	}
	c.add(append([]int64{n}, c.dims[1:]...), "gather(%%s, %s), offset_dims={%s}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={%s}",
		indices, list(offsets), strings.ReplaceAll(strings.Trim(fmt.Sprint(sizes), "[]"), " ", ","))
}

// TestRandomPrograms holds random programs against two oracles: values against
// the reference, and the elements tiles claim against indexing maps.
func TestRandomPrograms(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	b := New()
	var tally claimTally
	refused := map[string]int{}
	programs := 250
	if testing.Short() {
		programs = 60
	}
	rejected := 0
	for range programs {
		text := randomProgram(rng, 1+rng.IntN(5))
		m, err := hlo.Parse("random", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		p, err := symtile.Analyze(t.Context(), m.Entry)
		var no *symtile.Untileable
		if errors.As(err, &no) {
			refused[no.Rule]++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		v, err := check.NewVerifier(context.Background(), m.Entry, 3)
		if err != nil {
			t.Fatal(err)
		}
		tilings := some(rng, p, 4)
		if plan, err := b.Default(t.Context(), p); errors.Is(err, errDigits) {
			rejected++
			continue
		} else if err != nil {
			t.Error(err)
		} else if k, err := b.Compile(context.Background(), p, plan); err != nil {
			t.Errorf("default %s: %v\n%s", plan, err, text)
		} else {
			k.Close()
		}
		compileOffered(t, b, p, text)
		for _, tiling := range tilings {
			q, err := p.At(tiling)
			if err != nil {
				t.Errorf("a tiling that Tilings proposed: %v\n%s", err, text)
				continue
			}
			k, err := b.Compile(context.Background(), p, kernels.Plan{Tiles: tiling})
			if err != nil && strings.Contains(err.Error(), errDigits.Error()) {
				rejected++
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := v.Verify(context.Background(), k); err != nil {
				t.Errorf("%v\n%s%s", err, text, k.Source())
			}
			k.Close()
			if !strings.Contains(text, "gather") { // which claims all it might read
				tally.check(t, m.Entry, q, text)
			}
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("claims: %d tiles exact, %d show masked elements too, 0 miss one; refused by rule: %v", tally.exact, tally.over, refused)
	t.Logf("%d plans have digits where the backend cannot walk them", rejected)
	if rejected > programs/10 { // a ceiling that only goes down
		t.Errorf("%d plans rejected for digits", rejected)
	}
	if tally.over > tally.exact/5 { // a ceiling that only goes down
		t.Errorf("%d tiles show too much, %d are exact", tally.over, tally.exact)
	}
	total := 0
	for _, n := range refused {
		total += n
	}
	if total > programs/5 {
		t.Errorf("%d of %d programs refused", total, programs)
	}
}

// compileOffered compiles the first plans that are offered of a random program.
func compileOffered(t *testing.T, b *Backend, p *symtile.Program, text string) {
	offered := 40
	if testing.Short() {
		offered = 10
	}
	for plan := range b.Plans(t.Context(), p) {
		if offered--; offered < 0 {
			return
		}
		k, err := b.Compile(context.Background(), p, plan)
		if err != nil {
			t.Errorf("offered %s: %v\n%s", plan, err, text)
			return
		}
		k.Close()
	}
}

// some draws at most n tilings.
func some(rng *rand.Rand, p *symtile.Program, n int) []symtile.Tiling {
	all := slices.Collect(p.Space.Tilings())
	if len(all) == 0 {
		return nil
	}
	var out []symtile.Tiling
	for range n {
		out = append(out, all[rng.IntN(len(all))])
	}
	return out
}

// A claimTally compares what tiles claim with what indexing maps say is read.
type claimTally struct{ exact, over int }

func (c *claimTally) check(t *testing.T, fusion *hlo.Computation, q *symtile.Program, text string) {
	t.Helper()
	maps, err := indexing.ParamMaps(index.NewRing(), fusion, 0)
	if err != nil {
		t.Fatal(err)
	}
	root := q.Ops[q.Roots[0].Op]
	starts := map[index.Expr]int64{}
	for _, r := range q.Runtime {
		starts[r.Var] = 0 // as readBy has it
	}
	each(q, symtile.Parallel, starts, func(env map[index.Expr]int64) {
		read := map[string]bool{}
		elementsOf(root.Tile, env, func(index []int64) {
			for _, m := range maps[0] {
				readBy(m, index, read)
			}
		})
		claimed := map[string]bool{}
		each(q, symtile.Sequential, env, func(env map[index.Expr]int64) {
			for _, op := range q.Ops {
				if op.Code == hlo.OpParameter && op.Instr.Attrs.Param == 0 {
					elementsOf(op.Tile, env, func(index []int64) { claimed[fmt.Sprint(index)] = true })
				}
			}
		})
		for e := range read {
			if !claimed[e] {
				t.Errorf("element %s of the parameter is read, but no tile has it\n%s%s", e, text, q)
			}
		}
		if len(claimed) == len(read) {
			c.exact++
		} else {
			c.over++
		}
	})
}

// each visits every combination of the tile ids of a kind.
func each(
	q *symtile.Program, kind symtile.Kind,
	env map[index.Expr]int64,
	visit func(map[index.Expr]int64),
) {
	var ids []symtile.Dim
	for _, d := range q.Space.Dims {
		if _, fixed := d.Tid.Value(); d.Kind == kind && !fixed {
			ids = append(ids, d)
		}
	}
	var walk func(k int)
	walk = func(k int) {
		if k == len(ids) {
			visit(env)
			return
		}
		tiles, _ := ids[k].Tiles.Value()
		for n := range tiles {
			env[ids[k].Tid] = n
			walk(k + 1)
		}
		delete(env, ids[k].Tid)
	}
	walk(0)
}

// elementsOf visits the unmasked indices of a tile.
func elementsOf(t symtile.Tile, env map[index.Expr]int64, visit func([]int64)) {
	t.Each(env, func(index []int64, there bool) {
		if there {
			visit(index)
		}
	})
}

// readBy adds the elements that a map says an output element is made from.
func readBy(m index.Map, idx []int64, read map[string]bool) {
	if m.State == index.StateEmpty {
		return
	}
	vals := append(
		slices.Clone(idx),
		make([]int64, len(m.Ranges)+len(m.Runtime))...,
	)
	var walk func(k int)
	walk = func(k int) {
		if k == len(m.Ranges) {
			if m.Has(vals) {
				read[fmt.Sprint(m.Eval(vals))] = true
			}
			return
		}
		in := m.Ranges[k].Range()
		for x := in.Lo; x <= in.Hi; x++ {
			vals[len(idx)+k] = x
			walk(k + 1)
		}
	}
	walk(0)
}
