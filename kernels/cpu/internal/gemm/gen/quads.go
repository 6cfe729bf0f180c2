package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Products of bytes in vectors. VPDPBUSD adds four products of unsigned and signed bytes
// to a lane of 32 bits, which wraps. Where both operands are signed, or both unsigned, a is
// packed with its sign bit turned over, which adds 128 to each element or subtracts it;
// sums begin with a row (start) that takes 128 times the sums of the columns of b away
// again. AVX512-VNNI has the instruction for 512 bits; for 256 bits it has a VEX encoding,
// which Go's assembler does not know (AVX-VNNI).

// vexQuads is VPDPBUSD in its VEX encoding (Intel SDM, volume 2: VEX.256.66.0F38.W0 50
// /r): C4; the complements of the high bits of acc and signed, and map 2; the complement
// of unsigned, L and the prefix; the opcode; ModRM.
func vexQuads(signed, unsigned, acc reg.Register) {
	high, vvvv, modRM := fields(signed, unsigned, acc)
	emitBytes([]byte{
		0xc4,
		high | 0x40 | 2,
		vvvv | 4 | prefix66,
		0x50,
		modRM,
	})
}

// start adds the row that sums begin with to all rows of c.
func (g *panelCode) start() {
	from := Load(Param("start"), GP64())
	for v, y := range g.y {
		VMOVUPS(Mem{Base: from, Disp: v * g.bytes()}, y)
		for r := range g.panel.rows {
			acc := g.acc[r*g.vecs+v]
			VPADDD(y, acc, acc)
		}
	}
}

// quadTerms packs 32 contiguous values of 32 bits a turn to their low bytes, with the
// bits of flip turned over.
func quadTerms() {
	TEXT("quadTerms", NOSPLIT, "func(turns int, to, from *byte, flip *byte)")
	Pragma("noescape")
	n := Load(Param("turns"), GP64())
	to := Load(Param("to"), GP64())
	from := Load(Param("from"), GP64())
	low, flip := lowBytes(), broadcastFlip()
	TESTQ(n, n)
	JLE(LabelRef("done"))
	Label("turn")
	v := packBytes(from, 0, low)
	VPXOR(flip, v, v)
	VMOVDQU(v, Mem{Base: to})
	ADDQ(Imm(128), from)
	ADDQ(Imm(32), to)
	DECQ(n)
	JNZ(LabelRef("turn"))
	Label("done")
	VZEROUPPER()
	RET()
}

// broadcastFlip is the four bytes at flip in all lanes.
func broadcastFlip() reg.VecVirtual {
	at, v := Load(Param("flip"), GP64()), YMM()
	VPBROADCASTD(Mem{Base: at}, v)
	return v
}

// quadRows packs quads of rows of 16 contiguous columns: each lane has the low bytes of
// four rows, with the bits of flip turned over.
func quadRows() {
	TEXT("quadRows", NOSPLIT, "func(quads int, to *byte, toStride int, from *byte, fromStride int, flip *byte)")
	Pragma("noescape")
	n := Load(Param("quads"), GP64())
	to := Load(Param("to"), GP64())
	ts := Load(Param("toStride"), GP64())
	from := Load(Param("from"), GP64())
	fs := Load(Param("fromStride"), GP64())
	low, flip := lowBytes(), broadcastFlip()
	TESTQ(n, n)
	JLE(LabelRef("done"))
	Label("quad")
	from2 := GP64()
	LEAQ(Mem{Base: from, Index: fs, Scale: 2}, from2)
	for half := range 2 {
		sum := quadOf(from, from2, fs, 32*half, low)
		VPXOR(flip, sum, sum)
		VMOVDQU(sum, Mem{Base: to, Disp: 32 * half})
	}
	LEAQ(Mem{Base: from2, Index: fs, Scale: 2}, from)
	ADDQ(ts, to)
	DECQ(n)
	JNZ(LabelRef("quad"))
	Label("done")
	VZEROUPPER()
	RET()
}

