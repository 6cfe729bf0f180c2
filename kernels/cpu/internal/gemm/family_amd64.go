//go:build !noasm

package gemm

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

//go:generate sh -c "cd gen && go run . -out ../kernels_amd64.s -stubs ../kernels_amd64.go -tables ../tables_amd64.go -pkg gemm"

// A kernel adds the product of a, some blocks of rows of k terms, and b, k rows
// of some columns, to c. Strides are bytes; columns of b and c are contiguous.
// Every four terms it prefetches the line at ahead and advances by step, once for six rows;
// kernels that fill a panel do so for each term.
type kernel func(
	blocks, k int,
	a *byte,
	ars, acs int,
	b *byte,
	brs int,
	c *byte,
	crs int,
	mask *byte,
	ahead uintptr,
	step, how int,
)

// A pairKernel is a kernel of two panels of b, the second of which is apart bytes behind the
// first, and of rows of a whose terms are contiguous. It prefetches twice as much for four terms.
type pairKernel func(
	blocks, k int,
	a *byte,
	ars int,
	b *byte,
	brs, apart int,
	c *byte,
	crs int,
	ahead uintptr,
	step, how int,
)

// A gemvKernel adds the products of gemvTerms terms of a row of a to lines of
// 64 bytes of c. It prefetches where those rows of b begin, or where it fetches all of
// them, ahead bytes on.
type gemvKernel func(
	lines int,
	a *byte,
	acs int,
	b *byte,
	brs int,
	c *byte,
	ahead int,
)

// gemvTerms is the number of terms of a gemv kernel.
const gemvTerms = 8

// A transposedGemvKernel adds products of a row of a, 16 terms a turn, to 64
// bytes of c, or to 32, where the terms of each column of b are contiguous and
// columns are bcs bytes apart.
type transposedGemvKernel func(
	turns int,
	a *byte,
	acs int,
	b *byte,
	bcs int,
	c *byte,
)

// A standingKernel adds products of a row of a, 16 terms a turn, to an element of
// c or to four, where the terms of a and of each column of b are contiguous. Columns
// are bcs bytes apart in b and ccs in c.
type standingKernel func(
	turns int,
	a, b *byte,
	bcs int,
	c *byte,
	ccs int,
)

// tallRows is the rows of a tall kernel: two blocks of the others.
const tallRows = 12

// A family is the kernels of an element type. full[r−1] multiplies r rows and
// two vectors of columns. masked[r−1] multiplies one vector, of which the mask
// says which lanes are valid: it reads and writes no others.
type family struct {
	full, masked [6]kernel
	pairs        [6]pairKernel // full of two panels at once, or nil.
	fills        [6]kernel     // full that copies rows of b to the panel at mask, or nil.
	tall         kernel        // One of tallRows rows and two vectors of columns, or nil.
	lanes        int           // The elements of a vector.
	bytes        int           // The bytes of an element.
	// The kernels of matrix-vector products, or nil: the second fetches.
	gemv [2]gemvKernel
	// Those of transposed matrices, for 64 and 32 bytes of c.
	transposedGemv     transposedGemvKernel
	halfTransposedGemv transposedGemvKernel // of 32
	standing           [3]standingKernel    // Of one, of four columns, and of four that fetches.
	masks              func(n int) *byte    // The mask of the first n lanes.
	// Copies rows of panelGroup panels that are next to each other, or nil.
	copyGroup func(rows int, to *byte, panel int, from *byte, fromStride int)
	transpose func(squares int, to *byte, toStride int, from *byte, fromStride int) // The transpose of squares of 32 bytes.
}

// width is the columns of a panel.
func (f *family) width() int { return 2 * f.lanes }

// panelWidth is the number of columns of a panel, 0 without kernels.
func (f *family) panelWidth() int {
	if f == nil {
		return 0
	}
	return f.width()
}

var f32, f64, i32, i16 = chooseFamilies(
	cpu.X86.HasAVX2 && cpu.X86.HasFMA,
	cpu.X86.HasAVX512F,
	cpu.X86.HasAVX512BW,
	cpu.X86.HasAVX512VNNI,
)

// Vectors is the bits of the widest vectors of this CPU that there is code for,
// and how many of them instructions can name: 0 without.
func Vectors() (bits, registers int) {
	switch f32 {
	case nil:
		return 0, 0
	case &f32Wide:
		return 512, 32
	}
	return 256, 16
}

// chooseFamilies are the families of a CPU, nil where it has none. Products of
// 16 bits in vectors of 512 need AVX-512BW, or AVX512-VNNI, which adds them to the
// sum in one instruction; the others need AVX-512F.
func chooseFamilies(avx2, avx512, words, vnni bool) (f32, f64, i32, i16 *family) {
	if !avx2 {
		return nil, nil, nil, nil
	}
	if !avx512 {
		return &f32Narrow, &f64Narrow, &i32Narrow, &i16Narrow
	}
	switch {
	case vnni:
		i16 = &i16VNNI
	case words:
		i16 = &i16Wide
	default:
		i16 = &i16Narrow
	}
	return &f32Wide, &f64Wide, &i32Wide, i16
}

