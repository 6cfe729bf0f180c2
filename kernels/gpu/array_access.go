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

// The thread layout of a tile, that is the dimensions that neighbouring threads run
// along and the elements that a thread accesses at once, is chosen by package
// coalesce. This file describes the arrays that the choice depends on: those that the
// elements of a tile are loaded from or stored to, with the expressions of their
// addresses.

// An accessTrace follows the elements of a tile down to the arrays that they are
// loaded from, as elements does when it emits code.
type accessTrace struct {
	e *emitter
	// Index is the index of an element of the tile, one variable a dimension.
	index []index.Expr
	// Through is set where values in shared memory are followed to their arrays, too.
	through bool
	// Visited are the elements that were followed already.
	visited map[valueKey]bool
	all     []arrayAccess
}

// accesses are the arrays that op n is computed from. Those whose tiles are in shared
// memory or in registers are left out unless through is set.
func (e *emitter) accesses(n int, through bool) []arrayAccess {
	r := e.newAccessTrace(n)
	r.through = through
	r.compute(n, point{r.index, nil})
	return r.all
}

// newAccessTrace begins at a general element of op n.
func (e *emitter) newAccessTrace(n int) *accessTrace {
	r := &accessTrace{
		e:       e,
		visited: map[valueKey]bool{},
	}
	for d, size := range e.p.Ops[n].Tile.Sizes() {
		r.index = append(
			r.index,
			e.ring.Var(index.Variable{
				Name: fmt.Sprint("x", d),
				Hi:   size - 1,
				Role: index.RoleElement,
			}),
		)
	}
	return r
}

// element follows an element of op n unless it was visited or is in shared memory.
func (r *accessTrace) element(n int, p point) {
	key := r.e.keyOf(n, 0, p)
	if r.visited[key] ||
		r.e.hints.staged[n] && !r.through {
		return
	}
	r.visited[key] = true
	r.compute(n, p)
}

// compute follows the arguments of an element; its cases are those of emitter.compute.
func (r *accessTrace) compute(n int, p point) {
	e := r.e
	op := r.e.p.Ops[n]
	if op.Code.Elementwise() {
		r.pointwise(op, p)
		return
	}
	one := []point{p}
	switch op.Code {
	case hlo.OpParameter:
		r.load(n, p)
	case hlo.OpConstant:
		if _, same := uniform(op.Instr.Literal); !same {
			r.load(n, p)
		}
	case hlo.OpReshape, hlo.OpSlice, hlo.OpDynamicSlice, hlo.OpOptimizationBarrier:
		r.element(op.Args[0], e.reshaped(op, one)[0])
	case hlo.OpBroadcast, hlo.OpTranspose, hlo.OpReverse, symtile.OpUnfold:
		r.element(op.Args[0], e.moved(op, one)[0])
	case hlo.OpConcatenate, hlo.OpDynamicUpdateSlice:
		for k, a := range op.Args {
			if op.Code == hlo.OpConcatenate || k == 1 {
				parts, _ := e.reaching(a, one)
				r.element(a, parts[0])
			} else if k == 0 {
				r.element(a, p)
			}
		}
	case hlo.OpPad:
		part, _ := e.padding(op, p)
		r.element(op.Args[0], part)
	case hlo.OpGather:
		r.gather(op, p)
	case hlo.OpGetTupleElement:
		r.element(op.Args[0], p)
	}
}

// pointwise follows the arguments of an elementwise operation.
func (r *accessTrace) pointwise(op symtile.Op, p point) {
	for _, a := range op.Args {
		at := p
		if len(r.e.p.Ops[a].Tile) == 0 {
			at = point{nil, p.when}
		}
		r.element(a, at)
	}
}

// load records an access to the array of a parameter or constant. The access may be
// moved to shared memory where the tile fits and its addresses do not depend on data.
func (r *accessTrace) load(n int, p point) {
	e := r.e
	op := r.e.p.Ops[n]
	index, valid := e.tensor(op.Tile, p.at)
	places := []place{
		{e.dotted(
			index, op.Instr.Shape.Strides(),
		), p.when.all(valid)},
	}
	size := op.Instr.Shape.DType.Size()
	may := op.Code == hlo.OpParameter &&
		!e.hints.staged[n] &&
		e.fitsSharedMemory(n) && e.launchInvariant(places)
	r.all = append(r.all, arrayAccess{
		n,
		coalesce.ArrayAccess{
			Index:  r.index,
			Offset: places[0].at,
			Where:  places[0].when,
			Bytes:  size,
			Shared: may,
		},
	})
}

