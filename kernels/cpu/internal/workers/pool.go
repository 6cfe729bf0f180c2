// Package workers runs the items of a parallel region on a pool of goroutines
// that stay awake between regions.
//
// A Pool belongs to a backend and is shared by all of its kernels. A Region is
// the work of one kernel: a number of items and a function that runs a range of
// them. Region.Run takes part in its own work, so that a region whose workers are
// busy elsewhere is still done, by the caller alone.
//
// Starting a region with workers that spin takes less than a microsecond, and
// nothing is allocated per run.
package workers

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
)

// A worker spins, then lingers: it spins on, but looks every lookTime for goroutines
// and threads that wait for its processor. Then it parks. Waking a parked worker takes
// 0.1 ms on a virtual machine whose other core sleeps, and a tick of the scheduler,
// 4 ms, where the kernel wakes it on the caller's core, which is why a parking says on
// which CPUs the worker may go on; a spinning worker starts in under a microsecond.
const (
	workerSpinTime   = 50 * time.Microsecond
	workerLingerTime = 3 * time.Millisecond
	lookTime         = 10 * time.Microsecond
)

// A Pool is the goroutines that serve the regions of a backend. They serve the
// region that was announced last; a region whose workers are occupied elsewhere
// is run by its caller alone. The goroutines start with the first region that
// needs them and end when the last region is closed. The zero Pool is ready.
type Pool struct {
	mu      sync.Mutex
	workers []*worker
	regions int // that are not closed
	current atomic.Pointer[Region]
}

// A worker is one goroutine of a pool.
type worker struct {
	// The index is the number under which the worker takes part in regions.
	// The caller of Run is number 0, so that it starts at 1.
	index     int
	quit      atomic.Bool
	scheduler [len(schedulerMetrics)]metrics.Sample
	parking
}

func newWorker(index int) *worker {
	w := &worker{index: index, parking: newParking()}
	for n, name := range schedulerMetrics {
		w.scheduler[n].Name = name
	}
	return w
}

// schedulerMetrics are the goroutines that wait for a processor, the processors that
// run goroutines, and all processors (runtime/metrics).
var schedulerMetrics = [...]string{
	"/sched/goroutines/runnable:goroutines",
	"/sched/goroutines/running:goroutines",
	"/sched/gomaxprocs:threads",
}

// acquire starts workers until there are n, and returns the first n.
func (p *Pool) acquire(n int) []*worker {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.regions++
	for len(p.workers) < n {
		w := newWorker(len(p.workers) + 1)
		p.workers = append(p.workers, w)
		go p.serve(w)
	}
	return p.workers[:n:n]
}

// release forgets a region that is not running. The workers end with the last
// region.
func (p *Pool) release(r *Region) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current.CompareAndSwap(r, nil)
	if p.regions--; p.regions > 0 {
		return
	}
	for _, w := range p.workers {
		w.quit.Store(true)
		w.unpark()
	}
	p.workers = nil
}

// announce makes r the region that workers serve, and wakes its workers. Its
// items must be available before.
func (p *Pool) announce(r *Region) {
	if len(r.workers) == 0 {
		return
	}
	p.current.Store(r)
	for _, w := range r.workers {
		w.unpark()
	}
}

// serve is the life of a worker.
func (p *Pool) serve(w *worker) {
	defer w.giveBack()
	for !w.quit.Load() {
		if r := p.pending(w); r != nil {
			r.takeChunks(w.index)
			continue
		}
		p.await(w)
	}
}

// pending is the region with items that the worker can take, or nil. A worker that was told
// to end may come here late, when another one has its number already: regions are served by
// those that they were made with.
func (p *Pool) pending(w *worker) *Region {
	r := p.current.Load()
	if r != nil && w.index <= len(r.workers) &&
		r.workers[w.index-1] == w && r.hasItems() {
		return r
	}
	return nil
}

// await returns when there may be something to do.
func (p *Pool) await(w *worker) {
	called := func() bool {
		return p.pending(w) != nil || w.quit.Load()
	}
	if spinUntil(workerSpinTime, called) {
		return
	}
	w.giveBack()
	for begin := time.Now(); time.Since(begin) < workerLingerTime; w.yield() {
		if spinUntil(lookTime, called) {
			return
		}
	}
	w.park(called)
}

// yield lets goroutines and threads run that wait for what the worker occupies.
func (w *worker) yield() {
	if w.occupies() {
		runtime.Gosched()
	}
	yieldThread()
}

// occupies reports whether goroutines, timers or the network may wait for the
// worker's processor: those of a processor that is idle do not.
//
// Where nothing waits, Gosched does harm. The worker is in the queue of all processors
// for a moment, an idle one is started to look there, and timers run on either. The
// goroutine that sleeps between two regions then wakes on the worker's thread in most
// cases, and the worker waits for another thread, as if it had been parked.
func (w *worker) occupies() bool {
	metrics.Read(w.scheduler[:])
	var counts [len(schedulerMetrics)]uint64
	for n, s := range w.scheduler {
		if s.Value.Kind() != metrics.KindUint64 {
			return true
		}
		counts[n] = s.Value.Uint64()
	}
	runnable, running, processors := counts[0], counts[1], counts[2]
	return runnable > 0 || running >= processors
}

// spinUntil evaluates a condition until it holds, for a bounded time, and
// reports whether it did.
//
// The clock is read seldom: a hypervisor may have each reading trap. On an Emerald Rapids
// guest RDTSC takes 80 to 270 ns and time.Now 430, as long as 250 evaluations.
func spinUntil(limit time.Duration, holds func() bool) bool {
	if spin(holds) {
		return true
	}
	for begin := time.Now(); time.Since(begin) <= limit; {
		if spin(holds) {
			return true
		}
	}
	return false
}

// spin evaluates a condition until it holds, a number of times, and reports whether it did.
func spin(holds func() bool) bool {
	for range 256 {
		if holds() {
			return true
		}
	}
	return false
}
