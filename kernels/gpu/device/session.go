package device

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tilewright/tilewright/kernels"
)

// A Session runs executables on a device. A kernel that hangs or faults loses the
// device: its call fails with the cause, the device is opened and probed again, and
// text is loaded again when it is needed. A session is used from one goroutine at a
// time.
type Session struct {
	open func(context.Context) (Driver, error)
	// Driver is nil until it is needed, and after a loss.
	driver Driver
	spec   Spec
	// Loaded are the modules, and maps the tensor maps, of the current driver.
	loaded map[loadKey]*loadedText
	maps   map[mapKey]TensorMap
	// Data is the sets of arrays that samples are taken on.
	data *resident
	// Stamps is the executable that reads the clocks of the SMs.
	stamps *Executable
	// Records are how samples were taken; samples counts them.
	records []SampleRecord
	samples int
	// LastReference is the latest timing of the reference kernel.
	lastReference ReferenceTiming
	// Resampled counts the repetitions because of an outlying clock.
	resampled int
}

// A loadKey identifies a module.
type loadKey struct {
	text    string
	options LoadOptions
}

// A mapKey has everything that a tensor map depends on.
type mapKey struct {
	spec *TensorMapSpec
	base Address
}

// maxTensorMaps bounds the tensor maps that are kept.
const maxTensorMaps = 1 << 14 // kept

// A loadedText is a module with the functions that were looked up.
type loadedText struct {
	module    Module
	functions map[string]Function
}

// NewSession opens the device with open, which is called again after each loss of the
// device.
func NewSession(
	ctx context.Context, open func(context.Context) (Driver, error),
) (*Session, error) {
	s := &Session{open: open}
	d, err := s.device(ctx)
	if err != nil {
		return nil, err
	}
	s.spec = d.Spec()
	return s, nil
}

// Spec describes the device.
func (s *Session) Spec() Spec { return s.spec }

// device opens and probes the device unless it is open.
func (s *Session) device(ctx context.Context) (Driver, error) {
	if s.driver != nil {
		return s.driver, nil
	}
	d, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	if err := probe(ctx, d); err != nil {
		d.Close()
		return nil, fmt.Errorf("the device does not answer as it should: %w", err)
	}
	s.driver = d
	s.loaded = map[loadKey]*loadedText{}
	s.maps = map[mapKey]TensorMap{}
	s.data = nil
	return d, nil
}

// probe checks that memory can be allocated, written and read.
func probe(ctx context.Context, d Driver) error {
	sent := []byte("what is written is read again...")
	a, err := d.Alloc(int64(len(sent)))
	if err != nil {
		return err
	}
	got := make([]byte, len(sent))
	for _, err := range []error{
		d.CopyIn(a, sent),
		d.Sync(ctx),
		d.CopyOut(got, a),
		d.Free(a),
	} {
		if err != nil {
			return err
		}
	}
	if !bytes.Equal(sent, got) {
		return fmt.Errorf("%q was written, %q is read", sent, got)
	}
	return nil
}

// reopenTimeout bounds the time in which a device has to come back after a loss.
const reopenTimeout = 10 * time.Second

// recordLoss closes the driver if err says that it is lost, and opens the device again
// at once, so that the time is spent by the call that lost it and not by the next one.
func (s *Session) recordLoss(err error) error {
	if !IsSticky(err) || s.driver == nil {
		return err
	}
	s.driver.Close()
	s.driver = nil
	if !errors.Is(err, context.Canceled) {
		ctx, cancel := context.WithTimeout(context.Background(), reopenTimeout)
		defer cancel()
		// Where this fails, the next call tries again and returns the error.
		s.device(ctx)
	}
	return err
}

// Close releases the device.
func (s *Session) Close() error {
	if s.driver == nil {
		return nil
	}
	d := s.driver
	s.driver = nil
	return d.Close()
}

// function finds an entry, after loading the text unless it is loaded.
func (s *Session) function(
	ctx context.Context, w *Executable, entry string,
) (Function, error) {
	key := loadKey{w.PTX, w.Load}
	l := s.loaded[key]
	if l == nil {
		m, err := s.driver.Load(ctx, w.PTX, w.Load)
		if err != nil {
			return nil, err
		}
		l = &loadedText{m, map[string]Function{}}
		s.loaded[key] = l
	}
	if f := l.functions[entry]; f != nil {
		return f, nil
	}
	f, err := l.module.Function(entry)
	if err != nil {
		return nil, err
	}
	l.functions[entry] = f
	return f, nil
}

