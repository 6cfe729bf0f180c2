package vector

import (
	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Integers of 64 bits and u32 are held as i64, four to a vector; u32 has zeros in front of
// it, to which what is computed is wrapped. Comparisons and selects are not among the
// operations, since truth values have four bytes.

// int64Code is the code of operations modulo 2⁶⁴. Counts of shifts beyond the width give 0.
var int64Code = map[hlo.Opcode]Code{
	hlo.OpAdd:               binaryCode(amd64.VPADDQ),
	hlo.OpSubtract:          binaryCode(amd64.VPSUBQ),
	hlo.OpAnd:               binaryCode(amd64.VPAND),
	hlo.OpOr:                binaryCode(amd64.VPOR),
	hlo.OpXor:               binaryCode(amd64.VPXOR),
	hlo.OpShiftLeft:         binaryCode(amd64.VPSLLVQ),
	hlo.OpShiftRightLogical: binaryCode(amd64.VPSRLVQ),
	hlo.OpNegate: unaryCode(func(c *amd64.Chain, x amd64.Value) amd64.Value {
		zero := c.Const64(0)
		return c.Do(amd64.VPSUBQ, zero, x)
	}),
	hlo.OpNot: unaryCode(func(c *amd64.Chain, x amd64.Value) amd64.Value {
		ones := c.Const64(1<<64 - 1)
		return c.Do(amd64.VPXOR, x, ones)
	}),
}

// uint32Code is the code of operations on u32 alone. The product of two is one instruction.
var uint32Code = map[hlo.Opcode]Code{
	hlo.OpMultiply: binaryCode(amd64.VPMULUDQ),
}

// int64CodeOf is the code of an operation on integers held as i64, or nil.
func int64CodeOf(i *hlo.Instr) Code {
	d := i.Shape.DType
	if portable.ClassOf(d) != portable.Int64 || d.IsComplex() {
		return nil
	}
	for _, o := range i.Operands {
		if o.Shape.DType != d {
			return nil
		}
	}
	// Operations that return one of their operands' values, or bits of both, keep the zeros
	// in front of u32; the others may carry into them.
	code := int64Code[i.Op]
	if d != hlo.U32 {
		return code
	}
	if code == nil {
		code = uint32Code[i.Op]
	}
	if code == nil || i.Op.Has(hlo.Exact) {
		return code
	}
	return func(
		c *amd64.Chain, i *hlo.Instr, x []amd64.Value,
	) amd64.Value {
		y := code(c, i, x)
		mask := c.Const64(1<<32 - 1)
		return c.Do(amd64.VPAND, y, mask)
	}
}
