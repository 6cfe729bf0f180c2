package cpu

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// Tiles of arrays are accessed in place where their layout allows it, which costs
// nothing: a dense tile of a native type is bound to its place in the array at the
// beginning of the block. Other tiles are loaded and stored strip by strip, with
// conversion between the type of the array and the class of the scratch, and masked
// elements read as 0. Machine code reads and writes some of these in place, too, see
// memory_view.go.

// A dimMask is a dimension of a tile in which elements can be masked. Element i
// is index offset + i·stride of the array and is valid when lower ≤ index <
// bound; offset, lower and bound are slots.
type dimMask struct {
	// The size of the dimension and its stride in the array.
	size, stride         int64
	offset, lower, bound int // The slots of the offset and of the bounds.
}

// newDimMask is the mask of a dimension of a tile, whose slots are computed
// where b begins.
func newDimMask(b *block, d symtile.DimTile) dimMask {
	if d.Digits != nil && b.l.err == nil {
		b.l.err = errDigits
	}
	size, _ := d.Size.Value()
	stride, _ := d.Stride.Value()
	return dimMask{
		size, stride, b.slot(d.Offset),
		b.slot(d.Lower),
		b.slot(d.Bound),
	}
}

// errDigits rejects tiles that only loads and stores can walk.
var errDigits = errors.New("a tile with several digits in one dimension is masked, padded or joined; the CPU backend loads and stores such tiles only")

// valid is the range of indices of the tile that are valid, which can be empty.
// It solves lower ≤ offset + i·stride < bound for i.
func (m *dimMask) valid(w *worker) (lo, hi int64) {
	return validRange(
		w.slots[m.offset],
		w.slots[m.lower],
		w.slots[m.bound],
		m.size, m.stride,
	)
}

// validRange is the range of the indices of size whose elements, stride apart from offset
// on, are valid.
func validRange(offset, lower, bound, size, stride int64) (lo, hi int64) {
	hi = size
	if offset < lower {
		lo = (lower - offset + stride - 1) / stride
	}
	if offset+(hi-1)*stride >= bound {
		hi = max(0, (bound-offset+stride-1)/stride)
	}
	return min(lo, hi), hi
}

// A tileAccess walks a tile of an array in row-major order. Dimensions that
// follow each other in memory without gaps and masks are merged.
type tileAccess[T portable.Number] struct {
	// The slot of the place of element 0 of the tile, in elements of the array.
	base  int
	at    index.Expr      // That place.
	dims  []tileAccessDim // The dimensions, outermost first.
	masks []dimMask       // The masks of the masked dimensions.
	// base is known only when the instruction runs.
	runtimeBase bool
	transfer    portable.Transfer[T] // What moves a run.
}

// A tileAccessDim is a dimension of a tile access.
type tileAccessDim struct {
	size, step int64 // The size, and the stride in the array.
	mask       int   // The index of its mask, or −1.
}

// newTileAccess makes the access of a tile of an array of a shape.
func newTileAccess[T portable.Number](
	b *block, t symtile.Tile,
	shape hlo.Shape, move portable.Transfer[T],
) *tileAccess[T] {
	// The place of element 0 is Σ offset·stride of the array. The digits of a
	// dimension that has several are dimensions of their own (Boxes).
	a := &tileAccess[T]{transfer: move}
	memory := shape.Strides()
	base := b.l.p.Space.Ring.Const(0)
	t, axis, ok := t.Boxes()
	if !ok && b.l.err == nil || len(t) > maxRank {
		b.l.err = errDigits
	}
	for k, d := range t {
		base = base.Add(d.Offset.Scale(memory[axis[k]]))
		size, _ := d.Size.Value()
		stride, _ := d.Stride.Value()
		next := tileAccessDim{
			size, stride * memory[axis[k]], -1,
		}
		if d.Masked() {
			next.mask = len(a.masks)
			a.masks = append(a.masks, newDimMask(b, d))
		}
		a.push(next)
	}
	if len(a.dims) == 0 {
		a.dims = []tileAccessDim{{1, 1, -1}}
	}
	a.at, a.base, a.runtimeBase = base, b.slot(base),
		len(b.l.runtimeVars(base)) > 0
	return a
}

