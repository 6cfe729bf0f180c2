package cpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// firstOf keeps the left one of equal elements, so that its results show the
// order in which elements were joined.
const firstOf = `HloModule first
first {
  a = T[] parameter(0)
  i = s32[] parameter(1)
  b = T[] parameter(2)
  j = s32[] parameter(3)
  ge = pred[] compare(a, b), direction=GE
  v = T[] select(ge, a, b)
  k = s32[] select(ge, i, j)
  ROOT r = (T[], s32[]) tuple(v, k)
}
ENTRY main {
  x = s8[ROWS,COLS] parameter(0)
  few = s8[] constant(3)
  fews = s8[ROWS,COLS] broadcast(few), dimensions={}
  low = s8[ROWS,COLS] remainder(x, fews)
  t = T[ROWS,COLS] convert(low)
  n = s32[ROWS,COLS] iota(), iota_dimension=DIM
  least = T[] constant(-100)
  none = s32[] constant(-1)
  ROOT r = (T[KEPT], s32[KEPT]) reduce(t, n, least, none), dimensions={DIM}, to_apply=first
}`

// Of equal elements the first one's index is found, along rows and columns of
// any length and on every class of type.
func TestReduceKeepsTheOrder(t *testing.T) {
	for _, d := range []string{"f32", "f64", "s32", "s64"} {
		for _, size := range [][2]int{
			{3, 7}, {5, 1}, {1, 1},
			{2, 513}, {4, 1200}, {2, 9001}, {700, 3},
		} {
			for dim := range 2 {
				r := strings.NewReplacer(
					"T[", d+"[", "ROWS", fmt.Sprint(size[0]), "COLS",
					fmt.Sprint(size[1]), "DIM", fmt.Sprint(dim),
					"KEPT", fmt.Sprint(size[1-dim]),
				)
				text := r.Replace(firstOf)
				m, err := hlo.Parse("first", []byte(text))
				if err != nil {
					t.Fatal(err)
				}
				if !runsLikeReference(t, text, m.Entry) {
					t.Errorf("%s %v, dimension %d: refused", d, size, dim)
				}
				runsWhole(t, text, m.Entry)
			}
		}
	}
}

// Short runs of a tile are summed before they are added to a large sum, in which each of
// them would be lost: one element in 16 is 256 times as large as the others.
func TestShortRunsAreJoined(t *testing.T) {
	text, err := os.ReadFile("testdata/short_runs.hlo")
	if err != nil {
		t.Fatal(err)
	}
	p := kerneltest.Program(t, string(text))
	verifier := kerneltest.Verifier(t, p, 1)
	for _, tiling := range []string{"301,2,16,401", "32,2,301,401", "301,1,43,2", "43,3,16,3"} {
		plan, err := kernels.ParsePlan(tiling)
		if err != nil {
			t.Fatal(err)
		}
		k, err := New().Compile(t.Context(), p, plan)
		if err != nil {
			t.Fatal(err)
		}
		if err := verifier.Verify(t.Context(), k); err != nil {
			t.Errorf("%s: %v", tiling, err)
		}
		k.Close()
	}
}

// The computation of a reduce calls others, as that of JAX with jnp.where does.
func TestReduceCalls(t *testing.T) {
	const text = `HloModule calls
larger { a = f32[] parameter(0)
b = f32[] parameter(1)
ge = pred[] compare(a, b), direction=GE
ROOT v = f32[] select(ge, a, b) }
twice { a = f32[] parameter(0)
b = f32[] parameter(1)
ROOT v = f32[] call(a, b), to_apply=larger }
with { a = f32[] parameter(0)
i = s32[] parameter(1)
b = f32[] parameter(2)
j = s32[] parameter(3)
v = f32[] call(a, b), to_apply=twice
ij = s32[] add(i, j)
ROOT r = (f32[], s32[]) tuple(v, ij) }
ENTRY main { x = f32[24,40] parameter(0)
n = s32[24,40] iota(), iota_dimension=1
least = f32[] constant(-100)
z = s32[] constant(0)
m = f32[24] reduce(x, least), dimensions={1}, to_apply=twice
p = (f32[24], s32[24]) reduce(x, n, least, z), dimensions={1}, to_apply=with
v = f32[24] get-tuple-element(p), index=0
ROOT s = f32[24] add(m, v) }`
	m, err := hlo.Parse("calls", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if !runsLikeReference(t, text, m.Entry) {
		t.Error("refused")
	}
}

// argmax is that of JAX, and argmin with its comparison turned.
const argmax = `HloModule argmax
better {
  v = T[] parameter(0)
  i = s32[] parameter(1)
  w = T[] parameter(2)
  j = s32[] parameter(3)
  more = pred[] compare(v, w), direction=DIRECTION
  nan = pred[] compare(v, v), direction=NE
  keep = pred[] or(more, nan)
  same = pred[] compare(v, w), direction=EQ
  first = pred[] compare(i, j), direction=LT
  tie = pred[] and(same, first)
  here = pred[] or(keep, tie)
  value = T[] select(keep, v, w)
  place = s32[] select(here, i, j)
  ROOT both = (T[], s32[]) tuple(value, place)
}
ENTRY main {
  x = T[ROWS,COLS] parameter(0)
  n = s32[ROWS,COLS] iota(), iota_dimension=1
  worst = T[] constant(WORST)
  zero = s32[] constant(0)
  ROOT r = (T[ROWS], s32[ROWS]) reduce(x, n, worst, zero), dimensions={1}, to_apply=better
}`

// TestArgmax compares rows with the reference, to the bit: with ties, zeros of both signs,
// infinities and NaN, whole and in tiles of their columns.
func TestArgmax(t *testing.T) {
	const rows = 24
	for _, d := range []string{"f32", "bf16", "f16", "f64", "s32", "s8"} {
		ends := [][2]string{{"GT", "-inf"}, {"LT", "inf"}}
		if d[0] == 's' {
			ends = [][2]string{{"GT", "-128"}, {"LT", "127"}}
		}
		for _, c := range ends {
			for _, cols := range []int64{1, 9, 100, 1030, 4129} {
				text := strings.NewReplacer(
					"T[", d+"[", "ROWS", fmt.Sprint(rows), "COLS", fmt.Sprint(cols),
					"DIRECTION", c[0], "WORST", c[1],
				).Replace(argmax)
				m, err := hlo.Parse("argmax", []byte(text))
				if err != nil {
					t.Fatal(err)
				}
				in := argmaxRows(t, m.Entry, cols)
				for _, tiling := range []symtile.Tiling{{1, cols}, {8, cols}, {rows, max(1, cols/2)}, {5, 64}} {
					compareRun(t, text, m.Entry, tiling, in)
				}
			}
		}
	}
}

// argmaxRows are rows of few values, some of which occur in some of them only.
func argmaxRows(t *testing.T, c *hlo.Computation, cols int64) []kernels.Buffer {
	t.Helper()
	b, err := kernels.NewBuffer(c.Params[0].Shape)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(45, 46))
	whole := !c.Params[0].Shape.DType.IsFloat()
	rare := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 1e-30, -7}
	for at := range b.Shape.Elements() {
		row := at / cols
		v := float64(rng.IntN(200)) - 100
		switch {
		case row%4 == 1: // zeros are the greatest
			v = math.Copysign(float64(min(rng.IntN(4)-3, 0)), -float64(rng.IntN(2)))
		case row%4 == 2 && !whole && rng.IntN(50) == 0:
			v = rare[rng.IntN(len(rare))]
		case row%4 == 3 && row%8 == 3:
			v = math.Inf(-1)
		}
		if whole {
			b.SetInt(at, int64(max(v, -128)))
			continue
		}
		b.SetFloat(at, v)
	}
	return []kernels.Buffer{b}
}

