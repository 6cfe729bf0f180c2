package gpu

import (
	"slices"

	"github.com/tilewright/tilewright/kernels/gpu/coalesce"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// A rowTile is an operand of a scalarDot in shared memory, in the order it has
// in memory: for every element of the batch rows of pitch elements, along the
// free dimension or along k. Rows along k are swizzled: threads next to each
// other read the same k of rows next to each other.
type rowTile struct {
	name    string
	tile    operandTile
	d       hlo.DType // in shared memory
	free, k int64
	each    int64 // rows or columns of a thread
	byK     bool  // a row is one k
	pitch   int64 // elements
	swizzle swizzle
	at      int64
}

func (e *emitter) rowTile(name string, s *scalarDot, o operandTile, free, each int64) *rowTile {
	r := &rowTile{
		name: name,
		tile: o,
		d:    s.sum,
		free: free,
		k:    s.k,
		each: each,
		byK:  e.alongFree(o, s.sum.Size()),
	}
	row, size := r.k, s.sum.Size()
	if r.byK {
		row = r.free
	}
	r.pitch = index.CeilDiv(row*size, maxVectorBytes) * maxVectorBytes / size
	r.swizzle = newSwizzle(maxVectorBytes, r.pitch*size)
	if r.byK {
		r.swizzle.group = 1
	}
	return r
}

// alongFree says whether threads run along a free or a batch dimension of an
// operand, whose elements come in the size, not along a contracted one.
func (e *emitter) alongFree(o operandTile, size int64) bool {
	d := coalesce.FastestDim(
		o.sizes,
		e.flat(o.arg, size).Layout.Order(),
	)
	return d >= 0 && o.sizes[d] > 1 &&
		!slices.Contains(o.contract, d)
}

func (r *rowTile) bytes(batch int64) int64 {
	rows := r.free
	if r.byK {
		rows = r.k
	}
	return batch * rows * r.pitch * r.d.Size()
}

// placeIn is where element (b, free, k) of a tile is.
func (e *emitter) placeIn(
	r *rowTile, b, free, k index.Expr, when conditions,
) place {
	row := free
	col := k
	rows := r.free
	if r.byK {
		row = k
		col = free
		rows = r.k
	}
	return place{
		b.Scale(rows).Add(row).Scale(r.pitch).Add(e.swizzled(
			r.swizzle, row, col, r.d.Size(),
		)),
		when,
	}
}

// piece is how many neighbouring rows or columns of a thread stand together:
// where they follow each other in shared memory vectors of 16 bytes, the others
// a part of the tile further, so that the vectors of neighbouring threads follow
// each other.
func (r *rowTile) piece() int64 {
	if !r.byK {
		return 1
	}
	return min(
		r.each,
		max(1, maxVectorBytes/r.d.Size()),
	)
}

// element is the row or column that is a thread's number i.
func (r *rowTile) element(i int64, position index.Expr) index.Expr {
	p := r.piece()
	return position.Scale(p).AddConst(
		i/p*(r.free/(r.each/p)) + i%p,
	)
}
