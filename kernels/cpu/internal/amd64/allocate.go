package amd64

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
)

// A Placement says how a Chain is emitted.
type Placement struct {
	// Copies is how many vectors are worked on at once; 0 means 1.
	Copies int
	// Mask is the register whose lanes with the sign bit set are on; 0 means
	// that all lanes are. It goes with one copy only.
	Mask Reg
	// Active is the general register with how many lanes are on, the first, and
	// Scratch one that may be overwritten. Loads and stores of elements of one
	// and two bytes, which no instruction masks, need them.
	Active, Scratch Reg
	// Reserved are vector registers that values must not be given. Those of
	// pinned values and Mask are never given.
	Reserved []Reg
	// Spill is memory for values that the registers do not hold, of which
	// SpillSlots times 32 bytes may be used; 0 means that they have to.
	Spill      Mem
	SpillSlots int
	// Wide has vectors of 64 bytes for those of 32 of the chain, whose loads and stores
	// advance twice as far. It goes without a mask, needs AVX-512F, DQ and BW to run, and is
	// an error where an instruction has no such form.
	Wide bool
	// Registers is how many vector registers there are for values, from the first on; 0 means
	// 16. More go with Wide only.
	Registers int
}

// Emit appends the chain to a. It returns an error, and leaves a's code as it
// was, if the values do not fit in the registers; fewer copies may.
func (c *Chain) Emit(a *Assembler, p Placement) error {
	if c.err != nil {
		return c.err
	}
	e := &a.emitter
	e.begin(a, c, p)
	if e.mask != 0 && e.copies != 1 {
		return fmt.Errorf("chain: a mask goes with one copy, not %d", e.copies)
	}
	if c.wide && !e.wide {
		return errors.New("chain: it is for vectors of 64 bytes")
	}
	if err := e.reserve(p); err != nil {
		return err
	}
	e.findLastUses()
	before := a.Mark()
	for k := range c.steps {
		e.step(k)
	}
	if e.err == nil {
		return a.err
	}
	a.Undo(before)
	return e.err
}

// begin has the emitter work on c, in the memory it used before.
func (e *emitter) begin(a *Assembler, c *Chain, p Placement) {
	*e = emitter{
		a:       a,
		c:       c,
		copies:  max(p.Copies, 1),
		mask:    p.Mask,
		active:  p.Active,
		scratch: p.Scratch,
		at:      e.at,
		last:    e.last,
		shared:  e.shared[:0],
		slots:   e.slots,
		wide:    p.Wide,
		spill:   spill{mem: p.Spill, size: 32, free: e.spill.free[:0]},
	}
	if e.wide {
		e.spill.size = 64
		p.SpillSlots /= 2
	}
	e.at, e.last = zeros(
		e.at, len(c.steps)*e.copies,
	), zeros(e.last, len(c.steps))
	if p.SpillSlots > 0 {
		e.slots = zeros(e.slots, len(e.at))
		e.spill.slot = e.slots
	}
	for k := p.SpillSlots - 1; k >= 0; k-- {
		e.spill.free = append(e.spill.free, k)
	}
}

// zeros returns n zeros, in the memory of list if that is enough.
func zeros[T int | Reg](list []T, n int) []T {
	list = slices.Grow(list[:0], n)[:n]
	clear(list)
	return list
}

// An emitter holds where values are while a chain is emitted. It belongs to an
// assembler, so that its memory is used again.
type emitter struct {
	a               *Assembler // The assembler that is emitted to.
	c               *Chain     // The chain.
	copies          int
	mask            Reg
	wide            bool
	active, scratch Reg
	free            uint32 // The set of free vector registers, by number.
	// The register of value v in copy u, at[(v-1)*copies+u].
	at   []Reg
	last []int // The step that uses a value last.
	// Registers of constants that are loaded for one step.
	shared []Reg
	slots  []int // The memory of spill.slot.
	spill  spill
	err    error
}

// reserve takes the registers that values must not be given, and gives pinned
// values theirs.
func (e *emitter) reserve(p Placement) error {
	e.free = 1<<lowRegisters - 1
	if e.wide && p.Registers > lowRegisters {
		e.free = 1<<p.Registers - 1
	}
	taken := func(r Reg) { e.free &^= 1 << r.number() }
	for _, r := range p.Reserved {
		taken(r)
	}
	if p.Mask != 0 {
		taken(p.Mask)
	}
	for k := range e.c.steps {
		s := &e.c.steps[k]
		if s.kind != pinnedStep {
			continue
		}
		regs := e.c.pins[s.pin : s.pin+s.pinned]
		if len(regs) != 1 && len(regs) < e.copies {
			return fmt.Errorf("chain: a value is pinned to %d registers, for %d copies", len(regs), e.copies)
		}
		for _, r := range regs {
			taken(r)
		}
		for u := range e.copies {
			e.at[k*e.copies+u] = regs[u%len(regs)]
		}
	}
	return nil
}

