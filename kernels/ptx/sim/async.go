package sim

// asyncCopies are the cp.async of a warp that have not landed. Data lands when
// the program waits for it and not before, so that a missing wait reads what
// was there.
type asyncCopies struct {
	open   []asyncCopy   // not committed
	groups []copyGroup   // committed, oldest first
	spare  [][]asyncCopy // of groups that have landed, for reuse
	due    []uint32      // lanes of each group that land now
}

type asyncCopy struct {
	src  []byte // the bytes to copy; shorter than size: zeros follow
	dst  int32  // offset in the CTA's shared memory
	pc   int32
	size uint8
	lane uint8
}

type copyGroup struct {
	lanes  uint32
	copies []asyncCopy
}

func (a *asyncCopies) reset() {
	a.open = a.open[:0]
	a.groups = a.groups[:0]
}

// cpAsync is cp.async.c{a,g}.shared.global: a is the register of the bytes to
// read of imm, where c says so.
func cpAsync(w *warp, in *instr) {
	dst := w.addresses(&in.at, &w.addr)
	src := w.addresses(&in.mods.src, &w.addr2)
	n := int64(in.size)
	sizes := &w.r32[in.a]
	// lanes that copy all bytes, and some
	from := uint32(0)
	part := uint32(0)
	var read [warpSize]uint8
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
			from |= 1 << l
		default:
			part |= 1 << l
		}
		read[l] = bytes
	}
	if part != 0 ||
		!w.startCopies(in, dst, src, from) {
		for m := w.active; m != 0; m &= m - 1 {
			l := firstLane(m)
			w.startCopy(in, dst[l], src[l], int64(read[l]), l)
		}
	}
	if w.cta.work.executed != nil {
		if from |= part; from != 0 {
			w.cta.work.counters.GlobalLoad.add(sectors(src, from, n))
		}
		w.cta.work.counters.SharedStore.add(wavefronts(dst, w.active, n))
	}
}

// startCopies starts the copies of all active lanes, of which those of from copy
// and the others fill with zeros; false where they must be looked at one by one.
func (w *warp) startCopies(in *instr, dst, src *long, from uint32) bool {
	n := int64(in.size)
	active := w.active
	if !w.laneOffsets(dst, sharedBase, int64(len(w.cta.shared)), n) {
		return false
	}
	to := w.offset
	crooked := uint64(0)
	for m := active &^ from; m != 0; m &= m - 1 {
		crooked |= src[firstLane(m)]
	}
	if crooked&uint64(n-1) != 0 {
		return false
	}
	var mem []byte
	if from != 0 {
		w.active = from
		mem = w.coalesced(global, src, n, reading)
		if w.active = active; mem == nil {
			return false
		}
	}
	for m := active; m != 0; m &= m - 1 {
		l := firstLane(m)
		c := asyncCopy{
			lane: uint8(l),
			dst:  int32(to[l]),
			size: in.size,
			pc:   w.pc,
		}
		if from>>l&1 == 1 {
			c.src = mem[w.offset[l] : int64(w.offset[l])+n]
		}
		w.asyncWrite(w.cta, int64(c.dst), n, l)
		w.copies.open = append(w.copies.open, c)
	}
	return true
}

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
	c := asyncCopy{
		lane: uint8(l),
		dst:  int32(off),
		size: in.size,
		pc:   w.pc,
	}
	if read > 0 {
		c.src = w.globalBytes(src, read, 1, l, reading)
		if c.src == nil {
			return
		}
	}
	w.asyncWrite(t, off, n, l)
	w.copies.open = append(w.copies.open, c)
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

func (w *warp) commitCopies(*instr) {
	a := &w.copies
	g := copyGroup{lanes: w.active}
	if n := len(a.spare); n > 0 {
		g.copies = a.spare[n-1]
		a.spare = a.spare[:n-1]
	}
	if w.active == w.whole { // all of them
		a.open, g.copies = g.copies, a.open
		a.groups = append(a.groups, g)
		return
	}
	rest := a.open[:0]
	for _, c := range a.open {
		if w.active>>c.lane&1 == 1 {
			g.copies = append(g.copies, c)
		} else {
			rest = append(rest, c)
		}
	}
	a.open = rest
	a.groups = append(a.groups, g)
}

func cpCommit(w *warp, in *instr) { w.commitCopies(in) }

// cpWait is cp.async.wait_group c: all but the latest c groups of each lane
// land.
func cpWait(w *warp, in *instr) {
	var later [warpSize]int
	a := &w.copies
	due := append(
		a.due[:0],
		make([]uint32, len(a.groups))...,
	)
	a.due = due
	for i := len(a.groups) - 1; i >= 0; i-- {
		for m := a.groups[i].lanes & w.active; m != 0; m &= m - 1 {
			l := firstLane(m)
			if later[l] >= int(in.c) {
				due[i] |= 1 << l
			}
			later[l]++
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

func cpWaitAll(w *warp, in *instr) {
	w.commitCopies(in)
	cpWait(w, &instr{})
}

// completeCopies lets the copies of the lanes land, oldest first.
func (w *warp) completeCopies(g *copyGroup, lanes uint32) {
	if lanes == 0 {
		return
	}
	rest := g.copies[:0]
	for i := range g.copies {
		c := &g.copies[i]
		if lanes>>c.lane&1 == 1 {
			w.completeCopy(c)
		} else {
			rest = append(rest, *c)
		}
	}
	g.copies = rest
	g.lanes &^= lanes
}

func (w *warp) completeCopy(c *asyncCopy) {
	n := int64(c.size)
	dst := w.cta.shared[c.dst : int64(c.dst)+n]
	if len(dst) == 16 && len(c.src) == 16 {
		*(*[16]byte)(dst) = [16]byte(c.src)
	} else {
		clear(dst[copy(dst, c.src):])
	}
	sh := w.cta.shadow
	if sh == nil {
		return
	}
	off := int64(c.dst)
	if sh.written != nil {
		for i := range n {
			sh.written[off+i] = 1
		}
	}
	if sh.words == nil {
		return
	}
	w.mark(w.cta, off, n, true, -1)
	for q := off >> 2; q <= (off+n-1)>>2; q++ {
		word := &sh.words[q]
		word.write = w.stamp(15, writing, int(c.lane))
		word.writePC = c.pc
		word.generic = true
	}
}
