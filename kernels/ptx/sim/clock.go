package sim

import "github.com/tilewright/tilewright/kernels/ptx"

// What the clocks of a simulated device read is the same in every run. They go
// on by so many cycles with each reading of a warp and, from one launch to the
// next, with each warp instruction, so that they never go back.
const readingCycles = 32

const (
	standardHertz = 1e9     // a cycle a nanosecond
	apart         = 1 << 40 // cycles between what two SMs count, which must not be compared
)

// A clock is where the clocks of a machine stood when a launch began, and the
// rate at which its SMs count during it.
type clock struct {
	cycles      uint64
	nanoseconds float64 // of %globaltimer
	hertz       float64
}

func (o Options) hertz() float64 {
	if o.Hertz > 0 {
		return o.Hertz
	}
	return standardHertz
}

// read is a special register that counts, on SM number sm, some cycles after
// the launch began.
func (c clock) read(s ptx.Special, sm int, cycles int64) uint64 {
	v := c.cycles + uint64(cycles) + uint64(sm)*apart
	if s >= ptx.Globaltimer {
		v = uint64(c.nanoseconds + float64(cycles)*1e9/c.hertz)
	}
	if s == ptx.ClockHi || s == ptx.GlobaltimerHi {
		v >>= 32
	}
	return v
}

// after is the clock when a launch of so many warp instructions has ended.
func (c clock) after(instructions int64) clock {
	cycles := readingCycles * max(1, instructions)
	c.cycles += uint64(cycles)
	c.nanoseconds += float64(cycles) * 1e9 / c.hertz
	return c
}

// readClock reads a register that counts.
func (w *warp) readClock(in *instr, s ptx.Special) {
	w.ticks += readingCycles
	g := w.cta.grid
	w.putAll(
		in.list[0],
		g.clock.read(
			s, w.cta.cluster.unit%g.sheet.SMs, w.ticks,
		),
	)
}
