package gpu

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/kernels/gpu/coalesce"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// This file computes reductions whose computation is one commutative operation, such
// as add or maximum, and then, from orderedReduction on, those of other computations.

// A reduction combines the elements of a tile along some dimensions. Every thread
// combines its elements of each result in registers; then the threads of a warp
// exchange partial results by shuffles, and warps by shared memory.
type reduction struct {
	e *emitter
	// N is the number of the op.
	n  int
	op symtile.Op
	// Layout is the thread layout of the argument's tile.
	layout *coalesce.ThreadLayout
	// Inside is set where the reduced dimensions are the inner side of the layout,
	// along which neighbouring threads run.
	inside bool
	// Code is the operation where the computation is a single one
	// (hlo.Computation.Monoid); "" for other computations.
	code hlo.Opcode
	// Types are the element types of the parts of a result: a variadic reduce has
	// several.
	types []hlo.DType
	// Accs are the partial results of this thread, by result, then by part (see
	// partial).
	accs [][]operand
	// Init are the start values.
	init []operand
}

// partial has the types of the parts of a partial result. Where the computation has no
// identity, the last part is a predicate: whether the partial result includes an
// element.
func (r *reduction) partial() []hlo.DType {
	if r.code != "" {
		return r.types
	}
	return append(
		r.types[:len(r.types):len(r.types)],
		hlo.Pred,
	)
}

// newReduction is the code of reduce n: in any order if the computation is one
// commutative operation, or else in the order of the elements.
func (e *emitter) newReduction(n int) accumulator {
	r := e.reductionOf(n)
	if r.code != "" {
		return r
	}
	return e.newOrderedReduction(r)
}

// reductionOf chooses the layout of reduce n and allocates its partial results.
func (e *emitter) reductionOf(n int) *reduction {
	op := e.p.Ops[n]
	parts := len(op.Args) / 2
	arg := e.p.Ops[op.Args[0]]
	sizes := arg.Tile.Sizes()
	r := &reduction{e: e, n: n, op: op}
	for k := range parts {
		r.types = append(
			r.types,
			e.p.Ops[op.Args[k]].Instr.Shape.DType,
		)
	}
	if code, ok := op.Instr.Attrs.ToApply.Monoid(); ok && parts == 1 {
		r.code = code
	}
	r.chooseLayout(sizes)
	if r.inside && r.code != "" {
		e.layouts[fmt.Sprint(sizes)] = r.layout
	}
	results := r.layout.OuterRounds
	if !r.inside {
		results = r.layout.InnerRounds * r.layout.Vector
	}
	// A reduction without an identity holds two registers for each part.
	kept := results * int64(parts)
	if r.code == "" {
		// What is carried takes as many registers.
		kept *= 2
	}
	if kept > maxPartials {
		e.reject(
			"%s: each of %d threads would keep %d partial results; at most %d are kept",
			op.Instr.Name, e.threads, kept, maxPartials,
		)
	}
	r.accs = make([][]operand, results)
	return r
}

// chooseLayout chooses a layout together with the other reductions of tiles of the
// same sizes along the same dimensions, so that an argument in registers serves all.
func (r *reduction) chooseLayout(sizes []int64) {
	e := r.e
	key := func(op symtile.Op) string {
		_, any := op.Instr.Attrs.ToApply.Monoid()
		return fmt.Sprint(
			e.p.Ops[op.Args[0]].Tile.Sizes(),
			op.Instr.Attrs.Dimensions,
			!any || len(op.Args) > 2,
		)
	}
	own := key(r.op)
	c, known := e.folds[own]
	if !known {
		f := coalesce.Reduction{
			Reduced:    r.op.Instr.Attrs.Dimensions,
			Ordered:    r.code == "",
			MaxResults: maxPartials / int64(len(r.types)),
		}
		if f.Ordered {
			// What is carried takes as many registers.
			f.MaxResults /= 2
		}
		c = e.foldedLayout(
			func(op symtile.Op) bool { return key(op) == own },
			r.n, f,
		)
		e.folds[own] = c
	}
	r.layout, r.inside = c.Layout, c.fold.ReducesInner(c.Layout)
}

