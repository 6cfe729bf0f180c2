package device

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/ptx"
)

// A sample times launches of an executable over several sets of arrays in turn, as
// many as take twice the L2 cache, so that no launch finds its arrays in the cache.
// All launches of a sample are one graph, so that the host's part of a launch is not
// timed. The tuner decides what is compared and in which order.

const (
	// MaxSets bounds the sets of arrays, and so the launches of a graph.
	maxSets = 1000
	// Sets take at most a fourth of the device's memory.
	memoryShare = 4
	// The reference kernel is timed with every 16th sample.
	referenceEvery = 16
	// A sample is repeated if the time of the reference kernel has changed by more
	// than 2 %.
	maxDrift = 0.02
	// SpinSteps is the dependent multiply-adds of the reference kernel, some 0.2 ms.
	spinSteps = 100_000
	// Its result is the cycles, the nanoseconds, and the sum, which keeps the loop
	// from being removed.
	spinBytes = 24
)

// A resident value is sets of arrays on the device that samples are taken on.
type resident struct {
	// Of is the first of the host's sets, which identifies them.
	of   *kernels.Set
	sets []arrays
	// Next is the set of the next launch.
	next int
	// Stamps has room for the clocks of all SMs before and after a sample.
	stamps Address
}

// Sample times n runs of an executable on copies of sets, one after the other and at
// least one on each set. It returns seconds a run and the clock of the SMs. The first
// call with these sets copies them to the device; only one list of sets is kept there.
// The deadline of ctx is as in Run.
func (s *Session) Sample(
	ctx context.Context, w *Executable, sets []kernels.Set, n int,
) (kernels.Timing, error) {
	a := timeLimitOf(ctx)
	defer a.end()
	if _, err := s.device(a.outer); err != nil {
		return kernels.Timing{}, err
	}
	e := SampleRecord{Number: s.samples + 1}
	t, err := s.resample(a, w, sets, n, &e)
	if err != nil {
		return kernels.Timing{}, s.recordLoss(err)
	}
	if s.samples++; s.samples%referenceEvery == 1 {
		e.Reference, err = s.timeReference(a)
	}
	if err == nil && e.Reference.Drifted {
		t, err = s.resample(a, w, sets, n, &e)
	}
	if err != nil {
		return kernels.Timing{}, s.recordLoss(err)
	}
	s.record(e)
	return t, nil
}

// sample takes one sample and records in e how.
func (s *Session) sample(
	a timeLimit, w *Executable,
	sets []kernels.Set, n int, e *SampleRecord,
) (t kernels.Timing, err error) {
	if err := s.upload(sets); err != nil {
		return t, err
	}
	scratch, err := s.scratch(w)
	if err != nil {
		return t, err
	}
	defer s.freeAll(scratch)
	n = min(max(n, len(s.data.sets)), maxSets)
	b, err := s.burst(a, w, scratch, n)
	if err != nil {
		return t, err
	}
	e.Attempts = e.Attempts + 1
	e.Launches = len(b.Launches)
	e.Sets = len(s.data.sets)
	if t.Seconds, err = s.time(a, b); err != nil {
		return t, err
	}
	t.Seconds /= float64(n)
	t.Hertz, err = s.clockOf(s.data.stamps)
	e.Hertz = t.Hertz
	return t, err
}

// ReadOutputs copies the outputs of the last run of the last sample to out.
func (s *Session) ReadOutputs(ctx context.Context, out []kernels.Buffer) error {
	d := s.data
	if d == nil {
		return errors.New("no sample was taken")
	}
	if _, err := s.device(ctx); err != nil {
		return err
	}
	if s.data != d {
		return errors.New("the device was lost since the sample was taken")
	}
	last := d.sets[(d.next+len(d.sets)-1)%len(d.sets)]
	if len(out) != len(last.out) {
		return fmt.Errorf("%d outputs asked for, the sample has %d", len(out), len(last.out))
	}
	for k, b := range out {
		if len(b.Data) == 0 {
			continue
		}
		if err := s.driver.CopyOut(b.Data, last.out[k]); err != nil {
			return s.recordLoss(err)
		}
	}
	return nil
}

// burst is n runs on the sets in turn, between two readings of the clocks.
func (s *Session) burst(
	a timeLimit, w *Executable, scratch []Address, n int,
) (b Burst, err error) {
	functions, err := s.functions(a.outer, w)
	if err != nil {
		return b, err
	}
	for range n {
		set := s.data.sets[s.data.next]
		s.data.next = (s.data.next + 1) % len(s.data.sets)
		set.scratch = scratch
		l, err := s.launches(w, functions, &set)
		if err != nil {
			return b, err
		}
		b.Launches = append(b.Launches, l...)
	}
	b.Before, b.After, err = s.stampLaunches(a, len(b.Launches), s.data.stamps)
	return b, err
}

// scratch allocates the scratch arrays of an executable, which all runs share.
func (s *Session) scratch(w *Executable) ([]Address, error) {
	var all []Address
	for k, n := range w.Scratch {
		a, err := s.driver.Alloc(n)
		if err != nil {
			s.freeAll(all)
			return nil, err
		}
		all = append(all, a)
		if k >= w.Zeroed {
			continue
		}
		if err := s.driver.Fill(a, 0, n); err != nil {
			s.freeAll(all)
			return nil, err
		}
	}
	return all, nil
}

// freeAll frees arrays. Its errors are ignored, because it also runs after an error,
// which is then the one to report.
func (s *Session) freeAll(all []Address) {
	for _, a := range all {
		s.driver.Free(a)
	}
}

