package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Panels of 32 columns of elements of one byte or two, packed in vectors of 512 bits. A lane
// of a panel has the elements of a column in four rows, or in two. One instruction permutes
// the elements of two vectors to those of a third, by a vector of indices that the caller
// gives: VPERMT2B (AVX512_VBMI) bytes, VPERMT2W (AVX512BW) words.

// bytePanels packs quads of rows of contiguous bytes to so many panels, and adds up their
// columns: VPDPBUSD with ones adds the four bytes of a lane, as signed or as unsigned ones.
// A line of 64 bytes of a row is two panels. Behind the indices are four ones.
func bytePanels(panels int, unsigned bool) {
	sign := "Signed"
	if unsigned {
		sign = "Unsigned"
	}
	TEXT(fmt.Sprintf("bytePanels%s%d", sign, panels), NOSPLIT, "func(quads int, to *byte, panel int, from *byte, fromStride int, sums *byte, order *byte)")
	Pragma("noescape")
	n := Load(Param("quads"), GP64())
	to := Load(Param("to"), GP64())
	panel := Load(Param("panel"), GP64())
	from := Load(Param("from"), GP64())
	fs := Load(Param("fromStride"), GP64())
	order := Load(Param("order"), GP64())
	orders := panelOrders(order)
	ones := ZMM()
	VPBROADCASTD(Mem{Base: order, Disp: 2 * 64}, ones)
	var sums []reg.VecVirtual
	for range 2 * panels {
		s := ZMM()
		VPXORD(s, s, s)
		sums = append(sums, s)
	}
	TESTQ(n, n)
	JZ(LabelRef("done"))
	Label("quad")
	// Rows 0 and 1 are the first table of the permutation, rows 2 and 3 the second one.
	from2 := GP64()
	LEAQ(Mem{Base: from, Index: fs, Scale: 2}, from2)
	for p := range panels {
		x := twoRows(from, fs, 32*p)
		y := twoRows(from2, fs, 32*p)
		// The permutation overwrites the first table, of which both vectors are made.
		z := ZMM()
		VMOVDQA64(x, z)
		VPERMT2B(y, orders[0], z)
		VPERMT2B(y, orders[1], x)
		for k, v := range []reg.VecVirtual{z, x} {
			m := Mem{Base: to, Disp: 64 * k}
			if p == 1 {
				m.Index, m.Scale = panel, 1
			}
			VMOVDQU64(v, m)
			// The first source is signed, the second one is not.
			sum := sums[2*p+k]
			if unsigned {
				VPDPBUSD(ones, v, sum)
			} else {
				VPDPBUSD(v, ones, sum)
			}
		}
	}
	LEAQ(Mem{Base: from2, Index: fs, Scale: 2}, from)
	ADDQ(Imm(2*64), to)
	DECQ(n)
	JNZ(LabelRef("quad"))
	Label("done")
	at := Load(Param("sums"), GP64())
	for k, s := range sums {
		VMOVDQU64(s, Mem{Base: at, Disp: 64 * k})
	}
	VZEROUPPER()
	RET()
}

// panelOrders are the indices of both vectors of a row of a panel.
func panelOrders(order reg.Register) (orders [2]reg.VecVirtual) {
	for k := range orders {
		orders[k] = ZMM()
		VMOVDQU64(Mem{Base: order, Disp: 64 * k}, orders[k])
	}
	return orders
}

// twoRows is 32 bytes of a row, disp bytes behind from, and as many of the next one.
func twoRows(from, fs reg.Register, disp int) reg.VecVirtual {
	v := ZMM()
	VBROADCASTI64X4(Mem{Base: from, Disp: disp}, v)
	VINSERTI64X4(Imm(1), Mem{Base: from, Index: fs, Scale: 1, Disp: disp}, v, v)
	return v
}

// wordPanel packs pairs of rows of contiguous words to a panel: bf16 as it lies in memory.
// Nothing is rounded, so that a NaN stays as it is, and the product makes it quiet.
func wordPanel() {
	TEXT("wordPanel", NOSPLIT, "func(pairs int, to *byte, from *byte, fromStride int, order *byte)")
	Pragma("noescape")
	n := Load(Param("pairs"), GP64())
	to := Load(Param("to"), GP64())
	from := Load(Param("from"), GP64())
	fs := Load(Param("fromStride"), GP64())
	orders := panelOrders(Load(Param("order"), GP64()))
	TESTQ(n, n)
	JZ(LabelRef("done"))
	Label("pair")
	// A row of a panel is a line in memory, and a pair of rows two lines of the panel.
	x, y, z := ZMM(), ZMM(), ZMM()
	VMOVDQU64(Mem{Base: from}, x)
	VMOVDQU64(Mem{Base: from, Index: fs, Scale: 1}, y)
	VMOVDQA64(x, z)
	VPERMT2W(y, orders[0], z)
	VPERMT2W(y, orders[1], x)
	VMOVDQU64(z, Mem{Base: to})
	VMOVDQU64(x, Mem{Base: to, Disp: 64})
	LEAQ(Mem{Base: from, Index: fs, Scale: 2}, from)
	ADDQ(Imm(2*64), to)
	DECQ(n)
	JNZ(LabelRef("pair"))
	Label("done")
	VZEROUPPER()
	RET()
}
