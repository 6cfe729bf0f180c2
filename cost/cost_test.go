package cost

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// device is a machine of round numbers.
var device = kernels.Device{
	Name:     "test",
	Backend:  "cpu",
	Revision: "1",
	Lanes:    2,
	FLOPS:    1e10,
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
	p, err := symtile.Analyze(m.Fusions()[0])
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func measure(t testing.TB, p *symtile.Program, sizes ...int64) Features {
	t.Helper()
	q, err := p.At(sizes)
	if err != nil {
		t.Fatal(err)
	}
	return Measure(q, kernels.Plan{Tiles: sizes}, device)
}

const gemm = `l = f32[64,128] parameter(0); r = f32[128,96] parameter(1);
ROOT d = f32[64,96] dot(l, r), lhs_contracting_dims={1}, rhs_contracting_dims={0}`

// The features of a gemm, counted by hand.
func TestMeasureGemm(t *testing.T) {
	p := program(t, gemm)
	f := measure(t, p, 16, 32, 128)
	if f.FLOPs != 2*64*96*128 || f.PaddedFLOPs != f.FLOPs {
		t.Errorf("flops %v, padded %v", f.FLOPs, f.PaddedFLOPs)
	}
	if f.Tiles != 12 || f.Steps != 12*4 || f.Waves != 1 {
		t.Errorf("tiles %v, steps %v, waves %v", f.Tiles, f.Steps, f.Waves)
	}
	if want := float64(4 * (16*128 + 128*32 + 16*32)); f.Scratch != want {
		t.Errorf("scratch %v bytes, want %v", f.Scratch, want)
	}
	// 16 rows of 128 contiguous, 128 rows of 32, stored 16 rows of 32: the left tile is one run.
	if f.InnerRun < 128 || f.InnerRun > 2048*4 {
		t.Errorf("inner run %v bytes", f.InnerRun)
	}
	ragged := measure(t, p, 48, 96, 128)
	if ragged.PaddedFLOPs != 2*96*96*128 {
		t.Errorf("two tiles of 48 rows over 64 do %v flop", ragged.PaddedFLOPs)
	}
	looped := measure(t, p, 16, 32, 16)
	if looped.PaddedFLOPs != f.FLOPs || looped.Steps != 12*(8*3+1) {
		t.Errorf("with a loop of 8: %v flop in %v steps", looped.PaddedFLOPs, looped.Steps)
	}
}

// Splitting a row that is reduced recomputes it; the features say so.
func TestMeasureRecomputation(t *testing.T) {
	src, err := os.ReadFile("../testdata/hlo/softmax.hlo")
	if err != nil {
		t.Fatal(err)
	}
	p := program(t, string(src))
	whole := measure(t, p, 8, 512, 512, 512)
	split := measure(t, p, 8, 128, 512, 512)
	if whole.PaddedFLOPs > 1.01*whole.FLOPs || split.PaddedFLOPs < 3*whole.PaddedFLOPs {
		t.Errorf("whole rows do %v of %v flop, quarters %v", whole.PaddedFLOPs, whole.FLOPs, split.PaddedFLOPs)
	}
}

func TestTermsAddUp(t *testing.T) {
	p := program(t, gemm)
	m := Roofline(device)
	for tiling := range p.Space.Tilings() {
		total, terms := m.Predict(measure(t, p, tiling...))
		sum := 0.0
		for _, x := range terms {
			sum += x.Seconds
		}
		if math.Abs(sum-total) > 1e-12*total || total <= 0 {
			t.Fatalf("%v: terms add up to %v, predicted %v", tiling, sum, total)
		}
		if f := measure(t, p, tiling...); total < m.LowerBound(f) {
			t.Fatalf("%v: predicted %v under the lower bound %v", tiling, total, m.LowerBound(f))
		}
	}
}

// A machine that differs from the prior in a way the features show: fitting
// learns it, from other fusions.
func TestFitLearnsTheMachine(t *testing.T) {
	shapes := []string{gemm,
		"l = f32[32,64] parameter(0); r = f32[64,256] parameter(1); ROOT d = f32[32,256] dot(l, r), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
		"l = f32[96,48] parameter(0); r = f32[48,80] parameter(1); ROOT d = f32[96,80] dot(l, r), lhs_contracting_dims={1}, rhs_contracting_dims={0}"}
	prior := Roofline(device)
	rng := rand.New(rand.NewPCG(1, 1))
	truth := func(f Features) float64 { // slow at short runs and small tiles, unlike the prior
		s, _ := prior.Predict(f)
		return s * (1 + 40/f.InnerRun*16) *
			math.Pow(f.Scratch/4096, -0.3) *
			math.Exp(0.03*rng.NormFloat64())
	}
	var train []Sample
	var held []Features
	for k, text := range shapes {
		p := program(t, text)
		n := 0
		for tiling := range p.Space.Tilings() {
			if n++; n%7 != 0 {
				continue
			}
			if f := measure(t, p, tiling...); k == 0 {
				held = append(held, f)
			} else {
				train = append(train, Sample{Group: text, Features: f, Seconds: truth(f)})
			}
		}
	}
	fitted, err := prior.Fit(train)
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
		measured, before, after = append(measured, truth(f)), append(before, b), append(after, a)
	}
	b, a := Judge(before, measured), Judge(after, measured)
	if a.Kendall < b.Kendall+0.03 || a.Kendall < 0.85 || a.Regret3 > b.Regret3*1.01 {
		t.Errorf("prior %+v, fitted %+v", b, a)
	}
}

