package kernels

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// SampleQuality is what a device saw of itself since it was opened, while kernels
// were timed: whether their times can be compared. A Backend that knows its
// device's clock has a method Saw that returns it.
type SampleQuality struct {
	Samples          int        `json:"samples,omitempty"` // that were taken
	Clock            ClockStats `json:"clock,omitzero"`    // while they were
	Outliers         int        `json:"off,omitempty"`     // samples whose clock is off the median
	Resampled        int        `json:"again,omitempty"`   // times that a sample was taken again because its clock was
	Winner           ClockStats `json:"winner,omitzero"`   // of the samples of a record's winner
	References       int        `json:"anchors"`           // times the anchor was timed, work that is always the same
	ReferenceHertz   [2]float64 `json:"hertz"`             // lowest and highest clock of the anchors
	ReferenceSeconds [2]float64 `json:"seconds"`           // fastest and slowest anchor
	Drifts           int        `json:"drifts"`            // anchors that were off the one before, so that a sample was taken again
	Launches         int        `json:"runs,omitempty"`    // launches of the latest sample
	Sets             int        `json:"sets,omitempty"`    // of arrays that it went through in turn, so that caches stay cold
}

// ClockStats are what a device's clock was in some samples, in Hz.
type ClockStats struct {
	Lowest  float64 `json:"lowest"`
	Median  float64 `json:"median"`
	Highest float64 `json:"highest"`
	Known   int     `json:"known"` // samples of which it is known; of none, the others are 0
}

const maxClockDeviation = 0.02 // of the median

// ClockStatsOf sums up the clocks of samples, 0 where one is unknown.
func ClockStatsOf(hertz []float64) ClockStats {
	known := slices.DeleteFunc(slices.Sorted(slices.Values(hertz)), func(h float64) bool {
		return !(h > 0)
	})
	n := len(known)
	if n == 0 {
		return ClockStats{}
	}
	return ClockStats{
		known[0],
		(known[(n-1)/2] + known[n/2]) / 2,
		known[n-1],
		n,
	}
}

// Outlier says whether a clock that is known differs from the median by more than
// 2 %.
func (c ClockStats) Outlier(hertz float64) bool {
	return hertz > 0 && c.Known > 0 &&
		math.Abs(hertz/c.Median-1) > maxClockDeviation
}

func (c ClockStats) String() string {
	return fmt.Sprintf(
		"%.0f to %.0f MHz, median %.0f", c.Lowest/1e6, c.Highest/1e6,
		c.Median/1e6,
	)
}

// SetClocks says what the clock was in each of the samples.
func (e *SampleQuality) SetClocks(hertz []float64) {
	e.Samples, e.Clock, e.Outliers = len(hertz), ClockStatsOf(hertz), 0
	for _, h := range hertz {
		if e.Clock.Outlier(h) {
			e.Outliers++
		}
	}
}

// AddReference adds a timing of the anchor at a clock.
func (e *SampleQuality) AddReference(hertz, seconds float64, drifted bool) {
	if e.References++; e.References == 1 {
		e.ReferenceHertz = [2]float64{hertz, hertz}
		e.ReferenceSeconds = [2]float64{seconds, seconds}
	}
	e.ReferenceHertz = [2]float64{
		min(e.ReferenceHertz[0], hertz),
		max(e.ReferenceHertz[1], hertz),
	}
	e.ReferenceSeconds = [2]float64{
		min(e.ReferenceSeconds[0], seconds),
		max(e.ReferenceSeconds[1], seconds),
	}
	if drifted {
		e.Drifts++
	}
}

func (e SampleQuality) String() string {
	var said []string
	say := func(format string, a ...any) {
		said = append(said, fmt.Sprintf(format, a...))
	}
	if e.Clock.Known > 0 {
		say(
			"clock %s over %d samples, %d of them over 2 %% off it, %d taken again for that, %d unknown",
			e.Clock, e.Samples, e.Outliers,
			e.Resampled, e.Samples-e.Clock.Known,
		)
	} else if e.Samples > 0 {
		say("clock unknown in all %d samples", e.Samples)
	}
	if e.Winner.Known > 0 {
		say("the winner's %s", e.Winner)
	}
	if e.References > 0 {
		say(
			"clock %.0f to %.0f MHz over %d anchors, the slowest %.1f %% over the fastest; %d samples taken again", e.ReferenceHertz[0]/1e6,
			e.ReferenceHertz[1]/1e6, e.References,
			100*(e.ReferenceSeconds[1]/max(e.ReferenceSeconds[0], 1e-12)-1),
			e.Drifts,
		)
	}
	if e.Launches > 0 {
		say("%d launches a sample over %d sets of arrays", e.Launches, e.Sets)
	}
	return strings.Join(said, "; ")
}

// Known says whether there is anything to go by.
func (e SampleQuality) Known() bool {
	return e.References > 0 || e.Clock.Known > 0
}

// ParseSampleQuality is a record's evidence; zero where there is none, or it is of
// another version.
func ParseSampleQuality(record json.RawMessage) SampleQuality {
	var e SampleQuality
	if json.Unmarshal(record, &e) != nil ||
		!e.Known() {
		return SampleQuality{}
	}
	return e
}

// SampleQualityText is what a record's evidence says, in a line; "" where there is
// none.
func SampleQualityText(record json.RawMessage) string {
	return ParseSampleQuality(record).String()
}
