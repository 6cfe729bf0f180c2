package cpu

import (
	"fmt"
	"math"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
)

// Products of a matrix and a vector, which have the memory's rate at best.
var skinny = []struct{ name, left, right, attrs string }{
	{"n=1", "4096,4096", "4096,1", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
	{"n=1 transposed", "4096,4096", "4096,1", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"},
	{"m=1", "1,4096", "4096,4096", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
	{"m=1 transposed", "1,4096", "4096,4096", "lhs_contracting_dims={1}, rhs_contracting_dims={1}"},
}

// BenchmarkSkinny is default plans of such products, on one and on two threads.
func BenchmarkSkinny(b *testing.B) {
	for _, x := range skinny {
		p := kerneltest.Program(
			b, fmt.Sprintf(
				"ENTRY e { x = f32[%s] parameter(0)\ny = f32[%s] parameter(1)\nROOT d = f32[%s] dot(x, y), %s }",
				x.left, x.right,
				map[bool]string{true: "4096,1", false: "1,4096"}[x.right == "4096,1"],
				x.attrs,
			),
		)
		plan, err := New().Default(b.Context(), p)
		if err != nil {
			b.Fatal(err)
		}
		b.Log(x.name, plan)
		for _, threads := range []int64{1, 2} {
			b.Run(fmt.Sprintf("%s/threads=%d", x.name, threads), func(b *testing.B) {
				runSkinny(b, p, plan.With("threads", threads))
			})
		}
	}
}

func runSkinny(b *testing.B, p *symtile.Program, plan kernels.Plan) {
	k, err := New().Compile(b.Context(), p, plan)
	if err != nil {
		b.Fatal(err)
	}
	defer k.Close()
	in, err := check.Inputs(p.Fusion, check.Normals, 1)
	if err != nil {
		b.Fatal(err)
	}
	out, err := kernels.NewBuffer(p.Fusion.Root.Shape)
	if err != nil {
		b.Fatal(err)
	}
	best := math.Inf(1)
	for b.Loop() {
		t, err := k.Run(b.Context(), in, []kernels.Buffer{out})
		if err != nil {
			b.Fatal(err)
		}
		best = min(best, t.Seconds())
	}
	b.ReportMetric(4096*4096*4/best/1e9, "GB/s")
	b.ReportMetric(best*1e3, "ms-at-best")
}
