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
func Unwon(
	db *cache.DB, c *hlo.Computation, id kernels.Identity, standard kernels.Plan,
) cache.Record {
	r := cache.Record{
		Key:     Key(c, id),
		Name:    c.Name,
		Default: standard.String(),
	}
	r.Trials, _ = db.Trials(r.Key)
	return r
}

// fails reports whether a plan failed its check in the trials of a record.
func fails(r cache.Record, plan kernels.Plan) bool {
	r.Default = plan.String()
	return r.DefaultFailure() != ""
}

// errNonePassed is why a fusion has no plan although it has a default.
var errNonePassed = errors.New("no plan has passed its check here")

// Runnable is the plan that a database says to run a fusion by: the winner's or, where
// there is none and the backend's default plan failed its check, the cheapest that passed.
// known is false where nothing speaks against the default plan; the error says that it
// failed and that no other plan has passed.
func Runnable(
	ctx context.Context, db *cache.DB, c *hlo.Computation, b kernels.Backend,
) (plan kernels.Plan, known bool, err error) {
	id := kernels.IdentityOf(b)
	if found, ok, err := Lookup(db, c, id); ok && err == nil {
		plan, err := found.Plan()
		return plan, err == nil, nil
	}
	trials, err := db.Trials(Key(c, id))
	failed := func(t cache.Trial) bool { return t.Failure != "" }
	if err != nil || !slices.ContainsFunc(trials, failed) {
		return kernels.Plan{}, false, nil
	}
	p, err := symtile.Analyze(ctx, c)
	if err != nil {
		return kernels.Plan{}, false, err
	}
	a, err := predictUnwon(ctx, db, b, p)
	return a.Plan, err == nil && a.DefaultFailure != "", err
}

// predictUnwon is the default plan of a fusion without a winner or, where that has failed
// its check, the cheapest of those that have passed it.
func predictUnwon(
	ctx context.Context, db *cache.DB, b kernels.Backend, p *symtile.Program,
) (Answer, error) {
	a, err := predict(ctx, b, p)
	if err != nil {
		return a, err
	}
	id := kernels.IdentityOf(b)
	r := Unwon(db, p.Fusion, id, a.Plan)
	a.DefaultFailure = r.DefaultFailure()
	if a.DefaultFailure == "" || a.takePassed(r.Trials, b, p) {
		return a, nil
	}
	err = errors.New(a.DefaultFailure)
	err = errors.Join(errNonePassed, err)
	return Answer{}, &UnansweredError{p.Fusion.Name, err}
}

// takePassed makes the cheapest plan that passed its check the answer, if one did.
func (a *Answer) takePassed(
	trials []cache.Trial, b kernels.Backend, p *symtile.Program,
) (found bool) {
	for _, t := range trials {
		if t.Failure != "" || len(t.Samples) == 0 {
			continue
		}
		plan, err := kernels.ParsePlan(t.Plan)
		if err != nil {
			continue
		}
		seconds, err := priceOf(b, p, plan)
		if err != nil || found && seconds >= a.Seconds {
			continue
		}
		a.Plan, a.Seconds = plan, seconds
		found = true
	}
	return found
}
