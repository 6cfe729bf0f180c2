package cpu

import (
	"unsafe"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// A class is a type of scratch. Floating types narrower than f32 are held as
// f32, integers as the smallest of i32 and i64 that has all their values.
type class uint8

const (
	classF32 class = iota
	classF64
	classI32
	classI64
)

var classBytes = [...]int64{
	classF32: 4,
	classF64: 8,
	classI32: 4,
	classI64: 8,
}
var classNames = [...]string{
	classF32: "f32",
	classF64: "f64",
	classI32: "i32",
	classI64: "i64",
}

func classOf(d hlo.DType) class {
	switch {
	case d == hlo.F64:
		return classF64
	case d.IsFloat():
		return classF32
	case d == hlo.U32, d == hlo.S64, d == hlo.U64:
		return classI64
	}
	return classI32
}

// native says whether arrays of type d hold exactly what scratch of its class
// holds, so that one can stand for the other.
func native(d hlo.DType) bool {
	switch d {
	case hlo.F32, hlo.F64, hlo.S32, hlo.S64, hlo.U64:
		return true
	}
	return false
}

// A number is an element of scratch.
type number interface {
	float32 | float64 | int32 | int64
}

func classFor[T number]() class {
	var zero T
	switch any(zero).(type) {
	case float32:
		return classF32
	case float64:
		return classF64
	case int32:
		return classI32
	}
	return classI64
}

// A residence says where the elements of a value are while they are needed.
type residence uint8

const (
	inTile     residence = iota // all of them in scratch
	inStrip                     // those of the strip being computed, in scratch
	inSplat                     // all are equal: a strip of copies, in scratch
	inMemory                    // in an array of the caller
	inRow                       // those of the row being computed, in scratch
	inRegister                  // in a register of machine code
)

var residenceNames = [...]string{
	inTile:     "tile",
	inStrip:    "strip",
	inSplat:    "splat",
	inMemory:   "in place",
	inRow:      "row",
	inRegister: "register",
}

// A value is what a tile instruction makes.
type value struct {
	id               int    // its pointer is worker.base[id]
	name             string // for the listing
	class            class
	tile             int   // the op whose tile, or a strip of it, it holds; or splats
	n                int64 // elements there is room for
	where            residence
	view             *memoryView // set: it is never made, but read where it comes from
	strides          []int64     // of the tile's dimensions where it is part of an array; nil: it is dense
	constant         *uint32     // the element that all are, of a constant of four bytes
	nonTemporal      bool        // in an array that does not stay in the caches
	at               int64       // bytes into the arena of a worker
	liveFrom, liveTo int         // first and last position in the program it is needed at
}

const noTile = -1 // in place of an op: copies of one element

func (v *value) bytes() int64 { return v.n * classBytes[v.class] }

// stripLength is how many elements pointwise instructions compute at a time,
// where the plan does not say: a
// dozen values of it stay in a first cache of 32 KiB.
const stripLength = 512

// whole is all elements of a value.
func whole[T number](w *worker, v *value) []T {
	return unsafe.Slice((*T)(w.addresses[v.id]), v.n)
}

// part is elements lo … hi−1, at most a strip where only a strip is there.
func part[T number](w *worker, v *value, lo, hi int64) []T {
	if v.where == inStrip || v.where == inSplat {
		lo, hi = 0, hi-lo
	}
	return unsafe.Slice((*T)(
		w.addresses[v.id],
	), v.n)[lo:hi:hi]
}

// first is the only element of a scalar.
func first[T number](w *worker, v *value) T {
	return *(*T)(w.addresses[v.id])
}

// fillWith fills dst with x; copying what is there already is the fastest loop
// plain Go has.
func fillWith[T number](dst []T, x T) {
	n := min(16, len(dst))
	for k := range dst[:n] {
		dst[k] = x
	}
	for ; n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
}
