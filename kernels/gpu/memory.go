package gpu

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// elements of the buffer's extent, gaps included.
func span(sizes, strides []int64) int64 {
	n := int64(1)
	for k, s := range sizes {
		n += (s - 1) * strides[k]
	}
	return n
}

func dense(sizes []int64) []int64 {
	strides := make([]int64, len(sizes))
	n := int64(1)
	for d := len(sizes) - 1; d >= 0; d-- {
		strides[d] = n
		n *= sizes[d]
	}
	return strides
}

// allocateShared reserves shared memory and returns where it begins.
func (e *emitter) allocateShared(bytes int64) int64 {
	at := (e.shared + maxVectorBytes - 1) / maxVectorBytes * maxVectorBytes
	e.shared = at + bytes
	return at
}

// allocateFreed reserves shared memory from what a loop before needed only while it ran,
// if there is enough left of it.
func (e *emitter) allocateFreed(bytes int64) int64 {
	at := (e.freed.at + maxVectorBytes - 1) / maxVectorBytes * maxVectorBytes
	if at+bytes > e.freed.end {
		return e.allocateShared(bytes)
	}
	e.freed.at = at + bytes
	return at
}

// release makes the memory of a loop that is not inside another free for what
// comes after it.
func (e *emitter) release(at, bytes int64) {
	if e.loopDepth == 0 {
		e.freed = memoryRange{at, at + bytes}
	}
}

func (e *emitter) newBuffer(d hlo.DType, sizes, strides []int64) *buffer {
	return &buffer{
		d:       d,
		sizes:   sizes,
		strides: strides,
		at:      e.allocateShared(span(sizes, strides) * d.Size()),
	}
}

func (b *buffer) memory(e *emitter) memory {
	if b.base != "" {
		return memory{shared, b.base, b.at}
	}
	return memory{shared, e.smem, b.at}
}

// place is where an element of the buffer is.
func (b *buffer) place(e *emitter, p point) place {
	at := e.dotted(p.at, b.strides)
	if b.transposed != nil {
		at = at.Add(b.transposed.position(
			e, p.at, b.d.Size(),
		))
	}
	return place{at, p.when}
}

func (e *emitter) places(b *buffer, points []point) []place {
	all := make([]place, len(points))
	for k, p := range points {
		all[k] = b.place(e, p)
	}
	return all
}

func (e *emitter) fetch(b *buffer, points []point) []operand {
	return e.gatherPlaces(
		b.memory(e), b.d, e.places(b, points),
	)
}

func (e *emitter) put(b *buffer, points []point, vals []operand) {
	e.scatterPlaces(
		b.memory(e), b.d,
		e.places(b, points), vals,
	)
}

// barrier waits until all threads of the block have come here; what they wrote
// to shared memory is seen after it.
func (e *emitter) barrier() {
	if e.mathGroup != nil {
		e.asm.do("bar.sync", e.mathGroup.barrier, e.threads)
		return
	}
	if e.extra > 0 { // not the producer, which is gone
		e.asm.do("bar.sync", 0, e.threads)
		return
	}
	e.asm.do("bar.sync", 0)
}

// waitForWrites waits for what was written to shared memory since the last barrier.
func (e *emitter) waitForWrites() {
	if e.async {
		e.asm.do("cp.async.wait_all")
	}
	if e.fresh {
		e.barrier()
	}
	e.fresh, e.async = false, false
}

// bankStrides are strides in the order of dims, the rows of the fastest dimension
// that has more than one element padded to an odd number of words.
func (e *emitter) bankStrides(sizes []int64, order []int, size int64) []int64 {
	strides := make([]int64, len(sizes))
	n, padded := int64(1), false
	for _, d := range slices.Backward(order) {
		strides[d] = n
		n *= sizes[d]
		if !padded && sizes[d] > 1 {
			words := index.CeilDiv(n*size, 4)
			n = max(1, (words|1)*4/size)
			padded = true
		}
	}
	return strides
}

// lineBytes is what all banks of shared memory hold once.
const lineBytes = 32 * 4

// newSwizzle is the swizzle for units of so many bytes, a power of two, in rows
// of whole units.
func newSwizzle(unit, row int64) swizzle {
	s := swizzle{unit: unit, group: 1}
	line, n := lineBytes/unit, row/unit
	for s.group < line && n%(2*s.group) == 0 {
		s.group *= 2
	}
	s.span = line / s.group
	return s
}

// swizzled is where element col of a row is in it, in elements of the size.
func (e *emitter) swizzled(s swizzle, row, col index.Expr, size int64) index.Expr {
	if s.group == 1 {
		return col
	}
	w := s.unit / size
	unit := e.xor(
		col.Div(w).Mod(s.group),
		row.Div(s.span).Mod(s.group),
		s.group,
	)
	return col.Div(w * s.group).Scale(
		w * s.group,
	).Add(unit.Scale(w)).Add(col.Mod(w))
}

// xor is the exclusive or of two expressions from 0 to group−1, group a power of
// two: a variable of its own, computed where it is asked for.
func (e *emitter) xor(x, y index.Expr, group int64) index.Expr {
	a, knownX := x.Value()
	b, knownY := y.Value()
	switch {
	case knownX && knownY:
		return e.ring.Const(a ^ b)
	case knownX && a == 0:
		return y
	case knownY && b == 0:
		return x
	}
	key := pair{x, y}
	v, met := e.pairs[key]
	if !met {
		name := "swizzled" + string(integer(int64(len(e.pairs))))
		v = e.ring.Var(index.Variable{
			Name: name,
			Lo:   0,
			Hi:   group - 1,
			Role: index.RoleThread,
		})
		e.pairs[key], e.xors[v] = v, key
	}
	return v
}

// position is where an element of the tile is, but for the other dimensions.
func (c *transposedTile) position(
	e *emitter, at []index.Expr, size int64,
) index.Expr {
	q := at[c.across].Div(c.vector)
	i := at[c.across].Mod(c.vector)
	return i.Scale(c.step).Add(q).Scale(c.pitch).Add(
		e.swizzled(c.swizzle, q, at[c.along], size),
	)
}

// scratchArray declares the next array between the kernels of a plan.
func (e *emitter) scratchArray(bytes int64) memory {
	n := len(e.scratch)
	e.scratch = append(e.scratch, bytes)
	return memory{
		global,
		e.pointer(fmt.Sprintf("scratch%d", n), device.ScratchArray(n)),
		0,
	}
}
