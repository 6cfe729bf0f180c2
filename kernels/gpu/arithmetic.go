package gpu

import (
	"math"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// This file computes elementwise operations on predicates and integers, and
// conversions. Semantics are those of package reference: integers wrap, divisions by
// zero have defined results, and conversions of floats to integers saturate.

// suffix is the type suffix of instructions on registers with values of d.
func suffix(d hlo.DType) string {
	switch kindFor(d) {
	case kindF32:
		return "f32"
	case kindF64:
		return "f64"
	case kindPred:
		return "pred"
	case kindB64:
		if d == hlo.U64 {
			return "u64"
		}
		return "s64"
	}
	if d == hlo.U32 {
		return "u32"
	}
	return "s32"
}

// bitSuffix is the suffix of instructions that do not interpret the bits.
func bitSuffix(d hlo.DType) string {
	switch kindFor(d) {
	case kindPred:
		return "pred"
	case kindB64, kindF64:
		return "b64"
	}
	return "b32"
}

// pointwise computes an element of an elementwise operation from the elements x of its
// arguments.
func (e *emitter) pointwise(op symtile.Op, x []operand) operand {
	d := op.Instr.Shape.DType
	return e.scalar(
		op.Code, op.Instr, d,
		op.Instr.Operands[0].Shape.DType, x,
	)
}

// divisorShared reports whether f32 arithmetic divides several elements of op n by the
// same number, such as the sum of a row.
func (e *emitter) divisorShared(n int, divisors []operand) bool {
	return kindFor(e.typeOf(n, 0)) == kindF32 &&
		e.typeOf(n, 0).IsFloat() && len(divisors) > 1 &&
		divisors[0].Register() && divisors[0] == divisors[1]
}

// divideShared is a quotient by such a number.
func (e *emitter) divideShared(op symtile.Op, x []operand) operand {
	q := e.floats(kindF32).Shared(x[0], x[1])
	return e.fit(op.Instr.Shape.DType, q)
}

// roughly sets rough, and returns what restores it.
func (e *emitter) roughly(rough bool) func() {
	before := e.rough
	e.rough = rough && e.knobs.precise == 0
	return func() { e.rough = before }
}

// keepsErrors are the operations whose results are off by the same share as their
// operands, or by the sum of these shares; sums do so of what is not negative.
var keepsErrors = map[hlo.Opcode]bool{
	hlo.OpBroadcast:   true,
	hlo.OpReshape:     true,
	hlo.OpTranspose:   true,
	hlo.OpCopy:        true,
	hlo.OpSlice:       true,
	hlo.OpReverse:     true,
	hlo.OpConcatenate: true,
	hlo.OpMultiply:    true,
	hlo.OpDivide:      true,
	hlo.OpNegate:      true,
	hlo.OpAbs:         true,
}

// narrowedOps finds the ops all of whose uses end in floats of at most 16 bits, by
// operations that keep the share by which a number is off. So 2^-17 of an exponential of
// f32 is at most 2^-17 of each result, which is rounded to 2^-9 or 2^-12 of itself.
func narrowedOps(p *symtile.Program, k knobs) []bool {
	all := make([]bool, len(p.Ops))
	if k.precise > 0 {
		return all
	}
	for n := range all {
		all[n] = true
	}
	for _, r := range p.Roots {
		all[r.Op] = narrowFloat(p.Ops[r.Op].Instr.Shape.DType)
	}
	// Users come after what they use.
	for n := len(p.Ops) - 1; n >= 0; n-- {
		op := p.Ops[n]
		for _, a := range op.Args {
			if all[a] && !passesOn(p, op, a) {
				all[a] = false
			}
			all[a] = all[a] && (all[n] || narrowFloat(op.Instr.Shape.DType))
		}
	}
	return all
}

// narrowFloat reports whether a type is a float of at most 16 bits.
func narrowFloat(d hlo.DType) bool { return d.IsFloat() && d.Size() <= 2 }

// passesOn reports whether an op keeps the error of its argument a in proportion.
func passesOn(p *symtile.Program, op symtile.Op, a int) bool {
	switch {
	case op.Code == hlo.OpConvert:
		return op.Instr.Shape.DType.IsFloat()
	case op.Code == hlo.OpReduce:
		code, ok := op.Instr.Attrs.ToApply.Monoid()
		return ok && code == hlo.OpAdd &&
			len(op.Args) == 2 && notNegative(p, a)
	}
	return keepsErrors[op.Code]
}

// notNegative reports whether all elements of op n are at least 0.
func notNegative(p *symtile.Program, n int) bool {
	op := p.Ops[n]
	switch op.Code {
	case hlo.OpExponential, hlo.OpLogistic, hlo.OpAbs:
		return true
	case hlo.OpConvert, hlo.OpBroadcast, hlo.OpReshape, hlo.OpTranspose, hlo.OpCopy, hlo.OpSlice:
		return notNegative(p, op.Args[0])
	}
	return false
}

// scalar computes code on elements x of type from; the result has type d and is
// rounded or wrapped to it.
func (e *emitter) scalar(
	code hlo.Opcode, in *hlo.Instr,
	d, from hlo.DType, x []operand,
) operand {
	if d.IsComplex() || from.IsComplex() {
		e.refuse(in, "%s of %s is not computed on a GPU", code, from)
	}
	switch code {
	case hlo.OpCopy, hlo.OpReal, hlo.OpOptimizationBarrier:
		return x[0]
	case hlo.OpSelect:
		return e.choose(d, x[0], x[1], x[2])
	case hlo.OpClamp:
		return e.minimum(
			d,
			e.maximum(d, x[1], x[0]),
			x[2],
		)
	case hlo.OpCompare:
		return e.compare(in, from, x[0], x[1])
	case hlo.OpConvert:
		return e.convert(d, from, x[0])
	case hlo.OpBitcastConvert:
		return e.recast(d, from, x[0])
	case hlo.OpIsFinite:
		return e.finite(from, x[0])
	case hlo.OpReducePrecision:
		return e.reducePrecision(in, from, x[0])
	}
	// The operation is chosen by the type of the operands: a predicate, a float or an
	// integer.
	var r operand
	switch {
	case from == hlo.Pred:
		r = e.logic(code, x)
	case from.IsFloat():
		r = e.float(code, from, x)
	default:
		r = e.whole(code, from, x)
	}
	if r == "" {
		e.refuse(in, "%s of %s is not computed on a GPU", code, from)
	}
	if code.Has(hlo.Exact) {
		return r
	}
	return e.fit(d, r)
}

// choose is x where p holds and y elsewhere.
func (e *emitter) choose(d hlo.DType, p, x, y operand) operand {
	a := e.asm
	switch {
	case p == yes || x == y:
		return x
	case p == no:
		return y
	case d == hlo.Pred:
		return a.or(
			a.and(p, x),
			a.and(a.not(p), y),
		)
	}
	// Immediate operands are possible, so values need not be in registers.
	k := kindFor(d)
	typ := map[kind]string{kindB32: "b32", kindB64: "b64", kindF32: "f32", kindF64: "f64"}[k]
	return a.get(k, "selp."+typ, x, y, p)
}

// comparisons are the PTX conditions, the second for unsigned integers.
var comparisons = map[string][2]string{
	"EQ": {"eq", "eq"},
	"NE": {"ne", "ne"},
	"LT": {"lt", "lt"},
	"LE": {"le", "le"},
	"GT": {"gt", "gt"},
	"GE": {"ge", "ge"},
}

// compare is a comparison; floats are ordered totally where the instruction says so.
func (e *emitter) compare(
	in *hlo.Instr, from hlo.DType, x, y operand,
) operand {
	a := e.asm
	direction := comparisons[in.Attrs.Direction][0]
	k := kindFor(from)
	switch {
	case k == kindPred:
		x = e.bitsOf(hlo.Pred, x)
		y = e.bitsOf(hlo.Pred, y)
		return a.get(
			kindPred, "setp."+direction+".s32", x, y,
		)
	case from.IsFloat() && in.Attrs.CompareType == "TOTALORDER":
		return a.get(
			kindPred,
			"setp."+direction+map[kind]string{kindF32: ".s32", kindF64: ".s64"}[k],
			e.ordered(k, x),
			e.ordered(k, y),
		)
	// The comparison "ne" is true for NaN, which PTX calls neu.
	case from.IsFloat() && direction == "ne":
		direction = "neu"
	}
	return a.get(
		kindPred, "setp."+direction+"."+suffix(from),
		a.in(k, x), y,
	)
}

// ordered is an integer with the total order of floats: −NaN < −∞ … −0 < 0 … NaN. Bits
// after the sign of negative numbers are inverted.
func (e *emitter) ordered(k kind, x operand) operand {
	a := e.asm
	if k == kindF32 {
		b := a.get(
			kindB32, "mov.b32", a.in(k, x),
		)
		return a.get(
			kindB32, "xor.b32", b,
			a.get(kindB32, "shr.u32", a.get(kindB32, "shr.s32", b, 31), 1),
		)
	}
	b := a.get(
		kindB64, "mov.b64", a.in(k, x),
	)
	return a.get(
		kindB64, "xor.b64", b,
		a.get(kindB64, "shr.u64", a.get(kindB64, "shr.s64", b, 63), 1),
	)
}

// finite is whether |x| < ∞, which is false for NaN.
func (e *emitter) finite(d hlo.DType, x operand) operand {
	a, k := e.asm, kindFor(d)
	if k == kindF64 {
		return a.get(
			kindPred, "setp.lt.f64",
			a.get(k, "abs.f64", x),
			f64(math.Inf(1)),
		)
	}
	return a.get(
		kindPred, "setp.lt.f32",
		a.get(k, "abs.f32", x),
		f32(math.Inf(1)),
	)
}

// reducePrecision rounds x by its bits; see kernels.ReducePrecision. Numbers of bf16 are
// some of f32. The denormal numbers of f16 are not, and f64 takes other masks: they are
// refused unless nothing is rounded.
func (e *emitter) reducePrecision(
	in *hlo.Instr, d hlo.DType, x operand,
) operand {
	exponent, mantissa := in.Precision()
	if exponent >= d.ExponentBits() &&
		mantissa >= d.FractionBits() {
		return x
	}
	if d != hlo.F32 && d != hlo.BF16 {
		e.refuse(in, "reduce-precision of %s is not computed on a GPU", d)
	}
	a := e.asm
	x = a.in(kindF32, x)
	bits := a.get(kindB32, "mov.b32", x)
	low := hlo.F32.FractionBits() - mantissa
	if low > 0 {
		odd := a.get(kindB32, "bfe.u32", bits, low, 1)
		half := int64(1)<<(low-1) - 1
		bits = a.get(kindB32, "add.u32", bits, odd)
		bits = a.get(kindB32, "add.u32", bits, half)
		bits = a.get(
			kindB32, "and.b32", bits,
			-(int64(1) << low),
		)
	}
	r := a.get(kindF32, "mov.b32", bits)
	if exponent < hlo.F32.ExponentBits() {
		r = e.inRange(exponent, bits, r)
	}
	nan := a.get(kindPred, "setp.nan.f32", x, x)
	return e.choose(hlo.F32, nan, x, r)
}

// inRange is r, whose code is bits, as a number with a narrower exponent: infinite or
// zero outside of its range.
func (e *emitter) inRange(
	exponent int, bits, r operand,
) operand {
	a := e.asm
	bias := 1<<(exponent-1) - 1
	magnitude := a.get(kindF32, "abs.f32", r)
	sign := a.get(
		kindB32, "and.b32", bits, int64(-1)<<31,
	)
	infinite := a.get(
		kindB32, "or.b32", sign, int64(0x7f800000),
	)
	large := a.get(
		kindPred, "setp.ge.f32", magnitude,
		f32(math.Ldexp(1, bias+1)),
	)
	small := a.get(
		kindPred, "setp.lt.f32", magnitude,
		f32(math.Ldexp(1, 1-bias)),
	)
	r = e.choose(
		hlo.F32, large,
		a.get(kindF32, "mov.b32", infinite), r,
	)
	return e.choose(
		hlo.F32, small,
		a.get(kindF32, "mov.b32", sign), r,
	)
}

// maximum propagates NaN.
func (e *emitter) maximum(d hlo.DType, x, y operand) operand {
	return e.minMax("max", d, x, y)
}

// minimum propagates NaN.
func (e *emitter) minimum(d hlo.DType, x, y operand) operand {
	return e.minMax("min", d, x, y)
}

// minMax is max or min. PTX has no variant for f64 that propagates NaN, so NaN
// operands are selected.
func (e *emitter) minMax(which string, d hlo.DType, x, y operand) operand {
	a, k := e.asm, kindFor(d)
	switch k {
	case kindPred:
		if which == "max" {
			return a.or(x, y)
		}
		return a.and(x, y)
	case kindF32:
		return a.get(k, which+".NaN.f32", x, y)
	case kindF64:
		x = a.in(k, x)
		m := a.get(k, which+".f64", x, y)
		m = a.get(
			k, "selp.f64", y, m,
			a.get(
				kindPred, "setp.nan.f64",
				a.in(k, y),
				a.in(k, y),
			),
		)
		return a.get(
			k, "selp.f64", x, m,
			a.get(kindPred, "setp.nan.f64", x, x),
		)
	}
	return a.get(
		k, which+"."+suffix(d), x, y,
	)
}

// logic computes on predicates; "" where there is no such operation.
func (e *emitter) logic(code hlo.Opcode, x []operand) operand {
	a := e.asm
	switch code {
	case hlo.OpAnd, hlo.OpMultiply, hlo.OpMinimum:
		return a.and(x[0], x[1])
	case hlo.OpOr, hlo.OpAdd, hlo.OpMaximum:
		return a.or(x[0], x[1])
	case hlo.OpXor, hlo.OpSubtract:
		return a.get(
			kindPred, "xor.pred", a.in(kindPred, x[0]),
			a.in(kindPred, x[1]),
		)
	case hlo.OpNot:
		return a.not(x[0])
	}
	return ""
}

var wholeBinary = map[hlo.Opcode]string{
	hlo.OpAdd:      "add.",
	hlo.OpSubtract: "sub.",
	hlo.OpMultiply: "mul.lo.",
}
var bitwise = map[hlo.Opcode]string{
	hlo.OpAnd: "and.",
	hlo.OpOr:  "or.",
	hlo.OpXor: "xor.",
}

// whole computes on integers; the result may need to be wrapped to its type. "" where
// there is no such operation.
func (e *emitter) whole(code hlo.Opcode, d hlo.DType, x []operand) operand {
	a, k, s := e.asm, kindFor(d), suffix(d)
	if name, ok := wholeBinary[code]; ok {
		return a.get(
			k, name+s,
			a.in(k, x[0]),
			x[1],
		)
	}
	if name, ok := bitwise[code]; ok {
		return a.get(
			k, name+bitSuffix(d),
			a.in(k, x[0]),
			x[1],
		)
	}
	switch code {
	case hlo.OpMaximum:
		return e.maximum(
			d,
			a.in(k, x[0]),
			x[1],
		)
	case hlo.OpMinimum:
		return e.minimum(
			d,
			a.in(k, x[0]),
			x[1],
		)
	case hlo.OpNegate:
		return a.get(
			k,
			"neg."+signed(s),
			a.in(k, x[0]),
		)
	case hlo.OpAbs:
		return a.get(
			k,
			"abs."+signed(s),
			a.in(k, x[0]),
		)
	case hlo.OpNot:
		return a.get(
			k,
			"not."+bitSuffix(d),
			a.in(k, x[0]),
		)
	case hlo.OpSign:
		return e.signOf(d, a.in(k, x[0]))
	case hlo.OpPopcnt, hlo.OpCountLeadingZeros:
		return e.countBits(
			code, d, a.in(k, x[0]),
		)
	case hlo.OpDivide, hlo.OpRemainder:
		return e.divide(
			code, d, a.in(k, x[0]),
			a.in(k, x[1]),
		)
	case hlo.OpShiftLeft, hlo.OpShiftRightLogical, hlo.OpShiftRightArithmetic:
		return e.shift(
			code, d, a.in(k, x[0]),
			a.in(k, x[1]),
		)
	}
	return ""
}

// signed is a type suffix with s instead of u.
func signed(s string) string { return "s" + s[1:] }

// signOf is −1, 0 or 1.
func (e *emitter) signOf(d hlo.DType, x operand) operand {
	a, k, s := e.asm, kindFor(d), suffix(d)
	above := a.get(
		k, "selp."+bitSuffix(d), 1, 0,
		a.get(kindPred, "setp.gt."+s, x, 0),
	)
	if !d.IsSigned() {
		return above
	}
	return a.get(
		k, "selp."+bitSuffix(d), -1, above,
		a.get(kindPred, "setp.lt."+s, x, 0),
	)
}

// countBits counts the one bits or the leading zeros of an integer, which is extended
// to 32 bits.
func (e *emitter) countBits(code hlo.Opcode, d hlo.DType, x operand) operand {
	a, k := e.asm, kindFor(d)
	if d.IsSigned() && d.Bits() < 32 {
		x = a.get(
			k, "and.b32", x,
			int64(1)<<d.Bits()-1,
		)
	}
	name := map[hlo.Opcode]string{hlo.OpPopcnt: "popc.", hlo.OpCountLeadingZeros: "clz."}[code]
	n := a.get(
		kindB32, name+bitSuffix(d), x,
	)
	if code == hlo.OpCountLeadingZeros && d.Bits() < 32 {
		n = a.get(
			kindB32, "sub.s32", n, 32-d.Bits(),
		)
	}
	if k == kindB64 {
		return a.get(k, "cvt.u64.u32", n)
	}
	return n
}

// divide is the quotient or remainder of a division that truncates. x/0 is −1, x mod 0
// is x, and MIN/−1 wraps; the divisors 0 and −1 are replaced by 1 before, because the
// hardware's results for them are unspecified.
func (e *emitter) divide(code hlo.Opcode, d hlo.DType, x, y operand) operand {
	a, k, s, b := e.asm,
		kindFor(d), suffix(d), bitSuffix(d)
	none := a.get(kindPred, "setp.eq."+s, y, 0)
	// The divisor is replaced where the result is defined separately.
	safe := a.get(k, "selp."+b, 1, y, none)
	minus := no
	if d.IsSigned() {
		minus = a.get(
			kindPred, "setp.eq."+s, y, -1,
		)
		safe = a.get(
			k, "selp."+b, 1, safe, minus,
		)
	}
	if code == hlo.OpRemainder {
		r := a.get(k, "rem."+s, x, safe)
		return a.get(k, "selp."+b, x, r, none)
	}
	q := a.get(k, "div."+s, x, safe)
	if minus != no {
		q = a.get(
			k, "selp."+b,
			a.get(k, "neg."+s, x),
			q, minus,
		)
	}
	return a.get(k, "selp."+b, -1, q, none)
}

// shift is a shift by y bits. A shift by the width or more leaves 0, or the sign.
func (e *emitter) shift(code hlo.Opcode, d hlo.DType, x, y operand) operand {
	a, k, b := e.asm, kindFor(d), bitSuffix(d)
	if code != hlo.OpShiftLeft && d.IsSigned() &&
		code == hlo.OpShiftRightLogical && d.Bits() < 32 {
		// A sign-extended operand is shifted logically by its own width.
		x = a.get(
			k, "and.b32", x,
			int64(1)<<d.Bits()-1,
		)
	}
	// PTX limits the shift to the register's width, which may be wider than the
	// type's.
	over := a.get(
		kindPred, "setp.ge.u"+b[1:], y,
		d.Bits(),
	)
	by := y
	if k == kindB64 {
		by = a.get(
			kindB32, "cvt.u32.u64",
			a.get(k, "min.u64", y, 63),
		)
	}
	switch code {
	case hlo.OpShiftLeft:
		return a.get(
			k, "selp."+b, 0,
			a.get(k, "shl."+b, x, by),
			over,
		)
	case hlo.OpShiftRightLogical:
		return a.get(
			k, "selp."+b, 0,
			a.get(k, "shr.u"+b[1:], x, by),
			over,
		)
	}
	if !d.IsSigned() && d.Bits() < 32 { // the first bit is the sign here
		x = a.get(
			kindB32, "bfe.s32", x, 0, d.Bits(),
		)
	}
	sign := a.get(
		k, "shr.s"+b[1:], x,
		map[kind]int{kindB32: 31, kindB64: 63}[k],
	)
	return a.get(
		k, "selp."+b, sign,
		a.get(k, "shr.s"+b[1:], x, by),
		over,
	)
}

// convert converts x from type from to type d. Floats to integers truncate and
// saturate, NaN is 0, and integers wrap.
func (e *emitter) convert(d, from hlo.DType, x operand) operand {
	a, k, f := e.asm, kindFor(d), kindFor(from)
	switch {
	case d == from:
		return x
	case d == hlo.Pred && f != kindPred:
		test := "setp.ne." + suffix(from)
		if from.IsFloat() {
			test = "setp.neu." + suffix(from)
		}
		return a.get(
			kindPred, test, a.in(f, x), zero(f),
		)
	case f == kindPred:
		return e.choose(
			d, x, immediate(d, 1, 1),
			immediate(d, 0, 0),
		)
	}
	x = a.in(f, x)
	switch {
	case from.Bits() <= 8 && (d == hlo.F16 || d == hlo.BF16):
		// Types of 16 bits have all values of 8 bits: there is nothing to round.
		if from.IsFloat() {
			return x
		}
		return a.get(k, "cvt.rn."+suffix(hlo.F32)+"."+suffix(from), x)
	case from.IsFloat() && d.IsFloat():
		// Two roundings, to f32 and then to 16 bits, could differ from one.
		if f == kindF64 && roundedTwice(d) {
			return e.fit(d, e.roundOdd(x))
		}
		return e.fit(d, e.widen(k, f, x))
	case d.IsFloat():
		// rounded once
		if roundedTwice(d) && from.Bits() > 16 {
			return e.fit(
				d,
				e.roundOdd(a.get(kindF64, "cvt.rn.f64."+suffix(from), x)),
			)
		}
		return e.fit(
			d,
			a.get(k, "cvt.rn."+suffix(d)+"."+suffix(from), x),
		)
	case from.IsFloat():
		return e.truncate(d, from, x)
	case k == f:
		return e.fit(d, x)
	case k == kindB64:
		return a.get(k, "cvt.s64."+suffix(from), x)
	}
	return e.fit(
		d, a.get(k, "cvt.u32.u64", x),
	)
}

// roundedTwice reports whether numbers are rounded to f32 and then to d, which for
// f8e8m0fnu is its definition.
func roundedTwice(d hlo.DType) bool {
	return d != hlo.F32 && d != hlo.F8E8M0FNU && kindFor(d) == kindF32
}

// roundOdd rounds an f64 to f32 to odd: it truncates and sets the last bit if
// something was lost. Rounding the result to a type of less than 23 bits then gives
// the same as rounding once (Boldo and Melquiond, Emulation of FMA and correctly
// rounded sums, 2008).
func (e *emitter) roundOdd(x operand) operand {
	a := e.asm
	cut := a.get(kindF32, "cvt.rz.f32.f64", x)
	lost := a.get(
		kindPred, "setp.ne.f64",
		a.get(kindF64, "cvt.f64.f32", cut), x,
	)
	bits := a.get(kindB32, "mov.b32", cut)
	return a.get(
		kindF32,
		"mov.b32",
		a.get(
			kindB32, "selp.b32",
			a.get(kindB32, "or.b32", bits, 1),
			bits, lost,
		),
	)
}

// widen converts between the registers of f32 and f64.
func (e *emitter) widen(to, from kind, x operand) operand {
	switch {
	case to == kindF64 && from == kindF32:
		return e.asm.get(kindF64, "cvt.f64.f32", x)
	case to == kindF32 && from == kindF64:
		return e.asm.get(kindF32, "cvt.rn.f32.f64", x)
	}
	return x
}

// truncate converts a float to an integer: towards zero, saturating at the range of d.
// PTX saturates at the range of the instruction's type, and makes NaN 0 in 32 bits
// only.
func (e *emitter) truncate(d, from hlo.DType, x operand) operand {
	a, k, s := e.asm, kindFor(d), suffix(from)
	// Narrow unsigned types are converted through s32, so that negative numbers
	// saturate at 0.
	typ := suffix(d)
	if d.IsUnsigned() && d.Bits() < 32 {
		typ = "s32"
	}
	v := a.get(k, "cvt.rzi."+typ+"."+s, x)
	v = a.get(
		k, "selp."+bitSuffix(d), 0, v,
		a.get(kindPred, "setp.nan."+s, x, x),
	)
	if d.Bits() >= 32 {
		return v
	}
	lo := int64(0)
	hi := int64(1)<<d.Bits() - 1
	if d.IsSigned() {
		lo = -(int64(1) << (d.Bits() - 1))
		hi = int64(1)<<(d.Bits()-1) - 1
	}
	return a.get(
		k, "max.s32",
		a.get(k, "min.s32", v, hi),
		lo,
	)
}

// recast reinterprets the bits of x as another type of the same width.
func (e *emitter) recast(d, from hlo.DType, x operand) operand {
	a := e.asm
	if d.Bits() != from.Bits() ||
		d == hlo.Pred || from == hlo.Pred {
		e.reject("bitcast-convert from %s to %s changes the width", from, d)
	}
	k := kindFor(d)
	f := kindFor(from)
	x = a.in(f, x)
	switch {
	case d.Bits() == 64 && k != f:
		return a.get(k, "mov.b64", x)
	case d.Bits() == 64 || d == from:
		return x
	case d.Bits() == 32 && k != f:
		return a.get(k, "mov.b32", x)
	case d.Bits() == 32:
		return x
	}
	// Types of 8 and 16 bits are packed and unpacked in one word.
	bits := e.bitsOf(from, x)
	v := e.unpack(d, []operand{bits}, 0)
	if d.IsInteger() && d.Bits() < 8 {
		return e.fit(d, v) // the sign of the type, not of its byte
	}
	return v
}

// monoidIdentity is the identity of an operation on type d, for instance −0 of
// addition.
func monoidIdentity(code hlo.Opcode, d hlo.DType) (operand, bool) {
	bits := d.Bits()
	if d.IsFloat() && bits <= 8 {
		return identityOfSmall(code, d)
	}
	switch code {
	case hlo.OpAdd, hlo.OpOr, hlo.OpXor:
		return immediate(
			d, 0, math.Copysign(0, -1),
		), true
	case hlo.OpMultiply:
		return immediate(d, 1, 1), true
	case hlo.OpAnd:
		return immediate(d, -1, 0), true
	case hlo.OpMaximum:
		return immediate(
			d, minInt(d), math.Inf(-1),
		), true
	case hlo.OpMinimum:
		switch {
		case d.IsSigned():
			return immediate(
				d, int64(1)<<(bits-1)-1, 0,
			), true
		case bits == 64 && !d.IsFloat():
			return "-1", true
		}
		return immediate(
			d,
			int64(1)<<(bits%64)-1,
			math.Inf(1),
		), true
	}
	return "", false
}

// identityOfSmall is the identity of an operation on a float of 8 or fewer bits, which may have
// neither infinities nor zeros.
func identityOfSmall(code hlo.Opcode, d hlo.DType) (operand, bool) {
	largest := d.FloatFromBits(uint64(largestCode(d)))
	lowest := -largest
	if infinity := d.RoundFloat(math.Inf(1)); math.IsInf(infinity, 1) {
		largest, lowest = infinity, -infinity
	}
	if d == hlo.F8E8M0FNU {
		lowest = d.FloatFromBits(0)
	}
	switch code {
	case hlo.OpAdd:
		zero := d.RoundFloat(math.Copysign(0, -1))
		return f32(zero), zero == 0
	case hlo.OpMultiply:
		return f32(1), true
	case hlo.OpMaximum:
		return f32(lowest), true
	case hlo.OpMinimum:
		return f32(largest), true
	}
	return "", false
}

// minInt is the smallest value of an integer type.
func minInt(d hlo.DType) int64 {
	if d.IsSigned() {
		return -1 << (d.Bits() - 1)
	}
	return 0
}
