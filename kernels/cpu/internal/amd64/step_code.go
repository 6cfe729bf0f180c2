package amd64

import "fmt"

// place returns the memory operand of a load or store in copy u.
func (e *emitter) place(s *step, u int) Mem {
	m := s.mem
	advance := s.advance
	if e.wide {
		advance *= 2
	}
	m.Disp += int32(u) * advance
	return m
}

// maskedOp returns the form of a load or store that leaves out lanes.
func (e *emitter) maskedOp(op Op) Op {
	switch op {
	case VMOVUPS, VMOVAPS, VMOVNTPS, VMOVDQU, VMOVDQA, VMOVNTDQ:
		return VMASKMOVPS
	case VMOVUPD, VMOVAPD, VMOVNTPD:
		return VMASKMOVPD
	}
	e.err = fmt.Errorf("chain: %s cannot be masked", op)
	return op
}

// broadcasts reports whether a load repeats one element.
func (o Op) broadcasts() bool {
	return o == VBROADCASTSS || o == VBROADCASTSD || o == VPBROADCASTW
}

// load emits a load. Under a mask, lanes that are off become 0.
func (e *emitter) load(k, u int) {
	s := &e.c.steps[k]
	r := e.take()
	if e.wide && s.advance == 0 && !s.op.broadcasts() {
		e.err = wideError{s.op} // It loads 32 bytes at one place.
		return
	}
	switch {
	case e.mask == 0 || s.advance == 0:
		if !e.takes(s.op, []Operand{r, e.place(s, u)}) {
			r = e.takeHalf(r)
		}
		e.emit(s.op, r, e.place(s, u))
	case s.op == VPMOVZXDQ:
		e.loadLow(s, u, r)
	case narrowLoad(s.op) != 0:
		e.loadPartial(s, narrowLoad(s.op), r)
	default:
		if op := e.maskedOp(s.op); e.err == nil {
			e.emit(op, r, e.mask, e.place(s, u))
		}
	}
	e.set(k, u, r)
}

// store emits a store. Under a mask, only the lanes that are on are stored.
func (e *emitter) store(k, u int) {
	s := &e.c.steps[k]
	v := s.args[0].value
	var r Reg
	if e.isConstant(v) {
		r = e.loaded(v, u)
	} else {
		r = e.register(v, u)
	}
	switch {
	case e.mask == 0:
		to := e.place(s, u)
		if !e.takes(s.op, []Operand{to, r}) {
			r = r.X() // only its low half
		}
		e.emit(s.op, e.place(s, u), r)
	case s.op == VMOVUPS && r.class() == x:
		e.storeLow(s, u, r)
	case narrowStore(s.op, r) != 0:
		e.storePartial(s, narrowStore(s.op, r), r)
	default:
		if op := e.maskedOp(s.op); e.err == nil {
			e.emit(op, e.place(s, u), e.mask, r)
		}
	}
	e.releaseDying(k, u)
}

// prefetch emits a prefetch, none under a mask.
func (e *emitter) prefetch(s *step, u int) {
	if e.mask == 0 {
		e.emit(s.op, e.place(s, u))
	}
}

// operands fills in the arguments of step k behind its destination; a constant
// is memory where the instruction takes it and no other operand is.
func (e *emitter) operands(k, u int, to *[5]Operand) []Operand {
	s := &e.c.steps[k]
	inMemory := false
	n := int(s.n)
	for j := n - 1; j >= 0; j-- {
		arg := s.args[j]
		switch {
		case arg.value == 0:
			to[j+1] = Imm(arg.imm)
		case !e.isConstant(arg.value):
			to[j+1] = e.register(arg.value, u)
		case !inMemory && s.op.takesMemory(j+1, n+1):
			to[j+1] = e.memory(arg.value)
			inMemory = true
		default:
			to[j+1] = e.loaded(arg.value, u)
		}
	}
	return to[:n+1]
}

// takesMemory reports whether operand j of n may be memory.
func (o Op) takesMemory(j, n int) bool {
	if int(o) >= len(instructions) {
		return false
	}
	for _, f := range instructions[o].forms {
		if len(f.enc) == n &&
			f.args[j]&memory != 0 &&
			f.args[0]&memory == 0 {
			return true
		}
	}
	return false
}

