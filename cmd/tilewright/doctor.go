package main

import (
	"bufio"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cmd/tilewright/internal/assembler"
	"github.com/tilewright/tilewright/cmd/tilewright/internal/output"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/gpu"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/gpu/golden"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	corpus "github.com/tilewright/tilewright/testdata/hlo"
	"github.com/tilewright/tilewright/tuner"
	"github.com/tilewright/tilewright/tuner/report"
)

// doctorCommand checks a device from end to end.
var doctorCommand = command{
	name: "doctor", args: "-o FOLDER", short: "check a device from end to end and write down everything it says",
	long: `Writes into FOLDER, in one go and without anything else carried along:

  device.json     what the device is and has, and what its matrix units do when nothing else is asked
                  of them
  kernels/        the kernel of every fusion of the corpus, for its default plan and -plans others, and
                  those this program carries for all GPUs (goldens)
  kernels.tsv     of each: whether it agrees with the reference interpreter, or what a golden needs to run
                  that the device does not have, and, where ptxas is on the PATH and the kernel is PTX,
                  its registers, spills and shared memory
  ptxas.tsv       the same as a table for kernels/gpu/golden/testdata, of the goldens
  samples.jsonl   every timing of the large fusions (copy, transpose, softmax, layernorm, bf16 products):
                  a device of its own for -device replay:FOLDER/samples.jsonl
  summary.tsv     their best times, bytes and operations a second, and how much that is of the copy, of
                  the matrix units and of the vendor's library
  evidence.tsv    of each of those timings, and others: the clock of the GPU meanwhile, how often it was
                  taken because that was off, and how the kernel that never changes did
  report.html     the times as a page

-vendor FILE has lines of a large fusion's name and the seconds the vendor's library takes for it on
this device; without it nothing is said of the vendor. A device that cannot time, a simulator, is
checked only. Rates are those that are stored in -db; where none are, they are measured, and not kept.
-skip leaves out the large fusions, -only those of the corpus without TEXT in their names.`,
	run: runDoctor,
}

// largeFusions are fusions that are large enough to keep a GPU busy.
//
//go:embed doctor/*.hlo
var largeFusions embed.FS

// A doctor is one run of the command. Its steps fill in the fields below the
// blank line and write files into the folder.
type doctor struct {
	c *call
	// The device of -device.
	backend kernels.Backend
	// Folder that the files are written to.
	folder string
	// Plans that are checked of each fusion of the corpus.
	plans int
	// Time of tuning each large fusion.
	budget time.Duration
	// Fusions of the corpus without this text in their names are left out.
	only string
	// Seconds that the vendor's library takes, by large fusion.
	vendor map[string]float64

	// ptxas, if there is one.
	ptxas assembler.Assembler
	// Rows of kernels.tsv.
	kernels []kernelJSON
	// The kernels that this program carries, assembled.
	assembled []golden.AssemblerReport
	// Measured peak rates of the device.
	ceilings []device.Ceiling
	// Bandwidth of the copy in bytes/s; 0 until it is measured.
	copied float64
	// Large fusions with their rates.
	tuned []ratedJSON
	// Their records, for the report and the recording.
	records []cache.Record
	// Number of kernels that are wrong.
	bad int
}

// kernelJSON is a row of kernels.tsv.
type kernelJSON struct {
	Fusion string `json:"fusion"`
	// Plan of the kernel.
	Plan string `json:"plan"`
	// SHA-256 of the source.
	Hash string `json:"sha256"`
	// Verdict is "agrees" for a kernel whose results are right. It begins with
	// "not run: " where the device lacks what the kernel needs and with
	// "rejected" where the backend refuses the plan; anything else is wrong.
	Verdict string `json:"verdict"`
	// The report of ptxas.
	Assembled string `json:"assembled,omitempty"`
}

