package cpu_test

import (
	"context"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/kernels/cpu/internal/gemm"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo/packing"
)

// A randomPack is a small tensor.pack with padding.
func randomPack(rnd *rand.Rand) packing.Pack {
	p := packing.Pack{Padding: new(float64)}
	for range rnd.Intn(3) + 1 {
		p.Source = append(p.Source, int64(1+rnd.Intn(9)))
	}
	p.InnerDimsPos = rnd.Perm(
		len(p.Source),
	)[:rnd.Intn(len(p.Source)+1)]
	for range p.InnerDimsPos {
		p.InnerTiles = append(p.InnerTiles, int64(1+rnd.Intn(5)))
	}
	switch rnd.Intn(3) {
	case 0:
		p.OuterDimsPerm = rnd.Perm(len(p.Source))
	case 1:
		p.OuterDimsPerm = rnd.Perm(len(p.Source) + len(p.InnerTiles))
	}
	*p.Padding = float64(rnd.Intn(100)) - 0.5
	return p
}

// packedElement is the definition of tensor.pack, written without package packing:
// the source index of an element of the packed tensor; ok is false in padding.
func packedElement(p packing.Pack, index []int64) (source []int64, ok bool) {
	n := len(p.Source)
	natural := slices.Clone(index)
	for i, d := range p.OuterDimsPerm {
		natural[d] = index[i]
	}
	source = slices.Clone(natural[:n])
	for i, d := range p.InnerDimsPos {
		source[d] = natural[d]*p.InnerTiles[i] + natural[n+i]
	}
	for d, x := range source {
		if x >= p.Source[d] {
			return nil, false
		}
	}
	return source, true
}

// packText is a function that packs its argument, or unpacks it.
func packText(p packing.Pack, op string) string {
	tensor := func(dims []int64) string {
		text := "tensor<"
		for _, d := range dims {
			text += fmt.Sprint(d, "x")
		}
		return text + "f32>"
	}
	list := func(x any) string { return strings.ReplaceAll(fmt.Sprint(x), " ", ", ") }
	from, to, padding := p.Source, p.Packed(), "padding_value(%c : f32) "
	if op == "unpack" {
		from, to, padding = to, from, ""
	}
	perm := ""
	if p.OuterDimsPerm != nil {
		perm = "outer_dims_perm = " + list(p.OuterDimsPerm) + " "
	}
	return fmt.Sprintf(`func.func @main(%%x: %[1]s) -> %[2]s {
  %%c = arith.constant %[3]g : f32
  %%e = tensor.empty() : %[2]s
  %%0 = linalg.%[4]s %%x %[5]s%[6]sinner_dims_pos = %[7]s inner_tiles = %[8]s into %%e : %[1]s -> %[2]s
  %%1 = stablehlo.add %%0, %%0 : %[2]s
  return %%1 : %[2]s
}`, tensor(from), tensor(to), *p.Padding, op, padding, perm, list(p.InnerDimsPos), list(p.InnerTiles))
}

// TestPacksAsMLIR: packs and unpacks of small boxes, read as MLIR text and run by the
// reference and by the default plan, move every element to where the definition says.
func TestPacksAsMLIR(t *testing.T) {
	rnd := rand.New(rand.NewSource(5))
	padded := 0
	for range 150 {
		p := randomPack(rnd)
		packed := p.Packed()
		at := make([]int64, len(packed))
		source := make([]float64, product(p.Source))
		for k := range source {
			source[k] = float64(k + 1)
		}
		want := make([]float64, product(packed))
		for k := range want {
			want[k] = *p.Padding
			if index, ok := packedElement(p, at); ok {
				at := int64(0)
				for d, x := range index {
					at = at*p.Source[d] + x
				}
				want[k] = source[at]
			} else {
				padded++
			}
			next(at, packed)
		}
		runPack(t, packText(p, "pack"), source, want)
		runPack(t, packText(p, "unpack"), want, source)
	}
	t.Logf("%d elements of padding", padded)
}

// product is the number of elements of an array.
func product(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	return n
}

// next counts an index up, the last dimension first.
func next(index, dims []int64) {
	for d := len(dims) - 1; d >= 0; d-- {
		if index[d]++; index[d] < dims[d] {
			return
		}
		index[d] = 0
	}
}

