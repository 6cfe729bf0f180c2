package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cmd/tilewright/internal/output"
	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/npy"
	"github.com/tilewright/tilewright/kernels/ptx/sim"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/partition"
	"github.com/tilewright/tilewright/tuner"
	"github.com/tilewright/tilewright/tuner/report"
)

// runCommand runs one plan.
var runCommand = command{
	name: "run", args: "FILE", short: "execute one plan, or a whole module; NumPy files in and out",
	long: `Compiles and runs one plan of a fusion and checks the result against the reference interpreter.

  tilewright run softmax.hlo -tiling 8,512,512,512 -args x.npy -out y.npy
  tilewright run model.mlir -db tilewright.db -args inputs/ -out outputs/

A module of several operations or fusions is executed whole, unless -fusion chooses one: each fusion by
its winner in -db or else its default plan, what cannot be tiled by the reference. Arrays are used again
when nothing reads them any more. It is checked against the reference too, which takes long for a large
model; -check=false leaves that out. Of a file of several modules each is run; with -args, -out and
what chooses a fusion or a plan one has to be named, FILE#2. Of several values of -shape each is run; with
-args or -out it takes one.

-args takes one .npy file per parameter, in order, separated by commas, or a folder of 0.npy, 1.npy, …;
without it inputs are made from -seed. -out takes one per output, or a folder. bf16 arrays travel as uint16
and f8 ones as uint8, the bits, since NumPy has no such types. Without -tiling or -plan the winner in
-db or else the default plan runs.`,
	run: runRun,
}

// runFlags are the flags of run.
type runFlags struct {
	// The call, which knows the files that are named.
	call    *call
	device  deviceFlags
	backend kernels.Backend // of device
	// The fusion, the plan and the NumPy files.
	fusion, tiling, plan, args, out *string
	// The database of the winners of a module's fusions.
	db *string
	// The names of parameters that are weights.
	weightsOf *string
	// Compare the outputs of a module with the reference's.
	check *bool
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
	// Name of the fusion, and the operation and the line of the user's program that it comes
	// from.
	Fusion string `json:"fusion"`
	From   string `json:"from,omitempty"`
	// Stable name of the device.
	Device string `json:"device"`
	// Plan that ran, and the names of its dimensions.
	Plan string            `json:"plan"`
	Dims kernels.PlanNames `json:"dims,omitempty"`
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
	unchecked bool // by -check=false
	// The counters as text.
	counted string
}

// runRun compiles one plan of a fusion, runs it and checks its results.
func runRun(c *call) error {
	c.jsonFlag()
	f := runFlags{
		call:      c,
		device:    c.deviceFlag(),
		fusion:    c.String("fusion", "", "run the fusion of this `name`, when FILE has several"),
		tiling:    c.String("tiling", "", "tile `sizes`, e.g. 64,32,16"),
		plan:      c.String("plan", "", "a whole `plan`, e.g. \"m=64 n=32 k=16 threads=2\" or \"64,32,16 threads=2\""),
		args:      c.String("args", "", "input `files`, e.g. a.npy,b.npy"),
		out:       c.String("out", "", "output `files`"),
		seed:      c.Int64("seed", 1, "`seed` of inputs that are not given"),
		repeat:    c.Int("repeat", 5, "run this many `times`"),
		db:        c.String("db", "", "take the plans of a module's fusions from this cache `file`"),
		weightsOf: c.String("weights-of", "", "pack parameters of a module whose names match this regular `expression` once, as constants, where -db says that it pays"),
		check:     c.Bool("check", true, "compare the results with the reference"),
		source:    c.Bool("source", false, "show the tile program that runs"),
		counters:  c.Bool("counters", false, "show what a simulator counted: instructions, memory traffic, barriers"),
		replace:   c.replaceFlag(),
	}
	c.shapeFlag()
	args, err := c.parse(1, 1)
	if err != nil {
		return err
	}
	// Files have the extents of one value, and would be overwritten by those of another.
	if c.shapes.count() > 1 && *f.args+*f.out != "" {
		return usagef("-args and -out take one value of -shape")
	}
	// A flag that does nothing would be taken for one that found nothing to pack.
	ofKernel := *f.fusion+*f.tiling+*f.plan != "" || *f.source || *f.counters
	if *f.weightsOf != "" && (*f.db == "" || ofKernel) {
		return usagef("-weights-of needs -db and a whole module: no -fusion, -tiling, -plan, -source or -counters")
	}
	if *f.repeat < 1 || *f.repeat > 1e6 {
		return usagef("-repeat %d is not between 1 and a million", *f.repeat)
	}
	for _, out := range f.outputs(0) {
		if err := out.Check(); err != nil {
			return err
		}
	}
	if f.backend, err = c.open(f.device); err != nil {
		return err
	}
	one := *f.fusion+*f.tiling+*f.plan+*f.args+*f.out != ""
	return c.eachShape(func() error {
		return c.eachModule(args[0], one, func(file string, split *partition.Result) error {
			f.file = file
			return f.any(c, split.Module)
		})
	})
}

