package cpu

import (
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/amd64"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Rows of bf16 and f16: nests read them as f32 and write what is rounded already.

// narrow is the type of the elements of a stream that have two bytes, else 0.
func (x *stream) narrow() hlo.DType {
	if x.view == nil {
		return 0
	}
	return x.view.narrow
}

// bytes is those of an element.
func (x *stream) bytes() int64 {
	if x.narrow() != 0 {
		return 2
	}
	return 4
}

// narrowFits says whether machine code reads or writes a stream of the nest:
// rows of elements of two bytes are whole vectors, since no instruction masks
// those, and what is the same for a row is loaded as the upper half of an f32.
func (n *nest) narrowFits(s *stream, write bool) bool {
	switch {
	case s.narrow() == 0:
		return true
	case s.col() == 1:
		return n.cols()%lanesOf == 0
	}
	return !write && s.narrow() == hlo.BF16
}

// load is eight elements of a stream, disp bytes of f32 on in the row.
func (e *nestCode) load(c *amd64.Chain, s *stream, disp int32, row int64) amd64.Value {
	if d := s.narrow(); d != 0 {
		return crossings[d].load(c, e.at(s, disp, row), 16)
	}
	return c.Load(amd64.VMOVUPS, e.at(s, disp, row), 32)
}

// copies is a vector of copies of an element of a stream.
func (e *nestCode) copies(c *amd64.Chain, s *stream, row int64) amd64.Value {
	if s.narrow() != 0 {
		return c.Do(amd64.VPSLLD, c.Load(amd64.VPBROADCASTW, e.at(s, 0, row), 0), amd64.Imm(16))
	}
	return c.Load(amd64.VBROADCASTSS, e.at(s, 0, row), 0)
}

// copiesIn is copies in a register.
func (e *nestCode) copiesIn(r amd64.Reg, s *stream) {
	if s.narrow() == 0 {
		e.a.Emit(amd64.VBROADCASTSS, r, e.at(s, 0, 0))
		return
	}
	e.a.Emit(amd64.VPBROADCASTW, r, e.at(s, 0, 0))
	e.a.Emit(amd64.VPSLLD, r, r, amd64.Imm(16))
}

// store stores eight elements, past the caches if large.
func (e *nestCode) store(c *amd64.Chain, s *stream, disp int32, row int64, x amd64.Value, large bool) {
	op := amd64.VMOVUPS
	if large {
		op = amd64.VMOVNTPS
	}
	advance := int32(8 * s.bytes())
	switch s.narrow() {
	case hlo.BF16:
		x = c.Do(amd64.VPSRLD, x, amd64.Imm(16))
		x = c.Do(amd64.VPACKUSDW, c.Do(amd64.VEXTRACTI128, x, amd64.Imm(0)), c.Do(amd64.VEXTRACTI128, x, amd64.Imm(1)))
	case hlo.F16:
		x = c.Do(amd64.VCVTPS2PH, x, amd64.Imm(0))
	}
	c.Store(op, e.at(s, disp, row), advance, x)
}

// vector is the bytes of a vector of a stream.
func (x *stream) vector() uintptr { return uintptr(8 * x.bytes()) }

// skip moves a pointer by elements of the stream.
func (x *stream) skip(p unsafe.Pointer, elements int64) unsafe.Pointer {
	return unsafe.Add(p, x.bytes()*elements)
}
