package vector

import (
	"math"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Operations on f32, and on bf16 and f16 that are held as f32, take a vector of eight
// elements of each operand. Functions such as exp and tanh are chains of instructions
// of package amd64, within an ulp of the exact result. For the narrower types the
// result is rounded to the type after each operation, as the reference does, unless
// the operation cannot leave the type.
//
// Predicates are vectors of 0 and 1. A comparison makes lanes of all ones, of which
// one bit is kept, and a select moves this bit to the sign, where VBLENDVPS reads it.

// float32Code is the code of operations on floats that are held as f32.
// Elements of pred are 0 or 1 as i32.
var float32Code = map[hlo.Opcode]func(
	c *amd64.Chain, i *hlo.Instr, x []amd64.Value,
) amd64.Value{
	hlo.OpAdd:      binaryCode(amd64.VADDPS),
	hlo.OpSubtract: binaryCode(amd64.VSUBPS),
	hlo.OpMultiply: binaryCode(amd64.VMULPS),
	hlo.OpDivide:   binaryCode(amd64.VDIVPS),
	hlo.OpMaximum:  pairCode((*amd64.Chain).Max32),
	hlo.OpMinimum:  pairCode((*amd64.Chain).Min32),
	// A constant exponent is a known operand of the chain.
	hlo.OpPower:  pairCode((*amd64.Chain).Power32),
	hlo.OpAtan2:  pairCode((*amd64.Chain).Atan232),
	hlo.OpSine:   unaryCode((*amd64.Chain).Sin32),
	hlo.OpCosine: unaryCode((*amd64.Chain).Cos32),
	hlo.OpTan:    unaryCode((*amd64.Chain).Tan32),
	hlo.OpAsin:   unaryCode((*amd64.Chain).Asin32),
	hlo.OpAcos:   unaryCode((*amd64.Chain).Acos32),
	hlo.OpSinh:   unaryCode((*amd64.Chain).Sinh32),
	hlo.OpCosh:   unaryCode((*amd64.Chain).Cosh32),
	hlo.OpAsinh:  unaryCode((*amd64.Chain).Asinh32),
	hlo.OpAcosh:  unaryCode((*amd64.Chain).Acosh32),
	hlo.OpAtanh:  unaryCode((*amd64.Chain).Atanh32),
	hlo.OpCbrt:   unaryCode((*amd64.Chain).Cbrt32),
	hlo.OpNegate: unaryCode((*amd64.Chain).Neg32),
	hlo.OpAbs:    unaryCode((*amd64.Chain).Abs32),
	hlo.OpSqrt: unaryCode(func(c *amd64.Chain, x amd64.Value) amd64.Value {
		return c.Do(amd64.VSQRTPS, x)
	}),
	hlo.OpRsqrt:               unaryCode((*amd64.Chain).Rsqrt32),
	hlo.OpExponential:         unaryCode((*amd64.Chain).Exp32),
	hlo.OpExponentialMinusOne: unaryCode((*amd64.Chain).Expm132),
	hlo.OpLog:                 unaryCode((*amd64.Chain).Log32),
	hlo.OpLogPlusOne:          unaryCode((*amd64.Chain).Log1p32),
	hlo.OpTanh:                unaryCode((*amd64.Chain).Tanh32),
	hlo.OpLogistic:            unaryCode((*amd64.Chain).Logistic32),
	hlo.OpErf:                 unaryCode((*amd64.Chain).Erf32),
	hlo.OpErfInv:              unaryCode((*amd64.Chain).ErfInv32),
	hlo.OpConvert:             unaryCode(func(_ *amd64.Chain, x amd64.Value) amd64.Value { return x }),
	hlo.OpFloor:               roundingCode(roundDown),
	hlo.OpCeil:                roundingCode(roundUp),
	hlo.OpRoundNearestEven:    roundingCode(roundEven),
	hlo.OpRoundNearestAfz:     unaryCode(roundAwayFromZero),
	hlo.OpSign:                unaryCode(signCode),
	hlo.OpIsFinite:            unaryCode(isFiniteCode),
	hlo.OpCompare:             compareCode,
	hlo.OpSelect:              selectCode,
	hlo.OpClamp: func(
		c *amd64.Chain, _ *hlo.Instr, x []amd64.Value,
	) amd64.Value {
		return c.Min32(
			c.Max32(x[1], x[0]),
			x[2],
		)
	},
}

// Immediates of VROUNDPS, which raise no exception of precision.
const (
	roundEven = amd64.Imm(8 + iota)
	roundDown
	roundUp
	truncate
)

// roundingCode rounds to whole numbers.
func roundingCode(how amd64.Imm) func(
	*amd64.Chain, *hlo.Instr, []amd64.Value,
) amd64.Value {
	return unaryCode(func(
		c *amd64.Chain, x amd64.Value,
	) amd64.Value {
		return c.Do(amd64.VROUNDPS, x, how)
	})
}

// belowHalf is the largest f32 below 1/2.
const belowHalf = 0x3effffff

const sign32 = 1 << 31

// roundAwayFromZero adds just under one half to the magnitude and truncates: the sum with one
// half would be rounded up to 1 from the number below it on.
func roundAwayFromZero(c *amd64.Chain, x amd64.Value) amd64.Value {
	sign := signOf(c, x)
	half := c.Const32(belowHalf)
	half = c.Do(amd64.VORPS, sign, half)
	x = c.Do(amd64.VADDPS, x, half)
	return c.Do(amd64.VROUNDPS, x, truncate)
}

// signOf is the sign bit of x.
func signOf(c *amd64.Chain, x amd64.Value) amd64.Value {
	return c.Do(
		amd64.VANDPS, x, c.Const32(sign32),
	)
}

// signCode is 1 with the sign of x, and x itself where that is 0 or NaN.
func signCode(c *amd64.Chain, x amd64.Value) amd64.Value {
	const unorderedOrEqual = amd64.Imm(8)
	sign := signOf(c, x)
	one := c.Float32(1)
	one = c.Do(amd64.VORPS, sign, one)
	itself := c.Do(
		amd64.VCMPPS, x, c.Float32(0),
		unorderedOrEqual,
	)
	return c.Do(amd64.VBLENDVPS, one, x, itself)
}

// isFiniteCode is whether the magnitude of x is less than infinity, as 0 or 1.
func isFiniteCode(c *amd64.Chain, x amd64.Value) amd64.Value {
	infinity := c.Float32(math.Inf(1))
	finite := c.Do(
		amd64.VCMPPS, c.Abs32(x), infinity,
		floatPredicates["LT"],
	)
	return c.Do(amd64.VPSRLD, finite, lowest)
}

// unaryCode is the code of a unary function.
func unaryCode(
	f func(*amd64.Chain, amd64.Value) amd64.Value,
) func(*amd64.Chain, *hlo.Instr, []amd64.Value) amd64.Value {
	return func(
		c *amd64.Chain,
		_ *hlo.Instr,
		x []amd64.Value,
	) amd64.Value {
		return f(c, x[0])
	}
}

// pairCode is the code of a function of two numbers.
func pairCode(f func(c *amd64.Chain, x, y amd64.Value) amd64.Value) Code {
	return func(
		c *amd64.Chain, _ *hlo.Instr, x []amd64.Value,
	) amd64.Value {
		return f(c, x[0], x[1])
	}
}

// binaryCode is the code of a binary instruction.
func binaryCode(op amd64.Op) func(
	*amd64.Chain, *hlo.Instr, []amd64.Value,
) amd64.Value {
	return func(
		c *amd64.Chain,
		_ *hlo.Instr,
		x []amd64.Value,
	) amd64.Value {
		return c.Do(op, x[0], x[1])
	}
}

// floatPredicates are the predicates of VCMPPS: ordered and quiet, but for NE,
// which a NaN satisfies.
var floatPredicates = map[string]amd64.Imm{
	"EQ": 0,
	"LT": 17,
	"LE": 18,
	"GT": 30,
	"GE": 29,
	"NE": 4,
}

// compareCode is the code of a compare: the mask of the comparison, shifted to
// 0 or 1.
func compareCode(
	c *amd64.Chain, i *hlo.Instr, x []amd64.Value,
) amd64.Value {
	return c.Do(
		amd64.VPSRLD,
		c.Do(
			amd64.VCMPPS, x[0], x[1],
			floatPredicates[i.Attrs.Direction],
		),
		amd64.Imm(31),
	)
}

// selectCode is the code of a select: the lowest bit of the predicate, moved to
// the sign of its lane, chooses the second argument where it is 1.
func selectCode(
	c *amd64.Chain, _ *hlo.Instr, x []amd64.Value,
) amd64.Value {
	return c.Do(
		amd64.VBLENDVPS, x[2], x[1],
		c.Do(amd64.VPSLLD, x[0], amd64.Imm(31)),
	)
}

// HasFloat32 reports whether there is code for an operation on floats held as
// f32 that gives what the portable loops give, within the error of the
// functions. Comparisons in the total order of floats have none.
func HasFloat32(i *hlo.Instr) bool {
	if float32Code[i.Op] == nil {
		return false
	}
	d := i.Shape.DType
	operands := i.Operands
	switch i.Op {
	case hlo.OpCompare, hlo.OpIsFinite:
		return roundings[operands[0].Shape.DType] != nil &&
			i.Attrs.CompareType == ""
	case hlo.OpConvert:
		return roundings[d] != nil &&
			roundings[operands[0].Shape.DType] != nil
	case hlo.OpSelect:
		return roundings[d] != nil &&
			operands[0].Shape.DType == hlo.Pred
	}
	return roundings[d] != nil
}

// roundings round a result to the type of its elements, which are held as f32.
var roundings = withSmall(map[hlo.DType]rounding{
	hlo.F32:  func(_ *amd64.Chain, x amd64.Value) amd64.Value { return x },
	hlo.BF16: roundBF16,
	hlo.F16: func(c *amd64.Chain, x amd64.Value) amd64.Value {
		return c.Do(
			amd64.VCVTPH2PS,
			c.Do(amd64.VCVTPS2PH, x, amd64.Imm(0)),
		)
	},
})

// roundBF16 rounds to nearest even by adding just under half of the last place,
// and 1 more where that is odd. NaN stays NaN.
func roundBF16(c *amd64.Chain, x amd64.Value) amd64.Value {
	odd := c.Do(
		amd64.VPAND,
		c.Do(amd64.VPSRLD, x, amd64.Imm(16)),
		c.Const32(1),
	)
	rounded := c.Do(
		amd64.VPADDD,
		c.Do(amd64.VPADDD, x, odd),
		c.Const32(0x7fff),
	)
	// The addition could carry a NaN to infinity, so that a NaN is made quiet instead.
	quiet := c.Do(
		amd64.VPOR, x, c.Const32(0x40<<16),
	)
	const unordered = amd64.Imm(3)
	bits := c.Do(
		amd64.VBLENDVPS, rounded, quiet,
		c.Do(amd64.VCMPPS, x, x, unordered),
	)
	return c.Do(
		amd64.VPAND, bits, c.Const32(0xffff0000),
	)
}

// EmitFloat32 emits an operation on floats that are held as f32, on one vector
// of each argument, rounded to the type of the result. The operation must be
// one that HasFloat32 reports.
func EmitFloat32(
	c *amd64.Chain, i *hlo.Instr, x []amd64.Value,
) amd64.Value {
	y := float32Code[i.Op](c, i, x)
	if !i.Op.Has(hlo.Exact) &&
		i.Op != hlo.OpSelect &&
		i.Shape.DType != hlo.Pred {
		y = roundings[i.Shape.DType](c, y)
	}
	return y
}

// IsTanhPlusOne reports whether an addition of the result of operand and a
// constant, given by its bits or nil, is tanh x + 1 in f32, which Tanh1p32
// computes at once. The expression occurs in gelu.
func IsTanhPlusOne(sum, operand *hlo.Instr, constant *uint32) bool {
	return sum.Op == hlo.OpAdd &&
		sum.Shape.DType == hlo.F32 &&
		operand.Op == hlo.OpTanh &&
		constant != nil && *constant == math.Float32bits(1)
}
