package symtile

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/scattering"
)

// A loopGroup is a set of accumulators (reduce, dot) that share one loop: none
// depends on another, the extents they reduce are equal, and they read an array
// in common, which the loop then loads once.
type loopGroup struct {
	// level is the number of accumulators below, on the longest path.
	// Accumulators of equal level cannot depend on each other.
	level int
	// extents are the sequential extents of its members.
	extents []int64
	// arrays are those that its first member reads, up to the accumulators
	// below.
	arrays map[*hlo.Instr]bool
}

// loopGroups assigns a group to every accumulator of a computation. An
// accumulator joins the first group that it can share, so that the result
// depends on the order of the instructions only.
func loopGroups(c *hlo.Computation) map[*hlo.Instr]*loopGroup {
	groups := map[*hlo.Instr]*loopGroup{}
	levels := make(map[*hlo.Instr]int, len(c.Instrs))
	var all []*loopGroup
	for _, i := range c.Instrs {
		for _, o := range i.Operands {
			levels[i] = max(levels[i], levels[o])
		}
		if !isAccumulator(i) {
			continue
		}
		g := &loopGroup{
			level:   levels[i],
			extents: sequentialExtents(i),
			arrays:  arraysRead(i),
		}
		levels[i]++
		if k := slices.IndexFunc(all, g.canShare); k >= 0 {
			groups[i] = all[k]
			continue
		}
		all = append(all, g)
		groups[i] = g
	}
	return groups
}

// canShare reports whether an accumulator described by g can be in the loop of
// h.
func (g *loopGroup) canShare(h *loopGroup) bool {
	if g.level != h.level ||
		!slices.Equal(g.extents, h.extents) {
		return false
	}
	for i := range g.arrays {
		if h.arrays[i] {
			return true
		}
	}
	return false
}

// arraysRead collects the arrays that are read below i, not looking past other
// accumulators. Scalars, constants and iotas cost no traffic and do not count.
func arraysRead(i *hlo.Instr) map[*hlo.Instr]bool {
	found := map[*hlo.Instr]bool{}
	stack := slices.Clone(i.Operands)
	for len(stack) > 0 {
		o := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if found[o] || o.Shape.Rank() == 0 ||
			o.Op == hlo.OpConstant || o.Op == hlo.OpIota {
			continue
		}
		found[o] = true
		if !isAccumulator(o) {
			stack = append(stack, o.Operands...)
		}
	}
	return found
}

// isAccumulator reports whether i accumulates over sequential dimensions. A
// reduce of no dimensions and an outer product do not. A scatter of one update
// has none, and is like a reduction of one tile.
func isAccumulator(i *hlo.Instr) bool {
	return i.Op == hlo.OpScatter ||
		i.Op == hlo.OpReduce && len(i.Attrs.Dimensions) > 0 ||
		i.Op == hlo.OpDot && len(i.Attrs.LHSContract) > 0
}

// sequentialExtents lists the extents that an accumulator reduces: those of the
// reduced dimensions in ascending order, of the contracting ones in the
// order of the left operand's attribute, or the one along which a scatter goes through its
// updates. It is nil for other operations.
func sequentialExtents(i *hlo.Instr) []int64 {
	var extents []int64
	switch i.Op {
	case hlo.OpReduce:
		for _, d := range reducedDims(i) {
			extents = append(
				extents, i.Operands[0].Shape.Dims[d],
			)
		}
	case hlo.OpScatter:
		if u := scattering.Along(i); u >= 0 {
			extents = append(extents, i.Operands[2].Shape.Dims[u])
		}
	case hlo.OpDot:
		for _, d := range i.Attrs.LHSContract {
			extents = append(
				extents, i.Operands[0].Shape.Dims[d],
			)
		}
	}
	return extents
}

// reducedDims are the dimensions that a reduce reduces, in ascending order.
func reducedDims(i *hlo.Instr) []int64 {
	return slices.Sorted(slices.Values(i.Attrs.Dimensions))
}
