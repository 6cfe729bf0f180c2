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
	roundBytes = RoundVectors * 32 // of a round of the loop
	// blockRounds is the rounds of a block: a block is a page, which the caches hold while
	// the end of a block costs a tenth of it.
	blockRounds = 32
	// maxExtremumCall bounds the bytes of a call, which does little more than read.
	maxExtremumCall = 1 << 18
)

// Ordered are the types of elements that are searched.
type Ordered interface{ float32 | float64 | int32 }

// An Extremum finds the greatest element of a row, or the least, and its first place.
type Extremum[T Ordered] struct {
	row      amd64.Func
	identity T // less than any other, or greater
	least    bool
}

// ExtremumArgs is the argument block of an Extremum: Blocks of Rounds rounds from X on. The
// code says in how many lanes there was a NaN, and where there was none the extreme element,
// the bytes from X to the first vector that has it, and the lanes of that which have it.
type ExtremumArgs struct {
	Blocks    int64
	X         unsafe.Pointer
	Rounds    int64
	At        int64
	Value     [8]byte
	Unordered uint32
	Lanes     uint32
}

// ExtremumOf is the search for a maximum or a minimum. It is assembled at first use and stays
// for the life of the process; it is nil where no machine code runs.
func ExtremumOf[T Ordered](op hlo.Opcode) (*Extremum[T], bool) {
	made, known := extremes[extremumType{op, any(*new(T))}]
	if !known {
		return nil, false
	}
	x, _ := made().(*Extremum[T])
	return x, x != nil
}

// An extremumType is an operation and the zero value of the elements' type.
type extremumType struct {
	op   hlo.Opcode
	zero any
}

// extremes make the searches.
var extremes = map[extremumType]func() any{
	{hlo.OpMaximum, float32(0)}: newExtremum(extremum32(amd64.VMAXPS), float32(math.Inf(-1))),
	{hlo.OpMinimum, float32(0)}: newExtremum(extremum32(amd64.VMINPS), float32(math.Inf(1))),
	{hlo.OpMaximum, float64(0)}: newExtremum(extremum64(amd64.VMAXPD), math.Inf(-1)),
	{hlo.OpMinimum, float64(0)}: newExtremum(extremum64(amd64.VMINPD), math.Inf(1)),
	{hlo.OpMaximum, int32(0)}:   newExtremum(extremumInt32(amd64.VPMAXSD), int32(math.MinInt32)),
	{hlo.OpMinimum, int32(0)}:   newExtremum(extremumInt32(amd64.VPMINSD), int32(math.MaxInt32)),
}

// newExtremum assembles a search by some instructions, which begins with what is less than
// any element, or greater.
func newExtremum[T Ordered](code extremumCode, identity T) func() any {
	return sync.OnceValue(func() any {
		x := &Extremum[T]{identity: identity, least: identity > 0}
		code.least = x.least
		if !Supported() {
			return nil
		}
		var ok bool
		x.row, ok = LoadRoutine(func(a *amd64.Assembler) error {
			code.emit(a, splatOf(a, identity))
			return nil
		})
		if !ok {
			return nil
		}
		return x
	})
}

// splatOf is a vector of copies of a number.
func splatOf[T Ordered](a *amd64.Assembler, x T) amd64.Mem {
	switch x := any(x).(type) {
	case float32:
		return a.Splat32(math.Float32bits(x))
	case float64:
		return a.Splat64(math.Float64bits(x))
	case int32:
		return a.Splat32(uint32(x))
	}
	panic("no type of elements")
}

// First is the place of the extreme element of a row that has one. It is not known where an
// element is NaN, or where the extreme one is a floating-point 0, which has two signs.
func (x *Extremum[T]) First(args *ExtremumArgs, row []T) (at int64, ok bool) {
	s := extremumSearch[T]{Extremum: x, best: x.identity}
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
	_, whole := any(s.best).(int32)
	return s.at, whole || s.best != 0
}

