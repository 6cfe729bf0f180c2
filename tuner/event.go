package tuner

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// An Event is one line of the trace. Kind says which fields mean something:
//
//	hit      a stored winner was found: Plan, Seconds
//	refused  the fusion cannot be tuned: Reason
//	ranked   the model ordered the Legal plans
//	start    a race begins: Of candidates, Left seconds at most
//	checked  a candidate went through the gate of a device that cannot time: Plan, Seconds (predicted), Tried
//	tried    a candidate was checked and timed for the first time: Plan, Seconds, Tried
//	failed   a candidate is out: Plan, Reason
//	dropped  a candidate lost: Plan, Ratio (its time over the best's)
//	block    every live candidate was timed once more: Block, Live, Plan (the best so far), Seconds, Ratio (default's time over it), Left
//	winner   the race is over: Plan, Seconds, Ratio (default's time over it), Reason when nothing was timed
type Event struct {
	Time    time.Time `json:"time"`
	Kind    string    `json:"kind"`
	Fusion  string    `json:"fusion"`
	Plan    string    `json:"plan,omitempty"`
	Seconds float64   `json:"seconds,omitempty"`
	Ratio   float64   `json:"ratio,omitempty"`
	Legal   int64     `json:"legal,omitempty"`
	Of      int       `json:"of,omitempty"`
	Tried   int       `json:"tried,omitempty"`
	Live    int       `json:"live,omitempty"`
	Block   int       `json:"block,omitempty"`
	Left    float64   `json:"left,omitempty"` // seconds of budget
	Reason  string    `json:"reason,omitempty"`
}

func (t *Tuner) emit(e Event) {
	if t.Options.Observe != nil {
		e.Time = t.Options.now()
		t.Options.Observe(e)
	}
}

// Trace returns an observer that writes events as JSON lines. The first error
// of w is returned by the function that comes with it.
func Trace(w io.Writer) (observe func(Event), failed func() error) {
	enc := json.NewEncoder(w)
	var first error
	return func(e Event) {
			err := enc.Encode(e)
			if err != nil && first == nil {
				first = err
			}
		}, func() error {
			return first
		}
}

// ReadTrace reads what Trace wrote. A last line that was cut short by a crash
// is left out.
func ReadTrace(r io.Reader) ([]Event, error) {
	var all []Event
	dec := json.NewDecoder(r)
	for {
		var e Event
		switch err := dec.Decode(&e); err {
		case nil:
			all = append(all, e)
		case io.EOF, io.ErrUnexpectedEOF:
			return all, nil
		default:
			return all, err
		}
	}
}

// Seconds prints a time, given in seconds, with three digits: 1.23 ms. Nothing is -.
func Seconds(s float64) string {
	switch {
	case s == 0:
		return "-"
	case s < 0:
		return "-" + Seconds(-s)
	case s < 1e-6:
		return fmt.Sprintf("%.3g ns", s*1e9)
	case s < 1e-3:
		return fmt.Sprintf("%.3g µs", s*1e6)
	case s < 1:
		return fmt.Sprintf("%.3g ms", s*1e3)
	}
	return fmt.Sprintf("%.3g s", s)
}
