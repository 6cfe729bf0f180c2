//go:build !noasm

package gemm

import (
	"math/bits"
	"sync"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// bf16Tiles and f16Tiles have pairs of bf16 and of f16, each of which is packed in one way.
var bf16Tiles, f16Tiles = tilesOfPairs(&bf16Packing), tilesOfPairs(&f16Packing)

// bf16Packing and f16Packing are formats of pairs without kernels.
var (
	bf16Packing = pairFormat{
		terms:  pairTermsBF16,
		rows:   pairRowsBF16,
		narrow: roundBF16,
	}
	f16Packing = pairFormat{
		terms:  pairTermsF16,
		rows:   pairRowsF16,
		narrow: roundF16,
	}
)

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
	tiles    *tileKernels
	f16Tiles *tileKernels
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
			u.tiles = &tileKernels{multiplyTilesBF16Low, multiplyTilesBF16}
		}
		if hasAMXFP16() {
			u.f16Tiles = &tileKernels{multiplyTilesF16Low, multiplyTilesF16}
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
func (u halvesUnit) tilesOf(how Halves) (*tileKernels, *tileFormat) {
	switch how {
	case Tiles:
		return u.tiles, bf16Tiles
	case F16Tiles:
		return u.f16Tiles, f16Tiles
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
func scratchHalves(x Product[float32], how Halves) int {
	switch {
	case how == MultiplyAdds || !hasHalves(how):
		return 0
	case how == Pairs:
		return halves().pairs.scratch()
	}
	_, format := halves().tilesOf(how)
	return format.scratch(x.Caches, x.M, x.N, x.K)
}

// multiplyHalves multiplies by tiles or pairs.
func multiplyHalves(x Product[float32], scratch []float32, how Halves) {
	if how == Pairs {
		multiplyPairs(halves().pairs, x, scratch)
		return
	}
	kernels, format := halves().tilesOf(how)
	t := newTileProduct(format, *kernels, x, scratch)
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

// tilesInGo are the kernels of bf16 or f16, by what elements are as f32.
func tilesInGo(of func(uint16) float32) *tileKernels {
	kernel := func(
		config *byte, panels, blocks, steps int,
		a *byte, ars int, b *byte, next int, c *byte, crs int,
		_ *byte, how int,
	) {
		x := byteMatrix{unsafe.Pointer(a), ars, tileRow}
		z := byteMatrix{unsafe.Pointer(c), crs, 4}
		rows := blocks * tileConfigRows(config)
		for j := range panels * tileBlock {
			panel := unsafe.Add(unsafe.Pointer(b), j/tileBlock*next)
			y := byteMatrix{panel, panelStep, 4}
			for i := range rows {
				to := (*float32)(z.at(i, j).p)
				sum := *to
				if how&freshFlag != 0 {
					sum = 0
				}
				for s := range steps {
					u, v := x.at(i, s), y.at(s, j%tileBlock)
					sum = addFlushed(sum, tileSum(u.p, v.p, of))
				}
				*to = sum
			}
		}
	}
	return &tileKernels{kernel, kernel}
}

// tileConfigRows is the rows of a block by what LDTILECFG reads.
func tileConfigRows(config *byte) int {
	const first, second = 48, 50 // tiles of sums
	c := (*[64]byte)(unsafe.Pointer(config))
	return int(c[first]) + int(c[second])
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
		column = unsafe.Add(column, panelRow)
	}
	return addFlushed(even, odd)
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
