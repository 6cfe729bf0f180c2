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
	c := r.cursor(0)
	offset := a.fresh(kindB32)
	e.mathGroup = e.newMathGroup()
	before, last := r.refill(c)
	counter := a.fresh(kindB32)
	more := a.fresh(kindPred)
	a.do("mov.b32", offset, 0)
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
	a.do("mov.b32", counter, 0)
	again := a.label("LOOP")
	r.takeTurn()
	a.note("%s", r.part.note())
	a.place(again)
	for _, d := range r.dots {
		d.loadScales(r, counter)
	}
	if o := r.left(); o != nil {
		o.multiply(r, c, descriptors[0][1], offset, counter)
	} else {
		r.multiply(c, descriptors, offset)
	}
	before(counter)
	for _, d := range r.dots {
		d.promote()
	}
	a.do("add.s32", offset, offset, r.bytes/matrixRow)
	a.when(r.advance(c), "mov.b32", offset, 0)
	a.do("add.s32", counter, counter, 1)
	a.do("setp.lt.s32", more, counter, r.limit)
	a.branch(more, again)
	r.passTurn()
	if r.lag > 0 || r.left() != nil { // else each iteration has waited for its own
		a.do("wgmma.wait_group.sync.aligned", 0)
	}
	last()
	r.skip(c, offset)
}

// multiply emits the products of an iteration.
func (r *ring) multiply(c cursor, descriptors [][2]descriptor, offset operand) {
	a := r.e.asm
	r.wait(c, r.isFull(c.at), "FULL")
	a.do("wgmma.fence.sync.aligned")
	a.enter()
	for k, d := range r.dots {
		d.multiply(descriptors[k], offset)
	}
	a.leave()
	a.do("wgmma.commit_group.sync.aligned")
	// All but the latest lag groups are complete after this.
	a.do("wgmma.wait_group.sync.aligned", r.lag)
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

// releaseSlot signals that this warp has read a slot, to the producers of all blocks
// of the cluster: lane l arrives at the barrier of block l.
func (r *ring) releaseSlot(c cursor) (before func(counter operand), last func()) {
	e := r.e
	a := r.e.asm
	done, follow := r.lagging(c)
	lane := e.num(e.thread.Mod(device.WarpThreads))
	// Lane l arrives at the barrier of block l, for as many lanes as there are blocks.
	one := a.get(kindPred, "setp.lt.s32", lane, r.blocks)
	tell := r.arrival(done, one, lane)
	before = func(counter operand) {
		p := one
		if r.lag > 0 {
			p = a.fresh(kindPred)
			a.do("setp.ge.and.s32", p, counter, r.lag, one)
		}
		tell(p)
		follow()
	}
	return before, func() {
		// The producer has gone on to the next tile, so the last slots have to be
		// released, too.
		if e.loopsOverTiles() && r.lag > 0 {
			tell(one)
		}
	}
}

// arrival returns code that arrives, in the lanes of which p holds, at the barrier
// "empty" of the block with the lane's number. The barrier of another block is a
// constant distance from the block's own.
func (r *ring) arrival(slot, one, lane operand) func(p operand) {
	a := r.e.asm
	if r.blocks == 1 {
		return func(p operand) {
			a.when(p, "mbarrier.arrive.shared.b64", sink, r.isEmpty(slot))
		}
	}
	distance := a.fresh(kindB32)
	remote := a.fresh(kindB32)
	a.when(one, "mapa.shared::cluster.u32", distance, r.empty, lane)
	a.when(one, "sub.s32", distance, distance, r.full)
	return func(p operand) {
		a.when(p, "add.s32", remote, slot, distance)
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
// not carry into the next.
func (d descriptor) moved(a *asm, offset operand, bytes int64) operand {
	low := a.get(kindB32, "add.s32", d.low, offset)
	if bytes != 0 {
		low = a.get(kindB32, "add.s32", low, bytes/matrixRow)
	}
	return a.get(
		kindB64, "mov.b64", []operand{low, d.high},
	)
}