// begin sets the partial results to the identity of the operation.
func (r *reduction) begin() {
	e := r.e
	r.start()
	for k := range r.accs {
		for part, d := range r.types {
			identity, ok := monoidIdentity(r.code, d)
			if !ok {
				e.refuse(
					r.op.Instr, "a reduction of %s by %s is not computed on a GPU", d, r.code,
				)
			}
			e.set(kindFor(d), r.accs[k][part], identity)
		}
	}
}

// start allocates a register for every part of the partial results, and computes the
// start values.
func (r *reduction) start() {
	e := r.e
	e.asm.note(
		"%%%d %s: reduce %s over %v, %d threads a result",
		r.n, r.op.Instr.Name,
		cmp.Or(string(r.code), r.op.Instr.Attrs.ToApply.Name),
		r.op.Instr.Attrs.Dimensions, r.sharers(),
	)
	for part := range r.types {
		r.init = append(
			r.init,
			e.elements(
				r.op.Args[len(r.types)+part],
				[]point{{}},
			)[0],
		)
	}
	for k := range r.accs {
		r.accs[k] = r.fresh()
	}
}

// fresh are new registers for a partial result.
func (r *reduction) fresh() []operand {
	var all []operand
	for _, d := range r.partial() {
		all = append(all, r.e.asm.fresh(kindFor(d)))
	}
	return all
}

// sharers is the number of threads that combine parts of the same result.
func (r *reduction) sharers() int64 {
	if r.inside {
		return r.layout.InnerThreads
	}
	return r.layout.OuterThreads
}

// sharer is the number of this thread among them.
func (r *reduction) sharer() index.Expr {
	if r.inside {
		return r.e.thread.Mod(r.layout.InnerThreads)
	}
	return r.e.thread.Div(r.layout.InnerThreads)
}

// results is the number of results of the tile.
func (r *reduction) results() int64 {
	if r.inside {
		return r.layout.OuterElements
	}
	return r.layout.InnerElements
}

// accumulate combines the elements of the tile with the partial results. Loops over
// the reduced side are unrolled to about unrolled elements; the other side selects
// registers, so it is unrolled whole.
func (r *reduction) accumulate() {
	clear(r.e.noted)
	e, s := r.e, r.layout
	whole := s.PerThread() <= 2*unrolled
	if r.inside {
		step := s.InnerRounds
		if !whole {
			step = max(1, min(step, unrolled/2/s.Vector))
		}
		for o := range s.OuterRounds {
			e.rounds("vector", s.InnerRounds, step, func(i index.Expr) {
				r.fold(e.ring.Const(o), i)
			})
		}
		return
	}
	step := s.OuterRounds
	if !whole {
		step = max(
			1,
			min(step, unrolled/2/(s.Vector*s.InnerRounds)),
		)
	}
	e.rounds("row", s.OuterRounds, step, func(o index.Expr) {
		for i := range s.InnerRounds {
			r.fold(o, e.ring.Const(i))
		}
	})
}

// fold combines one vector of elements.
func (r *reduction) fold(o, i index.Expr) {
	e := r.e
	defer e.withLayout(r.layout)()
	points := e.vectorAt(r.layout, o, i)
	tile := e.p.Ops[r.op.Args[0]].Tile
	valid := make([]operand, len(points))
	for v := range points {
		// Elements outside of the tensor along reduced dimensions do not count.
		var c conditions
		for _, d := range r.op.Instr.Attrs.Dimensions {
			_, c = e.index(tile[d], points[v].at[d], c)
		}
		points[v].when = points[v].when.all(c)
		valid[v] = e.guard(points[v].when)
	}
	args := make([][]operand, len(r.types))
	for part := range r.types {
		args[part] = e.elements(
			r.op.Args[part], points,
		)
	}
	for v := range points {
		k := constantOf(o)
		if !r.inside {
			k = constantOf(i)*r.layout.Vector + int64(v)
		}
		x := make([]operand, len(r.types))
		for part := range x {
			x[part] = args[part][v]
		}
		r.foldInto(r.accs[k], x, valid[v])
	}
}

