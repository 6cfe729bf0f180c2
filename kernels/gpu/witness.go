package gpu

import (
	"slices"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/layout"
)

// witness looks at one load of the first warp. Where it touches half as many
// sectors again as the tile's rows have, the tile is read crosswise: the next
// time it goes through shared memory.
func (e *emitter) witness(n int, places []place) {
	op := e.p.Ops[n]
	size := op.Instr.Shape.DType.Size()
	if e.hints.staged[n] || op.Tile.Elements()*size > int64(e.sheet.BlockShared)/4 || !e.independent(places) {
		return
	}
	c := e.firstWarp(places, size)
	rows := e.rowBytes(op)
	if rows >= 2*size && 2*c.Sectors*min(sector, rows) > 3*c.Bytes {
		e.hints.stage(n)
	}
}

// sector is the bytes global memory is moved in.
const sector = 32

// independent says whether the places are functions of tile ids and the thread
// only.
func (e *emitter) independent(places []place) bool {
	for _, v := range places[0].at.Vars() {
		if x, _ := v.Variable(); x.Role == symtile.RoleRuntime && !slices.ContainsFunc(e.p.Runtime, func(r symtile.Runtime) bool { return r.Var == v }) {
			return false
		}
	}
	return true
}

// firstWarp counts what the first warp touches with all the places of a thread.
func (e *emitter) firstWarp(places []place, size int64) layout.Count {
	var offsets []int64
	for _, p := range places {
		env := map[symtile.Expr]int64{}
		vars := p.at.Vars()
		for _, v := range vars {
			env[v] = v.Range().Lo
		}
		for t := range int64(WarpThreads) {
			for _, v := range vars { // the thread's number, of a narrower range perhaps
				if x, _ := v.Variable(); x.Role == symtile.RoleThread {
					env[v] = min(t, x.Hi)
				}
			}
			offsets = append(offsets, p.at.Eval(env)*size)
		}
	}
	return layout.CountOffsets(offsets, size)
}

// rowBytes is how many bytes of a tile follow each other in memory.
func (e *emitter) rowBytes(op symtile.Op) int64 {
	strides, sizes := op.Instr.Shape.Strides(), op.Tile.Sizes()
	run := int64(1)
	for _, d := range slices.Backward(majorToMinor(op.Instr.Shape)) {
		stride := constantOf(op.Tile[d].Stride)
		if sizes[d] > 1 && strides[d]*stride != run {
			break
		}
		run *= sizes[d]
	}
	return run * op.Instr.Shape.DType.Size()
}
