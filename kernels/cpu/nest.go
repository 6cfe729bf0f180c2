package cpu

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// A nest is pointwise instructions and reductions that follow each other over
// the rows of one shape, as one machine function: it goes row by row, and each
// row in passes, which end where a reduction of the row has to be known. What a
// later pass needs of an earlier one is computed again or kept for one row.
//
// A value of a nest is wide, one element for every element of the rows, or
// narrow, one for every row.
type nest struct {
	l                 *lowering
	items             []*instr
	sizes             []int64 // of the dimensions; the last two are the rows and the elements of a row
	made              map[*value]*pure
	narrow            map[*value]bool // narrow ones that are made, by folds or otherwise
	folds             []*reduction
	alias             map[*value]*value // what only repeats a narrow value
	leaves            map[*value]*stream
	stores            map[*value]*stream
	inverse, inverted map[*value]*value // narrow values, their reciprocals, and back
	excess            map[*value]bool   // powers that are 2^32 times as large
	order             []*value          // that are stored, as they are made
	plan              nestPlan
}

// A reduction is a reduction of f32 that machine code does.
type reduction struct {
	f       *folding
	monoid  hlo.Opcode
	arg     *value
	out     *value
	start   *value // nil: out holds it
	begin   []step // has out hold it
	columns bool   // it joins rows, not elements of a row
	final   bool   // out is narrow and has its result after the row
	plain   bool   // a maximum that may be anything where an element is NaN, and have either sign where it is 0
}

// A stream is where a nest reads or writes a value: an array with a stride for
// every dimension of the nest, in elements.
type stream struct {
	v       *value
	view    *view // nil: the value's own elements
	strides []int64
	start   int64
	large   bool // written past the caches
}

func (x *stream) col() int64 { return x.strides[len(x.strides)-1] }
func (x *stream) row() int64 { return x.strides[len(x.strides)-2] }

// still says whether a stream is in the same place for all rows.
func (x *stream) still() bool {
	return !slices.ContainsFunc(x.strides, func(s int64) bool { return s != 0 })
}

// nests joins items of the sequence that machine code does row by row.
func (s *sequence) nests() {
	f := &former{uses: s.uses()}
	for _, i := range s.items {
		f.take(s.block.l, i)
	}
	f.close()
	s.items = f.items
}

// A former builds the nests of a sequence.
type former struct {
	items []*instr
	open  *nest
	held  []*instr // copies of what the open nest makes, which join it with what reads them
	uses  map[*value]int
}

