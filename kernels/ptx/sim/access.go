package sim

import (
	"encoding/binary"
	"math/bits"
	"sync"
)

// bytes of a memory instruction that one lane moves.
func (in *instr) width() int64 {
	return int64(in.size) * int64(len(in.list))
}

// globalBytes resolves an access of a lane to global memory, or reports it and
// returns nil.
func (w *warp) globalBytes(
	addr uint64, n, align int64, lane int, how access,
) []byte {
	if !w.aligned(addr, align, "global", lane) {
		return nil
	}
	g := w.cta.grid
	a, off := g.mem.find(addr, n)
	if a == nil {
		w.report(
			Finding{
				Kind:   OutOfBounds,
				Space:  "global",
				Addr:   addr,
				Detail: g.mem.describe(addr, n),
			},
			lane,
		)
		return nil
	}
	if g.opt.Races {
		w.recordGlobal(a, off, n, lane, how)
	}
	if how == writing {
		markWritten(a, off, n)
	} else if g.opt.Uninitialised {
		w.checkWritten(a, off, n, lane)
	}
	return a.data[off : off+n]
}

func (w *warp) checkWritten(a *allocation, off, n int64, lane int) {
	for i, v := range a.written[off : off+n] {
		if v == 0 {
			w.report(
				Finding{
					Kind:  Uninitialised,
					Space: "global",
					Addr:  a.start + uint64(off) + uint64(i),
					Detail: w.cta.grid.mem.describe(
						a.start+uint64(off)+uint64(i), 1,
					),
				},
				lane,
			)
			return
		}
	}
}

// bytesAt resolves an access in any space.
func (w *warp) bytesAt(
	s space, addr uint64, n, align int64, lane int, how access,
) []byte {
	switch s {
	case global, constant:
		return w.globalBytes(addr, n, align, lane, how)
	case shared:
		return w.sharedBytes(addr, n, align, lane, how, true)
	case sharedCluster:
		return w.sharedBytes(addr, n, align, lane, how, false)
	case local:
		return w.localBytes(addr, n, align, lane)
	case param:
		return w.paramBytes(addr, n, align, lane)
	}
	switch addr & windowMask {
	case sharedWindow:
		return w.sharedBytes(
			addr&^windowMask, n, align, lane, how, false,
		)
	case localWindow:
		return w.localBytes(addr&^windowMask, n, align, lane)
	case paramWindow:
		return w.paramBytes(addr, n, align, lane)
	}
	return w.globalBytes(addr, n, align, lane, how)
}

func (w *warp) localBytes(addr uint64, n, align int64, lane int) []byte {
	if !w.aligned(addr, align, "local", lane) {
		return nil
	}
	size := w.cta.entry.locals
	if addr > uint64(size) || int64(addr)+n > size {
		w.report(
			Finding{Kind: OutOfBounds, Space: "local", Addr: addr, Detail: "the thread has fewer bytes of local memory"},
			lane,
		)
		return nil
	}
	off := int64(w.id*warpSize+lane)*size + int64(addr)
	return w.cta.local[off : off+n]
}

func (w *warp) paramBytes(addr uint64, n, align int64, lane int) []byte {
	block := w.cta.grid.param
	addr &^= windowMask
	if !w.aligned(addr, align, "param", lane) {
		return nil
	}
	if addr > uint64(len(block)) ||
		int64(addr)+n > int64(len(block)) {
		w.report(
			Finding{Kind: OutOfBounds, Space: "param", Addr: addr, Detail: "past the end of the parameters"},
			lane,
		)
		return nil
	}
	return block[addr : int64(addr)+n]
}

