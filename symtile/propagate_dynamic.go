package symtile

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/scattering"
)

// start is the run-time variable of a start index, clamped to [0, maxStart], or
// the constant that it is known to be. The op that computes the start is
// outside of all loops. Starts that are equal share a variable.
func (b *builder) start(i *hlo.Instr, maxStart int64) (index.Expr, error) {
	if maxStart <= 0 {
		return b.ring.Const(0), nil
	}
	if start, ok := constantStart(i, maxStart); ok {
		return b.ring.Const(start), nil
	}
	enclosing := b.enclosing
	b.enclosing = nil
	op, err := b.op(i, Tile{})
	b.enclosing = enclosing
	if err != nil {
		return index.Expr{}, err
	}
	for _, r := range b.prog.Runtime {
		if r.Op == op && r.Var.Range().Hi == maxStart {
			return r.Var, nil
		}
	}
	v := b.ring.Var(index.Variable{
		Name: fmt.Sprintf("r%d", len(b.prog.Runtime)),
		Lo:   0,
		Hi:   maxStart,
		Role: index.RoleRuntime,
	})
	b.prog.Runtime = append(
		b.prog.Runtime, Runtime{v, op},
	)
	return v, nil
}

// runtimeOps lists the ops whose values the variables in used hold.
func (b *builder) runtimeOps(used map[index.Expr]bool) []int {
	var ops []int
	for _, r := range b.prog.Runtime {
		if used[r.Var] {
			ops = append(ops, r.Op)
		}
	}
	return ops
}

// propagateDynamicSlice shifts the tile by the starts. The starts themselves
// are scalars and have no tile.
func propagateDynamicSlice(b *builder, i *hlo.Instr, out Tile) ([]Tile, error) {
	in := make(Tile, len(out))
	for k, d := range out {
		at, err := b.start(
			i.Operands[1+k],
			i.Operands[0].Shape.Dims[k]-i.Shape.Dims[k],
		)
		if err != nil {
			return nil, err
		}
		in[k] = d.shift(at)
	}
	return append(
		[]Tile{in},
		make([]Tile, len(out))...,
	), nil
}

// propagateDynamicUpdateSlice gives the operand the result's tile, and the
// update that tile shifted by the starts and masked to it.
func propagateDynamicUpdateSlice(b *builder, i *hlo.Instr, out Tile) ([]Tile, error) {
	update := make(Tile, len(out))
	for k, d := range out {
		extent := i.Operands[1].Shape.Dims[k]
		at, err := b.start(
			i.Operands[2+k],
			i.Shape.Dims[k]-extent,
		)
		if err != nil {
			return nil, err
		}
		update[k] = d.shift(at.Neg()).masked(
			b.ring.Const(0), b.ring.Const(extent),
		)
	}
	return append(
		[]Tile{out, update},
		make([]Tile, len(out))...,
	), nil
}

// propagateGather gives the operand its slice's tile along dimensions that have
// no start index, and all of the others: where those slices start is known only
// at run time, for each element of a batch on its own. Index vectors are whole.
func propagateGather(b *builder, i *hlo.Instr, out Tile) ([]Tile, error) {
	g := i.Attrs.Gather
	from := i.Operands[0].Shape
	indices := i.Operands[1].Shape
	var batch, offsets []DimTile
	for d, t := range out {
		if slices.Contains(g.OffsetDims, int64(d)) {
			offsets = append(offsets, t)
		} else {
			batch = append(batch, t)
		}
	}
	at := make(Tile, 0, indices.Rank())
	for d, n := range indices.Dims {
		if int64(d) == g.IndexVectorDim {
			at = append(at, whole(b.ring, n))
			continue
		}
		at = append(at, batch[0])
		batch = batch[1:]
	}
	in := make(Tile, from.Rank())
	for d, n := range from.Dims {
		if k := slices.Index(g.OperandBatching, int64(d)); k >= 0 {
			in[d] = at[g.IndicesBatching[k]]
			continue
		}
		in[d] = whole(b.ring, n)
		if slices.Contains(g.CollapsedSliceDims, int64(d)) {
			continue
		}
		if !slices.Contains(g.StartIndexMap, int64(d)) {
			in[d] = offsets[0]
		}
		offsets = offsets[1:]
	}
	return []Tile{in, at}, nil
}

// propagateScatter gives the operand the result's tile, and updates and indices the
// sequential tiles of the space along one dimension of index vectors.
func propagateScatter(b *builder, i *hlo.Instr, out Tile) ([]Tile, error) {
	if reason := scattering.Untiled(i); reason != "" {
		return nil, refuse(i, "scatter", "%s", reason)
	}
	s := i.Attrs.Scatter
	for _, d := range slices.Concat(s.ToOperand, s.InsertedWindow) {
		if err := b.requireDense(i, out[d]); err != nil {
			return nil, err
		}
	}
	indices, window := i.Operands[1].Shape, scattering.Window(i)
	at := b.wholeTile(indices.Dims)
	updates := b.wholeTile(i.Operands[2].Shape.Dims)
	batch := scattering.BatchDims(i)
	for u, d := range scattering.WindowDims(i) {
		switch {
		case d >= 0 && slices.Contains(s.ToOperand, int64(d)):
		case d >= 0 && window[d] < i.Shape.Dims[d]:
			run, err := b.requireRun(i, out[d])
			if err != nil {
				return nil, err
			}
			updates[u] = b.clip(run, window[d])
		case d >= 0:
			updates[u] = out[d]
		case u == scattering.Along(i):
			updates[u] = b.sequentialTile(i)[0]
			at[batch[u]] = updates[u]
		default:
			if k := slices.Index(s.IndicesBatching, int64(batch[u])); k >= 0 {
				updates[u] = out[s.InputBatching[k]]
				at[batch[u]] = updates[u]
			}
		}
	}
	return []Tile{out, at, updates}, nil
}

// requireDense requires that a dimension of a tile is a run of neighbours.
func (b *builder) requireDense(i *hlo.Instr, d DimTile) error {
	run, err := b.requireRun(i, d)
	if err != nil {
		return err
	}
	clause := index.Clause{
		{Expr: run.Stride, In: index.Interval{Lo: 1, Hi: 1}},
		{Expr: run.Size, In: index.Interval{Lo: 1, Hi: 1}},
	}
	return b.require(i, "scatter-stride", clause)
}
