package amd64

import "fmt"

// A Chain is straight-line code over vectors in which every value is defined
// once; Emit gives the values registers. Several copies of a chain, each over
// its own vectors, can be interleaved to hide latencies.
//
// The first mistake is kept and returned by Emit; what follows it is ignored.
type Chain struct {
	steps []step
	pins  []Reg // of the pinned values
	wide  bool  // It is emitted wide only.
	err   error
}

// NewWideChain returns a chain that is emitted wide only, see Placement.Wide: it may have
// instructions that vectors of 64 bytes alone have, where others take several.
func NewWideChain() *Chain { return &Chain{wide: true} }

// Reset empties the chain, whose memory the next one uses. Values of before do
// not belong to it any more.
func (c *Chain) Reset() {
	c.steps = c.steps[:0]
	c.pins = c.pins[:0]
	c.wide = false
	c.err = nil
}

// A Value is what a step of a Chain defined, or a constant of it. It belongs to
// that chain. The zero Value is none.
type Value int32

func (Value) operand() {}

// A kind says what a step of a chain does.
type kind uint8

const (
	constantStep kind = iota // A constant, in memory.
	pinnedStep               // A value in registers that the caller chose.
	loadStep
	storeStep
	prefetchStep
	plainStep  // op dst, args…
	fusedStep  // dst = ±args[0]*args[1] ± args[2]
	updateStep // target = op target, args…
	assignStep // target = args[0]
)

// defines reports whether a step of kind k defines a value.
func (k kind) defines() bool { return k != storeStep && k < updateStep }

// A step is one operation of a chain.
type step struct {
	kind kind
	n    uint8 // The number of args.
	op   Op
	args [4]argument
	// The value that an update or assignment changes.
	target Value
	// Where the registers of a pinned value begin in pins.
	pin int32
	// The number of these registers: one a copy, or one.
	pinned int32
	mem    Mem // The memory of a load, store or prefetch.
	// The distance of that memory from one copy to the next.
	advance  int32
	constant constant
}

// An argument is a value, or an immediate where value is 0.
type argument struct {
	value Value
	imm   int32
}

// add appends a step and returns its value.
func (c *Chain) add(s step) Value {
	if c.steps == nil {
		c.steps = make([]step, 0, 48)
	}
	c.steps = append(c.steps, s)
	return Value(len(c.steps))
}

// Const32 returns a vector of eight times bits.
func (c *Chain) Const32(bits uint32) Value {
	return c.add(step{
		kind:     constantStep,
		constant: constant{bits: uint64(bits), width: 4, lanes: 8},
	})
}

// Const64 returns a vector of four times bits.
func (c *Chain) Const64(bits uint64) Value {
	return c.add(step{
		kind:     constantStep,
		constant: constant{bits: bits, width: 8, lanes: 4},
	})
}

// table32 returns a vector of the words of table, the same array for the same words.
func (c *Chain) table32(table *[8]uint32) Value {
	return c.add(step{
		kind:     constantStep,
		constant: constant{table: table},
	})
}

// Pinned returns a value that lives in regs outside the chain, one register a
// copy, or one for all: an accumulator, or what does not change in a loop.
func (c *Chain) Pinned(regs ...Reg) Value {
	if len(regs) == 0 {
		c.fail("a pinned value needs a register")
	}
	c.pins = append(c.pins, regs...)
	return c.add(step{
		kind:   pinnedStep,
		pin:    int32(len(c.pins) - len(regs)),
		pinned: int32(len(regs)),
	})
}

// Load returns what op (VMOVUPS, VBROADCASTSS, VPMOVZXWD, …) loads from from,
// and advance bytes further for every next copy. Under a mask it loads only the
// lanes that are on, unless advance is 0.
func (c *Chain) Load(op Op, from Mem, advance int32) Value {
	return c.add(step{
		kind:    loadStep,
		op:      op,
		mem:     from,
		advance: advance,
	})
}

// Store has op (VMOVUPS, VMOVNTPS, …) store v to to, and advance bytes further
// for every next copy. Under a mask it stores only the lanes that are on. What
// VMOVNTPS stores to must be a multiple of 32 bytes, except under a mask; an
// SFENCE belongs behind the loop.
func (c *Chain) Store(op Op, to Mem, advance int32, v Value) {
	c.add(step{
		kind:    storeStep,
		op:      op,
		mem:     to,
		advance: advance,
		n:       1,
		args:    [4]argument{{value: v}},
	})
	c.check(v)
}

