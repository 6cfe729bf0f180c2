package gpu

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/kernels/ptx"
	"github.com/tilewright/tilewright/symtile"
)

// A ring is a loop of products by warpgroups, or one of them that has no loop.
type ring struct {
	e     *emitter
	dots  []*groupDot
	tiles []*boxTile
	part  portion
	total int64 // iterations of this block
	slots int64
	bytes int64 // of a slot
	at    int64
	full0 int64 // where the barriers are
	lag   int64 // iterations that are still multiplied when the next begins

	special           bool   // a producer fills the slots
	blocks            int64  // of the cluster
	outside           *scope // of the loop
	data, full, empty operand
	leads             operand
	rank              operand // of the block in the cluster
	maps              []operand
}

// grouped emits products that one loop over dims accumulates, by warpgroups; it
// says whether it did.
func (e *emitter) grouped(closers, dims []int, body []symtile.Step) bool {
	r := e.ringOf(closers, dims, body)
	if r == nil {
		return false
	}
	r.schedule()
	r.layOut()
	r.emit()
	if e.knobs.epilogue > 0 && !e.walks() {
		e.release(r.at, r.bytes*r.slots)
		e.barrier() // all are done with the ring
	}
	r.part.conclude(r.closers())
	return true
}

// ringOf is the ring of products that one loop accumulates; nil where they are
// not for warpgroups.
func (e *emitter) ringOf(closers, dims []int, body []symtile.Step) *ring {
	if !e.sheet.Warpgroups() || e.threads%groupThreads != 0 || e.nested > 0 {
		return nil
	}
	r := &ring{e: e, part: e.portion(dims), blocks: int64(e.knobs.cluster)}
	r.total = r.part.count
	for _, n := range closers {
		if e.p.Ops[n].Code != "dot" {
			return nil
		}
		d := e.newGroupDot(n)
		if d == nil {
			return nil
		}
		r.dots = append(r.dots, d)
		e.sums += d.rows / groupRows * d.cols / 2
	}
	for _, s := range body {
		if s.Loop != nil || e.hints.staged[s.Op] || len(e.p.Ops[s.Op].Needs) > 0 {
			return nil
		}
	}
	return r
}

func (r *ring) closers() []closer {
	all := make([]closer, len(r.dots))
	for k, d := range r.dots {
		all[k] = d
	}
	return all
}

// schedule settles who fills the slots. A cluster, and blocks that go from tile
// to tile, need a producer: it runs ahead of what the warpgroups are at.
func (r *ring) schedule() {
	e := r.e
	ahead := r.blocks > 1 || e.walks()
	r.slots = int64(e.knobs.stages)
	if !e.walks() {
		r.slots = min(r.slots, r.total)
	}
	r.lag = min(1, r.slots-1)
	r.special = e.knobs.producer > 0 && (r.total > r.slots || ahead) && e.asm.waits == 0 && int(e.threads)+e.knobs.producer*WarpThreads <= e.sheet.BlockThreads
	if ahead && (!r.special || e.extra > 0) {
		e.refuse("cluster=%d and persistent=%d need a producer, and a product that is the first thing a block does, the only one", e.knobs.cluster, e.knobs.persistent)
	}
}

func (r *ring) layOut() {
	e := r.e
	known := map[string]*boxTile{}
	for _, d := range r.dots {
		for _, b := range []*boxTile{d.a, d.b} {
			if known[b.key()] == nil {
				known[b.key()] = b
				r.tiles = append(r.tiles, b)
			}
		}
	}
	r.share()
	for _, b := range r.tiles {
		b.at, b.number = r.bytes, e.mapNumber(b)
		r.bytes += (b.bytes + atom - 1) / atom * atom
	}
	for _, d := range r.dots {
		for _, b := range []*boxTile{d.a, d.b} {
			b.at = known[b.key()].at
		}
	}
	e.shared = (e.shared + atom - 1) / atom * atom
	r.at = e.room(r.bytes * r.slots)
	r.full0 = e.room(16 * r.slots)
}

// share finds the tiles that all blocks of the cluster read, those that lie at
// the same place for neighbouring blocks. Each block brings a part of their rows
// to all.
func (r *ring) share() {
	e := r.e
	if r.blocks == 1 {
		return
	}
	along, run := e.neighbours()
	if run%r.blocks != 0 {
		e.refuse("cluster=%d does not divide the %d neighbouring tiles", r.blocks, run)
	}
	common := 0
	for _, b := range r.tiles {
		if dependsOn(e.p.Ops[b.op], e.p.Space.Dims[along].Tid) {
			continue
		}
		if b.rows()%(r.blocks*swizzleRows) != 0 {
			e.refuse("cluster=%d: the %d rows of %s are not shared out evenly", r.blocks, b.rows(), b.name)
		}
		b.parts = r.blocks
		common++
	}
	if common == 0 {
		e.refuse("cluster=%d: its blocks have no operand in common", r.blocks)
	}
}

