package reference_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// same runs programs of the same parameters on the same whole numbers; all
// must give the same bits.
func same(t *rapid.T, programs ...string) {
	t.Helper()
	var first kernels.Buffer
	for k, text := range programs {
		m, err := hlo.Parse("f", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		in := make([]kernels.Buffer, len(m.Entry.Params))
		for n, p := range m.Entry.Params {
			in[n], _ = kernels.NewBuffer(p.Shape)
			for at := range p.Shape.Elements() {
				in[n].SetFloat(at, float64((at*7+int64(n))%11-5))
			}
		}
		out, err := reference.Interpret(m.Entry, in)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if k == 0 {
			first = out[0]
		} else if !out[0].Shape.Equal(first.Shape) ||
			!bytes.Equal(out[0].Data, first.Data) {
			t.Fatalf(
				"%s gives %v\n%s gives %v",
				programs[0], kernels.Elements[float32](first), text,
				kernels.Elements[float32](out[0]),
			)
		}
	}
}

func drawWindow(t *rapid.T) hlo.WindowDim {
	small := func(name string) int64 { return rapid.Int64Range(1, 3).Draw(t, name) }
	pad := rapid.Int64Range(-2, 3)
	return hlo.WindowDim{
		Size:         small("size"),
		Stride:       small("stride"),
		PadLow:       pad.Draw(t, "low"),
		PadHigh:      pad.Draw(t, "high"),
		BaseDilation: small("base"),
		Dilation:     small("dilation"),
	}
}

// windowText prints windows; padded ones are left with what pad does not do.
func windowText(ws []hlo.WindowDim, padded bool) string {
	var size, stride, pad, base, dilate, reversed []string
	for _, w := range ws {
		if padded {
			w.PadLow, w.PadHigh, w.BaseDilation = 0, 0, 1
		}
		size = append(size, fmt.Sprint(w.Size))
		stride = append(stride, fmt.Sprint(w.Stride))
		pad = append(pad, fmt.Sprintf("%d_%d", w.PadLow, w.PadHigh))
		base = append(base, fmt.Sprint(w.BaseDilation))
		dilate = append(dilate, fmt.Sprint(w.Dilation))
		reversed = append(reversed, map[bool]string{false: "0", true: "1"}[w.Reversed])
	}
	x := func(words []string) string { return strings.Join(words, "x") }
	return fmt.Sprintf(
		"window={size=%s stride=%s pad=%s lhs_dilate=%s rhs_dilate=%s rhs_reversal=%s}",
		x(size), x(stride), x(pad),
		x(base), x(dilate), x(reversed),
	)
}

func padText(w hlo.WindowDim) string {
	return fmt.Sprintf("%d_%d_%d", w.PadLow, w.PadHigh, w.BaseDilation-1)
}

func ints(dims ...int64) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(dims), " ", ","), "[]")
}

// A window over padding is a window over what pad makes.
func TestReduceWindowIsPadThenWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ws []hlo.WindowDim
		var dims, padded, out []int64
		var pads []string
		for range rapid.IntRange(1, 3).Draw(t, "rank") {
			w, n := drawWindow(t), rapid.Int64Range(0, 5).Draw(t, "extent")
			if w.Padded(n) < 0 {
				w.PadLow, w.PadHigh = 0, 0
			}
			ws, dims, padded, out = append(ws, w),
				append(dims, n),
				append(padded, w.Padded(n)),
				append(out, w.Positions(n))
			pads = append(pads, padText(w))
		}
		op := rapid.SampledFrom([]string{"add", "max", "min"}).Draw(t, "op")
		head := fmt.Sprintf("x = f32[%s] parameter(0); z = f32[] constant(-2); ", ints(dims...))
		same(
			t,
			fmt.Sprintf("%sROOT r = f32[%s] reduce-window(x, z), %s, to_apply=%s", head, ints(out...), windowText(ws, false), op),
			fmt.Sprintf(
				"%sp = f32[%s] pad(x, z), padding=%s; ROOT r = f32[%s] reduce-window(p, z), %s, to_apply=%s",
				head, ints(padded...), strings.Join(pads, "x"),
				ints(out...), windowText(ws, true), op,
			),
		)
	})
}

