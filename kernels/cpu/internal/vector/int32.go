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
			c.Do(
				amd64.VPMAXSD, x[1], x[0],
			),
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
	// Quotients by 0 are −1, and what they leave is the dividend.
	hlo.OpDivide:    quotientCode,
	hlo.OpRemainder: remainderCode,
	// The number, no less than −1 and no more than 1.
	hlo.OpSign: unaryCode(func(c *amd64.Chain, x amd64.Value) amd64.Value {
		least := c.Do(
			amd64.VPMAXSD, x,
			c.Const32(1<<32-1),
		)
		return c.Do(
			amd64.VPMINSD, least,
			c.Const32(1),
		)
	}),
	// Bits are counted of the width of the type.
	hlo.OpPopcnt: func(
		c *amd64.Chain, i *hlo.Instr, x []amd64.Value,
	) amd64.Value {
		return c.Ones32(bitsOf(c, i.Shape.DType, x[0]))
	},
	hlo.OpCountLeadingZeros: func(
		c *amd64.Chain, i *hlo.Instr, x []amd64.Value,
	) amd64.Value {
		d := i.Shape.DType
		zeros := c.Zeros32(bitsOf(c, d, x[0]))
		return c.Do(
			amd64.VPSUBD, zeros,
			c.Const32(uint32(32-d.Bits())),
		)
	},
}

// bitsOf are the bits of an element with zeros in front of them, where copies of the sign are
// held of a type that has one.
func bitsOf(
	c *amd64.Chain, d hlo.DType, x amd64.Value,
) amd64.Value {
	if !d.IsSigned() || d.Bits() == 32 {
		return x
	}
	return c.Do(
		amd64.VPAND, x,
		c.Const32(1<<d.Bits()-1),
	)
}

// quotientCode is the code of a division of integers held as i32.
func quotientCode(
	c *amd64.Chain, i *hlo.Instr, x []amd64.Value,
) amd64.Value {
	// f32 has all integers of 16 bits; those of 32 need f64.
	if i.Shape.DType.Bits() <= 16 {
		return c.QuotientNarrow(x[0], x[1])
	}
	return c.Quotient32(x[0], x[1], true)
}

// remainderCode is what a quotient leaves, which by 0 is the dividend.
func remainderCode(
	c *amd64.Chain, i *hlo.Instr, x []amd64.Value,
) amd64.Value {
	q := quotientCode(c, i, x)
	return c.Do(
		amd64.VPSUBD, x[0],
		c.Do(amd64.VPMULLD, q, x[1]),
	)
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

// codes are where the code of an operation is looked for, in turn.
var codes = []func(i *hlo.Instr) Code{
	int32CodeOf, floatToInt32CodeOf, int64CodeOf, float64CodeOf, conversion64Of,
}

// codeOf is the code of an operation that is not one on floats held as f32 alone, or nil.
func codeOf(i *hlo.Instr) Code {
	// A type belongs to one of them; only conversions may be those of two.
	for _, of := range codes {
		if code := of(i); code != nil {
			return code
		}
	}
	return nil
}

// Has reports whether strip functions have code for an operation.
func Has(i *hlo.Instr) bool { return HasFloat32(i) || codeOf(i) != nil }

// Emit emits an operation that has vector code, on one vector of each
// argument.
func Emit(
	c *amd64.Chain, i *hlo.Instr, x []amd64.Value,
) amd64.Value {
	if code := codeOf(i); code != nil {
		return code(c, i, x)
	}
	return EmitFloat32(c, i, x)
}
