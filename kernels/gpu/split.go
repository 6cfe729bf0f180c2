package gpu

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// Several blocks may share a tile (splitk): a first kernel has a grid of tile
// programs × pieces, each of which goes through its part of the iterations of
// the loops and leaves what it has accumulated in scratch; a second joins these
// in the order of the pieces and goes on to what follows the loops, so that the
// bits of a result depend on the plan only (Osama et al., Stream-K, PPoPP 2023,
// §2, "fixed split").

// maxPieces of a tile.
const maxPieces = 1 << 12

// A phase is which of the kernels of a plan is emitted.
type phase uint8

const (
	phaseWhole    phase = iota // the only one
	phasePartials              // blocks do pieces of loops
	phaseCombine               // what pieces have left is joined
)

func (ph phase) suffix() string {
	return [...]string{"", "_pieces", "_rest"}[ph]
}

// phasesOf are the kernels of a plan, or why it has none.
func phasesOf(p *symtile.Program, k knobs) ([]phase, error) {
	if k.splitk == 1 {
		return []phase{phaseWhole}, nil
	}
	if k.persistent > 0 {
		return nil, unsupported(fmt.Sprintf("splitk=%d and persistent=1 exclude each other: blocks share a tile, or have several", k.splitk))
	}
	loops := topLoops(p.Body)
	if len(loops) == 0 {
		return nil, unsupported(fmt.Sprintf("splitk=%d: there is nothing to share, for every reduced or contracted dimension is one tile", k.splitk))
	}
	for _, l := range loops {
		name := p.Ops[l.Accumulators[0]].Instr.Name
		total := int64(1)
		for _, d := range l.Dims {
			total *= constantOf(p.Space.Dims[d].Tiles)
		}
		if total < int64(k.splitk) {
			return nil, unsupported(fmt.Sprintf("splitk=%d is more than the %d iterations of %s", k.splitk, total, name))
		}
		if n := needsTotal(p, l, loops); n >= 0 {
			return nil, unsupported(fmt.Sprintf(
				"splitk=%d: %s needs all of %s, of which blocks have pieces",
				k.splitk, name, p.Ops[n].Instr.Name,
			))
		}
	}
	return []phase{phasePartials, phaseCombine}, nil
}

