package kernels

import (
	"math"
	"testing"
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
