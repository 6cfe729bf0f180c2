package gpu

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/tuner"
)

// A work without launches takes no time, but more than none: the default is kept,
// and no ratio of times is none. testdata/classes.txt has more of nothing.
func TestTuneNothing(t *testing.T) {
	m, err := hlo.Parse("nothing", []byte("x = f32[0,96] parameter(0)\nr = f32[0,96] negate(x)\n"))
	if err != nil {
		t.Fatal(err)
	}
	dev := newSimulator("A100")
	dev.spec.Simulated = false
	s, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) {
		return dev, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	tune := tuner.Tuner{
		Backend: New(s),
		Cache:   cache.Open(filepath.Join(t.TempDir(), "t.db")),
		Options: tuner.Options{Candidates: 4, Budget: time.Second, Seed: 1},
	}
	r, err := tune.Tune(t.Context(), m.Entry)
	if err != nil {
		t.Fatal(err)
	}
	if w := r.Record; w.Plan != w.Default ||
		w.Seconds != emptyKernelTime.Seconds() || w.Speedup[0] != 1 {
		t.Errorf("%s at %v s, %v of the default %s", w.Plan, w.Seconds, w.Speedup, w.Default)
	}
	if len(dev.ran) > 0 {
		t.Errorf("%d kernels ran", len(dev.ran))
	}
}
