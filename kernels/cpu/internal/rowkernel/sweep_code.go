package rowkernel

import (
	"slices"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
)

// reductionsOf lists the reductions that end with sweep q.
func (n *Kernel) reductionsOf(q int) []*Reduction {
	var list []*Reduction
	for _, f := range n.reductions {
		if n.schedule.sweepOf[f.Out] == q {
			list = append(list, f)
		}
	}
	return list
}

// reductionRegisters are the accumulators of a sweep: a list for each reduction
// of the first row of a batch, then for those of the other rows. Reductions
// across rows accumulate in memory.
func (n *Kernel) reductionRegisters(q int, batch int64) [][]amd64.Reg {
	var lists [][]amd64.Reg
	next := 14
	for range batch {
		for _, f := range n.reductionsOf(q) {
			if f.AcrossRows {
				return nil
			}
			var list []amd64.Reg
			for range f.vectorReduction().Registers() {
				list = append(list, amd64.Y(next))
				next--
			}
			lists = append(lists, list)
		}
	}
	return lists
}

// A sweepEmitter emits one sweep over a row.
type sweepEmitter struct {
	*rowEmitter
	sweep         int                  // The number of the sweep.
	batch         int64                // The number of rows at a time.
	part, parts   int64                // The part of the prefetches of a row that this sweep does.
	exactDivision bool                 // Divisions are not replaced by reciprocals.
	reductions    []*Reduction         // The reductions that end with the sweep.
	regs          [][]amd64.Reg        // The accumulators of each reduction and row.
	pinned        map[*Value]amd64.Reg // The registers of row scalars.
	order         []*Value             // The row scalars, as they are met.
	reserved      []amd64.Reg          // The registers that chains must not use.
	divisors      []*Value             // The row scalars whose reciprocals are used.
	// The most vectors in turn, 0 for what the plan says.
	maxCopies int
	copies    int              // The number of vectors in turn.
	constants []pinnedConstant // The constants with registers.
	inWide    bool             // Chains are emitted with vectors of 64 bytes.
}

// emit emits the sweep. Where it multiplies by reciprocals, it is emitted a
// second time with divisions, for rows whose divisor the reciprocal does not
// serve.
func (p *sweepEmitter) emit() error {
	p.reductions, p.regs = p.kernel.reductionsOf(p.sweep),
		p.kernel.reductionRegisters(p.sweep, p.batch)
	p.pin()
	divisors := p.divisors
	if len(divisors) == 0 {
		return p.emitLoop()
	}
	exact := p.a.NewLabel()
	done := p.a.NewLabel()
	for _, s := range divisors {
		p.checkDivisor(s, exact)
	}
	if err := p.emitLoop(); err != nil {
		return err
	}
	p.a.Emit(amd64.JMP, done)
	p.a.Bind(exact)
	p.exactDivision, p.maxCopies = true, 1
	err := p.emitLoop()
	p.a.Bind(done)
	return err
}

// checkDivisor emits a jump for rows where s or its reciprocal is negative, 0,
// denormal, infinite or NaN.
func (p *sweepEmitter) checkDivisor(s *Value, exact amd64.Label) {
	at := p.slotMemory(s)
	if _, ok := p.kernel.schedule.slots[s]; !ok {
		at = p.memory(p.kernel.Loads[s], 0, 0)
	}
	p.a.Emit(amd64.MOV, amd64.ECX, at)
	p.a.Emit(amd64.SUB, amd64.ECX, amd64.Imm(1<<23))
	p.a.Emit(amd64.CMP, amd64.ECX, amd64.Imm(252<<23))
	p.a.Emit(amd64.JAE, exact)
}

