package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tilewright/tilewright/kernels/cpu"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// arguments are the parsed flags of the command.
type arguments struct {
	options
	// Quick measures small shapes in few rounds.
	quick, render, search, extend bool
	// Cases that do not match only are left out.
	only *regexp.Regexp
	// raw is the file of samples, table the document made from them, and readme
	// the document that has the short table.
	raw, table, readme string
	// cores are the numbers of threads, each measured in a session of its own.
	cores []int
}

// run is the command: it measures, writes the tables and returns the exit
// status.
func run(args []string, out, status io.Writer) int {
	a, err := parseArguments(args, status)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(status, "peers:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if !a.render {
		err = a.measure(ctx, status)
	}
	if err == nil {
		err = a.tables(out)
	}
	if err != nil {
		fmt.Fprintln(status, "peers:", err)
		return 1
	}
	return 0
}

// parseArguments parses the flags and fills in the defaults.
func parseArguments(args []string, status io.Writer) (*arguments, error) {
	a := &arguments{}
	f := flag.NewFlagSet("peers", flag.ContinueOnError)
	f.SetOutput(status)
	f.StringVar(&a.folder, "drivers", "out/peers", "`folder` of the drivers")
	f.BoolVar(&a.quick, "quick", false, "a look in a minute: small shapes, few rounds, to out/ unless told")
	f.BoolVar(&a.search, "exhaustive", false, "measure up to -most plans of a few small fusions instead, to the file of -raw with .exhaustive in its name")
	f.BoolVar(&a.extend, "append", false, "measure only cases that the file of samples has not got")
	f.IntVar(&a.maxPlans, "most", 0, "at most so many `plans` of an exhaustive search (2000; quick 40)")
	f.IntVar(&a.samplePlans, "sample", 0, "`plans` of the landscape of a case (24; quick 5)")
	f.BoolVar(&a.render, "render", false, "measure nothing: make the table of -raw again")
	f.StringVar(&a.raw, "raw", "", "`file` of the samples (bench/peers/RESULTS.tsv)")
	f.StringVar(&a.table, "table", "", "`file` of the table (bench/peers/RESULTS.md)")
	f.StringVar(&a.readme, "readme", "", "`file` whose short table is made again (docs/performance.md, with the table of bench/peers)")
	f.IntVar(&a.try, "try", 0, "`plans` measured a case when tuning (24; quick 5)")
	f.DurationVar(&a.budget, "budget", 0, "`time` for tuning a case (20s; quick 300ms)")
	f.DurationVar(&a.limit, "limit", 0, "`time` for the rounds of a case (30s; quick 300ms)")
	f.IntVar(&a.rounds, "rounds", 0, "at most so many `rounds` a case (25; quick 7)")
	f.Int64Var(&a.seed, "seed", 1, "`seed` of inputs and of the order of turns")
	only := f.String("only", "", "measure the cases this `regexp` matches, as in 'sgemm|softmax 4096', to out/ unless told")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("%q is not expected", f.Arg(0))
	}
	var err error
	if a.only, err = regexp.Compile(*only); err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	a.complete()
	return a, nil
}

// complete fills in the flags that were not given. A run that is quick or
// restricted to some cases writes to out/, so that it does not replace the
// published results.
func (a *arguments) complete() {
	raw, table := "bench/peers/RESULTS.tsv", "bench/peers/RESULTS.md"
	standard := fullRun
	if a.quick || a.only.String() != "" {
		raw, table = "out/peers.tsv", "out/peers.md"
	}
	if a.quick {
		standard = quickRun
	}
	if a.raw+a.table == "" && table == "bench/peers/RESULTS.md" {
		a.readme = orDefault(a.readme, "docs/performance.md")
	}
	a.raw = orDefault(a.raw, raw)
	a.table = orDefault(a.table, table)
	a.options = a.options.or(standard)
	a.cores = []int{1}
	if n := runtime.GOMAXPROCS(0); a.search {
		a.cores = []int{n} // plans of fewer threads are among them
	} else if n > 1 {
		a.cores = append(a.cores, n)
	}
}

// orDefault replaces a zero value.
func orDefault[T comparable](v, zeroMeans T) T {
	var zero T
	if v == zero {
		return zeroMeans
	}
	return v
}

// samples is the file that samples are written to.
func (a *arguments) samples() string {
	if a.search {
		return exhaustive(a.raw)
	}
	return a.raw
}

// exhaustive is the file of exhaustive searches that belongs to a file of
// samples.
func exhaustive(raw string) string { return strings.TrimSuffix(raw, ".tsv") + ".exhaustive.tsv" }

// measure runs all cases and moves the file of samples into its place at the
// end. What an interrupted run has measured stays in a file next to it.
func (a *arguments) measure(ctx context.Context, status io.Writer) error {
	earlier := &results{}
	if a.extend {
		var err error
		if earlier, err = readFile(a.samples()); err != nil &&
			!errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := appends(earlier.machine, machine()); err != nil {
			return fmt.Errorf("%s %w", a.samples(), err)
		}
	}
	part := a.samples() + ".part"
	raw, err := os.Create(part)
	if err != nil {
		return err
	}
	err = errors.Join(
		a.sessions(ctx, earlier, raw, status),
		raw.Close(),
	)
	if err != nil {
		return fmt.Errorf("%w\nwhat was measured is in %s; its table: -render -raw %s -table FILE", err, part, part)
	}
	return os.Rename(part, a.samples())
}

