package amd64

// A class is a set of operand kinds that a form accepts at one place.
type class uint32

const (
	r8 class = 1 << iota
	r32
	r64
	x
	y
	z    // 64 bytes
	k    // masks of lanes
	mem  // memory without a size: lea, prefetch
	m8   // … of 1 byte
	m16  // … of 2 bytes
	m32  // … of 4 bytes
	m64  // … of 8 bytes
	m128 // … of 16 bytes
	m256 // … of 32 bytes
	mv   // … as long as the vector registers of the instruction
	mh   // … half as long
	mq   // … a quarter as long
	i8   // immediate of one byte, sign-extended
	u8   // immediate of one byte, as a pattern
	i32  // immediate of four bytes, sign-extended
	u32  // immediate of four bytes, as a pattern
	i64  // immediate of eight bytes
	rel  // label to jump to
	same // registers of this operand and the others marked so have one size

	v     = x | y | same
	vm    = v | mv
	anyXY = x | y

	memory = mem | m8 | m16 | m32 | m64 | m128 | m256 | mv | mh | mq
)

// args are the operand classes of a form.
type args [4]class

// A prefix says how an instruction starts: VEX or legacy, the mandatory
// prefix, the opcode map, and W.
type prefix uint16

const (
	p66 prefix = 1 + iota // in the order of VEX.pp
	pF3
	pF2
	ppMask prefix = 3
)

const (
	m0F prefix = (1 + iota) << 2 // in the order of VEX.mmmmm
	m38
	m3A
	mapMask prefix = 3 << 2
)

const (
	w1   prefix = 1 << (4 + iota)
	vex         // three-operand prefix of AVX
	tail        // no ModRM byte; ext follows the opcode
	evex        // four-operand prefix of AVX-512
)

// Frequent prefixes, named as in the Intel SDM: VEX.66.0F38 is vex660F38.
const (
	vex0F     = vex | m0F
	vex660F   = vex | p66 | m0F
	vexF30F   = vex | pF3 | m0F
	vexF20F   = vex | pF2 | m0F
	vex660F38 = vex | p66 | m38
	vex660F3A = vex | p66 | m3A

	evex660F38 = evex | p66 | m38
)

// A form is one encoding of an instruction. enc has one letter an operand:
//
//	R ModRM.reg   V VEX.vvvv   M ModRM.rm   O in the opcode
//	I immediate   S register in the upper half of an immediate   J jump
//	K EVEX.aaa, the mask of lanes
//
// VEX.L is set when an operand is a register of 32 bytes. Forms with evex are those
// for 64 bytes.
type form struct {
	prefix prefix // The prefix, opcode map and W.
	opcode uint8
	ext    uint8 // ModRM.reg where no operand is R.
	enc    string
	args   args
}

// An instruction is a mnemonic with its forms; the first that fits is used.
type instruction struct {
	name  string
	forms []form
}

// String returns the mnemonic.
func (o Op) String() string {
	if int(o) >= len(instructions) ||
		instructions[o].name == "" {
		return "?"
	}
	return instructions[o].name
}

// classOf returns what operand is as a set of classes it can stand for.
func classOf(operand Operand) class {
	switch o := operand.(type) {
	case Reg:
		return o.class()
	case Mem:
		return memory
	case Imm:
		return o.class()
	case Label:
		return rel
	}
	return 0
}

// class is the set of immediates that can hold i.
func (i Imm) class() class {
	c := i64
	if i >= -1<<31 && i < 1<<32 {
		c |= u32
	}
	if i >= -1<<31 && i < 1<<31 {
		c |= i32
	}
	if i >= -1<<7 && i < 1<<8 {
		c |= u8
	}
	if i >= -1<<7 && i < 1<<7 {
		c |= i8
	}
	return c
}

// find returns the first form of op that accepts operands, or nil.
func (o Op) find(operands []Operand) *form {
	if int(o) >= len(instructions) {
		return nil
	}
	forms := instructions[o].forms
	for k := range forms {
		if forms[k].accepts(operands) {
			return &forms[k]
		}
	}
	return nil
}

// accepts reports whether the operands have the classes of the form. Vector
// operands that are marked so must have one size.
func (f *form) accepts(operands []Operand) bool {
	if len(operands) != len(f.enc) {
		return false
	}
	size := class(0)
	for k, o := range operands {
		if r, ok := o.(Reg); ok && r.isHigh() && r.class() != z {
			return false
		}
		have := classOf(o) & f.args[k]
		if have&^same == 0 {
			return false
		}
		if f.args[k]&same != 0 {
			size |= have & (x | y)
		}
	}
	return size != x|y
}
