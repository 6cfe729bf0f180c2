package reference

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// Elements of operations whose operand elements are not known from the index alone,
// or lie in a window. Without these rules a gather from a table would load all of it,
// in 8 bytes an element, and a convolution would be computed as a whole for the sake
// of its samples.
//
// Each rule has the semantics of the method of evaluation with its name: starts are
// clamped alike, and sums are made in float64, or in int64 that wraps, and rounded
// once. TestSpotsAreTheReferences compares them bit for bit.

// init adds the rules to elementRules, which they refer to.
func init() {
	elementRules[hlo.OpGather] = (*ElementEvaluator).gather
	elementRules[hlo.OpDynamicSlice] = (*ElementEvaluator).dynamicSlice
	elementRules[hlo.OpDynamicUpdateSlice] = (*ElementEvaluator).dynamicUpdateSlice
	elementRules[hlo.OpConvolution] = (*ElementEvaluator).convolution
	for _, op := range []hlo.Opcode{hlo.OpReduceWindow, hlo.OpScatter} {
		elementRules[op] = func(s *ElementEvaluator, i *hlo.Instr, at int64) (value, error) {
			return s.part(i, 0, at)
		}
	}
}

// gather locates the element as evaluation.gather does.
func (s *ElementEvaluator) gather(
	i *hlo.Instr, at int64,
) (value, error) {
	g := i.Attrs.Gather
	dims := i.Operands[0].Shape.Dims
	index := Unravel(at, i.Shape.Dims)
	window, batch := split(index, g.OffsetDims, nil, nil)
	starts, err := s.gatherStarts(i, batch)
	if err != nil {
		return value{}, err
	}
	// The window lacks these dimensions.
	dropped := slices.Concat(g.CollapsedSliceDims, g.OperandBatching)
	k := 0
	for d, start := range starts {
		starts[d] = clampedStart(start, g.SliceSizes[d], dims[d])
		if !slices.Contains(dropped, int64(d)) {
			starts[d] += window[k]
			k++
		}
	}
	return s.from(i, 0, starts)
}

// gatherStarts is the start along every dimension of the operand of a gather, for an
// index of its batch.
func (s *ElementEvaluator) gatherStarts(
	i *hlo.Instr, batch []int64,
) ([]int64, error) {
	g := i.Attrs.Gather
	starts := make([]int64, i.Operands[0].Shape.Rank())
	index := make([]int64, i.Operands[1].Shape.Rank())
	k := 0
	for d := range index {
		if int64(d) == g.IndexVectorDim {
			continue
		}
		index[d] = batch[k]
		if b := slices.Index(g.IndicesBatching, int64(d)); b >= 0 {
			starts[g.OperandBatching[b]] = batch[k]
		}
		k++
	}
	for c, d := range g.StartIndexMap {
		if int(g.IndexVectorDim) < len(index) {
			index[g.IndexVectorDim] = int64(c)
		}
		v, err := s.from(i, 1, index)
		if err != nil {
			return nil, err
		}
		starts[d] = v.start(0)
	}
	return starts, nil
}

// sliceStarts are the clamped starts of a slice of some extents, which the operands
// from first on give: scalars or one array.
func (s *ElementEvaluator) sliceStarts(
	i *hlo.Instr, first int, sizes, dims []int64,
) ([]int64, error) {
	starts := make([]int64, len(dims))
	// One array has the starts of all dimensions.
	array := len(i.Operands) == first+1 &&
		i.Operands[first].Shape.Rank() == 1
	for d := range dims {
		operand, at := first+d, int64(0)
		if array {
			operand, at = first, int64(d)
		}
		v, err := s.element(i.Operands[operand], at)
		if err != nil {
			return nil, err
		}
		starts[d] = clampedStart(v.start(0), sizes[d], dims[d])
	}
	return starts, nil
}

// dynamicSlice shifts the index by the starts.
func (s *ElementEvaluator) dynamicSlice(
	i *hlo.Instr, at int64,
) (value, error) {
	dims := i.Operands[0].Shape.Dims
	index, err := s.sliceStarts(i, 1, i.Shape.Dims, dims)
	if err != nil {
		return value{}, err
	}
	for d, x := range Unravel(at, i.Shape.Dims) {
		index[d] += x
	}
	return s.from(i, 0, index)
}

