package gpu

import (
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/kerneltest"
)

// The price of a plan follows what its kernel takes: blocks of more shared memory, and
// values that are spilled, cost more, and the same resources the same.
func TestRepriced(t *testing.T) {
	s, err := device.ParseSpec("sm_86")
	if err != nil {
		t.Fatal(err)
	}
	p := kerneltest.Program(t, `x = f8e4m3fn[4096,4096] parameter(0)
y = f8e4m3fn[4096,4096] parameter(1)
c = bf16[4096,4096] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
`)
	plan, err := kernels.ParsePlan("64,128,64 group=16 stages=1")
	if err != nil {
		t.Fatal(err)
	}
	f, err := FootprintOf(p, plan, s)
	if err != nil {
		t.Fatal(err)
	}
	m, err := newEstimate(p, s)
	if err != nil {
		t.Fatal(err)
	}
	total := func(known *Resources) float64 {
		m.known = known
		terms := m.Terms()
		price := kernels.Price{Seconds: make([]float64, len(terms.Names))}
		if err := m.Price(plan, &price); err != nil {
			t.Fatal(err)
		}
		return price.Total(&terms)
	}
	walked := total(nil)
	if f.Estimated.Shared <= f.Priced.Shared {
		t.Fatalf("the text takes %d bytes of shared memory, the walk says %d", f.Estimated.Shared, f.Priced.Shared)
	}
	if got := total(&f.Estimated); got <= walked {
		t.Errorf("%g s with the shared memory of the text, %g without", got, walked)
	}
	spills := f.Estimated
	spills.Spilled = 400
	if total(&spills) <= total(&f.Estimated) {
		t.Error("400 bytes spilled cost nothing")
	}
}
