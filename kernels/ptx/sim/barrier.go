package sim

import (
	"fmt"
	"math/bits"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// mbarrier is an mbarrier object: a phase completes when no arrivals and no
// transaction bytes are pending.
type mbarrier struct {
	// owner and offset are the place of the object in shared memory.
	owner  *cta
	offset int64
	// expected is the number of arrivals of a phase.
	expected int
	// pending is the number of arrivals that the current phase lacks.
	pending int
	// tx is the number of bytes that are expected and have not arrived.
	tx int64
	// phase is the number of completed phases.
	phase uint64
	// waiters are the warps that are blocked until the phase completes.
	waiters []*warp
	// gather is what the arrivals of the current phase know.
	gather knowledge
	// knows is what the arrivals of completed phases knew.
	knows knowledge
}

// These are the limits of an mbarrier (PTX ISA, "Contents of the mbarrier
// object").
const (
	mbarrierMax   = 1<<20 - 1
	mbarrierBytes = 8
)

// mbarrierAt resolves the mbarrier of a lane; it returns nil after reporting that
// there is none, or that its initialisation is not ordered before.
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
	// The initialisation is an ordinary write: it must be ordered before the
	// use.
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

// mbarrierInit is mbarrier.init; a is the count.
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
			w.reportf(InvalidOperation, l, "an mbarrier for %d arrivals", n)
			return
		}
		t, off := w.cta.sharedAt(
			addr[l]&^windowMask, mbarrierBytes,
		)
		// The object's state is kept beside the memory, whose 8 bytes are only
		// recorded as written.
		t.mbarriers[off] = &mbarrier{
			owner:    t,
			offset:   off,
			expected: n,
			pending:  n,
		}
	}
}

// mbarrierInval is mbarrier.inval.
func mbarrierInval(w *warp, in *instr) {
	addr := w.addresses(&in.at, &w.addr)
	for m := w.active; m != 0; m &= m - 1 {
		l := firstLane(m)
		if b := w.mbarrierAt(addr[l], l); b != nil {
			delete(b.owner.mbarriers, b.offset)
		}
	}
}

// mbarrierArrive is mbarrier.arrive: a is the count or, with signed set, the
// bytes of expect_tx; list holds the state. The size is the number of arrivals
// dropped from later phases for each arrival. One instruction whose lanes end
// several phases is reported: no thread has time to wait for the first.
func mbarrierArrive(w *warp, in *instr) {
	addr := w.addresses(&in.at, &w.addr)
	// ended is the mbarrier whose phase an earlier lane has ended.
	var ended *mbarrier
	for m := w.active; m != 0; m &= m - 1 {
		l := firstLane(m)
		b := w.mbarrierAt(addr[l], l)
		if b == nil || !w.visit(b.owner, addr[l], l) {
			return
		}
		// The state that the instruction returns is the phase it arrived in.
		w.put(in.list[0], l, b.phase)
		count := 1
		switch {
		case in.signed:
			b.tx += int64(int32(w.r32[in.a][l]))
		case in.a != 0:
			count = int(w.r32[in.a][l])
		}
		// A dropped arrival lowers the count of later phases, before this one
		// can end.
		b.expected -= int(in.size) * count
		w.publishTo(&b.gather, 1<<l)
		phase := b.phase
		if !b.arrive(count) {
			w.reportf(
				InvalidOperation, l,
				"more arrivals than the mbarrier's %d of a phase: %s",
				b.expected, b.owner.sharedName(b.offset),
			)
			return
		}
		if b.phase != phase && b == ended {
			w.reportf(
				InvalidOperation, l,
				"one instruction ends several phases of an mbarrier for %d arrivals: %s",
				b.expected, b.owner.sharedName(b.offset),
			)
			return
		}
		if b.phase != phase {
			ended = b
		}
	}
}

// mbarrierTx is mbarrier.expect_tx and, with signed set, mbarrier.complete_tx; a
// is the number of bytes.
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

// arrive counts arrivals; it returns false if the phase lacks fewer.
func (b *mbarrier) arrive(count int) bool {
	b.pending -= count
	if b.pending < 0 {
		return false
	}
	b.tryComplete()
	return true
}

