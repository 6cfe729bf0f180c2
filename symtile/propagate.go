package symtile

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// A propagator derives the tiles an instruction reads from the tile it makes.
// It may add constraints through b.require, and say no with b.refuse.
type propagator struct {
	doc       string // for the op table
	propagate func(b *builder, i *hlo.Instr, out Tile) ([]Tile, error)
}

// propagators is the op table: what can be tiled and how. Elementwise
// operations are all one row. See doc.go, which is made from it.
//
// Tiles hold more than is read in some cases, none of which reads outside a
// tensor or changes a result: a broadcast drops a dimension that is masked; a
// reshape cuts a run over several rows whose lower limit or bound lies inside
// one; windows are further apart than they are long; a gather's operand is whole
// where it is not known before run time what is looked up.
var propagators = map[hlo.Opcode]propagator{
	hlo.OpParameter:          {"loads its tile", noOperands},
	hlo.OpConstant:           {"is there", noOperands},
	hlo.OpIota:               {"counts from its offset", noOperands},
	hlo.OpBroadcast:          {"operand dimensions pick the result's", propagateBroadcast},
	hlo.OpTranspose:          {"permutes", propagateTranspose},
	hlo.OpReshape:            {"result dims → digits of the linear index → operand dims; a digit that crosses rows is whole rows or inside one", propagateReshape},
	hlo.OpSlice:              {"offset·stride + start", propagateSlice},
	hlo.OpReverse:            {"mirrors; the op flips", propagateReverse},
	hlo.OpConcatenate:        {"offset − prefix, masked to the operand", propagateConcatenate},
	hlo.OpPad:                {"offset − low, masked to the operand; interior padding thins it by interior + 1", propagatePad},
	hlo.OpReduce:             {"reduced dims are sequential dims of the space", propagateReduce},
	hlo.OpDot:                {"contracting dims are sequential dims of the space", propagateDot},
	hlo.OpGetTupleElement:    {"the tile of the variadic reduce", propagateSame},
	OpUnfold:                 {"positions and places of windows → the indices between the first and the last, halo included", propagateUnfold},
	hlo.OpDynamicSlice:       {"offset + run-time start, clamped", propagateDynamicSlice},
	hlo.OpDynamicUpdateSlice: {"the same tile of the operand; offset − run-time start of the update, masked to it", propagateDynamicUpdateSlice},
	hlo.OpGather:             {"slices by their offset dims, whole where starts are known at run time; index vectors whole", propagateGather},
}

func noOperands(*builder, *hlo.Instr, Tile) ([]Tile, error) {
	return nil, nil
}

func propagateSame(_ *builder, i *hlo.Instr, out Tile) ([]Tile, error) {
	return []Tile{out}, nil
}

// propagateElementwise gives every operand the result's tile, scalars none.
func propagateElementwise(_ *builder, i *hlo.Instr, out Tile) ([]Tile, error) {
	tiles := make([]Tile, len(i.Operands))
	for k, o := range i.Operands {
		if o.Shape.Rank() == len(out) {
			tiles[k] = out
		}
	}
	return tiles, nil
}

func propagateBroadcast(_ *builder, i *hlo.Instr, out Tile) ([]Tile, error) {
	in := make(Tile, len(i.Attrs.Dimensions))
	for k, d := range i.Attrs.Dimensions {
		in[k] = out[d]
	}
	return []Tile{in}, nil
}

func propagateTranspose(_ *builder, i *hlo.Instr, out Tile) ([]Tile, error) {
	return []Tile{unpermute(out, i.Attrs.Dimensions)}, nil
}

// unpermute returns in with in[perm[k]] = out[k].
func unpermute[P int | int64](out Tile, perm []P) Tile {
	in := make(Tile, len(out))
	for k, p := range perm {
		in[p] = out[k]
	}
	return in
}

func propagateSlice(b *builder, i *hlo.Instr, out Tile) ([]Tile, error) {
	in := make(Tile, len(out))
	for k, r := range i.Attrs.Slice {
		in[k] = out[k].scale(r.Stride).shift(
			b.ring.Const(r.Start),
		)
	}
	return []Tile{in}, nil
}

// Index x of the result is n−1−x of the operand; the last becomes the first.
func propagateReverse(b *builder, i *hlo.Instr, out Tile) ([]Tile, error) {
	in := slices.Clone(out)
	for _, k := range i.Attrs.Dimensions {
		in[k] = out[k].negate().shift(
			b.ring.Const(i.Shape.Dims[k] - 1),
		)
	}
	return []Tile{in}, nil
}

func propagateConcatenate(b *builder, i *hlo.Instr, out Tile) ([]Tile, error) {
	along := i.Attrs.Dimensions[0]
	tiles := make([]Tile, len(i.Operands))
	prefix := int64(0)
	for k, o := range i.Operands {
		tiles[k] = slices.Clone(out)
		tiles[k][along] = b.shiftAndMask(
			out[along], prefix, o.Shape.Dims[along],
		)
		prefix += o.Shape.Dims[along]
	}
	return tiles, nil
}

// shiftAndMask moves d down by low and masks it to [0, extent).
func (b *builder) shiftAndMask(d DimTile, low, extent int64) DimTile {
	return d.shift(b.ring.Const(-low)).masked(
		b.ring.Const(0), b.ring.Const(extent),
	)
}

