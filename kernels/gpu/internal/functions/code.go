// Package functions emits the functions of floats that PTX has no instruction for:
// approximations of f32 to a few units in the last place, and of f64 to a few units of
// f64. Where instructions go, and which values are in registers already, is the code
// generator's (see Code).
//
// A function is straight-line code wherever both sides of a choice are cheap: both are
// computed and one is selected, so that threads of a warp do not diverge. Branches are left
// for huge angles and long divisions, which few numbers need. The order of the terms of a
// sum is part of the results, so nothing here may be reassociated.
//
// TestFunctions of kernels/gpu holds each against the reference for ordinary numbers and
// extremes, within the units in the last place that its table says.
package functions

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Kind is the class of a virtual register: its width, and whether it holds a float.
type Kind uint8

// The kinds of registers.
const (
	// KindB32 is for integers of 32 bits and shorter ones, and for bits of an f32.
	KindB32 Kind = iota
	// KindB64 is for integers of 64 bits, addresses, and bits of an f64.
	KindB64
	KindF32
	KindF64
	// KindPred is for predicates.
	KindPred
	// KindB16 is for words of 16 bits in memory, which nothing is computed in.
	KindB16
)

// An Operand is a register, an immediate, a symbol, or one of the constants "true" and
// "false". It is represented by its text, so that operands can be compared and be parts
// of map keys.
type Operand string

// Register reports whether o is a register.
func (o Operand) Register() bool { return strings.HasPrefix(string(o), "%") }

// F32 is a floating-point immediate, bit by bit.
func F32(v float64) Operand {
	return Operand(fmt.Sprintf("0f%08X", math.Float32bits(float32(v))))
}

// F64 is a floating-point immediate, bit by bit.
func F64(v float64) Operand {
	return Operand(fmt.Sprintf("0d%016X", math.Float64bits(v)))
}

// Integer is an integer immediate.
func Integer(v int64) Operand { return Operand(strconv.FormatInt(v, 10)) }

// A Code is where instructions go. Its scopes are pieces of code that run as a whole or
// not at all, such as one side of a branch.
type Code interface {
	// Get is the result of an instruction without side effects, which is emitted unless
	// it is known in the current scope. Arguments are operands, lists of them, and
	// integers.
	Get(k Kind, opcode string, args ...any) Operand
	// Do emits an instruction.
	Do(opcode string, args ...any)
	// In is an operand in a register: immediates are moved to one.
	In(k Kind, o Operand) Operand
	// Fresh is a new register.
	Fresh(k Kind) Operand
	// And is a predicate that holds where both do.
	And(p, q Operand) Operand
	// Or is a predicate that holds where one does.
	Or(p, q Operand) Operand
	// Not is a predicate that holds where p does not.
	Not(p Operand) Operand
	// Label is a new place to branch to, with a name for readers.
	Label(name string) Operand
	// Place puts a label before the next instruction.
	Place(label Operand)
	// Branch goes to a label where p holds.
	Branch(p, label Operand)
	// Enter begins a scope within the current one.
	Enter()
	// Leave ends the current scope.
	Leave()
	// Known is a value that Keep has given a name in this scope or one around it.
	Known(name string) (Operand, bool)
	// Keep gives a value a name until the scope ends.
	Keep(name string, v Operand)
	// Table is the address of an array in constant data.
	Table(data []byte) Operand
	// Word is 64 bits of a table, from a byte behind an address on.
	Word(base Operand, at int64) Operand
}
