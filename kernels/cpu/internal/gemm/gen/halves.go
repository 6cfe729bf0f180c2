package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Products of bf16 and f16, which lie as f32 in memory: they are rounded to the nearest, ties to
// even, as they are packed, which changes nothing of what is that already.

// multiplyBF16 is VDPBF16PS of 512 bits (AVX512_BF16; Intel SDM, volume 2:
// EVEX.512.F3.0F38.W0 52 /r): 62; the complements of the high bits of registers, and map
// 2; vvvv, a bit that is on, and the prefix; 512 bits and the high bit of vvvv, without a mask; the
// opcode; ModRM.
func multiplyBF16(y, x, acc reg.Register) {
	high, vvvv, low, modRM := wideFields(y, x, acc)
	emitBytes([]byte{
		0x62,
		high | 2,
		vvvv | 4 | prefixF3,
		low | 0x40,
		0x52,
		modRM,
	})
}

// A bf16Rounding is the constants of rounding vectors of f32 to bf16.
type bf16Rounding struct {
	one, half, quiet reg.VecVirtual
}

// newBF16Rounding makes the constants: 1, 0x7fff and the bit that makes a NaN quiet.
func newBF16Rounding() (c bf16Rounding) {
	c.one, c.half, c.quiet = YMM(), YMM(), YMM()
	VPCMPEQD(c.one, c.one, c.one)
	VPSRLD(Imm(17), c.one, c.half)
	VPSRLD(Imm(31), c.one, c.one)
	VPSLLD(Imm(22), c.one, c.quiet)
	return c
}

// round rounds eight values to bf16 in the low halves of lanes: half a unit in the last
// place is added, less one where the last bit is even, and carries into the exponent. A
// NaN becomes quiet and keeps its high bits.
func (c bf16Rounding) round(m Mem) reg.VecVirtual {
	v, sum, nan := YMM(), YMM(), YMM()
	VMOVUPS(m, v)
	VPSRLD(Imm(16), v, sum)
	VPAND(c.one, sum, sum)
	VPADDD(c.half, sum, sum)
	VPADDD(v, sum, sum)
	VCMPPS(Imm(3), v, v, nan) // unordered
	VPOR(c.quiet, v, v)
	VBLENDVPS(nan, v, sum, v)
	VPSRLD(Imm(16), v, v)
	return v
}

// pairsOfRows is a routine whose body stores rows from and from+fs as one at to, as often as
// there are pairs. What start makes is there for all of them.
func pairsOfRows(
	name string, start func(), body func(to, from, fs reg.Register),
) {
	TEXT(name, NOSPLIT, "func(pairs int, to *byte, toStride int, from *byte, fromStride int)")
	Pragma("noescape")
	n := Load(Param("pairs"), GP64())
	to := Load(Param("to"), GP64())
	ts := Load(Param("toStride"), GP64())
	from := Load(Param("from"), GP64())
	fs := Load(Param("fromStride"), GP64())
	start()
	TESTQ(n, n)
	JLE(LabelRef("done"))
	Label("pair")
	body(to, from, fs)
	next := Mem{Base: from, Index: fs, Scale: 2}
	LEAQ(next, from)
	ADDQ(ts, to)
	DECQ(n)
	JNZ(LabelRef("pair"))
	Label("done")
	VZEROUPPER()
	RET()
}

// pairRowsBF16 joins rows 2q and 2q+1 of 16 columns: each lane has the bf16 of both, the
// first in its low half.
func pairRowsBF16() {
	var c bf16Rounding
	start := func() { c = newBF16Rounding() }
	pairsOfRows("pairRowsBF16", start, func(to, from, fs reg.Register) {
		for half := range 2 {
			m := Mem{Base: from, Disp: 32 * half}
			low := c.round(m)
			m.Index, m.Scale = fs, 1
			high := c.round(m)
			VPSLLD(Imm(16), high, high)
			VPOR(high, low, low)
			joined := Mem{Base: to, Disp: 32 * half}
			VMOVDQU(low, joined)
		}
	})
}

