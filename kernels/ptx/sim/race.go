package sim

import "fmt"

// Data races are found with vector clocks (FastTrack, Flanagan and Freund 2009)
// whose parties are warps: an access is remembered with its warp's clock, and a
// later one that does not know of that clock conflicts. Lanes of one warp are
// ordered by bar.warp.sync and barriers only, not by running in lockstep.
// Where the bookkeeping is coarser than the memory model it is so towards
// silence: what is reported is a race.

// own is what publishing by the given lanes tells of the warp's own accesses.
func (w *warp) own(lanes uint32) knownClock {
	if w.whole&^lanes == 0 {
		return knownClock{all: w.clock.now}
	}
	return knownClock{
		all:   w.clock.synced,
		some:  w.clock.now,
		lanes: lanes,
	}
}

// publishTo adds what the warp knows to a synchronisation object.
func (w *warp) publishTo(k *knowledge, lanes uint32) {
	if !w.clock.on {
		return
	}
	w.clock.seen.near[w.party] = w.own(lanes)
	k.join(&w.clock.knowledge)
	w.clock.now++
}

// observe adds what a synchronisation object carries to the knowledge of the
// warp.
func (w *warp) observe(k *knowledge) {
	if w.clock.on {
		w.clock.join(k)
	}
}

// proxyFence makes everything the warp knows visible to the async proxy.
func (w *warp) proxyFence() {
	if !w.clock.on {
		return
	}
	w.clock.seen.near[w.party] = w.own(w.active)
	w.clock.fenced.join(&w.clock.seen)
	w.clock.now++
}

// stamp is an access of a lane of the warp at its current clock.
func (w *warp) stamp(bytes uint8, a access, lane int) stamp {
	return makeStamp(
		w.clock.now, bytes, a == atomically, lane,
		w.party, w.cta.cluster.unit,
	)
}

// conflicts reports whether an earlier access is not ordered before s, an access
// of the warp: they share bytes, they are not both atomic, and the warp does not
// know of the earlier one.
func (w *warp) conflicts(earlier, s stamp) bool {
	switch {
	case earlier == 0,
		earlier.bytes()&s.bytes() == 0,
		earlier.atomic() && s.atomic():
		return false
	// Of other clusters, only what global synchronisation variables carried is
	// known.
	case earlier.unit() != s.unit():
		known := w.clock.seen.far[earlier.unit()]
		return known == nil ||
			!known[earlier.party()].knows(earlier.clock(), earlier.lane())
	// Lanes of one warp are ordered by barriers only.
	case earlier.party() == w.party:
		return earlier.lane() != s.lane() &&
			earlier.clock() > w.clock.synced
	}
	return !w.clock.seen.near[earlier.party()].knows(
		earlier.clock(), earlier.lane(),
	)
}

// recordGlobal checks an access to n bytes of an allocation against the recorded
// ones and records it.
func (w *warp) recordGlobal(a *allocation, off, n int64, lane int, how access) {
	if a.shadow == nil {
		return
	}
	first, last := off>>2, (off+n-1)>>2
	chunk := a.shadow.chunk(first / chunkWords)
	if how == reading && w.cta.entry.isolated && (off|n)&3 == 0 && first/chunkWords == last/chunkWords &&
		settled(chunk[first%chunkWords:last%chunkWords+1]) {
		return
	}
	for q := first; q <= last; q++ {
		if q%chunkWords == 0 {
			chunk = a.shadow.chunk(q / chunkWords)
		}
		cell := &chunk[q%chunkWords]
		s := w.stamp(wordBytes(off, n, q), how, lane)
		if how == reading {
			if !w.recordRead(a, cell, q, s) {
				return
			}
		} else if !w.recordWrite(a, cell, q, s, how) {
			return
		}
	}
}

// recordRead checks a read of a word and records it; it returns false if it
// reported a conflict.
func (w *warp) recordRead(
	a *allocation, cell *shadowCell, q int64, s stamp,
) bool {
	before := stamp(cell.write.Load())
	if before != 0 {
		if pc := cell.writePC.Load(); w.conflicts(before, s) &&
			!w.sameStore(before, pc, s) {
			w.race(a, q, s.lane(), before, pc, reading, "written")
			return false
		}
	}
	// A read of another cluster is kept as a second one, since a write of this
	// cluster may know of its own reads only. Stores take long, for other workers
	// see them, so that what need not change is not stored.
	old := stamp(cell.read.Load())
	if old != 0 && w.cta.entry.isolated && s.readTwice(old, stamp(cell.read2.Load())) {
		return true
	}
	if old != 0 && old.unit() != s.unit() {
		second := stamp(cell.read2.Load())
		if second == 0 || second.unit() == s.unit() {
			cell.read2.Store(uint64(old))
		}
	}
	cell.read.Store(uint64(s))
	if cell.readPC.Load() != w.pc {
		cell.readPC.Store(w.pc)
	}
	return true
}

