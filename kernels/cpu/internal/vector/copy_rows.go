package vector

import (
	"sync"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
)

// Rows are copied in three parts: up to the first whole line of the destination,
// whole lines, and the rest. Non-temporal stores fill whole lines without reading
// them first, which is worth a third of the traffic of a copy that does not fit the
// caches; partial lines at the ends are prefetched for writing instead. The function
// of the Go runtime is as good for long rows of ordinary stores.

// CopyArgs are N rows of Bytes bytes each. While they are copied, the lines
// Ahead bytes further in the source are prefetched.
type CopyArgs struct {
	N, Bytes         int64          // The number of rows and the bytes of each.
	From, To         unsafe.Pointer // The first rows.
	FromStep, ToStep int64          // The distances of rows, in bytes.
	// The prefetch distance within a row, in bytes.
	Ahead int64
	// Places is at how many rows in turn, a line of each, long rows with gaps between them are
	// read where their lines are written past the caches: copyPlaces, or any other number for one.
	Places int64
}

// copyPlaces is at how many rows there is code to copy in turn. On a Zen 4 rows of 8 KiB with gaps
// of 2 KiB take 0.86 of the time with eight in turn of that of one after another, fetched 2 KiB
// ahead, and as long with four: the hardware needs some 400 ns of each row until it fetches what
// follows (inferred from times).
const copyPlaces = 8

// CopyRoutines are the routines of which copies consist.
type CopyRoutines struct {
	copy, short, nonTemporal, inTurn, fence amd64.Func
	Transposes                              [9]TransposeRoutine // The transposes, by bytes of an element.
	Ok                                      bool
}

// A TransposeRoutine transposes blocks of Cols rows of the source, with Rows
// elements each.
type TransposeRoutine struct {
	F amd64.Func
	// Whole bands of blocks, written past the caches, to them, and past them in between; see
	// BandArgs.
	Band, CachedBand, SpreadBand amd64.Func
	// The elements of a source row in a block, and the rows of the source.
	Rows, Cols int64
	// The same of blocks in bands.
	bandRows, bandCols int64
	// The routines of bands past the caches whose rows are fetched ahead, at once and spread.
	ahead, spreadAhead func() bandRoutine
}

// LoadedCopyRoutines are the copy routines. They are assembled at first use and
// stay for the life of the process.
var LoadedCopyRoutines = sync.OnceValue(func() *CopyRoutines {
	m := &CopyRoutines{}
	if !Supported() {
		return m
	}
	var ok [5]bool
	m.copy, ok[0] = LoadRoutine(func(a *amd64.Assembler) error {
		return emitCopy(a, false)
	})
	m.nonTemporal, ok[1] = LoadRoutine(func(a *amd64.Assembler) error {
		return emitCopy(a, true)
	})
	m.fence, ok[2] = LoadRoutine(func(a *amd64.Assembler) error {
		a.Emit(amd64.SFENCE)
		return nil
	})
	m.short, ok[3] = LoadRoutine(emitCopyShort)
	m.inTurn, ok[4] = LoadRoutine(emitCopyInTurn)
	m.Ok = ok == [5]bool{true, true, true, true, true}
	for width, x := range transposes {
		f, ok := LoadRoutine(func(a *amd64.Assembler) error { return x.emit(a, true) })
		inBand := x
		if width == 1 {
			inBand = transposeBlocks{emitHalves, halvesCols, halvesRows}
		}
		band, ok2 := inBand.load(bandCode{width: width, store: amd64.VMOVNTPS})
		spread, ok4 := inBand.load(bandCode{width: width, store: amd64.VMOVNTPS, spread: true})
		cached, ok3 := inBand.load(bandCode{width: width, store: amd64.VMOVUPS})
		plain := bandRoutine{band, inBand.rows, inBand.cols, false}
		m.Transposes[width] = TransposeRoutine{
			f, band, cached, spread, x.rows, x.cols, inBand.rows, inBand.cols,
			inBand.ahead(width, false, plain), inBand.ahead(width, true, plain),
		}
		m.Ok = m.Ok && ok && ok2 && ok3 && ok4
	}
	return m
})

