package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// copyPanels copies lines of 64 bytes of each row to as many panels. Lines that
// are next to each other are in one page, and rows often are not: copying
// several lines of a row at a time needs fewer entries of the TLB.
func copyPanels(lines int) {
	TEXT(fmt.Sprintf("copyPanels%d", lines), NOSPLIT, "func(rows int, to *byte, toStride, panel int, from *byte, fromStride int)")
	Pragma("noescape")
	n := Load(Param("rows"), GP64())
	to := Load(Param("to"), GP64())
	ts := Load(Param("toStride"), GP64())
	panel := Load(Param("panel"), GP64())
	from := Load(Param("from"), GP64())
	fs := Load(Param("fromStride"), GP64())
	TESTQ(n, n)
	JLE(LabelRef("done"))
	to3 := third(to, panel)
	Label("row")
	for q := range lines {
		x, y := YMM(), YMM()
		VMOVUPS(Mem{Base: from, Disp: 64 * q}, x)
		VMOVUPS(Mem{Base: from, Disp: 64*q + 32}, y)
		VMOVUPS(x, at(to, to3, panel, q, 0))
		VMOVUPS(y, at(to, to3, panel, q, 32))
	}
	ADDQ(fs, from)
	ADDQ(ts, to)
	ADDQ(ts, to3)
	DECQ(n)
	JNZ(LabelRef("row"))
	Label("done")
	VZEROUPPER()
	RET()
}

// copyWidePanels copies rows of four panels of 128 bytes, which are next to each other as in
// copyPanels, with vectors of 512 bits.
func copyWidePanels() {
	TEXT("copyWidePanels", NOSPLIT, "func(rows int, to *byte, panel int, from *byte, fromStride int)")
	Pragma("noescape")
	n := Load(Param("rows"), GP64())
	to := Load(Param("to"), GP64())
	panel := Load(Param("panel"), GP64())
	from := Load(Param("from"), GP64())
	fs := Load(Param("fromStride"), GP64())
	TESTQ(n, n)
	JZ(LabelRef("done"))
	to3 := third(to, panel)
	Label("row")
	for q := range 4 {
		// Both halves of a row of a panel.
		x, y := ZMM(), ZMM()
		VMOVDQU64(Mem{Base: from, Disp: 128 * q}, x)
		VMOVDQU64(Mem{Base: from, Disp: 128*q + 64}, y)
		VMOVDQU64(x, at(to, to3, panel, q, 0))
		VMOVDQU64(y, at(to, to3, panel, q, 64))
	}
	ADDQ(fs, from)
	ADDQ(Imm(128), to)
	ADDQ(Imm(128), to3)
	DECQ(n)
	JNZ(LabelRef("row"))
	Label("done")
	VZEROUPPER()
	RET()
}

// A transposeLoop is the loop of a transpose: the rows of from become the
// columns of to, one square at a time along the rows of from. A square is as
// wide as a vector of 256 bits, so that each of its rows is one load, and each
// of its columns one store.
type transposeLoop struct {
	n, to, ts, from, from3, fs, fs3 reg.Register
}

// newTransposeLoop begins the function and its loop.
func newTransposeLoop(name string) transposeLoop {
	TEXT(name, NOSPLIT, "func(squares int, to *byte, toStride int, from *byte, fromStride int)")
	Pragma("noescape")
	s := transposeLoop{
		n:    Load(Param("squares"), GP64()),
		to:   Load(Param("to"), GP64()),
		ts:   Load(Param("toStride"), GP64()),
		from: Load(Param("from"), GP64()),
		fs:   Load(Param("fromStride"), GP64()),
	}
	s.from3 = third(s.from, s.fs)
	fs3 := GP64()
	LEAQ(Mem{Base: s.fs, Index: s.fs, Scale: 2}, fs3)
	s.fs3 = fs3
	TESTQ(s.n, s.n)
	JLE(LabelRef("done"))
	Label("square")
	return s
}

// rows loads the vectors of n rows. Rows 6 and 7 are addressed from row 3, with
// the triple stride and with a scale of 4.
func (s transposeLoop) rows(n int) []reg.VecVirtual {
	var rows []reg.VecVirtual
	for r := range n {
		v := YMM()
		m := at(s.from, s.from3, s.fs, min(r, 5), 0)
		switch r {
		case 6:
			m = at(s.from3, s.from3, s.fs, 0, 0)
			m.Index = s.fs3
			m.Scale = 1
		case 7:
			m = Mem{Base: s.from3, Index: s.fs, Scale: 4}
		}
		VMOVUPS(m, v)
		rows = append(rows, v)
	}
	return rows
}

// columns stores the columns, advances to the next square and, after the last,
// ends the function.
func (s transposeLoop) columns(columns []reg.VecVirtual) {
	for _, v := range columns {
		VMOVUPS(v, Mem{Base: s.to})
		ADDQ(s.ts, s.to)
	}
	ADDQ(Imm(32), s.from)
	ADDQ(Imm(32), s.from3)
	DECQ(s.n)
	JNZ(LabelRef("square"))
	Label("done")
	VZEROUPPER()
	RET()
}

