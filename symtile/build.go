package symtile

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// A builder walks a fusion from its roots, deriving tiles. With sizes it
// builds a concrete program, without a symbolic one; the walk is the same.
type builder struct {
	ring   *Ring
	table  map[hlo.Opcode]propagator
	sizes  Tiling // nil: symbolic
	prog   *Program
	memo   map[opKey]int
	place  []*nest // of each op
	groups map[*hlo.Instr]*group
	dims   map[*group][]int // indices into the space's dims, once the group is met
	nests  []*nest
	rows   map[Expr][]Expr // the parts of offsets that halves divided
	vars   map[Expr][]Expr // the variables of expressions in loops
	text   []byte          // of a key
	at     *nest           // the innermost loop around what is being built
}

// A nest is a loop under construction. The outermost level is the nil nest.
type nest struct {
	parent *nest
	dims   []int
	loop   *Loop
	depth  int
}

type opKey struct {
	instr *hlo.Instr
	code  hlo.Opcode
	place *nest
	tile  string
}

func newBuilder(c *hlo.Computation, sizes Tiling, groups map[*hlo.Instr]*group) *builder {
	ring := NewRing()
	space := &Space{Ring: ring}
	return &builder{ring: ring, table: propagators, sizes: sizes, prog: &Program{Fusion: c, Space: space}, memo: map[opKey]int{}, rows: map[Expr][]Expr{}, vars: map[Expr][]Expr{}, groups: groups, dims: map[*group][]int{}}
}

// dim adds a dimension to the space and returns its index.
func (b *builder) dim(extent int64, kind Kind, from *hlo.Instr) int {
	n := len(b.prog.Space.Dims)
	size := int64(0)
	if b.sizes != nil {
		size = b.sizes[n]
	}
	b.prog.Space.Dims = append(b.prog.Space.Dims, newDim(b.ring, n, extent, size, kind, from))
	return n
}

// require adds a clause to the constraints, or checks it when sizes are known.
func (b *builder) require(i *hlo.Instr, rule string, clause Clause) error {
	left, sure := clause.reduced()
	if sure {
		return nil
	}
	if len(left) > 0 {
		b.prog.Space.Where = b.prog.Space.Where.and(left)
		return nil
	}
	if b.sizes != nil {
		return b.refuse(i, rule, "these sizes break %s", clause)
	}
	return b.refuse(i, rule, "no size satisfies %s", clause)
}

// steps returns the tiles of the sequential dimensions of a closer.
func (b *builder) steps(i *hlo.Instr) Tile {
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
		return b.simple(i, hlo.OpCopy, out, i.Operands, []Tile{out}, nil)
	}
	if i.Op.Elementwise() && (i.Op != hlo.OpBitcastConvert || i.Shape.DType.Size() == i.Operands[0].Shape.DType.Size()) {
		tiles, err := propagateElementwise(b, i, out)
		if err != nil {
			return 0, err
		}
		return b.simple(i, i.Op, out, i.Operands, tiles, nil)
	}
	row, ok := b.table[i.Op]
	if !ok {
		return 0, b.refuse(i, "not-in-op-table", "%s", reasonFor(i.Op))
	}
	if isCloser(i) {
		return b.closer(i, out, row)
	}
	tiles, err := row.to(b, i, slices.Clone(out))
	if err != nil {
		return 0, err
	}
	var perm []int
	if i.Op == hlo.OpTranspose {
		perm = ints(i.Attrs.Dimensions)
	}
	return b.simple(i, i.Op, out, i.Operands, tiles, perm)
}

func ints(v []int64) []int {
	out := make([]int, len(v))
	for k, x := range v {
		out[k] = int(x)
	}
	return out
}

// simple builds an op whose operands are built where it is.
func (b *builder) simple(i *hlo.Instr, code hlo.Opcode, out Tile, operands []*hlo.Instr, tiles []Tile, perm []int) (int, error) {
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
	return b.add(key, Op{Instr: i, Code: code, Tile: out, Args: args, Perm: perm}), nil
}

// closer builds a reduce or dot: what it accumulates is built inside its loop.
func (b *builder) closer(i *hlo.Instr, out Tile, row propagator) (int, error) {
	key := b.key(i, i.Op, out)
	if n, ok := b.memo[key]; ok {
		return n, nil
	}
	b.open(i)
	tiles, err := row.to(b, i, out)
	if err != nil {
		return 0, err
	}
	outside := b.at
	loop := b.loopFor(i, key.place)
	args := make([]int, len(i.Operands))
	for k, o := range i.Operands {
		if b.at = outside; tiles[k] != nil && loop != nil {
			b.at = loop
		}
		n, err := b.op(o, tiles[k])
		if err != nil {
			return 0, err
		}
		args[k] = n
	}
	b.at = outside
	op := Op{Instr: i, Code: i.Op, Tile: out, Args: args}
	if loop != nil {
		op.Loop = loop.loop
	}
	n := b.add(key, op)
	if loop != nil {
		loop.loop.Closers = append(loop.loop.Closers, n)
	}
	return n, nil
}

