package cpu

import (
	"cmp"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu/internal/gemm"
)

// A deviceSpec is the part of a device's description that prices, offers and the
// blocking of dots depend on.
type deviceSpec struct {
	gemm.Caches // the share of a lane in each cache, bytes
	// Last is the bytes of the last cache, shared by all lanes, as far as they are
	// believed.
	last int64
	// Vector is the bits of a vector. Rows of as many elements, 32 vectors of f32, are as
	// good as longer ones.
	vector int64
	// Rows may have vectors of 64 bytes.
	wide bool
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
	for _, l := range believed(d) {
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

// What is believed of a cache that lanes share and nobody measured: 16 MiB a lane, and
// 32 MiB, the third caches of a core and of a group of cores of the last ten years. A
// hypervisor may list 480 MiB, of which 80 are kept.
const (
	believedShare = 16 << 20
	believedLeast = 32 << 20
)

// believed are the levels of a device, with the bytes of its last cache that were
// measured, or no more than a lane's share can be.
func believed(d kernels.Device) []kernels.Level {
	levels := slices.Clone(d.Levels)
	last := lastShared(levels)
	if last < 0 {
		return levels
	}
	l := &levels[last]
	most := believedShare * int64(l.SharedBy(d.Lanes))
	most = max(believedLeast, most)
	l.Bytes = cmp.Or(
		l.Kept, min(l.Bytes, most),
	)
	return levels
}

// lastShared is the last cache that lanes share; −1 where there is none.
func lastShared(levels []kernels.Level) int {
	last := -1
	for k, l := range levels {
		if l.Bytes > 0 && l.Shared {
			last = k
		}
	}
	return last
}