// transposeBlocks are how the blocks of a transpose are emitted, with what TransposeRoutine
// says of them.
type transposeBlocks struct {
	emit       func(a *amd64.Assembler, prefetches bool) error
	rows, cols int64
}

// load assembles the transpose of a band in these blocks, which fill in what the code is told of
// them.
func (x transposeBlocks) load(c bandCode) (amd64.Func, bool) {
	return LoadRoutine(func(a *amd64.Assembler) error {
		c.Assembler, c.cols, c.block = a, int(x.cols), x.emit
		return c.emit()
	})
}

// ahead is the routine of bands whose rows are fetched ahead, assembled when it is first asked
// for, in vectors of 64 bytes where there are blocks of those; the plain one if that fails.
func (x transposeBlocks) ahead(width int, spread bool, plain bandRoutine) func() bandRoutine {
	return sync.OnceValue(func() bandRoutine {
		wide := amd64.RunsWide()
		if wide && width == 4 {
			x = transposeBlocks{emitWide32, wideBlock, wideBlock}
		}
		f, ok := x.load(bandCode{
			width:  width,
			store:  amd64.VMOVNTPS,
			spread: spread,
			ahead:  true,
			wide:   wide,
		})
		if !ok {
			return plain
		}
		return bandRoutine{f, x.rows, x.cols, true}
	})
}

// transposes are the blocks by bytes of an element.
var transposes = map[int]transposeBlocks{
	1: {emitTranspose8, 16, 8},
	2: {emitTranspose16, 8, 8},
	4: {emitTranspose32, 8, 8},
	8: {emitTranspose64, 4, 4},
}

// StoreFence orders non-temporal stores before later stores, such as those that
// tell another core that the copy is done. Ordinary stores are in order on
// amd64.
func StoreFence(args *CopyArgs) {
	if m := LoadedCopyRoutines(); m.Ok {
		m.fence.Call(unsafe.Pointer(args))
	}
}

// maxCopyBytes bounds the bytes of a call.
const maxCopyBytes = 1 << 20

// CopyRows copies rows, with args as the argument block. Where no machine code
// runs, and for long rows of ordinary stores, it uses the copy of the Go
// runtime.
func (args *CopyArgs) CopyRows(rows CopyArgs, nonTemporal bool) {
	m := LoadedCopyRoutines()
	rows.readUpwards()
	if !m.Ok || !nonTemporal && rows.Bytes >= minMemmoveBytes {
		for k := range rows.N { // No pointer may point past its array.
			to := unsafe.Add(rows.To, k*rows.ToStep)
			from := unsafe.Add(rows.From, k*rows.FromStep)
			copy(
				unsafe.Slice((*byte)(to), rows.Bytes),
				unsafe.Slice((*byte)(from), rows.Bytes),
			)
		}
		return
	}
	if nonTemporal && rows.isInTurn() {
		args.copyInTurn(m, rows)
		return
	}
	f := m.copy
	switch {
	case nonTemporal && rows.Bytes >= LineBytes:
		f = m.nonTemporal
	case rows.Ahead == 0 && rows.Bytes >= leastPiece && rows.Bytes < maxShortBytes:
		f = m.short
	}
	*args = rows
	few := max(1, maxCopyBytes/rows.Bytes)
	for k := int64(0); k < rows.N; k += few {
		args.N = min(few, rows.N-k)
		args.To = unsafe.Add(
			rows.To, k*rows.ToStep,
		)
		args.From = unsafe.Add(
			rows.From, k*rows.FromStep,
		)
		if rows.Bytes > maxCopyBytes {
			args.copyLong(f, rows.Bytes)
		} else {
			f.Call(unsafe.Pointer(args))
		}
	}
	*args = CopyArgs{}
}

// readUpwards has rows that are read from the last to the first one read from the first on: memory is
// read faster in its order, which the hardware fetches from one row to the next, and written past
// the caches as fast in either.
func (args *CopyArgs) readUpwards() {
	if last := args.N - 1; args.FromStep < 0 && last > 0 {
		args.From = unsafe.Add(
			args.From,
			last*args.FromStep,
		)
		args.To = unsafe.Add(
			args.To,
			last*args.ToStep,
		)
		args.FromStep, args.ToStep = -args.FromStep, -args.ToStep
	}
}