// push adds a dimension inside of the others, merged with the last where the
// two are one.
func (a *tileAccess[T]) push(d tileAccessDim) {
	if d.size == 1 && d.mask < 0 {
		return
	}
	n := len(a.dims)
	if n > 0 && d.mask < 0 {
		out := &a.dims[n-1]
		if out.mask < 0 && out.step == d.size*d.step {
			out.size = out.size * d.size
			out.step = d.step
			return
		}
	}
	a.dims = append(a.dims, d)
}

// dense reports whether the tile lies in memory as it does in scratch, at a
// place that is known where its block begins.
func (a *tileAccess[T]) dense() bool {
	return !a.runtimeBase && len(a.dims) == 1 &&
		a.dims[0].mask < 0 &&
		(a.dims[0].step == 1 || a.dims[0].size == 1)
}

// A region is the valid part of each dimension.
type region struct{ lo, hi [maxRank]int64 }

// validRegion evaluates the masks.
func (a *tileAccess[T]) validRegion(w *worker, r *region) {
	for k, d := range a.dims {
		r.lo[k], r.hi[k] = 0, d.size
		if d.mask >= 0 {
			r.lo[k], r.hi[k] = a.masks[d.mask].valid(w)
		}
	}
}

// read reads elements from … from+len(scratch)−1 of the tile. Masked elements
// become 0.
func (a *tileAccess[T]) read(
	w *worker, data []byte, scratch []T, from int64,
) {
	a.walk(w, data, scratch, from, len(a.masks) > 0)
}

// write writes the valid ones of these elements.
func (a *tileAccess[T]) write(
	w *worker, data []byte, scratch []T, from int64,
) {
	a.walk(w, data, scratch, from, false)
}

// walk transfers elements row by row, a row being the last dimension. With
// blank, masked elements of scratch become 0; otherwise they are left alone.
func (a *tileAccess[T]) walk(
	w *worker, data []byte,
	scratch []T, from int64, blank bool,
) {
	var r region
	a.validRegion(w, &r)
	inner := len(a.dims) - 1
	row := a.dims[inner]
	var index [maxRank]int64
	at := w.slots[a.base]
	col := from
	if from > 0 {
		at += a.seek(from, &index)
		col = index[inner]
	}
	// Each turn transfers what there is of a row, and clears what is masked of it.
	for {
		n := min(row.size-col, int64(len(scratch)))
		lo := max(col, r.lo[inner])
		hi := min(col+n, r.hi[inner])
		if lo >= hi || !r.inside(index[:inner]) {
			lo, hi = col, col
		}
		if blank {
			clear(scratch[:lo-col])
			clear(scratch[hi-col : n])
		}
		if lo < hi {
			a.transfer(
				scratch[lo-col:hi-col], data,
				at+lo*row.step, row.step,
			)
		}
		if scratch = scratch[n:]; len(scratch) == 0 {
			return
		}
		// The next row is an increment of the indices, with carries.
		col = 0
		for d := inner - 1; d >= 0; d-- {
			index[d]++
			at += a.dims[d].step
			if index[d] < a.dims[d].size {
				break
			}
			at -= index[d] * a.dims[d].step
			index[d] = 0
		}
	}
}

// seek finds the indices of element n and the place of its row.
func (a *tileAccess[T]) seek(
	n int64, index *[maxRank]int64,
) (at int64) {
	for d := len(a.dims) - 1; d >= 0; d-- {
		index[d] = n % a.dims[d].size
		n /= a.dims[d].size
		if d < len(a.dims)-1 {
			at += index[d] * a.dims[d].step
		}
	}
	return at
}

// inside reports whether an index is valid.
func (r *region) inside(index []int64) bool {
	for d, x := range index {
		if x < r.lo[d] || x >= r.hi[d] {
			return false
		}
	}
	return true
}

// A tileBox is the valid elements of a tile.
type tileBox struct {
	sizes []int64
	masks []dimMask // The masks of all dimensions.
}

// newTileBox is that of a tile, nil where all elements are valid or dimensions have digits.
func newTileBox(b *block, t symtile.Tile) *tileBox {
	if !t.Masked() || len(t) > maxRank {
		return nil
	}
	x := &tileBox{sizes: t.Sizes()}
	for _, d := range t {
		if d.Digits != nil {
			return nil
		}
		x.masks = append(x.masks, newDimMask(b, d))
	}
	return x
}

