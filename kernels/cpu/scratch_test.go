package cpu

import (
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/kerneltest"
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

// Of kernels that run in turn only the last one holds large scratch, which it has
// from the one before, and their results are those of a kernel alone.
func TestLargeScratchIsLent(t *testing.T) {
	p := kerneltest.Program(t, `
p = f32[256,2048] parameter(0)
x = f32[256,2048] exponential(p)
y = f32[2048,2048] parameter(1)
ROOT d = f32[256,2048] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}`)
	v := kerneltest.Verifier(t, p, 1)
	backend := New()
	var all []*kernel
	for _, text := range []string{"128,2048,2048 pack=1", "256,2048,2048 pack=1"} {
		plan, err := kernels.ParsePlan(text)
		if err != nil {
			t.Fatal(err)
		}
		k, err := backend.compile(p, plan, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		if w := k.programs.workers[0]; !w.lent() {
			t.Fatalf("%s needs %d and %d bytes", text, w.arenaBytes, w.packingBytes)
		}
		all = append(all, k)
	}
	held := func(k *kernel) (n int) {
		for _, w := range k.programs.workers {
			n += cap(w.arena) + cap(w.packing)
		}
		return n
	}
	for range 2 {
		for n, k := range all {
			if err := v.Verify(t.Context(), k); err != nil {
				t.Error(err)
			}
			if held(k) == 0 || held(all[1-n]) != 0 {
				t.Errorf("after kernel %d ran it holds %d bytes, the other %d", n, held(k), held(all[1-n]))
			}
		}
	}
}
