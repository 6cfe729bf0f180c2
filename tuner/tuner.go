package tuner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Options of a tuning run. The zero value of every field is a sensible choice.
type Options struct {
	// Candidates is the number of plans that are verified and timed for a
	// fusion; 0 means 16 and then, as long as the budget has room to race all of them,
	// the cheapest 24, every plan next to the fastest one, and around others: at most 64.
	Candidates int
	// Budget is the time that verification and timing of a fusion may take,
	// apart from the computation of its reference results and from the last check of
	// the winner and the default, an eighth of it each; 0 means 10 s.
	Budget time.Duration
	// Seed determines the inputs, the choice of exploring candidates and the
	// order of timing.
	Seed int64
	// Regret ends a race when the best plan is known to be at most this much slower
	// than any other that was tried, relative to its time; 0 races on until the
	// order is settled.
	Regret float64
	// Margin is the relative speed by which a plan must beat the default plan;
	// 0 means 0.02.
	Margin float64
	// Force measures although a winner is stored.
	Force bool
	// Learn corrects the prices by the samples of all fusions of the device in the cache
	// (FitStored), begins with the winners of other devices and of the nearest fusion of other
	// extents, and takes no direction for its own sake that a fusion of the class has taken.
	// Which plans are tried then depends on what was measured before.
	Learn bool
	// Observe is called with every event, in order and from one goroutine; nil
	// means nobody.
	Observe func(Event)
}

func (o Options) candidates() int { return orDefault(o.Candidates, 16) }
func (o Options) budget() time.Duration {
	return orDefault(o.Budget, 10*time.Second)
}
func (o Options) margin() float64 { return orDefault(o.Margin, 0.02) }

func orDefault[T comparable](v, zeroMeans T) T {
	var zero T
	if v == zero {
		return zeroMeans
	}
	return v
}

// A Tuner tunes fusions on one backend. Its fields are not changed while one of
// its methods runs; one Tuner tunes one fusion at a time, and any number of
// Tuners, of any processes, may share a cache file.
type Tuner struct {
	Backend kernels.Backend
	Cache   *cache.DB
	Model   *cost.Model // nil means the prices of the backend; with Options.Learn fitted to the samples in Cache
	Options Options

	clock func() time.Time // nil means time.Now; tests set it
	visit visit            // what a Schedule wants of Tune
}

func (t *Tuner) now() time.Time {
	if t.clock != nil {
		return t.clock()
	}
	return time.Now()
}

// Lookup finds the stored winner of a fusion on the tuner's own device.
func (t *Tuner) Lookup(c *hlo.Computation) (Result, bool, error) {
	return Lookup(t.Cache, c, t.identity())
}

func (t *Tuner) identity() kernels.Identity {
	return kernels.IdentityOf(t.Backend)
}

// Tune returns the stored winner of a fusion or, where there is none, measures
// one and stores it. A fusion that cannot be tiled is a *symtile.Untileable; one
// that the device has no code for a *kernels.Uncomputed; one
// of which no plan runs is a *NoWinnerError. When ctx ends, what was measured is
// kept and a later call goes on from there; otherwise the error is an *UnkeptError,
// too. The best plan by then, if one was timed, is stored as a provisional winner,
// and returned beside the error of ctx. A winner that could not be stored is
// returned with an *UnkeptError.
func (t *Tuner) Tune(
	ctx context.Context, c *hlo.Computation,
) (Result, error) {
	stored, found, err := t.Lookup(c)
	if err = t.unlessUnreadable(c.Name, err); err != nil {
		return Result{}, err
	}
	if found && !t.Options.Force && !t.unsettled(&stored.Record) {
		t.emit(Found{
			t.header(c.Name),
			stored.Record.Plan,
			stored.Record.Seconds,
		})
		return stored, nil
	}
	t.phase(c.Name, Analysing)
	program, err := symtile.Analyze(ctx, c)
	if err != nil {
		t.emit(Refused{t.header(c.Name), err.Error()})
		return Result{}, err
	}
	record, err := t.measure(ctx, program)
	t.reportRefusal(c.Name, err)
	if err != nil && record.Plan == "" {
		return Result{}, err
	}
	interrupted := err
	result, err := t.keep(record)
	if interrupted != nil {
		return result, errors.Join(interrupted, err)
	}
	t.emit(Chosen{
		t.header(c.Name), result.Record.Plan, result.Record.Seconds,
		result.Record.Speedup[0], result.Record.Untimed,
	})
	return result, err
}

// unsettled reports whether a race goes on although a winner is stored.
func (t *Tuner) unsettled(r *cache.Record) bool {
	return t.visit.improve || r.Provisional && !t.visit.defaultOnly
}

// phase reports what is done next with a fusion.
func (t *Tuner) phase(fusion string, p Phase) {
	t.emit(Began{t.header(fusion), p})
}

// reportRefusal reports an error that says that the device computes no such thing.
func (t *Tuner) reportRefusal(fusion string, err error) {
	var no *kernels.Uncomputed
	if errors.As(err, &no) {
		t.emit(Refused{t.header(fusion), no.Error()})
	}
}

