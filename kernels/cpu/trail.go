package cpu

import (
	"slices"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A trail follows elements of a tile back through operations that only move
// them, to where they come from.
type trail struct {
	dims  []trailDim
	start int64 // the number of the element at index 0
	op    int   // whose tile the numbers are of
	blank bool  // only what is there in the array is inside
	split bool  // only what some dimension has outside is there
}

// A trailDim is indices 0 … size−1: one step is to elements of the destination
// and at elements, in row-major order, of the tile that the trail has reached.
// Indices are there that are inside of all of inside; of a trail that is split,
// only if one or more of its dimensions is outside of its outside.
type trailDim struct {
	size, to, at int64
	inside       []symtile.DimTile
	outside      []symtile.DimTile // none or one
}

// A route is all trails from a tile to the sources of its elements.
type route struct {
	trails []trail
	moved  bool // some operation is more than another name
}

// newTrail starts at a tile of which elements are so far apart in the destination.
func newTrail(op int, sizes, to []int64) trail {
	t := trail{op: op}
	for k, step := range rowMajor(sizes) {
		d := trailDim{size: sizes[k], to: to[k], at: step}
		if d.size == 1 {
			d.to, d.at = 0, 0
		}
		t.dims = append(t.dims, d)
	}
	return t
}

// follow finds the sources of a trail: parameters and what is not a move. Not
// every composition of moves is a trail; then ok is false.
func (l *lowering) follow(t trail, r *route) (ok bool) {
	op := l.p.Ops[t.op]
	into := func(arg int) trail {
		next := t
		next.op = op.Args[arg]
		next.dims = slices.Clone(t.dims)
		return next
	}
	switch op.Code {
	case hlo.OpParameter:
		r.trails = append(r.trails, t)
		return true
	case hlo.OpReshape, hlo.OpSlice, hlo.OpDynamicSlice, hlo.OpCopy, hlo.OpOptimizationBarrier:
		if l.elements(op.Args[0]) != l.elements(t.op) {
			return false
		}
		return l.follow(into(0), r)
	case hlo.OpBroadcast, hlo.OpTranspose, hlo.OpReverse:
		r.moved = true
		g := l.gatherOf(op)
		sizes, strides := g.sizes()
		next := into(0)
		return next.through(sizes, strides, g.start) && l.follow(next, r)
	case hlo.OpConcatenate, hlo.OpPad, hlo.OpDynamicUpdateSlice:
		r.moved = true
		return l.followParts(op, into, r)
	}
	if len(op.Instr.Shape.Tuple) > 0 {
		return false
	}
	r.trails = append(r.trails, t)
	return true
}

// followParts follows the trails into the operands of an operation whose tile
// is put together.
func (l *lowering) followParts(op symtile.Op, into func(arg int) trail, r *route) bool {
	if op.Code == hlo.OpConcatenate {
		for k := range op.Args {
			next := into(k)
			if !next.within(l.p.Ops[op.Args[k]].Tile) || !l.follow(next, r) {
				return false
			}
		}
		return true
	}
	part, rest := 0, 1 // of a pad: the operand, and the value around it
	if op.Code == hlo.OpDynamicUpdateSlice {
		part, rest = 1, 0
	}
	for _, p := range op.Instr.Attrs.Padding {
		if p.Interior > 0 {
			return false
		}
	}
	tile := l.p.Ops[op.Args[part]].Tile
	inner, around := into(part), into(rest)
	if !inner.within(tile) || !around.around(tile) {
		return false
	}
	if op.Code == hlo.OpPad {
		around.still()
	}
	return l.follow(inner, r) && l.follow(around, r)
}

// still makes all elements the first.
func (t *trail) still() {
	t.start = 0
	for k := range t.dims {
		t.dims[k].at = 0
	}
}

// sizes are those of the result, with the strides.
func (g *gather) sizes() (sizes, strides []int64) {
	for _, d := range g.dims {
		sizes, strides = append(sizes, d.size), append(strides, d.stride)
	}
	return sizes, strides
}

// through renumbers a trail over a tile of the sizes: element index i of it is
// element start + Σ i·stride from here on. It fails where a dimension of the
// trail would have to be cut unevenly, or cut where it is masked.
func (t *trail) through(sizes, strides []int64, start int64) bool {
	c := newCut(sizes, strides, t.start)
	var dims []trailDim
	for _, d := range t.dims {
		if !c.dim(d, &dims) {
			return false
		}
	}
	t.dims, t.start = dims, start+c.start()
	return len(dims) <= maxRank && c.carries()
}

// A cut divides steps in row-major numbers into steps along one dimension each.
type cut struct {
	sizes, strides, row []int64
	lo, hi              []int64 // the least and greatest index along each
	first               []int64
}

func newCut(sizes, strides []int64, start int64) *cut {
	c := &cut{sizes: sizes, strides: strides, row: rowMajor(sizes)}
	for k, size := range sizes {
		c.first = append(c.first, start/c.row[k]%size)
	}
	c.lo, c.hi = slices.Clone(c.first), slices.Clone(c.first)
	return c
}

func (c *cut) start() (n int64) {
	for k, i := range c.first {
		n += i * c.strides[k]
	}
	return n
}

// carries says whether no index leaves its dimension.
func (c *cut) carries() bool {
	for k, size := range c.sizes {
		if c.lo[k] < 0 || c.hi[k] >= size {
			return false
		}
	}
	return true
}

// dim appends the parts of d, outermost first.
func (c *cut) dim(d trailDim, dims *[]trailDim) bool {
	if d.at == 0 {
		*dims = append(*dims, d)
		return true
	}
	sign, step := int64(1), d.at
	if step < 0 {
		sign, step = -1, -step
	}
	k := slices.IndexFunc(c.row, func(row int64) bool { return row <= step })
	for k >= 0 && k < len(c.row) && c.sizes[k] == 1 {
		k++
	}
	if k < 0 || k == len(c.row) || step%c.row[k] != 0 || step >= c.row[k]*c.sizes[k] {
		return false
	}
	m, size := step/c.row[k], c.sizes[k]
	if (d.size-1)*m >= size {
		n := size / m
		if size%m != 0 || n == 0 || d.size%n != 0 || len(d.inside)+len(d.outside) > 0 {
			return false
		}
		outer := trailDim{size: d.size / n, to: d.to * n, at: sign * c.row[k] * size}
		if !c.dim(outer, dims) {
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

// along is the dimension of the trail that is dimension k of a tile it is over.
func (t *trail) along(sizes []int64, k int) (int, bool) {
	row := rowMajor(sizes)
	found := -1
	for n, d := range t.dims {
		if d.size == 1 || d.at/row[k] == 0 || d.at%(row[k]*sizes[k]) == 0 {
			continue
		}
		if found >= 0 || d.at != row[k] || d.size != sizes[k] {
			return 0, false
		}
		found = n
	}
	if found < 0 && sizes[k] == 1 {
		t.dims = append(t.dims, trailDim{size: 1})
		return len(t.dims) - 1, len(t.dims) <= maxRank
	}
	return found, found >= 0 && t.start/row[k]%sizes[k] == 0
}

// masked calls f with every masked dimension of a tile and the dimension of the
// trail that it is.
func (t *trail) masked(tile symtile.Tile, f func(d *trailDim, x symtile.DimTile)) bool {
	box, _, ok := tile.Boxes()
	if !ok {
		return false
	}
	if !box.Masked() {
		return true
	}
	sizes := box.Sizes()
	if !t.through(sizes, rowMajor(sizes), 0) {
		return false
	}
	for k, x := range box {
		if !x.Masked() {
			continue
		}
		n, ok := t.along(sizes, k)
		if !ok {
			return false
		}
		f(&t.dims[n], x)
	}
	return true
}

// within keeps the elements that are there in a tile with as many.
func (t *trail) within(tile symtile.Tile) bool {
	return t.masked(tile, func(d *trailDim, x symtile.DimTile) {
		d.inside = append(slices.Clone(d.inside), x)
	})
}

// around keeps the elements that are not there in a tile with as many.
func (t *trail) around(tile symtile.Tile) bool {
	if t.split {
		return false
	}
	t.split = true
	return t.masked(tile, func(d *trailDim, x symtile.DimTile) { d.outside = []symtile.DimTile{x} })
}

// memory continues a trail at a parameter into its array: at becomes places in
// memory, and base the place of element 0.
func (t *trail) memory(l *lowering) (base symtile.Expr, ok bool) {
	op := l.p.Ops[t.op]
	base = l.p.Space.Ring.Const(0)
	box, axis, ok := op.Tile.Boxes()
	if !ok {
		return base, false
	}
	places := op.Instr.Shape.Strides()
	strides := make([]int64, len(box))
	for k, d := range box {
		strides[k] = strideOf(d) * places[axis[k]]
		base = base.Add(d.Offset.Scale(places[axis[k]]))
	}
	return base, t.through(box.Sizes(), strides, 0)
}

// movedTo is the route to what a root stores, where that is only moved and by
// more than one run of the tile; nil otherwise.
func (l *lowering) movedTo(r symtile.Root) *route {
	op := l.p.Ops[r.Op]
	box, axis, ok := op.Tile.Boxes()
	if !ok || len(box) > maxRank || !op.Instr.Shape.DType.IsArray() {
		return nil
	}
	places := op.Instr.Shape.Strides()
	to := make([]int64, len(box))
	for k, d := range box {
		to[k] = strideOf(d) * places[axis[k]]
	}
	t := newTrail(r.Op, box.Sizes(), to)
	for k, d := range box {
		if d.Masked() {
			t.dims[k].inside = []symtile.DimTile{d}
		}
	}
	return l.route(t)
}

// gathered is the route to an operation that arranges elements anew, when it is
// better made from the arrays of the caller than from their tiles.
func (l *lowering) gathered(n int) *route {
	op := l.p.Ops[n]
	if len(op.Tile) > maxRank || !native(op.Instr.Shape.DType) {
		return nil
	}
	switch op.Code {
	case hlo.OpTranspose, hlo.OpConcatenate, hlo.OpPad, hlo.OpDynamicUpdateSlice, hlo.OpReverse:
	default:
		return nil
	}
	if op.Code == hlo.OpTranspose || op.Code == hlo.OpReverse {
		if g := l.gatherOf(op); classBytes[classOf(op.Instr.Shape.DType)] == 4 && viewable(g) {
			return nil // machine code reads it where it is
		}
	}
	sizes := op.Tile.Sizes()
	t := newTrail(n, sizes, rowMajor(sizes))
	t.blank = true
	return l.route(t)
}

// route follows a trail; nil when that does not work, or nothing is gained.
func (l *lowering) route(t trail) *route {
	r := &route{}
	d := l.p.Ops[t.op].Instr.Shape.DType
	if !l.follow(t, r) {
		return nil
	}
	arrays := 0
	for k := range r.trails {
		source := l.p.Ops[r.trails[k].op]
		if source.Instr.Shape.DType != d {
			return nil
		}
		if source.Code == hlo.OpParameter {
			arrays++
			if t.blank && !r.trails[k].within(source.Tile) {
				return nil
			}
		} else if !native(d) {
			return nil
		}
		try := r.trails[k]
		if _, ok := try.end(l); !ok {
			return nil
		}
	}
	if arrays == 0 && (t.blank || !r.moved) {
		return nil
	}
	return r
}

// end is memory, or stays where it is when the source is no parameter.
func (t *trail) end(l *lowering) (base symtile.Expr, ok bool) {
	if l.p.Ops[t.op].Code != hlo.OpParameter {
		return l.p.Space.Ring.Const(0), true
	}
	return t.memory(l)
}

// A plan of moves says which operations are not lowered as they are.
type moves struct {
	roots []*route // by root
	picks []bool   // by root: a gather that goes to its output
	ops   []*route // by op, for those that go from arrays to scratch
	wants []bool   // by op: it is lowered
}

// planMoves decides what is moved straight to outputs: roots that are only moved and
// that nothing else needs in scratch.
func (l *lowering) planMoves() {
	m := &l.moves
	*m = moves{make([]*route, len(l.p.Roots)), make([]bool, len(l.p.Roots)), make([]*route, len(l.p.Ops)), make([]bool, len(l.p.Ops))}
	for k, r := range l.p.Roots {
		m.roots[k], m.picks[k] = l.movedTo(r), l.picks(r)
	}
	for n, op := range l.p.Ops {
		if op.Loop != nil {
			l.want(n)
		}
	}
	for _, r := range l.p.Runtime {
		l.want(r.Op)
	}
	for k, r := range l.p.Roots {
		if m.roots[k] == nil && !m.picks[k] {
			l.want(r.Op)
		}
	}
	for k, r := range l.p.Roots {
		switch {
		case m.wants[r.Op]:
			m.roots[k], m.picks[k] = nil, false
		case m.picks[k]:
			l.want(l.p.Ops[r.Op].Args[1])
		default:
			l.wantSources(m.roots[k])
		}
	}
}

// want marks an op that is lowered, and all that it reads.
func (l *lowering) want(n int) {
	m := &l.moves
	if m.wants[n] {
		return
	}
	m.wants[n] = true
	if m.ops[n] = l.gathered(n); m.ops[n] != nil {
		l.wantSources(m.ops[n])
		return
	}
	for _, a := range l.p.Ops[n].Args {
		l.want(a)
	}
}

func (l *lowering) wantSources(r *route) {
	for _, t := range r.trails {
		if l.p.Ops[t.op].Code != hlo.OpParameter {
			l.want(t.op)
		}
	}
}
