package partition

import (
	"fmt"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// keepInPlace leaves those updates of slices outside of fusions that a loop can write into
// the array that it carries, where that costs less than a fusion, which reads and writes
// all of the array.
func (p *partitioner) keepInPlace(body *hlo.Computation) {
	if len(body.Params) != 1 || body.Params[0].Shape.DType != hlo.Tuple || body.Root.Op != hlo.OpTuple {
		return
	}
	users := body.Users()
	for k, i := range body.Root.Operands {
		if !writesSlice(i) || !carriedFor(i, k, body.Params[0], users) {
			continue
		}
		slice, array := float64(i.Operands[updateOf(i)].Shape.Bytes()), float64(i.Shape.Bytes())
		inPlace := Price{Bytes: 2 * slice, Launches: 1}
		fused := Price{Bytes: 2*array - slice}
		if p.pricer.seconds(inPlace) < p.pricer.seconds(fused) {
			p.refused[i] = fmt.Sprintf(
				"its loop writes the slice in place: %.3g µs, in a fusion %.3g µs, which moves %.3g MB",
				1e6*p.pricer.seconds(inPlace), 1e6*p.pricer.seconds(fused), fused.Bytes/1e6,
			)
		}
	}
}

// writesSlice reports whether an update changes a part of an array only, the rest of which
// it need not read.
func writesSlice(i *hlo.Instr) bool {
	return i.Op == hlo.OpDynamicUpdateSlice || i.Op == hlo.OpScatter && len(i.Operands) == 3
}

// updateOf is the operand that an update writes.
func updateOf(i *hlo.Instr) int {
	if i.Op == hlo.OpScatter {
		return 2
	}
	return 1
}

// carriedFor reports whether the operand of an update is part k of the loop's state, and
// nothing but the update reads that.
func carriedFor(
	i *hlo.Instr, k int, state *hlo.Instr, users map[*hlo.Instr][]*hlo.Instr,
) bool {
	carried := i.Operands[0]
	if carried.Op != hlo.OpGetTupleElement || carried.Operands[0] != state || carried.Attrs.Index != k {
		return false
	}
	reads := 0
	for _, part := range users[state] {
		switch {
		case part.Op != hlo.OpGetTupleElement:
			return false
		case part.Attrs.Index == k:
			reads += len(users[part])
		}
	}
	return reads == 1
}
