package vector

import (
	"math"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A scatter goes through updates in two steps. First the places of those that fall into the
// tile are listed, without a jump: every place is written, and the list grows by a conditional
// move. What falls into a tile of half of the array cannot be foreseen, and a jump that was
// foreseen wrongly takes as long as ten elements. Then the updates of the list are combined
// with the tile, in their order.

// A ScatterCode is how machine code scatters windows whose elements are neighbours in the
// updates and in the tile. Distances are bytes.
type ScatterCode struct {
	Class    portable.Class // Of elements, as scratch holds them.
	Sums     bool           // Elements are added; else the updates replace them.
	Elements int64          // Of a window.
	// The bytes of an index, and from an index vector to the next.
	Index, Next int64
	// The components of index vectors, each of which says where windows are along a dimension.
	Starts []ScatterStart
	// From an update to the next, and what that moves the window in the tile beside what the
	// index vectors say.
	From, To int64
}

// A ScatterStart is a component of index vectors: its place, and what a step of it is worth in
// the tile.
type ScatterStart struct{ At, To int64 }

// maxScatterStarts is the components of index vectors that there is code for.
const maxScatterStarts = 3

// MaxScattered bounds the updates of a call.
const MaxScattered = 512

// ScatterArgs are the arguments of a call: N updates, the first of which is at From, that of
// its index vector at Indices, and the tile. Component k of an index vector counts where it is
// Begins[k] or more, and less than Ends[k] behind that.
type ScatterArgs struct {
	N                 int64
	Indices, From, To unsafe.Pointer
	List              unsafe.Pointer // Room for a ScatterList.
	Begins, Ends      [maxScatterStarts]int64
}

// A ScatterList is the places, in the tile and in the updates, of MaxScattered updates.
type ScatterList [MaxScattered][2]int64

// Fits reports whether there is code: distances are operands of 32 bits.
func (s ScatterCode) Fits() bool {
	_, adds := runReductions[runKey{hlo.OpAdd, s.Class}]
	fits := adds && len(s.Starts) <= maxScatterStarts &&
		max(s.Next, s.From, s.To) <= math.MaxInt32
	for _, x := range s.Starts {
		fits = fits && max(x.At, x.To) <= math.MaxInt32
	}
	return fits
}

// The registers of a scatter.
const (
	scatterCount   = amd64.RAX
	scatterIndices = amd64.RSI
	scatterFrom    = amd64.R8  // The place of the update, in the first step.
	scatterTo      = amd64.RDX // What its number moves the window by.
	scatterList    = amd64.R9
	scatterLength  = amd64.R10 // The bytes of the list.
	scatterLonger  = amd64.RBX // These with the update at hand.
	scatterAt      = amd64.RCX // A component of the index vector.
	scatterPlace   = amd64.R11 // The place in the tile.
	scatterTile    = amd64.R12
	scatterUpdates = amd64.R13
)

// listed is the bytes of an entry of the list.
const listed = 16

// Emit emits the function.
func (s ScatterCode) Emit(a *amd64.Assembler) error {
	for n, r := range []amd64.Reg{
		scatterCount, scatterIndices, scatterUpdates,
		scatterTile, scatterList,
	} {
		emitLoadArg(a, r, int32(n))
	}
	for _, r := range []amd64.Reg{
		scatterLength, scatterFrom, scatterTo,
	} {
		a.Emit(amd64.XOR, r, r)
	}
	s.emitList(a)
	combine, done := a.NewLabel(), a.NewLabel()
	a.Emit(amd64.ADD, scatterLength, scatterList)
	a.Bind(combine)
	a.Emit(amd64.CMP, scatterList, scatterLength)
	a.Emit(amd64.JAE, done)
	err := s.emitWindow(a)
	a.Emit(amd64.ADD, scatterList, amd64.Imm(listed))
	a.Emit(amd64.JMP, combine)
	a.Bind(done)
	a.Emit(amd64.RET)
	return err
}

// emitList emits the first step. Of a tile of all of the array, too, updates may lie outside of
// it, which are left out.
func (s ScatterCode) emitList(a *amd64.Assembler) {
	body := a.NewLabel()
	a.Align(32)
	a.Bind(body)
	a.Emit(
		amd64.LEA, scatterLonger,
		amd64.Mem{Base: scatterLength, Disp: listed},
	)
	a.Emit(amd64.MOV, scatterPlace, scatterTo)
	// Of each component it is checked that the element is in the tile, which of a window of one
	// element along that dimension all of it is then.
	for k, x := range s.Starts {
		at := amd64.Mem{Base: scatterIndices, Disp: int32(x.At)}
		if s.Index == 4 {
			a.Emit(amd64.MOVSXD, scatterAt, at)
		} else {
			a.Emit(amd64.MOV, scatterAt, at)
		}
		// Components before the first one are large unsigned numbers.
		field := int32(5 + k)
		a.Emit(
			amd64.SUB, scatterAt,
			amd64.Mem{Base: amd64.RDI, Disp: 8 * field},
		)
		a.Emit(
			amd64.CMP, scatterAt,
			amd64.Mem{Base: amd64.RDI, Disp: 8 * (field + maxScatterStarts)},
		)
		a.Emit(amd64.CMOVAE, scatterLonger, scatterLength)
		emitProduct(a, scatterAt, x.To)
		a.Emit(amd64.ADD, scatterPlace, scatterAt)
	}
	entry := amd64.Mem{Base: scatterList, Index: scatterLength, Scale: 1}
	a.Emit(amd64.MOV, entry, scatterPlace)
	entry.Disp = 8
	a.Emit(amd64.MOV, entry, scatterFrom)
	a.Emit(amd64.MOV, scatterLength, scatterLonger)
	a.Emit(amd64.ADD, scatterIndices, amd64.Imm(s.Next))
	a.Emit(amd64.ADD, scatterFrom, amd64.Imm(s.From))
	a.Emit(amd64.ADD, scatterTo, amd64.Imm(s.To))
	a.Emit(amd64.SUB, scatterCount, amd64.Imm(1))
	a.Emit(amd64.JG, body)
}

// emitWindow emits the combination of one window, whole vectors and then the rest under a mask.
// Registers of the first step are free.
func (s ScatterCode) emitWindow(a *amd64.Assembler) error {
	to, from := amd64.RDX, amd64.RSI
	a.Emit(amd64.MOV, to, amd64.Mem{Base: scatterList})
	a.Emit(
		amd64.MOV, from,
		amd64.Mem{Base: scatterList, Disp: 8},
	)
	if s.Elements == 1 {
		s.emitPoint(
			a, amd64.Mem{Base: scatterTile, Index: to, Scale: 1},
			amd64.Mem{Base: scatterUpdates, Index: from, Scale: 1},
		)
		return nil
	}
	a.Emit(amd64.ADD, to, scatterTile)
	a.Emit(amd64.ADD, from, scatterUpdates)
	a.Emit(
		amd64.MOV, amd64.RAX,
		amd64.Imm(s.Elements),
	)
	width := s.Class.Bytes()
	moves := ElementMovesOf[width]
	c := &amd64.Chain{}
	x := c.Load(
		moves.Load, amd64.Mem{Base: from}, 32,
	)
	if s.Sums {
		f := runReductions[runKey{hlo.OpAdd, s.Class}]
		x = f.combine(
			c,
			c.Load(moves.Load, amd64.Mem{Base: to}, 32),
			x,
		)
	}
	c.Store(
		moves.Store, amd64.Mem{Base: to}, 32,
		x,
	)
	loop := &amd64.Loop{
		Chain:   c,
		Counter: amd64.RAX,
		Pointers: []amd64.Pointer{
			{Reg: from, Bytes: moves.Bytes},
			{Reg: to, Bytes: moves.Bytes},
		},
		Width:   moves.Bytes,
		Copies:  4,
		Scratch: amd64.RCX,
		Mask:    amd64.Y15,
	}
	return loop.Emit(a)
}

// emitPoint emits the combination of one element. Elements that follow each other may be one in
// the tile: each is written before the next is read.
func (s ScatterCode) emitPoint(
	a *amd64.Assembler, to, from amd64.Mem,
) {
	x := amd64.RBX
	if s.Class.Bytes() == 4 {
		x = amd64.EBX
	}
	add := amd64.MOV
	if s.Sums {
		add = amd64.ADD
	}
	switch {
	case s.Sums && s.Class == portable.Float32:
		a.Emit(amd64.VMOVSS, amd64.X0, to)
		a.Emit(amd64.VADDSS, amd64.X0, amd64.X0, from)
		a.Emit(amd64.VMOVSS, to, amd64.X0)
	case s.Sums && s.Class == portable.Float64:
		a.Emit(amd64.VMOVSD, amd64.X0, to)
		a.Emit(amd64.VADDSD, amd64.X0, amd64.X0, from)
		a.Emit(amd64.VMOVSD, to, amd64.X0)
	default:
		a.Emit(amd64.MOV, x, from)
		a.Emit(add, to, x)
	}
}
