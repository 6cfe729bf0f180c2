package tuner

import (
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A plan of a fusion is legal for the fusion's canonical text, also when layouts and
// names are those of the module.
func TestLegalityOfCanonicalText(t *testing.T) {
	files, err := filepath.Glob("../testdata/hlo/*.hlo")
	if err != nil {
		t.Fatal(err)
	}
	tested := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := hlo.Parse(file, text)
		if err != nil {
			continue
		}
		for _, c := range m.Computations {
			tested += legalAsText(t, c)
		}
	}
	if tested < 20 {
		t.Errorf("%d fusions tested", tested)
	}
}

// legalAsText checks the record of a fusion's default plan; 0 is no fusion with tiles.
func legalAsText(t *testing.T, c *hlo.Computation) int {
	ctx := context.Background()
	p, err := symtile.Analyze(ctx, c)
	if err != nil {
		return 0
	}
	plan, err := cpu.New().Default(ctx, p)
	if err != nil {
		return 0
	}
	text := c.Canonical()
	r := cache.Record{Key: cache.Key{Fusion: sha256.Sum256([]byte(text))}, Canonical: text, Plan: plan.String()}
	var rule Legality
	var both sync.WaitGroup
	for range 2 { // as the goroutines of an import
		both.Go(func() {
			for range 3 {
				if err := rule.Check(ctx, &r); err != nil {
					t.Errorf("%s: %v", c.Name, err)
				}
			}
		})
	}
	both.Wait()
	return 1
}

// A check ends with its context, rather than in a refusal of the record.
func TestLegalityEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c := fusionOf(t)
	text := c.Canonical()
	r := cache.Record{Key: cache.Key{Fusion: sha256.Sum256([]byte(text))}, Canonical: text, Plan: "1"}
	if err := new(Legality).Check(ctx, &r); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A time that no sample has, and a gain that no two samples have, are refused.
func TestConsistent(t *testing.T) {
	r := cache.Record{
		Plan: "1", Default: "2", Seconds: 2, DefaultSeconds: 4, Speedup: [3]float64{2, 1.5, 2.5},
		Trials: []cache.Trial{{Plan: "1", Samples: []float64{1, 2, 3}}, {Plan: "2", Samples: []float64{3, 4, 9}}},
	}
	for want, edit := range map[string]func(r *cache.Record){
		"": func(*cache.Record) {},
		"the winner takes 1e+300 s, which is not between its samples": func(r *cache.Record) { r.Seconds = 1e300 },
		"the default takes 0.1 s, which is not between its samples":   func(r *cache.Record) { r.DefaultSeconds = 0.1 },
		"a gain of 3, which is not from 1.5 to 2.5":                   func(r *cache.Record) { r.Speedup[0] = 3 },
		"a gain of 1e+09, and of 9 at most by its samples":            func(r *cache.Record) { r.Speedup = [3]float64{1e9, 1e8} },
	} {
		edited := r
		edit(&edited)
		got := ""
		if err := consistent(&edited); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
