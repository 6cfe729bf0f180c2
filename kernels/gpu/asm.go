package gpu

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/internal/functions"
	"github.com/tilewright/tilewright/kernels/ptx"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// This file is the lowest layer of the code generator: registers, immediates and
// instructions as text, and the table of values that are in registers already. It
// translates to package ptx, which checks every instruction; nothing else in this
// package builds PTX instructions.

// A kind is the class of a virtual register: its width, and whether it holds a float.
type kind = functions.Kind

const (
	kindB32  = functions.KindB32
	kindB64  = functions.KindB64
	kindF32  = functions.KindF32
	kindF64  = functions.KindF64
	kindPred = functions.KindPred
	kindB16  = functions.KindB16
	kinds    = kindB16 + 1
)

// kindTable has the name prefix, the move instruction and the declared type of each
// kind.
var kindTable = [kinds]struct {
	prefix, move string
	typ          ptx.Type
}{
	kindB32:  {"%r", "mov.b32", ptx.B32},
	kindB64:  {"%rd", "mov.b64", ptx.B64},
	kindF32:  {"%f", "mov.f32", ptx.F32},
	kindF64:  {"%fd", "mov.f64", ptx.F64},
	kindPred: {"%p", "mov.pred", ptx.Pred},
	kindB16:  {"%h", "mov.b16", ptx.B16},
}

// An operand is the text of an operand of an instruction.
type operand = functions.Operand

// yes and no are predicates that are known when code is generated.
const (
	yes operand = "true"
	no  operand = "false"
)

// sink is the destination of a result that is not used.
const sink operand = "_"

// The special registers kernels read.
const (
	threadNumber operand = "%tid.x"
	blockNumber  operand = "%ctaid.x"
	gridSize     operand = "%nctaid.x"
	pieceNumber  operand = "%ctaid.y"
)

// An address is the PTX operand [base+offset].
type address struct {
	base   operand
	offset int64
}

// plus is the address the given number of bytes further.
func (a address) plus(bytes int64) address {
	return address{a.base, a.offset + bytes}
}

// asm is the body of a kernel while it is emitted, with a table of the values that are
// in registers already: get emits an instruction without side effects once in a scope
// and returns the same register again in that scope and in scopes inside it (local
// value numbering).
type asm struct {
	code      *ptx.Code
	registers map[operand]ptx.Operand
	// Waits is the number of barriers that have been emitted.
	waits int
	scope *scope
	// Stable are registers that are written once.
	stable map[operand]bool
	// Parts are registers that hold an element of 8 or 16 bits of a word, so that the word
	// can be stored again without repacking, or others be put together from its bytes.
	parts map[operand]wordPart
	// Rounded are registers with the value before it was rounded to 16 bits, so that
	// two can be rounded and packed in one instruction.
	rounded map[operand]unrounded
}

// A wordPart is the word that an element of 8 or 16 bits was extracted from, and its first
// byte in it.
type wordPart struct {
	d    hlo.DType
	word operand
	at   int64
}

// An unrounded is a number before it was rounded to d.
type unrounded struct {
	d  hlo.DType
	of operand
}

// A scope is a piece of code that runs as a whole or not at all, such as a loop body:
// values that are computed in it are known until its end.
type scope struct {
	outer *scope
	// Known are results by the text of their instruction, values are elements of ops
	// and loads, sums are index expressions.
	known  map[string]operand
	values map[valueKey]operand
	sums   map[sumKey]operand
	// Tiles are operands of dots that are in shared memory, by their keys.
	tiles map[string]*buffer
}

func newScope(outer *scope) *scope {
	return &scope{
		outer, map[string]operand{},
		map[valueKey]operand{},
		map[sumKey]operand{},
		map[string]*buffer{},
	}
}

func newAsm(code *ptx.Code) *asm {
	return &asm{
		code:      code,
		registers: map[operand]ptx.Operand{},
		scope:     newScope(nil),
		stable:    map[operand]bool{},
		parts:     map[operand]wordPart{},
		rounded:   map[operand]unrounded{},
	}
}

func (a *asm) enter() { a.scope = newScope(a.scope) }
func (a *asm) leave() { a.scope = a.scope.outer }

