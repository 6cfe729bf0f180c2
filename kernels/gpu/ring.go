package gpu

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// A ring is the schedule of products by warpgroups (sm_90a): a producer starts tensor
// copies into slots, consumers multiply (CUTLASS, warp-specialized kernels).
// consumer.go has the code of the other side.

// A ring is a loop of products by warpgroups, or one product without a loop, whose
// operands are loaded by tensor copies into a ring of slots in shared memory. Each
// slot has an mbarrier "full", which counts the bytes that arrive, and, where producer
// warps fill the slots, an mbarrier "empty", which counts the warps that have read it.
type ring struct {
	e *emitter
	// Dots are the products, and tiles their different operands.
	dots  []*groupDot
	tiles []*boxTile
	// Part is the iterations of this block; total is the most of a block, limit the
	// number of this one.
	part  iterationRange
	total int64 // iterations of this block, at most
	limit operand
	// The number of slots and the bytes of each.
	slots int64
	bytes int64
	// At and full0 are the offsets in shared memory of the slots and of the barriers.
	at    int64
	full0 int64
	// Lag is the number of iterations whose products are still running when the next
	// begins.
	lag int64

	// HasProducer is set where producer warps fill the slots; otherwise thread 0 does.
	hasProducer bool
	// Blocks is the number of blocks of the cluster; rank is the number of this one.
	blocks int64
	// Outside is the scope around the loop.
	outside *scope
	// The addresses of slot 0 and of its barriers.
	data, full, empty operand
	// Leader holds for the thread that initialises the barriers.
	leader operand
	rank   operand
	// Maps are the addresses of the tensor maps.
	maps []operand
	// Where they are set, setUp is emitted before the barriers are made known, prologue
	// after that, and consumer instead of consume.
	setUp, prologue, consumer func()
}

// grouped emits the products that one loop over dims accumulates as a ring, and
// reports whether it could.
func (e *emitter) grouped(accumulators, dims []int, body []symtile.Step) bool {
	r := e.ringOf(accumulators, dims, body)
	if r == nil {
		return false
	}
	r.schedule()
	r.layOut()
	r.emit()
	if e.knobs.epilogue > 0 && !e.loopsOverTiles() {
		e.release(r.at, r.bytes*r.slots)
		// The memory of the ring may be used again after this barrier.
		e.barrier()
	}
	e.groupDots = r.dots
	e.conclude(r.part, r.accumulators())
	return true
}

// ringOf is the ring of the products that one loop accumulates; nil where warpgroups
// cannot compute one of them or the loop computes something else, too.
func (e *emitter) ringOf(accumulators, dims []int, body []symtile.Step) *ring {
	if !e.spec.Warpgroups() ||
		e.threads%device.WarpgroupThreads != 0 || e.loopDepth > 0 {
		return nil
	}
	r := &ring{
		e:      e,
		part:   e.iterationRange(dims),
		blocks: int64(e.knobs.cluster),
	}
	r.total = r.part.count
	for _, n := range accumulators {
		switch e.p.Ops[n].Code {
		case hlo.OpDot, hlo.OpReduce:
		default:
			return nil
		}
		d := e.newGroupDot(n)
		if d == nil {
			return nil
		}
		r.dots = append(r.dots, d)
		e.sums += d.sums()
	}
	if len(r.dots) > 1 && r.left() != nil {
		return nil
	}
	for _, s := range body {
		if s.Loop != nil ||
			e.hints.staged[s.Op] ||
			len(e.p.Ops[s.Op].RuntimeArgs) > 0 {
			return nil
		}
	}
	if !e.loopsOverTiles() {
		e.leaveOutGroups(&r.part, accumulators)
	}
	return r
}

// left is an operand that is computed in registers; nil where there is none.
func (r *ring) left() *registerOperand {
	for _, d := range r.dots {
		if d.left != nil {
			return d.left
		}
	}
	return nil
}

// accumulators are the products of the ring.
func (r *ring) accumulators() []accumulator {
	all := make([]accumulator, len(r.dots))
	for k, d := range r.dots {
		all[k] = d
	}
	return all
}

