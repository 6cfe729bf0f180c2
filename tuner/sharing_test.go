package tuner

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
)

// A sharedLab is a device of which other work takes a part, in bursts: meanwhile each plan is
// longer by a factor of its own, as one in few large tiles is that waits for a thread which
// was interrupted.
type sharedLab struct {
	*lab
	share  float64   // of the time that bursts take
	longer []float64 // factor of each plan during a burst
	until  time.Time // of the burst, or of the quiet before the next one
	burst  bool
}

// burstTime is the mean length of a burst.
const burstTime = 20 * time.Millisecond

func (l *sharedLab) Quiet() float64                   { return 1 - l.share/2 }
func (l *sharedLab) Disturbance() kernels.Disturbance { return kernels.Disturbance{} }

func (l *sharedLab) Compile(
	ctx context.Context, p *symtile.Program, plan kernels.Plan,
) (kernels.Kernel, error) {
	k, err := l.lab.Compile(ctx, p, plan)
	return &sharedKernel{k.(*labKernel), l}, err
}

// factor is what other work makes of a run of a plan now.
func (l *sharedLab) factor(v int64) float64 {
	for !l.now.Before(l.until) {
		l.burst = !l.burst
		mean := burstTime.Seconds()
		if !l.burst {
			mean *= 1/l.share - 1
		}
		l.until = l.until.Add(time.Duration(mean * l.rng.ExpFloat64() * float64(time.Second)))
	}
	if l.burst {
		return l.longer[v]
	}
	return 1
}

type sharedKernel struct {
	*labKernel
	shared *sharedLab
}

func (k *sharedKernel) Run(ctx context.Context, in, out []kernels.Buffer) (time.Duration, error) {
	d, err := k.labKernel.Run(ctx, in, out)
	more := time.Duration((k.shared.factor(k.v) - 1) * float64(d))
	k.l.now = k.l.now.Add(more)
	return d + more, err
}

// tuneShared is the true time of the winner of plans of some true times on a shared device.
func tuneShared(t *testing.T, seed uint64, share float64, truth, longer []float64) float64 {
	t.Helper()
	l := newLab(seed, 0.01, truth...)
	tn := &Tuner{
		Backend: &sharedLab{lab: l, share: share, longer: longer, until: l.now},
		Cache:   cache.Open(filepath.Join(t.TempDir(), "t.db")),
		Options: Options{Candidates: len(truth), Seed: int64(seed)},
		clock:   func() time.Time { return l.now },
	}
	r, err := tn.Tune(t.Context(), fusionOf(t))
	if err != nil {
		t.Fatal(err)
	}
	return truth[winnerOf(t, &r.Record)]
}

// Plans that other work delays less than the default are not taken for faster ones: a winner
// is faster when nothing else runs, too.
func TestSharedMachine(t *testing.T) {
	slower, missed, races := 0, 0, 40
	for seed := range uint64(races) {
		rng := rand.New(rand.NewPCG(seed, 12))
		truth := make([]float64, 8)
		longer := make([]float64, len(truth))
		for k := range truth {
			truth[k] = 2e-3 * (1 + 0.01*float64(rng.IntN(9)))
			longer[k] = 1 + 0.8*rng.Float64()
		}
		truth[0], longer[0] = 2e-3, 1.8
		fast := seed%2 == 0
		if fast {
			truth[5] = 1.7e-3
		}
		mine := tuneShared(t, seed, []float64{0.2, 0.5, 0.7}[seed%3], truth, longer)
		if mine > 1.01*truth[0] {
			slower++
		}
		if fast && mine > slices.Min(truth) {
			missed++
		}
	}
	t.Logf("%d races: %d winners over 1 %% slower than the default, %d of %d fast plans missed",
		races, slower, missed, races/2)
	if slower > 0 || missed > races/20 {
		t.Error("other work decides")
	}
}