// isInTurn reports whether rows are copied a line of each of some in turn: long ones of whole
// lines of the destination, with gaps between them in the source. Those without gaps are read as one
// row, and of longer ones than a call copies the beginning takes no time that counts.
func (args *CopyArgs) isInTurn() bool {
	return args.Places == copyPlaces && args.N >= copyPlaces &&
		args.Bytes >= minInTurnBytes && args.Bytes <= maxCopyBytes/copyPlaces &&
		args.FromStep > args.Bytes &&
		(int64(uintptr(args.To))|args.ToStep)%LineBytes == 0
}

// copyInTurn copies the whole lines of groups of rows in turn, then what is left of these and of
// all: the ends of the rows, which are shorter than a line, and up to seven rows. A call has as many
// rows as other calls do, a multiple of a group.
func (args *CopyArgs) copyInTurn(m *CopyRoutines, rows CopyArgs) {
	whole := rows.Bytes &^ (LineBytes - 1)
	few := maxCopyBytes / rows.Bytes &^ (copyPlaces - 1)
	n := rows.N &^ (copyPlaces - 1)
	at := func(k, bytes int64) CopyArgs {
		x := rows
		x.Places = 0
		x.To = unsafe.Add(
			rows.To,
			k*rows.ToStep+bytes,
		)
		x.From = unsafe.Add(
			rows.From,
			k*rows.FromStep+bytes,
		)
		return x
	}
	for k := int64(0); k < n; k += few {
		*args = at(k, 0)
		args.N, args.Bytes = min(few, n-k), whole
		m.inTurn.Call(unsafe.Pointer(args))
	}
	if left := rows.Bytes - whole; left > 0 {
		x := at(0, whole)
		x.N, x.Bytes = n, left
		args.CopyRows(x, true)
	}
	if n < rows.N {
		x := at(n, 0)
		x.N -= n
		args.CopyRows(x, true)
	}
	*args = CopyArgs{}
}

// emitCopyInTurn emits the copy of groups of rows of whole lines, a line of each in turn. RAX counts
// rows and RCX bytes; R8 and R9 are where the group begins in the source and the destination, R10 and
// R11 the distances of rows, R12 and R13 three of these; RSI and RDX are the addresses of the first
// row, R14 and R15 those of the fifth.
func emitCopyInTurn(a *amd64.Assembler) error {
	for n, r := range []amd64.Reg{amd64.RAX, amd64.RBX, amd64.R8, amd64.R9, amd64.R10, amd64.R11} {
		emitLoadArg(a, r, int32(n))
	}
	scaled := func(to, base, index amd64.Reg, scale uint8) {
		a.Emit(amd64.LEA, to, amd64.Mem{
			Base:  base,
			Index: index,
			Scale: scale,
		})
	}
	scaled(amd64.R12, amd64.R10, amd64.R10, 2)
	scaled(amd64.R13, amd64.R11, amd64.R11, 2)
	group, line := a.NewLabel(), a.NewLabel()
	a.Bind(group)
	a.Emit(amd64.MOV, amd64.RSI, amd64.R8)
	a.Emit(amd64.MOV, amd64.RDX, amd64.R9)
	scaled(amd64.R14, amd64.RSI, amd64.R10, 4)
	scaled(amd64.R15, amd64.RDX, amd64.R11, 4)
	a.Emit(amd64.MOV, amd64.RCX, amd64.RBX)
	a.Bind(line)
	emitLineOfEach(a)
	for _, r := range []amd64.Reg{amd64.RSI, amd64.RDX, amd64.R14, amd64.R15} {
		a.Emit(
			amd64.ADD,
			r,
			amd64.Imm(LineBytes),
		)
	}
	a.Emit(
		amd64.SUB,
		amd64.RCX,
		amd64.Imm(LineBytes),
	)
	a.Emit(amd64.JG, line)
	scaled(amd64.R8, amd64.R8, amd64.R10, copyPlaces)
	scaled(amd64.R9, amd64.R9, amd64.R11, copyPlaces)
	a.Emit(
		amd64.SUB,
		amd64.RAX,
		amd64.Imm(copyPlaces),
	)
	a.Emit(amd64.JG, group)
	return nil
}