// compareRun compares a run at a tiling with the reference, to the bit.
func compareRun(
	t *testing.T, text string, c *hlo.Computation,
	tiling symtile.Tiling, in []kernels.Buffer,
) {
	t.Helper()
	p, err := symtile.Analyze(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for k, d := range p.Space.Dims {
		tiling[k] = min(tiling[k], d.Extent)
	}
	k, err := New().Compile(t.Context(), p, kernels.Plan{Tiles: tiling})
	if no := (*kernels.Rejected)(nil); errors.As(err, &no) {
		return // the tiling is none of the program's
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	defer k.Close()
	want, err := reference.InterpretContext(t.Context(), c, in)
	if err != nil {
		t.Fatal(err)
	}
	var out []kernels.Buffer
	for _, s := range kernels.OutputShapes(c) {
		b, err := kernels.NewBuffer(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	if _, err := k.Run(t.Context(), in, out); err != nil {
		t.Fatal(err)
	}
	for n, b := range out {
		if !bytes.Equal(b.Data, want[n].Data) {
			t.Fatalf("tiling %v: output %d is another\n%s", tiling, n, text)
		}
	}
}

// runsWhole verifies the plan of one tile.
func runsWhole(t *testing.T, text string, c *hlo.Computation) {
	t.Helper()
	p, err := symtile.Analyze(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	tiling := make(symtile.Tiling, len(p.Space.Dims))
	for k, d := range p.Space.Dims {
		tiling[k] = d.Extent
	}
	k, err := New().Compile(context.Background(), p, kernels.Plan{Tiles: tiling})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	defer k.Close()
	v, err := check.NewVerifier(context.Background(), c, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Verify(context.Background(), k); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}

// Rows of few elements, of every length with code and some more, are reduced as the reference
// does, whatever the type; so are what is repeated for them and by them.
func TestShortRows(t *testing.T) {
	for n := range int64(vector.MaxShortRow + 2) {
		for _, d := range []string{"f32", "f64", "s32", "s64", "bf16", "u8"} {
			for _, op := range []string{"add", "maximum", "multiply"} {
				text := fmt.Sprintf(`
f { a = %[2]s[] parameter(0)
b = %[2]s[] parameter(1)
ROOT c = %[2]s[] %[3]s(a, b) }
ENTRY e { x = %[2]s[43,%[1]d] parameter(0)
w = %[2]s[%[1]d] parameter(1)
i = %[2]s[] constant(1)
r = %[2]s[43] reduce(x, i), dimensions={1}, to_apply=f
b = %[2]s[43,%[1]d] broadcast(r), dimensions={0}
v = %[2]s[43,%[1]d] broadcast(w), dimensions={1}
y = %[2]s[43,%[1]d] subtract(x, b)
ROOT z = %[2]s[43,%[1]d] subtract(y, v) }`, n+1, d, op)
				p := kerneltest.Program(t, text)
				v := kerneltest.Verifier(t, p, 2)
				plan, err := New().Default(t.Context(), p)
				if err != nil {
					t.Fatal(err)
				}
				k, err := New().Compile(t.Context(), p, plan)
				if err != nil {
					t.Fatal(err)
				}
				if err := v.Verify(t.Context(), k); err != nil {
					t.Errorf("%s of %d %s: %v", op, n+1, d, err)
				}
				k.Close()
			}
		}
	}
}
