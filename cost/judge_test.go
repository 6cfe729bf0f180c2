package cost

import (
	"math"
	"testing"
)

// TestJudge: known answers, those with ties worked out by hand.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		predicted, measured []float64
		want                Judgement
	}{
		{[]float64{1, 2, 3, 4}, []float64{
			1, 2, 3, 4,
		}, Judgement{4, 1, 1, 1, 1, 1}},
		{[]float64{4, 3, 2, 1}, []float64{
			1, 2, 3, 4,
		}, Judgement{4, -1, -1, 4, 2, 1}},
		{[]float64{2, 1, 3, 4}, []float64{
			1, 2, 3, 4,
		}, Judgement{4, 2.0 / 3, 0.8, 2, 1, 1}},
		{[]float64{5, 5, 5, 5}, []float64{
			4, 3, 2, 1,
		}, Judgement{4, 0, 0, 4, 2, 1}},
		{[]float64{1, 2, 2, 3}, []float64{1, 2, 3, 4}, Judgement{
			4, 5 / math.Sqrt(30),
			3 / math.Sqrt(10), 1, 1, 1,
		}},
		{
			[]float64{12, 2, 1, 12, 2},
			[]float64{1, 4, 7, 1, 0.5},
			Judgement{5, -4 / math.Sqrt(72), -5 /
				math.Sqrt(85.5), 14, 1, 1},
		},
		{nil, nil, Judgement{0, 0, 0, 1, 1, 1}},
		{[]float64{3}, []float64{2}, Judgement{
			1, 0, 0, 1, 1, 1,
		}},
	} {
		got := Judge(c.predicted, c.measured)
		near := func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }
		if got.Plans != c.want.Plans ||
			!near(got.Kendall, c.want.Kendall) ||
			!near(got.Spearman, c.want.Spearman) ||
			!near(got.Regret1, c.want.Regret1) ||
			!near(got.Regret3, c.want.Regret3) ||
			!near(got.Regret8, c.want.Regret8) {
			t.Errorf("%v against %v: %+v, want %+v", c.predicted, c.measured, got, c.want)
		}
	}
}
