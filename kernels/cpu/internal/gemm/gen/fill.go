package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// A kernel that fills multiplies the first block of rows by rows of b where they lie, and
// copies these to a panel, from which the other blocks read them: a copy before them takes 10 %
// of the time of 32 rows. The panel is the argument mask, which whole panels do not need. Each
// term prefetches a line, so that few blocks fetch all of the next panel: 32 rows in blocks of
// five and six prefetch three quarters of it otherwise.

// fillTo begins the panel.
func (g *panelCode) fillTo() {
	if g.fill {
		g.to = Load(Param("mask"), GP64())
	}
}

// fillRow copies the current row of b to the panel.
func (g *panelCode) fillRow() {
	if !g.fill {
		return
	}
	for v, y := range g.y {
		VMOVUPS(y, Mem{Base: g.to, Disp: v * g.bytes()})
	}
	ADDQ(Imm(uint64(g.vecs*g.bytes())), g.to)
}
