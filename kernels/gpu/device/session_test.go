package device

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tilewright/tilewright/kernels"
)

// A fakeDriver is a device whose kernels are Go: "double" writes twice its input,
// "overrun" also the byte after its output, "hang" never ends, "fault" loses
// the device, "crash" the process, "spin" is the reference kernel, "hold" holds up the
// stream and "stamp" reads the clocks, of SMs that count from different numbers.
type fakeDriver struct {
	memory map[Address][]byte
	next   Address
	queued []Launch
	lost   error
	runs   int             // kernels that ran
	clock  float64         // Hz
	dips   map[int]float64 // instead of it, in the bursts of these numbers, from 1
	bursts int             // between stamps, that were timed
	held   []uint32        // steps that the stream was held up for before each
	cycles float64         // and
	nanos  float64         // since the beginning
	places []Address
}

type fakeModule string

type fakeFunction string

func (m fakeModule) Function(name string) (Function, error) {
	if !strings.Contains(string(m), ".entry "+name) {
		return nil, &Error{Call: "function", Text: "no entry " + name}
	}
	return fakeFunction(name), nil
}

func (m fakeModule) Close() error           { return nil }
func (f fakeFunction) Resources() Resources { return Resources{Registers: 16} }
func newFakeDriver() *fakeDriver {
	return &fakeDriver{memory: map[Address][]byte{}, next: 1 << 20, clock: 1.5e9}
}
func (d *fakeDriver) Spec() Spec {
	s, _ := ParseSpec("A100")
	s.L2 = 1 << 16
	s.SMs = 4
	return s
}
func (d *fakeDriver) Free(a Address) error { delete(d.memory, a); return d.lost }
func (d *fakeDriver) CopyIn(a Address, b []byte) error {
	copy(d.at(a), b)
	return d.lost
}
func (d *fakeDriver) CopyOut(b []byte, a Address) error {
	copy(b, d.at(a))
	return d.lost
}
func (d *fakeDriver) Close() error { return nil }

func (d *fakeDriver) Load(_ context.Context, text string, o LoadOptions) (Module, error) {
	if !strings.Contains(text, ".entry") {
		return nil, &Error{Call: "load", Code: "INVALID_PTX", Text: "it does not assemble", Log: "line 1: no entry"}
	}
	return fakeModule(text), d.lost
}

func (d *fakeDriver) Alloc(n int64) (Address, error) {
	if n > 1<<25 {
		return 0, &Error{Call: "alloc", Text: "out of memory"}
	}
	a := d.next
	d.next += Address(n+255) &^ 255
	d.memory[a] = make([]byte, n)
	return a, d.lost
}

func (d *fakeDriver) at(a Address) []byte {
	for base, b := range d.memory {
		if a >= base && a < base+Address(len(b)) {
			return b[a-base:]
		}
	}
	return nil
}

func (d *fakeDriver) Fill(a Address, v byte, n int64) error {
	for k := range d.at(a)[:n] {
		d.at(a)[k] = v
	}
	return d.lost
}

func (d *fakeDriver) EncodeTensorMap(TensorMapSpec) (TensorMap, error) {
	return TensorMap{}, errors.New("no tensor maps")
}

func (d *fakeDriver) Clusters(l Launch) (int, error) {
	return d.Spec().Clusters(l), d.lost
}

func (d *fakeDriver) Launch(_ context.Context, l Launch) error {
	d.queued = append(d.queued, l)
	return d.lost
}

func (d *fakeDriver) Sync(ctx context.Context) error {
	for _, l := range d.queued {
		if d.lost == nil {
			d.run(ctx, l)
		}
	}
	d.queued = nil
	return d.lost
}

func (d *fakeDriver) run(ctx context.Context, l Launch) {
	address := func(k int) Address {
		return Address(binary.LittleEndian.Uint64(l.Args[k].AppendTo(nil)))
	}
	if l.Function == fakeFunction("stamp") {
		d.stamp(d.at(address(0)), l.Grid.X)
		return
	}
	if l.Function == fakeFunction("hold") {
		d.held = append(d.held, binary.LittleEndian.Uint32(l.Args[1].AppendTo(nil)))
		return
	}
	d.runs++
	d.places = append(d.places, address(0))
	d.nanos += toyNanos
	d.cycles += toyNanos * d.hertz() / 1e9
	switch name := l.Function.(fakeFunction); name {
	case "double", "overrun":
		const n = 16
		in, out := d.at(address(0)), d.at(address(1))
		for k := range n {
			out[k] = 2 * in[k]
		}
		if name == "overrun" {
			out[n] = 1
		}
	case "spin":
		out := d.at(address(0))
		binary.LittleEndian.PutUint64(out, 400_000)
		binary.LittleEndian.PutUint64(out[8:], uint64(400_000/d.clock*1e9))
	case "hang":
		<-ctx.Done()
		d.lost = &Error{Call: "kernel", Text: "still running", Sticky: true, Err: ctx.Err()}
	case "stuck":
		select {}
	case "crash":
		fmt.Fprintln(os.Stderr, "toy: the process goes down")
		os.Exit(7)
	default:
		d.lost = &Error{Call: "kernel", Code: "ILLEGAL_ADDRESS", Text: "it wrote where it may not", Sticky: true}
	}
}

