package amd64

import "fmt"

// narrowLoad returns the bytes of an element of a load that widens eight of one
// or two bytes, else 0.
func narrowLoad(op Op) int {
	switch op {
	case VPMOVZXBD, VPMOVSXBD:
		return 1
	case VPMOVZXWD, VPMOVSXWD, VCVTPH2PS:
		return 2
	}
	return 0
}

// narrowStore returns the bytes of an element of a store of eight of one or two
// bytes, else 0.
func narrowStore(op Op, from Reg) int {
	switch {
	case op == VMOVQ:
		return 1
	case op == VMOVDQU && from.class() == x:
		return 2
	}
	return 0
}

// A partialMove is four, two or one of the elements that are on; there is one for
// every bit that is set in their number.
type partialMove struct {
	elements        int
	insert, extract Op // at lane 0
}

// partialMoves returns them in the order of memory.
func partialMoves(width int) [3]partialMove {
	moves := [4]partialMove{
		{insert: VPINSRQ, extract: VPEXTRQ}, {insert: VPINSRD, extract: VPEXTRD},
		{insert: VPINSRW, extract: VPEXTRW}, {insert: VPINSRB, extract: VPEXTRB},
	}
	p := [3]partialMove(moves[2-width:])
	for k := range p {
		p[k].elements = 4 >> k
	}
	return p
}

// partialMem returns where a piece is: behind those with more elements.
func (e *emitter) partialMem(s *step, p partialMove, width int) Mem {
	m := s.mem
	if m.Index != 0 || m.Label != 0 {
		e.err = fmt.Errorf("chain: %s under a mask addresses memory by a base alone", s.op)
		return m
	}
	if p.elements < 4 {
		e.a.Emit(MOV, e.scratch, e.active)
		e.a.Emit(AND, e.scratch, Imm(8-2*p.elements))
		m.Index = e.scratch
		m.Scale = uint8(width)
	}
	return m
}

// eachPartial emits do for the pieces, skipped where there are none.
func (e *emitter) eachPartial(
	s *step, width int, p [3]partialMove,
	do func(p partialMove, m Mem),
) {
	if e.active.class() != r64 ||
		e.scratch.class() != r64 {
		e.err = fmt.Errorf("chain: %s under a mask needs the registers Active and Scratch", s.op)
		return
	}
	for _, x := range p {
		skip := e.a.NewLabel()
		e.a.Emit(TEST, e.active, Imm(x.elements))
		e.a.Emit(JE, skip)
		do(x, e.partialMem(s, x, width))
		e.a.Bind(skip)
	}
}

// loadPartial loads the pieces from the last to the first: each moves the ones
// before up, and goes to the low end.
func (e *emitter) loadPartial(s *step, width int, r Reg) {
	p := partialMoves(width)
	low := r.X()
	e.a.Emit(VPXOR, low, low, low)
	e.eachPartial(
		s, width,
		[3]partialMove{p[2], p[1], p[0]},
		func(x partialMove, m Mem) {
			e.a.Emit(VPSLLDQ, low, low, Imm(x.elements*width))
			e.a.Emit(x.insert, low, low, m, Imm(0))
		},
	)
	e.a.Emit(s.op, r, low)
}

// storePartial stores the pieces from the first to the last, each from the low end,
// from which it is taken away.
func (e *emitter) storePartial(s *step, width int, r Reg) {
	low := e.take().X()
	e.a.Emit(VMOVAPS, low, r.X())
	e.eachPartial(s, width, partialMoves(width), func(x partialMove, m Mem) {
		e.a.Emit(x.extract, m, low, Imm(0))
		e.a.Emit(VPSRLDQ, low, low, Imm(x.elements*width))
	})
	e.release(low)
}

// lowMask returns a register whose 16 bytes have the mask of lanes of 64 bits as one of
// lanes of 32.
func (e *emitter) lowMask() Reg {
	m := e.take().X()
	e.a.Emit(VEXTRACTI128, m, Y(e.mask.number()), Imm(1))
	e.a.Emit(VSHUFPS, m, e.mask.X(), m, Imm(0x88))
	return m
}

// loadLow loads the elements of 32 bits that are on to the low halves of lanes.
func (e *emitter) loadLow(s *step, u int, r Reg) {
	m := e.lowMask()
	e.a.Emit(VMASKMOVPS, r.X(), m, e.place(s, u))
	e.a.Emit(s.op, r, r.X())
	e.release(m)
}

// storeLow stores the elements of 32 bits that are on, which are packed.
func (e *emitter) storeLow(s *step, u int, r Reg) {
	m := e.lowMask()
	e.a.Emit(VMASKMOVPS, e.place(s, u), m, r)
	e.release(m)
}
