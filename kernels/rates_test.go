package kernels

import (
	"strings"
	"testing"
)

// ratesOf are rates of levels of memory in GB/s.
func ratesOf(gigabytes ...float64) (r Rates) {
	for _, g := range gigabytes {
		r.Levels = append(r.Levels, Rate{Value: g * 1e9})
	}
	return r
}

// A level that is slower than the next one was mismeasured; the others stay as they
// were measured.
func TestPlausibleRates(t *testing.T) {
	d := Device{Levels: []Level{{Name: "L1"}, {Name: "L2"}, {Name: "L3"}, {Name: "memory"}}}
	typical := ratesOf(200, 100, 50, 16)
	for _, c := range []struct {
		measured, want Rates
		mismeasured    string
	}{
		{ratesOf(180, 90, 40, 12), ratesOf(180, 90, 40, 12), ""},
		{ratesOf(180, 90, 12.5, 12.9), ratesOf(180, 90, 12.5, 12.9), ""}, // within noise
		{ratesOf(180, 90, 10.3, 12.9), ratesOf(180, 90, 50, 12.9), "L3"},
		{ratesOf(180, 90, 10.3, 70), ratesOf(180, 90, 70, 70), "L3"},
		{ratesOf(20, 90, 40, 12), ratesOf(200, 90, 40, 12), "L1"},
		{ratesOf(180, 30, 10, 12.9), ratesOf(180, 100, 50, 12.9), "L3 L2"},
	} {
		got := c.measured.Plausible(d, typical)
		for k, r := range got.Levels {
			if r.Value != c.want.Levels[k].Value {
				t.Errorf("%v: %s is %g, want %g", c.measured, d.Levels[k].Name, r.Value, c.want.Levels[k].Value)
			}
			if (r.Mismeasured != "") != strings.Contains(c.mismeasured, d.Levels[k].Name) {
				t.Errorf("%v: %s: %q", c.measured, d.Levels[k].Name, r.Mismeasured)
			}
		}
		again := got.Plausible(d, typical)
		if a, b := len(again.Mismeasured()), len(got.Mismeasured()); a != b {
			t.Errorf("%v: %d mismeasured, then %d", c.measured, b, a)
		}
	}
	if _, err := ratesOf(1, 2).Apply(d); err == nil {
		t.Error("rates of two levels apply to a device of four")
	}
}
