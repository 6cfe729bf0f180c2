package tuner

import (
	"context"
	"errors"
	"slices"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Unwon is what is stored of a fusion that has no winner on a device: a record of its
// default plan and of the trials of its races so far, by which Record.DefaultFailure says
// how the default failed its check. What is damaged is left out.
func Unwon(db *cache.DB, c *hlo.Computation, id kernels.Identity, standard kernels.Plan) cache.Record {
	key := Key(c, id)
	trials, _ := db.Trials(key)
	return cache.Record{Key: key, Name: c.Name, Default: standard.String(), Trials: trials}
}

// fails reports whether a plan failed its check in the trials of a record.
func fails(r cache.Record, plan kernels.Plan) bool {
	r.Default = plan.String()
	return r.DefaultFailure() != ""
}

// errNonePassed is why a fusion has no plan although it has a default.
var errNonePassed = errors.New("no plan has passed its check here")

// predictUnwon is the default plan of a fusion without a winner or, where that has failed
// its check, the cheapest of those that have passed it.
func predictUnwon(ctx context.Context, db *cache.DB, b kernels.Backend, p *symtile.Program) (Answer, error) {
	a, err := predict(ctx, b, p)
	if err != nil {
		return a, err
	}
	r := Unwon(db, p.Fusion, kernels.IdentityOf(b), a.Plan)
	a.DefaultFailure = r.DefaultFailure()
	if a.DefaultFailure == "" {
		return a, nil
	}
	passed := slices.DeleteFunc(r.Trials, func(t cache.Trial) bool {
		return t.Failure != "" || len(t.Samples) == 0
	})
	found := false
	for _, t := range passed {
		plan, err := kernels.ParsePlan(t.Plan)
		if err != nil {
			continue
		}
		seconds, err := priceOf(b, p, plan)
		if err == nil && (!found || seconds < a.Seconds) {
			a.Plan, a.Seconds, found = plan, seconds, true
		}
	}
	if !found {
		return Answer{}, &UnansweredError{p.Fusion.Name, errors.Join(errNonePassed, errors.New(a.DefaultFailure))}
	}
	return a, nil
}
