// Package gpu is the backend for NVIDIA GPUs from sm_80 on. It generates PTX text for
// the plans of a tiled program and estimates their times; package device assembles
// and runs the text on a driver: kernels/cuda for devices, kernels/gpu/simulated for
// the interpreter of kernels/ptx/sim.
//
// A plan becomes one kernel, or two where blocks share a tile (knob splitk). A block
// of threads runs one tile program, or several in a loop (knob persistent). The code
// generator has layers of files, each of which uses those before it only: asm.go
// (registers and instructions), emitter.go (the state of an emission), index.go,
// value.go, memory.go and loop.go; element.go and array_access.go (elements of ops);
// dot*.go, reduce*.go, pipeline.go and ring.go (accumulators and their loops);
// staging.go and emit.go (steps and kernels).
package gpu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/ptx"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Revision names how code is generated. It is part of every cache key: change
// it whenever what a plan does or how fast it is changes.
const Revision = "ptx21"

// A Backend generates PTX for the device of a session and runs it there. It implements
// kernels.Backend, kernels.TF32Backend and kernels.SampleObserver.
type Backend struct {
	// Session is owned by the backend, which closes it.
	session *device.Session
	tf32    bool // see AllowTF32
	// Assemble says what an assembler makes of a text, nil where there is none, and
	// assembler which that is.
	assemble  Assembler
	assembler string

	mu   sync.Mutex // of last
	last lastListing
}

// An Assembler says what a device's kernels take, of the text of a module.
type Assembler func(ctx context.Context, text string) (Assembly, error)

// An Assembly is what an assembler made of a module: the most of its kernels.
type Assembly struct {
	// Registers of a thread; the bytes that it stores for want of more, and those of its
	// stack frame.
	Registers, Spilled, Stack int
	// Serialised is set where products of warpgroups wait for each other (C7510 and the
	// like).
	Serialised bool
}

// AssembleBy has the kernels of plans repriced by what an assembler says of them, in the
// place of what their texts let expect. Its name, such as "ptxas 13.0", is safe context:
// with another one winners stay legal, and their predicted times change.
func (b *Backend) AssembleBy(name string, f Assembler) {
	b.assembler, b.assemble = name, f
}

// SheetJSON implements [kernels.SheetBackend].
func (b *Backend) SheetJSON() json.RawMessage {
	s := device.SheetOf(b.session.Spec())
	s.Sources = nil
	text, err := json.Marshal(s)
	if err != nil {
		return nil // numbers of a sheet are finite
	}
	return text
}

// New returns the backend of a device and takes ownership of its session.
func New(s *device.Session) *Backend { return &Backend{session: s} }

// AllowTF32 implements kernels.TF32Backend.
func (b *Backend) AllowTF32() { b.tf32 = true }

// Identity is the device; nothing of it is measured.
func (b *Backend) Identity() kernels.Device {
	d := deviceOf(b.session.Spec())
	if b.tf32 {
		d.Revision += kernels.TF32Mark
	}
	if b.assembler != "" {
		d.Safe = maps.Clone(d.Safe)
		if d.Safe == nil {
			d.Safe = map[string]string{}
		}
		d.Safe["assembler"] = b.assembler
	}
	return d
}

// Device describes the device; nothing of it is measured here.
func (b *Backend) Device() kernels.Device { return b.Identity() }

// Close releases the device.
func (b *Backend) Close() error { return b.session.Close() }

// Bandwidths in bytes an SM and clock.
const (
	// 32 banks of 4 bytes (CUDA C++ Programming Guide, Shared Memory).
	sharedAClock = 128
	// 5120 bytes for the 128 SMs of a GA100 (NVIDIA A100 Tensor Core GPU Architecture
	// whitepaper).
	l2AClock = 40
)

// deviceOf describes a device to the tuner and the cost model.
func deviceOf(s device.Spec) kernels.Device {
	clocks := float64(s.SMs) * s.Clock
	d := kernels.Device{
		Name:     "gpu:" + s.Name,
		Backend:  "gpu",
		Revision: Revision,
		Lanes:    s.SMs,
		FLOPS:    2 * s.Rates.F32 * clocks,
		Matrix: 2 *
			max(s.Rates.BF16, s.Rates.F8, s.Rates.S8) *
			clocks,
		Levels: []kernels.Level{
			{Name: "shared", Bytes: int64(s.SMShared), Bandwidth: sharedAClock * clocks},
			{Name: "L2", Bytes: s.L2, Shared: true, Bandwidth: l2AClock * clocks},
			{Name: "memory", Bytes: s.Memory, Shared: true, Bandwidth: s.Bandwidth},
		},
	}
	if s.Simulated {
		d.Name = "sim:" + s.Name
		d.Untimed = true
	}
	if s.Driver != "" {
		d.Safe = limits(s)
		d.Unread = s.Unread
	}
	return d
}

