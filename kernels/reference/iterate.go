package reference

import (
	"runtime"
	"slices"
	"sync"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// A Walk visits the indices of an array in row-major order and computes the
// position of each with the given strides.
type Walk struct {
	// Extents of the array, its strides, and the current index. Callers read
	// Index and do not change it.
	dims, strides, Index []int64
	// Position of the current index.
	at int64
}

// NewWalk starts at the first index of an array of extents dims.
func NewWalk(dims, strides []int64) *Walk {
	return &Walk{
		dims:    dims,
		strides: strides,
		Index:   make([]int64, len(dims)),
	}
}

// rowMajorWalk visits an array that lies in row-major order itself, so that
// positions are row-major numbers.
func rowMajorWalk(dims []int64) *Walk { return NewWalk(dims, hlo.RowMajor(dims)) }

// Next returns the position of the current index and advances to the next.
// After the last index it is at the first again.
func (w *Walk) Next() int64 {
	here := w.at
	for d := range slices.Backward(w.dims) {
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

// seek makes the index with row-major number n the current one.
func (w *Walk) seek(n int64) {
	w.at = 0
	for d := range slices.Backward(w.dims) {
		w.Index[d], n = n%w.dims[d], n/w.dims[d]
		w.at += w.Index[d] * w.strides[d]
	}
}

// A row is a run of count elements along the last dimension. The first of them
// has row-major number n and position at; the positions of the others are step
// apart.
type row struct{ n, at, count, step int64 }

// rows are the runs of an array along its last dimension.
type rows struct {
	// Extents and strides of all dimensions but the last.
	outer, strides []int64
	// A row, without its number and position.
	run row
	// Number of rows; 0 if a row is empty.
	total int64
}

// rowsOf are the rows of an array of extents dims, at positions of the given
// strides.
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

// visit calls do for the rows lo … hi−1, in order, and for long rows piece by piece.
func (r rows) visit(e *evaluation, lo, hi int64, do func(row)) {
	if lo >= hi {
		return
	}
	w := NewWalk(r.outer, r.strides)
	w.seek(lo)
	looked := 0 // of its own: other goroutines visit other rows
	for n := lo; n < hi; n++ {
		here := r.run
		here.n, here.at = n*r.run.count, w.Next()
		for rest := here.count; rest > 0; rest -= here.count {
			here.count = min(rest, elementsBetweenLooks)
			do(here)
			here.n += here.count
			here.at += here.count * here.step
			if looked++; looked%ticksBetweenLooks == 0 {
				e.look()
			}
		}
	}
}

// each calls do for all rows, on all cores.
func (r rows) each(e *evaluation, do func(row)) {
	e.parallel(r.total, r.run.count, func(lo, hi int64) {
		r.visit(e, lo, hi, do)
	})
}

// minParallelWork is the number of elements from which a goroutine pays.
const minParallelWork = 1 << 14

// Parallel divides the numbers 0 … n−1, each of which takes cost elements of
// work, into as many ranges as there are cores, or fewer for little work, and
// calls do for them at the same time. It returns when all are done. A panic of
// do is passed on to the caller.
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

// Unravel is the index of the element with row-major number n in an array of
// extents dims.
func Unravel(n int64, dims []int64) []int64 {
	index := make([]int64, len(dims))
	for d := range slices.Backward(dims) {
		index[d], n = n%dims[d], n/dims[d]
	}
	return index
}
