package sim

import "slices"

// asyncCopies are the cp.async of a warp that are under way. Data arrives when
// the program waits for it and not before, so that a missing wait reads the old
// contents.
type asyncCopies struct {
	// open are the copies that are not committed.
	open []asyncCopy
	// groups are the committed groups, oldest first.
	groups []copyGroup
	// spare holds the slices of completed groups for reuse.
	spare [][]asyncCopy
	// due holds the lanes of each group that complete now.
	due []uint32
}

// asyncCopy is one cp.async: the copies of its lanes that are under way.
type asyncCopy struct {
	// mem is the array that lanes copy from, at the offsets src.
	mem []byte
	// lanes are those whose copies have not completed. Those of filled write zeros
	// only, and the others read so many bytes and write zeros behind them.
	lanes, filled uint32
	read, size    uint8
	pc            int32
	// dst are the offsets in the CTA's shared memory.
	dst, src [warpSize]uint32
}

// copyGroup is a committed group: the lanes that committed it, and their copies.
type copyGroup struct {
	lanes  uint32
	copies []asyncCopy
}

// reset forgets all copies.
func (a *asyncCopies) reset() {
	a.open = a.open[:0]
	for _, g := range a.groups {
		a.spare = append(a.spare, g.copies[:0])
	}
	a.groups = a.groups[:0]
}

// cpAsync is cp.async.c{a,g}.shared.global. Operand a is the register of the
// number of bytes to read (0: all); the other bytes of the element are filled
// with zeros.
func cpAsync(w *warp, in *instr) {
	dst := w.addresses(&in.at, &w.addr)
	src := w.addresses(&in.mods.src, &w.addr2)
	n := int64(in.size)
	sizes := &w.r32[in.a]
	// lanes that copy all bytes, and some
	full := uint32(0)
	partial := uint32(0)
	var read [warpSize]uint8
	// The lanes are sorted into those that copy all bytes, some, or none.
	for m := w.active; m != 0; m &= m - 1 {
		l := firstLane(m)
		bytes := in.size
		if in.a != 0 {
			bytes = uint8(min(sizes[l], uint32(in.size)))
		}
		switch {
		case in.mods.zeros || bytes == 0 ||
			in.mods.ignore != 0 && w.pred[in.mods.ignore]>>l&1 == 1:
			continue
		case bytes == in.size:
			full |= 1 << l
		default:
			partial |= 1 << l
		}
		read[l] = bytes
	}
	// Partial copies and errors are resolved lane by lane.
	if partial != 0 ||
		!w.startCopies(in, dst, src, full) {
		for m := w.active; m != 0; m &= m - 1 {
			l := firstLane(m)
			w.startCopy(in, dst[l], src[l], int64(read[l]), l)
		}
	}
	if w.cta.work.executed != nil {
		if full |= partial; full != 0 {
			w.cta.work.counters.GlobalLoad.add(sectors(src, full, n))
		}
		w.cta.work.counters.SharedStore.add(wavefronts(dst, w.active, n))
	}
}

// startCopies starts the copies of all active lanes at once. The lanes of copying
// copy, and the others fill with zeros. It returns false if the lanes have to be
// resolved one by one.
func (w *warp) startCopies(in *instr, dst, src *long, copying uint32) bool {
	n := int64(in.size)
	active := w.active
	if !w.laneOffsets(dst, sharedBase, int64(len(w.cta.shared)), n) {
		return false
	}
	// The offsets of the destinations are kept, since resolving the sources
	// overwrites them.
	to := w.offset
	misaligned := uint64(0)
	for m := active &^ copying; m != 0; m &= m - 1 {
		misaligned |= src[firstLane(m)]
	}
	if misaligned&uint64(n-1) != 0 {
		return false
	}
	var mem []byte
	// Only lanes that copy may access global memory.
	if copying != 0 {
		w.active = copying
		mem = w.coalesced(global, src, n, reading)
		if w.active = active; mem == nil {
			return false
		}
	}
	c := w.copies.begin()
	*c = asyncCopy{
		mem: mem, lanes: active, filled: active &^ copying,
		read: in.size, size: in.size, pc: w.pc,
		dst: to, src: w.offset,
	}
	for m := active; m != 0; m &= m - 1 {
		l := firstLane(m)
		w.asyncWrite(w.cta, int64(to[l]), n, l)
	}
	return true
}

// begin is room for a further open copy, which has to be written over.
func (a *asyncCopies) begin() *asyncCopy {
	n := len(a.open)
	if n == cap(a.open) {
		a.open = slices.Grow(a.open, 1+n)
	}
	a.open = a.open[:n+1]
	return &a.open[n]
}

