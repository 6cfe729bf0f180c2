package sim

import "github.com/tilewright/tilewright/kernels/ptx"

func (o Options) hertz() float64 {
	if o.Hertz > 0 {
		return o.Hertz
	}
	return standardHertz
}

// Sheet is what a device can do. Zero fields take those of an H100.
type Sheet struct {
	Target             ptx.Target // most a module may ask for
	SMs                int
	SharedPerBlock     int   // bytes, with opt-in
	RegistersPerSM     int   // of 32 bits
	RegistersPerThread int   // most
	ThreadsPerBlock    int   // most
	ThreadsPerSM       int   // most
	BlocksPerCluster   int   // most
	Memory             int64 // bytes of global memory
}

func (s Sheet) withDefaults() Sheet {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	if s.Target == (ptx.Target{}) {
		s.Target = ptx.Target{SM: 90, Arch: 'a'}
	}
	def(&s.SMs, 132)
	def(&s.SharedPerBlock, 227<<10)
	def(&s.RegistersPerSM, 64<<10)
	def(&s.RegistersPerThread, 255)
	def(&s.ThreadsPerBlock, 1024)
	def(&s.ThreadsPerSM, 2048)
	def(&s.BlocksPerCluster, 16)
	if s.Memory == 0 {
		s.Memory = 4 << 30
	}
	return s
}

// Options say what a launch looks for. The zero value only executes. What must be
// found in one launch, or one CTA, if it is found in another is looked for once:
// where neither branches nor addresses depend on data, a launch that repeats one
// in which nothing was found only executes, and where those in shared memory do
// not depend on the CTA either, only the first has its shared memory checked.
type Options struct {
	Counters      bool
	Races         bool    // data races, missing waits and fences
	Uninitialised bool    // reads of registers, shared and global memory
	Workers       int     // goroutines; 0: GOMAXPROCS
	Budget        int64   // warp instructions a CTA may execute; 0: 1<<28
	Hertz         float64 // at which %clock64 counts, against the nanoseconds of %globaltimer; 0: 1e9
}

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
