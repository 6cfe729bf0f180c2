package vector

import (
	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Integers of 64 bits and u32 are held as i64, four to a vector; u32 has zeros in front of
// it, to which what is computed is wrapped. Truth values are in the low halves of lanes.
//
// AVX2 has additions, logical shifts and signed comparisons of lanes of 64 bits, and products
// of their low halves. The rest is made of these: unsigned comparisons by inverting the first
// bits, maxima and minima by a comparison that selects, arithmetic shifts by complements.

// int64Code is the code of operations modulo 2⁶⁴. Counts of shifts beyond the width give 0.
var int64Code = map[hlo.Opcode]Code{
	hlo.OpAdd:               binaryCode(amd64.VPADDQ),
	hlo.OpSubtract:          binaryCode(amd64.VPSUBQ),
	hlo.OpMultiply:          productCode64,
	hlo.OpAnd:               binaryCode(amd64.VPAND),
	hlo.OpOr:                binaryCode(amd64.VPOR),
	hlo.OpXor:               binaryCode(amd64.VPXOR),
	hlo.OpShiftLeft:         binaryCode(amd64.VPSLLVQ),
	hlo.OpShiftRightLogical: binaryCode(amd64.VPSRLVQ),
	// There are no maxima of 64 bits without AVX-512: a comparison selects.
	hlo.OpMaximum: orderedCode(larger64),
	hlo.OpMinimum: orderedCode(smaller64),
	hlo.OpClamp: func(
		c *amd64.Chain, i *hlo.Instr, x []amd64.Value,
	) amd64.Value {
		d := i.Shape.DType
		return smaller64(c, d, larger64(c, d, x[1], x[0]), x[2])
	},
	// The negative of the least s64 is itself.
	hlo.OpNegate: unaryCode(func(c *amd64.Chain, x amd64.Value) amd64.Value {
		zero := c.Const64(0)
		return c.Do(amd64.VPSUBQ, zero, x)
	}),
	hlo.OpNot: unaryCode(func(c *amd64.Chain, x amd64.Value) amd64.Value {
		ones := c.Const64(1<<64 - 1)
		return c.Do(amd64.VPXOR, x, ones)
	}),
	hlo.OpPopcnt: unaryCode((*amd64.Chain).Ones64),
	// Of u32, the zeros in front of it are not counted.
	hlo.OpCountLeadingZeros: func(
		c *amd64.Chain, i *hlo.Instr, x []amd64.Value,
	) amd64.Value {
		front := uint64(64 - i.Shape.DType.Bits())
		return c.Do(
			amd64.VPSUBQ,
			c.Zeros64(x[0]),
			c.Const64(front),
		)
	},
}

// signedInt64Code is the code of operations on s64 alone.
var signedInt64Code = map[hlo.Opcode]Code{
	// Where x is negative all bits are inverted and 1 is added.
	hlo.OpAbs: unaryCode(func(c *amd64.Chain, x amd64.Value) amd64.Value {
		negative := c.Do(
			amd64.VPCMPGTQ,
			c.Const64(0),
			x,
		)
		return c.Do(
			amd64.VPSUBQ,
			c.Do(amd64.VPXOR, x, negative),
			negative,
		)
	}),
	// Masks are −1.
	hlo.OpSign: unaryCode(func(c *amd64.Chain, x amd64.Value) amd64.Value {
		negative := c.Do(
			amd64.VPCMPGTQ,
			c.Const64(0),
			x,
		)
		positive := c.Do(
			amd64.VPCMPGTQ, x,
			c.Const64(0),
		)
		return c.Do(amd64.VPSUBQ, negative, positive)
	}),
	// A negative number is shifted as its complement, so that ones come in.
	hlo.OpShiftRightArithmetic: func(
		c *amd64.Chain, _ *hlo.Instr, x []amd64.Value,
	) amd64.Value {
		negative := c.Do(
			amd64.VPCMPGTQ,
			c.Const64(0),
			x[0],
		)
		shifted := c.Do(
			amd64.VPSRLVQ,
			c.Do(amd64.VPXOR, x[0], negative),
			x[1],
		)
		return c.Do(amd64.VPXOR, shifted, negative)
	},
}

// uint32Code is the code of operations on u32 alone. The product of two is one instruction.
var uint32Code = map[hlo.Opcode]Code{
	hlo.OpMultiply: binaryCode(amd64.VPMULUDQ),
	// Both fit f64.
	hlo.OpDivide: func(
		c *amd64.Chain, _ *hlo.Instr, x []amd64.Value,
	) amd64.Value {
		return c.LowQuotient(x[0], x[1])
	},
	// What the quotient leaves; of a quotient by 0 it is x.
	hlo.OpRemainder: func(
		c *amd64.Chain, _ *hlo.Instr, x []amd64.Value,
	) amd64.Value {
		q := c.LowQuotient(x[0], x[1])
		return c.Do(
			amd64.VPSUBQ, x[0],
			c.Do(amd64.VPMULUDQ, q, x[1]),
		)
	},
}

// productCode64 is the product modulo 2⁶⁴: that of the low halves, and those of one low and
// one high half 2³² times. The product of the high halves is a multiple of 2⁶⁴.
func productCode64(
	c *amd64.Chain, _ *hlo.Instr, x []amd64.Value,
) amd64.Value {
	high := func(v amd64.Value) amd64.Value { return c.Do(amd64.VPSRLQ, v, amd64.Imm(32)) }
	mixed := c.Do(
		amd64.VPADDQ,
		c.Do(
			amd64.VPMULUDQ,
			high(x[0]),
			x[1],
		),
		c.Do(
			amd64.VPMULUDQ,
			high(x[1]),
			x[0],
		),
	)
	low := c.Do(
		amd64.VPMULUDQ, x[0], x[1],
	)
	return c.Do(
		amd64.VPADDQ, low,
		c.Do(amd64.VPSLLQ, mixed, amd64.Imm(32)),
	)
}

// greater64 is the mask of x > y. Those of u64 are compared with their first bits inverted,
// which has the order of signed integers; u32 is positive as s64.
func greater64(
	c *amd64.Chain, d hlo.DType, x, y amd64.Value,
) amd64.Value {
	if d == hlo.U64 {
		first := c.Const64(sign64)
		x = c.Do(amd64.VPXOR, x, first)
		y = c.Do(amd64.VPXOR, y, first)
	}
	return c.Do(amd64.VPCMPGTQ, x, y)
}

// orderedCode is the code of a choice of one of two integers by their order, which depends on
// their type.
func orderedCode(
	f func(c *amd64.Chain, d hlo.DType, x, y amd64.Value) amd64.Value,
) Code {
	return func(
		c *amd64.Chain, i *hlo.Instr, x []amd64.Value,
	) amd64.Value {
		return f(c, i.Shape.DType, x[0], x[1])
	}
}

// larger64 is the larger of x and y.
func larger64(
	c *amd64.Chain, d hlo.DType, x, y amd64.Value,
) amd64.Value {
	return c.Do(
		amd64.VBLENDVPD, y, x,
		greater64(c, d, x, y),
	)
}

// smaller64 is the smaller of x and y.
func smaller64(
	c *amd64.Chain, d hlo.DType, x, y amd64.Value,
) amd64.Value {
	return c.Do(
		amd64.VBLENDVPD, x, y,
		greater64(c, d, x, y),
	)
}

// compareIntCode64 is compareIntCode for integers held as i64: a comparison makes a lane of
// ones, whose first bit is moved to where a truth value of four bytes is read.
func compareIntCode64(
	c *amd64.Chain, i *hlo.Instr, x []amd64.Value,
) amd64.Value {
	o := intComparisons[i.Attrs.Direction]
	a, b := x[0], x[1]
	if o.swapped {
		a, b = b, a
	}
	var holds amd64.Value
	if o.op == amd64.VPCMPEQD {
		holds = c.Do(amd64.VPCMPEQQ, a, b)
	} else {
		holds = greater64(c, i.Operands[0].Shape.DType, a, b)
	}
	holds = c.Do(amd64.VPSRLQ, holds, lowest64)
	if o.inverted == 0 {
		return holds
	}
	return c.Do(
		amd64.VPXOR, holds,
		c.Const64(1),
	)
}

// isInt64 reports whether elements are integers that are held as i64.
func isInt64(d hlo.DType) bool {
	return portable.ClassOf(d) == portable.Int64 && !d.IsComplex()
}

// int64CodeOf is the code of an operation on integers held as i64, or nil.
func int64CodeOf(i *hlo.Instr) Code {
	if len(i.Operands) == 0 {
		return nil
	}
	d := i.Shape.DType
	from := i.Operands[0].Shape.DType
	switch {
	case i.Op == hlo.OpCompare && isInt64(from):
		if _, known := intComparisons[i.Attrs.Direction]; known {
			return compareIntCode64
		}
		return nil
	case !isInt64(d):
		return nil
	case i.Op == hlo.OpSelect && from == hlo.Pred:
		return selectCode64
	}
	for _, o := range i.Operands {
		if o.Shape.DType != d {
			return nil
		}
	}
	if d == hlo.U32 {
		return uint32CodeOf(i)
	}
	if code := signedInt64Code[i.Op]; code != nil && d.IsSigned() {
		return code
	}
	return int64Code[i.Op]
}

// uint32CodeOf is the code of an operation on u32. Operations that return one of their
// operands' values, or bits of both, keep the zeros in front of it; the others may carry into
// them.
func uint32CodeOf(i *hlo.Instr) Code {
	code := uint32Code[i.Op]
	if code == nil {
		code = int64Code[i.Op]
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