// unboundedExtent is a distance, in elements, larger than any memory transaction.
const unboundedExtent = 1 << 20

// gather follows the index vectors and the operand of a gather. Slices that different
// index vectors point to are assumed to be far apart.
func (r *accessTrace) gather(op symtile.Op, p point) {
	e := r.e
	g := op.Instr.Attrs.Gather
	batch, _ := splitGather(g, p.at)
	indices := e.p.Ops[op.Args[1]]
	at := slices.Clone(batch)
	if int(g.IndexVectorDim) < len(indices.Tile) {
		at = slices.Insert(
			at, int(g.IndexVectorDim), e.ring.Const(0),
		)
	}
	r.element(op.Args[1], point{at, p.when})
	// The accesses of the operand are traced separately and then moved apart by the
	// index vector's number.
	slice := &accessTrace{
		e:       e,
		index:   r.index,
		through: r.through,
		visited: r.visited,
	}
	starts := make([]index.Expr, len(g.StartIndexMap))
	for k := range starts {
		starts[k] = e.ring.Const(0)
	}
	slice.element(
		op.Args[0], e.gatheredAt(op, p, starts),
	)
	number := e.ring.Const(0)
	for _, x := range batch {
		number = number.Scale(x.Range().Hi + 1).Add(x)
	}
	for _, x := range slice.all {
		x.Offset = x.Offset.Add(number.Scale(unboundedExtent))
		x.Shared = false
		r.all = append(r.all, x)
	}
}

// stores are the outputs that root n is stored to.
func (e *emitter) stores(n int) (all []arrayAccess) {
	op, r := e.p.Ops[n], e.newAccessTrace(n)
	index, valid := e.tensor(op.Tile, r.index)
	for _, root := range e.p.Roots {
		if root.Op == n {
			all = append(all, arrayAccess{
				-1,
				coalesce.ArrayAccess{Index: r.index, Offset: e.dotted(
					index, op.Instr.Shape.Strides(),
				), Where: valid, Bytes: op.Instr.Shape.DType.Size()},
			})
		}
	}
	return all
}

// box is a tile for which a layout is chosen: its sizes, the threads of the block, and
// the elements of size bytes that a thread may access at once.
func (e *emitter) box(sizes []int64, size int64) coalesce.Box {
	return coalesce.Box{
		Sizes:   sizes,
		Threads: e.threads,
		Vector:  e.vectorBytes / max(1, size),
	}
}

// layoutAccesses drops the ops from accesses.
func layoutAccesses(all []arrayAccess) []coalesce.ArrayAccess {
	out := make([]coalesce.ArrayAccess, len(all))
	for k, r := range all {
		out[k] = r.ArrayAccess
	}
	return out
}

// flat is the layout by which threads compute the tile of op n for shared memory,
// where its elements have the given size.
func (e *emitter) flat(n int, size int64) chosenLayout {
	c := e.chosenFor(choiceKey{n, size, false})
	e.share(c)
	return c
}

// stored is the layout by which threads store the tile of a root, unless a reduction
// or a product has left the tile in registers.
func (e *emitter) stored(n int) chosenLayout {
	return e.chosenFor(choiceKey{
		n, e.p.Ops[n].Instr.Shape.DType.Size(), true,
	})
}

// chosenFor chooses the layout of a tile, once for each key.
func (e *emitter) chosenFor(k choiceKey) chosenLayout {
	c, known := e.choices[k]
	if known {
		return c
	}
	if k.stored {
		c.accesses = e.stores(k.op)
	}
	c.accesses = append(
		c.accesses, e.accesses(k.op, false)...,
	)
	// Everything is in shared memory or in registers: the order in which it was loaded
	// counts.
	// The tile is computed from shared memory or registers, in the order in which it
	// was loaded.
	if len(c.accesses) == 0 {
		c.accesses = e.accesses(k.op, true)
	}
	c.box = e.box(
		e.p.Ops[k.op].Tile.Sizes(),
		k.size,
	)
	c.Choice = c.box.ChooseElementwise(layoutAccesses(c.accesses))
	e.choices[k] = c
	return c
}

// share records that tiles whose accesses a layout does not coalesce are to be copied
// to shared memory at the next emission.
func (e *emitter) share(c chosenLayout) {
	for k, r := range c.accesses {
		if !c.Coalesced[k] && r.Shared {
			e.hints.stage(r.op)
		}
	}
}

