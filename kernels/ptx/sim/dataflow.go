package sim

import (
	"slices"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// defUse are the registers that an instruction reads (uses) and writes (defines),
// and the accumulators among those written, which it may read too.
type defUse struct{ reads, writes, accumulators []register }

// defUse lists the registers that an instruction reads and writes. Whether a
// wgmma reads its accumulators is decided at run time.
func (d *decoder) defUse(src *ptx.Instr) defUse {
	var t defUse
	if !src.Guard.None() {
		t.reads = append(
			t.reads, d.register(src.Guard.Reg),
		)
	}
	for i := range src.Operands {
		o := &src.Operands[i]
		if i == 0 && src.WritesFirst() {
			t.writes = d.named(o, t.writes)
			continue
		}
		t.reads = d.named(o, t.reads)
	}
	if src.Opcode.Op == ptx.OpWgmmaMMAAsync {
		t.accumulators = t.writes
	}
	return t
}

// named appends the registers that an operand names.
func (d *decoder) named(o *ptx.Operand, list []register) []register {
	if !o.Reg.None() {
		list = append(list, d.register(o.Reg))
	}
	for i := range o.List {
		list = d.named(&o.List[i], list)
	}
	return list
}

// registerSet is a set of registers of all banks.
type registerSet []uint64

// newSet is an empty set of registers of the entry.
func (e *entry) newSet() registerSet {
	return make(
		registerSet,
		(e.count[bank32]+e.count[bank64]+e.count[bankPred]+63)/64,
	)
}

// number is the position of a register in a set.
func (e *entry) number(r register) int {
	switch r.bank {
	case bank64:
		return e.count[bank32] + int(r.index)
	case bankPred:
		return e.count[bank32] +
			e.count[bank64] + int(r.index)
	}
	return int(r.index)
}

// add adds a register by its number.
func (s registerSet) add(n int) {
	s[n/64] |= 1 << (n % 64)
}

// has reports whether the set has a register.
func (s registerSet) has(n int) bool {
	return s[n/64]>>(n%64)&1 == 1
}

// proveAssigned finds the reads that no execution reaches before a write; the
// remaining reads are checked at run time. The analysis is definite assignment
// over the flow graph, a forward dataflow problem whose meet is intersection: a
// register is assigned at a block if it is assigned at the end of every
// predecessor. A guarded write does not count, since some thread may skip it.
func (e *entry) proveAssigned(all []defUse) {
	starts := e.blocks()
	in := make([]registerSet, len(starts))
	in[0] = e.newSet()
	// The sets only shrink, so that the iteration ends.
	for changed := true; changed; {
		changed = false
		for b := range starts {
			if in[b] == nil {
				continue
			}
			out := slices.Clone(in[b])
			last := e.transferBlock(starts, b, all, out, nil)
			for _, next := range e.successors(starts, b, last) {
				changed = meet(&in[next], out) || changed
			}
		}
	}
	// A second pass over the fixed point lists the reads that remain.
	unproven := e.newSet()
	for b := range starts {
		if in[b] != nil {
			e.transferBlock(
				starts, b, all, slices.Clone(in[b]), unproven,
			)
		}
	}
	e.markUnproven(all, unproven)
}

// meet keeps in *into the registers that both sets have, and reports whether that
// changed it. A nil set stands for all registers: its block has not been reached
// yet.
func meet(into *registerSet, s registerSet) bool {
	if *into == nil {
		*into = slices.Clone(s)
		return true
	}
	changed := false
	for i, v := range s {
		if both := (*into)[i] & v; both != (*into)[i] {
			(*into)[i] = both
			changed = true
		}
	}
	return changed
}

// blocks gives the first instruction of each basic block.
func (e *entry) blocks() []int {
	lead := map[int]bool{0: true}
	// A block begins at a target of a branch and behind every branch and exit.
	for i := range e.code {
		switch in := &e.code[i]; in.flow {
		case branch:
			lead[int(in.target)] = true
			lead[i+1] = true
		case leave:
			lead[i+1] = true
		}
	}
	var starts []int
	for i := range e.code {
		if lead[i] {
			starts = append(starts, i)
		}
	}
	return starts
}

// transferBlock is the transfer function of a block: it adds what block b surely
// writes to set. With unproven, it also notes there the registers that are read
// and not in set. It returns the index of the block's last instruction.
func (e *entry) transferBlock(
	starts []int, b int, all []defUse, set, unproven registerSet,
) int {
	end := len(e.code)
	if b+1 < len(starts) {
		end = starts[b+1]
	}
	for i := starts[b]; i < end && i < len(all); i++ {
		for _, r := range all[i].reads {
			n := e.number(r)
			if unproven != nil && !set.has(n) {
				unproven.add(n)
				e.code[i].reads = append(e.code[i].reads, r)
			}
		}
		for _, r := range all[i].accumulators {
			n := e.number(r)
			if unproven != nil && !set.has(n) {
				unproven.add(n)
				e.code[i].mods.sums = append(
					e.code[i].mods.sums, r,
				)
			}
		}
		// Only an unguarded write is sure to happen.
		if e.code[i].guard == 0 {
			for _, r := range all[i].writes {
				set.add(e.number(r))
			}
		}
	}
	return end - 1
}

// successors are the blocks that may follow the block whose last instruction is
// given.
func (e *entry) successors(starts []int, b, last int) []int {
	var next []int
	in := &e.code[last]
	if in.flow == branch {
		at, _ := slices.BinarySearch(starts, int(in.target))
		next = append(next, at)
	}
	// Control falls through unless the block ends with an unguarded branch or
	// exit.
	if (in.flow != branch && in.flow != leave || in.guard != 0) &&
		b+1 < len(starts) {
		next = append(next, b+1)
	}
	return next
}

// markUnproven makes the writers of registers with unproven reads record what
// they wrote.
func (e *entry) markUnproven(all []defUse, unproven registerSet) {
	for i := range all {
		// Only writes of registers that are read unproven have to be recorded
		// at run time.
		for _, r := range all[i].writes {
			if unproven.has(e.number(r)) {
				e.code[i].writes = append(e.code[i].writes, r)
			}
		}
		e.tracked = e.tracked ||
			len(e.code[i].reads) > 0 ||
			e.code[i].mods != nil &&
				len(e.code[i].mods.sums) > 0
	}
}

// noteIsolated finds whether some instruction acquires what other clusters have released.
func (e *entry) noteIsolated() {
	e.isolated = true
	for i := range e.code {
		if m := e.code[i].mods; m != nil && (m.strong || m.atomic != nil) {
			e.isolated = false
		}
	}
}

// noteTensor makes instructions that read or write registers of wgmmas check that
// no wgmma is still using them.
func (e *entry) noteTensor(all []defUse) {
	used := e.newSet()
	for i := range e.code {
		if s := e.code[i].shape(); s != nil {
			e.tensor = true
			for _, r := range e.code[i].list[:s.acc+s.registersA()] {
				used.add(e.number(r))
			}
		}
	}
	if !e.tensor {
		return
	}
	for i := range all {
		if e.code[i].shape() != nil {
			continue
		}
		for _, r := range all[i].reads {
			if used.has(e.number(r)) && r.bank == bank32 {
				e.code[i].tensor = append(e.code[i].tensor, r)
			}
		}
		for _, r := range all[i].writes {
			if used.has(e.number(r)) && r.bank == bank32 {
				e.code[i].tensor = append(e.code[i].tensor, r)
				e.code[i].tensorWrites = append(
					e.code[i].tensorWrites, r,
				)
			}
		}
	}
}

// taint is what the value of a register may depend on, apart from the thread and
// the dimensions of the launch.
type taint uint8

const (
	// The value depends on which CTA runs.
	taintBlock taint = 1 << iota
	// The value is an address: a parameter of 8 bytes plus a value without taint.
	taintAddress
	// The value depends on parameters of 8 bytes in other ways.
	taintLaunch
	// The value depends on memory or clocks.
	taintData
)

// taintEffect is the effect of one instruction on taint. Operands of control
// decide what runs and which bytes of shared memory are accessed; operands of
// addressing only decide which bytes of global memory are.
type taintEffect struct {
	defUse
	// from is the taint that the instruction gives its results, whatever it
	// reads.
	from taint
	// bases are the operands from whose address the result may be an offset.
	bases []register
	// guard is the predicate of the instruction.
	guard               register
	control, addressing []register
	// global is set if the guard only decides what the instruction does to global
	// memory.
	global bool
	// pure is set if the guard only decides values.
	pure bool
}

// analyseTaint decides whether the checks of one execution stand for others: for
// those of another launch (launchInvariant), and for those of another CTA as far
// as shared memory and registers go (blockInvariant). It iterates to a fixed
// point over registers and ignores the flow of control: taint of a register
// counts wherever the register is read, which errs towards checking.
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
	// Another launch may differ in data and addresses, another CTA in its
	// index.
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

// result is the taint of the results of an instruction. An offset from an address
// is an address; any other function of an address is not.
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
	// A sum of two addresses, or a function of one other than adding an offset,
	// depends on where arrays lie.
	if places > 1 || !offsets {
		got |= taintLaunch
	}
	return got
}

