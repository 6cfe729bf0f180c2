package gpu

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/ptx"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
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

// An operand is a register, an immediate, a symbol, or one of the constants yes
// and no. It is its text, so that operands can be compared.
type operand string

// yes and no are predicates that are known when code is generated.
const (
	yes operand = "true"
	no  operand = "false"
)

// sink is where a result goes that nobody wants.
const sink operand = "_"

// The special registers kernels read.
const (
	threadNumber operand = "%tid.x"
	blockNumber  operand = "%ctaid.x"
	gridSize     operand = "%nctaid.x"
	pieceNumber  operand = "%ctaid.y"
)

func (o operand) register() bool { return strings.HasPrefix(string(o), "%") }

// An address is [base+offset].
type address struct {
	base   operand
	offset int64
}

// plus is the address so many bytes further.
func (a address) plus(bytes int64) address {
	return address{a.base, a.offset + bytes}
}

// asm is the body of a kernel as it grows, with what has been computed already:
// an instruction without effects is emitted once in a scope, and found again in
// the scopes inside.
type asm struct {
	code      *ptx.Code
	registers map[operand]ptx.Operand
	waits     int // barriers so far
	scope     *scope
	stable    map[operand]bool      // registers that are written once
	halves    map[operand]half      // registers with one of two elements of a word
	rounded   map[operand]unrounded // registers with a number that was rounded to fewer bits
}

// A half is where an element of 16 bits was before it got a register.
type half struct {
	d    hlo.DType
	word operand
	high bool
}

// An unrounded is a number before it was rounded to d.
type unrounded struct {
	d  hlo.DType
	of operand
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
		halves:    map[operand]half{},
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

// when emits an instruction that runs where p holds.
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

// unless emits an instruction that runs where p, a register, does not hold.
func (a *asm) unless(p operand, opcode string, args ...any) {
	a.code.EmitIf(
		ptx.Not(a.operand(p)),
		opcode,
		a.operands(args)...,
	)
}

// get emits an instruction without effects, once, and returns its result.
func (a *asm) get(k kind, opcode string, args ...any) operand {
	key := fmt.Sprint(opcode, args)
	for s := a.scope; s != nil; s = s.outer {
		if r, ok := s.known[key]; ok {
			return r
		}
	}
	r := a.fresh(k)
	a.do(opcode, append([]any{r}, args...)...)
	a.scope.known[key] = r
	a.stable[r] = true
	return r
}

// in brings an immediate to a register.
func (a *asm) in(k kind, o operand) operand {
	switch {
	case o.register():
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

// operand reads the text of an operand.
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
	case strings.HasPrefix(text, "0f"):
		bits, _ := strconv.ParseUint(text[2:], 16, 32)
		return ptx.F32Imm(math.Float32frombits(uint32(bits)))
	case strings.HasPrefix(text, "0d"):
		bits, _ := strconv.ParseUint(text[2:], 16, 64)
		return ptx.F64Imm(math.Float64frombits(bits))
	}
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		return ptx.Int(v)
	}
	return ptx.Sym(text)
}

// f32 and f64 are floating-point immediates, bit by bit.
func f32(v float64) operand {
	return operand(fmt.Sprintf("0f%08X", math.Float32bits(float32(v))))
}
func f64(v float64) operand {
	return operand(fmt.Sprintf("0d%016X", math.Float64bits(v)))
}

func integer(v int64) operand { return operand(strconv.FormatInt(v, 10)) }

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

// A valueKey names a value: result part of an op at a point, or the text of a load.
type valueKey struct {
	op, part int
	at, when int
	text     string
}

func (a *asm) value(k valueKey) (operand, bool) {
	for s := a.scope; s != nil; s = s.outer {
		if r, ok := s.values[k]; ok {
			return r, true
		}
	}
	return "", false
}

// A sumKey is an expression in 32 or 64 bits.
type sumKey struct {
	e    index.Expr
	wide bool
}

func (a *asm) sumOf(k sumKey) (operand, bool) {
	for s := a.scope; s != nil; s = s.outer {
		if r, ok := s.sums[k]; ok {
			return r, true
		}
	}
	return "", false
}

// A tensorAt is [map, {coordinates}].
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

// kindFor is the class of register a value of type d is in while it is computed
// with: integers of at most 32 bits extended to 32, floats of at most 32 as f32.
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

// registerType is the type an element of d is kept in within a block: 8-bit floats are
// read, but not written.
func registerType(d hlo.DType) hlo.DType {
	if d.IsFloat() && d.Size() == 1 {
		return hlo.F32
	}
	return d
}

// zero is the operand that is 0 or false.
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

// space is where memory is.
type space string

// set writes a register that is written more than once.
func (e *emitter) set(k kind, to, v operand) {
	if k == kindPred {
		v = e.asm.in(k, v)
	}
	e.asm.do(kindTable[k].move, to, v)
}

// maxVectorBytes is the bytes of the widest memory instruction.
const maxVectorBytes = 16
