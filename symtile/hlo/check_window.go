package hlo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// checkWindow reports what is wrong with a window; rank is how many dimensions it needs.
func checkWindow(i *Instr, rank int) error {
	if len(i.Attrs.Window) != rank {
		return fmt.Errorf(
			"%s needs a window of %d dimensions, has %d", i.Op, rank, len(i.Attrs.Window),
		)
	}
	for k, w := range i.Attrs.Window {
		if w.Size < 0 || w.Stride < 1 ||
			w.BaseDilation < 1 || w.Dilation < 1 {
			return fmt.Errorf(
				"dimension %d of the window has size %d, stride %d, dilations %d and %d; sizes are not negative and the others at least 1",
				k, w.Size, w.Stride,
				w.BaseDilation, w.Dilation,
			)
		}
	}
	return nil
}

// checkReduceWindow: each dimension of the result has as many elements as the
// window has positions along that of the operands.
//
// f32[8] by a window of size 3 and stride 2 is f32[3].
func checkReduceWindow(i *Instr) error {
	first := i.Operands[0].Shape
	if err := checkWindow(i, first.Rank()); err != nil {
		return err
	}
	dims := make([]int64, first.Rank())
	for k, w := range i.Attrs.Window {
		dims[k] = w.Positions(first.Dims[k])
	}
	return checkReduction(i, dims)
}

// checkSelectAndScatter: the source has the shape of the window's positions in
// the operand, the result that of the operand.
func checkSelectAndScatter(i *Instr) error {
	x := i.Operands[0].Shape
	source := i.Operands[1].Shape
	init := i.Operands[2].Shape
	if i.Attrs.Select == nil ||
		i.Attrs.ToApply == nil ||
		len(i.Attrs.Select.Params) != 2 ||
		len(i.Attrs.ToApply.Params) != 2 {
		return fmt.Errorf("select-and-scatter needs select= and scatter=, computations of 2 parameters")
	}
	if err := checkWindow(i, x.Rank()); err != nil {
		return err
	}
	dims := make([]int64, x.Rank())
	for k, w := range i.Attrs.Window {
		dims[k] = w.Positions(x.Dims[k])
	}
	want := (Shape{DType: x.DType, Dims: dims})
	if !source.Compatible(want) ||
		init.Rank() != 0 || init.DType != x.DType {
		return fmt.Errorf(
			"the source is %s and the initial value %s; for this window over %s they would be %s and a scalar of its type",
			withoutLayout(source), withoutLayout(init), withoutLayout(x), want,
		)
	}
	selects := i.Attrs.Select
	r := selects.Root.Shape
	if r.DType != Pred || r.Rank() != 0 ||
		!selects.Params[0].Shape.isScalarOf(x.DType) ||
		!selects.Params[1].Shape.isScalarOf(x.DType) {
		return fmt.Errorf(
			"%s selects with %s, which must take two elements of %s and give pred[]",
			i.Op, selects.Name, withoutLayout(x),
		)
	}
	if err := checkReducer(i, []Shape{x}); err != nil {
		return err
	}
	return expectShape(i, x.DType, x.Dims)
}

// Groups are the feature and batch group counts of a convolution, at least 1.
func (a *Attrs) Groups() (feature, batch int64) {
	return max(1, a.FeatureGroups), max(1, a.BatchGroups)
}

