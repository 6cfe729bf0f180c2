package vector

import (
	"math"
	"testing"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
)

// TestEncodeRounded compares the codes of f32 that are rounded as they are stored with those of
// the type: all exponents and the leading bits of all fractions, with what is around halfway
// between two numbers, and both signs.
func TestEncodeRounded(t *testing.T) {
	if !Supported() {
		t.Skip("no machine code runs here")
	}
	var from []float32
	for high := range uint32(1 << 14) { // sign, exponent and five bits of the fraction
		for _, low := range []uint32{0, 1, 1 << 17, 1<<17 - 1, 1<<17 + 1, 1<<18 - 1} {
			from = append(from, math.Float32frombits(high<<18|low))
		}
	}
	to := make([]byte, len(from))
	for d, small := range smallTypes {
		f, ok := LoadRoutine(func(a *amd64.Assembler) error {
			EmitLoadArgs(a)
			c := &amd64.Chain{}
			x := c.Load(amd64.VMOVUPS, amd64.Mem{Base: amd64.RSI}, 32)
			c.StoreBytes(amd64.Mem{Base: amd64.RDX}, Lanes, small.encodeRounded(c, x))
			loop := &amd64.Loop{
				Chain: c, Counter: amd64.RAX, Width: 4, Copies: 1,
				Pointers: []amd64.Pointer{{Reg: amd64.RSI, Bytes: 4}, {Reg: amd64.RDX, Bytes: 1}},
			}
			return loop.EmitWhole(a)
		})
		if !ok {
			t.Fatal("no machine code")
		}
		f.Call(unsafe.Pointer(&convertArgs{int64(len(from)), unsafe.Pointer(&from[0]), unsafe.Pointer(&to[0])}))
		for k, x := range from {
			if want := byte(d.FloatBits(d.RoundFloat(float64(x)))); to[k] != want {
				t.Fatalf("%s of %g (%#08x) is %#02x, not %#02x", d, x, math.Float32bits(x), to[k], want)
			}
		}
	}
}
