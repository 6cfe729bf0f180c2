package packtiming

import (
	"context"
	"math"
	"testing"

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
		s, err := d.Subject()
		if err != nil {
			t.Fatal(err)
		}
		b := cpu.New()
		r, err := Measure(context.Background(), b, s, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Measure(context.Background(), b, s, &r.InPlacePlan, 0); err != nil {
			t.Fatal(err)
		}
		if r.Pairs != minPairs || r.InPlace <= 0 || r.Packed <= 0 || r.Packing <= 0 ||
			r.Ratio.Lo <= 0 || math.IsInf(r.Ratio.Hi, 1) {
			t.Errorf("%+v", r)
		}
	}
}
