package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cmd/tilewright/internal/output"
	"github.com/tilewright/tilewright/cmd/tilewright/internal/packtiming"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/query"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/tuner"
	"github.com/tilewright/tilewright/tuner/report"
)

// tuneCommand tunes the fusions of files.
var tuneCommand = command{
	name: "tune", args: "PATH…", short: "measure, keep winners, report; resumes where it was interrupted",
	long: `Tunes every distinct fusion of the modules: ranks its legal plans, checks some of them
against the reference interpreter, races those that are right, and keeps the winner in -db. A PATH is a
file, a pattern in quotes, - for the standard input, or a folder: of that the files *after_optimizations.txt,
which XLA dumps, or without those *.hlo, *.mlir, *.stablehlo and *.txt, each also as .gz, with all folders below
but those where the system shows its state (/proc, /sys). A file may also be what lookup -queue writes: misses,
each of which is tuned once, for -device.

Extents that a module leaves open (?) are given by -shape, and tuned for each of its values.

Fusions that are alike are tuned once, those first that take most of the model's time: executions times
the default plan's time. -weights takes a profile for that: lines NAME,TIME of fusions, instructions or the
framework's operations (op_name); the time of a name that several have is divided by the bytes that they move.
A fusion that has a winner already is left alone unless -force or -improve. A fusion is visited
again when others have been raced for 30 s, so that one state of the machine is not taken for the truth.

-run-budget is the wall time of the whole run, reading included. Every fusion is compiled, checked and timed
by its default plan first; the rest of the time goes where another second is expected to gain most, to no
fusion longer than -budget. Of fusions that differ in extents only one is raced, and its winner beside the
default of each of the others, which are raced by themselves if time is left. A race ends early when the regret is known to be at most -regret,
and when all races are over those of which it is not race on, unless there is a -budget. Without
-run-budget every fusion is raced for -budget.

-weights-of says which parameters of the modules are weights, the same values in every run; constants are. Where the
device's kernels would have a weight packed, as tensor.pack does it, the fusion that reads it packed is raced, too, and its
winner timed beside that of the fusion as it is: the report says what that gains and from how many runs on it pays. With -run-budget a tenth of it is for that, or 4s where that is at most a quarter.

Which plans are tried depends on the fusion, the device and -seed, and not on what else is stored, unless -learn
lets the samples of all fusions in -db correct the prices, and the winners of other shapes and devices be tried first.

Fusions that differ in extents only, as an optimiser's updates of all parameters, have one entry: how many there are,
what they take together, the plan of the one that was raced, and how many were not reached; -v and -json list each. A fusion
that is refused or fails has lines of its own.

A fusion that fails does not stop the others. One of which no check ends in time has not failed: it is not checked, as if
there had been no time for it. The summary says which share of the model's time was tuned,
how much faster the model is by that, and what was left out. As everywhere, a speed-up is the median of default ÷ winner
in the same blocks of the race, and a time the median of all runs of its plan: the ratio of two times is another number. Ctrl-C loses nothing: the best plans so far are kept
as provisional winners, and the same command goes on.

A device that cannot time, a simulator, checks the cheapest plans by the cost model and keeps the first
that is right; every line then says "predicted". The plans that were checked are priced by what their code
takes of the device: by what ptxas says, of -ptxas or on the PATH, and else as far as that can be told
from it. The records name the assembler.

A fusion that cannot be tiled is refused with the reason; that is not a failure. The exit status is 1
when a file could not be read, a fusion failed otherwise, or the default plan of one fails its check, also
if that is on record and nothing is measured.`,
	run: runTune,
}

