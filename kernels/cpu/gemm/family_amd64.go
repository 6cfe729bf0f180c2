//go:build !noasm

package gemm

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

//go:generate sh -c "cd gen && go run . -out ../kernels_amd64.s -stubs ../kernels_amd64.go -pkg gemm"

// A kernel adds the product of a, some blocks of rows of k terms, and b, k rows
// of some columns, to c. Strides are bytes; columns of b and c are next to each other.
// Every four terms it fetches the line at ahead and goes on by step.
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

// A gemvKernel adds the products of streamed terms of a row of a to lines of 64
// bytes of c. It fetches what is ahead bytes behind those rows of b.
type gemvKernel func(
	lines int,
	a *byte,
	acs int,
	b *byte,
	brs int,
	c *byte,
	ahead int,
)

// gemvTerms is how many terms that is.
const gemvTerms = 8

// An transposedGemvKernel adds products of a row of a, 16 terms a turn, to 64 bytes of c, or
// to 32, where the terms of each column of b are next to each other and columns
// bcs bytes apart.
type transposedGemvKernel func(
	turns int,
	a *byte,
	acs int,
	b *byte,
	bcs int,
	c *byte,
)

// A family is the kernels of an element type. full[r−1] multiplies r rows and
// two vectors of columns; masked[r−1] one vector, of which the mask says what is
// there: it reads and writes nothing else.
type family struct {
	full, masked       [6]kernel
	lanes              int                  // elements of a vector
	bytes              int                  // of an element
	gemv               gemvKernel           // nil without
	transposedGemv     transposedGemvKernel // of 64 bytes of c; nil without
	halfTransposedGemv transposedGemvKernel // of 32
	masks              func(n int) *byte
	transpose          func(squares int, to *byte, toStride int, from *byte, fromStride int)
}

func (f *family) width() int { return 2 * f.lanes }

var f32, f64, i32, i16 = chooseFamilies(
	cpu.X86.HasAVX2 && cpu.X86.HasFMA,
	cpu.X86.HasAVX512F,
	cpu.X86.HasAVX512BW,
)

// Vectors are the bits of the widest vectors of this CPU that there is code for,
// and how many of them instructions name: 0 without.
func Vectors() (bits, registers int) {
	switch f32 {
	case nil:
		return 0, 0
	case &f32Wide:
		return 512, 32
	}
	return 256, 16
}

