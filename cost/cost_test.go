package cost

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	corpus "github.com/tilewright/tilewright/testdata/hlo"
)

// device is a machine of round numbers.
var device = kernels.Device{
	Name: "test", Backend: "test", Revision: "1", Lanes: 2, FLOPS: 1e10,
	Levels: []kernels.Level{
		{Name: "L1", Bytes: 32 << 10, Bandwidth: 1e11},
		{Name: "L2", Bytes: 512 << 10, Bandwidth: 5e10},
		{Name: "memory", Bandwidth: 2e10},
	},
}

func program(t testing.TB, text string) *symtile.Program {
	t.Helper()
	m, err := hlo.Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := symtile.Analyze(t.Context(), m.Fusions()[0])
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// pricer prices plans by their rates on device.
func pricer(t testing.TB, p *symtile.Program) kernels.Pricer {
	t.Helper()
	x, err := cpu.Roofline(p, device)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func features(t testing.TB, x kernels.Pricer, sizes ...int64) Features {
	t.Helper()
	f, err := FeaturesOf(x, kernels.Plan{Tiles: sizes})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

const gemm = `l = f32[64,128] parameter(0); r = f32[128,96] parameter(1);
ROOT d = f32[64,96] dot(l, r), lhs_contracting_dims={1}, rhs_contracting_dims={0}`

func TestTermsAddUp(t *testing.T) {
	p := program(t, gemm)
	x := pricer(t, p)
	bound, err := LowerBound(p, device, 0)
	if err != nil {
		t.Fatal(err)
	}
	for tiling := range p.Space.Tilings() {
		total, terms := (&Model{}).Predict(features(t, x, tiling...))
		sum := 0.0
		for _, term := range terms {
			sum += term.Seconds
		}
		if math.Abs(sum-total) > 1e-12*total || total <= 0 {
			t.Fatalf("%v: terms add up to %v, predicted %v", tiling, sum, total)
		}
		if total < bound {
			t.Fatalf("%v: predicted %v under the lower bound %v", tiling, total, bound)
		}
	}
}

// A machine that differs from the prior in a way that the terms show: fitting
// learns it, from other fusions.
func TestFitLearnsTheMachine(t *testing.T) {
	shapes := []string{
		gemm,
		"l = f32[32,64] parameter(0); r = f32[64,256] parameter(1); ROOT d = f32[32,256] dot(l, r), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
		"l = f32[96,48] parameter(0); r = f32[48,80] parameter(1); ROOT d = f32[96,80] dot(l, r), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
	}
	prior := &Model{}
	rng := rand.New(rand.NewPCG(1, 1))
	truth := func(f Features) float64 { // slow at small tiles and where much is packed, unlike the prior
		seconds, terms := prior.Predict(f)
		packing := terms[slices.IndexFunc(terms, func(x Term) bool { return x.Name == "packing" })].Seconds
		noise := math.Exp(0.03 * rng.NormFloat64())
		return (seconds + 3*packing) * math.Pow(f.Scratch/4096, -0.3) * noise
	}
	var train []Sample
	var held []Features
	for k, text := range shapes {
		p := program(t, text)
		x := pricer(t, p)
		n := 0
		for tiling := range p.Space.Tilings() {
			if n++; n%7 != 0 {
				continue
			}
			f := features(t, x, tiling...)
			if k == 0 {
				held = append(held, f)
			} else {
				train = append(train, Sample{Group: text, Features: f, Seconds: truth(f)})
			}
		}
	}
	fitted, err := Fit(train)
	if err != nil {
		t.Fatal(err)
	}
	var measured, before, after []float64
	for _, f := range held {
		b, _ := prior.Predict(f)
		a, terms := fitted.Predict(f)
		if terms[len(terms)-1].Name != "fitted correction" {
			t.Fatal("the correction is not among the terms")
		}
		measured = append(measured, truth(f))
		before = append(before, b)
		after = append(after, a)
	}
	b, a := Judge(before, measured), Judge(after, measured)
	if a.Kendall < b.Kendall+0.03 || a.Kendall < 0.85 || a.Regret3 > b.Regret3*1.01 {
		t.Errorf("prior %+v, fitted %+v", b, a)
	}
}

func TestFitNeedsSamples(t *testing.T) {
	m, err := Fit(make([]Sample, 5))
	if err != nil || m.Fitted() != 0 {
		t.Errorf("five samples without terms made a fit, %v", err)
	}
}

// Samples with other terms are of another revision and teach nothing.
func TestFitLeavesOtherTermsOut(t *testing.T) {
	sample := func(term string) Sample {
		f := Features{Terms: []Term{{term, 1}}, Lanes: 1}
		return Sample{Group: "f", Features: f, Seconds: 2}
	}
	samples := slices.Repeat([]Sample{sample("old")}, 9)
	samples = append(samples, slices.Repeat([]Sample{sample("new")}, 5)...)
	m, err := Fit(samples)
	if err != nil || m.Fitted() != 5 {
		t.Errorf("%d samples made the fit, want 5; %v", m.Fitted(), err)
	}
}

func TestRankIsCheapestFirstAndRefusesIllegalPlans(t *testing.T) {
	p := program(t, gemm)
	x := pricer(t, p)
	var plans []kernels.Plan
	for tiling := range p.Space.Tilings() {
		plans = append(plans, kernels.Plan{Tiles: tiling})
	}
	ranked, err := (&Model{}).Rank(t.Context(), x, plans)
	if err != nil || len(ranked) != len(plans) {
		t.Fatalf("%d of %d ranked, %v", len(ranked), len(plans), err)
	}
	for k := 1; k < len(ranked); k++ {
		if ranked[k].Seconds < ranked[k-1].Seconds {
			t.Fatalf("place %d is cheaper than the one before", k)
		}
	}
	if _, err := (&Model{}).Rank(t.Context(), x, []kernels.Plan{
		{Tiles: symtile.Tiling{1, 2}},
	}); err == nil {
		t.Error("a plan of the wrong length was ranked")
	}
}

// Where no model is fitted, plans stay in the order of their backend, which begins with
// its default.
func TestRankOfThePriorIsTheBackends(t *testing.T) {
	fusions, err := corpus.Fusions()
	if err != nil {
		t.Fatal(err)
	}
	b := cpu.New()
	for _, f := range fusions {
		p, err := symtile.Analyze(t.Context(), f.Computation)
		if err != nil {
			continue
		}
		x, err := b.Pricer(p)
		if err != nil {
			t.Fatal(err)
		}
		plans := slices.Collect(b.Plans(t.Context(), p))
		ranked, err := (&Model{}).Rank(t.Context(), x, plans)
		if err != nil {
			t.Fatal(err)
		}
		for k, r := range ranked {
			if r.Plan.Compare(plans[k]) != 0 {
				t.Errorf("%s: plan %d is %s, the backend's %s", f.Name, k, r.Plan, plans[k])
				break
			}
		}
	}
}

// BenchmarkRank is the cost of ranking one plan of a matrix product of the corpus, on one
// core.
// sizes is a pricer whose terms are the sizes of a tiling.
type sizes struct{ tie float64 }

func (x sizes) Terms() kernels.PriceTerms {
	return kernels.PriceTerms{
		Names:       []string{"memory", "arithmetic", "waiting"},
		Overlapping: 2,
		Hidden:      0.25,
		Tie:         x.tie,
	}
}

func (sizes) Price(p kernels.Plan, price *kernels.Price) error {
	for k, size := range p.Tiles {
		price.Seconds[k] = float64(size)
	}
	price.Lanes = 1
	return nil
}

// Of terms that overlap the longest counts whole, the others a share, the rest is
// added; plans that tie stay as the backend gave them.
func TestRankKeepsTiesInOrder(t *testing.T) {
	var plans []kernels.Plan
	for _, tiling := range []symtile.Tiling{
		{64, 64, 32}, {16, 64, 16},
		{8, 64, 18}, {8, 64, 16},
		{8, 16, 64},
	} {
		plans = append(plans, kernels.Plan{Tiles: tiling})
	}
	ranked, err := (&Model{}).Rank(t.Context(), sizes{0.01}, plans)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range ranked {
		got = append(got, fmt.Sprintf("%s: %g", r.Plan, r.Seconds))
	}
	want := []string{"8,64,16: 82", "8,16,64: 82", "16,64,16: 84", "8,64,18: 84", "64,64,32: 112"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A kernel at the peak of the matrix units is plausible, one at twice that is not.
func TestLowerBoundKnowsMatrixUnits(t *testing.T) {
	d := device
	d.Matrix = 1000 * d.FLOPS
	p := program(t, `l = bf16[1024,1024] parameter(0); r = bf16[1024,1024] parameter(1);
ROOT d = f32[1024,1024] dot(l, r), lhs_contracting_dims={1}, rhs_contracting_dims={0}`)
	d.Levels = nil
	bound, err := LowerBound(p, d, 0)
	if err != nil {
		t.Fatal(err)
	}
	if at := 2 * 1024 * 1024 * 1024 / d.Matrix; bound > at || bound < at/2 {
		t.Errorf("the bound is %g s, at the peak it takes %g s", bound, at)
	}
}

// A parameter of which a gather picks rows need not be read whole.
func TestLowerBoundOfAGather(t *testing.T) {
	p := program(t, `t = f32[100000,64] parameter(0); i = s32[8] parameter(1);
ROOT g = f32[8,64] gather(t, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,64}`)
	bound, err := LowerBound(p, device, 0)
	if err != nil {
		t.Fatal(err)
	}
	if bytes := bound * bandwidthSafety * device.Levels[0].Bandwidth; math.Round(bytes) != 2*
		8*64*4+8*4 {
		t.Errorf("the bound is for %g bytes", bytes)
	}
}

// The roof of a program is at the level that holds half of what its runs go through, and
// counts the products of bytes only where a rate of theirs is known.
func TestRoofOf(t *testing.T) {
	p := program(t, gemm)
	const bytes, flops = 4 * (64*128 + 128*96 + 64*96), 2 * 64 * 128 * 96
	const small = 64*128 + 128*96 + 4*64*96
	slow := device
	slow.FLOPS = 1e9
	fast := device
	fast.FLOPS = 1e13
	units := slow
	units.Matrix = 4e9
	integers := program(t, `l = s8[64,128] parameter(0); r = s8[128,96] parameter(1);
ROOT d = s32[64,96] dot(l, r), lhs_contracting_dims={1}, rhs_contracting_dims={0}`)
	for name, c := range map[string]struct {
		p        *symtile.Program
		d        kernels.Device
		resident int64
		want     Roof
	}{
		"products":   {p, slow, 1 << 10, Roof{flops / 1e9, -1, flops}},
		"L1":         {p, fast, 64 << 10, Roof{bytes / 1e11, 0, bytes}},
		"L2":         {p, fast, 256 << 10, Roof{bytes / 5e10, 1, bytes}},
		"twice L2":   {p, fast, 2 << 20, Roof{bytes / 5e10, 1, bytes}},
		"memory":     {p, fast, 2<<20 + 2, Roof{bytes / 2e10, 2, bytes}},
		"integers":   {integers, slow, 1 << 10, Roof{small / 1e11, 0, small}},
		"units":      {integers, units, 1 << 10, Roof{flops / 4e9, -1, flops}},
		"no rates":   {p, kernels.Device{Lanes: 1}, 1 << 10, Roof{Level: -1}},
		"known peak": {p, kernels.Device{FLOPS: 1e9}, 1 << 10, Roof{flops / 1e9, -1, flops}},
	} {
		got, err := RoofOf(c.p, c.d, c.resident)
		if err != nil || got.Level != c.want.Level || got.Work != c.want.Work ||
			math.Abs(got.Seconds-c.want.Seconds) > 1e-9*c.want.Seconds {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
}

// On a quiet machine the bound is below the roof of every fusion of the corpus, and of some
// larger ones of each type of product, but so near that a kernel which has three quarters of
// its roof and skips half of its work is below the bound.
func TestLowerBoundFindsHalf(t *testing.T) {
	d := device
	d.Quiet, d.Matrix, d.VectorBits = true, 2*d.FLOPS, 256
	hold := func(name string, p *symtile.Program) {
		for _, resident := range []int64{1, 64 << 10, 512 << 10, 1 << 30} {
			roof, err := RoofOf(p, d, resident)
			if err != nil {
				t.Fatal(err)
			}
			bound, err := LowerBound(p, d, resident)
			if err != nil {
				t.Fatal(err)
			}
			whole := roof.Seconds / 0.76
			bytes := compulsoryBytesOf(t, p)
			if levelOf(d.Levels, d.Lanes, bytes) > levelOf(keptLevels(d), d.Lanes, float64(resident)/2) {
				continue // arrays that do not fit into the level that they would come from
			}
			if bound > roof.Seconds || bound <= whole/2 {
				t.Errorf("%s in %d bytes: the bound is %g s, the roof %g, half of a kernel %g", name, resident, bound, roof.Seconds, whole/2)
			}
		}
	}
	fusions, err := corpus.Fusions()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fusions {
		if p, err := symtile.Analyze(t.Context(), f.Computation); err == nil {
			hold(f.Name, p)
		}
	}
	for _, types := range [][2]string{{"f32", "f32"}, {"f64", "f64"}, {"bf16", "f32"}, {"s8", "s32"}, {"s32", "s32"}} {
		text := strings.NewReplacer("$in", types[0], "$out", types[1]).Replace(
			`l = $in[1024,512] parameter(0); r = $in[512,1024] parameter(1);
ROOT d = $out[1024,1024] dot(l, r), lhs_contracting_dims={1}, rhs_contracting_dims={0}`)
		hold(types[0], program(t, text))
	}
}

func compulsoryBytesOf(t *testing.T, p *symtile.Program) float64 {
	x, err := wholeExtents(p)
	if err != nil {
		t.Fatal(err)
	}
	return compulsoryBytes(p, x)
}

// The products of a convolution are those whose element is none of the padding: counted one
// by one here.
func TestConvolutionWork(t *testing.T) {
	for _, c := range []struct {
		text  string
		taps  int64 // pairs of an output and a tap of one dimension that are inside
		other float64
	}{
		// Three taps of 14 outputs, one of which is outside at each end.
		{`x = f32[2,14,5] parameter(0); k = f32[3,5,7] parameter(1);
ROOT c = f32[2,14,7] convolution(x, k), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f`, 3*14 - 2, 2 * 5 * 7},
		// Each second element of what is read is an element: one or two of three taps.
		{`x = f32[2,6,5] parameter(0); k = f32[3,5,7] parameter(1);
ROOT c = f32[2,11,7] convolution(x, k), window={size=3 pad=1_1 lhs_dilate=2}, dim_labels=b0f_0io->b0f`, 6 + 2*5, 2 * 5 * 7},
		{`x = f32[2,15,5] parameter(0); k = f32[3,5,7] parameter(1);
ROOT c = f32[2,6,7] convolution(x, k), window={size=3 stride=2 rhs_dilate=2}, dim_labels=b0f_0io->b0f`, 3 * 6, 2 * 5 * 7},
	} {
		p := program(t, c.text)
		x, err := wholeExtents(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, flops := dotSeconds(p, x, kernels.Device{FLOPS: 1}); math.Abs(flops-2*float64(c.taps)*c.other) > 1e-6 {
			t.Errorf("%s\nhas %v operations, want %v", c.text, flops, 2*float64(c.taps)*c.other)
		}
	}
}
