package cost

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// A Judgement says how well predictions rank what was measured.
type Judgement struct {
	Plans   int     `json:"plans"`
	Kendall float64 `json:"kendall"` // τ of predicted against measured, −1 … 1
	Regret1 float64 `json:"regret1"` // measured time of the first predicted over the best, 1 is perfect
	Regret3 float64 `json:"regret3"` // best of the first three
	Regret8 float64 `json:"regret8"`
}

// Judge compares predictions with measurements of the same plans.
func Judge(predicted, measured []float64) Judgement {
	return Judgement{
		Plans:   len(measured),
		Kendall: Kendall(predicted, measured),
		Regret1: Regret(predicted, measured, 1),
		Regret3: Regret(predicted, measured, 3),
		Regret8: Regret(predicted, measured, 8),
	}
}

// Kendall is Kendall's τ: concordant minus discordant pairs over all pairs.
// With fewer than two plans it is 0.
func Kendall(predicted, measured []float64) float64 {
	if len(measured) < 2 {
		return 0
	}
	return stat.Kendall(predicted, measured, nil)
}

// Regret is the best measured time among the k plans predicted fastest, over
// the best of all: 1 is perfect. Equal predictions keep their order.
func Regret(predicted, measured []float64, k int) float64 {
	if len(measured) == 0 {
		return 1
	}
	order := make([]int, len(predicted))
	for n := range order {
		order[n] = n
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if predicted[a] < predicted[b] {
			return -1
		}
		if predicted[a] > predicted[b] {
			return 1
		}
		return 0
	})
	best := math.Inf(1)
	for _, n := range order[:min(k, len(order))] {
		best = min(best, measured[n])
	}
	return best / slices.Min(measured)
}
