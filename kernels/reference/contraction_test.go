package reference

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tilewright/tilewright/kernels/reference/internal/products"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Blocks, panels and cores change the order of results, not that of a sum: every
// result has the bits of the plain loops.
func TestContractionsAreThePlainLoops(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(0, 37)
		c := contraction{
			size.Draw(t, "batch") % 3,
			size.Draw(t, "m"),
			size.Draw(t, "n"),
			size.Draw(t, "k"),
		}
		rng := rand.New(rand.NewPCG(1, 2))
		left := make([]float64, c.batch*c.m*c.k)
		right := make([]float64, c.batch*c.n*c.k)
		for _, x := range [][]float64{left, right} {
			for k := range x {
				x[k] = rng.NormFloat64()
			}
		}
		got := make([]float64, c.batch*c.m*c.n)
		want := make([]float64, 0, c.batch*c.m*c.n)
		contractFloats(newEvaluation(context.Background()), c, got, left, right)
		loops := make([]float64, len(got))
		contract(newEvaluation(context.Background()), c, loops, left, right)
		for b := range c.batch {
			for x := range c.m {
				for y := range c.n {
					p := (b*c.m + x) * c.k
					q := (b*c.n + y) * c.k
					want = append(
						want,
						sumProducts(left[p:p+c.k], right[q:q+c.k]),
					)
				}
			}
		}
		if !slices.Equal(got, want) || !slices.Equal(loops, want) {
			t.Fatalf("%+v: %v and %v, the plain loops say %v", c, got, loops, want)
		}
	})
}

// Rows visit the places a walk does, in ranges from anywhere.
func TestRowsAreWalks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dims := rapid.SliceOfN(rapid.Int64Range(0, 4), 0, 4).Draw(t, "dims")
		strides := rapid.SliceOfN(
			rapid.Int64Range(-5, 9), len(dims), len(dims),
		).Draw(t, "strides")
		r := rowsOf(dims, strides)
		elements := r.total * r.run.count
		w := NewWalk(dims, strides)
		var got, want []int64
		for range elements {
			want = append(want, w.Next())
		}
		cut := rapid.Int64Range(0, r.total).Draw(t, "cut")
		for _, part := range [][2]int64{{0, cut}, {cut, r.total}} {
			r.visit(newEvaluation(context.Background()), part[0], part[1], func(x row) {
				for k := range x.count {
					if x.n+k != int64(len(got)) {
						t.Fatalf("element %d comes after %d", x.n+k, len(got))
					}
					got = append(got, x.at+k*x.step)
				}
			})
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v at %v: places %v, a walk says %v", dims, strides, got, want)
		}
	})
}

// A panic in a range is one of the caller.
func TestSpreadPanicsWhereItIsCalled(t *testing.T) {
	defer func() {
		if p := recover(); p != "no" {
			t.Errorf("recovered %v", p)
		}
	}()
	Parallel(1<<20, 1, func(lo, hi int64) {
		if hi == 1<<20 {
			panic("no")
		}
	})
}

// Convolutions by way of patches are those of the plain loops, whose sums have other
// parts, with padding, strides, dilation of both operands and groups of features and batches.
func TestConvolutionsByPatches(t *testing.T) {
	if !products.Fast() {
		t.Skip("no code for blocks on this processor")
	}
	for _, text := range []string{
		`x = f64[2,9,11,3] parameter(0)
y = f64[3,3,3,20] parameter(1)
ROOT c = f64[2,9,11,20] convolution(x, y), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f`,
		`x = f64[1,40,4] parameter(0)
y = f64[5,4,8] parameter(1)
ROOT c = f64[1,8,19] convolution(x, y), window={size=5 stride=2 pad=2_3 rhs_dilate=2 rhs_reversal=1}, dim_labels=b0f_0io->bf0`,
		`x = f64[2,7,8] parameter(0)
y = f64[3,4,32] parameter(1)
ROOT c = f64[2,15,32] convolution(x, y), window={size=3 pad=2_2 lhs_dilate=2}, dim_labels=b0f_0io->b0f, feature_group_count=2`,
		`x = f64[4,7,8] parameter(0)
y = f64[3,8,32] parameter(1)
ROOT c = f64[2,7,32] convolution(x, y), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f, batch_group_count=2`,
	} {
		m, err := hlo.Parse("convolution", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		compareConvolution(t, m.Entry)
	}
}

// compareConvolution compares patches with plain loops, of numbers and with an infinity in the
// kernel of the last output feature.
func compareConvolution(t *testing.T, c *hlo.Computation) {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 6))
	var in []value
	for _, p := range c.Params {
		v, err := newValue(p.Shape)
		if err != nil {
			t.Fatal(err)
		}
		for k := range v.floats {
			v.floats[k] = rng.NormFloat64()
		}
		in = append(in, v)
	}
	for range 2 {
		e := newEvaluation(t.Context())
		got, err := e.convolution(c.Root, in)
		if err != nil {
			t.Fatal(err)
		}
		want := plainlyConvolved(t, e, c.Root, in)
		for k, w := range want {
			x := got.floats[k]
			same := x == w || x != x && w != w || math.Abs(x-w) <= 1e-12
			if !same {
				t.Fatalf("%s: element %d is %v, by plain loops %v", c.Root.Shape, k, x, w)
			}
		}
		in[1].floats[len(in[1].floats)-1] = math.Inf(1)
	}
}

// plainlyConvolved is a convolution by plain loops.
func plainlyConvolved(t *testing.T, e *evaluation, i *hlo.Instr, in []value) []float64 {
	t.Helper()
	left, right, g, err := e.convolutionOperands(i, in)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float64, i.Shape.Elements())
	convolve(e, g, left.asFloats(), right.asFloats(), func(at int64, sum float64) { out[at] = sum })
	return out
}
