package report

import (
	"strings"
	"testing"

	"github.com/tilewright/tilewright/cache"
)

// TestPagePrintsTheRecord makes a page of numbers that no computation from the trials gives:
// what the record says is printed, and what it does not say is not computed.
func TestPagePrintsTheRecord(t *testing.T) {
	r := cache.Record{
		Name: "f", Plan: "8", Default: "4", Seconds: 1e-3, DefaultSeconds: 2e-3,
		Speedup: [3]float64{2, 1.9, 2.1},
		Trials: []cache.Trial{
			{Plan: "8", Predicted: 1, Samples: []float64{1e-3}, Blocks: []int{0}},
			{Plan: "4", Predicted: 2, Samples: []float64{2e-3}, Blocks: []int{0}},
		},
		Prices: &cache.Prices{
			Kendall: 0.123, Regret1: 1, Regret3: 4.56, Regret8: 1,
			Explained: []cache.Explained{{Plan: "8", Terms: []cache.Term{{Name: "moonlight", Seconds: 7e-3}}}},
		},
	}
	for _, kept := range []bool{true, false} {
		if !kept {
			r.Prices = nil
		}
		var page strings.Builder
		if err := HTML(&page, Page{Records: []cache.Record{r}}); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"τ 0.12", "4.56×", "moonlight", "7 ms"} {
			if strings.Contains(page.String(), text) != kept {
				t.Errorf("prices kept: %t; the page has %q: %t", kept, text, !kept)
			}
		}
	}
}

// TestProvisional: the evidence of a race that is not over is not shown as that of one that
// ended, and the ratio of the times is explained.
func TestProvisional(t *testing.T) {
	r := cache.Record{
		Name: "f", Plan: "4", Default: "4", Seconds: 2e-3, DefaultSeconds: 2e-3, Speedup: [3]float64{1, 1, 1}, Provisional: true,
		Trials: []cache.Trial{
			{Plan: "4", Predicted: 2, Samples: []float64{2e-3}, Blocks: []int{0}},
			{Plan: "8", Predicted: 1, Samples: []float64{3e-3}, Blocks: []int{0}},
		},
		Certificate: &cache.Certificate{Ended: cache.EndedSettled},
	}
	var page strings.Builder
	if err := HTML(&page, Page{Records: []cache.Record{r}}); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"race ended": false, "beyond doubt": false, " of 0 plans": false, "default kept": false,
		"<b>0</b><span class=\"soft\">fusions tuned":   true,
		"provisional: the race of 2 plans is not over": true,
		"a speed-up is the median of default":          true,
	} {
		if strings.Contains(page.String(), text) != want {
			t.Errorf("the page has %q: %t", text, !want)
		}
	}
}
