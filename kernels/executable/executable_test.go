package executable

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/partition"
)

// counting makes inputs 1, 2, 3, … for the arrays of a computation's parameters.
func counting(t testing.TB, c *hlo.Computation) []kernels.Buffer {
	var in []kernels.Buffer
	for _, p := range c.Params {
		for _, s := range p.Shape.Arrays() {
			b, err := kernels.NewBuffer(s)
			if err != nil {
				t.Fatal(err)
			}
			parts := b.Parts()
			for n := range parts.Shape.Elements() {
				if parts.Shape.DType.IsFloat() {
					parts.SetFloat(n, float64(n+1))
				} else {
					b.SetInt(n, n+1)
				}
			}
			in = append(in, b)
		}
	}
	return in
}

// compiled compiles a module for the CPU.
func compiled(t testing.TB, text string, o Options) (*Executable, *hlo.Module) {
	m, err := hlo.Parse("m", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	split, err := partition.Module(t.Context(), m, partition.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m = split.Module
	e, err := Compile(context.Background(), m, cpu.New(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e, m
}

// The files of testdata hold modules, what they return for inputs of 1, 2, 3, …, by
// kernels and by the reference alike, and what a run allocates of the bytes of
// all values.
func TestModules(t *testing.T) {
	datadriven.RunTest(t, "testdata/modules.txt", func(t *testing.T, d *datadriven.TestData) string {
		var texts []string
		var memory Memory
		for _, interpret := range []bool{true, false} {
			e, m := compiled(t, d.Input, Options{Interpret: interpret})
			for range 2 { // the second run uses the memory of the first
				out, err := e.Run(context.Background(), counting(t, m.Entry))
				if err != nil {
					return err.Error() + "\n"
				}
				texts = append(texts, printed(out))
				if memory = e.Memory(); texts[0] != texts[len(texts)-1] {
					t.Errorf("interpreted %v: %s, at first %s", interpret, texts[len(texts)-1], texts[0])
				}
			}
		}
		return fmt.Sprintf("%s%d of %d bytes are allocated\n", texts[0], memory.Allocated, memory.Values)
	})
}

// What is given back serves the next run, and only once; a parameter among the outputs
// stays what it is.
func TestGiveBack(t *testing.T) {
	const text = `HloModule m
ENTRY e { x = f32[64,64] parameter(0)
y = f32[64,64] add(x, x)
z = f32[64,64] multiply(y, x)
ROOT t = (f32[64,64], f32[64,64], f32[64,64], f32[64,64]) tuple(x, y, z, y) }`
	e, m := compiled(t, text, Options{})
	e.GiveBack() // nothing
	in := counting(t, m.Entry)
	before := printed(in)
	var first string
	for k := range 4 {
		out, err := e.Run(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if k == 0 {
			first = printed(out)
		}
		if got := printed(out); got != first || printed(in) != before {
			t.Errorf("run %d: %s, at first %s", k, got, first)
		}
		if k == 3 {
			break // the outputs are kept
		}
		e.GiveBack()
		e.GiveBack()
	}
	if got, want := e.Memory().Allocated, int64(2*64*64*4); got != want {
		t.Errorf("%d bytes are allocated in four runs, want %d", got, want)
	}
	kept := e.result
	if _, err := e.Run(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	for k, leaf := range kept.leaves()[1:] {
		if now := e.result.leaves()[k+1]; &now.buffer.Data[0] == &leaf.buffer.Data[0] {
			t.Errorf("output %d was not given back and is written again", k+1)
		}
	}
}

// TestKeptInLoops: products by weights that a loop hands on are those of the reference, and
// so they are in the next run, by other weights. Weights that a round changes are not kept, nor
// is anything of the first round.
func TestKeptInLoops(t *testing.T) {
	const text = `HloModule m
f { x = f32[32,64] parameter(0) w = f32[64,64] parameter(1)
ROOT d = f32[32,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
h { x = f32[32,64] parameter(0) l = f32[] constant(-64) u = f32[] constant(64) ROOT c = f32[32,64] clamp(l, x, u) }
body { p = (s32[], f32[32,64], f32[64,64], f32[64,64], f32[64,64]) parameter(0)
n = s32[] get-tuple-element(p), index=0
x = f32[32,64] get-tuple-element(p), index=1
v = f32[64,64] get-tuple-element(p), index=2
w = f32[64,64] get-tuple-element(p), index=3
g = f32[64,64] get-tuple-element(p), index=4
one = s32[] constant(1)
m = s32[] add(n, one)
a = f32[32,64] fusion(x, v), kind=kLoop, calls=f
b = f32[32,64] fusion(a, w), kind=kLoop, calls=f
c = f32[32,64] fusion(b, g), kind=kLoop, calls=f
d = f32[32,64] fusion(c), kind=kLoop, calls=h
k = f32[64,64] add(g, v)
ROOT t = (s32[], f32[32,64], f32[64,64], f32[64,64], f32[64,64]) tuple(m, d, v, w, k) }
more { p = (s32[], f32[32,64], f32[64,64], f32[64,64], f32[64,64]) parameter(0)
n = s32[] get-tuple-element(p), index=0
k = s32[] constant(4)
ROOT c = pred[] compare(n, k), direction=LT }
ENTRY e { x = f32[32,64] parameter(0) v = f32[64,64] parameter(1) w = f32[64,64] parameter(2) g = f32[64,64] parameter(3)
z = s32[] constant(0)
t = (s32[], f32[32,64], f32[64,64], f32[64,64], f32[64,64]) tuple(z, x, v, w, g)
ROOT l = (s32[], f32[32,64], f32[64,64], f32[64,64], f32[64,64]) while(t), condition=more, body=body }`
	m, err := hlo.Parse("m", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var all [2]*Executable
	for k := range all {
		if all[k], err = Compile(t.Context(), m, cpu.New(), Options{Interpret: k == 0}); err != nil {
			t.Fatal(err)
		}
		defer all[k].Close()
	}
	if n := len(all[1].compiler.keepers); n != 2 && gemm() {
		t.Errorf("%d kernels keep something, want those of v and w", n)
	}
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 1))
		in := counting(t, m.Entry)
		for _, b := range in { // whole numbers, whose sums are exact
			for n := range b.Shape.Elements() {
				b.SetFloat(n, float64(rng.IntN(3)-1))
			}
		}
		var texts [2]string
		for k, e := range all {
			out, err := e.Run(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			texts[k] = printed(out)
		}
		if texts[0] != texts[1] {
			t.Errorf("run %d differs from the reference", seed)
		}
	}
}

// gemm reports whether the CPU backend has products in panels.
func gemm() bool { return cpu.New().Identity().VectorBits > 0 }

// BenchmarkKeptInLoops is 64 rounds of a product by four weights, as in an LSTM, that are
// packed in each round, and once.
func BenchmarkKeptInLoops(b *testing.B) {
	const text = `HloModule m
body { p = (s32[], f32[32,512], f32[512,512], f32[512,512], f32[512,512], f32[512,512]) parameter(0)
n = s32[] get-tuple-element(p), index=0
x = f32[32,512] get-tuple-element(p), index=1
v0 = f32[512,512] get-tuple-element(p), index=2
v1 = f32[512,512] get-tuple-element(p), index=3
v2 = f32[512,512] get-tuple-element(p), index=4
v3 = f32[512,512] get-tuple-element(p), index=5
one = s32[] constant(1)
m = s32[] add(n, one)
v = f32[512,2048] concatenate(v0, v1, v2, v3), dimensions={1}
d = f32[32,2048] dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
a = f32[32,512] slice(d), slice={[0:32],[0:512]}
c = f32[32,512] slice(d), slice={[0:32],[512:1024]}
e = f32[32,512] slice(d), slice={[0:32],[1024:1536]}
f = f32[32,512] slice(d), slice={[0:32],[1536:2048]}
g = f32[32,512] multiply(a, c)
h = f32[32,512] multiply(e, f)
i = f32[32,512] add(g, h)
y = f32[32,512] tanh(i)
ROOT t = (s32[], f32[32,512], f32[512,512], f32[512,512], f32[512,512], f32[512,512]) tuple(m, y, v0, v1, v2, v3) }
more { p = (s32[], f32[32,512], f32[512,512], f32[512,512], f32[512,512], f32[512,512]) parameter(0)
n = s32[] get-tuple-element(p), index=0
k = s32[] constant(64)
ROOT c = pred[] compare(n, k), direction=LT }
ENTRY e { x = f32[32,512] parameter(0) v0 = f32[512,512] parameter(1) v1 = f32[512,512] parameter(2) v2 = f32[512,512] parameter(3) v3 = f32[512,512] parameter(4)
z = s32[] constant(0)
t = (s32[], f32[32,512], f32[512,512], f32[512,512], f32[512,512], f32[512,512]) tuple(z, x, v0, v1, v2, v3)
ROOT l = (s32[], f32[32,512], f32[512,512], f32[512,512], f32[512,512], f32[512,512]) while(t), condition=more, body=body }`
	for _, anew := range []bool{true, false} {
		b.Run(fmt.Sprintf("anew=%v", anew), func(b *testing.B) {
			e, m := compiled(b, text, Options{KeepNothing: anew})
			in := counting(b, m.Entry)
			for b.Loop() {
				if _, err := e.Run(b.Context(), in); err != nil {
					b.Fatal(err)
				}
				e.GiveBack()
			}
		})
	}
}

// TestPerturbedLoop: roundings that go another way move what a loop computes, a little and
// with each seed elsewhere, and not what it counts.
func TestPerturbedLoop(t *testing.T) {
	const text = `HloModule m
body { p = (s32[], f32[8]) parameter(0)
n = s32[] get-tuple-element(p), index=0
x = f32[8] get-tuple-element(p), index=1
one = s32[] constant(1)
m = s32[] add(n, one)
s = f32[8] sine(x)
ROOT t = (s32[], f32[8]) tuple(m, s) }
more { p = (s32[], f32[8]) parameter(0)
n = s32[] get-tuple-element(p), index=0
k = s32[] constant(3)
ROOT c = pred[] compare(n, k), direction=LT }
ENTRY e { x = f32[8] parameter(0)
z = s32[] constant(0)
t = (s32[], f32[8]) tuple(z, x)
ROOT w = (s32[], f32[8]) while(t), condition=more, body=body }`
	run := func(seed int64) []kernels.Buffer {
		e, m := compiled(t, text, Options{Interpret: true, Perturb: seed})
		out, err := e.Run(t.Context(), counting(t, m.Entry))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	plain, one, two := run(0), run(1), run(2)
	for n := range int64(8) {
		a, b, c := plain[1].Float(n), one[1].Float(n), two[1].Float(n)
		if most := 4e-7; math.Abs(b-a) > most || math.Abs(c-a) > most {
			t.Errorf("element %d: %v, perturbed %v and %v", n, a, b, c)
		}
	}
	if printed(one[1:]) == printed(plain[1:]) || printed(one[1:]) == printed(two[1:]) {
		t.Error("nothing moved, or the same with two seeds")
	}
	if printed(one[:1]) != "s32[] 3\n" {
		t.Errorf("the loop ran %s times", printed(one[:1]))
	}
}

// printed lists the elements of arrays.
func printed(out []kernels.Buffer) string {
	var text strings.Builder
	for _, b := range out {
		fmt.Fprintf(&text, "%s", b.Shape)
		for n := range b.Shape.Elements() {
			fmt.Fprintf(&text, " %v", b.Float(n))
		}
		text.WriteString("\n")
	}
	return text.String()
}

// threeUses is a module that runs one fusion three times, on two shapes.
const threeUses = `HloModule m
f { x = f32[64,64] parameter(0); ROOT y = f32[64,64] negate(x) }
g { a = f32[64,64] parameter(0); ROOT b = f32[64,64] negate(a) }
h { a = f32[48,64] parameter(0); ROOT b = f32[48,64] negate(a) }
ENTRY e {
  p = f32[64,64] parameter(0)
  a = f32[64,64] fusion(p), kind=kLoop, calls=f
  b = f32[64,64] fusion(a), kind=kLoop, calls=g
  s = f32[48,64] slice(b), slice={[0:48],[0:64]}
  ROOT c = f32[48,64] fusion(s), kind=kLoop, calls=h
}`

// Fusions that compute the same are one kernel, which takes the plan that is known.
func TestPlans(t *testing.T) {
	e, m := compiled(t, threeUses, Options{Plan: func(c *hlo.Computation) (kernels.Plan, bool, error) {
		tiles := symtile.Tiling{16, 64}
		if c.Name == "h" {
			tiles = symtile.Tiling{1, 2, 3} // of another fusion: the default takes its place
		}
		return kernels.Plan{Tiles: tiles}, true, nil
	}})
	if _, err := e.Run(context.Background(), counting(t, m.Entry)); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, u := range e.Units() {
		fmt.Fprintf(&text, "%s stored=%v runs=%d compiled=%v; ", u.Name, u.Stored, u.Runs, u.Plan != "")
	}
	want := "f stored=true runs=2 compiled=true; fused.s stored=true runs=1 compiled=true; h stored=false runs=1 compiled=true; "
	if text.String() != want {
		t.Errorf("%s, want %s", text.String(), want)
	}
}

// A fusion of which no plan is known to be right is interpreted, and says why.
func TestNoRightPlan(t *testing.T) {
	e, m := compiled(t, threeUses, Options{Plan: func(c *hlo.Computation) (kernels.Plan, bool, error) {
		if c.Name == "h" {
			return kernels.Plan{}, false, errors.New("the default plan is wrong")
		}
		return kernels.Plan{}, false, nil
	}})
	if _, err := e.Run(context.Background(), counting(t, m.Entry)); err != nil {
		t.Fatal(err)
	}
	for _, u := range e.Units() {
		if failed := u.Name == "h"; failed != (u.Reason == "the default plan is wrong") || failed == (u.Plan != "") {
			t.Errorf("%s: plan %q, reason %q", u.Name, u.Plan, u.Reason)
		}
	}
}

const weighted = `HloModule weighted
f { a = f32[4,8] parameter(0); w = f32[8,16] parameter(1); ROOT d = f32[4,16] dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
g { w = f32[8,16] parameter(0); ROOT n = f32[8,16] negate(w) }
ENTRY e {
  x = f32[4,8] parameter(0)
  w = f32[8,16] parameter(1)
  v = f32[8,16] fusion(w), kind=kLoop, calls=g
  a = f32[4,16] fusion(x, w), kind=kLoop, calls=f
  b = f32[4,16] fusion(x, v), kind=kLoop, calls=f
  ROOT c = (f32[4,16], f32[4,16]) tuple(a, b)
}`

// A parameter that a kernel takes in another layout is moved once where it is the
// caller's, and in every run where it is computed.
func TestPacked(t *testing.T) {
	transposed, err := hlo.Parse("f", []byte(`ENTRY f {
  a = f32[4,8] parameter(0)
  w = f32[16,8] parameter(1)
  ROOT d = f32[4,16] dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
}
`))
	if err != nil {
		t.Fatal(err)
	}
	moves := 0
	move := func(x kernels.Buffer) kernels.Buffer {
		moves++
		out, err := kernels.NewBuffer(hlo.Shape{DType: hlo.F32, Dims: []int64{16, 8}})
		if err != nil {
			t.Fatal(err)
		}
		for n := range int64(8 * 16) {
			out.SetFloat(n%16*8+n/16, x.Float(n))
		}
		return out
	}
	plain, m := compiled(t, weighted, Options{})
	e, _ := compiled(t, weighted, Options{Packed: func(c *hlo.Computation) (Packed, bool) {
		plan := kernels.Plan{Tiles: symtile.Tiling{4, 16, 8}}
		return Packed{transposed.Entry, plan, 1, move}, c.Name == "f"
	}})
	in := counting(t, m.Entry)
	want, err := plain.Run(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got, err := e.Run(t.Context(), in); err != nil || printed(got) != printed(want) {
			t.Errorf("%v\n%s\nwant\n%s", err, printed(got), printed(want))
		}
	}
	if moves != 1+3 {
		t.Errorf("%d moves in 3 runs, want 4: one of w, and v's in each", moves)
	}
	for _, u := range e.Units() {
		if (u.Name == "f") != (u.Packed == "w") {
			t.Errorf("%s: %q is packed", u.Name, u.Packed)
		}
	}
}

// A parameter is not changed by what follows it, and a run that is interrupted or
// has wrong inputs says so.
func TestRun(t *testing.T) {
	e, m := compiled(t, threeUses, Options{})
	in := counting(t, m.Entry)
	before := printed(in)
	if _, err := e.Run(context.Background(), in); err != nil || printed(in) != before {
		t.Errorf("%v, inputs changed: %v", err, printed(in) != before)
	}
	if _, err := e.Run(context.Background(), nil); err == nil {
		t.Error("a run without its input has no error")
	}
	other, _ := kernels.NewBuffer(hlo.Shape{DType: hlo.F32, Dims: []int64{64}})
	if _, err := e.Run(context.Background(), []kernels.Buffer{other}); err == nil {
		t.Error("an input of another shape has no error")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := e.Run(ctx, in); !errors.Is(err, context.Canceled) {
		t.Errorf("a run that is interrupted: %v", err)
	}
}

// Updates that are written directly are those of the reference, bit for bit on whole
// numbers, for windows and indices drawn at random.
func TestUpdates(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		rows, columns, updates := 1+rng.Int64N(5), 1+rng.Int64N(4), rng.Int64N(6)
		wide := 1 + rng.Int64N(columns)
		dtype := []string{"f32", "s32"}[rng.IntN(2)]
		text := fmt.Sprintf(`HloModule m
fold { a = T[] parameter(0) b = T[] parameter(1) ROOT s = T[] %[1]s }
ENTRY e {
  x = T[%[2]d,%[3]d] parameter(0)
  i = s32[%[4]d,2] parameter(1)
  u = T[%[4]d,%[5]d] parameter(2)
  p = T[1,%[5]d] parameter(3)
  j = s32[2] parameter(4)
  a = T[%[2]d,%[3]d] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={1,0}, index_vector_dim=1, to_apply=fold
  b = T[%[2]d,%[3]d] dynamic-update-slice(a, p, j)
  c = s32[%[4]d,1] slice(i), slice={[0:%[4]d],[0:1]}
  z = T[%[4]d,%[3]d] parameter(5)
  v = T[%[4]d,1] slice(u), slice={[0:%[4]d],[0:1]}
  d = T[%[4]d,%[3]d] scatter(z, c, v), update_window_dims={}, inserted_window_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={0}, scatter_dims_to_operand_dims={1}, index_vector_dim=2, to_apply=fold
  y = T[%[3]d,%[4]d] parameter(6)
  k = s32[1,%[4]d,1] reshape(c)
  w = T[1,%[4]d,1] reshape(v)
  e = T[%[3]d,%[4]d] scatter(y, k, w), update_window_dims={2}, inserted_window_dims={}, input_batching_dims={1}, scatter_indices_batching_dims={1}, scatter_dims_to_operand_dims={0}, index_vector_dim=2, to_apply=fold
  ROOT r = tuple(b, d, e)
}`, []string{"add(a, b)", "add(b, a)", "maximum(a, b)", "copy(b)"}[rng.IntN(4)], rows, columns, updates, wide)
		text = strings.ReplaceAll(text, "T[", dtype+"[")
		var texts []string
		for _, interpret := range []bool{true, false} {
			e, m := compiled(t, text, Options{Interpret: interpret})
			in := counting(t, m.Entry)
			draw := rand.New(rand.NewPCG(seed, 2))
			for _, k := range []int{1, 4} {
				for n := range in[k].Shape.Elements() {
					in[k].SetInt(n, draw.Int64N(8)-2)
				}
			}
			out, err := e.Run(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, printed(out))
		}
		if texts[0] != texts[1] {
			t.Errorf("seed %d: %s, by the reference %s\n%s", seed, texts[1], texts[0], text)
		}
	}
}

// BenchmarkScatter is the update of a graph convolution: a row for each of 13,264 edges is
// added to one of 2,708 nodes, and how many edges a node has is counted.
func BenchmarkScatter(b *testing.B) {
	for _, c := range []struct{ dtype, row, window string }{
		{"f32", ",64", "update_window_dims={1}, "}, {"f32", ",7", "update_window_dims={1}, "}, {"s32", "", ""},
	} {
		b.Run(c.dtype+c.row, func(b *testing.B) {
			text := fmt.Sprintf(`HloModule m
fold { a = %[1]s[] parameter(0) b = %[1]s[] parameter(1) ROOT s = %[1]s[] add(a, b) }
ENTRY e {
  x = %[1]s[2708%[2]s] parameter(0)
  i = s32[13264,1] parameter(1)
  u = %[1]s[13264%[2]s] parameter(2)
  ROOT a = %[1]s[2708%[2]s] scatter(x, i, u), %[3]sinserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=fold
}`, c.dtype, c.row, c.window)
			e, m := compiled(b, text, Options{})
			in := counting(b, m.Entry)
			draw := rand.New(rand.NewPCG(1, 2))
			for n := range in[1].Shape.Elements() {
				in[1].SetInt(n, draw.Int64N(2708))
			}
			for b.Loop() {
				if _, err := e.Run(b.Context(), in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// adam is an optimiser's step of so many parameters, of six shapes.
func adam(parameters int) string {
	var text, results strings.Builder
	text.WriteString("HloModule adam\nENTRY e {\n")
	for n := range parameters {
		shape := []string{"f32[64]", "f32[96]", "f32[64,64]", "f32[64,96]", "f32[2,64]", "f32[512,64]"}[n%6]
		for k, name := range []string{"p", "g", "m", "v"} {
			fmt.Fprintf(&text, "%s%d = %s parameter(%d)\n", name, n, shape, 4*n+k)
		}
		for k, c := range []string{"0.9", "0.1", "0.999", "0.001", "1e-3", "1e-8"} {
			fmt.Fprintf(&text, "c%d.%d = f32[] constant(%s)\nb%[1]d.%[2]d = %[4]s broadcast(c%[1]d.%[2]d), dimensions={}\n", k, n, c, shape)
		}
		for _, line := range []string{
			"mm.N = S multiply(mN, b0.N)", "mg.N = S multiply(gN, b1.N)", "nm.N = S add(mm.N, mg.N)",
			"vv.N = S multiply(vN, b2.N)", "gg.N = S multiply(gN, gN)", "vg.N = S multiply(gg.N, b3.N)", "nv.N = S add(vv.N, vg.N)",
			"r.N = S sqrt(nv.N)", "d.N = S add(r.N, b5.N)", "q.N = S divide(nm.N, d.N)", "u.N = S multiply(q.N, b4.N)", "np.N = S subtract(pN, u.N)",
		} {
			line = strings.ReplaceAll(line, "N", fmt.Sprint(n))
			text.WriteString(strings.Replace(line, "S", shape, 1) + "\n")
		}
		fmt.Fprintf(&results, ", np.%d, nm.%[1]d, nv.%[1]d", n)
	}
	return text.String() + "ROOT t = tuple(" + results.String()[2:] + ")\n}"
}

// An optimiser's step of 46 parameters is one launch, with the bits of 46.
func TestLaunchedTogether(t *testing.T) {
	var printouts [2]string
	for k, want := range []int64{46, 1} {
		e, m := compiled(t, adam(46), Options{Apart: k == 0})
		for range 3 { // in the memory of the run before
			out, err := e.Run(t.Context(), counting(t, m.Entry))
			if err != nil {
				t.Fatal(err)
			}
			printouts[k] = printed(out)
		}
		if got := e.Launches(); got != 3*want {
			t.Errorf("apart %v: %d launches in 3 runs, want %d each", k == 0, got, want)
		}
	}
	if printouts[0] != printouts[1] {
		t.Error("the results of the two are not the same")
	}
}

// BenchmarkLaunches is an optimiser's step whose updates are launched one by one, and
// together.
func BenchmarkLaunches(b *testing.B) {
	for _, apart := range []bool{true, false} {
		b.Run(fmt.Sprintf("apart=%v", apart), func(b *testing.B) {
			e, m := compiled(b, adam(46), Options{Apart: apart})
			in := counting(b, m.Entry)
			for b.Loop() {
				if _, err := e.Run(b.Context(), in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
