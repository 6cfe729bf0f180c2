package narrowing

import (
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A mask is where the condition of a select is true that depends on an index alone, which it
// compares with a constant: a complex number is put together of its parts so.
type mask struct {
	axis int
	// The indices of the tile, size of them, from offset on and stride apart.
	offset, stride, size int64
	direction            string
	limit                int64
}

// maskOf is the mask of a select; nil where that is none, or not the same in every tile program.
func maskOf(p *symtile.Program, op symtile.Op) *mask {
	count, direction, limit := condition(p, op)
	if count == nil {
		return nil
	}
	axis := int(count.Instr.Attrs.IotaDim)
	t := count.Tile[axis]
	all := span{0, mustSize(t)}
	if s, ok := valid(t); !ok || s != all {
		return nil
	}
	offset, _ := t.Offset.Value()
	stride, _ := t.Stride.Value()
	return &mask{
		axis, offset, stride, all.hi,
		direction, limit,
	}
}

// maxMaskLength bounds the indices that are compared.
const maxMaskLength = 1 << 12

// condition is the iota that the condition of a select compares with a number, how, and that
// number; nil where it is none. Numbers of few bits, which long iotas exceed, are left out.
func condition(p *symtile.Program, op symtile.Op) (
	count *symtile.Op, direction string, limit int64,
) {
	compare := p.Ops[op.Args[0]]
	if compare.Code != hlo.OpCompare ||
		len(compare.Tile) != len(op.Tile) {
		return nil, "", 0
	}
	count = &p.Ops[compare.Args[0]]
	number := p.Ops[compare.Args[1]]
	// A number is compared as copies of it.
	for number.Code == hlo.OpBroadcast ||
		number.Code == hlo.OpReshape {
		number = p.Ops[number.Args[0]]
	}
	lit := number.Instr.Literal
	if count.Code != hlo.OpIota || number.Code != hlo.OpConstant ||
		lit == nil || len(lit.Ints) != 1 ||
		lit.Ints[0] < 0 {
		return nil, "", 0
	}
	shape := &count.Instr.Shape
	length := shape.Dims[count.Instr.Attrs.IotaDim]
	bits := shape.DType.Bits()
	if length > maxMaskLength ||
		bits < 32 && length > 1<<(bits-1) {
		return nil, "", 0
	}
	return count, compare.Instr.Attrs.Direction, lit.Ints[0]
}

// at is whether the condition is true at an index of the tile.
func (m *mask) at(index int64) bool {
	x := m.offset + index*m.stride
	switch m.direction {
	case "EQ":
		return x == m.limit
	case "NE":
		return x != m.limit
	case "LT":
		return x < m.limit
	case "LE":
		return x <= m.limit
	case "GT":
		return x > m.limit
	}
	return x >= m.limit
}

// A part of a select is that of one operand if the condition is the same throughout; the joints
// of all conditions divide an op, so that it is for the select they come from.

// all reports whether the condition is the same at all indices of a span.
func (m *mask) all(s span, truth bool) bool {
	for k := s.lo; k < s.hi; k++ {
		if m.at(k) != truth {
			return false
		}
	}
	return true
}

// joints are where the condition changes, with the beginning and the end.
func (m *mask) joints() (list []int64) {
	// The first index begins a part; another one does where the condition is not that of the
	// index before.
	for k := range m.size {
		changes := k == 0 || m.at(k) != m.at(k-1)
		if changes {
			list = append(list, k)
		}
	}
	return append(list, m.size)
}
