package cpu

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// How a helper waits for work: it looks, then it looks and lets other goroutines
// run, then it parks. Waking one that is parked takes 0.1 ms on a virtual machine
// whose other core sleeps, and a tick of the scheduler, 4 ms, where the kernel
// wakes it on the caller's core; one that looks starts in under a microsecond.
const (
	workerSpinTime  = 50 * time.Microsecond
	workerYieldTime = 2 * time.Millisecond
)

// A workerPool is the goroutines that help the teams of a backend, all of its kernels
// in turn, so that they are awake for one kernel after the other. They help the
// team that announced a run last; a team whose helpers are elsewhere does all by
// itself. They end when the last kernel is closed.
type workerPool struct {
	mu      sync.Mutex
	workers []*poolWorker
	regions int // that are not closed
	current atomic.Pointer[parallelRegion]
}

// A poolWorker is a goroutine that runs the n-th worker of teams.
type poolWorker struct {
	index  int
	quit   atomic.Bool
	parked atomic.Bool // or about to
	wake   chan struct{}
}

// acquire starts helpers until there are n and returns those.
func (c *workerPool) acquire(n int) []*poolWorker {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.regions++
	for len(c.workers) < n {
		h := &poolWorker{
			index: len(c.workers) + 1,
			wake:  make(chan struct{}, 1),
		}
		c.workers = append(c.workers, h)
		go c.serve(h)
	}
	return c.workers[:n:n]
}

// release forgets a team that is not running; after the last the helpers end.
func (c *workerPool) release(t *parallelRegion) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current.CompareAndSwap(t, nil)
	if c.regions--; c.regions > 0 {
		return
	}
	for _, h := range c.workers {
		h.quit.Store(true)
		h.unpark()
	}
	c.workers = nil
}

// announce calls the helpers of a team whose next is set.
func (c *workerPool) announce(t *parallelRegion) {
	if len(t.poolWorkers) == 0 {
		return
	}
	c.current.Store(t)
	for _, h := range t.poolWorkers {
		h.unpark()
	}
}

// unpark wakes the helper if it is parked.
func (h *poolWorker) unpark() {
	if h.parked.CompareAndSwap(true, false) {
		h.wake <- struct{}{} // never full: one token for each time parked was set
	}
}

// serve works whenever there is something to do.
func (c *workerPool) serve(h *poolWorker) {
	for !h.quit.Load() {
		if t := c.pendingRegion(h); t != nil {
			t.takeChunks(t.workers[h.index])
			continue
		}
		c.await(h)
	}
}

// pendingRegion is the team that the helper could help; nil for none.
func (c *workerPool) pendingRegion(h *poolWorker) *parallelRegion {
	t := c.current.Load()
	if t != nil &&
		h.index < len(t.workers) &&
		t.hasWork() {
		return t
	}
	return nil
}

// await returns when there may be something to do.
func (c *workerPool) await(h *poolWorker) {
	called := func() bool {
		return c.pendingRegion(h) != nil || h.quit.Load()
	}
	if spinUntil(workerSpinTime, called) {
		return
	}
	for begin := time.Now(); time.Since(begin) < workerYieldTime; runtime.Gosched() {
		if called() {
			return
		}
	}
	h.parked.Store(true)
	if called() && h.parked.CompareAndSwap(true, false) {
		return
	}
	<-h.wake
}

// joinSpinTime is how long the caller looks for the end before parking.
const joinSpinTime = 100 * time.Microsecond

// A parallelRegion is the workers of a kernel. The caller of execute is the first, the
// others are lent to helpers of the crew. Everybody takes chunks of tile programs
// from one counter, in the order of the raster, and the run is over when all are
// done: the work is joined, not the workers, and a helper that comes late finds
// nothing to do.
//
// A helper may touch what belongs to a run only while it has a chunk of it,
// for without its chunk the run cannot end. Whatever chunk it gets, early or
// late, is of the run that was announced by setting next.
type parallelRegion struct {
	workers     []*worker
	body        []step
	order       raster
	split       *splitK
	total       int64 // tile programs, those of parts each
	chunkSize   int64 // taken at a time
	pool        *workerPool
	poolWorkers []*poolWorker // of the crew, for all workers but the first
	done        chan struct{}
	closed      bool

	in, out []kernels.Buffer // of the run
	ctx     context.Context

	_         [64]byte // what follows is written by all
	next      atomic.Int64
	_         [64]byte
	remaining atomic.Int64 // tile programs that are not done
	waiting   atomic.Bool  // the caller is parked, or about to
	stop      atomic.Bool
	failed    atomic.Pointer[error]
}

