//go:build cuda && cgo && linux

// Package cuda drives NVIDIA GPUs through gorgonia.org/cu. It is built with
// the tag cuda, against an installed toolkit or, with `make cuda`, against the
// header and the functions in dlopen, which need neither toolkit nor driver.
package cuda

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/tilewright/tilewright/kernels/gpu/device"
)

// A Driver is one GPU. All calls of the CUDA driver are made by one goroutine on
// one locked thread, to which the GPU's context belongs; the methods send
// closures to it. Methods may be called by one goroutine at a time.
type Driver struct {
	// spec is what the GPU is and has, read once.
	spec   device.Spec
	device cu.Device
	// stream is the one stream on which everything is queued.
	stream cu.Stream
	// staging is pinned memory for large copies; nil if the system gives none.
	staging *staging
	// calls carries closures to the driver's thread.
	calls chan func()
	// memory holds the allocations that Close releases.
	memory map[cu.DevicePtr]bool
	// modules holds the loaded modules that Close unloads.
	modules map[*module]bool
	// lost is the reason for which nothing can be called any more.
	lost error
}

// Count is the number of GPUs. If it is 0, the error is the reason: no driver, a
// driver that does not start, or a driver without a device.
func Count() (int, error) {
	if why := absence(); why != "" {
		return 0, errors.New(why)
	}
	n, err := cu.NumDevices()
	if err != nil {
		return 0, failed("cuDeviceGetCount", err)
	}
	if n == 0 {
		return 0, errors.New("the NVIDIA driver sees no GPU (CUDA_VISIBLE_DEVICES may hide it)")
	}
	return n, nil
}

// Open starts using GPU number ordinal, from 0. The caller must Close it.
func Open(ordinal int) (*Driver, error) {
	n, err := Count()
	if err != nil {
		return nil, err
	}
	if ordinal < 0 || ordinal >= n {
		return nil, fmt.Errorf("no GPU %d; there are %d, counted from 0", ordinal, n)
	}
	d := &Driver{
		calls:   make(chan func()),
		memory:  map[cu.DevicePtr]bool{},
		modules: map[*module]bool{},
	}
	go d.serve()
	if err := d.call(context.Background(), func() error {
		return d.open(ordinal)
	}); err != nil {
		close(d.calls)
		return nil, err
	}
	return d, nil
}

// serve runs calls on one thread until there are no more.
func (d *Driver) serve() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for f := range d.calls {
		f()
	}
}

// call runs f on the driver's thread. If ctx ends first, the driver is lost: the
// thread may never return from the call.
func (d *Driver) call(ctx context.Context, f func() error) error {
	if d.lost != nil {
		return d.lost
	}
	// The channel has room for the result, so that the thread does not block if
	// nobody waits any more.
	done := make(chan error, 1)
	select {
	case d.calls <- func() { done <- f() }:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-done:
		return d.note(err)
	case <-ctx.Done():
		return d.note(overdue("the driver", ctx.Err()))
	}
}

// overdue is the error of a call that did not end before its context.
func overdue(what string, cause error) error {
	return &device.Error{
		Call:   what,
		Text:   "still running when its time was over: " + cause.Error(),
		Sticky: true,
		Err:    cause,
	}
}

// note remembers an error after which the context is unusable.
func (d *Driver) note(err error) error {
	if device.IsSticky(err) && d.lost == nil {
		d.lost = err
	}
	return err
}

// open retains the context and makes the stream. It runs on the driver's thread.
func (d *Driver) open(ordinal int) (err error) {
	if d.device, err = cu.GetDevice(ordinal); err != nil {
		return failed("cuDeviceGet", err)
	}
	primary, err := d.device.RetainPrimaryCtx()
	if err != nil {
		return failed("cuDevicePrimaryCtxRetain", err)
	}
	// The context belongs to this thread from here on.
	if err = cu.SetCurrentContext(primary); err != nil {
		err = failed("cuCtxSetCurrent", err)
	} else if d.stream, err = cu.MakeStream(cu.DefaultStream); err != nil {
		err = failed("cuStreamCreate", err)
	} else if d.spec, err = readSpec(d.device); err != nil {
		d.stream.Destroy()
	} else {
		d.staging = newStaging()
	}
	if err != nil {
		d.device.ReleasePrimaryCtx()
	}
	return err
}

// Spec is the properties that the driver reports for the GPU.
func (d *Driver) Spec() device.Spec { return d.spec }

// module is PTX text that the driver has assembled.
type module struct {
	d *Driver
	m cu.Module
	// warning is what the assembler said beside resources.
	warning string
	// functions holds the functions that were looked up.
	functions map[string]*function
}