// keep stores a record and returns what the database then holds. With Force, and of a
// second visit, the record replaces what is stored, unless it is provisional. Where it cannot be stored, it is the result
// beside an *UnkeptError.
func (t *Tuner) keep(r cache.Record) (Result, error) {
	kept := true
	var err error
	if (t.Options.Force || t.visit.earlier != nil) && !r.Provisional {
		err = t.Cache.Replace(r)
	} else {
		kept, err = t.Cache.Put(r)
	}
	if err != nil {
		return Result{Record: r}, t.unkept(&r, err)
	}
	if !kept { // another tuner was better
		if better, found, err := t.Cache.Get(r.Key); found && err == nil {
			r = better
		}
	}
	return Result{Record: r}, nil
}

// unkept keeps at least the samples of a record that could not be stored.
func (t *Tuner) unkept(r *cache.Record, err error) *UnkeptError {
	e := &UnkeptError{Fusion: r.Name, Winner: r.Plan, Err: err}
	if len(r.Trials) > 0 && !r.Untimed {
		lost := t.Cache.KeepTrials(r.Key, r.Trials)
		e.Kept, e.Lost = lost == nil, lost != nil
		e.Err = errors.Join(err, lost)
	}
	return e
}

// unlessUnreadable is an error of reading what is stored of a fusion, unless that
// is damaged or another process holds the file: then it is reported, and what is
// stored is taken as missing.
func (t *Tuner) unlessUnreadable(fusion string, err error) error {
	var damaged *cache.DamagedError
	switch {
	case errors.As(err, &damaged):
		t.emit(Damaged{t.header(fusion), damaged.Error()})
	case errors.Is(err, cache.ErrBusy):
		t.emit(Busy{t.header(fusion), err.Error()})
	default:
		return err
	}
	return nil
}

// measure ranks the plans of a program and makes the record of its winner.
func (t *Tuner) measure(
	ctx context.Context, p *symtile.Program,
) (cache.Record, error) {
	s, err := t.newSelection(ctx, p)
	if err != nil {
		return cache.Record{}, fmt.Errorf("%s: %w", p.Fusion.Name, err)
	}
	choose := s.race
	if t.Backend.Identity().Untimed {
		choose = s.chooseByModel
	}
	record, err := choose(ctx)
	record.Legal = s.legal
	record.Tilings = p.Space.Count()
	record.Plans, record.MorePlans, record.Proven = s.plans, s.morePlans, s.proven
	record.Provisional = record.Provisional || t.visit.defaultOnly
	if err != nil {
		err = fmt.Errorf("%s: %w", p.Fusion.Name, err)
	}
	return record, err
}

// newSelection ranks the plans of a program. Where nothing can be timed it picks the
// candidates, too; otherwise the first one is the default, and the others are proposed
// while the first are timed.
func (t *Tuner) newSelection(
	ctx context.Context, p *symtile.Program,
) (*selection, error) {
	t.phase(p.Fusion.Name, Ranking)
	s := &selection{
		tuner:   t,
		program: p,
		fusion:  p.Fusion,
		key:     Key(p.Fusion, t.identity()),
	}
	if t.visit.defaultOnly {
		only, err := t.defaultPlan(ctx, p)
		if err != nil {
			return nil, err
		}
		return s, s.add([]cost.Ranked{only})
	}
	model, err := t.model()
	if err != nil {
		return nil, err
	}
	pricer, err := kernels.PricerOf(t.Backend, p)
	if err != nil {
		return nil, err
	}
	standard, err := t.defaultOf(ctx, p, pricer, model) // says why nothing is computed, before all plans are ranked
	if err != nil {
		return nil, err
	}
	if t.visit.kin != nil {
		if two, err := t.kinSelection(ctx, p, standard, pricer, model); two != nil || err != nil {
			return two, err
		}
	}
	offer := kernels.OfferOf(ctx, t.Backend, p)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	ranked, err := model.Rank(ctx, pricer, offer.Plans)
	if err != nil {
		return nil, err
	}
	t.emit(Ranked{
		t.header(p.Fusion.Name),
		int64(len(offer.Plans)),
	})
	s.legal, s.proven = int64(len(offer.Plans)), int64(offer.Proven)
	s.plans, s.morePlans = offer.Legal, offer.MoreLegal
	stored, err := t.storedWinners(ctx, s, pricer, model)
	if err != nil {
		return nil, err
	}
	ranked = append(stored, ranked...)
	if t.Backend.Identity().Untimed {
		return s, s.add(t.choose(standard, ranked))
	}
	s.proposals, err = newProposals(
		t.Options.candidates(), t.Options.Seed, standard[0], ranked,
	)
	if err != nil {
		return nil, err
	}
	if t.Options.Learn {
		s.proposals.skip(t.probed(s), kernels.PlanNamesOf(p))
	}
	if t.Options.Candidates == 0 {
		s.proposals.beyond = newNeighbourhood(s.proposals.plans, rankOne(ctx, pricer, model))
	}
	return s, s.add(standard)
}

// rankOne ranks single plans; false of those that are not legal.
func rankOne(
	ctx context.Context, pricer kernels.Pricer, model *cost.Model,
) func(kernels.Plan) (cost.Ranked, bool) {
	price := kernels.Price{Seconds: make([]float64, len(pricer.Terms().Names))}
	return func(plan kernels.Plan) (cost.Ranked, bool) {
		if pricer.Price(plan, &price) != nil {
			return cost.Ranked{}, false
		}
		one, err := model.Rank(ctx, pricer, []kernels.Plan{plan})
		if err != nil || len(one) == 0 || !(one[0].Seconds > 0) {
			return cost.Ranked{}, false
		}
		return one[0], true
	}
}
