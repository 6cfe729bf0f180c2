package device

import "github.com/tilewright/tilewright/kernels"

// ReferenceKernel is the reference kernel, for tests that run it elsewhere.
var ReferenceKernel = referenceKernel

// Stamps reads the clocks, likewise.
var (
	Stamps       = stamps
	ReadStamps   = readStamps
	ClockBetween = clockBetween
)

// A Stamp is what a block of Stamps wrote, in StampBytes.
type Stamp = stamp

// StampBytes is the size of a Stamp.
const StampBytes = stampBytes

// Where is the time, in nanoseconds, and the number of the SM.
func (s stamp) Where() (nanoseconds, sm uint64) { return s.nanoseconds, s.sm }

// A MatrixLoop is a loop that multiplies matrices, for tests that run it elsewhere.
type MatrixLoop struct {
	Name  string
	FLOPs float64 // of all blocks of an SM, a step
	Work  func(steps int) (*Executable, []kernels.Buffer, error)
}

// MatrixLoops are the loops of a spec.
func MatrixLoops(s Spec) (all []MatrixLoop) {
	for _, l := range matrixLoops(s) {
		all = append(all, MatrixLoop{
			l.name,
			float64(l.blocks) * l.flops,
			func(steps int) (*Executable, []kernels.Buffer, error) { return l.work(s, steps) },
		})
	}
	return all
}
