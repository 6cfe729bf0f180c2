package cost

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// A Judgement describes how well predictions order what was measured.
type Judgement struct {
	// Number of plans.
	Plans int `json:"plans"`
	// Rank correlations of predicted and measured times, from −1 to 1.
	Kendall  float64 `json:"kendall"`
	Spearman float64 `json:"spearman"` // ρ of predicted against measured, −1 … 1
	// Measured time of the plan that was predicted to be fastest over that of
	// the best plan; 1 is perfect. Regret3 and Regret8 take the best of the
	// first three and eight.
	Regret1 float64 `json:"regret1"`
	Regret3 float64 `json:"regret3"` // best of the first three
	Regret8 float64 `json:"regret8"`
}

// Judge compares predictions with measurements of the same plans.
func Judge(predicted, measured []float64) Judgement {
	return Judgement{
		Plans:    len(measured),
		Kendall:  Kendall(predicted, measured),
		Spearman: Spearman(predicted, measured),
		Regret1:  Regret(predicted, measured, 1),
		Regret3:  Regret(predicted, measured, 3),
		Regret8:  Regret(predicted, measured, 8),
	}
}

// Kendall is Kendall's τ-b: concordant minus discordant pairs over the geometric
// mean of the pairs not tied in one and in the other (Kendall, The Treatment of
// Ties in Ranking Problems, 1945). It is 0 when either is constant.
func Kendall(predicted, measured []float64) float64 {
	var sum, x, y float64
	for i := range measured {
		for j := range i {
			a := cmp.Compare(predicted[i], predicted[j])
			b := cmp.Compare(measured[i], measured[j])
			sum += float64(a * b)
			x += float64(a * a)
			y += float64(b * b)
		}
	}
	if x == 0 || y == 0 {
		return 0
	}
	return sum / math.Sqrt(x*y)
}

// Spearman is Spearman's ρ: the correlation of ranks, where ties share the mean
// of theirs. It is 0 when either argument is constant.
func Spearman(predicted, measured []float64) float64 {
	r := stat.Correlation(ranks(predicted), ranks(measured), nil)
	if !math.IsNaN(r) {
		return r
	}
	return 0
}

// ranks are the positions in ascending order; equal values share the mean of
// theirs.
func ranks(v []float64) []float64 {
	order := ascending(v)
	out := make([]float64, len(v))
	for first := 0; first < len(order); {
		last := first
		for last+1 < len(order) &&
			v[order[last+1]] == v[order[first]] {
			last++
		}
		for _, k := range order[first : last+1] {
			out[k] = float64(first+last) / 2
		}
		first = last + 1
	}
	return out
}

// ascending lists the indices of v by value; equal values keep their order.
func ascending(v []float64) []int {
	order := make([]int, len(v))
	for n := range order {
		order[n] = n
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(v[a], v[b])
	})
	return order
}

// Regret is the best measured time among the k plans that were predicted to be
// fastest, over the best of all: 1 is perfect. Equal predictions keep their
// order. Without plans it is 1.
func Regret(predicted, measured []float64, k int) float64 {
	if len(measured) == 0 {
		return 1
	}
	best := math.Inf(1)
	for _, n := range ascending(predicted)[:min(k, len(predicted))] {
		best = min(best, measured[n])
	}
	return best / slices.Min(measured)
}
