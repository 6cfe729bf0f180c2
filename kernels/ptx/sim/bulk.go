package sim

import (
	"encoding/binary"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// transfer is an asynchronous operation under way that completes on an mbarrier
// or in a bulk group.
type transfer struct {
	// by, pc and lane are the warp, the instruction and the lane that issued it.
	by      *warp
	pc      int32
	lane    int
	barrier *mbarrier
	// bytes is the number of bytes that the mbarrier counts.
	bytes int64
	// to is the CTA whose shared memory receives the pieces.
	to     *cta
	pieces []piece
	// land completes the operation instead of writing pieces.
	land func()
}

// piece is a run of bytes that is written at an offset of shared memory; a nil
// source is n bytes of fill.
type piece struct {
	offset int64
	n      int64
	src    []byte
	fill   byte
	// tf32 rounds the words of src.
	tf32 bool
}

// bulkGroups are the bulk stores of a warp, by lane.
type bulkGroups struct {
	// open are the stores that are not committed.
	open   []*transfer
	groups []bulkGroup
}

// bulkGroup is a committed group: the lanes that committed it, and their stores.
type bulkGroup struct {
	lanes uint32
	work  []*transfer
}

// reset forgets all stores.
func (b *bulkGroups) reset() {
	b.open = b.open[:0]
	b.groups = b.groups[:0]
}

// issue begins a copy into shared memory.
func (w *warp) issue(t *transfer) {
	t.by = w
	t.pc = w.pc
	for _, p := range t.pieces {
		w.asyncWrite(t.to, p.offset, p.n, t.lane)
	}
	w.countBulk(t.bytes)
	w.cta.cluster.pending = append(
		w.cta.cluster.pending, t,
	)
}

// countBulk counts a bulk copy of n bytes.
func (w *warp) countBulk(n int64) {
	w.cta.work.counters.BulkCopies++
	w.cta.work.counters.BulkBytes += n
}

// completeTransfers completes one operation that a blocked warp waits for, when
// nothing else can run. If there is none, a warp that polls an mbarrier is told
// that the phase is not complete. It returns false if neither exists: the cluster
// is deadlocked.
func (c *cluster) completeTransfers() bool {
	// Transfers complete in the order of issue, each only when a warp waits for
	// its mbarrier.
	for i, t := range c.pending {
		if len(t.barrier.waiters) > 0 {
			c.pending = append(
				c.pending[:i],
				c.pending[i+1:]...,
			)
			t.complete()
			return true
		}
	}
	// A warp that polls may be told that the phase is not complete, and go on.
	for _, t := range c.ctas {
		for _, w := range t.warps {
			if w.status == blocked && w.onBar != nil && w.polls {
				w.giveUp = true
				w.wake()
				return true
			}
		}
	}
	return false
}

// complete writes the pieces of a transfer and counts its bytes on the mbarrier.
func (t *transfer) complete() {
	if t.land != nil {
		t.land()
		return
	}
	c := t.to.cluster
	// Asynchronous writes have a party of their own in the vector clocks.
	c.asyncs++
	for _, p := range t.pieces {
		t.completePiece(p, c.asyncs)
	}
	b := t.barrier
	if t.by.clock.on {
		// Whoever sees the phase complete sees these bytes.
		own := vectorClock{
			near: make([]knownClock, len(t.by.clock.seen.near)),
		}
		own.near[c.work.grid.parties()].all = c.asyncs
		b.gather.seen.join(&own)
	}
	b.tx -= t.bytes
	b.tryComplete()
}

// roundWords rounds numbers of f32 in memory to tf32.
func roundWords(b []byte) {
	for ; len(b) >= 4; b = b[4:] {
		v := binary.LittleEndian.Uint32(b)
		binary.LittleEndian.PutUint32(b, tf32(v))
	}
}

// completePiece writes a piece and records it as a write by the async proxy at
// the given clock.
func (t *transfer) completePiece(p piece, clock uint32) {
	dst := t.to.shared[p.offset : p.offset+p.n]
	if p.src != nil {
		copy(dst, p.src)
		if p.tf32 {
			roundWords(dst)
		}
	} else {
		for i := range dst {
			dst[i] = p.fill
		}
	}
	sh := t.to.shadow
	if sh == nil {
		return
	}
	if sh.written != nil {
		for i := range p.n {
			sh.written[p.offset+i] = 1
		}
	}
	if sh.words == nil {
		return
	}
	for q := p.offset >> 2; q <= (p.offset+p.n-1)>>2; q++ {
		word := &sh.words[q]
		word.incoming--
		word.write = makeStamp(
			clock, 15, false, 0,
			t.to.grid.parties(),
			t.to.cluster.unit,
		)
		word.writePC = t.pc
		word.generic = false
	}
}

// targets are the CTAs to which the copy of a lane goes: with a multicast mask,
// the same offset in each CTA that the mask names.
func (w *warp) targets(in *instr, dst uint64, lane int) []*cta {
	c := w.cta.cluster
	if mask := in.mods.ignore; mask != 0 {
		bits := w.r32[mask][lane]
		var list []*cta
		for rank, t := range c.ctas {
			if bits>>rank&1 == 1 {
				list = append(list, t)
			}
		}
		if bits == 0 || bits>>len(c.ctas) != 0 {
			w.reportf(
				InvalidOperation, lane,
				"multicast to CTAs %#x of a cluster of %d",
				bits, len(c.ctas),
			)
		}
		return list
	}
	if t, _ := w.cta.sharedAt(dst, 1); t != nil {
		return []*cta{t}
	}
	return nil
}

// bulkLoad is cp.async.bulk into shared memory; a is the number of bytes. The
// mbarrier lies in the CTA that receives the bytes.
func bulkLoad(w *warp, in *instr) {
	dst := *w.addresses(&in.at, &w.addr)
	src := *w.addresses(&in.mods.src, &w.addr2)
	for m := w.active; m != 0; m &= m - 1 {
		l := firstLane(m)
		n := int64(w.r32[in.a][l])
		if !w.bulkSize(n, l) ||
			!w.aligned(dst[l], 16, "shared", l) ||
			!w.aligned(src[l], 16, "global", l) {
			return
		}
		// The source is global memory, or the shared memory of this CTA for
		// copies within the cluster.
		var from []byte
		if in.space == shared {
			from = w.bulkSource(src[l], n, l)
		} else {
			from = w.globalBytes(src[l], n, 16, l, reading)
		}
		if from == nil {
			return
		}
		w.bulkInto(in, dst[l], l, n, func(off int64) []piece {
			return []piece{{offset: off, n: n, src: from}}
		})
	}
}

// bulkSize checks the number of bytes of a bulk copy, which must be a multiple of
// 16.
func (w *warp) bulkSize(n int64, l int) bool {
	if n > 0 && n%16 == 0 {
		return true
	}
	w.reportf(InvalidOperation, l, "a bulk copy of %d bytes: it must be a multiple of 16", n)
	return false
}

// bulkInto issues a copy of n bytes to each target.
func (w *warp) bulkInto(
	in *instr, dst uint64, l int, n int64,
	pieces func(off int64) []piece,
) {
	dst &^= windowMask
	bar := w.addresses(&in.mods.barrier, new(long))[l]
	for _, t := range w.targets(in, dst, l) {
		at := dst
		// With multicast, the bytes and the arrival go to the same offsets of
		// each CTA.
		if in.mods.ignore != 0 {
			at = dst&(1<<rankShift-1) |
				uint64(t.rank+1)<<rankShift
			bar = bar&(1<<rankShift-1) |
				uint64(t.rank+1)<<rankShift
		}
		_, off := w.cta.sharedAt(at, n)
		if owner, _ := w.cta.sharedAt(at, n); owner == nil {
			w.sharedOutside(at, n, l)
			return
		}
		b := w.mbarrierAt(bar, l)
		if b == nil {
			return
		}
		w.checkInitialisation(b, l)
		w.issue(&transfer{
			lane:    l,
			barrier: b,
			bytes:   n,
			to:      t,
			pieces:  pieces(off),
		})
	}
}

// checkInitialisation checks that a fence has made the initialisation of an
// mbarrier visible to the async proxy, which will complete bytes on it. The copy goes
// on without one, as on today's devices.
func (w *warp) checkInitialisation(b *mbarrier, l int) {
	t := b.owner
	if t.shadow == nil || t.shadow.words == nil ||
		w.fencedFor(t, b.offset>>2) {
		return
	}
	word := &t.shadow.words[b.offset>>2]
	o := t.siteOfParty(
		word.writePC, word.write.party(),
		word.write.lane(),
	)
	w.report(Finding{Kind: MissingFence, Space: "shared", Addr: uint64(b.offset) + sharedBase,
		Detail: "the mbarrier was initialised with no fence.mbarrier_init or fence.proxy.async since: " + t.sharedName(b.offset), Other: &o}, l)
}

// tensorMapAt reads the tensor map of a lane from global, constant or parameter
// memory and checks its rank.
func (w *warp) tensorMapAt(addr uint64, rank, l int) *TensorMap {
	b := w.bytesAt(generic, addr, tensorMapBytes, 64, l, reading)
	if b == nil {
		return nil
	}
	// The map is decoded at each use, since kernels may modify maps.
	t, ok := decodeTensorMap(b)
	switch {
	case !ok:
		w.reportf(InvalidOperation, l, "no tensor map at %#x", addr)
		return nil
	case len(t.Dims) != rank:
		w.reportf(
			InvalidOperation, l,
			"a %d-dimensional copy with a tensor map of %d dimensions",
			rank, len(t.Dims),
		)
		return nil
	}
	return t
}

// coordinates are the coordinates of a box, innermost first.
func (w *warp) coordinates(in *instr, l int) []int32 {
	at := make([]int32, len(in.list))
	for i, r := range in.list {
		at[i] = int32(w.get(r, l))
	}
	return at
}

// tensorLoad is cp.async.bulk.tensor into shared memory.
func tensorLoad(w *warp, in *instr) {
	dst := *w.addresses(&in.at, &w.addr)
	maps := *w.addresses(&in.mods.src, &w.addr2)
	for m := w.active; m != 0; m &= m - 1 {
		l := firstLane(m)
		t := w.tensorMapAt(maps[l], len(in.list), l)
		if t == nil ||
			!w.aligned(dst[l], t.alignment(), "shared", l) {
			return
		}
		// The number of bytes counted by the mbarrier is that of the whole box,
		// also where it is out of bounds.
		at := w.coordinates(in, l)
		w.bulkInto(in, dst[l], l, t.boxBytes(), func(off int64) []piece {
			pieces := w.boxPieces(t, at, off, l)
			for i := range pieces {
				pieces[i].tf32 = t.Type == ptx.TF32
			}
			return pieces
		})
	}
}

// alignment is the alignment of a box in shared memory: 128 bytes, or the period
// of the swizzle.
func (t *TensorMap) alignment() int64 {
	return max(128, int64(t.Swizzle.Bytes())*8)
}

// boxPieces splits a box into runs: of 16 bytes if it is swizzled, and of a row
// otherwise. Runs out of the tensor's bounds are filled.
func (w *warp) boxPieces(
	t *TensorMap, at []int32, base int64, l int,
) []piece {
	var out []piece
	size := int64(t.Type.Bytes())
	row := (int64(t.Box[0]) + int64(t.Steps[0]) - 1) /
		int64(t.Steps[0]) * size
	run := row
	if t.Swizzle != SwizzleNone {
		run = 16
	}
	// The swizzle permutes absolute addresses of shared memory.
	t.rows(at, func(offset int64, addr uint64, inside bool) {
		data := w.rowBytes(
			t, int64(at[0]), addr, row, inside, l,
		)
		for o := int64(0); o < row; o += run {
			p := piece{
				offset: t.Swizzle.apply(base+sharedBase+offset+o) - sharedBase,
				n:      run,
				fill:   t.fillByte(),
			}
			if data != nil {
				p.src = data[o : o+run]
			}
			out = append(out, p)
		}
	})
	return out
}

// rowBytes is one row of a box, filled where it is out of bounds; nil if all of
// it is.
func (w *warp) rowBytes(
	t *TensorMap, first int64, addr uint64, row int64, inside bool, l int,
) []byte {
	size := int64(t.Type.Bytes())
	step := int64(t.Steps[0])
	n := row / size
	if !inside || first >= int64(t.Dims[0]) ||
		first+(n-1)*step < 0 {
		return nil
	}
	// Rows within bounds are not copied.
	if step == 1 && first >= 0 &&
		first+n <= int64(t.Dims[0]) {
		return w.globalBytes(
			addr+uint64(first*size), row, size, l, reading,
		)
	}
	data := make([]byte, row)
	for i := range n {
		x := first + i*step
		d := data[i*size : (i+1)*size]
		if x < 0 || x >= int64(t.Dims[0]) {
			for j := range d {
				d[j] = t.fillByte()
			}
			continue
		}
		copy(
			d,
			w.globalBytes(addr+uint64(x*size), size, size, l, reading),
		)
	}
	return data
}

// enqueueTransfer adds an operation to the lane's open bulk group and marks what
// it will read.
func (w *warp) enqueueTransfer(l int, reads []piece, land func()) {
	for _, p := range reads {
		w.mark(w.cta, p.offset, p.n, false, +1)
	}
	w.bulk.open = append(w.bulk.open, &transfer{
		by:     w,
		pc:     w.pc,
		lane:   l,
		pieces: reads,
		land:   land,
	})
}

// bulkSource resolves the CTA's own shared memory that a bulk copy reads.
func (w *warp) bulkSource(addr uint64, n int64, l int) []byte {
	t, off := w.cta.sharedAt(addr&^windowMask, n)
	if t != w.cta {
		w.sharedOutside(addr, n, l)
		return nil
	}
	w.asyncRead(t, off, n, l)
	return t.shared[off : off+n]
}

// bulkStore is cp.async.bulk and cp.reduce.async.bulk from shared to global
// memory; a is the number of bytes.
func bulkStore(w *warp, in *instr) {
	dst := *w.addresses(&in.at, &w.addr)
	src := *w.addresses(&in.mods.src, &w.addr2)
	for m := w.active; m != 0; m &= m - 1 {
		l := firstLane(m)
		n := int64(w.r32[in.a][l])
		if !w.bulkSize(n, l) ||
			!w.aligned(src[l], 16, "shared", l) ||
			!w.aligned(dst[l], 16, "global", l) {
			return
		}
		from := w.bulkSource(src[l], n, l)
		if from == nil {
			return
		}
		// The destination is resolved at issue, and written when the group
		// completes.
		to := w.globalBytes(
			dst[l], n, 16, l,
			storing(in.mods.atomic),
		)
		if to == nil {
			return
		}
		w.countBulk(n)
		_, off := w.cta.sharedAt(src[l]&^windowMask, n)
		w.enqueueTransfer(l, []piece{{offset: off, n: n}}, func() {
			w.cta.grid.storeBytes(
				to, from, dst[l],
				in.size, in.mods.atomic,
			)
		})
	}
}

// storing is the kind of access of a bulk store: reductions are atomic.
func storing(reduce scalar) access {
	if reduce != nil {
		return atomically
	}
	return writing
}

// storeBytes copies bytes to global memory, or reduces elements of size bytes
// into it.
func (g *grid) storeBytes(to, from []byte, addr uint64, size uint8, reduce scalar) {
	if reduce == nil {
		copy(to, from)
		return
	}
	for i := 0; i < len(to); i += int(size) {
		// Each element is reduced under the lock of its address, as atomics
		// are.
		m := g.lock(addr + uint64(i))
		store(
			to[i:],
			size,
			reduce(
				fetch(to[i:], size),
				fetch(from[i:], size),
				0,
			),
		)
		m.Unlock()
	}
}

// tensorStore is cp.async.bulk.tensor from shared to global memory; elements out
// of the tensor's bounds are not stored.
func tensorStore(w *warp, in *instr) {
	maps := *w.addresses(&in.at, &w.addr)
	src := *w.addresses(&in.mods.src, &w.addr2)
	for m := w.active; m != 0; m &= m - 1 {
		l := firstLane(m)
		t := w.tensorMapAt(maps[l], len(in.list), l)
		if t == nil ||
			!w.aligned(src[l], t.alignment(), "shared", l) {
			return
		}
		owner, base := w.cta.sharedAt(
			src[l]&^windowMask, t.boxBytes(),
		)
		if owner != w.cta {
			w.sharedOutside(src[l], t.boxBytes(), l)
			return
		}
		w.asyncRead(owner, base, t.boxBytes(), l)
		w.countBulk(t.boxBytes())
		at := w.coordinates(in, l)
		w.enqueueTransfer(l, []piece{
			{offset: base, n: t.boxBytes()},
		}, func() {
			w.storeBox(in, t, at, base, l)
		})
	}
}

// storeBox stores the elements of a box, or reduces them.
func (w *warp) storeBox(
	in *instr, t *TensorMap, at []int32, base int64, l int,
) {
	size := int64(t.Type.Bytes())
	step := int64(t.Steps[0])
	n := (int64(t.Box[0]) + step - 1) / step
	var reduce scalar
	if in.mods.reduces {
		reduce = reducing(&in.mods.code, t.Type)
	}
	w.beginStore()
	defer w.endStore()
	t.rows(at, func(offset int64, addr uint64, inside bool) {
		if !inside {
			return
		}
		for i := int64(0); i < n; {
			x := int64(at[0]) + i*step
			if x < 0 || x >= int64(t.Dims[0]) {
				i++
				continue
			}
			place := base + sharedBase + offset + i*size
			// A swizzle moves units of 16 bytes, of which a store takes what is left.
			each := int64(1)
			if step == 1 && reduce == nil {
				each = min((16-place%16)/size, n-i, int64(t.Dims[0])-x)
			}
			from := t.Swizzle.apply(place) - sharedBase
			dst := addr + uint64(x*size)
			to := w.globalBytes(
				dst, each*size, size, l, storing(reduce),
			)
			if to != nil {
				w.cta.grid.storeBytes(
					to,
					w.cta.shared[from:from+each*size],
					dst, uint8(size), reduce,
				)
			}
			i += each
		}
	})
}

// bulkCommit is cp.async.bulk.commit_group.
func bulkCommit(w *warp, in *instr) {
	g := bulkGroup{lanes: w.active}
	uncommitted := w.bulk.open[:0]
	for _, t := range w.bulk.open {
		if w.active>>t.lane&1 == 1 {
			g.work = append(g.work, t)
		} else {
			uncommitted = append(uncommitted, t)
		}
	}
	w.bulk.open = uncommitted
	w.bulk.groups = append(w.bulk.groups, g)
}

// bulkWait is cp.async.bulk.wait_group c and its .read form: all but the latest c
// groups of each lane complete.
func bulkWait(w *warp, in *instr) {
	var newer [warpSize]int
	b := &w.bulk
	// The groups are counted per lane, as in cpWait.
	for i := len(b.groups) - 1; i >= 0; i-- {
		g := &b.groups[i]
		due := uint32(0)
		for m := g.lanes & w.active; m != 0; m &= m - 1 {
			l := firstLane(m)
			if newer[l] >= int(in.c) {
				due |= 1 << l
			}
			newer[l]++
		}
		w.completeGroup(g, due)
	}
	kept := b.groups[:0]
	for _, g := range b.groups {
		if g.lanes != 0 {
			kept = append(kept, g)
		}
	}
	b.groups = kept
}

// completeGroup completes the stores of the given lanes of a group.
func (w *warp) completeGroup(g *bulkGroup, lanes uint32) {
	remaining := g.work[:0]
	for _, t := range g.work {
		if lanes>>t.lane&1 == 0 {
			remaining = append(remaining, t)
			continue
		}
		w.finishStore(t)
	}
	g.work = remaining
	g.lanes &^= lanes
}

// finishStore performs a store and releases the shared memory that it reads.
func (w *warp) finishStore(t *transfer) {
	t.land()
	for _, p := range t.pieces {
		w.mark(w.cta, p.offset, p.n, false, -1)
		w.doneReading(w.cta, p.offset, p.n, t.lane)
	}
}

// ended completes what is still under way when all warps have exited, and reports
// copies that outlive shared memory.
func (c *cluster) ended() {
	// Operations with a land function read shared memory or nothing; the others
	// would write into memory that is gone.
	for _, t := range c.pending {
		if t.land == nil {
			t.by.unfinished(t, "the CTA exits with a copy into its shared memory under way")
		}
	}
	for _, t := range c.ctas {
		t.checkWarpgroups()
		for _, w := range t.warps {
			for _, g := range w.bulk.groups {
				w.reportUnfinished(g.work)
			}
			w.reportUnfinished(w.bulk.open)
		}
	}
}

// reportUnfinished reports stores that were not waited for, and performs them.
func (w *warp) reportUnfinished(work []*transfer) {
	for _, t := range work {
		w.unfinished(t, "the CTA exits without waiting until this copy has read its shared memory")
		w.finishStore(t)
	}
}

// unfinished reports a transfer at the instruction that issued it.
func (w *warp) unfinished(t *transfer, detail string) {
	w.pc = t.pc
	w.reportf(MissingWait, t.lane, "%s", detail)
}

// cpAsyncArrive is cp.async.mbarrier.arrive: the lane arrives when its cp.async
// so far have completed. The flag signed is .noinc.
func cpAsyncArrive(w *warp, in *instr) {
	addr := w.addresses(&in.at, &w.addr)
	w.commitCopies(in)
	for m := w.active; m != 0; m &= m - 1 {
		l := firstLane(m)
		b := w.mbarrierAt(addr[l], l)
		if b == nil {
			return
		}
		if !in.signed {
			b.pending++
		}
		groups := len(w.copies.groups)
		w.cta.cluster.pending = append(w.cta.cluster.pending, &transfer{
			by:      w,
			pc:      w.pc,
			lane:    l,
			barrier: b,
			land:    func() { w.completeAndArrive(b, l, groups) },
		})
	}
}

// completeAndArrive completes the lane's copies of the first groups and arrives
// at the mbarrier.
func (w *warp) completeAndArrive(b *mbarrier, l, groups int) {
	for i := range min(groups, len(w.copies.groups)) {
		g := &w.copies.groups[i]
		w.completeCopies(g, g.lanes&(1<<l))
	}
	w.publishTo(&b.gather, 1<<l)
	if !b.arrive(1) {
		w.reportf(
			InvalidOperation, l,
			"more arrivals than the mbarrier's phase has: %s",
			b.owner.sharedName(b.offset),
		)
	}
}
