package tuner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// moduleText is a module that executes several fusions of one operation each: f32[n],
// as often as times says.
func moduleText(sizes []int, times []int) string {
	var fusions, entry strings.Builder
	for k, n := range sizes {
		fmt.Fprintf(&fusions, "f%d {\n  x = f32[%d] parameter(0)\n  ROOT y = f32[%d] negate(x)\n}\n", k, n, n)
		fmt.Fprintf(&entry, "  p%d = f32[%d] parameter(%d)\n", k, n, k)
		for j := range times[k] {
			fmt.Fprintf(&entry, "  c%d.%d = f32[%d] fusion(p%d), kind=kLoop, calls=f%d\n", k, j, n, k, k)
		}
	}
	return "HloModule m\n" + fusions.String() + "ENTRY e {\n" + entry.String() + "  ROOT r = f32[" + fmt.Sprint(sizes[0]) + "] copy(p0)\n}\n"
}

// workloadOf is the workload of a module.
func workloadOf(t *testing.T, text string) *Workload {
	t.Helper()
	m, err := hlo.Parse("m", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	w := &Workload{}
	w.Add("m", m, m.Fusions())
	w.AddOutside(m)
	return w
}

func TestWorkloadCounts(t *testing.T) {
	w := workloadOf(t, moduleText([]int{16, 32, 16}, []int{2, 1, 3}))
	if len(w.Items) != 2 || w.Items[0].Uses != 5 || w.Items[0].Copies != 2 || w.Items[1].Uses != 1 {
		t.Errorf("%d items: %+v", len(w.Items), w.Items)
	}
	if o := w.Outside[hlo.OpCopy]; len(w.Outside) != 1 || o.Instrs != 1 || o.moves[0].bytes != 128 || o.moves[0].uses != 1 {
		t.Errorf("outside: %+v", w.Outside)
	}
	unknown := w.Weigh(map[string]float64{"f1": 2, "c1.0": 1, "c0.1": 8, "other": 1})
	if !slices.Equal(unknown, []string{"other"}) || w.Items[0].Weight != 8 || w.Items[1].Weight != 3 {
		t.Errorf("weights %v and %v, unknown %v", w.Items[0].Weight, w.Items[1].Weight, unknown)
	}
	// What two fusions and the copy come from: 5 runs of 128 bytes, one of 256, one of 128.
	for _, x := range w.Items {
		x.Names = append(x.Names, "step/mul")
	}
	copies := &w.Outside[hlo.OpCopy].moves[0]
	copies.names = append(copies.names, "step/mul")
	if w.Weigh(map[string]float64{"step/mul": 8}); w.Items[0].Weight != 5 || w.Items[1].Weight != 2 || copies.weight != 1 {
		t.Errorf("shared: %v, %v and %v", w.Items[0].Weight, w.Items[1].Weight, copies.weight)
	}
}

// schedule is a run of a lab with several fusions; done lists the states in the order
// in which they were reported.
func (l *lab) schedule(t *testing.T, w *Workload, budget time.Duration) (s *Schedule, done *[]string) {
	done = new([]string)
	s = &Schedule{
		Tuner:    l.tuner(filepath.Join(t.TempDir(), "t.db"), Options{Candidates: 4}),
		Workload: w,
		Budget:   budget,
		Done: func(x *Item) {
			*done = append(*done, fmt.Sprintf("%s %d", x.Fusion.Name, x.State))
		},
	}
	return s, done
}

// What is used most is tuned first, and all of it where the time suffices.
func TestScheduleTunesAll(t *testing.T) {
	for _, budget := range []time.Duration{0, time.Minute} {
		l := newLab(1, 0.02, 2e-3, 1.5e-3, 1e-3, 1.2e-3)
		s, done := l.schedule(t, workloadOf(t, moduleText([]int{16, 32, 48}, []int{1, 9, 3})), budget)
		if err := s.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		want := []string{"f1 4", "f2 4", "f0 4"}
		if !slices.Equal(*done, want) {
			t.Errorf("budget %v: %v, want %v", budget, *done, want)
		}
		sum := s.Summary()
		if sum.Parts[StateTuned].Fusions != 3 || sum.Speedup < 1.8 || sum.Speedup > 2.2 {
			t.Errorf("budget %v: %+v", budget, sum)
		}
		again, _ := l.schedule(t, s.Workload, budget)
		again.Tuner.Cache = s.Tuner.Cache
		for _, x := range again.Workload.Items {
			x.Outcome = Outcome{}
		}
		runs := l.runs
		if err := again.Run(context.Background()); err != nil || l.runs != runs {
			t.Errorf("budget %v: known winners were measured again: %v", budget, err)
		}
	}
}

// A budget that is too short for races still checks every fusion, and keeps its end.
func TestScheduleChecksAllFirst(t *testing.T) {
	l := newLab(2, 0.02, 2e-2, 1e-2, 1e-2, 1e-2)
	w := workloadOf(t, moduleText([]int{16, 32, 48, 64, 80}, []int{1, 2, 3, 4, 5}))
	begin := l.now
	s, _ := l.schedule(t, w, 2*time.Second)
	if err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	states := map[State]int{}
	for _, x := range w.Items {
		states[x.State]++
		if x.Result.Record.Plan == "" || !x.Result.Record.Checked {
			t.Errorf("%s has no plan that was checked", x.Fusion.Name)
		}
	}
	if states[StateChecked] == 0 || states[StateChecked]+states[StateTuned] != 5 {
		t.Errorf("states %v", states)
	}
	if took := l.now.Sub(begin); took > 2200*time.Millisecond {
		t.Errorf("2 s became %v", took)
	}
	r, found, err := s.Tuner.Lookup(w.Items[4].Fusion)
	if !found || err != nil || !r.Record.Provisional {
		t.Errorf("the default is not kept as a provisional winner: %+v, %v", r.Record, err)
	}
}

// faulty is a lab that panics on, refuses, or never ends the default of some sizes.
type faulty struct {
	*lab
	panics, hangs int64
}

func (f *faulty) Default(ctx context.Context, p *symtile.Program) (kernels.Plan, error) {
	switch p.Fusion.Root.Shape.Dims[0] {
	case f.panics:
		panic("a bug")
	case f.hangs:
		select {}
	}
	return f.lab.Default(context.Background(), p)
}

// A fusion that panics does not stop the others.
func TestScheduleSurvivesPanics(t *testing.T) {
	l := newLab(3, 0.02, 2e-3, 1e-3)
	s, done := l.schedule(t, workloadOf(t, moduleText([]int{16, 32, 48}, []int{1, 1, 2})), 0)
	s.Tuner.Backend = &faulty{lab: l, panics: 32}
	if err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"f1 2", "f2 4", "f0 4"}; !slices.Equal(*done, want) {
		t.Errorf("%v, want %v", *done, want)
	}
	var p *PanicError
	if !errors.As(s.Workload.Items[2].Err, &p) || !strings.Contains(string(p.Stack), "Default") {
		t.Errorf("%+v", s.Workload.Items[2].Err)
	}
}

