package vector

import (
	"math"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
)

// A gather of slices is a function of its plan, whose distances are constants of the code.
// Places are computed in general registers and slices moved by ordinary loads: a load and a
// store an element need no more slots than VPGATHERDD, which is as many loads on Zen 4
// and on Intel's cores with the microcode of 2023.
//
// For x[i] of f32, with one start and indices of 32 bits, a turn has four times
//
//	movsxd rcx, [rsi+4·k]
//	test   rcx, rcx
//	cmovs  rcx, r9            0
//	cmp    rcx, r10           the last start
//	cmova  rcx, r10
//	mov    ebx, [r8+4·rcx]
//	mov    [rdx+4·k], ebx
//
// Slices of up to a cache line are straight code, and the processor looks as many ahead as it
// has room for. Longer ones are a loop over whole vectors, the last of which ends with the
// slice and overlaps the one before; meanwhile a slice further on is fetched, line by line.

// GatherArgs are the arguments of a call: N index vectors, the first of which are at Indices,
// and the first places in the array and in the copy. Long slices have Bytes bytes.
type GatherArgs struct {
	N                 int64
	Indices, From, To unsafe.Pointer
	Bytes             int64
	Last              unsafe.Pointer // The last index vector.
}

// A GatherCode is how machine code gathers.
type GatherCode struct {
	*portable.Gather
	Index       int64 // The bytes of an index: 4 or 8.
	NonTemporal bool  // Slices are whole vectors, written past the caches.
}

const (
	// gatherAhead is how many bytes of slices, and maxSlicesAhead how many slices, are fetched
	// before they are copied: what lies anywhere is waited for longer than what lies in order.
	gatherAhead    = 8192
	maxSlicesAhead = 15
	// gatherStarts is the components of index vectors that registers hold the ends of.
	gatherStarts = 3
	// gatheredWords is single elements that a turn of the loop gathers.
	gatheredWords = 4
	vectorBytes   = 32
)

// Long reports whether slices are longer than a cache line, so that a call says how long they are.
func (g GatherCode) Long() bool { return g.Bytes > LineBytes }

// Fits reports whether there is code: distances are operands of 32 bits.
func (g GatherCode) Fits() bool {
	const most = math.MaxInt32 / (4 * maxSlicesAhead)
	fits := len(g.Starts) <= gatherStarts
	for _, s := range g.Starts {
		fits = fits && s.Step <= math.MaxInt32 && s.At <= most
	}
	return fits && g.Next <= most && g.From <= most && g.To <= most
}

// The registers of a gather. gatherEnds are the last starts of components.
const (
	gatherCount   = amd64.RAX
	gatherIndices = amd64.RSI
	gatherFrom    = amd64.R8
	gatherTo      = amd64.RDX
	gatherPlace   = amd64.RCX
	gatherOther   = amd64.RBX // Another component, or the index vector of a slice ahead.
	gatherZero    = amd64.R9
	gatherSource  = amd64.R13 // Where the slice at hand begins.
	gatherFetched = amd64.R14 // Where the one that is fetched does.
	gatherLength  = amd64.R15 // The bytes of a slice before its last vector.
)

var gatherEnds = [gatherStarts]amd64.Reg{amd64.R10, amd64.R11, amd64.R12}

// Emit emits the function.
func (g GatherCode) Emit(a *amd64.Assembler) error {
	for n, r := range []amd64.Reg{gatherCount, gatherIndices, gatherFrom, gatherTo} {
		emitLoadArg(a, r, int32(n))
	}
	a.Emit(amd64.XOR, gatherZero, gatherZero)
	for k, s := range g.Starts {
		a.Emit(
			amd64.MOV, gatherEnds[k],
			amd64.Imm(s.Last),
		)
	}
	switch {
	case g.Long():
		emitLoadArg(a, gatherLength, 4)
		a.Emit(
			amd64.SUB, gatherLength, amd64.Imm(vectorBytes),
		)
		emitLoadArg(a, amd64.RDI, 5)
		g.emitTurns(a, 1, g.emitLong)
	default:
		words := 1
		if g.Bytes <= 8 {
			words = gatheredWords
			g.emitTurns(a, words, g.emitShort)
		}
		g.emitTurns(a, 1, g.emitShort)
	}
	a.Emit(amd64.RET)
	return nil
}

