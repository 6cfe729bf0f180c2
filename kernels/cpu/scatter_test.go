package cpu

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
)

// scatters is fusions of a scatter: by the type of elements, of indices, and how elements
// are combined.
var scatterForms = []struct{ name, body string }{
	{"points", "x = T[11] parameter(0)\ni = I[40] parameter(1)\nu = T[40] parameter(2)\n" +
		"ROOT s = T[11] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=fold"},
	{"rows", "x = T[6,19] parameter(0)\ni = I[9,1] parameter(1)\nu = T[9,19] parameter(2)\n" +
		"ROOT s = T[6,19] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=fold"},
	{"even rows", "x = T[6,48] parameter(0)\ni = I[9,1] parameter(1)\nu = T[9,48] parameter(2)\n" +
		"ROOT s = T[6,48] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=fold"},
	{"even rows of nothing", "z = T[] constant(0)\nx = T[6,2,24] broadcast(z), dimensions={}\ni = I[2,9,1] parameter(0)\nu = T[2,9,2,24] parameter(1)\n" +
		"ROOT s = T[6,2,24] scatter(x, i, u), update_window_dims={2,3}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=2, to_apply=fold"},
	{"read twice", "x = T[9,24] parameter(0)\ni = I[9,1] parameter(1)\n" +
		"s = T[9,24] scatter(x, i, x), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=fold\nROOT t = T[9,24] multiply(s, x)"},
	{"of itself", "x = T[9,24] parameter(0)\ni = I[9,1] parameter(1)\n" +
		"ROOT s = T[9,24] scatter(x, i, x), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=fold"},
	{"parts of rows", "x = T[6,19] parameter(0)\ni = I[2,5,1] parameter(1)\nu = T[2,5,7] parameter(2)\n" +
		"ROOT s = T[6,19] scatter(x, i, u), update_window_dims={2}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=2, to_apply=fold"},
	{"windows anywhere", "x = T[6,9] parameter(0)\ni = I[7,2] parameter(1)\nu = T[7,2,4] parameter(2)\n" +
		"ROOT s = T[6,9] scatter(x, i, u), update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={1,0}, index_vector_dim=1, to_apply=fold"},
	{"columns", "x = T[17,5] parameter(0)\ni = I[8] parameter(1)\nu = T[17,8] parameter(2)\n" +
		"ROOT s = T[17,5] scatter(x, i, u), update_window_dims={0}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, index_vector_dim=1, to_apply=fold"},
	{"batched", "x = T[2,6,5] parameter(0)\ni = I[6,3,1] parameter(1)\nu = T[2,6,3] parameter(2)\n" +
		"ROOT s = T[2,6,5] scatter(x, i, u), update_window_dims={0}, inserted_window_dims={2}, input_batching_dims={1}, scatter_indices_batching_dims={0}, scatter_dims_to_operand_dims={2}, index_vector_dim=2, to_apply=fold"},
	{"points of rows", "x = T[6,5] parameter(0)\ni = I[6,3,1] parameter(1)\nu = T[6,3] parameter(2)\n" +
		"ROOT s = T[6,5] scatter(x, i, u), update_window_dims={}, inserted_window_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={0}, scatter_dims_to_operand_dims={1}, index_vector_dim=2, to_apply=fold"},
	{"points of columns", "x = T[5,6] parameter(0)\ni = I[6,3] parameter(1)\nu = T[6,3] parameter(2)\n" +
		"ROOT s = T[5,6] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, input_batching_dims={1}, scatter_indices_batching_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=2, to_apply=fold"},
	{"one update", "x = T[7,6] parameter(0)\ni = I[1] parameter(1)\nu = T[2,6] parameter(2)\n" +
		"ROOT s = T[7,6] scatter(x, i, u), update_window_dims={0,1}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=fold"},
	{"cross index vectors", "x = T[5,6] parameter(0)\ni = I[2,9] parameter(1)\nu = T[9] parameter(2)\n" +
		"ROOT s = T[5,6] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=0, to_apply=fold"},
	{"fused", "x = T[6,19] parameter(0)\ni = I[9,1] parameter(1)\nu = T[19,9] parameter(2)\nw = T[9,19] transpose(u), dimensions={1,0}\nv = T[9,19] add(w, w)\nz = T[] constant(0)\no = T[6,19] broadcast(z), dimensions={}\n" +
		"s = T[6,19] scatter(o, i, v), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=fold\nr = T[6,19] multiply(s, x)\nROOT t = T[19,6] transpose(r), dimensions={1,0}"},
	{"gathered", "x = T[6,19] parameter(0)\ni = I[9,1] parameter(1)\nj = I[9,1] parameter(2)\ng = T[9,19] gather(x, j), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,19}\n" +
		"s = T[6,19] scatter(x, i, g), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=fold\nROOT t = T[3,19] slice(s), slice={[1:4], [0:19]}"},
	{"counted", "i = I[40,1] parameter(0)\none = T[] constant(1)\nu = T[40] broadcast(one), dimensions={}\nz = T[] constant(0)\no = T[11] broadcast(z), dimensions={}\n" +
		"ROOT s = T[11] scatter(o, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=fold"},
	{"joined", "x = T[6,19] parameter(0)\ni = I[9,1] parameter(1)\nu = T[9,19] parameter(2)\n" +
		"s = T[6,19] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=fold\nROOT c = T[6,38] concatenate(x, s), dimensions={1}"},
	{"padded", "x = T[6,19] parameter(0)\ni = I[9,1] parameter(1)\nu = T[9,19] parameter(2)\nz = T[] constant(0)\n" +
		"s = T[6,19] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=fold\nROOT p = T[6,24] pad(s, z), padding=0_0x5_0"},
	{"summed", "x = T[6,19] parameter(0)\ni = I[9,1] parameter(1)\nu = T[9,19] parameter(2)\nz = T[] constant(0)\n" +
		"s = T[6,19] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=fold\nROOT r = T[6] reduce(s, z), dimensions={1}, to_apply=sum"},
	{"in windows", "x = T[17] parameter(0)\ni = I[5,1] parameter(1)\nu = T[5] parameter(2)\nz = T[] constant(0)\n" +
		"s = T[17] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=fold\nROOT r = T[9] reduce-window(s, z), window={size=3 stride=2 pad=1_1}, to_apply=sum"},
}

