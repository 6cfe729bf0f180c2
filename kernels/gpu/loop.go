package gpu

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/kernels/gpu/coalesce"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/mask"
)

// This file emits loops: over the iterations of a loop of the program, of which a
// block may have a part, and over the vectors of a thread layout. Every loop binds a
// variable of the index expressions to its counter, and short loops are unrolled.

// An iterationRange is the iterations of a loop that one block runs: all of them or,
// where blocks share the loop (knob splitk), a contiguous piece. Pieces that do not
// divide the total evenly differ by one iteration, and the first pieces are the longer
// ones.
type iterationRange struct {
	// The dimensions of the loop and the tiles along each.
	dims  []int
	trips []int64
	// Total is the number of iterations of the loop; count and minCount are the most
	// and the fewest of a piece.
	total, count, minCount int64
	// First is the number of this block's first iteration, and limit the number of its
	// iterations, where that is known only when the block runs; "" where it is count.
	first index.Expr
	limit operand
	// Streamed is set where the tile loop says which iterations a block has of a tile.
	streamed bool
}

// iterationRange is the range of this block in a loop over dims.
func (e *emitter) iterationRange(dims []int) iterationRange {
	w := iterationRange{
		dims:  dims,
		total: 1,
		first: e.ring.Const(0),
	}
	for _, d := range dims {
		w.trips = append(
			w.trips,
			constantOf(e.p.Space.Dims[d].Tiles),
		)
		w.total *= w.trips[len(w.trips)-1]
	}
	w.count = w.total
	w.minCount = w.total
	if e.stream != nil && e.loopDepth == 0 {
		w.streamed, w.minCount, w.first = true, 1, e.stream.first
		return w
	}
	// Only outermost loops are shared among blocks.
	if e.phase == phasePartials &&
		e.loopDepth == 0 && len(dims) > 0 {
		pieces := int64(e.knobs.splitk)
		w.count = index.CeilDiv(w.total, pieces)
		w.minCount = w.total / pieces
		w.first = e.piece.Scale(w.minCount).Add(
			e.piece.Min(e.ring.Const(w.total % pieces)),
		)
	}
	return w
}

// iterations is the number of iterations of this block, as an operand.
func (e *emitter) iterations(w iterationRange) operand {
	if w.streamed {
		return e.tileLoop.piece.limit
	}
	if w.limit != "" {
		return w.limit
	}
	if w.minCount == w.count {
		return integer(w.count)
	}
	p := e.asm.get(
		kindPred, "setp.lt.s32",
		e.num(e.piece),
		w.total-w.minCount*int64(e.knobs.splitk),
	)
	return e.asm.get(
		kindB32, "selp.b32", w.count, w.minCount, p,
	)
}

// leaveOutGroups narrows the range to the tiles of groups of rows that the block has any of,
// where the loop accumulates a product of such groups: from the first to the last, of the
// loop's first dimension. Each lane looks at a tile, or at several, so that a warp knows after
// one access to memory.
func (e *emitter) leaveOutGroups(w *iterationRange, accumulators []int) {
	if !groupsLeftOut(e.knobs) ||
		e.phase != phaseWhole || e.loopDepth > 0 ||
		len(accumulators) != 1 || w.total == 1 {
		return
	}
	g, ok := tileOfGroups(
		e.p, accumulators[0], w.dims,
	)
	if !ok || w.trips[0] > mostGroups(e.knobs) {
		return
	}
	a, tiles := e.asm, w.trips[0]
	a.note("the groups that have rows of this tile")
	first, last := a.fresh(kindB32), a.fresh(kindB32)
	a.do("mov.b32", first, tiles-1)
	a.do("mov.b32", last, 0)
	if e.loopsOverTiles() {
		// The producer is one thread.
		for t := range tiles {
			a.enter()
			seen := e.seesGroup(
				g, w.dims[0], e.ring.Const(t),
				a.get(kindPred, "setp.eq.s32", 0, 0),
			)
			a.when(seen, "min.s32", first, first, t)
			a.when(seen, "max.s32", last, last, t)
			a.leave()
		}
	} else {
		// Every round has a tile for each lane.
		from := int64(0)
		for from < tiles {
			a.enter()
			e.lookAtGroups(
				g, w.dims[0],
				from, tiles-from, first, last,
			)
			a.leave()
			from += device.WarpThreads
		}
	}
	// A block without rows of any group computes zeros from the last one, since loops have an
	// iteration at least, and what it multiplies is selected to be 0.
	a.do("max.s32", last, last, first)
	v := e.ring.Var(index.Variable{
		Name: "group",
		Hi:   tiles - 1,
		Role: index.RoleLoop,
	})
	e.bind(v, first)
	// Other dimensions of the loop, such as k, are whole for each group.
	inner := w.total / tiles
	w.first = v.Scale(inner)
	count := a.get(kindB32, "sub.s32", last, first)
	w.limit = a.get(
		kindB32, "mad.lo.s32", count, inner, inner,
	)
	w.minCount = inner
}

