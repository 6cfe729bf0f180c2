package hlo

import (
	"fmt"
	"slices"
	"strings"
)

// Lowerings of constants, data movement, comparisons, contractions, reductions and
// indexing. A lowering reads the attributes of an operation under the names of the
// pretty and of the generic form, makes the instruction, and leaves all checks of
// shapes to the shape rules, which run over the finished module.

// lowerConstant reads the value from the pretty form, or from value = dense<…>
// of the generic one.
func lowerConstant(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	if o.literal == nil {
		s, ok := o.attrs.find("value")
		if !ok {
			return nil, m.Fail(o.at, "%s needs value = dense<…>", o.name)
		}
		err := m.within(s, func() error {
			return m.elements(o)
		})
		if err != nil {
			return nil, err
		}
	}
	if len(o.types) != 1 ||
		!o.types[0].Compatible(o.literal.Shape) {
		return nil, m.Fail(
			o.at, "a constant of %s has another type", o.literal.Shape,
		)
	}
	return m.constantOf(
		b, o.at, o.instrName(OpConstant),
		o.literal, o.splat,
	), nil
}

// constantOf is a constant, or the broadcast of a scalar one where all
// elements are alike, which is how XLA writes it too.
func (m *mlir) constantOf(b *block, at position, name string, l *Literal, splat bool) *Instr {
	shape := l.Shape
	n := shape.Elements()
	if shape.open() || n > 1 && (splat || l.uniform()) {
		scalar := m.add(
			b, at, name+".scalar", OpConstant,
			Shape{DType: shape.DType},
		)
		scalar.Literal = l.first()
		return m.broadcastScalar(b, at, name, scalar, shape)
	}
	i := m.add(b, at, name, OpConstant, shape)
	if i.Literal = l; shape.Elements() == 0 {
		i.Literal = &Literal{Shape: shape}
	}
	return i
}

// broadcastScalar broadcasts a scalar.
func (m *mlir) broadcastScalar(b *block, at position, name string, scalar *Instr, shape Shape) *Instr {
	i := m.add(
		b, at, name, OpBroadcast,
		Shape{DType: scalar.Shape.DType, Dims: shape.Dims},
		scalar,
	)
	i.Attrs.Dimensions = []int64{}
	return i
}

// lowerIota reads dim = d.
func lowerIota(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	d, err := m.needInt(o, 0, "dim", "iota_dimension")
	i := m.result(b, o, OpIota)
	i.Attrs.IotaDim = d
	return i, err
}

// lowerBroadcast reads sizes = [2, 3], which become dimensions in front of the
// operand's.
func lowerBroadcast(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	sizes, err := m.needInts(o, "sizes", "broadcast_sizes")
	if err != nil {
		return nil, err
	}
	i := m.result(b, o, OpBroadcast, o.operands...)
	i.Attrs.Dimensions = []int64{}
	for k := range o.operands[0].Shape.Dims {
		i.Attrs.Dimensions = append(
			i.Attrs.Dimensions, int64(len(sizes)+k),
		)
	}
	return i, nil
}

// lowerBroadcastInDim drops dimensions of extent 1 that grow, which HLO's
// broadcast cannot do. The second operand of dynamic_broadcast_in_dim is the extents.
func lowerBroadcastInDim(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	dims, err := m.needInts(o, "dims", "broadcast_dimensions")
	if err != nil {
		return nil, err
	}
	i, err := m.broadcast(
		b, o, o.operands[0],
		o.types[0], dims,
	)
	if err == nil && len(o.operands) > 1 {
		m.numbers[i] = slices.Clone(o.operands[1:])
	}
	return i, err
}

// broadcast is x with its dimension k as dimension dims[k] of to. HLO's
// broadcast does not grow dimensions of extent 1: a reshape drops those first, which
// the refinement does where the extents of x are open.
func (m *mlir) broadcast(
	b *block, o *mlirOp, x *Instr,
	to Shape, dims []int64,
) (*Instr, error) {
	if len(dims) != x.Shape.Rank() {
		return nil, m.Fail(
			o.at, "broadcast of %s needs %d dimensions, has %d",
			x.Shape, x.Shape.Rank(), len(dims),
		)
	}
	small := Shape{DType: x.Shape.DType}
	kept := []int64{}
	for k, d := range dims {
		if d < 0 || d >= int64(to.Rank()) {
			return nil, m.Fail(o.at, "broadcast to %s has dimension %d", to, d)
		}
		if x.Shape.Dims[k] == 1 && to.Dims[d] != 1 && !x.Shape.open() {
			continue
		}
		small.Dims = append(small.Dims, x.Shape.Dims[k])
		kept = append(kept, d)
	}
	if small.Rank() < x.Shape.Rank() {
		x = m.add(
			b, o.at,
			o.instrName(OpBroadcast)+".squeezed", OpReshape, small,
			x,
		)
	}
	i := m.add(
		b, o.at,
		o.instrName(OpBroadcast), OpBroadcast, to, x,
	)
	i.Attrs.Dimensions = kept
	return i, nil
}

