package gpu

import (
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/index"
)

// This file decides which tile a block computes: the order of tiles over the grid, and
// the loop of persistent blocks.

// raster is the order in which blocks take tiles: the parallel dimensions with more
// than one tile, and their tile ids as functions of the block's number. The last
// dimension is the fastest. With knob group = g > 1, g tiles of the last but one
// dimension are traversed together, so that blocks that run at the same time share
// operands in the L2 cache (Triton, matrix multiplication tutorial, "L2 Cache
// Optimizations").
func (e *emitter) raster(block index.Expr) (dims []int, ids []index.Expr) {
	var tiles []int64
	for k, d := range e.p.Space.Dims {
		n := constantOf(d.Tiles)
		if d.Kind == symtile.Parallel && n > 1 {
			dims = append(dims, k)
			tiles = append(tiles, n)
		}
	}
	g := int64(e.knobs.group)
	k := len(dims)
	if g <= 1 || k < 2 {
		return dims, digitsOf(block, tiles)
	}
	rows := tiles[k-2]
	cols := tiles[k-1]
	inner := digitsOf(
		block,
		append(append(
			[]int64{}, tiles[:k-2]...,
		), rows*cols),
	)
	ids = inner[:k-2]
	row, col := groupedTile(
		inner[k-2], rows, cols, g,
	)
	return dims, append(ids, row, col)
}

// groupedTile is the row and the column of tile x of rows·cols, of which g rows are
// traversed together, and of the last group those that are left: of a group the number
// has the digits column, row in the group.
func groupedTile(x index.Expr, rows, cols, g int64) (row, col index.Expr) {
	whole, left := rows/g, rows%g
	if whole == 0 {
		return x.Mod(left), x.Div(left)
	}
	if left > 0 {
		// Tiles of the last group have the place of the last tile of the others.
		last := x.AddConst(1 - whole*g*cols)
		ring := x.Ring()
		x = x.Min(ring.Const(whole*g*cols - 1))
		row, col = groupedTile(x, whole*g, cols, g)
		// Those are n = 1, 2, …, and n = 0 is all others, to which nothing is added.
		n := last.Max(ring.Const(0))
		is := n.Min(ring.Const(1))
		n = n.AddConst(left - 1)
		row = row.Add(n.Mod(left)).AddConst(1 - left)
		col = col.Add(n.Div(left))
		return row.Add(is.Scale(left)),
			col.Add(is.Scale(-cols))
	}
	sizes := []int64{whole, cols, g}
	digits := digitsOf(x, sizes)
	row = digits[0].Scale(g)
	return row.Add(digits[2]), digits[1]
}

// neighbours is the dimension along which blocks with consecutive numbers take tiles,
// and how many blocks follow each other along it.
func (e *emitter) neighbours() (dim int, run int64) {
	var dims []int
	for k, d := range e.p.Space.Dims {
		if d.Kind == symtile.Parallel &&
			constantOf(d.Tiles) > 1 {
			dims = append(dims, k)
		}
	}
	k := len(dims)
	switch g := int64(e.knobs.group); {
	case k == 0:
		return 0, 1
	case g > 1 && k > 1:
		// A last group has fewer rows.
		d := e.p.Space.Dims[dims[k-2]]
		rows := constantOf(d.Tiles)
		if left := rows % g; left > 0 {
			return dims[k-2], index.GCD(g, left)
		}
		return dims[k-2], g
	}
	return dims[k-1],
		constantOf(e.p.Space.Dims[dims[k-1]].Tiles)
}

// beginTileLoop begins the loop of a persistent block, or of one of its math groups,
// over its tiles; nil where a block has one tile. It binds the tile ids.
func (e *emitter) beginTileLoop(t *mathGroup) *tileLoop {
	if !e.loopsOverTiles() {
		return nil
	}
	if e.p.Programs() > highest/4 {
		e.reject("persistent=1: the numbers of %d tiles, and of those after them, need more than 32 bits", e.p.Programs())
	}
	a := e.asm
	w := &tileLoop{
		tile:      a.fresh(kindB32),
		label:     a.label("TILE"),
		waits:     a.waits,
		mathGroup: t,
	}
	// The first tile of a block is its own number; a second math group begins a grid
	// further.
	a.do("mov.u32", w.tile, blockNumber)
	if t != nil {
		w.done = a.label("DONE")
		a.do(
			"mad.lo.s32", w.tile, t.number,
			a.get(kindB32, "mov.u32", gridSize), w.tile,
		)
		a.branch(
			a.get(kindPred, "setp.ge.s32", w.tile, e.p.Programs()),
			w.done,
		)
	}
	a.place(w.label)
	a.enter()
	e.tileIDs(w.tile)
	return w
}

// endTileLoop ends the loop over tiles. A barrier separates the tiles where one of
// them uses shared memory.
func (e *emitter) endTileLoop(w *tileLoop) {
	if w == nil {
		return
	}
	a := e.asm
	// Shared memory of the tile may be written by the next one only after all have
	// read it.
	if a.waits > w.waits {
		e.barrier()
	}
	a.leave()
	more := a.fresh(kindPred)
	stride := a.get(kindB32, "mov.u32", gridSize)
	if w.mathGroup != nil {
		stride = a.get(kindB32, "shl.b32", stride, 1)
	}
	a.do("add.s32", w.tile, w.tile, stride)
	a.do(
		"setp.lt.s32", more, w.tile, e.p.Programs(),
	)
	a.branch(more, w.label)
	if w.mathGroup != nil {
		a.place(w.done)
	}
}

// tileIDs binds the parallel tile ids of the tile program with a number and, where
// blocks share a tile, the number of this block's piece.
func (e *emitter) tileIDs(number operand) {
	if e.phase == phasePartials {
		e.piece = e.ring.Var(index.Variable{
			Name: "piece",
			Lo:   0,
			Hi:   int64(e.knobs.splitk) - 1,
			Role: index.RoleBlock,
		})
		e.bind(
			e.piece, e.asm.get(kindB32, "mov.u32", pieceNumber),
		)
	}
	e.block = e.ring.Var(index.Variable{
		Name: "block",
		Lo:   0,
		Hi:   max(0, e.p.Programs()-1),
		Role: index.RoleBlock,
	})
	if _, ok := e.block.Value(); ok {
		return
	}
	if number == blockNumber {
		number = e.asm.get(kindB32, "mov.u32", number)
	}
	e.bind(e.block, number)
	dims, ids := e.raster(e.block)
	known := map[index.Expr]index.Expr{}
	for k, d := range dims {
		e.bind(
			e.p.Space.Dims[d].Tid,
			e.num(ids[k]),
		)
		known[e.p.Space.Dims[d].Tid] = ids[k]
	}
	e.setTileIDs(known)
}
