package partition

import (
	"math"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// simplified is the operand that an operation merely repeats; nil where it
// computes something. Frameworks print such operations: the maximum of a softmax
// and −∞, masks that select true or false, broadcasts to the same shape. Every
// row holds for each bit of the result, NaN and −0 included.
func simplified(i *hlo.Instr) *hlo.Instr {
	switch i.Op {
	case hlo.OpMaximum:
		return identityOperand(i, math.Inf(-1))
	case hlo.OpMinimum:
		return identityOperand(i, math.Inf(1))
	case hlo.OpSelect:
		if isSplat(i.Operands[1], 1) &&
			isSplat(i.Operands[2], 0) {
			return sameShape(i, i.Operands[0])
		}
	case hlo.OpBroadcast, hlo.OpTranspose:
		if slices.IsSorted(i.Attrs.Dimensions) {
			return sameShape(i, i.Operands[0])
		}
	case hlo.OpReshape, hlo.OpConvert:
		return sameShape(i, i.Operands[0])
	}
	return nil
}

// sameShape is o where it has the type, extents and layout of i, otherwise nil.
func sameShape(i, o *hlo.Instr) *hlo.Instr {
	if i.Shape.Equal(o.Shape) {
		return o
	}
	return nil
}

// identityOperand is the operand of a binary operation whose other one is the
// number that changes nothing.
func identityOperand(
	i *hlo.Instr, identity float64,
) *hlo.Instr {
	if !i.Shape.DType.IsFloat() {
		return nil
	}
	for k, o := range i.Operands {
		if isSplat(o, identity) {
			return sameShape(i, i.Operands[1-k])
		}
	}
	return nil
}

// isSplat reports whether all elements of i are one number that is known.
func isSplat(i *hlo.Instr, number float64) bool {
	for i.Op == hlo.OpBroadcast ||
		i.Op == hlo.OpReshape {
		i = i.Operands[0]
	}
	if i.Op != hlo.OpConstant ||
		i.Literal == nil ||
		i.Literal.Elided ||
		i.Shape.DType == hlo.Tuple {
		return false
	}
	l := i.Literal
	return len(l.Ints)+len(l.Floats) > 0 &&
		!slices.ContainsFunc(l.Floats, func(x float64) bool { return x != number }) &&
		!slices.ContainsFunc(l.Ints, func(x int64) bool { return float64(x) != number })
}

// sunk moves an elementwise operation on the table of a gather behind the
// gather, where that computes fewer elements: gather(convert(table)) converts the
// whole table. It returns the last instruction, which is not in the computation
// yet.
func (f *flattener) sunk(
	i *hlo.Instr,
) *hlo.Instr {
	if i.Op != hlo.OpGather {
		return i
	}
	e := i.Operands[0]
	if !e.Op.Elementwise() ||
		len(e.Operands) != 1 ||
		i.Shape.Elements() >= e.Shape.Elements() {
		return i
	}
	table := e.Operands[0]
	if !table.Shape.SameDims(e.Shape) {
		return i
	}
	picked := *i
	picked.Operands = slices.Clone(i.Operands)
	picked.Operands[0] = table
	picked.Shape.DType = table.Shape.DType
	after := *e
	after.Shape = i.Shape
	after.Operands = []*hlo.Instr{f.put(f.sunk(&picked))}
	return &after
}
