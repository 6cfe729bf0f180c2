package cpu

import (
	"slices"

	"github.com/tilewright/tilewright/kernels/cpu/internal/rowkernel"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Row fusion groups instructions of a schedule such that a row of all values fits in
// registers and first-level cache while the row is computed. It goes through the
// items of a schedule in order and keeps one group open. An item joins the group if
// the iteration space can be divided into rows for both: every dimension of every
// access has to be a product of dimensions of the group. What only the group reads
// gets no scratch at all.

// A rowGroup is a group of tile instructions that becomes one row kernel (see
// package rowkernel): elementwise instructions and reductions over the rows of one
// iteration space. It grows instruction by instruction, in terms of the values of
// the lowering, and is then translated to a rowkernel.Kernel.
type rowGroup struct {
	l     *lowering
	items []*instr
	// extents are those of the iteration space, outermost first; the last two are
	// the rows and the elements of a row.
	extents    []int64
	ops        map[*value]*pointwiseOp // The operation that computes a value.
	scalars    map[*value]bool         // The row scalars that are computed.
	reductions []*rowReduction
	broadcasts map[*value]*value // Wide values and the row scalars that they repeat.
	// The accesses of values read, and of values written.
	loads      map[*value]*rowAccess
	stores     map[*value]*rowAccess
	storeOrder []*value // The stored values that are no results of reductions.
	// Accesses to every second element, with those to the elements between them.
	pairs map[*rowAccess]*rowAccess
	// The loads and stores in the order of the items, once the group is complete.
	list []*rowAccess
	// How often the group reads each value.
	inside map[*value]int

	kernel *rowkernel.Kernel                // The translation.
	values map[*value]*rowkernel.Value      // The values of the translation.
	origin map[*rowkernel.Access]*rowAccess // The accesses of the translation.
}

// A rowReduction is a reduction of f32 that a row kernel can do.
type rowReduction struct {
	loop       *reduceLoop // The loop of the reduction.
	monoid     hlo.Opcode  // The operation.
	arg        *value      // The operand and the result.
	out        *value
	init       *value // The value to begin with; nil where out holds it.
	initSteps  []step // The steps that make out hold the value to begin with.
	acrossRows bool   // Rows are combined, not the elements of a row.
	perRow     bool   // The result is a row scalar, complete after its row.
	relaxed    bool   // The signs of zeros and NaN do not matter, see onlyShiftsWeights.
}

// A rowAccess is where a group reads or writes a value: an array with a stride in
// elements for every dimension of the group.
type rowAccess struct {
	v           *value      // The value.
	view        *memoryView // nil for the value's own elements.
	strides     []int64     // The strides, outermost first.
	start       int64       // The element of the view at index 0.
	nonTemporal bool        // Stores need not leave the elements in the caches.
	narrow      bool        // Elements are stored as bf16 in scratch, see value.narrow.
}

// col is the stride along a row.
func (x *rowAccess) col() int64 {
	return x.strides[len(x.strides)-1]
}

// row is the stride from row to row.
func (x *rowAccess) row() int64 {
	return x.strides[len(x.strides)-2]
}

// isFixed reports whether the access is at the same place for all rows.
func (x *rowAccess) isFixed() bool {
	return !slices.ContainsFunc(x.strides, func(s int64) bool {
		return s != 0
	})
}

// fuseRows groups items of the schedule that row kernels can do, where machine
// code runs and the plan does not forbid it.
func (s *schedule) fuseRows() {
	f := &rowFuser{uses: s.countUses()}
	for _, i := range s.items {
		for _, part := range f.parts(s.block.l, i) {
			f.add(s.block.l, part)
			f.discard(f.alone)
			f.alone = nil
		}
	}
	f.close()
	s.items = f.items
}

// parts divides a group that no row kernel can do as a whole, say because it has more arrays
// than a kernel has addresses, into components that share no value: those that row kernels
// can do, then the others together. Any other item is one part.
func (f *rowFuser) parts(l *lowering, i *instr) (parts []*instr) {
	if i.group == nil {
		return []*instr{i}
	}
	if rowFusible(i) {
		if f.alone = f.group(l, []*instr{i}); f.alone != nil {
			return []*instr{i}
		}
	}
	rest := &instr{name: i.name, n: i.n}
	for _, c := range i.components() {
		var n *rowGroup
		if rowFusible(c) {
			n = f.group(l, []*instr{c})
		}
		if n != nil {
			parts = append(parts, c)
			f.discard(n)
		} else {
			rest.group = append(rest.group, c.group...)
		}
	}
	switch {
	case len(parts) == 0:
		return []*instr{i} // in the order of the program
	case len(rest.group) > 0:
		parts = append(parts, rest)
	}
	return parts
}

// components divides a group into groups that read nothing that another one makes; an operand
// from elsewhere, such as a step size, joins none.
func (i *instr) components() (list []*instr) {
	for _, x := range i.group {
		joined := &instr{name: i.name, n: i.n}
		// Components of which x reads become one with it.
		list = slices.DeleteFunc(list, func(c *instr) bool {
			if !slices.ContainsFunc(c.group, x.readsOf) {
				return false
			}
			joined.group = append(joined.group, c.group...)
			return true
		})
		joined.group = append(joined.group, x)
		list = append(list, joined)
	}
	return list
}

// readsOf reports whether an instruction reads a value that another one makes.
func (i *instr) readsOf(x *instr) bool { return slices.ContainsFunc(x.outs, i.reads) }

// A rowFuser builds the row groups of a schedule in one pass over its items. An
// item joins the open group, begins a group of its own, or stays as it is; it
// ends the open group if it cannot join and uses what the group makes. Items
// that do not touch the open group may pass it.
type rowFuser struct {
	items []*instr
	open  *rowGroup // The group that grows.
	// Copies of results of the open group, which join it with an instruction
	// that reads them.
	pendingSplats []*instr
	uses          map[*value]int // The number of readers of each value.
	// The group of the item at hand alone, nil where that was not tried.
	alone *rowGroup
	spare *rowGroup // A discarded group, whose memory the next one uses.
}

// group is the group of items, nil where they are none.
func (f *rowFuser) group(l *lowering, items []*instr) *rowGroup {
	n := f.spare
	f.spare = nil
	if n == nil {
		n = newRowGroup()
	}
	n.l, n.items = l, items
	if !n.build(f.uses) {
		f.discard(n)
		return nil
	}
	return n
}

// discard keeps the memory of a group that nothing refers to, which may be nil.
func (f *rowFuser) discard(n *rowGroup) {
	if n != nil {
		n.reset()
		f.spare = n
	}
}

// add adds an item to the open group, to a new group, or to the schedule as it
// is.
func (f *rowFuser) add(l *lowering, i *instr) {
	// Copies of a row scalar of the open group wait for a reader. They join the
	// group together with it, or follow the group.
	if f.open != nil && i.copied != nil &&
		f.open.scalars[i.copied] {
		f.pendingSplats = append(f.pendingSplats, i)
		return
	}
	if rowFusible(i) {
		if f.extend(l, i) {
			return
		}
		n := f.alone
		if f.alone = nil; n == nil {
			n = f.group(l, []*instr{i})
		}
		if n != nil {
			// An independent group goes before the open one, which stays open for what
			// reads its results.
			if f.open != nil && !f.touches(i) {
				f.items = append(f.items, n.asInstr())
				return
			}
			f.close()
			f.open = n
			return
		}
	}
	if f.open != nil && f.touches(i) {
		f.close()
	}
	f.items = append(f.items, i)
}

// extend adds an instruction to the open group, with the copies that it may
// read.
func (f *rowFuser) extend(l *lowering, i *instr) bool {
	if f.open == nil {
		return false
	}
	// A group is built anew for each item that it is offered, since the item can
	// change how the iteration space is divided.
	if n := f.group(
		l, slices.Concat(f.open.items, f.pendingSplats, []*instr{i}),
	); n != nil {
		f.discard(f.open)
		f.open, f.pendingSplats = n, nil
		return true
	}
	// Without the copies it may fit, if it does not read them.
	if len(f.pendingSplats) == 0 ||
		slices.ContainsFunc(f.pendingSplats, func(c *instr) bool {
			return i.reads(c.outs[0])
		}) {
		return false
	}
	n := f.group(l, append(slices.Clone(f.open.items), i))
	if n == nil {
		return false
	}
	f.discard(f.open)
	f.open = n
	return true
}

// close ends the open group.
func (f *rowFuser) close() {
	if f.open != nil {
		f.items = append(
			append(f.items, f.open.asInstr()),
			f.pendingSplats...,
		)
		f.open, f.pendingSplats = nil, nil
	}
}

// touches reports whether an instruction uses what the open group makes.
func (f *rowFuser) touches(i *instr) bool {
	return f.open.touches(i) ||
		slices.ContainsFunc(f.pendingSplats, func(c *instr) bool {
			return i.reads(c.outs[0])
		})
}

// reads reports whether an instruction, or one of its group, reads v.
func (i *instr) reads(v *value) bool {
	for x := range i.members {
		if slices.Contains(x.stripArgs, v) ||
			slices.Contains(x.tileArgs, v) {
			return true
		}
	}
	return false
}

// touches reports whether an instruction uses what the group makes.
func (n *rowGroup) touches(i *instr) bool {
	made := func(v *value) bool { return n.defines(v) || n.isView(v) }
	for x := range i.members {
		if slices.ContainsFunc(x.outs, made) ||
			slices.ContainsFunc(x.stripArgs, made) ||
			slices.ContainsFunc(x.tileArgs, made) {
			return true
		}
	}
	return false
}

// isView reports whether v is a view that an instruction of the group makes.
func (n *rowGroup) isView(v *value) bool {
	return n.loads[v] != nil && n.loads[v].view != nil
}

// defines reports whether the group makes v.
func (n *rowGroup) defines(v *value) bool {
	return n.ops[v] != nil ||
		n.scalars[v] ||
		n.broadcasts[v] != nil ||
		slices.ContainsFunc(n.reductions, func(f *rowReduction) bool { return f.out == v })
}

// countUses counts the readers of each value.
func (s *schedule) countUses() map[*value]int {
	uses := map[*value]int{}
	for _, i := range s.items {
		for n := range i.members {
			for v := range n.args {
				uses[v]++
			}
		}
	}
	return uses
}

// rowFusible reports whether row kernels can do an instruction.
func rowFusible(i *instr) bool {
	switch {
	case i.copied != nil:
		return true
	case i.reduction != nil:
		return len(i.reduction.loop.masks) == 0 &&
			vector.Reductions[i.reduction.monoid].Exists()
	}
	return i.group != nil &&
		!slices.ContainsFunc(i.group, func(x *instr) bool {
			return !x.source.ofRows() && !x.sink.ofRows() &&
				(x.pointwise == nil || !vector.HasFloat32(x.pointwise.instr))
		})
}

// newRowGroup is an empty group.
func newRowGroup() *rowGroup {
	return &rowGroup{
		ops:        map[*value]*pointwiseOp{},
		scalars:    map[*value]bool{},
		broadcasts: map[*value]*value{},
		loads:      map[*value]*rowAccess{},
		stores:     map[*value]*rowAccess{},
		pairs:      map[*rowAccess]*rowAccess{},
		inside:     map[*value]int{},
	}
}

// reset empties a group, but for its memory: most groups are tried and grow no more.
func (n *rowGroup) reset() {
	clear(n.ops)
	clear(n.scalars)
	clear(n.broadcasts)
	clear(n.loads)
	clear(n.stores)
	clear(n.pairs)
	clear(n.inside)
	n.reductions = n.reductions[:0]
	n.storeOrder = n.storeOrder[:0]
	n.list = n.list[:0]
	n.extents = n.extents[:0]
}

// build makes the group of its items, and reports false where they are none.
func (n *rowGroup) build(uses map[*value]int) bool {
	if !n.chooseExtents() {
		return false
	}
	for _, i := range n.items {
		if !n.add(i) {
			return false
		}
	}
	if !n.finish(uses) {
		return false
	}
	n.listAccesses()
	return n.findPairs() && n.countMoving() <= rowkernel.MaxAccesses
}

const (
	minRowLength     = 8       // The shortest row, in elements: one vector.
	maxRowLength     = 1 << 17 // The longest row, which one call must do.
	maxFlatRowLength = 1 << 10 // The longest row where rows can be chosen.
)

// chooseExtents finds the dimensions into which the dimensions of all accesses
// can be divided.
func (n *rowGroup) chooseExtents() bool {
	// Items over all elements have wide values. The others are on row scalars.
	total, reduced := int64(0), false
	for _, i := range n.items {
		total = max(total, i.elements())
	}
	// A boundary is the number of elements in the innermost dimensions of an
	// access. If each boundary divides the next, the quotients are the extents.
	bounds := append(make([]int64, 0, 16), total)
	for _, i := range n.items {
		if i.elements() != total {
			continue
		}
		if i.reduction != nil {
			reduced = true
			bounds = boundaries(bounds, i.reduction.dims())
		}
		for _, x := range i.group {
			for _, v := range []*memoryView{x.source, x.sink} {
				if v != nil {
					bounds = boundaries(bounds, v.layout.dims)
				}
			}
		}
	}
	slices.Sort(bounds)
	bounds = slices.Compact(bounds)
	// Without a boundary of their own, elements are divided into rows that fit the
	// first-level cache.
	if len(bounds) == 1 && !reduced {
		bounds = append([]int64{flatRowLength(total)}, bounds...)
	}
	if bounds[0] < minRowLength || bounds[0] > maxRowLength {
		return false
	}
	n.extents = append(n.extents[:0], bounds[0])
	for k, b := range bounds[1:] {
		if b%bounds[k] != 0 {
			return false
		}
		if b != bounds[k] {
			n.extents = slices.Insert(
				n.extents, 0, b/bounds[k],
			)
		}
	}
	// There are rows in any case, if only one.
	if len(n.extents) == 1 {
		n.extents = slices.Insert(n.extents, 0, 1)
	}
	return true
}

// elements is the number of elements that an item iterates over.
func (i *instr) elements() int64 {
	if i.reduction == nil {
		return i.n
	}
	size := int64(1)
	for _, d := range i.reduction.loop.dims {
		size *= d.size
	}
	return size
}

// dims are the dimensions of the reduction, with their strides in the result.
func (f *rowReduction) dims() []stridedDim {
	dims := make([]stridedDim, len(f.loop.dims))
	for k, d := range f.loop.dims {
		dims[k] = stridedDim{d.size, d.kept}
	}
	return dims
}

// boundaries appends the products of the sizes of the last dimensions: where in
// row-major order a dimension ends. Of sizes 4, 6 and 8 they are 8, 48 and 192.
func boundaries(bounds []int64, dims []stridedDim) []int64 {
	size := int64(1)
	for _, d := range slices.Backward(dims) {
		if size *= d.size; d.size > 1 {
			bounds = append(bounds, size)
		}
	}
	return bounds
}

// flatRowLength is the length of the rows into which n contiguous elements are divided:
// a divisor that is a multiple of four vectors, or else all.
func flatRowLength(n int64) int64 {
	for c := int64(maxFlatRowLength); c >= maxFlatRowLength/4; c -= 32 {
		if n%c == 0 {
			return c
		}
	}
	return n
}

// refineStrides divides dimensions into those of the sizes, and reports whether
// that is possible. Of a dimension with 48 elements of stride 2, sizes 6 and 8
// have strides 16 and 2.
func refineStrides(dims []stridedDim, sizes []int64) ([]int64, bool) {
	strides := make([]int64, len(sizes))
	d := len(dims) - 1
	rest := dims[d].size
	step := dims[d].stride
	for k := len(sizes) - 1; k >= 0; k-- {
		if sizes[k] == 1 {
			continue
		}
		for rest == 1 && d > 0 {
			d--
			rest = dims[d].size
			step = dims[d].stride
		}
		if rest%sizes[k] != 0 {
			return nil, false
		}
		strides[k] = step
		step *= sizes[k]
		rest /= sizes[k]
	}
	for ; rest == 1 && d > 0; d-- {
		rest = dims[d-1].size
	}
	return strides, rest == 1
}

// denseStrides are the strides of dense elements, of a wide value or a row
// scalar.
func (n *rowGroup) denseStrides(wide bool) []int64 {
	if wide {
		return hlo.RowMajor(n.extents)
	}
	return append(
		hlo.RowMajor(n.extents[:len(n.extents)-1]), 0,
	)
}

// sameStrides reports whether strides differ at most in dimensions of one
// element.
func (n *rowGroup) sameStrides(x, y []int64) bool {
	for k, size := range n.extents {
		if size > 1 && x[k] != y[k] {
			return false
		}
	}
	return true
}

func (n *rowGroup) cols() int64 {
	return n.extents[len(n.extents)-1]
}
func (n *rowGroup) rows() int64 {
	return n.extents[len(n.extents)-2]
}

// add adds an item and reports false if it does not fit.
func (n *rowGroup) add(i *instr) bool {
	total := hlo.Elements(n.extents)
	switch {
	case i.copied != nil:
		// A strip of copies serves all elements only where there is one row.
		if n.scalars[i.copied] && total == n.cols() {
			n.broadcasts[i.outs[0]] = i.copied
			return true
		}
		return false
	case i.reduction != nil:
		return i.elements() == total &&
			n.addReduction(i.reduction)
	case i.n != total && i.n != total/n.cols():
		return false
	}
	for _, x := range i.group {
		if !n.addInstr(x, i.n == total) {
			return false
		}
	}
	return true
}

// addInstr adds an instruction of a group, on all elements or on row scalars.
func (n *rowGroup) addInstr(x *instr, wide bool) bool {
	switch {
	case x.source != nil:
		return n.addView(x, wide)
	case x.sink != nil:
		s := n.accessOf(x.sink, x.stripArgs[0], wide)
		// A value that is computed in an output already is stored there; the
		// kernel has one store for each value, not two.
		if s == nil || x.stripArgs[0].where == inMemory || !n.halfAccessFits(s, true) ||
			wide && s.col() < 1 ||
			n.stores[x.stripArgs[0]] != nil ||
			!n.defines(x.stripArgs[0]) && (!wide ||
				n.loads[x.stripArgs[0]] == nil) {
			return false
		}
		s.nonTemporal = x.nonTemporal
		n.addStore(x.stripArgs[0], s)
		return true
	}
	for _, v := range x.pointwise.args {
		if !n.addOperand(v, wide) {
			return false
		}
	}
	n.ops[x.pointwise.out] = x.pointwise
	if !wide {
		n.scalars[x.pointwise.out] = true
	}
	return true
}

// addStore adds a store.
func (n *rowGroup) addStore(v *value, s *rowAccess) {
	n.stores[v] = s
	n.storeOrder = append(n.storeOrder, v)
}

// accessOf is the access of a view, nil where its dimensions cannot be divided.
func (n *rowGroup) accessOf(x *memoryView, v *value, wide bool) *rowAccess {
	sizes := n.extents
	if !wide {
		sizes = sizes[:len(sizes)-1]
	}
	strides, ok := refineStrides(x.layout.dims, sizes)
	if !ok {
		return nil
	}
	if !wide {
		strides = append(strides, 0)
	}
	return &rowAccess{
		v:       v,
		view:    x,
		strides: strides,
		start:   x.layout.start,
	}
}

// addView adds a load, a broadcast of a row scalar, or another view.
func (n *rowGroup) addView(x *instr, wide bool) bool {
	s := n.accessOf(x.source, x.outs[0], wide)
	if s == nil || !n.halfAccessFits(s, false) ||
		wide && s.col() < 0 ||
		wide && s.col() > 2 {
		return false
	}
	// A view of a value that the group makes must be the broadcast of a row scalar
	// to the elements of its row. Everything else is read from memory, which views
	// of views are not in.
	from := x.source.from
	switch {
	case from != nil && n.isView(from):
		return false
	case from == nil || !n.defines(from):
		n.loads[x.outs[0]] = s
		return true
	case !wide || !n.scalars[from] ||
		s.start != 0 ||
		!n.sameStrides(s.strides, n.denseStrides(false)):
		return false
	}
	n.broadcasts[x.outs[0]] = from
	return true
}

// addOperand makes a value that is not of the group a load of it.
func (n *rowGroup) addOperand(v *value, wide bool) bool {
	switch {
	case n.broadcasts[v] != nil || n.loads[v] != nil:
		return true
	case n.ops[v] != nil || n.scalars[v]:
		// Row scalars and wide values do not mix without a broadcast.
		return n.scalars[v] != wide
	case n.defines(v) || v.strides != nil ||
		v.class.Bytes() != 4:
		return false
	case v.where == inSplat:
		// A strip of copies is one element for all indices.
		n.loads[v] = &rowAccess{
			v:       v,
			strides: make([]int64, len(n.extents)),
		}
		return true
	}
	n.loads[v] = &rowAccess{
		v:       v,
		strides: n.denseStrides(wide),
	}
	return true
}

// addReduction adds a reduction. All reductions of a group have one direction.
func (n *rowGroup) addReduction(of *rowReduction) bool {
	// The reduction is copied, since its direction depends on the group.
	f := &rowReduction{}
	*f = *of
	if f.arg.where == inSplat ||
		!n.addOperand(f.arg, true) {
		return false
	}
	strides, ok := refineStrides(f.dims(), n.extents)
	if !ok {
		return false
	}
	// The strides in the result say what is reduced: a stride of 1 along columns
	// keeps them, a stride of 0 reduces them.
	out := &rowAccess{v: f.out, strides: strides}
	f.acrossRows, f.perRow = out.col() == 1,
		n.sameStrides(strides, n.denseStrides(false))
	switch {
	case f.acrossRows && out.row() != 0 &&
		n.rows() > 1,
		!f.acrossRows && out.col() != 0:
		return false
	case f.init != nil &&
		(n.defines(f.init) || n.isView(f.init)):
		return false
	case f.init != nil && n.loads[f.init] == nil:
		n.loads[f.init] = &rowAccess{
			v:       f.init,
			strides: make([]int64, len(n.extents)),
		}
	}
	for _, other := range n.reductions {
		if other.acrossRows != f.acrossRows {
			return false
		}
	}
	// The result of a row is a row scalar if it is complete after its row. Otherwise
	// it accumulates in memory, and in both cases where memory holds the value to
	// begin with.
	n.reductions = append(n.reductions, f)
	if f.perRow = f.perRow && !f.acrossRows; f.perRow {
		n.scalars[f.out] = true
	} else {
		n.stores[f.out] = out
	}
	if f.perRow && f.init == nil {
		n.stores[f.out] = out
	}
	return true
}

// finish finds what has to be stored: values with readers outside of the group,
// and those in arrays of the caller. It reports false where that cannot be
// done, since a kernel stores a value once and cannot store a broadcast.
func (n *rowGroup) finish(uses map[*value]int) bool {
	// A value with more readers than the group has is read outside of it.
	inside := n.inside
	for _, i := range n.items {
		for x := range i.members {
			for v := range x.args {
				inside[v]++
			}
		}
	}
	out := func(v *value) bool {
		return uses[v] > inside[v] || v.where == inMemory
	}
	// Broadcasts exist in registers only.
	for v := range n.broadcasts {
		if out(v) {
			return false
		}
	}
	for _, i := range n.items {
		for x := range i.members {
			if !n.storeResults(x, out) {
				return false
			}
		}
	}
	return n.reducesOneWay()
}

// storeResults stores results of an instruction that are used elsewhere.
func (n *rowGroup) storeResults(x *instr, out func(*value) bool) bool {
	if x.group != nil || x.rows != nil {
		return true
	}
	if x.reduction != nil {
		v := x.reduction.out
		if n.stores[v] == nil && out(v) {
			n.stores[v] = &rowAccess{
				v:       v,
				strides: n.denseStrides(false),
			}
		}
		return true
	}
	if len(x.outs) == 0 || x.copied != nil ||
		n.broadcasts[x.outs[0]] != nil ||
		!out(x.outs[0]) {
		return true
	}
	v := x.outs[0]
	if n.stores[v] != nil ||
		n.loads[v] != nil && v.n != hlo.Elements(n.extents) {
		return false
	}
	n.addStore(v, &rowAccess{
		v:           v,
		strides:     n.denseStrides(!n.scalars[v]),
		nonTemporal: v.nonTemporal && v.where == inMemory,
		narrow:      v.narrow && v.where == inTile && n.cols()%vector.Lanes == 0,
	})
	return true
}

// reducesOneWay reports whether reductions go along rows, or across them and
// then without row scalars.
func (n *rowGroup) reducesOneWay() bool {
	if !n.reducesColumns() {
		return true
	}
	return len(n.scalars) == 0 &&
		len(n.broadcasts) == 0
}

// reducesColumns reports whether reductions combine rows.
func (n *rowGroup) reducesColumns() bool {
	return len(n.reductions) > 0 &&
		n.reductions[0].acrossRows
}

// halfType is the type of the elements of an access of two bytes, else 0.
func (x *rowAccess) halfType() hlo.DType {
	switch {
	case x.narrow:
		return hlo.BF16
	case x.view == nil:
		return 0
	}
	return x.view.halfType
}

// halfAccessFits reports whether a kernel can read or write an access: rows of
// elements of two bytes are whole vectors, since no instruction masks those, and
// what repeats along a row is loaded as the upper half of an f32.
func (n *rowGroup) halfAccessFits(s *rowAccess, write bool) bool {
	switch {
	case s.halfType() == 0:
		return true
	case s.col() == 2:
		return false
	case s.col() == 1:
		return n.cols()%vector.Lanes == 0
	}
	return !write && s.halfType() == hlo.BF16
}

// listAccesses lists the loads and stores of the group in an order that depends on
// its items only.
func (n *rowGroup) listAccesses() {
	add := func(s *rowAccess) {
		if s != nil && !slices.Contains(n.list, s) {
			n.list = append(n.list, s)
		}
	}
	for _, i := range n.items {
		for x := range i.members {
			for _, list := range [...][]*value{x.outs, x.stripArgs} {
				for _, v := range list {
					add(n.loads[v])
					add(n.stores[v])
				}
			}
		}
		if i.reduction != nil {
			add(n.loads[i.reduction.arg])
			add(n.loads[i.reduction.init])
			add(n.stores[i.reduction.out])
		}
	}
}

// Real and imaginary parts, and the elements that a rotary embedding turns, lie between each
// other. A vector of each is made of two vectors of the array by shuffles, and the other way
// round, so that both sides are accessed at once, by one address.

// findPairs pairs the accesses to every second element of an array. It reports false where
// one has no other, or a kernel cannot do them: rows are whole vectors, in one sweep.
func (n *rowGroup) findPairs() bool {
	found := 0
	for _, s := range n.list {
		if s.col() != 2 {
			continue
		}
		found++
		whole := n.cols()%vector.Lanes == 0
		if !whole || len(n.reductions) > 0 {
			return false
		}
		for _, other := range n.list {
			if n.isPair(s, other) {
				n.pairs[s] = other
			}
		}
	}
	return found == 2*len(n.pairs)
}

// isPair reports whether an access is at the elements before those of another, both read or
// both written.
func (n *rowGroup) isPair(s, other *rowAccess) bool {
	// Bases that differ by one in every tile program are neighbours. An array that is read is
	// never one that is written, whose number is negative.
	written := n.stores[s.v] == s
	switch {
	case other.col() != 2,
		s.start != 0,
		other.start != 0,
		s.nonTemporal != other.nonTemporal,
		written != (n.stores[other.v] == other),
		s.view.array != other.view.array,
		!slices.Equal(s.strides, other.strides):
		return false
	}
	apart := other.view.at.Sub(s.view.at)
	step, ok := apart.Value()
	return ok && step == 1
}

// countMoving is the number of accesses that need an address register each: those that are
// not one place of the scratch, one of each pair.
func (n *rowGroup) countMoving() int {
	moving := 0
	for _, s := range n.list {
		fixed := s.view == nil && s.v.where != inMemory && s.isFixed()
		if !fixed && !n.isSecond(s) {
			moving++
		}
	}
	return moving
}

// isSecond reports whether an access is the second of a pair.
func (n *rowGroup) isSecond(s *rowAccess) bool {
	for _, second := range n.pairs {
		if second == s {
			return true
		}
	}
	return false
}

// asInstr is the group as one instruction. Values that nothing outside of the
// kernel reads have no scratch, or that of a row.
func (n *rowGroup) asInstr() *instr {
	i := &instr{name: "rows", rows: n}
	seen := map[*value]bool{}
	note := func(list *[]*value, v *value) {
		if !seen[v] {
			seen[v] = true
			*list = append(*list, v)
		}
	}
	for _, x := range n.items {
		for y := range x.members {
			for _, v := range y.outs {
				if !n.defines(v) && n.loads[v] == nil ||
					n.stores[v] != nil && n.stores[v].view == nil {
					note(&i.outs, v)
				} else if v.where == inTile || v.where == inSplat {
					v.where = inRegister
				}
			}
		}
	}
	for v, s := range n.stores {
		if s.narrow {
			v.short = hlo.BF16.Size()
		}
	}
	for _, v := range n.translate() {
		note(&i.outs, v)
	}
	for _, x := range n.items {
		for y := range x.members {
			for v := range y.args {
				if v.where != inRegister && v.where != inRow {
					note(&i.tileArgs, v)
				}
			}
		}
	}
	return i
}