// appends says why samples of one machine cannot be followed by those of another: a file
// names one. A file without samples names none.
func appends(earlier, now string) error {
	if earlier == "" || earlier == now {
		return nil
	}
	return fmt.Errorf("is of %s, and this is %s; -raw FILE and -table FILE name others", earlier, now)
}

// sessions measures all cases for each number of threads, and writes each
// result as soon as there is one, behind those of an earlier run.
func (a *arguments) sessions(
	ctx context.Context, earlier *results, raw, status io.Writer,
) error {
	tmp, err := os.MkdirTemp("", "tilewright-peers")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	whole := machine() // before sessions take cores away
	for n, threads := range a.cores {
		if err := a.withThreads(ctx, threads, tmp, func(s *session) error {
			if n == 0 {
				r := &results{
					machine: whole,
					drivers: s.versions(),
					cases:   earlier.cases,
				}
				if err := r.write(raw); err != nil {
					return err
				}
			}
			return a.measureCases(ctx, s, earlier, raw)
		}, status); err != nil {
			return err
		}
	}
	return nil
}

// withThreads runs f in a session in which our side and the drivers have the
// given number of threads.
func (a *arguments) withThreads(
	ctx context.Context,
	threads int,
	tmp string,
	f func(*session) error,
	status io.Writer,
) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
	s := newSession(a.options, threads, tmp, status)
	defer s.close()
	return f(s)
}

// measureCases measures the cases of a session that are wanted and that an
// earlier run did not measure.
func (a *arguments) measureCases(
	ctx context.Context, s *session, earlier *results, raw io.Writer,
) error {
	for _, c := range a.cases() {
		if !a.only.MatchString(c.String()) ||
			earlier.has(c, s.threads) {
			continue
		}
		begin := time.Now()
		measure := s.measure
		if a.search {
			measure = s.search
		}
		res, err := measure(ctx, c)
		if err != nil {
			return err
		}
		if err := res.write(raw); err != nil {
			return err
		}
		fmt.Fprintf(
			s.status,
			"%-28s %d threads  %s  (%.1f s)\n",
			c,
			s.threads,
			res.brief(),
			time.Since(begin).Seconds(),
		)
	}
	return nil
}

// cases are the cases that the flags select.
func (a *arguments) cases() []testCase {
	switch {
	case a.search:
		return searchCases()
	case a.quick:
		return quickCases()
	}
	return allCases()
}

// versions lists the drivers with the versions of their libraries, and reports
// how to install those that are missing.
func (s *session) versions() []namedText {
	var all []namedText
	for _, d := range drivers {
		if p := s.drivers[d.name]; p != nil {
			all = append(all, namedText{d.name, p.version})
			continue
		}
		all = append(all, namedText{d.name, ""})
		fmt.Fprintf(s.status, "%s is not measured: there is no driver (Debian: %s)\n", d.title, d.needs)
	}
	return all
}

// tables reads the files of samples, of which one may be missing, writes the
// tables and prints them.
func (a *arguments) tables(out io.Writer) error {
	r, err := readFile(a.raw)
	if err != nil && !(a.search && errors.Is(err, fs.ErrNotExist)) {
		return err
	}
	searches, err := readFile(exhaustive(a.raw))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text := document(r, searches)
	if err := os.WriteFile(a.table, []byte(text), 0o644); err != nil {
		return err
	}
	if a.readme != "" {
		if err := r.summarise(a.readme); err != nil {
			return err
		}
	}
	_, err = io.WriteString(out, text)
	return err
}

// document is the page of all results, or of the searches alone where nothing
// else was measured.
func document(r, searches *results) string {
	text := searches.searched()
	if r.machine == "" && text != "" {
		return text
	}
	return r.markdown() + text
}

// readFile reads the results of a file; with an error they are empty.
func readFile(path string) (*results, error) {
	raw, err := os.Open(path)
	if err != nil {
		return &results{}, err
	}
	defer raw.Close()
	r, err := readResults(raw)
	if err != nil {
		return &results{}, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// machine describes the processor, its caches and the versions of Go and of the
// backend, in one line.
func machine() string {
	d := cpu.New().Identity()
	var levels []string
	for _, l := range d.Levels {
		if l.Bytes > 0 {
			levels = append(levels, fmt.Sprintf("%s %d KiB", l.Name, l.Bytes>>10))
		}
	}
	return fmt.Sprintf(
		"%s; %s; %s %s/%s, backend revision %s", strings.TrimPrefix(d.Name, "cpu:"),
		strings.Join(levels, ", "),
		runtime.Version(), runtime.GOOS, runtime.GOARCH, d.Revision,
	)
}

// load is the load average of the last minute, −1 where it is not known.
func load() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return -1
	}
	v, err := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
	if err != nil {
		return -1
	}
	return v
}
