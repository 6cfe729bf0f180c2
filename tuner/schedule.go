package tuner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
)

// A Schedule tunes the fusions of a workload, those first from which most is
// expected, and divides the time of a run among them. A fusion that is refused,
// fails or panics does not stop the others.
//
// With a Budget every fusion is compiled, checked and timed by its default plan
// first; that is a provisional winner. Of fusions that differ in extents only one is raced,
// and its winner beside the default of each of the others. What is left of the time is divided: to each
// fusion as much as the gain of another second there is the same as anywhere else
// (see claim), and again after every race, since some end early. Decisions depend
// on the times that were measured and on nothing else.
type Schedule struct {
	Tuner    *Tuner
	Workload *Workload
	// Budget is the wall time of the whole run, with everything in it, from Begin
	// on; 0 is none: then every fusion is raced for Options.Budget.
	Budget time.Duration
	// Begin is when the run began, if it has before Run; zero is when Run is called.
	Begin time.Time
	// Limit is the longest race of a fusion in a run with a Budget; 0 is none.
	Limit time.Duration
	// MinShare is the share of the model's time below which a fusion is not raced;
	// in a run with a Budget it is checked all the same.
	MinShare float64
	// Improve races on although a winner is stored, where its regret is unknown, or
	// more than this; 0 never does.
	Improve float64
	// Weighted takes the weights of the items for the model's time in them, in place
	// of their uses and times.
	Weighted bool
	// Done is called for each item when nothing more will be done about it; nil
	// means nobody.
	Done func(*Item)

	end      time.Time // of the run; zero is none
	reported map[*Item]bool
	open     []*Item // raced, and not to the regret that was asked for
	observer *observer
	stuck    bool // a visit did not stop: the backend cannot be used any more
	hung     *HungError

	model    *cost.Model
	fittedAt time.Time
	fitting  time.Duration // what the last fit took
}

// Parameters of the division of a run's time.
const (
	checkShares       = 4                      // fair shares of what is left that the check of a fusion may take
	minCheckTime      = 20 * time.Second       // but not less than this
	raceChecks        = 4                      // times the check of a plan: the time constant of a race
	minRaceScale      = 250 * time.Millisecond // but not less than this
	rankingShare      = 3                      // times the price of the default: the ranking of all plans, about
	raceRuns          = 20                     // runs of two plans that a race has at least, those that confirm it included
	leastHeadroom     = 0.05                   // of a fusion that is at the roofline: rates are measured, too
	unknownRegret     = 0.3                    // of a stored winner without a statement
	raceOverrun       = 0.25                   // of its time that a race may overrun before it is stopped
	minOverrun        = 2 * time.Second        // but not less than this
	defaultOnlyBudget = time.Second            // of the samples of a default plan that is checked only
	againShare        = 4                      // of what is left of a run, one in so many is for one second visit
	stopGrace         = 5 * time.Second        // for a fusion to stop when the time is over
)

// Run tunes the workload. The error is that of ctx, when it ends; what was measured
// is kept then. The end of the budget is no error.
func (s *Schedule) Run(ctx context.Context) error {
	s.reported = map[*Item]bool{}
	s.observer = &observer{to: s.Tuner.Options.Observe}
	defer s.reportRest()
	within := ctx
	if s.Budget > 0 {
		begin := s.Begin
		if begin.IsZero() {
			begin = s.Tuner.now()
		}
		s.end = begin.Add(s.Budget)
		limited, cancel := context.WithTimeout(ctx, s.left())
		defer cancel()
		within = limited
	}
	s.priceAll(within)
	if s.Budget > 0 {
		s.findKin()
		s.checkAll(within)
		s.raceByGain(within)
	} else {
		s.raceInOrder(within)
	}
	return ctx.Err()
}

// Hung is about a kernel that was abandoned; nil where none was. It ended the run.
func (s *Schedule) Hung() *HungError { return s.hung }

// left is what is left of the run.
func (s *Schedule) left() time.Duration { return s.end.Sub(s.Tuner.now()) }

// over reports whether nothing more can be started.
func (s *Schedule) over(ctx context.Context) bool {
	return ctx.Err() != nil || s.stuck || s.Budget > 0 && s.left() <= 0
}

// report passes an item on whose state is final.
func (s *Schedule) report(x *Item) {
	if !s.reported[x] && s.Done != nil {
		s.Done(x)
	}
	s.reported[x] = true
}

// reportRest passes on what the run leaves behind.
func (s *Schedule) reportRest() {
	for _, x := range s.Workload.Items {
		s.report(x)
	}
}

