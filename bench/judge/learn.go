package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tilewright/tilewright/cost"
)

// A learner draws samples of a table, fits the prices to them and scores what is fitted on
// the shapes that none of them is of.
type learner struct {
	samples int // timings that are drawn
	each    int // of one shape
	draws   int // repetitions
}

// A featured shape has the features and times of its plans that have a price.
type featured struct {
	id       string
	features []cost.Features
	measured []float64
}

// judge prints the mean score of the fitted prices over the draws, and of the prices as
// they are on the same shapes.
func (l learner) judge(set string, all []featured) error {
	before, after := &score{}, &score{}
	for seed := range l.draws {
		rng := rand.New(rand.NewPCG(uint64(seed), uint64(l.samples)))
		train, held := l.draw(rng, all)
		model, err := cost.Fit(train)
		if err != nil {
			return err
		}
		for _, x := range held {
			before.add(x.predicted(new(cost.Model)), x.measured)
			after.add(x.predicted(model), x.measured)
		}
	}
	before.print(set, "prior")
	after.print(set, fmt.Sprintf("%d samples", l.samples))
	return nil
}

// draw divides shapes into samples and the others.
func (l learner) draw(rng *rand.Rand, all []featured) (train []cost.Sample, held []featured) {
	order := slices.Clone(all)
	rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for k, x := range order {
		if len(train) >= l.samples {
			return train, order[k:]
		}
		for n, i := range x.cheapest() {
			if n < l.each && len(train) < l.samples {
				train = append(train, cost.Sample{Group: x.id, Features: x.features[i], Seconds: x.measured[i]})
			}
		}
	}
	return train, nil
}

// cheapest are the plans in the order of their prices.
func (x *featured) cheapest() []int {
	prices := x.predicted(new(cost.Model))
	order := make([]int, len(prices))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(prices[a], prices[b]) })
	return order
}

// predicted are the predictions of a model.
func (x *featured) predicted(m *cost.Model) []float64 {
	out := make([]float64, len(x.features))
	for k, f := range x.features {
		out[k], _ = m.Predict(f)
	}
	return out
}
