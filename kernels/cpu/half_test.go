package cpu

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/cpu/internal/gemm"
	"github.com/tilewright/tilewright/kernels/cpu/sheet"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// bf16Programs have dots of bf16 everywhere: read, converted, computed; with a loop over
// the contracted dimension, of an attention, and of a convolution.
var bf16Programs = map[string]string{
	"dot":    fmt.Sprintf(dots[0], "bf16", "f32"),
	"batch":  fmt.Sprintf(dots[2], "bf16", "bf16"),
	"vector": fmt.Sprintf(dots[4], "bf16", "f32"),
	"converted": `
		x = bf16[40,100] parameter(0)
		y = bf16[100,50] parameter(1)
		u = f32[40,100] convert(x)
		v = f32[100,50] convert(y)
		r = f32[40,50] dot(u, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}`,
	"computed": `
		x = bf16[40,100] parameter(0)
		y = bf16[100,50] parameter(1)
		u = bf16[40,100] multiply(x, x)
		d = f32[40,50] dot(u, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
		r = bf16[40,50] convert(d)`,
	"attention": `
		q = bf16[64,16] parameter(0)
		k = bf16[96,16] parameter(1)
		v = bf16[96,16] parameter(2)
		s = f32[64,96] dot(q, k), lhs_contracting_dims={1}, rhs_contracting_dims={1}
		low = f32[] constant(-inf)
		m = f32[64] reduce(s, low), dimensions={1}, to_apply=max
		mb = f32[64,96] broadcast(m), dimensions={0}
		d = f32[64,96] subtract(s, mb)
		e = f32[64,96] exponential(d)
		zero = f32[] constant(0)
		n = f32[64] reduce(e, zero), dimensions={1}, to_apply=sum
		nb = f32[64,96] broadcast(n), dimensions={0}
		w = f32[64,96] divide(e, nb)
		p = bf16[64,96] convert(w)
		r = f32[64,16] dot(p, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}`,
	"convolution": `
		x = bf16[2,10,10,8] parameter(0)
		f = bf16[3,3,8,16] parameter(1)
		r = f32[2,10,10,16] convolution(x, f), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f`,
}

// reducers are the computations of the programs above.
const reducers = `
max { a = f32[] parameter(0)
b = f32[] parameter(1)
ROOT c = f32[] maximum(a, b) }
sum { a = f32[] parameter(0)
b = f32[] parameter(1)
ROOT c = f32[] add(a, b) }
`

