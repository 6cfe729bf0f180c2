package reference

import (
	"runtime"
	"sync"
)

// A Walk visits the indices of dims in row-major order and says where each is
// at the given strides.
type Walk struct {
	dims, strides, Index []int64
	at                   int64
}

func NewWalk(dims, strides []int64) *Walk {
	return &Walk{
		dims:    dims,
		strides: strides,
		Index:   make([]int64, len(dims)),
	}
}

// Next returns the place of the current index and moves on.
func (w *Walk) Next() int64 {
	here := w.at
	for d := len(w.dims) - 1; d >= 0; d-- {
		w.Index[d]++
		w.at += w.strides[d]
		if w.Index[d] < w.dims[d] {
			break
		}
		w.at -= w.Index[d] * w.strides[d]
		w.Index[d] = 0
	}
	return here
}

// seek makes element n, in row-major order, the next.
func (w *Walk) seek(n int64) {
	w.at = 0
	for d := len(w.dims) - 1; d >= 0; d-- {
		w.Index[d], n = n%w.dims[d], n/w.dims[d]
		w.at += w.Index[d] * w.strides[d]
	}
}

// A row is a run along the last dimension: count elements, the first of which
// is number n in row-major order and at the place at, the others step apart.
type row struct{ n, at, count, step int64 }

// rows are the runs of an array of dims along its last dimension.
type rows struct {
	outer, strides []int64
	run            row
	total          int64 // rows
}

func rowsOf(dims, strides []int64) rows {
	r := rows{run: row{count: 1}, total: 1}
	if last := len(dims) - 1; last >= 0 {
		r.outer = dims[:last]
		r.strides = strides[:last]
		r.run = row{count: dims[last], step: strides[last]}
	}
	for _, d := range r.outer {
		r.total *= d
	}
	if r.run.count == 0 {
		r.total = 0
	}
	return r
}

// visit does rows lo … hi−1 in order.
func (r rows) visit(lo, hi int64, do func(row)) {
	if lo >= hi {
		return
	}
	w := NewWalk(r.outer, r.strides)
	w.seek(lo)
	for n := lo; n < hi; n++ {
		here := r.run
		here.n, here.at = n*r.run.count, w.Next()
		do(here)
	}
}

// each does all rows, on all cores.
func (r rows) each(do func(row)) {
	Parallel(r.total, r.run.count, func(lo, hi int64) {
		r.visit(lo, hi, do)
	})
}

// minParallelWork is how many elements are worth a goroutine.
const minParallelWork = 1 << 14

// Parallel does the numbers 0 … n−1, of cost elements each, in ranges on all cores.
// A panic is the caller's.
func Parallel(n, cost int64, do func(lo, hi int64)) {
	lanes := min(
		int64(runtime.GOMAXPROCS(0)),
		n,
		n*max(1, cost)/minParallelWork,
	)
	if lanes <= 1 {
		do(0, n)
		return
	}
	var wait sync.WaitGroup
	failed := make(chan any, lanes)
	for k := range lanes {
		wait.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					failed <- p
				}
			}()
			do(k*n/lanes, (k+1)*n/lanes)
		})
	}
	wait.Wait()
	select {
	case p := <-failed:
		panic(p)
	default:
	}
}

// Unravel is the index of element n of dims, in row-major order.
func Unravel(n int64, dims []int64) []int64 {
	index := make([]int64, len(dims))
	for d := len(dims) - 1; d >= 0; d-- {
		index[d], n = n%dims[d], n/dims[d]
	}
	return index
}
