package cpu

import (
	"math/bits"
	"slices"
	"sync"
	"unsafe"
)

// A pool keeps the scratch of closed kernels for the next ones, which saves
// clearing it and the faults of pages that were never touched. Nothing may
// expect zeros in scratch.
type pool struct {
	mu   sync.Mutex
	free [][]byte
	held int64 // bytes of them
}

const mostHeld = 64 << 20 // bytes that a pool keeps

// take returns n bytes at the beginning of a cache line, nil for none.
func (p *pool) take(n int64) []byte {
	if n == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	best := -1
	for k, s := range p.free {
		if size := cap(s); int64(size) >= n && int64(size) <= 4*max(n, smallest) && (best < 0 || size < cap(p.free[best])) {
			best = k
		}
	}
	if best < 0 {
		return aligned(roomFor(n))[:n]
	}
	s := p.free[best]
	p.free = slices.Delete(p.free, best, best+1)
	p.held -= int64(cap(s))
	return s[:n]
}

const smallest = 4096 // bytes

// roomFor rounds up to an eighth of a power of two, so that what serves one plan
// serves others.
func roomFor(n int64) int64 {
	n = max(n, smallest)
	step := int64(1) << max(0, bits.Len64(uint64(n))-4)
	return (n + step - 1) &^ (step - 1)
}

// give takes back what take returned.
func (p *pool) give(s []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if size := int64(cap(s)); size > 0 && p.held+size <= mostHeld {
		p.free, p.held = append(p.free, s), p.held+size
	}
}

// aligned is n zeros at the beginning of a cache line.
func aligned(n int64) []byte {
	raw := make([]byte, n+cacheLine)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(raw))) % cacheLine
	return raw[skip:]
}
