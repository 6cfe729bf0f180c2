package gpu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/ptx"
	"github.com/tilewright/tilewright/symtile"
)

// Revision names how code is generated. It is part of every cache key: change
// it whenever what a plan does or how fast it is changes.
const Revision = "ptx4"

// Backend generates PTX for the device of a session and runs it there.
type Backend struct {
	session *device.Session
	tf32    bool // see AllowTF32
}

// New returns the backend of a device. The session is the backend's from then on.
func New(s *device.Session) *Backend { return &Backend{session: s} }

// AllowTF32 implements kernels.TF32Backend.
func (b *Backend) AllowTF32() { b.tf32 = true }

// Identity names the device.
func (b *Backend) Identity() kernels.Device {
	d := deviceOf(b.session.Spec())
	if b.tf32 {
		d.Revision += kernels.TF32Mark
	}
	return d
}

// Device describes the device; nothing of it is measured here.
func (b *Backend) Device() kernels.Device { return b.Identity() }

// Close releases the device.
func (b *Backend) Close() error { return b.session.Close() }

// Rates of an SM, a clock.
const (
	sharedAClock = 128 // bytes: 32 banks of 4 (CUDA C++ Programming Guide, Shared Memory)
	l2AClock     = 40  // bytes: 5120 for the 128 SMs of a GA100 (NVIDIA A100 Tensor Core GPU Architecture whitepaper)
)

// deviceOf is a sheet as the tuner knows devices.
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
		d.Safe = map[string]string{"driver": s.Driver}
	}
	return d
}

// kernel is a compiled plan.
type kernel struct {
	session *device.Session
	work    *device.Executable
	in, out int // how many arrays
}

// PTX is the text a plan becomes on a device, for people and for checks that
// need none. Plans that cannot run are *kernels.Rejected.
func PTX(p *symtile.Program, plan kernels.Plan, s device.Spec) (string, error) {
	im, err := compile(p, plan, s)
	if err != nil {
		return "", err
	}
	return string(im.module.Text()), nil
}

func compile(
	p *symtile.Program, plan kernels.Plan, s device.Spec,
) (*image, error) {
	reject := func(err error) error {
		return &kernels.Rejected{Plan: plan, Reason: err.Error()}
	}
	k, err := knobsOf(plan, s)
	if err != nil {
		return nil, reject(err)
	}
	for _, x := range append(p.Fusion.ParamShapes(), kernels.OutputShapes(p.Fusion)...) {
		if len(x.Layout.Tiles) > 0 ||
			!x.DType.IsArray() || x.DType.IsComplex() {
			return nil, reject(fmt.Errorf("%s is not an array the GPU backend reads", x))
		}
	}
	q, err := p.At(plan.Tiles)
	if err != nil {
		return nil, reject(err)
	}
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

// imageOf is the kernels of a concrete program, none where there is nothing to do:
// results without elements.
func imageOf(p *symtile.Program, s device.Spec, k knobs) (*image, error) {
	if p.Programs() > 0 {
		return emit(p, s, k)
	}
	for _, x := range kernels.OutputShapes(p.Fusion) {
		if x.Elements() > 0 {
			return nil, unsupported(fmt.Sprintf("no tile program writes %s", x))
		}
	}
	m, err := ptx.NewBuilder(versionOf(p, s.Target)).Module()
	return &image{
		module:  m,
		traffic: func() (Traffic, error) { return Traffic{}, nil },
	}, err
}

// Compile generates the kernel of a plan and has the device assemble it. Plans
// that cannot run are *kernels.Rejected.
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
	return k, err
}

// load has the device assemble an image of a program.
func (b *Backend) load(
	ctx context.Context, p *symtile.Program, im *image,
) (kernels.Kernel, error) {
	k := &kernel{
		session: b.session,
		in:      len(p.Fusion.Params),
		out:     len(kernels.OutputShapes(p.Fusion)),
	}
	k.work = &device.Executable{
		PTX:     string(im.module.Text()),
		Scratch: im.scratch,
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

// fillDevice launches as many blocks as run at once, each of which goes from tile to
// tile: by the driver, or the registers that the assembler gave a thread.
func fillDevice(s *device.Step, l device.Loaded, on device.Spec, tiles int64) {
	switch {
	case l.Registers == 0:
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

// Source is the PTX.
func (k *kernel) Source() string { return k.work.PTX }

// Run copies the arrays to the device, runs the kernel once and copies the
// results back. The time is the device's own, 0 from a simulator.
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

// emptyKernelTime is what is said that a work without launches takes: times are divided by
// each other.
const emptyKernelTime = time.Nanosecond

// Sample times the kernel on copies of sets that stay on the device.
func (k *kernel) Sample(
	ctx context.Context, sets []kernels.Set, n int,
) (kernels.Timing, error) {
	if len(k.work.Steps) == 0 {
		return kernels.Timing{Seconds: emptyKernelTime.Seconds()}, nil
	}
	return k.session.Sample(ctx, k.work, sets, n)
}

// Close unloads the kernel.
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
	return b.load(ctx, p, im)
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