// scatterText is the module of a form.
func scatterText(body, fold, elements, indices string) string {
	text := "fold { a = T[] parameter(0)\nb = T[] parameter(1)\n" + fold + " }\n" +
		"sum { a = T[] parameter(0)\nb = T[] parameter(1)\nROOT c = T[] add(a, b) }\nENTRY e { " + body + " }"
	return strings.NewReplacer("T[", elements+"[", "I[", indices+"[").Replace(text)
}

// folds are how scatters combine.
var folds = []string{
	"ROOT c = T[] add(a, b)", "ROOT c = T[] add(b, a)", "ROOT c = T[] maximum(a, b)", "ROOT c = T[] minimum(a, b)",
	"ROOT c = T[] multiply(a, b)", "ROOT c = T[] copy(b)",
}

// Every form of scatter, of several types, gives what the reference gives, whose indices
// repeat and leave the array; and the same bits for every tiling.
func TestScatterOfEveryTiling(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 8))
	types := []string{"f32", "bf16", "s32", "f64", "u8", "s64"}
	for _, form := range scatterForms {
		for k, fold := range folds {
			if strings.Contains(fold, "copy") {
				fold = "ROOT b2 = T[] parameter(1)"
				fold = strings.Replace(fold, "b2", "b", 1)
			}
			elements := types[rng.IntN(len(types))]
			if k == 0 {
				elements = "f32"
			}
			indices := []string{"s32", "s64", "u32"}[rng.IntN(3)]
			text := scatterText(form.body, fold, elements, indices)
			if strings.HasPrefix(fold, "ROOT b =") {
				text = strings.Replace(text, "b = "+elements+"[] parameter(1)\nROOT b", "ROOT b", 1)
			}
			t.Run(fmt.Sprintf("%s/%s", form.name, strings.Fields(text)[0]+fmt.Sprint(k)+elements+indices), func(t *testing.T) {
				checkScatter(t, rng, text)
			})
		}
	}
}

// checkScatter verifies a scatter at some tilings, and compares their bits.
func checkScatter(t *testing.T, rng *rand.Rand, text string) {
	p := kerneltest.Program(t, text)
	v := kerneltest.Verifier(t, p, 3)
	in, err := check.Inputs(p.Fusion, check.Normals, 4)
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Collect(p.Space.Tilings())
	if len(all) == 0 {
		t.Fatal("no tilings")
	}
	var first []byte
	for n := range min(25, len(all)) {
		tiling := all[rng.IntN(len(all))]
		if n == 0 {
			tiling = all[len(all)-1]
		}
		k, err := New().Compile(context.Background(), p, kernels.Plan{Tiles: tiling})
		if err != nil {
			t.Fatalf("%v: %v\n%s", tiling, err, text)
		}
		if err := v.Verify(context.Background(), k); err != nil {
			t.Fatalf("%v: %v\n%s\n%s", tiling, err, text, p)
		}
		got := bytesOfRun(t, p, k, in)
		if n == 0 {
			allocatesNothing(t, p.Fusion, k)
		}
		if first == nil {
			first = got
		}
		if !strings.Contains(text, "to_apply=sum") && !bytes.Equal(first, got) {
			t.Errorf("%v gives other bits than %v\n%s", tiling, all[len(all)-1], text)
		}
		k.Close()
	}
}

// bytesOfRun is the bytes of the outputs of a kernel.
func bytesOfRun(t *testing.T, p *symtile.Program, k kernels.Kernel, in []kernels.Buffer) (all []byte) {
	t.Helper()
	var out []kernels.Buffer
	for _, s := range kernels.OutputShapes(p.Fusion) {
		b, err := kernels.NewBuffer(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	if _, err := k.Run(context.Background(), in, out); err != nil {
		t.Fatal(err)
	}
	for _, b := range out {
		all = append(all, b.Data...)
	}
	return all
}

// The gradient of an embedding of 32,000 rows of 512 by the updates of 1,024 tokens.
func BenchmarkEmbeddingGradient(b *testing.B) {
	body := "i = I[1024,1] parameter(0)\nu = T[1024,512] parameter(1)\nz = T[] constant(0)\no = T[32000,512] broadcast(z), dimensions={}\n" +
		"ROOT s = T[32000,512] scatter(o, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=fold"
	for _, elements := range []string{"f32", "bf16"} {
		b.Run(elements, func(b *testing.B) {
			p := kerneltest.Program(b, scatterText(body, folds[0], elements, "s32"))
			plan, err := New().Default(b.Context(), p)
			if err != nil {
				b.Fatal(err)
			}
			b.Log(plan)
			k, bench := benched(b, p, plan)
			defer k.Close()
			best := time.Duration(math.MaxInt64)
			for b.Loop() {
				d, err := bench.Run(b.Context(), k)
				if err != nil {
					b.Fatal(err)
				}
				best = min(best, d)
			}
			b.ReportMetric(best.Seconds()*1e3, "ms-at-best")
		})
	}
}