// priceAll prices the default plan of every item and orders them by what they take
// of the model's time, the most first.
func (s *Schedule) priceAll(ctx context.Context) {
	items := s.Workload.Items
	t := s.newVisitor(visit{})
	for k, x := range items {
		if s.over(ctx) {
			s.refuseUnknown(items[k:])
			return
		}
		s.turn(x, "pricing", k+1, len(items))
		began := s.Tuner.now()
		err := s.guarded(ctx, x, func() error { return t.price(ctx, x, s.Improve) })
		x.pricing = s.Tuner.now().Sub(began)
		if err != nil {
			s.settle(ctx, x, err, false)
		}
	}
	slices.SortStableFunc(items, func(a, b *Item) int {
		return cmp.Compare(s.importance(b), s.importance(a))
	})
	for _, x := range items {
		if x.State == StateRefused || x.State == StateFailed || x.State == StateKnown && !s.improvable(x) {
			s.report(x)
		}
	}
}

// refuseUnknown refuses the items of which not all is known, such as an open extent: that
// takes no time, and more time for the run would not help.
func (s *Schedule) refuseUnknown(items []*Item) {
	for _, x := range items {
		for _, i := range x.Fusion.Instrs {
			if why := i.Unknown(); why != "" {
				x.State, x.Err = StateRefused, fmt.Errorf("%s: %s", i.Name, why)
				break
			}
		}
	}
}

// importance is the time of an item in a run of the model: seconds, or the weight of
// a profile.
func (s *Schedule) importance(x *Item) float64 {
	if s.Weighted {
		return x.Weight
	}
	return x.Uses * x.DefaultSeconds()
}

// price finds out what is known of an item: its stored winner, or what its default
// plan is expected to take.
func (t *Tuner) price(ctx context.Context, x *Item, improve float64) error {
	stored, found, err := t.Lookup(x.Fusion)
	if err = t.unlessUnreadable(x.Fusion.Name, err); err != nil {
		return err
	}
	if found && !t.Options.Force {
		x.Result, x.State = stored, StateKnown
		if stored.Record.Provisional {
			x.State = StateChecked
		}
		t.emit(Found{t.header(x.Fusion.Name), stored.Record.Plan, stored.Record.Seconds})
		if x.State == StateKnown && improve == 0 {
			return nil
		}
	}
	program, err := symtile.Analyze(ctx, x.Fusion)
	if err != nil {
		t.emit(Refused{t.header(x.Fusion.Name), err.Error()})
		return err
	}
	ranked, err := t.defaultPlan(ctx, program)
	if err != nil {
		t.reportRefusal(x.Fusion.Name, err)
		return err
	}
	x.Predicted = ranked.Seconds
	x.roofline, err = cost.Roofline(program, t.Backend.Device())
	return err
}

// defaultPlan is the default plan of a program with its price.
func (t *Tuner) defaultPlan(ctx context.Context, p *symtile.Program) (cost.Ranked, error) {
	model, err := t.model()
	if err != nil {
		return cost.Ranked{}, err
	}
	pricer, err := kernels.PricerOf(t.Backend, p)
	if err != nil {
		return cost.Ranked{}, err
	}
	ranked, err := t.defaultOf(ctx, p, pricer, model)
	if err != nil {
		return cost.Ranked{}, err
	}
	return ranked[0], nil
}

// improvable reports whether a stored winner is raced on.
func (s *Schedule) improvable(x *Item) bool {
	r := &x.Result.Record
	return s.Improve > 0 && !r.Untimed && (r.Regret < 0 || r.Regret > s.Improve)
}

// pending are the items about which something can be done, in order.
func (s *Schedule) pending(open func(*Item) bool) (all []*Item) {
	for _, x := range s.Workload.Items {
		if !s.reported[x] && open(x) {
			all = append(all, x)
		}
	}
	return all
}

// raceInOrder races every item for the tuner's budget, and once more when others were
// raced for visitGap, so that one state of the machine is not taken for the truth. It waits
// for nothing: the last items of a run have one visit.
func (s *Schedule) raceInOrder(ctx context.Context) {
	least := s.MinShare * s.total()
	all := s.pending(func(x *Item) bool { return s.importance(x) >= least })
	t := s.newVisitor(visit{improve: s.Improve > 0, within: s.Improve})
	var raced []*Item // and wait for another visit
	for k, x := range all {
		if s.over(ctx) {
			break
		}
		s.turn(x, "racing", k+1, len(all))
		s.visit(ctx, ctx, x, t)
		s.release(x)
		x.visited = s.Tuner.now()
		raced = append(raced, x)
		raced = s.raceAgain(ctx, raced)
	}
	for _, x := range raced {
		s.report(x)
	}
}

