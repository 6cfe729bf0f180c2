package check

import (
	"context"
	"math/rand/v2"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Parameters of large inputs.
const (
	// Elements from which on an input repeats a pool of random ones, in the order of
	// memory: a table of 300 million normal numbers takes seconds, for each case and
	// each set of a race.
	pooledFrom = 1 << 22
	// Elements of the pool: a prime, so that an address that is wrong by any number of
	// rows, tiles or pages meets other values.
	poolElements = 1048573
)

// fillPooled fills a large buffer by copies of a pool.
func fillPooled(
	ctx context.Context, b kernels.Buffer, content Content, rng *rand.Rand,
) error {
	pool, err := kernels.NewBuffer(hlo.Shape{
		DType: b.Shape.DType,
		Dims:  []int64{poolElements},
	})
	if err != nil {
		return err
	}
	if err := fill(ctx, pool, content, rng); err != nil {
		return err
	}
	for at := 0; at < len(b.Data); at += copy(b.Data[at:], pool.Data) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}
