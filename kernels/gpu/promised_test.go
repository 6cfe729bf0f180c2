package gpu

import (
	"regexp"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/kerneltest"
)

// Products of many sums a thread ask of the assembler the blocks an SM that they are priced
// with: ptxas left 80 registers to the product of f32 in groups, for a block that its shared
// memory has no room for, and kept values on the stack.
func TestPromisedBlocks(t *testing.T) {
	product := func(d string) string {
		return "x = " + d + "[1024,1024] parameter(0)\ny = " + d + "[1024,1024] parameter(1)\n" +
			"c = " + d + "[1024,1024] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
	}
	groups := groupedProduct{d: "f32", rows: 2048, n: 1024, k: 1024, groups: 8}
	rows := `x = f32[4096,4096] parameter(0)
low = f32[] constant(-inf)
m = f32[4096] reduce(x, low), dimensions={1}, to_apply=maximum
b = f32[4096,4096] broadcast(m), dimensions={0}
r = f32[4096,4096] subtract(x, b)
`
	for _, c := range []struct{ what, text, target, plan, promise string }{
		{"many sums a thread", groups.text(), "sm_80", "16,256,1,32 group=16 stages=1", "4"},
		{"one block an SM", product("f32"), "sm_80", "128,256,32 stages=2 warps=8", ""},
		{"few sums a thread", product("f32"), "sm_80", "16,16,32", ""},
		{"rows", rows, "sm_80", "4,4096,4096 warps=2", ""},
		{"mma.sync", product("bf16"), "sm_80", "128,128,32", ""},
		{"wgmma", product("bf16"), "sm_90a", "128,128,64 stages=4", ""},
		{"wgmma whose producer gives registers away", product("bf16"), "sm_90a", "128,256,64 stages=4 warps=8 producer=4", "1"},
	} {
		s, err := device.ParseSpec(c.target)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := kernels.ParsePlan(c.plan)
		if err != nil {
			t.Fatal(err)
		}
		text, err := PTX(kerneltest.Program(t, c.text), plan, s)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		promise := ""
		if m := regexp.MustCompile(`\.minnctapersm (\d+)`).FindStringSubmatch(text); m != nil {
			promise = m[1]
		}
		if promise != c.promise {
			t.Errorf("%s: %q blocks an SM are asked for, want %q", c.what, promise, c.promise)
		}
	}
}