// familyOf is the family of T, or nil.
func familyOf[T Element]() *family {
	var zero T
	switch any(zero).(type) {
	case float32:
		return f32
	case float64:
		return f64
	case int32:
		return i32
	}
	return nil
}

// laneMasks are the masks of vectors of 8 lanes: the first n are on where it is
// read 8−n elements from its beginning.
var laneMasks = [16]int32{
	-1, -1, -1, -1,
	-1, -1, -1, -1,
}

// narrowMask32 is the mask of n lanes of 32 bits.
func narrowMask32(n int) *byte {
	return (*byte)(unsafe.Pointer(&laneMasks[8-n]))
}

// narrowMask64 is the mask of n lanes of 64 bits.
func narrowMask64(n int) *byte {
	return (*byte)(unsafe.Pointer(&laneMasks[8-2*n]))
}

// lowBits[n] has n bits on, the mask of a vector of 512 bits.
var lowBits = func() (bits [17]uint32) {
	for n := range bits {
		bits[n] = 1<<n - 1
	}
	return bits
}()

// wideMask is the mask of n lanes of a vector of 512 bits.
func wideMask(n int) *byte {
	return (*byte)(unsafe.Pointer(&lowBits[n]))
}

// f32Narrow multiplies f32 in vectors of 256 bits.
var f32Narrow = family{
	full:               multiplyF32,
	masked:             multiplyF32Masked,
	lanes:              8,
	bytes:              4,
	gemv:               [2]gemvKernel{gemvF32, fetchingGemvF32},
	transposedGemv:     transposedGemvF32,
	halfTransposedGemv: transposedGemvF32Half,
	standing:           [3]standingKernel{standingF32, standingF32Four, fetchingStandingF32Four},
	masks:              narrowMask32,
	transpose:          transpose32,
	copyGroup:          copyLines,
}

// f64Narrow multiplies f64 in vectors of 256 bits.
var f64Narrow = family{
	full:      multiplyF64,
	masked:    multiplyF64Masked,
	lanes:     4,
	bytes:     8,
	gemv:      [2]gemvKernel{gemvF64, fetchingGemvF64},
	masks:     narrowMask64,
	transpose: transpose64,
	copyGroup: copyLines,
}

// i32Narrow multiplies i32 in vectors of 256 bits.
var i32Narrow = family{
	full:   multiplyI32,
	masked: multiplyI32Masked,
	lanes:  8, bytes: 4, masks: narrowMask32, transpose: transpose32,
	copyGroup: copyLines,
}

// i16Narrow multiplies pairs of 16 bits; a column is a pair.
var i16Narrow = family{
	full:   multiplyI16,
	masked: multiplyI16Masked,
	lanes:  8, bytes: 4, masks: narrowMask32, transpose: transpose32,
}

// f32Wide multiplies f32 in vectors of 512 bits.
var f32Wide = family{
	full:               multiplyF32Wide,
	pairs:              multiplyF32WidePair,
	fills:              multiplyF32WideFill,
	masked:             multiplyF32WideMasked,
	lanes:              16,
	bytes:              4,
	gemv:               [2]gemvKernel{gemvF32, fetchingGemvF32},
	transposedGemv:     transposedGemvF32,
	halfTransposedGemv: transposedGemvF32Half,
	standing:           [3]standingKernel{standingF32, standingF32Four, fetchingStandingF32Four},
	masks:              wideMask,
	transpose:          transpose32,
	copyGroup:          copyWidePanels,
}

// f64Wide multiplies f64 in vectors of 512 bits.
var f64Wide = family{
	full:      multiplyF64Wide,
	pairs:     multiplyF64WidePair,
	fills:     multiplyF64WideFill,
	masked:    multiplyF64WideMasked,
	lanes:     8,
	bytes:     8,
	gemv:      [2]gemvKernel{gemvF64, fetchingGemvF64},
	masks:     wideMask,
	transpose: transpose64,
	copyGroup: copyWidePanels,
}

// i32Wide multiplies i32 in vectors of 512 bits.
var i32Wide = family{
	full:   multiplyI32Wide,
	masked: multiplyI32WideMasked,
	lanes:  16, bytes: 4, masks: wideMask, transpose: transpose32,
	copyGroup: copyWidePanels,
}

// i16Wide is i16Narrow in vectors of 512 bits.
var i16Wide = family{
	full:   multiplyI16Wide,
	masked: multiplyI16WideMasked,
	lanes:  16, bytes: 4, masks: wideMask, transpose: transpose32,
}

// i16VNNI is i16Wide with one instruction for the product and the sum.
var i16VNNI = family{
	full:   multiplyI16VNNI,
	masked: multiplyI16VNNIMasked,
	lanes:  16, bytes: 4, masks: wideMask, transpose: transpose32,
}
