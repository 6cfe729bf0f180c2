package cpu

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/tilewright/tilewright/kernels"
)

// A number is the element type of scratch: f32 holds every floating type up to
// its width, f64 itself, int64 every integer and pred.
type number interface{ float32 | float64 | int64 }

// A worker runs tile programs. Everything it needs was allocated when the plan
// was compiled.
type worker struct {
	f32     []float32
	f64     []float64
	ints    []int64
	tids    []int64 // by dimension of the space
	places  []int64 // offsets and bounds of the tiles of the current step
	eval    []int64 // scratch of compiled expressions
	regs    registers
	in, out []kernels.Buffer
}

// of is the worker's scratch of type T.
func of[T number](w *worker) []T {
	var zero T
	switch any(zero).(type) {
	case float32:
		return *(*[]T)(unsafe.Pointer(&w.f32))
	case float64:
		return *(*[]T)(unsafe.Pointer(&w.f64))
	}
	return *(*[]T)(unsafe.Pointer(&w.ints))
}

// A team is the workers of a kernel. The caller of run is the first; the others
// wait on start, and everybody takes tile programs from one counter.
type team struct {
	workers []*worker
	body    []step
	grid    []int64
	dims    []int // of the space, for each grid dimension
	total   int64

	next   atomic.Int64
	stop   atomic.Bool
	failed atomic.Pointer[error]
	ctx    context.Context
	start  []chan struct{}
	done   sync.WaitGroup
}

// A step is one tile instruction.
type step func(w *worker)

func newTeam(workers []*worker, body []step, grid []int64, dims []int) *team {
	t := &team{workers: workers, body: body, grid: grid, dims: dims, total: 1}
	for _, g := range grid {
		t.total *= g
	}
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
	for _, c := range t.start {
		close(c)
	}
}

func (t *team) run(ctx context.Context, in, out []kernels.Buffer) (time.Duration, error) {
	t.next.Store(0)
	t.stop.Store(false)
	t.failed.Store(nil)
	t.ctx = ctx
	for _, w := range t.workers {
		w.in, w.out = in, out
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
	defer func() {
		if p := recover(); p != nil {
			err := fmt.Errorf("tile program failed: %v\n%s", p, debug.Stack())
			t.failed.CompareAndSwap(nil, &err)
			t.stop.Store(true)
		}
	}()
	chunk := max(1, min(64, t.total/int64(8*len(t.workers))))
	for !t.stop.Load() {
		first := t.next.Add(chunk) - chunk
		if first >= t.total {
			return
		}
		select {
		case <-t.ctx.Done():
			return
		default:
		}
		for n := first; n < min(first+chunk, t.total); n++ {
			t.locate(w, n)
			for _, s := range t.body {
				s(w)
			}
		}
	}
}

// locate sets the parallel tile ids of tile program n, the last fastest.
func (t *team) locate(w *worker, n int64) {
	for k := len(t.grid) - 1; k >= 0; k-- {
		w.tids[t.dims[k]] = n % t.grid[k]
		n /= t.grid[k]
	}
}
