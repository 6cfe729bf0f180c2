package hlo

import (
	"fmt"
	"slices"
)

// checkWindow says what is wrong with a window; rank is how many dimensions it needs.
func checkWindow(i *Instr, rank int) error {
	if len(i.Attrs.Window) != rank {
		return fmt.Errorf("%s needs a window of %d dimensions, has %d", i.Op, rank, len(i.Attrs.Window))
	}
	for k, w := range i.Attrs.Window {
		if w.Size < 0 || w.Stride < 1 || w.BaseDilation < 1 || w.Dilation < 1 {
			return fmt.Errorf("dimension %d of the window has size %d, stride %d, dilations %d and %d; sizes are not negative and the others at least 1", k, w.Size, w.Stride, w.BaseDilation, w.Dilation)
		}
	}
	return nil
}

func checkReduceWindow(i *Instr) error {
	n := len(i.Operands) / 2
	if len(i.Operands)%2 != 0 {
		return fmt.Errorf("reduce-window has as many initial values as operands; it has %d arguments", len(i.Operands))
	}
	if err := i.needsToApply(2 * n); err != nil {
		return err
	}
	first := i.Operands[0].Shape
	if err := checkWindow(i, first.Rank()); err != nil {
		return err
	}
	dims := make([]int64, first.Rank())
	for k, w := range i.Attrs.Window {
		dims[k] = w.Positions(first.Dims[k])
	}
	want := make([]Shape, n)
	for k := range n {
		x, init := i.Operands[k].Shape, i.Operands[n+k].Shape
		if !x.SameDims(first) || init.Rank() != 0 || init.DType != x.DType {
			return fmt.Errorf("reduces %s with initial value %s", withoutLayout(x), withoutLayout(init))
		}
		want[k] = Shape{DType: x.DType, Dims: dims}
	}
	whole := want[0]
	if i.Shape.DType == Tuple || n > 1 {
		whole = Shape{DType: Tuple, Tuple: want}
	}
	if !i.Shape.Compatible(whole) {
		return fmt.Errorf("reduce-window of these operands is %s, not %s", whole, withoutLayout(i.Shape))
	}
	return nil
}

// Groups are the feature and batch group counts of a convolution, at least 1.
func (a *Attrs) Groups() (feature, batch int64) {
	return max(1, a.FeatureGroups), max(1, a.BatchGroups)
}

func checkConvolution(i *Instr) error {
	c, x, k := i.Attrs.Conv, i.Operands[0].Shape, i.Operands[1].Shape
	if c == nil {
		return fmt.Errorf("convolution needs dim_labels=")
	}
	rank := len(c.InSpatial) + 2
	if x.Rank() != rank || k.Rank() != rank {
		return fmt.Errorf("convolution of %s with %s; dim_labels has %d dimensions", withoutLayout(x), withoutLayout(k), rank)
	}
	if len(i.Attrs.Window) == 0 && rank == 2 {
		i.Attrs.Window = nil
	} else if err := checkWindow(i, rank-2); err != nil {
		return err
	}
	feature, batch := i.Attrs.Groups()
	if feature > 1 && batch > 1 || x.Dims[c.InFeature]%feature != 0 || x.Dims[c.InBatch]%batch != 0 || k.Dims[c.KernelOut]%(feature*batch) != 0 {
		return fmt.Errorf("%d feature and %d batch groups do not divide %s and %s", feature, batch, withoutLayout(x), withoutLayout(k))
	}
	if x.Dims[c.InFeature]/feature != k.Dims[c.KernelIn] {
		return fmt.Errorf("the input has %d features in %d groups, the kernel takes %d", x.Dims[c.InFeature], feature, k.Dims[c.KernelIn])
	}
	dims := make([]int64, rank)
	dims[c.OutBatch], dims[c.OutFeature] = x.Dims[c.InBatch]/batch, k.Dims[c.KernelOut]
	for d, w := range i.Attrs.Window {
		if w.Size != k.Dims[c.KernelSpatial[d]] {
			return fmt.Errorf("dimension %d of the window has size %d, the kernel %d", d, w.Size, k.Dims[c.KernelSpatial[d]])
		}
		dims[c.OutSpatial[d]] = w.Positions(x.Dims[c.InSpatial[d]])
	}
	return wants(i, i.Shape.DType, dims)
}

