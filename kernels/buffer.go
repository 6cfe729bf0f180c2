package kernels

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// A Buffer is an array in memory. Its elements are in the physical order of
// Shape.Layout, each in the width of its type (pred, s4/u4 and f8 take a byte), little
// endian.
type Buffer struct {
	Shape hlo.Shape
	Data  []byte
}

// maxBuffer bounds the size of one array: a larger one is a mistake in the input
// rather than a tensor for this machine.
const maxBuffer = 64 << 30

// NewBuffer allocates a zeroed array that is aligned to 64 bytes. Tiled layouts and
// shapes that do not fit in memory are errors.
func NewBuffer(shape hlo.Shape) (Buffer, error) {
	if !shape.DType.IsArray() {
		return Buffer{}, fmt.Errorf("%s is not an array", shape)
	}
	if len(shape.Layout.Tiles) > 0 {
		return Buffer{}, fmt.Errorf("%s: only the kernel of one fusion takes arrays in tiled layouts (symtile.Program.Physical)", shape)
	}
	n := shape.Bytes()
	if n > maxBuffer {
		return Buffer{}, fmt.Errorf(
			"%s takes %d bytes; at most %d are allocated",
			shape, n, int64(maxBuffer),
		)
	}
	if err := CheckFreeMemory(n); err != nil {
		return Buffer{}, fmt.Errorf("%s: %w", shape, err)
	}
	return Buffer{Shape: shape, Data: allocateAligned(n)}, nil
}

// largePage is the size of a large page on amd64 and arm64, in bytes.
const largePage = 2 << 20 // bytes, on amd64 and arm64

// allocateAligned returns n zeroed bytes that start at a cache line, or at a large
// page where they are at least as large.
func allocateAligned(n int64) []byte {
	to := uintptr(64)
	if n >= largePage {
		to = largePage
	}
	raw := make([]byte, n+int64(to))
	adviseHugePages(raw)
	skip := (to - uintptr(unsafe.Pointer(unsafe.SliceData(raw)))%to) % to
	return raw[skip : int64(skip)+n : int64(skip)+n]
}

// IsAligned reports whether data begins with a cache line, as the arrays of NewBuffer do.
func IsAligned(data []byte) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(data)))%64 == 0
}

// Aligned is data, or a copy of it that is aligned as NewBuffer aligns arrays.
func Aligned(data []byte) []byte {
	if IsAligned(data) {
		return data
	}
	out := allocateAligned(int64(len(data)))
	copy(out, data)
	return out
}

// At is the physical position of a logical index, in elements.
func (b Buffer) At(index []int64) int64 {
	var at int64
	for d, stride := range b.Shape.Strides() {
		at += index[d] * stride
	}
	return at
}

// CopyTo copies the elements to an array of the same type and extents, whose layout may be another one without tiles.
func (b Buffer) CopyTo(out Buffer) {
	from, into := b.Shape.Strides(), out.Shape.Strides()
	size := b.Shape.DType.Size()
	dims := b.Shape.Dims
	// The index counts through the array in row-major order.
	index := make([]int64, len(dims))
	for n := b.Shape.Elements(); n > 0; n-- {
		var src, dst int64
		for d, i := range index {
			src += i * from[d]
			dst += i * into[d]
		}
		copy(
			out.Data[dst*size:(dst+1)*size],
			b.Data[src*size:],
		)
		for d := len(index) - 1; d >= 0; d-- {
			if index[d]++; index[d] < dims[d] {
				break
			}
			index[d] = 0
		}
	}
}

// Float returns the element at a physical position as float64; integers and pred are
// converted.
func (b Buffer) Float(at int64) float64 {
	switch b.Shape.DType {
	case hlo.F32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b.Data[4*at:])))
	case hlo.F64:
		return math.Float64frombits(binary.LittleEndian.Uint64(b.Data[8*at:]))
	case hlo.BF16:
		return float64(BF16ToFloat32(binary.LittleEndian.Uint16(b.Data[2*at:])))
	case hlo.F16:
		return float64(F16ToFloat32(binary.LittleEndian.Uint16(b.Data[2*at:])))
	}
	if d := b.Shape.DType; d.IsFloat() {
		return d.FloatFromBits(uint64(b.Data[at]))
	}
	if b.Shape.DType == hlo.U64 {
		return float64(uint64(b.Int(at)))
	}
	return float64(b.Int(at))
}

