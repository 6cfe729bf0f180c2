package ptx_test

import (
	"fmt"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// A kernel that doubles n floats.
func ExampleBuilder() {
	b := ptx.NewBuilder(ptx.Version{Major: 8}, ptx.Target{SM: 80})
	c := b.Entry("double")
	c.Entry.MaxNTid = [3]int{128, 1, 1}
	c.Param(ptx.U64, "x")
	c.Param(ptx.U32, "n")
	i := c.Mad(
		c.Special(ptx.CTAidX), ptx.Int(128), c.Special(ptx.TidX),
	)
	c.If(c.Let("setp.lt.u32", i, c.LoadParam("n")), func() {
		c.Comment("tile %d", 0)
		at := ptx.Mem(
			c.Add(c.LoadParam("x"), c.MulWide(i, ptx.Int(4))), 0,
		)
		v := c.Let("ld.global.f32", at)
		c.Emit("st.global.f32", at, c.Let("add.f32", v, v))
	})
	m, err := b.Module()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s", m.Text())
	// Output:
	// .version 8.0
	// .target sm_80
	// .address_size 64
	//
	// .visible .entry double(
	// 	.param .u64 x,
	// 	.param .u32 n
	// )
	// .maxntid 128, 1, 1
	// {
	// 	.reg .b32 %r<4>;
	// 	.reg .pred %p<1>;
	// 	.reg .b64 %rd<3>;
	// 	.reg .f32 %f<2>;
	// 	mov.u32 %r0, %ctaid.x;
	// 	mov.u32 %r1, %tid.x;
	// 	mad.lo.u32 %r2, %r0, 128, %r1;
	// 	ld.param.u32 %r3, [n];
	// 	setp.lt.u32 %p0, %r2, %r3;
	// 	@!%p0 bra $endif;
	// 	// tile 0
	// 	ld.param.u64 %rd0, [x];
	// 	mul.wide.u32 %rd1, %r2, 4;
	// 	add.u64 %rd2, %rd0, %rd1;
	// 	ld.global.f32 %f0, [%rd2];
	// 	add.f32 %f1, %f0, %f0;
	// 	st.global.f32 [%rd2], %f1;
	// $endif:
	// 	ret;
	// }
}
