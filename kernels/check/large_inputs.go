package check

import (
	"context"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Limits beyond which inputs are not copied, so that a fusion that reads a table of
// half a gigabyte is tuned with little more memory than that.
const (
	maxCopiedBytes = 64 << 20  // of inputs that a verification copies for each run, between red zones
	maxCasesBytes  = 512 << 20 // of inputs of which there are several cases
)

// bytesOf is the number of bytes of arrays.
func bytesOf(all []kernels.Buffer) (n int64) {
	for _, b := range all {
		n += int64(len(b.Data))
	}
	return n
}

// inputBytes is the number of bytes of the parameters of c.
func inputBytes(c *hlo.Computation) (n int64) {
	for _, p := range c.Params {
		n += p.Shape.Bytes()
	}
	return n
}

// restoreInputs makes the inputs of a case again, in place.
func restoreInputs(
	ctx context.Context, c *hlo.Computation, in []kernels.Buffer,
	content Content, seed int64, planted bool,
) error {
	err := fillAll(ctx, c, in, content, seed)
	if err == nil && planted {
		plantNaN(c, in)
	}
	return err
}

// NewBench is the function NewBench for the fusion and the seed of v. Large inputs are
// those that v has.
func (v *Verifier) NewBench(ctx context.Context, seed, span int64) (*Bench, error) {
	for _, c := range v.cases {
		if c.name == randomInputs && bytesOf(c.in) > maxCopiedBytes {
			return newBenchOn(v.c, c.in, span)
		}
	}
	return NewBench(ctx, v.c, seed, span)
}
