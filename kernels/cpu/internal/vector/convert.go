package vector

import (
	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Conversions between types whose elements are held in four bytes: floats as f32, integers
// as i32. They give what portable.Conversion gives: floats are rounded towards zero, what is
// out of range becomes the nearest end of it, NaN 0; integers wrap.

// f32Digits is the bits of the integers that f32 has all of, with their sign.
const f32Digits = 25

// lowest is the shift that leaves the first bit of a lane, which makes 1 of a mask.
const lowest = amd64.Imm(31)

// wraps reports whether an operation of wrappingInt32Code, followed by a wrap, is that of a
// type narrower than s32. Elements of signed types are held with copies of their sign in
// front of them, which a logical shift to the right would bring in; an arithmetic one of an
// unsigned type would have to bring in its highest bit.
func wraps(op hlo.Opcode, d hlo.DType) bool {
	switch op {
	case hlo.OpShiftRightLogical:
		return d != hlo.Pred && !d.IsSigned()
	case hlo.OpShiftRightArithmetic, hlo.OpAbs, hlo.OpSign:
		return d.IsSigned()
	}
	return d != hlo.Pred && wrappingInt32Code[op] != nil
}

// wrapped is the code of an operation whose result is wrapped to its type.
func wrapped(code Code) Code {
	return func(
		c *amd64.Chain, i *hlo.Instr, x []amd64.Value,
	) amd64.Value {
		y := code(c, i, x)
		return wrapInt32(c, i.Shape.DType, y)
	}
}

// wrapInt32 wraps to an integer type that is held as i32: by a mask where it is unsigned, by
// two shifts where it is signed. Pred is whether x is not 0.
func wrapInt32(
	c *amd64.Chain, d hlo.DType, x amd64.Value,
) amd64.Value {
	bits := d.Bits()
	switch {
	case d == hlo.Pred:
		// The comparison says where x is 0, which is turned around.
		zero := c.Do(
			amd64.VPCMPEQD, x, c.Const32(0),
		)
		return c.Do(
			amd64.VPXOR, c.Const32(1),
			c.Do(amd64.VPSRLD, zero, lowest),
		)
	case bits == 32:
		return x
	case d.IsSigned():
		shift := amd64.Imm(32 - bits)
		x = c.Do(amd64.VPSLLD, x, shift)
		return c.Do(amd64.VPSRAD, x, shift)
	}
	mask := c.Const32(1<<bits - 1)
	return c.Do(amd64.VPAND, x, mask)
}

// convertInt32CodeOf is the code of a convert from integers held as i32, or nil. To a float
// narrower than f32 they are rounded once: f32 has to have all of them.
func convertInt32CodeOf(d, from hlo.DType) Code {
	switch {
	case roundings[d] != nil:
		exact := d == hlo.F32 || from.Bits() < f32Digits
		return unaryCode(func(
			c *amd64.Chain, x amd64.Value,
		) amd64.Value {
			// Else the low bits would be rounded away first, and then the rest.
			if !exact {
				x = oddInt32(c, x)
			}
			x = c.FromInt32(x)
			return roundings[d](c, x)
		})
	case portable.ClassOf(d) == portable.Int32 && !d.IsComplex():
		return unaryCode(func(
			c *amd64.Chain, x amd64.Value,
		) amd64.Value {
			return wrapInt32(c, d, x)
		})
	}
	return nil
}

// oddInt32 rounds s32 of more digits than f32 has to odd, so that rounding it to a type of
// fewer rounds once: the lowest bit that is left says whether lower ones were not 0.
func oddInt32(c *amd64.Chain, x amd64.Value) amd64.Value {
	const low = 1<<7 - 1
	sticky := c.Do(
		amd64.VPADDD,
		c.Do(amd64.VPAND, x, c.Const32(low)),
		c.Const32(low),
	)
	sticky = c.Do(
		amd64.VPAND,
		c.Do(amd64.VPOR, x, sticky),
		c.Const32(^uint32(low)),
	)
	size := c.Do(amd64.VPABSD, x)
	large := c.Do(
		amd64.VPSRLD, size,
		amd64.Imm(f32Digits-1),
	)
	fits := c.Do(
		amd64.VPCMPEQD, large,
		c.Const32(0),
	)
	return c.Do(amd64.VBLENDVPS, sticky, x, fits)
}

// isNotZero is whether a float is not 0, as 0 or 1; NaN is not.
func isNotZero(c *amd64.Chain, x amd64.Value) amd64.Value {
	differs := c.Do(
		amd64.VCMPPS, x, c.Float32(0),
		floatPredicates["NE"],
	)
	return c.Do(amd64.VPSRLD, differs, lowest)
}

// floatToInt32CodeOf is the code of a convert from floats held as f32 to integers held as
// i32, or nil.
func floatToInt32CodeOf(i *hlo.Instr) Code {
	d := i.Shape.DType
	if i.Op != hlo.OpConvert || d.IsComplex() ||
		portable.ClassOf(d) != portable.Int32 {
		return nil
	}
	from := i.Operands[0].Shape.DType
	if !from.IsFloat() ||
		portable.ClassOf(from) != portable.Float32 {
		return nil
	}
	if d == hlo.Pred {
		return unaryCode(isNotZero)
	}
	// What s32 does not hold is at an end of its range, and so beyond those of narrower
	// types, which cut it off.
	low, high := d.IntRange()
	return unaryCode(func(
		c *amd64.Chain, x amd64.Value,
	) amd64.Value {
		y := c.ToInt32(x)
		if d.Bits() == 32 {
			return y
		}
		least := c.Const32(uint32(low))
		most := c.Const32(uint32(high))
		y = c.Do(amd64.VPMAXSD, y, least)
		return c.Do(amd64.VPMINSD, y, most)
	})
}
