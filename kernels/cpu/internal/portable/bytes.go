package portable

import (
	"math"
	"sync"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Floating types of one byte are read and written by tables. An f32 is rounded to odd in the
// 16 bits of bf16 first: it is cut off, and its last bit set if anything was. That rounding
// and then the one to nearest are one rounding to nearest, since bf16 has two digits more
// than the largest of these types (Boldo and Melquiond, Emulation of FMA and correctly
// rounded sums, 2008).

// A byteCode is the tables of a floating type of one byte.
type byteCode struct {
	// The bits of the type by those of a bf16.
	bits [1 << 16]byte
	// The values of the type by their bits.
	values [1 << 8]float32
}

// byteCodes are those that were asked for.
var byteCodes sync.Map // hlo.DType → func() *byteCode

// byteCodeOf are the tables of a type, which are made at their first use.
func byteCodeOf(d hlo.DType) *byteCode {
	made, _ := byteCodes.LoadOrStore(d, sync.OnceValue(func() *byteCode {
		return newByteCode(d)
	}))
	return made.(func() *byteCode)()
}

// newByteCode makes the tables.
func newByteCode(d hlo.DType) *byteCode {
	x := &byteCode{}
	for k := range x.bits {
		v := kernels.BF16ToFloat32(uint16(k))
		x.bits[k] = byte(d.FloatBits(float64(v)))
	}
	for k := range x.values {
		x.values[k] = float32(d.FloatFromBits(uint64(k)))
	}
	return x
}

// of is the bits of the nearest number of the type.
func (x *byteCode) of(v float32) byte {
	bits := math.Float32bits(v)
	odd := bits >> 16
	if bits&0xffff != 0 {
		odd |= 1
	}
	return x.bits[uint16(odd)]
}

// round rounds to the type.
func (x *byteCode) round(dst, src []float32) {
	for k, v := range src[:len(dst)] {
		dst[k] = x.values[x.of(v)]
	}
}
