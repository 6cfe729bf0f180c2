package symtile

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// A loopGroup is a set of closers (reduce, dot) that walk one loop together: none
// depends on another, their sequential extents are equal, and they read
// something in common, which the shared loop then loads once.
type loopGroup struct {
	level   int // closers below, on the longest path; equal levels cannot depend on each other
	extents []int64
	arrays  map[*hlo.Instr]bool // arrays its members read, up to the closers below
}

// loopGroups finds the groups of a computation, by member.
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

// canShare says whether a closer described by g can walk the loop of h.
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

// arraysRead collects the arrays read below i, not looking past other closers.
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

// isAccumulator says whether i accumulates over sequential dimensions.
func isAccumulator(i *hlo.Instr) bool {
	return i.Op == hlo.OpReduce && len(i.Attrs.Dimensions) > 0 ||
		i.Op == hlo.OpDot && len(i.Attrs.LHSContract) > 0
}

// sequentialExtents lists the extents a closer loops over; nil for other ops.
func sequentialExtents(i *hlo.Instr) []int64 {
	var extents []int64
	switch i.Op {
	case hlo.OpReduce:
		for _, d := range reducedDims(i) {
			extents = append(
				extents, i.Operands[0].Shape.Dims[d],
			)
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

// reducedDims are the reduced dimensions in ascending order.
func reducedDims(i *hlo.Instr) []int64 {
	return slices.Sorted(slices.Values(i.Attrs.Dimensions))
}
