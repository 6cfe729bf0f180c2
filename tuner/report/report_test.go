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
