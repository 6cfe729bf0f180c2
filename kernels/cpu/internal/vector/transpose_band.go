package vector

import (
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
)

// A band is a part of each of some rows of a source, some lines long, whose elements
// become rows of the destination: pieces of whole cache lines, written past the caches or not. For
// each line of the part, the rows of the destination that its elements make are gathered
// in scratch, which stays in the first-level cache whatever the distances of rows are, and
// stored from there. Meanwhile the next band is prefetched to the second-level cache, row
// after row, since rows that are read a line at a time are read at half the rate of memory.
//
// A row of scratch has a line more in front, for pieces that begin before the first
// column because the row of the destination begins within a line.

// BandArgs is the argument block of the transpose of a band.
type BandArgs struct {
	transpose struct { // As TransposeArgs, of blocks that follow each other in a line.
		n                int64
		from, to         uintptr
		fromStep, toStep int64
	}
	groups    int64 // The number of groups of rows that a block takes.
	groupStep int64 // The distance of groups in the source, in bytes.
	// The address of the line in the first row, of its place in scratch, of the first
	// column in scratch, and of the next row of the destination. They move, and may then
	// lie behind the ends of arrays, so that they are numbers.
	line, begin, column, to uintptr
	ToStep                  int64 // The distance of rows of the destination, in bytes.
	Lines, Piece            int64 // The lines of a part, and of a piece.
	// The address of the band that is prefetched, its lines in a row, and the distance from
	// behind them to the next row, in bytes.
	Fetch      uintptr
	FetchLines int64
	fetchNext  int64
	gathered   uintptr // Where lines of a group of rows are gathered, see halves.
	// What is stored of the line before: the first column in scratch, the rows that are left,
	// and how many are stored after each group. The two scratches take turns.
	stored     uintptr
	left, each int64
	turn       int64 // what is added to the places in scratch for the next line
	// Ahead is how many lines ahead rows are fetched while a line of each of them is read in
	// turn; 0: the next band is, row after row. A core of a Zen 4 reads sixteen whole rows of
	// 16 KiB in turn at 24 GB/s and parts of 2 KiB one after another at 12, with prefetches at 14.
	Ahead int64
	// The first row, and the first column, see Before; and what BandRows says of BandStep bytes.
	From, To, Scratch unsafe.Pointer
	FromStep          int64 // The distance of rows of the source, in bytes.
	// From is a line of columns before To, since rows of the destination may begin within lines.
	Before bool
	Cached bool // Pieces are written to the caches, not past them.
	// Spread has the pieces of a line written past the caches while the next line is gathered, a
	// few after each block, rather than all at once. It is for elements of four bytes or more:
	// those of shorter ones would not fit the first cache twice. Else the memory is written
	// nothing while a line is gathered: f32 4096² takes 0.92 of the time on an Emerald Rapids.
	Spread bool
}

// The fields of BandArgs, as emitLoadArg counts.
const (
	bandFrom = iota + 1
	bandTo
	bandFromStep
	bandScratchStep
	bandGroups
	bandGroupStep
	bandLine
	bandBegin
	bandColumn
	bandRow
	bandToStep
	bandLines
	bandPiece
	bandFetch
	bandFetchLines
	bandFetchNext
	bandGathered
	bandStored
	bandLeft
	bandEach
	bandTurn
	bandAhead
)

// BandStep is the distance of rows of the scratch of a band, in bytes: a piece of four
// lines, and one before.
const BandStep = 5 * LineBytes

// spreadWidth is the bytes of the shortest elements whose stores may be spread.
const spreadWidth = 4

// BandRows is how many rows of scratch a band takes, of elements of a width in bytes.
func BandRows(width int64) int64 { return LineBytes / width }

// BandBytes is the bytes of the scratch of a band of elements of a width: the rows, and the lines
// that are gathered.
func BandBytes(width int64) int64 {
	bytes := BandRows(width) * BandStep
	switch {
	case width >= spreadWidth:
		bytes *= 2
	case width == 1:
		bytes += halvesRows * LineBytes
	}
	return bytes
}

