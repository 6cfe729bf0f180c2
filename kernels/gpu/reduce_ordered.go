package gpu

import (
	"slices"

	"github.com/tilewright/tilewright/symtile"
)

// An orderedReduction reduces by a computation that may depend on the order of the
// elements, from a start value that may change the result. Every thread combines a
// contiguous piece, pieces are combined in their order, then tiles, and the start
// value is first, once. Only the association differs from combining one element after
// the other, which a reduce leaves open (StableHLO specification, reduce).
type orderedReduction struct {
	*reduction
	// Carried is the result of the tiles so far, by result of this thread.
	carried [][]operand
}

// newOrderedReduction rejects tiles that do not visit the elements in row-major order.
func (e *emitter) newOrderedReduction(r *reduction) *orderedReduction {
	tile := e.p.Ops[r.op.Args[0]].Tile
	o := orderOf(e.p, r.op)
	k := o.broken(tile.Sizes(), func(d int) int64 {
		return constantOf(e.p.Space.Dims[d].Tiles)
	})
	if k >= 0 {
		e.reject(
			"%s: its computation %s is folded in the order of elements, and tiles of %v do not go through dimension %d of %s in order",
			r.op.Instr.Name,
			r.op.Instr.Attrs.ToApply.Name,
			tile.Sizes(), o.reduced[k],
			r.op.Instr.Operands[0].Name,
		)
	}
	return &orderedReduction{reduction: r}
}

// A reductionOrder is the order in which a loop visits the reduced dimensions of an
// array.
type reductionOrder struct {
	// Reduced are the reduced dimensions, slowest first in row-major order.
	reduced []int64
	// Cuts are the dimensions of the tile space that divide each of them.
	cuts [][]cut
	// Digits is set for dimensions whose tiles have digits.
	digits []bool
}

// A cut is a dimension of the tile space that divides a reduced dimension, with its
// place among the loop's dimensions.
type cut struct{ dim, at int }

// orderOf is the order of a reduce of the program.
func orderOf(p *symtile.Program, op symtile.Op) reductionOrder {
	o := reductionOrder{
		reduced: slices.Sorted(slices.Values(op.Instr.Attrs.Dimensions)),
	}
	for _, d := range o.reduced {
		x := p.Ops[op.Args[0]].Tile[d]
		var cuts []cut
		if op.Loop != nil {
			for at, k := range op.Loop.Dims {
				if slices.Contains(x.Offset.Vars(), p.Space.Dims[k].Tid) {
					cuts = append(cuts, cut{k, at})
				}
			}
		}
		o.cuts = append(o.cuts, cuts)
		o.digits = append(o.digits, x.Digits != nil)
	}
	return o
}

// broken is a reduced dimension that tiles of the given sizes do not visit in
// row-major order; −1 where there is none. The order is kept if the loop's dimensions
// are in the order of the array's, and no tile has more than one element along a
// dimension before one that is divided.
func (o reductionOrder) broken(sizes []int64, tiles func(dim int) int64) int {
	last, whole := -1, false
	for k, d := range o.reduced {
		for _, c := range o.cuts[k] {
			if tiles(c.dim) <= 1 {
				continue
			}
			if whole || c.at < last || o.digits[k] {
				return k
			}
			last = c.at
		}
		// A later dimension that is divided would be visited out of order.
		whole = whole || sizes[d] > 1
	}
	return -1
}

// begin sets what is carried to the start value, or to nothing in a piece of a loop
// that other pieces precede.
func (r *orderedReduction) begin() {
	r.start()
	first := yes
	if r.op.Loop != nil &&
		r.e.iterationRange(r.op.Loop.Dims).divided() {
		first = no
	}
	for range r.accs {
		c := r.fresh()
		for part, d := range r.partial() {
			v := first
			if part < len(r.types) {
				v = r.init[part]
			}
			r.e.set(kindFor(d), c[part], v)
		}
		r.carried = append(r.carried, c)
	}
}

// accumulate reduces a tile and appends its result to what is carried.
func (r *orderedReduction) accumulate() {
	// The partial results of the tile are joined into new registers; the accumulators
	// are restored for the next tile.
	accs := slices.Clone(r.accs)
	r.clear()
	r.reduction.accumulate()
	r.carry()
	r.accs = accs
}

// clear makes the partial results empty.
func (r *orderedReduction) clear() {
	for _, acc := range r.accs {
		for part, d := range r.partial() {
			v := no
			if part < len(r.types) {
				// The value is not used.
				v = r.init[part]
			}
			r.e.set(kindFor(d), acc[part], v)
		}
	}
}

// carry combines the partial results of all threads and appends them to what is
// carried.
func (r *orderedReduction) carry() {
	r.joinThreads()
	for k, c := range r.carried {
		next := r.join(r.frozen(c), r.accs[k])
		for part, d := range r.partial() {
			r.e.set(kindFor(d), c[part], next[part])
		}
	}
}

// storePartial stores what a piece of the loop has carried.
func (r *orderedReduction) storePartial() {
	for k, c := range r.carried {
		r.accs[k] = r.frozen(c)
	}
	r.store()
}

// addPartials appends the results of all pieces to what is carried.
func (r *orderedReduction) addPartials() {
	r.clear()
	r.reduction.addPartials()
	r.carry()
}

// finish rounds and publishes what is carried, which includes the start value.
func (r *orderedReduction) finish() {
	for k, c := range r.carried {
		r.accs[k] = r.frozen(c)
		for part, d := range r.types {
			r.accs[k][part] = r.e.fit(
				d, r.accs[k][part],
			)
		}
	}
	r.publish()
}
