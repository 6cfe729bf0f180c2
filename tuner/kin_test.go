package tuner

import (
	"slices"
	"testing"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Of fusions that differ in extents one is raced, and its winner beside the default of
// each of the others, which has a record of its own; another structure is raced by itself.
func TestKin(t *testing.T) {
	l := newLab(3, 0.02, 2e-2, 1.5e-2, 1e-2, 1.2e-2)
	text := moduleText([]int{16, 32, 48, 64}, []int{1, 2, 3, 9})
	w := workloadOf(t, text)
	s, _ := l.schedule(t, w, 9*time.Second)
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := w.Items[0]
	for k, x := range w.Items {
		r := &x.Result.Record
		switch {
		case k == 0 && (x.Like != nil || r.Like != "" || len(r.Trials) != 4):
			t.Errorf("the first has %d trials, like %q", len(r.Trials), r.Like)
		case k > 0 && r.Like != first.Fusion.Name:
			t.Errorf("%s is like %q", x.Fusion.Name, r.Like)
		case k > 0 && (x.Like != first || len(r.Trials) != 2 || r.Plan != first.Result.Record.Plan || r.Speedup[1] < 1.5 || !r.Checked || r.Provisional):
			t.Errorf("%s: %d trials, plan %s, %v", x.Fusion.Name, len(r.Trials), r.Plan, r.Speedup)
		}
	}
	if sum := s.Summary(); sum.Like != 3 || sum.Parts[StateTuned].Fusions != 4 {
		t.Errorf("%+v", sum)
	}
	m, err := hlo.Parse("other", []byte(`HloModule o
f { x = f32[16] parameter(0) ROOT y = f32[16] exponential(x) }
g { x = f32[8] parameter(0) ROOT y = f32[8] negate(x) }
ENTRY e {
  p = f32[8] parameter(0)
  q = f32[16] parameter(1)
  a = f32[8] fusion(p), kind=kLoop, calls=g
  b = f32[16] fusion(q), kind=kLoop, calls=f
  ROOT r = (f32[8], f32[16]) tuple(a, b)
}`))
	if err != nil {
		t.Fatal(err)
	}
	w = &Workload{}
	w.Add("o", m, m.Fusions())
	s, done := l.schedule(t, w, 6*time.Second)
	if err := s.Run(t.Context()); err != nil || slices.ContainsFunc(w.Items, func(x *Item) bool { return x.Like != nil }) {
		t.Errorf("%v, %v", *done, err)
	}
}

// Where the winner of the kin is not legal, all plans are raced, and nothing says that they
// were not.
func TestKinOfAnotherForm(t *testing.T) {
	l := newLab(3, 0.02, 2e-2, 1.5e-2, 1e-2, 1.2e-2)
	w := workloadOf(t, moduleText([]int{16, 32}, []int{1, 1}))
	s, _ := l.schedule(t, w, time.Minute)
	s.reported = map[*Item]bool{}
	s.observer = &observer{}
	s.end = l.now.Add(time.Minute)
	x := w.Items[1]
	x.kin = w.Items[0]
	plan := kernels.Plan{Tiles: symtile.Tiling{16, 16}}
	s.raceWithKin(t.Context(), x, &plan, 9*time.Second)
	r := &x.Result.Record
	if x.State != StateTuned || len(r.Trials) != 4 {
		t.Errorf("state %d, %d trials", x.State, len(r.Trials))
	}
	if x.Like != nil || r.Like != "" || x.visited.IsZero() {
		t.Errorf("like %q, visited %v", r.Like, x.visited)
	}
}
