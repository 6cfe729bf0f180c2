package gpu

import (
	"math/bits"
	"slices"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/layout"
)

// A spread gives the elements of a tile to the threads of a block. The tile is
// seen as a matrix: outer dimensions, and inner ones, the last of which is the
// last fastest. lanes threads stand along the inner side, each with vector
// neighbouring elements; the others along the outer side.
type spread struct {
	sizes        []int64
	outer, inner []int // dimensions, the slowest first
	lanes        int64 // a power of two
	rows         int64 // threads along the outer side
	vector       int64
	outs, ins    int64 // elements of either side
	outRounds    int64
	inRounds     int64
	// pieces says that what a thread has of a side in its rounds follows each
	// other; else threads take turns.
	outPieces, inPieces bool
}

func newSpread(sizes []int64, outer, inner []int, threads, lanes, vector int64) *spread {
	s := &spread{sizes: sizes, outer: outer, inner: inner, lanes: lanes, rows: threads / lanes, vector: vector, outs: 1, ins: 1}
	for _, d := range outer {
		s.outs *= sizes[d]
	}
	for _, d := range inner {
		s.ins *= sizes[d]
	}
	s.outRounds, s.inRounds = ceilDiv(s.outs, s.rows), ceilDiv(s.ins, lanes*vector)
	return s
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

// powerOver is the least power of two that is not under n.
func powerOver(n int64) int64 {
	if n <= 1 {
		return 1
	}
	return 1 << bits.Len64(uint64(n-1))
}

// perThread is the elements of a thread.
func (s *spread) perThread() int64 { return s.outRounds * s.inRounds * s.vector }

// out and in are the numbers of the row and of the first element of the vector
// that this thread has in a round.
func (e *emitter) out(s *spread, round symtile.Expr) symtile.Expr {
	if s.outPieces {
		return e.thread.Div(s.lanes).Scale(s.outRounds).Add(round)
	}
	return round.Scale(s.rows).Add(e.thread.Div(s.lanes))
}

func (e *emitter) in(s *spread, round symtile.Expr) symtile.Expr {
	if s.inPieces {
		return e.thread.Mod(s.lanes).Scale(s.inRounds).Add(round).Scale(s.vector)
	}
	return round.Scale(s.lanes).Add(e.thread.Mod(s.lanes)).Scale(s.vector)
}

// place sets the indices of dims to those of their row-major number n.
func (s *spread) place(at []symtile.Expr, dims []int, n symtile.Expr) {
	sizes := make([]int64, len(dims))
	for k, d := range dims {
		sizes[k] = s.sizes[d]
	}
	for k, x := range digitsOf(n, sizes) {
		at[dims[k]] = x
	}
}

// vectorAt is the vector of a round, with the conditions that it is in the tile.
func (e *emitter) vectorAt(s *spread, outRound, inRound symtile.Expr) []point {
	o, i := e.out(s, outRound), e.in(s, inRound)
	points := make([]point, s.vector)
	var own conditions // a round too many is in another thread's piece
	if s.outPieces {
		own = own.and(outRound.Neg().AddConst(s.outRounds - 1))
	}
	if s.inPieces {
		own = own.and(inRound.Neg().AddConst(s.inRounds - 1))
	}
	for v := range points {
		at := make([]symtile.Expr, len(s.sizes))
		s.place(at, s.outer, o)
		s.place(at, s.inner, i.AddConst(int64(v)))
		points[v] = point{at, own.and(o.Neg().AddConst(s.outs - 1)).and(i.Neg().AddConst(s.ins - 1 - int64(v)))}
		e.narrowThread(s, &points[v])
	}
	return points
}

// narrowThread replaces the thread's number by one of the range that the
// conditions leave it, so that masks they imply disappear.
func (e *emitter) narrowThread(s *spread, p *point) {
	hi := e.threads - 1
	for _, c := range p.when {
		terms, k := c.Terms()
		if len(terms) != 1 || terms[0].Factor >= 0 || k < 0 {
			continue
		}
		switch most := k / -terms[0].Factor; terms[0].Of {
		case e.thread:
			hi = min(hi, most)
		case e.thread.Div(s.lanes):
			hi = min(hi, (most+1)*s.lanes-1)
		}
	}
	if hi == e.threads-1 || hi == 0 {
		return
	}
	v := e.ring.Var(symtile.Variable{Name: "thread", Lo: 0, Hi: hi, Role: symtile.RoleThread})
	e.bind(v, e.num(e.thread))
	for k := range p.at {
		p.at[k] = p.at[k].Subst(map[symtile.Expr]symtile.Expr{e.thread: v})
	}
}

// unrolled is how many elements of a thread are code of their own; more are
// gone through by a loop.
const unrolled = 32

// each emits body for every vector of the spread.
func (e *emitter) each(s *spread, body func(points []point)) {
	inside, outside := s.inRounds, s.outRounds
	if s.perThread() > 2*unrolled {
		inside = min(inside, max(1, unrolled/2/s.vector))
		outside = min(outside, max(1, unrolled/2/s.vector/inside))
	}
	e.rounds("row", s.outRounds, outside, func(o symtile.Expr) {
		e.rounds("vector", s.inRounds, inside, func(i symtile.Expr) { body(e.vectorAt(s, o, i)) })
	})
}

// rounds emits body for the rounds 0 … n−1, step of them at a time in a loop
// when there are more; the last time may go beyond n.
func (e *emitter) rounds(name string, n, step int64, body func(round symtile.Expr)) {
	if n <= step {
		for k := range n {
			body(e.ring.Const(k))
		}
		return
	}
	e.repeat(name, ceilDiv(n, step), func(k symtile.Expr) {
		for j := range step {
			body(k.Scale(step).AddConst(j))
		}
	})
}

// repeat emits a loop of n rounds.
func (e *emitter) repeat(name string, n int64, body func(k symtile.Expr)) {
	e.loops++
	v := e.ring.Var(symtile.Variable{Name: name + string(integer(int64(e.loops))), Lo: 0, Hi: n - 1, Role: symtile.RoleLoop})
	e.repeatAs(v, n, func() { body(v) })
}

// repeatAs emits a loop of n rounds over a variable.
func (e *emitter) repeatAs(v symtile.Expr, n int64, body func()) {
	if n == 1 {
		body()
		return
	}
	e.repeatUntil(v, n, integer(n), body)
}

// repeatUntil emits a loop of at least one round and at most n, whose number is in
// a register.
func (e *emitter) repeatUntil(v symtile.Expr, n int64, rounds operand, body func()) {
	a := e.asm
	counter, more, again := a.fresh(kindB32), a.fresh(kindPred), a.label("LOOP")
	a.do("mov.b32", counter, 0)
	a.place(again)
	a.enter()
	e.bind(v, counter)
	around, ids := e.around, e.ids
	e.during(v, layout.Trips{Hi: n - 1})
	body()
	e.after(around, ids)
	a.leave()
	a.do("add.s32", counter, counter, 1)
	a.do("setp.lt.s32", more, counter, rounds)
	a.branch(more, again)
}

// vectorOf is how many elements a thread takes at once of count elements of the
// size, whose fastest dimension has fast elements.
func (e *emitter) vectorOf(fast, count, size int64) int64 {
	v := max(1, e.vectorBytes/max(1, size))
	for v > 1 && (fast%v != 0 || count/v < e.threads) {
		v /= 2
	}
	return v
}

// flat spreads all elements of a tile along one side, in the order of dims.
func (e *emitter) flat(sizes []int64, order []int, size int64) *spread {
	count := int64(1)
	for _, n := range sizes {
		count *= n
	}
	return newSpread(sizes, nil, order, e.threads, e.threads, e.vectorOf(e.fastest(sizes, order), count, size))
}

// fastest is how many elements follow each other: the size of the last
// dimension that has more than one.
func (e *emitter) fastest(sizes []int64, order []int) int64 {
	for _, d := range slices.Backward(order) {
		if sizes[d] > 1 {
			return sizes[d]
		}
	}
	return 1
}

// folded spreads a tile for a reduction: one side is reduced, the side that has
// the dimension fastest in memory is the inner one. Where the order of elements
// counts, the threads of a result have pieces of it one after the other.
func (e *emitter) foldedSpread(sizes []int64, order []int, reduced []int64, size int64, ordered bool) (s *spread, inside bool) {
	var gone, kept []int
	for _, d := range order {
		if slices.Contains(reduced, int64(d)) {
			gone = append(gone, d)
		} else {
			kept = append(kept, d)
		}
	}
	inside = len(kept) == 0
	for _, d := range slices.Backward(order) {
		if sizes[d] > 1 {
			inside = slices.Contains(gone, d)
			break
		}
	}
	if ordered {
		slices.Sort(gone)
	}
	outer, inner := gone, kept
	if inside {
		outer, inner = kept, gone
	}
	s = newSpread(sizes, outer, inner, e.threads, e.threads, 1)
	v := e.vectorOf(e.fastest(sizes, inner), s.outs*s.ins, size)
	lanes := min(e.threads, powerOver(ceilDiv(s.ins, v)))
	if inside { // rows first get a warp each, then what is left
		lanes = min(lanes, max(WarpThreads, e.threads/powerOver(s.outs)))
	}
	if len(kept) == 0 { // the result is one that all threads may ask for
		lanes = e.threads
	}
	s = newSpread(sizes, outer, inner, e.threads, lanes, v)
	s.outPieces, s.inPieces = ordered && !inside, ordered && inside
	return s, inside
}
