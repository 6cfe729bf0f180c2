package cpu

import (
	"sync"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/amd64"
)

// copyArgs are n rows of so many bytes each. While they are copied, lines ahead
// bytes further in the source are fetched, and with every row four lines that
// will be read next: the first lines of four rows, fetchStep apart, from fetch on;
// with the next row those of the next four rows, and after fetchRows rows the
// second lines of the first four. 0 is nothing to fetch.
type copyArgs struct {
	n, bytes         int64
	from, to         unsafe.Pointer
	fromStep, toStep int64
	ahead            int64
	fetch            uintptr
	fetchStep        int64
	fetchRows        int64
}

// copyRoutines are the functions moves are made of.
type copyRoutines struct {
	copy, nonTemporal, fence amd64.Func
	transposes               [9]transposeRoutine // by bytes of an element
	ok                       bool
}

// A transposeRoutine transposes blocks: cols rows of the source, of rows elements.
type transposeRoutine struct {
	f          amd64.Func
	rows, cols int64
}

var loadedCopies = sync.OnceValue(func() *copyRoutines {
	m := &copyRoutines{}
	if !jitSupported() {
		return m
	}
	var ok [7]bool
	m.copy, ok[0] = loadRoutine(func(a *amd64.Assembler) error {
		return emitCopy(a, false)
	})
	m.nonTemporal, ok[1] = loadRoutine(func(a *amd64.Assembler) error {
		return emitCopy(a, true)
	})
	m.fence, ok[2] = loadRoutine(func(a *amd64.Assembler) error {
		a.Emit(amd64.SFENCE)
		return nil
	})
	m.transposes[1] = transposeRoutine{rows: 16, cols: 8}
	m.transposes[2] = transposeRoutine{rows: 8, cols: 8}
	m.transposes[4] = transposeRoutine{rows: 8, cols: 8}
	m.transposes[8] = transposeRoutine{rows: 4, cols: 4}
	m.transposes[1].f, ok[3] = loadRoutine(emitTranspose8)
	m.transposes[2].f, ok[4] = loadRoutine(emitTranspose16)
	m.transposes[4].f, ok[5] = loadRoutine(emitTranspose32)
	m.transposes[8].f, ok[6] = loadRoutine(emitTranspose64)
	m.ok = ok == [7]bool{true, true, true, true, true, true, true}
	return m
})

// storeFence orders streaming stores before what tells others of them.
func storeFence(w *worker) {
	if m := loadedCopies(); m.ok {
		m.fence.Call(unsafe.Pointer(&w.copyArgs))
	}
}

const maxCopyBytes = 1 << 20 // bytes a machine function copies in one call

// copyRows copies rows, streaming or not.
func (w *worker) copyRows(rows copyArgs, stream bool) {
	m := loadedCopies()
	if !m.ok || !stream && rows.bytes >= minMemmoveBytes {
		for k := range rows.n { // pointers past an array must not be
			to := unsafe.Add(rows.to, k*rows.toStep)
			from := unsafe.Add(rows.from, k*rows.fromStep)
			copy(
				unsafe.Slice((*byte)(to), rows.bytes),
				unsafe.Slice((*byte)(from), rows.bytes),
			)
		}
		return
	}
	f := m.copy
	if stream && rows.bytes >= lineBytes {
		f = m.nonTemporal
	}
	w.copyArgs = rows
	few := max(1, maxCopyBytes/rows.bytes)
	for k := int64(0); k < rows.n; k += few {
		w.copyArgs.n = min(few, rows.n-k)
		w.copyArgs.to, w.copyArgs.from = unsafe.Add(
			rows.to, k*rows.toStep,
		), unsafe.Add(rows.from, k*rows.fromStep)
		if rows.bytes > maxCopyBytes {
			w.copyLong(f, rows.bytes)
		} else {
			f.Call(unsafe.Pointer(&w.copyArgs))
		}
	}
	w.copyArgs = copyArgs{}
}

// copyLong copies one row in several calls.
func (w *worker) copyLong(f amd64.Func, bytes int64) {
	to := w.copyArgs.to
	from := w.copyArgs.from
	for at := int64(0); at < bytes; at += maxCopyBytes {
		w.copyArgs.bytes = min(maxCopyBytes, bytes-at)
		w.copyArgs.to, w.copyArgs.from = unsafe.Add(to, at),
			unsafe.Add(from, at)
		f.Call(unsafe.Pointer(&w.copyArgs))
	}
	w.copyArgs.bytes = bytes
}

const (
	lineBytes       = 64
	minMemmoveBytes = 2048 // bytes from which the copy of the run time is as good
)

