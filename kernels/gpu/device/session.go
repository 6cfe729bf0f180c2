package device

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tilewright/tilewright/kernels"
)

// A Session runs works on a device. A kernel that hangs or faults costs it the
// device: the work that did it fails with the cause, and the next one finds a
// device that was opened and probed again, with its text loaded anew. It is used
// from one goroutine at a time.
type Session struct {
	open          func(context.Context) (Driver, error)
	driver        Driver // nil until it is needed, and after a loss
	spec          Spec
	loaded        map[loadKey]*loadedText
	maps          map[mapKey]TensorMap
	data          *resident   // arrays that are timed on
	stamps        *Executable // reads the clocks of the SMs
	records       []SampleRecord
	samples       int
	lastReference ReferenceTiming // the latest
	resampled     int             // samples taken again because of their clock
}

type loadKey struct {
	text    string
	options LoadOptions
}

// A mapKey is all that a tensor map depends on.
type mapKey struct {
	spec *TensorMapSpec
	base Address
}

const maxTensorMaps = 1 << 14 // kept

type loadedText struct {
	module    Module
	functions map[string]Function
}

// NewSession opens the device with open, which is called again after each
// loss of it.
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

// device opens the device unless it is open, and probes it.
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

// probe shows that memory can be had, written and read.
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

// reopenTimeout is how long a device may take to come back after a loss.
const reopenTimeout = 10 * time.Second

// recordLoss gives the device up when err says that it is lost, and opens it again
// at once: the time is the work's that lost it, not the next one's.
func (s *Session) recordLoss(err error) error {
	if !IsSticky(err) || s.driver == nil {
		return err
	}
	s.driver.Close()
	s.driver = nil
	if !errors.Is(err, context.Canceled) {
		ctx, cancel := context.WithTimeout(context.Background(), reopenTimeout)
		defer cancel()
		s.device(ctx) // where it fails, the next work tries again and says why
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

// function loads a work's text unless it is loaded.
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

// functions are those of a work's steps, in order.
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

// A Loaded is what a step of a work takes, and how many of its clusters run at
// the same time; 0: it has none.
type Loaded struct {
	Resources
	Clusters int
}

// Load assembles a work, so that it is known to assemble, and says what its
// steps take. A work with clusters that the device never holds is an error.
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

// takes is what a step takes that runs a function.
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

// ErrNotResident is why a work cannot run.
var ErrNotResident = errors.New("no room")

// Unload frees what was loaded of a work. Works with the same text share it.
func (s *Session) Unload(w *Executable) error {
	key := loadKey{w.PTX, w.Load}
	if s.driver == nil || s.loaded[key] == nil {
		return nil
	}
	l := s.loaded[key]
	delete(s.loaded, key)
	return s.recordLoss(l.module.Close())
}

// launches are a work's steps on given arrays.
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

// A guardedArray is a piece of memory between two stretches that nobody may write to.
// A simulator has bounds of its own, which reads may not cross either, and gets
// none.
type guardedArray struct {
	name  string
	whole Address
	bytes int64
	edge  int64 // bytes on each side
}

const (
	redZone = 4 << 10 // bytes on each side, a multiple of every alignment
	red     = 0xA5    // what they hold
)

func (z guardedArray) data() Address { return z.whole + Address(z.edge) }

// allocateGuarded allocates memory between red zones.
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

// checkRedZones says where a red zone was written to.
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

// A run is a work's arrays on the device, each between red zones.
type run struct {
	arrays
	zones []guardedArray
}

// place allocates a work's arrays and copies the inputs, and the outputs as
// they are, so that what is not written keeps its poison.
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
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

func (s *Session) free(r *run) error {
	var all []error
	for _, z := range r.zones {
		all = append(all, s.driver.Free(z.whole))
	}
	return errors.Join(all...)
}

// An timeLimit is how long the device may work for a call: what is left of its
// context's deadline when it begins. Opening, loading and copying are not
// counted, so that a deadline for a kernel is not spent on its arrays.
type timeLimit struct {
	outer     context.Context // ends when the call is called off, not when it is late
	remaining time.Duration   // 0: no limit
	end       context.CancelFunc
}

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

// Run copies the inputs to the device, runs the work, and copies the outputs
// back. A write outside the arrays is an error. The time is the device's for
// one replay, 0 where it cannot time. ctx's deadline is for the device's work,
// from when everything is in place.
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

// time is the device's seconds for one replay of a burst.
func (s *Session) time(a timeLimit, b Burst) (float64, error) {
	ctx, end := a.begin()
	defer end()
	seconds, err := s.driver.Time(ctx, b, 1)
	if err != nil {
		return 0, err
	}
	return seconds[0], nil
}
