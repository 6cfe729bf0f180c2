package cpu_test

import (
	"context"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/kernels/cpu/internal/gemm"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/kernels/reference"
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
