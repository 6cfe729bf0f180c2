package hlo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Attributes that number dimensions: windows, the labels of convolutions, and the
// dimension numbers of gather and scatter. Each has a table of its fields that
// both reading and printing walk.

// WindowDim is one dimension of the window of a reduce-window, select-and-scatter
// or convolution. Position x of the result and w of the window meet at index
// x·Stride + w·Dilation − PadLow of the operand with BaseDilation−1 zeros (or
// initial values) put between its elements.
type WindowDim struct {
	// Size is the number of elements of the window.
	Size int64
	// Stride is the distance between positions, ≥ 1.
	Stride int64
	// PadLow and PadHigh are the elements of padding before and after the
	// operand; they crop it when negative.
	PadLow, PadHigh int64
	// BaseDilation is lhs_dilate=: the distance that neighbours of the operand
	// are spread to, ≥ 1.
	BaseDilation int64
	// Dilation is rhs_dilate=: the distance between neighbours of the window, ≥ 1.
	Dilation int64
	// Reversed is rhs_reversal=: the kernel of a convolution is read backwards.
	Reversed bool
}

// Span is the number of indices from the first to the last element of the
// window, 0 for an empty one.
func (w WindowDim) Span() int64 {
	if w.Size == 0 {
		return 0
	}
	return (w.Size-1)*w.Dilation + 1
}

// Padded is the extent an operand of extent n has after dilation and padding.
func (w WindowDim) Padded(n int64) int64 {
	return w.PadLow + w.PadHigh + n +
		max(0, n-1)*(w.BaseDilation-1)
}

// Positions is the number of places the window has over an operand of extent n.
func (w WindowDim) Positions(n int64) int64 {
	padded := w.Padded(n)
	if w.Span() == 0 || padded < w.Span() {
		return 0
	}
	return (padded-w.Span())/w.Stride + 1
}

// A windowField is a word of window={…}.
type windowField struct {
	name string
	set  func(w *WindowDim, text string) error
	// append appends the value in one dimension, nothing for one that is left out.
	append func(b []byte, w *WindowDim) []byte
}

// windowFields are the words of window={…} in the order they are printed.
var windowFields = []windowField{
	{
		"size",
		func(w *WindowDim, t string) error { return setInt(&w.Size, t) },
		func(b []byte, w *WindowDim) []byte { return strconv.AppendInt(b, w.Size, 10) },
	},
	{
		"stride",
		func(w *WindowDim, t string) error { return setInt(&w.Stride, t) },
		func(b []byte, w *WindowDim) []byte { return appendUnlessOne(b, w.Stride) },
	},
	{"pad", setWindowPad, appendWindowPad},
	{
		"lhs_dilate",
		func(w *WindowDim, t string) error { return setInt(&w.BaseDilation, t) },
		func(b []byte, w *WindowDim) []byte { return appendUnlessOne(b, w.BaseDilation) },
	},
	{
		"rhs_dilate",
		func(w *WindowDim, t string) error { return setInt(&w.Dilation, t) },
		func(b []byte, w *WindowDim) []byte { return appendUnlessOne(b, w.Dilation) },
	},
	{"rhs_reversal", setWindowReversal, appendWindowReversal},
}

// setWindowReversal reads 1 or true.
func setWindowReversal(w *WindowDim, text string) error {
	w.Reversed = text == "1" || text == "true"
	return nil
}

// appendWindowReversal prints 1 for a reversed dimension.
func appendWindowReversal(b []byte, w *WindowDim) []byte {
	if w.Reversed {
		return append(b, '1')
	}
	return b
}

// appendWindowPad prints low_high, nothing where there is no padding.
func appendWindowPad(b []byte, w *WindowDim) []byte {
	if w.PadLow == 0 && w.PadHigh == 0 {
		return b
	}
	b = strconv.AppendInt(b, w.PadLow, 10)
	b = append(b, '_')
	return strconv.AppendInt(b, w.PadHigh, 10)
}

// windowDefaults are the words for fields that are left out in one dimension only.
var windowDefaults = map[string]string{
	"stride":       "1",
	"pad":          "0_0",
	"lhs_dilate":   "1",
	"rhs_dilate":   "1",
	"rhs_reversal": "0",
}

// appendUnlessOne prints a number that is left out when it is 1.
func appendUnlessOne(b []byte, v int64) []byte {
	if v == 1 {
		return b
	}
	return strconv.AppendInt(b, v, 10)
}

// setInt reads a number of at most 32 bits into to.
func setInt(to *int64, text string) (err error) {
	if *to, err = strconv.ParseInt(text, 10, 32); err != nil {
		return fmt.Errorf("%q is not an integer", text)
	}
	return nil
}

// setWindowPad reads low_high.
func setWindowPad(w *WindowDim, text string) error {
	low, high, ok := strings.Cut(text, "_")
	if !ok {
		return fmt.Errorf("%q is not low_high", text)
	}
	if err := setInt(&w.PadLow, low); err != nil {
		return err
	}
	return setInt(&w.PadHigh, high)
}

