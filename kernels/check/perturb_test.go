package check

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Sums whose terms cancel are as wrong as their terms, not as their results:
// ToleranceOf alone rejects what f32 sums give.
func TestCancellingSums(t *testing.T) {
	m, err := hlo.Parse("s", []byte(`add { a = f32[] parameter(0)
b = f32[] parameter(1)
ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[64,20] parameter(0)
z = f32[] constant(0)
s = f32[64] reduce(x, z), dimensions={1}, to_apply=add
t = f32[64] multiply(s, s)
w = f32[] reduce(t, z), dimensions={0}, to_apply=add
y = f32[64] parameter(1)
v = f32[64] subtract(s, y)
ROOT d = f32[64] divide(v, s) }`))
	if err != nil {
		t.Fatal(err)
	}
	in, err := Inputs(m.Entry, Normals, 3)
	if err != nil {
		t.Fatal(err)
	}
	// y is the sums as f32 adds them, a hair off the reference's: the quotient
	// is roundings and nothing else.
	for r := range int64(64) {
		s := float32(0)
		for k := range int64(20) {
			s += float32(in[0].Float(r*20 + k))
		}
		in[1].SetFloat(r, float64(s))
	}
	want, err := reference.Interpret(m.Entry, in)
	if err != nil {
		t.Fatal(err)
	}
	zero, err := kernels.NewBuffer(want[0].Shape) // v is 0 when sums are made as y's were
	if err != nil {
		t.Fatal(err)
	}
	if Compare(0, zero, want[0], ToleranceOf(m.Entry)) == nil {
		t.Error("the case is too easy: the plain tolerance accepts it")
	}
	if m := Agree(m.Entry, in, []kernels.Buffer{zero}, want); m != nil {
		t.Errorf("a right kernel is rejected: %v", m)
	}
	zero.SetFloat(17, 1e-3)
	if m := Agree(
		m.Entry, in, []kernels.Buffer{zero}, want,
	); m == nil || m.Wrong != 1 || m.Index[0] != 17 {
		t.Errorf("a wrong element passes among them: %v", m)
	}
}