// tuneJSON is the summary of tune -json.
type tuneJSON struct {
	// Stable name of the device.
	Device string `json:"device"`
	// Assembler priced the plans of a simulated GPU; "" is none.
	Assembler string `json:"assembler,omitempty"`
	// Outcome of every distinct fusion, in the order in which it was known, and of
	// every file that could not be read.
	Fusions []tunedJSON `json:"fusions"`
	// What became of the model's time.
	Model modelJSON `json:"model"`
	// Weights are the constant operands of which packing was measured.
	Weights []weightJSON `json:"weights,omitempty"`
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
	db, fusion, report, trace, weights *string
	// Wall time of the run, of tuning a fusion, and between lines of progress.
	runBudget, budget, progress *time.Duration
	// Number of plans that are measured of a fusion.
	try *int
	// Seed of inputs, exploring candidates and order.
	seed *int64
	// Relative speed by which a plan has to beat the default.
	margin *float64
	// The regret at which a race ends, and the least share of the model's time of a
	// fusion that is raced.
	regret, minShare *ratio
	// Measure although a winner is stored; race on where one may be far off.
	force, improve *bool
	// Correct the prices by what was measured of other fusions.
	learn *bool
	// Replace files of another kind.
	replace *bool
	// Lines for every fusion, also where several differ in extents only.
	each *bool
	// The names of parameters that are weights.
	weightsOf *string
}

// defaultBudget is the time of a race in a run without a time of its own.
const defaultBudget = 10 * time.Second

// improvedRegret is the regret of a stored winner beyond which -improve races on, if
// -regret says nothing else.
const improvedRegret = 0.05

// newTuneFlags defines the flags.
func newTuneFlags(c *call) tuneFlags {
	f := tuneFlags{
		db: c.dbFlag(), device: c.deviceFlag(),
		fusion:    c.String("fusion", "", "tune only the fusion of this `name`"),
		report:    c.String("report", "", "write an HTML report of the fusions to `file`"),
		trace:     c.String("trace", "", "write every event to `file` as JSON lines"),
		weights:   c.String("weights", "", "a profile, `file` of lines NAME,TIME: the time of fusions in a run of the model"),
		runBudget: c.Duration("run-budget", 0, "wall `time` of the whole run, with everything in it; 0: no limit"),
		budget:    c.Duration("budget", 0, "wall `time` of the race of a fusion; 0: 10s, or with -run-budget no limit"),
		progress:  c.Duration("progress", 800*time.Millisecond, "`time` between lines of progress where there is no terminal; 0: none"),
		try:       c.Int("try", 0, "measure this many `plans` a fusion; 0: 16, and then the cheapest 24 and those next to the fastest while the budget has room to race all, 64 at most"),
		seed:      c.Int64("seed", 1, "`seed` of inputs, of candidates drawn at random, and of the order of timing"),
		margin:    c.Float64("margin", 0.02, "`ratio` a plan must beat the default by"),
		force:     c.Bool("force", false, "measure again although a winner is stored"),
		improve:   c.Bool("improve", false, "race on where the regret of a stored winner is unknown or above -regret (5% if that is 0)"),
		learn:     c.learnFlag(),
		regret:    new(ratio),
		minShare:  new(ratio),
		replace:   c.replaceFlag(),
		each:      c.Bool("v", false, "print every fusion, also those that differ in extents only, which have one entry else"),
		weightsOf: c.String("weights-of", "", "parameters whose names, or the framework's, match this regular `expression` are weights"),
	}
	c.Var(f.regret, "regret", "end a race when its winner is known to be within this `ratio` of the best, as 2%; 0: when nothing is left to find out")
	c.Var(f.minShare, "min-share", "race no fusion below this `ratio` of the model's time, as 0.1%")
	f.device.ptxas = c.String("ptxas", "", "price plans of a simulated GPU by what this `program`, NVIDIA's assembler, says of their kernels; none: by their texts alone (default ptxas on the PATH, if there)")
	return f
}

// check refuses values that make no sense.
func (f tuneFlags) check() error {
	switch {
	case *f.budget < 0:
		return usagef("-budget %v: more than nothing", *f.budget)
	case *f.runBudget < 0:
		return usagef("-run-budget %v: more than nothing", *f.runBudget)
	case *f.progress < 0:
		return usagef("-progress %v: more than nothing, or 0 for none", *f.progress)
	case *f.try < 0:
		return usagef("-try %d: at least 1, or 0", *f.try)
	case *f.margin <= 0:
		return usagef("-margin %v: more than 0", *f.margin)
	}
	return nil
}

