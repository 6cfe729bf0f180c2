package functions

// Floats emits floating-point instructions of one width.
type Floats struct {
	code Code
	// K is the kind of register and s the type suffix of instructions.
	k Kind
	s string
	// Rough allows exponentials the error of results of 16 bits (see roughExp).
	rough bool
}

// New emits instructions on registers of a kind, KindF32 or KindF64.
func New(code Code, k Kind, rough bool) Floats {
	s := "f32"
	if k == KindF64 {
		s = "f64"
	}
	return Floats{code, k, s, rough}
}

// double is m for numbers of f64.
func (m Floats) double() Floats { return New(m.code, KindF64, m.rough) }

// C is a constant as an immediate.
func (m Floats) C(v float64) Operand {
	if m.k == KindF64 {
		return F64(v)
	}
	return F32(v)
}

// Reg is a constant in a register.
func (m Floats) Reg(v float64) Operand {
	return m.code.In(
		m.k,
		m.C(v),
	)
}

// Op emits an instruction of the width.
func (m Floats) Op(name string, x ...any) Operand {
	return m.code.Get(
		m.k, name+"."+m.s, x...,
	)
}

// Add rounds to nearest even, as the operations below do.
func (m Floats) Add(x, y Operand) Operand {
	return m.Op("add.rn", x, y)
}

// Sub is x − y.
func (m Floats) Sub(x, y Operand) Operand {
	return m.Op("sub.rn", x, y)
}

// Mul is x·y.
func (m Floats) Mul(x, y Operand) Operand {
	return m.Op("mul.rn", x, y)
}

// div is x/y.
func (m Floats) div(x, y Operand) Operand {
	return m.Op("div.rn", x, y)
}

// FMA is x·y + z, rounded once.
func (m Floats) FMA(x, y, z Operand) Operand {
	return m.Op("fma.rn", x, y, z)
}

// Neg is −x.
func (m Floats) Neg(x Operand) Operand { return m.Op("neg", x) }

// Abs is |x|.
func (m Floats) Abs(x Operand) Operand { return m.Op("abs", x) }

// sqrt is √x.
func (m Floats) sqrt(x Operand) Operand { return m.Op("sqrt.rn", x) }

// Pick is x where p holds and y elsewhere.
func (m Floats) Pick(p, x, y Operand) Operand {
	return m.Op("selp", x, y, p)
}

// Is compares two numbers; the result is a predicate.
func (m Floats) Is(test string, x, y Operand) Operand {
	return m.code.Get(
		KindPred, "setp."+test+"."+m.s, x, y,
	)
}

// round rounds to the nearest integer, halves to even.
func (m Floats) round(x Operand) Operand {
	return m.Op("cvt.rni."+m.s, x)
}

// sign is x ≥ 0 with the sign of y, −0 included.
func (m Floats) sign(x, y Operand) Operand { return m.Op("copysign", y, x) }

// Times is the product of two numbers, of which the second may be the constant 1.
func (m Floats) Times(x, y Operand) Operand {
	if y == m.C(1) {
		return x
	}
	return m.Mul(x, y)
}

// poly evaluates a polynomial in x by Horner's rule; the coefficients are highest
// first.
func (m Floats) poly(x Operand, coefficients ...float64) Operand {
	p := m.Reg(coefficients[0])
	for _, c := range coefficients[1:] {
		p = m.FMA(p, x, m.C(c))
	}
	return p
}

// powerOfTwo is 2^(i+shift) for an integer register i as two factors, so that neither
// overflows or is denormal.
func (m Floats) powerOfTwo(i Operand, shift int) (Operand, Operand) {
	a := m.code
	half := a.Get(KindB32, "shr.s32", i, 1)
	return m.exponent(half, 0),
		m.exponent(
			a.Get(KindB32, "sub.s32", i, half),
			shift,
		)
}

// exponent is 2^(i+shift) as a float, for an integer register i.
func (m Floats) exponent(i Operand, shift int) Operand {
	a := m.code
	if m.k == KindF32 {
		return a.Get(
			KindF32,
			"mov.b32",
			a.Get(KindB32, "shl.b32", a.Get(KindB32, "add.s32", i, 127+shift), 23),
		)
	}
	high := a.Get(
		KindB32, "shl.b32",
		a.Get(KindB32, "add.s32", i, 1023+shift), 20,
	)
	return a.Get(KindF64, "mov.b64", []Operand{
		a.In(KindB32, "0"), high,
	})
}

// bounded clamps x to [lo, hi] and keeps NaN.
func (m Floats) bounded(x Operand, lo, hi float64) Operand {
	return m.atLeast(m.atMost(x, hi), lo)
}

// atMost is x or, where x is larger, hi.
func (m Floats) atMost(x Operand, hi float64) Operand {
	return m.Pick(
		m.Is("gt", x, m.C(hi)),
		m.Reg(hi),
		x,
	)
}

// atLeast is x or, where x is smaller, lo.
func (m Floats) atLeast(x Operand, lo float64) Operand {
	return m.Pick(
		m.Is("lt", x, m.C(lo)),
		m.Reg(lo),
		x,
	)
}

// Sign is −1, ±0, 1 or NaN.
func (m Floats) Sign(x Operand) Operand {
	return m.Pick(
		m.Is("gt", x, m.C(0)),
		m.Reg(1),
		m.Pick(m.Is(
			"lt", x, m.C(0),
		), m.Reg(-1), x),
	)
}

// RoundAway rounds halves away from zero: it truncates, and adds one where half or
// more was lost, which is exact.
func (m Floats) RoundAway(x Operand) Operand {
	y := m.Abs(x)
	t := m.Op("cvt.rzi."+m.s, y)
	// The difference y − t is exact.
	t = m.Pick(
		m.Is("ge", m.Sub(y, t), m.C(0.5)),
		m.Add(t, m.C(1)),
		t,
	)
	return m.sign(t, x)
}