// limits are what devices of one product may differ in: the driver, the part of the
// device that the system or a MIG slice gives, its highest clock and its power cap.
func limits(s device.Spec) map[string]string {
	safe := map[string]string{
		"driver": s.Driver,
		"SMs":    strconv.Itoa(s.SMs),
		"memory": fmt.Sprintf("%d GiB", s.Memory>>30),
		"clock":  fmt.Sprintf("%.0f MHz", s.Clock/1e6),
	}
	if s.Watts > 0 {
		safe["power"] = fmt.Sprintf("%.0f W", s.Watts)
	}
	if s.Slice != "" {
		safe["slice"] = "MIG " + s.Slice
	}
	return safe
}

// A kernel is a compiled plan; it implements kernels.OutputReader and
// kernels.Deterministic.
type kernel struct {
	session *device.Session
	work    *device.Executable
	// The numbers of parameters and of outputs.
	in, out int
	// Price is that of the plan with what the code takes; nil where no plan is known.
	price func(*kernels.Price) error
}

// PTX is the text of a plan for a device, which does not have to be present. A plan
// that cannot run is a *kernels.Rejected.
func PTX(p *symtile.Program, plan kernels.Plan, s device.Spec) (string, error) {
	im, err := compile(p, plan, s)
	if err != nil {
		return "", err
	}
	return string(im.module.Text()), nil
}

// Touches are the accesses of global memory of a plan's last kernel, in the order of the
// code. It is an error for kernels whose addresses depend on data, or whose blocks share
// loops.
func Touches(p *symtile.Program, plan kernels.Plan, s device.Spec) ([]Touch, error) {
	im, err := compile(p, plan, s)
	if err != nil {
		return nil, err
	}
	return im.touches()
}

// compile generates the kernels of a plan and checks what can be known without
// assembling them: knobs, layouts, the size of the grid, scratch and shared memory.
func compile(
	p *symtile.Program, plan kernels.Plan, s device.Spec,
) (*image, error) {
	reject := func(err error) error {
		return &kernels.Rejected{
			Plan:   plan,
			Reason: err.Error(),
		}
	}
	k, err := knobsOf(plan, s)
	if err != nil {
		return nil, reject(err)
	}
	if err := computable(p); err != nil {
		return nil, err
	}
	q, err := p.At(plan.Tiles)
	if err != nil {
		return nil, reject(err)
	}
	if k.online > 0 {
		if q, err = onlineProgram(q); err != nil {
			return nil, reject(err)
		}
	}
	// The limit of a grid along x.
	if n := q.Programs(); n > 1<<31-1 {
		return nil, reject(fmt.Errorf("%d tile programs do not fit a grid", n))
	}
	im, err := imageOf(q, s, k)
	if r, ok := err.(unsupported); ok {
		return nil, reject(r)
	}
	if err != nil {
		return nil, err
	}
	if err := scratchFits(im.scratch, s); err != nil {
		return nil, reject(err)
	}
	for _, step := range im.steps {
		if step.SharedBytes > s.BlockShared {
			return nil, reject(fmt.Errorf("a tile program needs %d bytes of shared memory; %s has %d", step.SharedBytes, s.Target, s.BlockShared))
		}
	}
	return im, nil
}

// computable refuses programs for which there is no code, whatever the plan.
func computable(p *symtile.Program) error {
	for _, op := range p.Ops {
		if op.Code == hlo.OpScatter {
			return &kernels.Uncomputed{Instr: op.Instr, Reason: op.Code.Not(hlo.GPU)}
		}
	}
	return readable(p.Physical)
}

// readable refuses parameters and results that are no arrays of numbers in plain
// layouts.
func readable(c *hlo.Computation) error {
	for _, i := range append(slices.Clone(c.Params), c.Root) {
		for _, x := range i.Shape.Arrays() {
			if len(x.Layout.Tiles) > 0 ||
				!x.DType.IsArray() || x.DType.IsComplex() {
				return &kernels.Uncomputed{
					Instr:  i,
					Reason: fmt.Sprintf("%s is not an array the GPU backend reads", x),
				}
			}
		}
	}
	return nil
}

