package vector

import (
	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// float64Code is the code of operations on f64, four elements a vector, as the
// loops in Go compute them. Comparisons are not among them, since their results
// are elements of four bytes, and all values of a strip function have one
// width.
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
}

const (
	sign64 = 1 << 63
	one64  = 0x3ff << 52 // The bits of 1.0.
)

// max64 is Chain.Max32 for f64: +0 is larger than −0, and NaN stays.
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
	if i.Shape.DType != hlo.F64 {
		return nil
	}
	for _, o := range i.Operands {
		if o.Shape.DType != hlo.F64 {
			return nil
		}
	}
	return float64Code[i.Op]
}

// ElementMoves are the moves of elements of a number of bytes.
type ElementMoves struct {
	Bytes int // The bytes of an element.
	// The loads of a vector and of copies of an element, and the store of a
	// vector.
	Load, Broadcast, Store amd64.Op
}

// ElementMovesOf are the moves by bytes of an element.
var ElementMovesOf = map[int64]ElementMoves{
	4: {4, amd64.VMOVUPS, amd64.VBROADCASTSS, amd64.VMOVUPS},
	8: {8, amd64.VMOVUPD, amd64.VBROADCASTSD, amd64.VMOVUPD},
}
