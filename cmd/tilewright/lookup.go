package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cmd/tilewright/internal/output"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/query"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/partition"
	"github.com/tilewright/tilewright/tuner"
)

// lookupCommand asks for a plan.
var lookupCommand = command{
	name: "lookup", args: "FILE", short: "the compiler's question: which plan? exit 3 if -require is not met",
	long: `Prints a plan for a fusion on this machine's device: its winner (basis "exact"), that of the nearest
fusion whose plan is legal ("nearest": other extents, another revision of the code generator, another
device), or else the device's default plan, which is the first by price ("predicted"). A plan that failed its
check in -db is not answered; where the default did, it is the cheapest that passed, or an error. Nothing is
compiled, run or measured. A FILE with several fusions is answered for all of them, and - is the standard
input; many questions are cheaper to a server: tilewright serve. A winner measured under another driver
or Go version is still exact; "safe" then says what differs. -require exact ends with status 3 where
there is no winner. -queue collects what has none, and tune reads it as it does modules:

  tilewright lookup fused.hlo -queue misses.jsonl    at run time: answered, and noted as a line
  tilewright tune misses.jsonl                       later: every fusion once, also if it was noted twice`,
	run: runLookup,
}

// lookupJSON is the result of lookup -json.
type lookupJSON struct {
	// Found is false where the answer is not of the basis that -require demands, and
	// then the fields below Device are empty.
	Found bool `json:"found"`
	// Name of the fusion.
	Fusion string `json:"fusion"`
	// Source is the operation and the line of the user's program that it comes from.
	Source string `json:"source,omitempty"`
	// Fingerprint of the canonical fusion, hexadecimal.
	Print string `json:"fingerprint"`
	// Stable name of the device.
	Device string `json:"device"`
	// What the answer rests on: exact, nearest, predicted or default.
	Basis tuner.Basis `json:"basis,omitempty"`
	// How what a nearest answer was measured for differs from what was asked.
	Differs []string `json:"differs,omitempty"`
	// The plan, and the names of its dimensions, in order.
	Plan string            `json:"plan,omitempty"`
	Dims kernels.PlanNames `json:"dims,omitempty"`
	// Seconds is the median of the winner, or, where Untimed is set, its price.
	Seconds float64 `json:"seconds,omitempty"`
	// The plan that the winner is compared with, and its median.
	Default        string  `json:"default,omitempty"`
	DefaultSeconds float64 `json:"defaultSeconds,omitempty"`
	// Speedup over the default: median, lower and upper end (0: unknown).
	Speedup [3]float64 `json:"speedup"`
	// Regret bounds the winner's time over that of the best tried plan, minus
	// 1, at 95 %; −1 is unknown.
	Regret float64 `json:"regret"`
	// Ties are the plans that are statistically equal to the winner.
	Ties []string `json:"ties,omitempty"`
	// Checked says that the winner agreed with the reference.
	Checked bool `json:"checked"`
	// DefaultError is how the default plan failed its check.
	DefaultError string `json:"defaultError,omitempty"`
	// Untimed says that Seconds and Speedup are predictions of the cost model.
	Untimed bool `json:"untimed,omitempty"`
	// Damage says why the stored winner could not be read: the answer is another one.
	Damage string `json:"damage,omitempty"`
	// Provisional says that the race is not over, or that only the default plan was
	// timed.
	Provisional bool `json:"provisional,omitempty"`
	// Like is the fusion, different in extents only, whose winner was raced beside the
	// default, and nothing else; a snapshot does not know it.
	Like string `json:"like,omitempty"`
	// When and By say when and by which tool it was measured.
	When *time.Time `json:"when,omitempty"`
	By   string     `json:"by,omitempty"`
	// Safe lists how the safe context of the record differs from this
	// machine's.
	Safe []string `json:"safe,omitempty"`
}

// lookupFlags are the flags of lookup.
type lookupFlags struct {
	db, snapshot, require, queue *string
	device                       deviceFlags
}

// runLookup looks the fusions of a file up by the identity of the device; nothing is
// opened for running, and nothing is measured: not even the rates of this machine, which
// devices measures. One fusion is answered by a document of its own, several by a list.
func runLookup(c *call) error {
	c.jsonFlag()
	f := lookupFlags{
		db:       c.dbFlag(),
		snapshot: c.snapshotFlag(),
		device:   c.pricedDeviceFlag(),
		require:  c.String("require", "", "answer with a stored winner of this fusion only: `exact`"),
		queue:    c.String("queue", "", "append what has no winner to this `FILE` of JSON lines, which tune reads"),
	}
	name := c.String("fusion", "", "the fusion of this `name`, when FILE has several")
	c.shapeFlag()
	args, err := c.parse(1, 1)
	if err != nil {
		return err
	}
	if *f.require != "" && *f.require != string(tuner.Exact) {
		return usagef("-require %s: only exact can be required", *f.require)
	}
	return c.eachShape(func() error {
		return c.lookup(f, args[0], *name)
	})
}