// region evaluates the masks.
func (x *tileBox) region(w *worker, r *region) {
	for d := range x.masks {
		lo, hi := x.masks[d].valid(w)
		r.lo[d], r.hi[d] = lo, hi
	}
}

// next is the first valid element from element n on, in row-major order; or the number of
// elements, if there is none.
func (x *tileBox) next(r *region, n int64) int64 {
	var index [maxRank]int64
	number := n
	for d := len(x.sizes) - 1; d >= 0; d-- {
		index[d] = n % x.sizes[d]
		n /= x.sizes[d]
	}
	if n > 0 {
		return hlo.Elements(x.sizes)
	}
	// The outermost index that is not valid goes on to the first one that is; behind the last,
	// the next index outside of it that can takes a step. The others begin anew.
	for d := range x.sizes {
		lo, hi := r.lo[d], r.hi[d]
		switch i := index[d]; {
		case lo <= i && i < hi:
			continue
		case i < lo && lo < hi:
			index[d] = lo
		default:
			for d--; d >= 0; d-- {
				index[d]++
				if index[d] < r.hi[d] {
					break
				}
			}
			if d < 0 {
				return hlo.Elements(x.sizes)
			}
		}
		copy(index[d+1:], r.lo[d+1:])
		return x.number(index[:len(x.sizes)], r)
	}
	return number
}

// number is that of the element at an index; or the number of elements, if none is valid.
func (x *tileBox) number(index []int64, r *region) (n int64) {
	for d, i := range index {
		if r.lo[d] >= r.hi[d] {
			return hlo.Elements(x.sizes)
		}
		n = n*x.sizes[d] + i
	}
	return n
}

// lowerLoad reads a tile of a parameter, or uses it in place where it is dense,
// where only dots read it, or where machine code does.
func lowerLoad[T portable.Number](b *block, n int, op symtile.Op) {
	v := b.l.result(n)
	shape := op.Instr.Shape
	param := op.Instr.Attrs.Param
	a := newTileAccess(
		b, op.Tile, shape, reader[T](shape.DType),
	)
	// A dense tile of a native type is used where it is.
	if a.dense() && portable.IsNative(shape.DType) {
		b.bindArray(v, "is "+op.Instr.Name, a.base, param, false)
		return
	}
	// So is one of integers of one and two bytes that a reduction alone reads.
	v.strides = b.l.narrowStrides(n, op)
	if v.strides != nil && !a.runtimeBase {
		v.n = spanOf(
			op.Tile.Sizes(), v.strides,
		)
		v.short = shape.DType.Size()
		b.bindArray(
			v, "is part of "+op.Instr.Name, a.base, param, false,
		)
		return
	}
	v.strides = b.l.dotOnlyStrides(n, op)
	if v.strides == nil {
		v.strides = b.l.columnStrides(n, op)
	}
	if v.strides != nil &&
		portable.IsNative(shape.DType) && !a.runtimeBase {
		v.n = spanOf(op.Tile.Sizes(), v.strides)
		b.bindArray(v, "is part of "+op.Instr.Name, a.base, param, false)
		return
	}
	// So is one of short elements, where only dots read it that take those, perhaps
	// reshaped.
	if v.strides == nil && b.l.onlyReshaped(n) {
		v.strides = b.l.arrayStrides(op)
	}
	if v.strides != nil &&
		!a.runtimeBase && b.l.readAsShort(n) {
		v.n = spanOf(op.Tile.Sizes(), v.strides)
		v.short = shape.DType.Size()
		b.bindArray(v, "is part of "+op.Instr.Name, a.base, param, false)
		return
	}
	// Windows of short elements are copied as they lie in memory.
	if !a.runtimeBase && b.l.unfoldedAsShort(n) {
		b.loadShort(n, v)
		return
	}
	// Any other tile is read strip by strip, or viewed by machine code.
	v.strides = nil
	seen := a.memoryView(shape.DType, param, func(w *worker) []byte {
		return w.in[param].Data
	})
	b.add(&instr{
		name:   "load " + op.Instr.Name,
		outs:   []*value{v},
		n:      v.n,
		source: seen,
		strip: func(w *worker, lo, hi int64) {
			a.read(
				w, w.in[param].Data,
				part[T](w, v, lo, hi), lo,
			)
		},
	})
}

