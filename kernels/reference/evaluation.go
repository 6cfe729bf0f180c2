package reference

import (
	"context"
	"errors"
)

// An evaluation is one call of Interpret and its like, whose loops look at a context:
// arrays of a gigabyte and sums of 2³⁰ terms take seconds, and people press Ctrl-C.
type evaluation struct {
	ctx  context.Context
	done <-chan struct{}
	// Elements that were visited one after the other, for tick.
	visited int64
}

// newEvaluation looks at ctx.
func newEvaluation(ctx context.Context) *evaluation {
	return &evaluation{ctx: ctx, done: ctx.Done()}
}

const (
	// Elements of work between two looks at the context, some milliseconds.
	elementsBetweenLooks = 1 << 20
	// Visits of elements, each of which may be the evaluation of a computation,
	// between two looks.
	ticksBetweenLooks = 1 << 10
)

// errEnded is the panic that leaves the loops when the context has ended. It does not
// leave the package: see ended.
var errEnded = errors.New("the context has ended")

// look leaves the evaluation when its context has ended.
func (e *evaluation) look() {
	select {
	case <-e.done:
		panic(errEnded)
	default:
	}
}

// tick counts a visit of an element, in loops that are not divided among cores.
func (e *evaluation) tick() {
	if e.visited++; e.visited%ticksBetweenLooks == 0 {
		e.look()
	}
}

// ended makes the error of the context of the panic of look. It is deferred where an
// evaluation begins.
func (e *evaluation) ended(err *error) {
	switch p := recover(); p {
	case nil:
	case errEnded:
		*err = context.Cause(e.ctx)
	default:
		panic(p)
	}
}

// parallel is Parallel that looks at the context.
func (e *evaluation) parallel(n, cost int64, do func(lo, hi int64)) {
	step := max(1, elementsBetweenLooks/max(1, cost))
	Parallel(n, cost, func(lo, hi int64) {
		for ; lo < hi; lo += step {
			e.look()
			do(lo, min(lo+step, hi))
		}
	})
}