// any runs a module: a plan of its one fusion or of the one that is chosen, or all of it.
func (f runFlags) any(c *call, m *hlo.Module) error {
	if err := runnable(m); err != nil && *f.fusion == "" {
		return fmt.Errorf("%s: %w", f.file, err)
	}
	// A module of one fusion is run as a kernel, but for weights: what is packed once is
	// packed before the module runs, and a kernel does nothing before its run.
	if *f.fusion == "" && (*f.weightsOf != "" || !f.isOneKernel(m)) {
		return f.module(c, m)
	}
	fusion, err := oneFusion(f.file, m, *f.fusion)
	if err != nil {
		return err
	}
	result, err := f.run(c.ctx, fusion)
	if err != nil {
		return err
	}
	result.From = m.SourceOf(fusion)
	if c.json {
		return c.printJSON(result)
	}
	result.print(c)
	return nil
}

// runnable is the error of a module of which a parameter is no array, with what would make
// it one.
func runnable(m *hlo.Module) error {
	for _, p := range m.Entry.Params {
		if d := p.Shape.DType; d != hlo.Token && d != hlo.Opaque {
			continue
		}
		why := p.Unknown()
		for _, i := range m.Entry.Instrs {
			if why == "" && slices.Contains(i.Operands, p) {
				why = i.Unknown()
			}
		}
		return fmt.Errorf("parameter %s: %s", p.Name, cmp.Or(why, p.Shape.String()+" is not an array"))
	}
	return nil
}

// isOneKernel reports whether a module is one fusion, unless it has an operation that no
// kernel computes and no kernel is asked for: the reference executes that.
func (f runFlags) isOneKernel(m *hlo.Module) bool {
	if !isOneFusion(m) {
		return false
	}
	_, err := symtile.Analyze(f.call.ctx, m.Fusions()[0])
	var refused *symtile.Untileable
	return !errors.As(err, &refused) || !interpretedOnly(refused) ||
		*f.tiling != "" || *f.plan != "" || *f.source || *f.counters
}

// interpretedOnly reports whether a refusal is for an operation, or one of its types, or a map
// of several operations, that has no code.
func interpretedOnly(why *symtile.Untileable) bool {
	switch why.Rule {
	case "not-in-op-table", "map":
		return true
	}
	of := why.Instr.Operands
	return len(of) > 0 && why.Instr.Op.NotOf(hlo.CPU, of[0].Shape.DType)
}

// run compiles, runs and checks the chosen plan.
func (f runFlags) run(ctx context.Context, c *hlo.Computation) (*runJSON, error) {
	b := f.backend
	p, err := symtile.Analyze(ctx, c)
	if err != nil {
		return nil, err
	}
	plan, err := f.choose(ctx, b, p)
	if err != nil {
		return nil, err
	}
	if err := f.endless(ctx, b, p, plan); err != nil {
		return nil, err
	}
	k, err := b.Compile(ctx, p, plan)
	if err != nil {
		return nil, err
	}
	defer k.Close()
	in, err := f.fusionInputs(ctx, p)
	if err != nil {
		return nil, err
	}
	r := &runJSON{
		Fusion:    c.Name,
		Device:    b.Identity().Name,
		Plan:      plan.String(),
		Dims:      kernels.PlanNamesOf(p),
		tolerance: check.ToleranceFor(c, plan, b.Identity().TF32Allowed()),
	}
	r.Allowed, r.unchecked = r.tolerance.Relative, !*f.check
	if *f.source {
		r.Source = k.Source()
	}
	times := *f.repeat
	if r.Untimed = b.Identity().Untimed; r.Untimed {
		times = 1
	}
	counted, counts := b.(counterSource)
	switch {
	case *f.counters && !counts:
		return nil, usagef("-counters: %s counts nothing; simulators do, see `tilewright devices`", r.Device)
	case *f.counters:
		counted.count()
	}
	out, err := r.measure(ctx, k, p.Physical, in, times)
	if err != nil {
		return nil, err
	}
	if *f.counters {
		all := counted.counters()
		r.Counters, r.counted = newCountersJSON(all), all.String()
	}
	for n, s := range kernels.OutputShapes(c) {
		out[n] = logical(out[n], s)
	}
	return r, r.save(out, f.outputs(len(out)))
}

// longestRun is the predicted time of a run, in seconds, from which on -timeout has to
// allow it.
const longestRun = 60

