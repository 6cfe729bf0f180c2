package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Instructions of AMX, which neither avo nor the assembler of Go has, are written as
// their bytes (Intel SDM, volume 2): C4, E2 (map 0F38, no extended registers), W, the
// complement of vvvv, L and the prefix, the opcode, and the operands.
const (
	prefixNone = 0
	prefix66   = 1
	prefixF3   = 2
	prefixF2   = 3
)

// encoded emits an instruction of AMX: the register vvvv, 0 for none, the prefix, the
// opcode, and what follows it, ModRM first. The emulator of package gemm decodes the
// bytes again, and a test holds them against objdump.
func encoded(vvvv, prefix, opcode byte, operands ...byte) {
	code := []byte{0xc4, 0xe2, ^vvvv<<3&0x78 | prefix, opcode}
	emitBytes(append(code, operands...))
}

// Numbers of the registers that AMX instructions name, in ModRM and SIB. No other
// instruction may move them, so that the kernel names all its registers.
const (
	numberAX = 0
	numberCX = 1
	numberDX = 2
	numberSI = 6
	numberDI = 7
)

// A tilePlace is where a tile is in memory: the registers of the address of its first row
// and of the bytes between rows, and bytes that are added. Every row is 64 bytes.
type tilePlace struct{ base, stride, disp byte }

// operand is ModRM and what follows it.
func (p tilePlace) operand(tile byte) []byte {
	const sib, disp32 = 4, 0x80
	if p.disp == 0 {
		return []byte{tile<<3 | sib, p.stride<<3 | p.base}
	}
	return []byte{disp32 | tile<<3 | sib, p.stride<<3 | p.base, p.disp, 0, 0, 0}
}

// load, store, tileZero and multiply are TILELOADD, TILESTORED, TILEZERO and one of
// TDPBSSD, TDPBSUD, TDPBUSD, TDPBUUD, TDPBF16PS and TDPFP16PS.
func (p tilePlace) load(tile byte) {
	encoded(0, prefixF2, 0x4b, p.operand(tile)...)
}

func (p tilePlace) store(tile byte) {
	encoded(0, prefixF3, 0x4b, p.operand(tile)...)
}

func tileZero(tile byte) { encoded(0, prefixF2, 0x49, 0xc0|tile<<3) }

func (k tileKernel) multiply(sum, a, b byte) {
	encoded(b, k.prefix, k.opcode, 0xc0|sum<<3|a)
}

// A tileKernel is a kernel of AMX, which is its instruction.
type tileKernel struct {
	name           string
	prefix, opcode byte
}

// tileKernels are the kernels of bytes by the signs of their operands, of a, then of b,
// signed or unsigned, and those of bf16 and f16.
var tileKernels = []tileKernel{
	{"multiplyTilesSS", prefixF2, 0x5e},
	{"multiplyTilesSU", prefixF3, 0x5e},
	{"multiplyTilesUS", prefix66, 0x5e},
	{"multiplyTilesUU", prefixNone, 0x5e},
	{"multiplyTilesBF16", prefixF3, 0x5c},
	{"multiplyTilesF16", prefixF2, 0x5c},
}

// Fields of what fetch points to: rows of c that a step prefetches, the bytes from a block to
// them and between them; lines of something else that it does, where they begin, the bytes
// between them, and those that are added after a step and after a panel.
const (
	fetchRows = 8 * iota
	fetchNext
	fetchRow
	fetchLines
	fetchAhead
	fetchStep
	fetchTurn
	fetchPanel
)

// emit emits the kernel for blocks of up to so many tiles of rows, one or two: blocks of a,
// whose rows have steps of 64 bytes of terms, times panels of b, next bytes apart, 16 rows of
// 128 bytes a step, each of them lanes of 32 bits of terms of 32 columns, are added to 32 columns
// of c for each panel.
// The configuration says how many rows there are; tiles 0 and 1 are the sums of the first
// 16, 2 and 3 those of the others. A step prefetches what fetch says.
func (k tileKernel) emit(tall int) {
	name := k.name
	if tall == 1 {
		name += "Low"
	}
	TEXT(name, NOSPLIT, "func(config *byte, panels, blocks, steps int, a *byte, ars int, b *byte, next int, c *byte, crs int, fetch *byte, how int)")
	Pragma("noescape")
	Load(Param("config"), reg.RAX)
	encoded(0, prefixNone, 0x49, 0) // LDTILECFG (AX)
	panels, c := Load(Param("panels"), reg.RBX), Load(Param("c"), reg.R13)
	Load(Param("fetch"), reg.R11)
	MOVQ(Mem{Base: reg.R11, Disp: fetchAhead}, reg.R10)
	Load(Param("b"), reg.RDI)
	Label("panel")
	blocks := Load(Param("blocks"), reg.R9)
	a := Load(Param("a"), reg.R12)
	Label("block")
	// A fresh c is not read.
	how := Load(Param("how"), reg.R8)
	ANDQ(Imm(1), how)
	JNZ(LabelRef("fresh"))
	k.sums(tall, tilePlace.load)
	JMP(LabelRef("begin"))
	Label("fresh")
	for tile := range byte(2 * tall) {
		tileZero(tile)
	}
	Label("begin")
	steps := Load(Param("steps"), reg.R8)
	rowsAt(a, reg.RSI, reg.RAX, "ars")
	MOVQ(U32(128), reg.RDX)
	MOVQ(Mem{Base: reg.R11, Disp: fetchNext}, reg.R14)
	ADDQ(c, reg.R14)
	Label("step")
	k.step(tall)
	prefetches()
	ADDQ(U32(64), reg.RSI)
	ADDQ(U32(64), reg.RAX)
	ADDQ(U32(2048), reg.RDI)
	DECQ(steps)
	JNZ(LabelRef("step"))
	k.sums(tall, tilePlace.store)
	// c goes on by 32 rows, and so does a; b goes back to its first step.
	SHLQ(Imm(5), reg.RCX)
	ADDQ(reg.RCX, c)
	Load(Param("ars"), reg.RCX)
	SHLQ(Imm(5), reg.RCX)
	ADDQ(reg.RCX, a)
	Load(Param("steps"), reg.R8)
	SHLQ(Imm(11), reg.R8)
	SUBQ(reg.R8, reg.RDI)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	// c goes back, and on by 32 columns.
	Load(Param("blocks"), reg.R8)
	Load(Param("crs"), reg.RCX)
	IMULQ(reg.RCX, reg.R8)
	SHLQ(Imm(5), reg.R8)
	SUBQ(reg.R8, c)
	ADDQ(U32(128), c)
	Load(Param("next"), reg.R8)
	ADDQ(reg.R8, reg.RDI)
	ADDQ(Mem{Base: reg.R11, Disp: fetchPanel}, reg.R10)
	DECQ(panels)
	JNZ(LabelRef("panel"))
	encoded(0, prefixNone, 0x49, 0xc0) // TILERELEASE
	RET()
}