// swizzleRows is the rows after which a swizzle repeats.
const swizzleRows = 8

// dependsOn says whether the place of an op's tile changes with a variable.
func dependsOn(op symtile.Op, v symtile.Expr) bool {
	for _, d := range op.Tile {
		if slices.Contains(d.Offset.Vars(), v) {
			return true
		}
	}
	return false
}

// emit emits the ring. With a producer a warp of its own does nothing but fill
// slots that the warpgroups give back; without, thread 0 fills the slot before
// when all have passed it.
func (r *ring) emit() {
	e, a := r.e, r.e.asm
	for k := range e.maps {
		p := a.get(kindB64, "mov.b64", operand(fmt.Sprintf("map%d", k)))
		r.maps = append(r.maps, a.get(kindB64, "cvta.param.u64", p))
	}
	r.outside = a.scope
	r.data, r.full, r.empty = a.get(kindB32, "add.s32", e.smem, r.at), a.get(kindB32, "add.s32", e.smem, r.full0), a.get(kindB32, "add.s32", e.smem, r.full0+8*r.slots)
	r.leads = a.get(kindPred, "setp.eq.s32", e.num(e.thread), 0)
	r.barriers()
	if r.special {
		e.extra = e.knobs.producer * WarpThreads
		r.produce()
	} else {
		r.prefill()
	}
	r.consume()
	if r.blocks > 1 && !e.walks() {
		e.leaveCluster()
	}
}

// barriers initialises a slot's two: full, when its bytes have come, and empty,
// when every warp of all blocks that it is filled for has read them.
func (r *ring) barriers() {
	e, a := r.e, r.e.asm
	a.note("barriers of %d slots of %d bytes", r.slots, r.bytes)
	for s := range r.slots {
		a.when(r.leads, "mbarrier.init.shared.b64", address{r.full, 8 * s}, 1)
		if r.special {
			a.when(r.leads, "mbarrier.init.shared.b64", address{r.empty, 8 * s}, r.blocks*e.threads/WarpThreads)
		}
	}
	a.when(r.leads, "fence.mbarrier_init.release.cluster")
	a.when(r.leads, "fence.proxy.async")
	if r.blocks == 1 {
		e.barrier()
		return
	}
	a.note("no block signals another's barriers before they are there")
	a.do("barrier.cluster.arrive.release.aligned")
	a.do("barrier.cluster.wait.acquire.aligned")
	r.rank = a.get(kindB32, "and.b32", a.get(kindB32, "mov.u32", blockNumber), r.blocks-1)
}

// leaveCluster says that this thread is done with other blocks' shared memory.
// The kernel ends when all blocks have said so.
func (e *emitter) leaveCluster() {
	e.asm.do("barrier.cluster.arrive.release.aligned")
	e.left = true
}

// prefill fills the slots of the first iterations.
func (r *ring) prefill() {
	a := r.e.asm
	follower := a.label("FOLLOW")
	a.branch(a.not(r.leads), follower)
	a.enter()
	for s := range min(r.slots-r.lag, r.total) {
		r.copy(a.in(kindB32, integer(s)), address{r.data, s * r.bytes}, address{r.full, 8 * s})
	}
	a.leave()
	a.place(follower)
}

// produce is all that the first thread after the warpgroups does; those beside
// it do nothing.
func (r *ring) produce() {
	e, a := r.e, r.e.asm
	consumer := a.label("CONSUMER")
	a.branch(a.get(kindPred, "setp.lt.s32", e.num(e.thread), e.threads), consumer)
	a.note("the producer: %d iterations", r.total)
	a.enter()
	inc := r.registers()
	if inc > 0 {
		a.code.Entry.MinNCTAPerSM = 1 // else the assembler does not know what all start with
		a.do("setmaxnreg.dec.sync.aligned.u32", producerRegisters)
	}
	a.when(a.get(kindPred, "setp.gt.s32", e.num(e.thread), e.threads), "ret")
	c := r.cursor(r.empty, 0, 1) // the first time slots are empty
	to, signal := a.fresh(kindB32), a.fresh(kindB32)
	a.do("mov.b32", to, r.data)
	a.do("mov.b32", signal, r.full)
	w := e.beginWalk()
	r.outside = a.scope
	r.fill(c, to, signal)
	e.endWalk(w)
	a.do("ret")
	a.leave()
	a.place(consumer)
	if inc > 0 {
		a.do("setmaxnreg.inc.sync.aligned.u32", inc)
	}
}

