package vector

import "github.com/tilewright/tilewright/kernels/cpu/internal/amd64"

// Bands of bytes are transposed in blocks that are as wide as a vector: sixteen rows of sixteen
// elements in the low halves of registers, and the sixteen rows after these in the high halves,
// so that a round of interleaving serves both. For the same elements that is half of the
// interleavings of blocks of 16-byte registers, and a quarter of the stores: for 512 bytes a model
// of a Zen 3 (llvm-mca) has 32 cycles and 16 for copies of lines, rather than 64.
//
// The lines of all rows of a group are first copied next to each other. Four blocks read a
// line in turn, and rows that lie a multiple of a page apart share one set of the first cache,
// where no more than eight or twelve lines stay.
//
// s8 8192×4096 takes 0.94 of the time on one thread of an Emerald Rapids and 0.97 on two. Elements
// of two bytes, with eight rows in each half, gain nothing that differs from noise there.

// halvesRows are the rows of the source in a block, halvesCols the elements of each.
const halvesRows, halvesCols = 32, 16

// emitHalves is the block of a band of bytes.
func emitHalves(a *amd64.Assembler, _ bool) error {
	h := halves{Assembler: a, low: amd64.VPUNPCKLBW, high: amd64.VPUNPCKHBW}
	EmitLoadArgs(a)
	h.gather()
	block := a.NewLabel()
	a.Bind(block)
	h.block()
	a.Emit(amd64.ADD, amd64.RSI, amd64.Imm(halvesCols))
	a.Emit(amd64.ADD, amd64.RDX, amd64.Imm(halvesCols*BandStep))
	a.Emit(amd64.SUB, amd64.RAX, amd64.Imm(1))
	a.Emit(amd64.JG, block)
	return nil
}

// halves emits blocks of bytes, whose rows lie at RSI, a line apart, and whose columns go to RDX,
// BandStep apart.
type halves struct {
	*amd64.Assembler
	low, high amd64.Op // interleave elements of halves of vectors
}

// gather copies a line of each row to where lines are gathered, which it leaves in RSI.
func (h *halves) gather() {
	emitLoadArg(h.Assembler, amd64.RCX, bandFromStep)
	emitLoadArg(h.Assembler, amd64.R8, bandGathered)
	h.Emit(amd64.MOV, amd64.R9, amd64.Imm(halvesRows))
	row := h.NewLabel()
	h.Bind(row)
	for half := range 2 {
		y, at := amd64.Y(half), int32(32*half)
		h.Emit(
			amd64.VMOVUPS, y,
			amd64.Mem{Base: amd64.RSI, Disp: at},
		)
		h.Emit(
			amd64.VMOVUPS,
			amd64.Mem{Base: amd64.R8, Disp: at},
			y,
		)
	}
	h.Emit(amd64.ADD, amd64.RSI, amd64.RCX)
	h.Emit(amd64.ADD, amd64.R8, amd64.Imm(LineBytes))
	h.Emit(amd64.SUB, amd64.R9, amd64.Imm(1))
	h.Emit(amd64.JG, row)
	emitLoadArg(h.Assembler, amd64.RSI, bandGathered)
}

// block emits a block. It has one register too few for all of the
// first round, so that the high halves of that wait where the last columns go.
func (h *halves) block() {
	for k := range 8 {
		h.load(14, k)
		h.load(15, k+8)
		h.Emit(
			h.low,
			amd64.Y(k), amd64.Y(14), amd64.Y(15),
		)
		h.Emit(
			h.high,
			amd64.Y(14), amd64.Y(14), amd64.Y(15),
		)
		h.Emit(amd64.VMOVUPS, h.column(8+k), amd64.Y(14))
	}
	for first := 0; first < 16; first += 8 {
		if first > 0 {
			for k := range 8 {
				h.Emit(amd64.VMOVUPS, amd64.Y(k), h.column(8+k))
			}
		}
		h.round(0, 4)
		h.round(8, 2)
		h.round(0, 1)
		h.store(first)
	}
}

// load loads 16 bytes of row k, and of the one sixteen after it, to register r.
func (h *halves) load(r, k int) {
	line := amd64.Mem{Base: amd64.RSI, Disp: int32(k * LineBytes)}
	emitLoadHalves(h.Assembler, amd64.Y(r), line, OffsetBy(line, halvesRows/2*LineBytes), 0)
}

// round interleaves the eight registers from one on, those that are apart by some: what is
// interleaved of the first halves of vectors is in the first of each apart, of the others in
// those behind. The results are in the other eight registers.
func (h *halves) round(from, apart int) {
	to := 8 - from
	for first := 0; first < 8; first += 2 * apart {
		for k := first; k < first+apart; k++ {
			x, y := amd64.Y(from+k), amd64.Y(from+k+apart)
			h.Emit(
				h.low,
				amd64.Y(to+k), x, y,
			)
			h.Emit(
				h.high,
				amd64.Y(to+k+apart), x, y,
			)
		}
	}
}

// column is where a column of a block goes.
func (h *halves) column(n int) amd64.Mem {
	return amd64.Mem{Base: amd64.RDX, Disp: int32(n * BandStep)}
}

// store stores the registers from Y8 on as columns.
func (h *halves) store(first int) {
	for k := range 8 {
		h.Emit(amd64.VMOVUPS, h.column(first+k), amd64.Y(8+k))
	}
}
