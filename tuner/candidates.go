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

// olderWinners are the plans that other revisions of the code generator have kept for a
// fusion on this device, the newest first: candidates that are tried before those that
// the price chooses. One that has no price now is left out.
func (t *Tuner) olderWinners(
	ctx context.Context, s *selection, pricer kernels.Pricer, model *cost.Model,
) (ranked []cost.Ranked, err error) {
	stored, err := t.Cache.OfFusion(s.key.Fusion)
	if errors.Is(err, cache.ErrBusy) {
		return nil, nil // it was reported when the fusion was looked up
	}
	slices.SortStableFunc(stored, func(a, b cache.Record) int {
		return b.When.Compare(a.When)
	})
	for _, r := range stored {
		if r.Device != s.key.Device || r.Backend != s.key.Backend || r.Codegen == s.key.Codegen {
			continue
		}
		plan, err := kernels.ParsePlan(r.Plan)
		if err == nil {
			_, err = priceOf(t.Backend, s.program, plan)
		}
		if err != nil {
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
