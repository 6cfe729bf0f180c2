package workers

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// joinSpinTime is how long Run spins for the last item before it parks.
const joinSpinTime = 100 * time.Microsecond

// maxChunk bounds the items that a worker takes at a time.
const maxChunk = 64

// ErrClosed is the error of a run of a closed region.
var ErrClosed = errors.New("the kernel is closed")

// A Body runs the items begin … end−1 as one of the workers of a region: no two
// calls with the same worker number run at the same time.
type Body func(worker int, begin, end int64)

// A Region is a loop over items whose iterations run in parallel. The caller of
// Run is worker 0, the others are goroutines of the pool. All take chunks of
// items from one counter, and the run is over when every item is done: items are
// joined, not workers, and a worker that arrives late finds no item left.
//
// A worker may touch what belongs to a run only while it has a chunk of it, since
// the run cannot end without that chunk. Whichever chunk it takes, early or late,
// belongs to the run that was announced by setting next.
type Region struct {
	pool    *Pool
	workers []*worker // All but the caller.
	body    Body
	items   int64
	chunk   int64 // The number of items that are taken at a time.
	done    chan struct{}
	closed  bool
	// When the region was made: a time since then is one reading of the clock, time.Now two.
	made time.Time

	_         [64]byte // The counters below are written by all workers.
	next      atomic.Int64
	_         [64]byte
	remaining atomic.Int64 // The number of items that are not done.
	waiting   atomic.Bool  // The caller is parked, or about to park.
	stop      atomic.Bool
	failed    atomic.Pointer[error]
}

// NewRegion makes a region of a number of items for so many workers, of which
// the caller of Run is one. Close gives the workers back.
func (p *Pool) NewRegion(workers int, items int64, body Body) *Region {
	r := &Region{
		pool:  p,
		body:  body,
		items: items,
		chunk: chunkOf(workers, items),
		done:  make(chan struct{}, 1),
		made:  time.Now(),
	}
	r.next.Store(items)
	r.workers = p.acquire(workers - 1)
	return r
}

// chunkOf is the number of items that are taken at a time: so few that the last chunks of
// several workers end together, but one worker waits for none.
func chunkOf(workers int, items int64) int64 {
	if workers == 1 {
		return max(1, min(maxChunk, items))
	}
	return max(1, min(maxChunk, items/int64(8*workers)))
}

// Close releases the workers. It reports false if the region was closed before.
func (r *Region) Close() bool {
	if r.closed {
		return false
	}
	r.closed = true
	r.pool.release(r)
	return true
}

// Closed reports whether Close was called.
func (r *Region) Closed() bool { return r.closed }

// Run runs the body over all items and returns how long that took. A panic of
// the body is returned as an error, after which the region can run again. Run
// must not be called while another call is in progress.
func (r *Region) Run() (time.Duration, error) {
	if r.closed {
		return 0, ErrClosed
	}
	r.stop.Store(false)
	r.failed.Store(nil)
	r.remaining.Store(r.items)
	begin := time.Since(r.made)
	r.next.Store(0)
	r.pool.announce(r)
	r.takeChunks(0)
	r.join()
	elapsed := time.Since(r.made) - begin
	if err := r.failed.Load(); err != nil {
		return 0, *err
	}
	return elapsed, nil
}

// Stop asks the bodies of the current run to skip their remaining items.
func (r *Region) Stop() { r.stop.Store(true) }

// Stopped reports whether the current run was stopped.
func (r *Region) Stopped() bool { return r.stop.Load() }

// join waits until every item is done.
func (r *Region) join() {
	if spinUntil(joinSpinTime, func() bool { return r.remaining.Load() == 0 }) {
		return
	}
	for r.remaining.Load() > 0 { // A token of the run before may be in the channel.
		r.announceWait()
		if r.remaining.Load() == 0 && r.waiting.CompareAndSwap(true, false) {
			return
		}
		<-r.done
	}
}

// announceWait says that the caller is about to park. Whoever is about to park
// writes that and then looks once more; whoever gives him work writes the work and
// then looks for who is parked. One of both must see what the other wrote. A swap
// orders the look after the write everywhere. A store does so by Go's memory model
// and on arm64, too, but QEMU 7.2 emulates STLR and then LDAR on amd64 in either
// order.
func (r *Region) announceWait() { r.waiting.Swap(true) }

// hasItems reports whether there are items that no worker took.
func (r *Region) hasItems() bool { return r.next.Load() < r.items }

// takeChunks runs chunks as the given worker until none is left.
func (r *Region) takeChunks(worker int) {
	for {
		begin := r.next.Add(r.chunk) - r.chunk
		if begin >= r.items {
			return
		}
		r.runChunk(worker, begin, min(begin+r.chunk, r.items))
	}
}

// runChunk runs one chunk and counts it as done, also when the body panics.
func (r *Region) runChunk(worker int, begin, end int64) {
	defer r.complete(end - begin)
	r.body(worker, begin, end)
}

// complete counts n items as done and wakes the caller after the last. A panic of
// the body becomes the error of the run. Non-temporal stores of the body are
// visible to whoever observes the count, since a locked instruction waits for
// them (AMD64 Architecture Programmer's Manual 2, §7.4.3).
func (r *Region) complete(n int64) {
	if p := recover(); p != nil {
		err := fmt.Errorf("tile program failed: %v\n%s", p, debug.Stack())
		r.failed.CompareAndSwap(nil, &err)
		r.stop.Store(true)
	}
	if r.remaining.Add(-n) == 0 && r.waiting.CompareAndSwap(true, false) {
		r.done <- struct{}{}
	}
}
