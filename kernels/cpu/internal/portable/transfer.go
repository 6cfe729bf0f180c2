package portable

import (
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Arrays hold elements in the layout of their type, scratch holds them in that of
// their class. A transfer converts a run of them, dense or strided. For types that
// are their own class it copies. Other integers convert by Go's conversion, which
// extends and truncates; results of operations were wrapped before, so that nothing
// is lost. Types narrower than f32 decode and encode bit patterns; values were
// rounded before, so that encoding is exact, too.

// A Transfer moves one run of elements between scratch and an array in memory.
// Element k of scratch corresponds to element at + k·stride of the array, whose
// bytes are data.
type Transfer[T Number] func(
	scratch []T, data []byte, at, stride int64,
)

// Stored lists the Go types that arrays consist of in memory.
type Stored interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64
}

// elements are the bytes of an array as a slice of its elements.
func elements[S Stored](data []byte) []S {
	return kernels.Elements[S](kernels.Buffer{Data: data})
}

// GatherRun sets dst[k] to element at + k·stride of src, converted to T. A
// stride of 0 repeats one element.
func GatherRun[T Number, S Stored](
	dst []T, src []S, at, stride int64,
) {
	switch stride {
	case 1:
		src = src[at : at+int64(len(dst))]
		if same, ok := any(src).([]T); ok {
			copy(dst, same)
			return
		}
		for k, v := range src {
			dst[k] = T(v)
		}
	case 0:
		Fill(dst, T(src[at]))
	default:
		for k := range dst {
			dst[k] = T(src[at])
			at += stride
		}
	}
}

// ScatterRun sets element at + k·stride of dst to src[k], converted to S.
func ScatterRun[S Stored, T Number](
	dst []S, src []T, at, stride int64,
) {
	if stride != 1 {
		for _, v := range src {
			dst[at] = S(v)
			at += stride
		}
		return
	}
	dst = dst[at : at+int64(len(src))]
	if same, ok := any(dst).([]T); ok {
		copy(same, src)
		return
	}
	for k, v := range src {
		dst[k] = S(v)
	}
}

// transfers are the two directions for arrays of S whose elements are held in
// scratch as T by conversion.
func transfers[S Stored, T Number]() [2]any {
	return [2]any{
		Transfer[T](func(scratch []T, data []byte, at, stride int64) {
			GatherRun(scratch, elements[S](data), at, stride)
		}),
		Transfer[T](func(scratch []T, data []byte, at, stride int64) {
			ScatterRun(elements[S](data), scratch, at, stride)
		}),
	}
}

// The transfers of floating types that are narrower than f32 decode and encode
// element by element. One loop serves dense and strided runs: on amd64, dense runs
// of bf16 and f16 are done by machine code.

var bf16Transfers = [2]any{
	Transfer[float32](func(scratch []float32, data []byte, at, stride int64) {
		src := elements[uint16](data)
		for k := range scratch {
			scratch[k] = kernels.BF16ToFloat32(src[at])
			at += stride
		}
	}),
	Transfer[float32](func(scratch []float32, data []byte, at, stride int64) {
		dst := elements[uint16](data)
		for _, v := range scratch {
			dst[at] = kernels.Float32ToBF16(v)
			at += stride
		}
	}),
}

var f16Transfers = [2]any{
	Transfer[float32](func(scratch []float32, data []byte, at, stride int64) {
		src := elements[uint16](data)
		for k := range scratch {
			scratch[k] = kernels.F16ToFloat32(src[at])
			at += stride
		}
	}),
	Transfer[float32](func(scratch []float32, data []byte, at, stride int64) {
		dst := elements[uint16](data)
		for _, v := range scratch {
			dst[at] = kernels.Float32ToF16(v)
			at += stride
		}
	}),
}

// byteTransfers are the transfers of a floating type of one byte.
func byteTransfers(d hlo.DType) [2]any {
	x := byteCodeOf(d)
	return [2]any{
		Transfer[float32](func(scratch []float32, data []byte, at, stride int64) {
			for k := range scratch {
				scratch[k] = x.values[data[at]]
				at += stride
			}
		}),
		Transfer[float32](func(scratch []float32, data []byte, at, stride int64) {
			for _, v := range scratch {
				data[at] = x.of(v)
				at += stride
			}
		}),
	}
}

// transfersOf are the read and the write by element type; floating types that
// are not listed have one byte. Integers of one, two and four bits take a byte each.
var transfersOf = map[hlo.DType][2]any{
	hlo.F32:  transfers[float32, float32](),
	hlo.F64:  transfers[float64, float64](),
	hlo.BF16: bf16Transfers,
	hlo.F16:  f16Transfers,
	hlo.Pred: transfers[uint8, int32](),
	hlo.S1:   transfers[int8, int32](),
	hlo.S2:   transfers[int8, int32](),
	hlo.S4:   transfers[int8, int32](),
	hlo.S8:   transfers[int8, int32](),
	hlo.S16:  transfers[int16, int32](),
	hlo.S32:  transfers[int32, int32](),
	hlo.U1:   transfers[uint8, int32](),
	hlo.U2:   transfers[uint8, int32](),
	hlo.U4:   transfers[uint8, int32](),
	hlo.U8:   transfers[uint8, int32](),
	hlo.U16:  transfers[uint16, int32](),
	hlo.U32:  transfers[uint32, int64](),
	hlo.S64:  transfers[int64, int64](),
	hlo.U64:  transfers[int64, int64](), // The bits of a u64 are held as an i64.
}

// Read is the transfer of arrays of type d into scratch of the class of d, whose
// Go type is T.
func Read[T Number](d hlo.DType) Transfer[T] {
	return transferOf[T](d, 0)
}

// Write is the transfer of scratch into arrays of type d. Values must have been
// rounded or wrapped to d before, where conversion alone does not.
func Write[T Number](d hlo.DType) Transfer[T] {
	return transferOf[T](d, 1)
}

// transferOf is the transfer of a type: direction 0 reads and 1 writes. Types
// without a row in the table take one byte an element.
func transferOf[T Number](d hlo.DType, direction int) Transfer[T] {
	both, ok := transfersOf[d]
	if !ok {
		both = byteTransfers(d)
	}
	return both[direction].(Transfer[T])
}