// fill fills slots with a tile's iterations, as they become empty.
func (r *ring) fill(c cursor, to, signal operand) {
	a := r.e.asm
	again, wait := a.label("PRODUCE"), a.label("EMPTY")
	counter, more := a.fresh(kindB32), a.fresh(kindPred)
	a.do("mov.b32", counter, 0)
	a.place(again)
	a.place(wait)
	r.wait(c, wait)
	r.copy(counter, address{to, 0}, address{signal, 0})
	a.do("add.s32", to, to, r.bytes)
	a.do("add.s32", signal, signal, 8)
	wrap := r.advance(c)
	a.when(wrap, "mov.b32", to, r.data)
	a.when(wrap, "mov.b32", signal, r.full)
	a.do("add.s32", counter, counter, 1)
	a.do("setp.lt.s32", more, counter, r.total)
	a.branch(more, again)
}

// producerRegisters are what a thread of a producer warpgroup keeps.
const producerRegisters = 40

// registers is how many registers a thread of the other warpgroups has when those of
// the producer's are given to them; 0 where the producer is no warpgroup, or
// there is nothing to gain. All start with the same part of the block's
// registers; counts are multiples of 8 up to 256 (PTX ISA, setmaxnreg).
func (r *ring) registers() int {
	e := r.e
	if e.extra != groupThreads {
		return 0
	}
	groups := int(e.threads) / groupThreads
	first := e.sheet.BlockRegisters / (groups + 1) / groupThreads / 8 * 8
	if first >= e.sheet.ThreadRegisters || first <= producerRegisters {
		return 0
	}
	return min(first+(first-producerRegisters)/groups, e.sheet.ThreadRegisters) / 8 * 8
}

// A cursor is a place in the ring: the barrier of the slot and the parity of the
// phase that is waited for.
type cursor struct{ first, at, parity operand }

func (r *ring) cursor(first operand, slot, parity int64) cursor {
	a := r.e.asm
	c := cursor{first, a.fresh(kindB32), a.fresh(kindB32)}
	a.do("add.s32", c.at, first, 8*slot)
	a.do("mov.b32", c.parity, parity)
	return c
}

// wait tries again from a label on until the phase is over. Barriers that other
// blocks arrive at order what these did.
func (r *ring) wait(c cursor, again operand) {
	a := r.e.asm
	done := a.fresh(kindPred)
	opcode := "mbarrier.try_wait.parity.shared.b64"
	if r.blocks > 1 {
		opcode = "mbarrier.try_wait.parity.acquire.cluster.shared.b64"
	}
	a.do(opcode, done, address{c.at, 0}, c.parity)
	a.unless(done, "bra", again)
}

// advance moves on to the next slot; after the last the parity changes. The
// result says whether it was the last.
func (r *ring) advance(c cursor) (wrap operand) {
	a := r.e.asm
	wrap = a.fresh(kindPred)
	a.do("add.s32", c.at, c.at, 8)
	a.do("setp.ge.s32", wrap, c.at, a.get(kindB32, "add.s32", c.first, 8*r.slots))
	a.when(wrap, "mov.b32", c.at, c.first)
	a.when(wrap, "xor.b32", c.parity, c.parity, 1)
	return wrap
}

// consume waits for a slot, multiplies what is in it, and gives the slot before
// back.
func (r *ring) consume() {
	e, a := r.e, r.e.asm
	descriptors := r.descriptors(r.data)
	c, offset := r.cursor(r.full, 0, 0), a.fresh(kindB64)
	before, last := r.refill()
	counter, more := a.fresh(kindB32), a.fresh(kindPred)
	a.do("mov.b64", offset, 0)
	e.walk = e.beginWalk()
	for _, d := range r.dots {
		d.begin()
	}
	a.do("mov.b32", counter, 0)
	again, wait := a.label("LOOP"), a.label("FULL")
	a.note("for %d iterations", r.total)
	a.place(again)
	a.place(wait)
	r.wait(c, wait)
	a.do("wgmma.fence.sync.aligned")
	a.enter()
	for k, d := range r.dots {
		d.multiply(descriptors[k], offset)
	}
	a.leave()
	a.do("wgmma.commit_group.sync.aligned")
	a.do("wgmma.wait_group.sync.aligned", r.lag)
	before(counter)
	a.do("add.s64", offset, offset, r.bytes/matrixRow)
	a.when(r.advance(c), "mov.b64", offset, 0)
	a.do("add.s32", counter, counter, 1)
	a.do("setp.lt.s32", more, counter, r.total)
	a.branch(more, again)
	a.do("wgmma.wait_group.sync.aligned", 0)
	last()
}

