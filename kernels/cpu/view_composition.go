package cpu

import (
	"slices"

	"github.com/tilewright/tilewright/kernels/cpu/internal/gemm"
	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// Operations such as transpose, reverse, slice, broadcast, concatenate and pad move
// elements. A chain of them need not move elements once per operation: the element
// of the result at an index is the element of some source at an index that is an
// affine function of it, wherever each operation is a strided view of its operand.
// Composing these views gives one copy from each source to the result.
//
// A view over a tile is dimensions with two strides each: one in the destination,
// one in row-major numbers of the tile that was reached so far. To go on through an
// operation, its row-major numbers are split into steps along the dimensions of the
// operation's tile, and each step gets the stride that the operation gives that
// dimension. This works where every stride is a multiple of a dimension's row-major
// stride that does not carry into the next; a dimension that spans several is split.
//
// Operations that join tiles (concatenate, pad, dynamic-update-slice) have a view
// for each part, restricted to the elements that are valid there. The padding around
// an operand is the complement of a box, which a copy divides into boxes.

// A composedView follows the elements of a tile back through operations that
// only move elements, to the tile that they come from: a composition of strided
// views.
//
// For example, let b = transpose(reshape(a)), where a has 24 elements, the
// reshape is 4 by 6, and b is 6 by 4. The view of b that is stored densely
// begins with strides 4, 1 in the destination and 4, 1 in b. The transpose
// turns the latter into 1, 6 in the reshape, which are 1, 6 in a, too: b is a
// copy of a with two dimensions of strides 1 and 6.
type composedView struct {
	// The dimensions, outermost in the destination first.
	dims   []composedDim
	start  int64 // The number of the element at index 0.
	source int   // The op whose tile the numbers refer to.
	// The element of the destination at index 0, after the first of the tile that it is for.
	toStart int64
	// Only elements that are valid in the array are in the view; the others are
	// 0.
	zeroFill bool
	// Only elements outside of some dimension's outside are in the view.
	complement bool
}

// A composedDim is indices 0 … size−1 of a composed view. One step is `to`
// elements of the destination and `at` elements, in row-major order, of the
// tile that the view has reached. An index is in the view if it is valid in all
// of inside, and, for a complement, if in one or more dimensions it is not
// valid in outside.
type composedDim struct {
	size, to, at int64
	// The masks that an index in the view satisfies.
	inside  []symtile.DimTile
	outside []symtile.DimTile // At most one mask.
}

// fixedRange is the indices that satisfy the masks of a dimension where they are the same
// in every tile program; ok is false where they are not, or there are no masks.
func (d *composedDim) fixedRange() (lo, hi int64, ok bool) {
	hi = d.size
	for _, x := range d.inside {
		if x.Digits != nil {
			return 0, 0, false
		}
		var at [5]int64
		for k, e := range []index.Expr{
			x.Offset, x.Lower, x.Bound, x.Size, x.Stride,
		} {
			if at[k], ok = e.Value(); !ok {
				return 0, 0, false
			}
		}
		l, h := validRange(at[0], at[1], at[2], at[3], at[4])
		lo = max(lo, l)
		hi = min(hi, h)
	}
	return lo, hi, len(d.inside) > 0
}

// A composition is all views from a tile to the sources of its elements.
type composition struct {
	views []composedView // The views, one for each source.
	// Some operation is more than another name of its operand.
	moved bool
}

// newComposedView is the identity of a tile whose elements have the strides in
// the destination.
func newComposedView(op int, sizes, to []int64) composedView {
	t := composedView{source: op}
	for k, step := range hlo.RowMajor(sizes) {
		d := composedDim{
			size: sizes[k],
			to:   to[k],
			at:   step,
		}
		if d.size == 1 {
			d.to, d.at = 0, 0
		}
		t.dims = append(t.dims, d)
	}
	return t
}

// compose finds the sources of a view: parameters, and results of ops that do
// more than move elements. Not every composition is a set of strided views, in
// which case it reports false.
func (l *lowering) compose(t composedView, r *composition) (ok bool) {
	op := l.p.Ops[t.source]
	into := func(arg int) composedView {
		next := t
		next.source = op.Args[arg]
		next.dims = slices.Clone(t.dims)
		return next
	}
	switch op.Code {
	case hlo.OpParameter:
		r.views = append(r.views, t)
		return true
	case hlo.OpReshape, hlo.OpSlice, hlo.OpDynamicSlice,
		hlo.OpCopy, hlo.OpOptimizationBarrier:
		// Tiles of the operand and the result have the same elements in the same order.
		if l.elements(op.Args[0]) != l.elements(t.source) {
			return false
		}
		return l.compose(into(0), r)
	case hlo.OpBroadcast, hlo.OpTranspose, hlo.OpReverse:
		r.moved = true
		g := l.viewOf(op)
		sizes, strides := g.sizesAndStrides()
		next := into(0)
		return next.composeWith(sizes, strides, g.start) &&
			l.compose(next, r)
	case hlo.OpConcatenate, hlo.OpPad, hlo.OpDynamicUpdateSlice:
		r.moved = true
		return l.composeParts(t, into, r)
	}
	if len(op.Instr.Shape.Tuple) > 0 {
		return false
	}
	r.views = append(r.views, t)
	return true
}

// composeParts composes into the operands of an op whose tile is put together
// of theirs.
func (l *lowering) composeParts(
	t composedView, into func(arg int) composedView, r *composition,
) bool {
	op := l.p.Ops[t.source]
	if op.Code == hlo.OpConcatenate {
		for k := range op.Args {
			next := into(k)
			if !next.clipTo(l, t.source, op.Args[k]) ||
				!l.compose(next, r) {
				return false
			}
		}
		return true
	}
	// The arguments of a pad are the operand and the value around it.
	part, rest := 0, 1
	if op.Code == hlo.OpDynamicUpdateSlice {
		part, rest = 1, 0
	}
	for _, p := range op.Instr.Attrs.Padding {
		if p.Interior > 0 {
			return false
		}
	}
	inner := into(part)
	around := into(rest)
	operand := op.Args[part]
	outer := l.placedTile(t.source, operand)
	if !inner.clipTo(l, t.source, operand) ||
		!around.clipOutside(outer) {
		return false
	}
	if op.Code == hlo.OpPad {
		around.broadcastFirst()
	}
	return l.compose(inner, r) && l.compose(around, r)
}

// broadcastFirst makes all elements the first.
func (t *composedView) broadcastFirst() {
	t.start = 0
	for k := range t.dims {
		t.dims[k].at = 0
	}
}

// sizesAndStrides are those of the dimensions.
func (g *stridedView) sizesAndStrides() (sizes, strides []int64) {
	for _, d := range g.dims {
		sizes = append(sizes, d.size)
		strides = append(strides, d.stride)
	}
	return sizes, strides
}

// composeWith composes a view over a tile of the sizes with a strided view of
// it: element index i of the tile is element start + Σ i·stride from here on.
// It fails where a dimension of the view would be split unevenly, or split
// where it is masked.
func (t *composedView) composeWith(sizes, strides []int64, start int64) bool {
	c := newDimSplitter(sizes, strides, t.start)
	var dims []composedDim
	for _, d := range t.dims {
		if !c.split(d, &dims) {
			return false
		}
	}
	t.dims, t.start = dims, start+c.start()
	return len(dims) <= maxRank && c.inBounds()
}

// A dimSplitter splits steps in row-major numbers into steps along one
// dimension each, and keeps track of the range of indices along each dimension,
// so that compositions in which an index would leave its dimension are found.
type dimSplitter struct {
	// The sizes of the tile, the strides given to its dimensions, and its
	// row-major strides.
	sizes, strides, row []int64
	// The least and the greatest index along each dimension.
	lo, hi []int64
	// The index along each dimension of the first element.
	first []int64
}

// newDimSplitter splits numbers of a tile of the sizes, from start on.
func newDimSplitter(sizes, strides []int64, start int64) *dimSplitter {
	c := &dimSplitter{
		sizes:   sizes,
		strides: strides,
		row:     hlo.RowMajor(sizes),
	}
	for k, size := range sizes {
		c.first = append(c.first, start/c.row[k]%size)
	}
	c.lo, c.hi = slices.Clone(c.first),
		slices.Clone(c.first)
	return c
}

// start is the number of the first element in the composed view.
func (c *dimSplitter) start() (n int64) {
	for k, i := range c.first {
		n += i * c.strides[k]
	}
	return n
}

// inBounds reports whether no index leaves its dimension, so that no step
// carries.
func (c *dimSplitter) inBounds() bool {
	for k, size := range c.sizes {
		if c.lo[k] < 0 || c.hi[k] >= size {
			return false
		}
	}
	return true
}

// split appends the parts of d, outermost first.
func (c *dimSplitter) split(d composedDim, dims *[]composedDim) bool {
	if d.at == 0 {
		*dims = append(*dims, d)
		return true
	}
	// The step is m steps of dimension k, the outermost whose row-major stride it
	// reaches.
	sign, step := int64(1), d.at
	if step < 0 {
		sign, step = -1, -step
	}
	k := slices.IndexFunc(c.row, func(row int64) bool {
		return row <= step
	})
	for k >= 0 && k < len(c.row) && c.sizes[k] == 1 {
		k++
	}
	if k < 0 || k == len(c.row) ||
		step%c.row[k] != 0 ||
		step >= c.row[k]*c.sizes[k] {
		return false
	}
	// If all steps together leave dimension k, after n of them the next dimension
	// outside takes one step: d splits into n steps along k, and the rest outside. A
	// masked dimension does not split, since its mask is a range of all its indices.
	m := step / c.row[k]
	size := c.sizes[k]
	if (d.size-1)*m >= size {
		n := size / m
		if size%m != 0 || n == 0 ||
			d.size%n != 0 ||
			len(d.inside)+len(d.outside) > 0 {
			return false
		}
		outer := composedDim{
			size: d.size / n,
			to:   d.to * n,
			at:   sign * c.row[k] * size,
		}
		if !c.split(outer, dims) {
			return false
		}
		d.size = n
	}
	if sign > 0 {
		c.hi[k] += (d.size - 1) * m
	} else {
		c.lo[k] -= (d.size - 1) * m
	}
	d.at = sign * m * c.strides[k]
	*dims = append(*dims, d)
	return true
}

// dimensionOf is the dimension of the view that is dimension k of the tile it
// is over.
func (t *composedView) dimensionOf(sizes []int64, k int) (int, bool) {
	// A dimension of the view moves along dimension k if its step is at least the
	// stride of k and no multiple of that of the next dimension outside. It has to be
	// all of dimension k, one step at a time.
	row := hlo.RowMajor(sizes)
	found := -1
	for n, d := range t.dims {
		if d.size == 1 ||
			d.at/row[k] == 0 ||
			d.at%(row[k]*sizes[k]) == 0 {
			continue
		}
		if found >= 0 || d.at != row[k] ||
			d.size != sizes[k] {
			return 0, false
		}
		found = n
	}
	if found < 0 && sizes[k] == 1 {
		t.dims = append(t.dims, composedDim{size: 1})
		return len(t.dims) - 1, len(t.dims) <= maxRank
	}
	return found, found >= 0 &&
		t.start/row[k]%sizes[k] == 0
}

// eachMasked calls f with every masked dimension of a tile and the dimension of
// the view that it is.
func (t *composedView) eachMasked(
	tile symtile.Tile, f func(d *composedDim, x symtile.DimTile),
) bool {
	box, _, ok := tile.Boxes()
	if !ok {
		return false
	}
	if !box.Masked() {
		return true
	}
	sizes := box.Sizes()
	if !t.composeWith(sizes, hlo.RowMajor(sizes), 0) {
		return false
	}
	for k, x := range box {
		if !x.Masked() {
			continue
		}
		n, ok := t.dimensionOf(sizes, k)
		if !ok {
			return false
		}
		f(&t.dims[n], x)
	}
	return true
}

// The tile of an operand of a join has as many elements as that of the join, or those only that
// the join takes of it (package narrowing). A view of the join goes on to the latter where each
// dimension that is narrower is one of the view, from its first element to its last: the view
// becomes shorter then, and begins further on in the destination.

// clipTo keeps the elements of a view of op n that are valid in the tile of an operand, which
// may be narrower, and goes on to the numbers of that.
func (t *composedView) clipTo(l *lowering, n, operand int) bool {
	tile := l.p.Ops[operand].Tile
	if l.samePlace(n, operand) {
		return t.clipInside(tile)
	}
	wide := l.p.Ops[n].Tile.Sizes()
	narrow := tile.Sizes()
	if !t.composeWith(wide, hlo.RowMajor(wide), 0) {
		return false
	}
	for k, size := range narrow {
		place := l.placeOf(n, operand, k)
		if size == wide[k] && place == 0 {
			continue
		}
		// Of an operand that was left whole, a narrow tile may have a part alone.
		if place < 0 || place+size > wide[k] {
			return false
		}
		at, ok := t.dimensionOf(wide, k)
		if !ok {
			return false
		}
		// The masks of another join are of the indices that the dimension has had.
		d := &t.dims[at]
		if len(d.inside)+len(d.outside) > 0 {
			return false
		}
		d.size = size
		t.toStart += place * d.to
	}
	to := hlo.RowMajor(narrow)
	return t.composeWith(wide, to, 0) &&
		t.clipInside(tile)
}

// samePlace reports whether the tile of an operand has the sizes of that of op n, and begins
// where it does.
func (l *lowering) samePlace(n, operand int) bool {
	x := l.p.Ops[n].Tile
	for k, d := range l.p.Ops[operand].Tile {
		if d.Size != x[k].Size || l.placeOf(n, operand, k) != 0 {
			return false
		}
	}
	return true
}

// placedTile is the tile of an operand with the sizes of that of op n, of which it is a part:
// what it does not have is masked.
func (l *lowering) placedTile(n, operand int) symtile.Tile {
	tile := slices.Clone(l.p.Ops[operand].Tile)
	for k, d := range l.p.Ops[n].Tile {
		place := l.placeOf(n, operand, k)
		if tile[k].Size != d.Size || place != 0 {
			x := &tile[k]
			x.Offset = x.Offset.AddConst(-place * strideOf(*x))
			x.Size = d.Size
		}
	}
	return tile
}

// clipInside keeps the elements that are valid in a tile with as many.
func (t *composedView) clipInside(tile symtile.Tile) bool {
	return t.eachMasked(tile, func(
		d *composedDim, x symtile.DimTile,
	) {
		d.inside = append(slices.Clone(d.inside), x)
	})
}

// clipOutside keeps the elements that are not valid in a tile with as many.
func (t *composedView) clipOutside(tile symtile.Tile) bool {
	if t.complement {
		return false
	}
	t.complement = true
	return t.eachMasked(tile, func(
		d *composedDim, x symtile.DimTile,
	) {
		d.outside = []symtile.DimTile{x}
	})
}

// toMemory composes a view of a parameter's tile with the layout of its array:
// `at` becomes memory in memory, and base is the place of element 0.
func (t *composedView) toMemory(l *lowering) (base index.Expr, ok bool) {
	op := l.p.Ops[t.source]
	base = l.p.Space.Ring.Const(0)
	box, axis, ok := op.Tile.Boxes()
	if !ok {
		return base, false
	}
	memory := op.Instr.Shape.Strides()
	strides := make([]int64, len(box))
	for k, d := range box {
		strides[k] = strideOf(d) * memory[axis[k]]
		base = base.Add(d.Offset.Scale(memory[axis[k]]))
	}
	return base, t.composeWith(box.Sizes(), strides, 0)
}

// composeRoot is the composition of what a root stores, nil where that is
// computed rather than moved.
func (l *lowering) composeRoot(r symtile.Root) *composition {
	op := l.p.Ops[r.Op]
	box, axis, ok := op.Tile.Boxes()
	if !ok || len(box) > maxRank ||
		!op.Instr.Shape.DType.IsArray() {
		return nil
	}
	memory := op.Instr.Shape.Strides()
	to := make([]int64, len(box))
	for k, d := range box {
		to[k] = strideOf(d) * memory[axis[k]]
	}
	t := newComposedView(r.Op, box.Sizes(), to)
	for k, d := range box {
		if d.Masked() {
			t.dims[k].inside = []symtile.DimTile{d}
		}
	}
	return l.composition(t)
}

// composeOp is the composition of an op that rearranges elements, where it is
// better made from the arrays of the caller than from their tiles, else nil.
func (l *lowering) composeOp(n int) *composition {
	op := l.p.Ops[n]
	native := portable.IsNative(op.Instr.Shape.DType)
	if len(op.Tile) > maxRank || !native && !l.padsShort(n) {
		return nil
	}
	switch op.Code {
	case hlo.OpTranspose, hlo.OpConcatenate, hlo.OpPad,
		hlo.OpDynamicUpdateSlice, hlo.OpReverse:
	default:
		return nil
	}
	if op.Code == hlo.OpTranspose || op.Code == hlo.OpReverse {
		g := l.viewOf(op)
		if portable.ClassOf(op.Instr.Shape.DType).Bytes() == 4 &&
			unitInnerStride(g) {
			return nil // Machine code reads it in place.
		}
	}
	sizes := op.Tile.Sizes()
	t := newComposedView(n, sizes, hlo.RowMajor(sizes))
	t.zeroFill = true
	return l.composition(t)
}

// composition composes from a view, nil where that does not work or gains
// nothing: where nothing moves, or nothing comes from an array. Sources must
// have the element type of the result.
func (l *lowering) composition(t composedView) *composition {
	r := &composition{}
	d := l.p.Ops[t.source].Instr.Shape.DType
	if !l.compose(t, r) {
		return nil
	}
	arrays, narrowed := 0, 0
	for k := range r.views {
		source := l.p.Ops[r.views[k].source]
		if source.Instr.Shape.DType != d {
			return nil
		}
		if source.Code == hlo.OpParameter {
			arrays++
			if t.zeroFill &&
				!r.views[k].clipInside(source.Tile) {
				return nil
			}
		} else if !portable.IsNative(d) && !t.zeroFill {
			if !r.views[k].stored(l) {
				narrowed++
			}
		}
		try := r.views[k]
		if _, ok := try.resolve(l); !ok {
			return nil
		}
	}
	if arrays > 0 {
		return r
	}
	if t.zeroFill || !r.moved || narrowed > 0 {
		return nil
	}
	return r
}

// resolve is toMemory for a parameter; views of other sources stay as they are.
func (t *composedView) resolve(l *lowering) (base index.Expr, ok bool) {
	if l.p.Ops[t.source].Code != hlo.OpParameter {
		return l.p.Space.Ring.Const(0), true
	}
	return t.toMemory(l)
}

// A copyPlan says which operations are copies and are not lowered as they are.
type copyPlan struct {
	roots []*composition // By root, the composition it stores, or nil.
	// By root, whether it is a gather that goes to its output.
	gathers []bool
	// By op, the composition from arrays to scratch, or nil.
	ops     []*composition
	lowered []bool // By op, whether it is lowered.
	// The right operands of dots that lie in panels, which are not lowered.
	panels map[panelKey]*panelView
}

// planCopies decides what is copied straight to outputs: roots that are only
// moved and that nothing else needs in scratch. What accumulates, and what
// run-time variables need, is always lowered.
func (l *lowering) planCopies() {
	m := &l.copies
	*m = copyPlan{
		make([]*composition, len(l.p.Roots)),
		make([]bool, len(l.p.Roots)),
		make([]*composition, len(l.p.Ops)),
		make([]bool, len(l.p.Ops)),
		map[panelKey]*panelView{},
	}
	for k, r := range l.p.Roots {
		m.roots[k], m.gathers[k] = l.composeRoot(r),
			l.gathersToOutput(r)
	}
	for n, op := range l.p.Ops {
		if op.Loop != nil {
			l.markLowered(n)
		}
	}
	for _, r := range l.p.Runtime {
		l.markLowered(r.Op)
	}
	for k, r := range l.p.Roots {
		if m.roots[k] == nil && !m.gathers[k] {
			l.markLowered(r.Op)
		}
	}
	for k, r := range l.p.Roots {
		switch {
		case m.lowered[r.Op]:
			m.roots[k], m.gathers[k] = nil, false
		case m.gathers[k]:
			l.markLowered(l.p.Ops[r.Op].Args[1])
		default:
			l.markSources(m.roots[k])
		}
	}
}

// markLowered marks an op that is lowered, and all that it reads.
func (l *lowering) markLowered(n int) {
	m := &l.copies
	if m.lowered[n] {
		return
	}
	m.lowered[n] = true
	if m.ops[n] = l.composeOp(n); m.ops[n] != nil {
		l.markSources(m.ops[n])
		return
	}
	for k, a := range l.args(n) {
		if x := l.panelsOf(l.p.Ops[n], k); x != nil {
			m.panels[panelKey{a, l.p.Ops[n].Instr}] = x
			a = x.view.source
		}
		l.markLowered(a)
	}
}

// markSources marks the sources of a composition.
func (l *lowering) markSources(r *composition) {
	for _, t := range r.views {
		if l.p.Ops[t.source].Code != hlo.OpParameter {
			l.markLowered(t.source)
		}
	}
}

// A panelKey is the right operand of a dot, by the op whose tile it is.
type panelKey struct {
	arg int
	dot *hlo.Instr
}

// A panelView is a tile of an array as batch, terms, panels and columns of a panel: the
// dimensions of the view, outermost first, with `at` in the tile of its source.
type panelView struct{ view composedView }

// panelsOf is argument k of an op as panels, nil where it is not the right operand of a
// dot or lies otherwise: in no array, masked, or not in the order of the kernels.
func (l *lowering) panelsOf(op symtile.Op, k int) *panelView {
	if op.Code != hlo.OpDot || k != 1 {
		return nil
	}
	d := op.Instr.Operands[1].Shape.DType
	width := panelWidth(d)
	arg := l.p.Ops[op.Args[1]]
	left := op.Instr.Operands[0].Shape.DType
	if width == 0 ||
		arg.Code == hlo.OpParameter ||
		len(arg.Tile) > maxRank ||
		portable.ClassOf(left) != portable.ClassOf(d) {
		return nil
	}
	a := op.Instr.Attrs
	sizes := arg.Tile.Sizes()
	order := slices.Concat(
		a.RHSBatch, a.RHSContract,
		remainingDims(len(sizes), a.RHSBatch, a.RHSContract),
	)
	to := make([]int64, len(sizes))
	step := int64(1)
	for _, d := range slices.Backward(order) {
		to[d] = step
		step *= sizes[d]
	}
	r := &composition{}
	view := newComposedView(op.Args[1], sizes, to)
	if !l.compose(view, r) || len(r.views) != 1 {
		return nil
	}
	x := &panelView{r.views[0]}
	terms := product(sizes, a.RHSContract)
	batch := product(sizes, a.RHSBatch)
	if !x.isPanels(l, width, terms, batch) {
		return nil
	}
	return x
}

// panelWidth is the number of columns of a panel of elements of a type, which scratch
// holds as f32 or f64; 0 where there are none.
func panelWidth(d hlo.DType) int64 {
	switch {
	case !d.IsFloat():
		return 0
	case portable.ClassOf(d) == portable.Float32:
		return int64(gemm.PanelWidth[float32]())
	case portable.ClassOf(d) == portable.Float64:
		return int64(gemm.PanelWidth[float64]())
	}
	return 0
}

// product is that of the extents of some dimensions.
func product(sizes, dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		n *= sizes[d]
	}
	return n
}

