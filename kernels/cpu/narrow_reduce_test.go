package cpu

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/kernels/kerneltest"
)

// likeReferenceTiled runs some tilings of a program, that of one tile among them, and compares
// them with the reference; it returns the listing of that one.
func likeReferenceTiled(t *testing.T, text string) string {
	t.Helper()
	p := kerneltest.Program(t, text)
	v, err := check.NewVerifier(t.Context(), p.Fusion, 1)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	rng := rand.New(rand.NewPCG(7, 11))
	all := slices.Collect(p.Space.Tilings())
	listing := ""
	for n := range min(8, len(all)) {
		plan := kernels.Plan{Tiles: all[rng.IntN(len(all))]}
		if n == 0 {
			plan.Tiles = slices.Clone(plan.Tiles)
			for k, d := range p.Space.Dims {
				plan.Tiles[k] = d.Extent
			}
		}
		k, err := New().Compile(t.Context(), p, plan)
		if err != nil {
			t.Fatalf("%v: %v\n%s", plan, err, text)
		}
		if err := v.Verify(t.Context(), k); err != nil {
			t.Errorf("%v: %v\n%s", plan, err, text)
		}
		if n == 0 {
			listing = k.Source()
		}
		k.Close()
	}
	return listing
}

// reduceText is a reduction of x by an operation.
func reduceText(op, d, body string) string {
	return fmt.Sprintf(`
f { a = %[1]s[] parameter(0)
b = %[1]s[] parameter(1)
ROOT c = %[1]s[] %[2]s(a, b) }
ENTRY e { %[3]s }`, d, op, body)
}

// Elements of one and two bytes are reduced where arrays have them: rows, columns, both, the
// middle, and as a wider type.
func TestNarrowReductions(t *testing.T) {
	for _, d := range []string{"s8", "u8", "s16", "u16", "pred"} {
		for _, op := range []string{"add", "maximum", "minimum", "and", "xor", "multiply"} {
			if d == "pred" && (op == "multiply" || op == "minimum") {
				continue
			}
			for _, form := range []string{
				"x = T[3,5,77] parameter(0)\nr = T[3,5] reduce(x, i), dimensions={2}, to_apply=f",
				"x = T[3,9,77] parameter(0)\nr = T[3,77] reduce(x, i), dimensions={1}, to_apply=f",
				"x = T[13,200] parameter(0)\nr = T[200] reduce(x, i), dimensions={0}, to_apply=f",
				"x = T[3,5,300] parameter(0)\nr = T[] reduce(x, i), dimensions={0,1,2}, to_apply=f",
				"x = T[3,5,300] parameter(0)\nr = T[5] reduce(x, i), dimensions={0,2}, to_apply=f",
				"x = T[300,3,33] parameter(0)\nr = T[3,33] reduce(x, i), dimensions={0}, to_apply=f",
				"x = T[7,33] parameter(0)\nr = T[7] reduce(x, i), dimensions={1}, to_apply=f\ns = T[7] OP(r, r)",
			} {
				form = strings.ReplaceAll(strings.ReplaceAll(form, "T[", d+"["), "OP", op)
				one := "1"
				if d == "pred" {
					one = "true"
				}
				likeReferenceTiled(t, reduceText(op, d, "i = "+d+"[] constant("+one+")\n"+form))
			}
		}
		if d != "pred" {
			likeReferenceTiled(t, reduceText("add", "s32", "x = "+d+"[20,77] parameter(0)\ni = s32[] constant(1)\n"+
				"c = s32[20,77] convert(x)\nr = s32[20] reduce(c, i), dimensions={1}, to_apply=f"))
		}
	}
	listing := likeReferenceTiled(t, reduceText("add", "s8", "x = s8[20,77] parameter(0)\ni = s8[] constant(1)\nr = s8[20] reduce(x, i), dimensions={1}, to_apply=f"))
	if vector.Supported() && !strings.Contains(listing, "is part of x") {
		t.Errorf("the rows are not read where they lie:\n%s", listing)
	}
}

