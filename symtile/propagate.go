package symtile

import (
	"errors"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/hlo/parts"
	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/scattering"
)

// A propagator derives the tiles that an instruction reads from the tile of its
// result. It may add constraints by builder.require, and refuse with an
// *Untileable.
type propagator struct {
	// doc is what the table in doc.go says.
	doc       string
	propagate func(b *builder, i *hlo.Instr, out Tile) ([]Tile, error)
}

// propagators is the table of operations that can be tiled, and how. All
// elementwise operations are one row, propagateElementwise. The table in doc.go
// is made from it.
//
// In some cases tiles hold more than is read; none of them reads outside of a
// tensor or changes a result. A broadcast drops a dimension that is masked; a
// reshape divides a run over several rows, of which the first or last is masked
// in part; windows are farther apart than they are long; the operand of a
// gather is whole where it is known only at run time what is looked up.
var propagators = map[hlo.Opcode]propagator{
	hlo.OpParameter:          {"reads no operand: its tile is loaded from memory", noOperands},
	hlo.OpConstant:           {"reads no operand", noOperands},
	hlo.OpIota:               {"reads no operand: element i is offset + i·stride", noOperands},
	hlo.OpBroadcast:          {"the tile of the result dimensions that the operand has", propagateBroadcast},
	hlo.OpTranspose:          {"the tile with its dimensions permuted back", propagateTranspose},
	hlo.OpReshape:            {"the linear index, divided anew into the operand's dimensions; a tile that crosses a row of one must be whole rows, or within a row", propagateReshape},
	hlo.OpSlice:              {"offset·stride + start, with the stride multiplied", propagateSlice},
	hlo.OpReverse:            {"the mirrored interval in ascending order; the op reverses the elements", propagateReverse},
	hlo.OpConcatenate:        {"offset − the extents of the operands before it, masked to the operand", propagateConcatenate},
	hlo.OpPad:                {"offset − low padding, masked to the operand; with interior padding every (interior + 1)-th index", propagatePad},
	hlo.OpReduce:             {"the tile, and sequential dimensions of the space for the reduced ones", propagateReduce},
	hlo.OpDot:                {"the tiles of batch and free dimensions, and sequential dimensions of the space for the contracting ones", propagateDot},
	hlo.OpGetTupleElement:    {"the same tile, of the variadic reduce", propagateSame},
	OpUnfold:                 {"all indices from the first element of the first window to the last element of the last, halo included", propagateUnfold},
	hlo.OpDynamicSlice:       {"offset + start, a run-time value that is clamped to keep the slice inside", propagateDynamicSlice},
	hlo.OpDynamicUpdateSlice: {"of the operand the same tile; of the update offset − start (a run-time value), masked to the update", propagateDynamicUpdateSlice},
	hlo.OpScatter:            {"of the operand the same tile; of the updates the tile along windows, and a sequential dimension of the space for the first one of several index vectors, whole ones along with it", propagateScatter},
	hlo.OpGather:             {"of the operand the tile along offset dimensions and everything along dimensions with start indices; whole index vectors", propagateGather},
}

// noOperands is the propagator of operations that read nothing.
func noOperands(*builder, *hlo.Instr, Tile) ([]Tile, error) {
	return nil, nil
}

// propagateSame is the propagator of operations whose operand has the result's
// tile.
func propagateSame(_ *builder, i *hlo.Instr, out Tile) ([]Tile, error) {
	return []Tile{out}, nil
}

// propagateElementwise gives every operand the result's tile, and scalars none.
func propagateElementwise(_ *builder, i *hlo.Instr, out Tile) ([]Tile, error) {
	tiles := make([]Tile, len(i.Operands))
	for k, o := range i.Operands {
		if o.Shape.Rank() == len(out) {
			tiles[k] = out
		}
	}
	return tiles, nil
}

// propagateBroadcast drops the dimensions that the operand lacks.
func propagateBroadcast(_ *builder, i *hlo.Instr, out Tile) ([]Tile, error) {
	in := make(Tile, len(i.Attrs.Dimensions))
	for k, d := range i.Attrs.Dimensions {
		in[k] = out[d]
	}
	return []Tile{in}, nil
}

// propagateTranspose permutes the dimensions.
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

// propagateSlice: index x of the result is start + stride·x of the operand.
func propagateSlice(b *builder, i *hlo.Instr, out Tile) ([]Tile, error) {
	in := make(Tile, len(out))
	for k, r := range i.Attrs.Slice {
		in[k] = out[k].scale(r.Stride).shift(
			b.ring.Const(r.Start),
		)
	}
	return []Tile{in}, nil
}