// lowerSlice reads [0:4:2, 1:3], or start_indices, limit_indices and strides.
func lowerSlice(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	i := m.result(b, o, OpSlice, o.operands...)
	if s, ok := o.attrs.find("[]"); ok {
		text := strings.Join(strings.Fields(m.text(s)), "")
		return i, m.set(
			i, o, "slice",
			"{["+strings.ReplaceAll(strings.Trim(text, "[]"), ",", "],[")+"]}",
		)
	}
	start, err := m.needInts(o, "start_indices")
	if err != nil {
		return nil, err
	}
	limit, err := m.needInts(o, "limit_indices")
	if err != nil {
		return nil, err
	}
	strides, err := m.someInts(o.attrs, "strides")
	if err != nil || len(limit) != len(start) ||
		strides != nil && len(strides) != len(start) {
		return nil, m.Fail(
			o.at, "slice has %d starts, %d limits and %d strides",
			len(start), len(limit), len(strides),
		)
	}
	for k := range start {
		d := SliceDim{start[k], limit[k], 1}
		if strides != nil {
			d.Stride = strides[k]
		}
		i.Attrs.Slice = append(i.Attrs.Slice, d)
	}
	return i, nil
}

// lowerPad reads the lists low, high and interior, one number for each
// dimension.
func lowerPad(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	var lists [3][]int64
	for k, names := range [][]string{
		{"low", "edge_padding_low"}, {"high", "edge_padding_high"}, {"interior", "interior_padding"},
	} {
		var err error
		if lists[k], err = m.needInts(o, names...); err != nil {
			return nil, err
		}
		if len(lists[k]) != len(lists[0]) {
			return nil, m.Fail(
				o.at, "pad has %d low, %d high and %d interior paddings",
				len(lists[0]),
				len(lists[1]),
				len(lists[2]),
			)
		}
	}
	i := m.result(b, o, OpPad, o.operands...)
	for k := range lists[0] {
		i.Attrs.Padding = append(i.Attrs.Padding, PadDim{
			lists[0][k],
			lists[1][k],
			lists[2][k],
		})
	}
	return i, nil
}

// lowerCompare reads compare LT, %a, %b, FLOAT. The kind of comparison is
// left out where it is the one of the type.
func lowerCompare(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	words := o.words
	if s, ok := o.attrs.find("comparison_direction"); ok {
		words = []string{lastEnumWord(m.text(s))}
		if s, ok := o.attrs.find("compare_type"); ok {
			words = append(words, lastEnumWord(m.text(s)))
		}
	}
	if len(words) == 0 {
		return nil, m.Fail(o.at, "compare needs one of %v", directions)
	}
	i := m.result(b, o, OpCompare, o.operands...)
	i.Attrs.Direction = words[0]
	if len(words) > 1 && words[1] == "TOTALORDER" {
		i.Attrs.CompareType = words[1]
	}
	return i, nil
}

// lowerSelect spreads a scalar condition, as XLA does.
func lowerSelect(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	return m.result(
		b, o, OpSelect,
		m.broadcastOperand(b, o, 0),
		o.operands[1], o.operands[2],
	), nil
}

// lowerClamp spreads scalar bounds, as XLA does.
func lowerClamp(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	return m.result(
		b, o, OpClamp,
		m.broadcastOperand(b, o, 0),
		o.operands[1],
		m.broadcastOperand(b, o, 2),
	), nil
}

// broadcastOperand is operand k, broadcast to the shape of operand 1.
func (m *mlir) broadcastOperand(b *block, o *mlirOp, k int) *Instr {
	x := o.operands[k]
	like := o.operands[1].Shape
	if x.Shape.Rank() > 0 ||
		like.Rank() == 0 ||
		!x.Shape.DType.IsArray() {
		return x
	}
	return m.broadcastScalar(
		b, o.at,
		fmt.Sprintf("%s.%d", o.instrName(OpBroadcast), k),
		x, like,
	)
}

// lowerDot contracts the last dimension of the left with the first of the right side.
func lowerDot(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	i := m.result(b, o, OpDot, o.operands...)
	i.Attrs.LHSContract = []int64{
		int64(o.operands[0].Shape.Rank() - 1),
	}
	i.Attrs.RHSContract = []int64{0}
	return i, m.precision(i, o)
}

