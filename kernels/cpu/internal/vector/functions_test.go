//go:build linux && amd64 && !noasm

package vector

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// applied returns a function that applies f to arrays of f64, the last of which is the
// result.
func applied(t testing.TB, operands int, f func(c *amd64.Chain, x []amd64.Value) amd64.Value) func(arrays ...[]float64) {
	t.Helper()
	type block struct {
		n  int
		at [4]*float64
	}
	kernel, ok := LoadRoutine(func(a *amd64.Assembler) error {
		regs := []amd64.Reg{amd64.RSI, amd64.RDX, amd64.R8, amd64.R9}
		a.Emit(amd64.MOV, amd64.RAX, amd64.Mem{Base: amd64.RDI})
		c := &amd64.Chain{}
		l := &amd64.Loop{
			Chain: c, Counter: amd64.RAX, Width: 8, Copies: 2,
			Scratch: amd64.RCX, Mask: amd64.Y15,
		}
		var x []amd64.Value
		for k, r := range regs[:operands+1] {
			a.Emit(amd64.MOV, r, amd64.Mem{Base: amd64.RDI, Disp: int32(8 + 8*k)})
			l.Pointers = append(l.Pointers, amd64.Pointer{Reg: r, Bytes: 8})
			if k < operands {
				x = append(x, c.Load(amd64.VMOVUPD, amd64.Mem{Base: r}, 32))
			}
		}
		c.Store(amd64.VMOVUPD, amd64.Mem{Base: regs[operands]}, 32, f(c, x))
		return l.Emit(a)
	})
	if !ok {
		t.Fatal("not assembled")
	}
	return func(arrays ...[]float64) {
		args := block{n: len(arrays[0])}
		for k, x := range arrays {
			args.at[k] = unsafe.SliceData(x)
		}
		kernel.Call(unsafe.Pointer(&args))
	}
}

// ulps64 is the distance of two f64 in units of the last place of the second, where both are
// numbers; +Inf where one is not or a zero has the wrong sign.
func ulps64(got, want float64) float64 {
	if math.Float64bits(got) == math.Float64bits(want) || got != got && want != want {
		return 0
	}
	if got-got != 0 || want-want != 0 || want == 0 {
		return math.Inf(1)
	}
	_, e := math.Frexp(want)
	return math.Abs(got-want) / math.Ldexp(1, max(e-53, -1074))
}

// special64 are the arguments that functions are always held to the reference at.
var special64 = []float64{
	0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1, -1, 0.5, -0.5, 2, -2,
	math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64, math.MaxFloat64, -math.MaxFloat64,
	2.2250738585072014e-308, 1e-310, -1e-310, 709.78, 709.7827128933841, -745.1332191019411,
	-745.1332191019412, -708.4, 710.4758600739439, 710.475860073944, 711, -711, 20, -20, 37, -37, 40, -40,
	math.Nextafter(1, 0), math.Nextafter(1, 2), math.Pi / 2, math.Pi, 1e9, 5.9, 6.1, -6.1, 1e154, 1e155, 1e-8,
}

// argument64 is a number of any bits, or of a range where most functions vary.
func argument64(random *rand.Rand) float64 {
	switch random.IntN(4) {
	case 0:
		return math.Float64frombits(random.Uint64())
	case 1:
		return random.NormFloat64() * 3
	case 2:
		return random.NormFloat64() * math.Exp2(float64(random.IntN(80)-40))
	}
	return random.Float64()*1500 - 750
}