// foldedLayout is the layout by which threads reduce the argument of reduce n, and of
// others like it. Roots of the same sizes, which are stored by the same layout, count,
// too.
func (e *emitter) foldedLayout(
	like func(symtile.Op) bool, n int, f coalesce.Reduction,
) chosenLayout {
	c := chosenLayout{fold: &f}
	sizes := e.p.Ops[e.p.Ops[n].Args[0]].Tile.Sizes()
	// All reductions with this layout are served by one choice.
	for _, op := range e.p.Ops {
		if op.Code != hlo.OpReduce || !like(op) {
			continue
		}
		for _, a := range op.Args[:len(op.Args)/2] {
			c.accesses = appendMissing(
				c.accesses, e.accesses(a, false), nil,
			)
		}
	}
	var storedAccesses []arrayAccess
	for _, r := range e.p.Roots {
		// A root of the same sizes may be stored from the registers of the reduction,
		// so its accesses weigh in.
		if !f.Ordered &&
			slices.Equal(
				e.p.Ops[r.Op].Tile.Sizes(),
				sizes,
			) {
			storedAccesses = appendMissing(
				storedAccesses,
				append(e.stores(r.Op), e.accesses(r.Op, false)...),
				c.accesses,
			)
			for _, n := range e.stored(r.Op).Counts {
				f.OuterCount = f.OuterCount.Plus(n)
			}
		}
	}
	f.InnerAccesses = layoutAccesses(storedAccesses)
	c.box = e.box(sizes, widestAccess(
		append(layoutAccesses(c.accesses), f.InnerAccesses...),
	))
	c.Choice = c.box.ChooseReduction(
		f, layoutAccesses(c.accesses),
	)
	e.share(c)
	return c
}

// widestAccess is the bytes of the widest element that is loaded or stored, 4 where
// none is.
func widestAccess(all []coalesce.ArrayAccess) int64 {
	widest := int64(0)
	for _, x := range all {
		widest = max(widest, x.Bytes)
	}
	return cmp.Or(widest, 4)
}

// appendMissing appends to the list to those of add that neither it nor but contains.
func appendMissing(to, add, but []arrayAccess) []arrayAccess {
	for _, r := range add {
		same := func(x arrayAccess) bool {
			return x.op == r.op && x.Offset == r.Offset
		}
		if !slices.ContainsFunc(to, same) &&
			!slices.ContainsFunc(but, same) {
			to = append(to, r)
		}
	}
	return to
}

// recheckCoalescing checks a load whose thread layout was not chosen for it, because
// the fragments of a product determine it: it counts the memory sectors that the first
// warp touches, and records that the tile is to be copied to shared memory if the best
// layout for the array needs significantly fewer.
func (e *emitter) recheckCoalescing(n int, places []place) {
	if e.threadLayout != nil || e.hints.staged[n] ||
		!e.fitsSharedMemory(n) || !e.launchInvariant(places) {
		return
	}
	size := e.p.Ops[n].Instr.Shape.DType.Size()
	// The best layout for this array alone is the reference.
	best := e.chosenFor(choiceKey{n, size, false})
	c := e.firstWarp(places, size)
	if len(best.Counts) > 0 &&
		!c.CoalescedLike(best.Counts[0]) {
		e.hints.stage(n)
	}
}

// fitsSharedMemory reports whether the tile of op n takes at most a quarter of a
// block's shared memory, which leaves memory for others.
func (e *emitter) fitsSharedMemory(n int) bool {
	op := e.p.Ops[n]
	return op.Tile.Elements()*
		op.Instr.Shape.DType.Size() <= int64(e.spec.BlockShared)/4
}

// launchInvariant reports whether positions depend on tile ids and the thread only,
// not on data.
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

// firstWarp counts the sectors that the accesses of the first warp touch.
func (e *emitter) firstWarp(places []place, size int64) coalesce.Count {
	var offsets []int64
	for _, p := range places {
		env := map[index.Expr]int64{}
		vars := p.at.Vars()
		for _, v := range vars {
			env[v] = v.Range().Lo
		}
		for t := range int64(device.WarpThreads) {
			// The variable of the thread's number may have a narrower range
			// (narrowThread).
			for _, v := range vars {
				if x, _ := v.Variable(); x.Role == index.RoleThread {
					env[v] = min(t, x.Hi)
				}
			}
			offsets = append(offsets, p.at.Eval(env)*size)
		}
	}
	return coalesce.CountOffsets(offsets, size)
}
