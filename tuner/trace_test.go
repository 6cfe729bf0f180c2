package tuner

import (
	"strings"
	"testing"
	"time"
)

// traceGolden is the stored form of every kind of event: readers of traces depend
// on each byte of it.
const traceGolden = `{"time":"2001-09-09T01:46:40Z","kind":"hit","fusion":"f","plan":"16 v=4","seconds":0.0019}
{"time":"2001-09-09T01:46:40Z","kind":"refused","fusion":"f","reason":"y (sort): no"}
{"time":"2001-09-09T01:46:40Z","kind":"ranked","fusion":"f","legal":7}
{"time":"2001-09-09T01:46:40Z","kind":"start","fusion":"f","of":7,"left":10}
{"time":"2001-09-09T01:46:40Z","kind":"checked","fusion":"f","plan":"16 v=0","seconds":0.000001,"of":3,"tried":1,"left":9.998999801}
{"time":"2001-09-09T01:46:40Z","kind":"tried","fusion":"f","plan":"16 v=0","seconds":0.002,"of":7,"tried":1,"left":9.991983116}
{"time":"2001-09-09T01:46:40Z","kind":"failed","fusion":"f","plan":"16 v=1","reason":"rejected: no"}
{"time":"2001-09-09T01:46:40Z","kind":"dropped","fusion":"f","plan":"16 v=4","ratio":3.95}
{"time":"2001-09-09T01:46:40Z","kind":"block","fusion":"f","plan":"16 v=4","seconds":0.0019,"ratio":1.04,"live":2,"block":2,"left":9.979371918}
{"time":"2001-09-09T01:46:40Z","kind":"winner","fusion":"f","plan":"16 v=4","seconds":0.0019,"ratio":1.05}
{"time":"2001-09-09T01:46:40Z","kind":"winner","fusion":"f","plan":"16 v=4","seconds":0.0019,"ratio":1.05,"reason":"by the cost model: nothing was timed"}
`

func TestTraceLines(t *testing.T) {
	h := EventHeader{Time: time.Unix(1e9, 0).UTC(), Fusion: "f"}
	var out strings.Builder
	trace := NewTrace(&out)
	for _, e := range []Event{
		Found{h, "16 v=4", 0.0019},
		Refused{h, "y (sort): no"},
		Ranked{h, 7},
		Started{h, 7, 10 * time.Second},
		Verified{h, "16 v=0", 1e-6, 1, 3, 9998999801},
		Timed{h, "16 v=0", 2e-3, 1, 7, 9991983116},
		Failed{h, "16 v=1", "rejected", "no"},
		Dropped{h, "16 v=4", 3.95},
		BlockDone{h, 2, 2, "16 v=4", 0.0019, 1.04, 9979371918},
		Chosen{h, "16 v=4", 0.0019, 1.05, false},
		Chosen{h, "16 v=4", 0.0019, 1.05, true},
	} {
		trace.Observe(e)
	}
	if err := trace.Err(); err != nil {
		t.Fatal(err)
	}
	if out.String() != traceGolden {
		t.Errorf("got\n%s\nwant\n%s", out.String(), traceGolden)
	}
}

// failingWriter fails from its first write on.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errFull }

var errFull = &NoWinnerError{Err: ErrNothingRan} // any error

func TestTraceKeepsTheFirstError(t *testing.T) {
	trace := NewTrace(failingWriter{})
	trace.Observe(Ranked{})
	trace.Observe(Ranked{})
	if trace.Err() != error(errFull) {
		t.Errorf("got %v", trace.Err())
	}
}
