package tuner

import (
	"fmt"
	"time"
)

// A State is how far a Schedule has come with an item.
type State uint8

// The states of an item. Refused, failed, tuned and known are final; a run whose
// time is over leaves others behind.
const (
	StateWaiting State = iota // nothing was checked to its end; Err says why, if a try was made
	StateRefused              // it has no tiles, or the device computes no such thing
	StateFailed               // no plan of it could be kept
	StateChecked              // its best plan so far, at least the default, agreed with the reference and was timed
	StateTuned                // its plans were raced
	StateKnown                // a winner was stored already, and nothing was measured
)

// An Outcome is what a Schedule has found out about an item.
type Outcome struct {
	State  State
	Result Result // Plan is empty where there is none
	// Err is why an item was refused or has failed, or what is not kept of one that
	// was tuned.
	Err error
	// Predicted is the default plan's time by the cost model, in seconds; 0 where
	// it is not known.
	Predicted float64

	// Like is an item that differs in extents only, with whose winner this one was raced
	// last, or was to be; nil where there is none, or all plans were ranked. The record says
	// so, too, as soon as there is one of that race.
	Like *Item

	kin        *Item         // differs in extents only and is raced before
	roofline   float64       // seconds that the rates of the device allow
	pricing    time.Duration // what the analysis and the price of the default took
	setup      time.Duration // of the last visit, before its race
	racing     time.Duration // of the last visit, from there on
	visited    time.Time     // when the first visit ended
	fruitless  int           // visits in a row that did not lower the regret
	raceAtOnce bool          // no default plan of it can be checked
	tries      int           // visits that found no default for want of time, or of a right one
}

// DefaultSeconds is the time of the default plan: measured, or else predicted; 0
// where nothing is known.
func (x *Item) DefaultSeconds() float64 {
	if s := x.Result.Record.DefaultSeconds; s > 0 {
		return s
	}
	if s := x.Result.Record.Seconds; s > 0 { // the default failed
		return s
	}
	return x.Predicted
}

// Seconds is the time of the best plan: measured, or that of the default.
func (x *Item) Seconds() float64 {
	if s := x.Result.Record.Seconds; s > 0 {
		return s
	}
	return x.DefaultSeconds()
}

// tuned reports whether the item has the winner of a race that is over.
func (x *Item) tuned() bool {
	return x.State == StateTuned ||
		x.State == StateKnown
}

// Unfinished reports whether plans of the item were raced and the race is not over.
func (x *Item) Unfinished() bool {
	return x.State == StateChecked && len(x.Result.Record.Trials) > 1
}

// A PanicError is a panic while one fusion was analysed, compiled or run. It is a
// bug; the other fusions are not affected.
type PanicError struct {
	Fusion string // name of the fusion
	Value  any    // of the panic
	Stack  []byte
}

// Error asks for a report of the bug.
func (e *PanicError) Error() string {
	return fmt.Sprintf("internal error in %s: %v; this is a bug in tilewright: please report it with the fusion", e.Fusion, e.Value)
}
