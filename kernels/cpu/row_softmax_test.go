package cpu

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
)

// softmaxText is a softmax of $0×$1 whose sum begins with $2 and of which $3 are results.
const softmaxText = `x = f32[$0,$1] parameter(0)
low = f32[] constant(-inf)
start = f32[] constant($2)
most = f32[$0] reduce(x, low), dimensions={1}, to_apply=maximum
mosts = f32[$0,$1] broadcast(most), dimensions={0}
less = f32[$0,$1] subtract(x, mosts)
e = f32[$0,$1] exponential(less)
sum = f32[$0] reduce(e, start), dimensions={1}, to_apply=add
sums = f32[$0,$1] broadcast(sum), dimensions={0}
parts = f32[$0,$1] divide(e, sums)
other = f32[$0,$1] add(parts, $4)
ROOT all = ($3) tuple(other, $5)`

// Softmaxes as row kernels have the results of instructions one after the other, but where
// those are denormals, whatever else is read of their powers, sums and maxima.
func TestSoftmaxesAreExact(t *testing.T) {
	for _, shape := range [][2]int64{
		{1, 64}, {5, 33}, {16, 1000},
	} {
		for _, c := range [][4]string{ // start, added, other results and their shapes
			{"0", "x", "x", "f32[$0,$1]"}, {"0", "e", "x", "f32[$0,$1]"},
			{"0", "less", "x", "f32[$0,$1]"}, {"0", "mosts", "x", "f32[$0,$1]"},
			{"0", "sums", "x", "f32[$0,$1]"}, {"2", "x", "x", "f32[$0,$1]"},
			{"0", "x", "sum", "f32[$0]"}, {"0", "x", "most", "f32[$0]"},
			{"0", "x", "e", "f32[$0,$1]"}, {"0", "x", "less", "f32[$0,$1]"},
		} {
			t.Run(fmt.Sprintf("%v with %v", shape, c), func(t *testing.T) {
				checkSoftmax(t, shape, c)
			})
		}
	}
}

func checkSoftmax(t *testing.T, shape [2]int64, c [4]string) {
	size := []string{"$0", fmt.Sprint(shape[0]), "$1", fmt.Sprint(shape[1])}
	text := strings.NewReplacer(
		"$2", c[0], "$3", "f32[$0,$1], "+c[3],
		"$4", c[1], "$5", c[2],
	).Replace(softmaxText)
	p := kerneltest.Program(t, strings.NewReplacer(size...).Replace(text))
	plan := kernels.Plan{Tiles: make(symtile.Tiling, len(p.Space.Dims))}
	for k, d := range p.Space.Dims {
		plan.Tiles[k] = max(1, d.Extent)
	}
	for _, special := range []int{0, 1, 7, 200} {
		in, err := check.Inputs(p.Fusion, check.Normals, 1)
		if err != nil {
			t.Fatal(err)
		}
		x := kernels.Elements[float32](in[0])
		for k := range x {
			if x[k] *= 10; k%9 == 0 {
				x[k] *= 9 // powers that are denormals or 0
			}
		}
		sprinkle(x, special)
		got := outputsOf(t, p, plan, in)
		want := outputsOf(t, p, plan.With("rows", 0), in)
		for n := range got {
			compareElements(
				t, fmt.Sprintf("every %d special, output %d", special, n),
				kernels.Elements[float32](got[n]),
				kernels.Elements[float32](want[n]),
			)
		}
	}
}
