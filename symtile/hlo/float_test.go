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

// What ml_dtypes 0.5, which XLA's evaluator is built on, makes of numbers as powers of two.
func TestPowerRounding(t *testing.T) {
	const least = 0x1p-127
	for v, want := range map[float64]float64{
		1.5: 2, 3: 4, 6: 8, 0.75: 1, 1.4: 1, 1.6: 2,
		1.5 - 0x1p-40: 2, // 1.5 as an f32
		0x1.7p127:     0x1p127,
		0x1.8p127:     math.NaN(),
		0x1p128:       math.NaN(),
		0x1p-127:      least,
		0x1.8p-127:    2 * least,
		0x1p-129:      least,
		0x1p-149:      least,
		0x1p-150:      math.NaN(), // 0 as an f32
		0:             math.NaN(),
		-1:            math.NaN(),
		math.Inf(1):   math.NaN(),
	} {
		got := F8E8M0FNU.RoundFloat(v)
		if got != want && (got == got || want == want) {
			t.Errorf("%v becomes %v, want %v", v, got, want)
		}
	}
}

// What ml_dtypes 0.6 and XLA:CPU make of numbers that a type has not: the codes of NaN, −0,
// ±∞, ±10⁹ and ±10⁻⁹. Of a type without NaN XLA makes −0, whatever the sign of the NaN.
func TestFloatSpecials(t *testing.T) {
	numbers := []float64{math.NaN(), math.Copysign(0, -1), math.Inf(1), math.Inf(-1), 1e9, -1e9, 1e-9, -1e-9}
	for d, want := range map[DType][]uint64{
		F4E2M1FN:      {0x8, 0x8, 0x7, 0xf, 0x7, 0xf, 0, 0x8},
		F8E3M4:        {0x78, 0x80, 0x70, 0xf0, 0x70, 0xf0, 0, 0x80},
		F8E4M3:        {0x7c, 0x80, 0x78, 0xf8, 0x78, 0xf8, 0, 0x80},
		F8E4M3FN:      {0x7f, 0x80, 0x7f, 0xff, 0x7f, 0xff, 0, 0x80},
		F8E4M3B11FNUZ: {0x80, 0, 0x80, 0x80, 0x80, 0x80, 0, 0},
		F8E4M3FNUZ:    {0x80, 0, 0x80, 0x80, 0x80, 0x80, 0, 0},
		F8E5M2:        {0x7e, 0x80, 0x7c, 0xfc, 0x7c, 0xfc, 0, 0x80},
		F8E5M2FNUZ:    {0x80, 0, 0x80, 0x80, 0x80, 0x80, 0, 0},
		F8E8M0FNU:     {0xff, 0xff, 0xff, 0xff, 0x9d, 0xff, 0x61, 0xff},
	} {
		for k, x := range numbers {
			if got := d.FloatBits(x); got != want[k] {
				t.Errorf("%v of %s has the code %#x, want %#x", x, d, got, want[k])
			}
		}
	}
	negative := math.Copysign(math.NaN(), -1)
	if got := F4E2M1FN.FloatBits(negative); got != 8 {
		t.Errorf("a negative NaN of f4e2m1fn has the code %#x", got)
	}
}
