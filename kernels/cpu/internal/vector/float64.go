package vector

import (
	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// float64Code is the code of operations on f64, four elements a vector, as the
// loops in Go compute them, and functions within some units of them.
// Results of comparisons have four bytes: they are in the low halves of
// lanes, as all elements of four bytes are in functions over wider ones.
var float64Code = map[hlo.Opcode]Code{
	hlo.OpAdd:      binaryCode(amd64.VADDPD),
	hlo.OpSubtract: binaryCode(amd64.VSUBPD),
	hlo.OpMultiply: binaryCode(amd64.VMULPD),
	hlo.OpDivide:   binaryCode(amd64.VDIVPD),
	hlo.OpMaximum: func(
		c *amd64.Chain, _ *hlo.Instr, x []amd64.Value,
	) amd64.Value {
		return max64(c, x[0], x[1])
	},
	hlo.OpMinimum: func(
		c *amd64.Chain, _ *hlo.Instr, x []amd64.Value,
	) amd64.Value {
		return min64(c, x[0], x[1])
	},
	hlo.OpSqrt: unaryCode(func(c *amd64.Chain, x amd64.Value) amd64.Value {
		return c.Do(amd64.VSQRTPD, x)
	}),
	hlo.OpRsqrt: unaryCode(func(c *amd64.Chain, x amd64.Value) amd64.Value {
		return c.Do(
			amd64.VDIVPD,
			c.Const64(one64),
			c.Do(amd64.VSQRTPD, x),
		)
	}),
	hlo.OpNegate: unaryCode(func(c *amd64.Chain, x amd64.Value) amd64.Value {
		return c.Do(
			amd64.VXORPD, x, c.Const64(sign64),
		)
	}),
	hlo.OpAbs: unaryCode(func(c *amd64.Chain, x amd64.Value) amd64.Value {
		return c.Do(
			amd64.VANDPD, x, c.Const64(sign64-1),
		)
	}),
	hlo.OpClamp: func(
		c *amd64.Chain, _ *hlo.Instr, x []amd64.Value,
	) amd64.Value {
		return min64(
			c,
			max64(c, x[1], x[0]),
			x[2],
		)
	},
	// A constant exponent is a known operand of the chain.
	hlo.OpPower: pairCode((*amd64.Chain).Power64),
	hlo.OpAtan2: pairCode((*amd64.Chain).Atan264),
	// Functions; sines have code that is guarded.
	hlo.OpExponential:         unaryCode((*amd64.Chain).Exp64),
	hlo.OpExponentialMinusOne: unaryCode((*amd64.Chain).Expm164),
	hlo.OpLog:                 unaryCode((*amd64.Chain).Log64),
	hlo.OpLogPlusOne:          unaryCode((*amd64.Chain).Log1p64),
	hlo.OpTanh:                unaryCode((*amd64.Chain).Tanh64),
	hlo.OpLogistic:            unaryCode((*amd64.Chain).Logistic64),
	hlo.OpErf:                 unaryCode((*amd64.Chain).Erf64),
	hlo.OpAsin:                unaryCode((*amd64.Chain).Asin64),
	hlo.OpAcos:                unaryCode((*amd64.Chain).Acos64),
	hlo.OpSinh:                unaryCode((*amd64.Chain).Sinh64),
	hlo.OpCosh:                unaryCode((*amd64.Chain).Cosh64),
	hlo.OpAsinh:               unaryCode((*amd64.Chain).Asinh64),
	hlo.OpAcosh:               unaryCode((*amd64.Chain).Acosh64),
	hlo.OpAtanh:               unaryCode((*amd64.Chain).Atanh64),
	hlo.OpCbrt:                unaryCode((*amd64.Chain).Cbrt64),
	// Roundings to whole numbers.
	hlo.OpFloor:            roundingCode64(roundDown),
	hlo.OpCeil:             roundingCode64(roundUp),
	hlo.OpRoundNearestEven: roundingCode64(roundEven),
	hlo.OpRoundNearestAfz:  unaryCode(roundAwayFromZero64),
	hlo.OpSign:             unaryCode(signCode64),
}

// roundingCode64 is roundingCode for f64.
func roundingCode64(how amd64.Imm) Code {
	return unaryCode(func(c *amd64.Chain, x amd64.Value) amd64.Value {
		return c.Do(amd64.VROUNDPD, x, how)
	})
}

// belowHalf64 is the bits of the largest f64 below 1/2.
const belowHalf64 = 0x3fdfffffffffffff

// roundAwayFromZero64 is roundAwayFromZero for f64: numbers of 2⁵² and more are whole, and
// what is added to them is rounded away again.
func roundAwayFromZero64(c *amd64.Chain, x amd64.Value) amd64.Value {
	sign := c.Do(
		amd64.VANDPD, x,
		c.Const64(sign64),
	)
	half := c.Do(
		amd64.VORPD, sign,
		c.Const64(belowHalf64),
	)
	x = c.Do(amd64.VADDPD, x, half)
	return c.Do(amd64.VROUNDPD, x, truncate)
}

// signCode64 is signCode for f64: 1 with the sign of x, and x itself where that is 0 or NaN,
// which a comparison with 0 that is equal or unordered finds.
func signCode64(c *amd64.Chain, x amd64.Value) amd64.Value {
	const unorderedOrEqual = amd64.Imm(8)
	sign := c.Do(
		amd64.VANDPD, x,
		c.Const64(sign64),
	)
	one := c.Do(
		amd64.VORPD, sign,
		c.Const64(one64),
	)
	itself := c.Do(
		amd64.VCMPPD, x,
		c.Const64(0),
		unorderedOrEqual,
	)
	return c.Do(amd64.VBLENDVPD, one, x, itself)
}

const (
	sign64 = 1 << 63
	one64  = 0x3ff << 52 // The bits of 1.0.
)

// max64 is Chain.Max32 for f64: +0 is larger than −0, and NaN stays. Both orders of the
// operands differ where it matters, in the sign of 0 or in the bits of a NaN.
func max64(c *amd64.Chain, x, y amd64.Value) amd64.Value {
	m := c.Do(amd64.VMAXPD, x, y)
	n := c.Do(amd64.VMAXPD, y, x)
	differ := c.Do(amd64.VXORPD, m, n)
	return c.Do(
		amd64.VSUBPD,
		c.Do(amd64.VORPD, m, differ), differ,
	)
}

// min64 is Chain.Min32 for f64.
func min64(c *amd64.Chain, x, y amd64.Value) amd64.Value {
	return c.Do(
		amd64.VORPD,
		c.Do(amd64.VMINPD, x, y),
		c.Do(amd64.VMINPD, y, x),
	)
}

// float64CodeOf is the code of an operation on f64, or nil.
func float64CodeOf(i *hlo.Instr) Code {
	if len(i.Operands) == 0 {
		return nil
	}
	of := i.Operands[0].Shape.DType
	switch {
	// Results of four bytes are in the low halves of lanes.
	case i.Op == hlo.OpCompare && of == hlo.F64 && i.Attrs.CompareType == "":
		return compareCode64
	case i.Op == hlo.OpIsFinite && of == hlo.F64:
		return unaryCode(isFiniteCode64)
	case i.Shape.DType != hlo.F64:
		return nil
	// And so are truth values that are read.
	case i.Op == hlo.OpSelect && of == hlo.Pred:
		return selectCode64
	}
	for _, o := range i.Operands {
		if o.Shape.DType != hlo.F64 {
			return nil
		}
	}
	return float64Code[i.Op]
}

// lowest64 is the shift that leaves the first bit of a lane of 64, in its low half, which
// makes 1 of a mask; the shift back makes what selects of a truth value.
const lowest64 = amd64.Imm(63)

// compareCode64 is the code of a compare of f64.
func compareCode64(
	c *amd64.Chain, i *hlo.Instr, x []amd64.Value,
) amd64.Value {
	how := floatPredicates[i.Attrs.Direction]
	return c.Do(
		amd64.VPSRLQ,
		c.Do(amd64.VCMPPD, x[0], x[1], how),
		lowest64,
	)
}

// isFiniteCode64 is whether the magnitude of x is less than infinity, as 0 or 1; that of NaN
// is not, since the comparison is ordered.
func isFiniteCode64(c *amd64.Chain, x amd64.Value) amd64.Value {
	const infinity = 0x7ff << 52
	size := c.Do(
		amd64.VANDPD, x,
		c.Const64(sign64-1),
	)
	finite := c.Do(
		amd64.VCMPPD, size,
		c.Const64(infinity),
		floatPredicates["LT"],
	)
	return c.Do(amd64.VPSRLQ, finite, lowest64)
}

// selectCode64 is the code of a select of elements of 64 bits: VBLENDVPD reads the first bit
// of a lane, to which the truth value, the lowest one, is moved.
func selectCode64(
	c *amd64.Chain, _ *hlo.Instr, x []amd64.Value,
) amd64.Value {
	chosen := c.Do(
		amd64.VPSLLQ, x[0], lowest64,
	)
	return c.Do(
		amd64.VBLENDVPD, x[2], x[1], chosen,
	)
}

// ElementMoves are the moves of elements of a number of bytes.
type ElementMoves struct {
	Bytes int // The bytes of an element.
	// The loads of a vector and of copies of an element, and the store of a
	// vector.
	Load, Broadcast, Store amd64.Op
}

// LoadElements is a vector of the elements at a place, of four bytes or eight, in lanes that
// have as many or eight; a splat repeats one.
func LoadElements(
	c *amd64.Chain, from amd64.Mem, bytes, lanes int64, splat bool,
) amd64.Value {
	w := ElementMovesOf[bytes]
	switch {
	case splat:
		return c.Load(w.Broadcast, from, 0)
	case bytes < lanes:
		return c.LoadLow(from)
	}
	return c.Load(w.Load, from, 32)
}

// StoreElements stores what LoadElements loads. Those of four bytes in lanes of eight are
// packed.
func StoreElements(c *amd64.Chain, to amd64.Mem, bytes, lanes int64, x amd64.Value) {
	if bytes < lanes {
		c.StoreLow(to, x)
		return
	}
	c.Store(ElementMovesOf[bytes].Store, to, 32, x)
}

// ElementMovesOf are the moves by bytes of an element.
var ElementMovesOf = map[int64]ElementMoves{
	4: {4, amd64.VMOVUPS, amd64.VBROADCASTSS, amd64.VMOVUPS},
	8: {8, amd64.VMOVUPD, amd64.VBROADCASTSD, amd64.VMOVUPD},
}
