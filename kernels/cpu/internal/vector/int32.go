package vector

import (
	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Integers of up to 32 bits and pred are held as i32, eight to a vector. Operations
// that cannot leave the type of their operands are the same for all types; addition
// and its like wrap modulo 2³², and then to the type. Row kernels, which are
// rows of floats, use none of these.

// Code emits an operation on one vector of each argument.
type Code func(
	c *amd64.Chain,
	i *hlo.Instr,
	x []amd64.Value,
) amd64.Value

// int32Code is the code of operations that give an element of the type of their
// operands, for every type that i32 holds.
var int32Code = map[hlo.Opcode]Code{
	hlo.OpMaximum: binaryCode(amd64.VPMAXSD),
	hlo.OpMinimum: binaryCode(amd64.VPMINSD),
	hlo.OpAnd:     binaryCode(amd64.VPAND),
	hlo.OpOr:      binaryCode(amd64.VPOR),
	hlo.OpXor:     binaryCode(amd64.VPXOR),
	hlo.OpSelect:  selectCode,
	hlo.OpClamp: func(
		c *amd64.Chain, _ *hlo.Instr, x []amd64.Value,
	) amd64.Value {
		return c.Do(
			amd64.VPMINSD,
			c.Do(amd64.VPMAXSD, x[1], x[0]),
			x[2],
		)
	},
}

// wrappingInt32Code is the code of operations modulo 2³², that of s32. What narrower types
// have of them is wrapped to the type. Counts of shifts beyond the width give 0, or the sign.
var wrappingInt32Code = map[hlo.Opcode]Code{
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
		return c.Do(
			amd64.VPSUBD, c.Const32(0), x,
		)
	}),
	hlo.OpNot: unaryCode(func(c *amd64.Chain, x amd64.Value) amd64.Value {
		return c.Do(
			amd64.VPXOR, x, c.Const32(1<<32-1),
		)
	}),
}

// intComparisons express comparisons as equal or greater, of operands that are
// swapped or not, and inverted or not.
var intComparisons = map[string]struct {
	op       amd64.Op
	swapped  bool
	inverted uint32
}{
	"EQ": {amd64.VPCMPEQD, false, 0}, "NE": {amd64.VPCMPEQD, false, 1},
	"GT": {amd64.VPCMPGTD, false, 0}, "LE": {amd64.VPCMPGTD, false, 1},
	"LT": {amd64.VPCMPGTD, true, 0}, "GE": {amd64.VPCMPGTD, true, 1},
}

// compareIntCode is the code of a compare of integers.
func compareIntCode(
	c *amd64.Chain, i *hlo.Instr, x []amd64.Value,
) amd64.Value {
	o := intComparisons[i.Attrs.Direction]
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

// int32CodeOf is the code of an operation on integers held as i32, or nil.
func int32CodeOf(i *hlo.Instr) Code {
	if len(i.Operands) == 0 {
		return nil
	}
	d := i.Shape.DType
	from := i.Operands[0].Shape.DType
	switch {
	case portable.ClassOf(from) != portable.Int32 ||
		from.IsComplex():
		return nil
	case i.Op == hlo.OpCompare:
		if _, known := intComparisons[i.Attrs.Direction]; known {
			return compareIntCode
		}
		return nil
	case i.Op == hlo.OpConvert:
		return convertInt32CodeOf(d, from)
	case portable.ClassOf(d) != portable.Int32 ||
		i.Op == hlo.OpSelect && from != hlo.Pred:
		return nil
	case int32Code[i.Op] != nil:
		return int32Code[i.Op]
	case d == hlo.S32:
		return wrappingInt32Code[i.Op]
	case wraps(i.Op, d):
		return wrapped(wrappingInt32Code[i.Op])
	}
	return nil
}

// Has reports whether strip functions have code for an operation.
func Has(i *hlo.Instr) bool {
	return HasFloat32(i) ||
		int32CodeOf(i) != nil ||
		floatToInt32CodeOf(i) != nil ||
		int64CodeOf(i) != nil ||
		float64CodeOf(i) != nil
}

// Emit emits an operation that has vector code, on one vector of each
// argument.
func Emit(
	c *amd64.Chain, i *hlo.Instr, x []amd64.Value,
) amd64.Value {
	if f := int32CodeOf(i); f != nil {
		return f(c, i, x)
	}
	if f := floatToInt32CodeOf(i); f != nil {
		return f(c, i, x)
	}
	if f := int64CodeOf(i); f != nil {
		return f(c, i, x)
	}
	if f := float64CodeOf(i); f != nil {
		return f(c, i, x)
	}
	return EmitFloat32(c, i, x)
}
