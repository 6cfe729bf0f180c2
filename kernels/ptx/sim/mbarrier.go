package sim

import "fmt"

// mbarrier is an mbarrier object: a phase completes when no arrivals and no
// transaction bytes are pending.
type mbarrier struct {
	owner    *cta
	offset   int64
	expected int   // arrivals of a phase
	pending  int   // arrivals missing in this phase
	tx       int64 // bytes expected and not yet arrived
	phase    uint64
	waiters  []*warp
	gather   knowledge // of this phase's arrivals
	knows    knowledge // of completed phases
}

// The limits of an mbarrier (PTX ISA, "Contents of the mbarrier object").
const (
	mbarrierMax   = 1<<20 - 1
	mbarrierBytes = 8
)

// mbarrierAt resolves an mbarrier of a lane, or reports why there is none.
func (w *warp) mbarrierAt(addr uint64, lane int) *mbarrier {
	if addr&windowMask == sharedWindow {
		addr &^= windowMask
	}
	if !w.aligned(addr, mbarrierBytes, "shared", lane) {
		return nil
	}
	t, off := w.cta.sharedAt(addr, mbarrierBytes)
	if t == nil {
		w.sharedOutside(addr, mbarrierBytes, lane)
		return nil
	}
	b := t.mbarriers[off]
	if b == nil {
		w.report(
			Finding{
				Kind:   InvalidOperation,
				Space:  "shared",
				Addr:   addr,
				Detail: "no mbarrier was initialised there: " + t.sharedName(off),
			},
			lane,
		)
		return nil
	}
	if t.shadow != nil && t.shadow.words != nil {
		word := &t.shadow.words[off>>2]
		s := w.stamp(15, atomically, lane)
		if w.conflicts(word.write, s) {
			w.sharedRace(
				t, off>>2, s, word.write, word.writePC, "initialised",
			)
		}
	}
	return b
}

// mbarrierInit: the count is register a.
func mbarrierInit(w *warp, in *instr) {
	addr := w.addresses(&in.at, &w.addr)
	for m := w.active; m != 0; m &= m - 1 {
		l := firstLane(m)
		b := w.bytesAt(
			in.space, addr[l], mbarrierBytes, mbarrierBytes, l, writing,
		)
		if b == nil {
			continue
		}
		n := int(w.r32[in.a][l])
		if n < 1 || n > mbarrierMax {
			w.report(
				Finding{Kind: InvalidOperation, Detail: fmt.Sprintf("an mbarrier for %d arrivals", n)},
				l,
			)
			return
		}
		t, off := w.cta.sharedAt(
			addr[l]&^windowMask, mbarrierBytes,
		)
		t.mbarriers[off] = &mbarrier{
			owner:    t,
			offset:   off,
			expected: n,
			pending:  n,
		}
	}
}

func mbarrierInval(w *warp, in *instr) {
	addr := w.addresses(&in.at, &w.addr)
	for m := w.active; m != 0; m &= m - 1 {
		l := firstLane(m)
		if b := w.mbarrierAt(addr[l], l); b != nil {
			delete(b.owner.mbarriers, b.offset)
		}
	}
}

// mbarrierArrive: a is the count or, with signed set, the bytes of expect_tx;
// list holds the state. size is how many arrivals are dropped from later
// phases for each. Lanes that end one phase after the other leave nobody time to
// wait for the first.
func mbarrierArrive(w *warp, in *instr) {
	addr := w.addresses(&in.at, &w.addr)
	var ended *mbarrier // by a lane before
	for m := w.active; m != 0; m &= m - 1 {
		l := firstLane(m)
		b := w.mbarrierAt(addr[l], l)
		if b == nil || !w.visit(b.owner, addr[l], l) {
			return
		}
		w.put(in.list[0], l, b.phase)
		count := 1
		switch {
		case in.signed:
			b.tx += int64(int32(w.r32[in.a][l]))
		case in.a != 0:
			count = int(w.r32[in.a][l])
		}
		b.expected -= int(in.size) * count
		w.publishTo(&b.gather, 1<<l)
		phase := b.phase
		if !b.arrive(count) {
			w.report(
				Finding{Kind: InvalidOperation, Detail: fmt.Sprintf(
					"more arrivals than the mbarrier's %d of a phase: %s",
					b.expected, b.owner.sharedName(b.offset),
				)},
				l,
			)
			return
		}
		if b.phase != phase && b == ended {
			w.report(
				Finding{Kind: InvalidOperation, Detail: fmt.Sprintf(
					"one instruction ends several phases of an mbarrier for %d arrivals: %s",
					b.expected, b.owner.sharedName(b.offset),
				)},
				l,
			)
			return
		}
		if b.phase != phase {
			ended = b
		}
	}
}

// mbarrierTx is expect_tx and, with signed set, complete_tx of register a.
func mbarrierTx(w *warp, in *instr) {
	addr := w.addresses(&in.at, &w.addr)
	for m := w.active; m != 0; m &= m - 1 {
		l := firstLane(m)
		b := w.mbarrierAt(addr[l], l)
		if b == nil || !w.visit(b.owner, addr[l], l) {
			return
		}
		n := int64(w.r32[in.a][l])
		if in.signed {
			n = -n
		}
		b.tx += n
		b.tryComplete()
	}
}

