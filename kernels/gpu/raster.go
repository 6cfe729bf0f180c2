package gpu

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
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
		x = x.Min(
			ring.Const(whole*g*cols - 1),
		)
		row, col = groupedTile(
			x, whole*g, cols, g,
		)
		// Those are n = 1, 2, …, and n = 0 is all others, to which nothing is added.
		n := last.Max(ring.Const(0))
		is := n.Min(ring.Const(1))
		n = n.AddConst(left - 1)
		row = row.Add(n.Mod(left)).AddConst(
			1 - left,
		)
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
			return dims[k-2], index.GCD(
				g, left,
			)
		}
		return dims[k-2], g
	}
	return dims[k-1],
		constantOf(
			e.p.Space.Dims[dims[k-1]].Tiles,
		)
}

// beginTileLoop begins the loop of a persistent block, or of one of its math groups,
// over its tiles; nil where a block has one tile. It binds the tile ids.
func (e *emitter) beginTileLoop(t *mathGroup) *tileLoop {
	switch {
	case !e.loopsOverTiles():
		return nil
	case e.stream != nil:
		return e.stream.begin(e)
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
	if w.piece != nil {
		a.place(w.piece.passed)
	}
	// Shared memory of the tile may be written by the next one only after all have
	// read it.
	if a.waits > w.waits {
		e.barrier()
	}
	a.leave()
	more := a.fresh(kindPred)
	if w.piece != nil {
		e.stream.next(e, w, more)
		return
	}
	stride := a.get(kindB32, "mov.u32", gridSize)
	if w.mathGroup != nil {
		stride = a.get(kindB32, "shl.b32", stride, 1)
	}
	a.do(
		"add.s32", w.tile, w.tile, stride,
	)
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

// A stream is how blocks share the iterations of the tiles that are left after whole
// rounds of tiles (knob streamk; Osama et al., Stream-K: Work-centric Parallel
// Decomposition for Dense Matrix-Matrix Multiplication on the GPU, PPoPP 2023, §5.2:
// "two-tile stream-K + data-parallel"). All iterations of the shared tiles, the first
// ones, are dealt to the blocks in order and evenly: at most two tiles' worth each. A block takes
// its part from the end to the start, and then tiles of its own. So the first thing that
// a block computes is the beginning of a tile that a later block ends: it leaves the sums
// in scratch memory and sets a flag. The block that ends a tile waits for those of the
// blocks before it, adds their sums in falling order, and sets the flags back.
//
// A block waits for blocks of smaller numbers only, for what they do first, so there is
// no deadlock where blocks start in order, however many run at the same time; and the bits of
// a result depend on the plan alone, for the number of blocks is part of it.
type stream struct {
	// Blocks share the first tiles; each has whole tiles for itself after them.
	blocks, tiles, trips int64
	shared, whole        int64
	// Block is the number of this block, first that of its first iteration of the
	// current tile, and peer another block whose sums are added.
	block, first, peer index.Expr
	// Flags has a word for each block, not 0 where its sums are complete.
	flags memory
	// Sums are the numbers of the scratch arrays of products.
	sums map[int]int
}

// A tilePiece is the iterations of a tile that a block has.
type tilePiece struct {
	// Lowest, from and end are numbers of iterations among those of all tiles, in
	// registers: the first of the block, the first of the piece, and the one after its last.
	lowest, from, end operand
	// Limit is the number of iterations of the piece.
	limit operand
	// Own is the next tile that the block has for itself.
	own operand
	// Passed is the label behind the results of a tile.
	passed operand
}

// streamOf is the stream of a plan; nil where blocks share no tile in this way. The
// error says why a plan with streamk > 0 is not possible.
func streamOf(p *symtile.Program, k knobs) (*stream, error) {
	if k.streamk == 0 {
		return nil, nil
	}
	no := func(format string, args ...any) (*stream, error) {
		return nil, unsupported(
			fmt.Sprintf("streamk=%d: ", k.streamk) + fmt.Sprintf(format, args...),
		)
	}
	loops := topLoops(p.Body)
	switch {
	case k.splitk > 1 || k.persistent > 0 || k.cluster > 1 || k.online > 0:
		return no("splitk, persistent, cluster and online divide the work in other ways")
	case len(loops) != 1:
		return no("%d loops, of which there has to be one", len(loops))
	}
	for n, op := range p.Ops {
		inside := slices.Contains(
			loops[0].Accumulators, n,
		)
		if inside != (op.Code == hlo.OpDot) || op.Code == hlo.OpReduce {
			return no("%s is no product, or not in the loop", op.Instr.Name)
		}
	}
	s := &stream{
		blocks: int64(k.streamk), tiles: p.Programs(),
		trips: 1, sums: map[int]int{},
	}
	for _, d := range loops[0].Dims {
		s.trips *= constantOf(
			p.Space.Dims[d].Tiles,
		)
	}
	s.divide()
	switch {
	case s.tiles%s.blocks == 0:
		return no("every block has %d whole tiles, and nothing is left to share", s.tiles/s.blocks)
	case s.shared*s.trips < s.blocks:
		return no("%d iterations are too few", s.shared*s.trips)
	case s.tiles > highest/4/s.trips:
		return no("the numbers of %d iterations need more than 32 bits", s.tiles*s.trips)
	}
	ring := p.Space.Ring
	variable := func(name string, hi int64) index.Expr {
		return ring.Var(index.Variable{
			Name: name, Hi: hi, Role: index.RoleBlock,
		})
	}
	s.block = variable("number", s.blocks-1)
	s.first = variable("first", s.trips-1)
	s.peer = variable("peer", s.blocks-1)
	return s, nil
}

// With 132 blocks and 300 tiles, for example, each block has one tile for itself, and the
// 168 others are shared: 1.27 tiles a block. With 100 tiles all are shared, and a block has
// 0.76 of a tile.
//
// divide finds how many tiles are shared: those that are left after whole rounds and
// those of one round more, so that no block has but a small piece.
func (s *stream) divide() {
	s.whole = max(
		0, s.tiles/s.blocks-1,
	)
	s.shared = s.tiles - s.whole*s.blocks
}

// start is the number of the first iteration of a block.
func (s *stream) start(block index.Expr) index.Expr {
	all := s.shared * s.trips
	left := block.Ring().Const(
		all % s.blocks,
	)
	return block.Scale(all / s.blocks).Add(
		block.Min(left),
	)
}

// zeroed is how many scratch arrays are zeros between runs.
func (s *stream) zeroed() int {
	if s == nil {
		return 0
	}
	return 1
}

// declare declares the flags, the first of the scratch arrays, and binds the number of
// the block.
func (s *stream) declare(e *emitter) {
	e.unpredictable = "blocks have pieces of loops"
	s.flags = e.scratchArray(s.blocks * flagBytes)
	e.bind(
		s.block, e.asm.get(kindB32, "mov.u32", blockNumber),
	)
}

// flagBytes is the size of a flag.
const flagBytes = 4

// sumsOf is the scratch array of op n, whose address is loaded where it is used.
func (s *stream) sumsOf(e *emitter, n int, bytes int64) memory {
	k, met := s.sums[n]
	if !met {
		s.sums[n] = len(e.scratch)
		return e.scratchArray(bytes)
	}
	p := e.asm.get(
		kindB64, "ld.param.u64",
		address{base: operand(fmt.Sprintf("scratch%d", k))},
	)
	return memory{
		global, e.asm.get(kindB64, "cvta.to.global.u64", p), 0,
	}
}

// beginStream begins the loop over the pieces of a block whose warps multiply; the
// loops of warpgroups do it themselves.
func (e *emitter) beginStream() {
	if e.stream == nil {
		return
	}
	if e.shared > 0 {
		e.reject("streamk=%d needs a product that is the first thing a block does", e.knobs.streamk)
	}
	e.tileLoop = e.beginTileLoop(nil)
}

// begin begins the loop over the pieces of a block, and binds the ids of the tile.
//
// The registers of a piece are written once in each round of the loop: end is where the
// piece before has begun, or the end of the next tile of the block's own; the tile is the
// one that has the iteration before end; and from is where the tile begins, or the
// block's first iteration if that is later.
func (s *stream) begin(e *emitter) *tileLoop {
	a := e.asm
	x := &tilePiece{
		lowest: a.fresh(kindB32), from: a.fresh(kindB32),
		end: a.fresh(kindB32), own: a.fresh(kindB32),
		passed: a.label("PASSED"),
	}
	w := &tileLoop{
		tile: a.fresh(kindB32), label: a.label("TILE"),
		waits: a.waits, piece: x,
	}
	a.note(
		"%d tiles of %d iterations are shared by %d blocks, each of which has %d more for itself", s.shared, s.trips, s.blocks, s.whole,
	)
	a.do(
		"mov.b32", x.lowest, e.num(s.start(s.block)),
	)
	a.do(
		"mov.b32", x.end, e.num(s.start(s.block.AddConst(1))),
	)
	a.do(
		"add.s32", x.own, e.num(s.block), s.shared,
	)
	a.place(w.label)
	a.enter()
	last := e.ring.Var(index.Variable{
		Name: "last", Hi: s.tiles*s.trips - 1,
		Role: index.RoleBlock,
	})
	e.bind(
		last, a.get(kindB32, "add.s32", x.end, -1),
	)
	a.do(
		"mov.b32", w.tile, e.num(last.Div(s.trips)),
	)
	start := a.get(
		kindB32, "mul.lo.s32", w.tile, s.trips,
	)
	a.do(
		"max.s32", x.from, x.lowest, start,
	)
	e.bind(
		s.first, a.get(kindB32, "sub.s32", x.from, start),
	)
	x.limit = a.get(
		kindB32, "sub.s32", x.end, x.from,
	)
	e.tileIDs(w.tile)
	return w
}

// enterPiece takes the iterations of a ring from the piece of a tile, or finds those of the
// groups that a persistent block has rows of in the tile.
func (r *ring) enterPiece(w *tileLoop) {
	switch {
	case w == nil:
	case w.piece != nil:
		r.limit = w.piece.limit
	default:
		r.part = r.e.iterationRange(r.part.dims)
		r.e.leaveOutGroups(&r.part, []int{r.dots[0].n})
		r.limit = r.e.iterations(r.part)
	}
}

// next goes on to the piece before the current one, and then to tiles of the block's own.
func (s *stream) next(e *emitter, w *tileLoop, more operand) {
	a, x := e.asm, w.piece
	a.do("mov.b32", x.end, x.from)
	a.do(
		"setp.gt.s32", more, x.from, x.lowest,
	)
	a.branch(more, w.label)
	if s.whole == 0 {
		return
	}
	a.do(
		"mul.lo.s32", x.lowest, x.own, s.trips,
	)
	a.do(
		"add.s32", x.end, x.lowest, s.trips,
	)
	a.do(
		"setp.lt.s32", more, x.own, s.tiles,
	)
	a.do(
		"add.s32", x.own, x.own, s.blocks,
	)
	a.branch(more, w.label)
}

// All threads of a block take the same branches here, for a piece is the block's.
//
// joinPieces leaves the sums of a piece for the block that ends its tile, or adds those
// of the blocks that have begun it.
func (e *emitter) joinPieces(all []accumulator) {
	a, s, x := e.asm, e.stream, e.tileLoop.piece
	// The barriers here order scratch memory, and none is needed after them.
	before := a.waits
	first := e.num(s.first)
	end := a.get(
		kindB32, "add.s32", first, x.limit,
	)
	ends, whole := a.label("ENDS"), a.label(
		"WHOLE",
	)
	a.branch(
		a.get(kindPred, "setp.eq.s32", end, s.trips), ends,
	)
	a.enter()
	for _, c := range all {
		c.storePartial()
	}
	// The barrier orders the stores of all threads before the release of the first.
	e.barrier()
	leader := a.get(
		kindPred, "setp.eq.s32", e.num(e.thread), 0,
	)
	a.when(
		leader, "st.release.gpu.global.u32",
		s.flag(e, s.block), a.in(kindB32, "1"),
	)
	a.leave()
	a.do("bra", x.passed)
	a.place(ends)
	a.branch(
		a.get(kindPred, "setp.eq.s32", first, 0), whole,
	)
	s.addPeers(e, all)
	a.place(whole)
	e.tileLoop.waits += a.waits - before
	for _, c := range all {
		c.finish()
	}
}

// flag is the flag of a block.
func (s *stream) flag(e *emitter, block index.Expr) address {
	return e.at(s.flags, block, flagBytes)
}

// addPeers adds the sums of the blocks that have begun the tile, the nearest first. One
// thread waits for a flag, and the barrier after it orders the loads of all threads behind
// what that thread has acquired (PTX ISA, Memory Consistency Model, causality order).
func (s *stream) addPeers(e *emitter, all []accumulator) {
	a := e.asm
	a.enter()
	defer a.leave()
	peer, state := a.fresh(kindB32), a.fresh(
		kindB32,
	)
	more := a.fresh(kindPred)
	again, wait, ready := a.label("PEER"), a.label("WAIT"), a.label(
		"READY",
	)
	leader := a.get(
		kindPred, "setp.eq.s32", e.num(e.thread), 0,
	)
	start := a.get(
		kindB32, "mul.lo.s32", e.tileLoop.tile, s.trips,
	)
	a.do(
		"mov.b32", peer, e.num(s.block),
	)
	a.place(again)
	a.enter()
	a.do("add.s32", peer, peer, -1)
	e.bind(s.peer, peer)
	flag := s.flag(e, s.peer)
	a.branch(a.not(leader), ready)
	a.place(wait)
	a.do("ld.acquire.gpu.global.u32", state, flag)
	a.do("setp.eq.s32", more, state, 0)
	a.branch(more, wait)
	// Nobody else reads the flag, and the next run sets it.
	a.do(
		"st.global.u32", flag, a.in(kindB32, "0"),
	)
	a.place(ready)
	e.barrier()
	for _, c := range all {
		c.addPartials()
	}
	a.do(
		"setp.gt.s32", more, e.num(s.start(s.peer)), start,
	)
	a.leave()
	a.branch(more, again)
}
