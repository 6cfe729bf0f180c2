package gpu

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// TestEdgesOnSimulator compares operations with the reference on pairs of
// extreme operands: infinities, NaN, signed zeros, huge quotients, and bit
// patterns whose first bit is set.
func TestEdgesOnSimulator(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	floats := []float64{
		0, math.Copysign(0, -1), 1, -1, 2, -2, 3, -7, 0.5, 1e-30, -1e30,
		3e38, -3e38, 1e-40, inf, -inf, nan,
	}
	whole := []float64{0, 1, 2, 7, 9, 100, 127, 128, 200, 255}
	for op, types := range map[string][]string{
		"power":                  {"f32", "f16", "bf16"},
		"remainder":              {"f32", "f16", "bf16"},
		"shift-right-arithmetic": {"u8", "s8", "u16", "u32"},
	} {
		for _, d := range types {
			values := floats
			if d[0] != 'f' && d[0] != 'b' {
				values = whole
			}
			t.Run(op+" "+d, func(t *testing.T) { checkEdges(t, op, d, values) })
		}
	}
}

// checkEdges runs op on all pairs of values.
func checkEdges(t *testing.T, op, d string, values []float64) {
	n := len(values) * len(values)
	m, err := hlo.Parse("edges", []byte(fmt.Sprintf(
		"x = %[1]s[%[2]d] parameter(0)\ny = %[1]s[%[2]d] parameter(1)\nr = %[1]s[%[2]d] %[3]s(x, y)\n",
		d, n, op,
	)))
	if err != nil {
		t.Fatal(err)
	}
	p, err := symtile.Analyze(t.Context(), m.Entry)
	if err != nil {
		t.Fatal(err)
	}
	k, err := New(simulatedSession(t, "sm_80")).Compile(
		context.Background(), p,
		kernels.Plan{Tiles: symtile.Tiling{int64(n)}},
	)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	in := make([]kernels.Buffer, 3)
	for i := range in {
		if in[i], err = kernels.NewBuffer(m.Entry.Root.Shape); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		for arg, v := range []float64{
			values[i/len(values)], values[i%len(values)],
		} {
			if d[0] == 'f' || d[0] == 'b' {
				in[arg].SetFloat(int64(i), v)
			} else {
				in[arg].SetInt(int64(i), int64(v))
			}
		}
	}
	want, err := reference.Interpret(m.Entry, in[:2])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Run(context.Background(), in[:2], in[2:]); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		x, y := element(in[0], i), element(in[1], i)
		got, want := element(in[2], i), element(want[0], i)
		same := got == want || got != got && want != want ||
			math.Abs(got-want) <= 1e-2*math.Abs(want)
		if !same {
			t.Errorf("%s(%g, %g) is %g, the reference says %g", op, x, y, got, want)
		}
	}
}

func element(b kernels.Buffer, i int) float64 {
	if b.Shape.DType.IsFloat() {
		return b.Float(int64(i))
	}
	return float64(b.Int(int64(i)))
}