// arrive notes count arrivals; false if the phase has not as many missing.
func (b *mbarrier) arrive(count int) bool {
	b.pending -= count
	if b.pending < 0 {
		return false
	}
	b.tryComplete()
	return true
}

func (b *mbarrier) tryComplete() {
	if b.pending != 0 || b.tx != 0 {
		return
	}
	b.phase++
	b.pending = b.expected
	b.knows.join(&b.gather)
	b.gather = knowledge{}
	for _, w := range b.waiters {
		w.wake()
	}
	b.waiters = b.waiters[:0]
}

// refusal is the phase of an mbarrier that a warp was told is not over.
type refusal struct {
	barrier *mbarrier
	phase   uint64
}

// mbarrierWait is test_wait and try_wait: a is the phase parity or (size 8) the
// state, list the result. Asked for the first time, both say no if the phase is
// not over, as a device may; asked again, the warp blocks until it is. test_wait
// is told no again when nothing else can run.
func mbarrierWait(w *warp, in *instr) {
	addr := w.addresses(&in.at, &w.addr)
	done := uint32(0)
	var open *mbarrier
	for m := w.active; m != 0; m &= m - 1 {
		l := firstLane(m)
		b := w.mbarrierAt(addr[l], l)
		if b == nil {
			w.pc++
			return
		}
		over := b.phase&1 != uint64(w.r32[in.a][l]&1)
		if in.size == 8 {
			over = b.phase > w.r64[in.a][l]
		}
		if over {
			done |= 1 << l
			w.observe(&b.knows)
		} else if open == nil {
			open = b
		}
	}
	again := open != nil &&
		w.refused == refusal{open, open.phase}
	if open == nil || w.giveUp || !again {
		w.giveUp = false
		if open != nil {
			w.refused = refusal{open, open.phase}
		}
		for m := w.active; m != 0; m &= m - 1 {
			w.put(
				in.list[0],
				firstLane(m),
				uint64(done>>firstLane(m)&1),
			)
		}
		w.pc++
		return
	}
	w.onBar = open
	w.polls = in.signed
	open.waiters = append(open.waiters, w)
	w.block(
		fmt.Sprintf(
			"mbarrier %s: phase %d, %d arrivals and %d bytes missing",
			open.owner.sharedName(open.offset),
			open.phase, open.pending, open.tx,
		),
		w.pc,
	)
}

// clusterBarrier is barrier.cluster.
type clusterBarrier struct {
	arrived map[*warp]bool
	phase   int
	gather  knowledge
	knows   knowledge // of the completed phase
}

func clusterArrive(w *warp, in *instr) {
	if w.active != w.live {
		w.report(
			Finding{Kind: DivergentBarrier, Detail: "barrier.cluster.arrive by a part of the warp"},
			firstLane(w.live&^w.active),
		)
		return
	}
	b := &w.cta.cluster.barrier
	if b.arrived[w] {
		w.report(Finding{Kind: InvalidOperation, Detail: "barrier.cluster.arrive twice without a wait between"}, -1)
		return
	}
	if b.arrived == nil {
		b.arrived = map[*warp]bool{}
	}
	b.arrived[w] = true
	w.atCluster = b.phase
	w.publishTo(&b.gather, allLanes)
	w.cta.cluster.tryBarrier()
}

func (c *cluster) tryBarrier() {
	b := &c.barrier
	if len(b.arrived) == 0 {
		return
	}
	for _, t := range c.ctas {
		for _, w := range t.warps {
			if w.status != exited && !b.arrived[w] {
				return
			}
		}
	}
	b.phase++
	clear(b.arrived)
	b.knows = b.gather
	b.gather = knowledge{}
	c.work.counters.Barriers++
	for _, t := range c.ctas {
		for _, w := range t.warps {
			if w.onCluster {
				w.wake()
			}
		}
	}
}

func clusterWait(w *warp, in *instr) {
	b := &w.cta.cluster.barrier
	switch {
	case b.phase > w.atCluster:
		w.observe(&b.knows)
		w.clock.joinLanes()
		w.onCluster = false
		w.pc++
	case !b.arrived[w]:
		w.report(Finding{Kind: InvalidOperation, Detail: "barrier.cluster.wait without an arrive"}, -1)
		w.pc++
	default:
		w.onCluster = true
		w.block(
			fmt.Sprintf("barrier.cluster: %d warps have arrived", len(b.arrived)), w.pc,
		)
	}
}

// mapa turns an address of own shared memory (a) into that of the CTA of rank b.
func mapa(w *warp, in *instr) {
	for m := w.active; m != 0; m &= m - 1 {
		l := firstLane(m)
		rank := w.r32[in.b][l]
		if int(rank) >= len(w.cta.cluster.ctas) {
			w.report(
				Finding{Kind: InvalidOperation, Detail: fmt.Sprintf(
					"CTA rank %d in a cluster of %d",
					rank, len(w.cta.cluster.ctas),
				)},
				l,
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

// getctarank is mapa's inverse.
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