func TestReduceWindowOfEverythingIsReduce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 7).Draw(t, "n")
		m := rapid.Int64Range(1, 7).Draw(t, "m")
		head := fmt.Sprintf("x = f32[%d,%d] parameter(0); z = f32[] constant(3); ", n, m)
		same(t,
			fmt.Sprintf("%sr = f32[%d] reduce(x, z), dimensions={1}, to_apply=add; ROOT s = f32[%d,1] reshape(r)", head, n, n),
			fmt.Sprintf("%sROOT r = f32[%d,1] reduce-window(x, z), window={size=1x%d}, to_apply=add", head, n, m))
	})
}

func TestConvolutionOfOneElementIsDot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.Int64Range(1, 5)
		b := small.Draw(t, "b")
		n := small.Draw(t, "n")
		f := small.Draw(t, "f")
		o := small.Draw(t, "o")
		head := fmt.Sprintf("x = f32[%d,%d,%d] parameter(0); k = f32[1,%d,%d] parameter(1); ", b, n, f, f, o)
		same(t,
			fmt.Sprintf("%sROOT c = f32[%d,%d,%d] convolution(x, k), window={size=1}, dim_labels=b0f_0io->b0f", head, b, n, o),
			fmt.Sprintf("%sm = f32[%d,%d] reshape(k); ROOT d = f32[%d,%d,%d] dot(x, m), lhs_contracting_dims={2}, rhs_contracting_dims={0}", head, f, o, b, n, o))
	})
}

// A convolution over padding is one over what pad makes, with any labels, and
// a reversed kernel is one that reverse makes.
func TestConvolutionIsPadThenConvolution(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := []hlo.WindowDim{drawWindow(t), drawWindow(t)}
		small := rapid.Int64Range(1, 4)
		x := []int64{
			small.Draw(t, "b"),
			small.Draw(t, "f"),
			small.Draw(t, "h"),
			small.Draw(t, "w"),
		}
		k := []int64{
			x[1],
			small.Draw(t, "o"),
			w[0].Size,
			w[1].Size,
		}
		out, padded := []int64{x[0], k[1], 0, 0}, slices.Clone(x)
		for d := range w {
			if w[d].Padded(x[2+d]) < 0 {
				w[d].PadLow, w[d].PadHigh = 0, 0
			}
			padded[2+d], out[2+d] = w[d].Padded(x[2+d]),
				w[d].Positions(x[2+d])
		}
		plain := slices.Clone(w)
		w[1].Reversed = true
		order := rapid.Permutation([]int{0, 1, 2, 3})
		ox := order.Draw(t, "input")
		ok := order.Draw(t, "kernel")
		oo := order.Draw(t, "result")
		head := fmt.Sprintf("x = f32[%s] parameter(0); k = f32[%s] parameter(1); ", ints(x...), ints(k...))
		same(t,
			fmt.Sprintf(
				"%sz = f32[] constant(0); p = f32[%s] pad(x, z), padding=0_0x0_0x%sx%s; r = f32[%s] reverse(k), dimensions={3}; ROOT c = f32[%s] convolution(p, r), %s, dim_labels=bf01_io01->bf01",
				head, ints(padded...), padText(w[0]),
				padText(w[1]), ints(k...), ints(out...),
				windowText(plain, true),
			),
			fmt.Sprintf(
				"%sxt = %s transpose(x), dimensions={%s}; kt = %s transpose(k), dimensions={%s}; c = %s convolution(xt, kt), %s, dim_labels=%s_%s->%s; ROOT t = f32[%s] transpose(c), dimensions={%s}",
				head, permuted(x, ox), ordered(ox), permuted(k, ok),
				ordered(ok), permuted(out, oo), windowText(w, false),
				lettered("bf01", ox), lettered("io01", ok), lettered("bf01", oo),
				ints(out...), ordered(inverse(oo)),
			))
	})
}

