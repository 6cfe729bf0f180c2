// Package updates combines the updates of a scatter with a tile of its result.
//
// A tile of updates is gone through in row-major order. Of each, the index vector is read;
// a window that is not inside of the array is skipped, and what falls into the tile of any
// other is combined with it. Lanes have different tiles of the result, so that nothing is
// written twice and the bits are those of one lane.
package updates

import (
	"slices"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/kernels/cpu/internal/rowkernel"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
)

// An Access is the addressing of a tile of updates.
type Access struct {
	// The dimensions of the updates' tile that are not along windows, in their order.
	Batch []Batch
	// The dimensions of windows, in the order of the operand's.
	Window []Side
	// Elements are added, or replaced.
	Sums, Replaces bool
}

// A Batch is a dimension of updates, with the steps of neighbours in the tiles of the
// indices, of the updates and of the result.
type Batch struct {
	Size, Index, From, To int64
	Mask                  int // The number of its mask for the caller, or −1.
}

// A Side is a dimension of windows. Where they begin is either read, or 0 with the window's
// tile beside that of the result.
type Side struct {
	Size     int64 // Of the updates' tile.
	From, To int64 // The steps in the tiles of the updates and the result.
	Mask     int   // The number of the mask of the updates' tile, or −1.
	Placed   bool  // The window lies anywhere in the dimension.
	Start    int64 // The place of its start in an index vector, or −1: it is 0.
	Last     int64 // The last start of a window that is inside.
	Tile     int64 // The size of the result's tile.
	Offset   int   // The slot, for the caller, of the offset of that.
}

// WindowSize is the elements of a window's tile.
func (x *Access) WindowSize() int64 {
	n := int64(1)
	for _, d := range x.Window {
		n *= d.Size
	}
	return n
}

// InnermostLast puts the side along which elements of windows are neighbours last, and
// joins those behind each other that are one run in both tiles. The order within a window
// changes nothing: its elements meet different ones.
func (x *Access) InnermostLast() {
	for k, d := range slices.Backward(x.Window) {
		if d.Size > 1 {
			x.Window = append(
				slices.Delete(x.Window, k, k+1),
				d,
			)
			break
		}
	}
	for n := len(x.Window) - 1; n > 0; n-- {
		in, around := x.Window[n], x.Window[n-1]
		if !in.continues(around) {
			return
		}
		around.Size *= in.Size
		around.From, around.To = in.From, in.To
		x.Window = append(x.Window[:n-1], around)
	}
}

// continues reports whether a side and the one around it are one.
func (d Side) continues(around Side) bool {
	return !d.Placed && !around.Placed &&
		d.Mask < 0 && around.Mask < 0 &&
		around.From == d.Size*d.From &&
		around.To == d.Size*d.To
}

// A Range is the valid elements of a dimension.
type Range struct{ Lo, Hi int64 }

// Of each dimension of a tile.
type (
	ranges  [rowkernel.MaxRank]Range
	indices [rowkernel.MaxRank]int64
)

// Bounds are what of a tile of updates is valid, and where the tile of the result is.
type Bounds struct {
	Batch, Window ranges
	Offsets       indices // Of the result's tile along the dimensions of windows.
}

// A Run is one tile of updates that is being combined with a tile of a result.
type Run[T portable.Number] struct {
	Access   *Access
	Combine  Combination[T]
	Args     *vector.ReduceArgs // For machine code.
	Dst, Src []T                // The tiles of the result and of the updates.
	Bounds                      // Of windows, those of the update at hand.

	// Updates in an array of other elements, which are converted a row of a window at a
	// time, instead of Src. Base is the place of the tile's first element.
	Read portable.Transfer[T]
	Data []byte
	Base int64
	Row  []T

	pair Pair[T] // What is combined at a time.

	// Machine code that combines the updates along the last dimension, where there is some,
	// and what it is called with.
	Code     func(args *vector.ScatterArgs)
	CodeArgs *vector.ScatterArgs
}

// A place is where an update is in the tiles of the indices, of the updates and of the
// result.
type place struct{ index, from, to int64 }

// plus is the place k steps along a dimension further.
func (p place) plus(k int64, d *Batch) place {
	p.index += k * d.Index
	p.from += k * d.From
	p.to += k * d.To
	return p
}

