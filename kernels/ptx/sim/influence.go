package sim

import (
	"slices"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// influence is what the value of a register may depend on, beside the thread
// and the launch's dimensions.
type influence uint8

const (
	byBlock   influence = 1 << iota // which CTA it is
	byAddress                       // a parameter of 8 bytes, plus what depends on none
	byLaunch                        // such parameters in other ways
	byData                          // memory and clocks
)

// An effect is what one instruction does to influences. It steers by operands
// that decide what runs and what is touched in shared memory, and reaches by
// those that only decide where in global memory it goes.
type effect struct {
	touched
	from           influence  // of its results, whatever it reads
	along          []register // operands whose address the result may be an offset from
	guard          register
	steers, reachs []register
	global         bool // its guard only decides what it does to global memory
	pure           bool // its guard only decides values
}

// influences decides whether checks of one execution stand for others: of
// another launch (steady), and of another CTA as far as shared memory and
// registers go (alike). It does not follow the flow of control: an influence on
// a register counts wherever the register is read.
func (e *entry) influences(all []effect) {
	of := map[register]influence{}
	for changed := true; changed; {
		changed = false
		for i := range all {
			x := &all[i]
			got := x.result(of)
			for _, r := range x.writes {
				changed = changed || of[r]|got != of[r]
				of[r] |= got
			}
		}
	}
	e.steady, e.alike = true, true
	for i := range all {
		steers, reachs := all[i].decides(of, &e.code[i])
		e.steady = e.steady && steers&^byBlock == 0 && reachs&(byData|byLaunch) == 0
		e.alike = e.alike && steers&(byData|byBlock) == 0
	}
}

// result is what the results of an instruction depend on. An offset from an
// address is an address; whatever else is made of one is not.
func (x *effect) result(of map[register]influence) influence {
	got, places, offsets := x.from, 0, true
	for _, r := range x.reads {
		got |= of[r]
		if of[r]&byAddress != 0 {
			places++
			offsets = offsets && slices.Contains(x.along, r)
		}
	}
	if places > 1 || !offsets {
		got |= byLaunch
	}
	return got
}

// decides joins the influences on an instruction's steering and reaching.
func (x *effect) decides(of map[register]influence, in *instr) (steers, reachs influence) {
	for _, r := range x.steers {
		steers |= of[r]
	}
	for _, r := range x.reachs {
		reachs |= of[r]
	}
	tracked := len(in.reads)+len(in.writes)+len(in.tensor) > 0
	switch g := of[x.guard]; {
	case x.guard.bank == noBank, x.pure && !tracked:
	case x.global && !tracked:
		if reachs |= g; g&byAddress != 0 {
			reachs |= byLaunch
		}
	default:
		steers |= g
	}
	return steers, reachs
}

// effect finds what an instruction does to influences.
func (d *decoder) effect(src *ptx.Instr, in *instr, t touched) effect {
	x := effect{touched: t, from: d.ownInfluence(src, in), along: d.along(src)}
	if !src.Guard.None() {
		x.guard = d.register(src.Guard.Reg)
	}
	switch in.class {
	case Arithmetic, Floating, Special:
		x.pure = true
	case Exchange:
		x.steers = d.named(&src.Operands[len(src.Operands)-1], nil) // who takes part
	case GlobalMemory, OtherMemory, SharedMemory, Atomic:
		x.global = in.space == global || in.space == constant || in.space == param || in.space == local
		d.addresses(src, &x, x.global)
	case AsyncCopy:
		d.copyOperands(src, &x)
	case Matrix:
		d.matrixOperands(src, &x)
	default:
		x.steers = t.reads
	}
	return x
}

// ownInfluence is what an instruction brings in.
func (d *decoder) ownInfluence(src *ptx.Instr, in *instr) influence {
	var v influence
	switch op := src.Opcode.Op; {
	case in.class == OtherMemory && in.space == param && d.smallParameter(src.Operands[1]):
	case in.class == OtherMemory && in.space == param:
		v = byAddress
	case op == ptx.OpLd, in.class == Atomic, in.class == Matrix, usesCarry(&src.Opcode): // the carry flag is no register
		v = byData
	}
	for i := range src.Operands {
		v |= d.operandInfluence(&src.Operands[i])
	}
	return v
}

// smallParameter reports whether a whole parameter too small for an address is read.
func (d *decoder) smallParameter(o ptx.Operand) bool {
	return o.Reg.None() && o.Bits == 0 && slices.ContainsFunc(d.src.Params, func(p ptx.Param) bool { return p.Name == o.Sym && p.Bytes() < 8 })
}

// operandInfluence is that of special registers and of addresses of variables.
func (d *decoder) operandInfluence(o *ptx.Operand) influence {
	var v influence
	switch s := o.Special; {
	case o.Kind == ptx.KindSym && d.e.variables[o.Sym].space == global:
		v = byData
	case o.Kind != ptx.KindSpecial:
	case moves(s):
		v = byBlock
	case s >= ptx.Clock && s <= ptx.GlobaltimerHi || s == ptx.GridID:
		v = byData
	}
	for i := range o.List {
		v |= d.operandInfluence(&o.List[i])
	}
	return v
}

// along are the registers that the result of an instruction is an offset from,
// if one of them is an address.
func (d *decoder) along(src *ptx.Instr) (list []register) {
	ops := src.Operands
	if len(ops) < 2 || ops[0].Kind != ptx.KindReg || bankOf(d.src.RegType(ops[0].Reg)) != bank64 {
		return nil
	}
	switch src.Opcode.Op {
	case ptx.OpMov, ptx.OpCvta, ptx.OpSub:
		return d.named(&ops[1], nil)
	case ptx.OpAdd:
		return d.named(&ops[2], d.named(&ops[1], nil))
	case ptx.OpMad:
		return d.named(&ops[3], nil)
	}
	return nil
}

// addresses steers or reaches by the memory operands.
func (d *decoder) addresses(src *ptx.Instr, x *effect, reaches bool) {
	for i := range src.Operands {
		if o := &src.Operands[i]; o.Kind == ptx.KindMem && reaches {
			x.reachs = d.named(o, x.reachs)
		} else if o.Kind == ptx.KindMem {
			x.steers = d.named(o, x.steers)
		}
	}
}

// copyOperands: tensor maps with their coordinates only say where in global
// memory, as do addresses there, and how much of its source a cp.async reads.
func (d *decoder) copyOperands(src *ptx.Instr, x *effect) {
	var spaces []space // of the first operands
	for _, m := range src.Opcode.Mods() {
		if s := spaceOf(m); s != generic {
			spaces = append(spaces, s)
		}
	}
	for i := range src.Operands {
		o := &src.Operands[i]
		outside := o.Kind == ptx.KindMem && i < len(spaces) && spaces[i] == global
		if outside || o.Kind == ptx.KindTensor || src.Opcode.Op == ptx.OpCpAsync && i > 0 {
			x.reachs = d.named(o, x.reachs)
			continue
		}
		x.steers = d.named(o, x.steers)
	}
}

// matrixOperands: addresses and descriptors steer, fragments do not.
func (d *decoder) matrixOperands(src *ptx.Instr, x *effect) {
	if src.Opcode.Op != ptx.OpWgmmaMMAAsync {
		d.addresses(src, x, false)
		return
	}
	for i := range src.Operands {
		if o := &src.Operands[i]; o.Kind != ptx.KindVec {
			x.steers = d.named(o, x.steers)
		}
	}
}
