package tuner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A Basis is what an answer rests on.
type Basis string

// The bases of answers, the best first.
const (
	// Exact is the winner of this fusion on this device with this revision of the
	// code generator.
	Exact Basis = "exact"
	// Nearest is the winner of a fusion that differs in its extents only, of another
	// revision or on another device; Answer.Differs says which. Its plan is legal for
	// the fusion.
	Nearest Basis = "nearest"
	// Predicted is the backend's default plan, the first by price, with its price, or the
	// cheapest that passed its check here where the default failed it.
	Predicted Basis = "predicted"
	// Default is the default plan of a backend that has no prices.
	Default Basis = "default"
)

// An Answer is a plan for a fusion, and what is known about it.
type Answer struct {
	Basis Basis
	Plan  kernels.Plan
	// Dims are the names of the plan's dimensions; nil for a winner from before they were
	// stored.
	Dims kernels.PlanNames
	// Differs lists, for people, how what a nearest answer was measured for differs
	// from what was asked.
	Differs []string
	// Seconds is the median of the winner. Where Untimed is set it is a price.
	Seconds float64
	// Default is the plan that the winner was compared with; empty if unknown.
	Default        string
	DefaultSeconds float64
	// Speedup over the default: median, lower and upper end; 0 is unknown.
	Speedup [3]float64
	// Regret bounds the winner's time over that of the best tried plan, minus 1, at
	// 95 %; −1 is unknown.
	Regret float64
	Ties   []string // plans that are statistically equal to the winner
	// Checked says that the plan agreed with the reference for the fusion it was
	// measured for.
	Checked bool
	// Untimed says that Seconds is a prediction of the cost model.
	Untimed bool
	// Provisional says that the race of the winner is not over.
	Provisional bool
	// Like is the fusion, different in extents only, whose winner was raced beside the
	// default, and nothing else; a snapshot does not know it.
	Like string
	When time.Time // of measuring; zero if nothing was
	By   string    // the tool that measured
	// DefaultFailure is how the default plan failed its check; a snapshot does not
	// know it.
	DefaultFailure string
	SafeGap        []string // how the safe context it was measured in differs
	// Damage says why the stored winner of this fusion could not be read; the answer is
	// another one then. It is empty where there is none, or it was read.
	Damage string
}

// An UnansweredError is the error of a fusion that has no winner and no plans on the
// device, or none that passed its check there.
type UnansweredError struct {
	Fusion string // its name
	Err    error  // why it has no plans
}

// Error says why there are no plans.
func (e *UnansweredError) Error() string {
	return fmt.Sprintf("%s: no winner is stored, and there is no other plan: %v", e.Fusion, e.Err)
}

// Unwrap returns why there are no plans.
func (e *UnansweredError) Unwrap() error { return e.Err }

// IsUnanswered reports whether an error is an *UnansweredError.
func IsUnanswered(err error) bool {
	var e *UnansweredError
	return errors.As(err, &e)
}

// Answer answers for every fusion that has tiles: with its winner, with the nearest
// one whose plan is legal for it, or with the backend's default plan. Nothing is
// measured. A stored winner that is damaged is left out (Answer.Damage). The error is
// that of a file that cannot be read, an *UnansweredError, or the cause of a ctx that
// ended before there was an answer.
func (s Snapshot) Answer(ctx context.Context, c *hlo.Computation, b kernels.Backend) (Answer, error) {
	id := kernels.IdentityOf(b)
	var hit cache.Hit
	q := question(c, id)
	found, err := s.Get(&q.Key, &hit)
	damage := ""
	switch {
	case errors.Is(err, cache.ErrDamaged):
		damage = err.Error()
	case found || err != nil:
		return hitAnswer(&hit, id, err)
	}
	p, err := symtile.Analyze(ctx, c)
	if err != nil {
		return Answer{}, unanswered(ctx, c, err)
	}
	if found, _, err := s.Nearest(&q, &hit); found && err == nil {
		if a, err := hitAnswer(&hit, id, nil); err == nil && a.adapt(&q, storedKey(&hit), b, p) {
			a.Damage = damage
			return a, nil
		}
	}
	a, err := predict(ctx, b, p)
	a.Damage = damage
	return a, err
}

