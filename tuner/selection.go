package tuner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/hlo/origin"
)

// A selection is one fusion on its way from its candidates to the record of a
// winner. A race and a choice by the cost model share its verification and its
// record.
type selection struct {
	tuner      *Tuner
	program    *symtile.Program
	fusion     *hlo.Computation
	key        cache.Key
	legal      int64        // plans that the backend offers
	plans      int64        // legal plans; 0: not counted
	morePlans  bool         // there are at least so many
	like       string       // the fusion of other extents whose winner is raced beside the default, and nothing else
	proven     int64        // of those offered, the cheapest of all legal ones
	candidates []*candidate // the default plan first
	proposals  *proposals   // of further candidates; nil where there are none
	verifier   *check.Verifier
	hung       bool      // a kernel goes on to use the arrays of the verifier
	end        time.Time // of the budget
}

// A candidate is a plan that is verified and, where the device can, timed.
type candidate struct {
	cost.Ranked
	kernel     kernels.Kernel // nil before it is compiled
	batch      int            // runs that make a sample
	trial      cache.Trial
	eliminated bool           // it failed or was dropped
	witness    *check.Witness // of what it computed when it was verified
}

// add makes candidates of ranked plans.
func (s *selection) add(plans []cost.Ranked) error {
	for _, r := range plans {
		features, err := json.Marshal(r.Features())
		if err != nil {
			return err
		}
		trial := cache.Trial{
			Plan:      r.Plan.String(),
			Predicted: r.Seconds,
			Features:  features,
		}
		s.candidates = append(s.candidates, &candidate{Ranked: r, trial: trial})
	}
	return nil
}

// begin computes the reference results and starts the budget, which does not
// count them.
func (s *selection) begin(ctx context.Context) (err error) {
	s.tuner.phase(s.fusion.Name, Evaluating)
	s.verifier, err = check.NewVerifier(ctx, s.program.Physical, s.tuner.Options.Seed)
	return err
}

// start starts the budget.
func (s *selection) start() {
	s.end = s.tuner.now().Add(
		s.tuner.Options.budget(),
	)
	if d := s.tuner.visit.deadline; !d.IsZero() && d.Before(s.end) {
		s.end = d
	}
	s.emit(Started{
		s.header(), s.planned(), s.remaining(),
	})
}

// planned are the candidates that there will be, unless the budget ends before.
func (s *selection) planned() int {
	if s.proposals == nil {
		return len(s.candidates)
	}
	return max(s.proposals.size, len(s.candidates))
}

// remaining is what is left of the budget; it is negative once that is spent.
func (s *selection) remaining() time.Duration {
	return s.end.Sub(s.tuner.now())
}

func (s *selection) emit(e Event) { s.tuner.emit(e) }

func (s *selection) header() EventHeader {
	return s.tuner.header(s.fusion.Name)
}

// verify compiles a candidate and compares its results with the reference's.
// Compiling and every run have a timeout of their own. The kernel is kept in the
// candidate even if it is wrong, and must be closed.
func (s *selection) verify(
	ctx context.Context, x *candidate, compileTimeout, runTimeout time.Duration,
) error {
	limited, cancel := context.WithTimeout(ctx, compileTimeout)
	defer cancel()
	s.tuner.phase(s.fusion.Name, Compiling)
	kernel, err := s.tuner.Backend.Compile(limited, s.program, x.Plan)
	if err != nil {
		return err
	}
	x.kernel = kernel
	s.tuner.phase(s.fusion.Name, Verifying)
	verifier := s.verifier.For(
		x.Plan, s.tuner.Backend.Identity().TF32Allowed(),
	)
	x.witness, err = verifier.Examine(ctx, check.Bounded(kernel, runTimeout))
	return err
}

// failed takes a candidate out and says why.
func (s *selection) failed(x *candidate, err error) Failed {
	x.eliminated = true
	x.trial.Failure, x.trial.Detail = failureOf(err)
	return Failed{
		s.header(),
		x.trial.Plan,
		x.trial.Failure,
		x.trial.Detail,
	}
}

