package tuner

import (
	"context"
	"path/filepath"
	"testing"
	"time"
)

// A fusion whose runs take longer than the budget is over after a few of them, with the
// default as a provisional winner; the next race goes on to another plan.
func TestLongRunsOfAShortBudget(t *testing.T) {
	l := newLab(3, 0.01, 2.3, 1, 1, 1, 1, 1)
	tuner := l.tuner(filepath.Join(t.TempDir(), "t.db"), Options{Budget: 2 * time.Second})
	var runs []int
	tune := func() Result {
		before := l.runs
		r, err := tuner.Tune(context.Background(), fusionOf(t))
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, l.runs-before)
		return r
	}
	if r := tune(); !r.Record.Provisional || r.Record.Regret >= 0 || len(r.Record.Trials) != 1 {
		t.Errorf("provisional %v, regret %v of %d plans tried", r.Record.Provisional, r.Record.Regret, len(r.Record.Trials))
	}
	if r := tune(); r.Record.Provisional || len(r.Record.Trials) < 2 {
		t.Errorf("the second race: provisional %v, %d plans tried", r.Record.Provisional, len(r.Record.Trials))
	}
	if runs[0] > 7 || runs[1] > 16 {
		t.Errorf("%v runs", runs)
	}
}
