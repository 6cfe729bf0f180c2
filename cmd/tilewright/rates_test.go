package main

import (
	"math"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Times are rated against the copy that came first, the highest of the matrix
// ceilings and the vendor's time.
func TestRates(t *testing.T) {
	all, err := modules(largeFusions, "doctor/*.hlo")
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]*hlo.Computation{}
	for _, m := range all {
		by[m.Entry.Name] = m.Entry
	}
	if all[0].Entry.Name != copyFusion || by["gemm_bf16_8192"] == nil {
		t.Fatalf("the first of the large fusions is %q", all[0].Entry.Name)
	}
	d := &doctor{
		ceilings: []device.Ceiling{{Name: "mma.sync bf16", FLOPS: 6e14}, {Name: "wgmma bf16", FLOPS: 9e14}},
		vendor:   map[string]float64{"gemm_bf16_8192": 1.4e-3},
	}
	if r := d.rate(by["softmax"], tunedJSON{Fusion: "softmax", Seconds: 1e-4}); r.OfCopy != 0 ||
		!strings.Contains(r.String(), "an unknown share") {
		t.Errorf("before the copy: %v", r)
	}
	d.rate(by[copyFusion], tunedJSON{Fusion: copyFusion, Seconds: 2.5e-4})
	r := d.rate(by["softmax"], tunedJSON{Fusion: "softmax", Seconds: 2.5e-4})
	if math.Abs(r.OfCopy-0.5) > 1e-9 || r.FLOPS != 0 {
		t.Errorf("softmax moves half of what the copy does: %+v", r)
	}
	r = d.rate(by["gemm_bf16_8192"], tunedJSON{Fusion: "gemm_bf16_8192", Seconds: 2e-3})
	if math.Abs(r.OfMatrix-1099.511627776e9/2e-3/9e14) > 1e-9 ||
		math.Abs(r.OfVendor-0.7) > 1e-9 {
		t.Errorf("%+v", r)
	}
	if n, want := strings.Count(r.row(), "\t"),
		strings.Count(ratedHeader, "\t"); n != want {
		t.Errorf("%d tabs in a row, %d in the header", n, want)
	}
}
