package kernels

import (
	"math"
	"testing"
)

// Every code of every small type decodes to a number that encodes to it again.
func TestFloatCodesRoundTrip(t *testing.T) {
	for code := range 1 << 16 {
		if f := F16ToFloat32(uint16(code)); f == f && (Float32ToF16(f) != uint16(code) || Float64ToF16(float64(f)) != uint16(code)) {
			t.Fatalf("f16 %#x is %v, which encodes to %#x", code, f, Float32ToF16(f))
		}
		if f := BF16ToFloat32(uint16(code)); f == f && (Float32ToBF16(f) != uint16(code) || Float64ToBF16(float64(f)) != uint16(code)) {
			t.Fatalf("bf16 %#x is %v, which encodes to %#x", code, f, Float32ToBF16(f))
		}
	}
	for d, f := range smallFloats {
		codes := 1 << (f.exp + f.frac + 1)
		if f.unsigned {
			codes = 256
		}
		for code := range codes {
			v := f.decode(byte(code))
			if v == v && f.encode(v) != byte(code) || v != v && f.decode(f.encode(v)) == f.decode(f.encode(v)) {
				t.Errorf("%s %#x is %v, which encodes to %#x", d, code, v, f.encode(v))
			}
		}
	}
}

// Between two neighbours the nearer one wins, and the even one at the middle.
func TestFloatRounding(t *testing.T) {
	for d, f := range smallFloats {
		if f.unsigned {
			continue
		}
		for code := range f.largest() {
			lo, hi := f.decode(byte(code)), f.decode(byte(code+1))
			middle := (lo + hi) / 2
			even := byte(code + code&1)
			for v, want := range map[float64]byte{middle: even, math.Nextafter(middle, lo): byte(code), math.Nextafter(middle, hi): byte(code + 1)} {
				if got := f.encode(v); got != want {
					t.Errorf("%s: %v encodes to %#x, want %#x", d, v, got, want)
				}
			}
		}
	}
	for code := range uint16(0x7bff) {
		middle := (float64(F16ToFloat32(code)) + float64(F16ToFloat32(code+1))) / 2
		for v, want := range map[float64]uint16{middle: code + code&1, math.Nextafter(middle, 0): code, math.Nextafter(middle, 1e9): code + 1} {
			if got := Float64ToF16(v); got != want {
				t.Fatalf("f16: %v encodes to %#x, want %#x", v, got, want)
			}
		}
	}
}
