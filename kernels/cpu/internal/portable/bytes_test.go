package portable

import (
	"math"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Numbers are rounded to types of one byte, and written, as the reference does it: those that
// 16 bits tell apart, and next to each of them and halfway to the next one.
func TestBytes(t *testing.T) {
	types := []hlo.DType{
		hlo.F8E4M3FN, hlo.F8E5M2, hlo.F8E4M3FNUZ, hlo.F8E5M2FNUZ,
		hlo.F8E4M3B11FNUZ, hlo.F8E3M4, hlo.F8E4M3, hlo.F8E8M0FNU, hlo.F4E2M1FN,
	}
	for _, d := range types {
		x := byteCodeOf(d)
		for high := range uint32(1 << 16) {
			for _, low := range []uint32{0, 1, 0x7fff, 0x8000, 0x8001, 0xffff} {
				v := math.Float32frombits(high<<16 | low)
				if got, want := x.of(v), byte(d.FloatBits(float64(v))); got != want {
					t.Fatalf("%s of %x is %x, not %x", d, math.Float32bits(v), got, want)
				}
				var got [1]float32
				x.round(got[:], []float32{v})
				want := float32(kernels.RoundFloat(d, float64(v)))
				if got[0] != want && (got[0] == got[0] || want == want) {
					t.Fatalf("%s: %g is rounded to %g, not %g", d, v, got[0], want)
				}
			}
		}
	}
}
