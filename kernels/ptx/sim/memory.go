package sim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"
)

// Global memory is divided into pages of pageSize bytes whose addresses are never
// used twice. An allocation starts 256 bytes into a page, aligned as cuMemAlloc
// promises and no better, and at least one unused page lies on either side of it,
// so that an access out of bounds does not hit another allocation.
const (
	deviceBase = 0x7f00_0000_0000
	pageShift  = 16
	pageSize   = 1 << pageShift
	allocAlign = 256
)

// allocation is one block of device memory.
type allocation struct {
	// start is the device address of the first byte.
	start uint64
	size  int64
	data  []byte
	// written holds one byte for each byte of data: 1 once something was stored
	// there.
	written []byte
	freed   bool
	// name is that of a module variable; it is empty for allocations of the host.
	name string
	// shadow records the accesses of the current launch; nil without
	// Options.Races.
	shadow *globalShadow
	// storedBy is the number of the latest launch that stored to it, and unsettled is set
	// where a launch that may still run beside the current one has.
	storedBy  atomic.Int64
	unsettled bool
}

// String names the allocation for findings.
func (a *allocation) String() string {
	s := fmt.Sprintf("allocation %#x of %d bytes", a.start, a.size)
	if a.name != "" {
		s = fmt.Sprintf("variable %s (%d bytes)", a.name, a.size)
	}
	if a.freed {
		s += ", freed"
	}
	return s
}

// memory is the global memory of the device.
type memory struct {
	// pages maps a page to the index of its allocation in allocs plus one; 0 is
	// none.
	pages []int32
	// allocs are all allocations, freed ones included, whose addresses stay
	// reserved.
	allocs []*allocation
	// used and limit are bytes: those of live allocations, and the size of the
	// memory.
	used  int64
	limit int64
}

// alignedBytes returns n zero bytes that start at a multiple of 8.
func alignedBytes(n int64) []byte {
	words := make([]uint64, (n+7)/8+1)
	return unsafe.Slice((*byte)(unsafe.Pointer(
		&words[0],
	)), len(words)*8)[:n:n]
}

// alloc makes an allocation of n bytes at a new address.
func (m *memory) alloc(n int64, name string) (*allocation, error) {
	switch {
	case n < 0:
		return nil, fmt.Errorf("sim: allocation of %d bytes", n)
	case m.used+n > m.limit:
		return nil, fmt.Errorf(
			"sim: out of device memory: %d bytes wanted, %d of %d in use",
			n, m.used, m.limit,
		)
	}
	m.used += n
	page := len(m.pages) + 1
	a := &allocation{
		start:   deviceBase + uint64(page)<<pageShift + allocAlign,
		size:    n,
		data:    alignedBytes(n),
		written: make([]byte, n),
		name:    name,
	}
	m.allocs = append(m.allocs, a)
	pages := int((allocAlign + n + pageSize - 1) >> pageShift)
	// An unused page lies before the allocation, and more behind large ones, up
	// to 1024, to catch indices that are far off.
	m.pages = append(m.pages, 0)
	for range max(pages, 1) {
		m.pages = append(m.pages, int32(len(m.allocs)))
	}
	m.pages = append(
		m.pages,
		make([]int32, min(pages, 1<<10))...,
	)
	return a, nil
}

// owner returns the allocation in whose pages addr lies, or nil.
func (m *memory) owner(addr uint64) *allocation {
	page := (addr - deviceBase) >> pageShift
	if page >= uint64(len(m.pages)) ||
		m.pages[page] == 0 {
		return nil
	}
	return m.allocs[m.pages[page]-1]
}

// find returns the allocation that holds all n bytes at addr and their offset
// in it, or nil.
func (m *memory) find(addr uint64, n int64) (*allocation, int64) {
	a := m.owner(addr)
	if a == nil || a.freed {
		return nil, 0
	}
	off := int64(addr - a.start)
	if off >= 0 && off+n <= a.size {
		return a, off
	}
	return nil, 0
}

// describe locates an address for people: inside, before, or after which
// allocation.
func (m *memory) describe(addr uint64, n int64) string {
	// Small addresses come from null pointers with an offset.
	if addr < 1<<16 {
		return "a null pointer"
	}
	var near *allocation
	best := uint64(1) << 62
	// The nearest allocation is most likely the one that was meant.
	for _, a := range m.allocs {
		d := min(
			addr-a.start,
			a.start-addr,
			addr-(a.start+uint64(a.size)),
		)
		if d < best {
			near, best = a, d
		}
	}
	if near == nil {
		return "nothing is allocated"
	}
	off := int64(addr - near.start)
	switch {
	case off < 0:
		return fmt.Sprintf("%d bytes before %v", -off, near)
	case off >= near.size:
		return fmt.Sprintf("%d bytes past the end of %v", off-near.size, near)
	case off+n > near.size:
		return fmt.Sprintf("its last %d bytes lie past the end of %v", off+n-near.size, near)
	}
	return fmt.Sprintf("at offset %d of %v", off, near)
}

// host returns the n bytes at addr for the host to read or write.
func (m *memory) host(addr uint64, n int64) (*allocation, int64, error) {
	a, off := m.find(addr, n)
	if a == nil {
		return nil, 0, fmt.Errorf(
			"sim: %d bytes at %#x: %s", n, addr, m.describe(addr, n),
		)
	}
	return a, off, nil
}

// noteStore records that a launch stores to the allocation.
func (a *allocation) noteStore(launch int64) {
	if a.storedBy.Load() != launch {
		a.storedBy.Store(launch)
	}
}

// markWritten records that n bytes at an offset were stored.
func markWritten(a *allocation, off, n int64) {
	setOnes(a.written[off : off+n])
}

// ones are eight bytes that are 1.
const ones = 0x0101010101010101

// setOnes sets all bytes to 1, those of an access at once.
func setOnes(b []byte) {
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, ones)
	}
	if len(b) >= 4 {
		binary.LittleEndian.PutUint32(b, ones&math.MaxUint32)
		b = b[4:]
	}
	for i := range b {
		b[i] = 1
	}
}

// allOnes reports whether all bytes, which are 0 or 1, are 1.
func allOnes(b []byte) bool {
	for ; len(b) >= 8; b = b[8:] {
		if binary.LittleEndian.Uint64(b) != ones {
			return false
		}
	}
	return bytes.IndexByte(b, 0) < 0
}

// unwritten is the number of bytes that nothing was stored to, and the offset of
// the first of them.
func (a *allocation) unwritten() (first, count int64) {
	first = -1
	for i, w := range a.written {
		if w == 0 {
			if first < 0 {
				first = int64(i)
			}
			count++
		}
	}
	return first, count
}
