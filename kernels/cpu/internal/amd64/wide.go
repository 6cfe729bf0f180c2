package amd64

import (
	"fmt"
	"slices"
)

// Vectors of 64 bytes are those of AVX-512 (F, DQ and BW): a chain that is emitted wide
// has them where it has vectors of 32 bytes else, so that every lane is computed by
// the same operations. Halves of vectors are in the first 16 of the 32 registers only.

// wideOps are the instructions whose forms for vectors have one of 64 bytes with the
// same opcode and operands.
var wideOps = []Op{
	VMOVUPS, VMOVAPS, VMOVDQU, VMOVNTPS,
	VADDPS, VSUBPS, VMULPS, VDIVPS, VMINPS, VMAXPS, VSQRTPS, VROUNDPS,
	VFMADD132PS, VFMADD213PS, VFMADD231PS, VFMSUB132PS, VFMSUB213PS, VFMSUB231PS,
	VFNMADD132PS, VFNMADD213PS, VFNMADD231PS, VFNMSUB132PS, VFNMSUB213PS, VFNMSUB231PS,
	VANDPS, VANDNPS, VORPS, VXORPS, VPAND, VPANDN, VPOR, VPXOR,
	VPADDD, VPSUBD, VPMULLD, VPMINSD, VPMAXSD, VPSLLD, VPSRLD, VPSRAD,
	VPABSD, VPSLLVD, VPSRLVD, VPSRAVD, VPSLLVQ, VPSRLVQ,
	VPADDB, VPSUBB, VPADDUSB, VPMINSB, VPMAXSB, VPMINUB, VPMAXUB, VPABSB,
	VPMULLW, VPSLLW, VPSRLW, VPMADDWD, VPMADDUBSW, VPSHUFB,
	VCVTDQ2PS, VCVTPS2DQ, VCVTTPS2DQ, VUNPCKLPS, VUNPCKHPS,
}

// wideOps64 are those of lanes of 64 bits, whose forms of 64 bytes have W set.
var wideOps64 = []Op{
	VMOVUPD, VMOVAPD,
	VADDPD, VSUBPD, VMULPD, VDIVPD, VMINPD, VMAXPD, VSQRTPD, VROUNDPD,
	VFMADD132PD, VFMADD213PD, VFMADD231PD, VFMSUB132PD, VFMSUB213PD, VFMSUB231PD,
	VFNMADD132PD, VFNMADD213PD, VFNMADD231PD, VFNMSUB132PD, VFNMSUB213PD, VFNMSUB231PD,
	VANDPD, VANDNPD, VORPD, VXORPD, VPADDQ, VPSUBQ, VPMULUDQ, VPSLLQ, VPSRLQ,
	VUNPCKLPD, VUNPCKHPD,
}

// wideForms are the forms for vectors of 64 bytes with operands of their own: masks
// in k registers, vectors of other sizes.
var wideForms = map[Op]form{
	VBROADCASTSS: {evex660F38, 0x18, 0, "RM", args{z, x | m32}},
	VPBROADCASTW: {evex660F38, 0x79, 0, "RM", args{z, x | m16}},
	VPERMPS:      {evex660F38, 0x16, 0, "RVM", args{z, z, z | mv}},
	VCMPPS:       {evex | m0F, 0xc2, 0, "RVMI", args{k, z, z | mv, u8}},
	VPCMPEQD:     {evex | p66 | m0F, 0x76, 0, "RVM", args{k, z, z | mv}},
	VPCMPGTD:     {evex | p66 | m0F, 0x66, 0, "RVM", args{k, z, z | mv}},
	VBROADCASTSD: {evex660F38 | w1, 0x19, 0, "RM", args{z, x | m64}},
	VCMPPD:       {evex | p66 | m0F | w1, 0xc2, 0, "RVMI", args{k, z, z | mv, u8}},
	VPCMPEQB:     {evex | p66 | m0F, 0x74, 0, "RVM", args{k, z, z | mv}},
	VPCMPGTB:     {evex | p66 | m0F, 0x64, 0, "RVM", args{k, z, z | mv}},
	VPCMPEQQ:     {evex660F38 | w1, 0x29, 0, "RVM", args{k, z, z | mv}},
	VPCMPGTQ:     {evex660F38 | w1, 0x37, 0, "RVM", args{k, z, z | mv}},
	VPMOVZXBD:    {evex660F38, 0x31, 0, "RM", args{z, x | m128}},
	VPMOVSXBD:    {evex660F38, 0x21, 0, "RM", args{z, x | m128}},
	VPMOVSXWD:    {evex660F38, 0x23, 0, "RM", args{z, y | m256}},
	VPMOVZXDQ:    {evex660F38, 0x35, 0, "RM", args{z, y | m256}},
	VPMOVSXDQ:    {evex660F38, 0x25, 0, "RM", args{z, y | m256}},
	VCVTPS2PD:    {evex | m0F, 0x5a, 0, "RM", args{z, y | m256}},
	VCVTPD2PS:    {evex | p66 | m0F | w1, 0x5a, 0, "RM", args{y, z}},
	VCVTDQ2PD:    {evex | pF3 | m0F, 0xe6, 0, "RM", args{z, y | m256}},
	VCVTTPD2DQ:   {evex | p66 | m0F | w1, 0xe6, 0, "RM", args{y, z}},
	VPMOVZXWD:    {evex660F38, 0x33, 0, "RM", args{z, y | m256}},
	VCVTPH2PS:    {evex660F38, 0x13, 0, "RM", args{z, y | m256}},
	VCVTPS2PH:    {evex | p66 | m3A, 0x1d, 0, "MRI", args{y | m256, z, u8}},
}

