package gpu_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/gpu"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/gpu/simulated"
	"github.com/tilewright/tilewright/kernels/ptx/sim"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

var gateOptions = sim.Options{Races: true, Uninitialised: true}

const product256 = `HloModule m

ENTRY e {
  a = %[1]s[256,256]{1,0} parameter(0)
  b = %[1]s[256,256]{1,0} parameter(1)
  ROOT c = %[1]s[256,256]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
`

// BenchmarkGate takes one emitted candidate of a product of 256×256×256 from its
// plan through the verification: emit, assemble, and run on all inputs of the Verifier
// with everything looked for, as tune does for each plan on a simulator.
func BenchmarkGate(b *testing.B) {
	for _, of := range []struct{ element, target string }{
		{"bf16", "sm_90a"}, {"bf16", "sm_80"}, {"f32", "sm_90a"}, {"f32", "sm_80"},
	} {
		b.Run(of.element+" "+of.target, func(b *testing.B) {
			benchmarkGate(b, of.element, of.target)
		})
	}
}

func benchmarkGate(b *testing.B, element, target string) {
	m, err := hlo.Parse("product.hlo", fmt.Appendf(nil, product256, element))
	if err != nil {
		b.Fatal(err)
	}
	p, err := symtile.Analyze(b.Context(), m.Entry)
	if err != nil {
		b.Fatal(err)
	}
	sheet, err := device.ParseSpec(target)
	if err != nil {
		b.Fatal(err)
	}
	s, err := device.NewSession(b.Context(), func(context.Context) (device.Driver, error) {
		return simulated.Open(sheet, gateOptions)
	})
	if err != nil {
		b.Fatal(err)
	}
	g := gpu.New(s)
	v, err := check.NewVerifier(context.Background(), m.Entry, 1)
	if err != nil {
		b.Fatal(err)
	}
	plan, err := g.Default(b.Context(), p)
	if err != nil {
		b.Fatal(err)
	}
	b.Log(plan)
	for b.Loop() {
		k, err := g.Compile(b.Context(), p, plan)
		if err != nil {
			b.Fatal(err)
		}
		if err := v.For(plan, g.Identity().TF32Allowed()).Verify(
			b.Context(), k,
		); err != nil {
			b.Fatal(err)
		}
		if err := k.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