// lowerDotGeneral reads batching_dims = [0] x [0], contracting_dims = [2] x
// [1], or dot_dimension_numbers in the generic form, and the precision or
// algorithm.
func lowerDotGeneral(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	i := m.result(b, o, OpDot, o.operands...)
	a := &i.Attrs
	if s, ok := o.attrs.find("dot_dimension_numbers"); ok {
		return i, m.dotNumbers(i, o, s)
	}
	var err error
	if a.LHSBatch, a.RHSBatch, err = m.pairOf(o, "batching_dims"); err != nil {
		return nil, err
	}
	if a.LHSContract, a.RHSContract, err = m.pairOf(o, "contracting_dims"); err != nil {
		return nil, err
	}
	if err := m.precision(i, o); err != nil {
		return nil, err
	}
	return i, m.algorithm(i, o)
}

// dotNumbers reads #stablehlo.dot<lhs_batching_dimensions = [0], …>; lists
// that are left out are empty.
func (m *mlir) dotNumbers(i *Instr, o *mlirOp, s span) error {
	numbers, err := m.sub(s)
	if err != nil {
		return err
	}
	for name, field := range map[string]*[]int64{
		"lhs_batching_dimensions": &i.Attrs.LHSBatch, "rhs_batching_dimensions": &i.Attrs.RHSBatch,
		"lhs_contracting_dimensions": &i.Attrs.LHSContract, "rhs_contracting_dimensions": &i.Attrs.RHSContract,
	} {
		v, err := m.someInts(numbers, name)
		if err != nil {
			return err
		}
		if len(v) > 0 {
			*field = v
		}
	}
	if err := m.precision(i, o); err != nil {
		return err
	}
	return m.algorithm(i, o)
}

// pairOf reads [0] x [1]; nil for empty or absent lists.
func (m *mlir) pairOf(o *mlirOp, name string) (left, right []int64, err error) {
	s, ok := o.attrs.find(name)
	if !ok {
		return nil, nil, nil
	}
	err = m.within(s, func() error {
		if left, err = m.intList(nil, 0); err != nil {
			return err
		}
		if err := m.expect("x"); err != nil {
			return err
		}
		right, err = m.intList(nil, 0)
		return err
	})
	return left, right, err
}

// precision is operand_precision={…}, left out when all of it is the default.
func (m *mlir) precision(i *Instr, o *mlirOp) error {
	s, ok := o.attrs.find("precision", "precision_config")
	if !ok {
		return nil
	}
	var words []string
	for _, item := range splitList(strings.Trim(m.text(s), "[]")) {
		words = append(words, strings.ToLower(lastEnumWord(item)))
	}
	if !slices.ContainsFunc(words, func(w string) bool { return w != "default" }) {
		return nil
	}
	return m.set(
		i, o, "operand_precision",
		"{"+strings.Join(words, ",")+"}",
	)
}

// algorithm is algorithm=dot_tf32_tf32_f32, with the components of _x3 and _x6.
func (m *mlir) algorithm(i *Instr, o *mlirOp) error {
	s, ok := o.attrs.find("algorithm")
	if !ok {
		return nil
	}
	parts, err := m.sub(s)
	if err != nil {
		return err
	}
	word := func(name string) string {
		s, _ := parts.find(name)
		return strings.ToLower(m.text(s))
	}
	text := fmt.Sprintf(
		"dot_%s_%s_%s",
		word("lhs_precision_type"), word("rhs_precision_type"), word("accumulation_type"),
	)
	if n := word("num_primitive_operations"); n != "1" && n != "" {
		text += "_x" + n
	}
	if word("allow_imprecise_accumulation") == "true" {
		text += "_fast_accum"
	}
	return m.set(i, o, "algorithm", text)
}

// apply ties the region of a reduction, sort … to to_apply.
func (m *mlir) apply(
	i *Instr, o *mlirOp, region int,
) (*Instr, error) {
	r := o.regions[region]
	i.Attrs.ToApply = r.comp
	return i, m.checkCaptures(o, r)
}

// lowerReduce reads dimensions = [1]; the region is the computation that
// combines.
func lowerReduce(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	dims, err := m.needInts(o, "dimensions")
	if err != nil {
		return nil, err
	}
	i := m.result(b, o, OpReduce, o.operands...)
	i.Attrs.Dimensions = dims
	return m.apply(i, o, 0)
}

// lowerMap reads dimensions = [0, 1]; the region is the computation of one
// element.
func lowerMap(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	dims, err := m.needInts(o, "dimensions")
	if err != nil {
		return nil, err
	}
	i := m.result(b, o, OpMap, o.operands...)
	i.Attrs.Dimensions = dims
	return m.apply(i, o, 0)
}

