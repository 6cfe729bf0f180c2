package rates

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tilewright/tilewright/kernels"
)

// One round gives a rate for every level, in arrays within the limit, and ends.
func TestMeasure(t *testing.T) {
	d := kernels.Device{Lanes: 2, Levels: []kernels.Level{
		{Name: "L1", Bytes: 32 << 10},
		{Name: "L2", Bytes: 1 << 20},
		{Name: "memory", Shared: true},
	}}
	typical := kernels.Rates{Levels: []kernels.Rate{{Value: 3e9}, {Value: 2e9}, {Value: 1e9}}}
	once := Settings{Limit: 4 << 20, Last: 1, Typical: typical}
	r, err := Measure(t.Context(), d, once)
	if err != nil || r.Rounds != 1 || len(r.Levels) != 3 || r.FLOPS.Value <= 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	for k, l := range r.Levels {
		if !(l.Value > 1e6) || k > 0 && l.Value > 1.06*r.Levels[k-1].Value {
			t.Errorf("%s: %g bytes/s, inside of it %g", d.Levels[k].Name, l.Value, r.Levels[max(0, k-1)].Value)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	once.Span = time.Minute
	if _, err := Measure(ended, d, once); err == nil {
		t.Error("it measures after the end of its context")
	}
}

// A share is never more than what a lane does alone.
func TestProbe(t *testing.T) {
	var p Probe
	for range 3 {
		if s := p.Share(2); !(s > 0) || s > 1 {
			t.Errorf("share %g", s)
		}
	}
}

// The rate of rounds is what most come near to, whatever the slow ones are.
func TestRateOf(t *testing.T) {
	var rounds [][]float64
	for k := range 20 {
		rate := 100.0
		if k < 6 {
			rate = 10
		}
		rounds = append(rounds, []float64{rate})
	}
	if r := rateOf(rounds, 0); r.Value != 100 || r.Spread != 0.9 {
		t.Errorf("%+v", r)
	}
}

// What Linux counts is read from the fields that proc(5) names; another text counts
// nothing.
func TestDisturbance(t *testing.T) {
	if got := waitedOf("932391 72708 1\n"); got != 72708 {
		t.Errorf("waited %d ns", got)
	}
	stat := "cpu  2498040 778147 543911 1038075 10358 0 5127 23809 0 0\ncpu0 1 2 3\n"
	if got := stolenOf(stat); got != 238090*time.Millisecond {
		t.Errorf("stolen %v", got)
	}
	for _, text := range []string{"", "cpu", "cpu 1 2 3 4 5 6 7 x", "x x"} {
		if stolenOf(text) != 0 {
			t.Errorf("%q counts", text)
		}
	}
	if waitedOf("7") != 0 || waitedOf("7 x") != 0 {
		t.Error("a text that is no schedstat counts")
	}
	before := Disturbance()
	if Disturbance().Since(before) < 0 {
		t.Error("the counts go down")
	}
}

// BenchmarkLanes measures how long a number takes from one core to another and back: cores
// of one last cache are near to each other. Where a virtual machine's cores are may change
// at any time, so that several runs (-count) may differ.
func BenchmarkLanes(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(roundTrip().Seconds()*1e9, "ns-round-trip")
	}
	b.ReportMetric(0, "ns/op")
}

// roundTrip is the shortest time of some in which a number goes to another goroutine
// and back.
func roundTrip() time.Duration {
	const trips = 1 << 10
	var ball atomic.Int64
	play := func(parity int64) {
		for n := parity; n < 2*trips; n += 2 {
			for ball.Load() != n {
			}
			ball.Store(n + 1)
		}
	}
	shortest := time.Hour
	for range 16 {
		ball.Store(0)
		begin := time.Now()
		var wait sync.WaitGroup
		wait.Go(func() { play(1) })
		play(0)
		wait.Wait()
		shortest = min(shortest, time.Since(begin))
	}
	return shortest / trips
}
