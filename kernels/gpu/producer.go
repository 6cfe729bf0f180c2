package gpu

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/tilewright/tilewright/kernels/gpu/device"
)

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
