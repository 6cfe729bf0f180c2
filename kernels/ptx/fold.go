package ptx

import "math/bits"

// fold evaluates an operation at build time, or replaces it by a cheaper one;
// done is false if it can do neither.
func (c *Code) fold(o *Opcode, sources []Operand) (result Operand, done bool) {
	t := o.Type(-1)
	if !foldable(o, t) {
		return Operand{}, false
	}
	if len(sources) == 3 {
		return c.foldMad(
			o, t, sources[0],
			sources[1], sources[2],
		)
	}
	if len(sources) != 2 {
		return Operand{}, false
	}
	x := sources[0]
	y := sources[1]
	if x.Kind == KindInt && y.Kind == KindInt {
		v, known := constant(o, t, x.As(t), y.As(t))
		if known {
			return Operand{Kind: KindInt, Bits: extended(v, t)}, true
		}
		return Operand{}, false
	}
	if x.Kind == KindInt && commutes(o.Op) {
		return c.Let(o.String(), y, x), true
	}
	if y.Kind != KindInt || x.Kind != KindReg {
		return Operand{}, false
	}
	return c.foldRight(o, t, x, y)
}

// foldable reports whether an operation is plain integer arithmetic, without
// carry or saturation.
func foldable(o *Opcode, t Type) bool {
	if t.Bits() < 32 || t.Float() ||
		t == U16x2 || t == S16x2 || o.Has(ModCC) ||
		o.Has(ModSat) {
		return false
	}
	switch o.Op {
	case OpAdd, OpSub, OpDiv, OpRem, OpMin, OpMax,
		OpAnd, OpOr, OpXor, OpShl, OpShr:
		return true
	case OpMul, OpMad:
		return o.Has(ModLo)
	}
	return false
}

// commutes reports whether the operands of an operation may be swapped.
func commutes(o Op) bool {
	switch o {
	case OpAdd, OpMul, OpMin, OpMax, OpAnd, OpOr, OpXor:
		return true
	}
	return false
}

// extended is v, a number of type t, as the bits of an integer immediate.
func extended(v uint64, t Type) uint64 {
	switch {
	case t.Bits() == 64:
		return v
	case t.Unsigned():
		return uint64(uint32(v))
	}
	return uint64(int64(int32(v)))
}

// constant is the result of an operation on two numbers.
func constant(o *Opcode, t Type, x, y uint64) (v uint64, known bool) {
	sx := signed(x, t)
	sy := signed(y, t)
	switch o.Op {
	case OpAdd:
		return x + y, true
	case OpSub:
		return x - y, true
	case OpMul:
		return x * y, true
	case OpAnd:
		return x & y, true
	case OpOr:
		return x | y, true
	case OpXor:
		return x ^ y, true
	case OpShl:
		return x << min(uint32(y), 64), true
	case OpShr:
		if t.Signed() {
			return uint64(sx >> min(uint32(y), 63)), true
		}
		return x >> min(uint32(y), 64), true
	case OpMin, OpMax:
		less := x < y
		if t.Signed() {
			less = sx < sy
		}
		if less == (o.Op == OpMin) {
			return x, true
		}
		return y, true
	}
	return quotient(o.Op, t, x, y)
}

// signed is the bits v of type t as a number.
func signed(v uint64, t Type) int64 {
	if t.Bits() == 32 {
		return int64(int32(v))
	}
	return int64(v)
}

// quotient is div and rem of numbers; a division by zero is left to the machine.
func quotient(o Op, t Type, x, y uint64) (v uint64, known bool) {
	sx := signed(x, t)
	sy := signed(y, t)
	switch {
	case y == 0:
		return 0, false
	case t.Signed() && o == OpDiv:
		return uint64(sx / sy), true
	case t.Signed():
		return uint64(sx % sy), true
	case o == OpDiv:
		return x / y, true
	}
	return x % y, true
}

// foldRight simplifies x∘y with a number y, by identities such as x·1 = x.
func (c *Code) foldRight(
	o *Opcode, t Type, x, y Operand,
) (Operand, bool) {
	v := y.As(t)
	power := v != 0 && v&(v-1) == 0
	width := map[bool]string{false: "32", true: "64"}[t.Bits() == 64]
	log := Int(bits.TrailingZeros64(v))
	switch o.Op {
	case OpAdd:
		return c.foldSum(o, t, x, signed(v, t))
	case OpSub:
		add := *o
		add.Op = OpAdd
		return c.foldSum(&add, t, x, -signed(v, t))
	case OpOr, OpXor, OpShl, OpShr:
		return x, v == 0
	case OpAnd:
		return foldAnd(t, x, v)
	case OpMul:
		switch {
		case v == 0:
			return Int(0), true
		case v == 1:
			return x, true
		case power:
			return c.Let("shl.b"+width, x, log), true
		}
	case OpDiv:
		if power && (v == 1 || t.Unsigned()) {
			return c.Let("shr.u"+width, x, log), true
		}
	case OpRem:
		if power && t.Unsigned() {
			return c.Let("and.b"+width, x, Operand{
				Kind: KindInt,
				Bits: v - 1,
			}), true
		}
	}
	return Operand{}, false
}

