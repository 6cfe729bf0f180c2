package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/npy"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/tuner/report"
)

// runCommand runs one plan.
var runCommand = command{
	name: "run", args: "FILE", short: "execute one plan; NumPy files in and out",
	long: `Compiles and runs one plan of a fusion and checks the result against the reference interpreter.

  tilewright run softmax.hlo -tiling 8,512,512,512 -args x.npy -out y.npy

-args takes one .npy file per parameter, in order, separated by commas; without it inputs are made
from -seed. -out takes one per output. bf16 arrays travel as uint16 and f8 ones as uint8, the bits,
since NumPy has no such types. Without -tiling or -plan the default plan runs.`,
	run: runRun,
}

// runFlags are the flags of run.
type runFlags struct {
	device deviceFlags
	// The fusion, the plan and the NumPy files.
	fusion, tiling, plan, args, out *string
	// Seed of generated inputs.
	seed *int64
	// Number of runs.
	repeat *int
	// Print the source of the kernel; count its instructions on a simulator.
	source, counters *bool
	// Replace files of another kind.
	replace *bool
	// The file of the fusion.
	file string
}

// runJSON is the result of run -json. Times are seconds.
type runJSON struct {
	// Name of the fusion.
	Fusion string `json:"fusion"`
	// Stable name of the device.
	Device string `json:"device"`
	// Plan that ran.
	Plan string `json:"plan"`
	// Times has one entry a run.
	Times []float64 `json:"times,omitempty"`
	// Checked says that the result agrees with the reference.
	Checked bool `json:"checked"`
	// Allowed is the relative difference that counts as agreement; 0 means
	// every bit.
	Allowed float64 `json:"allowed"`
	// Files that the outputs were written to.
	Outputs []string `json:"outputs,omitempty"`
	// Notes for people, for instance on outputs that were not saved.
	Notes []string `json:"notes,omitempty"`
	// Source of the kernel, with -source.
	Source string `json:"source,omitempty"`
	// Untimed says that the device cannot time: there are no times.
	Untimed bool `json:"untimed,omitempty"`

	// Counters are what a simulator counted in the last run.
	Counters *countersJSON `json:"counters,omitempty"`

	// Tolerance of the comparison with the reference.
	tolerance check.Tolerance
	// The counters as text.
	counted string
}

// runRun compiles one plan of a fusion, runs it and checks its results.
func runRun(c *call) error {
	c.jsonFlag()
	f := runFlags{
		device:   c.deviceFlag(),
		fusion:   c.String("fusion", "", "run the fusion of this `name`, when FILE has several"),
		tiling:   c.String("tiling", "", "tile `sizes`, e.g. 64,32,16"),
		plan:     c.String("plan", "", "a whole `plan`, e.g. \"64,32,16 threads=2\""),
		args:     c.String("args", "", "input `files`, e.g. a.npy,b.npy"),
		out:      c.String("out", "", "output `files`"),
		seed:     c.Int64("seed", 1, "`seed` of inputs that are not given"),
		repeat:   c.Int("repeat", 5, "run this many `times`"),
		source:   c.Bool("source", false, "show the tile program that runs"),
		counters: c.Bool("counters", false, "show what a simulator counted: instructions, memory traffic, barriers"),
		replace:  c.replaceFlag(),
	}
	args, err := c.parse(1, 1)
	if err != nil {
		return err
	}
	if *f.repeat < 1 || *f.repeat > 1e6 {
		return usagef("-repeat %d is not between 1 and a million", *f.repeat)
	}
	f.file = args[0]
	for _, out := range f.outputs() {
		if err := out.check(); err != nil {
			return err
		}
	}
	fusion, err := c.readFusion(args[0], *f.fusion)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	result, err := f.run(ctx, fusion)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(result)
	}
	result.print(c)
	return nil
}

// run compiles, runs and checks the chosen plan.
func (f runFlags) run(ctx context.Context, c *hlo.Computation) (*runJSON, error) {
	b, err := backend(f.device)
	if err != nil {
		return nil, err
	}
	p, err := symtile.Analyze(c)
	if err != nil {
		return nil, err
	}
	plan, err := f.choose(b, p)
	if err != nil {
		return nil, err
	}
	k, err := b.Compile(ctx, p, plan)
	if err != nil {
		return nil, err
	}
	defer k.Close()
	in, err := f.inputs(c)
	if err != nil {
		return nil, err
	}
	r := &runJSON{
		Fusion:    c.Name,
		Device:    b.Device().Name,
		Plan:      plan.String(),
		tolerance: check.ToleranceFor(c, plan, b.Identity().TF32Allowed()),
	}
	r.Allowed = r.tolerance.Relative
	if *f.source {
		r.Source = k.Source()
	}
	times := *f.repeat
	if r.Untimed = b.Device().Untimed; r.Untimed {
		times = 1
	}
	counted, counts := b.(counterSource)
	switch {
	case *f.counters && !counts:
		return nil, usagef("-counters: %s counts nothing; simulators do, see `tilewright devices`", r.Device)
	case *f.counters:
		counted.count()
	}
	out, err := r.measure(ctx, k, c, in, times)
	if err != nil {
		return nil, err
	}
	if *f.counters {
		all := counted.counters()
		r.Counters, r.counted = newCountersJSON(all), all.String()
	}
	return r, r.save(out, f.outputs())
}

