package cpu

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// dots have operands in every order of batch, rows and columns; %s is a type.
var dots = []string{
	"x = %[1]s[24,36] parameter(0)\ny = %[1]s[36,48] parameter(1)\nr = %[2]s[24,48] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
	"x = %[1]s[36,24] parameter(0)\ny = %[1]s[48,36] parameter(1)\nr = %[2]s[24,48] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={1}",
	"x = %[1]s[6,24,10] parameter(0)\ny = %[1]s[10,32,6] parameter(1)\nr = %[2]s[6,24,32] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={2}, lhs_contracting_dims={2}, rhs_contracting_dims={0}",
	"x = %[1]s[4,6,24] parameter(0)\ny = %[1]s[6,32,4] parameter(1)\nr = %[2]s[24,32] dot(x, y), lhs_contracting_dims={0,1}, rhs_contracting_dims={2,0}",
	"x = %[1]s[40,56] parameter(0)\ny = %[1]s[56] parameter(1)\nr = %[2]s[40] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
	"x = %[1]s[56] parameter(0)\ny = %[1]s[56,40] parameter(1)\nr = %[2]s[40] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
}

// TestDots compares dots with the reference for random plans.
func TestDots(t *testing.T) {
	for _, types := range [][2]string{
		{"f32", "f32"}, {"f64", "f64"}, {"bf16", "f32"},
		{"s8", "s32"}, {"u8", "s32"}, {"s32", "s32"},
		{"s64", "s64"},
	} {
		for n, text := range dots {
			t.Run(fmt.Sprintf("%s/%d", types[0], n), func(t *testing.T) {
				p, _ := landscape(t, fmt.Sprintf(text, types[0], types[1]))
				checkPlans(t, p, 12)
			})
		}
	}
}

