package ptx

import "testing"

func TestBuild(t *testing.T) {
	b := NewBuilder(Version{8, 0}, Target{90, 'a'})
	smem := b.DynamicShared("smem", 1024)
	c := b.Entry("k")
	c.Entry.MaxNTid = [3]int{128, 1, 1}
	c.Param(U64, "a")
	p := c.LoadParam("a")
	tid := c.Special(TidX)
	c.Comment("tile %d", 3)
	x := c.Add(c.Mul(tid, Int(8)), Int(4))
	x = c.Add(x, Int(12))
	q := c.Add(p, c.MulWide(tid, Int(4)))
	v := c.Let("ld.global.v4.f32", Mem(q, 16))
	acc := c.Var(F32, F32Imm(0))
	c.For(Int(0), Int(10), 1, func(i Operand) {
		for _, e := range v.List {
			c.Emit("fma.rn.f32", acc, acc, e, e)
		}
	})
	c.Emit("st.shared.f32", Mem(smem, 4), acc)
	c.Emit("st.shared.u32", Mem(smem, 8), x)
	m, err := b.Module()
	if err != nil {
		t.Fatal(err)
	}
	reprint(t, m)
}