func permuted(dims []int64, order []int) string {
	var out []int64
	for _, d := range order {
		out = append(out, dims[d])
	}
	return "f32[" + ints(out...) + "]"
}

func ordered(order []int) string {
	var out []int64
	for _, d := range order {
		out = append(out, int64(d))
	}
	return ints(out...)
}

func lettered(letters string, order []int) string {
	var out []byte
	for _, d := range order {
		out = append(out, letters[d])
	}
	return string(out)
}

func inverse(order []int) []int {
	out := make([]int, len(order))
	for k, d := range order {
		out[d] = k
	}
	return out
}

// Groups are convolutions of slices, put side by side along the output features.
func TestGroupsAreConvolutionsOfSlices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.Int64Range(1, 3)
		g := small.Draw(t, "groups")
		b := small.Draw(t, "b")
		f := small.Draw(t, "f")
		o := small.Draw(t, "o")
		n, by, attr := int64(4), int64(2), "feature_group_count"
		x, part := []int64{b, n, g * f}, []int64{b, n, f}
		if rapid.Bool().Draw(t, "batch groups") {
			by, attr = 0, "batch_group_count"
			x, part = []int64{g * b, n, f}, []int64{b, n, f}
		}
		head := fmt.Sprintf("x = f32[%s] parameter(0); k = f32[2,%d,%d] parameter(1); ", ints(x...), f, g*o)
		const labels = "window={size=2}, dim_labels=b0f_0io->b0f"
		whole := fmt.Sprintf("%sROOT c = f32[%d,3,%d] convolution(x, k), %s, %s=%d", head, b, g*o, labels, attr, g)
		parts, names := head, []string{}
		for k := range g {
			from := []string{
				fmt.Sprintf("[0:%d]", b),
				fmt.Sprintf("[0:%d]", n),
				fmt.Sprintf("[0:%d]", f),
			}
			from[by] = fmt.Sprintf("[%d:%d]", k*part[by], (k+1)*part[by])
			parts += fmt.Sprintf(
				"x%d = f32[%s] slice(x), slice={%s}; k%d = f32[2,%d,%d] slice(k), slice={[0:2], [0:%d], [%d:%d]}; c%d = f32[%d,3,%d] convolution(x%d, k%d), %s; ",
				k, ints(part...), strings.Join(from, ", "), k, f,
				o, f, k*o, (k+1)*o, k, b, o,
				k, k, labels,
			)
			names = append(names, fmt.Sprintf("c%d", k))
		}
		same(t, whole, parts+fmt.Sprintf("ROOT c = f32[%d,3,%d] concatenate(%s), dimensions={2}", b, g*o, strings.Join(names, ", ")))
	})
}

// Indices that count from a start are a slice, and so is a dynamic slice.
func TestGatherOfCountedIndicesIsSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 6).Draw(t, "n")
		m := rapid.Int64Range(1, 4).Draw(t, "m")
		size := rapid.Int64Range(1, n).Draw(t, "size")
		start := rapid.Int64Range(-2, n+2).Draw(t, "start")
		clamped := min(max(start, 0), n-size)
		head := fmt.Sprintf("x = f32[%d,%d] parameter(0); ", n, m)
		out := fmt.Sprintf("f32[%d,%d]", size, m)
		same(t,
			fmt.Sprintf("%sROOT s = %s slice(x), slice={[%d:%d], [0:%d]}", head, out, clamped, clamped+size, m),
			fmt.Sprintf("%si = s32[] constant(%d); z = s32[] constant(5); ROOT d = %s dynamic-slice(x, i, z), dynamic_slice_sizes={%d,%d}", head, start, out, size, m),
			fmt.Sprintf("%si = s32[%d] iota(), iota_dimension=0; c = s32[] constant(%d); b = s32[%d] broadcast(c), dimensions={}; j = s32[%d] add(i, b); ROOT g = %s gather(x, j), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,%d}", head, size, clamped, size, size, out, m),
			fmt.Sprintf("%si = s32[1] constant({%d}); ROOT g = %s gather(x, i), offset_dims={0,1}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=0, slice_sizes={%d,%d}", head, start, out, size, m))
	})
}

