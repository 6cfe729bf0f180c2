package device

import (
	"encoding/binary"
	"fmt"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// The clock of the SMs during a sample is measured with their own cycle counters,
// which are read just before and just after the timed launches together with the
// device's timer. Counters of different SMs are unrelated, so a kernel with one thread
// on each SM reads all of them, and readings of the same SM are compared (NVIDIA's
// nvbench does so with SM 0: detail/timestamps_kernel.cu). The timer advances in
// steps, of 32 ns to 1 µs on the devices of today, so a reading is taken at the end of
// a step. The cost is two launches and two steps a sample, some microseconds in which
// the device is almost idle.

const (
	// A stamp is the cycles, the nanoseconds and the number of the SM.
	stampBytes = 24
	// MaxStepCycles is the longest step of the timer that is waited for, some 9 µs;
	// the clock is not known where steps are longer.
	maxStepCycles = 1 << 14
	// MinStampSpan is the least time between two readings, in ns; a reading may be 0.2
	// µs off.
	minStampSpan = 50_000
)

// The host queues the event and the graph of a sample while one thread keeps the stream
// busy: behind an idle stream the host's time of launching the graph, 3 to 10 µs and more
// for many nodes, would be a part of the sample (NVIDIA's nvbench has such a blocking
// kernel: detail/measure_cold.cuh).
const (
	// HoldSeconds is the time of the host for an event, a graph and the kernel before it,
	// and holdNodeSeconds that of each node of a graph (NVIDIA, "Constant Time Launch for
	// Straight-Line CUDA Graphs", 2024: 2 µs and 0.2 µs a node before CUDA 12.6), both
	// with a margin.
	holdSeconds     = 30e-6
	holdNodeSeconds = 0.4e-6
	// HoldCycles is the least cycles of a step of the loop, a dependent multiply-add.
	holdCycles = 4
	// HighestClock of the SMs of any device so far, in Hz.
	highestClock = 3e9
)

// hold adds a kernel of one thread that takes at least its second argument in steps. What
// it writes, the first four bytes of the stamps, is overwritten.
func hold(b *ptx.Builder) Step {
	c := b.Entry("hold")
	c.Param(ptx.U64, "out")
	c.Param(ptx.U32, "steps")
	out := c.LoadParam("out")
	x := c.Var(ptx.F32, ptx.F32Imm(1))
	c.For(ptx.Int(0), c.LoadParam("steps"), 1, func(ptx.Operand) {
		c.Emit("fma.rn.f32", x, x, ptx.F32Imm(0.5), ptx.F32Imm(1))
	})
	c.Emit("st.global.f32", ptx.Mem(out, 0), x)
	return Step{
		Entry: "hold",
		Block: Dim3{X: 1},
		Args:  []Operand{Output(0), Value(U32Arg(holdSteps(1)))},
	}
}

// holdSteps is how long a graph of so many nodes is held up.
func holdSteps(nodes int) uint32 {
	seconds := holdSeconds + holdNodeSeconds*float64(nodes)
	return uint32(seconds * highestClock / holdCycles)
}

// stamps is the executable whose last step's blocks, one an SM, each write a stamp, and
// whose first holds up the stream.
func stamps(s Spec) (*Executable, error) {
	b := ptx.NewBuilder(
		ptx.Version{Major: 8, Minor: 0}, PTXTarget(s),
	)
	first := hold(b)
	c := b.Entry("stamp")
	c.Param(ptx.U64, "out")
	at := c.Add(
		c.LoadParam("out"),
		c.MulWide(c.Special(ptx.CTAidX), ptx.Int(stampBytes)),
	)
	begin := c.Special(ptx.Clock64)
	before := c.Special(ptx.Globaltimer)
	ns := c.Reg(ptx.U64)
	cycles := c.Reg(ptx.U64)
	var same ptx.Operand
	c.Repeat(func() ptx.Operand {
		c.Emit("mov.u64", ns, ptx.Sreg(ptx.Globaltimer))
		c.Emit("mov.u64", cycles, ptx.Sreg(ptx.Clock64))
		same = c.Let("setp.eq.u64", ns, before)
		soon := c.Let(
			"setp.lt.u64",
			c.Sub(cycles, begin),
			ptx.Int(int64(maxStepCycles)),
		)
		return c.Let("and.pred", same, soon)
	})
	c.Emit("st.global.u64", ptx.Mem(at, 0), cycles)
	c.Emit(
		"st.global.u64",
		ptx.Mem(at, 8),
		c.Let("selp.u64", ptx.Int(int64(0)), ns, same),
	)
	c.Emit(
		"st.global.u64",
		ptx.Mem(at, 16),
		c.Let("cvt.u64.u32", c.Special(ptx.SMID)),
	)
	m, err := b.Module()
	if err != nil {
		return nil, err
	}
	return &Executable{
		PTX: string(m.Text()),
		Steps: []Step{first, {
			Entry: "stamp",
			Grid:  Dim3{X: s.SMs},
			Block: Dim3{X: 1},
			Args:  []Operand{Output(0)},
		}},
	}, nil
}

// A stamp is what one block wrote.
type stamp struct{ cycles, nanoseconds, sm uint64 }

// readStamps decodes stamps.
func readStamps(b []byte) (all []stamp) {
	for ; len(b) >= stampBytes; b = b[stampBytes:] {
		all = append(all, stamp{
			binary.LittleEndian.Uint64(b),
			binary.LittleEndian.Uint64(b[8:]),
			binary.LittleEndian.Uint64(b[16:]),
		})
	}
	return all
}

// clockBetween is the highest clock, in Hz, of the SMs that stamped both before and
// after: the counter of an SM may stop while the SM is idle, and none runs ahead. It
// is 0, not known, where no SM stamped twice, the timer's steps are too long or the
// time between is too short.
func clockBetween(before, after []stamp) (hertz float64) {
	began := map[uint64]stamp{}
	for _, x := range before {
		began[x.sm] = x
	}
	for _, x := range after {
		b, known := began[x.sm]
		if !known || b.nanoseconds == 0 ||
			x.nanoseconds < b.nanoseconds+minStampSpan ||
			x.cycles < b.cycles {
			continue
		}
		hertz = max(
			hertz,
			float64(x.cycles-b.cycles)/float64(x.nanoseconds-b.nanoseconds)*1e9,
		)
	}
	return hertz
}

// stampLaunches are the launches around a sample of so many nodes: before it one that
// holds up the stream and one that reads the clocks to an address, and after it one that
// reads them to what follows.
func (s *Session) stampLaunches(a timeLimit, nodes int, to Address) (before, after []Launch, err error) {
	if s.stamps == nil {
		if s.stamps, err = stamps(s.spec); err != nil {
			return nil, nil, err
		}
	}
	functions, err := s.functions(a.outer, s.stamps)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the clocks: %w", err)
	}
	before, err = s.launches(s.stamps, functions, &arrays{
		out: []Address{to},
	})
	if err != nil {
		return nil, nil, err
	}
	before[0].Args[1] = U32Arg(holdSteps(nodes))
	after, err = s.launches(s.stamps, functions, &arrays{
		out: []Address{to + Address(s.stampBufferBytes())},
	})
	if err != nil {
		return nil, nil, err
	}
	return before, after[1:], nil
}

// stampBufferBytes is the size of the stamps of all SMs.
func (s *Session) stampBufferBytes() int64 {
	return int64(s.spec.SMs * stampBytes)
}

// clockOf is the clock between the two stamps of each SM.
func (s *Session) clockOf(at Address) (hertz float64, err error) {
	n := s.stampBufferBytes()
	b := make([]byte, 2*n)
	if err := s.driver.CopyOut(b, at); err != nil {
		return 0, err
	}
	return clockBetween(
		readStamps(b[:n]), readStamps(b[n:]),
	), nil
}