// quadSums adds up the bytes, with the bits of flip turned over and then unsigned, of each
// lane of 64 bytes of so many quads: 16 sums of 32 bits.
func quadSums() {
	TEXT("quadSums", NOSPLIT, "func(quads int, to *byte, from *byte, fromStride int, flip *byte)")
	Pragma("noescape")
	n := Load(Param("quads"), GP64())
	to := Load(Param("to"), GP64())
	from := Load(Param("from"), GP64())
	fs := Load(Param("fromStride"), GP64())
	flip := broadcastFlip()
	bytes, words := YMM(), YMM() // of ones
	VPCMPEQD(words, words, words)
	VPSRLW(Imm(15), words, words)
	VPACKUSWB(words, words, bytes)
	sums := [2]reg.VecVirtual{YMM(), YMM()}
	for _, s := range sums {
		VPXOR(s, s, s)
	}
	TESTQ(n, n)
	JLE(LabelRef("done"))
	Label("quad")
	for half, s := range sums {
		v := YMM()
		VPXOR(Mem{Base: from, Disp: 32 * half}, flip, v)
		VPMADDUBSW(bytes, v, v) // 510 at most
		VPMADDWD(words, v, v)
		VPADDD(v, s, s)
	}
	ADDQ(fs, from)
	DECQ(n)
	JNZ(LabelRef("quad"))
	Label("done")
	for half, s := range sums {
		VMOVDQU(s, Mem{Base: to, Disp: 32 * half})
	}
	VZEROUPPER()
	RET()
}

// byteTerms copies 32 contiguous bytes a turn, with the bits of flip turned over. Terms of
// a row that lie in memory as bytes are quads already.
func byteTerms() {
	TEXT("byteTerms", NOSPLIT, "func(turns int, to, from *byte, flip *byte)")
	Pragma("noescape")
	n := Load(Param("turns"), GP64())
	to := Load(Param("to"), GP64())
	from := Load(Param("from"), GP64())
	flip := broadcastFlip()
	TESTQ(n, n)
	JLE(LabelRef("done"))
	Label("turn")
	v := YMM()
	VPXOR(Mem{Base: from}, flip, v)
	VMOVDQU(v, Mem{Base: to})
	ADDQ(Imm(32), from)
	ADDQ(Imm(32), to)
	DECQ(n)
	JNZ(LabelRef("turn"))
	Label("done")
	VZEROUPPER()
	RET()
}

// byteRows packs quads of rows of 16 contiguous columns of bytes, with the bits of flip
// turned over: bytes of two rows in turn, then words of two such. It has the shape of
// quadRows, which takes the low bytes of values of 32 bits, so that panels are packed by
// either in the same way. A row of a panel of 32 columns is two calls.
func byteRows() {
	TEXT("byteRows", NOSPLIT, "func(quads int, to *byte, toStride int, from *byte, fromStride int, flip *byte)")
	Pragma("noescape")
	n := Load(Param("quads"), GP64())
	to := Load(Param("to"), GP64())
	ts := Load(Param("toStride"), GP64())
	from := Load(Param("from"), GP64())
	fs := Load(Param("fromStride"), GP64())
	// The bytes of flip are equal, so that any of its lanes do.
	flip := broadcastFlip().AsX()
	TESTQ(n, n)
	JLE(LabelRef("done"))
	Label("quad")
	from2 := GP64()
	LEAQ(Mem{Base: from, Index: fs, Scale: 2}, from2)
	// A row is one load of 16 bytes; the flip serves it as it did one of four times as many.
	var rows, pairs [4]reg.VecVirtual
	for k, base := range []reg.Register{from, from, from2, from2} {
		m := Mem{Base: base}
		if k%2 == 1 {
			m.Index, m.Scale = fs, 1
		}
		// An operand in memory may lie anywhere, with this encoding.
		rows[k] = XMM()
		VPXOR(m, flip, rows[k])
	}
	// The first eight columns, then the last eight: each half of the rows gives a vector of
	// 16 bytes, two of which are joined below.
	for k := range 2 {
		pairs[2*k], pairs[2*k+1] = XMM(), XMM()
		interleave := VPUNPCKLBW
		if k == 1 {
			interleave = VPUNPCKHBW
		}
		// Rows 0 and 1 in turn are the low words of quads, rows 2 and 3 the high ones.
		interleave(rows[1], rows[0], pairs[2*k])
		interleave(rows[3], rows[2], pairs[2*k+1])
	}
	// Four quads are a vector, of columns that follow each other in the panel.
	for k := range 4 {
		v := XMM()
		interleave := VPUNPCKLWD
		if k%2 == 1 {
			interleave = VPUNPCKHWD
		}
		interleave(pairs[k/2*2+1], pairs[k/2*2], v)
		VMOVDQU(v, Mem{Base: to, Disp: 16 * k})
	}
	LEAQ(Mem{Base: from2, Index: fs, Scale: 2}, from)
	ADDQ(ts, to)
	DECQ(n)
	JNZ(LabelRef("quad"))
	Label("done")
	VZEROUPPER()
	RET()
}
