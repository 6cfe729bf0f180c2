package partition

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// A product of groups of rows of different sizes is taken apart as JAX 0.10 does where it has no
// instruction for it (jax.lax.ragged_dot_general). With start and end of each group, the sums
// of the sizes before it and with it, it is a product over all groups, or of each, of
//
//	select(start[g] ≤ row and row < end[g], l, 0)
//
// The groups are of rows of the left side (ragged_dot), of what is contracted (its gradient
// with respect to the matrices), or of matrices, where their sizes say nothing.

// divisible reports whether a ragged-dot is taken apart: sizes are not where they differ between
// batches.
func divisible(i *hlo.Instr) bool {
	ragged, _ := i.RaggedDims()
	return len(ragged) == 1 &&
		i.Operands[2].Shape.Rank() == 1
}

// raggedDot is the operations that a ragged-dot becomes.
func (e *expander) raggedDot(
	in []*hlo.Instr,
) *hlo.Instr {
	i := e.of
	ragged, group := i.RaggedDims()
	l, r, sizes := in[0], in[1], in[2]
	result := plain(i.Shape)
	if l.Shape.Elements() == 0 ||
		sizes.Shape.Elements() == 0 {
		return e.spreadTo(result, e.scalar(i.Shape.DType))
	}
	// Texts of attributes, such as lhs_ragged_dims, are not those of a dot.
	a := hlo.Attrs{
		LHSBatch:    i.Attrs.LHSBatch,
		RHSBatch:    i.Attrs.RHSBatch,
		LHSContract: i.Attrs.LHSContract,
		RHSContract: i.Attrs.RHSContract,
	}
	d := ragged[0]
	if slices.Contains(a.LHSBatch, d) {
		return e.append(hlo.OpDot, result, a, l, r)
	}
	sizes = e.convert(sizes, hlo.S32)
	l = e.ownRows(l, sizes, d)
	contracted := slices.Contains(a.LHSContract, d)
	a.LHSBatch = shifted(a.LHSBatch)
	a.LHSContract = shifted(a.LHSContract)
	first := []int64{0}
	if contracted {
		// A batch of products, in which both sides have the groups first.
		r = e.perGroup(r, l.Shape.Dims[0])
		a.LHSBatch = slices.Concat(
			first, a.LHSBatch,
		)
		a.RHSBatch = shifted(a.RHSBatch)
		a.RHSBatch = slices.Concat(
			first, a.RHSBatch,
		)
		a.RHSContract = shifted(a.RHSContract)
	} else {
		// One product, in which the groups are contracted.
		a.LHSContract = slices.Concat(
			first, a.LHSContract,
		)
		a.RHSContract = slices.Concat(
			group, a.RHSContract,
		)
	}
	return e.append(hlo.OpDot, result, a, l, r)
}

// shifted is dimensions of an array behind a new first one.
func shifted(dims []int64) (all []int64) {
	for _, d := range dims {
		all = append(all, d+1)
	}
	return all
}

// perGroup is an array for each group, along a new first dimension.
func (e *expander) perGroup(
	x *hlo.Instr, groups int64,
) *hlo.Instr {
	shape := x.Shape
	shape.Dims = []int64{groups}
	var along []int64
	for d, n := range x.Shape.Dims {
		along = append(along, int64(d)+1)
		shape.Dims = append(shape.Dims, n)
	}
	return e.spreadTo(shape, x, along...)
}

// spreadTo is a broadcast of x, whose dimensions are those of the result that are listed.
func (e *expander) spreadTo(
	shape hlo.Shape, x *hlo.Instr, dims ...int64,
) *hlo.Instr {
	var a hlo.Attrs
	a.Dimensions = append([]int64{}, dims...)
	return e.append(
		hlo.OpBroadcast, shape, a, x,
	)
}

// compare is x compared with y.
func (e *expander) compare(
	x *hlo.Instr, direction string, y *hlo.Instr,
) *hlo.Instr {
	holds := hlo.Shape{
		DType: hlo.Pred,
		Dims:  x.Shape.Dims,
	}
	a := hlo.Attrs{Direction: direction}
	return e.append(hlo.OpCompare, holds, a, x, y)
}

// along counts along a dimension of an array of s32.
func (e *expander) along(
	d int64, dims []int64,
) *hlo.Instr {
	shape := hlo.Shape{
		DType: hlo.S32,
		Dims:  dims,
	}
	a := hlo.Attrs{IotaDim: d}
	return e.append(hlo.OpIota, shape, a)
}

// where is x where a predicate holds, and 0 elsewhere.
func (e *expander) where(
	holds, x *hlo.Instr,
) *hlo.Instr {
	zero := e.spreadTo(
		x.Shape, e.scalar(x.Shape.DType),
	)
	return e.append(
		hlo.OpSelect, x.Shape, hlo.Attrs{},
		holds, x, zero,
	)
}

// ownRows is x for each group, and 0 in rows along dimension d that are of others.
func (e *expander) ownRows(
	x, sizes *hlo.Instr, d int64,
) *hlo.Instr {
	all := e.perGroup(x, sizes.Shape.Dims[0])
	row := e.along(d+1, all.Shape.Dims)
	ends := e.ends(sizes)
	start := e.spreadTo(row.Shape, e.starts(ends), 0)
	end := e.spreadTo(row.Shape, ends, 0)
	begun := e.compare(start, "LE", row)
	open := e.compare(row, "LT", end)
	own := e.append(
		hlo.OpAnd, begun.Shape, hlo.Attrs{},
		begun, open,
	)
	return e.where(own, all)
}

// starts are the ends of the groups before: 0 of the first.
func (e *expander) starts(
	ends *hlo.Instr,
) *hlo.Instr {
	n := ends.Shape.Dims[0]
	shape := ends.Shape
	shape.Dims = []int64{1}
	first := e.spreadTo(shape, e.scalar(hlo.S32))
	if n == 1 {
		return first
	}
	shape.Dims = []int64{n - 1}
	var a hlo.Attrs
	a.Slice = []hlo.SliceDim{{
		Limit:  n - 1,
		Stride: 1,
	}}
	before := e.append(
		hlo.OpSlice, shape, a, ends,
	)
	var joined hlo.Attrs
	joined.Dimensions = []int64{0}
	return e.append(
		hlo.OpConcatenate, ends.Shape, joined,
		first, before,
	)
}

// scalar is a 0 of a type.
func (e *expander) scalar(
	d hlo.DType,
) *hlo.Instr {
	shape := hlo.Shape{DType: d}
	one := e.instruction(
		hlo.OpConstant, shape, hlo.Attrs{},
	)
	one.Literal = &hlo.Literal{Shape: shape}
	if d.IsFloat() {
		one.Literal.Floats = []float64{0}
	} else {
		one.Literal.Ints = []int64{0}
	}
	return e.put(one)
}

// ends are the sums of the sizes of groups, each with those before it.
func (e *expander) ends(
	sizes *hlo.Instr,
) *hlo.Instr {
	n := sizes.Shape.Dims[0]
	row := e.along(0, []int64{n, n})
	column := e.along(1, row.Shape.Dims)
	before := e.compare(column, "LE", row)
	each := e.spreadTo(row.Shape, sizes, 1)
	counted := e.where(before, each)
	var a hlo.Attrs
	a.Dimensions = []int64{1}
	a.ToApply = e.scalarSum(hlo.S32)
	return e.append(
		hlo.OpReduce, sizes.Shape, a,
		counted, e.scalar(hlo.S32),
	)
}