// imageOf generates the kernels of a concrete program. There are none where all
// results are empty.
func imageOf(p *symtile.Program, s device.Spec, k knobs) (*image, error) {
	if p.Programs() > 0 {
		return emit(p, s, k)
	}
	for _, x := range kernels.OutputShapes(p.Physical) {
		if x.Elements() > 0 {
			return nil, unsupported(fmt.Sprintf("no tile program writes %s", x))
		}
	}
	m, err := ptx.NewBuilder(versionOf(p, s.Target, false)).Module()
	return &image{
		module:  m,
		traffic: func() (Traffic, error) { return Traffic{}, nil },
		touches: func() ([]Touch, error) { return nil, nil },
	}, err
}

// Compile generates the kernels of a plan and assembles them on the device. A plan
// that cannot run is a *kernels.Rejected.
func (b *Backend) Compile(
	ctx context.Context, p *symtile.Program, plan kernels.Plan,
) (kernels.Kernel, error) {
	im, err := compile(p, plan, b.session.Spec())
	if err != nil {
		return nil, err
	}
	k, err := b.load(ctx, p, im)
	if errors.Is(err, device.ErrNotResident) {
		return nil, &kernels.Rejected{
			Plan:   plan,
			Reason: err.Error(),
		}
	}
	if err != nil {
		return nil, err
	}
	known, err := b.knownOf(ctx, im)
	if err != nil {
		return nil, errors.Join(err, k.Close())
	}
	k.price = func(price *kernels.Price) error {
		m, err := newEstimate(p, b.session.Spec())
		if err != nil {
			return err
		}
		m.known = known
		return m.Price(plan, price)
	}
	return k, nil
}

// knownOf is what the kernel of an image takes, by the assembler where there is one; nil
// where the plan has several.
func (b *Backend) knownOf(ctx context.Context, im *image) (*Resources, error) {
	all := im.resources(b.session.Spec())
	if len(all) != 1 {
		return nil, nil
	}
	r := &all[0]
	if b.assemble == nil {
		return r, nil
	}
	a, err := b.assemble(ctx, string(im.module.Text()))
	if err != nil {
		return nil, err
	}
	r.Registers, r.Spilled = a.Registers, max(a.Spilled, a.Stack)
	r.Spills = r.Spilled > 0
	r.Serialised = a.Serialised
	return r, nil
}

// Reprice implements kernels.RepricedKernel: occupancy and spills are those of the code,
// where the plan is one kernel.
func (k *kernel) Reprice(price *kernels.Price) error {
	if k.price == nil {
		return nil
	}
	return k.price(price)
}

// load assembles an image on the device.
func (b *Backend) load(
	ctx context.Context, p *symtile.Program, im *image,
) (*kernel, error) {
	k := &kernel{
		session: b.session,
		in:      len(p.Physical.Params),
		out:     len(kernels.OutputShapes(p.Physical)),
	}
	k.work = &device.Executable{
		PTX:     string(im.module.Text()),
		Scratch: im.scratch,
		Zeroed:  im.zeroed,
		Steps:   im.steps,
	}
	takes, err := b.session.Load(ctx, k.work)
	if errors.Is(err, device.ErrNotResident) {
		return nil, errors.Join(err, k.Close())
	}
	if err != nil {
		return nil, err
	}
	if im.tiles > 0 {
		fillDevice(
			&k.work.Steps[0], takes[0],
			b.session.Spec(), im.tiles,
		)
	}
	return k, nil
}

// fillDevice sets the grid of a persistent kernel to as many blocks as the device
// holds at the same time, by the driver's answer for clusters or else by the registers
// that the assembler has assigned.
func fillDevice(s *device.Step, l device.Loaded, on device.Spec, tiles int64) {
	switch {
	case l.Registers == 0:
	// The driver knows which clusters fit its GPCs; otherwise the spec's occupancy
	// applies.
	case l.Clusters > 0:
		s.Grid.X = int(
			min(tiles, int64(l.Clusters*s.Cluster.X)),
		)
	default:
		s.Grid.X = int(on.ResidentBlocks(
			l.Registers, s.SharedBytes+l.SharedBytes,
			s.Block.Count(), 1, tiles,
		))
	}
}

// Source is the PTX text.
func (k *kernel) Source() string { return k.work.PTX }

// Run copies the arrays to the device, runs the kernels once and copies the results
// back. The time is the device's own; it is 0 from a simulator.
func (k *kernel) Run(
	ctx context.Context, in, out []kernels.Buffer,
) (time.Duration, error) {
	if len(in) != k.in || len(out) != k.out {
		return 0, fmt.Errorf(
			"%d inputs and %d outputs given, %d and %d needed",
			len(in), len(out),
			k.in, k.out,
		)
	}
	if len(k.work.Steps) == 0 {
		return 0, nil
	}
	return k.session.Run(ctx, k.work, in, out)
}

