package kernels

import (
	"encoding/json"
	"fmt"
)

// Evidence is what a device saw of itself since it was opened, while kernels
// were timed: whether their times can be compared. A Backend that has an
// anchor, work that is always the same, has a method Saw that returns it.
type Evidence struct {
	Anchors int        `json:"anchors"`        // times the anchor was timed
	Hertz   [2]float64 `json:"hertz"`          // lowest and highest clock seen
	Seconds [2]float64 `json:"seconds"`        // fastest and slowest anchor
	Drifts  int        `json:"drifts"`         // anchors that were off the one before, so that a sample was taken again
	Runs    int        `json:"runs,omitempty"` // launches of the latest sample
	Sets    int        `json:"sets,omitempty"` // of arrays that it went through in turn, so that caches stay cold
}

func (e Evidence) String() string {
	return fmt.Sprintf("clock %.0f to %.0f MHz over %d anchors, the slowest %.1f %% over the fastest; %d samples taken again; %d launches a sample over %d sets of arrays",
		e.Hertz[0]/1e6, e.Hertz[1]/1e6, e.Anchors, 100*(e.Seconds[1]/max(e.Seconds[0], 1e-12)-1), e.Drifts, e.Runs, e.Sets)
}

// EvidenceText is what a record's evidence says, in a line; "" where there is
// none, or it is of another version.
func EvidenceText(record json.RawMessage) string {
	var e Evidence
	if err := json.Unmarshal(record, &e); err != nil || e.Anchors == 0 {
		return ""
	}
	return e.String()
}
