package amd64

import "math"

// A real is a chain whose floating-point operations are those of one type, f32 or f64, so
// that a function that has the same steps in both is written once. Instructions are named
// by their form for f32.
type real struct {
	*Chain
	double bool
}

// doubleOf is the instruction on f64 of one on f32. Bitwise ones are the same.
var doubleOf = map[Op]Op{
	VADDPS: VADDPD, VSUBPS: VSUBPD, VMULPS: VMULPD, VDIVPS: VDIVPD,
	VMINPS: VMINPD, VMAXPS: VMAXPD, VSQRTPS: VSQRTPD, VROUNDPS: VROUNDPD,
	VCMPPS: VCMPPD, VBLENDVPS: VBLENDVPD,
	VFMADD132PS: VFMADD132PD, VFMSUB132PS: VFMSUB132PD, VFNMADD132PS: VFNMADD132PD,
	VPADDD: VPADDQ, VPSUBD: VPSUBQ, VPSLLD: VPSLLQ, VPSRLD: VPSRLQ,
}

// of is an instruction on the type.
func (r real) of(op Op) Op {
	if double, ok := doubleOf[op]; ok && r.double {
		return double
	}
	return op
}

// do is Chain.Do of the instruction on the type.
func (r real) do(op Op, operands ...Operand) Value {
	return r.Do(r.of(op), operands...)
}

// number is a vector of a number.
func (r real) number(v float64) Value {
	if r.double {
		return r.Const64(math.Float64bits(v))
	}
	return r.Float32(v)
}

// pattern is a vector of the bits of one width or the other.
func (r real) pattern(single uint32, double uint64) Value {
	if r.double {
		return r.Const64(double)
	}
	return r.Const32(single)
}

// Bits of f64.
const (
	signBit64   = 1 << 63
	magnitude64 = 1<<63 - 1
	one64       = 1023 << 52
	mantissa64  = 52
	// x + roundMagic64 - roundMagic64 rounds x to a whole number.
	roundMagic64 = 3 << 51
)

// fused is a fused operation on a, b and d, see Chain.MulAdd32.
func (r real) fused(op Op, a, b, d Value) Value {
	operands := []Operand{a, b, d}
	return r.add(r.step(fusedStep, r.of(op), operands))
}

// mulAdd is a·b + d, rounded once.
func (r real) mulAdd(a, b, d Value) Value { return r.fused(VFMADD132PS, a, b, d) }

// mulSub is a·b − d, rounded once.
func (r real) mulSub(a, b, d Value) Value { return r.fused(VFMSUB132PS, a, b, d) }

// negMulAdd is d − a·b, rounded once.
func (r real) negMulAdd(a, b, d Value) Value { return r.fused(VFNMADD132PS, a, b, d) }

// polynomial is p[0] + x·(p[1] + x·(p[2] + …)).
func (r real) polynomial(x Value, p ...float64) Value {
	last := len(p) - 1
	sum := r.number(p[last])
	for k := last - 1; k >= 0; k-- {
		sum = r.mulAdd(sum, x, r.number(p[k]))
	}
	return sum
}

// halves is polynomial as two sums over x², of the even and the odd terms, which do not wait
// for each other.
func (r real) halves(x Value, p ...float64) Value {
	var even, odd []float64
	for k, v := range p {
		if k%2 == 0 {
			even = append(even, v)
		} else {
			odd = append(odd, v)
		}
	}
	square := r.do(VMULPS, x, x)
	sum := r.polynomial(square, even...)
	return r.mulAdd(r.polynomial(square, odd...), x, sum)
}

// magnitudeOf is |x|.
func (r real) magnitudeOf(x Value) Value {
	return r.Do(VANDPS, x, r.pattern(magnitude, magnitude64))
}

// signOf is the sign bit of x.
func (r real) signOf(x Value) Value {
	return r.Do(VANDPS, x, r.pattern(signBit, signBit64))
}

// withSign is x ≥ 0 with the sign of y.
func (r real) withSign(x, y Value) Value { return r.Do(VORPS, x, r.signOf(y)) }

// compare is the mask of a comparison.
func (r real) compare(x, y Value, how Imm) Value { return r.do(VCMPPS, x, y, how) }

// choose is yes in lanes whose sign bit of mask is set, else no.
func (r real) choose(mask, yes, no Value) Value { return r.do(VBLENDVPS, no, yes, mask) }

// infinity is +∞.
func (r real) infinity() Value { return r.number(math.Inf(1)) }

// notFinite is the mask of infinities and NaN among the magnitudes a.
func (r real) notFinite(a Value) Value { return r.compare(a, r.infinity(), compareNLTU) }

// known is the number that all lanes of a constant hold, if it is one and not NaN.
func (r real) known(v Value) (float64, bool) {
	if !r.double {
		bits, ok := r.Chain.number(v)
		return float64(math.Float32frombits(bits)), ok
	}
	if r.err != nil || v == 0 || r.steps[v-1].kind != constantStep {
		return 0, false
	}
	of := r.steps[v-1].constant
	x := math.Float64frombits(of.bits)
	return x, of.table == nil && of.width == 8 && x == x
}
