package sim

import (
	"fmt"
	"math/bits"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// fork is a group of lanes of a diverged warp that is not running now.
type fork struct {
	// pc is the instruction that the group goes on at.
	pc int32
	// mask holds the lanes of the group.
	mask uint32
	// blocked is set if the group waits at a barrier.
	blocked bool
	// held is set if the group waits for other lanes at an operation of the whole
	// warp.
	held bool
}

// status is the scheduling state of a warp.
type status uint8

const (
	// A ready warp can execute instructions.
	ready status = iota
	// A blocked warp waits for a barrier, an mbarrier or other warps.
	blocked
	// All lanes of the warp have ended.
	exited
)

// warp is 32 lanes in lockstep. Where lanes diverge, the group with the smallest
// program counter runs first, and groups that meet run together: the order in
// which structured control flow reconverges.
type warp struct {
	cta *cta
	// id is the number of the warp in its CTA.
	id int
	// party is the number of the warp in the vector clocks of the cluster.
	party int
	// r32, r64 and pred are the register files; a predicate register is one bit a
	// lane.
	r32  []word
	r64  []long
	pred []uint32
	// carry is the carry flag of each lane.
	carry uint32
	// pc is the instruction that the running lanes execute.
	pc int32
	// mask holds the lanes that are at pc.
	mask uint32
	// active holds the lanes that execute the current instruction: mask without
	// those whose guard fails.
	active uint32
	// whole holds the lanes that the warp began with; fewer than 32 in the last
	// warp of some CTAs.
	whole uint32
	// live holds the lanes that have not exited.
	live uint32
	// forks are the groups of lanes that are not running.
	forks  []fork
	status status
	// on says what the warp waits for.
	on string
	// onPC is the instruction that waits.
	onPC int32
	// onBar is the mbarrier that the warp waits for, if it is one.
	onBar *mbarrier
	// polls is set if the warp waits with test_wait, which may report that the
	// phase is not complete.
	polls bool
	// refused is the phase that the warp was last told is not complete.
	refused refusal
	// giveUp makes test_wait report that the phase is not complete.
	giveUp bool
	// onCluster is set if the warp waits for barrier.cluster.
	onCluster bool
	// atCluster is the phase of barrier.cluster that the warp arrived in.
	atCluster int
	// ticks is the reading of the warp's clock, in cycles since the launch began.
	ticks int64
	// steps is the number of instructions that the warp has executed.
	steps int64
	// lanes is the number of instructions that its lanes have executed.
	lanes int64
	// t32 and t64 take the results of a partly active warp before they are
	// merged.
	t32 word
	t64 long
	// addr and addr2 are scratch space for the addresses of an instruction's
	// memory operands.
	addr  long
	addr2 long
	// offset is the offset of each lane in the bytes that coalesced returned.
	offset [warpSize]uint32
	// inited holds, for each tracked register of each bank, the lanes that were
	// written.
	inited [4][]uint32
	// storing is set while a plain store executes, and rewrites are its conflicts
	// with earlier stores.
	storing  bool
	rewrites []rewrite
	// waited is set after griddepcontrol.wait, or a barrier with a warp that has waited.
	waited bool
	copies asyncCopies
	bulk   bulkGroups
	wg     wgmmaQueue
	clock  partyClock
}

// run executes instructions until the warp waits or exits, or until it has
// executed slice of them. It is the inner loop of the simulator: an instruction
// of a converged warp costs one indirect call.
func (w *warp) run(slice int64) {
	code := w.cta.entry.code
	steps := int64(0)
	lanes := int64(0)
	counts := w.cta.work.executed
	watch := w.cta.watch
	for w.status == ready && steps < slice {
		if len(w.forks) > 0 {
			w.converge()
		}
		// A lane executes the instruction if it is at the program counter and
		// its guard holds.
		in := &code[w.pc]
		m := w.mask & (w.pred[in.guard] ^ in.flip)
		steps++
		if counts != nil {
			counts[in.pc]++
			lanes += int64(bits.OnesCount32(m))
		}
		// Guarded instructions without an active lane cost nothing but the
		// step.
		w.active = m
		switch in.flow {
		case onward:
			if m != 0 {
				if watch {
					w.before(in)
				}
				in.run(w, in)
				if m != allLanes && in.result != noBank {
					w.blend(in)
				}
				if watch {
					w.after(in)
				}
			}
			w.pc++
		case branch:
			w.branch(in, m)
		case leave:
			w.exitLanes(m)
		// A handler that may wait moves the program counter itself: a blocked
		// instruction is executed again when the warp wakes up.
		case waiting:
			if m == 0 {
				w.pc++
				continue
			}
			if watch {
				w.before(in)
			}
			in.run(w, in)
			if watch {
				w.after(in)
			}
		}
	}
	w.steps += steps
	w.lanes += lanes
}

// blend merges the results of the active lanes from the temporary register into
// the destination.
func (w *warp) blend(in *instr) {
	if in.result == bank32 {
		d := &w.r32[in.d]
		for m := w.active; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			d[l] = w.t32[l]
		}
		return
	}
	d := &w.r64[in.d]
	for m := w.active; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		d[l] = w.t64[l]
	}
}

