package tuner

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
)

// A busyLab is a lab on which something else runs: in every nth look a millisecond.
type busyLab struct {
	*lab
	every, looks int
	waited       time.Duration
}

func (l *busyLab) Quiet() float64 { return 0.7 }

func (l *busyLab) Disturbance() kernels.Disturbance {
	if l.looks++; l.looks%l.every == 0 {
		l.waited += time.Second
	}
	return kernels.Disturbance{Waited: l.waited}
}

// Blocks during which something else ran are left out, with their samples, and reported;
// on a machine that is always busy at most half of them.
func TestDisturbedBlocks(t *testing.T) {
	for _, c := range []struct{ every, least, most int }{
		{1000, 0, 0}, {5, 6, 12}, {1, 35, 46},
	} {
		l := &busyLab{lab: newLab(2, 0.02, 2e-3, 1e-3, 1e-3, 1e-3), every: c.every}
		reported := 0
		tn := &Tuner{
			Backend: l, Cache: cache.Open(filepath.Join(t.TempDir(), "t.db")),
			Options: Options{Observe: func(e Event) {
				if _, ok := e.(LeftOut); ok {
					reported++
				}
			}},
			clock: func() time.Time { return l.now },
		}
		r, err := tn.Tune(t.Context(), fusionOf(t))
		if err != nil {
			t.Fatal(err)
		}
		visits := r.Record.Certificate.Visits
		if len(visits) != 1 || visits[0].LeftOut < c.least || visits[0].LeftOut > c.most ||
			reported != visits[0].LeftOut || visits[0].Quiet != [2]float64{0.7, 0.7} {
			t.Errorf("every %d: %+v, %d reported", c.every, visits, reported)
		}
		for _, x := range r.Record.Trials {
			if want := visits[0].Blocks - visits[0].LeftOut + 1; len(x.Samples) > want {
				t.Errorf("every %d: %d samples of %s, at most %d blocks count", c.every, len(x.Samples), x.Plan, want)
			}
		}
	}
}

// Where others were raced for half a minute, a fusion is visited once more; its record has
// the blocks of both visits and replaces the first. The last fusions have one visit, since
// nothing is waited for. So it is in a run with a budget of its own.
func TestTwoVisits(t *testing.T) {
	for _, budget := range []time.Duration{0, 10 * time.Minute} {
		t.Run(budget.String(), func(t *testing.T) { twoVisits(t, budget) })
	}
}

func twoVisits(t *testing.T, budget time.Duration) {
	l := newLab(3, 0.02, 0.3, 0.2, 0.2)
	tn := l.tuner(filepath.Join(t.TempDir(), "t.db"), Options{Budget: 40 * time.Second})
	var order []string
	s := &Schedule{
		Tuner:    tn,
		Workload: workloadOf(t, moduleText([]int{16, 32, 48}, []int{3, 2, 1})),
		Budget:   budget,
		Done:     func(x *Item) { order = append(order, x.Fusion.Name) },
	}
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	visits := map[string]int{}
	for _, x := range s.Workload.Items {
		stored, found, err := tn.Lookup(x.Fusion)
		if !found || err != nil || stored.Record.Certificate == nil {
			t.Fatalf("%s: found %v, %v", x.Fusion.Name, found, err)
		}
		c := stored.Record.Certificate
		visits[x.Fusion.Name] = len(c.Visits)
		blocks := 0
		for _, v := range c.Visits {
			blocks += v.Blocks
		}
		for _, y := range c.Comparisons {
			if y.Blocks > blocks || y.Blocks <= blocks/2 && len(c.Visits) == 2 && !dropped(&stored.Record, y.Plan) {
				t.Errorf("%s: %d blocks beside %s in visits of %d", x.Fusion.Name, y.Blocks, y.Plan, blocks)
			}
		}
	}
	if visits["f0"] != 2 || budget == 0 && visits["f2"] != 1 || len(order) != 3 || order[0] != "f0" {
		t.Errorf("visits %v, done %v", visits, order)
	}
}

// dropped reports whether a plan was dropped.
func dropped(r *cache.Record, plan string) bool {
	for _, x := range r.Trials {
		if x.Plan == plan {
			return x.Dropped
		}
	}
	return false
}