const last = "last { a = f32[] parameter(0); ROOT b = f32[] parameter(1) }\nENTRY e { "

// What was written is read back.
func TestScatterThenGather(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "n")
		m := rapid.Int64Range(1, 4).Draw(t, "m")
		places := []int64{}
		for k := range n {
			places = append(places, int64(k))
		}
		places =
			rapid.Permutation(places).Draw(t, "places")[:rapid.IntRange(1, n).Draw(t, "count")]
		head := fmt.Sprintf("x = f32[%d,%d] parameter(0); i = s32[%d] constant({%s}); u = f32[%d,%d] parameter(1); ", n, m, len(places), ints(places...), len(places), m)
		same(t,
			fmt.Sprintf("%sROOT c = f32[%d,%d] copy(u)", head, len(places), m),
			fmt.Sprintf("%s%ss = f32[%d,%d] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=last; ROOT g = f32[%d,%d] gather(s, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,%d} }",
				last, head, n, m, len(places), m, m))
	})
}

func TestDynamicUpdateThenSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 6).Draw(t, "n")
		start := rapid.Int64Range(-3, 9).Draw(t, "start")
		size := rapid.Int64Range(0, n).Draw(t, "size")
		head := fmt.Sprintf("x = f32[%d] parameter(0); u = f32[%d] parameter(1); i = s64[] constant(%d); ", n, size, start)
		same(t,
			fmt.Sprintf("%sROOT c = f32[%d] copy(u)", head, size),
			fmt.Sprintf("%sd = f32[%d] dynamic-update-slice(x, u, i); ROOT s = f32[%d] dynamic-slice(d, i), dynamic_slice_sizes={%d}", head, n, size, size))
	})
}

// Whatever dimension numbers the front end accepts, Reference computes or
// refuses.
func TestRandomDimensionNumbers(t *testing.T) {
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		text := drawIndexed(t)
		m, err := hlo.Parse("f", []byte(text))
		if err != nil {
			return
		}
		accepted++
		for _, content := range []check.Content{check.Normals, check.Integers} {
			in, err := check.Inputs(m.Entry, content, 1)
			if err != nil {
				t.Fatal(err)
			}
			out, err := reference.Interpret(m.Entry, in)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			elementByElement(t, m.Entry, in, out[0])
		}
		check.Exact(m.Entry)
		check.ToleranceOf(m.Entry)
	})
	if accepted == 0 {
		t.Error("no program was accepted")
	}
	t.Logf("%d programs", accepted)
}

// elementByElement compares the result with the elements that are evaluated by themselves.
func elementByElement(t *rapid.T, c *hlo.Computation, in []kernels.Buffer, want kernels.Buffer) {
	s := reference.NewElementEvaluator(context.Background(), c, in, 1<<30)
	for at := range want.Shape.Elements() {
		x, err := s.Output(0, at)
		y := want.Float(want.At(reference.Unravel(at, want.Shape.Dims)))
		if err != nil || x != y && (x == x || y == y) {
			t.Fatalf("element %d: %v, %v, reference %v\n%s", at, err, x, y, c)
		}
	}
}

