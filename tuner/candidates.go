package tuner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
)

// explorerShare is the share of the candidates that are drawn at random.
const explorerShare = 1.0 / 8

// choose picks the plans that are verified where nothing can be timed: the default plan,
// which is chosen already, the cheapest plans of the ranking, and a few that are drawn
// at random from the better half of it.
func (t *Tuner) choose(chosen, ranked []cost.Ranked) []cost.Ranked {
	size := t.Options.candidates()
	taken := map[string]bool{chosen[0].Plan.String(): true}
	take := func(r cost.Ranked) {
		text := r.Plan.String()
		if !taken[text] && len(chosen) < size {
			taken[text] = true
			chosen = append(chosen, r)
		}
	}
	explorers := int(float64(size) * explorerShare)
	for _, r := range ranked[:min(len(ranked), size-1-explorers)] {
		take(r)
	}
	rng := rand.New(rand.NewPCG(
		uint64(t.Options.Seed), uint64(len(ranked)),
	))
	for n := 0; n < 4*explorers && len(ranked) > 0; n++ {
		take(ranked[rng.IntN((len(ranked)+1)/2)])
	}
	for _, r := range ranked { // where the draws met plans that were taken
		take(r)
	}
	return chosen
}

// storedWinners are plans that were kept before, the newest first: candidates that are tried
// before those that the price chooses. They are those that other revisions of the code
// generator have kept for a fusion on this device and, with Options.Learn, what other devices
// have kept for it, and the winner of the nearest fusion of other extents. One that has no
// price now is left out.
func (t *Tuner) storedWinners(
	ctx context.Context, s *selection, pricer kernels.Pricer, model *cost.Model,
) (ranked []cost.Ranked, err error) {
	stored, err := t.winnersFor(s)
	if errors.Is(err, cache.ErrBusy) {
		return nil, nil // it was reported when the fusion was looked up
	}
	for _, r := range stored {
		plan, err := kernels.ParsePlan(r.Plan)
		if err != nil {
			continue
		}
		plan, legal := cutToExtents(plan, s.program)
		_, err = priceOf(t.Backend, s.program, plan)
		if err != nil || !legal {
			continue
		}
		one, err := model.Rank(ctx, pricer, []kernels.Plan{plan})
		if err != nil {
			return nil, err
		}
		ranked = append(ranked, one...)
	}
	return ranked, t.unlessUnreadable(s.fusion.Name, err)
}

// winnersFor are the records whose plans are tried for a fusion.
func (t *Tuner) winnersFor(s *selection) ([]cache.Record, error) {
	stored, err := t.Cache.OfFusion(s.key.Fusion)
	stored = slices.DeleteFunc(stored, func(r cache.Record) bool {
		other := r.Device != s.key.Device
		return r.Backend != s.key.Backend ||
			other && !t.Options.Learn ||
			!other && r.Codegen == s.key.Codegen
	})
	slices.SortStableFunc(stored, func(a, b cache.Record) int {
		return b.When.Compare(a.When)
	})
	if err != nil || !t.Options.Learn {
		return stored, err
	}
	q := question(s.fusion, t.identity())
	kin, found, _, err := t.Cache.Nearest(&q)
	if found && kin.Key != s.key {
		stored = append(stored, kin)
	}
	return stored, err
}

// probed are the directions that the races of other fusions of a class have taken on this
// device: of each dimension, by its name, and of each knob whether values below and above
// the default plan's were tried. A class is the fusions whose dimensions have the same names,
// which are their roles in the operations. What cannot be read has taken none.
func (t *Tuner) probed(s *selection) map[string][2]bool {
	names := kernels.PlanNamesOf(s.program)
	taken := map[string][2]bool{}
	for r, err := range t.Cache.All() {
		context := s.key
		context.Fusion = r.Fusion
		if err != nil || r.Key != context ||
			r.Fusion == s.key.Fusion {
			continue
		}
		if slices.Equal(r.Dims, names) {
			probedBy(&r, taken)
		}
	}
	return taken
}

