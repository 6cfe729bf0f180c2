package tuner

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
)

// A calibratedLab is a lab whose rates are measured.
type calibratedLab struct {
	*lab
	measured kernels.Rates
	set      *kernels.Rates
	times    int // that it was measured
}

func (l *calibratedLab) Calibrate(context.Context, time.Duration) (kernels.Rates, error) {
	l.times++
	return l.measured, nil
}

func (l *calibratedLab) SetRates(r kernels.Rates) error {
	l.set = &r
	return nil
}

func (l *calibratedLab) TypicalRates() kernels.Rates { return labRates(1e12, 1e12, 1e11) }

func (l *calibratedLab) Device() kernels.Device {
	d := l.lab.Device()
	if l.set != nil {
		d, _ = l.set.Apply(d)
	}
	return d
}

// labRates are rates of the lab.
func labRates(flops float64, levels ...float64) (r kernels.Rates) {
	r.FLOPS.Value = flops
	for _, b := range levels {
		r.Levels = append(r.Levels, kernels.Rate{Value: b})
	}
	return r
}

// Rates are measured once for a device, also where what is stored cannot be its own.
func TestRatesAreStored(t *testing.T) {
	db := cache.Open(filepath.Join(t.TempDir(), "t.db"))
	l := &calibratedLab{lab: newLab(1, 0, 1e-3), measured: labRates(1e12, 2e12, 1e11)}
	for range 3 {
		l.set = nil
		if err := UseRates(t.Context(), db, l); err != nil {
			t.Fatal(err)
		}
		if l.set == nil || l.set.Levels[0].Value != 2e12 || l.times != 1 {
			t.Fatalf("measured %d times: %+v", l.times, l.set)
		}
	}
	c, found, err := StoredRates(db, l)
	if !found || err != nil || !c.Quick || c.By == "" || c.When.IsZero() {
		t.Errorf("%+v, %v, %v", c, found, err)
	}
	if err := UseRates(t.Context(), db, l.lab); err != nil {
		t.Errorf("a device that cannot be told its rates: %v", err)
	}
}

// The headroom of a winner is at least 1. One that is faster than its roof takes away the
// rate, for the next fusions too: never is it believed again.
func TestMismeasuredRoof(t *testing.T) {
	for name, c := range map[string]struct {
		l1          float64 // bytes/s that were measured
		headroom    float64 // of a winner that moves 128 bytes in a millisecond
		mismeasured bool
	}{
		"right":   {256e3, 2, false},
		"too low": {64e3, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := &calibratedLab{lab: newLab(1, 0.001, 1e-3), measured: labRates(1e12, c.l1, c.l1/2)}
			db := cache.Open(filepath.Join(t.TempDir(), "t.db"))
			tn := &Tuner{Backend: l, Cache: db, clock: func() time.Time { return l.now }}
			if err := UseRates(t.Context(), db, l); err != nil {
				t.Fatal(err)
			}
			r, err := tn.Tune(t.Context(), fusionOf(t))
			if err != nil {
				t.Fatal(err)
			}
			roof := r.Record.Roof
			h := r.Record.Headroom()
			if roof == nil || roof.By != "L1" || roof.Mismeasured != c.mismeasured ||
				h < 0.8*c.headroom || h > 1.3*c.headroom {
				t.Errorf("headroom %g, roof %+v", h, roof)
			}
			stored, _, err := StoredRates(db, l)
			if err != nil {
				t.Fatal(err)
			}
			why := strings.Join(stored.Mismeasured(), "; ")
			if (why != "") != c.mismeasured || c.mismeasured && stored.Levels[0].Value != 1e12 {
				t.Errorf("stored %+v: %q", stored.Rates, why)
			}
		})
	}
}