// emitLineOfEach emits the copy of a line of each row of a group, which has two registers, so that no
// row waits for another's line.
func emitLineOfEach(a *amd64.Assembler) {
	from := EightRows(
		amd64.RSI,
		amd64.R14,
		amd64.R10,
		amd64.R12,
	)
	to := EightRows(
		amd64.RDX,
		amd64.R15,
		amd64.R11,
		amd64.R13,
	)
	for k := range copyPlaces {
		low, high := amd64.Y(2*k), amd64.Y(2*k+1)
		a.Emit(amd64.VMOVUPS, low, from[k])
		a.Emit(
			amd64.VMOVUPS,
			high,
			OffsetBy(from[k], 32),
		)
		a.Emit(amd64.VMOVNTPS, to[k], low)
		a.Emit(
			amd64.VMOVNTPS,
			OffsetBy(to[k], 32),
			high,
		)
	}
}

// copyLong copies one row in several calls.
func (args *CopyArgs) copyLong(f amd64.Func, bytes int64) {
	to := args.To
	from := args.From
	for at := int64(0); at < bytes; at += maxCopyBytes {
		args.Bytes = min(maxCopyBytes, bytes-at)
		args.To = unsafe.Add(to, at)
		args.From = unsafe.Add(from, at)
		f.Call(unsafe.Pointer(args))
	}
	args.Bytes = bytes
}

const (
	LineBytes = 64 // LineBytes is the size of a cache line.
	// minMemmoveBytes is the length from which the copy of the Go runtime is as
	// fast.
	minMemmoveBytes = 2048
	// minInTurnBytes is the length from which rows may be copied in turn.
	minInTurnBytes = 2048
	// maxShortBytes bounds the rows that are copied in pieces of one size, and leastPiece
	// is the bytes of the smallest piece.
	maxShortBytes = 512
	leastPiece    = 4
)

// emitLoadArg emits the load of field n, of eight bytes, of the argument block.
func emitLoadArg(a *amd64.Assembler, r amd64.Reg, n int32) {
	a.Emit(amd64.MOV, r, amd64.Mem{
		Base: amd64.RDI,
		Disp: 8 * n,
	})
}

// emitCopy emits the copy of rows, 64 bytes at a time to whole lines of the
// destination. RAX counts rows, R8 and R9 are where the row begins in the source
// and the destination, and R10 is the prefetch distance in the row.
func emitCopy(a *amd64.Assembler, nonTemporal bool) error {
	from := amd64.RSI
	to := amd64.RDX
	remaining := amd64.RCX
	emitLoadArg(a, amd64.RAX, 0)
	emitLoadArg(a, amd64.R8, 2)
	emitLoadArg(a, amd64.R9, 3)
	emitLoadArg(a, amd64.R10, 6)
	row := a.NewLabel()
	body := a.NewLabel()
	rest := a.NewLabel()
	a.Bind(row)
	if nonTemporal {
		emitPrefetchEnds(a)
	}
	a.Emit(amd64.MOV, from, amd64.R8)
	a.Emit(amd64.MOV, to, amd64.R9)
	emitLoadArg(a, remaining, 1)
	if nonTemporal {
		emitCopyToLine(a, from, to, remaining)
	}
	a.Emit(amd64.SUB, remaining, amd64.Imm(LineBytes))
	a.Emit(amd64.JL, rest)
	a.Bind(body)
	emitCopyLine(a, from, to, nonTemporal)
	a.Emit(amd64.SUB, remaining, amd64.Imm(LineBytes))
	a.Emit(amd64.JGE, body)
	a.Bind(rest)
	// The subtractions left the low bits of the count as they were.
	emitCopySmall(a, from, to, remaining, 32)
	a.Emit(amd64.ADD, amd64.R8, amd64.Mem{
		Base: amd64.RDI,
		Disp: 8 * 4,
	})
	a.Emit(amd64.ADD, amd64.R9, amd64.Mem{
		Base: amd64.RDI,
		Disp: 8 * 5,
	})
	a.Emit(
		amd64.SUB, amd64.RAX, amd64.Imm(1),
	)
	a.Emit(amd64.JG, row)
	return nil
}