// dynamicUpdateSlice is an element of the update where that covers the index.
func (s *ElementEvaluator) dynamicUpdateSlice(
	i *hlo.Instr, at int64,
) (value, error) {
	sizes := i.Operands[1].Shape.Dims
	starts, err := s.sliceStarts(i, 2, sizes, i.Shape.Dims)
	if err != nil {
		return value{}, err
	}
	index := Unravel(at, i.Shape.Dims)
	// The index in the update, unless it is outside of that.
	inside := make([]int64, len(index))
	for d, x := range index {
		inside[d] = x - starts[d]
		if inside[d] < 0 || inside[d] >= sizes[d] {
			return s.from(i, 0, index)
		}
	}
	return s.from(i, 1, inside)
}

// convolution sums the products of one element in float64 or wrapping int64, those of the
// zeros of the padding, too, unless they are of integers.
func (s *ElementEvaluator) convolution(
	i *hlo.Instr, at int64,
) (value, error) {
	c := i.Attrs.Conv
	x := i.Operands[0]
	y := i.Operands[1]
	out := scalarOf(i.Shape.DType)
	err := checkProducts(
		out, scalarOf(x.Shape.DType), scalarOf(y.Shape.DType),
	)
	if err != nil {
		return value{}, err
	}
	// The order of the dimensions is that of the whole evaluation.
	ofInput := slices.Concat(
		[]int64{c.InBatch}, c.InSpatial, []int64{c.InFeature},
	)
	ofKernel := slices.Concat(
		[]int64{c.KernelOut}, c.KernelSpatial, []int64{c.KernelIn},
	)
	g, err := newConvolutionShape(
		i, extents(x, ofInput), extents(y, ofKernel),
	)
	if err == nil {
		err = s.spend(i, g.sliding.size*g.in)
	}
	if err != nil {
		return value{}, err
	}
	index := Unravel(at, i.Shape.Dims)
	position := make([]int64, len(c.OutSpatial))
	for k, d := range c.OutSpatial {
		position[k] = index[d]
	}
	feature := index[c.OutFeature]
	row, first := g.group(index[c.OutBatch], feature)
	// Indices of the operands; those along features and space follow.
	left := make([]int64, len(index))
	right := make([]int64, len(index))
	left[c.InBatch] = row
	right[c.KernelOut] = feature
	// Elements of the window are numbered in row-major order of the kernel's spatial
	// dimensions, elements of the operand in that of the input's.
	sizes := extents(y, c.KernelSpatial)
	for w := range g.sliding.at(position) {
		padding := w.offset < 0
		if padding && out.floats == nil || err != nil {
			continue // the loop has to run to its end
		}
		from := left
		if padding {
			from = nil
		} else {
			place(left, c.InSpatial, Unravel(w.offset, g.sliding.dims))
		}
		place(right, c.KernelSpatial, Unravel(w.element, sizes))
		err = s.addProducts(i, out, from, right, first, g.in)
	}
	if err != nil {
		return value{}, err
	}
	s.run.round(out)
	return out, nil
}

// addProducts adds the products of the input features from first on at one element of
// the window; left is nil in the padding.
func (s *ElementEvaluator) addProducts(
	i *hlo.Instr, out value,
	left, right []int64, first, features int64,
) error {
	c := i.Attrs.Conv
	terms, factors := s.termsOf(i, 0), s.termsOf(i, 1)
	for f := range features {
		right[c.KernelIn] = f
		v, err := s.inputFeature(i, left, first+f, terms)
		if err != nil {
			return err
		}
		y := i.Operands[1]
		w, err := s.term(y, placeIn(y, right), factors)
		if err != nil {
			return err
		}
		if out.floats != nil {
			out.floats[0] += v.float(0) * w.float(0)
		} else {
			out.ints[0] += v.ints[0] * w.ints[0]
		}
	}
	return nil
}

