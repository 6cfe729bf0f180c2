package gpu

import (
	"context"
	"math"
	"testing"

	"github.com/tilewright/tilewright/kernels"
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
