package ptx

import (
	"math/bits"
	"slices"
)

// A Pressure is the most registers of 32 bits that the values of a thread fill at the
// same time, in two orders of the instructions. A value is kept while some path reads it
// later. Predicates have registers of their own; constants, parameters and addresses of
// variables are operands of machine instructions, and take none.
type Pressure struct {
	// Ordered is that of the text, and Hoisted that of the text with each load as early
	// in its basic block as its address and barriers allow it.
	Ordered, Hoisted int
}

// Pressure is that of the values of an entry.
func (e *Entry) Pressure() (most Pressure) {
	l := liveness{e: e, numbers: map[Reg]int{}}
	l.instructions()
	l.products()
	l.blocks()
	l.solve()
	for b, first := range l.starts {
		early := l.early(b)
		i := l.end(b)
		l.walk(b, func(live regSet) {
			i--
			size := l.size(live)
			most.Ordered = max(most.Ordered, size)
			most.Hoisted = max(most.Hoisted, size+early[i-first])
		})
	}
	return most
}

// early counts, for each instruction of a block, the registers of loads behind it that
// could stand before it.
func (l *liveness) early(block int) []int {
	first := l.starts[block]
	all := make([]int, l.end(block)-first)
	// Ready is the first instruction at which a register could have its value; barrier is
	// that from which on memory may have changed.
	ready := map[Reg]int{}
	barrier := 0
	for i := range all {
		in := l.code[first+i]
		at := 0
		in.eachRead(func(r Reg) { at = max(at, ready[r]) })
		loads := in.loadsMemory()
		switch {
		case loads && !in.Opcode.Has(ModNC):
			at = max(at, barrier)
		case !loads && !pure(&in.Opcode):
			at = i
			if in.changesMemory() {
				barrier = i
			}
		}
		in.eachWritten(func(r Reg) {
			ready[r] = at
			if !loads {
				return
			}
			ready[r] = i
			if n, known := l.numbers[r]; known {
				for k := at; k < i; k++ {
					all[k] += l.words[n]
				}
			}
		})
	}
	return all
}

// loadsMemory reports whether an instruction reads memory that is no parameter.
func (in *Instr) loadsMemory() bool {
	return in.Opcode.Op == OpLdmatrix ||
		in.Opcode.Op == OpLd && in.Opcode.Space() != ModParam
}

// changesMemory reports whether loads that do not say otherwise stay behind an
// instruction. Stores to global memory are those of results, which nothing reads.
func (in *Instr) changesMemory() bool {
	switch in.Opcode.Op {
	case OpSt:
		return in.Opcode.Space() != ModGlobal
	case OpAtom, OpRed, OpBarSync, OpBarrierSync, OpBarWarpSync, OpCpAsync,
		OpCpAsyncWaitGroup, OpCpAsyncWaitAll:
		return true
	}
	return false
}

// A regSet is a set of registers, by their numbers.
type regSet []uint64

// set adds or removes a register.
func (s regSet) set(n int, in bool) {
	if s[n/64] &^= 1 << (n % 64); in {
		s[n/64] |= 1 << (n % 64)
	}
}

// A liveness is the analysis of which values are read later: a backward problem over the
// flow graph, whose meet is union.
type liveness struct {
	e *Entry
	// Numbers has the registers that take room, and words what each takes.
	numbers map[Reg]int
	words   []int
	// Code is the instructions, and labels the places between them.
	code   []*Instr
	labels map[string]int
	// Starts are the first instructions of the basic blocks, and live what is read after
	// each.
	starts []int
	live   []regSet
	// Assigned are the registers that instructions without a guard write.
	assigned map[Reg]bool
	// Held are the operands of products that run until an instruction, which waits for them.
	held map[*Instr][]Reg
}

// instructions lists the instructions, and numbers the registers.
func (l *liveness) instructions() {
	l.labels, l.assigned = map[string]int{}, map[Reg]bool{}
	constant := map[Reg]bool{}
	for i := range l.e.Body {
		s := &l.e.Body[i]
		if s.Kind == StmtLabel {
			l.labels[s.Text] = len(l.code)
		}
		if s.Kind != StmtInstr {
			continue
		}
		in := &s.Instr
		l.code = append(l.code, in)
		same := in.loadsConstant()
		in.eachWritten(func(r Reg) {
			before, met := constant[r]
			constant[r] = same && (before || !met)
			l.assigned[r] = l.assigned[r] || in.Guard.None()
		})
	}
	for _, in := range l.code {
		in.eachWritten(func(r Reg) {
			words := (l.e.RegType(r).Bytes() + 3) / 4
			if _, met := l.numbers[r]; !met && words > 0 && !constant[r] {
				l.numbers[r] = len(l.words)
				l.words = append(l.words, words)
			}
		})
	}
}

// products finds, in the order of the text, which operands in registers wgmma reads until a
// wait: those of the groups that it waits for.
func (l *liveness) products() {
	l.held = map[*Instr][]Reg{}
	var open []Reg
	var groups [][]Reg
	for _, in := range l.code {
		switch in.Opcode.Op {
		case OpWgmmaMMAAsync:
			for _, o := range in.Operands[1].List {
				open = append(open, o.Reg)
			}
		case OpWgmmaCommitGroup:
			groups = append(groups, open)
			open = nil
		case OpWgmmaWaitGroup:
			running := int(in.Operands[0].Int())
			done := max(0, len(groups)-running)
			l.held[in] = slices.Concat(groups[:done]...)
			groups = groups[done:]
		}
	}
}

