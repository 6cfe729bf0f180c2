package gpu

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/kernels/ptx/sim"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// functionSamples is how many bit patterns of f32 and f64 TestFunctions tries; those of
// 16 bits are tried all. With 1<<32 it tries all of f32, for hours.
var functionSamples = flag.Int64("function-samples", 1<<13, "bit patterns of f32 and f64 that TestFunctions tries")

// functionUnits are the units in the last place that functions may be off by before the
// result is rounded to its type: of f32 for types of up to 32 bits, and of f64, on top
// of what the reference is off by (reference.TestFunctions).
var functionUnits = map[hlo.Opcode]struct{ single, double float64 }{
	hlo.OpSine: {2, 3}, hlo.OpCosine: {2, 3}, hlo.OpTan: {4, 6},
	hlo.OpExponential: {3, 2}, hlo.OpExponentialMinusOne: {1, 3}, hlo.OpLogistic: {4, 4},
	hlo.OpLog: {3, 2}, hlo.OpLogPlusOne: {1, 4}, hlo.OpPower: {1, 6},
	hlo.OpSinh: {1, 4}, hlo.OpCosh: {1, 4}, hlo.OpTanh: {5, 6},
	hlo.OpAsinh: {1, 6}, hlo.OpAcosh: {1, 6}, hlo.OpAtanh: {1, 5},
	hlo.OpAsin: {1, 4}, hlo.OpAcos: {1, 4}, hlo.OpAtan2: {1, 4},
	hlo.OpCbrt: {1, 2}, hlo.OpRsqrt: {2, 1}, hlo.OpErf: {6, 5}, hlo.OpErfInv: {4, 8},
}

// roughFunctions are within 2^-17 of their results before these are rounded to 16 bits,
// denormal ones too; what is left of that after rounding is 15 units of f32.
var roughFunctions = map[hlo.Opcode]bool{hlo.OpExponential: true, hlo.OpLogistic: true}

// unitOf is a unit in the last place of the type that results of type d are computed in.
func unitOf(d hlo.DType, x float64) float64 {
	bits, least := 23, -149
	if d == hlo.F64 {
		bits, least = 52, -1074
	}
	_, e := math.Frexp(x)
	return math.Ldexp(1, max(e-1-bits, least))
}

// offBy is by how many units got may not be the result of type d that is want before it
// is rounded: 0 where it is rounded right.
func offBy(d hlo.DType, got, want float64) float64 {
	rounded := d.RoundFloat(want)
	switch {
	case got != got || want != want:
		if (got != got) == (want != want) {
			return 0
		}
		return math.Inf(1)
	case got == rounded:
		if got == 0 && want == 0 && math.Signbit(got) != math.Signbit(want) {
			return math.Inf(1)
		}
		return 0
	case math.IsInf(want, 0) || want == 0:
		return math.Inf(1)
	}
	// What lies between got and the number that is its neighbour on the side of want
	// is rounded to got from their middle on.
	toward := nextOf(d, got, want)
	edge := got/2 + toward/2
	if math.IsInf(got, 0) || math.IsInf(toward, 0) {
		largest := d.FloatFromBits(d.FloatBits(math.Inf(1)) - 1)
		edge = math.Copysign(largest, want)
	}
	if d == hlo.F64 {
		edge = got
	}
	return math.Abs(edge-want) / unitOf(d, want)
}

// nextOf is the number of type d next to x on the side of y.
func nextOf(d hlo.DType, x, y float64) float64 {
	if x == 0 {
		return math.Copysign(d.FloatFromBits(1), y)
	}
	b := d.FloatBits(math.Abs(x))
	if math.Abs(y) > math.Abs(x) && math.Signbit(x) == math.Signbit(y) {
		b++
	} else {
		b--
	}
	return math.Copysign(d.FloatFromBits(b), x)
}