// isPanels brings the dimensions of the view, over a tile of a parameter without masks,
// into the order of panels and reports whether they are panels of a width.
func (x *panelView) isPanels(l *lowering, width, terms, batch int64) bool {
	source := l.p.Ops[x.view.source]
	if source.Code != hlo.OpParameter ||
		source.Tile.Masked() ||
		x.view.start != 0 || x.view.toStart != 0 {
		return false
	}
	columns := l.elements(x.view.source) / terms / batch
	if columns%width != 0 {
		return false
	}
	parts := [4]composedDim{
		{
			size: batch,
			to:   terms * columns,
		},
		{
			size: terms,
			to:   columns,
			at:   width,
		},
		{
			size: columns / width,
			to:   width,
		},
		{
			size: width,
			to:   1,
			at:   1,
		},
	}
	for _, d := range x.view.dims {
		if d.size == 1 {
			continue
		}
		k := slices.IndexFunc(parts[:], func(p composedDim) bool {
			return p.to == d.to && p.size == d.size
		})
		if k < 0 {
			return false
		}
		want := parts[k].at
		if want != 0 && want != d.at {
			return false
		}
		parts[k].at = d.at
	}
	for k, p := range parts {
		if p.size == 1 {
			parts[k].at = 0
		}
	}
	x.view.dims = parts[:]
	// The tile may be used where it is in its array, or be loaded.
	memory := l.arrayStrides(source)
	sizes := source.Tile.Sizes()
	return memory == nil ||
		x.in(sizes, memory) != nil
}

