package gpu

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/kernels/gpu/coalesce"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// Staging is work that all threads of a block share: they bring a value to shared
// memory, where others read it after a barrier, or store a result.

// stage copies the tile of op n to shared memory, in the order in which it is loaded.
// A tile that is read in another order is swizzled; rows of others are padded to an
// odd number of words, so that the elements of a column are in different banks.
func (e *emitter) stage(n int) {
	op := e.p.Ops[n]
	d := registerType(op.Instr.Shape.DType)
	threads := e.flat(n, d.Size()).Layout
	sizes := op.Tile.Sizes()
	order := threads.Order()
	key := bufferKey{n, 0}
	// The elements are computed, not loaded from an earlier copy of the tile.
	delete(e.buffers, key)
	var b *buffer
	if c := e.transposedTileOf(n, order, d.Size()); c != nil {
		b = e.transposedBuffer(
			&buffer{d: d, sizes: sizes}, c, order,
		)
	} else {
		b = e.newBuffer(
			d, sizes,
			e.bankStrides(sizes, order, d.Size()),
		)
	}
	e.asm.note("%s to shared memory", e.describe(n))
	e.asm.enter()
	e.each(threads, func(points []point) {
		vals := e.elements(n, points)
		e.put(b, points, vals)
	})
	e.asm.leave()
	e.barrier()
	e.buffers[key] = b
}

// storeRoot stores a result of the program to its output. A root that several tile
// programs compute is stored by the first of them (Once).
func (e *emitter) storeRoot(r symtile.Root) {
	op := e.p.Ops[r.Op]
	shape := op.Instr.Shape
	e.asm.note(
		"output %d from %s", r.Output, e.describe(r.Op),
	)
	e.root = r.Op
	clear(e.noted)
	e.asm.enter()
	defer e.asm.leave()
	out := memory{global, e.output(r.Output), 0}
	// Where several tile programs compute a root, the one with tile id 0 along the
	// dimensions that do not divide it stores it.
	var once conditions
	for _, d := range r.Once {
		once = once.and(e.p.Space.Dims[d].Tid.Neg())
	}
	e.distribute(r.Op, shape, func(points []point) {
		places := make([]place, len(points))
		for k := range points {
			points[k].when = points[k].when.all(once)
			index, valid := e.tensor(
				op.Tile, points[k].at,
			)
			points[k].when = points[k].when.all(valid)
			places[k] = place{
				e.dotted(index, shape.Strides()),
				points[k].when,
			}
		}
		e.scatterPlaces(
			out, shape.DType, places,
			e.elements(r.Op, points),
		)
	})
}

// distribute emits body for all elements of a root, by the layout in which a product
// or a reduction has left a tile of these sizes in registers, or else by the layout
// that was chosen for storing it.
func (e *emitter) distribute(
	n int, shape hlo.Shape, body func(points []point),
) {
	sizes := e.p.Ops[n].Tile.Sizes()
	f := e.fragments[fmt.Sprint(sizes)]
	if f != nil && !e.hints.separateStores[n] {
		if e.knobs.epilogue == 0 {
			f(body)
			return
		}
		if e.narrowsProduct(n) {
			e.stageRoot(n, shape, f)
		}
	}
	if s := e.layouts[fmt.Sprint(sizes)]; s != nil {
		e.vectors(s, body)
		return
	}
	if s := e.transposedLayout(n, shape.DType.Size()); s != nil {
		e.each(s, body)
		return
	}
	c := e.stored(n)
	e.share(c)
	e.each(c.Layout, body)
}

// narrowsProduct reports whether a root is computed from a product alone, in a narrower
// type: it is converted where it is in registers, so that less is staged.
func (e *emitter) narrowsProduct(n int) bool {
	d := registerType(e.typeOf(n, 0))
	for k, used := range usedBy(e.p, []int{n}, nil) {
		op := e.p.Ops[k]
		if !used || op.Code != hlo.OpDot {
			continue
		}
		sizes := e.p.Ops[n].Tile.Sizes()
		if slices.Equal(op.Tile.Sizes(), sizes) &&
			e.typeOf(k, 0).Size() > d.Size() {
			return k != n && len(e.accesses(n, false)) == 0
		}
	}
	return false
}

