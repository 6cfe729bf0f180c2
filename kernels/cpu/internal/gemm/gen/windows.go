package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// packRuns copies rows that consist of the same runs of bytes, 32 bytes at a time, with the
// bits of flip turned over. An entry of list is where a run begins behind from, how many
// vectors it takes, and its bytes: the next run is written that far on, over what the last
// vector had too much.
func packRuns() {
	TEXT("packRuns", NOSPLIT, "func(rows, runs int, list, to *byte, toStride int, from *byte, fromStride int, flip *byte)")
	Pragma("noescape")
	rows := Load(Param("rows"), GP64())
	to := Load(Param("to"), GP64())
	ts := Load(Param("toStride"), GP64())
	from := Load(Param("from"), GP64())
	fs := Load(Param("fromStride"), GP64())
	flip := broadcastFlip()
	TESTQ(rows, rows)
	JLE(LabelRef("done"))
	// Each row reads the list from its beginning.
	Label("row")
	list := Load(Param("list"), GP64())
	n := Load(Param("runs"), GP64())
	at := GP64()
	MOVQ(to, at)
	Label("run")
	// Entries are three integers of eight bytes.
	source, target, vectors := GP64(), GP64(), GP64()
	MOVQ(Mem{Base: list}, source)
	ADDQ(from, source)
	MOVQ(at, target)
	MOVQ(Mem{Base: list, Disp: 8}, vectors)
	Label("vector")
	v := YMM()
	VPXOR(Mem{Base: source}, flip, v)
	VMOVDQU(v, Mem{Base: target})
	ADDQ(Imm(32), source)
	ADDQ(Imm(32), target)
	DECQ(vectors)
	JNZ(LabelRef("vector"))
	ADDQ(Mem{Base: list, Disp: 16}, at)
	ADDQ(Imm(24), list)
	DECQ(n)
	JNZ(LabelRef("run"))
	// The next row.
	ADDQ(ts, to)
	ADDQ(fs, from)
	DECQ(rows)
	JNZ(LabelRef("row"))
	Label("done")
	VZEROUPPER()
	RET()
}
