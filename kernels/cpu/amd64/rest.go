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

// A piece is four, two or one of the elements that are on; there is one for
// every bit that is set in their number.
type piece struct {
	elements        int
	insert, extract Op // at lane 0
}

// pieces returns them in the order of memory.
func pieces(width int) [3]piece {
	moves := [4]piece{
		{insert: VPINSRQ, extract: VPEXTRQ}, {insert: VPINSRD, extract: VPEXTRD},
		{insert: VPINSRW, extract: VPEXTRW}, {insert: VPINSRB, extract: VPEXTRB},
	}
	p := [3]piece(moves[2-width:])
	for k := range p {
		p[k].elements = 4 >> k
	}
	return p
}

// restMem returns where a piece is: behind those with more elements.
func (e *emitter) restMem(s *step, p piece, width int) Mem {
	m := s.mem
	if m.Index != 0 || m.Label != 0 {
		e.err = fmt.Errorf("chain: %s under a mask addresses memory by a base alone", s.op)
		return m
	}
	if p.elements < 4 {
		e.a.Emit(MOV, e.scratch, e.rest)
		e.a.Emit(AND, e.scratch, Imm(8-2*p.elements))
		m.Index, m.Scale = e.scratch, uint8(width)
	}
	return m
}

// eachPiece emits do for the pieces, skipped where there are none.
func (e *emitter) eachPiece(s *step, width int, p [3]piece, do func(p piece, m Mem)) {
	if e.rest.class() != r64 || e.scratch.class() != r64 {
		e.err = fmt.Errorf("chain: %s under a mask needs the registers Rest and Scratch", s.op)
		return
	}
	for _, x := range p {
		skip := e.a.NewLabel()
		e.a.Emit(TEST, e.rest, Imm(x.elements))
		e.a.Emit(JE, skip)
		do(x, e.restMem(s, x, width))
		e.a.Bind(skip)
	}
}

// loadRest loads the pieces from the last to the first: each moves the ones
// before up, and goes to the low end.
func (e *emitter) loadRest(s *step, width int, r Reg) {
	p := pieces(width)
	low := r.X()
	e.a.Emit(VPXOR, low, low, low)
	e.eachPiece(s, width, [3]piece{p[2], p[1], p[0]}, func(x piece, m Mem) {
		e.a.Emit(VPSLLDQ, low, low, Imm(x.elements*width))
		e.a.Emit(x.insert, low, low, m, Imm(0))
	})
	e.a.Emit(s.op, r, low)
}

// storeRest stores the pieces from the first to the last, each from the low end,
// from which it is taken away.
func (e *emitter) storeRest(s *step, width int, r Reg) {
	low := e.take().X()
	e.a.Emit(VMOVAPS, low, r.X())
	e.eachPiece(s, width, pieces(width), func(x piece, m Mem) {
		e.a.Emit(x.extract, m, low, Imm(0))
		e.a.Emit(VPSRLDQ, low, low, Imm(x.elements*width))
	})
	e.release(low)
}