// dotOnlyStrides is the strides in the array of the tile of a load, if all its
// elements are valid and only dots read it, which pack it on their own.
func (l *lowering) dotOnlyStrides(n int, op symtile.Op) (strides []int64) {
	uses := 0
	for _, x := range l.copies.panels {
		if x.view.source == n {
			uses++
		}
	}
	for k, user := range l.p.Ops {
		if !slices.Contains(user.Args, n) || !l.copies.lowered[k] {
			continue
		}
		uses++
		if user.Code != hlo.OpDot && !l.readsReversed(k) &&
			!l.multipliesReshaped(k) {
			return nil
		}
	}
	if uses == 0 ||
		slices.ContainsFunc(l.p.Roots, func(r symtile.Root) bool {
			return r.Op == n
		}) {
		return nil
	}
	return l.arrayStrides(op)
}

// multipliesReshaped reports whether an op is a reshape of a tile, with the same dimensions but
// those of one element, that one dot alone reads, by the strides of the tile: the weights of a
// convolution of 1×1, or rows of its input.
func (l *lowering) multipliesReshaped(n int) bool {
	op := l.p.Ops[n]
	if op.Code != hlo.OpReshape || l.copies.ops[n] != nil {
		return false
	}
	reader := l.onlyReader(n)
	if reader < 0 || !isDot(l.p.Ops[reader]) ||
		!l.copies.lowered[reader] || l.hasLanes(l.p.Ops[reader]) {
		return false
	}
	source := l.p.Ops[op.Args[0]]
	strides := l.arrayStrides(source)
	return strides != nil && !op.Tile.Masked() && reshapedStrides(
		source.Tile.Sizes(), strides, op.Tile.Sizes(),
	) != nil
}

// onlyReshaped reports whether only a reshape reads an op.
func (l *lowering) onlyReshaped(n int) bool {
	reader := l.onlyReader(n)
	return reader >= 0 && l.p.Ops[reader].Code == hlo.OpReshape &&
		l.copies.lowered[reader]
}

// spanOf is the number of elements from the first to the last of a tile.
func spanOf(sizes, strides []int64) int64 {
	span := int64(1)
	for k, size := range sizes {
		span += (size - 1) * strides[k]
	}
	return span
}

// bindArray makes a value the elements, from the slot on, of a parameter or output.
func (b *block) bindArray(
	v *value, text string,
	base, array int, output bool,
) {
	v.where = inMemory
	b.binds = append(b.binds, bind{
		text: text, v: v,
		id: v.id, base: base,
		size: v.elementBytes(), bytes: v.bytes(),
		array: array, output: output,
	})
}

// run gives the value its address.
func (x *bind) run(w *worker) {
	arrays := w.in
	if x.output {
		arrays = w.out
	}
	at := w.slots[x.base] * x.size
	array := x.array
	if x.joined != nil {
		array = x.joined[w.slots[x.which]]
	}
	data := arrays[array].Data
	data = data[at : at+x.bytes]
	w.addresses[x.id] = unsafe.Pointer(
		unsafe.SliceData(data),
	)
}

// joinedStrides is the strides of the tile of a concatenate of parameters of one shape, of which
// every tile is in one of them, where one dot alone reads it, as weights; else nil. It is used
// where it lies then, as a load is.
func (l *lowering) joinedStrides(n int) []int64 {
	op := l.p.Ops[n]
	if op.Code != hlo.OpConcatenate || l.copies.ops[n] == nil ||
		!portable.IsNative(op.Instr.Shape.DType) ||
		l.arrayStrides(op) == nil {
		return nil
	}
	reader := l.onlyReader(n)
	if reader < 0 || !isDot(l.p.Ops[reader]) ||
		l.p.Ops[reader].Args[1] != n {
		return nil
	}
	shape := op.Instr.Operands[0].Shape
	for k, a := range op.Args {
		if l.p.Ops[a].Code != hlo.OpParameter ||
			!op.Instr.Operands[k].Shape.Equal(shape) {
			return nil
		}
	}
	// Each tile begins at a multiple of its size, of which an operand has several.
	dim := op.Instr.Attrs.Dimensions[0]
	d := op.Tile[dim]
	size, _ := d.Size.Value()
	stride, _ := d.Stride.Value()
	m, r := d.Offset.Congruence()
	if stride != 1 || m%size != 0 || r%size != 0 ||
		shape.Dims[dim]%size != 0 {
		return nil
	}
	strides := slices.Clone(shape.Strides())
	for k, d := range op.Tile {
		stride, _ := d.Stride.Value()
		strides[k] *= stride
	}
	return strides
}

