package rates

import (
	"math/bits"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
)

// How much of the last cache is there is measured by two copies of the same arrays: by
// ordinary stores, for which lines are read before they are written, and past the
// caches. Within a cache the first is as fast or faster, beyond it moves half as much
// again: 14 rather than 25 GB/s on a Xeon whose hypervisor lists 480 MiB, from 80 MiB
// of arrays on.

const (
	// largestKept bounds the bytes of arrays that are tried.
	largestKept = 128 << 20
	// smallestKept is where the search ends: that much any cache has.
	smallestKept = 2 << 20
	// keptRounds are taken of each copy, of which the fastest counts.
	keptRounds = 3
	// keptShare is the share of the streaming rate below which arrays have left the
	// cache.
	keptShare = 0.75
)

// keptBytes is the most bytes of arrays, all lanes' together, that stay in the last
// cache while they are copied; 0 where no machine code copies. The sizes are powers of
// two and one and a half times these, from what is listed downwards.
func keptBytes(listed int64, lanes int) int64 {
	if !vector.LoadedCopyRoutines().Ok {
		return 0
	}
	arrays := make([][]float32, lanes)
	for k := range arrays {
		arrays[k] = make([]float32, largestSize(listed)/4/int64(lanes))
		for i := range arrays[k] {
			arrays[k][i] = 1
		}
	}
	return largestCached(largestSize(listed), func(size int64) float64 {
		rates := [2]float64{}
		for past := range rates {
			for range keptRounds {
				all := onLanes(lanes, func(lane int) float64 {
					return copyRate(arrays[lane], size/int64(lanes), past == 1)
				})
				rates[past] = max(rates[past], sum(all))
			}
		}
		return rates[0] / rates[1]
	})
}

// largestSize is the size that is tried first.
func largestSize(listed int64) int64 {
	power := int64(1) << (bits.Len64(uint64(max(1, listed))) - 1)
	return max(smallestKept, min(power, largestKept))
}

// largestCached is the first of the sizes from a power of two downwards at which the
// ratio of the rates of copying is at least keptShare.
func largestCached(size int64, ratio func(size int64) float64) int64 {
	for ; size > smallestKept; size /= 2 {
		for _, x := range [...]int64{size, size / 4 * 3} {
			if ratio(x) >= keptShare {
				return x
			}
		}
	}
	return smallestKept
}

// copyRate is the rate of copying one half of some bytes of an array to the other, in
// bytes/s that are read and written.
func copyRate(array []float32, bytes int64, past bool) float64 {
	const row = 1 << 10 // longer rows of ordinary stores are left to the Go runtime
	half := bytes / 2 / row * row
	base := unsafe.Pointer(unsafe.SliceData(array))
	var args vector.CopyArgs
	return rate(2*float64(half), func() {
		args.CopyRows(vector.CopyArgs{
			N: half / row, Bytes: row, Ahead: row,
			From: base, FromStep: row,
			To: unsafe.Add(base, half), ToStep: row,
		}, past)
	})
}
