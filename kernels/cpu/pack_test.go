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
