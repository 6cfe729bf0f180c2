package gpu

import (
	"slices"

	"github.com/tilewright/tilewright/symtile"
)

// An orderedReduction reduction folds by a computation that may depend on the order of
// the elements, from a start value that may change a result: every thread folds
// a piece, pieces are joined in their order, then tiles; the start value is
// first, once. Only how elements are put in brackets differs from folding them
// one after the other, which a reduce leaves open (StableHLO specification,
// reduce).
type orderedReduction struct {
	*reduction
	carried [][]operand // by result of this thread: what the tiles so far have given
}

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

// An reductionOrder is how a loop goes through the reduced dimensions of an array.
type reductionOrder struct {
	reduced []int64 // from the slowest in row-major order
	cuts    [][]cut // of each
	digits  []bool  // it has them
}

// A cut is a dimension of the space that walks tiles, and its place in the loop.
type cut struct{ dim, at int }

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

// broken is which of the reduced dimensions is not gone through in row-major
// order by tiles of the sizes, −1 when all are: the loop's dimensions are in the
// order of the array's, and before one that is cut no tile has more than one
// element.
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
		whole = whole || sizes[d] > 1
	}
	return -1
}

// begin has the start value carried, and by a piece of a loop, which others
// come before, nothing.
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

// accumulate folds a tile, and what it gives after what is carried.
func (r *orderedReduction) accumulate() {
	accs := slices.Clone(r.accs)
	r.clear()
	r.reduction.accumulate()
	r.carry()
	r.accs = accs
}

// clear sets the partial results to nothing.
func (r *orderedReduction) clear() {
	for _, acc := range r.accs {
		for part, d := range r.partial() {
			v := no
			if part < len(r.types) {
				v = r.init[part] // anything
			}
			r.e.set(kindFor(d), acc[part], v)
		}
	}
}

// carry joins the partial results of all threads and adds them to what is carried.
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

// addPartials folds what pieces have left after what is carried.
func (r *orderedReduction) addPartials() {
	r.clear()
	r.reduction.addPartials()
	r.carry()
}

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