// schedule decides who fills the slots, and rejects plans in which nobody can.
// Clusters and persistent blocks need producer warps, which run ahead of the
// warpgroups.
func (r *ring) schedule() {
	e := r.e
	ahead := r.blocks > 1 || e.loopsOverTiles()
	r.slots = int64(e.knobs.stages)
	if !e.loopsOverTiles() {
		r.slots = min(r.slots, r.part.minCount)
	}
	r.hasProducer = e.knobs.producer > 0 &&
		(r.total > r.slots || ahead) &&
		e.asm.waits == 0 &&
		int(e.threads)*e.knobs.mathGroups()+
			e.knobs.producer*device.WarpThreads <= e.spec.BlockThreads
	// One iteration's products run while the next are issued, if there is a second
	// slot.
	r.lag = min(1, r.slots-1)
	if o := r.left(); slices.ContainsFunc(r.dots, (*groupDot).promotes) ||
		o != nil && o.t.depth == o.t.mma.k && !r.alternates() {
		// The sums of an iteration are read at its end, or the next one writes the
		// registers that its products read.
		r.lag = 0
	}
	if e.knobs.mathGroups() > 1 && e.shared > 0 {
		e.reject("persistent=%d needs a product that is the first thing a block does", e.knobs.persistent)
	}
	if ahead && (!r.hasProducer || e.extra > 0) {
		e.reject(
			"cluster=%d, persistent=%d and streamk=%d need a producer, and a product that is the first thing a block does, the only one",
			e.knobs.cluster, e.knobs.persistent, e.knobs.streamk,
		)
	}
}

// layOut assigns offsets in a slot to the different tiles, and allocates slots and
// barriers.
func (r *ring) layOut() {
	e := r.e
	known := map[string]*boxTile{}
	for _, d := range r.dots {
		for _, b := range d.boxes() {
			if known[b.key()] == nil {
				known[b.key()] = b
				r.tiles = append(r.tiles, b)
			}
		}
	}
	r.share()
	for _, b := range r.tiles {
		b.at, b.number = r.bytes, e.mapNumber(b)
		r.bytes += wholeAtoms(b.bytes)
	}
	for _, d := range r.dots {
		for _, b := range d.boxes() {
			b.at = known[b.key()].at
		}
	}
	// Swizzled tiles begin at multiples of 1024 bytes.
	e.shared = wholeAtoms(e.shared)
	r.at = e.allocateShared(r.bytes * r.slots)
	r.full0 = e.allocateShared(16 * r.slots)
	for _, d := range r.dots {
		if d.right != nil {
			d.right.allocate(r)
		}
	}
	if e.knobs.epilogue == byBoxes {
		e.shared = wholeAtoms(e.shared)
	}
	e.common = e.shared
}

// share finds the tiles that all blocks of the cluster read, because they do not
// depend on the dimension along which blocks are neighbours. Each block loads a part
// of the rows of such a tile for all blocks (multicast).
func (r *ring) share() {
	e := r.e
	if r.blocks == 1 {
		return
	}
	// Blocks of a cluster have consecutive numbers, so they are neighbours along this
	// dimension.
	along, run := e.neighbours()
	if run%r.blocks != 0 {
		e.reject("cluster=%d does not divide the %d neighbouring tiles", r.blocks, run)
	}
	common := 0
	for _, b := range r.tiles {
		if dependsOn(
			e.p.Ops[b.op],
			e.p.Space.Dims[along].Tid,
		) {
			continue
		}
		if b.rows()%(r.blocks*swizzleRows) != 0 {
			e.reject(
				"cluster=%d: the %d rows of %s are not shared out evenly", r.blocks, b.rows(), b.name,
			)
		}
		b.parts = r.blocks
		common++
	}
	if common == 0 {
		e.reject("cluster=%d: its blocks have no operand in common", r.blocks)
	}
}

// swizzleRows is the period of the swizzle of tensor copies, in rows.
const swizzleRows = 8