// visitGap is the least time between two visits of an item.
const visitGap = 30 * time.Second

// raceAgain visits the items of which the first visit is long enough ago, and returns the
// others. Nothing more is done about an item without a race.
func (s *Schedule) raceAgain(ctx context.Context, raced []*Item) []*Item {
	for len(raced) > 0 && !s.over(ctx) {
		x := raced[0]
		c := x.Result.Record.Certificate
		again := x.State == StateTuned && c != nil && len(c.Comparisons) > 0
		if again && s.Tuner.now().Sub(x.visited) < visitGap {
			break
		}
		if again {
			s.turn(x, "racing again", 1, len(raced))
			first := x.Outcome
			v := visit{improve: true, earlier: c.Visits}
			if s.Budget > 0 {
				s.limitedVisit(ctx, x, v, min(x.setup+x.racing, s.left()/againShare))
			} else {
				s.visit(ctx, ctx, x, s.newVisitor(v))
			}
			if x.Err != nil && !s.stuck {
				x.Outcome = first // which is stored
			}
			s.release(x)
		}
		if s.goes(x) {
			s.open = append(s.open, x)
		} else {
			s.report(x)
		}
		raced = raced[1:]
	}
	return raced
}

// total is the time of all items in a run of the model.
func (s *Schedule) total() (sum float64) {
	for _, x := range s.Workload.Items {
		sum += s.importance(x)
	}
	return sum
}

// checkAll compiles, checks and times the default plan of every item of which
// nothing is stored. One that exceeds its share of the time waits until the others
// had theirs.
func (s *Schedule) checkAll(ctx context.Context) {
	all := s.pending(func(x *Item) bool { return x.State == StateWaiting })
	for k, x := range all {
		if s.over(ctx) {
			return
		}
		share := checkShares * s.left() / time.Duration(len(all)-k)
		s.turn(x, "checking", k+1, len(all))
		s.limitedVisit(ctx, x, visit{defaultOnly: true}, max(minCheckTime, share))
	}
}

// raceByGain races items while there is time, always the one that gains most in a
// second, for the time that it gets when all that is left is divided; and once more when
// others were raced for visitGap, for as long as before.
func (s *Schedule) raceByGain(ctx context.Context) {
	least := s.MinShare * s.total()
	number := 0
	var raced []*Item // and wait for another visit
	for !s.over(ctx) {
		all := s.pending(func(x *Item) bool {
			return x.visited.IsZero() &&
				(x.State == StateWaiting || s.importance(x) >= least)
		})
		x, t := s.next(slices.DeleteFunc(slices.Clone(all), s.waitsForKin))
		if x == nil {
			if x, t = s.next(all); x == nil {
				x, t = s.rest(all)
			}
			if x == nil {
				break
			}
		}
		number++
		s.turn(x, "racing", number, number+len(all)-1)
		if x.State == StateWaiting && !x.raceAtOnce {
			s.limitedVisit(ctx, x, visit{defaultOnly: true}, t)
			continue
		}
		if plan := x.kinPlan(); plan != nil {
			s.raceWithKin(ctx, x, plan, t)
			continue
		}
		s.limitedVisit(ctx, x, visit{improve: true, within: s.Improve, earlier: x.visitsWithKin()}, t)
		x.visited, x.Like = s.Tuner.now(), nil
		raced = s.raceAgain(ctx, append(raced, x))
	}
	s.open = append(s.open, raced...)
	for x := s.unmet(); x != nil && !s.over(ctx); x = s.unmet() {
		s.raceOn(ctx, x)
	}
	for _, x := range s.open {
		s.report(x)
	}
}

// goalVisits are the visits in a row after which a fusion is left alone whose regret they
// did not lower.
const goalVisits = 4

// goes reports whether an item that was raced is raced on while there is time: its regret
// is larger than what was asked for, or unknown, and -budget is not the longest race.
func (s *Schedule) goes(x *Item) bool {
	goal := s.Tuner.Options.Regret
	if goal == 0 || s.Budget == 0 || s.Limit > 0 {
		return false
	}
	r := &x.Result.Record
	raced := x.State == StateTuned && !r.Untimed
	if !raced || r.Certificate == nil {
		return false
	}
	return x.fruitless < goalVisits &&
		(r.Regret < 0 || r.Regret > goal)
}

// unmet is the item of which most may be gained by racing on; nil where there is none.
func (s *Schedule) unmet() (worst *Item) {
	most := 0.0
	for _, x := range s.open {
		regret := x.Result.Record.Regret
		if regret < 0 {
			regret = unknownRegret
		}
		gain := s.importance(x) * regret
		if s.goes(x) && gain > most {
			worst = x
			most = gain
		}
	}
	return worst
}