// AnswerFrom is Snapshot.Answer from a database. Where that has no winner of the fusion,
// all records are read, once for each state of the file and DB. It answers with no plan that failed its check on this
// device, which a snapshot does not know.
func AnswerFrom(ctx context.Context, db *cache.DB, c *hlo.Computation, b kernels.Backend) (Answer, error) {
	id := kernels.IdentityOf(b)
	q := question(c, id)
	r, found, err := db.Get(q.Key)
	damage := ""
	var damaged *cache.DamagedError
	switch {
	case errors.As(err, &damaged):
		damage = err.Error()
	case err != nil:
		return Answer{}, err
	case found:
		return recordAnswer(&r, id)
	}
	p, err := symtile.Analyze(ctx, c)
	if err != nil {
		return Answer{}, unanswered(ctx, c, err)
	}
	if r, found, _, err := db.Nearest(&q); found && err == nil {
		if a, err := recordAnswer(&r, id); err == nil && a.adapt(&q, r.Key, b, p) && !fails(Unwon(db, c, id, a.Plan), a.Plan) {
			a.Damage = damage
			return a, nil
		}
	}
	a, err := predictUnwon(ctx, db, b, p)
	a.Damage = damage
	return a, err
}

// question is what is asked of a database or a snapshot.
func question(c *hlo.Computation, id kernels.Identity) cache.Question {
	return cache.Question{
		Key:       Key(c, id),
		Structure: cache.StructureOf(c.Canonical()),
		DeviceDistance: func(device []byte) float64 {
			return kernels.DeviceDistance(id.Device, string(device))
		},
	}
}

// storedKey is the key of a hit.
func storedKey(h *cache.Hit) cache.Key {
	return cache.Key{
		Fusion: h.Fusion, Device: string(h.Device), Backend: string(h.Backend), Codegen: string(h.Codegen),
	}
}

// hitAnswer is the answer of a hit.
func hitAnswer(h *cache.Hit, id kernels.Identity, err error) (Answer, error) {
	if err != nil {
		return Answer{}, err
	}
	plan, err := kernels.ParsePlan(string(h.Plan))
	return Answer{
		Basis:          Exact,
		Plan:           plan,
		Dims:           h.DimNames(),
		Seconds:        h.Seconds,
		Default:        string(h.Default),
		DefaultSeconds: h.DefaultSeconds,
		Speedup:        h.Speedup,
		Regret:         h.Regret,
		Ties:           h.Ties(),
		Checked:        h.Checked,
		Untimed:        h.Untimed,
		Provisional:    h.Provisional,
		When:           h.When(),
		By:             string(h.By),
		SafeGap:        h.SafeDiff(id.Safe),
	}, err
}

// recordAnswer is the answer of a record.
func recordAnswer(r *cache.Record, id kernels.Identity) (Answer, error) {
	plan, err := kernels.ParsePlan(r.Plan)
	return Answer{
		Basis:          Exact,
		Plan:           plan,
		Dims:           r.Dims,
		Seconds:        r.Seconds,
		Default:        r.Default,
		DefaultSeconds: r.DefaultSeconds,
		Speedup:        r.Speedup,
		Regret:         r.Regret,
		Ties:           r.Ties,
		Checked:        r.Checked,
		Untimed:        r.Untimed,
		Provisional:    r.Provisional,
		Like:           r.Like,
		When:           r.When,
		By:             r.By,
		DefaultFailure: r.DefaultFailure(),
		SafeGap:        cache.SafeDiff(r.Safe, id.Safe),
	}, err
}

