package vector

import "github.com/tilewright/tilewright/kernels/cpu/internal/amd64"

// Where there is AVX-512, a block of a band of four-byte elements is a line of each of sixteen
// rows of the source. A line is loaded at once, as two halves: sixteen rows that lie a multiple of
// a page apart share one set of the first cache, where lines that are loaded in four parts have
// left before the next part. A register has the half of a row and the same half of the fourth
// after it, so that two rounds of interleaving within quarters, and one of quarters, make columns:
//
//	vunpcklps, vunpckhps    rows 0 and 1, 2 and 3, …
//	vunpcklpd, vunpckhpd    rows 0 to 3 and 4 to 7, of columns k and 4+k
//	vshuff32x4              rows 0 to 15 of column k, and of 4+k

// wideBlock is the rows of the source in such a block, and the elements of each.
const wideBlock = 16

// emitWide32 is the block of a band of elements of four bytes in vectors of 64 bytes. The second
// half of the columns waits where they go until the first is done, for want of registers. A band has
// one such block in a line, so that there is no loop over blocks.
func emitWide32(a *amd64.Assembler, _ bool) error {
	const half = 8 // columns
	EmitLoadArgs(a)
	emitLoadArg(a, amd64.RCX, bandFromStep)
	rows := emitSixteenRows(a)
	for k := range half {
		low := rows[k%4+half*(k/4)]
		high := rows[k%4+half*(k/4)+4]
		emitLoadLines(a, k, half+k, low, high)
		a.Emit(
			amd64.VMOVUPS, columnAt(half+k), amd64.Z(half+k),
		)
	}
	for first := 0; first < wideBlock; first += half {
		for k := 0; first > 0 && k < half; k++ {
			a.Emit(
				amd64.VMOVUPS,
				amd64.Z(k),
				columnAt(first+k),
			)
		}
		emitWideColumns(a)
		for k := range half {
			a.Emit(
				amd64.VMOVUPS,
				columnAt(first+k),
				amd64.Z(half+k),
			)
		}
	}
	return nil
}

// emitLoadLines loads the first halves of two lines into a register, and their second halves into
// another. The halves of a line are loaded one after the other, while it is in the first cache
// whatever lines of other rows share its set.
func emitLoadLines(a *amd64.Assembler, first, second int, low, high amd64.Mem) {
	for n, k := range []int{first, second} {
		at := int32(32 * n)
		a.Emit(
			amd64.VMOVUPS,
			amd64.Y(k),
			OffsetBy(low, at),
		)
		a.Emit(
			amd64.VINSERTF64X4, amd64.Z(k), amd64.Z(k),
			OffsetBy(high, at), amd64.Imm(1),
		)
	}
}

// emitPair interleaves two registers, into one and the next. The first is written before the two are
// read again, so that it is neither of them.
func emitPair(a *amd64.Assembler, low, high amd64.Op, to, x, y int) {
	a.Emit(
		low,
		amd64.Z(to),
		amd64.Z(x),
		amd64.Z(y),
	)
	a.Emit(
		high,
		amd64.Z(to+1),
		amd64.Z(x),
		amd64.Z(y),
	)
}

// emitSixteenRows emits the addresses of sixteen rows from RSI on, RCX apart: every fourth row has a
// register, R8 is three distances, and the rows between are at indices of these.
func emitSixteenRows(a *amd64.Assembler) (rows []amd64.Mem) {
	bases := []amd64.Reg{amd64.RSI, amd64.R9, amd64.R10, amd64.R11}
	a.Emit(amd64.LEA, amd64.R8, amd64.Mem{
		Base:  amd64.RCX,
		Index: amd64.RCX,
		Scale: 2,
	})
	for k, r := range bases[1:] {
		a.Emit(amd64.LEA, r, amd64.Mem{
			Base:  bases[k],
			Index: amd64.RCX,
			Scale: 4,
		})
	}
	for k := 0; k < len(bases); k += 2 {
		rows = append(
			rows,
			EightRows(bases[k], bases[k+1], amd64.RCX, amd64.R8)...,
		)
	}
	return rows
}

// emitWideColumns makes eight columns, in Z8 to Z15, of Z0 to Z7. Registers 0 to 3 have halves of the
// rows 0 to 3 and of the rows 4 to 7, registers 4 to 7 those of the rows 8 to 11 and 12 to 15. The
// first two rounds leave in each quarter one column of four rows; the last one puts the quarters of
// a column next to each other.
func emitWideColumns(a *amd64.Assembler) {
	for k := 0; k < 8; k += 2 {
		emitPair(
			a,
			amd64.VUNPCKLPS,
			amd64.VUNPCKHPS,
			8+k,
			k,
			k+1,
		)
	}
	for k := 0; k < 8; k += 4 {
		emitPair(
			a,
			amd64.VUNPCKLPD,
			amd64.VUNPCKHPD,
			k,
			8+k,
			10+k,
		)
		emitPair(
			a,
			amd64.VUNPCKLPD,
			amd64.VUNPCKHPD,
			k+2,
			9+k,
			11+k,
		)
	}
	for k := range 8 {
		a.Emit(
			amd64.VSHUFF32X4, amd64.Z(8+k),
			amd64.Z(k%4), amd64.Z(k%4+4),
			[2]amd64.Imm{0x88, 0xdd}[k/4],
		)
	}
}

// columnAt is where column n of a block goes: a row of the scratch of a band, as for the blocks of
// vectors of 32 bytes.
func columnAt(n int) amd64.Mem {
	return amd64.Mem{Base: amd64.RDX, Disp: int32(n * BandStep)}
}