// ReadFloats is Float of consecutive elements from position at on.
func (b Buffer) ReadFloats(into []float64, at int64) {
	switch b.Shape.DType {
	case hlo.F32:
		data := b.Data[4*at:][:4*len(into)]
		for k := range into {
			into[k] = float64(
				math.Float32frombits(binary.LittleEndian.Uint32(data[4*k:])),
			)
		}
	default:
		for k := range into {
			into[k] = b.Float(at + int64(k))
		}
	}
}

// WriteFloats is SetFloat of consecutive elements from position at on.
func (b Buffer) WriteFloats(from []float64, at int64) {
	switch b.Shape.DType {
	case hlo.F32:
		data := b.Data[4*at:][:4*len(from)]
		for k, v := range from {
			binary.LittleEndian.PutUint32(
				data[4*k:], math.Float32bits(float32(v)),
			)
		}
	default:
		for k, v := range from {
			b.SetFloat(at+int64(k), v)
		}
	}
}

// SetFloat stores v, rounded to the element type (to nearest even).
func (b Buffer) SetFloat(at int64, v float64) {
	switch b.Shape.DType {
	case hlo.F32:
		binary.LittleEndian.PutUint32(
			b.Data[4*at:],
			math.Float32bits(float32(v)),
		)
	case hlo.F64:
		binary.LittleEndian.PutUint64(
			b.Data[8*at:], math.Float64bits(v),
		)
	case hlo.BF16:
		binary.LittleEndian.PutUint16(
			b.Data[2*at:], float64ToBF16(v),
		)
	case hlo.F16:
		binary.LittleEndian.PutUint16(
			b.Data[2*at:], float64ToF16(v),
		)
	default:
		b.Data[at] = byte(b.Shape.DType.FloatBits(v))
	}
}

// Int returns element at of an integer or pred array; u64 as its bits.
func (b Buffer) Int(at int64) int64 {
	switch b.Shape.DType.Size() {
	case 1:
		if b.Shape.DType.IsSigned() {
			return int64(int8(b.Data[at]))
		}
		return int64(b.Data[at])
	case 2:
		v := binary.LittleEndian.Uint16(b.Data[2*at:])
		if b.Shape.DType.IsSigned() {
			return int64(int16(v))
		}
		return int64(v)
	case 4:
		v := binary.LittleEndian.Uint32(b.Data[4*at:])
		if b.Shape.DType.IsSigned() {
			return int64(int32(v))
		}
		return int64(v)
	}
	return int64(binary.LittleEndian.Uint64(b.Data[8*at:]))
}

// SetInt stores v, wrapped to the element type.
func (b Buffer) SetInt(at int64, v int64) {
	v = WrapInt(b.Shape.DType, v)
	switch b.Shape.DType.Size() {
	case 1:
		b.Data[at] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(
			b.Data[2*at:], uint16(v),
		)
	case 4:
		binary.LittleEndian.PutUint32(
			b.Data[4*at:], uint32(v),
		)
	case 8:
		binary.LittleEndian.PutUint64(
			b.Data[8*at:], uint64(v),
		)
	}
}

// WrapInt reduces v modulo the width of an integer type; pred becomes 0 or 1.
func WrapInt(d hlo.DType, v int64) int64 {
	if d == hlo.Pred {
		if v != 0 {
			return 1
		}
		return 0
	}
	shift := 64 - uint(d.Bits())
	if d.IsSigned() {
		return v << shift >> shift
	}
	return int64(uint64(v) << shift >> shift)
}

// Complex returns the element at a physical position of an array of complex numbers.
func (b Buffer) Complex(at int64) complex128 {
	p := b.Parts()
	return complex(p.Float(2*at), p.Float(2*at+1))
}

// SetComplex stores v, each part rounded to its type.
func (b Buffer) SetComplex(at int64, v complex128) {
	p := b.Parts()
	p.SetFloat(2*at, real(v))
	p.SetFloat(2*at+1, imag(v))
}

// Parts is an array of complex numbers as the array of real numbers that lies in the
// same memory, of a shape with a last dimension of 2 (hlo.Shape.Parts); another array
// is itself.
func (b Buffer) Parts() Buffer {
	b.Shape = b.Shape.Parts()
	return b
}

// Elements views the data as a slice of T, which must have the width of the
// element type and be aligned for it (buffers of NewBuffer are).
func Elements[T any](b Buffer) []T {
	var zero T
	n := len(b.Data) / int(unsafe.Sizeof(zero))
	if n == 0 {
		return nil
	}
	return unsafe.Slice(
		(*T)(unsafe.Pointer(unsafe.SliceData(b.Data))), n,
	)
}
