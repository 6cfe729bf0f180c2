package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
)

// What rounds go by.
const (
	minTurnTime = 8 * time.Millisecond // a turn measures at least this long
	turnPause   = 2 * time.Millisecond // before a turn, until workers of the last one sleep
	minRounds   = 7                    // rounds: enough for an interval of 95 %
	confidence  = 0.95
)

// A competitor is measured in turns.
type competitor struct {
	name    string
	sample  func(ctx context.Context, n int) (float64, error)
	batch   int // runs a turn
	seconds []float64
	failed  error
}

// measureRounds measures all in rounds: in each every contender once, in shuffled
// order, so that whatever the machine does meanwhile meets all of them. It
// stops after the rounds wanted, or when the time is over and there were enough.
func measureRounds(
	ctx context.Context, all []*competitor, rounds int,
	limit time.Duration, rng *rand.Rand,
) error {
	for _, c := range all {
		c.size(ctx)
	}
	runtime.GC() // now rather than in somebody's turn
	begin := time.Now()
	for n := 0; n < rounds && (n < minRounds || time.Since(begin) < limit); n++ {
		for _, k := range rng.Perm(len(all)) {
			if err := ctx.Err(); err != nil {
				return err
			}
			time.Sleep(turnPause)
			all[k].turn(ctx)
		}
	}
	return ctx.Err()
}

// size chooses the batch by one run, after one that warms up.
func (c *competitor) size(ctx context.Context) {
	var seconds float64
	for range 2 {
		if c.failed == nil {
			seconds, c.failed = c.sample(ctx, 1)
		}
	}
	c.batch = check.RunsPerSample(seconds, minTurnTime)
}

func (c *competitor) turn(ctx context.Context) {
	if c.failed != nil {
		return
	}
	s, err := c.sample(ctx, c.batch)
	if err != nil {
		c.failed = err
		return
	}
	c.seconds = append(c.seconds, s)
}

// kernelSample times a kernel on buffers used in turn. As the drivers do, it
// gives the median, which a run that was interrupted does not move, and a batch
// of several has one run more before, to wake threads.
func kernelSample(
	b *check.Bench, k kernels.Kernel,
) func(context.Context, int) (float64, error) {
	return func(ctx context.Context, n int) (float64, error) {
		if n > 1 {
			if _, err := b.Run(ctx, k); err != nil {
				return 0, err
			}
		}
		seconds := make([]float64, n)
		for r := range seconds {
			d, err := b.Run(ctx, k)
			if err != nil {
				return 0, err
			}
			seconds[r] = d.Seconds()
		}
		return median(seconds), nil
	}
}

// sameSample times a kernel on the same buffers again and again, which stay in
// the first cache when they fit.
func sameSample(
	k kernels.Kernel, in, out []kernels.Buffer,
) func(context.Context, int) (float64, error) {
	return func(ctx context.Context, n int) (float64, error) {
		least := math.Inf(1)
		for range max(2, n) { // the least: what is looked for is the code, not its surroundings
			d, err := k.Run(ctx, in, out)
			if err != nil {
				return 0, err
			}
			if s := d.Seconds(); s > 0 {
				least = min(least, s)
			}
		}
		if math.IsInf(least, 1) {
			return 0, fmt.Errorf("faster than the clock")
		}
		return least, nil
	}
}
