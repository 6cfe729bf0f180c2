package cpu

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
)

// narrowText is a fusion over rows of bf16 or f16: what is the same for a row or
// a column, a maximum and a sum in f32, what is used twice, and two results.
const narrowText = `x = $t[$0,$1] parameter(0)
y = $t[$0] parameter(1)
z = $t[$1] parameter(2)
low = f32[] constant(-inf)
zero = f32[] constant(0)
wide = f32[$0,$1] convert(x)
most = f32[$0] reduce(wide, low), dimensions={1}, to_apply=maximum
mosts = f32[$0,$1] broadcast(most), dimensions={0}
less = f32[$0,$1] subtract(wide, mosts)
e = f32[$0,$1] exponential(less)
sum = f32[$0] reduce(e, zero), dimensions={1}, to_apply=add
sums = f32[$0,$1] broadcast(sum), dimensions={0}
parts = f32[$0,$1] divide(e, sums)
soft = $t[$0,$1] convert(parts)
ys = $t[$0,$1] broadcast(y), dimensions={0}
zs = $t[$0,$1] broadcast(z), dimensions={1}
a = $t[$0,$1] multiply(soft, ys)
b = $t[$0,$1] add(a, zs)
c = $t[$0,$1] maximum(b, x)
ROOT all = ($t[$0,$1], $t[$0,$1], f32[$0]) tuple(c, a, sum)`

func narrowProgram(t testing.TB, kind string, rows, cols int64) *symtile.Program {
	return kerneltest.Program(
		t,
		strings.NewReplacer(
			"$t", kind, "$0", fmt.Sprint(rows), "$1", fmt.Sprint(cols),
		).Replace(narrowText),
	)
}

// Rows of two bytes an element in one machine function have the results of the
// instructions one after the other, to the bit.
func TestNarrowRowsAreExact(t *testing.T) {
	for _, kind := range []string{"bf16", "f16"} {
		for _, shape := range [][2]int64{
			{1, 8}, {2, 40}, {7, 64},
			{130, 24}, {16, 100}, {3, 1000},
		} {
			t.Run(
				fmt.Sprintf("%s/%d×%d", kind, shape[0], shape[1]),
				func(t *testing.T) {
					p := narrowProgram(t, kind, shape[0], shape[1])
					whole := make(symtile.Tiling, len(p.Space.Dims))
					for k, d := range p.Space.Dims {
						whole[k] = max(1, d.Extent)
					}
					in, err := check.Inputs(p.Fusion, check.Normals, 1)
					if err != nil {
						t.Fatal(err)
					}
					plan := kernels.Plan{Tiles: whole}
					want := outputsOf(t, p, plan.With("rows", 0), in)
					for _, plan := range []kernels.Plan{
						plan,
						plan.With("stream", 1).With("unroll", 1),
						plan.With("prefetch", 3),
						plan.With("stream", 1).With("threads", 2),
					} {
						got := outputsOf(t, p, plan, in)
						for k := range got {
							if string(got[k].Data) != string(want[k].Data) {
								t.Errorf("%s: output %d differs", plan, k)
							}
						}
					}
				},
			)
		}
	}
}

// Random plans of rows of two bytes agree with the reference.
func TestNarrowRowsAgainstReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	for _, kind := range []string{"bf16", "f16"} {
		for _, shape := range [][2]int64{
			{12, 48}, {5, 96}, {9, 50},
		} {
			checkPlans(t, narrowProgram(t, kind, shape[0], shape[1]), 5+rng.IntN(3))
		}
	}
}

// Rows of bf16 are read and written by row kernels, as those of f32 are.
func TestNarrowRowsAreNests(t *testing.T) {
	if !vector.Supported() {
		t.Skip("no machine code here")
	}
	for _, c := range rowwise {
		p, b := kerneltest.Program(t, inBF16(c.text)), New()
		plan, err := b.Default(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		k, err := b.Compile(context.Background(), p, plan)
		if err != nil {
			t.Fatal(err)
		}
		source := k.Source()
		k.Close()
		if strings.Contains(source, "strips of") || !strings.Contains(source, "  %0 = load ") {
			t.Errorf("%s\n%s", c.name, source)
		}
	}
}

// inBF16 has parameters and the result in bf16, and all between in f32.
func inBF16(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	var out []string
	for k, line := range lines {
		name, rest, _ := strings.Cut(line, " = ")
		shape, _, _ := strings.Cut(rest, " ")
		narrow := "b" + strings.Replace(shape, "f32", "f16", 1)
		switch {
		case strings.Contains(rest, "parameter("):
			out = append(
				out,
				fmt.Sprintf("%s.n = %s%s", name, narrow, strings.TrimPrefix(rest, shape)),
				fmt.Sprintf("%s = %s convert(%s.n)", name, shape, name),
			)
		case k == len(lines)-1:
			out = append(out, fmt.Sprintf("%s.w = %s", name, rest), fmt.Sprintf("%s = %s convert(%s.w)", name, narrow, name))
		default:
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}
