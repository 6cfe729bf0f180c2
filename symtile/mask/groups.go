package mask

import (
	"slices"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Groups of rows of different sizes: an operand of a product over all groups,
//
//	select(start[g] ≤ m and m < end[g], x[m, k], 0)
//
// (jax.lax.ragged_dot), is 0 but for the rows of group g. Which rows these are is known at
// run time only, and there the same for all k.

// Groups says that an operand of a product is 0 where any of its bounds is negative.
type Groups struct {
	// Op is the operand, and Dim the dimension that numbers the groups.
	Op, Dim int
	Bounds  []GroupBound
}

// A GroupBound is Σ Factors[d]·x[d] + Const + Sign·number[x[Dim]] at an index x of the
// operand.
type GroupBound struct {
	Factors []int64
	Const   int64
	// Numbers is the op of a vector of s32 with a number for each group; Sign is 1 or −1.
	Numbers int
	Sign    int64
}

// GroupsOf are the groups of the operands of product n, the left one first. It reports whether
// there are any. What the other operand has where this one is 0 is taken to be finite.
func GroupsOf(p *symtile.Program, n int) (Groups, bool) {
	if p.Ops[n].Code != hlo.OpDot {
		return Groups{}, false
	}
	for _, a := range p.Ops[n].Args {
		op := &p.Ops[a]
		f := finder{p, map[int]int{}}
		if op.Code != hlo.OpSelect {
			continue
		}
		zero, ok := f.constant(op.Args[2])
		if !ok || zero != 0 {
			continue
		}
		for d := range op.Instr.Shape.Dims {
			bounds := f.groupBounds(op.Args[0], d)
			if len(bounds) > 0 {
				return Groups{a, d, bounds}, true
			}
		}
	}
	return Groups{}, false
}

// groupBounds are the bounds that hold wherever predicate n does.
func (f finder) groupBounds(n, dim int) []GroupBound {
	op := &f.p.Ops[n]
	if f.met(n) {
		return nil
	}
	switch op.Code {
	case hlo.OpAnd:
		return append(
			f.groupBounds(op.Args[0], dim),
			f.groupBounds(op.Args[1], dim)...,
		)
	case hlo.OpCompare:
		b, ok := f.groupBound(op, dim)
		if ok {
			return []GroupBound{b}
		}
	}
	return nil
}

// groupBound is that of a comparison of a linear form with a number of each group.
func (f finder) groupBound(op *symtile.Op, dim int) (b GroupBound, ok bool) {
	// The smaller side is subtracted from the larger one.
	var less int64
	switch op.Instr.Attrs.Direction {
	case "LE", "GE":
	case "LT", "GT":
		less = 1
	default:
		return b, false
	}
	larger, smaller := op.Args[1], op.Args[0]
	if op.Instr.Attrs.Direction[0] == 'G' {
		larger, smaller = smaller, larger
	}
	b.Sign = 1
	x := smaller
	numbers, ok := f.perGroup(larger, dim)
	if !ok {
		b.Sign = -1
		x = larger
		numbers, ok = f.perGroup(smaller, dim)
	}
	v, linear := f.linear(x)
	if !ok || !linear || v.factors[dim] != 0 {
		return b, false
	}
	b.Numbers = numbers
	b.Factors = make([]int64, len(v.factors))
	for d, k := range v.factors {
		b.Factors[d] = -b.Sign * k
	}
	b.Const = -b.Sign*v.constant - less
	return b, true
}

// perGroup is the vector of which op n repeats each element along all dimensions but dim,
// if it follows from parameters without a loop.
func (f finder) perGroup(n, dim int) (numbers int, ok bool) {
	op := &f.p.Ops[n]
	ok = op.Code == hlo.OpBroadcast &&
		op.Instr.Shape.DType == hlo.S32 &&
		slices.Equal(op.Instr.Attrs.Dimensions, []int64{int64(dim)})
	return append(op.Args, 0)[0], ok && f.loopless(n)
}

// loopless reports whether op n depends on no reduction or product.
func (f finder) loopless(n int) bool {
	op := &f.p.Ops[n]
	if op.Code == hlo.OpReduce || op.Code == hlo.OpDot || f.met(n) {
		return false
	}
	for _, a := range op.Args {
		if !f.loopless(a) {
			return false
		}
	}
	return true
}