// mostGroups bounds the code that looks for the tiles of groups: eight a lane, or all by each
// thread of persistent blocks.
func mostGroups(k knobs) int64 {
	if k.persistent > 0 {
		return device.WarpThreads
	}
	return 8 * device.WarpThreads
}

// lookAtGroups makes first and last the numbers of the first and the last of some tiles that
// may be not 0, if there are any: lane l looks at tile from + l.
func (e *emitter) lookAtGroups(
	g mask.Groups, dim int,
	from, left int64,
	first, last operand,
) {
	a := e.asm
	left = min(left, device.WarpThreads)
	lane := e.thread.Mod(device.WarpThreads)
	tile := e.ring.Var(index.Variable{
		Name: "tile",
		Lo:   from,
		Hi:   from + left - 1,
		Role: index.RoleLoop,
	})
	// Lanes without a tile look at the last one, and their answer does not count.
	own := lane.Min(e.ring.Const(left - 1))
	e.bind(tile, e.num(own.AddConst(from)))
	seen := a.get(
		kindPred, "setp.lt.s32", e.num(lane), left,
	)
	seen = e.seesGroup(g, dim, tile, seen)
	lanes := a.get(kindB32, "vote.sync.ballot.b32", seen, -1)
	some := a.get(kindPred, "setp.ne.s32", lanes, 0)
	// The lowest bit that is set is the highest of the bits in reverse.
	low := a.get(kindB32, "brev.b32", lanes)
	low = a.get(kindB32, "bfind.u32", low)
	low = a.get(
		kindB32, "sub.s32",
		device.WarpThreads-1+from, low,
	)
	high := a.get(kindB32, "bfind.u32", lanes)
	high = a.get(kindB32, "add.s32", high, from)
	a.when(some, "min.s32", first, first, low)
	a.when(some, "max.s32", last, last, high)
}

// seesGroup is the predicate seen where a tile along dim may be not 0 in this block.
func (e *emitter) seesGroup(
	g mask.Groups, dim int,
	tile index.Expr, seen operand,
) operand {
	tid := e.p.Space.Dims[dim].Tid
	e.bind(tid, e.num(tile))
	defer e.withLayout(&coalesce.ThreadLayout{})()
	first := []index.Expr{e.ring.Const(0)}
	at := []point{{first, nil}}
	for _, b := range g.Bounds {
		// The sum of a number and the rest could wrap around.
		// Some row may be in the group if x ± number ≥ 0 for the row that is best for it.
		x := e.highest(g.Op, b)
		compare := "setp.le.and.s32"
		if b.Sign > 0 {
			x, compare = x.Neg(), "setp.ge.and.s32"
		}
		number := e.elements(b.Numbers, at)[0]
		e.asm.do(compare, seen, number, e.num(x), seen)
	}
	return seen
}

// highest is the most that a bound is in the tile of its op, without the number.
func (e *emitter) highest(n int, b mask.GroupBound) index.Expr {
	x := e.ring.Const(b.Const)
	for d, k := range b.Factors {
		if k == 0 {
			continue
		}
		tile := e.p.Ops[n].Tile[d]
		// The last row of the tile is beyond the array at its end, which is not less.
		end := int64(0)
		if k > 0 {
			end = constantOf(tile.Size) - 1
		}
		at := tile.Offset.AddConst(end)
		x = x.Add(at.Scale(k))
	}
	return x
}