// A fusion whose default plan is no good is raced all the same.
func TestScheduleRacesWithoutDefault(t *testing.T) {
	l := newLab(9, 0.02, 2e-3, 1.5e-3, 1e-3)
	l.broken[0] = "rejected"
	s, done := l.schedule(t, workloadOf(t, moduleText([]int{16}, []int{1})), time.Minute)
	if err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	x := s.Workload.Items[0]
	if !slices.Equal(*done, []string{"f0 4"}) || x.Result.Record.Plan != "16 v=2" || x.Err != nil {
		t.Errorf("%v: %s, %v", *done, x.Result.Record.Plan, x.Err)
	}
}

// A run ends when it is interrupted although a fusion goes on.
func TestScheduleLeavesTheStuck(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for a fusion to stop")
	}
	l := newLab(4, 0.02, 2e-3, 1e-3)
	s, done := l.schedule(t, workloadOf(t, moduleText([]int{16, 32}, []int{1, 1})), 0)
	s.Tuner.Backend = &faulty{lab: l, hangs: 16}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the run ended with %v", err)
	}
	if len(*done) != 2 {
		t.Errorf("%v", *done)
	}
}

// A step that outlasts its own time is waited for while the run goes on.
func TestScheduleWaitsForTheSlow(t *testing.T) {
	s := &Schedule{observer: &observer{}}
	limited, cancel := context.WithCancel(context.Background())
	cancel()
	err := s.guarded(context.Background(), &Item{Fusion: fusionOf(t)}, func() error {
		time.Sleep(20 * time.Millisecond)
		return limited.Err()
	})
	if !errors.Is(err, context.Canceled) || s.stuck {
		t.Errorf("%v, stuck %v", err, s.stuck)
	}
}

