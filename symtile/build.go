package symtile

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/indexing"
)

// A builder walks a fusion from its roots to its parameters and derives the
// tile of every operand from the tile of its user.
//
// The walk is the same with and without sizes: with sizes, expressions are
// constants and constraints are checked on the spot; without, they are symbolic
// and constraints are collected in the Space.
//
// Invariants: an op is appended after the ops of its arguments; ops with the
// same instruction, code, tile and enclosing loop are one op (memo); nestOf[n]
// is the innermost loop whose tile ids the tile of op n depends on.
type builder struct {
	// ctx ends the walk before its end.
	ctx  context.Context
	ring *index.Ring
	// table is propagators. It is a field because the initialization of that
	// variable would refer to itself otherwise.
	table map[hlo.Opcode]propagator
	// sizes are the tile sizes of a concrete program; nil builds a symbolic
	// one.
	sizes Tiling
	prog  *Program
	// memo finds the op that has been built for a key.
	memo map[opKey]int
	// nestOf is, for each op, the loop that it is in; nil is outside of all
	// loops.
	nestOf []*loopNest
	// groups is the loop group of each accumulator.
	groups map[*hlo.Instr]*loopGroup
	// dims are the dimensions of the space that a group has been given, once
	// the first of its accumulators is met.
	dims map[*loopGroup][]int
	// nests are the loops made so far, in the order in which they were met.
	nests []*loopNest
	// rowParts holds, for offsets that splitRows has divided, the summands of
	// the quotient, which its normal form no longer shows.
	rowParts map[index.Expr][]index.Expr
	// vars caches the variables of expressions for dependsOnLoop.
	vars map[index.Expr][]index.Expr
	// opsOf lists the ops of each instruction.
	opsOf map[*hlo.Instr][]int
	// parallel is the number of parallel dimensions of the space.
	parallel int
	// covered is the cover of each instruction that has one outside of loops, as
	// far as it has been found.
	covered map[*hlo.Instr]cover
	// maxOps bounds the operations: each level of a scan may double them.
	maxOps int
	// text is the buffer in which key writes.
	text []byte
	// enclosing is the innermost loop around what is being built.
	enclosing *loopNest
}

// A loopNest is a loop under construction, within its parent. The outermost
// level is the nil loopNest.
type loopNest struct {
	parent *loopNest
	// dims are indices into Space.Dims, those with more than one tile.
	dims []int
	loop *Loop
	// depth is 1 for a loop in no other.
	depth int
}

// An opKey identifies an op: tile is the byte text of the ids of the tile's
// expressions, which are equal exactly when the expressions are.
type opKey struct {
	instr *hlo.Instr
	code  hlo.Opcode
	nest  *loopNest
	tile  string
}

// newBuilder is a builder for c with an empty space in a ring of its own.
func newBuilder(
	ctx context.Context, c *hlo.Computation, sizes Tiling, groups map[*hlo.Instr]*loopGroup,
) *builder {
	ring := index.NewRing()
	space := &Space{Ring: ring}
	maxOps := maxPricedOps
	for _, i := range c.Instrs {
		maxOps += 1 + len(i.Operands)
	}
	return &builder{
		ctx:      ctx,
		ring:     ring,
		table:    propagators,
		sizes:    sizes,
		prog:     &Program{Fusion: c, Space: space},
		maxOps:   maxOps,
		memo:     map[opKey]int{},
		rowParts: map[index.Expr][]index.Expr{},
		vars:     map[index.Expr][]index.Expr{},
		groups:   groups,
		dims:     map[*loopGroup][]int{},
		opsOf:    map[*hlo.Instr][]int{},
		covered:  map[*hlo.Instr]cover{},
	}
}

// addDim adds a dimension to the space and returns its index.
func (b *builder) addDim(extent int64, kind Kind, from *hlo.Instr) int {
	n := len(b.prog.Space.Dims)
	size := int64(0)
	if b.sizes != nil {
		size = b.sizes[n]
	}
	b.prog.Space.Dims = append(
		b.prog.Space.Dims,
		newDim(b.ring, n, extent, size, kind, from),
	)
	return n
}

