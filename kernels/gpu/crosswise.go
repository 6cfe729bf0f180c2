package gpu

import (
	"slices"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/layout"
)

// A crossing is a tile in shared memory that is written row by row, as it comes
// from memory, and read across the rows, as it goes to memory. A thread reads
// vector neighbouring rows r = vector·q + i; threads next to each other have
// next q. Row r is therefore number i·step + q in shared memory, and its units
// are swizzled by q. step is odd where several rows make a line of the banks, so
// that those written together lie apart as well.
type crossing struct {
	along, across int // dimensions: of a row, and of the rows
	vector        int64
	step          int64
	pitch         int64 // elements
	swizzle       swizzle
}

// lineVectors is how many vectors of 16 bytes make a line of the banks: what
// threads have of a row of the result, before others go on at the next.
const lineVectors = lineBytes / most

// crossingOf says how the tile of op n, whose elements have an order in memory,
// is read by a result whose order is another; nil if there is none.
func (e *emitter) crossingOf(n int, order []int, size int64) *crossing {
	sizes := e.p.Ops[n].Tile.Sizes()
	along := layout.Fastest(sizes, order)
	across := along
	for _, r := range e.p.Roots {
		if perm := e.turned(n, r.Op); perm != nil {
			across = perm[layout.Fastest(e.p.Ops[r.Op].Tile.Sizes(), e.stored(r.Op).Spread.Order())]
			break
		}
	}
	if across == along {
		return nil
	}
	c := &crossing{along: along, across: across}
	c.vector = e.box(sizes, size).Width(sizes[across])
	c.step = sizes[across] / c.vector
	c.pitch = ceilDiv(sizes[along]*size, most) * most / size
	unit := most * lineVectors / min(lineVectors, powerOver(c.step))
	for c.pitch*size%unit != 0 {
		unit /= 2
	}
	c.swizzle = newSwizzle(unit, c.pitch*size)
	if c.swizzle.span > 1 {
		c.step |= 1
	}
	return c
}

// turned is the dimensions of op n that those of op m are, where m is made of n
// by elementwise operations and transposes; nil if it is not.
func (e *emitter) turned(n, m int) []int {
	if n == m {
		return identity(len(e.p.Ops[n].Tile))
	}
	op := e.p.Ops[m]
	switch {
	case op.Code == hlo.OpTranspose:
		from := e.turned(n, op.Args[0])
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
			if perm := e.turned(n, a); perm != nil {
				return perm
			}
		}
	}
	return nil
}

// crossed is a buffer for a tile that is read crosswise.
func (e *emitter) crossed(b *buffer, c *crossing, order []int) *buffer {
	b.crossing, b.strides = c, make([]int64, len(b.sizes))
	n := c.vector * c.step * c.pitch
	for _, d := range slices.Backward(order) {
		if d != c.along && d != c.across {
			b.strides[d] = n
			n *= b.sizes[d]
		}
	}
	b.at = e.room(n * b.d.Size())
	return b
}

// position is where an element of the tile is, but for the other dimensions.
func (c *crossing) position(e *emitter, at []symtile.Expr, size int64) symtile.Expr {
	q, i := at[c.across].Div(c.vector), at[c.across].Mod(c.vector)
	return i.Scale(c.step).Add(q).Scale(c.pitch).Add(e.swizzled(c.swizzle, q, at[c.along], size))
}

// acrossSpread is the spread of a result that is read crosswise from shared
// memory: a line's worth of threads along its rows, the others along what the
// rows are in shared memory; nil for other results.
func (e *emitter) acrossSpread(n int, size int64) *layout.Spread {
	for _, s := range e.hints.stagedOps() {
		perm := e.turned(s, n)
		b := e.buffers[bufferKey{s, 0}]
		if perm == nil || b == nil || b.crossing == nil {
			continue
		}
		sizes := e.p.Ops[n].Tile.Sizes()
		along, across := slices.Index(perm, b.crossing.across), slices.Index(perm, b.crossing.along)
		outer := slices.DeleteFunc(e.stored(n).Spread.Order(), func(d int) bool { return d == along || d == across })
		v := e.box(sizes, size).Width(sizes[along])
		lanes := min(lineVectors, powerOver(ceilDiv(sizes[along], v)), e.threads)
		return layout.NewSpread(sizes, append(outer, across), []int{along}, e.threads, lanes, v)
	}
	return nil
}