// scratchFits says why arrays between kernels are too much for a device.
func scratchFits(scratch []int64, s device.Spec) error {
	total := int64(0)
	for _, n := range scratch {
		total += n
	}
	if s.Memory > 0 && total > s.Memory/4 {
		return fmt.Errorf("what blocks leave for each other takes %d bytes, more than a quarter of the memory of %s", total, s.Target)
	}
	return nil
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

// body is the steps of the program that this kernel needs.
func (e *emitter) body() []symtile.Step {
	if e.phase == phaseWhole {
		return e.p.Body
	}
	var from, ends []int
	for _, l := range topLoops(e.p.Body) {
		ends = append(ends, l.Accumulators...)
	}
	if e.phase == phasePartials {
		from, ends = ends, nil
	}
	if e.phase == phaseCombine {
		for _, r := range e.p.Roots {
			from = append(from, r.Op)
		}
	}
	used := usedBy(e.p, from, ends)
	return slices.DeleteFunc(slices.Clone(e.p.Body), func(s symtile.Step) bool {
		return s.Loop == nil && !used[s.Op]
	})
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

// addAllPartials joins what the pieces of a loop have left.
func (e *emitter) addAllPartials(l *symtile.Loop) {
	var closers []accumulator
	if r := e.ringOf(l.Accumulators, l.Dims, l.Body); r != nil {
		closers = r.accumulators()
	} else {
		for _, n := range l.Accumulators {
			closers = append(closers, e.newAccumulator(n))
		}
	}
	for _, c := range closers {
		c.begin()
		c.addPartials()
		c.finish()
	}
}

// scratchArray declares the next array between the kernels of a plan.
func (e *emitter) scratchArray(bytes int64) memory {
	n := len(e.scratch)
	e.scratch = append(e.scratch, bytes)
	return memory{
		global,
		e.pointer(fmt.Sprintf("scratch%d", n), device.ScratchArray(n)),
		0,
	}
}

// A sumArray is the sums of a product in scratch: those of a thread, in vectors
// of 16 bytes or four, lie beside those of the next thread.
type sumArray struct {
	memory
	d      hlo.DType
	vector int64
	groups int64 // vectors of a thread
}

func (e *emitter) sumArray(d hlo.DType, n int64) sumArray {
	a := sumArray{
		d:      d,
		vector: min(4, maxVectorBytes/d.Size()),
	}
	a.groups = index.CeilDiv(n, a.vector)
	a.memory = e.scratchArray(int64(e.knobs.splitk) *
		e.p.Programs() * a.groups * e.threads *
		a.vector * d.Size())
	return a
}

// places of the sums of this thread of a piece, where there is one.
func (a sumArray) places(
	e *emitter, n int, piece index.Expr, there conditions,
) []place {
	var all []place
	first := piece.Scale(e.p.Programs()).Add(e.block).Scale(a.groups)
	for k := range int64(n) {
		at := first.AddConst(
			k / a.vector,
		).Scale(e.threads).Add(e.thread).Scale(a.vector).AddConst(
			k % a.vector,
		)
		all = append(all, place{at, there})
	}
	return all
}

// storePartialSums stores the sums of a product in registers of type d.
func (p *product) storePartialSums(d hlo.DType, accs [][]operand) {
	e, sums := p.e, slices.Concat(accs...)
	e.asm.note("the sums of %%%d to scratch", p.n)
	a := e.sumArray(d, int64(len(sums)))
	e.scatterPlaces(
		a.memory, d,
		a.places(e, len(sums), e.piece, nil),
		sums,
	)
}

// additions of sums, by register.
var additions = [kinds]string{
	kindF32:  "add.rn.f32",
	kindF64:  "add.rn.f64",
	kindB32:  "add.s32",
	kindB64:  "add.s64",
	kindPred: "or.pred",
}

// addPartialSums adds to sums what pieces have left, in their order.
func (p *product) addPartialSums(d hlo.DType, accs [][]operand) {
	e, sums := p.e, slices.Concat(accs...)
	a := e.sumArray(d, int64(len(sums)))
	pieces := int64(e.knobs.splitk)
	step := powerOver(max(1, 16/a.groups)) // about 16 vectors at once are on their way
	e.rounds("piece", pieces, wholeRounds(pieces, step), func(piece index.Expr) {
		there := conditions(nil).and(piece.Neg().AddConst(pieces - 1))
		p := e.guard(there)
		for k, x := range e.gatherPlaces(
			a.memory,
			d,
			a.places(e, len(sums), piece, there),
		) {
			e.asm.when(
				p, additions[kindFor(d)],
				sums[k], sums[k], x,
			)
		}
	})
}

// storePartial stores what all threads of a piece have folded.
func (r *reduction) storePartial() {
	r.joinThreads()
	r.store()
}

// scratch has an array for every part of the partial results, and the place in
// it of result k of this thread.
func (r *reduction) scratch() (arrays []memory, at func(
	k int, piece index.Expr,
) index.Expr) {
	e := r.e
	pieces := int64(r.e.knobs.splitk)
	for _, d := range r.partial() {
		arrays = append(
			arrays,
			e.scratchArray(e.p.Programs()*pieces*
				r.results()*wide(d).Size()),
		)
	}
	return arrays, func(k int, piece index.Expr) index.Expr {
		return e.block.Scale(pieces).Add(piece).Scale(
			r.results(),
		).Add(r.number(k))
	}
}

// store has the first of the threads that share a result store it.
func (r *reduction) store() {
	e := r.e
	e.asm.note("what %%%d has to scratch", r.n)
	arrays, at := r.scratch()
	for k, acc := range r.accs {
		own := conditions(nil).and(r.sharer().Neg()).and(
			r.number(k).Neg().AddConst(r.results() - 1),
		)
		for part, d := range r.partial() {
			e.scatterPlaces(
				arrays[part], wide(d),
				[]place{{at(k, e.piece), own}},
				acc[part:part+1],
			)
		}
	}
}

// addPartials folds what pieces have left, of which every thread that shares a result
// has those that follow each other.
func (r *reduction) addPartials() {
	e := r.e
	pieces := int64(r.e.knobs.splitk)
	arrays, at := r.scratch()
	share := index.CeilDiv(pieces, r.sharers())
	e.rounds("piece", share, 8, func(round index.Expr) {
		piece := r.sharer().Scale(share).Add(round)
		own := conditions(nil).and(round.Neg().AddConst(share - 1)).and(
			piece.Neg().AddConst(pieces - 1),
		)
		for k, acc := range r.accs {
			when := own.and(
				r.number(k).Neg().AddConst(r.results() - 1),
			)
			var x []operand
			for part, d := range r.partial() {
				x = append(
					x,
					e.gatherPlaces(arrays[part], wide(d), []place{
						{at(k, piece), when},
					})...,
				)
			}
			p := e.guard(when)
			if r.code == "" {
				p = e.asm.and(p, x[len(x)-1])
			}
			r.foldInto(acc, x[:len(r.types)], p)
		}
	})
}
