package vector

import (
	"math"
	"math/bits"
	"sync"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// The place of the greatest element of a row need not be carried along with each element.
// The row is read in blocks of a few KiB, whose greatest elements take one instruction a
// vector, and half a comparison more for NaN. The block is kept that was the last to exceed
// what came before it: it has the greatest element of the row, and the first one of those
// that are equal. Only this block, which the first cache still has, is searched.

const (
	roundElements = RoundVectors * Lanes // of a round of the loop
	// blockRounds is the rounds of a block: a block is a page, which the caches hold while
	// the end of a block costs a tenth of it.
	blockRounds = 32
	// maxExtremumCall bounds the elements of a call, which does little more than read.
	maxExtremumCall = 1 << 16
)

// An Extremum finds the greatest element of a row, or the least, and its first place.
type Extremum struct {
	row      amd64.Func
	identity float32 // less than any other, or greater
	least    bool
}

// ExtremumArgs is the argument block of an Extremum: Blocks of Rounds rounds from X on. The
// code says in how many lanes there was a NaN, and where there was none the extreme element,
// the bytes from X to the first vector that has it, and the lanes of that which have it.
type ExtremumArgs struct {
	Blocks    int64
	X         *float32
	Rounds    int64
	At        int64
	Value     float32
	Unordered uint32
	Lanes     uint32
}

// ExtremumOf is the search for a maximum or a minimum. It is assembled at first use and stays
// for the life of the process.
func ExtremumOf(op hlo.Opcode) (*Extremum, bool) {
	made, known := extremes[op]
	if !known {
		return nil, false
	}
	x := made()
	return x, x != nil
}

// extremes make them, nil where no machine code runs.
var extremes = map[hlo.Opcode]func() *Extremum{
	hlo.OpMaximum: sync.OnceValue(func() *Extremum {
		return newExtremum(amd64.VMAXPS, -1)
	}),
	hlo.OpMinimum: sync.OnceValue(func() *Extremum {
		return newExtremum(amd64.VMINPS, 1)
	}),
}

// newExtremum assembles a search by an instruction, whose identity is an infinity of a sign.
func newExtremum(op amd64.Op, sign int) *Extremum {
	x := &Extremum{
		identity: float32(math.Inf(sign)),
		least:    sign > 0,
	}
	var ok bool
	if !Supported() {
		return nil
	}
	emit := func(a *amd64.Assembler) error {
		x.emit(a, op)
		return nil
	}
	x.row, ok = LoadRoutine(emit)
	if !ok {
		return nil
	}
	return x
}

// First is the place of the extreme element of a row that has one. It is not known where an
// element is NaN, or where the extreme one is 0, which has two signs.
func (x *Extremum) First(args *ExtremumArgs, row []float32) (at int64, ok bool) {
	s := extremumSearch{Extremum: x, best: x.identity}
	for _, rounds := range []int64{blockRounds, 1} {
		if !s.blocks(args, row, rounds) {
			return 0, false
		}
	}
	for k, v := range row[s.done:] {
		if v != v {
			return 0, false
		}
		s.take(v, s.done+int64(k))
	}
	return s.at, s.best != 0
}

// An extremumSearch is a search that has done some elements.
type extremumSearch struct {
	*Extremum
	done, at int64
	best     float32
}

// take takes an element at a place over if it exceeds those before.
func (s *extremumSearch) take(v float32, at int64) {
	exceeds := v > s.best
	if s.least {
		exceeds = v < s.best
	}
	if exceeds {
		s.best, s.at = v, at
	}
}

// blocks does whole blocks of so many rounds; it reports false where an element is NaN.
func (s *extremumSearch) blocks(args *ExtremumArgs, row []float32, rounds int64) bool {
	unit := rounds * roundElements
	for int64(len(row))-s.done >= unit {
		left := int64(len(row)) - s.done
		n := min(left, maxExtremumCall) / unit
		*args = ExtremumArgs{
			Blocks: n,
			X:      &row[s.done],
			Rounds: rounds,
		}
		s.row.Call(unsafe.Pointer(args))
		if args.Unordered != 0 {
			return false
		}
		lane := bits.TrailingZeros32(args.Lanes)
		s.take(args.Value, s.done+args.At/4+int64(lane))
		s.done += n * unit
	}
	return true
}

// Registers of a search, beside RSI, the next vector, and RAX, the blocks that are left.
const (
	bestBlock  = amd64.R8
	thisBlock  = amd64.R9
	blockCount = amd64.R10 // rounds of a block
	roundsLeft = amd64.RCX
)

// extremumDisp are the places of the fields of ExtremumArgs.
const (
	extremumX         = int32(8)
	extremumRounds    = int32(16)
	extremumAt        = int32(24)
	extremumValue     = int32(32)
	extremumUnordered = int32(36)
	extremumLanes     = int32(40)
)

// emit emits the search. Y0 to Y3 are the partial results of a block, which begin with the
// best one of the blocks before, in all lanes of Y5; Y4 has the lanes with a NaN.
func (x *Extremum) emit(a *amd64.Assembler, op amd64.Op) {
	block := a.NewLabel()
	done := a.NewLabel()
	// Before the first block the best one is what nothing is less than.
	emitField(a, amd64.RAX, 0)
	emitField(a, amd64.RSI, extremumX)
	emitField(a, blockCount, extremumRounds)
	a.Emit(amd64.MOV, bestBlock, amd64.RSI)
	start := a.Splat32(
		math.Float32bits(x.identity),
	)
	a.Emit(amd64.VMOVUPS, amd64.Y5, start)
	emitTwo(a, amd64.VXORPS, amd64.Y4, amd64.Y4)
	a.Bind(block)
	a.Emit(amd64.MOV, thisBlock, amd64.RSI)
	emitExtremumBlock(a, op)
	// The block exceeds those before if its result differs.
	const differs = amd64.Imm(4)
	a.Emit(
		amd64.VCMPPS,
		amd64.Y6, amd64.Y0, amd64.Y5, differs,
	)
	emitTestLanes(a, amd64.Y6)
	a.Emit(amd64.CMOVNE, bestBlock, thisBlock)
	a.Emit(amd64.VMOVAPS, amd64.Y5, amd64.Y0)
	a.Emit(amd64.SUB, amd64.RAX, amd64.Imm(1))
	a.Emit(amd64.JG, block)
	a.Emit(
		amd64.VMOVSS,
		extremumField(extremumValue), amd64.X5,
	)
	emitTestLanes(a, amd64.Y4)
	a.Emit(
		amd64.MOV,
		extremumField(extremumUnordered), amd64.ECX,
	)
	a.Emit(amd64.JNE, done)
	emitFind(a)
	a.Emit(
		amd64.MOV, extremumField(extremumLanes), amd64.ECX,
	)
	a.Emit(
		amd64.SUB, bestBlock, extremumField(extremumX),
	)
	a.Emit(
		amd64.MOV, extremumField(extremumAt), bestBlock,
	)
	a.Bind(done)
}

// extremumField is a field of the argument block.
func extremumField(disp int32) amd64.Mem {
	return amd64.Mem{
		Base: amd64.RDI,
		Disp: disp,
	}
}

// emitField loads a field of the argument block.
func emitField(a *amd64.Assembler, r amd64.Reg, disp int32) {
	a.Emit(amd64.MOV, r, extremumField(disp))
}

// emitTwo emits an operation of a register and another one into the former.
func emitTwo(a *amd64.Assembler, op amd64.Op, x, y amd64.Reg) {
	a.Emit(op, x, x, y)
}

// emitTestLanes sets ECX to the lanes of a vector whose sign is set, and the flags by it.
func emitTestLanes(a *amd64.Assembler, v amd64.Reg) {
	a.Emit(amd64.VMOVMSKPS, amd64.ECX, v)
	a.Emit(amd64.TEST, amd64.ECX, amd64.ECX)
}

// emitExtremumBlock emits a block, whose result is in all lanes of Y0.
func emitExtremumBlock(a *amd64.Assembler, op amd64.Op) {
	for k := range RoundVectors {
		a.Emit(amd64.VMOVAPS, amd64.Y(k), amd64.Y5)
	}
	a.Emit(amd64.MOV, roundsLeft, blockCount)
	round := a.NewLabel()
	a.Align(32)
	a.Bind(round)
	for k := range RoundVectors {
		from := amd64.Mem{
			Base: amd64.RSI,
			Disp: int32(32 * k),
		}
		v := amd64.Y(6 + k)
		a.Emit(amd64.VMOVUPS, v, from)
		emitTwo(a, op, amd64.Y(k), v)
	}
	const unordered = amd64.Imm(3) // one of two lanes has a NaN
	for k := 0; k < RoundVectors; k += 2 {
		a.Emit(
			amd64.VCMPPS, amd64.Y10,
			amd64.Y(6+k), amd64.Y(7+k), unordered,
		)
		emitTwo(a, amd64.VORPS, amd64.Y4, amd64.Y10)
	}
	const bytes = amd64.Imm(4 * roundElements)
	a.Emit(amd64.ADD, amd64.RSI, bytes)
	a.Emit(amd64.SUB, roundsLeft, amd64.Imm(1))
	a.Emit(amd64.JG, round)
	// The four partial results become one.
	emitTwo(a, op, amd64.Y0, amd64.Y1)
	emitTwo(a, op, amd64.Y2, amd64.Y3)
	emitTwo(a, op, amd64.Y0, amd64.Y2)
	// So do its lanes: those 4 apart, then 2, then 1.
	a.Emit(
		amd64.VPERM2F128,
		amd64.Y1, amd64.Y0, amd64.Y0, amd64.Imm(1),
	)
	emitTwo(a, op, amd64.Y0, amd64.Y1)
	for _, exchange := range []amd64.Imm{0x4e, 0xb1} {
		a.Emit(
			amd64.VPERMILPS,
			amd64.Y1, amd64.Y0, exchange,
		)
		emitTwo(a, op, amd64.Y0, amd64.Y1)
	}
}

// emitFind moves bestBlock to the first vector with an element that is Y5, and sets ECX to
// its lanes that are. There is one.
func emitFind(a *amd64.Assembler) {
	const equal = amd64.Imm(0)
	find := a.NewLabel()
	found := a.NewLabel()
	from := amd64.Mem{Base: bestBlock}
	a.Bind(find)
	a.Emit(
		amd64.VCMPPS, amd64.Y6, amd64.Y5, from, equal,
	)
	emitTestLanes(a, amd64.Y6)
	a.Emit(amd64.JNE, found)
	a.Emit(amd64.ADD, bestBlock, amd64.Imm(4*Lanes))
	a.Emit(amd64.JMP, find)
	a.Bind(found)
}