// functions are those of the steps, in order.
func (s *Session) functions(ctx context.Context, w *Executable) ([]Function, error) {
	all := make([]Function, len(w.Steps))
	for k, step := range w.Steps {
		var err error
		all[k], err = s.function(ctx, w, step.Entry)
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// A Loaded step is the resources of its function, and the number of its clusters that
// run at the same time (0 without clusters).
type Loaded struct {
	Resources
	Clusters int
}

// Load assembles an executable and returns the resources of its steps. A step whose
// clusters the device cannot hold is ErrNotResident.
func (s *Session) Load(ctx context.Context, w *Executable) ([]Loaded, error) {
	if _, err := s.device(ctx); err != nil {
		return nil, err
	}
	all, err := s.functions(ctx, w)
	if err != nil {
		return nil, s.recordLoss(err)
	}
	takes := make([]Loaded, len(all))
	for k, f := range all {
		takes[k], err = s.takes(f, w.Steps[k])
		if err != nil {
			return nil, err
		}
	}
	return takes, nil
}

// takes are the resources of a step.
func (s *Session) takes(f Function, step Step) (l Loaded, err error) {
	if l.Resources = f.Resources(); step.Cluster.Count() == 1 {
		return l, nil
	}
	l.Clusters, err = s.driver.Clusters(step.launch(f))
	if err == nil && l.Clusters == 0 {
		return l, fmt.Errorf(
			"%w: %s: %s never holds a cluster of %d blocks of %d threads and %d bytes",
			ErrNotResident, step.Entry, s.spec.Name,
			step.Cluster.Count(), step.Block.Count(),
			step.SharedBytes,
		)
	}
	return l, s.recordLoss(err)
}

// ErrNotResident is why a step cannot run: the device never holds one of its clusters.
var ErrNotResident = errors.New("no room")

// Unload frees the module of an executable, which executables with the same text
// share.
func (s *Session) Unload(w *Executable) error {
	key := loadKey{w.PTX, w.Load}
	if s.driver == nil || s.loaded[key] == nil {
		return nil
	}
	l := s.loaded[key]
	delete(s.loaded, key)
	return s.recordLoss(l.module.Close())
}

// launches are the steps on given arrays.
func (s *Session) launches(
	w *Executable, functions []Function, on *arrays,
) ([]Launch, error) {
	all := make([]Launch, len(w.Steps))
	for k, step := range w.Steps {
		all[k] = step.launch(functions[k])
		for _, o := range step.Args {
			a, err := s.argument(o, on)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", step.Entry, err)
			}
			all[k].Args = append(all[k].Args, a)
		}
	}
	return all, nil
}

// argument is the value of an operand for given arrays.
func (s *Session) argument(o Operand, on *arrays) (Arg, error) {
	if o.role == roleValue {
		return o.value, nil
	}
	places := on.of(o.role)
	if o.index < 0 || o.index >= len(places) {
		return Arg{}, fmt.Errorf(
			"an argument is array %d of %d", o.index, len(places),
		)
	}
	if o.spec == nil {
		return AddressArg(places[o.index]), nil
	}
	m, err := s.tensorMap(o.spec, places[o.index])
	return TensorMapArg(m), err
}

// tensorMap encodes the tensor map of an array, once for each array and spec.
func (s *Session) tensorMap(spec *TensorMapSpec, base Address) (TensorMap, error) {
	key := mapKey{spec, base}
	if m, known := s.maps[key]; known {
		return m, nil
	}
	placed := *spec
	placed.Base += base
	m, err := s.driver.EncodeTensorMap(placed)
	if err != nil {
		return m, err
	}
	if len(s.maps) >= maxTensorMaps {
		clear(s.maps)
	}
	s.maps[key] = m
	return m, nil
}

// A guardedArray is device memory between two red zones that nobody may write to. A
// simulator checks bounds itself, for reads, too, and gets no red zones.
type guardedArray struct {
	name  string
	whole Address
	bytes int64
	// Edge is the bytes of each red zone.
	edge int64
}

const (
	// RedZone is a multiple of every alignment.
	redZone = 4 << 10
	// Red is the contents of red zones.
	red = 0xA5
)

// data is the address between the red zones.
func (z guardedArray) data() Address { return z.whole + Address(z.edge) }

// allocateGuarded allocates n bytes between red zones.
func (s *Session) allocateGuarded(name string, n int64) (guardedArray, error) {
	z := guardedArray{name: name, bytes: n, edge: redZone}
	if s.spec.Simulated {
		z.edge = 0
	}
	var err error
	z.whole, err = s.driver.Alloc(max(1, n+2*z.edge))
	if err != nil || z.edge == 0 {
		return z, err
	}
	return z, s.driver.Fill(z.whole, red, n+2*z.edge)
}

// checkRedZones returns an error where a red zone was written to.
func (s *Session) checkRedZones(z guardedArray) error {
	if z.edge == 0 {
		return nil
	}
	edge := make([]byte, z.edge)
	for _, side := range []struct {
		name string
		at   Address
	}{{"before", z.whole}, {"after", z.data() + Address(z.bytes)}} {
		if err := s.driver.CopyOut(edge, side.at); err != nil {
			return err
		}
		for k, v := range edge {
			if v != red {
				return fmt.Errorf("wrote outside its arrays on the device: byte %d of the red zone %s %s", k, side.name, z.name)
			}
		}
	}
	return nil
}

// A run is the arrays of an executable on the device, each between red zones.
type run struct {
	arrays
	zones []guardedArray
}

// place allocates the arrays of an executable and copies the inputs and the outputs.
// Outputs are copied so that elements that are not written keep the poison of the
// caller.
func (s *Session) place(
	w *Executable, in, out []kernels.Buffer,
) (*run, error) {
	r := &run{}
	add := func(
		to *[]Address, name string, n int64, from []byte,
	) error {
		z, err := s.allocateGuarded(name, n)
		if z.whole != 0 {
			r.zones = append(r.zones, z)
			*to = append(*to, z.data())
		}
		if err != nil || len(from) == 0 {
			return err
		}
		return s.driver.CopyIn(z.data(), from)
	}
	for k, b := range in {
		err := add(
			&r.in, fmt.Sprintf("input %d", k),
			int64(len(b.Data)), b.Data,
		)
		if err != nil {
			return r, err
		}
	}
	for k, b := range out {
		err := add(
			&r.out, fmt.Sprintf("output %d", k),
			int64(len(b.Data)), b.Data,
		)
		if err != nil {
			return r, err
		}
	}
	for k, n := range w.Scratch {
		err := add(
			&r.scratch, fmt.Sprintf("scratch array %d", k), n, nil,
		)
		if err == nil && k < w.Zeroed {
			err = s.driver.Fill(r.scratch[k], 0, n)
		}
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// free frees the arrays of a run.
func (s *Session) free(r *run) error {
	var all []error
	for _, z := range r.zones {
		all = append(all, s.driver.Free(z.whole))
	}
	return errors.Join(all...)
}

// A timeLimit bounds the device's work for a call: it is the time that is left until
// the deadline of the call's context when the call begins. Opening the device, loading
// and copying are not counted, so that a deadline for a kernel is not spent on its
// arrays.
type timeLimit struct {
	// Outer ends when the call is cancelled, not at its deadline.
	outer context.Context
	// Remaining is 0 where there is no limit.
	remaining time.Duration
	end       context.CancelFunc
}

// timeLimitOf is the limit of a call.
func timeLimitOf(ctx context.Context) timeLimit {
	calm, end := context.WithCancel(context.WithoutCancel(ctx))
	a := timeLimit{outer: calm, end: end}
	if deadline, has := ctx.Deadline(); has {
		a.remaining = max(1, time.Until(deadline))
	}
	context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			end()
		}
	})
	return a
}