// tileOfGroups are the groups of a product in a loop over dims. It reports whether each
// iteration of the first dimension has one group: tiles along the groups have one, and numbers
// of rows follow from contiguous tiles.
func tileOfGroups(p *symtile.Program, n int, dims []int) (mask.Groups, bool) {
	g, ok := mask.GroupsOf(p, n)
	if !ok || len(dims) == 0 {
		return g, false
	}
	tile := p.Ops[g.Op].Tile
	size, known := tile[g.Dim].Size.Value()
	if !known || size != 1 {
		return g, false
	}
	for _, b := range g.Bounds {
		for d, k := range b.Factors {
			step, _ := tile[d].Stride.Value()
			plain := step == 1 &&
				tile[d].Digits == nil
			if k != 0 && !plain {
				return g, false
			}
		}
	}
	tid := p.Space.Dims[dims[0]].Tid
	return g, dependsOn(p.Ops[g.Op], tid)
}

// groupsLeftOut reports whether a plan's blocks leave out groups of rows that they have none
// of: each has whole loops, and neither another block nor another group of warps counts what it
// loads.
func groupsLeftOut(k knobs) bool {
	return k.splitk == 1 && k.streamk == 0 &&
		k.persistent != pingpong && k.cluster == 1
}

// note describes the range in a comment of the kernel.
func (w iterationRange) note() string {
	switch {
	case w.streamed:
		return fmt.Sprintf("for those of %d iterations that the block has", w.total)
	case w.limit != "":
		return fmt.Sprintf("for those of %d iterations that are not hidden", w.total)
	case w.minCount < w.count:
		return fmt.Sprintf(
			"for %d or %d of %d iterations", w.minCount, w.count, w.total,
		)
	case w.divided():
		return fmt.Sprintf("for %d of %d iterations", w.count, w.total)
	}
	return fmt.Sprintf("for %d iterations", w.count)
}

// divided reports whether other blocks run other iterations.
func (w iterationRange) divided() bool {
	return w.streamed || w.count < w.total
}

// conclude emits the end of the loop's accumulators.
func (e *emitter) conclude(w iterationRange, accumulators []accumulator) {
	if w.streamed {
		e.joinPieces(accumulators)
		return
	}
	for _, c := range accumulators {
		if w.divided() {
			c.storePartial()
		} else {
			c.finish()
		}
	}
}

// iterate emits the loop over the range.
func (e *emitter) iterate(w iterationRange, body func()) {
	if !w.divided() && w.limit == "" {
		e.nest(w.dims, body)
		return
	}
	e.asm.note("%s", w.note())
	e.asm.enter()
	defer e.asm.leave()
	// A part of a loop has one variable for all its dimensions.
	e.loops++
	v := e.ring.Var(index.Variable{
		Name: "iteration" + string(integer(int64(e.loops))),
		Lo:   0,
		Hi:   w.count - 1,
		Role: index.RoleLoop,
	})
	step := func() {
		e.atIteration(w, e.num(v))
		body()
	}
	if w.count == 1 {
		step()
		return
	}
	e.repeatUntil(
		v, w.count, e.iterations(w), step,
	)
}

// atIteration binds the tile ids of a loop to those of iteration n of this block, and
// returns the number of the iteration in the whole loop.
func (e *emitter) atIteration(w iterationRange, n operand) index.Expr {
	if w.total == 1 {
		return e.ring.Const(0)
	}
	if w.limit != "" {
		e.unpredictable = "blocks skip tiles that are hidden"
	} else if w.divided() {
		e.unpredictable = "blocks have pieces of loops"
	}
	if v, known := w.first.Value(); !known || v != 0 {
		n = e.asm.get(
			kindB32, "add.s32",
			e.asm.in(kindB32, n),
			e.num(w.first),
		)
	}
	e.loops++
	step := e.ring.Var(index.Variable{
		Name: "iteration" + string(integer(int64(e.loops))),
		Lo:   0,
		Hi:   w.total - 1,
		Role: index.RoleLoop,
	})
	e.bind(step, n)
	ids := map[index.Expr]index.Expr{}
	for k, x := range digitsOf(step, w.trips) {
		if w.trips[k] > 1 {
			tid := e.p.Space.Dims[w.dims[k]].Tid
			e.bind(tid, e.num(x))
			ids[tid] = x
		}
	}
	e.setTileIDs(ids)
	return step
}