// readTwice reports whether two clusters are recorded as readers of the bytes that s reads.
// Where clusters never learn of each other, a write by any cluster conflicts with one of
// the two, so that a further reader changes nothing.
func (s stamp) readTwice(old, second stamp) bool {
	return second != 0 && old.unit() != second.unit() &&
		s.bytes()&^old.bytes() == 0 && s.bytes()&^second.bytes() == 0
}

// settled reports whether another read of whole words changes nothing: nobody has written
// them, and two clusters that never learn of each other have read them (see readTwice).
func settled(cells []shadowCell) bool {
	for i := range cells {
		c := &cells[i]
		read, second := stamp(c.read.Load()), stamp(c.read2.Load())
		if c.write.Load() != 0 || read.bytes()&second.bytes() != 15 ||
			read.unit() == second.unit() {
			return false
		}
	}
	return true
}

// recordWrite checks a write or an atomic operation on a word and records it; it
// returns false if it reported a conflict.
func (w *warp) recordWrite(
	a *allocation, cell *shadowCell, q int64, s stamp, how access,
) bool {
	// The cell is exchanged atomically, because other workers record accesses at
	// the same time.
	pc := cell.writePC.Load()
	before := stamp(cell.write.Swap(uint64(s)))
	cell.writePC.Store(w.pc)
	if w.conflicts(before, s) && !w.sameStore(before, pc, s) {
		report := func() { w.race(a, q, s.lane(), before, pc, how, "written") }
		if !w.doubt(how, a.data, q, report) {
			report()
			return false
		}
	}
	// A write conflicts with earlier reads, too.
	for _, r := range [2]stamp{
		stamp(cell.read.Load()),
		stamp(cell.read2.Load()),
	} {
		if w.conflicts(r, s) {
			w.race(
				a, q, s.lane(), r,
				cell.readPC.Load(), how, "read",
			)
			return false
		}
	}
	return true
}

// sameStore reports whether an earlier write is by another lane of the instruction
// that the warp executes.
func (w *warp) sameStore(before stamp, pc int32, s stamp) bool {
	return pc == w.pc &&
		before.party() == w.party &&
		before.unit() == s.unit()
}

// A rewrite is a store to a word that conflicts with an earlier store. It is no race if
// it stores what the word holds: compilers give several threads one value, and let all of
// them store it.
type rewrite struct {
	// word is the bytes of the word, and old what they were before the store.
	word   []byte
	old    [4]byte
	report func()
}

// doubt puts off the report of a conflict of two stores until the instruction has
// stored; it returns false for accesses that are no plain stores.
func (w *warp) doubt(how access, mem []byte, q int64, report func()) bool {
	if how != writing || !w.storing {
		return false
	}
	r := rewrite{
		word:   mem[4*q : min(4*q+4, int64(len(mem)))],
		report: report,
	}
	copy(r.old[:], r.word)
	w.rewrites = append(w.rewrites, r)
	return true
}

// beginStore puts off the reports of conflicts with other stores, and endStore reports
// those that changed something.
func (w *warp) beginStore() { w.storing = true }

func (w *warp) endStore() {
	w.storing = false
	for _, r := range w.rewrites {
		if string(r.word) != string(r.old[:len(r.word)]) {
			r.report()
		}
	}
	clear(w.rewrites)
	w.rewrites = w.rewrites[:0]
}

// race reports a race with another access to a word of global memory.
func (w *warp) race(
	a *allocation, word int64, lane int, other stamp,
	pc int32, how access, did string,
) {
	o := w.cta.entry.sites[pc]
	g := w.cta.grid
	per := (g.threads + warpSize - 1) / warpSize
	o.CTA, o.Warp, o.Lane = g.ctaOf(
		other.unit(), other.party()/per,
	), other.party()%per, other.lane()
	verb := "reads"
	if how != reading {
		verb = "writes"
	}
	w.report(
		Finding{
			Kind:   Race,
			Space:  "global",
			Addr:   a.start + uint64(word*4),
			Other:  &o,
			Detail: fmt.Sprintf("%s offset %d of %v, %s without synchronisation", verb, word*4, a, did),
		}, lane,
	)
}