// runPack runs a function of one argument, which doubles what it moves.
func runPack(t *testing.T, text string, in, want []float64) {
	t.Helper()
	p := kerneltest.Program(t, text)
	x, err := kernels.NewBuffer(p.Fusion.Params[0].Shape)
	if err != nil {
		t.Fatal(err)
	}
	x.WriteFloats(in, 0)
	doubled := make([]float64, len(want))
	for k, v := range want {
		doubled[k] = 2 * v
	}
	expect := func(by string, got kernels.Buffer) {
		t.Helper()
		values := make([]float64, len(want))
		got.ReadFloats(values, 0)
		if !slices.Equal(values, doubled) {
			t.Fatalf("%s, by the %s:\n got %v\nwant %v", text, by, values, doubled)
		}
	}
	of, err := reference.Interpret(p.Fusion, []kernels.Buffer{x})
	if err != nil {
		t.Fatal(err)
	}
	expect("reference", of[0])
	b := cpu.New()
	plan, err := b.Default(t.Context(), p)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	k, err := b.Compile(context.Background(), p, plan)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	defer k.Close()
	out, err := kernels.NewBuffer(kernels.OutputShapes(p.Fusion)[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Run(context.Background(), []kernels.Buffer{x}, []kernels.Buffer{out}); err != nil {
		t.Fatal(err)
	}
	expect("CPU backend", out)
}

// TestDotsOfPanels: dots whose right operand is packed in panels, of either orientation,
// with a batch, padding and other tiles, agree with the reference by plans drawn at
// random; of whole panels the default plan reads the operand where it is.
func TestDotsOfPanels(t *testing.T) {
	rnd := rand.New(rand.NewSource(9))
	for n, text := range []string{
		panelText("f32", 7, 48, 20, 16, "[1, 0]", ""),
		panelText("f32", 70, 64, 130, 16, "[1, 0]", ""),
		panelText("f64", 9, 40, 33, 8, "[1, 0]", ""),
		panelText("bf16", 17, 96, 64, 16, "[1, 0]", ""),
		panelText("f32", 13, 80, 24, 16, "", "columns"),
		panelText("f32", 13, 80, 24, 8, "", "columns"),
		panelText("f32", 13, 75, 24, 16, "[1, 0]", ""), // padding
		panelText("f32", 13, 96, 24, 32, "[1, 0]", ""), // not the kernels' width
		panelText("f32", 13, 96, 24, 16, "", ""),       // rows of panels
	} {
		p := kerneltest.Program(t, text)
		v := kerneltest.Verifier(t, p, int64(n+1))
		b := cpu.New()
		plan, err := b.Default(t.Context(), p)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		all := []kernels.Plan{plan}
		for offered := range b.Plans(t.Context(), p) {
			all = append(all, offered)
		}
		for k := range min(len(all), 20) {
			plan := all[k]
			if k > 0 {
				plan = all[rnd.Intn(len(all))]
			}
			kernel, err := b.Compile(t.Context(), p, plan)
			if err != nil {
				t.Fatalf("%s: %v\n%s", plan, err, text)
			}
			if err := v.Verify(t.Context(), kernel); err != nil {
				t.Errorf("%s: %v\n%s", plan, err, text)
			}
			whole := n < 3 && gemm.PanelWidth[float32]() == 16
			if k == 0 && whole && strings.Contains(kernel.Source(), "transpose") {
				t.Errorf("%s unpacks:\n%s\n%s", plan, kernel.Source(), text)
			}
			kernel.Close()
		}
	}
}

// panelText is a product of m×k and k×n of which the right operand is packed: its
// columns, or where it is given as n×k its rows, in tiles of a width.
func panelText(d string, m, n, k, width int, perm, of string) string {
	panels := (n + width - 1) / width
	source, packed, pos, contract := fmt.Sprintf("%dx%d", k, n), fmt.Sprintf("%dx%dx%d", panels, k, width), 1, 0
	if perm == "" {
		packed = fmt.Sprintf("%dx%dx%d", k, panels, width)
	}
	if of == "columns" {
		source, packed, pos, contract = fmt.Sprintf("%dx%d", n, k), fmt.Sprintf("%dx%dx%d", panels, k, width), 0, 1
	}
	if perm != "" {
		perm = "outer_dims_perm = " + perm + " "
	}
	return fmt.Sprintf(`func.func @main(%%a: tensor<%[1]dx%[2]dx%[3]s>, %%b: tensor<%[4]sx%[3]s>) -> tensor<%[1]dx%[5]dx%[3]s> {
  %%e = tensor.empty() : tensor<%[6]sx%[3]s>
  %%u = linalg.unpack %%b %[7]sinner_dims_pos = [%[8]d] inner_tiles = [%[9]d] into %%e : tensor<%[4]sx%[3]s> -> tensor<%[6]sx%[3]s>
  %%d = stablehlo.dot_general %%a, %%u, contracting_dims = [1] x [%[10]d] : (tensor<%[1]dx%[2]dx%[3]s>, tensor<%[6]sx%[3]s>) -> tensor<%[1]dx%[5]dx%[3]s>
  %%r = stablehlo.add %%d, %%d : tensor<%[1]dx%[5]dx%[3]s>
  return %%r : tensor<%[1]dx%[5]dx%[3]s>
}`, m, k, d, packed, n, source, perm, pos, width, contract)
}

// keptTexts are products whose right operand is made of the parameters of these numbers.
var keptTexts = []struct {
	text   string
	steady []int
}{
	{`f { x = f32[32,96] parameter(0) w = f32[96,128] parameter(1)
ROOT d = f32[32,128] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0} }`, []int{1}},
	{`f { x = f32[13,70] parameter(0) w = f32[64,70] parameter(1)
ROOT d = f32[13,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={1} }`, []int{1}},
	{`f { x = f32[32,64] parameter(0) u = f32[64,64] parameter(1) v = f32[64,64] parameter(2)
c = f32[64,128] concatenate(u, v), dimensions={1} y = f32[128] parameter(3)
z = f32[32,128] broadcast(y), dimensions={1}
d = f32[32,128] dot(x, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
ROOT r = f32[32,128] add(d, z) }`, []int{1, 2, 3}},
	{`f { x = f32[3,12,40] parameter(0) w = bf16[3,40,64] parameter(1) c = f32[3,40,64] convert(w)
d = f32[3,12,64] dot(x, c), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
e = f32[3,12,64] exponential(d) ROOT r = f32[3,12,64] add(e, d) }`, []int{1}},
	{`f { x = f64[24,48] parameter(0) w = f64[48,96] parameter(1) t = f64[96,48] transpose(w), dimensions={1,0}
ROOT d = f64[24,96] dot(x, t), lhs_contracting_dims={1}, rhs_contracting_dims={1} }`, []int{1}},
	{`f { x = f32[32,96] parameter(0) w = f32[96,128] parameter(1) v = f32[96,128] parameter(2)
d = f32[32,128] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
e = f32[32,128] dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
s = f32[32,64] slice(e), slice={[0:32],[64:128]} t = f32[32,64] slice(e), slice={[0:32],[0:64]}
q = f32[32,64] multiply(s, t)
ROOT r = (f32[32,128], f32[32,64]) tuple(d, q) }`, []int{1, 2}},
}

// TestKept: what is kept of steady parameters has the bits of what is made in each run, by
// plans drawn at random; the steady parameters are not read again until they are forgotten.
func TestKept(t *testing.T) {
	if gemm.PanelWidth[float32]() == 0 {
		t.Skip("no panels")
	}
	rnd := rand.New(rand.NewSource(5))
	for n, c := range keptTexts {
		p := kerneltest.Program(t, "HloModule m\n"+strings.Replace(c.text, "f {", "ENTRY f {", 1))
		b := cpu.New()
		plan, err := b.Default(t.Context(), p)
		if err != nil {
			t.Fatalf("%v\n%s", err, c.text)
		}
		all := []kernels.Plan{plan}
		for offered := range b.Plans(t.Context(), p) {
			all = append(all, offered)
		}
		kept := 0
		for k := range min(len(all), 60) {
			if k > 0 {
				plan = all[rnd.Intn(len(all))]
			}
			kernel := b.CompileKeeping(t.Context(), p, plan, c.steady)
			if kernel == nil {
				continue
			}
			kept++
			if kernel.Kept() == 0 || !strings.Contains(kernel.Source(), "keep ") {
				t.Errorf("%d bytes are kept by %s", kernel.Kept(), kernel.Source())
			}
			agreesWithPlain(t, b, p, plan, kernel, c.steady, int64(n+k))
			kernel.Close()
		}
		if kept < 3 { // tiles of whole panels
			t.Errorf("%d of %d plans keep something\n%s", kept, min(len(all), 60), c.text)
		}
		if x := b.CompileKeeping(t.Context(), p, all[0], []int{0}); x != nil {
			t.Errorf("something is kept of a left operand:\n%s", x.Source())
		}
	}
}

// agreesWithPlain compares runs of a kernel that keeps what it makes of steady parameters
// with those of one that does not.
func agreesWithPlain(
	t *testing.T, b *cpu.Backend, p *symtile.Program, plan kernels.Plan,
	kernel kernels.KeepingKernel, steady []int, seed int64,
) {
	plain, err := b.Compile(t.Context(), p, plan)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	run := func(k kernels.Kernel, in []kernels.Buffer) string {
		var out []kernels.Buffer
		for _, s := range kernels.OutputShapes(p.Fusion) {
			x, err := kernels.NewBuffer(s)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, x)
		}
		if _, err := k.Run(t.Context(), in, out); err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, x := range out {
			text += string(x.Data)
		}
		return text
	}
	inputs := func(seed int64) []kernels.Buffer {
		in, err := check.InputsContext(t.Context(), p.Fusion, check.Normals, seed)
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	source := kernel.Source()
	whole := strings.Count(source, " panels(") == strings.Count(source, "dot(")
	for generation := range int64(2) {
		weights := inputs(seed + 10*generation)
		for round := range int64(3) {
			in, other := inputs(seed+100+round), inputs(seed+200)
			for _, k := range steady {
				in[k] = weights[k]
			}
			want := run(plain, in)
			if round > 0 && whole { // what is kept is not read
				for _, k := range steady {
					if p.Fusion.Params[k].Shape.Rank() > 1 {
						in[k] = other[k]
					}
				}
			}
			if run(kernel, in) != want {
				t.Errorf("%s: round %d of generation %d differs\n%s", plan, round, generation, source)
				return
			}
		}
		kernel.Forget()
	}
}
