package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/tuner"
	"github.com/tilewright/tilewright/tuner/report"
)

// tuneCommand tunes the fusions of files.
var tuneCommand = command{
	name: "tune", args: "FILE…", short: "measure, keep winners, report; resumes where it was interrupted",
	long: `Tunes every fusion of the files: ranks its legal plans, checks the first -try of them against the
reference interpreter, races those that are right, and keeps the winner in -db. A fusion that has a
winner already is left alone unless -force. Ctrl-C loses nothing: run it again and it goes on.

A device that cannot time, a simulator, checks the cheapest plans by the cost model and keeps the first
that is right; every line then says "predicted".

A fusion that cannot be tiled is refused with the reason; that is not a failure. The exit status is 1
when a file could not be read or a fusion failed otherwise.`,
	run: runTune,
}

// tuneJSON is the summary of tune -json.
type tuneJSON struct {
	// Stable name of the device.
	Device string `json:"device"`
	// Outcome of every fusion, in the order of the files.
	Fusions []tunedJSON `json:"fusions"`
	// Mean is the geometric mean of the speed-ups of the fusions that were
	// timed, if there are several.
	Mean float64 `json:"mean,omitempty"`
}

// average fills in the mean and returns the number of fusions it is taken of.
func (t *tuneJSON) average() (of int) {
	logs := 0.0
	for _, f := range t.Fusions {
		if f.Speedup[0] > 0 && !f.Untimed {
			logs += math.Log(f.Speedup[0])
			of++
		}
	}
	if of > 1 {
		t.Mean = math.Exp(logs / float64(of))
	}
	return of
}

// tuneFlags are the flags of tune.
type tuneFlags struct {
	device deviceFlags
	// Names of files, and of the fusion that is tuned.
	db, fusion, report, trace *string
	// Time of tuning a fusion.
	budget *time.Duration
	// Number of plans that are measured of a fusion.
	try *int
	// Seed of inputs, exploring candidates and order.
	seed *int64
	// Relative speed by which a plan has to beat the default.
	margin *float64
	// Measure although a winner is stored.
	force *bool
	// Replace files of another kind.
	replace *bool
}

// runTune parses and checks the flags. Files that cannot be written are found
// before anything is measured.
func runTune(c *call) error {
	c.jsonFlag()
	f := tuneFlags{
		db: c.dbFlag(), device: c.deviceFlag(),
		fusion: c.String("fusion", "", "tune only the fusion of this `name`"),
		report: c.String("report", "", "write an HTML report of the fusions to `file`"),
		trace:  c.String("trace", "", "write every event to `file` as JSON lines"),
		budget: c.Duration("budget", 10*time.Second, "wall `time` a fusion"),
		try:    c.Int("try", 16, "measure this many `plans` a fusion"),
		seed:   c.Int64("seed", 1, "`seed` of inputs, of candidates drawn at random, and of the order of timing"),
		margin: c.Float64("margin", 0.02, "`ratio` a plan must beat the default by"),
		force:  c.Bool("force", false, "measure again although a winner is stored"),

		replace: c.replaceFlag(),
	}
	files, err := c.parse(1, -1)
	if err != nil {
		return err
	}
	switch {
	case *f.budget <= 0:
		return usagef("-budget %v: more than nothing", *f.budget)
	case *f.try < 1:
		return usagef("-try %d: at least 1", *f.try)
	case *f.margin <= 0:
		return usagef("-margin %v: more than 0", *f.margin)
	}
	// an hour of measuring must not end in a typing error
	for _, err := range []error{
		writable(*f.db),
		f.output(*f.report, pageFile, files).check(),
		f.output(*f.trace, linesFile, files).check(),
	} {
		if err != nil {
			return err
		}
	}
	return f.tune(c, files)
}

// output is a file that tune writes while it reads files and the database.
func (f tuneFlags) output(name string, kind fileKind, files []string) output {
	return output{name, kind, append([]string{*f.db}, files...), *f.replace}
}

// A session is one run of the tune command.
type session struct {
	// The call of the command, its flags and its progress.
	c      *call
	f      tuneFlags
	tuner  *tuner.Tuner
	status *status
	// The result of -json.
	summary tuneJSON
	// Winners, for the report.
	records []cache.Record
	// Files that are read.
	files []string
	// Completes the trace; only the first call does something.
	closeTrace func()
	// A file could not be read, or a fusion or the trace failed.
	bad bool
}

// tune tunes all fusions of the files. An interrupt ends it with what was
// measured kept.
func (f tuneFlags) tune(c *call, files []string) error {
	b, err := backend(f.device)
	if err != nil {
		return err
	}
	s := &session{c: c, f: f, status: newStatus(c)}
	observe, finish, err := f.observer(c, s, files)
	if err != nil {
		return err
	}
	defer finish()
	s.files = files
	s.closeTrace = finish
	s.tuner = &tuner.Tuner{
		Backend: b,
		Cache:   cache.Open(*f.db),
		Options: tuner.Options{
			Candidates: *f.try,
			Budget:     *f.budget,
			Seed:       *f.seed,
			Margin:     *f.margin,
			Force:      *f.force,
			Observe:    observe,
		},
	}
	if err := c.warnOfDamage(s.tuner.Cache); err != nil {
		return err // a database that cannot be used, before anything is measured
	}
	s.summary.Device = b.Device().Name
	ctx, stop := signal.NotifyContext(context.Background(), interrupts()...)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process
	for _, file := range files {
		if err := s.file(ctx, file); err != nil {
			return s.interrupted(err)
		}
	}
	return s.finish()
}