// controlTaint is the taint of an instruction's control and addressing operands.
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
	// A guard counts as control unless it only decides about values or about
	// global memory.
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

// taintEffect finds the effect of an instruction on taint.
func (d *decoder) taintEffect(src *ptx.Instr, in *instr, t defUse) taintEffect {
	x := taintEffect{
		defUse: t,
		from:   d.ownTaint(src, in),
		bases:  d.baseOperands(src),
	}
	if !src.Guard.None() {
		x.guard = d.register(src.Guard.Reg)
	}
	// The class determines the role of the operands.
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

// ownTaint is the taint that an instruction brings in itself.
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

// smallParameter reports whether an operand is a parameter of fewer than 8 bytes,
// which is part of the launch's key and hence no taint.
func (d *decoder) smallParameter(o ptx.Operand) bool {
	return o.Reg.None() && o.Bits == 0 &&
		slices.ContainsFunc(d.src.Params, func(p ptx.Param) bool {
			return p.Name == o.Sym && p.Bytes() < 8
		})
}

// operandTaint is the taint of the special registers and module variables that an
// operand names.
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

// copyOperands sorts the operands of asynchronous copies. Tensor maps with their
// coordinates, addresses of global memory, and the number of bytes that a
// cp.async reads only affect addresses in global memory; the others are control.
func (d *decoder) copyOperands(src *ptx.Instr, x *taintEffect) {
	// spaces holds the state spaces of the first operands.
	var spaces []space
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
