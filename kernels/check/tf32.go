package check

import (
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile/hlo"
)

const (
	// The distance from 1 to the next number of tf32.
	tf32Epsilon = 1.0 / (1 << 10)
	// The magnitude up to which tf32 represents every whole number.
	tf32Whole = 1 << 11
)

// roundsToTF32 reports whether a plan of c rounds operands of products to tf32.
func roundsToTF32(c *hlo.Computation, p kernels.Plan) bool {
	return p.Knob(kernels.TF32, 0) != 0 &&
		slices.ContainsFunc(c.Instrs, multipliesF32)
}

// multipliesF32 reports whether i is a product of f32 operands.
func multipliesF32(i *hlo.Instr) bool {
	if i.Op != hlo.OpDot && i.Op != hlo.OpConvolution {
		return false
	}
	return i.Operands[0].Shape.DType == hlo.F32 &&
		i.Operands[1].Shape.DType == hlo.F32
}

// ToleranceFor is ToleranceOf for one plan. Where the plan rounds operands to tf32
// and the user allows it (Device.TF32Allowed), tf32 is the coarsest type that
// values are rounded to: the error is at most 2⁻¹¹ of each operand, 2⁻¹⁰ where
// tensor cores truncate it (tf32=2), and twice that of a product, for each of the
// operations on the longest path.
func ToleranceFor(c *hlo.Computation, p kernels.Plan, tf32Allowed bool) Tolerance {
	if !tf32Allowed || !roundsToTF32(c, p) {
		return ToleranceOf(c)
	}
	t := toleranceOf(c, tf32Epsilon)
	t.operand = tf32Epsilon
	return t
}

// For is the verifier of one plan: v or, where the plan rounds operands to tf32 and
// the user allows it (Device.TF32Allowed), a copy of v with ToleranceFor. Results
// on integers must agree in every bit in both cases, unless operands may be too
// large for tf32.
func (v *Verifier) For(p kernels.Plan, tf32Allowed bool) *Verifier {
	if !tf32Allowed || !roundsToTF32(v.c, p) {
		return v
	}
	t := ToleranceFor(v.c, p, true)
	looser := &Verifier{c: v.c}
	for _, x := range v.cases {
		if x.boundsOnly {
			looser.cases = append(looser.cases, x) // a product of f32 is not among them
			continue
		}
		if x.name != integerInputs || !exactUpTo(v.c, tf32Whole) {
			x.allowed = t.allowedIn(x)
		}
		if x.bounds != nil {
			x.bounds = &bounds{c: v.c, in: x.in, accuracy: reference.Accuracy{Operand: t.operand}}
		}
		if x.intervals != nil {
			x.intervals = x.intervals.with(reference.Accuracy{Operand: t.operand})
		}
		looser.cases = append(looser.cases, x)
	}
	return looser
}

// allowedIn is the tolerated difference in each output of a case.
func (t Tolerance) allowedIn(x verifyCase) []float64 {
	if x.samples != nil {
		return t.allowedAt(x.want, x.samples)
	}
	var allowed []float64
	for _, want := range x.want {
		allowed = append(allowed, t.allowed(want))
	}
	return allowed
}
