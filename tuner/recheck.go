package tuner

import (
	"context"
	"time"

	"github.com/tilewright/tilewright/kernels/check"
)

// What is timed is compared again with what was verified, at random moments of a race
// and before it has a winner: a kernel that is wrong now and then passes a
// verification, which runs it once or twice, and may be fast because of what it leaves
// out.

// Parameters of rechecks.
const (
	recheckEvery = 4 // samples, on average, of which the results of one are compared

	// The default and the winner are run until so many of their runs have been
	// compared, timed ones included: of kernels that are wrong in 5 % of the runs
	// 1 − 0.95⁹⁰ = 99 % are found.
	comparedRuns = 90
	// That ends after this share of the budget, but not before so many runs, if these
	// take no longer than the budget.
	recheckShare   = 1.0 / 8
	fewestCompared = 8
)

// recheckStream separates the random numbers that choose the moments of rechecks:
// "again" in ASCII.
const recheckStream = 0x616761696e

// recheckNow compares the results of the last timed run of a candidate, and of one
// more that is not timed, whose outputs are overwritten before. The error is a
// *check.WrongResult or the kernel's own.
func (r *race) recheckNow(ctx context.Context, x *candidate) error {
	if err := r.bench.CompareLast(ctx, x.kernel, x.witness); err != nil {
		return err
	}
	return r.rerun(ctx, x)
}

// rerun compares a run that is not timed.
func (r *race) rerun(ctx context.Context, x *candidate) error {
	return r.bench.Rerun(
		ctx, check.Bounded(x.kernel, r.runTimeout()), x.witness,
	)
}

// confirm rechecks what remains: every candidate by one more sample, and the default
// and the winner that the samples name by more runs. Again reports that one of them was
// taken out, so that the race has to name another winner. The error is that of ctx.
func (r *race) confirm(ctx context.Context) (again bool, err error) {
	winner, _ := r.winner()
	last := !r.tuner.visit.defaultOnly && !r.defaultOnly // a provisional winner has its race before it
	for _, x := range r.live() {
		wins := last && (x == winner || x == r.candidates[0])
		if err := r.confirmOne(ctx, x, wins); err != nil {
			return false, err
		}
		again = again || x.eliminated
	}
	if again {
		r.reinstate()
	}
	return again, nil
}

// reinstate brings candidates back that were dropped because others were faster, since
// one of these has turned out to be wrong.
func (r *race) reinstate() {
	for _, x := range r.candidates {
		if x.trial.Dropped && x.trial.Failure == "" && x.kernel != nil {
			x.trial.Dropped = false
			x.eliminated = false
		}
	}
}

// confirmOne times a candidate once more, compares the results and, if it may win, runs
// it until enough of its runs have been compared. Its failure is its own; the error is
// that of ctx.
func (r *race) confirmOne(ctx context.Context, x *candidate, wins bool) error {
	if x.witness.Runs() >= comparedRuns {
		return nil
	}
	err := r.lastSample(ctx, x)
	span := time.Duration(recheckShare * float64(r.tuner.Options.budget()))
	for end := r.tuner.now().Add(span); err == nil && wins &&
		x.witness.Runs() < comparedRuns &&
		(x.witness.Runs() < r.fewestCompared() || r.tuner.now().Before(end)); {
		err = r.rerun(ctx, x)
	}
	hung := r.leave(x, err)
	if ctx.Err() != nil {
		return endedBy(ctx, hung)
	}
	if err != nil {
		r.whenStored(r.failed(x, err))
	}
	return hung
}

// lastSample times a candidate and compares the results of its last run. The sample is
// not kept: the others have none in its block.
func (r *race) lastSample(ctx context.Context, x *candidate) error {
	limited, cancel := context.WithTimeout(ctx, r.runTimeout())
	defer cancel()
	if _, err := r.bench.Sample(limited, x.kernel, x.batch); err != nil {
		return err
	}
	return r.recheckNow(ctx, x)
}
