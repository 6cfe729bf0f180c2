package cpu

import (
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/vector"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Rows of bf16 and f16: nests read them as f32 and write what is rounded already.

// halfType is the type of the elements of a stream that have two bytes, else 0.
func (x *rowAccess) halfType() hlo.DType {
	if x.view == nil {
		return 0
	}
	return x.view.halfType
}

// bytes is those of an element.
func (x *rowAccess) bytes() int64 {
	if x.halfType() != 0 {
		return 2
	}
	return 4
}

// halfAccessFits says whether machine code reads or writes a stream of the nest:
// rows of elements of two bytes are whole vectors, since no instruction masks
// those, and what is the same for a row is loaded as the upper half of an f32.
func (n *rowKernel) halfAccessFits(s *rowAccess, write bool) bool {
	switch {
	case s.halfType() == 0:
		return true
	case s.col() == 1:
		return n.cols()%vector.Lanes == 0
	}
	return !write && s.halfType() == hlo.BF16
}

// load is eight elements of a stream, disp bytes of f32 on in the row.
func (e *rowEmitter) load(
	c *amd64.Chain, s *rowAccess, disp int32, row int64,
) amd64.Value {
	if d := s.halfType(); d != 0 {
		return vector.HalfCodecs[d].Load(
			c, e.memory(s, disp, row), 16,
		)
	}
	return c.Load(
		amd64.VMOVUPS, e.memory(s, disp, row), 32,
	)
}

// splat is a vector of copies of an element of a stream.
func (e *rowEmitter) splat(c *amd64.Chain, s *rowAccess, row int64) amd64.Value {
	if s.halfType() != 0 {
		return c.Do(
			amd64.VPSLLD,
			c.Load(amd64.VPBROADCASTW, e.memory(s, 0, row), 0),
			amd64.Imm(16),
		)
	}
	return c.Load(
		amd64.VBROADCASTSS, e.memory(s, 0, row), 0,
	)
}

// emitSplat is copies in a register.
func (e *rowEmitter) emitSplat(r amd64.Reg, s *rowAccess) {
	if s.halfType() == 0 {
		e.a.Emit(amd64.VBROADCASTSS, r, e.memory(s, 0, 0))
		return
	}
	e.a.Emit(amd64.VPBROADCASTW, r, e.memory(s, 0, 0))
	e.a.Emit(amd64.VPSLLD, r, r, amd64.Imm(16))
}

// store stores eight elements, past the caches if large.
func (e *rowEmitter) store(
	c *amd64.Chain, s *rowAccess, disp int32,
	row int64, x amd64.Value, large bool,
) {
	op := amd64.VMOVUPS
	if large {
		op = amd64.VMOVNTPS
	}
	advance := int32(8 * s.bytes())
	switch s.halfType() {
	case hlo.BF16:
		x = c.Do(amd64.VPSRLD, x, amd64.Imm(16))
		x = c.Do(
			amd64.VPACKUSDW,
			c.Do(amd64.VEXTRACTI128, x, amd64.Imm(0)),
			c.Do(amd64.VEXTRACTI128, x, amd64.Imm(1)),
		)
	case hlo.F16:
		x = c.Do(amd64.VCVTPS2PH, x, amd64.Imm(0))
	}
	c.Store(op, e.memory(s, disp, row), advance, x)
}

// vectorBytes is the bytes of a vector of a stream.
func (x *rowAccess) vectorBytes() uintptr { return uintptr(8 * x.bytes()) }

// skip moves a pointer by elements of the stream.
func (x *rowAccess) skip(p unsafe.Pointer, elements int64) unsafe.Pointer {
	return unsafe.Add(p, x.bytes()*elements)
}