// emit emits the ring. With producer warps, one of their threads fills slots that the
// warpgroups have released; otherwise thread 0 fills the slot of the previous
// iteration after a barrier of the block.
func (r *ring) emit() {
	e := r.e
	a := r.e.asm
	// Thread 0 initialises the barriers and fetches the tensor maps.
	r.leader = a.get(
		kindPred, "setp.eq.s32", e.tid, 0,
	)
	for k := range e.maps {
		p := a.get(
			kindB64, "mov.b64", operand(mapName(k)),
		)
		r.maps = append(
			r.maps, a.get(kindB64, "cvta.param.u64", p),
		)
		a.when(r.leader, "prefetch.tensormap", address{
			r.maps[k], 0,
		})
	}
	// The producer's code is emitted in this scope, too.
	r.outside = a.scope
	if !r.part.streamed {
		r.limit = e.iterations(r.part)
	}
	r.data, r.full, r.empty = a.get(
		kindB32, "add.s32", e.smem, r.at,
	),
		a.get(kindB32, "add.s32", e.smem, r.full0),
		a.get(
			kindB32, "add.s32", e.smem,
			r.full0+8*r.slots,
		)
	if r.setUp != nil {
		r.setUp()
	}
	r.barriers()
	if r.prologue != nil {
		r.prologue()
	}
	if r.hasProducer {
		e.extra = e.knobs.producer*device.WarpThreads +
			int(e.threads)*(e.knobs.mathGroups()-1)
		r.produce()
	} else {
		r.prefill()
	}
	if r.consumer != nil {
		r.consumer()
		return
	}
	r.consume()
	if r.blocks > 1 && !e.loopsOverTiles() {
		e.leaveCluster()
	}
}

// barriers initialises the barriers of each slot: "full" expects the bytes of the
// tiles, and "empty" the arrival of every warp of all blocks that the slot is filled
// for.
func (r *ring) barriers() {
	e := r.e
	a := r.e.asm
	a.note("barriers of %d slots of %d bytes", r.slots, r.bytes)
	for s := range r.slots {
		a.when(
			r.leader, "mbarrier.init.shared.b64",
			address{r.full, 8 * s}, 1,
		)
		if r.hasProducer {
			a.when(
				r.leader, "mbarrier.init.shared.b64",
				address{r.empty, 8 * s},
				r.blocks*e.threads/device.WarpThreads,
			)
		}
	}
	// The barriers have to be visible to the copy unit and to other blocks before they
	// are used.
	a.when(r.leader, "fence.mbarrier_init.release.cluster")
	a.when(r.leader, "fence.proxy.async.shared::cta")
	if r.blocks == 1 {
		e.barrier()
		return
	}
	a.note("no block signals another's barriers before they are there")
	// What is released is the initialisation, by the fence above.
	a.do("barrier.cluster.arrive.relaxed.aligned")
	a.do("barrier.cluster.wait.acquire.aligned")
	r.rank = a.get(
		kindB32, "and.b32",
		a.get(kindB32, "mov.u32", blockNumber),
		r.blocks-1,
	)
}

// leaveCluster arrives at the barrier at which the cluster ends: this thread does not
// access the shared memory of other blocks any more, but its own must stay until all
// threads have arrived.
func (e *emitter) leaveCluster() {
	e.asm.do("barrier.cluster.arrive.release.aligned")
	e.exitArrived = true
}

// prefill fills the slots of the first iterations.
func (r *ring) prefill() {
	a := r.e.asm
	// The slots that lag behind are filled in the loop, when their products are
	// complete.
	follower := a.label("FOLLOW")
	a.branch(a.not(r.leader), follower)
	a.enter()
	for s := range r.slots - r.lag {
		r.copy(
			a.in(kindB32, integer(s)),
			address{r.data, s * r.bytes},
			address{r.full, 8 * s},
		)
	}
	a.leave()
	a.place(follower)
}

