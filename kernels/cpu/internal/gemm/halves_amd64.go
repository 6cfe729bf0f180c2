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

// f16Tiles have pairs of f16.
var f16Tiles = tileFormat{
	terms:     32,
	share:     2,
	packTerms: packTermsF16,
	packLanes: func(n int, to, from *byte, fromStride int) {
		pairRowsF16(n, to, tileRow, from, fromStride)
	},
	narrow: roundF16,
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

// packTermsF16 is packTermsBF16 for f16.
func packTermsF16(rows int, to, from *byte, fromStride int) {
	t, f := unsafe.Pointer(to), unsafe.Pointer(from)
	for i := range rows {
		pairTermsF16(
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
	panel:  wordPanel,
	narrow: roundBF16,
}

// A halvesUnit is the kernels of products of bf16 and f16, nil where this process has none.
type halvesUnit struct {
	tiles    tileKernel
	f16Tiles tileKernel
	pairs    *pairFormat
}

// halves is the kernels of this processor. The first product asks for tiles (see i8).
var halves = sync.OnceValue(func() (u halvesUnit) {
	if i16 == nil {
		return u
	}
	listed := cpu.X86.HasAMXBF16 || hasAMXFP16()
	if cpu.X86.HasAMXTile && listed && permitTiles() {
		if cpu.X86.HasAMXBF16 {
			u.tiles = multiplyTilesBF16
		}
		if hasAMXFP16() {
			u.f16Tiles = multiplyTilesF16
		}
	}
	if cpu.X86.HasAVX512BW && cpu.X86.HasAVX512BF16 {
		u.pairs = &bf16Pairs
	}
	return u
})

// hasAMXFP16 reports whether the processor lists AMX-FP16: bit 21 of EAX of leaf 7, part 1
// (Intel SDM, volume 2, CPUID), where there is such a part.
func hasAMXFP16() bool {
	const extended, bit = 7, 21
	if cpuid(0, 0) < extended || cpuid(extended, 0) < 1 {
		return false
	}
	return cpuid(extended, 1)>>bit&1 == 1
}

// tilesOf is the kernel of tiles and what they hold; nil: none.
func (u halvesUnit) tilesOf(how Halves) (tileKernel, *tileFormat) {
	switch how {
	case Tiles:
		return u.tiles, &bf16Tiles
	case F16Tiles:
		return u.f16Tiles, &f16Tiles
	}
	return nil, nil
}

// hasHalves reports whether there are kernels.
func hasHalves(how Halves) bool {
	u := halves()
	if how == Pairs {
		return u.pairs != nil
	}
	kernel, _ := u.tilesOf(how)
	return kernel != nil
}

// scratchHalves is the elements that kernels need.
func scratchHalves(how Halves) int {
	switch {
	case how == MultiplyAdds || !hasHalves(how):
		return 0
	case how == Pairs:
		return halves().pairs.scratch()
	}
	return tileScratch
}

// multiplyHalves multiplies by tiles or pairs.
func multiplyHalves(x Product[float32], scratch []float32, how Halves) {
	if how == Pairs {
		multiplyPairs(halves().pairs, x, scratch)
		return
	}
	kernel, format := halves().tilesOf(how)
	t := newTileProduct(format, kernel, x, scratch)
	t.multiply()
}

// EmulateHalves puts kernels in Go, which do what the instructions do, bit for bit, in the
// place of those of this processor until the function that it returns is called. It is
// for tests, and reports whether there is code for this platform to put them in.
func EmulateHalves() (restore func(), ok bool) {
	if i16 == nil { // packing needs AVX
		return func() {}, false
	}
	saved := halves
	pairs := bf16Pairs
	emulated := *pairs.family
	whole := func(*byte) int { return emulated.width() }
	for r := range emulated.full {
		emulated.full[r] = pairsInGo(r+1, whole)
		emulated.masked[r] = pairsInGo(r+1, wideMaskLanes)
	}
	emulated.tall = pairsInGo(tallRows, whole)
	pairs.family, pairs.panel = &emulated, nil // packed with AVX2
	u := halvesUnit{tilesInGo(ofBF16), tilesInGo(ofF16), &pairs}
	halves = func() halvesUnit { return u }
	return func() { halves = saved }, true
}

// wideMaskLanes is the number of lanes of a mask that wideMask made.
func wideMaskLanes(mask *byte) int {
	on := (*uint32)(unsafe.Pointer(mask))
	return bits.OnesCount32(*on)
}

// tilesInGo is multiplyTilesBF16 or multiplyTilesF16, by what elements are as f32.
func tilesInGo(of func(uint16) float32) tileKernel {
	return func(_ *byte, blocks, steps int, a, b, c *byte, crs, how int) {
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
					sum = addFlushed(sum, tileSum(u, v, of))
				}
				*to = sum
			}
		}
	}
}

// tileSum is the product of a row of a tile and a column of another, of pairs.
func tileSum(row, column unsafe.Pointer, of func(uint16) float32) float32 {
	var even, odd float32
	for range tileLanes {
		u := *(*[2]uint16)(row)
		v := *(*[2]uint16)(column)
		even = multiplyAddHalf(of(u[0]), of(v[0]), even)
		odd = multiplyAddHalf(of(u[1]), of(v[1]), odd)
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
		sum = multiplyAddHalf(ofBF16(u[1]), ofBF16(v[1]), sum)
		sum = multiplyAddHalf(ofBF16(u[0]), ofBF16(v[0]), sum)
	}
	return sum
}