// Views of elements of eight bytes are read where they lie: what repeats along a row, rows that
// repeat, and parts of a row that do, of odd sizes too, with conversions to four bytes and back.
func TestViewsOfEightBytes(t *testing.T) {
	for _, d := range []string{"f64", "s64", "u64"} {
		for _, size := range []string{"40", "64", "77", "200"} {
			for _, form := range []string{
				"r = T[9] reduce(x, i), dimensions={1}, to_apply=f\nb = T[9,N] broadcast(r), dimensions={0}\nROOT y = T[9,N] subtract(x, b)",
				"r = T[N] reduce(x, i), dimensions={0}, to_apply=f\nb = T[9,N] broadcast(r), dimensions={1}\nROOT y = T[9,N] subtract(x, b)",
				"r = T[9] reduce(x, i), dimensions={1}, to_apply=f\nb = T[9,N] broadcast(r), dimensions={0}\nc = f32[9,N] convert(x)\ne = T[9,N] convert(c)\nROOT y = T[9,N] maximum(e, b)",
				"r = T[9] reduce(x, i), dimensions={1}, to_apply=f\nb = T[9,N] broadcast(r), dimensions={0}\np = pred[9,N] compare(x, b), direction=LT\nROOT y = T[9,N] select(p, b, x)",
				"n = T[9,N] negate(x)\nb = T[2,9,3,N] broadcast(n), dimensions={1,3}\nROOT y = T[2,9,3,N] multiply(b, b)",
			} {
				form = strings.ReplaceAll(strings.ReplaceAll(form, "T[", d+"["), "N", size)
				likeReferenceTiled(t, reduceText("add", d, "x = "+d+"[9,"+size+"] parameter(0)\ni = "+d+"[] constant(1)\n"+form))
			}
		}
	}
}

// Windows along rows are reduced where they lie, of one dimension and of two, with strides outside
// and gaps inside.
func TestSlidingWindows(t *testing.T) {
	for _, d := range []string{"f32", "f64", "s32", "s64", "bf16", "u8"} {
		for _, op := range []string{"add", "maximum", "multiply"} {
			for _, form := range []string{
				"x = T[9,40] parameter(0)\nr = T[9,40] reduce-window(x, i), window={size=1x5 pad=0_0x2_2}, to_apply=f",
				"x = T[9,40] parameter(0)\nr = T[9,38] reduce-window(x, i), window={size=1x3}, to_apply=f",
				"x = T[9,40] parameter(0)\nr = T[9,36] reduce-window(x, i), window={size=1x3 rhs_dilate=1x2}, to_apply=f",
				"x = T[2,9,20] parameter(0)\nr = T[2,9,20] reduce-window(x, i), window={size=1x3x3 pad=0_0x1_1x1_1}, to_apply=f",
				"x = T[2,9,20] parameter(0)\nr = T[2,4,18] reduce-window(x, i), window={size=1x3x3 stride=1x2x1}, to_apply=f",
				"x = T[2,9,20] parameter(0)\nr = T[2,8,10] reduce-window(x, i), window={size=1x2x2 stride=1x1x2}, to_apply=f",
				"x = T[60] parameter(0)\ny = T[60] OP(x, x)\nr = T[43] reduce-window(y, i), window={size=18}, to_apply=f\ns = T[43] OP(r, r)",
			} {
				form = strings.ReplaceAll(strings.ReplaceAll(form, "T[", d+"["), "OP", op)
				likeReferenceTiled(t, reduceText(op, d, "i = "+d+"[] constant(1)\n"+form))
			}
		}
	}
	listing := likeReferenceTiled(t, reduceText("add", "f32", "x = f32[9,40] parameter(0)\ni = f32[] constant(0)\nr = f32[9,40] reduce-window(x, i), window={size=1x5 pad=0_0x2_2}, to_apply=f"))
	if vector.Supported() && strings.Contains(listing, "unfold") {
		t.Errorf("windows are copied side by side:\n%s", listing)
	}
}