// raceOn visits an item whose regret is larger than what was asked for, with the samples
// that it has.
func (s *Schedule) raceOn(ctx context.Context, x *Item) {
	s.turn(x, "racing on", 1, 1)
	first := x.Outcome
	before := x.Result.Record
	v := visit{
		improve: true,
		within:  s.Tuner.Options.Regret,
		earlier: before.Certificate.Visits,
	}
	s.limitedVisit(ctx, x, v, s.left())
	if x.Err != nil && !s.stuck {
		x.Outcome = first // which is stored
	}
	after := x.Result.Record.Regret
	x.fruitless++
	unknown := before.Regret < 0
	if after >= 0 && (unknown || after < before.Regret) {
		x.fruitless = 0
	}
}

// next is the item that gains most in a second, with its share of the time that is
// left; nil where no item is worth it.
func (s *Schedule) next(all []*Item) (*Item, time.Duration) {
	claims := make([]claim, len(all))
	for k, x := range all {
		claims[k] = s.claim(x)
	}
	times := divide(s.left(), claims)
	best, most := -1, 0.0
	for k, c := range claims {
		if rate := c.rate(times[k]); rate > most {
			best, most = k, rate
		}
	}
	if best < 0 {
		return nil, 0
	}
	return all[best], times[best]
}

// Fusions that differ in their extents only are kin: the updates of an optimiser of all
// parameters, or the layers of a network that grow narrower. In a run with a Budget the
// one that takes most of the model's time is raced, and then each of the others with
// two plans: its default and the winner of the first, cut to its extents, both checked and
// timed there. A whole race of these comes later, where it is expected to gain most.

// kinRace is the longest race of two plans, and kinRest the part of the headroom that
// another race is expected to gain after it.
const (
	kinRace = time.Second
	kinRest = 0.5
)

// findKin gives every item the first one of its structure, which is raced before it.
func (s *Schedule) findKin() {
	first := map[cache.Fingerprint]*Item{}
	for _, x := range s.Workload.Items {
		if x.State == StateRefused ||
			x.State == StateFailed {
			continue
		}
		if x.kin = first[x.Structure]; x.kin == nil {
			first[x.Structure] = x
		}
	}
}

// waitsForKin reports whether the item that is raced before x is still to be raced.
func (s *Schedule) waitsForKin(x *Item) bool {
	return x.kin != nil &&
		x.Like == nil &&
		!s.reported[x.kin] &&
		x.kin.visited.IsZero()
}

// kinPlan is the winner of the item that was raced before x, for the first race of x;
// nil where there is none.
func (x *Item) kinPlan() *kernels.Plan {
	if x.kin == nil ||
		x.Like != nil ||
		x.State != StateChecked {
		return nil
	}
	if !x.kin.tuned() {
		return nil
	}
	plan, err := x.kin.Result.Plan()
	if err != nil {
		return nil
	}
	return &plan
}

// raceWithKin races the default of an item and the plan of its kin for a time. Where that
// plan is not legal here, all plans were ranked instead.
func (s *Schedule) raceWithKin(ctx context.Context, x *Item, plan *kernels.Plan, t time.Duration) {
	v := visit{
		improve: true,
		kin:     plan,
		kinName: x.kin.Fusion.Name,
	}
	s.limitedVisit(ctx, x, v, t)
	x.Like = x.kin
	ranked := x.Result.Record.Like == ""
	if x.State == StateTuned && ranked {
		x.Like = nil
		x.visited = s.Tuner.now()
	}
}

// visitsWithKin are the visits of a race with the plan of the kin, of which the next one is
// another.
func (x *Item) visitsWithKin() []cache.Visit {
	if c := x.Result.Record.Certificate; x.Like != nil && c != nil {
		return c.Visits
	}
	return nil
}

// rest is the item that may gain most from all of the time that is left, where by the
// claims no race is worth it: nothing else is done in it, and the samples are kept. Its
// last visit has to have begun its race in less, and it was not raced with the winner of
// its kin; nil where there is none.
func (s *Schedule) rest(all []*Item) (best *Item, left time.Duration) {
	left = s.left()
	most := 0.0
	for _, x := range all {
		begins := x.State != StateWaiting && x.Like == nil && x.setup > 0 && x.setup < left
		if c := s.claim(x); begins && c.most > most {
			best, most = x, c.most
		}
	}
	return best, left
}

// Left is what is left of the Budget, at least 0.
func (s *Schedule) Left() time.Duration {
	if s.Budget == 0 {
		return 0
	}
	return max(0, s.left())
}

