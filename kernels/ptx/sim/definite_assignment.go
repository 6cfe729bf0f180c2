package sim

import (
	"slices"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// defUse are the registers that an instruction reads and writes, and those
// of writes that it may read.
type defUse struct{ reads, writes, accumulators []register }

// readsFirst are the operations whose first operand is a value and not a
// destination.
var readsFirst = map[ptx.Op]bool{
	ptx.OpBarSync: true, ptx.OpBarArrive: true, ptx.OpBarWarpSync: true, ptx.OpBarrierSync: true,
	ptx.OpBarrierArrive: true, ptx.OpNanosleep: true,
}

// defUse lists the registers of an instruction. Whether the accumulators of a
// wgmma are read is decided at run time.
func (d *decoder) defUse(src *ptx.Instr) defUse {
	var t defUse
	if !src.Guard.None() {
		t.reads = append(
			t.reads, d.register(src.Guard.Reg),
		)
	}
	for i := range src.Operands {
		o := &src.Operands[i]
		if i == 0 && o.Kind != ptx.KindMem &&
			o.Kind != ptx.KindTensor &&
			!readsFirst[src.Opcode.Op] {
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

func (e *entry) newSet() registerSet {
	return make(
		registerSet,
		(e.count[bank32]+e.count[bank64]+e.count[bankPred]+63)/64,
	)
}

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

func (s registerSet) add(n int) {
	s[n/64] |= 1 << (n % 64)
}
func (s registerSet) has(n int) bool {
	return s[n/64]>>(n%64)&1 == 1
}

// proveAssigned finds the reads that no execution reaches before a write: the rest is
// checked at run time. It is definite assignment over the flow graph, thread by
// thread, where a guarded write does not count.
func (e *entry) proveAssigned(all []defUse) {
	starts := e.blocks()
	in := make([]registerSet, len(starts))
	in[0] = e.newSet()
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

// meet keeps in *into what both sets have; nil is everything.
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

// transferBlock adds what block b surely writes to set; with unproven, it notes
// there the registers that are read and not in set. It returns the index of
// the block's last instruction.
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
		if e.code[i].guard == 0 {
			for _, r := range all[i].writes {
				set.add(e.number(r))
			}
		}
	}
	return end - 1
}

func (e *entry) successors(starts []int, b, last int) []int {
	var next []int
	in := &e.code[last]
	if in.flow == branch {
		at, _ := slices.BinarySearch(starts, int(in.target))
		next = append(next, at)
	}
	if (in.flow != branch && in.flow != leave || in.guard != 0) &&
		b+1 < len(starts) {
		next = append(next, b+1)
	}
	return next
}

// markUnproven lets the writers of registers with unproven reads note what they wrote.
func (e *entry) markUnproven(all []defUse, unproven registerSet) {
	for i := range all {
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

// noteTensor lets instructions that touch registers of wgmmas be checked.
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

// shape is that of a wgmma, nil for other instructions.
func (in *instr) shape() *wgmmaShape {
	if in.mods == nil {
		return nil
	}
	return in.mods.wg
}

func (e *entry) usesTensor() bool { return e.tensor }
