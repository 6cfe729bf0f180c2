package indexing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// A composer writes a random computation, value by value.
type composer struct {
	sampler
	lines  []string
	params []string // their shapes
	names  []string // of the values made so far
	dims   [][]int64
}

func (w *composer) param(shape string) string {
	name := fmt.Sprintf("p%d", len(w.params))
	w.params = append(w.params, shape)
	return name
}

func (w *composer) value(dims []int64, text string, args ...any) {
	name := fmt.Sprintf("v%d", len(w.names))
	w.lines = append(
		w.lines,
		fmt.Sprintf("%s = %s %s", name, f32(dims), fmt.Sprintf(text, args...)),
	)
	w.names, w.dims = append(w.names, name), append(w.dims, dims)
}

// step adds one operation on a value that there is.
func (w *composer) step() {
	at := w.IntN(len(w.names))
	x, dims := w.names[at], w.dims[at]
	switch w.IntN(11) {
	case 0:
		perm := w.perm(len(dims))
		w.value(pickExtents(dims, perm), "transpose(%s), dimensions={%s}", x, commas(perm))
	case 1:
		to := append([]int64{1}, dims...)
		if len(dims) > 1 {
			to = append([]int64{dims[0] * dims[1]}, dims[2:]...)
		}
		w.value(to, "reshape(%s)", x)
	case 2:
		to, text := w.cut(dims)
		if !slices.Contains(to, 0) {
			w.value(to, "slice(%s), slice={%s}", x, text)
		}
	case 3:
		w.value(
			dims, "reverse(%s), dimensions={%s}",
			x,
			commas(w.some(len(dims), w.IntN(len(dims)+1))),
		)
	case 4:
		w.padded(x, dims)
	case 5:
		to := slices.Clone(dims)
		to[0] *= 2
		w.value(to, "concatenate(%s, %s), dimensions={0}", x, x)
	case 6:
		if len(dims) > 1 {
			d := w.some(len(dims), 1)
			w.lines = append(w.lines, "z"+x+fmt.Sprint(len(w.lines))+" = f32[] constant(0)")
			z, _, _ := strings.Cut(w.lines[len(w.lines)-1], " ")
			w.value(without(dims, d), "reduce(%s, %s), dimensions={%s}, to_apply=add", x, z, commas(d))
		}
	case 7:
		other := w.names[len(w.names)-1]
		if slices.Equal(w.dims[len(w.dims)-1], dims) {
			w.value(dims, "add(%s, %s)", x, other)
		}
	case 8:
		w.sliced(x, dims)
	case 9:
		n := w.param("s32[3,1]")
		to := append([]int64{3}, dims...)
		to[1] = 1
		var offset []int64
		for d := range dims {
			offset = append(offset, int64(d+1))
		}
		w.value(to, "gather(%s, %s), offset_dims={%s}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1, slice_sizes={%s}", x, n, commas(offset), commas(to[1:]))
	case 10:
		if len(dims) < 3 {
			to := append(slices.Clone(dims), 2)
			w.value(to, "broadcast(%s), dimensions={%s}", x, commas(w.upwards(len(dims))))
		}
	}
}

func (w *composer) upwards(n int) (out []int64) {
	for k := range n {
		out = append(out, int64(k))
	}
	return out
}

func (w *composer) padded(x string, dims []int64) {
	to, words := make([]int64, len(dims)), make([]string, len(dims))
	for k, n := range dims {
		low, high, interior := w.upTo(3)-1, w.upTo(2), w.upTo(1)
		to[k] = max(0, low+high+n+max(0, n-1)*interior)
		words[k] = fmt.Sprintf("%d_%d_%d", low, high, interior)
	}
	if !slices.Contains(to, 0) {
		w.lines = append(w.lines, fmt.Sprintf("z%d = f32[] constant(0)", len(w.lines)))
		w.value(to, "pad(%s, z%d), padding=%s", x, len(w.lines)-1, strings.Join(words, "x"))
	}
}

func (w *composer) sliced(x string, dims []int64) {
	to := slices.Clone(dims)
	starts := ""
	for k, n := range dims {
		to[k] = 1 + w.upTo(int(n)-1)
		starts += ", " + w.param("s32[]")
	}
	if w.IntN(2) == 0 {
		w.value(to, "dynamic-slice(%s%s), dynamic_slice_sizes={%s}", x, starts, commas(to))
		return
	}
	update := w.param(f32(to))
	w.value(dims, "dynamic-update-slice(%s, %s%s)", x, update, starts)
}