// fresh is a new register.
func (a *asm) fresh(k kind) operand {
	r := a.code.Reg(kindTable[k].typ)
	o := operand(kindTable[k].prefix + strconv.Itoa(int(r.Reg.Index)))
	a.registers[o] = r
	return o
}

// fresher are n new registers.
func (a *asm) fresher(k kind, n int) []operand {
	all := make([]operand, n)
	for i := range all {
		all[i] = a.fresh(k)
	}
	return all
}

// label is a new place to branch to.
func (a *asm) label(name string) operand {
	return operand(a.code.Label(name))
}

func (a *asm) place(label operand) {
	a.code.Place(string(label))
}

// branch goes to a label where p holds.
func (a *asm) branch(p, label operand) {
	a.code.EmitIf(
		a.operand(p), "bra", ptx.Sym(string(label)),
	)
}

// note is a comment on a line of its own.
func (a *asm) note(format string, args ...any) {
	a.code.Comment(format, args...)
}

// do emits an instruction.
func (a *asm) do(opcode string, args ...any) {
	if opcode == "bar.sync" {
		a.waits++
	}
	a.code.Emit(opcode, a.operands(args)...)
}

// when emits an instruction under the predicate p.
func (a *asm) when(p operand, opcode string, args ...any) {
	switch p {
	case yes:
		a.do(opcode, args...)
	case no:
	default:
		a.code.EmitIf(
			a.operand(p), opcode, a.operands(args)...,
		)
	}
}

// unless emits an instruction that runs where the register p is false.
func (a *asm) unless(p operand, opcode string, args ...any) {
	a.code.EmitIf(
		ptx.Not(a.operand(p)),
		opcode,
		a.operands(args)...,
	)
}

// get returns the result of an instruction without side effects, which it emits unless
// it is known in the current scope.
func (a *asm) get(k kind, opcode string, args ...any) operand {
	key := fmt.Sprint(opcode, args)
	for s := a.scope; s != nil; s = s.outer {
		if r, ok := s.known[key]; ok {
			return r
		}
	}
	// The register is written once, so its value is known to code that follows in the
	// scope.
	r := a.fresh(k)
	a.do(opcode, append([]any{r}, args...)...)
	a.scope.known[key] = r
	a.stable[r] = true
	return r
}

// in returns o in a register: immediates are moved to one.
func (a *asm) in(k kind, o operand) operand {
	switch {
	case o.Register():
		return o
	case o == yes:
		return a.get(
			kindPred, "setp.eq.s32", a.in(kindB32, "0"), 0,
		)
	case o == no:
		return a.get(
			kindPred, "setp.ne.s32", a.in(kindB32, "0"), 0,
		)
	}
	return a.get(k, kindTable[k].move, o)
}

// operands converts arguments of do, get and when to PTX operands.
func (a *asm) operands(args []any) []ptx.Operand {
	all := make([]ptx.Operand, len(args))
	for k, x := range args {
		switch x := x.(type) {
		case operand:
			all[k] = a.operand(x)
		case address:
			all[k] = ptx.Mem(a.operand(x.base), x.offset)
		case []operand:
			list := make([]ptx.Operand, len(x))
			for i, o := range x {
				list[i] = a.operand(o)
			}
			all[k] = ptx.Vec(list...)
		case tensorAt:
			all[k] = a.tensor(x)
		case int:
			all[k] = ptx.Int(x)
		case int32:
			all[k] = ptx.Int(x)
		case int64:
			all[k] = ptx.Int(x)
		case uint32:
			all[k] = ptx.Int(x)
		default:
			panic(fmt.Sprintf("gpu: %T is no operand", x))
		}
	}
	return all
}