// tryComplete begins the next phase if nothing is pending, and wakes the waiting
// warps.
func (b *mbarrier) tryComplete() {
	if b.pending != 0 || b.tx != 0 {
		return
	}
	// The knowledge of the arrivals is handed to those who wait for the phase.
	b.phase++
	b.pending = b.expected
	b.knows.join(&b.gather)
	b.gather = knowledge{}
	for _, w := range b.waiters {
		w.wake()
	}
	b.waiters = b.waiters[:0]
}

// refusal is the phase of an mbarrier that a warp was told is not complete.
type refusal struct {
	barrier *mbarrier
	phase   uint64
}

// mbarrierWait is mbarrier.test_wait and try_wait: a is the parity of the phase
// or (size 8) the state, list holds the result. Asked for the first time, both
// report that a phase is not complete, as a device may; asked again, the warp
// blocks until it is. A warp blocked in test_wait is told so again when nothing
// else can run.
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
		// A phase parity is complete if it differs from that of the current
		// phase.
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
	// A warp that asks twice for the same phase would spin; it is blocked
	// instead.
	repeated := open != nil &&
		w.refused == refusal{open, open.phase}
	if open == nil || w.giveUp || !repeated {
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
	// The instruction is executed repeated when the phase completes.
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

// clusterBarrier is the state of barrier.cluster.
type clusterBarrier struct {
	// arrived are the warps that have arrived in this phase.
	arrived map[*warp]bool
	// phase is the number of completed phases.
	phase int
	// gather is what the arrived warps know.
	gather knowledge
	// knows is what the warps of the completed phase knew.
	knows knowledge
}

// clusterArrive is barrier.cluster.arrive.
func clusterArrive(w *warp, in *instr) {
	if w.active != w.live {
		w.reportf(
			DivergentBarrier, firstLane(w.live&^w.active),
			"barrier.cluster.arrive by a part of the warp",
		)
		return
	}
	b := &w.cta.cluster.barrier
	if b.arrived[w] {
		w.reportf(InvalidOperation, -1, "barrier.cluster.arrive twice without a wait between")
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

// tryBarrier completes a phase of barrier.cluster if all live warps have arrived.
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
	// All live warps have arrived: those who wait go on, the others find the
	// phase over when they come to wait.
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

// clusterWait is barrier.cluster.wait.
func clusterWait(w *warp, in *instr) {
	b := &w.cta.cluster.barrier
	switch {
	case b.phase > w.atCluster:
		w.observe(&b.knows)
		w.clock.joinLanes()
		w.onCluster = false
		w.pc++
	case !b.arrived[w]:
		w.reportf(InvalidOperation, -1, "barrier.cluster.wait without an arrive")
		w.pc++
	default:
		w.onCluster = true
		w.block(
			fmt.Sprintf("barrier.cluster: %d warps have arrived", len(b.arrived)), w.pc,
		)
	}
}

// barrier is one of the sixteen named barriers of a CTA.
type barrier struct {
	// expected is the number of threads that take part; 0 while none has arrived.
	expected int
	// whole is set if all threads of the CTA take part.
	whole bool
	// arrived is the number of threads that have arrived.
	arrived int
	// waiting are the warps that the barrier releases.
	waiting []*warp
	// votes is the number of threads of a bar.red whose predicate held, and
	// voters the number of all of them.
	votes  int
	voters int // and all of them
	// results are the warps that are told the result of a bar.red.
	results []voter
	// knows is what the arrived warps know of each other's accesses, and waited is set where
	// one of them has executed griddepcontrol.wait.
	knows  knowledge
	waited bool
}

// arriveBarrier lets the warp arrive at barrier id, in which count threads take
// part (0: all of the CTA). With wait it blocks until all have arrived.
func (w *warp) arriveBarrier(id, count uint32, wait bool) {
	t := w.cta
	switch {
	case id >= uint32(len(t.barriers)):
		w.reportf(InvalidOperation, -1, "barrier %d of 16", id)
		return
	case count%warpSize != 0 ||
		int(count) > len(t.warps)*warpSize:
		w.reportf(
			InvalidOperation, -1,
			"a barrier of %d threads in a CTA of %d: it must be a multiple of 32 and not more than the CTA has",
			count, t.grid.threads,
		)
		return
	case w.active != w.live && w.hold():
		return
	case w.active != w.live:
		w.reportf(
			DivergentBarrier, bits.TrailingZeros32(w.live&^w.active),
			"only %d of the warp's %d lanes arrive",
			bits.OnesCount32(w.active), bits.OnesCount32(w.live),
		)
		return
	}
	b := &t.barriers[id]
	if b.arrived > 0 && !b.whole &&
		count != 0 && int(count) != b.expected {
		w.reportf(
			InvalidOperation, -1,
			"barrier %d for %d threads, others arrived for %d",
			id, count, b.expected,
		)
		return
	}
	b.expected = int(count)
	b.whole = count == 0
	// Each warp counts as 32 threads, whatever the number of its lanes, as on a
	// device.
	b.arrived += warpSize
	b.waited = b.waited || w.waited
	w.publishTo(&b.knows, allLanes)
	w.pc++
	if wait {
		b.waiting = append(b.waiting, w)
		w.block(barrierNames[id], w.pc-1)
	}
	t.tryBarrier(b)
}

// barrierNames are the texts of waiting for each barrier.
var barrierNames = func() (names [16]string) {
	for id := range names {
		names[id] = fmt.Sprintf("barrier %d", id)
	}
	return names
}()

// tryBarrier releases the warps at a barrier if all its threads have arrived.
func (t *cta) tryBarrier(b *barrier) {
	need := b.expected
	if b.whole {
		need = t.live * warpSize
	}
	if b.arrived == 0 || b.arrived < need {
		return
	}
	t.work.counters.Barriers++
	// The barrier is reset before the warps run, since they may arrive at it
	// again.
	open := *b
	*b = barrier{}
	for _, v := range open.results {
		v.tell(open.votes, open.voters)
	}
	for _, w := range open.waiting {
		w.observe(&open.knows)
		w.clock.joinLanes()
		w.waited = w.waited || open.waited
		w.wake()
	}
}

// voter is a warp that waits for the result of a bar.red.
type voter struct {
	w  *warp
	in *instr
	// lanes are those that executed the instruction.
	lanes uint32
}

// tell stores the result of a bar.red in the active lanes of a warp.
func (v voter) tell(votes, voters int) {
	result := uint64(votes)
	switch {
	case v.in.mods.code.Has(ptx.ModAnd):
		result = boolBit(votes == voters)
	case v.in.mods.code.Has(ptx.ModOr):
		result = boolBit(votes > 0)
	}
	for m := v.lanes; m != 0; m &= m - 1 {
		v.w.put(v.in.list[0], firstLane(m), result)
	}
}

// barSync is bar.sync and barrier.sync: a is the number of the barrier, b the
// number of threads.
func barSync(w *warp, in *instr) {
	w.arriveBarrier(
		w.r32[in.a][w.first()],
		w.r32[in.b][w.first()],
		true,
	)
}

// barArrive is bar.arrive: the warp does not wait.
func barArrive(w *warp, in *instr) {
	w.arriveBarrier(
		w.r32[in.a][w.first()],
		w.r32[in.b][w.first()],
		false,
	)
}

// barRed is bar.red: the warps wait for the and, or, or count of a predicate over
// all threads.
func barRed(w *warp, in *instr) {
	if w.active != w.live && w.hold() {
		return
	}
	id := w.r32[in.a][w.first()]
	p := (w.pred[in.list[1].index] ^ uint32(in.at.offset)) & w.active
	if id < uint32(len(w.cta.barriers)) {
		b := &w.cta.barriers[id]
		b.votes += bits.OnesCount32(p)
		b.voters += bits.OnesCount32(w.active)
		b.results = append(
			b.results, voter{w, in, w.active},
		)
	}
	w.arriveBarrier(id, w.r32[in.b][w.first()], true)
}
