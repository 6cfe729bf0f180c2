package tuner

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
)

// A blindLab runs but cannot time.
type blindLab struct{ *lab }

func (l blindLab) Device() kernels.Device {
	d := l.lab.Device()
	d.Untimed = true
	return d
}

func (l blindLab) Identity() kernels.Device { return l.Device() }

func (l blindLab) tuneOnce(t *testing.T) (plan string, untimed bool, samples int, failures string) {
	t.Helper()
	x := l.tuner(t.TempDir()+"/t.db", Options{})
	x.Backend = l
	r, err := x.Tune(t.Context(), fusionOf(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, trial := range r.Record.Trials {
		samples += len(trial.Samples)
		failures += trial.Failure
	}
	return r.Record.Plan, r.Record.Untimed && r.Record.Regret == -1 &&
		r.Record.Checked, samples, failures
}

// Where nothing can be timed, the default stays unless the model has something
// beat it, and what is wrong never wins.
func TestUntimedChoosesByModel(t *testing.T) {
	l := blindLab{newLab(1, 0, 1e-3, 1e-4, 1e-3)}
	if plan, untimed, samples, failures := l.tuneOnce(t); plan != "16 v=0" ||
		!untimed || samples != 0 || failures != "" {
		t.Errorf("%s untimed=%v, %d samples, failures %q", plan, untimed, samples, failures)
	}
	l.broken[0], l.broken[1] = "wrong", "rejected"
	plan, untimed, samples, failures := l.tuneOnce(t)
	if plan != "16 v=2" || !untimed || samples != 0 || failures != "wrongrejected" {
		t.Errorf("%s untimed=%v, %d samples, failures %q", plan, untimed, samples, failures)
	}
}

// A fusion of which no check ends in time has not failed: it waits, with the reason, on a
// device that times and on one that does not, with a time for the run and without. One of
// which another plan is wrong has failed.
func TestChecksOutOfTimeWait(t *testing.T) {
	late := map[int64]string{0: "late", 1: "late"}
	for _, c := range []struct {
		broken map[int64]string
		budget time.Duration
		want   State
	}{
		{late, 0, StateWaiting},
		{late, 2 * time.Minute, StateWaiting},
		{map[int64]string{0: "late", 1: "rejected"}, 0, StateWaiting},
		{map[int64]string{0: "late", 1: "wrong"}, 0, StateFailed},
		{map[int64]string{0: "rejected", 1: "error"}, time.Minute, StateFailed},
	} {
		for _, blind := range []bool{true, false} {
			l := newLab(1, 0, 1e-3, 1e-3)
			l.broken = c.broken
			s, _ := l.schedule(t, workloadOf(t, moduleText([]int{16}, []int{1})), c.budget)
			if blind {
				s.Tuner.Backend = blindLab{l}
			}
			if err := s.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			x := s.Workload.Items[0]
			var none *NoWinnerError
			if !errors.As(x.Err, &none) {
				t.Fatal(x.Err)
			}
			waits := none.OutOfTime() != ""
			if x.State != c.want || waits != (c.want == StateWaiting) {
				t.Errorf("%v in %v, blind %v: state %d, %v", c.broken, c.budget, blind, x.State, x.Err)
			}
		}
	}
}

// A check that needs more than the first share of a run has more of it later, and a default
// that was stopped has another try in the next run.
func TestChecksOutOfTimeAreTriedAgain(t *testing.T) {
	for _, blind := range []bool{true, false} {
		l := newLab(1, 0, 1e-3, 1e-3)
		l.broken[0], l.broken[1] = "late", "late"
		db := filepath.Join(t.TempDir(), "t.db")
		one := func() (Result, error) {
			x := l.tuner(db, Options{})
			if blind {
				x.Backend = blindLab{l}
			}
			return x.Tune(t.Context(), fusionOf(t))
		}
		var none *NoWinnerError
		if _, err := one(); !errors.As(err, &none) || none.OutOfTime() == "" {
			t.Fatalf("blind %v: %v", blind, err)
		}
		delete(l.broken, 0)
		if r, err := one(); err != nil || r.Record.Plan != "16 v=0" {
			t.Errorf("blind %v: %s, %v", blind, r.Record.Plan, err)
		}
	}
}

// What is stored of a plan that hangs is a failure in the next process, too.
func TestHungIsNotOutOfTime(t *testing.T) {
	hangs := cache.Trial{Failure: cache.FailedTimeout, Detail: "it hangs: it had not returned"}
	if why := (&NoWinnerError{Trials: []cache.Trial{hangs}}).OutOfTime(); why != "" {
		t.Errorf("%q", why)
	}
}