// stageRoot computes a root from the fragments of a product, and puts it in shared
// memory.
func (e *emitter) stageRoot(
	n int, shape hlo.Shape, fragments func(body func(points []point)),
) {
	sizes := e.p.Ops[n].Tile.Sizes()
	d := registerType(shape.DType)
	b := &buffer{
		d: d, sizes: sizes,
		strides: rowPadded(sizes, d.Size()),
	}
	b.at = e.allocateFreed(span(sizes, b.strides) * d.Size())
	e.asm.enter()
	fragments(func(points []point) {
		e.put(b, points, e.elements(n, points))
	})
	e.asm.leave()
	e.buffers[bufferKey{n, 0}] = b
	// Threads store what others have computed.
	e.barrier()
}

// lineVectors is the number of 16-byte vectors in a line of the banks: the threads
// that share a row of a result before the next threads begin another row.
const lineVectors = lineBytes / maxVectorBytes

// transposedTileOf is the layout in shared memory of the tile of op n, which is loaded
// in the given order of dimensions but stored in another; nil where the fastest
// dimensions are the same.
func (e *emitter) transposedTileOf(n int, order []int, size int64) *transposedTile {
	sizes := e.p.Ops[n].Tile.Sizes()
	along := coalesce.FastestDim(sizes, order)
	across := along
	for _, r := range e.p.Roots {
		if perm := e.permutationFrom(n, r.Op); perm != nil {
			across = perm[coalesce.FastestDim(
				e.p.Ops[r.Op].Tile.Sizes(),
				e.stored(r.Op).Layout.Order(),
			)]
			break
		}
	}
	if across == along {
		return nil
	}
	c := &transposedTile{along: along, across: across}
	// The unit of the swizzle is as wide as the rows that one vector of threads reads,
	// and divides the pitch.
	c.vector = e.box(sizes, size).VectorWidth(sizes[across])
	c.step = sizes[across] / c.vector
	c.pitch = index.CeilDiv(sizes[along]*size, maxVectorBytes) *
		maxVectorBytes / size
	unit := maxVectorBytes * lineVectors / min(lineVectors, powerOver(c.step))
	for c.pitch*size%unit != 0 {
		unit /= 2
	}
	c.swizzle = newSwizzle(unit, c.pitch*size)
	if c.swizzle.span > 1 {
		c.step |= 1
	}
	return c
}

// permutationFrom maps the dimensions of op m to those of op n, where m is computed
// from n by elementwise operations and transposes; nil where it is not.
func (e *emitter) permutationFrom(n, m int) []int {
	if n == m {
		return identity(len(e.p.Ops[n].Tile))
	}
	op := e.p.Ops[m]
	switch {
	case op.Code == hlo.OpTranspose:
		from := e.permutationFrom(n, op.Args[0])
		if from == nil {
			return nil
		}
		perm := make([]int, len(op.Perm))
		for k, d := range op.Perm {
			perm[k] = from[d]
		}
		return perm
	case op.Code.Elementwise():
		for _, a := range op.Args {
			if len(e.p.Ops[a].Tile) != len(op.Tile) {
				continue
			}
			if perm := e.permutationFrom(n, a); perm != nil {
				return perm
			}
		}
	}
	return nil
}

// transposedBuffer allocates a tile that is read in another order than it is written.
func (e *emitter) transposedBuffer(b *buffer, c *transposedTile, order []int) *buffer {
	b.transposed = c
	b.strides = make([]int64, len(b.sizes))
	n := c.vector * c.step * c.pitch
	for _, d := range slices.Backward(order) {
		if d != c.along && d != c.across {
			b.strides[d] = n
			n *= b.sizes[d]
		}
	}
	b.at = e.allocateShared(n * b.d.Size())
	return b
}

// transposedLayout is the thread layout of a result that is read from a transposed
// tile: lineVectors threads along a row of the result, the others along what are rows
// in shared memory. It is nil for other results.
func (e *emitter) transposedLayout(n int, size int64) *coalesce.ThreadLayout {
	for _, s := range e.hints.stagedOps() {
		perm := e.permutationFrom(s, n)
		b := e.buffers[bufferKey{s, 0}]
		if perm == nil || b == nil || b.transposed == nil {
			continue
		}
		sizes := e.p.Ops[n].Tile.Sizes()
		along := slices.Index(perm, b.transposed.across)
		across := slices.Index(perm, b.transposed.along)
		outer := slices.DeleteFunc(
			e.stored(n).Layout.Order(),
			func(d int) bool { return d == along || d == across },
		)
		v := e.box(sizes, size).VectorWidth(sizes[along])
		lanes := min(
			lineVectors, powerOver(index.CeilDiv(sizes[along], v)),
			e.threads,
		)
		return coalesce.NewThreadLayout(
			sizes, append(outer, across),
			[]int{along}, e.threads, lanes, v,
		)
	}
	return nil
}
