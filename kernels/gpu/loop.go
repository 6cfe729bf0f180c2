package gpu

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/kernels/gpu/coalesce"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/index"
)

// A iterationRange is the iterations of a loop that a block does: count of the total, from
// first on, or one fewer. Where pieces do not divide the total the first are those
// that have one more.
type iterationRange struct {
	dims                   []int
	trips                  []int64
	total, count, minCount int64
	first                  index.Expr
}

// iterationRange is that of a loop over dims.
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

// iterations is how many the block does.
func (e *emitter) iterations(w iterationRange) operand {
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

// note says how many iterations a block does.
func (w iterationRange) note() string {
	switch {
	case w.minCount < w.count:
		return fmt.Sprintf(
			"for %d or %d of %d iterations", w.minCount, w.count, w.total,
		)
	case w.divided():
		return fmt.Sprintf("for %d of %d iterations", w.count, w.total)
	}
	return fmt.Sprintf("for %d iterations", w.count)
}

// divided says whether other blocks do other iterations.
func (w iterationRange) divided() bool { return w.count < w.total }

// conclude ends the closers of the loop.
func (w iterationRange) conclude(closers []accumulator) {
	for _, c := range closers {
		if w.divided() {
			c.storePartial()
		} else {
			c.finish()
		}
	}
}

// iterate emits the loop.
func (e *emitter) iterate(w iterationRange, body func()) {
	if !w.divided() {
		e.nest(w.dims, body)
		return
	}
	e.asm.note("%s", w.note())
	e.asm.enter()
	defer e.asm.leave()
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
	e.repeatUntil(v, w.count, e.iterations(w), step)
}

// atIteration binds the tile ids of a loop to those of iteration n of this block.
// The result is its number as an expression.
func (e *emitter) atIteration(w iterationRange, n operand) index.Expr {
	if w.total == 1 {
		return e.ring.Const(0)
	}
	if w.divided() {
		e.unforeseen = "blocks have pieces of loops"
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
	e.decided(ids)
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

// rounds emits body for the rounds 0 … n−1, step of them at a time in a loop
// when there are more; the last time may go beyond n.
func (e *emitter) rounds(
	name string, n, step int64, body func(round index.Expr),
) {
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

// repeat emits a loop of n rounds.
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

// repeatAs emits a loop of n rounds over a variable.
func (e *emitter) repeatAs(v index.Expr, n int64, body func()) {
	if n == 1 {
		body()
		return
	}
	e.repeatUntil(v, n, integer(n), body)
}

// repeatUntil emits a loop of at least one round and at most n, whose number is in
// a register.
func (e *emitter) repeatUntil(v index.Expr, n int64, rounds operand, body func()) {
	a := e.asm
	counter := a.fresh(kindB32)
	more := a.fresh(kindPred)
	again := a.label("LOOP")
	a.do("mov.b32", counter, 0)
	a.place(again)
	a.enter()
	e.bind(v, counter)
	around, ids := e.around, e.ids
	e.during(v, coalesce.LoopRange{Hi: n - 1})
	body()
	e.after(around, ids)
	a.leave()
	a.do("add.s32", counter, counter, 1)
	a.do("setp.lt.s32", more, counter, rounds)
	a.branch(more, again)
}

// topLoops are the loops that are in no other.
func topLoops(body []symtile.Step) []*symtile.Loop {
	var all []*symtile.Loop
	for _, s := range body {
		if s.Loop != nil {
			all = append(all, s.Loop)
		}
	}
	return all
}

// needsTotal is a closer of another loop of the list, whose result a loop needs;
// −1: none.
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

// usedBy are the ops that some need, themselves included, not looking past ends.
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

// dependsOn says whether the place of an op's tile changes with a variable.
func dependsOn(op symtile.Op, v index.Expr) bool {
	for _, d := range op.Tile {
		if slices.Contains(d.Offset.Vars(), v) {
			return true
		}
	}
	return false
}

// vectorAt is the vector of a round, with the conditions that it is in the tile.
func (e *emitter) vectorAt(s *coalesce.ThreadLayout, outRound, inRound index.Expr) []point {
	o := s.OuterIndex(e.thread, outRound)
	i := s.InnerIndex(e.thread, inRound)
	points := make([]point, s.Vector)
	var own conditions // a round too many is in another thread's piece
	if s.OuterBlocked {
		own = own.and(outRound.Neg().AddConst(s.OuterRounds - 1))
	}
	if s.InnerBlocked {
		own = own.and(inRound.Neg().AddConst(s.InnerRounds - 1))
	}
	for v := range points {
		at := make([]index.Expr, len(s.Sizes))
		s.SetIndices(at, s.Outer, o)
		s.SetIndices(at, s.Inner, i.AddConst(int64(v)))
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

// narrowThread replaces the thread's number by one of the range that the
// conditions leave it, so that masks they imply disappear.
func (e *emitter) narrowThread(s *coalesce.ThreadLayout, p *point) {
	hi := e.threads - 1
	for _, c := range p.when {
		terms, k := c.Terms()
		if len(terms) != 1 ||
			terms[0].Factor >= 0 || k < 0 {
			continue
		}
		switch most := k / -terms[0].Factor; terms[0].Of {
		case e.thread:
			hi = min(hi, most)
		case e.thread.Div(s.InnerThreads):
			hi = min(hi, (most+1)*s.InnerThreads-1)
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

// unrolled is how many elements of a thread are code of their own; more are
// gone through by a loop.
const unrolled = 32

// each emits body for every vector of a spread that was chosen for what it loads.
func (e *emitter) each(s *coalesce.ThreadLayout, body func(points []point)) {
	defer e.withLayout(s)()
	e.vectors(s, body)
}

// vectors emits body for every vector of a spread.
func (e *emitter) vectors(s *coalesce.ThreadLayout, body func(points []point)) {
	inside, outside := s.InnerRounds, s.OuterRounds
	if s.PerThread() > 2*unrolled {
		inside = min(inside, max(1, unrolled/2/s.Vector))
		outside = min(
			outside, max(1, unrolled/2/s.Vector/inside),
		)
	}
	e.rounds("row", s.OuterRounds, outside, func(o index.Expr) {
		e.rounds("vector", s.InnerRounds, inside, func(i index.Expr) {
			body(e.vectorAt(s, o, i))
		})
	})
}

// withLayout says that threads go over a tile by a spread that was chosen for it, until
// what it returns is called.
func (e *emitter) withLayout(s *coalesce.ThreadLayout) (end func()) {
	before := e.threadLayout
	e.threadLayout = s
	return func() { e.threadLayout = before }
}
