package cpu

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/symtile"
)

// rowText is a fusion over rows: a maximum, a quotient by a number of each row, a
// sum, what is used twice, and a row of another shape.
const rowText = `x = f32[$0,$1] parameter(0)
y = f32[$0] parameter(1)
z = f32[$1] parameter(2)
low = f32[] constant(-inf)
zero = f32[] constant(0)
most = f32[$0] reduce(x, low), dimensions={1}, to_apply=maximum
least = f32[$0] reduce(x, zero), dimensions={1}, to_apply=minimum
mosts = f32[$0,$1] broadcast(most), dimensions={0}
ys = f32[$0,$1] broadcast(y), dimensions={0}
zs = f32[$0,$1] broadcast(z), dimensions={1}
parts = f32[$0,$1] divide(x, ys)
sum = f32[$0] reduce(parts, zero), dimensions={1}, to_apply=add
column = f32[$1] reduce(x, zero), dimensions={0}, to_apply=maximum
sums = f32[$0,$1] broadcast(sum), dimensions={0}
a = f32[$0,$1] subtract(sums, mosts)
b = f32[$0,$1] add(a, zs)
ROOT all = (f32[$0,$1], f32[$0,$1], f32[$0], f32[$0], f32[$0], f32[$1]) tuple(b, parts, sum, most, least, column)`

// edges are numbers at which quotients, maxima and minima differ from the plain
// instructions for them.
var edges = []float32{
	1, -3, 0, float32(math.Copysign(0, -1)), 41,
	5e-39, -1e-45, 3e38, -3e38, 1e-38, 7,
	float32(math.Inf(1)), float32(math.Inf(-1)),
	float32(math.NaN()), 2.5,
}

// Rows in one machine function have the results of instructions one after the
// other, to the bit, but for which NaN it is.
func TestRowsAreExact(t *testing.T) {
	for _, shape := range [][2]int64{
		{1, 8}, {2, 33}, {7, 64},
		{16, 100}, {3, 1000}, {130, 24},
	} {
		for _, special := range []int{0, 1, 7} { // every so many elements
			t.Run(
				fmt.Sprintf("%d×%d/%d", shape[0], shape[1], special),
				func(t *testing.T) {
					text := strings.NewReplacer(
						"$0", fmt.Sprint(shape[0]), "$1", fmt.Sprint(shape[1]),
					).Replace(rowText)
					p, _ := landscape(t, text)
					whole := make(symtile.Tiling, len(p.Space.Dims))
					for k, d := range p.Space.Dims {
						whole[k] = max(1, d.Extent)
					}
					in, err := check.Inputs(p.Fusion, check.Normals, 1)
					if err != nil {
						t.Fatal(err)
					}
					for k := range in {
						sprinkle(kernels.Elements[float32](in[k]), special)
					}
					want := outputsOf(t, p, kernels.Plan{Tiles: whole}.With("rows", 0), in)
					for _, plan := range []kernels.Plan{
						{Tiles: whole},
						kernels.Plan{Tiles: whole}.With("stream", 1).With("unroll", 1),
						kernels.Plan{Tiles: whole}.With("prefetch", 3),
					} {
						compareBits(t, plan.String(), outputsOf(t, p, plan, in), want)
					}
				},
			)
		}
	}
}

func sprinkle(x []float32, every int) {
	for k := range x {
		if every > 0 && k%every == 0 {
			x[k] = edges[k/every%len(edges)]
		}
	}
}

func outputsOf(
	t *testing.T, p *symtile.Program, plan kernels.Plan, in []kernels.Buffer,
) []kernels.Buffer {
	t.Helper()
	k, err := New().Compile(context.Background(), p, plan.With("threads", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	var out []kernels.Buffer
	for _, s := range kernels.OutputShapes(p.Fusion) {
		b, err := kernels.NewBuffer(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	if _, err := k.Run(context.Background(), in, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func compareBits(t *testing.T, plan string, got, want []kernels.Buffer) {
	t.Helper()
	for _, n := range []int{1, 3, 4, 5, 2, 0} { // in the order of computation
		compareElements(
			t, fmt.Sprintf("%s: output %d", plan, n),
			kernels.Elements[float32](got[n]),
			kernels.Elements[float32](want[n]),
		)
	}
}

func compareElements(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for k, x := range got {
		const small = 1e-36 // quotients may be off by 1 ulp below
		y := want[k]
		tiny := math.Abs(float64(y)) < small &&
			math.Abs(float64(x)-float64(y)) < 3e-45 && y != 0
		if math.Float32bits(x) != math.Float32bits(y) && (x == x || y == y) && !tiny {
			t.Fatalf("%s, element %d is %v, by single instructions %v", what, k, x, y)
		}
	}
}