// functions64 are the functions of f64 with their bounds in ulp, the unit or so included that
// the reference is off by.
var functions64 = map[hlo.Opcode]struct {
	emit  func(*amd64.Chain, amd64.Value) amd64.Value
	bound float64
	most  float64 // magnitude of arguments, 0 for all
}{
	hlo.OpExponential:         {(*amd64.Chain).Exp64, 2, 0},
	hlo.OpExponentialMinusOne: {(*amd64.Chain).Expm164, 2.5, 0},
	hlo.OpLog:                 {(*amd64.Chain).Log64, 1.5, 0},
	hlo.OpLogPlusOne:          {(*amd64.Chain).Log1p64, 2.5, 0},
	hlo.OpTanh:                {(*amd64.Chain).Tanh64, 3.5, 0},
	hlo.OpLogistic:            {(*amd64.Chain).Logistic64, 3.5, 0},
	hlo.OpErf:                 {(*amd64.Chain).Erf64, 2, 0},
	hlo.OpSine:                {(*amd64.Chain).Sin64, 2, amd64.LargestAngle64},
	hlo.OpCosine:              {(*amd64.Chain).Cos64, 2, amd64.LargestAngle64},
	hlo.OpTan:                 {(*amd64.Chain).Tan64, 4, amd64.LargestAngle64},
	hlo.OpAsin:                {(*amd64.Chain).Asin64, 4, 0},
	hlo.OpAcos:                {(*amd64.Chain).Acos64, 4, 0},
	hlo.OpSinh:                {(*amd64.Chain).Sinh64, 4, 0},
	hlo.OpCosh:                {(*amd64.Chain).Cosh64, 4, 0},
	hlo.OpAsinh:               {(*amd64.Chain).Asinh64, 4, 0},
	hlo.OpAcosh:               {(*amd64.Chain).Acosh64, 4, 0},
	hlo.OpAtanh:               {(*amd64.Chain).Atanh64, 4, 0},
	hlo.OpCbrt:                {(*amd64.Chain).Cbrt64, 2, 0},
}

// TestUlp64 measures how far functions of f64 are from the reference's.
func TestUlp64(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 4
	}
	for op, f := range functions64 {
		apply := applied(t, 1, func(c *amd64.Chain, x []amd64.Value) amd64.Value { return f.emit(c, x[0]) })
		exact := reference.FloatUnary(op)
		random := rand.New(rand.NewPCG(1, 2))
		worst, at, is := 0.0, 0.0, 0.0
		x, y := make([]float64, 4093), make([]float64, 4093)
		for range rounds {
			for k := range x {
				x[k] = argument64(random)
			}
			copy(x, special64)
			apply(x, y)
			for k, v := range x {
				if f.most != 0 && !(math.Abs(v) < f.most) {
					continue
				}
				if e := ulps64(y[k], exact(v)); !(e <= worst) {
					worst, at, is = e, v, y[k]
				}
			}
		}
		t.Logf("%s: %.3f ulp at %v: %v", op, worst, at, is)
		if !(worst <= f.bound) {
			t.Errorf("%s: %v ulp at %v: %v, want %v", op, worst, at, is, exact(at))
		}
	}
}

// TestPairs64 holds functions of two f64 to the reference, remainders exactly.
func TestPairs64(t *testing.T) {
	for op, f := range map[hlo.Opcode]struct {
		emit  func(c *amd64.Chain, x, y amd64.Value) amd64.Value
		bound float64
	}{
		hlo.OpPower:     {(*amd64.Chain).Power64, 3},
		hlo.OpAtan2:     {(*amd64.Chain).Atan264, 3},
		hlo.OpRemainder: {(*amd64.Chain).Remainder64, 0},
	} {
		apply := applied(t, 2, func(c *amd64.Chain, x []amd64.Value) amd64.Value { return f.emit(c, x[0], x[1]) })
		exact := reference.FloatBinary(op)
		random := rand.New(rand.NewPCG(3, 4))
		n := len(special64) * len(special64)
		x, y, z := make([]float64, n), make([]float64, n), make([]float64, n)
		worst, at := 0.0, [3]float64{}
		for round := range 40 {
			for k := range x {
				x[k], y[k] = argument64(random), argument64(random)
				switch {
				case round == 0:
					x[k], y[k] = special64[k/len(special64)], special64[k%len(special64)]
				case op == hlo.OpPower && round%2 == 0:
					y[k] = (random.Float64()*2100 - 1075) / math.Log2(math.Abs(x[k]))
				case round%4 == 1:
					y[k] = float64(random.IntN(101) - 50)
				}
			}
			apply(x, y, z)
			for k := range x {
				if op == hlo.OpRemainder && !(math.Abs(x[k]) < amd64.LargeQuotient*math.Abs(y[k])) {
					continue
				}
				if e := ulps64(z[k], exact(x[k], y[k])); !(e <= worst) {
					worst, at = e, [3]float64{x[k], y[k], z[k]}
				}
			}
		}
		t.Logf("%s: %.3f ulp at %v", op, worst, at)
		if !(worst <= f.bound) {
			t.Errorf("%s: %v ulp at %v, want %v", op, worst, at, exact(at[0], at[1]))
		}
	}
}