// foldInto combines elements x with a partial result where p holds. The registers of
// the partial result are written more than once, so they are read through a copy.
func (r *reduction) foldInto(acc, x []operand, p operand) {
	e := r.e
	// Without an identity, p tells whether the element counts.
	have := r.frozen(acc)
	if r.code == "" {
		x = append(x, p)
	}
	next := r.join(have, x)
	for part, d := range r.partial() {
		if part < len(r.types) && r.code != "" {
			next[part] = e.choose(
				d, p, next[part], have[part],
			)
		}
		e.set(kindFor(d), acc[part], next[part])
	}
}

// join combines a partial result with the one that follows it. Without an identity, a
// side that includes no element is skipped.
func (r *reduction) join(x, y []operand) []operand {
	if r.code != "" {
		return r.combine(x, y)
	}
	e := r.e
	n := len(r.types)
	next := r.combine(x[:n], y[:n])
	for part, d := range r.types {
		next[part] = e.choose(
			d, y[n],
			e.choose(d, x[n], next[part], y[part]),
			x[part],
		)
	}
	return append(next, e.asm.or(x[n], y[n]))
}

// combine applies the computation to two partial results.
func (r *reduction) combine(x, y []operand) []operand {
	e := r.e
	if r.code == "" {
		return e.apply(
			r.op.Instr.Attrs.ToApply,
			append(append([]operand{}, x...), y...),
		)
	}
	d := r.types[0]
	if d.IsFloat() && kindFor(d) == kindF32 {
		// Partial results of narrow types are not rounded.
		d = hlo.F32
	}
	return []operand{
		e.scalar(r.code, nil, d, d, []operand{
			x[0], y[0],
		}),
	}
}

// apply computes a scalar computation, whose instructions must be elementwise.
func (e *emitter) apply(c *hlo.Computation, params []operand) []operand {
	at := map[*hlo.Instr]operand{}
	for k, p := range c.Params {
		at[p] = params[k]
	}
	for _, i := range c.Instrs {
		if i.Op == hlo.OpParameter || i.Op == hlo.OpTuple {
			continue
		}
		if i.Shape.Rank() > 0 ||
			!i.Shape.DType.IsArray() ||
			!i.Op.Elementwise() && i.Op != hlo.OpConstant {
			e.reject("%s of the computation %s is no operation on scalars", i.Name, c.Name)
		}
		if i.Op == hlo.OpConstant {
			at[i], _ = uniform(i.Literal)
			continue
		}
		x := make([]operand, len(i.Operands))
		for k, o := range i.Operands {
			x[k] = at[o]
		}
		at[i] = e.scalar(
			i.Op, i, i.Shape.DType,
			i.Operands[0].Shape.DType, x,
		)
	}
	// A variadic reduce returns a tuple.
	if c.Root.Op != hlo.OpTuple {
		return []operand{at[c.Root]}
	}
	var all []operand
	for _, o := range c.Root.Operands {
		all = append(all, at[o])
	}
	return all
}

// finish combines the partial results of all threads and then the start value.
func (r *reduction) finish() {
	e := r.e
	r.joinThreads()
	for k := range r.accs {
		for part, d := range r.types {
			// The start value is combined last, once for each result.
			v := e.scalar(r.code, nil, wide(d), wide(d), []operand{
				r.init[part], r.accs[k][part],
			})
			r.accs[k][part] = e.fit(d, v)
		}
	}
	r.publish()
}

// joinThreads combines the partial results of all threads that share a result, in the
// order of their numbers (butterfly exchange). Each of them has the whole result after
// it, in registers that are written once.
func (r *reduction) joinThreads() {
	e, s := r.e, r.layout
	for k := range r.accs {
		r.accs[k] = r.frozen(r.accs[k])
	}
	// Threads of a result are neighbours on the inner side, and InnerThreads apart on
	// the outer side.
	from, to := int64(1), s.InnerThreads
	if !r.inside {
		from, to = s.InnerThreads, e.threads
	}
	for off := from; off < min(to, device.WarpThreads); off *= 2 {
		for k := range r.accs {
			r.accs[k] = r.joinPair(
				r.accs[k],
				r.exchange(r.accs[k], off),
				off,
			)
		}
	}
	// More than a warp shares a result.
	if to > device.WarpThreads && to > from {
		r.acrossWarps()
	}
}

