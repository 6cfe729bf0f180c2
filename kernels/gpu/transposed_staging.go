package gpu

import (
	"slices"

	"github.com/tilewright/tilewright/kernels/gpu/coalesce"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// A transposedTile is a tile in shared memory that is written row by row, as it comes
// from memory, and read across the rows, as it goes to memory. A thread reads
// vector neighbouring rows r = vector·q + i; threads next to each other have
// next q. Row r is therefore number i·step + q in shared memory, and its units
// are swizzled by q. step is odd where several rows make a line of the banks, so
// that those written together lie apart as well.
type transposedTile struct {
	along, across int // dimensions: of a row, and of the rows
	vector        int64
	step          int64
	pitch         int64 // elements
	swizzle       swizzle
}

// lineVectors is how many vectors of 16 bytes make a line of the banks: what
// threads have of a row of the result, before others go on at the next.
const lineVectors = lineBytes / maxVectorBytes

// transposedTileOf says how the tile of op n, whose elements have an order in memory,
// is read by a result whose order is another; nil if there is none.
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

// permutationFrom is the dimensions of op n that those of op m are, where m is made of n
// by elementwise operations and transposes; nil if it is not.
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

// transposedBuffer is a buffer for a tile that is read crosswise.
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

// transposedLayout is the spread of a result that is read crosswise from shared
// memory: a line's worth of threads along its rows, the others along what the
// rows are in shared memory; nil for other results.
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
