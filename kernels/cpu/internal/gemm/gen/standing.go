package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// standingChains is the vectors of partial sums of a column, each a chain of
// multiply-adds: eight chains of two columns keep two units of a latency of four
// cycles busy.
const standingChains = 4

// standing adds the products of a row of a to one or two elements of c, where the
// terms of a and of each column of b are contiguous: 32 terms a turn. Term t of a
// column belongs to lane t mod 32 of the partial sums, which are added by halves at
// the end, whatever the number of columns.
func standing(name string, columns int) {
	TEXT(name, NOSPLIT, "func(turns int, a *byte, b *byte, bcs int, c *byte)")
	Pragma("noescape")
	turns := Load(Param("turns"), GP64())
	a := Load(Param("a"), GP64())
	b := []reg.Register{Load(Param("b"), GP64())}
	if columns > 1 {
		b = append(b, GP64())
		MOVQ(b[0], b[1])
		ADDQ(Load(Param("bcs"), GP64()), b[1])
	}
	var sums [][standingChains]reg.VecVirtual
	for range columns {
		var s [standingChains]reg.VecVirtual
		for k := range s {
			s[k] = YMM()
			VXORPS(s[k], s[k], s[k])
		}
		sums = append(sums, s)
	}
	Label("turn")
	for k := range standingChains {
		x := YMM()
		VMOVUPS(Mem{Base: a, Disp: 32 * k}, x)
		for n := range columns {
			VFMADD231PS(Mem{Base: b[n], Disp: 32 * k}, x, sums[n][k])
		}
	}
	for _, r := range append(b, a) {
		ADDQ(Imm(32*standingChains), r)
	}
	DECQ(turns)
	JNZ(LabelRef("turn"))
	c := Load(Param("c"), GP64())
	for n, s := range sums {
		VADDPS(s[1], s[0], s[0])
		VADDPS(s[3], s[2], s[2])
		VADDPS(s[2], s[0], s[0])
		high := XMM()
		VEXTRACTF128(Imm(1), s[0], high)
		VADDPS(high, s[0].AsX(), s[0].AsX())
		VPERMILPS(Imm(0x0e), s[0].AsX(), high)
		VADDPS(high, s[0].AsX(), s[0].AsX())
		VPERMILPS(Imm(0x01), s[0].AsX(), high)
		VADDSS(high, s[0].AsX(), s[0].AsX())
		VADDSS(Mem{Base: c, Disp: 4 * n}, s[0].AsX(), s[0].AsX())
		VMOVSS(s[0].AsX(), Mem{Base: c, Disp: 4 * n})
	}
	VZEROUPPER()
	RET()
}