// drawIndexed draws a gather or scatter that is often valid: the dimensions of
// the operand are shared out among collapsed, batched and window dimensions.
func drawIndexed(t *rapid.T) string {
	rank := rapid.IntRange(1, 3).Draw(t, "rank")
	small := rapid.Int64Range(1, 3)
	var dims, sizes, collapsed, batched, windows, indexed, batches []int64
	for d := range int64(rank) {
		n := rapid.Int64Range(0, 4).Draw(t, "extent")
		size := rapid.Int64Range(0, n).Draw(t, "size")
		role := rapid.IntRange(0, 3).Draw(t, "role")
		switch {
		case role == 0 && n > 0:
			collapsed, size = append(collapsed, d), 1
		case role == 1 && n > 0:
			batched, batches, size = append(batched, d), append(batches, n), 1
		default:
			windows = append(windows, size)
		}
		if role != 1 && rapid.Bool().Draw(t, "indexed") {
			indexed = append(indexed, d)
		}
		dims, sizes = append(dims, n), append(sizes, size)
	}
	batches = append(batches, small.Draw(t, "batch"))
	vector := rapid.IntRange(0, len(batches)).Draw(t, "index_vector_dim")
	indices := slices.Insert(slices.Clone(batches), vector, int64(len(indexed)))
	indexed = rapid.Permutation(indexed).Draw(t, "map")
	var inIndices []int64
	for d := range int64(len(batched)) {
		if d >= int64(vector) {
			d++
		}
		inIndices = append(inIndices, d)
	}
	places := rapid.Permutation(slices.Concat(
		make([]int64, len(windows)),
		slices.Repeat([]int64{1}, len(batches)),
	)).Draw(t, "places")
	var offset, result []int64
	w, b := windows, batches
	for d, isBatch := range places {
		if isBatch == 1 {
			result, b = append(result, b[0]), b[1:]
		} else {
			offset = append(offset, int64(d))
			result = append(result, w[0])
			w = w[1:]
		}
	}
	dtype := rapid.SampledFrom([]string{"s32", "s64", "u8", "u64", "s4"}).Draw(t, "type")
	head := fmt.Sprintf("x = f32[%s] parameter(0); i = %s[%s] parameter(1); ", ints(dims...), dtype, ints(indices...))
	if rapid.Bool().Draw(t, "scatter") {
		return fmt.Sprintf(
			"%su = f32[%s] parameter(2); ROOT s = f32[%s] scatter(x, i, u), update_window_dims={%s}, inserted_window_dims={%s}, input_batching_dims={%s}, scatter_indices_batching_dims={%s}, scatter_dims_to_operand_dims={%s}, index_vector_dim=%d, to_apply=add",
			head, ints(result...), ints(dims...), ints(offset...),
			ints(collapsed...), ints(batched...), ints(inIndices...),
			ints(indexed...), vector,
		)
	}
	return fmt.Sprintf(
		"%sROOT g = f32[%s] gather(x, i), offset_dims={%s}, collapsed_slice_dims={%s}, operand_batching_dims={%s}, start_indices_batching_dims={%s}, start_index_map={%s}, index_vector_dim=%d, slice_sizes={%s}",
		head, ints(result...), ints(offset...), ints(collapsed...),
		ints(batched...), ints(inIndices...), ints(indexed...), vector,
		ints(sizes...),
	)
}

// A digit of a known answer's program is changed: it computes something else,
// or is refused, but never panics.
func TestMutatedPrograms(t *testing.T) {
	var programs []string
	for _, file := range []string{"reference.txt", "reference_window.txt", "reference_dynamic.txt"} {
		text, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(text), "run\n")[1:] {
			if program, _, _ := strings.Cut(part, "----"); !strings.Contains(program, "0000") {
				programs = append(programs, program)
			}
		}
	}
	computed := 0
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(rapid.SampledFrom(programs).Draw(t, "program"))
		for range rapid.IntRange(1, 2).Draw(t, "changes") {
			at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
			for at < len(text)-1 && (text[at] < '0' || text[at] > '9') {
				at++
			}
			text[at] = byte('0' + rapid.IntRange(0, 9).Draw(t, "digit"))
		}
		m, err := hlo.Parse("f", text)
		if err != nil {
			return
		}
		check.Exact(m.Entry)
		check.ToleranceOf(m.Entry)
		in, err := check.Inputs(m.Entry, check.Integers, 1)
		if err != nil {
			return
		}
		if _, err := reference.Interpret(m.Entry, in); err == nil {
			computed++
		}
	})
	t.Logf("%d programs computed", computed)
}