// doctorJSON is the result of doctor -json.
type doctorJSON struct {
	// Device is its stable name.
	Device string `json:"device"`
	// Ceilings are measured peak rates.
	Ceilings []device.Ceiling `json:"ceilings,omitempty"`
	// Kernels that were compiled and verified.
	Kernels []kernelJSON `json:"kernels"`
	// Large fusions that were tuned.
	Tuned []ratedJSON `json:"tuned,omitempty"`
	// Evidence is what the device recorded of its clock.
	Evidence *kernels.SampleQuality `json:"evidence,omitempty"`
	// Wrong counts the kernels that are wrong.
	Wrong int `json:"wrong"`
}

// runDoctor runs the steps in order, so that what the first of them need is
// tested before the later ones use it.
func runDoctor(c *call) error {
	c.jsonFlag()
	device, db := c.deviceFlag(), c.dbFlag()
	d := &doctor{c: c}
	c.StringVar(&d.folder, "o", "", "the `folder` to write to")
	c.IntVar(&d.plans, "plans", 2, "`plans` of a fusion checked besides the default")
	c.DurationVar(
		&d.budget, "budget", 30*time.Second, "wall `time` for tuning a large fusion",
	)
	c.StringVar(&d.only, "only", "", "only fusions of the corpus with `TEXT` in their names")
	vendor := c.String("vendor", "", "a `file` with the times of the vendor's library")
	skip := c.Bool("skip", false, "leave out the large fusions")
	if _, err := c.parse(0, 0); err != nil {
		return err
	}
	if d.folder == "" || d.folder == output.Standard {
		return usagef("-o says where to write to, a folder")
	}
	var err error
	if d.vendor, err = readVendor(*vendor); err != nil {
		return err
	}
	if d.backend, err = c.open(device); err != nil {
		return err
	}
	if _, _, err := tuner.StoredRates(cache.Open(*db), d.backend); err != nil {
		c.note("tilewright doctor: warning: %v; rates are measured", err)
	}
	if err := os.MkdirAll(filepath.Join(d.folder, "kernels"), 0o755); err != nil {
		return err
	}
	ctx, stop := c.catchSignals()
	defer stop()
	if d.ptxas, err = assembler.Find(ctx, ""); err != nil {
		return err
	}
	steps := []func(context.Context) error{
		d.device, d.goldens, d.corpus, d.writeKernels,
	}
	if !*skip && !d.backend.Device().Untimed {
		steps = append(steps, d.large)
	}
	for _, step := range append(steps, d.finish) {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// write writes a file into the folder.
func (d *doctor) write(name string, text []byte) error {
	return output.Replace(filepath.Join(d.folder, name), func(w *bufio.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// device describes the device, and measures the ceilings of a GPU.
func (d *doctor) device(ctx context.Context) error {
	dev := d.backend.Device()
	fmt.Fprintf(
		d.c.err, "%s, %d lanes, code generation %s\n",
		dev.Name, dev.Lanes, dev.Revision,
	)
	if g, ok := d.backend.(gpu.Diagnosable); ok {
		var err error
		if d.ceilings, err = g.MatrixCeilings(ctx); err != nil {
			fmt.Fprintf(d.c.err, "matrix units: %v\n", err)
			d.bad++
		}
	}
	for _, c := range d.ceilings {
		if c.FLOPS > 0 {
			fmt.Fprintf(d.c.err, "%s: %.1f TFLOP/s\n", c.Name, c.FLOPS/1e12)
		}
	}
	text, err := json.MarshalIndent(struct {
		kernels.Device
		Ceilings []device.Ceiling `json:",omitempty"`
	}{dev, d.ceilings}, "", "  ")
	if err != nil {
		return err
	}
	return d.write("device.json", append(text, '\n'))
}

// goldens assembles the kernels that this program carries and, if the device
// can run them, runs them.
func (d *doctor) goldens(ctx context.Context) error {
	all, err := golden.Kernels()
	if err != nil {
		return err
	}
	seen, err := golden.AssemblerReports()
	if err != nil {
		return err
	}
	var missing []string
	for _, g := range all {
		if err := d.golden(ctx, g); err != nil {
			return err
		}
		if _, ok := seen[golden.Hash(g.PTX)]; !ok {
			missing = append(missing, g.Name+" for "+g.Target)
		}
	}
	fmt.Fprintf(
		d.c.err, "%d goldens, %d assembled here, %d missing from the table this program carries",
		len(all), len(d.assembled), len(missing),
	)
	if len(missing) > 0 {
		fmt.Fprintf(d.c.err, ": %s", strings.Join(missing, ", "))
	}
	fmt.Fprintln(d.c.err)
	lines := []string{golden.AssemblerReportHeader}
	for _, a := range d.assembled {
		lines = append(lines, a.Row())
	}
	return d.write("ptxas.tsv", []byte(strings.Join(lines, "\n")+"\n"))
}

// golden assembles and runs one of them.
func (d *doctor) golden(ctx context.Context, g golden.Kernel) error {
	name := "golden " + g.Name + " for " + g.Target
	file := filepath.Join("kernels", strings.ReplaceAll(name, " ", "_")+".ptx")
	if err := d.write(file, []byte(g.PTX)); err != nil {
		return err
	}
	a, err := d.ptxas.File(
		ctx, filepath.Join(d.folder, file), g.PTX,
	)
	row := kernelJSON{
		Fusion: name,
		Plan:   g.Plan.String(),
		Hash:   golden.Hash(g.PTX),
	}
	switch {
	case err == nil:
		row.Assembled = usageText(a)
		// A kernel that is serialised is right, and slow.
		if a.Warning != "" {
			d.bad++
		}
		d.assembled = append(d.assembled, a)
	case !errors.Is(err, assembler.ErrNone):
		d.bad++
		fallthrough
	default:
		row.Assembled = err.Error()
	}
	row.Verdict = d.runs(ctx, g)
	d.count(row)
	return ctx.Err()
}

// The verdicts that are not wrong.
const (
	agrees = "agrees"
	notRun = "not run: " // and why
)

// runs runs a golden kernel on the device and returns the verdict.
func (d *doctor) runs(ctx context.Context, g golden.Kernel) string {
	b, ok := d.backend.(gpu.Diagnosable)
	if !ok {
		return notRun + "the device does not run PTX"
	}
	limited, cancel := context.WithTimeout(ctx, checkDeadline)
	defer cancel()
	k, err := b.CompileText(limited, g.Program, g.Plan, g.Target, g.PTX)
	var no *kernels.Rejected
	if errors.As(err, &no) {
		return notRun + no.Reason
	}
	if err != nil {
		return err.Error()
	}
	defer k.Close()
	v, err := check.NewVerifier(ctx, g.Program.Physical, 1)
	if err != nil {
		return err.Error()
	}
	// A golden with the knob tf32 is to round its operands.
	if err := v.For(g.Plan, true).Verify(limited, k); err != nil {
		return err.Error()
	}
	return agrees
}

// count keeps a row, and counts it if something is wrong with it.
func (d *doctor) count(k kernelJSON) {
	if k.Verdict != agrees &&
		!strings.HasPrefix(k.Verdict, notRun) &&
		!strings.HasPrefix(k.Verdict, "rejected") {
		d.bad++
	}
	d.kernels = append(d.kernels, k)
}

// modules parses a set of files. A fusion without a name takes that of its
// file.
func modules(files fs.FS, pattern string) ([]*hlo.Module, error) {
	names, err := fs.Glob(files, pattern)
	if err != nil {
		return nil, err
	}
	var all []*hlo.Module
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		m, err := hlo.Parse(name, text)
		if err != nil {
			return nil, err
		}
		if m.Name == "" {
			m.Entry.Name = strings.TrimSuffix(path.Base(name), ".hlo")
		}
		all = append(all, m)
	}
	return all, nil
}

// corpus compiles and verifies some plans of every fusion of the corpus.
func (d *doctor) corpus(ctx context.Context) error {
	all, err := modules(corpus.Files, "*.hlo")
	if err != nil {
		return err
	}
	for _, m := range all {
		for _, f := range m.Fusions() {
			if !strings.Contains(f.Name, d.only) {
				continue
			}
			if err := d.fusion(ctx, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeKernels writes kernels.tsv.
func (d *doctor) writeKernels(context.Context) error {
	var b strings.Builder
	fmt.Fprintln(&b, "fusion\tplan\tsha256\tverdict\tassembled")
	for _, k := range d.kernels {
		fmt.Fprintf(
			&b, "%s\t%s\t%s\t%s\t%s\n",
			k.Fusion, k.Plan, k.Hash,
			firstLine(k.Verdict), k.Assembled,
		)
	}
	idle := 0
	for _, k := range d.kernels {
		if strings.HasPrefix(k.Verdict, notRun) {
			idle++
		}
	}
	fmt.Fprintf(
		d.c.err, "%d kernels checked, %d wrong; %d not run\n",
		len(d.kernels)-idle, d.bad, idle,
	)
	return d.write("kernels.tsv", []byte(b.String()))
}

// fusion compiles and verifies some plans of one fusion.
func (d *doctor) fusion(ctx context.Context, f *hlo.Computation) error {
	p, err := symtile.Analyze(ctx, f)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	v, err := check.NewVerifier(ctx, p.Physical, 1)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	plans, err := d.choose(ctx, p)
	if err != nil {
		d.count(kernelJSON{Fusion: f.Name, Verdict: err.Error()})
		return nil
	}
	for n, plan := range plans {
		d.count(d.check(
			ctx, p, v, plan,
			fmt.Sprintf("%s.%d", f.Name, n),
		))
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// choose selects the default plan and others at equal distances among those
// that are offered.
func (d *doctor) choose(ctx context.Context, p *symtile.Program) ([]kernels.Plan, error) {
	def, err := d.backend.Default(ctx, p)
	if err != nil {
		return nil, err
	}
	chosen := []kernels.Plan{def}
	offered := slices.Collect(d.backend.Plans(ctx, p))
	for n := range d.plans {
		k := (2*n + 1) * len(offered) / (2 * d.plans)
		if k < len(offered) &&
			offered[k].String() != def.String() {
			chosen = append(chosen, offered[k])
		}
	}
	return chosen, nil
}

// checkDeadline is the time that the check of one kernel may take.
const checkDeadline = time.Minute // of one kernel

// check compiles, writes, verifies and assembles one kernel.
func (d *doctor) check(
	ctx context.Context, p *symtile.Program,
	v *check.Verifier, plan kernels.Plan, name string,
) kernelJSON {
	limited, cancel := context.WithTimeout(ctx, checkDeadline)
	defer cancel()
	row := kernelJSON{Fusion: p.Fusion.Name, Plan: plan.String()}
	k, err := d.backend.Compile(limited, p, plan)
	if err != nil {
		var no *kernels.Rejected
		if row.Verdict = err.Error(); errors.As(err, &no) {
			row.Verdict = "rejected: " + no.Reason
		}
		return row
	}
	defer k.Close()
	source := k.Source()
	row.Hash = golden.Hash(source)
	file := filepath.Join("kernels", name+".txt")
	ptx := strings.HasPrefix(source, ".version")
	if ptx {
		file = filepath.Join("kernels", name+".ptx")
	}
	row.Verdict = agrees
	verifier := v.For(plan, d.backend.Identity().TF32Allowed())
	err = errors.Join(d.write(file, []byte(source)), verifier.Verify(limited, k))
	if err != nil {
		row.Verdict = err.Error()
	}
	if ptx {
		row.Assembled = d.usage(limited, filepath.Join(d.folder, file), source)
	}
	return row
}

// usage is the report of the assembler about a file.
func (d *doctor) usage(ctx context.Context, file, source string) string {
	a, err := d.ptxas.File(ctx, file, source)
	if err != nil {
		return err.Error()
	}
	// A kernel of a plan is judged as a golden is.
	if a.Warning != "" {
		d.bad++
	}
	return usageText(a)
}

// large tunes the large fusions, the copy first, and compares their rates with
// those of the copy, of the matrix units and of the vendor's library. -skip
// leaves it out, and a device that cannot time has nothing to tune.
func (d *doctor) large(ctx context.Context) error {
	all, err := modules(largeFusions, "doctor/*.hlo") // the copy is the first
	if err != nil {
		return err
	}
	db := filepath.Join(d.folder, "samples.db")
	t := &tuner.Tuner{
		Backend: d.backend,
		Cache:   cache.Open(db),
		Options: tuner.Options{Budget: d.budget, Candidates: 32, Seed: 1, Force: true},
	}
	for _, m := range all {
		for _, f := range m.Fusions() {
			r, err := t.Tune(ctx, f)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			row := tunedJSON{Fusion: f.Name}
			if err != nil {
				row.Error = err.Error()
				d.bad++
			} else {
				row.fill(r)
				d.records = append(d.records, r.Record)
			}
			d.tuned = append(d.tuned, d.rate(f, row))
			fmt.Fprintln(d.c.err, d.tuned[len(d.tuned)-1])
		}
	}
	return d.samples(t.Cache)
}

// samples writes samples.jsonl, which -device replay reads: the device on the
// first line, then a record a line.
func (d *doctor) samples(db *cache.DB) error {
	return output.Replace(filepath.Join(d.folder, "samples.jsonl"), func(w *bufio.Writer) error {
		if err := json.NewEncoder(w).Encode(map[string]any{
			"sheet": d.backend.Device(),
		}); err != nil {
			return err
		}
		_, err := db.Export(w)
		return err
	})
}

// evidence writes evidence.tsv: the clock during each timing of the session,
// how often a timing was repeated because the clock was off, and the times of
// the reference kernel, which never changes.
func (d *doctor) evidence() error {
	g, ok := d.backend.(gpu.Diagnosable)
	if !ok {
		return nil
	}
	lines := []string{device.SampleHeader}
	session := d.saw().Clock
	for _, e := range g.Samples() {
		lines = append(lines, e.Row(session))
	}
	return d.write("evidence.tsv", []byte(strings.Join(lines, "\n")+"\n"))
}

// saw is what the device recorded of its clock; it is zero for a device that
// records nothing.
func (d *doctor) saw() kernels.SampleQuality {
	if b, ok := d.backend.(kernels.SampleObserver); ok {
		return b.SampleQuality()
	}
	return kernels.SampleQuality{}
}

// finish writes summary.tsv and report.html, prints the summary and returns an
// error if a kernel was wrong.
func (d *doctor) finish(context.Context) error {
	var b strings.Builder
	fmt.Fprintln(&b, ratedHeader)
	for _, t := range d.tuned {
		fmt.Fprintln(&b, t.row())
	}
	err := errors.Join(
		d.evidence(),
		d.write("summary.tsv", []byte(b.String())),
		output.Replace(filepath.Join(d.folder, "report.html"), func(w *bufio.Writer) error {
			return report.HTML(w, report.Page{
				Device:  d.backend.Device(),
				Records: d.records,
			})
		}),
	)
	if err != nil {
		return err
	}
	saw := d.saw()
	if saw.Known() {
		fmt.Fprintln(d.c.err, saw)
	}
	if d.c.json {
		j := doctorJSON{
			Device:   d.backend.Device().Name,
			Ceilings: d.ceilings,
			Kernels:  d.kernels,
			Tuned:    d.tuned,
			Wrong:    d.bad,
		}
		if saw.Known() {
			j.Evidence = &saw
		}
		err = d.c.printJSON(j)
	}
	if d.bad > 0 {
		return errors.Join(
			err,
			fmt.Errorf("%d of %d checks failed: see kernels.tsv and summary.tsv in %s", d.bad, len(d.kernels)+
				len(d.tuned), d.folder),
		)
	}
	return err
}

// usageText formats a row for people.
func usageText(a golden.AssemblerReport) string {
	text := fmt.Sprintf(
		"%d registers, %d bytes spilled, %d bytes of shared memory",
		a.Registers, a.Spilled, a.Shared,
	)
	if a.Stack > 0 {
		text += fmt.Sprintf(", %d bytes of stack", a.Stack)
	}
	if a.Warning != "" {
		text += "; " + a.Warning
	}
	return text
}