// claim is what an item may gain from a race. One that is not even checked, since
// its share of the time was too short, claims more of it than before.
func (s *Schedule) claim(x *Item) claim {
	c := claim{
		most:  s.importance(x),
		setup: x.setup + rankingShare*x.pricing + raceRuns*time.Duration(x.DefaultSeconds()*float64(time.Second)),
		scale: max(minRaceScale, raceChecks*x.racing),
		limit: s.Limit,
	}
	switch {
	case x.State == StateWaiting:
		c.setup = (c.setup + x.racing) * time.Duration(1+x.tries)
		return c
	case x.State == StateKnown && x.Result.Record.Regret < 0:
		c.most *= unknownRegret
	case x.State == StateKnown:
		c.most *= min(1, x.Result.Record.Regret)
	default:
		c.most *= max(leastHeadroom, 1-x.roofline/x.Seconds())
	}
	switch {
	case x.kinPlan() != nil:
		c.setup -= rankingShare * x.pricing
		c.scale, c.limit = minRaceScale, kinRace
	case x.Like != nil:
		c.most *= kinRest
	}
	return c
}

// untimed reports whether the device cannot time.
func (s *Schedule) untimed() bool { return s.Tuner.Backend.Identity().Untimed }

// limitedVisit visits an item for a time, or for what is left if that is less.
func (s *Schedule) limitedVisit(ctx context.Context, x *Item, v visit, t time.Duration) {
	t = min(t, s.left())
	v.deadline = s.Tuner.now().Add(t)
	overrun := max(minOverrun, time.Duration(raceOverrun*float64(t)))
	limited, cancel := context.WithTimeout(ctx, t+overrun)
	defer cancel()
	defer s.release(x)
	visitor := s.newVisitor(v)
	visitor.Options.Budget = t
	timed := !s.untimed() // else it is the time of the check
	if v.defaultOnly && timed {
		visitor.Options.Budget = min(t, defaultOnlyBudget)
	}
	tries := x.tries
	s.visit(ctx, limited, x, visitor)
	if limited.Err() != nil && ctx.Err() == nil {
		x.tries = tries + 1
	}
}

// visit tunes an item until ctx ends, which may be before the run does, and notes the
// outcome.
func (s *Schedule) visit(run, ctx context.Context, x *Item, t *Tuner) {
	began := s.Tuner.now()
	started := began
	observe := t.Options.Observe
	t.Options.Observe = func(e Event) {
		if _, ok := e.(Started); ok {
			started = e.About().Time
		}
		if observe != nil {
			observe(e)
		}
	}
	defer func() { t.Options.Observe = observe }()
	t.visit.sources = x.Sources
	var r Result
	err := s.guarded(run, x, func() (err error) {
		r, err = t.Tune(ctx, x.Fusion)
		return err
	})
	if s.stuck {
		return // r may still be written to
	}
	if ended := s.Tuner.now(); started.After(began) {
		x.setup, x.racing = started.Sub(began), ended.Sub(started)
	} else {
		x.setup = ended.Sub(began)
	}
	if r.Record.Plan != "" {
		x.Result = r
	}
	if errors.As(err, &s.hung) {
		s.stuck = true
	}
	s.settle(ctx, x, err, t.visit.defaultOnly)
}

// settle notes the state that an item has after an error, or nil, of a step.
func (s *Schedule) settle(
	ctx context.Context, x *Item, err error, defaultOnly bool,
) {
	var no *symtile.Untileable
	var unkept *UnkeptError
	var none *NoWinnerError
	var hung *HungError
	var uncomputed *kernels.Uncomputed
	var slow *TooSlowError
	kept := x.Result.Record.Plan != ""
	x.Err = err
	switch {
	case errors.As(err, &no), errors.As(err, &uncomputed), errors.As(err, &slow):
		x.State = StateRefused
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		if kept && x.State == StateWaiting {
			x.State = StateChecked
		}
	case errors.As(err, &hung): // another process goes on
	case errors.Is(err, ErrStuck):
	case defaultOnly && errors.As(err, &none):
		x.tries++
		failed := none.OutOfTime() == ""
		x.raceAtOnce = failed || !s.untimed() // another plan may do
	case ranOutOfTime(err):
	case err != nil && !(kept && errors.As(err, &unkept)):
		x.State = StateFailed
	case x.Result.Hit:
		x.State = StateKnown
	case x.Result.Record.Provisional:
		x.State = StateChecked
	default:
		x.State = StateTuned
	}
	if x.State == StateRefused || x.State == StateFailed {
		s.report(x)
	}
}