// operand converts the text of an operand.
func (a *asm) operand(o operand) ptx.Operand {
	if r, ok := a.registers[o]; ok {
		return r
	}
	text := string(o)
	switch {
	case o == sink:
		return ptx.Sink()
	case o == threadNumber:
		return ptx.Sreg(ptx.TidX)
	case o == blockNumber:
		return ptx.Sreg(ptx.CTAidX)
	case o == pieceNumber:
		return ptx.Sreg(ptx.CTAidY)
	case o == gridSize:
		return ptx.Sreg(ptx.NCTAidX)
	// Floating-point immediates are written with their bits, so that their text is
	// exact.
	case strings.HasPrefix(text, "0f"):
		bits, _ := strconv.ParseUint(
			text[2:], 16, 32,
		)
		return ptx.F32Imm(math.Float32frombits(uint32(bits)))
	case strings.HasPrefix(text, "0d"):
		bits, _ := strconv.ParseUint(
			text[2:], 16, 64,
		)
		return ptx.F64Imm(math.Float64frombits(bits))
	}
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		return ptx.Int(v)
	}
	return ptx.Sym(text)
}

// f32, f64 and integer are immediates; those of floats are written bit by bit.
func f32(v float64) operand   { return functions.F32(v) }
func f64(v float64) operand   { return functions.F64(v) }
func integer(v int64) operand { return functions.Integer(v) }

// and is the conjunction of two predicates.
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

// or is the disjunction of two predicates.
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

// not is the negation of a predicate.
func (a *asm) not(p operand) operand {
	switch p {
	case yes:
		return no
	case no:
		return yes
	}
	return a.get(kindPred, "not.pred", p)
}

// A valueKey identifies a value that is in registers: result part of an op at a point
// (the numbers of its index and its conditions), or the text of a load.
type valueKey struct {
	op, part int
	at, when int
	text     string
}

// value finds a value of the current scope or of one around it.
func (a *asm) value(k valueKey) (operand, bool) {
	for s := a.scope; s != nil; s = s.outer {
		if r, ok := s.values[k]; ok {
			return r, true
		}
	}
	return "", false
}

// A sumKey identifies the value of an index expression, computed in 32 or 64 bits.
type sumKey struct {
	e    index.Expr
	wide bool
}

// sumOf finds the value of an index expression.
func (a *asm) sumOf(k sumKey) (operand, bool) {
	for s := a.scope; s != nil; s = s.outer {
		if r, ok := s.sums[k]; ok {
			return r, true
		}
	}
	return "", false
}

// A tensorAt is the PTX operand [map, {coordinates}].
type tensorAt struct {
	tensor operand
	at     []operand
}

// tensor is the operand of a tensor copy.
func (a *asm) tensor(x tensorAt) ptx.Operand {
	var at []ptx.Operand
	for _, o := range x.at {
		at = append(at, a.operand(o))
	}
	return ptx.Tensor(a.operand(x.tensor), at...)
}

// kindFor is the kind of register that values of type d are computed in: integers of
// at most 32 bits are extended to 32, floats of at most 32 bits are f32.
func kindFor(d hlo.DType) kind {
	switch {
	case d == hlo.Pred:
		return kindPred
	case d == hlo.F64:
		return kindF64
	case d.IsFloat():
		return kindF32
	case d.Bits() == 64:
		return kindB64
	}
	return kindB32
}

// registerType is the type that elements of d have in shared memory: 8-bit floats can
// be read, but not be written.
func registerType(d hlo.DType) hlo.DType {
	if d.IsFloat() && d.Size() == 1 {
		return hlo.F32
	}
	return d
}

// zero is the operand 0 or false.
func zero(k kind) operand {
	switch k {
	case kindPred:
		return no
	case kindF32:
		return f32(0)
	case kindF64:
		return f64(0)
	}
	return "0"
}

// immediate is a constant of type d.
func immediate(d hlo.DType, i int64, f float64) operand {
	switch kindFor(d) {
	case kindPred:
		if i != 0 {
			return yes
		}
		return no
	case kindF32:
		return f32(kernels.RoundFloat(d, f))
	case kindF64:
		return f64(f)
	case kindB32:
		return integer(int64(int32(i)))
	}
	return integer(i)
}

// A space is the PTX state space of an array.
type space string

// set writes a register that is written more than once.
func (e *emitter) set(k kind, to, v operand) {
	if k == kindPred {
		v = e.asm.in(k, v)
	}
	e.asm.do(kindTable[k].move, to, v)
}
