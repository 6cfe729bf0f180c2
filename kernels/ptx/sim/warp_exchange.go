package sim

import (
	"github.com/tilewright/tilewright/kernels/ptx"
)

// members checks the lane mask of a .sync operation: the mask must name every
// lane that executes the operation, and all lanes that it names must execute it
// now.
func (w *warp) members(mask uint32) bool {
	switch {
	case mask&w.active != w.active:
		w.reportf(
			InvalidOperation, firstLane(w.active&^mask),
			"lane mask %#x lacks lanes %#x that execute it",
			mask, w.active&^mask,
		)
		return false
	case mask&w.live&^w.active != 0 && w.hold():
		return false
	case mask&w.live&^w.active != 0:
		w.reportf(
			DivergentBarrier, firstLane(mask&w.live&^w.active),
			"lane mask %#x names lanes %#x that are elsewhere",
			mask, mask&w.live&^w.active,
		)
		return false
	}
	return true
}

// shfl moves a through the warp: b is the lane, delta or mask, c the clamp and
// segment mask, list holds the destination, the predicate and the lane mask.
func shfl(w *warp, in *instr) {
	mode := in.mods.matrices
	if !w.members(uint32(w.get(
		in.list[2], w.first(),
	))) {
		return
	}
	a := w.r32[in.a]
	b := &w.r32[in.b]
	c := &w.r32[in.c]
	for m := w.active; m != 0; m &= m - 1 {
		l := firstLane(m)
		segment := int(c[l] >> 8 & 31)
		clamp := int(c[l] & 31)
		from, valid := shuffleSource(
			mode, l, int(b[l]&31), segment, clamp,
		)
		if valid && w.active>>from&1 == 0 {
			w.reportf(InvalidOperation, l, "reads lane %d, which does not take part", from)
		}
		w.put(in.list[0], l, uint64(a[from]))
		w.put(in.list[1], l, boolBit(valid))
	}
}

// The modes of shfl; with the fourth, idx, the lane reads lane b of its segment.
const (
	// The lane reads the one b below.
	shuffleUp = iota
	// The lane reads the one b above.
	shuffleDown
	// The lane reads the one whose number differs by the bits of b.
	shuffleButterfly
)

// shuffleSource is the lane that lane l reads, and whether it is within the
// segment (PTX ISA, shfl.sync). A lane without a source reads itself.
func shuffleSource(mode, l, b, segment, clamp int) (from int, valid bool) {
	// The clamp and segment mask divide the warp into segments; the bounds are
	// those of the lane's segment.
	highest := l&segment | clamp&^segment
	lowest := l & segment
	switch mode {
	case shuffleUp:
		from = l - b
		valid = l-b >= highest
	case shuffleDown:
		from = l + b
		valid = l+b <= highest
	case shuffleButterfly:
		from = l ^ b
		valid = l^b <= highest
	default:
		from = lowest | b&^segment
		valid = from <= highest
	}
	if !valid {
		return l, false
	}
	return from, true
}

// vote is vote.sync: a is a predicate, list holds the destination and the lane
// mask.
func vote(w *warp, in *instr) {
	if !w.members(uint32(w.get(
		in.list[1], w.first(),
	))) {
		return
	}
	p := (w.pred[in.a] ^ uint32(in.at.offset)) & w.active
	var v uint64
	switch code := &in.mods.code; {
	case code.Has(ptx.ModAll):
		v = boolBit(p == w.active)
	case code.Has(ptx.ModAny):
		v = boolBit(p != 0)
	case code.Has(ptx.ModUni):
		v = boolBit(p == 0 || p == w.active)
	default:
		v = uint64(p)
	}
	w.putAll(in.list[0], v)
}

// match is match.any and match.all: list holds the destination, the predicate,
// the value and the lane mask. The result of a lane is the mask of lanes with the
// same value.
func match(w *warp, in *instr) {
	if !w.members(uint32(w.get(
		in.list[3], w.first(),
	))) {
		return
	}
	all := in.mods.code.Op == ptx.OpMatchAllSync
	var equal [warpSize]uint32
	for m := w.active; m != 0; m &= m - 1 {
		l := firstLane(m)
		v := w.get(in.list[2], l)
		for n := w.active; n != 0; n &= n - 1 {
			if k := firstLane(n); w.get(in.list[2], k) == v {
				equal[l] |= 1 << k
			}
		}
		// match.all yields the mask only if all lanes agree.
		if all && equal[l] != w.active {
			equal[l] = 0
		}
	}
	for m := w.active; m != 0; m &= m - 1 {
		l := firstLane(m)
		w.put(in.list[0], l, uint64(equal[l]))
		w.put(in.list[1], l, boolBit(equal[l] == w.active))
	}
}

// redux is redux.sync: it reduces a over the active lanes. list holds the
// destination and the lane mask.
func redux(w *warp, in *instr) {
	if !w.members(uint32(w.get(
		in.list[1], w.first(),
	))) {
		return
	}
	a := &w.r32[in.a]
	// The reduction starts with the first lane, so that it needs no neutral
	// element.
	v := uint64(a[w.first()])
	for m := w.active & (w.active - 1); m != 0; m &= m - 1 {
		v = in.mods.atomic(v, uint64(a[firstLane(m)]), 0)
	}
	w.putAll(in.list[0], v)
}

// activemask stores the mask of the active lanes.
func activemask(w *warp, in *instr) {
	w.putAll(in.list[0], uint64(w.active))
}

// elect is elect.sync: the first lane becomes the leader. list holds its number,
// the predicate and the lane mask.
func elect(w *warp, in *instr) {
	if !w.members(uint32(w.get(
		in.list[2], w.first(),
	))) {
		return
	}
	leader := w.first()
	for m := w.active; m != 0; m &= m - 1 {
		l := firstLane(m)
		w.put(in.list[0], l, uint64(leader))
		w.put(in.list[1], l, boolBit(l == leader))
	}
}

// warpSync is bar.warp.sync: it orders the accesses of the warp's lanes if all of
// them take part.
func warpSync(w *warp, in *instr) {
	if w.members(w.r32[in.a][w.first()]) &&
		w.clock.on && w.active == w.live {
		w.clock.joinLanes()
	}
}