// dst32 is the register that an instruction which computes all lanes writes: the
// destination if all lanes are active, and a temporary register that blend merges
// otherwise.
func (w *warp) dst32(in *instr) *word {
	if w.active == allLanes {
		return &w.r32[in.d]
	}
	return &w.t32
}

// dst64 is dst32 for results of 64 bits.
func (w *warp) dst64(in *instr) *long {
	if w.active == allLanes {
		return &w.r64[in.d]
	}
	return &w.t64
}

// converge joins groups of lanes that are at the same program counter and
// switches to the group with the smallest one.
func (w *warp) converge() {
	for i := 0; i < len(w.forks); i++ {
		f := &w.forks[i]
		switch {
		case f.blocked:
		// The groups have met: they run together from here. The search starts
		// again, since the joined group may meet others.
		case f.pc == w.pc:
			w.mask |= f.mask
			w.forks = append(w.forks[:i], w.forks[i+1:]...)
			i = -1
		case f.held:
		// The group that is behind runs first, so that it can catch up.
		case f.pc < w.pc:
			f.pc, w.pc = w.pc, f.pc
			f.mask, w.mask = w.mask, f.mask
			i = -1
		}
	}
}

// branch sends the lanes m to the target of a branch. A divergent branch makes
// them a fork, and the other lanes fall through first.
func (w *warp) branch(in *instr, m uint32) {
	switch m {
	case w.mask:
		w.pc = in.target
	case 0:
		w.pc++
	default:
		// The lanes that branch wait as a group of their own. If the target
		// lies behind, converge switches to them at the next instruction.
		w.forks = append(w.forks, fork{
			pc:   in.target,
			mask: m,
		})
		w.mask &^= m
		w.pc++
	}
}

// exitLanes ends the lanes m, and the warp if none is left.
func (w *warp) exitLanes(m uint32) {
	w.mask &^= m
	w.live &^= m
	if w.mask != 0 {
		w.pc++
		return
	}
	if w.live == 0 {
		w.status = exited
		w.cta.warpExited(w)
		return
	}
	w.resume()
}

// hold sets the running lanes aside at an operation that they must execute together
// with others, and switches to a group that may join them. It returns false if there is
// none. Where code of lanes that come later stands before that operation, the order of
// the text does not bring them together.
func (w *warp) hold() bool {
	for i, f := range w.forks {
		if f.blocked || f.held {
			continue
		}
		w.forks[i] = fork{pc: w.pc, mask: w.mask, held: true}
		// The loop of the warp goes on behind instructions that never wait.
		if w.cta.entry.code[w.pc].flow == onward {
			f.pc--
		}
		w.pc, w.mask = f.pc, f.mask
		w.active = 0
		return true
	}
	return false
}

// resume switches to another group of lanes that can run; it blocks the warp if
// all groups wait.
func (w *warp) resume() {
	for i, f := range w.forks {
		if !f.blocked {
			w.pc = f.pc
			w.mask = f.mask
			w.forks = append(w.forks[:i], w.forks[i+1:]...)
			return
		}
	}
	// All groups wait: the warp keeps the last one as its running group and
	// blocks.
	last := len(w.forks) - 1
	w.pc = w.forks[last].pc
	w.mask = w.forks[last].mask
	w.forks = w.forks[:last]
	w.status = blocked
}

// block makes the running lanes wait. The text on names what they wait for, and
// at is the instruction that waits.
func (w *warp) block(on string, at int32) {
	w.on, w.onPC = on, at
	// Another group of lanes may still be able to run; the warp as a whole
	// blocks only if none is.
	for _, f := range w.forks {
		if !f.blocked {
			w.forks = append(w.forks, fork{
				pc:      w.pc,
				mask:    w.mask,
				blocked: true,
			})
			w.resume()
			return
		}
	}
	w.status = blocked
}

