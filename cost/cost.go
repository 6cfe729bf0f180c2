package cost

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/kernels"
)

// A Ranked is a plan in the order of its predicted time.
type Ranked struct {
	Plan kernels.Plan
	// The time that the model predicts.
	Seconds float64
	// The price that the prediction is made from.
	Price   kernels.Price
	ranking *ranking
}

// Features are the terms of the plan's price in the form that is stored with
// measurements.
func (r *Ranked) Features() Features {
	return featuresOf(r.Plan, &r.Price, &r.ranking.terms)
}

// Terms are the parts of the prediction; they add up to Seconds.
func (r *Ranked) Terms() []Term {
	_, terms := r.ranking.model.Predict(r.Features())
	return terms
}

// Reprice predicts again after price has written another price of the plan.
func (r *Ranked) Reprice(price func(*kernels.Price) error) error {
	if err := price(&r.Price); err != nil {
		return err
	}
	r.Seconds, _ = r.ranking.model.Predict(r.Features())
	return nil
}

// Doubt is the standard deviation of the logarithm of Seconds: see Model.Doubt.
func (r *Ranked) Doubt() float64 {
	if r.ranking == nil || r.ranking.model.residual == nil {
		return 0
	}
	return r.ranking.model.Doubt(r.Features())
}

// A ranking is what ranked plans have in common.
type ranking struct {
	model *Model
	terms kernels.PriceTerms
}

// Rank orders plans by their predicted time, the cheapest first. Plans that cost the same
// are ordered by their text; where the pricer says that prices which differ by less than a
// share tie, they keep the order in which they are given. A plan that has no price, since
// it is not legal or has an unknown knob, is an error; so is the cause of a context that
// ended before.
//
// Besides a fixed number of allocations for all plans together, none is made.
func (m *Model) Rank(
	ctx context.Context, pricer kernels.Pricer, plans []kernels.Plan,
) ([]Ranked, error) {
	set := &ranking{model: m, terms: pricer.Terms()}
	n := len(set.terms.Names)
	p := m.predictor(&set.terms)
	seconds := make([]float64, n*len(plans))
	given := make([]Ranked, len(plans))
	order := make([]ordered, len(plans))
	for k := range plans {
		if k%64 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		r := &given[k]
		r.Plan = plans[k]
		r.ranking = set
		r.Price.Seconds = seconds[n*k : n*(k+1) : n*(k+1)]
		if err := pricer.Price(r.Plan, &r.Price); err != nil {
			return nil, fmt.Errorf("plan %s: %w", r.Plan, err)
		}
		r.Seconds = p.total(r.Plan, &r.Price)
		order[k] = ordered{r.Seconds, k}
	}
	slices.SortFunc(order, func(a, b ordered) int {
		if a.seconds != b.seconds {
			return cmp.Compare(a.seconds, b.seconds)
		}
		if set.terms.Tie > 0 {
			return a.at - b.at
		}
		return given[a.at].Plan.Compare(given[b.at].Plan)
	})
	if set.terms.Tie > 0 {
		tied(order, set.terms.Tie)
	}
	arrange(given, order)
	return given, nil
}

// An ordered plan is its predicted time and its position among the given plans.
type ordered struct {
	seconds float64
	at      int
}

// arrange moves plans to their places in an order, in cycles, without a second list.
func arrange(plans []Ranked, order []ordered) {
	for first := range order {
		held := plans[first]
		to := first
		for from := order[to].at; from != first; from = order[to].at {
			plans[to] = plans[from]
			order[to].at = to
			to = from
		}
		plans[to] = held
		order[to].at = to
	}
}

// tied puts plans that are less than a share more expensive than the cheapest
// of them back into the order in which they were given.
func tied(order []ordered, share float64) {
	for len(order) > 0 {
		limit := order[0].seconds * (1 + share)
		n := 1
		for n < len(order) && order[n].seconds <= limit {
			n++
		}
		slices.SortFunc(order[:n], func(a, b ordered) int {
			return a.at - b.at
		})
		order = order[n:]
	}
}
