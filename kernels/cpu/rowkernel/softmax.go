package rowkernel

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
func (n *Kernel) markSoftmaxes() {
	for _, p := range n.opsInOrder() {
		e, sum := n.softmaxQuotient(p)
		if e != nil && n.readByQuotientsOnly(e, sum) {
			n.scaledExps[e] = true
			if most := n.rowMax(e); n.maxReadByExpOnly(most, e) {
				most.relaxed = true
			}
		}
	}
}

// opsInOrder lists the operations of the kernel.
func (n *Kernel) opsInOrder() (list []*Op) {
	for _, i := range n.Items {
		if i.Op != nil {
			list = append(list, i.Op)
		}
	}
	return list
}

// softmaxQuotient is what a quotient divides by its sum, a power of e that is at most 1, and the
// fold that is the sum; nil where it is none.
func (n *Kernel) softmaxQuotient(p *Op) (e *Value, sum *Reduction) {
	if n.rowDivisor(p) == nil {
		return nil, nil
	}
	e = p.Args[0]
	made := n.ops[e]
	if made == nil || !n.isSmallExp(made) {
		return nil, nil
	}
	sum = n.privateReduction(n.Broadcasts[p.Args[1]])
	if sum == nil || sum.Monoid != hlo.OpAdd ||
		sum.Arg != e || !sum.initIs(0) {
		return nil, nil
	}
	return e, sum
}

// privateReduction is the fold of rows that makes v and that nothing outside of the nest reads.
func (n *Kernel) privateReduction(v *Value) *Reduction {
	k := slices.IndexFunc(n.reductions, func(f *Reduction) bool {
		return f.Out == v && f.PerRow
	})
	if k < 0 || n.Stores[v] != nil {
		return nil
	}
	return n.reductions[k]
}

func (f *Reduction) initIs(x float64) bool {
	return f.Init != nil && f.Init.Constant != nil &&
		*f.Init.Constant == math.Float32bits(float32(x))
}

// readByQuotientsOnly says whether e and its sum are read by nothing but quotients of both.
func (n *Kernel) readByQuotientsOnly(e *Value, sum *Reduction) bool {
	if n.Stores[e] != nil {
		return false
	}
	shares := func(p *Op) bool {
		x, of := n.softmaxQuotient(p)
		return x == e && of == sum
	}
	return n.readOnlyBy(e, shares, sum) &&
		n.readOnlyBy(sum.Out, shares, nil)
}

// rowMax is the fold that is the maximum of the row for e^(x − maximum).
func (n *Kernel) rowMax(e *Value) *Reduction {
	return n.privateReduction(
		n.Broadcasts[n.ops[n.ops[e].Args[0]].Args[1]],
	)
}

// maxReadByExpOnly says whether a maximum is read by nothing but x − maximum for the power e, and
// that by nothing but e.
func (n *Kernel) maxReadByExpOnly(most *Reduction, e *Value) bool {
	less := n.ops[e].Args[0]
	if most == nil ||
		!most.initIs(math.Inf(-1)) ||
		n.Stores[less] != nil {
		return false
	}
	return n.readOnlyBy(less, func(p *Op) bool {
		return p.Out == e
	}, nil) &&
		n.readOnlyBy(most.Out, func(p *Op) bool {
			return p.Out == less
		}, nil)
}

// readOnlyBy reports whether all readers of v, or of what repeats it, are the
// reduction or operations that may read it.
func (n *Kernel) readOnlyBy(v *Value, may func(*Op) bool, reduction *Reduction) bool {
	if n.Stores[v] != nil {
		return false
	}
	for _, i := range n.Items {
		if op := i.Op; op != nil {
			if slices.Contains(op.Args, v) && !may(op) {
				return false
			}
			continue
		}
		f := i.Reduction
		if f.Arg != v && f.Init != v {
			continue
		}
		if reduction == nil || f.Out != reduction.Out {
			return false
		}
	}
	for copies, of := range n.Broadcasts {
		if of == v && !n.readOnlyBy(copies, may, nil) {
			return false
		}
	}
	return true
}

// isSmallExp says whether an operation is e to what is at most 0, so that it is at most 1.
func (n *Kernel) isSmallExp(p *Op) bool {
	return p.Instr.Op == hlo.OpExponential &&
		p.Instr.Shape.DType == hlo.F32 &&
		n.isBelowMax(p.Args[0])
}

// isBelowMax says whether a value is what an element is less than the maximum of its row, so
// that it is at most 0.
func (n *Kernel) isBelowMax(v *Value) bool {
	p := n.ops[v]
	if p == nil || p.Instr.Op != hlo.OpSubtract ||
		n.Broadcasts[p.Args[1]] == nil {
		return false
	}
	most := n.Broadcasts[p.Args[1]]
	return slices.ContainsFunc(n.reductions, func(f *Reduction) bool {
		return f.Out == most && f.Monoid == hlo.OpMaximum &&
			f.Arg == p.Args[0] && f.PerRow
	})
}