// Transpose transposes a band by a routine for elements of a width.
func (args *BandArgs) Transpose(f *TransposeRoutine, width int64, band BandArgs) {
	*args = band
	r := f.band(band, width)
	t := &args.transpose
	t.n = BandRows(width) / r.rows
	t.fromStep, t.toStep = band.FromStep, BandStep
	args.line, args.to = uintptr(band.From), uintptr(band.To)
	args.begin = uintptr(band.Scratch)
	args.column = args.begin + LineBytes
	args.gathered = args.begin + uintptr(BandRows(width)*BandStep)
	args.groups = (band.Piece + 1) * LineBytes / (width * r.cols)
	if !band.Before {
		args.begin = args.column
		args.groups -= LineBytes / (width * r.cols)
	}
	args.each = (BandRows(width) + args.groups - 1) / args.groups
	args.turn = BandRows(width) * BandStep
	args.groupStep = r.cols * band.FromStep
	args.fetchNext = band.FromStep - band.FetchLines*LineBytes
	if r.ahead {
		args.fetchAhead()
	}
	r.f.Call(unsafe.Pointer(args))
	*args = BandArgs{}
}

// fetchAhead has what is fetched lie some lines ahead in each row, and, of the last lines, in the
// rows of the band that follows: of line k of n that is line k + ahead − n there. Both are constant
// distances from the line at hand, so that the fields of the other way have them.
func (args *BandArgs) fetchAhead() {
	next := int64(args.Fetch) - int64(args.line)
	args.Fetch = uintptr(args.Ahead * LineBytes)
	args.fetchNext = next + (args.Ahead-args.Lines)*LineBytes
}

// A bandRoutine is a routine of bands, with the rows and columns of its blocks: as many elements of
// a row of the source, and as many rows of it.
type bandRoutine struct {
	f          amd64.Func
	rows, cols int64
	ahead      bool // it fetches within rows
}

// band is the routine for a band of elements of a width. What stays in the caches has one way: no
// memory is waited for there.
func (f *TransposeRoutine) band(band BandArgs, width int64) bandRoutine {
	r := bandRoutine{f.Band, f.bandRows, f.bandCols, false}
	spread := band.Spread && width >= spreadWidth
	switch {
	case band.Cached:
		r.f = f.CachedBand
	case band.Ahead > 0 && spread:
		return f.spreadAhead()
	case band.Ahead > 0:
		return f.ahead()
	case spread:
		r.f = f.SpreadBand
	}
	return r
}

// A bandCode is how the transpose of a band of elements of a width is emitted, in blocks of some
// rows of the source.
type bandCode struct {
	*amd64.Assembler
	width, cols int
	store       amd64.Op
	spread      bool // pieces are stored among the blocks of the next line
	ahead       bool // lines are fetched within rows
	wide        bool // in vectors of 64 bytes
	block       func(a *amd64.Assembler, prefetches bool) error
}

// emit emits the transpose. Where the next band is fetched R13 is the address of the next
// prefetch, and R12 counts the lines that are left in its row; where rows are fetched ahead, R13
// is how far. R14 and R15 count groups and lines.
func (a bandCode) emit() error {
	if !a.ahead {
		emitLoadArg(a.Assembler, amd64.R13, bandFetch)
		emitLoadArg(a.Assembler, amd64.R12, bandFetchLines)
	}
	emitLoadArg(a.Assembler, amd64.R15, bandLines)
	line, group := a.NewLabel(), a.NewLabel()
	a.Bind(line)
	emitMoveArg(a.Assembler, bandFrom, bandLine)
	emitMoveArg(a.Assembler, bandTo, bandBegin)
	emitLoadArg(a.Assembler, amd64.R14, bandGroups)
	if a.ahead {
		emitLoadArg(a.Assembler, amd64.R13, bandFetch)
		emitLoadArg(a.Assembler, amd64.RBX, bandFetchNext)
		a.Emit(
			amd64.CMP,
			amd64.R15,
			amd64.Mem{Base: amd64.RDI, Disp: 8 * bandAhead},
		)
		a.Emit(amd64.CMOVLE, amd64.R13, amd64.RBX)
	}
	a.Bind(group)
	if err := a.emitGroup(); err != nil {
		return err
	}
	a.Emit(amd64.SUB, amd64.R14, amd64.Imm(1))
	a.Emit(amd64.JG, group)
	emitMoveArg(a.Assembler, bandStored, bandColumn)
	a.Emit(
		amd64.MOV,
		amd64.RBX,
		amd64.Imm(LineBytes/a.width),
	)
	emitStoreArg(a.Assembler, bandLeft, amd64.RBX)
	if a.spread {
		emitSwapScratch(a.Assembler)
	} else {
		emitLoadArg(a.Assembler, amd64.RAX, bandLeft)
		a.emitPieces()
	}
	emitAdvanceArg(a.Assembler, bandLine, amd64.Imm(LineBytes))
	a.Emit(amd64.SUB, amd64.R15, amd64.Imm(1))
	a.Emit(amd64.JG, line)
	if a.spread {
		emitLoadArg(a.Assembler, amd64.RAX, bandLeft)
		a.emitPieces()
	}
	return nil
}