// inputFeature is an input feature of a convolution at an index; without an index a zero of the
// padding.
func (s *ElementEvaluator) inputFeature(
	i *hlo.Instr, index []int64, feature int64, terms movedTerms,
) (value, error) {
	x := i.Operands[0]
	switch {
	case index != nil:
		index[i.Attrs.Conv.InFeature] = feature
		return s.term(x, placeIn(x, index), terms)
	case s.asks != nil:
		return s.asks(nil, 0)
	}
	return scalarOf(x.Shape.DType), nil
}

// place, for the operands of a convolution, writes components of an index along some dimensions.
func place(index, dims, components []int64) {
	for k, d := range dims {
		index[d] = components[k]
	}
}

// reduceWindow reduces one window in row-major order; the initial values stand for
// the padding, too.
func (s *ElementEvaluator) reduceWindow(
	i *hlo.Instr, at int64,
) ([]value, error) {
	n := len(i.Operands) / 2
	outs := make([]value, n)
	ins := make([]value, n)
	initial := make([]value, n)
	for k := range outs {
		v, err := s.element(i.Operands[n+k], 0)
		if err != nil {
			return nil, err
		}
		initial[k] = v
		outs[k] = v.clone() // the sum so far
		ins[k] = scalarOf(i.Operands[k].Shape.DType)
	}
	sliding, err := newSlidingWindow(
		i.Attrs.Window, i.Operands[0].Shape.Dims, 0,
	)
	if err == nil {
		err = s.spend(i, sliding.size)
	}
	if err != nil {
		return nil, err
	}
	// fold combines ins, one element of each operand, into outs.
	fold, err := s.run.reducer(i.Attrs.ToApply, outs, ins)
	if err != nil {
		return nil, err
	}
	position := Unravel(at, i.Shape.Arrays()[0].Dims)
	// The loop has to run to its end, errors or not.
	for w := range sliding.at(position) {
		for k := range ins {
			v := initial[k]
			if w.offset >= 0 && err == nil {
				v, err = s.term(i.Operands[k], w.offset, s.termsOf(i, k))
			}
			if err == nil {
				move(ins[k], 0, v, 0)
			}
		}
		if err == nil {
			err = fold(0, 0)
		}
	}
	if err != nil {
		return nil, err
	}
	for _, v := range outs {
		s.run.round(v)
	}
	return outs, nil
}

// row is the set of elements of an operand of a dot that one element of the result is
// made of. Rows are kept: elements of the result share them.
func (s *ElementEvaluator) row(
	x reducedOperand, terms int64, t movedTerms,
) (value, error) {
	// The first element and its dimensions name the row.
	along := make([]byte, 0, 8)
	for _, d := range x.along {
		x.index[d] = 0
		along = append(along, byte(d))
	}
	first := placeIn(x.i, x.index)
	key := rowKey{elementKey{x.i, first}, string(along), t}
	if v, met := s.rows[key]; met {
		return v, nil
	}
	// The elements of a row count once, however many results use it.
	v, err := newValue(hlo.Shape{
		DType: x.i.Shape.DType,
		Dims:  []int64{terms},
	})
	if err == nil {
		err = s.spend(x.i, terms)
	}
	for n := int64(0); n < terms && err == nil; n++ {
		var one value
		if one, err = x.at(s, n, t); err == nil {
			move(v, n, one, 0)
		}
	}
	if err != nil {
		return value{}, err
	}
	if s.rowElements += terms; s.rowElements > maxRows {
		clear(s.rows)
		s.rowElements = terms
	}
	s.rows[key] = v
	return v, nil
}

// scatter combines the updates that meet one element into it, in row-major order. As a
// whole, the gradient of an embedding's table, of which a step changes some rows, would be
// too large to be checked.
func (s *ElementEvaluator) scatter(
	i *hlo.Instr, at int64,
) ([]value, error) {
	windows, err := s.scatteredWindows(i)
	if err != nil {
		return nil, err
	}
	updates := windows.meeting(Unravel(at, i.Operands[0].Shape.Dims))
	n := len(i.Operands) / 2
	outs, ins := make([]value, n), make([]value, n)
	for k := range outs {
		v, err := s.element(i.Operands[k], at)
		if err != nil {
			return nil, err
		}
		outs[k] = v.clone()
		ins[k] = scalarOf(i.Operands[n+1+k].Shape.DType)
	}
	fold, err := s.run.reducer(i.Attrs.ToApply, outs, ins)
	if err == nil {
		err = s.spend(i, int64(len(updates)))
	}
	for _, from := range updates {
		for k := range ins {
			var v value
			if err == nil {
				v, err = s.element(i.Operands[n+1+k], from)
			}
			if err == nil {
				move(ins[k], 0, v, 0)
			}
		}
		if err == nil {
			err = fold(0, 0)
		}
	}
	if err != nil {
		return nil, err
	}
	for _, v := range outs {
		s.run.round(v)
	}
	return outs, nil
}

