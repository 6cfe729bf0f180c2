//go:build linux && amd64 && !noasm

package amd64

import (
	"flag"
	"fmt"
	"math"
	"testing"
	"time"
	"unsafe"
)

var exhaustive = flag.Bool("exhaustive", false, "measure functions over all 2^32 inputs, not one in 97")

// unaryArgs is the argument block of y = f(x) over n elements.
type unaryArgs struct {
	n    int
	x, y *float32
}

// unary returns a kernel that applies f elementwise.
func unary(t testing.TB, f func(*Chain, Value) Value, copies int) *Assembler {
	t.Helper()
	a := &Assembler{}
	a.Emit(MOV, RAX, Mem{Base: RDI})
	a.Emit(MOV, RSI, Mem{Base: RDI, Disp: 8})
	a.Emit(MOV, RDX, Mem{Base: RDI, Disp: 16})
	c := &Chain{}
	c.Store(
		VMOVUPS, Mem{Base: RDX}, 32,
		f(c, c.Load(VMOVUPS, Mem{Base: RSI}, 32)),
	)
	l := &Loop{
		Chain:    c,
		Counter:  RAX,
		Pointers: []Pointer{{RSI, 4}, {RDX, 4}},
		Width:    4,
		Copies:   copies,
		Scratch:  RCX,
		Mask:     Y15,
	}
	if err := l.Emit(a); err != nil {
		t.Fatal(err)
	}
	a.Emit(RET)
	return a
}

func (f Func) unary(x, y []float32) {
	f.Call(unsafe.Pointer(&unaryArgs{
		len(x), unsafe.SliceData(x), unsafe.SliceData(y),
	}))
}

type function struct {
	name  string
	emit  func(*Chain, Value) Value
	exact func(float64) float64
	bound float64 // in ulp, over all inputs
}

var functions = []function{
	{"exp", (*Chain).Exp32, math.Exp, 0.95},
	{"exp_below", func(c *Chain, x Value) Value {
		return c.ExpBelow32(c.AtMost32(x, 0), false)
	}, func(x float64) float64 { return math.Exp(min(x, 0)) }, 0.95},
	{"exp_vanishes", func(c *Chain, x Value) Value {
		return c.ExpBelow32(c.AtMost32(x, 0), true)
	}, func(x float64) float64 { return math.Exp(min(x, 0)) }, 0.95},
	{"log", (*Chain).Log32, math.Log, 0.9},
	{"expm1", (*Chain).Expm132, math.Expm1, 1.45},
	{"log1p", (*Chain).Log1p32, math.Log1p, 1.7},
	{"rsqrt", (*Chain).Rsqrt32, func(x float64) float64 {
		return 1 / math.Sqrt(x)
	}, 1.5},
	{"tanh", (*Chain).Tanh32, math.Tanh, 2.5},
	{"logistic", (*Chain).Logistic32, func(x float64) float64 {
		return 1 / (1 + math.Exp(-x))
	}, 2.7},
	{"tanh1p", (*Chain).Tanh1p32, tanh1p, 2.8},
	{"erf", (*Chain).Erf32, math.Erf, 1.3},
	{"erf_inv", (*Chain).ErfInv32, math.Erfinv, 3.55},
	{"sin", (*Chain).Sin32, math.Sin, 1.25},
	{"cos", (*Chain).Cos32, math.Cos, 1.25},
	{"tan", (*Chain).Tan32, math.Tan, 2.9},
	{"asin", (*Chain).Asin32, math.Asin, 3},
	{"acos", (*Chain).Acos32, math.Acos, 3},
	{"sinh", (*Chain).Sinh32, math.Sinh, 3},
	{"cosh", (*Chain).Cosh32, math.Cosh, 3},
	{"asinh", (*Chain).Asinh32, math.Asinh, 4},
	{"acosh", (*Chain).Acosh32, math.Acosh, 4},
	{"atanh", (*Chain).Atanh32, math.Atanh, 4},
	{"cbrt", (*Chain).Cbrt32, math.Cbrt, 2},
	{"atan", func(c *Chain, x Value) Value {
		return c.Atan232(x, c.Float32(1))
	}, math.Atan, 2},
}

func tanh1p(x float64) float64 {
	const last = -64 * math.Ln2 // 2^128 = e^-2x: beyond, it overflows
	if x < last {
		return 0
	}
	return 2 / (1 + math.Exp(-2*x))
}

