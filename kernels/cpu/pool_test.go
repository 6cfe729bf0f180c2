package cpu

import (
	"testing"

	"github.com/tilewright/tilewright/symtile"
)

// Scratch that other kernels left anything in, here NaN, does as well as zeros.
func TestScratchNeedNotBeZeros(t *testing.T) {
	var dirty pool
	for n := int64(smallest); n <= 4<<20; n *= 2 {
		for range 4 {
			s := aligned(roomFor(n))
			for k := range s {
				s[k] = 0xff
			}
			dirty.give(s)
		}
	}
	forCorpus(t, func(t *testing.T, p *symtile.Program) {
		backend := New()
		backend.scratch.free, backend.scratch.held = append(backend.scratch.free, dirty.free...), dirty.held
		checkPlansOf(t, backend, p, 1)
	})
}

func TestPoolReuses(t *testing.T) {
	var p pool
	a := p.take(10_000)
	if len(a) != 10_000 {
		t.Fatalf("%d bytes", len(a))
	}
	p.give(a)
	if b := p.take(1 << 10); len(b) != 1<<10 || &b[0] != &a[0] {
		t.Error("scratch of about the size was not used again")
	}
	p.give(p.take(mostHeld + 1))
	if p.held > mostHeld {
		t.Errorf("%d bytes are held", p.held)
	}
	if p.take(0) != nil {
		t.Error("nothing is something")
	}
}