// refill prepares what is done about the slot of the iteration before (of this
// one, when there is one slot): it is given back to the producer, or filled; and
// what is done after a tile's last.
func (r *ring) refill() (before func(counter operand), last func()) {
	e, a := r.e, r.e.asm
	switch {
	case r.special:
		c := r.cursor(r.empty, (r.slots-r.lag)%r.slots, 0)
		lane := e.num(e.thread.Mod(WarpThreads))
		one := a.get(kindPred, "setp.lt.s32", lane, r.blocks) // of each warp, which waited for its own part
		before = func(counter operand) {
			p := a.fresh(kindPred)
			a.do("setp.ge.and.s32", p, counter, r.lag, one)
			r.giveBack(c, p, lane)
			r.advance(c)
		}
		return before, func() {
			if e.walks() && r.lag > 0 { // the producer is at the next tile
				r.giveBack(c, one, lane)
			}
		}
	case r.total <= r.slots-r.lag:
		return func(operand) {}, func() {}
	}
	signal, to := r.cursor(r.full, (r.slots-r.lag)%r.slots, 0), a.fresh(kindB32)
	next, more := a.fresh(kindB32), a.fresh(kindPred)
	a.do("add.s32", to, r.data, r.bytes*((r.slots-r.lag)%r.slots))
	before = func(counter operand) {
		skip := a.label("NEXT")
		e.barrier()
		a.do("add.s32", next, counter, r.slots-r.lag)
		a.do("setp.ge.s32", more, next, r.total)
		a.branch(more, skip)
		a.branch(a.not(r.leads), skip)
		r.copy(next, address{to, 0}, address{signal.at, 0})
		a.place(skip)
		a.do("add.s32", to, to, r.bytes)
		a.when(r.advance(signal), "mov.b32", to, r.data)
	}
	return before, func() {}
}

// giveBack tells the producers of all blocks that a warp has read a slot: each of
// the first lanes tells that of the block with its number.
func (r *ring) giveBack(c cursor, p, lane operand) {
	a := r.e.asm
	if r.blocks == 1 {
		a.when(p, "mbarrier.arrive.shared.b64", sink, address{c.at, 0})
		return
	}
	there := a.fresh(kindB32)
	a.when(p, "mapa.shared::cluster.u32", there, c.at, lane)
	a.when(p, "mbarrier.arrive.release.cluster.shared::cluster.b64", sink, address{there, 0})
}

// copy has the copy unit fill a slot with the tiles of an iteration.
func (r *ring) copy(iteration operand, to, signal address) {
	e, a := r.e, r.e.asm
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

// boxes copies the chunks of a tile, or of those that the cluster shares this
// block's rows of each, to all blocks.
func (r *ring) boxes(b *boxTile, to, signal address) {
	e, a := r.e, r.e.asm
	op := e.p.Ops[b.op]
	shape := op.Instr.Shape
	size := shape.DType.Size()
	opcode := fmt.Sprintf("cp.async.bulk.tensor.%dd.shared::cluster.global.tile.mbarrier::complete_tx::bytes", shape.Rank())
	var mask []any
	part := b.rows() / b.parts
	if b.parts > 1 {
		opcode += ".multicast::cluster"
		mask = append(mask, a.in(kindB16, integer(int64(1)<<b.parts-1)))
		to.base = a.get(kindB32, "mad.lo.s32", r.rank, part*b.inner*size, to.base)
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
				first = a.get(kindB32, "mad.lo.s32", r.rank, part, first)
			}
			at = append(at, first)
		}
		a.do(opcode, append([]any{to.plus(c * b.chunkBytes(size)), tensorAt{r.maps[b.number], at}, signal}, mask...)...)
	}
}

// A tensorAt is [map, {coordinates}].
type tensorAt struct {
	tensor operand
	at     []operand
}

// tensor is the operand of a tensor copy.
func (a *asm) tensor(x tensorAt) ptx.Operand {
	var at []ptx.Operand
	for _, o := range x.at {
		at = append(at, a.operand(o))
	}
	return ptx.Tensor(a.operand(x.tensor), at...)
}
