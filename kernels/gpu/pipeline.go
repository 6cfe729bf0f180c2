package gpu

import (
	"slices"

	"github.com/tilewright/tilewright/symtile"
)

// A pipeline is a loop over products whose operands are brought to shared memory
// some iterations ahead: a ring of slots, each with the tiles of one iteration.
// In iteration i the block waits for slot i, then starts the copies of iteration
// i + slots − 1 into the slot that iteration i − 1 read, and computes meanwhile.
type pipeline struct {
	e     *emitter
	dots  []*tensorDot
	tiles []*matrixTile // different ones
	owner []*tensorDot  // of each tile
	dims  []int
	trips []int64
	total int64
	slots int64
	bytes int64 // of a slot
	at    int64 // of the ring
}

// pipelined emits a loop as a pipeline if it consists of products on tensor
// cores; it says whether it did.
func (e *emitter) pipelined(l *symtile.Loop, closers []closer) bool {
	p := &pipeline{e: e, dims: l.Dims, total: 1, slots: int64(e.knobs.stages)}
	for _, d := range l.Dims {
		p.trips = append(p.trips, constantOf(e.p.Space.Dims[d].Tiles))
		p.total *= p.trips[len(p.trips)-1]
	}
	for _, c := range closers {
		d, ok := c.(*tensorDot)
		if !ok {
			return false
		}
		p.dots = append(p.dots, d)
	}
	busy := func(s symtile.Step) bool {
		code := e.p.Ops[s.Op].Code
		return s.Loop != nil || e.hints.staged[s.Op] || (code == "dot" || code == "reduce") && !slices.Contains(l.Closers, s.Op) || len(e.p.Ops[s.Op].Needs) > 0
	}
	if p.slots < 2 || p.total < 2 || slices.ContainsFunc(l.Body, busy) {
		return false
	}
	p.layOut()
	p.emit()
	if e.knobs.epilogue > 0 {
		e.release(p.at, p.bytes*p.slots)
		e.barrier() // all are done with the ring
	}
	for _, c := range closers {
		c.finish()
	}
	return true
}

// layOut gives every different tile its place in a slot.
func (p *pipeline) layOut() {
	at := map[string]int64{}
	for _, d := range p.dots {
		for _, m := range []*matrixTile{d.a, d.b} {
			where, known := at[m.key(d)]
			if !known {
				where = p.bytes
				at[m.key(d)] = where
				p.bytes += (m.bytes + most - 1) / most * most
				p.tiles, p.owner = append(p.tiles, m), append(p.owner, d)
			}
			m.at = where
		}
	}
	p.at = p.e.room(p.bytes * p.slots)
}

func (p *pipeline) emit() {
	e, a := p.e, p.e.asm
	outside := a.scope
	base := a.get(kindB32, "add.s32", e.smem, p.at)
	for s := range p.slots - 1 {
		a.note("iteration %d into slot %d", s, s)
		if s < p.total {
			p.bring(outside, e.asm.in(kindB32, integer(s)), memory{shared, base, s * p.bytes})
		}
		a.do("cp.async.commit_group")
	}
	p.prepare()
	read, write, end := a.fresh(kindB32), a.fresh(kindB32), a.get(kindB32, "add.s32", base, p.bytes*p.slots)
	a.do("mov.b32", read, base)
	a.do("add.s32", write, base, p.bytes*(p.slots-1))
	counter, next, more := a.fresh(kindB32), a.fresh(kindB32), a.fresh(kindPred)
	again, skip := a.label("LOOP"), a.label("FILLED")
	a.do("mov.b32", counter, 0)
	a.note("for %d iterations, %d slots of %d bytes", p.total, p.slots, p.bytes)
	a.place(again)
	a.do("cp.async.wait_group", p.slots-2)
	e.barrier()
	a.do("add.s32", next, counter, p.slots-1)
	a.do("setp.ge.s32", more, next, p.total)
	a.branch(more, skip)
	p.bring(outside, next, memory{shared, write, 0})
	a.place(skip)
	a.do("cp.async.commit_group")
	a.enter()
	for _, d := range p.dots {
		d.multiply(memory{shared, read, d.a.at}, memory{shared, read, d.b.at})
	}
	a.leave()
	for _, r := range []operand{read, write} {
		a.do("add.s32", r, r, p.bytes)
		a.do("setp.ge.s32", more, r, end)
		a.when(more, "mov.b32", r, base)
	}
	a.do("add.s32", counter, counter, 1)
	a.do("setp.lt.s32", more, counter, p.total)
	a.branch(more, again)
	e.async, e.fresh = false, false
}

// prepare computes, before the loop, what addresses of fragments have in common.
func (p *pipeline) prepare() {
	e := p.e
	for _, d := range p.dots {
		zero := e.ring.Const(0)
		for _, x := range []symtile.Expr{d.addressA(zero, zero, 0), d.addressB(zero, zero, 0, min(2, d.cols/mmaN))} {
			_, c := x.Terms()
			e.num(x.AddConst(-c))
		}
	}
}

// bring copies the tiles of iteration n, a register, into a slot. It is emitted
// in a scope outside of the loop, for tile ids have other values there.
func (p *pipeline) bring(outside *scope, n operand, slot memory) {
	e := p.e
	inside := e.asm.scope
	e.asm.scope = newScope(outside)
	defer func() { e.asm.scope = inside }()
	e.atIteration(p.dims, p.trips, p.total, n)
	for k, m := range p.tiles {
		p.owner[k].bring(m, memory{shared, slot.base, slot.first + m.at})
	}
}