// An extremumSearch is a search that has done some elements.
type extremumSearch[T Ordered] struct {
	*Extremum[T]
	done, at int64
	best     T
}

// take takes an element at a place over if it exceeds those before.
func (s *extremumSearch[T]) take(v T, at int64) {
	exceeds := v > s.best
	if s.least {
		exceeds = v < s.best
	}
	if exceeds {
		s.best, s.at = v, at
	}
}

// blocks does whole blocks of so many rounds; it reports false where an element is NaN.
func (s *extremumSearch[T]) blocks(args *ExtremumArgs, row []T, rounds int64) bool {
	size := int64(unsafe.Sizeof(s.best))
	unit := rounds * roundBytes / size
	for int64(len(row))-s.done >= unit {
		left := int64(len(row)) - s.done
		n := min(left, maxExtremumCall/size) / unit
		*args = ExtremumArgs{
			Blocks: n,
			X:      unsafe.Pointer(&row[s.done]),
			Rounds: rounds,
		}
		s.row.Call(unsafe.Pointer(args))
		if args.Unordered != 0 {
			return false
		}
		lane := bits.TrailingZeros32(args.Lanes)
		found := *(*T)(unsafe.Pointer(&args.Value))
		s.take(found, s.done+args.At/size+int64(lane))
		s.done += n * unit
	}
	return true
}

// An extremumCode is the instructions of a search for elements of a type.
type extremumCode struct {
	extreme amd64.Op // the greater or the lesser elements of two vectors
	compare amd64.Op // of floats, with a predicate; 0 of integers
	lanes   amd64.Op // the signs of lanes as a number
	store   amd64.Op // of one element
	// The exchanges of lanes in halves of a vector, after which all lanes have met.
	exchanges []amd64.Imm
	least     bool
}

// fourLanes are the exchanges of elements of four bytes: those two apart, then neighbours.
var fourLanes = []amd64.Imm{0x4e, 0xb1}

// extremum32 is the code for f32.
func extremum32(op amd64.Op) extremumCode {
	return extremumCode{
		extreme:   op,
		compare:   amd64.VCMPPS,
		lanes:     amd64.VMOVMSKPS,
		store:     amd64.VMOVSS,
		exchanges: fourLanes,
	}
}

// extremum64 is the code for f64, of which a half of a vector has two.
func extremum64(op amd64.Op) extremumCode {
	return extremumCode{
		extreme:   op,
		compare:   amd64.VCMPPD,
		lanes:     amd64.VMOVMSKPD,
		store:     amd64.VMOVSD,
		exchanges: fourLanes[:1],
	}
}

// extremumInt32 is the code for s32.
func extremumInt32(op amd64.Op) extremumCode {
	return extremumCode{
		extreme:   op,
		lanes:     amd64.VMOVMSKPS,
		store:     amd64.VMOVSS,
		exchanges: fourLanes,
	}
}

// exceeds sets the lanes of a vector in which x is more extreme than y, or as extreme.
func (x *extremumCode) exceeds(a *amd64.Assembler, to, v, than amd64.Reg) {
	const differs = amd64.Imm(4)
	switch {
	case x.compare != 0:
		a.Emit(x.compare, to, v, than, differs)
	case x.least:
		a.Emit(amd64.VPCMPGTD, to, than, v)
	default:
		a.Emit(amd64.VPCMPGTD, to, v, than)
	}
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
	extremumUnordered = int32(40)
	extremumLanes     = int32(44)
)

