package tuner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// chooseByModel is what takes the place of a race on a device that cannot time: the
// entrants are checked against Reference, cheapest by the cost model first, and
// of those that are right the cheapest wins, if the model has it beat the
// default by the margin. The record says that nothing was timed.
func (t *Tuner) chooseByModel(
	ctx context.Context, c *hlo.Computation,
	p *symtile.Program, ranked []cost.Ranked,
) (cache.Record, error) {
	entrants, err := t.candidates(p, ranked)
	if err != nil {
		return cache.Record{}, err
	}
	v, err := check.NewVerifier(c, t.Options.Seed)
	if err != nil {
		return cache.Record{}, err
	}
	end := t.Options.now().Add(t.Options.budget())
	def := entrants[0].Plan.String()
	slices.SortStableFunc(entrants, func(a, b cost.Ranked) int {
		return cmp.Compare(a.Seconds, b.Seconds)
	})
	t.emit(Event{
		Kind:   "start",
		Fusion: c.Name,
		Of:     len(entrants),
		Left:   t.Options.budget().Seconds(),
	})
	var checked []*candidate
	for k, e := range entrants {
		x, err := newCandidate(e)
		if err != nil {
			return cache.Record{}, err
		}
		checked = append(checked, x)
		late := t.Options.now().After(end)
		if late && x.trial.Plan != def &&
			slices.ContainsFunc(checked[:k], (*candidate).passed) {
			x.eliminated = true
			x.trial.Failure = "timeout"
			x.trial.Detail = "the budget was spent before it was checked"
			continue
		}
		if err := t.verifyUntimed(
			ctx, c, p, v, x,
			max(minRunTimeout, end.Sub(t.Options.now())),
		); err != nil {
			return cache.Record{}, err
		}
		t.emit(Event{
			Kind:    "checked",
			Fusion:  c.Name,
			Plan:    x.trial.Plan,
			Seconds: x.Seconds,
			Tried:   k + 1,
			Of:      len(entrants),
			Left:    end.Sub(t.Options.now()).Seconds(),
		})
	}
	return t.predicted(c, checked, def)
}

func newCandidate(e cost.Ranked) (*candidate, error) {
	features, err := json.Marshal(e.Features)
	if err != nil {
		return nil, err
	}
	return &candidate{
		Ranked: e,
		trial: cache.Trial{
			Plan:      e.Plan.String(),
			Predicted: e.Seconds,
			Features:  features,
		},
	}, nil
}

// passed says whether x passed the gate.
func (x *candidate) passed() bool { return !x.eliminated }

// verifyUntimed compiles and verifies one plan, for so long at most; its failures are its
// own, the error is ctx's.
func (t *Tuner) verifyUntimed(
	ctx context.Context, c *hlo.Computation,
	p *symtile.Program, v *check.Verifier, x *candidate,
	most time.Duration,
) error {
	limited, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	k, err := t.Backend.Compile(limited, p, x.Plan)
	if err == nil {
		err = errors.Join(
			v.For(x.Plan, t.Backend.Identity().TF32Allowed()).Verify(limited, k),
			k.Close(),
		)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		if x.fail(err); x.trial.Failure == "timeout" {
			x.trial.Detail = fmt.Sprintf(
				"its check had not ended after %v: a larger budget (-budget), or smaller shapes, let it",
				most.Round(time.Second),
			)
		}
		t.emit(Event{
			Kind:   "failed",
			Fusion: c.Name,
			Plan:   x.trial.Plan,
			Reason: x.trial.Failure + ": " + x.trial.Detail,
		})
	}
	return nil
}

// predicted is the record of a choice; all are in the order of predictions.
func (t *Tuner) predicted(
	c *hlo.Computation, all []*candidate, def string,
) (cache.Record, error) {
	first := slices.IndexFunc(all, (*candidate).passed)
	if first < 0 {
		return cache.Record{}, errors.Join(
			ErrNothingVerified, errors.New(all[0].trial.Detail),
		)
	}
	winner, standard := all[first],
		all[slices.IndexFunc(all, func(x *candidate) bool { return x.trial.Plan == def })]
	if standard.passed() &&
		standard.Seconds < winner.Seconds*(1+t.Options.margin()) {
		winner = standard
	}
	out := cache.Record{
		Key: t.key(c), Name: c.Name,
		Canonical: c.Canonical(),
		Safe:      t.Backend.Device().Safe, Untimed: true,
		Plan: winner.trial.Plan, Default: def,
		Seconds: winner.Seconds, DefaultSeconds: standard.Seconds,
		Speedup: [3]float64{standard.Seconds / winner.Seconds},
		Regret:  -1, Checked: true,
		When: t.Options.now().UTC().Truncate(time.Second),
		By:   Version,
	}
	for _, x := range all {
		out.Trials = append(out.Trials, x.trial)
		if x != winner && x.passed() &&
			x.Seconds == winner.Seconds {
			out.Ties = append(out.Ties, x.trial.Plan)
		}
	}
	t.emit(Event{
		Kind:    "winner",
		Fusion:  c.Name,
		Plan:    out.Plan,
		Seconds: out.Seconds,
		Ratio:   out.Speedup[0],
		Reason:  "by the cost model: nothing was timed",
	})
	return out, nil
}