// pairTermsBF16 makes 16 contiguous terms a turn bf16.
func pairTermsBF16() {
	TEXT("pairTermsBF16", NOSPLIT, "func(turns int, to, from *byte)")
	Pragma("noescape")
	n := Load(Param("turns"), GP64())
	to := Load(Param("to"), GP64())
	from := Load(Param("from"), GP64())
	c := newBF16Rounding()
	TESTQ(n, n)
	JLE(LabelRef("done"))
	Label("turn")
	low := c.round(Mem{Base: from})
	high := c.round(Mem{Base: from, Disp: 32})
	// Lanes hold 16 bits: saturation changes nothing.
	VPACKUSDW(high, low, low)
	VPERMQ(Imm(0xd8), low, low)
	VMOVDQU(low, Mem{Base: to})
	ADDQ(Imm(64), from)
	ADDQ(Imm(32), to)
	DECQ(n)
	JNZ(LabelRef("turn"))
	Label("done")
	VZEROUPPER()
	RET()
}

// wordRows joins rows 2q and 2q+1 of 16 columns of words, which are bf16 as it lies in
// memory: each lane has the words of both, the first in its low half. Nothing is rounded,
// so that a NaN stays as it is, and the product makes it quiet.
func wordRows() {
	start := func() {}
	pairsOfRows("wordRows", start, func(to, from, fs reg.Register) {
		x, y, low, high := YMM(), YMM(), YMM(), YMM()
		// 16 words are a vector of 256 bits, and 16 pairs are two.
		VMOVDQU(Mem{Base: from}, x)
		VMOVDQU(Mem{Base: from, Index: fs, Scale: 1}, y)
		// Lanes of 128 bits have columns 0 to 3 and 8 to 11, and the others.
		VPUNPCKLWD(y, x, low)
		VPUNPCKHWD(y, x, high)
		VPERM2I128(Imm(0x20), high, low, x)
		VPERM2I128(Imm(0x31), high, low, y)
		VMOVDQU(x, Mem{Base: to})
		VMOVDQU(y, Mem{Base: to, Disp: 32})
	})
}

// pairRowsF16 is pairRowsBF16 for f16; VCVTPS2PH rounds to the nearest, ties to even, and
// makes a NaN quiet.
func pairRowsF16() {
	start := func() {}
	pairsOfRows("pairRowsF16", start, func(to, from, fs reg.Register) {
		for half := range 2 {
			m := Mem{Base: from, Disp: 32 * half}
			x := roundF16(m)
			// The next row.
			m.Index, m.Scale = fs, 1
			y := roundF16(m)
			// Pairs of columns 0 to 3, and 4 to 7.
			low, high := XMM(), XMM()
			VPUNPCKLWD(y, x, low)
			VPUNPCKHWD(y, x, high)
			at := Mem{Base: to, Disp: 32 * half}
			VMOVDQU(low, at)
			at.Disp += 16
			VMOVDQU(high, at)
		}
	})
}

// roundF16 rounds eight values to f16: immediate 0 is to the nearest, ties to even, whatever
// MXCSR says.
func roundF16(m Mem) reg.VecVirtual {
	x, v := XMM(), YMM()
	VMOVUPS(m, v)
	VCVTPS2PH(Imm(0), v, x)
	return x
}

// pairTermsF16 makes 16 contiguous terms a turn f16: two vectors of eight, which lie behind
// each other as their terms do.
func pairTermsF16() {
	TEXT("pairTermsF16", NOSPLIT, "func(turns int, to, from *byte)")
	Pragma("noescape")
	n := Load(Param("turns"), GP64())
	to := Load(Param("to"), GP64())
	from := Load(Param("from"), GP64())
	TESTQ(n, n)
	JLE(LabelRef("done"))
	Label("turn")
	for half := range 2 {
		x := roundF16(Mem{Base: from, Disp: 32 * half})
		at := Mem{Base: to, Disp: 16 * half}
		VMOVDQU(x, at)
	}
	ADDQ(Imm(64), from)
	ADDQ(Imm(32), to)
	DECQ(n)
	JNZ(LabelRef("turn"))
	Label("done")
	VZEROUPPER()
	RET()
}

// cpuid is EAX of CPUID for a leaf (EAX) and a part of it (ECX), which the processor has to
// have: EAX of leaf 0 is the last leaf, that of leaf 7 its last part.
func cpuid() {
	TEXT("cpuid", NOSPLIT, "func(leaf, part uint32) (eax uint32)")
	Load(Param("leaf"), reg.EAX)
	Load(Param("part"), reg.ECX)
	CPUID()
	Store(reg.EAX, ReturnIndex(0))
	RET()
}
