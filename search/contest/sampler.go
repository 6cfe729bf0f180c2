package contest

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tilewright/tilewright/search"
	"github.com/tilewright/tilewright/search/table"
)

// A sampler draws from the samples of a table, with replacement, as measurements would.
// A table without samples is one without noise: it gives the same time each time.
type sampler struct {
	table *table.Table
	rng   *rand.Rand
}

// newSampler is the sampler of one search. "samples" in ASCII separates its numbers from
// those of the search.
func newSampler(t *table.Table, seed uint64) sampler {
	return sampler{t, rand.New(rand.NewPCG(seed, 0x73616d706c6573))}
}

// one is a sample of a point, or its time where there are none; +Inf for a failure.
func (s sampler) one(k int) float64 {
	samples := s.table.Samples[k]
	if len(samples) == 0 {
		return s.table.Seconds[k]
	}
	return samples[s.rng.IntN(len(samples))]
}

// Numbers of the selection at the end of a search.
const (
	finalists    = 5 // points that were best by their one sample
	finalSamples = 9 // of each of them
)

// selected is the point that a search keeps: the finalists are sampled again, and the one
// with the least median wins. The one sample that made them finalists does not count,
// since the luckiest are among them.
func (s sampler) selected(trials []search.Trial) int {
	sorted := slices.Clone(trials)
	slices.SortStableFunc(sorted, func(a, b search.Trial) int {
		return cmp.Compare(a.Seconds, b.Seconds)
	})
	best, least := -1, math.Inf(1)
	for _, t := range sorted[:min(finalists, len(sorted))] {
		if m := s.median(t.Point); best < 0 || m < least {
			best, least = t.Point, m
		}
	}
	return best
}

// median is that of finalSamples samples of a point.
func (s sampler) median(k int) float64 {
	draws := make([]float64, finalSamples)
	for n := range draws {
		draws[n] = s.one(k)
	}
	slices.Sort(draws)
	return draws[finalSamples/2]
}
