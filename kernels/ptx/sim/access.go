package sim

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/bits"
	"slices"
)

// width is the number of bytes that one lane moves.
func (in *instr) width() int64 {
	return int64(in.size) * int64(len(in.list))
}

// globalBytes resolves an access of a lane to n bytes of global memory, checks it
// and records it. It reports an access out of bounds and returns nil.
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
	if g.dependent {
		w.premature(a, lane, how)
	}
	if how != reading {
		a.noteStore(g.launch)
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

// checkWritten reports the first byte of an access that nothing has stored.
func (w *warp) checkWritten(a *allocation, off, n int64, lane int) {
	if allOnes(a.written[off : off+n]) {
		return
	}
	// One report for the first byte is enough for an access.
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

// bytesAt resolves an access in any state space; a generic address selects the
// space by its window.
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
	// The window of a generic address tells the space; addresses without a
	// window are global.
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

// localBytes resolves an access to the local memory of a lane's thread.
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

// paramBytes resolves an access to the parameter block.
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

// fetch reads a little-endian element of size bytes.
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

// store writes a little-endian element of size bytes.
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

// element is the first element of b as the instruction reads it.
func (in *instr) element(b []byte) uint64 {
	v := fetch(b, in.size)
	if in.signed {
		v = uint64(signExtend(v, int(in.size)*8))
	}
	return v
}

// loadLane loads the registers of one lane from consecutive elements.
func (w *warp) loadLane(in *instr, b []byte, l int) {
	for i, r := range in.list {
		w.put(r, l, in.element(b[i*int(in.size):]))
	}
}

// storeLane stores the registers of one lane to consecutive elements.
func (w *warp) storeLane(in *instr, b []byte, l int) {
	for i, r := range in.list {
		store(
			b[i*int(in.size):],
			in.size,
			w.get(r, l),
		)
	}
}

// ld is a load from any state space. Weak accesses of lanes that lie in one array
// are resolved together; the others go lane by lane.
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
		w.loadLane(in, b, l)
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
	w.loadLane(in, b, l)
	w.acquire(
		w.syncAddress(in.space, addr), in.mods.acquire,
	)
}

// syncAddress names a word that synchronises by a single number: words of shared
// memory by cluster and CTA, words of global memory by their address.
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

// st is a store to any state space; it works like ld.
func st(w *warp, in *instr) {
	w.beginStore()
	defer w.endStore()
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
		w.storeLane(in, b, l)
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
	w.storeLane(in, b, l)
}

// noteWritten marks the bytes that a strong store or an atomic wrote as
// initialised.
func (w *warp) noteWritten(s space, addr uint64, n int64) {
	// Shared memory may be that of another CTA of the cluster.
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

// atom is atom and red: the destination (the sink for red) receives the old
// value.
func atom(w *warp, in *instr) {
	addr := w.addresses(&in.at, &w.addr)
	n := in.width()
	if w.cta.work.executed != nil {
		w.countAccess(in, addr, n, true)
		// Atomics are counted by lane, their traffic by warp.
		w.cta.work.counters.Atomics += int64(bits.OnesCount32(w.active))
	}
	for m := w.active; m != 0; m &= m - 1 {
		l := firstLane(m)
		w.update(in, addr[l], n, l)
	}
}

// update performs the atomic operation of one lane.
func (w *warp) update(in *instr, at uint64, n int64, l int) {
	defer w.cta.grid.lock(at).Unlock()
	op := in.mods
	b := w.bytesAt(in.space, at, n, n, l, atomically)
	if b == nil {
		return
	}
	// A relaxed atomic releases what an earlier fence covers.
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

// ldParam loads from the parameter block, the same value for every lane.
func ldParam(w *warp, in *instr) {
	addr := w.addresses(&in.at, &w.addr)
	n := in.width()
	b := w.paramBytes(addr[0], n, int64(in.size), 0)
	if b == nil {
		return
	}
	for i, r := range in.list {
		v := in.element(b[i*int(in.size):])
		for m := w.active; m != 0; m &= m - 1 {
			w.put(r, firstLane(m), v)
		}
	}
}

// countAccess counts a warp's load or store of n bytes a lane; a generic access
// belongs to the space of its first lane.
func (w *warp) countAccess(in *instr, addr *long, n int64, writes bool) {
	c := &w.cta.work.counters
	s := in.space
	if s == generic {
		s = global
		if addr[w.first()]&windowMask == sharedWindow {
			s = shared
		}
	}
	switch {
	case s == global && writes:
		c.GlobalStore.add(sectors(addr, w.active, n))
	case s == global:
		c.GlobalLoad.add(sectors(addr, w.active, n))
	case (s == shared || s == sharedCluster) && writes:
		c.SharedStore.add(wavefronts(addr, w.active, n))
	case s == shared || s == sharedCluster:
		c.SharedLoad.add(wavefronts(addr, w.active, n))
	}
}

// mapa converts an address of the CTA's own shared memory (a) to the same offset
// in the CTA of rank b.
func mapa(w *warp, in *instr) {
	for m := w.active; m != 0; m &= m - 1 {
		l := firstLane(m)
		rank := w.r32[in.b][l]
		if int(rank) >= len(w.cta.cluster.ctas) {
			w.reportf(
				InvalidOperation, l,
				"CTA rank %d in a cluster of %d",
				rank, len(w.cta.cluster.ctas),
			)
			return
		}
		a := w.get(in.list[1], l)
		w.put(
			in.list[0],
			l,
			a&^(0xff<<rankShift)|uint64(rank+1)<<rankShift,
		)
	}
}

// getctarank is the rank of the CTA in whose shared memory an address lies, the
// inverse of mapa.
func getctarank(w *warp, in *instr) {
	for m := w.active; m != 0; m &= m - 1 {
		l := firstLane(m)
		rank := w.get(in.list[1], l) >> rankShift & 0xff
		if rank == 0 {
			rank = uint64(w.cta.rank + 1)
		}
		w.put(in.list[0], l, rank-1)
	}
}

// coalesced resolves an access of n bytes a lane at once if all active lanes
// access the CTA's own shared memory or one array of global memory. It returns
// the bytes of that memory and leaves the offset of each lane in w.offset. It
// returns nil if lanes differ or one of them is out of bounds or misaligned; the
// lanes are then resolved one by one, which reports what is wrong. Nearly all
// accesses of a kernel take this path: it costs one look-up for 32 lanes.
func (w *warp) coalesced(s space, addr *long, n int64, how access) []byte {
	switch s {
	case shared:
		t := w.cta
		if !w.laneOffsets(addr, sharedBase, int64(len(t.shared)), n) {
			return nil
		}
		if t.shadow != nil {
			// Recording is by lane, in the order in which separate accesses
			// would be recorded.
			for m := w.active; m != 0; m &= m - 1 {
				l := firstLane(m)
				w.recordShared(t, int64(w.offset[l]), n, l, how)
			}
		}
		return t.shared
	case global:
		a := w.cta.grid.mem.owner(addr[w.first()])
		if a == nil || a.freed ||
			!w.laneOffsets(addr, a.start, a.size, n) {
			return nil
		}
		w.recordArray(a, n, how)
		return a.data
	}
	return nil
}

// laneOffsets sets the offset of each active lane's n bytes from base. It returns
// false if a lane is not aligned or not within size.
func (w *warp) laneOffsets(addr *long, base uint64, size, n int64) bool {
	if size < n {
		return false
	}
	limit := uint64(size - n)
	// The differences are unsigned, so that one comparison finds addresses
	// below the base, too; misalignment is collected and tested once.
	misaligned := uint64(0)
	if w.active == allLanes {
		for l, a := range addr {
			if a-base > limit {
				return false
			}
			misaligned |= a
			w.offset[l] = uint32(a - base)
		}
		return misaligned&uint64(n-1) == 0 && size < 1<<32
	}
	for m := w.active; m != 0; m &= m - 1 {
		l := firstLane(m)
		if addr[l]-base > limit {
			return false
		}
		misaligned |= addr[l]
		w.offset[l] = uint32(addr[l] - base)
	}
	return misaligned&uint64(n-1) == 0 && size < 1<<32
}

// recordArray checks and records the accesses at w.offset to an allocation, as
// globalBytes does for one lane.
func (w *warp) recordArray(a *allocation, n int64, how access) {
	opt := &w.cta.grid.opt
	if !opt.Races && how == reading && !opt.Uninitialised {
		return
	}
	if how != reading {
		a.noteStore(w.cta.grid.launch)
	}
	if w.cta.grid.dependent {
		w.premature(a, w.first(), how)
	}
	for m := w.active; m != 0; m &= m - 1 {
		l := firstLane(m)
		off := int64(w.offset[l])
		if opt.Races {
			w.recordGlobal(a, off, n, l, how)
		}
		if how == writing {
			markWritten(a, off, n)
		} else if opt.Uninitialised {
			w.checkWritten(a, off, n, l)
		}
	}
}

// gather loads the registers of a load from the offsets of the lanes.
func (w *warp) gather(in *instr, mem []byte) {
	for i, r := range in.list {
		from := mem[i*int(in.size):]
		// Loads of 32-bit registers by whole warps need no look-up of the bank.
		if w.active == allLanes &&
			in.size == 4 && r.bank == bank32 {
			d := &w.r32[r.index]
			for l, o := range w.offset {
				d[l] = binary.LittleEndian.Uint32(from[o:])
			}
			continue
		}
		for m := w.active; m != 0; m &= m - 1 {
			l := firstLane(m)
			w.put(r, l, in.element(from[w.offset[l]:]))
		}
	}
}

// scatterTo stores the registers of a store to the offsets of the lanes, in the
// order of the lanes, so that the highest lane wins where several write one byte.
func (w *warp) scatterTo(in *instr, mem []byte) {
	if w.active == allLanes && in.size == 4 &&
		len(in.list) == 1 &&
		in.list[0].bank == bank32 {
		v := &w.r32[in.list[0].index]
		for l, o := range w.offset {
			binary.LittleEndian.PutUint32(mem[o:], v[l])
		}
		return
	}
	// Stores go lane by lane: where lanes write one byte, the last one wins.
	for m := w.active; m != 0; m &= m - 1 {
		l := firstLane(m)
		w.storeLane(in, mem[w.offset[l]:], l)
	}
}

// The address of a byte of shared memory is its offset plus sharedBase: as on
// sm_90, the first KiB belongs to the system, and a null pointer is out of
// bounds. In the window of the cluster, bits 24… hold the rank of the CTA plus 1.
// Generic addresses of shared memory, local memory and parameters add the base of
// a window.
const (
	// sharedBase is the address of the first byte of shared memory.
	sharedBase = 1024
	// rankShift is the position of the rank of a CTA, plus one, in an address of
	// the cluster's window.
	rankShift = 24
	// sharedWindow, localWindow and paramWindow are the bases of the windows in
	// the generic address space.
	sharedWindow = 0x6000_0000_0000
	localWindow  = 0x5000_0000_0000
	paramWindow  = 0x4000_0000_0000
	// windowMask selects the bits of an address that tell the window.
	windowMask = 0xffff_0000_0000
)

// sharedAt resolves an address of shared memory to a CTA of the cluster and an
// offset; it returns nil if the n bytes are not all in that CTA's memory.
func (t *cta) sharedAt(addr uint64, n int64) (*cta, int64) {
	owner := t
	if rank := addr >> rankShift; rank != 0 {
		if rank > uint64(len(t.cluster.ctas)) {
			return nil, 0
		}
		owner = t.cluster.ctas[rank-1]
	}
	off := int64(addr&(1<<rankShift-1)) - sharedBase
	if off < 0 || off+n > int64(len(owner.shared)) {
		return nil, 0
	}
	return owner, off
}

// sharedName names an offset in shared memory for people: the variable that
// starts nearest before it, and the distance to its start.
func (t *cta) sharedName(off int64) string {
	best, at := "", int64(-1)
	for _, name := range slices.Sorted(maps.Keys(t.entry.variables)) {
		v := t.entry.variables[name]
		if v.space == shared &&
			v.offset <= off && v.offset > at {
			best, at = name, v.offset
		}
	}
	if at < 0 {
		return fmt.Sprintf("offset %d", off)
	}
	return fmt.Sprintf("%s+%d", best, off-at)
}

// sharedBytes resolves an access of a lane to shared memory, checks it and
// records it. It reports an access out of bounds and returns nil; with ownOnly,
// other CTAs of the cluster are out of bounds.
func (w *warp) sharedBytes(
	addr uint64, n, align int64, lane int, how access, ownOnly bool,
) []byte {
	if !w.aligned(addr, align, "shared", lane) {
		return nil
	}
	t, off := w.cta.sharedAt(addr, n)
	if t == nil || ownOnly && t != w.cta {
		w.sharedOutside(addr, n, lane)
		return nil
	}
	if !w.visit(t, addr, lane) {
		return nil
	}
	if t.shadow != nil {
		w.recordShared(t, off, n, lane, how)
	}
	return t.shared[off : off+n]
}

// visit is the latest access of a warp to another CTA's shared memory.
type visit struct {
	// by, pc and lane are who made the access.
	by   *warp
	pc   int32
	lane int
	// s is the stamp of the access.
	s    stamp
	addr uint64
}

// visit records an access to the shared memory of t. It reports an access to the
// memory of a CTA that has exited and returns false.
func (w *warp) visit(t *cta, addr uint64, lane int) bool {
	switch {
	case t == w.cta:
	case t.live == 0:
		w.report(
			Finding{
				Kind:   MissingWait,
				Space:  "shared",
				Addr:   addr,
				Detail: fmt.Sprintf("CTA rank %d of the cluster has exited, and its shared memory with it", t.rank),
				Count:  1,
			},
			lane,
		)
		return false
	case w.clock.on:
		if t.visits == nil {
			t.visits = make([]visit, t.grid.parties())
		}
		t.visits[w.party] = visit{
			w, w.pc, lane,
			w.stamp(15, atomically, lane), addr,
		}
	}
	return true
}

// checkVisits reports, when the CTA has exited, accesses of other CTAs that none
// of its warps knew of: on a device they might come after the exit.
func (t *cta) checkVisits() {
	for _, v := range t.visits {
		known := v.by == nil ||
			slices.ContainsFunc(t.warps, func(w *warp) bool {
				return w.clock.seen.near[v.by.party].knows(
					v.s.clock(), v.lane,
				)
			})
		if known {
			continue
		}
		// The finding belongs to the access, not to where the other warp is
		// now.
		at := v.by.pc
		v.by.pc = v.pc
		v.by.report(
			Finding{
				Kind:   MissingWait,
				Space:  "shared",
				Addr:   v.addr,
				Detail: fmt.Sprintf("CTA rank %d of the cluster does not wait for this before it exits", t.rank),
				Count:  1,
			},
			v.lane,
		)
		v.by.pc = at
	}
}

// aligned reports an address that is not a multiple of align and returns false.
func (w *warp) aligned(addr uint64, align int64, where string, lane int) bool {
	if addr&uint64(align-1) == 0 {
		return true
	}
	w.report(
		Finding{
			Kind:   Misaligned,
			Space:  where,
			Addr:   addr,
			Detail: fmt.Sprintf("an access that must be aligned to %d bytes", align),
		},
		lane,
	)
	return false
}

// sharedOutside reports an access out of the bounds of shared memory.
func (w *warp) sharedOutside(addr uint64, n int64, lane int) {
	size := int64(len(w.cta.shared))
	detail := fmt.Sprintf(
		"%d bytes at offset %d of the CTA's %d bytes of shared memory",
		n,
		int64(addr&(1<<rankShift-1))-sharedBase,
		size,
	)
	// The address names a CTA of the cluster.
	if rank := addr >> rankShift; rank != 0 {
		detail = fmt.Sprintf(
			"%d bytes at offset %d in the shared memory of CTA rank %d of the cluster's %d, of %d bytes each",
			n,
			int64(addr&(1<<rankShift-1))-sharedBase,
			rank-1,
			len(w.cta.cluster.ctas), size,
		)
	}
	w.report(
		Finding{Kind: OutOfBounds, Space: "shared", Addr: addr, Detail: detail},
		lane,
	)
}
