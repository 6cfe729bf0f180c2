package cpu

import (
	"cmp"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu/internal/gemm"
)

// A deviceSpec is the part of a device's description that prices, offers and the
// blocking of dots depend on.
type deviceSpec struct {
	gemm.Caches // the share of a lane in each cache, bytes
	// Last is the bytes of the last cache, shared by all lanes.
	last int64
	// Vector is the bits of a vector. Rows of as many elements, 32 vectors of f32, are as
	// good as longer ones.
	vector int64
}

// defaultVectorBits is the width of vectors where the device does not list it.
const defaultVectorBits = 256

// deviceSpecOf reads the description of a device. Values that it does not list are
// those of typical x86 cores of the last ten years.
func deviceSpecOf(d kernels.Device) deviceSpec {
	c := deviceSpec{
		vector: cmp.Or(int64(d.VectorBits), defaultVectorBits),
	}
	var shares []int
	for _, l := range d.Levels {
		if l.Bytes == 0 {
			break
		}
		c.last = l.Bytes
		shares = append(
			shares, int(l.Bytes)/l.SharedBy(d.Lanes),
		)
	}
	for k, to := range []*int{&c.First, &c.Second, &c.Third} {
		if k < len(shares) {
			*to = shares[k]
		}
	}
	c.Caches = c.Caches.Filled()
	c.last = cmp.Or(c.last, int64(c.Second))
	return c
}
