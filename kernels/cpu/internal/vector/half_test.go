package vector

import (
	"bytes"
	"slices"
	"testing"

	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Integers of one and two bytes are loaded and stored as plain Go does it: every
// remainder of a vector, at any place, and nothing besides.
func TestNarrowIntegers(t *testing.T) {
	for _, d := range []hlo.DType{hlo.Pred, hlo.S8, hlo.U8, hlo.S16, hlo.U16} {
		plainRead, plainWrite := portable.Read[int32](d), portable.Write[int32](d)
		read, write := NarrowReader(d, plainRead), NarrowWriter(d, plainWrite)
		size := int(d.Size())
		data := make([]byte, 700*size)
		for k := range data {
			data[k] = byte(k*37 + k/251)
		}
		for n := range 90 {
			n += n / 80 * 500
			for _, at := range []int64{0, 1, 7} {
				want, got := make([]int32, n+1), make([]int32, n+1)
				plainRead(want[:n], data, at, 1)
				read(got[:n], data, at, 1)
				if !slices.Equal(got, want) {
					t.Fatalf("%s, %d from %d on: %v, not %v", d, n, at, got, want)
				}
				for k := range got {
					got[k] -= int32(k << 8)
				}
				there, back := make([]byte, len(data)), make([]byte, len(data))
				plainWrite(got[:n], there, at, 1)
				write(got[:n], back, at, 1)
				if !bytes.Equal(there, back) {
					t.Fatalf("%s, %d stored from %d on: % x, not % x", d, n, at, back, there)
				}
			}
		}
	}
}
