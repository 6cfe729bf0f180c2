package cache

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// Limits of what is stored, so that an import cannot bring in a file of any size.
const (
	maxNameBytes = 1 << 10 // of a device, backend or revision
	maxPlanBytes = 1 << 12 // of the text of a plan
)

// plausible refuses a record whose values cannot have been measured. Records are
// checked when they are stored, imported and read.
func (r *Record) plausible() error {
	switch {
	case r.Plan == "" || len(r.Plan) > maxPlanBytes:
		return errors.New("a record needs a plan")
	case !isDuration(r.Seconds):
		return fmt.Errorf("%v seconds is not a time", r.Seconds)
	case r.DefaultSeconds != 0 && !isDuration(r.DefaultSeconds):
		return fmt.Errorf("%v seconds is not a time of the default", r.DefaultSeconds)
	case r.Regret != -1 && !(r.Regret >= 0) ||
		math.IsInf(r.Regret, 0):
		return fmt.Errorf("%v is not a regret", r.Regret)
	case r.Roof != nil && !r.Roof.plausible(r.Seconds):
		return fmt.Errorf("a roof of %v seconds, and a winner of %v", r.Roof.Seconds, r.Seconds)
	case r.Legal < 0:
		return fmt.Errorf("%d is not a number of plans", r.Legal)
	case r.When.Year() < 0 || r.When.Year() > 9999:
		return fmt.Errorf("%v is not a date", r.When)
	}
	for _, s := range r.Speedup {
		if !(s >= 0) || math.IsInf(s, 0) {
			return fmt.Errorf("%v is not a speedup", s)
		}
	}
	return errors.Join(r.Key.plausible(), r.Certificate.plausible(), plausible(r.Trials))
}

// plausible reports whether a roof is a time, and called mismeasured by a winner that is
// faster.
func (r *Roof) plausible(winner float64) bool {
	return isDuration(r.Seconds) && len(r.By) <= maxNameBytes && (winner >= r.Seconds || r.Mismeasured)
}

// plausible refuses a key without a device or a backend.
func (k *Key) plausible() error {
	for _, s := range k.names() {
		if len(s) > maxNameBytes {
			return fmt.Errorf("%.20q… is too long for a key", s)
		}
	}
	if k.Device == "" || k.Backend == "" {
		return errors.New("a record needs a device and a backend")
	}
	return nil
}

// plausible refuses trials of which one cannot be true.
func plausible(ts []Trial) error {
	for _, t := range ts {
		if err := t.plausible(); err != nil {
			return fmt.Errorf("trial of plan %.60q: %w", t.Plan, err)
		}
	}
	return nil
}

// plausible refuses a trial whose slices do not belong together or whose values
// are no times, clocks or blocks.
func (t *Trial) plausible() error {
	switch {
	case t.Plan == "" || len(t.Plan) > maxPlanBytes:
		return errors.New("a trial needs a plan")
	case len(t.Blocks) != 0 && len(t.Blocks) != len(t.Samples):
		return fmt.Errorf("%d samples in %d blocks", len(t.Samples), len(t.Blocks))
	case len(t.Clocks) != 0 && len(t.Clocks) != len(t.Samples):
		return fmt.Errorf("%d clocks of %d samples", len(t.Clocks), len(t.Samples))
	case math.IsNaN(t.Predicted) || math.IsInf(t.Predicted, 0):
		return fmt.Errorf("a prediction of %v seconds", t.Predicted)
	case len(t.Features) > 0 && !json.Valid(t.Features):
		return errors.New("its features are not JSON")
	}
	for _, s := range t.Samples {
		if !isDuration(s) {
			return fmt.Errorf("%v seconds is not a time", s)
		}
	}
	for _, h := range t.Clocks {
		if h != 0 && !isDuration(h) {
			return fmt.Errorf("%v Hz is not a clock", h)
		}
	}
	for _, b := range t.Blocks {
		if b < 0 || b > maxBlockNumber {
			return fmt.Errorf("%d is not a block", b)
		}
	}
	return nil
}

// isDuration reports whether a number of seconds, or of Hz, is positive and
// finite.
func isDuration(s float64) bool {
	return s > 0 && !math.IsInf(s, 0)
}
