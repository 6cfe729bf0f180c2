package sim

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// calling has a function that another one calls, each twice: branches, variables and
// registers of the same names everywhere, and a result of eight bytes.
const calling = `.version 8.0
.target sm_80
.address_size 64
.func (.param .b32 r) half(.param .b32 x)
{
	.reg .b32 %r<3>; .reg .pred %p<2>;
	ld.param.b32 %r1, [x];
	setp.lt.s32 %p1, %r1, 0;
	@%p1 bra $L;
	shr.s32 %r2, %r1, 1;
	st.param.b32 [r], %r2;
	ret;
$L:
	st.param.b32 [r], -1;
	ret;
}
.func (.param .align 8 .b8 r[8]) both(.param .b32 x)
{
	.reg .b32 %r<4>;
	ld.param.b32 %r1, [x];
	{
	.param .b32 a; .param .b32 v;
	st.param.b32 [a], %r1;
	call.uni (v), half, (a);
	ld.param.b32 %r2, [v];
	}
	sub.s32 %r3, 0, %r1;
	{
	.param .b32 a; .param .b32 v;
	st.param.b32 [a], %r3;
	call.uni (v), half, (a);
	ld.param.b32 %r3, [v];
	}
	st.param.b32 [r], %r2;
	st.param.b32 [r+4], %r3;
	ret;
}
.visible .entry k(.param .u64 z)
{
	.reg .b32 %r<5>; .reg .b64 %d<3>;
	ld.param.u64 %d1, [z];
	mov.u32 %r1, %tid.x;
	{
	.param .b32 a; .param .align 8 .b8 v[8];
	sub.s32 %r2, %r1, 4;
	st.param.b32 [a], %r2;
	call (v), both, (a);
	ld.param.v2.b32 {%r3, %r4}, [v];
	}
	mul.wide.u32 %d2, %r1, 8;
	add.s64 %d1, %d1, %d2;
	st.global.v2.b32 [%d1], {%r3, %r4};
	ret;
}
`

// A function is put in the place of each of its calls; one that calls itself is refused.
func TestCalls(t *testing.T) {
	b := newBench(t)
	z := b.alloc(64)
	r := b.launch(mustLoad(t, calling), Launch{
		Entry: "k", Grid: [3]int{1, 1, 1}, Block: [3]int{8, 1, 1},
		Args:    [][]byte{binary.LittleEndian.AppendUint64(nil, z)},
		Outputs: []uint64{z},
	}, everything)
	if len(r.Findings) > 0 {
		t.Error(r.Findings[0])
	}
	half := func(x int32) int32 {
		if x < 0 {
			return -1
		}
		return x >> 1
	}
	got := b.words(z, 16)
	for i := range int32(8) {
		x := i - 4
		if int32(got[2*i]) != half(x) || int32(got[2*i+1]) != half(-x) {
			t.Errorf("both(%d) is %d and %d", x, int32(got[2*i]), int32(got[2*i+1]))
		}
	}
	m, err := ptx.Parse("t", []byte(strings.Replace(calling, "call.uni (v), half", "call.uni (v), both", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Load(m); err == nil || !strings.Contains(err.Error(), "both calls itself") {
		t.Errorf("recursion: %v", err)
	}
}
