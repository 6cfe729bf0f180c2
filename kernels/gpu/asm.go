package gpu

import (
	"fmt"
	"math"
	"strings"
)

// A kind is the class of a register.
type kind uint8

const (
	kindB32 kind = iota
	kindB64
	kindF32
	kindF64
	kindPred
	kindB16
	kinds
)

var kindTable = [kinds]struct{ prefix, declared, move string }{
	kindB32:  {"%r", ".b32", "mov.b32"},
	kindB64:  {"%rd", ".b64", "mov.b64"},
	kindF32:  {"%f", ".f32", "mov.f32"},
	kindF64:  {"%fd", ".f64", "mov.f64"},
	kindPred: {"%p", ".pred", "mov.pred"},
	kindB16:  {"%h", ".b16", "mov.b16"},
}

// An operand is a register, an immediate, or one of the constants yes and no.
type operand string

// yes and no are predicates that are known when code is generated.
const (
	yes operand = "true"
	no  operand = "false"
)

func (o operand) register() bool { return strings.HasPrefix(string(o), "%") }

// An address is [base+offset].
type address struct {
	base   operand
	offset int64
}

func (a address) String() string {
	switch {
	case a.offset == 0:
		return "[" + string(a.base) + "]"
	default:
		return fmt.Sprintf("[%s+%d]", a.base, a.offset)
	}
}

// plus is the address so many bytes further.
func (a address) plus(bytes int64) address { return address{a.base, a.offset + bytes} }

// asm is the body of a kernel as it grows, with what has been computed already:
// an instruction without effects is emitted once in a scope, and found again in
// the scopes inside.
type asm struct {
	text   strings.Builder
	used   [kinds]int
	labels int
	waits  int // barriers so far
	scope  *scope
}

// A scope is code that is run as a whole or not at all: what was computed in it
// is known until its end.
type scope struct {
	outer  *scope
	known  map[string]operand // by the text of the instruction
	values map[valueKey]operand
	sums   map[sumKey]operand
	tiles  map[string]*buffer // operands of dots that are in shared memory
}

func newScope(outer *scope) *scope {
	return &scope{outer, map[string]operand{}, map[valueKey]operand{}, map[sumKey]operand{}, map[string]*buffer{}}
}

func (a *asm) enter() { a.scope = newScope(a.scope) }
func (a *asm) leave() { a.scope = a.scope.outer }

// fresh is a new register.
func (a *asm) fresh(k kind) operand {
	a.used[k]++
	return operand(fmt.Sprintf("%s%d", kindTable[k].prefix, a.used[k]-1))
}

// fresher are n new registers.
func (a *asm) fresher(k kind, n int) []operand {
	all := make([]operand, n)
	for i := range all {
		all[i] = a.fresh(k)
	}
	return all
}

// kindOf is the class of a register by its name.
func kindOf(o operand) kind {
	digits := strings.IndexAny(string(o), "0123456789")
	for k, row := range kindTable {
		if string(o)[:digits] == row.prefix {
			return kind(k)
		}
	}
	panic("gpu: " + string(o) + " is no register")
}

// label is a new place to branch to.
func (a *asm) label(name string) string {
	a.labels++
	return fmt.Sprintf("$%s_%d", name, a.labels)
}

func (a *asm) place(label string) { fmt.Fprintf(&a.text, "%s:\n", label) }

// note is a comment on a line of its own.
func (a *asm) note(format string, args ...any) {
	fmt.Fprintf(&a.text, "\t// %s\n", fmt.Sprintf(format, args...))
}

// do emits an instruction.
func (a *asm) do(opcode string, args ...any) {
	if opcode == "bar.sync" {
		a.waits++
	}
	fmt.Fprintf(&a.text, "\t%s%s;\n", opcode, arguments(args))
}

// when emits an instruction that runs where p holds.
func (a *asm) when(p operand, opcode string, args ...any) {
	switch p {
	case yes:
		a.do(opcode, args...)
	case no:
	default:
		fmt.Fprintf(&a.text, "\t@%s %s%s;\n", p, opcode, arguments(args))
	}
}

// unless emits an instruction that runs where p does not hold.
func (a *asm) unless(p operand, opcode string, args ...any) {
	switch p {
	case yes:
	case no:
		a.do(opcode, args...)
	default:
		fmt.Fprintf(&a.text, "\t@!%s %s%s;\n", p, opcode, arguments(args))
	}
}

// get emits an instruction without effects, once, and returns its result.
func (a *asm) get(k kind, opcode string, args ...any) operand {
	key := opcode + arguments(args)
	for s := a.scope; s != nil; s = s.outer {
		if r, ok := s.known[key]; ok {
			return r
		}
	}
	r := a.fresh(k)
	a.do(opcode, append([]any{r}, args...)...)
	a.scope.known[key] = r
	return r
}

// in brings an immediate to a register.
func (a *asm) in(k kind, o operand) operand {
	switch {
	case o.register():
		return o
	case o == yes:
		return a.get(kindPred, "setp.eq.u32", a.in(kindB32, "0"), 0)
	case o == no:
		return a.get(kindPred, "setp.ne.u32", a.in(kindB32, "0"), 0)
	}
	return a.get(k, kindTable[k].move, o)
}

func arguments(args []any) string {
	var b strings.Builder
	for k, x := range args {
		b.WriteString([]string{", ", " "}[min(1, max(0, 1-k))])
		switch x := x.(type) {
		case []operand:
			words := make([]string, len(x))
			for i, o := range x {
				words[i] = string(o)
			}
			fmt.Fprintf(&b, "{%s}", strings.Join(words, ", "))
		default:
			fmt.Fprint(&b, x)
		}
	}
	return b.String()
}

// f32 and f64 are floating-point immediates, bit by bit.
func f32(v float64) operand {
	return operand(fmt.Sprintf("0f%08X", math.Float32bits(float32(v))))
}
func f64(v float64) operand { return operand(fmt.Sprintf("0d%016X", math.Float64bits(v))) }

func integer(v int64) operand { return operand(fmt.Sprint(v)) }

// and, or and not combine predicates.
func (a *asm) and(p, q operand) operand {
	switch {
	case p == no || q == no:
		return no
	case p == yes:
		return q
	case q == yes || p == q:
		return p
	}
	return a.get(kindPred, "and.pred", p, q)
}

func (a *asm) or(p, q operand) operand {
	switch {
	case p == yes || q == yes:
		return yes
	case p == no:
		return q
	case q == no || p == q:
		return p
	}
	return a.get(kindPred, "or.pred", p, q)
}

func (a *asm) not(p operand) operand {
	switch p {
	case yes:
		return no
	case no:
		return yes
	}
	return a.get(kindPred, "not.pred", p)
}