// An interrupted race leaves the best plan so far as a provisional winner, and the
// next run goes on with its samples.
func TestInterruptedRaceKeepsTheBest(t *testing.T) {
	l := newLab(5, 0.02, 2e-3, 1.5e-3, 1e-3, 1.02e-3)
	ctx, cancel := context.WithCancel(context.Background())
	l.stop, l.stopAt = cancel, 60
	s, _ := l.schedule(t, workloadOf(t, moduleText([]int{16}, []int{1})), 0)
	if err := s.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted run returned %v", err)
	}
	x := s.Workload.Items[0]
	if r := x.Result.Record; x.State != StateChecked || !r.Provisional || r.Speedup[0] < 1.8 {
		t.Errorf("state %d, %s, provisional %v", x.State, r.Plan, r.Provisional)
	}
	if sum := s.Summary(); sum.Unfinished.Fusions != 1 || sum.Parts[StateChecked].Fusions != 0 ||
		math.Abs(sum.Speedup-x.Result.Record.Speedup[0]) > 1e-9 {
		t.Errorf("summary %+v", sum)
	}
	before, err := s.Tuner.Cache.Evidence(Key(x.Fusion, s.Tuner.identity()))
	if err != nil {
		t.Fatal(err)
	}
	x.Outcome = Outcome{}
	again := &Schedule{Tuner: s.Tuner, Workload: s.Workload}
	if err := again.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	r := x.Result.Record
	if x.State != StateTuned || r.Provisional || r.Speedup[0] < 1.8 || samplesOf(r.Trials) <= samplesOf(before) {
		t.Errorf("state %d, %s with %d samples after %d", x.State, r.Plan, samplesOf(r.Trials), samplesOf(before))
	}
}

// An interrupted second visit leaves the winner of the first one, and its own samples.
func TestInterruptedSecondVisit(t *testing.T) {
	for _, budget := range []time.Duration{0, time.Hour} {
		interruptSecondVisit(t, budget)
	}
}

// interruptSecondVisit interrupts a schedule of a budget when a fusion is raced again.
func interruptSecondVisit(t *testing.T, budget time.Duration) {
	l := newLab(5, 0.02, 2e-3, 1.5e-3, 1e-3, 1.02e-3)
	ctx, cancel := context.WithCancel(context.Background())
	s, _ := l.schedule(t, workloadOf(t, moduleText([]int{16, 32}, []int{2, 1})), budget)
	first := s.Workload.Items[0]
	var before cache.Record
	s.Tuner.Options.Observe = func(e Event) {
		turn, ok := e.(Turn)
		if !ok {
			return
		}
		l.now = l.now.Add(visitGap)
		if turn.Purpose == "racing again" && before.Plan == "" {
			before = first.Result.Record
			l.stop, l.stopAt = cancel, l.runs+12
		}
	}
	if err := s.Run(ctx); !errors.Is(err, context.Canceled) || before.Plan == "" {
		t.Fatalf("interrupted run returned %v", err)
	}
	r, err := s.Tuner.Cache.Evidence(Key(first.Fusion, s.Tuner.identity()))
	if err != nil || samplesOf(r) <= samplesOf(before.Trials) {
		t.Errorf("%d samples after %d, %v", samplesOf(r), samplesOf(before.Trials), err)
	}
	kept := first.Result.Record
	if first.State != StateTuned || kept.Provisional || kept.Plan != before.Plan || kept.Speedup != before.Speedup {
		t.Errorf("state %d, %s, provisional %v; before %s", first.State, kept.Plan, kept.Provisional, before.Plan)
	}
}

// A winner whose regret is large is raced on when that is asked for, with the samples
// that it has.
func TestImprove(t *testing.T) {
	l := newLab(6, 0.02, 2e-3, 1.5e-3, 1e-3, 1.01e-3)
	s, _ := l.schedule(t, workloadOf(t, moduleText([]int{16}, []int{1})), 0)
	s.Tuner.Options.Budget = 50 * time.Millisecond
	if err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	x := s.Workload.Items[0]
	first := x.Result.Record
	if first.Provisional || first.Regret >= 0 && first.Regret < 0.01 {
		t.Fatalf("regret %v of a short race", first.Regret)
	}
	again := &Schedule{Tuner: s.Tuner, Workload: s.Workload, Budget: time.Minute, Improve: 0.01}
	x.Outcome = Outcome{}
	if err := again.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	r := x.Result.Record
	if r.Regret < 0 || samplesOf(r.Trials) <= samplesOf(first.Trials) {
		t.Errorf("state %d: regret %v after %v, %d samples after %d", x.State, r.Regret, first.Regret, samplesOf(r.Trials), samplesOf(first.Trials))
	}
}

// TestGoal: a run races on, while it has time, until regrets are what was asked for.
func TestGoal(t *testing.T) {
	var regrets [2]float64
	for n := range uint64(8) {
		k, seed := n%2, 5+n/2
		goal := []float64{0, 0.02}[k]
		l := newLab(seed, 0.1, 2e-3, 1.5e-3, 1e-3, 1.05e-3)
		s, _ := l.schedule(t, workloadOf(t, moduleText([]int{16, 32}, []int{2, 1})), time.Hour)
		s.Tuner.Options.Regret = goal
		if err := s.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		for _, x := range s.Workload.Items {
			r := x.Result.Record
			regrets[k] = max(regrets[k], r.Regret)
			if goal > 0 && (r.Regret < 0 || r.Regret > goal) {
				t.Errorf("seed %d: regret %v, and a goal of %v", seed, r.Regret, goal)
			}
		}
	}
	if regrets[0] < 0.03 {
		t.Errorf("without a goal the largest regret is %v: there was nothing to race on for", regrets[0])
	}
}

