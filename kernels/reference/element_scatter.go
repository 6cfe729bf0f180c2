package reference

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// A scatter's element is made of the operand's and of the updates that meet it. Without
// this rule the gradient of an embedding's table, of which a step changes some rows, would
// be computed as a whole for the sake of its samples, or be too large to be checked.

// init adds the rule of scatters to elementRules.
func init() {
	elementRules[hlo.OpScatter] = func(s *ElementEvaluator, i *hlo.Instr, at int64) (value, error) {
		return s.part(i, 0, at)
	}
}

// scatter combines the updates that meet one element into it, in row-major order.
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

// holds reports whether a window that begins at start lies wholly in the operand.
func (w scatterWindow) holds(start []int64) bool {
	for d, x := range start {
		if x < 0 || x > w.dims[d]-w.Sizes[d] {
			return false
		}
	}
	return true
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
