package contest

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tilewright/tilewright/search/table"
)

// marks are the evaluations at which a curve is given, as far as the search goes.
var marks = []int{1, 2, 5, 10, 16, 25, 40, 50, 75, 100, 150, 200, 300, 400, 500, 750, 1000}

// result sums the searches of a method on a table up: what they had found after so many
// evaluations, and both errors at their ends.
func (c Contest) result(t *table.Table, runs []trace) Result {
	r := Result{Table: t.Header.Name, Points: len(t.Seconds)}
	for _, f := range t.Failures {
		if f != "" {
			r.Failed++
		}
	}
	// Times are compared with the best one that the table has at all.
	best := t.Best()
	n := c.evaluations()
	for _, m := range marks {
		if m <= n {
			r.Curve = append(
				r.Curve,
				fraction(runs, best, m),
			)
		}
	}
	if !slices.Contains(marks, n) {
		r.Curve = append(
			r.Curve,
			fraction(runs, best, n),
		)
	}
	for _, run := range runs {
		found := run.least[len(run.least)-1]
		kept := t.Seconds[run.selected]
		r.Exploration += found / best / float64(len(runs))
		r.Selection += ratio(kept, found) / float64(len(runs))
		r.Worst = max(r.Worst, kept/best)
	}
	return r
}

// ratio is a ÷ b, and 1 where nothing ran.
func ratio(a, b float64) float64 {
	if a == b {
		return 1
	}
	return a / b
}

// fraction is F(n), with the interval of its mean over the runs. A search that has
// exhausted its space stays where it ended. One that has found nothing has reached 0.
func fraction(runs []trace, best float64, n int) Mark {
	values := make([]float64, len(runs))
	for k, run := range runs {
		values[k] = best / run.least[min(n, len(run.least))-1]
	}
	low, high := interval(values)
	return Mark{n, mean(values), low, high}
}

// mean is the arithmetic mean.
func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// resamples of the bootstrap.
const resamples = 1000

// interval is the 95 % percentile-bootstrap interval of a mean (B. Efron, 1979). The same
// values have the same interval.
func interval(values []float64) (low, high float64) {
	rng := rand.New(
		rand.NewPCG(1, uint64(len(values))),
	)
	means := make([]float64, resamples)
	drawn := make([]float64, len(values))
	for n := range means {
		for k := range drawn {
			drawn[k] = values[rng.IntN(len(values))]
		}
		means[n] = mean(drawn)
	}
	slices.Sort(means)
	at := func(share float64) float64 {
		return means[int(math.Round(share*(resamples-1)))]
	}
	return at(0.025), at(0.975)
}

// Means are the curves of each method over all tables of a contest, each table with the
// same weight; the intervals are those of the mean over tables whose searches are
// independent.
func Means(results []Result) []Result {
	var out []Result
	for _, r := range results {
		k := slices.IndexFunc(
			out,
			func(m Result) bool { return m.Method == r.Method },
		)
		if k >= 0 {
			continue
		}
		same := slices.DeleteFunc(
			slices.Clone(results),
			func(x Result) bool { return x.Method != r.Method },
		)
		out = append(out, over(same))
	}
	return out
}

// over is the mean of the results of one method: of fractions the arithmetic mean, of
// errors, which are ratios, the geometric one, of the worst seeds the worst.
func over(same []Result) Result {
	n := float64(len(same))
	m := Result{Method: same[0].Method, Table: "all tables"}
	m.Curve = make(
		[]Mark,
		len(same[0].Curve),
	)
	for k := range m.Curve {
		// The variance of a mean of independent values is the sum of their variances
		// over the square of their number; half-widths of intervals add up likewise.
		below, above := 0.0, 0.0 // sums of squares
		for _, r := range same {
			c := r.Curve[k]
			m.Curve[k].Evaluations = c.Evaluations
			m.Curve[k].Fraction += c.Fraction / n
			below += (c.Fraction - c.Low) * (c.Fraction - c.Low)
			above += (c.High - c.Fraction) * (c.High - c.Fraction)
		}
		m.Curve[k].Low = m.Curve[k].Fraction - math.Sqrt(below)/n
		m.Curve[k].High = m.Curve[k].Fraction + math.Sqrt(above)/n
	}
	for _, r := range same {
		m.Points += r.Points
		m.Failed += r.Failed
		m.Exploration += math.Log(r.Exploration) / n
		m.Selection += math.Log(r.Selection) / n
		m.Worst = max(m.Worst, r.Worst)
	}
	m.Exploration = math.Exp(m.Exploration)
	m.Selection = math.Exp(m.Selection)
	return m
}