// startCopy starts the copy of one lane, which reads so many bytes.
func (w *warp) startCopy(in *instr, dst, src uint64, read int64, l int) {
	n := int64(in.size)
	if !w.aligned(dst, n, "shared", l) ||
		!w.aligned(src, n, "global", l) {
		return
	}
	if dst&windowMask == sharedWindow {
		dst &^= windowMask
	}
	t, off := w.cta.sharedAt(dst, n)
	if t != w.cta {
		w.sharedOutside(dst, n, l)
		return
	}
	var mem []byte
	if read > 0 {
		mem = w.globalBytes(src, read, 1, l, reading)
		if mem == nil {
			return
		}
	}
	w.asyncWrite(t, off, n, l)
	c := w.copies.begin()
	*c = asyncCopy{
		mem: mem, lanes: 1 << l,
		read: uint8(read), size: in.size, pc: w.pc,
	}
	c.dst[l] = uint32(off)
}

// asyncWrite checks that an asynchronous write may begin and marks its words.
func (w *warp) asyncWrite(t *cta, off, n int64, lane int) {
	if t.shadow == nil || t.shadow.words == nil {
		return
	}
	for q := off >> 2; q <= (off+n-1)>>2; q++ {
		if !w.recordWord(t, q, w.stamp(
			wordBytes(off, n, q), writing, lane,
		), writing) {
			break
		}
	}
	w.mark(t, off, n, true, +1)
}

// commitCopies moves the open copies of the active lanes into a new group.
func (w *warp) commitCopies(*instr) {
	a := &w.copies
	g := copyGroup{lanes: w.active}
	if n := len(a.spare); n > 0 {
		g.copies = a.spare[n-1]
		a.spare = a.spare[:n-1]
	}
	// The usual case is a commit by the whole warp: the slices change places.
	if w.active == w.whole { // all of them
		a.open, g.copies = g.copies, a.open
		a.groups = append(a.groups, g)
		return
	}
	uncommitted := a.open[:0]
	for _, c := range a.open {
		rest := c
		if c.lanes &= w.active; c.lanes != 0 {
			g.copies = append(g.copies, c)
		}
		if rest.lanes &^= w.active; rest.lanes != 0 {
			uncommitted = append(uncommitted, rest)
		}
	}
	a.open = uncommitted
	a.groups = append(a.groups, g)
}

// cpCommit is cp.async.commit_group.
func cpCommit(w *warp, in *instr) { w.commitCopies(in) }

// cpWait is cp.async.wait_group c: all but the latest c groups of each lane
// complete.
func cpWait(w *warp, in *instr) {
	var newer [warpSize]int
	a := &w.copies
	due := append(
		a.due[:0],
		make([]uint32, len(a.groups))...,
	)
	a.due = due
	// From the latest group to the oldest: a lane's group completes if the lane
	// has at least c newer ones.
	for i := len(a.groups) - 1; i >= 0; i-- {
		for m := a.groups[i].lanes & w.active; m != 0; m &= m - 1 {
			l := firstLane(m)
			if newer[l] >= int(in.c) {
				due[i] |= 1 << l
			}
			newer[l]++
		}
	}
	kept := a.groups[:0]
	for i := range a.groups {
		g := &a.groups[i]
		w.completeCopies(g, due[i])
		if g.lanes != 0 {
			kept = append(kept, *g)
		} else {
			a.spare = append(a.spare, g.copies[:0])
		}
	}
	a.groups = kept
}

// cpWaitAll is cp.async.wait_all: it commits the open copies and waits for all
// groups.
func cpWaitAll(w *warp, in *instr) {
	w.commitCopies(in)
	cpWait(w, &instr{})
}

// completeCopies completes the copies of the given lanes of a group, oldest
// first.
func (w *warp) completeCopies(g *copyGroup, lanes uint32) {
	if lanes == 0 {
		return
	}
	kept := 0
	for i := range g.copies {
		c := &g.copies[i]
		for m := c.lanes & lanes; m != 0; m &= m - 1 {
			w.completeCopy(c, firstLane(m))
		}
		if c.lanes &^= lanes; c.lanes == 0 {
			continue
		}
		if kept < i {
			g.copies[kept] = *c
		}
		kept++
	}
	g.copies = g.copies[:kept]
	g.lanes &^= lanes
}

// completeCopy writes the bytes of a lane's copy and records the write.
func (w *warp) completeCopy(c *asyncCopy, lane int) {
	off, n := int64(c.dst[lane]), int64(c.size)
	dst := w.cta.shared[off : off+n]
	var src []byte
	if c.filled>>lane&1 == 0 {
		src = c.mem[c.src[lane]:][:c.read]
	}
	if len(dst) == 16 && len(src) == 16 {
		*(*[16]byte)(dst) = [16]byte(src)
	} else {
		clear(dst[copy(dst, src):])
	}
	sh := w.cta.shadow
	if sh == nil {
		return
	}
	if sh.written != nil {
		setOnes(sh.written[off : off+n])
	}
	if sh.words == nil {
		return
	}
	// The words are free again, and the copy is now their latest write.
	s := w.stamp(15, writing, lane)
	words := sh.words[off>>2 : (off+n-1)>>2+1]
	for i := range words {
		word := &words[i]
		word.incoming--
		word.write = s
		word.writePC = c.pc
		word.generic = true
	}
}