// checkConvolution: the result has the batch of the input over the batch
// groups, the output features of the kernel, and along spatial dimensions as
// many elements as the window has positions. The window's sizes are the
// kernel's spatial extents; feature groups divide the input's features, and
// both kinds of groups the kernel's output features. XLA allows one kind of
// groups at a time.
//
// f32[1,8,8,3] by f32[3,3,3,16], b01f_01io->b01f, is f32[1,6,6,16].
func checkConvolution(i *Instr) error {
	c := i.Attrs.Conv
	x := i.Operands[0].Shape
	k := i.Operands[1].Shape
	if c == nil {
		return fmt.Errorf("convolution needs dim_labels=")
	}
	rank := len(c.InSpatial) + 2
	if x.Rank() != rank || k.Rank() != rank {
		return fmt.Errorf(
			"convolution of %s with %s; dim_labels has %d dimensions",
			withoutLayout(x), withoutLayout(k), rank,
		)
	}
	if len(i.Attrs.Window) == 0 && rank == 2 {
		i.Attrs.Window = nil
	} else if err := checkWindow(i, rank-2); err != nil {
		return err
	}
	feature, batch := i.Attrs.Groups()
	if feature > 1 && batch > 1 ||
		x.Dims[c.InFeature]%feature != 0 ||
		x.Dims[c.InBatch]%batch != 0 ||
		k.Dims[c.KernelOut]%(feature*batch) != 0 {
		return fmt.Errorf(
			"%d feature and %d batch groups do not divide %s and %s",
			feature, batch, withoutLayout(x), withoutLayout(k),
		)
	}
	if x.Dims[c.InFeature]/feature != k.Dims[c.KernelIn] {
		return fmt.Errorf(
			"the input has %d features in %d groups, the kernel takes %d",
			x.Dims[c.InFeature], feature,
			k.Dims[c.KernelIn],
		)
	}
	dims := make([]int64, rank)
	dims[c.OutBatch], dims[c.OutFeature] = x.Dims[c.InBatch]/batch,
		k.Dims[c.KernelOut]
	for d, w := range i.Attrs.Window {
		if w.Size != k.Dims[c.KernelSpatial[d]] {
			return fmt.Errorf(
				"dimension %d of the window has size %d, the kernel %d",
				d, w.Size,
				k.Dims[c.KernelSpatial[d]],
			)
		}
		dims[c.OutSpatial[d]] = w.Positions(
			x.Dims[c.InSpatial[d]],
		)
	}
	return expectShape(i, i.Shape.DType, dims)
}

// checkStarts reports what is wrong with the start indices of a dynamic-slice or
// dynamic-update-slice: scalars, one a dimension, or one array of them.
func checkStarts(i *Instr, starts []*Instr, rank int) error {
	if len(starts) == 1 &&
		starts[0].Shape.Rank() == 1 &&
		starts[0].Shape.DType.IsInteger() {
		if starts[0].Shape.Dims[0] != int64(rank) {
			return fmt.Errorf(
				"%s of rank %d has %d start indices", i.Op, rank,
				starts[0].Shape.Dims[0],
			)
		}
		return nil
	}
	if len(starts) != rank {
		return fmt.Errorf("%s of rank %d has %d start indices", i.Op, rank, len(starts))
	}
	for _, s := range starts {
		if s.Shape.Rank() != 0 ||
			!s.Shape.DType.IsInteger() {
			return fmt.Errorf("start index %s is %s; it must be an integer scalar", s.Name, withoutLayout(s.Shape))
		}
	}
	return nil
}

// checkDynamicSlice: dynamic_slice_sizes are the extents of the result, and do
// not exceed the operand's.
//
// f32[8,16] by sizes {2,4} is f32[2,4].
func checkDynamicSlice(i *Instr) error {
	from := i.Operands[0].Shape
	sizes := i.Attrs.SliceSizes
	err := checkStarts(i, i.Operands[1:], from.Rank())
	if err != nil {
		return err
	}
	if len(sizes) != from.Rank() {
		return fmt.Errorf(
			"dynamic-slice of %s needs %d sizes, has %d",
			withoutLayout(from), from.Rank(), len(sizes),
		)
	}
	for k, n := range sizes {
		if n < 0 || n > from.Dims[k] {
			return fmt.Errorf("slice size %d of dimension %d, which has extent %d", n, k, from.Dims[k])
		}
	}
	return expectShape(i, from.DType, sizes)
}

