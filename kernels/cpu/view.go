package cpu

import (
	"slices"
	"unsafe"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// A view is a rearrangement or part of an array that machine code reads without
// making it: along its last dimension elements follow each other in the source,
// or are one.
type view struct {
	g      *gather
	from   *value // nil for an array of the caller
	base   func(w *worker) unsafe.Pointer
	narrow hlo.DType // of elements of two bytes, held as f32: nests read and write them
}

// newView is the view of a rearrangement of elements of four bytes, nil for
// others.
func newView(g *gather, from *value) *view {
	if classBytes[from.class] != 4 || !viewable(g) {
		return nil
	}
	return &view{g: g, from: from, base: func(w *worker) unsafe.Pointer { return w.base[from.id] }}
}

func viewable(g *gather) bool {
	inner := g.dims[len(g.dims)-1]
	return inner.stride == 0 || inner.stride == 1
}

// viewOf is the view of a tile of an array of elements of four bytes, or of two
// that are held as four, nil of others and where elements are masked or apart.
func (a *access[T]) viewOf(d hlo.DType, array func(w *worker) []byte) *view {
	x := &view{}
	if _, ok := crossings[d]; ok {
		x.narrow = d
	}
	if len(a.limits) > 0 || x.narrow == 0 && (!native(d) || d.Size() != 4) {
		return nil
	}
	g := &gather{}
	for _, d := range a.dims {
		g.dims = append(g.dims, gatherDim{d.size, d.step})
	}
	if !viewable(g) {
		return nil
	}
	base, size := a.base, d.Size()
	x.g, x.base = g, func(w *worker) unsafe.Pointer { return unsafe.Pointer(&array(w)[size*w.places[base]]) }
	return x
}

// row is how many elements are along the last dimension.
func (x *view) row() int64 { return x.g.dims[len(x.g.dims)-1].size }

// splat says whether those are one element.
func (x *view) splat() bool { return x.g.dims[len(x.g.dims)-1].stride == 0 }

// at is where element n is in the source.
func (x *view) at(n int64) int64 {
	at := x.g.start
	for d := len(x.g.dims) - 1; d >= 0; d-- {
		size := x.g.dims[d].size
		at += n % size * x.g.dims[d].stride
		n /= size
	}
	return at
}

// piece is the length of strips of some elements at most that are equal parts of
// a row, 0 when they would be too short to be worth it.
func piece(row, most int64) int64 {
	const shortest = 64
	for n := min(row, most); n >= shortest; n-- {
		if row%n == 0 {
			return n
		}
	}
	return 0
}

// look lets the machine functions of a group read views and write sinks; it
// returns the length that strips must have, 0 without any. All of a group have
// rows of one length, and only machine functions use them.
func look(group []*instr, most int64) (length int64) {
	fits := func(x *view) bool {
		return x != nil && x.narrow == 0 && piece(x.row(), most) > 0 && (length == 0 || piece(x.row(), most) == length)
	}
	for _, i := range group {
		if !fits(i.view) || i.outs[0].where != inStrip || i.view.from != nil && i.view.from.where == inStrip || byLoop(group, i.outs[0], i) {
			continue
		}
		i.outs[0].view, length = i.view, piece(i.view.row(), most)
	}
	for _, i := range group {
		if !fits(i.sink) || i.same[0].where != inStrip || i.same[0].view != nil || byLoop(group, i.same[0], i) {
			continue
		}
		i.same[0].view, length = i.sink, piece(i.sink.row(), most)
	}
	return length
}

// byLoop says whether a loop in Go makes or reads v, but for one instruction.
func byLoop(group []*instr, v *value, but *instr) bool {
	return slices.ContainsFunc(group, func(u *instr) bool {
		return u != but && u.part == 0 && (slices.Contains(u.same, v) || slices.Contains(u.outs, v))
	})
}

// done says whether machine functions do without an instruction.
func (i *instr) done() bool {
	return i.view != nil && i.outs[0].view == i.view || i.sink != nil && i.same[0].view == i.sink
}

// lookAway has views made and sinks written after all.
func lookAway(group []*instr) {
	for _, i := range group {
		if i.view != nil {
			i.outs[0].view = nil
		}
		if i.sink != nil {
			i.same[0].view = nil
		}
	}
}

// address is where element lo of a value is; those of views have four bytes.
func address(w *worker, v *value, lo int64) unsafe.Pointer {
	switch {
	case v.view != nil:
		return unsafe.Add(v.view.base(w), 4*v.view.at(lo))
	case v.where == inStrip || v.where == inSplat:
		lo = 0
	}
	return unsafe.Add(w.base[v.id], classBytes[v.class]*lo)
}
