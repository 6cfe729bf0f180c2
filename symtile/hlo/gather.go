package hlo

import (
	"fmt"
	"slices"
	"strconv"
)

// GatherDims are the dimension numbers of a gather. Result dimensions in
// OffsetDims walk a slice of the operand, the others (batch dimensions) walk
// the start indices without IndexVector. Component k of an index vector is the
// start along operand dimension StartIndexMap[k], clamped so that the slice
// stays inside.
type GatherDims struct {
	OffsetDims         []int64
	CollapsedSliceDims []int64
	OperandBatching    []int64 // operand_batching_dims
	IndicesBatching    []int64 // start_indices_batching_dims
	StartIndexMap      []int64
	IndexVectorDim     int64 // the rank of the indices when index vectors are scalars
	SliceSizes         []int64
}

// ScatterDims are the dimension numbers of a scatter. An update is combined
// with the operand's element at the index vector plus its place in the window;
// updates that fall outside are dropped whole.
type ScatterDims struct {
	UpdateWindow    []int64 // update_window_dims
	InsertedWindow  []int64 // inserted_window_dims
	InputBatching   []int64 // input_batching_dims
	IndicesBatching []int64 // scatter_indices_batching_dims
	ToOperand       []int64 // scatter_dims_to_operand_dims
	IndexVectorDim  int64
}

// A indexingAttrRow is one attribute of gather or scatter.
type indexingAttrRow struct {
	op    Opcode
	name  string
	field func(*Attrs) *[]int64
}

func gatherOf(a *Attrs) *GatherDims {
	if a.Gather == nil {
		a.Gather = &GatherDims{}
	}
	return a.Gather
}

func scatterOf(a *Attrs) *ScatterDims {
	if a.Scatter == nil {
		a.Scatter = &ScatterDims{}
	}
	return a.Scatter
}

// indexingAttrTable lists the attributes in the order XLA prints them.
var indexingAttrTable = []indexingAttrRow{
	{OpGather, "offset_dims", func(a *Attrs) *[]int64 { return &gatherOf(a).OffsetDims }},
	{OpGather, "collapsed_slice_dims", func(a *Attrs) *[]int64 { return &gatherOf(a).CollapsedSliceDims }},
	{OpGather, "start_index_map", func(a *Attrs) *[]int64 { return &gatherOf(a).StartIndexMap }},
	{OpGather, "operand_batching_dims", func(a *Attrs) *[]int64 { return &gatherOf(a).OperandBatching }},
	{OpGather, "start_indices_batching_dims", func(a *Attrs) *[]int64 { return &gatherOf(a).IndicesBatching }},
	{OpGather, "slice_sizes", func(a *Attrs) *[]int64 { return &gatherOf(a).SliceSizes }},
	{OpScatter, "update_window_dims", func(a *Attrs) *[]int64 { return &scatterOf(a).UpdateWindow }},
	{OpScatter, "inserted_window_dims", func(a *Attrs) *[]int64 { return &scatterOf(a).InsertedWindow }},
	{OpScatter, "scatter_dims_to_operand_dims", func(a *Attrs) *[]int64 { return &scatterOf(a).ToOperand }},
	{OpScatter, "input_batching_dims", func(a *Attrs) *[]int64 { return &scatterOf(a).InputBatching }},
	{OpScatter, "scatter_indices_batching_dims", func(a *Attrs) *[]int64 { return &scatterOf(a).IndicesBatching }},
}

// setIndexingAttr sets an attribute of gather or scatter; mine says whether it is one.
func setIndexingAttr(i *Instr, name, text string) (mine bool, err error) {
	if name == "index_vector_dim" &&
		(i.Op == OpGather || i.Op == OpScatter) {
		n, err := strconv.ParseInt(text, 10, 32)
		if i.Op == OpGather {
			gatherOf(&i.Attrs).IndexVectorDim = n
		} else {
			scatterOf(&i.Attrs).IndexVectorDim = n
		}
		return true, err
	}
	for _, row := range indexingAttrTable {
		if row.op == i.Op && row.name == name {
			*row.field(&i.Attrs), err = parseInts(text)
			return true, err
		}
	}
	return false, nil
}

// appendIndexingAttrs prints the attributes of gather and scatter; batching dimensions
// only when there are some.
func (i *Instr) appendIndexingAttrs(put func(name, value string)) {
	if i.Attrs.Gather == nil && i.Attrs.Scatter == nil {
		return
	}
	for _, row := range indexingAttrTable {
		if row.op != i.Op {
			continue
		}
		v := *row.field(&i.Attrs)
		if len(v) > 0 ||
			!slices.Contains([]string{"operand_batching_dims", "start_indices_batching_dims", "input_batching_dims", "scatter_indices_batching_dims"}, row.name) {
			put(row.name, "{"+string(appendInts(nil, v))+"}")
		}
	}
	at := int64(0)
	if i.Op == OpGather {
		at = i.Attrs.Gather.IndexVectorDim
	} else {
		at = i.Attrs.Scatter.IndexVectorDim
	}
	put("index_vector_dim", fmt.Sprint(at))
}

// indexVectors is the number of components of an index vector and the extents
// of the indices without them.
func indexVectors(indices Shape, at int64) (components int64, batch []int64) {
	if at == int64(indices.Rank()) {
		return 1, indices.Dims
	}
	return indices.Dims[at], slices.Delete(
		slices.Clone(indices.Dims),
		int(at),
		int(at)+1,
	)
}
