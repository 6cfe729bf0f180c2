package cost

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tilewright/tilewright/kernels"
)

// world has samples of fusions whose times differ from the price by what its shares and a
// knob say, by a level of each fusion, and by noise.
func world(rng *rand.Rand, fusions, each int) (out []Sample) {
	for f := range fusions {
		level := 0.5 * rng.NormFloat64()
		for range each {
			x := worldPlan(rng.Float64(), float64(rng.IntN(4)))
			total, _ := new(Model).Predict(x)
			out = append(out, Sample{
				Group:    string(rune('a' + f)),
				Features: x,
				Seconds:  total * math.Exp(level+worldTruth(x)+0.02*rng.NormFloat64()),
			})
		}
	}
	return out
}

// worldPlan is a plan with a share of arithmetic and a knob.
func worldPlan(share, knob float64) Features {
	return Features{
		Terms: []Term{{"arithmetic", share * 1e-3}, {"memory", (1.05 - share) * 1e-3}},
		Lanes: 1, Scratch: 4096,
		Plan: []Number{{tileNumber, 4096}, {"unroll", knob}},
	}
}

// worldTruth is what the price does not know.
func worldTruth(f Features) float64 {
	share := f.Terms[0].Seconds / 1e-3
	return 0.4*math.Sin(4*share) - 0.1*f.Plan[1].Value
}

// TestResidual fits to fusions and judges another one: the errors within that are smaller
// than the price's, and nearly all within two of the deviations that the model states.
func TestResidual(t *testing.T) {
	m, err := Fit(world(rand.New(rand.NewPCG(1, 2)), 12, 16))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	var priors, errors, doubts []float64
	for range 400 {
		x := worldPlan(rng.Float64(), float64(rng.IntN(4)))
		before, _ := new(Model).Predict(x)
		after, _ := m.Predict(x)
		truth := math.Log(before) + worldTruth(x)
		priors = append(priors, truth-math.Log(before))
		errors = append(errors, truth-math.Log(after))
		doubts = append(doubts, m.Doubt(x))
	}
	prior, fitted := deviation(priors), deviation(errors)
	if fitted > prior/4 {
		t.Errorf("the errors deviate by %.3f, those of the price by %.3f", fitted, prior)
	}
	outside, mean := 0, meanOf(errors)
	for k, e := range errors {
		if math.Abs(e-mean) > 2*doubts[k] {
			outside++
		}
	}
	if outside > len(errors)/10 {
		t.Errorf("%d of %d errors are beyond two deviations", outside, len(errors))
	}
}

// TestResidualFarAway asks about plans unlike any sample: the correction stays bounded, and
// the model says that it knows less.
func TestResidualFarAway(t *testing.T) {
	var few []Sample
	for _, s := range world(rand.New(rand.NewPCG(1, 2)), 24, 16) {
		if s.Features.Terms[0].Seconds < 0.4e-3 && s.Features.Plan[1].Value < 2 {
			few = append(few, s)
		}
	}
	m, err := Fit(few)
	if err != nil {
		t.Fatal(err)
	}
	near := m.Doubt(few[0].Features)
	for _, x := range []Features{worldPlan(0.99, 3), worldPlan(1, 1e6), worldPlan(1e-9, 1e18)} {
		_, terms := m.Predict(x)
		last := terms[len(terms)-1]
		sum := terms[0].Seconds + terms[1].Seconds
		if far := m.Doubt(x); !(far > near) || math.IsNaN(last.Seconds) {
			t.Errorf("%v: deviation %.3f, of a sample %.3f; correction %g", x.Plan, far, near, last.Seconds)
		}
		if f := (sum + last.Seconds) / sum; f > math.E*1.001 || f < 0.999/math.E {
			t.Errorf("%v: corrected by a factor of %.2f", x.Plan, f)
		}
	}
}

// TestFittedRankAllocates ranks with a fitted model: a plan costs no allocation.
func TestFittedRankAllocates(t *testing.T) {
	p := program(t, gemm)
	x := pricer(t, p)
	var samples []Sample
	var plans []kernels.Plan
	for tiling := range p.Space.Tilings() {
		plans = append(plans, kernels.Plan{Tiles: append([]int64(nil), tiling...)})
		f := features(t, x, tiling...)
		seconds, _ := new(Model).Predict(f)
		samples = append(samples, Sample{Group: "g", Features: f, Seconds: seconds * (1 + f.Scratch/1e6)})
	}
	m, err := Fit(samples)
	if err != nil {
		t.Fatal(err)
	}
	few := testing.AllocsPerRun(3, func() { m.Rank(t.Context(), x, plans[:10]) })
	all := testing.AllocsPerRun(3, func() { m.Rank(t.Context(), x, plans) })
	if all > few+4 {
		t.Errorf("%v allocations for 10 plans, %v for %d", few, all, len(plans))
	}
}

func meanOf(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

func deviation(v []float64) float64 {
	mean, sum := meanOf(v), 0.0
	for _, x := range v {
		sum += (x - mean) * (x - mean)
	}
	return math.Sqrt(sum / float64(len(v)))
}

// TestResidualSides: tiles of the same elements and price are told apart by their sides, from
// samples of other fusions; of samples that were stored without sides nothing is learned.
func TestResidualSides(t *testing.T) {
	wide := kernels.Plan{Tiles: []int64{32, 256, 64}}
	tall := kernels.Plan{Tiles: []int64{256, 32, 64}}
	features := func(plan kernels.Plan, stored bool) Features {
		f := worldPlan(0.5, 0)
		f.Plan = numbersOf(plan)
		if !stored {
			f.Plan = f.Plan[:1]
		}
		return f
	}
	fitted := func(stored bool) float64 {
		var samples []Sample
		for n := range 24 {
			group := string(rune('a' + n))
			samples = append(samples,
				Sample{Group: group, Features: features(wide, stored), Seconds: 1e-3},
				Sample{Group: group, Features: features(tall, stored), Seconds: 1.2e-3})
		}
		m, err := Fit(samples)
		if err != nil {
			t.Fatal(err)
		}
		fast, _ := m.Predict(features(wide, true))
		slow, _ := m.Predict(features(tall, true))
		return slow / fast
	}
	if r := fitted(true); math.Abs(r-1.2) > 0.02 {
		t.Errorf("the tall tile is predicted to take %.3f times what the wide one takes, of 1.2", r)
	}
	if r := fitted(false); math.Abs(r-1) > 1e-9 {
		t.Errorf("without sides the tall tile is predicted to take %.3f times what the wide one takes", r)
	}
}
