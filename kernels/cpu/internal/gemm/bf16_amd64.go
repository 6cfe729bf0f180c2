//go:build !noasm

package gemm

import (
	"math/bits"
	"sync"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// bf16Tiles have pairs of bf16.
var bf16Tiles = tileFormat{
	terms:     32,
	share:     2,
	packTerms: packTermsBF16,
	packLanes: func(n int, to, from *byte, fromStride int) {
		pairRowsBF16(n, to, tileRow, from, fromStride)
	},
	narrow: roundBF16,
}

// packTermsBF16 packs rows of contiguous terms to rows of a tile.
func packTermsBF16(rows int, to, from *byte, fromStride int) {
	t, f := unsafe.Pointer(to), unsafe.Pointer(from)
	for i := range rows {
		pairTermsBF16(
			2, (*byte)(unsafe.Add(t, i*tileRow)),
			(*byte)(unsafe.Add(f, i*fromStride)),
		)
	}
}

// bf16Pairs multiplies pairs of bf16; a column is a pair.
var bf16Pairs = pairFormat{
	family: &family{
		full:   multiplyBF16Pairs,
		masked: multiplyBF16PairsMasked,
		tall:   multiplyBF16PairsRows12,
		lanes:  16, bytes: 4, masks: wideMask, transpose: transpose32,
	},
	terms:  pairTermsBF16,
	rows:   pairRowsBF16,
	narrow: roundBF16,
}

// A bf16Unit is the kernels of products of bf16, nil where this process has none.
type bf16Unit struct {
	tiles tileKernel
	pairs *pairFormat
}

// bf16 is the kernels of this processor. The first product asks for tiles (see i8).
var bf16 = sync.OnceValue(func() (u bf16Unit) {
	if i16 == nil {
		return u
	}
	if cpu.X86.HasAMXTile && cpu.X86.HasAMXBF16 && permitTiles() {
		u.tiles = multiplyTilesBF16
	}
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512BF16 {
		u.pairs = &bf16Pairs
	}
	return u
})

// hasBF16 reports whether there are kernels.
func hasBF16(how BF16) bool {
	if how == Tiles {
		return bf16().tiles != nil
	}
	return bf16().pairs != nil
}

// scratchBF16 is the elements that kernels need.
func scratchBF16(how BF16) int {
	switch {
	case how == MultiplyAdds || !hasBF16(how):
		return 0
	case how == Tiles:
		return tileScratch
	}
	return bf16().pairs.scratch()
}

// multiplyBF16 multiplies by tiles or pairs.
func multiplyBF16(x Product[float32], scratch []float32, how BF16) {
	if how == Tiles {
		t := newTileProduct(&bf16Tiles, bf16().tiles, x, scratch)
		t.multiply()
		return
	}
	multiplyPairs(bf16().pairs, x, scratch)
}

// EmulateBF16 puts kernels in Go, which do what the instructions do, bit for bit, in the
// place of those of this processor until the function that it returns is called. It is
// for tests, and reports whether there is code for this platform to put them in.
func EmulateBF16() (restore func(), ok bool) {
	if i16 == nil { // packing needs AVX
		return func() {}, false
	}
	saved := bf16
	pairs := bf16Pairs
	emulated := *pairs.family
	whole := func(*byte) int { return emulated.width() }
	for r := range emulated.full {
		emulated.full[r] = pairsInGo(r+1, whole)
		emulated.masked[r] = pairsInGo(r+1, wideMaskLanes)
	}
	emulated.tall = pairsInGo(tallRows, whole)
	pairs.family = &emulated
	bf16 = func() bf16Unit { return bf16Unit{tilesInGo, &pairs} }
	return func() { bf16 = saved }, true
}

// wideMaskLanes is the number of lanes of a mask that wideMask made.
func wideMaskLanes(mask *byte) int {
	on := (*uint32)(unsafe.Pointer(mask))
	return bits.OnesCount32(*on)
}

// tilesInGo is multiplyTilesBF16.
func tilesInGo(_ *byte, blocks, steps int, a, b, c *byte, crs, how int) {
	x := tilesOf{unsafe.Pointer(a), steps}
	y := tilesOf{unsafe.Pointer(b), steps}
	z := byteMatrix{unsafe.Pointer(c), crs, 4}
	for i := range tileBlock * blocks {
		for j := range tileBlock {
			to := (*float32)(z.at(i, j).p)
			sum := *to
			if how&freshFlag != 0 {
				sum = 0
			}
			for s := range steps {
				u := x.at(i, s, i%tileLanes, 0)
				v := y.at(j, s, 0, j%tileLanes)
				sum = addFlushed(sum, tileSum(u, v))
			}
			*to = sum
		}
	}
}

// tileSum is the product of a row of a tile and a column of another, of pairs of bf16.
func tileSum(row, column unsafe.Pointer) float32 {
	var even, odd float32
	for range tileLanes {
		u := *(*[2]uint16)(row)
		v := *(*[2]uint16)(column)
		even = multiplyAddBF16(u[0], v[0], even)
		odd = multiplyAddBF16(u[1], v[1], odd)
		row = unsafe.Add(row, 4)
		column = unsafe.Add(column, tileRow)
	}
	return addFlushed(even, odd)
}

// A tilesOf is a packed operand: by block of 32 lanes, step, half.
type tilesOf struct {
	p     unsafe.Pointer
	steps int
}

// at is a row and column of the tile of a lane and step.
func (x tilesOf) at(lane, step, row, column int) unsafe.Pointer {
	block := lane / tileBlock
	half := lane % tileBlock / tileLanes
	tile := (block*x.steps+step)*2 + half
	return unsafe.Add(x.p, tile*tileBytes+row*tileRow+4*column)
}

// pairsInGo is a kernel of VDPBF16PS for so many rows.
func pairsInGo(rows int, columns func(mask *byte) int) kernel {
	return func(
		blocks, k int,
		a *byte,
		ars, acs int,
		b *byte,
		brs int,
		c *byte,
		crs int,
		mask *byte,
		_ uintptr,
		_, how int,
	) {
		x := byteMatrix{unsafe.Pointer(a), ars, acs}
		y := byteMatrix{unsafe.Pointer(b), brs, 4}
		z := byteMatrix{unsafe.Pointer(c), crs, 4}
		n := columns(mask)
		for i := range blocks * rows {
			for j := range n {
				to := (*float32)(z.at(i, j).p)
				if how&freshFlag != 0 {
					*to = 0
				}
				*to = pairSum(*to, x.at(i, 0), y.at(0, j), k)
			}
		}
	}
}

// pairSum adds k products of pairs of bf16.
func pairSum(sum float32, x, y byteMatrix, k int) float32 {
	for p := range k {
		a, b := x.at(0, p), y.at(p, 0)
		u := *(*[2]uint16)(a.p)
		v := *(*[2]uint16)(b.p)
		sum = multiplyAddBF16(u[1], v[1], sum)
		sum = multiplyAddBF16(u[0], v[0], sum)
	}
	return sum
}
