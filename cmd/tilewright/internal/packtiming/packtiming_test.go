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
		r, err := Measure(context.Background(), b, s, Plans{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Measure(context.Background(), b, s, Plans{InPlace: &r.InPlacePlan}, 0)
		if err != nil {
			t.Fatal(err)
		}
		both := Plans{&r.InPlacePlan, &again.PackedPlan}
		again, err = Measure(context.Background(), b, s, both, 0)
		if err != nil || again.PackedPlan.String() != both.Packed.String() {
			t.Fatalf("%v, %v; want %v", again.PackedPlan, err, both.Packed)
		}
		if r.Pairs != minPairs || r.InPlace <= 0 || r.Packed <= 0 || r.Packing <= 0 ||
			r.Ratio.Lo <= 0 || math.IsInf(r.Ratio.Hi, 1) {
			t.Errorf("%+v", r)
		}
	}
}

// TestPackedIsReadAsText: a compiler that packs a weight itself, and unpacks it in the
// fusion, finds what was measured of it.
func TestPackedIsReadAsText(t *testing.T) {
	s, err := Dot{M: 24, N: 64, K: 32, DType: hlo.F32, Right: true, Pack: layout.Pack{
		Source: []int64{32, 64}, InnerDimsPos: []int{1}, InnerTiles: []int64{16}, OuterDimsPerm: []int{1, 0},
	}}.Subject()
	if err != nil {
		t.Fatal(err)
	}
	m, err := hlo.Parse("f.mlir", []byte(`func.func @f(%a: tensor<24x32xf32>, %b: tensor<4x32x16xf32>) -> tensor<24x64xf32> {
  %e = tensor.empty() : tensor<32x64xf32>
  %w = linalg.unpack %b outer_dims_perm = [1, 0] inner_dims_pos = [1] inner_tiles = [16] into %e : tensor<4x32x16xf32> -> tensor<32x64xf32>
  %d = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : (tensor<24x32xf32>, tensor<32x64xf32>) -> tensor<24x64xf32>
  return %d : tensor<24x64xf32>
}
`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := m.Entry.Canonical(), s.Packed().Canonical(); got != want {
		t.Errorf("read:\n%s\nmade:\n%s", got, want)
	}
}
