package narrowing

import (
	"slices"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// An elementwise operation on a concatenate is a concatenate of that operation on each of its
// parts: where x is joined of a and b, x·s + y is joined of a·s′ + y′ and b·s″ + y″, with the
// parts of s and y that belong to these. Then nothing is joined but results, which are stored
// where they belong. The rotary embedding of LLaMA is written so, as
// x·cos + concatenate(−x₂, x₁)·sin.

// maxParts bounds the parts of a division, each of which has a copy of all operations.
const maxParts = 8

// minPart is the elements of the shortest part of a row that is worth to be computed apart.
const minPart = 16

// A division is a program of which some elementwise ops become concatenates of their parts.
// New ops come last; they run before what reads them.
type division struct {
	p     *symtile.Program
	parts []int // The new ops that are parts of a result.
}

// A cut is the indices of a part along a dimension of an op.
type cut struct {
	op, dim int
	span
}

// divided is a program without elementwise operations on joined parts, as far as these are the
// same in every tile program; nil where there are none.
func divided(p *symtile.Program) *division {
	var x *division
	for k := 0; k < len(p.Body); k++ {
		// What is in a loop stays there, and whole: it is computed once an iteration.
		s := p.Body[k]
		u := s.Op
		if s.Loop != nil || !endsElementwise(p, u) {
			continue
		}
		axis, bounds := boundaries(p, u)
		if len(bounds) < 3 {
			continue
		}
		if x == nil {
			q := *p
			q.Ops = slices.Clone(p.Ops)
			q.Body = slices.Clone(p.Body)
			x = &division{p: &q}
			p = &q
		}
		k += x.divide(k, u, axis, bounds)
	}
	return x
}

// endsElementwise reports whether an op is the last of some elementwise ones: it is stored, or
// something else reads it.
func endsElementwise(p *symtile.Program, u int) bool {
	x := p.Ops[u]
	if !isElementwise(x) || x.Tile.HasDigits() {
		return false
	}
	last := slices.ContainsFunc(p.Roots, func(r symtile.Root) bool {
		return r.Op == u
	})
	for _, op := range p.Ops {
		if !slices.Contains(op.Args, u) {
			continue
		}
		// The division of an elementwise reader has parts of this one.
		if isElementwise(op) && len(op.Tile) == len(x.Tile) {
			return false
		}
		last = true
	}
	return last
}

// isElementwise reports whether an op computes each element from those at the same index, and
// accumulates nothing.
func isElementwise(op symtile.Op) bool {
	return op.Loop == nil && op.Code.Elementwise()
}

// boundaries are the dimension along which concatenates that an elementwise op reads, perhaps
// through others, join parts, and where these begin and end.
func boundaries(
	p *symtile.Program, u int,
) (axis int, bounds []int64) {
	axis = -1
	met := map[int]bool{}
	var visit func(n int)
	visit = func(n int) {
		op := p.Ops[n]
		rank := len(p.Ops[u].Tile)
		if met[n] || op.Loop != nil || len(op.Tile) != rank {
			return
		}
		met[n] = true
		// The first join that is met decides along which dimension parts are.
		d, list := joints(p, op)
		if list != nil && (axis < 0 || axis == d) {
			axis = d
			bounds = append(bounds, list...)
		}
		if op.Code.Elementwise() {
			for _, a := range op.Args {
				visit(a)
			}
		}
	}
	visit(u)
	slices.Sort(bounds)
	bounds = slices.Compact(bounds)
	if axis < 0 || len(bounds) > maxParts+1 {
		return axis, nil
	}
	t := p.Ops[u].Tile
	_, ok := valid(t[axis])
	if !ok || shortParts(t.Sizes()[axis:], bounds) {
		return axis, nil
	}
	return axis, bounds
}

// shortParts reports whether a part has few elements in a row, given the sizes from the
// dimension of the parts on. Pairs of single elements are no short parts: vectors of the first
// ones and of the second ones are computed apart, and put between each other.
func shortParts(sizes, bounds []int64) bool {
	inner := hlo.Elements(sizes[1:])
	if sizes[0] == 2 && inner == 1 {
		return false
	}
	for k := range len(bounds) - 1 {
		length := bounds[k+1] - bounds[k]
		if length*inner < minPart {
			return true
		}
	}
	return false
}

// joints are where the parts of a join begin and end in its tile, which they fill, and along
// which dimension; nil where that depends on the tile program, and for other ops.
func joints(
	p *symtile.Program, op symtile.Op,
) (axis int, list []int64) {
	switch op.Code {
	case hlo.OpConcatenate:
		axis = int(op.Instr.Attrs.Dimensions[0])
		return axis, partsOf(p, op, axis)
	case hlo.OpSelect:
		if m := maskOf(p, op); m != nil {
			return m.axis, m.joints()
		}
	}
	return -1, nil
}

// partsOf are the joints of a concatenate.
func partsOf(
	p *symtile.Program, op symtile.Op, axis int,
) (list []int64) {
	// Empty operands begin where they end, and are no parts.
	at := int64(0)
	for _, a := range op.Args {
		s, ok := valid(p.Ops[a].Tile[axis])
		if !ok || s.lo != at {
			return nil
		}
		list = append(list, at)
		at = s.hi
	}
	if at != mustSize(op.Tile[axis]) {
		return nil
	}
	return append(list, at)
}

// divide makes op u, of step k, a concatenate of its parts. It returns the number of steps that
// come before it now.
func (x *division) divide(k, u, axis int, bounds []int64) int {
	before := len(x.p.Ops)
	op := x.p.Ops[u]
	var operands []*hlo.Instr
	joined := symtile.Op{
		Code: hlo.OpConcatenate,
		Tile: op.Tile,
		Instr: &hlo.Instr{
			Name:  op.Instr.Name,
			Op:    hlo.OpConcatenate,
			Shape: op.Instr.Shape,
			Attrs: hlo.Attrs{
				Dimensions: []int64{int64(axis)},
			},
		},
	}
	for n := range len(bounds) - 1 {
		// Copies of one part share what they read of it. The mask of the last op says which
		// part it is; ranges of the others follow from that.
		made := map[cut]int{}
		s := span{bounds[n], bounds[n+1]}
		part := x.own(x.part(cut{u, axis, s}, made), before)
		t := x.p.Ops[part].Tile
		x.p.Ops[part].Tile = masked(t, axis, s)
		x.parts = append(x.parts, part)
		joined.Args = append(joined.Args, part)
		operands = append(operands, op.Instr)
	}
	// The op keeps its number, by which roots and readers know it.
	joined.Instr.Operands = operands
	x.p.Ops[u] = joined
	var steps []symtile.Step
	for n := before; n < len(x.p.Ops); n++ {
		steps = append(steps, symtile.Step{Op: n})
	}
	x.p.Body = slices.Insert(x.p.Body, k, steps...)
	return len(steps)
}

// own is a copy of an op that stood before a division: other parts, and other readers, may have
// it too, and need other masks. What is summed in a loop cannot be copied, nor made narrow, so
// that the division is given up.
func (x *division) own(n, before int) int {
	op := x.p.Ops[n]
	if n >= before || op.Loop != nil {
		return n
	}
	op.Args = slices.Clone(op.Args)
	x.p.Ops = append(x.p.Ops, op)
	return len(x.p.Ops) - 1
}

// masked is a tile of which only some indices of a dimension are valid.
func masked(tile symtile.Tile, axis int, s span) symtile.Tile {
	t := slices.Clone(tile)
	d := &t[axis]
	stride, _ := d.Stride.Value()
	last := (s.hi - 1) * stride
	d.Lower = d.Offset.AddConst(s.lo * stride)
	d.Bound = d.Offset.AddConst(last + 1)
	return t
}

// part is a copy of an op, and of what it reads, for a part of its tile, which is narrowed
// later. A concatenate of which the part is one operand's is a copy of that.
func (x *division) part(c cut, made map[cut]int) int {
	if n, ok := made[c]; ok {
		return n
	}
	op := x.p.Ops[c.op]
	if a := x.only(op, c); a >= 0 {
		// The operand's tile has its elements at the same indices as that of the join.
		c.op = a
		return x.part(c, made)
	}
	if !x.divides(op) {
		return c.op
	}
	next := op
	next.Args = slices.Clone(op.Args)
	for k, a := range op.Args {
		// An operand without the dimension is the same for all parts.
		d := x.dimOf(op, k, c.dim)
		if d >= 0 {
			of := cut{a, d, c.span}
			next.Args[k] = x.part(of, made)
		}
	}
	x.p.Ops = append(x.p.Ops, next)
	made[c] = len(x.p.Ops) - 1
	return made[c]
}

// only is the operand of a join that has all of a part; −1 where there is none.
func (x *division) only(op symtile.Op, c cut) int {
	if op.Code == hlo.OpSelect {
		return x.selected(op, c)
	}
	if op.Code != hlo.OpConcatenate ||
		op.Instr.Attrs.Dimensions[0] != int64(c.dim) {
		return -1
	}
	for _, a := range op.Args {
		t := x.p.Ops[a].Tile
		s, ok := valid(t[c.dim])
		if ok && s.lo <= c.lo && c.hi <= s.hi {
			return a
		}
	}
	return -1
}

// selected is the operand that a select has throughout a part; −1 where there is none.
func (x *division) selected(op symtile.Op, c cut) int {
	m := maskOf(x.p, op)
	if m == nil || m.axis != c.dim {
		return -1
	}
	// The operands after the condition are where it is true, and where it is false.
	for k, chosen := range []bool{true, false} {
		a := op.Args[k+1]
		rank := len(x.p.Ops[a].Tile)
		if rank == len(op.Tile) && m.all(c.span, chosen) {
			return a
		}
	}
	return -1
}

// divides reports whether an op has copies for parts of its tile.
func (x *division) divides(op symtile.Op) bool {
	if op.Tile.HasDigits() {
		return false
	}
	switch op.Code {
	case hlo.OpParameter, hlo.OpConstant, hlo.OpIota,
		hlo.OpCopy, hlo.OpSlice, hlo.OpReshape,
		hlo.OpBroadcast, hlo.OpTranspose, hlo.OpConcatenate:
		return true
	}
	return isElementwise(op)
}

// dimOf is the dimension of operand k that a dimension of an op is; −1 where that is none.
func (x *division) dimOf(op symtile.Op, k, dim int) int {
	from := x.p.Ops[op.Args[k]].Tile
	switch op.Code {
	case hlo.OpBroadcast:
		return slices.Index(op.Instr.Attrs.Dimensions, int64(dim))
	case hlo.OpTranspose:
		return op.Perm[dim]
	case hlo.OpReshape:
		// The same number of elements comes before a dimension that is kept, and behind it.
		to := op.Tile.Sizes()
		sizes := from.Sizes()
		after := hlo.Elements(to[dim+1:])
		for d := range sizes {
			behind := hlo.Elements(sizes[d+1:])
			if sizes[d] == to[dim] && behind == after {
				return d
			}
		}
		return -1
	}
	if len(from) != len(op.Tile) {
		return -1
	}
	return dim
}