// release lets the word at addr carry what the warp knows. The flag ordered is
// set if the operation itself releases; otherwise only what an earlier fence
// covers is released.
func (w *warp) release(addr uint64, ordered bool) {
	if !w.clock.on {
		return
	}
	from := &w.clock.atLast
	if ordered {
		w.clock.seen.near[w.party] = w.own(w.active)
		from = &w.clock.seen
		defer func() { w.clock.now++ }()
	}
	if from.near == nil {
		return
	}
	v := &w.cta.grid.sync
	v.Lock()
	defer v.Unlock()
	if v.at == nil {
		v.at = map[uint64]*vectorClock{}
	}
	h := v.at[addr]
	if h == nil {
		h = &vectorClock{}
		v.at[addr] = h
	}
	// Other clusters find the warp's own cluster by its number.
	h.joinFar(w.cta.cluster.unit, from.near)
	h.join(&vectorClock{far: from.far})
}

// acquire takes over what the word at addr carries: at once if the operation
// itself acquires (ordered), and at the next fence otherwise.
func (w *warp) acquire(addr uint64, ordered bool) {
	if !w.clock.on {
		return
	}
	v := &w.cta.grid.sync
	v.Lock()
	defer v.Unlock()
	h := v.at[addr]
	if h == nil {
		return
	}
	into := &w.clock.toCome
	if ordered {
		into = &w.clock.seen
	}
	unit := w.cta.cluster.unit
	for u, theirs := range h.far {
		// What was released by the own cluster is known by party.
		if u != unit {
			into.joinFar(u, theirs)
			continue
		}
		into.join(&vectorClock{near: theirs})
	}
}

// fence is membar and fence.acq_rel: it orders what relaxed atomics acquired
// before it and release after it.
func (w *warp) fence() {
	if !w.clock.on {
		return
	}
	// Acquired by relaxed atomics before, known from now on.
	w.clock.seen.join(&w.clock.toCome)
	w.clock.toCome = vectorClock{}
	w.clock.seen.near[w.party] = w.own(w.active)
	w.clock.atLast = vectorClock{}
	w.clock.atLast.join(&w.clock.seen)
	w.clock.now++
}

// recordShared checks a generic access to n bytes at offset off of t's shared
// memory and records it.
func (w *warp) recordShared(t *cta, off, n int64, lane int, how access) {
	sh := t.shadow
	if sh.written != nil {
		sh.initialised(w, t, off, n, lane, how)
	}
	if sh.words == nil {
		return
	}
	for q := off >> 2; q <= (off+n-1)>>2; q++ {
		s := w.stamp(wordBytes(off, n, q), how, lane)
		if !w.recordWord(t, q, s, how) {
			return
		}
		// The access becomes the latest one of its kind.
		word := &sh.words[q]
		if how == reading {
			sh.readers[q*sh.parties+int64(w.party)] = s.clock()<<9 |
				uint32(s.bytes())<<5 | uint32(lane)
			word.readPC = w.pc
			continue
		}
		word.write = s
		word.writePC = w.pc
		word.generic = true
	}
}

// initialised marks the bytes of a write, and reports the first byte of a read
// that nothing has written.
func (sh *sharedShadow) initialised(
	w *warp, t *cta, off, n int64, lane int, how access,
) {
	b := sh.written[off : off+n]
	for i := range b {
		if how == writing {
			b[i] = 1
		} else if b[i] == 0 {
			w.report(
				Finding{
					Kind:   Uninitialised,
					Space:  "shared",
					Addr:   uint64(off) + sharedBase,
					Detail: t.sharedName(off),
				},
				lane,
			)
			return
		}
	}
}

// recordWord checks an access to one word against those before it; it returns
// false if it reported something. Recording the access is left to the caller.
func (w *warp) recordWord(t *cta, q int64, s stamp, how access) bool {
	sh := t.shadow
	word := &sh.words[q]
	switch {
	case word.incoming > 0:
		return w.busy(t, q, s, "an asynchronous copy into it has not been waited for")
	case word.outgoing > 0 && how != reading:
		return w.busy(t, q, s, "an asynchronous operation that reads it has not been waited for")
	case w.conflicts(word.write, s) &&
		!(word.writePC == w.pc && word.write.party() == w.party):
		other, pc := word.write, word.writePC
		report := func() { w.sharedRace(t, q, s, other, pc, "written") }
		if !w.doubt(how, t.shared, q, report) {
			report()
			return false
		}
	case how == reading:
		return true
	}
	// A write must be ordered behind the latest read of each party.
	readers := sh.readers[q*sh.parties : (q+1)*sh.parties]
	for party, r := range readers {
		if r == 0 ||
			party == w.party && r>>9 <= w.clock.synced {
			continue
		}
		read := makeStamp(
			r>>9, uint8(r>>5)&15, false,
			int(r&31), party, s.unit(),
		)
		if w.conflicts(read, s) {
			return w.sharedRace(
				t, q, s, read, word.readPC, "read",
			)
		}
	}
	return true
}