// checkDynamicUpdateSlice: the result has the shape of operand 0, and the
// update, operand 1, fits into it.
func checkDynamicUpdateSlice(i *Instr) error {
	base := i.Operands[0].Shape
	update := i.Operands[1].Shape
	err := checkStarts(i, i.Operands[2:], base.Rank())
	if err != nil {
		return err
	}
	if update.Rank() != base.Rank() ||
		update.DType != base.DType {
		return fmt.Errorf("updates %s with %s", withoutLayout(base), withoutLayout(update))
	}
	for k, n := range update.Dims {
		if n > base.Dims[k] {
			return fmt.Errorf("the update has extent %d in dimension %d, the operand %d", n, k, base.Dims[k])
		}
	}
	return expectShape(i, base.DType, base.Dims)
}

// checkGather: result dimensions offset_dims= have the slice sizes of the
// operand dimensions that are neither collapsed nor batched, in order; the
// others have the extents of the indices without the dimension of index
// vectors. Slices of collapsed and batched dimensions have one element.
//
// Rows of an embedding f32[1000,64] at s32[32,1] are f32[32,64]: offset_dims={1},
// collapsed_slice_dims={0}, slice_sizes={1,64}.
func checkGather(i *Instr) error {
	g := i.Attrs.Gather
	from := i.Operands[0].Shape
	indices := i.Operands[1].Shape
	if g == nil || len(g.SliceSizes) != from.Rank() {
		return fmt.Errorf("gather of %s needs %d slice_sizes", withoutLayout(from), from.Rank())
	}
	if g.IndexVectorDim < 0 ||
		g.IndexVectorDim > int64(indices.Rank()) {
		return fmt.Errorf("index_vector_dim=%d of %s", g.IndexVectorDim, withoutLayout(indices))
	}
	components, batch := indexVectors(indices, g.IndexVectorDim)
	if components != int64(len(g.StartIndexMap)) {
		return fmt.Errorf("index vectors have %d components, start_index_map %d", components, len(g.StartIndexMap))
	}
	if err := checkIndices(
		indices, g.IndexVectorDim, from, g.OperandBatching, g.IndicesBatching,
	); err != nil {
		return err
	}
	if err := checkDimensionList(
		"start_index_map=",
		slices.Concat(g.StartIndexMap, g.OperandBatching),
		from.Rank(),
	); err != nil {
		return err
	}
	if err := checkDimensionList(
		"collapsed_slice_dims=",
		slices.Concat(g.CollapsedSliceDims, g.OperandBatching),
		from.Rank(),
	); err != nil {
		return err
	}
	resultRank := i.Shape.Rank()
	if i.Shape.DType == InvalidDType {
		resultRank = len(batch) + len(g.OffsetDims)
	}
	if err := checkDimensionList("offset_dims=", g.OffsetDims, resultRank); err != nil {
		return err
	}
	var window []int64
	for d, n := range g.SliceSizes {
		dropped := slices.Contains(g.CollapsedSliceDims, int64(d)) ||
			slices.Contains(g.OperandBatching, int64(d))
		if n < 0 || n > from.Dims[d] || dropped && n != 1 {
			return fmt.Errorf("slice size %d of dimension %d, which has extent %d", n, d, from.Dims[d])
		}
		if !dropped {
			window = append(window, n)
		}
	}
	if len(g.OffsetDims) != len(window) ||
		resultRank != len(window)+len(batch) {
		return fmt.Errorf(
			"gather of slices with %d dimensions at indices with %d, and %d offset_dims, is not %s",
			len(window), len(batch),
			len(g.OffsetDims), withoutLayout(i.Shape),
		)
	}
	return expectShape(
		i,
		from.DType,
		interleave(resultRank, g.OffsetDims, window, batch),
	)
}

