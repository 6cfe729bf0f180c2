package gpu

import (
	"slices"

	"github.com/tilewright/tilewright/kernels/gpu/coalesce"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/index"
)

// recheckCoalescing looks at one load of the first warp where how threads go over a tile
// was not chosen for what they load: as fragments of a product lie. A tile that
// this does not serve as the order that is best for it would is read crosswise:
// the next time it goes through shared memory.
func (e *emitter) recheckCoalescing(n int, places []place) {
	if e.threadLayout != nil || e.hints.staged[n] ||
		!e.fitsSharedMemory(n) || !e.launchInvariant(places) {
		return
	}
	size := e.p.Ops[n].Instr.Shape.DType.Size()
	best := e.chosenFor(choiceKey{n, size, false})
	c := e.firstWarp(places, size)
	if len(best.Counts) > 0 &&
		!c.CoalescedLike(best.Counts[0]) {
		e.hints.stage(n)
	}
}

// fitsSharedMemory says whether the tile of an op is one that there is shared memory for
// beside others.
func (e *emitter) fitsSharedMemory(n int) bool {
	op := e.p.Ops[n]
	return op.Tile.Elements()*
		op.Instr.Shape.DType.Size() <= int64(e.sheet.BlockShared)/4
}

// launchInvariant says whether the places are functions of tile ids and the thread
// only.
func (e *emitter) launchInvariant(places []place) bool {
	for _, v := range places[0].at.Vars() {
		x, _ := v.Variable()
		if x.Role == index.RoleRuntime &&
			!slices.ContainsFunc(e.p.Runtime, func(r symtile.Runtime) bool {
				return r.Var == v
			}) {
			return false
		}
	}
	return true
}

// firstWarp counts what the first warp touches with all the places of a thread.
func (e *emitter) firstWarp(places []place, size int64) coalesce.Count {
	var offsets []int64
	for _, p := range places {
		env := map[index.Expr]int64{}
		vars := p.at.Vars()
		for _, v := range vars {
			env[v] = v.Range().Lo
		}
		for t := range int64(device.WarpThreads) {
			for _, v := range vars { // the thread's number, of a narrower range perhaps
				if x, _ := v.Variable(); x.Role == index.RoleThread {
					env[v] = min(t, x.Hi)
				}
			}
			offsets = append(offsets, p.at.Eval(env)*size)
		}
	}
	return coalesce.CountOffsets(offsets, size)
}
