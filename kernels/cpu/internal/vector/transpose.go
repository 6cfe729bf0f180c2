package vector

import (
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
)

// A transpose in registers takes log₂ n rounds of interleaving for n rows. Round k
// interleaves elements of 2^k times the original size of rows that are 2^k apart, so
// that after the last round a register holds a column. Instructions of AVX2
// interleave within halves of 16 bytes only. The routines for elements of four and
// eight bytes therefore load the two halves of a register from different rows, and
// those for one and two bytes work with registers of 16 bytes.
//
// A routine transposes a column of blocks: N blocks below each other in the
// destination, along the rows of the source. Rows of the source are prefetched a few
// lines ahead, since a block reads only one line of each.

// fetchLines is how many cache lines ahead in their rows transposes prefetch.
const fetchLines = 2

// TransposeArgs is the argument block of a transpose of N blocks below each
// other, with strides in bytes.
type TransposeArgs struct {
	N int64 // The number of blocks.
	// Where the first block begins in the source and in the destination.
	From, To unsafe.Pointer
	FromStep int64 // The distance of rows of the source.
	ToStep   int64 // The distance of rows of the destination.
}

// emitTranspose emits a loop over n blocks, where transpose reads rows of some
// bytes each and writes rows of the destination.
func emitTranspose(
	a *amd64.Assembler, prefetches bool, rows, bytes, written int,
	transpose func(from, to []amd64.Mem),
) {
	// RAX counts blocks, RSI and RDX are their addresses, RCX and RBX the strides,
	// R8 and R10 three strides, R9 and R11 the addresses of the fifth rows.
	EmitLoadArgs(a)
	a.Emit(amd64.MOV, amd64.RCX, amd64.Mem{
		Base: amd64.RDI,
		Disp: 24,
	})
	a.Emit(amd64.MOV, amd64.RBX, amd64.Mem{
		Base: amd64.RDI,
		Disp: 32,
	})
	a.Emit(amd64.LEA, amd64.R8, amd64.Mem{
		Base:  amd64.RCX,
		Index: amd64.RCX,
		Scale: 2,
	})
	a.Emit(amd64.LEA, amd64.R10, amd64.Mem{
		Base:  amd64.RBX,
		Index: amd64.RBX,
		Scale: 2,
	})
	loop := a.NewLabel()
	a.Bind(loop)
	a.Emit(amd64.LEA, amd64.R9, amd64.Mem{
		Base:  amd64.RSI,
		Index: amd64.RCX,
		Scale: 4,
	})
	a.Emit(amd64.LEA, amd64.R11, amd64.Mem{
		Base:  amd64.RDX,
		Index: amd64.RBX,
		Scale: 4,
	})
	from := EightRows(amd64.RSI, amd64.R9, amd64.RCX, amd64.R8)[:rows]
	for _, m := range from {
		if !prefetches {
			break
		}
		a.Emit(amd64.PREFETCHT0, OffsetBy(m, fetchLines*LineBytes))
	}
	transpose(
		from,
		EightRows(amd64.RDX, amd64.R11, amd64.RBX, amd64.R10),
	)
	a.Emit(
		amd64.ADD, amd64.RSI, amd64.Imm(bytes),
	)
	a.Emit(amd64.LEA, amd64.RDX, amd64.Mem{
		Base:  amd64.RDX,
		Index: amd64.RBX,
		Scale: uint8(written),
	})
	a.Emit(
		amd64.SUB, amd64.RAX, amd64.Imm(1),
	)
	a.Emit(amd64.JG, loop)
}

// OffsetBy is the memory a number of bytes further.
func OffsetBy(m amd64.Mem, bytes int32) amd64.Mem {
	m.Disp += bytes
	return m
}

// EightRows are the addresses of eight rows that are step apart, from base on;
// four is base + 4 steps, three is 3 steps.
func EightRows(base, four, step, three amd64.Reg) []amd64.Mem {
	var m []amd64.Mem
	for _, b := range [2]amd64.Reg{base, four} {
		m = append(
			m, amd64.Mem{Base: b},
			amd64.Mem{Base: b, Index: step, Scale: 1},
			amd64.Mem{Base: b, Index: step, Scale: 2},
			amd64.Mem{Base: b, Index: three, Scale: 1},
		)
	}
	return m
}

// emitTranspose32 transposes 8 by 8 elements of four bytes. A register gets
// half of row k and the same half of row 4 + k, so that lanes need not be
// exchanged.
func emitTranspose32(a *amd64.Assembler, prefetches bool) error {
	emitTranspose(a, prefetches, 8, 32, 8, func(
		from, to []amd64.Mem,
	) {
		for half := range 2 {
			for k := range 4 {
				emitLoadHalves(
					a, amd64.Y(k), from[k],
					from[4+k], int32(16*half),
				)
			}
			for k := range 2 { // rows 2k and 2k + 1, elements 0 1, then 2 3
				a.Emit(
					amd64.VUNPCKLPS,
					amd64.Y(4+2*k),
					amd64.Y(2*k),
					amd64.Y(2*k+1),
				)
				a.Emit(
					amd64.VUNPCKHPS,
					amd64.Y(5+2*k),
					amd64.Y(2*k),
					amd64.Y(2*k+1),
				)
			}
			for k := range 4 {
				x := amd64.Y(4 + k/2)
				y := amd64.Y(6 + k/2)
				a.Emit(
					amd64.VSHUFPS, amd64.Y(8+k),
					x, y,
					[2]amd64.Imm{0x44, 0xee}[k%2],
				)
				a.Emit(
					amd64.VMOVUPS,
					to[4*half+k],
					amd64.Y(8+k),
				)
			}
		}
	})
	return nil
}

