package cpu

import (
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/portable"
)

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
	class            portable.Class
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

func (v *value) bytes() int64 { return v.n * v.class.Bytes() }

// stripLength is how many elements pointwise instructions compute at a time,
// where the plan does not say: a
// dozen values of it stay in a first cache of 32 KiB.
const stripLength = 512

// whole is all elements of a value.
func whole[T portable.Number](w *worker, v *value) []T {
	return unsafe.Slice((*T)(w.addresses[v.id]), v.n)
}

// part is elements lo … hi−1, at most a strip where only a strip is there.
func part[T portable.Number](w *worker, v *value, lo, hi int64) []T {
	if v.where == inStrip || v.where == inSplat {
		lo, hi = 0, hi-lo
	}
	return unsafe.Slice((*T)(
		w.addresses[v.id],
	), v.n)[lo:hi:hi]
}

// first is the only element of a scalar.
func first[T portable.Number](w *worker, v *value) T {
	return *(*T)(w.addresses[v.id])
}
