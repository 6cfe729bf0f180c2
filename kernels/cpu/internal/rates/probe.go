package rates

import (
	"slices"
	"time"
)

// A Probe finds out whether something else runs on the lanes of this machine. The zero
// value is ready; it is used by one goroutine at a time.
type Probe struct {
	alone float64 // steps/s of the fastest spin so far
}

const (
	spinSteps  = 1 << 18 // of a spin: a third of a millisecond
	aloneSpins = 5       // of the first probe, of which the fastest is what a lane does alone
)

// Share is the share of its rate alone that the slowest of n lanes keeps while all of
// them spin: 1 on a quiet machine, 1/2 where another process has half of one.
func (p *Probe) Share(n int) float64 {
	if p.alone == 0 {
		for range aloneSpins {
			p.alone = max(p.alone, spin())
		}
	}
	// All lanes at once: a kernel on all of them waits for the slowest.
	rates := onLanes(n, func(int) float64 { return spin() })
	p.alone = max(p.alone, slices.Max(rates))
	return slices.Min(rates) / p.alone
}

// spin counts with a dependence from each step to the next, so that only the clock of a
// core and what else runs on it matter, and returns steps/s.
func spin() float64 {
	begin := time.Now()
	x := uint64(1)
	for range spinSteps {
		x = x*0x5851f42d4c957f2d + 1
	}
	if x == 0 {
		return 0 // never, but x is used
	}
	return spinSteps / time.Since(begin).Seconds()
}
