package cpu

import (
	"context"
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// The fusions of testdata/complex.txt, of c64 and c128: the reference of complex numbers
// agrees with the reference of their parts, which kernels are held against, and with the
// default kernel, both on ordinary numbers and on zeros, infinities and NaN.
func TestComplex(t *testing.T) {
	for _, text := range kerneltest.Blocks(t, "testdata/complex.txt") {
		for _, types := range [][2]string{{"c64", "f32"}, {"c128", "f64"}} {
			text := strings.NewReplacer("C[", types[0]+"[", "R[", types[1]+"[").Replace(text)
			p := kerneltest.Program(t, text)
			t.Run(p.Fusion.Name+" "+types[0], func(t *testing.T) {
				compareParts(t, p, complexInputs(t, p.Fusion))
			})
		}
	}
}

// The logistic function keeps its digits next to its poles at odd multiples of iπ.
func TestLogisticNextToPoles(t *testing.T) {
	for _, kind := range []string{"c64", "c128"} {
		t.Run(kind, func(t *testing.T) {
			p := kerneltest.Program(t, strings.ReplaceAll("x = C[4096] parameter(0)\nROOT r = C[4096] logistic(x)", "C[", kind+"["))
			rng := rand.New(rand.NewPCG(3, 4))
			b := arrayOf(t, p.Fusion.Params[0].Shape)
			v := b.Parts()
			for at := range v.Shape.Elements() {
				pole := float64(at%2) * math.Pi * float64(2*rng.IntN(5)-3)
				v.SetFloat(at, pole+rng.NormFloat64()*math.Exp(-20*rng.Float64()))
			}
			compareParts(t, p, []kernels.Buffer{b})
		})
	}
}

// complexInputs are numbers of all kinds for elementwise fusions of many elements, and
// ordinary ones for others.
func complexInputs(t *testing.T, c *hlo.Computation) []kernels.Buffer {
	rng := rand.New(rand.NewPCG(1, 2))
	special := []float64{
		0, math.Copysign(0, -1), 1, -1, 0.3, -2.5, 1e-20, 30, -60, 1e12,
		math.Inf(1), math.Inf(-1), math.NaN(),
	}
	var in []kernels.Buffer
	for _, p := range c.Params {
		b := arrayOf(t, p.Shape)
		every := special[rng.IntN(2):]
		v := b.Parts()
		for at := range v.Shape.Elements() {
			switch {
			case !v.Shape.DType.IsFloat():
				v.SetInt(at, rng.Int64N(3))
			case at < 2*int64(len(every)*len(every)) && v.Shape.Elements() > 600:
				n := int(at / 2)
				v.SetFloat(at, [2]float64{every[n%len(every)], every[n/len(every)]}[at%2])
			default:
				v.SetFloat(at, 2*rng.NormFloat64())
			}
		}
		in = append(in, b)
	}
	return in
}

// compareParts compares the reference of a fusion, the reference of its parts, and its
// default kernel.
func compareParts(t *testing.T, p *symtile.Program, in []kernels.Buffer) {
	want, err := reference.Interpret(p.Fusion, in)
	if err != nil {
		t.Fatal(err)
	}
	parts := make([]kernels.Buffer, len(in))
	for k, b := range in {
		parts[k] = b.Parts()
	}
	got, err := reference.Interpret(p.Physical, parts)
	if err != nil {
		t.Fatal(err)
	}
	off := 4e-6
	if strings.Contains(t.Name(), "c128") {
		off = 2e-14
	}
	if strings.Contains(t.Name(), "power") {
		off *= 200 // of exponents, the rounding of angles of hundreds
	}
	for k := range want {
		compareComplex(t, "reference of parts", in, got[k], want[k], off)
	}
	backend := New()
	plan, err := backend.Default(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	k, err := backend.Compile(context.Background(), p, plan)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	for n, s := range kernels.OutputShapes(p.Physical) {
		got[n] = arrayOf(t, s)
	}
	if _, err := k.Run(context.Background(), parts, got); err != nil {
		t.Fatal(err)
	}
	for k := range want {
		compareComplex(t, plan.String(), in, got[k], want[k], off)
	}
}

// compareComplex compares each part relative to the magnitude of the number.
func compareComplex(t *testing.T, what string, in []kernels.Buffer, got, want kernels.Buffer, off float64) {
	t.Helper()
	wrong := 0
	for at := range want.Shape.Elements() {
		var x, y complex128
		if want.Shape.DType.IsComplex() {
			got := kernels.Buffer{Shape: want.Shape, Data: got.Data}
			x, y = got.Complex(at), want.Complex(at)
		} else {
			x, y = complex(got.Float(at), 0), complex(want.Float(at), 0)
		}
		if real(y) != real(y) || imag(y) != imag(y) {
			continue // C99 leaves what it is beside a NaN to implementations
		}
		if !near(real(x), real(y), off, cmplx.Abs(y)) || !near(imag(x), imag(y), off, cmplx.Abs(y)) {
			if wrong++; wrong <= 40 {
				var of []string
				for _, b := range in {
					if b.Shape.DType.IsComplex() && b.Shape.Elements() == want.Shape.Elements() {
						of = append(of, fmt.Sprint(b.Complex(at)))
					}
				}
				t.Errorf("%s: element %d of %v is %g, want %g", what, at, of, x, y)
			}
		}
	}
}

// near reports whether x is y, or next to it.
func near(x, y, off, magnitude float64) bool {
	return x == y || x != x && y != y || math.Abs(x-y) <= off*max(1e-30, magnitude)
}

// Fusions of testdata/parts.txt, complex numbers and bits among them, by several plans.
func TestParts(t *testing.T) {
	for _, text := range kerneltest.Blocks(t, "testdata/parts.txt") {
		verifyOffered(t, kerneltest.Program(t, text).Fusion)
	}
}

// arrayOf is an array of zeros.
func arrayOf(t *testing.T, s hlo.Shape) kernels.Buffer {
	b, err := kernels.NewBuffer(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