// withWide returns the table with forms for vectors of 64 bytes.
func withWide(table [opCount]instruction) [opCount]instruction {
	for _, op := range wideOps {
		table[op].addWide(0)
	}
	for _, op := range wideOps64 {
		table[op].addWide(w1)
	}
	for op, f := range wideForms {
		table[op].forms = append(slices.Clone(table[op].forms), f)
	}
	return table
}

// addWide adds the forms for vectors of 64 bytes of those that have them, with more in their
// prefix.
func (i *instruction) addWide(more prefix) {
	forms := slices.Clone(i.forms)
	for _, f := range i.forms {
		if wide, ok := f.widened(); ok {
			wide.prefix |= more
			forms = append(forms, wide)
		}
	}
	i.forms = forms
}

// widened returns the form with vectors of 64 bytes in place of all of its vectors.
func (f form) widened() (form, bool) {
	f.prefix = f.prefix&^vex | evex
	for n, c := range f.args {
		switch {
		case c&same != 0:
			f.args[n] = c&^(anyXY|same) | z
		case c&(anyXY|m128) != 0:
			return f, false
		}
	}
	return f, true
}

// evexPrefix appends the prefix of four bytes, for vectors of 64 bytes (Intel SDM 2A, section
// 2.7.1). Bits 4 of the registers of two fields have a place of their own, R' and V'.
func (f *form) evexPrefix(code []byte, p *fields) []byte {
	r, x, b := p.extension()
	highR, highV := p.reg>>4, p.vvvv>>4
	second := byte(^p.vvvv&15<<3) | 4 | byte(f.prefix&ppMask)
	if f.prefix&w1 != 0 {
		second |= 0x80
	}
	return append(
		code, 0x62,
		byte((r^1)<<7|(x^1)<<6|(b^1)<<5|(highR^1)<<4)|byte(f.prefix&mapMask>>2),
		second,
		2<<5|byte(highV^1)<<3|byte(p.mask),
	)
}

// memoryUnit is the unit of a displacement of one byte: the bytes of the memory operand
// in forms for 64 bytes, else 1.
func (f *form) memoryUnit() int32 {
	if f.prefix&evex == 0 {
		return 1
	}
	for _, c := range f.args {
		switch {
		case c&mv != 0:
			return 64
		case c&m256 != 0:
			return 32
		case c&m128 != 0:
			return 16
		case c&m64 != 0:
			return 8
		case c&m32 != 0:
			return 4
		case c&m16 != 0:
			return 2
		}
	}
	return 1
}

// Wide returns the vector register of 64 bytes whose low half is r.
func (r Reg) Wide() Reg { return Z(r.number()) }

// maskOfLanes is the mask register of comparisons and selections.
const maskOfLanes = K1

// isMask reports whether an operand is a register of masks.
func isMask(o Operand) bool {
	r, ok := o.(Reg)
	return ok && r.class() == k
}