// lookup looks up the fusions of a file, or the one of a name.
func (c *call) lookup(f lookupFlags, file, name string) error {
	asked, err := f.open(c)
	if err != nil {
		return err
	}
	defer asked.close()
	return c.eachModule(file, name != "", func(file string, split *partition.Result) error {
		return c.lookupIn(asked, file, split.Module, name)
	})
}

// lookupIn looks up the fusions of a module, or the one of a name.
func (c *call) lookupIn(asked *winnerSource, file string, m *hlo.Module, name string) error {
	all, err := fusions(file, m, name)
	if err != nil {
		return err
	}
	if len(all) != 1 {
		return c.lookupAll(asked, m, all)
	}
	j, err := asked.lookup(c.ctx, all[0], m.Callers()[all[0]])
	if err != nil {
		return err
	}
	if err := j.print(c); err != nil || j.Found {
		return err
	}
	return errMiss
}

// lookupModuleJSON is the result of lookup -json for a module of several fusions.
type lookupModuleJSON struct {
	// Fusions in the order of the module, each with the document that it has when it is
	// asked for alone.
	Fusions []lookupJSON `json:"fusions"`
}

// lookupAll answers for all fusions of a module, with a line or a document for each. The
// exit status is that of a miss while one of them has no plan, or none that is
// required, so that a build that needs all of them can ask once.
func (c *call) lookupAll(asked *winnerSource, m *hlo.Module, all []*hlo.Computation) error {
	j := lookupModuleJSON{Fusions: []lookupJSON{}}
	callers := m.Callers()
	var missed error
	for _, f := range all {
		one, err := asked.lookup(c.ctx, f, callers[f])
		if tuner.IsUnanswered(err) {
			err = nil
		}
		if err != nil {
			return err
		}
		if !one.Found {
			missed = errMiss
		}
		j.Fusions = append(j.Fusions, one)
	}
	if c.json {
		return cmp.Or(c.printJSON(j), missed)
	}
	for _, one := range j.Fusions {
		if one.Found {
			fmt.Fprintf(c.out, "%s: ", one.Fusion)
		}
		if err := one.print(c); err != nil {
			return err
		}
	}
	return missed
}

// A winnerSource is what lookup asks: a database or a snapshot, and a device.
type winnerSource struct {
	backend  kernels.Backend
	winners  *cache.DB
	snapshot tuner.Snapshot // asked where it is open
	required bool           // that of the fusion itself only
	queue    output.File
}

// open opens what the flags name.
func (f *lookupFlags) open(c *call) (*winnerSource, error) {
	b, err := c.open(f.device)
	if err != nil {
		return nil, err
	}
	w := &winnerSource{backend: b, winners: cache.Open(*f.db), required: *f.require != "", queue: c.output("queue", *f.queue, output.Queue, false)}
	if *f.snapshot != "" {
		w.snapshot, err = openSnapshot(*f.snapshot)
		return w, err
	}
	c.Visit(func(given *flag.Flag) {
		if _, missing := os.Stat(*f.db); given.Name == "db" && missing != nil {
			c.note("note: %s is not there, and nothing is stored", *f.db)
		}
	})
	return w, nil
}

func (w *winnerSource) close() {
	if w.snapshot.Snapshot != nil {
		w.snapshot.Close()
	}
}

// lookup answers for one fusion, which some instructions execute. The error is one of a
// damaged record or file, or that the fusion has no plans.
func (w *winnerSource) lookup(ctx context.Context, fusion *hlo.Computation, callers []*hlo.Instr) (lookupJSON, error) {
	sources := fusion.Sources(callers)
	j := lookupJSON{
		Fusion: fusion.Name,
		Print:  fmt.Sprintf("%x", fusion.Fingerprint()),
		Device: w.backend.Identity().Name,
		Regret: -1,
	}
	metadata := ""
	if len(sources) > 0 {
		j.Source, metadata = sources[0].String(), sources[0].Metadata()
	}
	a, err := w.ask(ctx, fusion)
	if tuner.IsUnanswered(err) && w.required {
		err = nil
	}
	if err == nil && a.Damage != "" && w.required {
		err = errors.New(a.Damage)
	}
	if err != nil {
		return j, err
	}
	if a.Basis != tuner.Exact && w.queue.Name != "" {
		if err := w.appendMiss(fusion, j, metadata); err != nil {
			return j, err
		}
	}
	if j.Found = a.Basis == tuner.Exact || !w.required; j.Found {
		j.fill(&a)
		if j.Dims = a.Dims; j.Dims == nil {
			j.Dims = planNames(ctx, fusion)
		}
	}
	return j, nil
}

