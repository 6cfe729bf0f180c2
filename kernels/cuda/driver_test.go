//go:build cuda && cudasim && cgo && linux

package cuda

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cuda/cudasim"
	"github.com/tilewright/tilewright/kernels/gpu"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/gpu/simulated"
	"github.com/tilewright/tilewright/kernels/ptx/sim"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A host is a gpu.Driver whose memory is Go's and whose kernels are those of
// hostKernels, whatever the PTX: it shows what arrives through libcuda.
type host struct {
	sheet  device.Spec
	memory map[device.Address][]byte
	next   device.Address
	log    []string // launches, as they arrive
	err    error    // of the last kernel
}

type hostModule struct{ text string }

type hostFunction struct {
	name      string
	resources device.Resources
}

func (f *hostFunction) Resources() device.Resources { return f.resources }

func (m *hostModule) Function(name string) (device.Function, error) {
	if !strings.Contains(m.text, ".entry "+name) {
		return nil, fmt.Errorf("no entry %q", name)
	}
	return &hostFunction{name, device.Resources{Registers: 32, LocalBytes: 8, SharedBytes: 2048, MaxThreads: 512}}, nil
}

func (m *hostModule) Close() error { return nil }

func newHost(t *testing.T, name string) *host {
	t.Helper()
	s, err := device.ParseSpec(name)
	if err != nil {
		t.Fatal(err)
	}
	return &host{sheet: s, memory: map[device.Address][]byte{}, next: 0x10000}
}

func (h *host) Spec() device.Spec { return h.sheet }

func (h *host) Load(_ context.Context, text string, o device.LoadOptions) (device.Module, error) {
	if !strings.Contains(text, ".entry") {
		return nil, errors.New("ptxas fatal: no entry")
	}
	h.log = append(h.log, fmt.Sprintf("load, at most %d registers", o.MaxRegisters))
	return &hostModule{text}, nil
}

func (h *host) Alloc(n int64) (device.Address, error) {
	if n > h.sheet.Memory {
		return 0, errors.New("there is not so much")
	}
	a := h.next
	h.next += device.Address(n+255) &^ 255
	h.memory[a] = make([]byte, n)
	return a, nil
}

func (h *host) Free(a device.Address) error { delete(h.memory, a); return nil }

// at is the memory from a on, of the allocation a is in.
func (h *host) at(a device.Address) []byte {
	for base, b := range h.memory {
		if a >= base && a < base+device.Address(len(b)) {
			return b[a-base:]
		}
	}
	return nil
}

func (h *host) CopyIn(to device.Address, from []byte) error {
	copy(h.at(to), from)
	return nil
}
func (h *host) CopyOut(to []byte, from device.Address) error {
	copy(to, h.at(from))
	return nil
}

func (h *host) Fill(to device.Address, v byte, n int64) error {
	for k := range h.at(to)[:n] {
		h.at(to)[k] = v
	}
	return nil
}

func (h *host) EncodeTensorMap(s device.TensorMapSpec) (m device.TensorMap, err error) {
	copy(
		m[:],
		fmt.Sprintf(
			"%s %#x %v %v %v %d",
			s.DType, uint64(s.Base), s.Dims,
			s.Strides, s.Box, s.Swizzle,
		),
	)
	return m, s.Check()
}

func (h *host) Clusters(l device.Launch) (int, error) {
	return h.Spec().Clusters(l), nil
}

// Launch runs add, which adds its u32 argument to the n cells at its address,
// and trap, which fails while it runs.
func (h *host) Launch(_ context.Context, l device.Launch) error {
	f := l.Function.(*hostFunction)
	line := fmt.Sprintf("%s grid %v block %v cluster %v shared %d:", f.name, l.Grid, l.Block, l.Cluster, l.SharedBytes)
	if l.Dependent {
		line += " dependent"
	}
	for _, a := range l.Args {
		text := fmt.Sprintf("%d bytes %s", a.Size(), a)
		if a.Size() == 128 {
			text = strings.TrimRight(string(a.AppendTo(nil)), "\x00")
		}
		line += " [" + text + "]"
	}
	h.log = append(h.log, line)
	switch f.name {
	case "add":
		a := binary.LittleEndian.Uint64(l.Args[0].AppendTo(nil))
		v := binary.LittleEndian.Uint32(l.Args[1].AppendTo(nil))
		n := binary.LittleEndian.Uint32(l.Args[2].AppendTo(nil))
		b := h.at(device.Address(a))
		for k := range n {
			binary.LittleEndian.PutUint32(
				b[4*k:],
				binary.LittleEndian.Uint32(b[4*k:])+v,
			)
		}
	case "trap":
		h.err = errors.New("trap at line 7")
	}
	return nil
}