// checkStarts says what is wrong with the start indices of a dynamic-slice or
// dynamic-update-slice: scalars, one a dimension, or one array of them.
func checkStarts(i *Instr, starts []*Instr, rank int) error {
	if len(starts) == 1 && starts[0].Shape.Rank() == 1 {
		if starts[0].Shape.Dims[0] != int64(rank) {
			return fmt.Errorf("%s of rank %d has %d start indices", i.Op, rank, starts[0].Shape.Dims[0])
		}
		return nil
	}
	if len(starts) != rank {
		return fmt.Errorf("%s of rank %d has %d start indices", i.Op, rank, len(starts))
	}
	for _, s := range starts {
		if s.Shape.Rank() != 0 || !s.Shape.DType.IsInteger() {
			return fmt.Errorf("start index %s is %s; it must be an integer scalar", s.Name, withoutLayout(s.Shape))
		}
	}
	return nil
}

func checkDynamicSlice(i *Instr) error {
	from, sizes := i.Operands[0].Shape, i.Attrs.SliceSizes
	if err := checkStarts(i, i.Operands[1:], from.Rank()); err != nil {
		return err
	}
	if len(sizes) != from.Rank() {
		return fmt.Errorf("dynamic-slice of %s needs %d sizes, has %d", withoutLayout(from), from.Rank(), len(sizes))
	}
	for k, n := range sizes {
		if n < 0 || n > from.Dims[k] {
			return fmt.Errorf("slice size %d of dimension %d, which has extent %d", n, k, from.Dims[k])
		}
	}
	return wants(i, from.DType, sizes)
}

func checkDynamicUpdateSlice(i *Instr) error {
	base, update := i.Operands[0].Shape, i.Operands[1].Shape
	if err := checkStarts(i, i.Operands[2:], base.Rank()); err != nil {
		return err
	}
	if update.Rank() != base.Rank() || update.DType != base.DType {
		return fmt.Errorf("updates %s with %s", withoutLayout(base), withoutLayout(update))
	}
	for k, n := range update.Dims {
		if n > base.Dims[k] {
			return fmt.Errorf("the update has extent %d in dimension %d, the operand %d", n, k, base.Dims[k])
		}
	}
	return wants(i, base.DType, base.Dims)
}

func checkGather(i *Instr) error {
	g, from, indices := i.Attrs.Gather, i.Operands[0].Shape, i.Operands[1].Shape
	if g == nil || len(g.SliceSizes) != from.Rank() {
		return fmt.Errorf("gather of %s needs %d slice_sizes", withoutLayout(from), from.Rank())
	}
	if g.IndexVectorDim < 0 || g.IndexVectorDim > int64(indices.Rank()) {
		return fmt.Errorf("index_vector_dim=%d of %s", g.IndexVectorDim, withoutLayout(indices))
	}
	components, batch := indexVectors(indices, g.IndexVectorDim)
	if components != int64(len(g.StartIndexMap)) {
		return fmt.Errorf("index vectors have %d components, start_index_map %d", components, len(g.StartIndexMap))
	}
	if err := dimensionList("start_index_map=", slices.Concat(g.StartIndexMap, g.OperandBatching), from.Rank()); err != nil {
		return err
	}
	if err := dimensionList("collapsed_slice_dims=", slices.Concat(g.CollapsedSliceDims, g.OperandBatching), from.Rank()); err != nil {
		return err
	}
	if err := dimensionList("start_indices_batching_dims=", g.IndicesBatching, indices.Rank()); err != nil || len(g.IndicesBatching) != len(g.OperandBatching) {
		return fmt.Errorf("gather has %d and %d batching dimensions", len(g.OperandBatching), len(g.IndicesBatching))
	}
	if err := dimensionList("offset_dims=", g.OffsetDims, i.Shape.Rank()); err != nil {
		return err
	}
	var window []int64
	for d, n := range g.SliceSizes {
		gone := slices.Contains(g.CollapsedSliceDims, int64(d)) || slices.Contains(g.OperandBatching, int64(d))
		if n < 0 || n > from.Dims[d] || gone && n != 1 {
			return fmt.Errorf("slice size %d of dimension %d, which has extent %d", n, d, from.Dims[d])
		}
		if !gone {
			window = append(window, n)
		}
	}
	return wants(i, from.DType, interleave(i.Shape.Rank(), g.OffsetDims, window, batch))
}