// emptyKernelTime is the time that is reported for a kernel without launches. It is
// not 0, because times are divided by each other.
const emptyKernelTime = time.Nanosecond

// Sample times the kernel on copies of the sets that stay on the device.
func (k *kernel) Sample(
	ctx context.Context, sets []kernels.Set, n int,
) (kernels.Timing, error) {
	if len(k.work.Steps) == 0 {
		return kernels.Timing{Seconds: emptyKernelTime.Seconds()}, nil
	}
	return k.session.Sample(ctx, k.work, sets, n)
}

// Deterministic is true: no result is added to by atomic operations, and partial
// results of blocks are summed in their order by a kernel of its own.
func (k *kernel) Deterministic() bool { return true }

// ReadOutputs implements kernels.OutputReader.
func (k *kernel) ReadOutputs(ctx context.Context, out []kernels.Buffer) error {
	if len(k.work.Steps) == 0 {
		return nil
	}
	return k.session.ReadOutputs(ctx, out)
}

// Close unloads the kernel from the device.
func (k *kernel) Close() error { return k.session.Unload(k.work) }

// MatrixCeilings times kernels that do nothing but multiply matrices.
func (b *Backend) MatrixCeilings(ctx context.Context) ([]device.Ceiling, error) {
	return b.session.MatrixCeilings(ctx)
}

// Samples lists how samples were taken, and the clock of the SMs in each.
func (b *Backend) Samples() []device.SampleRecord {
	return b.session.Samples()
}

// SampleQuality sums up all samples; it is zero before the first.
func (b *Backend) SampleQuality() kernels.SampleQuality {
	return b.session.SampleQuality()
}

// A Diagnosable is a backend of this package or one that wraps it, as a report on
// the device (tilewright doctor) uses it.
type Diagnosable interface {
	kernels.SampleObserver
	// Samples lists how each sample was taken.
	Samples() []device.SampleRecord
	// MatrixCeilings times kernels that only multiply matrices.
	MatrixCeilings(context.Context) ([]device.Ceiling, error)
	// CompileText assembles the stored text of a program's plan for a target.
	CompileText(
		ctx context.Context, p *symtile.Program, plan kernels.Plan, target, text string,
	) (kernels.Kernel, error)
}

var (
	_ Diagnosable         = (*Backend)(nil)
	_ kernels.TF32Backend = (*Backend)(nil)
)

// CompileText assembles a stored text of PTX, which was emitted from a program and
// a plan for a target (see package golden). The launches are those of the kernels
// that are emitted now, so the text has to be the same. A text that the device
// cannot run is a *kernels.Rejected whose reason is what it needs: "needs sm_90a".
func (b *Backend) CompileText(
	ctx context.Context, p *symtile.Program, plan kernels.Plan, target, text string,
) (kernels.Kernel, error) {
	spec, err := device.ParseSpec(target)
	if err != nil {
		return nil, err
	}
	// The text has no record of its grid, its arguments and its shared memory, so they
	// come from the plan.
	im, err := compile(p, plan, spec)
	if err != nil {
		return nil, fmt.Errorf("nothing says how it is launched: %v", err)
	}
	if string(im.module.Text()) != text {
		return nil, errors.New("nothing says how it is launched: its plan is another text now")
	}
	if needs := im.needs(b.session.Spec()); needs != "" {
		return nil, &kernels.Rejected{
			Plan:   plan,
			Reason: "needs " + needs,
		}
	}
	k, err := b.load(ctx, p, im)
	if err != nil {
		return nil, err
	}
	return k, nil
}

// needs is what the image takes that a device does not have; "" if it runs there.
func (im *image) needs(s device.Spec) string {
	if !device.PTXTarget(s).Runs(im.module.Target) {
		return im.module.Target.String()
	}
	for _, step := range im.steps {
		if step.SharedBytes > s.BlockShared {
			return fmt.Sprintf("%d bytes of shared memory", step.SharedBytes)
		}
	}
	return ""
}

// The price of a plan is the estimate of its kernel (estimate.go): the seconds
// that memory, the arithmetic units, the tensor cores, shared memory and the L2 cache
// take for all blocks, of which the longest counts, and the time that blocks wait. An
// estimate is a kernels.Pricer.

// Pricer prices the plans of a program on the device of the session.
func (b *Backend) Pricer(p *symtile.Program) (kernels.Pricer, error) {
	return NewPricer(p, b.session.Spec())
}

