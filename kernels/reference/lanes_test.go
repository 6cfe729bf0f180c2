package reference

import (
	"fmt"
	"math"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// reduceText is an argmin that keeps NaN and the first of equal elements, and beside it a
// sum rounded to bf16 after every term: all depend on the order. There are n rows.
func reduceText(n int64) []byte {
	return []byte(fmt.Sprintf(`least {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  s = bf16[] parameter(2)
  b = f32[] parameter(3)
  j = s32[] parameter(4)
  t = bf16[] parameter(5)
  third = bf16[] constant(0.333)
  less = pred[] compare(a, b), direction=LE
  nan = pred[] compare(a, a), direction=NE
  first = pred[] or(less, nan)
  x = f32[] select(first, a, b)
  k = s32[] select(first, i, j)
  u = bf16[] multiply(t, third)
  v = bf16[] add(s, u)
  ROOT r = (f32[], s32[], bf16[]) tuple(x, k, v)
}
ENTRY e {
  x = f32[5,%[1]d,7] parameter(0)
  i = s32[5,%[1]d,7] iota(), iota_dimension=2
  s = bf16[5,%[1]d,7] convert(x)
  inf = f32[] constant(inf)
  zero = s32[] constant(0)
  half = bf16[] constant(0.5)
  ROOT r = (f32[%[1]d], s32[%[1]d], bf16[%[1]d]) reduce(x, i, s, inf, zero, half), dimensions={0,2}, to_apply=least
}`, n))
}

// reduceOf interprets it, with rows from..from+n−1 of an operand.
func reduceOf(t *testing.T, from, n int64) []kernels.Buffer {
	m, err := hlo.Parse("r", reduceText(n))
	if err != nil {
		t.Fatal(err)
	}
	x, err := kernels.NewBuffer(m.Entry.Params[0].Shape)
	if err != nil {
		t.Fatal(err)
	}
	for k := range x.Shape.Elements() {
		at := Unravel(k, x.Shape.Dims)
		v := math.Sin(float64(at[0]*31+(at[1]+from)*17+at[2])) * 4
		if v = math.Round(v); v == 3 {
			v = math.NaN()
		}
		x.SetFloat(k, v)
	}
	out, err := Interpret(m.Entry, []kernels.Buffer{x})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestReduceLanes: a computation on arrays of all results gives each of them what it gives
// where there are too few for arrays.
func TestReduceLanes(t *testing.T) {
	all := reduceOf(t, 0, 4*minLanes)
	for row := range int64(4 * minLanes) {
		for k, b := range reduceOf(t, row, 1) {
			got, want := all[k].Float(row), b.Float(0)
			if got != want && (got == got || want == want) {
				t.Errorf("output %d of row %d: %v, alone %v", k, row, got, want)
			}
		}
	}
}
