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
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/tilewright/tilewright/kernels/cpu"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// arguments are the parsed flags of the command.
type arguments struct {
	options
	// Quick measures small shapes in few rounds, essential the most telling cases with
	// less time for each.
	quick, essential, render, search bool
	// Cases that the file of samples has already are measured again; fresh begins with
	// an empty file.
	again, fresh bool
	// A folder of models, of which the dearest fusions become cases.
	pick string
	// No case begins after this time; 0 is no limit.
	span time.Duration
	// Cases that do not match only are left out.
	only *regexp.Regexp
	// raw is the file of samples, table the document made from them, and readme
	// the document that has the short table.
	raw, table, readme string
	// The document is made from the files of all processors.
	everyProcessor bool
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
	switch {
	case a.pick != "":
		err = pick(ctx, a.pick, "bench/peers/"+fusionFolder)
	case !a.render:
		err = a.measure(ctx, status)
	}
	if err == nil && a.pick == "" {
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
	f.BoolVar(&a.essential, "essential", false, "the most telling cases, with a quarter of the time for each")
	f.BoolVar(&a.search, "exhaustive", false, "measure up to -most plans of a few small fusions instead, to the file of -raw with .exhaustive in its name")
	f.BoolVar(&a.again, "again", false, "measure cases that the file of samples has already, too")
	f.StringVar(&a.pick, "pick", "", "measure nothing: choose the fusions of models again, from the StableHLO of this `folder`")
	f.DurationVar(&a.span, "for", 0, "begin no case after this `time`; the next run goes on (0 is no limit)")
	f.IntVar(&a.maxPlans, "most", 0, "at most so many `plans` of an exhaustive search (2000; quick 40)")
	f.IntVar(&a.samplePlans, "sample", 0, "`plans` of the landscape of a case (24; quick 5)")
	f.BoolVar(&a.render, "render", false, "measure nothing: make the tables again")
	f.StringVar(&a.raw, "raw", "", "`file` of the samples (one in bench/peers/results that is named after the processor)")
	f.StringVar(&a.table, "table", "", "`file` of the table (bench/peers/RESULTS.md)")
	f.StringVar(&a.readme, "readme", "", "`file` whose table of goals is made again (docs/performance.md, with the table of bench/peers)")
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

// resultsFolder has a file of samples for each processor.
const resultsFolder = "bench/peers/results"

// complete fills in the flags that were not given. A run that is quick or
// restricted to some cases writes to out/, so that it does not replace the
// published results.
func (a *arguments) complete() {
	raw, table := filepath.Join(resultsFolder, fileName(machine())), "bench/peers/RESULTS.md"
	if a.quick || a.only.String() != "" {
		raw, table = "out/peers.tsv", "out/peers.md"
		a.fresh = a.raw == ""
	}
	if a.raw+a.table == "" && table == "bench/peers/RESULTS.md" {
		a.readme = orDefault(a.readme, "docs/performance.md")
		a.everyProcessor = true
	}
	a.raw = orDefault(a.raw, raw)
	a.table = orDefault(a.table, table)
	a.options = a.options.or(a.standard())
	a.cores = []int{1}
	if n := runtime.GOMAXPROCS(0); a.search {
		a.cores = []int{n} // plans of fewer threads are among them
	} else if n > 1 {
		a.cores = append(a.cores, n)
	}
}

// standard are the options of a run where nothing else is told.
func (a *arguments) standard() options {
	switch {
	case a.quick:
		return quickRun
	case a.essential:
		return essentialRun
	}
	return fullRun
}

// fileName is the name of the file of samples of a processor.
func fileName(processor string) string {
	words := strings.FieldsFunc(processor, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	return strings.Join(words, "-") + ".tsv"
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

// measure runs all cases that the file of samples does not have. After each case the
// file is written again, so that a run that is interrupted loses one case at most.
func (a *arguments) measure(ctx context.Context, status io.Writer) error {
	r, err := a.earlier()
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "peers")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var sessions []*session
	for _, threads := range a.cores {
		runtime.GOMAXPROCS(threads)
		s := newSession(a.options, threads, tmp, status)
		defer s.close()
		sessions = append(sessions, s)
	}
	r.know(sessions[0].versions())
	return a.measureCases(ctx, sessions, r)
}

// earlier reads the file of samples, which may not be there yet. Samples of another
// processor are an error.
func (a *arguments) earlier() (*results, error) {
	r, err := &results{}, error(nil)
	if !a.fresh {
		r, err = readFile(a.samples())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	now := machine()
	if r.machine != "" && r.machine != now {
		return nil, fmt.Errorf("%s is of %s, and this is %s; -raw FILE and -table FILE name others", a.samples(), r.machine, now)
	}
	r.machine = now
	return r, nil
}

// measureCases measures the cases that are wanted and that are not there yet, each in
// all sessions before the next, and writes the results after each.
func (a *arguments) measureCases(ctx context.Context, sessions []*session, r *results) error {
	begin := time.Now()
	for _, c := range a.cases() {
		for _, s := range sessions {
			if !a.only.MatchString(c.String()) || !a.again && r.has(c, s.threads) {
				continue
			}
			if a.span > 0 && time.Since(begin) > a.span {
				fmt.Fprintf(s.status, "stopped after %v, before %s\n", a.span, c)
				return nil
			}
			res, err := a.measureCase(ctx, s, c)
			if err != nil {
				return err
			}
			r.put(res)
			if err := r.writeFile(a.samples()); err != nil {
				return err
			}
		}
	}
	return r.writeFile(a.samples())
}

// measureCase measures a case with the threads of a session, and says what came of it.
func (a *arguments) measureCase(ctx context.Context, s *session, c testCase) (*caseResult, error) {
	runtime.GOMAXPROCS(s.threads)
	begin := time.Now()
	measure := s.measure
	if a.search {
		measure = s.search
	}
	res, err := measure(ctx, c)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(
		s.status, "%-28s %d threads  %s  (%.1f s)\n", c, s.threads, res.brief(),
		time.Since(begin).Seconds(),
	)
	return res, nil
}

// cases are the cases that the flags select.
func (a *arguments) cases() []testCase {
	switch {
	case a.search:
		return searchCases()
	case a.quick:
		return quickCases()
	case a.essential:
		return essentialCases()
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
		fmt.Fprintf(s.status, "%s is not measured: there is no driver (it is made of %s)\n", d.title, d.needs)
	}
	return all
}

// tables reads the files of samples, writes the tables and prints them.
func (a *arguments) tables(out io.Writer) error {
	files := []string{a.raw}
	if a.everyProcessor {
		var err error
		if files, err = filepath.Glob(filepath.Join(resultsFolder, "*.tsv")); err != nil {
			return err
		}
	}
	all, err := readProcessors(files)
	if err != nil {
		return err
	}
	text := document(all)
	if err := os.WriteFile(a.table, []byte(text), 0o644); err != nil {
		return err
	}
	if a.readme != "" {
		if err := summarise(a.readme, all); err != nil {
			return err
		}
	}
	_, err = io.WriteString(out, text)
	return err
}

// A processor is what was measured on it, and the searches.
type processor struct{ measured, searches *results }

// readProcessors reads files of samples with their exhaustive searches, of which one
// may be missing.
func readProcessors(files []string) (all []processor, err error) {
	for _, name := range files {
		if strings.HasSuffix(name, exhaustive("")) {
			continue
		}
		p := processor{}
		if p.searches, err = readFile(exhaustive(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		found := err == nil
		p.measured, err = readFile(name)
		if err != nil && !(found && errors.Is(err, fs.ErrNotExist)) {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// document is the page of all processors.
func document(all []processor) string {
	p := &page{}
	p.head()
	for _, x := range all {
		p.WriteString(x.measured.markdown())
		p.WriteString(x.searches.searched())
	}
	return p.String()
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

// machine names the processor by what the backend keys its winners by.
func machine() string {
	return strings.TrimPrefix(cpu.New().Identity().Name, "cpu:")
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