// runTune parses and checks the flags. Files that cannot be written are found
// before anything is measured.
func runTune(c *call) error {
	begin := cmp.Or(firstProcess().began, time.Now())
	c.jsonFlag()
	c.narrow = true
	f := newTuneFlags(c)
	c.shapeFlag()
	paths, err := c.parse(1, -1)
	if err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return err
	}
	weights, err := regexp.Compile(*f.weightsOf)
	if err != nil {
		return usagef("-weights-of: %v", err)
	}
	files, err := modulesOf(paths)
	if err != nil {
		return err
	}
	// an hour of measuring must not end in a typing error
	for _, err := range []error{
		output.Writable(*f.db),
		c.output("report", *f.report, output.Page, *f.replace).Check(),
		c.output("trace", *f.trace, output.Trace, *f.replace).Check(),
	} {
		if err != nil {
			return err
		}
	}
	if *f.weightsOf == "" {
		weights = nil
	}
	return f.tune(c, files, weights, begin)
}

// A session is one run of the tune command.
type session struct {
	// The call of the command, its flags and its progress.
	c        *call
	f        tuneFlags
	tuner    *tuner.Tuner
	schedule *tuner.Schedule
	status   *status
	// The result of -json.
	summary tuneJSON
	// Of the fusions, in the order in which they were met, too.
	structures map[cache.Fingerprint]*structure
	inOrder    []*structure
	// Winners, for the report.
	records []cache.Record
	// Operands of the fusions that are the same in every run, and what was measured of
	// packing them.
	weights  packtiming.Weights
	packings []report.Packing
	// Files that are read, and whether one of them has several modules.
	files   []string
	several bool
	// Completes the trace; only the first call does something.
	closeTrace func()
	// The time of the run ended while files were read.
	overBudget bool
	// A file could not be read, or a fusion or the trace failed.
	bad bool
}

// tune tunes all fusions of the files. An interrupt ends it with what was
// measured kept.
func (f tuneFlags) tune(c *call, files []string, weights *regexp.Regexp, begin time.Time) error {
	b, err := c.open(f.device)
	if err != nil {
		return err
	}
	s := &session{c: c, f: f, files: files, status: newStatus(c, *f.progress)}
	s.weights.Named = weights
	defer s.status.stop()
	observe, finish, err := f.observer(c, s)
	if err != nil {
		return err
	}
	defer finish()
	s.closeTrace = finish
	if c.tamper != nil {
		b = c.tamper(b)
	}
	s.tuner = &tuner.Tuner{
		Backend: b,
		Cache:   cache.Open(*f.db),
		Options: f.options(observe),
	}
	err = c.warnOfDamage(s.tuner.Cache)
	if errors.Is(err, cache.ErrBusy) {
		c.note("tilewright tune: warning: %v; what it stores is taken as missing until then", err)
	} else if err != nil {
		return err // a database that cannot be used, before anything is measured
	}
	s.tuner.Cache.Sweep()
	ctx, stop := c.catchSignals()
	defer stop()
	limitMemory(garbageLimit)
	s.schedule = f.schedule(s.tuner, begin)
	s.schedule.Done = s.note
	if err := s.read(ctx); err != nil {
		return err
	}
	if s.useRates(ctx, b); ctx.Err() != nil {
		return s.interrupted(ctx.Err())
	}
	s.summary.Device = b.Identity().Name
	if s.summary.Assembler = b.Identity().Safe["assembler"]; s.summary.Assembler != "" {
		c.note("tilewright tune: plans are priced by what %s says of their kernels", s.summary.Assembler)
	}
	packed := s.packedWeights()
	if len(packed) > 0 {
		s.schedule.Budget -= packBudget(s.schedule.Budget, len(packed))
	}
	s.countStructures()
	err = s.schedule.Run(ctx)
	for _, of := range s.inOrder {
		s.printTogether(of)
	}
	if err != nil {
		return s.interrupted(err)
	}
	if err := s.packWeights(ctx, packed); err != nil {
		return s.interrupted(err)
	}
	if hung := s.schedule.Hung(); hung != nil {
		s.startAgain(hung)
	}
	return s.finish()
}

