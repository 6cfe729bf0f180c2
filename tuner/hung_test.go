package tuner

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels/check"
)

// A plan that hangs ends the race, since nothing can be timed beside it. It is
// recorded with the reason, and the next process goes on without it.
func TestHungPlanIsLeft(t *testing.T) {
	db := filepath.Join(t.TempDir(), "t.db")
	l := newLab(5, 0.02, 2e-3, 1.5e-3, 1.0e-3, 1.2e-3)
	l.broken[1] = "deaf"
	tn := l.tuner(db, Options{})
	_, err := tn.Tune(t.Context(), fusionOf(t))
	var hung *HungError
	var left *check.Hung
	if !errors.As(err, &hung) || !errors.As(err, &left) || hung.Plan != "16 v=1" {
		t.Fatalf("%v", err)
	}
	kept, err := tn.Cache.Evidence(Key(fusionOf(t), tn.identity()))
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	for _, x := range kept {
		reasons[x.Plan] = x.Failure
	}
	if reasons["16 v=1"] != cache.FailedTimeout {
		t.Errorf("kept: %v", reasons)
	}
	// The kernel of the first lab still hangs.
	again := newLab(5, 0.02, 2e-3, 1.5e-3, 1.0e-3, 1.2e-3)
	r, err := again.tuner(db, Options{}).Tune(t.Context(), fusionOf(t))
	if err != nil || r.Record.Plan != "16 v=2" {
		t.Errorf("another process finds %s, %v", r.Record.Plan, err)
	}
}

// A context that ends while a kernel hangs ends Tune; the plan is not called a
// failure then, since it may only have been slow.
func TestHungPlanDoesNotHoldAContext(t *testing.T) {
	l := newLab(5, 0.02, 2e-3, 1.5e-3)
	l.broken[0] = "deaf"
	ctx, cancel := context.WithCancel(t.Context())
	l.stop, l.stopAt = cancel, 1
	tn := l.tuner(filepath.Join(t.TempDir(), "t.db"), Options{})
	_, err := tn.Tune(ctx, fusionOf(t))
	var hung *HungError
	if !errors.Is(err, context.Canceled) || !errors.As(err, &hung) {
		t.Errorf("%v", err)
	}
	if kept, _ := tn.Cache.Evidence(Key(fusionOf(t), tn.identity())); len(kept) > 0 {
		t.Errorf("kept: %v", kept)
	}
}

// A kernel that hangs ends a schedule, whose other fusions wait for another process.
func TestHungPlanEndsASchedule(t *testing.T) {
	l := newLab(5, 0.02, 2e-3, 1.5e-3)
	l.broken[1] = "deaf"
	s := &Schedule{
		Tuner:    l.tuner(filepath.Join(t.TempDir(), "t.db"), Options{}),
		Workload: workloadOf(t, moduleText([]int{16, 32}, []int{2, 1})),
	}
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.Hung() == nil || s.Hung().Plan != "16 v=1" {
		t.Errorf("%v", s.Hung())
	}
	for _, x := range s.Workload.Items {
		if x.State != StateWaiting {
			t.Errorf("%s is in state %d", x.Fusion.Name, x.State)
		}
	}
}
