package cpu

import (
	"unsafe"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// maxRank bounds the rank of tiles, so that loops over them need no memory.
const maxRank = 16

// A box is a tile whose place is known at run time: sizes and strides are
// constants, offsets and bounds are in worker.places from at, three a dimension.
type box struct {
	sizes, strides []int64
	at             int
}

func (b *box) offset(w *worker, d int) int64 { return w.places[b.at+3*d] }

// span is the range of elements of dimension d that are not masked.
func (b *box) span(w *worker, d int) (lo, hi int64) {
	p := w.places[b.at+3*d:]
	offset, lower, bound := p[0], p[1], p[2]
	hi = b.sizes[d]
	if offset < lower {
		lo = (lower - offset + b.strides[d] - 1) / b.strides[d]
	}
	if last := offset + (hi-1)*b.strides[d]; last >= bound {
		hi = max(0, (bound-offset+b.strides[d]-1)/b.strides[d])
	}
	return min(lo, hi), hi
}

// A region is the unmasked part of a tile, as a nest of runs along the last
// dimension.
type region struct {
	lo, hi [maxRank]int64
	whole  bool // nothing is masked
	empty  bool
}

func (b *box) region(w *worker, r *region) {
	r.whole, r.empty = true, false
	for d := range b.sizes {
		lo, hi := b.span(w, d)
		r.lo[d], r.hi[d] = lo, hi
		r.whole = r.whole && lo == 0 && hi == b.sizes[d]
		r.empty = r.empty || lo >= hi
	}
}

// A transfer moves one run between memory and scratch.
type transfer[T number] func(scratch []T, data []byte, at, stride int64)

// access walks the unmasked runs of a tile of an array; in is where the array
// is among the worker's buffers.
type access[T number] struct {
	box      box
	slot     slot
	shape    hlo.Shape
	memory   []int64 // element strides of the array
	transfer transfer[T]
}

func newAccess[T number](b box, s slot, shape hlo.Shape, t transfer[T]) *access[T] {
	return &access[T]{box: b, slot: s, shape: shape, memory: shape.Strides(), transfer: t}
}

// each moves every run of the tile.
func (a *access[T]) each(w *worker, data []byte, clear bool) {
	var r region
	a.box.region(w, &r)
	scratch := of[T](w)[a.slot.at : a.slot.at+a.slot.n]
	if clear && !r.whole {
		zero(scratch)
	}
	if r.empty {
		return
	}
	rank := len(a.box.sizes)
	if rank == 0 {
		a.transfer(scratch[:1], data, 0, 1)
		return
	}
	var at int64
	var index [maxRank]int64
	for d := range rank {
		index[d] = r.lo[d]
		at += (a.box.offset(w, d) + r.lo[d]*a.box.strides[d]) * a.memory[d]
	}
	inner := rank - 1
	step := a.box.strides[inner] * a.memory[inner]
	for {
		var row int64
		for d := range inner {
			row = (row + index[d]) * a.box.sizes[d+1]
		}
		a.transfer(scratch[row+r.lo[inner]:row+r.hi[inner]], data, at, step)
		d := inner - 1
		for ; d >= 0; d-- {
			jump := a.box.strides[d] * a.memory[d]
			index[d]++
			at += jump
			if index[d] < r.hi[d] {
				break
			}
			at -= (index[d] - r.lo[d]) * jump
			index[d] = r.lo[d]
		}
		if d < 0 {
			return
		}
	}
}

func zero[T number](s []T) {
	for k := range s {
		s[k] = 0
	}
}

// stored is what arrays are made of in memory.
type stored interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64
}

func elements[S stored](data []byte) []S {
	return kernels.Elements[S](kernels.Buffer{Data: data})
}

func read[S stored, T number](scratch []T, data []byte, at, stride int64) {
	src := elements[S](data)
	if stride == 1 {
		src = src[at : at+int64(len(scratch))]
		for k, v := range src {
			scratch[k] = T(v)
		}
		return
	}
	for k := range scratch {
		scratch[k] = T(src[at])
		at += stride
	}
}