// TestUlp measures how far the functions are from the exact result over one f32
// in 97, or with -exhaustive all.
func TestUlp(t *testing.T) {
	step := uint64(97)
	switch {
	case *exhaustive:
		step = 1
	case testing.Short():
		step = 9973
	}
	for _, f := range functions {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			kernel := load(t, unary(t, f.emit, 4))
			worst, at := 0.0, float32(0)
			x, y := make([]float32, 4096), make([]float32, 4096)
			for from := uint64(0); from < 1<<32; from += step * uint64(len(x)) {
				for k := range x {
					x[k] = math.Float32frombits(uint32(from + step*uint64(k)))
				}
				kernel.unary(x, y)
				for k, v := range x {
					if e := ulps(y[k], f.exact(float64(v))); !(e <= worst) {
						worst, at = e, v
					}
				}
			}
			t.Logf("%.3f ulp at %v (%#x)", worst, at, math.Float32bits(at))
			if !(worst <= f.bound) {
				t.Errorf("%v ulp at %v, want ≤ %v", worst, at, f.bound)
			}
		})
	}
}

// ulps returns how far got is from exact in units of the last place that an f32
// near exact has; +Inf where one is NaN or a zero has the wrong sign.
func ulps(got float32, exact float64) float64 {
	rounded := float32(exact)
	switch {
	case math.Float32bits(got) == math.Float32bits(rounded), got != got && rounded != rounded:
		if math.IsInf(exact, 0) || exact != exact {
			return 0
		}
	case got != got || rounded != rounded || exact == 0:
		return math.Inf(1)
	case math.IsInf(float64(got), 0) || math.IsInf(float64(rounded), 0):
		return math.Inf(1)
	}
	if math.IsInf(float64(rounded), 0) {
		return 0
	}
	_, e := math.Frexp(exact)
	return math.Abs(float64(got)-exact) / math.Ldexp(1, max(e-24, -149))
}

// TestEdges holds the functions to package math where no ulp is meant.
func TestEdges(t *testing.T) {
	inf := float32(math.Inf(1))
	x := []float32{
		0, float32(math.Copysign(0, -1)), inf, -inf,
		float32(math.NaN()), 1, -1,
		math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, math.MaxFloat32, -math.MaxFloat32, 88.72283, 88.72284,
		-103.97208, -103.97209,
	}
	for _, f := range functions {
		kernel := load(t, unary(t, f.emit, 4))
		y := make([]float32, len(x))
		kernel.unary(x, y)
		for k, v := range x {
			exact := f.exact(float64(v))
			e := ulps(y[k], exact)
			if !(e <= f.bound) || e > 0.5 && (v == 0 || v-v != 0) {
				t.Errorf("%s(%v) = %v, want %v", f.name, v, y[k], float32(exact))
			}
		}
	}
}

// TestTailsOfFunctions holds every remainder of every unrolling against the
// whole vectors, at the end of a page.
func TestTailsOfFunctions(t *testing.T) {
	for _, f := range functions {
		for _, copies := range []int{1, 2, 4} {
			kernel := load(t, unary(t, f.emit, copies))
			for n := range 68 {
				x, y := guarded(t, n), guarded(t, n)
				for k := range x {
					x[k] = float32(k)*0.37 - 9
				}
				kernel.unary(x, y)
				for k, v := range x {
					if e := ulps(y[k], f.exact(float64(v))); !(e <= f.bound) {
						t.Fatalf("%s, n %d, copies %d: f(%v) = %v", f.name, n, copies, v, y[k])
					}
				}
			}
		}
	}
}

// best runs f and reports the shortest time of one run, which other work on the
// machine disturbs less than the mean.
func best(b *testing.B, elements int, unit string, f func()) {
	shortest := time.Duration(math.MaxInt64)
	for b.Loop() {
		start := time.Now()
		f()
		shortest = min(shortest, time.Since(start))
	}
	b.ReportMetric(float64(shortest.Nanoseconds())/float64(elements), "best-ns/"+unit)
}

// BenchmarkFunctions is the time of 2048 elements that stay in L1.
func BenchmarkFunctions(b *testing.B) {
	for _, f := range functions {
		b.Run(f.name, func(b *testing.B) {
			kernel := load(b, unary(b, f.emit, 4))
			x, y := make([]float32, 2048), make([]float32, 2048)
			for k := range x {
				x[k] = float32(k)/512 + 0.1
			}
			best(b, len(x), "element", func() { kernel.unary(x, y) })
		})
	}
}