// bindJoined makes the tile of a concatenate the elements of the parameter that has it.
func (b *block) bindJoined(n int, strides []int64) {
	op := b.l.p.Ops[n]
	shape := op.Instr.Operands[0].Shape
	memory := shape.Strides()
	dim := op.Instr.Attrs.Dimensions[0]
	base := b.l.p.Space.Ring.Const(0)
	for k, d := range op.Tile {
		at := d.Offset
		if int64(k) == dim {
			at = at.Mod(shape.Dims[k])
		}
		base = base.Add(at.Scale(memory[k]))
	}
	v := b.l.result(n)
	v.strides = strides
	v.n = spanOf(op.Tile.Sizes(), strides)
	var params []int
	for _, a := range op.Args {
		params = append(params, b.l.p.Ops[a].Instr.Attrs.Param)
	}
	b.bindArray(v, "is part of an operand of "+op.Instr.Name, b.slot(base), params[0], false)
	x := &b.binds[len(b.binds)-1]
	x.joined = params
	x.which = b.slot(op.Tile[dim].Offset.Div(shape.Dims[dim]))
}

// bindStep makes the step that gives values their addresses.
func bindStep(binds []bind) step {
	return func(w *worker) {
		for k := range binds {
			binds[k].run(w)
		}
	}
}

// lowerStore writes a root's tile to its output, in the programs that own it. A
// value that lies in the output as it would in scratch is computed there.
func (b *block) lowerStore(r symtile.Root) {
	if b.l.err != nil {
		return
	}
	switch b.l.results[r.Op][0].class {
	case portable.Float32:
		lowerStoreAs[float32](b, r)
	case portable.Float64:
		lowerStoreAs[float64](b, r)
	case portable.Int32:
		lowerStoreAs[int32](b, r)
	case portable.Int64:
		lowerStoreAs[int64](b, r)
	}
}

// lowerStoreAs is lowerStore for values of one class.
func lowerStoreAs[T portable.Number](b *block, r symtile.Root) {
	op := b.l.p.Ops[r.Op]
	v := b.storedValue(r)
	shape := op.Instr.Shape
	once := r.Once
	output := r.Output
	a := newTileAccess(
		b, op.Tile, shape, writer[T](shape.DType),
	)
	name := fmt.Sprintf("output %d", output)
	// Of the parts of a split only the last may write.
	whole := b.l.split == nil && a.dense() &&
		portable.IsNative(shape.DType) && len(once) == 0
	if (whole || v.strides != nil) && v.where == inTile {
		v.nonTemporal = v.strides == nil &&
			b.l.storesNonTemporal(shape)
		b.bindArray(v, "is "+name, a.base, output, true)
		return
	}
	addStore(b, name, r, v, a)
}

// addStore adds the instruction that stores a value in a part of an output.
func addStore[T portable.Number](
	b *block, name string, r symtile.Root,
	v *value, a *tileAccess[T],
) {
	shape := b.l.p.Ops[r.Op].Instr.Shape
	once := r.Once
	output := r.Output
	// Some outputs are written by programs at index 0 of some dimensions only, since
	// the others would write the same.
	var sink *memoryView
	if len(once) == 0 {
		sink = a.memoryView(shape.DType, -1-output, func(w *worker) []byte {
			return w.out[output].Data
		})
	}
	b.add(&instr{
		name:        "store " + name,
		stripArgs:   []*value{v},
		n:           a.elements(),
		sink:        sink,
		nonTemporal: b.l.storesNonTemporal(shape),
		strip: func(w *worker, lo, hi int64) {
			for _, d := range once {
				if w.tids[d] != 0 {
					return
				}
			}
			a.write(
				w, w.out[output].Data,
				part[T](w, v, lo, hi), lo,
			)
		},
	})
}

// elements is the number of elements of the tile.
func (a *tileAccess[T]) elements() int64 {
	n := int64(1)
	for _, d := range a.dims {
		n *= d.size
	}
	return n
}

// A join that is stored needs no place of its own: its parts go to the output where they belong,
// by the row kernel that makes them where rows are long enough, else strip by strip.

