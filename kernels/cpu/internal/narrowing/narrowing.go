// Package narrowing makes the tiles of what a join reads as narrow as what it takes of them.
//
// The tile of an operand of a concatenate or a pad is as large as that of the result, and
// masked where the operand does not reach. Where these masks are the same in every tile
// program, as where a tile has all of the joined dimension, the operand is computed for its
// part of the tile alone, without masks: the halves of a rotary embedding for half of a row
// each. Rows of a narrow tile are rows of arrays that machine code reads and writes in place. What is only moved is left alone, since copies skip what is masked anyhow.
package narrowing

import (
	"slices"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// First is where the tiles of ops begin in those that they had before, by op and dimension;
// nil for all of an op that was not narrowed.
type First [][]int64

// Of is the first index that the tile of an op has along a dimension.
func (f First) Of(op, dim int) int64 {
	if op >= len(f) || f[op] == nil {
		return 0
	}
	return f[op][dim]
}

// maxTurns bounds how often ranges are widened until they agree. Programs of the corpus take
// one turn or two: each turn leaves more ops whole, and what they read.
const maxTurns = 8

// A span is the indices lo … hi−1 along a dimension of a tile.
//
// Ranges are of the tiles that ops had before: a range lo … hi−1 of a tile with offset o and
// stride s is the indices o + lo·s to o + (hi−1)·s of the array.
type span struct{ lo, hi int64 }

// Program is a concrete program with narrow tiles, in which elements keep their values. It is p
// itself, with no First, where nothing can be narrowed.
//
// Where elementwise operations read what is joined, the program is divided first (division.go).
func Program(p *symtile.Program) (*symtile.Program, First) {
	joins := func(op symtile.Op) bool {
		return joining[op.Code]
	}
	if !slices.ContainsFunc(p.Ops, joins) {
		return p, nil
	}
	// Divisions are given up where some part cannot be made narrow: each of several ops would
	// compute all of the tile then.
	if x := divided(p); x != nil {
		n := newNarrowing(x.p)
		wide := !n.settle() ||
			slices.ContainsFunc(x.parts, n.isWhole)
		if !wide {
			return n.program()
		}
	}
	// Joins may have operands that are computed for less than a tile all the same.
	joins = func(op symtile.Op) bool {
		return joinsParts(p, op)
	}
	if !slices.ContainsFunc(p.Ops, joins) {
		return p, nil
	}
	if n := newNarrowing(p); n.settle() {
		return n.program()
	}
	return p, nil
}

// A narrowing is the ranges of tiles that are needed, by op and dimension.
type narrowing struct {
	p     *symtile.Program
	order []int // The ops, each after its operands.
	need  [][]span
	// Ops whose tiles stay as they are.
	whole []bool
	// Ops of which windows are read, which are recognised with what is padded.
	windowed []bool
}

// newNarrowing begins with what is stored, or read at run time.
func newNarrowing(p *symtile.Program) *narrowing {
	n := &narrowing{
		p:        p,
		order:    inOrder(p),
		whole:    make([]bool, len(p.Ops)),
		windowed: make([]bool, len(p.Ops)),
	}
	for _, r := range p.Roots {
		n.whole[r.Op] = true
	}
	for _, r := range p.Runtime {
		n.whole[r.Op] = true
	}
	for _, op := range p.Ops {
		if op.Code == symtile.OpUnfold {
			n.windowed[op.Args[0]] = true
		}
	}
	return n
}

// inOrder are the ops of a program, each after its operands.
func inOrder(p *symtile.Program) (order []int) {
	met := make([]bool, len(p.Ops))
	var visit func(u int)
	visit = func(u int) {
		if met[u] {
			return
		}
		met[u] = true
		for _, a := range p.Ops[u].Args {
			visit(a)
		}
		order = append(order, u)
	}
	for u := range p.Ops {
		visit(u)
	}
	return order
}

// settle finds ranges that agree; it is false where there were none after some turns.
func (n *narrowing) settle() bool {
	for range maxTurns {
		n.collect()
		if !n.widen() {
			return true
		}
	}
	return false
}

// isWhole reports whether an op has all of its tile.
func (n *narrowing) isWhole(op int) bool {
	return slices.Equal(n.need[op], n.all(op))
}

// all is the whole tile of an op.
func (n *narrowing) all(op int) []span {
	t := n.p.Ops[op].Tile
	s := make([]span, len(t))
	for d, size := range t.Sizes() {
		s[d] = span{0, size}
	}
	return s
}

// collect finds what the readers of each op need of its tile, the last op first: the range
// from the first element to the last one that some reader needs. What nothing reads is whole,
// such as the results of loops.
func (n *narrowing) collect() {
	n.need = make([][]span, len(n.p.Ops))
	// All readers of an op come after it, so that their needs are known when its own are used.
	for _, u := range slices.Backward(n.order) {
		if n.whole[u] || n.need[u] == nil {
			n.need[u] = n.all(u)
		}
		for k, a := range n.p.Ops[u].Args {
			want, ok := n.wanted(u, k)
			if !ok {
				want = n.all(a)
			}
			n.need[a] = hull(n.need[a], want)
		}
	}
}

// Readers that need different parts of a tile share one that has all of these, and what is
// between them.

// hull is the indices from the first to the last of two ranges; nil is none.
func hull(x, y []span) []span {
	if x == nil {
		return y
	}
	s := slices.Clone(x)
	for d := range s {
		r := y[d]
		s[d].lo = min(s[d].lo, r.lo)
		s[d].hi = max(s[d].hi, r.hi)
	}
	return s
}

// Elementwise operations need tiles of one size, so that an op which a reader needs whole has
// to be whole for all of them. The ops of a join are the exception: they are put where they
// belong, and may have more than their part.

// widen leaves those ops whole, and what reads them, whose operands have to be wider than
// they need. It reports whether there are new ones.
func (n *narrowing) widen() bool {
	found := false
	for _, u := range n.order {
		for k, a := range n.p.Ops[u].Args {
			want, ok := n.wanted(u, k)
			fits := slices.Equal(want, n.need[a]) ||
				placed(n.p.Ops[u], k)
			if ok && fits {
				continue
			}
			// An op whose operand is wider than it needs becomes as wide. Where it is already,
			// the operand does.
			if !n.isWhole(u) {
				n.whole[u] = true
				n.need[u] = n.all(u)
				found = true
			} else if ok && !n.whole[a] {
				n.whole[a], found = true, true
			}
		}
	}
	return found
}

// placed reports whether operand k of an op is put into the tile of the result where it
// belongs, and may have elements that do not.
func placed(op symtile.Op, k int) bool {
	// The other operand of a pad is a number.
	return op.Code == hlo.OpConcatenate ||
		k == 0 && op.Code == hlo.OpPad
}

// joinsParts reports whether an op is a join of which some operand is computed and fills the
// same part of every tile.
func joinsParts(p *symtile.Program, op symtile.Op) bool {
	for k, a := range op.Args {
		if !placed(op, k) || !computed(p, a) {
			continue
		}
		for d := range op.Tile {
			t := p.Ops[a].Tile[d]
			s, ok := valid(t)
			if ok && s.hi-s.lo < mustSize(t) {
				return true
			}
		}
	}
	return false
}

// computed reports whether an operand is made by element operations, perhaps rearranged.
func computed(p *symtile.Program, n int) bool {
	op := p.Ops[n]
	switch op.Code {
	case hlo.OpReshape, hlo.OpSlice, hlo.OpCopy, hlo.OpTranspose, hlo.OpReverse,
		hlo.OpBroadcast, hlo.OpConcatenate, hlo.OpPad, hlo.OpDynamicSlice:
		// These move elements, which some operand may have computed.
		return slices.ContainsFunc(op.Args, func(a int) bool {
			return computed(p, a)
		})
	}
	return op.Code.Elementwise()
}

// Masks that depend on the tile program, as where a tile is a part of the joined dimension or
// its place is known at run time only, leave an operand as it is: it is computed under its mask.

// valid is the indices of a dimension that are not masked, where these are known and some are.
func valid(d symtile.DimTile) (span, bool) {
	var at [5]int64
	for k, e := range []index.Expr{
		d.Offset, d.Lower, d.Bound, d.Stride, d.Size,
	} {
		x, ok := e.Value()
		if !ok || d.Digits != nil {
			return span{}, false
		}
		at[k] = x
	}
	offset := at[0]
	lower := at[1]
	bound := at[2]
	stride := at[3]
	size := at[4]
	if stride < 1 {
		return span{}, false
	}
	// Element i is valid where lower ≤ offset + i·stride < bound.
	s := span{0, size}
	if offset < lower {
		s.lo = (lower - offset + stride - 1) / stride
	}
	last := offset + (size-1)*stride
	if last >= bound {
		s.hi = (bound - offset + stride - 1) / stride
		s.hi = max(0, s.hi)
	}
	return s, s.lo < s.hi
}

// mustSize is the size of a dimension of a concrete tile.
func mustSize(d symtile.DimTile) int64 {
	size, _ := d.Size.Value()
	return size
}

// wanted is what op u needs of its operand k; false where that is all of it and u is whole, too.
func (n *narrowing) wanted(u, k int) ([]span, bool) {
	op := n.p.Ops[u]
	a := op.Args[k]
	need := n.need[u]
	from := n.p.Ops[a].Tile
	switch {
	case op.Tile.HasDigits() || from.HasDigits():
		return nil, false
	case isElementwise(op):
		// A number applies to all elements.
		if len(from) != len(op.Tile) {
			return n.all(a), true
		}
		return need, true
	}
	switch op.Code {
	case hlo.OpCopy, hlo.OpOptimizationBarrier:
		return need, true
	case hlo.OpSlice, hlo.OpDynamicSlice:
		if k > 0 {
			return n.all(a), true
		}
		return need, true
	case hlo.OpConcatenate, hlo.OpPad:
		return n.part(u, k)
	case hlo.OpReshape:
		return n.reshaped(u)
	case hlo.OpBroadcast, hlo.OpTranspose, hlo.OpReverse:
		return n.rearranged(u)
	}
	// Other operations, such as reductions, keep all of their operands.
	return nil, false
}

// part is what a join needs of an operand.
func (n *narrowing) part(u, k int) ([]span, bool) {
	op := n.p.Ops[u]
	a := op.Args[k]
	// What is moved alone is not narrowed, nor what windows are read of.
	moved := !computed(n.p, a)
	if moved || !placed(op, k) || n.windowed[u] {
		// Copies follow views of whole tiles.
		return n.all(a), true
	}
	want := slices.Clone(n.need[u])
	for d, t := range n.p.Ops[a].Tile {
		// Elements with gaps between them are no range of the result.
		gaps := op.Code == hlo.OpPad &&
			op.Instr.Attrs.Padding[d].Interior > 0
		if gaps {
			want[d] = span{0, mustSize(t)}
			continue
		}
		s, ok := valid(t)
		if !ok {
			continue
		}
		// What another join needs of this one may have nothing of the operand.
		s.lo = max(s.lo, want[d].lo)
		s.hi = min(s.hi, want[d].hi)
		if s.lo < s.hi {
			want[d] = s
		}
	}
	return want, true
}

// rearranged is what a broadcast, transpose or reverse needs.
func (n *narrowing) rearranged(u int) ([]span, bool) {
	op := n.p.Ops[u]
	need := n.need[u]
	from := n.p.Ops[op.Args[0]].Tile
	// A dimension that a broadcast adds is none of the operand.
	want := make([]span, len(from))
	switch op.Code {
	case hlo.OpBroadcast:
		for k, d := range op.Instr.Attrs.Dimensions {
			want[k] = need[d]
		}
	case hlo.OpTranspose:
		for k, d := range op.Perm {
			want[d] = need[k]
		}
	case hlo.OpReverse:
		copy(want, need)
		// The tile is flipped: its first element is the operand's last one.
		for _, d := range op.Instr.Attrs.Dimensions {
			size := mustSize(op.Tile[d])
			want[d].lo = size - need[d].hi
			want[d].hi = size - need[d].lo
		}
	}
	return want, true
}

// Where a reshape divides or merges a dimension, a range of it is no range of the others, but
// for the outermost of them.

// reshaped is what a reshape needs: dimensions that it keeps may be narrow, others not.
func (n *narrowing) reshaped(u int) ([]span, bool) {
	op := n.p.Ops[u]
	need := n.need[u]
	a := op.Args[0]
	to := op.Tile.Sizes()
	from := n.p.Ops[a].Tile.Sizes()
	want := n.all(a)
	for i, j := 0, 0; i < len(to) || j < len(from); {
		// A group is the fewest dimensions that have as many elements in both.
		x, y := i, j
		p := take(to, &x)
		q := take(from, &y)
		for p != q {
			switch {
			case p < q && x < len(to): // the result's group has fewer elements so far
				p *= take(to, &x)
			case q < p && y < len(from):
				q *= take(from, &y)
			default:
				return nil, false
			}
		}
		narrow := span{-1, -1}
		for d := i; d < x; d++ {
			whole := span{0, to[d]}
			if need[d] != whole {
				narrow = need[d]
			}
		}
		// A group with a narrow dimension is that dimension alone, in both shapes.
		d := single(to, i, x)
		e := single(from, j, y)
		switch {
		case narrow.lo < 0:
		case d < 0 || e < 0:
			return nil, false
		default:
			want[e] = narrow
		}
		i, j = x, y
	}
	return want, true
}

// take is the size of the next dimension that has several elements, with those of one before
// it; at the end it is 1.
func take(sizes []int64, at *int) int64 {
	for *at < len(sizes) {
		size := sizes[*at]
		if *at++; size != 1 {
			return size
		}
	}
	return 1
}

// single is the only dimension of several elements among some; −1 where there are more or none.
func single(sizes []int64, from, to int) int {
	found := -1
	for d := from; d < to; d++ {
		if sizes[d] == 1 {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = d
	}
	return found
}

// Offsets and sizes change, and strides do not: elements keep their places in arrays. Where a
// dimension is narrow, its size is a number, since the tiling is known.

// program is the program with narrow tiles. What two ops compute alike then is computed once.
func (n *narrowing) program() (*symtile.Program, First) {
	q := *n.p
	q.Ops = slices.Clone(n.p.Ops)
	first := make(First, len(q.Ops))
	ring := n.p.Space.Ring
	for k := range q.Ops {
		op := &q.Ops[k]
		if n.isWhole(k) {
			continue
		}
		op.Tile = slices.Clone(op.Tile)
		first[k] = make([]int64, len(op.Tile))
		for d, s := range n.need[k] {
			t := op.Tile[d]
			if s.hi-s.lo == mustSize(t) {
				continue
			}
			first[k][d] = s.lo
			op.Tile[d] = narrow(ring, t, s)
		}
	}
	share(&q, first)
	return &q, first
}

// narrow is a dimension with some of its indices. Where none of these is masked, the bounds are
// those of the indices, so that equal tiles are the same.
func narrow(ring *index.Ring, t symtile.DimTile, s span) symtile.DimTile {
	stride, _ := t.Stride.Value()
	x := symtile.DimTile{
		Offset: t.Offset.AddConst(s.lo * stride),
		Size:   ring.Const(s.hi - s.lo),
		Stride: t.Stride,
		Lower:  t.Lower,
		Bound:  t.Bound,
	}
	v, ok := valid(t)
	if ok && v.lo <= s.lo && s.hi <= v.hi {
		length := (s.hi-s.lo-1)*stride + 1
		x.Lower = x.Offset
		x.Bound = x.Offset.AddConst(length)
	}
	return x
}

// Two halves of a row read the same halves of what they are made of, in the other order. Those
// have been tiles of their own, since the tiles of the operands of a concatenate begin at other
// indices; narrow, they are equal.

// share lets ops read the first of those that make the same elements.
//
// Where an operand of a join begins is noted with the operand, so that only those are one that
// begin at the same place: x joined with itself has two.
//
// What is in a loop is shared within its body alone: a copy of a running maximum is another one
// after the loop, where iterations subtract what is near the maximum.
func share(p *symtile.Program, first First) {
	same := make([]int, len(p.Ops))
	placedOps := make([]bool, len(p.Ops)) // joins, and what they put in its place
	for n, op := range p.Ops {
		same[n] = n
		for k, a := range op.Args {
			if placed(op, k) {
				placedOps[n] = true
				placedOps[a] = true
			}
		}
	}
	order, within := asRun(p)
	for at, n := range order {
		op := &p.Ops[n]
		op.Args = slices.Clone(op.Args)
		for k, a := range op.Args {
			op.Args[k] = same[a]
		}
		for _, m := range order[:at] {
			// Only the first of those that are alike is compared with.
			free := !placedOps[m] && !placedOps[n]
			reached := within[m] == nil || within[m] == within[n]
			if same[m] == m && reached && alike(&p.Ops[m], op) &&
				(free || slices.Equal(first[m], first[n])) {
				same[n] = m
				break
			}
		}
	}
}

// asRun are the ops in the order in which they run first, and the innermost loop of each; nil
// for others.
func asRun(p *symtile.Program) (order []int, within []*symtile.Loop) {
	within = make([]*symtile.Loop, len(p.Ops))
	var visit func(steps []symtile.Step, in *symtile.Loop)
	visit = func(steps []symtile.Step, in *symtile.Loop) {
		for _, s := range steps {
			if s.Loop == nil {
				order = append(order, s.Op)
				within[s.Op] = in
				continue
			}
			visit(s.Loop.Body, s.Loop)
			order = append(order, s.Loop.Accumulators...)
		}
	}
	visit(p.Body, nil)
	return order, within
}

// alike reports whether two ops make the same elements from the same operands.
func alike(x, y *symtile.Op) bool {
	if x.Code != y.Code || x.Loop != nil || y.Loop != nil {
		return false
	}
	return slices.Equal(x.Args, y.Args) &&
		slices.Equal(x.Perm, y.Perm) &&
		slices.Equal(x.RuntimeArgs, y.RuntimeArgs) &&
		slices.EqualFunc(x.Tile, y.Tile, symtile.DimTile.Equal) &&
		sameOperation(x.Code, x.Instr, y.Instr)
}

// sameOperation reports whether two instructions apply the same function, as far as their
// types and dimensions tell; false for those with other attributes.
func sameOperation(code hlo.Opcode, x, y *hlo.Instr) bool {
	switch {
	case x == y:
		return true
	case x.Op != y.Op, x.Shape.DType != y.Shape.DType:
		return false
	}
	switch code {
	case hlo.OpParameter:
		return x.Attrs.Param == y.Attrs.Param
	case hlo.OpBroadcast:
		return slices.Equal(x.Attrs.Dimensions, y.Attrs.Dimensions)
	case hlo.OpReshape, hlo.OpSlice, hlo.OpNegate, hlo.OpAdd,
		hlo.OpSubtract, hlo.OpMultiply, hlo.OpConvert:
		return true
	}
	return false
}

// joining are the operations that join parts: a select does where its condition is a mask.
var joining = map[hlo.Opcode]bool{
	hlo.OpConcatenate: true,
	hlo.OpPad:         true,
	hlo.OpSelect:      true,
}
