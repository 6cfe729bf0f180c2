package main

import (
	"slices"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Instructions that neither avo nor the assembler of Go has are written as their bytes.
// Nothing tells avo which registers they use, so that code around them names all of its
// vectors.

// emitBytes emits the bytes of an instruction.
func emitBytes(code []byte) {
	for _, b := range code {
		Instruction(&ir.Instruction{Opcode: "BYTE", Operands: []Op{Imm(uint64(b))}})
	}
}

// namedVectors are the registers of families that name them, of 256 and of 512 bits.
// Their numbers in encodings are those in their names.
var (
	namedVectors = [16]reg.Register{
		reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7,
		reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15,
	}
	namedWideVectors = [32]reg.Register{
		reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7,
		reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15,
		reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23,
		reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31,
	}
)

// numberOf is the number of a named vector in encodings.
func numberOf(v reg.Register) byte {
	n := slices.Index(namedWideVectors[:], v)
	if n < 0 {
		n = slices.Index(namedVectors[:], v)
	}
	if n < 0 {
		panic("a vector without a name")
	}
	return byte(n)
}

// fields are the parts of an encoding that the registers of an instruction of three
// operands make: the bits of R and B, where VEX and EVEX have them, and vvvv, all of them
// complements, and ModRM.
func fields(rm, vvvv, r reg.Register) (high, middle, modRM byte) {
	b, v, n := numberOf(rm), numberOf(vvvv), numberOf(r)
	high = ^n<<4&0x80 | ^b<<2&0x20
	return high, ^v << 3 & 0x78, 0xc0 | n<<3&0x38 | b&7
}

// wideFields are the four bytes of an EVEX encoding that have them, without the map, the
// prefix and the length: R, X, B and R' with bit 3 of r, bits 4 and 3 of rm and bit 4 of r;
// vvvv; V' with bit 4 of vvvv; all of them complements; and ModRM.
func wideFields(rm, vvvv, r reg.Register) (high, middle, low, modRM byte) {
	high, middle, modRM = fields(rm, vvvv, r)
	high |= ^numberOf(rm) << 2 & 0x40
	high |= ^numberOf(r) & 0x10
	low = ^numberOf(vvvv) >> 1 & 8
	return high, middle, low, modRM
}
