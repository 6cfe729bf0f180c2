package search

import (
	"math"
	"slices"
)

// Failures say how likely a point fails: the share of the failures among the points that
// were observed around it.
type failures struct {
	space *Space
	// near[i][v][w] is how much an observation with the value w of parameter i says
	// about a point with the value v: the product over the parameters is its weight.
	near [][][]float64
	// failed and all are the sums of the weights at every point, of failures and of all
	// observations; nil as long as nothing has failed.
	failed, all []float64
	seen        int // observations in the sums
}

// Numbers of the estimate of failures.
const (
	failureLength = 0.25 // of positions, over which a failure says something
	failurePrior  = 0.5  // observations without a failure that everywhere has
)

// newFailures has seen none.
func newFailures(s *Space) *failures {
	f := &failures{space: s}
	for i, at := range s.positions {
		table := make([][]float64, len(at))
		for v := range at {
			table[v] = make([]float64, len(at))
			for w := range at {
				d := math.Abs(at[v] - at[w])
				if s.Parameters[i].Unordered && v != w {
					d = 1
				}
				table[v][w] = math.Exp(-d / failureLength)
			}
		}
		f.near = append(f.near, table)
	}
	return f
}

// observe brings the sums up to the trials. The last one is new, or one of them was
// replaced.
func (f *failures) observe(trials []Trial) {
	if len(trials) != f.seen+1 {
		f.failed = nil
	}
	if f.failed != nil {
		f.add(trials[f.seen])
	} else if slices.ContainsFunc(trials, Trial.Failed) {
		f.failed = make(
			[]float64,
			len(f.space.Points),
		)
		f.all = make(
			[]float64,
			len(f.space.Points),
		)
		for _, t := range trials {
			f.add(t)
		}
	}
	f.seen = len(trials)
}

// add adds the weights of a trial.
func (f *failures) add(t Trial) {
	y := f.space.Points[t.Point]
	for k, x := range f.space.Points {
		w := 1.0
		for i, v := range x {
			w *= f.near[i][v][y[i]]
		}
		f.all[k] += w
		if t.Failed() {
			f.failed[k] += w
		}
	}
}

// probability of a point's failure.
func (f *failures) probability(point int) float64 {
	if f.failed == nil {
		return 0
	}
	return f.failed[point] / (f.all[point] + failurePrior)
}
