package gpu

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// elementwiseCases are the operations by the classes of types they are tried
// on, as text with D for the type.
var elementwiseCases = map[string][]string{
	"f": {"cbrt(x)", "ceil(x)", "cosine(x)", "erf(x)", "erf-inv(x)", "erf-inv(w)", "exponential(x)", "exponential-minus-one(x)", "floor(x)", "log(y)", "log(x)", "log-plus-one(x)", "logistic(x)",
		"round-nearest-afz(x)", "round-nearest-even(x)", "rsqrt(y)", "sine(x)", "sqrt(y)", "tan(x)", "tanh(x)", "acos(x)", "acosh(y)", "asin(x)", "asinh(x)", "atanh(x)",
		"cosh(x)", "sinh(x)", "atan2(x, z)", "power(y, x)", "power(x, z)", "remainder(x, z)"},
	"r": {"reduce-precision(x), exponent_bits=8, mantissa_bits=7", "reduce-precision(x), exponent_bits=5, mantissa_bits=2", "reduce-precision(x), exponent_bits=2, mantissa_bits=30"},
	"i": {"popcnt(x)", "count-leading-zeros(x)", "not(x)", "shift-left(x, y)", "shift-right-arithmetic(x, y)", "shift-right-logical(x, y)", "remainder(x, z)", "and(x, z)", "or(x, z)", "xor(x, z)"},
	"n": {"copy(x)", "real(x)", "abs(x)", "sign(x)", "negate(x)", "add(x, z)", "subtract(x, z)", "multiply(x, z)", "divide(x, z)", "maximum(x, z)", "minimum(x, z)", "clamp(z, x, y)"},
}

// Every elementwise operation gives the reference's results, of every type.
func TestElementwiseOnSimulator(t *testing.T) {
	classes := map[string]string{
		"f32":  "fnr",
		"f64":  "fn",
		"f16":  "fn",
		"bf16": "fnr",
		"s8":   "in",
		"s16":  "in",
		"s32":  "in",
		"s64":  "in",
		"u8":   "in",
		"u16":  "in",
		"u32":  "in",
		"u64":  "in",
	}
	for d, names := range classes {
		for _, class := range names {
			for _, op := range elementwiseCases[string(class)] {
				if d[0] == 'u' && (strings.HasPrefix(op, "negate") || strings.HasPrefix(op, "abs")) {
					continue
				}
				text := fmt.Sprintf("x = %[1]s[100] parameter(0)\nz = %[1]s[100] parameter(1)\ny = %[1]s[100] multiply(x, x)\nr = %[1]s[100] %[2]s\n", d, op)
				if strings.Contains(op, "(w)") { // a number between -1 and 1
					text = strings.Replace(text, "r = ", fmt.Sprintf("w = %s[100] tanh(x)\nr = ", d), 1)
				}
				checkText(t, text, kernels.Plan{Tiles: symtile.Tiling{100}})
			}
		}
	}
}

// Every elementwise operation that has code is among the cases, or among those of
// TestConversionsOnSimulator, which are not of one type.
func TestElementwiseCasesAreComplete(t *testing.T) {
	tried := map[hlo.Opcode]bool{
		hlo.OpBitcastConvert: true, hlo.OpCompare: true, hlo.OpConvert: true,
		hlo.OpIsFinite: true, hlo.OpSelect: true,
		// Written as others by symtile: see testdata/programs.txt.
		hlo.OpComplex: true, hlo.OpImag: true, hlo.OpStochasticConvert: true,
	}
	for _, cases := range elementwiseCases {
		for _, text := range cases {
			name, _, _ := strings.Cut(text, "(")
			tried[hlo.Opcode(name)] = true
		}
	}
	for _, op := range hlo.Opcodes() {
		if op.Elementwise() && op.Not(hlo.GPU) == "" && !tried[op] {
			t.Errorf("elementwiseCases has no case for %s", op)
		}
	}
}

