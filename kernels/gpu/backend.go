package gpu

import (
	"context"
	"fmt"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Revision names how code is generated. It is part of every cache key: change
// it whenever what a plan does or how fast it is changes.
const Revision = "ptx1"

// Backend generates PTX for the device of a driver and runs it there.
type Backend struct {
	driver Driver
}

// New returns the backend of a device.
func New(d Driver) *Backend { return &Backend{d} }

// Identity names the device.
func (b *Backend) Identity() kernels.Device { return b.driver.Sheet().device() }

// Device describes the device; nothing of it is measured here.
func (b *Backend) Device() kernels.Device { return b.Identity() }

// device is a sheet as the tuner knows devices.
func (s Sheet) device() kernels.Device {
	d := kernels.Device{
		Name: "gpu:" + s.Name, Backend: "gpu", Revision: Revision, Lanes: s.SMs,
		FLOPS: float64(s.SMs) * 256 * s.Clock, // 128 fused multiply-adds a clock
		Levels: []kernels.Level{
			{Name: "shared", Bytes: int64(s.SMShared)},
			{Name: "L2", Bytes: s.L2, Shared: true},
			{Name: "memory", Bytes: s.Memory, Shared: true, Bandwidth: s.Bandwidth},
		},
	}
	if s.Driver != "" {
		d.Safe = map[string]string{"driver": s.Driver}
	}
	return d
}

// kernel is a compiled plan.
type kernel struct {
	driver   Driver
	image    *image
	module   Module
	function Function
	in, out  []hlo.Shape
}

// PTX is the text a plan becomes on a device, for people and for checks that
// need none. Plans that cannot run are *kernels.Rejected.
func PTX(p *symtile.Program, plan kernels.Plan, s Sheet) (string, error) {
	im, err := compile(p, plan, s)
	if err != nil {
		return "", err
	}
	return string(im.module.Text()), nil
}

func compile(p *symtile.Program, plan kernels.Plan, s Sheet) (*image, error) {
	reject := func(err error) error { return &kernels.Rejected{Plan: plan, Reason: err.Error()} }
	k, err := knobsOf(plan, s)
	if err != nil {
		return nil, reject(err)
	}
	for _, x := range append(shapesOf(p.Fusion.Params), kernels.OutputShapes(p.Fusion)...) {
		if len(x.Layout.Tiles) > 0 || !x.DType.IsArray() || x.DType.IsComplex() {
			return nil, reject(fmt.Errorf("%s is not an array the GPU backend reads", x))
		}
	}
	q, err := p.At(plan.Tiles)
	if err != nil {
		return nil, reject(err)
	}
	if n := q.Programs(); n < 1 || n > 1<<31-1 {
		return nil, reject(fmt.Errorf("%d tile programs do not fit a grid", n))
	}
	im, err := emit(q, s, k)
	if r, ok := err.(refusal); ok {
		return nil, reject(r)
	}
	if err != nil {
		return nil, err
	}
	if im.shared > int64(s.BlockShared) {
		return nil, reject(fmt.Errorf("a tile program needs %d bytes of shared memory; %s has %d", im.shared, s.Target, s.BlockShared))
	}
	return im, nil
}

// Compile generates the kernel of a plan and has the driver assemble it. Plans
// that cannot run are *kernels.Rejected.
func (b *Backend) Compile(ctx context.Context, p *symtile.Program, plan kernels.Plan) (kernels.Kernel, error) {
	im, err := compile(p, plan, b.driver.Sheet())
	if err != nil {
		return nil, err
	}
	m, err := b.driver.Load(ctx, string(im.module.Text()), LoadOptions{})
	if err != nil {
		return nil, err
	}
	f, err := m.Function(im.name)
	if err != nil {
		m.Close()
		return nil, err
	}
	return &kernel{b.driver, im, m, f, shapesOf(p.Fusion.Params), kernels.OutputShapes(p.Fusion)}, nil
}

func shapesOf(params []*hlo.Instr) []hlo.Shape {
	shapes := make([]hlo.Shape, len(params))
	for k, p := range params {
		shapes[k] = p.Shape
	}
	return shapes
}

// Source is the PTX.
func (k *kernel) Source() string { return string(k.image.module.Text()) }

// Run copies the arrays to the device, runs the kernel once and copies the
// results back. The time is the device's own, 0 from a simulator.
func (k *kernel) Run(ctx context.Context, in, out []kernels.Buffer) (time.Duration, error) {
	if len(in) != len(k.in) || len(out) != len(k.out) {
		return 0, fmt.Errorf("%d inputs and %d outputs given, %d and %d needed", len(in), len(out), len(k.in), len(k.out))
	}
	l := Launch{Function: k.function, Grid: Dim3{X: int(k.image.blocks)}, Block: Dim3{X: k.image.threads}, SharedBytes: int(k.image.shared)}
	var places []Address
	defer func() {
		for _, a := range places {
			k.driver.Free(a)
		}
	}()
	for _, b := range append(append([]kernels.Buffer{}, in...), out...) {
		a, err := k.driver.Alloc(max(1, int64(len(b.Data))))
		if err != nil {
			return 0, err
		}
		places = append(places, a)
		l.Args = append(l.Args, AddressArg(a))
		if len(b.Data) > 0 {
			if err := k.driver.CopyIn(a, b.Data); err != nil {
				return 0, err
			}
		}
	}
	took, err := k.launch(ctx, l)
	if err != nil {
		return 0, err
	}
	for n, b := range out {
		if len(b.Data) > 0 {
			if err := k.driver.CopyOut(b.Data, places[len(in)+n]); err != nil {
				return 0, err
			}
		}
	}
	return took, nil
}

func (k *kernel) launch(ctx context.Context, l Launch) (time.Duration, error) {
	start := time.Now()
	if err := k.driver.Launch(ctx, l); err != nil {
		return 0, err
	}
	if err := k.driver.Sync(ctx); err != nil {
		return 0, err
	}
	return time.Since(start), nil
}

// Close unloads the module.
func (k *kernel) Close() error { return k.module.Close() }