// require adds a clause to the constraints of the space. Where the sizes are
// known it is evaluated instead, and a violated one is the error; so is a
// clause that no sizes satisfy.
func (b *builder) require(i *hlo.Instr, rule string, clause index.Clause) error {
	reduced, isTrue := clause.Reduce()
	if isTrue {
		return nil
	}
	if len(reduced) > 0 {
		b.prog.Space.Where = b.prog.Space.Where.With(reduced)
		return nil
	}
	if b.sizes != nil {
		return refuse(i, rule, "these sizes break %s", clause)
	}
	known := func(b index.Bound) bool { _, ok := b.Expr.Value(); return ok }
	if slices.ContainsFunc(clause, known) {
		return refuse(i, rule, "%s, whatever the sizes of tiles", broken[rule])
	}
	return refuse(i, rule, "%s, whatever the sizes of tiles: none satisfies %s", broken[rule], clause)
}

// broken says of a rule what is wrong where no sizes satisfy its clause.
var broken = map[string]string{
	"scatter-stride": "its tile skips elements along a dimension that index vectors address",
	"digits":         "its tile takes elements at several distances, and has to be one run here",
	"reshape-expand": "its tile crosses rows of the operand without being whole rows",
	"reshape-stride": "its tile takes elements at a distance that does not divide the rows of the operand",
	"reshape-unit":   "a tile of several elements would have to be a scalar",
}

// sequentialTile is the tiles of the dimensions that an accumulator reduces, in
// the order of sequentialExtents.
func (b *builder) sequentialTile(i *hlo.Instr) Tile {
	dims := b.dims[b.groups[i]]
	tile := make(Tile, len(dims))
	for k, d := range dims {
		tile[k] = b.prog.Space.Dims[d].tile()
	}
	return tile
}

// op builds the op that computes tile out of instruction i, after everything it
// needs, and returns its index.
func (b *builder) op(i *hlo.Instr, out Tile) (int, error) {
	code := i.Op
	if code == hlo.OpOptimizationBarrier {
		code = hlo.OpCopy
	}
	key := b.key(i, code, out)
	if n, ok := b.memo[key]; ok {
		return n, nil
	}
	if b.ctx.Err() != nil {
		return 0, context.Cause(b.ctx)
	}
	switch code {
	case hlo.OpBitcast:
		return b.bitcast(i, out)
	case hlo.OpCopy:
		return b.plainOp(key, out, []Tile{out}, nil)
	}
	if i.Op.Elementwise() && i.Op != hlo.OpStochasticConvert &&
		(i.Op != hlo.OpBitcastConvert ||
			i.Shape.DType.Bits() == i.Operands[0].Shape.DType.Bits()) {
		tiles, err := propagateElementwise(b, i, out)
		if err != nil {
			return 0, err
		}
		return b.plainOp(key, out, tiles, nil)
	}
	row, ok := b.table[i.Op]
	if !ok {
		return 0, refuse(
			i, "not-in-op-table", "%s", cmp.Or(i.Unknown(), refusalReason(i.Op)),
		)
	}
	if isAccumulator(i) {
		return b.accumulator(key, out, row)
	}
	tiles, err := row.propagate(
		b, i, slices.Clone(out),
	)
	if err != nil {
		return 0, err
	}
	var perm []int
	if i.Op == hlo.OpTranspose {
		perm = ints(i.Attrs.Dimensions)
	}
	return b.plainOp(key, out, tiles, perm)
}

// ints converts dimension numbers of HLO attributes.
func ints(v []int64) []int {
	out := make([]int, len(v))
	for k, x := range v {
		out[k] = int(x)
	}
	return out
}

