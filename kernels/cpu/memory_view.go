package cpu

import (
	"slices"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// Machine code for strips takes one address for each value. A strip of a view has one
// address if it lies within one row of the view, so that strips are parts of rows of
// equal length. That makes loads, stores and rearrangements of rows part of the
// function that reads or writes them, instead of copies of their own.

// A memoryView is a rearrangement or part of an array that machine code reads
// or writes in place. Along its last dimension, elements follow each other in
// the array, or are one element.
type memoryView struct {
	layout *stridedView // The layout of the view in the array.
	// The value that is viewed, nil for an array of the caller.
	from *value
	// base is the address of element 0 of the layout.
	base func(w *worker) unsafe.Pointer
	// The type of elements of two bytes, which scratch holds as f32; row
	// kernels read and write them. 0 for elements of four bytes.
	halfType hlo.DType
	// The type of elements that strip functions alone read and write: of eight bytes,
	// and integers of fewer bytes than scratch has for them. 0 for others.
	packed hlo.DType
	// Elements of a value in scratch have eight bytes, which strip functions alone read.
	eightBytes bool
	// The array of the caller: the number of a parameter, or −1 less that of an output; and
	// the place of element 0 of the layout.
	array int
	at    index.Expr
}

// isPaired reports whether elements along the last dimension are every second one of an array,
// which row kernels access together with those between them.
func (x *memoryView) isPaired() bool {
	last := len(x.layout.dims) - 1
	return x.layout.dims[last].stride == 2
}

// stored is the type of elements other than f32 and s32, else 0.
func (x *memoryView) stored() hlo.DType {
	if x.packed != 0 {
		return x.packed
	}
	return x.halfType
}

// bytes is the size of an element.
func (x *memoryView) bytes() int64 {
	if d := x.stored(); d != 0 {
		return d.Size()
	}
	if x.eightBytes {
		return 8
	}
	return 4
}

// stored is the type of elements of a view that a function loads or stores as another, else 0.
func (v *value) stored() hlo.DType {
	if v.view == nil {
		return 0
	}
	return v.view.stored()
}

// stepBytes is the distance of elements where a function reads or writes them.
func (v *value) stepBytes() int64 {
	if v.view != nil {
		return v.view.bytes()
	}
	return v.class.Bytes()
}

// ofRows reports whether there is a view that row kernels read or write.
func (x *memoryView) ofRows() bool {
	return x != nil && x.packed == 0 && !x.eightBytes
}

// newMemoryView is the view of a rearrangement of elements in scratch, nil where these are no row:
// along the last dimension they follow each other or are one element, as the mean of a row is for
// all of its elements.
//
// Those of four bytes are read by row kernels and strip functions. Those of eight bytes are read by
// strip functions alone, all of which have lanes of eight where such an element is an operand.
// Copied a strip at a time, by loops in Go, the mean, the factor, the weights and the shift of a
// norm took more than half of its time: f64[512,768] takes .43 of it (Zen 4, one thread, loaded,
// least of three turns).
func newMemoryView(g *stridedView, from *value) *memoryView {
	if from.short != 0 || !unitInnerStride(g) {
		return nil
	}
	return &memoryView{
		layout:     g,
		from:       from,
		base:       func(w *worker) unsafe.Pointer { return w.addresses[from.id] },
		eightBytes: from.class.Bytes() == 8,
	}
}

// unitInnerStride reports whether machine code can read a strided view in
// place.
func unitInnerStride(g *stridedView) bool {
	inner := g.dims[len(g.dims)-1]
	return inner.stride == 0 || inner.stride == 1
}

// memoryView is the view of a tile of an array. It is nil for types that no machine
// code reads and where elements are masked or strided along the last dimension.
func (a *tileAccess[T]) memoryView(
	d hlo.DType, number int,
	array func(w *worker) []byte,
) *memoryView {
	x := &memoryView{array: number, at: a.at}
	if _, ok := vector.HalfCodecs[d]; ok {
		x.halfType = d
	}
	native := portable.IsNative(d) && d.Size() == 4
	if x.halfType == 0 && !native {
		x.packed = d
	}
	if len(a.masks) > 0 || !native && vector.StoredLanes(d) == 0 {
		return nil
	}
	g := &stridedView{}
	for _, d := range a.dims {
		g.dims = append(g.dims, stridedDim{d.size, d.step})
	}
	// Row kernels take pairs of f32 apart. They find the other elements by the array and the
	// place of this view.
	inner := g.dims[len(g.dims)-1]
	paired := d == hlo.F32 && inner.stride == 2
	if !unitInnerStride(g) && !paired {
		return nil
	}
	base, size := a.base, d.Size()
	x.layout, x.base = g, func(w *worker) unsafe.Pointer {
		return unsafe.Pointer(&array(w)[size*w.slots[base]])
	}
	return x
}

// rowLength is the number of elements along the last dimension.
func (x *memoryView) rowLength() int64 {
	return x.layout.dims[len(x.layout.dims)-1].size
}

// repeats reports whether these are one element.
func (x *memoryView) repeats() bool {
	return x.layout.dims[len(x.layout.dims)-1].stride == 0
}

// offsetOf is the place of element n in the array.
func (x *memoryView) offsetOf(n int64) int64 {
	at := x.layout.start
	for d := len(x.layout.dims) - 1; d >= 0; d-- {
		size := x.layout.dims[d].size
		at += n % size * x.layout.dims[d].stride
		n /= size
	}
	return at
}

const (
	// shortestStrip is the least number of elements of a strip, each of which is a call.
	shortestStrip = 64
	// shortestRow is that of a row, of which a call does many.
	shortestRow = 8
)

// evenStrip is the length of strips, of at most limit elements, that are equal
// parts of a row; 0 where they would be shorter than is worth it.
func evenStrip(row, limit, shortest int64) int64 {
	for n := min(row, limit); n >= shortest; n-- {
		if row%n == 0 {
			return n
		}
	}
	return 0
}

// bindViews lets the machine functions of a group read views and write sinks in
// place. It returns the row whose parts strips must be, 0 without views: the elements that
// divide the rows of all views. Only machine functions use them, since loops in Go find
// strips in scratch.
func bindViews(group []*instr, limit, shortest int64) (row int64) {
	fits := func(x *memoryView, v *value) bool {
		common := gcd(row, x.rowLength())
		return !x.isPaired() &&
			x.readable(group, v) &&
			evenStrip(common, limit, shortest) > 0
	}
	// A view is bound if its value exists a strip at a time, its source is in memory
	// as a whole, and no loop in Go reads it, which could not.
	for _, i := range group {
		if i.source == nil || !fits(i.source, i.outs[0]) ||
			i.outs[0].where != inStrip ||
			i.source.from != nil && i.source.from.where == inStrip ||
			usedByGoLoop(group, i.outs[0], i) {
			continue
		}
		i.outs[0].view = i.source
		row = gcd(row, i.source.rowLength())
	}
	for _, i := range group {
		if i.sink == nil || !fits(i.sink, i.stripArgs[0]) ||
			i.stripArgs[0].where != inStrip ||
			i.stripArgs[0].view != nil ||
			usedByGoLoop(group, i.stripArgs[0], i) {
			continue
		}
		i.stripArgs[0].view = i.sink
		row = gcd(row, i.sink.rowLength())
	}
	return row
}

// gcd is the greatest common divisor.
func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// rowStep is the distance in bytes from a row of n elements of a value to the next, and the
// number of rows after which that is another one; 0 where it is not. Of a view with sizes 4, 6,
// 32 and strides 1000, 100, 1 in elements of four bytes, rows of 32 are 400 bytes apart, six
// times; rows of 16 are 64 bytes apart, twice.
func (v *value) rowStep(n int64) (step, count int64) {
	switch {
	case v.view == nil && !v.moves():
		return 0, 0
	case v.view == nil:
		return n * v.stepBytes(), 0
	}
	dims := v.view.layout.dims
	inner := dims[len(dims)-1]
	outer := stridedDim{inner.size / n, n * inner.stride}
	if outer.size == 1 && len(dims) > 1 {
		outer = dims[len(dims)-2]
	}
	return outer.stride * v.stepBytes(), outer.size
}

// moves reports whether a strip has more than one element, which all of it repeats.
func (v *value) moves() bool {
	if v.view != nil {
		return !v.view.repeats()
	}
	return v.where != inSplat
}

// readable reports whether the functions that read or write v can do so in the view, if
// they are functions: elements of other bytes than four have lanes of their own, and are
// not repeated.
func (x *memoryView) readable(group []*instr, v *value) bool {
	d := x.stored()
	if d == 0 {
		return true
	}
	lanes := vector.StoredLanes(d)
	return !x.repeats() && !slices.ContainsFunc(group, func(i *instr) bool {
		uses := slices.Contains(i.stripArgs, v) || slices.Contains(i.outs, v)
		return uses && i.routine > 0 && lanesOf(group, i.routine) != lanes
	})
}

// lanesOf is the bytes of the lanes of a function of a group, by its number, which was given
// before views are bound.
func lanesOf(group []*instr, routine int) int64 {
	m := &stripFunction{}
	for _, i := range group {
		if i.routine == routine {
			m.list = append(m.list, i.pointwise)
		}
	}
	return m.lanes()
}

// usedByGoLoop reports whether a loop in Go makes or reads v, but for one
// instruction.
func usedByGoLoop(group []*instr, v *value, but *instr) bool {
	return slices.ContainsFunc(group, func(u *instr) bool {
		return u != but && u.routine == 0 &&
			(slices.Contains(u.stripArgs, v) || slices.Contains(u.outs, v))
	})
}

// isElided reports whether machine functions make an instruction superfluous.
func (i *instr) isElided() bool {
	return i.source != nil && i.outs[0].view == i.source ||
		i.sink != nil && i.stripArgs[0].view == i.sink
}

// unbindViews undoes bindViews.
func unbindViews(group []*instr) {
	for _, i := range group {
		if i.source != nil {
			i.outs[0].view = nil
		}
		if i.sink != nil {
			i.stripArgs[0].view = nil
		}
	}
}

// A place is where elements of a value are, of which an address is found fast.
type place struct {
	id   int
	step int64       // The bytes from an element to the next; 0 of a strip, which is all there is.
	view *memoryView // nil for the value's own elements.
}

// place is that of a value whose residence is decided.
func (v *value) place() place {
	p := place{v.id, v.class.Bytes(), v.view}
	if v.where == inStrip || v.where == inSplat {
		p.step = 0
	}
	return p
}

// placesOf are those of values.
func placesOf(list []*value) (places []place) {
	for _, v := range list {
		places = append(places, v.place())
	}
	return places
}

// address is where element lo is.
func (p *place) address(w *worker, lo int64) unsafe.Pointer {
	if p.view != nil {
		return unsafe.Add(
			p.view.base(w),
			p.view.bytes()*p.view.offsetOf(lo),
		)
	}
	return unsafe.Add(w.addresses[p.id], p.step*lo)
}

// address is where element lo of a value is.
func address(w *worker, v *value, lo int64) unsafe.Pointer {
	p := v.place()
	return p.address(w, lo)
}
