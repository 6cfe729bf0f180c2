package gpu

import (
	"slices"

	"github.com/tilewright/tilewright/kernels/gpu/coalesce"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A pipeline is a loop over products whose operands are copied to shared memory some
// iterations ahead (cp.async): a ring of slots, each with the tiles of one iteration.
// In iteration i the block waits for slot i, starts the copies of iteration i + slots
// − 1 into the slot that iteration i − 1 has read, and multiplies slot i meanwhile.
type pipeline struct {
	e    *emitter
	dots []pipelinedDot
	// Parts are the different operands.
	parts []slotOperand
	// Part is the iterations of this block.
	part iterationRange
	// The number of slots, the bytes of each, and the offset of the ring in shared
	// memory.
	slots int64
	bytes int64
	at    int64
	// Counter is the number of the iteration in the loop.
	counter operand
}

// A pipelinedDot is a product whose operands can be in the slots of a ring.
type pipelinedDot interface {
	accumulator
	// parts are its operands as copies into a slot; nil where they have to be computed
	// on the way.
	parts() []slotOperand
	// prepare computes the parts of addresses that are the same in all iterations.
	prepare()
	// multiplySlot adds the products of one slot.
	multiplySlot(slot memory)
}

// A slotOperand is an operand in a slot.
type slotOperand struct {
	// Key is equal for equal operands, which share a place.
	key   string
	bytes int64
	// At is the offset of the operand in a slot.
	at   *int64
	copy func(to memory)
}

// pipelined emits a loop as a pipeline if it accumulates only products whose operands
// are copied unchanged, and reports whether it could.
func (e *emitter) pipelined(l *symtile.Loop, accumulators []accumulator) bool {
	p := &pipeline{
		e:     e,
		part:  e.iterationRange(l.Dims),
		slots: int64(e.knobs.stages),
	}
	for _, c := range accumulators {
		d, ok := c.(pipelinedDot)
		if !ok || d.parts() == nil {
			return false
		}
		p.dots = append(p.dots, d)
	}
	// Steps that need code of their own in each iteration exclude a pipeline.
	busy := func(s symtile.Step) bool {
		code := e.p.Ops[s.Op].Code
		return s.Loop != nil ||
			e.hints.staged[s.Op] ||
			(code == hlo.OpDot || code == hlo.OpReduce) &&
				!slices.Contains(l.Accumulators, s.Op) ||
			len(e.p.Ops[s.Op].RuntimeArgs) > 0
	}
	if p.slots < 2 || p.part.count < 2 ||
		slices.ContainsFunc(l.Body, busy) {
		return false
	}
	e.leaveOutGroups(&p.part, l.Accumulators)
	if !p.part.streamed {
		p.slots = min(p.slots, p.part.minCount+1)
	}
	p.layOut()
	p.emit()
	if e.knobs.epilogue > 0 {
		e.release(p.at, p.bytes*p.slots)
		// The memory of the ring may be used again after this barrier.
		e.barrier()
	}
	e.conclude(p.part, accumulators)
	return true
}

// layOut assigns an offset in a slot to every different tile and allocates the ring.
func (p *pipeline) layOut() {
	at := map[string]int64{}
	for _, d := range p.dots {
		for _, x := range d.parts() {
			where, known := at[x.key]
			if !known {
				where = p.bytes
				at[x.key] = where
				p.bytes += (x.bytes + maxVectorBytes - 1) / maxVectorBytes * maxVectorBytes
				p.parts = append(p.parts, x)
			}
			*x.at = where
		}
	}
	p.at = p.e.allocateShared(p.bytes * p.slots)
}

// emit emits the copies of the first slots and then the loop.
func (p *pipeline) emit() {
	e := p.e
	a := p.e.asm
	outside := a.scope
	base := a.get(
		kindB32, "add.s32", e.smem, p.at,
	)
	p.loadFirstSlots(outside, base)
	for _, d := range p.dots {
		d.prepare()
	}
	read := a.fresh(kindB32)
	write := a.fresh(kindB32)
	end := a.get(
		kindB32, "add.s32", base, p.bytes*p.slots,
	)
	a.do("mov.b32", read, base)
	a.do(
		"add.s32", write, base, p.bytes*(p.slots-1),
	)
	counter := a.fresh(kindB32)
	p.counter = counter
	next := a.fresh(kindB32)
	more := a.fresh(kindPred)
	again := a.label("LOOP")
	skip := a.label("FILLED")
	a.do("mov.b32", counter, 0)
	limit := e.iterations(p.part)
	a.note(
		"%s, %d slots of %d bytes", p.part.note(), p.slots,
		p.bytes,
	)
	a.place(again)
	// All but the latest slots − 2 groups have arrived: this slot is complete.
	a.do("cp.async.wait_group", p.slots-2)
	e.barrier()
	a.do("add.s32", next, counter, p.slots-1)
	a.do("setp.ge.s32", more, next, limit)
	a.branch(more, skip)
	p.loadSlot(
		outside, next,
		coalesce.LoopRange{Lo: p.slots - 1, Hi: p.part.count - 1},
		memory{shared, write, 0},
	)
	a.place(skip)
	a.do("cp.async.commit_group")
	a.enter()
	for _, d := range p.dots {
		d.multiplySlot(memory{shared, read, 0})
	}
	a.leave()
	// Both cursors wrap around at the end of the ring.
	for _, r := range []operand{read, write} {
		a.do("add.s32", r, r, p.bytes)
		a.do("setp.ge.s32", more, r, end)
		a.when(more, "mov.b32", r, base)
	}
	a.do("add.s32", counter, counter, 1)
	a.do("setp.lt.s32", more, counter, limit)
	a.branch(more, again)
	e.async, e.fresh = false, false
}

// loadFirstSlots starts the copies of the iterations before the loop, one fewer than
// there are slots.
func (p *pipeline) loadFirstSlots(outside *scope, base operand) {
	e := p.e
	a := p.e.asm
	// Each group of copies is committed, also where it is empty, so that the number of
	// groups to wait for is constant.
	for s := range p.slots - 1 {
		a.note("iteration %d into slot %d", s, s)
		skip, limit := operand(""), p.part.limit
		n := a.in(kindB32, integer(s)) // known behind the branch, too
		if p.part.streamed {
			limit = e.iterations(p.part)
		}
		if s > 0 && limit != "" {
			skip = a.label("SHORT")
			a.branch(a.get(kindPred, "setp.le.s32", limit, s), skip)
		}
		p.loadSlot(
			outside, n,
			coalesce.LoopRange{Lo: s, Hi: s},
			memory{shared, base, s * p.bytes},
		)
		if skip != "" {
			a.place(skip)
		}
		a.do("cp.async.commit_group")
	}
}

// loadSlot starts the copies of iteration n, a register, into a slot; all is the range
// of n over the loop. The copies are emitted in a scope outside of the loop, because
// tile ids have other values there.
func (p *pipeline) loadSlot(outside *scope, n operand, all coalesce.LoopRange, slot memory) {
	e := p.e
	inside := e.asm.scope
	e.asm.scope = newScope(outside)
	defer func() { e.asm.scope = inside }()
	defer e.leaveLoop(e.around, e.ids)
	e.enterLoop(e.atIteration(p.part, n), all)
	for _, x := range p.parts {
		x.copy(memory{
			shared, slot.base, slot.first + *x.at,
		})
	}
}

// parts implements pipelinedDot.
func (t *tensorDot) parts() []slotOperand {
	var all []slotOperand
	for _, m := range []*matrixTile{t.a, t.b} {
		all = append(all, slotOperand{
			m.key(t),
			m.bytes,
			&m.at,
			func(to memory) { t.stageTile(m, to) },
		})
	}
	return all
}

// prepare computes the addresses of the first fragments and where this thread's copies
// begin, whose parts recur in all iterations.
func (t *tensorDot) prepare() {
	e := t.e
	zero := e.ring.Const(0)
	t.knowCopies(t.a)
	t.knowCopies(t.b)
	know := func(x matrices) {
		for _, at := range x.at {
			_, c := at.Terms()
			e.num(at.AddConst(-c))
		}
	}
	for k := range min(8, t.depth/t.mma.k) {
		at := e.ring.Const(k * t.mma.k)
		for m := int64(0); m < t.rows; m += mmaM {
			know(t.elementsA(zero, at, m))
		}
		for n := int64(0); n < t.cols; n += 2 * mmaN {
			know(t.elementsB(zero, at, n))
		}
	}
}

// knowCopies computes where in shared memory this thread's copies of a tile begin.
func (t *tensorDot) knowCopies(m *matrixTile) {
	e := t.e
	zero := e.ring.Const(0)
	first := e.vectorAt(t.copyLayout(m), zero, zero)[0]
	at := t.chunkPosition(m, first)
	_, c := at.Terms()
	e.num(at.AddConst(-c))
}

// multiplySlot implements pipelinedDot.
func (t *tensorDot) multiplySlot(slot memory) {
	t.multiply(memory{shared, slot.base, slot.first + t.a.at}, memory{
		shared, slot.base, slot.first + t.b.at,
	})
}

// parts implements pipelinedDot: operands are copied unchanged if they are only moved
// from a parameter and have the type of the sums.
func (s *scalarDot) parts() []slotOperand {
	var all []slotOperand
	for _, r := range []*rowTile{s.left, s.right} {
		_, direct := s.e.trace(r.tile.arg, nil)
		if !direct ||
			s.e.typeOf(r.tile.arg, 0) != s.sum ||
			s.sum.Size() < 4 {
			return nil
		}
		all = append(all, slotOperand{
			s.key(r),
			r.bytes(s.b),
			&r.at,
			func(to memory) { s.copyTile(r, to) },
		})
	}
	return all
}

// prepare implements pipelinedDot; addresses are computed where they are needed.
func (s *scalarDot) prepare() {}

// multiplySlot implements pipelinedDot.
func (s *scalarDot) multiplySlot(slot memory) {
	s.products(memory{shared, slot.base, slot.first + s.left.at}, memory{
		shared, slot.base, slot.first + s.right.at,
	})
}

// copyTile starts the copies of an operand into a slot.
func (s *scalarDot) copyTile(r *rowTile, to memory) {
	e := s.e
	e.asm.enter()
	e.each(
		e.flat(r.tile.arg, s.sum.Size()).Layout,
		func(points []point) {
			own := s.places(r, points)
			from, param, _ := e.placesOf(r.tile, points)
			in := memory{
				e.passing(inputs, e.readOnce(param)),
				e.parameter(param), 0,
			}
			for k := 0; k < len(points); {
				n := min(
					e.contiguousRun(s.sum, from[k:]),
					e.contiguousRun(s.sum, own[k:]),
				)
				e.logAccess(
					in.base, false, from[k].at,
					s.sum.Size(), int64(n),
					own[k].when.all(from[k].when),
				)
				e.copyAsync(
					in.space,
					e.at(to, own[k].at, s.sum.Size()),
					e.at(in, from[k].at, s.sum.Size()),
					int64(n)*s.sum.Size(),
					e.guard(own[k].when),
					e.guard(from[k].when),
				)
				k += n
			}
		},
	)
	e.asm.leave()
}
