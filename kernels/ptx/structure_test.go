package ptx

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// kernels are written by the builder and printed in testdata/build/kernels.txt.
var kernels = map[string]func(b *Builder){
	"control": func(b *Builder) {
		c := b.Entry("control")
		c.Param(U32, "n")
		n := c.LoadParam("n")
		x := c.Var(U32, Int(0))
		even := c.Let("setp.eq.u32", c.Rem(n, Int(2)), Int(0))
		c.IfElse(even,
			func() { c.Emit("add.u32", x, x, c.Mad(n, Int(3), n)) },
			func() { c.Emit("sub.u32", x, x, c.Mad(n, Int(3), n)) })
		c.Repeat(func() Operand {
			c.Emit("shr.u32", x, x, Int(1))
			return c.Let("setp.ne.u32", x, Int(0))
		})
		c.For(Int(0), n, 4, func(i Operand) {
			c.If(Not(even), func() { c.Emit("max.u32", x, x, i) })
		})
		c.EmitIf(Not(even), "exit")
	},
	"arithmetic": func(b *Builder) {
		c := b.Entry("arithmetic")
		x, y := c.Special(TidX), c.Special(CTAidX)
		c.Comment("  two lines\nof a comment ")
		v := c.Or(
			c.Xor(c.Sub(
				c.Min(x, y), c.Max(x, Int(7)),
			), c.Div(x, y)),
			c.Shl(c.Shr(y, Int(2)), Int(3)),
		)
		w := c.Add(c.Wide(v), c.MulWide(x, Int(12)))
		c.Emit("st.shared.u64", Mem(c.Shared("local", 8, 16), 8), w)
		c.Emit(
			"st.shared.u64",
			Mem(b.Shared("all", 16, 16), 0),
			c.Wide(Int(-1)),
		)
		c.Emit("mov.f64", c.Reg(F64), F64Imm(-0.5))
		c.Emit("mov.b32", c.Reg(B32), symAt("all", 4))
		halves := c.Unpack(F16, 2, v)
		c.Let("fma.rn.f16", halves[0], halves[1], halves[0])
	},
	"copies": func(b *Builder) {
		smem := b.DynamicShared("smem", 1024)
		c := b.Entry("copies")
		c.Entry.MaxNTid, c.Entry.ReqNCTAPerCluster = [3]int{256, 1, 1},
			[3]int{2, 1, 1}
		c.ParamBytes("map", 64, 128)
		at := c.Let("cvta.param.u64", c.Let("mov.u64", Sym("map")))
		base := c.Let("mov.u32", smem)
		p := c.Reg(Pred)
		c.Emit("elect.sync", pairOf(Sink(), p), Int(-1))
		c.EmitIf(p, "mbarrier.init.shared::cta.b64", Mem(base, 0), Int(1))
		c.EmitIf(
			p, "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster",
			Mem(base, 1024),
			Tensor(at, Int(0), c.Special(CTAidX)),
			Mem(base, 0), c.Let("cvt.u16.u32", Int(3)),
		)
		c.Repeat(func() Operand {
			return Not(c.Let("mbarrier.try_wait.parity.shared::cta.b64", Mem(base, 0), Int(0)))
		})
		acc := c.Regs(F32, 4)
		d := c.Reg(B64)
		c.Emit("mov.b64", d, Int(0x4000004000010000))
		c.Emit(
			"wgmma.mma_async.sync.aligned."+WGMMA(8, 16).String()+".f32.bf16.bf16",
			Vec(acc...), d, d, p, Int(1),
			Int(1), Int(0), Int(1),
		)
		c.Bra(c.Label("end"))
		c.Place("$end")
	},
}

func TestKernels(t *testing.T) {
	datadriven.RunTest(t, "testdata/build/kernels.txt", func(t *testing.T, d *datadriven.TestData) string {
		b := NewBuilder(Version{8, 0}, Target{90, 'a'})
		kernels[d.Cmd](b)
		m, err := b.Module()
		if err != nil {
			return err.Error() + "\n"
		}
		reprint(t, m)
		var text strings.Builder
		if _, err := m.WriteTo(&text); err != nil {
			return err.Error()
		}
		return strings.ReplaceAll(text.String(), "\n\n", "\n")
	})
}
