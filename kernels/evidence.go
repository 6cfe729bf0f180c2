package kernels

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Evidence is what a device saw of itself since it was opened, while kernels
// were timed: whether their times can be compared. A Backend that knows its
// device's clock has a method Saw that returns it.
type Evidence struct {
	Samples int        `json:"samples,omitempty"` // that were taken
	Clock   Clocks     `json:"clock,omitzero"`    // while they were
	Off     int        `json:"off,omitempty"`     // samples whose clock is off the median
	Again   int        `json:"again,omitempty"`   // times that a sample was taken again because its clock was
	Winner  Clocks     `json:"winner,omitzero"`   // of the samples of a record's winner
	Anchors int        `json:"anchors"`           // times the anchor was timed, work that is always the same
	Hertz   [2]float64 `json:"hertz"`             // lowest and highest clock of the anchors
	Seconds [2]float64 `json:"seconds"`           // fastest and slowest anchor
	Drifts  int        `json:"drifts"`            // anchors that were off the one before, so that a sample was taken again
	Runs    int        `json:"runs,omitempty"`    // launches of the latest sample
	Sets    int        `json:"sets,omitempty"`    // of arrays that it went through in turn, so that caches stay cold
}

// Clocks are what a device's clock was in some samples, in Hz.
type Clocks struct {
	Lowest  float64 `json:"lowest"`
	Median  float64 `json:"median"`
	Highest float64 `json:"highest"`
	Known   int     `json:"known"` // samples of which it is known; of none, the others are 0
}

const mostOff = 0.02 // of the median

// ClocksOf sums up the clocks of samples, 0 where one is unknown.
func ClocksOf(hertz []float64) Clocks {
	known := slices.DeleteFunc(slices.Sorted(slices.Values(hertz)), func(h float64) bool { return !(h > 0) })
	n := len(known)
	if n == 0 {
		return Clocks{}
	}
	return Clocks{known[0], (known[(n-1)/2] + known[n/2]) / 2, known[n-1], n}
}

// Off says whether a clock that is known differs from the median by more than
// 2 %.
func (c Clocks) Off(hertz float64) bool {
	return hertz > 0 && c.Known > 0 && math.Abs(hertz/c.Median-1) > mostOff
}

func (c Clocks) String() string {
	return fmt.Sprintf("%.0f to %.0f MHz, median %.0f", c.Lowest/1e6, c.Highest/1e6, c.Median/1e6)
}

// Sampled says what the clock was in each of the samples.
func (e *Evidence) Sampled(hertz []float64) {
	e.Samples, e.Clock, e.Off = len(hertz), ClocksOf(hertz), 0
	for _, h := range hertz {
		if e.Clock.Off(h) {
			e.Off++
		}
	}
}

// Anchored adds a timing of the anchor at a clock.
func (e *Evidence) Anchored(hertz, seconds float64, drifted bool) {
	if e.Anchors++; e.Anchors == 1 {
		e.Hertz, e.Seconds = [2]float64{hertz, hertz}, [2]float64{seconds, seconds}
	}
	e.Hertz = [2]float64{min(e.Hertz[0], hertz), max(e.Hertz[1], hertz)}
	e.Seconds = [2]float64{min(e.Seconds[0], seconds), max(e.Seconds[1], seconds)}
	if drifted {
		e.Drifts++
	}
}

func (e Evidence) String() string {
	var said []string
	say := func(format string, a ...any) { said = append(said, fmt.Sprintf(format, a...)) }
	if e.Clock.Known > 0 {
		say("clock %s over %d samples, %d of them over 2 %% off it, %d taken again for that, %d unknown", e.Clock, e.Samples, e.Off, e.Again, e.Samples-e.Clock.Known)
	} else if e.Samples > 0 {
		say("clock unknown in all %d samples", e.Samples)
	}
	if e.Winner.Known > 0 {
		say("the winner's %s", e.Winner)
	}
	if e.Anchors > 0 {
		say("clock %.0f to %.0f MHz over %d anchors, the slowest %.1f %% over the fastest; %d samples taken again", e.Hertz[0]/1e6, e.Hertz[1]/1e6, e.Anchors,
			100*(e.Seconds[1]/max(e.Seconds[0], 1e-12)-1), e.Drifts)
	}
	if e.Runs > 0 {
		say("%d launches a sample over %d sets of arrays", e.Runs, e.Sets)
	}
	return strings.Join(said, "; ")
}

// Seen says whether there is anything to go by.
func (e Evidence) Seen() bool { return e.Anchors > 0 || e.Clock.Known > 0 }

// EvidenceOf is a record's evidence; zero where there is none, or it is of
// another version.
func EvidenceOf(record json.RawMessage) Evidence {
	var e Evidence
	if json.Unmarshal(record, &e) != nil || !e.Seen() {
		return Evidence{}
	}
	return e
}

// EvidenceText is what a record's evidence says, in a line; "" where there is
// none.
func EvidenceText(record json.RawMessage) string { return EvidenceOf(record).String() }