func (f *former) take(l *lowering, i *instr) {
	if f.open != nil && i.copied != nil && f.open.narrow[i.copied] {
		f.held = append(f.held, i)
		return
	}
	if nestable(i) {
		if f.join(l, i) {
			return
		}
		if n := l.newNest([]*instr{i}, f.uses); n != nil {
			if f.open != nil && !f.touches(i) {
				f.items = append(f.items, n.instr())
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

// join adds an instruction to the open nest, with the copies that it may read.
func (f *former) join(l *lowering, i *instr) bool {
	if f.open == nil {
		return false
	}
	if n := l.newNest(slices.Concat(f.open.items, f.held, []*instr{i}), f.uses); n != nil {
		f.open, f.held = n, nil
		return true
	}
	if len(f.held) == 0 || slices.ContainsFunc(f.held, func(c *instr) bool { return i.reads(c.outs[0]) }) {
		return false
	}
	n := l.newNest(append(slices.Clone(f.open.items), i), f.uses)
	if n != nil {
		f.open = n
	}
	return n != nil
}

func (f *former) close() {
	if f.open != nil {
		f.items = append(append(f.items, f.open.instr()), f.held...)
		f.open, f.held = nil, nil
	}
}

// touches says whether an instruction uses what the open nest makes.
func (f *former) touches(i *instr) bool {
	return f.open.touches(i) || slices.ContainsFunc(f.held, func(c *instr) bool { return i.reads(c.outs[0]) })
}

// reads says whether an instruction, or one of its group, reads v.
func (i *instr) reads(v *value) bool {
	for _, x := range append(i.group, i) {
		if slices.Contains(x.same, v) || slices.Contains(x.full, v) {
			return true
		}
	}
	return false
}

// touches says whether an instruction uses what the nest makes.
func (n *nest) touches(i *instr) bool {
	for _, x := range append(i.group, i) {
		for _, v := range slices.Concat(x.same, x.full, x.outs) {
			if n.makes(v) || n.shows(v) {
				return true
			}
		}
	}
	return false
}

// shows says whether v is a view that an instruction of the nest has.
func (n *nest) shows(v *value) bool { return n.leaves[v] != nil && n.leaves[v].view != nil }

func (n *nest) makes(v *value) bool {
	return n.made[v] != nil || n.narrow[v] || n.alias[v] != nil || slices.ContainsFunc(n.folds, func(f *reduction) bool { return f.out == v })
}

// uses counts how often the items read each value.
func (s *sequence) uses() map[*value]int {
	uses := map[*value]int{}
	for _, i := range s.items {
		for _, n := range append(i.group, i) {
			for _, v := range n.same {
				uses[v]++
			}
			for _, v := range n.full {
				uses[v]++
			}
		}
	}
	return uses
}

func nestable(i *instr) bool {
	switch {
	case i.copied != nil:
		return true
	case i.fold != nil:
		return len(i.fold.f.limits) == 0 && machineFolds[i.fold.monoid].join != nil
	}
	return i.group != nil && !slices.ContainsFunc(i.group, func(x *instr) bool {
		return x.view == nil && x.sink == nil && (x.pure == nil || !machinable(x.pure.op))
	})
}

// newNest is the nest of items, nil where there is none.
func (l *lowering) newNest(items []*instr, uses map[*value]int) *nest {
	n := &nest{
		l: l, items: items, made: map[*value]*pure{}, narrow: map[*value]bool{}, alias: map[*value]*value{},
		leaves: map[*value]*stream{}, stores: map[*value]*stream{}, inverse: map[*value]*value{}, inverted: map[*value]*value{},
		excess: map[*value]bool{},
	}
	if !n.shape() {
		return nil
	}
	for _, i := range items {
		if !n.take(i) {
			return nil
		}
	}
	if !n.finish(uses) || !n.makePlan() {
		return nil
	}
	return n
}

const (
	shortestRow = 8       // elements: one vector
	longestRow  = 1 << 17 // … of a call
	flatRow     = 1 << 10 // … where rows can be chosen, at most
)

// shape finds the dimensions into which all accesses can be divided.
func (n *nest) shape() bool {
	total, reduced := int64(0), false
	for _, i := range n.items {
		total = max(total, i.span())
	}
	bounds := []int64{total}
	for _, i := range n.items {
		if i.span() != total {
			continue
		}
		if i.fold != nil {
			reduced = true
			bounds = append(bounds, boundaries(i.fold.dims())...)
		}
		for _, x := range i.group {
			for _, v := range []*view{x.view, x.sink} {
				if v != nil {
					bounds = append(bounds, boundaries(v.g.dims)...)
				}
			}
		}
	}
	slices.Sort(bounds)
	bounds = slices.Compact(bounds)
	if len(bounds) == 1 && !reduced {
		bounds = append([]int64{rowOf(total)}, bounds...)
	}
	if bounds[0] < shortestRow || bounds[0] > longestRow {
		return false
	}
	n.sizes = []int64{bounds[0]}
	for k, b := range bounds[1:] {
		if b%bounds[k] != 0 {
			return false
		}
		if b != bounds[k] {
			n.sizes = slices.Insert(n.sizes, 0, b/bounds[k])
		}
	}
	if len(n.sizes) == 1 {
		n.sizes = []int64{1, n.sizes[0]}
	}
	return true
}

// span is how many elements an item goes over.
func (i *instr) span() int64 {
	if i.fold == nil {
		return i.n
	}
	size := int64(1)
	for _, d := range i.fold.f.dims {
		size *= d.size
	}
	return size
}

func (f *reduction) dims() []gatherDim {
	dims := make([]gatherDim, len(f.f.dims))
	for k, d := range f.f.dims {
		dims[k] = gatherDim{d.size, d.kept}
	}
	return dims
}

// boundaries are the products of the sizes of the last dimensions.
func boundaries(dims []gatherDim) []int64 {
	var bounds []int64
	size := int64(1)
	for _, d := range slices.Backward(dims) {
		if size *= d.size; d.size > 1 {
			bounds = append(bounds, size)
		}
	}
	return bounds
}

// rowOf is the length of rows of n elements that follow each other: a divisor
// of which four vectors are one, else all.
func rowOf(n int64) int64 {
	for c := int64(flatRow); c >= flatRow/4; c -= 32 {
		if n%c == 0 {
			return c
		}
	}
	return n
}

// refine divides dimensions into those of the sizes.
func refine(dims []gatherDim, sizes []int64) ([]int64, bool) {
	strides := make([]int64, len(sizes))
	d := len(dims) - 1
	rest, step := dims[d].size, dims[d].stride
	for k := len(sizes) - 1; k >= 0; k-- {
		if sizes[k] == 1 {
			continue
		}
		for rest == 1 && d > 0 {
			d--
			rest, step = dims[d].size, dims[d].stride
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

// strides of dense elements, wide or narrow.
func (n *nest) strides(wide bool) []int64 {
	if wide {
		return rowMajor(n.sizes)
	}
	return append(rowMajor(n.sizes[:len(n.sizes)-1]), 0)
}

// alike says whether strides differ in dimensions of one element only.
func (n *nest) alike(x, y []int64) bool {
	for k, size := range n.sizes {
		if size > 1 && x[k] != y[k] {
			return false
		}
	}
	return true
}

func (n *nest) cols() int64 { return n.sizes[len(n.sizes)-1] }
func (n *nest) rows() int64 { return n.sizes[len(n.sizes)-2] }

// take adds an item; false if it does not fit.
func (n *nest) take(i *instr) bool {
	total := product(n.sizes)
	switch {
	case i.copied != nil:
		if n.narrow[i.copied] && total == n.cols() {
			n.alias[i.outs[0]] = i.copied
			return true
		}
		return false
	case i.fold != nil:
		return i.span() == total && n.takeFold(i.fold)
	case i.n != total && i.n != total/n.cols():
		return false
	}
	for _, x := range i.group {
		if !n.takeOne(x, i.n == total) {
			return false
		}
	}
	return true
}

func (n *nest) takeOne(x *instr, wide bool) bool {
	switch {
	case x.view != nil:
		return n.takeView(x, wide)
	case x.sink != nil:
		s := n.seen(x.sink, x.same[0], wide)
		if s == nil || !n.narrowFits(s, true) || wide && s.col() != 1 || n.stores[x.same[0]] != nil || !n.makes(x.same[0]) && (!wide || n.leaves[x.same[0]] == nil) {
			return false
		}
		s.large = x.large
		n.store(x.same[0], s)
		return true
	}
	for _, v := range x.pure.args {
		if !n.operand(v, wide) {
			return false
		}
	}
	n.made[x.pure.out] = x.pure
	if !wide {
		n.narrow[x.pure.out] = true
	}
	return true
}

func (n *nest) store(v *value, s *stream) {
	n.stores[v] = s
	n.order = append(n.order, v)
}

// seen is the stream of a view.
func (n *nest) seen(x *view, v *value, wide bool) *stream {
	sizes := n.sizes
	if !wide {
		sizes = sizes[:len(sizes)-1]
	}
	strides, ok := refine(x.g.dims, sizes)
	if !ok {
		return nil
	}
	if !wide {
		strides = append(strides, 0)
	}
	return &stream{v: v, view: x, strides: strides, start: x.g.start}
}

func (n *nest) takeView(x *instr, wide bool) bool {
	s := n.seen(x.view, x.outs[0], wide)
	if s == nil || !n.narrowFits(s, false) || wide && s.col() != 0 && s.col() != 1 {
		return false
	}
	from := x.view.from
	switch {
	case from != nil && n.shows(from):
		return false
	case from == nil || !n.makes(from):
		n.leaves[x.outs[0]] = s
		return true
	case !wide || !n.narrow[from] || s.start != 0 || !n.alike(s.strides, n.strides(false)):
		return false
	}
	n.alias[x.outs[0]] = from
	return true
}

// operand makes a value that is not of the nest a leaf of it.
func (n *nest) operand(v *value, wide bool) bool {
	switch {
	case n.alias[v] != nil || n.leaves[v] != nil:
		return true
	case n.made[v] != nil || n.narrow[v]:
		return n.narrow[v] != wide
	case n.makes(v) || v.strides != nil || classBytes[v.class] != 4:
		return false
	case v.where == inSplat:
		n.leaves[v] = &stream{v: v, strides: make([]int64, len(n.sizes))}
		return true
	}
	n.leaves[v] = &stream{v: v, strides: n.strides(wide)}
	return true
}

func (n *nest) takeFold(of *reduction) bool {
	f := &reduction{}
	*f = *of
	if f.arg.where == inSplat || !n.operand(f.arg, true) {
		return false
	}
	strides, ok := refine(f.dims(), n.sizes)
	if !ok {
		return false
	}
	out := &stream{v: f.out, strides: strides}
	f.columns, f.final = out.col() == 1, n.alike(strides, n.strides(false))
	switch {
	case f.columns && out.row() != 0 && n.rows() > 1, !f.columns && out.col() != 0:
		return false
	case f.start != nil && (n.makes(f.start) || n.shows(f.start)):
		return false
	case f.start != nil && n.leaves[f.start] == nil:
		n.leaves[f.start] = &stream{v: f.start, strides: make([]int64, len(n.sizes))}
	}
	for _, other := range n.folds {
		if other.columns != f.columns {
			return false
		}
	}
	n.folds = append(n.folds, f)
	if f.final = f.final && !f.columns; f.final {
		n.narrow[f.out] = true
	} else {
		n.stores[f.out] = out
	}
	if f.final && f.start == nil {
		n.stores[f.out] = out
	}
	return true
}

// finish finds what has to be stored, and refuses what cannot be done.
func (n *nest) finish(uses map[*value]int) bool {
	inside := map[*value]int{}
	for _, i := range n.items {
		for _, x := range append(i.group, i) {
			for _, v := range x.same {
				inside[v]++
			}
			for _, v := range x.full {
				inside[v]++
			}
		}
	}
	out := func(v *value) bool { return uses[v] > inside[v] || v.where == inMemory }
	for v := range n.alias {
		if out(v) {
			return false
		}
	}
	for _, i := range n.items {
		for _, x := range append(i.group, i) {
			if !n.keepOuts(x, out) {
				return false
			}
		}
	}
	return n.oneDirection()
}

// keepOuts stores what an instruction makes that is used elsewhere.
func (n *nest) keepOuts(x *instr, out func(*value) bool) bool {
	if x.group != nil || x.nest != nil {
		return true
	}
	if x.fold != nil {
		if v := x.fold.out; n.stores[v] == nil && out(v) {
			n.stores[v] = &stream{v: v, strides: n.strides(false)}
		}
		return true
	}
	if len(x.outs) == 0 || x.copied != nil || n.alias[x.outs[0]] != nil || !out(x.outs[0]) {
		return true
	}
	v := x.outs[0]
	if n.stores[v] != nil || n.leaves[v] != nil && v.n != product(n.sizes) {
		return false
	}
	n.store(v, &stream{v: v, strides: n.strides(!n.narrow[v]), large: v.large && v.where == inMemory})
	return true
}

// oneDirection says whether folds go along rows, or across them and then
// without anything narrow.
func (n *nest) oneDirection() bool {
	if !n.columns() {
		return true
	}
	return len(n.narrow) == 0 && len(n.alias) == 0
}

// instr is the nest as one instruction; what stays inside of it has no scratch,
// or that of a row.
func (n *nest) instr() *instr {
	i := &instr{name: "rows", nest: n}
	seen := map[*value]bool{}
	note := func(list *[]*value, v *value) {
		if !seen[v] {
			seen[v] = true
			*list = append(*list, v)
		}
	}
	for _, x := range n.items {
		for _, y := range append(x.group, x) {
			for _, v := range y.outs {
				if !n.makes(v) && n.leaves[v] == nil || n.stores[v] != nil && n.stores[v].view == nil {
					note(&i.outs, v)
				} else if v.where == inTile || v.where == inSplat {
					v.where = inRegister
				}
			}
		}
	}
	n.softmaxes()
	n.plan.settle(n)
	for _, v := range n.plan.scratch() {
		note(&i.outs, v)
	}
	for _, x := range n.items {
		for _, y := range append(x.group, x) {
			for _, v := range slices.Concat(y.same, y.full) {
				if v.where != inRegister && v.where != inRow {
					note(&i.full, v)
				}
			}
		}
	}
	return i
}
