package symtile

import (
	"context"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// A Relation is what a tile on one side of an instruction implies about the
// other side, as OperandTiles and ResultTiles find it.
type Relation struct {
	// Tiles are the tiles of each operand, several where it is read in several
	// ways; or those of the result.
	Tiles [][]Tile
	// Replicas is, for a collective, the members of the replica group that hold
	// the tiles: a tile of the position in the group.
	Replicas *DimTile
	// Steps are the sequential dimensions that the instruction brings.
	Steps []Dim
	// Where is the constraint on the tile sizes under which the tiles exist.
	Where index.Constraint
	// Boxes is the constraint under which no tile has digits.
	Boxes index.Constraint
	// Runtime are the variables known at run time; Op is the number of the
	// operand that holds the value.
	Runtime []Runtime
}

// OperandTiles propagates tile out of the first result of in to its operands,
// in the way Analyze does for every instruction of a fusion. It is for
// compilers that propagate tiles through a graph of their own. New sequential
// dimensions are numbered after the dimensions of out. The error is an
// *Untileable.
func OperandTiles(r *index.Ring, in *hlo.Instr, out Tile) (*Relation, error) {
	if collectives[in.Op] {
		return collectiveTiles(r, in, out)
	}
	b, params := singleInstrBuilder(r, in, len(out))
	b.prog.Fusion, _ = rewriteOps(b.prog.Fusion)
	b.groups = loopGroups(b.prog.Fusion)
	root := outputs(b.prog.Fusion)[0]
	if _, err := b.op(root, out); err != nil {
		return nil, err
	}
	rel := b.relation(len(out))
	rel.Tiles = make([][]Tile, len(params))
	number := make(map[int]int, len(b.prog.Ops))
	for n, op := range b.prog.Ops {
		if k := slices.Index(params, op.Instr); k >= 0 {
			rel.Tiles[k] = append(
				rel.Tiles[k], withoutIdleLimits(op.Tile),
			)
			number[n] = k
		}
	}
	for k, v := range rel.Runtime {
		rel.Runtime[k].Op = number[v.Op]
	}
	return rel, r.Err()
}

// ResultTiles propagates tile t of an operand of in to its result: the tile of
// the elements that are made from elements of t. The tile is larger than these
// where they are known only at run time. It is the opposite direction of
// OperandTiles. The error is an *Untileable.
func ResultTiles(
	r *index.Ring, in *hlo.Instr, operand int, t Tile,
) (*Relation, error) {
	b, _ := singleInstrBuilder(r, in, len(t))
	i := b.prog.Fusion.Root
	up, ok := resultPropagators[in.Op]
	if in.Op.Elementwise() && !ok {
		up, ok = resultSame, true
	}
	if !ok {
		return nil, refuse(
			in, "no-result-tile", "%s", refusalReason(in.Op),
		)
	}
	out, err := up(b, i, operand, slices.Clone(t))
	if err != nil {
		return nil, err
	}
	rel := b.relation(len(t))
	rel.Tiles = [][]Tile{{withoutIdleLimits(out)}}
	return rel, r.Err()
}

// withoutIdleLimits is t with lower limits of 0 where they mask nothing.
func withoutIdleLimits(t Tile) Tile {
	t = slices.Clone(t)
	for k, d := range t {
		if !d.MaskedBelow() &&
			!slices.ContainsFunc(d.Digits, DimTile.MaskedBelow) {
			t[k].Lower = d.Offset.Ring().Const(0)
		}
	}
	return t
}

// singleInstrBuilder is a builder for one instruction whose operands are
// parameters. Constants and iotas stay, since their values decide about tiles.
func singleInstrBuilder(
	r *index.Ring, in *hlo.Instr, rank int,
) (*builder, []*hlo.Instr) {
	copied := *in
	c := &hlo.Computation{Name: in.Name, Root: &copied}
	copied.Operands = nil
	for k, o := range in.Operands {
		if o.Op == hlo.OpConstant || o.Op == hlo.OpIota {
			copied.Operands = append(copied.Operands, o)
			c.Params = append(c.Params, o)
			c.Instrs = append(c.Instrs, o)
			continue
		}
		p := &hlo.Instr{
			Name:  o.Name,
			Op:    hlo.OpParameter,
			Shape: o.Shape,
			Attrs: hlo.Attrs{Param: k},
			Pos:   o.Pos,
		}
		copied.Operands = append(copied.Operands, p)
		c.Params = append(c.Params, p)
		c.Instrs = append(c.Instrs, p)
	}
	c.Instrs = append(c.Instrs, &copied)
	params := c.Params
	b := newBuilder(context.Background(), c, nil, loopGroups(c))
	b.ring = r
	b.prog.Space.Ring = r
	b.prog.Space.Dims = make([]Dim, rank) // new dimensions are numbered after the tile's
	return b, params
}

// relation is what the builder has found besides tiles.
func (b *builder) relation(rank int) *Relation {
	s := b.prog.Space
	return &Relation{
		Steps:   s.Dims[rank:],
		Where:   s.Where,
		Boxes:   s.Boxes,
		Runtime: b.prog.Runtime,
	}
}

// collectives are the operations that collectiveTiles knows.
var collectives = map[hlo.Opcode]bool{
	hlo.OpAllGather:     true,
	hlo.OpAllReduce:     true,
	hlo.OpReduceScatter: true,
}

// collectiveTiles: the result of an all-gather is the operands of the group one
// after the other. That of an all-reduce is made from all of them, and so is
// that of a reduce-scatter, of which every member holds the shard of its own
// number.
func collectiveTiles(r *index.Ring, in *hlo.Instr, out Tile) (*Relation, error) {
	b, _ := singleInstrBuilder(r, in, len(out))
	members, known := groupSize(in)
	if !known {
		return nil, refuse(in, "replica-groups", "how many replicas are in a group is not said")
	}
	replicas := whole(r, members)
	rel := &Relation{
		Replicas: &replicas,
		Tiles:    [][]Tile{{out}},
	}
	if in.Op == hlo.OpAllReduce {
		return rel, nil
	}
	t := slices.Clone(out)
	dim := in.Attrs.Dimensions[0]
	if in.Op == hlo.OpReduceScatter {
		me := r.Var(index.Variable{
			Name: "replica",
			Lo:   0,
			Hi:   members - 1,
			Role: index.RoleRuntime,
		})
		t[dim] = t[dim].shift(
			me.Scale(in.Shape.Dims[dim]),
		)
		rel.Tiles = [][]Tile{{t}}
		return rel, nil
	}
	shard := in.Operands[0].Shape.Dims[dim]
	high, low, err := b.split(
		in, []DimTile{t[dim]}, shard,
	)
	if err != nil {
		return nil, err
	}
	group := b.joinDigits(high, members)
	t[dim] = b.joinDigits(low, shard)
	rel.Replicas = &group
	rel.Tiles = [][]Tile{{t}}
	rel.Where = b.prog.Space.Where
	rel.Boxes = b.prog.Space.Boxes
	return rel, nil
}

// groupSize is the number of replicas in every group; false where it is not
// said or differs.
func groupSize(in *hlo.Instr) (int64, bool) {
	if groups := in.Attrs.ReplicaGroups; len(groups) > 0 {
		return int64(len(groups[0])), true
	}
	large := in.Shape.Elements()
	small := in.Operands[0].Shape.Elements()
	if in.Op == hlo.OpReduceScatter {
		large, small = small, large
	}
	return large / max(1, small), in.Op != hlo.OpAllReduce &&
		small > 0
}
