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

// How a work is timed: launches over several sets of arrays in turn, as many
// as take twice the L2 cache, so that no launch finds its arrays there; all of
// them in one graph, so that the host's part of a launch does not count. Which
// works are compared, in what order, is the tuner's.

const (
	maxSets     = 1000    // of arrays, and so launches of a graph
	memoryShare = 4       // a fourth of the memory at most is taken by sets
	anchorEvery = 16      // samples
	maxDrift    = 0.02    // of the anchor, above which a sample is taken again
	spinSteps   = 100_000 // dependent multiply-adds of the anchor, some 0.2 ms
	spinBytes   = 24      // cycles, nanoseconds and the sum, which keeps the loop alive
)

// A resident is sets of arrays on the device that works are timed on.
type resident struct {
	of     *kernels.Set // the first of the host's
	sets   []arrays
	next   int
	stamps Address // of all SMs, before a sample and after it
}

// Sample times n runs of a work on copies of sets, one after the other and at
// least one on each, and returns seconds a run and the clock of the SMs
// meanwhile. The first call for these sets copies them to the device; only those
// of one bench are kept there. ctx's deadline is as in Run.
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
	if s.samples++; s.samples%anchorEvery == 1 {
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

// sample takes one sample, and says in e how.
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

// burst is n runs of a work on the sets in turn, between two readings of the
// clocks.
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
	b.Before, b.After, err = s.stampLaunches(a, s.data.stamps)
	return b, err
}

func (s *Session) scratch(w *Executable) ([]Address, error) {
	var all []Address
	for _, n := range w.Scratch {
		a, err := s.driver.Alloc(n)
		if err != nil {
			s.freeAll(all)
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// freeAll is for what is freed after an error, too, which is then the one that
// counts.
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

func setBytes(set kernels.Set) (n int64) {
	for _, b := range append(append([]kernels.Buffer{}, set.In...), set.Out...) {
		n += int64(len(b.Data))
	}
	return n
}

// rotation is how many sets of n bytes are used in turn: twice the L2 cache,
// at least two of them, as long as there is memory.
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

// timeReference times a kernel that is always the same and reads the SM's clock in
// it. It says whether the device became faster or slower by more than 2 %.
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

// referenceKernel is the anchor: one thread that does a fixed number of dependent
// multiply-adds and stores the cycles of its SM and the nanoseconds of the
// device's timer that went by.
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
