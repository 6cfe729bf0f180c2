package cpu

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/tilewright/tilewright/kernels"
)

// A worker runs tile programs. Everything it needs was allocated when the plan
// was compiled.
type worker struct {
	arena   []byte
	base    []unsafe.Pointer // where each value begins
	tids    []int64          // by dimension of the space
	places  []int64          // offsets and bounds of tiles
	eval    []int64          // scratch of compiled expressions
	regs    []scalar         // of scalar programs
	in, out []kernels.Buffer
	ctx     context.Context
	machine machineArgs // of the machine function that runs
	fold    foldArgs
	turn    turnArgs
	rows    rowsArgs
	pattern [4096]byte // copies of an element
}

// stopped says whether the run was cancelled.
func (w *worker) stopped() bool {
	select {
	case <-w.ctx.Done():
		return true
	default:
		return false
	}
}

// A team is the workers of a kernel. The caller of run is the first; the others
// wait on start, and everybody takes tile programs from one counter. A run is
// over when every worker found the counter at its end, so the work is joined,
// and no worker waits for another to arrive.
type team struct {
	workers []*worker
	body    []step
	order   raster
	total   int64

	next   atomic.Int64
	stop   atomic.Bool
	failed atomic.Pointer[error]
	start  []chan struct{}
	done   sync.WaitGroup
	closed bool
}

func newTeam(workers []*worker, body []step, order raster) *team {
	t := &team{workers: workers, body: body, order: order, total: product(order.grid)}
	for _, w := range workers[1:] {
		start := make(chan struct{})
		t.start = append(t.start, start)
		go func() {
			for range start {
				t.work(w)
				t.done.Done()
			}
		}()
	}
	return t
}

func (t *team) close() {
	if t.closed {
		return
	}
	t.closed = true
	for _, c := range t.start {
		close(c)
	}
}

var errClosed = errors.New("the kernel is closed")

func (t *team) run(ctx context.Context, in, out []kernels.Buffer) (time.Duration, error) {
	if t.closed {
		return 0, errClosed
	}
	t.next.Store(0)
	t.stop.Store(false)
	t.failed.Store(nil)
	for _, w := range t.workers {
		w.in, w.out, w.ctx = in, out, ctx
	}
	begin := time.Now()
	t.done.Add(len(t.start))
	for _, c := range t.start {
		c <- struct{}{}
	}
	t.work(t.workers[0])
	t.done.Wait()
	elapsed := time.Since(begin)
	if err := t.failed.Load(); err != nil {
		return 0, *err
	}
	return elapsed, ctx.Err()
}

// work runs tile programs until there are none left.
func (t *team) work(w *worker) {
	defer t.rescue()
	chunk := max(1, min(64, t.total/int64(8*len(t.workers))))
	for begin := int64(0); begin < t.total && !t.stop.Load(); {
		begin = t.next.Add(chunk) - chunk
		for n := begin; n < min(begin+chunk, t.total); n++ {
			if w.stopped() {
				return
			}
			t.order.locate(w.tids, n)
			for _, s := range t.body {
				s(w)
			}
		}
	}
}

// rescue turns a panic of a tile program into the run's error.
func (t *team) rescue() {
	if p := recover(); p != nil {
		err := fmt.Errorf("tile program failed: %v\n%s", p, debug.Stack())
		t.failed.CompareAndSwap(nil, &err)
		t.stop.Store(true)
	}
}
