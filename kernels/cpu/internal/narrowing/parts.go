package narrowing

import (
	"slices"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Parts says of the ops of a symbolic program what narrowing does wherever a tile has all of
// the dimension along which parts are joined.
type Parts struct {
	// Narrow are ops that only joins read, perhaps through others: they are computed for
	// their part of a tile.
	Narrow []bool
	// Axis is the dimension that has to be in one tile for an op to be left out: a join of
	// computed parts, which are stored where they belong; the condition of a select that is
	// one, and what spreads its operands. It is −1 for other ops.
	Axis []int
}

// Prices are of tilings whose programs nobody has made, so that what is narrow is found by the
// operations alone. It may be more than narrowing does in the end, where tiles do not agree.

// Find is what narrowing does to a program.
func Find(p *symtile.Program) Parts {
	x := Parts{
		Narrow: make([]bool, len(p.Ops)),
		Axis:   make([]int, len(p.Ops)),
	}
	for n := range x.Axis {
		x.Axis[n] = -1
	}
	joins := func(op symtile.Op) bool {
		return joining[op.Code]
	}
	if !slices.ContainsFunc(p.Ops, joins) {
		return x
	}
	readers := make([][]int, len(p.Ops))
	for u, op := range p.Ops {
		for _, a := range op.Args {
			readers[a] = append(readers[a], u)
		}
	}
	stored := make([]bool, len(p.Ops))
	for _, r := range p.Roots {
		stored[r.Op] = true
	}
	// What the readers of an op do is known before it.
	for n := len(p.Ops) - 1; n >= 0; n-- {
		list := readers[n]
		all := slices.ContainsFunc(list, func(u int) bool {
			return !x.keeps(p, u, n)
		})
		whole := all || stored[n] || len(list) == 0
		x.Narrow[n] = !whole && p.Ops[n].Loop == nil
		if !x.read(p, list) {
			x.Axis[n] = x.axisOf(p, n, list)
		}
	}
	return x
}

// axisOf is the axis of an op that only element operations read.
func (x *Parts) axisOf(p *symtile.Program, n int, readers []int) int {
	op := p.Ops[n]
	switch op.Code {
	case hlo.OpConcatenate:
		if computed(p, n) {
			return int(op.Instr.Attrs.Dimensions[0])
		}
	case hlo.OpSelect:
		// A select by anything else is computed, also where only parts of it are.
		count, _, _ := condition(p, op)
		if count != nil {
			return int(count.Instr.Attrs.IotaDim)
		}
	case hlo.OpCompare, hlo.OpIota, hlo.OpBroadcast:
		return x.spread(p, n, readers)
	}
	return -1
}

// spread is the axis of what is read by nothing but selects that join parts, as their condition
// or repeated for them.
func (x *Parts) spread(p *symtile.Program, n int, readers []int) int {
	op := p.Ops[n]
	axis := -1
	for _, u := range readers {
		next := x.Axis[u]
		reader := p.Ops[u]
		if next < 0 || reader.Code == hlo.OpConcatenate ||
			axis >= 0 && axis != next {
			return -1
		}
		conditions := reader.Code != hlo.OpSelect || reader.Args[0] == n
		switch {
		case op.Code != hlo.OpBroadcast && !conditions:
			return -1 // a value of the result
		case len(op.Tile) != len(reader.Tile):
			return -1 // one number, or one of each part
		case op.Code == hlo.OpBroadcast && reader.Code == hlo.OpSelect &&
			slices.Contains(op.Instr.Attrs.Dimensions, int64(next)):
			// A broadcast along another dimension is one of each part.
			return -1
		}
		axis = next
	}
	return axis
}

// keeps reports whether op u reads op n for a part of its tile alone.
func (x *Parts) keeps(p *symtile.Program, u, n int) bool {
	op := p.Ops[u]
	if placed(op, slices.Index(op.Args, n)) {
		return computed(p, n)
	}
	switch op.Code {
	case hlo.OpCopy, hlo.OpSlice, hlo.OpDynamicSlice, hlo.OpReshape,
		hlo.OpBroadcast, hlo.OpTranspose, hlo.OpReverse:
		return x.Narrow[u]
	}
	return isElementwise(op) && x.Narrow[u]
}

// read reports whether something else than element operations reads the result of a join.
func (x *Parts) read(p *symtile.Program, readers []int) bool {
	return slices.ContainsFunc(readers, func(u int) bool {
		return !isElementwise(p.Ops[u])
	})
}
