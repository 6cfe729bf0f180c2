// Package inplace finds what a computation need not copy: views, and slices of arrays that
// can be made where they end.
//
// The scan of a state writes the state of each round into an array of all of them:
//
//	s = (f32[512], f32[1,512]) fusion(state, x), calls=f
//	row = f32[1,512] get-tuple-element(s), index=1
//	all' = f32[64,512] dynamic-update-slice(all, row, round, zero)
//
// The fusion can write row where it lies in all. [Slices] is what the executable does, and what
// the time outside of fusions is estimated by.
package inplace

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// IsView reports whether an instruction only gives its operand another shape: the bytes
// stay where they are. So does a fusion of such instructions.
func IsView(i *hlo.Instr) bool {
	switch i.Op {
	case hlo.OpBitcast:
		from := i.Operands[0].Shape
		return from.DType == i.Shape.DType &&
			from.Bytes() == i.Shape.Bytes()
	case hlo.OpReshape, hlo.OpCopy:
		return i.Operands[0].Shape.IsRowMajor() &&
			i.Shape.IsRowMajor()
	case hlo.OpBroadcast:
		from := i.Operands[0].Shape
		return from.IsRowMajor() && i.Shape.IsRowMajor() &&
			from.Elements() == i.Shape.Elements() && slices.IsSorted(i.Attrs.Dimensions)
	case hlo.OpFusion:
		return isViews(i.Attrs.Calls)
	}
	return false
}

// isViews reports whether a computation is a parameter and views, each of the one before.
func isViews(c *hlo.Computation) bool {
	last := len(c.Instrs) - 1
	if last < 1 || c.Root != c.Instrs[last] ||
		c.Instrs[0].Op != hlo.OpParameter {
		return false
	}
	for k, i := range c.Instrs[1:] {
		// A fusion has no other fusions.
		if i.Op == hlo.OpFusion || !IsView(i) ||
			i.Operands[0] != c.Instrs[k] {
			return false
		}
	}
	return true
}

// A Maker is the output of a fusion that makes an array; arrays within tuples count each.
type Maker struct {
	By     *hlo.Instr
	Output int
}

// sliceAlignment is what the offsets of slices in their array are multiples of, in bytes, so
// that a fusion can write one as it writes an array: that of cache lines.
const sliceAlignment = 64

// Slices are the updates of slices that need not copy: of each dynamic-update-slice in
// the result, the slice lies in one piece of the array, nothing but the update reads either,
// and where it will lie is known before the fusion runs that makes it. Whoever runs the
// computation can let the fusion write there, unless something else shares the array's memory.
func Slices(c *hlo.Computation) map[*hlo.Instr]Maker {
	made := map[*hlo.Instr]Maker{}
	var users map[*hlo.Instr][]*hlo.Instr
	for _, i := range c.Instrs {
		if i.Op != hlo.OpDynamicUpdateSlice ||
			!liesInOnePiece(i) {
			continue
		}
		if users == nil {
			users = c.Users()
		}
		array := i.Operands[0]
		if len(users[array]) != 1 || c.Root == array {
			continue
		}
		m, ok := makerOf(i, users)
		if ok && isKnown(i) {
			made[i] = m
		}
	}
	return made
}

// isKnown reports whether the array and the starts of an update are there before all that is
// computed: parameters, parts of one, and constants.
func isKnown(update *hlo.Instr) bool {
	for k, i := range update.Operands {
		switch {
		case k == 1:
			// The slice.
		case i.Op == hlo.OpParameter, i.Op == hlo.OpConstant:
		case i.Op == hlo.OpGetTupleElement &&
			i.Operands[0].Op == hlo.OpParameter:
		default:
			return false
		}
	}
	return true
}

// liesInOnePiece reports whether the slice of an update is contiguous in the array, and
// begins with a cache line where the array does.
func liesInOnePiece(i *hlo.Instr) bool {
	array, slice := i.Shape, i.Operands[1].Shape
	dtype := array.DType
	switch {
	case !array.IsRowMajor() || !slice.IsRowMajor():
		return false
	case dtype.Bits()%8 != 0 || dtype.IsComplex():
		return false
	case slice.Elements() == 0:
		return false
	}
	// Along d and the dimensions behind it the slice is contiguous.
	d, step := array.Rank()-1, int64(dtype.Size())
	for d >= 0 && slice.Dims[d] == array.Dims[d] {
		step *= array.Dims[d]
		d--
	}
	if d < 0 {
		return true
	}
	return hlo.Elements(slice.Dims[:d]) == 1 &&
		step%sliceAlignment == 0
}

// makerOf is the fusion that makes the slice of an update, which only the update reads.
func makerOf(
	update *hlo.Instr, users map[*hlo.Instr][]*hlo.Instr,
) (m Maker, ok bool) {
	i := update.Operands[1]
	for IsView(i) && len(users[i]) == 1 {
		i = i.Operands[0]
	}
	if len(users[i]) != 1 {
		return m, false
	}
	m.By = i
	if i.Op == hlo.OpGetTupleElement {
		m.By = i.Operands[0]
		for _, before := range m.By.Shape.Tuple[:i.Attrs.Index] {
			m.Output += len(before.Arrays())
		}
	}
	for _, u := range users[m.By] {
		// A tuple is read by its parts, this one once.
		part := u.Op == hlo.OpGetTupleElement &&
			u.Attrs.Index != i.Attrs.Index
		if m.By != i && u != i && !part {
			return m, false
		}
	}
	reads := slices.Contains(m.By.Operands, update.Operands[0])
	return m, m.By.Op == hlo.OpFusion && !IsView(m.By) && !reads
}
