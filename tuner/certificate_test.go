package tuner

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/cache"
)

// recordedNoise are factors by which samples of one plan differ from the plan's own share
// of its block, recorded on two cores of a loaded EPYC; their median is 1.
func recordedNoise(t *testing.T) (all []float64) {
	t.Helper()
	text, err := os.ReadFile("testdata/noise.txt")
	if err != nil {
		t.Fatal(err)
	}
	for word := range strings.FieldsSeq(string(text)) {
		x, err := strconv.ParseFloat(word, 64)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, x)
	}
	return all
}

// An upper end holds at every number of ratios at once: the share of sequences that it
// misses anywhere is at most alpha, for noise of several kinds.
func TestAtMostHolds(t *testing.T) {
	recorded := recordedNoise(t)
	rng := rand.New(rand.NewPCG(3, 1))
	sorted := slices.Sorted(slices.Values(recorded))
	const sequences, length, alpha = 500, 40, 0.05
	for name, c := range map[string]struct {
		median float64
		draw   func() float64
	}{
		"normal":     {1, func() float64 { return 1 + 0.03*rng.NormFloat64() }},
		"outliers":   {1, func() float64 { return math.Exp(0.01 * rng.NormFloat64() / rng.Float64()) }},
		"recorded":   {sorted[len(sorted)/2-1], func() float64 { return recorded[rng.IntN(len(recorded))] }},
		"two values": {0.95, func() float64 { return [2]float64{0.9, 1}[rng.IntN(2)] }},
	} {
		missed := 0
		for range sequences {
			var ratios []float64
			for range length {
				ratios = append(ratios, c.draw())
				if atMost(ratios, alpha) < c.median {
					missed++
					break
				}
			}
		}
		if share := float64(missed) / sequences; share > alpha {
			t.Errorf("%s: missed by %.1f %% of the sequences, want at most %.1f %%", name, 100*share, 100*alpha)
		}
	}
}

// The number of blocks that a comparison needs grows by the logarithm of the number of
// plans.
func TestFewestBlocks(t *testing.T) {
	for _, c := range []struct{ plans, want int }{{2, 6}, {16, 10}, {64, 12}, {1000, 17}} {
		if got := fewestBlocks(0.05 / float64(c.plans-1)); got != c.want {
			t.Errorf("%d plans: %d blocks, want %d", c.plans, got, c.want)
		}
	}
	if end := atMost([]float64{0.5, 0.6, 0.7}, 0.01); !math.IsInf(end, 1) {
		t.Errorf("the end of three ratios is %g", end)
	}
}

// Of races of plans that hardly differ, at most one in twenty claims less regret than its
// winner has; nearly all claim something, and every plan that ran has its comparison, the
// dropped ones too.
func TestCertificatesHold(t *testing.T) {
	recorded := recordedNoise(t)
	races, broken, unknown, dropped, missed := 60, 0, 0, 0, 0
	claimed := 0.0
	for seed := range uint64(races) {
		truth := make([]float64, 12)
		rng := rand.New(rand.NewPCG(seed, 5))
		for k := range truth {
			truth[k] = 2e-3 * (1 + 0.03*float64(rng.IntN(5)))
		}
		truth[3] = 5e-3 // dropped early
		l := newLab(seed, 0.03, truth...)
		if seed%2 == 0 {
			l.shake = recorded
		}
		r := tuneOnce(t, l, Options{Seed: int64(seed), Candidates: 12})
		best, mine := slices.Min(truth), truth[winnerOf(t, &r)]
		switch {
		case r.Regret < 0:
			unknown++
		case mine/best-1 > r.Regret+1e-9:
			broken++
		}
		claimed += max(0, r.Regret)
		missed += intervalsMissed(t, &r, truth, mine)
		ran := 0
		for _, x := range r.Trials {
			if x.Failure == "" { // a busy machine may stop one
				ran++
			}
			if x.Dropped {
				dropped++
			}
		}
		if got := len(r.Certificate.Comparisons); got != ran-1 {
			t.Errorf("seed %d: %d comparisons of %d plans", seed, got, ran)
		}
	}
	t.Logf("%d races: %d broken, %d unknown, %.1f %% claimed on average, %d plans dropped", races, broken, unknown, 100*claimed/float64(races), dropped)
	if missed > races/10 { // both ends
		t.Errorf("the intervals of %d of %d races miss a ratio", missed, races)
	}
	if broken > races/20 || unknown > races/20 || dropped < races {
		t.Errorf("%d of %d claims are broken, %d unknown, %d plans dropped", broken, races, unknown, dropped)
	}
}

// intervalsMissed is 1 where an interval of a certificate does not hold the true ratio, and
// no interval is empty.
func intervalsMissed(t *testing.T, r *cache.Record, truth []float64, mine float64) int {
	missed := 0
	for _, x := range r.Certificate.Comparisons {
		if x.AtMost > 0 && (x.AtLeast > x.Ratio || x.Ratio > x.AtMost) {
			t.Errorf("an interval of %v to %v about %v", x.AtLeast, x.AtMost, x.Ratio)
		}
		ratio := mine / truth[winnerOf(t, &cache.Record{Plan: x.Plan})]
		if x.AtLeast > ratio+1e-9 || x.AtMost > 0 && x.AtMost < ratio-1e-9 {
			missed = 1
		}
	}
	return missed
}

// winnerOf is the number of the plan that won in the lab.
func winnerOf(t *testing.T, r *cache.Record) int {
	t.Helper()
	_, text, _ := strings.Cut(r.Plan, "v=")
	v, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A race ends for a reason that the record says: more time buys a lower regret only where
// one was asked for.
func TestWhyARaceEnds(t *testing.T) {
	for name, c := range map[string]struct {
		truth []float64
		o     Options
		want  string
	}{
		"alone":  {[]float64{2e-3, 1e-3}, Options{}, cache.EndedSettled},
		"ties":   {[]float64{2e-3, 1e-3, 1e-3}, Options{}, cache.EndedBlocks},
		"budget": {[]float64{2e-3, 1e-3, 1e-3}, Options{Budget: 3e7}, cache.EndedBudget},
		"regret": {[]float64{2e-3, 1e-3, 1e-3}, Options{Regret: 0.1}, cache.EndedRegret},
	} {
		l := newLab(4, 0.02, c.truth...)
		r, err := l.tuner(filepath.Join(t.TempDir(), "t.db"), c.o).Tune(t.Context(), fusionOf(t))
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Record.Certificate.Ended; got != c.want {
			t.Errorf("%s: ended by %q, want %q", name, got, c.want)
		}
	}
}
