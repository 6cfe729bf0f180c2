package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gemvTerms is how many rows of b a streaming kernel reads at a time.
const gemvTerms = 8

// gemv adds the products of gemvTerms terms to a row of c, 64 bytes at a time.
// It prefetches the lines of b that are ahead bytes behind where it begins: the
// hardware prefetcher follows rows, but not from one to the next.
func gemv(f family) {
	TEXT("gemv"+f.name, NOSPLIT, "func(lines int, a *byte, acs int, b *byte, brs int, c *byte, ahead int)")
	Pragma("noescape")
	a := Load(Param("a"), GP64())
	acs := Load(Param("acs"), GP64())
	var x [gemvTerms]reg.VecVirtual
	for p := range x {
		x[p] = YMM()
		f.broadcast(Mem{Base: a}, x[p])
		if p < gemvTerms-1 {
			ADDQ(acs, a)
		}
	}
	b := Load(Param("b"), GP64())
	brs := Load(Param("brs"), GP64())
	b3 := third(b, brs)
	b6 := third(b3, brs)
	ahead := Load(Param("ahead"), GP64())
	for p, r := range []reg.Register{b, b, b, b3, b3, b3, b6, b6} {
		PREFETCHT0(Mem{Base: ahead, Index: r, Scale: 1})
		ADDQ(brs, ahead)
		if p%3 == 2 {
			MOVQ(Load(Param("ahead"), GP64()), ahead)
		}
	}
	c := Load(Param("c"), GP64())
	lines := Load(Param("lines"), GP64())
	Label("line")
	y, z := YMM(), YMM()
	VMOVUPS(Mem{Base: c}, y)
	VMOVUPS(Mem{Base: c, Disp: 32}, z)
	for p := range gemvTerms {
		m := gemvRow(b, b3, b6, brs, p)
		f.fma(m, x[p], y)
		m.Disp = 32
		f.fma(m, x[p], z)
	}
	VMOVUPS(y, Mem{Base: c})
	VMOVUPS(z, Mem{Base: c, Disp: 32})
	for _, r := range []reg.Register{b, b3, b6, c} {
		ADDQ(Imm(64), r)
	}
	DECQ(lines)
	JNZ(LabelRef("line"))
	VZEROUPPER()
	RET()
}

// gemvRow is row p of eight.
func gemvRow(b, b3, b6, stride reg.Register, p int) Mem {
	if p < 6 {
		return at(b, b3, stride, p, 0)
	}
	return at(b6, b6, stride, p-6, 0)
}
