package amd64

// A spill is the memory for values that do not fit in registers, and what is
// there. Values are identified by their place in emitter.at.
type spill struct {
	mem   Mem     // The memory for spilled values.
	size  int     // The bytes of a slot.
	free  []int   // The free slots.
	slot  []int   // The slot of a value, plus 1.
	owner [32]int // The value in a register, plus 1; 0 for none.
	step  int     // The step at hand.
}

// at is the memory of a slot.
func (s *spill) at(slot int) Mem {
	m := s.mem
	m.Disp += int32(s.size * slot)
	return m
}

// reloadArgs brings what step k reads in copy u into registers, where it stays while
// the step is at hand.
func (e *emitter) reloadArgs(k, u int) {
	e.spill.step = k
	s := &e.c.steps[k]
	if e.spill.slot == nil {
		return
	}
	for _, arg := range s.args[:s.n] {
		at := e.spillIndex(arg.value, u)
		if at >= 0 && !e.holds(at) {
			e.reload(at)
		}
	}
}

// spillIndex returns the place in at of the value v in copy u if it may be spilled,
// else -1.
func (e *emitter) spillIndex(v Value, u int) int {
	if v == 0 || e.isConstant(v) ||
		e.c.steps[v-1].kind == pinnedStep {
		return -1
	}
	return int(v-1)*e.copies + u
}

// holds reports whether the value is in its register; those of masks are kept.
func (e *emitter) holds(at int) bool {
	return isMask(e.at[at]) || e.spill.owner[e.at[at].number()] == at+1
}

// reload loads a spilled value to a register.
func (e *emitter) reload(at int) {
	r := e.take()
	if e.at[at].class() == x {
		r = Y(e.takeHalf(r).number())
	}
	e.emit(
		VMOVUPS,
		r,
		e.spill.at(e.spill.slot[at]-1),
	)
	if e.at[at].class() == x {
		r = r.X()
	}
	e.at[at] = r
	e.spill.owner[r.number()] = at + 1
}

// evict frees the register whose value is needed last, and not by the step at
// hand, after storing it unless it has been. It reports whether there was one.
func (e *emitter) evict() bool {
	latest, victim := e.spill.step, -1
	for n, owner := range e.spill.owner {
		if owner == 0 {
			continue
		}
		if next := e.nextUse((owner - 1) / e.copies); next > latest {
			latest, victim = next, n
		}
	}
	if victim < 0 {
		return false
	}
	at := e.spill.owner[victim] - 1
	if e.spill.slot == nil ||
		e.spill.slot[at] == 0 && !e.store32(at) {
		return false
	}
	e.release(Y(victim))
	return true
}

// nextUse returns the step, from the one at hand, that uses the value of step d.
func (e *emitter) nextUse(d int) int {
	for k := e.spill.step; k <= e.last[d]; k++ {
		s := &e.c.steps[k]
		for _, arg := range s.args[:s.n] {
			if int(arg.value) == d+1 {
				return k
			}
		}
	}
	return len(e.c.steps)
}

// store32 stores all 32 bytes of a value's register to a free slot, and reports
// whether there was one.
func (e *emitter) store32(at int) bool {
	last := len(e.spill.free) - 1
	if last < 0 {
		return false
	}
	slot := e.spill.free[last]
	e.spill.free = e.spill.free[:last]
	e.spill.slot[at] = slot + 1
	e.emit(
		VMOVUPS,
		e.spill.at(slot),
		Y(e.at[at].number()),
	)
	return true
}

// forget gives back the slot of a value that is used no more.
func (e *emitter) forget(at int) {
	if e.spill.slot != nil && e.spill.slot[at] != 0 {
		e.spill.free = append(
			e.spill.free, e.spill.slot[at]-1,
		)
		e.spill.slot[at] = 0
	}
}
