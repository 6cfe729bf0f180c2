package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/tuner"
)

// options are the parameters of a run.
type options struct {
	// Folder of the drivers.
	folder string
	// Plans that are timed in tuning a case.
	try int
	// Time of tuning a case.
	budget time.Duration
	// Time of the rounds of a case, once there were minRounds.
	limit time.Duration
	// Largest number of rounds of a case.
	rounds int
	// Plans of the landscape of a case.
	samplePlans int
	// Plans of an exhaustive search.
	maxPlans int
	// Budget of the tuning that an exhaustive search is compared with; 0 means
	// the tuner's default.
	normalBudget time.Duration
	// Seed of the inputs and of the order of turns.
	seed int64
}

// fullRun, essentialRun and quickRun are the options of the kinds of runs.
var (
	essentialRun = options{
		try:         12,
		budget:      2500 * time.Millisecond,
		limit:       2500 * time.Millisecond,
		rounds:      15,
		samplePlans: 3,
		maxPlans:    maxSearchedPlans,
	}
	fullRun = options{
		try:         24,
		budget:      20 * time.Second,
		limit:       30 * time.Second,
		rounds:      25,
		samplePlans: 24,
		maxPlans:    maxSearchedPlans,
	}
	quickRun = options{
		try:          5,
		budget:       300 * time.Millisecond,
		limit:        300 * time.Millisecond,
		rounds:       minRounds,
		samplePlans:  5,
		maxPlans:     40,
		normalBudget: 300 * time.Millisecond,
	}
)

// or replaces the options that are zero by those of a standard run.
func (o options) or(standard options) options {
	o.try = orDefault(o.try, standard.try)
	o.budget = orDefault(o.budget, standard.budget)
	o.limit = orDefault(o.limit, standard.limit)
	o.rounds = orDefault(o.rounds, standard.rounds)
	o.samplePlans = orDefault(o.samplePlans, standard.samplePlans)
	o.maxPlans = orDefault(o.maxPlans, standard.maxPlans)
	o.normalBudget = orDefault(o.normalBudget, standard.normalBudget)
	return o
}

// A session measures cases with one number of threads.
type session struct {
	options
	// Threads of our side and of the drivers.
	threads int
	backend *cpu.Backend
	// Winners of this session: they are not found by another number of threads.
	db *cache.DB
	// Folder of the inputs and outputs that the drivers read and write.
	tmp string
	// Drivers that were built, by name.
	drivers map[string]*driver
	// Families for which a driver has not answered in time, which is not asked again.
	late map[lateFamily]bool
	rng  *rand.Rand
	// Receives the progress, for people.
	status io.Writer
}

// newSession starts the drivers that are built; versions lists the others. Our
// side has as many threads as GOMAXPROCS, which the caller has set.
func newSession(o options, threads int, tmp string, status io.Writer) *session {
	s := &session{
		options: o,
		threads: threads,
		backend: cpu.New(),
		tmp:     tmp,
		status:  status,
		db:      cache.Open(filepath.Join(tmp, fmt.Sprintf("threads%d.db", threads))),
		drivers: map[string]*driver{},
		late:    map[lateFamily]bool{},
		rng:     rand.New(rand.NewPCG(uint64(o.seed), 0x7065_6572)),
	}
	for _, d := range drivers {
		s.start(d.name)
	}
	return s
}

// start starts a driver that was built.
func (s *session) start(name string) {
	p, err := start(s.folder, name, s.threads)
	if err == nil {
		s.drivers[name] = p
	} else if err != errDriverMissing {
		fmt.Fprintf(s.status, "%s: %v\n", name, err)
	}
}

// driver returns a driver that was built, started again if it has ended, for a late answer or by itself.
func (s *session) driver(name string) *driver {
	if d := s.drivers[name]; d != nil && d.broken != nil {
		d.close()
		delete(s.drivers, name)
		s.start(name)
	}
	return s.drivers[name]
}

