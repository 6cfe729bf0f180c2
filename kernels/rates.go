package kernels

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// A Rate is a measured rate of a device: flop/s or bytes/s.
type Rate struct {
	// Value is what most rounds of measuring came near to; 0 is unknown.
	Value float64 `json:"value"`
	// Spread is the interquartile range of the rounds over their median.
	Spread float64 `json:"spread"`
	// Kept is Level.Kept, in bytes; 0 where it was not measured.
	Kept int64 `json:"kept,omitempty"`
	// Mismeasured is why the value that was measured cannot be true, and Value is
	// that of a typical device instead; "" where nothing contradicts it.
	Mismeasured string `json:"mismeasured,omitempty"`
}

// Rates are what can be measured of a device and is stored, so that it is not measured
// at every start.
type Rates struct {
	// FLOPS is Device.FLOPS, and Levels are the bandwidths of Device.Levels.
	FLOPS  Rate   `json:"flops"`
	Levels []Rate `json:"levels"`
	// Rounds that were taken, and how many of them were left out because something
	// else ran meanwhile.
	Rounds  int `json:"rounds"`
	LeftOut int `json:"leftOut,omitempty"`
	// Busy is set where too few quiet rounds were left: the rates are of a machine that
	// others used, and lower than what it can do.
	Busy bool `json:"busy,omitempty"`
}

// A Calibrated backend measures the rates of its device, or is told them: before the
// first call of Device, or after it, which then describes the device by them.
type Calibrated interface {
	Backend
	// Calibrate measures for a time, at least once. The error is the cause of a context
	// that ended before.
	Calibrate(ctx context.Context, span time.Duration) (Rates, error)
	// SetRates says what the rates are. Those of another number of levels are an error.
	SetRates(Rates) error
	// TypicalRates are rates of devices like this one, from data sheets.
	TypicalRates() Rates
}

// outermostSlack is how much faster an outer level may be measured than an inner one
// before the two contradict each other: two that are as fast differ by noise.
const outermostSlack = 0.05

// Plausible replaces rates that contradict others: of two levels of memory the inner
// one is never slower. What was measured of it is too low then, since something else ran,
// and its value becomes the typical one, or that of the outer level where it is more.
// A rate that was found to be mismeasured stays so.
func (r Rates) Plausible(d Device, typical Rates) Rates {
	r.Levels = slices.Clone(r.Levels)
	for k := len(r.Levels) - 2; k >= 0; k-- {
		inner, outer := &r.Levels[k], r.Levels[k+1].Value
		if inner.Value*(1+outermostSlack) >= outer {
			continue
		}
		inner.Mismeasured = fmt.Sprintf(
			"%s was measured at %.3g GB/s, %s around it at %.3g",
			d.Levels[k].Name, inner.Value/1e9, d.Levels[k+1].Name, outer/1e9,
		)
		inner.Value = max(outer, typical.Levels[k].Value)
	}
	return r
}

// quietRounds are as many as `calibrate` takes in ten seconds, and no measurement on the
// way to something else.
const quietRounds = 200

// Apply is the device with the rates.
func (r Rates) Apply(d Device) (Device, error) {
	if len(r.Levels) != len(d.Levels) {
		return d, fmt.Errorf("rates of %d levels of memory, %s has %d", len(r.Levels), d.Name, len(d.Levels))
	}
	d.FLOPS = r.FLOPS.Value
	d.Quiet = !r.Busy && r.Rounds-r.LeftOut >= quietRounds && len(r.Mismeasured()) == 0
	d.Levels = slices.Clone(d.Levels)
	for k, rate := range r.Levels {
		d.Levels[k].Bandwidth = rate.Value
		d.Levels[k].Kept = rate.Kept
	}
	return d, nil
}

// Mismeasured are the reasons why rates are not those that were measured.
func (r Rates) Mismeasured() (why []string) {
	for _, x := range append([]Rate{r.FLOPS}, r.Levels...) {
		if x.Mismeasured != "" {
			why = append(why, x.Mismeasured)
		}
	}
	return why
}
