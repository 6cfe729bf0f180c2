package ptx

import "math"

// Kind is the kind of an operand.
type Kind uint8

const (
	// NoOperand is an absent operand.
	NoOperand Kind = iota
	// KindReg is the register Reg; Neg if it is a predicate that is read negated.
	KindReg
	// KindSink is _: a result that is not used.
	KindSink
	// KindInt is an integer with its bits in Bits.
	KindInt
	// KindF32 is a float32 with its bits in Bits.
	KindF32
	// KindF64 is a float64 with its bits in Bits.
	KindF64
	// KindSpecial is the special register Special.
	KindSpecial
	// KindSym is the label Sym, or the address of the variable Sym.
	KindSym
	// KindMem is memory [base+offset]: the base is Reg, or Sym, or absent; the
	// offset in bytes is int64(Bits).
	KindMem
	// KindVec is the vector {…} of List.
	KindVec
	// KindPair is d|p, the two destinations of List.
	KindPair
	// KindTensor is [map, {coordinates…}]: List holds the address (KindMem), the
	// coordinates (KindVec) and, for im2col, the offsets (KindVec).
	KindTensor
)

// A Reg is a register of an entry: register Index of Entry.Regs[Set-1]. The zero
// Reg is no register.
type Reg struct{ Set, Index int32 }

// None reports whether r is no register.
func (r Reg) None() bool { return r.Set == 0 }

// An Operand is one operand of an instruction; its Kind determines which fields
// hold.
type Operand struct {
	Kind Kind
	// Neg is set for a predicate that is read negated.
	Neg     bool
	Special Special
	Reg     Reg
	// Bits is the value of an immediate, or the offset of an address.
	Bits uint64
	// Sym is the name of a label or a variable.
	Sym string
	// List holds the parts of vectors, pairs and tensor operands.
	List []Operand
}

// Int is an integer immediate.
func Int[T ~int | ~int32 | ~int64 | ~uint32](v T) Operand {
	return Operand{Kind: KindInt, Bits: uint64(int64(v))}
}

// F32Imm is a float immediate with exactly the bits of v.
func F32Imm(v float32) Operand {
	return Operand{
		Kind: KindF32,
		Bits: uint64(math.Float32bits(v)),
	}
}

// F64Imm is a double immediate with exactly the bits of v.
func F64Imm(v float64) Operand {
	return Operand{Kind: KindF64, Bits: math.Float64bits(v)}
}

// Sym names a label, or the address of a variable.
func Sym(name string) Operand { return Operand{Kind: KindSym, Sym: name} }

// Sreg reads a special register.
func Sreg(s Special) Operand { return Operand{Kind: KindSpecial, Special: s} }

// Sink is the destination _ of a result that is not used.
func Sink() Operand { return Operand{Kind: KindSink} }

// Mem is the memory at base + offset bytes; base is a register, a symbol, or an
// integer (an absolute address).
func Mem[T ~int | ~int32 | ~int64](base Operand, offset T) Operand {
	return Operand{
		Kind: KindMem,
		Reg:  base.Reg,
		Sym:  base.Sym,
		Bits: base.Bits + uint64(int64(offset)),
	}
}

// Vec is {elements…}.
func Vec(elements ...Operand) Operand {
	return Operand{Kind: KindVec, List: elements}
}

// Tensor is the box of the tensor map at address at, with its first element at
// coordinates (innermost dimension first).
func Tensor(at Operand, coordinates ...Operand) Operand {
	return Operand{
		Kind: KindTensor,
		List: []Operand{Mem(at, 0), Vec(coordinates...)},
	}
}

// Not is a predicate read negated.
func Not(p Operand) Operand {
	p.Neg = !p.Neg
	return p
}

// IsImm reports whether o is a number.
func (o Operand) IsImm() bool { return o.Kind >= KindInt && o.Kind <= KindF64 }

// Int is the value of an integer immediate.
func (o Operand) Int() int64 { return int64(o.Bits) }

// As is the bits of the number o in an operation of type t: floats are converted,
// integers truncated.
func (o Operand) As(t Type) uint64 {
	switch {
	case o.Kind == KindF64 && t == F32:
		return uint64(math.Float32bits(float32(math.Float64frombits(o.Bits))))
	case o.Kind == KindF32 && t == F64:
		return math.Float64bits(float64(math.Float32frombits(uint32(o.Bits))))
	}
	if n := t.Bits(); n > 0 && n < 64 {
		return o.Bits & (1<<n - 1)
	}
	return o.Bits
}