// emitCopy copies rows: to whole lines of the destination 64 bytes at a time.
func emitCopy(a *amd64.Assembler, stream bool) error {
	arg := func(r amd64.Reg, n int32) {
		a.Emit(amd64.MOV, r, amd64.Mem{
			Base: amd64.RDI,
			Disp: 8 * n,
		})
	}
	from := amd64.RSI
	to := amd64.RDX
	left := amd64.RCX
	arg(amd64.RAX, 0)
	arg(amd64.R8, 2)
	arg(amd64.R9, 3)
	arg(amd64.R10, 6)
	arg(amd64.R11, 7)
	arg(amd64.R12, 8)
	arg(amd64.R13, 9)
	row := a.NewLabel()
	body := a.NewLabel()
	rest := a.NewLabel()
	next := a.NewLabel()
	fetched := a.NewLabel()
	a.Bind(row)
	if stream {
		emitPrefetchEnds(a)
	}
	a.Emit(amd64.MOV, from, amd64.R8)
	a.Emit(amd64.MOV, to, amd64.R9)
	arg(left, 1)
	if stream {
		emitCopyToLine(a, from, to, left)
	}
	a.Emit(amd64.SUB, left, amd64.Imm(lineBytes))
	a.Emit(amd64.JL, rest)
	a.Bind(body)
	emitCopyLine(a, from, to, stream)
	a.Emit(amd64.SUB, left, amd64.Imm(lineBytes))
	a.Emit(amd64.JGE, body)
	a.Bind(rest)
	emitCopySmall(a, from, to, left, 32) // the lowest bits are those of what is left
	a.Emit(amd64.ADD, amd64.R8, amd64.Mem{
		Base: amd64.RDI,
		Disp: 8 * 4,
	})
	a.Emit(amd64.ADD, amd64.R9, amd64.Mem{
		Base: amd64.RDI,
		Disp: 8 * 5,
	})
	a.Emit(amd64.TEST, amd64.R11, amd64.R11)
	a.Emit(amd64.JE, next)
	for range 2 {
		a.Emit(
			amd64.PREFETCHT1, amd64.Mem{Base: amd64.R11},
		)
		a.Emit(amd64.PREFETCHT1, amd64.Mem{
			Base:  amd64.R11,
			Index: amd64.R12,
			Scale: 1,
		})
		a.Emit(amd64.LEA, amd64.R11, amd64.Mem{
			Base:  amd64.R11,
			Index: amd64.R12,
			Scale: 2,
		})
	}
	a.Emit(amd64.SUB, amd64.R13, amd64.Imm(1))
	a.Emit(amd64.JG, fetched)
	arg(amd64.R13, 9)
	arg(amd64.R11, 7)
	a.Emit(amd64.ADD, amd64.R11, amd64.Imm(lineBytes))
	a.Emit(
		amd64.MOV,
		amd64.Mem{Base: amd64.RDI, Disp: 8 * 7},
		amd64.R11,
	)
	a.Bind(fetched)
	a.Bind(next)
	a.Emit(amd64.SUB, amd64.RAX, amd64.Imm(1))
	a.Emit(amd64.JG, row)
	return nil
}

// emitPrefetchEnds fetches, to be written, the lines that a row a few further begins and
// ends within: others are written whole.
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
		a.Emit(amd64.TEST, at, amd64.Imm(lineBytes-1))
		a.Emit(amd64.JE, whole)
		a.Emit(amd64.PREFETCHW, amd64.Mem{Base: at})
		a.Bind(whole)
	}
}

// emitCopyToLine copies up to where a line of the destination begins, or all.
func emitCopyToLine(a *amd64.Assembler, from, to, left amd64.Reg) {
	head := amd64.RBX
	a.Emit(amd64.MOV, head, to)
	a.Emit(amd64.NEG, head)
	a.Emit(amd64.AND, head, amd64.Imm(lineBytes-1))
	a.Emit(amd64.CMP, head, left)
	a.Emit(amd64.CMOVG, head, left)
	a.Emit(amd64.SUB, left, head)
	emitCopySmall(a, from, to, head, 32)
}

// emitCopyLine copies 64 bytes and fetches those ahead.
func emitCopyLine(a *amd64.Assembler, from, to amd64.Reg, stream bool) {
	store := amd64.VMOVUPS
	if stream {
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
	a.Emit(store, amd64.Mem{Base: to}, amd64.Y0)
	a.Emit(
		store, amd64.Mem{Base: to, Disp: 32}, amd64.Y1,
	)
	a.Emit(amd64.ADD, from, amd64.Imm(lineBytes))
	a.Emit(amd64.ADD, to, amd64.Imm(lineBytes))
}

// emitCopySmall copies the bytes that n has as its bits up to most, smallest first.
func emitCopySmall(a *amd64.Assembler, from, to, n amd64.Reg, most int) {
	none := a.NewLabel()
	a.Emit(amd64.TEST, n, amd64.Imm(2*most-1))
	a.Emit(amd64.JE, none)
	for bytes := 1; bytes <= most; bytes *= 2 {
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
			a.Emit(amd64.VPEXTRB, y, amd64.X0, amd64.Imm(0))
		case 2:
			a.Emit(
				amd64.VPINSRW, amd64.X0, amd64.X0,
				x, amd64.Imm(0),
			)
			a.Emit(amd64.VPEXTRW, y, amd64.X0, amd64.Imm(0))
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