// shortPieces are the moves of short rows, by bytes.
var shortPieces = []struct {
	bytes int64
	op    amd64.Op
	reg   amd64.Reg
}{
	{32, amd64.VMOVUPS, amd64.Y0},
	{16, amd64.VMOVUPS, amd64.X0},
	{8, amd64.VMOVSD, amd64.X0},
	{leastPiece, amd64.VMOVSS, amd64.X0},
}

// emitCopyShort emits the copy of rows of leastPiece bytes or more, such as those of
// windows, in the largest pieces that fit. The last one ends with the row and overlaps the
// one before, so that no row has a rest: 84 bytes take three moves, not five and a test
// for each power of two. RAX counts rows, R8 and R9 are where the row begins in the source
// and the destination, and R10 and R11 their distances.
func emitCopyShort(a *amd64.Assembler) error {
	for n, r := range []amd64.Reg{amd64.RAX, amd64.RCX, amd64.R8, amd64.R9, amd64.R10, amd64.R11} {
		emitLoadArg(a, r, int32(n))
	}
	done := a.NewLabel()
	for _, p := range shortPieces {
		smaller := a.NewLabel()
		a.Emit(amd64.CMP, amd64.RCX, amd64.Imm(p.bytes))
		a.Emit(amd64.JL, smaller)
		a.Emit(amd64.SUB, amd64.RCX, amd64.Imm(p.bytes))
		emitOverlapping(a, p.op, p.reg, p.bytes)
		a.Emit(amd64.JMP, done)
		a.Bind(smaller)
	}
	a.Bind(done)
	return nil
}

// emitOverlapping emits the loop over rows whose last piece begins at RCX.
func emitOverlapping(a *amd64.Assembler, op amd64.Op, reg amd64.Reg, bytes int64) {
	at, last := amd64.RBX, amd64.RCX
	row, body, end := a.NewLabel(), a.NewLabel(), a.NewLabel()
	move := func(index amd64.Reg) {
		a.Emit(op, reg, amd64.Mem{Base: amd64.R8, Index: index, Scale: 1})
		a.Emit(op, amd64.Mem{Base: amd64.R9, Index: index, Scale: 1}, reg)
	}
	a.Bind(row)
	a.Emit(amd64.XOR, at, at)
	a.Emit(amd64.CMP, at, last)
	a.Emit(amd64.JGE, end)
	a.Bind(body)
	move(at)
	a.Emit(amd64.ADD, at, amd64.Imm(bytes))
	a.Emit(amd64.CMP, at, last)
	a.Emit(amd64.JL, body)
	a.Bind(end)
	move(last)
	a.Emit(amd64.ADD, amd64.R8, amd64.R10)
	a.Emit(amd64.ADD, amd64.R9, amd64.R11)
	a.Emit(amd64.SUB, amd64.RAX, amd64.Imm(1))
	a.Emit(amd64.JG, row)
}

// emitPrefetchEnds prefetches, for writing, the lines within which a row a few
// rows further begins and ends. Other lines are overwritten as a whole.
func emitPrefetchEnds(a *amd64.Assembler) {
	at := amd64.RBX
	a.Emit(amd64.MOV, at, amd64.Mem{
		Base: amd64.RDI,
		Disp: 8 * 5,
	})
	a.Emit(amd64.LEA, at, amd64.Mem{
		Base:  amd64.R9,
		Index: at,
		Scale: 4,
	})
	for end := range 2 {
		whole := a.NewLabel()
		if end == 1 {
			a.Emit(amd64.ADD, at, amd64.Mem{
				Base: amd64.RDI,
				Disp: 8,
			})
		}
		a.Emit(
			amd64.TEST, at, amd64.Imm(LineBytes-1),
		)
		a.Emit(amd64.JE, whole)
		a.Emit(amd64.PREFETCHW, amd64.Mem{Base: at})
		a.Bind(whole)
	}
}

