package symtile

import "github.com/tilewright/tilewright/symtile/hlo"

// untileableReason says what keeps an operation out of every tile program, "" when
// nothing does: then it depends on the shapes around it, which Analyze knows.
func untileableReason(i *hlo.Instr) string {
	switch _, row := propagators[i.Op]; {
	case i.Shape.DType.IsComplex():
		return "complex numbers are not computed"
	case i.Op == hlo.OpMap:
		if _, ok := singleOp(i.Attrs.ToApply); ok {
			return ""
		}
	case row, rewrites[i.Op].apply != nil,
		i.Op == hlo.OpCopy, i.Op == hlo.OpOptimizationBarrier:
		return ""
	case i.Op == hlo.OpBitcastConvert &&
		i.Shape.DType.Size() != i.Operands[0].Shape.DType.Size():
		return refusalReason(i.Op)
	case i.Op.Elementwise():
		return ""
	}
	return refusalReason(i.Op)
}
