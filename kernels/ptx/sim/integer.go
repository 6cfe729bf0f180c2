package sim

import (
	"math"
	"math/bits"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// scalar is an operation on one lane. Operands and result are the bits of
// their registers, zero-extended.
type scalar func(a, b, c uint64) uint64

// signExtend reads the low n bits of v as a signed number.
func signExtend(v uint64, n int) int64 {
	return int64(v<<(64-n)) >> (64 - n)
}

// lowBits is the mask of the low n bits.
func lowBits(n int) uint64 {
	if n >= 64 {
		return math.MaxUint64
	}
	return 1<<n - 1
}

// integer returns the integer operation of an opcode on one lane, or nil.
func integer(code *ptx.Opcode) scalar {
	t := code.Type(0)
	n := t.Bits()
	signed := t.Signed()
	ext := func(v uint64) int64 {
		if signed {
			return signExtend(v, n)
		}
		return int64(v & lowBits(n))
	}
	switch code.Op {
	// Results are cut to the width of the type, since registers are
	// zero-extended.
	case ptx.OpAdd:
		if code.Has(ptx.ModSat) {
			return func(a, b, _ uint64) uint64 {
				return saturate32(ext(a) + ext(b))
			}
		}
		return cut(n, func(a, b, _ uint64) uint64 {
			return a + b
		})
	case ptx.OpSub:
		if code.Has(ptx.ModSat) {
			return func(a, b, _ uint64) uint64 {
				return saturate32(ext(a) - ext(b))
			}
		}
		return cut(n, func(a, b, _ uint64) uint64 {
			return a - b
		})
	case ptx.OpMul, ptx.OpMad:
		return multiply(code, n, signed, ext)
	case ptx.OpMul24, ptx.OpMad24:
		return multiply24(code, signed)
	case ptx.OpDiv, ptx.OpRem:
		return cut(
			n, divide(code.Op == ptx.OpRem, signed, ext),
		)
	case ptx.OpMin, ptx.OpMax:
		return extreme(code.Op == ptx.OpMax, signed, n, ext)
	case ptx.OpAbs:
		return cut(n, func(a, _, _ uint64) uint64 {
			v := ext(a)
			return uint64(max(v, -v))
		})
	case ptx.OpNeg:
		return cut(n, func(a, _, _ uint64) uint64 {
			return -a
		})
	case ptx.OpSad:
		return cut(n, func(a, b, c uint64) uint64 {
			return c + uint64(max(ext(a), ext(b))-
				min(ext(a), ext(b)))
		})
	}
	return bitwise(code, n, signed)
}

// saturate32 clamps a number to the range of a signed 32-bit integer.
func saturate32(v int64) uint64 {
	return uint64(uint32(min(max(v, math.MinInt32), math.MaxInt32)))
}

// cut keeps the low n bits of the result of f.
func cut(n int, f scalar) scalar {
	mask := lowBits(n)
	return func(a, b, c uint64) uint64 {
		return f(a, b, c) & mask
	}
}

// multiply is mul and mad in their three forms: the low half, the high half, and
// the whole (wide) product of n-bit numbers.
func multiply(code *ptx.Opcode, n int, signed bool, ext func(uint64) int64) scalar {
	// The product of the low halves is the same for signed and unsigned
	// operands; the high half is not.
	keep := n
	product := func(a, b uint64) uint64 { return a * b }
	switch {
	case code.Has(ptx.ModWide):
		keep = 2 * n
		product = func(a, b uint64) uint64 {
			return uint64(ext(a) * ext(b))
		}
	case code.Has(ptx.ModHi) && n == 64:
		product = func(a, b uint64) uint64 {
			return highHalf(a, b, signed)
		}
	case code.Has(ptx.ModHi):
		product = func(a, b uint64) uint64 {
			return uint64(ext(a)*ext(b)) >> n
		}
	}
	switch {
	case code.Op == ptx.OpMad && code.Has(ptx.ModSat):
		return func(a, b, c uint64) uint64 {
			return saturate32(int64(int32(product(a, b))) + int64(int32(c)))
		}
	case code.Op == ptx.OpMad:
		return cut(keep, func(a, b, c uint64) uint64 {
			return product(a, b) + c
		})
	}
	return cut(keep, func(a, b, _ uint64) uint64 {
		return product(a, b)
	})
}

// highHalf is the upper 64 bits of a product of 64-bit numbers. The signed
// product follows from the unsigned one: hi(a·b) − (a<0)·b − (b<0)·a.
func highHalf(a, b uint64, signed bool) uint64 {
	hi, _ := bits.Mul64(a, b)
	if signed {
		hi -= uint64(int64(a)>>63)&b +
			uint64(int64(b)>>63)&a
	}
	return hi
}

// multiply24 is mul24 and mad24: the low or the high 32 bits of the 48-bit
// product of 24-bit numbers.
func multiply24(code *ptx.Opcode, signed bool) scalar {
	shift := 0
	if code.Has(ptx.ModHi) {
		shift = 16
	}
	add := code.Op == ptx.OpMad24
	return func(a, b, c uint64) uint64 {
		v := (a & 0xffffff) * (b & 0xffffff)
		if signed {
			v = uint64(signExtend(a, 24) * signExtend(b, 24))
		}
		v = uint64(uint32(v >> shift))
		if add {
			v = uint64(uint32(v + c))
		}
		return v
	}
}

// divide is div and rem. A division by zero, which PTX leaves undefined, gives
// all ones, and its remainder is the dividend. The quotient of the most negative
// number by −1 wraps.
func divide(rem, signed bool, ext func(uint64) int64) scalar {
	return func(a, b, _ uint64) uint64 {
		x := ext(a)
		y := ext(b)
		switch {
		case y == 0 && rem:
			return a
		case y == 0:
			return math.MaxUint64
		case signed && rem && y == -1:
			return 0
		case signed && y == -1:
			return uint64(-x)
		case signed && rem:
			return uint64(x % y)
		case signed:
			return uint64(x / y)
		case rem:
			return uint64(x) % uint64(y)
		}
		return uint64(x) / uint64(y)
	}
}

// extreme is min and max of integers of n bits.
func extreme(largest, signed bool, n int, ext func(uint64) int64) scalar {
	return cut(n, func(a, b, _ uint64) uint64 {
		x := ext(a)
		y := ext(b)
		less := x < y
		if !signed {
			less = uint64(x) < uint64(y)
		}
		if less == largest {
			return b
		}
		return a
	})
}

// bitwise returns the operations on bits, shifts and bit fields of n bits, or
// nil.
func bitwise(code *ptx.Opcode, n int, signed bool) scalar {
	mask := lowBits(n)
	switch code.Op {
	case ptx.OpAnd:
		return func(a, b, _ uint64) uint64 { return a & b }
	case ptx.OpOr:
		return func(a, b, _ uint64) uint64 { return a | b }
	case ptx.OpXor:
		return func(a, b, _ uint64) uint64 { return a ^ b }
	case ptx.OpNot:
		return func(a, _, _ uint64) uint64 { return ^a & mask }
	case ptx.OpCnot:
		return func(a, _, _ uint64) uint64 {
			return boolBit(a&mask == 0)
		}
	case ptx.OpShl:
		return func(a, b, _ uint64) uint64 {
			return a << min(b&math.MaxUint32, 64) & mask
		}
	case ptx.OpShr:
		if signed {
			return func(a, b, _ uint64) uint64 {
				return uint64(signExtend(a, n)>>min(b&math.MaxUint32, 63)) & mask
			}
		}
		return func(a, b, _ uint64) uint64 {
			return a & mask >> min(b&math.MaxUint32, 64)
		}
	case ptx.OpShf:
		return funnel(
			code.Has(ptx.ModL), code.Has(ptx.ModWrap),
		)
	case ptx.OpPopc:
		return func(a, _, _ uint64) uint64 {
			return uint64(bits.OnesCount64(a & mask))
		}
	case ptx.OpClz:
		return func(a, _, _ uint64) uint64 {
			return uint64(bits.LeadingZeros64(a&mask) - (64 - n))
		}
	case ptx.OpBrev:
		return func(a, _, _ uint64) uint64 {
			return bits.Reverse64(a) >> (64 - n)
		}
	case ptx.OpBfind:
		return findBit(code.Has(ptx.ModShiftamt), signed, n)
	case ptx.OpBfe:
		return extractField(n, signed)
	case ptx.OpBmsk:
		return maskOf(code.Has(ptx.ModClamp))
	case ptx.OpSzext:
		return sizeExtend(code.Has(ptx.ModClamp), signed)
	}
	return nil
}

// boolBit is 1 for true and 0 for false.
func boolBit(v bool) uint64 {
	if v {
		return 1
	}
	return 0
}

// funnel is shf: it shifts the 64-bit pair b:a and keeps its upper (left) or
// lower (right) word. The amount is taken modulo 32 (wrap) or clamped to 32.
func funnel(left, wrap bool) scalar {
	return func(a, b, c uint64) uint64 {
		n := min(c&math.MaxUint32, 32)
		if wrap {
			n = c & 31
		}
		v := b<<32 | a
		if left {
			return uint64(uint32(v << n >> 32))
		}
		return uint64(uint32(v >> n))
	}
}

// findBit is bfind: the position of the most significant bit that is set (or, for
// negative numbers, that differs from the sign), or its distance from the top;
// all ones if there is none.
func findBit(amount, signed bool, n int) scalar {
	return func(a, _, _ uint64) uint64 {
		if signed && signExtend(a, n) < 0 {
			a = ^a
		}
		// The position of the highest bit that differs from the sign.
		at := bits.Len64(a&lowBits(n)) - 1
		if at < 0 {
			return math.MaxUint32
		}
		if amount {
			at = n - 1 - at
		}
		return uint64(at)
	}
}

// extractField is bfe: the field of a given position and length, extended to n
// bits. Bits past the top are filled with the sign.
func extractField(n int, signed bool) scalar {
	return func(a, b, c uint64) uint64 {
		pos := int(b & 255)
		length := int(c & 255)
		v := a & lowBits(n) >> min(pos, 64)
		v &= lowBits(length)
		if signed && length > 0 {
			top := min(pos+length-1, n-1)
			if a>>top&1 == 1 {
				v |= ^lowBits(max(min(length, n-pos), 0))
			}
		}
		return v & lowBits(n)
	}
}

// insertField is bfi: b with the low bits of a in the field of a given position
// and length.
func insertField(a, b uint64, pos, length, n int) uint64 {
	field := lowBits(length) << min(pos, 64) & lowBits(n)
	return b&^field | a<<min(pos, 64)&field
}

// maskOf is bmsk: ones in a field of a given position and length, both clamped to
// 32 or taken modulo 32.
func maskOf(clamp bool) scalar {
	return func(a, b, _ uint64) uint64 {
		pos := a & math.MaxUint32
		length := b & math.MaxUint32
		if !clamp {
			pos, length = pos&31, length&31
		}
		return uint64(
			uint32(lowBits(int(min(length, 32))) << min(pos, 32)),
		)
	}
}

// sizeExtend is szext: the low bits of a number, extended with zeros or the sign.
// The length is clamped to 32 or taken modulo 32.
func sizeExtend(clamp, signed bool) scalar {
	return func(a, b, _ uint64) uint64 {
		n := int(min(b&math.MaxUint32, 32))
		if !clamp {
			n = int(b & 31)
		}
		switch {
		case n == 0:
			return 0
		case signed:
			return uint64(uint32(signExtend(a, n)))
		}
		return a & lowBits(n)
	}
}

// logic3 is lop3: bit i of the result is bit (a_i·4 + b_i·2 + c_i) of table.
func logic3(a, b, c uint64, table uint64) uint64 {
	var r uint64
	for i := range 8 {
		if table>>i&1 == 1 {
			x := a
			y := b
			z := c
			if i&4 == 0 {
				x = ^x
			}
			if i&2 == 0 {
				y = ^y
			}
			if i&1 == 0 {
				z = ^z
			}
			r |= x & y & z
		}
	}
	return uint64(uint32(r))
}

// permute is prmt: the result consists of four bytes of the pair b:a, chosen by
// the nibbles of a selector; bit 3 of a nibble replicates the sign of the byte
// instead.
func permute(code *ptx.Opcode) scalar {
	mode := ptx.NoMod
	for _, m := range []ptx.Mod{
		ptx.ModF4E, ptx.ModB4E, ptx.ModRC8,
		ptx.ModECL, ptx.ModECR, ptx.ModRC16,
	} {
		if code.Has(m) {
			mode = m
		}
	}
	// Both registers form a pair of eight bytes.
	return func(a, b, sel uint64) uint64 {
		v := b<<32 | a
		var r uint64
		for i := range uint64(4) {
			s := permuteSelector(mode, sel, i)
			x := v >> (s & 7 * 8) & 0xff
			// The sign of the byte is replicated.
			if s&8 != 0 {
				x = uint64(int8(x)>>7) & 0xff
			}
			r |= x << (i * 8)
		}
		return r
	}
}

// permuteSelector is nibble i of the selector that a mode of prmt such as .f4e or
// .rc16 stands for.
func permuteSelector(mode ptx.Mod, sel, i uint64) uint64 {
	s := sel & 3
	switch mode {
	case ptx.ModF4E:
		return (s + i) & 7
	case ptx.ModB4E:
		return (s - i) & 7
	case ptx.ModRC8:
		return s
	case ptx.ModECL:
		return max(i, s)
	case ptx.ModECR:
		return min(i, s)
	case ptx.ModRC16:
		return s&1*2 + i&1
	}
	return sel >> (i * 4) & 15
}

// dot4 is dp4a: c plus the products of the four bytes of a and b.
func dot4(aSigned, bSigned bool) scalar {
	return func(a, b, c uint64) uint64 {
		s := c
		for i := 0; i < 32; i += 8 {
			s += uint64(part(a, i, 8, aSigned) *
				part(b, i, 8, bSigned))
		}
		return uint64(uint32(s))
	}
}

// dot2 is dp2a: c plus the products of the halves of a and the low or the high
// bytes of b.
func dot2(aSigned, bSigned, high bool) scalar {
	from := 0
	if high {
		from = 16
	}
	return func(a, b, c uint64) uint64 {
		for i := range 2 {
			c += uint64(part(a, i*16, 16, aSigned) *
				part(b, from+i*8, 8, bSigned))
		}
		return uint64(uint32(c))
	}
}

// part is field number at of n bits of v.
func part(v uint64, at, n int, signed bool) int64 {
	v = v >> at & lowBits(n)
	if signed {
		return signExtend(v, n)
	}
	return int64(v)
}

// carryOp is an operation with the carry flag: carry is its value before, and out
// the value that an operation with .cc leaves.
type carryOp func(
	a, b, c, carry uint64,
) (result, out uint64)

// usesCarry reports whether an opcode reads or writes the carry flag.
func usesCarry(code *ptx.Opcode) bool {
	return code.Op == ptx.OpAddc ||
		code.Op == ptx.OpSubc ||
		code.Op == ptx.OpMadc ||
		code.Has(ptx.ModCC)
}

// carryOperation returns what add.cc, addc, sub.cc, subc, mad.cc and madc do on
// n bits; operands are zero-extended.
func carryOperation(code *ptx.Opcode) carryOp {
	t := code.Type(0)
	n := t.Bits()
	// The sum of n bits and a carry has n + 1 bits, of which the highest is the
	// new carry.
	add := func(a, b, carry uint64) (uint64, uint64) {
		s, out := bits.Add64(a, b, carry)
		if n < 64 {
			return s & lowBits(n), s >> n & 1
		}
		return s, out
	}
	switch code.Op {
	case ptx.OpAdd, ptx.OpAddc:
		return func(a, b, _, carry uint64) (uint64, uint64) {
			return add(a, b, carry)
		}
	case ptx.OpSub, ptx.OpSubc:
		return func(a, b, _, borrow uint64) (uint64, uint64) {
			d, out := bits.Sub64(a, b, borrow)
			return d & lowBits(n), out
		}
	}
	ext := func(v uint64) int64 { return int64(v) }
	if t.Signed() {
		ext = func(v uint64) int64 { return signExtend(v, n) }
	}
	product := func(a, b uint64) uint64 {
		return a * b & lowBits(n)
	}
	switch {
	case code.Has(ptx.ModHi) && n == 64:
		product = func(a, b uint64) uint64 {
			return highHalf(a, b, t.Signed())
		}
	case code.Has(ptx.ModHi):
		product = func(a, b uint64) uint64 {
			return uint64(ext(a)*ext(b)) >> n & lowBits(n)
		}
	}
	return func(a, b, c, carry uint64) (uint64, uint64) {
		return add(product(a, b), c, carry)
	}
}

// halves16 does an operation on both 16-bit halves of a register; nil if there
// is none of the name.
func halves16(code *ptx.Opcode) scalar {
	t := map[ptx.Type]ptx.Type{
		ptx.U16x2: ptx.U16,
		ptx.S16x2: ptx.S16,
	}[code.Type(0)]
	if t == ptx.NoMod ||
		code.Op != ptx.OpAdd && code.Op != ptx.OpMin && code.Op != ptx.OpMax {
		return nil
	}
	f := clampNegative(code, integerReduction(code.Op, t), 16)
	// The halves are computed apart: no carry crosses.
	return func(a, b, _ uint64) uint64 {
		return f(a&0xffff, b&0xffff, 0) |
			f(a>>16&0xffff, b>>16&0xffff, 0)<<16
	}
}

// clampNegative is .relu of integers of n bits: negative results become 0.
func clampNegative(code *ptx.Opcode, f scalar, n int) scalar {
	if !code.Has(ptx.ModRelu) {
		return f
	}
	return func(a, b, c uint64) uint64 {
		r := f(a, b, c)
		if signExtend(r, n) < 0 {
			return 0
		}
		return r
	}
}

// atomicOperation returns the new value of atom and red as a function of the old
// one, or nil if the operation is not modelled.
func atomicOperation(code *ptx.Opcode) func(old, b, c uint64) uint64 {
	t := code.Type(0)
	n := t.Bits()
	mask := lowBits(n)
	switch {
	case code.Has(ptx.ModExch):
		return func(_, b, _ uint64) uint64 { return b }
	case code.Has(ptx.ModCas):
		return func(old, b, c uint64) uint64 {
			if old == b&mask {
				return c
			}
			return old
		}
	case code.Has(ptx.ModInc):
		return func(old, b, _ uint64) uint64 {
			if old >= b {
				return 0
			}
			return old + 1
		}
	case code.Has(ptx.ModDec):
		return func(old, b, _ uint64) uint64 {
			if old == 0 || old > b {
				return b
			}
			return old - 1
		}
	case code.Has(ptx.ModPopc):
		return func(old, b, _ uint64) uint64 {
			return (old + uint64(bits.OnesCount64(b&mask))) & mask
		}
	}
	return reducing(code, t)
}

// reducing returns the add, min, max, and, or, xor of atom, red, redux and the
// bulk reductions on a type; pairs of small floats are reduced element by
// element.
func reducing(code *ptx.Opcode, t ptx.Type) func(a, b, _ uint64) uint64 {
	for m, op := range map[ptx.Mod]ptx.Op{
		ptx.ModAdd: ptx.OpAdd,
		ptx.ModMin: ptx.OpMin,
		ptx.ModMax: ptx.OpMax,
		ptx.ModAnd: ptx.OpAnd,
		ptx.ModOr:  ptx.OpOr,
		ptx.ModXor: ptx.OpXor,
	} {
		if code.Has(m) {
			return reduction(op, t)
		}
	}
	return nil
}

// reduction is a reduction on a type that is not a pair, or nil.
func reduction(op ptx.Op, t ptx.Type) scalar {
	el, pair := paired[t]
	if !pair {
		el = t
	}
	ft, isFloat := floatTypes[el]
	code := ptx.Opcode{Op: op}
	var f scalar
	switch {
	case isFloat:
		f = floatOperation(&code, ft)
	default:
		f = integerReduction(op, t)
	}
	if pair && f != nil {
		return func(a, b, _ uint64) uint64 {
			return f(a&0xffff, b&0xffff, 0) |
				f(a>>16&0xffff, b>>16&0xffff, 0)<<16
		}
	}
	return f
}

// integerReduction is a reduction on an integer type, or nil.
func integerReduction(op ptx.Op, t ptx.Type) scalar {
	n := t.Bits()
	signed := t.Signed()
	mask := lowBits(n)
	switch op {
	case ptx.OpAdd:
		return func(a, b, _ uint64) uint64 {
			return (a + b) & mask
		}
	case ptx.OpAnd:
		return func(a, b, _ uint64) uint64 {
			return a & b & mask
		}
	case ptx.OpOr:
		return func(a, b, _ uint64) uint64 {
			return (a | b) & mask
		}
	case ptx.OpXor:
		return func(a, b, _ uint64) uint64 {
			return (a ^ b) & mask
		}
	}
	return extreme(op == ptx.OpMax, signed, n, func(v uint64) int64 {
		if signed {
			return signExtend(v, n)
		}
		return int64(v & mask)
	})
}
