package hlo

import (
	"math"
	"testing"
)

// Every code of every small type decodes to a number that encodes to it again.
func TestFloatCodesRoundTrip(t *testing.T) {
	for d, f := range smallFloats {
		codes := 1 << (f.exp + f.frac + 1)
		if f.unsigned {
			codes = 256
		}
		for code := range codes {
			v := f.decode(uint16(code))
			if v == v && f.encode(v) != uint16(code) ||
				v != v && f.decode(f.encode(v)) == f.decode(f.encode(v)) {
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
			lo, hi := f.decode(uint16(code)), f.decode(uint16(code+1))
			middle := (lo + hi) / 2
			even := uint16(code + code&1)
			for v, want := range map[float64]uint16{
				middle:                     even,
				math.Nextafter(middle, lo): uint16(code),
				math.Nextafter(middle, hi): uint16(code + 1),
			} {
				if got := f.encode(v); got != want {
					t.Errorf("%s: %v encodes to %#x, want %#x", d, v, got, want)
				}
			}
		}
	}
}
