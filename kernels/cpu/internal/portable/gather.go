package portable

import "unsafe"

// A Gather copies slices of an array, each from where its index vector says, without
// interpreting elements. An index vector has a component for some of the array's dimensions,
// which is clamped such that the slice is inside:
//
//	place = Σ min(max(component, 0), Last)·Step
//
// Unsigned indices of 64 bits are held as signed ones of the same bits.
//
// Indices are counted in elements of their own, everything else in bytes.
type Gather struct {
	Bytes  int64   // Of a slice, 1 or more.
	Next   int64   // Indices from an index vector to that of the next slice.
	Starts []Start // The components of index vectors.
	// What a slice lies behind the one before it: in the array, beside what the index vectors
	// say, and in the copy.
	From, To int64
	Unsigned bool // Indices are unsigned of 64 bits.
}

// A Start is a component of index vectors.
type Start struct {
	At   int64 // Its place in an index vector.
	Last int64 // The last start of a slice that is inside of the array, 0 or more.
	Step int64 // The bytes that a step of it is worth.
}

// Place is where the slice of an index vector begins, which is at the front of the indices.
func Place[I int32 | int64](
	g *Gather, indices []I,
) (at int64) {
	for _, s := range g.Starts {
		k := min(
			int64(indices[s.At]), s.Last,
		)
		if k < 0 && g.Unsigned {
			k = s.Last
		}
		at += max(0, k) * s.Step
	}
	return at
}

// GatherSlices copies the slices of n index vectors.
func GatherSlices[I int32 | int64](
	g *Gather, n int64, indices []I, to,
	from []byte,
) {
	switch g.Bytes {
	case 1:
		gatherWords[uint8](g, n, indices, to, from)
	case 2:
		gatherWords[uint16](g, n, indices, to, from)
	case 4:
		gatherWords[uint32](g, n, indices, to, from)
	case 8:
		gatherWords[uint64](g, n, indices, to, from)
	default:
		for k := range n {
			at := k*g.From + Place(
				g, indices[k*g.Next:],
			)
			copy(
				to[k*g.To:][:g.Bytes],
				from[at:][:g.Bytes],
			)
		}
	}
}

// gatherWords is GatherSlices for slices of the size of W, which are aligned to it.
func gatherWords[W uint8 | uint16 | uint32 | uint64, I int32 | int64](
	g *Gather, n int64, indices []I, to, from []byte,
) {
	for k := range n {
		at := k*g.From + Place(
			g, indices[k*g.Next:],
		)
		word := (*W)(
			unsafe.Pointer(unsafe.SliceData(from[at:][:g.Bytes])),
		)
		*(*W)(
			unsafe.Pointer(unsafe.SliceData(to[k*g.To:][:g.Bytes])),
		) = *word
	}
}
