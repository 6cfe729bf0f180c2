package cpu

import (
	"math"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// Softmaxes in nests: e^(x − m) over its sum, for m the maximum of the row, where nothing
// else is read of them. Powers and their sum can both be 2^32 times as large, which saves
// to take that away again and changes no quotient that is a normal number, and the maximum
// may be any number where an element is NaN, since the sum is NaN then, or have either
// sign where it is 0.

// markSoftmaxes finds those of a nest.
func (n *rowKernel) markSoftmaxes() {
	for _, p := range n.pointwiseOps() {
		e, sum := n.softmaxQuotient(p)
		if e != nil && n.readByQuotientsOnly(e, sum) {
			n.scaledExps[e] = true
			if most := n.rowMax(e); n.maxReadByExpOnly(most, e) {
				most.relaxed = true
			}
		}
	}
}

// pointwiseOps are the operations of the nest.
func (n *rowKernel) pointwiseOps() (list []*pointwiseOp) {
	for _, i := range n.items {
		for _, x := range i.group {
			if x.pointwise != nil {
				list = append(list, x.pointwise)
			}
		}
	}
	return list
}

// softmaxQuotient is what a quotient divides by its sum, a power of e that is at most 1, and the
// fold that is the sum; nil where it is none.
func (n *rowKernel) softmaxQuotient(p *pointwiseOp) (e *value, sum *rowReduction) {
	if n.rowDivisor(p) == nil {
		return nil, nil
	}
	e = p.args[0]
	made := n.ops[e]
	if made == nil || !n.isSmallExp(made) {
		return nil, nil
	}
	sum = n.privateReduction(n.broadcasts[p.args[1]])
	if sum == nil || sum.monoid != hlo.OpAdd ||
		sum.arg != e || !sum.initIs(0) {
		return nil, nil
	}
	return e, sum
}

// privateReduction is the fold of rows that makes v and that nothing outside of the nest reads.
func (n *rowKernel) privateReduction(v *value) *rowReduction {
	k := slices.IndexFunc(n.reductions, func(f *rowReduction) bool {
		return f.out == v && f.perRow
	})
	if k < 0 || n.stores[v] != nil {
		return nil
	}
	return n.reductions[k]
}

func (f *rowReduction) initIs(x float64) bool {
	return f.init != nil && f.init.constant != nil &&
		*f.init.constant == math.Float32bits(float32(x))
}

// readByQuotientsOnly says whether e and its sum are read by nothing but quotients of both.
func (n *rowKernel) readByQuotientsOnly(e *value, sum *rowReduction) bool {
	if n.stores[e] != nil {
		return false
	}
	shares := func(p *pointwiseOp) bool {
		x, of := n.softmaxQuotient(p)
		return x == e && of == sum
	}
	return n.readOnlyBy(e, shares, sum) &&
		n.readOnlyBy(sum.out, shares, nil)
}

// rowMax is the fold that is the maximum of the row for e^(x − maximum).
func (n *rowKernel) rowMax(e *value) *rowReduction {
	return n.privateReduction(
		n.broadcasts[n.ops[n.ops[e].args[0]].args[1]],
	)
}

// maxReadByExpOnly says whether a maximum is read by nothing but x − maximum for the power e, and
// that by nothing but e.
func (n *rowKernel) maxReadByExpOnly(most *rowReduction, e *value) bool {
	less := n.ops[e].args[0]
	if most == nil ||
		!most.initIs(math.Inf(-1)) ||
		n.stores[less] != nil {
		return false
	}
	return n.readOnlyBy(less, func(p *pointwiseOp) bool {
		return p.out == e
	}, nil) &&
		n.readOnlyBy(most.out, func(p *pointwiseOp) bool {
			return p.out == less
		}, nil)
}

// readOnlyBy says whether all that reads v, or what repeats it, is a fold or operations that
// may.
func (n *rowKernel) readOnlyBy(
	v *value, may func(*pointwiseOp) bool, fold *rowReduction,
) bool {
	for _, i := range n.items {
		for _, x := range append(i.group, i) {
			if !slices.Contains(x.stripArgs, v) && !slices.Contains(x.tileArgs, v) ||
				x.group != nil {
				continue
			}
			switch {
			case x.pointwise != nil && may(x.pointwise):
			case x.reduction != nil && fold != nil &&
				x.reduction.out == fold.out:
			case len(x.outs) == 1 &&
				n.broadcasts[x.outs[0]] == v &&
				n.readOnlyBy(x.outs[0], may, nil):
			default:
				return false
			}
		}
	}
	return true
}
