package tuner

import (
	"testing"

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