// open gives the closer's group its dimensions when it is met first.
func (b *builder) open(i *hlo.Instr) {
	g := b.groups[i]
	if _, met := b.dims[g]; met {
		return
	}
	for _, extent := range g.extents {
		b.dims[g] = append(b.dims[g], b.dim(extent, Sequential, i))
	}
}

// loopFor finds or makes the loop of i's group at a place; nil when every one
// of its dimensions is a single step.
func (b *builder) loopFor(i *hlo.Instr, place *nest) *nest {
	var dims []int
	for _, d := range b.dims[b.groups[i]] {
		if _, single := b.prog.Space.Dims[d].Tid.Value(); !single {
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
	n := &nest{parent: place, dims: dims, loop: &Loop{Dims: dims}, depth: place.level() + 1}
	b.nests = append(b.nests, n)
	return n
}

func (n *nest) level() int {
	if n == nil {
		return 0
	}
	return n.depth
}

// add appends an op at its place.
func (b *builder) add(key opKey, op Op) int {
	n := len(b.prog.Ops)
	if len(b.prog.Runtime) > 0 {
		op.Needs = b.runtimeOps(op.Tile.vars())
	}
	b.prog.Ops = append(b.prog.Ops, op)
	b.place = append(b.place, key.place)
	b.memo[key] = n
	return n
}

// key identifies an op: the same tile of the same instruction at the same
// place is computed once. The place is the innermost loop around, whose tile
// ids occur in the tile.
func (b *builder) key(i *hlo.Instr, code hlo.Opcode, t Tile) opKey {
	text := b.text[:0]
	t.fields(func(e Expr) { text = binary.LittleEndian.AppendUint32(text, uint32(e.ID())) })
	b.text = text
	place := b.at
	for place != nil && !b.walks(place, t) {
		place = place.parent
	}
	return opKey{i, code, place, string(text)}
}

// walks says whether a tile id of the loop occurs in the tile.
func (b *builder) walks(n *nest, t Tile) (found bool) {
	t.fields(func(e Expr) {
		if found {
			return
		}
		vars, known := b.vars[e]
		if !known {
			vars = e.Vars()
			b.vars[e] = vars
		}
		found = slices.ContainsFunc(n.dims, func(d int) bool { return slices.Contains(vars, b.prog.Space.Dims[d].Tid) })
	})
	return found
}

// bitcast is transpose to physical order, reshape, transpose to logical order.
func (b *builder) bitcast(i *hlo.Instr, out Tile) (int, error) {
	from, to := i.Operands[0].Shape, i.Shape
	if len(from.Layout.Tiles)+len(to.Layout.Tiles) > 0 || from.DType != to.DType {
		return 0, b.refuse(i, "bitcast", "%s", reasonFor(hlo.OpBitcast))
	}
	inOrder, outOrder := from.MajorToMinor(), to.MajorToMinor()
	inDims, outDims := Permute(from.Dims, inOrder), Permute(to.Dims, outOrder)
	physicalOut := Permute(out, outOrder)
	physicalIn, err := b.reshape(i, inDims, outDims, slices.Clone(physicalOut))
	if err != nil {
		return 0, err
	}
	n, err := b.op(i.Operands[0], unpermute(physicalIn, inOrder))
	if err != nil {
		return 0, err
	}
	if !ascendingOrder(inOrder) {
		n = b.step(i, hlo.OpTranspose, physicalIn, n, inOrder)
	}
	n = b.step(i, hlo.OpReshape, physicalOut, n, nil)
	if !ascendingOrder(outOrder) {
		n = b.step(i, hlo.OpTranspose, out, n, inverse(outOrder))
	}
	return n, nil
}

// step adds one op of a bitcast. Its code is made unique, since one bitcast
// may transpose twice.
func (b *builder) step(i *hlo.Instr, code hlo.Opcode, t Tile, arg int, perm []int) int {
	key := b.key(i, code+hlo.Opcode(fmt.Sprint(perm)), t)
	if n, ok := b.memo[key]; ok {
		return n
	}
	return b.add(key, Op{Instr: i, Code: code, Tile: t, Args: []int{arg}, Perm: perm})
}

func inverse(order []int) []int {
	out := make([]int, len(order))
	for k, d := range order {
		out[d] = k
	}
	return out
}

func ascendingOrder(order []int) bool { return slices.IsSorted(order) }