const toyNanos = 1e6 // of each launch but stamps

// hertz is the clock of the burst at hand.
func (d *fakeDriver) hertz() float64 {
	if dip := d.dips[d.bursts]; dip > 0 {
		return dip
	}
	return d.clock
}

// stamp writes the stamps of SMs, of which the last is the first block's.
func (d *fakeDriver) stamp(out []byte, sms int) {
	for k := range sms {
		sm := sms - 1 - k
		at := out[k*stampBytes:]
		binary.LittleEndian.PutUint64(at, uint64(d.cycles)+uint64(sm)<<40)
		binary.LittleEndian.PutUint64(at[8:], uint64(d.nanos)+1e15)
		binary.LittleEndian.PutUint64(at[16:], uint64(sm))
	}
}

func (d *fakeDriver) Time(ctx context.Context, b Burst, replays int) ([]float64, error) {
	if len(b.Before) > 0 {
		d.bursts++
	}
	for range replays + 1 {
		d.queued = slices.Concat(b.Before, b.Launches, b.After)
		if err := d.Sync(ctx); err != nil {
			return nil, err
		}
	}
	seconds := float64(len(b.Launches)) * 1e-3
	if b.Launches[0].Function == fakeFunction("spin") {
		seconds = 400_000 / d.clock
	}
	return slices.Repeat([]float64{seconds}, replays), nil
}

func toyWork(name string) *Executable {
	return &Executable{
		PTX: ".entry " + name,
		Steps: []Step{{
			Entry: name,
			Block: Dim3{X: 16},
			Args:  []Operand{Input(0), Output(0)},
		}},
	}
}

// TestMain lets the test binary be the process of a Child.
func TestMain(m *testing.M) {
	if os.Getenv("TILEWRIGHT_TEST_CHILD") != "" {
		err := Serve(
			func(context.Context) (Driver, error) { return newFakeDriver(), nil },
			os.Stdin,
			os.Stdout,
		)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func childOptions() ChildOptions {
	return ChildOptions{Grace: 50 * time.Millisecond, Timeout: time.Second, Command: func() *exec.Cmd {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), "TILEWRIGHT_TEST_CHILD=1")
		return c
	}}
}

// drivers are the ways to the toy: in this process and in one of its own.
func openers() map[string]func(context.Context) (Driver, error) {
	return map[string]func(context.Context) (Driver, error){
		"here":  func(context.Context) (Driver, error) { return newFakeDriver(), nil },
		"child": func(ctx context.Context) (Driver, error) { return OpenChild(ctx, childOptions()) },
	}
}

func arraysOf16() (in, out []kernels.Buffer) {
	in = []kernels.Buffer{{Data: make([]byte, 16)}}
	out = []kernels.Buffer{{Data: make([]byte, 16)}}
	for k := range in[0].Data {
		in[0].Data[k] = byte(k)
	}
	return in, out
}

// TestSession: works run, their mistakes are told, and after each loss of the
// device the next work runs again, within 2 s.
func TestSession(t *testing.T) {
	for name, open := range openers() {
		t.Run(name, func(t *testing.T) {
			s, err := NewSession(t.Context(), open)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			good := func() {
				t.Helper()
				begin := time.Now()
				in, out := arraysOf16()
				if _, err := s.Run(t.Context(), toyWork("double"), in, out); err != nil {
					t.Errorf("double: %v", err)
				}
				if out[0].Data[5] != 10 || time.Since(begin) > 2*time.Second {
					t.Errorf("output %v after %v", out[0].Data, time.Since(begin))
				}
			}
			good()
			failing := map[string]string{
				"overrun": "byte 0 of the red zone after output 0",
				"hang":    "still running",
				"fault":   "it wrote where it may not (ILLEGAL_ADDRESS)",
			}
			if name == "child" {
				failing["crash"] = "ended: exit status 7\nit said: toy: the process goes down"
				failing["stuck"] = "killed: context deadline exceeded"
			}
			for _, bad := range slices.Sorted(maps.Keys(failing)) {
				limited, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				in, out := arraysOf16()
				_, err := s.Run(limited, toyWork(bad), in, out)
				cancel()
				if err == nil || !strings.Contains(err.Error(), failing[bad]) {
					t.Errorf("%s: %v, want %q", bad, err, failing[bad])
				}
				if wants := bad == "hang" || bad == "stuck"; errors.Is(err, context.DeadlineExceeded) != wants {
					t.Errorf("%s is a timeout: %t", bad, !wants)
				}
				good()
			}
			in, out := arraysOf16()
			if _, err := s.Run(
				t.Context(),
				&Executable{PTX: "nothing", Steps: toyWork("x").Steps},
				in, out,
			); err == nil || !strings.Contains(err.Error(), "line 1: no entry") {
				t.Errorf("what does not assemble: %v", err)
			}
			if _, err := s.Run(
				t.Context(), toyWork("double"), nil, out,
			); err == nil || !strings.Contains(err.Error(), "array 0 of 0") {
				t.Errorf("a missing input: %v", err)
			}
			good()
		})
	}
}

