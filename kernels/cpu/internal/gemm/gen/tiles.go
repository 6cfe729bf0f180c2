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
	numberCX = 1
	numberDX = 2
	numberBX = 3
	numberSI = 6
	numberDI = 7
)

// atTile is a tile in memory: the address of its first row, and the register of the
// bytes between rows.
func atTile(tile, base, stride, disp byte) []byte {
	const sib, disp32 = 4, 0x80
	if disp == 0 {
		return []byte{tile<<3 | sib, stride<<3 | base}
	}
	return []byte{disp32 | tile<<3 | sib, stride<<3 | base, 0, disp, 0, 0} // 256·disp
}

// Every row of a tile is a cache line. With the bytes between rows in a register, a tile
// of c is rows of 16 columns, and one of scratch is a kibibyte.
//
// tileLoad, tileStore, tileZero and multiply are TILELOADD, TILESTORED, TILEZERO and
// one of TDPBSSD, TDPBSUD, TDPBUSD, TDPBUUD, TDPBF16PS and TDPFP16PS; disp is in units of 256 bytes.
func tileLoad(tile, base, stride, disp byte) {
	encoded(0, prefixF2, 0x4b, atTile(tile, base, stride, disp)...)
}

func tileStore(tile, base, stride byte) {
	encoded(0, prefixF3, 0x4b, atTile(tile, base, stride, 0)...)
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

// emit emits the kernel: blocks of 32 rows of a, each of which are
// steps of two tiles of 16 rows of 64 bytes of terms, times one panel of b, steps of two
// tiles of 16 lanes of terms, four bytes or two bf16 or f16, and 16 columns, are added to 32 columns of c. The configuration says
// that all eight tiles have 16 rows of 64 bytes. Tiles 0 to 3 are the sums.
func (k tileKernel) emit() {
	TEXT(k.name, NOSPLIT, "func(config *byte, blocks, steps int, a, b, c *byte, crs, how int)")
	Pragma("noescape")
	Load(Param("config"), reg.RAX)
	encoded(0, prefixNone, 0x49, 0) // LDTILECFG (AX)
	blocks, steps := Load(Param("blocks"), reg.R9), Load(Param("steps"), reg.R11)
	Load(Param("a"), reg.RSI)
	Load(Param("b"), reg.RDI)
	Load(Param("c"), reg.RBX)
	crs, how := Load(Param("crs"), reg.RCX), Load(Param("how"), reg.R10)
	ANDQ(Imm(1), how)
	Label("block")
	// Rows 16 to 31 of c.
	MOVQ(crs, reg.RDX)
	SHLQ(Imm(4), reg.RDX)
	ADDQ(reg.RBX, reg.RDX)
	TESTQ(how, how)
	JNZ(LabelRef("fresh"))
	tileLoad(0, numberBX, numberCX, 0)
	tileLoad(2, numberDX, numberCX, 0)
	ADDQ(Imm(64), reg.RBX)
	ADDQ(Imm(64), reg.RDX)
	tileLoad(1, numberBX, numberCX, 0)
	tileLoad(3, numberDX, numberCX, 0)
	SUBQ(Imm(64), reg.RBX)
	SUBQ(Imm(64), reg.RDX)
	JMP(LabelRef("begin"))
	Label("fresh")
	for tile := range byte(4) {
		tileZero(tile)
	}
	Label("begin")
	// Four products of two tiles of a and two of b: each tile is read once and used
	// twice, and no two products that follow each other add to the same sums.
	MOVQ(crs, reg.R12) // AMX instructions name CX as the stride
	MOVQ(steps, reg.R8)
	MOVQ(U32(64), reg.RCX)
	Label("step")
	tileLoad(4, numberSI, numberCX, 0)
	tileLoad(6, numberDI, numberCX, 0)
	tileLoad(7, numberDI, numberCX, 4)
	k.multiply(0, 4, 6)
	tileLoad(5, numberSI, numberCX, 4)
	k.multiply(1, 4, 7)
	k.multiply(2, 5, 6)
	k.multiply(3, 5, 7)
	ADDQ(U32(2048), reg.RSI)
	ADDQ(U32(2048), reg.RDI)
	DECQ(reg.R8)
	JNZ(LabelRef("step"))
	MOVQ(reg.R12, crs)
	tileStore(0, numberBX, numberCX)
	tileStore(2, numberDX, numberCX)
	ADDQ(Imm(64), reg.RBX)
	ADDQ(Imm(64), reg.RDX)
	tileStore(1, numberBX, numberCX)
	tileStore(3, numberDX, numberCX)
	// b goes back to its first step, c on by 32 rows.
	MOVQ(steps, reg.R8)
	SHLQ(Imm(11), reg.R8)
	SUBQ(reg.R8, reg.RDI)
	SUBQ(Imm(64), reg.RDX)
	MOVQ(crs, reg.RBX)
	SHLQ(Imm(4), reg.RBX)
	ADDQ(reg.RDX, reg.RBX)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	encoded(0, prefixNone, 0x49, 0xc0) // TILERELEASE
	RET()
}

// What follows packs tiles with AVX2, which every processor with AMX has. Values are of
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

// packTerms makes a tile of rows whose terms are contiguous: the low bytes of 64 values
// of 32 bits of each row.
func packTerms() {
	TEXT("packTerms", NOSPLIT, "func(rows int, to, from *byte, fromStride int)")
	Pragma("noescape")
	n := Load(Param("rows"), GP64())
	to := Load(Param("to"), GP64())
	from := Load(Param("from"), GP64())
	fs := Load(Param("fromStride"), GP64())
	low := lowBytes()
	TESTQ(n, n)
	JLE(LabelRef("done"))
	Label("row")
	for half := range 2 {
		v := packBytes(from, 128*half, low)
		VMOVDQU(v, Mem{Base: to, Disp: 32 * half})
	}
	ADDQ(fs, from)
	ADDQ(Imm(64), to)
	DECQ(n)
	JNZ(LabelRef("row"))
	Label("done")
	VZEROUPPER()
	RET()
}

// packQuads makes a tile of quads of terms of 16 contiguous columns: each lane has the
// low bytes of four rows.
func packQuads() {
	TEXT("packQuads", NOSPLIT, "func(quads int, to, from *byte, fromStride int)")
	Pragma("noescape")
	n := Load(Param("quads"), GP64())
	to := Load(Param("to"), GP64())
	from := Load(Param("from"), GP64())
	fs := Load(Param("fromStride"), GP64())
	low := lowBytes()
	TESTQ(n, n)
	JLE(LabelRef("done"))
	Label("quad")
	from2 := GP64()
	LEAQ(Mem{Base: from, Index: fs, Scale: 2}, from2)
	for half := range 2 {
		sum := quadOf(from, from2, fs, 32*half, low)
		VMOVDQU(sum, Mem{Base: to, Disp: 32 * half})
	}
	LEAQ(Mem{Base: from2, Index: fs, Scale: 2}, from)
	ADDQ(Imm(64), to)
	DECQ(n)
	JNZ(LabelRef("quad"))
	Label("done")
	VZEROUPPER()
	RET()
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
