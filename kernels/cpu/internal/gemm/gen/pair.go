package main

import (
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A kernel of a pair multiplies blocks of rows by two panels, which have four vectors a term.
// Six rows take 34 instructions for 24 multiply-adds a term, where those of one panel take 20
// for 12. That counts where the core's other thread is busy: each thread has half of the six
// instructions a cycle then, 18 for the six cycles that 12 multiply-adds take.
//
// The terms of a row of a are contiguous, so that most of them have constant addresses.

// pairSignature is the type of the kernels. The second panel is apart bytes behind the first.
const pairSignature = "func(blocks, k int, a *byte, ars int, b *byte, brs, apart int, c *byte, crs int, ahead uintptr, step int, how int)"

// pairAhead is how many bytes ahead rows of a are fetched: two lines. Six rows are more streams
// than what fetches ahead by itself follows beside b (Emerald Rapids).
const pairAhead = 128

// pairLoop is the terms, one after the other: a line of a in each turn, then four at a time,
// and one. It prefetches twice as much for four terms as a kernel of one panel.
func (g *panelCode) pairLoop() {
	g.ars = Load(Param("ars"), GP64())
	g.b, g.brs = Load(Param("b"), GP64()), Load(Param("brs"), GP64())
	g.apart = Load(Param("apart"), GP64())
	g.a = g.bases(g.a[0], g.ars)
	k := Load(Param("k"), GP64())
	line := 512 / g.bits
	g.pairTurns("lines", k, line)
	ANDQ(Imm(uint64(line-1)), k)
	g.pairTurns("fours", k, 4)
	ANDQ(Imm(3), k)
	g.pairTurns("ones", k, 1)
	back := Load(Param("k"), GP64())
	SHLQ(Imm(uint64(bits.TrailingZeros(uint(g.bits/8)))), back)
	g.nextRows(back)
}

// pairTurns is as many turns of some terms, a power of two, as there are whole ones in k.
func (g *panelCode) pairTurns(name string, k reg.Register, terms int) {
	turns := GP64()
	MOVQ(k, turns)
	if terms > 1 {
		SHRQ(Imm(uint64(bits.TrailingZeros(uint(terms)))), turns)
	} else {
		TESTQ(turns, turns)
	}
	JZ(LabelRef("no_" + name))
	Label(name)
	size := g.bits / 8
	for t := range terms {
		if t%4 == 0 && terms > 1 {
			for range 2 {
				PREFETCHT1(Mem{Base: g.ahead})
				ADDQ(g.step, g.ahead)
			}
		}
		// The lines of rows are fetched one by one.
		for r := range g.rows {
			if terms == 64/size && r*terms/6 == t {
				PREFETCHT0(rowAt(g.a, g.ars, r, pairAhead))
			}
		}
		g.pairTerm(t * size)
	}
	for _, a := range g.a {
		ADDQ(Imm(uint64(terms*size)), a)
	}
	DECQ(turns)
	JNZ(LabelRef(name))
	Label("no_" + name)
}

// pairTerm adds the term that is disp bytes on in each row of a.
func (g *panelCode) pairTerm(disp int) {
	for v, y := range g.y {
		m := Mem{Base: g.b, Disp: v % 2 * g.bytes()}
		if v >= 2 {
			m.Index, m.Scale = g.apart, 1
		}
		g.load(m, y)
	}
	ADDQ(g.brs, g.b)
	for r := range g.rows {
		g.broadcast(rowAt(g.a, g.ars, r, disp), g.x)
		for v, y := range g.y {
			g.mac(g.x, y, g.acc[r*g.vecs+v], g.x)
		}
	}
}