// lowerSort reads dimension = d, counted from the end when negative, and
// is_stable; the region compares.
func lowerSort(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	if len(o.operands) == 0 {
		return nil, m.Fail(o.at, "sort needs an operand")
	}
	d, err := m.needInt(o, -1, "dimension")
	if err != nil {
		return nil, err
	}
	if d < 0 {
		d += int64(o.operands[0].Shape.Rank())
	}
	i := m.result(b, o, OpSort, o.operands...)
	i.Attrs.Dimensions = []int64{d}
	if err := m.set(
		i, o, "is_stable",
		trueText(m.flag(o.attrs, "is_stable")),
	); err != nil {
		return nil, err
	}
	return m.apply(i, o, 0)
}

// lowerGetTupleElement reads get_tuple_element %t[1], or index = 1.
func lowerGetTupleElement(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	k, err := m.needInt(o, 0, "[]", "index")
	if err != nil {
		return nil, err
	}
	i := m.result(b, o, OpGetTupleElement, o.operands...)
	i.Attrs.Index = int(k)
	return i, nil
}

// lowerBarrier passes several values as a tuple.
func lowerBarrier(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	if len(o.operands) == 1 {
		return m.result(b, o, OpOptimizationBarrier, o.operands...), nil
	}
	return m.result(
		b, o, OpOptimizationBarrier,
		m.tuple(b, o.at, o.operands),
	), nil
}

// lowerDynamicSlice reads sizes = [1, 8].
func lowerDynamicSlice(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	sizes, err := m.needInts(o, "sizes", "slice_sizes")
	if err != nil {
		return nil, err
	}
	i := m.result(b, o, OpDynamicSlice, o.operands...)
	return m.setAll(i, o, "dynamic_slice_sizes", braces(sizes))
}

// dimensionNumbers prints the lists of #stablehlo.gather<…> and #stablehlo.scatter<…>;
// lists named in optional are left out when they are empty.
func (m *mlir) dimensionNumbers(
	i *Instr, o *mlirOp, attr string, always, optional []string,
) error {
	s, ok := o.attrs.find(attr)
	if !ok {
		return m.Fail(o.at, "%s needs %s =", o.name, attr)
	}
	lists, err := m.sub(s)
	if err != nil {
		return err
	}
	for k, name := range slices.Concat(always, optional) {
		v, err := m.someInts(lists, name)
		if err != nil {
			return err
		}
		if k >= len(always) && len(v) == 0 {
			continue
		}
		if err := m.set(i, o, name, braces(v)); err != nil {
			return err
		}
	}
	vector, err := m.someInts(lists, "index_vector_dim")
	if err != nil || len(vector) > 1 {
		return m.Fail(o.at, "index_vector_dim of %s is one number", o.name)
	}
	return m.set(
		i, o, "index_vector_dim",
		fmt.Sprint(append(vector, 0)[0]),
	)
}

// lowerGather reads dimension_numbers = #stablehlo.gather<…>, slice_sizes and
// indices_are_sorted. The third operand of dynamic_gather is the slice sizes.
func lowerGather(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	i := m.result(b, o, OpGather, o.operands[:2]...)
	sizes := make([]int64, o.operands[0].Shape.Rank())
	err := error(nil)
	if len(o.operands) > 2 {
		m.numbers[i] = slices.Clone(o.operands[2:])
	} else if sizes, err = m.needInts(o, "slice_sizes"); err != nil {
		return nil, err
	}
	err = m.dimensionNumbers(
		i, o, "dimension_numbers", []string{"offset_dims", "collapsed_slice_dims", "start_index_map"},
		[]string{"operand_batching_dims", "start_indices_batching_dims"},
	)
	if err != nil {
		return nil, err
	}
	return m.setAll(
		i, o, "slice_sizes", braces(sizes), "indices_are_sorted",
		trueText(m.flag(o.attrs, "indices_are_sorted")),
	)
}

// lowerScatter reads scatter_dimension_numbers = #stablehlo.scatter<…> and the
// promises on indices; the region combines.
func lowerScatter(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	i := m.result(b, o, OpScatter, o.operands...)
	err := m.dimensionNumbers(
		i, o, "scatter_dimension_numbers", []string{"update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims"},
		[]string{"input_batching_dims", "scatter_indices_batching_dims"},
	)
	if err != nil {
		return nil, err
	}
	if _, err := m.setAll(
		i, o, "indices_are_sorted",
		trueText(m.flag(o.attrs, "indices_are_sorted")),
		"unique_indices", trueText(m.flag(o.attrs, "unique_indices")),
	); err != nil {
		return nil, err
	}
	return m.apply(i, o, 0)
}
