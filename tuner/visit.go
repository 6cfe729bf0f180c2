package tuner

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo/origin"
)

// A visit is what a Schedule wants of one call of Tune. The zero value is a whole
// race of a fusion without a winner.
type visit struct {
	// defaultOnly checks and times the default plan and nothing else; the record is
	// provisional.
	defaultOnly bool
	// improve races on although a winner is stored.
	improve bool
	// within is the regret that is asked for of a winner that is stored: plans that may be
	// faster than it by more race on, dropped ones too, and what earlier runs measured
	// counts together with this one. 0 is none.
	within float64
	// kin is the winner of a fusion that differs in extents only: it and the default are
	// raced, if it is legal, and nothing else. kinName is the name of that fusion.
	kin     *kernels.Plan
	kinName string
	// earlier are the visits of this run, of which this is another one: its record
	// replaces theirs, whose samples it has.
	earlier []cache.Visit
	// sources are where the fusion comes from; nil leaves that to the fusion.
	sources []origin.Source
	// deadline is the end of the race, if that is before the end of its budget; zero
	// is none.
	deadline time.Time
}

// newVisitor is the tuner with what a visit wants.
func (s *Schedule) newVisitor(v visit) *Tuner {
	t := *s.Tuner
	t.visit = v
	t.Options.Force = t.Options.Force && v.earlier == nil
	t.Options.Observe = s.observer.observe
	if t.Model == nil && t.Options.Learn {
		t.Model = s.fitted()
	}
	return &t
}

// fitShare is the share of a run that fits of the prices may take.
const fitShare = 20

// fitted is the model that is fitted to what is stored. It is fitted again when that
// is worth the time; nil if it cannot be, and then Tune says why.
func (s *Schedule) fitted() *cost.Model {
	now := s.Tuner.now()
	if s.model != nil && now.Sub(s.fittedAt) < fitShare*s.fitting {
		return s.model
	}
	model, err := FitStored(s.Tuner.Cache, s.Tuner.identity())
	s.fittedAt = s.Tuner.now()
	s.fitting = s.fittedAt.Sub(now)
	if err == nil {
		s.model = model
	}
	return s.model
}

// ErrStuck is the error of a fusion that goes on after the end of the run.
var ErrStuck = fmt.Errorf("it did not stop within %v of the end of its time; nothing else could be measured beside it", stopGrace)

// guarded runs one step of an item. A panic is a *PanicError. A step that goes on
// although the run has ended is left behind, and the schedule is stuck; one that
// outlasts its own time, as a kernel may that does not look at its context, is waited
// for, since nothing can be measured beside it.
func (s *Schedule) guarded(run context.Context, x *Item, step func() error) error {
	done := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- &PanicError{x.Fusion.Name, p, debug.Stack()}
			}
		}()
		done <- step()
	}()
	select {
	case err := <-done:
		return err
	case <-run.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(stopGrace):
		s.stuck = true
		s.observer.close()
		x.Err = ErrStuck // its state is what it was
		return ErrStuck
	}
}

// releasedBytes are the bytes of the arrays of a fusion whose memory is returned to
// the system at once, rather than when the garbage collector finds time.
const releasedBytes = 16 << 20

// release returns the memory that a visit has taken. Beside a kernel that was abandoned
// no collection ends (check.Hung).
func (s *Schedule) release(x *Item) {
	if !s.stuck && x.arrayBytes() >= releasedBytes {
		debug.FreeOSMemory()
	}
}

// turn reports which item is next, and for what.
func (s *Schedule) turn(x *Item, purpose string, number, of int) {
	turn := Turn{
		EventHeader: s.Tuner.header(x.Fusion.Name), Purpose: purpose, Number: number, Of: of, End: s.end,
	}
	if len(x.Sources) > 0 {
		turn.Source = x.Sources[0]
	}
	s.observer.observe(turn)
}

// An observer passes events on, one at a time and none after it is closed: a step
// that is left behind goes on to report.
type observer struct {
	mu sync.Mutex
	to func(Event) // nil means nobody, and that it is closed
}

func (o *observer) observe(e Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.to != nil {
		o.to(e)
	}
}

// close ends the passing on.
func (o *observer) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.to = nil
}
