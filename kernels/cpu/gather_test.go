package cpu

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/kernels/reference"
)

// gatherForms is fusions of a gather, by the types of elements (T) and of indices (I).
var gatherForms = []struct{ name, body string }{
	{"elements", "x = T[37] parameter(0)\ni = I[91,1] parameter(1)\n" +
		"ROOT g = T[91] gather(x, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}"},
	{"an element", "x = T[37] parameter(0)\ni = I[1] parameter(1)\n" +
		"ROOT g = T[] gather(x, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=0, slice_sizes={1}"},
	{"scaled elements", "x = T[37] parameter(0)\ni = I[91,1] parameter(1)\n" +
		"g = T[91] gather(x, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}\nROOT s = T[91] add(g, g)"},
	{"computed elements", "x = T[37] parameter(0)\ni = I[91,1] parameter(1)\ny = T[37] add(x, x)\n" +
		"ROOT g = T[91] gather(y, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}"},
	{"rows of 3", "x = T[7,3] parameter(0)\ni = I[20,1] parameter(1)\n" +
		"ROOT g = T[20,3] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}"},
	{"rows of 8", "x = T[7,8] parameter(0)\ni = I[4,20,1] parameter(1)\n" +
		"ROOT g = T[4,20,8] gather(x, i), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,8}"},
	{"rows of 41", "x = T[7,41] parameter(0)\ni = I[20,1] parameter(1)\n" +
		"ROOT g = T[20,41] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,41}"},
	{"rows of 128", "x = T[7,128] parameter(0)\ni = I[20,1] parameter(1)\n" +
		"ROOT g = T[20,128] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,128}"},
	{"scaled rows", "x = T[7,41] parameter(0)\ni = I[20,1] parameter(1)\n" +
		"g = T[20,41] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,41}\nROOT s = T[20,41] add(g, g)"},
	{"parts of rows", "x = T[7,41] parameter(0)\ni = I[20,2] parameter(1)\n" +
		"ROOT g = T[20,5] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,5}"},
	{"columns", "x = T[9,13] parameter(0)\ni = I[31,1] parameter(1)\n" +
		"ROOT g = T[9,31] gather(x, i), offset_dims={0}, collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1, slice_sizes={9,1}"},
	{"along rows", "x = T[9,13] parameter(0)\ni = I[9,6,1] parameter(1)\n" +
		"ROOT g = T[9,6] gather(x, i), offset_dims={}, collapsed_slice_dims={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, start_index_map={1}, index_vector_dim=2, slice_sizes={1,1}"},
	{"along columns", "x = T[13,9] parameter(0)\ni = I[6,9,1] parameter(1)\n" +
		"ROOT g = T[6,9] gather(x, i), offset_dims={}, collapsed_slice_dims={0}, operand_batching_dims={1}, start_indices_batching_dims={1}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,1}"},
	{"points", "x = T[4,5,6] parameter(0)\ni = I[3,50] parameter(1)\n" +
		"ROOT g = T[50] gather(x, i), offset_dims={}, collapsed_slice_dims={0,1,2}, start_index_map={2,0,1}, index_vector_dim=0, slice_sizes={1,1,1}"},
	{"points of four", "x = T[4,5,6,2] parameter(0)\ni = I[50,4] parameter(1)\n" +
		"ROOT g = T[50] gather(x, i), offset_dims={}, collapsed_slice_dims={0,1,2,3}, start_index_map={0,1,2,3}, index_vector_dim=1, slice_sizes={1,1,1,1}"},
	{"blocks", "x = T[6,5,8] parameter(0)\ni = I[12,1] parameter(1)\n" +
		"ROOT g = T[12,5,8] gather(x, i), offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,5,8}"},
	{"windows", "x = T[9,8,3] parameter(0)\ni = I[7,2] parameter(1)\n" +
		"ROOT g = T[4,7,2,3] gather(x, i), offset_dims={0,2,3}, collapsed_slice_dims={}, start_index_map={1,0}, index_vector_dim=1, slice_sizes={4,2,3}"},
	{"of computed indices", "x = T[7,8] parameter(0)\ni = I[20] parameter(1)\none = I[] constant(1)\nones = I[20] broadcast(one), dimensions={}\nj = I[20] subtract(i, ones)\n" +
		"ROOT g = T[20,8] gather(x, j), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,8}"},
	{"of one index", "x = T[70] parameter(0)\nz = I[] constant(90)\ni = I[20,1] broadcast(z), dimensions={}\n" +
		"ROOT g = T[20,8] gather(x, i), offset_dims={1}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1, slice_sizes={8}"},
}

// Every form of gather, of every size of elements and of indices, has the bits of the
// reference, whatever the tiling and whether stores are past the caches; indices repeat and
// leave the array on both sides.
func TestGatherOfEveryTiling(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 9))
	for _, form := range gatherForms {
		for _, elements := range []string{"f32", "bf16", "s8", "f64", "u32", "f8e4m3fn", "pred"} {
			if elements == "pred" && strings.Contains(form.body, "add(") {
				continue
			}
			indices := []string{"s32", "s64", "u32", "s8", "u64"}[rng.IntN(5)]
			text := "ENTRY e { " + strings.NewReplacer(
				"T[", elements+"[", "I[", indices+"[",
			).Replace(form.body) + " }"
			t.Run(
				form.name+"/"+elements+"/"+indices,
				func(t *testing.T) { checkGather(t, rng, text) },
			)
		}
	}
}

// checkGather compares a gather with the reference at some tilings.
func checkGather(
	t *testing.T, rng *rand.Rand, text string,
) {
	p := kerneltest.Program(t, text)
	in, err := check.Inputs(
		p.Fusion, check.Normals, 4,
	)
	if err != nil {
		t.Fatal(err)
	}
	for k, b := range in {
		if strings.Contains(text, "parameter(1)") && k == 1 {
			scramble(rng, b)
		}
	}
	results, err := reference.Interpret(p.Fusion, in)
	if err != nil {
		t.Fatal(err)
	}
	want := results[0].Data
	all := slices.Collect(p.Space.Tilings())
	for n := range min(12, len(all)) {
		plan := kernels.Plan{Tiles: all[rng.IntN(len(all))], Knobs: []kernels.Knob{{Name: "stream", Value: int64(n % 2)}}}
		if n == 0 {
			plan.Tiles = all[len(all)-1]
		}
		k, err := New().Compile(
			context.Background(), p, plan,
		)
		if err != nil {
			t.Fatalf("%v: %v\n%s", plan, err, text)
		}
		if got := bytesOfRun(t, p, k, in); !bytes.Equal(got, want) {
			t.Errorf("%v: got\n% x, want\n% x\n%s", plan, got, want, text)
		}
		if n == 0 {
			allocatesNothing(t, p.Fusion, k)
		}
		k.Close()
	}
}

// scramble makes indices of which most are small, and some have any bits.
func scramble(rng *rand.Rand, b kernels.Buffer) {
	size := int(b.Shape.DType.Size())
	for at := 0; at < len(b.Data); at += size {
		x := rng.Uint64N(12)
		if rng.IntN(4) == 0 {
			x = rng.Uint64()
		}
		for k := range size {
			b.Data[at+k] = byte(
				x >> (8 * k),
			)
		}
	}
}