// selects reports whether a step of a wide chain is a comparison that the next step selects
// by, and no other: its mask then stays in a register of masks, one for each copy.
func (e *emitter) selects(k int) bool {
	if !e.wide || k+1 >= len(e.c.steps) || e.copies > maxMasks {
		return false
	}
	v, next := Value(k+1), &e.c.steps[k+1]
	masks := maskMovesOf(e.c.steps[k].op)
	if masks.blend == 0 || e.c.steps[k].kind != plainStep ||
		next.kind != plainStep || maskMovesOf(next.op) != masks || next.op.compares() {
		return false
	}
	return e.last[k] == k+1 && next.args[2].value == v &&
		next.args[0].value != v && next.args[1].value != v
}

// maskMoves are how masks become lanes of ones, how the first bits of lanes become masks,
// and what selects by a mask.
type maskMoves struct{ toLanes, fromLanes, blend Op }

// maskMovesOf are those of the lanes that an operation compares or selects by; zero for
// other operations. Lanes of bytes are compared alone.
func maskMovesOf(op Op) maskMoves {
	switch op {
	case VCMPPS, VPCMPEQD, VPCMPGTD, VBLENDVPS:
		return maskMoves{VPMOVM2D, VPMOVD2M, VBLENDMPS}
	case VCMPPD, VPCMPEQQ, VPCMPGTQ, VBLENDVPD:
		return maskMoves{VPMOVM2Q, VPMOVQ2M, VBLENDMPD}
	case VPCMPEQB, VPCMPGTB:
		return maskMoves{toLanes: VPMOVM2B}
	}
	return maskMoves{}
}

// compares reports whether an operation of a wide chain makes a mask.
func (o Op) compares() bool {
	return maskMovesOf(o) != maskMoves{} && o != VBLENDVPS && o != VBLENDVPD
}

// maxMasks is how many copies have a mask of their own.
const maxMasks = 4

// A wideError says that an operation of a chain has no form for 64 bytes.
type wideError struct{ op Op }

// Error names the operation.
func (w wideError) Error() string {
	return fmt.Sprintf("chain: %s has no form for vectors of 64 bytes", w.op)
}

// emit emits an instruction, with vectors twice as long where the chain is wide.
func (e *emitter) emit(op Op, operands ...Operand) {
	if !e.wide {
		e.a.Emit(op, operands...)
		return
	}
	var room [5]Operand
	e.emitWide(op, widened(operands, room[:0]))
}

// emitWide emits an instruction on vectors of 64 bytes. Comparisons have their masks in a
// register of masks, from which and to which they are moved.
func (e *emitter) emitWide(op Op, operands []Operand) {
	to, masks := operands[0], maskMovesOf(op)
	switch {
	case op.compares():
		if isMask(to) {
			e.a.Emit(op, operands...)
			return
		}
		operands[0] = maskOfLanes
		e.a.Emit(op, operands...)
		e.a.Emit(masks.toLanes, to, maskOfLanes)
	case masks.blend != 0:
		mask := operands[3]
		if !isMask(mask) {
			mask = maskOfLanes
			e.a.Emit(masks.fromLanes, mask, operands[3])
		}
		e.a.Emit(masks.blend, to, mask, operands[1], operands[2])
	default:
		if op.find(operands) == nil {
			e.err = wideError{op}
			return
		}
		e.a.Emit(op, operands...)
	}
}

// takes reports whether an instruction has a form for operands of vectors of 32 bytes, or
// of twice as many where the chain is wide.
func (e *emitter) takes(op Op, operands []Operand) bool {
	if !e.wide {
		return op.find(operands) != nil
	}
	if maskMovesOf(op) != (maskMoves{}) {
		return true
	}
	var room [5]Operand
	return op.find(widened(operands, room[:0])) != nil
}

// widened appends operands to list, with vectors twice as long.
func widened(operands, list []Operand) []Operand {
	for _, o := range operands {
		if r, ok := o.(Reg); ok {
			switch r.class() {
			case x:
				o = Y(r.number())
			case y:
				o = Z(r.number())
			}
		}
		list = append(list, o)
	}
	return list
}

// widened is the constant for vectors of 64 bytes.
func (c constant) widened() constant {
	c.lanes *= 2
	c.wide = true
	return c
}

// LoadWideConstant emits the load of a constant to all 64 bytes of r's register.
func (a *Assembler) LoadWideConstant(k Constant, r Reg) {
	a.Emit(VMOVUPS, r.Wide(), a.constant(k.constant.widened()))
}
