package kernels

import "context"

// A Set is the arrays of one run.
type Set struct{ In, Out []Buffer }

// A Timing is one sample of a kernel.
type Timing struct {
	// Seconds is the time of a run.
	Seconds float64
	// Hertz is the clock of the device during the sample; 0 where it is not known.
	Hertz float64
}

// A Sampler is a Kernel whose arrays are not in these buffers while it runs, but on a
// device: it keeps copies of the sets there.
type Sampler interface {
	Kernel
	// Sample runs n times, or somewhat more often, on the sets in turn, and times the
	// runs without transfers. Sets are identified by their first element: a bench
	// passes the same slice each time.
	Sample(ctx context.Context, sets []Set, n int) (Timing, error)
}

// An OutputReader is a Sampler whose results of timed runs can be read.
type OutputReader interface {
	Sampler
	// ReadOutputs copies the results of the last run of the last Sample to out, which
	// has the shapes of Set.Out.
	ReadOutputs(ctx context.Context, out []Buffer) error
}
