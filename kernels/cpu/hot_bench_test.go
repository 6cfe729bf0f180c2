package cpu

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
)

// BenchmarkHot times the row fusions of BenchmarkRows on 64 rows, whose arrays stay in the
// second cache, with one thread: the time of the code without that of memory. HOT in the
// environment is one case, and KNOBS are plans' knobs to compare in turn ("stream=0;stream=0
// unroll=2"). It logs ns a row, the median and the least of 60 rounds.
func BenchmarkHot(b *testing.B) {
	knobs := os.Getenv("KNOBS")
	if knobs == "" {
		knobs = "stream=0;stream=1"
	}
	for _, c := range rowwise {
		name := os.Getenv("HOT")
		if name != "" && name != c.name || !strings.Contains(c.text, "4096") {
			continue
		}
		b.Run(c.name, func(b *testing.B) {
			compareHot(b, strings.ReplaceAll(c.text, "4096", "64"), strings.Split(knobs, ";"))
		})
	}
}

// compareHot is BenchmarkHot of one program.
func compareHot(b *testing.B, text string, knobs []string) {
	p, _ := landscape(b, text)
	bench, err := check.NewBench(b.Context(), p.Fusion, 1, 0)
	if err != nil {
		b.Fatal(err)
	}
	// One tile of all rows, along all dimensions.
	tiles := "64" + strings.Repeat(",1024", len(p.Space.Dims)-1)
	var all []kernels.Kernel
	for _, text := range knobs {
		plan, err := kernels.ParsePlan(strings.TrimSpace(tiles + " " + text))
		if err != nil {
			b.Fatal(err)
		}
		k, err := New().Compile(b.Context(), p, plan.With("threads", 1))
		if err != nil {
			b.Fatal(err)
		}
		defer k.Close()
		all = append(all, k)
	}
	const rows, rounds, runs = 64, 60, 20
	ns := make([][]float64, len(all))
	for range rounds * b.N {
		for n, k := range all {
			least := 1e9
			for range runs { // the first ones fill the caches
				d, err := bench.Run(b.Context(), k)
				if err != nil {
					b.Fatal(err)
				}
				least = min(least, d.Seconds()*1e9/rows)
			}
			ns[n] = append(ns[n], least)
		}
	}
	for n, text := range knobs {
		b.Logf(
			"%-28s median %7.1f ns a row, least %7.1f",
			text, middle(ns[n]), slices.Min(ns[n]),
		)
	}
}
