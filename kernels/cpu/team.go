package cpu

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/tilewright/tilewright/kernels"
)

// A team is the workers of a kernel. The caller of run is the first; everybody
// takes tile programs from one counter. A run is over when its tile programs
// are: a worker that comes too late finds the counter at its end and is not
// waited for. Until something is to do workers spin, then sleep.
type team struct {
	workers []*worker
	body    []step
	order   raster
	total   int64
	chunk   int64 // tile programs taken at a time

	failed atomic.Pointer[error]
	quit   atomic.Bool
	_      [cacheLine]byte
	next   atomic.Int64 // run<<runShift | first tile program that nobody took
	_      [cacheLine]byte
	done   atomic.Int64 // tile programs that are over or given up in this run
	_      [cacheLine]byte
	caller sleeper
	others []sleeper
}

// A run has at most 2⁴⁰ tile programs.
const runShift = 40

func newTeam(workers []*worker, body []step, order raster) *team {
	t := &team{workers: workers, body: body, order: order, total: product(order.grid), caller: newSleeper()}
	t.chunk = max(1, min(64, t.total/int64(8*len(workers))))
	t.next.Store(t.total)
	for range workers[1:] {
		t.others = append(t.others, newSleeper())
	}
	for k, w := range workers[1:] {
		go t.serve(w, &t.others[k])
	}
	return t
}

func (t *team) close() {
	if t.quit.Swap(true) {
		return
	}
	for k := range t.others {
		t.others[k].wake()
	}
}

// serve is the life of a worker that is not the caller.
func (t *team) serve(w *worker, s *sleeper) {
	for last := int64(0); ; {
		s.wait(hot, func() bool { return t.next.Load()>>runShift != last || t.quit.Load() })
		if t.quit.Load() {
			return
		}
		last = t.next.Load() >> runShift
		t.work(w, last)
	}
}

var errClosed = errors.New("the kernel is closed")

func (t *team) run(ctx context.Context, in, out []kernels.Buffer) (time.Duration, error) {
	if t.quit.Load() {
		return 0, errClosed
	}
	t.failed.Store(nil)
	for _, w := range t.workers {
		w.in, w.out, w.ctx = in, out, ctx
	}
	begin := time.Now()
	t.done.Store(0)
	now := t.next.Load()>>runShift + 1
	t.next.Store(now << runShift)
	for k := range t.others {
		t.others[k].wake()
	}
	t.work(t.workers[0], now)
	t.caller.wait(hot, func() bool { return t.done.Load() == t.total })
	elapsed := time.Since(begin)
	if err := t.failed.Load(); err != nil {
		return 0, *err
	}
	return elapsed, ctx.Err()
}

// work runs tile programs of a run until there are none left. What a worker
// knows of a run is read only after it took some of it, because the run cannot
// end then.
func (t *team) work(w *worker, run int64) {
	for {
		begin, n := t.take(run, t.chunk)
		if n == 0 {
			return
		}
		if !t.programs(w, begin, begin+n) {
			_, rest := t.take(run, t.total)
			n += rest
		}
		if t.done.Add(n) == t.total {
			t.caller.wake()
		}
	}
}

// take takes up to n tile programs of a run.
func (t *team) take(run, n int64) (begin, taken int64) {
	for {
		at := t.next.Load()
		if begin = at - run<<runShift; at>>runShift != run || begin == t.total {
			return 0, 0
		}
		taken = min(n, t.total-begin)
		if t.next.CompareAndSwap(at, at+taken) {
			return begin, taken
		}
	}
}

// programs runs tile programs begin … end−1; false when the run is over before.
func (t *team) programs(w *worker, begin, end int64) (more bool) {
	defer t.rescue()
	for n := begin; n < end; n++ {
		if w.stopped() {
			return false
		}
		t.order.locate(w.tids, n)
		for _, s := range t.body {
			s(w)
		}
	}
	return true
}

// rescue turns a panic of a tile program into the run's error.
func (t *team) rescue() {
	if p := recover(); p != nil {
		err := fmt.Errorf("tile program failed: %v\n%s", p, debug.Stack())
		t.failed.CompareAndSwap(nil, &err)
	}
}

// A sleeper is where one goroutine waits for what others bring about.
type sleeper struct {
	asleep atomic.Bool
	signal chan struct{} // of one element
	_      [cacheLine]byte
}

func newSleeper() sleeper { return sleeper{signal: make(chan struct{}, 1)} }

// How long one spins: waking a sleeper takes some 50 µs, and runs that follow
// each other are not farther apart. Between looks at the clock there are spins
// of about a microsecond.
const (
	hot   = 500 * time.Microsecond
	spins = 200
)

// wait returns when it is so: it spins for a while, then sleeps until woken.
func (s *sleeper) wait(spin time.Duration, so func() bool) {
	if so() {
		return
	}
	for begin := time.Now(); time.Since(begin) < spin; runtime.Gosched() {
		for range spins {
			if so() {
				return
			}
		}
	}
	for !so() {
		s.asleep.Store(true)
		if so() && s.asleep.CompareAndSwap(true, false) {
			return
		}
		<-s.signal
	}
}

// wake is called when it became so.
func (s *sleeper) wake() {
	if s.asleep.CompareAndSwap(true, false) {
		s.signal <- struct{}{}
	}
}