// findLastUses sets the step that uses each value last.
func (e *emitter) findLastUses() {
	for k := range e.c.steps {
		s := &e.c.steps[k]
		e.last[k] = k
		for _, arg := range s.args[:s.n] {
			if arg.value != 0 {
				e.last[arg.value-1] = k
			}
		}
	}
}

// step emits a step, in all copies.
func (e *emitter) step(k int) {
	s := &e.c.steps[k]
	for u := 0; u < e.copies && e.err == nil; u++ {
		e.reloadArgs(k, u)
		switch s.kind {
		case loadStep:
			e.load(k, u)
		case storeStep:
			e.store(k, u)
		case prefetchStep:
			e.prefetch(s, u)
		case plainStep:
			e.plain(k, u)
		case fusedStep:
			e.fused(k, u)
		case updateStep:
			e.update(k, u)
		case assignStep:
			e.assign(k, u)
		}
	}
	for _, r := range e.shared {
		e.release(r)
	}
	e.shared = e.shared[:0]
}

// A registersError says that a chain's values do not fit in the registers.
type registersError struct{ copies int }

// NeedsNarrow says whether a wide chain was not emitted because an instruction of it
// has no form for 64 bytes.
func NeedsNarrow(err error) bool {
	return errors.As(err, new(wideError))
}

// NeedsRegisters says whether a chain was not emitted because its values do not
// fit in the registers; fewer copies may.
func NeedsRegisters(err error) bool {
	return errors.As(err, new(registersError))
}

// Error says how many copies did not fit.
func (r registersError) Error() string {
	return fmt.Sprintf("chain: its values do not fit in the vector registers in %d copies", r.copies)
}

// lowRegisters is the vector registers that instructions on less than 64 bytes can name.
const lowRegisters = 16

// take returns a free register, the highest that halves of vectors are not in, else the lowest,
// or one whose value it spills.
func (e *emitter) take() Reg {
	if e.free == 0 && !e.evict() {
		e.err = registersError{e.copies}
		return Y0
	}
	n := bits.Len32(e.free) - 1
	if n < lowRegisters {
		n = bits.TrailingZeros32(e.free)
	}
	e.free &^= 1 << n
	return Y(n)
}

// takeHalf is take of half of a vector, in place of the register r.
func (e *emitter) takeHalf(r Reg) Reg {
	if r.isHigh() && e.err == nil {
		e.free |= 1 << r.number()
		low := e.free & (1<<lowRegisters - 1)
		if low == 0 {
			e.err = registersError{e.copies}
			return X0
		}
		n := bits.TrailingZeros32(low)
		e.free &^= 1 << n
		r = X(n)
	}
	return r.X()
}

// release makes a register free.
func (e *emitter) release(r Reg) {
	if isMask(r) {
		return
	}
	e.free |= 1 << r.number()
	e.spill.owner[r.number()] = 0
}

// dies reports whether step k uses v last, so that its register is free after.
func (e *emitter) dies(v Value, k int) bool {
	kind := e.c.steps[v-1].kind
	return e.last[v-1] == k &&
		kind != constantStep && kind != pinnedStep
}

// releaseDying frees the registers of copy u that step k uses last.
func (e *emitter) releaseDying(k, u int) {
	s := &e.c.steps[k]
	for _, arg := range s.args[:s.n] {
		if arg.value != 0 && e.dies(arg.value, k) {
			e.release(e.register(arg.value, u))
			e.forget(int(arg.value-1)*e.copies + u)
		}
	}
}

// register is the register of v in copy u.
func (e *emitter) register(v Value, u int) Reg {
	return e.at[(int(v)-1)*e.copies+u]
}

// isConstant reports whether v is a constant, which has no register of its own.
func (e *emitter) isConstant(v Value) bool {
	return v != 0 &&
		e.c.steps[v-1].kind == constantStep
}

// set notes that value k is in r, and frees r if nothing uses the value.
func (e *emitter) set(k, u int, r Reg) {
	e.at[k*e.copies+u] = r
	e.spill.owner[r.number()] = k*e.copies + u + 1
	if e.last[k] == k {
		e.release(r)
	}
}

// memory returns where the constant v is.
func (e *emitter) memory(v Value) Mem {
	c := e.c.steps[v-1].constant
	if e.wide {
		c = c.widened()
	}
	return e.a.constant(c)
}

// loaded returns a register with the constant v, which the copies of a step
// share.
func (e *emitter) loaded(v Value, u int) Reg {
	at := &e.at[(int(v)-1)*e.copies]
	if u == 0 {
		*at = e.take()
		e.shared = append(e.shared, *at)
		e.emit(VMOVAPS, *at, e.memory(v))
	}
	return *at
}