// emitGroup emits the blocks of a group of rows, with what is fetched and stored among them: as many
// rows of the line before as are a group's share, or what is left of them.
func (a bandCode) emitGroup() error {
	if a.ahead {
		a.emitFetchRows()
	}
	if err := a.block(a.Assembler, false); err != nil {
		return err
	}
	if !a.ahead {
		emitFetchLines(a.Assembler, a.cols/2)
	}
	emitLoadArg(a.Assembler, amd64.RBX, bandGroupStep)
	emitAdvanceArg(a.Assembler, bandFrom, amd64.RBX)
	emitAdvanceArg(
		a.Assembler,
		bandTo,
		amd64.Imm(a.width*a.cols),
	)
	if a.spread {
		emitLoadArg(a.Assembler, amd64.RAX, bandLeft)
		emitLoadArg(a.Assembler, amd64.RBX, bandEach)
		a.Emit(amd64.CMP, amd64.RAX, amd64.RBX)
		a.Emit(amd64.CMOVG, amd64.RAX, amd64.RBX)
		a.emitPieces()
	}
	return nil
}

// emitFetchRows emits the prefetch of a line of each row of a group, R13 bytes ahead, to the second
// cache. To the first cache it would take up to 1.5 times as long where rows are a page apart, which
// share one set of it.
func (a bandCode) emitFetchRows() {
	emitLoadArg(a.Assembler, amd64.R12, bandFrom)
	emitLoadArg(a.Assembler, amd64.RCX, bandFromStep)
	a.Emit(amd64.ADD, amd64.R12, amd64.R13)
	a.Emit(amd64.LEA, amd64.R8, amd64.Mem{
		Base:  amd64.RCX,
		Index: amd64.RCX,
		Scale: 2,
	})
	for k := 0; k < a.cols; k += 4 {
		if k > 0 {
			a.Emit(amd64.LEA, amd64.R12, amd64.Mem{
				Base:  amd64.R12,
				Index: amd64.RCX,
				Scale: 4,
			})
		}
		for _, m := range EightRows(amd64.R12, amd64.R12, amd64.RCX, amd64.R8)[:4] {
			a.Emit(amd64.PREFETCHT1, m)
		}
	}
}

// emitSwapScratch has the next line gathered in the other scratch.
func emitSwapScratch(a *amd64.Assembler) {
	emitLoadArg(a, amd64.RBX, bandTurn)
	emitAdvanceArg(a, bandColumn, amd64.RBX)
	emitAdvanceArg(a, bandBegin, amd64.RBX)
	a.Emit(amd64.NEG, amd64.RBX)
	emitStoreArg(a, bandTurn, amd64.RBX)
}

// emitMoveArg emits the copy of a field of the argument block to another.
func emitMoveArg(a *amd64.Assembler, to, from int32) {
	emitLoadArg(a, amd64.RBX, from)
	emitStoreArg(a, to, amd64.RBX)
}

// emitAdvanceArg emits an addition to a field of the argument block.
func emitAdvanceArg(a *amd64.Assembler, n int32, by amd64.Operand) {
	emitLoadArg(a, amd64.RSI, n)
	a.Emit(amd64.ADD, amd64.RSI, by)
	emitStoreArg(a, n, amd64.RSI)
}

// emitStoreArg emits the store to field n, of eight bytes, of the argument block.
func emitStoreArg(a *amd64.Assembler, n int32, r amd64.Reg) {
	a.Emit(
		amd64.MOV,
		amd64.Mem{Base: amd64.RDI, Disp: 8 * n},
		r,
	)
}