// useRates takes the rates of the device from the database, or measures them if there is
// time and nothing is left behind that would disturb that.
func (s *session) useRates(ctx context.Context, b kernels.Backend) {
	if s.overBudget || ctx.Err() != nil {
		return
	}
	s.status.say("measuring the rates of the device, unless they are stored")
	if err := tuner.UseRates(ctx, s.tuner.Cache, b); err != nil && ctx.Err() == nil {
		s.c.note("tilewright tune: warning: the rates of the device are not stored: %v", err)
	}
}

// garbageLimit is the memory from which on tune collects garbage without waiting for as
// much again, and commandGarbage that of other commands. They limit nothing else: a fusion
// that needs more gets it.
const (
	garbageLimit   = 3 << 29
	commandGarbage = 1 << 29
)

// spareGarbage lets the heap of a short command grow to 36 MiB, and from there on ninefold,
// before garbage is collected, unless the environment says something else (GOGC): a third of
// the time of ranking was collection, and some of that of a page.
func spareGarbage() {
	const standard = 100
	if was := debug.SetGCPercent(sparePercent); was != standard {
		debug.SetGCPercent(was)
	}
	limitMemory(commandGarbage)
}

const sparePercent = 800

// limitMemory sets a limit, unless the environment says something else (GOMEMLIMIT).
func limitMemory(limit int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
}

// options are those of the tuner.
func (f tuneFlags) options(observe func(tuner.Event)) tuner.Options {
	return tuner.Options{
		Candidates: *f.try,
		Budget:     cmp.Or(*f.budget, defaultBudget),
		Seed:       *f.seed,
		Margin:     *f.margin,
		Regret:     float64(*f.regret),
		Force:      *f.force,
		Learn:      *f.learn,
		Observe:    observe,
	}
}

// schedule is the run, without its fusions.
func (f tuneFlags) schedule(t *tuner.Tuner, begin time.Time) *tuner.Schedule {
	s := &tuner.Schedule{
		Tuner:    t,
		Workload: &tuner.Workload{},
		Budget:   *f.runBudget,
		Begin:    begin,
		Limit:    *f.budget,
		MinShare: float64(*f.minShare),
		Weighted: *f.weights != "",
	}
	if *f.improve {
		s.Improve = cmp.Or(float64(*f.regret), improvedRegret)
	}
	return s
}

// interrupted says what is kept, and what is not.
func (s *session) interrupted(err error) error {
	s.status.stop()
	var unkept *tuner.UnkeptError
	switch {
	case errors.As(err, &unkept):
		s.c.note("%s; %v; what was stored before is in %s", s.c.reason(), unkept, *s.f.db)
	case !s.status.measured():
		s.c.note("%s before a fusion was measured: no winner was added to %s", s.c.reason(), *s.f.db)
	case s.tuner.Backend.Identity().Untimed:
		s.c.note("%s; the fusions that are done are kept in %s", s.c.reason(), *s.f.db)
	default:
		s.c.note("%s; what was measured is kept in %s, the best plans so far as provisional winners: run the same command to go on", s.c.reason(), *s.f.db)
	}
	return errReported
}

// observer shows events on the status and, with -trace, writes them to a file.
// finish completes the file and reports what could not be written.
func (f tuneFlags) observer(
	c *call, s *session,
) (observe func(tuner.Event), finish func(), err error) {
	if *f.trace == "" {
		return s.status.observe, func() {}, nil
	}
	file, err := c.output("trace", *f.trace, output.Trace, *f.replace).Stream(firstProcess().restarts > 0)
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
			c.note("tilewright tune: the trace is incomplete: %v", err)
		}
	})
	return observe, finish, nil
}

