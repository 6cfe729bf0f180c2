package main

import (
	"context"
	"fmt"
	"io"
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

// options of a run.
type options struct {
	folder string        // of the drivers
	try    int           // plans measured a case
	budget time.Duration // of tuning a case
	limit  time.Duration // of the rounds of a case, when there were enough
	rounds int           // of a case, at most
	sample int           // plans of a case's landscape
	most   int           // plans of an exhaustive search
	normal time.Duration // of tuning against it; 0 is what tuning takes when it is not told
	seed   int64
}

// A session measures cases with one number of threads.
type session struct {
	options
	threads int
	backend *cpu.Backend
	db      *cache.DB
	tmp     string // folder for inputs and outputs
	drivers map[string]*driver
	rng     *rand.Rand
	status  io.Writer
}

// newSession starts the drivers that can be started; versions says which cannot. Our side has as many threads as
// GOMAXPROCS says, which the caller has set.
func newSession(o options, threads int, tmp string, status io.Writer) *session {
	s := &session{
		options: o, threads: threads, backend: cpu.New(), tmp: tmp, status: status,
		db:      cache.Open(filepath.Join(tmp, fmt.Sprintf("threads%d.db", threads))),
		drivers: map[string]*driver{}, rng: rand.New(rand.NewPCG(uint64(o.seed), 0x7065_6572)),
	}
	for _, d := range drivers {
		p, err := start(o.folder, d.name, threads)
		if err == nil {
			s.drivers[d.name] = p
		} else if err != errMissing {
			fmt.Fprintf(status, "%s: %v\n", d.title, err)
		}
	}
	return s
}

func (s *session) close() {
	for _, d := range s.drivers {
		d.close()
	}
}

// An entry is a case under way.
type entry struct {
	s       *session
	res     *caseResult
	fusion  *hlo.Computation
	program *symtile.Program
	sets    int // of buffers, used in turn
	all     []*contender
	open    []func() // undone at the end
}

// measure tunes a case, checks it against its peer and times both. What fails
// is noted in the result; the error is ctx's.
func (s *session) measure(ctx context.Context, c testCase) (*caseResult, error) {
	e := &entry{s: s, res: &caseResult{testCase: c, threads: s.threads, load: load()}}
	defer e.close()
	if err := e.parse(); err != nil {
		return nil, fmt.Errorf("%s: %w", c, err)
	}
	ours := e.tune(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if ours != nil {
		e.sample(ctx)
	}
	e.enterPeer(ctx, ours)
	if family := families[c.family]; family.memory {
		e.enterRoof(family)
		if family.rows && ours != nil {
			e.enterSmall()
		}
	}
	err := contest(ctx, e.all, s.rounds, s.limit, s.rng)
	e.collect()
	return e.res, err
}

func (e *entry) close() {
	for _, f := range slices.Backward(e.open) {
		f()
	}
}

func (e *entry) note(name string, err error) {
	e.res.notes = append(e.res.notes, fact{name, err.Error()})
	fmt.Fprintf(e.s.status, "%s: %s: %v\n", e.res.testCase, name, err)
}

func parse(c testCase) (*hlo.Computation, error) {
	m, err := hlo.Parse(c.family, []byte(families[c.family].text(c.dims)))
	if err != nil {
		return nil, err
	}
	m.Entry.Name = c.family
	return m.Entry, nil
}

// parse fills in the fusion and how many sets of its buffers are used: twice
// the last cache, as kernels.Bench does for ours.
func (e *entry) parse() (err error) {
	if e.fusion, err = parse(e.res.testCase); err != nil {
		return err
	}
	for _, p := range e.fusion.Params {
		e.res.bytes += p.Shape.Bytes()
	}
	for _, o := range kernels.OutputShapes(e.fusion) {
		e.res.bytes += o.Bytes()
	}
	e.sets = int(min(8, max(2, (e.span()+e.res.bytes-1)/e.res.bytes)))
	return nil
}

func (e *entry) span() int64 {
	span := int64(64 << 20)
	for _, l := range e.s.backend.Identity().Levels {
		if l.Bytes > 0 {
			span = 2 * l.Bytes
		}
	}
	return span
}

// tune finds a plan and enters it, and the default plan when that is another.
// It returns the tuned kernel, nil when there is none.
func (e *entry) tune(ctx context.Context) kernels.Kernel {
	var failed string // why the default plan, which goes first, or else another fell out
	t := &tuner.Tuner{Backend: e.s.backend, Cache: e.s.db, Options: tuner.Options{
		Try: e.s.try, Budget: e.s.budget, Seed: e.s.seed,
		Observe: func(v tuner.Event) {
			if v.Kind == "failed" && failed == "" {
				failed = fmt.Sprintf("plan %s: %s", v.Plan, v.Reason)
			}
		},
	}}
	r, err := t.Tune(ctx, e.fusion)
	if err == nil {
		e.program, err = symtile.Analyze(e.fusion)
	}
	if err != nil && failed != "" {
		err = fmt.Errorf("%w; %s", err, failed)
	}
	if err != nil {
		e.note("tuned", err)
		return nil
	}
	e.res.legal = r.Record.Legal
	e.res.plans = []fact{{"tuned", r.Record.Plan}, {"default", r.Record.Default}}
	bench, err := kernels.NewBench(e.fusion, e.s.seed, e.span())
	if err != nil {
		e.note("tuned", err)
		return nil
	}
	tuned := e.enter("tuned", e.program, r.Record.Plan, bench)
	if r.Record.Default != r.Record.Plan {
		e.enter("default", e.program, r.Record.Default, bench)
	}
	return tuned
}

// enter compiles a plan and makes it a contender.
func (e *entry) enter(name string, p *symtile.Program, text string, bench *kernels.Bench) kernels.Kernel {
	k, seconds, err := e.compile(p, text)
	if err != nil {
		e.note(name, err)
		return nil
	}
	if name == "tuned" {
		e.res.compile = seconds
	}
	e.all = append(e.all, &contender{name: name, sample: kernelSample(bench, k)})
	return k
}

// compile returns the kernel and the median of five times it took to make it.
func (e *entry) compile(p *symtile.Program, text string) (kernels.Kernel, float64, error) {
	plan, err := kernels.ParsePlan(text)
	if err != nil {
		return nil, 0, err
	}
	var seconds []float64
	for {
		begin := time.Now()
		k, err := e.s.backend.Compile(context.Background(), p, plan)
		if err != nil {
			return nil, 0, err
		}
		if seconds = append(seconds, time.Since(begin).Seconds()); len(seconds) == 5 {
			e.open = append(e.open, func() { k.Close() })
			return k, median(seconds), nil
		}
		k.Close()
	}
}

// enterPeer opens the case in its peer's driver, and makes it a contender when
// its output is ours; ours is nil when there is nothing to compare.
func (e *entry) enterPeer(ctx context.Context, ours kernels.Kernel) {
	name := families[e.res.family].peer
	d := e.s.drivers[name]
	if d == nil {
		return
	}
	if err := e.agree(ctx, d, ours); err != nil {
		e.note(name, err)
		return
	}
	e.all = append(e.all, &contender{name: name, sample: d.sample})
}

func (e *entry) agree(ctx context.Context, d *driver, ours kernels.Kernel) error {
	if err := d.open(e.res.family, e.sets, e.res.dims); err != nil {
		return err
	}
	e.open = append(e.open, func() { d.ask("ok", "close") })
	in, err := kernels.Inputs(e.fusion, kernels.Normals, e.s.seed)
	if err != nil {
		return err
	}
	for k, b := range in {
		file := filepath.Join(e.s.tmp, "in")
		if err := os.WriteFile(file, b.Data, 0o600); err != nil {
			return err
		}
		if err := d.load(k, file); err != nil {
			return err
		}
	}
	file := filepath.Join(e.s.tmp, "out")
	if err := d.check(file); err != nil || ours == nil {
		return err
	}
	return e.compare(ctx, ours, in, file)
}

// compare runs our kernel on the inputs and compares its output with a file.
func (e *entry) compare(ctx context.Context, ours kernels.Kernel, in []kernels.Buffer, file string) error {
	got, err := kernels.NewBuffer(e.fusion.Root.Shape)
	if err != nil {
		return err
	}
	want := got
	if want.Data, err = os.ReadFile(file); err != nil {
		return err
	}
	if len(want.Data) != len(got.Data) {
		return fmt.Errorf("the peer's output has %d bytes, not %d", len(want.Data), len(got.Data))
	}
	if _, err := ours.Run(ctx, in, []kernels.Buffer{got}); err != nil {
		return err
	}
	if m := kernels.Compare(0, got, want, tolerance(e.fusion)); m != nil {
		return fmt.Errorf("we differ: %d of %d elements; at %v ours is %v, the peer's %v (allowed difference %.3g)",
			m.Wrong, m.Shape.Elements(), m.Index, m.Got, m.Want, m.Allowed)
	}
	return nil
}

// approximation is what a peer's exp and tanh may be off by, of the largest
// value: oneDNN's gelu by tanh is good to a few 10⁻⁶.
const approximation = 1e-5

// tolerance is for two kernels, each within its own of the reference.
func tolerance(c *hlo.Computation) kernels.Tolerance {
	t := kernels.ToleranceOf(c)
	if t.Relative > 0 {
		t.Relative = 2*t.Relative + approximation
	}
	return t
}

// enterRoof makes copying as many bytes as the case moves a contender, or reading
// them where it hardly writes.
func (e *entry) enterRoof(f family) {
	d := e.s.drivers["memory"]
	if d == nil {
		return
	}
	op, floats := "copy", e.res.bytes/8
	if f.reads {
		op, floats = "read", e.res.bytes/4
	}
	if err := d.open(op, e.sets, []int64{floats}); err != nil {
		e.note(op, err)
		return
	}
	e.open = append(e.open, func() { d.ask("ok", "close") })
	e.all = append(e.all, &contender{name: op, sample: d.sample})
}

// enterSmall makes two contenders of the tuned plan on so few rows that all
// stays in the first cache, one with twice the rows of the other: the
// difference is the time of the code, without memory and without starting.
func (e *entry) enterSmall() {
	first := e.s.backend.Identity().Levels[0].Bytes
	rows := max(1, first*3/8/(e.res.bytes/e.res.dims[0]))
	for n, name := range []string{"small", "double"} {
		if err := e.enterRows(name, rows<<n); err != nil {
			e.note(name, err)
			return
		}
	}
	e.res.small = rows
}

// enterRows enters the case with fewer rows, and one thread.
func (e *entry) enterRows(name string, rows int64) error {
	c := testCase{e.res.family, append([]int64{rows}, e.res.dims[1:]...)}
	fusion, err := parse(c)
	if err != nil {
		return err
	}
	p, err := symtile.Analyze(fusion)
	if err != nil {
		return err
	}
	in, err := kernels.Inputs(fusion, kernels.Normals, e.s.seed)
	if err != nil {
		return err
	}
	out, err := kernels.NewBuffer(fusion.Root.Shape)
	if err != nil {
		return err
	}
	plan, err := clipped(e.res.plans[0].text, p)
	if err != nil {
		return err
	}
	k, _, err := e.compile(p, plan)
	if err != nil {
		return err
	}
	e.all = append(e.all, &contender{name: name, sample: sameSample(k, in, []kernels.Buffer{out})})
	return nil
}

// clipped is a plan on one thread with no tile larger than its dimension.
func clipped(text string, p *symtile.Program) (string, error) {
	plan, err := kernels.ParsePlan(text)
	if err != nil {
		return "", err
	}
	if len(plan.Tiles) != len(p.Space.Dims) {
		return "", fmt.Errorf("with few rows the space has %d dimensions, not %d", len(p.Space.Dims), len(plan.Tiles))
	}
	plan.Tiles = slices.Clone(plan.Tiles)
	for k, d := range p.Space.Dims {
		plan.Tiles[k] = min(plan.Tiles[k], max(1, d.Extent))
	}
	return plan.With("threads", 1).String(), nil
}

// collect moves what was measured to the result.
func (e *entry) collect() {
	for _, c := range e.all {
		if c.failed != nil {
			e.note(c.name, c.failed)
		}
		if len(c.seconds) > 0 {
			e.res.times = append(e.res.times, timed{c.name, c.seconds})
		}
	}
}