// endless is an error for a plan that is predicted to run for a minute, unless -timeout
// says how long that may be. Of simulators no time is known.
func (f runFlags) endless(
	ctx context.Context, b kernels.Backend, p *symtile.Program, plan kernels.Plan,
) error {
	if f.call.limit > 0 || b.Identity().Untimed {
		return nil
	}
	pricer, err := kernels.PricerOf(b, p)
	if err != nil {
		return err
	}
	ranked, err := new(cost.Model).Rank(ctx, pricer, []kernels.Plan{plan})
	if err != nil {
		return err
	}
	if run := ranked[0].Seconds; run > longestRun {
		return fmt.Errorf(
			"one run of %s takes about %s by its price, and -repeat asks for %d; with -timeout it runs for as long as that",
			p.Fusion.Name, report.Seconds(run), *f.repeat,
		)
	}
	return nil
}

// arrayFiles are the files of a list of names, or the first n that a folder has,
// 0.npy and so on.
func arrayFiles(list string, n int) []string {
	info, err := os.Stat(list)
	if err != nil || !info.IsDir() {
		return strings.Split(list, ",")
	}
	all := make([]string, n)
	for k := range all {
		all[k] = filepath.Join(list, fmt.Sprintf("%d.npy", k))
	}
	return all
}

// outputs are the n files of -out.
func (f runFlags) outputs(n int) []output.File {
	if *f.out == "" {
		return nil
	}
	var all []output.File
	names := arrayFiles(*f.out, n)
	for k, name := range names {
		file := f.call.output("out", name, output.NumPy, *f.replace)
		file.Others = append(file.Others, names[:k]...) // each output has a file of its own
		if file.Stdout != nil && slices.Contains(names[:k], name) {
			file.Taken = "-out names it twice"
		}
		all = append(all, file)
	}
	return all
}

// choose parses -plan or -tiling, or takes the winner in -db, or the default plan.
func (f runFlags) choose(
	ctx context.Context, b kernels.Backend, p *symtile.Program,
) (kernels.Plan, error) {
	return chosenPlan(*f.tiling, *f.plan, kernels.PlanNamesOf(p), func() (kernels.Plan, error) {
		if *f.db != "" {
			plan, known, err := tuner.Runnable(ctx, cache.Open(*f.db), p.Fusion, b)
			if known || err != nil {
				return plan, err
			}
		}
		return b.Default(ctx, p)
	})
}

// fusionInputs are the inputs of a fusion's kernel. Files hold logical arrays; those
// of parameters in tiled layouts are packed.
func (f runFlags) fusionInputs(ctx context.Context, p *symtile.Program) ([]kernels.Buffer, error) {
	if *f.args == "" {
		return f.inputs(ctx, p.Physical)
	}
	in, err := f.inputs(ctx, p.Fusion)
	for k, b := range in {
		in[k] = inMemory(b, p.Fusion.Params[k].Shape)
	}
	return in, err
}

// inputs reads the NumPy files of -args, or generates inputs from the seed.
func (f runFlags) inputs(ctx context.Context, c *hlo.Computation) ([]kernels.Buffer, error) {
	for _, p := range c.Params {
		if p.Shape.DType == hlo.Tuple {
			return nil, fmt.Errorf(
				"parameter %s of %s is a tuple, %v: run takes arrays; give each of its parts a parameter of its own",
				p.Name, c.Name, p.Shape,
			)
		}
	}
	if *f.args == "" {
		return check.InputsContext(ctx, c, check.Normals, *f.seed)
	}
	files := arrayFiles(*f.args, len(c.Params))
	if len(files) != len(c.Params) {
		return nil, fmt.Errorf(
			"%s has %d parameters, -args has %d files",
			c.Name, len(c.Params), len(files),
		)
	}
	in := make([]kernels.Buffer, len(files))
	for k, name := range files {
		file, err := openInput(name)
		if err != nil {
			return nil, err
		}
		shape := c.Params[k].Shape
		if len(shape.Layout.Tiles) > 0 {
			shape.Layout = hlo.Layout{}
		}
		in[k], err = npy.Read(bufio.NewReader(file), shape)
		file.Close()
		if err != nil {
			return nil, fmt.Errorf("%s, for parameter %s: %w", name, c.Params[k].Name, err)
		}
	}
	return in, nil
}

// measure runs a kernel several times, keeps the times and checks the last
// result, unless it is not to be checked.
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
		d, err := check.Watched(k).Run(ctx, in, out)
		if err != nil {
			return nil, err
		}
		if !r.Untimed {
			r.Times = append(r.Times, d.Seconds())
		}
	}
	if r.unchecked {
		return out, nil
	}
	wrong, err := r.tolerance.Check(ctx, c, in, out)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		r.Notes = append(r.Notes, "not checked: "+err.Error())
	case wrong != nil:
		return nil, fmt.Errorf("plan %s of %s is wrong: %w", r.Dims.Stored(r.Plan), c.Name, wrong)
	default:
		r.Checked = true
	}
	return out, nil
}

