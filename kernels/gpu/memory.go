package gpu

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// This file allocates shared memory and scratch memory, and computes where an element
// of a tile is in it. Allocation is a bump allocator: the size of a block's shared
// memory is known when the whole kernel was emitted. Tiles avoid bank conflicts by
// padded rows (bankStrides) or by permuted ones (swizzle).

// span is the number of elements from the first to the last of a buffer, gaps
// included.
func span(sizes, strides []int64) int64 {
	n := int64(1)
	for k, s := range sizes {
		n += (s - 1) * strides[k]
	}
	return n
}

// dense has the strides of a row-major array without gaps.
func dense(sizes []int64) []int64 {
	strides := make([]int64, len(sizes))
	n := int64(1)
	for d := len(sizes) - 1; d >= 0; d-- {
		strides[d] = n
		n *= sizes[d]
	}
	return strides
}

// allocateShared reserves shared memory and returns its offset, a multiple of 16
// bytes.
func (e *emitter) allocateShared(bytes int64) int64 {
	at := (e.shared + maxVectorBytes - 1) / maxVectorBytes * maxVectorBytes
	e.shared = at + bytes
	return at
}

// allocateFreed reserves shared memory that an earlier loop has released, if it is
// large enough, or else new memory.
func (e *emitter) allocateFreed(bytes int64) int64 {
	at := (e.freed.at + maxVectorBytes - 1) / maxVectorBytes * maxVectorBytes
	if at+bytes > e.freed.end {
		return e.allocateShared(bytes)
	}
	e.freed.at = at + bytes
	return at
}

// release makes the memory of an outermost loop available to what comes after it.
func (e *emitter) release(at, bytes int64) {
	if e.loopDepth == 0 {
		e.freed = memoryRange{at, at + bytes}
	}
}

// newBuffer allocates a tile in shared memory.
func (e *emitter) newBuffer(d hlo.DType, sizes, strides []int64) *buffer {
	return &buffer{
		d:       d,
		sizes:   sizes,
		strides: strides,
		at:      e.allocateShared(span(sizes, strides) * d.Size()),
	}
}

// memory is the array of the buffer.
func (b *buffer) memory(e *emitter) memory {
	if b.base != "" {
		return memory{shared, b.base, b.at}
	}
	return memory{shared, e.smem, b.at}
}

// place is the position of an element of the buffer.
func (b *buffer) place(e *emitter, p point) place {
	at := e.dotted(p.at, b.strides)
	if b.transposed != nil {
		at = at.Add(b.transposed.position(
			e, p.at, b.d.Size(),
		))
	}
	return place{at, p.when}
}

// places are the positions of points in a buffer.
func (e *emitter) places(b *buffer, points []point) []place {
	all := make([]place, len(points))
	for k, p := range points {
		all[k] = b.place(e, p)
	}
	return all
}

// fetch loads elements of a buffer.
func (e *emitter) fetch(b *buffer, points []point) []operand {
	if all := e.fetchRuns(b, points); all != nil {
		return all
	}
	return e.gatherPlaces(
		b.memory(e), b.d, e.places(b, points),
	)
}

// fetchRuns loads elements of a transposed tile, each with its neighbours that the thread
// needs for its next rows (OuterRun), which a load of the same text then finds. It is nil
// where a thread has no such rows.
func (e *emitter) fetchRuns(b *buffer, points []point) []operand {
	s, c := e.threadLayout, b.transposed
	if s == nil || c == nil || s.OuterRun <= 1 {
		return nil
	}
	all := make([]operand, len(points))
	for k, p := range points {
		row := p.at[c.along]
		part, known := row.Mod(s.OuterRun).Value()
		if !known {
			return nil
		}
		first := point{slices.Clone(p.at), p.when}
		first.at[c.along] = row.AddConst(-part)
		at := e.at(
			b.memory(e), b.place(e, first).at, b.d.Size(),
		)
		run := e.load(
			shared, b.d, at, int(s.OuterRun), e.guard(p.when),
		)
		all[k] = run[part]
	}
	return all
}

// put stores elements to a buffer.
func (e *emitter) put(b *buffer, points []point, vals []operand) {
	e.scatterPlaces(
		b.memory(e), b.d,
		e.places(b, points), vals,
	)
}

// barrier waits until all threads of the tile program have arrived; their writes to
// shared memory are visible after it. Producer warps and the other math group do not
// take part.
func (e *emitter) barrier() {
	if e.mathGroup != nil {
		e.asm.do(
			"bar.sync", e.mathGroup.barrier, e.threads,
		)
		return
	}
	// Threads of the producer do not take part: they have exited or run their own loop.
	if e.extra > 0 {
		e.asm.do("bar.sync", 0, e.threads)
		return
	}
	e.asm.do("bar.sync", 0)
}

// waitForWrites makes the writes to shared memory since the last barrier visible to
// all threads.
func (e *emitter) waitForWrites() {
	if e.async {
		e.asm.do("cp.async.wait_all")
	}
	if e.fresh {
		e.barrier()
	}
	e.fresh, e.async = false, false
}

// bankStrides has strides for dimensions in the given order. Rows of the fastest
// dimension that has more than one element are padded to an odd number of 4-byte
// words, so that the elements of a column are in different banks.
func (e *emitter) bankStrides(sizes []int64, order []int, size int64) []int64 {
	strides := make([]int64, len(sizes))
	n, padded := int64(1), false
	for _, d := range slices.Backward(order) {
		strides[d] = n
		n *= sizes[d]
		if !padded && sizes[d] > 1 {
			// An odd number of words is coprime to the 32 banks.
			words := index.CeilDiv(n*size, 4)
			n = max(1, (words|1)*4/size)
			padded = true
		}
	}
	return strides
}

// lineBytes is the width of all 32 banks of shared memory.
const lineBytes = 32 * 4

// newSwizzle is the swizzle for units of the given bytes, a power of two, in rows that
// are a whole number of units long.
func newSwizzle(unit, row int64) swizzle {
	s := swizzle{unit: unit, group: 1}
	line, n := lineBytes/unit, row/unit
	for s.group < line && n%(2*s.group) == 0 {
		s.group *= 2
	}
	s.span = line / s.group
	return s
}

// swizzled is the position in its row of element col, in elements of the given size.
func (e *emitter) swizzled(s swizzle, row, col index.Expr, size int64) index.Expr {
	if s.group == 1 {
		return col
	}
	// Columns are split into group, unit and element; the xor permutes the units of a
	// group.
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

// xor is the exclusive or of two expressions in [0, group), where group is a power of
// two. Index expressions have no such operation, so it is a variable that the emitter
// computes where it is used.
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

// position is the part of an element's position that the two dimensions of the
// transposed tile contribute, in elements.
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