// upload copies sets to the device unless they are there.
func (s *Session) upload(sets []kernels.Set) error {
	if len(sets) == 0 {
		return errors.New("there is nothing to time on")
	}
	if s.data != nil && s.data.of == &sets[0] {
		return nil
	}
	s.freeData()
	room, err := s.driver.Alloc(2 * s.stampBufferBytes())
	if err != nil {
		return err
	}
	s.data = &resident{stamps: room}
	for k := range s.rotation(setBytes(sets[0])) {
		s.data.sets = append(s.data.sets, arrays{})
		on := &s.data.sets[k]
		host := sets[k%len(sets)]
		err := s.uploadAll(&on.in, host.In)
		if err == nil {
			err = s.uploadAll(&on.out, host.Out)
		}
		if err != nil {
			s.freeData()
			return err
		}
	}
	s.data.of = &sets[0]
	return nil
}

// freeData frees the sets on the device.
func (s *Session) freeData() {
	if s.data == nil {
		return
	}
	s.driver.Free(s.data.stamps)
	for _, a := range s.data.sets {
		s.freeAll(a.in)
		s.freeAll(a.out)
	}
	s.data = nil
}

// uploadAll copies arrays to the device.
func (s *Session) uploadAll(to *[]Address, from []kernels.Buffer) error {
	for _, b := range from {
		a, err := s.driver.Alloc(max(1, int64(len(b.Data))))
		if err != nil {
			return err
		}
		*to = append(*to, a)
		if len(b.Data) == 0 {
			continue
		}
		if err := s.driver.CopyIn(a, b.Data); err != nil {
			return err
		}
	}
	return nil
}

// setBytes is the size of a set.
func setBytes(set kernels.Set) (n int64) {
	for _, b := range append(append([]kernels.Buffer{}, set.In...), set.Out...) {
		n += int64(len(b.Data))
	}
	return n
}

// rotation is the number of sets of n bytes that are used in turn: enough for twice
// the L2 cache, at least two, and no more than the memory allows.
func (s *Session) rotation(n int64) int {
	n = max(n, 1)
	sets := max(2, (2*s.spec.L2+n-1)/n)
	if s.spec.Memory > 0 {
		sets = min(
			sets, max(1, s.spec.Memory/memoryShare/n),
		)
	}
	return int(min(sets, maxSets))
}

// timeReference times the reference kernel and reads its SM's clock. Drifted is set
// where its time has changed by more than 2 % since the last time.
func (s *Session) timeReference(a timeLimit) (ReferenceTiming, error) {
	w, err := referenceKernel(s.spec)
	if err != nil {
		return ReferenceTiming{}, err
	}
	out := []kernels.Buffer{
		{Data: make([]byte, spinBytes)},
	}
	r, err := s.place(w, nil, out)
	if err != nil {
		return ReferenceTiming{}, err
	}
	now, err := s.readReference(a, w, r)
	if !IsSticky(err) {
		err = errors.Join(err, s.free(r))
	}
	if err != nil {
		return ReferenceTiming{}, fmt.Errorf("the anchor: %w", err)
	}
	if last := s.lastReference.Seconds; last > 0 {
		now.Drifted = math.Abs(now.Seconds/last-1) > maxDrift
	}
	s.lastReference = now
	return now, nil
}

// readReference runs the reference kernel and reads its results.
func (s *Session) readReference(
	a timeLimit, w *Executable, r *run,
) (now ReferenceTiming, err error) {
	functions, err := s.functions(a.outer, w)
	if err != nil {
		return now, err
	}
	all, err := s.launches(w, functions, &r.arrays)
	if err != nil {
		return now, err
	}
	now.Seconds, err = s.time(a, Burst{Launches: all})
	if err != nil {
		return now, err
	}
	var out [spinBytes]byte
	if err := s.driver.CopyOut(
		out[:], r.out[0],
	); err != nil {
		return now, err
	}
	cycles := binary.LittleEndian.Uint64(out[:])
	nanoseconds := binary.LittleEndian.Uint64(out[8:])
	if nanoseconds > 0 {
		now.Hertz = float64(cycles) / float64(nanoseconds) * 1e9
	}
	return now, nil
}

// referenceKernel is one thread that does a fixed number of dependent multiply-adds
// and stores the cycles of its SM and the nanoseconds of the device's timer that have
// passed. Its time depends on nothing but the clock, so a change of it shows that
// samples are not comparable.
func referenceKernel(s Spec) (*Executable, error) {
	b := ptx.NewBuilder(
		ptx.Version{Major: 8, Minor: 0}, PTXTarget(s),
	)
	c := b.Entry("spin")
	c.Param(ptx.U64, "out")
	out := c.LoadParam("out")
	ns := c.Special(ptx.Globaltimer)
	cycles := c.Special(ptx.Clock64)
	x := c.Var(ptx.F32, ptx.F32Imm(1))
	c.For(ptx.Int(0), ptx.Int(spinSteps), 1, func(ptx.Operand) {
		c.Emit(
			"fma.rn.f32", x, x, ptx.F32Imm(0.5), ptx.F32Imm(1),
		)
	})
	c.Emit("st.global.f32", ptx.Mem(out, 16), x)
	c.Emit(
		"st.global.u64",
		ptx.Mem(out, 0),
		c.Sub(c.Special(ptx.Clock64), cycles),
	)
	c.Emit(
		"st.global.u64",
		ptx.Mem(out, 8),
		c.Sub(c.Special(ptx.Globaltimer), ns),
	)
	m, err := b.Module()
	if err != nil {
		return nil, err
	}
	return &Executable{
		PTX: string(m.Text()),
		Steps: []Step{{
			Entry: "spin",
			Block: Dim3{X: 1},
			Args:  []Operand{Output(0)},
		}},
	}, nil
}
