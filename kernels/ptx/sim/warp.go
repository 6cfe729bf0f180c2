package sim

import (
	"fmt"
	"math/bits"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// fork is a group of lanes of a diverged warp that is not running now.
type fork struct {
	pc      int32
	mask    uint32
	blocked bool
}

type status uint8

const (
	ready status = iota
	blocked
	exited
)

// warp is 32 lanes in lockstep. Where lanes diverge, the group with the
// smallest pc runs first, and groups that meet run together.
type warp struct {
	cta       *cta
	id        int // in the CTA
	party     int // in the clocks of the cluster
	r32       []word
	r64       []long
	pred      []uint32
	carry     uint32 // the carry flag of each lane
	pc        int32
	mask      uint32 // lanes at pc
	active    uint32 // lanes that execute the current instruction
	whole     uint32 // lanes that the warp began with
	live      uint32 // lanes that have not exited
	forks     []fork
	status    status
	on        string    // what it waits for
	onPC      int32     // and where
	onBar     *mbarrier // the mbarrier it waits for
	polls     bool      // with test_wait, which may say no
	refused   refusal
	giveUp    bool  // tells it to say no
	onCluster bool  // waits for barrier.cluster
	atCluster int   // phase of it that the warp arrived in
	ticks     int64 // what its clock reads
	steps     int64 // instructions executed, of the warp
	lanes     int64 // and of its lanes
	t32       word  // results of a partly active warp
	t64       long
	addr      long
	addr2     long
	offset    [warpSize]uint32 // of the lanes in what together found
	inited    [4][]uint32      // lanes of each tracked register that were written
	copies    asyncCopies
	bulk      bulkGroups
	wg        wgmmaQueue
	clock     partyClock
}

// run executes until the warp waits, exits, or has done slice instructions.
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
		in := &code[w.pc]
		m := w.mask & (w.pred[in.guard] ^ in.flip)
		steps++
		if counts != nil {
			counts[in.pc]++
			lanes += int64(bits.OnesCount32(m))
		}
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

// blend copies the results of the active lanes from the temporary register.
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

// dst32 is where an instruction that computes all lanes puts its results.
func (w *warp) dst32(in *instr) *word {
	if w.active == allLanes {
		return &w.r32[in.d]
	}
	return &w.t32
}

func (w *warp) dst64(in *instr) *long {
	if w.active == allLanes {
		return &w.r64[in.d]
	}
	return &w.t64
}

// converge joins groups of lanes that are at the same pc and switches to the
// group with the smallest one.
func (w *warp) converge() {
	for i := 0; i < len(w.forks); i++ {
		f := &w.forks[i]
		switch {
		case f.blocked:
		case f.pc == w.pc:
			w.mask |= f.mask
			w.forks = append(w.forks[:i], w.forks[i+1:]...)
			i = -1
		case f.pc < w.pc:
			f.pc, w.pc = w.pc, f.pc
			f.mask, w.mask = w.mask, f.mask
			i = -1
		}
	}
}

func (w *warp) branch(in *instr, m uint32) {
	switch m {
	case w.mask:
		w.pc = in.target
	case 0:
		w.pc++
	default:
		w.forks = append(w.forks, fork{
			pc:   in.target,
			mask: m,
		})
		w.mask &^= m
		w.pc++
	}
}

// exitLanes ends the lanes m.
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

// resume switches to another group of lanes, or blocks the warp if all wait.
func (w *warp) resume() {
	for i, f := range w.forks {
		if !f.blocked {
			w.pc = f.pc
			w.mask = f.mask
			w.forks = append(w.forks[:i], w.forks[i+1:]...)
			return
		}
	}
	last := len(w.forks) - 1
	w.pc = w.forks[last].pc
	w.mask = w.forks[last].mask
	w.forks = w.forks[:last]
	w.status = blocked
}

// block makes the running lanes wait for what on says, from the instruction at.
func (w *warp) block(on string, at int32) {
	w.on, w.onPC = on, at
	for _, f := range w.forks {
		if !f.blocked {
			w.forks = append(w.forks, fork{w.pc, w.mask, true})
			w.resume()
			return
		}
	}
	w.status = blocked
}

func (w *warp) wake() {
	for i := range w.forks {
		w.forks[i].blocked = false
	}
	if w.status == blocked {
		w.status = ready
	}
	w.on, w.onBar = "", nil
}

// addresses resolves a memory operand for every lane.
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

// uniform is the value a register has in the first active lane.
func (w *warp) first() int { return bits.TrailingZeros32(w.active) & 31 }

// get reads a register of up to 64 bits in lane l.
func (w *warp) get(r register, l int) uint64 {
	switch r.bank {
	case bank64:
		return w.r64[r.index][l]
	case bankPred:
		return uint64(w.pred[r.index] >> l & 1)
	}
	return uint64(w.r32[r.index][l])
}

// put writes a register in lane l; a register of no bank is the sink.
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

func (w *warp) site(lane int) Site {
	return w.cta.site(w.pc, w.id, lane)
}

// report adds a finding at the current instruction.
func (w *warp) report(f Finding, lane int) {
	f.At = w.site(lane)
	if f.Count == 0 &&
		(f.Space == "shared" || f.Space == "register") &&
		onlyChecked[f.Kind] {
		f.Count = w.cta.standsFor()
	}
	w.cta.work.report(f)
}

// before checks the registers an instruction reads.
func (w *warp) before(in *instr) {
	w.checkAssigned(in.reads)
	if len(in.tensor) > 0 {
		w.wg.touch(w, in)
	}
}

// checkAssigned reports registers that were not written before.
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

// after notes the registers it wrote.
func (w *warp) after(in *instr) {
	for _, r := range in.writes {
		w.inited[r.bank][r.index] |= w.active
	}
}

func (w *warp) putAll(r register, v uint64) {
	for m := w.active; m != 0; m &= m - 1 {
		w.put(r, firstLane(m), v)
	}
}

// readClock reads a register that counts.
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

func (w *warp) notWhole(what string) {
	w.report(
		Finding{Kind: DivergentBarrier, Detail: fmt.Sprintf("%s by lanes %#x: the whole warp must execute it", what, w.active)},
		firstLane(^w.active),
	)
}

// scatter gives every element of a fragment register to put.
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
