package tuner

import (
	"context"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
)

// Fusions that differ in their extents only are kin: the updates of an optimiser of all
// parameters, or the layers of a network that grow narrower. In a run with a Budget the
// one that takes most of the model's time is raced, and then each of the others with
// two plans: its default and the winner of the first, cut to its extents, both checked and
// timed there. Time that is left when all fusions were raced goes to whole races of these.

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
		if x.State == StateRefused || x.State == StateFailed {
			continue
		}
		print := cache.StructureOf(x.Fusion.Canonical()).Print
		if x.kin = first[print]; x.kin == nil {
			first[print] = x
		}
	}
}

// waitsForKin reports whether the item that is raced before x is still to be raced.
func (s *Schedule) waitsForKin(x *Item) bool {
	return x.kin != nil && x.Like == nil && !s.reported[x.kin] && x.kin.visited.IsZero()
}

// kinPlan is the winner of the item that was raced before x, for the first race of x;
// nil where there is none.
func (x *Item) kinPlan() *kernels.Plan {
	if x.kin == nil || x.Like != nil || x.State != StateChecked ||
		x.kin.State != StateTuned && x.kin.State != StateKnown {
		return nil
	}
	plan, err := x.kin.Result.Plan()
	if err != nil {
		return nil
	}
	return &plan
}

// raceWithKin races the default of an item and the plan of its kin for a time.
func (s *Schedule) raceWithKin(ctx context.Context, x *Item, plan *kernels.Plan, t time.Duration) {
	s.limitedVisit(ctx, x, visit{improve: true, kin: plan}, t)
	x.Like = x.kin
}

// visitsWithKin are the visits of a race with the plan of the kin, of which the next one is
// another.
func (x *Item) visitsWithKin() []cache.Visit {
	if c := x.Result.Record.Certificate; x.Like != nil && c != nil {
		return c.Visits
	}
	return nil
}

// addKin adds the plan of a fusion of other extents to the default, which is added already;
// false where it is not legal for the program.
func (s *selection) addKin(
	ctx context.Context, plan kernels.Plan, pricer kernels.Pricer, model *cost.Model,
) (bool, error) {
	cut, ok := cutToExtents(plan, s.program)
	if !ok {
		return false, nil
	}
	if _, err := priceOf(s.tuner.Backend, s.program, cut); err != nil {
		return false, nil
	}
	if cut.String() == s.candidates[0].trial.Plan {
		return true, nil
	}
	ranked, err := model.Rank(ctx, pricer, []kernels.Plan{cut})
	if err != nil {
		return false, err
	}
	return true, s.add(ranked)
}

// kinSelection has the default plan and that of the kin as its candidates; nil where the
// latter is not legal.
func (t *Tuner) kinSelection(
	ctx context.Context, p *symtile.Program, standard []cost.Ranked, pricer kernels.Pricer, model *cost.Model,
) (*selection, error) {
	s := &selection{tuner: t, program: p, fusion: p.Fusion, key: Key(p.Fusion, t.identity())}
	if err := s.add(standard); err != nil {
		return nil, err
	}
	if legal, err := s.addKin(ctx, *t.visit.kin, pricer, model); err != nil || !legal {
		return nil, err
	}
	return s, nil
}