// produce emits the code of the producer warps: the first thread fills slots, and the
// others exit.
func (r *ring) produce() {
	e := r.e
	a := r.e.asm
	consumer := a.label("CONSUMER")
	consumers := e.threads * int64(e.knobs.mathGroups())
	// The branch is on a value that the assembler knows to be the same in all lanes:
	// otherwise it keeps the consumers' descriptors in registers of threads (R2UR).
	warp := a.get(
		kindB32, "shfl.sync.idx.b32",
		a.get(kindB32, "shr.u32", e.tid, bits.TrailingZeros64(device.WarpThreads)),
		0, device.WarpThreads-1, -1,
	)
	a.branch(
		a.get(kindPred, "setp.lt.s32", warp, consumers/device.WarpThreads), consumer,
	)
	a.note("the producer: %s", r.part.note())
	a.enter()
	inc := r.registers()
	if inc > 0 {
		// With one block an SM the assembler knows the registers that all threads start
		// with.
		a.code.Entry.MinNCTAPerSM = 1
		a.do("setmaxnreg.dec.sync.aligned.u32", device.ProducerRegisters)
	}
	// The other threads of the producer warps exit after they have given up registers.
	a.when(
		a.get(kindPred, "setp.gt.s32", e.tid, consumers), "ret",
	)
	// At first all slots are empty, which is the parity before phase 0.
	c := r.cursor(1)
	to := a.fresh(kindB32)
	a.do("mov.b32", to, r.data)
	w := e.beginTileLoop(nil)
	r.enterPiece(w)
	r.outside = a.scope
	r.fill(c, to)
	e.endTileLoop(w)
	a.do("ret")
	a.leave()
	a.place(consumer)
	if inc > 0 {
		a.do("setmaxnreg.inc.sync.aligned.u32", inc)
	}
}

// fill emits the loop that loads the iterations of a tile into slots as they become
// empty.
func (r *ring) fill(c cursor, to operand) {
	a := r.e.asm
	again := a.label("PRODUCE")
	counter := a.fresh(kindB32)
	more := a.fresh(kindPred)
	a.do("mov.b32", counter, 0)
	a.place(again)
	// The slot is free; the copies signal its barrier "full".
	r.wait(c, r.isEmpty(c.at), "EMPTY")
	r.copy(
		counter, address{to, 0}, r.isFull(c.at),
	)
	a.do("add.s32", to, to, r.bytes)
	a.when(r.advance(c), "mov.b32", to, r.data)
	a.do("add.s32", counter, counter, 1)
	a.do("setp.lt.s32", more, counter, r.limit)
	a.branch(more, again)
}

// threads is the number of threads of the block, in whole warpgroups.
func (r *ring) threads() int64 {
	k := r.e.knobs
	all := r.e.threads * int64(k.mathGroups())
	if r.hasProducer {
		all += int64(k.producer) * device.WarpThreads
	}
	return index.CeilDiv(all, device.WarpgroupThreads) * device.WarpgroupThreads
}

// registers is the number of registers of a consumer thread after producer threads
// have given theirs up; 0 where nothing is given.
func (r *ring) registers() int {
	k := r.e.knobs
	return r.e.spec.ConsumerRegisters(
		int(r.e.threads)*k.mathGroups()/device.WarpgroupThreads,
		k.producer*device.WarpThreads,
	)
}

// copy starts the tensor copies of one iteration into a slot.
func (r *ring) copy(iteration operand, to, signal address) {
	e := r.e
	a := r.e.asm
	// Tile ids have other values than in the consumers' loop, so their scope is not
	// used.
	inside := a.scope
	a.scope = newScope(r.outside)
	defer func() { a.scope = inside }()
	e.atIteration(r.part, iteration)
	bytes := int64(0)
	for _, b := range r.tiles {
		bytes += b.bytes
	}
	a.do("mbarrier.arrive.expect_tx.shared.b64", sink, signal, bytes)
	for _, b := range r.tiles {
		r.boxes(b, to.plus(b.at), signal)
	}
}

