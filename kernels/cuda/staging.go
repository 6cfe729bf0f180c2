//go:build cuda && cgo && linux

package cuda

import (
	"context"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/tilewright/tilewright/kernels/gpu/device"
)

const (
	// stagingBytes is the size of each half of the staging memory.
	stagingBytes = 4 << 20
	// stagedFrom is the number of bytes from which copies go through the staging
	// memory.
	stagedFrom = 1 << 20
)

// staging is page-locked (pinned) memory of the host, which the GPU accesses
// directly. Large copies go through it in pieces: one half is filled, or emptied,
// while the other is being transferred. A nil staging is none.
type staging struct{ halves [2][]byte }

// newStaging allocates staging memory. It returns nil if the system gives no
// page-locked memory; copies then use pageable memory, at about half the rate.
func newStaging() *staging {
	p, err := hostAlloc(2 * stagingBytes)
	if err != nil {
		return nil
	}
	all := unsafe.Slice((*byte)(p), 2*stagingBytes)
	return &staging{
		[2][]byte{all[:stagingBytes:stagingBytes], all[stagingBytes:]},
	}
}

// free releases the memory.
func (s *staging) free() error {
	if s == nil {
		return nil
	}
	return failed(
		"cuMemFreeHost",
		cu.MemFreeHost(unsafe.Pointer(&s.halves[0][0])),
	)
}

// takes reports whether a copy of n bytes goes through the staging memory.
func (s *staging) takes(n int) bool { return s != nil && n >= stagedFrom }

// copyIn copies to the GPU by way of the staging memory, in the order of the
// stream. The wait before each transfer is for the one before it, which frees the
// half that is filled next. It runs on the driver's thread.
func (d *Driver) copyIn(to device.Address, from []byte) error {
	for k := 0; len(from) > 0; k++ {
		half := d.staging.halves[k%2]
		// This half is filled while the other is being transferred.
		n := copy(half, from)
		if err := d.wait(context.Background()); err != nil {
			return err
		}
		err := cu.MemcpyHtoDAsync(
			cu.DevicePtr(to),
			unsafe.Pointer(&half[0]), int64(n),
			d.stream,
		)
		if err != nil {
			return failed("cuMemcpyHtoDAsync", err)
		}
		to += device.Address(n)
		from = from[n:]
	}
	return d.wait(context.Background())
}

// copyOut copies from the GPU by way of the staging memory, in the order of the
// stream; the pieces arrive one transfer later. It runs on the driver's thread.
func (d *Driver) copyOut(to []byte, from device.Address) error {
	// arrived is the destination of the previous piece.
	var arrived []byte
	for k := 0; len(to) > 0 || len(arrived) > 0; k++ {
		if err := d.wait(context.Background()); err != nil {
			return err
		}
		n := min(len(to), stagingBytes)
		if n > 0 {
			half := d.staging.halves[k%2]
			err := cu.MemcpyDtoHAsync(
				unsafe.Pointer(&half[0]),
				cu.DevicePtr(from), int64(n), d.stream,
			)
			if err != nil {
				return failed("cuMemcpyDtoHAsync", err)
			}
		}
		// The previous piece is emptied while this one is being transferred.
		copy(arrived, d.staging.halves[(k+1)%2])
		arrived = to[:n]
		to = to[n:]
		from += device.Address(n)
	}
	return nil
}
