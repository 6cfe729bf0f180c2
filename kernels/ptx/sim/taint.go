package sim

import (
	"slices"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// taint is what the value of a register may depend on, beside the thread
// and the launch's dimensions.
type taint uint8

const (
	taintBlock   taint = 1 << iota // which CTA it is
	taintAddress                   // a parameter of 8 bytes, plus what depends on none
	taintLaunch                    // such parameters in other ways
	taintData                      // memory and clocks
)

// An taintEffect is what one instruction does to influences. It steers by operands
// that decide what runs and what is touched in shared memory, and reaches by
// those that only decide where in global memory it goes.
type taintEffect struct {
	defUse
	from                taint      // of its results, whatever it reads
	bases               []register // operands whose address the result may be an offset from
	guard               register
	control, addressing []register
	global              bool // its guard only decides what it does to global memory
	pure                bool // its guard only decides values
}

// analyseTaint decides whether checks of one execution stand for others: of
// another launch (steady), and of another CTA as far as shared memory and
// registers go (alike). It does not follow the flow of control: an influence on
// a register counts wherever the register is read.
func (e *entry) analyseTaint(all []taintEffect) {
	of := map[register]taint{}
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
	e.launchInvariant, e.blockInvariant = true, true
	for i := range all {
		steers, reachs := all[i].controlTaint(
			of, &e.code[i],
		)
		e.launchInvariant = e.launchInvariant && steers&^taintBlock == 0 &&
			reachs&(taintData|taintLaunch) == 0
		e.blockInvariant = e.blockInvariant && steers&(taintData|taintBlock) == 0
	}
}

// result is what the results of an instruction depend on. An offset from an
// address is an address; whatever else is made of one is not.
func (x *taintEffect) result(of map[register]taint) taint {
	got := x.from
	places := 0
	offsets := true
	for _, r := range x.reads {
		got |= of[r]
		if of[r]&taintAddress != 0 {
			places++
			offsets = offsets && slices.Contains(x.bases, r)
		}
	}
	if places > 1 || !offsets {
		got |= taintLaunch
	}
	return got
}

// controlTaint joins the influences on an instruction's steering and reaching.
func (x *taintEffect) controlTaint(
	of map[register]taint, in *instr,
) (steers, reachs taint) {
	for _, r := range x.control {
		steers |= of[r]
	}
	for _, r := range x.addressing {
		reachs |= of[r]
	}
	tracked := len(in.reads)+len(in.writes)+len(in.tensor) > 0
	switch g := of[x.guard]; {
	case x.guard.bank == noBank, x.pure && !tracked:
	case x.global && !tracked:
		if reachs |= g; g&taintAddress != 0 {
			reachs |= taintLaunch
		}
	default:
		steers |= g
	}
	return steers, reachs
}

// taintEffect finds what an instruction does to influences.
func (d *decoder) taintEffect(src *ptx.Instr, in *instr, t defUse) taintEffect {
	x := taintEffect{
		defUse: t,
		from:   d.ownTaint(src, in),
		bases:  d.baseOperands(src),
	}
	if !src.Guard.None() {
		x.guard = d.register(src.Guard.Reg)
	}
	switch in.class {
	case Arithmetic, Floating, Special:
		x.pure = true
	case Exchange:
		// who takes part
		x.control = d.named(
			&src.Operands[len(src.Operands)-1], nil,
		)
	case GlobalMemory, OtherMemory, SharedMemory, Atomic:
		x.global = in.space == global || in.space == constant ||
			in.space == param || in.space == local
		d.addresses(src, &x, x.global)
	case AsyncCopy:
		d.copyOperands(src, &x)
	case Matrix:
		d.matrixOperands(src, &x)
	default:
		x.control = t.reads
	}
	return x
}

// ownTaint is what an instruction brings in.
func (d *decoder) ownTaint(src *ptx.Instr, in *instr) taint {
	var v taint
	switch op := src.Opcode.Op; {
	case in.class == OtherMemory && in.space == param &&
		d.smallParameter(src.Operands[1]):
	case in.class == OtherMemory && in.space == param:
		v = taintAddress
		// the carry flag is no register
	case op == ptx.OpLd, in.class == Atomic,
		in.class == Matrix, usesCarry(&src.Opcode):
		v = taintData
	}
	for i := range src.Operands {
		v |= d.operandTaint(&src.Operands[i])
	}
	return v
}

// smallParameter reports whether a whole parameter too small for an address is read.
func (d *decoder) smallParameter(o ptx.Operand) bool {
	return o.Reg.None() && o.Bits == 0 &&
		slices.ContainsFunc(d.src.Params, func(p ptx.Param) bool {
			return p.Name == o.Sym && p.Bytes() < 8
		})
}

// operandTaint is that of special registers and of addresses of variables.
func (d *decoder) operandTaint(o *ptx.Operand) taint {
	var v taint
	switch s := o.Special; {
	case o.Kind == ptx.KindSym &&
		d.e.variables[o.Sym].space == global:
		v = taintData
	case o.Kind != ptx.KindSpecial:
	case moves(s):
		v = taintBlock
	case s >= ptx.Clock && s <= ptx.GlobaltimerHi ||
		s == ptx.GridID:
		v = taintData
	}
	for i := range o.List {
		v |= d.operandTaint(&o.List[i])
	}
	return v
}

// baseOperands are the registers that the result of an instruction is an offset from,
// if one of them is an address.
func (d *decoder) baseOperands(src *ptx.Instr) (list []register) {
	ops := src.Operands
	if len(ops) < 2 ||
		ops[0].Kind != ptx.KindReg ||
		bankOf(d.src.RegType(ops[0].Reg)) != bank64 {
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
func (d *decoder) addresses(src *ptx.Instr, x *taintEffect, reaches bool) {
	for i := range src.Operands {
		o := &src.Operands[i]
		if o.Kind == ptx.KindMem && reaches {
			x.addressing = d.named(o, x.addressing)
		} else if o.Kind == ptx.KindMem {
			x.control = d.named(o, x.control)
		}
	}
}

// copyOperands: tensor maps with their coordinates only say where in global
// memory, as do addresses there, and how much of its source a cp.async reads.
func (d *decoder) copyOperands(src *ptx.Instr, x *taintEffect) {
	var spaces []space // of the first operands
	for _, m := range src.Opcode.Mods() {
		if s := spaceOf(m); s != generic {
			spaces = append(spaces, s)
		}
	}
	for i := range src.Operands {
		o := &src.Operands[i]
		outside := o.Kind == ptx.KindMem &&
			i < len(spaces) && spaces[i] == global
		if outside || o.Kind == ptx.KindTensor ||
			src.Opcode.Op == ptx.OpCpAsync && i > 0 {
			x.addressing = d.named(o, x.addressing)
			continue
		}
		x.control = d.named(o, x.control)
	}
}

// matrixOperands: addresses and descriptors steer, fragments do not.
func (d *decoder) matrixOperands(src *ptx.Instr, x *taintEffect) {
	if src.Opcode.Op != ptx.OpWgmmaMMAAsync {
		d.addresses(src, x, false)
		return
	}
	for i := range src.Operands {
		if o := &src.Operands[i]; o.Kind != ptx.KindVec {
			x.control = d.named(o, x.control)
		}
	}
}