func propagatePad(b *builder, i *hlo.Instr, out Tile) ([]Tile, error) {
	in := make(Tile, len(out))
	for k, p := range i.Attrs.Padding {
		extent := i.Operands[0].Shape.Dims[k]
		if p.Interior == 0 {
			in[k] = b.shiftAndMask(out[k], p.Low, extent)
			continue
		}
		run, err := b.requireRun(i, out[k])
		if err != nil {
			return nil, err
		}
		if _, ok := run.constantStride(); !ok {
			return nil, refuse(
				i, "pad-interior-stride",
				"dimension %d is padded inside and read with the stride %s, which is not a constant", k, run.Stride,
			)
		}
		in[k] = b.subsampled(run, p, extent)
	}
	return []Tile{in, {}}, nil
}

// subsampled is the part of an operand that interior padding spreads over d:
// index x of the operand is index low + m·x of the result, m = interior + 1. Of
// the indices offset + i·stride, every (m/g)-th is one of these, g = gcd(stride,
// m), from i = (low − offset)/g · (stride/g)⁻¹ mod m/g on; none is when g does
// not divide low − offset.
func (b *builder) subsampled(d DimTile, p hlo.PadDim, extent int64) DimTile {
	m := p.Interior + 1
	stride, _ := d.constantStride()
	g := index.GCD(stride, m)
	end := d.last().AddConst(1).Min(d.Bound)
	away := d.Offset.Neg().AddConst(p.Low)
	t := DimTile{
		Offset: d.Offset.AddConst(-p.Low).CeilDiv(m),
		Size:   d.Size.CeilDiv(m / g),
		Stride: b.ring.Const(stride / g),
		Lower: d.Lower.AddConst(-p.Low).CeilDiv(m).Max(
			b.ring.Const(0),
		),
		Bound: end.AddConst(-p.Low).CeilDiv(m).Min(
			b.ring.Const(extent),
		),
	}
	if stride > 1 {
		first := away.Div(g).Scale(inverseMod(stride/g, m/g)).Mod(m / g)
		t.Offset = first.Scale(stride).Sub(away).Div(m)
		t.Bound = t.Bound.Min(
			away.Mod(g).Scale(-extent).AddConst(extent),
		)
	}
	return t
}

// inverseMod is x with a·x ≡ 1 (mod m), which are coprime; 0 for m = 1.
func inverseMod(a, m int64) int64 {
	for x := range m {
		if a%m*x%m == 1%m {
			return x
		}
	}
	return 0
}

func propagateReduce(b *builder, i *hlo.Instr, out Tile) ([]Tile, error) {
	n := len(i.Operands) / 2
	in := make(Tile, i.Operands[0].Shape.Rank())
	steps := b.sequentialTile(i)
	next := 0
	for d := range in {
		if k := slices.Index(reducedDims(i), int64(d)); k >= 0 {
			in[d] = steps[k]
			continue
		}
		in[d] = out[next]
		next++
	}
	tiles := make([]Tile, 2*n) // initial values are scalars
	for k := range n {
		tiles[k] = in
	}
	return tiles, nil
}

func propagateDot(b *builder, i *hlo.Instr, out Tile) ([]Tile, error) {
	a, steps := &i.Attrs, b.sequentialTile(i)
	batch := len(a.LHSBatch)
	left := dotOperand(
		i.Operands[0].Shape.Rank(),
		a.LHSBatch, a.LHSContract, out[:batch],
		out[batch:], steps,
	)
	freeLeft := i.Operands[0].Shape.Rank() - batch - len(steps)
	right := dotOperand(
		i.Operands[1].Shape.Rank(),
		a.RHSBatch, a.RHSContract, out[:batch],
		out[batch+freeLeft:], steps,
	)
	return []Tile{left, right}, nil
}

func dotOperand(rank int, batch, contract []int64, batchTile, freeTile, steps Tile) Tile {
	in := make(Tile, rank)
	next := 0
	for d := range in {
		if k := slices.Index(batch, int64(d)); k >= 0 {
			in[d] = batchTile[k]
		} else if k := slices.Index(contract, int64(d)); k >= 0 {
			in[d] = steps[k]
		} else {
			in[d] = freeTile[next]
			next++
		}
	}
	return in
}

// untileableReason says what keeps an operation out of every tile program, "" when
// nothing does: then it depends on the shapes around it, which Analyze knows.
func untileableReason(i *hlo.Instr) string {
	switch _, row := propagators[i.Op]; {
	case i.Shape.DType.IsComplex():
		return "complex numbers are not computed"
	case i.Op == hlo.OpMap:
		if _, ok := singleOp(i.Attrs.ToApply); ok {
			return ""
		}
	case row, rewrites[i.Op].apply != nil,
		i.Op == hlo.OpCopy, i.Op == hlo.OpOptimizationBarrier:
		return ""
	case i.Op == hlo.OpBitcastConvert &&
		i.Shape.DType.Size() != i.Operands[0].Shape.DType.Size():
		return refusalReason(i.Op)
	case i.Op.Elementwise():
		return ""
	}
	return refusalReason(i.Op)
}
