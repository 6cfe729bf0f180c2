// Package simulated is the PTX simulator as a device of the GPU backend.
package simulated

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/ptx"
	"github.com/tilewright/tilewright/kernels/ptx/sim"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A Driver is a simulated device; it implements device.Driver. Whatever the simulator
// finds wrong with a kernel is an error of its launch. Kernels run to their end when
// they are launched, and are not timed.
type Driver struct {
	spec    device.Spec
	machine *sim.Machine
	options sim.Options
	// Last is the report of the latest launch, and counted the sum of the launches
	// since they began.
	last    *sim.Report
	counted sim.Counters // of the launches since they began
	// Synced is set after a Sync: the next launch begins a new count.
	synced bool
}

// Open returns a device with the properties of a spec. What the options do not ask for
// is not checked.
func Open(s device.Spec, o sim.Options) (*Driver, error) {
	number := strings.TrimPrefix(s.Target, "sm_")
	arch := byte(0)
	if n := strings.TrimSuffix(number, "a"); n != number {
		number, arch = n, 'a'
	}
	sm, err := strconv.Atoi(number)
	if err != nil {
		return nil, fmt.Errorf("sim: %q is not a target", s.Target)
	}
	m := sim.New(sim.Sheet{
		Target:             ptx.Target{SM: sm, Arch: arch},
		SMs:                s.SMs,
		SharedPerBlock:     s.BlockShared,
		RegistersPerSM:     s.Registers,
		RegistersPerThread: s.ThreadRegisters,
		ThreadsPerBlock:    s.BlockThreads,
		ThreadsPerSM:       s.Warps * device.WarpThreads,
		BlocksPerCluster:   s.Cluster,
		Memory:             s.Memory,
	})
	s.Simulated = true
	return &Driver{
		spec:    s,
		machine: m,
		options: o,
	}, nil
}

// Spec describes the device.
func (d *Driver) Spec() device.Spec {
	return d.spec
}

// SetClock sets the rate at which the SMs count cycles from now on, in Hz. At first it
// is that of the options.
func (d *Driver) SetClock(hertz float64) {
	d.options.Hertz = hertz
}

// Last is the report of the latest launch, nil before the first.
func (d *Driver) Last() *sim.Report {
	return d.last
}

// Count turns on the counters of launches from now on.
func (d *Driver) Count() {
	d.options.Counters = true
}

// Counters are the sum of the launches before the last Sync.
func (d *Driver) Counters() sim.Counters {
	return d.counted
}

// failed wraps an error of the simulator.
func failed(what string, err error) error {
	if err == nil {
		return nil
	}
	return &device.Error{
		Call: "sim: " + what,
		Text: err.Error(),
		Err:  err,
	}
}

// Load parses, checks and decodes PTX, as strictly as an assembler.
func (d *Driver) Load(
	_ context.Context, text string, _ device.LoadOptions,
) (device.Module, error) {
	m, err := ptx.Parse("kernel.ptx", []byte(text))
	if err == nil {
		err = m.Check()
	}
	if err != nil {
		return nil, failed("load", err)
	}
	p, err := sim.Load(m)
	if err != nil {
		return nil, failed("load", err)
	}
	return &module{m, p}, nil
}

// A module is a checked PTX module.
type module struct {
	text    *ptx.Module
	program *sim.Program
}

// Function finds an entry.
func (m *module) Function(name string) (device.Function, error) {
	for k := range m.text.Entries {
		if e := m.text.Entries[k]; e.Name == name {
			return &function{
				m,
				e.Name,
				device.Resources{MaxThreads: threads(e.ReqNTid, e.MaxNTid)},
			}, nil
		}
	}
	return nil, failed("function", fmt.Errorf("the module has no entry %q", name))
}

// Close does nothing: a module is garbage like any other.
func (*module) Close() error { return nil }

// threads are those of a block by the first directive that is there.
func threads(directives ...[3]int) int {
	for _, d := range directives {
		if d[0] > 0 {
			return d[0] * max(1, d[1]) * max(1, d[2])
		}
	}
	return 0
}

// A function is an entry of a module.
type function struct {
	of        *module
	name      string
	resources device.Resources
}

// Resources are those that the text declares: the simulator assigns no registers.
func (f *function) Resources() device.Resources {
	return f.resources
}

// bytesEach is the host memory for a byte of device memory: its value, and whether it
// was written.
const bytesEach = 2

// Alloc, Free, CopyIn, CopyOut and Fill act on the machine's memory.
func (d *Driver) Alloc(bytes int64) (device.Address, error) {
	if err := kernels.CheckFreeMemory(bytesEach * bytes); err != nil {
		return 0, failed("allocate", err)
	}
	a, err := d.machine.Alloc(bytes)
	return device.Address(a), failed("allocate", err)
}

