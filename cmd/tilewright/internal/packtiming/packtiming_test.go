package packtiming

import (
	"context"
	"math"
	"testing"

	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/layout"
)

// TestMeasure: either operand, padded or not, is packed, verified and timed.
func TestMeasure(t *testing.T) {
	for _, d := range []Dot{
		{M: 24, N: 40, K: 33, DType: hlo.F32, Right: true, Pack: layout.Pack{
			Source: []int64{33, 40}, InnerDimsPos: []int{1, 0}, InnerTiles: []int64{16, 8}, OuterDimsPerm: []int{1, 0},
		}},
		{M: 24, N: 40, K: 32, DType: hlo.BF16, Pack: layout.Pack{
			Source: []int64{24, 32}, InnerDimsPos: []int{0}, InnerTiles: []int64{8}, OuterDimsPerm: []int{2, 0, 1},
		}},
	} {
		r, err := Measure(context.Background(), cpu.New(), d, 0)
		if err != nil {
			t.Fatal(err)
		}
		if r.Pairs != minPairs || r.InPlace <= 0 || r.Packed <= 0 || r.Packing <= 0 ||
			r.Ratio.Lo <= 0 || math.IsInf(r.Ratio.Hi, 1) {
			t.Errorf("%+v", r)
		}
	}
}

// TestPays: packing pays from a number of dots on, or never where the interval
// contains 1.
func TestPays(t *testing.T) {
	for _, c := range []struct {
		r    Result
		want int64
	}{
		{Result{InPlace: 10, Packed: 8, Packing: 3, Ratio: check.PairedInterval{Median: 0.8, Lo: 0.7, Hi: 0.9}}, 2},
		{Result{InPlace: 10, Packed: 9.5, Packing: 3, Ratio: check.PairedInterval{Median: 0.95, Lo: 0.8, Hi: 1.1}}, 0},
		{Result{InPlace: 10, Packed: 12, Packing: 3, Ratio: check.PairedInterval{Median: 1.2, Lo: 1.1, Hi: 1.3}}, 0},
	} {
		if got := c.r.Pays(); got != c.want {
			t.Errorf("%+v pays from %d, want %d", c.r, got, c.want)
		}
	}
}
