package amd64

import "strconv"

// An Operand is a Reg, a Mem, an Imm or (of a jump) a Label.
type Operand interface{ operand() }

func (Reg) operand()   {}
func (Mem) operand()   {}
func (Imm) operand()   {}
func (Label) operand() {}

// A Reg is a register of one size. The zero Reg is none.
type Reg uint8

// The general registers by size, then the vector registers of 16, 32 and 64 bytes.
const (
	RAX Reg = 0x10 + iota
	RCX
	RDX
	RBX
	RSP
	RBP
	RSI
	RDI
	R8
	R9
	R10
	R11
	R12
	R13
	R14
	R15
	EAX
	ECX
	EDX
	EBX
	ESP
	EBP
	ESI
	EDI
	R8D
	R9D
	R10D
	R11D
	R12D
	R13D
	R14D
	R15D
	AL
	CL
	DL
	BL
	SPL
	BPL
	SIL
	DIL
	R8B
	R9B
	R10B
	R11B
	R12B
	R13B
	R14B
	R15B
	X0
	X1
	X2
	X3
	X4
	X5
	X6
	X7
	X8
	X9
	X10
	X11
	X12
	X13
	X14
	X15
	Y0
	Y1
	Y2
	Y3
	Y4
	Y5
	Y6
	Y7
	Y8
	Y9
	Y10
	Y11
	Y12
	Y13
	Y14
	Y15
	Z0
)

// The mask registers, of which K0 as a mask means all lanes.
const (
	K0 Reg = 0x70 + iota
	K1
)

// The vector registers from 16 on, of which only those of 64 bytes are operands of
// instructions here.
const (
	highX Reg = 0x80 + 0x10*iota
	highY
	highZ
)

// X returns the vector register of 16 bytes with number n, 0 … 31.
func X(n int) Reg { return numbered(X0, highX, n) }

// Y returns the vector register of 32 bytes with number n, 0 … 31.
func Y(n int) Reg { return numbered(Y0, highY, n) }

// Z returns the vector register of 64 bytes with number n, 0 … 31.
func Z(n int) Reg { return numbered(Z0, highZ, n) }

// numbered is register n of those that begin with low and, from 16 on, high.
func numbered(low, high Reg, n int) Reg {
	if n&16 != 0 {
		low = high
	}
	return low + Reg(n&15)
}

// X returns the low half of the vector register r.
func (r Reg) X() Reg { return X(r.number()) }

// isHigh reports whether r is a vector register from 16 on.
func (r Reg) isHigh() bool { return r >= highX }

// number is the number of the register among those of its size.
func (r Reg) number() int {
	n := int(r & 15)
	if r.isHigh() {
		n += 16
	}
	return n
}

// class returns the operand class of r, or 0 if r is no register.
func (r Reg) class() class {
	switch r >> 4 {
	case 1:
		return r64
	case 2:
		return r32
	case 3:
		return r8
	case 4, 8:
		return x
	case 5, 9:
		return y
	case 6, 10:
		return z
	case 7:
		return k
	}
	return 0
}

var lowNames = [8]string{
	"ax", "cx", "dx", "bx", "sp", "bp", "si", "di",
}

// String returns the name in Intel's syntax, such as rax, r9d, ymm3.
func (r Reg) String() string {
	n := r.number()
	switch r.class() {
	case r64:
		return generalName("r", n, "")
	case r32:
		return generalName("e", n, "d")
	case r8:
		return byteName(n)
	case x:
		return "xmm" + strconv.Itoa(n)
	case y:
		return "ymm" + strconv.Itoa(n)
	case z:
		return "zmm" + strconv.Itoa(n)
	case k:
		return "k" + strconv.Itoa(n)
	}
	return "no register"
}

// generalName is the name of a general register.
func generalName(low string, n int, high string) string {
	if n < 8 {
		return low + lowNames[n]
	}
	return "r" + strconv.Itoa(n) + high
}

// byteName is the name of a byte register.
func byteName(n int) string {
	switch {
	case n < 4:
		return lowNames[n][:1] + "l"
	case n < 8:
		return lowNames[n] + "l"
	}
	return "r" + strconv.Itoa(n) + "b"
}

// A Mem is a place in memory: Base + Index*Scale + Disp, or Label + Disp, which
// is addressed relative to the instruction. Its size is what the instruction
// says. Index is never RSP; Scale is 1, 2, 4 or 8, and 0 means 1.
type Mem struct {
	Base, Index Reg
	Scale       uint8
	Disp        int32
	Label       Label
}

// String returns the place in Intel's syntax, such as [rax+rcx*4-0x10].
func (m Mem) String() string {
	s := ""
	switch {
	case m.Label != 0:
		s = m.Label.String()
	case m.Base != 0:
		s = m.Base.String()
	}
	if m.Index != 0 {
		if s != "" {
			s += "+"
		}
		s += m.Index.String() + "*" +
			strconv.Itoa(int(max(m.Scale, 1)))
	}
	return "[" + s + signedHex(int64(m.Disp)) + "]"
}

// signedHex returns v with its sign, and nothing for zero.
func signedHex(v int64) string {
	switch {
	case v < 0:
		return "-0x" + strconv.FormatUint(uint64(-v), 16)
	case v > 0:
		return "+0x" + strconv.FormatInt(v, 16)
	}
	return ""
}

// check says what is wrong with m, or returns "".
func (m Mem) check() string {
	switch {
	case m.Label != 0 && (m.Base != 0 || m.Index != 0):
		return "a label cannot be combined with a base or an index"
	case m.Label == 0 && m.Base == 0 && m.Index == 0:
		return "a memory operand needs a base, an index or a label"
	case m.Base != 0 && m.Base.class() != r64,
		m.Index != 0 && m.Index.class() != r64:
		return "base and index are 64-bit general registers"
	case m.Index == RSP:
		return "rsp cannot be an index"
	case m.Scale > 8 || m.Scale&(m.Scale-1) != 0:
		return "a scale is 1, 2, 4 or 8"
	}
	return ""
}

// An Imm is an immediate value.
type Imm int64

// String returns the value in hexadecimal.
func (i Imm) String() string {
	if i < 0 {
		return signedHex(int64(i))
	}
	return "0x" + strconv.FormatInt(int64(i), 16)
}

// A Label is a place in the code or in its constants. The zero Label is none;
// Assembler.NewLabel makes one.
type Label int32

// String returns a name for messages.
func (l Label) String() string { return "L" + strconv.Itoa(int(l)) }
