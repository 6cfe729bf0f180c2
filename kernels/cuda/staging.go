//go:build cuda && cgo && linux

package cuda

import (
	"context"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/tilewright/tilewright/kernels/gpu/device"
)

const (
	stagingBytes = 4 << 20 // of each half
	stagedFrom   = 1 << 20 // bytes from which a copy goes through it
)

// A staging is memory of the host that the GPU copies from and to by itself
// (pinned, or page-locked). Large copies go through it in pieces: one half is
// filled, or emptied, while the other is on its way. nil is none.
type staging struct{ halves [2][]byte }

// newStaging is nil where the system gives no such memory: copies then go from
// and to pages as they are, at about half the rate.
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

func (s *staging) free() error {
	if s == nil {
		return nil
	}
	return failed(
		"cuMemFreeHost",
		cu.MemFreeHost(unsafe.Pointer(&s.halves[0][0])),
	)
}

// takes says whether a copy of n bytes goes through the staging.
func (s *staging) takes(n int) bool { return s != nil && n >= stagedFrom }

// copyIn copies to the GPU behind what is queued, and waits; on the driver's
// thread.
func (d *Driver) copyIn(to device.Address, from []byte) error {
	for k := 0; len(from) > 0; k++ {
		half := d.staging.halves[k%2]
		n := copy(half, from) // while the other half is on its way
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
		to = to + device.Address(n)
		from = from[n:]
	}
	return d.wait(context.Background())
}

// copyOut copies from the GPU behind what is queued; on the driver's thread.
func (d *Driver) copyOut(to []byte, from device.Address) error {
	var arrived []byte // where the piece before goes
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
		copy(arrived, d.staging.halves[(k+1)%2]) // while this one is on its way
		arrived, to, from = to[:n],
			to[n:], from+device.Address(n)
	}
	return nil
}