// emit emits the search. Y0 to Y3 are the partial results of a block, which begin with the
// best one of the blocks before, in all lanes of Y5; Y4 has the lanes with a NaN.
func (x *extremumCode) emit(a *amd64.Assembler, start amd64.Mem) {
	block := a.NewLabel()
	done := a.NewLabel()
	// Before the first block the best one is what nothing is less than.
	emitField(a, amd64.RAX, 0)
	emitField(a, amd64.RSI, extremumX)
	emitField(a, blockCount, extremumRounds)
	a.Emit(amd64.MOV, bestBlock, amd64.RSI)
	a.Emit(amd64.VMOVUPS, amd64.Y5, start)
	emitTwo(a, amd64.VXORPS, amd64.Y4, amd64.Y4)
	a.Bind(block)
	a.Emit(amd64.MOV, thisBlock, amd64.RSI)
	x.emitBlock(a)
	// The block exceeds those before if its result differs.
	x.exceeds(a, amd64.Y6, amd64.Y0, amd64.Y5)
	x.emitTestLanes(a, amd64.Y6)
	a.Emit(amd64.CMOVNE, bestBlock, thisBlock)
	a.Emit(amd64.VMOVAPS, amd64.Y5, amd64.Y0)
	a.Emit(amd64.SUB, amd64.RAX, amd64.Imm(1))
	a.Emit(amd64.JG, block)
	a.Emit(
		x.store,
		extremumField(extremumValue), amd64.X5,
	)
	x.emitTestLanes(a, amd64.Y4)
	a.Emit(
		amd64.MOV,
		extremumField(extremumUnordered), amd64.ECX,
	)
	a.Emit(amd64.JNE, done)
	x.emitFind(a)
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
func (x *extremumCode) emitTestLanes(a *amd64.Assembler, v amd64.Reg) {
	a.Emit(x.lanes, amd64.ECX, v)
	a.Emit(amd64.TEST, amd64.ECX, amd64.ECX)
}

// emitBlock emits a block, whose result is in all lanes of Y0.
func (x *extremumCode) emitBlock(a *amd64.Assembler) {
	op := x.extreme
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
	for k := 0; k < RoundVectors && x.compare != 0; k += 2 {
		a.Emit(
			x.compare, amd64.Y10,
			amd64.Y(6+k), amd64.Y(7+k), unordered,
		)
		emitTwo(a, amd64.VORPS, amd64.Y4, amd64.Y10)
	}
	a.Emit(amd64.ADD, amd64.RSI, amd64.Imm(roundBytes))
	a.Emit(amd64.SUB, roundsLeft, amd64.Imm(1))
	a.Emit(amd64.JG, round)
	// The four partial results become one.
	emitTwo(a, op, amd64.Y0, amd64.Y1)
	emitTwo(a, op, amd64.Y2, amd64.Y3)
	emitTwo(a, op, amd64.Y0, amd64.Y2)
	// So do its lanes: those of both halves, then of each.
	a.Emit(
		amd64.VPERM2F128,
		amd64.Y1, amd64.Y0, amd64.Y0, amd64.Imm(1),
	)
	emitTwo(a, op, amd64.Y0, amd64.Y1)
	for _, exchange := range x.exchanges {
		a.Emit(
			amd64.VPERMILPS,
			amd64.Y1, amd64.Y0, exchange,
		)
		emitTwo(a, op, amd64.Y0, amd64.Y1)
	}
}

// emitFind moves bestBlock to the first vector with an element that is Y5, and sets ECX to
// its lanes that are. There is one.
func (x *extremumCode) emitFind(a *amd64.Assembler) {
	find := a.NewLabel()
	found := a.NewLabel()
	from := amd64.Mem{Base: bestBlock}
	a.Bind(find)
	if equal := amd64.Imm(0); x.compare != 0 {
		a.Emit(x.compare, amd64.Y6, amd64.Y5, from, equal)
	} else {
		a.Emit(amd64.VPCMPEQD, amd64.Y6, amd64.Y5, from)
	}
	x.emitTestLanes(a, amd64.Y6)
	a.Emit(amd64.JNE, found)
	a.Emit(amd64.ADD, bestBlock, amd64.Imm(32))
	a.Emit(amd64.JMP, find)
	a.Bind(found)
}
