package gpu

import (
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"math/bits"
)

// Blocks that go from tile to tile may have two teams of warpgroups (persistent=2),
// which take tiles in turns: while one stores a tile, the other has the tensor cores
// for the next (CUTLASS, KernelTmaWarpSpecializedPingpong). One producer fills one
// ring for both, tile after tile, so that each slot is read by one team.

// The named barriers of a block with teams: that of team t for itself, and that at
// which it waits for its turn to multiply.
const (
	groupBarrier = 1
	turnBarrier  = 3
)

// mathGroups is how many take tiles of a block in turns.
func (k knobs) mathGroups() int {
	if k.persistent == pingpong {
		return 2
	}
	return 1
}

// pingpong is the value of the knob persistent of plans with two teams.
const pingpong = 2

// A mathGroup is the one of this thread, by its number.
type mathGroup struct {
	number                  operand // the same register for all lanes: it is uniform
	barrier, turn, nextTurn operand // named barriers: for itself, for its turn, for that of the other
	private                 int64   // bytes of shared memory that each has of its own
}

// newMathGroup tells the teams apart. What they keep in shared memory beside the ring
// lies at different places.
func (e *emitter) newMathGroup() *mathGroup {
	if e.knobs.mathGroups() == 1 {
		return nil
	}
	a := e.asm
	t := &mathGroup{private: e.hints.groupBytes}
	t.number = a.get(
		kindB32, "shfl.sync.idx.b32",
		a.get(kindB32, "shr.u32", e.tid, bits.TrailingZeros64(uint64(e.threads))),
		0, device.WarpThreads-1, -1,
	)
	t.barrier = a.get(kindB32, "add.s32", t.number, groupBarrier)
	t.turn = a.get(kindB32, "add.s32", t.number, turnBarrier)
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

// sizeMathGroups says how much shared memory a team turned out to have of its own, and
// makes room for the other's.
func (e *emitter) sizeMathGroups() {
	if e.mathGroup == nil {
		return
	}
	own := (e.shared - e.common + maxVectorBytes - 1) /
		maxVectorBytes * maxVectorBytes
	e.hints.changed = e.hints.changed ||
		own != e.hints.groupBytes
	e.hints.groupBytes = own
	e.shared = e.common + int64(e.knobs.mathGroups())*own
}

// startOf moves a cursor, and the offset that goes with it, to the slot of a team's
// first tile, which is that of iteration 0 or total.
func (r *ring) startOf(c cursor, offset operand) {
	t := r.e.mathGroup
	a := r.e.asm
	if t == nil {
		return
	}
	slot := r.total % r.slots
	wraps := r.total / r.slots
	if slot > 0 {
		a.do("mad.lo.s32", c.at, t.number, 8*slot, c.at)
		a.do(
			"mad.lo.s32", offset, t.number, slot*r.bytes/matrixRow, offset,
		)
	}
	if wraps%2 > 0 {
		a.do("mov.b32", c.parity, t.number)
	}
}

// takeTurn waits until the other team has begun all products of the tile before.
func (r *ring) takeTurn() {
	if t, e := r.e.mathGroup, r.e; t != nil {
		e.asm.do("bar.sync", t.turn, 2*e.threads)
		e.tileLoop.waits = e.asm.waits // this one orders no results
	}
}

// passTurn lets the other team begin, if there is another tile.
func (r *ring) passTurn() {
	e := r.e
	a := r.e.asm
	if e.mathGroup == nil {
		return
	}
	p := a.fresh(kindPred)
	next := a.fresh(kindB32)
	a.do(
		"add.s32", next, e.tileLoop.tile,
		a.get(kindB32, "mov.u32", gridSize),
	)
	a.do("setp.lt.s32", p, next, e.p.Programs())
	a.when(
		p, "bar.arrive", e.mathGroup.nextTurn, 2*e.threads,
	)
}

// skip moves on over the slots of the other team's tile.
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
		a.do("add.s32", offset, offset, slot*r.bytes/matrixRow)
		a.do("setp.ge.s32", p, c.at, r.empty)
		a.when(p, "sub.s32", c.at, c.at, 8*r.slots)
		a.when(
			p, "sub.s32", offset, offset, r.slots*r.bytes/matrixRow,
		)
		a.when(p, "xor.b32", c.parity, c.parity, 1)
	}
	if wraps%2 > 0 {
		a.do("xor.b32", c.parity, c.parity, 1)
	}
}
