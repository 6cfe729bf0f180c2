package gpu

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/kernels/gpu/coalesce"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// Which dimensions of a tile threads run along, and how many elements they take
// at once, is chosen in the layout room: here are the arrays it is chosen for,
// those that the elements of a tile are computed from or stored to, with the
// expressions of their addresses.

// A accessTrace follows an element of a tile down to where it is loaded from.
type accessTrace struct {
	e       *emitter
	index   []index.Expr
	through bool // what is in shared memory is followed, too
	visited map[valueKey]bool
	all     []arrayAccess
}

// accesses are the arrays that op n is computed from, those that are in shared
// memory or in registers left out unless through is set.
func (e *emitter) accesses(n int, through bool) []arrayAccess {
	r := e.newAccessTrace(n)
	r.through = through
	r.compute(n, point{r.index, nil})
	return r.all
}

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

// element follows an element that may be known.
func (r *accessTrace) element(n int, p point) {
	key := r.e.keyOf(n, 0, p)
	if r.visited[key] ||
		r.e.hints.staged[n] && !r.through {
		return
	}
	r.visited[key] = true
	r.compute(n, p)
}

// compute follows an element that is computed: see emitter.compute.
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

func (r *accessTrace) pointwise(op symtile.Op, p point) {
	for _, a := range op.Args {
		at := p
		if len(r.e.p.Ops[a].Tile) == 0 {
			at = point{nil, p.when}
		}
		r.element(a, at)
	}
}

// load adds the array of a parameter or a constant.
func (r *accessTrace) load(n int, p point) {
	e := r.e
	op := r.e.p.Ops[n]
	index, there := e.tensor(op.Tile, p.at)
	places := []place{
		{e.dotted(
			index, op.Instr.Shape.Strides(),
		), p.when.all(there)},
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

// unboundedExtent is elements further apart than what is moved at once.
const unboundedExtent = 1 << 20

// gather follows the index vectors, and what they point to: the slices of
// different ones are taken to lie far from each other.
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

// stores are the outputs that a root is stored to.
func (e *emitter) stores(n int) (all []arrayAccess) {
	op, r := e.p.Ops[n], e.newAccessTrace(n)
	index, there := e.tensor(op.Tile, r.index)
	for _, root := range e.p.Roots {
		if root.Op == n {
			all = append(all, arrayAccess{
				-1,
				coalesce.ArrayAccess{Index: r.index, Offset: e.dotted(
					index, op.Instr.Shape.Strides(),
				), Where: there, Bytes: op.Instr.Shape.DType.Size()},
			})
		}
	}
	return all
}

// box is a tile, of whose elements of the size in bytes a thread takes some at once.
func (e *emitter) box(sizes []int64, size int64) coalesce.Box {
	return coalesce.Box{
		Sizes:   sizes,
		Threads: e.threads,
		Vector:  e.vectorBytes / max(1, size),
	}
}

func layoutAccesses(all []arrayAccess) []coalesce.ArrayAccess {
	out := make([]coalesce.ArrayAccess, len(all))
	for k, r := range all {
		out[k] = r.ArrayAccess
	}
	return out
}

// flat is how threads go over the tile of op n to compute it for shared memory,
// where its elements have the size.
func (e *emitter) flat(n int, size int64) chosenLayout {
	c := e.chosenFor(choiceKey{n, size, false})
	e.share(c)
	return c
}

// stored is how threads go over the tile of a root to store it, if it is not
// spread as a product or a reduction before it.
func (e *emitter) stored(n int) chosenLayout {
	return e.chosenFor(choiceKey{
		n, e.p.Ops[n].Instr.Shape.DType.Size(), true,
	})
}

// chosenFor chooses once.
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
	if len(c.accesses) == 0 { // the order in which it came to shared memory
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

// share brings what a spread does not serve through shared memory: the next time.
func (e *emitter) share(c chosenLayout) {
	for k, r := range c.accesses {
		if !c.Coalesced[k] && r.Shared {
			e.hints.stage(r.op)
		}
	}
}

// foldedLayout is how threads go over the tile of the arguments of a reduction, and of
// others like it. What is stored by the same spread counts, too.
func (e *emitter) foldedLayout(
	like func(symtile.Op) bool, n int,
	size int64, f coalesce.Reduction,
) chosenLayout {
	c := chosenLayout{
		box: e.box(
			e.p.Ops[e.p.Ops[n].Args[0]].Tile.Sizes(),
			size,
		),
		fold: &f,
	}
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
	var too []arrayAccess
	for _, r := range e.p.Roots {
		if !f.Ordered &&
			slices.Equal(
				e.p.Ops[r.Op].Tile.Sizes(),
				c.box.Sizes,
			) {
			too = appendMissing(
				too,
				append(e.stores(r.Op), e.accesses(r.Op, false)...),
				c.accesses,
			)
			for _, n := range e.stored(r.Op).Counts {
				f.OuterCount = f.OuterCount.Plus(n)
			}
		}
	}
	f.InnerAccesses = layoutAccesses(too)
	c.Choice = c.box.ChooseReduction(
		f, layoutAccesses(c.accesses),
	)
	e.share(c)
	return c
}

// appendMissing adds reaches to others that they are not among.
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

// recheckCoalescing looks at one load of the first warp where how threads go over a tile
// was not chosen for what they load: as fragments of a product lie. A tile that
// this does not serve as the order that is best for it would is read crosswise:
// the next time it goes through shared memory.
func (e *emitter) recheckCoalescing(n int, places []place) {
	if e.threadLayout != nil || e.hints.staged[n] ||
		!e.fitsSharedMemory(n) || !e.launchInvariant(places) {
		return
	}
	size := e.p.Ops[n].Instr.Shape.DType.Size()
	best := e.chosenFor(choiceKey{n, size, false})
	c := e.firstWarp(places, size)
	if len(best.Counts) > 0 &&
		!c.CoalescedLike(best.Counts[0]) {
		e.hints.stage(n)
	}
}

// fitsSharedMemory says whether the tile of an op is one that there is shared memory for
// beside others.
func (e *emitter) fitsSharedMemory(n int) bool {
	op := e.p.Ops[n]
	return op.Tile.Elements()*
		op.Instr.Shape.DType.Size() <= int64(e.sheet.BlockShared)/4
}

// launchInvariant says whether the places are functions of tile ids and the thread
// only.
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

// firstWarp counts what the first warp touches with all the places of a thread.
func (e *emitter) firstWarp(places []place, size int64) coalesce.Count {
	var offsets []int64
	for _, p := range places {
		env := map[index.Expr]int64{}
		vars := p.at.Vars()
		for _, v := range vars {
			env[v] = v.Range().Lo
		}
		for t := range int64(device.WarpThreads) {
			for _, v := range vars { // the thread's number, of a narrower range perhaps
				if x, _ := v.Variable(); x.Role == index.RoleThread {
					env[v] = min(t, x.Hi)
				}
			}
			offsets = append(offsets, p.at.Eval(env)*size)
		}
	}
	return coalesce.CountOffsets(offsets, size)
}
