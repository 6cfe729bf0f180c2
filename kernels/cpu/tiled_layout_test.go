package cpu_test

import (
	"context"
	"fmt"
	"math"
	"math/rand"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/layout"
)

// tiledFusions have %s where the layouts of their two parameters and their result,
// matrices of 13×10, are.
var tiledFusions = []string{
	`x = f32[13,10]%s parameter(0)
y = f32[13,10]%s parameter(1)
e = f32[13,10] exponential(y)
ROOT r = f32[13,10]%s add(x, e)`,
	`x = f32[13,10]%s parameter(0)
y = f32[13,10]%s parameter(1)
t = f32[10,13]{1,0:T(4,4)} transpose(y), dimensions={1,0}
c = f32[10,13] copy(t)
d = f32[13,13] dot(x, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
ROOT r = f32[13,10]%s slice(d), slice={[0:13], [2:12]}`,
	`add { a = f32[] parameter(0)
b = f32[] parameter(1)
ROOT s = f32[] add(a, b) }
ENTRY e {
x = f32[13,10]%s parameter(0)
y = f32[13,10]%s parameter(1)
z = f32[] constant(0)
s = f32[13] reduce(x, z), dimensions={1}, to_apply=add
b = f32[13,10] broadcast(s), dimensions={0}
ROOT r = f32[13,10]%s multiply(b, y)
}`,
	`x = f32[13,10]%s parameter(0)
y = f32[13,10]%s parameter(1)
ROOT r = f32[13,10]%s maximum(y, x)`,
}

// tiledLayouts are layouts of matrices, with padding and without.
var tiledLayouts = []string{
	"", "{0,1}", "{1,0:T(8,128)}", "{0,1:T(8,128)}", "{1,0:T(2,2)}", "{1,0:T(4,5)}", "{0,1:T(5,3)(2,1)}",
	"{1,0:T(8,16)(2,1)}", "{1,0:T(3)}", "{1,0:T(*,4)}", "{1,0:T(1,2,4)}", "{0,1:T(256)}",
}

// TestTiledLayouts: kernels read and write arrays in tiled layouts. What they compute
// from memory that was filled position by position (layout.Linear) is what the
// reference computes from row-major arrays; NaN in the padding of an operand reaches
// no result.
func TestTiledLayouts(t *testing.T) {
	rnd := rand.New(rand.NewSource(7))
	pick := func() any { return tiledLayouts[rnd.Intn(len(tiledLayouts))] }
	n := 0
	for _, text := range tiledFusions {
		for range 25 {
			x, y, r := pick(), pick(), pick()
			if runTiled(t, fmt.Sprintf(text, x, y, r), fmt.Sprintf(text, "", "", "")) {
				n++
			}
		}
	}
	t.Logf("%d fusions have padding that is NaN", n)
}

// runTiled runs the default plan of a fusion in tiled layouts and compares it with
// the reference of the same fusion without; padded reports that an operand has NaNs.
func runTiled(t *testing.T, text, plain string) (padded bool) {
	t.Helper()
	p := kerneltest.Program(t, text)
	want := kerneltest.Program(t, strings.ReplaceAll(plain, "{1,0:T(4,4)}", "")).Fusion
	var in, logical []kernels.Buffer
	for k, param := range p.Fusion.Params {
		x := newBuffer(t, want.Params[k].Shape)
		for at := range x.Shape.Elements() {
			x.SetFloat(at, float64((at*7+int64(k)*3)%11)-5)
		}
		logical = append(logical, x)
		b := newBuffer(t, p.Physical.Params[k].Shape)
		for at := range b.Shape.Elements() {
			b.SetFloat(at, math.NaN())
		}
		padded = padded || b.Shape.Elements() > x.Shape.Elements()
		scatter(t, param.Shape, x, b)
		in = append(in, b)
	}
	of, err := reference.Interpret(want, logical)
	if err != nil {
		t.Fatal(err)
	}
	backend := cpu.New()
	plan, err := backend.Default(t.Context(), p)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	k, err := backend.Compile(context.Background(), p, plan)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	defer k.Close()
	out := newBuffer(t, kernels.OutputShapes(p.Physical)[0])
	if _, err := k.Run(context.Background(), in, []kernels.Buffer{out}); err != nil {
		t.Fatal(err)
	}
	l := layoutOf(t, p.Fusion.Root.Shape)
	for at := range of[0].Shape.Elements() {
		index := reference.Unravel(at, of[0].Shape.Dims)
		got, want := out.Float(l.Linear(index)), of[0].Float(at)
		if math.Abs(got-want) > 1e-5*max(1, math.Abs(want)) || got != got {
			t.Fatalf("%s, plan %s: element %v is %g, want %g", text, plan, index, got, want)
		}
	}
	return padded
}

// scatter writes the elements of a row-major array to their positions in a layout.
func scatter(t *testing.T, shape hlo.Shape, from, to kernels.Buffer) {
	l := layoutOf(t, shape)
	for at := range from.Shape.Elements() {
		to.SetFloat(l.Linear(reference.Unravel(at, shape.Dims)), from.Float(at))
	}
}

func layoutOf(t *testing.T, shape hlo.Shape) *layout.Layout {
	l, err := layout.Of(shape)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func newBuffer(t *testing.T, shape hlo.Shape) kernels.Buffer {
	t.Helper()
	b, err := kernels.NewBuffer(shape)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
