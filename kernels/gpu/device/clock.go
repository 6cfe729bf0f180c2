package device

import (
	"encoding/binary"
	"fmt"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// What the clock of the SMs was while a sample was timed: each SM's own counter
// is read just before and just after what is timed, and so is the timer of the
// device. The counters of two SMs have nothing to do with each other, so a kernel
// of one thread on each SM reads them all and those of the same SM are compared
// (NVIDIA's nvbench does so with SM 0: detail/timestamps_kernel.cu). The timer
// goes on in steps, of 32 ns to 1 µs on the devices of today: a reading is
// taken where a step ends. It costs two launches and two steps a sample, some
// microseconds, in which the device does next to nothing.

const (
	stampBytes    = 24      // cycles, nanoseconds, number of the SM
	maxStepCycles = 1 << 14 // that a step of the timer may take, some 9 µs; with longer ones the clock is unknown
	minStampSpan  = 50_000  // ns between two readings, in which they may be 0.2 µs off
)

// stamps is the work whose blocks, one an SM, each write a stamp.
func stamps(s Spec) (*Executable, error) {
	b := ptx.NewBuilder(
		ptx.Version{Major: 8, Minor: 0}, PTXTarget(s),
	)
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
		Steps: []Step{{
			Entry: "stamp",
			Grid:  Dim3{X: s.SMs},
			Block: Dim3{X: 1},
			Args:  []Operand{Output(0)},
		}},
	}, nil
}

// A stamp is what a block wrote.
type stamp struct{ cycles, nanoseconds, sm uint64 }

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

// clockBetween is the highest clock, in Hz, of the SMs that stamped before and
// after: a counter may stand still while its SM has nothing to do, none runs
// ahead. It is 0, unknown, where no SM stamped twice, the timer's steps are too
// long or the time between is too short to tell.
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

// stampLaunches read the clocks, to an address and to the one behind that.
func (s *Session) stampLaunches(a timeLimit, to Address) (before, after []Launch, err error) {
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
	if err == nil {
		after, err = s.launches(s.stamps, functions, &arrays{
			out: []Address{to + Address(s.stampBufferBytes())},
		})
	}
	return before, after, err
}

// stampBufferBytes is room for the stamps of all SMs.
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
