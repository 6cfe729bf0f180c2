package gpu

import (
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile/index"
)

// consume emits the loop of the warpgroups: they wait for a slot, begin to multiply
// what is in it, and release the slot of the previous iteration when its products are
// complete.
func (r *ring) consume() {
	e := r.e
	a := r.e.asm
	descriptors := r.descriptors()
	c, offset := r.start()
	e.mathGroup = e.newMathGroup()
	loop, last := r.loop(c, offset, descriptors)
	r.startOf(c, offset)
	for _, d := range r.dots {
		if d.right != nil {
			d.right.begin()
		}
	}
	// The scale operand of wgmma, which is the same for all products.
	a.in(kindPred, yes)
	e.tileLoop = e.beginTileLoop(e.mathGroup)
	r.enterPiece(e.tileLoop)
	for _, d := range r.dots {
		d.begin()
	}
	if o := r.left(); o != nil {
		o.prepare(r)
	}
	loop()
	r.passTurn()
	if r.lag > 0 || r.left() != nil { // else each iteration has waited for its own
		a.do("wgmma.wait_group.sync.aligned", 0)
	}
	last()
	r.skip(c, offset)
}

// A slot is a place in the ring that an iteration multiplies: its barrier "full", the parity
// of the phase to wait for, and how far its tiles are from those of slot 0, in bytes and in
// units of 16 bytes: a number and what is in a register, or "0".
type slot struct {
	full   address
	parity operand
	bytes  int64
	offset operand
}

// start is a cursor at slot 0 and the offset of its tiles; of an unrolled loop it has the parity
// only.
func (r *ring) start() (c cursor, offset operand) {
	a := r.e.asm
	if r.unrolled() {
		c.parity = a.fresh(kindB32)
		a.do("mov.b32", c.parity, 0)
		return c, ""
	}
	c = r.cursor(0)
	offset = a.fresh(kindB32)
	a.do("mov.b32", offset, 0)
	return c, offset
}

// memoryOf is where the tiles of a slot are.
func (r *ring) memoryOf(s slot) memory {
	base := r.data
	if s.offset != "0" {
		base = r.e.asm.get(
			kindB32, "mad.lo.s32", s.offset, matrixRow, base,
		)
	}
	return memory{shared, base, s.bytes}
}

// mostUnrolled bounds the wgmma of an unrolled loop, of about 10 instructions each.
const mostUnrolled = 64

// unrolled reports whether the iterations of all slots are emitted one after the other, so that
// the places of slots are numbers: where every tile begins at slot 0 and producer warps fill
// the slots.
func (r *ring) unrolled() bool {
	products := int64(0)
	for _, d := range r.dots {
		if d.promotes() || d.left != nil && !d.left.plain {
			return false
		}
		products += d.rows / groupRows * d.depth / d.mma.k
	}
	whole := r.part.count%r.slots == 0
	switch o := r.left(); {
	case o != nil && o.t.rows > groupRows:
		// Of two fragments of different rows behind a loop, or without one, ptxas 12.9 says
		// that it has to separate the products (C7519).
		whole = whole && r.part.count > r.slots
	case !r.e.loopsOverTiles():
		whole = true
	}
	return r.hasProducer && !r.part.streamed && whole &&
		r.part.minCount == r.part.count &&
		products*r.slots <= mostUnrolled
}

// loop returns code of the loop over the iterations of a tile, and what is emitted after the
// products of the last one. Offset is that of the cursor's slot.
func (r *ring) loop(
	c cursor, offset operand, descriptors [][2]descriptor,
) (loop, last func()) {
	a := r.e.asm
	if r.unrolled() {
		return r.turns(c, descriptors)
	}
	before, last := r.refill(c)
	return func() {
		r.repeat(1, r.limit, func(counter operand) {
			for _, d := range r.dots {
				d.loadScales(r, counter)
			}
			r.multiply(slot{
				r.isFull(c.at), c.parity, 0, offset,
			}, descriptors, counter)
			r.complete()
			before(counter)
			for _, d := range r.dots {
				d.promote()
			}
			a.do("add.s32", offset, offset, r.bytes/matrixRow)
			a.when(r.advance(c), "mov.b32", offset, 0)
		})
	}, last
}