// probedBy adds the directions that the trials of a record have taken.
func probedBy(r *cache.Record, taken map[string][2]bool) {
	standard, err := kernels.ParsePlan(r.Default)
	if err != nil || len(standard.Tiles) != len(r.Dims) {
		return // it was stored by another version
	}
	note := func(name string, value, of int64) {
		both := taken[name]
		if value < of {
			both[0] = true
		}
		if value > of {
			both[1] = true
		}
		taken[name] = both
	}
	for _, x := range r.Trials {
		plan, err := kernels.ParsePlan(x.Plan)
		if err != nil || len(plan.Tiles) != len(r.Dims) {
			continue
		}
		for k, name := range r.Dims {
			note(name, plan.Tiles[k], standard.Tiles[k])
		}
		knobs := slices.Concat(plan.Knobs, standard.Knobs)
		for _, k := range knobs {
			note(
				k.Name,
				plan.Knob(k.Name, absent),
				standard.Knob(k.Name, absent),
			)
		}
	}
}

// addKin adds the plan of a fusion of other extents to the default, which is added already;
// false where it is not legal for the program.
func (s *selection) addKin(
	ctx context.Context,
	plan kernels.Plan,
	pricer kernels.Pricer,
	model *cost.Model,
) (bool, error) {
	cut, ok := cutToExtents(plan, s.program)
	if !ok {
		return false, nil
	}
	if _, err := priceOf(s.tuner.Backend, s.program, cut); err != nil {
		return false, nil
	}
	standard := s.candidates[0].trial.Plan
	if cut.String() == standard {
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
	ctx context.Context,
	p *symtile.Program,
	standard []cost.Ranked,
	pricer kernels.Pricer,
	model *cost.Model,
) (*selection, error) {
	s := &selection{
		tuner:   t,
		program: p,
		fusion:  p.Fusion,
		key:     Key(p.Fusion, t.identity()),
		like:    t.visit.kinName,
	}
	if err := s.add(standard); err != nil {
		return nil, err
	}
	if legal, err := s.addKin(ctx, *t.visit.kin, pricer, model); err != nil || !legal {
		return nil, err
	}
	return s, nil
}

// defaultOf is the default plan of a program, ranked alone.
func (t *Tuner) defaultOf(
	ctx context.Context, p *symtile.Program, pricer kernels.Pricer, model *cost.Model,
) ([]cost.Ranked, error) {
	plan, err := t.Backend.Default(ctx, p)
	if err != nil {
		return nil, err
	}
	return model.Rank(ctx, pricer, []kernels.Plan{plan})
}

// model is the model of the ranking: the backend's prices, which with Options.Learn are
// corrected by what is stored. Another process may hold that; then they are not.
func (t *Tuner) model() (*cost.Model, error) {
	if t.Model != nil {
		return t.Model, nil
	}
	if !t.Options.Learn {
		return new(cost.Model), nil
	}
	model, err := FitStored(t.Cache, t.identity())
	if errors.Is(err, cache.ErrBusy) {
		return cost.Fit(nil)
	}
	return model, err
}

// FitStored fits the prices of a device's plans to the samples of the records that
// were measured on it by the same code generator. Damaged records are left out.
func FitStored(db *cache.DB, id kernels.Identity) (*cost.Model, error) {
	var samples []cost.Sample
	for r, err := range db.All() {
		var damaged *cache.DamagedError
		if errors.As(err, &damaged) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if r.Key == exactContext(r.Fusion, id) {
			samples = append(samples, storedSamples(r)...)
		}
	}
	return cost.Fit(samples)
}

// storedSamples are the medians of the plans of a record that were timed. Plans
// of one fusion form a group, within which the fit compares them.
func storedSamples(r cache.Record) []cost.Sample {
	var samples []cost.Sample
	group := fmt.Sprintf("%x", r.Fusion[:8])
	for _, t := range r.Trials {
		var f cost.Features
		if t.Failure != "" || len(t.Samples) == 0 ||
			json.Unmarshal(t.Features, &f) != nil {
			continue
		}
		samples = append(samples, cost.Sample{
			Group:    group,
			Features: f,
			Seconds:  t.Median(),
		})
	}
	return samples
}