func write[S stored, T number](scratch []T, data []byte, at, stride int64) {
	dst := elements[S](data)
	if stride == 1 {
		dst = dst[at : at+int64(len(scratch))]
		for k, v := range scratch {
			dst[k] = S(v)
		}
		return
	}
	for _, v := range scratch {
		dst[at] = S(v)
		at += stride
	}
}

// copyIn and copyOut are read and write of the scratch's own type.
func copyIn[T number](scratch []T, data []byte, at, stride int64) {
	src := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/int(unsafe.Sizeof(scratch[0])))
	if stride == 1 {
		copy(scratch, src[at:])
		return
	}
	for k := range scratch {
		scratch[k] = src[at]
		at += stride
	}
}

func copyOut[T number](scratch []T, data []byte, at, stride int64) {
	dst := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/int(unsafe.Sizeof(scratch[0])))
	if stride == 1 {
		copy(dst[at:], scratch)
		return
	}
	for _, v := range scratch {
		dst[at] = v
		at += stride
	}
}

// readSmall and writeSmall are for the floating types without a Go type.
func readSmall(d hlo.DType) transfer[float32] {
	return func(scratch []float32, data []byte, at, stride int64) {
		b := kernels.Buffer{Shape: hlo.Shape{DType: d}, Data: data}
		for k := range scratch {
			scratch[k] = float32(b.Float(at))
			at += stride
		}
	}
}

func writeSmall(d hlo.DType) transfer[float32] {
	return func(scratch []float32, data []byte, at, stride int64) {
		b := kernels.Buffer{Shape: hlo.Shape{DType: d}, Data: data}
		for _, v := range scratch {
			b.SetFloat(at, float64(v))
			at += stride
		}
	}
}

func readBF16(scratch []float32, data []byte, at, stride int64) {
	src := elements[uint16](data)
	for k := range scratch {
		scratch[k] = kernels.BF16ToFloat32(src[at])
		at += stride
	}
}

func writeBF16(scratch []float32, data []byte, at, stride int64) {
	dst := elements[uint16](data)
	for _, v := range scratch {
		dst[at] = kernels.Float32ToBF16(v)
		at += stride
	}
}

var intReaders = map[hlo.DType]transfer[int64]{
	hlo.Pred: read[uint8, int64], hlo.S2: read[int8, int64], hlo.S4: read[int8, int64], hlo.S8: read[int8, int64],
	hlo.S16: read[int16, int64], hlo.S32: read[int32, int64], hlo.S64: copyIn[int64],
	hlo.U2: read[uint8, int64], hlo.U4: read[uint8, int64], hlo.U8: read[uint8, int64],
	hlo.U16: read[uint16, int64], hlo.U32: read[uint32, int64], hlo.U64: copyIn[int64],
}

var intWriters = map[hlo.DType]transfer[int64]{
	hlo.Pred: write[uint8, int64], hlo.S2: write[int8, int64], hlo.S4: write[int8, int64], hlo.S8: write[int8, int64],
	hlo.S16: write[int16, int64], hlo.S32: write[int32, int64], hlo.S64: copyOut[int64],
	hlo.U2: write[uint8, int64], hlo.U4: write[uint8, int64], hlo.U8: write[uint8, int64],
	hlo.U16: write[uint16, int64], hlo.U32: write[uint32, int64], hlo.U64: copyOut[int64],
}

func floatReader(d hlo.DType) transfer[float32] {
	switch d {
	case hlo.F32:
		return copyIn[float32]
	case hlo.BF16:
		return readBF16
	}
	return readSmall(d)
}

func floatWriter(d hlo.DType) transfer[float32] {
	switch d {
	case hlo.F32:
		return copyOut[float32]
	case hlo.BF16:
		return writeBF16
	}
	return writeSmall(d)
}
