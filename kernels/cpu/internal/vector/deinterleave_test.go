package vector

import (
	"slices"
	"testing"

	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// TestSeconds loads every second element as plain Go does it, up to the end of an array, and
// nothing behind scratch.
func TestSeconds(t *testing.T) {
	plain := portable.Read[int32](hlo.S32)
	read := SecondsReader(hlo.S32, plain)
	for n := range 100 {
		n += n / 90 * 33000
		for _, at := range []int64{0, 1, 5} {
			// The last element that is read is the last one of the array.
			data := make([]byte, 4*(int(at)+2*n))
			for k := range data {
				data[k] = byte(k*37 + k/251)
			}
			if n > 0 {
				data = data[:len(data)-4]
			}
			want, got := make([]int32, n+1), make([]int32, n+1)
			plain(want[:n], data, at, 2)
			read(got[:n], data, at, 2)
			if !slices.Equal(got, want) {
				t.Fatalf("%d from %d on differ", n, at)
			}
		}
	}
}