// Conversions between all pairs of types, comparisons of all, and the other operations
// whose operands and results differ in type.
func TestConversionsOnSimulator(t *testing.T) {
	types := []string{
		"pred", "s4", "u4", "s8", "s16", "s32", "s64", "u8",
		"u16", "u32", "u64", "f16", "bf16", "f32", "f64",
	}
	for _, from := range types {
		for _, to := range types {
			checkText(t, fmt.Sprintf("x = %s[100] parameter(0)\nr = %s[100] convert(x)\n", from, to), kernels.Plan{Tiles: symtile.Tiling{100}})
		}
		for _, direction := range []string{"EQ", "NE", "LT", "LE", "GT", "GE"} {
			checkText(t, fmt.Sprintf("x = %[1]s[100] parameter(0)\nz = %[1]s[100] parameter(1)\nr = pred[100] compare(x, z), direction=%[2]s\n", from, direction), kernels.Plan{Tiles: symtile.Tiling{100}})
		}
	}
	for _, small := range []string{
		"f4e2m1fn", "f8e3m4", "f8e4m3", "f8e4m3fn", "f8e4m3b11fnuz", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0fnu",
	} {
		for _, text := range []string{
			"x = T[100] parameter(0)\nr = f32[100] convert(x)\n",
			"x = f32[100] parameter(0)\nr = T[100] convert(x)\n",
			"x = f64[100] parameter(0)\nr = T[100] convert(x)\n",
			"x = bf16[100] parameter(0)\nr = T[100] convert(x)\n",
			"x = s32[100] parameter(0)\nr = T[100] convert(x)\n",
			"x = T[100] parameter(0)\ny = T[100] parameter(1)\nz = T[100] add(x, y)\nr = T[100] multiply(z, x)\n",
			"x = T[100] parameter(0)\ny = T[100] parameter(1)\nr = T[100] maximum(x, y)\n",
			"x = T[100] parameter(0)\ny = T[100] tanh(x)\nr = T[100] negate(y)\n",
			"x = T[100] parameter(0)\nr = T[100] reverse(x), dimensions={0}\n",
		} {
			checkText(t, strings.ReplaceAll(text, "T[", small+"["), kernels.Plan{Tiles: symtile.Tiling{100}})
		}
	}
	for _, text := range []string{
		"x = f32[100] parameter(0)\ny = f32[100] log(x)\nr = pred[100] is-finite(y)\n",
		"x = f64[100] parameter(0)\ny = f64[100] log(x)\nr = pred[100] is-finite(y)\n",
		"x = bf16[100] parameter(0)\ny = bf16[100] log(x)\nr = pred[100] is-finite(y)\n",
		"x = s32[100] parameter(0)\nr = f32[100] bitcast-convert(x)\n",
		"x = u16[100] parameter(0)\nr = f16[100] bitcast-convert(x)\n",
		"x = f32[100] parameter(0)\nz = f32[100] parameter(1)\np = pred[100] compare(x, z), direction=LT\nr = f32[100] select(p, x, z)\n",
		"x = s64[100] parameter(0)\nz = s64[100] parameter(1)\np = pred[100] compare(x, z), direction=LT\nr = s64[100] select(p, x, z)\n",
	} {
		checkText(t, text, kernels.Plan{Tiles: symtile.Tiling{100}})
	}
}

// checkText verifies a plan of a program on the simulator.
func checkText(t *testing.T, text string, plan kernels.Plan) {
	t.Helper()
	p := kerneltest.Program(t, text)
	v := kerneltest.Verifier(t, p, 3)
	k, err := New(simulatedSession(t, "sm_80")).Compile(context.Background(), p, plan)
	var no *kernels.Rejected
	if errors.As(err, &no) {
		t.Logf("%s%v", text, err)
		return
	}
	if err != nil {
		t.Errorf("%v\n%s", err, text)
		return
	}
	defer k.Close()
	if err := v.Verify(context.Background(), k); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}
