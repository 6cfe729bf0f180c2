package sim

import (
	"fmt"
	"testing"
)

// indexed stores each thread's number at a word of shared memory that body
// leaves in %r2, and reads it again after a barrier. Of two warps.
func indexed(body string) string {
	return fmt.Sprintf(`.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n)
{
	.reg .b32 %%r<9>;
	.reg .b64 %%rd<9>;
	.reg .pred %%p<3>;
	.shared .align 4 .b8 words[1024];
	ld.param.u64 %%rd1, [in];
	ld.param.u64 %%rd5, [out];
	ld.param.u32 %%r6, [n];
	mov.u32 %%r1, %%tid.x;
	mov.u32 %%r5, %%ctaid.x;
	mad.lo.s32 %%r8, %%r5, 64, %%r1;
	mul.wide.s32 %%rd2, %%r8, 4;
	add.s64 %%rd3, %%rd1, %%rd2;
	add.s64 %%rd6, %%rd2, %%rd5;
	%s
	mov.u32 %%r3, words;
	mad.lo.s32 %%r4, %%r2, 4, %%r3;
	st.shared.u32 [%%r4], %%r1;
	bar.sync 0;
	ld.shared.u32 %%r7, [%%r4];
	st.global.u32 [%%rd6], %%r7;
	ret;
}
`, body)
}

// TestTaint lists for which kernels the checks of one launch, and of one CTA,
// stand for those of others.
func TestTaint(t *testing.T) {
	for _, c := range []struct {
		name, text                      string
		launchInvariant, blockInvariant bool
	}{
		{"thread", indexed("mov.u32 %r2, %r1;"), true, true},
		{"block", indexed("add.s32 %r2, %r1, %r5;"), true, false},
		{"data", indexed("ld.global.u32 %r2, [%rd3];"), false, false},
		{"global address by data", indexed("ld.global.u32 %r7, [%rd3]; mad.wide.s32 %rd6, %r7, 4, %rd5; mov.u32 %r2, %r1;"), false, true},
		{"guarded by data", indexed("ld.global.u32 %r7, [%rd3]; setp.eq.u32 %p1, %r7, 0; mov.u32 %r2, %r1; @%p1 mov.u32 %r2, 0;"), false, false},
		{"load guarded by block", indexed("setp.eq.u32 %p1, %r5, 0; @%p1 ld.global.u32 %r7, [%rd3]; mov.u32 %r2, %r1;"), true, true},
		{"branch by data", indexed("mov.u32 %r2, %r1; ld.global.u32 %r7, [%rd3]; setp.eq.u32 %p1, %r7, 0; @%p1 bra L; mov.u32 %r2, 0; L:"), false, false},
		{"small parameter", indexed("add.s32 %r2, %r1, %r6;"), true, true},
		{"address as a number", indexed("cvt.u32.u64 %r2, %rd1; and.b32 %r2, %r2, 63;"), false, true},
		{"address rounded", indexed("and.b64 %rd6, %rd6, -256; mov.u32 %r2, %r1;"), false, true},
		{"sum of addresses", indexed("add.s64 %rd6, %rd6, %rd3; sub.s64 %rd6, %rd6, %rd3; mov.u32 %r2, %r1;"), false, true},
		{"clock", indexed("mov.u32 %r2, %clock; and.b32 %r2, %r2, 63;"), false, false},
		{"through shared memory", indexed("mov.u32 %r2, words; ld.shared.u32 %r2, [%r2];"), false, false},
		{"gemm", kernelText(t, "gemm"), true, true},
		{"vadd", kernelText(t, "vadd"), true, false},
		{"transpose", kernelText(t, "transpose"), true, true},
		{"handoff", kernelText(t, "handoff"), false, false},
		{"wgmma", kernelText(t, "wgmma"), true, true},
		{"bulkstore", kernelText(t, "bulkstore"), true, true},
	} {
		for _, e := range mustLoad(t, c.text).entries {
			if e.launchInvariant != c.launchInvariant || e.blockInvariant != c.blockInvariant {
				t.Errorf("%s: launch-invariant %t, block-invariant %t; want %t, %t", c.name, e.launchInvariant, e.blockInvariant, c.launchInvariant, c.blockInvariant)
			}
		}
	}
}

// races launches k of text on two CTAs with the same number everywhere in its
// input, and says whether data races are found.
func (b *bench) races(p *Program, index uint32) bool {
	in, out := b.alloc(4*128), b.alloc(4*128)
	words := make([]byte, 0, 4*128)
	for range 128 {
		words = append(words, Value(index)...)
	}
	if err := b.m.Write(in, words); err != nil {
		b.t.Fatal(err)
	}
	r := b.launch(
		p,
		Launch{
			Entry: "k",
			Grid:  [3]int{2, 1, 1},
			Block: [3]int{64, 1, 1},
			Args:  [][]byte{Value(in), Value(out), Value(index)},
		},
		everything,
	)
	return len(r.Findings) > 0
}

// TestRepeats: a race that depends on data, on the CTA or on a parameter is found
// after a launch without it, and one that is always there in every launch.
func TestRepeats(t *testing.T) {
	const spread = "mul.lo.s32 %r2, %r1, " // 0: every thread at word 0
	for _, c := range []struct {
		name, body    string
		first, second bool
	}{
		{"none", "mov.u32 %r2, %r1;", false, false},
		{"always", spread + "0;", true, true},
		{"data", "ld.global.u32 %r7, [%rd3]; xor.b32 %r7, %r7, 1; " + spread + "%r7;", false, true},
		{"parameter", "xor.b32 %r7, %r6, 1; " + spread + "%r7;", false, true},
		{"second CTA", "xor.b32 %r7, %r5, 1; " + spread + "%r7;", true, true},
		{"branch by data", "mov.u32 %r2, %r1; ld.global.u32 %r7, [%rd3]; setp.eq.u32 %p1, %r7, 0; @%p1 bra L; mov.u32 %r2, 0; L:", false, true},
	} {
		b, p := newBench(t), mustLoad(t, indexed(c.body))
		for n, want := range []bool{c.first, c.second, c.first} {
			if got := b.races(p, uint32(n%2)); got != want {
				t.Errorf("%s: launch %d: races %t, want %t", c.name, n, got, want)
			}
		}
	}
}

// TestRepeatsUninitialised: an array that is written in one launch and not in the
// next is found out.
func TestRepeatsUninitialised(t *testing.T) {
	b, p := newBench(t), mustLoad(t, indexed("ld.global.u32 %r7, [%rd3]; mov.u32 %r2, %r1;"))
	for n, written := range []bool{true, false, true} {
		in, out := b.alloc(4*128), b.alloc(4*128)
		if written {
			if err := b.m.Set(in, 1, 4*128); err != nil {
				t.Fatal(err)
			}
		}
		r := b.launch(
			p,
			Launch{
				Entry: "k",
				Grid:  [3]int{2, 1, 1},
				Block: [3]int{64, 1, 1},
				Args:  [][]byte{Value(in), Value(out), Value(uint32(0))},
			},
			everything,
		)
		if found := len(r.Findings) > 0; found == written {
			t.Errorf("launch %d: %v", n, r.Findings)
		}
	}
}
