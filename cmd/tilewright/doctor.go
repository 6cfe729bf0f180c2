package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	corpus "github.com/tilewright/tilewright/testdata/hlo"
	"github.com/tilewright/tilewright/tuner"
	"github.com/tilewright/tilewright/tuner/report"
)

var doctorCommand = command{
	name: "doctor", args: "-o FOLDER", short: "check a device from end to end and write down everything it says",
	long: `Writes into FOLDER, in one go and without anything else carried along:

  device.json     what the device is and has
  kernels/        the kernel of every fusion of the corpus, for its default plan and -plans others
  kernels.tsv     of each: whether it agrees with the reference interpreter and, where ptxas is on the
                  PATH and the kernel is PTX, its registers, spills and shared memory
  samples.jsonl   every timing of the large fusions (copy, transpose, softmax, layernorm, bf16 products):
                  a device of its own for -device replay:FOLDER/samples.jsonl
  summary.tsv     their best times, and bytes and operations a second
  report.html     the same as a page

A device that cannot time, a simulator, is checked only. -skip leaves out the large fusions.`,
	run: runDoctor,
}

//go:embed doctor/*.hlo
var largeFusions embed.FS

// A doctor is one run of the command.
type doctor struct {
	c       *call
	backend kernels.Backend
	folder  string
	plans   int
	budget  time.Duration
	kernels []kernelJSON
	tuned   []tunedJSON
	records []cache.Record
	bad     int
}

// kernelJSON is a row of kernels.tsv.
type kernelJSON struct {
	Fusion    string `json:"fusion"`
	Plan      string `json:"plan"`
	Hash      string `json:"sha256"` // of the source
	Verdict   string `json:"verdict"`
	Assembled string `json:"assembled,omitempty"` // what ptxas says
}

func runDoctor(c *call) error {
	c.jsonFlag()
	device := c.deviceFlag()
	d := &doctor{c: c}
	c.StringVar(&d.folder, "o", "", "the `folder` to write to")
	c.IntVar(&d.plans, "plans", 2, "`plans` of a fusion checked besides the default")
	c.DurationVar(&d.budget, "budget", 30*time.Second, "wall `time` for tuning a large fusion")
	skip := c.Bool("skip", false, "leave out the large fusions")
	if _, err := c.parse(0, 0); err != nil {
		return err
	}
	if d.folder == "" {
		return usagef("-o says where to write to")
	}
	var err error
	if d.backend, err = backend(device); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(d.folder, "kernels"), 0o755); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	steps := []func(context.Context) error{d.device, d.corpus}
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

// write makes a file of the folder.
func (d *doctor) write(name string, text []byte) error {
	return writeFile(filepath.Join(d.folder, name), func(w *bufio.Writer) error { _, err := w.Write(text); return err })
}

func (d *doctor) device(context.Context) error {
	dev := d.backend.Device()
	fmt.Fprintf(d.c.err, "%s, %d lanes, code generation %s\n", dev.Name, dev.Lanes, dev.Revision)
	text, err := json.MarshalIndent(dev, "", "  ")
	if err != nil {
		return err
	}
	return d.write("device.json", append(text, '\n'))
}

// modules are the texts of a set of files, parsed.
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
		all = append(all, m)
	}
	return all, nil
}

// corpus compiles and checks kernels of every fusion of the corpus.
func (d *doctor) corpus(ctx context.Context) error {
	all, err := modules(corpus.Files, "*.hlo")
	if err != nil {
		return err
	}
	for _, m := range all {
		for _, f := range m.Fusions() {
			if err := d.fusion(ctx, f); err != nil {
				return err
			}
		}
	}
	var b strings.Builder
	fmt.Fprintln(&b, "fusion\tplan\tsha256\tverdict\tassembled")
	for _, k := range d.kernels {
		fmt.Fprintf(&b, "%s\t%s\t%s\t%s\t%s\n", k.Fusion, k.Plan, k.Hash, firstLine(k.Verdict), k.Assembled)
	}
	fmt.Fprintf(d.c.err, "%d kernels of the corpus checked, %d wrong\n", len(d.kernels), d.bad)
	return d.write("kernels.tsv", []byte(b.String()))
}

