package cpu

import (
	"cmp"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu/gemm"
)

// A deviceSpec is what one lane of a device has: what plans, scores and blocking are
// made for.
type deviceSpec struct {
	gemm.Caches       // its share of each
	last        int64 // bytes of the last cache, of all lanes
	vector      int64 // bits of one; as many elements of a row are as good as more: 32 vectors of f32
}

// defaultVectorBits is for sheets that do not tell.
const defaultVectorBits = 256

// deviceSpecOf is that of a device; what it does not list is typical of the
// last ten years.
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