// boxes copies the chunks of a tile or, where the blocks of a cluster share it, this
// block's rows of each chunk to all blocks.
func (r *ring) boxes(b *boxTile, to, signal address) {
	e := r.e
	a := r.e.asm
	op := e.p.Ops[b.op]
	shape := op.Instr.Shape
	size := shape.DType.Size()
	opcode := fmt.Sprintf("cp.async.bulk.tensor.%dd.shared::cluster.global.tile.mbarrier::complete_tx::bytes", shape.Rank())
	var last []any
	part := b.rows() / b.parts
	if b.parts > 1 {
		opcode += ".multicast::cluster"
		last = append(
			last,
			a.in(kindB16, integer(int64(1)<<b.parts-1)),
		)
		to.base = a.get(
			kindB32, "mad.lo.s32", r.rank,
			part*b.inner*size, to.base,
		)
	}
	once := e.readOnce(int(op.Instr.Attrs.Param))
	if hint := e.passing("", once); hint != "" {
		opcode += string(hint)
		last = append(last, e.policy)
	}
	for c := range b.chunks() {
		var at []operand
		for k, d := range slices.Backward(majorToMinor(shape)) {
			x := op.Tile[d].Offset
			if k == shape.Rank()-1 {
				x = x.AddConst(c * b.inner)
			}
			first := a.in(kindB32, e.num(x))
			if b.parts > 1 && d == b.slow() {
				first = a.get(
					kindB32, "mad.lo.s32", r.rank, part, first,
				)
			}
			at = append(at, first)
		}
		a.do(
			opcode,
			append([]any{
				to.plus(c * b.chunkBytes(size)),
				tensorAt{r.maps[b.number], at},
				signal,
			}, last...)...,
		)
	}
}

// A cursor is a position in the ring: the address of the slot's barrier "full", and
// the parity of the phase to wait for. The barriers "empty" follow those for "full".
type cursor struct{ at, parity operand }

// cursor is a new cursor at slot 0.
func (r *ring) cursor(parity int64) cursor {
	a := r.e.asm
	c := cursor{
		a.fresh(kindB32), a.fresh(kindB32),
	}
	a.do("mov.b32", c.at, r.full)
	a.do("mov.b32", c.parity, parity)
	return c
}

// isFull is the barrier "full" of the slot of a cursor.
func (r *ring) isFull(at operand) address { return address{at, 0} }

// isEmpty is the barrier "empty" of the slot of a cursor.
func (r *ring) isEmpty(at operand) address {
	return address{at, 8 * r.slots}
}

// wait repeats try_wait until the phase of a barrier has completed. It orders accesses
// of this block only, in clusters too, as CUTLASS' ClusterBarrier does: what other blocks
// signal is that wgmma has read a slot and that tensor copies have filled it, which
// wgmma.wait_group and complete_tx order. With .acquire.cluster ptxas invalidates the L1
// cache in each iteration.
func (r *ring) wait(c cursor, barrier address, name string) {
	a := r.e.asm
	again := a.label(name)
	done := a.fresh(kindPred)
	a.place(again)
	a.do("mbarrier.try_wait.parity.shared.b64", done, barrier, c.parity)
	a.unless(done, "bra", again)
}

// advance moves a cursor to the next slot; after the last slot the parity changes.
// wrap holds after the last slot.
func (r *ring) advance(c cursor) (wrap operand) {
	a := r.e.asm
	wrap = a.fresh(kindPred)
	a.do("add.s32", c.at, c.at, 8)
	// The barriers "empty" begin where those for "full" end.
	a.do("setp.ge.s32", wrap, c.at, r.empty)
	a.when(wrap, "mov.b32", c.at, r.full)
	a.when(
		wrap, "xor.b32", c.parity, c.parity, 1,
	)
	return wrap
}

// Named barriers of a block with two math groups: groupBarrier + g synchronises group
// g, and at turnBarrier + g group g waits for its turn to multiply.
const (
	groupBarrier = 1
	turnBarrier  = 3
)