// joinPair combines this thread's partial result with that of the thread whose number
// differs in one bit. Where the order matters, the thread without the bit is first.
func (r *reduction) joinPair(own, other []operand, off int64) []operand {
	if r.code != "" {
		return r.join(own, other)
	}
	e := r.e
	// The thread with the bit has the later elements.
	upper := e.asm.get(
		kindPred, "setp.ne.s32",
		e.num(e.thread.Div(off).Mod(2)),
		0,
	)
	first := make([]operand, len(own))
	second := make([]operand, len(own))
	for part, d := range r.partial() {
		first[part], second[part] = e.choose(
			d, upper, other[part], own[part],
		), e.choose(d, upper, own[part], other[part])
	}
	return r.join(first, second)
}

// wide is the type in which partial results of type d are computed.
func wide(d hlo.DType) hlo.DType {
	if kindFor(d) == kindF32 {
		return hlo.F32
	}
	return d
}

// frozen is a copy of registers that are written more than once.
func (r *reduction) frozen(accs []operand) []operand {
	out := make([]operand, len(accs))
	for part, d := range r.partial() {
		out[part] = r.e.asm.fresh(kindFor(d))
		r.e.asm.do(
			kindTable[kindFor(d)].move, out[part],
			accs[part],
		)
	}
	return out
}

// exchange has the values of the thread whose number differs in one bit.
func (r *reduction) exchange(x []operand, off int64) []operand {
	out := make([]operand, len(x))
	for part, d := range r.partial() {
		out[part] = r.e.shuffle(
			kindFor(d), x[part], off,
		)
	}
	return out
}

// shuffle is the value of x in the lane whose number differs in one bit.
func (e *emitter) shuffle(k kind, x operand, off int64) operand {
	a := e.asm
	word := func(v operand) operand {
		d := a.fresh(kindB32)
		a.do("shfl.sync.bfly.b32", d, v, off, 31, -1)
		return d
	}
	switch k {
	case kindPred:
		return a.get(
			kindPred, "setp.ne.s32",
			word(a.get(kindB32, "selp.b32", 1, 0, x)),
			0,
		)
	case kindF32:
		return a.get(
			k, "mov.b32",
			word(a.get(kindB32, "mov.b32", x)),
		)
	case kindB32:
		return word(x)
	}
	// Shuffles move 32 bits, so 64-bit values take two.
	halves := a.fresher(kindB32, 2)
	a.do("mov.b64", halves, x)
	return a.get(k, "mov.b64", []operand{
		word(halves[0]), word(halves[1]),
	})
}

// acrossWarps stores one partial result of each warp, or of each row of threads, to
// shared memory, and combines them in every thread.
func (r *reduction) acrossWarps() {
	e, s := r.e, r.layout
	side := s.OuterRounds * s.OuterThreads
	shares := s.InnerThreads / device.WarpThreads
	warp := e.thread.Mod(s.InnerThreads).Div(device.WarpThreads)
	writes := conditions(nil).and(e.thread.Mod(device.WarpThreads).Neg())
	// On the outer side, a warp has several results, or one row of threads several
	// warps.
	if !r.inside {
		per := max(s.InnerThreads, device.WarpThreads)
		side, shares, warp = s.InnerRounds*
			s.InnerThreads*s.Vector,
			e.threads/per, e.thread.Div(per)
		writes = conditions(nil).and(
			e.thread.Mod(per).Neg().AddConst(s.InnerThreads - 1),
		)
	}
	var buffers []*buffer
	for _, d := range r.partial() {
		buffers = append(
			buffers,
			e.newBuffer(
				wide(d),
				[]int64{side, shares},
				[]int64{shares, 1},
			),
		)
	}
	for k := range r.accs {
		for part, b := range buffers {
			p := point{
				[]index.Expr{r.number(k), warp}, writes,
			}
			e.put(
				b,
				[]point{p},
				r.accs[k][part:part+1],
			)
		}
	}
	// Every thread reads the values of all warps.
	e.barrier()
	for k := range r.accs {
		all := make([][]operand, len(buffers))
		for part, b := range buffers {
			var points []point
			for w := range shares {
				points = append(points, point{
					[]index.Expr{r.number(k), e.ring.Const(w)},
					nil,
				})
			}
			all[part] = e.fetch(b, points)
		}
		for w := range shares {
			x := make([]operand, len(all))
			for part := range all {
				x[part] = all[part][w]
			}
			if w == 0 {
				r.accs[k] = x
				continue
			}
			r.accs[k] = r.join(r.accs[k], x)
		}
	}
}