// Apply goes through all valid updates of the tile, in order.
func Apply[T portable.Number, I int32 | int64](
	r *Run[T], indices []I,
) {
	if r.empty() {
		return
	}
	r.pair.Args = r.Args
	batch := r.Access.Batch
	last := len(batch) - 1
	if last < 0 {
		apply(r, indices, place{})
		return
	}
	// All but the last dimension are gone through here.
	points := r.points()
	at := lows(&r.Batch)
	for {
		var first place
		for k := range last {
			first = first.plus(at[k], &batch[k])
		}
		if r.Code != nil {
			scatter(r, indices, first)
		} else if points {
			addPoints(r, indices, first)
		} else {
			row(r, indices, first)
		}
		if !advance(&r.Batch, &at, last) {
			return
		}
	}
}

// row goes through the valid updates along the last dimension.
func row[T portable.Number, I int32 | int64](
	r *Run[T], indices []I, first place,
) {
	last := len(r.Access.Batch) - 1
	d, valid := &r.Access.Batch[last], r.Batch[last]
	placed := r.read()
	if placed < 0 {
		for k := valid.Lo; k < valid.Hi; k++ {
			apply(r, indices, first.plus(k, d))
		}
		return
	}
	// Most windows may be outside of the tile along the first dimension that is read.
	side, offset := &r.Access.Window[placed], r.Offsets[placed]
	starts := indices[first.index+side.Start:]
	for k := valid.Lo; k < valid.Hi; k++ {
		at := int64(starts[k*d.Index])
		if at+side.Size > offset && at < offset+side.Tile {
			apply(r, indices, first.plus(k, d))
		}
	}
}

// read is the first side whose windows begin where index vectors say; −1 for none.
func (r *Run[T]) read() int {
	return slices.IndexFunc(r.Access.Window, func(d Side) bool {
		return d.Placed && d.Start >= 0
	})
}

// empty reports whether nothing is valid.
func (r *Run[T]) empty() bool {
	none := func(x Range) bool { return x.Lo >= x.Hi }
	return slices.ContainsFunc(
		r.Batch[:len(r.Access.Batch)],
		none,
	) ||
		slices.ContainsFunc(
			r.Window[:len(r.Access.Window)],
			none,
		)
}

// lows is the first index of ranges.
func lows(r *ranges) (at indices) {
	for k := range at {
		at[k] = r[k].Lo
	}
	return at
}

// advance goes to the next index of the first dimensions, in row-major order, and reports
// false after the last.
func advance(r *ranges, at *indices, dims int) bool {
	for k := dims - 1; k >= 0; k-- {
		if at[k]++; at[k] < r[k].Hi {
			return true
		}
		at[k] = r[k].Lo
	}
	return false
}

// points reports whether single elements are added to a vector, as members of segments are
// counted.
func (r *Run[T]) points() bool {
	x := r.Access
	if !x.Sums || len(x.Window) != 1 ||
		x.Batch[len(x.Batch)-1].To != 0 {
		return false
	}
	// The elements of the tile are neighbours, and their places are read.
	d := &x.Window[0]
	return d.Size == 1 && d.To == 1 && d.Start >= 0
}

// addPoints adds the valid elements along the last dimension of updates, each where its
// index says.
func addPoints[T portable.Number, I int32 | int64](
	r *Run[T], indices []I, first place,
) {
	last := len(r.Access.Batch) - 1
	d, valid := &r.Access.Batch[last], r.Batch[last]
	side, offset := &r.Access.Window[0], r.Offsets[0]
	// What is behind the last start is not inside of the array.
	end := min(side.Tile, side.Last+1-offset)
	if end <= 0 {
		return
	}
	sums := r.Dst[first.to:][:end]
	indices = indices[first.index+side.Start:]
	src := r.Src[first.from:]
	for k := valid.Lo; k < valid.Hi; k++ {
		at := int64(indices[k*d.Index]) - offset
		if uint64(at) < uint64(len(sums)) {
			sums[at] += src[k*d.From]
		}
	}
}

