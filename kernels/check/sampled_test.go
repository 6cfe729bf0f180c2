package check

import (
	"context"
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
	if err := v.addSampled(m.Entry, vc, 1, ToleranceOf(m.Entry)); err != nil {
		t.Fatal(err)
	}
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
