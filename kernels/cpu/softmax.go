package cpu

import (
	"github.com/tilewright/tilewright/symtile/hlo"
	"math"
	"slices"
)

// Softmaxes in nests: e^(x − m) over its sum, for m the maximum of the row, where nothing
// else is read of them. Powers and their sum can both be 2^32 times as large, which saves
// to take that away again and changes no quotient that is a normal number, and the maximum
// may be any number where an element is NaN, since the sum is NaN then, or have either
// sign where it is 0.

// softmaxes finds those of a nest.
func (n *nest) softmaxes() {
	for _, p := range n.pures() {
		if e, sum := n.share(p); e != nil && n.onlyShares(e, sum) {
			n.excess[e] = true
			if most := n.most(e); n.onlyBelow(most, e) {
				most.plain = true
			}
		}
	}
}

// pures are the operations of the nest.
func (n *nest) pures() (list []*pure) {
	for _, i := range n.items {
		for _, x := range i.group {
			if x.pure != nil {
				list = append(list, x.pure)
			}
		}
	}
	return list
}

// share is what a quotient divides by its sum, a power of e that is at most 1, and the
// fold that is the sum; nil where it is none.
func (n *nest) share(p *pure) (e *value, sum *reduction) {
	if n.divisor(p) == nil {
		return nil, nil
	}
	e = p.args[0]
	if made := n.made[e]; made == nil || !n.power(made) {
		return nil, nil
	}
	sum = n.foldOf(n.alias[p.args[1]])
	if sum == nil || sum.monoid != hlo.OpAdd || sum.arg != e || !sum.startsWith(0) {
		return nil, nil
	}
	return e, sum
}

// foldOf is the fold of rows that makes v and that nothing outside of the nest reads.
func (n *nest) foldOf(v *value) *reduction {
	k := slices.IndexFunc(n.folds, func(f *reduction) bool { return f.out == v && f.final })
	if k < 0 || n.stores[v] != nil {
		return nil
	}
	return n.folds[k]
}

func (f *reduction) startsWith(x float64) bool {
	return f.start != nil && f.start.bits != nil && *f.start.bits == math.Float32bits(float32(x))
}

// onlyShares says whether e and its sum are read by nothing but quotients of both.
func (n *nest) onlyShares(e *value, sum *reduction) bool {
	if n.stores[e] != nil {
		return false
	}
	shares := func(p *pure) bool { x, of := n.share(p); return x == e && of == sum }
	return n.readOnly(e, shares, sum) && n.readOnly(sum.out, shares, nil)
}

// most is the fold that is the maximum of the row for e^(x − maximum).
func (n *nest) most(e *value) *reduction { return n.foldOf(n.alias[n.made[n.made[e].args[0]].args[1]]) }

// onlyBelow says whether a maximum is read by nothing but x − maximum for the power e, and
// that by nothing but e.
func (n *nest) onlyBelow(most *reduction, e *value) bool {
	less := n.made[e].args[0]
	if most == nil || !most.startsWith(math.Inf(-1)) || n.stores[less] != nil {
		return false
	}
	return n.readOnly(less, func(p *pure) bool { return p.out == e }, nil) &&
		n.readOnly(most.out, func(p *pure) bool { return p.out == less }, nil)
}

// readOnly says whether all that reads v, or what repeats it, is a fold or operations that
// may.
func (n *nest) readOnly(v *value, may func(*pure) bool, fold *reduction) bool {
	for _, i := range n.items {
		for _, x := range append(i.group, i) {
			if !slices.Contains(x.same, v) && !slices.Contains(x.full, v) || x.group != nil {
				continue
			}
			switch {
			case x.pure != nil && may(x.pure):
			case x.fold != nil && fold != nil && x.fold.out == fold.out:
			case len(x.outs) == 1 && n.alias[x.outs[0]] == v && n.readOnly(x.outs[0], may, nil):
			default:
				return false
			}
		}
	}
	return true
}