// emitTurns emits a loop over slices, some of them a turn. What is left, less than a turn, is in
// the counter afterwards, and the pointers are at it.
func (g GatherCode) emitTurns(
	a *amd64.Assembler, each int,
	slice func(a *amd64.Assembler, k int64),
) {
	body, done := a.NewLabel(), a.NewLabel()
	a.Emit(
		amd64.SUB, gatherCount, amd64.Imm(each),
	)
	a.Emit(amd64.JL, done)
	a.Align(32)
	a.Bind(body)
	for k := range int64(each) {
		slice(a, k)
	}
	for _, p := range []struct {
		reg   amd64.Reg
		bytes int64
	}{{gatherIndices, g.Next * g.Index}, {gatherFrom, g.From}, {gatherTo, g.To}} {
		if p.bytes != 0 {
			a.Emit(
				amd64.ADD, p.reg,
				amd64.Imm(p.bytes*int64(each)),
			)
		}
	}
	a.Emit(
		amd64.SUB, gatherCount, amd64.Imm(each),
	)
	a.Emit(amd64.JGE, body)
	a.Bind(done)
	a.Emit(
		amd64.ADD, gatherCount, amd64.Imm(each),
	)
}

// emitPlace emits the place of a slice in bytes, whose index vector is at an address, and
// returns how it is scaled: the step of an only component may be that of an address.
func (g GatherCode) emitPlace(
	a *amd64.Assembler, vector amd64.Mem, into,
	other amd64.Reg,
) (scale uint8) {
	if len(g.Starts) == 0 {
		a.Emit(amd64.XOR, into, into)
		return 1
	}
	for k, s := range g.Starts {
		// The first component is where the sum is made.
		r := into
		if k > 0 {
			r = other
		}
		at := vector
		at.Disp += int32(s.At * g.Index)
		if g.Index == 4 {
			a.Emit(amd64.MOVSXD, r, at)
		} else {
			a.Emit(amd64.MOV, r, at)
		}
		// What is left after the first selection is not negative, so that the second one may
		// compare unsigned integers in both cases.
		if !g.Unsigned {
			a.Emit(amd64.TEST, r, r)
			a.Emit(amd64.CMOVS, r, gatherZero)
		}
		a.Emit(amd64.CMP, r, gatherEnds[k])
		a.Emit(amd64.CMOVA, r, gatherEnds[k])
		if len(g.Starts) == 1 && slices.Contains([]int64{1, 2, 4, 8}, s.Step) {
			return uint8(s.Step)
		}
		emitProduct(a, r, s.Step)
		if k > 0 {
			a.Emit(amd64.ADD, into, r)
		}
	}
	return 1
}

// emitProduct multiplies a register by a constant, by a shift where it is a power of two: a
// product takes three cycles, which the address of the slice waits for.
func emitProduct(
	a *amd64.Assembler, r amd64.Reg, step int64,
) {
	if step <= 0 || step&(step-1) != 0 {
		a.Emit(
			amd64.IMUL, r, r, amd64.Imm(step),
		)
		return
	}
	a.Emit(
		amd64.SHL, r,
		amd64.Imm(bits.TrailingZeros64(uint64(step))),
	)
}

// emitShort emits the copy of slice k of a turn, in the largest pieces that fit, of which the
// last ends with the slice.
func (g GatherCode) emitShort(
	a *amd64.Assembler, k int64,
) {
	scale := g.emitPlace(
		a, amd64.Mem{Base: gatherIndices, Disp: int32(
			k * g.Next * g.Index,
		)},
		gatherPlace, gatherOther,
	)
	from := amd64.Mem{Base: gatherFrom, Index: gatherPlace, Scale: scale, Disp: int32(k * g.From)}
	to := amd64.Mem{Base: gatherTo, Disp: int32(k * g.To)}
	// A piece is a power of two, since moves are.
	piece := int64(vectorBytes)
	for piece > g.Bytes {
		piece /= 2
	}
	for at := int64(0); at < g.Bytes; at += piece {
		at = min(at, g.Bytes-piece)
		x, y := from, to
		x.Disp += int32(at)
		y.Disp += int32(at)
		emitMove(a, piece, y, x, false)
	}
}

