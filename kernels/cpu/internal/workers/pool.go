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
	"sync"
	"sync/atomic"
	"time"
)

// A worker spins, then yields its processor to other goroutines between looks,
// then parks. Waking a parked worker takes 0.1 ms on a virtual machine whose
// other core sleeps, and a tick of the scheduler, 4 ms, where the kernel wakes it
// on the caller's core, which is why a parking says on which CPUs the worker may
// go on; a spinning worker starts in under a microsecond.
const (
	workerSpinTime  = 50 * time.Microsecond
	workerYieldTime = 2 * time.Millisecond
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
	index int
	quit  atomic.Bool
	parking
}

// acquire starts workers until there are n, and returns the first n.
func (p *Pool) acquire(n int) []*worker {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.regions++
	for len(p.workers) < n {
		w := &worker{index: len(p.workers) + 1, parking: newParking()}
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

// pending is the region with items that the worker can take, or nil.
func (p *Pool) pending(w *worker) *Region {
	r := p.current.Load()
	if r != nil && w.index <= len(r.workers) && r.hasItems() {
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
	for begin := time.Now(); time.Since(begin) < workerYieldTime; runtime.Gosched() {
		if called() {
			return
		}
	}
	w.park(called)
}

// spinUntil evaluates a condition until it holds, for a bounded time, and
// reports whether it did.
func spinUntil(limit time.Duration, holds func() bool) bool {
	for begin := time.Now(); ; {
		for range 64 {
			if holds() {
				return true
			}
		}
		if time.Since(begin) > limit {
			return false
		}
	}
}