func TestFitNeedsSamples(t *testing.T) {
	m, err := Roofline(device).Fit(make([]Sample, 5))
	if err != nil || m.fit != nil {
		t.Errorf("five samples made a fit, %v", err)
	}
}

func TestRankIsCheapestFirstAndRefusesIllegalPlans(t *testing.T) {
	p := program(t, gemm)
	var plans []kernels.Plan
	for tiling := range p.Space.Tilings() {
		plans = append(plans, kernels.Plan{Tiles: tiling})
	}
	ranked, err := Roofline(device).Rank(p, plans)
	if err != nil || len(ranked) != len(plans) {
		t.Fatalf("%d of %d ranked, %v", len(ranked), len(plans), err)
	}
	for k := 1; k < len(ranked); k++ {
		if ranked[k].Seconds < ranked[k-1].Seconds {
			t.Fatalf("place %d is cheaper than the one before", k)
		}
	}
	if _, err := Roofline(device).Rank(p, []kernels.Plan{
		{Tiles: symtile.Tiling{1, 2}},
	}); err == nil {
		t.Error("a plan of the wrong length was ranked")
	}
}

// Of plans with knobs that no term tells of, those of a tiling come after the
// other tilings that take about as long.
func TestRankPutsUntoldKnobsBehind(t *testing.T) {
	var plans []kernels.Plan
	for _, tiling := range []symtile.Tiling{{64, 64, 64}, {64, 64, 32}} {
		plain := kernels.Plan{Tiles: tiling}
		plans = append(plans, plain, plain.With("pack", 1))
	}
	m := Roofline(device)
	ranked, err := m.Rank(program(t, gemm), plans)
	if err != nil {
		t.Fatal(err)
	}
	for k := 1; k < len(ranked); k++ {
		if m.order(&ranked[k]) < m.order(&ranked[k-1]) ||
			ranked[k].Plan.Knob("pack", 0) < ranked[k-1].Plan.Knob("pack", 0) {
			t.Errorf(
				"%s, %.3g s, comes after %s, %.3g s",
				ranked[k].Plan, ranked[k].Seconds,
				ranked[k-1].Plan, ranked[k-1].Seconds,
			)
		}
	}
}

// BenchmarkRank is the cost of ranking one plan, At included.
func BenchmarkRank(b *testing.B) {
	src, err := os.ReadFile("../testdata/hlo/softmax.hlo")
	if err != nil {
		b.Fatal(err)
	}
	p := program(b, string(src))
	var plans []kernels.Plan
	for tiling := range p.Space.Tilings() {
		if plans = append(plans, kernels.Plan{Tiles: tiling}); len(plans) == 1000 {
			break
		}
	}
	m := Roofline(device)
	for b.Loop() {
		if _, err := m.Rank(p, plans); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*len(plans))/b.Elapsed().Seconds(), "plans/s")
}

// counted is a device with its own account: terms by the numbers of a tiling.
func counted() kernels.Device {
	d := device
	d.Account = &kernels.Account{
		Terms:       []string{"memory", "arithmetic", "waiting"},
		Overlapping: 2,
		Hidden:      0.25,
		Tie:         0.01,
		Of: func(*symtile.Program) (func(kernels.Plan) []float64, error) {
			return func(p kernels.Plan) []float64 {
				return []float64{
					float64(p.Tiles[0]),
					float64(p.Tiles[1]),
					float64(p.Tiles[2]),
				}
			}, nil
		},
	}
	return d
}

// Of the terms of an account that overlap the longest counts whole, the others a
// share, the rest is added; plans that tie stay as the backend gave them.
func TestRankByAccount(t *testing.T) {
	var plans []kernels.Plan
	for _, tiling := range []symtile.Tiling{
		{64, 64, 32}, {16, 64, 16},
		{8, 64, 18}, {8, 64, 16},
		{8, 16, 64},
	} {
		plans = append(plans, kernels.Plan{Tiles: tiling})
	}
	ranked, err := Roofline(counted()).Rank(program(t, gemm), plans)
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
	d.Matrix = 100 * d.FLOPS
	f := Features{FLOPs: 1e12, DotFLOPs: 1e12}
	at := f.DotFLOPs / d.Matrix
	if Roofline(d).LowerBound(f) > at || Roofline(d).LowerBound(f) < at/2 {
		t.Errorf("the bound is %g s, at the peak it takes %g s", Roofline(d).LowerBound(f), at)
	}
}
