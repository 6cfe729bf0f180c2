package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
)

// Parameters of the rounds.
const (
	// A turn measures at shortest this long.
	minTurnTime = 8 * time.Millisecond
	// The pause before a turn lets the workers of the last one go to sleep.
	turnPause = 2 * time.Millisecond
	// The fewest rounds that give an interval of 95 %.
	minRounds  = 7
	confidence = 0.95
	// A competitor of which a run takes longer than slowRun, and slowTimes as long as
	// the first competitor's, has one turn: its ratio then has no interval.
	slowRun   = 2 * time.Second
	slowTimes = 10
)

// A competitor is one of the programs that are measured in turns.
type competitor struct {
	// The name in the tables and in the file of samples.
	name string
	// The process that runs it, nil: this one.
	process *os.Process
	// Returns the seconds a run of n runs.
	sample func(ctx context.Context, n int) (float64, error)
	// Seconds of a run before the rounds, and runs of a turn.
	once  float64
	batch int
	// Has one turn only.
	slow bool
	// One sample a round, in the order of the rounds.
	seconds []float64
	// Why the competitor takes no further turns.
	failed error
}

// measureRounds measures all competitors in rounds: in each round every
// competitor has one turn, in shuffled order, so that whatever the machine does
// meanwhile affects all of them, and on the same processors, as many as threads.
// It stops after the given number of rounds, or when the time is over and there were
// at shortest minRounds.
func measureRounds(
	ctx context.Context,
	all []*competitor,
	threads, rounds int,
	limit time.Duration,
	rng *rand.Rand,
) error {
	for _, c := range all {
		c.size(ctx)
		c.slow = c.once > slowRun.Seconds() && c.once > slowTimes*all[0].once
	}
	runtime.GC() // now rather than in somebody's turn
	usable := processors()
	if threads < len(usable) {
		defer place(nil, usable)
	}
	begin := time.Now()
	for n := 0; n < rounds && (n < minRounds ||
		time.Since(begin) < limit); n++ {
		for _, k := range rng.Perm(len(all)) {
			if err := ctx.Err(); err != nil {
				return err
			}
			time.Sleep(turnPause)
			if threads < len(usable) {
				place(all[k].process, inTurn(usable, threads, n))
			}
			all[k].turn(ctx)
		}
	}
	return ctx.Err()
}

// inTurn are the processors of a round: as many as threads, from another one on each time. A
// core whose other thread has work, which a virtual machine does not see, is slow for minutes.
func inTurn(usable []int, threads, round int) (some []int) {
	for n := range threads {
		some = append(some, usable[(round+n)%len(usable)])
	}
	return some
}

// size chooses the batch by the time of one run, after a run that warms up unless that
// was a long one.
func (c *competitor) size(ctx context.Context) {
	for range 2 {
		if c.failed == nil && c.once < slowRun.Seconds() {
			c.once, c.failed = c.sample(ctx, 1)
		}
	}
	c.batch = check.RunsPerSample(c.once, minTurnTime)
}

// turn takes one sample of a competitor that has not failed, unless it is slow and has one.
func (c *competitor) turn(ctx context.Context) {
	if c.failed != nil || c.slow && len(c.seconds) > 0 {
		return
	}
	s, err := c.sample(ctx, c.batch)
	if err != nil {
		c.failed = err
		return
	}
	c.seconds = append(c.seconds, s)
}

// kernelSample times a kernel on several sets of buffers in turn. Like the
// drivers it returns the median, which an interrupted run does not change, and
// makes one additional run before a batch of several, to wake threads.
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
// the first cache if they fit. It returns the shortest time, because the code
// itself is measured and not its surroundings.
func sameSample(
	k kernels.Kernel, in, out []kernels.Buffer,
) func(context.Context, int) (float64, error) {
	return func(ctx context.Context, n int) (float64, error) {
		shortest := math.Inf(1)
		for range max(2, n) { // the shortest: what is looked for is the code, not its surroundings
			d, err := k.Run(ctx, in, out)
			if err != nil {
				return 0, err
			}
			if s := d.Seconds(); s > 0 {
				shortest = min(shortest, s)
			}
		}
		if math.IsInf(shortest, 1) {
			return 0, fmt.Errorf("faster than the clock")
		}
		return shortest, nil
	}
}