// repeat emits a loop until the number of iterations is a limit, of which body emits step.
func (r *ring) repeat(step int64, limit operand, body func(counter operand)) {
	a := r.e.asm
	if r.unrolled() && limit == integer(step) {
		r.takeTurn()
		a.note("%s", r.part.note())
		body("0")
		return
	}
	counter := a.fresh(kindB32)
	more := a.fresh(kindPred)
	a.do("mov.b32", counter, 0)
	again := a.label("LOOP")
	r.takeTurn()
	a.note("%s", r.part.note())
	a.place(again)
	body(counter)
	a.do("add.s32", counter, counter, step)
	a.do("setp.lt.s32", more, counter, limit)
	a.branch(more, again)
}

// turns is loop with the iterations of all slots one after the other, and those that are left
// of the last turn behind it, after which no slot is filled.
func (r *ring) turns(
	c cursor, descriptors [][2]descriptor,
) (loop, last func()) {
	one, tell := r.release()
	left := r.part.count % r.slots
	loop = func() {
		whole := integer(r.part.count - left)
		r.repeat(r.slots, whole, func(counter operand) {
			for n := range r.slots {
				r.inSlot(n, c.parity, descriptors)
				r.releaseBefore(n, counter, one, tell)
			}
			r.e.asm.do("xor.b32", c.parity, c.parity, 1)
		})
		for n := range left {
			r.inSlot(n, c.parity, descriptors)
		}
	}
	return loop, r.lastOf(func() {
		tell(one, address{r.full, 8 * (r.slots - 1)})
	})
}

// inSlot emits the iteration of slot n.
func (r *ring) inSlot(
	n int64, parity operand, descriptors [][2]descriptor,
) {
	a := r.e.asm
	a.enter()
	defer a.leave()
	r.multiply(slot{
		address{r.full, 8 * n}, parity, n * r.bytes, "0",
	}, descriptors, "")
}

// releaseBefore emits, after an iteration of slot n, that the slot is free whose products are
// complete, in the lanes of which one holds. Counter is the number of the iteration of slot 0.
func (r *ring) releaseBefore(
	n int64, counter, one operand,
	tell func(p operand, slot address),
) {
	a := r.e.asm
	done := n - r.lag
	once := counter == "0"
	if once && (done < 0 || !r.e.loopsOverTiles() &&
		done+r.slots >= r.part.count) {
		// Nothing is before it, or fills the slot again.
		if r.lag == 0 {
			r.complete()
		}
		return
	}
	if done < 0 {
		done += r.slots
		p := a.fresh(kindPred)
		a.do("setp.ge.and.s32", p, counter, 1, one)
		one = p
	}
	r.complete()
	tell(one, address{r.full, 8 * done})
}

// lastOf is what is emitted after the last iteration of a tile: the producer has gone on to the
// next tile, so that slots whose products were still running are released, too.
func (r *ring) lastOf(tell func()) func() {
	return func() {
		if r.e.loopsOverTiles() && r.lag > 0 {
			tell()
		}
	}
}

// multiply emits the products of a slot. Counter is the number of the iteration, for operands
// that are computed on the way.
func (r *ring) multiply(
	s slot, descriptors [][2]descriptor, counter operand,
) {
	a := r.e.asm
	if o := r.left(); o != nil {
		o.multiply(r, s, descriptors[0][1], counter)
		return
	}
	r.wait(cursor{"", s.parity}, s.full, "FULL")
	a.do("wgmma.fence.sync.aligned")
	a.enter()
	for k, d := range r.dots {
		d.multiply(descriptors[k], s)
	}
	a.leave()
	a.do("wgmma.commit_group.sync.aligned")
}