// NewPricer prices the plans of a program for a device that need not be present.
func NewPricer(p *symtile.Program, s device.Spec) (kernels.Pricer, error) {
	m, err := newEstimate(p, s)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Terms implements kernels.Pricer.
func (m *estimate) Terms() kernels.PriceTerms {
	return kernels.PriceTerms{
		Names:       priceTerms[:],
		Overlapping: overlappingTerms,
		Hidden:      hiddenShare,
		Tie:         tie,
	}
}

// Price implements kernels.Pricer. The lanes of a plan are the SMs that have a block, and
// its scratch is the shared memory of a block. A plan whose knobs the device does not have
// is an error; one that needs more registers or shared memory than there are takes
// infinitely long.
func (m *estimate) Price(plan kernels.Plan, price *kernels.Price) error {
	if err := m.p.Check(plan.Tiles); err != nil {
		return err
	}
	k, err := knobsOf(plan, m.spec)
	if err != nil {
		return err
	}
	programs := m.set(plan.Tiles)
	c := m.candidate(plan.Tiles, programs, k)
	copy(price.Seconds, c.terms[:])
	price.Lanes = min(
		programs, float64(max(1, m.spec.SMs)),
	)
	price.Scratch = c.shared
	return nil
}

// Resources are what a thread and a block of a kernel take.
type Resources struct {
	// Registers of a thread, and bytes of shared memory and threads of a block.
	Registers, Shared, Threads int
	// Spills is set where a thread is short of registers by the estimate, and Spilled is
	// the bytes that it stores for that, where they are known.
	Spills  bool
	Spilled int `json:",omitempty"`
	// Serialised is set where products of warpgroups wait for each other, as an assembler
	// says.
	Serialised bool `json:",omitempty"`
}

// resourcesOf is what a launch of an entry takes, by its text: registers as ptxas is
// likely to assign them, and shared memory as it is.
func resourcesOf(m *ptx.Module, e *ptx.Entry, step *device.Step, s device.Spec) Resources {
	r := Resources{Shared: step.SharedBytes, Threads: step.Block.Count()}
	for _, all := range [][]ptx.Var{m.Vars, e.Vars} {
		for i := range all {
			if v := &all[i]; v.Space == ptx.ModShared && v.Linkage != ptx.Extern {
				r.Shared += v.Bytes()
			}
		}
	}
	r.Registers, r.Spilled = s.AssignedRegisters(e, r.Threads)
	r.Spills = r.Spilled > 0
	return r
}

// askForBlocks has the assembler keep the blocks an SM that the plan is priced with.
func (im *image) askForBlocks(s device.Spec) {
	for i := range im.steps {
		step := &im.steps[i]
		for k := range im.module.Entries {
			if e := &im.module.Entries[k]; e.Name == step.Entry {
				e.MinNCTAPerSM = max(e.MinNCTAPerSM, s.PromisedBlocks(e, step.SharedBytes, step.Block.Count()))
			}
		}
	}
}

// resources are those of the image's launches.
func (im *image) resources(s device.Spec) (all []Resources) {
	for i := range im.steps {
		step := &im.steps[i]
		for k := range im.module.Entries {
			if e := &im.module.Entries[k]; e.Name == step.Entry {
				all = append(all, resourcesOf(im.module, e, step, s))
			}
		}
	}
	return all
}

// A Footprint is the kernels of a plan with what is known of them without assembling
// them, to be compared with what an assembler says.
type Footprint struct {
	PTX string
	// Estimated is what the first kernel takes by its text, and Priced by the walk of the
	// tiling that the price is found by, before there is a text.
	Estimated, Priced Resources
	// Launched is the shared memory and the threads that each kernel is launched with;
	// registers are the assembler's to choose.
	Launched []Resources
}

// FootprintOf emits the kernels of a plan, as [PTX] does, and estimates their resources.
func FootprintOf(p *symtile.Program, plan kernels.Plan, s device.Spec) (Footprint, error) {
	im, err := compile(p, plan, s)
	if err != nil {
		return Footprint{}, err
	}
	f := Footprint{PTX: string(im.module.Text())}
	for _, step := range im.steps {
		f.Launched = append(f.Launched, Resources{
			Shared:  step.SharedBytes,
			Threads: step.Block.Count(),
		})
	}
	m, err := newEstimate(p, s)
	if err != nil {
		return f, err
	}
	k, err := knobsOf(plan, s)
	if err != nil {
		return f, err
	}
	c := m.candidate(plan.Tiles, m.set(plan.Tiles), k)
	f.Priced = m.resources(c)
	if all := im.resources(s); len(all) > 0 {
		f.Estimated = all[0]
	}
	return f, nil
}
