package main

import (
	"math"
	"testing"

	"github.com/tilewright/tilewright/cost"
)

// TestRatios has three plans, the second of which is twice as fast as the first one, and a
// third that looks best in the even blocks only.
func TestRatios(t *testing.T) {
	l := &landscape{
		plans:    []cost.Ranked{{Seconds: 1}, {Seconds: 2}, {Seconds: 3}},
		standard: 0, tuned: 1,
		seconds: [][]float64{
			{2, 2.2, 2, 2.2}, // odd blocks are a tenth slower
			{1, 1.1, 1, 1.1},
			{0.5, 4.4, 0.5, 4.4},
		},
	}
	got := l.ratios()
	want := [columns]float64{0.5, 0.25, 0.5, 1, 1, 1}
	for k, w := range want {
		if math.Abs(got[k]-w) > 1e-12 {
			t.Errorf("ratios %v, want %v", got, want)
		}
	}
	if rho, _ := l.order(); rho < -1 || rho > 1 {
		t.Errorf("ρ is %v", rho)
	}
}

// TestTakes counts the plans that are timed of spaces of several sizes.
func TestTakes(t *testing.T) {
	o := oracle{plans: 150, cheapest: 20}
	for n, want := range map[int]int{10: 10, 150: 150, 151: 150, 4096: 150} {
		taken := 0
		for k := range n {
			if o.takes(k, n) {
				taken++
			}
		}
		if taken < want || taken > want+1 {
			t.Errorf("%d of %d are taken, want %d", taken, n, want)
		}
	}
}
