package tuner

import (
	"errors"
	"path/filepath"
	"testing"
)

// A claim that was true is not refuted when it is measured again; one that is not is, with
// the plan that refutes it. Nothing is stored.
func TestRetest(t *testing.T) {
	l := newLab(4, 0.02, 2e-3, 1e-3, 1.3e-3, 1.6e-3)
	tn := l.tuner(filepath.Join(t.TempDir(), "t.db"), Options{})
	r, err := tn.Tune(t.Context(), fusionOf(t))
	if err != nil || r.Record.Plan != "16 v=1" {
		t.Fatalf("%s won, %v", r.Record.Plan, err)
	}
	got, err := tn.Retest(t.Context(), &r.Record)
	if err != nil || len(got.Refuted) > 0 || len(got.Comparisons) != 3 || got.Regret != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	l.truth[2] = 0.8e-3 // another machine by the same name
	got, err = tn.Retest(t.Context(), &r.Record)
	if err != nil || len(got.Refuted) != 1 || got.Refuted[0] != "16 v=2" || got.Regret < 0.2 {
		t.Errorf("%+v, %v", got, err)
	}
	stored, _, err := tn.Lookup(fusionOf(t))
	if err != nil || samplesOf(stored.Record.Trials) != samplesOf(r.Record.Trials) {
		t.Errorf("samples were stored: %v", err)
	}
	r.Record.Certificate = nil
	var none *NoClaimError
	if _, err := tn.Retest(t.Context(), &r.Record); !errors.As(err, &none) {
		t.Errorf("a record without a claim: %v", err)
	}
}