// A lateFamily is a driver, and cases that it has not answered for in time.
type lateFamily struct{ driver, family string }

// close ends the drivers.
func (s *session) close() {
	for _, d := range s.drivers {
		d.close()
	}
}

// newResult is the result of a case that begins.
func (s *session) newResult(c testCase) *caseResult {
	return &caseResult{
		testCase: c, threads: s.threads, load: load(), revision: revision(),
	}
}

// revision is what the times of a case depend on beside the processor: the revision of
// the backend.
func revision() string { return cpu.Revision }

// A caseRun is the measurement of one case in progress.
type caseRun struct {
	session *session
	result  *caseResult
	// The case as HLO, and its tile program.
	fusion  *hlo.Computation
	program *symtile.Program
	// Seconds that tuning took: what a peer that tunes has, too.
	tuning float64
	// Sets of buffers that are used in turn.
	sets int
	// Programs that take turns, in the order of the tables.
	competitors []*competitor
	// Functions that are called at the end, the last first.
	cleanups []func()
}

// measure tunes a case, compares its output with its peer's and times all
// competitors. What fails is noted in the result, and the rest is measured
// nevertheless; the error is that of ctx.
func (s *session) measure(ctx context.Context, c testCase) (*caseResult, error) {
	e := &caseRun{
		session: s,
		result:  s.newResult(c),
	}
	defer e.close()
	if err := e.parse(); err != nil {
		return nil, fmt.Errorf("%s: %w", c, err)
	}
	ours := e.tune(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if ours != nil {
		e.timeSample(ctx)
	}
	e.addPeers(ctx, ours)
	if family := families[c.family]; family.memory {
		e.addRoof(family)
		if family.rows && ours != nil {
			e.addSmall()
		}
	}
	err := measureRounds(ctx, e.competitors, s.threads, s.rounds, s.limit, s.rng)
	e.collect()
	return e.result, err
}

// close releases the kernels and the operations of the drivers.
func (e *caseRun) close() {
	for _, f := range slices.Backward(e.cleanups) {
		f()
	}
}

// note records why a competitor is not measured.
func (e *caseRun) note(name string, err error) {
	e.result.notes = append(e.result.notes, namedText{name, err.Error()})
	fmt.Fprintf(e.session.status, "%s: %s: %v\n", e.result.testCase, name, err)
}

// text is the HLO of a case.
func (c testCase) text() string {
	if c.name != "" {
		return modelText(c.name)
	}
	return families[c.family].text(c.dims)
}

// parse parses the HLO text of a case.
func parse(c testCase) (*hlo.Computation, error) {
	m, err := hlo.Parse(c.family, []byte(c.text()))
	if err != nil {
		return nil, err
	}
	m.Entry.Name = c.family
	return m.Entry, nil
}

// parse fills in the fusion, the bytes that it moves and the number of sets of
// buffers: between two and eight, which are together twice the last cache, as
// they are for our own benchmarks.
func (e *caseRun) parse() (err error) {
	if e.fusion, err = parse(e.result.testCase); err != nil {
		return err
	}
	for _, p := range e.fusion.Params {
		e.result.bytes += p.Shape.Bytes()
	}
	for _, o := range kernels.OutputShapes(e.fusion) {
		e.result.bytes += o.Bytes()
	}
	sets := (e.span() + e.result.bytes - 1) / e.result.bytes
	e.sets = int(min(8, max(2, sets)))
	return nil
}

// span is twice the size of the last cache, in bytes.
func (e *caseRun) span() int64 {
	span := int64(64 << 20)
	for _, l := range e.session.backend.Identity().Levels {
		if l.Bytes > 0 {
			span = 2 * l.Bytes
		}
	}
	return span
}

// tune finds a plan and adds it, and the default plan where that is another. It
// returns the tuned kernel, nil when there is none.
func (e *caseRun) tune(ctx context.Context) kernels.Kernel {
	var failed string // why the default plan, which goes first, or else another fell out
	t := &tuner.Tuner{
		Backend: e.session.backend,
		Cache:   e.session.db,
		Options: tuner.Options{
			Candidates: e.session.try, Budget: e.session.budget, Seed: e.session.seed,
			Observe: func(event tuner.Event) {
				if f, ok := event.(tuner.Failed); ok && failed == "" {
					failed = fmt.Sprintf("plan %s: %s: %s", f.Plan, f.Failure, f.Detail)
				}
			},
		},
	}
	begin := time.Now()
	r, err := t.Tune(ctx, e.fusion)
	e.tuning = time.Since(begin).Seconds()
	if err == nil {
		e.program, err = symtile.Analyze(ctx, e.fusion)
	}
	if err != nil && failed != "" {
		err = fmt.Errorf("%w; %s", err, failed)
	}
	if err != nil {
		e.note("tuned", err)
		return nil
	}
	e.result.legal = r.Record.Legal
	e.result.plans = []namedText{
		{"tuned", r.Record.Plan},
		{"default", r.Record.Default},
	}
	bench, err := check.NewBench(ctx, e.fusion, e.session.seed, e.span())
	if err != nil {
		e.note("tuned", err)
		return nil
	}
	tuned := e.addPlan("tuned", e.program, r.Record.Plan, bench)
	if r.Record.Default != r.Record.Plan {
		e.addPlan("default", e.program, r.Record.Default, bench)
	}
	return tuned
}

// add adds a competitor of this process.
func (e *caseRun) add(name string, sample func(context.Context, int) (float64, error)) {
	e.competitors = append(e.competitors, &competitor{name: name, sample: sample})
}

// addDriver adds a competitor of another process.
func (e *caseRun) addDriver(name string, d *driver) {
	e.competitors = append(e.competitors, &competitor{name: name, process: d.process, sample: d.sample})
}

// atEnd registers a function that close calls.
func (e *caseRun) atEnd(f func()) { e.cleanups = append(e.cleanups, f) }

// addPlan compiles a plan and adds it as a competitor.
func (e *caseRun) addPlan(
	name string, p *symtile.Program, text string, bench *check.Bench,
) kernels.Kernel {
	k, seconds, err := e.compile(p, text)
	if err != nil {
		e.note(name, err)
		return nil
	}
	if name == "tuned" {
		e.result.compile = seconds
	}
	e.add(name, kernelSample(bench, k))
	return k
}

// compile returns the kernel of a plan and the median of five times that it
// took to compile.
func (e *caseRun) compile(
	p *symtile.Program, text string,
) (kernels.Kernel, float64, error) {
	plan, err := kernels.ParsePlan(text)
	if err != nil {
		return nil, 0, err
	}
	var seconds []float64
	for {
		begin := time.Now()
		k, err := e.session.backend.Compile(context.Background(), p, plan)
		if err != nil {
			return nil, 0, err
		}
		seconds = append(seconds, time.Since(begin).Seconds())
		if len(seconds) == 5 {
			e.atEnd(func() { k.Close() })
			return k, median(seconds), nil
		}
		k.Close()
	}
}

// addPeers opens the case in every driver that has it, and adds those as competitors
// whose output agrees with ours; ours is nil when there is nothing to compare.
func (e *caseRun) addPeers(ctx context.Context, ours kernels.Kernel) {
	text := filepath.Join(e.session.tmp, "case.hlo")
	err := os.WriteFile(text, []byte("HloModule case\n"+e.fusion.Canonical()), 0o600)
	for _, d := range drivers {
		p := e.session.driver(d.name)
		if p == nil || d.name == "memory" {
			continue
		}
		late := lateFamily{d.name, e.result.family}
		if err == nil && e.session.late[late] {
			err = fmt.Errorf("%w for an earlier case of this kind", errTooLong)
		}
		if err == nil {
			err = p.tell(text)
		}
		if err == nil {
			err = e.verifyPeer(ctx, p, ours)
		}
		e.session.late[late] = e.session.late[late] || errors.Is(err, errTooLong)
		switch {
		case err == nil:
			e.addDriver(d.name, p)
		case strings.HasSuffix(err.Error(), lacks):
			e.result.notes = append(e.result.notes, namedText{d.name, lacks})
		default:
			e.note(d.name, err)
		}
		err = nil
	}
}

// verifyPeer gives the driver the inputs of the case and compares its output
// with ours.
func (e *caseRun) verifyPeer(ctx context.Context, d *driver, ours kernels.Kernel) error {
	if err := d.spend(e.tuning); err != nil {
		return err
	}
	if err := d.open(e.result.family, e.sets, e.result.dims); err != nil {
		return err
	}
	e.atEnd(func() { d.ask("ok", "close") })
	in, err := peerInputs(e.fusion, e.session.seed)
	if err != nil {
		return err
	}
	for k, b := range in {
		file := filepath.Join(e.session.tmp, "in")
		if err := os.WriteFile(file, b.Data, 0o600); err != nil {
			return err
		}
		if err := d.load(k, file); err != nil {
			return err
		}
	}
	file := filepath.Join(e.session.tmp, "out")
	if err := d.check(file); err != nil || ours == nil {
		return err
	}
	return e.compareOutputs(ctx, ours, in, file)
}

// peerInputs fills inputs that a peer can compute exactly, too. Where there is no VNNI,
// oneDNN adds pairs of products of bytes in 16 bits, keeps the largest where they do not
// fit, and halves the weights of convolutions for that: small even bytes suffer neither.
func peerInputs(c *hlo.Computation, seed int64) ([]kernels.Buffer, error) {
	content := check.Normals
	if len(c.Params) > 0 && c.Params[0].Shape.DType == hlo.S8 {
		content = check.Integers
	}
	in, err := check.Inputs(c, content, seed)
	for _, b := range in {
		if b.Shape.DType == hlo.S8 {
			for k := range b.Data {
				b.Data[k] *= 2
			}
		}
	}
	return in, err
}

// compareOutputs runs our kernel on the inputs and compares its outputs with those in a
// file, one after the other.
func (e *caseRun) compareOutputs(
	ctx context.Context, ours kernels.Kernel, in []kernels.Buffer, file string,
) error {
	theirs, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	got, err := outputs(e.fusion)
	if err != nil {
		return err
	}
	bytes := 0
	for _, b := range got {
		bytes += len(b.Data)
	}
	if len(theirs) != bytes {
		return fmt.Errorf("the peer's output has %d bytes, not %d", len(theirs), bytes)
	}
	if _, err = ours.Run(ctx, in, got); err != nil {
		return err
	}
	for k, b := range got {
		want := b
		want.Data, theirs = theirs[:len(b.Data)], theirs[len(b.Data):]
		if m := check.Compare(k, b, want, tolerance(e.fusion)); m != nil {
			return fmt.Errorf(
				"we differ: %d of %d elements of output %d; at %v ours is %v, the peer's %v (allowed difference %.3g)",
				m.Wrong, m.Shape.Elements(), k, m.Index, m.Got, m.Want, m.Allowed,
			)
		}
	}
	return nil
}

// outputs makes a buffer for each output of a fusion.
func outputs(c *hlo.Computation) (all []kernels.Buffer, err error) {
	for _, s := range kernels.OutputShapes(c) {
		b, err := kernels.NewBuffer(s)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

// approximation bounds the relative error of a peer's exp and tanh, with
// respect to the largest value: oneDNN's gelu by tanh is good to a few 10⁻⁶.
const approximation = 1e-5

// tolerance is that of a comparison of two kernels, each of which is within its
// own tolerance of the reference.
func tolerance(c *hlo.Computation) check.Tolerance {
	t := check.ToleranceOf(c)
	if t.Relative > 0 {
		t.Relative = 2*t.Relative + approximation
	}
	return t
}

// addRoof adds moving as many bytes as the case moves: reading them for a case that
// writes little, at four places in turn and in order, or else copying, by stores past the caches and by ordinary ones.
func (e *caseRun) addRoof(f family) {
	floats, ops := e.moved()/8, []string{"copy", "copy_cached"}
	if f.reads {
		floats, ops = e.moved()/4, []string{"read", "read_in_order"}
	}
	for _, op := range ops {
		e.addMove(op, floats)
	}
}

// moved are the bytes of a run.
func (e *caseRun) moved() int64 {
	if f := families[e.result.family]; f.moves != nil {
		return f.moves(e.result.dims)
	}
	return e.result.bytes
}

// addMove adds a driver of the memory that moves so many floats. Its process does
// one thing at a time, so that every operation has one of its own.
func (e *caseRun) addMove(op string, floats int64) {
	if e.session.drivers["memory"] == nil {
		return
	}
	d, err := start(e.session.folder, "memory", e.session.threads)
	if err == nil {
		e.atEnd(d.close)
		err = d.open(op, e.sets, []int64{floats})
	}
	if err != nil {
		e.note(op, err)
		return
	}
	e.addDriver(op, d)
}

// addSmall adds two competitors that run the tuned plan on so few rows that all
// data stay in the first cache, one with twice the rows of the other. Their
// difference is the time of the code, without that of memory and of starting.
func (e *caseRun) addSmall() {
	first := e.session.backend.Identity().Levels[0].Bytes
	rows := max(
		1,
		first*3/8/(e.result.bytes/e.result.dims[0]),
	)
	for n, name := range []string{"small", "double"} {
		if err := e.addRows(name, rows<<n); err != nil {
			e.note(name, err)
			return
		}
	}
	e.result.smallRows = rows
}

// addRows adds the case with fewer rows, on one thread.
func (e *caseRun) addRows(name string, rows int64) error {
	c := testCase{
		family: e.result.family,
		dims:   append([]int64{rows}, e.result.dims[1:]...),
	}
	fusion, err := parse(c)
	if err != nil {
		return err
	}
	p, err := symtile.Analyze(context.Background(), fusion)
	if err != nil {
		return err
	}
	in, err := check.Inputs(fusion, check.Normals, e.session.seed)
	if err != nil {
		return err
	}
	out, err := outputs(fusion)
	if err != nil {
		return err
	}
	plan, err := clipped(e.result.plans[0].text, p)
	if err != nil {
		return err
	}
	k, _, err := e.compile(p, plan)
	if err != nil {
		return err
	}
	e.add(name, sameSample(k, in, out))
	return nil
}

// clipped is a plan for one thread in which no tile is larger than its
// dimension.
func clipped(text string, p *symtile.Program) (string, error) {
	plan, err := kernels.ParsePlan(text)
	if err != nil {
		return "", err
	}
	if len(plan.Tiles) != len(p.Space.Dims) {
		return "", fmt.Errorf(
			"with few rows the space has %d dimensions, not %d", len(p.Space.Dims), len(plan.Tiles),
		)
	}
	plan.Tiles = slices.Clone(plan.Tiles)
	for k, d := range p.Space.Dims {
		plan.Tiles[k] = min(
			plan.Tiles[k], max(1, d.Extent),
		)
	}
	return plan.With("threads", 1).String(), nil
}

// collect moves the samples of the competitors to the result.
func (e *caseRun) collect() {
	for _, c := range e.competitors {
		if c.failed != nil {
			e.note(c.name, c.failed)
		}
		if len(c.seconds) > 0 {
			e.result.times = append(
				e.result.times, timings{c.name, c.seconds},
			)
		}
	}
}
