package workers

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// forEach is a region that runs do for every item.
func forEach(p *Pool, workers int, items int64, do func(item int64)) *Region {
	return p.NewRegion(workers, items, func(_ int, begin, end int64) {
		for n := begin; n < end; n++ {
			do(n)
		}
	})
}

// Every item of a run is done once when Run returns, by whichever worker, in hot
// runs and in those that have to wake the workers; also when regions of one pool
// run at the same time.
func TestItemsRunOnce(t *testing.T) {
	p := new(Pool)
	var wait sync.WaitGroup
	for range 2 {
		const items = 300
		var counts [items]atomic.Int32
		region := forEach(p, 4, items, func(n int64) { counts[n].Add(1) })
		wait.Go(func() {
			defer region.Close()
			for n := range int32(500) {
				if n%100 == 99 {
					time.Sleep(3 * time.Millisecond) // The workers park.
				}
				if _, err := region.Run(); err != nil {
					t.Error(err)
				}
				for k := range counts {
					if got := counts[k].Load(); got != n+1 {
						t.Errorf("item %d ran %d times in %d runs", k, got, n+1)
						return
					}
				}
			}
		})
	}
	wait.Wait()
	if p.workers != nil || p.regions != 0 {
		t.Errorf("%d workers remain after the last region was closed", len(p.workers))
	}
}

// A run whose body panics is an error, and the next run is not affected.
func TestPanicIsAnError(t *testing.T) {
	var bad atomic.Int64
	region := forEach(new(Pool), 3, 100, func(n int64) {
		if n == bad.Load() {
			panic("no such item")
		}
	})
	for n := range int64(200) {
		bad.Store(n - 100) // There is no item below 0.
		_, err := region.Run()
		if wanted := n >= 100; (err != nil) != wanted {
			t.Fatalf("run %d: error %v", n, err)
		}
	}
	if !region.Close() || region.Close() {
		t.Error("a region is closed once")
	}
	if _, err := region.Run(); err != ErrClosed {
		t.Errorf("a closed region runs: %v", err)
	}
}

// A worker that is occupied by another region, whose items end only after the
// run, does not delay a run.
func TestRunWaitsForItemsOnly(t *testing.T) {
	p := new(Pool)
	begun := make(chan struct{}, 2)
	release := make(chan struct{})
	done := make(chan struct{})
	busy := forEach(p, 2, 2, func(int64) {
		begun <- struct{}{}
		<-release
	})
	other := forEach(p, 2, 200, func(int64) {})
	defer busy.Close()
	defer other.Close()
	go func() {
		busy.Run()
		close(done)
	}()
	<-begun
	<-begun // The caller and the worker.
	if _, err := other.Run(); err != nil {
		t.Error(err)
	}
	close(release)
	<-done
}

// BenchmarkRegion measures what it costs to start and join a run: of 64 items of
// the given time, right after another run and after the workers were idle.
func BenchmarkRegion(b *testing.B) {
	for _, n := range []int{1, 2} {
		for _, each := range []time.Duration{0, 500 * time.Nanosecond, 5 * time.Microsecond} {
			for _, idle := range []time.Duration{0, 5 * time.Millisecond} {
				name := fmt.Sprintf("threads=%d/each=%s/idle=%s", n, each, idle)
				b.Run(name, func(b *testing.B) { benchmarkRegion(b, n, each, idle) })
			}
		}
	}
}

func benchmarkRegion(b *testing.B, n int, each, idle time.Duration) {
	region := forEach(new(Pool), n, 64, func(int64) {
		for begin := time.Now(); time.Since(begin) < each; {
		}
	})
	defer region.Close()
	var times []time.Duration
	for b.Loop() {
		time.Sleep(idle)
		d, err := region.Run()
		if err != nil {
			b.Fatal(err)
		}
		times = append(times, d)
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Nanoseconds()), "ns/median")
}

// A worker that was told to end, and has not seen it yet, takes nothing of a region that was
// made with others: it would share the state of the one that has its number.
func TestLateWorkerTakesNothing(t *testing.T) {
	p := new(Pool)
	first := forEach(p, 2, 8, func(int64) {})
	late := first.workers[0]
	first.Close()
	second := forEach(p, 2, 8, func(int64) {})
	defer second.Close()
	second.next.Store(0) // items for whoever comes, as in a run
	p.current.Store(second)
	if p.pending(late) != nil {
		t.Error("a worker of a closed region serves another one")
	}
	second.next.Store(second.items)
}
