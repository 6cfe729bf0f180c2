package report

import (
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/symtile/hlo"
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
			Explained: []cache.Explained{{Plan: "8", Terms: []cache.Term{{Name: "moonlight", Seconds: 7e-3}, {Name: "sunlight"}}}},
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
		if strings.Contains(page.String(), "sunlight") {
			t.Error("the page has a term that is 0 for every plan")
		}
	}
}

// TestSpace: the page says of how many legal plans the offered ones are, and whether the
// cheapest were proven, by the record alone.
func TestSpace(t *testing.T) {
	for _, c := range []struct {
		plans, tilings, proven int64
		more                   bool
		want                   string
	}{
		{0, 0, 0, false, ""},
		{0, 9, 0, false, "9 tilings are legal."},
		{36, 9, 0, false, "9 tilings and 36 plans are legal; none is proven to be the cheapest of all by price."},
		{36, 9, 1, false, "9 tilings and 36 plans are legal; the first is proven to be the cheapest of all by price."},
		{36, 9, 4, false, "9 tilings and 36 plans are legal; the first 4 are proven to be the cheapest of all by price."},
		{36, 9, 4, true, "9 tilings and at least 36 plans are legal; the first 4 are proven to be the cheapest of all by price."},
		{36, 0, 0, true, "At least 36 plans are legal; none is proven to be the cheapest of all by price."},
		{math.MaxInt64, 9, 4, true, "9 tilings and more than 9e18 plans are legal; the first 4 are proven to be the cheapest of all by price."},
	} {
		r := cache.Record{Name: "f", Plan: "4", Default: "4", Plans: c.plans, MorePlans: c.more, Tilings: c.tilings, Proven: c.proven}
		if got := newSection(r).Space(); got != c.want {
			t.Errorf("plans %d, tilings %d, proven %d: %q, want %q", c.plans, c.tilings, c.proven, got, c.want)
		}
		var page strings.Builder
		if err := HTML(&page, Page{Records: []cache.Record{r}}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(page.String(), c.want) {
			t.Errorf("the page does not say %q", c.want)
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
		"regret: too few timings of each fusion":       true,
	} {
		if strings.Contains(page.String(), text) != want {
			t.Errorf("the page has %q: %t", text, !want)
		}
	}
}

// raced is a record of a fusion of a text.
func raced(t *testing.T, name, text string) cache.Record {
	m, err := hlo.Parse(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return cache.Record{
		Key:  cache.Key{Fusion: m.Entry.Fingerprint(), Codegen: "1"},
		Name: name, Canonical: m.Entry.Canonical(), Source: "jit(f)/" + name, Plan: "8", Default: "4", Seconds: 1e-3, DefaultSeconds: 2e-3,
		Speedup: [3]float64{2, 1.9, 2.1}, Trials: []cache.Trial{{Plan: "8", Samples: []float64{1e-3}, Blocks: []int{0}}},
	}
}

// TestGroups: fusions that differ in extents only have one row and one card, in which each is
// named with its shape; other structures, other revisions and fusions without a text do not.
func TestGroups(t *testing.T) {
	var all []cache.Record
	for _, n := range []string{"8", "16", "24"} {
		all = append(all, raced(t, "negate."+n, "x = f32["+n+"] parameter(0)\nROOT y = f32["+n+"] negate(x)"))
	}
	all[2].Seconds, all[2].Speedup[0], all[2].Plan = 3e-3, 1, "4"
	older, bare := all[0], all[0]
	older.Codegen, older.Name = "0", "older"
	bare.Canonical, bare.Name = "", "bare"
	all = append(all, raced(t, "exp", "x = f32[8] parameter(0)\nROOT y = f32[8] exponential(x)"), older, bare)
	all[0].Regret, all[3].Regret = 0.25, -1
	var page strings.Builder
	if err := HTML(&page, Page{Records: all}); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{
		">negate.8 and 2 of its structure<": 2, // in the table, and in front of the card
		"1 ms to 3 ms":                      1, "1.59×": 1, "each 1.00–2.00": 1,
		"d0=8, and others":                    1,
		"<section class=\"card\"":             4,
		"<summary>negate.24 · f32[24]":        1,
		"<b>6</b><span class=\"soft\">fusion": 1,
		"<h2>older</h2>":                      1, "<h2>bare</h2>": 1, "<h2>exp</h2>": 1,
		"jit(f)/negate.16": 2,
		"<b>≤ 25.0 %</b><span class=\"soft\">regret of 5; of 1 it is unknown": 1,
	} {
		if got := strings.Count(page.String(), text); got != want {
			t.Errorf("the page has %q %d times, want %d", text, got, want)
		}
	}
}

// TestPackings: what packing a weight gains is beside the fusion that reads it as it is,
// with a link to the race of the one that reads it packed, which does not count.
func TestPackings(t *testing.T) {
	as := raced(t, "dot", "x = f32[8] parameter(0)\nROOT y = f32[8] negate(x)")
	race := raced(t, "dot.packed.w", "x = f32[8] parameter(0)\nROOT y = f32[8] exponential(x)")
	race.Dims = []string{"n"}
	p := Packing{Fusion: "dot", Parameter: "w", Uses: 3, Race: race.Fusion, Packing: cache.Packing{
		Fusion: hex.EncodeToString(as.Fusion[:]), Pack: "pack 8", PackedPlan: "8",
		InPlace: 4e-3, Packed: 3e-3, Packing: 5e-3, Ratio: [3]float64{0.75, 0.7, 0.8}, Pairs: 9,
	}}
	lost := p
	lost.Parameter, lost.Race, lost.Ratio, lost.Uses = "v", cache.Fingerprint{1}, [3]float64{1, 0.9, 1.1}, 0
	var page strings.Builder
	if err := HTML(&page, Page{Records: []cache.Record{as, race}, Packings: []Packing{p, lost}}); err != nil {
		t.Fatal(err)
	}
	id := hex.EncodeToString(race.Fusion[:])[:12]
	for _, want := range []string{
		"Weight w: packed it takes <b class=\"win\">0.75</b> of the time (95 %: 0.70 to 0.80); packing it once takes 5 ms and pays from 6 runs on. Its race: <a href=\"#" + id + "\">dot.packed.w</a>.",
		"Weight v: packed it takes <b class=\"\">1.00</b> of the time (95 %: 0.90 to 1.10); packing it does not pay, or no gain can be told from noise.</p>",
		"pack 8 · n=8", "<b>1</b><span class=\"soft\">fusions tuned", "<b>1 of 2</b><span class=\"soft\">weights pay packed",
		"<a href=\"#" + id + "\">3 ms</a>", "section class=\"card\" id=\"" + id + "\"", "with a weight packed, and not in the counts",
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
