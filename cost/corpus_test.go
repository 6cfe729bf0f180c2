package cost

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/symtile"
	corpus "github.com/tilewright/tilewright/testdata/hlo"
)

var (
	timingsFile = flag.String("timings", "", "judge the model on the timings in this `file`, measuring them first when there is none")
	plans       = flag.Int("plans", 48, "plans timed of each fusion for -timings")
	trained     = flag.Int("train", 16, "of these plans, so many cheapest and others of each fusion that a fit with -timings has")
)

// A timedFusion is what -timings keeps of a fusion of the corpus.
type timedFusion struct {
	Name    string
	Plans   []string
	Seconds []float64 // the least of several samples: what the machine can do
}

// timings are what a file of -timings holds: they can be judged anywhere.
type timings struct {
	Device  kernels.Device
	Fusions []timedFusion
}

// tileable is every fusion of the corpus that can be tiled.
func tileable(t testing.TB) map[string]*symtile.Program {
	t.Helper()
	fusions, err := corpus.Fusions()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*symtile.Program{}
	for _, f := range fusions {
		if p, err := symtile.Analyze(t.Context(), f.Computation); err == nil {
			all[f.Name] = p
		}
	}
	return all
}

// timed reads or measures the timings of the corpus.
func timed(t *testing.T, all map[string]*symtile.Program, b *cpu.Backend) timings {
	if text, err := os.ReadFile(*timingsFile); err == nil {
		var out timings
		if err := json.Unmarshal(text, &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	out := timings{Device: b.Device()}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out.Fusions = append(out.Fusions, timeFusion(t, name, all[name], b))
	}
	text, err := json.Marshal(out)
	if err == nil {
		err = os.WriteFile(*timingsFile, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func timeFusion(t *testing.T, name string, p *symtile.Program, b *cpu.Backend) timedFusion {
	ctx := context.Background()
	out := timedFusion{Name: name}
	candidates := slices.Collect(b.Plans(t.Context(), p))
	rng := rand.New(rand.NewPCG(1, uint64(len(candidates))))
	rng.Shuffle(len(candidates), func(i, j int) {
		candidates[i], candidates[j] = candidates[j], candidates[i]
	})
	candidates = candidates[:min(len(candidates), *plans)]
	bench, err := check.NewBench(context.Background(), p.Fusion, 1, 32<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, plan := range candidates {
		k, err := b.Compile(ctx, p, plan)
		if err != nil {
			continue
		}
		first, err := bench.Sample(ctx, k, 1)
		if err != nil {
			t.Fatal(err)
		}
		n := check.RunsPerSample(first.Seconds, 500*time.Microsecond)
		best, begin := first.Seconds, time.Now()
		for range 40 {
			if s, err := bench.Sample(ctx, k, n); err == nil {
				best = min(best, s.Seconds)
			}
			if time.Since(begin) > 20*time.Millisecond {
				break
			}
		}
		out.Plans, out.Seconds = append(out.Plans, plan.String()), append(out.Seconds, best)
		k.Close()
	}
	return out
}

// TestCorpus judges the prior, and the model fitted to all other fusions, on
// every fusion of the corpus as this machine runs it.
func TestCorpus(t *testing.T) {
	if *timingsFile == "" {
		t.Skip("needs -timings FILE")
	}
	b := cpu.New()
	all := tileable(t)
	kept := timed(t, all, b)
	d := kept.Device
	var samples []Sample
	for _, f := range kept.Fusions {
		pricer, err := b.Pricer(all[f.Name])
		if err != nil {
			t.Fatal(err)
		}
		for k, text := range f.Plans {
			plan, err := kernels.ParsePlan(text)
			if err != nil {
				t.Fatal(err)
			}
			features, err := FeaturesOf(pricer, plan)
			if err != nil {
				t.Fatal(err)
			}
			samples = append(samples, Sample{f.Name, features, f.Seconds[k]})
		}
	}
	t.Logf("%+v", d)
	prior := &Model{}
	if all, err := Fit(samples); err == nil {
		text, _ := json.Marshal(all.factorsByName())
		t.Logf("factors that fit all: %s", text)
	}
	var before, after summary
	for _, f := range kept.Fusions {
		if len(f.Plans) < 3 {
			continue
		}
		others := tuned(samples, f.Name)
		own := slices.DeleteFunc(slices.Clone(samples), func(s Sample) bool { return s.Group != f.Name })
		fitted, err := Fit(others)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%-28s prior %s · fitted to the others %s", f.Name, before.judge(prior, own), after.judge(fitted, own))
	}
	t.Logf("%-28s prior %s · fitted to the others %s", "all", before, after)
}

// tuned are the samples that tuning all fusions but one would leave: of each half of -train
// cheapest ones by the price, and others at equal distances.
func tuned(samples []Sample, but string) (out []Sample) {
	groups := map[string][]Sample{}
	for _, s := range samples {
		if s.Group != but {
			groups[s.Group] = append(groups[s.Group], s)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		g := groups[name]
		slices.SortStableFunc(g, func(a, b Sample) int {
			x, _ := new(Model).Predict(a.Features)
			y, _ := new(Model).Predict(b.Features)
			return cmp.Compare(x, y)
		})
		half := min(len(g), *trained/2)
		out = append(out, g[:half]...)
		for _, k := range evenly(len(g)-half, *trained/2) {
			out = append(out, g[half+k])
		}
	}
	return out
}

func (m *Model) factorsByName() map[string]float64 {
	all := map[string]float64{}
	for name, factor := range m.factors {
		all[name] = math.Round(100*factor) / 100
	}
	return all
}

// A summary adds up judgements.
type summary struct {
	fusions                         int
	kendall, regret1, regret3, bias float64 // sums: of τ, of logs of regrets, of squared log biases
}

func (s *summary) judge(m *Model, own []Sample) summary {
	var predicted, measured []float64
	bias := 0.0
	for _, x := range own {
		p, _ := m.Predict(x.Features)
		predicted, measured = append(predicted, p), append(measured, x.Seconds)
		bias += math.Log(x.Seconds/p) / float64(len(own))
	}
	j := Judge(predicted, measured)
	one := summary{
		1, j.Kendall, math.Log(j.Regret1),
		math.Log(j.Regret3), bias * bias,
	}
	s.fusions++
	s.kendall += one.kendall
	s.regret1 += one.regret1
	s.regret3 += one.regret3
	s.bias += one.bias
	return one
}

func (s summary) String() string {
	n := float64(s.fusions)
	return fmt.Sprintf(
		"τ %.2f, regret@1 %.2f, @3 %.2f, off by a factor of %.1f",
		s.kendall/n, math.Exp(s.regret1/n),
		math.Exp(s.regret3/n),
		math.Exp(math.Sqrt(s.bias/n)),
	)
}