// foldAnd simplifies x and v: zero, or x if v has all bits.
func foldAnd(t Type, x Operand, v uint64) (Operand, bool) {
	switch {
	case v == 0:
		return Int(0), true
	case signed(v, t) == -1:
		return x, true
	}
	return Operand{}, false
}

// foldSum is x + offset; the sum of a sum is one sum.
func (c *Code) foldSum(
	o *Opcode, t Type, x Operand, offset int64,
) (Operand, bool) {
	if s, known := c.sums[x.Reg]; known {
		x = s.base
		offset = int64(extended(uint64(s.offset+offset), signedOf(t)))
	}
	if offset == 0 {
		return x, true
	}
	i := c.b.opcode(o.String())
	r := c.once(
		i,
		&i.matches[0],
		[]Operand{x, Int(offset)},
	)
	if c.isValue(&x) {
		if c.sums == nil {
			c.sums = map[Reg]sum{}
		}
		c.sums[r.Reg] = sum{x, offset}
	}
	return r, true
}

// signedOf is the signed type of the width of t.
func signedOf(t Type) Type {
	if t.Bits() == 64 {
		return S64
	}
	return S32
}

// foldMad simplifies x·y + z if one of them is a suitable number.
func (c *Code) foldMad(
	o *Opcode, t Type, x, y, z Operand,
) (Operand, bool) {
	if x.Kind == KindInt && y.Kind == KindReg {
		return c.Let(o.String(), y, x, z), true
	}
	number := x.Kind == KindInt && y.Kind == KindInt
	zero := z.Kind == KindInt && z.As(t) == 0
	unit := y.Kind == KindInt && y.As(t) <= 1
	if o.Op != OpMad || !number && !zero && !unit {
		return Operand{}, false
	}
	product := c.Let("mul.lo."+t.String(), x, y)
	return c.Let("add."+t.String(), product, z), true
}

// width is "64" if one of the operands is a register of 64 bits, and "32"
// otherwise.
func (c *Code) width(operands []Operand) string {
	for _, o := range operands {
		if c.RegType(o).Bits() == 64 {
			return "64"
		}
	}
	return "32"
}

// arith emits an integer operation in the width of its operands.
func (c *Code) arith(opcode string, operands ...Operand) Operand {
	return c.Let(opcode+c.width(operands), operands...)
}

// Add is x + y. Operands are 32 or 64 bits wide, and so is the result; the same
// holds for the operations that follow.
func (c *Code) Add(x, y Operand) Operand {
	return c.arith("add.u", x, y)
}

// Sub is x − y.
func (c *Code) Sub(x, y Operand) Operand {
	return c.arith("sub.u", x, y)
}

// Mul is the low half of x·y.
func (c *Code) Mul(x, y Operand) Operand {
	return c.arith("mul.lo.u", x, y)
}

// Mad is the low half of x·y + z.
func (c *Code) Mad(x, y, z Operand) Operand {
	return c.arith("mad.lo.u", x, y, z)
}

// Min is the minimum of unsigned numbers.
func (c *Code) Min(x, y Operand) Operand {
	return c.arith("min.u", x, y)
}

// Max is the maximum of unsigned numbers.
func (c *Code) Max(x, y Operand) Operand {
	return c.arith("max.u", x, y)
}

// Div is the unsigned quotient of x and y.
func (c *Code) Div(x, y Operand) Operand {
	return c.arith("div.u", x, y)
}

// Rem is the unsigned remainder of x and y.
func (c *Code) Rem(x, y Operand) Operand {
	return c.arith("rem.u", x, y)
}

// And is the bitwise and.
func (c *Code) And(x, y Operand) Operand {
	return c.arith("and.b", x, y)
}

// Or is the bitwise or.
func (c *Code) Or(x, y Operand) Operand {
	return c.arith("or.b", x, y)
}

// Xor is the bitwise exclusive or.
func (c *Code) Xor(x, y Operand) Operand {
	return c.arith("xor.b", x, y)
}

// Shl shifts to the left by y bits; zeros are shifted in.
func (c *Code) Shl(x, y Operand) Operand {
	return c.Let("shl.b"+c.width([]Operand{x}), x, y)
}

// Shr shifts to the right by y bits; zeros are shifted in.
func (c *Code) Shr(x, y Operand) Operand {
	return c.Let("shr.u"+c.width([]Operand{x}), x, y)
}

// Wide is the unsigned 32-bit x as 64 bits.
func (c *Code) Wide(x Operand) Operand {
	if x.Kind == KindInt {
		return Operand{Kind: KindInt, Bits: x.As(U32)}
	}
	return c.Let("cvt.u64.u32", x)
}

// MulWide is the 64-bit product of unsigned 32-bit x and y.
func (c *Code) MulWide(x, y Operand) Operand {
	if x.Kind == KindInt && y.Kind == KindInt {
		return Operand{
			Kind: KindInt,
			Bits: x.As(U32) * y.As(U32),
		}
	}
	return c.Let("mul.wide.u32", x, y)
}

// Special is the value of a special register.
func (c *Code) Special(s Special) Operand {
	return c.Let("mov."+s.Type().String(), Sreg(s))
}
