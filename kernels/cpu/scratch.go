package cpu

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sync"
	"unsafe"
)

// A worker has one arena for all values. Values that are not live at the same time
// share memory, which keeps the arena small enough for the caches: a chain of
// operations needs two or three strips, however long it is. Since tile programs run
// one after the other on a worker, one layout serves all of them.

// lastPosition is after every position of a program.
const lastPosition = math.MaxInt

// numberPositions numbers the positions of the program and sets the live range
// of every value. Values of a group that are no strips are live while the group
// runs; values from outside of a loop are live until it ends.
func (s *schedule) numberPositions(at int) int {
	for _, i := range s.items {
		begin := at
		switch {
		case i.loop != nil:
			at = i.loop.body.numberPositions(at + 1)
		case i.group != nil:
			for k, n := range i.group {
				// A machine function is one position.
				if n.routine == 0 || k == 0 ||
					n.routine != i.group[k-1].routine {
					at++
				}
				n.extendLiveRange(at, func(v *value) bool {
					return v.where == inStrip
				})
			}
		}
		at++
		for n := range i.members {
			all := func(v *value) bool { return v.where != inStrip }
			n.extendLiveRange(begin, all)
			n.extendLiveRange(at, all)
		}
		at++
	}
	return at
}

// extendLiveRange adds a position to the live ranges of the chosen values of
// the instruction.
func (i *instr) extendLiveRange(at int, which func(*value) bool) {
	for _, list := range [][]*value{i.outs, i.stripArgs, i.tileArgs} {
		for _, v := range list {
			if which(v) {
				v.liveFrom = min(v.liveFrom, at)
				v.liveTo = max(v.liveTo, at)
			}
		}
	}
}

// cacheLine is the size of a cache line, to which values are aligned.
const cacheLine = 64

// assignScratchOffsets gives every value in scratch an offset such that values whose live
// ranges overlap do not, first fit in the order of birth, and returns the size
// of the scratch.
func assignScratchOffsets(values []*value) int64 {
	order := slices.DeleteFunc(slices.Clone(values), func(v *value) bool {
		return v.where == inMemory || v.liveTo < v.liveFrom
	})
	slices.SortStableFunc(order, func(x, y *value) int {
		return cmp.Or(
			cmp.Compare(x.liveFrom, y.liveFrom),
			cmp.Compare(x.id, y.id),
		)
	})
	// Values are placed in the order in which they are born. Those that are dead by
	// then free their bytes; the first gap that is long enough is taken.
	var live []*value // The live values, by offset.
	total := int64(0)
	for _, v := range order {
		live = slices.DeleteFunc(live, func(u *value) bool {
			return u.liveTo < v.liveFrom
		})
		v.at = 0
		k := 0
		for ; k < len(live) && v.at+v.bytes() > live[k].at; k++ {
			v.at = (live[k].at +
				live[k].bytes() + cacheLine - 1) &^ (cacheLine - 1)
		}
		live = slices.Insert(live, k, v)
		total = max(total, v.at+v.bytes())
	}
	return total
}

// A scratchPool keeps the scratch of closed kernels for new ones, which saves
// zeroing it and the faults of pages that were never touched. That matters
// while tuning, where kernels live for milliseconds. Scratch is not zeroed
// between uses.
type scratchPool struct {
	mu   sync.Mutex
	free [][]byte
	held int64 // The bytes in free.
}

// maxPooledBytes bounds the bytes that a pool keeps.
const maxPooledBytes = 64 << 20

// get returns n bytes at the beginning of a cache line, nil for none.
func (p *scratchPool) get(n int64) []byte {
	if n == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// The smallest piece that is large enough serves, unless it is more than four
	// times as large: such pieces are left for larger plans.
	best := -1
	for k, s := range p.free {
		size := cap(s)
		if int64(size) >= n &&
			int64(size) <= 4*max(n, minAllocation) &&
			(best < 0 || size < cap(p.free[best])) {
			best = k
		}
	}
	if best < 0 {
		return alignedBytes(sizeClass(n))[:n]
	}
	s := p.free[best]
	p.free = slices.Delete(p.free, best, best+1)
	p.held -= int64(cap(s))
	return s[:n]
}

// minAllocation is the smallest allocation, in bytes.
const minAllocation = 4096

// sizeClass rounds up to an eighth of a power of two, so that scratch of one
// plan serves others.
func sizeClass(n int64) int64 {
	n = max(n, minAllocation)
	step := int64(1) << max(0, bits.Len64(uint64(n))-4)
	return (n + step - 1) &^ (step - 1)
}

// put takes back what get returned.
func (p *scratchPool) put(s []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	size := int64(cap(s))
	if size > 0 && p.held+size <= maxPooledBytes {
		p.free = append(p.free, s)
		p.held = p.held + size
	}
}

// alignedBytes is n zeros at the beginning of a cache line.
func alignedBytes(n int64) []byte {
	raw := make([]byte, n+cacheLine)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(raw))) % cacheLine
	return raw[skip:]
}

// lentFrom is the bytes of scratch of a worker from which on it is lent.
const lentFrom = 1 << 20

// A lender has the large scratch of all kernels of a backend: only the last one
// that ran holds any, since sixteen candidates of a race would hold gigabytes. The next one
// takes it over as it is, so that memory is not allocated while kernels are timed in turn.
// The zero value is ready for use.
type lender struct {
	mu   sync.Mutex
	last *borrower
}

// A borrower is the workers of a kernel, as far as scratch goes.
type borrower struct {
	running *sync.Mutex // Held by a run.
	workers []*workerScratch
}

// The scratch of a worker.
type workerScratch struct {
	arena   []byte // The scratch in which values lie.
	packing []byte // The scratch in which dots pack their operands.

	// The bytes of both, which are lent where they are many.
	arenaBytes, packingBytes int64
	// What lets the worker have its values in an arena.
	bind func(arena []byte)
}

// lent reports whether the scratch is lent when a kernel runs.
func (s *workerScratch) lent() bool { return s.arenaBytes+s.packingBytes >= lentFrom }

// lend gives the workers of a kernel that is going to run, and holds its mutex, scratch.
func (d *lender) lend(to *borrower) {
	if !to.workers[0].lent() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last == to {
		return
	}
	var free pieces
	if d.last != nil && d.last.running.TryLock() {
		free = d.last.takeScratch()
		d.last.running.Unlock()
	}
	d.last = to
	for _, w := range to.workers {
		if w.arena != nil {
			continue // nobody could take it while it ran
		}
		w.packing = free.take(w.packingBytes)
		w.bind(free.take(w.arenaBytes))
	}
}

// forget is for a kernel that is closed.
func (d *lender) forget(b *borrower) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last == b {
		d.last = nil
	}
}

// takeScratch takes the scratch from the workers of a kernel that does not run.
func (b *borrower) takeScratch() (all pieces) {
	for _, w := range b.workers {
		if w.arena != nil {
			all = append(all, w.arena, w.packing)
			w.arena, w.packing = nil, nil
		}
	}
	return all
}

// pieces are scratch that nobody uses.
type pieces [][]byte

// take is n bytes of the smallest piece that is large enough, or new ones.
func (p *pieces) take(n int64) []byte {
	if n == 0 {
		return nil
	}
	best := -1
	for k, s := range *p {
		if int64(cap(s)) >= n && (best < 0 || cap(s) < cap((*p)[best])) {
			best = k
		}
	}
	if best < 0 {
		return alignedBytes(sizeClass(n))[:n]
	}
	s := (*p)[best]
	*p = slices.Delete(*p, best, best+1)
	return s[:n]
}
