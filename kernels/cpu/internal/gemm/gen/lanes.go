package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// lanes adds the products of terms of some rows of a and of w, lane by lane, to rows of c.
// A term begins where list says behind each row of a, and wStride bytes after the one before
// in w. Lanes are those of some vectors; blocks are of some rows. Sums of a block stay in
// registers, and each vector of w is loaded once for all its rows.
func lanes(rows, vecs int) {
	TEXT(fmt.Sprintf("lanesF32Rows%dVecs%d", rows, vecs), NOSPLIT,
		"func(blocks, terms int, list, a *byte, as int, w *byte, ws int, c *byte, cs, how int)")
	Pragma("noescape")
	// Addresses and strides are bytes.
	blocks := Load(Param("blocks"), GP64())
	a := Load(Param("a"), GP64())
	as := Load(Param("as"), GP64())
	c := Load(Param("c"), GP64())
	cs := Load(Param("cs"), GP64())
	ws := Load(Param("ws"), GP64())
	TESTQ(blocks, blocks)
	JLE(LabelRef("done"))
	Label("block")
	// The sums, row by row.
	var acc []reg.VecVirtual
	for range rows * vecs {
		acc = append(acc, YMM())
	}
	c3 := third(c, cs)
	// each calls f for every vector of rows that begin at base.
	each := func(base, base3, stride reg.Register, f func(m Mem, n int)) {
		for n := range acc {
			f(at(base, base3, stride, n/vecs, n%vecs*32), n)
		}
	}
	// Bit 0 of how says that c has no earlier sums: then it is not read.
	how := Load(Param("how"), GP64())
	ANDQ(Imm(1), how)
	JNZ(LabelRef("fresh"))
	each(c, c3, cs, func(m Mem, n int) { VMOVUPS(m, acc[n]) })
	JMP(LabelRef("begin"))
	Label("fresh")
	for _, v := range acc {
		VXORPS(v, v, v)
	}
	Label("begin")
	// Terms are in the order of list.
	list := Load(Param("list"), GP64())
	w := Load(Param("w"), GP64())
	terms := Load(Param("terms"), GP64())
	Label("term")
	// An entry is the bytes between the row and the term.
	from := GP64()
	MOVQ(Mem{Base: list}, from)
	ADDQ(a, from)
	from3 := third(from, as)
	// The vectors of w, which multiply all rows.
	y := vectorsAt(w, vecs)
	each(from, from3, as, func(m Mem, n int) { VFMADD231PS(m, y[n%vecs], acc[n]) })
	ADDQ(Imm(8), list)
	ADDQ(ws, w)
	DECQ(terms)
	JNZ(LabelRef("term"))
	// Whole vectors are written.
	each(c, c3, cs, func(m Mem, n int) { VMOVUPS(acc[n], m) })
	// The next block of rows.
	// It begins as many rows further in both.
	for range rows {
		ADDQ(as, a)
		ADDQ(cs, c)
	}
	DECQ(blocks)
	JNZ(LabelRef("block"))
	Label("done")
	VZEROUPPER()
	RET()
}

// vectorsAt loads so many vectors.
func vectorsAt(base reg.Register, n int) (all []reg.VecVirtual) {
	for v := range n {
		all = append(all, YMM())
		VMOVUPS(Mem{Base: base, Disp: 32 * v}, all[v])
	}
	return all
}
