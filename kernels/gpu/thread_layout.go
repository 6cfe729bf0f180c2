package gpu

import (
	"math/bits"

	"github.com/tilewright/tilewright/kernels/gpu/coalesce"
	"github.com/tilewright/tilewright/symtile/index"
)

// powerOver is the least power of two that is not under n.
func powerOver(n int64) int64 {
	if n <= 1 {
		return 1
	}
	return 1 << bits.Len64(uint64(n-1))
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