// interleave puts window at dims of the rank and batch elsewhere, in order; it
// is nil when the numbers do not fit.
func interleave(rank int, dims, window, batch []int64) []int64 {
	if len(dims) != len(window) || rank != len(window)+len(batch) {
		return nil
	}
	out := make([]int64, rank)
	w, b := 0, 0
	for d := range out {
		if slices.Contains(dims, int64(d)) {
			out[d] = window[w]
			w++
		} else {
			out[d] = batch[b]
			b++
		}
	}
	return out
}

func checkScatter(i *Instr) error {
	s, n := i.Attrs.Scatter, len(i.Operands)/2
	if s == nil || len(i.Operands)%2 != 1 || n == 0 {
		return fmt.Errorf("scatter has operands, indices and as many updates; it has %d arguments", len(i.Operands))
	}
	if err := i.needsToApply(2 * n); err != nil {
		return err
	}
	base, indices, updates := i.Operands[0].Shape, i.Operands[n].Shape, i.Operands[n+1].Shape
	if s.IndexVectorDim < 0 || s.IndexVectorDim > int64(indices.Rank()) {
		return fmt.Errorf("index_vector_dim=%d of %s", s.IndexVectorDim, withoutLayout(indices))
	}
	components, batch := indexVectors(indices, s.IndexVectorDim)
	if components != int64(len(s.ToOperand)) || len(s.InputBatching) != len(s.IndicesBatching) {
		return fmt.Errorf("index vectors have %d components, scatter_dims_to_operand_dims %d", components, len(s.ToOperand))
	}
	for _, list := range [][]int64{s.ToOperand, slices.Concat(s.InsertedWindow, s.InputBatching)} {
		if err := dimensionList("scatter", list, base.Rank()); err != nil {
			return err
		}
	}
	if err := dimensionList("update_window_dims=", s.UpdateWindow, updates.Rank()); err != nil {
		return err
	}
	var window []int64
	for _, d := range s.UpdateWindow {
		window = append(window, updates.Dims[d])
	}
	if len(window)+len(s.InsertedWindow)+len(s.InputBatching) != base.Rank() {
		return fmt.Errorf("update windows of %d dimensions, %d of them inserted, do not make the rank of %s", len(window), len(s.InsertedWindow)+len(s.InputBatching), withoutLayout(base))
	}
	if want := interleave(updates.Rank(), s.UpdateWindow, window, batch); !slices.Equal(want, updates.Dims) {
		return fmt.Errorf("the updates are %s; with indices %s they would be %v", withoutLayout(updates), withoutLayout(indices), want)
	}
	if n > 1 || i.Shape.DType == Tuple {
		return nil
	}
	return wants(i, base.DType, base.Dims)
}

// checkScaledDot: operands l, r and a scale for each; a scale divides every
// dimension of its side into blocks, or is a scalar.
func checkScaledDot(i *Instr) error {
	for k := range 2 {
		side, scale := i.Operands[k].Shape, i.Operands[k+2].Shape
		if scale.Rank() == 0 {
			continue
		}
		if scale.Rank() != side.Rank() {
			return fmt.Errorf("the scale of %s is %s", withoutLayout(side), withoutLayout(scale))
		}
		for d, n := range scale.Dims {
			if n == 0 || side.Dims[d]%n != 0 {
				return fmt.Errorf("the scale %s does not divide dimension %d of %s into blocks", withoutLayout(scale), d, withoutLayout(side))
			}
		}
	}
	return checkDot(i)
}
