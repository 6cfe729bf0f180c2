package tuner

import (
	"encoding/json"
	"io"
	"time"
)

// A Trace writes events as lines of JSON, one an event. Every line has the
// fields time, kind and fusion; the kind says which of the others it has:
//
//	turn     purpose, number, of, left, source        Turn
//	phase    phase                                    Began
//	hit      plan, seconds                            Found
//	damaged  reason                                   Damaged
//	busy     reason                                   Busy
//	refused  reason                                   Refused
//	ranked   legal                                    Ranked
//	start    of, left                                 Started
//	checked  plan, seconds, of, tried, left           Verified
//	tried    plan, seconds, of, tried, left           Timed
//	failed   plan, reason                             Failed
//	dropped  plan, ratio                              Dropped
//	block    plan, seconds, ratio, live, block, left  BlockDone
//	unkept   reason                                   Unkept
//	winner   plan, seconds, ratio, reason             Chosen
//
// A field whose value is zero is left out. left is the rest of the budget in
// seconds; of a turn it is that of the run.
type Trace struct {
	enc *json.Encoder
	err error
}

// NewTrace makes a trace that writes to w.
func NewTrace(w io.Writer) *Trace {
	return &Trace{enc: json.NewEncoder(w)}
}

// Observe writes one event; it is a value for Options.Observe. After an error
// of the writer the following events are still tried.
func (t *Trace) Observe(e Event) {
	err := t.enc.Encode(newTraceLine(e))
	if err != nil && t.err == nil {
		t.err = err
	}
}

// Err is the first error of the writer.
func (t *Trace) Err() error { return t.err }

// traceLine is the stored form of an event.
type traceLine struct {
	Time    time.Time `json:"time"`
	Kind    string    `json:"kind"`
	Fusion  string    `json:"fusion"`
	Source  string    `json:"source,omitempty"`
	Plan    string    `json:"plan,omitempty"`
	Seconds float64   `json:"seconds,omitempty"`
	Ratio   float64   `json:"ratio,omitempty"`
	Legal   int64     `json:"legal,omitempty"`
	Purpose string    `json:"purpose,omitempty"`
	Phase   string    `json:"phase,omitempty"`
	Number  int       `json:"number,omitempty"`
	Of      int       `json:"of,omitempty"`
	Tried   int       `json:"tried,omitempty"`
	Live    int       `json:"live,omitempty"`
	Block   int       `json:"block,omitempty"`
	Left    float64   `json:"left,omitempty"`
	Reason  string    `json:"reason,omitempty"`
}

func newTraceLine(e Event) traceLine {
	about := e.About()
	l := traceLine{Time: about.Time, Fusion: about.Fusion}
	switch e := e.(type) {
	case Turn:
		l.Kind, l.Purpose = "turn", e.Purpose
		l.Source = e.Source.String()
		l.Number, l.Of = e.Number, e.Of
		if !e.End.IsZero() {
			l.Left = e.End.Sub(e.Time).Seconds()
		}
	case Began:
		l.Kind = "phase"
		l.Phase = string(e.Phase)
	case Found:
		l.Kind = "hit"
		l.Plan = e.Plan
		l.Seconds = e.Seconds
	case Damaged:
		l.Kind = "damaged"
		l.Reason = e.Detail
	case Busy:
		l.Kind = "busy"
		l.Reason = e.Detail
	case Refused:
		l.Kind = "refused"
		l.Reason = e.Reason
	case Ranked:
		l.Kind = "ranked"
		l.Legal = e.Legal
	case Started:
		l.Kind, l.Of, l.Left = "start", e.Candidates, e.Remaining.Seconds()
	case Verified:
		l.Kind = "checked"
		l.Plan = e.Plan
		l.Seconds = e.Predicted
		l.Tried, l.Of, l.Left = e.Tried,
			e.Candidates, e.Remaining.Seconds()
	case Timed:
		l.Kind = "tried"
		l.Plan = e.Plan
		l.Seconds = e.Seconds
		l.Tried, l.Of, l.Left = e.Tried,
			e.Candidates, e.Remaining.Seconds()
	case Failed:
		l.Kind = "failed"
		l.Plan = e.Plan
		l.Reason = e.Failure + ": " + e.Detail
	case Dropped:
		l.Kind = "dropped"
		l.Plan = e.Plan
		l.Ratio = e.Ratio
	case BlockDone:
		l.Kind = "block"
		l.Plan = e.Best
		l.Seconds = e.Seconds
		l.Ratio = e.Ratio
		l.Live, l.Block, l.Left = e.Candidates,
			e.Block, e.Remaining.Seconds()
	case LeftOut:
		l.Kind = "left out"
		l.Block = e.Block
		l.Seconds = e.Disturbed.Seconds()
		l.Reason = "something else ran on the device"
	case Unkept:
		l.Kind = "unkept"
		l.Reason = e.Detail
	case Chosen:
		l.Kind = "winner"
		l.Plan = e.Plan
		l.Seconds = e.Seconds
		l.Ratio = e.Ratio
		if e.Untimed {
			l.Reason = "by the cost model: nothing was timed"
		}
	}
	return l
}
