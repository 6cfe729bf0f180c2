package cpu

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/tilewright/tilewright/kernels"
)

// joinSpins is how long the caller looks for the end before parking.
const joinSpins = 100 * time.Microsecond

// A team is the workers of a kernel. The caller of execute is the first, the
// others are lent to helpers of the crew. Everybody takes chunks of tile programs
// from one counter, in the order of the raster, and the run is over when all are
// done: the work is joined, not the workers, and a helper that comes late finds
// nothing to do.
//
// A helper may touch what belongs to a run only while it has a chunk of it,
// for without its chunk the run cannot end. Whatever chunk it gets, early or
// late, is of the run that was announced by setting next.
type team struct {
	workers []*worker
	body    []step
	order   raster
	split   *split
	total   int64 // tile programs, those of parts each
	chunk   int64 // taken at a time
	crew    *crew
	helpers []*helper // of the crew, for all workers but the first
	done    chan struct{}
	closed  bool

	in, out []kernels.Buffer // of the run
	ctx     context.Context

	_       [64]byte // what follows is written by all
	next    atomic.Int64
	_       [64]byte
	left    atomic.Int64 // tile programs that are not done
	waiting atomic.Bool  // the caller is parked, or about to
	stop    atomic.Bool
	failed  atomic.Pointer[error]
}

func newTeam(workers []*worker, body []step, order raster, split *split, crew *crew) *team {
	t := &team{workers: workers, body: body, order: order, split: split, total: product(order.grid) * split.of(), crew: crew, done: make(chan struct{}, 1)}
	t.chunk = max(1, min(64, t.total/int64(8*len(workers))))
	t.next.Store(t.total)
	t.helpers = crew.enlist(len(workers) - 1)
	return t
}

// close dismisses the helpers; false if it has before.
func (t *team) close() bool {
	if t.closed {
		return false
	}
	t.closed = true
	t.crew.dismiss(t)
	return true
}

var errClosed = errors.New("the kernel is closed")

func (t *team) execute(ctx context.Context, in, out []kernels.Buffer) (time.Duration, error) {
	if t.closed {
		return 0, errClosed
	}
	t.in, t.out, t.ctx = in, out, ctx
	t.stop.Store(false)
	t.failed.Store(nil)
	t.split.reset()
	t.left.Store(t.total)
	begin := time.Now()
	t.next.Store(0)
	t.crew.announce(t)
	t.work(t.workers[0])
	t.join()
	elapsed := time.Since(begin)
	if err := t.failed.Load(); err != nil {
		return 0, *err
	}
	return elapsed, ctx.Err()
}

// join waits until all tile programs are done.
func (t *team) join() {
	if spin(joinSpins, func() bool { return t.left.Load() == 0 }) {
		return
	}
	for t.left.Load() > 0 { // a token may be left from the run before
		t.waiting.Store(true)
		if t.left.Load() == 0 && t.waiting.CompareAndSwap(true, false) {
			return
		}
		<-t.done
	}
}

// ready says whether there are tile programs that nobody took.
func (t *team) ready() bool { return t.next.Load() < t.total }

// spin looks until something is the case, at most for a time.
func spin(most time.Duration, is func() bool) bool {
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

// work does chunks until there are none left.
func (t *team) work(w *worker) {
	for {
		begin := t.next.Add(t.chunk) - t.chunk
		if begin >= t.total {
			return
		}
		t.programs(w, begin, min(begin+t.chunk, t.total))
	}
}

// programs runs tile programs, or passes over them when the run was stopped.
func (t *team) programs(w *worker, begin, end int64) {
	defer t.finish(end - begin)
	w.in, w.out, w.ctx = t.in, t.out, t.ctx
	for n := begin; n < end && !t.stop.Load(); n++ {
		if w.stopped() {
			t.stop.Store(true)
			return
		}
		parts := t.split.of()
		w.tile, w.part, w.ended = n/parts, n%parts, false
		t.order.locate(w.tids, w.tile)
		for k := 0; k < len(t.body) && !w.ended; k++ {
			t.body[k](w)
		}
	}
}

// finish says that n more are done, and wakes the caller after the last. A panic
// of a tile program becomes the run's error. What streaming stores wrote is seen
// by whoever sees the count, since a locked instruction waits for them (AMD64
// Architecture Programmer's Manual 2, §7.4.3).
func (t *team) finish(n int64) {
	if p := recover(); p != nil {
		err := fmt.Errorf("tile program failed: %v\n%s", p, debug.Stack())
		t.failed.CompareAndSwap(nil, &err)
		t.stop.Store(true)
	}
	if t.left.Add(-n) == 0 && t.waiting.CompareAndSwap(true, false) {
		t.done <- struct{}{}
	}
}