// emitPieces emits the stores of pieces of RAX rows of the destination, of those that are left,
// from the line on in which the column lies. R8 and R9 are the addresses of the column in the
// destination and in scratch.
func (a bandCode) emitPieces() {
	from, to, left, within := amd64.RSI, amd64.RDX, amd64.RCX, amd64.RBX
	none := a.NewLabel()
	a.Emit(amd64.CMP, amd64.RAX, amd64.Imm(0))
	a.Emit(amd64.JE, none)
	emitLoadArg(a.Assembler, left, bandLeft)
	a.Emit(amd64.SUB, left, amd64.RAX)
	emitStoreArg(a.Assembler, bandLeft, left)
	emitLoadArg(a.Assembler, amd64.R8, bandRow)
	emitLoadArg(a.Assembler, amd64.R9, bandStored)
	emitLoadArg(a.Assembler, amd64.R10, bandToStep)
	row, line := a.NewLabel(), a.NewLabel()
	a.Bind(row)
	a.Emit(amd64.MOV, within, amd64.R8)
	a.Emit(amd64.AND, within, amd64.Imm(LineBytes-1))
	a.Emit(amd64.MOV, from, amd64.R9)
	a.Emit(amd64.SUB, from, within)
	a.Emit(amd64.MOV, to, amd64.R8)
	a.Emit(amd64.SUB, to, within)
	emitLoadArg(a.Assembler, left, bandPiece)
	a.Bind(line)
	a.emitCopyLine(from, to)
	a.Emit(
		amd64.ADD,
		from,
		amd64.Imm(LineBytes),
	)
	a.Emit(
		amd64.ADD,
		to,
		amd64.Imm(LineBytes),
	)
	a.Emit(
		amd64.SUB,
		left,
		amd64.Imm(1),
	)
	a.Emit(amd64.JG, line)
	if !a.ahead {
		emitFetchLines(a.Assembler, 2)
	}
	a.Emit(amd64.ADD, amd64.R8, amd64.R10)
	a.Emit(
		amd64.ADD,
		amd64.R9,
		amd64.Imm(BandStep),
	)
	a.Emit(
		amd64.SUB,
		amd64.RAX,
		amd64.Imm(1),
	)
	a.Emit(amd64.JG, row)
	emitStoreArg(a.Assembler, bandRow, amd64.R8)
	emitStoreArg(a.Assembler, bandStored, amd64.R9)
	a.Bind(none)
}

// emitCopyLine emits the copy of a line of scratch to the destination, at once where vectors have 64
// bytes: a store past the caches of a whole line need not be combined with another.
func (a bandCode) emitCopyLine(from, to amd64.Reg) {
	if a.wide {
		a.Emit(
			amd64.VMOVUPS,
			amd64.Z0,
			amd64.Mem{Base: from},
		)
		a.Emit(
			a.store,
			amd64.Mem{Base: to},
			amd64.Z0,
		)
		return
	}
	for half := range int32(2) {
		y := amd64.Y(int(half))
		a.Emit(
			amd64.VMOVUPS, y,
			amd64.Mem{Base: from, Disp: 32 * half},
		)
		a.Emit(
			a.store,
			amd64.Mem{Base: to, Disp: 32 * half},
			y,
		)
	}
}

// emitFetchLines emits the prefetch of the next lines of the band that follows.
func emitFetchLines(a *amd64.Assembler, lines int) {
	for k := range lines {
		a.Emit(
			amd64.PREFETCHT1,
			amd64.Mem{Base: amd64.R13, Disp: int32(k * LineBytes)},
		)
	}
	inside := a.NewLabel()
	a.Emit(amd64.ADD, amd64.R13, amd64.Imm(lines*LineBytes))
	a.Emit(amd64.SUB, amd64.R12, amd64.Imm(lines))
	a.Emit(amd64.JG, inside)
	// Lines that were fetched behind the row's are taken back with its distance.
	a.Emit(amd64.SHL, amd64.R12, amd64.Imm(6))
	a.Emit(amd64.ADD, amd64.R13, amd64.R12)
	emitLoadArg(a, amd64.R12, bandFetchNext)
	a.Emit(amd64.ADD, amd64.R13, amd64.R12)
	emitLoadArg(a, amd64.R12, bandFetchLines)
	a.Bind(inside)
}