// wake makes all groups of lanes of a blocked warp ready.
func (w *warp) wake() {
	for i := range w.forks {
		w.forks[i].blocked = false
	}
	if w.status == blocked {
		w.status = ready
	}
	w.on, w.onBar = "", nil
}

// addresses resolves a memory operand for every lane. It returns the register
// itself where the operand has no offset, and out otherwise.
func (w *warp) addresses(p *place, out *long) *long {
	if p.narrow {
		a := &w.r32[p.reg]
		for l := range out {
			out[l] = uint64(a[l]) + uint64(p.offset)
		}
		return out
	}
	a := &w.r64[p.reg]
	if p.offset == 0 {
		return a
	}
	for l := range out {
		out[l] = a[l] + uint64(p.offset)
	}
	return out
}

// first is the first active lane.
func (w *warp) first() int { return bits.TrailingZeros32(w.active) & 31 }

// get reads a register of any bank in lane l, zero-extended.
func (w *warp) get(r register, l int) uint64 {
	switch r.bank {
	case bank64:
		return w.r64[r.index][l]
	case bankPred:
		return uint64(w.pred[r.index] >> l & 1)
	}
	return uint64(w.r32[r.index][l])
}

// put writes a register of any bank in lane l; a register of no bank is the sink.
func (w *warp) put(r register, l int, v uint64) {
	switch r.bank {
	case bank32:
		w.r32[r.index][l] = uint32(v)
	case bank64:
		w.r64[r.index][l] = v
	case bankPred:
		w.pred[r.index] = w.pred[r.index]&^(1<<l) |
			uint32(v&1)<<l
	}
}

// site is the current instruction, executed by a lane of the warp; lane -1 is the
// warp as a whole.
func (w *warp) site(lane int) Site {
	return w.cta.site(w.pc, w.id, lane)
}

// report adds a finding at the current instruction. A finding in shared memory or
// registers counts for all CTAs that the checked one stands for.
func (w *warp) report(f Finding, lane int) {
	f.At = w.site(lane)
	if f.Count == 0 &&
		(f.Space == "shared" || f.Space == "register") &&
		onlyChecked[f.Kind] {
		f.Count = w.cta.standsFor()
	}
	w.cta.work.report(f)
}

// reportf adds a finding that has no address, with a formatted detail.
func (w *warp) reportf(kind Kind, lane int, format string, args ...any) {
	w.report(
		Finding{Kind: kind, Detail: fmt.Sprintf(format, args...)},
		lane,
	)
}

// before checks the registers that an instruction reads.
func (w *warp) before(in *instr) {
	w.checkAssigned(in.reads)
	// Registers of wgmmas under way must not be read or written.
	if len(in.tensor) > 0 {
		w.wg.touch(w, in)
	}
}

// checkAssigned reports the registers of a list that some active lane has not
// written.
func (w *warp) checkAssigned(list []register) {
	for _, r := range list {
		missing := w.active &^ w.inited[r.bank][r.index]
		if missing != 0 {
			w.report(
				Finding{Kind: Uninitialised, Space: "register", Detail: w.cta.entry.registerName(r)},
				bits.TrailingZeros32(missing),
			)
		}
	}
}

// after records the registers that an instruction wrote.
func (w *warp) after(in *instr) {
	for _, r := range in.writes {
		w.inited[r.bank][r.index] |= w.active
	}
}

// putAll writes the same value to a register in all active lanes.
func (w *warp) putAll(r register, v uint64) {
	for m := w.active; m != 0; m &= m - 1 {
		w.put(r, firstLane(m), v)
	}
}

// readClock reads a special register that counts into all active lanes.
func (w *warp) readClock(in *instr, s ptx.Special) {
	w.ticks += readingCycles
	g := w.cta.grid
	w.putAll(
		in.list[0],
		g.clock.read(
			s, w.cta.cluster.unit%g.sheet.SMs, w.ticks,
		),
	)
}

// notWhole waits for the other lanes at an operation of the whole warp, and reports
// that only some execute it if none can come.
func (w *warp) notWhole(what string) {
	if w.hold() {
		return
	}
	w.reportf(
		DivergentBarrier, firstLane(^w.active),
		"%s by lanes %#x: the whole warp must execute it",
		what, w.active,
	)
}

// scatter calls put with every element of a fragment register: lane l, element e
// of its register, and the value.
func (w *warp) scatter(
	r register, t *elementType, put func(l, e int, v float32),
) {
	s := &w.r32[r.index]
	per := t.perRegister()
	mask := uint32(lowBits(t.bits))
	for l := range s {
		for e := range per {
			put(l, e, t.decode(s[l]>>(e*t.bits)&mask))
		}
	}
}
