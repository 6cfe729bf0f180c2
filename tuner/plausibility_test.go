package tuner

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
)

// A doubtedLab measures other rates each time, and plan 1 leaves out work once it was
// verified: it remembers results, or leaves half of the outputs as they are.
type doubtedLab struct {
	*calibratedLab
	again   kernels.Rates // from the second measurement on
	typical kernels.Rates
	skips   string
}

func (l *doubtedLab) Calibrate(ctx context.Context, d time.Duration) (kernels.Rates, error) {
	r, err := l.calibratedLab.Calibrate(ctx, d)
	if l.times > 1 {
		r = l.again
	}
	return r, err
}

func (l *doubtedLab) TypicalRates() kernels.Rates { return l.typical }

func (l *doubtedLab) Compile(
	ctx context.Context, p *symtile.Program, plan kernels.Plan,
) (kernels.Kernel, error) {
	k, err := l.lab.Compile(ctx, p, plan)
	if err != nil || plan.Knob("v", 0) != 1 || l.skips == "" {
		return k, err
	}
	return &skipping{Kernel: k, l: l}, nil
}

// A skipping kernel takes half of its time, or a tenth, when it leaves out work.
type skipping struct {
	kernels.Kernel
	l    *doubtedLab
	seen [][]byte
	runs int
}

func (k *skipping) Run(ctx context.Context, in, out []kernels.Buffer) (time.Duration, error) {
	k.runs++
	known := slices.ContainsFunc(k.seen, func(x []byte) bool {
		return bytes.Equal(x, in[0].Data)
	})
	k.seen = append(k.seen, bytes.Clone(in[0].Data))
	half := len(out[0].Data) / 2
	kept := bytes.Clone(out[0].Data[half:])
	d, err := k.Kernel.Run(ctx, in, out)
	switch {
	case known && k.l.skips == "results it remembers":
		return d / 2, err
	case k.runs > 3 && k.l.skips == "half of the outputs":
		copy(out[0].Data[half:], kept)
		return d / 2, err
	}
	return d, err
}

// quietly are rates of a quiet machine.
func quietly(r kernels.Rates) kernels.Rates {
	r.Rounds = 1000
	return r
}

// TestRatesTooLow holds kernels against rates that were measured too low, and against right
// ones. The plan moves 128 bytes in a millisecond, which is 128 kB/s.
func TestRatesTooLow(t *testing.T) {
	const kernel, right, low, lowest = 1e-3, 150e3, 20e3, 5e3
	rates := func(l1 float64) kernels.Rates { return quietly(labRates(1e12, l1, l1/2)) }
	for name, c := range map[string]struct {
		measured, again, typical float64
		skips                    string
		failure                  string // of plan 1
		contradicted             bool
	}{
		"right rates": {
			right, right, right, "", "", false,
		},
		"measured on a busy machine": {
			lowest, right, right,
			"", "", true,
		},
		"and so the second time": {
			lowest, lowest, right,
			"", "", false,
		},
		"and no sheet": {low * 2, low * 2, low * 2, "", "", true},
		"results it remembers": {
			right, right, right,
			"results it remembers", cache.FailedImplausible, false,
		},
		"half of the outputs": {
			right, right, right,
			"half of the outputs", cache.FailedWrong, false,
		},
		"half of the outputs, rates as low": {
			lowest, lowest, low * 2,
			"half of the outputs", cache.FailedWrong, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := &doubtedLab{
				calibratedLab: &calibratedLab{
					lab:      newLab(1, 0.001, 1.1*kernel, kernel),
					measured: rates(c.measured),
				},
				again:   rates(c.again),
				typical: rates(c.typical),
				skips:   c.skips,
			}
			if c.failure == "" { // or else the default is held against the same rates
				l.truth[0] = 1.2 * kernel
			}
			db := cache.Open(filepath.Join(t.TempDir(), "t.db"))
			tn := &Tuner{
				Backend: l,
				Cache:   db,
				clock:   func() time.Time { return l.now },
			}
			if err := UseRates(t.Context(), db, l); err != nil {
				t.Fatal(err)
			}
			r, err := tn.Tune(t.Context(), fusionOf(t))
			if err != nil {
				t.Fatal(err)
			}
			want := "16 v=1"
			if c.failure != "" {
				want = "16 v=0"
			}
			k := slices.IndexFunc(r.Record.Trials, func(x cache.Trial) bool {
				return x.Plan == "16 v=1"
			})
			got := r.Record.Trials[k]
			if got.Failure != c.failure {
				t.Errorf("plan 1: %q %s", got.Failure, got.Detail)
			}
			if r.Record.Plan != want {
				t.Errorf("%s won, want %s", r.Record.Plan, want)
			}
			roof := r.Record.Roof
			if roof == nil || (len(roof.Contradicted) > 0) != c.contradicted {
				t.Errorf("roof %+v, contradicted: want %v", roof, c.contradicted)
			}
			stored, _, err := StoredRates(db, l)
			if err != nil {
				t.Fatal(err)
			}
			value := stored.Levels[0].Value
			if value < c.measured || c.contradicted && value < c.again {
				t.Errorf("the stored rate is %g", value)
			}
		})
	}
}
