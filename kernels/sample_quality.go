package kernels

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// SampleQuality is what a device recorded of itself while kernels were timed, from
// which it can be judged whether their times are comparable. A SampleObserver returns
// it, and the tuner stores it with each winner as JSON.
type SampleQuality struct {
	// Samples is the number of samples, and Clock their clocks.
	Samples int        `json:"samples,omitempty"`
	Clock   ClockStats `json:"clock,omitzero"` // while they were
	// Outliers is the number of samples whose clock differs from the median by more
	// than 2 %.
	Outliers int `json:"off,omitempty"`
	// Resampled is how often a sample was repeated because of its clock.
	Resampled int `json:"again,omitempty"`
	// Winner is the clocks of the samples of a record's winner.
	Winner ClockStats `json:"winner,omitzero"`
	// References is how often the reference kernel was timed, which is always the
	// same. Its lowest and highest clock and its fastest and slowest time follow.
	References       int        `json:"anchors"`
	ReferenceHertz   [2]float64 `json:"hertz"`   // lowest and highest clock of the reference kernels
	ReferenceSeconds [2]float64 `json:"seconds"` // fastest and slowest anchor
	// Drifts is how often the time of the reference kernel had changed, so that a
	// sample was repeated.
	Drifts int `json:"drifts"`
	// Launches is the number of launches of the latest sample, over Sets sets of
	// arrays in turn, so that caches stay cold.
	Launches int `json:"runs,omitempty"`
	Sets     int `json:"sets,omitempty"` // of arrays that it went through in turn, so that caches stay cold
}

// ClockStats are the clocks of a device during some samples, in Hz.
type ClockStats struct {
	Lowest  float64 `json:"lowest"`
	Median  float64 `json:"median"`
	Highest float64 `json:"highest"`
	// Known is the number of samples whose clock is known. If it is 0, the other
	// fields are 0.
	Known int `json:"known"`
}

// maxClockDeviation is the share of the median by which a clock may differ.
const maxClockDeviation = 0.02 // of the median

// ClockStatsOf sums up the clocks of samples, where 0 stands for a clock that is not
// known.
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

// Outlier reports whether a known clock differs from the median by more than 2 %.
func (c ClockStats) Outlier(hertz float64) bool {
	return hertz > 0 && c.Known > 0 &&
		math.Abs(hertz/c.Median-1) > maxClockDeviation
}

// String has the range and the median in MHz.
func (c ClockStats) String() string {
	return fmt.Sprintf(
		"%.0f to %.0f MHz, median %.0f", c.Lowest/1e6, c.Highest/1e6,
		c.Median/1e6,
	)
}

// SetClocks records the clocks of all samples.
func (e *SampleQuality) SetClocks(hertz []float64) {
	e.Samples, e.Clock, e.Outliers = len(hertz), ClockStatsOf(hertz), 0
	for _, h := range hertz {
		if e.Clock.Outlier(h) {
			e.Outliers++
		}
	}
}

// AddReference records a timing of the reference kernel at a clock.
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

// String is the quality in one line.
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

// Known reports whether anything was recorded.
func (e SampleQuality) Known() bool {
	return e.References > 0 || e.Clock.Known > 0
}

// ParseSampleQuality reads the quality that a record of a winner has; zero where there
// is none or it is of another version.
func ParseSampleQuality(record json.RawMessage) SampleQuality {
	var e SampleQuality
	if json.Unmarshal(record, &e) != nil ||
		!e.Known() {
		return SampleQuality{}
	}
	return e
}
