package check

import (
	"math/rand/v2"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// An indexRange describes the values of a parameter that becomes the start
// indices of a dynamic slice, a gather or a scatter: component k of an index
// vector is in range from 0 to last[k], where it is neither clamped nor
// skipped.
type indexRange struct {
	// The dimension along which an index vector lies; −1 if every element is a
	// component of the same kind.
	vector int
	// The last value in range of each component; one value if vector is −1.
	last []int64
	// The index vectors are promised to be sorted or unique.
	ordered bool
	// The values are the ends of groups of rows, of which there are last[0].
	ends bool
}

// maxOutOfRange is how far out of range indices go, and one of outOfRangeEvery is out of range.
const (
	// The largest distance of an index from its range.
	maxOutOfRange = 2
	// One in this many indices is out of range.
	outOfRangeEvery = 8
)

// indexRanges finds the parameters of c that become indices.
func indexRanges(c *hlo.Computation) map[*hlo.Instr]indexRange {
	ranges := map[*hlo.Instr]indexRange{}
	for _, i := range c.Instrs {
		for operand, r := range indicesOf(i) {
			traceIndices(
				operand, r, ranges, map[*hlo.Instr]bool{},
			)
		}
	}
	return ranges
}

// indicesOf lists the operands of an instruction that are indices.
func indicesOf(i *hlo.Instr) map[*hlo.Instr]indexRange {
	switch i.Op {
	case hlo.OpDynamicSlice:
		return sliceStartRanges(
			i.Operands[1:],
			i.Operands[0].Shape.Dims,
			i.Attrs.SliceSizes,
		)
	case hlo.OpDynamicUpdateSlice:
		return sliceStartRanges(
			i.Operands[2:],
			i.Operands[0].Shape.Dims,
			i.Operands[1].Shape.Dims,
		)
	case hlo.OpGather:
		g := i.Attrs.Gather
		return map[*hlo.Instr]indexRange{
			i.Operands[1]: indexVectorRange(
				i, 1, g.IndexVectorDim, g.StartIndexMap, g.SliceSizes,
			),
		}
	case hlo.OpScatter:
		s := i.Attrs.Scatter
		n := len(i.Operands) / 2
		w := reference.UpdateWindow(
			s,
			i.Operands[0].Shape.Dims,
			i.Operands[n+1].Shape.Dims,
		)
		return map[*hlo.Instr]indexRange{
			i.Operands[n]: indexVectorRange(
				i, n, s.IndexVectorDim, s.ToOperand, w.Sizes,
			),
		}
	case hlo.OpCompare:
		return groupEnds(i)
	}
	return nil
}

// groupEnds are the ends of groups of rows, or lengths of sequences: a vector that is
// broadcast and compared with the number of each row.
func groupEnds(i *hlo.Instr) map[*hlo.Instr]indexRange {
	for k, o := range i.Operands {
		rows, ok := counted(i.Operands[1-k])
		if ok && o.Op == hlo.OpBroadcast &&
			o.Operands[0].Shape.Rank() == 1 {
			return map[*hlo.Instr]indexRange{
				o.Operands[0]: {vector: -1, last: []int64{rows}, ends: true},
			}
		}
	}
	return nil
}

// counted is the extent that i counts along, where it is an iota that was moved.
func counted(i *hlo.Instr) (rows int64, ok bool) {
	for i.Op == hlo.OpBroadcast || i.Op == hlo.OpReshape {
		i = i.Operands[0]
	}
	if i.Op != hlo.OpIota {
		return 0, false
	}
	return i.Shape.Dims[i.Attrs.IotaDim], true
}

// sliceStartRanges are the ranges of the start indices of slices of some sizes,
// which are given as scalars or as one vector.
func sliceStartRanges(
	starts []*hlo.Instr, dims, sizes []int64,
) map[*hlo.Instr]indexRange {
	last := make([]int64, len(dims))
	for d := range dims {
		last[d] = dims[d] - sizes[d]
	}
	if len(starts) == 1 &&
		starts[0].Shape.Rank() == 1 {
		return map[*hlo.Instr]indexRange{
			starts[0]: {last: last},
		}
	}
	ranges := map[*hlo.Instr]indexRange{}
	for d, s := range starts {
		r := indexRange{vector: -1, last: last[d : d+1]}
		if other, ok := ranges[s]; ok {
			r = r.and(other)
		}
		ranges[s] = r
	}
	return ranges
}

// indexVectorRange is the range of operand n of i. Its index vectors, along
// dimension vector, are the starts of slices of the given sizes along
// dimensions to of operand 0.
func indexVectorRange(i *hlo.Instr, n int, vector int64, to, sizes []int64) indexRange {
	r := indexRange{vector: int(vector), ordered: sortedOrUnique(i)}
	for _, d := range to {
		r.last = append(
			r.last,
			i.Operands[0].Shape.Dims[d]-sizes[d],
		)
	}
	if int(vector) == i.Operands[n].Shape.Rank() {
		r.vector = -1
	}
	return r
}

// sortedOrUnique reports whether the attributes of i promise that its index
// vectors are sorted or unique.
func sortedOrUnique(i *hlo.Instr) bool {
	return slices.ContainsFunc(i.Attrs.Other, func(a hlo.Attr) bool {
		return (a.Name == "unique_indices" || a.Name == "indices_are_sorted") &&
			a.Value == "true"
	})
}

// traceIndices follows indices back to parameters, through operations that
// move, convert or adjust integers, and notes the ranges of these.
func traceIndices(
	i *hlo.Instr, r indexRange,
	ranges map[*hlo.Instr]indexRange,
	seen map[*hlo.Instr]bool,
) {
	if seen[i] ||
		!i.Shape.DType.IsInteger() ||
		len(r.last) == 0 {
		return
	}
	seen[i] = true
	if i.Op == hlo.OpParameter {
		if other, ok := ranges[i]; ok {
			r = r.and(other)
		}
		ranges[i] = r
	}
	if !i.Op.Has(hlo.KeepsMagnitude) &&
		!i.Op.Elementwise() {
		return
	}
	for _, o := range i.Operands {
		if !i.Op.Elementwise() ||
			!o.Shape.SameDims(i.Shape) {
			traceIndices(o, r.anyComponent(), ranges, seen)
		} else {
			traceIndices(o, r, ranges, seen)
		}
	}
}

// and is the range in which indices are in range for both uses.
func (r indexRange) and(s indexRange) indexRange {
	if r.vector != s.vector ||
		len(r.last) != len(s.last) {
		r = r.anyComponent()
		s = s.anyComponent()
	}
	r.last = slices.Clone(r.last)
	for k := range r.last {
		r.last[k] = min(r.last[k], s.last[k])
	}
	r.ordered = r.ordered || s.ordered
	r.ends = r.ends || s.ends
	return r
}

// anyComponent is the range of an element of which it is not known which
// component it is.
func (r indexRange) anyComponent() indexRange {
	return indexRange{
		vector:  -1,
		last:    []int64{slices.Min(r.last)},
		ordered: r.ordered,
		ends:    r.ends,
	}
}

// magnitude bounds the values that fill writes.
func (r indexRange) magnitude() float64 {
	return float64(max(0, slices.Max(r.last))) + maxOutOfRange
}

// fill writes indices to b, most of them in range and some slightly outside.
// Index vectors that are promised to be ordered count through the positions in
// range and beyond the last.
func (r indexRange) fill(b kernels.Buffer, rng *rand.Rand) {
	w := reference.NewWalk(
		b.Shape.Dims, b.Shape.Strides(),
	)
	minValue, maxValue := b.Shape.DType.IntRange()
	for n := range b.Shape.Elements() {
		k := 0
		if r.vector >= 0 {
			k = int(w.Index[r.vector])
		}
		v := drawIndex(max(0, r.last[k]), rng)
		switch {
		case r.ends:
			v = drawEnd(n, b.Shape.Elements(), r.last[k], rng)
		case r.ordered:
			v = r.sequential(w.Index, b.Shape.Dims, k)
		}
		b.SetInt(w.Next(), min(max(v, minValue), maxValue))
	}
}

// drawIndex is a random index of a component whose last value in range is last.
func drawIndex(last int64, rng *rand.Rand) int64 {
	if rng.Int64N(outOfRangeEvery) > 0 {
		return rng.Int64N(last + 1)
	}
	if past := 1 + rng.Int64N(maxOutOfRange); rng.Int64N(2) == 0 {
		return -past
	} else {
		return last + past
	}
}

// drawEnd is the end of group n of several that have about as many rows each. The last group
// leaves up to two rows that are in none.
func drawEnd(n, groups, rows int64, rng *rand.Rand) int64 {
	if n == groups-1 {
		return max(0, rows-rng.Int64N(maxOutOfRange+1))
	}
	return rows*n/groups + rng.Int64N(rows/groups+1)
}

// number is the row-major number of the index vector at an index of an array of
// extents dims.
func (r indexRange) number(index, dims []int64) int64 {
	n := int64(0)
	for d, x := range index {
		if d != r.vector {
			n = n*dims[d] + x
		}
	}
	return n
}

// sequential is component k of the index vector at an index, where the vectors
// count through the positions in row-major order.
func (r indexRange) sequential(index, dims []int64, k int) int64 {
	n := r.number(index, dims)
	for c := len(r.last) - 1; c > k; c-- {
		n /= max(0, r.last[c]) + 1
	}
	if k == 0 {
		return n
	}
	return n % (max(0, r.last[k]) + 1)
}
