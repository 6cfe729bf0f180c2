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

// Rank orders plans of the symbolic program p, cheapest first but for knobs that
// no term tells of, which come a little later; ties keep the
// order of the plans' text, or where the device's account says what ties that of
// plans. Plans that are not legal are an error.
func (m *Model) Rank(
	p *symtile.Program, plans []kernels.Plan,
) ([]Ranked, error) {
	ranked := make([]Ranked, len(plans))
	if err := m.account(p, plans, ranked); err != nil {
		return nil, err
	}
	tilings := sameTiles(plans)
	errs := make([]error, len(tilings))
	var next atomic.Int64
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for n := next.Add(1) -
				1; n < int64(len(tilings)); n = next.Add(1) - 1 {
				errs[n] = m.rank(p, plans, tilings[n], ranked)
			}
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	if m.device.Account != nil {
		return tied(ranked, m.device.Account.Tie), nil
	}
	slices.SortStableFunc(ranked, func(a, b Ranked) int {
		return cmp.Or(
			cmp.Compare(m.order(&a), m.order(&b)),
			a.Plan.Compare(b.Plan),
		)
	})
	return ranked, nil
}

// tied sorts by seconds; those that are less than a share above the cheapest of
// them stay as they are.
func tied(given []Ranked, share float64) []Ranked {
	order := make([]int, len(given))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(
			given[a].Seconds, given[b].Seconds,
		)
	})
	for left := order; len(left) > 0; {
		most := given[left[0]].Seconds * (1 + share)
		n := 1
		for n < len(left) &&
			given[left[n]].Seconds <= most {
			n++
		}
		slices.Sort(left[:n])
		left = left[n:]
	}
	ranked := make([]Ranked, len(given))
	for k, n := range order {
		ranked[k] = given[n]
	}
	return ranked
}

// untold is what a plan is put behind by for each knob that no term tells of, so
// that tilings nearly as good come before all the knobs of one.
const untold = 0.02

// toldKnobs are those that Measure reads.
var toldKnobs = []string{"threads", "group", "stream", "splitk"}

// order is the seconds of a plan with what its knobs put it behind by.
func (m *Model) order(r *Ranked) float64 {
	factor := 1.0
	for _, k := range r.Plan.Knobs {
		if !slices.Contains(toldKnobs, k.Name) {
			factor += untold
		}
	}
	return r.Seconds * factor
}

// account fills in what the device's own account says, if it has one.
func (m *Model) account(
	p *symtile.Program, plans []kernels.Plan, ranked []Ranked,
) error {
	if m.device.Account == nil {
		return nil
	}
	of, err := m.device.Account.Of(p)
	if err != nil {
		return err
	}
	for n, plan := range plans {
		ranked[n].Features.Own = of(plan)
	}
	return nil
}

// sameTiles lists plans by their tilings, which need one concrete program each.
func sameTiles(plans []kernels.Plan) [][]int {
	at := map[string]int{}
	var all [][]int
	for n, plan := range plans {
		key := kernels.Plan{Tiles: plan.Tiles}.String()
		k, met := at[key]
		if !met {
			k, at[key] = len(all), len(all)
			all = append(all, nil)
		}
		all[k] = append(all[k], n)
	}
	return all
}

// rank fills in those plans of a tiling.
func (m *Model) rank(
	p *symtile.Program, plans []kernels.Plan,
	those []int, ranked []Ranked,
) error {
	q, err := p.At(plans[those[0]].Tiles)
	if err != nil {
		return fmt.Errorf("plan %s: %w", plans[those[0]], err)
	}
	for _, n := range those {
		f := Measure(q, plans[n], m.device)
		f.Own = ranked[n].Features.Own
		seconds, terms := m.Predict(f)
		ranked[n] = Ranked{
			Plan:     plans[n],
			Features: f,
			Seconds:  seconds,
			Terms:    terms,
		}
	}
	return nil
}