// propagateReverse: index x of the result is n−1−x of the operand. The tile is
// in ascending order, so that its last element becomes the first.
func propagateReverse(b *builder, i *hlo.Instr, out Tile) ([]Tile, error) {
	in := slices.Clone(out)
	for _, k := range i.Attrs.Dimensions {
		in[k] = out[k].negate().shift(
			b.ring.Const(i.Shape.Dims[k] - 1),
		)
	}
	return []Tile{in}, nil
}

// propagateConcatenate shifts the tile to where each operand begins, and masks
// it to that operand.
func propagateConcatenate(b *builder, i *hlo.Instr, out Tile) ([]Tile, error) {
	dim := i.Attrs.Dimensions[0]
	tiles := make([]Tile, len(i.Operands))
	prefix := int64(0)
	for k, o := range i.Operands {
		tiles[k] = slices.Clone(out)
		tiles[k][dim] = b.shiftAndMask(
			out[dim], prefix, o.Shape.Dims[dim],
		)
		prefix += o.Shape.Dims[dim]
	}
	return tiles, nil
}

// shiftAndMask moves d down by low and masks it to [0, extent).
func (b *builder) shiftAndMask(d DimTile, low, extent int64) DimTile {
	return d.shift(b.ring.Const(-low)).masked(
		b.ring.Const(0), b.ring.Const(extent),
	)
}

// propagatePad shifts the tile by the padding in front and masks it to the
// operand; interior padding leaves a part of its indices. The padding value is
// a scalar.
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
// index x of the operand is index low + m·x of the result, with m = interior +
// 1.
//
// Of the indices offset + i·stride every (m/g)-th is one of these, g =
// gcd(stride, m), from i = (low − offset)/g · (stride/g)⁻¹ mod m/g on. There is
// none where g does not divide low − offset, which makes the bound 0.
func (b *builder) subsampled(d DimTile, p hlo.PadDim, extent int64) DimTile {
	m := p.Interior + 1
	stride, _ := d.constantStride()
	g := index.GCD(stride, m)
	end := d.last().AddConst(1).Min(d.Bound)
	toLow := d.Offset.Neg().AddConst(p.Low)
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
		first := toLow.Div(g).Scale(inverseMod(stride/g, m/g)).Mod(m / g)
		t.Offset = first.Scale(stride).Sub(toLow).Div(m)
		t.Bound = t.Bound.Min(
			toLow.Mod(g).Scale(-extent).AddConst(extent),
		)
	}
	return t
}

// inverseMod is x with a·x ≡ 1 (mod m), where a and m are coprime; 0 for m = 1.
// It tries all of them: m is an interior padding, and small.
func inverseMod(a, m int64) int64 {
	for x := range m {
		if a%m*x%m == 1%m {
			return x
		}
	}
	return 0
}

// propagateReduce gives reduced dimensions the sequential tiles of the space,
// and the others those of the result. Initial values are scalars.
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

// propagateDot gives contracting dimensions the sequential tiles of the space.
// The result's dimensions are batch, left free, right free ones.
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

// dotOperand is the tile of one operand of a dot.
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

// UntileableReason is the reason why an operation is in no tile program,
// whatever its shapes; "" when there is none: then it depends on the fusion,
// which Analyze knows.
func UntileableReason(i *hlo.Instr) string {
	switch _, row := propagators[i.Op]; {
	case i.Unknown() != "":
		return i.Unknown()
	case isOpaque(i), slices.ContainsFunc(i.Operands, isOpaque):
		return opaqueElements
	case i.Op == hlo.OpMap:
		if _, ok := singleOp(i.Attrs.ToApply); ok {
			return ""
		}
	case i.Op == hlo.OpScatter && i.Attrs.Scatter != nil && scattering.Untiled(i) != "":
		return scattering.Untiled(i)
	case i.Op == hlo.OpStochasticConvert && !i.Shape.DType.IsSigned():
		return refusalReason(i.Op)
	case row, rewrites[i.Op].apply != nil, i.Op.Elementwise(),
		i.Op == hlo.OpCopy, i.Op == hlo.OpOptimizationBarrier:
		return undefinedReason(i)
	}
	return refusalReason(i.Op)
}

// opaqueElements is the reason of what has elements of no number.
const opaqueElements = "its elements are opaque: a quantized type, or data of a custom-call; quantized modules are lowered by stablehlo-opt --stablehlo-legalize-quant-to-math"

// isOpaque reports whether an array of the result has elements that are not known.
func isOpaque(i *hlo.Instr) bool {
	return slices.ContainsFunc(i.Shape.Arrays(), func(s hlo.Shape) bool { return s.DType == hlo.Opaque })
}

// undefinedReason is the reason why an operation is not computed of complex numbers;
// "" where it is, or has none.
func undefinedReason(i *hlo.Instr) string {
	var u *parts.Undefined
	if errors.As(parts.Defined(i), &u) {
		return u.Reason
	}
	return ""
}