// plainOp builds an op that accumulates nothing: its operands, of the tiles
// given, are built in the loop in which it is built itself.
func (b *builder) plainOp(
	key opKey, out Tile, tiles []Tile, perm []int,
) (int, error) {
	operands := key.instr.Operands
	if len(b.prog.Ops) > b.maxOps {
		return 0, refuse(
			key.instr, "too-large",
			"instructions are read at so many tiles that the tile program has more than %d operations of %d instructions",
			b.maxOps, len(b.prog.Fusion.Instrs),
		)
	}
	args := make([]int, len(operands))
	for k, o := range operands {
		n, err := b.op(o, tiles[k])
		if err != nil {
			return 0, err
		}
		args[k] = n
	}
	return b.add(key, Op{
		Instr: key.instr,
		Code:  key.code,
		Tile:  out,
		Args:  args,
		Perm:  perm,
	}), nil
}

// accumulator builds a reduce or dot. What it accumulates is built inside its
// loop; initial values, which have no tile, are built outside. Without a loop,
// because every reduced dimension is a single tile, it is an ordinary op.
func (b *builder) accumulator(
	key opKey, out Tile, row propagator,
) (int, error) {
	i := key.instr
	b.openGroup(i)
	tiles, err := row.propagate(b, i, out)
	if err != nil {
		return 0, err
	}
	outside := b.enclosing
	loop := b.loopFor(i, key.nest)
	args := make([]int, len(i.Operands))
	for k, o := range i.Operands {
		b.enclosing = outside
		if tiles[k] != nil && loop != nil {
			b.enclosing = loop
		}
		n, err := b.op(o, tiles[k])
		if err != nil {
			return 0, err
		}
		args[k] = n
	}
	b.enclosing = outside
	op := Op{
		Instr: i,
		Code:  i.Op,
		Tile:  out,
		Args:  args,
	}
	if loop != nil {
		op.Loop = loop.loop
	}
	n := b.add(key, op)
	if loop != nil {
		loop.loop.Accumulators = append(loop.loop.Accumulators, n)
	}
	return n, nil
}

// openGroup adds the sequential dimensions of an accumulator's group to the
// space when the first of its members is met.
func (b *builder) openGroup(i *hlo.Instr) {
	g := b.groups[i]
	if _, opened := b.dims[g]; opened {
		return
	}
	for _, extent := range g.extents {
		b.dims[g] = append(
			b.dims[g], b.addDim(extent, Sequential, i),
		)
	}
}

// loopFor finds or makes the loop of i's group within a loop; nil when every
// one of its dimensions is a single tile, so that nothing has to be iterated.
func (b *builder) loopFor(i *hlo.Instr, place *loopNest) *loopNest {
	var dims []int
	for _, d := range b.dims[b.groups[i]] {
		_, isSingle := b.prog.Space.Dims[d].Tid.Value()
		if !isSingle {
			dims = append(dims, d)
		}
	}
	if dims == nil {
		return nil
	}
	for _, n := range b.nests {
		if n.parent == place && n.dims[0] == dims[0] {
			return n
		}
	}
	n := &loopNest{
		parent: place,
		dims:   dims,
		loop:   &Loop{Dims: dims},
		depth:  place.level() + 1,
	}
	b.nests = append(b.nests, n)
	return n
}

// level is the number of loops around what is in n.
func (n *loopNest) level() int {
	if n == nil {
		return 0
	}
	return n.depth
}

// add appends an op to the program, in the loop of its key.
func (b *builder) add(key opKey, op Op) int {
	n := len(b.prog.Ops)
	if len(b.prog.Runtime) > 0 {
		op.RuntimeArgs = b.runtimeOps(op.Tile.vars())
	}
	b.prog.Ops = append(b.prog.Ops, op)
	b.nestOf = append(b.nestOf, key.nest)
	b.memo[key] = n
	b.opsOf[op.Instr] = append(b.opsOf[op.Instr], n)
	return n
}

