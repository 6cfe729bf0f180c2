package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/tuner"
)

// To race all distinct fusions of the corpus takes hours. A sample of them, each with the
// budget of a race and few plans, says which share of them ends with a winner, and why the
// others do not. Of 60 fusions of which 59 are tuned the share of all is between 91 and
// 99.96 % with 95 % confidence (Clopper and Pearson).

// A sampled fusion is a distinct one of all texts.
type sampled struct {
	// The name of the first model that has it, as that of its text.
	model string
	// The fusion itself.
	c *hlo.Computation
}

// sample chooses fusions of the models at random, each distinct one once, the same ones
// for the same seed.
func sample(models []model, n int, seed uint64) ([]sampled, error) {
	var all []sampled
	seen := map[string]bool{}
	for _, m := range models {
		parsed, err := hlo.Parse(m.Name, m.Text)
		if err != nil {
			return nil, err
		}
		for _, c := range withFusions(parsed).Fusions() {
			if text := c.Canonical(); !seen[text] {
				seen[text] = true
				all = append(all, sampled{m.Name, c})
			}
		}
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(n, len(all))], nil
}

// tuneSample races fusions of all models for a time each, and prints what became of
// those that have no winner, and the shares. An interrupt ends it after those that were
// done. A fusion whose runs take so much of the budget that only its default plan is timed
// counts as checked, not as tuned.
func (o options) tuneSample(ctx context.Context, models []model) error {
	all, err := sample(models, o.sample, o.seed)
	if err != nil {
		return err
	}
	db := filepath.Join(o.scratch, "sample.db")
	if err := os.Remove(db); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	t := &tuner.Tuner{
		Backend: cpu.New(),
		Cache:   cache.Open(db),
		Options: tuner.Options{Budget: o.race, Candidates: o.try},
	}
	count := map[string]int{}
	began, done := time.Now(), 0
	for ; done < len(all); done++ {
		x := all[done]
		r, err := t.Tune(ctx, x.c)
		if ctx.Err() != nil {
			break
		}
		state := stateOf(r, err)
		if count[state]++; state != "tuned" {
			why := cmp.Or(err, errors.New("one run of its default takes too much of the budget"))
			fmt.Printf("# %s %s %s: %s\n", x.model, x.c.Name, state, firstLine(why.Error()))
		}
	}
	fmt.Print(sampleLine(count, done, time.Since(began)))
	return ctx.Err()
}

// stateOf is what became of a fusion: it has no tiles, it was refused since the device has
// no code for it or since one run is too long for the budget, it failed, its default was
// checked, or it was tuned.
func stateOf(r tuner.Result, err error) string {
	var no *symtile.Untileable
	var uncomputed *kernels.Uncomputed
	var slow *tuner.TooSlowError
	switch {
	case errors.As(err, &no):
		return "untileable"
	case errors.As(err, &slow):
		return "too slow"
	case errors.As(err, &uncomputed):
		return "refused"
	case err != nil:
		return "failed"
	case r.Record.Provisional:
		return "checked"
	}
	return "tuned"
}

// sampleLine sums a sample up: the share of tuned fusions among those that have tiles, and
// the number of each state.
func sampleLine(count map[string]int, all int, took time.Duration) string {
	tileable := all - count["untileable"]
	text := fmt.Sprintf(
		"# of %d fusions that can be tiled %.1f %% ended tuned",
		tileable, 100*float64(count["tuned"])/float64(max(1, tileable)),
	)
	var states []string
	for state := range count {
		states = append(states, state)
	}
	slices.Sort(states)
	for _, state := range states {
		text += fmt.Sprintf(", %d %s", count[state], state)
	}
	return fmt.Sprintf("%s, in %.0f s\n", text, took.Seconds())
}
