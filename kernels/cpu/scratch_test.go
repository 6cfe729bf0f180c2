package cpu

import (
	"testing"

	"github.com/tilewright/tilewright/symtile"
)

// Scratch that other kernels left anything in, here NaN, does as well as zeros.
func TestScratchNeedNotBeZeros(t *testing.T) {
	var dirty scratchPool
	for n := int64(minAllocation); n <= 4<<20; n *= 2 {
		for range 4 {
			s := alignedBytes(sizeClass(n))
			for k := range s {
				s[k] = 0xff
			}
			dirty.put(s)
		}
	}
	forCorpus(t, func(t *testing.T, p *symtile.Program) {
		backend := New()
		backend.scratch.free, backend.scratch.held = append(backend.scratch.free, dirty.free...), dirty.held
		checkPlansOf(t, backend, p, 1)
	})
}

func TestPoolReuses(t *testing.T) {
	var p scratchPool
	a := p.get(10_000)
	if len(a) != 10_000 {
		t.Fatalf("%d bytes", len(a))
	}
	p.put(a)
	if b := p.get(1 << 10); len(b) != 1<<10 ||
		&b[0] != &a[0] {
		t.Error("scratch of about the size was not used again")
	}
	p.put(p.get(maxPooledBytes + 1))
	if p.held > maxPooledBytes {
		t.Errorf("%d bytes are held", p.held)
	}
	if p.get(0) != nil {
		t.Error("nothing is something")
	}
}