// adapt makes the answer of another key one for what was asked: tile sizes are cut to
// the extents, and the plan has to be legal for the program and to have a price. Of a
// fusion of other extents nothing is known but the plan.
func (a *Answer) adapt(q *cache.Question, from cache.Key, b kernels.Backend, p *symtile.Program) bool {
	plan, ok := cutToExtents(a.Plan, p)
	if !ok {
		return false
	}
	seconds, err := priceOf(b, p, plan)
	if err != nil {
		return false
	}
	a.Basis = Nearest
	a.Plan, a.Dims = plan, kernels.PlanNamesOf(p)
	a.Differs = differences(q, from, a.Untimed)
	if from.Fusion != q.Fusion {
		a.Seconds, a.Untimed = seconds, true
		a.Default, a.DefaultSeconds, a.Like = "", 0, ""
		a.Speedup, a.Regret, a.Ties = [3]float64{}, -1, nil
	}
	return true
}

// differences are for people. A device that cannot time has measured nothing.
func differences(q *cache.Question, from cache.Key, untimed bool) (all []string) {
	how := "measured"
	if untimed {
		how = "chosen by price"
	}
	if from.Fusion != q.Fusion {
		all = append(all, how+" for other extents")
	}
	if from.Codegen != q.Codegen {
		all = append(all, fmt.Sprintf("%s with revision %s of the code generator, now %s", how, from.Codegen, q.Codegen))
	}
	if from.Device != q.Device {
		all = append(all, how+" on "+from.Device)
	}
	return all
}

// cutToExtents makes the tile sizes of a plan no larger than the extents of a program.
// It is false where the plan has another number of them.
func cutToExtents(plan kernels.Plan, p *symtile.Program) (kernels.Plan, bool) {
	dims := p.Space.Dims
	if len(plan.Tiles) != len(dims) {
		return plan, false
	}
	cut := kernels.Plan{Tiles: make(symtile.Tiling, len(dims)), Knobs: plan.Knobs}
	for k, d := range dims {
		cut.Tiles[k] = min(plan.Tiles[k], max(1, d.Extent))
	}
	return cut, true
}

// priceOf is the price of a plan in seconds, 0 where the backend has no prices. A plan
// that is not legal, or has knobs that the backend does not have, is an error.
func priceOf(b kernels.Backend, p *symtile.Program, plan kernels.Plan) (float64, error) {
	priced, ok := b.(kernels.PricedBackend)
	if err := p.Check(plan.Tiles); err != nil || !ok {
		return 0, err
	}
	pricer, err := priced.Pricer(p)
	if err != nil {
		return 0, err
	}
	terms := pricer.Terms()
	price := kernels.Price{Seconds: make([]float64, len(terms.Names))}
	if err := pricer.Price(plan, &price); err != nil {
		return 0, err
	}
	total := price.Total(&terms)
	if math.IsInf(total, 0) || math.IsNaN(total) {
		return 0, fmt.Errorf("plan %s has no price", plan)
	}
	return total, nil
}

// unanswered is the error of a fusion without plans; the cause of ctx if that ended.
func unanswered(ctx context.Context, c *hlo.Computation, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &UnansweredError{c.Name, err}
}

// predict is the backend's default plan.
func predict(ctx context.Context, b kernels.Backend, p *symtile.Program) (Answer, error) {
	plan, err := b.Default(ctx, p)
	if err != nil {
		return Answer{}, unanswered(ctx, p.Fusion, err)
	}
	seconds, err := priceOf(b, p, plan)
	a := Answer{Basis: Default, Plan: plan, Dims: kernels.PlanNamesOf(p), Seconds: seconds, Regret: -1, Untimed: true}
	if seconds > 0 {
		a.Basis = Predicted
	}
	return a, err
}

// String is the plan with what it rests on, for people.
func (a Answer) String() string {
	if len(a.Differs) == 0 {
		return fmt.Sprintf("%s (%s)", a.Plan, a.Basis)
	}
	return fmt.Sprintf("%s (%s: %s)", a.Plan, a.Basis, strings.Join(a.Differs, ", "))
}
