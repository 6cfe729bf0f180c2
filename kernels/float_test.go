package kernels

import (
	"math"
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// Every code decodes to a number that encodes to it again, as the types themselves say.
func TestFloatCodesRoundTrip(t *testing.T) {
	for code := range 1 << 16 {
		if f := F16ToFloat32(uint16(code)); f == f &&
			(Float32ToF16(f) != uint16(code) || float64ToF16(float64(f)) != uint16(code)) {
			t.Fatalf("f16 %#x is %v, which encodes to %#x", code, f, Float32ToF16(f))
		}
		f := BF16ToFloat32(uint16(code))
		if f == f && (Float32ToBF16(f) != uint16(code) || float64ToBF16(float64(f)) != uint16(code)) {
			t.Fatalf("bf16 %#x is %v, which encodes to %#x", code, f, Float32ToBF16(f))
		}
	}
}

// Between two neighbours the nearer one wins, and the even one at the middle.
func TestFloatRounding(t *testing.T) {
	for code := range uint16(0x7bff) {
		middle := (float64(F16ToFloat32(code)) + float64(F16ToFloat32(code+1))) / 2
		for v, want := range map[float64]uint16{
			middle:                      code + code&1,
			math.Nextafter(middle, 0):   code,
			math.Nextafter(middle, 1e9): code + 1,
		} {
			if got := float64ToF16(v); got != want {
				t.Fatalf("f16: %v encodes to %#x, want %#x", v, got, want)
			}
		}
	}
}

// Halves go to the even code, which of a mantissa without bits is the even exponent;
// a narrower exponent has neither denormal numbers nor what is too large.
func TestReducePrecision(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		d                  hlo.DType
		exponent, mantissa int
		v, want            float64
	}{
		{hlo.F32, 8, 7, 1 + 0x1p-8, 1},
		{hlo.F32, 8, 7, 1 + 0x3p-8, 1 + 0x1p-6},
		{hlo.F32, 8, 0, 1.5, 2},
		{hlo.F32, 8, 0, -3, -2},
		{hlo.F32, 8, 7, math.MaxFloat32, inf},
		{hlo.F32, 5, 10, -65520, -inf},
		{hlo.F32, 5, 10, 65519, 65504},
		{hlo.F32, 5, 10, 0x1.ffcp-15, 0},
		{hlo.F32, 5, 10, 0x1.ffep-15, 0x1p-14},
		{hlo.F32, 8, 7, 0x1p-149, 0},
		{hlo.F32, 8, 22, 0x3p-149, 0x4p-149},
		{hlo.F16, 5, 9, 0x3p-24, 0x4p-24},
		{hlo.F64, 11, 52, math.SmallestNonzeroFloat64, math.SmallestNonzeroFloat64},
	} {
		if got := ReducePrecision(c.d, c.exponent, c.mantissa, c.v); got != c.want {
			t.Errorf("%s %v to e%dm%d is %v, want %v", c.d, c.v, c.exponent, c.mantissa, got, c.want)
		}
	}
}
