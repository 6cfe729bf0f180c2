package sim

import (
	"math/bits"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// carrying is an operation with the carry flag: out is written by .cc.
type carrying func(a, b, c, carry uint64) (result, out uint64)

// usesCarry reports whether an opcode reads or writes the carry flag.
func usesCarry(code *ptx.Opcode) bool {
	return code.Op == ptx.OpAddc || code.Op == ptx.OpSubc || code.Op == ptx.OpMadc || code.Has(ptx.ModCC)
}

// carryOperation returns what add.cc, addc, sub.cc, subc, mad.cc and madc do on
// n bits; operands are zero-extended.
func carryOperation(code *ptx.Opcode) carrying {
	t := code.Type(0)
	n := t.Bits()
	add := func(a, b, carry uint64) (uint64, uint64) {
		s, out := bits.Add64(a, b, carry)
		if n < 64 {
			return s & lowBits(n), s >> n & 1
		}
		return s, out
	}
	switch code.Op {
	case ptx.OpAdd, ptx.OpAddc:
		return func(a, b, _, carry uint64) (uint64, uint64) { return add(a, b, carry) }
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
	product := func(a, b uint64) uint64 { return a * b & lowBits(n) }
	switch {
	case code.Has(ptx.ModHi) && n == 64:
		product = func(a, b uint64) uint64 { return highHalf(a, b, t.Signed()) }
	case code.Has(ptx.ModHi):
		product = func(a, b uint64) uint64 { return uint64(ext(a)*ext(b)) >> n & lowBits(n) }
	}
	return func(a, b, c, carry uint64) (uint64, uint64) { return add(product(a, b), c, carry) }
}

// carry makes the instruction one that uses the carry flag; regs are the
// destination and its sources.
func (in *instr) carry(code *ptx.Opcode, regs []register) {
	var all [4]register
	for i := range all {
		all[i] = register{bank32, 0}
	}
	copy(all[:], regs)
	f := carryOperation(code)
	takes := code.Op == ptx.OpAddc || code.Op == ptx.OpSubc || code.Op == ptx.OpMadc
	gives := code.Has(ptx.ModCC)
	in.list = regs[:1]
	in.run = func(w *warp, _ *instr) {
		for m := w.active; m != 0; m &= m - 1 {
			l := firstLane(m)
			carry := uint64(0)
			if takes {
				carry = uint64(w.carry >> l & 1)
			}
			r, out := f(w.get(all[1], l), w.get(all[2], l), w.get(all[3], l), carry)
			w.put(all[0], l, r)
			if gives {
				w.carry = w.carry&^(1<<l) | uint32(out)<<l
			}
		}
	}
}

// halves16 does an operation on both 16-bit halves of a register; nil if there
// is none of the name.
func halves16(code *ptx.Opcode) scalar {
	t := map[ptx.Type]ptx.Type{ptx.U16x2: ptx.U16, ptx.S16x2: ptx.S16}[code.Type(0)]
	if t == ptx.NoMod || code.Op != ptx.OpAdd && code.Op != ptx.OpMin && code.Op != ptx.OpMax {
		return nil
	}
	f := clampNegative(code, integerReduction(code.Op, t), 16)
	return func(a, b, _ uint64) uint64 {
		return f(a&0xffff, b&0xffff, 0) | f(a>>16&0xffff, b>>16&0xffff, 0)<<16
	}
}

// clampNegative is .relu of integers of n bits.
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