// The regret of a winner that a dropped plan leaves large gets smaller by racing on: the plan
// is measured again, and its few blocks of then do not decide alone.
func TestImproveDropped(t *testing.T) {
	larger := 0
	for seed := range uint64(20) {
		l := newLab(seed, 0.4, 1e-3, 1.7e-3, 1.8e-3, 2.5e-3)
		s, _ := l.schedule(t, workloadOf(t, moduleText([]int{16}, []int{1})), 0)
		if err := s.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		x := s.Workload.Items[0]
		first := x.Result.Record
		dropped := slices.ContainsFunc(first.Trials, func(t cache.Trial) bool { return t.Dropped })
		if !dropped || first.Regret < 0.2 {
			continue
		}
		larger++
		for range 2 {
			again := &Schedule{Tuner: s.Tuner, Workload: s.Workload, Budget: time.Minute, Improve: 0.05}
			x.Outcome = Outcome{}
			if err := again.Run(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		if r := x.Result.Record; r.Regret < 0 || r.Regret > first.Regret/2 {
			t.Errorf("seed %d: regret %v after %v, %d samples after %d", seed, r.Regret, first.Regret, samplesOf(r.Trials), samplesOf(first.Trials))
		}
	}
	if larger == 0 {
		t.Error("no race left a regret to improve")
	}
}

// A race ends when its regret is within the goal.
func TestRegretGoal(t *testing.T) {
	samples := map[float64]int{}
	for _, goal := range []float64{0, 0.5} {
		l := newLab(7, 0.02, 2e-3, 1e-3, 1.01e-3, 1.02e-3)
		r := tuneOnce(t, l, Options{Regret: goal})
		samples[goal] = samplesOf(r.Trials)
		if goal > 0 && (r.Regret < 0 || r.Regret > goal) {
			t.Errorf("regret %v, not within %v", r.Regret, goal)
		}
	}
	if samples[0.5] >= samples[0] {
		t.Errorf("samples by goal: %v", samples)
	}
}

// A final winner beats a provisional one, whichever came first.
func TestFinalBeatsProvisional(t *testing.T) {
	l := newLab(8, 0.02, 2e-3, 1e-3)
	r := tuneOnce(t, l, Options{})
	other := r
	other.Provisional = true
	other.When = r.When.Add(time.Hour)
	for _, order := range [][]cache.Record{{r, other}, {other, r}} {
		db := cache.Open(filepath.Join(t.TempDir(), "t.db"))
		for _, x := range order {
			if _, err := db.Put(x); err != nil {
				t.Fatal(err)
			}
		}
		if kept, _, err := db.Get(r.Key); err != nil || kept.Provisional {
			t.Errorf("a provisional winner is kept: %v", err)
		}
	}
}

// Time that by the claims is too short for any race goes to the item that may gain most of
// those whose last visit began its race in less.
func TestRestOfARun(t *testing.T) {
	const second = time.Second
	now := time.Unix(1000, 0)
	s := &Schedule{Tuner: &Tuner{clock: func() time.Time { return now }}, Budget: 6 * second, end: now.Add(2 * second)}
	item := func(state State, seconds float64, setup time.Duration) *Item {
		x := &Item{Uses: 1}
		x.State, x.Predicted, x.setup, x.pricing = state, seconds, setup, second
		return x
	}
	short, long := item(StateChecked, 1e-3, second), item(StateChecked, 2e-3, second)
	all := []*Item{short, long, item(StateChecked, 1, 3*second), item(StateWaiting, 1, 0)}
	if x, _ := s.next(all[:3]); x != nil {
		t.Error("a race is expected to fit whose setup does not")
	}
	if x, left := s.rest(all); x != long || left != 2*second {
		t.Errorf("%+v gets %v", x, left)
	}
	if x, _ := s.rest(all[2:]); x != nil || s.Left() != 2*second {
		t.Errorf("%+v is begun, %v left", x, s.Left())
	}
}

// A fusion of which an extent is open is refused although the time of the run is over.
func TestOpenExtentsWithoutTime(t *testing.T) {
	w := workloadOf(t, "module { func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> { %0 = stablehlo.negate %a : tensor<?xf32>\n return %0 : tensor<?xf32> } }")
	s, _ := newLab(3, 0.02, 1e-3).schedule(t, w, time.Second)
	s.Begin = s.Tuner.now().Add(-time.Hour)
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if x := w.Items[0]; x.State != StateRefused || !strings.Contains(x.Err.Error(), "give it with -shape") {
		t.Errorf("state %d, %v", x.State, x.Err)
	}
}
