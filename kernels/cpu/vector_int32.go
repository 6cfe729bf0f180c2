package cpu

import (
	"github.com/tilewright/tilewright/kernels/cpu/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/portable"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Pointwise instructions on integers held as i32, by machine code. Nests, which
// are rows of floats, take none of them.

type vectorCode func(
	c *amd64.Chain, op symtile.Op, x []amd64.Value,
) amd64.Value

// int32Code are operations that give an element of the type of their operands,
// for every type that i32 holds.
var int32Code = map[hlo.Opcode]vectorCode{
	hlo.OpMaximum: binaryCode(amd64.VPMAXSD),
	hlo.OpMinimum: binaryCode(amd64.VPMINSD),
	hlo.OpAnd:     binaryCode(amd64.VPAND),
	hlo.OpOr:      binaryCode(amd64.VPOR),
	hlo.OpXor:     binaryCode(amd64.VPXOR),
	hlo.OpSelect:  selectCode,
	hlo.OpClamp: func(
		c *amd64.Chain, _ symtile.Op, x []amd64.Value,
	) amd64.Value {
		return c.Do(
			amd64.VPMINSD,
			c.Do(amd64.VPMAXSD, x[1], x[0]),
			x[2],
		)
	},
}

// wrappingInt32Code are operations modulo 2³², so for s32 only; counts of shifts beyond
// the width give 0, or the sign.
var wrappingInt32Code = map[hlo.Opcode]vectorCode{
	hlo.OpAdd:                  binaryCode(amd64.VPADDD),
	hlo.OpSubtract:             binaryCode(amd64.VPSUBD),
	hlo.OpMultiply:             binaryCode(amd64.VPMULLD),
	hlo.OpShiftLeft:            binaryCode(amd64.VPSLLVD),
	hlo.OpShiftRightLogical:    binaryCode(amd64.VPSRLVD),
	hlo.OpShiftRightArithmetic: binaryCode(amd64.VPSRAVD),
	hlo.OpAbs: unaryCode(func(c *amd64.Chain, x amd64.Value) amd64.Value {
		return c.Do(amd64.VPABSD, x)
	}),
	hlo.OpNegate: unaryCode(func(c *amd64.Chain, x amd64.Value) amd64.Value {
		return c.Do(amd64.VPSUBD, c.Const32(0), x)
	}),
	hlo.OpNot: unaryCode(func(c *amd64.Chain, x amd64.Value) amd64.Value {
		return c.Do(amd64.VPXOR, x, c.Const32(1<<32-1))
	}),
}

// intComparisons are the comparisons as greater or equal, of operands that are swapped
// or not, and inverted or not.
var intComparisons = map[string]struct {
	op       amd64.Op
	swapped  bool
	inverted uint32
}{
	"EQ": {amd64.VPCMPEQD, false, 0}, "NE": {amd64.VPCMPEQD, false, 1},
	"GT": {amd64.VPCMPGTD, false, 0}, "LE": {amd64.VPCMPGTD, false, 1},
	"LT": {amd64.VPCMPGTD, true, 0}, "GE": {amd64.VPCMPGTD, true, 1},
}

func compareIntCode(c *amd64.Chain, op symtile.Op, x []amd64.Value) amd64.Value {
	o := intComparisons[op.Instr.Attrs.Direction]
	a := x[0]
	b := x[1]
	if o.swapped {
		a, b = b, a
	}
	holds := c.Do(
		amd64.VPSRLD,
		c.Do(o.op, a, b),
		amd64.Imm(31),
	)
	if o.inverted == 0 {
		return holds
	}
	return c.Do(
		amd64.VPXOR, holds, c.Const32(o.inverted),
	)
}

func int32ToFloat32Code(c *amd64.Chain, _ symtile.Op, x []amd64.Value) amd64.Value {
	return c.Do(amd64.VCVTDQ2PS, x[0])
}

// int32CodeOf is what emits an operation on integers, nil where none does.
func int32CodeOf(op symtile.Op) vectorCode {
	if len(op.Instr.Operands) == 0 {
		return nil
	}
	d := op.Instr.Shape.DType
	from := op.Instr.Operands[0].Shape.DType
	switch {
	case portable.ClassOf(from) != portable.Int32 || from.IsComplex():
		return nil
	case op.Code == hlo.OpCompare:
		if _, known := intComparisons[op.Instr.Attrs.Direction]; known {
			return compareIntCode
		}
		return nil
	case op.Code == hlo.OpConvert && d == hlo.F32:
		return int32ToFloat32Code
	case portable.ClassOf(d) != portable.Int32 ||
		op.Code == hlo.OpSelect && from != hlo.Pred:
		return nil
	case int32Code[op.Code] != nil:
		return int32Code[op.Code]
	case d == hlo.S32:
		return wrappingInt32Code[op.Code]
	}
	return nil
}

// hasVectorCode says whether machine code does an operation strip by strip.
func hasVectorCode(op symtile.Op) bool {
	return hasFloat32Code(op) ||
		int32CodeOf(op) != nil ||
		float64CodeOf(op) != nil
}

func (p *pointwiseOp) emitAny(c *amd64.Chain, x []amd64.Value) amd64.Value {
	if f := int32CodeOf(p.op); f != nil {
		return f(c, p.op, x)
	}
	if f := float64CodeOf(p.op); f != nil {
		return f(c, p.op, x)
	}
	return p.emit(c, x)
}
