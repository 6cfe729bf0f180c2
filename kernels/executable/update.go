package executable

import (
	"math"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// An update writes a part of an array: out holds the operand of a dynamic-update-slice
// or of a scatter, and becomes its result. in are all operands.
type update func(out kernels.Buffer, in []kernels.Buffer)

// updateOf is the update of an instruction outside of fusions, or of a scatter that is a
// fusion of its own; nil where the reference
// computes it: tiled layouts, elements of less than a byte, scatters of several operands,
// whose windows are not the last dimensions of the updates, or
// that combine by anything but a sum of f32 or s32 or the last update.
func updateOf(i *hlo.Instr) update {
	if i.Op == hlo.OpFusion {
		root := i.Attrs.Calls.Root
		if root.Op != hlo.OpScatter || !slices.Equal(root.Operands, i.Attrs.Calls.Params) {
			return nil
		}
		i = root
	}
	direct := i.Shape.DType.IsArray() && i.Shape.DType.Bits()%8 == 0 && i.Shape.IsRowMajor()
	for _, o := range i.Operands {
		direct = direct && o.Shape.DType.IsArray() && o.Shape.IsRowMajor()
	}
	switch {
	case !direct:
		return nil
	case i.Op == hlo.OpDynamicUpdateSlice:
		return updateSlice
	case i.Op == hlo.OpScatter:
		return scatterOf(i)
	}
	return nil
}

// updateSlice overwrites a slice whose start is clamped so that the slice is inside.
func updateSlice(out kernels.Buffer, in []kernels.Buffer) {
	dims, part := out.Shape.Dims, in[1]
	sizes, strides := part.Shape.Dims, hlo.RowMajor(dims)
	at := sliceAt(dims, sizes, in[2:])
	outer, run := trailing(sizes, dims)
	width := int64(out.Shape.DType.Size())
	if run > 0 && len(part.Data) > 0 && &part.Data[0] == &out.Data[at*width] {
		return // it was made there
	}
	for k, offset := range offsetsOf(sizes[:outer], strides[:outer]) {
		to, from := (at+offset)*width, int64(k)*run*width
		copy(out.Data[to:to+run*width], part.Data[from:])
	}
}

// sliceAt is the number of the first element of a slice of an array of extents dims.
func sliceAt(dims, sizes []int64, starts []kernels.Buffer) (at int64) {
	strides := hlo.RowMajor(dims)
	for d, start := range startsOf(starts) {
		at += min(max(start, 0), dims[d]-sizes[d]) * strides[d]
	}
	return at
}

// trailing divides the dimensions of a window: the elements along the last of them, from
// outer on, lie together in the array.
func trailing(sizes, dims []int64) (outer int, run int64) {
	outer, run = len(dims), 1
	for whole := true; whole && outer > 0; {
		outer--
		run *= sizes[outer]
		whole = sizes[outer] == dims[outer]
	}
	return outer, run
}

// startsOf are the numbers in scalars or arrays of start indices.
func startsOf(in []kernels.Buffer) (starts []int64) {
	for _, b := range in {
		if b.Shape.DType == hlo.S32 {
			for _, x := range kernels.Elements[int32](b) {
				starts = append(starts, int64(x))
			}
			continue
		}
		for n := range b.Shape.Elements() {
			starts = append(starts, startAt(b, n))
		}
	}
	return starts
}

// startAt is an element of start indices. A u64 that int64 cannot hold is the largest
// int64.
func startAt(b kernels.Buffer, n int64) int64 {
	x := b.Int(n)
	if x < 0 && b.Shape.DType == hlo.U64 {
		return math.MaxInt64
	}
	return x
}

// offsetsOf are the positions of the elements of a window in row-major order; one of a
// window without dimensions.
func offsetsOf(sizes, strides []int64) []int64 {
	all := []int64{0}
	for d, size := range sizes {
		next := make([]int64, 0, int64(len(all))*size)
		for _, at := range all {
			for k := range size {
				next = append(next, at+k*strides[d])
			}
		}
		all = next
	}
	return all
}

// A combination combines the elements from each of some positions of out on with those of
// the updates, run elements each and one after the other; a negative position has none.
type combination func(out, updates kernels.Buffer, at []int64, run int64)

// scatterOf is the update of a scatter; nil where there is none.
func scatterOf(i *hlo.Instr) update {
	s := i.Attrs.Scatter
	if len(i.Operands) != 3 {
		return nil
	}
	indices, updates := i.Operands[1].Shape, i.Operands[2].Shape
	combine, batch := combinationOf(i), updates.Rank()-len(s.UpdateWindow)
	for k, d := range s.UpdateWindow {
		if d != int64(batch+k) {
			return nil // other windows are visited in another order
		}
	}
	if combine == nil || int(s.IndexVectorDim) < indices.Rank()-1 {
		return nil
	}
	dims := i.Shape.Dims
	sizes, strides := reference.UpdateWindow(s, dims, updates.Dims).Sizes, hlo.RowMajor(dims)
	outer, run := trailing(sizes, dims)
	offsets := offsetsOf(sizes[:outer], strides[:outer])
	window := run * int64(len(offsets))
	if window == 0 {
		return func(kernels.Buffer, []kernels.Buffer) {}
	}
	places := updates.Elements() / window
	batches := batchOffsets(s, indices.Dims, strides, places)
	return func(out kernels.Buffer, in []kernels.Buffer) {
		at := make([]int64, 0, places*int64(len(offsets)))
		starts := slices.Clone(batches)
		placeWindows(starts, in[1], s.ToOperand, dims, sizes, strides)
		for _, start := range starts {
			for _, offset := range offsets {
				if start < 0 {
					offset = 0
				}
				at = append(at, start+offset)
			}
		}
		combine(out, in[2], at, run)
	}
}

// batchOffsets are the offsets of the windows of a scatter along the dimensions that its
// indices and its operand have in common; indices may have a last dimension of components.
func batchOffsets(s *hlo.ScatterDims, indices, strides []int64, places int64) []int64 {
	at := make([]int64, places)
	along := hlo.RowMajor(indices[:min(int(s.IndexVectorDim), len(indices))])
	for k, d := range s.InputBatching {
		from := s.IndicesBatching[k]
		for n := range at {
			x := int64(n) / along[from] % indices[from]
			at[n] += x * strides[d]
		}
	}
	return at
}

// placeWindows adds the positions of the windows of a scatter by its indices; a
// window that is not inside of the array has none, which is −1.
func placeWindows(at []int64, indices kernels.Buffer, toOperand, dims, sizes, strides []int64) {
	components := len(toOperand)
	values := startsOf([]kernels.Buffer{indices})
	for c, d := range toOperand {
		last, stride := dims[d]-sizes[d], strides[d]
		for k := range at {
			start := values[k*components+c]
			if start < 0 || start > last || at[k] < 0 {
				at[k] = -1
				continue
			}
			at[k] += start * stride
		}
	}
}

// combinationOf is how a scatter combines elements; nil where the reference has to.
func combinationOf(i *hlo.Instr) combination {
	root, dtype := i.Attrs.ToApply.Root, i.Shape.DType
	params := i.Attrs.ToApply.Params
	sum := root.Op == hlo.OpAdd && root.Operands[0] != root.Operands[1] &&
		slices.Contains(params, root.Operands[0]) && slices.Contains(params, root.Operands[1])
	switch {
	case i.Operands[2].Shape.DType != dtype || len(params) != 2 || root.Shape.DType != dtype:
		return nil
	case root == params[1]:
		width := int64(dtype.Size())
		return func(out, updates kernels.Buffer, at []int64, run int64) {
			for k, to := range at {
				if from := int64(k) * run; to >= 0 {
					copy(out.Data[to*width:(to+run)*width], updates.Data[from*width:])
				}
			}
		}
	case sum && dtype == hlo.F32:
		return addTo[float32]
	case sum && dtype == hlo.S32:
		return addTo[int32]
	}
	return nil
}

// elementsOfLanes are those of a run that one thread has at least: two threads that write
// to the same cache lines would wait for each other.
const elementsOfLanes = 32

// addTo is the combination that adds. Several threads share the elements of a run, so that
// the sums are those of one thread in all bits.
func addTo[T float32 | int32](out, updates kernels.Buffer, at []int64, run int64) {
	sums, terms := kernels.Elements[T](out), kernels.Elements[T](updates)
	if run == 1 {
		for k, to := range at {
			if to >= 0 {
				sums[to] += terms[k]
			}
		}
		return
	}
	lines := max(1, run/elementsOfLanes)
	reference.Parallel(lines, int64(len(at))*elementsOfLanes, func(lo, hi int64) {
		lo, hi = lo*run/lines, hi*run/lines
		for k, to := range at {
			if to < 0 {
				continue
			}
			from := int64(k) * run
			some, part := terms[from+lo:from+hi], sums[to+lo:to+hi]
			for n, x := range some[:len(part)] {
				part[n] += x
			}
		}
	})
}

// update writes a part of the operand of a step: of the operand itself where nothing
// reads that any more, else of a copy.
func (r *run) update(s step, a []value, in []kernels.Buffer) (value, error) {
	owner := a[0].storage
	shared := slices.ContainsFunc(a[1:], func(v value) bool { return v.storage == owner }) // x.at[i].add(x)
	made := s.placed && a[1].storage == owner && owner.references == 2
	if (made || !shared && owner.references == 1) && len(owner.data) > 0 && slices.Contains(s.dead, s.operands[0]) {
		s.unit.update(in[0], in)
		return a[0].retained(), nil
	}
	out, err := r.pool.buffer(s.instr.Shape)
	if err != nil {
		return value{}, err
	}
	copy(out.buffer.Data, in[0].Data)
	s.unit.update(out.buffer, in)
	return out, nil
}