// emitLoadHalves loads 16 bytes of each of two rows.
func emitLoadHalves(a *amd64.Assembler, y amd64.Reg, low, high amd64.Mem, at int32) {
	x := y - amd64.Y0 + amd64.X0
	a.Emit(amd64.VMOVUPS, x, OffsetBy(low, at))
	a.Emit(
		amd64.VINSERTF128, y, y,
		OffsetBy(high, at), amd64.Imm(1),
	)
}

// emitTranspose64 transposes 4 by 4 elements of eight bytes.
func emitTranspose64(a *amd64.Assembler, prefetches bool) error {
	emitTranspose(a, prefetches, 4, 32, 4, func(
		from, to []amd64.Mem,
	) {
		for half := range 2 {
			for k := range 2 {
				emitLoadHalves(
					a, amd64.Y(k), from[k],
					from[2+k], int32(16*half),
				)
			}
			a.Emit(
				amd64.VUNPCKLPD, amd64.Y2, amd64.Y0, amd64.Y1,
			)
			a.Emit(
				amd64.VUNPCKHPD, amd64.Y3, amd64.Y0, amd64.Y1,
			)
			a.Emit(
				amd64.VMOVUPS, to[2*half], amd64.Y2,
			)
			a.Emit(
				amd64.VMOVUPS, to[2*half+1], amd64.Y3,
			)
		}
	})
	return nil
}

// emitLoadRows loads the first 16 bytes of rows.
func emitLoadRows(a *amd64.Assembler, from []amd64.Mem) {
	for k, m := range from {
		a.Emit(amd64.VMOVUPS, amd64.X(k), m)
	}
}

// emitInterleave interleaves eight registers, from `from` on, in pairs of
// registers that are a distance apart. Register to + 2k + half is what the
// instruction for that half makes of pair k, so that one round leaves the
// registers in order for the next.
func emitInterleave(a *amd64.Assembler, low, high amd64.Op, from, to int, apart int) {
	n := 0
	for k := range 8 {
		if k&apart != 0 {
			continue
		}
		x := amd64.X(from + k)
		y := amd64.X(from + k + apart)
		a.Emit(low, amd64.X(to+2*n), x, y)
		a.Emit(high, amd64.X(to+2*n+1), x, y)
		n++
	}
}

// emitTranspose16 transposes 8 by 8 elements of two bytes: it interleaves pairs
// of rows, then pairs of these pairs, then the two halves.
func emitTranspose16(a *amd64.Assembler, prefetches bool) error {
	emitTranspose(a, prefetches, 8, 16, 8, func(
		from, to []amd64.Mem,
	) {
		emitLoadRows(a, from)
		// 8: rows 01 low, 01 high, 23 low, 23 high, 45 …
		emitInterleave(
			a, amd64.VPUNPCKLWD, amd64.VPUNPCKHWD, 0, 8, 1,
		)
		// 0: rows 0–3 columns 01, 23, 45, 67, then rows 4–7
		emitInterleave(
			a, amd64.VPUNPCKLDQ, amd64.VPUNPCKHDQ, 8, 0, 2,
		)
		emitInterleave(
			a, amd64.VPUNPCKLQDQ, amd64.VPUNPCKHQDQ, 0, 8, 4,
		)
		for k, m := range to {
			a.Emit(amd64.VMOVUPS, m, amd64.X(8+k))
		}
	})
	return nil
}

// emitTranspose8 transposes 8 by 16 elements of one byte.
func emitTranspose8(a *amd64.Assembler, prefetches bool) error {
	emitTranspose(a, prefetches, 8, 16, 8, func(
		from, to []amd64.Mem,
	) {
		emitLoadRows(a, from)
		// 8: rows 01 columns 0–7, 8–15, rows 23 …
		emitInterleave(
			a, amd64.VPUNPCKLBW, amd64.VPUNPCKHBW, 0, 8, 1,
		)
		// 0: rows 0–3 columns 0–3, 4–7, 8–11, 12–15, then rows 4–7
		emitInterleave(
			a, amd64.VPUNPCKLWD, amd64.VPUNPCKHWD, 8, 0, 2,
		)
		// 8: two columns each
		emitInterleave(
			a, amd64.VPUNPCKLDQ, amd64.VPUNPCKHDQ, 0, 8, 4,
		)
		for half := range 2 {
			for k, m := range to {
				x := amd64.X(8 + 4*half + k/2)
				if k%2 == 0 {
					a.Emit(amd64.VMOVQ, m, x)
				} else {
					a.Emit(
						amd64.VPEXTRQ, m, x, amd64.Imm(1),
					)
				}
			}
			if half == 0 {
				a.Emit(amd64.LEA, amd64.RDX, amd64.Mem{
					Base:  amd64.RDX,
					Index: amd64.RBX,
					Scale: 8,
				})
				a.Emit(amd64.LEA, amd64.R11, amd64.Mem{
					Base:  amd64.RDX,
					Index: amd64.RBX,
					Scale: 4,
				})
			}
		}
	})
	return nil
}