// plain emits op dst, args…; the destination may be the register of an argument
// that is used for the last time, as instructions read before they write.
func (e *emitter) plain(k, u int) {
	s := &e.c.steps[k]
	var to [5]Operand
	operands := e.operands(k, u, &to)
	e.releaseDying(k, u)
	if e.selects(k) {
		operands[0] = maskOfLanes + 1 + Reg(u)
		e.at[k*e.copies+u] = maskOfLanes + 1 + Reg(u)
		e.emit(s.op, operands...)
		return
	}
	r := e.take()
	operands[0] = r
	if !e.takes(s.op, operands) && !isMask(operands[s.n]) {
		r = e.takeHalf(r)
		operands[0] = r
	}
	e.emit(s.op, operands...)
	e.set(k, u, r)
}

// update emits op target, target, args…, or for a fused operation op target,
// args…; under a mask through a copy, of which the lanes that are on are taken.
func (e *emitter) update(k, u int) {
	s := &e.c.steps[k]
	var to [5]Operand
	operands := e.operands(k, u, &to)
	target := e.register(s.target, u)
	r := target
	if e.mask != 0 {
		r = e.take()
		e.emit(VMOVAPS, r, target)
	}
	operands[0] = r
	if s.op >= VFMADD132PS && s.op <= VFNMSUB231SD {
		e.emit(s.op, operands...)
	} else {
		e.accumulate(s, r, operands)
	}
	if e.mask != 0 {
		e.emit(VBLENDVPS, target, target, r, e.mask)
		e.release(r)
	}
	e.releaseDying(k, u)
}

// assign emits a move, or under a mask a blend.
func (e *emitter) assign(k, u int) {
	s := &e.c.steps[k]
	target := e.register(s.target, u)
	source := e.memoryOrRegister(s.args[0].value, u)
	if e.mask != 0 {
		e.emit(VBLENDVPS, target, target, source, e.mask)
	} else {
		e.emit(VMOVAPS, target, source)
	}
	e.releaseDying(k, u)
}

// accumulate emits op r, r, args… .
func (e *emitter) accumulate(s *step, r Reg, operands []Operand) {
	if len(operands) == 2 {
		e.emit(s.op, r, r, operands[1])
		return
	}
	e.emit(s.op, r, r, operands[1], operands[2])
}

// The three orders of a fused multiply-add, as offsets from the first.
const (
	order132 = 0                         // d = d*m + v
	order213 = VFMADD213PS - VFMADD132PS // d = v*d + m
	order231 = VFMADD231PS - VFMADD132PS // d = v*m + d
)

// fused emits ±a*b ± c. One operand is overwritten: best one that is used for
// the last time, else a copy; one may be memory. One register may be several
// operands, as all are read before one is written.
func (e *emitter) fused(k, u int) {
	s := &e.c.steps[k]
	a := s.args[0].value
	b := s.args[1].value
	c := s.args[2].value
	if e.isConstant(a) ||
		!e.isConstant(b) && !e.dies(a, k) {
		a, b = b, a // a constant is b, and a dies if either does
	}
	if e.isConstant(a) {
		e.fusedCopy(k, u, e.loaded(a, u), b, c)
		return
	}
	x := e.register(a, u)
	switch {
	case e.dies(c, k):
		r := e.register(c, u)
		e.emit(
			s.op+order231, r, x,
			e.memoryOrRegister(b, u),
		)
		e.freeUnless(k, u, r)
		e.set(k, u, r)
	case e.dies(a, k) &&
		e.isConstant(b) && !e.isConstant(c):
		e.emit(
			s.op+order132, x,
			e.register(c, u),
			e.memory(b),
		)
		e.freeUnless(k, u, x)
		e.set(k, u, x)
	case e.dies(a, k) && !e.isConstant(b):
		e.emit(
			s.op+order213, x,
			e.register(b, u),
			e.memoryOrRegister(c, u),
		)
		e.freeUnless(k, u, x)
		e.set(k, u, x)
	default:
		e.fusedCopy(k, u, x, b, c)
	}
}

// fusedCopy emits ±x*b ± c through a copy of c.
func (e *emitter) fusedCopy(k, u int, x Reg, b, c Value) {
	s := &e.c.steps[k]
	r := e.take()
	e.emit(VMOVAPS, r, e.memoryOrRegister(c, u))
	e.emit(
		s.op+order231, r, x,
		e.memoryOrRegister(b, u),
	)
	e.freeUnless(k, u, r)
	e.set(k, u, r)
}

// freeUnless frees what step k uses last, but not r, which it wrote.
func (e *emitter) freeUnless(k, u int, r Reg) {
	e.releaseDying(k, u)
	e.free &^= 1 << r.number()
}

// memoryOrRegister returns v's register, or a constant's memory.
func (e *emitter) memoryOrRegister(v Value, u int) Operand {
	if e.isConstant(v) {
		return e.memory(v)
	}
	return e.register(v, u)
}
