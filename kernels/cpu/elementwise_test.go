package cpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

var types = []string{
	"f32", "f64", "bf16", "f16", "f8e4m3fn", "s8", "s16", "s32",
	"s64", "u8", "u16", "u32", "u64", "pred", "s1", "u1", "s4", "u2", "f4e2m1fn",
}

// operationTexts are small programs with one operation each on type d; not all
// of them are valid.
func operationTexts(d string) []string {
	var texts []string
	add := func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		texts = append(texts, strings.ReplaceAll(text, "T[", d+"["))
	}
	for _, op := range hlo.Opcodes() {
		operands, _ := op.Arity()
		switch {
		case !op.Elementwise() || op == hlo.OpCompare || op == hlo.OpConvert:
		case op == hlo.OpIsFinite:
			add("x = T[7,83] parameter(0)\nr = pred[7,83] is-finite(x)")
		case operands == 1:
			add("x = T[7,83] parameter(0)\nr = T[7,83] %s(x)", op)
		case operands == 2:
			add("x = T[7,83] parameter(0)\ny = T[7,83] parameter(1)\nr = T[7,83] %s(x, y)", op)
		}
	}
	for _, dir := range []string{"EQ", "NE", "LT", "LE", "GT", "GE"} {
		add("x = T[7,83] parameter(0)\ny = T[7,83] parameter(1)\nr = pred[7,83] compare(x, y), direction=%s", dir)
	}
	for _, to := range types {
		add("x = T[7,83] parameter(0)\nr = %s[7,83] convert(x)", to)
	}
	for _, m := range []string{"add", "maximum", "minimum", "multiply", "and", "or"} {
		add("x = T[7,83] parameter(0)\nz = T[] parameter(1)\nr = T[83] reduce(x, z), dimensions={0}, to_apply=%s", m)
		add("x = T[7,83] parameter(0)\nz = T[] parameter(1)\nr = T[7] reduce(x, z), dimensions={1}, to_apply=%s", m)
	}
	add("x = T[7,83] parameter(0)\nlo = T[] parameter(1)\nhi = T[] parameter(2)\nr = T[7,83] clamp(lo, x, hi)")
	add("x = T[7,33] parameter(0)\ny = T[33,19] parameter(1)\nr = T[7,19] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}")
	return texts
}

// Every operation on every type gives the reference's results and allocates
// nothing, or is refused by both.
func TestOperationsByType(t *testing.T) {
	same, refused, invalid := 0, 0, 0
	for _, d := range types {
		for _, text := range operationTexts(d) {
			m, err := hlo.Parse("ops", []byte(text))
			if err != nil {
				invalid++
				continue
			}
			if runsLikeReference(t, text, m.Entry) {
				same++
			} else {
				refused++
			}
		}
	}
	if t.Logf("%d agree, %d refused by both, %d invalid", same, refused, invalid); same < 700 {
		t.Errorf("only %d agree", same)
	}
}

// runsLikeReference compares a fusion at tiles of 16 with the reference; false
// when both refuse it.
func runsLikeReference(t *testing.T, text string, c *hlo.Computation) bool {
	p, err := symtile.Analyze(t.Context(), c)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	v, noReference := check.NewVerifier(context.Background(), c, 1)
	tiling := make(symtile.Tiling, len(p.Space.Dims))
	for k, d := range p.Space.Dims {
		tiling[k] = min(d.Extent, 16)
	}
	k, err := New().Compile(context.Background(), p, kernels.Plan{Tiles: tiling})
	if (err == nil) != (noReference == nil) {
		t.Errorf("%v; the reference: %v\n%s", err, noReference, text)
	}
	if err != nil || noReference != nil {
		if no := (*kernels.Rejected)(nil); err != nil && !errors.As(err, &no) {
			t.Errorf("%v\n%s", err, text)
		}
		return false
	}
	defer k.Close()
	if err := v.Verify(context.Background(), k); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	bench, err := check.NewBench(context.Background(), c, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	const runs = 3 // of which the runtime may allocate once by itself
	if n := testing.AllocsPerRun(runs, func() {
		bench.Run(context.Background(), k)
	}); n > 0 {
		t.Errorf("%v allocations a run\n%s", n, text)
	}
	return true
}

// The quick loops against package math over a spread of all f32 numbers.
func TestQuickLoops(t *testing.T) {
	oracle := map[hlo.Opcode]func(float64) float64{
		hlo.OpExponential: math.Exp,
		hlo.OpTanh:        math.Tanh,
		hlo.OpLogistic:    func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
	}
	for op, f := range portable.ExpLoops {
		worst, at := 0.0, float32(0)
		for bits := uint64(0); bits < 1<<32; bits += 1009 {
			x := [1]float32{math.Float32frombits(uint32(bits))}
			var y [1]float32
			f(y[:], x[:])
			want := oracle[op](float64(x[0]))
			if w := float32(want); w != w ||
				math.IsInf(float64(w), 0) ||
				y[0] != y[0] {
				if math.Float32bits(w) != math.Float32bits(y[0]) &&
					!(w != w && y[0] != y[0]) {
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

// TestSquares: a power of 2 is a product, with the bits of it, of every floating-point
// type; other powers and those of integers are not. PyTorch's norms have it, and the
// function took a microsecond an element.
func TestSquares(t *testing.T) {
	for _, d := range []string{"f32", "f64", "bf16", "f16"} {
		source := func(of string) string {
			m, err := hlo.Parse("test", fmt.Appendf(nil, `ENTRY e {
  x = %[1]s[3,500] parameter(0)
  two = %[1]s[] constant(2)
  twos = %[1]s[3,500] broadcast(two), dimensions={}
  one = %[1]s[] constant(1)
  ones = %[1]s[3,500] broadcast(one), dimensions={}
  y = %[1]s[3,500] %[2]s
  ROOT z = %[1]s[3,500] add(y, ones)
}
`, d, of))
			if err != nil {
				t.Fatal(err)
			}
			p, err := symtile.Analyze(t.Context(), m.Entry)
			if err != nil {
				t.Fatal(err)
			}
			b := New()
			plan, err := b.Default(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			k, err := b.Compile(t.Context(), p, plan)
			if err != nil {
				t.Fatal(err)
			}
			defer k.Close()
			v, err := check.NewVerifier(t.Context(), p.Fusion, 1)
			if err == nil {
				err = v.Verify(t.Context(), k)
			}
			if err != nil {
				t.Errorf("%s %s: %v", d, of, err)
			}
			return k.Source()
		}
		if s := source("power(x, twos)"); strings.Contains(s, "power") {
			t.Errorf("%s: power(x, 2) is\n%s", d, s)
		}
		if s := source("power(x, ones)"); !strings.Contains(s, "power") {
			t.Errorf("%s: power(x, 1) is\n%s", d, s)
		}
	}
}
