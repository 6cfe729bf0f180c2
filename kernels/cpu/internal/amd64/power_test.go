//go:build linux && amd64 && !noasm

package amd64

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// ofTwo returns a kernel that applies f to the elements of two arrays.
func ofTwo(t testing.TB, f func(c *Chain, x, y Value) Value) Func {
	t.Helper()
	a := &Assembler{}
	a.Emit(MOV, RAX, Mem{Base: RDI})
	a.Emit(MOV, RSI, Mem{Base: RDI, Disp: 8})
	a.Emit(MOV, RDX, Mem{Base: RDI, Disp: 16})
	a.Emit(MOV, R8, Mem{Base: RDI, Disp: 24})
	c := &Chain{}
	x := c.Load(VMOVUPS, Mem{Base: RSI}, 32)
	y := c.Load(VMOVUPS, Mem{Base: RDX}, 32)
	c.Store(VMOVUPS, Mem{Base: R8}, 32, f(c, x, y))
	l := &Loop{
		Chain:    c,
		Counter:  RAX,
		Pointers: []Pointer{{RSI, 4}, {RDX, 4}, {R8, 4}},
		Width:    4,
		Copies:   2,
		Scratch:  RCX,
		Mask:     Y15,
	}
	if err := l.Emit(a); err != nil {
		t.Fatal(err)
	}
	a.Emit(RET)
	return load(t, a)
}

// ofTwo applies the kernel.
func (f Func) ofTwo(x, y, z []float32) {
	f.Call(unsafe.Pointer(&struct {
		n       int
		x, y, z *float32
	}{len(x), unsafe.SliceData(x), unsafe.SliceData(y), unsafe.SliceData(z)}))
}

// powerBound is the error of a power in ulp.
const powerBound = 1.5

// TestPower holds powers of numbers of every kind to package math: of all bits, of those whose result is a number, near 1
// with large exponents, and whole exponents of negative numbers.
func TestPower(t *testing.T) {
	kernel := ofTwo(t, (*Chain).Power32)
	random := rand.New(rand.NewPCG(1, 2))
	bits := func() float32 { return math.Float32frombits(random.Uint32()) }
	rounds := 100
	if testing.Short() {
		rounds = 20
	}
	for name, pair := range map[string]func() (x, y float32){
		"bits": func() (x, y float32) { return bits(), bits() },
		"in range": func() (x, y float32) {
			x = math.Float32frombits(random.Uint32() & magnitude)
			return x, float32((random.Float64()*280 - 150) / math.Log2(float64(x)))
		},
		"near 1": func() (x, y float32) {
			x = float32(1 + (random.Float64()-0.5)*math.Exp2(-float64(random.IntN(24))))
			return x, float32((random.Float64()*280 - 150) / math.Log2(float64(x)))
		},
		"whole exponents": func() (x, y float32) {
			return float32(random.NormFloat64() * 3), float32(random.IntN(101) - 50)
		},
	} {
		worst, at := 0.0, [2]float32{}
		x, y, z := make([]float32, 4096), make([]float32, 4096), make([]float32, 4096)
		for range rounds {
			for k := range x {
				x[k], y[k] = pair()
			}
			kernel.ofTwo(x, y, z)
			for k := range x {
				if e := ulps(z[k], math.Pow(float64(x[k]), float64(y[k]))); !(e <= worst) {
					worst, at = e, [2]float32{x[k], y[k]}
				}
			}
		}
		t.Logf("%s: %.3f ulp at %v", name, worst, at)
		if !(worst <= powerBound) {
			t.Errorf("%s: %v ulp at %v, want ≤ %v", name, worst, at, powerBound)
		}
	}
}

// TestPowerEdges holds all pairs of special numbers to package math.
func TestPowerEdges(t *testing.T) {
	inf := float32(math.Inf(1))
	special := []float32{
		0, float32(math.Copysign(0, -1)), inf, -inf, float32(math.NaN()), 1, -1, 0.5, -0.5, 1.5, -1.5, 2, -2, 3, -3, 4,
		1<<24 - 1, 1 - 1<<24, 1 << 24, -1 << 24, 8388607.5, math.MaxFloat32, -math.MaxFloat32,
		math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, 1e-39, -1e-39,
		math.Nextafter32(1, 0), math.Nextafter32(1, 2), math.Nextafter32(-1, 0),
	}
	kernel := ofTwo(t, (*Chain).Power32)
	for _, y := range special {
		constant := load(t, unary(t, func(c *Chain, x Value) Value {
			return c.Power32(x, c.Float32(float64(y)))
		}, 2))
		z, known := make([]float32, len(special)), make([]float32, len(special))
		exponents := make([]float32, len(special))
		for k := range exponents {
			exponents[k] = y
		}
		kernel.ofTwo(special, exponents, z)
		constant.unary(special, known)
		for k, x := range special {
			exact := math.Pow(float64(x), float64(y))
			for _, got := range []float32{z[k], known[k]} {
				if e := ulps(got, exact); !(e <= powerBound) {
					t.Errorf("%v^%v = %v, want %v", x, y, got, float32(exact))
				}
			}
		}
	}
}

// TestKnownPowers holds powers of known exponents to package math over one f32 in 9973.
func TestKnownPowers(t *testing.T) {
	for _, exponent := range []float64{-1.5, -1, -0.5, 0.5, 1, 2, 2.5, 3, 4} {
		kernel := load(t, unary(t, func(c *Chain, x Value) Value {
			return c.Power32(x, c.Float32(exponent))
		}, 4))
		worst, at := 0.0, float32(0)
		x, y := make([]float32, 4096), make([]float32, 4096)
		for from := uint64(0); from < 1<<32; from += 9973 * uint64(len(x)) {
			for k := range x {
				x[k] = math.Float32frombits(uint32(from + 9973*uint64(k)))
			}
			kernel.unary(x, y)
			for k, v := range x {
				if e := ulps(y[k], math.Pow(float64(v), exponent)); !(e <= worst) {
					worst, at = e, v
				}
			}
		}
		t.Logf("%v: %.3f ulp at %v", exponent, worst, at)
		if !(worst <= powerBound) {
			t.Errorf("x^%v: %v ulp at %v, want ≤ %v", exponent, worst, at, powerBound)
		}
	}
}

// BenchmarkPower is the time of 2048 elements that stay in L1.
func BenchmarkPower(b *testing.B) {
	for name, f := range map[string]func(c *Chain, x, y Value) Value{
		"any":  (*Chain).Power32,
		"-1.5": func(c *Chain, x, _ Value) Value { return c.Power32(x, c.Float32(-1.5)) },
		"-0.5": func(c *Chain, x, _ Value) Value { return c.Power32(x, c.Float32(-0.5)) },
	} {
		b.Run(name, func(b *testing.B) {
			kernel := ofTwo(b, f)
			x, y, z := make([]float32, 2048), make([]float32, 2048), make([]float32, 2048)
			for k := range x {
				x[k], y[k] = float32(k)/512+0.1, float32(k%7)-2.5
			}
			best(b, len(x), "element", func() { kernel.ofTwo(x, y, z) })
		})
	}
	b.Run("package math", func(b *testing.B) {
		best(b, 1024, "element", func() {
			for k := range 1024 {
				sink += float32(math.Pow(float64(k)/512+0.1, -1.5))
			}
		})
	})
}

var sink float32
