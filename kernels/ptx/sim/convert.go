package sim

import (
	"fmt"
	"math"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// plainConversions are the most frequent conversions, computed directly instead
// of by way of float64.
var plainConversions = map[string]scalar{
	"cvt.rn.f16.f32": func(a, _, _ uint64) uint64 {
		return uint64(floatToHalf(math.Float32frombits(uint32(a))))
	},
	"cvt.rn.bf16.f32": func(a, _, _ uint64) uint64 {
		return uint64(floatToBfloat(math.Float32frombits(uint32(a))))
	},
	"cvt.f32.f16": func(a, _, _ uint64) uint64 {
		return uint64(canonical(halfToFloat(uint16(a))))
	},
	"cvt.f32.bf16": func(a, _, _ uint64) uint64 {
		return uint64(canonical(bfloatToFloat(uint16(a))))
	},
}

// conversion returns cvt of one operand, to code.Type(0) from code.Type(1).
func conversion(code *ptx.Opcode) (scalar, error) {
	if f := plainConversions[code.String()]; f != nil {
		return f, nil
	}
	to := code.Type(0)
	from := code.Type(1)
	_, toFloat := floatTypes[to]
	_, fromFloat := floatTypes[from]
	switch {
	case toFloat && fromFloat:
		return floatToFloat(code, to, from), nil
	case fromFloat && to.Bits() > 0 && !to.Float():
		return floatToInteger(code, to, from), nil
	case toFloat && from.Bits() > 0 && !from.Float():
		return integerToFloat(code, to, from), nil
	case to.Bits() > 0 &&
		from.Bits() > 0 && !to.Float() &&
		!from.Float():
		return integerToInteger(code, to, from), nil
	}
	return eightBit(code, to, from)
}

// narrowPairs are the pairs of small floats that cvt makes of two float32.
var narrowPairs = map[ptx.Type]smallFormat{
	ptx.F16x2: halfFormat, ptx.BF16x2: bfloatFormat, ptx.E4M3x2: e4m3Format, ptx.E5M2x2: e5m2Format,
}

// toNearest are the roundings to nearest even that have code of their own, with the same
// results as smallFormat.round.
var toNearest = map[ptx.Type]func(float32) uint16{
	ptx.F16x2: floatToHalf, ptx.BF16x2: floatToBfloat,
}

// packing returns cvt of two operands: the first goes to the upper half.
func packing(code *ptx.Opcode) (scalar, error) {
	format, ok := narrowPairs[code.Type(0)]
	if !ok || code.Type(1) != ptx.F32 {
		return nil, fmt.Errorf("%v is not modelled", code)
	}
	mode := roundingOf(code, nearest)
	sat := code.Has(ptx.ModSatfinite)
	relu := code.Has(ptx.ModRelu)
	quick := toNearest[code.Type(0)]
	if mode != nearest || sat || relu {
		quick = nil
	}
	narrow := func(bits uint64) uint64 {
		f := math.Float32frombits(uint32(bits))
		if quick != nil {
			return uint64(quick(f))
		}
		v := float64(f)
		if relu && v < 0 {
			v = 0
		}
		return uint64(format.round(v, mode, sat))
	}
	return func(a, b, _ uint64) uint64 {
		return narrow(a)<<format.bits | narrow(b)
	}, nil
}

// eightBit converts between pairs of 8-bit floats and pairs of halves.
func eightBit(code *ptx.Opcode, to, from ptx.Type) (scalar, error) {
	target, ok1 := narrowPairs[to]
	source, ok2 := narrowPairs[from]
	if !ok1 || !ok2 {
		return nil, fmt.Errorf("%v is not modelled", code)
	}
	relu := code.Has(ptx.ModRelu)
	one := func(bits uint64) uint64 {
		v := source.value(uint16(bits & lowBits(source.bits)))
		if relu && v < 0 {
			v = 0
		}
		return uint64(target.round(v, nearest, code.Has(ptx.ModSatfinite)))
	}
	return func(a, _, _ uint64) uint64 {
		return one(a>>source.bits)<<target.bits | one(a)
	}, nil
}

// floatToFloat converts between floating-point types, or rounds to an integer in
// the type (.rni and its like).
func floatToFloat(code *ptx.Opcode, to, from ptx.Type) scalar {
	source := floatTypes[from]
	target := floatTypes[to]
	mode := roundingOf(code, nearest)
	whole := wholeNumber(code)
	ftz := code.Has(ptx.ModFTZ)
	f := func(a, _, _ uint64) uint64 {
		if ftz && from == ptx.F32 {
			a = uint64(flush32(uint32(a)))
		}
		v := source.decode(a)
		if whole {
			v = roundInteger(v, mode)
		}
		r := target.encode(v, 0, mode)
		if ftz && to == ptx.F32 {
			r = uint64(flush32(uint32(r)))
		}
		return r
	}
	if code.Has(ptx.ModSatfinite) {
		f = finite(f, target)
	}
	return clamped(code, target, f)
}

// finite is .satfinite: it replaces infinities by the largest number of their
// sign.
func finite(f scalar, ft floatType) scalar {
	largest := ft.encode(math.Inf(1), 0, nearest) - 1
	return func(a, b, c uint64) uint64 {
		r := f(a, b, c)
		if v := ft.decode(r); math.IsInf(v, 0) {
			return largest | r&(1<<(ft.bits-1))
		}
		return r
	}
}

// wholeNumber reports whether a conversion rounds to an integer.
func wholeNumber(code *ptx.Opcode) bool {
	return code.Has(ptx.ModRNI) ||
		code.Has(ptx.ModRZI) ||
		code.Has(ptx.ModRMI) ||
		code.Has(ptx.ModRPI)
}

// floatToInteger converts with clamping to the range of the integer type; NaN
// becomes 0.
func floatToInteger(code *ptx.Opcode, to, from ptx.Type) scalar {
	source := floatTypes[from]
	mode := roundingOf(code, zero)
	n := to.Bits()
	signed := to.Signed()
	low := 0.0
	high := math.Ldexp(1, n)
	if signed {
		low, high = -math.Ldexp(1, n-1), math.Ldexp(1, n-1)
	}
	ftz := code.Has(ptx.ModFTZ) && from == ptx.F32
	// NaN is tested first: it compares false with both bounds.
	return func(a, _, _ uint64) uint64 {
		if ftz {
			a = uint64(flush32(uint32(a)))
		}
		v := roundInteger(source.decode(a), mode)
		switch {
		case v != v:
			return 0
		case v <= low:
			return uint64(int64(low)) & lowBits(n)
		case v >= high && signed:
			return lowBits(n - 1)
		case v >= high:
			return lowBits(n)
		case v >= 1<<63:
			return uint64(v-1<<63) + 1<<63
		}
		return uint64(int64(v)) & lowBits(n)
	}
}

// integerToFloat rounds an integer once, also one of 64 bits, which float64 does
// not hold exactly.
func integerToFloat(code *ptx.Opcode, to, from ptx.Type) scalar {
	target := floatTypes[to]
	mode := roundingOf(code, nearest)
	n := from.Bits()
	signed := from.Signed()
	return clamped(code, target, func(a, _, _ uint64) uint64 {
		a &= lowBits(n)
		if signed {
			v := signExtend(a, n)
			// Both halves are exact, and so is the first of their sum's parts.
			s, rest := sumRest(
				float64(v>>32)*0x1p32, float64(uint32(v)),
			)
			return target.encode(s, rest, mode)
		}
		s, rest := sumRest(
			float64(a>>32)*0x1p32, float64(uint32(a)),
		)
		return target.encode(s, rest, mode)
	})
}

// integerToInteger truncates or extends, or clamps with .sat.
func integerToInteger(code *ptx.Opcode, to, from ptx.Type) scalar {
	n := from.Bits()
	m := to.Bits()
	if !code.Has(ptx.ModSat) {
		if from.Signed() {
			return func(a, _, _ uint64) uint64 {
				return uint64(signExtend(a, n)) & lowBits(m)
			}
		}
		return func(a, _, _ uint64) uint64 {
			return a & lowBits(n) & lowBits(m)
		}
	}
	low := int64(0)
	high := int64(lowBits(min(m, 63)))
	if to.Signed() {
		low, high = -1<<(m-1), int64(lowBits(m-1))
	}
	return func(a, _, _ uint64) uint64 {
		if from.Signed() {
			return uint64(min(max(signExtend(a, n), low), high)) & lowBits(m)
		}
		return min(a&lowBits(n), uint64(high))
	}
}
