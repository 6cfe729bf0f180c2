package check

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A tampered kernel gives the reference's results but for what tamper does.
type tampered struct {
	c      *hlo.Computation
	tamper func(out []kernels.Buffer)
}

func (k tampered) Source() string { return "" }
func (k tampered) Close() error   { return nil }

func (k tampered) Run(_ context.Context, in, out []kernels.Buffer) (time.Duration, error) {
	want, err := reference.Interpret(k.c, in)
	for n := range want {
		copy(out[n].Data, want[n].Data)
	}
	k.tamper(out)
	return 0, err
}

// What is only sampled is still checked: samples, edges, and that every element
// was written.
func TestSampledGate(t *testing.T) {
	m, err := hlo.Parse("s", []byte(`x = f32[96,64] parameter(0)
y = f32[64,80] parameter(1)
ROOT d = f32[96,80] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}`))
	if err != nil {
		t.Fatal(err)
	}
	v, vc := &Verifier{}, verifyCase{name: "random inputs"}
	if vc.in, err = Inputs(m.Entry, Normals, 1); err != nil {
		t.Fatal(err)
	}
	if err := vc.expectSamples(t.Context(), m.Entry, 1, ToleranceOf(m.Entry)); err != nil {
		t.Fatal(err)
	}
	v.cases = append(v.cases, vc)
	for name, c := range map[string]struct {
		tamper func(out []kernels.Buffer)
		want   string
	}{
		"right": {func([]kernels.Buffer) {}, ""},
		"last": {func(out []kernels.Buffer) {
			out[0].SetFloat(96*80-1, 0)
		}, "is wrong in 1 of"},
		"unwritten": {func(out []kernels.Buffer) {
			copy(out[0].Data[400:404], "\xff\xff\xff\xff")
		}, "at place 100 was not written"},
		"half": {func(out []kernels.Buffer) {
			for at := range int64(96 * 40) {
				out[0].SetFloat(at, 1e3)
			}
		}, "is wrong in"},
	} {
		err := v.Verify(context.Background(), tampered{m.Entry, c.tamper})
		if c.want == "" && err != nil ||
			c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A function that saturates makes the largest result small beside the roundings of the sum
// below it, so that a sample may be off by more than the one tolerance: by what other
// roundings do to it, and no more. tanh of f32[1024,1024]·f32[1024,1024] was refused so.
func TestSampleBeyondTheTolerance(t *testing.T) {
	m, err := hlo.Parse("s", []byte(`x = f32[96,64] parameter(0)
y = f32[64,80] parameter(1)
d = f32[96,80] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
ROOT h = f32[96,80] tanh(d)`))
	if err != nil {
		t.Fatal(err)
	}
	vc := verifyCase{name: "random inputs"}
	if vc.in, err = Inputs(m.Entry, Normals, 1); err != nil {
		t.Fatal(err)
	}
	if err := vc.expectSamples(t.Context(), m.Entry, 1, Tolerance{}); err != nil {
		t.Fatal(err)
	}
	const last = 96*80 - 1 // which is a sample
	moved, err := reference.Deviations(t.Context(), m.Entry, vc.in, 1, fewPerturbations)
	if err != nil {
		t.Fatal(err)
	}
	for deviations, right := range map[float64]bool{4: true, 40: false} {
		v := &Verifier{c: m.Entry, cases: []verifyCase{vc}}
		err := v.Verify(t.Context(), tampered{m.Entry, func(out []kernels.Buffer) {
			out[0].SetFloat(last, out[0].Float(last)+deviations*moved[0][last])
		}})
		if right != (err == nil) {
			t.Errorf("%v deviations: %v", deviations, err)
		}
	}
}

// A computation of which a few elements take more operations than the reference may
// execute is an error that names the instruction; one of which all take too many is
// sampled, by fewer elements where they are dear. The first and the last element may take
// the budget each: ViT's last block, of which only the first token is read behind the last
// norm, takes 11 and 16 of 33 million operations for them, and any further token 5.
func TestReferenceHasABudget(t *testing.T) {
	const budget = 1 << 14
	for _, c := range []struct{ text, want string }{
		{`p = f32[] parameter(0)
b = f32[1048576,1048576] broadcast(p), dimensions={}
z = f32[] constant(0)
ROOT r = f32[] reduce(b, z), dimensions={0,1}, to_apply=add`, "r (f32[] reduce): the reference would execute more than 1.64e+04 operations"},
		{`p = f32[] parameter(0)
b = f32[1048576,1024] broadcast(p), dimensions={}
z = f32[] constant(0)
ROOT r = f32[1048576] reduce(b, z), dimensions={1}, to_apply=add`, ""},
		{`p = f32[65536,4096] parameter(0)
z = f32[] constant(0)
n = f32[65536,4096] negate(p)
ROOT r = f32[65536] reduce(n, z), dimensions={1}, to_apply=add`, ""},
		{`p = f32[65536,8192] parameter(0)
z = f32[] constant(0)
n = f32[65536,8192] negate(p)
ROOT r = f32[65536] reduce(n, z), dimensions={1}, to_apply=add`, "n (f32[65536,8192] negate): the reference would"},
		{`p = f32[4096,32] parameter(0)
w = f32[32,128] parameter(1)
d = f32[4096,128] dot(p, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
n = f32[4096,128] negate(d)
z = f32[] constant(0)
r = f32[4096] reduce(n, z), dimensions={1}, to_apply=add
m = f32[4096,128] broadcast(r), dimensions={0}
ROOT s = f32[4096,128] subtract(d, m)`, ""},
		{`p = f32[65536] parameter(0)
z = f32[] constant(0)
ROOT r = f32[65536] reduce-window(p, z), window={size=65535 stride=1 pad=32767_32767}, to_apply=add`, "r (f32[65536] reduce-window): the"},
	} {
		m, err := hlo.Parse("b", []byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		var in []kernels.Buffer
		for _, p := range m.Entry.Params {
			in = append(in, kernels.Buffer{Shape: p.Shape, Data: make([]byte, p.Shape.Bytes())})
		}
		got, err := samplesOf(t.Context(), m.Entry, in, nil, 1, budget)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%v:\n%s", err, c.text)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%v, not %q:\n%s", err, c.want, c.text)
		case c.want == "" && (len(got) < 2 || len(got) >= samplesPerOutput):
			t.Errorf("%d samples:\n%s", len(got), c.text)
		}
	}
}

// Inputs, references and samples end with their context.
func TestVerifierListens(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	for _, text := range []string{
		"p = f32[16] parameter(0)\nROOT r = f32[16] negate(p)",
		"p = f32[16384,4096] parameter(0)\nROOT r = f32[16384,4096] negate(p)",
		"i = s32[131072,16384] iota(), iota_dimension=0\nROOT r = s32[131072,16384] negate(i)",
	} {
		m, err := hlo.Parse("b", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewVerifier(ctx, m.Entry, 1); err != cause {
			t.Errorf("%v of %s", err, text)
		}
		if _, err := NewBench(ctx, m.Entry, 1, 1); err != cause && len(m.Entry.Params) > 0 {
			t.Errorf("%v of %s", err, text)
		}
	}
}

// sequentialTanh is a kernel of tanh(x·y) and of x·y that sums in f32, one product after
// the other, as no compiler does and any may. Sums begin with term first.
func sequentialTanh(in, out []kernels.Buffer, first int64) {
	rows, terms := in[0].Shape.Dims[0], in[0].Shape.Dims[1]
	columns := in[1].Shape.Dims[1]
	for r := range rows {
		for c := range columns {
			sum := float32(0)
			for k := first; k < terms; k++ {
				sum += float32(in[0].Float(r*terms+k)) * float32(in[1].Float(k*columns+c))
			}
			out[0].SetFloat(r*columns+c, float64(sum))
			out[1].SetFloat(r*columns+c, math.Tanh(float64(sum)))
		}
	}
}

// TestSampledSaturation: of tanh behind a dot about one sample in a thousand of a right
// kernel is out of the one tolerance that all elements have, which decided alone for a
// fusion of dit's training step: a plan was wrong with one seed and right with another.
// Samples are accepted of a right kernel, and refused of one that leaves the first term out,
// as they are where all elements are compared.
func TestSampledSaturation(t *testing.T) {
	m, err := hlo.Parse("s", []byte(`x = f32[32,4608] parameter(0)
y = f32[4608,32] parameter(1)
d = f32[32,32] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
h = f32[32,32] tanh(d)
ROOT t = (f32[32,32], f32[32,32]) tuple(d, h)`))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	in, err := Inputs(m.Entry, Normals, 1)
	if err != nil {
		t.Fatal(err)
	}
	sampled := verifyCase{in: in}
	if err := sampled.expectSamples(ctx, m.Entry, 1, ToleranceOf(m.Entry)); err != nil {
		t.Fatal(err)
	}
	whole := verifyCase{in: in}
	if err := whole.expect(ctx, m.Entry, 1, ToleranceOf(m.Entry)); err != nil {
		t.Fatal(err)
	}
	whole.bounds = nil
	out, err := reference.Interpret(m.Entry, in)
	if err != nil {
		t.Fatal(err)
	}
	for first, right := range []bool{true, false} {
		sequentialTanh(in, out, int64(first))
		for name, c := range map[string]*verifyCase{"samples": &sampled, "whole": &whole} {
			wrong, err := c.agree(ctx, out)
			if err != nil {
				t.Fatal(err)
			}
			if right != (wrong == nil) {
				t.Errorf("%s of sums from term %d on: %v", name, first, wrong)
			}
		}
		if right && len(sampled.samplesOutside(out)) == 0 {
			t.Error("the case is too easy: the plain tolerance accepts it")
		}
	}
}

// A small element beside large ones is within the one tolerance whatever it is, so that a
// kernel passed that is wrong in all of them; the intervals of samples tell, as they do where
// all elements are compared. Right are sums in f32, one product after the other.
func TestSampledIntervals(t *testing.T) {
	m, err := hlo.Parse("s", []byte(`x = f32[96,64] parameter(0)
y = f32[64,80] parameter(1)
d = f32[96,80] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
ROOT h = f32[96,80] exponential(d)`))
	if err != nil {
		t.Fatal(err)
	}
	vc := verifyCase{name: "random inputs"}
	if vc.in, err = Inputs(m.Entry, Normals, 1); err != nil {
		t.Fatal(err)
	}
	if err := vc.expectSamples(t.Context(), m.Entry, 1, ToleranceOf(m.Entry)); err != nil {
		t.Fatal(err)
	}
	blind := vc
	blind.intervals = nil
	sequential := func(out []kernels.Buffer) {
		for n := range int64(96 * 80) {
			sum := float32(0)
			for k := range int64(64) {
				sum += float32(vc.in[0].Float(n/80*64+k) * vc.in[1].Float(k*80+n%80))
			}
			out[0].SetFloat(n, math.Exp(float64(sum)))
		}
	}
	for _, c := range []struct {
		name   string
		small  float64 // what elements below 1 are multiplied by
		passes bool
	}{
		{"right", 1, true},
		{"small ones halved", 0.5, false},
		{"small ones 0", 0, false},
		{"small ones off by 1 %", 1.01, false},
	} {
		kernel := tampered{m.Entry, func(out []kernels.Buffer) {
			sequential(out)
			for n := range int64(96 * 80) {
				if x := out[0].Float(n); x < 1 {
					out[0].SetFloat(n, c.small*x)
				}
			}
		}}
		v := &Verifier{c: m.Entry, cases: []verifyCase{vc}}
		if err := v.Verify(t.Context(), kernel); c.passes != (err == nil) {
			t.Errorf("%s: %v", c.name, err)
		}
		v.cases = []verifyCase{blind}
		if err := v.Verify(t.Context(), kernel); err != nil {
			t.Errorf("%s, without intervals: %v: the case is too easy", c.name, err)
		}
	}
}

// A plan that rounds operands to tf32 has the intervals of that: a right kernel, which is
// outside of those of f32, passes, and one with a wrong small element does not.
func TestSampledIntervalsOfTF32(t *testing.T) {
	m, err := hlo.Parse("s", []byte(`x = f32[96,64] parameter(0)
y = f32[64,80] parameter(1)
d = f32[96,80] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
q = f32[] constant(0.25)
s = f32[96,80] broadcast(q), dimensions={}
e = f32[96,80] multiply(d, s)
ROOT h = f32[96,80] exponential(e)`))
	if err != nil {
		t.Fatal(err)
	}
	vc := verifyCase{name: "random inputs"}
	if vc.in, err = Inputs(m.Entry, Normals, 1); err != nil {
		t.Fatal(err)
	}
	if err := vc.expectSamples(t.Context(), m.Entry, 1, ToleranceOf(m.Entry)); err != nil {
		t.Fatal(err)
	}
	tf32 := func(x float64) float64 { // as wgmma takes operands: the lower bits left out
		return float64(math.Float32frombits(math.Float32bits(float32(x)) &^ (1<<13 - 1)))
	}
	product := func(small float64) kernels.Kernel {
		return tampered{m.Entry, func(out []kernels.Buffer) {
			for n := range int64(96 * 80) {
				sum := float32(0)
				for k := range int64(64) {
					sum += float32(tf32(vc.in[0].Float(n/80*64+k)) * tf32(vc.in[1].Float(k*80+n%80)))
				}
				x := math.Exp(float64(sum / 4))
				if x < 1 {
					x *= small
				}
				out[0].SetFloat(n, x)
			}
		}}
	}
	exact := &Verifier{c: m.Entry, cases: []verifyCase{vc}}
	rounding := exact.For(kernels.Plan{Knobs: []kernels.Knob{{Name: kernels.TF32, Value: 1}}}, true)
	if exact.Verify(t.Context(), product(1)) == nil {
		t.Error("operands of tf32 are within the intervals of f32: the case is too easy")
	}
	if err := rounding.Verify(t.Context(), product(1)); err != nil {
		t.Errorf("a right kernel: %v", err)
	}
	if rounding.Verify(t.Context(), product(0.5)) == nil {
		t.Error("small elements that are half of what they should be pass")
	}
}

// Intervals that need too many elements are those of fewer samples.
func TestFewerIntervals(t *testing.T) {
	m, err := hlo.Parse("s", []byte(`x = f32[65536] parameter(0)
z = f32[] constant(0)
ROOT r = f32[65536] reduce-window(x, z), window={size=30001 pad=15000_15000}, to_apply=add`))
	if err != nil {
		t.Fatal(err)
	}
	in, err := Inputs(m.Entry, Normals, 1)
	if err != nil {
		t.Fatal(err)
	}
	b := &sampledBounds{c: m.Entry, in: in}
	for n := range 1024 {
		b.samples = append(b.samples, elementSample{index: []int64{int64(64 * n)}})
	}
	of, err := b.all(t.Context())
	if len(of) != 64 || err != nil {
		t.Errorf("%d intervals, %v", len(of), err)
	}
}