func fetch(b []byte, size uint8) uint64 {
	switch size {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

func store(b []byte, size uint8, v uint64) {
	switch size {
	case 1:
		b[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	default:
		binary.LittleEndian.PutUint64(b, v)
	}
}

// ld is a load from any space.
func ld(w *warp, in *instr) {
	addr := w.addresses(&in.at, &w.addr)
	n := in.width()
	if w.cta.work.executed != nil {
		w.countAccess(in, addr, n, false)
	}
	if !in.mods.strong {
		if mem := w.coalesced(in.space, addr, n, reading); mem != nil {
			w.gather(in, mem)
			return
		}
	}
	for m := w.active; m != 0; m &= m - 1 {
		l := firstLane(m)
		if in.mods.strong {
			w.strongLoad(in, addr[l], n, l)
			continue
		}
		b := w.bytesAt(in.space, addr[l], n, n, l, reading)
		if b == nil {
			continue
		}
		for i, r := range in.list {
			v := fetch(b[i*int(in.size):], in.size)
			if in.signed {
				v = uint64(signExtend(v, int(in.size)*8))
			}
			w.put(r, l, v)
		}
	}
}

// strongLoad is one that synchronises: no tearing, and what a release put
// there is acquired.
func (w *warp) strongLoad(in *instr, addr uint64, n int64, l int) {
	defer w.cta.grid.lock(addr).Unlock()
	b := w.bytesAt(in.space, addr, n, n, l, atomically)
	if b == nil {
		return
	}
	for i, r := range in.list {
		v := fetch(b[i*int(in.size):], in.size)
		if in.signed {
			v = uint64(signExtend(v, int(in.size)*8))
		}
		w.put(r, l, v)
	}
	w.acquire(
		w.syncAddress(in.space, addr), in.mods.acquire,
	)
}

// syncAddress names a word that synchronises: shared memory by its CTA.
func (w *warp) syncAddress(s space, addr uint64) uint64 {
	if s == global || s == generic && addr&windowMask != sharedWindow {
		return addr
	}
	addr &^= windowMask
	rank := addr >> rankShift
	if rank == 0 {
		rank = uint64(w.cta.rank + 1)
	}
	return uint64(w.cta.cluster.unit+1)<<32 |
		rank<<rankShift | addr&(1<<rankShift-1)
}

// st is a store to any space.
func st(w *warp, in *instr) {
	addr := w.addresses(&in.at, &w.addr)
	n := in.width()
	if w.cta.work.executed != nil {
		w.countAccess(in, addr, n, true)
	}
	if !in.mods.strong {
		if mem := w.coalesced(in.space, addr, n, writing); mem != nil {
			w.scatterTo(in, mem)
			return
		}
	}
	for m := w.active; m != 0; m &= m - 1 {
		l := firstLane(m)
		if in.mods.strong {
			w.strongStore(in, addr[l], n, l)
			continue
		}
		b := w.bytesAt(in.space, addr[l], n, n, l, writing)
		if b == nil {
			continue
		}
		for i, r := range in.list {
			store(
				b[i*int(in.size):],
				in.size,
				w.get(r, l),
			)
		}
	}
}

func (w *warp) strongStore(in *instr, addr uint64, n int64, l int) {
	defer w.cta.grid.lock(addr).Unlock()
	w.release(
		w.syncAddress(in.space, addr), in.mods.release,
	)
	b := w.bytesAt(in.space, addr, n, n, l, atomically)
	if b == nil {
		return
	}
	w.noteWritten(in.space, addr, n)
	for i, r := range in.list {
		store(
			b[i*int(in.size):],
			in.size,
			w.get(r, l),
		)
	}
}

// noteWritten marks what a strong store or an atomic wrote as initialised.
func (w *warp) noteWritten(s space, addr uint64, n int64) {
	if s == shared || s == sharedCluster ||
		s == generic && addr&windowMask == sharedWindow {
		t, off := w.cta.sharedAt(addr&^windowMask, n)
		if t != nil && t.shadow != nil &&
			t.shadow.written != nil {
			for i := range n {
				t.shadow.written[off+i] = 1
			}
		}
		return
	}
	if a, off := w.cta.grid.mem.find(addr, n); a != nil {
		markWritten(a, off, n)
	}
}

// atom is atom and red: d (the sink for red) becomes the old value.
func atom(w *warp, in *instr) {
	addr := w.addresses(&in.at, &w.addr)
	n := in.width()
	if w.cta.work.executed != nil {
		w.countAccess(in, addr, n, true)
		w.cta.work.counters.Atomics += int64(bits.OnesCount32(w.active))
	}
	for m := w.active; m != 0; m &= m - 1 {
		l := firstLane(m)
		w.update(in, addr[l], n, l)
	}
}

// lock holds off the other workers' strong accesses to the 16 bytes at addr.
func (g *grid) lock(addr uint64) *sync.Mutex {
	m := &g.locks[addr>>4%uint64(len(g.locks))]
	m.Lock()
	return m
}

// update is the atomic operation of one lane.
func (w *warp) update(in *instr, at uint64, n int64, l int) {
	defer w.cta.grid.lock(at).Unlock()
	op := in.mods
	b := w.bytesAt(in.space, at, n, n, l, atomically)
	if b == nil {
		return
	}
	if op.release || !op.acquire {
		w.release(w.syncAddress(in.space, at), op.release)
	}
	for i, d := range in.list {
		x := w.get(op.more[i], l)
		y := uint64(0)
		if len(op.more) > len(in.list) {
			y = w.get(op.more[len(in.list)+i], l)
		}
		e := b[i*int(in.size):]
		old := fetch(e, in.size)
		store(e, in.size, op.atomic(old, x, y))
		w.put(d, l, old)
	}
	w.acquire(w.syncAddress(in.space, at), op.acquire)
	w.noteWritten(in.space, at, n)
}

// ldParam loads from the parameter block: the same for every lane.
func ldParam(w *warp, in *instr) {
	addr := w.addresses(&in.at, &w.addr)
	n := in.width()
	b := w.paramBytes(addr[0], n, int64(in.size), 0)
	if b == nil {
		return
	}
	for i, r := range in.list {
		v := fetch(b[i*int(in.size):], in.size)
		if in.signed {
			v = uint64(signExtend(v, int(in.size)*8))
		}
		for m := w.active; m != 0; m &= m - 1 {
			w.put(r, firstLane(m), v)
		}
	}
}
