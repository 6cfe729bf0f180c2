// Package contest compares searches on recorded spaces: how near to the best time of a
// table they come after so many evaluations, over many seeds.
//
//	contest.go     which searches run on which tables, and the prices that they know
//	sampler.go     what a search sees of a table, and which point it keeps
//	statistics.go  curves, intervals, means over tables
//	text.go        the document, and its form for people; page.go the page
//
// A table with single samples is searched by them: an evaluation is one sample. At the
// end the points that were best are sampled again, and the best of them is kept. Two
// errors are told apart, as in studies of autotuners: that nothing near the best was
// evaluated (exploration), and that another point was kept (selection).
package contest

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/tilewright/tilewright/cost/problem"
	"github.com/tilewright/tilewright/search"
	"github.com/tilewright/tilewright/search/table"
)

// A Contest says what is compared. The zero value of every field is a sensible choice.
type Contest struct {
	// Methods by name; nil means all of search.Methods.
	Methods []string
	// Seeds is how many searches there are of each method and table, with the seeds 0,
	// 1, …; 0 means 20.
	Seeds int
	// Evaluations of a search; 0 means 100. A failure is one of them.
	Evaluations int
	// Unpriced leaves the prices of tables that have HLO, a device and plans unused.
	Unpriced bool
}

// A Result is one method on one table.
type Result struct {
	// Table and Method are their names.
	Table  string `json:"table"`
	Method string `json:"method"`
	// Priced says that the search knew the prices of the points.
	Priced bool `json:"priced"`
	// Points of the table, and how many of them failed.
	Points int `json:"points"`
	Failed int `json:"failed"`
	// Curve is F(n): the best time of the table over the best time of the first n
	// evaluations, the mean over the seeds.
	Curve []Mark `json:"curve"`
	// Exploration is the least time of what was evaluated over that of the table, and
	// Selection the time of what was selected over the least of what was evaluated, by
	// the medians of all samples: means over the seeds. Selection is 1 where a table
	// has no samples, since then no measurement is in doubt.
	Exploration float64 `json:"exploration"`
	Selection   float64 `json:"selection"`
	// Worst is the time of what was selected over that of the table, of the worst seed.
	Worst float64 `json:"worst"`
}

// A Mark is F(n) after n evaluations with a 95 % interval of the mean.
type Mark struct {
	Evaluations int `json:"evaluations"`
	// Fraction of the optimum, the mean over the seeds.
	Fraction float64 `json:"fraction"`
	// Low and High are the ends of the interval.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Run holds the contest on tables. The results are in the order of the tables, and for
// each of them in that of the methods; the same contest gives the same results.
func (c Contest) Run(ctx context.Context, tables []*table.Table) ([]Result, error) {
	methods, err := c.methods()
	if err != nil {
		return nil, err
	}
	var out []Result
	// Prices of a table are computed once for all searches of it.
	for _, t := range tables {
		var prior []float64
		if !c.Unpriced {
			if prior, err = Prices(ctx, t); err != nil {
				return nil, fmt.Errorf("%s: %w", t.Header.Name, err)
			}
		}
		for _, m := range methods {
			runs := c.searches(ctx, t, m, prior)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			r := c.result(t, runs)
			r.Method = m.Name
			r.Priced = prior != nil && m.Priced
			out = append(out, r)
		}
	}
	return out, nil
}

// methods are those that are named.
func (c Contest) methods() ([]search.Method, error) {
	if c.Methods == nil {
		return search.Methods, nil
	}
	var out []search.Method
	for _, name := range c.Methods {
		k := slices.IndexFunc(
			search.Methods,
			func(m search.Method) bool { return m.Name == name },
		)
		if k < 0 {
			return nil, fmt.Errorf("no strategy is called %q; there are %s", name, Names())
		}
		out = append(out, search.Methods[k])
	}
	return out, nil
}

// Names are the names of all methods, for people.
func Names() string {
	text := ""
	for k, m := range search.Methods {
		if k > 0 {
			text += ", "
		}
		text += m.Name
	}
	return text
}

// seeds are how many searches there are of a method on a table.
func (c Contest) seeds() int { return orDefault(c.Seeds, 20) }

// evaluations of a search, failures among them.
func (c Contest) evaluations() int { return orDefault(c.Evaluations, 100) }

// orDefault is a number of which 0 means another one.
func orDefault(v, zeroMeans int) int {
	if v == 0 {
		return zeroMeans
	}
	return v
}

// A trace is one search.
type trace struct {
	least    []float64 // after each evaluation, by the times of the table
	selected int       // the point that the search would keep
}

// searches are the searches of one method on one table, by all seeds, as many at a time
// as there are processors. When ctx ends the rest of them are cut short, and what is
// returned is of no use.
func (c Contest) searches(
	ctx context.Context, t *table.Table, m search.Method, prior []float64,
) []trace {
	out := make([]trace, c.seeds())
	var wg sync.WaitGroup
	// Searches of different seeds share nothing, so that their order does not matter.
	seeds := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for seed := range seeds {
				out[seed] = c.search(
					ctx,
					t,
					m,
					prior,
					uint64(seed),
				)
			}
		})
	}
	for seed := range out {
		seeds <- seed
	}
	close(seeds)
	wg.Wait()
	return out
}

// search is one search. An evaluation is one sample where there are samples.
func (c Contest) search(
	ctx context.Context, t *table.Table, m search.Method, prior []float64, seed uint64,
) trace {
	from := m.New(t.Space, search.Settings{
		Prior: prior, Seed: seed, Evaluations: c.evaluations(),
	})
	draws := newSampler(t, seed)
	trials := search.Run(from, c.evaluations(), func(k int) (float64, bool) {
		return draws.one(k), ctx.Err() == nil
	})
	// What a search has found is judged by the times of the table, not by the samples
	// that it has seen.
	var out trace
	least := math.Inf(1)
	for _, trial := range trials {
		least = min(least, t.Seconds[trial.Point])
		out.least = append(out.least, least)
	}
	out.selected = draws.selected(trials)
	return out
}

// Prices are the seconds that the cost model predicts for the points of a table, NaN for
// those that cannot run; nil for a table without HLO, device and plans.
func Prices(ctx context.Context, t *table.Table) ([]float64, error) {
	h := t.Header
	if h.HLO == "" || h.Device == nil || h.Plan == "" {
		return nil, nil
	}
	plans, err := t.Plans()
	if err != nil {
		return nil, err
	}
	answer := problem.NewSolver().Answer(ctx, problem.Problem{
		ID: h.Name, HLO: h.HLO, Device: json.RawMessage(h.Device), Plans: plans,
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("its plans have no prices: %s", answer.Error)
	}
	// A plan that the device cannot run is no price, which is not that it will fail.
	out := make([]float64, len(plans))
	for k, s := range answer.Seconds {
		out[k] = math.NaN()
		if s != nil {
			out[k] = *s
		}
	}
	return out, nil
}