// in is the dimensions of the view with the strides that the source has, nil where these
// are no panels.
func (x *panelView) in(sizes, strides []int64) []composedDim {
	t := x.view
	t.dims = slices.Clone(t.dims)
	if !t.composeWith(sizes, strides, 0) ||
		len(t.dims) != len(x.view.dims) {
		return nil
	}
	terms, inner := t.dims[1], t.dims[3]
	switch {
	case inner.at != 1:
		return nil
	case terms.size > 1 && terms.at != inner.size:
		return nil
	}
	return t.dims
}

// remainingDims are the dimensions that are in neither list.
func remainingDims(rank int, batch, contract []int64) []int64 {
	var dims []int64
	for d := range int64(rank) {
		if !slices.Contains(batch, d) &&
			!slices.Contains(contract, d) {
			dims = append(dims, d)
		}
	}
	return dims
}

// arrayStrides is the strides in an array of its shape of the tile of an op, if
// all elements are valid and tile ids determine their places; else nil.
func (l *lowering) arrayStrides(op symtile.Op) (strides []int64) {
	memory := op.Instr.Shape.Strides()
	for k, d := range op.Tile {
		stride, _ := d.Stride.Value()
		if d.Masked() || d.Digits != nil ||
			stride < 1 ||
			len(l.runtimeVars(d.Offset)) > 0 {
			return nil
		}
		strides = append(strides, stride*memory[k])
	}
	return strides
}