// begin is the context of one piece of the device's work.
func (a timeLimit) begin() (context.Context, context.CancelFunc) {
	if a.remaining == 0 {
		return a.outer, func() {}
	}
	return context.WithTimeout(a.outer, a.remaining)
}

// Run copies the inputs to the device, runs the executable, and copies the outputs
// back. A write outside the arrays is an error. The result is the device's time of one
// replay; it is 0 where the device cannot time. The deadline of ctx applies to the
// device's work, from when everything is in place.
func (s *Session) Run(
	ctx context.Context, w *Executable, in, out []kernels.Buffer,
) (time.Duration, error) {
	a := timeLimitOf(ctx)
	defer a.end()
	if _, err := s.device(a.outer); err != nil {
		return 0, err
	}
	r, err := s.place(w, in, out)
	var took time.Duration
	if err == nil {
		took, err = s.execute(a, w, r, out)
	}
	if !IsSticky(err) {
		err = errors.Join(err, s.free(r))
	}
	return took, s.recordLoss(err)
}

// execute runs an executable on arrays, checks the red zones, copies the outputs and
// times a replay.
func (s *Session) execute(
	a timeLimit, w *Executable, r *run, out []kernels.Buffer,
) (time.Duration, error) {
	functions, err := s.functions(a.outer, w)
	if err != nil {
		return 0, err
	}
	all, err := s.launches(w, functions, &r.arrays)
	if err != nil {
		return 0, err
	}
	if err := s.once(a, all); err != nil {
		return 0, err
	}
	for _, z := range r.zones {
		if err := s.checkRedZones(z); err != nil {
			return 0, err
		}
	}
	for k, b := range out {
		if len(b.Data) == 0 {
			continue
		}
		err := s.driver.CopyOut(b.Data, r.out[k])
		if err != nil {
			return 0, err
		}
	}
	if s.spec.Simulated {
		return 0, nil
	}
	seconds, err := s.time(a, Burst{Launches: all})
	if errors.Is(err, ErrUntimed) {
		return 0, nil
	}
	return time.Duration(seconds * float64(time.Second)), err
}

// once runs launches once.
func (s *Session) once(a timeLimit, all []Launch) error {
	ctx, end := a.begin()
	defer end()
	for _, l := range all {
		if err := s.driver.Launch(ctx, l); err != nil {
			return err
		}
	}
	return s.driver.Sync(ctx)
}

// time is the device's time of one replay of a burst, in seconds.
func (s *Session) time(a timeLimit, b Burst) (float64, error) {
	ctx, end := a.begin()
	defer end()
	seconds, err := s.driver.Time(ctx, b, 1)
	if err != nil {
		return 0, err
	}
	return seconds[0], nil
}