// emitCopyToLine copies up to the beginning of a line of the destination, or
// all.
func emitCopyToLine(a *amd64.Assembler, from, to, left amd64.Reg) {
	head := amd64.RBX
	a.Emit(amd64.MOV, head, to)
	a.Emit(amd64.NEG, head)
	a.Emit(
		amd64.AND, head, amd64.Imm(LineBytes-1),
	)
	a.Emit(amd64.CMP, head, left)
	a.Emit(amd64.CMOVG, head, left)
	a.Emit(amd64.SUB, left, head)
	emitCopySmall(a, from, to, head, 32)
}

// emitCopyLine copies 64 bytes and prefetches those ahead.
func emitCopyLine(a *amd64.Assembler, from, to amd64.Reg, nonTemporal bool) {
	store := amd64.VMOVUPS
	if nonTemporal {
		store = amd64.VMOVNTPS
	}
	a.Emit(amd64.PREFETCHT0, amd64.Mem{
		Base:  from,
		Index: amd64.R10,
		Scale: 1,
	})
	a.Emit(
		amd64.VMOVUPS, amd64.Y0, amd64.Mem{Base: from},
	)
	a.Emit(
		amd64.VMOVUPS,
		amd64.Y1,
		amd64.Mem{Base: from, Disp: 32},
	)
	a.Emit(
		store, amd64.Mem{Base: to}, amd64.Y0,
	)
	a.Emit(
		store, amd64.Mem{Base: to, Disp: 32},
		amd64.Y1,
	)
	a.Emit(amd64.ADD, from, amd64.Imm(LineBytes))
	a.Emit(amd64.ADD, to, amd64.Imm(LineBytes))
}

// emitCopySmall copies as many bytes as the low bits of n say, up to twice
// limit − 1, the smallest pieces first.
func emitCopySmall(a *amd64.Assembler, from, to, n amd64.Reg, limit int) {
	none := a.NewLabel()
	a.Emit(
		amd64.TEST, n, amd64.Imm(2*limit-1),
	)
	a.Emit(amd64.JE, none)
	for bytes := 1; bytes <= limit; bytes *= 2 {
		skip := a.NewLabel()
		a.Emit(amd64.TEST, n, amd64.Imm(bytes))
		a.Emit(amd64.JE, skip)
		x := amd64.Mem{Base: from}
		y := amd64.Mem{Base: to}
		switch bytes {
		case 1:
			a.Emit(
				amd64.VPINSRB, amd64.X0, amd64.X0,
				x, amd64.Imm(0),
			)
			a.Emit(
				amd64.VPEXTRB, y, amd64.X0, amd64.Imm(0),
			)
		case 2:
			a.Emit(
				amd64.VPINSRW, amd64.X0, amd64.X0,
				x, amd64.Imm(0),
			)
			a.Emit(
				amd64.VPEXTRW, y, amd64.X0, amd64.Imm(0),
			)
		case 4:
			a.Emit(amd64.VMOVSS, amd64.X0, x)
			a.Emit(amd64.VMOVSS, y, amd64.X0)
		case 8:
			a.Emit(amd64.VMOVSD, amd64.X0, x)
			a.Emit(amd64.VMOVSD, y, amd64.X0)
		case 16:
			a.Emit(amd64.VMOVUPS, amd64.X0, x)
			a.Emit(amd64.VMOVUPS, y, amd64.X0)
		default:
			a.Emit(amd64.VMOVUPS, amd64.Y0, x)
			a.Emit(amd64.VMOVUPS, y, amd64.Y0)
		}
		a.Emit(amd64.ADD, from, amd64.Imm(bytes))
		a.Emit(amd64.ADD, to, amd64.Imm(bytes))
		a.Bind(skip)
	}
	a.Bind(none)
}
