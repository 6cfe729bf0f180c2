package vector

import (
	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Conversions from or to elements of 64 bits: they give what portable.Conversion gives. Those
// of 32 bits are in the low halves of lanes. To bf16 and f16 numbers are rounded to odd in
// f32 first, after which the rounding to the type is the only one.
//
// Nothing is converted from u64 to types of fewer digits than f64, and no float to u64: that
// takes more instructions than are worth it for what no model does, and stays a loop in Go.

// conversion64Of is the code of a convert from or to elements of eight bytes, or nil.
func conversion64Of(i *hlo.Instr) Code {
	if i.Op != hlo.OpConvert {
		return nil
	}
	d, from := i.Shape.DType, i.Operands[0].Shape.DType
	if d.IsComplex() || from.IsComplex() {
		return nil
	}
	var convert func(c *amd64.Chain, x amd64.Value) amd64.Value
	// Which of the four it is goes by what holds the elements that are converted.
	switch portable.ClassOf(from) {
	case portable.Float64:
		convert = fromFloat64(d)
	case portable.Float32:
		convert = fromFloat32(d)
	case portable.Int64:
		convert = fromInt64(d, from)
	default:
		convert = fromInt32(d)
	}
	if convert == nil {
		return nil
	}
	return unaryCode(convert)
}

// fromFloat64 is the conversion of f64 to d, or nil. Integers are truncated, with what is beyond
// at the nearer end; low and high are the ends.
func fromFloat64(d hlo.DType) func(c *amd64.Chain, x amd64.Value) amd64.Value {
	low, high := 0.0, 0.0
	if !d.IsFloat() && d != hlo.Pred {
		least, most := d.IntRange()
		low, high = float64(least), float64(most)
	}
	switch {
	case d == hlo.F64:
		return func(_ *amd64.Chain, x amd64.Value) amd64.Value { return x }
	// One rounding, by the instruction.
	case d == hlo.F32:
		return (*amd64.Chain).LowFromFloat64
	// To fewer digits than f32 has by way of it.
	case roundings[d] != nil:
		return func(c *amd64.Chain, x amd64.Value) amd64.Value {
			return roundings[d](c, c.OddFromFloat64(x))
		}
	// NaN is not 0.
	case d == hlo.Pred:
		return func(c *amd64.Chain, x amd64.Value) amd64.Value {
			differs := c.Do(
				amd64.VCMPPD, x,
				c.Const64(0),
				floatPredicates["NE"],
			)
			return c.Do(amd64.VPSRLQ, differs, lowest64)
		}
	// Ends of ranges are f64 but for those of 64 bits, which have code of their own.
	case d == hlo.S64:
		return (*amd64.Chain).Int64FromFloat64
	case d == hlo.U32 || portable.ClassOf(d) == portable.Int32:
		return func(c *amd64.Chain, x amd64.Value) amd64.Value {
			return c.Int32FromFloat64(x, low, high)
		}
	}
	return nil
}

// fromFloat32 is the conversion of floats held as f32 to d of eight bytes, by f64, which has
// all of them; or nil.
func fromFloat32(d hlo.DType) func(c *amd64.Chain, x amd64.Value) amd64.Value {
	// Nothing is lost in f64.
	convert := fromFloat64(d)
	if convert == nil || portable.ClassOf(d).Bytes() != 8 {
		return nil
	}
	return func(c *amd64.Chain, x amd64.Value) amd64.Value {
		return convert(c, c.Float64FromLow(x))
	}
}

// fromInt32 is the conversion of integers held as i32 to d of eight bytes, or nil.
func fromInt32(d hlo.DType) func(c *amd64.Chain, x amd64.Value) amd64.Value {
	switch d {
	case hlo.F64:
		return (*amd64.Chain).Float64FromInt32
	// The sign is copied to the high half, of u64 as well: integers wrap.
	case hlo.S64, hlo.U64:
		return (*amd64.Chain).SignedLow
	case hlo.U32:
		return lowWord
	}
	return nil
}

// lowWord is the low halves of lanes with zeros in front of them.
func lowWord(c *amd64.Chain, x amd64.Value) amd64.Value {
	return c.Do(
		amd64.VPAND, x,
		c.Const64(1<<32-1),
	)
}

// fromInt64 is the conversion of integers held as i64 to d, or nil. What remains of them in
// narrower types is their low bits. Those of u64 above 2⁶³ would be negative as s64, so that
// u64 is converted to f64 only, by its two halves.
func fromInt64(d, from hlo.DType) func(c *amd64.Chain, x amd64.Value) amd64.Value {
	switch {
	case d == hlo.F64:
		return func(c *amd64.Chain, x amd64.Value) amd64.Value {
			return c.Float64FromInt64(x, from.IsSigned())
		}
	case d == hlo.F32 && from != hlo.U64:
		return (*amd64.Chain).LowFromInt64
	case roundings[d] != nil && from != hlo.U64:
		return func(c *amd64.Chain, x amd64.Value) amd64.Value {
			return roundings[d](c, c.OddFromInt64(x))
		}
	case d == hlo.U32:
		return lowWord
	// s64 and u64 have the same bits.
	case isInt64(d):
		return func(_ *amd64.Chain, x amd64.Value) amd64.Value { return x }
	case d == hlo.Pred:
		return func(c *amd64.Chain, x amd64.Value) amd64.Value {
			zero := c.Do(
				amd64.VPCMPEQQ, x,
				c.Const64(0),
			)
			return c.Do(
				amd64.VPXOR,
				c.Do(amd64.VPSRLQ, zero, lowest64),
				c.Const64(1),
			)
		}
	// The low half is where an element of four bytes is read.
	case portable.ClassOf(d) == portable.Int32:
		return func(c *amd64.Chain, x amd64.Value) amd64.Value {
			return wrapInt32(c, d, x)
		}
	}
	return nil
}