// nest emits loops over the tile ids of dims, the last fastest.
func (e *emitter) nest(dims []int, body func()) {
	if len(dims) == 0 {
		body()
		return
	}
	d := e.p.Space.Dims[dims[0]]
	e.asm.note("for %s < %s", d.Name, d.Tiles)
	e.repeatAs(d.Tid, constantOf(d.Tiles), func() {
		e.nest(dims[1:], body)
	})
}

// rounds emits body for the rounds 0 … n−1. More than step rounds become a loop whose
// body is unrolled step times, so that the last rounds may be ≥ n: their points are
// masked.
func (e *emitter) rounds(
	name string, n, step int64, body func(round index.Expr),
) {
	// All rounds are unrolled.
	if n <= step {
		for k := range n {
			body(e.ring.Const(k))
		}
		return
	}
	e.repeat(name, index.CeilDiv(n, step), func(k index.Expr) {
		for j := range step {
			body(k.Scale(step).AddConst(j))
		}
	})
}

// repeat emits a loop of n iterations over a new variable.
func (e *emitter) repeat(name string, n int64, body func(k index.Expr)) {
	e.loops++
	v := e.ring.Var(index.Variable{
		Name: name + string(integer(int64(e.loops))),
		Lo:   0,
		Hi:   n - 1,
		Role: index.RoleLoop,
	})
	e.repeatAs(v, n, func() { body(v) })
}

// repeatAs emits a loop of n iterations over the variable v.
func (e *emitter) repeatAs(v index.Expr, n int64, body func()) {
	if n == 1 {
		body()
		return
	}
	e.repeatUntil(v, n, integer(n), body)
}

// repeatUntil emits a loop whose number of iterations, at least 1 and at most n, is in
// a register.
func (e *emitter) repeatUntil(v index.Expr, n int64, rounds operand, body func()) {
	a := e.asm
	counter := a.fresh(kindB32)
	more := a.fresh(kindPred)
	start := a.label("LOOP")
	a.do("mov.b32", counter, 0)
	a.place(start)
	a.enter()
	e.bind(v, counter)
	// The loop's variable is bound only inside it, for code and for the prediction of
	// traffic.
	around, ids := e.around, e.ids
	e.enterLoop(v, coalesce.LoopRange{Hi: n - 1})
	body()
	e.leaveLoop(around, ids)
	a.leave()
	a.do("add.s32", counter, counter, 1)
	a.do("setp.lt.s32", more, counter, rounds)
	a.branch(more, start)
}

// topLoops are the loops that are inside no other.
func topLoops(body []symtile.Step) []*symtile.Loop {
	var all []*symtile.Loop
	for _, s := range body {
		if s.Loop != nil {
			all = append(all, s.Loop)
		}
	}
	return all
}

// needsTotal is an accumulator of another loop of the list whose result loop l needs;
// −1 where there is none.
func needsTotal(p *symtile.Program, l *symtile.Loop, loops []*symtile.Loop) int {
	used := usedBy(p, l.Accumulators, nil)
	for _, other := range loops {
		for _, c := range other.Accumulators {
			if other != l && used[c] {
				return c
			}
		}
	}
	return -1
}

// usedBy marks the ops that the ops in from depend on, themselves included; arguments
// of ops in ends are not followed.
func usedBy(p *symtile.Program, from, ends []int) []bool {
	used := make([]bool, len(p.Ops))
	stack := slices.Clone(from)
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if used[n] {
			continue
		}
		used[n] = true
		if !slices.Contains(ends, n) {
			stack = append(
				append(stack, p.Ops[n].Args...),
				p.Ops[n].RuntimeArgs...,
			)
		}
	}
	return used
}

