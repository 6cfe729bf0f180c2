package sim

import "github.com/tilewright/tilewright/kernels/ptx"

// hertz is the rate of the clocks, by default standardHertz.
func (o Options) hertz() float64 {
	if o.Hertz > 0 {
		return o.Hertz
	}
	return standardHertz
}

// Sheet is the limits of a device. Zero fields take the values of an H100.
type Sheet struct {
	// Target is the newest target that a module may ask for.
	Target ptx.Target
	// SMs is the number of multiprocessors, which %nsmid and the clocks show.
	SMs int
	// SharedPerBlock is the number of bytes of shared memory of a CTA, with
	// opt-in.
	SharedPerBlock int
	// RegistersPerSM is the number of 32-bit registers of a multiprocessor.
	RegistersPerSM int
	// RegistersPerThread is the maximum number of registers of a thread.
	RegistersPerThread int
	// ThreadsPerBlock is the maximum number of threads of a CTA.
	ThreadsPerBlock int
	// ThreadsPerSM is the maximum number of resident threads of a multiprocessor.
	ThreadsPerSM int
	// BlocksPerCluster is the maximum number of CTAs of a cluster.
	BlocksPerCluster int
	// Memory is the number of bytes of global memory.
	Memory int64
}

// withDefaults fills zero fields in with those of an H100.
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

// Options select what a launch looks for. The zero value only executes.
//
// What must be found in one launch, or one CTA, if it is found in another is
// looked for once: where neither branches nor addresses depend on data, a launch
// that repeats one without findings only executes; where those in shared memory
// do not depend on the CTA either, only the first CTA has its shared memory
// checked.
type Options struct {
	// Counters counts instructions by class and the traffic to memory.
	Counters bool
	// Races finds data races, missing waits and missing fences.
	Races bool
	// Uninitialised finds reads of registers, shared memory and global memory
	// that nothing has written.
	Uninitialised bool
	// ShortSums adds products of 8-bit floats by wgmma in 14 bits, as the tensor cores of
	// sm_90 do, by what is published of them.
	ShortSums bool
	// Workers is the number of goroutines; 0 is GOMAXPROCS.
	Workers int
	// Budget is the number of warp instructions that a CTA may execute; 0 is
	// 1<<28.
	Budget int64
	// Hertz is the rate at which %clock64 counts, against the nanoseconds of
	// %globaltimer; 0 is 1e9.
	Hertz float64
}

// readingCycles is the number of cycles by which the clock of a warp advances
// with each reading and, from one launch to the next, with each warp instruction.
// Clocks are thus the same in every run and never go back.
const readingCycles = 32

const (
	// standardHertz is a cycle a nanosecond.
	standardHertz = 1e9
	// apart is the number of cycles between the readings of two SMs, whose clocks
	// must not be compared.
	apart = 1 << 40
)

// clock is the reading of the clocks of a machine when a launch began, and the
// rate at which its SMs count during it.
type clock struct {
	cycles uint64
	// nanoseconds is the reading of %globaltimer.
	nanoseconds float64
	hertz       float64
}

// read is the value of a special register that counts, on SM number sm, some
// cycles after the launch began.
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

// after is the clock at the end of a launch of so many warp instructions.
func (c clock) after(instructions int64) clock {
	cycles := readingCycles * max(1, instructions)
	c.cycles += uint64(cycles)
	c.nanoseconds += float64(cycles) * 1e9 / c.hertz
	return c
}
