package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// options are the flags of the program.
type options struct {
	// Folder of the texts, the program that is measured, a folder for what is made
	// on the way, and a Python with JAX; without the last there are no rivals.
	folder, tilewright, scratch, python string
	// Texts whose names do not match are left out. The default takes StableHLO, which
	// is partitioned here; the .hlo texts are fused by XLA.
	only *regexp.Regexp
	// Wall time of tuning a model, and the plans tried of a fusion.
	budget time.Duration
	try    int
	// limit is when a command counts as hanging.
	limit time.Duration
	// rounds of whole models beside XLA, and the fusions that are timed beside it;
	// maxBytes is the size of the arguments of a model that is executed at all.
	rounds, fusions int
	maxBytes        int64
	// sample is how many fusions of all models are tuned, instead of the models, for race
	// each; seed chooses them. 0 measures the models.
	sample int
	seed   uint64
	race   time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "models:", err)
		os.Exit(1)
	}
}

// parse reads the flags.
func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("models", flag.ContinueOnError)
	flags.StringVar(&o.folder, "folder", "bench/models/corpus", "the `folder` of the texts")
	flags.StringVar(&o.tilewright, "tilewright", "out/tilewright", "the `program` that is measured")
	flags.StringVar(&o.scratch, "scratch", "out/models", "a `folder` for databases and unpacked texts")
	flags.StringVar(&o.python, "python", "out/venv-models/bin/python", "a `Python` with JAX, the rival; none if it is not there")
	only := flags.String("only", `\.mlir$`, "measure the texts whose names match this `expression`")
	flags.DurationVar(&o.budget, "run-budget", time.Minute, "wall `time` of tuning a model")
	flags.IntVar(&o.try, "try", 8, "`plans` that are tried of a fusion")
	flags.DurationVar(&o.limit, "limit", 10*time.Minute, "the `time` after which a command hangs")
	flags.IntVar(&o.rounds, "rounds", 5, "`rounds` of a whole model, and of a fusion, beside XLA")
	flags.IntVar(&o.fusions, "fusions", 3, "the `number` of fusions that take longest to time beside XLA")
	flags.Int64Var(&o.maxBytes, "max-bytes", 2<<30, "execute models whose arguments take at most these `bytes`")
	flags.IntVar(&o.sample, "sample", 0, "instead of the models tune this `number` of distinct fusions of all of them, chosen at random")
	flags.Uint64Var(&o.seed, "seed", 1, "the `seed` that chooses a sample")
	flags.DurationVar(&o.race, "budget", 2*time.Second, "wall `time` of the race of a fusion of a sample")
	if err = flags.Parse(args); err == nil {
		o.only, err = regexp.Compile(*only)
	}
	return o, err
}

// run measures the models and prints the table as they are done: a line of cells
// that are separated by tabs, and notes behind it that begin with #. Nothing that
// happens to one model ends the table; an interrupt does.
func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	models, err := readCorpus(o.folder, o.only)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.scratch, 0o777); err != nil {
		return err
	}
	if o.sample > 0 {
		return o.tuneSample(ctx, models)
	}
	jax := newRival(ctx, o.python)
	defer jax.close()
	fmt.Println(strings.Join(header, "\t"))
	var all []row
	defer func() { fmt.Print(totalsOf(all)) }()
	for _, m := range models {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r := o.measure(ctx, m)
		o.execute(ctx, m, &r, jax)
		all = append(all, r)
		fmt.Println(r)
		for _, note := range r.notes {
			fmt.Printf("# %s: %s\n", m.Name, note)
		}
	}
	return nil
}

// unpacked writes the text of a model to the scratch folder and returns its name. It
// stays there, with the database of its winners, for a closer look.
func (o options) unpacked(m model) (string, error) {
	file := filepath.Join(o.scratch, m.Name)
	return file, os.WriteFile(file, m.Text, 0o666)
}