// functionInputs are numbers of type d: all of 16 bits, and of wider types extremes,
// multiples of π/2, numbers near 1 and random bits.
func functionInputs(d hlo.DType) (all []float64) {
	if d.Bits() == 16 {
		for b := range uint64(1 << 16) {
			all = append(all, d.FloatFromBits(b))
		}
		return all
	}
	rng := rand.New(rand.NewPCG(11, uint64(d.Bits())))
	one, inf := d.FloatBits(1), d.FloatBits(math.Inf(1))
	for _, b := range []uint64{0, 1, 2, 3, 1<<d.FractionBits() - 1, 1 << d.FractionBits(), one - 1, one, one + 1, inf - 1, inf, inf + 1} {
		all = append(all, d.FloatFromBits(b))
	}
	for _, x := range []float64{
		0.25, 0.35, 0.3466, 0.5, 0.625, 2, 3, 4, 5.9, 6, 10, 22, 50, 88.7, 89.4, 103, 104, 127, 709.7, 709.9, 710.47, 710.4758600739439, 711, 744, 745.2,
		0x1p31, 0x1p31 - 1, 0x1p52, 0x1p53, 0x1p500, 0x1p511, 0x1p512, 0x1p-26, 0x1p-54, 355,
		6381956970095103 * 0x1p797, 0x1.6ac5b262ca1ffp849, 0x1.f96cbep+101, 105615, 105616,
	} {
		all = append(all, d.RoundFloat(x))
	}
	for k := range 64 {
		all = append(all,
			d.RoundFloat(float64(k)*math.Pi/2), d.RoundFloat(math.Ldexp(math.Pi/2, k*int(d.Bits())/4)),
			d.RoundFloat(1+math.Ldexp(rng.NormFloat64(), -k)), d.RoundFloat(math.Ldexp(rng.NormFloat64(), k/4)))
	}
	n := *functionSamples - 2*int64(len(all))
	for _, x := range all {
		all = append(all, -x)
	}
	for k := range n {
		b := rng.Uint64()
		if d.Bits() == 32 {
			b = uint64(uint32(k) * 0x9e3779b1)
		} else if k%2 == 0 {
			b = math.Float64bits(math.Exp2(60*rng.Float64()-40) * (1 + rng.Float64()) * float64(1-rng.IntN(2)*2))
		}
		all = append(all, d.FloatFromBits(b))
	}
	return all
}

// evaluate runs an operation of a type on a simulator that looks for nothing; it counts
// the instructions of all threads.
func evaluate(t testing.TB, op hlo.Opcode, d hlo.DType, in ...[]float64) (out []float64, instructions int64) {
	t.Helper()
	n := len(in[0])
	text := fmt.Sprintf("x = %[1]s[%[2]d] parameter(0)\nr = %[1]s[%[2]d] %[3]s(x)\n", d, n, op)
	if len(in) == 2 {
		text = fmt.Sprintf("x = %[1]s[%[2]d] parameter(0)\ny = %[1]s[%[2]d] parameter(1)\nr = %[1]s[%[2]d] %[3]s(x, y)\n", d, n, op)
	}
	p := kerneltest.Program(t, text)
	dev := newSimulator("sm_80")
	dev.options = sim.Options{Counters: true}
	s, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) { return dev, nil })
	if err != nil {
		t.Fatal(err)
	}
	k, err := New(s).Compile(t.Context(), p, kernels.Plan{Tiles: symtile.Tiling{512}})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	buffers := make([]kernels.Buffer, len(in))
	for i := range in {
		buffers[i], _ = kernels.NewBuffer(p.Fusion.Params[i].Shape)
		for j, x := range in[i] {
			buffers[i].SetFloat(int64(j), x)
		}
	}
	r, _ := kernels.NewBuffer(p.Fusion.Root.Shape)
	if _, err := k.Run(context.Background(), buffers, []kernels.Buffer{r}); err != nil {
		t.Fatal(err)
	}
	out = make([]float64, n)
	for j := range out {
		out[j] = r.Float(int64(j))
	}
	return out, dev.last.LaneInstructions
}

var floatTypes = []hlo.DType{hlo.F64, hlo.F32, hlo.F16, hlo.BF16}

// Every function of floats is right for all numbers: ordinary ones, infinities, NaN,
// denormal numbers, the ends of each type and huge angles.
func TestFunctions(t *testing.T) {
	for _, d := range floatTypes {
		x := functionInputs(d)
		for _, op := range hlo.Opcodes() {
			if f := reference.FloatUnary(op); f != nil && op.Not(hlo.GPU) == "" {
				got, _ := evaluate(t, op, d, x)
				report(t, op, d, got, func(k int) (float64, string) { return f(x[k]), fmt.Sprint(x[k]) })
			}
		}
	}
}

