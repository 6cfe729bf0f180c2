package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// standingChains is the vectors of partial sums of a column, each a chain of
// multiply-adds: eight chains of four columns keep two units of a latency of four
// cycles busy.
const standingChains = 2

// standingAhead is how many bytes ahead columns from memory are fetched: three lines. With one
// thread of a Zen 4 a matrix of 4096×4096 takes 0.89 of the time then, 0.92 to 0.97 with two,
// four, five or six lines, and no less with eight lines, or into the second cache.
const standingAhead = 192

// standing adds the products of a row of a to one or four elements of c, where the
// terms of a and of each column of b are contiguous: 16 terms a turn. Term t of a
// column belongs to lane t mod 16 of the partial sums, which are added by halves at
// the end, whatever the number of columns. Columns are bcs bytes apart, and their
// elements of c are ccs. Lines that are some bytes ahead are fetched, if any.
func standing(name string, columns, ahead int) {
	TEXT(name, NOSPLIT, "func(turns int, a *byte, b *byte, bcs int, c *byte, ccs int)")
	Pragma("noescape")
	turns := Load(Param("turns"), GP64())
	a := Load(Param("a"), GP64())
	// The columns have an address each, and go through their terms together.
	b := []reg.Register{Load(Param("b"), GP64())}
	if columns > 1 {
		bcs := Load(Param("bcs"), GP64())
		for len(b) < columns {
			next := GP64()
			LEAQ(Mem{Base: b[len(b)-1], Index: bcs, Scale: 1}, next)
			b = append(b, next)
		}
	}
	// Partial sums begin as zeros. Those of a column do not depend on whether others
	// are computed beside it, so that the number of columns makes no difference.
	var sums [][standingChains]reg.VecVirtual
	for range columns {
		var s [standingChains]reg.VecVirtual
		for k := range s {
			x := YMM()
			VXORPS(x, x, x)
			s[k] = x
		}
		sums = append(sums, s)
	}
	// A vector of a serves all columns, whose terms are operands in memory: ten loads
	// a turn of four, which is faster than any memory.
	Label("turn")
	if ahead > 0 {
		for _, r := range b {
			PREFETCHT0(Mem{Base: r, Disp: ahead})
		}
	}
	for k := range standingChains {
		x := YMM()
		at := 32 * k
		VMOVUPS(Mem{Base: a, Disp: at}, x)
		for n, s := range sums {
			y := Mem{Base: b[n], Disp: at}
			VFMADD231PS(y, x, s[k])
		}
	}
	for _, r := range append(b, a) {
		ADDQ(Imm(32*standingChains), r)
	}
	DECQ(turns)
	JNZ(LabelRef("turn"))
	// What c holds is added last, so that it takes part in no chain.
	c := Load(Param("c"), GP64())
	ccs := Load(Param("ccs"), GP64())
	for _, s := range sums {
		to := Mem{Base: c}
		sum := addHalves(s)
		VADDSS(to, sum, sum)
		VMOVSS(sum, to)
		ADDQ(ccs, c)
	}
	VZEROUPPER()
	RET()
}

// addHalves adds all lanes of some vectors, always the second half to the first.
func addHalves(s [standingChains]reg.VecVirtual) reg.VecVirtual {
	all := s[0]
	VADDPS(s[1], all, all)
	high := XMM()
	sum := all.AsX()
	VEXTRACTF128(Imm(1), all, high)
	VADDPS(high, sum, sum)
	VPERMILPS(Imm(0x0e), sum, high)
	VADDPS(high, sum, sum)
	VPERMILPS(Imm(0x01), sum, high)
	VADDSS(high, sum, sum)
	return sum.(reg.VecVirtual)
}