// chooseFamilies returns the families of a CPU; nil where it has none. Products of 16
// bits in 512 need AVX-512BW, the others AVX-512F.
func chooseFamilies(avx2, avx512, words bool) (f32, f64, i32, i16 *family) {
	if !avx2 {
		return nil, nil, nil, nil
	}
	if !avx512 {
		return &f32Narrow, &f64Narrow, &i32Narrow, &i16Narrow
	}
	if i16 = &i16Narrow; words {
		i16 = &i16Wide
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

// laneMasks holds the masks of vectors of 8 lanes: the first n are on where it is
// read 8−n elements from its beginning.
var laneMasks = [16]int32{
	-1, -1, -1, -1,
	-1, -1, -1, -1,
}

func narrowMask32(n int) *byte {
	return (*byte)(unsafe.Pointer(&laneMasks[8-n]))
}
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

func wideMask(n int) *byte {
	return (*byte)(unsafe.Pointer(&lowBits[n]))
}

var f32Narrow = family{
	full:               [6]kernel{multiplyF32Rows1, multiplyF32Rows2, multiplyF32Rows3, multiplyF32Rows4, multiplyF32Rows5, multiplyF32Rows6},
	masked:             [6]kernel{multiplyF32MaskedRows1, multiplyF32MaskedRows2, multiplyF32MaskedRows3, multiplyF32MaskedRows4, multiplyF32MaskedRows5, multiplyF32MaskedRows6},
	lanes:              8,
	bytes:              4,
	gemv:               streamF32,
	transposedGemv:     uprightF32,
	halfTransposedGemv: uprightF32Half,
	masks:              narrowMask32,
	transpose:          transpose32,
}

var f64Narrow = family{
	full:      [6]kernel{multiplyF64Rows1, multiplyF64Rows2, multiplyF64Rows3, multiplyF64Rows4, multiplyF64Rows5, multiplyF64Rows6},
	masked:    [6]kernel{multiplyF64MaskedRows1, multiplyF64MaskedRows2, multiplyF64MaskedRows3, multiplyF64MaskedRows4, multiplyF64MaskedRows5, multiplyF64MaskedRows6},
	lanes:     4,
	bytes:     8,
	gemv:      streamF64,
	masks:     narrowMask64,
	transpose: transpose64,
}

var i32Narrow = family{
	full:   [6]kernel{multiplyI32Rows1, multiplyI32Rows2, multiplyI32Rows3, multiplyI32Rows4, multiplyI32Rows5, multiplyI32Rows6},
	masked: [6]kernel{multiplyI32MaskedRows1, multiplyI32MaskedRows2, multiplyI32MaskedRows3, multiplyI32MaskedRows4, multiplyI32MaskedRows5, multiplyI32MaskedRows6},
	lanes:  8, bytes: 4, masks: narrowMask32, transpose: transpose32,
}

// i16Narrow multiplies pairs of 16 bits; a column is a pair.
var i16Narrow = family{
	full:   [6]kernel{multiplyI16Rows1, multiplyI16Rows2, multiplyI16Rows3, multiplyI16Rows4, multiplyI16Rows5, multiplyI16Rows6},
	masked: [6]kernel{multiplyI16MaskedRows1, multiplyI16MaskedRows2, multiplyI16MaskedRows3, multiplyI16MaskedRows4, multiplyI16MaskedRows5, multiplyI16MaskedRows6},
	lanes:  8, bytes: 4, masks: narrowMask32, transpose: transpose32,
}

var f32Wide = family{
	full:               [6]kernel{multiplyF32WideRows1, multiplyF32WideRows2, multiplyF32WideRows3, multiplyF32WideRows4, multiplyF32WideRows5, multiplyF32WideRows6},
	masked:             [6]kernel{multiplyF32WideMaskedRows1, multiplyF32WideMaskedRows2, multiplyF32WideMaskedRows3, multiplyF32WideMaskedRows4, multiplyF32WideMaskedRows5, multiplyF32WideMaskedRows6},
	lanes:              16,
	bytes:              4,
	gemv:               streamF32,
	transposedGemv:     uprightF32,
	halfTransposedGemv: uprightF32Half,
	masks:              wideMask,
	transpose:          transpose32,
}

var f64Wide = family{
	full:      [6]kernel{multiplyF64WideRows1, multiplyF64WideRows2, multiplyF64WideRows3, multiplyF64WideRows4, multiplyF64WideRows5, multiplyF64WideRows6},
	masked:    [6]kernel{multiplyF64WideMaskedRows1, multiplyF64WideMaskedRows2, multiplyF64WideMaskedRows3, multiplyF64WideMaskedRows4, multiplyF64WideMaskedRows5, multiplyF64WideMaskedRows6},
	lanes:     8,
	bytes:     8,
	gemv:      streamF64,
	masks:     wideMask,
	transpose: transpose64,
}

var i32Wide = family{
	full:   [6]kernel{multiplyI32WideRows1, multiplyI32WideRows2, multiplyI32WideRows3, multiplyI32WideRows4, multiplyI32WideRows5, multiplyI32WideRows6},
	masked: [6]kernel{multiplyI32WideMaskedRows1, multiplyI32WideMaskedRows2, multiplyI32WideMaskedRows3, multiplyI32WideMaskedRows4, multiplyI32WideMaskedRows5, multiplyI32WideMaskedRows6},
	lanes:  16, bytes: 4, masks: wideMask, transpose: transpose32,
}

// i16Wide is i16Narrow of 512 bits.
var i16Wide = family{
	full:   [6]kernel{multiplyI16WideRows1, multiplyI16WideRows2, multiplyI16WideRows3, multiplyI16WideRows4, multiplyI16WideRows5, multiplyI16WideRows6},
	masked: [6]kernel{multiplyI16WideMaskedRows1, multiplyI16WideMaskedRows2, multiplyI16WideMaskedRows3, multiplyI16WideMaskedRows4, multiplyI16WideMaskedRows5, multiplyI16WideMaskedRows6},
	lanes:  16, bytes: 4, masks: wideMask, transpose: transpose32,
}
