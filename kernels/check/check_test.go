package check

import (
	"fmt"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

func TestCompareFindsTheWorst(t *testing.T) {
	shape := hlo.Shape{DType: hlo.F32, Dims: []int64{2, 2}}
	got, _ := kernels.NewBuffer(shape)
	want, _ := kernels.NewBuffer(shape)
	want.SetFloat(3, 100)
	got.SetFloat(3, 100.5)
	got.SetFloat(1, 0.001)
	if m := Compare(0, got, want, Tolerance{Relative: 0.01}); m != nil {
		t.Errorf("within tolerance, yet %v", m)
	}
	m := Compare(0, got, want, Tolerance{Relative: 0.001})
	if m == nil || m.Wrong != 1 || fmt.Sprint(m.Index) != "[1 1]" {
		t.Errorf("got %v", m)
	}
}

func TestExact(t *testing.T) {
	for text, want := range map[string]bool{
		"x = f32[8,8] parameter(0); ROOT d = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}":                                                                                                                              true,
		"x = bf16[64,64] parameter(0); ROOT d = bf16[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}":                                                                                                                        false,
		"x = f32[8] parameter(0); ROOT e = f32[8] exponential(x)":                                                                                                                                                                                 false,
		"x = s32[8] parameter(0); ROOT e = s32[8] multiply(x, x)":                                                                                                                                                                                 true,
		"x = f32[8,3,4] parameter(0); k = f32[3,4,5] parameter(1); ROOT c = f32[8,1,5] convolution(x, k), window={size=3}, dim_labels=b0f_0io->b0f":                                                                                               true,
		"x = bf16[8,3,40] parameter(0); k = bf16[3,40,5] parameter(1); ROOT c = bf16[8,1,5] convolution(x, k), window={size=3}, dim_labels=b0f_0io->b0f":                                                                                          false,
		"x = bf16[9] parameter(0); z = bf16[] constant(0); ROOT r = bf16[7] reduce-window(x, z), window={size=3}, to_apply=add":                                                                                                                   true,
		"x = bf16[200] parameter(0); z = bf16[] constant(0); ROOT r = bf16[1] reduce-window(x, z), window={size=200}, to_apply=add":                                                                                                               false,
		"x = bf16[200] parameter(0); z = bf16[] constant(-inf); ROOT r = bf16[1] reduce-window(x, z), window={size=200}, to_apply=max":                                                                                                            true,
		"x = f32[8] parameter(0); z = f32[] constant(1); ROOT r = f32[6] reduce-window(x, z), window={size=3}, to_apply=mul":                                                                                                                      false,
		"x = bf16[300] parameter(0); i = s32[] parameter(1); ROOT s = bf16[9] dynamic-slice(x, i), dynamic_slice_sizes={9}":                                                                                                                       true,
		"x = bf16[300] parameter(0); i = s32[] parameter(1); s = bf16[9] dynamic-slice(x, i), dynamic_slice_sizes={9}; j = bf16[] convert(i); b = bf16[9] broadcast(j), dimensions={}; ROOT a = bf16[9] add(s, b)":                                false,
		"x = f32[9,2] parameter(0); i = s32[4] parameter(1); ROOT g = f32[4,2] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,2}":                                               true,
		"x = f32[9] parameter(0); i = s32[4] parameter(1); u = f32[4] parameter(2); ROOT g = f32[9] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add":        true,
		"x = bf16[9] parameter(0); i = s32[400] parameter(1); u = bf16[400] parameter(2); ROOT g = bf16[9] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add": false,
		"x = bf16[8,8] parameter(0); s = f32[] parameter(1); ROOT d = f32[8,8] scaled-dot(x, x, s, s), lhs_contracting_dims={1}, rhs_contracting_dims={0}":                                                                                        true,
		"x = bf16[8,8] parameter(0); s = f8e8m0fnu[] parameter(1); ROOT d = f32[8,8] scaled-dot(x, x, s, s), lhs_contracting_dims={1}, rhs_contracting_dims={0}":                                                                                  false,
	} {
		m, err := hlo.Parse("f", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if Exact(m.Entry) != want {
			t.Errorf("Exact is %v for %s", !want, text)
		}
	}
}

func TestToleranceOf(t *testing.T) {
	const (
		f32  = 0x1p-23
		bf16 = 0x1p-7
	)
	for text, want := range map[string]float64{
		"x = f8e4m3fn[8] parameter(0); ROOT r = f8e4m3fn[8] reverse(x), dimensions={0}":                                      0,
		"x = f32[9] parameter(0); i = s32[] parameter(1); ROOT s = f32[2] dynamic-slice(x, i), dynamic_slice_sizes={2}":      0,
		"x = bf16[8] parameter(0); y = f32[8] convert(x); ROOT n = f32[8] exponential(y)":                                    3 * f32,
		"x = f32[8] parameter(0); y = f32[8] exponential(x); ROOT n = bf16[8] convert(y)":                                    3 * bf16,
		"x = f32[9] parameter(0); z = f32[] constant(0); ROOT r = f32[6] reduce-window(x, z), window={size=4}, to_apply=add": 3*f32 + 4*f32*2,
		`c { a = f32[] parameter(0); b = f32[] parameter(1); d = f32[] parameter(2); e = f32[] parameter(3); s = f32[] add(a, d); m = f32[] maximum(b, e); ROOT t = (f32[], f32[]) tuple(s, m) }
ENTRY e { x = f32[4] parameter(0); z = f32[] constant(0); ROOT r = (f32[], f32[]) reduce(x, x, z, z), dimensions={0}, to_apply=c }`: 3*f32 + 4*f32*2,
	} {
		m, err := hlo.Parse("f", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := ToleranceOf(m.Entry).Relative; got != want {
			t.Errorf("tolerance %v, not %v, of %s", got, want, text)
		}
	}
}
