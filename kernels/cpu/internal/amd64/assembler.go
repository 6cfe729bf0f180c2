package amd64

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// An Assembler collects instructions and constants and lays them out as
// machine code. The zero Assembler is empty and ready. The first mistake (an
// instruction without a form for its operands, a label bound twice) is kept and
// returned by Assemble; what follows it is ignored.
type Assembler struct {
	code        []byte
	gaps        []gap // in the order of the code
	refs        []ref
	labels      []place // of label 1, 2, …
	constants   []byte
	known       map[constant]int32 // offset in constants
	pool        Label
	nonTemporal []place // VMOVNTPS
	before      []int   // bytes of gaps before gap 0, 1, …, n, once laid out
	count       int
	emitter     emitter // of the last chain; only its memory is of use
	err         error

	// Record has Recorded return the instructions.
	Record   bool
	recorded []Instruction
}

// Reset empties the assembler, whose memory the next code uses. What Assemble returned stays.
func (a *Assembler) Reset() {
	clear(a.known)
	*a = Assembler{
		code:        a.code[:0],
		gaps:        a.gaps[:0],
		refs:        a.refs[:0],
		labels:      a.labels[:0],
		constants:   a.constants[:0],
		known:       a.known,
		nonTemporal: a.nonTemporal[:0],
		emitter:     a.emitter,
	}
}

// An Instruction is one of an assembler: an operation with its operands, or only a label
// that is bound there.
type Instruction struct {
	Op       Op
	Operands []Operand
	Bound    Label
}

// Recorded returns the instructions and labels in order, and the constants, which
// labels that are not bound stand for.
func (a *Assembler) Recorded() ([]Instruction, []byte) {
	return a.recorded, a.constants
}

// A place is an offset in code and the number of gaps before it.
type place struct {
	at, gaps int
	bound    bool
}

// A gap is a piece of code whose size is known only when all code is: a jump,
// or padding up to a multiple of align.
type gap struct {
	at     int
	align  int
	opcode byte // of the short jump
	target Label
	size   int
}

// A ref is a 32-bit offset to fill in: the place of the label less that of the
// end of the instruction.
type ref struct {
	place place
	end   int // bytes from the offset's place to the end of the instruction
	label Label
}

// A constant is a vector of equal elements, or the words of a table.
type constant struct {
	bits  uint64
	width int32      // bytes of the pattern
	lanes int32      // times it is repeated
	table *[8]uint32 // instead of them, if it is there
	wide  bool       // for vectors of 64 bytes: the table twice
}

// bytes is the constant as it is in memory.
func (c constant) bytes() []byte {
	data := make([]byte, 0, 64+8) // a word more is cut off again
	if c.table != nil {
		for _, word := range c.table {
			data = binary.LittleEndian.AppendUint32(data, word)
		}
		if c.wide {
			data = append(data, data...)
		}
		return data
	}
	for range c.lanes {
		data = binary.LittleEndian.AppendUint64(data, c.bits)[:len(data)+int(c.width)]
	}
	return data
}

// Emit appends the instruction op with its operands in Intel's order,
// destination first.
func (a *Assembler) Emit(op Op, operands ...Operand) {
	if a.err != nil {
		return
	}
	a.count++
	if a.Record {
		a.record(op, operands)
	}
	f := op.find(operands)
	if f == nil {
		a.fail(op, operands, op.unmetRequirement())
		return
	}
	if f.enc == "J" {
		a.jump(op, f, operands[0].(Label))
		return
	}
	p := f.place(operands)
	if p.inMemory {
		wrong := p.mem.check()
		if p.mem.Label != 0 && !a.has(p.mem.Label) {
			wrong = "not a label of this assembler"
		}
		if wrong != "" {
			a.fail(op, operands, wrong)
			return
		}
	}
	if op == VMOVNTPS {
		a.nonTemporal = append(a.nonTemporal, place{
			at:   len(a.code),
			gaps: len(a.gaps),
		})
	}
	a.encode(f, &p)
}

// record keeps an instruction, whose operands it copies so that they need not be on the
// heap where nothing is recorded.
func (a *Assembler) record(op Op, operands []Operand) {
	i := Instruction{Op: op}
	for _, o := range operands {
		switch o := o.(type) {
		case Reg:
			i.Operands = append(i.Operands, o)
		case Mem:
			i.Operands = append(i.Operands, o)
		case Imm:
			i.Operands = append(i.Operands, o)
		case Label:
			i.Operands = append(i.Operands, o)
		}
	}
	a.recorded = append(a.recorded, i)
}

// jump leaves a gap for the jump to target.
func (a *Assembler) jump(op Op, f *form, target Label) {
	if !a.has(target) {
		a.fail(op, []Operand{target}, "not a label of this assembler")
		return
	}
	a.gaps = append(a.gaps, gap{
		at:     len(a.code),
		opcode: f.opcode,
		target: target,
		size:   2,
	})
}

// encode appends one instruction and notes the offset to its label.
func (a *Assembler) encode(f *form, p *fields) {
	var at int
	a.code, at = f.encode(a.code, p)
	if p.inMemory && p.mem.Label != 0 {
		binary.LittleEndian.PutUint32(
			a.code[at:], uint32(p.mem.Disp),
		)
		a.refs = append(a.refs, ref{
			place{at: at, gaps: len(a.gaps)},
			len(a.code) - at,
			p.mem.Label,
		})
	}
}

