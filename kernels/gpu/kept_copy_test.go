package gpu

import (
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/kerneltest"
)

// An operand whose rows a select keeps or makes 0 is copied by cp.async, which writes zeros for
// the others, where all of 16 bytes have one predicate; it goes through registers elsewhere.
func TestKeptCopies(t *testing.T) {
	const text = `n = s32[] parameter(0)
x = bf16[64,64] parameter(1)
y = bf16[64,64] parameter(2)
i = s32[64,64] iota(), iota_dimension=0
ns = s32[64,64] broadcast(n), dimensions={}
own = pred[64,64] compare(i, ns), direction=LT
zero = bf16[] constant(0)
zeros = bf16[64,64] broadcast(zero), dimensions={}
a = bf16[64,64] select(own, x, zeros)
ROOT p = f32[64,64] dot(a, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
`
	b := New(simulatedSession(t, "sm_80"))
	s, err := device.ParseSpec("sm_80")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what, from, to string
		copied         bool
	}{
		{"rows", "", "", true},
		{"columns", "iota_dimension=0", "iota_dimension=1", false},
		{"the negative zero", "constant(0)", "constant(-0)", false},
		{"one", "constant(0)", "constant(1)", false},
		{"zeros where the predicate holds", "select(own, x, zeros)", "select(own, zeros, x)", false},
		{"rows along k", "lhs_contracting_dims={1}", "lhs_contracting_dims={0}", true},
		{"two selects", "ROOT p = f32[64,64] dot(a, y)", "c = bf16[64,64] select(own, a, zeros)\nROOT p = f32[64,64] dot(c, y)", false},
	} {
		if !strings.Contains(text, c.from) {
			t.Fatal(c.what)
		}
		p := kerneltest.Program(t, strings.Replace(text, c.from, c.to, 1))
		v := kerneltest.Verifier(t, p, 1)
		for _, tiles := range []string{"32,32,16 warps=2 stages=2", "64,32,32 warps=4 stages=3", "64,64,64 warps=4"} {
			plan, err := kernels.ParsePlan(tiles)
			if err != nil {
				t.Fatal(err)
			}
			if !verify(t, b, v, p, plan) {
				t.Errorf("%s: %s was not verified", c.what, plan)
			}
			text, err := PTX(p, plan, s)
			if err != nil {
				t.Fatal(err)
			}
			if copied := !strings.Contains(text, "st.shared"); copied != c.copied {
				t.Errorf("%s, %s: copied by cp.async: %v, want %v", c.what, plan, copied, c.copied)
			}
		}
	}
}
