package vector

import (
	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Truth values and integers of one byte are held in scratch as i32, eight to a vector of 32
// bytes. Where all that a function reads and writes are bytes of arrays, they stay in lanes of
// one byte, four times as many, of which operations wrap by themselves. What has no code here
// is computed in lanes of four bytes.

// IsByte reports whether elements of a type are truth values or integers of one byte.
func IsByte(d hlo.DType) bool {
	return d == hlo.Pred || d == hlo.S8 || d == hlo.U8
}

// ConstByte is a vector of one byte.
func ConstByte(c *amd64.Chain, x uint8) amd64.Value {
	return c.Const32(uint32(x) * 0x01010101)
}

// byteCode is the code of operations on lanes of one byte whose types all have the same, with
// signs or without.
var byteCode = map[hlo.Opcode]Code{
	hlo.OpAdd:       binaryCode(amd64.VPADDB),
	hlo.OpSubtract:  binaryCode(amd64.VPSUBB),
	hlo.OpMultiply:  pairCode(byteProduct),
	hlo.OpAnd:       binaryCode(amd64.VPAND),
	hlo.OpOr:        binaryCode(amd64.VPOR),
	hlo.OpXor:       binaryCode(amd64.VPXOR),
	hlo.OpShiftLeft: pairCode(byteShift),
	hlo.OpNot: unaryCode(func(c *amd64.Chain, x amd64.Value) amd64.Value {
		return c.Do(
			amd64.VPXOR, x, c.Const32(1<<32-1),
		)
	}),
	hlo.OpNegate: unaryCode(negatedBytes),
	hlo.OpPopcnt: unaryCode((*amd64.Chain).OnesOfBytes),
}

// negatedBytes is −x, which makes a mask of a truth value.
func negatedBytes(c *amd64.Chain, x amd64.Value) amd64.Value {
	return c.Do(amd64.VPSUBB, c.Const32(0), x)
}

// signedByteCode is the code of operations on s8, unsignedByteCode that on types without a
// sign.
var (
	signedByteCode = map[hlo.Opcode]Code{
		hlo.OpMaximum: binaryCode(amd64.VPMAXSB),
		hlo.OpMinimum: binaryCode(amd64.VPMINSB),
		hlo.OpClamp:   clampCode(amd64.VPMAXSB, amd64.VPMINSB),
		hlo.OpAbs: unaryCode(func(c *amd64.Chain, x amd64.Value) amd64.Value {
			return c.Do(amd64.VPABSB, x)
		}),
		// The number, no less than −1 and no more than 1.
		hlo.OpSign: unaryCode(func(c *amd64.Chain, x amd64.Value) amd64.Value {
			least := c.Const32(1<<32 - 1)
			x = c.Do(amd64.VPMAXSB, x, least)
			return c.Do(
				amd64.VPMINSB, x, ConstByte(c, 1),
			)
		}),
	}
	unsignedByteCode = map[hlo.Opcode]Code{
		hlo.OpMaximum: binaryCode(amd64.VPMAXUB),
		hlo.OpMinimum: binaryCode(amd64.VPMINUB),
		hlo.OpClamp:   clampCode(amd64.VPMAXUB, amd64.VPMINUB),
	}
	// What gives truth values of truth values.
	predByteCode = map[hlo.Opcode]Code{
		hlo.OpAnd: byteCode[hlo.OpAnd],
		hlo.OpOr:  byteCode[hlo.OpOr],
		hlo.OpXor: byteCode[hlo.OpXor],
	}
)

// clampCode is no less than the first operand and no more than the last.
func clampCode(larger, smaller amd64.Op) Code {
	return func(
		c *amd64.Chain, _ *hlo.Instr, x []amd64.Value,
	) amd64.Value {
		return c.Do(
			smaller,
			c.Do(larger, x[1], x[0]),
			x[2],
		)
	}
}

// byteProduct is the product modulo 2⁸: of the even bytes in the low halves of lanes of 16
// bits, and of the odd ones where one factor is 2⁸ times as large.
func byteProduct(c *amd64.Chain, x, y amd64.Value) amd64.Value {
	high := c.Const32(0xff00ff00)
	even := c.Do(
		amd64.VPANDN, high,
		c.Do(amd64.VPMULLW, x, y),
	)
	odd := c.Do(
		amd64.VPMULLW,
		c.Do(amd64.VPSRLW, x, amd64.Imm(8)),
		c.Do(amd64.VPAND, y, high),
	)
	return c.Do(amd64.VPOR, even, odd)
}

// byteShift shifts to the left, by a product with a power of two; counts of 8 and more, those
// of negative numbers among them, give 0. The sum saturates so that counts of 16 and more have
// their first bit set, for which VPSHUFB gives 0.
func byteShift(c *amd64.Chain, x, count amd64.Value) amd64.Value {
	index := c.Do(
		amd64.VPADDUSB, count,
		ConstByte(c, 0x70),
	)
	return byteProduct(c, x, c.PowersOfBytes(index))
}

// compareByteCode is the code of a compare of bytes. Those without a sign are compared with
// their first bits inverted, which has the order of signed ones.
func compareByteCode(
	c *amd64.Chain, i *hlo.Instr, x []amd64.Value,
) amd64.Value {
	o := intComparisons[i.Attrs.Direction]
	a, b := x[0], x[1]
	if o.swapped {
		a, b = b, a
	}
	op := amd64.VPCMPEQB
	if o.op != amd64.VPCMPEQD {
		op = amd64.VPCMPGTB
		if !i.Operands[0].Shape.DType.IsSigned() {
			first := ConstByte(c, signByte)
			a = c.Do(amd64.VPXOR, a, first)
			b = c.Do(amd64.VPXOR, b, first)
		}
	}
	return truthOfByte(c, c.Do(op, a, b), o.inverted != 0)
}

// truthOfByte is 1 where a mask is on, or off.
func truthOfByte(c *amd64.Chain, mask amd64.Value, inverted bool) amd64.Value {
	one := ConstByte(c, 1)
	if inverted {
		return c.Do(amd64.VPANDN, mask, one)
	}
	return c.Do(amd64.VPAND, mask, one)
}

// selectByteCode is the code of a select.
func selectByteCode(
	c *amd64.Chain, _ *hlo.Instr, x []amd64.Value,
) amd64.Value {
	chosen := negatedBytes(c, x[0])
	return c.Do(
		amd64.VPOR,
		c.Do(amd64.VPAND, chosen, x[1]),
		c.Do(amd64.VPANDN, chosen, x[2]),
	)
}

// convertByteCode is the code of a convert: integers wrap, which leaves their bits, and truth
// is what is not 0.
func convertByteCode(
	c *amd64.Chain, i *hlo.Instr, x []amd64.Value,
) amd64.Value {
	if i.Shape.DType != hlo.Pred {
		return x[0]
	}
	zero := c.Do(
		amd64.VPCMPEQB, x[0],
		c.Const32(0),
	)
	return truthOfByte(c, zero, true)
}

// byteCodeOf is the code of an operation in lanes of one byte, or nil.
func byteCodeOf(i *hlo.Instr) Code {
	d := i.Shape.DType
	for _, o := range i.Operands {
		if !IsByte(o.Shape.DType) {
			return nil
		}
	}
	if !IsByte(d) || len(i.Operands) == 0 {
		return nil
	}
	from := i.Operands[0].Shape.DType
	switch i.Op {
	case hlo.OpCompare:
		if _, known := intComparisons[i.Attrs.Direction]; known {
			return compareByteCode
		}
		return nil
	case hlo.OpConvert:
		return convertByteCode
	case hlo.OpSelect:
		if from != hlo.Pred {
			return nil
		}
		return selectByteCode
	}
	switch {
	case d == hlo.Pred:
		return predByteCode[i.Op]
	case byteCode[i.Op] != nil:
		return byteCode[i.Op]
	case d.IsSigned():
		return signedByteCode[i.Op]
	}
	return unsignedByteCode[i.Op]
}

// HasBytes reports whether an operation has code for lanes of one byte.
func HasBytes(i *hlo.Instr) bool { return byteCodeOf(i) != nil }

// EmitBytes emits such an operation on one vector of each argument.
func EmitBytes(
	c *amd64.Chain, i *hlo.Instr, x []amd64.Value,
) amd64.Value {
	return byteCodeOf(i)(c, i, x)
}