// read reads the files and the profile. A file that cannot be read is reported and
// left out, and so is what is not read within -run-budget; the error is one of the profile.
func (s *session) read(ctx context.Context) error {
	if *s.f.runBudget > 0 {
		within, cancel := context.WithDeadlineCause(ctx, s.schedule.Begin.Add(*s.f.runBudget), errRunBudget)
		defer cancel()
		ctx = within
	}
	var profile map[string]float64
	if *s.f.weights != "" {
		var err error
		if profile, err = s.c.readProfile(*s.f.weights); err != nil {
			return err
		}
	}
	for k, file := range s.files {
		if ctx.Err() != nil {
			s.notRead(ctx, len(s.files)-k)
			break
		}
		s.status.say("reading %d/%d %s", k+1, len(s.files), file)
		if err := s.readFusions(ctx, file); err != nil {
			s.bad = true
			s.status.printError("tilewright tune: %v\n", err)
			s.summary.Fusions = append(s.summary.Fusions, tunedJSON{
				File:   file,
				Error:  err.Error(),
				Regret: -1,
			})
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	if err := s.c.shapes.unused(); err != nil && !s.bad { // else a file was not read
		return err
	}
	if *s.f.weights != "" {
		s.weigh(profile)
	}
	return nil
}

// weigh takes the times of a profile. Where it says nothing about any fusion here, the
// predicted ones are taken, and the exit status is 1: the run is not lost.
func (s *session) weigh(profile map[string]float64) {
	unknown := s.schedule.Workload.Weigh(profile)
	if len(unknown) > 0 {
		s.status.printError("%s: %d of %s of nothing here, %q the first\n", *s.f.weights, len(unknown), namesText(len(profile)), unknown[0])
	}
	items := s.schedule.Workload.Items
	if len(items) > 0 && !slices.ContainsFunc(items, func(x *tuner.Item) bool { return x.Weight > 0 }) {
		s.bad, s.schedule.Weighted = true, false
		s.status.printError("%s gives no fusion here a time: predicted times are taken instead\n", *s.f.weights)
	}
}

// namesText counts the names of a profile.
func namesText(n int) string {
	if n == 1 {
		return "1 name is"
	}
	return fmt.Sprintf("%d names are", n)
}

// errRunBudget is why reading ends early.
var errRunBudget = errors.New("-run-budget is over")

// notRead says how many files were not read at the end of the time.
func (s *session) notRead(ctx context.Context, n int) {
	if s.overBudget = context.Cause(ctx) == errRunBudget; s.overBudget {
		s.bad = true
		s.status.printError("tilewright tune: %v: %s not read\n", errRunBudget, report.Counted(n, "file"))
	}
}

// readFusions adds the fusions of a file to the workload. Reading that does not end
// with ctx is left behind.
func (s *session) readFusions(ctx context.Context, file string) (err error) {
	defer recovered(file, &err)
	type result struct {
		all []labelled
		err error
	}
	done := make(chan result, 1)
	go func() {
		all, err := s.load(ctx, file)
		done <- result{all, err}
	}()
	select {
	case r := <-done:
		for _, m := range r.all {
			r.err = errors.Join(r.err, s.add(file, m.label, m.Module))
		}
		return r.err
	case <-ctx.Done():
		s.overBudget = context.Cause(ctx) == errRunBudget
		return fmt.Errorf("%s is not read to its end: %w", file, context.Cause(ctx))
	}
}

// recovered makes a panic about a file its error; it is deferred.
func recovered(file string, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%s: internal error: %v; this is a bug in tilewright: please report it with the file\n%s", file, p, debug.Stack())
	}
}

// A labelled module has a name with the extents that it was read with.
type labelled struct {
	*hlo.Module
	label string
}

// load reads the modules of a file and splits them into fusions.
func (s *session) load(ctx context.Context, file string) (all []labelled, err error) {
	defer recovered(file, &err)
	shapes := &s.c.shapes
	for shapes.at = range shapes.count() {
		modules, failed := s.c.readModules(file)
		err = errors.Join(err, failed)
		for _, m := range modules {
			label := partName(file, m)
			s.several = s.several || label != file
			if len(m.Open) > 0 && len(shapes.names) > 0 {
				label += " " + shapes.label()
			}
			split, ended := query.Partitioned(ctx, m.Module, s.c.target)
			if ended != nil {
				return all, errors.Join(err, ended)
			}
			all = append(all, labelled{split.Module, label})
		}
	}
	return all, err
}

// add adds the fusions of a module of a file to the workload, under a label.
func (s *session) add(file, label string, m *hlo.Module) error {
	all, err := fusions(file, m, *s.f.fusion)
	if err != nil {
		return err
	}
	s.schedule.Workload.Add(label, m, all)
	s.weights.Add(m)
	if *s.f.fusion == "" {
		s.schedule.Workload.AddOutside(m)
	}
	return nil
}

// note adds the outcome of one fusion to the summary and prints it.
func (s *session) note(x *tuner.Item) {
	if s.willStartAgain() && x.State == tuner.StateWaiting {
		return
	}
	t, of := newTunedJSON(x), s.structures[x.Structure]
	t.Structure = of.name
	t.several = s.several || len(s.files) > 1
	if t.Plan != "" {
		s.records = append(s.records, namedHere(x.Result.Record, t))
	}
	s.bad = s.bad || t.Error != "" || t.Unkept != ""
	s.summary.Fusions = append(s.summary.Fusions, t)
	s.printOutcome(of, t)
	if t.Plan != "" {
		s.bad = s.c.defaultFails(x.Result.Record) || s.bad
	}
	s.bad = s.bad || t.DefaultError != ""
	if t.Unkept != "" {
		s.status.printError("tilewright tune: %s\n", t.Unkept)
	}
}

// namedHere is a record with the names of this run: one that was stored before has those
// of the run that made it, whose modules the reader of this report may never have seen. The
// database keeps the older ones.
func namedHere(r cache.Record, t tunedJSON) cache.Record {
	r.Name, r.Source, r.OtherSources = t.Fusion, t.Source, t.OtherSources
	return r
}

// finish prints the summary and writes the report.
func (s *session) finish() error {
	s.status.stop()
	s.closeTrace()
	s.summary.Model.Parts = map[string]timePartJSON{}
	if !s.overBudget { // else nothing was measured, not even the device
		s.summary.Model = newModelJSON(s.schedule)
	}
	for _, line := range s.summary.Model.lines() {
		fmt.Fprintln(s.c.err, line)
	}
	if left := s.schedule.Left(); left > *s.f.runBudget/20 && s.summary.Model.open() {
		s.c.note("%v of -run-budget are left: what is not tuned was raced once, is below -min-share, or was not expected to fit", left.Round(10*time.Millisecond))
	}
	if of := s.summary.average(); of > 1 {
		s.c.note("%d fusions%s: %.2f times as fast as by default plans, by geometric mean, in which each counts alike", of, s.summary.Model.provisional(), s.summary.Mean)
	}
	if *s.f.report != "" {
		err := s.c.output("report", *s.f.report, output.Page, *s.f.replace).Write(func(w *bufio.Writer) error {
			return report.HTML(w, s.page())
		})
		if err != nil {
			return err
		}
		s.c.note("report: %s", *s.f.report)
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
	p := report.Page{Device: s.tuner.Backend.Identity(), Records: s.records, Packings: s.packings}
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

// willStartAgain reports whether a kernel hangs and another process will go on. With
// -force it would measure everything again, and hang again; what a device that does
// not time has tried is not stored.
func (s *session) willStartAgain() bool {
	return s.schedule.Hung() != nil && runtime.GOOS != "windows" && !*s.f.force &&
		!s.tuner.Backend.Identity().Untimed && firstProcess().restarts < maxRestarts
}

// startAgain replaces the process. It returns only if it cannot: then the command ends
// with what it has.
func (s *session) startAgain(hung *tuner.HungError) {
	s.status.stop()
	s.closeTrace()
	if s.willStartAgain() {
		s.c.note("%v: starting again without it", hung)
		program, err := os.Executable()
		if err == nil {
			err = syscall.Exec(program, os.Args, firstProcess().next(os.Environ(), s.schedule.Begin))
		}
		s.c.note("tilewright tune: cannot start again: %v", err)
	}
	s.bad = true
	s.c.note("tilewright tune: %v: run the command again to go on, without -force", hung)
}
