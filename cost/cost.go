// Package cost says what a plan should cost: features, a roofline prior, a
// calibration and a correction fitted to samples, ranking and judging.
package cost

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
)

// A Ranked plan with its prediction and the terms that make it.
type Ranked struct {
	Plan     kernels.Plan
	Features Features
	Seconds  float64
	Terms    []Term
}

// Rank orders plans of the symbolic program p, cheapest first; ties keep the
// order of the plans' text. Plans that are not legal are an error.
func (m *Model) Rank(p *symtile.Program, plans []kernels.Plan) ([]Ranked, error) {
	ranked := make([]Ranked, len(plans))
	errs := make([]error, len(plans))
	var next atomic.Int64
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for n := next.Add(1) - 1; n < int64(len(plans)); n = next.Add(1) - 1 {
				ranked[n], errs[n] = m.rank(p, plans[n])
			}
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(ranked, func(a, b Ranked) int {
		return cmp.Or(cmp.Compare(a.Seconds, b.Seconds), a.Plan.Compare(b.Plan))
	})
	return ranked, nil
}

func (m *Model) rank(p *symtile.Program, plan kernels.Plan) (Ranked, error) {
	q, err := p.At(plan.Tiles)
	if err != nil {
		return Ranked{}, fmt.Errorf("plan %s: %w", plan, err)
	}
	f := Measure(q, plan, m.device)
	seconds, terms := m.Predict(f)
	return Ranked{Plan: plan, Features: f, Seconds: seconds, Terms: terms}, nil
}