// scatteredWindows are the windows of a scatter that lie wholly in its operand.
type scatteredWindows struct {
	window scatterWindow
	// Strides of the updates along the dimensions of the operand; 0 of those that the
	// updates lack.
	strides []int64
	// The windows by where they lie along the dimensions that the updates lack.
	at map[int64][]scatteredWindow
}

// A scatteredWindow is the window of one index vector.
type scatteredWindow struct {
	starts []int64 // along the dimensions of the operand
	first  int64   // the row-major number of its first update
}

// meeting are the row-major numbers of the updates that meet an element of the operand, in
// increasing order. A window meets it once or not at all.
func (w *scatteredWindows) meeting(index []int64) (updates []int64) {
next:
	for _, one := range w.at[w.row(index)] {
		from := one.first
		for d, x := range index {
			x -= one.starts[d]
			if x < 0 || x >= w.window.Sizes[d] {
				continue next
			}
			from += x * w.strides[d]
		}
		updates = append(updates, from)
	}
	slices.Sort(updates)
	return updates
}

// row is the place of an index along the dimensions that the updates lack.
func (w *scatteredWindows) row(index []int64) (at int64) {
	for d, x := range index {
		if w.window.inserted[d] {
			at += x * w.window.strides[d]
		}
	}
	return at
}

// scatteredWindows reads all indices of i, once.
func (s *ElementEvaluator) scatteredWindows(i *hlo.Instr) (*scatteredWindows, error) {
	e := s.of[i]
	if e.windows != nil {
		return e.windows, nil
	}
	n := len(i.Operands) / 2
	indices, err := s.listed(i.Operands[n])
	if err != nil {
		return nil, err
	}
	operand, updates := i.Operands[0].Shape.Dims, i.Operands[n+1].Shape.Dims
	a := i.Attrs.Scatter
	w := &scatteredWindows{
		window:  UpdateWindow(a, operand, updates),
		strides: make([]int64, len(operand)),
		at:      map[int64][]scatteredWindow{},
	}
	inWindow, inBatch := split(hlo.RowMajor(updates), a.UpdateWindow, nil, nil)
	for d := range operand {
		if !w.window.inserted[d] {
			w.strides[d], inWindow = inWindow[0], inWindow[1:]
		}
	}
	x := indexVectors{
		indices,
		indices.strides(),
		a.IndexVectorDim, a.ToOperand, a.InputBatching,
		a.IndicesBatching,
		make([]int64, len(operand)),
	}
	_, extents := split(updates, a.UpdateWindow, nil, nil)
	batch := NewWalk(extents, inBatch)
	for range hlo.Elements(extents) {
		s.run.tick()
		starts := x.start(batch.Index)
		if w.window.holds(starts) {
			at := w.row(starts)
			w.at[at] = append(w.at[at], scatteredWindow{slices.Clone(starts), batch.at})
		}
		batch.Next()
	}
	e.windows = w
	return w, nil
}

// listed is an array made of its single elements, which may be few of what all hold together.
func (s *ElementEvaluator) listed(i *hlo.Instr) (value, error) {
	if held := s.held + elementsOf(i); held > s.mostHeld {
		return value{}, &BudgetError{Instr: i, Held: s.mostHeld}
	}
	all, err := newValue(i.Shape)
	for at := int64(0); at < i.Shape.Elements() && err == nil; at++ {
		var v value
		if v, err = s.element(i, at); err == nil {
			move(all, at, v, 0)
		}
	}
	return all, err
}
