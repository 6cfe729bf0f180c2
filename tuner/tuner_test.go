package tuner

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A lab is a simulated device: plans have true times, runs have noise, drift
// and outliers, and its clock advances by what the runs take.
type lab struct {
	truth  []float64 // seconds of plan v=0, v=1, …; the default is v=0
	broken map[int64]string
	rng    *rand.Rand
	noise  float64
	now    time.Time
	runs   int
	shake  []float64 // recorded noise, as factors with the median 1, in place of noise
	stop   func()    // called once after stopAt runs
	stopAt int
}

func newLab(seed uint64, noise float64, truth ...float64) *lab {
	return &lab{truth: truth, broken: map[int64]string{}, rng: rand.New(
		rand.NewPCG(seed, 9),
	), noise: noise, now: time.Unix(1e9, 0)}
}

func (l *lab) Device() kernels.Device {
	return kernels.Device{
		Name:     "lab",
		Backend:  "lab",
		Revision: "1",
		Safe:     map[string]string{"driver": "7"},
		Lanes:    1,
		FLOPS:    1e12,
		Levels: []kernels.Level{
			{Name: "L1", Bytes: 1 << 15, Bandwidth: 1e12},
			{Name: "memory", Bandwidth: 1e11},
		},
	}
}

func (l *lab) Identity() kernels.Device { return l.Device() }

func (l *lab) plan(v int64) kernels.Plan {
	return kernels.Plan{Tiles: symtile.Tiling{16}}.With("v", v)
}

func (l *lab) Plans(context.Context, *symtile.Program) iter.Seq[kernels.Plan] {
	return func(yield func(kernels.Plan) bool) {
		for v := range l.truth {
			if !yield(l.plan(int64(v))) {
				return
			}
		}
	}
}

func (l *lab) Default(context.Context, *symtile.Program) (kernels.Plan, error) {
	return l.plan(0), nil
}

func (l *lab) Compile(
	_ context.Context, p *symtile.Program, plan kernels.Plan,
) (kernels.Kernel, error) {
	v := plan.Knob("v", 0)
	if l.broken[v] == "rejected" {
		return nil, &kernels.Rejected{Plan: plan, Reason: "the lab does not like it"}
	}
	return &labKernel{l, p.Fusion, v}, nil
}

type labKernel struct {
	l *lab
	c *hlo.Computation
	v int64
}

func (k *labKernel) Source() string { return "" }
func (k *labKernel) Close() error   { return nil }

