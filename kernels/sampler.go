package kernels

import "context"

// A Set is what one run needs.
type Set struct{ In, Out []Buffer }

// A Timing is one sample of a kernel.
type Timing struct {
	Seconds float64 // a run
	Hertz   float64 // the device's clock meanwhile; 0: unknown
}

// A Sampler is a Kernel whose arrays have to be somewhere else than these
// buffers while it is timed: it keeps copies of the sets there.
type Sampler interface {
	Kernel
	// Sample runs n times, or somewhat more, on the sets in turn, and times it
	// without transfers. A bench's sets are always the same slice.
	Sample(ctx context.Context, sets []Set, n int) (Timing, error)
}
