package executable

import (
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/hlo/inplace"
)

// A result of a fusion that a dynamic-update-slice writes into the array that a loop carries
// is written there by the fusion, where the array has no other reader: the update then finds
// its slice in place, and copies nothing.

// A place is where a step writes one of its results.
type place struct {
	// output is the number of the result.
	output int
	// sizes are the extents of the slice in the array.
	sizes []int64
}

// placeSlices finds the steps whose results are made where an update would copy them; number
// says which step an instruction is.
func (p *program) placeSlices(number map[*hlo.Instr]int) {
	made := inplace.Slices(p.computation)
	for n := range p.steps {
		update := &p.steps[n]
		m, ok := made[update.instr]
		if !ok || update.unit == nil || update.unit.update == nil {
			continue
		}
		at := number[m.By]
		maker := &p.steps[at]
		if maker.place != nil || maker.unit == nil || maker.unit.kernel == nil || p.grouped(at) {
			continue
		}
		operands := append([]int{update.operands[0]}, update.operands[2:]...)
		if slices.Max(operands) >= at {
			continue
		}
		maker.place = &place{m.Output, update.instr.Operands[1].Shape.Dims}
		maker.operands = append(maker.operands, operands...)
		update.placed = true
	}
}

// grouped reports whether a step is launched with others.
func (p *program) grouped(n int) bool {
	for first, s := range p.steps[:n+1] {
		if s.group != nil && first+s.group.steps > n {
			return true
		}
	}
	return false
}

// of is the memory of result k in the array, which a has before the starts; false where the
// result has to be an array of its own, since the array is read elsewhere or is the caller's.
func (p *place) of(k int, shape hlo.Shape, a []value) (value, bool) {
	if p == nil || k != p.output {
		return value{}, false
	}
	array := a[0]
	if array.storage.references != 1 || len(array.storage.data) == 0 {
		return value{}, false
	}
	var starts []kernels.Buffer
	for _, v := range a[1:] {
		starts = append(starts, v.buffer)
	}
	b := array.buffer
	from := sliceAt(b.Shape.Dims, p.sizes, starts) * int64(b.Shape.DType.Size())
	data := b.Data[from:][:shape.Bytes():shape.Bytes()]
	if !kernels.IsAligned(data) {
		return value{}, false
	}
	v := value{
		buffer:  kernels.Buffer{Shape: shape, Data: data},
		storage: array.storage,
	}
	return v.retained(), true
}
