package main

import (
	"fmt"

	"github.com/tilewright/tilewright/tuner"
	"github.com/tilewright/tilewright/tuner/report"
)

// tunedJSON is the outcome of tuning one fusion: a winner, a refusal or an error.
type tunedJSON struct {
	// File that the fusion was read from.
	File string `json:"file"`
	// Name of the fusion.
	Fusion string `json:"fusion"`
	// Plan is the winner.
	Plan string `json:"plan,omitempty"`
	// Seconds is its median.
	Seconds float64 `json:"seconds,omitempty"`
	// Default is the plan that the winner is compared with.
	Default string `json:"default,omitempty"`
	// Speedup is the winner's speed over the default's: median, lower and upper
	// end. An upper end of 0 is unknown.
	Speedup [3]float64 `json:"speedup"`
	// Regret is an upper bound on how much slower than the best of the tried
	// plans the winner is; −1 is unknown.
	Regret float64 `json:"regret"`
	// Ties counts the plans that are equal to the winner.
	Ties int `json:"ties"`
	// Tried counts the plans that were verified.
	Tried int `json:"tried"`
	// Legal counts the plans that the backend offers.
	Legal int64 `json:"legal"`
	// Hit says that the winner was stored already: nothing was measured.
	Hit bool `json:"hit"`
	// Untimed says that the device cannot time: Seconds and Speedup are
	// predictions of the cost model.
	Untimed bool `json:"untimed,omitempty"`
	// Refused is why the fusion has no tiles.
	Refused string `json:"refused,omitempty"`
	// Error is why tuning failed.
	Error string `json:"error,omitempty"`
}

// fill takes over a result.
func (t *tunedJSON) fill(r tuner.Result) {
	t.Plan = r.Record.Plan
	t.Seconds = r.Record.Seconds
	t.Default = r.Record.Default
	t.Speedup = r.Record.Speedup
	t.Regret = r.Record.Regret
	t.Ties = len(r.Record.Ties)
	t.Tried = len(r.Record.Trials)
	t.Legal = r.Record.Legal
	t.Hit = r.Hit
	t.Untimed = r.Record.Untimed
}

// String is the outcome as one line for people.
func (t tunedJSON) String() string {
	name, plan, seconds := t.Fusion, t.Plan, report.Seconds(t.Seconds)
	switch {
	case t.Error != "":
		return fmt.Sprintf("%s: failed: %s", name, t.Error)
	case t.Refused != "":
		return fmt.Sprintf("%s: refused: %s", name, t.Refused)
	case t.Hit && t.Untimed:
		return fmt.Sprintf("%s: known: %s, predicted %s: nothing was timed", name, plan, seconds)
	case t.Untimed:
		return fmt.Sprintf("%s: plan %s, predicted %s, %s by the cost model: nothing was timed; %d checked, %d offered%s",
			name, plan, seconds, t.predicted(), t.Tried, t.Legal, tiesText(t.Ties))
	case t.Hit:
		return fmt.Sprintf("%s: known: %s, %s", name, plan, seconds)
	}
	return fmt.Sprintf("%s: %s, plan %s, %s; regret %s of %d tried, %d offered%s",
		name, seconds, plan, t.speedup(), regretText(t.Regret), t.Tried, t.Legal, tiesText(t.Ties))
}

// predicted compares the winner with the default plan by the cost model.
func (t tunedJSON) predicted() string {
	if t.Plan == t.Default {
		return "the default, the best"
	}
	return fmt.Sprintf("%.2f× the default's speed", t.Speedup[0])
}

// speedup compares the winner with the default plan, with the interval of the
// measurement.
func (t tunedJSON) speedup() string {
	if t.Plan == t.Default {
		return "the default, which nothing beat"
	}
	median, low, high := t.Speedup[0], t.Speedup[1], report.UpperEnd(t.Speedup[2])
	return fmt.Sprintf("%.2f× the default's speed (%.2f–%s)", median, low, high)
}

// tiesText mentions the plans that are equal to a winner, if there are any.
func tiesText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", tied with %d", n)
}

// regretText formats an upper bound of the regret, which is negative where it is
// unknown.
func regretText(regret float64) string {
	if regret < 0 {
		return "unknown"
	}
	return fmt.Sprintf("≤ %.1f%%", 100*regret)
}