// outputs are the files of -out. Run reads the fusion and the files of -args.
func (f runFlags) outputs() []output {
	if *f.out == "" {
		return nil
	}
	reads := append([]string{f.file}, strings.Split(*f.args, ",")...)
	var all []output
	for _, name := range strings.Split(*f.out, ",") {
		all = append(all, output{name, npyFile, reads, *f.replace})
	}
	return all
}

// choose parses -plan or -tiling, or takes the default plan.
func (f runFlags) choose(
	b kernels.Backend, p *symtile.Program,
) (kernels.Plan, error) {
	return chosenPlan(*f.tiling, *f.plan, func() (kernels.Plan, error) {
		return b.Default(p)
	})
}

// inputs reads the NumPy files of -args, or generates inputs from the seed.
func (f runFlags) inputs(c *hlo.Computation) ([]kernels.Buffer, error) {
	if *f.args == "" {
		return check.Inputs(c, check.Normals, *f.seed)
	}
	files := strings.Split(*f.args, ",")
	if len(files) != len(c.Params) {
		return nil, fmt.Errorf(
			"%s has %d parameters, -args has %d files",
			c.Name, len(c.Params), len(files),
		)
	}
	in := make([]kernels.Buffer, len(files))
	for k, name := range files {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		in[k], err = npy.Read(
			bufio.NewReader(file), c.Params[k].Shape,
		)
		file.Close()
		if err != nil {
			return nil, fmt.Errorf("%s, for parameter %s: %w", name, c.Params[k].Name, err)
		}
	}
	return in, nil
}

// measure runs a kernel several times, keeps the times and checks the last
// result.
func (r *runJSON) measure(
	ctx context.Context, k kernels.Kernel,
	c *hlo.Computation, in []kernels.Buffer, times int,
) ([]kernels.Buffer, error) {
	var out []kernels.Buffer
	for _, s := range kernels.OutputShapes(c) {
		b, err := kernels.NewBuffer(s)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	for range times {
		d, err := k.Run(ctx, in, out)
		if err != nil {
			return nil, err
		}
		if !r.Untimed {
			r.Times = append(r.Times, d.Seconds())
		}
	}
	want, err := reference.Interpret(c, in)
	if err != nil {
		r.Notes = append(r.Notes, "not checked: "+err.Error())
		return out, nil
	}
	if m := r.tolerance.Agree(c, in, out, want); m != nil {
		return nil, m
	}
	r.Checked = true
	return out, nil
}

// save writes the outputs to NumPy files.
func (r *runJSON) save(out []kernels.Buffer, files []output) error {
	if len(files) == 0 {
		return nil
	}
	if len(files) != len(out) {
		return fmt.Errorf("the fusion has %d outputs, -out has %d files", len(out), len(files))
	}
	for n, file := range files {
		err := file.write(func(w *bufio.Writer) error {
			return npy.Write(w, out[n])
		})
		if err != nil {
			return err
		}
		r.Outputs = append(r.Outputs, file.name)
		d := out[n].Shape.DType
		if d == hlo.BF16 || d.IsFloat() && d.Size() == 1 {
			r.Notes = append(
				r.Notes, fmt.Sprintf("%s holds the bits of %s as unsigned integers", file.name, d),
			)
		}
	}
	return nil
}

// print prints the result for people.
func (r *runJSON) print(c *call) {
	if r.Source != "" {
		fmt.Fprintln(c.out, r.Source)
	}
	fmt.Fprintf(c.out, "%s on %s, plan %s\n", r.Fusion, r.Device, r.Plan)
	if r.Untimed {
		fmt.Fprintln(c.out, "it ran; the device times nothing")
	} else {
		fmt.Fprintf(
			c.out, "best of %d runs: %s\n",
			len(r.Times),
			report.Seconds(slices.Min(r.Times)),
		)
	}
	fmt.Fprint(c.out, r.counted)
	if r.Checked {
		fmt.Fprintf(c.out, "agrees with the reference (within %.2g of the largest element)\n", r.Allowed)
	}
	for _, name := range r.Outputs {
		fmt.Fprintf(c.out, "wrote %s\n", name)
	}
	for _, note := range r.Notes {
		fmt.Fprintf(c.out, "note: %s\n", note)
	}
}
