package gpu

import (
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A sum of weights is between 1 and their number where each row's weights are those of its own
// maximum; sums of anything else may have reciprocals that are no normal numbers.
func TestSumsOfWeights(t *testing.T) {
	const softmax = `x = f32[64,64] parameter(0)
z = f32[64,64] parameter(1)
low = f32[] constant(-inf)
zero = f32[] constant(0)
m = f32[64] reduce(x, low), dimensions={1}, to_apply=maximum
ms = f32[64,64] broadcast(m), dimensions={0}
less = f32[64,64] subtract(x, ms)
e = f32[64,64] exponential(less)
sum = f32[64] reduce(e, zero), dimensions={1}, to_apply=add
sums = f32[64,64] broadcast(sum), dimensions={0}
ROOT y = f32[64,64] divide(e, sums)
`
	for _, c := range []struct {
		what, from, to string
		want           bool
	}{
		{"softmax", "", "", true},
		{"the sums divide another array", "divide(e, sums)", "divide(z, sums)", true},
		{"the maximum is at least 0", "constant(-inf)", "constant(0)", false},
		{"the sum begins below 0", "constant(0)", "constant(-1)", false},
		{"the maxima of columns", "reduce(x, low), dimensions={1}", "reduce(x, low), dimensions={0}", false},
		{"another row's maximum", "broadcast(m), dimensions={0}", "broadcast(m), dimensions={1}", false},
		{"the sums of columns", "reduce(e, zero), dimensions={1}", "reduce(e, zero), dimensions={0}", false},
		{"the maxima of another array", "reduce(x, low)", "reduce(z, low)", false},
		{"the minima", "to_apply=maximum", "to_apply=minimum", false},
		{"less the other way", "subtract(x, ms)", "subtract(ms, x)", false},
		{"products", "to_apply=add", "to_apply=multiply", false},
		{"no weights", "exponential(less)", "abs(less)", false},
	} {
		if !strings.Contains(softmax, c.from) {
			t.Fatal(c.what)
		}
		p := kerneltest.Program(t, strings.Replace(softmax, c.from, c.to, 1))
		for _, op := range p.Ops {
			if op.Code == hlo.OpDivide && sumOfWeights(op.Instr.Operands[1]) != c.want {
				t.Errorf("%s: sumOfWeights is %v", c.what, !c.want)
			}
		}
	}
}