// prefetches emits what a step prefetches to the second cache: two lines of each of some rows
// of c, from R14 on, and lines from R10 on, as R11 says.
func prefetches() {
	said := func(field int) Mem { return Mem{Base: reg.R11, Disp: field} }
	some := func(name string, count int, body func()) {
		MOVQ(said(count), reg.R15)
		TESTQ(reg.R15, reg.R15)
		JZ(LabelRef("no" + name))
		Label(name)
		body()
		DECQ(reg.R15)
		JNZ(LabelRef(name))
		Label("no" + name)
	}
	some("row", fetchRows, func() {
		PREFETCHT1(Mem{Base: reg.R14})
		PREFETCHT1(Mem{Base: reg.R14, Disp: 64})
		ADDQ(said(fetchRow), reg.R14)
	})
	some("line", fetchLines, func() {
		PREFETCHT1(Mem{Base: reg.R10})
		ADDQ(said(fetchStep), reg.R10)
	})
	ADDQ(said(fetchTurn), reg.R10)
}

// rowsAt makes low and high the addresses of rows 0 and 16 from a place on, and CX the
// bytes between rows, which are a parameter.
func rowsAt(place, low, high reg.Register, stride string) {
	Load(Param(stride), reg.RCX)
	MOVQ(place, low)
	MOVQ(reg.RCX, high)
	SHLQ(Imm(4), high)
	ADDQ(low, high)
}

// sums loads or stores the sums.
func (k tileKernel) sums(tall int, move func(at tilePlace, tile byte)) {
	rowsAt(reg.R13, reg.RAX, reg.RDX, "crs")
	for tile := range byte(2 * tall) {
		base := []byte{numberAX, numberDX}[tile/2]
		move(tilePlace{base, numberCX, tile % 2 * 64}, tile)
	}
}

// step multiplies a step. Each tile is read once and used twice, and no two products that
// follow each other add to the same sums.
func (k tileKernel) step(tall int) {
	tilePlace{numberSI, numberCX, 0}.load(4)
	tilePlace{numberDI, numberDX, 0}.load(6)
	tilePlace{numberDI, numberDX, 64}.load(7)
	k.multiply(0, 4, 6)
	if tall == 2 {
		tilePlace{numberAX, numberCX, 0}.load(5)
	}
	k.multiply(1, 4, 7)
	if tall == 2 {
		k.multiply(2, 5, 6)
		k.multiply(3, 5, 7)
	}
}

// What follows packs values of
// 32 bits, as everywhere in a program of integers, of which only the low byte counts.

// lowBytes is a vector with the low byte of each lane of 32 bits on.
func lowBytes() reg.VecVirtual {
	v := YMM()
	VPCMPEQD(v, v, v)
	VPSRLD(Imm(24), v, v)
	return v
}

// packBytes is the low bytes of 32 values of 32 bits, disp bytes behind from.
func packBytes(from reg.Register, disp int, low reg.VecVirtual) reg.VecVirtual {
	var v [4]reg.VecVirtual
	for k := range v {
		v[k] = YMM()
		VPAND(Mem{Base: from, Disp: disp + 32*k}, low, v[k])
	}
	// No value is greater than 255: saturation changes nothing.
	VPACKUSDW(v[1], v[0], v[0])
	VPACKUSDW(v[3], v[2], v[2])
	VPACKUSWB(v[2], v[0], v[0])
	// Lanes 0 and 4 of 32 bits are the first eight terms, and so on.
	VPERMQ(Imm(0xd8), v[0], v[0])
	VPSHUFD(Imm(0xd8), v[0], v[0])
	return v[0]
}

// quadOf joins the low bytes of four rows of eight values each, two of them from each of
// two addresses on.
func quadOf(from, from2, stride reg.Register, disp int, low reg.VecVirtual) reg.VecVirtual {
	sum := YMM()
	for k := range 4 {
		m := Mem{Base: from, Disp: disp}
		if k >= 2 {
			m.Base = from2
		}
		if k%2 == 1 {
			m.Index, m.Scale = stride, 1
		}
		if k == 0 {
			VPAND(m, low, sum)
			continue
		}
		x := YMM()
		VPAND(m, low, x)
		VPSLLD(Imm(uint64(8*k)), x, x)
		VPOR(x, sum, sum)
	}
	return sum
}