// What decides stays as it is, and an error of one term of a sum is found.
func TestSecondLookFindsWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"dot", `x = f32[8,512] parameter(0)
y = f32[512,8] parameter(1)
ROOT d = f32[8,8] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}`},
		{"chosen", `x = f32[8,8] parameter(0)
y = f32[8,8] parameter(1)
p = pred[8,8] compare(x, y), direction=GT
f = f32[8,8] floor(x)
ROOT s = f32[8,8] select(p, f, y)`},
		{"bf16", `x = bf16[8,64] parameter(0)
e = bf16[8,64] tanh(x)
ROOT d = bf16[8,64] multiply(e, e)`},
	} {
		m, err := hlo.Parse("s", []byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		v, err := NewVerifier(context.Background(), m.Entry, 1)
		if err != nil {
			t.Fatal(err)
		}
		err = v.Verify(context.Background(), tampered{m.Entry, func(out []kernels.Buffer) {
			b := out[0]
			b.SetFloat(5, b.Float(5)*1.05+math.Copysign(0.05, b.Float(5)))
		}})
		if err == nil || !strings.Contains(err.Error(), "is wrong in 1 of") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestRoundedOperands: an exact operation between two functions rounds what the first one
// is off by less than half a unit back. A kernel whose exponential is off by up to three
// units is right in every element.
func TestRoundedOperands(t *testing.T) {
	m, err := hlo.Parse("c", []byte(`ENTRY e { x = f32[65536] parameter(0)
a = f32[65536] exponential(x)
b = f32[65536] negate(a)
ROOT c = f32[65536] cosine(b) }`))
	if err != nil {
		t.Fatal(err)
	}
	in, err := Inputs(m.Entry, Normals, 3)
	if err != nil {
		t.Fatal(err)
	}
	want, err := reference.Interpret(m.Entry, in)
	if err != nil {
		t.Fatal(err)
	}
	for units := -3; units <= 3; units++ {
		got, err := kernels.NewBuffer(want[0].Shape)
		if err != nil {
			t.Fatal(err)
		}
		for n := range int64(65536) {
			a := float32(math.Exp(in[0].Float(n)))
			a = math.Float32frombits(uint32(int(math.Float32bits(a)) + units))
			got.SetFloat(n, math.Cos(-float64(a)))
		}
		if m := Agree(m.Entry, in, []kernels.Buffer{got}, want); m != nil {
			t.Errorf("exponentials off by %d units: %v", units, m)
		}
	}
}

// TestDeviationsOfBits: the bits of a number move with it, also shifted and in another
// order. A number that is a thousandth off is an error.
func TestDeviationsOfBits(t *testing.T) {
	m, err := hlo.Parse("c", []byte(`ENTRY e { x = f32[512] parameter(0)
e = f32[512] exponential(x)
y = f32[512] sine(e)
b = s32[512] bitcast-convert(y)
r = s32[512] reverse(b), dimensions={0}
one = s32[] constant(1)
ones = s32[512] broadcast(one), dimensions={}
ROOT d = s32[512] shift-right-arithmetic(r, ones) }`))
	if err != nil {
		t.Fatal(err)
	}
	in, err := Inputs(m.Entry, Normals, 3)
	if err != nil {
		t.Fatal(err)
	}
	want, err := reference.Interpret(m.Entry, in)
	if err != nil {
		t.Fatal(err)
	}
	for _, units := range []int64{-1, 1, 4096} {
		got, err := kernels.NewBuffer(want[0].Shape)
		if err != nil {
			t.Fatal(err)
		}
		for n := range int64(512) {
			got.SetInt(n, want[0].Int(n)+units)
		}
		m := Agree(m.Entry, in, []kernels.Buffer{got}, want)
		if wrong := m != nil; wrong != (units == 4096) {
			t.Errorf("bits off by %d: %v", units, m)
		}
	}
}

// TestMaskedDeviations: the mask of a softmax is an infinity, which roundings do not make
// NaN. Rows with one had no deviations, and a right kernel of a softmax whose scores cancel
// was called wrong.
func TestMaskedDeviations(t *testing.T) {
	m, err := hlo.Parse("c", []byte(`add { a = f32[] parameter(0)
b = f32[] parameter(1)
ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[4,8] parameter(0)
p = pred[4,8] parameter(1)
i = f32[] constant(-inf)
w = f32[4,8] broadcast(i), dimensions={}
s = f32[4,8] select(p, x, w)
y = f32[4,8] parameter(2)
d = f32[4,8] subtract(s, y)
e = f32[4,8] exponential(d)
z = f32[] constant(0)
ROOT r = f32[4] reduce(e, z), dimensions={1}, to_apply=add }`))
	if err != nil {
		t.Fatal(err)
	}
	in, err := Inputs(m.Entry, Normals, 3)
	if err != nil {
		t.Fatal(err)
	}
	moved, err := reference.Deviations(context.Background(), m.Entry, in, 1, 4)
	if err != nil {
		t.Fatal(err)
	}
	for n, d := range moved[0] {
		if d == 0 {
			t.Errorf("row %d, some of which is masked, does not move", n)
		}
	}
}

// Two products of one row are off by different numbers, and so is their difference, however
// near the columns are to each other: the scores of attention are such products. Of 72 terms a
// right kernel of dit's attention was called wrong in one row (scores 1050400.38 and 1050394.23,
// summed in f32 to 1050400 and 1050394.75).
func TestDifferenceOfProducts(t *testing.T) {
	m, err := hlo.Parse("s", []byte(`x = f32[1,1024] parameter(0)
y = f32[1024,2] parameter(1)
d = f32[1,2] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
a = f32[1,1] slice(d), slice={[0:1], [0:1]}
b = f32[1,1] slice(d), slice={[0:1], [1:2]}
ROOT s = f32[1,1] subtract(a, b)`))
	if err != nil {
		t.Fatal(err)
	}
	for seed := range int64(30) {
		in, err := Inputs(m.Entry, Normals, seed)
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range []float64{waveRow, waveKey} {
			for n := range in[k].Shape.Elements() / 1024 {
				in[k].SetFloat(n, v) // the first term of both sums
			}
		}
		want, err := reference.Interpret(m.Entry, in)
		if err != nil {
			t.Fatal(err)
		}
		var sums [2]float32
		for n := range int64(2048) {
			sums[n%2] += float32(in[0].Float(n/2) * in[1].Float(n))
		}
		got, err := kernels.NewBuffer(m.Entry.Root.Shape)
		if err != nil {
			t.Fatal(err)
		}
		for wrong, by := range map[bool]float64{false: 0, true: 256} {
			got.SetFloat(0, float64(sums[0]-sums[1])+by)
			if m := Agree(m.Entry, in, []kernels.Buffer{got}, want); wrong != (m != nil) {
				t.Errorf("seed %d, wrong by %v: %v", seed, by, m)
			}
		}
	}
}