// interrupts are the signals that end tuning with what was measured kept: also the
// end of a terminal, unless the program was started to survive that (nohup).
func interrupts() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// interrupted says what is kept, and what is not.
func (s *session) interrupted(err error) error {
	s.status.clear()
	var unkept *tuner.UnkeptError
	switch {
	case errors.As(err, &unkept):
		fmt.Fprintf(s.c.err, "interrupted; %v; what was stored before is in %s\n", unkept, *s.f.db)
	case s.tuner.Backend.Device().Untimed:
		fmt.Fprintf(s.c.err, "interrupted; the fusions that are done are kept in %s\n", *s.f.db)
	default:
		fmt.Fprintf(s.c.err, "interrupted; what was measured is kept in %s: run the same command to go on\n", *s.f.db)
	}
	return errReported
}

// observer shows events on the status and, with -trace, writes them to a file.
// finish completes the file and reports what could not be written.
func (f tuneFlags) observer(
	c *call, s *session, files []string,
) (observe func(tuner.Event), finish func(), err error) {
	if *f.trace == "" {
		return s.status.observe, func() {}, nil
	}
	file, err := f.output(*f.trace, linesFile, files).stream()
	if err != nil {
		return nil, nil, err
	}
	trace := tuner.NewTrace(file)
	observe = func(e tuner.Event) {
		s.status.observe(e)
		trace.Observe(e)
	}
	finish = sync.OnceFunc(func() {
		if err := errors.Join(trace.Err(), file.Close()); err != nil {
			s.bad = true
			fmt.Fprintf(c.err, "tilewright tune: the trace is incomplete: %v\n", err)
		}
	})
	return observe, finish, nil
}

// file tunes the fusions of one file; the error is that of ctx, and says what is
// not kept.
func (s *session) file(ctx context.Context, file string) error {
	m, outside, err := s.c.readModule(file)
	var all []*hlo.Computation
	if err == nil {
		all, err = fusions(file, m, *s.f.fusion)
	}
	if err != nil {
		s.bad = true
		s.status.clear()
		fmt.Fprintf(s.c.err, "tilewright tune: %v\n", err)
		s.summary.Fusions = append(s.summary.Fusions, tunedJSON{
			File:  file,
			Error: err.Error(),
		})
		return nil
	}
	if rest := untileable(outside); len(rest) > 0 {
		s.status.clear()
		fmt.Fprintf(
			s.c.err, "%s: %d fusions; %d instructions stay outside (`tilewright show` says why)\n",
			file, len(all), len(rest),
		)
	}
	for _, c := range all {
		r, err := s.tuner.Tune(ctx, c)
		if ctx.Err() != nil && r.Record.Plan == "" {
			return errors.Join(ctx.Err(), err)
		}
		s.note(file, c, r, err)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// note adds the outcome of one fusion to the summary and prints it.
func (s *session) note(
	file string, c *hlo.Computation, r tuner.Result, err error,
) {
	t := tunedJSON{File: file, Fusion: c.Name}
	var no *symtile.Untileable
	var unkept *tuner.UnkeptError
	switch {
	case r.Record.Plan != "" && errors.As(err, &unkept):
		t.fill(r)
		s.records = append(s.records, r.Record)
		s.bad = true
	case errors.As(err, &no):
		t.Refused = err.Error()
	case err != nil:
		t.Error = err.Error()
		s.bad = true
	default:
		t.fill(r)
		s.records = append(s.records, r.Record)
	}
	s.summary.Fusions = append(s.summary.Fusions, t)
	s.status.print(t)
	if unkept != nil {
		fmt.Fprintf(s.c.err, "tilewright tune: %v\n", unkept)
	}
}

// finish prints the summary and writes the report.
func (s *session) finish() error {
	s.status.clear()
	s.closeTrace()
	if of := s.summary.average(); of > 1 {
		fmt.Fprintf(
			s.c.err, "%d fusions: %.2f times as fast as by default plans, by geometric mean\n",
			of, s.summary.Mean,
		)
	}
	if *s.f.report != "" {
		err := s.f.output(*s.f.report, pageFile, s.files).write(func(w *bufio.Writer) error {
			return report.HTML(w, s.page())
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(s.c.err, "report: %s\n", *s.f.report)
	}
	if s.c.json {
		if err := s.c.printJSON(s.summary); err != nil {
			return err
		}
	}
	if s.bad {
		return errReported
	}
	return nil
}

// page is the content of the report: the winners and the refusals.
func (s *session) page() report.Page {
	p := report.Page{Device: s.tuner.Backend.Device(), Records: s.records}
	for _, t := range s.summary.Fusions {
		if t.Refused != "" {
			p.Refused = append(p.Refused, report.Refusal{
				Fusion: t.Fusion,
				File:   t.File,
				Reason: t.Refused,
			})
		}
	}
	return p
}
