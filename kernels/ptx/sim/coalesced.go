package sim

import "encoding/binary"

// coalesced resolves an access of n bytes a lane, where all active lanes touch
// the CTA's own shared memory or one array of global memory: its bytes, and in
// w.offset where in them each lane is. It is nil where lanes differ or one of
// them errs, who are then looked at one by one.
func (w *warp) coalesced(s space, addr *long, n int64, how access) []byte {
	switch s {
	case shared:
		t := w.cta
		if !w.laneOffsets(addr, sharedBase, int64(len(t.shared)), n) {
			return nil
		}
		if t.shadow != nil {
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

// laneOffsets sets the offset of each active lane's n bytes from base, false where
// one is not aligned or not within size.
func (w *warp) laneOffsets(addr *long, base uint64, size, n int64) bool {
	if size < n {
		return false
	}
	most := uint64(size - n)
	crooked := uint64(0)
	if w.active == allLanes {
		for l, a := range addr {
			if a-base > most {
				return false
			}
			crooked |= a
			w.offset[l] = uint32(a - base)
		}
		return crooked&uint64(n-1) == 0 && size < 1<<32
	}
	for m := w.active; m != 0; m &= m - 1 {
		l := firstLane(m)
		if addr[l]-base > most {
			return false
		}
		crooked |= addr[l]
		w.offset[l] = uint32(addr[l] - base)
	}
	return crooked&uint64(n-1) == 0 && size < 1<<32
}

// recordArray is what globalBytes does beside resolving.
func (w *warp) recordArray(a *allocation, n int64, how access) {
	opt := &w.cta.grid.opt
	if !opt.Races && how == reading && !opt.Uninitialised {
		return
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

// gather loads the registers of a load from where w.offset says.
func (w *warp) gather(in *instr, mem []byte) {
	for i, r := range in.list {
		from := mem[i*int(in.size):]
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
			v := fetch(from[w.offset[l]:], in.size)
			if in.signed {
				v = uint64(signExtend(v, int(in.size)*8))
			}
			w.put(r, l, v)
		}
	}
}

// scatterTo stores the registers of a store to where w.offset says.
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
	for m := w.active; m != 0; m &= m - 1 { // lane by lane: later ones win
		l := firstLane(m)
		for i, r := range in.list {
			store(
				mem[int(w.offset[l])+i*int(in.size):],
				in.size,
				w.get(r, l),
			)
		}
	}
}