func (h *host) Sync(context.Context) error { err := h.err; h.err = nil; return err }
func (h *host) Time(context.Context, device.Burst, int) ([]float64, error) {
	return nil, device.ErrUntimed
}
func (h *host) Close() error { return nil }

const testPTX = `.version 8.0
.target sm_90a
.address_size 64
.visible .entry add(.param .u64 p, .param .u32 v, .param .u32 n) { ret; }
.visible .entry trap() { trap; }
.visible .entry bulk(
	.param .align 64 .b8 map[128],
	.param .u64 p
)
.maxntid 512
{ ret; }
`

// TestDriver: what the backend asks of gorgonia.org/cu arrives at libcuda, and
// what libcuda answers comes back.
func TestDriver(t *testing.T) {
	h := newHost(t, "H200")
	cudasim.Start(h, cudasim.Options{Milliseconds: 0.25})
	d, err := Open(0)
	if err != nil {
		t.Fatal(err)
	}
	want := h.sheet
	want.Name += " (simulated)"
	want.Driver = "CUDA 12.0"
	want.Simulated = true
	want.Watts = 0
	got := d.Spec()
	if got.Unread == "" {
		t.Error("no management library knows the simulated device, and nothing says so")
	}
	got.Unread = ""
	if got.Bandwidth < want.Bandwidth*0.999 || got.Bandwidth > want.Bandwidth {
		t.Errorf("bandwidth %g, want %g", got.Bandwidth, want.Bandwidth)
	}
	got.Bandwidth = want.Bandwidth
	if got != want {
		t.Errorf("sheet\n%+v, want\n%+v", got, want)
	}
	ctx := context.Background()
	m, err := d.Load(ctx, testPTX, device.LoadOptions{MaxRegisters: 128})
	if err != nil {
		t.Fatal(err)
	}
	checkAdd(ctx, t, d, m)
	checkBulk(ctx, t, d, m)
	wantLog := []string{
		"load, at most 128 registers",
		"add grid {3 1 1} block {64 1 1} cluster {0 0 0} shared 0: [8 bytes 65536] [4 bytes 5] [4 bytes 8]",
		"bulk grid {4 2 1} block {128 1 1} cluster {2 1 1} shared 200000: [bf16 0x10000 [64 8] [128] [64 8] 128] [8 bytes 7]",
		"bulk grid {4 2 1} block {128 1 1} cluster {0 0 0} shared 200000: dependent [bf16 0x10000 [64 8] [128] [64 8] 128] [8 bytes 7]",
	}
	h.log = slices.Compact(h.log)
	if !slices.Equal(h.log, wantLog) {
		t.Errorf("arrived:\n%s\nwant:\n%s", strings.Join(h.log, "\n"), strings.Join(wantLog, "\n"))
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if held := cudasim.Held(); held != "" {
		t.Errorf("not given back: %s", held)
	}
	if _, err := d.Alloc(1); err == nil {
		t.Error("a closed driver allocates")
	}
}

// TestStaging: copies too large for one half of pinned memory go and come whole,
// whatever their length, and from any place.
func TestStaging(t *testing.T) {
	h := newHost(t, "H200")
	cudasim.Start(h, cudasim.Options{})
	d, err := Open(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{
		1, stagedFrom - 1, stagedFrom, stagingBytes, stagingBytes + 1, 2 * stagingBytes, 5*stagingBytes - 3,
	} {
		a, err := d.Alloc(int64(n) + 7)
		if err != nil {
			t.Fatal(err)
		}
		in, out := make([]byte, n), make([]byte, n)
		for k := range in {
			in[k] = byte(k ^ k>>8 ^ k>>16 + 1)
		}
		if err := errors.Join(
			d.CopyIn(a+7, in), d.CopyOut(out, a+7),
		); err != nil {
			t.Error(err)
		}
		if !slices.Equal(in, out) {
			t.Errorf("%d bytes come back as others", n)
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if held := cudasim.Held(); held != "" {
		t.Errorf("not given back: %s", held)
	}
}

func checkAdd(ctx context.Context, t *testing.T, d device.Driver, m device.Module) {
	add, err := m.Function("add")
	if err != nil {
		t.Fatal(err)
	}
	if r := (device.Resources{
		Registers:   32,
		LocalBytes:  8,
		SharedBytes: 2048,
		MaxThreads:  512,
	}); add.Resources() != r {
		t.Errorf("resources %+v", add.Resources())
	}
	a, err := d.Alloc(32)
	if err != nil {
		t.Fatal(err)
	}
	l := device.Launch{
		Function: add,
		Grid:     device.Dim3{X: 3},
		Block:    device.Dim3{X: 64},
		Args:     []device.Arg{device.AddressArg(a), device.U32Arg(5), device.U32Arg(8)},
	}
	out := make([]byte, 32)
	for _, err := range []error{
		d.Fill(a, 1, 16),
		d.CopyIn(a+16, []byte("0123456789abcdef")),
		d.Launch(ctx, l), d.Sync(ctx),
		d.CopyOut(out, a),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := strings.Repeat("\x06\x01\x01\x01", 4) + "5123" + "9567" + "=9ab" + "hdef"; string(out) != want {
		t.Errorf("memory is %q", out)
	}
	seconds, err := d.Time(
		ctx,
		device.Burst{
			Before:   []device.Launch{l},
			Launches: []device.Launch{l, l},
			After:    []device.Launch{l, l},
		},
		3,
	)
	if err != nil || !slices.Equal(seconds, []float64{0.5e-3, 0.5e-3, 0.5e-3}) {
		t.Errorf("two kernels of 0.25 ms took %v, %v", seconds, err)
	}
	if err := d.Free(a); err != nil {
		t.Error(err)
	}
	if err := d.Free(a); err == nil {
		t.Error("memory is freed twice")
	}
}

func checkBulk(ctx context.Context, t *testing.T, d device.Driver, m device.Module) {
	bulk, err := m.Function("bulk")
	if err != nil {
		t.Fatal(err)
	}
	spec := device.TensorMapSpec{
		DType:   hlo.BF16,
		Base:    0x10000,
		Dims:    []uint64{64, 8},
		Strides: []uint64{128},
		Box:     []uint32{64, 8},
		Swizzle: device.Swizzle128,
	}
	tm, err := d.EncodeTensorMap(spec)
	if err != nil {
		t.Fatal(err)
	}
	l := device.Launch{
		Function:    bulk,
		Grid:        device.Dim3{X: 4, Y: 2},
		Block:       device.Dim3{X: 128},
		Cluster:     device.Dim3{X: 2},
		SharedBytes: 200000,
		Args:        []device.Arg{device.TensorMapArg(tm), device.U64Arg(7)},
	}
	if n, err := d.Clusters(l); err != nil || n != d.Spec().SMs/2 {
		t.Errorf("%d clusters of 2 at once, %v", n, err)
	}
	if err := d.Launch(ctx, l); err != nil {
		t.Error(err)
	}
	// The same without a cluster, as one that may begin before the other has ended.
	l.Cluster, l.Dependent = device.Dim3{}, true
	if err := d.Launch(ctx, l); err != nil {
		t.Error(err)
	}
}

// TestFaults: every fault ends in an error that says what happened, the driver
// gives back what it can, and nothing waits for ever.
func TestFaults(t *testing.T) {
	datadriven.RunTest(t, "testdata/faults.txt", func(t *testing.T, c *datadriven.TestData) string {
		faults, err := cudasim.ParseFaults(c.Input)
		if err != nil {
			return err.Error() + "\n"
		}
		options := cudasim.Options{Faults: faults}
		if c.HasArg("timed") {
			options.Milliseconds = 1
		}
		cudasim.Start(newHost(t, "H100"), options)
		return session() + heldLine()
	})
}

func heldLine() string {
	if held := cudasim.Held(); held != "" {
		return "held: " + held + "\n"
	}
	return "nothing is held\n"
}

// session does what a backend does with a driver, as far as it comes.
func session() string {
	d, err := Open(0)
	if err != nil {
		return "open: " + err.Error() + "\n"
	}
	failures, order := steps(d)
	var b strings.Builder
	for _, step := range order {
		if err := failures[step]; err != nil {
			sticky := ""
			if device.IsSticky(err) {
				sticky = " [lost]"
			}
			fmt.Fprintf(&b, "%s: %v%s\n", step, err, sticky)
		}
	}
	if err := d.Close(); err != nil {
		fmt.Fprintf(&b, "close: %v\n", err)
	}
	if b.Len() == 0 {
		return "all is well\n"
	}
	return b.String()
}

// steps returns the error of each step and their order.
func steps(d *Driver) (failures map[string]error, order []string) {
	failures = map[string]error{}
	step := func(name string, f func(ctx context.Context) error) {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		order = append(order, name)
		failures[name] = f(ctx)
	}
	var a, b device.Address
	var m device.Module
	var f device.Function
	launch := func() device.Launch {
		return device.Launch{
			Function: f,
			Block:    device.Dim3{X: 32},
			Args:     []device.Arg{device.AddressArg(a), device.U32Arg(1), device.U32Arg(4)},
		}
	}
	step("alloc 1", func(context.Context) (err error) { a, err = d.Alloc(64); return err })
	step("alloc 2", func(context.Context) (err error) { b, err = d.Alloc(64); return err })
	step("load", func(ctx context.Context) (err error) {
		m, err = d.Load(ctx, testPTX, device.LoadOptions{})
		return err
	})
	if m == nil {
		return failures, order
	}
	step("function", func(context.Context) (err error) { f, err = m.Function("add"); return err })
	if f == nil || a == 0 {
		return failures, order
	}
	step("copy in", func(context.Context) error { return d.CopyIn(a, make([]byte, 64)) })
	step("launch", func(ctx context.Context) error { return d.Launch(ctx, launch()) })
	step("sync", d.Sync)
	step("time", func(ctx context.Context) error {
		_, err := d.Time(
			ctx, device.Burst{Launches: []device.Launch{launch(), launch()}}, 2,
		)
		return err
	})
	step("launch again", func(ctx context.Context) error { return d.Launch(ctx, launch()) })
	step("sync again", d.Sync)
	step("copy out", func(context.Context) error { return d.CopyOut(make([]byte, 64), a) })
	if b != 0 {
		step("free 2", func(context.Context) error { return d.Free(b) })
	}
	return failures, order
}

// TestAssemblerWarning: what the driver's assembler warns of is among the resources, and
// what it says otherwise is not.
func TestAssemblerWarning(t *testing.T) {
	const warning = "ptxas info : (C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized"
	cudasim.Start(newHost(t, "H100"), cudasim.Options{
		AssemblerSays: "ptxas info : Used 40 registers\n" + warning + "\n",
	})
	d, err := Open(0)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	m, err := d.Load(t.Context(), testPTX, device.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := m.Function("trap")
	if err != nil || f.Resources().Warning != warning {
		t.Errorf("%q, %v", f.Resources().Warning, err)
	}
}

// TestTrap: what the device says of a kernel's failure is in the error.
func TestTrap(t *testing.T) {
	cudasim.Start(newHost(t, "H100"), cudasim.Options{})
	d, err := Open(0)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	m, err := d.Load(t.Context(), testPTX, device.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := m.Function("trap")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Launch(t.Context(), device.Launch{Function: f}); err != nil {
		t.Fatal(err)
	}
	err = d.Sync(t.Context())
	if !device.IsSticky(err) || !strings.Contains(err.Error(), "trap at line 7") {
		t.Errorf("trap: %v", err)
	}
	if _, again := d.Alloc(64); again != err {
		t.Errorf("after a trap: %v", again)
	}
}

// TestRefused: what is wrong with a request is said before the driver is asked.
func TestRefused(t *testing.T) {
	cudasim.Start(newHost(t, "A100"), cudasim.Options{})
	d, err := Open(0)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	m, err := d.Load(t.Context(), testPTX, device.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	add, err := m.Function("add")
	if err != nil {
		t.Fatal(err)
	}
	_, none := m.Function("nothing")
	_, second := Open(1)
	_, empty := d.Alloc(0)
	_, tm := d.EncodeTensorMap(device.TensorMapSpec{
		DType: hlo.F16,
		Base:  16,
		Dims:  []uint64{8},
		Box:   []uint32{8},
	})
	_, untimed := d.Time(t.Context(), device.Burst{}, 1)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	got := map[string]error{
		"named symbol not found: no entry": none,
		"no GPU 1; there are 1":            second,
		"allocation of 0 bytes":            empty,
		"sm_80 has no bulk tensor copies":  tm,
		"cannot time":                      untimed,
		"context canceled":                 d.Sync(done),
		"the function allows 512": d.Launch(t.Context(), device.Launch{
			Function: add,
			Block:    device.Dim3{X: 513},
		}),
		"a function of another driver": d.Launch(t.Context(), device.Launch{Function: &hostFunction{}}),
		"sm_80 has no clusters": d.Launch(t.Context(), device.Launch{
			Function: add,
			Cluster:  device.Dim3{X: 2},
			Grid:     device.Dim3{X: 2},
		}),
		"free of 0x123, which is not allocated": d.Free(0x123),
	}
	for _, want := range slices.Sorted(maps.Keys(got)) {
		if err := got[want]; err == nil ||
			!strings.Contains(err.Error(), want) ||
			device.IsSticky(err) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestMain lets the test binary be the process of a gpu.Child, with the faults
// that the environment names.
func TestMain(m *testing.M) {
	table, child := os.LookupEnv("TILEWRIGHT_TEST_FAULTS")
	if !child {
		os.Exit(m.Run())
	}
	faults, err := cudasim.ParseFaults(table)
	if err == nil {
		s, _ := device.ParseSpec("H100")
		cudasim.Start(
			&host{sheet: s, memory: map[device.Address][]byte{}, next: 0x10000},
			cudasim.Options{Faults: faults},
		)
		err = device.Serve(
			func(context.Context) (device.Driver, error) { return Open(0) },
			os.Stdin,
			os.Stdout,
		)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// TestChild: a kernel that hangs or faults costs its process, not this one; the
// failure names the cause, and the next work runs within 2 s.
func TestChild(t *testing.T) {
	// The second kernel is the second run's, the third allocation too.
	for table, want := range map[string]string{
		"kernel 2: hang":                                       "still running when its time was over: context deadline exceeded",
		"kernel 2: CUDA_ERROR_ILLEGAL_ADDRESS":                 "an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)",
		"cuLaunchKernel 2: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": "too many resources requested for launch",
		"cuMemAlloc 3: CUDA_ERROR_OUT_OF_MEMORY":               "out of memory",
		"cuModuleLoadDataEx 1: CUDA_ERROR_INVALID_PTX line 9":  "line 9",
	} {
		t.Run(table, func(t *testing.T) {
			o := device.ChildOptions{Grace: 100 * time.Millisecond, Command: func() *exec.Cmd {
				c := exec.Command(os.Args[0])
				c.Env = append(os.Environ(), "TILEWRIGHT_TEST_FAULTS="+table)
				return c
			}}
			s, err := device.NewSession(t.Context(), func(ctx context.Context) (device.Driver, error) {
				return device.OpenChild(ctx, o)
			})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			failures := 0
			for range 3 {
				begin := time.Now()
				err := runAdd(t, s)
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
				if err != nil {
					failures++
				}
				if took := time.Since(begin); took > 2*time.Second {
					t.Errorf("it took %v", took)
				}
			}
			if failures != 1 {
				t.Errorf("%d of three runs failed, want one", failures)
			}
		})
	}
}

// TestSample: a work is timed through graphs of cu on as many sets as keep the
// cache cold, with the reference kernel, and gives everything back.
func TestSample(t *testing.T) {
	h := newHost(t, "A100")
	h.sheet.L2 = 1 << 10
	cudasim.Start(h, cudasim.Options{Milliseconds: 0.5})
	s, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) {
		return Open(0)
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &device.Executable{
		PTX:     strings.ReplaceAll(testPTX, "sm_90a", "sm_80"),
		Scratch: []int64{64},
		Steps: []device.Step{
			{Entry: "add", Block: device.Dim3{X: 32}, Args: []device.Operand{
				device.Output(0),
				device.Value(device.U32Arg(1)),
				device.Value(device.U32Arg(4)),
			}},
			{Entry: "add", Block: device.Dim3{X: 32}, Args: []device.Operand{
				device.ScratchArray(0),
				device.Value(device.U32Arg(1)),
				device.Value(device.U32Arg(4)),
			}},
		},
	}
	sets := []kernels.Set{
		{Out: []kernels.Buffer{{Data: make([]byte, 256)}}},
	}
	got, err := s.Sample(t.Context(), w, sets, 1)
	if err != nil || got != (kernels.Timing{Seconds: 1e-3}) {
		t.Errorf("two kernels of 0.5 ms take %+v, %v", got, err)
	}
	places := map[string]bool{}
	for _, line := range h.log {
		if strings.HasPrefix(line, "add") {
			places[line] = true
		}
	}
	if want := 8 + 1; len(places) != want { // 2 KiB in sets of 256 bytes, and the scratch array
		t.Errorf("%d arrays were added to, want %d", len(places), want)
	}
	if e := s.Samples(); len(e) != 1 || e[0].Reference.Seconds != 0.5e-3 {
		t.Errorf("evidence %+v", e)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if held := cudasim.Held(); held != "" {
		t.Errorf("not given back: %s", held)
	}
}

const loopPTX = `.version 8.0
.target sm_80
.address_size 64
.visible .entry loop(.param .u64 p)
{
	.reg .b32 %r<1>;
	.reg .b64 %rd<1>;
	.reg .pred %p<1>;
	ld.param.u64 %rd0, [p];
	mov.u32 %r0, 0;
$again:
	add.u32 %r0, %r0, 1;
	setp.lt.u32 %p0, %r0, 2000;
	@%p0 bra $again;
	st.global.u32 [%rd0], %r0;
	ret;
}
`

// TestSampleClock: the clocks are read round the graph of each sample, and a
// sample that was taken at another clock is known, taken again and counted.
func TestSampleClock(t *testing.T) {
	sheet, err := device.ParseSpec("A100")
	if err != nil {
		t.Fatal(err)
	}
	sheet.L2 = 1 << 9
	dev, err := simulated.Open(sheet, sim.Options{Races: true, Uninitialised: true, Hertz: 1.4e9})
	if err != nil {
		t.Fatal(err)
	}
	cudasim.Start(dev, cudasim.Options{Milliseconds: 0.5})
	s, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) {
		return Open(0)
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &device.Executable{
		PTX: loopPTX,
		Steps: []device.Step{{
			Entry: "loop",
			Block: device.Dim3{X: 1},
			Args:  []device.Operand{device.Output(0)},
		}},
	}
	sets := []kernels.Set{
		{Out: []kernels.Buffer{{Data: make([]byte, 256)}}},
	}
	clocks := []float64{1.4e9, 1.4e9, 1.39e9, 1.4e9, 1.1e9, 1.41e9, 1.4e9}
	for _, hertz := range clocks {
		dev.SetClock(hertz)
		got, err := s.Sample(t.Context(), w, sets, 1)
		if err != nil || got.Seconds != 0.5e-3 || math.Abs(got.Hertz/hertz-1) > 1e-3 {
			t.Errorf("a kernel of 0.5 ms at %g Hz took %+v, %v", hertz, got, err)
		}
	}
	for k, e := range s.Samples() {
		taken := 1
		if clocks[k] == 1.1e9 {
			taken = 3
		}
		if e.Number != k+1 || e.Attempts != taken ||
			math.Abs(e.Hertz/clocks[k]-1) > 1e-3 {
			t.Errorf("sample %d, at %g Hz: %+v", k+1, clocks[k], e)
		}
	}
	saw := gpu.New(s).SampleQuality()
	if saw.Samples != len(clocks) ||
		saw.Clock.Known != len(clocks) || saw.Outliers != 1 ||
		saw.Resampled != 2 {
		t.Errorf("evidence %+v", saw)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if held := cudasim.Held(); held != "" {
		t.Errorf("not given back: %s", held)
	}
}

// runAdd runs add on the output array with a short deadline.
func runAdd(t *testing.T, s *device.Session) error {
	t.Helper()
	w := &device.Executable{
		PTX: testPTX,
		Steps: []device.Step{{Entry: "add", Block: device.Dim3{X: 32},
			Args: []device.Operand{
				device.Output(0),
				device.Value(device.U32Arg(3)),
				device.Value(device.U32Arg(4)),
			}}},
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	out := []kernels.Buffer{{Data: make([]byte, 16)}}
	_, err := s.Run(ctx, w, nil, out)
	if err == nil &&
		!slices.Equal(out[0].Data, []byte{
			3, 0, 0, 0, 3, 0, 0, 0, 3,
			0, 0, 0, 3, 0, 0, 0,
		}) {
		t.Errorf("the result is %v", out[0].Data)
	}
	return err
}
