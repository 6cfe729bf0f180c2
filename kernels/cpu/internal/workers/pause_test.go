package workers

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkPause compares runs that follow one another with the first run after a
// pause, in turns: eight of the one, then one of the other. The region is 64 items
// of equal work.
func BenchmarkPause(b *testing.B) {
	for _, each := range []int{2000, 10000} { // multiplications an item
		for _, pause := range []time.Duration{2 * time.Millisecond, 10 * time.Millisecond} {
			b.Run(fmt.Sprintf("work=%d/pause=%s", each, pause), func(b *testing.B) {
				benchmarkPause(b, each, pause)
			})
		}
	}
}

func benchmarkPause(b *testing.B, each int, pause time.Duration) {
	var products atomic.Uint64
	region := forEach(new(Pool), 2, 64, func(int64) { products.Add(product(each)) })
	defer region.Close()
	run := func() time.Duration {
		d, err := region.Run()
		if err != nil {
			b.Fatal(err)
		}
		return d
	}
	var close, first []time.Duration
	for b.Loop() {
		run()
		for range 8 {
			close = append(close, run())
		}
		time.Sleep(pause)
		first = append(first, run())
	}
	slices.Sort(close)
	slices.Sort(first)
	share := func(times []time.Duration, percent int) float64 {
		return float64(times[len(times)*percent/100].Nanoseconds()) / 1e3
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(share(close, 50), "µs-p50")
	b.ReportMetric(share(close, 90), "µs-p90")
	b.ReportMetric(share(first, 50), "µs-paused-p50")
	b.ReportMetric(share(first, 90), "µs-paused-p90")
	b.ReportMetric(share(first, 90)/share(close, 50), "paused-p90/p50")
}

// product takes the time of n dependent multiplications.
func product(n int) uint64 {
	x := uint64(n)
	for range n {
		x = x*0x9e3779b97f4a7c15 + 1
	}
	return x
}

// BenchmarkEmptyRegion is what a run takes besides its items, of one lane: mostly readings of
// the clock.
func BenchmarkEmptyRegion(b *testing.B) {
	region := forEach(new(Pool), 1, 1, func(int64) {})
	defer region.Close()
	for b.Loop() {
		if _, err := region.Run(); err != nil {
			b.Fatal(err)
		}
	}
}