func (k *labKernel) Run(ctx context.Context, in, out []kernels.Buffer) (time.Duration, error) {
	l := k.l
	if l.runs++; l.runs == l.stopAt {
		l.stop()
	}
	if l.broken[k.v] == "deaf" {
		select {}
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	switch l.broken[k.v] {
	case "error":
		return 0, errors.New("launch failed")
	case "late":
		l.now = l.now.Add(minRunTimeout)
		return 0, context.DeadlineExceeded
	case "hung":
		<-ctx.Done()
		return 0, ctx.Err()
	case "wrong":
	default:
		want, err := reference.Interpret(k.c, in)
		if err != nil {
			return 0, err
		}
		for n := range want {
			copy(out[n].Data, want[n].Data)
		}
	}
	drift := 1 + 0.2*float64(l.runs%1000)/1000
	seconds := l.truth[k.v] * drift * (1 + l.noise*l.rng.NormFloat64())
	if l.rng.IntN(50) == 0 {
		seconds *= 3 // somebody else's work
	}
	if l.shake != nil {
		seconds = l.truth[k.v] * drift * l.shake[l.rng.IntN(len(l.shake))]
	}
	d := time.Duration(max(seconds, l.truth[k.v]/2) * 1e9)
	l.now = l.now.Add(d)
	return d, nil
}

func fusionOf(t testing.TB) *hlo.Computation {
	m, err := hlo.Parse("lab", []byte("x = f32[16] parameter(0); ROOT y = f32[16] negate(x)"))
	if err != nil {
		t.Fatal(err)
	}
	return m.Entry
}

func (l *lab) tuner(db string, o Options) *Tuner {
	return &Tuner{
		Backend: l,
		Cache:   cache.Open(db),
		Options: o,
		clock:   func() time.Time { return l.now },
	}
}

func tuneOnce(t *testing.T, l *lab, o Options) cache.Record {
	t.Helper()
	r, err := l.tuner(filepath.Join(t.TempDir(), "t.db"), o).Tune(
		context.Background(), fusionOf(t),
	)
	if err != nil {
		t.Fatal(err)
	}
	return r.Record
}

func TestBestWins(t *testing.T) {
	l := newLab(1, 0.02, 2e-3, 1.5e-3, 1.0e-3, 1.2e-3, 4e-3)
	r := tuneOnce(t, l, Options{})
	if r.Plan != "16 v=2" || !r.Checked || r.Speedup[0] < 1.8 ||
		r.Speedup[1] > 2 || r.Speedup[2] < 2 {
		t.Errorf("winner %s, speed-up %v", r.Plan, r.Speedup)
	}
	if r.Regret < 0 || r.Regret > 0.1 {
		t.Errorf("regret %v", r.Regret)
	}
}

func TestFailuresAreRecorded(t *testing.T) {
	l := newLab(2, 0.02, 2e-3, 1e-3, 1e-3, 1e-3, 1.9e-3, 1e-12, 1e-3)
	l.broken = map[int64]string{1: "rejected", 2: "wrong", 3: "error", 6: "hung"}
	r := tuneOnce(t, l, Options{})
	failures := map[string]string{}
	for _, x := range r.Trials {
		failures[x.Plan] = x.Failure
	}
	for plan, want := range map[string]string{
		"16 v=1": "rejected",
		"16 v=2": "wrong",
		"16 v=3": "error",
		"16 v=5": "implausible",
		"16 v=6": "timeout",
	} {
		if failures[plan] != want {
			t.Errorf("%s: failure %q, want %q", plan, failures[plan], want)
		}
	}
	if r.Plan != "16 v=4" && r.Plan != "16 v=0" {
		t.Errorf("%s won", r.Plan)
	}
}

// Equal plans tie, and the tie breaks the same way whatever the noise.
func TestTiesBreakTheSameWay(t *testing.T) {
	winners := map[string]int{}
	for seed := range uint64(30) {
		l := newLab(seed, 0.03, 2e-3, 1e-3, 1e-3, 1e-3, 1e-3)
		r := tuneOnce(t, l, Options{Seed: int64(seed)})
		winners[r.Plan]++
	}
	if winners["16 v=1"] < 24 {
		t.Errorf("of 30 tunes of four equal plans: %v", winners)
	}
}

// The default is kept unless it is beaten by the margin beyond doubt.
func TestNeverWorseThanDefault(t *testing.T) {
	worse, total := 0, 100
	for seed := range uint64(total) {
		l := newLab(seed, 0.03, 1e-3, 1.01e-3, 1.02e-3, 1.05e-3, 1.005e-3)
		if r := tuneOnce(t, l, Options{Seed: int64(seed)}); r.Plan != r.Default {
			worse++
		}
	}
	if worse > 2 {
		t.Errorf("%d of %d tunes chose a plan that is slower than the default", worse, total)
	}
}

// What was measured before an interruption is kept and used.
func TestResume(t *testing.T) {
	db := filepath.Join(t.TempDir(), "t.db")
	l := newLab(5, 0.02, 2e-3, 1.5e-3, 1.0e-3, 1.02e-3)
	ctx, cancel := context.WithCancel(context.Background())
	l.stop, l.stopAt = cancel, 60
	tn := l.tuner(db, Options{})
	if _, err := tn.Tune(ctx, fusionOf(t)); !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted tune returned %v", err)
	}
	before, err := tn.Cache.Evidence(Key(fusionOf(t), tn.identity()))
	if err != nil || len(before) == 0 {
		t.Fatalf("%d trials kept, %v", len(before), err)
	}
	r, err := tn.Tune(context.Background(), fusionOf(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, old := range before {
		k := slices.IndexFunc(r.Record.Trials, func(x cache.Trial) bool {
			return x.Plan == old.Plan
		})
		if k < 0 ||
			len(r.Record.Trials[k].Samples) < len(old.Samples) ||
			!slices.Equal(r.Record.Trials[k].Samples[:len(old.Samples)], old.Samples) {
			t.Errorf("samples of %s were lost", old.Plan)
		}
	}
	left, _ := tn.Cache.Trials(Key(fusionOf(t), tn.identity()))
	if len(left) != 0 {
		t.Errorf("%d trials are still kept beside the record", len(left))
	}
	if again, err := tn.Tune(context.Background(), fusionOf(t)); err != nil || !again.Hit {
		t.Errorf("a second tune measured again: %v", err)
	}
}

func TestLookupSaysWhatDiffers(t *testing.T) {
	l := newLab(6, 0.02, 2e-3, 1e-3)
	tn := l.tuner(filepath.Join(t.TempDir(), "t.db"), Options{})
	if _, found, err := tn.Lookup(fusionOf(t)); found || err != nil {
		t.Fatalf("found in no file: %v", err)
	}
	if _, err := tn.Tune(context.Background(), fusionOf(t)); err != nil {
		t.Fatal(err)
	}
	other := &Tuner{Backend: otherDriver{l}, Cache: tn.Cache}
	r, found, err := other.Lookup(fusionOf(t))
	if !found || err != nil || len(r.SafeGap) != 1 {
		t.Errorf("found %v, %v, gap %v", found, err, r.SafeGap)
	}
}

type otherDriver struct{ *lab }

func (o otherDriver) Identity() kernels.Device {
	d := o.lab.Device()
	d.Safe = map[string]string{"driver": "8"}
	return d
}

func TestUntileableIsRefused(t *testing.T) {
	m, err := hlo.Parse("f", []byte("x = f32[16] parameter(0); ROOT y = f32[16] sort(x), dimensions={0}"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = newLab(7, 0, 1e-3).tuner(
		filepath.Join(t.TempDir(), "t.db"), Options{},
	).Tune(
		context.Background(), m.Entry,
	)
	var no *symtile.Untileable
	if !errors.As(err, &no) {
		t.Errorf("got %v", err)
	}
}
