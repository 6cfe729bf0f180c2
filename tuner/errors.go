package tuner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
)

// Errors of the fusion: Tune returns a *symtile.Untileable, which names the
// instruction and the reason, when a fusion has no tile program.

// Errors of the plans. Tune returns one of the following inside a
// *NoWinnerError.
var (
	// ErrNothingRan is returned when not even the default plan could be
	// compiled, verified and timed.
	ErrNothingRan = errors.New("no plan could be compiled, verified and timed")

	// ErrNothingVerified is returned for a device that cannot time kernels,
	// when no candidate could be compiled and verified.
	ErrNothingVerified = errors.New("no plan could be compiled and verified")
)

// A NoWinnerError says that none of a fusion's candidates could be kept. It
// wraps ErrNothingRan or ErrNothingVerified.
type NoWinnerError struct {
	Fusion string        // name of the fusion
	Trials []cache.Trial // every candidate, with the reason of its failure
	Err    error
}

// Error is the text of the reason.
func (e *NoWinnerError) Error() string { return e.Err.Error() }

// DefaultFailure says how the default plan, the first that is tried, failed its check; it
// is empty where that did not end in time.
func (e *NoWinnerError) DefaultFailure() string {
	if len(e.Trials) == 0 {
		return ""
	}
	return (&cache.Record{Default: e.Trials[0].Plan, Trials: e.Trials}).DefaultFailure()
}

// OutOfTime says how the first check ended that did not end in time, where time is all
// that the fusion lacks: no plan is wrong, does not run or hangs. It is empty otherwise.
func (e *NoWinnerError) OutOfTime() (why string) {
	for _, t := range e.Trials {
		refused := t.Failure == cache.FailedRejected
		switch {
		case late(t):
			why = cmp.Or(why, t.Detail)
		case t.Failure != "" && !refused:
			return ""
		}
	}
	return why
}

// ranOutOfTime reports whether an error says that all a fusion lacks is time.
func ranOutOfTime(err error) bool {
	var none *NoWinnerError
	return errors.As(err, &none) &&
		none.OutOfTime() != ""
}

// late reports whether the check of a plan did not end in time and stopped when it was told.
func late(t cache.Trial) bool {
	hangs := strings.HasPrefix(t.Detail, check.Hangs)
	return t.Failure == cache.FailedTimeout && !hangs
}

// Unwrap returns the reason.
func (e *NoWinnerError) Unwrap() error { return e.Err }

// A TooSlowError says that a fusion is not raced since the budget has no room for a run
// of it.
type TooSlowError struct {
	Fusion string // its name
	// Run is what one run takes: by the price of the default plan, over four budgets, or
	// by cost.LowerBound, at least one budget.
	Run    time.Duration
	Budget time.Duration // Options.Budget, or in a check of the default plan its part of the run
}

// Error says both times. The fusion is named by what wraps it.
func (e *TooSlowError) Error() string {
	return fmt.Sprintf(
		"one run is predicted to take %v, which is too long for the %v that it may take here",
		e.Run.Round(time.Millisecond), e.Budget.Round(time.Millisecond),
	)
}

// An UnkeptError says what of a fusion could not be stored. What was stored before
// stays.
type UnkeptError struct {
	Fusion string // name of the fusion
	// Winner is the plan that is not stored as the winner; empty where there is none.
	Winner string
	// Kept says that all samples are in the database or a journal beside it, from where
	// a later race goes on. Lost says that some are in neither; what was not timed has
	// none to keep or to lose.
	Kept, Lost bool
	Err        error // of the database and, of samples, of the journal
}

// Error names the fusion, and what is kept and what not.
func (e *UnkeptError) Error() string {
	var what []string
	if e.Winner != "" {
		what = append(what, fmt.Sprintf("the winner %s is not stored", e.Winner))
	}
	switch {
	case e.Kept:
		what = append(what, "all samples are, and the next race goes on from them")
	case e.Lost:
		what = append(what, "samples that were not stored before are lost")
	}
	return fmt.Sprintf("%s: %s: %v", e.Fusion, strings.Join(what, "; "), e.Err)
}

// Unwrap returns the errors of the files.
func (e *UnkeptError) Unwrap() error { return e.Err }

// A HungError says that a kernel went on after the end of its time and was abandoned
// (check.Hung). What was measured is stored, and the plan is recorded as failed unless
// ctx ended its time. The kernel occupies its threads as long as the process lives:
// nothing can be timed beside it, and another process should go on.
type HungError struct {
	Fusion, Plan string
	Err          error // a *check.Hung
}

// Error names the fusion and the plan.
func (e *HungError) Error() string {
	return fmt.Sprintf("%s: plan %s: %v; it still occupies its threads, and nothing can be timed beside it", e.Fusion, e.Plan, e.Err)
}

// Unwrap returns the *check.Hung.
func (e *HungError) Unwrap() error { return e.Err }

// Errors of the database come from package cache and are wrapped with the name
// of the fusion: cache.ErrBusy, cache.ErrForeign, cache.ErrNewer and
// *cache.DamagedError.

// errImplausible is the failure of a candidate whose time is below the lower
// bound of the cost model.
var errImplausible = errors.New("faster than the device can be: it cannot have done the work")

// failureOf classifies what went wrong with a candidate, for its trial.
func failureOf(err error) (failure, detail string) {
	var rejected *kernels.Rejected
	var wrong *check.WrongResult
	var hung *check.Hung
	switch {
	case errors.As(err, &hung):
		return cache.FailedTimeout, err.Error()
	case errors.As(err, &rejected):
		return cache.FailedRejected, err.Error()
	case errors.As(err, &wrong):
		return cache.FailedWrong, err.Error()
	case errors.Is(err, errImplausible):
		return cache.FailedImplausible, err.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return cache.FailedTimeout, "far slower than the default, or hung: it was stopped"
	}
	return cache.FailedError, err.Error()
}
