package check

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// parsed is the entry of a text.
func parsed(t *testing.T, text string) *hlo.Computation {
	t.Helper()
	m, err := hlo.Parse("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m.Entry
}

// narrowTexts are fusions whose results are rounded to 16 bits.
var narrowTexts = []string{
	"x = bf16[33,17] parameter(0)\ny = bf16[33,17] parameter(1)\nROOT a = bf16[33,17] add(x, y)",
	"x = f16[33,17] parameter(0)\ne = f16[33,17] exponential(x)\nROOT m = f16[33,17] multiply(e, x)",
	"x = f32[33,17] parameter(0)\nROOT c = bf16[33,17] convert(x)",
	"x = bf16[33,17] parameter(0)\nt = bf16[33,17] tanh(x)\nROOT m = bf16[33,17] divide(t, x)",
	`x = bf16[20,64] parameter(0)
y = bf16[64,24] parameter(1)
ROOT d = bf16[20,24] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}`,
}

// One element of 16 bits that is one rounding off is found in any place, and so are
// results that are truncated, or whose ties are rounded away from zero.
func TestRoundingsAreFound(t *testing.T) {
	for _, text := range narrowTexts {
		c := parsed(t, text)
		v, err := NewVerifier(t.Context(), c, 1)
		if err != nil {
			t.Fatal(err)
		}
		found, tried := 0, 0
		n := c.Root.Shape.Elements()
		for at := int64(0); at < n; at += 1 + n/40 {
			tried++
			off := tampered{c, func(out []kernels.Buffer) { out[0].Data[2*at] ^= 1 }}
			if errors.As(v.Verify(t.Context(), off), new(*WrongResult)) {
				found++
			}
		}
		if found < tried {
			t.Errorf("%d of %d elements one rounding off are found in\n%s", found, tried, text)
		}
	}
}

// A rounder computes an elementwise operation of bf16 in float64 and rounds in its own
// way.
type rounder struct{ round func(x float64) float64 }

func (k rounder) Source() string { return "" }
func (k rounder) Close() error   { return nil }

func (k rounder) Run(_ context.Context, in, out []kernels.Buffer) (time.Duration, error) {
	for n := range out[0].Shape.Elements() {
		out[0].SetFloat(n, k.round(in[0].Float(n)*in[1].Float(n)))
	}
	return 0, nil
}

func TestRoundingModes(t *testing.T) {
	c := parsed(t, "x = bf16[64,33] parameter(0)\ny = bf16[64,33] parameter(1)\nROOT m = bf16[64,33] multiply(x, y)")
	v, err := NewVerifier(t.Context(), c, 1)
	if err != nil {
		t.Fatal(err)
	}
	const dropped = 1<<45 - 1 // bits of a float64 that bf16 does not have
	for name, k := range map[string]struct {
		round func(x float64) float64
		right bool
	}{
		"to even":   {func(x float64) float64 { return x }, true},
		"truncated": {func(x float64) float64 { return math.Float64frombits(math.Float64bits(x) &^ dropped) }, false},
		"ties up":   {func(x float64) float64 { return math.Float64frombits((math.Float64bits(x) + 1<<44) &^ dropped) }, false},
	} {
		err := v.Verify(t.Context(), rounder{k.round})
		if (err == nil) != k.right {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A maskedSoftmax takes the maximum of rows without their last element: the result is
// the same but where that is far larger than all others.
type maskedSoftmax struct{}

func (maskedSoftmax) Source() string { return "" }
func (maskedSoftmax) Close() error   { return nil }

func (maskedSoftmax) Run(_ context.Context, in, out []kernels.Buffer) (time.Duration, error) {
	dims := out[0].Shape.Dims
	for r := range dims[0] {
		most, sum := math.Inf(-1), 0.0
		row := make([]float64, dims[1])
		for k := range dims[1] {
			x := in[0].Float(r*dims[1] + k)
			if row[k] = x; k < dims[1]-1 && !(most > x) {
				most = x
			}
		}
		for k, x := range row {
			row[k] = float64(float32(math.Exp(x - most)))
			sum += row[k]
		}
		for k, x := range row {
			out[0].SetFloat(r*dims[1]+int64(k), x/float64(float32(sum)))
		}
	}
	return 0, nil
}

// A tail mask that is one element short in the maximum of a softmax is found, whatever
// the seed.
func TestTailMaskOfSoftmax(t *testing.T) {
	c := parsed(t, `add { a = f32[] parameter(0)
b = f32[] parameter(1)
ROOT c = f32[] add(a, b) }
max { a = f32[] parameter(0)
b = f32[] parameter(1)
ROOT c = f32[] maximum(a, b) }
ENTRY softmax { x = f32[16,15] parameter(0)
low = f32[] constant(-inf)
z = f32[] constant(0)
m = f32[16] reduce(x, low), dimensions={1}, to_apply=max
mb = f32[16,15] broadcast(m), dimensions={0}
d = f32[16,15] subtract(x, mb)
e = f32[16,15] exponential(d)
s = f32[16] reduce(e, z), dimensions={1}, to_apply=add
sb = f32[16,15] broadcast(s), dimensions={0}
ROOT r = f32[16,15] divide(e, sb) }`)
	for seed := range int64(40) {
		v, err := NewVerifier(t.Context(), c, seed)
		if err != nil {
			t.Fatal(err)
		}
		if v.Verify(t.Context(), maskedSoftmax{}) == nil {
			t.Errorf("seed %d: the mask is not found", seed)
		}
		if err := v.Verify(t.Context(), tampered{c, func([]kernels.Buffer) {}}); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// Small elements beside large ones are compared by their own magnitude.
func TestSmallElements(t *testing.T) {
	c := parsed(t, "x = f32[40,40] parameter(0)\ny = f32[40,40] parameter(1)\nROOT m = f32[40,40] multiply(x, y)")
	v, err := NewVerifier(t.Context(), c, 1)
	if err != nil {
		t.Fatal(err)
	}
	least := func(b kernels.Buffer) (at int64) {
		for n := range b.Shape.Elements() {
			if x := math.Abs(b.Float(n)); x > 0 && x < math.Abs(b.Float(at)) {
				at = n
			}
		}
		return at
	}
	off := tampered{c, func(out []kernels.Buffer) {
		at := least(out[0])
		out[0].SetFloat(at, out[0].Float(at)*1.001)
	}}
	if v.Verify(t.Context(), off) == nil {
		t.Error("the smallest element is 0.1 % off and passes")
	}
}

// Errors that only extreme inputs show are found: of division, of powers of -1, of
// remainders of NaN and of huge quotients, of shifts of unsigned numbers.
func TestExtremesAreFound(t *testing.T) {
	power := reference.FloatBinary(hlo.OpPower)
	for text, wrong := range map[string]func(in, out []kernels.Buffer, n int64){
		"x = f32[24,24] parameter(0)\ny = f32[24,24] parameter(1)\nROOT p = f32[24,24] power(x, y)": func(in, out []kernels.Buffer, n int64) {
			if in[0].Float(n) == -1 && math.IsInf(in[1].Float(n), 0) {
				out[0].SetFloat(n, math.NaN())
			} else {
				out[0].SetFloat(n, power(in[0].Float(n), in[1].Float(n)))
			}
		},
		"x = f32[60,60] parameter(0)\ny = f32[60,60] parameter(1)\nROOT p = f32[60,60] remainder(x, y)": func(in, out []kernels.Buffer, n int64) {
			x, y := in[0].Float(n), in[1].Float(n)
			if out[0].SetFloat(n, math.Mod(x, y)); math.Abs(x/y) > 1e20 {
				out[0].SetFloat(n, x-y*math.Trunc(x/y))
			}
		},
		"x = u8[20,20] parameter(0)\ny = u8[20,20] parameter(1)\nROOT p = u8[20,20] shift-right-arithmetic(x, y)": func(in, out []kernels.Buffer, n int64) {
			out[0].SetInt(n, in[0].Int(n)>>min(63, in[1].Int(n)))
		},
		"x = s32[40,40] parameter(0)\nROOT p = s32[40,40] abs(x)": func(in, out []kernels.Buffer, n int64) {
			out[0].SetInt(n, min(max(in[0].Int(n), -in[0].Int(n)), math.MaxInt32))
		},
		"x = f32[40,40] parameter(0)\nROOT p = s8[40,40] convert(x)": func(in, out []kernels.Buffer, n int64) {
			out[0].SetInt(n, kernels.WrapInt(hlo.S8, int64(in[0].Float(n))))
		},
	} {
		c := parsed(t, text)
		v, err := NewVerifier(t.Context(), c, 1)
		if err != nil {
			t.Fatal(err)
		}
		var w *WrongResult
		if err := v.Verify(t.Context(), elements(wrong)); !errors.As(err, &w) || w.Case != extremeInputs {
			t.Errorf("%v of\n%s", err, text)
		}
	}
}

// elements is a kernel that computes one element after the other.
type elements func(in, out []kernels.Buffer, n int64)

func (k elements) Source() string { return "" }
func (k elements) Close() error   { return nil }

func (k elements) Run(_ context.Context, in, out []kernels.Buffer) (time.Duration, error) {
	for n := range out[0].Shape.Elements() {
		k(in, out, n)
	}
	return 0, nil
}

// A multiplier computes the products of rows in f32, from the last element to the
// first, and one of them a little off.
type multiplier struct {
	row int64
	off float32
}

func (multiplier) Source() string { return "" }
func (multiplier) Close() error   { return nil }

func (k multiplier) Run(_ context.Context, in, out []kernels.Buffer) (time.Duration, error) {
	dims := in[0].Shape.Dims
	for r := range dims[0] {
		product := float32(1)
		for n := dims[1] - 1; n >= 0; n-- {
			product *= float32(in[0].Float(r*dims[1] + n))
		}
		if r == k.row {
			product *= 1 + k.off
		}
		out[0].SetFloat(r, float64(product))
	}
	return 0, nil
}

// Products of rows are compared by their own magnitude, in any order of the factors: a
// small one beside large ones is found where it is wrong.
func TestProductsOfRows(t *testing.T) {
	c := parsed(t, `mul { a = f32[] parameter(0)
b = f32[] parameter(1)
ROOT c = f32[] multiply(a, b) }
ENTRY products { x = f32[64,9] parameter(0)
one = f32[] constant(1)
ROOT r = f32[64] reduce(x, one), dimensions={1}, to_apply=mul }`)
	v, err := NewVerifier(t.Context(), c, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Verify(t.Context(), multiplier{row: -1}); err != nil {
		t.Error(err)
	}
	found := 0
	for row := range int64(64) {
		if v.Verify(t.Context(), multiplier{row, 1e-4}) != nil {
			found++
		}
	}
	if found < 60 {
		t.Errorf("%d of 64 rows are found one part in ten thousand off", found)
	}
}

// Bits of a function may be those of another rounding, and any of a NaN; bits far off are
// found, also of one element.
func TestBitsOfFunctions(t *testing.T) {
	c := parsed(t, "x = f32[40,40] parameter(0)\ne = f32[40,40] exponential(x)\nROOT b = s32[40,40] bitcast-convert(e)")
	v, err := NewVerifier(t.Context(), c, 1)
	if err != nil {
		t.Fatal(err)
	}
	bitsOf := func(off int32, at int64) elements {
		return func(in, out []kernels.Buffer, n int64) {
			bits := math.Float32bits(float32(math.Exp(in[0].Float(n))))
			if in[0].Float(n) != in[0].Float(n) {
				bits = 0x7fffffff
			}
			y := int32(bits)
			if n == at && bits&0x7f800000 != 0x7f800000 {
				y += off
			}
			out[0].SetInt(n, int64(y))
		}
	}
	for _, right := range []int32{0, 1} {
		if err := v.Verify(t.Context(), bitsOf(right, 100)); err != nil {
			t.Errorf("%d units off: %v", right, err)
		}
	}
	if err := v.Verify(t.Context(), bitsOf(1000, 100)); !errors.As(err, new(*WrongResult)) {
		t.Errorf("bits that are 1000 units off: %v", err)
	}
}

// A result that is NaN where the reference has a number, as the root of a difference
// that another rounding makes negative, is right where it may be anything, and wrong where
// it may not; so is a number that is out of tolerance beside it, and an infinity, as that
// of a large number times a cosine whose sign a rounding decides.
func TestNaNWithinBounds(t *testing.T) {
	m, err := hlo.Parse("root", []byte("p = f32[3] parameter(0)\nROOT r = f32[3] sqrt(p)"))
	if err != nil {
		t.Fatal(err)
	}
	nan, inf := math.NaN(), math.Inf(1)
	in := reference.Interval{Lo: []float64{1, 1, 1}, Hi: []float64{-1, 1, 1}} // the first is anything
	for _, c := range []struct {
		got   [3]float64
		right bool
	}{
		{[3]float64{0, 1, 1}, true},
		{[3]float64{nan, 1, 1}, true},
		{[3]float64{nan, nan, 1}, false},
		{[3]float64{0, nan, 1}, false},
		{[3]float64{nan, 1, 2}, false},
		{[3]float64{0, 1, 2}, false},
		{[3]float64{-inf, 1, 1}, true},
		{[3]float64{inf, -inf, 1}, false},
		{[3]float64{-inf, 1, 2}, false},
	} {
		shape := m.Entry.Root.Shape
		got := kernels.Buffer{Shape: shape, Data: make([]byte, 12)}
		want := kernels.Buffer{Shape: shape, Data: make([]byte, 12)}
		for n, x := range c.got {
			got.SetFloat(int64(n), x)
			want.SetFloat(int64(n), min(1, float64(n)))
		}
		none := [][]float64{make([]float64, 3)}
		zero := map[int][][]float64{fewPerturbations: none, manyPerturbations: none}
		v := verifyCase{
			want:       []kernels.Buffer{want},
			allowed:    []float64{1e-6},
			deviations: &deviations{c: m.Entry, of: zero},
			bounds:     &bounds{c: m.Entry, known: true, of: []reference.Interval{in}},
		}
		wrong, err := v.compare(t.Context(), 0, got)
		if err != nil || (wrong == nil) != c.right {
			t.Errorf("%v: %v, %v", c.got, wrong, err)
		}
	}
}

// The sum of positive weights is positive however uncertain the scores are, so that a quotient
// by it is a number: a NaN is wrong there.
func TestSumsOfWeights(t *testing.T) {
	m, err := hlo.Parse("softmax", []byte(`q = f32[3,2] parameter(0)
k = f32[2,5] parameter(1)
s = f32[3,5] dot(q, k), lhs_contracting_dims={1}, rhs_contracting_dims={0}
none = f32[] constant(-inf)
zero = f32[] constant(0)
m = f32[3] reduce(s, none), dimensions={1}, to_apply=maximum
ms = f32[3,5] broadcast(m), dimensions={0}
less = f32[3,5] subtract(s, ms)
e = f32[3,5] exponential(less)
sum = f32[3] reduce(e, zero), dimensions={1}, to_apply=add
sums = f32[3,5] broadcast(sum), dimensions={0}
ROOT w = f32[3,5] divide(e, sums)`))
	if err != nil {
		t.Fatal(err)
	}
	in, err := Inputs(m.Entry, Normals, 1)
	if err != nil {
		t.Fatal(err)
	}
	// Scores of a million are uncertain by about one.
	for _, b := range in {
		for n := range b.Shape.Elements() {
			b.SetFloat(n, 1000*(1+b.Float(n)))
		}
	}
	all, err := reference.Bounds(t.Context(), m.Entry, in, reference.Accuracy{})
	if err != nil {
		t.Fatal(err)
	}
	w := all[0]
	for n := range int64(len(w.Lo)) {
		if w.Contains(n, math.NaN()) || !(w.Lo[n] >= -0x1p-120) {
			t.Errorf("weight %d is in [%v, %v]", n, w.Lo[n], w.Hi[n])
		}
	}
}
