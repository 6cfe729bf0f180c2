package cpu

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// teamOf is a team of n workers that run body with a tile id.
func teamOf(c *workerPool, n int, programs int64, body step) *parallelRegion {
	workers := make([]*worker, n)
	for k := range workers {
		workers[k] = &worker{tids: make([]int64, 1)}
	}
	return newTeam(workers, []step{body}, newRaster([]int64{programs}, 1), nil, c)
}

// Every tile program of a run is done once when it returns, by whatever worker,
// in hot runs and in those that have to wake the helpers; also when teams of one
// crew run at the same time.
func TestTeamDoesEverythingOnce(t *testing.T) {
	c := new(workerPool)
	var wait sync.WaitGroup
	for range 2 {
		const programs = 300
		var counts [programs]atomic.Int32
		team := teamOf(c, 4, programs, func(w *worker) {
			counts[w.tids[0]].Add(1)
		})
		wait.Go(func() {
			defer team.close()
			for n := range int32(500) {
				if n%100 == 99 {
					time.Sleep(3 * time.Millisecond) // the helpers park
				}
				if _, err := team.run(context.Background(), nil, nil); err != nil {
					t.Error(err)
				}
				for k := range counts {
					if got := counts[k].Load(); got != n+1 {
						t.Errorf("tile program %d ran %d times in %d runs", k, got, n+1)
						return
					}
				}
			}
		})
	}
	wait.Wait()
	if c.workers != nil || c.regions != 0 {
		t.Errorf("%d helpers are left after the last team was closed", len(c.workers))
	}
}

// A run that panics or is stopped is an error, and the next is as good as new.
func TestTeamRecovers(t *testing.T) {
	var bad atomic.Int64
	c := new(workerPool)
	team := teamOf(c, 3, 100, func(w *worker) {
		if w.tids[0] == bad.Load() {
			panic("no such tile")
		}
	})
	for n := range int64(200) {
		bad.Store(n - 100) // below 0: none
		ctx, cancel := context.WithCancel(context.Background())
		if n%3 == 0 {
			cancel()
		}
		_, err := team.run(ctx, nil, nil)
		if want := n >= 100 || n%3 == 0; (err != nil) != want {
			t.Fatalf("run %d: error %v", n, err)
		}
		cancel()
	}
	team.close()
	team.close()
	if _, err := team.run(context.Background(), nil, nil); err != errClosed {
		t.Errorf("a closed kernel runs: %v", err)
	}
}

// A helper that does not come does not hold up a run: it is kept by another
// team, whose tile programs end only after the run.
func TestTeamWaitsForWorkOnly(t *testing.T) {
	c := new(workerPool)
	begun := make(chan struct{}, 2)
	release := make(chan struct{})
	done := make(chan struct{})
	busy := teamOf(c, 2, 2, func(*worker) {
		begun <- struct{}{}
		<-release
	})
	other := teamOf(c, 2, 200, func(*worker) {})
	defer busy.close()
	defer other.close()
	go func() {
		busy.run(context.Background(), nil, nil)
		close(done)
	}()
	<-begun
	<-begun // the caller and the helper
	if _, err := other.run(context.Background(), nil, nil); err != nil {
		t.Error(err)
	}
	close(release)
	<-done
}

// BenchmarkTeam is what it costs to start and join a run: of 64 tile programs
// of the given time each in turn, right after another run and after the workers
// were idle.
func BenchmarkTeam(b *testing.B) {
	for _, n := range []int{1, 2} {
		for _, each := range []time.Duration{0, 500 * time.Nanosecond, 5 * time.Microsecond} {
			for _, idle := range []time.Duration{0, 5 * time.Millisecond} {
				b.Run(fmt.Sprintf("threads=%d/each=%s/idle=%s", n, each, idle), func(b *testing.B) {
					benchmarkTeam(b, n, each, idle)
				})
			}
		}
	}
}

func benchmarkTeam(b *testing.B, n int, each, idle time.Duration) {
	t := teamOf(new(workerPool), n, 64, func(*worker) {
		for begin := time.Now(); time.Since(begin) < each; {
		}
	})
	defer t.close()
	var times []time.Duration
	for b.Loop() {
		time.Sleep(idle)
		d, err := t.run(context.Background(), nil, nil)
		if err != nil {
			b.Fatal(err)
		}
		times = append(times, d)
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Nanoseconds()), "ns/median")
}