// halves joins the lower halves, and the upper halves, of two vectors: the last
// step of a transpose, across the 128-bit lanes that the other instructions
// stay within.
func halves(x, y reg.VecVirtual) (low, high reg.VecVirtual) {
	low, high = YMM(), YMM()
	VPERM2F128(Imm(0x20), y, x, low)
	VPERM2F128(Imm(0x31), y, x, high)
	return low, high
}

// transpose32 transposes squares of eight 32-bit elements in three steps: pairs
// of rows are interleaved, pairs of pairs are joined to quads of four rows, and
// the quads of rows 0–3 and 4–7 are joined across lanes.
func transpose32() {
	s := newTransposeLoop("transpose32")
	r := s.rows(8)
	var u [8]reg.VecVirtual // u[k]: columns of rows 2k, 2k+1, interleaved
	for k := range 4 {
		u[2*k], u[2*k+1] = YMM(), YMM()
		VUNPCKLPS(r[2*k+1], r[2*k], u[2*k])
		VUNPCKHPS(
			r[2*k+1],
			r[2*k],
			u[2*k+1],
		)
	}
	quad := func(k, odd int, high uint8) reg.VecVirtual { // of four rows
		v := YMM()
		VSHUFPS(
			Imm(uint64(0x44+0xaa*int(high))),
			u[4*k+2+odd],
			u[4*k+odd], v,
		)
		return v
	}
	var columns [8]reg.VecVirtual
	for c := range 4 {
		columns[c], columns[c+4] = halves(
			quad(0, c/2, uint8(c%2)),
			quad(1, c/2, uint8(c%2)),
		)
	}
	s.columns(columns[:])
}

// transpose64 transposes squares of four 64-bit elements in two steps: pairs of
// rows are interleaved, and joined across lanes.
func transpose64() {
	s := newTransposeLoop("transpose64")
	r := s.rows(4)
	var u [4]reg.VecVirtual
	for k := range 2 {
		u[2*k], u[2*k+1] = YMM(), YMM()
		VUNPCKLPD(r[2*k+1], r[2*k], u[2*k])
		VUNPCKHPD(
			r[2*k+1],
			r[2*k],
			u[2*k+1],
		)
	}
	var columns [4]reg.VecVirtual
	columns[0], columns[2] = halves(u[0], u[2])
	columns[1], columns[3] = halves(u[1], u[3])
	s.columns(columns[:])
}

// pairRows joins rows 2q and 2q+1 of 16 columns: each lane has the low halves
// of both, the first in its low half.
func pairRows() {
	TEXT("pairRows", NOSPLIT, "func(pairs int, to *byte, toStride int, from *byte, fromStride int)")
	Pragma("noescape")
	n := Load(Param("pairs"), GP64())
	to := Load(Param("to"), GP64())
	ts := Load(Param("toStride"), GP64())
	from := Load(Param("from"), GP64())
	fs := Load(Param("fromStride"), GP64())
	TESTQ(n, n)
	JLE(LabelRef("done"))
	Label("pair")
	for half := range 2 {
		x, y := YMM(), YMM()
		VMOVDQU(Mem{Base: from, Disp: 32 * half}, x)
		VMOVDQU(
			Mem{Base: from, Index: fs, Scale: 1, Disp: 32 * half},
			y,
		)
		VPSLLD(Imm(16), y, y)
		VPBLENDW(Imm(0xaa), y, x, x)
		VMOVDQU(x, Mem{Base: to, Disp: 32 * half})
	}
	LEAQ(Mem{Base: from, Index: fs, Scale: 2}, from)
	ADDQ(ts, to)
	DECQ(n)
	JNZ(LabelRef("pair"))
	Label("done")
	VZEROUPPER()
	RET()
}

// pairTerms joins terms 2q and 2q+1 of a row of 16-bit values in 32-bit lanes
// to one lane, eight pairs a turn.
func pairTerms() {
	TEXT("pairTerms", NOSPLIT, "func(turns int, to, from *byte)")
	Pragma("noescape")
	n := Load(Param("turns"), GP64())
	to := Load(Param("to"), GP64())
	from := Load(Param("from"), GP64())
	TESTQ(n, n)
	JLE(LabelRef("done"))
	Label("turn")
	var v [2]reg.VecVirtual
	for k := range v {
		v[k] = YMM()
		high := YMM()
		VMOVDQU(Mem{Base: from, Disp: 32 * k}, v[k])
		VPSRLQ(Imm(16), v[k], high)
		VPBLENDW(Imm(0x22), high, v[k], v[k]) // the low half of each 64 bits is a pair
	}
	VSHUFPS(Imm(0x88), v[1], v[0], v[0])
	VPERMQ(Imm(0xd8), v[0], v[0])
	VMOVDQU(v[0], Mem{Base: to})
	ADDQ(Imm(64), from)
	ADDQ(Imm(32), to)
	DECQ(n)
	JNZ(LabelRef("turn"))
	Label("done")
	VZEROUPPER()
	RET()
}
