package cpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Every elementwise operation on every type gives the reference's results, or
// is refused by both.
func TestOperationsByType(t *testing.T) {
	types := []string{"f32", "f64", "bf16", "f16", "f8e4m3fn", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "pred"}
	var texts []string
	for _, d := range types {
		for _, op := range []string{"abs", "cbrt", "ceil", "cosine", "count-leading-zeros", "erf", "exponential", "exponential-minus-one", "floor", "logistic", "negate", "not", "popcnt", "round-nearest-even", "rsqrt", "sign", "sine", "sqrt", "tanh"} {
			texts = append(texts, fmt.Sprintf("x = %s[7,83] parameter(0)\nr = %s[7,83] %s(x)", d, d, op))
		}
		for _, op := range []string{"add", "and", "divide", "maximum", "minimum", "multiply", "or", "power", "remainder", "shift-left", "shift-right-arithmetic", "shift-right-logical", "subtract", "xor", "atan2"} {
			texts = append(texts, fmt.Sprintf("x = %s[7,83] parameter(0)\ny = %s[7,83] parameter(1)\nr = %s[7,83] %s(x, y)", d, d, d, op))
		}
		for _, dir := range []string{"EQ", "NE", "LT", "LE", "GT", "GE"} {
			texts = append(texts, fmt.Sprintf("x = %s[7,83] parameter(0)\ny = %s[7,83] parameter(1)\nr = pred[7,83] compare(x, y), direction=%s", d, d, dir))
		}
		for _, to := range types {
			texts = append(texts, fmt.Sprintf("x = %s[7,83] parameter(0)\nr = %s[7,83] convert(x)", d, to))
		}
		for _, m := range []string{"add", "maximum", "minimum", "multiply", "and"} {
			if m == "and" && strings.Contains(d, "f") {
				continue
			}
			for dim := range 2 {
				texts = append(texts, fmt.Sprintf("x = %s[7,83] parameter(0)\nz = %s[] parameter(1)\nr = %s[%d] reduce(x, z), dimensions={%d}, to_apply=%s", d, d, d, []int{83, 7}[dim], dim, m))
			}
		}
		texts = append(texts,
			fmt.Sprintf("x = %s[7,83] parameter(0)\nlo = %s[] parameter(1)\nhi = %s[] parameter(2)\nr = %s[7,83] clamp(lo, x, hi)", d, d, d, d),
			fmt.Sprintf("x = %s[7,33] parameter(0)\ny = %s[33,19] parameter(1)\nr = %s[7,19] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}", d, d, d))
	}
	same, refused := 0, 0
	for _, text := range texts {
		m, err := hlo.Parse("ops", []byte(text))
		if err != nil {
			continue // the front end says no
		}
		p, err := symtile.Analyze(m.Entry)
		if err != nil {
			continue
		}
		v, noReference := kernels.NewVerifier(m.Entry, 1)
		tiling := make(symtile.Tiling, len(p.Space.Dims))
		for k, d := range p.Space.Dims {
			tiling[k] = min(d.Extent, 16)
		}
		k, err := New().Compile(context.Background(), p, kernels.Plan{Tiles: tiling})
		var no *kernels.Rejected
		if errors.As(err, &no) {
			if refused++; noReference == nil {
				t.Errorf("refused, the reference computes it: %v\n%s", err, text)
			}
			continue
		}
		if err != nil || noReference != nil {
			t.Errorf("%v; the reference: %v\n%s", err, noReference, text)
			continue
		}
		if err := v.Verify(context.Background(), k); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
		k.Close()
		same++
	}
	t.Logf("%d agree, %d refused by both", same, refused)
}

// The quick loops against package math over a spread of all f32 numbers.
func TestQuickLoops(t *testing.T) {
	oracle := map[hlo.Opcode]func(float64) float64{"exponential": math.Exp, "tanh": math.Tanh, "logistic": func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }}
	for op, f := range quick {
		worst, at := 0.0, float32(0)
		for bits := uint64(0); bits < 1<<32; bits += 1009 {
			x := [1]float32{math.Float32frombits(uint32(bits))}
			var y [1]float32
			f(y[:], x[:])
			want := oracle[op](float64(x[0]))
			if w := float32(want); w != w || math.IsInf(float64(w), 0) || y[0] != y[0] {
				if math.Float32bits(w) != math.Float32bits(y[0]) && !(w != w && y[0] != y[0]) {
					t.Fatalf("%s(%v) = %v, want %v", op, x[0], y[0], w)
				}
				continue
			}
			unit := math.Max(math.Ldexp(1, -149), math.Abs(want)*0x1p-24)
			if d := math.Abs(float64(y[0])-want) / unit / 2; d > worst {
				worst, at = d, x[0]
			}
		}
		t.Logf("%s: at most %.4f of |result|·2⁻²³ (at %v)", op, worst, at)
		if worst > 1 {
			t.Errorf("%s is %v units off at %v", op, worst, at)
		}
	}
}