// number is the number of this thread's result k among the results of the tile, in the
// order of the layout.
func (r *reduction) number(k int) index.Expr {
	if r.inside {
		return r.layout.OuterIndex(
			r.e.thread,
			r.e.ring.Const(int64(k)),
		)
	}
	return r.layout.InnerIndex(r.e.thread, r.e.ring.Const(
		int64(k)/r.layout.Vector,
	)).AddConst(
		int64(k) % r.layout.Vector,
	)
}

// publish makes the results available in registers and, if other threads need them
// (hints), in shared memory.
func (r *reduction) publish() {
	e, s := r.e, r.layout
	side, dims, count, owner := s.Outer,
		[]int{}, r.results(),
		r.sharer()
	if !r.inside {
		side = s.Inner
	}
	// The kept dimensions are in the order of the result.
	for d := range s.Sizes {
		for _, x := range side {
			if x == d {
				dims = append(dims, d)
			}
		}
	}
	// Each result is known to the threads that share it; the first of them stores it
	// for others.
	points := make([]point, len(r.accs))
	for k := range r.accs {
		full := make([]index.Expr, len(s.Sizes))
		n := r.number(k)
		s.SetIndices(full, side, n)
		var at []index.Expr
		for _, d := range dims {
			at = append(at, full[d])
		}
		points[k] = point{
			at,
			conditions(nil).and(n.Neg().AddConst(count - 1)),
		}
		for part := range r.types {
			e.asm.scope.values[e.keyOf(
				r.n, part, point{at, nil},
			)] = r.accs[k][part]
		}
	}
	wrote := false
	for part, d := range r.types {
		key := bufferKey{r.n, part}
		delete(e.buffers, key)
		if !e.hints.sharedResults[key] {
			continue
		}
		sizes := r.op.Tile.Sizes()
		b := e.newBuffer(
			registerType(d), sizes, dense(sizes),
		)
		for k, p := range points {
			p.when = p.when.and(owner.Neg())
			e.put(
				b,
				[]point{p},
				r.accs[k][part:part+1],
			)
		}
		e.buffers[key], wrote = b, true
	}
	if wrote {
		e.barrier()
	}
}

// storePartial combines the threads of a block and stores what this piece has.
func (r *reduction) storePartial() {
	r.joinThreads()
	r.store()
}

// scratch declares an array for every part of the partial results, and returns the
// position in it of this thread's result k of a piece.
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

// store makes the first of the threads that share a result store it to scratch memory.
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

