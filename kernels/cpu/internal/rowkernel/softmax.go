package rowkernel

import (
	"math"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// markSoftmaxes finds the softmaxes of the kernel.
//
// A softmax is e^(x − m) over its sum, where m is the maximum of the row. Where
// nothing else reads the power and the sum, both are computed times 2^32, which
// saves the subtraction of an exponent and changes no quotient that is a normal
// number. Where nothing else reads the maximum, it may be any number in a row
// that contains NaN, since the sum is NaN then, and have either sign where it
// is 0.
func (n *Kernel) markSoftmaxes() {
	for _, p := range n.opsInOrder() {
		e, sum := n.softmaxQuotient(p)
		if e != nil && n.readByQuotientsOnly(e, sum) {
			n.scaledExps[e] = true
			if largest := n.rowMax(e); n.maxReadByExpOnly(largest, e) {
				largest.Relaxed = true
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

// softmaxQuotient is the power of e that an operation divides by the sum of the
// row of such powers, and the reduction that is this sum; nil where the
// operation is no such quotient.
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

// privateReduction is the reduction that makes the row scalar v, nil where v is
// made otherwise or stored.
func (n *Kernel) privateReduction(v *Value) *Reduction {
	k := slices.IndexFunc(n.reductions, func(f *Reduction) bool {
		return f.Out == v && f.PerRow
	})
	if k < 0 || n.Stores[v] != nil {
		return nil
	}
	return n.reductions[k]
}

// initIs reports whether the reduction begins with the constant x.
func (f *Reduction) initIs(x float64) bool {
	return f.Init != nil && f.Init.Constant != nil &&
		*f.Init.Constant == math.Float32bits(float32(x))
}

// readByQuotientsOnly reports whether e and its sum have no readers but
// quotients of the two.
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

// rowMax is the reduction that makes the maximum in e^(x − maximum), or nil.
func (n *Kernel) rowMax(e *Value) *Reduction {
	return n.privateReduction(
		n.Broadcasts[n.ops[n.ops[e].Args[0]].Args[1]],
	)
}

// maxReadByExpOnly reports whether a maximum has no reader but x − maximum, and
// this none but the power e.
func (n *Kernel) maxReadByExpOnly(largest *Reduction, e *Value) bool {
	less := n.ops[e].Args[0]
	if largest == nil ||
		!largest.initIs(math.Inf(-1)) ||
		n.Stores[less] != nil {
		return false
	}
	return n.readOnlyBy(less, func(p *Op) bool {
		return p.Out == e
	}, nil) &&
		n.readOnlyBy(largest.Out, func(p *Op) bool {
			return p.Out == less
		}, nil)
}

// readOnlyBy reports whether all readers of v, and of what repeats it, are the
// given reduction or operations that may read it. A stored value has a reader
// outside.
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

// isSmallExp reports whether an operation is a power of e whose exponent is at
// most 0, so that it is at most 1.
func (n *Kernel) isSmallExp(p *Op) bool {
	return p.Instr.Op == hlo.OpExponential &&
		p.Instr.Shape.DType == hlo.F32 &&
		n.isBelowMax(p.Args[0])
}

// isBelow reports whether an operation is an exponential of f32 whose operand is known to be
// small.
func (p *Op) isBelow() bool {
	return p.Below && p.Instr.Op == hlo.OpExponential &&
		p.Instr.Shape.DType == hlo.F32
}

// isBelowMax reports whether a value is the difference of an element and the
// maximum of its row, so that it is at most 0.
func (n *Kernel) isBelowMax(v *Value) bool {
	p := n.ops[v]
	if p == nil || p.Instr.Op != hlo.OpSubtract ||
		n.Broadcasts[p.Args[1]] == nil {
		return false
	}
	largest := n.Broadcasts[p.Args[1]]
	return slices.ContainsFunc(n.reductions, func(f *Reduction) bool {
		return f.Out == largest && f.Monoid == hlo.OpMaximum &&
			f.Arg == p.Args[0] && f.PerRow
	})
}