func newTeam(workers []*worker, body []step, order raster, split *splitK, crew *workerPool) *parallelRegion {
	t := &parallelRegion{
		workers: workers,
		body:    body,
		order:   order,
		split:   split,
		total:   hlo.Elements(order.grid) * split.count(),
		pool:    crew,
		done:    make(chan struct{}, 1),
	}
	t.chunkSize = max(
		1,
		min(64, t.total/int64(8*len(workers))),
	)
	t.next.Store(t.total)
	t.poolWorkers = crew.acquire(len(workers) - 1)
	return t
}

// close dismisses the helpers; false if it has before.
func (t *parallelRegion) close() bool {
	if t.closed {
		return false
	}
	t.closed = true
	t.pool.release(t)
	return true
}

var errClosed = errors.New("the kernel is closed")

func (t *parallelRegion) run(
	ctx context.Context, in, out []kernels.Buffer,
) (time.Duration, error) {
	if t.closed {
		return 0, errClosed
	}
	t.in = in
	t.out = out
	t.ctx = ctx
	t.stop.Store(false)
	t.failed.Store(nil)
	t.split.reset()
	t.remaining.Store(t.total)
	begin := time.Now()
	t.next.Store(0)
	t.pool.announce(t)
	t.takeChunks(t.workers[0])
	t.join()
	elapsed := time.Since(begin)
	if err := t.failed.Load(); err != nil {
		return 0, *err
	}
	return elapsed, ctx.Err()
}

// join waits until all tile programs are done.
func (t *parallelRegion) join() {
	if spinUntil(joinSpinTime, func() bool { return t.remaining.Load() == 0 }) {
		return
	}
	for t.remaining.Load() > 0 { // a token may be left from the run before
		t.waiting.Store(true)
		if t.remaining.Load() == 0 &&
			t.waiting.CompareAndSwap(true, false) {
			return
		}
		<-t.done
	}
}

// hasWork says whether there are tile programs that nobody took.
func (t *parallelRegion) hasWork() bool {
	return t.next.Load() < t.total
}

// spinUntil looks until something is the case, at most for a time.
func spinUntil(most time.Duration, is func() bool) bool {
	for begin := time.Now(); ; {
		for range 64 {
			if is() {
				return true
			}
		}
		if time.Since(begin) > most {
			return false
		}
	}
}

// takeChunks does chunks until there are none left.
func (t *parallelRegion) takeChunks(w *worker) {
	for {
		begin := t.next.Add(t.chunkSize) - t.chunkSize
		if begin >= t.total {
			return
		}
		t.runPrograms(
			w, begin, min(begin+t.chunkSize, t.total),
		)
	}
}

// runPrograms runs tile programs, or passes over them when the run was stopped.
func (t *parallelRegion) runPrograms(w *worker, begin, end int64) {
	defer t.completeChunk(end - begin)
	w.in = t.in
	w.out = t.out
	w.ctx = t.ctx
	for n := begin; n < end && !t.stop.Load(); n++ {
		if w.stopped() {
			t.stop.Store(true)
			return
		}
		parts := t.split.count()
		w.tile = n / parts
		w.part = n % parts
		w.skipRest = false
		t.order.locate(w.tids, w.tile)
		for k := 0; k < len(t.body) && !w.skipRest; k++ {
			t.body[k](w)
		}
	}
}

// completeChunk says that n more are done, and wakes the caller after the last. A panic
// of a tile program becomes the run's error. What streaming stores wrote is seen
// by whoever sees the count, since a locked instruction waits for them (AMD64
// Architecture Programmer's Manual 2, §7.4.3).
func (t *parallelRegion) completeChunk(n int64) {
	if p := recover(); p != nil {
		err := fmt.Errorf("tile program failed: %v\n%s", p, debug.Stack())
		t.failed.CompareAndSwap(nil, &err)
		t.stop.Store(true)
	}
	if t.remaining.Add(-n) == 0 &&
		t.waiting.CompareAndSwap(true, false) {
		t.done <- struct{}{}
	}
}