// Prefetch has op (PREFETCHT0, …) fetch the cache line at from, and advance bytes
// further for every next copy. It does nothing under a mask.
func (c *Chain) Prefetch(op Op, from Mem, advance int32) {
	c.add(step{
		kind:    prefetchStep,
		op:      op,
		mem:     from,
		advance: advance,
	})
}

// Do returns what op makes of operands, each a Value or an Imm. A constant
// serves as a memory operand where op takes one, which is mostly the last.
func (c *Chain) Do(op Op, operands ...Operand) Value {
	return c.add(c.step(plainStep, op, operands))
}

// Update replaces the pinned value target by what op makes of target and
// operands; of VFMADD231PS and its like it is the sum. Lanes that a mask turns
// off stay as they were.
func (c *Chain) Update(target Value, op Op, operands ...Operand) {
	c.change(target, c.step(updateStep, op, operands))
}

// Assign replaces the pinned value target by v: later steps, and the next round
// of a loop, see it. Lanes that a mask turns off stay as they were.
func (c *Chain) Assign(target, v Value) {
	c.check(v)
	c.change(target, step{
		kind: assignStep,
		n:    1,
		args: [4]argument{{value: v}},
	})
}

// change appends a step that changes a pinned value.
func (c *Chain) change(target Value, s step) {
	s.target = target
	if c.check(target); c.err == nil &&
		c.steps[target-1].kind != pinnedStep {
		c.fail("only a pinned value can be changed")
	}
	c.add(s)
}

// MulAdd32 returns a*b + d in f32, rounded once.
func (c *Chain) MulAdd32(a, b, d Value) Value {
	return c.add(c.step(fusedStep, VFMADD132PS, []Operand{a, b, d}))
}

// MulSub32 returns a*b - d in f32, rounded once.
func (c *Chain) MulSub32(a, b, d Value) Value {
	return c.add(c.step(fusedStep, VFMSUB132PS, []Operand{a, b, d}))
}

// NegMulAdd32 returns d - a*b in f32, rounded once.
func (c *Chain) NegMulAdd32(a, b, d Value) Value {
	return c.add(c.step(fusedStep, VFNMADD132PS, []Operand{a, b, d}))
}

// MulAdd64 returns a*b + d in f64, rounded once.
func (c *Chain) MulAdd64(a, b, d Value) Value {
	return c.add(c.step(fusedStep, VFMADD132PD, []Operand{a, b, d}))
}

// NegMulAdd64 returns d - a*b in f64, rounded once.
func (c *Chain) NegMulAdd64(a, b, d Value) Value {
	return c.add(c.step(fusedStep, VFNMADD132PD, []Operand{a, b, d}))
}

// step makes a step of an operation, whose operands are values and immediates.
func (c *Chain) step(k kind, op Op, operands []Operand) step {
	s := step{
		kind: k,
		op:   op,
		n:    uint8(min(len(operands), len(step{}.args))),
	}
	if len(operands) > len(s.args) {
		c.fail(fmt.Sprintf("%s takes no %d operands", op, len(operands)))
		return step{}
	}
	for j, o := range operands {
		switch o := o.(type) {
		case Value:
			c.check(o)
			s.args[j].value = o
		case Imm:
			s.args[j].imm = int32(o)
			if Imm(s.args[j].imm) != o {
				c.fail(fmt.Sprintf("%s: %s has more than 32 bits", op, o))
			}
		default:
			c.fail(fmt.Sprintf("%s: operands in a chain are values and immediates", op))
		}
	}
	return s
}

// check fails unless v is a value of the chain.
func (c *Chain) check(v Value) {
	if v <= 0 ||
		int(v) > len(c.steps) ||
		!c.steps[v-1].kind.defines() {
		c.fail(fmt.Sprintf("%d is not a value of this chain", v))
	}
}

// fail keeps the first mistake.
func (c *Chain) fail(what string) {
	if c.err == nil {
		c.err = fmt.Errorf(
			"chain: step %d: %s", len(c.steps)+1, what,
		)
	}
}