// BenchmarkCompile is what making such a kernel costs, to machine code.
func BenchmarkCompile(b *testing.B) {
	for _, f := range functions {
		b.Run(f.name, func(b *testing.B) {
			b.ReportAllocs()
			best(b, 1, "kernel", func() {
				if _, err := unary(b, f.emit, 4).Assemble(); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}

// gelu adds x(1 + tanh(0.79788456 (x + 0.044715 x³)))/2 to c, as x times the
// logistic function of twice the argument.
func gelu(c *Chain, x Value) Value {
	const scale = 2 * 0.7978845608028654
	cubic := c.MulAdd32(
		c.Do(VMULPS, x, x),
		c.Float32(scale*0.044715),
		c.Float32(scale),
	)
	return c.Do(VMULPS, x, c.Logistic32(c.Do(VMULPS, cubic, x)))
}

// BenchmarkGelu is a fused chain of the kind that a kernel has.
// The time of 2048 elements that stay in L1.
func BenchmarkGelu(b *testing.B) {
	for _, copies := range []int{1, 2, 3, 4} {
		b.Run(fmt.Sprint("copies=", copies), func(b *testing.B) {
			kernel := load(b, unary(b, gelu, copies))
			x, y := make([]float32, 2048), make([]float32, 2048)
			for k := range x {
				x[k] = float32(k)/256 - 4
			}
			best(b, len(x), "element", func() { kernel.unary(x, y) })
		})
	}
}

// TestMaxWithNumber holds maxima and minima with a number that is known to what
// math has, to the sign of zeros.
func TestMaxWithNumber(t *testing.T) {
	inf, zero := math.Inf(1), math.Copysign(0, -1)
	numbers := []float64{0, zero, 1, -2.5, inf, -inf, math.NaN()}
	for _, known := range numbers {
		for _, f := range []struct {
			emit  func(c *Chain, x Value) Value
			exact func(x float64) float64
		}{
			{func(c *Chain, x Value) Value {
				return c.Max32(x, c.Float32(known))
			}, func(x float64) float64 { return math.Max(x, known) }},
			{func(c *Chain, x Value) Value {
				return c.Max32(c.Float32(known), x)
			}, func(x float64) float64 { return math.Max(known, x) }},
			{func(c *Chain, x Value) Value {
				return c.Min32(x, c.Float32(known))
			}, func(x float64) float64 { return math.Min(x, known) }},
			{func(c *Chain, x Value) Value {
				return c.Min32(c.Float32(known), x)
			}, func(x float64) float64 { return math.Min(known, x) }},
		} {
			kernel := load(t, unary(t, f.emit, 2))
			x, y := make([]float32, len(numbers)), make([]float32, len(numbers))
			for k, v := range numbers {
				x[k] = float32(v)
			}
			kernel.unary(x, y)
			for k, v := range numbers {
				want := float32(f.exact(v))
				if v != v || known != known {
					want = float32(math.NaN())
				}
				if math.Float32bits(y[k]) != math.Float32bits(want) &&
					(y[k] == y[k] || want == want) {
					t.Errorf("of %v and %v: %v, want %v", v, known, y[k], want)
				}
			}
		}
	}
}

// TestVanishing: exponentials that vanish have the bits of the others, around the least
// denormal number and far below.
func TestVanishing(t *testing.T) {
	var results [2][]float32
	x := []float32{0, -1, -87, -88, -103, -103.9, -104, -104.1, -109, -110, -111, -150, -1e9, -3e38, float32(math.Inf(-1)), float32(math.NaN())}
	for k := range 4096 {
		x = append(x, -80-float32(k)/100)
	}
	for k, vanishes := range []bool{false, true} {
		f := load(t, unary(t, func(c *Chain, v Value) Value {
			return c.ExpBelow32(v, vanishes)
		}, 2))
		results[k] = make([]float32, len(x))
		f.unary(x, results[k])
	}
	for k, y := range results[0] {
		if got := results[1][k]; math.Float32bits(got) != math.Float32bits(y) {
			t.Errorf("e^%g is %g, and %g where it vanishes", x[k], y, got)
		}
	}
}