// leave leaves a kernel that hangs to its threads: it is not closed. The error is nil
// for one that does not.
func (s *selection) leave(x *candidate, err error) error {
	var hung *check.Hung
	if !errors.As(err, &hung) {
		return nil
	}
	x.kernel, s.hung = nil, true
	return &HungError{s.fusion.Name, x.trial.Plan, hung}
}

// endedBy is the error of a context that has ended, and of a kernel that hung then.
func endedBy(ctx context.Context, hung error) error {
	if hung == nil {
		return ctx.Err()
	}
	return errors.Join(ctx.Err(), hung)
}

// close releases the kernels and the arrays.
func (s *selection) close() {
	if s.verifier != nil && !s.hung {
		defer s.verifier.Close() // as below
	}
	for _, x := range s.candidates {
		if x.kernel != nil {
			x.kernel.Close() // an error would change nothing about what was measured
		}
	}
}

// noWinner is the error of a selection without a candidate that ran, with what failed
// of the default.
func (s *selection) noWinner(reason error) error {
	if detail := s.candidates[0].trial.Detail; detail != "" {
		reason = errors.Join(reason, errors.New(detail))
	}
	return &NoWinnerError{
		s.fusion.Name, s.trials(), reason,
	}
}

func (s *selection) trials() []cache.Trial {
	var trials []cache.Trial
	for _, x := range s.candidates {
		trials = append(trials, x.trial)
	}
	return trials
}

// record says what every record says, however its winner was found: seconds and
// speed-up are the caller's.
func (s *selection) record(winner, standard *candidate) cache.Record {
	sources := s.tuner.visit.sources
	if sources == nil {
		sources = s.fusion.Sources(nil)
	}
	source, others := origin.First(sources)
	return cache.Record{
		Key:          s.key,
		Name:         s.fusion.Name,
		Source:       source,
		OtherSources: others,
		Canonical:    s.fusion.Canonical(),
		Safe:         s.tuner.Backend.Identity().Safe,
		Plan:         winner.trial.Plan,
		Default:      standard.trial.Plan,
		Dims:         kernels.PlanNamesOf(s.program),
		Trials:       s.trials(),
		Checked:      true,
		Like:         s.like,
		When:         s.tuner.now().UTC().Truncate(time.Second),
		By:           Version(),
	}
}

// prices compare the predicted times of the candidates that ran with those that were
// measured, and explain the winner's, the default's and that of the fastest other.
func (s *selection) prices(winner *candidate) *cache.Prices {
	ran := slices.Clone(s.candidates)
	ran = slices.DeleteFunc(ran, func(x *candidate) bool {
		return x.trial.Failure != "" || x.ranked() == nil
	})
	slices.SortStableFunc(ran, func(a, b *candidate) int {
		return cmp.Compare(a.best(), b.best())
	})
	var out cache.Prices
	var predicted, measured []float64
	for _, x := range ran {
		if len(x.trial.Samples) > 0 {
			predicted = append(predicted, x.trial.Predicted)
			measured = append(measured, x.trial.Median())
		}
	}
	if len(measured) > 0 {
		j := cost.Judge(predicted, measured)
		out.Kendall = j.Kendall
		out.Regret1, out.Regret3, out.Regret8 = j.Regret1, j.Regret3, j.Regret8
	}
	others := 1
	for _, x := range ran {
		if x != winner && x != s.candidates[0] {
			if others--; others < 0 {
				continue
			}
		}
		out.Explained = append(out.Explained, x.explained())
	}
	if b, ok := s.tuner.Backend.(kernels.SheetBackend); ok {
		out.Sheet = b.SheetJSON()
	}
	return &out
}

// best is what is known of a candidate's time: its median, or the prediction.
func (x *candidate) best() float64 {
	if len(x.trial.Samples) > 0 {
		return x.trial.Median()
	}
	return x.trial.Predicted
}

// ranked is the ranking of a candidate; nil of one that has none, such as the plan of an
// earlier race that a test made.
func (x *candidate) ranked() *cost.Ranked {
	if len(x.Price.Seconds) == 0 {
		return nil
	}
	return &x.Ranked
}

// explained are the terms of a candidate's predicted time.
func (x *candidate) explained() cache.Explained {
	out := cache.Explained{Plan: x.trial.Plan}
	for _, t := range x.Terms() {
		out.Terms = append(out.Terms, cache.Term(t))
	}
	return out
}