// ask asks the snapshot or the database.
func (w *winnerSource) ask(ctx context.Context, fusion *hlo.Computation) (tuner.Answer, error) {
	if w.snapshot.Snapshot != nil {
		return w.snapshot.Answer(ctx, fusion, w.backend)
	}
	return tuner.AnswerFrom(ctx, w.winners, fusion, w.backend)
}

// openSnapshot opens FILE or FILE@REVISION.
func openSnapshot(name string) (tuner.Snapshot, error) {
	file, revision, pinned := cutRevision(name)
	if !pinned {
		return tuner.OpenSnapshot(name)
	}
	return tuner.OpenSnapshotAt(file, revision)
}

// cutRevision splits FILE@REVISION; a name whose end is no revision is a file's.
func cutRevision(name string) (file, revision string, ok bool) {
	at := strings.LastIndexByte(name, '@')
	if at < 0 || cache.ParseRevision(name[at+1:]) != nil {
		return name, "", false
	}
	return name[:at], name[at+1:], true
}

// appendMiss appends a line to the queue: what was asked, and in metadata where the fusion
// comes from, which tune says of it when it reads the queue.
func (w *winnerSource) appendMiss(fusion *hlo.Computation, j lookupJSON, metadata string) error {
	line, err := json.Marshal(query.Miss{
		Fusion: j.Fusion, Metadata: metadata, Print: j.Print,
		Device: j.Device, Canonical: fusion.Canonical(), When: time.Now().UTC(),
	})
	if err != nil {
		return err
	}
	return w.queue.Append(line)
}

// fill takes an answer over.
func (j *lookupJSON) fill(a *tuner.Answer) {
	j.Basis = a.Basis
	j.Differs = a.Differs
	j.Plan = a.Plan.String()
	j.Seconds = a.Seconds
	j.Default = a.Default
	j.DefaultSeconds = a.DefaultSeconds
	j.Speedup = a.Speedup
	j.Regret = a.Regret
	j.Ties = a.Ties
	j.Checked = a.Checked
	j.Safe = a.SafeGap
	j.Untimed = a.Untimed
	j.Provisional = a.Provisional
	j.Like = a.Like
	j.Damage = a.Damage
	j.DefaultError = a.DefaultFailure
	j.By = a.By
	if !a.When.IsZero() {
		j.When = &a.When
	}
}

// print prints the plan, and what has to be known about it as notes.
func (j lookupJSON) print(c *call) error {
	if c.json {
		return c.printJSON(j)
	}
	if !j.Found {
		fmt.Fprintf(c.err, "%s: nothing is known on %s%s\n", j.Fusion, j.Device, fromText(j.Source))
		return nil
	}
	fmt.Fprintf(c.out, "%s\n", j.Dims.Stored(j.Plan))
	for _, note := range j.notes() {
		fmt.Fprintf(c.err, "note: %s\n", note)
	}
	return nil
}

// fromText is a clause that says what a fusion comes from; "" where that is not known.
func fromText(source string) string {
	if source == "" {
		return ""
	}
	return "; it is from " + source
}

// notes are what a person should know beside the plan.
func (j lookupJSON) notes() (all []string) {
	if j.Source != "" {
		all = append(all, j.Fusion+" is from "+j.Source)
	}
	if j.Damage != "" {
		all = append(all, j.Damage)
	}
	switch {
	case j.Basis == tuner.Nearest:
		all = append(all, "no winner is stored; the nearest one: "+strings.Join(j.Differs, ", "))
	case j.Basis != tuner.Exact && j.DefaultError != "":
		all = append(all, "no winner is stored: this is the cheapest plan that passed its check")
	case j.Basis != tuner.Exact:
		all = append(all, "no winner is stored: this is the default plan")
	case !j.Checked:
		all = append(all, "the record was imported: the plan has not been checked here")
	}
	if j.Provisional {
		all = append(all, "the winner is provisional: `tilewright tune` races on")
	}
	if j.Like != "" {
		all = append(all, "only the default and the winner of "+j.Like+", which differs in extents only, were raced")
	}
	if j.DefaultError != "" {
		all = append(all, j.DefaultError)
	}
	return append(all, j.Safe...)
}
