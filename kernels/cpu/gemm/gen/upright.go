package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// upright adds products of a row of a to 16 elements of c, where the terms of
// each column of b are next to each other: 16 terms a turn, of eight columns and
// then of the other eight, each of which adds up by itself.
func upright() {
	TEXT("uprightF32", NOSPLIT, "func(turns int, a *byte, acs int, b *byte, bcs int, c *byte)")
	Pragma("noescape")
	turns := Load(Param("turns"), GP64())
	a, acs := Load(Param("a"), GP64()), Load(Param("acs"), GP64())
	b, bcs := Load(Param("b"), GP64()), Load(Param("bcs"), GP64())
	c := Load(Param("c"), GP64()) // read again at the end
	var halves [2]uprightHalf
	for k := range halves {
		h := &halves[k]
		h.low, h.stride, h.sum = b, bcs, YMM()
		h.low3 = third(h.low, bcs)
		h.high = GP64()
		LEAQ(Mem{Base: b, Index: bcs, Scale: 4}, h.high)
		h.high3 = third(h.high, bcs)
		VMOVUPS(Mem{Base: c, Disp: 32 * k}, h.sum)
		if k == 0 {
			next := GP64()
			LEAQ(Mem{Base: b, Index: bcs, Scale: 8}, next)
			b = next
		}
	}
	Label("turn")
	again := GP64()
	MOVQ(a, again)
	for k, x := range []reg.Register{again, a} {
		for quad := range 4 {
			halves[k].quad(quad, x, acs)
		}
	}
	for _, h := range halves {
		for _, r := range []reg.Register{h.low, h.low3, h.high, h.high3} {
			ADDQ(Imm(64), r)
		}
	}
	DECQ(turns)
	JNZ(LabelRef("turn"))
	c = Load(Param("c"), GP64())
	for k, h := range halves {
		VMOVUPS(h.sum, Mem{Base: c, Disp: 32 * k})
	}
	VZEROUPPER()
	RET()
}

// An uprightHalf is eight columns: four from low on, of which low3 is the last,
// and four from high on.
type uprightHalf struct {
	low, low3, high, high3, stride reg.Register
	sum                            reg.VecVirtual
}

// quad adds the products of four terms: it turns squares of four columns, one in
// each half of a vector.
func (h *uprightHalf) quad(quad int, a, acs reg.Register) {
	var r [4]reg.VecVirtual
	for k := range r {
		r[k] = YMM()
		VBROADCASTF128(at(h.low, h.low3, h.stride, k, 16*quad), r[k])
		VINSERTF128(Imm(1), at(h.high, h.high3, h.stride, k, 16*quad), r[k], r[k])
	}
	var u [4]reg.VecVirtual // of columns 0, 1 and 2, 3: terms 0, 1 and terms 2, 3
	for k := range 2 {
		u[2*k], u[2*k+1] = YMM(), YMM()
		VUNPCKLPS(r[2*k+1], r[2*k], u[2*k])
		VUNPCKHPS(r[2*k+1], r[2*k], u[2*k+1])
	}
	for t := range 4 {
		x, term := YMM(), YMM()
		VBROADCASTSS(Mem{Base: a}, x)
		ADDQ(acs, a)
		VSHUFPS(Imm(uint64(0x44+0xaa*(t%2))), u[2+t/2], u[t/2], term)
		VFMADD231PS(x, term, h.sum)
	}
}
