package reference

import (
	"fmt"
	"math"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// TestErfc compares the expansion of chlo.erfc with the function at 2,001 places.
func TestErfc(t *testing.T) {
	const n = 2001
	for _, typ := range []string{"f32", "bf16"} {
		text := fmt.Sprintf(`func.func @main(%%x: tensor<%[1]dx%[2]s>) -> tensor<%[1]dx%[2]s> {
  %%y = chlo.erfc %%x : tensor<%[1]dx%[2]s> -> tensor<%[1]dx%[2]s>
  return %%y : tensor<%[1]dx%[2]s>
}`, n, typ)
		m, err := hlo.Parse("erfc.mlir", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		x, err := kernels.NewBuffer(m.Entry.Params[0].Shape)
		if err != nil {
			t.Fatal(err)
		}
		for k := range int64(n) {
			x.SetFloat(k, float64(k-n/2)/125)
		}
		x.SetFloat(0, math.Inf(-1))
		x.SetFloat(n-1, math.Inf(1))
		y, err := Interpret(m.Entry, []kernels.Buffer{x})
		if err != nil {
			t.Fatal(err)
		}
		for k := range int64(n) {
			got, want := y[0].Float(k), math.Erfc(x.Float(k))
			// Rounding x² to f32 moves the exponential by x²·ε.
			allowed := 8*Epsilon(x.Shape.DType) + 2*x.Float(k)*x.Float(k)*Epsilon(hlo.F32)
			if math.Abs(got-want) > max(allowed*want, 1e-44) {
				t.Fatalf("erfc(%v) of %s is %v, want %v", x.Float(k), typ, got, want)
			}
		}
	}
}
