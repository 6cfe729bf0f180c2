package amd64

import "encoding/binary"

// The fields of an instruction hold its operands at their places in the
// encoding.
type fields struct {
	reg, vvvv, rm int
	mem           Mem
	inMemory      bool
	long          bool  // VEX.L
	mask          int   // EVEX.aaa
	byteReg       bool  // spl, bpl, sil, dil need a REX prefix
	imm           int64 // of size bytes
	size          int
}

// place distributes operands over the fields of f.
func (f *form) place(operands []Operand) fields {
	p := fields{reg: int(f.ext & 7)}
	for k, o := range operands {
		switch o := o.(type) {
		case Reg:
			p.register(f.enc[k], o)
		case Mem:
			p.mem, p.inMemory = o, true
		case Imm:
			p.imm, p.size = int64(o), immediateSize(f.args[k])
		}
	}
	return p
}

// register assigns a register to a field.
func (p *fields) register(letter byte, r Reg) {
	n := r.number()
	switch letter {
	case 'R':
		p.reg = n
	case 'V':
		p.vvvv = n
	case 'M', 'O':
		p.rm = n
	case 'K':
		p.mask = n
	case 'S':
		p.imm = int64(n) << 4
		p.size = 1
	}
	p.long = p.long || r.class() == y
	p.byteReg = p.byteReg || r >= SPL && r <= DIL
}

// immediateSize is the bytes of an immediate.
func immediateSize(c class) int {
	switch {
	case c&(i8|u8) != 0:
		return 1
	case c&(i32|u32) != 0:
		return 4
	}
	return 8
}

// extension returns the bits that reach registers 8 … 15, and in a prefix of four bytes those
// from 16 on: R, X, B.
func (p *fields) extension() (r, x, b int) {
	if !p.inMemory {
		return p.reg >> 3 & 1, p.rm >> 4, p.rm >> 3 & 1
	}
	return p.reg >> 3 & 1,
		p.mem.Index.number() >> 3,
		p.mem.Base.number() >> 3
}

// encode appends the instruction, with zero where the offset to a label goes,
// and returns the place of that offset, or 0.
func (f *form) encode(code []byte, p *fields) ([]byte, int) {
	switch {
	case f.prefix&evex != 0:
		code = f.evexPrefix(code, p)
	case f.prefix&vex != 0:
		code = f.vexPrefix(code, p)
	default:
		code = f.legacyPrefix(code, p)
	}
	at := 0
	switch {
	case f.prefix&tail != 0:
		code = append(code, f.opcode, f.ext)
	case f.enc == "":
		code = append(code, f.opcode)
	case f.enc[0] == 'O':
		code = append(code, f.opcode|byte(p.rm&7))
	case p.inMemory:
		code = p.mem.encode(append(code, f.opcode), p.reg, f.memoryUnit())
		at = len(code) - 4
	default:
		code = append(
			code,
			f.opcode,
			0xc0|byte(p.reg&7<<3|p.rm&7),
		)
	}
	switch p.size {
	case 1:
		code = append(code, byte(p.imm))
	case 4:
		code = binary.LittleEndian.AppendUint32(code, uint32(p.imm))
	case 8:
		code = binary.LittleEndian.AppendUint64(code, uint64(p.imm))
	}
	return code, at
}

// vexPrefix appends the prefix of two bytes where it can express the operands,
// else that of three (Intel SDM 2A, section 2.3.5).
func (f *form) vexPrefix(code []byte, p *fields) []byte {
	r, x, b := p.extension()
	last := byte(^p.vvvv&15<<3) | byte(f.prefix&ppMask)
	if p.long {
		last |= 4
	}
	if x|b == 0 && f.prefix&(mapMask|w1) == m0F {
		return append(code, 0xc5, byte(r^1)<<7|last)
	}
	if f.prefix&w1 != 0 {
		last |= 0x80
	}
	return append(
		code, 0xc4,
		byte((r^1)<<7|
			(x^1)<<6|
			(b^1)<<5)|byte(f.prefix&mapMask>>2),
		last,
	)
}

// legacyPrefix appends the mandatory prefix, REX where it is needed, and the
// escape bytes of the opcode map.
func (f *form) legacyPrefix(code []byte, p *fields) []byte {
	switch f.prefix & ppMask {
	case p66:
		code = append(code, 0x66)
	case pF3:
		code = append(code, 0xf3)
	case pF2:
		code = append(code, 0xf2)
	}
	r, x, b := p.extension()
	rex := byte(r<<2 | x<<1 | b)
	if f.prefix&w1 != 0 {
		rex |= 8
	}
	if rex != 0 || p.byteReg {
		code = append(code, 0x40|rex)
	}
	if f.prefix&mapMask != 0 {
		code = append(code, 0x0f)
	}
	return code
}

// encode appends ModRM, SIB and displacement (Intel SDM 2A, tables 2-2, 2-3).
// As a base, rsp and r12 need a SIB byte, rbp and r13 a displacement. A displacement
// of one byte counts units.
func (m Mem) encode(code []byte, reg int, unit int32) []byte {
	modrm := byte(reg & 7 << 3)
	if m.Label != 0 {
		return append(code, modrm|5, 0, 0, 0, 0)
	}
	if m.Base == 0 {
		code = append(code, modrm|4, m.sib(5))
		return binary.LittleEndian.AppendUint32(code, uint32(m.Disp))
	}
	base := byte(m.Base.number() & 7)
	short := m.Disp%unit == 0 && m.Disp/unit >= -128 && m.Disp/unit < 128
	switch {
	case m.Disp == 0 && base != 5:
	case short:
		modrm |= 0x40
	default:
		modrm |= 0x80
	}
	if m.Index == 0 && base != 4 {
		code = append(code, modrm|base)
	} else {
		code = append(code, modrm|4, m.sib(base))
	}
	switch modrm & 0xc0 {
	case 0x40:
		return append(code, byte(m.Disp/unit))
	case 0x80:
		return binary.LittleEndian.AppendUint32(code, uint32(m.Disp))
	}
	return code
}

// sib returns the SIB byte, in which index 4 means none.
func (m Mem) sib(base byte) byte {
	if m.Index == 0 {
		return 4<<3 | base
	}
	scale := [9]byte{2: 1, 4: 2, 8: 3}[m.Scale]
	return scale<<6 | byte(m.Index.number()&7)<<3 | base
}