// Code is the machine code of an access, for elements of a class as scratch holds them, whose indices have the bytes of an index. It reports
// false where there is none: where a window is more than a run of neighbours, or may be partly
// outside of the tile.
func (x *Access) Code(
	class portable.Class, index int64,
) (code vector.ScatterCode, ok bool) {
	width := class.Bytes()
	code = vector.ScatterCode{Class: class, Sums: x.Sums, Elements: 1, Index: index}
	if !x.Sums && !x.Replaces || len(x.Batch) == 0 {
		return code, false
	}
	for _, d := range x.Window {
		switch {
		case d.Placed && (d.Size != 1 || d.Start < 0):
			// Windows that lie anywhere may be partly outside.
			return code, false
		case d.Placed:
			code.Starts = append(
				code.Starts,
				vector.ScatterStart{At: d.Start * index, To: d.To * width},
			)
		case d.Mask >= 0, code.Elements > 1, d.Size > 1 && (d.To != 1 || d.From != 1):
			return code, false
		default:
			code.Elements = d.Size
		}
	}
	// The dimensions around the last one are gone through by Apply.
	last := x.Batch[len(x.Batch)-1]
	code.Next = last.Index * index
	code.From, code.To = last.From*width, last.To*width
	return code, code.Fits()
}

// scatter goes through the valid updates along the last dimension by machine code. Updates keep
// their order in calls and between them, so that the bits are those of the loops in Go.
func scatter[T portable.Number, I int32 | int64](
	r *Run[T], indices []I, first place,
) {
	last := len(r.Access.Batch) - 1
	d, valid := &r.Access.Batch[last], r.Batch[last]
	args := r.CodeArgs
	// Components are those of the placed sides, in their order, as Code has them.
	starts := 0
	for k, side := range r.Access.Window {
		if !side.Placed {
			continue
		}
		// What is behind the last start is not inside of the array.
		end := min(
			side.Tile,
			side.Last+1-r.Offsets[k],
		)
		if end <= 0 {
			return
		}
		args.Begins[starts], args.Ends[starts] = r.Offsets[k], end
		starts++
	}
	// A call is short enough for the garbage collector to wait for: the list of places has
	// room for so many updates, and elements are combined in four vectors at a time.
	most := max(
		1,
		min(vector.MaxScattered, 4*vector.MaxCallLength/r.Access.WindowSize()),
	)
	for k := valid.Lo; k < valid.Hi; k += most {
		p := first.plus(k, d)
		args.N = min(most, valid.Hi-k)
		args.Indices = unsafe.Pointer(
			unsafe.SliceData(indices[p.index:]),
		)
		args.From = unsafe.Pointer(
			unsafe.SliceData(r.Src[p.from:]),
		)
		args.To = unsafe.Pointer(
			unsafe.SliceData(r.Dst[p.to:]),
		)
		r.Code(args)
	}
}

// apply combines one window with what it meets.
func apply[T portable.Number, I int32 | int64](
	r *Run[T], indices []I, p place,
) {
	for k := range r.Access.Window {
		d := &r.Access.Window[k]
		if !d.Placed {
			continue
		}
		start := int64(0)
		if d.Start >= 0 {
			start = int64(indices[p.index+d.Start])
		}
		if start < 0 || start > d.Last {
			return // not inside of the array
		}
		start -= r.Offsets[k]
		r.Window[k] = Range{
			Lo: max(0, -start),
			Hi: min(d.Size, d.Tile-start),
		}
		if r.Window[k].Lo >= r.Window[k].Hi {
			return // not inside of the tile
		}
		p.to += start * d.To
	}
	r.window(p)
}

// window combines the part of a window that falls into the tile. The place is that of the
// whole window's first element.
func (r *Run[T]) window(p place) {
	// All but the last dimension are gone through here, that by the combination. A window
	// without dimensions is one element.
	last := len(r.Access.Window) - 1
	c := &r.pair
	c.N, c.To, c.From = 1, 1, 1
	if last >= 0 {
		d, inner := &r.Access.Window[last], r.Window[last]
		p.to += inner.Lo * d.To
		p.from += inner.Lo * d.From
		c.N = inner.Hi - inner.Lo
		c.To, c.From = d.To, d.From
	}
	at := lows(&r.Window)
	for {
		to, from := p.to, p.from
		for k := range last {
			side := &r.Access.Window[k]
			to += at[k] * side.To
			from += at[k] * side.From
		}
		c.Dst = r.Dst[to:]
		r.source(from)
		r.Combine(*c) // a copy, so that nothing is allocated
		if !advance(&r.Window, &at, last) {
			return
		}
	}
}

// source lets the elements that are combined next be those of the updates from one on.
func (r *Run[T]) source(from int64) {
	if r.Read == nil {
		r.pair.Src = r.Src[from:]
		return
	}
	side := r.Access.Window[len(r.Access.Window)-1]
	r.pair.Src = r.Row[:r.pair.N]
	r.pair.From = 1
	r.Read(
		r.pair.Src, r.Data,
		r.Base+from, side.From,
	)
}