// save writes the outputs to NumPy files.
func (r *runJSON) save(out []kernels.Buffer, files []output.File) error {
	if len(files) == 0 {
		return nil
	}
	if len(files) != len(out) {
		return fmt.Errorf("the fusion has %d outputs, -out has %d files", len(out), len(files))
	}
	for n, file := range files {
		err := file.Write(func(w *bufio.Writer) error {
			return npy.Write(w, out[n])
		})
		if err != nil {
			return err
		}
		r.Outputs = append(r.Outputs, file.Name)
		d := out[n].Shape.DType
		if d == hlo.BF16 || d.IsFloat() && d.Size() == 1 {
			r.Notes = append(
				r.Notes, fmt.Sprintf("%s holds the bits of %s as unsigned integers", file.Name, d),
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
	fmt.Fprintf(c.out, "%s on %s, plan %s\n", r.Fusion, r.Device, r.Dims.Stored(r.Plan))
	if r.From != "" {
		fmt.Fprintf(c.out, "from %s\n", r.From)
	}
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

// A counterSource is a backend that counts what its kernels do.
type counterSource interface {
	count()
	counters() sim.Counters
}

// countersJSON are the counters of a simulated run.
type countersJSON struct {
	// Instructions of warps.
	WarpInstructions int64 `json:"warp_instructions"`
	// Instructions of active lanes.
	LaneInstructions int64 `json:"lane_instructions"`
	// Instructions of warps, by class.
	Instructions map[string]int64 `json:"instructions"`
	// Accesses to global and to shared memory.
	GlobalLoad  trafficJSON `json:"global_load"`
	GlobalStore trafficJSON `json:"global_store"`
	SharedLoad  trafficJSON `json:"shared_load"`
	SharedStore trafficJSON `json:"shared_store"`
	// Matrix instructions of warps.
	MMA int64 `json:"mma"`
	// Matrix instructions of warpgroups.
	WGMMA int64 `json:"wgmma"`
	// Floating-point operations of both.
	MatrixFLOPs int64 `json:"matrix_flops"`
	// Barriers of blocks.
	Barriers int64 `json:"barriers"`
	// Atomic operations of lanes.
	Atomics int64 `json:"atomics"`
	// Asynchronous bulk copies.
	BulkCopies int64 `json:"bulk_copies"`
	// Bytes that they moved.
	BulkBytes int64 `json:"bulk_bytes"`
}

// trafficJSON are the accesses of warps to one memory, in sectors of 32 bytes
// of global memory or in wavefronts of shared memory.
type trafficJSON struct {
	// Instructions of warps that access the memory.
	Requests int64 `json:"requests"`
	// Sectors of global memory that they touch.
	Sectors int64 `json:"sectors,omitempty"`
	// Wavefronts of shared memory that they take.
	Wavefronts int64 `json:"wavefronts,omitempty"`
	// The fewest sectors or wavefronts that could have moved the bytes.
	Ideal int64 `json:"ideal"`
	// Bytes that active lanes access.
	Bytes int64 `json:"bytes"`
}

// newCountersJSON converts the counters of the simulator.
func newCountersJSON(c sim.Counters) *countersJSON {
	global := func(t sim.Traffic) trafficJSON {
		return trafficJSON{
			Requests: t.Requests,
			Sectors:  t.Units,
			Ideal:    t.Ideal,
			Bytes:    t.Bytes,
		}
	}
	shared := func(t sim.Traffic) trafficJSON {
		return trafficJSON{
			Requests:   t.Requests,
			Wavefronts: t.Units,
			Ideal:      t.Ideal,
			Bytes:      t.Bytes,
		}
	}
	j := &countersJSON{
		WarpInstructions: c.WarpInstructions, LaneInstructions: c.LaneInstructions,
		Instructions: map[string]int64{},
		GlobalLoad:   global(c.GlobalLoad),
		GlobalStore:  global(c.GlobalStore),
		SharedLoad:   shared(c.SharedLoad),
		SharedStore:  shared(c.SharedStore),
		MMA:          c.MMA, WGMMA: c.WGMMA,
		MatrixFLOPs: c.MatrixFLOPs, Barriers: c.Barriers,
		Atomics:    c.Atomics,
		BulkCopies: c.BulkCopies, BulkBytes: c.BulkBytes,
	}
	for k, n := range c.Instructions {
		if n > 0 {
			j.Instructions[strings.ReplaceAll(sim.Class(k).String(), " ", "_")] = n
		}
	}
	return j
}