// TestRightOperandInPlace: what only dots read from the right is not copied.
func TestRightOperandInPlace(t *testing.T) {
	p, _ := landscape(t, fmt.Sprintf(dots[0], "f32", "f32"))
	k, err := New().Compile(t.Context(), p, kernels.Plan{
		Tiles: symtile.Tiling{12, 16, 18},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	lines := slices.Collect(strings.Lines(k.Source()))
	if !slices.Contains(lines, "  %1 (f32 832, in place) is part of y\n") {
		t.Errorf("y is not used where it is:\n%s", k.Source())
	}
}

// turnedDots are dots of which a transpose exchanges rows and columns, besides other results.
var turnedDots = []string{
	"x = %[1]s[24,36] parameter(0)\ny = %[1]s[36,48] parameter(1)\nd = %[2]s[24,48] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\nt = %[2]s[48,24] transpose(d), dimensions={1,0}\nn = %[1]s[24,36] negate(x)\nROOT r = (%[2]s[48,24], %[1]s[24,36]) tuple(t, n)",
	"x = %[1]s[6,24,10] parameter(0)\ny = %[1]s[10,32,6] parameter(1)\nd = %[2]s[6,24,32] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={2}, lhs_contracting_dims={2}, rhs_contracting_dims={0}\nr = %[2]s[6,32,24] transpose(d), dimensions={0,2,1}",
	"x = %[1]s[4,6,24] parameter(0)\ny = %[1]s[24,3,5] parameter(1)\nd = %[2]s[4,6,3,5] dot(x, y), lhs_contracting_dims={2}, rhs_contracting_dims={0}\nt = %[2]s[3,5,4,6] transpose(d), dimensions={2,3,0,1}\nr = %[2]s[3,5,4,6] add(t, t)",
	"x = %[1]s[4,6,24] parameter(0)\ny = %[1]s[24,3,5] parameter(1)\nd = %[2]s[4,6,3,5] dot(x, y), lhs_contracting_dims={2}, rhs_contracting_dims={0}\nr = %[2]s[3,5,6,4] transpose(d), dimensions={2,3,1,0}",
}

// TestTurnedDots compares them with the reference for random plans. Without a loop over
// terms the first makes its output where that lies, and nothing is transposed.
func TestTurnedDots(t *testing.T) {
	for _, types := range [][2]string{{"f32", "f32"}, {"bf16", "f32"}, {"u8", "s32"}} {
		for n, text := range turnedDots {
			t.Run(fmt.Sprintf("%s/%d", types[0], n), func(t *testing.T) {
				p, _ := landscape(t, fmt.Sprintf(text, types[0], types[1]))
				checkPlans(t, p, 24)
			})
		}
	}
	p, _ := landscape(t, fmt.Sprintf(turnedDots[0], "f32", "f32"))
	plan, err := New().Default(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	k, err := New().Compile(t.Context(), p, plan)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if text := k.Source(); strings.Contains(text, "transpose") || !strings.Contains(text, "is output 0") {
		t.Errorf("the product is not the output:\n%s", text)
	}
}

// Products of bytes read an operand as unsigned exactly where its type has values that no
// signed byte has; wider operands are no bytes.
func TestSignsOfBytes(t *testing.T) {
	bits := map[hlo.DType]int{hlo.S8: 8, hlo.U8: 8, hlo.S4: 4, hlo.U4: 4, hlo.Pred: 1, hlo.S16: 16, hlo.U16: 64, hlo.F32: 64}
	for x, wantX := range bits {
		for y, wantY := range bits {
			operands := []*hlo.Instr{{Shape: hlo.Shape{DType: x}}, {Shape: hlo.Shape{DType: y}}}
			if got := integerBits(operands); got != max(wantX, wantY) {
				t.Errorf("%s by %s: %d bits", x, y, got)
			}
			want := [2]bool{x == hlo.U8, y == hlo.U8}
			if got := unsignedBytes(operands); got != want {
				t.Errorf("%s by %s: unsigned %v", x, y, got)
			}
		}
	}
}

// convolutions have strides, dilations, zeros at the sides, groups and short rows.
var convolutions = []string{
	"x = %[1]s[1,17,18,3] parameter(0)\nw = %[1]s[5,5,3,10] parameter(1)\nr = %[2]s[1,9,9,10] convolution(x, w), window={size=5x5 stride=2x2 pad=2_2x2_2}, dim_labels=b01f_01io->b01f",
	"x = %[1]s[2,10,9,16] parameter(0)\nw = %[1]s[3,3,16,6] parameter(1)\nr = %[2]s[2,10,9,6] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
	"x = %[1]s[2,4,19,11] parameter(0)\nw = %[1]s[5,4,3,2] parameter(1)\nr = %[2]s[2,5,13,10] convolution(x, w), window={size=3x2 pad=0_0x0_0 rhs_dilate=3x1}, dim_labels=bf01_oi01->bf01",
	"x = %[1]s[3,21,8] parameter(0)\nw = %[1]s[4,8,5] parameter(1)\nr = %[2]s[3,20,5] convolution(x, w), window={size=4 pad=1_1}, dim_labels=b0f_0io->b0f",
	// reversed weights: of windows, of rows of channels, of columns
	"x = %[1]s[2,9,8,24] parameter(0)\nw = %[1]s[3,3,34,24] parameter(1)\nv = %[1]s[3,3,34,24] reverse(w), dimensions={0,1}\nr = %[2]s[2,9,8,34] convolution(x, v), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01oi->b01f",
	"x = %[1]s[1,9,8,24] parameter(0)\nw = %[1]s[3,2,24,40] parameter(1)\nr = %[2]s[1,9,8,40] convolution(x, w), window={size=3x2 pad=1_1x0_1 rhs_reversal=1x1}, dim_labels=b01f_01io->b01f",
	"x = %[1]s[1,7,8,16] parameter(0)\nw = %[1]s[3,2,16,8] parameter(1)\nv = %[1]s[3,2,16,8] reverse(w), dimensions={0,3}\nu = %[1]s[3,2,16,8] reverse(v), dimensions={1,2}\nr = %[2]s[1,7,8,8] convolution(x, u), window={size=3x2 pad=1_1x0_1}, dim_labels=b01f_01io->b01f",
}

// TestConvolutions compares convolutions with the reference for random plans.
func TestConvolutions(t *testing.T) {
	for _, types := range [][2]string{{"f32", "f32"}, {"f64", "f64"}, {"s8", "s32"}} {
		for n, text := range convolutions {
			t.Run(fmt.Sprintf("%s/%d", types[0], n), func(t *testing.T) {
				p, _ := landscape(t, fmt.Sprintf(text, types[0], types[1]))
				checkPlans(t, p, 24)
			})
		}
	}
}

// Windows are packed from where the image is: they are not unfolded before.
func TestWindowsAreCopiedOnce(t *testing.T) {
	p, _ := landscape(t, fmt.Sprintf(convolutions[1], "f32", "f32"))
	plan, err := New().Default(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	k, err := New().Compile(t.Context(), p, plan)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if strings.Contains(k.Source(), "unfold") {
		t.Errorf("windows are unfolded:\n%s", k.Source())
	}
}

// TestWeightsArePackedOnce: weights of some channels, and reversed ones, are packed from where
// they lie.
func TestWeightsArePackedOnce(t *testing.T) {
	if !fillsPanels(portable.Float32, 100) {
		t.Skip("no kernels read weights here")
	}
	p, _ := landscape(t, fmt.Sprintf(convolutions[4], "f32", "f32"))
	for _, tiles := range []symtile.Tiling{
		{2, 9, 8, 34, 3, 3, 24}, {1, 9, 8, 32, 3, 3, 8}, {1, 9, 8, 17, 1, 3, 12},
	} {
		k, err := New().Compile(t.Context(), p, kernels.Plan{Tiles: tiles})
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		for _, copied := range []string{"reverse", ".arranged"} {
			if strings.Contains(k.Source(), copied) {
				t.Errorf("plan %v copies weights:\n%s", tiles, k.Source())
			}
		}
	}
}

// A watchedContext counts who looks at it.
type watchedContext struct {
	context.Context
	looks *atomic.Int64
}

func (c watchedContext) Done() <-chan struct{} {
	c.looks.Add(1)
	return c.Context.Done()
}

// TestLongProductsLook: a tile program of several long products looks at its context before
// each. Mixtral's experts in one tile read 3.8 GB, which were the resident set of a check
// before its arrays' pages could be taken back.
func TestLongProductsLook(t *testing.T) {
	p, _ := landscape(t, `x = f32[8,16,512] parameter(0)
y = f32[8,512,512] parameter(1)
r = f32[8,16,512] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}`)
	k, b := benched(t, p, kernels.Plan{Tiles: symtile.Tiling{8, 16, 512, 512}})
	ctx := watchedContext{t.Context(), new(atomic.Int64)}
	defer k.Close()
	if _, err := b.Run(ctx, k); err != nil {
		t.Fatal(err)
	}
	if n := ctx.looks.Load(); n < 9 {
		t.Errorf("%d looks at the context, want one before the program and before each of 8 products", n)
	}
}

// Weights over the padding of a convolution are multiplied by its zeros, in every plan: one
// that is infinite or NaN makes NaN there.
func TestWeightsOverPadding(t *testing.T) {
	weightsOverZeros(t, "padded_weights")
}

// TestWeightsOverGaps is the same of weights over the gaps of a dilated array.
func TestWeightsOverGaps(t *testing.T) {
	weightsOverZeros(t, "dilated_weights")
}

// weightsOverZeros compares 40 plans of a program with the reference, in all types of floats.
func weightsOverZeros(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".hlo")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"f32[", "f64[", "bf16[", "f16["} {
		m, err := hlo.Parse(name, []byte(strings.ReplaceAll(string(text), "f32[", d)))
		if err != nil {
			t.Fatal(err)
		}
		p, err := symtile.Analyze(t.Context(), m.Entry)
		if err != nil {
			t.Fatal(err)
		}
		v := kerneltest.Verifier(t, p, 3)
		backend, plans := New(), 0
		for plan := range backend.Plans(t.Context(), p) {
			k, err := backend.Compile(t.Context(), p, plan)
			if err != nil {
				t.Fatal(err)
			}
			if err := v.Verify(t.Context(), k); err != nil {
				t.Errorf("%s %s: %v", d, plan, err)
			}
			k.Close()
			if plans++; plans == 40 {
				break
			}
		}
	}
}

// TestDotsPast: results that are written past the caches, of whole contractions and of
// parts of them.
func TestDotsPast(t *testing.T) {
	p, _ := landscape(t, `
		x = f32[48,64] parameter(0)
		y = f32[64,96] parameter(1)
		d = f32[48,96] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}`)
	v := kerneltest.Verifier(t, p, 1)
	for _, tiles := range []symtile.Tiling{
		{48, 96, 64}, {24, 32, 64}, {48, 96, 32}, {20, 40, 64}, {7, 96, 64}, {48, 17, 13},
	} {
		plan := kernels.Plan{Tiles: tiles}
		verify(t, New(), v, p, plan.With("stream", 1))
	}
}

// dilatedConvolutions are transposed ones; %[1]s is a type.
var dilatedConvolutions = []string{
	"x = %[1]s[1,9,30,8] parameter(0)\nw = %[1]s[4,4,8,20] parameter(1)\nr = %[1]s[1,18,60,20] convolution(x, w), window={size=4x4 pad=2_2x2_2 lhs_dilate=2x2}, dim_labels=b01f_01io->b01f",
	// a stride with which the phase changes with each row, in one dimension only
	"x = %[1]s[2,7,40,9] parameter(0)\nw = %[1]s[3,5,9,17] parameter(1)\nr = %[1]s[2,19,27,17] convolution(x, w), window={size=3x5 stride=1x3 pad=1_1x2_2 lhs_dilate=3x2}, dim_labels=b01f_01io->b01f",
	// windows on zeros only
	"x = %[1]s[2,50,16] parameter(0)\nw = %[1]s[2,16,24] parameter(1)\nr = %[1]s[2,147,24] convolution(x, w), window={size=2 lhs_dilate=3}, dim_labels=b0f_0io->b0f",
	"x = %[1]s[1,20,20,8] parameter(0)\nw = %[1]s[3,3,8,8] parameter(1)\nr = %[1]s[1,39,39,8] convolution(x, w), window={size=3x3 pad=2_2x2_2 lhs_dilate=2x2 rhs_dilate=2x2 rhs_reversal=1x1}, dim_labels=b01f_01io->b01f",
	"x = %[1]s[1,8,6,20,8] parameter(0)\nw = %[1]s[2,3,2,8,5] parameter(1)\nr = %[1]s[1,15,11,39,5] convolution(x, w), window={size=2x3x2 pad=1_0x1_1x1_0 lhs_dilate=2x2x2}, dim_labels=b012f_012io->b012f",
}

// TestDilatedConvolutions compares convolutions of dilated arrays with the reference for
// random plans.
func TestDilatedConvolutions(t *testing.T) {
	for _, kind := range []string{"f32", "f64", "bf16"} {
		for n, text := range dilatedConvolutions {
			t.Run(fmt.Sprintf("%s/%d", kind, n), func(t *testing.T) {
				p, _ := landscape(t, fmt.Sprintf(text, kind))
				checkPlans(t, p, 16)
			})
		}
	}
}

// laneConvolutions have weights of their own for each channel; %[1]s is a type.
var laneConvolutions = []string{
	"x = %[1]s[1,20,22,24] parameter(0)\nw = %[1]s[3,3,1,24] parameter(1)\nr = %[1]s[1,20,22,24] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=24",
	"x = %[1]s[2,21,17,40] parameter(0)\nw = %[1]s[5,3,1,40] parameter(1)\nr = %[1]s[2,10,17,40] convolution(x, w), window={size=5x3 stride=2x1 pad=1_2x2_2 rhs_dilate=1x2}, dim_labels=b01f_01io->b01f, feature_group_count=40",
	"x = %[1]s[3,50,16] parameter(0)\nw = %[1]s[4,1,16] parameter(1)\nr = %[1]s[3,47,16] convolution(x, w), window={size=4}, dim_labels=b0f_0io->b0f, feature_group_count=16",
	// other readers of the transpose, and a result that is read in another order
	"x = %[1]s[1,9,10,16] parameter(0)\nw = %[1]s[3,3,1,16] parameter(1)\ny = %[1]s[16] parameter(2)\nc = %[1]s[1,9,10,16] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=16\nb = %[1]s[1,9,10,16] broadcast(y), dimensions={3}\nr = %[1]s[1,9,10,16] add(c, b)",
	"x = %[1]s[1,12,14,32] parameter(0)\nw = %[1]s[3,3,1,32] parameter(1)\nr = %[1]s[1,32,6,7] convolution(x, w), window={size=3x3 stride=2x2 pad=0_1x0_1}, dim_labels=b01f_01io->bf01, feature_group_count=32",
	// reversed windows, and a dilated array
	"x = %[1]s[1,8,9,16] parameter(0)\nw = %[1]s[3,3,1,16] parameter(1)\nr = %[1]s[1,15,17,16] convolution(x, w), window={size=3x3 pad=1_1x1_1 lhs_dilate=2x2 rhs_reversal=1x1}, dim_labels=b01f_01io->b01f, feature_group_count=16",
	// channels that are no whole vectors, and two results a channel
	"x = %[1]s[1,8,9,12] parameter(0)\nw = %[1]s[3,3,1,12] parameter(1)\nr = %[1]s[1,8,9,12] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=12",
	"x = %[1]s[1,8,9,8] parameter(0)\nw = %[1]s[3,3,1,16] parameter(1)\nr = %[1]s[1,8,9,16] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=8",
	// channels before rows
	"x = %[1]s[1,16,8,9] parameter(0)\nw = %[1]s[16,1,3,3] parameter(1)\nr = %[1]s[1,16,8,9] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01, feature_group_count=16",
}

// TestLaneConvolutions compares convolutions by channel with the reference for random plans.
func TestLaneConvolutions(t *testing.T) {
	for _, kind := range []string{"f32", "bf16", "f64"} {
		for n, text := range laneConvolutions {
			t.Run(fmt.Sprintf("%s/%d", kind, n), func(t *testing.T) {
				p, _ := landscape(t, fmt.Sprintf(text, kind))
				checkPlans(t, p, 20)
			})
		}
	}
}
