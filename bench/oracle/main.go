package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/symtile"
	corpus "github.com/tilewright/tilewright/testdata/hlo"
	"github.com/tilewright/tilewright/tuner"
)

// An oracle has the flags and what all fusions share.
type oracle struct {
	backend *cpu.Backend
	// Plans of a fusion, and how many of them are the cheapest.
	plans, cheapest int
	// Blocks of samples.
	blocks int
	// Time of tuning a fusion; 0: it is not tuned.
	budget time.Duration
	// Most fusions, and a part of their names.
	fusions int
	only    string
	// Sums of logarithms of the ratios of all fusions, and the largest ratio.
	sums  [columns]float64
	worst [columns]float64
	count [columns]int
}

func main() {
	o := oracle{backend: cpu.New()}
	o.flags()
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

// flags defines the flags. Their standard values are those of `make oracle`, but for
// -tune.
func (o *oracle) flags() {
	number := func(at *int, name string, standard int, usage string) {
		flag.IntVar(at, name, standard, usage)
	}
	number(&o.plans, "plans", 150, "`plans` that are timed of a fusion")
	number(&o.cheapest, "cheapest", 20, "of these, so many are the cheapest")
	number(&o.blocks, "blocks", 12, "`blocks` in which all plans are timed once")
	number(&o.fusions, "fusions", 30, "`fusions` that are measured at most")
	flag.DurationVar(
		&o.budget, "tune", 0,
		"tune each fusion for this `time`, too; 0: not",
	)
	flag.StringVar(
		&o.only, "only", "",
		"leave out fusions without this `text` in their names",
	)
}

// run measures the fusions that have tiles, and prints a line for each.
func (o *oracle) run(ctx context.Context) error {
	if o.blocks < 4 || o.plans < 2 {
		return fmt.Errorf("-blocks is at least 4 and -plans at least 2")
	}
	all, err := corpus.Fusions()
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "oracle")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	// A database that is empty at first, and removed: what is tuned is what a fresh
	// machine would find.
	winners := filepath.Join(folder, "winners.db")
	t := &tuner.Tuner{
		Backend: o.backend,
		Cache:   cache.Open(winners),
	}
	t.Options.Budget = o.budget
	t.Options.Seed = 1
	fmt.Println(o.backend.Device().Name)
	fmt.Printf("%-30s %5s  %s\n", "fusion", "plans", header)
	measured := 0
	for _, f := range all {
		if measured == o.fusions {
			break
		}
		if !strings.Contains(f.Name, o.only) {
			continue
		}
		p, err := symtile.Analyze(ctx, f.Computation)
		if err != nil {
			continue // it has no tiles
		}
		if err := o.fusion(ctx, t, f.Name, p); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		measured++
	}
	o.summary(measured)
	return nil
}

// fusion measures one fusion and prints its line: first what is offered, then what the
// tuner finds, so that the samples of all are of the same blocks.
func (o *oracle) fusion(
	ctx context.Context, t *tuner.Tuner, name string, p *symtile.Program,
) error {
	before := o.backend.Quiet()
	l, err := o.landscape(ctx, p)
	if err != nil {
		return err
	}
	if o.budget > 0 {
		r, err := t.Tune(ctx, p.Fusion)
		if err != nil {
			return err
		}
		err = l.addTuned(ctx, o.backend, r.Record.Plan)
		if err != nil {
			return err
		}
	}
	defer l.close()
	if err := l.measure(ctx, o.blocks); err != nil {
		return err
	}
	ratios := l.ratios()
	fmt.Printf("%-30s %5d ", name, len(l.kernels))
	for k, r := range ratios {
		if r > 0 {
			o.sums[k] += math.Log(r)
			o.worst[k] = max(o.worst[k], r)
			o.count[k]++
		}
		fmt.Printf(" %7.3f", r)
	}
	rho, price := l.order()
	fmt.Printf("  %5.2f %6.2f", rho, price)
	// The share of the machine that was there.
	after := o.backend.Quiet()
	fmt.Printf("  %.0f%% %.0f%%\n", 100*before, 100*after)
	return nil
}

// summary prints the geometric means and the largest ratios.
func (o *oracle) summary(measured int) {
	fmt.Printf("%-30s %5d ", "geometric mean", measured)
	for k, sum := range o.sums {
		n := float64(max(1, o.count[k]))
		fmt.Printf(" %7.3f", math.Exp(sum/n))
	}
	fmt.Printf("\n%-30s %5s ", "worst", "")
	for _, w := range o.worst {
		fmt.Printf(" %7.3f", w)
	}
	fmt.Println()
}