// emitLoop emits the loop over the elements of a row: rounds of four vectors,
// then single vectors, then the rest under a mask.
func (p *sweepEmitter) emitLoop() error {
	p.emitPrologue()
	a, cols := p.a, p.kernel.cols()
	a.Emit(amd64.XOR, amd64.RCX, amd64.RCX)
	if whole := cols &^ (vector.RoundVectors*vector.Lanes - 1); whole > 0 {
		p.beginWide()
		p.pinConstants()
		loop := a.NewLabel()
		a.Align(32)
		a.Bind(loop)
		p.emitPrefetches()
		if err := p.emitRound(); err != nil {
			return err
		}
		a.Emit(
			amd64.ADD, amd64.RCX, amd64.Imm(vector.RoundVectors*vector.Lanes),
		)
		a.Emit(amd64.CMP, amd64.RCX, amd64.Imm(whole))
		a.Emit(amd64.JL, loop)
		p.endWide()
	}
	disp := int32(0)
	for k := cols % (vector.RoundVectors * vector.Lanes); k >= vector.Lanes; k -= vector.Lanes {
		err := p.chain(disp, 1, 0).Emit(
			a,
			p.withSpill(amd64.Placement{Copies: 1, Reserved: p.reserved}),
		)
		if err != nil {
			return err
		}
		disp += 32
	}
	if rest := cols % vector.Lanes; rest > 0 {
		a.Emit(
			amd64.VMOVUPS,
			amd64.Y15,
			a.Data(firstLanes(int(rest))),
		)
		return p.chain(disp, 1, 0).Emit(
			a,
			p.withSpill(amd64.Placement{
				Copies:   1,
				Mask:     amd64.Y15,
				Reserved: p.reserved,
			}),
		)
	}
	return nil
}

// firstLanes is a mask that turns on n lanes of four bytes.
func firstLanes(n int) []byte {
	mask := make([]byte, 32)
	for k := range 4 * n {
		mask[k] = 0xff
	}
	return mask
}

// pin gives the first row scalars of the sweep registers, as long as enough
// remain, and reserves the accumulators.
func (p *sweepEmitter) pin() {
	p.pinned = map[*Value]amd64.Reg{}
	p.reserved = nil
	p.reserved = slices.Concat(p.regs...)
	const enough = 8
	p.chain(0, 1, 0) // This finds the row scalars.
	for k, v := range p.order {
		r := 14 - len(p.reserved)
		if k < 4 && r >= enough && p.batch == 1 {
			p.pinned[v] = amd64.Y(r)
			p.reserved = append(p.reserved, amd64.Y(r))
		}
	}
}

// emitPrologue sets the accumulators to the identities and loads the pinned row
// scalars.
func (p *sweepEmitter) emitPrologue() {
	for k, regs := range p.regs {
		p.reductions[k%len(p.reductions)].vectorReduction().EmitInit(p.a, regs)
	}
	for _, v := range p.order {
		r, ok := p.pinned[v]
		_, kept := p.kernel.schedule.slots[v]
		switch {
		case !ok:
		case kept:
			p.a.Emit(amd64.VMOVUPS, r, p.slotMemory(v))
		default:
			p.emitSplat(r, p.kernel.Loads[v])
		}
	}
}

// emitPrefetches emits the prefetches of a round.
func (p *sweepEmitter) emitPrefetches() {
	if p.parts == 0 {
		return
	}
	to := amd64.PREFETCHT0
	if p.kernel.ReducesColumns() {
		to = amd64.PREFETCHT1
	}
	for _, s := range p.accesses {
		if r := p.ahead[s]; r != 0 {
			p.emitPrefetch(to, s, r, 0)
			continue
		}
		p.emitAhead(to, s, p.distance)
		p.emitAhead(amd64.PREFETCHT1, s, p.second)
	}
}

// emitAhead emits the prefetches of a round of an access at a distance in bytes, if there is one.
func (p *sweepEmitter) emitAhead(
	op amd64.Op, s *Access, distance int64,
) {
	at := p.aheadOf(s, distance)
	if at != 0 {
		p.emitPrefetch(op, s, p.reg[s], at)
	}
}

// A pinnedConstant is a constant that stays in a register during a loop.
type pinnedConstant struct {
	constant amd64.Constant
	reg      amd64.Reg
}

// pinConstants chooses the number of vectors in turn, as many as the registers
// hold, which is worth more than to save loads of constants. Then it gives the
// constants with most uses the registers that remain.
func (p *sweepEmitter) pinConstants() {
	p.constants, p.copies = nil, vector.RoundVectors/p.vectors()
	if p.maxCopies > 0 {
		p.copies = p.maxCopies
		return
	}
	if p.batch > 1 && p.lineByLine {
		p.copies = max(1, p.kernel.lineVectors()/p.vectors())
	}
	c := p.chain(0, 1, 0)
	pressure := c.Pressure()
	var free []amd64.Reg
	for n := p.registers() - 1; n >= 0; n-- {
		if !slices.Contains(p.reserved, amd64.Y(n)) {
			free = append(free, amd64.Y(n))
		}
	}
	for p.copies > 1 &&
		(p.copies > p.unroll || p.copies*pressure > len(free)) {
		p.copies /= 2
	}
	for n, k := range c.Constants() {
		if n+1+p.copies*pressure > len(free) {
			break
		}
		p.constants = append(
			p.constants, pinnedConstant{k, free[n]},
		)
		if p.inWide {
			p.a.LoadWideConstant(k, free[n])
		} else {
			p.a.LoadConstant(k, free[n])
		}
	}
}