// dependsOn reports whether the offset of an op's tile depends on a variable.
func dependsOn(op symtile.Op, v index.Expr) bool {
	for _, d := range op.Tile {
		if slices.Contains(d.Offset.Vars(), v) {
			return true
		}
	}
	return false
}

// vectorAt is the vector of elements that a thread has in a round of a layout, each
// with the conditions that it is inside the tile.
func (e *emitter) vectorAt(s *coalesce.ThreadLayout, outRound, inRound index.Expr) []point {
	o := s.OuterIndex(e.thread, outRound)
	i := s.InnerIndex(e.thread, inRound)
	points := make([]point, s.Vector)
	// In blocked layouts a round beyond the last belongs to another thread's block.
	var own conditions
	if s.OuterBlocked {
		own = own.and(outRound.Neg().AddConst(s.OuterRounds - 1))
	}
	if s.InnerBlocked {
		own = own.and(inRound.Neg().AddConst(s.InnerRounds - 1))
	}
	for v := range points {
		at := make([]index.Expr, len(s.Sizes))
		s.SetIndices(at, s.Outer, o)
		s.SetIndices(
			at, s.Inner, i.AddConst(int64(v)),
		)
		points[v] = point{
			at,
			own.and(o.Neg().AddConst(s.OuterElements - 1)).and(
				i.Neg().AddConst(s.InnerElements - 1 - int64(v)),
			),
		}
		e.narrowThread(s, &points[v])
	}
	return points
}

// narrowThread replaces the thread's number in a point by a variable with the range
// that the point's conditions imply, so that masks that follow from them are not
// emitted.
func (e *emitter) narrowThread(s *coalesce.ThreadLayout, p *point) {
	hi := e.threads - 1
	for _, c := range p.when {
		terms, k := c.Terms()
		if len(terms) != 1 ||
			terms[0].Factor >= 0 || k < 0 {
			continue
		}
		// The conditions bound the number of the thread, or that of its group on the
		// outer side.
		switch bound := k / -terms[0].Factor; terms[0].Of {
		case e.thread:
			hi = min(hi, bound)
		case e.thread.Div(s.InnerThreads):
			hi = min(hi, (bound+1)*s.InnerThreads-1)
		}
	}
	if hi == e.threads-1 || hi == 0 {
		return
	}
	v := e.ring.Var(index.Variable{
		Name: "thread",
		Lo:   0,
		Hi:   hi,
		Role: index.RoleThread,
	})
	e.bind(v, e.num(e.thread))
	for k := range p.at {
		p.at[k] = p.at[k].Subst(
			map[index.Expr]index.Expr{e.thread: v},
		)
	}
}

// unrolled is the number of elements of a thread that are emitted without a loop.
const unrolled = 32

// each emits body for every vector of a layout that was chosen for the arrays that are
// read.
func (e *emitter) each(s *coalesce.ThreadLayout, body func(points []point)) {
	defer e.withLayout(s)()
	e.vectors(s, body)
}

// vectors emits body for every vector of a layout.
func (e *emitter) vectors(s *coalesce.ThreadLayout, body func(points []point)) {
	inside, outside := s.InnerRounds, s.OuterRounds
	if s.PerThread() > 2*unrolled {
		inside = min(
			inside, max(1, unrolled/2/s.Vector),
		)
		outside = min(
			outside, max(1, s.OuterRun, unrolled/2/s.Vector/inside),
		)
	}
	e.rounds("row", s.OuterRounds, outside, func(o index.Expr) {
		e.rounds("vector", s.InnerRounds, inside, func(i index.Expr) {
			body(e.vectorAt(s, o, i))
		})
	})
}

// withLayout records that threads go over a tile by a layout that was chosen for it,
// until the returned function is called.
func (e *emitter) withLayout(s *coalesce.ThreadLayout) (end func()) {
	before := e.threadLayout
	e.threadLayout = s
	return func() { e.threadLayout = before }
}