// busy reports an access to a word that an asynchronous operation still uses, and
// returns false.
func (w *warp) busy(t *cta, q int64, s stamp, detail string) bool {
	word := &t.shadow.words[q]
	o := t.siteOfParty(
		word.busyPC, int(word.busyParty), -1,
	)
	w.report(
		Finding{
			Kind:   MissingWait,
			Space:  "shared",
			Addr:   uint64(q*4) + sharedBase,
			Detail: detail + ": " + t.sharedName(q*4),
			Other:  &o,
		},
		s.lane(),
	)
	return false
}

// sharedRace reports a race with another access to a word of shared memory, and
// returns false.
func (w *warp) sharedRace(
	t *cta, q int64, s, other stamp, pc int32, did string,
) bool {
	o := t.siteOfParty(pc, other.party(), other.lane())
	w.report(
		Finding{
			Kind:   Race,
			Space:  "shared",
			Addr:   uint64(q*4) + sharedBase,
			Detail: t.sharedName(q*4) + ", " + did + " without synchronisation",
			Other:  &o,
		},
		s.lane(),
	)
	return false
}

// siteOfParty is an instruction of a warp of t's cluster, by the number of the
// warp in the cluster.
func (t *cta) siteOfParty(pc int32, party, lane int) Site {
	per := len(t.warps)
	s := t.entry.sites[pc]
	s.CTA = t.grid.ctaOf(
		t.cluster.unit,
		min(party/per, len(t.cluster.ctas)-1),
	)
	s.Warp = party % per
	s.Lane = lane
	return s
}

// fencedFor reports whether the async proxy may read word q on behalf of the
// warp: the write to it is by the async proxy, or a proxy fence after it is
// ordered before.
func (w *warp) fencedFor(t *cta, q int64) bool {
	word := &t.shadow.words[q]
	if word.write == 0 || !word.generic {
		return true
	}
	f := w.clock.fenced.near
	return f != nil &&
		f[word.write.party()].knows(
			word.write.clock(), word.write.lane(),
		)
}

// asyncRead checks that the async proxy may read n bytes at offset off of t's
// shared memory on behalf of the warp, and records the read.
func (w *warp) asyncRead(t *cta, off, n int64, lane int) {
	sh := t.shadow
	if sh == nil {
		return
	}
	if sh.written != nil {
		sh.initialised(w, t, off, n, lane, reading)
	}
	if sh.words == nil {
		return
	}
	for q := off >> 2; q <= (off+n-1)>>2; q++ {
		s := w.stamp(wordBytes(off, n, q), reading, lane)
		if !w.recordWord(t, q, s, reading) {
			return
		}
		word := &sh.words[q]
		// Ordering alone does not make generic writes visible to the async
		// proxy.
		if !w.fencedFor(t, q) {
			o := t.siteOfParty(
				word.writePC, word.write.party(),
				word.write.lane(),
			)
			w.report(Finding{Kind: MissingFence, Space: "shared", Addr: uint64(q*4) + sharedBase,
				Detail: "read by the async proxy, written by the generic proxy with no fence.proxy.async between: " + t.sharedName(q*4), Other: &o}, lane)
			return
		}
		sh.readers[q*sh.parties+int64(w.party)] = s.clock()<<9 |
			15<<5 | uint32(lane)
		word.readPC = w.pc
	}
}

// doneReading makes n bytes that an asynchronous operation has read those that the lane
// which waits for it reads now: another thread's write is ordered behind the wait, not only
// behind the start.
func (w *warp) doneReading(t *cta, off, n int64, lane int) {
	if t.shadow == nil || t.shadow.words == nil {
		return
	}
	sh := t.shadow
	for q := off >> 2; q <= (off+n-1)>>2; q++ {
		sh.readers[q*sh.parties+int64(w.party)] = w.clock.now<<9 |
			15<<5 | uint32(lane)
		sh.words[q].readPC = w.pc
	}
}

// mark adds by to the number of asynchronous reads (or writes) of n bytes that
// are under way.
func (w *warp) mark(t *cta, off, n int64, writes bool, by int) {
	if t.shadow == nil || t.shadow.words == nil {
		return
	}
	for q := off >> 2; q <= (off+n-1)>>2; q++ {
		word := &t.shadow.words[q]
		if writes {
			word.incoming = uint16(int(word.incoming) + by)
		} else {
			word.outgoing = uint16(int(word.outgoing) + by)
		}
		if by > 0 {
			word.busyPC = w.pc
			word.busyParty = int32(w.party)
		}
	}
}