func bf16Program(t *testing.T, text string) *symtile.Program {
	text = strings.Replace(text, "r = ", "ROOT r = ", 1)
	m, err := hlo.Parse("bf16", []byte(reducers+"ENTRY e {\n"+text+"\n}"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := symtile.Analyze(t.Context(), m.Entry)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestHalfKnobs runs plans with all instructions for bf16 and f16, in Go in the place of those
// of the processor, beside the reference.
func TestHalfKnobs(t *testing.T) {
	restore, ok := gemm.EmulateHalves()
	if !ok {
		t.Skip("nothing to emulate")
	}
	defer restore()
	for name, text := range bf16Programs {
		for h, ways := range halfProducts {
			text := strings.ReplaceAll(text, "bf16[", string(h)+"[")
			t.Run(name+"/"+string(h), func(t *testing.T) {
				runHalfKnob(t, bf16Program(t, text), string(h), len(ways))
			})
		}
	}
}

// runHalfKnob runs a program with all values of a knob.
func runHalfKnob(t *testing.T, p *symtile.Program, knob string, ways int) {
	v := kerneltest.Verifier(t, p, 1)
	b := New()
	plan, err := b.Default(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	few := fewTiles(p, 8)
	in, err := check.Inputs(p.Fusion, check.Normals, 1)
	if err != nil {
		t.Fatal(err)
	}
	tiles := kernels.Plan{Tiles: few[len(few)-1]}
	sums := computed(t, p, tiles, in)[0]
	others := computed(t, p, tiles.With(knob, int64(ways-1)), in)[0]
	rounded := sums.Shape.DType != hlo.F32
	if !rounded && bytes.Equal(sums.Data, others.Data) {
		t.Error("tiles have the bits of multiply-adds: they were not used")
	}
	for how := range int64(ways) {
		verify(t, b, v, p, plan.With(knob, how))
		for n := range 3 {
			plan := kernels.Plan{
				Tiles: few[(len(few)-1)*n/2],
			}
			verify(
				t, b, v, p,
				plan.With(knob, how),
			)
		}
	}
}

// fewTiles are the tilings of a program with so many tiles at most: instructions in Go
// are slow.
func fewTiles(p *symtile.Program, most int64) (few []symtile.Tiling) {
	for t := range walkable(p).Tilings() {
		tiles := int64(1)
		for k, d := range p.Space.Dims {
			tiles *= cover(d.Extent, t[k])
		}
		if tiles <= most {
			few = append(few, t)
		}
	}
	return few
}

// cover is the number of tiles of so many elements.
func cover(extent, size int64) int64 { return (extent + size - 1) / size }

// TestShortWeights: weights of attention that a row kernel makes lie as bf16 for the dot that
// reads them, and the bits are those of instructions one after the other, also where weights are
// denormal, and with infinities and NaN.
func TestShortWeights(t *testing.T) {
	restore, ok := gemm.EmulateHalves()
	if !ok {
		t.Skip("nothing to emulate")
	}
	p := bf16Program(t, bf16Programs["attention"])
	testShortWeights(t, p)
	restore()
	if gemm.HasHalves(gemm.Pairs) {
		testShortWeights(t, p)
	}
}

func testShortWeights(t *testing.T, p *symtile.Program) {
	tiles := make(symtile.Tiling, len(p.Space.Dims))
	for k, d := range p.Space.Dims {
		tiles[k] = min(d.Extent, 48)
	}
	for _, special := range []float64{1, 9, 30, math.Inf(1), math.NaN()} {
		in, err := check.Inputs(p.Fusion, check.Normals, 1)
		if err != nil {
			t.Fatal(err)
		}
		// One query has long products with keys, and one an element that is special.
		for k := range in[0].Shape.Dims[1] {
			in[0].SetFloat(k, 9*in[0].Float(k))
		}
		in[0].SetFloat(40, special)
		for _, how := range halfKernels(bfloat) {
			plan := kernels.Plan{Tiles: tiles}.With("bf16", how)
			want := outputsOf(t, p, plan.With("rows", 0), in)
			got := outputsOf(t, p, plan, in)
			if !bytes.Equal(got[0].Data, want[0].Data) {
				t.Errorf("%s, with %g: the bits differ", plan, special)
			}
		}
		k, err := New().Compile(t.Context(), p, kernels.Plan{Tiles: tiles}.With("bf16", 1))
		if err != nil {
			t.Fatal(err)
		}
		if text := k.Source(); !strings.Contains(text, "in 2 bytes, tile") {
			t.Errorf("weights are not short:\n%s", text)
		}
		k.Close()
	}
}

// TestHalvesOffered: plans with the knobs are offered where the processor has the
// instructions, priced below the others for tiles, and for nothing but dots of their type.
func TestHalvesOffered(t *testing.T) {
	restore, ok := gemm.EmulateHalves()
	if !ok {
		t.Skip("nothing to emulate")
	}
	defer restore()
	large := "x = %s[512,512] parameter(0)\ny = %[1]s[512,512] parameter(1)\n" +
		"r = f32[512,512] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
	offered := func(kind, knob string) (ways []int64) {
		p := bf16Program(t, fmt.Sprintf(large, kind))
		met := map[int64]float64{}
		x, err := New().Pricer(p)
		if err != nil {
			t.Fatal(err)
		}
		for plan := range New().Plans(t.Context(), p) {
			terms := x.Terms()
			var price kernels.Price
			price.Seconds = make([]float64, len(terms.Names))
			if err := x.Price(plan, &price); err != nil {
				t.Fatal(err)
			}
			total := price.Total(&terms)
			how := plan.Knob(knob, 0)
			if met[how] == 0 {
				ways = append(ways, how)
				met[how] = total
			}
			met[how] = min(met[how], total)
		}
		tiles := int64(len(halfProducts[half(kind)]) - 1)
		if slices.Contains(ways, tiles) && met[tiles] > met[0]/2 && tiles > 0 {
			t.Errorf("tiles cost %g, multiply-adds %g", met[tiles], met[0])
		}
		slices.Sort(ways)
		return ways
	}
	for _, c := range []struct {
		kind, knob string
		want       []int64
	}{
		{"bf16", "bf16", []int64{0, 1, 2}},
		{"f16", "f16", []int64{0, 1}},
		{"bf16", "f16", []int64{0}},
		{"f16", "bf16", []int64{0}},
		{"f32", "bf16", []int64{0}},
		{"f32", "f16", []int64{0}},
	} {
		if got := offered(c.kind, c.knob); !slices.Equal(got, c.want) {
			t.Errorf("dots of %s, %s: %v", c.kind, c.knob, got)
		}
	}
}

// TestHalvesRefused: where the processor has no such instructions, or the system refuses
// them, a plan that asks for them computes what one without them does, to the bit.
func TestHalvesRefused(t *testing.T) {
	for h, ways := range halfProducts {
		if halfKernels(h) != nil {
			continue // this processor has them
		}
		text := strings.ReplaceAll(bf16Programs["dot"], "bf16[", string(h)+"[")
		p := bf16Program(t, text)
		in, err := check.Inputs(p.Fusion, check.Normals, 1)
		if err != nil {
			t.Fatal(err)
		}
		results := map[string]bool{}
		for how := range ways {
			plan := kernels.Plan{Tiles: symtile.Tiling{24, 48, 36}}
			out := computed(t, p, plan.With(string(h), int64(how)), in)
			results[string(out[0].Data)] = true
		}
		if len(results) != 1 {
			t.Errorf("%s: %d results", h, len(results))
		}
	}
}

// TestHalfOfSheet: a Granite Rapids lists tiles of both types, a Sapphire Rapids of bf16.
func TestHalfOfSheet(t *testing.T) {
	for name, want := range map[string]map[half][]int64{
		"Granite Rapids":  {bfloat: {1, 2}, half16: {1}},
		"Sapphire Rapids": {bfloat: {1, 2}, half16: nil},
	} {
		s, err := sheet.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		for h, ways := range want {
			if got := halvesOf(s, h); !slices.Equal(got, ways) {
				t.Errorf("%s, %s: %v", name, h, got)
			}
		}
	}
	s, err := sheet.Find("Granite Rapids")
	if err != nil {
		t.Fatal(err)
	}
	p := prior{s, true}
	if p.half(gemm.F16Tiles, 512) != p.half(gemm.Tiles, 512) {
		t.Error("tiles of f16 have another rate than those of bf16")
	}
}

// Fusions of testdata/joined.txt, whose parts have elements of fewer bytes than scratch, whose
// updates are small, whose rows are short, or which reduce columns, by several plans.
func TestJoined(t *testing.T) {
	for _, text := range kerneltest.Blocks(t, "testdata/joined.txt") {
		verifyOffered(t, kerneltest.Program(t, text).Fusion)
	}
}
