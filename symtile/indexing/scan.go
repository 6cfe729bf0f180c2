package indexing

import (
	"slices"
	"strconv"

	"github.com/tilewright/tilewright/symtile/index"
)

// A scan makes element t along its dimension from the inputs up to t (from t
// on, where it is reversed) and the initial carries, by a computation on
// scalars. The computation is not analyzed: the maps are approximate, a
// superset of what is read.
type scan struct {
	// dim is the dimension along which it scans.
	dim int64
	// n is the extent along dim.
	n int64
	// inputs is the number of operands before the carries.
	inputs int
	// outputs is the number of results before the carries.
	outputs int
	// reverse reports that element t is made from the inputs from t on.
	reverse bool
}

// notScannable is the reason for scans whose shapes do not fit.
const notScannable = "its shapes do not go together, or its computation is not on scalars"

// scanning is the scan of the instruction; false where it is not valid.
func (x *indexer) scanning() (s scan, ok bool) {
	carries := 0
	for _, a := range x.in.Attrs.Other {
		switch a.Name {
		case "num_carries":
			carries, _ = strconv.Atoi(a.Value)
		case "is_reverse":
			s.reverse = a.Value == "true"
		}
	}
	s.inputs = len(x.in.Operands) - carries
	s.outputs = len(x.in.Shape.Arrays()) - carries
	dims := x.in.Attrs.Dimensions
	c := x.in.Attrs.ToApply
	if carries < 0 || s.inputs < 1 ||
		s.outputs < 0 || len(dims) != 1 ||
		dims[0] < 0 ||
		dims[0] >= int64(len(x.operandDims(0))) ||
		c == nil {
		return s, false
	}
	for _, p := range c.Params {
		if p.Shape.Rank() > 0 {
			return s, false
		}
	}
	s.dim, s.n = dims[0], x.operandDims(0)[dims[0]]
	return s, x.fits(s)
}

// fits reports whether inputs and outputs have the extents of the first input,
// and carries those without the dimension.
func (x *indexer) fits(s scan) bool {
	whole := x.operandDims(0)
	slice := slices.Delete(
		slices.Clone(whole),
		int(s.dim),
		int(s.dim)+1,
	)
	want := func(carry bool) []int64 {
		if carry {
			return slice
		}
		return whole
	}
	for k := range x.in.Operands {
		if !slices.Equal(x.operandDims(k), want(k >= s.inputs)) {
			return false
		}
	}
	for k, l := range x.in.Shape.Arrays() {
		if !slices.Equal(l.Dims, want(k >= s.outputs)) {
			return false
		}
	}
	return true
}

// before is the constraint that input position in contributes to output
// position out.
func (s scan) before(in, out index.Expr) index.Constraint {
	if s.reverse {
		in, out = out, in
	}
	return index.Require(out.Sub(in), 0, s.n-1)
}

// operandsScan: an output element reads the inputs up to its position; a carry
// that is a result reads all of them.
func operandsScan(x *indexer) []index.Map {
	s, ok := x.scanning()
	if !ok {
		return x.undefined(notScannable)
	}
	at := x.ranges([]int64{s.n})
	input := index.Map{Ranges: at, Approximate: true}
	carry := index.Map{Approximate: true}
	if x.output < s.outputs {
		input.Results = replaced(x.dims, s.dim, at[0])
		input.Where = s.before(at[0], x.dims[s.dim])
		carry.Results = slices.Delete(
			slices.Clone(x.dims),
			int(s.dim),
			int(s.dim)+1,
		)
	} else {
		input.Results = slices.Insert(
			slices.Clone(x.dims),
			int(s.dim),
			at[0],
		)
		carry.Results = x.dims
	}
	maps := make([]index.Map, len(x.in.Operands))
	for k := range maps {
		if maps[k] = input; k >= s.inputs {
			maps[k] = carry
		}
	}
	return maps
}

// usersScan: an input element is used by the output elements from its position
// on.
func usersScan(x *indexer) index.Map {
	s, ok := x.scanning()
	if !ok {
		return x.unknown(notScannable)
	}
	rest := x.dims
	if x.operand < s.inputs {
		rest = slices.Delete(
			slices.Clone(x.dims),
			int(s.dim),
			int(s.dim)+1,
		)
	}
	if x.output >= s.outputs {
		return index.Map{Results: rest, Approximate: true}
	}
	at := x.ranges([]int64{s.n})
	m := index.Map{
		Ranges: at,
		Results: slices.Insert(
			slices.Clone(rest), int(s.dim), at[0],
		),
		Approximate: true,
	}
	if x.operand < s.inputs {
		m.Where = s.before(x.dims[s.dim], at[0])
	}
	return m
}