// storeParts stores those views of a root whose values are computed strip by strip straight in
// the output, and gives back the others, which are copied.
func (b *block) storeParts(
	r symtile.Root, c *composition, base index.Expr,
) *composition {
	rest := &composition{moved: c.moved}
	for k, t := range c.views {
		if !b.storesPart(r, c, k) {
			rest.views = append(rest.views, t)
			continue
		}
		switch b.l.results[t.source][0].class {
		case portable.Float32:
			storePart[float32](b, r, &t, base)
		case portable.Float64:
			storePart[float64](b, r, &t, base)
		case portable.Int32:
			storePart[int32](b, r, &t, base)
		case portable.Int64:
			storePart[int64](b, r, &t, base)
		}
	}
	return rest
}

// storesPart reports whether a view is stored rather than copied: what has to be converted, and
// what machine code can write in place where it makes it.
func (b *block) storesPart(
	r symtile.Root, c *composition, k int,
) bool {
	t := &c.views[k]
	op := b.l.p.Ops[t.source]
	if op.Code == hlo.OpParameter {
		return false
	}
	all := b.l.elements(t.source)
	// What arrays hold as scratch does is copied unless it can be computed where it goes; the
	// copy has rows of few elements and periods in machine code.
	dims, ok := t.inOrder(all)
	if !portable.IsNative(op.Instr.Shape.DType) {
		return t.stored(b.l)
	}
	v := b.l.results[t.source][0]
	if !ok || v.where != inTile ||
		b.l.split != nil ||
		b.l.storedByOthers(r, v) {
		return false
	}
	inner := dims[len(dims)-1]
	switch inner.to {
	case 1:
		return b.computes(v) && inner.size >= minRowLength &&
			!slices.ContainsFunc(dims, composedDim.masked)
	case 2:
		return b.storesPairs(c)
	}
	return false
}

// stored reports whether the elements of a view can be stored in their order, none of which is
// masked, and converted on the way.
func (t *composedView) stored(l *lowering) bool {
	all := l.elements(t.source)
	dims, ok := t.inOrder(all)
	return ok && !slices.ContainsFunc(dims, composedDim.masked)
}

// computes reports whether an elementwise instruction of the block makes a value.
func (b *block) computes(v *value) bool {
	return slices.ContainsFunc(b.list, func(i *instr) bool {
		return i.pointwise != nil && i.pointwise.out == v
	})
}

// storesPairs reports whether the two views of a composition are the first and the second
// elements of pairs, which a row kernel stores together where it makes them.
func (b *block) storesPairs(c *composition) bool {
	if len(c.views) != 2 || !b.l.fusesRows {
		return false
	}
	first := &c.views[0]
	second := &c.views[1]
	if first.toStart != 0 || second.toStart != 1 ||
		first.source == second.source {
		return false
	}
	x := b.sideOfPairs(first)
	y := b.sideOfPairs(second)
	// Both sides have the same rows. All that is computed has to be code of row kernels: strips
	// would store every second element one by one.
	same := func(d, e composedDim) bool {
		return d.size == e.size && d.to == e.to
	}
	if x == nil || !slices.EqualFunc(x, y, same) {
		return false
	}
	return !slices.ContainsFunc(b.list, func(i *instr) bool {
		return i.pointwise != nil &&
			!vector.HasFloat32(i.pointwise.instr)
	})
}

// sideOfPairs is the dimensions of a view of computed f32 that go to every second place, in
// rows of whole vectors without masks; nil of others.
func (b *block) sideOfPairs(t *composedView) []composedDim {
	op := b.l.p.Ops[t.source]
	all := b.l.elements(t.source)
	dims, ok := t.inOrder(all)
	if !ok || op.Code == hlo.OpParameter ||
		op.Instr.Shape.DType != hlo.F32 {
		return nil
	}
	v := b.l.results[t.source][0]
	inner := dims[len(dims)-1]
	if !b.computes(v) || v.where != inTile ||
		inner.to != 2 || inner.size%vector.Lanes != 0 ||
		slices.ContainsFunc(dims, composedDim.masked) {
		return nil
	}
	return dims
}

// masked reports whether some indices of a dimension may be left out.
func (d composedDim) masked() bool {
	return len(d.inside) > 0
}

