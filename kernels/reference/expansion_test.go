package reference

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// TestErfc compares the expansion of chlo.erfc with the function at 2,001 places.
func TestErfc(t *testing.T) {
	const n = 2001
	least := map[string]float64{"f32": 1e-44, "bf16": 1e-40, "f64": 0, "f8E4M3FN": 0x1p-10} // half of what is denormal
	for _, typ := range []string{"f32", "bf16", "f64", "f8E4M3FN"} {
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
			// Rounding x² moves the exponential by x²·ε.
			d := x.Shape.DType
			allowed := 8*Epsilon(d) + 2*x.Float(k)*x.Float(k)*min(Epsilon(hlo.F32), Epsilon(d))
			if math.Abs(got-want) > max(allowed*want, least[typ]) {
				t.Fatalf("erfc(%v) of %s is %v, want %v", x.Float(k), typ, got, want)
			}
		}
	}
}

// expanded interprets a chlo operation of arrays of n elements.
func expanded(t *testing.T, op, typ string, n int64, operands ...func(k int64) float64) (in []kernels.Buffer, out kernels.Buffer) {
	tensor := fmt.Sprintf("tensor<%dx%s>", n, typ)
	var args, names, types []string
	for k := range operands {
		name := fmt.Sprintf("%%x%d", k)
		names = append(names, name)
		types = append(types, tensor)
		args = append(args, name+": "+tensor)
	}
	text := fmt.Sprintf(
		"func.func @main(%s) -> %s {\n  %%y = chlo.%s %s : %s -> %s\n  return %%y : %s\n}",
		strings.Join(args, ", "), tensor, op, strings.Join(names, ", "), strings.Join(types, ", "), tensor, tensor,
	)
	if len(operands) > 1 {
		text = strings.Replace(text, " -> "+tensor+"\n", "\n", 1)
	}
	m, err := hlo.Parse("f.mlir", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for k, p := range m.Entry.Params {
		x, err := kernels.NewBuffer(p.Shape)
		if err != nil {
			t.Fatal(err)
		}
		for e := range n {
			x.SetFloat(e, operands[k](e))
		}
		in = append(in, x)
	}
	all, err := Interpret(m.Entry, in)
	if err != nil {
		t.Fatal(err)
	}
	return in, all[0]
}

// TestLogGamma compares the expansion of chlo.lgamma with the function.
func TestLogGamma(t *testing.T) {
	const n = 2001
	for typ, off := range map[string]float64{"f64": 1e-14, "f32": 4e-6, "bf16": 8e-3} {
		in, out := expanded(t, "lgamma", typ, n, func(k int64) float64 { return float64(k-n/2) / 128 })
		for k := range int64(n) {
			x := in[0].Float(k)
			want, _ := math.Lgamma(x)
			if got := out.Float(k); got != want && !(math.Abs(got-want) <= off*max(math.Abs(want), 1)) {
				t.Fatalf("lgamma(%v) of %s is %v, want %v", x, typ, got, want)
			}
		}
	}
}

// TestDigamma compares the expansion of chlo.digamma with the recurrence ψ(x+1) =
// ψ(x) + 1/x from the asymptotic series at x ≥ 20, and by reflection on the left.
func TestDigamma(t *testing.T) {
	const n = 2001
	for typ, off := range map[string]float64{"f64": 1e-11, "f32": 1e-4} {
		in, out := expanded(t, "digamma", typ, n, func(k int64) float64 { return (float64(k-n/2) + 0.25) / 128 })
		for k := range int64(n) {
			x := in[0].Float(k)
			want := psi(x)
			if got := out.Float(k); !(math.Abs(got-want) <= off*max(math.Abs(want), 1)) {
				t.Fatalf("digamma(%v) of %s is %v, want %v", x, typ, got, want)
			}
		}
	}
}

// psi is the digamma function by its asymptotic series.
func psi(x float64) float64 {
	if x < 0.5 {
		return psi(1-x) - math.Pi/math.Tan(math.Pi*x)
	}
	sum := 0.0
	for ; x < 20; x++ {
		sum -= 1 / x
	}
	s := 1 / (x * x)
	return sum + math.Log(x) - 1/(2*x) - s*(1.0/12-s*(1.0/120-s*(1.0/252-s/240)))
}

// TestNextAfter compares the expansion of chlo.next_after with the function, from and
// to numbers of both signs, zeros, infinities and NaN.
func TestNextAfter(t *testing.T) {
	places := []float64{0, math.Copysign(0, -1), 1, -1, math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64, math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN(), 3.5, -2}
	n := int64(len(places))
	in, out := expanded(
		t, "next_after", "f64", n*n,
		func(k int64) float64 { return places[k/n] }, func(k int64) float64 { return places[k%n] },
	)
	for k := range n * n {
		x, y := in[0].Float(k), in[1].Float(k)
		got, want := out.Float(k), math.Nextafter(x, y)
		if x == y {
			want = y // of zeros the sign of y
		}
		if math.Float64bits(got) != math.Float64bits(want) && !(got != got && want != want) {
			t.Errorf("nextafter(%v, %v) is %v, want %v", x, y, got, want)
		}
	}
}