func (d *doctor) fusion(ctx context.Context, f *hlo.Computation) error {
	p, err := symtile.Analyze(f)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	v, err := kernels.NewVerifier(f, 1)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	plans, err := d.choose(p)
	if err != nil {
		d.kernels = append(d.kernels, kernelJSON{Fusion: f.Name, Verdict: err.Error()})
		d.bad++
		return nil
	}
	for n, plan := range plans {
		k := d.check(ctx, p, v, plan, fmt.Sprintf("%s.%d", f.Name, n))
		if k.Verdict != "agrees" && !strings.HasPrefix(k.Verdict, "rejected") {
			d.bad++
		}
		d.kernels = append(d.kernels, k)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// choose is the default plan and others spread over those offered.
func (d *doctor) choose(p *symtile.Program) ([]kernels.Plan, error) {
	def, err := d.backend.Default(p)
	if err != nil {
		return nil, err
	}
	chosen, offered := []kernels.Plan{def}, slices.Collect(d.backend.Plans(p))
	for n := range d.plans {
		if k := (2*n + 1) * len(offered) / (2 * d.plans); k < len(offered) && offered[k].String() != def.String() {
			chosen = append(chosen, offered[k])
		}
	}
	return chosen, nil
}

const checkDeadline = time.Minute // of one kernel

// check compiles, keeps, verifies and assembles a kernel.
func (d *doctor) check(ctx context.Context, p *symtile.Program, v *kernels.Verifier, plan kernels.Plan, name string) kernelJSON {
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
	row.Hash = fmt.Sprintf("%x", sha256.Sum256([]byte(source)))
	file := filepath.Join("kernels", name+".txt")
	ptx := strings.HasPrefix(source, ".version")
	if ptx {
		file = filepath.Join("kernels", name+".ptx")
	}
	row.Verdict = "agrees"
	if err := errors.Join(d.write(file, []byte(source)), v.For(d.backend.Identity(), plan).Verify(limited, k)); err != nil {
		row.Verdict = err.Error()
	}
	if ptx {
		row.Assembled = assemble(limited, filepath.Join(d.folder, file), source)
	}
	return row
}

// assemble is what ptxas says of a file, in one line.
func assemble(ctx context.Context, file, source string) string {
	tool, err := exec.LookPath("ptxas")
	if err != nil {
		return "unassembled: no ptxas on the PATH"
	}
	_, rest, _ := strings.Cut(source, ".target ")
	target, _, _ := strings.Cut(rest, "\n")
	out, err := exec.CommandContext(ctx, tool, "-v", "-arch="+strings.TrimSpace(target), "-o", os.DevNull, file).CombinedOutput()
	if err != nil {
		return "refused: " + firstLine(strings.TrimSpace(string(out)))
	}
	var said []string
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(strings.TrimPrefix(line, "ptxas info")); strings.Contains(line, "Used") || strings.Contains(line, "spill") {
			said = append(said, strings.TrimLeft(line, " :"))
		}
	}
	return strings.Join(said, "; ")
}

// large tunes the large fusions.
func (d *doctor) large(ctx context.Context) error {
	all, err := modules(largeFusions, "doctor/*.hlo")
	if err != nil {
		return err
	}
	db := filepath.Join(d.folder, "samples.db")
	t := &tuner.Tuner{Backend: d.backend, Cache: cache.Open(db), Options: tuner.Options{Budget: d.budget, Try: 32, Seed: 1, Force: true}}
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
			d.tuned = append(d.tuned, row)
			fmt.Fprintln(d.c.err, rates(f, row))
		}
	}
	return d.samples(t.Cache)
}

// rates is what a time means: bytes of the arrays and multiply-adds, a second.
func rates(f *hlo.Computation, row tunedJSON) string {
	if row.Error != "" {
		return f.Name + "\t" + firstLine(row.Error)
	}
	bytes, flops := 0.0, 0.0
	for _, s := range append(kernels.OutputShapes(f), shapesOf(f.Params)...) {
		bytes += float64(s.Bytes())
	}
	for _, i := range f.Instrs {
		if i.Op == "dot" {
			n := 2 * float64(i.Shape.Elements())
			for _, k := range i.Attrs.LHSContract {
				n *= float64(i.Operands[0].Shape.Dims[k])
			}
			flops += n
		}
	}
	return fmt.Sprintf("%s\t%s\t%s\t%.0f GB/s\t%.1f TFLOP/s", f.Name, row.Plan, tuner.Seconds(row.Seconds), bytes/row.Seconds/1e9, flops/row.Seconds/1e12)
}

func shapesOf(params []*hlo.Instr) []hlo.Shape {
	var all []hlo.Shape
	for _, p := range params {
		all = append(all, p.Shape)
	}
	return all
}

// samples writes the recording: the device, then the records.
func (d *doctor) samples(db *cache.DB) error {
	return writeFile(filepath.Join(d.folder, "samples.jsonl"), func(w *bufio.Writer) error {
		if err := json.NewEncoder(w).Encode(map[string]any{"sheet": d.backend.Device()}); err != nil {
			return err
		}
		_, err := db.Export(w)
		return err
	})
}

// finish writes the summary and the page, and says how it went.
func (d *doctor) finish(context.Context) error {
	var b strings.Builder
	fmt.Fprintln(&b, "fusion\tplan\tseconds\terror")
	for _, t := range d.tuned {
		fmt.Fprintf(&b, "%s\t%s\t%g\t%s\n", t.Fusion, t.Plan, t.Seconds, firstLine(t.Error))
	}
	err := errors.Join(d.write("summary.tsv", []byte(b.String())),
		writeFile(filepath.Join(d.folder, "report.html"), func(w *bufio.Writer) error {
			return report.HTML(w, report.Page{Device: d.backend.Device(), Records: d.records})
		}))
	if err != nil {
		return err
	}
	if d.c.json {
		err = d.c.printJSON(map[string]any{"device": d.backend.Device().Name, "kernels": d.kernels, "tuned": d.tuned, "wrong": d.bad})
	}
	if d.bad > 0 {
		return errors.Join(err, fmt.Errorf("%d of %d checks failed: see kernels.tsv and summary.tsv in %s", d.bad, len(d.kernels)+len(d.tuned), d.folder))
	}
	return err
}
