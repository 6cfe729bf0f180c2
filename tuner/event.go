package tuner

import (
	"time"

	"github.com/tilewright/tilewright/symtile/hlo/origin"
)

// An Event is one step of a tuning run. Its dynamic type says which: Turn,
// Began, Found, Busy, Damaged, Refused, Ranked, Started, Verified, Timed, Failed, Dropped, BlockDone,
// Unkept or Chosen. What Timed, Failed, Dropped and BlockDone report of a race is
// stored and synchronised before, unless an Unkept precedes them. Times are in
// seconds where they are float64.
type Event interface {
	// About is when the event happened and which fusion it belongs to.
	About() EventHeader
}

// EventHeader is what all events have.
type EventHeader struct {
	Time   time.Time
	Fusion string // name of the fusion
}

// About returns the header itself, so that a type that embeds it is an Event.
func (h EventHeader) About() EventHeader { return h }

// Turn reports that a Schedule turns to a fusion.
type Turn struct {
	EventHeader
	Source     origin.Source // of the fusion
	Purpose    string        // "pricing", "checking" or "racing"
	Number, Of int           // of the fusions with this purpose, as far as is known
	End        time.Time     // of the run; zero is none
}

// A Phase is a step of tuning a fusion, a word for people.
type Phase string

// The phases, in their order.
const (
	Analysing  Phase = "analysing" // the tile program
	Ranking    Phase = "ranking"   // the legal plans by price
	Evaluating Phase = "reference" // inputs, and the reference's results
	Preparing  Phase = "inputs"    // the arrays of the race
	Compiling  Phase = "compiling" // a candidate
	Verifying  Phase = "checking"  // a candidate against the reference
	Racing     Phase = "racing"    // timing of candidates in blocks
)

// Began reports that a phase begins; until the next event the tuner is in it.
type Began struct {
	EventHeader
	Phase Phase
}

// Found reports that a stored winner answers; nothing is measured.
type Found struct {
	EventHeader
	Plan    string
	Seconds float64 // median, or the prediction of a winner that was not timed
}

// Damaged reports that what is stored of the fusion, its record or an unfinished
// race, cannot be read. It is left out, and replaced by what is measured.
type Damaged struct {
	EventHeader
	Detail string // the error, for people
}

// Busy reports that another process held the database for longer than a reader
// waits. What it stores of the fusion is taken as missing; the trials that are
// measured are united with it when the winner is stored.
type Busy struct {
	EventHeader
	Detail string // the error, for people
}

// Refused reports that the fusion cannot be tiled.
type Refused struct {
	EventHeader
	Reason string
}

// Ranked reports that the cost model has ordered the legal plans.
type Ranked struct {
	EventHeader
	Legal int64 // number of plans
}

// Started reports that the verification of candidates begins.
type Started struct {
	EventHeader
	Candidates int
	Remaining  time.Duration // of the budget
}

// Verified reports that a candidate of a device that cannot time kernels has
// been compared with the reference, whether or not it agreed.
type Verified struct {
	EventHeader
	Plan       string
	Predicted  float64
	Tried      int // candidates so far
	Candidates int
	Remaining  time.Duration
}

// Timed reports that a candidate was verified and timed for the first time.
type Timed struct {
	EventHeader
	Plan       string
	Seconds    float64
	Tried      int // candidates so far
	Candidates int
	Remaining  time.Duration
}

// Failed reports that a candidate is out of the race because it is wrong or
// does not run.
type Failed struct {
	EventHeader
	Plan    string
	Failure string // one of the cache.Failed constants
	Detail  string // the error, for people
}

// Dropped reports that a candidate is out of the race because it is slower than
// the best.
type Dropped struct {
	EventHeader
	Plan  string
	Ratio float64 // its time over the best's
}

// BlockDone reports that every remaining candidate was timed once more.
type BlockDone struct {
	EventHeader
	Block      int
	Candidates int     // that remain
	Best       string  // plan of the best so far
	Seconds    float64 // its median
	Ratio      float64 // the default plan's time over it
	Remaining  time.Duration
}

// LeftOut reports that the samples of a block do not count, since something else ran on
// the device meanwhile.
type LeftOut struct {
	EventHeader
	Block     int
	Disturbed time.Duration // that other work took
}

// Unkept reports that samples could not be stored, neither in the database nor in
// a journal. The race goes on.
type Unkept struct {
	EventHeader
	Detail string // the error, for people
}

// Chosen reports the winner, after the attempt to store it.
type Chosen struct {
	EventHeader
	Plan    string
	Seconds float64
	Ratio   float64 // the default plan's time over the winner's
	Untimed bool    // Seconds and Ratio are predictions of the cost model
}

// emit passes an event on to the observer.
func (t *Tuner) emit(e Event) {
	if t.Options.Observe != nil {
		t.Options.Observe(e)
	}
}

// header stamps an event of a fusion.
func (t *Tuner) header(fusion string) EventHeader {
	return EventHeader{Time: t.now(), Fusion: fusion}
}
