package symtile

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/indexing"
)

// A builder walks a fusion from its roots, deriving tiles. With sizes it
// builds a concrete program, without a symbolic one; the walk is the same.
type builder struct {
	ring      *index.Ring
	table     map[hlo.Opcode]propagator
	sizes     Tiling // nil: symbolic
	prog      *Program
	memo      map[opKey]int
	nestOf    []*loopNest // of each op
	groups    map[*hlo.Instr]*loopGroup
	dims      map[*loopGroup][]int // indices into the space's dims, once the group is met
	nests     []*loopNest
	rowParts  map[index.Expr][]index.Expr // the parts of offsets that halves divided
	vars      map[index.Expr][]index.Expr // the variables of expressions in loops
	text      []byte                      // of a key
	enclosing *loopNest                   // the innermost loop around what is being built
}

// A loopNest is a loop under construction. The outermost level is the nil nest.
type loopNest struct {
	parent *loopNest
	dims   []int
	loop   *Loop
	depth  int
}

type opKey struct {
	instr *hlo.Instr
	code  hlo.Opcode
	nest  *loopNest
	tile  string
}

func newBuilder(c *hlo.Computation, sizes Tiling, groups map[*hlo.Instr]*loopGroup) *builder {
	ring := index.NewRing()
	space := &Space{Ring: ring}
	return &builder{
		ring:     ring,
		table:    propagators,
		sizes:    sizes,
		prog:     &Program{Fusion: c, Space: space},
		memo:     map[opKey]int{},
		rowParts: map[index.Expr][]index.Expr{},
		vars:     map[index.Expr][]index.Expr{},
		groups:   groups,
		dims:     map[*loopGroup][]int{},
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

// require adds a clause to the constraints, or checks it when sizes are known.
func (b *builder) require(i *hlo.Instr, rule string, clause index.Clause) error {
	left, sure := clause.Reduce()
	if sure {
		return nil
	}
	if len(left) > 0 {
		b.prog.Space.Where = b.prog.Space.Where.With(left)
		return nil
	}
	if b.sizes != nil {
		return refuse(i, rule, "these sizes break %s", clause)
	}
	return refuse(i, rule, "no size satisfies %s", clause)
}

// sequentialTile returns the tiles of the sequential dimensions of a closer.
func (b *builder) sequentialTile(i *hlo.Instr) Tile {
	dims := b.dims[b.groups[i]]
	tile := make(Tile, len(dims))
	for k, d := range dims {
		tile[k] = b.prog.Space.Dims[d].tile()
	}
	return tile
}

// op builds i's tile out and everything it needs; it returns its index.
func (b *builder) op(i *hlo.Instr, out Tile) (int, error) {
	switch i.Op {
	case hlo.OpBitcast:
		return b.bitcast(i, out)
	case hlo.OpCopy, hlo.OpOptimizationBarrier:
		return b.plainOp(
			i, hlo.OpCopy, out, i.Operands,
			[]Tile{out}, nil,
		)
	}
	if i.Op.Elementwise() &&
		(i.Op != hlo.OpBitcastConvert ||
			i.Shape.DType.Size() == i.Operands[0].Shape.DType.Size()) {
		tiles, err := propagateElementwise(b, i, out)
		if err != nil {
			return 0, err
		}
		return b.plainOp(
			i, i.Op, out, i.Operands, tiles, nil,
		)
	}
	row, ok := b.table[i.Op]
	if !ok {
		return 0, refuse(
			i, "not-in-op-table", "%s", refusalReason(i.Op),
		)
	}
	if isAccumulator(i) {
		return b.accumulator(i, out, row)
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
	return b.plainOp(
		i, i.Op, out, i.Operands, tiles, perm,
	)
}

func ints(v []int64) []int {
	out := make([]int, len(v))
	for k, x := range v {
		out[k] = int(x)
	}
	return out
}

// plainOp builds an op whose operands are built where it is.
func (b *builder) plainOp(
	i *hlo.Instr, code hlo.Opcode, out Tile,
	operands []*hlo.Instr, tiles []Tile,
	perm []int,
) (int, error) {
	key := b.key(i, code, out)
	if n, ok := b.memo[key]; ok {
		return n, nil
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
		Instr: i,
		Code:  code,
		Tile:  out,
		Args:  args,
		Perm:  perm,
	}), nil
}

// accumulator builds a reduce or dot: what it accumulates is built inside its loop.
func (b *builder) accumulator(
	i *hlo.Instr, out Tile, row propagator,
) (int, error) {
	key := b.key(i, i.Op, out)
	if n, ok := b.memo[key]; ok {
		return n, nil
	}
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

// openGroup gives the closer's group its dimensions when it is met first.
func (b *builder) openGroup(i *hlo.Instr) {
	g := b.groups[i]
	if _, met := b.dims[g]; met {
		return
	}
	for _, extent := range g.extents {
		b.dims[g] = append(
			b.dims[g], b.addDim(extent, Sequential, i),
		)
	}
}

// loopFor finds or makes the loop of i's group at a place; nil when every one
// of its dimensions is a single step.
func (b *builder) loopFor(i *hlo.Instr, place *loopNest) *loopNest {
	var dims []int
	for _, d := range b.dims[b.groups[i]] {
		_, single := b.prog.Space.Dims[d].Tid.Value()
		if !single {
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

func (n *loopNest) level() int {
	if n == nil {
		return 0
	}
	return n.depth
}

// add appends an op at its place.
func (b *builder) add(key opKey, op Op) int {
	n := len(b.prog.Ops)
	if len(b.prog.Runtime) > 0 {
		op.RuntimeArgs = b.runtimeOps(op.Tile.vars())
	}
	b.prog.Ops = append(b.prog.Ops, op)
	b.nestOf = append(b.nestOf, key.nest)
	b.memo[key] = n
	return n
}

// key identifies an op: the same tile of the same instruction at the same
// place is computed once. The place is the innermost loop around, whose tile
// ids occur in the tile.
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

// dependsOnLoop says whether a tile id of the loop occurs in the tile.
func (b *builder) dependsOnLoop(n *loopNest, t Tile) (found bool) {
	t.fields(func(e index.Expr) {
		if found {
			return
		}
		vars, known := b.vars[e]
		if !known {
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

// bitcast is transpose to physical order, reshape, transpose to logical order.
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
	inDims := indexing.Permute(from.Dims, inOrder)
	outDims := indexing.Permute(to.Dims, outOrder)
	physicalOut := indexing.Permute(out, outOrder)
	physicalIn, err := b.reshape(
		i, inDims, outDims, slices.Clone(physicalOut),
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
	if !slices.IsSorted(inOrder) {
		n = b.bitcastStep(i, hlo.OpTranspose, physicalIn, n, inOrder)
	}
	n = b.bitcastStep(i, hlo.OpReshape, physicalOut, n, nil)
	if !slices.IsSorted(outOrder) {
		n = b.bitcastStep(
			i, hlo.OpTranspose, out, n, inverse(outOrder),
		)
	}
	return n, nil
}

// bitcastStep adds one op of a bitcast. Its code is made unique, since one bitcast
// may transpose twice.
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

func inverse(order []int) []int {
	out := make([]int, len(order))
	for k, d := range order {
		out[d] = k
	}
	return out
}