// storePart stores the value of a view in its part of the output, which begins at base.
func storePart[T portable.Number](
	b *block, r symtile.Root,
	t *composedView, base index.Expr,
) {
	at := base.AddConst(t.toStart)
	shape := b.l.p.Ops[r.Op].Instr.Shape
	a := &tileAccess[T]{
		base:     b.slot(at),
		at:       at,
		transfer: writer[T](shape.DType),
	}
	all := b.l.elements(t.source)
	// Dimensions that follow each other in the output, too, become one.
	dims, _ := t.inOrder(all)
	for _, d := range dims {
		next := tileAccessDim{d.size, d.to, -1}
		for _, x := range d.inside {
			next.mask = len(a.masks)
			a.masks = append(a.masks, newDimMask(b, x))
		}
		a.push(next)
	}
	if len(a.dims) == 0 {
		a.dims = []tileAccessDim{{1, 1, -1}}
	}
	name := fmt.Sprintf("part of output %d", r.Output)
	v := b.l.results[t.source][0]
	addStore(b, name, r, v, a)
}

// inOrder is the dimensions of a view in the order of its source's elements; it is not ok where
// some of the elements are in none of them, or a mask is not that of one dimension.
func (t *composedView) inOrder(elements int64) (dims []composedDim, ok bool) {
	if t.complement || t.start != 0 {
		return nil, false
	}
	for _, d := range t.dims {
		if d.size != 1 || len(d.inside) > 0 {
			dims = append(dims, d)
		}
	}
	slices.SortStableFunc(dims, func(x, y composedDim) int {
		return cmp.Compare(y.at, x.at)
	})
	step := int64(1)
	for _, d := range slices.Backward(dims) {
		if len(d.inside) > 1 ||
			d.size != 1 && d.at != step {
			return nil, false
		}
		step *= d.size
	}
	return dims, step == elements && len(dims) > 0
}

// storedValue is what a root stores: its value or, where another root stores that,
// too, a copy, because a row kernel stores each value once. The copy is of f32 and
// stays in a register where both are stored by one kernel.
func (b *block) storedValue(r symtile.Root) *value {
	v := b.l.results[r.Op][0]
	i := b.l.p.Ops[r.Op].Instr
	hasStorage := v.where == inTile ||
		v.where == inMemory
	if i.Shape.DType != hlo.F32 ||
		len(r.Once) > 0 ||
		!hasStorage ||
		!b.l.storedByOthers(r, v) {
		return v
	}
	same := &hlo.Instr{
		Name:     i.Name,
		Op:       hlo.OpConvert,
		Shape:    i.Shape,
		Operands: []*hlo.Instr{i},
	}
	c := b.l.value(
		fmt.Sprintf("%%%d for output %d", r.Op, r.Output),
		v.class, r.Op, v.n,
	)
	args := []*value{v}
	b.add(&instr{
		name:      "copy",
		n:         v.n,
		stripArgs: args,
		outs:      []*value{c},
		pointwise: &pointwiseOp{
			instr: same,
			out:   c,
			args:  args,
		},
		strip: elementwiseStrip[float32](
			same, c, args,
		),
	})
	return c
}

// storedByOthers reports whether v goes to the output of another root than r, too.
func (l *lowering) storedByOthers(r symtile.Root, v *value) bool {
	for k, other := range l.p.Roots {
		if other.Output == r.Output {
			continue
		}
		sources := []int{other.Op}
		if m := l.copies.roots[k]; m != nil {
			sources = nil
			for _, t := range m.views {
				sources = append(sources, t.source)
			}
		}
		for _, n := range sources {
			if slices.Contains(l.results[n], v) {
				return true
			}
		}
	}
	return false
}

// storesNonTemporal reports whether an output is written past the caches: by
// default if it takes at least half of the last-level cache, where it would
// evict what is still needed, or as much as the sheet of the processor says.
func (l *lowering) storesNonTemporal(shape hlo.Shape) bool {
	def := int64(0)
	if shape.Bytes() >= l.spec.pastFrom(hasDot(l.p)) {
		def = 1
	}
	return l.knob("stream", def) == 1
}

// reader is the transfer of arrays of type d into scratch, by machine code where
// there is some.
func reader[T portable.Number](d hlo.DType) portable.Transfer[T] {
	return vector.NarrowReader(d, vector.SecondsReader(d, portable.Read[T](d)))
}

// writer is the transfer of scratch into arrays of type d, by machine code where
// there is some.
func writer[T portable.Number](d hlo.DType) portable.Transfer[T] {
	return vector.NarrowWriter(d, portable.Write[T](d))
}