// function is an entry of a module.
type function struct {
	f cu.Function
	// resources are the registers and the memory that the assembler assigned.
	resources device.Resources
	// allowed is the number of bytes of dynamic shared memory that the driver
	// permits launches to use.
	allowed int
}

// logBytes is the size of the buffer for the messages of the assembler.
const logBytes = 16 << 10

// Load assembles PTX text by the driver. An error carries the messages of the
// assembler.
func (d *Driver) Load(
	ctx context.Context, ptx string, o device.LoadOptions,
) (device.Module, error) {
	m := &module{
		d:         d,
		functions: map[string]*function{},
	}
	err := d.call(ctx, func() (err error) {
		log := &cu.JITErrorLogBuffer{Buffer: make([]byte, logBytes)}
		said := &cu.JITInfoLogBuffer{Buffer: make([]byte, logBytes)}
		options := []cu.JITOption{log, said}
		if o.MaxRegisters > 0 {
			options = append(options, &cu.JITMaxRegisters{
				Value: uint(o.MaxRegisters),
			})
		}
		m.m, err = cu.LoadDataEx(ptx, options...)
		// cu gives the driver the address of the buffer as a number, which the
		// garbage collector does not see.
		runtime.KeepAlive(options)
		if err = failed("cuModuleLoadDataEx", err); err != nil {
			return withLog(err, log.Buffer)
		}
		m.warning = device.AssemblerWarnings(cString(said.Buffer))
		d.modules[m] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// cString is the text of a C string in a buffer.
func cString(buffer []byte) string {
	text, _, _ := bytes.Cut(buffer, []byte{0})
	return string(bytes.TrimSpace(text))
}

// withLog adds the C string in a buffer to an error.
func withLog(err error, buffer []byte) error {
	var e *device.Error
	if errors.As(err, &e) {
		e.Log = cString(buffer)
	}
	return err
}

// Function looks an entry up by its name.
func (m *module) Function(name string) (device.Function, error) {
	if f := m.functions[name]; f != nil {
		return f, nil
	}
	f := &function{}
	err := m.d.call(context.Background(), func() (err error) {
		if f.f, err = m.m.Function(name); err != nil {
			return failed("cuModuleGetFunction "+name, err)
		}
		f.resources, err = resources(f.f, m.d.spec)
		f.resources.Warning = m.warning
		return err
	})
	if err != nil {
		return nil, err
	}
	m.functions[name] = f
	return f, nil
}

// resources reads the registers and the memory of a function.
func resources(f cu.Function, s device.Spec) (device.Resources, error) {
	var r device.Resources
	err := readAll([]reading[cu.FunctionAttribute]{
		{cu.NumRegs, &r.Registers}, {cu.LocalSizeBytes, &r.LocalBytes},
		{cu.SharedSizeBytes, &r.SharedBytes}, {cu.FnMaxThreadsPerBlock, &r.MaxThreads},
	}, "cuFuncGetAttribute", f.Attribute)
	r.SharedBytes = s.OwnShared(r.SharedBytes)
	return r, err
}

// Close unloads the module.
func (m *module) Close() error {
	return m.d.call(context.Background(), func() error {
		if !m.d.modules[m] {
			return nil
		}
		delete(m.d.modules, m)
		return failed("cuModuleUnload", m.m.Unload())
	})
}

// Resources are the registers and the memory that the assembler assigned.
func (f *function) Resources() device.Resources { return f.resources }

// Alloc allocates memory of the GPU.
func (d *Driver) Alloc(n int64) (device.Address, error) {
	if n <= 0 {
		return 0, fmt.Errorf("allocation of %d bytes", n)
	}
	var p cu.DevicePtr
	err := d.call(context.Background(), func() (err error) {
		if p, err = cu.MemAlloc(n); err != nil {
			return failed(fmt.Sprintf("cuMemAlloc of %d bytes", n), err)
		}
		d.memory[p] = true
		return nil
	})
	return device.Address(p), err
}

// Free releases memory that Alloc returned.
func (d *Driver) Free(a device.Address) error {
	return d.call(context.Background(), func() error {
		p := cu.DevicePtr(a)
		if !d.memory[p] {
			return fmt.Errorf("free of %#x, which is not allocated", uint64(a))
		}
		delete(d.memory, p)
		return failed("cuMemFree", cu.MemFree(p))
	})
}

// CopyIn waits for the work in the stream, then copies to the GPU.
func (d *Driver) CopyIn(to device.Address, from []byte) error {
	if len(from) == 0 {
		return nil
	}
	return d.call(context.Background(), func() error {
		if d.staging.takes(len(from)) {
			return d.copyIn(to, from)
		}
		return failed(
			"cuMemcpyHtoD",
			cu.MemcpyHtoD(
				cu.DevicePtr(to),
				unsafe.Pointer(&from[0]),
				int64(len(from)),
			),
		)
	})
}

// CopyOut waits for the work in the stream, then copies from the GPU.
func (d *Driver) CopyOut(to []byte, from device.Address) error {
	if len(to) == 0 {
		return nil
	}
	return d.call(context.Background(), func() error {
		if d.staging.takes(len(to)) {
			return d.copyOut(to, from)
		}
		return failed(
			"cuMemcpyDtoH",
			cu.MemcpyDtoH(
				unsafe.Pointer(&to[0]),
				cu.DevicePtr(from),
				int64(len(to)),
			),
		)
	})
}

// Fill sets bytes of memory, in the order of the stream.
func (d *Driver) Fill(to device.Address, value byte, n int64) error {
	if n == 0 {
		return nil
	}
	return d.call(context.Background(), func() error {
		return failed(
			"cuMemsetD8Async",
			cu.MemsetD8Async(cu.DevicePtr(to), value, n, d.stream),
		)
	})
}

// EncodeTensorMap encodes a tensor map, which needs no time of the GPU.
func (d *Driver) EncodeTensorMap(spec device.TensorMapSpec) (m device.TensorMap, err error) {
	if err := spec.Check(); err != nil {
		return m, err
	}
	if !d.spec.Warpgroups() {
		return m, fmt.Errorf("tensor map: %s has no bulk tensor copies", d.spec.Target)
	}
	err = d.call(context.Background(), func() (err error) {
		m, err = encodeTiled(spec)
		return err
	})
	return m, err
}

// Clusters is the number of clusters of a launch that the GPU holds at once, by
// the occupancy calculator of the driver.
func (d *Driver) Clusters(l device.Launch) (n int, err error) {
	if err := d.spec.Check(l); err != nil {
		return 0, err
	}
	err = d.call(context.Background(), func() error {
		f, err := opened(l)
		if err == nil {
			n, err = clusters(f.f, l)
		}
		return err
	})
	return n, err
}

// opened is the function of a launch, with permission for the shared memory that
// the launch uses.
func opened(l device.Launch) (*function, error) {
	f, ours := l.Function.(*function)
	if !ours {
		return nil, fmt.Errorf("launch: a function of another driver")
	}
	need := l.SharedBytes
	if need+f.resources.SharedBytes > device.StaticShared &&
		need > f.allowed {
		if err := allowShared(f.f, need); err != nil {
			return nil, err
		}
		f.allowed = need
	}
	return f, nil
}

// Launch queues a kernel on the driver's one stream.
func (d *Driver) Launch(ctx context.Context, l device.Launch) error {
	if err := d.spec.Check(l); err != nil {
		return err
	}
	return d.call(ctx, func() error {
		return d.launch(l)
	})
}

// launch queues a kernel. It runs on the driver's thread.
func (d *Driver) launch(l device.Launch) error {
	f, err := opened(l)
	if err != nil {
		return err
	}
	// cu launches kernels without clusters whose arguments have at most 8
	// bytes, each after the one before.
	plain := l.Cluster == device.Dim3{} && !l.Dependent
	for _, a := range l.Args {
		plain = plain && a.Size() <= 8
	}
	if !plain {
		return launchAny(f.f, l, d.stream)
	}
	g := l.Grid.Full()
	b := l.Block.Full()
	return failed(
		"cuLaunchKernel",
		f.f.Launch(
			g.X, g.Y, g.Z,
			b.X, b.Y, b.Z,
			l.SharedBytes, d.stream, cellsOf(l.Args),
		),
	)
}

// cellsOf returns pointers to one cell of 8 bytes for each argument, which is the
// form that cu takes.
func cellsOf(args []device.Arg) []unsafe.Pointer {
	p := make([]unsafe.Pointer, len(args))
	for k, a := range args {
		cell := new([8]byte)
		a.AppendTo(cell[:0])
		p[k] = unsafe.Pointer(cell)
	}
	return p
}

// Sync waits for the stream.
func (d *Driver) Sync(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// wait returns when ctx ends: call need not give the thread up as lost.
	return d.call(context.WithoutCancel(ctx), func() error {
		return d.wait(ctx)
	})
}

// wait polls the stream until it is idle, at intervals that grow from a
// microsecond to a millisecond, so that a kernel that never ends cannot keep the
// thread. It runs on the driver's thread.
func (d *Driver) wait(ctx context.Context) error {
	for pause := time.Microsecond; ; pause = min(2*pause, time.Millisecond) {
		err := d.stream.Query()
		if err == nil {
			return nil
		}
		if err != error(cu.NotReady) {
			return failed("kernel", err)
		}
		if ctx.Err() != nil {
			return overdue("kernel", ctx.Err())
		}
		time.Sleep(pause)
	}
}

// Time captures the launches of a burst in a graph and reads events around each
// replay. Each function is launched once before, since what the driver sets up at
// a first launch can be set up neither while a stream is captured nor between the
// events.
func (d *Driver) Time(
	ctx context.Context, b device.Burst, replays int,
) ([]float64, error) {
	all := slices.Concat(b.Before, b.Launches, b.After)
	for _, l := range all {
		if err := d.spec.Check(l); err != nil {
			return nil, err
		}
	}
	var seconds []float64
	err := d.call(context.WithoutCancel(ctx), func() error {
		if err := d.launchAll(firsts(all)); err != nil {
			return err
		}
		if err := d.wait(ctx); err != nil {
			return err
		}
		g, err := capture(d.stream, func() error {
			return d.launchAll(b.Launches)
		})
		if err != nil {
			return err
		}
		defer g.destroy()
		seconds, err = d.replay(ctx, g, b, replays)
		return err
	})
	return seconds, err
}

// firsts are the first launch of each function.
func firsts(launches []device.Launch) []device.Launch {
	var all []device.Launch
	seen := map[device.Function]bool{}
	for _, l := range launches {
		if !seen[l.Function] {
			seen[l.Function] = true
			all = append(all, l)
		}
	}
	return all
}

// launchAll queues launches in order.
func (d *Driver) launchAll(launches []device.Launch) error {
	for _, l := range launches {
		if err := d.launch(l); err != nil {
			return err
		}
	}
	return nil
}

// replay launches g, the graph of b, n + 1 times and returns the seconds of all
// but the first replay, which brings caches and clocks into their steady state.
func (d *Driver) replay(
	ctx context.Context, g graph, b device.Burst, n int,
) ([]float64, error) {
	var events [2]cu.Event
	for k := range events {
		e, err := cu.MakeEvent(cu.DefaultEvent)
		if err != nil {
			return nil, failed("cuEventCreate", err)
		}
		events[k] = e
		defer cu.DestroyEvent(&e)
	}
	seconds := make([]float64, 0, n)
	for k := range n + 1 {
		s, err := d.once(ctx, g, b, events)
		if err != nil {
			return nil, err
		}
		if k > 0 {
			seconds = append(seconds, s)
		}
	}
	return seconds, nil
}

// once is the device time of one launch of g, in seconds.
func (d *Driver) once(
	ctx context.Context, g graph, b device.Burst,
	events [2]cu.Event,
) (float64, error) {
	// The launches before and after are not between the events.
	if err := d.launchAll(b.Before); err != nil {
		return 0, err
	}
	if err := failed("cuEventRecord", events[0].Record(d.stream)); err != nil {
		return 0, err
	}
	if err := g.launch(d.stream); err != nil {
		return 0, err
	}
	if err := failed("cuEventRecord", events[1].Record(d.stream)); err != nil {
		return 0, err
	}
	if err := d.launchAll(b.After); err != nil {
		return 0, err
	}
	if err := d.wait(ctx); err != nil {
		return 0, err
	}
	ms, err := events[0].Elapsed(events[1])
	if err == error(cu.NotSupported) {
		// This is the simulator of cudasim.
		return 0, device.ErrUntimed
	}
	return ms / 1e3, failed("cuEventElapsedTime", err)
}

// Close releases memory, modules and the context. After a kernel that never ends
// it releases nothing: releasing would wait for the kernel, which ends with the
// process.
func (d *Driver) Close() error {
	if d.calls == nil {
		return nil
	}
	calls := d.calls
	defer func() { close(calls); d.calls = nil }()
	if d.lost != nil {
		d.lost = errors.New("the driver is closed")
		d.calls = nil
		return nil
	}
	err := d.call(context.Background(), d.release)
	d.lost = errors.New("the driver is closed")
	return err
}

// release releases everything. It runs on the driver's thread.
func (d *Driver) release() error {
	var all []error
	for p := range d.memory {
		all = append(all, failed("cuMemFree", cu.MemFree(p)))
	}
	for m := range d.modules {
		all = append(
			all, failed("cuModuleUnload", m.m.Unload()),
		)
	}
	all = append(
		all, d.staging.free(),
		failed("cuStreamDestroy", d.stream.Destroy()),
		failed("cuDevicePrimaryCtxRelease", d.device.ReleasePrimaryCtx()),
	)
	return errors.Join(all...)
}
