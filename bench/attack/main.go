//go:build unix

package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"text/tabwriter"
	"time"
)

// main runs the attacks, or, as a worker of itself, some mutants.
func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// options are the parsed flags.
type options struct {
	// Determines everything that is drawn at random.
	seed uint64
	// Counts of the attacks.
	kills, flips, mutants, faults int
	// Time of the readers.
	readers time.Duration
	// A third of the garbage only.
	quick bool
	// Attacks whose name does not match are left out.
	only *regexp.Regexp
	// A folder for the mutants that do harm, and the command line that is attacked.
	keep, program string

	// The range of mutants that this process tries, as a worker of another.
	worker string
}

// parse reads the flags.
func parse(args []string, status io.Writer) (o options, err error) {
	f := flag.NewFlagSet("attack", flag.ContinueOnError)
	f.SetOutput(status)
	f.Uint64Var(&o.seed, "seed", 1, "`seed` of everything that is drawn at random")
	f.IntVar(&o.kills, "kills", 1_000, "`number` of kills")
	f.IntVar(&o.flips, "flips", 10_000, "`number` of damaged databases, and of snapshots")
	f.IntVar(&o.mutants, "mutants", 50_000, "`number` of mutants")
	f.IntVar(&o.faults, "faults", 200, "`number` of kernels with a fault")
	f.DurationVar(&o.readers, "readers", 60*time.Second, "`time` of the readers")
	f.StringVar(&o.keep, "keep", "out/attack", "`folder` for mutants that do harm")
	f.StringVar(&o.program, "program", "", "the `file` of tilewright; built if not given")
	f.StringVar(&o.worker, "worker", "", "internal: try the mutants `from:to`")
	f.BoolVar(&o.quick, "quick", false, "small counts, for a look in two minutes")
	only := f.String("only", "", "the attacks whose names match `regexp`")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.quick {
		o.kills, o.flips, o.mutants, o.faults = 30, 500, 1_000, 0
		o.readers = 5 * time.Second
	}
	o.only, err = regexp.Compile(*only)
	return o, err
}

// An attack is one row of the table.
type attack struct {
	// The name in the table, which -only matches.
	name string
	// Its error is one of the attack, not of the program that is attacked.
	run func(*session) (result, error)
}

// attacks are all of them, in the order of the table.
var attacks = []attack{
	{"flips", flipDatabases},
	{"snapshots", flipSnapshots},
	{"mutants", mutate},
	{"disks", fillDisks},
	{"locks", holdLocks},
	{"garbage", feedGarbage},
	{"limits", reachLimits},
	{"readers", readAlongside},
	{"faults", injectFaults},
	{"kills", kill},
}

// A result is what an attack did and found.
type result struct {
	// The number of cases: kills, files, texts, commands or reads.
	tried int
	// The harm that was done, a line each.
	bad []string
	// What happened otherwise, for the table.
	note string
}

// harm adds something bad.
func (r *result) harm(format string, args ...any) {
	r.bad = append(r.bad, fmt.Sprintf(format, args...))
}

// A session is one run of the command.
type session struct {
	options
	// A temporary folder for everything that is written; it is removed at the end,
	// so that what is worth keeping goes to the folder of -keep.
	dir string
}

// run is the command: it returns the exit status.
func run(args []string, out, status io.Writer) int {
	o, err := parse(args, status)
	if err != nil {
		return 2
	}
	if o.worker != "" {
		return work(o, out)
	}
	dir, err := os.MkdirTemp("", "attack")
	if err != nil {
		fmt.Fprintln(status, "attack:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	s := &session{o, dir}
	if err := s.build(); err != nil {
		fmt.Fprintln(status, "attack:", err)
		return 1
	}
	return s.table(out, status)
}

// build makes the program, unless there is one.
func (s *session) build() error {
	if s.program != "" {
		return nil
	}
	s.program = filepath.Join(s.dir, "tilewright")
	made, err := exec.Command("go", "build", "-o", s.program, "./cmd/tilewright").CombinedOutput()
	if err != nil {
		return fmt.Errorf("go build: %w\n%s", err, made)
	}
	return nil
}

// table runs the attacks and prints a row for each, then what is bad.
func (s *session) table(out, status io.Writer) (code int) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "attack\ttried\tbad\tseconds\twhat happened")
	var bad []string
	for _, a := range attacks {
		if !s.only.MatchString(a.name) {
			continue
		}
		fmt.Fprintln(status, "attack:", a.name)
		begin := time.Now()
		r, err := a.run(s)
		if err != nil {
			r.harm("the attack itself failed: %v", err)
		}
		seconds := time.Since(begin).Seconds()
		fmt.Fprintf(t, "%s\t%d\t%d\t%.0f\t%s\n", a.name, r.tried, len(r.bad), seconds, r.note)
		for _, text := range r.bad {
			bad = append(bad, a.name+": "+text)
		}
	}
	t.Flush()
	for _, text := range bad {
		fmt.Fprintf(out, "%.2000s\n", text)
		code = 1
	}
	return code
}