// text is the computation, as a fusion or bare.
func (w *composer) text(fused bool) string {
	var params, args, lines []string
	for k, s := range w.params {
		params = append(params, fmt.Sprintf("p%d = %s parameter(%d)", k, s, k))
		args = append(args, fmt.Sprintf("p%d", k))
	}
	last := len(w.lines) - 1
	lines = append(lines, params...)
	lines = append(append(lines, w.lines[:last]...), "ROOT "+w.lines[last])
	if !fused {
		return strings.Join(lines, "\n")
	}
	_, shape, _ := strings.Cut(w.lines[last], " = ")
	shape, _, _ = strings.Cut(shape, " ")
	shape += ", " + shape
	inner := slices.Concat(params, w.lines, []string{
		fmt.Sprintf(
			"ROOT t = (%s) tuple(%s, %s)",
			shape, w.names[len(w.names)-1],
			w.names[len(w.names)-1],
		),
	})
	one, _, _ := strings.Cut(shape, ", ")
	outer := slices.Concat(params, []string{
		fmt.Sprintf("f = (%s) fusion(%s), kind=kLoop, calls=inside", shape, strings.Join(args, ", ")),
		fmt.Sprintf("ROOT r = %s get-tuple-element(f), index=1", one),
	})
	return "inside {\n" + strings.Join(inner, "\n") + "\n}\nENTRY e {\n" + strings.Join(outer, "\n") + "\n}\n"
}

// TestIndexingThroughFusions compares the maps of whole computations, nested
// ones too, with traces of their instructions put one after the other.
func TestIndexingThroughFusions(t *testing.T) {
	n := 400
	if testing.Short() {
		n = 60
	}
	var c comparison
	for seed := range n {
		w := &composer{sampler: sampler{rand.New(rand.NewPCG(uint64(seed), 11))}}
		dims := w.shape(1 + w.IntN(2))
		for k := range dims {
			dims[k] = max(dims[k], 1)
		}
		w.params = []string{f32(dims)}
		w.names = []string{"p0"}
		w.dims = [][]int64{dims}
		for range 2 + w.IntN(4) {
			w.step()
		}
		if len(w.lines) == 0 ||
			!strings.HasPrefix(w.lines[len(w.lines)-1], "v") {
			continue
		}
		c.computation(t, w, w.text(false), w.text(seed%2 == 0))
		if t.Failed() {
			return
		}
	}
	t.Logf("%d relations: %d equal, %d within a bound, %d unknown", c.equal+c.over+c.unknown, c.equal, c.over, c.unknown)
}

// computation compares the maps of whole with the trace of bare.
func (c *comparison) computation(t *testing.T, w *composer, bare, whole string) {
	m, err := hlo.Parse("sample", []byte(bare))
	if err != nil {
		t.Fatalf("%v\n%s", err, bare)
	}
	f, err := hlo.Parse("sample", []byte(whole))
	if err != nil {
		t.Fatalf("%v\n%s", err, whole)
	}
	data, outer := map[*hlo.Instr][]int64{}, map[*hlo.Instr][]int64{}
	for k, p := range m.Entry.Params {
		if p.Shape.DType == hlo.S32 {
			for range p.Shape.Elements() {
				data[p] = append(data[p], int64(w.IntN(9)-2))
			}
			outer[f.Entry.Params[k]] = data[p]
		}
	}
	read := traceAll(t, m.Entry, data)
	r := index.NewRing()
	params, err := ParamMaps(r, f.Entry, 0)
	if err != nil {
		t.Fatalf("%v\n%s", err, whole)
	}
	e := evaluator{root: f.Entry.Root, data: outer}
	for k, p := range m.Entry.Params {
		c.relation(
			t, whole, "ParamMaps", k, read[p],
			params[k], e.backward(params[k]),
		)
		out, err := OutputMaps(r, f.Entry, k)
		if err != nil {
			t.Fatalf("%v\n%s", err, whole)
		}
		c.relation(
			t, whole, "OutputMaps", k, read[p], out[0],
			e.forward(out[0], p.Shape.Dims),
		)
	}
}

// traceAll pairs the elements of the root with those of every instruction.
func traceAll(
	t *testing.T, c *hlo.Computation, data map[*hlo.Instr][]int64,
) map[*hlo.Instr]map[[2]string]bool {
	all := map[*hlo.Instr]map[[2]string]bool{c.Root: {}}
	eachIndex(c.Root.Shape.Dims, func(at []int64) {
		all[c.Root][[2]string{pointKey(at), pointKey(at)}] = true
	})
	for _, in := range slices.Backward(c.Instrs) {
		if len(all[in]) == 0 || len(in.Operands) == 0 {
			continue
		}
		one, ok := newTrace(in, data)
		if !ok {
			t.Fatalf("%s is not traced", in.Op)
		}
		for k, o := range in.Operands {
			byResult := map[string][]string{}
			for pair := range one.pairs[k] {
				byResult[pair[0]] = append(byResult[pair[0]], pair[1])
			}
			if all[o] == nil {
				all[o] = map[[2]string]bool{}
			}
			for pair := range all[in] {
				for _, element := range byResult[pair[1]] {
					all[o][[2]string{pair[0], element}] = true
				}
			}
		}
	}
	return all
}
