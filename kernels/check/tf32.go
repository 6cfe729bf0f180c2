package check

import (
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

const (
	tf32Epsilon = 1.0 / (1 << 10) // the distance from 1 to the next number
	tf32Whole   = 1 << 11         // the magnitude up to which it holds every whole number
)

// allowsTF32 says whether a plan on a device is one whose results are allowed
// to be tf32's.
func allowsTF32(c *hlo.Computation, d kernels.Device, p kernels.Plan) bool {
	return d.TF32 &&
		p.Knob(kernels.TF32, 0) != 0 &&
		slices.ContainsFunc(c.Instrs, multipliesF32)
}

// multipliesF32 says whether i is a product of f32 operands.
func multipliesF32(i *hlo.Instr) bool {
	if i.Op != hlo.OpDot && i.Op != hlo.OpConvolution {
		return false
	}
	return i.Operands[0].Shape.DType == hlo.F32 &&
		i.Operands[1].Shape.DType == hlo.F32
}

// ToleranceFor is ToleranceOf for a plan on a device. Where the plan rounds to
// tf32 and the device allows it, that is the coarsest type values are rounded
// to: at most 2⁻¹¹ of each operand, 2⁻¹⁰ where tensor cores cut it (wgmma), twice
// of a product, for each of the operations on the longest path.
func ToleranceFor(c *hlo.Computation, d kernels.Device, p kernels.Plan) Tolerance {
	if !allowsTF32(c, d, p) {
		return ToleranceOf(c)
	}
	return toleranceOf(c, tf32Epsilon)
}

// For is the gate of a plan on a device: v, or where the plan rounds to tf32 and
// the device allows it, v with ToleranceFor. Results on integers must agree in
// every bit all the same, unless operands may be too large for tf32.
func (v *Verifier) For(d kernels.Device, p kernels.Plan) *Verifier {
	if !allowsTF32(v.c, d, p) {
		return v
	}
	t := ToleranceFor(v.c, d, p)
	looser := &Verifier{c: v.c}
	for _, x := range v.cases {
		if x.name != integerInputs || !exactUpTo(v.c, tf32Whole) {
			x.allowed = t.allowedIn(x)
		}
		looser.cases = append(looser.cases, x)
	}
	return looser
}

// allowedIn is the difference tolerated in each output of a case.
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