// vectors is how many vectors of 32 bytes one of the rounds has.
func (p *sweepEmitter) vectors() int {
	if p.inWide {
		return 2
	}
	return 1
}

// registers is how many vector registers there are.
func (p *sweepEmitter) registers() int {
	if p.inWide {
		return 32
	}
	return 16
}

// emitRound emits a round, as many vectors at once as the registers hold.
func (p *sweepEmitter) emitRound() error {
	var err error
	vectors := p.vectors()
	for copies := p.copies; copies > 0; copies /= 2 {
		before := p.a.Mark()
		for k := 0; k < vector.RoundVectors; k += copies * vectors {
			c := p.chain(int32(32*k), copies, k/vectors)
			for _, h := range p.constants {
				c.PinConstant(h.constant, h.reg)
			}
			err = c.Emit(
				p.a,
				p.withSpill(amd64.Placement{
					Copies:    copies,
					Reserved:  p.reserved,
					Wide:      p.inWide,
					Registers: p.registers(),
				}),
			)
			if err != nil {
				p.a.Undo(before)
				break
			}
		}
		if !amd64.NeedsRegisters(err) {
			return err
		}
		p.constants = nil
	}
	return err
}

// chain is what the sweep does to vectors of a row which begin disp bytes of
// f32 on. The first vector belongs to accumulator number part.
func (p *sweepEmitter) chain(disp int32, copies, part int) *amd64.Chain {
	b := &sweepChain{sweepEmitter: p, disp: disp}
	b.c, b.made = p.rowEmitter.newChain()
	joined := make([]amd64.Value, len(p.reductions))
	for row := range p.batch {
		b.row = row
		clear(b.made)
		for k, f := range p.reductions {
			x := b.get(f.Arg)
			switch {
			case f.AcrossRows && row == 0:
				joined[k] = b.c.Load(
					amd64.VMOVUPS,
					p.memory(p.kernel.Stores[f.Out], disp, 0),
					32,
				)
				fallthrough
			case f.AcrossRows:
				joined[k] = f.vectorReduction().Combine(
					b.c, joined[k], x,
				)
			default:
				f.vectorReduction().EmitUpdate(
					b.c,
					p.accumulators(k+int(row)*len(p.reductions)),
					part, copies, x,
				)
			}
		}
		for _, v := range p.kernel.StoreOrder {
			if !p.kernel.Scalars[v] &&
				p.kernel.schedule.sweepOf[v] == p.sweep {
				if !b.putRounded(v) {
					b.put(p.kernel.Stores[v], b.get(v))
				}
			}
		}
	}
	for k, f := range p.reductions {
		if f.AcrossRows {
			b.c.Store(
				amd64.VMOVUPS,
				p.memory(p.kernel.Stores[f.Out], disp, 0),
				32, joined[k],
			)
		}
	}
	return b.c
}

// aheadOf is where a distance in bytes is in the array of an access that is prefetched, or 0.
// Where the rows of the access do not follow each other it is whole rows.
func (e *rowEmitter) aheadOf(s *Access, distance int64) int64 {
	if distance == 0 || !e.kernel.prefetches(s) {
		return 0
	}
	if s.row() == e.kernel.cols() {
		return distance
	}
	length := s.bytes() * e.kernel.cols()
	at := (distance + length - 1) / length * s.bytes() * s.row()
	if at != int64(int32(at)) {
		return 0
	}
	return at
}

// emitPrefetch emits the prefetches of a round of an access, some bytes from a base. A sweep
// that does one of several parts begins at its part of the row, with as much less a round.
// Rows that are combined are fetched into the second cache.
func (p *sweepEmitter) emitPrefetch(
	op amd64.Op, s *Access, base amd64.Reg, at int64,
) {
	const round = vector.RoundVectors * vector.Lanes
	bytes := s.bytes() / p.parts // of an element
	at += p.part * bytes * (p.kernel.cols() &^ (round - 1))
	for row := range p.batch {
		for line := range bytes / 2 {
			p.a.Emit(op, amd64.Mem{
				Base:  base,
				Index: amd64.RCX,
				Scale: uint8(bytes),
				Disp:  int32(at + 64*line + s.bytes()*row*p.rowSpacing*s.row()),
			})
		}
	}
}