// key identifies an op. Its loop is the innermost one around whose tile ids
// occur in the tile: an op that does not depend on a loop is hoisted out of it,
// and computed once.
func (b *builder) key(i *hlo.Instr, code hlo.Opcode, t Tile) opKey {
	text := b.text[:0]
	t.fields(func(e index.Expr) {
		text = binary.LittleEndian.AppendUint32(
			text, uint32(e.ID()),
		)
	})
	b.text = text
	place := b.enclosing
	for place != nil && !b.dependsOnLoop(place, t) {
		place = place.parent
	}
	return opKey{i, code, place, string(text)}
}

// dependsOnLoop reports whether a tile id of the loop occurs in the tile.
func (b *builder) dependsOnLoop(n *loopNest, t Tile) (found bool) {
	t.fields(func(e index.Expr) {
		if found {
			return
		}
		vars, cached := b.vars[e]
		if !cached {
			vars = e.Vars()
			b.vars[e] = vars
		}
		found = slices.ContainsFunc(n.dims, func(d int) bool {
			return slices.Contains(
				vars, b.prog.Space.Dims[d].Tid,
			)
		})
	})
	return found
}

// bitcast builds a bitcast as three ops: a transpose to the physical order of
// the operand, a reshape, and a transpose from the physical order of the
// result. Those that keep the order are left out.
func (b *builder) bitcast(i *hlo.Instr, out Tile) (int, error) {
	from := i.Operands[0].Shape
	to := i.Shape
	if len(from.Layout.Tiles)+len(to.Layout.Tiles) > 0 ||
		from.DType != to.DType {
		return 0, refuse(
			i, "bitcast", "%s", refusalReason(hlo.OpBitcast),
		)
	}
	inOrder := from.MajorToMinor()
	outOrder := to.MajorToMinor()
	physicalIn, err := b.reshape(
		i, indexing.Permute(from.Dims, inOrder),
		indexing.Permute(to.Dims, outOrder),
		indexing.Permute(out, outOrder),
	)
	if err != nil {
		return 0, err
	}
	n, err := b.op(
		i.Operands[0], unpermute(physicalIn, inOrder),
	)
	if err != nil {
		return 0, err
	}
	return b.bitcastSteps(i, n, out), nil
}

// bitcastSteps adds the ops of bitcast i that make tile out of op n. The last
// one is that of the key of i.
func (b *builder) bitcastSteps(i *hlo.Instr, n int, out Tile) int {
	key := b.key(i, i.Op, out)
	inOrder := i.Operands[0].Shape.MajorToMinor()
	outOrder := i.Shape.MajorToMinor()
	if !slices.IsSorted(inOrder) {
		n = b.bitcastStep(
			i, hlo.OpTranspose,
			indexing.Permute(b.prog.Ops[n].Tile, inOrder),
			n, inOrder,
		)
	}
	n = b.bitcastStep(
		i, hlo.OpReshape, indexing.Permute(out, outOrder), n, nil,
	)
	if !slices.IsSorted(outOrder) {
		n = b.bitcastStep(
			i, hlo.OpTranspose, out, n, inverse(outOrder),
		)
	}
	b.memo[key] = n
	return n
}

// bitcastStep adds one op of a bitcast. Its key holds the permutation, since
// one bitcast may transpose twice.
func (b *builder) bitcastStep(
	i *hlo.Instr, code hlo.Opcode,
	t Tile, arg int, perm []int,
) int {
	key := b.key(
		i, code+hlo.Opcode(fmt.Sprint(perm)), t,
	)
	if n, ok := b.memo[key]; ok {
		return n
	}
	return b.add(key, Op{
		Instr: i,
		Code:  code,
		Tile:  t,
		Args:  []int{arg},
		Perm:  perm,
	})
}

// inverse is the inverse of a permutation.
func inverse(order []int) []int {
	out := make([]int, len(order))
	for k, d := range order {
		out[d] = k
	}
	return out
}
