package check

import (
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// referenceTexts are what checking large kernels takes its time for.
var referenceTexts = []struct{ name, text string }{
	{"dot", `
x = f32[512,512] parameter(0)
y = f32[512,512] parameter(1)
ROOT d = f32[512,512] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}`},
	{"pointwise", `
x = f32[1024,1024] parameter(0)
ROOT y = f32[1024,1024] multiply(x, x)`},
	{"function", `
x = f32[1024,1024] parameter(0)
ROOT y = f32[1024,1024] exponential(x)`},
	{"broadcast", `
x = f32[1024] parameter(0)
ROOT y = f32[1024,1024] broadcast(x), dimensions={0}`},
	{"rows", `
add { a = f32[] parameter(0); b = f32[] parameter(1); ROOT s = f32[] add(a, b) }
ENTRY e { x = f32[1024,1024] parameter(0)
zero = f32[] constant(0)
ROOT y = f32[1024] reduce(x, zero), dimensions={1}, to_apply=add }`},
	{"columns", `
add { a = f32[] parameter(0); b = f32[] parameter(1); ROOT s = f32[] add(a, b) }
ENTRY e { x = f32[1024,1024] parameter(0)
zero = f32[] constant(0)
ROOT y = f32[1024] reduce(x, zero), dimensions={0}, to_apply=add }`},
	{"transpose", `
x = f32[1024,1024] parameter(0)
ROOT y = f32[1024,1024] transpose(x), dimensions={1,0}`},
}

// BenchmarkReference is the time of an element or product of the instruction,
// its operands loaded from buffers.
func BenchmarkReference(b *testing.B) {
	for _, c := range referenceTexts {
		b.Run(c.name, func(b *testing.B) {
			m, err := hlo.Parse(c.name, []byte(c.text))
			if err != nil {
				b.Fatal(err)
			}
			in, err := Inputs(m.Entry, Normals, 1)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := reference.Interpret(m.Entry, in); err != nil {
					b.Fatal(err)
				}
			}
			n := 1 << 20
			if c.name == "dot" {
				n = 1 << 27
			}
			b.ReportMetric(
				float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/element",
			)
		})
	}
}

// BenchmarkCompare is the time of an element of an output.
func BenchmarkCompare(b *testing.B) {
	shape := hlo.Shape{DType: hlo.F32, Dims: []int64{1024, 1024}}
	x, err := kernels.NewBuffer(shape)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if m := Compare(0, x, x, Tolerance{Relative: 1e-6}); m != nil {
			b.Fatal(m)
		}
	}
	b.ReportMetric(
		float64(b.Elapsed().Nanoseconds())/float64(b.N)/(1<<20), "ns/element",
	)
}