// pairs are operands of binary functions: every extreme with every other, powers next to
// overflow, quotients that are huge, and random bits.
func pairs(d hlo.DType) (x, y []float64) {
	rng := rand.New(rand.NewPCG(13, uint64(d.Bits())))
	one, inf := d.FloatBits(1), d.FloatBits(math.Inf(1))
	extremes := []float64{0.5, 2, 3, 10, 0.7, 709, 1e4, 0x1p24 + 1, 0x1p31, 0x1p53 - 1, 0x1p53, 1e300, 1e-300, 255}
	for _, b := range []uint64{0, 1, 2, 1<<d.FractionBits() - 1, 1 << d.FractionBits(), one - 1, one, one + 1, inf - 1, inf, inf + 1} {
		extremes = append(extremes, d.FloatFromBits(b))
	}
	for _, a := range extremes {
		for _, b := range extremes {
			for sign := range 4 {
				x = append(x, d.RoundFloat(a*float64(1-sign&1*2)))
				y = append(y, d.RoundFloat(b*float64(1-sign&2)))
			}
		}
	}
	random := func() float64 { return d.FloatFromBits(rng.Uint64() >> (64 - d.Bits())) }
	for int64(len(x)) < max(1<<13, *functionSamples) {
		a, b := random(), random()
		switch len(x) % 3 {
		case 1: // a power of any size
			a = d.RoundFloat(math.Exp(math.Ldexp(rng.NormFloat64(), rng.IntN(30)-22)))
			b = d.RoundFloat(rng.Float64() * 745 / math.Log(a))
			if rng.IntN(2) == 0 {
				b = math.RoundToEven(b)
			}
		case 2:
			a, b = d.RoundFloat(rng.NormFloat64()*100), d.RoundFloat(rng.NormFloat64())
		}
		x, y = append(x, a), append(y, b)
	}
	return x, y
}

// Every function of two floats is right for all pairs of extremes.
func TestBinaryFunctions(t *testing.T) {
	for _, d := range floatTypes {
		x, y := pairs(d)
		for _, op := range hlo.Opcodes() {
			if f := reference.FloatBinary(op); f != nil {
				got, _ := evaluate(t, op, d, x, y)
				report(t, op, d, got, func(k int) (float64, string) {
					return f(x[k], y[k]), fmt.Sprint(x[k], ", ", y[k])
				})
			}
		}
	}
}

// report compares results of an operation with the reference's.
func report(t *testing.T, op hlo.Opcode, d hlo.DType, got []float64, want func(k int) (float64, string)) {
	t.Helper()
	bound := functionUnits[op].single
	if d == hlo.F64 {
		bound = functionUnits[op].double
	}
	if narrowFloat(d) && roughFunctions[op] {
		bound = 16
	}
	worst, at, wrong := 0.0, 0, 0
	for k := range got {
		v, _ := want(k)
		off := offBy(d, got[k], v)
		if !(off <= worst) {
			worst, at = off, k
		}
		if !(off <= bound) {
			wrong++
		}
	}
	v, x := want(at)
	t.Logf("%s of %s: %.2f units, at %s", op, d, worst, x)
	if wrong > 0 {
		t.Errorf("%s of %s: %d of %d are wrong, (%s) is %v, want %v, off by %.2f", op, d, wrong, len(got), x, got[at], v, worst)
	}
}

// functionInstructions are the most instructions of an element for ordinary numbers,
// beyond its load and store.
var functionInstructions = map[hlo.Opcode]struct{ single, double float64 }{
	hlo.OpSine: {26, 32}, hlo.OpCosine: {27, 33}, hlo.OpTan: {35, 41}, hlo.OpExponential: {12, 34},
	hlo.OpLog: {34, 40}, hlo.OpTanh: {27, 59}, hlo.OpLogistic: {22, 38}, hlo.OpErf: {22, 202},
	hlo.OpPower: {102, 133}, hlo.OpRemainder: {19, 16}, hlo.OpCbrt: {89, 87}, hlo.OpAtan2: {51, 48},
}

// What ordinary numbers cost does not grow with what extremes need.
func TestFunctionInstructions(t *testing.T) {
	x, y := make([]float64, 1<<12), make([]float64, 1<<12)
	for k := range x {
		x[k], y[k] = 0.1+0.8*float64(k)/float64(len(x)), 2.5
	}
	for _, d := range []hlo.DType{hlo.F32, hlo.F64} {
		_, unary := evaluate(t, hlo.OpNegate, d, x)
		_, binary := evaluate(t, hlo.OpAdd, d, x, y)
		for op, most := range functionInstructions {
			var n int64
			if reference.FloatUnary(op) != nil {
				_, n = evaluate(t, op, d, x)
				n -= unary
			} else {
				_, n = evaluate(t, op, d, x, y)
				n -= binary
			}
			each, bound := 1+float64(n)/float64(len(x)), most.single
			if d == hlo.F64 {
				bound = most.double
			}
			t.Logf("%s of %s: %.1f instructions an element", op, d, each)
			if each > bound {
				t.Errorf("%s of %s: %.1f instructions an element, want at most %v", op, d, each, bound)
			}
		}
	}
}