// unmetRequirement says why no form of o fits.
func (o Op) unmetRequirement() string {
	if int(o) >= len(instructions) ||
		len(instructions[o].forms) == 0 {
		return "there is no such instruction"
	}
	return "the instruction has no form for these operands"
}

// fail keeps the first mistake.
func (a *Assembler) fail(op Op, operands []Operand, what string) {
	text := make([]string, len(operands))
	for k, o := range operands {
		text[k] = operandText(o)
	}
	a.err = fmt.Errorf(
		"instruction %d: %s %s: %s",
		a.count, op, strings.Join(text, ", "), what,
	)
}

// operandText is an operand in messages. It keeps operands from escaping, which
// a call of String would not.
func operandText(operand Operand) string {
	switch o := operand.(type) {
	case Reg:
		return o.String()
	case Mem:
		return o.String()
	case Imm:
		return o.String()
	case Label:
		return o.String()
	}
	return "no operand"
}

// NewLabel returns a label that is bound nowhere yet.
func (a *Assembler) NewLabel() Label {
	a.labels = append(a.labels, place{})
	return Label(len(a.labels))
}

// has reports whether a label belongs to the assembler.
func (a *Assembler) has(label Label) bool {
	return label > 0 && int(label) <= len(a.labels)
}

// Bind puts label here.
func (a *Assembler) Bind(label Label) {
	switch {
	case a.err != nil:
	case !a.has(label):
		a.err = fmt.Errorf("%s is not a label of this assembler", label)
	case a.labels[label-1].bound:
		a.err = fmt.Errorf("%s is bound twice", label)
	default:
		a.labels[label-1] = place{
			len(a.code), len(a.gaps), true,
		}
		if a.Record {
			a.recorded = append(a.recorded, Instruction{Bound: label})
		}
	}
}

// Align pads with NOPs to a multiple of n bytes, a power of two up to 64.
func (a *Assembler) Align(n int) {
	if a.err == nil &&
		(n < 1 || n > 64 || n&(n-1) != 0) {
		a.err = fmt.Errorf("alignment %d is not a power of two up to 64", n)
		return
	}
	a.gaps = append(a.gaps, gap{
		at:    len(a.code),
		align: n,
	})
}

// Splat32 returns 32 bytes of constant memory that hold bits eight times.
func (a *Assembler) Splat32(bits uint32) Mem {
	return a.constant(constant{bits: uint64(bits), width: 4, lanes: 8})
}

// Splat64 returns 32 bytes of constant memory that hold bits four times.
func (a *Assembler) Splat64(bits uint64) Mem {
	return a.constant(constant{bits: bits, width: 8, lanes: 4})
}

// Word32 returns 4 bytes of constant memory that hold bits, to be broadcast.
func (a *Assembler) Word32(bits uint32) Mem {
	return a.constant(constant{bits: uint64(bits), width: 4, lanes: 1})
}

// Word64 returns 8 bytes of constant memory that hold bits, to be broadcast.
func (a *Assembler) Word64(bits uint64) Mem {
	return a.constant(constant{bits: bits, width: 8, lanes: 1})
}

// Data returns constant memory that holds data, aligned to 32 bytes.
func (a *Assembler) Data(data []byte) Mem {
	return a.hasConstants(a.reserve(32, data))
}

// constant returns the place of a constant, which equal constants share.
func (a *Assembler) constant(c constant) Mem {
	at, ok := a.known[c]
	if !ok {
		if a.known == nil {
			a.known = map[constant]int32{}
		}
		data := c.bytes()
		at = a.reserve(len(data), data)
		a.known[c] = at
	}
	return a.hasConstants(at)
}

// Table is memory of a vector of 32 bytes among the constants, each call another.
func (a *Assembler) Table(words [8]uint32) Mem {
	return a.constant(constant{table: &words})
}

// reserve puts data at the next multiple of align bytes of the constants, and
// returns its offset.
func (a *Assembler) reserve(align int, data []byte) int32 {
	for len(a.constants)%align != 0 {
		a.constants = append(a.constants, 0)
	}
	a.constants = append(a.constants, data...)
	return int32(len(a.constants) - len(data))
}

// hasConstants is memory of the constants, at an offset.
func (a *Assembler) hasConstants(at int32) Mem {
	if a.pool == 0 {
		a.pool = a.NewLabel()
	}
	return Mem{Label: a.pool, Disp: at}
}

// A Mark is how much an Assembler held, constants apart.
type Mark struct{ code, gaps, refs, labels, nonTemporal, count, recorded int }

// Mark returns how much there is. The constants have their label then, so that
// it outlives what is undone.
func (a *Assembler) Mark() Mark {
	a.hasConstants(0)
	return Mark{
		len(a.code), len(a.gaps),
		len(a.refs), len(a.labels),
		len(a.nonTemporal), a.count,
		len(a.recorded),
	}
}

// Undo takes back all instructions and labels since m.
func (a *Assembler) Undo(m Mark) {
	a.code = a.code[:m.code]
	a.gaps = a.gaps[:m.gaps]
	a.refs = a.refs[:m.refs]
	a.labels = a.labels[:m.labels]
	a.nonTemporal = a.nonTemporal[:m.nonTemporal]
	a.count = m.count
	a.recorded = a.recorded[:m.recorded]
}
