// Package rates measures this machine: products of the dot kernel on operands in the
// first cache, bytes that are moved within half of each cache and in memory, and whether
// anything else runs.
package rates

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu/internal/gemm"
)

const (
	loopSpan       = 4 * time.Millisecond // of the loop of one rate in one round
	quietShare     = 0.9                  // of its rate alone that a lane keeps on a quiet machine
	disturbedShare = 50                   // of the time of a round: more than this part makes it a disturbed one
	minQuietRounds = 5                    // of which the rates are taken; with fewer the machine is busy
	rateQuantile   = 0.9                  // of the rounds: other work makes a rate lower, never higher
)

// Settings say how to measure a device.
type Settings struct {
	// Span is the time to measure for; at least one round is.
	Span time.Duration
	// Limit is the most bytes of arrays on all lanes together.
	Limit int64
	// Last is the index of the last cache that lanes share, of which the bytes that it
	// keeps are measured; −1: there is none.
	Last int
	// Typical rates replace those that contradict each other.
	Typical kernels.Rates
}

// Measure measures rounds until a time is over, at least one: a short loop for each rate,
// on all lanes at once, between two probes. Rounds in which something else ran are left
// out. The error is the cause of a context that ended before.
func Measure(
	ctx context.Context, d kernels.Device, s Settings,
) (kernels.Rates, error) {
	if s.Last >= 0 {
		d.Levels = slices.Clone(d.Levels)
		d.Levels[s.Last].Kept = keptBytes(d.Levels[s.Last].Bytes, max(1, d.Lanes))
	}
	loops := loopsOf(d, s.Limit)
	var probe Probe
	// Rates of all rounds, and of those in which nothing else ran.
	var quiet, all [][]float64
	for end := time.Now().Add(s.Span); len(all) == 0 || time.Now().Before(end); {
		if ctx.Err() != nil {
			return kernels.Rates{}, context.Cause(ctx)
		}
		before, share := Disturbance(), probe.Share(d.Lanes)
		began := time.Now()
		round := make([]float64, len(loops))
		for k, loop := range loops {
			round[k] = sum(onLanes(d.Lanes, loop))
		}
		all = append(all, round)
		disturbed := Disturbance().Since(before)
		share = min(share, probe.Share(d.Lanes))
		if share >= quietShare && disturbed <= time.Since(began)/disturbedShare {
			quiet = append(quiet, round)
		}
	}
	r := kernels.Rates{
		Rounds:  len(all),
		LeftOut: len(all) - len(quiet),
		Busy:    len(quiet) < min(minQuietRounds, len(all)),
	}
	if r.Busy {
		// Low rates are better than those of one round that seemed quiet.
		quiet, r.LeftOut = all, 0
	}
	r.FLOPS = rateOf(quiet, 0)
	for k := range d.Levels {
		r.Levels = append(r.Levels, rateOf(quiet, k+1))
		r.Levels[k].Kept = d.Levels[k].Kept
	}
	return r.Plausible(d, s.Typical), nil
}

// rateOf is the rate of loop k, of rounds of which there is at least one.
func rateOf(rounds [][]float64, k int) kernels.Rate {
	all := make([]float64, len(rounds))
	for n, round := range rounds {
		all[n] = round[k]
	}
	slices.Sort(all)
	// Quantiles are those of the nearest rank.
	at := func(q float64) float64 { return all[int(q*float64(len(all)-1)+0.5)] }
	return kernels.Rate{
		Value:  at(rateQuantile),
		Spread: (at(0.75) - at(0.25)) / at(0.5),
	}
}

// A loop measures the rate of a lane.
type loop func(lane int) float64

// loopsOf are the loops of a round: products, and the moves of each level.
func loopsOf(d kernels.Device, limit int64) []loop {
	loops := []loop{func(int) float64 { return products() }}
	n := int64(max(1, d.Lanes))
	for k, l := range d.Levels {
		span := cmp.Or(l.Kept, l.Bytes) / 2 / int64(l.SharedBy(d.Lanes))
		if l.Bytes == 0 && k > 0 {
			inside := d.Levels[k-1]
			span = 4 * cmp.Or(inside.Kept, inside.Bytes) / n // what all copy is in no cache
		}
		loops = append(loops, movesWithin(min(span, limit/n), d.Lanes))
	}
	return loops
}

// onLanes are the rates of n goroutines that measure at once.
func onLanes(n int, measure loop) []float64 {
	rates := make([]float64, max(1, n))
	var wait sync.WaitGroup
	for k := range rates {
		wait.Go(func() { rates[k] = measure(k) })
	}
	wait.Wait()
	return rates
}

// sum is that of all.
func sum(all []float64) (s float64) {
	for _, x := range all {
		s += x
	}
	return s
}

// products is the rate of the faster dot kernel, that of one panel or of two at once, on tiles
// in the first cache, flop/s. Rows are whole blocks of all kernels, and terms enough for them:
// 32³ reaches 99 Gflop/s on a Xeon (Emerald Rapids), 48×32×96 148 and 192³ 164.
func products() float64 {
	// The matrices and the panel take little more than a first cache of 32 KiB, and are read
	// once for each block of rows.
	one := productsOf(32, 96, gemm.Caches{})
	return max(one, productsOf(64, 48, gemm.Caches{Pairs: true}))
}

// productsOf is the rate of products of 48 rows.
func productsOf(n, k int, caches gemm.Caches) float64 {
	const m = 48
	x := make([]float32, m*k)
	y := make([]float32, k*n)
	z := make([]float32, m*n)
	p := gemm.Product[float32]{
		C: gemm.Dense(z, n),
		A: gemm.Dense(x, k),
		B: gemm.Dense(y, n),
		M: m, N: n, K: k,
		Caches: caches,
	}
	scratch := make([]float32, p.Scratch())
	return rate(float64(2*m*n*k), func() {
		p.Multiply(scratch)
	})
}

// movesWithin is the rate of moving bytes within arrays of span bytes a lane, in bytes/s
// that are read and written: of copying one half to the other, or of reading one of them,
// whichever is faster. The arrays are made once.
func movesWithin(span int64, lanes int) loop {
	type pair struct{ x, y []byte }
	pairs := make([]pair, max(1, lanes))
	n := max(span/2, 1<<10)
	return func(lane int) float64 {
		p := &pairs[lane]
		if p.x == nil { // memory that was never written is one page of zeros, in the first cache
			p.x = bytes.Repeat([]byte{1}, int(n))
			p.y = bytes.Clone(p.x)
		}
		// Copying beyond the last cache writes past it, and reading is faster inside.
		copied := rate(float64(2*n), func() { copy(p.y, p.x) })
		read := rate(float64(n), func() { bytes.IndexByte(p.x, 0) })
		return max(copied, read)
	}
}

// rate is the work per second of a function that does so much of it in each call.
func rate(work float64, f func()) float64 {
	f() // brings its arrays to where they stay
	begin, n := time.Now(), 0
	for time.Since(begin) < loopSpan || n == 0 {
		f()
		n++
	}
	return work * float64(n) / time.Since(begin).Seconds()
}
