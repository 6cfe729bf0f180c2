package gpu

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// erfInvPoints are numbers in [-1, 1]: evenly spaced, near 0 and near ±1.
func erfInvPoints(n int, d hlo.DType) []float64 {
	points := []float64{0, math.Copysign(0, -1), 1, -1}
	for k := len(points); k < n; k++ {
		x := float64(k)/float64(n)*2 - 1
		switch k % 3 {
		case 1:
			x = math.Ldexp(x, -k%40)
		case 2:
			x = math.Copysign(1-math.Ldexp(math.Abs(x), -k%(d.FractionBits()-2)), x)
		}
		points = append(points, d.RoundFloat(x))
	}
	return points
}

// The quotients of a row by one number are within two units of f32: normal, denormal and
// infinite ones, and those of zeros.
func TestSharedQuotients(t *testing.T) {
	const rows, row = 128, 32
	p := kerneltest.Program(t, fmt.Sprintf(
		"x = f32[%[1]d,%[2]d] parameter(0)\ny = f32[%[1]d] parameter(1)\nw = f32[%[1]d,%[2]d] broadcast(y), dimensions={0}\nq = f32[%[1]d,%[2]d] divide(x, w)\n", rows, row))
	k, err := New(simulatedSession(t, "sm_80")).Compile(t.Context(), p, kernels.Plan{Tiles: symtile.Tiling{4, row}}.With("warps", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	rng := rand.New(rand.NewPCG(5, 5))
	pick := func() float64 {
		some := []float64{0, 1, 3, 0x1p-149, 0x1p-127, 0x1.8p-126, 0x1p-64, 0x1p64, 0x1.fp127, math.Inf(1), math.NaN(), math.Copysign(0, -1)}
		if n := rng.IntN(3 * len(some)); n < len(some) {
			return some[n]
		}
		return hlo.F32.RoundFloat(math.Ldexp(rng.NormFloat64(), rng.IntN(260)-130))
	}
	in := make([]kernels.Buffer, 2)
	for i := range in {
		in[i], _ = kernels.NewBuffer(p.Fusion.Params[i].Shape)
		for j := range p.Fusion.Params[i].Shape.Elements() {
			in[i].SetFloat(j, pick())
		}
	}
	out, _ := kernels.NewBuffer(p.Fusion.Root.Shape)
	if _, err := k.Run(t.Context(), in, []kernels.Buffer{out}); err != nil {
		t.Fatal(err)
	}
	for j := range int64(rows * row) {
		x, y, got := in[0].Float(j), in[1].Float(j/row), out.Float(j)
		want := x / y
		if off := offBy(hlo.F32, got, want); !(off <= 2) && !(math.Abs(got-want) <= 0x1p-148) {
			t.Errorf("%v / %v is %v, want %v", x, y, got, want)
		}
	}
}

// Exponentials take two instructions where all that uses them keeps the share by which
// they are off, up to numbers of 16 bits; and never with precise=1.
func TestRoughExponentials(t *testing.T) {
	const rough, exact = 2, 8
	for _, x := range []struct {
		name, text string
		plan       kernels.Plan
		most       int
	}{
		{"rounded at once", "x = f32[512] parameter(0)\ne = f32[512] exponential(x)\nr = bf16[512] convert(e)\n", kernels.Plan{}, rough},
		{"of 16 bits", "x = f16[512] parameter(0)\nr = f16[512] exponential(x)\n", kernels.Plan{}, rough},
		{"denormal numbers", "x = bf16[2048] parameter(0)\nr = bf16[2048] exponential(x)\n", kernels.Plan{}, rough},
		{"of denormal numbers", "x = f32[2048] parameter(0)\ny = f32[2048] parameter(1)\ne = f32[2048] exponential(x)\nd = f32[2048] divide(y, e)\nr = bf16[2048] convert(d)\n", kernels.Plan{}, rough},
		{"not rounded", "x = f32[512] parameter(0)\nr = f32[512] exponential(x)\n", kernels.Plan{}, exact},
		{"two results", "x = f32[512] parameter(0)\ne = f32[512] exponential(x)\nb = bf16[512] convert(e)\nROOT r = (f32[512], bf16[512]) tuple(e, b)\n", kernels.Plan{}, exact},
		{"a difference", "x = f32[512] parameter(0)\ne = f32[512] exponential(x)\nd = f32[512] subtract(e, x)\nr = bf16[512] convert(d)\n", kernels.Plan{}, exact},
		{"a quotient", "x = f32[512] parameter(0)\ne = f32[512] exponential(x)\nd = f32[512] divide(x, e)\nr = bf16[512] convert(d)\n", kernels.Plan{}, rough},
		{"compared", "x = f32[512] parameter(0)\ne = f32[512] exponential(x)\nr = pred[512] compare(e, x), direction=LT\n", kernels.Plan{}, exact},
		{"asked for", "x = f32[512] parameter(0)\ne = f32[512] exponential(x)\nr = bf16[512] convert(e)\n", kernels.Plan{}.With("precise", 1), exact},
	} {
		p := kerneltest.Program(t, x.text)
		plan := x.plan
		plan.Tiles = symtile.Tiling{512}
		s, err := device.ParseSpec("sm_80")
		if err != nil {
			t.Fatal(err)
		}
		plan.Tiles = plan.Tiles[:len(p.Space.Dims)]
		text, err := PTX(p, plan, s)
		if err != nil {
			t.Fatal(err)
		}
		if precise := strings.Contains(text, "fma.rn.sat"); precise != (x.most == exact) {
			t.Errorf("%s: exact is %v", x.name, precise)
		}
		v := kerneltest.Verifier(t, p, 1)
		k, err := New(simulatedSession(t, "sm_80")).Compile(t.Context(), p, plan)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Verify(t.Context(), k); err != nil {
			t.Errorf("%s: %v", x.name, err)
		}
		k.Close()
	}
}

// erf-inv is within a few units in the last place of package math's.
func TestErfInvUlp(t *testing.T) {
	const n = 6000
	for d, bound := range map[hlo.DType]float64{hlo.F32: 4, hlo.F64: 8} {
		text := "x = " + d.String() + "[6000] parameter(0)\nr = " + d.String() + "[6000] erf-inv(x)\n"
		p := kerneltest.Program(t, text)
		k, err := New(simulatedSession(t, "sm_80")).Compile(t.Context(), p, kernels.Plan{Tiles: symtile.Tiling{500}})
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		in, _ := kernels.NewBuffer(p.Fusion.Params[0].Shape)
		out, _ := kernels.NewBuffer(p.Fusion.Root.Shape)
		points := erfInvPoints(n, d)
		for i, x := range points {
			in.SetFloat(int64(i), x)
		}
		if _, err := k.Run(context.Background(), []kernels.Buffer{in}, []kernels.Buffer{out}); err != nil {
			t.Fatal(err)
		}
		worst, at := 0.0, 0.0
		for i, x := range points {
			got, want := out.Float(int64(i)), math.Erfinv(x)
			if math.Abs(x) == 1 || x == 0 {
				if got != want || math.Signbit(got) != math.Signbit(want) {
					t.Errorf("%s: erf-inv(%v) = %v, want %v", d, x, got, want)
				}
				continue
			}
			_, e := math.Frexp(want)
			if off := math.Abs(got-want) / math.Ldexp(1, e-1-d.FractionBits()); !(off <= worst) {
				worst, at = off, x
			}
		}
		t.Logf("%s: %.2f ulp at %v", d, worst, at)
		if !(worst <= bound) {
			t.Errorf("%s: %v ulp at %v, want at most %v", d, worst, at, bound)
		}
	}
}
