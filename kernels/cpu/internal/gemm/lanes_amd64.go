//go:build !noasm

package gemm

import "unsafe"

// HasLanes reports whether there are kernels for lanes.
func HasLanes() bool { return f32 != nil }

// laneRows is the rows of a block.
const laneRows = 4

// A laneKernel multiplies blocks of rows of some vectors.
type laneKernel func(
	blocks, terms int,
	list, a *byte, as int,
	w *byte, ws int,
	c *byte, cs, how int,
)

// laneKernels are those of one row and of four, by vectors less one.
var laneKernels = [2][2]laneKernel{
	{lanesF32Rows1Vecs1, lanesF32Rows1Vecs2},
	{lanesF32Rows4Vecs1, lanesF32Rows4Vecs2},
}

// Multiply adds the products to rows of c, as many elements apart as there are lanes; a fresh
// c begins as zeros. Rows of w are ws elements apart.
func (x *Lanes) Multiply(c, a, w []float32, ws int, fresh bool) {
	how := 0
	if fresh {
		how = freshFlag
	}
	x.check(c, a, w, ws)
	for g, at := range x.Groups {
		to := c[g*x.Rows*x.Lanes:]
		for lane := 0; lane < x.Lanes; {
			vecs := min(2, (x.Lanes-lane)/LaneUnit)
			x.strip(
				vecs, to[lane:],
				a[at+lane:], w[lane:],
				ws, how,
			)
			lane += vecs * LaneUnit
		}
	}
}

// check panics unless all elements are in their slices.
func (x *Lanes) check(c, a, w []float32, ws int) {
	last := func(all []int) (most int) {
		for _, n := range all {
			most = max(most, n)
		}
		return most
	}
	rows := len(x.Groups) * x.Rows
	_ = c[:rows*x.Lanes]
	_ = w[:(len(x.Terms)-1)*ws+x.Lanes]
	row := last(x.Groups) + (x.Rows-1)*x.Row
	_ = a[:row+last(x.Terms)/4+x.Lanes]
	if x.Lanes%LaneUnit != 0 || len(x.Terms) == 0 {
		panic("gemm: lanes are no whole vectors")
	}
}

// strip multiplies a group of rows of some vectors.
func (x *Lanes) strip(vecs int, c, a, w []float32, ws, how int) {
	blocks := x.Rows / laneRows
	done := blocks * laneRows
	counts := [2]int{x.Rows - done, blocks}
	firsts := [2]int{done, 0}
	for k, n := range counts {
		if n == 0 {
			continue
		}
		first := firsts[k]
		laneKernels[k][vecs-1](
			n, len(x.Terms),
			(*byte)(unsafe.Pointer(&x.Terms[0])),
			laneAt(a, first*x.Row), 4*x.Row,
			laneAt(w, 0), 4*ws,
			laneAt(c, first*x.Lanes),
			4*x.Lanes, how,
		)
	}
}

// laneAt is the address of an element.
func laneAt(x []float32, n int) *byte {
	return (*byte)(unsafe.Pointer(&x[n]))
}
