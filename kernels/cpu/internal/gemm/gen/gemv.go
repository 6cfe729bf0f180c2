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
// hardware prefetcher follows rows, but not from one to the next. Where it fetches, all
// lines are asked for ahead, into the second cache.
func gemv(name string, f family, fetches bool) {
	TEXT(name, NOSPLIT, "func(lines int, a *byte, acs int, b *byte, brs int, c *byte, ahead int)")
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
	moving := []reg.Register{b, b3, b6}
	next := rowsAhead(moving)
	if fetches {
		moving = append(moving, next...)
	} else {
		for p := range gemvTerms {
			PREFETCHT0(rowAt(next, brs, p, 0))
		}
	}
	c := Load(Param("c"), GP64())
	lines := Load(Param("lines"), GP64())
	Label("line")
	y, z := YMM(), YMM()
	VMOVUPS(Mem{Base: c}, y)
	VMOVUPS(Mem{Base: c, Disp: 32}, z)
	for p := range gemvTerms {
		if fetches {
			PREFETCHT1(rowAt(next, brs, p, 0))
		}
		m := gemvRow(b, b3, b6, brs, p)
		f.fma(m, x[p], y)
		m.Disp = 32
		f.fma(m, x[p], z)
	}
	VMOVUPS(y, Mem{Base: c})
	VMOVUPS(z, Mem{Base: c, Disp: 32})
	for _, r := range append(moving, c) {
		ADDQ(Imm(64), r)
	}
	DECQ(lines)
	JNZ(LabelRef("line"))
	VZEROUPPER()
	RET()
}

// rowsAhead are registers with addresses some bytes behind others.
func rowsAhead(bases []reg.Register) []reg.Register {
	ahead := Load(Param("ahead"), GP64())
	var next []reg.Register
	for _, r := range bases {
		x := GP64()
		LEAQ(Mem{Base: r, Index: ahead, Scale: 1}, x)
		next = append(next, x)
	}
	return next
}

// gemvRow is row p of eight.
func gemvRow(b, b3, b6, stride reg.Register, p int) Mem {
	if p < 6 {
		return at(b, b3, stride, p, 0)
	}
	return at(b6, b6, stride, p-6, 0)
}