// addPartials combines what all pieces have stored. Threads that share a result
// combine contiguous ranges of pieces, so that the order of pieces is kept.
func (r *reduction) addPartials() {
	e := r.e
	pieces := int64(r.e.knobs.splitk)
	arrays, at := r.scratch()
	// Threads that share a result take contiguous ranges of pieces, whose results
	// joinThreads combines in order.
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

// An orderedReduction reduces by a computation that may depend on the order of the
// elements, from a start value that may change the result. Every thread combines a
// contiguous piece, pieces are combined in their order, then tiles, and the start
// value is first, once. Only the association differs from combining one element after
// the other, which a reduce leaves open (StableHLO specification, reduce).
type orderedReduction struct {
	*reduction
	// Carried is the result of the tiles so far, by result of this thread.
	carried [][]operand
}

// newOrderedReduction rejects tiles that do not visit the elements in row-major order.
func (e *emitter) newOrderedReduction(r *reduction) *orderedReduction {
	tile := e.p.Ops[r.op.Args[0]].Tile
	o := orderOf(e.p, r.op)
	k := o.broken(tile.Sizes(), func(d int) int64 {
		return constantOf(e.p.Space.Dims[d].Tiles)
	})
	if k >= 0 {
		e.reject(
			"%s: its computation %s is folded in the order of elements, and tiles of %v do not go through dimension %d of %s in order",
			r.op.Instr.Name,
			r.op.Instr.Attrs.ToApply.Name,
			tile.Sizes(), o.reduced[k],
			r.op.Instr.Operands[0].Name,
		)
	}
	return &orderedReduction{reduction: r}
}

// A reductionOrder is the order in which a loop visits the reduced dimensions of an
// array.
type reductionOrder struct {
	// Reduced are the reduced dimensions, slowest first in row-major order.
	reduced []int64
	// Cuts are the dimensions of the tile space that divide each of them.
	cuts [][]cut
	// Digits is set for dimensions whose tiles have digits.
	digits []bool
}

// A cut is a dimension of the tile space that divides a reduced dimension, with its
// place among the loop's dimensions.
type cut struct{ dim, at int }

// orderOf is the order of a reduce of the program.
func orderOf(p *symtile.Program, op symtile.Op) reductionOrder {
	o := reductionOrder{
		reduced: slices.Sorted(slices.Values(op.Instr.Attrs.Dimensions)),
	}
	for _, d := range o.reduced {
		x := p.Ops[op.Args[0]].Tile[d]
		var cuts []cut
		if op.Loop != nil {
			for at, k := range op.Loop.Dims {
				if slices.Contains(x.Offset.Vars(), p.Space.Dims[k].Tid) {
					cuts = append(cuts, cut{k, at})
				}
			}
		}
		o.cuts = append(o.cuts, cuts)
		o.digits = append(o.digits, x.Digits != nil)
	}
	return o
}

// broken is a reduced dimension that tiles of the given sizes do not visit in
// row-major order; −1 where there is none. The order is kept if the loop's dimensions
// are in the order of the array's, and no tile has more than one element along a
// dimension before one that is divided.
func (o reductionOrder) broken(sizes []int64, tiles func(dim int) int64) int {
	last, whole := -1, false
	for k, d := range o.reduced {
		for _, c := range o.cuts[k] {
			if tiles(c.dim) <= 1 {
				continue
			}
			if whole || c.at < last || o.digits[k] {
				return k
			}
			last = c.at
		}
		// A later dimension that is divided would be visited out of order.
		whole = whole || sizes[d] > 1
	}
	return -1
}

// begin sets what is carried to the start value, or to nothing in a piece of a loop
// that other pieces precede.
func (r *orderedReduction) begin() {
	r.start()
	first := yes
	if r.op.Loop != nil &&
		r.e.iterationRange(r.op.Loop.Dims).divided() {
		first = no
	}
	for range r.accs {
		c := r.fresh()
		for part, d := range r.partial() {
			v := first
			if part < len(r.types) {
				v = r.init[part]
			}
			r.e.set(kindFor(d), c[part], v)
		}
		r.carried = append(r.carried, c)
	}
}

// accumulate reduces a tile and appends its result to what is carried.
func (r *orderedReduction) accumulate() {
	// The partial results of the tile are joined into new registers; the accumulators
	// are restored for the next tile.
	accs := slices.Clone(r.accs)
	r.clear()
	r.reduction.accumulate()
	r.carry()
	r.accs = accs
}

// clear makes the partial results empty.
func (r *orderedReduction) clear() {
	for _, acc := range r.accs {
		for part, d := range r.partial() {
			v := no
			if part < len(r.types) {
				// The value is not used.
				v = r.init[part]
			}
			r.e.set(kindFor(d), acc[part], v)
		}
	}
}

// carry combines the partial results of all threads and appends them to what is
// carried.
func (r *orderedReduction) carry() {
	r.joinThreads()
	for k, c := range r.carried {
		next := r.join(r.frozen(c), r.accs[k])
		for part, d := range r.partial() {
			r.e.set(kindFor(d), c[part], next[part])
		}
	}
}

// storePartial stores what a piece of the loop has carried.
func (r *orderedReduction) storePartial() {
	for k, c := range r.carried {
		r.accs[k] = r.frozen(c)
	}
	r.store()
}

// addPartials appends the results of all pieces to what is carried.
func (r *orderedReduction) addPartials() {
	r.clear()
	r.reduction.addPartials()
	r.carry()
}

// finish rounds and publishes what is carried, which includes the start value.
func (r *orderedReduction) finish() {
	for k, c := range r.carried {
		r.accs[k] = r.frozen(c)
		for part, d := range r.types {
			r.accs[k][part] = r.e.fit(
				d, r.accs[k][part],
			)
		}
	}
	r.publish()
}