// parseWindow reads {size=3x3 stride=2x2 pad=1_1x0_0 lhs_dilate=… rhs_dilate=… rhs_reversal=1x0}.
func parseWindow(a *Attrs, text string) error {
	inner, ok := unbrace(text)
	if !ok {
		return fmt.Errorf("expected {size=…}, found %q", text)
	}
	a.Window = []WindowDim{}
	for n, word := range strings.Fields(inner) {
		name, list, _ := strings.Cut(word, "=")
		dims := strings.Split(list, "x")
		if n == 0 {
			for range dims {
				a.Window = append(a.Window, WindowDim{
					Stride:       1,
					BaseDilation: 1,
					Dilation:     1,
				})
			}
		}
		if len(dims) != len(a.Window) {
			return fmt.Errorf(
				"%s has %d dimensions, the window has %d", name, len(dims), len(a.Window),
			)
		}
		if err := setWindowField(a.Window, name, dims); err != nil {
			return err
		}
	}
	return nil
}

// setWindowField sets one word of window={…} in every dimension.
func setWindowField(window []WindowDim, name string, dims []string) error {
	for _, f := range windowFields {
		if f.name != name {
			continue
		}
		for k, text := range dims {
			if err := f.set(&window[k], text); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("a window has no %q", name)
}

// appendWindow prints window={…} with the words that differ from their default
// in some dimension; the others are left out.
func appendWindow(b []byte, a *Attrs) []byte {
	b = append(b, '{')
	first := len(b)
	for k := range windowFields {
		f := &windowFields[k]
		before := len(b)
		if before > first {
			b = append(b, ' ')
		}
		b = append(b, f.name...)
		b = append(b, '=')
		var differs bool
		if b, differs = f.appendDims(b, a.Window); !differs {
			b = b[:before]
		}
	}
	return append(b, '}')
}

// appendDims prints the values in all dimensions, and reports whether one of them is
// not the default.
func (f *windowField) appendDims(b []byte, window []WindowDim) (text []byte, differs bool) {
	for k := range window {
		if k > 0 {
			b = append(b, 'x')
		}
		before := len(b)
		b = f.append(b, &window[k])
		if len(b) == before {
			b = append(b, windowDefaults[f.name]...)
		} else {
			differs = true
		}
	}
	return b, differs
}

// ConvDims names the dimensions of a convolution: dim_labels=b01f_01io->b01f.
type ConvDims struct {
	InBatch, InFeature   int64
	InSpatial            []int64
	KernelIn, KernelOut  int64
	KernelSpatial        []int64
	OutBatch, OutFeature int64
	OutSpatial           []int64
}

// parseDimLabels reads input_kernel->output; b batch, f feature, i and o the
// kernel's input and output feature, digits the spatial dimensions in order.
func parseDimLabels(a *Attrs, text string) error {
	sides, out, ok := strings.Cut(text, "->")
	in, kernel, ok2 := strings.Cut(sides, "_")
	if !ok || !ok2 {
		return fmt.Errorf("%q is not like b01f_01io->b01f", text)
	}
	c := &ConvDims{}
	var err error
	c.InBatch, c.InFeature, c.InSpatial, err = labels(in, 'b', 'f')
	if err != nil {
		return err
	}
	c.KernelIn, c.KernelOut, c.KernelSpatial, err = labels(kernel, 'i', 'o')
	if err != nil {
		return err
	}
	c.OutBatch, c.OutFeature, c.OutSpatial, err = labels(out, 'b', 'f')
	if err != nil {
		return err
	}
	if len(c.InSpatial) != len(c.KernelSpatial) ||
		len(c.InSpatial) != len(c.OutSpatial) {
		return fmt.Errorf("%q has different numbers of spatial dimensions", text)
	}
	a.Conv = c
	return nil
}

// labels reads one part of dim_labels: the positions of the two letters and of
// the spatial digits in text.
func labels(text string, first, second byte) (x, y int64, spatial []int64, err error) {
	x, y = -1, -1
	spatial = make([]int64, max(0, len(text)-2))
	seen := 0
	for k := range len(text) {
		switch c := text[k]; {
		case c == first && x < 0:
			x = int64(k)
		case c == second && y < 0:
			y = int64(k)
		case '0' <= c &&
			int(c-'0') < len(spatial) &&
			seen&(1<<(c-'0')) == 0:
			spatial[c-'0'] = int64(k)
			seen |= 1 << (c - '0')
		default:
			return 0, 0, nil, fmt.Errorf("dim_labels has %q; each of %c, %c and the spatial digits stands in it once", text, first, second)
		}
	}
	if x < 0 || y < 0 {
		return 0, 0, nil, fmt.Errorf("dim_labels has %q; each of %c, %c and the spatial digits stands in it once", text, first, second)
	}
	return x, y, spatial, nil
}

// appendDimLabels is the inverse of parseDimLabels.
func appendDimLabels(b []byte, a *Attrs) []byte {
	c := a.Conv
	b = appendLabel(b, c.InBatch, c.InFeature, c.InSpatial, "bf")
	b = append(b, '_')
	b = appendLabel(b, c.KernelIn, c.KernelOut, c.KernelSpatial, "io")
	b = append(b, "->"...)
	return appendLabel(b, c.OutBatch, c.OutFeature, c.OutSpatial, "bf")
}

// appendLabel prints one part of dim_labels: the two letters at dimensions x and y,
// digits at the spatial ones.
func appendLabel(b []byte, x, y int64, spatial []int64, letters string) []byte {
	at := int64(len(b))
	for range len(spatial) + 2 {
		b = append(b, ' ')
	}
	b[at+x] = letters[0]
	b[at+y] = letters[1]
	for k, d := range spatial {
		b[at+d] = byte('0' + k)
	}
	return b
}

// GatherDims are the dimension numbers of a gather. Result dimensions in
// OffsetDims walk a slice of the operand, the others (batch dimensions) walk
// the start indices without IndexVector. Component k of an index vector is the
// start along operand dimension StartIndexMap[k], clamped so that the slice
// stays inside.
type GatherDims struct {
	// OffsetDims are the dimensions of the result that walk a slice.
	OffsetDims []int64
	// CollapsedSliceDims are dimensions of the operand along which slices have one
	// element and which the result does not have.
	CollapsedSliceDims []int64
	// OperandBatching and IndicesBatching are operand_batching_dims= and
	// start_indices_batching_dims=, in pairs: the index along one is that along
	// the other.
	OperandBatching []int64
	IndicesBatching []int64
	// StartIndexMap gives for each component of an index vector the dimension of
	// the operand that it is a start along.
	StartIndexMap []int64
	// IndexVectorDim is the dimension of the indices along which an index vector
	// is stored; their rank when index vectors are scalars.
	IndexVectorDim int64
	// SliceSizes are the extents of a slice, one for each operand dimension.
	SliceSizes []int64
}

// ScatterDims are the dimension numbers of a scatter. An update is combined
// with the operand's element at the index vector plus its place in the window;
// updates that fall outside are dropped whole.
type ScatterDims struct {
	// UpdateWindow is update_window_dims=: the dimensions of the updates that walk
	// a window of the operand.
	UpdateWindow []int64
	// InsertedWindow is inserted_window_dims=: dimensions of the operand along
	// which windows have one element and which the updates do not have.
	InsertedWindow []int64
	// InputBatching and IndicesBatching are input_batching_dims= and
	// scatter_indices_batching_dims=, in pairs.
	InputBatching   []int64
	IndicesBatching []int64
	// ToOperand is scatter_dims_to_operand_dims=: for each component of an index
	// vector the dimension of the operand.
	ToOperand []int64
	// IndexVectorDim is as in GatherDims.
	IndexVectorDim int64
}

// A indexingAttrRow is one attribute of gather or scatter.
type indexingAttrRow struct {
	op    Opcode
	name  string
	field func(*Attrs) *[]int64
}

// gatherOf returns the dimension numbers of a gather, made when the first of
// its attributes is read.
func gatherOf(a *Attrs) *GatherDims {
	if a.Gather == nil {
		a.Gather = &GatherDims{}
	}
	return a.Gather
}

// scatterOf returns the dimension numbers of a scatter, made when the first of
// its attributes is read.
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

// setIndexingAttr sets an attribute of gather or scatter; handled reports whether it is one.
func setIndexingAttr(i *Instr, name, text string) (handled bool, err error) {
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

// batchingAttrs are attributes of gather and scatter that are printed only where they
// have some dimensions.
var batchingAttrs = map[string]bool{
	"operand_batching_dims": true, "start_indices_batching_dims": true,
	"input_batching_dims": true, "scatter_indices_batching_dims": true,
}

// appendIndexingAttrs prints the attributes of gather and scatter; batching dimensions
// only when there are some.
func (i *Instr) appendIndexingAttrs(b []byte) []byte {
	if i.Attrs.Gather == nil && i.Attrs.Scatter == nil {
		return b
	}
	for _, row := range indexingAttrTable {
		if row.op != i.Op {
			continue
		}
		v := *row.field(&i.Attrs)
		if len(v) > 0 || !batchingAttrs[row.name] {
			b = append(appendInts(append(beginAttr(b, row.name), '{'), v), '}')
		}
	}
	at := int64(0)
	if i.Op == OpGather {
		at = i.Attrs.Gather.IndexVectorDim
	} else {
		at = i.Attrs.Scatter.IndexVectorDim
	}
	return strconv.AppendInt(beginAttr(b, "index_vector_dim"), at, 10)
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