// TestReopen: a device that does not come back is tried again by each work, which
// says why; a work that is called off does not open it.
func TestReopen(t *testing.T) {
	opened, gone := 0, false
	s, err := NewSession(t.Context(), func(context.Context) (Driver, error) {
		opened++
		if gone {
			return nil, errors.New("it fell off the bus")
		}
		return newFakeDriver(), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	run := func(ctx context.Context, name string) error {
		in, out := arraysOf16()
		_, err := s.Run(ctx, toyWork(name), in, out)
		return err
	}
	off, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if err := run(off, "hang"); !errors.Is(err, context.Canceled) || opened != 1 {
		t.Errorf("called off: %v, opened %d times", err, opened)
	}
	if err := run(t.Context(), "fault"); !IsSticky(err) || opened != 3 {
		t.Errorf("a fault: %v, opened %d times, want 3: for this work and for the next", err, opened)
	}
	gone = true
	if err := run(t.Context(), "fault"); !IsSticky(err) {
		t.Errorf("a fault: %v", err)
	}
	for range 2 {
		if err := run(t.Context(), "double"); err == nil ||
			!strings.Contains(err.Error(), "fell off the bus") {
			t.Errorf("without a device: %v", err)
		}
	}
	gone = false
	if err := run(t.Context(), "double"); err != nil {
		t.Errorf("it is back: %v", err)
	}
}

// A slow device takes long to copy.
type slow struct{ *fakeDriver }

func (d slow) CopyIn(a Address, b []byte) error {
	time.Sleep(60 * time.Millisecond)
	return d.fakeDriver.CopyIn(a, b)
}

// TestAllowance: a deadline is for the device's work, not for its arrays.
func TestAllowance(t *testing.T) {
	s, err := NewSession(t.Context(), func(context.Context) (Driver, error) {
		return slow{newFakeDriver()}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	limited, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	in, out := arraysOf16()
	if _, err := s.Run(limited, toyWork("double"), in, out); err != nil {
		t.Error(err)
	}
	again, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Run(
		again, toyWork("hang"), in, out,
	); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// TestCalledOff: a call that is called off does not wait for what hangs.
func TestCalledOff(t *testing.T) {
	c, err := OpenChild(t.Context(), childOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	m, err := c.Load(t.Context(), ".entry stuck", LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := m.Function("stuck")
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Alloc(8)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Launch(t.Context(), Launch{
		Function: f,
		Args:     []Arg{AddressArg(a)},
	}); err != nil {
		t.Fatal(err)
	}
	off, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	begin := time.Now()
	if err := c.Sync(off); !errors.Is(err, context.Canceled) ||
		!IsSticky(err) || time.Since(begin) > 2*time.Second {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
}

// TestSample: launches go over as many sets as keep the cache cold, a reference kernel is
// taken, and a sample is taken again when the reference kernel drifts.
func TestSample(t *testing.T) {
	d := newFakeDriver()
	s, err := NewSession(t.Context(), func(context.Context) (Driver, error) { return d, nil })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in, out := arraysOf16()
	in[0].Data = append(in[0].Data, make([]byte, 1<<14)...) // 16 KiB and some a set
	sets := []kernels.Set{{In: in, Out: out}, {In: in, Out: out}}
	first, err := s.Sample(t.Context(), toyWork("double"), sets, 1)
	if err != nil || first.Seconds != 1e-3 || math.Abs(first.Hertz/1.5e9-1) > 1e-4 {
		t.Errorf("a run takes %+v, %v", first, err)
	}
	different := map[Address]bool{}
	for _, a := range d.places[:d.runs-2] { // without the reference kernel's two
		different[a] = true
	}
	if want := 8; len(different) != want { // 2·64 KiB of L2 over 16.03 KiB
		t.Errorf("%d sets in turn, want %d", len(different), want)
	}
	e := s.Samples()
	if len(e) != 1 || e[0].Reference.Hertz < 1.49e9 || e[0].Reference.Hertz > 1.51e9 {
		t.Errorf("clock evidence %+v", e)
	}
	held := len(d.memory)
	for k := range referenceEvery {
		if k == referenceEvery-1 {
			d.clock = 1.2e9 // it throttles before the next timing of the reference kernel
			d.runs = 0
		}
		if _, err := s.Sample(t.Context(), toyWork("double"), sets, 10); err != nil {
			t.Fatal(err)
		}
	}
	if want := 3*2*10 + 2 + 3*2*10; d.runs != want { // a sample and two more for its clock, the reference kernel, the same again, each with its warm-up
		t.Errorf("%d kernels ran round a drifting anchor, want %d", d.runs, want)
	}
	if len(d.memory) != held {
		t.Errorf("%d allocations, %d before", len(d.memory), held)
	}
	if _, err := s.Sample(
		t.Context(), toyWork("double"),
		[]kernels.Set{{In: in, Out: out}},
		1,
	); err != nil || len(d.memory) != held {
		t.Errorf("another bench: %v, %d allocations, %d before", err, len(d.memory), held)
	}
	read := []kernels.Buffer{{Data: make([]byte, len(out[0].Data))}}
	if err := s.ReadOutputs(t.Context(), read); err != nil || read[0].Data[3] != 2*in[0].Data[3] {
		t.Errorf("the outputs of the last run are %v, %v", read[0].Data, err)
	}
	large := []kernels.Set{
		{In: []kernels.Buffer{
			in[0], {Data: make([]byte, 1<<26)},
		}, Out: out},
	}
	for range 2 { // the second does not find half of it
		_, err := s.Sample(t.Context(), toyWork("double"), large, 1)
		if err == nil || !strings.Contains(err.Error(), "out of memory") || len(d.memory) != 0 {
			t.Errorf("more than there is: %v, %d allocations", err, len(d.memory))
		}
	}
	if err := s.ReadOutputs(t.Context(), read); err == nil {
		t.Error("outputs of no sample are read")
	}
	if _, err := s.Sample(t.Context(), toyWork("double"), nil, 1); err == nil {
		t.Error("timed on nothing")
	}
}

// TestServe: what is no request ends a server with an error.
func TestServe(t *testing.T) {
	open := func(context.Context) (Driver, error) { return nil, errors.New("no GPU: none was put in") }
	if err := Serve(open, strings.NewReader("\x05hello"), io.Discard); err == nil {
		t.Error("nonsense is served")
	}
	if err := Serve(open, strings.NewReader(""), io.Discard); err != nil {
		t.Error(err)
	}
}

// TestOpenChild: why there is no device comes through.
func TestOpenChild(t *testing.T) {
	o := childOptions()
	o.Command = func() *exec.Cmd { return exec.Command("false") }
	if _, err := OpenChild(t.Context(), o); err == nil ||
		!strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("a process that ends at once: %v", err)
	}
	o.Command = func() *exec.Cmd { return exec.Command("no-such-program") }
	if _, err := OpenChild(t.Context(), o); err == nil ||
		!strings.Contains(err.Error(), "does not start") {
		t.Errorf("a program that is not there: %v", err)
	}
	o.Command = func() *exec.Cmd { return exec.Command("sleep", "60") }
	limited, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if _, err := OpenChild(limited, o); !errors.Is(err, context.DeadlineExceeded) ||
		time.Since(begin) > time.Second {
		t.Errorf("a process that says nothing: %v after %v", err, time.Since(begin))
	}
}

// TestChunks: arrays larger than a message arrive whole.
func TestChunks(t *testing.T) {
	o := childOptions()
	o.Timeout = 30 * time.Second
	c, err := OpenChild(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sent := make([]byte, chunk+5)
	for k := range sent {
		sent[k] = byte(k * k >> 8)
	}
	a, err := c.Alloc(int64(len(sent)))
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(sent))
	if err := errors.Join(
		c.CopyIn(a, sent), c.CopyOut(got, a),
	); err != nil || !slices.Equal(sent, got) {
		t.Errorf("copied: %v, the same: %t", err, slices.Equal(sent, got))
	}
	if _, err := c.Alloc(1 << 30); err == nil || err.Error() != "alloc: out of memory" {
		t.Errorf("too much: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Alloc(1); err == nil {
		t.Error("a closed child allocates")
	}
}
