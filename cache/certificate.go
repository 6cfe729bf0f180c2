package cache

import (
	"errors"
	"fmt"
)

// A Certificate is what a race claims of its winner, and how sure it is: that the winner
// takes at most Record.Regret more time than the best of all plans that were tried and
// ran, those that were dropped included. The claim as a whole is wrong with a probability
// of at most 1 − Confidence, as long as the blocks of a visit are alike.
type Certificate struct {
	// Confidence of Record.Regret, for all comparisons together.
	Confidence float64 `json:"confidence"`
	// Comparisons of the winner with every other plan that ran, in the order of the
	// trials.
	Comparisons []Comparison `json:"comparisons"`
	// Visits are the times at which blocks were taken that count.
	Visits []Visit `json:"visits"`
	// Ended says why no more was measured: one of the Ended constants.
	Ended string `json:"ended"`
	// Untried plans were offered and not tried. Gain is by which share of the winner's
	// time the best of another GainOf of them is expected to be faster, by the model of
	// the search: that is no part of the claim. In records from before GainOf was kept it
	// is 0, and Gain is that of the next plan.
	Untried int64   `json:"untried"`
	Gain    float64 `json:"gain"`
	GainOf  int64   `json:"gainOf,omitempty"`
}

// The values of Certificate.Ended.
const (
	EndedSettled = "settled" // one plan is left
	EndedBlocks  = "blocks"  // the most blocks were taken: what is left counts as tied
	EndedBudget  = "budget"  // more time would narrow the intervals
	EndedRegret  = "regret"  // the regret is as low as was asked for
)

// A Comparison is the winner's time over that of another plan.
type Comparison struct {
	Plan string `json:"plan"`
	// Blocks in which both were timed.
	Blocks int `json:"blocks"`
	// Ratio is the median of the ratios of these blocks.
	Ratio float64 `json:"ratio"`
	// AtMost is the upper end of the ratio, at the confidence of all comparisons
	// together; 0 is unknown, since there were too few blocks.
	AtMost float64 `json:"atMost"`
	// AtLeast is the lower end, of which the same holds; also 0 in records from before
	// it was kept.
	AtLeast float64 `json:"atLeast,omitempty"`
}

// A Visit is one session of a race, and the state of the machine around it.
type Visit struct {
	// Blocks that were taken, and those of them that were left out because something else
	// ran on the device.
	Blocks  int `json:"blocks"`
	LeftOut int `json:"leftOut,omitempty"`
	// Quiet is the share of the device that was there for kernels on all lanes, before and
	// after; 0 is unknown.
	Quiet [2]float64 `json:"quiet"`
}

// Next says which of the untried plans Gain is of: "another 100 of 4080 untried plans".
func (c *Certificate) Next() string {
	if c.GainOf > 1 {
		return fmt.Sprintf("another %d of %d untried plans", c.GainOf, c.Untried)
	}
	return fmt.Sprintf("the next of %d untried plans", c.Untried)
}

// plausible refuses a certificate whose numbers cannot be.
func (c *Certificate) plausible() error {
	if c == nil {
		return nil
	}
	if !(c.Confidence > 0 && c.Confidence < 1) || !(c.Gain >= 0) || min(c.Untried, c.GainOf) < 0 {
		return errors.New("a certificate of no confidence")
	}
	for _, x := range c.Comparisons {
		if err := x.plausible(); err != nil {
			return err
		}
	}
	return nil
}

// plausible refuses a comparison whose numbers cannot be.
func (x *Comparison) plausible() error {
	ends := x.AtLeast >= 0 && x.AtMost >= 0
	if x.Plan == "" || len(x.Plan) > maxPlanBytes ||
		!(x.Ratio >= 0) || !ends || x.Blocks < 0 {
		return fmt.Errorf(
			"a comparison of %v, at least %v, at most %v, with plan %.60q",
			x.Ratio, x.AtLeast, x.AtMost, x.Plan,
		)
	}
	return nil
}
