package ptx

import (
	"fmt"
	"testing"
)

// Values are kept from where they are computed to where they are last read, round loops
// and under guards; loads that nothing keeps behind others are counted at the front.
func TestPressure(t *testing.T) {
	const head = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry f(.param .u64 p)\n{\n" +
		"\t.reg .b32 %r<9>;\n\t.reg .b64 %d<9>;\n\t.reg .pred %p<9>;\n\t.shared .b32 s[64];\n"
	for _, c := range []struct {
		name, body string
		want       Pressure
	}{
		{"constants and parameters take none", "mov.b32 %r0, 1;\nld.param.u64 %d0, [p];\nst.global.b32 [%d0], %r0;\nret;\n", Pressure{}},
		{"one after the other", "mov.u32 %r0, %tid.x;\nadd.u32 %r1, %r0, 1;\nadd.u32 %r2, %r1, 1;\nst.shared.b32 [s], %r2;\nret;\n", Pressure{1, 1}},
		{"wide values take two", "mov.u32 %r0, %tid.x;\ncvt.u64.u32 %d1, %r0;\nadd.u64 %d2, %d1, %d1;\nst.global.b32 [%d2], %r0;\nret;\n", Pressure{3, 3}},
		{
			"a value from before a loop that is read behind it",
			"mov.u32 %r0, %tid.x;\nmov.u32 %r1, %tid.y;\n$L:\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p0, %r1, 9;\n@%p0 bra $L;\nst.shared.b32 [s], %r0;\nret;\n",
			Pressure{2, 2},
		},
		{
			"a write under a guard keeps what was there",
			"mov.u32 %r0, %tid.x;\nmov.u32 %r1, %tid.y;\nsetp.lt.u32 %p0, %r1, 9;\n@%p0 add.u32 %r0, %r1, %r1;\nst.shared.b32 [s], %r0;\nret;\n",
			Pressure{2, 2},
		},
		{
			"loads move to the front",
			"mov.u32 %r0, %tid.x;\nld.shared.b32 %r1, [%r0];\nst.global.b32 [%d0], %r1;\nld.shared.b32 %r2, [%r0+4];\nst.global.b32 [%d0+4], %r2;\nret;\n",
			Pressure{2, 3},
		},
		{
			"and not past a barrier",
			"mov.u32 %r0, %tid.x;\nld.shared.b32 %r1, [%r0];\nst.shared.b32 [s], %r1;\nbar.sync 0;\nld.shared.b32 %r2, [%r0+4];\nst.shared.b32 [s+4], %r2;\nret;\n",
			Pressure{2, 2},
		},
	} {
		m := parsed(t, head+c.body+"}\n")
		if got := m.Entries[0].Pressure(); got != c.want {
			t.Errorf("%s: %+v, not %+v", c.name, got, c.want)
		}
	}
}

// Operands of wgmma in registers are kept until their group has been waited for.
func TestPressureOfRunningProducts(t *testing.T) {
	// A product of four registers from first on, which are written just before it.
	product := func(first int) (text string) {
		for n := range 4 {
			text += fmt.Sprintf("mov.u32 %%r%d, %%tid.x;\n", first+n)
		}
		return text + fmt.Sprintf(
			"wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%%s0, %%s1, %%s2, %%s3}, {%%r%d, %%r%d, %%r%d, %%r%d}, %%d0, %%p0;\nwgmma.commit_group.sync.aligned;\n",
			first, first+1, first+2, first+3)
	}
	for running, want := range []int{8, 12} {
		m := parsed(t, ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry f()\n{\n"+
			"\t.reg .b32 %r<9>;\n\t.reg .b32 %s<5>;\n\t.reg .b64 %d<2>;\n\t.reg .pred %p<2>;\n"+
			product(0)+fmt.Sprintf("wgmma.wait_group.sync.aligned %d;\n", running)+
			product(4)+"wgmma.wait_group.sync.aligned 0;\nret;\n}\n")
		// Four sums, and four operands of each product that runs.
		if got := m.Entries[0].Pressure().Ordered; got != want {
			t.Errorf("with %d groups that run on: %d registers, not %d", running, got, want)
		}
	}
}