// loadsConstant reports whether the result of an instruction is an operand of machine
// instructions.
func (in *Instr) loadsConstant() bool {
	switch {
	case !in.Guard.None() || len(in.Operands) < 2:
		return false
	case in.Opcode.Op == OpLd:
		return in.Opcode.Space() == ModParam
	case in.Opcode.Op != OpMov:
		return false
	}
	switch in.Operands[1].Kind {
	case KindInt, KindF32, KindF64, KindSym:
		return true
	}
	return false
}

// writesNothing are the operations whose first operand is no destination, though it is a
// register.
var writesNothing = map[Op]bool{
	OpBarSync: true, OpBarArrive: true, OpBarWarpSync: true, OpBarrierSync: true,
	OpBarrierArrive: true, OpNanosleep: true,
}

// WritesFirst reports whether the first operand is what the instruction writes.
func (in *Instr) WritesFirst() bool {
	if len(in.Operands) == 0 || writesNothing[in.Opcode.Op] {
		return false
	}
	kind := in.Operands[0].Kind
	return kind != KindMem && kind != KindTensor
}

// eachWritten calls f with the registers that an instruction writes.
func (in *Instr) eachWritten(f func(Reg)) {
	if in.WritesFirst() {
		each(&in.Operands[0], func(r Reg) bool {
			f(r)
			return true
		})
	}
}

// eachRead calls f with the registers that an instruction reads. Sums of wgmma are read
// where they are written.
func (in *Instr) eachRead(f func(Reg)) {
	all := in.Operands
	if in.WritesFirst() && in.Opcode.Op != OpWgmmaMMAAsync {
		all = all[1:]
	}
	for i := range all {
		each(&all[i], func(r Reg) bool {
			f(r)
			return true
		})
	}
}

// blocks finds the basic blocks.
func (l *liveness) blocks() {
	l.starts = []int{0}
	for _, at := range l.labels {
		l.starts = append(l.starts, at)
	}
	for i, in := range l.code {
		switch in.Opcode.Op {
		case OpBra, OpBrx, OpRet, OpExit, OpTrap:
			l.starts = append(l.starts, i+1)
		}
	}
	slices.Sort(l.starts)
	l.starts = slices.Compact(l.starts)
	for n := len(l.starts); n > 0 && l.starts[n-1] >= len(l.code); n-- {
		l.starts = l.starts[:n-1]
	}
	words := (len(l.words) + 63) / 64
	for range l.starts {
		l.live = append(l.live, make(regSet, words))
	}
}

// end is the instruction behind a block.
func (l *liveness) end(block int) int {
	if block+1 < len(l.starts) {
		return l.starts[block+1]
	}
	return len(l.code)
}

// solve finds what is read after each block. Sets only grow, so it ends.
func (l *liveness) solve() {
	for changed := true; changed; {
		changed = false
		for b := range slices.Backward(l.starts) {
			before := l.walk(b, nil)
			for _, p := range l.predecessors(b) {
				for i, word := range before {
					changed = changed || word&^l.live[p][i] != 0
					l.live[p][i] |= word
				}
			}
		}
	}
}

// predecessors are the blocks that are followed by a block.
func (l *liveness) predecessors(block int) (all []int) {
	for p := range l.starts {
		last := l.code[l.end(p)-1]
		falls, to := true, -1
		any := false // a label that the code computes
		switch last.Opcode.Op {
		case OpBra:
			falls, to = !last.Guard.None(), l.labels[last.Operands[0].Sym]
		case OpBrx:
			falls, any = !last.Guard.None(), l.labelled(l.starts[block])
		case OpRet, OpExit, OpTrap:
			falls = !last.Guard.None()
		}
		if falls && p+1 == block || any || to == l.starts[block] {
			all = append(all, p)
		}
	}
	return all
}

// labelled reports whether a label is at an instruction.
func (l *liveness) labelled(at int) bool {
	for _, n := range l.labels {
		if n == at {
			return true
		}
	}
	return false
}

// walk goes over a block from its end, calls visit with what is read from each
// instruction on, and returns what is from the first one on.
func (l *liveness) walk(block int, visit func(regSet)) regSet {
	live := slices.Clone(l.live[block])
	for i := l.end(block) - 1; i >= l.starts[block]; i-- {
		in := l.code[i]
		l.mark(in, live, false)
		l.mark(in, live, true)
		if visit != nil {
			visit(live)
		}
	}
	return live
}

// mark adds what an instruction reads, or removes what it writes. A write under a guard
// leaves the former value in place, if there is one.
func (l *liveness) mark(in *Instr, live regSet, reads bool) {
	if reads {
		add := func(r Reg) {
			if n, known := l.numbers[r]; known {
				live.set(n, true)
			}
		}
		in.eachRead(add)
		for _, r := range l.held[in] {
			add(r)
		}
		return
	}
	in.eachWritten(func(r Reg) {
		if n, known := l.numbers[r]; known && (in.Guard.None() || !l.assigned[r]) {
			live.set(n, false)
		}
	})
}

// size is the registers of 32 bits that a set fills.
func (l *liveness) size(s regSet) (sum int) {
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			sum += l.words[64*i+bits.TrailingZeros64(word)]
		}
	}
	return sum
}