// complete waits until the products of the iteration are complete whose slot is released after
// this one. Those of operands in registers have been waited for.
func (r *ring) complete() {
	if r.left() == nil {
		r.e.asm.do("wgmma.wait_group.sync.aligned", r.lag)
	}
}

// refill returns what is emitted about the slot of the previous iteration (of this
// one, where there is one slot), which is released to the producer or filled again,
// and what is emitted after the last iteration of a tile.
func (r *ring) refill(c cursor) (before func(counter operand), last func()) {
	switch {
	case r.hasProducer:
		return r.releaseSlot(c)
	case r.total <= r.slots-r.lag:
		return func(operand) {}, func() {}
	}
	e := r.e
	a := r.e.asm
	done, follow := r.lagging(c)
	next := a.fresh(kindB32)
	more := a.fresh(kindPred)
	to := a.fresh(kindB32)
	end := a.get(
		kindB32, "add.s32", r.data, r.bytes*r.slots,
	)
	if r.lag > 0 {
		a.do(
			"add.s32", done, r.full,
			8*(r.slots-r.lag),
		)
	}
	a.do(
		"add.s32", to, r.data,
		r.bytes*((r.slots-r.lag)%r.slots),
	)
	before = func(counter operand) {
		skip := a.label("NEXT")
		// All warps have read the slot.
		e.barrier()
		a.do("add.s32", next, counter, r.slots-r.lag)
		a.do("setp.ge.s32", more, next, r.limit)
		a.branch(more, skip)
		a.branch(a.not(r.leader), skip)
		r.copy(next, address{to, 0}, r.isFull(done))
		a.place(skip)
		follow()
		a.do("add.s32", to, to, r.bytes)
		a.do("setp.ge.s32", more, to, end)
		a.when(more, "mov.b32", to, r.data)
	}
	return before, func() {}
}

// lagging is a register with the slot whose products are complete, and the code that
// moves it on, to be emitted before the cursor advances.
func (r *ring) lagging(c cursor) (done operand, follow func()) {
	if r.lag == 0 {
		return c.at, func() {}
	}
	a := r.e.asm
	done = a.fresh(kindB32)
	return done, func() {
		a.do("mov.b32", done, c.at)
	}
}

// releaseSlot releases the slot of the previous iteration after the products of each.
func (r *ring) releaseSlot(c cursor) (before func(counter operand), last func()) {
	a := r.e.asm
	done, follow := r.lagging(c)
	one, tell := r.release()
	before = func(counter operand) {
		p := one
		if r.lag > 0 {
			p = a.fresh(kindPred)
			a.do("setp.ge.and.s32", p, counter, r.lag, one)
		}
		tell(p, address{done, 0})
		follow()
	}
	return before, r.lastOf(func() {
		tell(one, address{done, 0})
	})
}

// release returns code that signals, in the lanes of which p holds, that this warp has read
// a slot, to the producers of all blocks of the cluster: lane l arrives at the barrier
// "empty" of block l. One holds for as many lanes as there are blocks. Slots are given by their
// barriers "full".
func (r *ring) release() (one operand, tell func(p operand, slot address)) {
	e := r.e
	a := r.e.asm
	lane := e.num(e.thread.Mod(device.WarpThreads))
	one = a.get(kindPred, "setp.lt.s32", lane, r.blocks)
	if r.blocks == 1 {
		return one, func(p operand, slot address) {
			a.when(p, "mbarrier.arrive.shared.b64", sink, slot.plus(8*r.slots))
		}
	}
	// The barrier of another block is a constant distance from the block's own.
	distance := a.fresh(kindB32)
	remote := a.fresh(kindB32)
	a.when(one, "mapa.shared::cluster.u32", distance, r.empty, lane)
	if r.unrolled() {
		return one, func(p operand, slot address) {
			a.when(p, "mbarrier.arrive.shared::cluster.b64", sink, address{distance, slot.offset})
		}
	}
	a.when(one, "sub.s32", distance, distance, r.full)
	return one, func(p operand, slot address) {
		a.when(p, "add.s32", remote, slot.base, distance)
		a.when(p, "mbarrier.arrive.shared::cluster.b64", sink, address{remote, 0})
	}
}

