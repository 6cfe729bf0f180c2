package ptx

import "testing"

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