// checkIndices reports what is wrong with the indices of a gather or scatter and
// with the dimensions of the operand and the indices that are batched together.
func checkIndices(indices Shape, vector int64, operand Shape, operandBatching, batching []int64) error {
	if !indices.DType.IsInteger() {
		return fmt.Errorf("the indices are %s; they must be integers", withoutLayout(indices))
	}
	if err := checkDimensionList("the operand's batching", operandBatching, operand.Rank()); err != nil {
		return err
	}
	if err := checkDimensionList("the indices' batching", batching, indices.Rank()); err != nil {
		return err
	}
	if len(operandBatching) != len(batching) ||
		slices.Contains(batching, vector) {
		return fmt.Errorf("the operand has batching dimensions %v, the indices %v, with index vectors along %d", operandBatching, batching, vector)
	}
	for k, d := range operandBatching {
		if operand.Dims[d] != indices.Dims[batching[k]] {
			return fmt.Errorf(
				"dimension %d of %s and dimension %d of the indices %s are batched and have different extents",
				d, withoutLayout(operand), batching[k], withoutLayout(indices),
			)
		}
	}
	return nil
}

// interleave puts window at dims of the rank and batch elsewhere, in order; it
// is nil when the numbers do not fit.
func interleave(rank int, dims, window, batch []int64) []int64 {
	if len(dims) != len(window) ||
		rank != len(window)+len(batch) {
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

// checkScatter: the result has the shapes of the operands. Update dimensions
// update_window_dims= are windows in the operand dimensions that are neither
// inserted nor batched; the others have the extents of the indices without the
// dimension of index vectors.
//
// Gradients f32[32,64] go to the rows of f32[1000,64] at s32[32,1] by
// update_window_dims={1} and inserted_window_dims={0}.
func checkScatter(i *Instr) error {
	s := i.Attrs.Scatter
	n := len(i.Operands) / 2
	if s == nil || len(i.Operands)%2 != 1 || n == 0 {
		return fmt.Errorf("scatter has operands, indices and as many updates; it has %d arguments", len(i.Operands))
	}
	if err := i.checkToApply(2 * n); err != nil {
		return err
	}
	base := i.Operands[0].Shape
	indices := i.Operands[n].Shape
	updates := i.Operands[n+1].Shape
	if s.IndexVectorDim < 0 ||
		s.IndexVectorDim > int64(indices.Rank()) {
		return fmt.Errorf("index_vector_dim=%d of %s", s.IndexVectorDim, withoutLayout(indices))
	}
	components, batch := indexVectors(indices, s.IndexVectorDim)
	if err := checkIndices(
		indices, s.IndexVectorDim, base, s.InputBatching, s.IndicesBatching,
	); err != nil {
		return err
	}
	if components != int64(len(s.ToOperand)) {
		return fmt.Errorf("index vectors have %d components, scatter_dims_to_operand_dims %d", components, len(s.ToOperand))
	}
	for _, list := range [][]int64{slices.Concat(
		s.ToOperand, s.InputBatching,
	), slices.Concat(s.InsertedWindow, s.InputBatching)} {
		if err := checkDimensionList("scatter", list, base.Rank()); err != nil {
			return err
		}
	}
	if err := checkDimensionList("update_window_dims=", s.UpdateWindow, updates.Rank()); err != nil {
		return err
	}
	var window []int64
	for _, d := range s.UpdateWindow {
		window = append(window, updates.Dims[d])
	}
	if len(window)+
		len(s.InsertedWindow)+
		len(s.InputBatching) != base.Rank() {
		return fmt.Errorf(
			"update windows of %d dimensions, %d of them inserted, do not make the rank of %s",
			len(window),
			len(s.InsertedWindow)+len(s.InputBatching),
			withoutLayout(base),
		)
	}
	if updates.Rank() != len(window)+len(batch) {
		return fmt.Errorf(
			"the updates are %s; windows of %d dimensions at indices with %d have another rank",
			withoutLayout(updates), len(window), len(batch),
		)
	}
	want := interleave(updates.Rank(), s.UpdateWindow, window, batch)
	if !slices.Equal(want, updates.Dims) {
		return fmt.Errorf(
			"the updates are %s; with indices %s they would be %v",
			withoutLayout(updates), withoutLayout(indices), want,
		)
	}
	if err := checkUpdateBounds(s, base, window); err != nil {
		return err
	}
	return checkScatterOperands(i, n)
}

// checkUpdateBounds reports which extent of the update window exceeds the operand's.
func checkUpdateBounds(s *ScatterDims, base Shape, window []int64) error {
	for d, extent := range base.Dims {
		if slices.Contains(s.InsertedWindow, int64(d)) ||
			slices.Contains(s.InputBatching, int64(d)) {
			continue
		}
		if window[0] > extent {
			return fmt.Errorf("the update window has extent %d along dimension %d, the operand %d", window[0], d, extent)
		}
		window = window[1:]
	}
	return nil
}

// checkScatterOperands: n operands, the indices, n updates; the operands have
// one shape but for their types, and so do the updates.
func checkScatterOperands(i *Instr, n int) error {
	base := i.Operands[0].Shape
	updates := i.Operands[n+1].Shape
	want := make([]Shape, n)
	for k := range n {
		x := i.Operands[k].Shape
		u := i.Operands[n+1+k].Shape
		if !x.SameDims(base) ||
			!u.SameDims(updates) || x.DType != u.DType {
			return fmt.Errorf("scatters %s into %s", withoutLayout(u), withoutLayout(x))
		}
		want[k] = Shape{DType: x.DType, Dims: base.Dims}
	}
	if err := checkReducer(i, want); err != nil {
		return err
	}
	whole := want[0]
	if i.Shape.DType == Tuple || n > 1 {
		whole = Shape{DType: Tuple, Tuple: want}
	}
	if !i.Shape.Compatible(whole) {
		return wrongShape(whole, "scatter of these operands is %s, not %s", whole, withoutLayout(i.Shape))
	}
	return nil
}

// checkScaledDot: operands l, r and a scale for each; a scale divides every
// dimension of its side into blocks, or is a scalar.
func checkScaledDot(i *Instr) error {
	if !i.Shape.DType.IsFloat() {
		return fmt.Errorf("its result is %s, and products of what scales multiply are floating-point numbers", withoutLayout(i.Shape))
	}
	for k := range 2 {
		side := i.Operands[k].Shape
		scale := i.Operands[k+2].Shape
		if scale.Rank() == 0 {
			continue
		}
		if scale.Rank() != side.Rank() {
			return fmt.Errorf("the scale of %s is %s", withoutLayout(side), withoutLayout(scale))
		}
		for d, n := range scale.Dims {
			if n == 0 || side.Dims[d] < n || side.Dims[d]%n != 0 {
				return fmt.Errorf(
					"the scale %s does not divide dimension %d of %s into blocks",
					withoutLayout(scale), d, withoutLayout(side),
				)
			}
		}
	}
	return checkDot(i)
}

// RaggedDims are the dimension of the left side along which groups of a ragged-dot are, and
// that of the right side which numbers them, if there is one.
func (i *Instr) RaggedDims() (ragged, group []int64) {
	ragged = bracedInts(i.Text("lhs_ragged_dims"))
	return ragged, bracedInts(i.Text("rhs_group_dims"))
}

// bracedInts are the numbers of a list such as {1,2}; those before what is no number.
func bracedInts(text string) (all []int64) {
	text = strings.Trim(text, "{}")
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		v, err := strconv.ParseInt(word, 10, 32)
		if err != nil {
			break
		}
		all = append(all, v)
	}
	return all
}

// checkRaggedDot: operands l and r, and the sizes of groups of l's rows, of what is
// contracted, or of matrices. Sizes that differ between batches are read without a rule.
func checkRaggedDot(i *Instr) error {
	sizes := i.Operands[2].Shape
	ragged, group := i.RaggedDims()
	l, a := i.Operands[0].Shape, i.Attrs
	if !oneDim(ragged, l) {
		return fmt.Errorf(
			"lhs_ragged_dims=%s is not one dimension of %s",
			i.Text("lhs_ragged_dims"), withoutLayout(l),
		)
	}
	if sizes.Rank() == 0 || !sizes.DType.IsInteger() {
		return fmt.Errorf("sizes of groups are integers along a dimension, not %s", withoutLayout(sizes))
	}
	groups := sizes.Dims[sizes.Rank()-1]
	plain := *i
	switch d := ragged[0]; {
	case slices.Contains(a.LHSBatch, d):
	case slices.Contains(a.LHSContract, d):
		// The result has a matrix for each group, in front.
		if i.Shape.Rank() == 0 ||
			len(group) > 0 ||
			i.Shape.Dims[0] != groups {
			return fmt.Errorf(
				"%s has no product for each of %d groups",
				withoutLayout(i.Shape), groups,
			)
		}
		plain.Shape = Shape{
			DType: i.Shape.DType,
			Dims:  i.Shape.Dims[1:],
		}
	default:
		r := i.Operands[1].Shape
		if !oneDim(group, r) ||
			r.Dims[group[0]] != groups {
			return fmt.Errorf(
				"rhs_group_dims=%s is not one dimension of %s of %d groups",
				i.Text("rhs_group_dims"), withoutLayout(r), groups,
			)
		}
		// As a product with an extent of the groups on both sides, which is contracted.
		last := []int64{int64(l.Rank())}
		l.Dims = append(slices.Clone(l.Dims), groups)
		p := &plain.Attrs
		p.LHSContract = slices.Concat(a.LHSContract, last)
		p.RHSContract = slices.Concat(a.RHSContract, group)
		plain.Operands = slices.Clone(i.Operands)
		plain.Operands[0] = &Instr{Shape: l}
	}
	return checkDot(&plain)
}

// oneDim reports whether a list is one dimension of a shape.
func oneDim(list []int64, s Shape) bool {
	return len(list) == 1 && list[0] >= 0 &&
		list[0] < int64(s.Rank())
}

// checkBatchNorm: an array of floating-point numbers, one vector of the extent of the
// feature dimension for each statistic, and, of a gradient, one more array. The results
// are the array and, but for inference, two such vectors. Each may be of another type of
// floating-point numbers, as in XLA.
func checkBatchNorm(i *Instr) error {
	x := i.Operands[0].Shape
	x.Layout = Layout{}
	feature, err := strconv.Atoi(i.Text("feature_index"))
	if err != nil || feature < 0 || feature >= x.Rank() || !x.DType.IsFloat() {
		return fmt.Errorf("feature_index=%q is no dimension of %s, an array of floating-point numbers", i.Text("feature_index"), x)
	}
	if _, err := strconv.ParseFloat(i.Text("epsilon"), 64); err != nil {
		return fmt.Errorf("epsilon=%q is not a number", i.Text("epsilon"))
	}
	one := Shape{DType: x.DType, Dims: x.Dims[feature : feature+1]}
	for k, o := range i.Operands[1:] {
		want := one
		if i.Op == OpBatchNormGrad && k == 3 {
			want = x
		}
		if !o.Shape.compatibleFloats(want) {
			return fmt.Errorf("operand %d of %s is %s; it must be %s", k+1, i.Op, withoutLayout(o.Shape), want)
		}
	}
	want := x
	if i.Op != OpBatchNormInference {
		want = Shape{DType: Tuple, Tuple: []Shape{x, one, one}}
	}
	if !i.Shape.compatibleFloats(want) {
		return wrongShape(want, "%s of these operands is %s, not %s", i.Op, want, withoutLayout(i.Shape))
	}
	return nil
}
