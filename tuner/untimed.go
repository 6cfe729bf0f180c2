package tuner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
)

// chooseByModel takes the place of a race on a device that cannot time kernels.
// The candidates are verified in the order of their predicted times, which are those of
// their code afterwards, and the first of those that are right wins if the model predicts
// that it beats the default plan by the margin. The record says that nothing was timed.
func (s *selection) chooseByModel(ctx context.Context) (cache.Record, error) {
	if err := s.begin(ctx); err != nil {
		return cache.Record{}, err
	}
	defer s.close()
	standard := s.candidates[0]
	slices.SortStableFunc(s.candidates, func(a, b *candidate) int {
		return cmp.Compare(a.Seconds, b.Seconds)
	})
	s.start()
	verified := false
	for k, x := range s.candidates {
		if verified && x != standard && s.remaining() < 0 {
			x.eliminated = true
			x.trial.Failure = cache.FailedTimeout
			x.trial.Detail = "the budget was spent before it was checked"
			continue
		}
		if err := s.verifyUntimed(ctx, x); err != nil {
			return cache.Record{}, err
		}
		verified = verified || !x.eliminated
		s.emit(Verified{
			s.header(), x.trial.Plan, x.Seconds,
			k + 1, len(s.candidates), s.remaining(),
		})
	}
	slices.SortStableFunc(s.candidates, func(a, b *candidate) int {
		return cmp.Compare(a.Seconds, b.Seconds)
	})
	return s.predictedRecord(standard)
}

// verifyUntimed verifies one candidate within the rest of the budget, but at
// least for minRunTimeout. Its failure is its own; the error is that of ctx.
func (s *selection) verifyUntimed(ctx context.Context, x *candidate) error {
	timeout := max(minRunTimeout, s.remaining())
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := s.verify(limited, x, timeout, timeout)
	hung := s.leave(x, err)
	if x.kernel != nil {
		err = errors.Join(err, s.reprice(x), x.kernel.Close())
		x.kernel = nil
	}
	if ctx.Err() != nil {
		return endedBy(ctx, hung)
	}
	if err == nil {
		return nil
	}
	e := s.failed(x, err)
	if e.Failure == cache.FailedTimeout && hung == nil {
		x.trial.Detail = fmt.Sprintf(
			"its check had not ended after %v: more time (-budget or -run-budget), or smaller shapes, let it",
			timeout.Round(time.Second),
		)
	}
	e.Detail = x.trial.Detail
	s.emit(e)
	return hung
}

// reprice predicts the time of a candidate with what its code takes, where its kernel
// knows that.
func (s *selection) reprice(x *candidate) error {
	k, ok := x.kernel.(kernels.RepricedKernel)
	if !ok || x.ranked() == nil {
		return nil
	}
	err := x.Ranked.Reprice(k.Reprice)
	x.trial.Predicted = x.Seconds
	return err
}

// predictedRecord is the record of a choice by the cost model; the candidates
// are in the order of their predicted times.
func (s *selection) predictedRecord(standard *candidate) (cache.Record, error) {
	passed := func(x *candidate) bool { return !x.eliminated }
	first := slices.IndexFunc(s.candidates, passed)
	if first < 0 {
		kept := s.tuner.Cache.KeepTrials(s.key, s.trials()) // what lookup must not answer with
		return cache.Record{}, errors.Join(s.noWinner(ErrNothingVerified), kept)
	}
	winner := s.candidates[first]
	if passed(standard) &&
		standard.Seconds < winner.Seconds*(1+s.tuner.Options.margin()) {
		winner = standard
	}
	r := s.record(winner, standard)
	r.Untimed = true
	r.Seconds = winner.Seconds
	r.DefaultSeconds = standard.Seconds
	r.Speedup = [3]float64{standard.Seconds / winner.Seconds}
	r.Regret = -1
	r.Prices = s.prices(winner)
	for _, x := range s.candidates {
		if x != winner && passed(x) && x.Seconds == winner.Seconds {
			r.Ties = append(r.Ties, x.trial.Plan)
		}
	}
	return r, nil
}