// emitMove emits the move of 1, 2, 4, 8, 16 or 32 bytes.
func emitMove(
	a *amd64.Assembler, bytes int64, to,
	from amd64.Mem, nonTemporal bool,
) {
	store := amd64.VMOVUPS
	if nonTemporal {
		store = amd64.VMOVNTPS
	}
	switch bytes {
	case 1:
		a.Emit(amd64.MOVZXB, amd64.EBX, from)
		a.Emit(amd64.MOV, to, amd64.BL)
	case 2:
		a.Emit(
			amd64.VPINSRW, amd64.X0, amd64.X0, from,
			amd64.Imm(0),
		)
		a.Emit(
			amd64.VPEXTRW, to, amd64.X0,
			amd64.Imm(0),
		)
	case 4:
		a.Emit(amd64.MOV, amd64.EBX, from)
		a.Emit(amd64.MOV, to, amd64.EBX)
	case 8:
		a.Emit(amd64.MOV, amd64.RBX, from)
		a.Emit(amd64.MOV, to, amd64.RBX)
	case 16:
		a.Emit(amd64.VMOVUPS, amd64.X0, from)
		a.Emit(store, to, amd64.X0)
	default:
		a.Emit(amd64.VMOVUPS, amd64.Y0, from)
		a.Emit(store, to, amd64.Y0)
	}
}

// emitLong emits the copy of a slice of more than a line. It finds the slice that is fetched
// meanwhile, too, which takes a few cycles beside those of the copy.
func (g GatherCode) emitLong(
	a *amd64.Assembler, _ int64,
) {
	scale := g.emitPlace(
		a, amd64.Mem{Base: gatherIndices}, gatherSource, gatherOther,
	)
	a.Emit(
		amd64.LEA, gatherSource,
		amd64.Mem{Base: gatherFrom, Index: gatherSource, Scale: scale},
	)
	// The index vector ahead is the last one, where there are not as many.
	ahead := min(maxSlicesAhead, gatherAhead/g.Bytes+1)
	a.Emit(
		amd64.LEA, gatherOther,
		amd64.Mem{Base: gatherIndices, Disp: int32(ahead * g.Next * g.Index)},
	)
	a.Emit(amd64.CMP, gatherOther, amd64.RDI)
	a.Emit(amd64.CMOVA, gatherOther, amd64.RDI)
	scale = g.emitPlace(
		a, amd64.Mem{Base: gatherOther}, gatherFetched, gatherPlace,
	)
	a.Emit(amd64.LEA, gatherFetched, amd64.Mem{
		Base: gatherFrom, Index: gatherFetched, Scale: scale, Disp: int32(
			ahead * g.From,
		),
	})
	g.emitVectors(a)
}

// emitVectors emits the copy of whole vectors, line by line, of which the last one ends with
// the slice. There are two or more, since a slice is longer than a line.
func (g GatherCode) emitVectors(a *amd64.Assembler) {
	at := gatherPlace
	body, last := a.NewLabel(), a.NewLabel()
	a.Emit(amd64.XOR, at, at)
	a.Bind(body)
	a.Emit(
		amd64.PREFETCHT0,
		amd64.Mem{Base: gatherFetched, Index: at, Scale: 1},
	)
	for range LineBytes / vectorBytes {
		emitMove(
			a, vectorBytes,
			amd64.Mem{Base: gatherTo, Index: at, Scale: 1},
			amd64.Mem{Base: gatherSource, Index: at, Scale: 1}, g.NonTemporal,
		)
		a.Emit(
			amd64.ADD, at, amd64.Imm(vectorBytes),
		)
		a.Emit(amd64.CMP, at, gatherLength)
		a.Emit(amd64.JGE, last)
	}
	a.Emit(amd64.JMP, body)
	a.Bind(last)
	emitMove(
		a, vectorBytes,
		amd64.Mem{Base: gatherTo, Index: gatherLength, Scale: 1},
		amd64.Mem{Base: gatherSource, Index: gatherLength, Scale: 1}, g.NonTemporal,
	)
}