// Free ends an allocation.
func (d *Driver) Free(a device.Address) error {
	return failed("free", d.machine.Free(uint64(a)))
}

// CopyIn writes device memory.
func (d *Driver) CopyIn(to device.Address, from []byte) error {
	return failed(
		"copy to the device", d.machine.Write(uint64(to), from),
	)
}

// CopyOut reads device memory.
func (d *Driver) CopyOut(to []byte, from device.Address) error {
	return failed(
		"copy from the device", d.machine.Read(uint64(from), to),
	)
}

// Fill sets bytes of device memory.
func (d *Driver) Fill(to device.Address, value byte, bytes int64) error {
	return failed(
		"fill",
		d.machine.Set(uint64(to), value, bytes),
	)
}

// tensorTypes are the element types of bulk tensor copies, by size.
var tensorTypes = map[int64]ptx.Type{
	1: ptx.U8,
	2: ptx.F16,
	4: ptx.F32,
	8: ptx.F64,
}

var swizzles = map[device.Swizzle]sim.Swizzle{
	device.NoSwizzle:  sim.SwizzleNone,
	device.Swizzle32:  sim.Swizzle32,
	device.Swizzle64:  sim.Swizzle64,
	device.Swizzle128: sim.Swizzle128,
}

// EncodeTensorMap describes an array for bulk tensor copies, on targets that have
// them.
func (d *Driver) EncodeTensorMap(s device.TensorMapSpec) (out device.TensorMap, err error) {
	if d.spec.Cluster == 0 {
		return out, failed(
			"tensor map", fmt.Errorf("%s has no bulk tensor copies", d.spec.Target),
		)
	}
	if err := s.Check(); err != nil {
		return out, err
	}
	m := sim.TensorMap{
		Type:    tensorType(s),
		Address: uint64(s.Base),
		Dims:    s.Dims,
		Strides: s.Strides,
		Box:     s.Box,
		Swizzle: swizzles[s.Swizzle],
	}
	code, err := m.Encode()
	copy(out[:], code)
	return out, failed("tensor map", err)
}

// tensorType is the type of the elements of a tensor map: the one of their size, except
// where TF32 makes the copies round them.
func tensorType(s device.TensorMapSpec) ptx.Type {
	switch {
	case s.DType == hlo.BF16:
		return ptx.BF16
	case s.TF32:
		return ptx.TF32
	}
	return tensorTypes[s.DType.Size()]
}

// Clusters is the estimate of the spec.
func (d *Driver) Clusters(l device.Launch) (int, error) {
	if err := d.spec.Check(l); err != nil {
		return 0, err
	}
	return d.spec.Clusters(l), nil
}

// Launch runs a kernel to its end. Findings of the simulator are the error, and are in
// Last.
func (d *Driver) Launch(ctx context.Context, l device.Launch) error {
	if err := d.spec.Check(l); err != nil {
		return err
	}
	f := l.Function.(*function)
	s := sim.Launch{
		Entry:  f.name,
		Grid:   triple(l.Grid),
		Block:  triple(l.Block),
		Shared: l.SharedBytes,

		Dependent: l.Dependent,
	}
	if l.Cluster != (device.Dim3{}) {
		s.Cluster = triple(l.Cluster)
	}
	for _, a := range l.Args {
		s.Args = append(s.Args, a.AppendTo(nil))
	}
	r, err := d.machine.Launch(
		ctx, f.of.program, s, d.options,
	)
	if err != nil {
		return failed("launch", err)
	}
	d.last = r
	if d.synced {
		d.counted = sim.Counters{}
		d.synced = false
	}
	d.counted.Add(&r.Counters)
	return failed("launch", r.Err())
}

// triple is d with 1 in place of 0.
func triple(d device.Dim3) [3]int {
	d = d.Full()
	return [3]int{d.X, d.Y, d.Z}
}

// Sync has nothing to wait for: a launch returns when its kernel has ended. It
// ends a group of launches that are counted together.
func (d *Driver) Sync(ctx context.Context) error {
	d.synced = true
	return ctx.Err()
}

// Time is device.ErrUntimed: the time that a simulator takes says nothing about
// a GPU.
func (d *Driver) Time(
	context.Context, device.Burst, int,
) ([]float64, error) {
	return nil, device.ErrUntimed
}

// Close frees the simulated memory.
func (d *Driver) Close() error {
	d.machine = sim.New(sim.Sheet{})
	return nil
}

var _ device.Driver = (*Driver)(nil)
