package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// transposedGemv adds products of a row of a to eight or 16 elements of c,
// where the terms of each column of b are contiguous: 16 terms a turn. The sums
// of eight columns wait for each other, so that the two groups of 16 are
// computed in turn, four terms at a time. The second is a turn behind, since
// lines of sixteen columns that are a multiple of a page apart do not stay in a
// first-level cache of eight ways.
func transposedGemv(name string, groups int) {
	TEXT(name, NOSPLIT, "func(turns int, a *byte, acs int, b *byte, bcs int, c *byte)")
	Pragma("noescape")
	turns := Load(Param("turns"), GP64())
	acs := Load(Param("acs"), GP64())
	bcs := Load(Param("bcs"), GP64())
	// c is read again at the end
	b := Load(Param("b"), GP64())
	c := Load(Param("c"), GP64())
	var all []*columnGroup
	for k := range groups {
		h := newColumnGroup(b, bcs, acs)
		VMOVUPS(Mem{Base: c, Disp: 32 * k}, h.sum)
		if all = append(all, h); k+1 < groups {
			next := GP64()
			LEAQ(Mem{Base: b, Index: bcs, Scale: 8}, next)
			b = next
		}
	}
	emitTurns(turns, all)
	c = Load(Param("c"), GP64())
	for k, h := range all {
		VMOVUPS(h.sum, Mem{Base: c, Disp: 32 * k})
	}
	VZEROUPPER()
	RET()
}

// emitTurns emits all turns. Of two groups the first begins alone and the
// second ends alone, so that in every turn between them the two are at
// different terms.
func emitTurns(turns reg.Register, all []*columnGroup) {
	if len(all) > 1 {
		emitTurn(all[0])
		DECQ(turns)
		JZ(LabelRef("last"))
	}
	Label("turn")
	emitTurn(all...)
	DECQ(turns)
	JNZ(LabelRef("turn"))
	Label("last")
	if len(all) > 1 {
		emitTurn(all[1])
	}
}

// emitTurn emits one turn of each group: four quads of terms, group after
// group, and the steps to the next 16 terms.
func emitTurn(halves ...*columnGroup) {
	for quad := range 4 {
		for _, h := range halves {
			h.quad(quad)
		}
	}
	for _, h := range halves {
		for _, r := range []reg.Register{h.low, h.low3, h.high, h.high3} {
			ADDQ(Imm(64), r)
		}
	}
}

// newColumnGroup is the group of eight columns from b on. Its sum is loaded from c
// by the caller.
func newColumnGroup(b, bcs, acs reg.Register) *columnGroup {
	h := &columnGroup{
		a:      Load(Param("a"), GP64()),
		acs:    acs,
		low:    b,
		stride: bcs,
		sum:    YMM(),
	}
	h.low3, h.high = third(h.low, bcs), GP64()
	LEAQ(Mem{Base: b, Index: bcs, Scale: 4}, h.high)
	h.high3 = third(h.high, bcs)
	return h
}

// A columnGroup is eight columns: four from low on, of which low3 is the last,
// and four from high on. It goes through a on its own.
type columnGroup struct {
	a, acs, low, low3, high, high3, stride reg.Register
	sum                                    reg.VecVirtual
}

// quad adds the products of four terms. It transposes squares of four columns
// and four terms, one in each half of a vector, so that a vector has one term
// of all eight columns; then it multiplies each by a broadcast element of a.
func (h *columnGroup) quad(quad int) {
	var r [4]reg.VecVirtual
	for k := range r {
		r[k] = YMM()
		VBROADCASTF128(
			at(h.low, h.low3, h.stride, k, 16*quad),
			r[k],
		)
		VINSERTF128(
			Imm(1),
			at(h.high, h.high3, h.stride, k, 16*quad),
			r[k], r[k],
		)
	}
	var u [4]reg.VecVirtual // of columns 0, 1 and 2, 3: terms 0, 1 and terms 2, 3
	for k := range 2 {
		u[2*k], u[2*k+1] = YMM(), YMM()
		VUNPCKLPS(r[2*k+1], r[2*k], u[2*k])
		VUNPCKHPS(
			r[2*k+1],
			r[2*k],
			u[2*k+1],
		)
	}
	for t := range 4 {
		x, term := YMM(), YMM()
		VBROADCASTSS(Mem{Base: h.a}, x)
		ADDQ(h.acs, h.a)
		VSHUFPS(
			Imm(uint64(0x44+0xaa*(t%2))),
			u[2+t/2],
			u[t/2], term,
		)
		VFMADD231PS(x, term, h.sum)
	}
}