// A descriptor of a matrix in shared memory has two words, of which only the low one
// depends on the address (PTX ISA, wgmma matrix descriptor).
type descriptor struct{ low, high operand }

// descriptors are those of A and B in slot 0 for this thread's warpgroup, one pair a
// product.
func (r *ring) descriptors() [][2]descriptor {
	group := r.warpgroup()
	var all [][2]descriptor
	for _, d := range r.dots {
		// Warpgroups are arranged row by row over C.
		m := group.Div(d.gn).Scale(d.rows)
		n := group.Mod(d.gn).Scale(d.cols)
		var both [2]descriptor
		if d.left == nil {
			both[0] = r.descriptor(d.a, m, d.from.Size())
		}
		right := d.b
		if d.right != nil {
			right, d.data = d.right.tile, r.data
		}
		both[1] = r.descriptor(right, n, d.from.Size())
		all = append(all, both)
	}
	return all
}

// warpgroup is the number of this thread's warpgroup. A shuffle from lane 0 tells the
// assembler that it is uniform, so that descriptors are computed in uniform registers,
// which wgmma reads them from (CUTLASS, canonical_warp_group_idx).
func (r *ring) warpgroup() index.Expr {
	e := r.e
	a := r.e.asm
	if e.threads == device.WarpgroupThreads {
		return e.ring.Const(0)
	}
	own := e.num(e.thread.Div(device.WarpgroupThreads))
	v := e.ring.Var(index.Variable{
		Name: "warpgroup",
		Lo:   0,
		Hi:   e.threads/device.WarpgroupThreads - 1,
		Role: index.RoleThread,
	})
	e.bind(
		v,
		a.get(kindB32, "shfl.sync.idx.b32", own, 0, device.WarpThreads-1, -1),
	)
	return v
}

// descriptor is that of a tile from a row on: the start in units of 16 bytes, at bit
// 16 the distance of chunks of columns, at bit 32 that of groups of eight rows, and at
// bit 62 the swizzle.
func (r *ring) descriptor(b *boxTile, first index.Expr, size int64) descriptor {
	e := r.e
	a := r.e.asm
	start := a.get(
		kindB32, "add.s32", r.data,
		e.num(b.offset(first, 0, size).AddConst(b.at)),
	)
	start = a.get(
		kindB32, "and.b32",
		a.get(kindB32, "shr.u32", start, 4), 0x3fff,
	)
	leading := int64(1)
	if b.byK {
		leading = b.chunkBytes(size) / matrixRow
	}
	high := 8*b.inner*size/matrixRow |
		swizzleCode[device.Swizzle(b.inner*size)]<<30
	return descriptor{
		a.get(kindB32, "or.b32", start, leading<<16),
		a.in(kindB32, integer(high)),
	}
}

// moved is the descriptor of what is bytes further, in the slot at an offset in units
// of 16 bytes. Addresses of shared memory fit in the address field, so the sum does
// not carry into the next. It is a sum of 64 bits, which ptxas makes of one instruction; of the
// low word alone it makes three, two of which copy words.
func (d descriptor) moved(a *asm, offset operand, bytes int64) operand {
	low := d.low
	if offset != "0" {
		low = a.get(kindB32, "add.s32", low, offset)
	}
	first := a.get(
		kindB64, "mov.b64", []operand{low, d.high},
	)
	if bytes == 0 {
		return first
	}
	return a.get(
		kindB64, "add.s64", first, bytes/matrixRow,
	)
}