// newMathGroup identifies the math group of the thread; nil where a block has one
// group. Shared memory other than the ring is separate for each group.
func (e *emitter) newMathGroup() *mathGroup {
	if e.knobs.mathGroups() == 1 {
		return nil
	}
	a := e.asm
	t := &mathGroup{private: e.hints.groupBytes}
	// The shuffle makes the number uniform for the assembler.
	t.number = a.get(
		kindB32, "shfl.sync.idx.b32",
		a.get(kindB32, "shr.u32", e.tid, bits.TrailingZeros64(uint64(e.threads))),
		0, device.WarpThreads-1, -1,
	)
	t.barrier = a.get(
		kindB32, "add.s32", t.number, groupBarrier,
	)
	t.turn = a.get(
		kindB32, "add.s32", t.number, turnBarrier,
	)
	t.nextTurn = a.get(
		kindB32, "sub.s32",
		a.in(kindB32, integer(turnBarrier+1)),
		t.number,
	)
	e.smem = a.get(
		kindB32, "mad.lo.s32", t.number, t.private, e.smem,
	)
	a.note("the first turn is that of team 0")
	a.when(
		a.get(kindPred, "setp.eq.s32", t.number, 1),
		"bar.arrive", t.nextTurn, 2*e.threads,
	)
	return t
}

// sizeMathGroups finds the shared memory that a math group needs for itself, and
// allocates it for both groups. If it differs from the hint the kernel is emitted
// again.
func (e *emitter) sizeMathGroups() {
	if e.mathGroup == nil {
		return
	}
	own := e.shared - e.common
	// Boxes of tensor copies begin at multiples of 1024 bytes.
	if len(e.boxed) > 0 {
		own = wholeAtoms(own)
	}
	own = (own + maxVectorBytes - 1) /
		maxVectorBytes * maxVectorBytes
	e.hints.changed = e.hints.changed ||
		own != e.hints.groupBytes
	e.hints.groupBytes = own
	e.shared = e.common + int64(e.knobs.mathGroups())*own
}

// startOf moves a cursor, and the offset of its slot, to the slot of the group's first
// tile: that of iteration 0, or of iteration total for the second group.
func (r *ring) startOf(c cursor, offset operand) {
	t := r.e.mathGroup
	a := r.e.asm
	if t == nil {
		return
	}
	slot := r.total % r.slots
	wraps := r.total / r.slots
	if slot > 0 {
		a.do(
			"mad.lo.s32", c.at, t.number, 8*slot, c.at,
		)
		a.do(
			"mad.lo.s32", offset, t.number, slot*r.bytes/matrixRow,
			offset,
		)
	}
	if wraps%2 > 0 {
		a.do("mov.b32", c.parity, t.number)
	}
}

// takeTurn waits until the other group has issued all products of its tile.
func (r *ring) takeTurn() {
	if t, e := r.e.mathGroup, r.e; t != nil {
		e.asm.do("bar.sync", t.turn, 2*e.threads)
		// This barrier does not order results in shared memory.
		e.tileLoop.waits = e.asm.waits
	}
}

// passTurn lets the other group issue products, if there is another tile. The barrier is
// not .aligned: ptxas serialises the products before an aligned one (C7514).
func (r *ring) passTurn() {
	e := r.e
	a := r.e.asm
	if e.mathGroup == nil {
		return
	}
	p := a.fresh(kindPred)
	// The other group has a next tile only if its number is below the number of tiles.
	next := a.fresh(kindB32)
	a.do(
		"add.s32", next, e.tileLoop.tile,
		a.get(kindB32, "mov.u32", gridSize),
	)
	a.do("setp.lt.s32", p, next, e.p.Programs())
	a.when(
		p, "barrier.arrive", e.mathGroup.nextTurn, 2*e.threads,
	)
}

// skip moves a cursor past the slots of the other group's tile.
func (r *ring) skip(c cursor, offset operand) {
	a := r.e.asm
	if r.e.mathGroup == nil {
		return
	}
	slot := r.total % r.slots
	wraps := r.total / r.slots
	if slot > 0 {
		p := a.fresh(kindPred)
		a.do("add.s32", c.at, c.at, 8*slot)
		a.do(
			"add.s32", offset, offset, slot*r.bytes/matrixRow,
		)
		a.do("setp.ge.s32", p, c.at, r.empty)
		a.when(p, "sub.s32", c.at, c.at, 8*r.slots)
		a.when(
			p, "sub.s32", offset, offset,
			r.slots*r.bytes/matrixRow,
		)
		a.when(p, "xor.b32", c.parity, c.parity, 1)
	}
	if wraps%2 > 0 {
		a.do("xor.b32", c.parity, c.parity, 1)
	}
}
