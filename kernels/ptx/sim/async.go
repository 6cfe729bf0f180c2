package sim

// asyncCopies are the cp.async of a warp that have not landed. Data lands when
// the program waits for it and not before, so that a missing wait reads what
// was there.
type asyncCopies struct {
	open   []asyncCopy // not committed
	groups []copyGroup // committed, oldest first
}

type asyncCopy struct {
	lane int
	to   *cta
	dst  int64  // offset in shared memory
	src  []byte // the bytes to copy; shorter than size: zeros follow
	size int64
	pc   int32
}

type copyGroup struct {
	lanes  uint32
	copies []asyncCopy
}

func (a *asyncCopies) reset() {
	a.open, a.groups = a.open[:0], a.groups[:0]
}

// cpAsync is cp.async.c{a,g}.shared.global: a is the register of the bytes to
// read of imm, where c says so.
func cpAsync(w *warp, in *instr) {
	dst := w.addresses(&in.at, &w.addr)
	src := w.addresses(&in.mods.src, &w.addr2)
	n := int64(in.size)
	sizes := &w.r32[in.a]
	from := uint32(0) // lanes whose bytes are not all zeros
	for m := w.active; m != 0; m &= m - 1 {
		l := firstLane(m)
		read := n
		if in.a != 0 {
			read = min(int64(sizes[l]), n)
		}
		if in.mods.zeros || in.mods.ignore != 0 && w.pred[in.mods.ignore]>>l&1 == 1 {
			read = 0
		}
		if read > 0 {
			from |= 1 << l
		}
		w.startCopy(in, dst[l], src[l], read, l)
	}
	if w.cta.work.executed != nil {
		if from != 0 {
			w.cta.work.counters.GlobalLoad.add(sectors(src, from, n))
		}
		w.cta.work.counters.SharedStore.add(wavefronts(dst, w.active, n))
	}
}

func (w *warp) startCopy(in *instr, dst, src uint64, read int64, l int) {
	n := int64(in.size)
	if !w.aligned(dst, n, "shared", l) || !w.aligned(src, n, "global", l) {
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
	c := asyncCopy{lane: l, to: t, dst: off, size: n, pc: w.pc}
	if read > 0 {
		if c.src = w.globalBytes(src, read, 1, l, reading); c.src == nil {
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
		if !w.touchWord(t, q, w.stamp(wordBytes(off, n, q), writing, lane), writing) {
			break
		}
	}
	w.mark(t, off, n, true, +1)
}

func (w *warp) commitCopies(*instr) {
	a := &w.copies
	g := copyGroup{lanes: w.active}
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
	due := make([]uint32, len(a.groups))
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
		w.landCopies(g, due[i])
		if g.lanes != 0 {
			kept = append(kept, *g)
		}
	}
	a.groups = kept
}

func cpWaitAll(w *warp, in *instr) {
	w.commitCopies(in)
	cpWait(w, &instr{})
}

// landCopies lets the copies of the lanes land, oldest first.
func (w *warp) landCopies(g *copyGroup, lanes uint32) {
	if lanes == 0 {
		return
	}
	rest := g.copies[:0]
	for _, c := range g.copies {
		if lanes>>c.lane&1 == 1 {
			w.landCopy(&c)
		} else {
			rest = append(rest, c)
		}
	}
	g.copies = rest
	g.lanes &^= lanes
}

func (w *warp) landCopy(c *asyncCopy) {
	dst := c.to.shared[c.dst : c.dst+c.size]
	clear(dst[copy(dst, c.src):])
	sh := c.to.shadow
	if sh == nil {
		return
	}
	if sh.written != nil {
		for i := range c.size {
			sh.written[c.dst+i] = 1
		}
	}
	if sh.words == nil {
		return
	}
	w.mark(c.to, c.dst, c.size, true, -1)
	for q := c.dst >> 2; q <= (c.dst+c.size-1)>>2; q++ {
		word := &sh.words[q]
		word.write, word.writePC, word.generic = w.stamp(15, writing, c.lane), c.pc, true
	}
}
