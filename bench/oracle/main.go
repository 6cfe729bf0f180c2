package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/symtile"
	corpus "github.com/tilewright/tilewright/testdata/hlo"
	"github.com/tilewright/tilewright/tuner"
)

// An oracle has the flags and what all fusions share.
type oracle struct {
	backend *cpu.Backend
	clock   clock
	// Plans of a fusion, and how many of them are the cheapest.
	plans, cheapest int
	// Blocks of samples.
	blocks int
	// Time of tuning a fusion; 0: it is not tuned.
	budget time.Duration
	// Most fusions, and a part of their names.
	fusions int
	only    string
	// Wall time after which no fusion is begun; 0 is none.
	span time.Duration
	// File of samples.
	file string
	// processor times by the processor's time, on one lane.
	processor bool
	// render prints what the file has.
	render bool
	// Time of measuring the rates of the device; 0: a short one.
	calibrate time.Duration
	// twice is the folder of the databases of tuning twice; "": that is not done.
	twice string
}

// fewestBlocks are needed for ratios of both parities.
const fewestBlocks = 4

func main() {
	var o oracle
	o.flags()
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := o.start(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

// flags defines the flags. Their standard values are those of `make oracle`, but for
// -tune and -o.
func (o *oracle) flags() {
	number := func(at *int, name string, standard int, usage string) {
		flag.IntVar(at, name, standard, usage)
	}
	number(&o.plans, "plans", 150, "`plans` that are timed of a fusion")
	number(&o.cheapest, "cheapest", 20, "of these, so many are the cheapest")
	number(&o.blocks, "blocks", 12, "`blocks` in which all plans are timed once")
	number(&o.fusions, "fusions", 30, "`fusions` that are measured at most")
	flag.DurationVar(&o.budget, "tune", 0, "tune each fusion for this `time`, too; 0: not")
	flag.StringVar(&o.only, "only", "", "leave out fusions without this `text` in their names")
	flag.DurationVar(&o.span, "for", 0, "begin no fusion after this `time`; 0: all are measured")
	flag.StringVar(&o.file, "o", "", "append samples to this `file`; fusions that it has are not measured again")
	flag.BoolVar(&o.processor, "processor", false, "time one lane by processor time, which a busy machine disturbs less")
	flag.DurationVar(&o.calibrate, "calibrate", 0, "measure the rates of the device for this `time` first, for the bounds")
	flag.BoolVar(&o.render, "render", false, "measure nothing, print what the file of -o has")
	flag.StringVar(&o.twice, "twice", "", "instead of landscapes, tune all fusions twice into databases in this `folder`, and count other winners")
}

// start checks the flags and does what they say.
func (o *oracle) start(ctx context.Context) (err error) {
	if o.blocks < fewestBlocks || o.plans < 2 {
		return fmt.Errorf("-blocks is at least %d and -plans at least 2", fewestBlocks)
	}
	if o.clock, err = newClock(o.processor); err != nil {
		return err
	}
	o.backend = o.clock.backend
	if o.calibrate > 0 && !o.render {
		rates, err := o.backend.Calibrate(ctx, o.calibrate)
		if err == nil {
			err = o.backend.SetRates(rates)
		}
		if err != nil {
			return err
		}
	}
	if o.twice != "" {
		return o.tuneTwice(ctx)
	}
	return o.run(ctx)
}

// run measures the fusions that have tiles and are not in the file yet, and prints a line
// for each.
func (o *oracle) run(ctx context.Context) error {
	all, err := o.stored()
	if err != nil {
		return err
	}
	fmt.Printf("%s, by %s time\n", o.device(), o.clock.name())
	fmt.Printf("%-30s %5s  %s\n", "fusion", "plans", header)
	for k := range all {
		all[k].print(os.Stdout)
	}
	if !o.render {
		if all, err = o.measureAll(ctx, all); err != nil {
			return err
		}
	}
	summarize(os.Stdout, all)
	return nil
}

// device is the processor and the revision of its code generator.
func (o *oracle) device() string {
	d := o.backend.Identity()
	return d.Name + " " + d.Revision
}

// stored are the samples of this device and clock in the file.
func (o *oracle) stored() ([]table, error) {
	if o.file == "" {
		return nil, nil
	}
	all, err := readTables(o.file)
	device := o.device()
	return slices.DeleteFunc(all, func(t table) bool {
		return t.Device != device ||
			t.Clock != o.clock.name() ||
			!strings.Contains(t.Fusion, o.only)
	}), err
}

// measureAll measures what is not among the tables of fusions until their number, or the
// time, is reached.
func (o *oracle) measureAll(ctx context.Context, all []table) ([]table, error) {
	fusions, err := corpus.Fusions()
	if err != nil {
		return all, err
	}
	// A database that is empty at first, and removed: what is tuned is what a fresh
	// machine would find.
	folder, err := os.MkdirTemp("", "oracle")
	if err != nil {
		return all, err
	}
	defer os.RemoveAll(folder)
	t := o.tuner(filepath.Join(folder, "winners.db"))
	begin := time.Now()
	for _, f := range fusions {
		if len(all) >= o.fusions || o.span > 0 && time.Since(begin) > o.span {
			break
		}
		known := func(t table) bool { return t.Fusion == f.Name }
		if slices.ContainsFunc(all, known) || !strings.Contains(f.Name, o.only) {
			continue
		}
		p, err := symtile.Analyze(ctx, f.Computation)
		if err != nil {
			continue // it has no tiles
		}
		measured, err := o.fusion(ctx, t, f.Name, p)
		if err != nil {
			return all, fmt.Errorf("%s: %w", f.Name, err)
		}
		measured.print(os.Stdout)
		all = append(all, measured)
	}
	return all, nil
}

// tuner is one with the standard options and a database.
func (o *oracle) tuner(file string) *tuner.Tuner {
	t := &tuner.Tuner{Backend: o.backend, Cache: cache.Open(file)}
	t.Options.Budget = o.budget
	t.Options.Seed = 1
	return t
}

// fusion measures one fusion and stores its samples: first what is offered, then what the
// tuner finds, so that the samples of all are of the same blocks.
func (o *oracle) fusion(
	ctx context.Context, t *tuner.Tuner, name string, p *symtile.Program,
) (table, error) {
	before := o.backend.Quiet()
	l, err := o.landscape(ctx, p)
	if err != nil {
		return table{}, err
	}
	defer l.close()
	if o.budget > 0 {
		r, err := t.Tune(ctx, p.Fusion)
		if err != nil {
			return table{}, err
		}
		if err := l.addTuned(ctx, o.backend, r.Record.Plan); err != nil {
			return table{}, err
		}
	}
	if err := l.measure(ctx, o.blocks); err != nil {
		return table{}, err
	}
	l.Fusion = name
	l.Device = o.device()
	l.Clock = o.clock.name()
	device := o.backend.Device()
	l.Bound, err = cost.LowerBound(p, device, l.bench.Bytes())
	if err != nil {
		return table{}, err
	}
	l.Quiet = [2]float64{before, o.backend.Quiet()}
	if o.file == "" {
		return l.table, nil
	}
	return l.table, l.appendTo(o.file)
}
